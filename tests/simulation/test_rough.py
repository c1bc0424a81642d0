"""Rates that no state smooths: kinks come round for ever, errors are those of the tolerance."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from sympy import symbols

from fluidcc.laws import Jump, Source
from fluidcc.links import DropTail, PenaltyLink
from fluidcc.metrics import breaks
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.sampling import rate_at
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import (
    FAST,
    HTCP,
    LDCC,
    LEDBAT,
    BBRv3,
    DelayAIMD,
    PlainDelayAIMD,
    ScalableSource,
    ScalableTCP,
    SlowStartAIMD,
    StaticAIMD,
    Vegas,
)
from fluidcc.sources.windows import w, window
from fluidcc.symbols import RTT
from tests.compiled import called
from tests.scan.stepped import VEGAS, Flow
from tests.scan.stepped import Link as Steps
from tests.scan.stepped import run as stepped

TIGHT = 1e-7


def three_links() -> Network:
    net = Network().link("k", DropTail, capacity=8.3e6, delay=0.0037, buffer=36e3)
    net.link("l", DropTail, capacity=7.9e6, delay=0.031, buffer=196e3)
    net.link("m", DropTail, capacity=17.7e6, delay=0.0012, buffer=78e3)
    net.flow("a", HTCP, route=["k", "l", "m"], start=0)
    return net.flow("b", FAST, route=["m"], start=0.3)


def exact_clocks() -> Network:
    net = Network().link("l", DropTail, capacity=7e6, delay=0.005, buffer=24e3)
    net.flow("a", Vegas(alpha=60, pace=0), route=["l"], start=0, access_delay=0.0055)
    net.flow("b", Vegas, route=["l"], start=0.33)
    return net.flow("c", Vegas(pace=0), route=["l"], start=0.2, access_delay=0.0025)


def run(net: Network, until: float, rtol: float, engine: str = "array") -> xr.Dataset:
    return simulate(net, until, samples=41, rtol=rtol, engine=engine)


def near(found: Any, exact: Any, share: float, what: str = "") -> None:
    """Equal up to a share of the largest."""
    exact = np.asarray(exact)
    np.testing.assert_allclose(found, exact, rtol=0, atol=share * exact.max(), err_msg=what)


def carried(rounds: float) -> float:
    """Error in what was sent, over the tolerance of it.

    A share of rtol is missed of what is in flight in a round trip, and is in all rounds to come.
    """
    return 0.5 * rounds


@pytest.mark.parametrize(
    ("net", "until", "trip"), [(three_links(), 1.5, 0.0718), (exact_clocks(), 0.9, 0.021)]
)
def test_errors_are_those_that_come_round(net: Network, until: float, trip: float) -> None:
    best = run(net, until, TIGHT)
    for rtol in (1e-4, 1e-5):
        found = run(net, until, rtol)
        for name in ("entered", "lost"):
            near(found[name], best[name], carried(until / trip) * rtol, f"{name} at {rtol}")


@pytest.mark.slow
def test_exact_clocks_are_those_of_another_solver() -> None:
    """To the three digits that Euler's method has."""
    until, step, start = 0.9, 6.25e-6, (10.0, 0.0, 0.0, 0.0)
    laws = [(VEGAS, parameters, start) for parameters in ((60.0, 0.0), (2.0, 0.05), (2.0, 0.0))]
    access, begins = np.array([0.0055, 0.0, 0.0025]), (0.0, 0.33, 0.2)
    flows = [
        Flow(law, (0,), near, near + 0.005, begin)
        for law, near, begin in zip(laws, access, begins, strict=True)
    ]
    sent, _ = stepped([Steps("DropTail", 7e6, 0.005, 24e3)], flows, until, step)
    found = run(exact_clocks(), until, 1e-5)
    at = found.time.values[:, None] - access
    each = [np.interp(at[:, i], step * np.arange(sent.shape[1]), sent[i]) for i in range(3)]
    near(found.entered.values[:, 0], sum(each), 1e-3)
    assert float(found.lost[-1, 0]) > 0.1 * sum(each)[-1]  # the buffer is often full


def test_a_kink_that_comes_round_does_not_swing() -> None:
    """A burst of a thousandth of a round trip is hardly more than one step here."""
    net = Network().link("l", DropTail, capacity=10e6, delay=0.0213, buffer=60e3)
    net.flow("a", ScalableTCP, route=["l"], start=0)
    net.flow("b", SlowStartAIMD, route=["l"], start=0.137)
    loose, best = run(net, 1.5, 1e-4), run(net, 1.5, 1e-6)
    assert loose.rate.values.max() < 1.2 * best.rate.values.max()
    near(loose.entered, best.entered, 1e-3)


@pytest.mark.slow
def test_the_fused_step_follows_kinks_as_the_array_step_does() -> None:
    net = Network().link("l", DropTail, capacity=7e6, delay=0.01, buffer=24e3)
    net.flow("a", FAST(pace=0), route=["l"], start=0)
    plain, fused = run(net, 0.9, 1e-5), run(net, 0.9, 1e-5, "fused")
    assert plain.attrs["breaking_points"] > 100  # three generations of each kink would be fewer
    assert fused.attrs["breaking_points"] == pytest.approx(plain.attrs["breaking_points"], rel=0.05)
    near(fused.entered, plain.entered, 1e-5)


def halved_once(at: float) -> Source:
    """An exact clock with a window of 200 packets, which is halved `at` seconds after the start."""
    age, when = symbols("age when", nonnegative=True)
    return window(
        "HalvedOnce", 0, flow={age: 1}, initial={age: 0, w: 200}, params={when: at},
        units={age: "s", when: "s"}, clock="neutral",
        jumps=(Jump(when=age - when, reset={w: w / 2}, once=True, refractory=1e9 * RTT),),
    )(pace=0, trickle=0)  # fmt: skip


def test_a_cut_window_pauses_for_exactly_what_is_too_much() -> None:
    """X(t) - X(t - R) = w without a queue: a burst, and the gap after a cut, come round."""
    trip, burst, cut, size = 0.08, 0.1 * 0.08, 0.5, 8000.0
    net = Network().link("l", DropTail, capacity=1e9, delay=trip / 2)
    net.flow("f", halved_once(cut), route=["l"], start=0, packet=size)

    def before(t: float) -> float:
        """Packets sent by `t` if nothing is cut: the window fills once, by `burst`."""
        rounds = np.arange(0.0, max(t, 0.0) / trip + 1e-12)
        return float(np.sum(200 * -np.expm1(-(t - rounds * trip) / burst)))

    in_flight = before(cut) - before(cut - trip)
    back = before(cut - trip) + in_flight - 100
    pause = brentq(lambda d: before(cut + d - trip) - back, 0.0, trip, xtol=1e-15)

    def sent(t: float) -> float:
        if t <= cut:
            return before(t)
        if t <= cut + pause:
            return before(cut)
        if t <= cut + trip:
            return before(cut) + before(t - trip) - before(cut + pause - trip)
        return sent(t - trip) + 100

    times = np.linspace(0.0, 1.5, 401)
    for rtol in (1e-4, 1e-6, 1e-8):
        found = simulate(net, 1.5, t_eval=times, rtol=rtol, atol=1e-12, engine="array")
        exact = [sent(t) for t in times]
        near(found.entered.values[:, 0] / size, exact, carried(1.5 / trip) * rtol)
        paused = (times > cut + 1e-6) & (times < cut + pause - 1e-6)
        assert np.all(found.rate.values[paused, 0] == 0.0)
        for k in range(1, 8):
            for edge in (cut, cut + pause):
                away = np.abs(breaks(found) - (edge + k * trip))
                assert np.min(away) < max(1e-9, rtol * trip)


CLOCKS = [[HTCP, Vegas], [PlainDelayAIMD, FAST], [LEDBAT, DelayAIMD, FAST]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* is a mean over losses:fluidcc.base.errors.FluidccWarning")
@pytest.mark.parametrize("laws", CLOCKS, ids=lambda laws: "-".join(law.name for law in laws))
def test_what_is_in_flight_is_what_was_sent_in_the_last_round_trip(laws: list[Source]) -> None:
    """X(t) - X(s(t)) = F of each flow. A wide link of its own, without a queue, counts."""
    rtol, until = 1e-5, 1.2
    net = Network().link("l", DropTail, capacity=9e6, delay=0.012, buffer=60e3)
    for k, law in enumerate(laws):
        net.link(f"own{k}", DropTail, capacity=1e12, delay=0.003 + 0.0017 * k)
        net.flow(f"f{k}", law(pace=0), route=[f"own{k}", "l"], start=0.11 * k)
    times = np.linspace(0.4, until, 161)
    first = simulate(net, until, t_eval=times, rtol=rtol, engine="array")
    assert first.rate.values.min() >= 0.0
    for k, law in enumerate(laws):
        then = times - first.rtt.values[:, k]
        both = np.unique(np.concatenate([times, then]))
        again = simulate(net, until, t_eval=both, rtol=rtol, engine="array")
        entered = again.entered.sel(link=f"own{k}").values
        flight = (np.interp(times, both, entered) - np.interp(then, both, entered)) / 8000.0
        kept = first[f"{law.name}_F"].sel(flow=f"f{k}").values
        size = 10 * rtol * entered[-1] / 8000.0
        np.testing.assert_allclose(kept, flight, rtol=0, atol=size, err_msg=law.name)


def test_no_rate_below_zero_is_read_between_values_that_are_none() -> None:
    """After a jump inside a step the quartic swings below 0; elsewhere it is what is sampled."""
    nodes, at = np.array([0.0, 0.0, 0.0, 1.0, 1.0]), np.linspace(0, 1, 41)
    run = s.State(nodes, np.zeros(s.N_INTS, dtype=np.int64))
    run.n_flows = run.refit = 1
    found = np.array([called(rate_at)(run, 0, u) for u in at[:40]])
    quartic = np.polyval(np.polyfit(np.linspace(0, 1, 5), nodes, 4), at[:40])
    below = quartic < -1e-12
    assert 5 < np.sum(below) < 30
    straight = np.interp(at[:40][below], np.linspace(0, 1, 5), nodes)
    np.testing.assert_allclose(found[below], straight, atol=1e-12)
    np.testing.assert_allclose(found[~below], quartic[~below], atol=1e-12)
    run.F = -nodes  # what is negative is not hidden
    np.testing.assert_allclose([called(rate_at)(run, 0, u) for u in (0.75, 1.0)], -1.0)


def test_jumps_that_are_not_followed_are_found_by_error_control() -> None:
    """Eight round trips are more than are followed: jumps land where nothing was announced."""
    net = Network().link("l", DropTail, capacity=1e7, delay=0.02, buffer=3e5)
    for k in range(8):
        net.flow(f"f{k}", StaticAIMD, route=["l"], return_delay=0.02 + 0.0071 * k, start=0.1 * k)
    loose, tight = run(net, 4.0, 1e-6), run(net, 4.0, 1e-8)
    assert loose.attrs["untracked_breaking_points"] > 1000
    assert loose.attrs["jumps"] == tight.attrs["jumps"] > 30
    np.testing.assert_allclose(loose.backlog, tight.backlog, atol=1e-6 * float(tight.backlog.max()))
    np.testing.assert_allclose(loose.StaticAIMD_W, tight.StaticAIMD_W, rtol=1e-6)


@pytest.mark.parametrize("other", [HTCP, LDCC], ids=lambda law: law.name)
def test_a_price_that_grows_a_millionfold_in_a_round_trip_is_heard_as_it_is(other: Source) -> None:
    """The first hears no price and grows without end; exp(-price) of the second is at most 1."""
    means = []
    for rtol in (1e-6, 1e-9):
        net = Network().link("l", PenaltyLink, capacity=5e6, delay=0.01)
        net.flow("a", other, route=["l"], return_delay=0.03, start=0.0)
        net.flow("b", ScalableSource, route=["l"], return_delay=0.05, start=0.137)
        rate = run(net, 5.0, rtol).rate.values[:, 1]
        assert rate.min() >= 0.0
        assert rate.max() <= 1e7
        means.append(rate.mean())
    assert means[0] == pytest.approx(means[1], rel=2e-3)


@pytest.mark.slow
def test_flows_that_hear_jumps_of_each_other_go_on() -> None:
    """Of so many flows no jump is followed to who hears it: it is met within a step, and turns
    several kinks of a law at once. They turned each other back and forth at 0.3153 s.
    """
    buffer, trips = 5000 * 8000.0, [f"{30 + k / 5} ms" for k in range(100)]
    link = {"capacity": "1 Gbit/s", "buffer": f"{buffer} bit"}
    run = simulate(dumbbell([BBRv3] * 100, link, rtt=trips), 0.33)
    assert float(run.rate.min()) > 0
    assert 0 <= float(run.backlog.min()) <= float(run.backlog.max()) <= buffer
    taken = run.arrival_rate * (1 - run.link_loss) - run.throughput
    grown = float(taken.integrate("time")[0])
    assert grown == pytest.approx(float(run.backlog[-1, 0]), rel=0.01)
