"""Sampled laws in the network engine, against recursions, and where they stand still."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import symbols

from fluidcc.base.errors import LawError, NotFinite, Unsupported
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Jump, Link, Source, Tick
from fluidcc.links import DropTail
from fluidcc.metrics import ticks
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import StaticAIMD
from fluidcc.symbols import RTT, c, price, y
from tests.hybrid_laws import BACK, DELAY, C, K, P, alone, clocked, pricing, sampled, x

# --- ticks ----------------------------------------------------------------------------------------


w = symbols("w", positive=True)


def priced(rate: Any) -> Network:
    """A flow of that rate over a link that reports its price."""
    elastic = Source("Elastic", out={"rate": rate}, params={w: 12e6}, units={w: "bit/s"})
    net = Network().link("l", pricing(), capacity=C, delay=0.03)
    return net.flow("f", elastic, route=["l"], return_delay=0.04)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_sampled_integrator_with_delay_is_its_recursion(m: int) -> None:
    """q_{k+1} = q_k + P (x_k - C)/C, x_{k+1} = x_k + K (q0 - prop - q_{k+1-m}): m periods."""
    step, lag, prop = 0.1, 0.1 * m, 0.02
    net = Network().link("l", DropTail, capacity=C, delay=prop, initial={"q": 0.5})
    net.flow("f", sampled(), route=["l"], return_delay=lag - prop, start=0)
    n = 20
    ds = simulate(net, n * step, t_eval=step * np.arange(1, n + 1), delays="frozen")
    queue, rate = [0.5], [12e6]
    for k in range(n):
        queue.append(queue[-1] + step * (rate[-1] - C) / C)
        rate.append(rate[-1] + 1e6 * (0.2 - prop - queue[max(k + 1 - m, 0)]))
    assert min(queue) > 0  # never empty, so that all is linear
    np.testing.assert_allclose(ds.rate[:, 0], rate[1:], rtol=1e-9)
    np.testing.assert_allclose(ds.queueing_delay[:, 0], queue[1:], rtol=1e-9)
    np.testing.assert_array_equal(ticks(ds).time.values, step * (1 + np.arange(n)))
    assert ds.attrs["ticks"] == n


def test_what_a_link_reports_is_heard_after_its_delay_and_averages_are_of_the_last_period() -> None:
    """Rate w/price; a loop of 70 ms at a period of 50 ms has means of two prices."""
    net, n = priced(w / price), 30
    ds = simulate(net, 0.05 * n, t_eval=0.05 * np.arange(n + 1), rtol=1e-9)
    level = [1.0]
    for k in range(1, n + 1):
        # In ((k-1) P, k P) the first 20 ms hear the tick before the last, then the last but one.
        before = [level[max(k - 1 - j, 0)] for j in (2, 1)]
        mean = 12e6 * (0.4 / before[0] + 0.6 / before[1])
        level.append(max(0.0, level[-1] + 1e-8 * (mean - C)))
    np.testing.assert_allclose(ds.Pricing_level[:, 0], level, rtol=1e-9)


def test_two_periods_on_one_network_and_phases() -> None:
    net = Network().link("a", pricing(every=0.03), capacity=C, delay=0.01)
    net.link("b", DropTail, capacity=C, delay=0.02)
    net.flow("f", sampled(P=0.07, K=1e3), route=["a", "b"], start=0.25, access_delay=0.005)
    net.flow("g", sampled(phase=P / 4, K=1e3), route=["b"], start=0)
    ds = simulate(net, 1)
    of = {name: rows.time.values for name, rows in ticks(ds).groupby("of")}
    np.testing.assert_allclose(of["a"], 0.03 * np.arange(1, 34), atol=1e-12)
    np.testing.assert_allclose(of["f"], 0.25 + 0.07 * np.arange(1, 11), atol=1e-12)
    np.testing.assert_allclose(of["g"], 0.025 + 0.1 * np.arange(10), atol=1e-12)


def test_simultaneous_ticks_go_links_first_then_sources_then_jumps() -> None:
    """At 0.5 s the link records y, a tick makes x 3 Mbit/s, and the jump makes 6 of that."""
    seen = symbols("seen", nonnegative=True)
    recorder = Link(
        "Recorder", flow={seen: 0}, out={"price": seen / c}, params={P: 0.5},
        units={seen: "bit/s", P: "s"}, initial={seen: 0}, ticks=(Tick(P, {seen: y}),),
    )  # fmt: skip
    law = clocked(Jump(x - 2e6 * K, {x: 2 * x}, once=True), ticks=(Tick(P, {x: x + 2e6 * K}),))
    net = Network().link("l", recorder, capacity=C, delay=DELAY)
    ds = simulate(net.flow("f", law, route=["l"], start=0), 1, t_eval=[0.5, 1])
    np.testing.assert_allclose(ds.rate[:, 0], [6e6, 8e6])
    np.testing.assert_allclose(ds.Recorder_seen[:, 0], [1e6, 6e6])


def test_a_period_of_the_state_is_evaluated_at_each_tick() -> None:
    """The round trip that is known at the tick, while the queue grows at a known rate."""
    net = alone(sampled(every=RTT, K=1e-9, P=1), math.inf, return_delay=BACK)
    ds = simulate(net, 2, rtol=1e-9)
    times = [0.0]
    loop = DELAY + BACK
    while times[-1] <= 2:
        now = times[-1]  # acknowledged now is what left at theta, theta + 0.2 theta + loop = now
        times.append(now + loop + 0.2 * max(0.0, (now - loop) / 1.2))
    np.testing.assert_allclose(ticks(ds).time.values, times[1:-1], rtol=1e-9)


def test_a_period_must_be_positive() -> None:
    with pytest.raises(LawError, match=r"Sampled: the period of tick 0 is -0.1; give a positive"):
        sampled(every=P - 2 * P, P=0.1)
    with pytest.raises(
        NotFinite, match=r"tick 0 .* 'f' \(Sampled\) has a period or phase of -0.05"
    ):
        simulate(alone(sampled(every=RTT - P, P=0.1)), 1)  # of what the run alone knows


def test_a_flow_that_starts_again_ticks_anew() -> None:
    ds = simulate(alone(sampled(K=1e3), start=[0.05, 0.52], stop=[0.3, 0.8]), 1)
    np.testing.assert_allclose(ticks(ds).time.values, [0.15, 0.25, 0.62, 0.72], atol=1e-12)


# --- standstills ----------------------------------------------------------------------------------


def test_the_standstill_of_a_sampled_link_is_where_its_run_ends() -> None:
    """The price at which w/(1 + price) is the capacity."""
    net = priced(w / (1 + price))
    eq = equilibrium(net)
    assert float(eq.price[0]) == pytest.approx(0.2, rel=1e-9)
    assert float(eq.rate[0]) == pytest.approx(C, rel=1e-9)
    assert simulate(net, 30).Pricing_level.values[-1, 0] == pytest.approx(0.2, rel=1e-6)


def test_the_standstill_of_a_sampled_source() -> None:
    eq = equilibrium(alone(sampled(), math.inf))
    assert float(eq.one_way_delay[0]) == pytest.approx(0.2, rel=1e-9)
    assert float(eq.rate[0]) == pytest.approx(C, rel=1e-9)


def test_what_moves_between_ticks_has_no_standstill() -> None:
    law = replace(sampled(), flow={x: K})
    with pytest.raises(Unsupported, match=r"'f' \(Sampled\): x moves between ticks .* limit cycle"):
        equilibrium(alone(law))
    with pytest.raises(Unsupported, match=r"mean, .* law\.averaged\(.* limit cycle"):
        equilibrium(alone(StaticAIMD))
