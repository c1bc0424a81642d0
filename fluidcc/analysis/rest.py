"""What everybody knows at rest: the signals at a point, and the conditions that make it an equilibrium.

Everything here is analytic on its branch, so a complex step through it gives derivatives to rounding. Numbers may have
one more axis, the last, along which there are many points of one structure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.laws.linear import Branch, branch_function
from fluidcc.laws.trackers import trackers
from fluidcc.symbols import LINK_INPUTS, SOURCE_INPUTS, e, e_b, edot, packet, pi, plain, price, x_tau, y

if TYPE_CHECKING:
    from fluidcc.analysis.operating_point import LawGroup, Point
    from fluidcc.laws import Law

__all__ = [
    "Lags",
    "accounts",
    "arrivals",
    "evaluate",
    "flow_inputs",
    "link_inputs",
    "link_outputs",
    "loss",
    "own_states",
    "passed",
    "residual",
    "route_lags",
]


class Lags:
    """Delays along the route of each class at rest [s].

    forward[k][h] from the source to hop h, backward[k][h] from hop h to what the source hears, trip[k] both together.
    """

    def __init__(self, point: Point) -> None:
        self.forward: list[list[Any]] = []
        self.backward: list[list[Any]] = []
        self.trip: list[Any] = []
        for k, f in enumerate(point.classes):
            hop = [point.delay[l] + point.q[l] for l in f.route]
            self.forward.append(route_lags(point, f.route, point.access[k]))
            self.backward.append([point.back[k] + sum(hop[h:]) for h in range(len(hop))])
            self.trip.append(point.access[k] + sum(hop) + point.back[k])


def route_lags(point: Point, route: tuple[int, ...], access: Any) -> list[Any]:
    """Delay from a source to each hop [s]."""
    found = [access]
    for l in route[:-1]:
        found.append(found[-1] + point.delay[l] + point.q[l])
    return found


def loss(point: Point, drop: Any = None) -> Any:
    """Loss ratio of each link: (4) where the buffer is full, whatever was dropped before; else what is dropped."""
    from fluidcc.analysis.operating_point import FULL

    early = link_outputs(point)["drop"] if drop is None else drop
    full = (point.mode == FULL).reshape(-1, *(1 for _ in np.shape(point.c)[1:]))
    return np.where(full, 1 - point.c / np.where(full, point.y, 1.0), early)


def passed(point: Point, route: tuple[int, ...], lost: Any = None) -> list[Any]:
    """Share of a flow that arrives at each hop of its route; `lost` is the loss ratio of each link, where known."""
    lost = loss(point) if lost is None else lost
    found: list[Any] = [1.0]
    for l in route[:-1]:
        found.append(found[-1] * (1 - lost[l]))
    return found


def _stacked(parts: list[Any], members: tuple[int, ...]) -> Any:
    return np.stack([parts[i] for i in members], axis=1)


def evaluate(group: LawGroup, z: list[Any], u: Any, p: list[Any]) -> Branch:
    """The laws of a group at their point."""
    m = group.members
    return branch_function(group.law)(_stacked(z, m), u[:, m], _stacked(p, m), group.modes)


def link_inputs(point: Point) -> Any:
    """(inputs, L) in the order of ``Link.inputs``."""
    zero = np.zeros_like(point.c)
    crossed = np.zeros(len(point.c), bool)
    for route in (*(f.route for f in point.classes), *(route for route, _, _ in point.constant)):
        crossed[list(route)] = True
    # Nobody hears a link that nobody crosses; half its capacity keeps its law from dividing by zero.
    arriving = (
        point.y if crossed.all() else np.where(crossed.reshape(-1, *[1] * (point.c.ndim - 1)), point.y, point.c / 2)
    )
    known = {y: arriving, "c": point.c, "q_max": point.q_max, "t": zero, "crossing": zero}
    return np.array([known.get(s, known.get(plain(s))) for s in LINK_INPUTS])


def link_outputs(point: Point) -> dict[str, Any]:
    """Mark, price and drop of each link (L,), 0 where its law has none."""
    values: dict[str, Any] = {name: np.zeros_like(point.y) for name in ("mark", "price", "drop")}
    u = link_inputs(point)
    for g in point.link_groups:
        if values.keys() & g.law.out.keys():
            found = evaluate(g, point.v, u, point.lp)
            for name in values.keys() & g.law.out.keys():
                values[name][list(g.members)] = found.out[list(g.law.out).index(name)]
    return values


def flow_inputs(point: Point) -> Any:
    """(inputs, K) in the order of ``Source.inputs``."""
    out, wait = link_outputs(point), point.delay + point.q
    lost = loss(point, out["drop"])
    K, zero = len(point.classes), np.zeros_like(point.x)
    kept = (1 - lost) * (1 - out["mark"])
    known = {
        e: point.access + _along(point, lambda l: wait[l], K),
        edot: zero,
        pi: 1 - np.array([np.prod(kept[list(f.route)], axis=0) for f in point.classes]),
        price: _along(point, lambda l: out["price"][l], K),
        x_tau: point.x,
        e_b: point.back,
        packet: point.packet,
    }
    return np.array([known.get(s, zero) for s in SOURCE_INPUTS])


def _along(point: Point, value: Callable[[int], Any], K: int) -> Any:
    return np.array([sum(value(l) for l in point.classes[k].route) for k in range(K)])


def arrivals(point: Point) -> Any:
    """Rate that arrives at each link (L,), from the rates of the flows and the loss upstream [bit/s]."""
    total, lost = np.zeros_like(point.y + point.x.sum()), loss(point)
    streams = [(f.route, point.count[k] * point.x[k]) for k, f in enumerate(point.classes)]
    for route, rate in [*streams, *((r, x) for r, x, _ in point.constant)]:
        for l, share in zip(route, passed(point, route, lost), strict=True):
            total[l] = total[l] + rate * share
    return total


def residual(point: Point, kept: bool = False) -> Any:
    """What vanishes at an equilibrium, one entry an unknown of `fluidcc.analysis.change.Unknowns`, in its order.

    A state that keeps account of what is under way stands still wherever the rate does, which leaves it open. With
    `kept` it is right: a rate x has x RTT under way.
    """
    from fluidcc.analysis.operating_point import BUSY

    parts = []
    u = flow_inputs(point)
    for g in point.flow_groups:
        found = evaluate(g, point.z, u, point.p)
        flow = _on_account(point, g, u, found.flow) if kept else found.flow
        parts.append(flow[g.free])
        parts.append(found.out[list(g.law.out).index("rate")] - point.x[list(g.members)])
    parts.append(arrivals(point) - point.y)
    let_in = point.y * (1 - link_outputs(point)["drop"])
    parts.append((let_in / point.c - 1)[point.mode == BUSY])
    u = link_inputs(point)
    for g in point.link_groups:
        own = own_states(g)
        if own.any():
            parts.append(evaluate(g, point.v, u, point.lp).flow[own])
    return np.concatenate([np.ravel(part) for part in parts])


def accounts(law: Law) -> dict[int, Any]:
    """The states of a law that keep account of what is under way, by place, and what they show for each bit of it."""
    found = trackers(law)
    return {
        i: found[z].data for i, z in enumerate(law.states) if z in found and found[z].data != 0 and found[z].delay == 0
    }


def _on_account(point: Point, g: LawGroup, u: Any, flow: Any) -> Any:
    """The derivatives of the states of a group, but for those on account what they are off by [packet]."""
    own = accounts(g.law)
    if not own:
        return flow
    flow = np.array(flow, np.result_type(flow, *point.z, point.x))
    for j, k in enumerate(g.members):
        trip = u[SOURCE_INPUTS.index(e)][k] + point.back[k]
        for i, data in own.items():
            share = float(data.xreplace({packet: float(np.real(point.packet[k]))}))
            flow[i, j] = point.z[k][i] - share * point.x[k] * trip
    return flow


def own_states(g: LawGroup) -> Any:
    """(states, members): those of a link's states that move and are not its queue."""
    law: Any = g.law
    rows = np.array([s != law.queue for s in law.states], bool).reshape(-1, 1)
    return g.free & rows
