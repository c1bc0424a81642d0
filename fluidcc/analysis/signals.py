"""Everybody's linear law, joined by the network's delays: matrices with every delay pulled out.

To first order at an equilibrium, with rates a of a stream, y of all arrivals at a link and c its
capacity:

- an empty queue lets pass what comes; a busy one has dq' = dy/c; a full one keeps its length and
  loses dpi = c dy/y^2;
- a link that drops at a ratio d lets y (1 - d) into its queue: dq' = ((1 - d) dy - y dd)/c, dpi =
  dd, and past an empty queue da (1 - d) - a dd goes on; of a full one the loss is the same,
  whatever was dropped before;
- what leaves a busy or full queue of delay q is a' = (c/y) da(t - q) - (a c/y^2) dy(t - q): first
  in, first out;
- what a source hears at t of hop h it hears at the constant lag b_h. The lag's own changes multiply
  derivatives of rates and delays at rest, which are zero; so de = sum dq(t - b_h), and the product
  of 1 + q' becomes a sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import (
    BUSY,
    FULL,
    PASS,
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
from fluidcc.base.errors import InvalidInput
from fluidcc.symbols import SOURCE_INPUTS, e, edot, pi, plain, price, x_tau

if TYPE_CHECKING:
    from fluidcc.analysis.point import LawGroup, Point
    from fluidcc.laws.linear import Jacobians


__all__ = [
    "HEARD", "LINK_ARRIVAL", "LinearLaw", "Row", "Signals", "add", "endless", "matters",
    "sources",
]  # fmt: skip


HEARD = (e, edot, pi, price, x_tau)
INPUT = [SOURCE_INPUTS.index(s) for s in HEARD]


@dataclass(frozen=True)
class LinearLaw:
    """The linear law of one class: rows are its states that move."""

    A: Any
    B: Any  # by HEARD
    C: Any
    D: Any
    names: tuple[str, ...]
    trackers: tuple[str, ...]


def sources(point: Point) -> list[LinearLaw]:
    """The linear law of every class, without states that are held or matter to nobody."""
    found: list[Any] = [None] * len(point.classes)
    u = flow_inputs(point)
    for g in point.flow_groups:
        A, B, C, D = _heard(g, evaluate(g, point.z, u, point.p).jacobians)
        keep = _moving(g.free, [(A, B, C)])
        if not np.array_equal(keep, g.free):
            aside = evaluate(g, [_aside(z) for z in point.z], _aside(u), point.p)
            keep = _moving(g.free, [(A, B, C), _heard(g, aside.jacobians)[:3]])
        idle = g.free & ~keep
        for j, k in enumerate(g.members):
            name = [f"{point.classes[k].label}.{plain(s)}" for s in g.law.states]
            pick = np.flatnonzero(keep[:, j])
            found[k] = LinearLaw(
                A[:, :, j][np.ix_(pick, pick)],
                B[pick, :, j],
                C[pick, j],
                D[:, j],
                tuple(name[i] for i in pick),
                tuple(name[i] for i in np.flatnonzero(idle[:, j])),
            )
    return found


def _heard(g: LawGroup, jacobians: Jacobians) -> tuple[Any, Any, Any, Any]:
    """The Jacobians of a group: inputs by `HEARD`, and of the outputs the rate."""
    A, B, C, D = jacobians
    r = list(g.law.out).index("rate")
    return A, B[:, INPUT], C[r], D[r, INPUT]


def _aside(values: Any) -> Any:
    """Numbers near those of the point, no two moved alike."""
    share = 1e-3 * np.random.default_rng(2).uniform(0.5, 1.5, np.shape(values)[:1])
    return values + (share * np.maximum(np.abs(values).T, 1e-6)).T


def _moving(free: NDArray[np.bool_], places: list[tuple[Any, Any, Any]]) -> NDArray[np.bool_]:
    """Which states (states, members) move and matter: not constant near the point, nor integrators
    nobody reads.

    A derivative that vanishes at the point alone, as that of -(x - a)^3, makes no tracker: it is
    given at other places too.
    """
    among, driven, told = (np.any([_nonzero(part, n) for part in parts], axis=0)
                           for parts, n in zip(zip(*places, strict=True), (3, 3, 2),
                           strict=True))  # fmt: skip
    hears, keep = driven.any(1), free
    while True:
        moves = (among & keep[None]).any(1) | hears
        read = (among & keep[:, None]).any(0) | told
        fewer = keep & moves & read
        if np.array_equal(fewer, keep):
            return keep
        keep = fewer


def _nonzero(derivatives: Any, axes: int) -> NDArray[np.bool_]:
    """Where a derivative is not zero at any of the points, which lie along the axes after the
    first.
    """
    return np.asarray((derivatives.real != 0).any(axis=tuple(range(axes, derivatives.ndim))))


def matters(value: Any) -> bool:
    """Whether a coefficient is not zero, at any of the points."""
    return bool((value != 0).any()) if isinstance(value, np.ndarray) else bool(value != 0)


# --- Everybody's linear law, joined by the network's delays: matrices with every delay pulled out


Row = dict[tuple[str, int], Any]  # coefficients by ("z", state), ("u", input), ("v", channel)
LINK_ARRIVAL = 0  # the first of LINK_INPUTS


def _rounded(lag: Any) -> float | bytes:
    """Lags that differ by rounding only are one; of many points at once, where they are one at
    all.
    """
    if np.ndim(lag):
        return np.round(np.real(lag), 12).tobytes()
    return round(float(np.real(lag)), 12)


def add(to: Row, row: Row, factor: Any = 1.0) -> None:
    for column, value in row.items():
        to[column] = to.get(column, 0.0) + factor * value


def endless(point: Point) -> InvalidInput:
    return InvalidInput(
        f"flow {point.classes[0].label!r} and others form a loop without any delay, so the "
        "network has no linearisation; give a link delay, access_delay or return_delay above 0"
    )


class Signals:
    """Signals as rows of coefficients; reading one at a lag makes a channel, once.

    `loop` says where it is broken, and `answered` what links answer: their arrivals, or what stands
    for them there.
    """

    loop: str
    answered: str
    rows: dict[tuple[str, int], Row]
    asked: set[tuple[str, int]]
    channels: dict[tuple[Any, ...], int]
    reads: list[tuple[str, int, Any]]

    def __init__(self, point: Point, merge: bool) -> None:
        self.point, self.merge = point, merge
        self.lag = Lags(point)
        self.sources = sources(point)
        self.out = link_outputs(point)
        self.loss = loss(point, self.out["drop"])
        self.z: list[str] = []
        self.first: list[int] = []
        for source in self.sources:
            self.first.append(len(self.z))
            self.z += source.names
        # Whether one equation of a class hears the links, and how many classes hear one at the same
        # lag.
        self.alone = [sum(matters(v[:-1]) for v in (*s.B, s.D)) == 1 for s in self.sources]
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
        self.own: dict[int, dict[int, int]] = {
            l: {} for l in range(len(point.links))
        }  # link: law state -> place
        self.link_jacobians: dict[int, tuple[Any, Any]] = {}
        u = link_inputs(point)
        for g in point.link_groups:
            own = own_states(g)
            if not own.any() and not {"mark", "price", "drop"} & g.law.out.keys():
                continue
            jac = evaluate(g, point.v, u, point.lp).jacobians
            for j, l in enumerate(g.members):
                self.link_jacobians[l] = (g.law, [M[:, :, j] for M in jac])
                for i in np.flatnonzero(own[:, j]).tolist():
                    self.own[l][i] = len(self.z)
                    self.z.append(f"{point.links[l].name}.{plain(g.law.states[i])}")
        answers = [l in self.link_jacobians or mode != PASS for l, mode in enumerate(point.mode)]
        self.answering = np.flatnonzero(answers).tolist()
        crossed = {l for f in point.classes for l in f.route}
        self.tells = [(l, name) for l in sorted(self.link_jacobians) if l in crossed
                      for name in ("mark", "price")
                      if name in self.link_jacobians[l][0].out]  # fmt: skip

    # --- signals ----------------------------------------------------------------------------------

    def read(self, kind: str, i: int, lag: Any, reader: Any = None) -> Row:
        """Signal `i` of a kind as it was `lag` seconds ago."""
        if kind == "q" and i not in self.queue:
            return {}
        if self.merge and np.all(np.abs(lag) < 1e-13):
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
                raise endless(self.point)
            self.asked.add(key)
            self.rows[key] = getattr(self, f"_{kind}")(i)
        return self.rows[key]

    def _x(self, k: int) -> Row:
        return {("u", k): 1.0} if self.loop == "open" else self.signal("command", k)

    def _broken(self, l: int) -> Row:
        """Arrivals that a link answers, where the loop is broken there."""
        return {("u", self.answering.index(l)): 1.0}

    def _command(self, k: int) -> Row:
        """The rate that the law of class `k` wants."""
        source = self.sources[k]
        row: Row = {
            ("z", self.first[k] + i): value for i, value in enumerate(source.C) if matters(value)
        }
        self.hear(k, source.D, row)
        return row

    def _q(self, l: int) -> Row:
        return {("z", self.queue[l]): 1.0}

    def _y(self, l: int) -> Row:
        """Arrivals at a link."""
        row: Row = {}
        for k, f in enumerate(self.point.classes):
            if l in f.route:
                self._stream(
                    row, f.route, f.route.index(l), self.point.count[k] * self.point.x[k], k
                )
        for s, (route, rate, _) in enumerate(self.point.constant):
            if l in route:
                self._stream(row, route, route.index(l), rate, -1 - s)
        return row

    def _stream(self, row: Row, route: tuple[int, ...], h: int, rate: Any, k: int) -> None:
        """Add what a class (k >= 0) or a constant flow brings to hop h."""
        point, l = self.point, route[h]
        lag = (
            self.lag.forward[k] if k >= 0 else route_lags(point, route, 0.0)
        )  # of the latter, differences matter
        if self.point.delays == "frozen":
            if k >= 0:
                add(row, self.read("x", k, lag[h], (l, k)), point.count[k])
            return
        if h and point.mode[route[h - 1]] != PASS and self.trunk[route[h - 1]] == l:
            return  # all that leaves that link comes here: its capacity, whoever sent it
        kept = passed(point, route, self.loss)[h]
        if k >= 0:
            add(row, self.read("x", k, lag[h], (l, k)), point.count[k] * kept)
        for j in range(h):
            if point.mode[route[j]] != PASS:
                factor = -rate * kept / point.y[route[j]]
                add(row, self.read("y", route[j], lag[h] - lag[j], (l, k, j)), factor)
            elif self._drops(route[j]):
                factor = -rate * kept / (1 - self.loss[route[j]])
                add(row, self.read("drop", route[j], lag[h] - lag[j], (l, k, j)), factor)

    @cached_property
    def trunk(self) -> dict[int, int]:
        """Of each link that is crossed the next one of all flows through it, or -1."""
        after: dict[int, set[int]] = {}
        for route in (
            *(f.route for f in self.point.classes),
            *(r for r, _, _ in self.point.constant),
        ):
            for link, following in zip(route, (*route[1:], -1), strict=True):
                after.setdefault(link, set()).add(following)
        return {link: next(iter(links)) if len(links) == 1 else -1 for link, links in after.items()}

    def _drops(self, l: int) -> bool:
        return l in self.link_jacobians and "drop" in self.link_jacobians[l][0].out

    def _drop(self, l: int) -> Row:
        return self._output(l, "drop")

    def _mark(self, l: int) -> Row:
        return self._told(l, "mark")

    def _price(self, l: int) -> Row:
        return self._told(l, "price")

    def _told(self, l: int, name: str) -> Row:
        return (
            {("u", self.tells.index((l, name))): 1.0}
            if self.loop == "marks"
            else self._output(l, name)
        )

    def _output(self, l: int, name: str) -> Row:
        law, (_, _, C, D) = self.link_jacobians[l]
        i = list(law.out).index(name)
        return self._by_link(l, law, C[i], D[i, LINK_ARRIVAL])

    def _by_link(self, l: int, law: Any, by_state: Any, by_arrival: Any) -> Row:
        row: Row = {}
        for s, value in enumerate(by_state):
            if law.states[s] == law.queue:
                if l in self.queue:
                    add(row, self.signal("q", l), value)
            elif s in self.own[l]:
                add(row, {("z", self.own[l][s]): 1.0}, value)
        if matters(by_arrival):
            add(row, self.signal(self.answered, l), by_arrival)
        return row

    def hear(self, k: int, by: Any, row: Row) -> None:
        """Add what class `k` hears, weighed by `by` (coefficients of HEARD)."""
        point, f = self.point, self.point.classes[k]
        by_e, by_edot, by_pi, by_price, by_own = by
        heard = matters(by_pi)
        kept = (
            np.prod([(1 - self.loss[l]) * (1 - self.out["mark"][l]) for l in f.route], axis=0)
            if heard
            else 0.0
        )
        for h, l in enumerate(f.route):
            parts: list[tuple[str, Any]] = []
            arrival: Any = 0.0
            if point.mode[l] == BUSY:
                parts.append(("q", by_e))
                arrival = by_edot / point.c[l] * (1 - self.loss[l])
            elif point.mode[l] == FULL:
                arrival = by_pi * kept / (1 - self.loss[l]) * point.c[l] / point.y[l] ** 2
            parts.append((self.answered, arrival))
            if self._drops(l) and point.mode[l] != FULL:
                lost = by_pi * kept / (1 - self.loss[l]) if heard else 0.0
                parts.append(
                    (
                        "drop",
                        lost
                        - (by_edot * point.y[l] / point.c[l] if point.mode[l] == BUSY else 0.0),
                    )
                )
            out = self.link_jacobians[l][0].out if l in self.link_jacobians else {}
            if heard and "mark" in out:
                parts.append(("mark", by_pi * kept / (1 - self.out["mark"][l])))
            if "price" in out:
                parts.append(("price", by_price))
            self._hop(k, h, l, [(kind, factor) for kind, factor in parts if matters(factor)], row)
        if matters(by_own):
            add(row, self.read("x", k, self.lag.trip[k], k), by_own)

    def _hop(self, k: int, h: int, l: int, parts: list[tuple[str, Any]], row: Row) -> None:
        """Add what class `k` hears of hop h: on one channel where only one of its equations
        listens, and only it.
        """
        lag = self.lag.backward[k][h]
        if (
            len(parts) < 2
            or not self.alone[k]
            or (self.merge and self.readers[l, _rounded(lag)] > 1)
        ):
            for kind, factor in parts:
                add(row, self.read(kind, l, lag, (k, h)), factor)
            return
        mix: Row = {}
        for kind, factor in parts:
            add(mix, self.signal(kind, l), factor)
        self.rows["mix", len(self.rows)] = mix
        add(row, self.read("mix", len(self.rows) - 1, lag, (k, h)))
