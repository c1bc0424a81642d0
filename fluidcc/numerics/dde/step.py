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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fluidcc.numerics.dde.history import Array, Delays, returned, shift_polynomial
from fluidcc.numerics.tableaus import Tableau

__all__ = ["Failure", "Stepper", "Trial", "rms"]

_POWERS = np.array(
    [[0.5, 1.0], [0.25, 1.0], [0.125, 1.0], [0.0625, 1.0]]
)  # (u, u^2, u^3, u^4) at u = 1/2 and 1
_SLOPES = np.array([1.0, 1.0, 0.75, 0.5])  # of (u, u^2, u^3, u^4) at u = 1/2
_DEFECT = 6.0  # in the middle, for t^4, by the largest error of the dense output (both pairs: 6.07)
_MAX_PASSES = 12


class Failure(Exception):
    """The integration cannot go on; the message becomes that of the result."""


@dataclass(slots=True)
class Trial:
    """A step from (t, y) of size h, with its dense output ``y + q @ (u, u^2, u^3, u^4)``."""

    t: float
    h: float
    y: Array
    q: Array
    y_end: Array
    rate_end: Array
    error: float  # in units of the tolerance
    problem: str = ""  # why it cannot be judged by its error

    def time(self, u: float) -> float:
        return self.t + u * self.h

    def at(self, u: float) -> Array:
        q = self.q
        value: Array = self.y + u * (q[:, 0] + u * (q[:, 1] + u * (q[:, 2] + u * q[:, 3])))
        return value


class Stepper:
    """The right-hand side with its delayed states, and trial steps of one pair."""

    def __init__(
        self,
        fun: Callable[..., object],
        args: tuple[object, ...],
        pair: Tableau,
        delays: Delays,
        rtol: float,
        atol: Array,
        modes: Array | None,
    ) -> None:
        self.fun, self.args, self.pair, self.delays = fun, args, pair, delays
        self.rtol, self.atol, self.modes = rtol, atol, modes
        self.stages = [(c, pair.A[i, :i]) for i, c in enumerate(pair.C.tolist())][1:]
        self.nfev = 0
        self.passes = 0  # repetitions of steps that look into themselves

    def evaluate(self, t: float, y: Array, z: Array) -> Array:
        """The right-hand side."""
        self.nfev += 1
        modes = () if self.modes is None else (self.modes,)
        return returned(self.fun(t, y, z, *modes, *self.args), y.size, "fun", t)

    def tolerance(self, y: Array, y_end: Array) -> Array:
        """The error allowed in each state."""
        allowed: Array = self.atol + self.rtol * np.maximum(np.abs(y), np.abs(y_end))
        return allowed

    def rate(self, t: float, y: Array) -> Array:
        """The right-hand side at a mesh point."""
        return self.evaluate(t, y, self.delays.at_mesh(t, y))

    def predict(self, h: float, rate: Array, previous: Trial | None, u: float) -> Array:
        """A first guess of the dense output: the last piece continued from its u, or a straight
        line.
        """
        if previous is not None and h <= 2 * previous.h and h > self.delays.least:
            continued: Array = shift_polynomial(previous.q, u, h / previous.h)
            return continued
        q = np.zeros((rate.size, 4))
        q[:, 0] = h * rate
        return q

    def attempt(
        self, t: float, y: Array, h: float, rate: Array, previous: Trial | None, u: float
    ) -> Trial:
        """A step of size h from (t, y), where the right-hand side is `rate`; nothing is kept of
        it.
        """
        pair, q = self.pair, self.predict(h, rate, previous, u)
        k = np.empty((7, y.size))
        k[0] = rate
        trial = Trial(t, h, y, q, y, rate, math.inf)
        before = math.inf
        for number in range(_MAX_PASSES):
            implicit, least = self._stages(k, t, y, h, q)
            new = h * (k.T @ pair.P)
            trial.y_end = y + h * (pair.B @ k)
            if not np.isfinite(trial.y_end).all() or not np.isfinite(k[6]).all():
                trial.problem = "not finite"
                return trial
            scale = self.tolerance(y, trial.y_end)
            if not implicit:
                q = new
                break
            change = rms(((new - q) @ _POWERS) / scale[:, None])
            q, self.passes = new, self.passes + (number > 0)
            ratio = change / before if before > 0 else 0.0
            if _converged(change, ratio, number, y, scale):
                break
            if number >= 3 and ratio > 0.9:
                trial.problem = "no fixed point"
                return trial
            before = change
        else:
            trial.problem = "no fixed point"
            return trial
        if least < -10 * self.rtol * max(abs(t), h):
            trial.problem = "negative lag"
        trial.q, trial.rate_end = q, k[6].copy()
        trial.error = rms(h * (pair.E @ k) / scale)
        if trial.error <= 1.0:
            defect = self._defect(trial, scale) / _DEFECT
            trial.problem = trial.problem or ("" if math.isfinite(defect) else "not finite")
            trial.error = max(trial.error, defect)
        return trial

    def _defect(self, trial: Trial, scale: Array) -> float:
        """By how much the dense output fails the equation in the middle of the step, in units of
        the tolerance.

        The largest, for a kink may be that of one state among hundreds.
        """
        t, h, y = trial.time(0.5), trial.h, trial.at(0.5)
        z, _ = self.delays.states(t, y, trial.t, h, trial.y, trial.q)
        return float(np.abs((h * self.evaluate(t, y, z) - trial.q @ _SLOPES) / scale).max())

    def _stages(self, k: Array, t: float, y: Array, h: float, q: Array) -> tuple[bool, float]:
        """Fill the stages k[1:]; whether any looked into the step, and the least lag at its end."""
        implicit = False
        for i, (node, weights) in enumerate(self.stages, 1):
            stage = y + h * (weights @ k[:i])
            now = t + node * h
            z, inside = self.delays.states(now, stage, t, h, y, q)
            implicit = implicit or inside
            k[i] = self.evaluate(now, stage, z)
        return implicit, self.delays.smallest


def rms(x: Array) -> float:
    """Root mean square."""
    flat = x.ravel()
    return math.sqrt(float(flat @ flat) / max(flat.size, 1))


def _converged(change: float, ratio: float, number: int, y: Array, scale: Array) -> bool:
    """Whether what further passes would still change is a hundredth of the tolerance, or
    rounding.
    """
    if change <= max(
        1e-3, 16 * np.finfo(float).eps * float(np.max(np.abs(y) / scale, initial=0.0))
    ):
        return True
    return number >= 2 and ratio < 0.5 and change * ratio / (1 - ratio) <= 1e-2
