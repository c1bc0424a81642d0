"""Jumps in the network engine: exact cycles, and what follows from a jump."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import symbols

from fluidcc.base.errors import NotFinite, Zeno
from fluidcc.laws import Jump, Source
from fluidcc.links import DropTail
from fluidcc.metrics import jumps
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, StaticAIMD, StaticIIAD, StaticSQRT
from fluidcc.symbols import RTT, pi, x_tau
from tests.hybrid_laws import (
    BACK,
    BUFFER,
    DELAY,
    MBIT,
    SLOPE,
    C,
    K,
    P,
    Sawtooth,
    aimd,
    alone,
    clocked,
    delay_triggered,
    link,
    u,
    x,
    z,
)

# --- exact cycles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rtol", [1e-5, 1e-9])
@pytest.mark.parametrize("access", [0.0, 0.013])
def test_the_sawtooth_of_one_flow_is_the_closed_form(rtol: float, access: float) -> None:
    back = BACK - 2 * access  # the same loop, seen from elsewhere
    net = alone(aimd(), access_delay=access, return_delay=back + access)
    ds = simulate(net, 60, rtol=rtol, atol=rtol * 1e-3)
    shift = Sawtooth.first + Sawtooth.period * np.arange(ds.attrs["jumps"])
    np.testing.assert_allclose(jumps(ds).time.values, shift, rtol=0, atol=1e-10)
    assert list(np.unique(jumps(ds).of.values)) == ["f"]
    assert ds.attrs["jumps"] == len(jumps(ds)) == 10
    assert float(ds.rate.max()) <= Sawtooth.peak * (1 + 1e-12)


def test_a_sample_at_a_jump_shows_what_is_after_it_also_at_the_end() -> None:
    times = Sawtooth.first + Sawtooth.period * np.arange(3)
    end, low = times[-1] + 1e-12, Sawtooth.peak / 2
    at = [times[0] - 1e-6, times[0] + 1e-9, end]
    found = simulate(alone(aimd(), return_delay=BACK), end, t_eval=at, rtol=1e-9).rate.values[:, 0]
    np.testing.assert_allclose(found, [Sawtooth.peak - 1, low + 1e-3, low], rtol=1e-9)


def test_the_queue_empties_and_fills_between_jumps() -> None:
    """Of one cycle: bits in, bits lost and the time the queue is empty, by hand."""
    net = alone(aimd(), return_delay=BACK)
    edges = Sawtooth.first + Sawtooth.period * np.arange(4, 6)
    ds = simulate(net, 60, t_eval=edges, rtol=1e-9)
    sent = 0.75 * Sawtooth.peak * Sawtooth.period
    full = Sawtooth.loop  # the source hears of the overflow one loop after it began
    lost = SLOPE * (Sawtooth.over * full + full**2 / 2)
    np.testing.assert_allclose(np.diff(ds.entered.values[:, 0]), sent, rtol=1e-9)
    np.testing.assert_allclose(np.diff(ds.lost.values[:, 0]), lost, rtol=1e-8)
    np.testing.assert_allclose(ds.backlog.values[:, 0], BUFFER, rtol=1e-10)


def test_windows_cycle_as_the_integral_of_the_window_says() -> None:
    """Over hardly a buffer the RTT is constant: W^(k+1)/(k+1) grows by alpha a round trip."""
    trip = DELAY + BACK
    for law, k, l in ((StaticAIMD, 0, 1), (StaticIIAD, 1, 0), (StaticSQRT, 0.5, 0.5)):
        net = alone(law, 1e-4, return_delay=BACK, initial={"W": 80})
        ds = simulate(net, 60, rtol=1e-10, atol=1e-13)
        packet = net.flows["f"].packet
        top = C * trip / packet  # the window that fills the link
        fill = math.sqrt(2 * 1e-4 / (top**-k * packet / trip**2))  # until those few bits are full
        later = top ** (k + 1) + (k + 1) * (1 + fill / trip)
        over = later ** (1 / (k + 1))  # and a round trip later
        low = over - 0.5 * over**l
        period = trip * (over ** (k + 1) - low ** (k + 1)) / (k + 1)
        gaps = np.diff(jumps(ds).time.values)
        assert len(gaps) > 2
        np.testing.assert_allclose(gaps[1:], period, rtol=1e-7, err_msg=law.name)


# --- what follows from a jump ---------------------------------------------------------------------


def test_later_links_and_the_own_past_rate_see_a_jump_when_it_arrives() -> None:
    """A rate doubles at 0.5 s over links of 50 and 30 ms: arrivals, and the integral of x_tau."""
    base = clocked(Jump(z - P, {x: 2 * x}, once=True))
    units, initial = {**base.units, u: "bit"}, {**base.initial, u: 0}
    flow = {x: 0, z: 1, u: x_tau}
    echo = replace(base, name="Echo", flow=flow, units=units, initial=initial)
    net = Network().link("a", DropTail, capacity=C, delay=0.05)
    net.link("b", DropTail, capacity=C, delay=0.03)
    net.flow("f", echo, route=["a", "b"], start=0, access_delay=0.01, return_delay=0.07)
    near = 1e-9
    run = simulate(net, 1, t_eval=[0.56 - near, 0.56 + near], rtol=1e-6)
    np.testing.assert_allclose(run.arrival_rate.sel(link="b"), [1e6, 2e6], rtol=1e-12)
    heard = simulate(net, 1, t_eval=[0.16, 0.5, 0.66, 0.66 + near, 0.9]).Echo_u.values[:, 0]
    exact = [0, 0.34e6, 0.5e6, 0.5e6 + 2e6 * near, 0.5e6 + 0.24 * 2e6]
    np.testing.assert_allclose(heard, exact, rtol=1e-9, atol=1e-3)


def test_a_jump_on_a_sample_on_a_start_and_on_a_landing() -> None:
    """At 0.5 s a jump, a start and a sample; at 0.6 s its landing meets the next one's start."""
    leap = clocked(Jump(z - P, {x: 21 * x}, once=True))
    net = alone(leap, math.inf, return_delay=0.075)
    net.flow("g", CBR(rate=3 * MBIT), route=["l"], start=0.5)
    net.flow("h", CBR(rate=1 * MBIT), route=["l"], start=0.6)
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
def test_no_bit_is_made_or_lost_at_a_jump(
    starts: list[float], backoff: float, buffer: float, back: float
) -> None:
    """What entered = what was sent = what left + what is queued + what was lost."""
    net = link(buffer=buffer)
    for i, rate in enumerate(starts):
        law = aimd(beta=backoff)
        (state,) = law.states
        flow, units = {**law.flow, z: state}, {**law.units, z: "bit"}
        initial = {state: rate * MBIT, z: 0}
        meter = replace(law, name="Metered", flow=flow, units=units, initial=initial)
        net.flow(f"f{i}", meter, route=["l"], return_delay=back * (1 + i / 3), start=0)
    ds = simulate(net, 15, samples=200, rtol=1e-8)
    sent = ds.Metered_z.sum("flow").values
    np.testing.assert_allclose(ds.entered[:, 0], sent, rtol=1e-7, atol=1)
    idle = np.minimum(ds.entered - ds.lost - ds.backlog, C * ds.time)
    assert np.all(np.diff(idle[:, 0]) >= -1e-3)
    assert float(ds.backlog.min()) >= 0.0
    assert float(ds.backlog.max()) <= buffer * (1 + 1e-12)


# --- when jumps happen, and what is refused -------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"refractory": 3 * RTT}, {"once": True}, {"once": True, "refractory": RTT}]
)
def test_a_delay_threshold_is_met_exactly(options: dict[str, Any]) -> None:
    """10 ms of queue come after sqrt(2 d C/slope), heard a loop later; half the rate drains it."""
    net = alone(delay_triggered(**options), math.inf, return_delay=BACK)
    ds = simulate(net, 40, rtol=1e-10, atol=1e-13)
    wait = math.sqrt(2 * 0.01 * C / SLOPE) + 0.035 + BACK
    peak = C + SLOPE * wait
    exact = 2.0 + wait + 0.5 * peak / SLOPE * np.arange(ds.attrs["jumps"])
    assert len(exact) == 8
    np.testing.assert_allclose(jumps(ds).time.values, exact, rtol=0, atol=2e-9)


@pytest.mark.parametrize("once", [False, True])
def test_a_refractory_time_ends_with_a_jump_if_the_condition_still_holds(once: bool) -> None:
    """x halves every RTT until the loss is heard to stop; once alone it is passed over."""
    law = aimd(alpha=1e-9)
    if once:
        law = replace(law, jumps=(Jump(pi, {law.states[0]: law.states[0] * 0.9}, once=True),))
    net = alone(law, 1.0, return_delay=BACK, initial={"x": 35 * MBIT})
    ds = simulate(net, 1, rtol=1e-9)
    # 35 and 17.5 Mbit/s overflow, each for a loop
    times = (DELAY + BACK) * np.arange(1, 2 if once else 3)
    np.testing.assert_allclose(jumps(ds).time.values, times, atol=1e-6)
    if once:
        np.testing.assert_allclose(ds.rate[-1, 0], 31.5 * MBIT, rtol=1e-9)


def test_a_link_of_nothing_but_a_queue_notes_when_that_passes_a_level() -> None:
    """At twice the capacity it is there after as long as the level."""
    level, gap = symbols("level gap", positive=True)
    law = replace(
        DropTail, params={**DropTail.params, level: 0.3, gap: 0.01},
        units={**DropTail.units, level: "s", gap: "s"}, claims={},
        jumps=(Jump(DropTail.queue - level, {}, refractory=gap, once=True),),
    )  # fmt: skip
    net = Network().link("l", law, capacity=C, delay=0.05, buffer=2 * C)
    net.flow("f", CBR(rate=2 * C), route=["l"])
    assert jumps(simulate(net, 2)).time.values == pytest.approx([0.3], abs=1e-12)


def test_a_reset_that_makes_its_condition_false_needs_no_refractory_time() -> None:
    ds = simulate(alone(clocked(Jump(z - P, {z: 0, x: x + 1e5 * K}))), 3.3)
    np.testing.assert_allclose(jumps(ds).time.values, 0.5 * np.arange(1, 7), atol=1e-12)
    np.testing.assert_allclose(ds.rate[-1, 0], 1.6e6, rtol=1e-12)


def test_jumps_set_one_another_off_at_the_same_instant() -> None:
    law = clocked(Jump(x - 3e6 * K, {x: 5e5 * K}), Jump(z - P, {z: 0, x: 2 * x}))
    ds = simulate(alone(law), 1.6, t_eval=[0.49, 0.5001, 1.01, 1.51])
    # 4 Mbit/s exists for no time at all.
    np.testing.assert_allclose(ds.rate.values[:, 0], [1e6, 2e6, 5e5, 1e6])
    np.testing.assert_allclose(jumps(ds).time.values, [0.5, 1.0, 1.0, 1.5], atol=1e-12)


@pytest.mark.parametrize("reset", [{x: x / 2}, {z: z}])
def test_jumps_without_end_are_refused(reset: dict[Any, Any]) -> None:
    with pytest.raises(Zeno, match=r"at 0\.5 s jump 0 of flow 'f' \(Clock\) .*refractory"):
        simulate(alone(clocked(Jump(z - P, reset))), 3)


def test_ever_faster_jumps_are_refused() -> None:
    """A ball that loses half its speed at each bounce comes to rest after 3 s."""
    h, v = symbols("h v", real=True)
    gravity = symbols("g", positive=True)
    ball = Source(
        "Ball", {h: v, v: -gravity}, {"rate": K}, {K: 1e6, gravity: 2}, initial={h: 1, v: 0},
        units={h: "1", v: "1/s", gravity: "1/s^2", K: "bit/s"},
        jumps=(Jump(-h, {h: 0, v: -v / 2}),),
    )  # fmt: skip
    net = alone(ball)
    ds = simulate(net, 2.9)
    times = jumps(ds).time.values
    np.testing.assert_allclose(times, 3 - 2 ** (1.0 - np.arange(len(times))), atol=1e-9)
    with pytest.raises(Zeno, match="at 3 s .*Ball"):
        simulate(net, 4)


def test_a_refractory_time_that_is_none_is_refused() -> None:
    law = clocked(Jump(z - P, {z: 0}, refractory=P - 2 * z))
    with pytest.raises(NotFinite, match=r"jump 0 .* 'f' \(Clock\) has a refractory time of -0.5"):
        simulate(alone(law), 3)


def test_a_reset_stays_within_bounds() -> None:
    net = alone(StaticAIMD(b=0.9), 1e3, initial={"W": 60})
    net.flow("u", CBR(rate=9.9 * MBIT), route=["l"], start=0)
    times = jumps(simulate(net, 5)).time.values
    assert len(times) > 2
    after = simulate(net, 5, t_eval=times[2:] + 1e-9)
    np.testing.assert_allclose(after.StaticAIMD_W.sel(flow="f"), 1.0, atol=1e-6)
