"""GCC, simplified: its automaton, its loss-based branch and its threshold."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.formulas import response
from fluidcc.symbols import edot, loss, unfold, x_tau
from tests.sources.networks import marking, on_one_link

CAPACITY, DELAY = 2e6, 0.025


def net(*laws: fc.Source, buffer: float | None = None) -> fc.Network:
    return on_one_link(CAPACITY, *laws, buffer=buffer)


def test_a_cut_leaves_a_part_of_what_is_received() -> None:
    ds = fc.simulate(net(fc.GCC(alpha=0.8)), 60, samples=6001)
    late = ds.rate.values[3000:, 0]
    assert late.min() == pytest.approx(0.8 * CAPACITY, rel=1e-6)


def test_flows_that_move_together_never_get_nearer() -> None:
    """Both the increase and the decrease multiply: what the ratio of two rates is, it stays."""
    n = net(fc.GCC, fc.GCC).with_flow("f0", initial={"A": 2e5}).with_flow("f1", initial={"A": 6e5})
    ds = fc.simulate(n, 100, samples=1001)
    assert ds.attrs["jumps"] > 20
    np.testing.assert_allclose(ds.rate[:, 1] / ds.rate[:, 0], 3.0, rtol=1e-6)


def test_losses_limit_it_by_the_tcp_friendly_rate_and_marks_do_not() -> None:
    """On a path that loses one packet in fifty whatever is sent, the rate is the equation's; a
    packet that is marked arrives.
    """
    rates = []
    for ecn in (False, True):
        n = fc.Network().link("l", marking(0.02), capacity=1e9, delay=DELAY)
        n.flow("f", fc.GCC, route=["l"], initial={"A": 2e6}, ecn=ecn)
        rates.append(float(fc.simulate(n, 30).rate[-1, 0]))
    assert rates[0] == pytest.approx(response.tfrc(0.02, 2 * DELAY), rel=1e-5)
    assert rates[1] == pytest.approx(2e6 * 1.08**30, rel=1e-3)


def test_the_estimate_does_not_run_away_while_losses_limit_what_is_sent() -> None:
    """Beside a flow that fills the buffer A grows no more above `cap` times what arrives."""
    n = net(fc.GCC, buffer=0.02 * CAPACITY).flow("udp", fc.CBR(rate=1.5 * CAPACITY), route=["l"])
    late = fc.simulate(n, 60).isel(time=slice(100, None), flow=0)
    assert np.all(late.GCC_m == 1)
    assert np.ptp(late.GCC_A.values) == 0
    assert np.all(1.5 * late.rate < late.GCC_A)
    wanted = response.tfrc(late.loss.values, late.rtt.values)
    np.testing.assert_allclose(late.rate, wanted, rtol=1e-3)


@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
def test_the_adaptive_threshold_follows_the_gradient_within_its_bounds(rtol: float) -> None:
    ds = fc.simulate(net(fc.AdaptiveGCC), 60, samples=6001, rtol=rtol, atol=1e-3 * rtol)
    threshold = ds.AdaptiveGCC_gamma.values[:, 0]
    assert threshold[0] == pytest.approx(0.05)
    assert threshold.min() >= 0.024 * (1 - rtol)  # reached to the accuracy of the run
    assert threshold.min() < 0.04  # it falls while nothing happens
    assert np.max(np.diff(threshold)) > 1e-3  # and rises quickly
    assert float(ds.utilisation[3000:].mean()) > 0.9


def test_without_gains_the_adaptive_threshold_is_the_fixed_one() -> None:
    fixed = fc.simulate(net(fc.GCC), 30, rtol=1e-8)
    held = fc.simulate(net(fc.AdaptiveGCC(K_u=1e-12, K_d=1e-12)), 30, rtol=1e-8)
    np.testing.assert_allclose(held.rate, fixed.rate, rtol=1e-4)


@pytest.mark.parametrize(
    ("mode", "gradient", "after"),
    [
        (1, 0.051, -1), (0, 0.051, -1), (-1, 0.051, -1),  # over-use decreases, again while it lasts
        (-1, 0.0, 0), (0, 0.0, 1), (1, 0.0, 1),  # normal: to hold, then to increase
        (1, -0.051, 0), (0, -0.051, 0), (-1, -0.051, 0),  # under-use holds
        (1, 0.049, 1), (0, 0.049, 1), (0, -0.049, 1), (1, -0.049, 1),
    ],
)  # fmt: skip
def test_every_jump_of_the_automaton(mode: int, gradient: float, after: int) -> None:
    A, m, _ = fc.GCC.states
    now = {A: 2e6, m: mode, edot: gradient, x_tau: 1e6, loss: 0.1, **fc.GCC.params}
    due = [jump for jump in fc.GCC.jumps if jump.when.subs(now) > 0]
    new = {z: float(unfold(f).subs(now)) for jump in due[:1] for z, f in jump.reset.items()}
    assert len(due) <= 1
    assert new.get(m, mode) == after
    received = 1e6 * 0.9 / (1 + gradient)
    assert new.get(A, 2e6) == (pytest.approx(0.85 * received) if gradient > 0.05 else 2e6)


@pytest.mark.parametrize(("sent", "grown"), [(1e6, 0.08), (1.499e6, 0.01), (2e6, 0.0)])
def test_it_grows_by_8_percent_a_second_and_not_beyond_half_more_than_is_received(
    sent: float, grown: float
) -> None:
    A, m, _ = fc.GCC.states
    now = {A: sent, m: 1, edot: 0.0, x_tau: 1e6, loss: 0.0, **fc.GCC.params}
    wanted = {0.08: sent * np.log(1.08), 0.01: (1.5e6 - sent) / 0.1, 0.0: 0.0}[grown]
    assert float(unfold(fc.GCC.flow[A]).subs(now)) == pytest.approx(wanted)


@pytest.mark.parametrize("law", [fc.GCC, fc.AdaptiveGCC], ids=lambda law: law.name)
def test_a_step_of_capacity_is_heard_once(law: fc.Source) -> None:
    """The gradient falls to y/c - 1 when data that leave at the step are heard of: hold. It is the
    threshold again where that much more arrives: increase.
    """
    link = {"capacity": [(0, "8 Mbit/s"), (9, "12 Mbit/s")], "delay": "30 ms"}
    n = fc.dumbbell({"video": law, "tcp": fc.StaticAIMD}, {**link, "buffer": "250 packets"})
    run = fc.simulate(n, 20, samples=200_001)
    video = fc.metrics.jumps(run).query("of == 'video'")
    times, rules = video.time.values, video.rule.values
    assert rules[:2].tolist() == [3, 2]
    assert times[0] == pytest.approx(9.06, abs=1e-9)
    then = run.interp(time=times[1])
    gamma = then["AdaptiveGCC_gamma"][0] if law is fc.AdaptiveGCC else law.parameter("gamma")
    arrived = run.arrival_rate[:, 0].interp(time=times[1] - float(then.rtt[0]))
    assert float(arrived) == pytest.approx(12e6 * (1 - 0.999 * float(gamma)), rel=1e-6)
