"""What the first pass of a step looks into where it looks into the step itself, and what is learned from that."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .fixed_point import forget
from .records import carry_on, linear_record, place

__all__ = ["begin_passes", "learn", "raised"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_SIZED = {**_CFG, "forceinline": True}

DECAYING = 5  # in place of a degree: the last record, smaller than it by as much as that was than the one before
GROWN = 2.0  # a record over the one before, from which on that is not taken for a decay


@njit(**_CFG)
def _power(x: float, n: int) -> float:
    y = x
    for _ in range(1, n):
        y *= x
    return y


@njit(**_SIZED)
def raised(x: float, power: float) -> float:
    """x^power for 0 < x < 2 and 0 < power < 2, five times as quick as by a library: to 1e-6 for x > 0.1, else coarser.

    It is for a guess alone. The logarithm is that of the fourth root, as a power series of (root - 1) / (root + 1).
    """
    root = math.sqrt(math.sqrt(x))
    z = (root - 1.0) / (root + 1.0)
    w = z * z
    half = z * (1.0 + w * (1.0 / 3.0 + w * (1.0 / 5.0 + w * (1.0 / 7.0 + w * (1.0 / 9.0 + w * (1.0 / 11.0))))))
    a = 0.5 * power * half  # a sixteenth of the logarithm of the result
    y = 1.0 + a * (1.0 + a * (0.5 + a * (1.0 / 6.0 + a * (1.0 / 24.0 + a * (1.0 / 120.0 + a * (1.0 / 720.0))))))
    y *= y
    y *= y
    y *= y
    return y * y


@njit(**_SIZED)
def begin_passes(F: Any, I: Any, nq: int, nl: int) -> None:
    """Put what the first pass looks into at the ring's next place, and into the memory of the passes.

    It is the last record, carried on up to some degree or after its decay, as would have been best in the step before,
    with what that missed there where it has been regular; after a breaking point it is the first stage alone. `nq` is
    I[NQ], and `nl` I[NL].
    """
    jq, r = I[s.JQ], place(I, I[s.NREC])
    x = I[s.OPASS]
    I[s.PASS] = 0
    F[s.REST] = np.inf
    if I[s.FRESH] or F[s.H] > 2.0 * F[s.HPREV]:
        linear_record(F, I, F[s.H])
        forget(F, I)
        F[s.SIGMA] = np.inf
        F[s.RATIO] = 0.0
        for q in range(nq):
            o = r + I[jq + q]
            F[x], F[x + 1], F[x + 2], F[x + 3] = F[o + 1], F[o + 2], F[o + 3], F[o + 4]
            x += 4
        return
    before = place(I, I[s.NREC] - 1)
    carry_on(F, I, before, r, nq, nl)
    ratio, degree = F[r + s.RH] * F[before + s.RINVH], I[s.DEGREE]
    growth = ratio / F[s.RATIOBEFORE] if F[s.RATIOBEFORE] > 0.0 else 2.0
    F[s.RATIO] = ratio
    share = F[s.REGULAR] * _power(growth, 1 + degree) if growth < 1.25 else 0.0
    carried, missed, decayed = x + 4 * nq, x + 8 * nq, x + 28 * nq
    k2, k3, k4 = 1.0 if degree > 1 else 0.0, 1.0 if degree > 2 else 0.0, 1.0 if degree > 3 else 0.0
    f1 = F[s.DECAY] * ratio
    f2, square = f1 * ratio, ratio * ratio
    f3, f4 = f1 * square, f2 * square
    for q in range(nq):
        o, last = r + I[jq + q], before + I[jq + q]
        a, b, c, d = F[o + 1], F[o + 2], F[o + 3], F[o + 4]
        F[carried], F[carried + 1], F[carried + 2], F[carried + 3] = a, b, c, d
        u, v, w, z = f1 * F[last + 1], f2 * F[last + 2], f3 * F[last + 3], f4 * F[last + 4]
        F[decayed], F[decayed + 1], F[decayed + 2], F[decayed + 3] = u, v, w, z
        if degree != DECAYING:
            u, v, w, z = a, k2 * b, k3 * c, k4 * d
        a, b = u + share * F[missed], v + share * F[missed + 1]
        c, d = w + share * F[missed + 2], z + share * F[missed + 3]
        F[x], F[x + 1], F[x + 2], F[x + 3] = a, b, c, d
        F[o + 1], F[o + 2], F[o + 3], F[o + 4] = a, b, c, d
        x, carried, missed, decayed = x + 4, carried + 4, missed + 4, decayed + 4


@njit(**_SIZED)
def learn(F: Any, I: Any, nq: int, nql: int) -> None:
    """Note how an accepted step, which still is the ring's next, would have been guessed best.

    High degrees magnify what is left of earlier errors, low ones miss more of the solution. What is missed is mostly
    the next term of a power series, and grows with a power of the step: so it tells what the next guess will miss. A
    solution that comes to rest does so by an exponential function, of which a long step's power series misses much:
    there each record is the one before, only smaller.
    """
    ratio, before, expected = F[s.RATIO], F[s.RATIOBEFORE], F[s.DECAY]
    F[s.RATIOBEFORE] = ratio
    F[s.REGULAR] = F[s.DECAY] = 0.0
    if ratio == 0.0:
        I[s.DEGREE] = 4
        return
    jq, weights, r, last = I[s.JQ], I[s.OWEIGHT], place(I, I[s.NREC]), place(I, I[s.NREC] - 1)
    carried, decayed = I[s.OPASS] + 4 * nq, I[s.OPASS] + 28 * nq
    square = ratio * ratio
    w1, w2, w3, w4, w5 = 0.0, 0.0, 0.0, 0.0, 0.0
    along, size = 0.0, 0.0
    for q in range(nql):
        o, w, c, e, l = r + I[jq + q], F[weights + q], carried + 4 * q, decayed + 4 * q, last + I[jq + q]
        rest = (F[o + 1] + F[o + 2]) + (F[o + 3] + F[o + 4])
        old = (ratio * F[l + 1] + square * F[l + 2]) + square * (ratio * F[l + 3] + square * F[l + 4])
        along += (w * old) * (w * rest)
        size += (w * old) * (w * old)
        w5 = max(w5, w * abs(rest - ((F[e] + F[e + 1]) + (F[e + 2] + F[e + 3]))))
        rest -= F[c]
        w1 = max(w1, w * abs(rest))
        rest -= F[c + 1]
        w2 = max(w2, w * abs(rest))
        rest -= F[c + 2]
        w3 = max(w3, w * abs(rest))
        w4 = max(w4, w * abs(rest - F[c + 3]))
    degree = 4
    if w3 < w4:
        degree, w4 = 3, w3
    if w2 < w4:
        degree, w4 = 2, w2
    if w1 < w4:
        degree, w4 = 1, w1
    if 0.0 < along < GROWN * size:
        F[s.DECAY] = raised(along / size, ratio)  # over the step just taken; the one before was shorter by `ratio`
        if expected > 0.0 and w5 < w4:
            degree = DECAYING
    steady = degree == I[s.DEGREE] and before > 0.0
    I[s.DEGREE] = degree
    base, missed = decayed if degree == DECAYING else carried, carried + 4 * nq
    k2, k3, k4 = 1.0 if degree > 1 else 0.0, 1.0 if degree > 2 else 0.0, 1.0 if degree > 3 else 0.0
    along, size = 0.0, 0.0
    for q in range(nq):
        o = r + I[jq + q]
        old = (F[missed] + F[missed + 1]) + (F[missed + 2] + F[missed + 3])
        a, b = F[o + 1] - F[base], F[o + 2] - k2 * F[base + 1]
        c, d = F[o + 3] - k3 * F[base + 2], F[o + 4] - k4 * F[base + 3]
        F[missed], F[missed + 1], F[missed + 2], F[missed + 3] = a, b, c, d
        if q < nql:
            w = F[weights + q] * F[weights + q]
            along += w * old * ((a + b) + (c + d))
            size += w * old * old
        missed, base = missed + 4, base + 4
    if steady and size > 0.0:
        F[s.REGULAR] = min(1.5, max(0.0, along / size)) * _power(min(1.0, before / ratio), 1 + degree)
