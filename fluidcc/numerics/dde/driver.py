"""The integration of a delay equation: step sizes, landings, discontinuities, and what is recorded.

Where the next step must end is known in advance for constant lags, given jumps and given breaking
points. The rest (events, switches, and state-dependent delayed arguments that cross a breaking
point) is found on the dense output of a trial step, for which modes and pieces of the past were
held, so that it is smooth even beyond that point; the step is then taken again to just past the
point, and cut there.
"""

from __future__ import annotations

import math

import numpy as np

from fluidcc.numerics.dde.control import Control, first_step, short
from fluidcc.numerics.dde.events import ROUNDING, Crossing, Found, Monitor, Watcher
from fluidcc.numerics.dde.history import Array, Pieces, returned
from fluidcc.numerics.dde.input import FEW, Problem
from fluidcc.numerics.dde.record import Record
from fluidcc.numerics.dde.result import DdeResult
from fluidcc.numerics.dde.step import Failure, Stepper, Trial
from fluidcc.numerics.dde.table import BreakingPoints, Delays

__all__ = ["Integration"]

_EPS = float(np.finfo(float).eps)
_PACE = 10_000  # steps between two checks of the pace
_CROWD = 200  # so many discontinuities at one time are an accumulation


class Integration:
    """State of one run of `solve_dde`."""

    def __init__(self, problem: Problem) -> None:
        p = self.problem = problem
        n = p.history.constant.size
        self.t, self.y = p.t0, p.history.constant.copy()
        self.scale = max(abs(p.t0), abs(p.tf))
        self.tolerance = 64 * _EPS * self.scale  # times closer than this are one
        self.aside = self.tolerance / 4  # so far from a jump of fun, its value is that of one side
        self.pieces, self.points = Pieces(n), BreakingPoints(p.max_order)
        self.delays = Delays(
            p.lags, p.args, p.history, self.points, self.pieces, p.count, p.lag_states
        )
        switches = sum(w.kind == "switch" for w in p.watchers)
        modes = np.zeros(switches) if switches else None
        self.stepper = Stepper(p.fun, p.args, p.pair, self.delays, p.rtol, p.atol, modes)
        self.monitor = Monitor(p.watchers, self.delays, p.args)
        self.record = Record(p)
        self.stats = self.record.stats
        self.control = Control(p, self.stepper, self.monitor, self.stats)
        self.previous: Trial | None = (
            None  # the last piece, if the solution went on smoothly from it
        )
        self.cut = 1.0  # where in it the last piece ended
        self.timed, self.breaks = list(p.timed), [b for b in p.breaks if b[0] > p.t0]
        self.forget_after = float(np.max(p.lags, initial=0.0)) if not callable(p.lags) else math.inf
        self.paced, self.paced_at = 0, p.t0  # steps and time at the last check of the pace
        self.crowd = 0  # discontinuities in a row without progress
        self.status, self.message = (
            0,
            "The solver successfully reached the end of the integration interval.",
        )
        self.finished = False

    # ---- the run

    def run(self) -> DdeResult:
        """Integrate to the end, a terminal event, or a failure."""
        with np.errstate(
            all="ignore"
        ):  # a trial step may leave the domain of fun; what matters is reported
            try:
                self._start()
                while not self.finished and self.t < self.problem.tf:
                    self._step()
            except Failure as failure:
                self.status, self.message = -1, str(failure)
        return self.record.result(
            self.t, self.y, self.pieces, self.points, self.stepper, self.status, self.message
        )

    def _start(self) -> None:
        p = self.problem
        for t, order in p.breaks:
            if t < p.t0:
                self.points.add(t, order, 0, record=False)
        self.record.mesh(self.t, self.y)
        self.points.max_order = max(p.max_order, 2)  # the initial point always counts
        self.points.add(
            p.t0, 0 if p.timed and p.timed[0][0] <= p.t0 + self.tolerance else 1, 0, record=False
        )
        self.points.max_order = p.max_order
        self.points.initial = len(self.points.times) - 1
        probe = self.tolerance if not callable(p.lags) else 1e-9 * max(p.tf - p.t0, self.scale)
        for index in range(len(self.points.times)):
            self.delays.schedule(index, p.t0 + self.tolerance)
        self.delays.locate(self.t, self.y, np.zeros_like(self.y), probe)
        self._timed_jumps()
        for w, g in zip(p.watchers, self.monitor.at_mesh(self.t, self.y), strict=True):
            w.sign, w.size = int(np.sign(g)), abs(g)
            if w.kind == "switch":
                self._switch(w, w.sign or -1)
        self.stats.switchings = 0
        self.rate = self._rate(self.t)
        self.control.h = first_step(p, self.stepper, self.y, self.rate)

    def _rate(self, t: float) -> Array:
        """The right-hand side of the present state."""
        rate = self.stepper.rate(t, self.y)
        if not np.isfinite(rate).all():
            raise Failure(
                f"fun returned {rate[~np.isfinite(rate)][0]} at t = {self.t:.10g}, y = "
                f"{short(self.y)}: "
                "check fun there, and the delayed states it uses."
            )
        return rate

    # ---- one step

    def _target(self) -> float:
        """The next time that must be a mesh point."""
        target = self.problem.tf
        for times in (self.delays.landings, self.timed, self.breaks):
            if times:
                target = min(target, times[0][0])
        return target

    def _step(self) -> None:
        self._check_pace()
        target = self._target()
        last = target - self.aside if self.breaks and self.breaks[0][0] == target else target
        step = self.control.step(self.t, self.y, self.rate, last, self.previous, self.cut)
        trial, u = step.trial, step.found.u
        end = trial.time(1.0 if u is None else u)
        if abs(end - target) <= self.tolerance:
            end = target
        self._accept(trial, step.found, end, step.kink)

    def _check_pace(self) -> None:
        """Fail at the last step allowed, or when a thousand times as many would not do at the
        present pace.
        """
        p, steps = self.problem, self.stats.steps
        hopeless = False
        if steps >= self.paced + _PACE:
            hopeless = (self.t - self.paced_at) * (p.max_steps / _PACE) * 1e3 < p.tf - self.t
            self.paced, self.paced_at = steps, self.t
        if hopeless or steps >= p.max_steps:
            raise Failure(
                f"{steps} steps were taken and t = {self.t:.10g} reached of {p.tf:.10g}, the last "
                f"of {self.h:.3g}: "
                "raise max_steps, loosen rtol and atol, or look whether it is stiff or slides "
                "along a jump of fun."
            )

    @property
    def h(self) -> float:
        """The size of the last step."""
        return self.control.last.h if self.control.last is not None else 0.0

    def _accept(self, trial: Trial, found: Found, end: float, kink: bool) -> None:
        """Keep the trial step up to `end`, and deal with all that happens there."""
        u = 1.0 if found.u is None else found.u
        if end - self.t > self.tolerance or found.u is None:
            self.pieces.append(trial.t, trial.h, trial.y, trial.q, end)
            self.stats.steps += 1
            self.crowd = 0
            self.y = trial.y_end if found.u is None else trial.at(u)
            self.record.sample(trial, end)
            self.t, self.previous, self.cut = end, trial, u
            self.record.mesh(end, self.y)
        self.rate = trial.rate_end
        before = (
            self.monitor.values(trial, u)[: len(self.problem.watchers)]
            if self.problem.watchers
            else []
        )
        for _, i, sign in found.signs:
            self.problem.watchers[i].sign = sign
        for c in found.hits:
            w = self.problem.watchers[c.i]
            if w.kind == "event" and w.counts(c.direction):
                self.record.hit(w, trial.time(c.u), trial.at(c.u))
        orders = [o for o in (self._stop(c) for c in found.stops) if o is not None]
        orders += self._due()
        if kink:  # with many lags, its images cost more as mesh points than under error control
            orders.append(1 if self.problem.count <= FEW else self.points.max_order)
        if found.u is not None or orders:
            self._kink(min(orders, default=self.points.max_order + 1), before)
        if not self.problem.dense_output and self.pieces.forget(self.t - self.forget_after):
            self.delays.refresh()

    # ---- discontinuities

    def _stop(self, c: Crossing) -> int | None:
        """Act on what ended the step; the order of the discontinuity it makes."""
        watchers = self.problem.watchers
        if c.i >= len(watchers):
            j, upper = divmod(c.i - len(watchers), 2)
            k = self.delays.branch[j]
            self.delays.branch[j] = k + c.direction
            return self.points.orders[k if upper else k - 1] + 1
        w = watchers[c.i]
        if w.kind == "switch":
            self._switch(w, c.direction)
            return 1
        w.sign = 0
        return self._fire(w)

    def _switch(self, w: Watcher, direction: int) -> None:
        assert self.stepper.modes is not None
        self.stepper.modes = self.stepper.modes.copy()
        self.stepper.modes[w.index] = 1.0 if direction > 0 else 0.0
        w.sign, w.switched = direction, self.t
        self.stats.switchings += 1

    def _fire(self, w: Watcher) -> int | None:
        """A terminal event or one with a jump has occurred."""
        if w.kind == "event":
            self.record.hit(w, self.t, self.y)
            if w.terminal and len(self.record.hits[w.index]) >= w.terminal:
                self.finished, self.status, self.message = True, 1, "A termination event occurred."
            return None
        self._jump(w)
        if w.accumulates(self.t):
            raise Failure(self._accumulation(f"ever faster jumps {w.index}"))
        return 0

    def _accumulation(self, what: str) -> str:
        return (
            f"{what} accumulate at t = {self.t:.10g}, y = {short(self.y)}: the solution slides "
            f"along a switching "
            "surface or jumps without end; replace the switch by its sliding mode, or give it a "
            "hysteresis."
        )

    def _jump(self, w: Watcher) -> None:
        assert w.change is not None
        z = ()
        if getattr(w.change, "delayed", False):
            z = (self.delays.at_mesh(self.t, self.y),)  # type: ignore[assignment]
        what = f"the change of jump {w.index}"
        new = returned(
            w.change(self.t, self.y.copy(), *z, *self.problem.args), self.y.size, what, self.t
        )
        if not np.isfinite(new).all():
            raise Failure(
                f"jump {w.index} at t = {self.t:.10g} turned the state {short(self.y)} into "
                f"{short(new)}: "
                f"it must return {self.y.size} finite numbers."
            )
        self.y = new
        self.record.jumped(self.t, self.y)

    def _timed_jumps(self) -> bool:
        any_due = False
        while self.timed and self.timed[0][0] <= self.t + self.tolerance:
            self._jump(self.timed.pop(0)[1])
            any_due = True
        return any_due

    def _due(self) -> list[int]:
        """Orders of the discontinuities that were expected at this time."""
        order = self.delays.land(self.t, self.tolerance)
        orders = [] if order is None else [order]
        while self.breaks and self.breaks[0][0] <= self.t + self.tolerance:
            orders.append(self.breaks.pop(0)[1])
        return [*orders, 0] if self._timed_jumps() else orders

    def _kink(self, order: int, before: list[float]) -> None:
        """Begin a new smooth interval here, with a discontinuity of that order behind it."""
        self.crowd += 1
        if self.crowd > _CROWD:
            raise Failure(self._accumulation(f"{self.crowd} events, switchings or jumps"))
        self.delays.schedule(
            self.points.add(self.t, order, self.pieces.total), self.t + self.tolerance
        )
        self.delays.refresh()
        self.previous = None
        if self._settle(before):
            self.delays.schedule(
                self.points.add(self.t, 0, self.pieces.total), self.t + self.tolerance
            )
            self.delays.refresh()
        if not self.finished:
            self.rate = self._rate(self.t + self.aside)

    def _settle(self, before: list[float]) -> bool:
        """Act on watchers that the discontinuity carried over zero; whether that made further
        jumps.

        A value that has not jumped is left alone: just after its zero, its sign is rounding.
        """
        jumped = False
        for _ in range(_CROWD):
            after, again = self.monitor.at_mesh(self.t, self.y), False
            for w, old, g in zip(self.problem.watchers, before, after, strict=True):
                new = int(np.sign(g))
                if abs(g - old) <= ROUNDING * w.size or new * w.sign >= 0:
                    continue
                if w.kind == "switch":
                    self._switch(w, new)
                    continue
                w.sign = new
                if w.stops(new):
                    again = self._fire(w) == 0 or again
                elif w.kind == "event" and w.counts(new):
                    self.record.hit(w, self.t, self.y)
            before, jumped = after, jumped or again
            if not again:
                return jumped
        raise Failure(
            f"jumps trigger each other without end at t = {self.t:.10g}: make one of them stop "
            f"the others."
        )
