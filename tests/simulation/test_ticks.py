"""Sampled laws in the network engine, against recursions, and where they stand still."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sympy import symbols

from fluidcc.base.errors import NotFinite, Unsupported
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Jump, Link, Source, Tick
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD
from fluidcc.symbols import RTT, c, price, y
from tests.hybrid_laws import BACK, DELAY, C, K, P, clocked, link, pricing, sampled, x

# --- ticks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_sampled_integrator_with_delay_is_its_recursion(m: int) -> None:
    """q_{k+1} = q_k + P (x_k - C)/C and x_{k+1} = x_k + K (q0 - prop - q_{k+1-m}), the loop
    being m periods.
    """
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
    np.testing.assert_array_equal(ds.tick_time, step * (1 + np.arange(n)))
    assert ds.attrs["ticks"] == n


def test_what_a_link_reports_is_heard_after_its_delay_and_averages_are_of_the_last_period() -> None:
    """Rate w/price; the loop of 70 ms is not a multiple of the period of 50 ms, so that means
    are of two prices.
    """
    w = symbols("w", positive=True)
    elastic = Source("Elastic", out={"rate": w / price}, params={w: 12e6}, units={w: "bit/s"})
    net = (
        Network()
        .link("l", pricing(), capacity=C, delay=0.03)
        .flow("f", elastic, route=["l"], return_delay=0.04)
    )
    n = 30
    ds = simulate(net, 0.05 * n, t_eval=0.05 * np.arange(n + 1), rtol=1e-9)
    level = [1.0]
    for k in range(
        1, n + 1
    ):  # in ((k-1) P, k P) the first 20 ms hear the tick before the last, then the last but one
        before = [level[max(k - 1 - j, 0)] for j in (2, 1)]
        mean = 12e6 * (0.4 / before[0] + 0.6 / before[1])
        level.append(max(0.0, level[-1] + 1e-8 * (mean - C)))
    np.testing.assert_allclose(ds.Pricing_level[:, 0], level, rtol=1e-9)


def test_two_periods_on_one_network_and_phases() -> None:
    net = (
        Network()
        .link("a", pricing(every=0.03), capacity=C, delay=0.01)
        .link("b", DropTail, capacity=C, delay=0.02)
    )
    net.flow("f", sampled(P=0.07, K=1e3), route=["a", "b"], start=0.25, access_delay=0.005)
    net.flow("g", sampled(phase=P / 4, K=1e3), route=["b"], start=0)
    ds = simulate(net, 1)
    of = {name: ds.tick_time.values[ds.tick_of.values == name] for name in ("a", "f", "g")}
    np.testing.assert_allclose(of["a"], 0.03 * np.arange(1, 34), atol=1e-12)
    np.testing.assert_allclose(of["f"], 0.25 + 0.07 * np.arange(1, 11), atol=1e-12)
    np.testing.assert_allclose(of["g"], 0.025 + 0.1 * np.arange(10), atol=1e-12)


def test_simultaneous_ticks_go_links_first_then_sources_then_jumps() -> None:
    """At 0.5 s the link records y, the source ticks x to 3 Mbit/s, and the jump sees that and
    takes it to 6.
    """
    seen = symbols("seen", nonnegative=True)
    recorder = Link(
        "Recorder", flow={seen: 0}, out={"price": seen / c}, params={P: 0.5}, units={seen: "bit/s",
        P: "s"},
        initial={seen: 0}, ticks=(Tick(P, {seen: y}),),
    )  # fmt: skip
    law = clocked(Jump(x - 2e6 * K, {x: 2 * x}, once=True), ticks=(Tick(P, {x: x + 2e6 * K}),))
    net = (
        Network().link("l", recorder, capacity=C, delay=DELAY).flow("f", law, route=["l"], start=0)
    )
    ds = simulate(net, 1, t_eval=[0.5, 1])
    np.testing.assert_allclose(ds.rate[:, 0], [6e6, 8e6])
    np.testing.assert_allclose(ds.Recorder_seen[:, 0], [1e6, 6e6])


def test_a_period_of_the_state_is_evaluated_at_each_tick() -> None:
    """The period is the round trip that is known at the tick, and the queue grows at a known
    rate.
    """
    net = Network().link("l", DropTail, capacity=C, delay=DELAY)
    net.flow("f", sampled(every=RTT, K=1e-9, P=1), route=["l"], return_delay=BACK, start=0)
    ds = simulate(net, 2, rtol=1e-9)
    times = [0.0]
    loop = DELAY + BACK
    while times[-1] <= 2:
        now = times[
            -1
        ]  # what is acknowledged now left at theta, with theta + 0.2 theta + loop = now
        times.append(now + loop + 0.2 * max(0.0, (now - loop) / 1.2))
    np.testing.assert_allclose(ds.tick_time, times[1:-1], rtol=1e-9)


def test_a_period_must_be_positive() -> None:
    with pytest.raises(
        NotFinite, match=r"tick 0 of flow 'f' \(Sampled\) has a period or phase of -0.1"
    ):
        simulate(link().flow("f", sampled(every=P - 2 * P, P=0.1), route=["l"], start=0), 1)


def test_a_flow_that_starts_again_ticks_anew() -> None:
    net = link().flow("f", sampled(K=1e3), route=["l"], start=[0.05, 0.52], stop=[0.3, 0.8])
    ds = simulate(net, 1)
    np.testing.assert_allclose(ds.tick_time, [0.15, 0.25, 0.62, 0.72], atol=1e-12)


# --- standstills ----------------------------------------------------------------------------------


def test_the_standstill_of_a_sampled_link_is_where_its_run_ends() -> None:
    """The price at which w/(1 + price) is the capacity."""
    w = symbols("w", positive=True)
    elastic = Source("Elastic", out={"rate": w / (1 + price)}, params={w: 12e6}, units={w: "bit/s"})
    net = (
        Network()
        .link("l", pricing(), capacity=C, delay=0.03)
        .flow("f", elastic, route=["l"], return_delay=0.04)
    )
    eq = equilibrium(net)
    assert float(eq.price[0]) == pytest.approx(0.2, rel=1e-9)
    assert float(eq.rate[0]) == pytest.approx(C, rel=1e-9)
    assert simulate(net, 30).Pricing_level.values[-1, 0] == pytest.approx(0.2, rel=1e-6)


def test_the_standstill_of_a_sampled_source() -> None:
    eq = equilibrium(link(buffer=math.inf).flow("f", sampled(), route=["l"]))
    assert float(eq.one_way_delay[0]) == pytest.approx(0.2, rel=1e-9)
    assert float(eq.rate[0]) == pytest.approx(C, rel=1e-9)


def test_what_moves_between_ticks_has_no_standstill() -> None:
    law = replace(sampled(), flow={x: K})
    with pytest.raises(
        Unsupported, match=r"flow 'f' \(Sampled\): x moves between ticks .* limit cycle"
    ):
        equilibrium(link().flow("f", law, route=["l"]))
    with pytest.raises(Unsupported, match="averaged law .* limit cycle"):
        equilibrium(link().flow("f", AIMD, route=["l"]))
