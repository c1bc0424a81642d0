"""What a run of `solve_dde` keeps: samples or mesh, events, jumps, and the result made of them."""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.dde.events import Watcher
from fluidcc.numerics.dde.history import Array, Pieces
from fluidcc.numerics.dde.input import Problem
from fluidcc.numerics.dde.result import DdeResult, DdeSolution, Statistics
from fluidcc.numerics.dde.step import Stepper, Trial
from fluidcc.numerics.dde.table import BreakingPoints

__all__ = ["Record"]


class Record:
    """The output of a run so far."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.stats = Statistics()
        self.ts: list[float] = []
        self.ys: list[Array] = []
        self.sampled = 0  # how many of t_eval were passed
        self.hits: list[list[tuple[float, Array]]] = [[] for _ in range(problem.events or 0)]
        self.jumps: list[float] = []

    def mesh(self, t: float, y: Array) -> None:
        """A mesh point, or the other side of one at which the state jumped."""
        if self.problem.t_eval is None:
            self.ts.append(t)
            self.ys.append(y.copy())

    def sample(self, trial: Trial, end: float) -> None:
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

    def hit(self, w: Watcher, t: float, y: Array) -> None:
        """An event has occurred."""
        self.hits[w.index].append((t, y.copy()))
        self.stats.events += 1

    def jumped(self, t: float, y: Array) -> None:
        """The state has been changed to y."""
        self.stats.jumps += 1
        self.jumps.append(t)
        self.mesh(t, y)

    def result(
        self,
        t: float,
        y: Array,
        pieces: Pieces,
        points: BreakingPoints,
        stepper: Stepper,
        status: int,
        message: str,
    ) -> DdeResult:
        """The result of a run that ended at t."""
        p, n = self.problem, y.size
        if p.t_eval is not None and self.sampled < p.t_eval.size and p.t_eval[self.sampled] <= t:
            self._take(y)
        self.stats.breaking_points, self.stats.passes = len(points.landed), stepper.passes
        sol = None
        if p.dense_output:
            sol = DdeSolution(
                p.history, pieces, p.t0, t, y, list(zip(points.times, points.orders, strict=True))
            )
        times = states = None
        if p.events is not None:
            times = [np.array([at for at, _ in hits]) for hits in self.hits]
            states = [np.array([value for _, value in hits]).reshape(-1, n) for hits in self.hits]
        return DdeResult(
            t=np.array(self.ts), y=np.array(self.ys).reshape(-1, n).T, sol=sol, t_events=times,
            y_events=states,
            t_jumps=np.array(self.jumps), breaking_points=np.array(points.landed,
            dtype=float).reshape(-1, 2),
            nfev=stepper.nfev, status=status, message=message, modes=stepper.modes,
            statistics=self.stats,
        )  # fmt: skip
