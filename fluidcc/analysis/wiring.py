"""Everybody's linear law, joined by the network's delays: matrices with every delay pulled out.

To first order at an equilibrium, with rates a of a stream, y of all arrivals at a link and c its capacity:

- an empty queue lets pass what comes; a busy one has dq' = dy/c; a full one keeps its length and loses dpi = c dy/y^2;
- what leaves a busy or full queue of delay q is a' = (c/y) da(t - q) - (a c/y^2) dy(t - q): first in, first out;
- what a source hears at t of hop h it hears at the constant lag b_h. The lag's own changes multiply derivatives of
  rates and delays at rest, which are zero; so de = sum dq(t - b_h), and the product of 1 + q' becomes a sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import BUSY, FULL, PASS
from fluidcc.analysis.rest import (
    Lags,
    evaluate,
    flow_inputs,
    link_inputs,
    link_outputs,
    loss,
    own_states,
    passed,
    route_lags,
)
from fluidcc.errors import InvalidInput
from fluidcc.symbols import SOURCE_INPUTS, e, edot, pi, plain, price, x_tau

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point

__all__ = ["Matrices", "deviation", "wire"]

Row = dict[tuple[str, int], Any]  # coefficients by ("z", state), ("u", input), ("v", channel)
HEARD = (e, edot, pi, price, x_tau)
INPUT = [SOURCE_INPUTS.index(s) for s in HEARD]
LINK_ARRIVAL = 0  # the first of LINK_INPUTS


@dataclass(frozen=True)
class Matrices:
    """A system with its delays pulled out, in the layout of `fluidcc.numerics.linear.DelayLTI`."""

    A: Any
    B: Any
    C: Any
    D: Any
    delays: Any
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    trackers: tuple[str, ...]


@dataclass(frozen=True)
class _Source:
    """The linear law of one class: rows are its states that move."""

    A: Any
    B: Any  # by HEARD
    C: Any
    D: Any
    names: tuple[str, ...]
    trackers: tuple[str, ...]


def _rounded(lag: Any) -> float:
    """Lags that differ by rounding only are one."""
    return round(float(np.real(lag)), 12)


def _add(to: Row, row: Row, factor: Any = 1.0) -> None:
    for column, value in row.items():
        to[column] = to.get(column, 0.0) + factor * value


def sources(point: Point) -> list[_Source]:
    """The linear law of every class, without states that are held or matter to nobody."""
    found: list[Any] = [None] * len(point.classes)
    u = flow_inputs(point)
    for g in point.flow_groups:
        jac = evaluate(g, point.z, u, point.p).jacobians
        r = list(g.law.out).index("rate")
        for j, k in enumerate(g.members):
            A, B, C, D = (M[..., j] for M in jac)
            B, C, D = B[:, INPUT], C[r], D[r, INPUT]
            keep, idle = _moving(A, B, C, g.free[:, j])
            label = point.classes[k].label
            name = [f"{label}.{plain(s)}" for s in g.law.states]
            pick = np.flatnonzero(keep)
            found[k] = _Source(
                A[np.ix_(pick, pick)],
                B[pick],
                C[pick],
                D,
                tuple(name[i] for i in pick),
                tuple(name[i] for i in np.flatnonzero(idle)),
            )
    return found


def _moving(A: Any, B: Any, C: Any, free: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which states move and matter, and which are trackers: constant near the point, or integrators nobody reads."""
    keep = free.copy()
    while True:
        still = keep & ~np.any(A[:, keep].real != 0, axis=1) & ~np.any(B.real != 0, axis=1)
        unread = keep & ~np.any(A[keep].real != 0, axis=0) & (C.real == 0)
        if not np.any(still | unread):
            return keep, free & ~keep
        keep &= ~(still | unread)


class _Wiring:
    """Signals as rows of coefficients; reading one at a lag makes a channel, once."""

    def __init__(self, point: Point, loop: str, fifo: bool, merge: bool) -> None:
        self.point, self.loop, self.fifo, self.merge = point, loop, fifo, merge
        self.lag = Lags(point)
        self.sources = sources(point)
        self.loss, self.out = loss(point), link_outputs(point)
        self.rows: dict[tuple[str, int], Row] = {}
        self.asked: set[tuple[str, int]] = set()
        self.channels: dict[tuple[Any, ...], int] = {}
        self.reads: list[tuple[str, int, Any]] = []
        self.z: list[str] = []
        self.first: list[int] = []
        for source in self.sources:
            self.first.append(len(self.z))
            self.z += source.names
        # Whether one equation of a class hears the links, and how many classes hear one at the same lag.
        self.alone = [sum(np.any(v[:-1] != 0) for v in (*s.B, s.D)) == 1 for s in self.sources]
        lags = [
            (l, _rounded(b))
            for f, back in zip(point.classes, self.lag.backward, strict=True)
            for l, b in zip(f.route, back, strict=True)
        ]
        self.readers = Counter(lags)
        self._place_links()

    def _place_links(self) -> None:
        point = self.point
        self.queue = {}
        for l in np.flatnonzero(point.mode == BUSY).tolist():
            self.queue[l] = len(self.z)
            law: Any = point.links[l].law
            self.z.append(f"{point.links[l].name}.{plain(law.queue)}")
        self.own: dict[int, dict[int, int]] = {l: {} for l in range(len(point.links))}  # link: law state -> place
        self.link_jacobians: dict[int, tuple[Any, Any]] = {}
        u = link_inputs(point)
        for g in point.link_groups:
            own = own_states(g)
            if not own.any() and not {"mark", "price"} & g.law.out.keys():
                continue
            jac = evaluate(g, point.v, u, point.lp).jacobians
            for j, l in enumerate(g.members):
                self.link_jacobians[l] = (g.law, [M[..., j] for M in jac])
                for i in np.flatnonzero(own[:, j]).tolist():
                    self.own[l][i] = len(self.z)
                    self.z.append(f"{point.links[l].name}.{plain(g.law.states[i])}")

    # --- signals --------------------------------------------------------------------------------------------------

    def read(self, kind: str, i: int, lag: Any, reader: Any = None) -> Row:
        """Signal `i` of a kind as it was `lag` seconds ago."""
        if kind == "q" and i not in self.queue:
            return {}
        if self.merge and abs(lag) < 1e-13:
            return self.signal(kind, i)
        key = (kind, i, _rounded(lag)) if self.merge else (kind, i, reader)
        if key not in self.channels:
            self.channels[key] = len(self.reads)
            self.reads.append((kind, i, lag))
        return {("v", self.channels[key]): 1.0}

    def signal(self, kind: str, i: int) -> Row:
        key = (kind, i)
        if key not in self.rows:
            if key in self.asked:
                raise InvalidInput(
                    f"flow {self.point.classes[0].label!r} and others form a loop without any delay, so the network "
                    "has no linearisation; give a link delay, access_delay or return_delay above 0"
                )
            self.asked.add(key)
            self.rows[key] = getattr(self, f"_{kind}")(i)
        return self.rows[key]

    def _x(self, k: int) -> Row:
        row: Row = {("u", k): 1.0}
        if self.loop == "closed":
            _add(row, self.signal("command", k))
        return row

    def _command(self, k: int) -> Row:
        """The rate that the law of class `k` wants."""
        source = self.sources[k]
        row: Row = {("z", self.first[k] + i): value for i, value in enumerate(source.C) if value != 0}
        self.hear(k, source.D, row)
        return row

    def _q(self, l: int) -> Row:
        return {("z", self.queue[l]): 1.0}

    def _y(self, l: int) -> Row:
        """Arrivals at a link."""
        row: Row = {}
        for k, f in enumerate(self.point.classes):
            if l in f.route:
                self._stream(row, f.route, f.route.index(l), self.point.count[k] * self.point.x[k], k)
        for s, (route, rate, _) in enumerate(self.point.constant):
            if l in route:
                self._stream(row, route, route.index(l), rate, -1 - s)
        return row

    def _stream(self, row: Row, route: tuple[int, ...], h: int, rate: Any, k: int) -> None:
        """Add what a class (k >= 0) or a constant flow brings to hop h."""
        point, l = self.point, route[h]
        lag = self.lag.forward[k] if k >= 0 else route_lags(point, route, 0.0)  # of the latter, differences matter
        if not self.fifo:
            if k >= 0:
                _add(row, self.read("x", k, lag[h], (l, k)), point.count[k])
            return
        if h and point.mode[route[h - 1]] != PASS and self.trunk(route[h - 1]) == l:
            return  # all that leaves that link comes here: its capacity, whoever sent it
        kept = passed(point, route)[h]
        if k >= 0:
            _add(row, self.read("x", k, lag[h], (l, k)), point.count[k] * kept)
        for j in range(h):
            if point.mode[route[j]] != PASS:
                factor = -rate * kept / point.y[route[j]]
                _add(row, self.read("y", route[j], lag[h] - lag[j], (l, k, j)), factor)

    def trunk(self, link: int) -> int:
        """The next link of all flows through `link`, or -1."""
        after = set()
        for route in (*(f.route for f in self.point.classes), *(r for r, _, _ in self.point.constant)):
            if link in route:
                h = route.index(link) + 1
                after.add(route[h] if h < len(route) else -1)
        return after.pop() if len(after) == 1 else -1

    def _mark(self, l: int) -> Row:
        return self._output(l, "mark")

    def _price(self, l: int) -> Row:
        return self._output(l, "price")

    def _output(self, l: int, name: str) -> Row:
        law, (_, _, C, D) = self.link_jacobians[l]
        i = list(law.out).index(name)
        return self._by_link(l, law, C[i], D[i, LINK_ARRIVAL])

    def _by_link(self, l: int, law: Any, by_state: Any, by_arrival: Any) -> Row:
        row: Row = {}
        for s, value in enumerate(by_state):
            if law.states[s] == law.queue:
                if l in self.queue:
                    _add(row, self.signal("q", l), value)
            elif s in self.own[l]:
                _add(row, {("z", self.own[l][s]): 1.0}, value)
        if by_arrival != 0:
            _add(row, self.signal("y", l), by_arrival)
        return row

    def hear(self, k: int, by: Any, row: Row) -> None:
        """Add what class `k` hears, weighed by `by` (coefficients of HEARD)."""
        point, f = self.point, self.point.classes[k]
        by_e, by_edot, by_pi, by_price, by_own = by
        kept = np.prod([(1 - self.loss[l]) * (1 - self.out["mark"][l]) for l in f.route]) if by_pi != 0 else 0.0
        for h, l in enumerate(f.route):
            parts: list[tuple[str, Any]] = []
            arrival: Any = 0.0
            if point.mode[l] == BUSY:
                parts.append(("q", by_e))
                arrival = by_edot / point.c[l]
            elif point.mode[l] == FULL:
                arrival = by_pi * kept / (1 - self.loss[l]) * point.c[l] / point.y[l] ** 2
            parts.append(("y", arrival))
            out = self.link_jacobians[l][0].out if l in self.link_jacobians else {}
            if by_pi != 0 and "mark" in out:
                parts.append(("mark", by_pi * kept / (1 - self.out["mark"][l])))
            if "price" in out:
                parts.append(("price", by_price))
            self._hop(k, h, l, [(kind, factor) for kind, factor in parts if factor != 0], row)
        if by_own != 0:
            _add(row, self.read("x", k, self.lag.trip[k], k), by_own)

    def _hop(self, k: int, h: int, l: int, parts: list[tuple[str, Any]], row: Row) -> None:
        """Add what class `k` hears of hop h: on one channel where only one of its equations listens, and only it."""
        lag = self.lag.backward[k][h]
        if len(parts) < 2 or not self.alone[k] or (self.merge and self.readers[l, _rounded(lag)] > 1):
            for kind, factor in parts:
                _add(row, self.read(kind, l, lag, (k, h)), factor)
            return
        mix: Row = {}
        for kind, factor in parts:
            _add(mix, self.signal(kind, l), factor)
        self.rows["mix", len(self.rows)] = mix
        _add(row, self.read("mix", len(self.rows) - 1, lag, (k, h)))

    # --- states and matrices --------------------------------------------------------------------------------------

    def rates_of_change(self) -> list[Row]:
        found: list[Row] = []
        for k, source in enumerate(self.sources):
            for i in range(len(source.names)):
                row: Row = {("z", self.first[k] + j): value for j, value in enumerate(source.A[i]) if value != 0}
                self.hear(k, source.B[i], row)
                found.append(row)
        for l in self.queue:
            row = {}
            _add(row, self.signal("y", l), 1 / self.point.c[l])
            found.append(row)
        for l, places in self.own.items():
            for i in places:
                law, (A, B, _, _) = self.link_jacobians[l]
                found.append(self._by_link(l, law, A[i], B[i, LINK_ARRIVAL]))
        return _ordered(found, self)

    def matrices(self) -> Matrices:
        labels = tuple(f.label for f in self.point.classes)
        K, n = len(labels), len(self.z)
        state = self.rates_of_change()
        if self.loop == "closed":
            out = [self.signal("x", k) for k in range(K)]
        else:
            out = [{at: -value for at, value in self.signal("command", k).items()} for k in range(K)]
        channel: list[Row] = []
        while len(channel) < len(self.reads):  # a signal may itself be made of delayed ones
            kind, i, _ = self.reads[len(channel)]
            channel.append(self.signal(kind, i))
        place = {"z": 0, "u": n, "v": n + K}
        rows = [*state, *out, *channel]
        kind_of: Any = complex if any(isinstance(v, complex) for row in rows for v in row.values()) else float
        M = np.zeros((len(rows), n + K + len(channel)), kind_of)
        for i, row in enumerate(rows):
            for (kind, j), value in row.items():
                M[i, place[kind] + j] = value
        return Matrices(
            M[:n, :n], M[:n, n:], M[n:, :n], M[n:, n:], np.array([lag for _, _, lag in self.reads]),
            tuple(self.z), labels, labels, tuple(t for source in self.sources for t in source.trackers),
        )  # fmt: skip


def _ordered(found: list[Row], wiring: _Wiring) -> list[Row]:
    """Rates of change in the order of the states: flows, queues, then links' own by group."""
    sources = sum(len(s.names) for s in wiring.sources)
    places = [*range(sources), *wiring.queue.values(), *(p for own in wiring.own.values() for p in own.values())]
    return [row for _, row in sorted(zip(places, found, strict=True), key=lambda pair: pair[0])]


def wire(point: Point, loop: str = "closed", fifo: bool = True, merge: bool = True) -> Matrices:
    """Join the laws: the closed loop, or the one that is open at the flows' rates.

    `merge` shares one channel among equal lags. Without it the channels depend on who reads alone, so that points with
    other delays have matrices of the same shape.
    """
    return _Wiring(point, loop, fifo, merge).matrices()


def deviation(point: Point, k: int) -> Matrices:
    """How the flows of class `k` differ from their mean: links hear nothing of that, each only its own past."""
    source, trip = sources(point)[k], Lags(point).trip[k]
    n, own = len(source.names), source.B[:, -1:]
    label = (point.classes[k].label,)
    heard = bool(np.any(own != 0)) or source.D[-1] != 0
    C = np.vstack([source.C, source.C])[: 1 + heard].reshape(1 + heard, n)
    D = np.array([[1.0, source.D[-1]], [1.0, source.D[-1]]])[: 1 + heard, : 1 + heard]
    B = np.hstack([np.zeros((n, 1)), own])[:, : 1 + heard]
    delays = np.array([trip])[: int(heard)]
    return Matrices(source.A, B, C, D, delays, source.names, label, label, source.trackers)
