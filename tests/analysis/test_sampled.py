"""The sampled law (25): its monodromy against the recursion by hand, the continuous limit, and
the engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Min

import fluidcc as fc
from fluidcc.analysis.linearize import linearize
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.symbols import plain

C = 3e6


def _net(eta: float = 0.4, count: int = 1) -> fc.Network:
    return fc.dumbbell([fc.LDCC(eta=eta)] * count, {"capacity": C}, rtt=0.08)


def _numbers(eta: float) -> tuple[float, float, float, float]:
    """RTT, a, v', k of one flow that fills the link: (19), (41), (42)."""
    r = 20e3 / (0.1 * C)
    trip = (0.04 * r + 0.1) / (1 - r) + 0.04
    return trip, eta * 20e3 / (C * trip), (0.1 - 20e3 / C) / trip, eta / trip


@pytest.mark.parametrize(
    ("eta", "trips"), [(0.4, 1.0), (0.4, 2.0), (1.0, 1.0), (2.2, 3.0), (0.7, 0.35), (0.9, 2.6)]
)
def test_one_flow_is_a_short_recursion(eta: float, trips: float) -> None:
    trip, a, slope, k = _numbers(eta)
    h = trip / trips
    found = fc.sampled_stability(_net(eta), h)
    # x+ = x - h a x - k c (v' int q + the change of q), of the period that ended a round trip, m +
    # f periods, ago.
    m = int(trips + 1e-9)
    f = max(trips - m, 0.0)
    M = np.zeros(
        (m + 3, m + 3)
    )  # x[0], ..., x[-m - 1], q at the tick; a period at x[-j] brings h x[-j]/c
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


def test_the_engine_decays_as_the_multipliers_say() -> None:
    eta, trip = 0.8, _numbers(0.8)[0]
    h = 0.7 * trip
    found = fc.sampled_stability(_net(eta), h)
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


def _two() -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=C, delay=0.03)
    net.flow("a", fc.LDCC(eta=1.2), route=["l"])
    return net.flow("b", fc.LDCC(eta=0.9, beta=0.12), route=["l"], access_delay=0.011)


def _lot() -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=2.5e6, delay=0.025)
    net.link("m", fc.DropTail, capacity=2.3e6, delay=0.015)
    net.flow("a", fc.LDCC(eta=0.9), route=["l", "m"]).flow(
        "b", fc.LDCC(eta=0.5), route=["l"], access_delay=0.003
    )
    return net.flow("c", fc.LDCC(eta=0.7), route=["m"])


@pytest.mark.parametrize(("make", "h"), [(_two, 0.08), (_lot, 0.11)])
def test_several_flows_and_links_run_as_the_multipliers_say(make: Any, h: float) -> None:
    """Once those below 0.2 have died out, the odd part of two runs obeys the recursion of the
    other multipliers.
    """
    net = make()
    periods = dict.fromkeys(net.flows, h)
    _as_the_multipliers_say(net, periods, fc.sampled_stability(net, h), 20, 60)


def test_flows_that_tick_at_different_periods_run_as_the_multipliers_say() -> None:
    net = _lot()
    periods = {"a": 0.06, "b": 0.09, "c": 0.12}
    sampled = net
    for name, T in periods.items():
        own = {plain(v): value for v, value in net.flows[name].law.params.items()}
        sampled = sampled.with_flow(name, law=fc.SampledLDCC(**own, T_s=T), initial=None)
    found = fc.sampled_stability(sampled)
    assert found.period == pytest.approx(0.36)
    _as_the_multipliers_say(net, periods, found, 7, 25)


def _as_the_multipliers_say(
    net: fc.Network, periods: dict[str, float], found: Any, late: int, end: int
) -> None:
    rest, h = fc.equilibrium(net), found.period
    assert found.stable
    odd: Any = 0.0
    for sign in (1, -1):
        start = net
        for i, (name, flow) in enumerate(net.flows.items()):
            law = fc.SampledLDCC(
                **{plain(v): value for v, value in flow.law.params.items()}, T_s=periods[name]
            )
            x = rest.states[name]["x"] * (1 + sign * 1e-4 * (i + 1))
            start = start.with_flow(name, law=law, initial={"x": x, "E": 0, "S": 0})
        for name in net.links:
            start = start.with_link(name, initial=rest.states[name])
        held = dict(zip(net.links, rest.queueing_delay.values, strict=True))
        run = fc.simulate(start, end * h, t_eval=(np.arange(late, end) - 0.01) * h, rtol=1e-11,
        atol=1e-13,
                          engine="array", delays="frozen", frozen_at=held,
                          progress=False)  # fmt: skip
        odd = odd + sign * run.rate.values

    some = found.multipliers[np.abs(found.multipliers) > 0.2]
    assert _left(odd, some) < 1e-6
    assert _left(odd, some * 1.001) > 1e-4


@pytest.mark.parametrize(("count", "trips"), [(3, 1.0), (1, 2.0), (2, 3.5)])
def test_a_limit_cycle_of_one_tick_has_the_multipliers_of_the_period_by_which_the_engine_decays(
    count: int, trips: float
) -> None:
    """A rest of sampled flows is a cycle of one tick; with three flows the network is that of
    Appendix A.2.
    """
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


def _left(odd: Any, multipliers: Any) -> float:
    """What the powers of these leave of a sequence, relative to its largest."""
    powers = multipliers ** np.arange(len(odd))[:, None]
    return float(
        np.abs(odd - powers @ np.linalg.lstsq(powers, odd.astype(complex))[0]).max()
        / np.abs(odd).max()
    )


def test_a_link_that_marks_everything_stops_the_flow_at_its_next_tick() -> None:
    """At a mark ratio of one the signal of (23) is one over zero: what is received is one packet
    at least.
    """
    q = fc.DropTail.queue
    assert q is not None
    marking = replace(
        fc.DropTail, name="Marking", out={**fc.DropTail.out, "mark": Min(1, q / 0.02)}, claims={}
    )
    net = fc.Network().link("l", marking, capacity=1e6, delay=0.02)
    net.flow("a", fc.SampledLDCC(T_s=0.1, w=3e5), route=["l"], initial={"x": 2e6})
    run = fc.simulate(net, 3.0, t_eval=np.arange(0.05, 3, 0.1), progress=False)
    rate, loss = run.rate.values[:, 0], run.loss.values[:, 0]
    assert loss.max() == pytest.approx(1)
    stopped = np.flatnonzero(loss[:-1] > 0.9)
    assert len(stopped) > 2
    assert np.all(rate[stopped] == 0)
    assert np.all(rate[stopped + 1] > 1e5)  # from 0 it starts again, as w x/x is w


def test_long_periods_lose_stability_before_the_continuous_law_does() -> None:
    net = _net(0.9)
    trip = _numbers(0.9)[0]
    radius = [fc.sampled_stability(net, r * trip).radius for r in (0.25, 1.0, 2.0, 4.0)]
    assert radius[0] < 1 < radius[-1]
    assert linearize(net).count_unstable().unstable == 0


def test_a_parking_lot_has_its_multipliers() -> None:
    lot = fc.parking_lot([fc.LDCC], [fc.LDCC, fc.LDCC], {"capacity": 2.5e6, "delay": 0.02})
    assert fc.sampled_stability(lot, 0.1).stable


def test_identical_flows_have_multipliers_of_one_with_their_share_and_of_differences() -> None:
    """Of (25) with the loss and the slope at zero x keeps 1 - eta (w/x) T_s/RTT of a difference
    at each tick.
    """
    for period in (0.05, 0.15625):
        alone, many = (
            fc.sampled_stability(_net(), period),
            fc.sampled_stability(_net(count=3).with_link("bottleneck", capacity=9e6), period),
        )
        rest = fc.equilibrium(_net())
        kept = 1 - 0.4 * 20e3 / float(rest.rate[0]) * period / float(rest.rtt[0])
        expected = np.append(alone.multipliers, [kept, kept])
        np.testing.assert_allclose(
            many.multipliers, expected[np.argsort(-np.abs(expected), kind="stable")], rtol=1e-9
        )
        assert many.decay_rate == pytest.approx(-np.log(kept) / period)
        assert alone.decay_rate > 3 * many.decay_rate


def test_differences_among_identical_sampled_flows_fade_as_their_multiplier_says() -> None:
    period, n = 0.15625, 40
    net = fc.dumbbell([fc.SampledLDCC(T_s=period)] * 3, {"capacity": 3e6}, rtt="50 ms")
    (found,) = {round(float(abs(v)), 9) for v in fc.sampled_stability(net).multipliers[:2]}
    assert found == pytest.approx(0.992, rel=1e-9)
    for name, share in {"flow1": 1.001, "flow2": 0.999, "flow3": 1.0}.items():
        net = net.with_flow(name, initial={"x": 1e6 * share})
    at = (np.array([150, 150 + n]) + 0.5) * period
    run = fc.simulate(net, float(at[-1]) + 0.01, t_eval=at, rtol=1e-10, progress=False)
    apart = (run.rate.sel(flow="flow1") - run.rate.sel(flow="flow2")).values
    assert (apart[1] / apart[0]) ** (1 / n) == pytest.approx(found, rel=1e-5)


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(InvalidInput, match="the period is 0"):
        fc.sampled_stability(_net(), 0)
    net = (
        fc.Network()
        .link("l", fc.PenaltyLink, capacity=1e6, delay=0.01)
        .flow("f", fc.PrimalPenalty, route=["l"])
    )
    with pytest.raises(Unsupported, match="has the law PrimalPenalty"):
        fc.sampled_stability(net, 0.1)
    with pytest.raises(Unsupported, match="answer by loss"):
        fc.sampled_stability(fc.scenarios["ldcc_fig6"].net, 0.1)


def test_a_network_of_sampled_laws_brings_its_own_period() -> None:
    laws = [fc.SampledLDCC(eta=eta, T_s=0.1) for eta in (0.4, 0.7)]
    net = fc.dumbbell(laws, {"capacity": C}, rtt=0.08)
    same = fc.dumbbell([fc.LDCC(eta=eta) for eta in (0.4, 0.7)], {"capacity": C}, rtt=0.08)
    # A multiplier of 0 that is double is known to the root of rounding only.
    assert fc.sampled_stability(net).multipliers == pytest.approx(
        fc.sampled_stability(same, "100 ms").multipliers, abs=1e-8
    )
    with pytest.raises(InvalidInput, match=r"flow 'flow1' \(LDCC\) is not sampled; give one"):
        fc.sampled_stability(same)


# --- routers --------------------------------------------------------------------------------------


def _ecf(link: fc.Link, far: float, count: int = 3) -> fc.Network:
    net = fc.Network().link("aqm", link, capacity=30e6, delay=0.02)
    for i in range(count):
        net.flow(f"s{i}", fc.ECF(r_max=60e6), route=["aqm"], access_delay=far)
    return net


@pytest.mark.parametrize("trip", [0.02, 0.07, 0.12, 0.15])
def test_explicit_feedback_has_the_multipliers_of_its_closed_form(trip: float) -> None:
    """V1: z^2 - (R/T) z + R/T. V2: 0 and -R/(T - R). What is measured is the new rate alone, as T_s
    = T - R.

    All of the three sources are told the same factor, so that two shares stay as they are.
    """
    T = 0.16
    first = fc.sampled_stability(_ecf(fc.PAQMECF(T_ECF=T, T_s=T - trip), trip / 2))
    second = fc.sampled_stability(_ecf(fc.PAQMECF2(T_ECF=T, T_s=T - trip, R=trip), trip / 2))
    assert (first.period, second.period, first.undetermined, second.undetermined) == (T, T, 2, 2)
    np.testing.assert_allclose(
        np.sort_complex(first.multipliers[:2]), np.sort_complex(np.roots([1, -trip / T, trip / T]))
    )
    assert second.radius == pytest.approx(trip / (T - trip), rel=1e-9)
    assert first.stable
    assert second.stable is (2 * trip < T)


def _always_in_full(law: fc.Link) -> fc.Link:
    """The same router without switches: it always tells the factor r'/r, below and above 1."""
    factor, rise, rests = (
        next(z for z in law.states if str(z) == name) for name in ("MD", "AI", "rests")
    )
    (least,) = law.ticks[-1].update[factor].atoms(Min)
    (share,) = (a for a in least.args if a != 1)
    tick = replace(law.ticks[-1], update={**law.ticks[-1].update, factor: share, rise: 0, rests: 0})
    return replace(law, ticks=(*law.ticks[:-1], tick))


def _near_and_far(version: fc.Link) -> fc.Network:
    net = fc.Network().link("l", version, capacity=30e6, delay=0.02)
    for name, away in {"near": 0.01, "mid": 0.02, "far": 0.035}.items():
        net = net.flow(name, fc.ECF(r_max=60e6), route=["l"], access_delay=away)
    return net.flow("udp", fc.CBR(rate=3e6), route=["l"])


def _two_routers(version: fc.Link) -> fc.Network:
    """A flow that obeys the second router, behind the queue of the first, with a period of its
    own.
    """
    net = fc.Network().link("one", version, capacity=30e6, delay=0.01)
    net.link("two", _always_in_full(fc.PAQMECF(T_ECF=0.24, T_s=0.1)), capacity=12e6, delay=0.01)
    for name, route in {
        "long": ["one", "two"],
        "a": ["two"],
        "c": ["one"],
        "d": ["one", "two"],
    }.items():
        net.flow(name, fc.ECF(r_max=60e6), route=route, access_delay=0.002 + 0.004 * (name == "c"))
    return net


ROUTERS = {
    "measured late": (lambda law: _ecf(law, 0.05, 1), fc.PAQMECF(T_s=0.09)),
    "several distances": (_near_and_far, fc.PAQMECF(T_s=0.12)),
    "several distances, V2": (_near_and_far, fc.PAQMECF2(T_s=0.09, R=0.04)),
    "two routers": (_two_routers, fc.PAQMECF(T_ECF=0.16, T_s=0.12)),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", ROUTERS)
def test_networks_of_explicit_feedback_run_as_the_multipliers_say(which: str) -> None:
    make, law = ROUTERS[which]
    net = make(_always_in_full(law))
    found = fc.sampled_stability(make(law))
    fair = fc.metrics.max_min_rates(net)
    if "udp" in net.flows:
        fair = np.array([9e6, 9e6, 9e6, 3e6])
    late, end = 4, 30
    odd: Any = 0.0
    for sign in (1, -1):
        start = net
        for i, (name, x) in enumerate(zip(net.flows, fair, strict=True)):
            if name != "udp":
                above = {f"r{k}": 2 * x for k in (1, 2, 3)}
                filled = net.flows[name].route
                own = 1 + filled.index("two") if "two" in filled else 1
                start = start.with_flow(
                    name, initial={**above, f"r{own}": x * (1 + sign * 1e-5 * (i + 1))}
                )
        for name, link in net.links.items():
            start = start.with_link(
                name, initial={"q": link.law.parameter("aim"), "r": link.capacity}
            )
        run = fc.simulate(start, end * found.period, t_eval=(np.arange(late,
        end) - 0.01) * found.period, rtol=1e-11,
                          atol=1e-13, engine="array", progress=False)  # fmt: skip
        odd = odd + sign * np.hstack([run.rate.values, run.queueing_delay.values * 1e8])
    some = found.multipliers[np.abs(found.multipliers) > 0.05]
    still = np.ones(1 if found.undetermined else 0)
    assert _left(odd, np.append(some, still)) < 1e-5
    assert _left(odd, np.append(some * 1.01, still)) > 1e-4


def test_p_aqm_under_constant_rates_forgets_by_its_gains() -> None:
    """1 - K and 1 - a, whatever the overload."""
    for load in (1.2, 5.0):
        net = fc.Network().link("l", fc.PAQMDrop(K=0.35, a=0.4), capacity=1e6, delay=0.01)
        found = fc.sampled_stability(net.flow("f", fc.CBR(rate=load * 1e6), route=["l"]))
        assert found.period == 0.02
        np.testing.assert_allclose(np.sort(found.multipliers.real)[-2:], [0.6, 0.65], rtol=1e-12)


REFUSED = {
    "whose rate follows what it marks: as soon as": lambda: _ecf(fc.PAQM, 0.01),
    "'s0' .Reno., whose rate follows what it drops": lambda: _ecf(fc.PAQMDrop, 0.01, 1).with_flow(
        "s0", law=fc.Reno, initial=None
    ),
    "beside routers that report, multipliers are those": lambda: _ecf(fc.PAQMECF, 0.01).with_flow(
        "s0", law=fc.Reno, initial=None
    ),
    "is filled and tells nothing": lambda: (
        _ecf(fc.PAQMECF, 0.01)
        .link("more", fc.DropTail, capacity=1e6, delay=0.1)
        .with_flow("s0", route=["aqm", "more"])
    ),
    "aims at a queue of 0.028 s, from where it drops": lambda: _ecf(fc.PAQMECF(q_0=0.02), 0.01),
    "no router is filled": lambda: _ecf(fc.PAQMECF, 0.01).with_link("aqm", capacity=1e9),
    "by link 'aqm', its r_max": lambda: _ecf(fc.PAQMECF, 0.01).with_link("aqm", capacity=180e6),
    "is filled by constant rates alone": lambda: _ecf(fc.PAQMECF, 0.01).flow(
        "u", fc.CBR(rate=30e6), route=["aqm"]
    ),
    "crossed in both orders": lambda: _crossed(),
    "multipliers of its queue there are where it drops": lambda: (
        fc.Network()
        .link("l", fc.PAQMDrop, capacity=1e6, delay=0.01)
        .flow("f", fc.CBR(rate=0.9e6), route=["l"])
    ),
}


def _crossed() -> fc.Network:
    net = fc.Network()
    for name in ("one", "two"):
        net.link(name, fc.PAQMECF, capacity=30e6, delay=0.01).flow(
            name, fc.ECF(r_max=60e6), route=[name]
        )
    return net.flow("there", fc.CBR, route=["one", "two"]).flow(
        "back", fc.CBR, route=["two", "one"]
    )


@pytest.mark.parametrize("said", REFUSED)
def test_other_networks_of_routers_say_why_they_have_no_multipliers(said: str) -> None:
    with pytest.raises(Unsupported, match=said):
        fc.sampled_stability(REFUSED[said]())


def test_a_router_has_its_own_period() -> None:
    with pytest.raises(InvalidInput, match="the router has its own, 0.16 s"):
        fc.sampled_stability(_ecf(fc.PAQMECF, 0.01), "0.1 s")
