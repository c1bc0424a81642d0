"""What the first pass of a step looks into where it looks into the step itself, and what is learned from that."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from . import slots as s
from .passes import forget
from .records import carry_on, linear_record, place

__all__ = ["begin_passes", "learn"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_SIZED = {**_CFG, "forceinline": True}


@njit(**_CFG)
def _power(x: float, n: int) -> float:
    y = x
    for _ in range(1, n):
        y *= x
    return y


@njit(**_SIZED)
def begin_passes(F: Any, I: Any, nq: int, nl: int) -> None:
    """Put what the first pass looks into at the ring's next place, and into the memory of the passes.

    It is the last record carried on, up to the degree that would have been best in the step before, with what it
    missed there where that has been regular; after a breaking point it is the first stage alone. `nq` is I[NQ],
    and `nl` I[NL].
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
    carried, missed = x + 4 * nq, x + 8 * nq
    k2, k3, k4 = 1.0 if degree > 1 else 0.0, 1.0 if degree > 2 else 0.0, 1.0 if degree > 3 else 0.0
    for q in range(nq):
        o = r + I[jq + q]
        a, b, c, d = F[o + 1], F[o + 2], F[o + 3], F[o + 4]
        F[carried], F[carried + 1], F[carried + 2], F[carried + 3] = a, b, c, d
        a, b = a + share * F[missed], k2 * b + share * F[missed + 1]
        c, d = k3 * c + share * F[missed + 2], k4 * d + share * F[missed + 3]
        F[x], F[x + 1], F[x + 2], F[x + 3] = a, b, c, d
        F[o + 1], F[o + 2], F[o + 3], F[o + 4] = a, b, c, d
        x, carried, missed = x + 4, carried + 4, missed + 4


@njit(**_SIZED)
def learn(F: Any, I: Any, nq: int, nql: int) -> None:
    """Note by which degree an accepted step, which still is the ring's next, would have been guessed best.

    High degrees magnify what is left of earlier errors, low ones miss more of the solution. What is missed is mostly
    the next term of a power series, and grows with a power of the step: so it tells what the next guess will miss.
    """
    ratio, before = F[s.RATIO], F[s.RATIOBEFORE]
    F[s.RATIOBEFORE] = ratio
    F[s.REGULAR] = 0.0
    if ratio == 0.0:
        I[s.DEGREE] = 4
        return
    jq, weights, r = I[s.JQ], I[s.OWEIGHT], place(I, I[s.NREC])
    carried = I[s.OPASS] + 4 * nq
    w1, w2, w3, w4 = 0.0, 0.0, 0.0, 0.0
    for q in range(nql):
        o, w, c = r + I[jq + q], F[weights + q], carried + 4 * q
        rest = (F[o + 1] + F[o + 2]) + (F[o + 3] + F[o + 4]) - F[c]
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
        degree = 1
    steady = degree == I[s.DEGREE] and before > 0.0
    I[s.DEGREE] = degree
    missed = carried + 4 * nq
    k2, k3, k4 = 1.0 if degree > 1 else 0.0, 1.0 if degree > 2 else 0.0, 1.0 if degree > 3 else 0.0
    along, size = 0.0, 0.0
    for q in range(nq):
        o = r + I[jq + q]
        old = (F[missed] + F[missed + 1]) + (F[missed + 2] + F[missed + 3])
        a, b = F[o + 1] - F[carried], F[o + 2] - k2 * F[carried + 1]
        c, d = F[o + 3] - k3 * F[carried + 2], F[o + 4] - k4 * F[carried + 3]
        F[missed], F[missed + 1], F[missed + 2], F[missed + 3] = a, b, c, d
        if q < nql:
            w = F[weights + q] * F[weights + q]
            along += w * old * ((a + b) + (c + d))
            size += w * old * old
        missed, carried = missed + 4, carried + 4
    if steady and size > 0.0:
        F[s.REGULAR] = min(1.5, max(0.0, along / size)) * _power(min(1.0, before / ratio), 1 + degree)
