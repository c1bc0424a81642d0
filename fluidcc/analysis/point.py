"""The point a network is linearised at, in numbers, and the conditions of an equilibrium there.

Arrays may have a trailing axis of points that differ in numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fluidcc.laws import Law
from fluidcc.laws.linear import Branch, branch_function
from fluidcc.laws.steady import trackers
from fluidcc.numerics.layout import NO_OFFER
from fluidcc.symbols import (
    LINK_INPUTS,
    SOURCE_INPUTS,
    e,
    e_b,
    edot,
    offer_min,
    packet,
    pi,
    plain,
    price,
    x_tau,
    y,
)

if TYPE_CHECKING:
    from fluidcc.network.network import Network
    from fluidcc.network.specs import FlowSpec, LinkSpec

T = TypeVar("T")

PASS, BUSY, FULL = 0, 1, 2
NEAR = 1e-9
"""Relative distance at which a point counts as on a switching surface."""
NUMBERS = ("access", "back", "packet", "c", "delay", "q_max", "q", "x", "y")
LISTS = ("z", "p", "v", "lp")
"""The arrays of a `Point`, and the lists of arrays."""


@dataclass(frozen=True)
class FlowClass:
    """Identical flows: same law, route, delays, packet and equilibrium."""

    names: tuple[str, ...]
    spec: FlowSpec
    route: tuple[int, ...]

    @property
    def name(self) -> str:
        """That of its first flow."""
        return self.names[0]

    @property
    def count(self) -> int:
        """How many flows it has."""
        return len(self.names)

    @property
    def label(self) -> str:
        """The flow's name, or that of the first and how many there are."""
        return self.names[0] if self.count == 1 else f"{self.names[0]} (x{self.count})"


@dataclass(frozen=True)
class LawGroup:
    """Members (classes or links) whose laws have equal structure, evaluated together."""

    law: Law
    members: tuple[int, ...]
    modes: NDArray[np.float64]  # (switches, members)
    free: NDArray[np.bool_]  # (states, members): those that move; the others are held at a bound


@dataclass(frozen=True)
class Point:
    """Numbers only, so that a copy in complex numbers differentiates whatever is computed from
    them.

    Arrays over classes K, links L; `z`, `p` and `v`, `lp` hold states and parameters of each class
    and each link.
    """

    net: Network
    at: float
    rest: Any  # the Equilibrium it was found by; None where the point was followed from another
    classes: tuple[FlowClass, ...]
    flow_groups: tuple[LawGroup, ...]
    link_groups: tuple[LawGroup, ...]
    links: tuple[LinkSpec, ...]
    constant: tuple[
        tuple[tuple[int, ...], float, int], ...
    ]  # route, rate, flow: what sends without listening
    mode: NDArray[np.intp]  # (L,)
    least: NDArray[np.intp]  # (K,): the link of its route that offers least, -1 without one
    z: list[Any]
    p: list[Any]
    v: list[Any]
    lp: list[Any]
    count: Any
    access: Any
    back: Any
    packet: Any
    c: Any  # capacity (L,) [bit/s]
    delay: Any  # propagation (L,) [s]
    q_max: Any  # (L,) [s]
    q: Any  # queueing delay (L,) [s]
    x: Any  # rate of one flow of each class (K,) [bit/s]
    y: Any  # arrival rate (L,) [bit/s]
    delays: str = "fifo"  # how they are taken, "fifo" or "frozen": see `fluidcc.linearize`

    @property
    def regulating(self) -> NDArray[np.bool_]:
        """Links that let through no more than their capacity."""
        return np.asarray(self.mode != PASS)

    def changed(self, **values: Any) -> Point:
        """A copy with other numbers."""
        new = object.__new__(Point)  # `replace` takes ten times as long for so many fields
        vars(new).update({**vars(self), **values, "_known": {}})
        return new


def once(find: Callable[[Point], T]) -> Callable[[Point], T]:
    """Return the same function, which is evaluated once for each point: points do not change."""

    @wraps(find)
    def found(point: Point) -> T:
        known: dict[str, T] = vars(point).setdefault("_known", {})
        if find.__name__ not in known:
            known[find.__name__] = find(point)
        return known[find.__name__]

    return found


# --- what everybody knows at rest -----------------------------------------------------------------


class Lags:
    """Delays along the route of each class at rest [s].

    forward[k][h] from the source to hop h, backward[k][h] from hop h to what the source hears,
    trip[k] both together; told[k] straight back, past the queues, from the link that offers least.
    """

    def __init__(self, point: Point) -> None:
        self.forward: list[list[Any]] = []
        self.backward: list[list[Any]] = []
        self.trip: list[Any] = []
        self.told: list[Any] = []
        for k, f in enumerate(point.classes):
            ahead = f.route[: f.route.index(point.least[k])] if point.least[k] >= 0 else ()
            self.told.append(point.access[k] + sum(point.delay[l] for l in ahead))
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
    """Loss ratio of each link: (4) where the buffer is full, whatever was dropped before; else
    what is dropped.
    """
    early = link_outputs(point)["drop"] if drop is None else drop
    full = (point.mode == FULL).reshape(-1, *(1 for _ in np.shape(point.c)[1:]))
    return np.where(full, 1 - point.c / np.where(full, point.y, 1.0), early)


def passed(point: Point, route: tuple[int, ...], lost: Any = None) -> list[Any]:
    """Share of a flow that arrives at each hop of its route; `lost` is the loss ratio of each
    link, where known.
    """
    lost = loss(point) if lost is None else lost
    found: list[Any] = [1.0]
    for l in route[:-1]:
        found.append(found[-1] * (1 - lost[l]))
    return found


class Side(NamedTuple):
    """The flows or the links of a point: their names and laws, these by structure, and the states,
    inputs and parameters of each.
    """

    names: list[str]
    laws: list[Any]
    groups: tuple[LawGroup, ...]
    z: list[Any]
    u: Any
    p: list[Any]

    def numbers(self, members: Any) -> tuple[Any, Any, Any]:
        """States, inputs and parameters of some of them, (things, members, ...)."""
        z, p = (np.stack([of[i] for i in members], axis=1) for of in (self.z, self.p))
        return z, self.u[:, members], p

    def at(self, group: LawGroup) -> Branch:
        """The laws of a group at the point."""
        return branch_function(group.law)(*self.numbers(group.members), group.modes)


@once
def flows_of(point: Point) -> Side:
    """The classes of flows at a point."""
    names, laws = ([f.name for f in point.classes], [f.spec.law for f in point.classes])
    return Side(names, laws, point.flow_groups, point.z, flow_inputs(point), point.p)


@once
def links_of(point: Point) -> Side:
    """The links at a point."""
    names, laws = [k.name for k in point.links], [k.law for k in point.links]
    return Side(names, laws, point.link_groups, point.v, link_inputs(point), point.lp)


def link_inputs(point: Point) -> Any:
    """(inputs, L) in the order of ``Link.inputs``."""
    zero = np.zeros_like(point.c)
    crossed = np.zeros(len(point.c), bool)
    for route in (*(f.route for f in point.classes), *(route for route, _, _ in point.constant)):
        crossed[list(route)] = True
    # Nobody hears a link that nobody crosses; half its capacity keeps its law from dividing by
    # zero.
    arriving = (
        point.y
        if crossed.all()
        else np.where(crossed.reshape(-1, *[1] * (point.c.ndim - 1)), point.y, point.c / 2)
    )
    known = {y: arriving, "c": point.c, "q_max": point.q_max, "t": zero, "crossing": zero}
    return np.array([known.get(s, known.get(plain(s))) for s in LINK_INPUTS])


@once
def link_outputs(point: Point) -> dict[str, Any]:
    """Mark, price, drop and offer of each link (L,), 0 where its law has none."""
    names = ("mark", "price", "drop", "offer")
    values: dict[str, Any] = {name: np.zeros_like(point.y) for name in names}
    links = links_of(point)
    for g in links.groups:
        if values.keys() & g.law.out.keys():
            found = links.at(g)
            for name in values.keys() & g.law.out.keys():
                values[name][list(g.members)] = found.out[list(g.law.out).index(name)]
    return values


def least_offers(point: Point) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The link that offers least on each route, -1 where none offers, and which links of the route
    do as well, to a relative `NEAR`: (K, ...) and (K, L, ...).
    """
    on_route = np.zeros((len(point.classes), *point.c.shape), bool)
    for k, f in enumerate(point.classes):
        on_route[k, [l for l in f.route if "offer" in point.links[l].law.out]] = True
    if not on_route.any():
        return np.full(point.x.shape, -1), on_route
    offer = np.real(link_outputs(point)["offer"])
    heard = np.where(on_route, offer, np.inf)
    least = heard.min(axis=1, keepdims=True)
    which = np.where(on_route.any(axis=1), heard.argmin(axis=1), -1)
    return which, on_route & (heard <= least + NEAR * np.abs(least))


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
        offer_min: np.array(
            [out["offer"][l] if l >= 0 else zero[0] + NO_OFFER for l in point.least]
        ),
        x_tau: point.x,
        e_b: point.back,
        packet: point.packet,
    }
    return np.array([known.get(s, zero) for s in SOURCE_INPUTS])


def _along(point: Point, value: Callable[[int], Any], K: int) -> Any:
    return np.array([sum(value(l) for l in point.classes[k].route) for k in range(K)])


def arrivals(point: Point) -> Any:
    """Rate that arrives at each link (L,), from the rates of the flows and the loss upstream
    [bit/s].
    """
    total, lost = np.zeros_like(point.y + point.x.sum()), loss(point)
    streams = [(f.route, point.count[k] * point.x[k]) for k, f in enumerate(point.classes)]
    for route, rate in [*streams, *((r, x) for r, x, _ in point.constant)]:
        for l, share in zip(route, passed(point, route, lost), strict=True):
            total[l] = total[l] + rate * share
    return total


def residual(point: Point, kept: bool = False) -> Any:
    """What vanishes at an equilibrium, one entry an unknown of `fluidcc.analysis.change.Unknowns`,
    in its order.

    A state that keeps account of what is under way stands still wherever the rate does, which
    leaves it open. With `kept` it is right: a rate x has x RTT under way.
    """
    parts = []
    flows, links = flows_of(point), links_of(point)
    for g in flows.groups:
        found = flows.at(g)
        flow = _on_account(point, g, flows.u, found.flow) if kept else found.flow
        parts.append(flow[g.free])
        parts.append(found.out[list(g.law.out).index("rate")] - point.x[list(g.members)])
    parts.append(arrivals(point) - point.y)
    let_in = point.y * (1 - link_outputs(point)["drop"])
    parts.append((let_in / point.c - 1)[point.mode == BUSY])
    for g in links.groups:
        own = own_states(g)
        if own.any():
            parts.append(links.at(g).flow[own])
    return np.concatenate([np.ravel(part) for part in parts])


def accounts(law: Law) -> dict[int, Any]:
    """The states of a law that keep account of what is under way, by place, and what they show
    for each bit of it.
    """
    found = trackers(law)
    return {
        i: found[z].data
        for i, z in enumerate(law.states)
        if z in found and found[z].data != 0 and found[z].delay == 0
    }


def _on_account(point: Point, g: LawGroup, u: Any, flow: Any) -> Any:
    """The derivatives of the states of a group, but for those on account what they are off by
    [packet].
    """
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
