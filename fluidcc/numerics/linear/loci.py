"""Eigenloci: the eigenvalues of a return ratio along the imaginary axis, each followed continuously.

Many systems of one pattern are traced at once: every point carries the number of its system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.pencil import Complex, Pencil

__all__ = ["Loci", "eigen", "rank_of", "trace"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PER_DECADE = 8
TURN = 0.5  # radians that a locus may turn over an interval
SMALL = 0.02  # loci below this are not refined: they change no margin below 1/SMALL
FAR = 30.0  # loci beyond this are followed in proportion to their size
ROUNDS = 14


@dataclass
class Loci:
    """Points sorted by system and frequency.

    Attributes
    ----------
    which, omega : array
        System and frequency in its own unit of time, shape (points,).
    ratio, ratio_slope : array of complex
        The return ratio and its derivative with respect to s, shape (points, m, m).
    value, slope : array of complex
        Its eigenvalues, followed continuously along each system, and their derivatives, shape (points, rank).
    """

    which: Ints
    omega: Floats
    ratio: Complex
    ratio_slope: Complex
    value: Complex
    slope: Complex

    def insert(self, at: Ints, other: Loci) -> None:
        """Put the points of `other` before the positions `at`."""
        for name in ("which", "omega", "ratio", "ratio_slope", "value", "slope"):
            setattr(self, name, np.insert(getattr(self, name), at, getattr(other, name), axis=0))


def rank_of(pencil: Pencil) -> int:
    """The rank of the return ratio, the same at almost every frequency."""
    m = pencil.ports[0]
    if m == 1:
        return 1
    some = np.unique(np.linspace(0, len(pencil.times) - 1, 3).astype(np.int64))
    which = np.repeat(some, 3)
    s = np.tile(np.array([0.03 + 0.4j, 0.1 + 1.3j, 0.2 + 4.1j]), len(some))
    size = np.linalg.svd(pencil.values(s, False, True, which).response, compute_uv=False)
    return max(1, int((size > 1e-11 * size[:, :1]).sum(axis=1).max()))


def eigen(ratio: Complex, slope: Complex, rank: int) -> tuple[Complex, Complex]:
    """Eigenvalues other than the zeros of a deficient rank, and their derivatives, in no order."""
    m = ratio.shape[-1]
    if rank == 1:  # the only eigenvalue is the trace
        return np.trace(ratio, axis1=1, axis2=2)[:, None], np.trace(slope, axis1=1, axis2=2)[:, None]
    matrix: Any = ratio
    rate: Any = slope
    if rank < m:  # L = Y (Z X)^-1 Z with Y = L X, Z = X' L; its eigenvalues are those of (Z X)^-1 Z Y
        X = np.random.default_rng(5).normal(size=(m, rank))
        left, left_rate = (from_left(X.T, part) for part in (ratio, slope))
        right, right_rate = (from_right(part, X) for part in (ratio, slope))
        inner = left @ X
        matrix = np.linalg.solve(inner, left @ right)
        rate = np.linalg.solve(inner, left_rate @ right + left @ right_rate - left_rate @ X @ matrix)
    if rank == 2:
        half, det = 0.5 * np.trace(matrix, axis1=1, axis2=2), np.linalg.det(matrix)
        root = np.sqrt(half**2 - det)
        far = np.where((half * root.conj()).real >= 0, half + root, half - root)
        values = np.stack((far, np.where(far == 0, 0, det / np.where(far == 0, 1, far))), axis=1)
        turn = 0.5 * np.trace(rate, axis1=1, axis2=2)
        # from the characteristic polynomial: 2 (v - half) v' = 2 half' v - det'
        cross = matrix[:, 0, 0] * rate[:, 1, 1] + rate[:, 0, 0] * matrix[:, 1, 1]
        cross = cross - matrix[:, 0, 1] * rate[:, 1, 0] - rate[:, 0, 1] * matrix[:, 1, 0]
        gap = 2 * (values - half[:, None])
        safe = np.abs(gap) > 1e-12 * (np.abs(far)[:, None] + 1e-300)
        rates = np.where(safe, (2 * turn[:, None] * values - cross[:, None]) / np.where(safe, gap, 1), turn[:, None])
        return values, rates
    values, vectors = np.linalg.eig(matrix)
    try:
        inverse = np.linalg.inv(vectors)
    except np.linalg.LinAlgError:  # a Jordan block somewhere: off by a hair it has eigenvectors
        size = np.abs(matrix).max(axis=(1, 2), keepdims=True)
        bent = matrix + 1e-12 * size * np.random.default_rng(3).normal(size=matrix.shape[1:])
        values, vectors = np.linalg.eig(bent)
        inverse = np.linalg.pinv(vectors)
    return values, np.einsum("kij,kjl,kli->ki", inverse, rate, vectors)


def from_right(stack: Complex, matrix: NDArray[Any]) -> Complex:
    """Each matrix of a stack times one matrix, as one product: threads cost small ones more than they save."""
    points, rows, inner = stack.shape
    return np.asarray((stack.reshape(points * rows, inner) @ matrix.astype(complex)).reshape(points, rows, -1))


def from_left(matrix: NDArray[Any], stack: Complex) -> Complex:
    """One matrix times each of a stack, as one product."""
    points, inner, columns = stack.shape
    found = matrix.astype(complex) @ stack.transpose(1, 0, 2).reshape(inner, points * columns)
    return np.asarray(found.reshape(-1, points, columns).transpose(1, 0, 2))


def evaluate(pencil: Pencil, which: Ints, omega: Floats, rank: int) -> Loci:
    """The loci at some points, in no order."""
    got = pencil.values((1j * omega).astype(complex), True, True, which)
    return Loci(which, omega, got.response, got.response_slope, *eigen(got.response, got.response_slope, rank))


def trace(pencil: Pencil, low: Floats, high: Floats, rank: int) -> Loci:
    """Follow the loci of every system from its lowest to its highest frequency.

    The grid starts with equal ratios; intervals are halved where a locus that matters turns by more than half a
    radian, or changes its modulus by more than a factor, or may touch the unit circle.
    """
    decades = float(np.log10(high / low).max())
    count = int(PER_DECADE * decades) + 2
    omega = np.exp(np.linspace(np.log(low), np.log(high), count)).T.ravel()
    which = np.repeat(np.arange(len(low)), count)
    loci = evaluate(pencil, which, omega, rank)
    _follow(loci)
    for _ in range(ROUNDS):
        at = np.flatnonzero(_coarse(loci)) + 1
        if not len(at):
            break
        middle = 0.5 * (loci.omega[at] + loci.omega[at - 1])
        loci.insert(at, evaluate(pencil, loci.which[at], middle, rank))
        _follow(loci)
    return loci


def _coarse(loci: Loci) -> NDArray[np.bool_]:
    """Intervals that are too long."""
    a, b = loci.value[:-1], loci.value[1:]
    span = np.diff(loci.omega)
    size = np.maximum(np.abs(a), np.abs(b))
    jump = np.abs(b - a)
    matters = size > SMALL
    # the chord against what the two tangents foretell: both the turn and a wrong assignment show in it
    bend = np.abs(b - a - 0.5j * (loci.slope[1:] + loci.slope[:-1]) * span[:, None])
    near = (np.abs(a + 1) < 1.0) | (np.abs(b + 1) < 1.0)
    close = jump > 0.6 * np.minimum(np.abs(a + 1), np.abs(b + 1)) + 0.03  # the least distance to -1 is a margin
    far = size > FAR  # no margin is read there but a crossing of the axis, which a chord of a few per cent shows
    allowed = 0.05 * np.where(near, 0.2, 1.0) * np.where(far, size, np.minimum(size, 2))
    bad: Any = matters & (close | (jump > TURN * size) & ~far | (bend > allowed))
    with np.errstate(all="ignore"):
        grow_a, grow_b = (1j * loci.slope[:-1] / a).real, (1j * loci.slope[1:] / b).real
        touch = (grow_a * grow_b < 0) & (np.abs(np.log(size)) < 0.3) & (jump > 0.02)
    bad = (bad | (matters & touch)).any(axis=1)
    return np.asarray(bad & (loci.which[1:] == loci.which[:-1]) & (span > 1e-9 * loci.omega[1:]))


def _follow(loci: Loci) -> None:
    """Number the eigenvalues of each point like those of the point before, by nearness to the tangents."""
    points, rank = loci.value.shape
    if rank == 1:
        return
    span = np.diff(loci.omega)[:, None]
    ahead = loci.value[:-1] + 0.5j * loci.slope[:-1] * span
    behind = loci.value[1:] - 0.5j * loci.slope[1:] * span
    cost = np.abs(ahead[:, :, None] - behind[:, None, :])
    same = loci.which[1:] == loci.which[:-1]
    if rank == 2:
        straight, crossed = cost[:, 0, 0] + cost[:, 1, 1], cost[:, 0, 1] + cost[:, 1, 0]
        flip = np.cumsum(np.where(same, crossed < straight, 0)) % 2 == 1
        flip = np.r_[False, flip]
        for array in (loci.value, loci.slope):
            array[flip] = array[flip][:, ::-1]
        return
    from scipy.optimize import linear_sum_assignment

    best = cost.argmin(axis=2)
    clear = (np.sort(best, axis=1) == np.arange(rank)).all(axis=1)
    order = np.arange(rank)
    for i in range(points - 1):
        if not same[i]:
            order = np.arange(rank)
            continue
        step = best[i] if clear[i] else linear_sum_assignment(cost[i])[1]
        order = step[order]
        loci.value[i + 1], loci.slope[i + 1] = loci.value[i + 1, order], loci.slope[i + 1, order]
