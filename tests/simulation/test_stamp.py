"""Where data are marked: on entry to a queue, or as they leave it."""

from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.symbols import c, mark, pi, q_max, y

k, b, w, x, slope = symbols("k b w x slope", positive=True)
q, p = symbols("q p", nonnegative=True)

STAMPS = ("arrival", "departure")
CAPACITY, WAY = 1e6, 0.06  # of the way back, and there is none ahead
#: its rate falls by what is marked of it
HEEDING = fc.Source(
    "Heeding", {x: k * (w - b * x * pi)}, {"rate": x}, params={k: 1, w: 8e5, b: 2}, lower={x: 0},
    units={x: "bit/s", k: "1/s", w: "bit/s", b: "1"}, initial={x: 1.2e6},
)  # fmt: skip
#: marks in proportion to the queue of the moment
RAMP = fc.Link(
    "Ramp", {q: (y - c) / c}, {"mark": slope * q}, queue=q, params={slope: 2}, lower={q: 0},
    upper={q: q_max}, units={q: "s", slope: "1/s"}, initial={q: 0},
)  # fmt: skip


def net(stamp: str, law: Any = HEEDING, flows: int = 1, **link: Any) -> fc.Network:
    made = fc.Network().link("l", RAMP, capacity=CAPACITY, stamp=stamp, **link)
    for i in range(flows):
        made.flow(f"f{i}", law(w=8e5 / flows), route=["l"], return_delay=WAY,
                  initial={"x": 1.2e6 / flows})  # fmt: skip
    return made


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("delays", ["fifo", "frozen"])
@pytest.mark.parametrize("stamp", STAMPS)
def test_what_is_heard_is_the_mark_of_then(stamp: str, delays: str, apart: bool) -> None:
    """Of `WAY` ago, or of the round trip that is measured ago."""
    law = HEEDING
    if apart:
        law = fc.Source("Apart", {x: k * (w - b * x * mark)}, {"rate": x}, params=HEEDING.params,
                        lower={x: 0}, units=HEEDING.units, initial=HEEDING.initial)  # fmt: skip
    times = np.linspace(0, 8, 16001)
    options: Any = {"frozen_at": {"l": 0.05}} if delays == "frozen" else {}
    found = fc.simulate(net(stamp, law), 8, t_eval=times, rtol=1e-8, delays=delays, **options)
    ago = found.rtt.values[:, 0] if stamp == "arrival" else np.full(times.shape, WAY)
    assert np.ptp(found.rtt.values) > 0.05
    if delays == "frozen" and stamp == "arrival":
        ago = np.full(times.shape, WAY + 0.05)
    then = np.interp(times - ago, times, found.link_mark.values[:, 0])
    heard = found.mark.values[:, 0]
    late = times > 0.5
    assert np.abs(heard - then)[late].max() < 1e-5
    assert np.ptp(heard) > 0.1


@pytest.mark.parametrize("flows", [1, 3])
@pytest.mark.parametrize("stamp", STAMPS)
def test_the_loop_is_a_queueing_delay_shorter(stamp: str, flows: int) -> None:
    """z^2 + k b p z + k b slope exp(-z L), with L the round trip, or that less the queue: which
    decides here.
    """
    made = net(stamp, flows=flows)
    rest = float(fc.equilibrium(made).queueing_delay[0])
    assert rest == pytest.approx(0.4 / 2, rel=1e-12)  # w = b x p, p = 2 q
    lag = WAY + rest * (stamp == "arrival")
    found = fc.linearize(made).roots(count=5)
    by_hand = found**2 + 2 * 0.4 * found + 2 * 2 * np.exp(-found * lag)
    assert np.abs(by_hand / found**2).max() < 1e-10
    report, loop = fc.stability(made), fc.DelayLTI.transfer([4.0], [1.0, 0.8, 0.0], lag).margins()
    assert report.stable == (stamp == "departure")
    assert report.phase_margin == pytest.approx(loop.phase, rel=1e-6, nan_ok=True)
    assert report.gain_margin == pytest.approx(loop.gain, rel=1e-6, nan_ok=True)


def test_a_run_decays_as_its_root_says() -> None:
    """A short swing about the rest decays as the rightmost roots have it, each by its stamp."""
    times = np.linspace(6, 12, 601)
    for stamp in STAMPS:
        made = net(stamp)
        root = fc.linearize(made).roots(count=2)[0]
        near = fc.Network().link("l", RAMP, capacity=CAPACITY, stamp=stamp, initial={"q": 0.2})
        near.flow("f", HEEDING, route=["l"], return_delay=WAY, initial={"x": 1.0001e6})
        run = fc.simulate(near, 12, t_eval=times, rtol=1e-10, atol=1e-13)
        swing = run.queueing_delay.values[:, 0] - 0.2
        size, angle = np.exp(root.real * times), root.imag * times
        parts = np.array([size * np.cos(angle), size * np.sin(angle)]).T
        weights, *_ = np.linalg.lstsq(parts, swing)
        assert np.abs(swing).max() > 1e-7
        assert np.abs(parts @ weights - swing).max() < 1e-3 * np.abs(swing).max()


def test_marks_of_a_link_before_another_queue() -> None:
    """What leaves the first queue at T is heard after the second one has let it through."""
    made = fc.Network().link("a", RAMP, capacity=1.1e6, stamp="departure", delay=0.01)
    made.link("b", fc.DropTail, capacity=1e6, delay=0.02, initial={"q": 0.05})
    made.flow("f", HEEDING(w=8.8e5), route=["a", "b"], return_delay=WAY)
    times = np.linspace(0, 6, 48001)
    run = fc.simulate(made, 6, t_eval=times, rtol=1e-8)
    leaves = times + run.queueing_delay.sel(link="b").values  # what enters b then
    left = np.interp(times - WAY - 0.02, leaves, times) - 0.01
    then = np.interp(left, times, run.link_mark.sel(link="a").values)
    late = times > 1.0
    assert np.ptp(run.queueing_delay.sel(link="b").values) > 0.05
    assert np.abs(run.mark.values[:, 0] - then)[late].max() < 1e-5


def test_losses_stay_where_they_are() -> None:
    """Random losses before a queue that marks at departure: both are heard, each of its time."""
    made = net("departure", loss="1 %")
    times = np.linspace(0, 6, 12001)
    run = fc.simulate(made, 6, t_eval=times, rtol=1e-8)
    np.testing.assert_allclose(run.loss.values[times > 0.5], 0.01, rtol=1e-9)
    then = np.interp(times - WAY, times, run.link_mark.values[:, 0])
    assert np.abs(run.mark.values[:, 0] - then)[times > 0.5].max() < 1e-5


def test_a_run_goes_on() -> None:
    times = np.linspace(0, 4, 401)
    options: Any = {"rtol": 1e-9, "atol": 1e-11}
    whole = fc.simulate(net("departure"), 4, t_eval=times, **options)
    first = fc.simulate(net("departure"), 1.5, t_eval=times[:151], **options)
    second = fc.simulate(net("departure"), 4, t_eval=times[150:], restart=first, **options)
    assert np.abs(second.rate.values - whole.rate.values[150:]).max() < 1e-2
    with pytest.raises(fc.errors.InvalidInput, match="the stamp of link 'l' is 'arrival', in rest"):
        fc.simulate(net("arrival"), 4, restart=first)


def test_pi2_at_100_ms_gains_1_6_db() -> None:
    """Ten windows of 50 packets: by its marks at departure the loop bears 1.2 times as much."""
    gains = {}
    for stamp in STAMPS:
        made = fc.Network().link("l", fc.PI2, capacity=4e7, stamp=stamp)
        for i in range(10):
            made.flow(f"f{i}", fc.Reno, route=["l"], packet=8000, return_delay=0.085)
        gains[stamp] = fc.stability(made).gain_margin
    assert 20 * np.log10(gains["departure"] / gains["arrival"]) == pytest.approx(1.6, abs=0.05)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: net("exit"), "stamp of link 'l' is 'exit'"),
        (
            lambda: fc.Network().link("l", fc.DropTail, capacity=1e6, stamp="departure"),
            "stamp of link 'l' is 'departure', but DropTail marks nothing",
        ),
        (
            lambda: fc.equilibrium(net("departure").flow("d", HEEDING, route=["l"], ecn=False)),
            "link 'l' marks at departure, where it cannot drop of flows with ecn=False",
        ),
        (
            lambda: fc.simulate(net("departure"), 1, engine="fused"),
            "a fused step does not take links that mark at departure",
        ),
    ],
)
def test_what_is_refused(make: Any, said: str) -> None:
    with pytest.raises(fc.errors.FluidccError, match=said):
        make()
