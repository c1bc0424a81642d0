"""Everybody's linear law, joined by the network's delays: matrices with every delay pulled out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fluidcc.analysis.point import Lags
from fluidcc.analysis.signals import (
    LINK_ARRIVAL,
    LinearLaw,
    Row,
    Signals,
    add,
    endless,
    matters,
    sources,
)

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point


__all__ = [
    "Matrices", "all_flows", "apart", "closed", "deviation", "deviations", "has_loop", "wire",
    "wire_both",
]  # fmt: skip


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


def closed(m: Matrices) -> Matrices | None:
    """An open loop, from rates to minus what the laws want them to be, closed: from disturbances of
    rates to rates.

    None where rates act on one another without any delay, round and round.
    """
    K = len(m.inputs)
    at_once = -m.D[:K, :K]
    rate = term = np.zeros_like(at_once) + np.eye(K).reshape(K, K, *(1 for _ in at_once.shape[2:]))
    if at_once.any():  # the powers of what acts at once end
        for _ in range(K):
            term = _times(at_once, term)
            rate = rate + term
        if term.any():
            return None
    z, v = -_times(rate, m.C[:K]), -_times(rate, m.D[:K, K:])
    into, sent = m.B[:, :K], m.D[K:, :K]
    C = np.concatenate((z, m.C[K:] + _times(sent, z)))
    D = np.concatenate(
        (
            np.concatenate((rate, v), axis=1),
            np.concatenate((_times(sent, rate), m.D[K:, K:] + _times(sent, v)), axis=1),
        )
    )
    B = np.concatenate((_times(into, rate), m.B[:, K:] + _times(into, v)), axis=1)
    return replace(m, A=m.A + _times(into, z), B=B, C=C, D=D)


def _times(left: Any, right: Any) -> Any:
    """The product of two matrices, at each of the points along the axes after the first two."""
    return left @ right if left.ndim == 2 else np.einsum("ij...,jk...->ik...", left, right)


def has_loop(m: Any) -> bool:
    """Whether, in an open loop, any flow hears of what any flow sends; at any of the points."""
    parts: Any = [
        np.reshape(part != 0, (*part.shape[:2], -1)).any(axis=-1) for part in (m.A, m.B, m.C, m.D)
    ]
    A, B, C, D = parts
    inputs, outputs = len(m.inputs), len(m.outputs)
    reach = np.vstack([B[:, :inputs], D[outputs:, :inputs]]).any(axis=1)
    links = np.block([[A, B[:, inputs:]], [C[outputs:], D[outputs:, inputs:]]])
    for _ in range(len(links)):
        reach = reach | links @ reach
    return bool(
        (np.hstack([C[:outputs], D[:outputs, inputs:]]) @ reach).any() or D[:outputs, :inputs].any()
    )


def deviations(point: Point, loop: str = "closed") -> dict[str, Matrices]:
    """`deviation` of every class of two or more flows, by its label."""
    if all(f.count < 2 for f in point.classes):
        return {}
    laws, trips = sources(point), Lags(point).trip
    return {
        f.label: _alone(point, f.label, laws[k], trips[k], loop)
        for k, f in enumerate(point.classes)
        if f.count > 1
    }


def deviation(point: Point, k: int) -> Matrices:
    """How the flows of class `k` differ from their mean: links hear nothing of that, each only
    its own past.
    """
    return _alone(point, point.classes[k].label, sources(point)[k], Lags(point).trip[k], "closed")


def _alone(point: Point, label: str, source: LinearLaw, trip: Any, loop: str) -> Matrices:
    n, own = len(source.names), source.B[:, -1:]
    heard = matters(own) or matters(source.D[-1])
    kind, many = np.result_type(source.A, source.D, source.C), np.shape(point.x)[1:]
    B, C, D = (
        np.zeros((*shape, *many), kind)
        for shape in ((n, 1 + heard), (1 + heard, n), (1 + heard, 1 + heard))
    )
    C[0] = -source.C
    if heard:
        B[:, 1], D[0, 1], D[1, 0] = own[:, 0], -source.D[-1], 1.0
    delays = np.array([trip])[: int(heard)]
    states, ports = (
        tuple(f"differences in {name}" for name in names) for names in (source.names, (label,))
    )
    opened = Matrices(source.A, B, C, D, delays, states, ports, ports, source.trackers)
    return (
        cast(Matrices, closed(opened)) if loop == "closed" else opened
    )  # its own past is never heard at once


def all_flows(point: Point, opened: Matrices) -> Matrices:
    """The return ratio of all flows as one system; see `apart`."""
    return reduce(_beside, apart(point, opened))


def apart(point: Point, opened: Matrices) -> list[Matrices]:
    """The return ratio of all flows, from that by class: as of N flows each, in coordinates of
    orthonormal modes.

    Its parts have nothing to do with one another, so that margins are the least of theirs.

    A class of N moves as one by its mean times sqrt(N): so singular values are those of all flows.
    The differences among its flows are a loop, too, where the law hears its own past; else nothing
    returns of them.
    """
    weight = np.sqrt(point.count / point.count[0]).reshape(-1, *(1 for _ in opened.A.shape[1:]))
    K = len(weight)
    B, C, D = opened.B.copy(), opened.C.copy(), opened.D.copy()
    C[:K] *= weight
    D[:K] *= weight
    B[:, :K] /= np.swapaxes(weight, 0, 1)
    D[:, :K] /= np.swapaxes(weight, 0, 1)
    found = replace(opened, B=B, C=C, D=D)
    return [found, *(own for own in deviations(point, "open").values() if len(own.delays))]


def _beside(one: Matrices, other: Matrices) -> Matrices:
    """Two systems that have nothing to do with one another, as one; of each there are as many
    outputs as inputs.
    """
    a, b = (
        np.concatenate((np.concatenate((m.A, m.B), axis=1), np.concatenate((m.C, m.D), axis=1)))
        for m in (one, other)
    )
    M = np.zeros((len(a) + len(b), len(a) + len(b), *a.shape[2:]), np.result_type(a, b))
    M[: len(a), : len(a)], M[len(a) :, len(a) :] = a, b
    sizes = [len(part) for m in (one, other) for part in (m.states, m.inputs, m.delays)]
    order = np.argsort(np.repeat([0, 1, 2] * 2, sizes), kind="stable")  # states, inputs, channels
    M = M[order][:, order]
    n = len(one.states) + len(other.states)
    return Matrices(
        M[:n, :n], M[:n, n:], M[n:, :n], M[n:, n:], np.concatenate((one.delays, other.delays)),
        one.states + other.states, one.inputs + other.inputs, one.outputs + other.outputs,
        one.trackers,
    )  # fmt: skip


# --- Everybody's linear law, joined by the network's delays: matrices with every delay pulled out


class _Wiring(Signals):
    """States and outputs in terms of signals."""

    def rates_of_change(self) -> list[Row]:
        found: list[Row] = []
        for k, source in enumerate(self.sources):
            for i in range(len(source.names)):
                row: Row = {
                    ("z", self.first[k] + j): value
                    for j, value in enumerate(source.A[i])
                    if matters(value)
                }
                self.hear(k, source.B[i], row)
                found.append(row)
        for l in self.queue:
            row = {}
            add(row, self.signal(self.answered, l), (1 - self.loss[l]) / self.point.c[l])
            if self._drops(l):
                add(row, self.signal("drop", l), -self.point.y[l] / self.point.c[l])
            found.append(row)
        for l, places in self.own.items():
            for i in places:
                law, (A, B, _, _) = self.link_jacobians[l]
                found.append(self._by_link(l, law, A[i], B[i, LINK_ARRIVAL]))
        return _ordered(found, self)

    def _labels(self, loop: str) -> tuple[str, ...]:
        """What goes in and comes out."""
        if loop == "links":
            return tuple(self.point.links[l].name for l in self.answering)
        if loop == "marks":
            return tuple(f"{self.point.links[l].name}.{name}" for l, name in self.tells)
        return tuple(f.label for f in self.point.classes)

    def _back(self, loop: str) -> list[Row]:
        """What comes back to where the loop is broken."""
        if loop == "links":
            return [self.signal("y", l) for l in self.answering]
        if loop == "marks":
            return [self._output(*sent) for sent in self.tells]
        return [self.signal("command", k) for k in range(len(self.point.classes))]

    def matrices(self, loop: str) -> Matrices:
        """The system, open at the flows' rates ("open"), at the arrivals of "links", or at their
        "marks".
        """
        self.loop = loop
        self.answered = "broken" if loop == "links" else "y"
        self.rows = {}
        self.asked = set()
        self.channels = {}
        self.reads = []
        labels = self._labels(loop)
        K, n = len(labels), len(self.z)
        state = self.rates_of_change()
        out = [{at: -value for at, value in row.items()} for row in self._back(loop)]
        channel: list[Row] = []
        while len(channel) < len(self.reads):  # a signal may itself be made of delayed ones
            kind, i, _ = self.reads[len(channel)]
            channel.append(self.signal(kind, i))
        place = {"z": 0, "u": n, "v": n + K}
        rows = [*state, *out, *channel]
        at = [(i, place[kind] + j) for i, row in enumerate(rows) for kind, j in row]
        points = np.shape(self.point.x)[1:]
        values = [value for row in rows for value in row.values()]
        entries = np.array(
            [np.broadcast_to(value, points) for value in values] if points else values
        )
        M = np.zeros((len(rows), n + K + len(channel), *points), np.result_type(entries, float))
        if at:
            M[tuple(np.transpose(at))] = entries
        return Matrices(
            M[:n, :n], M[:n, n:], M[n:, :n], M[n:, n:], np.array([lag for _, _, lag in self.reads]),
            tuple(self.z), labels, labels,
            tuple(t for source in self.sources for t in source.trackers),
        )  # fmt: skip


def _ordered(found: list[Row], wiring: _Wiring) -> list[Row]:
    """Rates of change in the order of the states: flows, queues, then links' own by group."""
    sources = sum(len(s.names) for s in wiring.sources)
    places = [
        *range(sources),
        *wiring.queue.values(),
        *(p for own in wiring.own.values() for p in own.values()),
    ]
    return [row for _, row in sorted(zip(places, found, strict=True), key=lambda pair: pair[0])]


def wire(point: Point, loop: str = "closed", merge: bool = True) -> Matrices:
    """Join the laws: the loop "closed", or open as for `fluidcc.linearize`: "open", "links" or
    "marks".

    `merge` shares one channel among equal lags. Without it the channels depend on who reads alone,
    so that points with other delays have matrices of the same shape.
    """
    if loop == "closed":
        return _closed(point, _Wiring(point, merge).matrices("open"))
    return _Wiring(point, merge).matrices(loop)


def wire_both(point: Point) -> tuple[Matrices, Matrices]:
    """The closed loop and the open one."""
    opened = _Wiring(point, True).matrices("open")
    return _closed(point, opened), opened


def _closed(point: Point, opened: Matrices) -> Matrices:
    if (found := closed(opened)) is None:
        raise endless(point)
    return found
