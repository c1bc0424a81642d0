"""Where the roots of a pencil can be: bounds from matrices of absolute values, and the difference
operator. Of blocks without ports, as `fluidcc.numerics.linear.wiring.core_of` makes them.

A system is retarded when det(I - D22 E(s)) is 1 for every s. Otherwise it is neutral: the zeros of
that determinant carry chains of roots of growing frequency, and only left of their abscissa is the
number of roots finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.wiring import Blocks, Entries, spectral_radius

Floats = NDArray[np.float64]

EQUAL = 1e-12
"""Relative difference up to which two delays are one: sums of the same numbers in another order."""

BALANCING = 20
"""Rounds in which units of channels are chosen."""

EXPANDED = 8
"""Channels up to which the determinant of the difference operator is expanded: 255 minors."""


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


def _larger(matrix: Floats) -> float:
    """An upper bound of the spectral radius of a matrix without negative entries."""
    return spectral_radius(matrix) * (1 + 1e-9)


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
    """The least c at which a bound of the spectral radius of D22 exp(-c tau) is one [1/time]; minus
    infinity if it is never.

    Right of it the difference operator has no spectrum, whatever the ratios of the delays (strong
    stability, after Hale and Verduyn Lunel, Introduction to Functional Differential Equations,
    1993, section 9.6). With one delay in all cycles it is exact, and otherwise an upper bound, as
    is the c at which the terms of `expanded` together are one in absolute value, and that at which
    a norm of D22 exp(-c tau) is.
    """
    if nilpotent(np.abs(block.D)):
        return -np.inf
    longest, found = block.delays.max(), list[float]()
    for U, V, lags in _factors(block):
        loop, sizes = V @ U, (lambda W: spectral_radius(np.abs(W)), lambda W: _norm(W)[0])
        found += [_zero(partial(_excess, size, loop, lags), longest) for size in sizes]
    if len(block.delays) <= EXPANDED:
        a, h = expanded(block.D, block.delays)
        found.append(_zero(lambda c: _log(np.abs(a) @ np.exp(-c * h)), longest))
    return min(found)


def _excess(size: Callable[[Any], float], loop: Any, lags: Floats, abscissa: float) -> float:
    return _log(size(loop * np.exp(-abscissa * lags)))


def _log(size: Any) -> float:
    return float(np.log(max(size, 1e-300)))


def _factors(block: Blocks) -> Iterator[tuple[Any, Any, Floats]]:
    """D22 E as U E' V: U, V and the delays of E'. With the channels as they are; and with as few
    for each delay as its rank, so turned that V U is triangular among those of one delay.

    Equal delays stay equal whatever becomes of them, as with flows of one round trip, so that such
    channels are one vector behind one delay: its coordinates are free, and cycles that cancel leave
    abs(V U).
    """
    yield block.D, np.eye(len(block.D)), block.delays
    from scipy.linalg import schur

    left, right, lags = [], [], []
    for group in _equal(block.delays, np.argsort(block.delays, kind="stable")):
        u, s, vh = np.linalg.svd(block.D[:, group], full_matrices=False)
        root = np.sqrt(s[s > EQUAL * s.max(initial=1.0)])
        if not len(root):
            continue
        u, v = u[:, : len(root)] * root, root[:, None] * vh[: len(root)]
        basis = schur(v @ u[group], output="complex")[1]
        whole = np.zeros((len(root), len(block.D)), complex)
        whole[:, group] = basis.conj().T @ v
        left.append(u @ basis)
        right.append(whole)
        lags += [block.delays[group[0]]] * len(root)
    yield np.concatenate(left, axis=1), np.concatenate(right), np.array(lags)


def _norm(W: Any) -> tuple[float, Floats]:
    """The norm of a matrix in units in which it is about the least; and these.

    E' is of norm one on the axis whatever the delays are, so that the norm of V U bounds the
    spectral radius: flows that share a queue are told of it by a projection, whose norm is one
    however many they are, while absolute values add up.
    """
    square, unit = np.abs(W) ** 2, np.ones(len(W))
    np.fill_diagonal(square, 0.0)
    for i in BALANCING * list(range(len(W))):  # as before eigenvalues are found (Osborne 1960)
        into, out = square[i] @ unit**-2, unit**2 @ square[:, i]
        if into > 0 and out > 0:
            unit[i] = (out / into) ** 0.25
    return float(np.linalg.norm(unit[:, None] * W / unit, 2)), unit


def _equal(delays: Floats, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Channels, whose delays rise, by their delay."""
    apart = np.diff(delays[order]) > EQUAL * delays[order[1:]]
    return np.split(order, np.flatnonzero(apart) + 1)


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


def radius(block: Blocks, abscissa: float) -> float:
    """No root with real part at least `abscissa` has a larger modulus; infinite where no bound
    exists.

    Each root is an eigenvalue of ``A + B2 E (I - D22 E)^-1 C2``, so its modulus is at most the
    spectral radius of the same expression in absolute values, with abs(E) at most exp(-abscissa
    tau).
    """
    A, B, C, D = map(np.abs, block[:4])
    late = B * np.exp(-abscissa * block.delays)
    if not D.any():
        return _larger(A + late @ C)
    for U, V, lags in _factors(block):  # (I - D22 E)^-1 is I + U E' (I - V U E')^-1 V
        size = np.exp(-abscissa * lags)
        W, into, out = V @ U * size, late @ (np.abs(U) * size), np.abs(V) @ C
        if spectral_radius(np.abs(W)) < 1 - 1e-9:
            inner = np.linalg.solve(np.eye(len(W)) - np.abs(W), out).clip(0)
            return _larger(A + late @ C + into @ inner)
        norm, unit = _norm(W)
        if norm < 1 - 1e-9:
            into = np.linalg.norm(into / unit, axis=1)
            out = np.linalg.norm(unit[:, None] * out, axis=0)
            return _larger(A + late @ C + np.outer(into, out) / (1 - norm))
    if is_neutral(block):
        return _radius_expanded(block, abscissa) if len(block.delays) <= EXPANDED else np.inf
    # retarded by cancellation: (I - D22 E)^-1 is the adjugate, a polynomial of degree below the
    # number of channels
    loop = D * np.exp(-abscissa * block.delays)
    total = power = np.eye(len(loop))
    for _ in range(len(loop) - 1):
        power = power @ loop
        total = total + power
    return _larger(A + late @ total @ C)


def _radius_expanded(block: Blocks, abscissa: float) -> float:
    """`radius` by terms of determinants: 1 + b E (I - D22 E)^-1 c is det(I - (D22 - c b) E) over
    det(I - D22 E).
    """
    a, h = expanded(block.D, block.delays)
    coupled = block.C.T[None, :, :, None] * block.B[:, None, None, :]
    moved, _ = expanded(block.D - coupled, block.delays)
    size = np.exp(-abscissa * h)
    least = 1.0 - float(np.abs(a) @ size)
    return _larger(np.abs(block.A) + np.abs(moved - a) @ size / least) if least > 1e-9 else np.inf


# --- approximate characteristic roots -------------------------------------------------------------


DENSE_NODES = 260
"""Unknowns of a collocation up to which all its eigenvalues are computed."""

MOST = 2000
"""Guesses that are kept, the rightmost."""

BASIS, NEAREST, SETTLED = 48, 16, 1e-3
"""Vectors of an Arnoldi basis near a shift, guesses that are taken of it, and their tolerance."""


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


def points_for(delays: Floats, reach: float, least: int) -> NDArray[np.int64]:
    """Points a channel so that frequencies up to `reach` are resolved: those of exp(-s tau) and a
    few more.

    Half a point for each radian is what exp(-s tau) itself needs.
    """
    return np.maximum(
        2, np.ceil(least * np.sqrt(delays / delays.max()) + 0.55 * reach * delays)
    ).astype(np.int64)


def approximate_roots(
    of: Entries, points: NDArray[np.int64], shifts: NDArray[Any], far: float, more: int
) -> NDArray[np.complex128]:
    """Eigenvalues of collocations of an autonomous block around some shifts, where there are
    several those up to `far` away: all of them, or, of a large one, those nearest each; in the
    upper half plane.
    """
    found, (collocation, moving) = [], _collocation(of, points)
    for shift in shifts:
        matrix = collocation(shift)
        if len(moving) > DENSE_NODES:
            found.append(shift + _nearest(matrix, moving, more))
            continue
        whole = matrix.toarray()
        own, among = whole[np.ix_(moving, moving)], whole[np.ix_(~moving, ~moving)]
        if len(among):
            back = np.linalg.solve(among, whole[np.ix_(~moving, moving)])
            own = own - whole[np.ix_(moving, ~moving)] @ back
        found.append(shift + np.linalg.eigvals(own if shift else own.real))
    if len(shifts) > 1:
        found = [
            s[np.abs(s.imag - shift.imag) < far] for s, shift in zip(found, shifts, strict=True)
        ]
    return _distinct(np.concatenate(found))


def _collocation(
    of: Entries, points: NDArray[np.int64]
) -> tuple[Callable[[complex], Any], NDArray[np.bool_]]:
    """x' = A x + B2 v; each channel's nodes w' = (2 / tau) (D w + d0 z), z = C2 x + D22 v, v the
    last node; 0 = z - v without a delay: the sparse matrix around a shift, and which rows are
    derivatives.

    All signals are those beside exp(shift t), so that a few nodes do for the roots near a shift.
    """
    from scipy.sparse import coo_array

    n, lags = of.n, of.delays[0]
    nodes = [
        2 / lag * differentiation(q)[1:] if lag else np.array([[1.0, -1.0]])
        for q, lag in zip(points.tolist(), lags.tolist(), strict=True)
    ]
    held = np.array([1] * n + [len(one) for one in nodes])  # rows of each state and channel
    end = np.cumsum(held)
    size, start, last = int(held.sum()), end - held, end - 1
    enter = np.concatenate((np.ones(n), *(one[:, 0] for one in nodes)))
    inner = np.concatenate((np.zeros(n), *(one[:, 1:].ravel() for one in nodes)))
    moving = np.ones(size, bool)
    moving[last[n:][lags == 0]] = False
    # each entry stands in all rows of its own
    entry, row = _spread(held[of.row], start[of.row])
    own_row, own_column = _spread(np.repeat(held, held), np.repeat(start, held))

    def around(shift: complex) -> Any:
        late = np.concatenate((np.ones(n), np.exp(-shift * lags)))
        value = (of.value[0] * late[of.column])[entry] * enter[row]
        shifted = inner - shift * (np.arange(len(inner)) < n)
        column = np.concatenate((last[of.column[entry]], own_column))
        places = np.concatenate((row, own_row)), column
        return coo_array((np.concatenate((value, shifted)), places), (size, size)).tocsc()

    return around, moving


def _spread(count: NDArray[np.int64], start: NDArray[np.int64]) -> tuple[Any, Any]:
    """Numbers each repeated so often, and beside them whole numbers that rise from its start."""
    which = np.repeat(np.arange(len(count)), count)
    return which, np.arange(len(which)) + (start - np.cumsum(count) + count)[which]


def _nearest(matrix: Any, moving: NDArray[np.bool_], more: int) -> NDArray[np.complex128]:
    """Eigenvalues of a large sparse pencil near zero: guesses, those that have settled."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs, splu

    for aside in (1e-9, 1e-6, 1e-3):  # where zero itself is an eigenvalue
        at = aside * (1 + 1j)
        with suppress(RuntimeError):  # SuperLU's word for an exactly singular matrix
            factors = splu((matrix - at * diags_array(moving.astype(complex))).tocsc())
            break
    else:
        return np.empty(0, complex)
    back = LinearOperator(matrix.shape, lambda v: factors.solve(moving * v), dtype=complex)
    size, start = min(more * BASIS, len(moving)), np.random.default_rng(7).normal(size=len(moving))
    how: Any = {"ncv": size, "v0": start, "tol": SETTLED, "return_eigenvectors": False}
    try:
        found = eigs(back, more * NEAREST, **how)
    except ArpackNoConvergence as raised:
        found = raised.eigenvalues
    return at + 1 / found[found != 0]


def _distinct(guesses: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Of guesses that are one from several shifts, the first; in the upper half plane."""
    upper = guesses[guesses.imag >= -1e-6 * (1 + np.abs(guesses))]
    upper = upper.real + 1j * np.abs(upper.imag)
    upper = upper[np.argsort(-upper.real)][:MOST]
    gap = np.abs(upper[:, None] - upper) + np.triu(np.full((len(upper),) * 2, np.inf))
    return upper[~(gap < 1e-4 * np.abs(upper)[:, None]).any(axis=1)]
