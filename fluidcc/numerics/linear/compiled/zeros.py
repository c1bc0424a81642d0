"""Zeros of a pencil's determinant: the argument principle on paths, and Newton's iteration.
Compiled.

Everything in the pencil's own unit of time. With the known roots divided out, ``f(s) / prod(s -
r)`` winds as often as f does, less the known roots inside; that holds for any r, so that a count
does not rest on their accuracy.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.linear.compiled.elimination import eliminate, room


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
    phase, _, rate, _ = eliminate(s, whole, real, work)
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
ROUNDING = 1e-14  # of a root in the unit of time, where slow roots come from what nearly cancels
GOOD = 1e-12
LITTLE = 1e-100  # beside anything that a state sends
LEVEL = 1e-9  # real parts below this, times abs(s), are not told from zero
# the same of multiple roots, which rounding moves by its root of that order, and how wide that is
WIDE, WIDEST = 1e-2, 0.03


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
def bound(row, column, value, n, lags, left):  # type: ignore[no-untyped-def]
    """No root right of `left` has a larger modulus; infinite where this does not show one.

    Of positive weights w of the states: ``abs(s) w <= abs(A) w + abs(B2) E z`` with ``z = abs(C2) w
    + abs(D22) E z``, and a little more, which shows channels that feed one another without states.
    """
    size, best = np.exp(-left * lags), np.inf
    w, z, image = np.ones(n + len(lags)), np.zeros(n + len(lags)), np.empty(n + len(lags))
    w[n:] = 0.0  # what comes out of the channels
    for _ in range(30):
        settled = False
        for _again in range(len(lags) + 40):
            image[:n] = 0.0
            image[n:] = LITTLE
            for e in range(len(row)):
                if row[e] < len(w) and column[e] < len(w):
                    image[row[e]] += abs(value[e]) * w[column[e]]
            settled = True
            for i in range(n, len(w)):
                settled = settled and abs(image[i] - z[i]) <= 1e-15 * image[i]
                z[i] = image[i]
                w[i] = size[i - n] * z[i]
            if settled:
                break
        if not settled:
            return np.inf
        if not n:
            return 0.0
        before = best
        best = min(best, (image[:n] / w[:n]).max())
        most = image[:n].max()
        if most == 0 or best > 0.97 * before:
            break
        w[:n] = image[:n] / most + 1e-9
    return best * (1 + 1e-9)


@njit(entry=True)
def right_of_axis(  # type: ignore[no-untyped-def]
    whole, real, row, column, value, n, lags, slowest, poles
):
    """The number of roots right of the imaginary axis by the argument principle; -1 where some may
    lie on the axis to the resolution, or a bound on them is missing.

    The contour stands on either side of the axis, so far from it that rounding of a multiple root
    does not tell; where the two differ by one root or two conjugates, `LEVEL` of the modulus away.
    Poles of single states left of the axis are divided out: near them the determinant has as many
    roots, without which its argument is followed in longer steps.
    """
    top = bound(row, column, value, n, lags, -WIDEST) * 1.05 + 0.5
    if not np.isfinite(top):
        return -1
    aside = np.minimum(WIDE * np.abs(poles.imag), WIDEST)
    left = poles[poles.real < -1e-6 * (1 + np.abs(poles)) - aside]
    counts, start, right = np.zeros(4, np.int64), max(LEVEL * slowest, ROUNDING), max(top, 1.0)
    for walk in range(4):
        sign = 1.0 if walk % 2 else -1.0
        slope, widest = (WIDE, WIDEST) if walk < 2 else (LEVEL, LEVEL * (slowest + top))
        height = min(top, widest / slope)
        path = np.array([
            complex(sign * start, 0.0), complex(sign * (start + slope * height), height),
            complex(sign * (start + slope * height), top), complex(right, top),
            complex(right, 0.0),
        ])  # fmt: skip
        around = -2 * turns(whole, real, path, left, 1.0)[0]
        if not abs(around - np.round(around)) < 0.02:
            return -1
        counts[walk] = int(np.round(around))
        agree = counts[walk - 1] == counts[walk] and counts[1] <= counts[walk] <= counts[0]
        if not counts[0] or (walk % 2 and agree):
            return counts[walk]
        if walk == 1 and not 0 < counts[0] - counts[1] <= 2:
            break
    return -1
