"""Everybody's linear law, joined by the network's delays: matrices with every delay pulled out.

To first order at an equilibrium, with rates a of a stream, y of all arrivals at a link and c its
capacity:

- an empty queue lets pass what comes; a busy one has dq' = dy/c; a full one keeps its length and
  loses dpi = c dy/y^2;
- a link that drops at a ratio d lets y (1 - d) into its queue: dq' = ((1 - d) dy - y dd)/c, dpi =
  dd, and past an empty queue da (1 - d) - a dd goes on; of a full one the loss is the same,
  whatever was dropped before;
- one that marks some flows at a ratio p and drops of others is offered a (1 - p) of these: da (1 -
  p) - a dp, and they hear p as a loss;
- what leaves a busy or full queue of delay q is a' = (c/y) da(t - q) - (a c/y^2) dy(t - q): first
  in, first out;
- what a source hears at t of hop h it hears at the constant lag b_h. The lag's own changes multiply
  derivatives of rates and delays at rest, which are zero; so de = sum dq(t - b_h), and the product
  of 1 + q' becomes a sum;
- what the link that offers least says it hears after the propagation delay of the way back, past
  all queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import (
    BUSY,
    FULL,
    PASS,
    Lags,
    flows_of,
    link_outputs,
    links_of,
    loss,
    once,
    own_states,
    passed,
    route_lags,
    survives,
)
from fluidcc.base.errors import InvalidInput
from fluidcc.laws.linear import lag_function
from fluidcc.laws.past import pasts
from fluidcc.numerics.linear.wiring import Entries, beside
from fluidcc.simulation.layout import trunks_of
from fluidcc.symbols import RATIOS, SOURCE_INPUTS, e, edot, offer_min, plain, price, x_tau

if TYPE_CHECKING:
    from fluidcc.analysis.point import LawGroup, OperatingPoint
    from fluidcc.laws.linear import Jacobians

HEARD = (e, edot, *RATIOS, price, offer_min, x_tau)
SENT = ("mark", "price", "offer", "drop")
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
    past: tuple[Past, ...] = ()


@dataclass(frozen=True)
class Past:
    """What of a class some time ago its law knows: its state of that number, or of HEARD."""

    kind: str  # "state" or "heard"
    number: int
    lag: Any
    B: Any  # what the flows of the states make of it
    D: Any  # what its rate does


@once
def sources(point: OperatingPoint) -> list[LinearLaw]:
    """The linear law of every class, without states that are held or matter to nobody."""
    found: list[Any] = [None] * len(point.classes)
    flows = flows_of(point)
    for g in flows.groups:
        here = _reach(g, flows.at(g).jacobians)
        keep = _moving(g.free, [here])
        if not np.array_equal(keep, g.free):
            aside = flows._replace(z=[_aside(z) for z in flows.z], u=_aside(flows.u))
            keep = _moving(g.free, [here, _reach(g, aside.at(g).jacobians)])
        _laws_of(point, g, keep, found)
    return found


def all_states(point: OperatingPoint) -> list[LinearLaw]:
    """The linear law of every class with all of its states that no bound holds."""
    found: list[Any] = [None] * len(point.classes)
    for g in point.flow_groups:
        _laws_of(point, g, g.free, found)
    return found


def _laws_of(point: OperatingPoint, g: LawGroup, keep: Any, found: list[Any]) -> None:
    """Put the linear laws of a group's members, with the states to `keep`, at their places."""
    jacobians = flows_of(point).at(g).jacobians
    A, B, C, D = _heard(g, jacobians)
    for j, k in enumerate(g.members):
        name = [f"{point.classes[k].label}.{plain(s)}" for s in g.law.states]
        pick = np.flatnonzero(keep[:, j])
        found[k] = LinearLaw(
            A[:, :, j][np.ix_(pick, pick)],
            B[pick, :, j],
            C[pick, j],
            D[:, j],
            tuple(name[i] for i in pick),
            tuple(name[i] for i in np.flatnonzero((g.free & ~keep)[:, j])),
            _past(point, g, jacobians, j, pick),
        )


def _heard(g: LawGroup, jacobians: Jacobians) -> tuple[Any, Any, Any, Any]:
    """The Jacobians of a group: inputs by `HEARD`, and of the outputs the rate."""
    A, B, C, D = jacobians
    r = list(g.law.out).index("rate")
    return A, B[:, INPUT], C[r], D[r, INPUT]


def _reach(g: LawGroup, jacobians: Jacobians) -> tuple[Any, Any, Any]:
    """What each state moves with, among them, by what is heard, and what the rate is made of: now
    or some time ago.
    """
    A, B, C, _ = _heard(g, jacobians)
    past, r, first = pasts(g.law), list(g.law.out).index("rate"), len(SOURCE_INPUTS)
    heard = [first + k for k, one in enumerate(past) if one.of not in g.law.states]
    B = np.concatenate([B, jacobians.B[:, heard]], axis=1)
    for k, one in enumerate(past):
        if one.of in g.law.states:
            i, column = g.law.states.index(one.of), first + k
            now = (A[:, i : i + 1], jacobians.B[:, column : column + 1])
            A = np.concatenate([A[:, :i], np.where(now[0] != 0, *now), A[:, i + 1 :]], axis=1)
            then = np.where(C[i] != 0, C[i], jacobians.D[r, column])
            C = np.concatenate([C[:i], then[None], C[i + 1 :]])
    return A, B, C


def _past(
    point: OperatingPoint, g: LawGroup, jacobians: Jacobians, j: int, pick: Any
) -> tuple[Past, ...]:
    """What member `j` of a group knows of its past, by the numbers of the states that are kept."""
    if not pasts(g.law):
        return ()
    lags = np.real(lag_function(g.law)(*flows_of(point).numbers(g.members))[:, j])
    found, r, first = [], list(g.law.out).index("rate"), len(SOURCE_INPUTS)
    own = [g.law.states[i] for i in pick]
    for k, one in enumerate(pasts(g.law)):
        if np.min(lags[k]) < 0:
            raise InvalidInput(
                f"flow {point.classes[g.members[j]].name!r} ({g.law.name}) has the past "
                f"{plain(one)}, whose lag is {np.min(lags[k]):.3g} s at rest; make it 0 or more"
            )
        kind = "state" if one.of in g.law.states else "heard"
        among = own if kind == "state" else HEARD
        if one.of in among:
            effect = jacobians.B[pick, first + k, j], jacobians.D[r, first + k, j]
            found.append(Past(kind, list(among).index(one.of), lags[k], *effect))
    return tuple(found)


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
    among, driven, sent = (np.any([_nonzero(part, n) for part in parts], axis=0)
                           for parts, n in zip(zip(*places, strict=True), (3, 3, 2),
                           strict=True))  # fmt: skip
    hears, keep = driven.any(1), free
    while True:
        moves = (among & keep[None]).any(1) | hears
        read = (among & keep[:, None]).any(0) | sent
        fewer = keep & moves & read
        if np.array_equal(fewer, keep):
            return keep
        keep = fewer


def _nonzero(derivatives: Any, axes: int) -> NDArray[np.bool_]:
    """Where a derivative is not zero at any of the points, which lie along the axes after the
    first.
    """
    return np.asarray((derivatives != 0).any(axis=tuple(range(axes, derivatives.ndim))))


def _matters(value: Any) -> bool:
    """Whether a coefficient is not zero, at any of the points."""
    return bool((value != 0).any()) if isinstance(value, np.ndarray) else bool(value != 0)


# --- signals as rows of coefficients --------------------------------------------------------------


Row = dict[tuple[str, int], Any]  # coefficients by ("z", state), ("u", input), ("v", channel)
LINK_ARRIVAL = 0  # the first of LINK_INPUTS


def _rounded(lag: Any) -> float | bytes:
    """Lags that differ by rounding only, beyond eleven digits, are one; of many points at once,
    where they are one at all.
    """
    if np.ndim(lag):
        unit = 10.0 ** np.floor(np.log10(np.maximum(np.abs(lag), 1e-300)))
        return (np.round(lag / unit, 11) * unit).tobytes()
    return float(f"{float(lag):.12g}")


def _add(to: Row, row: Row, factor: Any = 1.0) -> None:
    for column, value in row.items():
        to[column] = to.get(column, 0.0) + factor * value


def _endless(point: OperatingPoint) -> InvalidInput:
    return InvalidInput(
        f"flow {point.classes[0].label!r} and others form a loop without any delay, so the "
        "network has no linearisation; give a link delay, access_delay or return_delay above 0"
    )


class _Wiring:
    """Signals as rows of coefficients; reading one at a lag makes a channel, once.

    `loop` says where it is broken, at "marks" for class `only` alone if it is given; and `answered`
    what links answer: their arrivals, or what stands for them there.
    """

    def __init__(
        self, point: OperatingPoint, loop: str, only: int | None = None, laws: Any = None
    ) -> None:
        self.point, self.loop, self.only = point, loop, only
        self.answered = "broken" if loop == "links" else "y"
        self.rows: dict[tuple[str, int], Row] = {}
        self.asked: set[tuple[str, int]] = set()
        self.channels: dict[tuple[Any, ...], int] = {}
        self.reads: list[tuple[str, int, Any]] = []
        self.lag = Lags(point)
        self.longest = max((np.max(np.abs(trip)) for trip in self.lag.trip), default=0.0)
        self.sources = sources(point) if laws is None else laws
        self.out = link_outputs(point)
        self.loss = loss(point, self.out["drop"])
        self.z: list[str] = []
        self.first: list[int] = []
        for source in self.sources:
            self.first.append(len(self.z))
            self.z += source.names
        # Whether one equation of a class hears the links, and how many classes hear one at the same
        # lag.
        self.alone = [
            sum(_matters(v[:-1]) for v in (*s.B, s.D)) == 1 and not s.past for s in self.sources
        ]
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
        # of each link, by the number of a state of its law
        self.own: list[dict[int, int]] = [{} for _ in point.links]
        self.link_jacobians: dict[int, Any] = {}
        links = links_of(point)
        for g in links.groups:
            own = own_states(g)
            if not own.any() and not g.law.out.keys() & SENT:
                continue
            jac = links.at(g).jacobians
            for j, l in enumerate(g.members):
                self.link_jacobians[l] = [M[:, :, j] for M in jac]
                for i in np.flatnonzero(own[:, j]).tolist():
                    self.own[l][i] = len(self.z)
                    self.z.append(f"{point.links[l].name}.{plain(g.law.states[i])}")
        answers = [l in self.link_jacobians or mode != PASS for l, mode in enumerate(point.mode)]
        self.answering = np.flatnonzero(answers).tolist()
        crossed = {l for f in point.classes for l in f.route}
        self.feedback = [(l, name) for l in sorted(crossed)
                         for name in ("mark", "price", "offer", "loss")
                         if self._sends(l, name)]  # fmt: skip

    # --- signals ----------------------------------------------------------------------------------

    def read(self, kind: str, i: int, lag: Any) -> Row:
        """Signal `i` of a kind as it was `lag` seconds ago."""
        if kind == "q" and i not in self.queue:
            return {}
        if np.all(np.abs(lag) < 1e-12 * self.longest):
            return self.signal(kind, i)
        return self._read(kind, i, lag, _rounded(lag))

    def _read(self, kind: str, i: int, lag: Any, reader: Any) -> Row:
        key = kind, i, reader
        if key not in self.channels:
            self.channels[key] = len(self.reads)
            self.reads.append((kind, i, lag))
        return {("v", self.channels[key]): 1.0}

    def signal(self, kind: str, i: int) -> Row:
        """What a signal is made of. Arrivals at a link, which many hear, are a channel without
        delay, so that the sum is written once.
        """
        key = (kind, i)
        if kind == "y":
            return self._read("arrivals", i, 0.0 * self.point.c[0], "now")
        if key not in self.rows:
            if key in self.asked:
                raise _endless(self.point)
            self.asked.add(key)
            self.rows[key] = self._output(i, kind) if kind in SENT else getattr(self, f"_{kind}")(i)
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
            ("z", self.first[k] + i): value for i, value in enumerate(source.C) if _matters(value)
        }
        self.hear(k, source.D, row)
        self._recall(k, [one.D for one in source.past], row)
        return row

    def _state(self, place: int) -> Row:
        return {("z", place): 1.0}

    def _recall(self, k: int, by: Sequence[Any], row: Row) -> None:
        """Add what class `k` was and heard some time ago, weighed by `by`."""
        for one, factor in zip(self.sources[k].past, by, strict=True):
            if not _matters(factor):
                continue
            if one.kind == "state":
                _add(row, self.read("state", self.first[k] + one.number, one.lag), factor)
            else:
                weights = [factor if n == one.number else 0.0 for n in range(len(HEARD))]
                self.hear(k, weights, row, one.lag)

    def _q(self, l: int) -> Row:
        return {("z", self.queue[l]): 1.0}

    def _arrivals(self, l: int) -> Row:
        """Arrivals at a link."""
        row: Row = {}
        for k, f in enumerate(self.point.classes):
            if l in f.route:
                rate = self.point.count[k] * self.point.x[k]
                self._stream(row, f.route, f.route.index(l), rate, f.spec.ecn, k)
        for route, rate, able in self.point.constant:
            if l in route:
                self._stream(row, route, route.index(l), rate, able, -1)
        return row

    def _stream(
        self, row: Row, route: tuple[int, ...], h: int, rate: Any, able: bool, k: int
    ) -> None:
        """Add what a class (k >= 0) or a constant flow, `able` to be marked or not, brings to hop
        h.
        """
        point, l = self.point, route[h]
        lag = (
            self.lag.forward[k] if k >= 0 else route_lags(point, route, 0.0)
        )  # of the latter, differences matter
        if self.point.delays == "frozen":
            if k >= 0:
                _add(row, self.read("x", k, lag[h]), point.count[k])
            return
        if h and point.mode[route[h - 1]] != PASS and self.trunk.get(route[h - 1]) == l:
            return  # all that leaves that link comes here: its capacity, whoever sent it
        kept = passed(point, route, able, self.loss)[h]
        if k >= 0:
            _add(row, self.read("x", k, lag[h]), point.count[k] * kept)
        for j in range(h + 1):
            if point.mixed[route[j]] and not able:
                factor = -rate * kept / (1 - self.out["mark"][route[j]])
                _add(row, self.read("mark", route[j], lag[h] - lag[j]), factor)
        for j in range(h):
            if point.mode[route[j]] != PASS:
                factor = -rate * kept / point.y[route[j]]
                _add(row, self.read("y", route[j], lag[h] - lag[j]), factor)
            elif self._sends(route[j], "drop"):
                factor = -rate * kept / (1 - self.loss[route[j]])
                _add(row, self.read("drop", route[j], lag[h] - lag[j]), factor)

    @cached_property
    def trunk(self) -> dict[int, int]:
        """Of each link whose flows all go on to the same next one, that one, if it treats them
        alike.
        """
        streams = (*(f.route for f in self.point.classes), *(r for r, *_ in self.point.constant))
        found = trunks_of(streams)
        return {l: after for l, after in found.items() if not self.point.mixed[after]}

    def _sends(self, l: int, name: str) -> bool:
        """Whether a link has a signal; what a full buffer loses, or an early drop, is a "loss"."""
        if name == "loss":
            return bool(self.point.mode[l] == FULL) or self._sends(l, "drop")
        return l in self.link_jacobians and name in self.point.links[l].law.out

    def _told(self, i: int) -> Row:
        """A signal as flows hear it, where the loop is broken there."""
        return {("u", i): 1.0}

    def _output(self, l: int, name: str) -> Row:
        if name == "loss":
            if self.point.mode[l] == FULL:
                row: Row = {}
                _add(row, self.signal("y", l), self.point.c[l] / self.point.y[l] ** 2)
                return row
            name = "drop"
        _, _, C, D = self.link_jacobians[l]
        i = list(self.point.links[l].law.out).index(name)
        return self._by_link(l, C[i], D[i, LINK_ARRIVAL])

    def _by_link(self, l: int, by_state: Any, by_arrival: Any) -> Row:
        row: Row = {}
        law: Any = self.point.links[l].law
        for s, value in enumerate(by_state):
            if law.states[s] == law.queue:
                if l in self.queue:
                    _add(row, self.signal("q", l), value)
            elif s in self.own[l]:
                _add(row, {("z", self.own[l][s]): 1.0}, value)
        if _matters(by_arrival):
            _add(row, self.signal(self.answered, l), by_arrival)
        return row

    def hear(self, k: int, by: Any, row: Row, ago: Any = 0.0) -> None:
        """Add what class `k` hears, or did some time `ago`, weighed by `by` (coefficients of
        HEARD).
        """
        point, f = self.point, self.point.classes[k]
        by_e, by_edot, by_loss, by_mark, by_pi, by_price, by_offer, by_own = by
        if heard := any(map(_matters, (by_loss, by_mark, by_pi))):
            kept, unmarked = survives(point, f, self.loss)
            by_loss = kept * (by_loss + unmarked * by_pi)
            by_mark = unmarked * (by_mark + kept * by_pi)
        told = self.loop == "marks" and self.only in (None, k)
        for h, l in enumerate(f.route):
            parts: dict[str, Any] = {}
            if point.mode[l] == BUSY:
                parts = {"q": by_e, self.answered: by_edot / point.c[l] * (1 - self.loss[l])}
                if self._sends(l, "drop"):
                    parts["drop"] = -by_edot * point.y[l] / point.c[l]
            sent = {"price": by_price}
            if heard:
                sent["loss"] = by_loss / (1 - self.loss[l])
                spared = point.mixed[l] and not f.spec.ecn
                sent["mark"] = (by_loss if spared else by_mark) / (1 - self.out["mark"][l])
            for name, factor in sent.items():
                if not self._sends(l, name):
                    continue
                # a mark of data that leave is of the queue then
                late = name == "mark" and point.links[l].stamp == "departure"
                lag = self.lag.backward[k][h] + ago - late * point.q[l]
                if told or late:
                    self._hear_sent(row, l, name, lag, factor, told)
                elif name != "loss":
                    parts[name] = factor
                elif point.mode[l] == FULL:
                    parts[self.answered] = factor * point.c[l] / point.y[l] ** 2
                else:
                    parts["drop"] = parts.get("drop", 0.0) + factor
            heard_of = [(kind, v) for kind, v in parts.items() if _matters(v)]
            self._hop(k, self.lag.backward[k][h] + ago, l, heard_of, row)
        if point.least[k] >= 0:
            l, lag = int(point.least[k]), self.lag.direct[k] + ago
            self._hear_sent(row, l, "offer", lag, by_offer, told)
        if _matters(by_own):
            _add(row, self.read("x", k, self.lag.trip[k] + ago), by_own)

    def _hear_sent(self, row: Row, l: int, name: str, lag: Any, factor: Any, told: bool) -> None:
        """Add what a link sends, or where it is `told` what stands for that there."""
        if _matters(factor):
            place = ("told", self.feedback.index((l, name))) if told else (name, l)
            _add(row, self.read(*place, lag), factor)

    def _hop(self, k: int, lag: Any, l: int, parts: list[tuple[str, Any]], row: Row) -> None:
        """Add what class `k` hears of a hop: on one channel where only one of its equations
        listens, and only it.
        """
        if len(parts) < 2 or not self.alone[k] or self.readers[l, _rounded(lag)] > 1:
            for kind, factor in parts:
                _add(row, self.read(kind, l, lag), factor)
            return
        mix: Row = {}
        for kind, factor in parts:
            _add(mix, self.signal(kind, l), factor)
        self.rows["mix", len(self.rows)] = mix
        _add(row, self.read("mix", len(self.rows) - 1, lag))

    # --- states and outputs in terms of signals ---------------------------------------------------

    def rates_of_change(self) -> list[Row]:
        found: list[Row] = [{} for _ in self.z]
        for first, k, source in zip(self.first, range(len(self.first)), self.sources, strict=True):
            for i, own in enumerate(source.A):
                row = found[first + i]
                row |= {("z", first + j): v for j, v in enumerate(own) if _matters(v)}
                self.hear(k, source.B[i], row)
                self._recall(k, [one.B[i] for one in source.past], row)
        for l, place in self.queue.items():
            row = found[place]
            _add(row, self.signal(self.answered, l), (1 - self.loss[l]) / self.point.c[l])
            if self._sends(l, "drop"):
                _add(row, self.signal("drop", l), -self.point.y[l] / self.point.c[l])
        for l, places in enumerate(self.own):
            for i, place in places.items():
                A, B, _, _ = self.link_jacobians[l]
                found[place] = self._by_link(l, A[i], B[i, LINK_ARRIVAL])
        return found

    def _ports(self) -> list[tuple[str, Callable[[], Row]]]:
        """What goes in and comes out where the loop is broken: names, and what comes back there."""
        links, classes = self.point.links, self.point.classes
        if self.loop == "links":
            return [(links[l].name, partial(self.signal, "y", l)) for l in self.answering]
        if self.loop == "marks":
            return [(f"{links[l].name}.{n}", partial(self._output, l, n)) for l, n in self.feedback]
        return [(f.label, partial(self.signal, "command", k)) for k, f in enumerate(classes)]

    def matrices(self) -> Matrices:
        """The system, open at the flows' rates ("open"), at the arrivals of "links", or at their
        "marks".
        """
        ports, n = self._ports(), len(self.z)
        labels = tuple(label for label, _ in ports)
        state = self.rates_of_change()
        out = [{at: -value for at, value in back().items()} for _, back in ports]
        channel: list[Row] = []
        while len(channel) < len(self.reads):  # a signal may itself be made of delayed ones
            kind, i, _ = self.reads[len(channel)]
            channel.append(self.signal(kind, i))
        place = {"z": 0, "v": n, "u": n + len(channel)}
        rows = [*state, *channel, *out]
        points = np.shape(self.point.x)[1:]
        row = [i for i, entries in enumerate(rows) for _ in entries]
        column = [place[kind] + j for entries in rows for kind, j in entries]
        value = [v for entries in rows for v in entries.values()]
        found = np.zeros((len(value), *points))
        for i, v in enumerate(value):
            found[i] = v
        delays = np.reshape([lag for _, _, lag in self.reads], (-1, *points))
        of = Entries(np.array(row, np.int64), np.array(column, np.int64), np.atleast_2d(found.T),
                     np.atleast_2d(delays.T), n, len(ports), len(ports))  # fmt: skip
        trackers = tuple(t for source in self.sources for t in source.trackers)
        return Matrices(of.in_order(), tuple(self.z), labels, trackers)


# --- matrices, their loops, and what flows do apart -----------------------------------------------


class Matrices(NamedTuple):
    """A system with its delays pulled out, at one point or many, with the names of its states, of
    its ports (inputs and outputs alike), and of states that were taken as parameters.
    """

    entries: Entries
    states: tuple[str, ...]
    ports: tuple[str, ...]
    trackers: tuple[str, ...]


def closed(m: Matrices, point: OperatingPoint) -> Matrices:
    """An open loop, from rates to minus what the laws want them to be, closed: from disturbances of
    rates to rates, which become channels without delay.

    Raises
    ------
    InvalidInput
        If rates act on one another without any delay, round and round.
    """
    found = m._replace(entries=m.entries.closed())
    _with_delay(found, point)
    return found


def _with_delay(m: Matrices, point: OperatingPoint) -> None:
    """Refuse a system in which signals act on one another without any delay, round and round."""
    of = m.entries
    still = np.append(np.zeros(of.n, bool), ~(of.delays > 0).all(axis=0))
    kept = (of.row < of.n + of.k) & (of.column < of.n + of.k)
    if not of.of(kept).part(still).acyclic:
        raise _endless(point)


def has_loop(m: Matrices) -> bool:
    """Whether, in an open loop, any flow hears of what any flow sends; at any of the points."""
    of, size = m.entries, m.entries.n + m.entries.k
    arrow = (of.value != 0).any(axis=0)
    row, column = of.row[arrow], of.column[arrow]
    reached = np.arange(size + of.m) >= size
    while True:
        heard = row[reached[column]]
        if (heard >= size).any():
            return True
        if reached[heard].all():
            return False
        reached[heard] = True


def deviations(
    point: OperatingPoint, loop: str = "closed", laws: Any = None
) -> dict[str, Matrices]:
    """How the flows of every class of two or more differ from their mean, by its label: links hear
    nothing of that, each only its own past.
    """
    if all(f.count < 2 for f in point.classes):
        return {}
    laws, trips = sources(point) if laws is None else laws, Lags(point).trip
    return {
        f.label: _alone(point, f.label, laws[k], trips[k], loop)
        for k, f in enumerate(point.classes)
        if f.count > 1
    }


def _alone(point: OperatingPoint, label: str, source: LinearLaw, trip: Any, loop: str) -> Matrices:
    """Its states, and channels of what it was: its rate a round trip ago, and its own past."""
    n, own = len(source.names), HEARD.index(x_tau)
    reads = [Past("heard", own, 0.0 * trip, source.B[:, own], source.D[own]), *source.past]
    reads = [
        one for one in reads
        if (one.kind == "state" or one.number == own) and (_matters(one.B) or _matters(one.D))
    ]  # fmt: skip
    port = n + len(reads)
    M = np.zeros((port + 1, port + 1, *np.shape(point.x)[1:]))
    M[:n, :n], M[port, :n] = source.A, -source.C
    for v, one in enumerate(reads, n):
        M[:n, v], M[port, v] = one.B, -one.D
        M[v, port if one.kind == "heard" else one.number] = 1.0
    lags = [one.lag + (trip if one.kind == "heard" else 0.0 * trip) for one in reads]
    states = tuple(f"differences in {name}" for name in source.names)
    row, column = np.nonzero((M != 0).any(axis=tuple(range(2, M.ndim))))
    value = np.atleast_2d(M[row, column].T)
    delays = np.atleast_2d(np.reshape(lags, (-1, *np.shape(point.x)[1:])).T)
    entries = Entries(row, column, value, delays, n, 1, 1)
    opened = Matrices(entries, states, (f"differences in {label}",), source.trackers)
    return closed(opened, point) if loop == "closed" else opened


def clocked(law: Any) -> bool:
    """Whether a window is clocked by acknowledgements."""
    return law.window is not None and law.static_window is None


def cut(point: OperatingPoint, only: int | None = None) -> str:
    """Where the loop is broken whose margins are read, that of all flows or of class `only` alone:
    at the "marks", or else "open" at the flows' rates.

    At its rate the loop of acknowledgements that clocks a window would be broken too, and bears
    next to nothing. So it is at what links send, if such a window hears of that.
    """
    for k, (f, source) in enumerate(zip(point.classes, sources(point), strict=True)):
        law, (first, last) = f.spec.law, (HEARD.index(RATIOS[0]), HEARD.index(offer_min) + 1)
        hears = _matters(source.B[:, first:last]) or _matters(source.D[first:last])
        hears |= any(one.kind == "heard" and first <= one.number < last for one in source.past)
        sent = any(point.mode[l] == FULL or point.links[l].law.out.keys() & SENT for l in f.route)
        if only in (None, k) and clocked(law) and hears and sent:
            return "marks"
    return "open"


def as_one(parts: list[Matrices]) -> Matrices:
    """The parts of a return ratio as one system."""
    if len(parts) == 1:
        return parts[0]
    states, ports = (
        tuple(chain.from_iterable(getattr(m, of) for m in parts)) for of in ("states", "ports")
    )
    return Matrices(beside([m.entries for m in parts]), states, ports, parts[0].trackers)


def return_ratios(point: OperatingPoint, opened: Matrices | None = None) -> list[Matrices]:
    """The loop whose margins are read, in parts (see `cut`, `apart`); `opened` is that at the
    flows' rates, if known.
    """
    if cut(point) == "marks":
        return [wire(point, "marks")]
    return apart(point, wire(point, "open") if opened is None else opened)


def opened_parts(
    point: OperatingPoint, opened: Matrices, ratios: list[Matrices]
) -> dict[str, Matrices]:
    """That loop under "", and differences by class: what flows hear of themselves stays closed
    where it is broken at marks.
    """
    if cut(point) == "marks":
        return {"": ratios[0], **deviations(point)}
    return {"": opened, **deviations(point, "open")}


def apart(point: OperatingPoint, opened: Matrices) -> list[Matrices]:
    """The return ratio of all flows, from that by class: as of N flows each, in coordinates of
    orthonormal modes.

    Its parts have nothing to do with one another, so that margins are the least of theirs.

    A class of N moves as one by its mean times sqrt(N): so singular values are those of all flows.
    The differences among its flows are a loop, too, where the law hears its own past; else nothing
    returns of them.
    """
    of = opened.entries
    own = np.sqrt(point.count / point.count[0])
    weight = np.concatenate((np.ones(of.n + of.k), own))
    found = of._replace(value=of.value * weight[of.row] / weight[of.column])
    others = deviations(point, "open").values()
    return [opened._replace(entries=found), *(one for one in others if one.entries.k)]


def wire(
    point: OperatingPoint, loop: str = "closed", only: int | None = None, laws: Any = None
) -> Matrices:
    """Join the laws, those of `sources` or others: the loop "closed", or open as for
    `fluidcc.linearize`: "open", "links" or "marks", these as class `only` hears them where it is
    given.
    """
    found = _Wiring(point, "open" if loop == "closed" else loop, only, laws).matrices()
    if loop == "closed":
        return closed(found, point)
    _with_delay(found, point)
    return found


def wire_both(point: OperatingPoint) -> tuple[Matrices, Matrices]:
    """The closed loop and the open one."""
    opened = wire(point, "open")
    return closed(opened, point), opened
