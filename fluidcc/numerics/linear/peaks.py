"""The least singular value of I + L and the largest of L (I + L)^-1 over all frequencies."""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.linear.loci import Floats, Ints, Loci, from_left, from_right
from fluidcc.numerics.linear.pencil import Complex, Pencil

__all__ = ["peaks"]

ROUNDS = 40
CANDIDATES = 1.3  # local extrema within this factor of the best on the grid are refined


def peaks(pencil: Pencil, loci: Loci, still: Complex, rank: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Modulus margin and complementary peak, each with its frequency in the system's unit of time, one a system.

    `still` is the return ratio of each at frequency zero.
    """
    systems = len(pencil.times)
    finite = np.flatnonzero(np.isfinite(still).all(axis=(1, 2)))
    out = []
    for largest in (False, True):
        value, rise = _singular(loci.ratio, loci.ratio_slope, largest, rank)
        sign = -1.0 if largest else 1.0
        score = sign * value
        same = loci.which[1:] == loci.which[:-1]
        turn = same & (sign * rise[:-1] < 0) & (sign * rise[1:] >= 0)
        best, at = np.full(systems, np.inf), np.full(systems, np.nan)
        _update(best, at, loci.which, score, loci.omega)
        i = np.flatnonzero(turn)
        level = best[loci.which[i]]
        lowest = np.minimum(score[i], score[i + 1])
        i = i[np.where(largest, -lowest * CANDIDATES >= -level, lowest <= level * CANDIDATES + 1e-12)]
        if len(i):
            omega, exact = _refine(pencil, loci, i, sign * rise[i], sign * rise[i + 1], largest, rank)
            _update(best, at, loci.which[i], sign * exact, omega)
        if len(finite):
            rest = _singular(still[finite], np.zeros_like(still[finite]), largest, rank)[0]
            _update(best, at, finite, sign * rest, np.zeros(len(finite)))
        if not largest:  # far out the loop is open
            _update(best, at, np.arange(systems), np.ones(systems) * _end(pencil), np.full(systems, np.inf))
        out += [sign * best, at]
    return out[0], out[1], out[2], out[3]


def _end(pencil: Pencil) -> Floats:
    """One where the loop is strictly proper; nothing is claimed about it elsewhere."""
    m, p = pencil.ports
    direct = np.abs(pencil.scaled.D)
    through = direct[:, :p, :m].sum(axis=(1, 2)) + direct[:, :p, m:].sum(axis=(1, 2)) * direct[:, p:, :m].sum(
        axis=(1, 2)
    )
    return np.where(through == 0, 1.0, np.inf)


def _update(best: Floats, at: Floats, which: Ints, score: Floats, omega: Floats) -> None:
    order = np.lexsort((score, which))
    first = order[np.r_[True, np.diff(which[order]) > 0]]
    better = first[score[first] < best[which[first]]]
    best[which[better]], at[which[better]] = score[better], omega[better]


def _singular(ratio: Complex, slope: Complex, largest: bool, rank: int) -> tuple[Floats, Floats]:
    """The singular value and its derivative with respect to the frequency."""
    m = ratio.shape[-1]
    basis: Complex | None = None
    full = slope
    if 1 < rank < m / 2 and m > 6:
        # beside the range of L and that of its adjoint, I + L is the identity: work in that small space
        some = np.random.default_rng(11).normal(size=(m, rank))
        right = from_right(ratio, some)
        left = from_left(some.T, ratio).conj().transpose(0, 2, 1)
        basis = np.asarray(np.linalg.qr(np.concatenate((right, left), axis=2))[0])
        ratio = basis.conj().transpose(0, 2, 1) @ (ratio @ basis)
        m = 2 * rank
    one = np.eye(m)
    if m == 1:
        back, rate = 1 + ratio[:, 0, 0], 1j * slope[:, 0, 0]
        if largest:
            back = np.where(back == 0, np.finfo(float).tiny, back)
            top = ratio[:, 0, 0] / back
            size = np.abs(top)
            change = rate / back**2
            return size, (top.conj() * change).real / np.maximum(size, 1e-300)
        size = np.abs(back)
        return size, (back.conj() * rate).real / np.maximum(size, 1e-300)
    if rank == 1:
        return _singular_of_one(ratio, slope, largest)
    matrix = one + ratio
    sensitivity = np.linalg.inv(matrix) if largest else None
    u, size, v = np.linalg.svd(matrix if sensitivity is None else one - sensitivity)
    k = 0 if largest else m - 1
    a, b = u[:, :, k], v[:, k, :].conj()
    if sensitivity is not None:  # T = I - S changes by S dL S
        a = np.einsum("pji,pj->pi", sensitivity.conj(), a)
        b = np.einsum("pij,pj->pi", sensitivity, b)
    if basis is not None:
        a, b = np.einsum("pij,pj->pi", basis, a), np.einsum("pij,pj->pi", basis, b)
    rise = (1j * np.einsum("pi,pi->p", a.conj(), np.einsum("pij,pj->pi", full, b))).real
    top = size[:, k].real
    if basis is not None and not largest:
        return np.where(top > 1, 1.0, top).astype(float), np.where(top > 1, 0.0, rise).astype(float)
    return np.asarray(top, float), np.asarray(rise, float)


def _singular_of_one(ratio: Complex, slope: Complex, largest: bool) -> tuple[Floats, Floats]:
    """The same for a return ratio of rank one and two channels or more, in closed form.

    With the eigenvalue a and the Frobenius norm f of L, the singular values of I + L other than one have the product
    ``p = abs(1 + a)`` and the sum of squares ``p^2 + 1 + e`` with ``e = f^2 - abs(a)^2``; that of L (I + L)^-1 is f/p.
    """
    value, rate = np.trace(ratio, axis1=1, axis2=2), 1j * np.trace(slope, axis1=1, axis2=2)
    norm = (np.abs(ratio) ** 2).sum(axis=(1, 2))
    norm_rise = 2 * (1j * ratio.conj() * slope).real.sum(axis=(1, 2))
    product = np.maximum(np.abs(1 + value), np.finfo(float).tiny)
    product_rise = ((1 + value).conj() * rate).real / product
    if largest:
        size = np.sqrt(norm) / product
        return size, size * (0.5 * norm_rise / np.maximum(norm, 1e-300) - product_rise / product)
    excess = np.maximum(norm - np.abs(value) ** 2, 0.0)
    excess_rise = norm_rise - 2 * (value.conj() * rate).real
    total, gap = np.sqrt((1 + product) ** 2 + excess), np.sqrt((1 - product) ** 2 + excess)
    total_rise = ((1 + product) * product_rise + 0.5 * excess_rise) / total
    gap_rise = ((product - 1) * product_rise + 0.5 * excess_rise) / np.maximum(gap, 1e-300)
    top = 0.5 * (total + gap)
    size = product / top
    return size, (product_rise - size * 0.5 * (total_rise + gap_rise)) / top


def _refine(
    pencil: Pencil, loci: Loci, i: Ints, left: Floats, right: Floats, largest: bool, rank: int
) -> tuple[Floats, Floats]:
    """Zeros of the derivative between two points, by false position with Illinois' correction."""
    which, low, high = loci.which[i], loci.omega[i].copy(), loci.omega[i + 1].copy()
    left, right = left.copy(), right.copy()
    sign = -1.0 if largest else 1.0
    omega, value = low.copy(), np.empty(len(i))
    kept = np.zeros(len(i), np.int64)
    for turn in range(ROUNDS):
        with np.errstate(all="ignore"):
            fresh = (low * right - high * left) / (right - left)
        inside = (fresh > low) & (fresh < high) & (turn % 8 != 7)
        omega = np.where(inside, fresh, 0.5 * (low + high))
        got = pencil.values((1j * omega).astype(complex), True, True, which)
        value, rise = _singular(got.response, got.response_slope, largest, rank)
        rise = sign * rise
        below = rise < 0
        left = np.where(below, rise, np.where(kept == 1, 0.5 * left, left))
        right = np.where(below, np.where(kept == -1, 0.5 * right, right), rise)
        low, high = np.where(below, omega, low), np.where(below, high, omega)
        kept = np.where(below, -1, 1)
        if (np.abs(rise) * (high - low) < 1e-14 * (value + 1e-3)).all() or (high - low < 1e-9 * high).all():
            break
    return omega, value
