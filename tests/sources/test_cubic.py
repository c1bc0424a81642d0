"""CUBIC against RFC 9438: its cube, its cycle, its share beside TCP."""

from typing import Any

import numpy as np
import pytest
from scipy.signal import ss2tf
from sympy import symbols

import fluidcc as fc
from fluidcc.laws import extended
from tests.sources.test_clock import PACKET

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


ratio = symbols("ratio", nonnegative=True)
LOSSY = extended(
    fc.DropTail, "Lossy", out={"drop": ratio}, params={ratio: 0}, units={ratio: "1"},
    about="A queue behind a channel that loses packets at random.",
)  # fmt: skip


def many(p: float, trip: float, laps: int, flows: int = 2000) -> Any:
    """Mean window of single flows by RFC 9438, round trip for round trip, from 10 packets on."""
    rng = np.random.default_rng(1)
    w = np.full(flows, 10.0)
    top, est, prior, since = w.copy(), w.copy(), w.copy(), np.zeros(flows)
    alpha, means = 3 * (1 - BETA) / (1 + BETA), []
    for _ in range(laps):
        means.append(w.mean())
        since = since + trip
        target = np.clip(C * since**3 + top, w, 1.5 * w)
        est_on = est + np.where(est >= prior, 1, alpha)
        cut = rng.random(flows) < 1 - (1 - p) ** w
        peak = np.where(w < top, (1 + BETA) / 2, 1) * w
        since = np.where(cut, -np.cbrt((peak - BETA * w) / C), since)
        top, prior = np.where(cut, peak, top), np.where(cut, w, prior)
        w = np.where(cut, BETA * w, np.maximum(target, est_on))
        est = np.where(cut, w, est_on)
    return np.array(means)


def over_losses(p: float, trip: float) -> fc.Network:
    link = {"law": LOSSY(ratio=p), "capacity": "100 Gbit/s", "buffer": "1 s"}
    return fc.dumbbell([fc.CUBICFluid], link, rtt=trip)


@pytest.mark.parametrize(
    ("p", "trip"), [(1e-5, 0.2), (1e-4, 0.1), (3e-5, 0.03), (1e-3, 0.1), (1e-3, 0.02), (1e-2, 0.2)]
)
def test_the_fluid_rests_at_the_mean_of_single_flows(p: float, trip: float) -> None:
    """Where the cube leads, where W_est does, and between."""
    own = float(fc.equilibrium(over_losses(p, trip)).states["flow1"]["w"])
    assert own == pytest.approx(many(p, trip, 2500)[1000:].mean(), rel=0.07)


def test_the_fluid_climbs_as_single_flows_do_in_the_mean() -> None:
    """From 10 packets past the peak of the first epoch to rest."""
    found, k = many(1e-4, 0.1, 600), np.arange(20, 600, 20)
    run = fc.simulate(over_losses(1e-4, 0.1), 60, t_eval=0.1 * k)
    np.testing.assert_allclose(run.w.values[:, 0], found[k], rtol=0.25)


def test_margins_of_the_fluid_are_those_by_hand() -> None:
    """Behind PI, acknowledgements come at x: w, T and V of the law's text, differentiated."""
    N, rate, D, Q = 4, 10_000.0, 0.1, 0.05
    link = {"law": fc.PI(a=0.014, b=0.0072), "capacity": rate * PACKET, "buffer": "1 s"}
    report = fc.stability(fc.dumbbell([fc.CUBICFluid] * N, link, rtt=D))
    own, p = report.equilibrium.states["flow1"], float(report.equilibrium.mark[0])
    w, x = rate / N * (D + Q), rate / N
    cuts = x / w * (1 - (1 - p) ** w)
    by_w, by_p = -x * (1 - p) ** w * np.log(1 - p) / w - cuts / w, x * (1 - p) ** (w - 1)
    k, fell = np.cbrt(w / C), 0.3 * 1.275
    T, slope = 1 / cuts - 0.649 * k, k / (3 * w)
    V = (T**2 + 2 * 0.6155 * T * k + 0.3962 * k**2) / 1.467
    assert [own["w"], own["T"], own["V"]] == pytest.approx([w, T, V], rel=1e-6)
    np.testing.assert_allclose(3 * C * (T**2 + V), fell * w * cuts, rtol=1e-6)
    A = [
        [-fell * (cuts + w * by_w), 6 * C * T, 3 * C],
        [-0.649 * slope * cuts - by_w / cuts, -cuts, 0],
        [cuts * slope * 2 * (0.3962 * k + 0.6155 * T), cuts * 2 * (0.6155 * k + T), -1.467 * cuts],
    ]
    up, down = ss2tf(A, [[-fell * w * by_p], [-by_p / cuts], [0]], [[-N / rate, 0, 0]], [[0]])
    window = fc.DelayLTI.transfer(up[0][1:], down, D + Q)  # from marks to minus the queue [s]
    found = (window * fc.DelayLTI.transfer([0.014, 0.0072], [1, 0])).margins()
    assert report.gain_margin == pytest.approx(found.gain, rel=0.01)
    assert report.phase_margin == pytest.approx(found.phase, rel=0.02, abs=0.1)
