"""Limit cycles of hybrid networks against closed forms."""

import math
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sympy import Heaviside, Rational, symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput, SolverError
from fluidcc.cycles.orbit import LimitCycle, _look
from fluidcc.formulas.delay_aimd import late_cycle
from tests import hybrid_laws
from tests.hybrid_laws import BACK, BUFFER, DELAY, SLOPE, C, Sawtooth

x = symbols("x", nonnegative=True)
PLAIN = fc.PlainDelayAIMD(slope=0, coefficient=0)


def aimd(b: float, alpha: float = 1.0) -> fc.Source:
    return hybrid_laws.aimd(beta=b, alpha=alpha)


def bottleneck(*flows: Any, **more: Any) -> fc.Network:
    """The flows f0, f1, ... over a link l, each with what `more` has at its place."""
    net = fc.Network().link("l", fc.DropTail, capacity=C, delay=DELAY, buffer=BUFFER)
    for i, law in enumerate(flows):
        own = {key: value[i] if isinstance(value, list) else value for key, value in more.items()}
        net.flow(f"f{i}", law, route=["l"], **{"return_delay": BACK, **own})
    return net


def test_the_cycle_of_one_flow_is_the_closed_form() -> None:
    """Period, extremes, means, loss and utilisation of a linear sawtooth over a finite buffer."""
    b, loop, peak, period = 0.5, Sawtooth.loop, Sawtooth.peak, Sawtooth.period
    lost = SLOPE * (Sawtooth.over * loop + loop**2 / 2)
    deep = (C - (1 - b) * peak) / SLOPE  # the queue drains for this long at a falling rate
    empty = deep - math.sqrt(deep**2 - 2 * BUFFER / SLOPE)  # after this long it is empty
    missed = SLOPE * (deep - empty) ** 2 / 2  # not sent while it is
    cycle = fc.limit_cycle(bottleneck(aimd(b)))
    assert cycle.period == pytest.approx(period, rel=1e-11)
    assert cycle.error < 1e-9
    assert float(cycle.most.rate[0]) == pytest.approx(peak, rel=1e-10)
    assert float(cycle.least.rate[0]) == pytest.approx((1 - b) * peak, rel=1e-10)
    assert float(cycle.mean.rate[0]) == pytest.approx((1 - b / 2) * peak, rel=1e-9)
    assert float(cycle.loss[0]) == pytest.approx(lost / ((1 - b / 2) * peak * period), rel=1e-8)
    assert float(cycle.mean.utilisation[0]) == pytest.approx(1 - missed / (C * period), rel=1e-9)
    assert float(cycle.most.queueing_delay[0]) == pytest.approx(BUFFER / C, rel=1e-9)
    assert float(cycle.least.backlog[0]) == 0.0
    assert cycle.jumps.values.tolist() == [0.0]


def test_synchronised_flows_contract_by_one_minus_b() -> None:
    b = 0.3
    starts = [{"x": rate} for rate in (1e6, 2.5e6, 4e6)]
    cycle = fc.limit_cycle(bottleneck(*[aimd(b)] * 3, initial=starts))
    # two differences shrink so; what all have together is the same again after one cycle
    np.testing.assert_allclose(cycle.multipliers, [1 - b, 1 - b], rtol=1e-6)
    assert cycle.inputs == ("f0.x", "f1.x", "f2.x")
    np.testing.assert_allclose(cycle.mean.rate, float(cycle.mean.rate[0]), rtol=1e-8)
    assert cycle.jumps.of.values.tolist() == ["f0", "f1", "f2"]
    one = fc.limit_cycle(bottleneck(aimd(b, 3.0)))
    assert cycle.period == pytest.approx(one.period, rel=1e-9)


def test_newtons_method_spares_a_slow_approach() -> None:
    """Backoffs by 2 % forget 0.02 of a difference a cycle: 1,000 cycles for nine digits."""
    b = 0.02
    cycle = fc.limit_cycle(bottleneck(aimd(b), aimd(b), initial=[{"x": 3e6}, {"x": 5e6}]))
    backoffs = len(cycle.jumps) // 2  # of each flow: one does not end the loss
    assert 1 <= cycle.steps <= 3
    assert cycle.error < 1e-9
    np.testing.assert_allclose(cycle.multipliers[0], (1 - b) ** backoffs, rtol=1e-6)
    assert cycle.contraction == pytest.approx((1 - b) ** backoffs, rel=1e-6)
    np.testing.assert_allclose(cycle.most.rate[0], cycle.most.rate[1], rtol=1e-8)
    one = fc.limit_cycle(bottleneck(aimd(b, 2.0)))
    assert cycle.period == pytest.approx(one.period, rel=1e-8)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_period_that_falls_is_as_far_from_a_cycle_as_one_that_grows(sign: int) -> None:
    """Periods 1 +- 0.01/2^k."""
    periods = 1 + sign * 0.01 * 0.5 ** np.arange(5)
    seen = np.append(periods[0], periods)[:, None]
    effort = SimpleNamespace(used=0, left=1, ahead=lambda length, rtol: 0)
    section: Any = SimpleNamespace(
        effort=effort, base=None, start=0.0, period=1.0, rtol=1e-9,
        walk=lambda base, cycles: (None, seen),
    )  # fmt: skip
    found = _look(section)
    np.testing.assert_allclose(found.changes, 0.005 * 0.5 ** np.arange(4))
    assert found.falls


def test_flows_of_different_round_trips_lock_to_one_period() -> None:
    net = bottleneck(
        fc.StaticAIMD, fc.StaticAIMD, access_delay=[0.01, 0.02], return_delay=[0.035, 0.045]
    )
    cycle = fc.limit_cycle(net)
    assert sorted(set(cycle.jumps.of.values)) == ["f0", "f1"]
    mean, least, most = (d.StaticAIMD_W for d in (cycle.mean, cycle.least, cycle.most))
    np.testing.assert_allclose(least, most / 2, rtol=1e-6)  # each window is halved once
    assert np.all((least < mean) & (mean < most))
    again = fc.limit_cycle(net, rtol=1e-8, tol=1e-7)
    assert again.period == pytest.approx(cycle.period, rel=1e-6)


def test_what_has_no_cycle_is_refused_with_the_reason() -> None:
    with pytest.raises(SolverError, match="no limit cycle: after .* no state moves by more"):
        fc.limit_cycle(bottleneck(fc.LDCC))
    idle = bottleneck(aimd(0.5, 1e-3))
    with pytest.raises(SolverError, match="there was no tick|there was no jump"):
        fc.limit_cycle(idle, until=30)
    with pytest.raises(InvalidInput, match="tol is 2"):
        fc.limit_cycle(idle, tol=2)


@pytest.mark.slow
@pytest.mark.parametrize("most", [20_000, 100_000])
def test_a_search_takes_no_more_steps_than_it_may(most: int) -> None:
    """Near a cycle of 20,000 steps it says what the next look would take."""
    net = late_and_small(PLAIN(tau0=0.002), fc.FAST(alpha=40), initial={"w": 100})
    net = net.with_flow("b", start=0.5)
    with pytest.raises(SolverError, match="[gG]ive a larger max_steps") as refused:
        fc.limit_cycle(net, max_steps=most)
    text = str(refused.value)
    (used,) = re.findall(r"(\d+) (?:of \d+ are used|steps of the solver:)", text)
    assert int(used) < 1.2 * most  # what is under way is not cut short


def test_a_cycle_of_many_even_ticks_is_found_by_its_states() -> None:
    """x <- x/2 + 10^4 k at each tick while k counts to 53: told by states, not by intervals."""
    k, last, every = symbols("k", nonnegative=True), 52, 0.03125
    P, K = symbols("P K", positive=True)
    count = (k + 1) * Heaviside(last - Rational(1, 2) - k, 0)
    law = fc.Source(
        "Counter", {x: 0, k: 0}, {"rate": x}, {P: every, K: 1e4},
        {x: "bit/s", k: "1", P: "s", K: "bit/s"}, initial={x: 0, k: 0},
        ticks=(fc.Tick(P, {x: x / 2 + K * k, k: count}),),
    )  # fmt: skip
    cycle = fc.limit_cycle(bottleneck(law, start=0))
    rates = [0.0]
    for tick in range(20 * (last + 1)):
        rates.append(rates[-1] / 2 + 1e4 * (tick % (last + 1)))
    orbit = np.array(rates[-(last + 1) :])
    assert cycle.period == pytest.approx((last + 1) * every, rel=1e-12)
    assert len(cycle.jumps) == last + 1
    assert float(cycle.mean.rate[0]) == pytest.approx(1e4 * last / 2 / (1 - 0.5), rel=1e-9)
    assert extremes(cycle, "rate") == pytest.approx((orbit.min(), orbit.max()), rel=1e-9)


def late_and_small(first: fc.Source, second: fc.Source, **more: Any) -> fc.Network:
    link = {"name": "l", "capacity": "20 Mbit/s", "delay": "20 ms", "buffer": "200 packets"}
    flows = {"a": {"law": first, "start": 0, **more}, "b": {"law": second, "start": 2}}
    return fc.dumbbell(flows, link)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "doubts"),
    [
        (late_and_small(fc.StaticAIMD, PLAIN(tau0=1)).with_flow("b", start=30),
         [r"'b' has never seen .* 40\.\d+ ms"]),
        (late_and_small(PLAIN(tau0=0.002), fc.CBR(rate="19.8 Mbit/s")),
         ["window of flow 'a' is below 3 packets",
          "threshold of flow 'a', 2 ms, lies below the smallest queueing"]),
        (late_and_small(PLAIN, fc.CBR(rate="1 Mbit/s")), []),
    ],
    ids=["a queue taken for propagation", "a buried threshold and a small window", "neither"],
)  # fmt: skip
def test_what_makes_a_cycle_doubtful_stands_with_it(net: fc.Network, doubts: list[str]) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cycle = fc.limit_cycle(net, tol=1e-6, rtol=1e-7)
    assert [str(one.message) for one in said] == [*cycle.warnings]  # once, however many runs
    assert len(cycle.warnings) == len(doubts)
    for text, one in zip(cycle.warnings, doubts, strict=True):
        assert re.search(one, text)
        assert text in repr(cycle)
    assert repr(cycle).startswith(
        f"limit cycle of {cycle.period:.6g} s with {len(cycle.jumps)} jump"
    )
    assert f"{1e3 * float(cycle.most.queueing_delay[0]):.6g}" in repr(cycle)  # ms
    assert len(repr(cycle).splitlines()) < 20


def test_what_the_integration_cannot_resolve_is_told() -> None:
    flow = {"law": PLAIN(pace=0, tau0=0.01), "start": 0, "initial": {"w": 430}}
    net = fc.dumbbell({"f": flow}, {"capacity": "100 Mbit/s", "delay": "15 ms"})
    with pytest.warns(FluidccWarning, match=r"converged only to .* \(tol=1e-12\)"):
        cycle = fc.limit_cycle(net, tol=1e-12, rtol=1e-5)
    assert 1e-12 < cycle.error < 1e-6


PACKET = 8000.0


def delay_aimd(
    n: int, alpha: float, rate: float, trip: float, threshold: float, first: float | None = None
) -> fc.Network:
    """`n` equal flows with an exact ack clock and a constant increase, at `rate` packets/s."""
    law = PLAIN(alpha=alpha, pace=0, tau0=threshold)
    flow = {"law": law, "start": 0, "packet": PACKET}
    if first is not None:
        flow["initial"] = {"w": first * rate * trip}
    return fc.dumbbell([flow] * n, {"capacity": rate * PACKET, "delay": trip / 2})


def delay_aimd_cycle(
    n: int, alpha: float, rate: float, trip: float, threshold: float
) -> LimitCycle:
    """Their cycle, from windows in its middle."""
    first = (1 + threshold / trip / 2) / n
    return fc.limit_cycle(delay_aimd(n, alpha, rate, trip, threshold, first), rtol=1e-11)


def is_the_closed_form(cycle: LimitCycle, place: Any) -> None:
    n, alpha, rate, trip, threshold = place
    trickle = fc.PlainDelayAIMD.parameter("trickle")
    closed = late_cycle(n * alpha, threshold, trip, rate, trickle=trickle)
    windows, queues = (closed.window_low, closed.window_high), (closed.queue_low, closed.queue_high)
    assert cycle.period == pytest.approx(closed.period, rel=1e-9)
    assert extremes(cycle, "PlainDelayAIMD_w") == pytest.approx(windows, rel=1e-9)
    # Times are resolved to 1e-11 s, and a queue is one: the smallest queue's ninth digit is less.
    assert extremes(cycle, "queueing_delay") == pytest.approx(
        queues, rel=1e-9, abs=1e-9 * queues[1]
    )


def extremes(cycle: LimitCycle, name: str) -> tuple[float, float]:
    return tuple(float(one[name].values[0]) for one in (cycle.least, cycle.most))  # type: ignore[return-value]


# Flows, increase of each [packet], capacity [packet/s], propagation delay there and back, threshold
# [s].
PLACES = {
    "Fig. 2": (3, 1.0, 6250.0, 0.12, 0.02),
    "fast and far": (2, 2.5, 62500.0, 0.25, 0.05),
    "steep": (2, 1.0, 12500.0, 0.03, 0.01),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_cycle_of_delay_based_aimd_is_the_closed_form(place: Any) -> None:
    n, alpha, *path = place
    one = delay_aimd_cycle(1, n * alpha, *path)
    is_the_closed_form(one, place)
    assert float(one.mean.utilisation[0]) == pytest.approx(1, abs=1e-9)
    assert one.contraction < 0.05  # a backoff forgets what was before it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first"), [("Fig. 2", None), ("Fig. 2", 0.3), ("steep", 1.0), ("steep", 1.25)]
)
def test_the_cycle_does_not_remember_how_it_was_reached(name: str, first: float | None) -> None:
    """From any window over what the path holds: what a coarse run loses in flight is found."""
    n, alpha, rate, trip, threshold = PLACES[name]
    net = delay_aimd(1, n * alpha, rate, trip, threshold, first)
    is_the_closed_form(fc.limit_cycle(net), PLACES[name])


def test_the_least_queue_is_zero_where_it_empties() -> None:
    """Though polynomials between its samples reach below by rounding."""
    cycle = fc.limit_cycle(
        fc.dumbbell([fc.AIMD], {"capacity": "10 Mbit/s", "buffer": "30 packets"}, rtt="40 ms")
    )
    assert float(cycle.least.backlog[0]) == float(cycle.least.queueing_delay[0]) == 0.0


@pytest.mark.slow
def test_a_smoothed_ack_clock_gives_one_period_too() -> None:
    """With pace > 0 the data in flight are remembered no less; H-TCP with losses shows it most."""
    link = {"capacity": "10 Mbit/s", "delay": "20 ms", "buffer": "400 kbit"}
    flows = [{"law": fc.HTCP, "start": 0, "initial": {"w": first}} for first in (10.0, 90.0)]
    first, other = (fc.limit_cycle(fc.dumbbell([flow], link)).period for flow in flows)
    assert first == pytest.approx(other, rel=1e-9)


def two_by_delay(pace: float, apart: float = 0.0) -> fc.Network:
    flow = {"law": PLAIN(pace=pace), "start": 0, "packet": PACKET}
    flows = {f"f{k}": {**flow, "initial": {"w": 406 + s * apart}} for k, s in enumerate((1, -1))}
    return fc.dumbbell(flows, {"capacity": "50 Mbit/s", "delay": "60 ms"})


@pytest.mark.slow
def test_a_difference_of_two_windows_shrinks_by_beta_a_cycle() -> None:
    """beta = T/(T + tau0) = 6/7: by the map of returns, and by a run from windows a tenth apart."""
    np.testing.assert_allclose(fc.limit_cycle(two_by_delay(0.5)).multipliers, [6 / 7], rtol=1e-3)
    with pytest.warns(FluidccWarning, match="multipliers are not known"):
        assert math.isnan(fc.limit_cycle(two_by_delay(0.0)).contraction)
    run = fc.simulate(two_by_delay(0.0, apart=20.0), 80.0)
    backoffs = fc.metrics.jumps(run).query("of == 'f0' and rule == 0").time.values
    run = fc.simulate(two_by_delay(0.0, apart=20.0), 80.0, t_eval=backoffs)
    apart = run.PlainDelayAIMD_w.values @ [1, -1]
    np.testing.assert_allclose(apart[1:] / apart[:-1], 6 / 7, rtol=2e-3)
