"""Approximate characteristic roots: eigenvalues of the Chebyshev discretisation of the delay channels.

Only the channels carry a past. Channel k is the transport equation on [-tau_k, 0] with z_k entering at 0 and v_k
leaving at -tau_k; on Chebyshev points it becomes as many ordinary states as it has points but one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.bounds import nilpotent, sparse, summed
from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["approximate_roots", "points_for", "undelayed"]

Floats = NDArray[np.float64]

DENSE = 260
"""States of the discretisation up to which all its eigenvalues are computed."""


BASIS = 40
"""Vectors of an Arnoldi basis near a shift: a long basis finds more guesses than restarts of a short one."""


@lru_cache(maxsize=128)
def differentiation(points: int) -> Floats:
    """The Chebyshev differentiation matrix on `points` + 1 nodes cos(j pi / points) (Trefethen, 2000, chapter 6)."""
    j = np.arange(points + 1)
    x = np.cos(np.pi * j / points)
    c = np.where((j == 0) | (j == points), 2.0, 1.0) * (-1.0) ** j
    matrix = np.outer(c, 1 / c) / (x[:, None] - x + np.eye(points + 1))
    matrix -= np.diag(matrix.sum(axis=1))
    matrix.setflags(write=False)
    return matrix


def points_for(delays: Floats, reach: float, least: int, density: float = 0.55) -> NDArray[np.int64]:
    """Points a channel so that frequencies up to `reach` are resolved: those of exp(-s tau) and a few more.

    Half a point for each radian is what exp(-s tau) itself needs.
    """
    return np.maximum(2, np.ceil(least * np.sqrt(delays / delays.max()) + density * reach * delays)).astype(np.int64)


def approximate_roots(block: Blocks, points: NDArray[np.int64], shifts: NDArray[Any]) -> NDArray[np.complex128]:
    """Eigenvalues of the discretised block: all of them, or, of a large one, those nearest the `shifts`."""
    total = len(block.A) + int(points.sum())
    if total <= DENSE:
        return np.asarray(np.linalg.eigvals(_dense(block, points)), complex) if total else np.empty(0, complex)
    return _nearest(block, points, shifts)


def _dense(block: Blocks, points: NDArray[np.int64]) -> Floats:
    """x' = A x + B2 v; each channel's nodes w' = (2 / tau) (D w + d0 z), z = C2 x + D22 v, v the last node."""
    m, p = block.ports
    n, k = len(block.A), len(points)
    end = n + np.cumsum(points)
    total = n + int(points.sum())
    matrix = np.zeros((total, total))
    matrix[:n, :n] = block.A
    if not k:
        return matrix
    last = end - 1
    matrix[:n, last] = block.B[:, m:]
    C2, D22 = block.C[p:], block.D[p:, m:]
    for i in range(k):
        rows = slice(end[i] - points[i], end[i])
        scaled = differentiation(int(points[i])) * (2 / block.delays[i])
        matrix[rows, rows] = scaled[1:, 1:]
        enter = scaled[1:, :1]
        if n:
            matrix[rows, :n] = enter * C2[i]
        matrix[rows, last] += enter * D22[i]
    return matrix


def _nearest(block: Blocks, points: NDArray[np.int64], shifts: NDArray[Any]) -> NDArray[np.complex128]:
    from scipy.sparse import block_diag, bmat, coo_array, csc_array, csr_array, eye_array
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs, splu

    m, p = block.ports
    k = len(points)
    inner = [differentiation(int(q)) * (2 / lag) for q, lag in zip(points, block.delays, strict=True)]
    transport = block_diag([coo_array(d[1:, 1:]) for d in inner], format="csc")
    enter = block_diag([coo_array(d[1:, :1]) for d in inner], format="csr")
    last = csr_array((np.ones(k), (np.arange(k), np.cumsum(points) - 1)), shape=(k, int(points.sum())))
    matrix = bmat(
        [
            [csc_array(block.A), csc_array(block.B[:, m:]) @ last],
            [enter @ csr_array(block.C[p:]), transport + enter @ csr_array(block.D[p:, m:]) @ last],
        ],
        format="csc",
    )
    size = matrix.shape[0]
    found = []
    rng = np.random.default_rng(7)
    for shift in shifts:
        factor = splu((matrix - shift * eye_array(size, format="csc")).astype(complex).tocsc())
        solve = LinearOperator((size, size), matvec=factor.solve, dtype=complex)
        start = rng.normal(size=size) + 0j
        try:
            values = eigs(
                solve,
                k=min(12, size - 2),
                ncv=min(BASIS, size),
                v0=start,
                return_eigenvectors=False,
                tol=1e-4,
                maxiter=2,
            )
        except ArpackNoConvergence as stopped:  # they are guesses: those that came are as good as any
            values = np.asarray(stopped.eigenvalues, complex)
        found.append(shift + 1 / values)
    return _distinct(np.concatenate([undelayed(block), *found]))


def _distinct(guesses: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Of guesses that are one from several shifts, the first; in the upper half plane."""
    upper = guesses.real + 1j * np.abs(guesses.imag)
    gap = np.abs(upper[:, None] - upper) + np.triu(np.full((len(upper),) * 2, np.inf))
    return upper[~(gap < 1e-3 * np.abs(upper)[:, None]).any(axis=1)]


def undelayed(block: Blocks) -> NDArray[np.complex128]:
    """Eigenvalues with every delay at zero: near the roots that are slow for the delays, however many there are."""
    m, p = block.ports
    inner = block.D[p:, m:]
    if nilpotent(np.abs(inner)):
        among = sparse(block.B[:, m:]) @ summed(sparse(inner), block.C[p:])
        return np.linalg.eigvals(block.A + among).astype(complex)
    loop = np.eye(len(block.delays)) - inner
    try:
        return np.linalg.eigvals(block.A + block.B[:, m:] @ np.linalg.solve(loop, block.C[p:])).astype(complex)
    except np.linalg.LinAlgError:
        return np.empty(0, complex)
