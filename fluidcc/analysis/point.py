"""Operating points: where a network is linearised, at one point or at many together, in numbers.

At each the flows are in classes, every queue is empty, busy or full, and every law is on a branch
of its kinks. Points are taken together where all of that is the same: arrays have a trailing axis
of them then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import choice
from fluidcc.base.errors import FluidccError, InvalidInput, Unsupported
from fluidcc.equilibria.many import Equilibria, equilibria, held
from fluidcc.equilibria.result import Equilibrium
from fluidcc.equilibria.sliding import refused
from fluidcc.laws import Law
from fluidcc.laws.linear import Branch, branch_function, modes_at, on_surface
from fluidcc.laws.steady import grouped
from fluidcc.network.network import identical
from fluidcc.network.parameters import Parameters
from fluidcc.network.wired import bounds, is_on
from fluidcc.network.wired import own_states as own_symbols
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
    plain,
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
    names, laws = ([f.name for f in point.classes], [f.spec.law for f in point.classes])
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
    arriving = (
        point.y
        if crossed.all()
        else np.where(crossed.reshape(-1, *[1] * (point.c.ndim - 1)), point.y, point.c / 2)
    )
    known = {y: arriving, "c": point.c, "q_max": point.q_max}  # who knows more has no equilibrium
    return np.array([known.get(s, known.get(plain(s), zero)) for s in LINK_INPUTS])


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
        e: point.access + _along(point, lambda l: wait[l], K),
        edot: zero,
        **{
            ratio: 1 - share
            for ratio, share in zip(RATIOS, (kept, unmarked, kept * unmarked), strict=True)
        },
        price: _along(point, lambda l: out["price"][l], K),
        offer_min: np.array(
            [out["offer"][l] if l >= 0 else zero[0] + NO_OFFER for l in point.least]
        ),
        x_tau: point.x,
        e_b: point.back,
        packet: point.packet,
    }
    return np.array([known.get(s, zero) for s in SOURCE_INPUTS])


def _along(point: OperatingPoint, value: Callable[[int], Any], K: int) -> Any:
    return np.array([sum(value(l) for l in point.classes[k].route) for k in range(K)])


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


# --- finding them ---------------------------------------------------------------------------------


def operating_point(
    net: Network,
    at: float | str | Equilibrium = math.inf,
    delays: str = "fifo",
    alone: bool = False,
) -> OperatingPoint:
    """The equilibrium of a network, with everything a linearisation needs to know about it; links
    may be `alone`, with no flow that listens.

    Raises
    ------
    Unsupported
        If a law is sampled.
    InvalidInput
        If a queue, a buffer, a bound of a state or a switch of a law is exactly at its turning
        point there, as where a law slides; if the equilibrium given is that of a network with
        other flows or links.
    """
    choice(delays, "delays", ("fifo", "frozen"))
    _refuse_ticks(net)
    net = held(net)
    if isinstance(at, Equilibrium):
        specs: list[tuple[str, FlowSpec | LinkSpec]] = [*net.flows.items(), *net.links.items()]
        for name, one in specs:
            known = at.states.get(name)  # without states where a flow is off
            if known is None or (known and not {*map(plain, one.law.states)} <= {*known}):
                raise InvalidInput(
                    f"the equilibrium given as at= knows no {one.law.name} {name!r}; give one of "
                    "this network, from fluidcc.equilibrium(net)"
                )
        rest, many = at, Equilibria.of(net, at)
    else:
        many = equilibria(Parameters(net), at)
        rest = replace(many.point(0), _net=net)
    return _only(many, rest, delays, alone=alone)


def _only(
    many: Equilibria,
    rest: Any,
    delays: str,
    classes: Sequence[FlowClass] = (),
    alone: bool = False,
) -> OperatingPoint:
    errors: dict[int, FluidccError] = {}
    for point in operating_points(many, errors, classes, alone):
        if delays == "frozen":
            _refuse_frozen_loss(point)
        return point.changed(rest=rest, delays=delays)
    raise errors[0]


def at_numbers(point: OperatingPoint, given: Parameters) -> OperatingPoint:
    """The operating point of the network with other numbers, found anew, with the same classes.

    Raises
    ------
    FluidccError
        As `operating_point`.
    """
    many = equilibria(given, point.at)
    if many.errors:
        raise many.errors[0]
    return _only(many, None, point.delays, point.classes)


def operating_points(
    rest: Equilibria,
    errors: dict[int, FluidccError],
    classes: Sequence[FlowClass] = (),
    alone: bool = False,
) -> Iterator[OperatingPoint]:
    """All points that have an equilibrium, by structure; of one alone without an axis of points.

    Parameters
    ----------
    rest : Equilibria
        Its equilibria there.
    errors : dict of int to FluidccError
        Gets why others have no linearisation.
    classes : sequence of FlowClass, optional
        The classes of flows; by default those that are equal there.
    alone : bool
        As for `operating_point`.
    """
    errors |= {i: refused(slides) for i, slides in rest.sliding.items()}
    rows = np.flatnonzero(rest.found & ~np.isin(np.arange(len(rest)), [*rest.sliding]))
    try:
        _refuse_ticks(rest.wired.net)
    except Unsupported as sampled:
        errors |= dict.fromkeys(rows.tolist(), sampled)
        return
    every = _everywhere(rest)
    if not every.classes and not alone:
        why = InvalidInput(
            "no flow of the network listens (all are off or send at constant rates), so there is "
            "nothing to linearise; add a flow with a law such as fluidcc.LDCC"
        )
        errors |= dict.fromkeys(rows.tolist(), why)
        return
    admitted = np.asarray(rest.array("admitted_rate"), float).T
    mode, between = queue_modes(every.links, every.c, every.q_max, every.q, admitted)
    for i in rows[between[:, rows].any(axis=0)].tolist():
        l = np.flatnonzero(between[:, i])[0]
        errors[i] = _between(every.links[l], mode[l, i] == FULL, admitted[l, i])
    rows = rows[~between[:, rows].any(axis=0)]
    codes = np.concatenate([_leaders(every, classes), mode])[:, rows]
    for pick in alike(codes.T) if len(rows) else ():
        leader, queues = np.split(codes[:, pick[0]], [len(every.classes)])
        some = every.part(0 if rest.wired.points == 1 else rows[pick])
        point = _in_classes(some, leader, queues).changed(rows=rows[pick])
        for on_links in _by_branch(point, errors, "link"):
            least, _ = least_offers(on_links)
            for part, k in on_links.split(least):
                part = part.changed(least=least if part.single else least[:, k])
                for on_branch in _by_branch(part, errors, "flow"):
                    yield from _untied(on_branch, errors)


def _everywhere(rest: Equilibria) -> OperatingPoint:
    """All points, with a class for each row of flows that listens; not yet on a branch."""
    wired = rest.wired
    net, links = held(wired.net), [wired.link(l) for l in range(len(wired.links))]
    rate, arrival, admitted, queue = (
        np.asarray(rest.array(name), float).T
        for name in ("rate", "arrival_rate", "admitted_rate", "queueing_delay")
    )
    arrival = np.where(np.array(wired.mixed)[:, None], admitted, arrival)
    rate = rate[[wired.place[names[0]] for names in wired.kinds]]
    kinds = [k for k, constant in enumerate(wired.rates) if constant is None]
    others = [k for k, f in enumerate(wired.flows) if k not in kinds and is_on(f, wired.at)]
    specs = [net.flows[wired.flows[k].name] for k in kinds]
    flows = [wired.flow(k, f.law) for k, f in zip(kinds, specs, strict=True)]

    def states(specs: Sequence[Any]) -> list[Any]:
        known = rest.states
        return [wired.array(known[one.name][plain(s)] for s in one.law.states) for one in specs]

    def parameters(specs: Sequence[Any], known: list[Any]) -> list[Any]:
        return [wired.array(of[s] for s in one.law.params)
                for one, of in zip(specs, known, strict=True)]  # fmt: skip

    access, back, size = (wired.array(wired.delays[k][i] for k in kinds) for i in (0, 2, 3))
    capacity, longest = (wired.array(known[s] for known in links) for s in (c, q_max))
    return OperatingPoint(
        net, wired.given, wired.at, None,
        tuple(FlowClass(wired.kinds[k], f, wired.routes[k])
              for k, f in zip(kinds, specs, strict=True)),
        (), (), wired.links,
        tuple((wired.routes[k], wired.many[k] * rate[k], wired.flows[k].ecn) for k in others),
        wired.mixed, np.array([], int), np.full(len(kinds), -1), z=states(specs),
        p=parameters(specs, flows),
        v=states(wired.links), lp=parameters(wired.links, links), count=None, access=access,
        back=back, packet=size, c=capacity,
        delay=wired.array(wired.given.link(k.name, 1.0)[1] for k in wired.links), q_max=longest,
        q=queue, x=rate[kinds], y=arrival, rows=np.arange(wired.points),
    )  # fmt: skip


def _leaders(every: OperatingPoint, classes: Sequence[FlowClass]) -> Any:
    """For each class the first one that is equal to it, (classes, points); those given, if any."""
    first = np.repeat(np.arange(len(every.classes))[:, None], len(every.rows), axis=1)
    if classes:
        known = {name: i for i, f in enumerate(classes) for name in f.names}
        of = [known[f.name] for f in every.classes]
        return np.array([of.index(i) for i in of])[:, None] + 0 * first
    members: dict[Any, list[int]] = {}
    for k, f in enumerate(every.classes):
        key = f.spec.law.structure, f.spec.law.name, f.route, f.spec.ecn
        members.setdefault(key, []).append(k)
    for own in (np.array(same) for same in members.values() if len(same) > 1):
        exact = np.array(
            [[every.access[k], every.back[k], every.packet[k], *every.p[k]] for k in own]
        )
        z = np.array([every.z[k] for k in own])
        for j, m in enumerate(own[:-1]):
            later = own[j + 1 :]
            gap, size = np.abs(z[j + 1 :] - z[j]), np.maximum(np.abs(z[j + 1 :]), np.abs(z[j]))
            same = (exact[j + 1 :] == exact[j]).all(axis=1)
            same &= (gap <= np.maximum(1e-7 * size, 1e-12)).all(axis=1)
            same &= (first[m] == m) & (first[later] == later[:, None])
            first[later] = np.where(same, m, first[later])
    return first


def _in_classes(point: OperatingPoint, leader: Any, mode: Any) -> OperatingPoint:
    """A point with equal classes as one, that of their `leader`, and with these modes of queues."""
    lead, place = np.unique(leader), {name: i for i, name in enumerate(point.net.flows)}
    names: dict[int, list[str]] = {m: [] for m in lead.tolist()}
    for f, m in zip(point.classes, leader.tolist(), strict=True):
        names[m] += f.names
    classes = tuple(
        replace(point.classes[m], names=tuple(sorted(own, key=place.__getitem__)))
        for m, own in names.items()
    )
    full, busy = (np.reshape(mode == one, (-1, *[1] * (point.q.ndim - 1))) for one in (FULL, BUSY))
    q = np.where(full, point.q_max, np.where(busy, point.q, 0.0))
    return point.with_classes(classes, lead).changed(mode=np.array(mode), q=q)


def queue_modes(
    links: tuple[LinkSpec, ...], capacity: Any, longest: Any, queue: Any, admitted: Any
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """What each queue does: PASS (empty, or none), BUSY or FULL; and where one stands between two
    of these, both (links, ...).
    """
    with np.errstate(invalid="ignore"):
        excess = admitted / capacity - 1
        has = np.array([k.law.queue is not None for k in links]).reshape(
            -1, *(1 for _ in queue.shape[1:])
        )
        empty = queue <= NEAR * np.maximum(1e-3, queue.max(axis=0, initial=0.0))
        full = ~empty & (queue >= longest * (1 - NEAR))
        between = has & np.where(empty, excess > -NEAR, full & (excess < NEAR))
    return np.where(has & ~empty, np.where(full, FULL, BUSY), PASS), between


def _between(link: LinkSpec, full: bool, admitted: float) -> InvalidInput:
    """Why a point is refused at which a link's queue is between two modes."""
    what = "buffer is full" if full else "queue is empty"
    either = "capacity or the largest rate of a flow a little, or let its law want a queue above 0"
    remedy = "buffer a little" if full else either
    return InvalidInput(
        f"link {link.name!r} stands on a switching surface: its {what} and "
        f"{admitted:.9g} bit/s enter it, exactly its capacity, so that the two "
        f"sides of y = c have different derivatives; change its {remedy}"
    )


def _untied(point: OperatingPoint, errors: dict[int, FluidccError]) -> Iterator[OperatingPoint]:
    """The points of one structure, without those at which links offer a class the same least rate
    and it listens to it.
    """
    _, tied = least_offers(point)
    tied &= tied.sum(axis=1, keepdims=True) > 1
    if tied.any():
        column = SOURCE_INPUTS.index(offer_min)
        for g in point.flow_groups:
            J = flows_of(point).at(g).jacobians
            by = np.concatenate([J.B[:, column], J.D[:, column]])
            tied[list(g.members)] &= (by != 0).any(axis=0)[:, None]
    for k, *own in np.argwhere(tied.any(axis=1)).tolist():
        both = np.flatnonzero(tied[k].reshape(len(point.links), -1)[:, own or 0])
        names = " and ".join(repr(point.links[l].name) for l in both)
        errors.setdefault(int(point.rows[*own or (0,)]), InvalidInput(
            f"flow {point.classes[k].name!r} stands on a switching surface: links {names} "
            "offer it the same least rate, and what each does next is not the same; change "
            "the capacity of one a little"
        ))  # fmt: skip
    if point.single:
        if not tied.any():
            yield point
        return
    free = point.part(np.flatnonzero(~tied.any(axis=(0, 1))))
    if len(free.rows):
        for part, _ in free.split(_details(free)):
            yield part


def _by_branch(
    point: OperatingPoint, errors: dict[int, FluidccError], kind: str
) -> Iterator[OperatingPoint]:
    """The points by the branches of the laws of flows or of links, and by the states that a
    bound holds.
    """
    side = SIDES[kind](point)
    found = list(_branches(point, kind, side))
    for b in found:
        of = [f"{kind} {side.names[i]!r}: " for i in b.members]
        for k, j, *own in np.argwhere(b.near).tolist():
            if (i := int(point.rows[*own or (0,)])) not in errors:
                errors[i] = on_surface(b.law, k, of[j])
        for end, k, j, *own in np.argwhere(b.loose).tolist():
            z = b.law.states[k]
            bound = (b.law.lower, b.law.upper)[end][z]
            moved = ", ".join(sorted(map(plain, bound.free_symbols))) or f"{bound}"
            errors.setdefault(int(point.rows[*own or (0,)]), InvalidInput(
                f"{of[j]}{b.law.name} stands on a switching surface: its "
                f"{plain(z)} is at its {('lower', 'upper')[end]} bound and does not press against "
                f"it; move that bound ({moved}) so far that it rests off it, as a rate does whose "
                "upper bound is above the capacity"
            ))  # fmt: skip
    fine = np.array([i not in errors for i in point.rows.tolist()])
    pick, many = np.flatnonzero(fine), len(point.rows)
    codes = [np.zeros((1, len(pick)))]
    codes += [part.reshape(-1, many)[:, pick] for b in found for part in (b.modes, b.free)]
    for part, _ in point.part(pick).split(np.concatenate(codes)) if len(pick) else ():
        k = int(np.searchsorted(point.rows, part.rows[0]))
        groups = tuple(
            LawGroup(b.law, b.members, b.modes, b.free)
            if point.single
            else LawGroup(b.law, b.members, b.modes[..., k : k + 1], b.free[..., k])
            for b in found
        )
        yield part.changed(**{f"{kind}_groups": groups})


def _details(point: OperatingPoint) -> Any:
    """Which derivatives vanish and which lags coincide, as codes of shape (..., points)."""
    codes = []
    many = point.x.shape[-1]
    for side in (flows_of(point), links_of(point)):
        for g in side.groups:
            codes += [(M != 0).reshape(-1, many).astype(np.int16) for M in side.at(g).jacobians]
    lag = Lags(point)
    lags = [
        np.zeros(many),
        *lag.trip,
        *lag.direct,
        *(a for side in (lag.forward, lag.backward) for own in side for a in own),
    ]
    lags += [own[h] - own[j] for own in lag.forward for h in range(len(own)) for j in range(h)]
    codes.append(_coincidences(np.round(np.array(lags), 12)))
    return np.concatenate(codes)


def _coincidences(lags: Any) -> Any:
    """For each lag the first that is equal to it, (lags, points)."""
    order = np.argsort(lags, axis=0, kind="stable")
    ranked = np.take_along_axis(lags, order, axis=0)
    fresh = np.concatenate([np.ones((1, lags.shape[1]), bool), ranked[1:] != ranked[:-1]])
    start = np.maximum.accumulate(np.where(fresh, np.arange(len(lags))[:, None], 0), axis=0)
    first = np.empty(order.shape, np.int16 if len(lags) < 2**15 else np.int64)
    np.put_along_axis(first, order, np.take_along_axis(order, start, axis=0), axis=0)
    return first


# --- laws on their branches -----------------------------------------------------------------------


SIDES: dict[str, Callable[[OperatingPoint], Side]] = {"flow": flows_of, "link": links_of}


class _OnBranch(NamedTuple):
    """Laws of one structure on their branches.

    `near` are the switches (switches, members, ...) at which a law stands, `loose` the states at a
    lower or an upper bound (2, states, members, ...) against which they do not press.
    """

    law: Any
    members: tuple[int, ...]
    modes: Any
    free: Any  # (states, members, ...)
    near: Any
    loose: Any


def _branches(point: OperatingPoint, kind: str, of: Side | None = None) -> Iterator[_OnBranch]:
    """The laws of the flows or links by structure, each on its branch at the point."""
    of = of or SIDES[kind](point)
    for members in grouped(of.laws):
        law = of.laws[members[0]]
        z, u, p = of.numbers(members)
        modes, near = modes_at(law, z, u, p, relative=NEAR)
        free, loose = np.ones(z.shape, bool), np.zeros((2, *z.shape), bool)
        held = [s for s in own_symbols(law) if s in law.lower or s in law.upper]
        ends = [bounds(law, held, _known(point, kind, law, i, of.p[i])) for i in members]
        flows: list[Any] = []  # from both sides, so that a flow of 0 presses nowhere
        weak = loose.copy()
        for k, s in enumerate(held):
            i = law.states.index(s)
            for side, sign in enumerate((1.0, -1.0)):
                end = np.empty(z.shape[1:])
                for j, own in enumerate(ends):
                    end[j] = own[side][k]
                stuck = sign * (z[i] - end) <= 1e-12 * np.clip(np.abs(end), 1e-3, 1e300)
                if not stuck.any():
                    continue
                flows = flows or [
                    branch_function(law)(z, u * (1 + d), p, modes).flow for d in (NEAR, -NEAR)
                ]
                presses = np.max([sign * f[i] for f in flows], axis=0) < 0
                free[i] &= ~(stuck & presses)
                weak[side, i] = stuck & ~presses
        for i in np.unique(np.nonzero(weak)[1]):
            jacobians = branch_function(law)(z, u, p, modes).jacobians
            moves = free.copy()
            if kind == "link" and law.queue is not None:
                moves[law.states.index(law.queue)] &= point.mode[list(members)] == BUSY
            loose[:, i] = weak[:, i] & ~_decays_alone(jacobians, i, moves)
        yield _OnBranch(law, tuple(members), modes, free, near, loose)


def _known(point: OperatingPoint, kind: str, law: Any, i: int, params: Any) -> dict[Any, Any]:
    """What bounds of a law's states may depend on."""
    place: Any = (
        {c: point.c[i], q_max: point.q_max[i]}
        if kind == "link"
        else {e_b: point.back[i], packet: point.packet[i]}
    )
    return {**dict(zip(law.params, params, strict=True)), **place}


def _decays_alone(jacobians: Any, i: int, moves: Any) -> Any:
    """Whether a state at its bound returns there by itself and nothing that `moves` pushes it: the
    bound never acts.
    """
    by = np.where(moves, jacobians.A[i], 0.0)
    own, by[i] = jacobians.A[i][i], 0.0
    return (own < 0) & ~by.any(axis=0) & ~jacobians.B[i].any(axis=0)


def _refuse_frozen_loss(point: OperatingPoint) -> None:
    """The frozen form does not thin what comes after a loss, so that its equilibrium would be
    another one.
    """
    if any(point.mixed):
        raise Unsupported(
            f"link {point.links[point.mixed.index(True)].name!r} drops of flows with ecn=False "
            "what it marks of others, which the frozen form (8) does not know; use delays='fifo'"
        )
    routes: Any = [*(f.route for f in point.classes), *(route for route, *_ in point.constant)]
    lossy = {int(l) for l in np.flatnonzero(loss(point) > 0)}
    for route in routes:
        if lossy & set(route[:-1]):
            name = point.links[next(iter(lossy & set(route[:-1])))].name
            raise Unsupported(
                f"link {name!r} loses packets before the end of a route, which the frozen form "
                "(8) does not carry on to the next link; use delays='fifo'"
            )


def _refuse_ticks(net: Network) -> None:
    """A sampled law may rest, but what it does near there is a recursion and no differential
    equation.
    """
    kinds = {names[0]: net.flows[names[0]] for names in identical(net)}
    for kind, specs in (("flow", kinds), ("link", net.links)):
        for name, spec in specs.items():
            if spec.law.ticks:
                raise Unsupported(
                    f"{kind} {name!r} ({spec.law.name}) is sampled, so it has no Jacobian in "
                    "continuous time: take fluidcc.sampled_stability, which has its ticks, a law "
                    "without them (such as fluidcc.RED for AdaptiveRED), or simulate it"
                )


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
