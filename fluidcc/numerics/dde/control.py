"""Step sizes: the first, the next, and what to do when a trial step is refused."""

from __future__ import annotations

import math

import numpy as np

from fluidcc.numerics.dde.events import Found, Monitor
from fluidcc.numerics.dde.history import Array
from fluidcc.numerics.dde.input import Problem
from fluidcc.numerics.dde.result import Statistics
from fluidcc.numerics.dde.step import Failure, Stepper, Trial, rms

__all__ = ["Control", "first_step", "short"]

_EPS = float(np.finfo(float).eps)


class Control:
    """Trial steps until one is good, and the size of the next.

    Where a refused error does not shrink like that of a smooth problem, a jump or kink of the
    right-hand side (or of a lag) is suspected. All that it can do within a step is bounded by h/2
    times the mismatch between `fun` at the end and the continuation of the previous piece, and this
    bound must be below the tolerance until that place is passed. (It is too severe to be asked of
    every step.) The step that passes it shows by an error far above that of its smooth neighbour;
    its end becomes a breaking point, so that the kinks that the lags make of it are known.
    """

    def __init__(
        self, problem: Problem, stepper: Stepper, monitor: Monitor, stats: Statistics
    ) -> None:
        self.problem, self.stepper, self.monitor, self.stats = problem, stepper, monitor, stats
        self.scale = max(abs(problem.t0), abs(problem.tf))
        self.h = 0.0  # proposed
        self.last: Trial | None = None
        self.error = 1e-4  # of the last step
        self.suspect = -math.inf  # fun may jump before this time
        self.usual = 0.0  # the step size before the cascade

    def step(
        self, t: float, y: Array, rate: Array, target: float, previous: Trial | None, cut: float
    ) -> _Step:
        """A good step from (t, y) that does not go beyond `target`."""
        gap = target - t
        wish = min(self.h, self.problem.max_step)
        h = gap if 1.001 * wish >= gap else min(wish, 0.5 * gap) if 2 * wish > gap else wish
        floor = 10 * _EPS * max(abs(t), 1e-6 * self.scale)
        refused = again = 0
        before = self.last if previous is not None else None
        while True:
            trial = self.stepper.attempt(t, y, h, rate, previous, cut)
            jump = self._jump(trial, rate, previous, cut)
            error = max(trial.error, jump)
            if trial.problem or not error <= 1.0:
                refused += 1
                self._refuse(trial, before, refused)
                before = trial
                h *= 0.25 if trial.problem else max(0.2, 0.9 * error**-0.2)
                if h < floor:
                    raise Failure(self._collapse(trial, h))
                continue
            found = self.monitor.scan(trial, previous is None)
            if found.u is not None and found.u < 0.9 and again < 3 and found.u * h > floor:
                again += 1
                self.stats.resteps += 1
                h *= min(1.0, 1.001 * found.u)
                continue
            break
        # Gustafsson's PI rule with the constants of DOPRI5 (Hairer & Wanner II, Section IV.2)
        factor = min(5.0, 0.9 * max(error, 1e-10) ** -0.17 * self.error**0.04)
        self.error = max(error, 1e-4)
        proposal = trial.h * (min(factor, 1.0) if refused else factor)
        self.h = max(proposal, self.h) if not refused and trial.h < self.h else proposal
        kink = self._passes_kink(trial, previous)
        if kink:
            self.h = self.usual  # what shortened the steps is behind
        if kink or self.suspect <= t + trial.h:
            self.suspect = -math.inf
        self.last = trial
        return _Step(trial, found, kink)

    def _passes_kink(self, trial: Trial, previous: Trial | None) -> bool:
        """Whether the suspected kink lies in this good step, which follows a smooth one."""
        if trial.t > self.suspect or previous is None or self.last is None:
            return False
        smooth = self.last.error * (trial.h / self.last.h) ** 5
        return trial.error > 100 * max(smooth, 1e-6)  # below that, errors are rounding

    def _refuse(self, trial: Trial, before: Trial | None, refused: int) -> None:
        """Count a refusal, and suspect a jump of fun if the error does not shrink with h as in a
        smooth problem.
        """
        self.stats.rejections += 1
        if refused == 1 and self.suspect == -math.inf:
            self.usual = self.h
        if trial.problem or before is None or before.problem or trial.error <= 1.0:
            return
        smooth = before.error * (trial.h / before.h) ** 5
        if trial.error > (10.0 if refused == 1 else 1.5) * smooth:
            self.suspect = max(self.suspect, trial.t + trial.h)

    def _jump(self, trial: Trial, rate: Array, previous: Trial | None, cut: float) -> float:
        """What a jump of fun could have done in this step, in units of the tolerance."""
        if trial.problem or trial.t > self.suspect:
            return 0.0
        expected = rate
        if previous is not None:
            u = cut + trial.h / previous.h
            expected = previous.q @ np.array([1.0, 2 * u, 3 * u**2, 4 * u**3]) / previous.h
        return rms(
            0.5
            * trial.h
            * (trial.rate_end - expected)
            / self.stepper.tolerance(trial.y, trial.y_end)
        )

    def _collapse(self, trial: Trial, h: float) -> str:
        where = f"t = {trial.t:.10g}, y = {short(trial.y)}"
        end, delays = trial.t + trial.h, self.stepper.delays
        ahead = delays.arguments(end, trial.y_end) - end
        if delays.function is not None and ahead.max(initial=-1.0) > 1e-3 * self.problem.rtol * max(
            abs(end), h
        ):
            j = int(np.argmax(ahead))
            return (
                f"lag {j} becomes negative after {where}: the state at t - lag would lie in the "
                f"future; "
                "correct lags, or end t_span or declare a terminal event before that."
            )
        if trial.problem == "not finite":
            return (
                f"fun or the state became infinite or NaN however small the step, after {where}: "
                f"the solution may "
                "blow up or leave the domain of fun there; end t_span before it or declare a "
                "terminal event."
            )
        return (
            f"the step size collapsed to {h:.3g} at {where}: the solution may have a singularity, "
            f"or fun jump as a "
            "function of the state (declare it in switches); or rtol and atol ask for more than "
            "rounding allows."
        )


class _Step:
    """A step to be kept: the trial, what was found in it, and whether an undeclared kink of fun
    lies in it.
    """

    __slots__ = ("found", "kink", "trial")

    def __init__(self, trial: Trial, found: Found, kink: bool) -> None:
        self.trial, self.found, self.kink = trial, found, kink


def first_step(problem: Problem, stepper: Stepper, y: Array, rate: Array) -> float:
    """A first step from the sizes of y, y' and a rough y'' (Hairer, Norsett & Wanner I, II.4)."""
    p, span = problem, problem.tf - problem.t0
    if p.first_step is not None or span == 0:
        return min(p.first_step or 0.0, span)
    s = p.atol + p.rtol * np.abs(y)
    s = np.where(s > 0, s, 1.0)
    d0, d1 = rms(y / s), rms(rate / s)
    h0 = min(1e-6 * span if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, span)
    q = np.zeros((y.size, 4))
    q[:, 0] = h0 * rate
    y1 = y + h0 * rate
    z, _ = stepper.delays.states(p.t0 + h0, y1, p.t0, h0, y, q)
    d2 = rms((stepper.evaluate(p.t0 + h0, y1, z) - rate) / s) / h0
    if not math.isfinite(d2):
        return h0 * 1e-2
    h1 = max(1e-6 * span, h0 * 1e-3) if max(d1, d2) <= 1e-15 else (0.01 / max(d1, d2)) ** 0.2
    return min(100 * h0, h1, span)


def short(y: Array) -> str:
    """A state as text, abbreviated."""
    return np.array2string(y, precision=6, threshold=6, edgeitems=2)
