"""Jumps in the network engine: exact cycles, and what follows from a jump."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc import sources
from fluidcc.base.errors import FluidccWarning
from fluidcc.laws import Jump, Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, CBR, IIAD, SQRT
from fluidcc.symbols import x_tau
from tests.hybrid_laws import (
    BACK,
    BUFFER,
    DELAY,
    MBIT,
    SLOPE,
    C,
    P,
    Sawtooth,
    aimd,
    alone,
    clocked,
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
    shift = Sawtooth.first + Sawtooth.period * np.arange(len(ds.jump))
    np.testing.assert_allclose(ds.jump_time, shift, rtol=0, atol=1e-10)
    assert list(np.unique(ds.jump_of)) == ["f"]
    assert ds.attrs["jumps"] == len(ds.jump) == 10
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


def test_n_equal_flows_are_one_of_n_fold_increase() -> None:
    many, one = link(), alone(aimd(alpha=4), return_delay=BACK, initial={"x": 4e6})
    for i in range(4):
        many.flow(f"f{i}", aimd(), route=["l"], return_delay=BACK, start=0, initial={"x": 1e6})
    a, b = (simulate(net, 20, rtol=1e-9) for net in (many, one))
    np.testing.assert_allclose(a.jump_time.values.reshape(-1, 4)[:, 0], b.jump_time, atol=1e-10)
    np.testing.assert_allclose(a.rate.sum("flow"), b.rate[:, 0], rtol=1e-8)


def test_windows_cycle_as_the_integral_of_the_window_says() -> None:
    """Over hardly a buffer the RTT is constant: W^(k+1)/(k+1) grows by alpha a round trip."""
    trip = DELAY + BACK
    for law, k, l in ((AIMD, 0, 1), (IIAD, 1, 0), (SQRT, 0.5, 0.5)):
        net = alone(law, 1e-4, return_delay=BACK, initial={"W": 80})
        ds = simulate(net, 60, rtol=1e-10, atol=1e-13)
        packet = net.flows["f"].packet
        top = C * trip / packet  # the window that fills the link
        fill = math.sqrt(2 * 1e-4 / (top**-k * packet / trip**2))  # until those few bits are full
        later = top ** (k + 1) + (k + 1) * (1 + fill / trip)
        over = later ** (1 / (k + 1))  # and a round trip later
        low = over - 0.5 * over**l
        period = trip * (over ** (k + 1) - low ** (k + 1)) / (k + 1)
        gaps = np.diff(ds.jump_time.values)
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


@pytest.mark.parametrize(
    "law", [getattr(sources, name) for name in sources.__all__], ids=lambda law: law.name
)
def test_every_source_runs_on_a_link_beside_another(law: Source) -> None:
    net = alone(law, 60e3).flow("g", AIMD, route=["l"], initial={"W": 70})
    told: Any = nullcontext()
    if law.name.endswith("ECF"):  # waits for routers that report, and here there is none
        told = pytest.warns(FluidccWarning, match="no router on the route of f")
    with told:
        ds = simulate(net, 3, samples=50)
    assert np.all(np.isfinite(ds.rate))
    assert float(ds.rate.min()) >= 0.0
    assert float(ds.lost[-1, 0]) > 0.0
