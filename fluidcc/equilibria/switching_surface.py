"""Rest of networks whose links switch: a law with a jump in it is looked at with the switch on, and with it off.

Where a link compares what comes with something, a search for an equilibrium may step to and fro over the switch for
ever. With the switch held there is a smooth law on either side: its equilibrium is one of the network if the switch
then is where it was held. If neither is, the network goes back and forth.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sympy import Expr, Float, Heaviside

from fluidcc.equilibria.assembly import Assembled, assemble
from fluidcc.numerics.steady.follow import CONVERGED
from fluidcc.numerics.steady.search import Found, Search
from fluidcc.symbols import c, q_max, unfold, y

if TYPE_CHECKING:
    from fluidcc.laws import Link

__all__ = ["across_switches", "on_a_switch"]

_ON = 1e-9
"""What is this close to a switch, relative to the sizes compared, is on it."""


def across_switches(system: Assembled) -> Found | str | None:
    """Look on both sides of the one switch that a network's links have.

    Parameters
    ----------
    system : Assembled
        The network at one point, where a search has failed.

    Returns
    -------
    Found, str or None
        An equilibrium; or why there is none; or None if that cannot be said: no link switches, or several do.
    """
    only = _only(system)
    if only is None:
        return None
    name, switch = only
    said = []
    for on in (1, 0):
        side = _held(system, name, switch, on)
        search = Search(side.shape)
        there = search.everywhere(side.numbers).point(0)
        if there.status != CONVERGED:
            said.append("no rest was found")
            continue
        value = _value(side, name, switch.args[0], there.u)
        if (value > _ON) if on else (value < -_ON):
            return there
        said.append("the rest is on the switch" if abs(value) <= _ON else "the rest is beyond the switch")
    law = system.net.links[name].law
    return (
        f"link {name!r} ({law.name}) switches where {switch.args[0]} = 0, and the network rests on neither side: with "
        f"the switch on {said[0]}, with it off {said[1]}; simulate it, or see fluidcc.limit_cycle"
    )


def on_a_switch(system: Assembled, u: Any) -> bool:
    """Whether an equilibrium is on the one switch of a network's links, which any deviation then switches."""
    only = _only(system)
    return only is not None and abs(_value(system, only[0], only[1].args[0], u)) <= _ON


def _only(system: Assembled) -> tuple[str, Heaviside] | None:
    """The link that switches, and its switch, if there is one only."""
    found = [(name, s) for name, link in system.net.links.items() for s in _switches(link.law)]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=256)
def _switches(law: Link) -> set[Heaviside]:
    """Jumps of a law where what is compared moves."""
    moving = {y, *law.states}
    atoms = {s for _, f in law.expressions() for s in unfold(f).atoms(Heaviside)}
    return {s for s in atoms if s.args[0].free_symbols & moving}


def _held(system: Assembled, name: str, switch: Heaviside, value: int) -> Assembled:
    """The network with the switch held."""
    link = system.net.links[name]

    def side(f: Any) -> Expr:
        return unfold(f).subs(switch, value)

    law = replace(
        link.law,
        flow={z: side(f) for z, f in link.law.flow.items()},
        out={key: side(f) for key, f in link.law.out.items()},
        claims={},
    )
    net = system.net.copy()
    net._links[name] = replace(link, law=law)
    return assemble(net, system.at, system.shape.many)


def _value(system: Assembled, name: str, compared: Expr, u: Any) -> float:
    """What is compared at an equilibrium, relative to its size."""
    l = system.net.link_names.index(name)
    law = system.net.links[name].law
    at: dict[Any, Any] = {
        y: system.arrivals(u)[l], c: system.numbers.c[0, l], q_max: system.numbers.q_max[0, l],
        **dict(zip([z for z in law.states if z != law.queue], u[system.states[1][l]], strict=True)), **law.params,
    }  # fmt: skip
    if law.queue is not None:
        at[law.queue] = min(system.queues(u)[l], system.numbers.q_max[0, l])
    parts = [abs(float(t.xreplace({s: Float(v) for s, v in at.items()}))) for t in compared.expand().as_ordered_terms()]
    return float(compared.xreplace({s: Float(v) for s, v in at.items()})) / max(*parts, 1e-300)
