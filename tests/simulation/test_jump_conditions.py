"""When jumps happen: conditions, refractory times, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import symbols

from fluidcc.base.errors import LawError, NotFinite, Zeno
from fluidcc.laws import Jump, Source
from fluidcc.links import DropTail
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, CBR
from fluidcc.symbols import RTT, c, pi, y
from tests.hybrid_laws import (
    BACK,
    DELAY,
    MBIT,
    SLOPE,
    C,
    K,
    P,
    aimd,
    alone,
    clocked,
    delay_triggered,
    x,
    z,
)


@pytest.mark.parametrize(
    "options", [{"refractory": 3 * RTT}, {"once": True}, {"once": True, "refractory": RTT}]
)
def test_a_delay_threshold_is_met_exactly(options: dict[str, Any]) -> None:
    """10 ms of queue come after sqrt(2 d C/slope), heard a loop later; half the rate drains it."""
    net = alone(delay_triggered(**options), math.inf, return_delay=BACK)
    ds = simulate(net, 40, rtol=1e-10, atol=1e-13)
    wait = math.sqrt(2 * 0.01 * C / SLOPE) + 0.035 + BACK
    peak = C + SLOPE * wait
    exact = 2.0 + wait + 0.5 * peak / SLOPE * np.arange(len(ds.jump))
    assert len(exact) == 8
    np.testing.assert_allclose(ds.jump_time, exact, rtol=0, atol=2e-9)


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
    np.testing.assert_allclose(ds.jump_time, times, atol=1e-6)
    if once:
        np.testing.assert_allclose(ds.rate[-1, 0], 31.5 * MBIT, rtol=1e-9)


def test_a_reset_that_makes_its_condition_false_needs_no_refractory_time() -> None:
    ds = simulate(alone(clocked(Jump(z - P, {z: 0, x: x + 1e5 * K}))), 3.3)
    np.testing.assert_allclose(ds.jump_time, 0.5 * np.arange(1, 7), atol=1e-12)
    np.testing.assert_allclose(ds.rate[-1, 0], 1.6e6, rtol=1e-12)


def test_jumps_set_one_another_off_at_the_same_instant() -> None:
    law = clocked(Jump(x - 3e6 * K, {x: 5e5 * K}), Jump(z - P, {z: 0, x: 2 * x}))
    ds = simulate(alone(law), 1.6, t_eval=[0.49, 0.5001, 1.01, 1.51])
    # 4 Mbit/s exists for no time at all.
    np.testing.assert_allclose(ds.rate.values[:, 0], [1e6, 2e6, 5e5, 1e6])
    np.testing.assert_allclose(ds.jump_time, [0.5, 1.0, 1.0, 1.5], atol=1e-12)


@pytest.mark.parametrize("reset", [{x: x / 2}, {z: z}])
def test_jumps_without_end_are_refused(reset: dict[Any, Any]) -> None:
    with pytest.raises(Zeno, match=r"jump 0 of flow 'f' \(Clock\) .* at 0\.5 s.*refractory"):
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
    np.testing.assert_allclose(ds.jump_time, 3 - 2 ** (1.0 - np.arange(len(ds.jump))), atol=1e-9)
    with pytest.raises(Zeno, match="Ball.* at 3 s"):
        simulate(net, 4)


def test_a_refractory_time_that_is_none_is_refused() -> None:
    law = clocked(Jump(z - P, {z: 0}, refractory=P - 2 * z))
    with pytest.raises(NotFinite, match=r"jump 0 .* 'f' \(Clock\) has a refractory time of -0.5"):
        simulate(alone(law), 3)


def test_a_queue_cannot_be_reset() -> None:
    (q,) = DropTail.states
    with pytest.raises(LawError, match="jump 0 changes the queue"):
        replace(DropTail, jumps=(Jump(y - c, {q: 0}),))


def test_a_reset_stays_within_bounds() -> None:
    net = alone(AIMD(b=0.9), 1e3, initial={"W": 60})
    net.flow("u", CBR(rate=9.9 * MBIT), route=["l"], start=0)
    times = simulate(net, 5).jump_time.values
    assert len(times) > 2
    after = simulate(net, 5, t_eval=times[2:] + 1e-9)
    np.testing.assert_allclose(after.AIMD_W.sel(flow="f"), 1.0, atol=1e-6)
