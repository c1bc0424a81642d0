"""The values that the named expressions of a law have at an equilibrium."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sympy import Float, N

from fluidcc.base.arguments import shown
from fluidcc.base.errors import UnknownName
from fluidcc.equilibria.assembly import capacity_at
from fluidcc.laws.handwritten import Handwritten
from fluidcc.symbols import Let, c, e, e_b, edot, packet, pi, plain, price, q_max, unfold, x_tau, y

if TYPE_CHECKING:
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network import Network

__all__ = ["values_of_lets"]


def values_of_lets(eq: Equilibrium, net: Network, name: str) -> dict[str, float]:
    """The values of the Lets of a flow's or link's law at an equilibrium of its network, by name."""
    if name in net.flows:
        known = _of_flow(eq, net, name)
    elif name in net.links:
        known = _of_link(eq, net, name)
    else:
        raise UnknownName(f"there is no flow or link {shown(name)}; there are {', '.join([*net.flows, *net.links])}")
    law: Any = (net.flows.get(name) or net.links[name]).law
    own = {z: eq.states[name][plain(z)] for z in law.states if plain(z) in eq.states[name]}
    values = {s: Float(v) for s, v in {**known, **law.params, **own}.items()}
    found: dict[str, float] = {}
    for let in _lets(law):
        f = unfold(let)
        if f.free_symbols <= values.keys() and not f.has(Handwritten):
            key, k = plain(let), 2
            while key in found:
                key, k = f"{plain(let)}_{k}", k + 1
            found[key] = float(N(f.xreplace(values)))
    return found


def _lets(law: Any) -> list[Let]:
    """Those in any expression of a law, and in their definitions, each once, sorted by name."""
    found: set[Let] = set()
    left = [f for _, f in law.expressions()]
    while left:
        more = left.pop().atoms(Let) - found
        found |= more
        left += [let.definition for let in more]
    return sorted(found, key=lambda let: (plain(let), str(let.definition)))


def _of_flow(eq: Equilibrium, net: Network, name: str) -> dict[Any, float]:
    k, flow = net.flow_names.index(name), net.flows[name]
    at, links = {q: float(eq.array(q)[k]) for q in ("rate", "one_way_delay", "rtt", "loss")}, list(net.links)
    prices = sum(float(eq.array("price")[links.index(l)]) for l in flow.route)
    return {
        e: at["one_way_delay"], edot: 0.0, pi: at["loss"], price: prices, x_tau: at["rate"],
        e_b: at["rtt"] - at["one_way_delay"], packet: flow.packet,
    }  # fmt: skip


def _of_link(eq: Equilibrium, net: Network, name: str) -> dict[Any, float]:
    l, link = net.link_names.index(name), net.links[name]
    capacity = capacity_at(link, eq.at)
    return {y: float(eq.array("arrival_rate")[l]), c: capacity, q_max: link.buffer / capacity}
