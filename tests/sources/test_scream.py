"""SCReAM against its draft's pseudo-code typed by hand, packet by packet, and rests by algebra."""

from math import exp

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc

PACKET, T, MEDIA = 8000.0, 0.025, 1 / (1.2 * 1.02)


def packets(p: float, R: float) -> float:
    """Mean rate [packet/s] of 200 s, where packets are marked at random at the ratio p."""
    chance = np.random.default_rng(1)
    w, w_i, alpha, t = 100.0, 100.0, 0.02, 0.0
    counted = cut = marked_at = -1.0
    seen = marks = acked = 0
    marked, grew = False, True
    while t < 400:
        t, acked, seen = t + R / (w * MEDIA), acked + (t > 200), seen + 1
        hit = chance.random() < p
        marks, marked = marks + hit, marked or hit
        if t - counted >= min(0.01, R):
            share = marks / seen
            alpha += (share - alpha) / 8 if share >= alpha else -alpha / 128
            counted, seen, marks = t, 0, 0
        scl = max(0.1, min(1, (8 * (w - w_i) / w_i) ** 2))
        if hit:
            marked_at = t
        if marked and t - cut >= min(T, R):
            w_i, grew = (w, False) if grew else (w_i, grew)
            w = max(3, w * (1 - alpha / 2 / max(1, R / T) * max(0.25, scl)))
            cut, marked = t, False
        if not hit:
            post = min(1, (t - marked_at) / (100 * max(T, R)))
            w += 1 / w * min(1, R / T) * max(0.25, scl) * (1 + 0.02 * w * post * scl)
            grew = True
    return acked / 200


def rest(p: float, R: float, near: float) -> float:
    """Rate [packet/s] at which growth and cuts are equal, with alpha by the chance of no mark."""

    def gap(x: float) -> float:
        w = x * R / MEDIA
        none = (1 - p) ** (x * min(0.01, R))
        alpha = p / (1 - none + none / 16)
        post = 1 / (x * p * 100 * max(T, R))
        growth = (1 - p) / w * min(1, R / T) * 0.25 * (1 + 0.02 * w * post * 0.1)
        marks = x * p * min(T, R)
        return x * growth - w * alpha / 2 / R * near * marks / (marks + exp(-marks))

    return brentq(gap, 1, 1e6)


@pytest.mark.parametrize("target", ["3 ms", "20 ms"])
def test_rests_are_those_of_algebra(target: str) -> None:
    """Cuts are parts near the last window only below a quarter of 60 ms."""
    trips = np.array([4e-3, 12e-3, 40e-3, 120e-3])
    link = {"law": fc.PI2(target=target), "capacity": "100 Mbit/s", "buffer": "200 ms"}
    found = fc.equilibrium(fc.dumbbell([fc.SCReAM] * 4, link, rtt=trips))
    q, p = float(found.queueing_delay[0]), float(found.mark[0])
    for x, R in zip(found.rate.values / PACKET, trips + q, strict=True):
        assert x == pytest.approx(rest(p, R, 0.25 if q < 0.015 else 1), rel=1e-8)


@pytest.mark.parametrize(("p", "R"), [(0.02, 0.02), (0.01, 0.1), (0.03, 0.006)])
def test_rates_are_those_of_packets_marked_at_random(p: float, R: float) -> None:
    """Of which fewer than one is marked in a round trip."""
    found = packets(p, R)
    assert rest(p, R, 0.25) == pytest.approx(found, rel=0.1)
    assert found * R * p < 1


@pytest.mark.parametrize("flows", [1, 4])
def test_without_marks_it_rests_just_above_half_of_its_target(flows: int) -> None:
    """There alpha_v/2 takes what w grows by: 0.25 (1 + 0.02 w 0.1) of the share that it sends."""
    link = {"capacity": "100 Mbit/s", "buffer": "200 ms"}
    net = fc.dumbbell([fc.SCReAM] * flows, link, rtt="40 ms")
    late = fc.simulate(net, 100).sel(time=slice(80, None))
    for q in (fc.equilibrium(net).queueing_delay[0], late.queueing_delay.mean()):
        w = 12_500 / flows * (0.04 + float(q)) / MEDIA
        most = 2 * MEDIA * 0.25 * (1 + 0.002 * w) / w
        assert float(q) == pytest.approx(0.03 * (1 + most), rel=1e-3)


def test_a_newcomer_comes_to_its_share_as_fast_as_the_rightmost_root_says() -> None:
    link = {"law": fc.RampMark(K_min="1 ms", K_max="5 ms", p_max=0.2), "capacity": "50 Mbit/s"}
    flows = [{"law": fc.SCReAM, "start": k} for k in (0, 1)]
    net = fc.dumbbell(flows, link | {"buffer": "50 ms"}, rtt="40 ms")
    run, rest_, report = fc.simulate(net, 90), fc.equilibrium(net), fc.stability(net)
    left = run.w.sel(time=[60, 90], method="nearest")[:, 1] - rest_.states["flow2"]["w"]
    assert report.stable
    assert np.log(left[0] / left[1]) / 30 == pytest.approx(report.decay_rate, rel=1e-3)
