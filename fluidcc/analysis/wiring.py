"""Everybody's linear law, joined by the network's delays: matrices with every delay pulled out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fluidcc.analysis.linear_laws import matters
from fluidcc.analysis.matrices import Matrices, closed
from fluidcc.analysis.signals import LINK_ARRIVAL, Row, Signals, add, endless

if TYPE_CHECKING:
    from fluidcc.analysis.operating_point import Point

__all__ = ["wire", "wire_both"]


class _Wiring(Signals):
    """States and outputs in terms of signals."""

    def rates_of_change(self) -> list[Row]:
        found: list[Row] = []
        for k, source in enumerate(self.sources):
            for i in range(len(source.names)):
                row: Row = {("z", self.first[k] + j): value for j, value in enumerate(source.A[i]) if matters(value)}
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
        """The system, open at the flows' rates ("open"), at the arrivals of "links", or at their "marks"."""
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
        entries = np.array([np.broadcast_to(value, points) for value in values] if points else values)
        M = np.zeros((len(rows), n + K + len(channel), *points), np.result_type(entries, float))
        if at:
            M[tuple(np.transpose(at))] = entries
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
    """Join the laws: the loop "closed", or open as for `fluidcc.linearize`: "open", "links" or "marks".

    `merge` shares one channel among equal lags. Without it the channels depend on who reads alone, so that points with
    other delays have matrices of the same shape.
    """
    if loop == "closed":
        return _closed(point, _Wiring(point, fifo, merge).matrices("open"))
    return _Wiring(point, fifo, merge).matrices(loop)


def wire_both(point: Point, fifo: bool = True) -> tuple[Matrices, Matrices]:
    """The closed loop and the open one."""
    opened = _Wiring(point, fifo, True).matrices("open")
    return _closed(point, opened), opened


def _closed(point: Point, opened: Matrices) -> Matrices:
    if (found := closed(opened)) is None:
        raise endless(point)
    return found
