"""The sampled law (25): its monodromy against the recursion by hand, the continuous limit, and the engine."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.sampled import sampled_stability
from fluidcc.errors import InvalidInput, Unsupported

C = 3e6


def _net(eta: float = 0.4, count: int = 1) -> fc.Network:
    return fc.dumbbell([fc.LDCC(eta=eta)] * count, {"capacity": C}, rtt=0.08)


def _numbers(eta: float) -> tuple[float, float, float, float]:
    """RTT, a, v', k of one flow that fills the link: (19), (41), (42)."""
    r = 20e3 / (0.1 * C)
    trip = (0.04 * r + 0.1) / (1 - r) + 0.04
    return trip, eta * 20e3 / (C * trip), (0.1 - 20e3 / C) / trip, eta / trip


@pytest.mark.parametrize(("eta", "rounds"), [(0.4, 1), (0.4, 2), (1.0, 1), (2.2, 3)])
def test_with_a_period_that_divides_the_round_trip_it_is_a_short_recursion(eta: float, rounds: int) -> None:
    trip, a, slope, k = _numbers(eta)
    h = trip / rounds * (1 + 1e-12)  # so that the division by h is on the safe side
    found = sampled_stability(_net(eta), h)
    # x+ = x - h a x - k c (v' h avg(q) + q+ - q), q of rounds ticks ago, avg(q) = q + (q+ - q)/2; q+ - q = h x/c.
    n = rounds
    M = np.zeros((n + 2, n + 2))  # x[0], ..., x[-n], q as of x[0]
    M[0, 0] = 1 - h * a
    M[0, -1] -= k * C * slope * h
    M[0, 1 : n + 1] += k * slope * h * h  # q of n ticks ago
    M[0, n] -= k * slope * h * h / 2 + k * h
    M[1 : n + 1, :n] = np.eye(n)
    M[-1, -1], M[-1, 0] = 1, h / C
    wanted = np.abs(np.linalg.eigvals(M)).max()
    assert found.radius == pytest.approx(wanted, rel=1e-9)


def test_short_periods_give_the_continuous_law() -> None:
    net = fc.dumbbell([fc.LDCC(eta=0.9), fc.LDCC(eta=0.5)], {"capacity": C}, rtt=[0.05, 0.09])
    roots = linearize(net).roots(4)
    exact = -roots.real.max()
    errors = [abs(sampled_stability(net, h).decay_rate - exact) for h in (0.02, 0.01, 0.005)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02 * exact
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.2)  # of first order in the period


def test_the_engine_decays_as_the_multipliers_say() -> None:
    eta, trip = 0.8, _numbers(0.8)[0]
    h = 0.7 * trip
    found = sampled_stability(_net(eta), h)
    assert found.stable
    net = fc.dumbbell([fc.SampledLDCC(eta=eta, T_s=h)], {"capacity": C}, rtt=0.08)
    queue = trip - 0.08
    net = net.with_flow("flow1", initial={"x": C * (1 + 1e-4), "E": 0, "S": 0}).with_link(
        "bottleneck", initial={"q": queue}
    )
    ticks = np.arange(1, 60) * h
    run = fc.simulate(net, 60 * h, t_eval=ticks + 0.5 * h, rtol=1e-10, atol=1e-12, progress=False)
    gap = run.rate.values[:, 0] - C
    # The fourth multiplier has died out; the others are the roots of a recursion of three terms.
    late = gap[14:56]
    past = np.column_stack([late[2:-1], late[1:-2], late[:-3]])
    fitted = np.linalg.lstsq(past, late[3:], rcond=None)[0]
    roots = np.roots([1, *-fitted])
    for wanted in found.multipliers[:3]:
        assert np.abs(roots - wanted).min() < 2e-4


def test_long_periods_lose_stability_before_the_continuous_law_does() -> None:
    net = _net(0.9)
    trip = _numbers(0.9)[0]
    radius = [sampled_stability(net, r * trip).radius for r in (0.25, 1.0, 2.0, 4.0)]
    assert radius[0] < 1 < radius[-1]
    assert linearize(net).count_unstable().unstable == 0


def test_a_parking_lot_and_identical_flows_have_their_multipliers() -> None:
    lot = fc.parking_lot([fc.LDCC], [fc.LDCC, fc.LDCC], {"capacity": 2.5e6, "delay": 0.02})
    found = sampled_stability(lot, 0.1)
    assert found.stable
    alone, many = (
        sampled_stability(_net(), 0.05),
        sampled_stability(_net(count=3).with_link("bottleneck", capacity=9e6), 0.05),
    )
    assert alone.radius == pytest.approx(many.radius, rel=1e-9)  # at the same share a flow


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(InvalidInput, match="the period is 0"):
        sampled_stability(_net(), 0)
    net = fc.Network().link("l", fc.PenaltyLink, capacity=1e6, delay=0.01).flow("f", fc.PrimalPenalty, route=["l"])
    with pytest.raises(Unsupported, match="has the law PrimalPenalty"):
        sampled_stability(net, 0.1)
    with pytest.raises(Unsupported, match="answer by loss"):
        sampled_stability(fc.scenarios["ldcc_fig6"].net, 0.1)
