"""Random traffic against the theory of its processes."""

import numpy as np
import pytest
from scipy import stats

from fluidcc.numerics.traffic import on_off_pareto, poisson_counts

PEAK, ON, OFF, SHAPE = 5e6, 0.1, 0.3, 2.5


def test_on_off_starts_in_a_burst_as_often_as_it_is_in_one() -> None:
    n = 4000
    hits = sum(
        on_off_pareto(np.random.default_rng(i), 1e-3, PEAK, ON, OFF, SHAPE)[1][0] > 0
        for i in range(n)
    )
    assert stats.binomtest(hits, n, ON / (ON + OFF)).pvalue > 1e-4


def test_on_off_has_its_mean_rate() -> None:
    """Renewal-reward: the share of time in bursts, within five standard errors over cycles."""
    duration = 4000.0
    times, rates = on_off_pareto(np.random.default_rng(11), duration, PEAK, ON, OFF, SHAPE)
    mean = np.dot(np.diff(times, append=duration), rates) / duration
    p = ON / (ON + OFF)
    variance = [m**2 / (SHAPE * (SHAPE - 2)) for m in (ON, OFF)]  # of one Pareto period
    error = np.sqrt(((1 - p) ** 2 * variance[0] + p**2 * variance[1]) / (duration * (ON + OFF)))
    assert abs(mean / PEAK - p) < 5 * error


@pytest.mark.parametrize("shape", [1.25, 2.5])
def test_periods_are_pareto(shape: float) -> None:
    times, rates = on_off_pareto(np.random.default_rng(7), 2000.0, PEAK, ON, OFF, shape)
    assert set(np.unique(rates)) == {0.0, PEAK}
    assert np.all(np.diff(rates) != 0)
    periods = np.diff(times)
    for mean, busy in ((ON, True), (OFF, False)):
        sample = periods[(rates[:-1] > 0) == busy]
        t_min = mean * (shape - 1) / shape
        assert stats.kstest(sample, stats.pareto(shape, scale=t_min).cdf).pvalue > 1e-4


def test_poisson_counts_are_poisson() -> None:
    interval, mean_rate, packet = 0.01, 4e6, 8000.0
    times, rates = poisson_counts(np.random.default_rng(3), 100.0, interval, mean_rate, packet)
    assert times.size == 10_000
    assert times[1] == interval
    counts = rates * interval / packet
    assert counts == pytest.approx(np.round(counts), abs=1e-9)
    mean = mean_rate * interval / packet
    assert abs(counts.mean() - mean) < 5 * np.sqrt(mean / counts.size)
    assert abs(counts.var() / mean - 1) < 5 * np.sqrt(2 / counts.size)  # index of dispersion
