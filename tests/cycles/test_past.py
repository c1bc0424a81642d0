"""Cycles of laws that know their own past."""

import numpy as np
import pytest

import fluidcc as fc
from tests.analysis.test_past import timely


def test_patched_timely_of_two_flows_swings() -> None:
    """Its period is that between crossings in a run; its gradient, below 0 on average, marks it."""
    net, times = timely(2, 0.5), np.linspace(0.3, 0.4, 20_001)
    queue = fc.simulate(net, 0.4, t_eval=times, rtol=1e-10).queueing_delay.values[:, 0]
    swing = queue - queue.mean()
    up = np.flatnonzero((swing[:-1] < 0) & (swing[1:] >= 0))
    crossings = times[up] - swing[up] * (times[1] - times[0]) / (swing[up + 1] - swing[up])
    period = (crossings[-1] - crossings[0]) / (len(crossings) - 1)
    assert fc.limit_cycle(net).period == pytest.approx(period, rel=1e-6)
