"""Zeros of a pencil's determinant: the argument principle on paths, and Newton's iteration.
Compiled.

Everything in the pencil's own unit of time. With the known roots divided out, ``f(s) / prod(s -
r)`` winds as often as f does, less the known roots inside; that holds for any r, so that a count
does not rest on their accuracy.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.linear.compiled.elimination import determinant, eliminate, pivoted, room


@njit(entry=True)
def iterate(start, whole, real, known, rounds):  # type: ignore[no-untyped-def]
    """Newton's iteration from every start, away from the `known` roots (Maehly).

    Returns the last points, and the relative size of the last steps.
    """
    end, size = start.copy(), np.full(len(start), np.inf)
    work = room(whole, real)
    for i in range(len(start)):
        for _ in range(rounds):
            _, rate = _at(end[i], whole, real, work, known)
            end[i], size[i] = _step(end[i], rate)
            if size[i] <= 1e-13:
                break
    return end, size


@njit()
def _at(s, whole, real, work, known):  # type: ignore[no-untyped-def]
    """Phase and logarithmic derivative of the determinant less the known roots."""
    if eliminate(s, whole, real, work):
        none = np.empty((0, 0), np.complex128)
        phase, _, rate, _ = pivoted(s, whole, real, none, none)
    else:
        phase, _, rate = determinant(whole, work)
    for root in known:
        gap = s - root
        if gap != 0:
            phase *= gap.conjugate() * (1 / abs(gap))
            rate -= 1 / gap
    return phase, rate


@njit(counted=False)
def _step(s, rate):  # type: ignore[no-untyped-def]
    """Where Newton's step leads from s, and its size relative to what it leads to.

    A step of rounding counts as small, unless the root is rounding itself.
    """
    reach = 1 + abs(s)
    move = 1 / rate if rate != 0 else 0.5 + 0j
    if not np.isfinite(move.real + move.imag):
        move = 0.5 + 0j
    length = abs(move)
    if length > 0.5 * reach:  # far from any root: no leap
        move *= 0.5 * reach / length
        length = 0.5 * reach
    size = length / max(abs(s - move), 1e-300)
    return s - move, min(size, GOOD) if length < ROUNDING and size < 1e-3 else size


# --- zeros of a pencil's determinant --------------------------------------------------------------


TURN = 1.0  # how much the logarithmic derivative may change over an interval, times its length
AGREE = 0.3  # radians between the turn of the argument and that which the derivative foretells
ROUNDS = 60  # halvings of an interval
MOST_POINTS = 100_000  # at which the argument is looked at along a contour
NEWTON = 25
ROUNDING = 1e-14  # of a root in the unit of time, where slow roots come from what nearly cancels
GOOD = 1e-12
FEW = 4  # starts between which the roots found are counted
ROOTS = 40  # that are kept, conjugates among them
LEVEL = 1e-9  # real parts below this, times abs(s), are not told from zero
STARTS = np.array([
    0.1 + 0.1j, 0.1 + 1.5j, 0.02 + 0.02j, 0.2 + 3j, -0.2 + 0.5j, -0.5 + 0.01j, 0.3 + 6j,
    -1.5 + 0.3j,
    0.1 + 2.2j, 0.3 + 9j, -0.05 + 0.01j, -0.3 + 4.5j, -0.8 + 1j, 0.5 + 13j, -3 + 0.1j, -1 + 7j,
    -5 + 8j, -5 + 14j,  # left of a chain of a lag's roots Newton goes to them, right of it away
    -0.005 + 0.001j, 0.1 + 0.7j, -1 + 18j, -0.5 + 11j, 0.5 + 0.01j, 1 + 2j, 2 + 0.1j, 1 + 5j,
    -2 + 2j, 3 + 3j, -1 + 25j, -0.1 + 0.3j, -6 + 0.1j, -2.5 + 5j, -0.02j, 1 + 1j,
])  # fmt: skip


@njit(entry=True)
def turns(whole, real, corners, known, density):  # type: ignore[no-untyped-def]
    """Turns of the argument along a polygon, in units of 2 pi, and where it could not be followed
    (NaN if it could). The turns are NaN where it could not, infinite where that takes too long.

    Intervals are halved until the argument's turn agrees with what the logarithmic derivative
    foretells and that derivative hardly changes across them.
    """
    work, total = room(whole, real), 0.0
    ahead, phases = np.empty(ROUNDS, np.complex128), np.empty(ROUNDS, np.complex128)
    slopes = np.empty(ROUNDS, np.complex128)
    s = corners[0]
    phase, slope = _at(s, whole, real, work, known)
    left = MOST_POINTS
    for edge in range(len(corners) - 1):
        a, b = corners[edge], corners[edge + 1]
        count = 4 + int(density * min(abs(b - a), 400.0))
        for k in range(1, count + 1):
            ahead[0] = a + (b - a) * (k / count) if k < count else b
            phases[0], slopes[0] = _at(ahead[0], whole, real, work, known)
            depth = 0
            while depth >= 0:  # the next point to reach is the last of those ahead
                move = ahead[depth] - s
                foretold = (0.5 * (slope + slopes[depth]) * move).imag
                turn = np.angle(phases[depth] * phase.conjugate())
                miss = abs((turn - foretold + np.pi) % (2 * np.pi) - np.pi)
                if abs(slopes[depth] - slope) * abs(move) < TURN and miss < AGREE:
                    total += turn + 2 * np.pi * np.round((foretold - turn) / (2 * np.pi))
                    s, phase, slope = ahead[depth], phases[depth], slopes[depth]
                    depth -= 1
                    continue
                depth += 1
                if depth == ROUNDS or abs(move) < 1e-14 * abs(s):
                    return np.nan, s
                left -= 1
                if left == 0:
                    return np.inf, s
                ahead[depth] = s + 0.5 * move
                phases[depth], slopes[depth] = _at(ahead[depth], whole, real, work, known)
    return total / (2 * np.pi), complex(np.nan, np.nan)


@njit(entry=True)
def bound(A, B, C, D, lags, left):  # type: ignore[no-untyped-def]
    """No root right of `left` has a larger modulus; infinite where this does not show one.

    Of positive weights w of the states: ``abs(s) w <= abs(A) w + abs(B2) E z`` with ``z = abs(C2) w
    + abs(D22) E z``.
    """
    if not len(A):
        return 0.0
    size, best = np.exp(-left * lags), np.inf
    w, z = np.ones(len(A)), np.zeros(len(lags))
    image, fresh = np.empty(len(A)), np.empty(len(lags))
    for _ in range(30):
        settled = False
        for _again in range(len(lags) + 40):
            _sums(C, w, D, size * z, fresh)
            settled = bool((np.abs(fresh - z) <= 1e-15 * fresh).all())
            z[:] = fresh
            if settled:
                break
        if not settled:
            return np.inf
        _sums(A, w, B, size * z, image)
        before, best = best, min(best, (image / w).max())
        if image.max() == 0 or best > 0.97 * before:
            break
        w = image / image.max() + 1e-9
    return best * (1 + 1e-9)


@njit(counted=False)
def _sums(A, x, B, y, out):  # type: ignore[no-untyped-def]
    """abs(A) x + abs(B) y."""
    for i in range(len(out)):
        total = 0.0
        for j in range(len(x)):
            total += abs(A[i, j]) * x[j]
        for j in range(len(y)):
            total += abs(B[i, j]) * y[j]
        out[i] = total


@njit()
def _next(starts, whole, real, known, found, zeros):  # type: ignore[no-untyped-def]
    """Look for more roots and put them, with their conjugates, behind the first `found` known
    ones, of which the first are `zeros`; their number.
    """
    for first in range(len(starts)):
        start = starts[first : first + 1].copy()
        s, size = iterate(start, whole, real, known[:found], NEWTON)
        if not size[0] < 1e-11 or found > len(known) - 2:
            continue
        s, size = iterate(s, whole, real, known[:zeros], NEWTON)  # without the others' rounding
        if not size[0] < 1e-11:
            continue
        flat = abs(s[0].imag) < 1e-11 * abs(s[0])
        root = complex(s[0].real, 0.0 if flat else abs(s[0].imag))
        fresh = True
        for other in known[:found]:
            fresh &= abs(other - root) > 1e-5 * abs(root)
        if not fresh:
            continue
        known[found] = root
        found += 1
        if not flat:
            known[found] = root.conjugate()
            found += 1
    return found


@njit(entry=True)
def gather(whole, real, starts, zeros):  # type: ignore[no-untyped-def]
    """Simple roots that Newton reaches from the starts, with conjugates; not so many at zero."""
    known = np.zeros(2 * len(starts) + 2 + zeros, np.complex128)
    return known[zeros : _next(starts, whole, real, known, zeros, zeros)].copy()


@njit()
def _half_box(left, top):  # type: ignore[no-untyped-def]
    right = max(top, left + 1)
    return np.array([left + 0j, left + 1j * top, right + 1j * top, right + 0j])


@njit(entry=True)
def rightmost(whole, real, A, B, C, D, lags):  # type: ignore[no-untyped-def]
    """The rightmost root and the number of roots right of the axis, by the argument principle and
    by Newton.

    The count is that of the argument principle along the axis, without any known root, and of the
    roots found; the rightmost root has none right of a line on its left but those found. NaN and -1
    where the two do not agree, where a root lies on the axis to the resolution, or where a bound is
    missing: then the full search has to be asked.
    """
    nothing = np.empty(0, np.complex128)
    top = bound(A, B, C, D, lags, 0.0) * 1.05 + 0.5
    if not np.isfinite(top):
        return complex(np.nan, 0.0), -1
    around, _ = turns(whole, real, _half_box(0.0, top), nothing, 1.0)
    count = np.round(-2 * around)
    if not abs(-2 * around - count) < 0.02:
        return complex(np.nan, 0.0), -1
    known, found = np.empty(ROOTS, np.complex128), 0
    for first in range(0, len(STARTS), FEW):
        starts = STARTS[first : first + FEW].copy()  # not read-only
        found = _next(starts, whole, real, known, found, 0)
        if not found:
            continue
        best, right = _settled(whole, real, A, B, C, D, lags, known[:found])
        if right == count:
            return best, right
    return complex(np.nan, 0.0), -1


@njit()
def _settled(whole, real, A, B, C, D, lags, known):  # type: ignore[no-untyped-def]
    """The rightmost of the known roots and how many are right of the axis, or -1 if others may
    be further right.
    """
    order = np.argsort(-known.real)
    best = known[order[0]]
    for s in known:
        if abs(s.real) <= LEVEL * (1 + abs(s)):  # of networks, whose entries are not exact
            return best, -1
    left = best.real - 0.05
    for i in range(1, len(known)):
        gap = known[order[i - 1]].real - known[order[i]].real
        if gap > 1e-3:
            left = known[order[i - 1]].real - min(0.5 * gap, 0.5)
            break
    top = bound(A, B, C, D, lags, left)
    if not np.isfinite(top):
        return best, -1
    top = max(top, abs(left)) * 1.05 + 0.5
    others, _ = turns(whole, real, _half_box(left, top), known, 1.0)
    if not abs(others) < 0.01:
        return best, -1
    return complex(best.real, abs(best.imag)), (known.real > 0).sum()


@njit(entry=True)
def rightmost_of_all(whole, table, A, B, C, D, lags):  # type: ignore[no-untyped-def]
    """`rightmost` of every system of a stack, each by itself."""
    root, count = np.empty(len(table), np.complex128), np.empty(len(table), np.int64)
    for k in range(len(table)):
        root[k], count[k] = rightmost(whole, table[k], A[k], B[k], C[k], D[k], lags[k])
    return root, count
