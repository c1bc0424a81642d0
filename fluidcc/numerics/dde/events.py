"""What is watched during a step: events, switches, and delayed arguments that cross breaking
points.

Each is a function g(t, y, Z) whose sign is remembered from before the step, so that a zero exactly
on a mesh point is neither missed nor counted twice. Some only observe (ordinary events, found on
the dense output); the others end the step at their zero: terminal events, events with a jump,
switches, and crossings of breaking points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fluidcc.numerics.dde.history import Array, Delays, returned
from fluidcc.numerics.dde.step import Failure, Trial

__all__ = ["ROUNDING", "Crossing", "Found", "Monitor", "Watcher", "root"]

ROUNDING = 1e-9  # of the largest value seen: what a value at its zero may differ from zero


@dataclass(slots=True)
class Watcher:
    """A scalar function of (t, y) or (t, y, Z) whose zeros matter."""

    kind: str  # "event", "jump" or "switch"
    index: int  # among those of its kind
    function: Callable[..., float]
    delayed: bool
    direction: float = 0.0
    terminal: int = 0  # how many occurrences end the run; 0: none
    change: Callable[..., object] | None = None
    sign: int = 0  # before the step; 0: on the surface, not yet known
    size: float = 0.0  # the largest value seen
    switched: float = math.nan  # when its mode last changed
    fired: float = -math.inf  # when it last changed the state
    interval: float = math.inf  # and how long after the time before
    shrinking: int = 0  # how often in a row that became shorter
    since: float = math.inf  # the first of that row

    def counts(self, direction: int) -> bool:
        """Whether a zero in that direction is one of those asked for."""
        return self.direction == 0 or self.direction * direction > 0

    def stops(self, direction: int) -> bool:
        """Whether such a zero must be a mesh point."""
        if self.kind == "switch":
            return True
        return self.counts(direction) and (self.kind == "jump" or self.terminal > 0)

    def lingers(self, g: float, t: float) -> bool:
        """Whether g is still the zero at which its mode changed at t, or rounding around it."""
        return self.switched == t and abs(g) <= ROUNDING * self.size

    def accumulates(self, t: float) -> bool:
        """Note that it fired at t; whether its times seem to converge (Zeno)."""
        interval = t - self.fired
        if not interval < 0.99 * self.interval:
            self.shrinking, self.since = 0, t
        self.shrinking += 1
        self.fired, self.interval = t, interval
        return self.shrinking > 12 and interval < 1e-5 * (t - self.since)


@dataclass(slots=True)
class Crossing:
    """The zero of watcher i (or, beyond the watchers, of a lag) at u in the step, up (+1) or
    down (-1).
    """

    u: float
    i: int
    direction: int


@dataclass(slots=True)
class Found:
    """What a scan of a step found: where it must end (None: at its end) and why, and what it saw
    on the way.
    """

    u: float | None = None
    stops: list[Crossing] = field(default_factory=list)
    hits: list[Crossing] = field(default_factory=list)
    signs: list[tuple[float, int, int]] = field(default_factory=list)  # (u, watcher, new sign)


class Monitor:
    """Evaluates everything watched, and finds the zeros within a trial step."""

    def __init__(self, watchers: list[Watcher], delays: Delays, args: tuple[object, ...]) -> None:
        self.watchers, self.delays, self.args = watchers, delays, args
        self.needs_states = any(w.delayed for w in watchers)
        self.lags = delays.count if delays.function is not None else 0

    def at_mesh(self, t: float, y: Array) -> list[float]:
        """g of every watcher at a mesh point, on its later side."""
        z = self.delays.at_mesh(t, y) if self.needs_states else None
        return [self.value(w, t, y, z) for w in self.watchers]

    def values(self, trial: Trial, u: float) -> list[float]:
        """g of every watcher, then ``t - lag - lower end`` and ``t - lag - upper end`` of every
        lag's interval.
        """
        t, y = trial.time(u), trial.at(u)
        z = (
            self.delays.states(t, y, trial.t, trial.h, trial.y, trial.q)[0]
            if self.needs_states
            else None
        )
        g = [self.value(w, t, y, z) for w in self.watchers]
        if self.lags:
            for j, a in enumerate(self.delays.arguments(t, y)):
                if not math.isfinite(a):
                    lag = "NaN" if math.isnan(a) else "infinite"
                    raise Failure(
                        f"lag {j} is {lag} at t = {t:.10g}: it must be finite wherever the state "
                        f"is."
                    )
                low, high = self.delays.points.interval(self.delays.branch[j])
                g += [a - low, a - high]
        return g

    def value(self, w: Watcher, t: float, y: Array, z: Array | None) -> float:
        """g of one watcher."""
        raw = w.function(t, y, z, *self.args) if w.delayed else w.function(t, y, *self.args)
        g = float(returned(raw, 1, f"{w.kind} {w.index}", t)[0])
        if math.isnan(g):
            raise Failure(
                f"{w.kind} {w.index} returned NaN at t = {t:.10g}: it must be finite wherever the "
                f"state is."
            )
        return g

    def scan(self, trial: Trial, fresh: bool) -> Found:
        """Find the zeros in the trial step up to the first that must end it; `fresh`: it begins at
        a discontinuity.
        """
        found = Found()
        if not (self.watchers or self.lags):
            return found
        # before the step; a delayed argument is above the lower and below the upper end
        signs = [w.sign for w in self.watchers] + [1, -1] * self.lags
        count, before = len(self.watchers), 0.0
        tolerance = 64 * np.finfo(float).eps * max(abs(trial.t), trial.h)
        grid = [0.25, 0.5, 0.75, 1.0]
        if fresh or 0 in signs:  # what is zero at the start, but for rounding, soon shows its side
            grid = [1e-8, 1e-6, 1e-4, 1e-2, *grid]
        for u in grid:
            for i, g in enumerate(self.values(trial, u)):
                s = signs[i]
                if i < count:
                    self.watchers[i].size = max(self.watchers[i].size, abs(g))
                new = int(np.sign(g))
                if s == 0:
                    signs[i] = new
                    found.signs.append((u, i, new))
                elif i < count and self.watchers[i].lingers(g, trial.t):
                    continue
                elif (s * g <= 0) if i < count else (s * g < -tolerance):
                    at = self._zero(trial, i, s, before, u)
                    must_stop = i >= count or self.watchers[i].stops(-s)
                    (found.stops if must_stop else found.hits).append(Crossing(at, i, -s))
                    signs[i] = new
                    if i < count:
                        found.signs.append((at, i, new))
            if found.stops:
                break
            before = u
        if found.stops:  # what happens up to the first, and everything that coincides with it
            found.u = min(c.u for c in found.stops)
            same = found.u + 16 * np.finfo(float).eps * max(1.0, abs(trial.t) / trial.h)
            found.stops = [c for c in found.stops if c.u <= same]
            found.hits = [c for c in found.hits if c.u <= same]
            found.signs = [s for s in found.signs if s[0] <= same]
        found.hits.sort(key=lambda c: c.u)
        return found

    def _zero(self, trial: Trial, i: int, sign: int, low: float, high: float) -> float:
        return root(lambda u: sign * self.values(trial, u)[i], low, high)


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where f, positive at low and not at high, has fallen to zero: to rounding, on the far side.

    Bisection safeguarding inverse quadratic interpolation (T. R. Chandrupatla, Advances in
    Engineering Software 28 (1997) 145-149).
    """
    a, b = high, low
    fa, fb = f(a), f(b)
    if fb <= 0:
        return low
    c, fc, share = a, fa, 0.5
    for _ in range(100):
        x = a + share * (b - a)
        fx = f(x)
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, b, fc, fb = b, a, fb, fa
        a, fa = x, fx
        width = 2 * np.finfo(float).eps * max(abs(a), abs(b)) + 1e-300
        if fa == 0 or abs(b - a) <= width:
            break
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        share = 0.5
        if 1 - math.sqrt(1 - xi) < phi < math.sqrt(xi) if 0 <= xi <= 1 else False:
            share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (
                fc - fb
            )
        edge = 0.5 * width / abs(b - a)
        share = min(max(share, edge), 1 - edge)
    return a if fa <= 0 else b
