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
    Where the pencil is singular the complement and the slopes are infinite.
    """
    inner, right, below = value[:, :k, :k], value[:, :k, k:], value[:, k:, :k]
    phase, log, inverse = _inverted(inner) if k > SPARSE else _inverted_densely(inner)
    sound = phase != 0
    across, back = inverse @ right, below @ inverse
    block, total = value[:, k:, k:] - below @ across, np.zeros(len(value), complex)
    block_rate = np.zeros_like(block)
    if slope:
        total = (inverse * rate[:, :k, :k].transpose(0, 2, 1)).sum(axis=(1, 2))
        block_rate = rate[:, k:, k:] - rate[:, k:, :k] @ across
        block_rate += back @ (rate[:, :k, :k] @ across - rate[:, :k, k:])
    for array in (block, total, block_rate):
        array[~sound] = complex(np.inf, np.inf) if array.ndim > 1 else complex(np.inf)
    return phase, log, total, block, block_rate


def _inverted_densely(inner: Complex) -> tuple[Complex, Floats, Complex]:
    phase, log = np.linalg.slogdet(inner)
    inverse = np.linalg.inv(np.where((phase != 0)[:, None, None], inner, np.eye(inner.shape[1])))
    return phase, log, inverse.astype(np.complex128, copy=False)


def _inverted(inner: Complex) -> tuple[Complex, Floats, Complex]:
    """Phase and logarithm of the determinants, and the inverses (of the identity where there is none)."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    eye: Complex = np.eye(inner.shape[1], dtype=np.complex128)
    phase, log = np.zeros(len(inner), np.complex128), np.full(len(inner), -np.inf)
    inverse = np.broadcast_to(eye, inner.shape).copy()
    for i, matrix in enumerate(inner):
        try:
            factors = splu(csc_array(matrix))
        except RuntimeError:  # it is singular
            continue
        pivots = np.concatenate((factors.U.diagonal(), factors.L.diagonal()))
        phase[i] = _sign(factors.perm_r) * _sign(factors.perm_c) * np.prod(pivots / np.abs(pivots))
        log[i] = np.log(np.abs(pivots)).sum()
        for j, unit in enumerate(eye):  # all together would be a task for threads, which wait for one another
            inverse[i, :, j] = factors.solve(unit)
    return phase, log, inverse


def _sign(order: NDArray[np.int32]) -> int:
    """Of a permutation: its cycles of even length turn it."""
    left, sign = set(range(len(order))), 1
    while left:
        first = at = left.pop()
        while (at := int(order[at])) != first:
            left.remove(at)
            sign = -sign
    return sign
