"""Multipliers of a linear system with delays whose states jump at constant periods.

Between ticks x' = A x + B v and w = C x + D v, where v_j(t) is one of the signals w a delay tau_j
ago; at a tick x becomes G x + H v. Eigenvalues are those of the map over the common period, of the
states and of the signals' past, by collocation at Gauss nodes: pieces are broken at ticks and where
delays carry these, so that between them everything is smooth, and states follow by the implicit
Runge-Kutta method of these nodes (Breda, Maset and Vermiglio, SIAM J. Numer. Anal. 50, 2012).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import Undecided, Unsupported
from fluidcc.numerics.linear.collocation import gauss, interpolation
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.numerics.linear.roots import Searches

Array = NDArray[np.float64]

MOST_TICKS = 100_000
"""Of the shortest period within the common one."""
AGREED = 1e-8
"""Difference of a multiplier at two resolutions at which it is known."""
ONE = 1e-7
"""A multiplier so near to 1 is 1, and those so near to the unit circle are on it."""
LEADING = 3
"""Multipliers other than 1 that are wanted, as long as pieces have less than `ENOUGH` nodes."""
FEW, ENOUGH, MOST = 3, 12, 48
"""Nodes of a piece, at first, where one multiplier is enough, and at last."""
ORDER = 2
"""Up to which derivative breaks are sought, at first; one more each time that nodes are doubled."""
RESOLVED = 2.0
"""Length of a piece times `_quickest`, at most."""
LEAST = 1e-3
"""Of multipliers below this it is not asked whether some were missed."""
ROOTS = 8
"""How many are asked for of a system without ticks."""
LARGEST = 3000
"""Unknowns of the map, at most: 10 s."""
ROUNDING = 1e-13
"""What is so small, relatively, is rounding."""
PLACES = 10**9
SAME = 1 / PLACES
"""Instants so near, relative to the common period, are one."""


class Update(NamedTuple):
    """What happens every `period` seconds from `first` on: x becomes G x + H v."""

    period: float
    first: float
    G: Array
    H: Array


class Ticking(NamedTuple):
    """A linear system with delays and ticks; of simultaneous ones the first listed is first."""

    A: Array
    B: Array
    C: Array
    D: Array
    delays: Array  # all above 0
    updates: Sequence[Update]


def common_period(periods: Sequence[float]) -> float:
    """The least common multiple of some periods [s]."""
    shortest = min(periods)
    ratios = [Fraction(T / shortest).limit_denominator(1000) for T in periods]
    # of fractions in lowest terms, the first of which is 1
    multiple = math.lcm(*(r.numerator for r in ratios))
    exact = all(abs(T / shortest - r) < 1e-9 * r for T, r in zip(periods, ratios, strict=True))
    if not exact or multiple > MOST_TICKS:
        said = ", ".join(f"{T:.9g}" for T in sorted({*periods}))
        raise Unsupported(
            f"periods of {said} s have no short common multiple; take ones in the ratio of small "
            f"numbers"
        )
    return shortest * multiple


def multipliers(system: Ticking, period: float) -> tuple[NDArray[np.complex128], float]:
    """The leading multipliers over the common period, by falling modulus, as far as two
    resolutions agree on them to 1e-8; and by how much the largest do not.

    Where no tick changes anything they are powers of roots. Else the coarser resolution is so fine
    that it sees every multiplier as large as those: an eigenfunction of one has derivatives that
    grow by `_quickest` each at most.

    Raises
    ------
    Undecided
        If not even the largest that is not 1 is known with 48 nodes a piece, or with a map of
        3,000 unknowns; or if signals hear themselves so loud that nothing bounds how quick they
        are.
    """
    one = np.eye(len(system.A))
    system = system._replace(updates=[u for u in system.updates if (one != u.G).any() or u.H.any()])
    if not system.updates:
        return _of_roots(system, period), ROUNDING
    coarse, best, nodes, order = None, None, FEW, ORDER
    quickest = _quickest(system, 0.0)
    while nodes <= MOST and (best is None or nodes <= ENOUGH) and quickest < math.inf:
        grid = _Grid(system, period, order, nodes, RESOLVED / quickest if quickest else math.inf)
        if max(grid.unknowns, grid.pieces) > LARGEST:
            break
        fine = grid.eigenvalues()
        if coarse is not None:
            gaps = _gaps(coarse, fine)
            known = fine[: len(gaps)]
            others = known[np.abs(known - 1) > ONE]
            slowest = (
                min(max(-math.log(max([LEAST, *abs(others)])), 0.0), -math.log(LEAST)) / period
            )
            seen = grid.length.max() * _quickest(system, slowest) <= nodes / 2
            if seen and (len(others) or len(known) == len(fine)):
                near = np.abs(known) > 0.5 * np.abs(known[0])
                best = known, max(ROUNDING, max(np.array(gaps)[near], default=0.0))
                if len(others) >= LEADING or len(known) == len(fine):
                    break
        coarse, nodes, order = fine, 2 * nodes, order + 1
    if best is not None:
        return best
    longest = max(system.delays, default=0.0)
    raise Undecided(
        f"the multipliers over {period:.4g} s are not known to {AGREED:g}: with "
        f"{len(system.updates)} ticks, delays up to {longest:.4g} s and rates of change up to "
        f"{quickest:.3g} /s it takes too many pieces; simulate it, or take fewer different periods "
        "and delays, or laws that smooth what they send"
    )


def _of_roots(system: Ticking, period: float) -> NDArray[np.complex128]:
    """The leading multipliers of a system without ticks."""
    lti = DelayLTI(system.A, system.B, system.C, system.D, delays=system.delays)
    roots = Searches(lti._entries, exact=False).rightmost(ROOTS, fewer=True)
    return np.asarray(np.exp(period * roots))


def _quickest(system: Ticking, decay: float) -> float:
    """By how much more each derivative of the states can be, between breaks, of what decays so
    slowly at least [1/s]; infinite if signals alone can.

    |x'| <= |A| |x| + |B| |v| and |v| <= e^(decay tau) (|C| |x| + |D| |v|), and so for all that come
    after; the largest eigenvalue of what |x| is multiplied by does not depend on units.
    """
    with np.errstate(over="ignore"):
        louder = np.exp(np.minimum(decay * system.delays, 100.0))[:, None]
    own = louder * np.abs(system.D)
    if len(own) and np.abs(np.linalg.eigvals(own)).max() >= 1:
        return math.inf
    heard = np.linalg.solve(np.eye(len(own)) - own, louder * np.abs(system.C))
    every = np.abs(system.A) + np.abs(system.B) @ heard
    # what is in no circle of states makes none quicker, whatever rounding its numbers have
    values = np.abs(np.linalg.eigvals(_in_circles(every)))
    return float(values.max(initial=0.0))


def _in_circles(K: Array) -> Array:
    """The entries of a matrix that lie on circles of it."""
    from scipy.sparse.csgraph import connected_components

    of = connected_components(K != 0, directed=True, connection="strong")[1]
    return np.where(of[:, None] == of, K, 0.0)


def _gaps(coarse: NDArray[np.complex128], fine: NDArray[np.complex128]) -> list[float]:
    """The differences of the leading multipliers that are known."""
    left, found = coarse, list[float]()
    for value in fine:
        gaps = np.abs(left - value)
        if not len(left) or not gaps.min() <= AGREED * max(1.0, abs(value)):
            break
        found.append(float(gaps.min()))
        left = np.delete(left, gaps.argmin())
    # one of a pair says as little as none
    end = len(found)
    if 0 < end < len(fine) and fine[end - 1].imag and fine[end] == fine[end - 1].conjugate():
        found.pop()
    return found


# --- pieces ---------------------------------------------------------------------------------------


def _instants(tick: Update, period: float) -> list[int]:
    """When something happens within the period, in `SAME` of it."""
    times = tick.first + tick.period * np.arange(round(period / tick.period))
    return [round(t / (SAME * period)) % PLACES for t in times.tolist()]


def _breaks(system: Ticking, period: float, order: int) -> dict[tuple[int, int], int]:
    """The first derivative that jumps, up to one of some order, by the instant (see `_instants`)
    and the state, or channel from n on.

    Signals that hear themselves echo a jump for ever, each time by the gain of that circle: it is
    followed until it is no more than rounding.
    """
    n, lag = len(system.A), np.rint(system.delays / (SAME * period)).astype(int)
    read_by = [
        np.flatnonzero(row).tolist()
        for row in np.block([[system.A, system.B], [system.C, system.D]]).T != 0
    ]
    echo = np.abs(np.linalg.eigvals(np.abs(system.D))).max(initial=0.0)
    most = math.log(ROUNDING) / math.log(echo) + len(lag) if ROUNDING < echo < 1 else len(lag)
    heap = [
        (0, 0, at, i)
        for tick in system.updates
        for i in np.flatnonzero((np.eye(n) != tick.G).any(axis=1) | tick.H.any(axis=1)).tolist()
        for at in _instants(tick, period)
    ]
    heapq.heapify(heap)
    found: dict[tuple[int, int], int] = {}
    fewest: dict[tuple[int, int], int] = {}  # times that it went from channel to channel
    while heap and len(found) <= LARGEST * (n + len(lag)):
        jumps, laps, at, i = heapq.heappop(heap)
        if jumps > order or laps > most or fewest.get((at, i), most + 1) <= laps:
            continue
        fewest[at, i] = laps
        found.setdefault((at, i), jumps)
        for j in read_by[i]:
            if j < n:
                heapq.heappush(heap, (jumps + 1, laps, at, j))
            else:
                later = (at + int(lag[j - n])) % PLACES
                heapq.heappush(heap, (jumps, laps + (i >= n), later, j))
    return found


def struck(system: Ticking, period: float) -> NDArray[np.bool_]:
    """Which channels jump just when a tick reads them, so that a delay a little shorter is another
    system.
    """
    found, n = _breaks(system, period, 0), len(system.A)
    hit = np.zeros(len(system.delays), bool)
    for tick in system.updates:
        for j in np.flatnonzero(tick.H.any(axis=0)):
            hit[j] |= any(
                (at + off, n + j) in found for at in _instants(tick, period) for off in (-1, 0, 1)
            )
    return hit


class _Grid:
    """Pieces of a period and of the past, with Gauss nodes in each, and the map on them."""

    def __init__(
        self, system: Ticking, period: float, order: int, nodes: int, longest: float
    ) -> None:
        self.system, self.period, self.nodes, self.n = system, period, nodes, len(system.A)
        rows = np.hstack([system.C, system.D])
        own, signal = np.unique(rows, axis=0, return_inverse=True)
        self.C, self.D, self.signal = own[:, : self.n], own[:, self.n :], signal.reshape(-1)
        instants = {0, *(at for at, _ in _breaks(system, period, order))}
        ends = np.append(SAME * period * np.array(sorted(instants)), period)
        parts = np.ceil(np.diff(ends) / longest).clip(1, LARGEST + 1).astype(int)
        gaps = zip(ends, ends[1:], parts, strict=False)
        self.edges = np.append(
            np.concatenate([np.linspace(*gap, endpoint=False) for gap in gaps]), period
        )
        self.length = np.diff(self.edges)
        self.pieces = len(self.length)
        # the past of each signal is heard from this piece on, that of whole periods
        heard = (max(system.delays[self.signal == s], default=0.0) for s in range(len(own)))
        self.since = [math.floor(SAME - t / period) * self.pieces for t in heard]
        self.oldest = min(self.since, default=0)
        # of each signal among the unknowns
        self.start = self.n - nodes * np.cumsum([0, *self.since])
        self.unknowns = int(self.start[-1])

    def _piece(self, time: Array) -> NDArray[np.intp]:
        """The piece that holds each time of the period, at an edge the one that starts there."""
        return np.searchsorted(self.edges[1:-1], time + 2 * SAME * self.period, side="right")

    def _heard(self, times: Array) -> tuple[NDArray[np.intp], Array]:
        """For each time and channel the piece that it hears, which is negative in the past, and the
        weights of its nodes.
        """
        time = times[:, None] - self.system.delays
        turns = np.floor(time / self.period + SAME).astype(int)
        time = time - turns * self.period
        piece = self._piece(time)
        within = (time - self.edges[piece]) / self.length[piece]
        return piece + turns * self.pieces, interpolation(within, self.nodes)

    def monodromy(self) -> Array:
        """The map over one period, of (x, w at the nodes of the past)."""
        n, m, s = self.n, self.nodes, len(self.C)
        Z = self.unknowns
        self.values = np.zeros((self.pieces - self.oldest, m, s, Z))
        for i, since in enumerate(self.since):
            past = np.eye(self.start[i + 1] - self.start[i]).reshape(-since, m, -1)
            own = slice(self.start[i], self.start[i + 1])
            self.values[since - self.oldest : -self.oldest, :, i, own] = past
        x = np.eye(n, Z)
        due = self._due()
        for p in range(self.pieces):
            for tick in due.get(p, ()):
                x = self._jumped(x, tick, self.edges[p])
            x = self._through(x, p)
        M = np.zeros((Z, Z))
        M[:n] = x
        for i, since in enumerate(self.since):
            later = self.values[since - self.oldest + self.pieces : self.pieces - self.oldest, :, i]
            M[self.start[i] : self.start[i + 1]] = later.reshape(-1, Z)
        return M

    def eigenvalues(self) -> NDArray[np.complex128]:
        """Of the map, by falling modulus, without some that are 0."""
        from scipy.linalg import matrix_balance

        M = self._in_one_unit(self.monodromy())
        if not np.isfinite(M).all():
            return np.full(1, np.nan, complex)
        T = self._lasting(M)
        values = np.linalg.eigvals(matrix_balance(T.T @ M @ T, permute=False)[0]).astype(complex)
        return values[np.argsort(-np.abs(values), kind="stable")]

    def _in_one_unit(self, M: Array) -> Array:
        """The map with states and signals in units in which it is balanced."""
        from scipy.linalg import matrix_balance

        scale = matrix_balance(M, permute=False, separate=True)[1][0]
        for start, end in zip(self.start, self.start[1:], strict=False):
            scale[start:end] = np.median(scale[start:end])
        return M * scale / scale[:, None]

    def _lasting(self, M: Array) -> Array:
        """An orthonormal basis of what the map keeps: of each signal a period is among those that
        the map makes of such ones, which are few.
        """
        from scipy.linalg import block_diag

        n, period, T = self.n, self.pieces * self.nodes, np.eye(len(M))
        while True:
            basis = [np.eye(n)]
            for end, since in zip(self.start[1:], self.since, strict=True):
                U, size, _ = np.linalg.svd(M[end - period : end] @ T, full_matrices=False)
                kept = size > ROUNDING * max(size.max(initial=0.0), 1.0)
                basis += [U[:, kept]] * (-since // self.pieces)
            new = block_diag(*basis)
            if new.shape[1] == T.shape[1]:
                return new
            T = new

    def _due(self) -> dict[int, list[Update]]:
        """The ticks at the start of each piece, in their order."""
        found: dict[int, list[Update]] = {}
        for tick in self.system.updates:
            times = SAME * self.period * np.array(_instants(tick, self.period))
            for piece in self._piece(times).tolist():
                found.setdefault(piece, []).append(tick)
        return found

    def _jumped(self, x: Array, tick: Update, time: float) -> Array:
        new = tick.G @ x
        (piece,), (weight,) = self._heard(np.array([time]))
        for j in np.flatnonzero(tick.H.any(axis=0)):
            value = weight[j] @ self.values[piece[j] - self.oldest, :, self.signal[j]]
            new += np.outer(tick.H[:, j], value)
        return new

    def _through(self, x: Array, p: int) -> Array:
        """The states at the end of a piece; its signals are stored."""
        A, B = self.system.A, self.system.B
        n, m, s, k = self.n, self.nodes, len(self.C), len(self.system.delays)
        node, weight, integral = gauss(m)
        length = self.length[p]
        pieces, weights = self._heard(self.edges[p] + length * node)
        known = np.zeros((m, k, self.unknowns))
        within = np.zeros((m, k, m, s))  # of channels by what is not known yet
        for i, j in np.ndindex(m, k):
            if pieces[i, j] == p:
                within[i, j, :, self.signal[j]] = weights[i, j]
            else:
                past = self.values[pieces[i, j] - self.oldest, :, self.signal[j]]
                known[i, j] = weights[i, j] @ past
        over = within.reshape(m * k, m * s)
        area = length * integral
        by_v, out_v = np.kron(area, B), np.kron(np.eye(m), self.D)
        own = np.block([
            [np.eye(m * n) - np.kron(area, A), -by_v @ over],
            [-np.kron(np.eye(m), self.C), np.eye(m * s) - out_v @ over],
        ])  # fmt: skip
        before = known.reshape(m * k, self.unknowns)
        right = np.vstack([np.tile(x, (m, 1)) + by_v @ before, out_v @ before])
        found = np.linalg.solve(own, right)
        signals = found[m * n :]
        self.values[p - self.oldest] = signals.reshape(m, s, self.unknowns)
        heard = before + over @ signals
        slope = np.kron(np.eye(m), A) @ found[: m * n] + np.kron(np.eye(m), B) @ heard
        return x + length * np.tensordot(weight, slope.reshape(m, n, self.unknowns), 1)
