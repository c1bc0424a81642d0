"""The integration of a delay equation: step sizes, landings, discontinuities, and what is recorded.

Where the next step must end is known in advance for constant lags, given jumps and given breaking
points. The rest (events, switches, and state-dependent delayed arguments that cross a breaking
point) is found on the dense output of a trial step, for which modes and pieces of the past were
held, so that it is smooth even beyond that point; the step is then taken again to just past the
point, and cut there.

Where a refused error does not shrink like that of a smooth problem, a jump or kink of the
right-hand side (or of a lag) is suspected. All that it can do within a step is bounded by h/2 times
the mismatch between `fun` at the end and the continuation of the previous piece, and this bound
must be below the tolerance until that place is passed. (It is too severe to be asked of every
step.) The step that passes it shows by an error far above that of its smooth neighbour; its end
becomes a breaking point, so that the kinks that the lags make of it are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.dde.events import ROUNDING, Crossing, Found, Monitor, Watcher
from fluidcc.numerics.dde.history import (
    Array,
    BreakingPoints,
    Delays,
    History,
    Pieces,
    returned,
)  # fmt: skip
from fluidcc.numerics.dde.result import DdeResult, DdeSolution, Statistics
from fluidcc.numerics.dde.step import Failure, Stepper, Trial, rms
from fluidcc.numerics.tableaus import Tableau

__all__ = ["FEW", "Integration", "Problem"]

FEW = 4  # lags: so many carry every discontinuity on as far as the order of the method
_EPS = float(np.finfo(float).eps)
_PACE = 10_000  # steps between two checks of the pace
_CROWD = 200  # so many discontinuities at one time are an accumulation


@dataclass
class Problem:
    """A delay equation to solve, every argument in its normal form."""

    fun: Callable[..., object]
    t0: float
    tf: float
    history: History
    lags: Array | Callable[..., Array]
    count: int  # how many lags
    lag_states: NDArray[np.int64] | None  # the state that each lag is read for, None: all of them
    args: tuple[object, ...]
    pair: Tableau
    t_eval: Array | None
    dense_output: bool
    watchers: list[Watcher]
    events: int | None  # how many, None: not asked for
    timed: list[tuple[float, Watcher]]  # jumps at given times, in order
    breaks: list[
        tuple[float, int]
    ]  # (time, order), in order: known discontinuities besides the initial point
    rtol: float
    atol: Array
    max_step: float
    first_step: float | None
    max_steps: int
    max_order: int


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
        self.stats = Statistics()
        self.ts: list[float] = []  # of the mesh, or of the samples
        self.ys: list[Array] = []
        self.sampled = 0  # how many of t_eval were passed
        self.hits: list[list[tuple[float, Array]]] = [[] for _ in range(p.events or 0)]
        self.jumps: list[float] = []
        self.h = 0.0  # proposed
        self.last: Trial | None = None  # the last step
        self.error = 1e-4  # of it
        self.suspect = -math.inf  # fun may jump before this time
        self.usual = 0.0  # the step size before steps were refused for that
        self.previous: Trial | None = None  # the last step, if the solution goes on smoothly
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
        return self._result()

    def _start(self) -> None:
        p = self.problem
        for t, order in p.breaks:
            if t < p.t0:
                self.points.add(t, order, 0, record=False)
        self._mesh(self.t, self.y)
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
        self.h = self._first_step()

    def _rate(self, t: float) -> Array:
        """The right-hand side of the present state."""
        rate = self.stepper.rate(t, self.y)
        if not np.isfinite(rate).all():
            raise Failure(
                f"fun returned {rate[~np.isfinite(rate)][0]} at t = {self.t:.10g}, y = "
                f"{_short(self.y)}: "
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
        trial, found, kink = self._good_step(last)
        end = trial.time(1.0 if found.u is None else found.u)
        if abs(end - target) <= self.tolerance:
            end = target
        self._accept(trial, found, end, kink)

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
                f"of {self.last.h if self.last is not None else 0.0:.3g}: "
                "raise max_steps, loosen rtol and atol, or look whether it is stiff or slides "
                "along a jump of fun."
            )

    def _accept(self, trial: Trial, found: Found, end: float, kink: bool) -> None:
        """Keep the trial step up to `end`, and deal with all that happens there."""
        u = 1.0 if found.u is None else found.u
        if end - self.t > self.tolerance or found.u is None:
            self.pieces.append(trial.t, trial.h, trial.y, trial.q, end)
            self.stats.steps += 1
            self.crowd = 0
            self.y = trial.y_end if found.u is None else trial.at(u)
            self._sample(trial, end)
            self.t, self.previous, self.cut = end, trial, u
            self._mesh(end, self.y)
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
                self._hit(w, trial.time(c.u), trial.at(c.u))
        orders = [o for o in (self._stop(c) for c in found.stops) if o is not None]
        orders += self._due()
        if kink:  # with many lags, its images cost more as mesh points than under error control
            orders.append(1 if self.problem.count <= FEW else self.points.max_order)
        if found.u is not None or orders:
            self._kink(min(orders, default=self.points.max_order + 1), before)
        if not self.problem.dense_output and self.pieces.forget(self.t - self.forget_after):
            self.delays.refresh()

    # ---- step sizes

    def _good_step(self, target: float) -> tuple[Trial, Found, bool]:
        """A good step that does not go beyond `target`, what was found in it, and whether an
        undeclared kink of fun lies in it.
        """
        t, y, rate, previous, cut = self.t, self.y, self.rate, self.previous, self.cut
        gap = target - t
        wish = min(self.h, self.problem.max_step)
        h = gap if 1.001 * wish >= gap else min(wish, 0.5 * gap) if 2 * wish > gap else wish
        floor = 10 * _EPS * max(abs(t), 1e-6 * self.scale)
        refused = again = 0
        before = self.last if previous is not None else None
        while True:
            trial = self.stepper.attempt(t, y, h, rate, previous, cut)
            jump = self._mismatch(trial)
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
        kink = self._passes_kink(trial)
        if kink:
            self.h = self.usual  # what shortened the steps is behind
        if kink or self.suspect <= t + trial.h:
            self.suspect = -math.inf
        self.last = trial
        return trial, found, kink

    def _passes_kink(self, trial: Trial) -> bool:
        """Whether the suspected kink lies in this good step, which follows a smooth one."""
        if trial.t > self.suspect or self.previous is None or self.last is None:
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

    def _mismatch(self, trial: Trial) -> float:
        """What a jump of fun could have done in this step, in units of the tolerance."""
        if trial.problem or trial.t > self.suspect:
            return 0.0
        expected, previous = self.rate, self.previous
        if previous is not None:
            u = self.cut + trial.h / previous.h
            expected = previous.q @ np.array([1.0, 2 * u, 3 * u**2, 4 * u**3]) / previous.h
        allowed = self.stepper.tolerance(trial.y, trial.y_end)
        return rms(0.5 * trial.h * (trial.rate_end - expected) / allowed)

    def _collapse(self, trial: Trial, h: float) -> str:
        where = f"t = {trial.t:.10g}, y = {_short(trial.y)}"
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

    def _first_step(self) -> float:
        """A first step by sizes of y, y' and a rough y'' (Hairer, Norsett & Wanner I, II.4)."""
        p, y, rate, span = self.problem, self.y, self.rate, self.problem.tf - self.problem.t0
        if p.first_step is not None or span == 0:
            return min(p.first_step or 0.0, span)
        s = p.atol + p.rtol * np.abs(y)
        s = np.where(s > 0, s, 1.0)
        d0, d1 = rms(y / s), rms(rate / s)
        h0 = min(1e-6 * span if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, span)
        q = np.zeros((y.size, 4))
        q[:, 0] = h0 * rate
        y1 = y + h0 * rate
        z, _ = self.delays.states(p.t0 + h0, y1, p.t0, h0, y, q)
        d2 = rms((self.stepper.evaluate(p.t0 + h0, y1, z) - rate) / s) / h0
        if not math.isfinite(d2):
            return h0 * 1e-2
        h1 = max(1e-6 * span, h0 * 1e-3) if max(d1, d2) <= 1e-15 else (0.01 / max(d1, d2)) ** 0.2
        return min(100 * h0, h1, span)

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
            self._hit(w, self.t, self.y)
            if w.terminal and len(self.hits[w.index]) >= w.terminal:
                self.finished, self.status, self.message = True, 1, "A termination event occurred."
            return None
        self._jump(w)
        if w.accumulates(self.t):
            raise Failure(self._accumulation(f"ever faster jumps {w.index}"))
        return 0

    def _accumulation(self, what: str) -> str:
        return (
            f"{what} accumulate at t = {self.t:.10g}, y = {_short(self.y)}: the solution slides "
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
                f"jump {w.index} at t = {self.t:.10g} turned the state {_short(self.y)} into "
                f"{_short(new)}: "
                f"it must return {self.y.size} finite numbers."
            )
        self.y = new
        self.stats.jumps += 1
        self.jumps.append(self.t)
        self._mesh(self.t, self.y)

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
                    self._hit(w, self.t, self.y)
            before, jumped = after, jumped or again
            if not again:
                return jumped
        raise Failure(
            f"jumps trigger each other without end at t = {self.t:.10g}: make one of them stop "
            f"the others."
        )

    # ---- what is recorded

    def _mesh(self, t: float, y: Array) -> None:
        """A mesh point, or the other side of one at which the state jumped."""
        if self.problem.t_eval is None:
            self.ts.append(t)
            self.ys.append(y.copy())

    def _sample(self, trial: Trial, end: float) -> None:
        """Values at the times of `t_eval` before `end` (at `end` itself a jump may still come)."""
        times = self.problem.t_eval
        if times is None:
            return
        while self.sampled < times.size and times[self.sampled] < end:
            self._take(trial.at((times[self.sampled] - trial.t) / trial.h))

    def _take(self, y: Array) -> None:
        assert self.problem.t_eval is not None
        self.ts.append(float(self.problem.t_eval[self.sampled]))
        self.ys.append(y.copy())
        self.sampled += 1

    def _hit(self, w: Watcher, t: float, y: Array) -> None:
        """An event has occurred."""
        self.hits[w.index].append((t, y.copy()))
        self.stats.events += 1

    def _result(self) -> DdeResult:
        """The result of the run so far."""
        p, t, y, points, n = self.problem, self.t, self.y, self.points, self.y.size
        if p.t_eval is not None and self.sampled < p.t_eval.size and p.t_eval[self.sampled] <= t:
            self._take(y)
        self.stats.breaking_points, self.stats.passes = len(points.landed), self.stepper.passes
        sol = None
        if p.dense_output:
            sol = DdeSolution(
                p.history,
                self.pieces,
                p.t0,
                t,
                y,
                list(zip(points.times, points.orders, strict=True)),
            )
        times = states = None
        if p.events is not None:
            times = [np.array([at for at, _ in hits]) for hits in self.hits]
            states = [np.array([value for _, value in hits]).reshape(-1, n) for hits in self.hits]
        return DdeResult(
            t=np.array(self.ts), y=np.array(self.ys).reshape(-1, n).T, sol=sol, t_events=times,
            y_events=states, t_jumps=np.array(self.jumps),
            breaking_points=np.array(points.landed, dtype=float).reshape(-1, 2),
            nfev=self.stepper.nfev, status=self.status, message=self.message,
            modes=self.stepper.modes, statistics=self.stats,
        )  # fmt: skip


def _short(y: Array) -> str:
    """A state as text, abbreviated."""
    return np.array2string(y, precision=6, threshold=6, edgeitems=2)
