"""``python -m fluidcc.cli.warm``: compile once what every later run takes from the cache.

That is the network solver, the kernels of the library's laws, linear systems, the search for
equilibria, and what `solve_dde` compiles. Groups that share no compiled function are compiled side
by side, one per core: numba's cache on disk does not bear two processes that compile one function
for different arguments at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from tqdm import tqdm

from fluidcc import links, sources
from fluidcc.base.progress import tell, together
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Law, Source
from fluidcc.laws.kernels import event_kernel_address, kernel_address
from fluidcc.laws.sliding import slide_kernel_address, sliding_switches
from fluidcc.network import Network
from fluidcc.numerics.dde.solve import solve_dde
from fluidcc.numerics.linear.count import counts_of_stack
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.numerics.linear.margins import eigenloci, margins
from fluidcc.papers.binomial.synchronized import synchronized
from fluidcc.simulation.simulate import simulate
from fluidcc.sweeps import sweep
from fluidcc.sweeps.execute import cores

Task = tuple[str, Callable[[], object]]
_FORMAT = "{l_bar}{bar}| {n}/{total} [{elapsed}{postfix}]"


def groups() -> list[list[Task]]:
    """What there is to compile, the longest first: names for people, and functions that do it."""
    return [
        [("the network solver", _solver)],
        [("linear systems", _linear)],
        [("equilibria", _equilibrium)],
        [*_kernels()],
        [
            ("solve_dde", lambda: solve_dde(lambda t, y, Z: -Z[:, 0], (0.0, 1.0), [1.0], [1.0])),
            ("the interval model", lambda: synchronized(0, 1, 1.0, 0.5, 9.5).orbit),
        ],
    ]


def _kernels() -> Iterator[Task]:
    for room in (sources, links):
        for name in room.__all__:
            law: Law = getattr(room, name)
            if (
                isinstance(law, Source) or law.params
            ):  # links without parameters are the solver's own
                yield name, partial(_law, law)


def _law(law: Law) -> None:
    kernel_address(law)
    if law.jumps or law.ticks:
        event_kernel_address(law)
    if sliding_switches(law):
        slide_kernel_address(law)


def _linear() -> None:
    loop = DelayLTI.transfer([1.0], [1.0, 0.5], 1.0)
    loop.frequency_response(np.ones(1))
    margins(loop)
    eigenloci(loop)
    closed = loop.feedback()
    closed.roots(2)
    counts_of_stack(closed._entries)


def _solver() -> None:
    net = Network().link("l", links.DropTail, capacity=3e6, delay=0.025)
    net.flow("f", sources.LDCC, route=["l"], start=0)
    run = simulate(net, 1.0, samples=2)
    simulate(net.with_flow("f", law=sources.LDCC(w=30e3)), 2.0, samples=2, restart=run)
    sweep(net, {"f.w": [20e3, 30e3]}, "mean_rate", until=1.0, executor="serial", progress=False)


def _equilibrium() -> None:
    net = Network().link("l", links.DropTail, capacity=3e6, delay=0.025)
    equilibrium(net.flow("f", sources.LDCC, route=["l"]))


def _compile(group: int) -> None:
    for name, act in groups()[group]:
        act()
        tell(name)


def main() -> int:
    """Do all of it, behind a progress bar; return how many parts that were."""
    todo = groups()
    total = sum(map(len, todo))
    with tqdm(total=total, desc="compiling", unit="part", bar_format=_FORMAT) as bar:
        bar.set_postfix_str("the network solver")
        together(_compile, range(len(todo)), cores(), bar)
    return total


if __name__ == "__main__":
    main()
