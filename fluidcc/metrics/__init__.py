"""Figures of merit of a result: fairness, utilisation, settling, windowed means, loss, shares of
queues; and its jumps and ticks.

Each takes a DataArray of a simulation or an equilibrium, or a plain array, and returns the same
kind. Time averages integrate the piecewise-linear curve through the samples exactly; the last
windows and settling times are found on it.
"""

from __future__ import annotations

from fluidcc.metrics.averages import (
    loss,
    mean,
    queue_shares,
    settling_time,
    utilisation,
    windowed_mean,
)
from fluidcc.metrics.fairness import is_max_min_fair, jain, max_min_rates, over_others
from fluidcc.metrics.instants import breaks, jumps, ticks

__all__ = [
    "breaks", "is_max_min_fair", "jain", "jumps", "loss", "max_min_rates", "mean", "over_others",
    "queue_shares", "settling_time", "ticks", "utilisation", "windowed_mean",
]  # fmt: skip
