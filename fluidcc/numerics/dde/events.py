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
from fluidcc.numerics.layout import Floats

ROUNDING = 1e-9  # of the largest value seen: what a value at its zero may differ from zero
_NOISE = 64 * EPS
_NARROWEST = 1e-7  # panel of a step
_PANELS = 1000  # of a step at most: a step that needs more is taken shorter
_ODD = 30  # panels of a step that are not explained however narrow
#: a zero that ends the step; one that does not; a sign just known; a step that has enough zeros
(STOPS, HIT, SHOWN, ENOUGH) = range(4)


@njit()
def sign(x: float) -> int:
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


@njit()
def counts(run: Run, i: int, way: int) -> bool:
    """Whether a zero of watcher i in that direction is one of those asked for."""
    return run.direction[i] == 0 or run.direction[i] * way > 0


@njit()
def stops(run: Run, i: int, way: int) -> bool:
    """Whether such a zero must be a mesh point."""
    if i >= run.n_watchers or run.kind[i] == s.SWITCH:
        return True
    return counts(run, i, way) and (run.kind[i] == s.JUMP or run.terminal[i] > 0)


@njit()
def accumulates(run: Run, i: int) -> bool:
    """Note that a jump was triggered now; whether its times seem to converge (Zeno)."""
    interval = run.t - run.fired[i]
    if not interval < 0.99 * run.interval[i]:
        run.shrinking[i], run.since[i] = 0, run.t
    run.shrinking[i] += 1
    run.fired[i], run.interval[i] = run.t, interval
    return run.shrinking[i] > 12 and interval < 1e-5 * (run.t - run.since[i])


@njit()
def watch(run: Run, i: int, t: float) -> float:
    """What is watched as number i, after `look` at t."""
    if i >= run.n_watchers:
        j = (i - run.n_watchers) // 2
        if not math.isfinite(run.at[j]):
            fail(run, s.BAD_LAG, j, t)
        k, lower = run.branch[j], (i - run.n_watchers) % 2 == 0
        if run.follow and 0 <= k - lower < run.n_points and not landed_on(run, k - lower):
            return 2.0 * lower - 1.0  # it is passed without a mesh point
        return run.at[j] - (low_end(run, k) if lower else high_end(run, k))
    ask(run, s.OTHERS + i, t)
    g = run.out[0]
    if math.isnan(g):
        fail(run, s.BAD_WATCHER, i, t)
    return g


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
def _lingers(run: Run, i: int, g: float) -> bool:
    """Whether g is still the zero at which its mode changed now, or rounding around it."""
    return run.switched[i] == run.t and abs(g) <= ROUNDING * run.size[i]


@njit()
def _note(run: Run, kind: int, u: float, i: int, side: int) -> None:
    k = run.n_found
    run.side[i] = side
    if k >= run.most_found:
        return  # cannot be: a step ends before
    run.found_kind[k], run.found_u[k] = kind, u
    run.found_what[k], run.found_side[k] = i, side
    run.n_found = k + 1


@njit()
def _met(run: Run, i: int, g: float, before: float, u: float) -> bool:
    """Note what the value g at u says, where it had its side `before`; whether it ends the step."""
    side, watcher = run.side[i], i < run.n_watchers
    if side == 0:
        _note(run, SHOWN, u, i, sign(g))
        return False
    if watcher and _lingers(run, i, g):
        return False
    tolerance = 0.0 if watcher else 64 * EPS * max(abs(run.t), run.h)
    if not (side * g <= 0 if watcher else side * g < -tolerance):
        return False
    stopping = stops(run, i, -side)
    _note(run, STOPS if stopping else HIT, root(run, i, side, before, u), i, -side)
    return stopping


@njit()
def _scan_to(run: Run, u: float, before: float, low: int, high: int) -> bool:
    """Find the zeros of some between two places of the step; whether any must end it."""
    ends = False
    t = look(run, u)
    for i in range(low, high):
        run.value[i] = watch(run, i, t)
    for i in range(low, high):
        if i < run.n_watchers and abs(run.value[i]) < math.inf:
            run.size[i] = max(run.size[i], abs(run.value[i]))
        ends = _met(run, i, run.value[i], before, u) or ends
    return ends


@njit()
def scan(run: Run) -> float:
    """Find the zeros in the trial step up to the first that must end it; where that is, 2 if
    nothing ends it.
    """
    run.n_found = run.too_fine = 0
    w, lags = run.n_watchers, run.m if run.function[s.LAGS] != 0 else 0
    total = w + 2 * lags
    if total == 0:
        return 2.0
    # before the step; a delayed argument is above the lower and below the upper end
    hidden = not run.smooth
    for i in range(total):
        if i < w:
            run.side[i] = run.sign[i]
            hidden = hidden or run.side[i] == 0
        else:
            run.side[i] = 1 - 2 * ((i - w) % 2)
    before, ends = 0.0, False
    if hidden:  # what is zero at the start, but for rounding, soon shows its side
        share = min(1.0, run.panel_width / run.h)
        for part in (1e-8, 1e-6, 1e-4, 1e-2):
            u = part * share
            ends = _scan_to(run, u, before, 0, total)
            if ends:
                break
            before = u
    if not ends:
        last = before
        for u in (0.25, 0.5, 0.75, 1.0):
            if lags == 0:
                break
            ends = _scan_to(run, u, last, w, total)
            if ends:
                break
            last = u
        if w > 0:
            ends = _scan_panels(run, before) or ends
    first = 2.0
    for k in range(run.n_found):
        if run.found_kind[k] in (STOPS, ENOUGH):
            first = min(first, run.found_u[k])
    if ends:  # what happens up to the first, and everything that coincides with it
        _drop_after(run, first + 16 * EPS * max(1.0, abs(run.t) / run.h))
    return first


# --- panels of a step -----------------------------------------------------------------------------


@njit()
def _scan_panels(run: Run, begin: float) -> bool:
    """Find the zeros of watchers in panels of the step, so narrow that a quartic stands for each
    of them; whether any must end the step.

    A watcher has seven values in a panel. The quartic through five must foretell the other two, or
    the panel is halved; and where it comes as near to zero as it may be wrong, its extremum is
    looked at. A panel is at most twice as wide as the one before, in an earlier step too. So zeros
    of polynomials, and oscillations in long steps, are found to the last; what is between seven
    values that a quartic explains is not.
    """
    w, at_last, odd = run.n_watchers, False, 0
    a, width = begin, min(1.0 - begin, run.panel_width / run.h)
    floor = max(_NARROWEST, 64 * EPS * abs(run.t) / run.h)
    _values(run, a, 0)
    for _ in range(_PANELS):
        b = 1.0 if a + 1.001 * width >= 1.0 else a + width
        for k in range(1, 7):
            _values(run, a + run.place[k] * (b - a), k)
        clear = True
        for i in range(w):
            run.n_extra[i] = 0
            clear = clear and _explained(run, i, a, b)
        if not clear and b - a > floor:
            width = 0.5 * (b - a)
            continue
        odd += not clear
        for i in range(w):
            at_last = _walk(run, i, a, b) or at_last
        if b < 1.0 or 2.0 * (b - a) > width:
            width = 2.0 * (b - a)
        run.panel_width = width * run.h
        if at_last or b == 1.0 or odd > _ODD:
            break
        if run.n_found + 8 * w > run.most_found:  # the next panel may find no room
            run.found_kind[run.n_found], run.found_u[run.n_found] = ENOUGH, b
            run.found_what[run.n_found] = w
            run.n_found += 1
            return True
        for i in range(w):
            run.panel[i] = run.panel[6 * w + i]
        a = b
    run.too_fine = int(not at_last and (b < 1.0 or odd > _ODD))
    return at_last


@njit()
def _values(run: Run, u: float, k: int) -> None:
    """Put the values of watchers at u into row k of the panel."""
    t = look(run, u)
    for i in range(run.n_watchers):
        g = run.panel[k * run.n_watchers + i] = watch(run, i, t)
        if abs(g) < math.inf:
            run.size[i] = max(run.size[i], abs(g))


@njit()
def _walk(run: Run, i: int, a: float, b: float) -> bool:
    """Note the zeros of watcher i between neighbours in a panel; whether one must end the step."""
    before, extra = a, 0
    for k in range(1, 7):
        u = a + run.place[k] * (b - a)
        while extra < run.n_extra[i] and run.extra_u[3 * i + extra] < u:
            v = run.extra_u[3 * i + extra]
            if _met(run, i, run.extra_g[3 * i + extra], before, v):
                return True
            before, extra = v, extra + 1
        if _met(run, i, run.panel[k * run.n_watchers + i], before, u):
            return True
        before = u
    return False


@njit()
def _explained(run: Run, i: int, a: float, b: float) -> bool:
    """Whether a quartic stands for watcher i in a panel, so that it tells of every zero; places
    beyond zero that it points to are noted.
    """
    w, c, big, least = run.n_watchers, run.coefficient, 0.0, math.inf
    for k in range(7):
        g = abs(run.panel[k * w + i])
        big, least = max(big, g), min(least, g)
    if big <= _NOISE * run.size[i] or not big < math.inf:
        return True
    for l in range(5):
        c[l] = 0.0
        for k in range(5):
            c[l] += run.fit[5 * l + k] * run.panel[(0, 1, 3, 5, 6)[k] * w + i]
    off = 0.0
    for k in (2, 4):
        off = max(off, abs(_quartic(c, run.place[k]) - run.panel[k * w + i]))
    if off > 0.01 * big:
        return False
    if least > 0.5 * big and run.panel[i] * run.panel[6 * w + i] > 0:
        return True
    off = 8.0 * off + 1e-13 * big
    low, split_1, split_2 = 0.0, 1.0, 1.0
    curve = (3 * c[3]) ** 2 - 24 * c[4] * c[2]  # a quarter of the discriminant of the curvature
    if curve > 0:
        root = -3 * c[3] - math.copysign(math.sqrt(curve), c[3])
        split_1 = root / (12 * c[4]) if c[4] != 0 else 1.0
        split_2 = 2 * c[2] / root if root != 0 else 1.0
    split_1, split_2 = min(split_1, split_2), max(split_1, split_2)
    for high in (split_1, split_2, 1.0):  # between them the slope is monotone
        if not low < high <= 1.0:
            continue
        v, low = _level(c, low, high), high
        if v > 0 and not _seen_through(run, i, a, b, v, off, big):
            return False
    return True


@njit()
def _seen_through(run: Run, i: int, a: float, b: float, v: float, off: float, big: float) -> bool:
    """Whether an extremum of the quartic at v hides nothing; noted if it lies across zero."""
    w, k, p = run.n_watchers, 0, _quartic(run.coefficient, v)
    while run.place[k + 1] < v:
        k += 1
    left, right = sign(run.panel[k * w + i]), sign(run.panel[(k + 1) * w + i])
    side = left if left == right else 0
    if side * p > off:
        return True
    u = a + v * (b - a)
    g = watch(run, i, look(run, u))
    if side != 0 and abs(g) <= _NOISE * big:  # it touches zero
        return True
    if side * g > 0 or (side == 0 and abs(p) <= off):
        return False
    n = 3 * i + run.n_extra[i]
    run.extra_u[n], run.extra_g[n] = u, g
    run.n_extra[i] += 1
    return True


@njit()
def _quartic(c: Floats, v: float) -> float:
    return c[0] + v * (c[1] + v * (c[2] + v * (c[3] + v * c[4])))


@njit()
def _incline(c: Floats, v: float) -> float:
    return c[1] + v * (2 * c[2] + v * (3 * c[3] + v * 4 * c[4]))


@njit()
def _level(c: Floats, low: float, high: float) -> float:
    """Where between two places the slope, monotone there, is zero; 0 if nowhere."""
    at_low = _incline(c, low)
    if at_low == 0:
        return low
    if at_low * _incline(c, high) >= 0:
        return 0.0
    for _ in range(52):
        v = 0.5 * (low + high)
        if at_low * _incline(c, v) > 0:
            low = v
        else:
            high = v
    return 0.5 * (low + high)


@njit()
def _drop_after(run: Run, same: float) -> None:
    kept = 0
    for k in range(run.n_found):
        if run.found_u[k] <= same:
            run.found_kind[kept], run.found_u[kept] = run.found_kind[k], run.found_u[k]
            run.found_what[kept], run.found_side[kept] = run.found_what[k], run.found_side[k]
            kept += 1
    run.n_found = kept


@njit()
def _at(run: Run, i: int, side: int, u: float) -> float:
    return side * watch(run, i, look(run, u))


@njit()
def root(run: Run, i: int, side: int, low: float, high: float) -> float:
    """Where what is watched as number i leaves its side of zero, to rounding and on the far side.

    Bisection safeguarding inverse quadratic interpolation (T. R. Chandrupatla, Advances in
    Engineering Software 28 (1997) 145-149).
    """
    a, b = high, low
    fa, fb = _at(run, i, side, a), _at(run, i, side, b)
    if fb <= 0:
        return low
    c, fc, share = a, fa, 0.5
    for _ in range(100):
        x = a + share * (b - a)
        fx = _at(run, i, side, x)
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, b, fc, fb = b, a, fb, fa
        a, fa = x, fx
        width = 2 * EPS * max(abs(a), abs(b)) + 1e-300
        if fa == 0 or abs(b - a) <= width:
            break
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        share = 0.5
        if 0 <= xi <= 1 and 1 - math.sqrt(1 - xi) < phi < math.sqrt(xi):
            share = fa / (fb - fa) * fc / (fb - fc)
            share += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        edge = 0.5 * width / abs(b - a)
        share = min(max(share, edge), 1 - edge)
    return a if fa <= 0 else b
