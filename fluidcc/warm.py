"""``python -m fluidcc.warm``: compile once what every later run takes from the cache.

That is the network solver, the kernels of the library's laws, the fused steps of the ready scenarios, and what
`solve_dde` compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tqdm import tqdm

from fluidcc import links, sources
from fluidcc.compile import kernel_address
from fluidcc.engine.fused import fits, fused_address
from fluidcc.engine.layout import lay_out
from fluidcc.equilibrium import equilibrium
from fluidcc.law import Law, Source
from fluidcc.network import Network
from fluidcc.numerics.dde import solve_dde
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.numerics.linear.margins import eigenloci, margins
from fluidcc.numerics.linear.stack import rightmost_of_stack
from fluidcc.numerics.linear.wiring import Blocks
from fluidcc.scenarios import scenarios
from fluidcc.simulate import simulate
from fluidcc.synchronized import synchronized

__all__ = ["main", "tasks"]

Task = tuple[str, Callable[[], object]]


def tasks() -> Iterator[Task]:
    """What there is to compile: a name for people, and a function that does it."""
    yield "the network solver", _solver
    yield "equilibria", _equilibrium
    yield "linear systems", _linear
    yield "solve_dde", lambda: solve_dde(lambda t, y, Z: -Z[:, 0], (0.0, 1.0), [1.0], [1.0])
    yield "the interval model", lambda: synchronized(0, 1, 1.0, 0.5, 9.5).orbit
    for room in (sources, links):
        for name in room.__all__:
            law: Law = getattr(room, name)
            if isinstance(law, Source) or law.params:  # links without parameters are the solver's own
                yield name, partial(kernel_address, law)
    for name, scenario in scenarios.items():
        net = scenario.net
        at = lay_out(net, dict.fromkeys(net.link_names, 0.0) if scenario.delays == "frozen" else None)
        if fits(at):
            yield f"scenario {name}", partial(fused_address, at, build=True)


def _linear() -> None:
    loop = DelayLTI.transfer([1.0], [1.0, 0.5], 1.0)
    margins(loop)
    eigenloci(loop)
    closed = loop.feedback()
    closed.roots(2)
    rightmost_of_stack(Blocks(*(part[None] for part in closed._block)))


def _solver() -> None:
    net = Network().link("l", links.DropTail, capacity=3e6, delay=0.025)
    net.flow("f", sources.LDCC, route=["l"], start=0)
    simulate(net, 1.0, samples=2, engine="array")


def _equilibrium() -> None:
    net = Network().link("l", links.DropTail, capacity=3e6, delay=0.025)
    equilibrium(net.flow("f", sources.LDCC, route=["l"]))


def main() -> None:
    """Do all of it, behind a progress bar."""
    todo = list(tasks())
    with tqdm(todo, unit="part", bar_format="{l_bar}{bar}| {n}/{total} [{elapsed}]") as bar:
        for name, act in bar:
            bar.set_description(f"compiling {name}")
            act()
        bar.set_description("compiled")


if __name__ == "__main__":
    main()
