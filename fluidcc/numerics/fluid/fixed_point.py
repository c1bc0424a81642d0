"""The passes of a step that looks into itself: a quick way to the fixed point, and an end.

A pass turns the record that it looked into, X, into the record of what it found, G(X). Where the
guess is so good that it makes no difference, one pass is enough. Otherwise the next one looks into
a mixture of the last ones, by Anderson's method [1]_: the weights that make the mixture of the
changes f = G(X) - X smallest are applied to the G. The differences that it needs are kept from step
to step, since the next step is much like the last. So the passes also converge where plain
repetition would not, and steps may be longer than what is fed back takes to settle.

What is compared and mixed are records, which are independent of the number of flows. A step whose
record is made of its stages alone ends with the mixture of those too, not with what its last pass
made. What that leaves has the same sign in step after step; the mixture leaves about a fifth of it.

References
----------
.. [1] D. G. Anderson, "Iterative procedures for nonlinear integral equations", Journal of the ACM
   12 (1965) 547-560.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .records import carry_on, linear_record, place

__all__ = ["begin_passes", "forget", "judge", "learn", "measure", "memory", "mix", "raised"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_SIZED = {
    **_CFG,
    "forceinline": True,
}  # where the caller's sizes are constants, there are no loops left

CONVERGED = 0.05  # of the tolerance: what the passes may still change
SETTLED = 0.003  # of the tolerance: what the passes may still change without a last mixture
# margin for how a change of the record changes the states, which is known from passes before
DOUBT = 1.5
AGEING = 1.2  # by which that grows with each step that relies upon it
FADING = 0.8  # by which that may fall from step to step
# share of what a pass changed in the states that another one may where records are compared in part
UNSEEN = 0.25
WILD = 10.0  # change by a mixture, over that by the pass alone, that is none
DEPENDENT = 1e-6  # relative square of what is new in a difference, below which it is left out

# in place of a degree: the last record, smaller than it by as much as that was than the one before
DECAYING = 5
GROWN = 2.0  # a record over the one before, from which on that is not taken for a decay

# The memory at OPASS are vectors of 4 NQ coefficients, those of u to u^4 of all quartics: of what
# the pass looked into, of the last record carried on, of what the guess missed, of what the pass
# before made, of three differences of what passes made, and of the last record after its decay. At
# OENDS there are the stages beyond the first, times the step, of the pass before, and three
# differences of those. At OPROBE there are vectors of 4 NQL numbers, quartics at four places: f, f
# of the pass before, how far the last mixture moved, three differences of f, and what moved between
# the passes that they are differences of.


def memory(quartics: int, compared: int, mixed: int) -> dict[int, int]:
    """Floats at `slots.OPASS`, `slots.OPROBE`, `slots.OGRAM` and `slots.OENDS`."""
    return {
        s.OPASS: 8 * 4 * quartics,
        s.OPROBE: 9 * 4 * compared,
        s.OGRAM: 9,
        s.OENDS: 4 * 6 * mixed,
    }


@njit(**_CFG)
def forget(F: Any, I: Any) -> None:
    """There are no differences yet."""
    if I[s.NPAIR]:
        for j in range(I[s.OPROBE] + 12 * I[s.NQL], I[s.OPROBE] + 36 * I[s.NQL]):
            F[j] = 0.0
        for j in range(I[s.OPASS] + 16 * I[s.NQ], I[s.OPASS] + 28 * I[s.NQ]):
            F[j] = 0.0
        for j in range(I[s.OGRAM], I[s.OGRAM] + 9):
            F[j] = 0.0
        for j in range(I[s.OENDS] + 6 * I[s.NMIX], I[s.OENDS] + 24 * I[s.NMIX]):
            F[j] = 0.0
        I[s.NPAIR] = 0


@njit(**_SIZED)
def measure(F: Any, I: Any, nql: int) -> None:
    """How far the record that the pass made is from the one it looked into, where passes look.

    `nql` is I[NQL], here and below, and `nq` I[NQ].
    """
    r, jq, weights = place(I, I[s.NREC]), I[s.JQ], I[s.OWEIGHT]
    x, target, worst = I[s.OPASS], I[s.OPROBE], 0.0
    u4 = F[s.REACH]
    u1, u2, u3 = 0.25 * u4, 0.5 * u4, 0.75 * u4
    for q in range(nql):
        o, w = r + I[jq + q], F[weights + q]
        a, b = w * (F[o + 1] - F[x]), w * (F[o + 2] - F[x + 1])
        c, d = w * (F[o + 3] - F[x + 2]), w * (F[o + 4] - F[x + 3])
        first, second = (
            u1 * (a + u1 * (b + u1 * (c + u1 * d))),
            u2 * (a + u2 * (b + u2 * (c + u2 * d))),
        )
        third, last = (
            u3 * (a + u3 * (b + u3 * (c + u3 * d))),
            u4 * (a + u4 * (b + u4 * (c + u4 * d))),
        )
        F[target], F[target + 1], F[target + 2], F[target + 3] = first, second, third, last
        largest = max(max(abs(first), abs(second)), max(abs(third), abs(last)))
        if not largest <= worst:  # a NaN comes through
            worst = largest
        x, target = x + 4, target + 4
    F[s.CHANGE] = worst


@njit(**_SIZED)
def judge(F: Any, I: Any, delta: float) -> int:
    """Whether the passes agree (1; 2 if the last may stay as it is), go on (0), or are not worth
    going on with (-1).

    `delta` is what this pass changed in the states since the one before, over the tolerance. Over
    the change of what the two looked into, that says what a further pass would change. It depends
    on where that change is, and is never thought to be much less than it has been. Where not all of
    a record is compared there is a second pass always.
    """
    number, span, blind = I[s.PASS], F[s.REACH] * F[s.H], I[s.NQ] > I[s.NQL]
    if number > 0:
        sigma = delta / (F[s.GAP] * span) if F[s.GAP] * span > 0.0 else 0.0
        F[s.SIGMA] = max(sigma, FADING * F[s.SIGMA] if F[s.SIGMA] < np.inf else 0.0)
    rest = DOUBT * F[s.SIGMA] * span * F[s.CHANGE] if F[s.CHANGE] > 0.0 else 0.0
    if number > 0:
        rest = min(rest, delta * (max(1.0, F[s.CHANGE] / F[s.GAP]) if F[s.GAP] > 0.0 else 1.0))
        if blind:
            rest = max(rest, UNSEEN * delta)
    F[s.REST] = rest
    if (
        rest <= CONVERGED
        and F[s.CHANGE] <= F[s.RTOL]
        and number >= (max(1, I[s.ATONCE]) if blind else I[s.ATONCE])
    ):
        if number == 0:
            F[s.SIGMA] *= AGEING
        return 1 if rest > SETTLED and I[s.NMIX] else 2
    if not F[s.CHANGE] < np.inf or not delta < np.inf:
        return -1
    if number == 1:
        F[s.RESTFIRST] = rest
    elif rest > 1.0 and number > 2 + I[s.ATONCE]:
        rate = rest / F[s.RESTFIRST]
        if rest * (rate * rate if number == 3 else rate) > CONVERGED:
            return -1
    return 0


@njit(**_SIZED)
def mix(F: Any, I: Any, nq: int, nql: int, n: int, ends: bool) -> None:
    """What the next pass looks into, in place of what the last one made; the stages too where the
    step `ends` with it.

    `n` is I[NMIX].
    """
    k = I[s.NPAIR] - 1
    if I[s.PASS] > 0:
        k = 0 if k < 0 or k == 2 else k + 1
        I[s.NPAIR] = k + 1
        _add_difference(F, I, k, nq, nql)
        _add_stages(F, I, k, n)
    I[s.PASS] += 1
    a, b, c = 0.0, 0.0, 0.0
    if k >= 0 and I[s.ATONCE] == 0:
        a, b, c = _weights(F, I, k, nql)
    size, p = 4 * nql, I[s.OPROBE]
    f, g, move, d, m = p, p + size, p + 2 * size, p + 3 * size, p + 6 * size
    gap = 0.0
    for j in range(size):
        mixed = a * (F[d + j] + F[m + j]) + b * (F[d + size + j] + F[m + size + j])
        value = F[f + j] - (mixed + c * (F[d + 2 * size + j] + F[m + 2 * size + j]))
        F[g + j] = F[f + j]
        F[move + j] = value
        gap = max(gap, abs(value))
    F[s.GAP] = gap
    if not gap <= WILD * F[s.CHANGE]:
        forget(F, I)
        a, b, c = 0.0, 0.0, 0.0
        for j in range(size):
            F[move + j] = F[f + j]
        F[s.GAP] = F[s.CHANGE]
    _mix_records(F, I, a, b, c, nq)
    _mix_stages(F, I, a, b, c, n, ends)


@njit(**_SIZED)
def _mix_records(F: Any, I: Any, a: float, b: float, c: float, nq: int) -> None:
    jq, r = I[s.JQ], place(I, I[s.NREC])
    n, x = 4 * nq, I[s.OPASS]
    made, u, v, w = x + 3 * n, x + 4 * n, x + 5 * n, x + 6 * n
    for q in range(nq):
        o = r + I[jq + q] + 1
        for j in range(4):
            value = F[o + j]
            F[made + j] = value
            value -= a * F[u + j] + b * F[v + j] + c * F[w + j]
            F[o + j] = value
            F[x + j] = value
        x, made, u, v, w = x + 4, made + 4, u + 4, v + 4, w + 4


@njit(**_SIZED)
def _mix_stages(F: Any, I: Any, a: float, b: float, c: float, n: int, ends: bool) -> None:
    """The same mixture of the stages if the step ends; else what the next pass is compared with."""
    size, stages, made, h = 6 * n, I[s.OK] + n, I[s.OENDS], F[s.H]
    if not ends:
        for j in range(size):
            F[made + j] = h * F[stages + j]
        return
    inverse = 1.0 / h
    u = made + size
    v, w = u + size, u + 2 * size
    for j in range(size):
        F[stages + j] -= inverse * (a * F[u + j] + b * F[v + j] + c * F[w + j])


@njit(**_SIZED)
def _add_stages(F: Any, I: Any, k: int, n: int) -> None:
    """The stages of the last two passes, less each other, as number `k`."""
    size, stages, made, h = 6 * n, I[s.OK] + n, I[s.OENDS], F[s.H]
    target = made + (1 + k) * size
    for j in range(size):
        F[target + j] = h * F[stages + j] - F[made + j]


@njit(**_SIZED)
def _add_difference(F: Any, I: Any, k: int, nq: int, nql: int) -> None:
    """What the last two passes made, and changed, less each other, as number `k`; and their
    products with others.
    """
    jq, r = I[s.JQ], place(I, I[s.NREC])
    made = I[s.OPASS] + 12 * nq
    target = made + 4 * nq * (1 + k)
    for q in range(nq):
        o = r + I[jq + q] + 1
        for j in range(4):
            F[target + j] = F[o + j] - F[made + j]
        target, made = target + 4, made + 4
    size, f = 4 * nql, I[s.OPROBE]
    d = f + (3 + k) * size
    m, move = d + 3 * size, f + 2 * size
    u, v, w = f + 3 * size, f + 4 * size, f + 5 * size
    for j in range(size):
        F[d + j] = F[f + j] - F[f + size + j]
        F[m + j] = F[move + j]
    a, b, c = _products(F, d, u, v, w, size)
    g = I[s.OGRAM]
    F[g + 3 * k], F[g + 3 * k + 1], F[g + 3 * k + 2] = a, b, c
    F[g + k], F[g + 3 + k], F[g + 6 + k] = a, b, c


@njit(**{**_SIZED, "fastmath": {"arcp", "contract", "reassoc"}})
def _products(F: Any, y: int, u: int, v: int, w: int, size: int) -> tuple[float, float, float]:
    """Products of the vector at `y` with those at `u`, `v` and `w`."""
    a, b, c = 0.0, 0.0, 0.0
    for j in range(size):
        a += F[y + j] * F[u + j]
        b += F[y + j] * F[v + j]
        c += F[y + j] * F[w + j]
    return a, b, c


@njit(**_SIZED)
def _weights(F: Any, I: Any, k: int, nql: int) -> tuple[float, float, float]:
    """Weights of the three differences that come closest to the change of the last pass; number `k`
    is the newest.
    """
    size, f, g = 4 * nql, I[s.OPROBE], I[s.OGRAM]
    l = 2 if k == 0 else k - 1
    m = 3 - k - l
    u, v, w = f + (3 + k) * size, f + (3 + l) * size, f + (3 + m) * size
    a, b, c = _products(F, f, u, v, w, size)
    kk, ll, mm = F[g + 4 * k], F[g + 4 * l], F[g + 4 * m]
    kl, km, lm = F[g + 3 * k + l], F[g + 3 * k + m], F[g + 3 * l + m]
    if not kk > 0.0:
        return 0.0, 0.0, 0.0
    # elimination, with its divisors as products: so that none of the three divisions waits for
    # another
    left, mixed = kk * ll - kl * kl, kk * lm - kl * km
    two = left > DEPENDENT * (kk * ll)
    scale, r = (kk * left, mixed) if two else (kk, 0.0)
    rest = (kk * mm - km * km) * (left if two else 1.0) - r * r
    first, second = 1.0 / kk, 1.0 / left if two else 0.0
    third = scale / rest if rest > DEPENDENT * (mm * scale) else 0.0
    p, q, r = kl * first, km * first, r * second
    b -= p * a
    c = (c - q * a - r * b) * third
    b = b * (kk * second) - r * c
    a = a * first - p * b - q * c
    if k == 0:
        return a, c, b  # the newest is 0, the next 2, the oldest 1
    return (b, a, c) if k == 1 else (c, b, a)


# --- what the first pass looks into, and what is learned from that --------------------------------


@njit(**_CFG)
def _power(x: float, n: int) -> float:
    y = x
    for _ in range(1, n):
        y *= x
    return y


@njit(**_SIZED)
def raised(x: float, power: float) -> float:
    """x^power for 0 < x < 2 and 0 < power < 2, five times as quick as by a library: to 1e-6 for x >
    0.1, else coarser.

    It is for a guess alone. The logarithm is that of the fourth root, as a power series of (root -
    1) / (root + 1).
    """
    root = math.sqrt(math.sqrt(x))
    z = (root - 1.0) / (root + 1.0)
    w = z * z
    half = z * (
        1.0
        + w * (1.0 / 3.0 + w * (1.0 / 5.0 + w * (1.0 / 7.0 + w * (1.0 / 9.0 + w * (1.0 / 11.0)))))
    )
    a = 0.5 * power * half  # a sixteenth of the logarithm of the result
    y = 1.0 + a * (
        1.0 + a * (0.5 + a * (1.0 / 6.0 + a * (1.0 / 24.0 + a * (1.0 / 120.0 + a * (1.0 / 720.0)))))
    )
    y *= y
    y *= y
    y *= y
    return y * y


@njit(**_SIZED)
def begin_passes(F: Any, I: Any, nq: int, nl: int) -> None:
    """Put what the first pass looks into at the ring's next place, and into the memory of the
    passes.

    It is the last record, carried on up to some degree or after its decay, as would have been best
    in the step before, with what that missed there where it has been regular; after a breaking
    point it is the first stage alone. `nq` is I[NQ], and `nl` I[NL].
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

    High degrees magnify what is left of earlier errors, low ones miss more of the solution. What is
    missed is mostly the next term of a power series, and grows with a power of the step: so it
    tells what the next guess will miss. A solution that comes to rest does so by an exponential
    function, of which a long step's power series misses much: there each record is the one before,
    only smaller.
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
        o, w, c, e, l = (
            r + I[jq + q],
            F[weights + q],
            carried + 4 * q,
            decayed + 4 * q,
            last + I[jq + q],
        )
        rest = (F[o + 1] + F[o + 2]) + (F[o + 3] + F[o + 4])
        old = (ratio * F[l + 1] + square * F[l + 2]) + square * (
            ratio * F[l + 3] + square * F[l + 4]
        )
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
        F[s.DECAY] = raised(
            along / size, ratio
        )  # over the step just taken; the one before was shorter by `ratio`
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
        F[s.REGULAR] = min(1.5, max(0.0, along / size)) * _power(
            min(1.0, before / ratio), 1 + degree
        )
