"""The sampled law (25): its monodromy by hand, the continuous limit, and the engine."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Min

import fluidcc as fc
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.sampled import SampledStability
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.symbols import plain
from tests.papers.sampled_ldcc import held_ldcc

C = 3e6


def _net(eta: float = 0.4, count: int = 1) -> fc.Network:
    return fc.dumbbell([fc.LDCC(eta=eta)] * count, {"capacity": C}, rtt=0.08)


def _numbers(eta: float) -> tuple[float, float, float, float]:
    """RTT, a, v', k of one flow that fills the link: (19), (41), (42)."""
    r = 20e3 / (0.1 * C)
    trip = (0.04 * r + 0.1) / (1 - r) + 0.04
    return trip, eta * 20e3 / (C * trip), (0.1 - 20e3 / C) / trip, eta / trip


@pytest.mark.parametrize(("eta", "trips"), [(0.4, 1.0), (2.2, 3.0), (0.7, 0.35), (0.9, 2.6)])
def test_one_flow_is_a_short_recursion(eta: float, trips: float) -> None:
    trip, a, slope, k = _numbers(eta)
    h = trip / trips
    found = fc.sampled_stability(_net(eta), h)
    # x+ = x - h a x - k c (v' int q + the change of q) of the period that ended m + f periods ago.
    m = int(trips + 1e-9)
    f = max(trips - m, 0.0)
    # x[0], ..., x[-m - 1], q at the tick; a period at x[-j] brings h x[-j]/c.
    M = np.zeros((m + 3, m + 3))
    area, rise = np.zeros((2, m + 3))
    area[-1] = h  # of q now, less what came since
    area[1 : m + 1] -= h * h / C
    area[m + 1] -= h * h / C * f * f / 2
    area[m] += h * h / C * (1 - f) ** 2 / 2
    rise[m + 1], rise[m] = h / C * f, h / C * (1 - f)
    M[0, 0] = 1 - h * a
    M[0] -= k * C * (slope * area + rise)
    M[1 : m + 2, : m + 1] = np.eye(m + 1)
    M[-1, -1], M[-1, 0] = 1, h / C
    wanted = np.linalg.eigvals(M)
    assert found.radius == pytest.approx(np.abs(wanted).max(), rel=1e-9)
    for one in wanted[np.abs(wanted) > 1e-2]:
        assert np.abs(found.multipliers - one).min() < 1e-8


def test_short_periods_give_the_continuous_law() -> None:
    net = fc.dumbbell([fc.LDCC(eta=0.9), fc.LDCC(eta=0.5)], {"capacity": C}, rtt=[0.05, 0.09])
    roots = linearize(net).roots(4)
    exact = -roots.real.max()
    errors = [abs(fc.sampled_stability(net, h).decay_rate - exact) for h in (0.02, 0.01, 0.005)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02 * exact
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.2)  # of first order in the period


def _lot() -> fc.Network:
    cross = [{"b": {"law": fc.LDCC(eta=0.5), "access_delay": 0.003}}, {"c": fc.LDCC(eta=0.7)}]
    links = [{"capacity": 2.5e6, "delay": 0.025}, {"capacity": 2.3e6, "delay": 0.015}]
    return fc.parking_lot({"a": fc.LDCC(eta=0.9)}, cross, links)


def _ticking(flow: Any, T: float) -> fc.Source:
    return fc.SampledLDCC(**{plain(v): value for v, value in flow.law.params.items()}, T_s=T)


@pytest.mark.parametrize("delays", ["fifo", "frozen"])
def test_flows_that_tick_at_different_periods_run_as_the_multipliers_say(delays: str) -> None:
    net = _lot()
    periods = {"a": 0.06, "b": 0.09, "c": 0.12}
    sampled = net
    for name, T in periods.items():
        sampled = sampled.with_flow(name, law=_ticking(net.flows[name], T), initial=None)
    found = fc.sampled_stability(sampled, delays=delays)
    assert found.period == pytest.approx(0.36)
    _as_the_multipliers_say(net, periods, found, 7, 25, delays)
    if delays == "frozen":
        _as_the_held_loop(found, held_ldcc(sampled))


def _as_the_held_loop(found: Any, exact: Any) -> None:
    """As many above 0.02, each to 1e-8."""
    for one, other in ((found.multipliers, exact), (exact, found.multipliers)):
        for value in one[np.abs(one) > 0.02]:
            assert np.abs(other - value).min() < 1e-8


@pytest.mark.parametrize(("count", "period"), [(1, 0.31), (3, 0.05), (1, 0.004)])
def test_flows_of_two_classes_have_the_multipliers_of_the_held_loop(
    count: int, period: float
) -> None:
    laws = [fc.LDCC(eta=0.9)] * count + [fc.LDCC(eta=0.5)] * count
    net = fc.dumbbell(laws, {"capacity": C}, rtt=[0.05] * count + [0.09] * count)
    found, exact = fc.sampled_stability(net, period), held_ldcc(net, period)
    assert found.radius == pytest.approx(np.abs(exact[0]), rel=1e-9)
    known = len(found.multipliers)
    assert known >= 3
    for value in found.multipliers:
        assert np.abs(exact - value).min() < 1e-8
    np.testing.assert_allclose(np.abs(found.multipliers), np.abs(exact[:known]), atol=1e-7)


def _as_the_multipliers_say(
    net: fc.Network,
    periods: dict[str, float],
    found: Any,
    late: int,
    end: int,
    delays: str = "frozen",
) -> None:
    rest, h = fc.equilibrium(net), found.period
    assert found.stable
    odd: Any = 0.0
    for sign in (1, -1):
        start = net
        for i, (name, flow) in enumerate(net.flows.items()):
            law = _ticking(flow, periods[name])
            x = rest.states[name]["x"] * (1 + sign * 1e-4 * (i + 1))
            start = start.with_flow(name, law=law, initial={"x": x, "E": 0, "S": 0})
        for name in net.links:
            start = start.with_link(name, initial=rest.states[name])
        held = dict(zip(net.links, rest.queueing_delay.values, strict=True))
        times = (np.arange(late, end) - 0.01) * h
        how: Any = {"rtol": 1e-11, "atol": 1e-13, "engine": "array", "delays": delays}
        how |= {"frozen_at": held} if delays == "frozen" else {}
        run = fc.simulate(start, end * h, t_eval=times, **how)
        odd = odd + sign * run.rate.values

    some = found.multipliers[np.abs(found.multipliers) > 0.2]
    assert left(odd, some) < 1e-6
    assert left(odd, some * 1.001) > 1e-4


@pytest.mark.parametrize(("count", "trips"), [(3, 1.0), (2, 3.5)])
def test_a_limit_cycle_of_one_tick_has_the_multipliers_of_the_period_by_which_the_engine_decays(
    count: int, trips: float
) -> None:
    """A rest of sampled flows is a cycle of one tick; three flows are those of Appendix A.2."""
    cap, rtt = (3e6, 0.05) if count == 3 else (3e6, 0.08)
    net = fc.dumbbell([fc.LDCC(eta=0.4)] * count, {"capacity": cap}, rtt=rtt)
    h = float(fc.equilibrium(net).rtt[0]) / trips
    laws = [fc.SampledLDCC(eta=0.4, T_s=h)] * count
    cycle = fc.limit_cycle(fc.dumbbell(laws, {"capacity": cap}, rtt=rtt), tol=1e-6, progress=False)
    found = fc.sampled_stability(net, h)
    assert cycle.period == pytest.approx(h, rel=1e-9)
    some = found.multipliers[np.abs(found.multipliers) > 0.3]
    assert len(cycle.multipliers) >= len(some) >= 3
    for one in some:
        alike = [int(np.sum(np.abs(every - one) < 1e-3)) for every in (cycle.multipliers, some)]
        assert alike[0] == alike[1], one
    _as_the_multipliers_say(net, dict.fromkeys(net.flows, h), found, 20, 60)


def left(odd: Any, multipliers: Any) -> float:
    """What the powers of these leave of a sequence, relative to its largest."""
    powers = multipliers ** np.arange(len(odd))[:, None]
    fitted = powers @ np.linalg.lstsq(powers, odd.astype(complex))[0]
    return float(np.abs(odd - fitted).max() / np.abs(odd).max())


def test_a_link_that_marks_everything_stops_the_flow_at_its_next_tick() -> None:
    """At a mark ratio of one the signal of (23) is one over zero: a packet is received at least."""
    (q,) = fc.DropTail.states
    out = {**fc.DropTail.out, "mark": Min(1, q / 0.02)}
    marking = replace(fc.DropTail, name="Marking", out=out, claims={})
    flow = {"law": fc.SampledLDCC(T_s=0.1, w=3e5), "initial": {"x": 2e6}}
    net = fc.dumbbell([flow], {"law": marking, "capacity": 1e6, "delay": 0.02})
    run = fc.simulate(net, 3.0, t_eval=np.arange(0.05, 3, 0.1), progress=False)
    rate, loss = run.rate.values[:, 0], run.mark.values[:, 0]
    assert loss.max() == pytest.approx(1)
    stopped = np.flatnonzero(loss[:-1] > 0.9)
    assert len(stopped) > 2
    assert np.all(rate[stopped] == 0)
    assert np.all(rate[stopped + 1] > 1e5)  # from 0 it starts again, as w x/x is w


def test_identical_flows_have_multipliers_of_one_with_their_share_and_of_differences() -> None:
    """Of (25) without loss and slope x keeps 1 - eta (w/x) T_s/RTT of a difference a tick."""
    for period in (0.05, 0.15625):
        nets = _net(), _net(count=3).with_link("bottleneck", capacity=9e6)
        alone, many = (fc.sampled_stability(net, period) for net in nets)
        rest = fc.equilibrium(_net())
        kept = 1 - 0.4 * 20e3 / float(rest.rate[0]) * period / float(rest.rtt[0])
        expected = np.append(alone.multipliers, [kept, kept])
        expected = expected[np.argsort(-np.abs(expected), kind="stable")]
        np.testing.assert_allclose(many.multipliers, expected, rtol=1e-9)
        assert many.decay_rate == pytest.approx(-np.log(kept) / period)
        assert alone.decay_rate > 3 * many.decay_rate


@pytest.mark.parametrize(
    ("net", "period", "says"),
    [
        (_net(), 0, "the period is 0"),
        (fc.dumbbell([fc.SampledLDCC], {"capacity": C}, rtt=0.05), -1, "the period is -1"),
        (_net(), None, r"flow 'flow1' \(LDCC\) is not sampled; give one"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_said(net: fc.Network, period: Any, says: str) -> None:
    with pytest.raises((InvalidInput, Unsupported), match=says):
        fc.sampled_stability(net, period)


def test_a_network_of_sampled_laws_brings_its_own_period() -> None:
    laws = [fc.SampledLDCC(eta=eta, T_s=0.1) for eta in (0.4, 0.7)]
    net = fc.dumbbell(laws, {"capacity": C}, rtt=0.08)
    same = fc.dumbbell([fc.LDCC(eta=eta) for eta in (0.4, 0.7)], {"capacity": C}, rtt=0.08)
    # A multiplier of 0 that is double is known to the root of rounding only.
    wanted = fc.sampled_stability(same, "100 ms").multipliers
    assert fc.sampled_stability(net).multipliers == pytest.approx(wanted, abs=1e-8)


def test_a_multiplier_on_the_unit_circle_is_not_stable() -> None:
    assert not SampledStability(0.02, np.array([-1, 0.6], complex)).stable
