"""What is watched during a step: events, switches, and delayed arguments that cross breaking
points.

Each is a function whose sign is remembered from before the step, so that a zero exactly on a mesh
point is neither missed nor counted twice. Some only observe (ordinary events, found on the dense
output); the others end the step at their zero: terminal events, events with a jump, switches, and
crossings of breaking points.

What is watched is numbered: the watchers first, then for each lag that is a function how far the
delayed argument is above the lower end of its interval, and above the upper end.
"""

from __future__ import annotations

import math

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.dde import state as s
from fluidcc.numerics.dde.past import (
    arguments,
    ask,
    fail,
    high_end,
    inside,
    landed_on,
    look_up,
    low_end,
)
from fluidcc.numerics.dde.state import Run
from fluidcc.numerics.dde.step import EPS

ROUNDING = 1e-9  # of the largest value seen: what a value at its zero may differ from zero
_NOISE = 64 * EPS
_NARROW = 1e-7  # panel of a step: values that no quartic explains may be noise
_PANELS = 4000  # of a step at most: a step that needs more is taken shorter
_ODD = 30  # panels of a step that are not explained however narrow
(STOPS, HIT, SHOWN) = range(3)  # a zero that ends the step; one that does not; a sign just known


@njit()
def sign(x: float) -> int:
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


@njit()
def counts(run: Run, i: int, way: int) -> bool:
    """Whether a zero of watcher i in that direction is one of those asked for."""
    return run.direction[i] * way >= 0


@njit()
def stops(run: Run, i: int, way: int) -> bool:
    """Whether such a zero must be a mesh point."""
    if i >= run.n_watchers or run.kind[i] == s.SWITCH:
        return True
    return counts(run, i, way) and (run.kind[i] == s.JUMP or run.terminal[i] > 0)


@njit()
def watch(run: Run, i: int, t: float) -> float:
    """What is watched as number i, after `look` at t; NaN is an error."""
    g = peek(run, i, t)
    if math.isnan(g):
        fail(run, s.BAD_WATCHER, i, t)
    return g


@njit()
def peek(run: Run, i: int, t: float) -> float:
    """The same, which may be NaN: beyond the zero that ends a run, say."""
    if i >= run.n_watchers:
        j = (i - run.n_watchers) // 2
        if not math.isfinite(run.at[j]):
            fail(run, s.BAD_LAG, j, t)
        k, lower = run.branch[j], (i - run.n_watchers) % 2 == 0
        if run.follow and 0 <= k - lower < run.n_points and not landed_on(run, k - lower):
            return 2.0 * lower - 1.0  # it is passed without a mesh point
        return run.at[j] - (low_end(run, k) if lower else high_end(run, k))
    ask(run, s.OTHERS + i, t)
    return run.out[0]


@njit()
def look(run: Run, u: float) -> float:
    """Put the state at u in the trial step, and the delayed states that are watched, into the
    frame; return the time.
    """
    t = run.t + u * run.h
    inside(run, u, run.stage)
    if run.look_back:
        look_up(run, t, run.t, run.h, run.y, run.q)
    elif run.function[s.LAGS] != 0:
        arguments(run, t)
    return t


@njit()
def scan(run: Run) -> None:
    """Find the zeros in the trial step up to the first that must end it, at `ends` (2 if nothing
    ends it).
    """
    run.n_found, run.too_fine, run.ends, run.hole = 0, 0, 2.0, 2.0
    if run.n_watched == 0:
        return
    # before the step; a delayed argument is above the lower and below the upper end
    hidden, before, share = not run.smooth, 0.0, min(1.0, run.panel_width / run.h)
    for i in range(run.n_watched):
        if i < run.n_watchers:
            run.side[i] = run.sign[i]
            hidden = hidden or run.side[i] == 0
        else:
            run.side[i] = 1 - 2 * ((i - run.n_watchers) % 2)
    if hidden:  # what is zero at the start, but for rounding, soon shows its side
        for part in (1e-8, 1e-6, 1e-4, 1e-2):
            _values(run, part * share, 0)
            for i in range(run.n_watched):
                _meet(run, i, 0, before, part * share)
            before = part * share
            _require_values(run)
            if run.ends <= before:
                break
    if run.ends > 1.0:
        _scan_panels(run, before)
    # what happens up to the first, and all that coincides with it, counts
    run.last = run.ends + 16 * EPS * max(1.0, abs(run.t) / run.h)


@njit()
def _scan_panels(run: Run, begin: float) -> None:
    """Find the zeros in panels of the step, so narrow that each watcher is a quartic with one zero
    at most.

    A watcher has seven values in a panel. The quartic through five must foretell the other two, and
    its coefficients in Bernstein's basis change their sign once at most, so that it has no more
    zeros than its ends tell; else the panel is halved, down to the rounding of time, unless what is
    left is noise. A panel is at most twice as wide as the one before, in an earlier step too. So
    zeros of polynomials, clusters of them, and oscillations in long steps are found to the last;
    what is between seven values that a quartic explains is not.
    """
    a, width, odd = begin, min(1.0 - begin, run.panel_width / run.h), 0
    floor = _NOISE * (1.0 + abs(run.t) / run.h)
    _values(run, a, 0)
    for _ in range(_PANELS):
        b = 1.0 if a + 1.001 * width >= 1.0 else a + width
        run.hole = 2.0
        for k in range(1, 7):
            _values(run, a + run.place[k] * (b - a), k)
        clear = run.hole > b
        coarse = not clear
        for i in range(run.n_watchers):
            if not coarse and not _explained(run, i):
                coarse = not _is_noise(run, i, a, b, floor)
                clear = clear and not coarse and run.noisy[i] > 0
        if coarse and b - a > floor:
            width = 0.5 * (b - a)
            continue
        odd += not clear
        for i in range(run.n_watched):
            for k in range(1, 7 if i >= run.n_watchers or not run.noisy[i] else 1):
                low, high = a + run.place[k - 1] * (b - a), a + run.place[k] * (b - a)
                if run.ends > low:
                    _meet(run, i, k, low, high)
            run.panel[i] = run.panel[6 * run.n_watched + i]
        _require_values(run)
        if b < 1.0 or 2.0 * (b - a) > width:
            width = 2.0 * (b - a)
        run.panel_width = width * run.h
        if run.n_found + 8 * run.n_watched > run.most_found:  # the next panel may find no room
            run.ends = min(run.ends, b)
        if run.ends <= b or b == 1.0 or odd > _ODD:
            break
        a = b
    run.too_fine = int(run.ends > b and (b < 1.0 or odd > _ODD))


@njit()
def _values(run: Run, u: float, k: int) -> None:
    """Put what is watched at u into row k of the panel."""
    t = look(run, u)
    for i in range(run.n_watched):
        g = run.panel[k * run.n_watched + i] = peek(run, i, t)
        if math.isnan(g) and u < run.hole:
            run.hole, run.hole_of = u, i
        if i < run.n_watchers and abs(g) < math.inf:
            run.size[i] = max(run.size[i], abs(g))


@njit()
def _require_values(run: Run) -> None:
    """Fail where a watcher is NaN before the zero that ends the step."""
    if run.hole <= run.ends and run.hole <= 1.0:
        fail(run, s.BAD_WATCHER, run.hole_of, run.t + run.hole * run.h)


@njit()
def _is_noise(run: Run, i: int, a: float, b: float, floor: float) -> bool:
    """Whether values of watcher i that no quartic explains are rounding, or jump: in the middle of
    the panel they are as ragged, or all the same. Halving it would not help.
    """
    big, p, q, j, low, high = 0.0, 0.0, 0.0, 0, math.inf, -math.inf
    for k in range(7):
        big = max(big, abs(run.panel[k * run.n_watched + i]))
    small = big <= _NOISE * run.size[i]
    run.noisy[i] = small
    if b - a > _NARROW and not small:
        return False
    for k in range(7):
        u = 0.5 * (a + b) + (run.place[k] - 0.5) * max(_NARROW * (b - a), floor)
        g = peek(run, i, look(run, u))
        low, high = min(low, g), max(high, g)
        if k in (2, 4):
            p, q = p - g * (k == 2), q - g * (k == 4)
        else:
            p, q, j = p + run.fit[j] * g, q + run.fit[5 + j] * g, j + 1
    return low == high or max(abs(p), abs(q)) > 0.01 * big


@njit()
def _explained(run: Run, i: int) -> bool:
    """Whether a quartic with one zero at most stands for watcher i in the panel."""
    w, big, off, rises, falls = run.n_watched, 0.0, 0.0, False, False
    run.noisy[i] = 0
    for k in range(7):
        big = max(big, abs(run.panel[k * w + i]))
    if not 0 < big < math.inf:
        return True
    before = sign(run.panel[i])
    for l in range(6):  # what is foretold at two places, inner coefficients, and the end
        g = 0.0
        for k in range(5):
            g += run.fit[5 * l + k] * run.panel[(0, 1, 3, 5, 6)[k] * w + i]
        if l < 2:
            off = max(off, abs(g - run.panel[(2, 4)[l] * w + i]))
            continue
        if off > 0.01 * big:
            return False
        now = 0 if l < 5 and abs(g) <= 8.0 * off + 1e-13 * big else sign(g)
        rises, falls, before = rises or now > before, falls or now < before, now
    return not (rises and falls)


@njit()
def _meet(run: Run, i: int, k: int, before: float, u: float) -> None:
    """Note what the value in row k of the panel, that at u, says; its side was that at `before`.

    A value of zero is none of either side. Where it stays zero, it has met zero once.
    """
    w, side = run.n_watched, run.side[i]
    g = run.panel[k * w + i]
    zero = i < run.n_watchers and k > 0 and g == 0 and (
        u == 1.0 or run.panel[(k - 1) * w + i] == 0 or (k < 6 and run.panel[(k + 1) * w + i] == 0)
    )  # fmt: skip
    if i >= run.n_watchers:
        met = side * g < -_NOISE * max(abs(run.t), run.h)
    elif side == 0:
        met = g != 0 and u * run.h > run.tolerance  # just after a jump, its sign is rounding
    elif zero:
        met = side > 0 or run.kind[i] != s.SWITCH
    else:
        met = side * g < 0 and (run.switched[i] < run.t or abs(g) > ROUNDING * run.size[i])
    if met and side == 0:
        _found(run, i, u, sign(g), SHOWN)
    elif met:
        u, kind = root(run, i, side, before, u), HIT
        if stops(run, i, -side):
            kind, run.ends = STOPS, min(run.ends, u)
        _found(run, i, u, -side, kind)
        if zero and run.kind[i] != s.SWITCH:
            _found(run, i, u, 0, SHOWN)


@njit()
def _found(run: Run, i: int, u: float, way: int, kind: int) -> None:
    n = run.n_found
    run.side[i] = way
    run.found_kind[n], run.found_u[n] = kind, u
    run.found_what[n], run.found_side[n] = i, way
    run.n_found = n + 1


@njit()
def root(run: Run, i: int, side: int, low: float, high: float) -> float:
    """Where what is watched as number i leaves its side of zero, to rounding and on the far side:
    by the Illinois method, in which each third step is a bisection.
    """
    f_low, f_high = side * watch(run, i, look(run, low)), side * watch(run, i, look(run, high))
    if f_low <= 0:
        return low
    for k in range(200):
        width, fall = EPS * high + 1e-300, f_low - f_high
        if f_high == 0 or high - low <= 2.0 * width:
            break
        share = f_low / fall if k % 3 < 2 and fall < math.inf else 0.5
        u = min(max(low + share * (high - low), low + width), high - width)
        f = side * watch(run, i, look(run, u))
        if f > 0:
            low, f_low, f_high = u, f, 0.5 * f_high
        else:
            high, f_high, f_low = u, f, 0.5 * f_low
    return high
