"""An operating point, where a network is linearised, in numbers; and what all know there at rest.

Points of one structure are taken together: arrays have a trailing axis of them then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fluidcc.laws import Law
from fluidcc.laws.linear import Branch, branch_function
from fluidcc.network.parameters import Parameters
from fluidcc.numerics.layout import NO_OFFER
from fluidcc.numerics.linear.wiring import alike
from fluidcc.symbols import (
    LINK_INPUTS,
    RATIOS,
    SOURCE_INPUTS,
    c,
    e,
    e_b,
    edot,
    offer_min,
    packet,
    price,
    q_max,
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
"""The arrays of an `OperatingPoint`, and the lists of arrays."""


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
class OperatingPoint:
    """Numbers only, so that a copy in complex numbers differentiates whatever is computed from
    them.

    Arrays over classes K, links L; `z`, `p` and `v`, `lp` hold states and parameters of each class
    and each link.
    """

    net: Network
    given: Parameters  # what is set otherwise in it
    at: float
    rest: Any  # the Equilibrium it was found by; None where the point was followed from another
    classes: tuple[FlowClass, ...]
    flow_groups: tuple[LawGroup, ...]
    link_groups: tuple[LawGroup, ...]
    links: tuple[LinkSpec, ...]
    # route and rate of what does not listen, and whether it can be marked
    constant: tuple[tuple[tuple[int, ...], Any, bool], ...]
    mixed: tuple[bool, ...]  # see `Wired.mixed`
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
    y: Any  # arrival rate (L,), of a mixed one without what it drops in place of marks [bit/s]
    delays: str = "fifo"  # how they are taken, "fifo" or "frozen": see `fluidcc.linearize`
    rows: Any = ()  # of points: which ones of a sweep

    def part(self, pick: Any) -> OperatingPoint:
        """Some of the points; without an axis of them, that of a number."""
        if np.ndim(pick) and len(pick) == len(self.rows):
            return self
        numbers = {k: [a[..., pick] for a in getattr(self, k)] for k in LISTS}
        numbers |= {k: getattr(self, k)[..., pick] for k in (*NUMBERS, "rows")}
        constant = tuple((route, rate[pick], able) for route, rate, able in self.constant)
        return self.changed(constant=constant, **numbers)

    def with_classes(self, classes: tuple[FlowClass, ...], of: Any) -> OperatingPoint:
        """The point with other classes, each with the numbers of one that there is now."""
        arrays = {k: getattr(self, k)[of] for k in ("access", "back", "packet", "x", "least")}
        arrays["count"] = np.array([float(f.count) for f in classes])
        lists = {k: [getattr(self, k)[i] for i in of] for k in ("z", "p")}
        return self.changed(classes=classes, **arrays, **lists)

    def split(self, codes: Any) -> Iterator[tuple[OperatingPoint, int]]:
        """The points by equal columns of `codes`, of shape (..., points), and the first of each."""
        for pick in alike(np.reshape(codes, (-1, len(self.rows))).T):
            yield self.part(pick), int(pick[0])

    @property
    def single(self) -> bool:
        """Whether it is one point, without an axis of points."""
        return np.ndim(self.y) == 1

    @property
    def regulating(self) -> NDArray[np.bool_]:
        """Links that let through no more than their capacity."""
        return np.asarray(self.mode != PASS)

    def changed(self, **values: Any) -> OperatingPoint:
        """A copy with other numbers."""
        new = object.__new__(OperatingPoint)  # `replace` takes ten times as long for so many fields
        vars(new).update({**vars(self), **values, "_known": {}})
        return new


def once(find: Callable[[OperatingPoint], T]) -> Callable[[OperatingPoint], T]:
    """Return the same function, which is evaluated once for each point: points do not change."""

    @wraps(find)
    def found(point: OperatingPoint) -> T:
        known: dict[str, T] = vars(point).setdefault("_known", {})
        if find.__name__ not in known:
            known[find.__name__] = find(point)
        return known[find.__name__]

    return found


def with_alone(point: OperatingPoint, name: str) -> tuple[OperatingPoint, int]:
    """The point with the flow `name` in a class of its own, and the number of that class: it can
    be judged by itself then.
    """
    k = next(k for k, f in enumerate(point.classes) if name in f.names)
    one = point.classes[k]
    if one.count == 1:
        return point, k
    rest = replace(one, names=tuple(n for n in one.names if n != name))
    classes = (*point.classes[:k], replace(one, names=(name,)), rest, *point.classes[k + 1 :])
    twice = [*range(k + 1), *range(k, len(point.classes))]
    groups = []
    for g in point.flow_groups:
        members = tuple(i for i, old in enumerate(twice) if old in g.members)
        own = [g.members.index(twice[i]) for i in members]
        groups.append(LawGroup(g.law, members, g.modes[:, own], g.free[:, own]))
    return point.with_classes(classes, twice).changed(flow_groups=tuple(groups)), k


def copies(point: OperatingPoint) -> dict[str, int]:
    """How often the roots of each part are those of the network: of the loop and of differences."""
    return {"": 1, **{f.label: f.count - 1 for f in point.classes}}


# --- what everybody knows at rest -----------------------------------------------------------------


class Lags:
    """Delays along the route of each class at rest [s].

    forward[k][h] from the source to hop h, backward[k][h] from hop h back to the source, trip[k]
    both together; direct[k] straight back, past the queues, from the link that offers least.
    """

    def __init__(self, point: OperatingPoint) -> None:
        self.forward: list[list[Any]] = []
        self.backward: list[list[Any]] = []
        self.trip: list[Any] = []
        self.direct: list[Any] = []
        for k, f in enumerate(point.classes):
            ahead = f.route[: f.route.index(point.least[k])] if point.least[k] >= 0 else ()
            self.direct.append(point.access[k] + sum(point.delay[l] for l in ahead))
            hop = [point.delay[l] + point.q[l] for l in f.route]
            self.forward.append(route_lags(point, f.route, point.access[k]))
            self.backward.append([point.back[k] + sum(hop[h:]) for h in range(len(hop))])
            self.trip.append(point.access[k] + sum(hop) + point.back[k])


def route_lags(point: OperatingPoint, route: tuple[int, ...], access: Any) -> list[Any]:
    """Delay from a source to each hop [s]."""
    found = [access]
    for l in route[:-1]:
        found.append(found[-1] + point.delay[l] + point.q[l])
    return found


def loss(point: OperatingPoint, drop: Any = None) -> Any:
    """Loss ratio of each link: (4) where the buffer is full, whatever was dropped before; else
    what is dropped.
    """
    early = link_outputs(point)["drop"] if drop is None else drop
    full = (point.mode == FULL).reshape(-1, *(1 for _ in np.shape(point.c)[1:]))
    return np.where(full, 1 - point.c / np.where(full, point.y, 1.0), early)


def passed(
    point: OperatingPoint, route: tuple[int, ...], able: bool, lost: Any = None
) -> list[Any]:
    """Share of a flow, which is `able` to be marked or not, that arrives at each hop of its route;
    `lost` is the loss ratio of each link, where known.
    """
    lost = loss(point) if lost is None else lost
    found, share, mark = list[Any](), 1.0, link_outputs(point)["mark"]
    for l in route:
        found.append(share * (1 - mark[l] * (point.mixed[l] and not able)))
        share = found[-1] * (1 - lost[l])
    return found


def survives(point: OperatingPoint, f: FlowClass, lost: Any) -> tuple[Any, Any]:
    """Share of a class that is not lost on its path, and of that not marked."""
    mark, able = link_outputs(point)["mark"], f.spec.ecn
    kept = passed(point, f.route, able, lost)[-1] * (1 - lost[f.route[-1]])
    return kept, np.prod([1 - mark[l] * (able or not point.mixed[l]) for l in f.route], axis=0)


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
def flows_of(point: OperatingPoint) -> Side:
    """The classes of flows at a point."""
    names, laws = [f.name for f in point.classes], [f.spec.law for f in point.classes]
    return Side(names, laws, point.flow_groups, point.z, flow_inputs(point), point.p)


@once
def links_of(point: OperatingPoint) -> Side:
    """The links at a point."""
    names, laws = [k.name for k in point.links], [k.law for k in point.links]
    return Side(names, laws, point.link_groups, point.v, link_inputs(point), point.lp)


def link_inputs(point: OperatingPoint) -> Any:
    """(inputs, L) in the order of ``Link.inputs``."""
    zero = np.zeros_like(point.c)
    crossed = np.zeros(len(point.c), bool)
    for route in (*(f.route for f in point.classes), *(r for r, *_ in point.constant)):
        crossed[list(route)] = True
    # Nobody hears a link that nobody crosses; half its capacity keeps its law from dividing by
    # zero.
    arriving = np.where(crossed.reshape(-1, *[1] * (point.c.ndim - 1)), point.y, point.c / 2)
    known = {y: arriving, c: point.c, q_max: point.q_max}  # who knows more has no equilibrium
    return np.array([known.get(s, zero) for s in LINK_INPUTS])


@once
def link_outputs(point: OperatingPoint) -> dict[str, Any]:
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


def least_offers(point: OperatingPoint) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
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


def flow_inputs(point: OperatingPoint) -> Any:
    """(inputs, K) in the order of ``Source.inputs``."""
    out, wait = link_outputs(point), point.delay + point.q
    lost = loss(point, out["drop"])
    K, zero = len(point.classes), np.zeros_like(point.x)
    shares = [survives(point, f, lost) for f in point.classes]
    kept, unmarked = np.reshape(shares, (K, 2, *zero.shape[1:])).swapaxes(0, 1)
    known = {
        e: point.access + _along(point, wait),
        edot: zero,
        **{
            ratio: 1 - share
            for ratio, share in zip(RATIOS, (kept, unmarked, kept * unmarked), strict=True)
        },
        price: _along(point, out["price"]),
        offer_min: np.array(
            [out["offer"][l] if l >= 0 else zero[0] + NO_OFFER for l in point.least]
        ),
        x_tau: point.x,
        e_b: point.back,
        packet: point.packet,
    }
    return np.array([known.get(s, zero) for s in SOURCE_INPUTS])


def _along(point: OperatingPoint, values: Any) -> Any:
    return np.array([sum(values[l] for l in f.route) for f in point.classes])


def arrivals(point: OperatingPoint) -> Any:
    """Rate that arrives at each link (L,), from the rates of the flows and the loss upstream
    [bit/s].
    """
    total, lost = np.zeros_like(point.y + point.x.sum()), loss(point)
    streams = [
        (f.route, point.count[k] * point.x[k], f.spec.ecn) for k, f in enumerate(point.classes)
    ]
    for route, rate, able in [*streams, *point.constant]:
        for l, share in zip(route, passed(point, route, able, lost), strict=True):
            total[l] = total[l] + rate * share
    return total


def own_states(g: LawGroup) -> Any:
    """(states, members): those of a link's states that move and are not its queue."""
    law: Any = g.law
    rows = np.array([s != law.queue for s in law.states], bool).reshape(-1, 1)
    return g.free & rows
