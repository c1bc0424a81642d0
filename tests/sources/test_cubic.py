"""CUBIC against RFC 9438: its cube, its cycle, its share beside TCP."""

import numpy as np
import pytest

import fluidcc as fc

C, BETA = 0.4, 0.7
BUFFER = {"capacity": "100 Mbit/s", "buffer": "500 packets"}


def test_between_cuts_the_window_is_the_cube() -> None:
    """Growth by acknowledgements is late by a round trip, which the lead makes good."""
    net = fc.dumbbell([fc.CUBIC], BUFFER, rtt="100 ms")
    run = fc.simulate(net, 100, t_eval=np.linspace(0, 100, 10_001))
    w = run.CUBIC_w.values[:, 0]
    cuts = np.flatnonzero(run.CUBIC_T.values[1:, 0] < run.CUBIC_T.values[:-1, 0])
    assert len(cuts) >= 6
    for before, after, nxt in zip(cuts[1:], cuts[1:] + 1, cuts[2:], strict=False):
        last, fell = w[before], w[after]
        assert fell == pytest.approx(BETA * last, rel=2e-3)
        top = float(run.CUBIC_W_max.values[after, 0])
        began = run.time.values[after]
        k = np.cbrt((top - fell) / C)
        on = slice(after + 20, nxt)
        cube = C * (run.time.values[on] - began - k) ** 3 + top
        np.testing.assert_allclose(w[on], cube, rtol=3e-3)


def epoch(peak: float, top: float) -> tuple[float, float, float]:
    """From one cut to the next: how long, the window then, and the W_max of the epoch; the loss is
    heard of a round trip after the buffer is full.
    """
    full, trip = 1250 + 500, 0.14
    top = peak if peak >= top else (1 + BETA) / 2 * peak
    t = np.cbrt((full - top) / C) + trip
    return t + np.cbrt((top - BETA * peak) / C), C * t**3 + top, top


def test_its_cycle_is_two_epochs() -> None:
    """Fast convergence: a window that has not come back aims lower, and then passes that."""
    peak, top, spans = 1750.0, 1800.0, [0.0]  # has not come back
    for _ in range(40):
        span, peak, top = epoch(peak, top)
        spans.append(span)
    cycle = fc.limit_cycle(fc.dumbbell([fc.CUBIC], BUFFER, rtt="100 ms"))
    assert cycle.period == pytest.approx(sum(spans[-2:]), rel=2e-3)
    assert float(cycle.mean.utilisation[0]) > 0.9999


def test_on_short_paths_it_is_as_tcp_and_on_long_ones_faster() -> None:
    link = {"capacity": "20 Mbit/s", "buffer": "100 packets"}
    shares = []
    for rtt in ("10 ms", "100 ms"):
        run = fc.simulate(fc.dumbbell([fc.CUBIC, fc.AIMD], link, rtt=rtt), 150, samples=3001)
        own, other = run.rate.values[1000:].mean(0)
        shares.append(own / other)
    assert shares[0] == pytest.approx(1, abs=0.06)
    assert shares[1] > 2
