"""Jumps and ticks in the network engine against exact solutions, recursions and invariants."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import symbols

from fluidcc import sources
from fluidcc.equilibrium import equilibrium
from fluidcc.errors import FluidccWarning, LawError, NotFinite, Unsupported, Zeno
from fluidcc.law import Jump, Link, Source, Tick
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulate import simulate
from fluidcc.sources import AIMD, CBR, IIAD, SQRT, RateAIMD
from fluidcc.symbols import RTT, c, e, pi, price, x_tau, y

MBIT = 1e6
C, BUFFER, DELAY, BACK = 10 * MBIT, 300e3, 0.025, 0.04
SLOPE = 1 * MBIT  # alpha m/R [bit/s^2]
x, z, u = symbols("x z u", real=True)
P, K, q0 = symbols("P K q0", positive=True)


def link(buffer: float = BUFFER, **kwargs: Any) -> Network:
    return Network().link("l", DropTail, capacity=C, delay=DELAY, buffer=buffer, **kwargs)


def aimd(**params: float) -> Source:
    """Rate-based AIMD of the slope SLOPE that reacts once a round trip."""
    law = RateAIMD(m=1e5, R=0.1, **params)
    return replace(law, jumps=(replace(law.jumps[0], refractory=RTT),), params=law.params)


class Sawtooth:
    """One rate-based AIMD flow on a link with a buffer: everything in closed form."""

    loop = BUFFER / C + DELAY + BACK
    over = math.sqrt(2 * BUFFER / SLOPE)  # from capacity to a full buffer
    peak = C + SLOPE * (over + loop)
    period = 0.5 * peak / SLOPE
    first = (C - 1e5) / SLOPE + over + loop


# --- exact cycles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rtol", [1e-5, 1e-9])
@pytest.mark.parametrize("access", [0.0, 0.013])
def test_the_sawtooth_of_one_flow_is_the_closed_form(rtol: float, access: float) -> None:
    back = BACK - 2 * access  # the same loop, seen from elsewhere
    net = link().flow("f", aimd(), route=["l"], start=0, access_delay=access, return_delay=back + access)
    ds = simulate(net, 60, rtol=rtol, atol=rtol * 1e-3)
    shift = Sawtooth.first + Sawtooth.period * np.arange(len(ds.jump))
    np.testing.assert_allclose(ds.jump_time, shift, rtol=0, atol=1e-10)
    assert list(np.unique(ds.jump_of)) == ["f"]
    assert ds.attrs["jumps"] == len(ds.jump) == 10
    assert float(ds.rate.max()) <= Sawtooth.peak * (1 + 1e-12)


def test_a_sample_at_a_jump_shows_what_is_after_it_also_at_the_end() -> None:
    times = Sawtooth.first + Sawtooth.period * np.arange(3)
    net = link().flow("f", aimd(), route=["l"], start=0, return_delay=BACK)
    found = simulate(net, times[-1] + 1e-12, t_eval=[times[0] - 1e-6, times[0] + 1e-9, times[-1] + 1e-12], rtol=1e-9)
    low = Sawtooth.peak / 2
    np.testing.assert_allclose(found.rate.values[:, 0], [Sawtooth.peak - 1, low + 1e-3, low], rtol=1e-9)


def test_the_queue_empties_and_fills_between_jumps() -> None:
    """Of one cycle: bits in, bits lost and the time the queue is empty, by hand."""
    net = link().flow("f", aimd(), route=["l"], start=0, return_delay=BACK)
    edges = Sawtooth.first + Sawtooth.period * np.arange(4, 6)
    ds = simulate(net, 60, t_eval=edges, rtol=1e-9)
    sent = 0.75 * Sawtooth.peak * Sawtooth.period
    full = Sawtooth.loop  # the source hears of the overflow one loop after it began
    lost = SLOPE * (Sawtooth.over * full + full**2 / 2)
    np.testing.assert_allclose(np.diff(ds.entered.values[:, 0]), sent, rtol=1e-9)
    np.testing.assert_allclose(np.diff(ds.lost.values[:, 0]), lost, rtol=1e-8)
    np.testing.assert_allclose(ds.backlog.values[:, 0], BUFFER, rtol=1e-10)


def test_synchronised_flows_approach_each_other_by_one_minus_b_a_cycle() -> None:
    b = 0.3
    law = aimd(beta=b)
    net = link()
    for i, start in enumerate((1 * MBIT, 2.5 * MBIT, 4 * MBIT)):
        net.flow(f"f{i}", law, route=["l"], return_delay=BACK, initial={"x": start}, start=0)
    ds = simulate(net, 25, rtol=1e-9, samples=2001)
    times = ds.jump_time.values.reshape(-1, 3)
    assert len(times) > 5
    assert np.all(np.ptp(times, axis=1) == 0.0)  # one mesh point for all three
    gap = (ds.rate[:, 2] - ds.rate[:, 0]).values
    cycles = np.searchsorted(times[:, 0], ds.time.values, side="right")
    np.testing.assert_allclose(gap, 3 * MBIT * (1 - b) ** cycles, rtol=1e-9)


def test_n_equal_flows_are_one_of_n_fold_increase() -> None:
    many, one = link(), link()
    for i in range(4):
        many.flow(f"f{i}", aimd(), route=["l"], return_delay=BACK, start=0, initial={"x": 1e6})
    one.flow("f", aimd(alpha=4), route=["l"], return_delay=BACK, start=0, initial={"x": 4e6})
    a, b = (simulate(net, 20, rtol=1e-9) for net in (many, one))
    np.testing.assert_allclose(a.jump_time.values.reshape(-1, 4)[:, 0], b.jump_time, atol=1e-10)
    np.testing.assert_allclose(a.rate.sum("flow"), b.rate[:, 0], rtol=1e-8)


def test_windows_cycle_as_the_integral_of_the_window_says() -> None:
    """On a link with hardly a buffer the RTT is constant, and W^(k+1)/(k+1) grows by alpha a round trip."""
    trip = DELAY + BACK
    for law, k, l in ((AIMD, 0, 1), (IIAD, 1, 0), (SQRT, 0.5, 0.5)):
        net = link(buffer=1e-4).flow("f", law, route=["l"], return_delay=BACK, start=0, initial={"W": 80})
        ds = simulate(net, 60, rtol=1e-10, atol=1e-13)
        top = C * trip / net.flows["f"].packet  # the window that fills the link
        fill = math.sqrt(2 * 1e-4 / (top**-k * net.flows["f"].packet / trip**2))  # until those few bits are full
        over = (top ** (k + 1) + (k + 1) * (1 + fill / trip)) ** (1 / (k + 1))  # and a round trip later
        low = over - 0.5 * over**l
        period = trip * (over ** (k + 1) - low ** (k + 1)) / (k + 1)
        gaps = np.diff(ds.jump_time.values)
        assert len(gaps) > 2
        np.testing.assert_allclose(gaps[1:], period, rtol=1e-7, err_msg=law.name)


# --- conditions ------------------------------------------------------------------------------------------------------


def delay_triggered(**kwargs: Any) -> Source:
    d = symbols("d", positive=True)
    return Source(
        "Backoff",
        flow={x: P},
        out={"rate": x},
        params={P: SLOPE, d: 0.035},
        units={x: "bit/s", P: "bit/s^2", d: "s"},
        initial={x: 8e6},
        jumps=(Jump(when=e - d, reset={x: x / 2}, **kwargs),),
    )


@pytest.mark.parametrize("options", [{"refractory": 3 * RTT}, {"once": True}, {"once": True, "refractory": RTT}])
def test_a_delay_threshold_is_met_exactly(options: dict[str, Any]) -> None:
    """10 ms of queue are there after sqrt(2 d C/slope), heard a loop later; half the rate drains them at once."""
    net = link(buffer=math.inf).flow("f", delay_triggered(**options), route=["l"], return_delay=BACK, start=0)
    ds = simulate(net, 40, rtol=1e-10, atol=1e-13)
    wait = math.sqrt(2 * 0.01 * C / SLOPE) + 0.035 + BACK
    peak = C + SLOPE * wait
    exact = 2.0 + wait + 0.5 * peak / SLOPE * np.arange(len(ds.jump))
    assert len(exact) == 8
    np.testing.assert_allclose(ds.jump_time, exact, rtol=0, atol=2e-9)


def test_a_refractory_time_ends_with_a_jump_if_the_condition_still_holds() -> None:
    """Loss from a rate that stays above the capacity: x halves every RTT until it has been heard to stop."""
    law = aimd(alpha=1e-9)
    net = link(buffer=1.0).flow("f", law, route=["l"], return_delay=BACK, start=0, initial={"x": 35 * MBIT})
    ds = simulate(net, 1, rtol=1e-9)
    loop = DELAY + BACK
    np.testing.assert_allclose(ds.jump_time, [loop, 2 * loop], atol=1e-6)  # 35 and 17.5 overflow, each for a loop


def test_once_passes_over_what_stays_true() -> None:
    law = aimd(alpha=1e-9)
    law = replace(law, jumps=(Jump(pi, {law.states[0]: law.states[0] * 0.9}, once=True),))
    net = link(buffer=1.0).flow("f", law, route=["l"], return_delay=BACK, start=0, initial={"x": 35 * MBIT})
    ds = simulate(net, 1, rtol=1e-9)
    np.testing.assert_allclose(ds.jump_time, [DELAY + BACK], atol=1e-6)
    np.testing.assert_allclose(ds.rate[-1, 0], 31.5 * MBIT, rtol=1e-9)


def clocked(*jumps: Jump, ticks: tuple[Tick, ...] = (), flow: Any = 0) -> Source:
    """A law with a clock z of slope 1 and a rate x."""
    return Source(
        "Clock",
        flow={x: flow, z: 1},
        out={"rate": x},
        params={P: 0.5, K: 1},
        units={x: "bit/s", z: "s", P: "s", K: "bit/s"},
        initial={x: 1e6, z: 0},
        jumps=jumps,
        ticks=ticks,
    )


def test_a_reset_that_makes_its_condition_false_needs_no_refractory_time() -> None:
    net = link().flow("f", clocked(Jump(z - P, {z: 0, x: x + 1e5 * K})), route=["l"], start=0)
    ds = simulate(net, 3.3)
    np.testing.assert_allclose(ds.jump_time, 0.5 * np.arange(1, 7), atol=1e-12)
    np.testing.assert_allclose(ds.rate[-1, 0], 1.6e6, rtol=1e-12)


def test_jumps_set_one_another_off_at_the_same_instant() -> None:
    law = clocked(Jump(x - 3e6 * K, {x: 5e5 * K}), Jump(z - P, {z: 0, x: 2 * x}))
    ds = simulate(link().flow("f", law, route=["l"], start=0), 1.6, t_eval=[0.49, 0.5001, 1.01, 1.51])
    np.testing.assert_allclose(ds.rate.values[:, 0], [1e6, 2e6, 5e5, 1e6])  # 4 Mbit/s exists for no time at all
    np.testing.assert_allclose(ds.jump_time, [0.5, 1.0, 1.0, 1.5], atol=1e-12)


@pytest.mark.parametrize("reset", [{x: x / 2}, {z: z}])
def test_jumps_without_end_are_refused(reset: dict[Any, Any]) -> None:
    with pytest.raises(Zeno, match=r"jump 0 of flow 'f' \(Clock\) .* at 0\.5 s.*refractory"):
        simulate(link().flow("f", clocked(Jump(z - P, reset)), route=["l"], start=0), 3)


def test_ever_faster_jumps_are_refused() -> None:
    """A ball that loses half its speed at each bounce comes to rest after 3 s."""
    h, v = symbols("h v", real=True)
    gravity = symbols("g", positive=True)
    ball = Source(
        "Ball",
        flow={h: v, v: -gravity},
        out={"rate": K},
        params={K: 1e6, gravity: 2},
        initial={h: 1, v: 0},
        units={h: "1", v: "1/s", gravity: "1/s^2", K: "bit/s"},
        jumps=(Jump(-h, {h: 0, v: -v / 2}),),
    )
    net = link().flow("f", ball, route=["l"], start=0)
    ds = simulate(net, 2.9)
    np.testing.assert_allclose(ds.jump_time, 3 - 2 ** (1.0 - np.arange(len(ds.jump))), atol=1e-9)
    with pytest.raises(Zeno, match="Ball.* at 3 s"):
        simulate(net, 4)


def test_a_refractory_time_that_is_none_is_refused() -> None:
    law = clocked(Jump(z - P, {z: 0}, refractory=P - 2 * z))
    with pytest.raises(NotFinite, match=r"jump 0 of flow 'f' \(Clock\) has a refractory time of -0.5"):
        simulate(link().flow("f", law, route=["l"], start=0), 3)


def test_a_queue_cannot_be_reset() -> None:
    (q,) = DropTail.states
    with pytest.raises(LawError, match="jump 0 changes the queue"):
        replace(DropTail, jumps=(Jump(y - c, {q: 0}),))


def test_a_reset_stays_within_bounds() -> None:
    net = link(buffer=1e3).flow("f", AIMD(b=0.9), route=["l"], start=0, initial={"W": 60})
    net.flow("u", CBR(rate=9.9 * MBIT), route=["l"], start=0)
    times = simulate(net, 5).jump_time.values
    assert len(times) > 2
    np.testing.assert_allclose(simulate(net, 5, t_eval=times[2:] + 1e-9).AIMD_W.sel(flow="f"), 1.0, atol=1e-6)


# --- what follows from a jump ----------------------------------------------------------------------------------------


def test_later_links_and_the_own_past_rate_see_a_jump_when_it_arrives() -> None:
    """A rate that doubles at 0.5 s, over links of 50 and 30 ms: arrivals there, and the integral of x_tau."""
    base = clocked(Jump(z - P, {x: 2 * x}, once=True))
    echo = replace(
        base, name="Echo", flow={x: 0, z: 1, u: x_tau}, units={**base.units, u: "bit"}, initial={**base.initial, u: 0}
    )
    net = Network().link("a", DropTail, capacity=C, delay=0.05).link("b", DropTail, capacity=C, delay=0.03)
    net.flow("f", echo, route=["a", "b"], start=0, access_delay=0.01, return_delay=0.07)
    near = 1e-9
    arrivals = simulate(net, 1, t_eval=[0.5 + 0.06 - near, 0.5 + 0.06 + near], rtol=1e-6).arrival_rate.sel(link="b")
    np.testing.assert_allclose(arrivals, [1e6, 2e6], rtol=1e-12)
    heard = simulate(net, 1, t_eval=[0.16, 0.5, 0.66, 0.66 + near, 0.9]).Echo_u.values[:, 0]
    np.testing.assert_allclose(heard, [0, 0.34e6, 0.5e6, 0.5e6 + 2e6 * near, 0.5e6 + 0.24 * 2e6], rtol=1e-9, atol=1e-3)


def test_a_jump_on_a_sample_on_a_start_and_on_a_landing() -> None:
    """At 0.5 s the jump, the start of another flow and a sample; at 0.6 s its landing meets the next one's start."""
    net = link(buffer=math.inf)
    net.flow("f", clocked(Jump(z - P, {x: 21 * x}, once=True)), route=["l"], start=0, return_delay=0.075)
    net.flow("g", CBR(rate=3 * MBIT), route=["l"], start=0.5).flow("h", CBR(rate=1 * MBIT), route=["l"], start=0.6)
    ds = simulate(net, 2, t_eval=[0.25, 0.5, 0.6, 1.6])
    np.testing.assert_allclose(ds.rate.sel(flow="f"), [1e6, 21e6, 21e6, 21e6])
    np.testing.assert_allclose(ds.arrival_rate[:, 0], [1e6, 24e6, 25e6, 25e6])
    np.testing.assert_allclose(ds.backlog[:, 0], [0, 0, 1.4e6, 1.4e6 + 15e6], rtol=1e-10)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    starts=st.lists(st.floats(0.5, 9), min_size=1, max_size=3),
    backoff=st.floats(0.1, 0.9),
    buffer=st.floats(2e4, 1e6),
    back=st.floats(0.005, 0.1),
)
def test_no_bit_is_made_or_lost_at_a_jump(starts: list[float], backoff: float, buffer: float, back: float) -> None:
    """What entered = what was sent = what left + what is queued + what was lost; queues keep within their bounds."""
    net = link(buffer=buffer)
    for i, rate in enumerate(starts):
        law = aimd(beta=backoff)
        (state,) = law.states
        meter = replace(
            law,
            name="Metered",
            flow={**law.flow, z: state},
            units={**law.units, z: "bit"},
            initial={state: 1e6, z: 0},
        )
        net.flow(f"f{i}", meter, route=["l"], return_delay=back * (1 + i / 3), start=0, initial={"x": rate * MBIT})
    ds = simulate(net, 15, samples=200, rtol=1e-8)
    sent = ds.Metered_z.sum("flow").values
    np.testing.assert_allclose(ds.entered[:, 0], sent, rtol=1e-7, atol=1)
    idle = np.minimum(ds.entered - ds.lost - ds.backlog, C * ds.time)
    assert np.all(np.diff(idle[:, 0]) >= -1e-3)
    assert float(ds.backlog.min()) >= 0.0
    assert float(ds.backlog.max()) <= buffer * (1 + 1e-12)


# --- ticks -----------------------------------------------------------------------------------------------------------


def sampled(every: Any = P, phase: Any = None, **params: float) -> Source:
    """x <- x + K (q0 - e) at every tick, held in between."""
    law = Source(
        "Sampled",
        flow={x: 0},
        out={"rate": x},
        params={P: 0.1, K: 1e6, q0: 0.2},
        units={x: "bit/s", P: "s", K: "bit/s^2", q0: "s"},
        lower={x: 0},
        initial={x: 12e6},
        ticks=(Tick(every, {x: x + K * (q0 - e)}, phase=phase),),
    )
    return law(**params)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_sampled_integrator_with_delay_is_its_recursion(m: int) -> None:
    """q_{k+1} = q_k + P (x_k - C)/C and x_{k+1} = x_k + K (q0 - prop - q_{k+1-m}), the loop being m periods."""
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


def pricing(**params: float) -> Link:
    """A price that follows the excess of the last period, reported at the end of it."""
    total, level, every, nu = symbols("total level every nu", nonnegative=True)
    law = Link(
        "Pricing",
        flow={total: y, level: 0},
        out={"price": level},
        params={every: 0.05, nu: 1e-8},
        units={total: "bit", level: "1", every: "s", nu: "s/bit"},
        lower={level: 0},
        initial={total: 0, level: 1.0},
        ticks=(Tick(every, {level: level + nu * (total / every - c), total: 0}),),
    )
    return law(**params)


def test_what_a_link_reports_is_heard_after_its_delay_and_averages_are_of_the_last_period() -> None:
    """Rate w/price; the loop of 70 ms is not a multiple of the period of 50 ms, so that means are of two prices."""
    w = symbols("w", positive=True)
    elastic = Source("Elastic", out={"rate": w / price}, params={w: 12e6}, units={w: "bit/s"})
    net = Network().link("l", pricing(), capacity=C, delay=0.03).flow("f", elastic, route=["l"], return_delay=0.04)
    n = 30
    ds = simulate(net, 0.05 * n, t_eval=0.05 * np.arange(n + 1), rtol=1e-9)
    level = [1.0]
    for k in range(1, n + 1):  # in ((k-1) P, k P) the first 20 ms hear the tick before the last, then the last but one
        before = [level[max(k - 1 - j, 0)] for j in (2, 1)]
        mean = 12e6 * (0.4 / before[0] + 0.6 / before[1])
        level.append(max(0.0, level[-1] + 1e-8 * (mean - C)))
    np.testing.assert_allclose(ds.Pricing_level[:, 0], level, rtol=1e-9)


def test_two_periods_on_one_network_and_phases() -> None:
    net = Network().link("a", pricing(every=0.03), capacity=C, delay=0.01).link("b", DropTail, capacity=C, delay=0.02)
    net.flow("f", sampled(P=0.07, K=1e3), route=["a", "b"], start=0.25, access_delay=0.005)
    net.flow("g", sampled(phase=P / 4, K=1e3), route=["b"], start=0)
    ds = simulate(net, 1)
    of = {name: ds.tick_time.values[ds.tick_of.values == name] for name in ("a", "f", "g")}
    np.testing.assert_allclose(of["a"], 0.03 * np.arange(1, 34), atol=1e-12)
    np.testing.assert_allclose(of["f"], 0.25 + 0.07 * np.arange(1, 11), atol=1e-12)
    np.testing.assert_allclose(of["g"], 0.025 + 0.1 * np.arange(10), atol=1e-12)


def test_simultaneous_ticks_go_links_first_then_sources_then_jumps() -> None:
    """At 0.5 s the link records y, the source ticks x to 3 Mbit/s, and the jump sees that and takes it to 6."""
    seen = symbols("seen", nonnegative=True)
    recorder = Link(
        "Recorder", flow={seen: 0}, out={"price": seen / c}, params={P: 0.5}, units={seen: "bit/s", P: "s"},
        initial={seen: 0}, ticks=(Tick(P, {seen: y}),),
    )  # fmt: skip
    law = clocked(Jump(x - 2e6 * K, {x: 2 * x}, once=True), ticks=(Tick(P, {x: x + 2e6 * K}),))
    net = Network().link("l", recorder, capacity=C, delay=DELAY).flow("f", law, route=["l"], start=0)
    ds = simulate(net, 1, t_eval=[0.5, 1])
    np.testing.assert_allclose(ds.rate[:, 0], [6e6, 8e6])
    np.testing.assert_allclose(ds.Recorder_seen[:, 0], [1e6, 6e6])


def test_a_period_of_the_state_is_evaluated_at_each_tick() -> None:
    """The period is the round trip that is known at the tick, and the queue grows at a known rate."""
    net = Network().link("l", DropTail, capacity=C, delay=DELAY)
    net.flow("f", sampled(every=RTT, K=1e-9, P=1), route=["l"], return_delay=BACK, start=0)
    ds = simulate(net, 2, rtol=1e-9)
    times = [0.0]
    loop = DELAY + BACK
    while times[-1] <= 2:
        now = times[-1]  # what is acknowledged now left at theta, with theta + 0.2 theta + loop = now
        times.append(now + loop + 0.2 * max(0.0, (now - loop) / 1.2))
    np.testing.assert_allclose(ds.tick_time, times[1:-1], rtol=1e-9)


def test_a_period_must_be_positive() -> None:
    with pytest.raises(NotFinite, match=r"tick 0 of flow 'f' \(Sampled\) has a period or phase of -0.1"):
        simulate(link().flow("f", sampled(every=P - 2 * P, P=0.1), route=["l"], start=0), 1)


def test_a_flow_that_starts_again_ticks_anew() -> None:
    net = link().flow("f", sampled(K=1e3), route=["l"], start=[0.05, 0.52], stop=[0.3, 0.8])
    ds = simulate(net, 1)
    np.testing.assert_allclose(ds.tick_time, [0.15, 0.25, 0.62, 0.72], atol=1e-12)


# --- engines ---------------------------------------------------------------------------------------------------------


def test_a_fused_step_gives_the_same_run() -> None:
    net = link().flow("f", AIMD, route=["l"], return_delay=BACK).flow("g", sampled(), route=["l"], start=1)
    array, fast = (simulate(net, 20, rtol=1e-8, engine=engine) for engine in ("array", "fused"))
    assert fast.attrs["engine"] == "fused"
    assert array.attrs["jumps"] == fast.attrs["jumps"] > 3
    np.testing.assert_allclose(fast.jump_time, array.jump_time, atol=1e-6)
    np.testing.assert_allclose(fast.rate, array.rate, rtol=1e-5)


@pytest.mark.parametrize("law", [getattr(sources, name) for name in sources.__all__], ids=lambda law: law.name)
def test_every_source_runs_on_a_link_beside_another(law: Source) -> None:
    net = link(buffer=60e3).flow("f", law, route=["l"], start=0).flow("g", AIMD, route=["l"], initial={"W": 70})
    waits = law.name.endswith("ECF")  # for routers that report, and here there is none
    with pytest.warns(FluidccWarning, match="no router on the route of f") if waits else nullcontext():
        ds = simulate(net, 3, samples=50)
    assert np.all(np.isfinite(ds.rate))
    assert float(ds.rate.min()) >= 0.0
    assert float(ds.lost[-1, 0]) > 0.0


_PLAIN = """
import sys
sys.path[:0] = {path!r}
from tests.test_hybrid import BACK, aimd, link, sampled
from fluidcc.simulate import simulate
net = link(buffer=1e4).flow("f", aimd(), route=["l"], return_delay=BACK, initial={{"x": 9.95e6}}, start=0)
net.flow("g", sampled(K=1e5, P=0.04), route=["l"], start=0.1, initial={{"x": 1e5}})
ds = simulate(net, 0.3, samples=3, rtol=1e-5)
print(ds.jump_time.values.tolist(), ds.tick_time.values.tolist())
"""


def test_without_the_jit_jumps_and_ticks_are_the_same() -> None:
    path = [p for p in sys.path if p] + [os.getcwd()]
    outputs = []
    for off in ("1", "0"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": off}
        done = subprocess.run(
            [sys.executable, "-c", _PLAIN.format(path=path)], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        outputs.append([json.loads(part) for part in done.stdout.strip().replace("] [", "]|[").split("|")])
    (jumps, ticks), (same_jumps, same_ticks) = outputs
    assert len(jumps) == 1
    assert len(ticks) == 5
    np.testing.assert_allclose(jumps, same_jumps, rtol=1e-9)
    np.testing.assert_allclose(ticks, same_ticks, rtol=1e-12)


# --- standstills -----------------------------------------------------------------------------------------------------


def test_the_standstill_of_a_sampled_link_is_where_its_run_ends() -> None:
    """The price at which w/(1 + price) is the capacity."""
    w = symbols("w", positive=True)
    elastic = Source("Elastic", out={"rate": w / (1 + price)}, params={w: 12e6}, units={w: "bit/s"})
    net = Network().link("l", pricing(), capacity=C, delay=0.03).flow("f", elastic, route=["l"], return_delay=0.04)
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
    with pytest.raises(Unsupported, match=r"flow 'f' \(Sampled\): x moves between ticks .* limit cycle"):
        equilibrium(link().flow("f", law, route=["l"]))
    with pytest.raises(Unsupported, match="averaged law .* limit cycle"):
        equilibrium(link().flow("f", AIMD, route=["l"]))
