"""Sliding: what stays where a law switches, beside closed forms and an integration by phases."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, solve_ivp
from sympy import Heaviside, cos, sign, symbols

import fluidcc as fc
from fluidcc.symbols import RTT, pi, t

x, v, w = symbols("x v w", real=True)
a, b, k, r, mu, force, omega, half = symbols("a b k r mu force omega half", positive=True)
UNITS = {r: "bit/s", k: "1/s", omega: "1/s", b: "s"}


def alone(flow: Any, initial: Any, params: Any = None) -> fc.Network:
    """One flow whose states, plain numbers, do as `flow` says; its rate is of no account."""
    numbers = {r: 1e6, k: 1, **(params or {})}
    law = fc.Source(
        "Own", flow={z: k * f for z, f in flow.items()}, out={"rate": r * (1 + x / 100)},
        params=numbers, initial=initial,
        units={z: UNITS.get(z, "1") for z in (*flow, *numbers)},
    )  # fmt: skip
    return fc.dumbbell({"f": law}, {"capacity": "10 Mbit/s", "buffer": "100 packets"}, rtt="40 ms")


def relay(count: int = 1) -> fc.Network:
    """x' = k (1 - 2 H(x - a)) of a rate x."""
    law = fc.Source(
        "Relay", flow={x: k * (1 - 2 * Heaviside(x - a, 0))}, out={"rate": x},
        params={k: 1e6, a: 2e6}, units={x: "bit/s", k: "bit/s^2", a: "bit/s"}, initial={x: 1e6},
    )  # fmt: skip
    return fc.dumbbell([law] * count, {"capacity": "10 Mbit/s"}, rtt="40 ms")


@pytest.mark.parametrize("engine", ["array", "fused"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_rate_that_both_branches_lead_back_rests_on_the_switch(count: int, engine: str) -> None:
    run = fc.simulate(relay(count), 5, samples=501, engine=engine)
    expected = np.minimum(1e6 + 1e6 * run.time.values, 2e6)
    assert np.abs(run.rate.values.T - expected).max() < 1e-3  # [bit/s], as 1e-9 s
    assert run.attrs["slides"] == count
    assert run.attrs["steps"] < 100


def test_a_run_goes_on_in_the_middle_of_sliding() -> None:
    net = relay()
    whole = fc.simulate(net, 5, samples=51)
    first = fc.simulate(net, 3, samples=31)
    rest = fc.simulate(net, 5, samples=51, restart=first)
    late = whole.rate.sel(time=rest.time.values, method="nearest").values
    assert rest.rate.values == pytest.approx(late, rel=1e-12)
    assert rest.attrs["slides"] == 1


FRICTION = {mu: 0.7, force: 1.0, omega: 0.4}


def rubbing(friction: float = FRICTION[mu]) -> fc.Network:
    """x'' = -x - mu sign(x') + force cos(omega t): an oscillator with dry friction."""
    flow = {x: v, v: -x - mu * sign(v) + force * cos(omega * t)}
    return alone(flow, {x: 0.5, v: 0.0}, {**FRICTION, mu: friction})


def by_phases(end: float, times: Any) -> tuple[Any, int]:
    """The same by slip one way, slip the other way and stick, each to its own event; and how often
    it stuck.
    """
    m, f, om = FRICTION.values()

    def push(now: float, y: Any) -> float:
        return float(f * np.cos(om * now) - y[0])

    def rule(now: float, y: Any, way: int) -> list[float]:
        return [y[1], push(now, y) - way * m] if way else [0.0, 0.0]

    def ends(now: float, y: Any, way: int) -> float:
        return float(way * y[1]) if way else m - abs(push(now, y))

    ends.terminal, ends.direction = True, -1  # type: ignore[attr-defined]
    now, y, way, sticks = 0.0, np.array([0.5, 0.0]), 1, 0
    found = np.full((2, len(times)), np.nan)
    while now < end:
        part = solve_ivp(
            rule, (now, end), y, "DOP853", events=ends, args=(way,), rtol=1e-12, atol=1e-13,
            dense_output=True, max_step=0.02,
        )  # fmt: skip
        inside = (times >= now) & (times <= part.t[-1])
        found[:, inside] = part.sol(times[inside])
        now, y = part.t[-1], np.array([part.y[0, -1], 0.0])
        if way and abs(push(now, y)) < m:
            way, sticks = 0, sticks + 1
        else:
            way = 1 if push(now, y) > 0 else -1
    return found, sticks


def test_dry_friction_sticks_and_slips_as_an_integration_phase_by_phase_does() -> None:
    """While it sticks the mean of both frictions holds it, until that is more than either."""
    times = np.linspace(0.0, 40.0, 401)
    expected, sticks = by_phases(40.0, times)
    assert sticks > 5
    error = []
    for rtol in (1e-5, 1e-8):
        run = fc.simulate(rubbing(), 40, samples=401, rtol=rtol)
        assert run.attrs["slides"] == sticks
        error.append(np.abs(run.Own_x.values.ravel() - expected[0]).max())
        stuck = np.abs(expected[1]) == 0
        assert np.abs(run.Own_v.values.ravel()[stuck]).max() < 1e-12
    assert error[0] < 1e-3
    assert error[1] < 1e-6
    assert error[1] < 0.02 * error[0]


def test_a_slide_along_a_circle_stays_on_it() -> None:
    """x' = -w - x sign(s), w' = x - w sign(s), s = x^2 + w^2 - 1: both lead to the circle, along
    which the mean is a turn of 1 rad/s.
    """
    s = sign(x**2 + w**2 - 1)
    run = fc.simulate(alone({x: -w - x * s, w: x - w * s}, {x: 0.5, w: 0.0}), 60, samples=601)
    here, there, time = run.Own_x.values.ravel(), run.Own_w.values.ravel(), run.time.values
    on = time > np.log(2)  # the radius doubles until it slides
    assert np.abs(here**2 + there**2 - 1)[on].max() < 1e-6  # of the dense output
    end = here[-1] ** 2 + there[-1] ** 2
    assert end == pytest.approx(1, abs=1e-7)
    assert np.abs(here - np.where(on, 1, 0.5 * np.exp(time)) * np.cos(time)).max() < 1e-4
    assert run.attrs["slides"] == 1


def test_a_slide_ends_where_the_mean_leaves_the_branches() -> None:
    """x' = w - sign(x - 1) with w = t/2: x stays at 1 as long as w < 1, which is until t = 2."""
    net = alone({x: w - sign(x - 1), w: half}, {x: 0.0, w: 0.0}, {half: 0.5})
    run = fc.simulate(net, 6, samples=601)
    time, value = run.time.values, run.Own_x.values.ravel()
    # x = t + t^2/4 up to 1, 1 up to w = 1, then 1 + the integral of w - 1
    expected = np.minimum(time + time**2 / 4, 1) + np.maximum(time - 2, 0) ** 2 / 4
    assert np.abs(value - expected).max() < 1e-8
    assert run.attrs["slides"] == 1


REFUSED = {
    "two switches of a law at once": ({x: -sign(x - 1), w: -sign(w - 2)}, 2),
    "a switch that compares with a signal": ({x: -sign(x - 1 - pi)}, 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_slides_by_no_mean_that_is_known_is_refused_at_once(name: str) -> None:
    flow, time = REFUSED[name]
    net = alone(flow, dict.fromkeys(flow, 0.0))
    message = rf"flow 'f' \(Own\) changes its mode without end at {time}[.0-9]* s: it slides"
    with pytest.raises(fc.errors.StepCollapse, match=message):
        fc.simulate(net, 5)


def crossed(law: fc.Source, traffic: Any, **link: Any) -> fc.Network:
    """The flow "f" over a queue that constant rates, each from its time on, drive too."""
    net = fc.Network().link("l", fc.DropTail, **{"capacity": "10 Mbit/s", "delay": "20 ms", **link})
    net.flow("f", law, route=["l"], return_delay="20 ms")
    return net.flow("c", fc.CBR(rate=1e6), route=["l"], pattern=traffic)


FOLLOWER = fc.Source(
    "Follower", {x: -k * sign(x - RTT / b)}, {"rate": r * (1 + x / 100)}, {r: 1e5, k: 3.0, b: 1.0},
    {x: "1", r: "bit/s", k: "1/s", b: "s"}, initial={x: 0.0},
)  # fmt: skip
RAMPS = [(0, 5e6), (1, 12e6), (2, 10e6), (2.5, 16e6), (3, 3e6), (4, 15e6)]
CHANGES = [(0, "10 Mbit/s"), (1.5, "5 Mbit/s"), (2.2, "20 Mbit/s")]


@pytest.mark.parametrize("engine", ["array", "fused"])
@pytest.mark.parametrize("capacity", ["10 Mbit/s", CHANGES])
@pytest.mark.parametrize("speed", [0.15, 1.0, 3.0])
def test_a_state_follows_the_round_trip_as_fast_as_it_can(
    speed: float, capacity: Any, engine: str
) -> None:
    """x' = -k sign(x - RTT/b): x is RTT/b where that changes by less than k, and else nears it by
    k: step by step from the run's own round trip.
    """
    net = crossed(FOLLOWER(k=speed), RAMPS, capacity=capacity)
    run = fc.simulate(net, 6, samples=60_001, engine=engine)
    trip, most = run.rtt.sel(flow="f").values, speed * 1e-4
    expected = np.zeros(len(trip))
    for i in range(1, len(trip)):
        expected[i] = np.clip(trip[i], expected[i - 1] - most, expected[i - 1] + most)
    found = run.Follower_x.sel(flow="f").values.ravel()
    assert np.abs(found - expected).max() < 2 * most
    assert run.attrs["slides"] >= 1
    assert run.attrs["steps"] < 200


def test_a_rate_that_slides_on_its_window_sends_what_the_window_does() -> None:
    """x' = -k sign(x RTT - a), fast enough, beside a law that sends a/RTT at once."""
    units, first = {x: "bit/s", k: "bit/s^2", a: "bit"}, {x: 6e5 / 0.04}
    slides = fc.Source("Slides", {x: -k * sign(x * RTT - a)}, {"rate": x}, {k: 5e8, a: 6e5}, units,
                       initial=first)  # fmt: skip
    at_once = fc.Source("AtOnce", {x: k * (1 - x * RTT / a)}, {"rate": a / RTT}, {k: 1, a: 6e5},
                        units, initial=first)  # fmt: skip
    traffic, error = [(0, 0), (2, 3e6), (4, 0), (5, 6e6)], []
    for rtol in (1e-5, 1e-8):
        runs = [fc.simulate(crossed(law, traffic), 8, rtol=rtol) for law in (slides, at_once)]
        rates = [run.rate.sel(flow="f").values for run in runs]
        error.append(np.abs(rates[0] / rates[1] - 1).max())
        assert runs[0].attrs["slides"] >= 1
    assert error[0] < 1e-3
    assert error[1] < 1e-6


def test_with_frozen_delays_no_rate_of_change_of_the_round_trip_is_known() -> None:
    with pytest.raises(fc.errors.StepCollapse, match="no rate of change is known"):
        fc.simulate(crossed(FOLLOWER, RAMPS), 6, delays="frozen")


def test_a_slide_ends_where_another_switch_of_the_law_changes() -> None:
    """x slides on 1 until w passes 2, from where on both branches lead upwards."""
    net = alone({x: -sign(x - 1) + 1 + sign(w - 2), w: 1}, {x: 0.5, w: 0.0})
    run = fc.simulate(net, 4, samples=401)
    time = run.time.values
    expected = np.minimum(0.5 + time, 1) + np.maximum(time - 2, 0)
    assert run.Own_x.values.ravel() == pytest.approx(expected, abs=1e-8)
    assert run.attrs["slides"] == 1


def test_runs_of_a_sweep_are_the_same_to_the_last_bit() -> None:
    """However many of them run side by side."""
    grid, until = [0.3, 0.4, 0.5], 10
    runs = [fc.simulate(rubbing(friction), until) for friction in grid]
    one_by_one = [float(run.Own_x.values.ravel()[-1]) for run in runs]
    for workers in (1, 2):
        swept = fc.sweep(
            rubbing(), {"mu": grid}, {"x": lambda p: float(p.run.Own_x.values.ravel()[-1])},
            until=until, workers=workers, executor="threads",
        )  # fmt: skip
        assert swept.x.values.tolist() == one_by_one


def test_no_end_of_a_slide_hides_in_a_long_step() -> None:
    """A stick in which nothing moves, so that the step would grow, pushed off twice for some
    seconds; it comes back as a queue of load 2 cos^40 drains.
    """
    push = 2 * cos(omega * t) ** 40
    run = fc.simulate(alone({x: push - sign(x)}, {x: 0.0}, {omega: 0.1}), 60, samples=61)
    times = np.linspace(0, 60, 600_001)
    load = cumulative_trapezoid(2 * np.cos(0.1 * times) ** 40 - 1, times, initial=0)
    expected = load - np.minimum.accumulate(load)
    assert run.Own_x.values.ravel() == pytest.approx(expected[::10_000], abs=1e-6)
    assert run.attrs["slides"] == 2
