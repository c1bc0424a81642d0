"""A network at many points, sorted by what is linearised there: each sort is wired once, for all its points.

Points are of one structure where the same flows are identical, queues are empty, busy or full alike, laws are on the
same branches with the same states held, the same derivatives vanish, and the same lags coincide. Then their matrices
have entries at the same places, and a point's numbers depend on no other point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.operating_point import BUSY, FULL, NEAR, PASS, FlowClass, LawGroup, Point
from fluidcc.analysis.rest import Lags, evaluate, flow_inputs, link_inputs
from fluidcc.equilibria.assembly import constant_rate, is_on
from fluidcc.laws.linear import branch_function, modes_at
from fluidcc.laws.steady import Structure, grouped
from fluidcc.numerics.linear.wiring import alike
from fluidcc.symbols import c, e_b, packet, plain, q_max

if TYPE_CHECKING:
    from fluidcc.equilibria.many import Columns, Equilibria

__all__ = ["Sort", "sorts"]

Rows = NDArray[np.int64]
SURFACE = "it stands on a switching surface"


@dataclass(frozen=True)
class Sort:
    """Points of one structure: `point` has its numbers along a last axis, and `rows` says which points they are."""

    point: Point
    rows: Rows
    bounds: tuple[list[Any], list[Any]]  # of the states of each class, of each link: (2, states, points)

    def part(self, pick: Any) -> Sort:
        """Some of the points."""
        if len(pick) == len(self.rows):
            return self
        p = self.point
        numbers = {k: [a[..., pick] for a in getattr(p, k)] for k in ("z", "p", "v", "lp")}
        numbers |= {
            k: getattr(p, k)[..., pick] for k in ("access", "back", "packet", "c", "delay", "q_max", "q", "x", "y")
        }
        streams: Any = p.constant
        constant = tuple((route, rate[pick], i) for route, rate, i in streams)
        bounds = tuple([a[..., pick] for a in side] for side in self.bounds)
        return Sort(p.changed(constant=constant, **numbers), self.rows[pick], bounds)  # type: ignore[arg-type]

    def split(self, codes: Any) -> Iterator[Sort]:
        """The points by equal columns of `codes`, of shape (..., points)."""
        for pick in alike(codes.reshape(-1, len(self.rows)).T):
            yield self.part(pick)


def sorts(columns: Columns, rest: Equilibria, alone: dict[int, str]) -> Iterator[Sort]:
    """All points that have an equilibrium, by structure; those that must be judged one by one go to `alone`.

    Parameters
    ----------
    columns : Columns
        The network's numbers at all points.
    rest : Equilibria
        Its equilibria there.
    alone : dict of int to str
        Gets the points that are left out, and why.
    """
    maker = _Maker(columns, rest)
    if not maker.listening:
        alone |= dict.fromkeys(np.flatnonzero(rest.found).tolist(), "no flow listens")
        return
    mode, surface = maker.modes()
    for i in np.flatnonzero(surface & rest.found).tolist():
        alone[i] = SURFACE
    rows = np.flatnonzero(rest.found & ~surface)
    if not len(rows):
        return
    codes = np.concatenate([maker.leaders(), mode.T])[:, rows]
    for pick in alike(codes.T):
        leader, queues = np.split(codes[:, pick[0]], [len(maker.listening)])
        one = maker.sort(rows[pick], leader, queues)
        for on_links in _on_branches(one, alone, "link"):
            for on_branch in _on_branches(on_links, alone, "flow"):
                yield from on_branch.split(_details(on_branch.point))


class _Maker:
    """Numbers of flows and links at all points."""

    def __init__(self, columns: Columns, rest: Equilibria) -> None:
        self.columns, self.rest = columns, rest
        self.net = net = columns.net
        self.links = tuple(net.links.values())
        self.names = list(net.flows)
        at = columns.one.at
        self.listening = [i for i, f in enumerate(net.flows.values()) if is_on(f, at) and constant_rate(f, at) is None]
        self.constant = [
            i for i, f in enumerate(net.flows.values()) if is_on(f, at) and constant_rate(f, at) is not None
        ]
        place = {name: l for l, name in enumerate(net.links)}
        self.routes = [tuple(place[l] for l in f.route) for f in net.flows.values()]
        numbers = columns.system().numbers
        self.c, self.q_max = numbers.c.T, numbers.q_max.T
        self.delay = self._all([self._argument("link", k.name, "delay", k.delay) for k in self.links])
        flows = list(net.flows.values())
        self.access = self._all([self._argument("flow", f.name, "access_delay", f.access_delay) for f in flows])
        self.packet = self._all([self._argument("flow", f.name, "packet", f.packet) for f in flows])
        forward = [a + sum(self.delay[l] for l in route) for a, route in zip(self.access, self.routes, strict=True)]
        self.back = self._all([
            self._argument("flow", f.name, "return_delay", d if f.return_delay is None else f.return_delay)
            for f, d in zip(flows, forward, strict=True)
        ])  # fmt: skip
        self.p = [self._parameters("flow", f) for f in flows]
        self.z = [self._states(f) for f in flows]

    def _all(self, values: list[Any]) -> Any:
        return np.array([np.broadcast_to(v, self.columns.points) for v in values])

    def _argument(self, kind: str, name: str, key: str, default: Any) -> Any:
        return self.columns.set.get((kind, name, "argument", key), default)

    def _parameters(self, kind: str, spec: Any) -> Any:
        given = self.columns.set
        own = [given.get((kind, spec.name, "parameter", plain(s)), float(v)) for s, v in spec.law.params.items()]
        return self._all(own).reshape(len(own), self.columns.points)

    def _states(self, spec: Any) -> Any:
        there = self.rest.states[spec.name]  # none of a flow that has stopped
        return self._all([there.get(plain(s), np.nan) for s in spec.law.states]).reshape(-1, self.columns.points)

    def modes(self) -> tuple[Any, Any]:
        """What each queue does, (points, links), and which points stand between two of these."""
        queue, longest = self.rest.queueing_delay, self.q_max.T
        with np.errstate(invalid="ignore"):
            excess = self.rest.admitted_rate / self.c.T - 1
            holds = np.array([link.law.queue is not None for link in self.links])
            empty = queue <= NEAR * np.maximum(1e-3, queue.max(axis=1, keepdims=True))
            full = ~empty & (queue >= longest * (1 - NEAR))
            between = holds & np.where(empty, excess > -NEAR, full & (excess < NEAR))
        mode = np.where(holds & ~empty, np.where(full, FULL, BUSY), PASS)
        return mode, between.any(axis=1)

    def leaders(self) -> Any:
        """For each flow that listens the first one that is identical to it, (flows, points)."""
        flows = list(self.net.flows.values())
        first = np.array([np.full(self.columns.points, k) for k in range(len(self.listening))])
        kinds = [(Structure.of(flows[i].law), flows[i].law.name, self.routes[i]) for i in self.listening]
        for k, i in enumerate(self.listening):
            for m in range(k):
                j = self.listening[m]
                if kinds[k] != kinds[m]:
                    continue
                numbers = [(getattr(self, a)[i], getattr(self, a)[j]) for a in ("access", "back", "packet")]
                same = np.all([a == b for a, b in (*numbers, *zip(self.p[i], self.p[j], strict=True))], axis=0)
                for a, b in zip(self.z[i], self.z[j], strict=True):  # as in math.isclose
                    same &= np.abs(a - b) <= np.maximum(1e-7 * np.maximum(np.abs(a), np.abs(b)), 1e-12)
                first[k] = np.where(same & (first[m] == m) & (first[k] == k), m, first[k])
        return first

    def sort(self, rows: Rows, leader: Any, mode: Any) -> Sort:
        """Points with these identical flows and queues, not yet on a branch."""
        flows = list(self.net.flows.values())
        lead = sorted(set(leader.tolist()))
        chosen = [self.listening[k] for k in lead]
        groups = [tuple(self.names[self.listening[k]] for k in np.flatnonzero(leader == m)) for m in lead]
        classes = tuple(FlowClass(names, flows[i], self.routes[i]) for names, i in zip(groups, chosen, strict=True))
        full, busy = (mode == FULL)[:, None], (mode == BUSY)[:, None]
        longest = self.q_max[:, rows]
        queue = np.where(full, longest, np.where(busy, self.rest.queueing_delay.T[:, rows], 0.0))
        point = Point(
            self.net, self.columns.one.at, None, classes, (), (), self.links,
            tuple((self.routes[i], self.rest.rate[rows, i], i) for i in self.constant),
            np.array(mode), z=[self.z[i][:, rows] for i in chosen], p=[self.p[i][:, rows] for i in chosen],
            v=[self._states(link)[:, rows] for link in self.links],
            lp=[self._parameters("link", link)[:, rows] for link in self.links],
            count=np.array([float(f.count) for f in classes]),
            access=self.access[chosen][:, rows], back=self.back[chosen][:, rows], packet=self.packet[chosen][:, rows],
            c=self.c[:, rows], delay=self.delay[:, rows], q_max=longest, q=queue,
            x=np.ascontiguousarray(self.rest.rate.T[chosen][:, rows]),
            y=np.ascontiguousarray(self.rest.arrival_rate.T[:, rows]),
        )  # fmt: skip
        own = [self._bounds(flows[i].law, self.p[i], {e_b: self.back[i], packet: self.packet[i]}) for i in chosen]
        links = [
            self._bounds(link.law, self._parameters("link", link), {c: self.c[l], q_max: self.q_max[l]})
            for l, link in enumerate(self.links)
        ]
        return Sort(point, rows, ([ends[..., rows] for ends in own], [ends[..., rows] for ends in links]))

    def _bounds(self, law: Any, given: Any, others: dict[Any, Any]) -> Any:
        """Bounds of the states, but a queue, at all points: also of those that a search for equilibria leaves out."""
        states = [s for s in law.states if s != getattr(law, "queue", None)]
        return self.columns.bounds(law, states, {**dict(zip(law.params, given, strict=True)), **others})


def _on_branches(one: Sort, alone: dict[int, str], kind: str) -> Iterator[Sort]:
    """The points by the branches of the laws of flows or of links, and by the states that a bound holds."""
    point, links = one.point, kind == "link"
    laws: list[Any] = [k.law for k in point.links] if links else [f.spec.law for f in point.classes]
    u = link_inputs(point) if links else flow_inputs(point)
    z, p = (point.v, point.lp) if links else (point.z, point.p)
    groups = [
        (laws[members[0]], members, *_branch(laws[members[0]], members, z, u, p, one.bounds[links]))
        for _, members in grouped(laws)
    ]
    doubtful = np.any([group[4] for group in groups], axis=0)
    for i in one.rows[doubtful].tolist():
        alone[i] = SURFACE
    pick = np.flatnonzero(~doubtful)
    if not len(pick):
        return
    codes = np.concatenate([part[..., pick].reshape(-1, len(pick)) for g in groups for part in g[2:4]])
    for sort in one.part(pick).split(codes):
        k = int(np.searchsorted(one.rows, sort.rows[0]))
        found = tuple(
            LawGroup(law, tuple(members), modes[..., k : k + 1], free[..., k])
            for law, members, modes, free, _ in groups
        )
        yield replace(sort, point=sort.point.changed(**{f"{kind}_groups": found}))


def _branch(law: Any, members: list[int], z: Any, u: Any, p: Any, bounds: Any) -> tuple[Any, Any, Any]:
    """Modes (switches, members, points), free states (states, members, points), and points that stand in between.

    As `fluidcc.analysis.operating_point` does it for one point.
    """
    own, inside, given = np.stack([z[i] for i in members], 1), u[:, members], np.stack([p[i] for i in members], 1)
    modes, near = modes_at(law, own, inside, given, relative=NEAR)
    doubtful = near.any(axis=(0, 1)) if len(near) else np.zeros(inside.shape[-1], bool)
    free = np.ones(own.shape, bool)
    queue = getattr(law, "queue", None)
    held = [s for s in law.states if s != queue]
    moving = [s for s in held if s in law.lower or s in law.upper]
    if not moving:
        return modes, free, doubtful
    flows: list[Any] = []  # near the point, from both sides; as a rule nobody asks
    for s in moving:
        i, k = law.states.index(s), held.index(s)
        for side, sign in enumerate((1.0, -1.0)):
            if s not in (law.lower, law.upper)[side]:
                continue
            end = np.array([bounds[j][side, k] for j in members])
            stuck = sign * (own[i] - end) <= 1e-12 * np.clip(np.abs(end), 1e-3, 1e300)
            if not stuck.any():
                continue
            flows = flows or [branch_function(law)(own, inside * (1 + d), given, modes).flow for d in (NEAR, -NEAR)]
            presses = np.max([sign * f[i] for f in flows], axis=0) < 0
            doubtful |= (stuck & ~presses).any(axis=0)
            free[i] &= ~stuck
    return modes, free, doubtful


def _details(point: Point) -> Any:
    """Which derivatives vanish and which lags coincide, as codes of shape (..., points)."""
    codes = []
    sides: Any = (
        (point.flow_groups, point.z, flow_inputs(point), point.p),
        (point.link_groups, point.v, link_inputs(point), point.lp),
    )
    many = point.x.shape[-1]
    for groups, z, u, p in sides:
        for g in groups:
            codes += [(M != 0).reshape(-1, many).astype(np.int16) for M in evaluate(g, z, u, p).jacobians]
    lag = Lags(point)
    lags = [np.zeros(many), *lag.trip, *(a for side in (lag.forward, lag.backward) for own in side for a in own)]
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
