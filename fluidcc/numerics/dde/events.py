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
    look_up,
    low_end,
)
from fluidcc.numerics.dde.state import Run
from fluidcc.numerics.dde.step import EPS

ROUNDING = 1e-9  # of the largest value seen: what a value at its zero may differ from zero
(STOPS, HIT, SHOWN) = range(3)  # a zero that ends the step; one that does not; a sign just known


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
    run.found_kind[k], run.found_u[k] = kind, u
    run.found_what[k], run.found_side[k] = i, side
    run.n_found = k + 1
    run.side[i] = side


@njit()
def _scan_to(run: Run, u: float, before: float, total: int) -> bool:
    """Find the zeros between two places of the step; whether any must end it."""
    ends = False
    tolerance = 64 * EPS * max(abs(run.t), run.h)
    t = look(run, u)
    for i in range(total):
        run.value[i] = watch(run, i, t)
    for i in range(total):
        g, side, watcher = run.value[i], run.side[i], i < run.n_watchers
        if watcher:
            run.size[i] = max(run.size[i], abs(g))
        if side == 0:
            _note(run, SHOWN, u, i, sign(g))
        elif watcher and _lingers(run, i, g):
            continue
        elif side * g <= 0 if watcher else side * g < -tolerance:
            stopping = stops(run, i, -side)
            _note(run, STOPS if stopping else HIT, root(run, i, side, before, u), i, -side)
            ends = ends or stopping
    return ends


@njit()
def scan(run: Run) -> float:
    """Find the zeros in the trial step up to the first that must end it; where that is, 2 if
    nothing ends it.
    """
    run.n_found = 0
    lags = run.m if run.function[s.LAGS] != 0 else 0
    total = run.n_watchers + 2 * lags
    if total == 0:
        return 2.0
    # before the step; a delayed argument is above the lower and below the upper end
    hidden = not run.smooth
    for i in range(total):
        if i < run.n_watchers:
            run.side[i] = run.sign[i]
            hidden = hidden or run.side[i] == 0
        else:
            run.side[i] = 1 - 2 * ((i - run.n_watchers) % 2)
    before, ends = 0.0, False
    # what is zero at the start, but for rounding, soon shows its side
    for u in (1e-8, 1e-6, 1e-4, 1e-2, 0.25, 0.5, 0.75, 1.0):
        if u < 0.1 and not hidden:
            continue
        ends = _scan_to(run, u, before, total)
        if ends:
            break
        before = u
    first = 2.0
    for k in range(run.n_found):
        if run.found_kind[k] == STOPS:
            first = min(first, run.found_u[k])
    if ends:  # what happens up to the first, and everything that coincides with it
        _drop_after(run, first + 16 * EPS * max(1.0, abs(run.t) / run.h))
    return first


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
