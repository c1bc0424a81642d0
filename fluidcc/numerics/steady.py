"""The steady state of a network as a mixed complementarity problem, on plain arrays.

Per link one unknown s >= 0 stands for delay and loss together: while s <= q_max it is the queueing delay, beyond it the
queue is full and the loss ratio is 1 - 1/(1 + s - q_max). So "empty", "queueing" and "full" are one complementarity
condition, s >= 0, admitted rate <= capacity, one of them with equality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from fluidcc.numerics.complementarity import DENSE, Problem

__all__ = ["FlowGroup", "LinkGroup", "SteadyNetwork"]

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

LONGEST_QUEUE = 1e7
"""A queueing delay [s] beyond which a queue counts as growing without limit."""

LARGEST_RATE = 1e9
"""A rate this many times the largest capacity counts as growing without limit."""


@dataclass(frozen=True)
class FlowGroup:
    """Flows of one law. `evaluate(z, signals)` takes states (k, n) and signals (4, n): e, pi, price and own rate.

    It returns F (k, n), H (n,), and the derivatives A (k, k, n), B (k, 4, n), C (k, n), D (4, n).
    """

    index: Index
    evaluate: Callable[[Vector, Vector], tuple[Vector, Vector, Vector, Vector, Vector, Vector]]
    initial: Vector
    lower: Vector
    upper: Vector


@dataclass(frozen=True)
class LinkGroup:
    """Links of one law. `evaluate(v)` takes (1 + k + 1, n): queueing delay, other states, arrival rate.

    It returns values (k + 2, n) -- the flows of the other states, mark and price -- and derivatives (k + 2, k + 2, n).
    """

    index: Index
    evaluate: Callable[[Vector], tuple[Vector, Vector]]
    initial: Vector
    lower: Vector
    upper: Vector


@dataclass(frozen=True)
class Signals:
    """What follows from the links' unknowns."""

    queue: Vector  # queueing delay (L,) [s]
    loss: Vector  # loss ratio (L,)
    queue_slope: Vector  # d queue / d s
    loss_slope: Vector  # d loss / d s
    survival: Vector  # (F, H): share of the flow that reaches hop h, at rest
    passing: Vector  # the same, where a busy queue lets no more than its capacity through
    path: Vector  # (4, F): e, pi, price, own rate


class SteadyNetwork:
    """Unknowns, residual and Jacobian of the steady state.

    Parameters
    ----------
    route : int array, shape (flows, hops)
        Link of each hop, -1 past the end.
    base : array, shape (flows,)
        One-way propagation delay [s].
    capacity, q_max : array, shape (links,)
        [bit/s], [s]; q_max may be 0 or infinite.
    queued : bool array, shape (links,)
        Which links hold a queue.
    flows, links : list
        The laws; `flows` cover every flow and `links` every link.
    """

    def __init__(
        self,
        route: Index,
        base: Vector,
        capacity: Vector,
        q_max: Vector,
        queued: NDArray[np.bool_],
        flows: list[FlowGroup],
        links: list[LinkGroup],
    ) -> None:
        self.route, self.base, self.c, self.q_max, self.queued = route, base, capacity, q_max, queued
        self.flows, self.links = flows, links
        F, L = len(route), len(capacity)
        self.X, self.Y, self.S, self.M, self.P = (
            np.arange(n) + k for n, k in zip((F, L, L, L, L), (0, F, F + L, F + 2 * L, F + 3 * L), strict=True)
        )
        self.n = F + 4 * L
        self.Z = [self._take(g.initial.shape) for g in flows]
        self.V = [self._take(g.initial.shape) for g in links]
        self.inside = route >= 0
        self.at = np.where(self.inside, route, 0)

    def _take(self, shape: tuple[int, ...]) -> Index:
        block = np.arange(self.n, self.n + int(np.prod(shape))).reshape(shape)
        self.n += block.size
        return block

    def _laws(self) -> list[tuple[list[Index], Any]]:
        return [(self.Z, self.flows), (self.V, self.links)]

    def problem(self) -> Problem:
        """The system to hand to `find_equilibrium`."""
        lower, upper, mass = np.full(self.n, -np.inf), np.full(self.n, np.inf), np.zeros(self.n)
        scale, ceiling = np.zeros(self.n), np.full(self.n, np.inf)
        lower[self.S], mass[self.S], scale[self.S], ceiling[self.S] = 0.0, 1.0, 0.02, LONGEST_QUEUE
        upper[self.S[~self.queued]] = 0.0
        scale[self.X] = 1e-6 * np.max(self.c, initial=1.0)
        scale[self.Y] = 1e-6 * self.c
        ceiling[self.X] = LARGEST_RATE * np.max(self.c, initial=1.0)
        scale[self.M] = 1e-6
        ceiling[self.S[np.isfinite(self.q_max)]] = 1e15
        for blocks, groups in self._laws():
            for block, g in zip(blocks, groups, strict=True):
                lower[block], upper[block], mass[block] = g.lower, g.upper, 1.0
        kink = np.full(self.n, np.inf)
        kink[self.S] = np.where(self.q_max > 0, self.q_max, np.inf)
        return Problem(self.residual, lower, upper, mass, scale, ceiling, kink)

    def start(self, rate: Vector, rtt: Vector) -> Vector:
        """Unknowns to start from, given rates [bit/s] and propagation delays [s]: laws may divide by the latter."""
        u = np.zeros(self.n)
        u[self.S[self.at[rtt == 0, 0]]] = np.where(self.queued, np.minimum(0.01, 0.5 * self.q_max), 0.0)[
            self.at[rtt == 0, 0]
        ]
        u[self.X] = rate
        np.add.at(u, self.Y[self.at[self.inside]], np.broadcast_to(rate[:, None], self.at.shape)[self.inside])
        for blocks, groups in self._laws():
            for block, g in zip(blocks, groups, strict=True):
                u[block] = g.initial
        return u

    def signals(self, u: Vector) -> Signals:
        """Delays, losses and path sums."""
        s = u[self.S]
        queue, over = np.minimum(s, self.q_max), np.maximum(s - self.q_max, 0.0)
        loss = over / (1 + over)
        rising = u[self.Y] > self.c  # at the kink: on into loss, or back into delay
        filling = np.where(self.q_max > 0, (s < self.q_max) | ((s == self.q_max) & ~rising), False)
        survival = self._along(1 - loss)
        # At rest this throttle is 1; before, it keeps the queue at the first of several equal links in series.
        busy = np.where(s > 0, np.minimum(1.0, self.c / np.maximum(u[self.Y] * (1 - loss), 1e-300)), 1.0)
        unmarked = np.prod(np.where(self.inside, (1 - u[self.M])[self.at], 1.0), axis=1)
        path = np.vstack(
            [
                self.base + np.where(self.inside, queue[self.at], 0.0).sum(axis=1),
                1 - survival[:, -1] * unmarked,
                np.where(self.inside, u[self.P][self.at], 0.0).sum(axis=1),
                u[self.X],
            ]
        )
        return Signals(
            queue,
            loss,
            np.where(filling, 1.0, 0.0),
            np.where(filling, 0.0, (1 - loss) ** 2),
            survival[:, :-1],
            self._along((1 - loss) * busy)[:, :-1],
            path,
        )

    def _along(self, factor: Vector) -> Vector:
        """Products of a factor per link along each route, shape (F, H + 1)."""
        steps = np.ones((len(self.at), self.at.shape[1] + 1))
        np.multiply.accumulate(np.where(self.inside, factor[self.at], 1.0), axis=1, out=steps[:, 1:])
        return steps

    def residual(self, u: Vector) -> tuple[Vector, Any]:
        """G(u) and its Jacobian, a csr_array of a large network and an array of a small one."""
        with np.errstate(all="ignore"):
            G, entries = np.zeros(self.n), _Entries()
            sig = self.signals(u)
            self._queues(u, sig, G, entries)
            self._arrivals(u, sig, G, entries)
            for g, block in zip(self.flows, self.Z, strict=True):
                self._flow_group(g, block, u, sig, G, entries)
            for k, block in zip(self.links, self.V, strict=True):
                self._link_group(k, block, u, sig, G, entries)
            return G, entries.matrix(self.n)

    def _queues(self, u: Vector, sig: Signals, G: Vector, entries: _Entries) -> None:
        y = u[self.Y]
        G[self.S] = y * (1 - sig.loss) / self.c - 1
        entries.add(self.S, self.Y, (1 - sig.loss) / self.c)
        entries.add(self.S, self.S, -y * sig.loss_slope / self.c)

    def _arrivals(self, u: Vector, sig: Signals, G: Vector, entries: _Entries) -> None:
        x, lossy = u[self.X], np.any(sig.loss_slope > 0)
        G[self.Y] = -u[self.Y]
        entries.add(self.Y, self.Y, -np.ones(len(self.Y)))
        for h in range(self.route.shape[1]):
            on = np.flatnonzero(self.inside[:, h])
            rows, share = self.Y[self.at[on, h]], sig.passing[on, h]
            np.add.at(G, rows, x[on] * share)
            entries.add(rows, self.X[on], share)
            for m in range(h if lossy else 0):
                before = self.at[on, m]
                entries.add(rows, self.S[before], -x[on] * share / (1 - sig.loss[before]) * sig.loss_slope[before])

    def _flow_group(self, g: FlowGroup, block: Index, u: Vector, sig: Signals, G: Vector, entries: _Entries) -> None:
        f = g.index
        F, H, A, B, C, D = g.evaluate(u[block], sig.path[:, f])
        G[block], G[self.X[f]] = F, H - u[self.X[f]]
        entries.add(self.X[f], self.X[f], D[3] - 1)
        for k, row in enumerate(block):
            entries.add(row, self.X[f], B[k, 3])
            entries.add(self.X[f], row, C[k])
            for j, column in enumerate(block):
                entries.add(row, column, A[k, j])
        for rows, by in [*zip(block, B, strict=True), (self.X[f], D)]:
            self._path_entries(f, rows, by, u, sig, entries)

    def _path_entries(self, f: Index, rows: Index, by: Vector, u: Vector, sig: Signals, entries: _Entries) -> None:
        kept = 1 - sig.path[1, f]
        for h in range(self.route.shape[1]):
            on = self.inside[f, h]
            l, e, pi, price = self.at[f[on], h], by[0, on], by[1, on], by[2, on]
            lost = pi * kept[on] / (1 - sig.loss[l])
            entries.add(rows[on], self.S[l], e * sig.queue_slope[l] + lost * sig.loss_slope[l])
            entries.add(rows[on], self.M[l], pi * kept[on] / (1 - u[self.M[l]]))
            entries.add(rows[on], self.P[l], price)

    def _link_group(self, g: LinkGroup, block: Index, u: Vector, sig: Signals, G: Vector, entries: _Entries) -> None:
        l = g.index
        value, slope = g.evaluate(np.vstack([sig.queue[l], u[block], u[self.Y[l]]]))
        rows = [*block, self.M[l], self.P[l]]
        columns = [self.S[l], *block, self.Y[l]]
        for i, row in enumerate(rows):
            G[row] = value[i]
            for j, column in enumerate(columns):
                entries.add(row, column, slope[i, j] * (sig.queue_slope[l] if j == 0 else 1.0))
        for outputs in rows[-2:]:
            G[outputs] -= u[outputs]
            entries.add(outputs, outputs, -np.ones(len(l)))


class _Entries:
    """Coordinates of a sparse matrix; those that meet add up."""

    def __init__(self) -> None:
        self.parts: list[tuple[Any, Any, Any]] = []

    def add(self, rows: Index, columns: Index, values: Vector) -> None:
        if values.shape != rows.shape:
            values = np.broadcast_to(values, rows.shape)
        self.parts.append((rows, columns, values))

    def matrix(self, n: int) -> Any:
        rows, columns, values = (np.concatenate(x) for x in zip(*self.parts, strict=True))
        if n <= DENSE:
            return np.bincount(rows * n + columns, values, n * n).reshape(n, n)
        keep = values != 0  # also keeps NaN, which must be seen
        return csr_array(coo_array((values[keep], (rows[keep], columns[keep])), shape=(n, n)))
