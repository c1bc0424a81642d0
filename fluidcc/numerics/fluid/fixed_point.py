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

from fluidcc.numerics.layout import at, clear, copy

from ..compiling import njit
from ..fluid import state as s
from .reads import record_of, rise
from .records import carry_on, linear_record

_FAST: dict[str, Any] = {"fastmath": {"arcp", "contract"}}
# where the caller's sizes are constants, there are no loops left
_SIZED: dict[str, Any] = {**_FAST, "forceinline": True}

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


def memory(quartics: int, compared: int, mixed: int) -> dict[str, int]:
    """Return the sizes of the arrays that remember passes, by name.

    Of all quartics there are the coefficients of u to u^4, of those that are compared the values at
    four places; differences are three of each.
    """
    records = ("looked", "carried", "decayed", "missed", "made")
    probes = ("changes", "changes_before", "moved")
    return {
        **dict.fromkeys(records, 4 * quartics), "made_differences": 12 * quartics,
        **dict.fromkeys(probes, 4 * compared), "change_differences": 12 * compared,
        "moved_differences": 12 * compared, "products": 9,
        "stages_made": 6 * mixed, "stage_differences": 18 * mixed,
    }  # fmt: skip


@njit(**_FAST)
def forget(run: s.State) -> None:
    """There are no differences yet."""
    if run.newest_pair:
        clear(run.change_differences, 12 * run.n_compared)
        clear(run.moved_differences, 12 * run.n_compared)
        clear(run.made_differences, 12 * run.n_quartics)
        clear(run.products, 9)
        clear(run.stage_differences, 18 * run.n_mixed)
        run.newest_pair = 0


@njit(**_SIZED)
def measure(run: s.State, nql: int) -> None:
    """How far the record that the pass made is from the one it looked into, where passes look.

    `nql` is `n_compared`, here and below, and `nq` `n_quartics`.
    """
    r, jq, weights = record_of(run, run.n_records), run.quartic_place, run.quartic_weight
    x, target, worst = run.looked, run.changes, 0.0
    u4 = run.reach
    u1, u2, u3 = 0.25 * u4, 0.5 * u4, 0.75 * u4
    for q in range(nql):
        o, w = at(r, jq[q]), weights[q]
        a, b = w * (o[1] - x[0]), w * (o[2] - x[1])
        c, d = w * (o[3] - x[2]), w * (o[4] - x[3])
        first, second = rise(a, b, c, d, u1), rise(a, b, c, d, u2)
        third, last = rise(a, b, c, d, u3), rise(a, b, c, d, u4)
        target[0], target[1], target[2], target[3] = first, second, third, last
        largest = max(max(abs(first), abs(second)), max(abs(third), abs(last)))
        if not largest <= worst:  # a NaN comes through
            worst = largest
        x, target = at(x, 4), at(target, 4)
    run.change = worst


@njit(**_SIZED)
def judge(run: s.State, delta: float) -> int:
    """Whether the passes agree (1; 2 if the last may stay as it is), go on (0), or are not worth
    going on with (-1).

    `delta` is what this pass changed in the states since the one before, over the tolerance. Over
    the change of what the two looked into, that says what a further pass would change. It depends
    on where that change is, and is never thought to be much less than it has been. Where not all of
    a record is compared there is a second pass always.
    """
    number, span, blind = run.n_pass, run.reach * run.h, run.n_quartics > run.n_compared
    if number > 0:
        sigma = delta / (run.gap * span) if run.gap * span > 0.0 else 0.0
        run.sigma = max(sigma, FADING * run.sigma if run.sigma < np.inf else 0.0)
    rest = DOUBT * run.sigma * span * run.change if run.change > 0.0 else 0.0
    if number > 0:
        rest = min(rest, delta * (max(1.0, run.change / run.gap) if run.gap > 0.0 else 1.0))
        if blind:
            rest = max(rest, UNSEEN * delta)
    run.rest = rest
    if (
        rest <= CONVERGED
        and run.change <= run.rtol
        and number >= (max(1, run.hops_at_once) if blind else run.hops_at_once)
    ):
        if number == 0:
            run.sigma *= AGEING
        return 1 if rest > SETTLED and run.n_mixed else 2
    if not run.change < np.inf or not delta < np.inf:
        return -1
    if number == 1:
        run.rest_first = rest
    elif rest > 1.0 and number > 2 + run.hops_at_once:
        rate = rest / run.rest_first
        if rest * (rate * rate if number == 3 else rate) > CONVERGED:
            return -1
    return 0


@njit(**_SIZED)
def mix(run: s.State, nq: int, nql: int, n: int, ends: bool) -> None:
    """What the next pass looks into, in place of what the last one made; the stages too where the
    step `ends` with it.

    `n` is `n_mixed`.
    """
    k = run.newest_pair - 1
    if run.n_pass > 0:
        k = 0 if k < 0 or k == 2 else k + 1
        run.newest_pair = k + 1
        _add_difference(run, k, nq, nql)
        _add_stages(run, k, n)
    run.n_pass += 1
    a, b, c = 0.0, 0.0, 0.0
    if k >= 0 and run.hops_at_once == 0:
        a, b, c = _weights(run, k, nql)
    size, gap = 4 * nql, 0.0
    f, g, move = run.changes, run.changes_before, run.moved
    d, m = run.change_differences, run.moved_differences
    for j in range(size):
        mixed = a * (d[j] + m[j]) + b * (d[size + j] + m[size + j])
        value = f[j] - (mixed + c * (d[2 * size + j] + m[2 * size + j]))
        g[j] = f[j]
        move[j] = value
        gap = max(gap, abs(value))
    run.gap = gap
    if not gap <= WILD * run.change:
        forget(run)
        a, b, c = 0.0, 0.0, 0.0
        copy(move, f, size)
        run.gap = run.change
    _mix_records(run, a, b, c, nq)
    _mix_stages(run, a, b, c, n, ends)


@njit(**_SIZED)
def _mix_records(run: s.State, a: float, b: float, c: float, nq: int) -> None:
    jq, r = run.quartic_place, record_of(run, run.n_records)
    x, made, u = run.looked, run.made, run.made_differences
    v, w = at(u, 4 * nq), at(u, 8 * nq)
    for q in range(nq):
        o = at(r, jq[q] + 1)
        for j in range(4):
            k = 4 * q + j
            made[k] = o[j]
            o[j] -= a * u[k] + b * v[k] + c * w[k]
            x[k] = o[j]


@njit(**_SIZED)
def _mix_stages(run: s.State, a: float, b: float, c: float, n: int, ends: bool) -> None:
    """The same mixture of the stages if the step ends; else what the next pass is compared with."""
    size, stages, made, h = 6 * n, at(run.slopes, n), run.stages_made, run.h
    if not ends:
        for j in range(size):
            made[j] = h * stages[j]
        return
    inverse = 1.0 / h
    u = run.stage_differences
    v, w = at(u, size), at(u, 2 * size)
    for j in range(size):
        stages[j] -= inverse * (a * u[j] + b * v[j] + c * w[j])


@njit(**_SIZED)
def _add_stages(run: s.State, k: int, n: int) -> None:
    """The stages of the last two passes, less each other, as number `k`."""
    size, stages, made, h = 6 * n, at(run.slopes, n), run.stages_made, run.h
    target = at(run.stage_differences, k * size)
    for j in range(size):
        target[j] = h * stages[j] - made[j]


@njit(**_SIZED)
def _add_difference(run: s.State, k: int, nq: int, nql: int) -> None:
    """What the last two passes made, and changed, less each other, as number `k`; and their
    products with others.
    """
    jq, r = run.quartic_place, record_of(run, run.n_records)
    made, target = run.made, at(run.made_differences, 4 * nq * k)
    for q in range(nq):
        o = at(r, jq[q] + 1)
        for j in range(4):
            target[4 * q + j] = o[j] - made[4 * q + j]
    size, u = 4 * nql, run.change_differences
    v, w, d, m = at(u, size), at(u, 2 * size), at(u, k * size), at(run.moved_differences, k * size)
    for j in range(size):
        d[j] = run.changes[j] - run.changes_before[j]
        m[j] = run.moved[j]
    a, b, c = _products(d, u, v, w, size)
    g = run.products
    g[3 * k], g[3 * k + 1], g[3 * k + 2] = a, b, c
    g[k], g[3 + k], g[6 + k] = a, b, c


@njit(**{**_SIZED, "fastmath": {"arcp", "contract", "reassoc"}})
def _products(
    y: s.Floats, u: s.Floats, v: s.Floats, w: s.Floats, size: int
) -> tuple[float, float, float]:
    """Products of the vector at `y` with those at `u`, `v` and `w`."""
    a, b, c = 0.0, 0.0, 0.0
    for j in range(size):
        a += y[j] * u[j]
        b += y[j] * v[j]
        c += y[j] * w[j]
    return a, b, c


@njit(**_SIZED)
def _weights(run: s.State, k: int, nql: int) -> tuple[float, float, float]:
    """Weights of the three differences that come closest to the change of the last pass; number `k`
    is the newest.
    """
    size, d, g = 4 * nql, run.change_differences, run.products
    l = 2 if k == 0 else k - 1
    m = 3 - k - l
    a, b, c = _products(run.changes, at(d, k * size), at(d, l * size), at(d, m * size), size)
    kk, ll, mm = g[4 * k], g[4 * l], g[4 * m]
    kl, km, lm = g[3 * k + l], g[3 * k + m], g[3 * l + m]
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
def begin_passes(run: s.State, nq: int, nl: int) -> None:
    """Put what the first pass looks into at the ring's next place, and into the memory of the
    passes.

    It is the last record, carried on up to some degree or after its decay, as would have been best
    in the step before, with what that missed there where it has been regular; after a breaking
    point it is the first stage alone.
    """
    jq, r = run.quartic_place, record_of(run, run.n_records)
    x = run.looked
    run.n_pass = 0
    run.rest = np.inf
    if run.fresh or run.h > 2.0 * run.h_before:
        linear_record(run, run.h)
        forget(run)
        run.sigma = np.inf
        run.ratio = 0.0
        for q in range(nq):
            o = at(r, jq[q] + 1)
            for j in range(4):
                x[4 * q + j] = o[j]
        return
    before = record_of(run, run.n_records - 1)
    carry_on(run, before, r, nq, nl)
    ratio, degree = r[s.RH] * before[s.RINVH], run.degree
    growth = ratio / run.ratio_before if run.ratio_before > 0.0 else 2.0
    run.ratio = ratio
    share = run.regular * growth ** (1 + degree) if growth < 1.25 else 0.0
    carried, missed, decayed = run.carried, run.missed, run.decayed
    for q in range(nq):
        o, last, factor = at(r, jq[q] + 1), at(before, jq[q] + 1), run.decay
        for j in range(4):
            factor *= ratio
            k = 4 * q + j
            carried[k], decayed[k] = o[j], factor * last[j]
            guess = decayed[k] if degree == DECAYING else (o[j] if j < degree else 0.0)
            x[k] = o[j] = guess + share * missed[k]


@njit(**_SIZED)
def learn(run: s.State, nq: int, nql: int) -> None:
    """Note how an accepted step, which still is the ring's next, would have been guessed best.

    High degrees magnify what is left of earlier errors, low ones miss more of the solution. What is
    missed is mostly the next term of a power series, and grows with a power of the step: so it
    tells what the next guess will miss. A solution that comes to rest does so by an exponential
    function, of which a long step's power series misses much: there each record is the one before,
    only smaller.
    """
    ratio, before, expected = run.ratio, run.ratio_before, run.decay
    run.ratio_before = ratio
    run.regular = run.decay = 0.0
    if ratio == 0.0:
        run.degree = 4
        return
    jq, weights = run.quartic_place, run.quartic_weight
    r, last = record_of(run, run.n_records), record_of(run, run.n_records - 1)
    carried, decayed = run.carried, run.decayed
    square = ratio * ratio
    w1, w2, w3, w4, w5 = 0.0, 0.0, 0.0, 0.0, 0.0
    along, size = 0.0, 0.0
    for q in range(nql):
        o, l, w = at(r, jq[q]), at(last, jq[q]), weights[q]
        c, e = at(carried, 4 * q), at(decayed, 4 * q)
        rest = (o[1] + o[2]) + (o[3] + o[4])
        old = (ratio * l[1] + square * l[2]) + square * (ratio * l[3] + square * l[4])
        along += (w * old) * (w * rest)
        size += (w * old) * (w * old)
        w5 = max(w5, w * abs(rest - ((e[0] + e[1]) + (e[2] + e[3]))))
        rest -= c[0]
        w1 = max(w1, w * abs(rest))
        rest -= c[1]
        w2 = max(w2, w * abs(rest))
        rest -= c[2]
        w3 = max(w3, w * abs(rest))
        w4 = max(w4, w * abs(rest - c[3]))
    degree = 4
    if w3 < w4:
        degree, w4 = 3, w3
    if w2 < w4:
        degree, w4 = 2, w2
    if w1 < w4:
        degree, w4 = 1, w1
    if 0.0 < along < GROWN * size:
        # over the step just taken; the one before was shorter by `ratio`
        run.decay = raised(along / size, ratio)
        if expected > 0.0 and w5 < w4:
            degree = DECAYING
    steady = degree == run.degree and before > 0.0
    run.degree = degree
    base, missed = decayed if degree == DECAYING else carried, run.missed
    along, size = 0.0, 0.0
    for q in range(nq):
        o, old, new = at(r, jq[q] + 1), 0.0, 0.0
        for j in range(4):
            k = 4 * q + j
            old += missed[k]
            missed[k] = o[j] - (base[k] if j < degree else 0.0)
            new += missed[k]
        if q < nql:
            w = weights[q] * weights[q]
            along += w * old * new
            size += w * old * old
    if steady and size > 0.0:
        shrunk = min(1.0, before / ratio) ** (1 + degree)
        run.regular = min(1.5, max(0.0, along / size)) * shrunk
