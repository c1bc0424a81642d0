"""Verdicts and margins of a network at many points at once: the same laws and routes, with other
numbers.

A point's results depend on no other point, to the bit: what is evaluated for many at once is
evaluated number by number, and roots and margins are found system by system in compiled loops.
Points that need more than that (a root on the axis, a switching surface, counts that do not agree)
are judged by `fluidcc.stability` itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.operating_point import (
    BUSY,
    FULL,
    NEAR,
    PASS,
    FlowClass,
    Lags,
    LawGroup,
    Point,
    evaluate,
    flow_inputs,
    link_inputs,
)
from fluidcc.analysis.report import static_windows
from fluidcc.analysis.stability import stability
from fluidcc.analysis.wiring import Matrices, apart, deviations, has_loop, wire_both
from fluidcc.base.errors import FluidccError, gathered
from fluidcc.equilibria.assembly import constant_rate, is_on
from fluidcc.equilibria.equilibrium import system_of
from fluidcc.equilibria.many import Columns, Place, equilibria
from fluidcc.laws.linear import branch_function, modes_at
from fluidcc.laws.steady import grouped
from fluidcc.numerics.linear.count import right_of_axis, rightmost_of_stack
from fluidcc.numerics.linear.margins import Margins, margins_of_stack
from fluidcc.numerics.linear.wiring import Blocks, alike
from fluidcc.symbols import c, e_b, packet, plain, q_max

if TYPE_CHECKING:
    from fluidcc.equilibria.many import Equilibria
    from fluidcc.network import Network


__all__ = ["Sort", "Verdicts", "sorts", "verdicts_at"]


Rows = NDArray[np.int64]
SURFACE = "it stands on a switching surface"


@dataclass(frozen=True)
class Sort:
    """Points of one structure: `point` has its numbers along a last axis, and `rows` says which
    points they are.
    """

    point: Point
    rows: Rows
    bounds: tuple[
        list[Any], list[Any]
    ]  # of the states of each class, of each link: (2, states, points)

    def part(self, pick: Any) -> Sort:
        """Some of the points."""
        if len(pick) == len(self.rows):
            return self
        p = self.point
        numbers = {k: [a[..., pick] for a in getattr(p, k)] for k in ("z", "p", "v", "lp")}
        numbers |= {
            k: getattr(p, k)[..., pick]
            for k in ("access", "back", "packet", "c", "delay", "q_max", "q", "x", "y")
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
    """All points that have an equilibrium, by structure; those that must be judged one by one go to
    `alone`.

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
        self.listening = [
            i
            for i, f in enumerate(net.flows.values())
            if is_on(f, at) and constant_rate(f, at) is None
        ]
        self.constant = [
            i
            for i, f in enumerate(net.flows.values())
            if is_on(f, at) and constant_rate(f, at) is not None
        ]
        place = {name: l for l, name in enumerate(net.links)}
        self.routes = [tuple(place[l] for l in f.route) for f in net.flows.values()]
        numbers = columns.system().numbers
        self.c, self.q_max = numbers.c.T, numbers.q_max.T
        self.delay = self._all(
            [self._argument("link", k.name, "delay", k.delay) for k in self.links]
        )
        flows = list(net.flows.values())
        self.access = self._all(
            [self._argument("flow", f.name, "access_delay", f.access_delay) for f in flows]
        )
        self.packet = self._all([self._argument("flow", f.name, "packet", f.packet) for f in flows])
        forward = [
            a + sum(self.delay[l] for l in route)
            for a, route in zip(self.access, self.routes, strict=True)
        ]
        self.back = self._all([
            self._argument("flow", f.name, "return_delay",
            d if f.return_delay is None else f.return_delay)
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
        own = [
            given.get((kind, spec.name, "parameter", plain(s)), float(v))
            for s, v in spec.law.params.items()
        ]
        return self._all(own).reshape(len(own), self.columns.points)

    def _states(self, spec: Any) -> Any:
        there = self.rest.states[spec.name]  # none of a flow that has stopped
        return self._all([there.get(plain(s), np.nan) for s in spec.law.states]).reshape(
            -1, self.columns.points
        )

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
        kinds = [(flows[i].law.structure, self.routes[i]) for i in self.listening]
        for k, i in enumerate(self.listening):
            for m in range(k):
                j = self.listening[m]
                if kinds[k] != kinds[m]:
                    continue
                numbers = [
                    (getattr(self, a)[i], getattr(self, a)[j]) for a in ("access", "back", "packet")
                ]
                same = np.all(
                    [a == b for a, b in (*numbers, *zip(self.p[i], self.p[j], strict=True))], axis=0
                )
                for a, b in zip(self.z[i], self.z[j], strict=True):  # as in math.isclose
                    same &= np.abs(a - b) <= np.maximum(
                        1e-7 * np.maximum(np.abs(a), np.abs(b)), 1e-12
                    )
                first[k] = np.where(same & (first[m] == m) & (first[k] == k), m, first[k])
        return first

    def sort(self, rows: Rows, leader: Any, mode: Any) -> Sort:
        """Points with these identical flows and queues, not yet on a branch."""
        flows = list(self.net.flows.values())
        lead = sorted(set(leader.tolist()))
        chosen = [self.listening[k] for k in lead]
        groups = [
            tuple(self.names[self.listening[k]] for k in np.flatnonzero(leader == m)) for m in lead
        ]
        classes = tuple(
            FlowClass(names, flows[i], self.routes[i])
            for names, i in zip(groups, chosen, strict=True)
        )
        full, busy = (mode == FULL)[:, None], (mode == BUSY)[:, None]
        longest = self.q_max[:, rows]
        queue = np.where(full, longest, np.where(busy, self.rest.queueing_delay.T[:, rows], 0.0))
        point = Point(
            self.net, self.columns.one.at, None, classes, (), (), self.links,
            tuple((self.routes[i], self.rest.rate[rows, i], i) for i in self.constant),
            np.array(mode), z=[self.z[i][:, rows] for i in chosen], p=[self.p[i][:,
            rows] for i in chosen],
            v=[self._states(link)[:, rows] for link in self.links],
            lp=[self._parameters("link", link)[:, rows] for link in self.links],
            count=np.array([float(f.count) for f in classes]),
            access=self.access[chosen][:, rows], back=self.back[chosen][:, rows],
            packet=self.packet[chosen][:, rows],
            c=self.c[:, rows], delay=self.delay[:, rows], q_max=longest, q=queue,
            x=np.ascontiguousarray(self.rest.rate.T[chosen][:, rows]),
            y=np.ascontiguousarray(self.rest.arrival_rate.T[:, rows]),
        )  # fmt: skip
        own = [
            self._bounds(flows[i].law, self.p[i], {e_b: self.back[i], packet: self.packet[i]})
            for i in chosen
        ]
        links = [
            self._bounds(
                link.law, self._parameters("link", link), {c: self.c[l], q_max: self.q_max[l]}
            )
            for l, link in enumerate(self.links)
        ]
        return Sort(
            point, rows, ([ends[..., rows] for ends in own], [ends[..., rows] for ends in links])
        )

    def _bounds(self, law: Any, given: Any, others: dict[Any, Any]) -> Any:
        """Bounds of the states, but a queue, at all points: also of those that a search for
        equilibria leaves out.
        """
        states = [s for s in law.states if s != getattr(law, "queue", None)]
        return self.columns.bounds(
            law, states, {**dict(zip(law.params, given, strict=True)), **others}
        )


def _on_branches(one: Sort, alone: dict[int, str], kind: str) -> Iterator[Sort]:
    """The points by the branches of the laws of flows or of links, and by the states that a
    bound holds.
    """
    point, links = one.point, kind == "link"
    laws: list[Any] = [k.law for k in point.links] if links else [f.spec.law for f in point.classes]
    u = link_inputs(point) if links else flow_inputs(point)
    z, p = (point.v, point.lp) if links else (point.z, point.p)
    groups = [
        (laws[members[0]], members, *_branch(laws[members[0]], members, z, u, p, one.bounds[links]))
        for members in grouped(laws)
    ]
    doubtful = np.any([group[4] for group in groups], axis=0)
    for i in one.rows[doubtful].tolist():
        alone[i] = SURFACE
    pick = np.flatnonzero(~doubtful)
    if not len(pick):
        return
    codes = np.concatenate(
        [part[..., pick].reshape(-1, len(pick)) for g in groups for part in g[2:4]]
    )
    for sort in one.part(pick).split(codes):
        k = int(np.searchsorted(one.rows, sort.rows[0]))
        found = tuple(
            LawGroup(law, tuple(members), modes[..., k : k + 1], free[..., k])
            for law, members, modes, free, _ in groups
        )
        yield replace(sort, point=sort.point.changed(**{f"{kind}_groups": found}))


def _branch(
    law: Any, members: list[int], z: Any, u: Any, p: Any, bounds: Any
) -> tuple[Any, Any, Any]:
    """Modes (switches, members, points), free states (states, members, points), and points that
    stand in between.

    As `fluidcc.analysis.operating_point` does it for one point.
    """
    own, inside, given = (
        np.stack([z[i] for i in members], 1),
        u[:, members],
        np.stack([p[i] for i in members], 1),
    )
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
            flows = flows or [
                branch_function(law)(own, inside * (1 + d), given, modes).flow
                for d in (NEAR, -NEAR)
            ]
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
            codes += [
                (M != 0).reshape(-1, many).astype(np.int16) for M in evaluate(g, z, u, p).jacobians
            ]
    lag = Lags(point)
    lags = [
        np.zeros(many),
        *lag.trip,
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


# --- verdicts and margins of a network at many points at once -------------------------------------


MARGINS: dict[str, tuple[str, Callable[[Margins], Any]]] = {
    "gain_margin": ("gain", lambda m: m.gain),
    "phase_margin": ("phase", lambda m: np.abs(m.phase)),
    "delay_margin": ("delay", lambda m: m.delay),
    "modulus_margin": ("modulus", lambda m: m.modulus),
    "crossover": ("crossover", lambda m: np.abs(m.phase)),
    "critical_gain": ("gain_nearest", lambda m: np.maximum(m.gain_nearest, 1 / m.gain_nearest)),
}
"""What a column takes of margins, and by what it takes that of the part that is the nearest to
its boundary.
"""
UNSURE = "its counts of unstable roots do not agree at once, or a root lies on the axis"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What `fluidcc.stability` says at N points; NaN where there is no equilibrium, or what was not
    asked for.

    Attributes
    ----------
    stable, marginal : array of float (N,)
        1 or 0, as in `StabilityReport`.
    unstable, encirclements : array of float (N,)
        Whole numbers, as there.
    gain_margin, phase_margin, delay_margin, modulus_margin, crossover, critical_gain, decay_rate :
    array of float (N,)
        [1], [degrees], [s], [1], [rad/s], [1], [1/s], as there.
    rightmost_root : array of complex (N,)
        The first of the characteristic roots [1/s].
    errors : dict of int to FluidccError
        Why a point has no verdict: what `fluidcc.stability` of that point's network raises.
    warnings : dict of int to tuple of str
        What makes a verdict doubtful, by point: as `StabilityReport.warnings`, and what
        `fluidcc.stability` warns of at those that it judged; no entry where nothing does.
    alone : dict of int to str
        The points that were judged by `fluidcc.stability` one by one, and why.
    """

    stable: Any
    marginal: Any
    unstable: Any
    encirclements: Any
    gain_margin: Any
    phase_margin: Any
    delay_margin: Any
    modulus_margin: Any
    crossover: Any
    critical_gain: Any
    decay_rate: Any
    rightmost_root: Any
    errors: dict[int, FluidccError] = field(default_factory=dict)
    warnings: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    alone: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stable)

    def reasons(self) -> dict[int, str]:
        """Kind and text of why a point has no verdict, by point."""
        return {
            i: f"{type(error).__name__}: {' '.join(str(error).split())}"
            for i, error in self.errors.items()
        }


def verdicts_at(
    net: Network,
    targets: Mapping[str, Place],
    values: Mapping[str, Any],
    *,
    roots: bool = True,
    margins: bool = True,
    at: float | str = math.inf,
) -> Verdicts:
    """Judge a network at many points.

    Parameters
    ----------
    net : Network
        What all points have in common.
    targets, values : mapping
        What is changed, by axis, and its values in SI units, as
        `fluidcc.equilibria.many.equilibria` takes them.
    roots : bool
        Whether to count unstable roots and to find the rightmost one.
    margins : bool
        Whether to find margins.
    at : float
        As in `fluidcc.equilibrium`.

    Returns
    -------
    Verdicts
        Agrees with `fluidcc.stability` of each point's network to rounding.

    Raises
    ------
    Unsupported, InvalidInput
        As `fluidcc.equilibria.many.equilibria`. What `fluidcc.stability` raises at a point is in
        ``errors``, among it `Undecided` where encirclements and roots disagree even after
        refinement.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.analysis.many import verdicts_at
    >>> from fluidcc.sweeps.targets import find_target
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], dict(capacity="3 Mbit/s"), rtt="50 ms")
    >>> found = verdicts_at(net, {"eta": find_target(net, "eta")}, {"eta": [0.4, 0.8, 3.0]})
    >>> found.stable, found.phase_margin.round(2)
    (array([1., 1., 0.]), array([ 55.35,  38.51, -82.83]))
    """
    rest = equilibria(net, targets, values, at)
    columns = Columns(system_of(net, at), net, targets, values)
    told = ("errors", "warnings", "alone")
    table: dict[str, Any] = {
        f.name: np.full(columns.points, np.nan) for f in fields(Verdicts) if f.name not in told
    }
    table["rightmost_root"] = table["rightmost_root"].astype(complex)
    errors, warnings, alone = dict(rest.errors), dict(rest.warnings), dict[int, str]()
    if reason := _not_smooth(net):
        alone |= dict.fromkeys(np.flatnonzero(rest.found).tolist(), reason)
    else:
        for sort in sorts(columns, rest, alone):
            _judge(sort, table, alone, roots, margins)
            if doubts := static_windows(sort.point):
                warnings |= {i: (*warnings.get(i, ()), *doubts) for i in sort.rows.tolist()}
    for i in sorted(alone):
        try:
            with gathered() as said:
                report = stability(columns.network(i), at=columns.one.at)
        except FluidccError as error:
            errors[i] = error
            warnings.pop(i, None)
            continue
        if doubts := (*report.warnings, *said):
            warnings[i] = doubts
        for name, column in table.items():
            column[i] = (
                report.rightmost_roots[0] if name == "rightmost_root" else getattr(report, name)
            )
    return Verdicts(
        **table,
        errors=dict(sorted(errors.items())),
        warnings=warnings,
        alone=dict(sorted(alone.items())),
    )


def _not_smooth(net: Network) -> str:
    """Why a network's laws cannot be taken together, or nothing."""
    laws: list[tuple[str, Any]] = [*net.flows.items(), *net.links.items()]
    for name, spec in laws:
        if spec.law.jumps or spec.law.ticks:
            return f"{name!r} has jumps or ticks"
    return ""


def _judge(
    sort: Sort, table: dict[str, Any], alone: dict[int, str], roots: bool, margins: bool
) -> None:
    """Put the verdicts of points of one structure into the table."""
    point, rows = sort.point, sort.rows
    joined = wire_both(point)
    if not np.any(point.regulating) and not has_loop(joined[1]):  # of which it warns
        alone |= dict.fromkeys(rows.tolist(), "no flow hears of any other")
        return
    if roots:
        root, count = rightmost_of_stack(_stack(joined[0]))
        poles = right_of_axis(_stack(joined[1]))
        unstable, broken = (np.where(found < 0, np.nan, found) for found in (count, poles))
        more = {f.label: f.count - 1 for f in point.classes}
        opened = deviations(point, "open")
        for name, own in deviations(point).items():
            if not len(own.A):
                continue
            among, count = rightmost_of_stack(_stack(own))
            poles = right_of_axis(_stack(opened[name]))
            root = np.where(among.real > root.real, among, root)
            unstable = unstable + np.where(count < 0, np.nan, more[name] * count)
            broken = broken + np.where(poles < 0, np.nan, more[name] * poles)
        alone |= dict.fromkeys(rows[~np.isfinite(unstable + broken)].tolist(), UNSURE)
        for name, column in {
            "stable": unstable == 0, "marginal": 0.0, "unstable": unstable,
            "encirclements": unstable - broken,
            "decay_rate": -root.real, "rightmost_root": root,
        }.items():  # fmt: skip
            table[name][rows] = column
    if margins:
        parts = [margins_of_stack(*_stack(part)) for part in apart(point, joined[1])]
        for name, (key, size) in MARGINS.items():
            values = np.array([getattr(part, key) for part in parts])
            # NaN, of a crossover that there is none of, stands beside an infinite phase.
            which = np.argmin([size(part) for part in parts], axis=0)
            table[name][rows] = np.take_along_axis(values, which[None], axis=0)[0]


def _stack(m: Matrices) -> Blocks:
    """Matrices of many points with the points first."""
    return Blocks(
        *(np.ascontiguousarray(np.moveaxis(part, -1, 0)) for part in (m.A, m.B, m.C, m.D, _lags(m)))
    )


def _lags(m: Matrices) -> Any:
    return m.delays if len(m.delays) else np.zeros((0, m.A.shape[-1]))
