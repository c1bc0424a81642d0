"""A bordered pencil at a few points as full matrices, with all the pivoting that a library offers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["pivoted"]

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]

SPARSE = 200
"""Unknowns from which on the zeros of a pencil are worth leaving out."""


def pivoted(value: Complex, rate: Complex, k: int, slope: bool) -> tuple[Complex, Floats, Complex, Complex, Complex]:
    """Phase and logarithm of the determinant, its slope, the Schur complement and its slope, at each point.

    Parameters
    ----------
    value, rate : array of complex (points, rows, columns)
        Bordered pencils and their derivatives.
    k : int
        Unknowns, in the first rows and columns.
    slope : bool
        Without it the slopes are not computed and mean nothing.

    Notes
    -----
    Where the pencil is singular the complement and the slopes are infinite. Rows are made even first: far to the left
    those of lagged terms are huge, and as pivots they would leave nothing of the others.
    """
    top = np.abs(value[:, :k, :k]).max(axis=2, initial=0.0)
    scale = np.exp2(-np.round(np.log2(np.where(top > 0, top, 1.0))))
    rows = np.concatenate((scale, np.ones((len(value), value.shape[1] - k))), axis=1)[:, :, None]
    value, rate = value * rows, rate * rows
    inside, corner = (slice(None), slice(k), slice(k)), (slice(None), slice(k, None), slice(k, None))
    right, below = value[:, :k, k:], value[:, k:, :k]
    eliminated = _sparsely if k > SPARSE else _densely
    phase, log, total, across, back = eliminated(value[inside], rate[inside] if slope else None, right, below)
    log = log - np.log(scale).sum(axis=1)
    block = value[corner] - below @ across
    block_rate = np.zeros_like(block)
    if slope:
        block_rate = rate[corner] - rate[:, k:, :k] @ across
        block_rate += back @ (rate[inside] @ across - rate[:, :k, k:])
    singular = phase == 0
    for array in (block, total, block_rate):
        array[singular] = complex(np.inf, np.inf) if array.ndim > 1 else complex(np.inf)
    return phase, log, total, block, block_rate


def _densely(
    inner: Complex, rate: Complex | None, right: Complex, below: Complex
) -> tuple[Complex, Floats, Complex, Complex, Complex]:
    """Phase and logarithm of the determinants, their slope, ``inner^-1 right`` and ``below inner^-1``."""
    phase, log = np.linalg.slogdet(inner)
    inverse = np.linalg.inv(np.where((phase != 0)[:, None, None], inner, np.eye(inner.shape[1])))
    inverse = inverse.astype(np.complex128, copy=False)
    total = np.zeros(len(inner), complex) if rate is None else (inverse * rate.transpose(0, 2, 1)).sum(axis=(1, 2))
    return phase, log, total, inverse @ right, below @ inverse


def _sparsely(
    inner: Complex, rate: Complex | None, right: Complex, below: Complex
) -> tuple[Complex, Floats, Complex, Complex, Complex]:
    """The same by sparse factors, which are asked for no more columns of the inverse than the rest needs.

    The slope is the trace of inverse times rate, to which only rows of the rate that have entries add. What belongs to
    a singular matrix is zero. Many columns together would be a task for threads, which wait for one another.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    phase, log, total = np.zeros(len(inner), complex), np.full(len(inner), -np.inf), np.zeros(len(inner), complex)
    across, back = np.zeros(right.shape, complex), np.zeros(below.shape, complex)
    for i, matrix in enumerate(inner):
        try:
            factors = splu(csc_array(matrix))
        except RuntimeError:  # it is singular
            continue
        pivots = np.concatenate((factors.U.diagonal(), factors.L.diagonal()))
        phase[i] = _sign(factors.perm_r) * _sign(factors.perm_c) * np.prod(pivots / np.abs(pivots))
        log[i] = np.log(np.abs(pivots)).sum()
        for j, column in enumerate(right[i].T):
            across[i, :, j] = factors.solve(column.astype(complex))
        if rate is None:
            continue
        for j, row in enumerate(below[i]):
            back[i, j] = factors.solve(row.astype(complex), "T")
        for r in np.flatnonzero(rate[i].any(axis=1)).tolist():
            unit = np.zeros(len(matrix), complex)
            unit[r] = 1.0
            total[i] += rate[i, r] @ factors.solve(unit)
    return phase, log, total, across, back


def _sign(order: NDArray[np.int32]) -> int:
    """Of a permutation: its cycles of even length turn it."""
    left, sign = set(range(len(order))), 1
    while left:
        first = at = left.pop()
        while (at := int(order[at])) != first:
            left.remove(at)
            sign = -sign
    return sign
