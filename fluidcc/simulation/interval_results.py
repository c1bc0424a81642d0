"""What the interval model of binary feedback gives: a run, and the orbit it ends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fluidcc.simulation.interval_model import IntervalModel

__all__ = ["Orbit", "Synchronized"]


@dataclass(frozen=True)
class Orbit:
    """The attractor: a periodic orbit. Its sums and means are over one period, Fractions if it was found exactly.

    Attributes
    ----------
    period : int
        Intervals.
    rates : ndarray, shape (period, flows)
        Rates along it [as the capacity].
    sent, lost, carried : float or Fraction
        What all flows send, what exceeds the capacity, and what does not [capacity times intervals].
    loss, efficiency : float or Fraction
        Lost over sent, and carried over what the link could carry [1].
    overloads : int
        Intervals over capacity.
    """

    period: int
    rates: NDArray[Any]
    sent: Any
    lost: Any
    carried: Any
    overloads: int
    capacity: Any

    @property
    def loss(self) -> Any:
        return self.lost / self.sent

    @property
    def efficiency(self) -> Any:
        return self.carried / (self.capacity * self.period)

    @property
    def fairness(self) -> float:
        """Lowest over highest rate (9) [1], at its worst along the orbit."""
        return float(np.min(self.rates.min(axis=1) / self.rates.max(axis=1)))

    def __repr__(self) -> str:
        return (
            f"Orbit(period={self.period}, overloads={self.overloads}, loss={float(self.loss):.6g}, "
            f"efficiency={float(self.efficiency):.6g}, fairness={self.fairness:.6g})"
        )


@dataclass(frozen=True)
class Synchronized:
    """A run of the interval model, and the orbit it ends on.

    Attributes
    ----------
    rates : ndarray, shape (intervals, flows)
        Rate of a flow of each class in each interval; Fractions if `exact`. With ``keep=False`` one row, the rates
        after the last interval.
    capacity : float or Fraction
    n : ndarray of int, shape (flows,)
        Flows of each class.
    sent, lost, carried : float or Fraction
        Sums over the intervals [capacity times intervals].
    overloads, decreases : int
        Intervals over capacity, and those in which a flow went down.
    intervals : int
        How many were run.
    """

    rates: NDArray[Any]
    capacity: Any
    n: NDArray[np.int64]
    sent: Any
    lost: Any
    carried: Any
    overloads: int
    decreases: int
    intervals: int
    _model: IntervalModel = field(repr=False)

    @property
    def loss(self) -> Any:
        """Lost over sent [1]; nan of no intervals."""
        return self.lost / self.sent if self.intervals else float("nan")

    @property
    def efficiency(self) -> Any:
        """Carried over what the link could carry [1]; nan of no intervals."""
        return self.carried / (self.capacity * self.intervals) if self.intervals else float("nan")

    @cached_property
    def fairness(self) -> NDArray[np.float64]:
        """Lowest over highest rate (9) [1] in each interval."""
        return np.array(self.rates.min(axis=1) / self.rates.max(axis=1), dtype=float)

    @cached_property
    def orbit(self) -> Orbit:
        """The periodic orbit that it ends on, from the same initial rates.

        Raises
        ------
        SolverError
            If none was found: with k + l = 0 rates may wander for ever.
        Unsupported
            If feedback is drawn at random, or exact arithmetic has no cycle for these powers.
        """
        return self._model.orbit()
