"""Window-based sources: the ack clock, what they know of the queue, and where they settle."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sympy import diff, simplify, symbols

import fluidcc as fc
from fluidcc.base.errors import LawError
from fluidcc.formulas import delay_aimd, fast
from fluidcc.laws import Tick
from fluidcc.sources.clocks import exactly, paced
from fluidcc.sources.windows import low
from fluidcc.symbols import RTT as RTT_SYMBOL
from fluidcc.symbols import plain, unfold

C, PACKET, RTT = 100e6, 8000.0, 0.04


def dumbbell(
    law: fc.Source, starts: list[float], capacity: float = C, rtt: float = RTT
) -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=capacity, delay=rtt / 2)
    for k, start in enumerate(starts):
        net.flow(f"f{k}", law, route=["l"], start=start, packet=PACKET)
    return net


@pytest.fixture(scope="module")
def arrivals() -> xr.Dataset:
    net = dumbbell(fc.FAST, [0.0, 15.0, 30.0])
    return fc.simulate(net, 50.0, t_eval=[14.9, 29.9, 49.9], rtol=1e-7)


def test_successive_arrivals_settle_at_the_recursion(arrivals: xr.Dataset) -> None:
    backlog, rate = fast.arrival_recursion(3, C / PACKET, 50.0)
    np.testing.assert_allclose(arrivals.backlog.values[:, 0] / PACKET, backlog, rtol=5e-3)
    np.testing.assert_allclose(arrivals.rate.values / PACKET, rate, rtol=2e-2, atol=1.0)


def test_a_flow_sees_the_queue_above_what_it_met(arrivals: xr.Dataset) -> None:
    met = np.array([0.0, *arrivals.queueing_delay.values[:2, 0]])
    seen = arrivals.queueing_delay.values[-1, 0] - met
    np.testing.assert_allclose(arrivals.FAST_delta.values[-1], seen, rtol=5e-3)


def test_the_static_window_settles_at_the_same_rates_with_a_gain_that_suits_it() -> None:
    net = dumbbell(fc.StaticFAST(gamma=1), [0.0, 10.0])
    ds = fc.simulate(net, 30.0, t_eval=[9.9, 30.0], rtol=1e-7)
    backlog, rate = fast.arrival_recursion(2, C / PACKET, 50.0)
    np.testing.assert_allclose(ds.rate.values / PACKET, rate, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(ds.backlog.values[:, 0] / PACKET, backlog, rtol=1e-4)


@pytest.mark.parametrize("law", [fc.FAST, fc.HTCP(beta_max=0.7), fc.DelayAIMD])
def test_a_flow_without_start_begins_with_an_empty_path(law: fc.Source) -> None:
    """A rate that had always been there would fill the path with data, sent round for ever."""
    flow = {"law": law, "packet": PACKET, "initial": {"w": 200}}
    link = {"capacity": C, "delay": RTT / 2, "buffer": 1000 * PACKET}
    runs = [fc.simulate(fc.dumbbell([{**flow, "start": s}], link), 10.0) for s in (None, 0)]
    xr.testing.assert_equal(*runs)
    flight = runs[0][f"{law.name}_F"].values[-1, 0]
    under_way = (RTT + runs[0].queueing_delay.values[-1, 0]) * C / PACKET
    assert flight == pytest.approx(under_way, rel=0.01)
    assert runs[0].utilisation.values[-1, 0] == pytest.approx(1.0, abs=0.01)


def test_a_flow_without_start_goes_on_at_a_restart() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=C, delay=RTT / 2)
    net.flow("a", fc.FAST, route=["l"], packet=PACKET)
    first = fc.simulate(net, 5.0, samples=2, rtol=1e-8)
    whole = fc.simulate(net, 8.0, t_eval=[8.0], rtol=1e-8)
    on = fc.simulate(net, 8.0, t_eval=[8.0], rtol=1e-8, restart=first)
    np.testing.assert_allclose(on.FAST_F.values, whole.FAST_F.values, rtol=1e-6)


@pytest.mark.parametrize(("law", "window", "buffer"), [
    (fc.PlainDelayAIMD, 600, 100), (fc.DelayAIMD(slope=0, coefficient=0), 841.5, 400),
    (fc.HTCP, 880, 100),
])  # fmt: skip
def test_an_exact_clock_takes_every_jump_round_and_round(
    law: fc.Source, window: float, buffer: int
) -> None:
    """The rate of the first burst jumps, and comes round as it is, to where it landed first."""
    net = fc.Network().link("l", fc.DropTail, capacity=50e6, delay=0.06, buffer=buffer * PACKET)
    net.flow("f", law(pace=0), route=["l"], start=0, packet=PACKET, initial={"w": window})
    run = fc.simulate(net, 6.0, samples=6001, rtol=1e-10, atol=1e-13)
    for k in range(1, 8):
        assert np.min(np.abs(fc.metrics.breaks(run) - 0.12 * k)) < 1e-12
    assert run.rate.values.min() >= 0.0
    last = run.sel(time=slice(6.0 - float(run.rtt.values[-1, 0]), None))
    under_way = np.trapezoid(last.rate.values[:, 0], last.time.values) / PACKET
    assert run[f"{law.name}_F"].values[-1, 0] == pytest.approx(under_way, rel=0.03)


def test_windows_at_their_least_stay_under_way() -> None:
    """Twenty flows have a packet each in flight, however short a queue they want."""
    net = dumbbell(fc.Vegas(alpha=0.01), [0.0] * 20, capacity=1e6)
    run, rest = fc.simulate(net, 20.0, samples=3, rtol=1e-8), fc.equilibrium(net)
    queue = 20 * PACKET / 1e6 - RTT
    assert float(rest.queueing_delay[0]) == pytest.approx(queue, rel=1e-9)
    assert float(run.queueing_delay[-1, 0]) == pytest.approx(queue, rel=1e-4)
    np.testing.assert_allclose(run.Vegas_F.values[-1], 1.0, rtol=1e-4)
    assert "the windows of 20 flows are below 3 packets, 1 on average" in run.attrs["warnings"]


def test_small_windows_are_told_of_at_an_equilibrium_and_with_a_verdict() -> None:
    """Three flows that want less than a packet in the queue, and one that wants nine."""
    net = fc.Network().link("l", fc.DropTail, capacity=10 * PACKET, delay=RTT / 2)
    for k, alpha in enumerate((0.9, 0.9, 0.9, 9.0)):
        net.flow(f"f{k}", fc.StaticFAST(alpha=alpha), route=["l"], packet=PACKET)
    rest, text = fc.equilibrium(net), "the windows of 3 flows are below 3 packets"
    windows = [rest.states[f"f{k}"]["w"] for k in range(4)]
    assert min(windows) < 3 < max(windows)
    assert len(rest.warnings) == 1
    assert rest.warnings[0].startswith(f"{text}, {windows[0]:.2g} at the least: timeouts")
    assert rest.warnings[0] in repr(rest)
    assert rest.warnings[0] in rest._repr_html_()
    report = fc.stability(net)
    assert report.warnings == rest.warnings
    assert text in str(report)
    large = fc.Network().link("l", fc.DropTail, capacity=1000 * PACKET, delay=RTT / 2)
    assert fc.equilibrium(large.flow("f", fc.StaticFAST, route=["l"], packet=PACKET)).warnings == ()


def test_a_late_ledbat_flow_starves_the_first() -> None:
    """Each adds its target to what it takes for propagation, until the first is at its least, 2.

    Till then growth and fall cancel: the queue is the target and half of what the latecomer met
    (bittorrent/libutp#73, freenet/freenet-core#2472).
    """
    target = met = 0.02
    net = dumbbell(fc.LEDBAT(target=target), [0.0, 40.0], 10e6)
    ds = fc.simulate(net, 120.0, t_eval=[44, 46, 120], rtol=1e-8)
    taken = ds.rtt.values[:, 1] - ds.LEDBAT_delta.values[:, 1]
    assert taken == pytest.approx(np.full(3, RTT + met), rel=1e-5)
    queues = [target + met / 2] * 2 + [target + met]
    assert ds.queueing_delay.values[:, 0] == pytest.approx(queues, rel=2e-3)
    first = ds.LEDBAT_w.values[:, 0]
    a_round_trip = (first[1] - first[0]) / 2 * (RTT + target + met / 2)
    assert a_round_trip == pytest.approx(-met / (2 * target), rel=1e-2)
    assert first[2] == pytest.approx(2.0, abs=1e-6)


@pytest.fixture(scope="module")
def sawtooth() -> xr.Dataset:
    """Fig. 2 of the paper: 50 Mbit/s, 120 ms, a buffer of 400 packets, tau0 = 20 ms."""
    flow = {"law": fc.PlainDelayAIMD, "start": 0, "packet": PACKET, "initial": {"w": 600}}
    link = {"capacity": "50 Mbit/s", "delay": "60 ms", "buffer": "400 packets"}
    net = fc.dumbbell([flow], link)
    return fc.simulate(net, 30.0, samples=3001, rtol=1e-7)


def test_delay_based_backoffs_are_periodic_and_keep_the_link_busy(sawtooth: xr.Dataset) -> None:
    times = fc.metrics.jumps(sawtooth).query("rule == 0").time.values
    periods = np.diff(times)
    assert np.ptp(periods[-4:]) < 1e-4 * periods[-1]
    tail = sawtooth.sel(time=slice(times[-3], None))
    assert float(tail.utilisation.min()) == pytest.approx(1.0, abs=1e-6)
    assert float(sawtooth.lost.max()) == 0.0


def test_the_queue_swings_between_nearly_empty_and_the_threshold(sawtooth: xr.Dataset) -> None:
    """News of the threshold comes a round trip late, in which the window goes on growing."""
    tail = sawtooth.sel(time=slice(20.0, None))
    top, low = float(tail.queueing_delay.max()), float(tail.queueing_delay.min())
    growth = delay_aimd.increase(2.63) / (50e6 / PACKET)  # seconds of queue a round trip
    assert 0.02 < top < 0.02 + 1.5 * growth
    assert 0.0 <= low < 0.2 * top


def test_a_loss_halves_nothing_but_leaves_beta() -> None:
    """H-TCP on a short buffer: beta is the ratio of the round trips, within its bounds."""
    flow = {"law": fc.HTCP, "start": 0, "packet": PACKET, "initial": {"w": 100}}
    link = {"capacity": "20 Mbit/s", "delay": "30 ms", "buffer": "100 packets"}
    net = fc.dumbbell([flow], link)
    ds = fc.simulate(net, 20.0, samples=20001, rtol=1e-7)
    window = ds.HTCP_w.values[:, 0]
    drops = np.flatnonzero(np.diff(window) < -10)
    left = window[drops + 1] / window[drops]
    ratio = 0.06 / (0.06 + 100 * PACKET / 20e6)
    assert len(drops) > 2
    np.testing.assert_allclose(left[1:], max(0.5, ratio), rtol=2e-2)


def test_a_flow_that_never_saw_its_path_empty_is_told_of() -> None:
    """The second FAST flow meets the 4 ms that the first one keeps in the queue."""
    warned = fc.simulate(dumbbell(fc.FAST, [0.0, 10.0]), 15.0, samples=151).attrs["warnings"]
    assert "flow 'f1' has never seen its path empty" in warned
    assert "it knows is 44 ms, that of the empty path 40 ms, so it takes 4 ms of queue" in warned
    assert "start it on an empty path" in warned
    assert fc.simulate(dumbbell(fc.FAST, [0.0, 0.0]), 5.0, samples=51).attrs["warnings"] == ""


@pytest.mark.parametrize(
    ("law", "link", "rtt", "until"),
    [
        (fc.PatchedTIMELY, {"capacity": "10 Gbit/s", "buffer": "10 ms"}, "450 us", "0.1 s"),
        (fc.SmoothedDelayAIMD, {"capacity": "10 Mbit/s", "buffer": "0.2 s"}, "100 ms", "20 s"),
    ],
    ids=["TIMELY", "SmoothedDelayAIMD"],
)
def test_a_change_and_a_smoothed_round_trip_are_not_the_smallest_one(
    law: fc.Source, link: Any, rtt: str, until: str
) -> None:
    """Both saw their path empty, and keep that beside changes and means of the delay."""
    run = fc.simulate(fc.dumbbell([law] * 2, link, rtt=rtt), until)
    assert run.attrs["warnings"] == ""


@pytest.mark.parametrize("name", ["delta_p", "gamma", "pace", "trickle"])
def test_parts_of_one_are_at_most_one(name: str) -> None:
    assert fc.DelayAIMD(**{name: 1}).parameter(name) == 1
    says = f"DelayAIMD: parameter {name} is 1.01, but must be at most 1"
    with pytest.raises(LawError, match=says):
        fc.DelayAIMD(**{name: 1.01})


def test_a_threshold_below_the_smallest_queue_is_told_of() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity="20 Mbit/s", delay="30 ms")
    law = fc.PlainDelayAIMD(tau0=0.004)
    net.flow("f", law, route=["l"], start=0, packet=PACKET, initial={"w": 160})
    quiet = fc.simulate(net, 20.0, samples=2001).attrs["warnings"]
    assert quiet == ""
    net.flow("others", fc.CBR(rate=19.9e6), route=["l"], start=5)
    net.flow("more", fc.CBR(rate=1e6), route=["l"], start=5, stop=6)
    warned = fc.simulate(net, 20.0, samples=2001).attrs["warnings"]
    assert "the threshold of flow 'f', 4 ms, lies below the smallest queueing delay" in warned


@pytest.mark.slow
def test_the_smallest_round_trip_can_be_taken_anew_every_so_many_seconds() -> None:
    """In place of a minimum over a sliding window, which no fixed number of states keeps."""
    period, law = symbols("W", positive=True), fc.PlainDelayAIMD(delta_p=0.9)
    forgetful = replace(
        law, name="Forgetful", ticks=(Tick(every=period, update={low: RTT_SYMBOL}),), claims={},
        params={**law.params, period: 5}, units={**law.units, period: "s"},
    )  # fmt: skip
    net = fc.Network().link("l", fc.DropTail, capacity=50e6, delay=0.06, buffer=400 * PACKET)
    net.flow("f", forgetful, route=["l"], start=0, packet=PACKET, initial={"w": 600})
    run = fc.simulate(net, 16.0, t_eval=[9.9, 10.0, 15.9], rtol=1e-7)
    assert fc.metrics.ticks(run).time.values.tolist() == [5.0, 10.0, 15.0]
    before, at, later = run.Forgetful_low.values[:, 0]
    assert before == pytest.approx(0.12, rel=1e-6)
    assert at == pytest.approx(run.rtt.values[1, 0], rel=1e-9)
    assert at > 0.13
    assert later < 0.9 * at + 0.01  # (4) looks for it again


@pytest.mark.parametrize("law", [fc.FAST, fc.Vegas, fc.HTCP], ids=lambda law: law.name)
def test_acknowledgements_are_smoothed_over_one_round_trip(law: fc.Source) -> None:
    """A mean of the past with weights exp(-t/RTT)/RTT: its time constant is the round trip."""
    assert simplify(diff(law.flow[paced], paced) + 1 / RTT_SYMBOL) == 0


# --- H-TCP's increase, in a law and in closed forms -----------------------------------------------


def test_the_law_grows_by_the_increase_of_equation_2() -> None:
    law = fc.PlainDelayAIMD
    named = {plain(s): s for s in (*law.flow, *law.params)}
    per_ack = unfold(
        law.flow[named["w"]] / exactly
    )  # (1): alpha over the window at each acknowledgement
    growth = (per_ack * named["w"]).subs({named["alpha"]: 1, named["slope"]: 10})
    form = delay_aimd.increase.form.subs(
        {s: named[plain(s)] for s in delay_aimd.increase.arguments}, simultaneous=True
    )
    assert simplify(growth - form) == 0
