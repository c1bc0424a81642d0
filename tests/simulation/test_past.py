"""Runs of laws that know their own past: against `solve_dde`, closed forms and themselves."""

import math
from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.symbols import RTT, e, edot, pi, x_tau

pytestmark = pytest.mark.filterwarnings("error")

x, k, w, T, a = symbols("x k w T a", positive=True)
n, told = symbols("n told", nonnegative=True)
UNITS = {x: "bit/s", k: "1/s", w: "bit/s", T: "s", n: "bit", a: "bit"}


def source(flow: Any, values: Any, start: Any = 5e4, **more: Any) -> fc.Source:
    """A law of its rate x; with the state n of what has been acknowledged, where it knows that."""
    known = {x: flow, n: x_tau / (1 + edot)} if flow.has(n) else {x: flow}
    units = {s: unit for s, unit in UNITS.items() if s in known or s in values}
    initial = {z: v for z, v in {x: start, n: 0}.items() if z in known}
    return fc.Source("Late", known, {"rate": x}, params=values, initial=initial, units=units,
                     lower={x: 0}, **more)  # fmt: skip


LOGISTIC = source(k * x * (1 - fc.ago(x, T) / w), {k: 1, w: 1e5, T: 1.2})
# what has been acknowledged in the last round trip, over it
DELIVERED = (n - fc.ago(n, RTT)) / RTT
STEERED = source(k * (DELIVERED + (a - x * (RTT - T)) / RTT - x), {k: 3, a: 6e4, T: 0.07}, 5e5)


def shared(law: fc.Source = STEERED) -> fc.Network:
    """Two of them, one of which starts later, over a queue that fills: lags change all the time."""
    net = fc.Network().link("l", fc.DropTail, capacity=1e6, delay=0.02)
    net.flow("late", law, route=["l"], start=0.3, access_delay=0.01)
    return net.flow("first", law(k=2), route=["l"], return_delay=0.03)


def run(net: fc.Network, times: Any, rtol: float, **options: Any) -> Any:
    return fc.simulate(net, times[-1], t_eval=times, rtol=rtol, atol=rtol / 100, **options)


def test_a_scalar_law_is_that_of_solve_dde() -> None:
    """x' = k x (1 - x(t - T)/w), with breaking points at T, 2 T, ...: each is met."""
    net, times = fc.dumbbell([LOGISTIC], {"capacity": "1 Mbit/s"}, rtt="50 ms"), np.arange(0, 20.1)
    by_solver = fc.solve_dde(lambda t, y, Z: y * (1 - Z[:, 0] / 1e5), (0, 20), [5e4], [1.2],
                             t_eval=times, rtol=1e-11, atol=1e-6)  # fmt: skip
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        found = run(net, times, rtol)
        assert np.abs(found.rate.values.ravel() - by_solver.y[0]).max() < 10 * rtol * 1e5
        assert found.attrs["breaking_points"] >= 3


def test_the_past_is_the_initial_state_at_first() -> None:
    """x' = -k x(t - T): a straight line, then a parabola, then a cubic, by the method of steps."""
    law, start = source(-k * fc.ago(x, T), {k: 0.2, T: 1.0}, 1e5), 0.7
    net = fc.Network().link("l", fc.DropTail, capacity=1e6, delay=0.02)
    net.flow("f", law, route=["l"], start=start, access_delay=0.01)
    times = np.linspace(start + 1e-6, start + 3, 31)
    s = times - start
    by_hand = sum((-0.2) ** j * np.maximum(s - j + 1, 0) ** j / math.factorial(j) for j in range(4))
    assert np.abs(run(net, times, 1e-6).rate.values.ravel() / 1e5 - by_hand).max() < 1e-9


def test_a_flow_that_starts_again_has_no_earlier_past() -> None:
    """Its second time is its first one, later."""
    net = fc.Network().link("l", fc.DropTail, capacity=1e6, delay=0.02)
    net.flow("f", LOGISTIC(T=0.4), route=["l"], start=[0.5, 8.0], stop=[3.5, 11.0])
    once = run(net, np.arange(0.5, 3.45, 0.1), 1e-9).rate.values
    again = run(net, np.arange(8.0, 10.95, 0.1), 1e-9).rate.values
    np.testing.assert_allclose(again, once, rtol=1e-7)


def test_tighter_tolerances_converge_where_lags_change() -> None:
    """Round trips that a queue stretches, a flow that starts, and breaking points of both."""
    times = np.linspace(0, 6, 61)
    best = run(shared(), times, 1e-11)
    assert float(best.queueing_delay.max()) > 0.05
    errors = [float(np.abs(run(shared(), times, rtol).rate - best.rate).max()) / 1e6
              for rtol in (1e-4, 1e-6, 1e-8)]  # fmt: skip
    assert errors[0] < 1e-3
    assert errors[1] < 1e-5
    assert errors[2] < 1e-7


def with_told(law: fc.Source, what: Any, unit: str) -> fc.Network:
    """A network of one flow, and a state that follows something within 10 us."""
    follows = {**law.flow, told: (what - told) * 1e5 * k}
    units = {**law.units, told: unit, n: "bit", T: "s"}
    given = {s: text for s, text in units.items() if s in follows or s in law.params}
    teller = fc.Source("Told", follows, law.out, params=law.params, lower=law.lower, units=given,
                       initial={**law.initial, told: 0})  # fmt: skip
    return fc.dumbbell([teller], {"capacity": "1 Mbit/s"}, rtt="50 ms")


def test_what_was_delivered_is_what_the_queue_let_through() -> None:
    """Of a flow alone behind a busy queue the delivery rate is the capacity."""
    law = fc.Source("Late", {x: k * (1.2 * w - x), n: x_tau / (1 + edot)}, {"rate": x},
                    params={k: 1, w: 1e6}, initial={x: 1.2e6, n: 0}, lower={x: 0},
                    units={x: "bit/s", n: "bit", k: "1/s", w: "bit/s"})  # fmt: skip
    found = run(with_told(law, DELIVERED, "bit/s"), np.array([0.0, 2.0]), 1e-8)
    assert float(found.told[-1, 0]) == pytest.approx(1e6, rel=1e-4)


@pytest.mark.parametrize("at", [0.31, 2.05])
def test_a_run_goes_on_with_its_past(at: float) -> None:
    """Shortly after a start, when the past is that start, and later."""
    times = np.linspace(0, 4, 401)
    whole = run(shared(), times, 1e-9)
    first = run(shared(), times[times <= at + 1e-9], 1e-9)
    second = run(shared(), times[times >= at - 1e-9], 1e-9, restart=first)
    assert float(np.abs(second.rate - whole.rate.sel(time=second.time)).max()) < 1e-8 * 1e6


def test_signals_of_the_past() -> None:
    """The delay of a time T ago is the delay that is sampled a time T before."""
    law = source(k * (w - x), {k: 1, w: 1.3e6, T: 0.25}, 1e6)
    found = run(with_told(law, fc.ago(e, T), "s"), np.linspace(0, 3, 121), 1e-8)
    follows, delay = found.told.values[40:, 0], found.one_way_delay.values[30:-10, 0]
    np.testing.assert_allclose(follows, delay, atol=1e-5)


THEN = fc.ago(told, 3 * T / 10)


@pytest.mark.parametrize(
    ("rules", "times", "by_hand"),
    [
        ({"jumps": (fc.Jump(when=told - w * T, reset={told: THEN / 2}),)},
         [0, 0.999, 1.001, 1.649, 1.651, 1.75], [0, 0.999, 0.351, 0.999, 0.351, 0.45]),
        ({"ticks": (fc.Tick(T, {told: THEN}),)},
         [0, 0.9, 1.0, 2.0, 3.0, 3.9], [0, 0.9, 0.7, 1.4, 2.1, 3.0]),
    ],
)  # fmt: skip
def test_jumps_and_ticks_know_the_past(rules: Any, times: Any, by_hand: Any) -> None:
    """A rate grows by w a second: at 1 s w it is cut to half of what it was 0.3 s before, 0.35 w,
    from which it takes 0.65 s; or it is set each second to what it was then, 0.7 w, 1.4 w, ...
    """
    law = fc.Source("Saw", {told: w}, {"rate": told}, params={w: 1e5, T: 1.0}, initial={told: 0},
                    units={told: "bit/s", w: "bit/s^2", T: "s"}, **rules)  # fmt: skip
    net = fc.dumbbell([law], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    found = run(net, np.array(times), 1e-8)
    np.testing.assert_allclose(found.rate.values.ravel() / 1e5, by_hand, atol=1e-9)


def test_the_highest_delivery_rate_of_rounds_is_the_capacity() -> None:
    """As BBR has it: of what was delivered in each of the last round trips."""
    best = fc.highest(DELIVERED, over=fc.rounds(8), every=RTT, name="best")
    law = fc.Source("Paced", {x: k * (best - x) + k * w, n: x_tau / (1 + edot)}, {"rate": x},
                    params={k: 1, w: 2e5}, initial={x: 2e5, n: 0}, lower={x: 0},
                    units={x: "bit/s", n: "bit", k: "1/s", w: "bit/s"})  # fmt: skip
    found = run(
        fc.dumbbell([law], {"capacity": "1 Mbit/s"}, rtt="50 ms"), np.array([0.0, 20.0]), 1e-7
    )
    assert float(found.best[-1, 0]) == pytest.approx(1e6, rel=1e-3)
    assert float(found.rate[-1, 0]) == pytest.approx(1.2e6, rel=1e-2)


def test_lags_that_grow_too_fast_are_refused() -> None:
    """A rate that is cut to a hundredth multiplies the lag a/x by a hundred: that past is gone."""
    cut = fc.Jump(when=x - w, reset={x: w / 100}, once=True)
    law = source(k * (fc.ago(x, a / x) - x) + k * w / 4, {k: 1, w: 1e5, a: 5e4}, jumps=[cut])
    net = fc.dumbbell([law], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    with pytest.raises(fc.errors.NotFinite, match=r"a lag of ago\(\) that more"):
        run(net, np.array([0.0, 300.0]), 1e-6)


def test_a_fused_step_is_refused() -> None:
    with pytest.raises(fc.errors.InvalidInput, match="Late knows its own past, which a fused"):
        fc.compile(shared())


def test_marks_of_the_past_go_by_name() -> None:
    """pi(t - T) of a link that never marks is 0."""
    law = source(k * (w - x) - k * x * fc.ago(pi, T), {k: 1, w: 1e5, T: 0.1})
    link: Any = {"capacity": "1 Mbit/s"}
    found, wanted = (
        run(fc.dumbbell([one], link, rtt="50 ms"), np.arange(0, 5.0), 1e-8).rate.values
        for one in (law, source(k * (w - x), {k: 1, w: 1e5}))
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
