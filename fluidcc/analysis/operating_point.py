"""Operating points: where a network is linearised, at one point or at many together.

At each the flows are in classes, every queue is empty, busy or full, and every law is on a branch
of its kinks. Points are taken together where all of that is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import (
    BUSY,
    FULL,
    LISTS,
    NEAR,
    NUMBERS,
    PASS,
    FlowClass,
    Lags,
    LawGroup,
    Point,
    Side,
    flows_of,
    least_offers,
    links_of,
    loss,
)
from fluidcc.base.arguments import choice
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.equilibria.assembly import (
    bounds,
    capacity_at,
    constant_rate,
    flow_numbers,
    is_on,
    link_numbers,
    own_states,
)
from fluidcc.equilibria.equilibrium import hold_trackers, one_equilibrium
from fluidcc.equilibria.result import Equilibrium
from fluidcc.laws.linear import active_modes, branch_function, modes_at
from fluidcc.laws.steady import grouped
from fluidcc.network.network import identical, places
from fluidcc.network.parameters import Parameters
from fluidcc.numerics.linear.wiring import alike
from fluidcc.symbols import SOURCE_INPUTS, c, e_b, offer_min, packet, plain, q_max

if TYPE_CHECKING:
    from fluidcc.equilibria.many import Equilibria
    from fluidcc.network.network import Network
    from fluidcc.network.specs import LinkSpec

SURFACE = "it stands on a switching surface"


# --- the equilibria of a network's points ---------------------------------------------------------


class _Equilibria:
    """Equilibria at some points, with the numbers of links and of one flow of each kind."""

    def __init__(self, given: Parameters, rest: Equilibrium | Equilibria, at: float) -> None:
        self.given, self.rest, self.at = given, rest, at
        self.net = net = hold_trackers(given.net)
        self.links = tuple(net.links.values())
        self.flows = list(net.flows.values())
        self.rate, self.arrival, self.admitted, self.queue = (
            np.atleast_2d(np.asarray(rest.array(name), float)).T
            for name in ("rate", "arrival_rate", "admitted_rate", "queueing_delay")
        )
        numbers = [link_numbers(given, k, capacity_at(k, at)) for k in self.links]
        self.c = self._all([known[c] for known in numbers])
        self.q_max = self._all([known[q_max] for known in numbers])
        self.delay = self._all([given.link(k.name, 1.0)[1] for k in self.links])
        self.lp = [
            self._all([known[s] for s in k.law.params])
            for k, known in zip(self.links, numbers, strict=True)
        ]
        self.v = [self._states(link) for link in self.links]
        self._sort_flows()
        specs = [self.flows[self.place[names[0]]] for names in self.kinds]
        known = [flow_numbers(given, f.name, f.law) for f in specs]
        self.access = self._all([given.flow(f.name)[0] for f in specs])
        self.back = self._all([one[e_b] for one in known])
        self.packet = self._all([one[packet] for one in known])
        self.p = [
            self._all([one[s] for s in f.law.params]) for f, one in zip(specs, known, strict=True)
        ]
        self.z = [self._states(f) for f in specs]
        self.specs = specs

    def _all(self, values: list[Any]) -> Any:
        found = np.empty((len(values), self.queue.shape[1]))
        for row, value in zip(found, values, strict=True):
            row[:] = value
        return found

    def _states(self, spec: Any) -> Any:
        there = self.rest.states[spec.name]
        return self._all([there[plain(s)] for s in spec.law.states])

    def _sort_flows(self) -> None:
        """Flows that listen, by kind; and routes and places of those that send at constant rates.

        Of a kind are identical flows that no setting and no equilibrium tells apart.
        """
        links = {name: l for l, name in enumerate(self.net.links)}
        self.place = places(self.net)
        self.kinds: list[tuple[str, ...]] = []
        self.constant: list[tuple[tuple[int, ...], int]] = []
        told: dict[str, list[Any]] = {}
        for (kind, name, *key), values in self.given.set.items():
            if kind == "flow":
                told.setdefault(name, []).append((*key, id(values)))
        states = self.rest.states
        for names in identical(self.net):
            flow = self.net.flows[names[0]]
            if not is_on(flow, self.at):
                continue
            if constant_rate(flow, self.at) is not None:
                route = tuple(links[l] for l in flow.route)
                self.constant += [(route, self.place[name]) for name in names]
                continue
            apart: dict[Any, list[str]] = {}
            for name in names:
                equal = tuple(
                    v if isinstance(v, float) else v.tobytes() for v in states[name].values()
                )
                apart.setdefault((equal, *told.get(name, ())), []).append(name)
            self.kinds += map(tuple, apart.values())
        self.kinds.sort(key=lambda names: self.place[names[0]])
        self.constant.sort(key=lambda sent: sent[1])
        self.routes = [
            tuple(links[l] for l in self.net.flows[names[0]].route) for names in self.kinds
        ]

    def leaders(self) -> Any:
        """For each kind of flows the first one that is equal to it, (kinds, points)."""
        points = self.queue.shape[1]
        first = np.repeat(np.arange(len(self.kinds))[:, None], points, axis=1)
        members: dict[Any, list[int]] = {}
        for k, f in enumerate(self.specs):
            members.setdefault((f.law.structure, f.law.name, f.route), []).append(k)
        for own in (np.array(same) for same in members.values() if len(same) > 1):
            exact = np.array(
                [[self.access[k], self.back[k], self.packet[k], *self.p[k]] for k in own]
            )
            z = np.array([self.z[k] for k in own])
            for j, m in enumerate(own[:-1]):
                later = own[j + 1 :]
                gap, size = np.abs(z[j + 1 :] - z[j]), np.maximum(np.abs(z[j + 1 :]), np.abs(z[j]))
                same = (exact[j + 1 :] == exact[j]).all(axis=1)
                same &= (gap <= np.maximum(1e-7 * size, 1e-12)).all(axis=1)
                same &= (first[m] == m) & (first[later] == later[:, None])
                first[later] = np.where(same, m, first[later])
        return first

    def stack(self, rows: Any, leader: Any, mode: Any) -> Stack:
        """Points with these classes of flows and modes of queues, not yet on a branch."""
        lead = np.unique(leader)
        classes = []
        for m in lead:
            names = [name for k in np.flatnonzero(leader == m) for name in self.kinds[k]]
            names.sort(key=self.place.__getitem__)
            classes.append(FlowClass(tuple(names), self.specs[m], self.routes[m]))
        first = [self.place[f.names[0]] for f in classes]
        full, busy = (mode == FULL)[:, None], (mode == BUSY)[:, None]
        longest = self.q_max[:, rows]
        point = Point(
            self.net, self.at, None, tuple(classes), (), (), self.links,
            tuple((route, self.rate[i, rows], i) for route, i in self.constant),
            np.array(mode), np.full(len(lead), -1), z=[self.z[m][:, rows] for m in lead],
            p=[self.p[m][:, rows] for m in lead], v=[v[:, rows] for v in self.v],
            lp=[p[:, rows] for p in self.lp], count=np.array([float(f.count) for f in classes]),
            access=self.access[lead][:, rows], back=self.back[lead][:, rows],
            packet=self.packet[lead][:, rows], c=self.c[:, rows], delay=self.delay[:, rows],
            q_max=longest, q=np.where(full, longest, np.where(busy, self.queue[:, rows], 0.0)),
            x=self.rate[first][:, rows], y=self.arrival[:, rows],
        )  # fmt: skip
        return Stack(point, rows)


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


# --- many points ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """Points of one structure: `point` has its numbers along a last axis, and `rows` says which
    points they are.
    """

    point: Point
    rows: NDArray[np.int64]

    def part(self, pick: Any) -> Stack:
        """Some of the points."""
        if np.ndim(pick) and len(pick) == len(self.rows):
            return self
        p = self.point
        streams: Any = p.constant
        numbers = {k: [a[..., pick] for a in getattr(p, k)] for k in LISTS}
        numbers |= {k: getattr(p, k)[..., pick] for k in NUMBERS}
        constant = tuple((route, rate[pick], i) for route, rate, i in streams)
        return Stack(p.changed(constant=constant, **numbers), self.rows[pick])

    def split(self, codes: Any) -> Iterator[Stack]:
        """The points by equal columns of `codes`, of shape (..., points)."""
        for pick in alike(codes.reshape(-1, len(self.rows)).T):
            yield self.part(pick)


def operating_points(given: Parameters, rest: Equilibria, alone: dict[int, str]) -> Iterator[Stack]:
    """All points that have an equilibrium, by structure; those that must be judged one by one go to
    `alone`.

    Parameters
    ----------
    given : Parameters
        The network's numbers at all points.
    rest : Equilibria
        Its equilibria there.
    alone : dict of int to str
        Gets the points that are left out, and why.
    """
    every = _Equilibria(given, rest, rest.at)
    if not every.kinds:
        alone |= dict.fromkeys(np.flatnonzero(rest.found).tolist(), "no flow listens")
        return
    mode, between = queue_modes(every.links, every.c, every.q_max, every.queue, every.admitted)
    surface = between.any(axis=0)
    alone |= dict.fromkeys(np.flatnonzero(surface & rest.found).tolist(), SURFACE)
    rows = np.flatnonzero(rest.found & ~surface)
    if not len(rows):
        return
    codes = np.concatenate([every.leaders(), mode])[:, rows]
    for pick in alike(codes.T):
        leader, queues = np.split(codes[:, pick[0]], [len(every.kinds)])
        for on_links in _by_branch(every.stack(rows[pick], leader, queues), alone, "link"):
            for on_offers in _by_offers(on_links):
                for on_branch in _by_branch(on_offers, alone, "flow"):
                    for part in on_branch.split(_details(on_branch.point)):
                        tied = _tied(part.point).any(axis=(0, 1))
                        alone |= dict.fromkeys(part.rows[tied].tolist(), SURFACE)
                        if not tied.all():
                            yield part.part(np.flatnonzero(~tied))


def _by_offers(stack: Stack) -> Iterator[Stack]:
    """The points by the links that offer least."""
    which, _ = least_offers(stack.point)
    for part in stack.split(which):
        k = int(np.searchsorted(stack.rows, part.rows[0]))
        yield replace(part, point=part.point.changed(least=which[:, k]))


def _tied(point: Point) -> NDArray[np.bool_]:
    """Which links offer a class the same least rate, which it listens to: (classes, links, ...)."""
    _, tied = least_offers(point)
    tied &= tied.sum(axis=1, keepdims=True) > 1
    if tied.any():
        column = SOURCE_INPUTS.index(offer_min)
        for g in point.flow_groups:
            J = flows_of(point).at(g).jacobians
            by = np.concatenate([J.B[:, column], J.D[:, column]])
            tied[list(g.members)] &= (by != 0).any(axis=0)[:, None]
    return tied


def _by_branch(stack: Stack, alone: dict[int, str], kind: str) -> Iterator[Stack]:
    """The points by the branches of the laws of flows or of links, and by the states that a
    bound holds.
    """
    found = list(_branches(stack.point, kind))
    doubtful = np.any(
        [b.near.any(axis=(0, 1)) | b.loose.any(axis=(0, 1, 2)) for b in found], axis=0
    )
    alone |= dict.fromkeys(stack.rows[doubtful].tolist(), SURFACE)
    pick = np.flatnonzero(~doubtful)
    if not len(pick):
        return
    codes = [part[..., pick].reshape(-1, len(pick)) for b in found for part in (b.modes, b.free)]
    for part in stack.part(pick).split(np.concatenate(codes)):
        k = int(np.searchsorted(stack.rows, part.rows[0]))
        groups = tuple(
            LawGroup(b.law, b.members, b.modes[..., k : k + 1], b.free[..., k]) for b in found
        )
        yield replace(part, point=part.point.changed(**{f"{kind}_groups": groups}))


def _details(point: Point) -> Any:
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
        *lag.told,
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


SIDES: dict[str, Callable[[Point], Side]] = {"flow": flows_of, "link": links_of}


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


def _branches(point: Point, kind: str, of: Side | None = None) -> Iterator[_OnBranch]:
    """The laws of the flows or links by structure, each on its branch at the point."""
    of = of or SIDES[kind](point)
    for members in grouped(of.laws):
        law = of.laws[members[0]]
        z, u, p = of.numbers(members)
        modes, near = modes_at(law, z, u, p, relative=NEAR)
        free, loose = np.ones(z.shape, bool), np.zeros((2, *z.shape), bool)
        held = [s for s in own_states(law) if s in law.lower or s in law.upper]
        ends = [bounds(law, held, _known(point, kind, law, i, of.p[i])) for i in members]
        flows: list[Any] = []  # from both sides, so that a flow of 0 presses nowhere
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
                weak = stuck & ~presses
                if weak.any():
                    jacobians = branch_function(law)(z, u, p, modes).jacobians
                    busy = point.mode[members] == BUSY if kind == "link" else None
                    loose[side, i] = weak & ~_decays_alone(law, jacobians, i, busy)
        yield _OnBranch(law, tuple(members), modes, free, near, loose)


def _known(point: Point, kind: str, law: Any, i: int, params: Any) -> dict[Any, Any]:
    """What bounds of a law's states may depend on."""
    place: Any = (
        {c: point.c[i], q_max: point.q_max[i]}
        if kind == "link"
        else {e_b: point.back[i], packet: point.packet[i]}
    )
    return {**dict(zip(law.params, params, strict=True)), **place}


def _decays_alone(law: Any, jacobians: Any, i: int, busy: Any) -> Any:
    """Whether a state at its bound returns there by itself and nothing that moves pushes it: the
    bound never acts.
    """
    by = jacobians.A[i].copy()
    own, by[i] = by[i].copy(), 0.0
    if busy is not None and law.queue is not None:
        by[law.states.index(law.queue), ~busy] = 0.0
    return (own < 0) & ~by.any(axis=0) & ~jacobians.B[i].any(axis=0)


def with_groups(point: Point) -> Point:
    """Add the laws of one point, grouped, each on its branch.

    Raises
    ------
    InvalidInput
        If a law stands on a switching surface.
    """
    for kind in ("link", "flow"):
        side, groups = SIDES[kind](point), []
        for b in _branches(point, kind, side):
            of = [f"{kind} {side.names[i]!r}: " for i in b.members]
            if b.near.any():
                active_modes(b.law, *side.numbers(b.members), relative=NEAR, of=of)
            for end, i, j in np.argwhere(b.loose).tolist()[:1]:
                raise InvalidInput(
                    f"{of[j]}{b.law.name} stands on a switching surface: its "
                    f"{plain(b.law.states[i])} is at its {('lower', 'upper')[end]} bound and "
                    "does not press against it; change a parameter a little"
                )
            groups.append(LawGroup(b.law, b.members, b.modes, b.free))
        point = point.changed(**{f"{kind}_groups": tuple(groups)})
        if kind == "link":
            point = point.changed(least=least_offers(point)[0])
    for k, own in enumerate(_tied(point)):
        if own.any():
            names = " and ".join(repr(point.links[l].name) for l in np.flatnonzero(own))
            raise InvalidInput(
                f"flow {point.classes[k].name!r} stands on a switching surface: links {names} "
                "offer it the same least rate, and what each does next is not the same; change "
                "the capacity of one a little"
            )
    return point


def on_same_branch(point: Point, admitted: Any) -> bool:
    """Whether the queues and the switches of the laws are as the point has them, away from their
    surfaces, and no state is at a bound.
    """
    mode, between = queue_modes(point.links, point.c, point.q_max, point.q, admitted)
    if between.any() or not np.array_equal(mode, point.mode) or _tied(point).any():
        return False
    if not np.array_equal(least_offers(point)[0], point.least):
        return False
    for kind, groups in (("flow", point.flow_groups), ("link", point.link_groups)):
        for g, b in zip(groups, _branches(point, kind), strict=True):
            if b.near.any() or not np.array_equal(b.modes, g.modes):
                return False
            if not (g.free.all() and b.free.all()):
                return False
    return True


# --- one point ------------------------------------------------------------------------------------


def operating_point(
    net: Network, at: float | str | Equilibrium = math.inf, delays: str = "fifo"
) -> Point:
    """The equilibrium of a network, with everything a linearisation needs to know about it.

    Raises
    ------
    Unsupported
        If a law is sampled.
    InvalidInput
        If a queue, a buffer, a bound of a state or a switch of a law is exactly at its turning
        point there; if the equilibrium given is that of a network with other flows or links.
    """
    choice(delays, "delays", ("fifo", "frozen"))
    _refuse_ticks(net)
    net = hold_trackers(net)
    rest = _known_rest(net, at) if isinstance(at, Equilibrium) else one_equilibrium(net, at)
    one = _Equilibria(Parameters(net), rest, rest.at)
    mode, between = queue_modes(one.links, one.c, one.q_max, one.queue, one.admitted)
    for l in np.flatnonzero(between)[:1]:
        what, remedy = (
            ("buffer is full", "buffer") if mode[l, 0] == FULL else ("queue is empty", "capacity")
        )
        raise InvalidInput(
            f"link {one.links[l].name!r} stands on a switching surface: its {what} and "
            f"{one.admitted[l, 0]:.9g} bit/s enter it, exactly its capacity, so that the two "
            f"sides of y = c have different derivatives; change its {remedy} a little"
        )
    if not one.kinds:
        raise InvalidInput(
            "no flow of the network listens (all are off or send at constant rates), so there is "
            "nothing to linearise; add a flow with a law such as fluidcc.LDCC"
        )
    stack = one.stack(np.array([0]), one.leaders()[:, 0], mode[:, 0])
    point = with_groups(stack.part(0).point.changed(rest=rest, delays=delays))
    if delays == "frozen":
        _refuse_frozen_loss(point)
    return point


def _refuse_frozen_loss(point: Point) -> None:
    """The frozen form does not thin what comes after a loss, so that its equilibrium would be
    another one.
    """
    routes: Any = [*(f.route for f in point.classes), *(route for route, _, _ in point.constant)]
    lossy = {int(l) for l in np.flatnonzero(loss(point) > 0)}
    for route in routes:
        if lossy & set(route[:-1]):
            name = point.links[next(iter(lossy & set(route[:-1])))].name
            raise Unsupported(
                f"link {name!r} loses packets before the end of a route, which the frozen form "
                "(8) does not carry on to the next link; use delays='fifo'"
            )


def _known_rest(net: Network, rest: Equilibrium) -> Equilibrium:
    """An equilibrium that was given, refused if it is of another network."""
    if missing := [name for name in (*net.flows, *net.links) if name not in rest.states]:
        raise InvalidInput(
            f"the equilibrium given as at= knows no {missing[0]!r}; give one of this network, "
            "from fluidcc.equilibrium"
        )
    return rest


def _refuse_ticks(net: Network) -> None:
    """A sampled law may rest, but what it does near there is a recursion and no differential
    equation.
    """
    flows = "use its continuous law, simulate it, or fluidcc.sampled_stability for (25) of LDCC"
    links = (
        "simulate it, use a law without ticks (such as fluidcc.RED for AdaptiveRED), or "
        "fluidcc.sampled_stability for P-AQM"
    )
    kinds = {names[0]: net.flows[names[0]] for names in identical(net)}
    for kind, specs, remedy in (("flow", kinds, flows), ("link", net.links, links)):
        for name, spec in specs.items():
            if spec.law.ticks:
                raise Unsupported(
                    f"{kind} {name!r} ({spec.law.name}) is sampled, so it has no Jacobian in "
                    f"continuous time: {remedy}"
                )


# --- One flow taken out of its class, so that it can be judged by itself -------------------------


def with_alone(point: Point, name: str) -> tuple[Point, int]:
    """The point with the flow `name` in a class of its own, and the number of that class."""
    k = next(k for k, f in enumerate(point.classes) if name in f.names)
    one = point.classes[k]
    if one.count == 1:
        return point, k
    rest = replace(one, names=tuple(n for n in one.names if n != name))
    classes = (*point.classes[:k], replace(one, names=(name,)), rest, *point.classes[k + 1 :])
    twice = [*range(k + 1), *range(k, len(point.classes))]
    count = np.array([float(f.count) for f in classes])
    arrays = {key: getattr(point, key)[twice] for key in ("access", "back", "packet", "x")}
    return with_groups(
        point.changed(
            classes=classes,
            z=[point.z[i] for i in twice],
            p=[point.p[i] for i in twice],
            count=count,
            **arrays,
        )
    ), k
