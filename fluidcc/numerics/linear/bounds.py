"""Where the roots of a pencil can be: bounds from matrices of absolute values, and the difference
operator.

A system is retarded when det(I - D22 E(s)) is 1 for every s. Otherwise it is neutral: the zeros of
that determinant carry chains of roots of growing frequency, and only left of their abscissa is the
number of roots finite.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.zeros import bound as largest
from fluidcc.numerics.linear.wiring import Blocks

__all__ = [
    "approximate_roots", "difference_norm", "essential_abscissa", "is_neutral", "points_for",
    "radius", "undelayed",
]  # fmt: skip


Floats = NDArray[np.float64]

EQUAL = 1e-12
"""Relative difference up to which two delays are one: sums of the same numbers in another order."""

EXPANDED = 8
"""Channels up to which the determinant of the difference operator is expanded: 255 minors."""


def spectral_bound(matrix: Floats) -> float:
    """An upper bound of the spectral radius of a matrix without negative entries (Collatz and
    Wielandt).
    """
    n = len(matrix)
    without = np.empty((n, 0)), np.empty((0, n)), np.empty((0, 0)), np.empty(0)
    return float(largest(np.ascontiguousarray(matrix), *without, 0.0))


def difference(block: Blocks) -> Floats:
    """D22."""
    m, p = block.ports
    return block.D[p:, m:]


def is_neutral(block: Blocks) -> bool:
    """Whether det(I - D22 E(s)) depends on s.

    Without a cycle in D22 it does not. With one it is evaluated at frequencies that have nothing in
    common with the delays: there a finite sum of exponentials that is not constant differs from its
    value 1 at infinity.
    """
    inner = np.abs(difference(block))
    if not inner.any() or nilpotent(inner):
        return False
    s = (0.1 + 1j * np.linspace(1.3, 97.0, 24) * np.sqrt(2)) / block.delays.max()
    lags = np.exp(-s[:, None] * block.delays)
    values = np.linalg.det(np.eye(len(inner)) - difference(block) * lags[:, None, :])
    return bool(np.abs(values - 1).max() > 1e-10 * max(1.0, inner.max() ** 2))


def nilpotent(inner: Any) -> bool:
    """Whether a matrix without negative entries has no cycle."""
    reach = np.ones(len(inner))
    for _ in range(len(inner)):
        reach = (inner @ reach > 0).astype(float)
        if not reach.any():
            return True
    return not len(inner)


def turned(block: Blocks) -> Blocks:
    """The block with the channels of each delay turned so that D22 is triangular among them.

    Equal delays stay equal whatever becomes of them, as with flows of one round trip, so that such
    channels are one vector behind one delay: its coordinates are free, and cycles that cancel leave
    abs(D22).
    """
    m, p = block.ports
    kept = np.flatnonzero(difference(block).any(axis=0) & difference(block).any(axis=1))
    kept = kept[np.argsort(block.delays[kept], kind="stable")]
    apart = np.diff(block.delays[kept]) > EQUAL * block.delays[kept[1:]]
    B, C, D = (part.astype(complex) for part in block[1:4])
    for group in np.split(kept, np.flatnonzero(apart) + 1):
        if len(group) > 1:
            from scipy.linalg import schur

            triangle, basis = schur(difference(block)[np.ix_(group, group)], output="complex")
            columns, rows = m + group, p + group
            B[:, columns], D[:, columns] = B[:, columns] @ basis, D[:, columns] @ basis
            C[rows], D[rows] = basis.conj().T @ C[rows], basis.conj().T @ D[rows]
            D[np.ix_(rows, columns)] = triangle
    return block._replace(B=np.abs(B), C=np.abs(C), D=np.abs(D))


def difference_norm(block: Blocks) -> float:
    """A bound of the spectral radius of D22 diag(exp(i theta)) over all phases, those of equal
    delays being equal.
    """
    if nilpotent(np.abs(difference(block))):
        return 0.0
    return min(
        float(np.abs(np.linalg.eigvals(np.abs(difference(b)))).max())
        for b in (block, turned(block))
    )


def expanded(inner: Floats, delays: Floats) -> tuple[Floats, Floats]:
    """det(I - D22 E(s)) less one as a sum of a exp(-h s): a and h; of each in a stack of D22.

    What D22 couples in several ways, as a path and its parts, may add up to less, or cancel: the
    determinant of two flows that keep 0.95 of what comes back and share a queue is 1 - 0.475
    exp(-h1 s) - 0.475 exp(-h2 s), while the spectral radius of abs(D22) is 1.9.
    """
    terms, lags = [], []
    for size in range(1, len(delays) + 1):
        chosen = np.array(list(combinations(range(len(delays)), size)))
        terms.append(
            (-1) ** size * np.linalg.det(inner[..., chosen[:, :, None], chosen[:, None, :]])
        )
        lags.append(delays[chosen].sum(axis=1))
    a, h = np.concatenate(terms, axis=-1), np.concatenate(lags)
    order = np.argsort(h, kind="stable")
    h = h[order]
    first = np.flatnonzero(np.append(True, np.diff(h) > EQUAL * h[1:]))
    return np.add.reduceat(a[..., order], first, axis=-1), h[first]


def essential_abscissa(block: Blocks) -> float:
    """The least c at which `difference_norm` of D22 exp(-c tau) is one [1/time]; minus infinity if
    it is never.

    Right of it the difference operator has no spectrum, whatever the ratios of the delays (strong
    stability, after Hale and Verduyn Lunel, Introduction to Functional Differential Equations,
    1993, section 9.6). With one delay in all cycles it is exact, and otherwise an upper bound, as
    is the c at which the terms of `expanded` together are one in absolute value. That is exact
    where their delays have nothing in common.
    """
    if nilpotent(np.abs(difference(block))):
        return -np.inf
    found = [_abscissa(np.abs(difference(b)), block.delays) for b in (block, turned(block))]
    if len(block.delays) <= EXPANDED:
        a, h = expanded(difference(block), block.delays)
        found.append(_zero(lambda c: float(np.log(np.abs(a) @ np.exp(-c * h))), block.delays.max()))
    return min(found)


def _abscissa(inner: Floats, lags: Floats) -> float:
    """The least c at which the spectral radius of a matrix without negative entries, times
    exp(-c tau), is one.
    """
    if nilpotent(inner):
        return -np.inf
    return _zero(
        lambda c: float(np.log(np.abs(np.linalg.eigvals(inner * np.exp(-c * lags))).max())),
        lags.max(),
    )


def _zero(excess: Callable[[float], float], longest: float) -> float:
    """Where a falling function is zero."""
    low = high = 0.0
    step = 1.0 / longest
    while excess(low) < 0:
        low, step = low - step, 2 * step
    while excess(high) > 0:
        high, step = high + step, 2 * step
    from scipy.optimize import brentq

    return (
        float(brentq(excess, low, high, xtol=1e-14 / longest, rtol=1e-14)) if high > low else high
    )


def _sizes(block: Blocks, abscissa: float) -> tuple[Floats, Floats, Floats, Floats]:
    """abs of A, B2 E, C2, and D22 E at most, right of that abscissa."""
    m, p = block.ports
    size = np.exp(-abscissa * block.delays)
    return (
        np.abs(block.A),
        np.abs(block.B[:, m:]) * size,
        np.abs(block.C[p:]),
        np.abs(difference(block)) * size,
    )


def radius(block: Blocks, abscissa: float) -> float:
    """No root with real part at least `abscissa` has a larger modulus; infinite where no bound
    exists.

    Each root is an eigenvalue of ``A + B2 E (I - D22 E)^-1 C2``, so its modulus is at most the
    spectral radius of the same expression in absolute values, with abs(E) at most exp(-abscissa
    tau).
    """
    found = float(largest(*block, abscissa))
    if np.isfinite(found):
        return found
    for one in (block, turned(block)):
        A, late, C2, loop = _sizes(one, abscissa)
        if np.abs(np.linalg.eigvals(loop)).max() < 1 - 1e-9:
            return spectral_bound(A + late @ np.linalg.solve(np.eye(len(loop)) - loop, C2).clip(0))
    if is_neutral(block):
        return _radius_expanded(block, abscissa) if len(block.delays) <= EXPANDED else np.inf
    A, late, C2, loop = _sizes(block, abscissa)
    # retarded by cancellation: (I - D22 E)^-1 is the adjugate, a polynomial of degree below the
    # number of channels
    total = power = np.eye(len(loop))
    for _ in range(len(loop) - 1):
        power = power @ loop
        total = total + power
    return spectral_bound(A + late @ total @ C2)


def _radius_expanded(block: Blocks, abscissa: float) -> float:
    """`radius` by terms of determinants: 1 + b E (I - D22 E)^-1 c is det(I - (D22 - c b) E) over
    det(I - D22 E).
    """
    m, p = block.ports
    rows, columns = block.B[:, m:], block.C[p:].T
    a, h = expanded(difference(block), block.delays)
    moved, _ = expanded(
        difference(block) - columns[None, :, :, None] * rows[:, None, None, :], block.delays
    )
    size = np.exp(-abscissa * h)
    least = 1.0 - float(np.abs(a) @ size)
    return (
        spectral_bound(np.abs(block.A) + np.abs(moved - a) @ size / least)
        if least > 1e-9
        else np.inf
    )


# --- approximate characteristic roots -------------------------------------------------------------


DENSE_NODES = 260
"""States of the discretisation up to which all its eigenvalues are computed."""


BASIS = 40
"""Vectors of an Arnoldi basis near a shift: a long basis finds more guesses than restarts of a
short one.
"""


@lru_cache(maxsize=128)
def differentiation(points: int) -> Floats:
    """The Chebyshev differentiation matrix on `points` + 1 nodes cos(j pi / points) (Trefethen,
    2000, chapter 6).
    """
    j = np.arange(points + 1)
    x = np.cos(np.pi * j / points)
    c = np.where((j == 0) | (j == points), 2.0, 1.0) * (-1.0) ** j
    matrix = np.outer(c, 1 / c) / (x[:, None] - x + np.eye(points + 1))
    matrix -= np.diag(matrix.sum(axis=1))
    matrix.setflags(write=False)
    return matrix


def points_for(
    delays: Floats, reach: float, least: int, density: float = 0.55
) -> NDArray[np.int64]:
    """Points a channel so that frequencies up to `reach` are resolved: those of exp(-s tau) and a
    few more.

    Half a point for each radian is what exp(-s tau) itself needs.
    """
    return np.maximum(
        2, np.ceil(least * np.sqrt(delays / delays.max()) + density * reach * delays)
    ).astype(np.int64)


def approximate_roots(
    block: Blocks, points: NDArray[np.int64], shifts: NDArray[Any]
) -> NDArray[np.complex128]:
    """Eigenvalues of the discretised block: all of them, or, of a large one, those nearest the
    `shifts`.
    """
    blocks, size = _discretised(block, points)
    if size <= DENSE_NODES:
        dense = np.zeros((size, size))
        for rows, columns, part in blocks:
            dense[np.ix_(rows, columns)] += part
        return np.linalg.eigvals(dense).astype(complex)
    from scipy.sparse import coo_array

    places, values = [], []
    for rows, columns, part in blocks:
        i, j = np.nonzero(part)
        places.append((rows[i], columns[j]))
        values.append(part[i, j])
    at = np.concatenate(places, axis=1)
    matrix = coo_array((np.concatenate(values), (at[0], at[1])), shape=(size, size)).tocsc()
    return _distinct(np.concatenate([undelayed(block), *(_nearest(matrix, s) for s in shifts)]))


def _discretised(
    block: Blocks, points: NDArray[np.int64]
) -> tuple[list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]], int]:
    """x' = A x + B2 v; each channel's nodes w' = (2 / tau) (D w + d0 z), z = C2 x + D22 v, v the
    last node: blocks whose sum is the matrix, each with its rows and columns, and its size.
    """
    m, p = block.ports
    n = len(block.A)
    states, last = np.arange(n), n + np.cumsum(points) - 1
    blocks = [(states, states, block.A), (states, last, block.B[:, m:])]
    for k, (q, lag) in enumerate(zip(points, block.delays, strict=True)):
        nodes = np.arange(last[k] + 1 - q, last[k] + 1)
        inner = differentiation(int(q))[1:] * (2 / lag)
        enter = inner[:, :1]
        blocks += [
            (nodes, nodes, inner[:, 1:]),
            (nodes, states, enter * block.C[p + k]),
            (nodes, last, enter * block.D[p + k, m:]),
        ]
    return blocks, n + int(points.sum())


def _nearest(matrix: Any, shift: complex) -> NDArray[np.complex128]:
    """Eigenvalues of a large sparse matrix near a shift."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs, splu

    size = matrix.shape[0]
    factor = splu((matrix - shift * eye_array(size, format="csc")).astype(complex).tocsc())
    try:
        values = eigs(
            LinearOperator((size, size), matvec=factor.solve, dtype=complex),
            k=min(12, size - 2),
            ncv=min(BASIS, size),
            v0=np.random.default_rng(7).normal(size=size) + 0j,
            return_eigenvectors=False,
            tol=1e-4,
            maxiter=2,
        )
    except ArpackNoConvergence as stopped:  # guesses: those that came are as good as any
        values = np.asarray(stopped.eigenvalues, complex)
    return np.asarray(shift + 1 / values)


def _distinct(guesses: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Of guesses that are one from several shifts, the first; in the upper half plane."""
    upper = guesses.real + 1j * np.abs(guesses.imag)
    gap = np.abs(upper[:, None] - upper) + np.triu(np.full((len(upper),) * 2, np.inf))
    return upper[~(gap < 1e-3 * np.abs(upper)[:, None]).any(axis=1)]


def undelayed(block: Blocks) -> NDArray[np.complex128]:
    """Eigenvalues with every delay at zero: near the roots that are slow for the delays, however
    many there are.
    """
    m, p = block.ports
    loop = np.eye(len(block.delays)) - difference(block)
    try:
        around = np.linalg.solve(loop, block.C[p:])
    except np.linalg.LinAlgError:
        return np.empty(0, complex)
    return np.linalg.eigvals(block.A + block.B[:, m:] @ around).astype(complex)
