"""One trial step of an explicit Runge-Kutta pair on a delay equation.

The error of a step is that of its dense output, which delayed look-ups read: estimated both by the
embedded solution and by the defect in the middle of the step. The stages alone do not see enough:
none lies between 0.33 and 0.9 of the step (Tsit5; 0.3 and 0.8 of DP5), and the error weights of
those behind nearly cancel, so that a kink passes with 20 times the tolerance as a rule, and
sometimes with 500 times; the defect leaves 3 as a rule, and 40 at the most.

Where a lag is shorter than the step (or vanishes), the step looks into itself. The stages then read
a provisional dense output, first the continuation of the previous piece, and are repeated until the
polynomial no longer changes: a fixed-point iteration that contracts like h, so that small lags
never force small steps.
"""

from __future__ import annotations

import math

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.dde import state as s
from fluidcc.numerics.dde.past import incline, inside, rise, slope
from fluidcc.numerics.dde.state import Run
from fluidcc.numerics.layout import at, clear, copy

EPS = 2.220446049250313e-16
_DEFECT = 6.0  # in the middle, for t^4, by the largest error of the dense output (both pairs: 6.07)
_MAX_PASSES = 12
_NOTHING = 1e-300  # allowed of a state that is and stays zero, where its tolerance is relative


@njit()
def _predict(run: Run) -> None:
    """A first guess of the dense output: the last piece continued from where it ended, or a
    straight line.
    """
    g, old, u, r = run.guess, run.before_q, run.cut, run.h / run.before_h
    if not run.smooth or run.h > 2 * run.before_h or run.h <= run.shortest:
        clear(g, 4 * run.n)
        for i in range(run.n):
            g[4 * i] = run.h * run.rate[i]
        return
    for i in range(run.n):  # p(cut + r v) - p(cut) in powers of v
        b, c, d = old[4 * i + 1], old[4 * i + 2], old[4 * i + 3]
        g[4 * i] = incline(old, i, u) * r
        g[4 * i + 1] = (b + u * (3 * c + u * 6 * d)) * r**2
        g[4 * i + 2] = (c + u * 4 * d) * r**3
        g[4 * i + 3] = d * r**4


@njit()
def expected_slope(run: Run, i: int) -> float:
    """y' of state i at the end of the trial step, if the previous piece went on."""
    if not run.smooth:
        return run.rate[i]
    return incline(run.before_q, i, run.cut + run.h / run.before_h) / run.before_h


@njit()
def _stages(run: Run) -> bool:
    """Fill the stages k[1:]; return whether any looked into the step."""
    n, h, k, A, y, stage = run.n, run.h, run.k, run.A, run.y, run.stage
    implicit = False
    copy(k, run.rate, n)
    for j in range(1, 7):
        for i in range(n):
            increment = 0.0
            for l in range(j):
                increment += A[7 * j + l] * k[n * l + i]
            stage[i] = y[i] + h * increment
        into_itself = slope(run, run.t + run.C[j] * h, run.t, h, y, run.guess)
        implicit = implicit or into_itself
        copy(at(k, n * j), run.out, n)
    return implicit


@njit()
def _combine(run: Run) -> bool:
    """The end and the dense output from the stages, and the error allowed; return whether all is
    finite.
    """
    n, h, k, q, P = run.n, run.h, run.k, run.q, run.P
    finite = True
    for i in range(n):
        increment = 0.0
        clear(at(q, 4 * i), 4)
        for l in range(7):
            increment += run.B[l] * k[n * l + i]
            for p in range(4):
                q[4 * i + p] += h * P[4 * l + p] * k[n * l + i]
        end = run.y_end[i] = run.y[i] + h * increment
        finite = finite and math.isfinite(end) and math.isfinite(k[6 * n + i])
        allowed = run.atol[i] + run.rtol * max(abs(run.y[i]), abs(end))
        run.allowed[i] = allowed if allowed > 0 else _NOTHING
    return finite


@njit()
def _change(run: Run) -> float:
    """By how much the last pass changed the dense output in the middle and at the end, in units of
    the tolerance.
    """
    total = 0.0
    for i in range(run.n):
        for u in (0.5, 1.0):
            total += ((rise(run.q, i, u) - rise(run.guess, i, u)) / run.allowed[i]) ** 2
    return math.sqrt(total / (2 * run.n))


@njit()
def _converged(run: Run, change: float, ratio: float, number: int) -> bool:
    """Whether what further passes would still change is a hundredth of the tolerance, or
    rounding.
    """
    largest = 0.0
    for i in range(run.n):
        largest = max(largest, abs(run.y[i]) / run.allowed[i])
    if change <= max(1e-3, 16 * EPS * largest):
        return True
    return number >= 2 and ratio < 0.5 and change * ratio / (1 - ratio) <= 1e-2


@njit()
def _passes(run: Run) -> int:
    """Compute the step, repeated until it agrees with what it reads of itself; return its
    problem.
    """
    before = math.inf
    for number in range(_MAX_PASSES):
        implicit = _stages(run)
        if not _combine(run):
            return s.NOT_FINITE
        if not implicit:
            return s.NO_PROBLEM
        run.passes += number > 0
        change = _change(run)
        ratio = change / before if before > 0 else 0.0
        if _converged(run, change, ratio, number):
            return s.NO_PROBLEM
        if number >= 3 and ratio > 0.9:
            return s.NO_FIXED_POINT
        before = change
        copy(run.guess, run.q, 4 * run.n)
    return s.NO_FIXED_POINT


@njit()
def _embedded(run: Run) -> float:
    """The error by the embedded solution, in units of the tolerance."""
    n, total = run.n, 0.0
    for i in range(n):
        error = 0.0
        for l in range(7):
            error += run.E[l] * run.k[n * l + i]
        total += (run.h * error / run.allowed[i]) ** 2
    return math.sqrt(total / n)


@njit()
def _defect(run: Run) -> float:
    """By how much the dense output fails the equation in the middle of the step, in units of the
    tolerance.

    The largest, for a kink may be that of one state among hundreds.
    """
    largest = 0.0
    inside(run, 0.5, run.stage)
    slope(run, run.t + 0.5 * run.h, run.t, run.h, run.y, run.q)
    for i in range(run.n):
        defect = abs((run.h * run.out[i] - incline(run.q, i, 0.5)) / run.allowed[i])
        if not defect <= largest:
            largest = defect
        if math.isnan(defect):
            break
    return largest


@njit()
def attempt(run: Run) -> None:
    """A step of size h from (t, y), where the right-hand side is `rate`: its end, dense output,
    error, and whether there is a problem.
    """
    _predict(run)
    run.error = math.inf
    run.problem = _passes(run)
    if run.problem != s.NO_PROBLEM:
        return
    if run.function[s.LAGS] != 0 and run.least_lag < -10 * run.rtol * max(abs(run.t), run.h):
        run.problem = s.NEGATIVE_LAG
    run.error = _embedded(run)
    if run.error <= 1.0:
        defect = _defect(run) / _DEFECT
        if not math.isfinite(defect) and run.problem == s.NO_PROBLEM:
            run.problem = s.NOT_FINITE
        run.error = max(run.error, defect)
