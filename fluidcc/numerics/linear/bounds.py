"""Where the roots of a pencil can be: bounds from matrices of absolute values, and the difference
operator. Of blocks without ports, as `fluidcc.numerics.linear.wiring.core_of` makes them.

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


def is_neutral(block: Blocks) -> bool:
    """Whether det(I - D22 E(s)) depends on s.

    Without a cycle in D22 it does not. With one it is evaluated at frequencies that have nothing in
    common with the delays: there a finite sum of exponentials that is not constant differs from its
    value 1 at infinity.
    """
    inner = np.abs(block.D)
    if not inner.any() or nilpotent(inner):
        return False
    s = (0.1 + 1j * np.linspace(1.3, 97.0, 24) * np.sqrt(2)) / block.delays.max()
    lags = np.exp(-s[:, None] * block.delays)
    values = np.linalg.det(np.eye(len(inner)) - block.D * lags[:, None, :])
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
    kept = np.flatnonzero(block.D.any(axis=0) & block.D.any(axis=1))
    kept = kept[np.argsort(block.delays[kept], kind="stable")]
    apart = np.diff(block.delays[kept]) > EQUAL * block.delays[kept[1:]]
    B, C, D = (part.astype(complex) for part in block[1:4])
    for group in np.split(kept, np.flatnonzero(apart) + 1):
        if len(group) > 1:
            from scipy.linalg import schur

            triangle, basis = schur(block.D[np.ix_(group, group)], output="complex")
            B[:, group], D[:, group] = B[:, group] @ basis, D[:, group] @ basis
            C[group], D[group] = basis.conj().T @ C[group], basis.conj().T @ D[group]
            D[np.ix_(group, group)] = triangle
    return block._replace(B=np.abs(B), C=np.abs(C), D=np.abs(D))


def difference_norm(block: Blocks) -> float:
    """A bound of the spectral radius of D22 diag(exp(i theta)) over all phases, those of equal
    delays being equal.
    """
    if nilpotent(np.abs(block.D)):
        return 0.0
    return min(_spectral_radius(np.abs(b.D)) for b in (block, turned(block)))


def _spectral_radius(matrix: Floats) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0))


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
    if nilpotent(np.abs(block.D)):
        return -np.inf
    found = [_abscissa(np.abs(b.D), block.delays) for b in (block, turned(block))]
    if len(block.delays) <= EXPANDED:
        a, h = expanded(block.D, block.delays)
        found.append(_zero(lambda c: float(np.log(np.abs(a) @ np.exp(-c * h))), block.delays.max()))
    return min(found)


def _abscissa(inner: Floats, lags: Floats) -> float:
    """The least c at which the spectral radius of a matrix without negative entries, times
    exp(-c tau), is one.
    """
    if nilpotent(inner):
        return -np.inf
    return _zero(lambda c: float(np.log(_spectral_radius(inner * np.exp(-c * lags)))), lags.max())


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
    size, (A, B, C, D) = np.exp(-abscissa * block.delays), map(np.abs, block[:4])
    return A, B * size, C, D * size


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
        if _spectral_radius(loop) < 1 - 1e-9:
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
    a, h = expanded(block.D, block.delays)
    coupled = block.C.T[None, :, :, None] * block.B[:, None, None, :]
    moved, _ = expanded(block.D - coupled, block.delays)
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
    matrix = _discretised(block, points)
    if matrix.shape[0] <= DENSE_NODES:
        return np.linalg.eigvals(matrix.toarray()).astype(complex)
    return _distinct(np.concatenate([undelayed(block), *(_nearest(matrix, s) for s in shifts)]))


def _discretised(block: Blocks, points: NDArray[np.int64]) -> Any:
    """x' = A x + B2 v; each channel's nodes w' = (2 / tau) (D w + d0 z), z = C2 x + D22 v, v the
    last node: a sparse matrix.
    """
    from scipy.sparse import coo_array

    n, size = len(block.A), len(block.A) + int(points.sum())
    states, last = np.arange(n), n + np.cumsum(points) - 1
    blocks = [(states, states, block.A), (states, last, block.B)]
    for k, (q, lag) in enumerate(zip(points, block.delays, strict=True)):
        nodes = np.arange(last[k] + 1 - q, last[k] + 1)
        inner = differentiation(int(q))[1:] * (2 / lag)
        enter = inner[:, :1]
        blocks += [
            (nodes, nodes, inner[:, 1:]),
            (nodes, states, enter * block.C[k]),
            (nodes, last, enter * block.D[k]),
        ]
    rows, columns = np.concatenate(
        [np.stack(np.meshgrid(i, j, indexing="ij")).reshape(2, -1) for i, j, _ in blocks], axis=1
    )
    values = np.concatenate([part.ravel() for *_, part in blocks])
    kept = values != 0
    return coo_array((values[kept], (rows[kept], columns[kept])), shape=(size, size)).tocsc()


def _nearest(matrix: Any, shift: complex) -> NDArray[np.complex128]:
    """Eigenvalues of a large sparse matrix near a shift: guesses, so that those that came are as
    good as any. A shift that is an eigenvalue itself is moved a little.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, eigs

    start = np.random.default_rng(7).normal(size=matrix.shape[0]) + 0j
    how: Any = {"ncv": BASIS, "v0": start, "return_eigenvectors": False, "tol": 1e-4, "maxiter": 2}
    for aside in (0.0, 1e-6, 1e-3):
        at = shift + aside * (1 + 1j) * (1 + abs(shift))
        try:
            return np.asarray(eigs(matrix.astype(complex), 12, sigma=at, **how))
        except ArpackNoConvergence as stopped:
            return np.asarray(stopped.eigenvalues, complex)
        except RuntimeError:  # SuperLU's word for an exactly singular matrix
            continue
    return np.empty(0, complex)


def _distinct(guesses: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Of guesses that are one from several shifts, the first; in the upper half plane."""
    upper = guesses.real + 1j * np.abs(guesses.imag)
    gap = np.abs(upper[:, None] - upper) + np.triu(np.full((len(upper),) * 2, np.inf))
    return upper[~(gap < 1e-3 * np.abs(upper)[:, None]).any(axis=1)]


def undelayed(block: Blocks) -> NDArray[np.complex128]:
    """Eigenvalues with every delay at zero: near the roots that are slow for the delays, however
    many there are.
    """
    try:
        around = np.linalg.solve(np.eye(len(block.delays)) - block.D, block.C)
    except np.linalg.LinAlgError:
        return np.empty(0, complex)
    return np.linalg.eigvals(block.A + block.B @ around).astype(complex)
