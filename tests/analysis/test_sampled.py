"""Networks whose laws tick: against continuous laws, limits, runs and limit cycles."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Max

import fluidcc as fc
from fluidcc.analysis.sampled import SampledStability
from fluidcc.base.errors import FluidccWarning, InvalidInput, Undecided, Unsupported
from fluidcc.symbols import RTT, e, nonnegative, positive, x_tau
from tests.papers.test_sampled import left

(q,) = fc.DropTail.states


def _pi(period: float) -> fc.Link:
    """Hollot's PI as it is programmed: p(k) = p(k-1) + a (q(k) - q(k-1)) + b T (q(k) - q_ref)."""
    p, before, q_ref = nonnegative("p q_b q_ref")
    a, b, T = positive("a b T")
    return fc.Link(
        "SampledPI", {**fc.DropTail.flow, p: 0, before: 0}, {"mark": p}, queue=q,
        params={a: 0.0682, b: 0.03615, q_ref: 0.05, T: period},
        units={q: "s", p: "1", before: "s", a: "1/s", b: "1/s^2", q_ref: "s", T: "s"},
        lower={**fc.DropTail.lower, p: 0}, upper={**fc.DropTail.upper, p: 1},
        initial={q: 0, p: 0, before: 0},
        ticks=(fc.Tick(T, {p: p + a * (q - before) + b * T * (q - q_ref), before: q}),),
    )  # fmt: skip


def _reno(link: Any) -> fc.Network:
    """The design of INFOCOM 2001: 60 flows on 3750 packets a second at about 250 ms."""
    link = {"law": link, "capacity": "45 Mbit/s", "buffer": "0.5 s"}
    return fc.dumbbell([fc.StaticReno] * 60, link, rtt="0.2 s")


def test_a_pi_controller_sampled_ever_faster_has_the_roots_of_the_continuous_one() -> None:
    linear = fc.linearize(_reno(fc.PI))
    apart = linear.deviations()["flow1 (x60)"].roots(1)[0]
    wanted = linear.roots(4)
    gaps = []
    for T in (0.025, 0.0125, 1 / 160):
        found = fc.sampled_stability(_reno(_pi(T)))
        rates = np.log(found.multipliers) / T
        gaps.append([np.abs(rates - root).min() for root in wanted])
        assert np.sum(np.abs(rates - apart) < 1e-6) == 59
        assert found.stable
        assert found.undetermined == 0
    gap = np.array(gaps)
    np.testing.assert_allclose(gap[0] / gap[1], 2, rtol=0.1)  # of first order in the period
    assert np.all(gap[2] < 0.01 * np.abs(wanted))


def _odd(near: Callable[[int], fc.Network], times: Any, what: str = "rate") -> Any:
    """What of a run is odd in a start near rest, at some times."""
    how: Any = {"t_eval": times, "rtol": 1e-11, "atol": 1e-14, "progress": False}
    up, down = (fc.simulate(near(sign), times[-1], **how)[what].values for sign in (1, -1))
    return up - down


def test_windows_over_a_router_that_samples_echo_its_jumps_as_long_as_they_count() -> None:
    """A mark that jumps comes back with each lap of acknowledgements, at instants without end; what
    flows differ by does not know of the router, and has the roots over one that does not sample.
    """
    (q_0, k, T), p = positive("q_0 k T"), nonnegative("p")
    base = {"queue": q, "params": {k: 0.1, q_0: 0.005}, "units": {q: "s", k: "1/s", q_0: "s"}}
    aim, held = k * Max(0, q - q_0), {**fc.DropTail.lower, p: 0}
    plain = fc.Link("Plain", fc.DropTail.flow, {"mark": aim}, initial={q: 0}, **base)
    base["params"] |= {T: 0.02}
    base["units"] |= {p: "1", T: "s"}
    samples = fc.Link(
        "Samples", {**fc.DropTail.flow, p: 0}, {"mark": p}, lower=held, initial={q: 0, p: 0},
        ticks=(fc.Tick(T, {p: aim}),), **base,
    )  # fmt: skip
    nets = [
        fc.dumbbell([fc.Reno] * 2, {"law": law, "capacity": "8 Mbit/s"}, rtt="60 ms")
        for law in (plain, samples)
    ]
    apart = fc.linearize(nets[0]).deviations()["flow1 (x2)"].roots(6)
    found = fc.sampled_stability(nets[1]).multipliers
    for root in apart[np.abs(apart) > 1e-6]:  # of F alone, which is left out
        assert np.abs(found - np.exp(0.02 * root)).min() < 1e-8


def _fades(net: fc.Network, period: float, start: int, end: int) -> Any:
    """The queue just before ticks, less where it rests."""
    rest = fc.equilibrium(net)

    def near(sign: int) -> fc.Network:
        one = net
        for name in net.flows:
            window = rest.states[name]["W"] * (1 + sign * 1e-5)
            one = one.with_flow(name, initial={"W": window})
        held = rest.states["bottleneck"]
        return one.with_link("bottleneck", initial={**held, "q_b": held["q"]})

    return _odd(near, (np.arange(start, end) - 0.01) * period, "queueing_delay")


def test_the_longest_period_of_a_pi_controller_is_where_a_run_stops_fading() -> None:
    """Beyond about 2 s it corrects too much at each tick: the multiplier -1."""
    for T, sign in ((1.98, -1), (2.05, 1)):
        net = _reno(_pi(T))
        found = fc.sampled_stability(net)
        assert found.multipliers[0].real == pytest.approx(-1, abs=0.2)
        assert found.stable is (sign < 0)
        odd = _fades(net, T, 12, 24)[:, 0]
        ratio = odd[1:] / odd[:-1]
        assert ratio[-4:] == pytest.approx(np.full(4, found.multipliers[0].real), rel=0.01)


@pytest.mark.parametrize("flow", [fc.StaticReno, fc.Reno])
def test_adaptive_red_in_its_dead_band_is_red(flow: fc.Source) -> None:
    """Near rest no tick changes anything: multipliers are powers of the roots, one is left out."""
    law = fc.AdaptiveRED(min_th=0.01, max_th=0.05)
    net = fc.dumbbell([flow] * 8, {"law": law, "capacity": "40 Mbit/s"}, rtt="50 ms")
    found = fc.sampled_stability(net)
    with pytest.warns(FluidccWarning, match="one of a continuum"):
        p_max = fc.equilibrium(net).states["bottleneck"]["p"]
    red = fc.RED(min_th=0.01, max_th=0.05, p_max=p_max)
    plain = net.with_link("bottleneck", law=red, initial=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FluidccWarning)  # of the accounts of Reno's flows
        report = fc.stability(plain)
    assert found.period == 0.5
    assert found.undetermined == 1 + 8 * (flow is fc.Reno)
    assert found.decay_rate == pytest.approx(report.decay_rate, rel=1e-6)


def test_flows_that_tick_apart_run_as_the_multipliers_say() -> None:
    """Two of three tick half a period after the other, by the phase of their ticks or a start."""
    law = fc.SampledLDCC(eta=0.9, T_s=0.1)
    (tick,) = law.ticks
    late = replace(law, ticks=(replace(tick, phase=tick.every / 2),))
    net = fc.dumbbell({"a": law, "b": late, "c": late}, {"capacity": "6 Mbit/s"}, rtt="80 ms")
    started = net.with_flow("b", law=law, start=0.25).with_flow("c", law=law, start=0.35)
    together = started.with_flow("b", start=0.2).with_flow("c", start=0.3)
    rest = fc.equilibrium(net)

    def near(sign: int) -> fc.Network:
        one = net
        for i, name in enumerate(net.flows):
            x = rest.states[name]["x"] * (1 + sign * 1e-4 * (i + 1))
            half = 0.05 * float(rest.one_way_delay[i]) if i else 0.0
            one = one.with_flow(name, initial={"x": x, "E": half, "S": 0})
        return one.with_link("bottleneck", initial=rest.states["bottleneck"])

    odd = _odd(near, (np.arange(20, 50) - 0.01) * 0.1)
    fit = []
    for one in (net, started, together):
        found = fc.sampled_stability(one)
        assert found.period == pytest.approx(0.1)
        fit.append(left(odd, found.multipliers[np.abs(found.multipliers) > 0.2]))
    assert max(fit[:2]) < 1e-5
    assert fit[2] > 1e-4


_MOST = positive("x_0")


def _proportional(period: float, **more: Any) -> fc.Source:
    """A rate that is set each period to what the mean of the delay over it asks for."""
    (x, gain, T), total = positive("x k T"), nonnegative("s")
    law: dict[str, Any] = {
        "params": {gain: 5e6, T: period, _MOST: 1.4e6},
        "units": {x: "bit/s", total: "s^2", gain: "bit/s^2", T: "s", _MOST: "bit/s"},
        "initial": {x: 1e6, total: 0}, "lower": {x: 0},
        "ticks": [fc.Tick(T, {x: _MOST - gain * total / T, total: 0})],
    }  # fmt: skip
    return fc.Source("Mean", {x: 0, total: e}, {"rate": x}, **(law | more))


def test_a_users_law_with_a_mean_over_its_period_is_a_cycle_of_one_tick() -> None:
    """Its sum grows between ticks and comes back, so that the rest is an orbit."""
    net = fc.dumbbell([_proportional(0.1)], {"capacity": "1 Mbit/s", "buffer": "1 s"}, rtt="40 ms")
    found = fc.sampled_stability(net)
    cycle = fc.limit_cycle(net, tol=1e-6, progress=False)
    assert cycle.period == pytest.approx(0.1)
    assert found.stable
    for one in found.multipliers[np.abs(found.multipliers) > 0.1]:
        assert np.abs(cycle.multipliers - one).min() < 1e-3


def test_patched_timely_ticks_by_its_own_rate_and_runs_as_the_multipliers_say() -> None:
    """The derivative of the period does not matter where a tick changes nothing."""
    link = {"capacity": "10 Gbit/s", "delay": "4 us"}
    net = fc.dumbbell([fc.PatchedTIMELY] * 2, link, rtt="20 us")
    found, rest = fc.sampled_stability(net), fc.equilibrium(net)
    assert found.period == pytest.approx(128e3 / 5e9)

    def near(sign: int) -> fc.Network:
        one = net
        for i, name in enumerate(net.flows):
            own = {**rest.states[name], "d": 0}
            own["R"] *= 1 + sign * (i + 1) * 1e-5
            one = one.with_flow(name, initial=own)
        return one.with_link("bottleneck", initial=rest.states["bottleneck"])

    odd = _odd(near, (np.arange(60, 120) - 0.01) * found.period)
    some = found.multipliers[np.abs(found.multipliers) > 0.3]
    assert left(odd, some) < 2e-3
    assert left(odd, some * 1.01) > 2e-2


x, gain, T, late, aim, far = positive("x k T L d a")
total, seen = nonnegative("s v")


def _late(lag: float, how: str = "delay", delay: float = 0.13, every: Any = T) -> fc.Source:
    """A rate that is set by what it was and heard some time ago."""
    more: dict[Any, Any] = {}
    ticks: tuple[fc.Tick, ...] = ()
    back, slow = x - (x - far) / 2, far * gain
    new = back + slow * (aim - fc.ago(e, late))
    if how == "own":
        new = back + slow * (aim - e) - 0.4 * (x - fc.ago(x, late))
    elif how == "rate":
        new = back + slow * (aim - e) - 0.4 * (x - x_tau)
    elif how == "slope":
        new = back + slow * (aim - e) - 0.4 * (x - fc.ago(x, late * far / x))
    elif how == "mean":
        more, new = {total: fc.ago(e, late)}, back + slow * (aim - total / T)
        ticks = (fc.Tick(T, {total: 0}),)
    elif how == "sum":
        more, new = {total: e}, back + slow * (aim - fc.ago(total, late) / T)
        ticks = (fc.Tick(T, {total: 0}),)
    elif how == "apart":
        more, new = {seen: 0}, back + slow * (aim - fc.ago(seen, late))
        ticks = (fc.Tick(T, {seen: e}, T / 3),)
    units = {x: "bit/s", gain: "1/s", T: "s", late: "s", aim: "s", far: "bit/s"}
    units |= dict.fromkeys(more, "s^2" if total in more else "s")
    return fc.Source("Late", {x: 0, **more}, {"rate": x}, units=units, lower={x: 0},
                     params={gain: 0.6, T: 0.1, late: lag, aim: delay, far: 1e6},
                     initial={x: 1e6, **dict.fromkeys(more, 0)},
                     ticks=(fc.Tick(every, {x: new}), *ticks))  # fmt: skip


def _late_net(law: fc.Source) -> fc.Network:
    return fc.dumbbell([law], {"capacity": "1 Mbit/s", "buffer": "2 s"}, rtt="40 ms")


PASTS = [("delay", 0.03), ("delay", 0.2), ("delay", 0.33), ("own", 0.1), ("own", 0.17),
         ("own", 0.3), ("rate", 0.1), ("slope", 0.17), ("mean", 0.0371), ("mean", 0.1),
         ("apart", 0.0371), ("apart", 0.1), ("apart", 0.25)]  # fmt: skip


@pytest.mark.parametrize(("how", "lag"), PASTS)
def test_ticks_that_know_the_past_run_as_the_multipliers_say(how: str, lag: float) -> None:
    """Lags between ticks and such of whole periods, where a tick reads what was changed then."""
    net = _late_net(_late(lag, how))
    found, rest = fc.sampled_stability(net), fc.equilibrium(net)
    own = {**rest.states["flow1"], **({"s": 0} if how == "mean" else {})}
    assert own.get("v", 0.13) == pytest.approx(0.13)  # what is only known late rests, too

    def near(sign: int) -> fc.Network:
        one = net.with_flow("flow1", initial={**own, "x": 1e6 + 100 * sign})
        return one.with_link("bottleneck", initial=rest.states["bottleneck"])

    odd = _odd(near, (np.arange(20, 50) - 0.01) * 0.1)
    some = found.multipliers[np.abs(found.multipliers) > 0.1]
    assert left(odd, some) < 1e-6
    assert left(odd, some * 1.01) > 1e-3


@pytest.mark.parametrize(("how", "lag", "every"), [("rate", 0.1, T), ("slope", 0.1, T),
                                                   ("rate", 0.1, RTT)])  # fmt: skip
def test_a_tick_that_reads_what_just_changes_at_a_varying_lag_is_refused(
    how: str, lag: float, every: Any
) -> None:
    """It reads the value before where the lag grows, and that after where it shrinks."""
    net = _late_net(_late(lag, how, 0.08, every))
    with pytest.raises(InvalidInput, match=r"reads what another one changed 0\.1 s before"):
        fc.sampled_stability(net)


def test_reno_as_it_is_programmed_is_ever_nearer_to_reno() -> None:
    """A period given for a continuous law: Euler's steps, with means of what is heard."""
    net = _reno(fc.PI)
    root = fc.linearize(net).roots(1)[0]
    gaps = []
    for T in (0.02, 0.01):
        found = fc.sampled_stability(net, T)
        gaps.append(np.abs(np.log(found.multipliers) / T - root).min())
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)
    assert gaps[1] < 0.02 * abs(root)


def _seen() -> fc.Source:
    """A rate that grows between ticks, and is set back at each."""
    x, gain, T = positive("x k T")
    return fc.Source("Saw", {x: gain / RTT}, {"rate": x}, params={gain: 1e5, T: 0.1},
                     units={x: "bit/s", gain: "bit/s", T: "s"}, initial={x: 1e6},
                     ticks=(fc.Tick(T, {x: x / 2}),))  # fmt: skip


def _by_round_trips() -> fc.Source:
    """What it sums goes over round trips that vary."""
    (x, gain), total = positive("x k"), nonnegative("s")
    step = {x: _MOST - gain * total / RTT, total: 0}
    return _proportional(0.1, ticks=[fc.Tick(RTT, step)])


REFUSED: dict[str, tuple[Any, str]] = {
    "seen": (_seen, "x moves between ticks and is seen there, .* look for its limit cycle"),
    "orbit": (_by_round_trips, "integrates s between ticks whose period depends on"),
    "past": (lambda: _late(0.03, "sum"), "s moves between ticks and is seen there"),
    "jumps": (lambda: fc.AIMD, "has jumps, so it cycles"),
    "two": (lambda: fc.BBRv3, "two ticks that change T"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_has_no_multipliers_says_why(which: str) -> None:
    law, says = REFUSED[which]
    net = fc.dumbbell([law(), fc.SampledLDCC], {"capacity": "1 Mbit/s"}, rtt="40 ms")
    with pytest.raises((Unsupported, InvalidInput), match=says):
        fc.sampled_stability(net)


def test_periods_without_a_common_multiple_and_one_that_cannot_be_set() -> None:
    laws = [fc.SampledLDCC(T_s=0.1), fc.SampledLDCC(T_s=0.1 * np.pi)]
    net = fc.dumbbell(laws, {"capacity": "1 Mbit/s"}, rtt="40 ms")
    with pytest.raises(Unsupported, match="no short common multiple"):
        fc.sampled_stability(net)
    timely = fc.dumbbell([fc.PatchedTIMELY], {"capacity": "10 Gbit/s"}, rtt="20 us")
    with pytest.raises(InvalidInput, match="ticks at a period that is none of its parameters"):
        fc.sampled_stability(timely, "20 us")


def test_a_multiplier_that_its_error_leaves_on_the_unit_circle_is_undecided() -> None:
    near = SampledStability(1.0, np.array([1 - 1e-9], complex), error=1e-8)
    with pytest.raises(Undecided, match="either may be"):
        _ = near.stable
