"""Integrators driven by inputs that are each held for a period of their own: the exact map and its
eigenvalues.

The states are integrals, as queues are, and every input changes at the multiples of its period
T_j::

    x_i'(t) = sum over paths of gain r_j(t - delay) r_j     = (keep r)_j + sum over measurements of
    gain x_i(k T_j - delay), or of its mean over a window before that

where all measurements at one instant are made before any input changes. The map is over the least
common multiple of the periods. Inputs are constant between ticks, so that integrals of them are
sums: nothing is approximated. An input without a path is a state of a controller, such as a filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.linear.ticking import common_period

Array = NDArray[np.float64]


class Path(NamedTuple):
    """From an input to a state, `delay` seconds late."""

    state: int
    source: int
    gain: float
    delay: float


class Measurement(NamedTuple):
    """What an input changes by at its ticks: a state `delay` seconds before, its mean over a
    `window` up to then.
    """

    source: int
    state: int
    gain: float
    delay: float
    window: float = 0.0


@dataclass(frozen=True)
class HeldLoop:
    """A loop of integrators and held inputs, see the module for the equations.

    Parameters
    ----------
    periods : sequence of float
        Of the inputs [s], positive.
    states : int
        How many states there are.
    keep : array_like, shape (inputs,) or (inputs, inputs)
        What an input keeps of itself at a tick, or of all as they were before.
    paths : sequence of Path
    measurements : sequence of Measurement
    free : array_like, shape (inputs, k), optional
        Directions in which inputs may differ for ever without any effect: their multiplier, 1, is
        left out.

    Raises
    ------
    InvalidInput
        A period that is not positive, a negative delay or window, or a direction that is not free.
    Unsupported
        If the periods have no common multiple within 100,000 of the shortest.
    """

    periods: Sequence[float]
    states: int
    keep: ArrayLike
    paths: Sequence[Path]
    measurements: Sequence[Measurement]
    free: ArrayLike | None = None

    def __post_init__(self) -> None:
        times = [t for m in self.measurements for t in (m.delay, m.window)] + [
            p.delay for p in self.paths
        ]
        if not all(0 < T < math.inf for T in self.periods) or not all(
            0 <= t < math.inf for t in times
        ):
            raise InvalidInput(
                f"periods {[*self.periods]} must be positive and no delay or window negative"
            )

    @cached_property
    def period(self) -> float:
        """The least common multiple of the periods [s]."""
        return common_period(self.periods)

    @cached_property
    def _back(self) -> list[int]:
        """How many values of each input's past the map goes by."""
        ahead = max((p.delay for p in self.paths), default=0.0)
        behind = max((m.delay + m.window for m in self.measurements), default=0.0)
        return [max(1, math.ceil((ahead + behind) / T - 1e-9)) for T in self.periods]

    @cached_property
    def monodromy(self) -> Array:
        """The map over one common period of (x, and of each input what it held, newest first),
        square.
        """
        rows = np.eye(self.states + sum(self._back))
        first = self.states + np.cumsum([0, *self._back])
        inputs = [
            _Held(T, rows[first[j] : first[j + 1]], round(self.period / T))
            for j, T in enumerate(self.periods)
        ]
        for time, now in _instants(inputs):
            new = [self._tick(j, time, inputs, rows) for j in now]
            for j, row in zip(now, new, strict=True):
                inputs[j].hold(row)
        ends = [self._integral(i, self.period, inputs, rows)[0] for i in range(self.states)]
        return np.vstack([*ends, *(u.newest(n) for u, n in zip(inputs, self._back, strict=True))])

    def _tick(self, j: int, time: float, inputs: list[_Held], rows: Array) -> Array:
        keep = np.asarray(self.keep, float)
        keep = keep if keep.ndim == 2 else np.diag(keep)
        new = sum(k * u.newest(1)[0] for k, u in zip(keep[j], inputs, strict=True) if k)
        for m in self.measurements:
            if m.source == j:
                value, area = self._integral(m.state, time - m.delay, inputs, rows)
                if m.window > 0:
                    value = (
                        area - self._integral(m.state, time - m.delay - m.window, inputs, rows)[1]
                    ) / m.window
                new = new + m.gain * value
        return np.broadcast_to(new, rows.shape[1])

    def _integral(
        self, i: int, time: float, inputs: list[_Held], rows: Array
    ) -> tuple[Array, Array]:
        """x_i at `time`, and its integral from 0 to there, by what they depend on."""
        value, area = rows[i], rows[i] * time
        for p in self.paths:
            if p.state == i:
                (first, second), (first0, second0) = (
                    inputs[p.source].integrals(t - p.delay) for t in (time, 0.0)
                )
                value = value + p.gain * (first - first0)
                area = area + p.gain * (second - second0 - time * first0)
        return value, area

    @property
    def undetermined(self) -> int:
        """How many free directions there are."""
        return 0 if self.free is None else int(np.shape(self.free)[1])

    @cached_property
    def multipliers(self) -> NDArray[np.complex128]:
        """Eigenvalues of the monodromy matrix by falling modulus, without those of the free
        directions.
        """
        from scipy.linalg import matrix_balance

        # delays stand beside bits a second
        M, (scale, _) = matrix_balance(self.monodromy, permute=False, separate=True)
        if self.free is not None and np.size(self.free):
            rest = _beside(self._for_ever(np.asarray(self.free, float)) / scale[:, None], M)
            M = rest.T @ M @ rest
        values = np.linalg.eigvals(M).astype(complex)
        return values[np.argsort(-np.abs(values), kind="stable")]

    def _for_ever(self, free: Array) -> Array:
        """Those directions as deviations of the whole past."""
        if free.ndim != 2 or len(free) != len(self.periods):
            raise InvalidInput(
                f"free has the shape {free.shape}; give a row for each of {len(self.periods)} "
                f"inputs"
            )
        return np.vstack(
            [np.zeros((self.states, free.shape[1])), np.repeat(free, self._back, axis=0)]
        )


class _Held:
    """One input: its values from tick to tick, its integral from time 0, and the integral of
    that, as rows.
    """

    def __init__(self, period: float, past: Array, ticks: int) -> None:
        self.period, self.back, self.ticks, self.now = period, len(past), ticks, 0
        size = (len(past) + ticks, past.shape[1])
        self.value, self.first, self.second = (
            np.zeros((n, size[1])) for n in (size[0], size[0] + 1, size[0] + 1)
        )
        self.value[: self.back] = past[::-1]
        for k in range(self.back, 0, -1):
            self.first[k - 1] = self.first[k] - self.value[k - 1] * period
            self.second[k - 1] = (
                self.second[k] - self.first[k - 1] * period - self.value[k - 1] * period**2 / 2
            )

    def hold(self, row: Array) -> None:
        """Change the value."""
        k, T = self.back + self.now, self.period
        self.value[k] = row
        self.first[k + 1] = self.first[k] + row * T
        self.second[k + 1] = self.second[k] + self.first[k] * T + row * T**2 / 2
        self.now += 1

    def newest(self, count: int) -> Array:
        """The last values, newest first."""
        end = self.back + self.now
        return self.value[end - count : end][::-1]

    def integrals(self, time: float) -> tuple[Array, Array]:
        """From 0 to `time`, of the value and of its integral."""
        k = min(max(math.floor(time / self.period + 1e-9), -self.back), self.ticks)
        rest, k = time - k * self.period, k + self.back
        if k == len(self.value):  # the end, where nothing is held any more
            return self.first[k], self.second[k]
        first = self.first[k] + self.value[k] * rest
        return first, self.second[k] + self.first[k] * rest + self.value[k] * (rest**2 / 2)


def _instants(inputs: list[_Held]) -> list[tuple[float, list[int]]]:
    """When inputs change within a common period, and which."""
    at: dict[Fraction, list[int]] = {}
    for j, u in enumerate(inputs):
        for k in range(u.ticks):
            at.setdefault(Fraction(k, u.ticks), []).append(j)
    whole = inputs[0].period * inputs[0].ticks
    return [(float(share) * whole, at[share]) for share in sorted(at)]


def _beside(free: Array, M: Array) -> Array:
    """An orthonormal basis of what is across the free directions, which the map must leave as
    they are.
    """
    if not np.allclose(M @ free, free, rtol=0, atol=1e-9 * max(1.0, float(np.abs(free).max()))):
        raise InvalidInput("a direction given as free is not: the loop answers it")
    return np.asarray(np.linalg.qr(free, mode="complete")[0][:, free.shape[1] :])
