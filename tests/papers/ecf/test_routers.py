"""Routers of P-AQM that are sampled: multipliers in closed form, and runs of the engine."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Min

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, Unsupported
from tests.papers.test_sampled import left


def _ecf(link: fc.Link, far: float, count: int = 3) -> fc.Network:
    flow = {"law": fc.ECF(r_max=60e6), "access_delay": far}
    flows = {f"s{i}": flow for i in range(count)}
    return fc.dumbbell(flows, {"name": "aqm", "law": link, "capacity": 30e6, "delay": 0.02})


@pytest.mark.parametrize("trip", [0.02, 0.07, 0.12, 0.15])
def test_explicit_feedback_has_the_multipliers_of_its_closed_form(trip: float) -> None:
    """V1: z^2 - (R/T) z + R/T. V2: 0 and -R/(T - R), where T_s = T - R measures the new rate alone.

    The three sources are told the same factor, so that two shares stay as they are.
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
    *inner, report, measure = law.ticks
    (least,) = report.update[factor].atoms(Min)
    (share,) = (a for a in least.args if a != 1)
    tick = replace(report, update={**report.update, factor: share, rise: 0, rests: 0})
    return replace(law, ticks=(*inner, tick, measure))


def _near_and_far(version: fc.Link) -> fc.Network:
    away = {"near": 0.01, "mid": 0.02, "far": 0.035}
    flows: Any = {n: {"law": fc.ECF(r_max=60e6), "access_delay": d} for n, d in away.items()}
    flows["udp"] = fc.CBR(rate=3e6)
    return fc.dumbbell(flows, {"law": version, "capacity": 30e6, "delay": 0.02})


def _two_routers(version: fc.Link) -> fc.Network:
    """Flows from two distances obey the second router, behind the queue of the first, at a period
    of its own.
    """
    net = fc.Network().link("one", version, capacity=30e6, delay=0.01)
    net.link("two", _always_in_full(fc.PAQMECF(T_ECF=0.24, T_s=0.1)), capacity=12e6, delay=0.01)
    routes = {"long": ["one", "two"], "a": ["two"], "c": ["one"], "d": ["one", "two"]}
    for name, route in routes.items():
        net.flow(name, fc.ECF(r_max=60e6), route=route, access_delay=0.002 + 0.004 * (name in "cd"))
    return net


ROUTERS = {
    "measured late": (lambda law: _ecf(law, 0.05, 1), fc.PAQMECF(T_ECF=0.16, T_s=0.09)),
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
                moved = {**above, f"r{own}": x * (1 + sign * 1e-5 * (i + 1))}
                start = start.with_flow(name, initial=moved)
        for name, link in net.links.items():
            rest = {"q": link.law.parameter("aim"), "r": link.capacity}
            start = start.with_link(name, initial=rest)
        times = (np.arange(late, end) - 0.01) * found.period
        how: Any = {"rtol": 1e-11, "atol": 1e-13, "engine": "array"}
        run = fc.simulate(start, end * found.period, t_eval=times, **how)
        odd = odd + sign * np.hstack([run.rate.values, run.queueing_delay.values * 1e8])
    some = found.multipliers[np.abs(found.multipliers) > 0.05]
    still = np.ones(1 if found.undetermined else 0)
    assert left(odd, np.append(some, still)) < 1e-5
    assert left(odd, np.append(some * 1.01, still)) > 1e-4


def test_p_aqm_under_constant_rates_forgets_by_its_gains() -> None:
    """1 - K and 1 - a, whatever the overload."""
    for load in (1.2, 5.0):
        net = fc.Network().link("l", fc.PAQMDrop(K=0.35, a=0.4), capacity=1e6, delay=0.01)
        found = fc.sampled_stability(net.flow("f", fc.CBR(rate=load * 1e6), route=["l"]))
        assert found.period == 0.02
        np.testing.assert_allclose(found.multipliers, [0.65, 0.6], rtol=1e-9)


def test_p_aqm_that_has_nothing_to_drop_stands_on_its_switch() -> None:
    net = fc.dumbbell([fc.CBR(rate=0.9e6)], {"law": fc.PAQMDrop, "capacity": 1e6, "delay": 0.01})
    with pytest.raises(InvalidInput, match="PAQMDrop stands on a switching surface"):
        fc.sampled_stability(net)


REFUSED: dict[str, Any] = {
    "tells flow 's0' .ECF. nothing": lambda: _ecf(fc.PAQM, 0.01),
    "beside routers that report, multipliers are": lambda: _reno(_ecf(fc.PAQMECF, 0.01)),
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
}


def _reno(net: fc.Network) -> fc.Network:
    return net.with_flow("s0", law=fc.StaticReno, initial=None)


def _crossed() -> fc.Network:
    net = fc.Network()
    for name in ("one", "two"):
        net.link(name, fc.PAQMECF, capacity=30e6, delay=0.01)
        net.flow(name, fc.ECF(r_max=60e6), route=[name])
    net.flow("there", fc.CBR, route=["one", "two"])
    return net.flow("back", fc.CBR, route=["two", "one"])


@pytest.mark.parametrize("said", REFUSED)
def test_other_networks_of_routers_say_why_they_have_no_multipliers(said: str) -> None:
    with pytest.raises(Unsupported, match=said):
        fc.sampled_stability(REFUSED[said]())


def test_routers_have_their_own_period() -> None:
    with pytest.raises(InvalidInput, match="the router has its own, 0.16 s"):
        fc.sampled_stability(_ecf(fc.PAQMECF, 0.01), "0.1 s")


def test_a_deadbeat_loop_decays_at_an_infinite_rate() -> None:
    """Two sources at a delay of 0 behind a router of 20 ms: all is gone after a period."""
    router = {"law": fc.PAQMECF, "capacity": "30 Mbit/s", "delay": "20 ms"}
    found = fc.sampled_stability(fc.dumbbell([fc.ECF(r_max="20 Mbit/s")] * 2, router))
    assert (found.radius, found.decay_rate) == (0, math.inf)
    assert "inf" in str(found)
