"""Linearisations of laws that know their own past: against characteristic functions by hand, runs,
and what is known of patched TIMELY.
"""

from typing import Any

import numpy as np
import pytest
from sympy import Max, Min, Rational, Symbol, symbols

import fluidcc as fc
from fluidcc.symbols import RTT, Let, e, edot, positive, x_tau

x, k, a, d = symbols("x k a d", positive=True)
n = symbols("n", nonnegative=True)

# It keeps `a` bits queued, by the rate at which it was served in the last round trip.
served = Let("D", (n - fc.ago(n, RTT)) / RTT)
KEEPER = fc.Source(
    "Keeper", {x: k * (served + (a - served * (e - d)) / RTT - x), n: x_tau / (1 + edot)},
    {"rate": x}, params={k: 3, a: 6e4, d: 0.025}, initial={x: 5e5, n: 0}, lower={x: 0},
    units={x: "bit/s", n: "bit", k: "1/s", a: "bit", d: "s"},
)  # fmt: skip
CAPACITY, TRIP, GAIN, BITS = 1e6, 0.05, 3.0, 6e4


def keepers(flows: int = 1) -> fc.Network:
    return fc.dumbbell([KEEPER] * flows, {"capacity": CAPACITY}, rtt=TRIP)


def wanted(z: Any, flows: int, by_queue: Any) -> Any:
    """What a rate of amplitude 1 in the network makes its law want, linear and by hand.

    `by_queue` is the amplitude of the queue. With q = N a/C at rest, R = trip + q and x = C/N: what
    has been acknowledged is n' = x(t - R) - x e', so the difference n - n(t - R) changes by (1 -
    exp(-z R)) n and, since n runs on at x, by x times the change of R.
    """
    queue, rate = flows * BITS / CAPACITY, CAPACITY / flows
    R = TRIP + queue
    heard = by_queue * np.exp(-z * R)  # the queue is the first thing on the way
    counted = (np.exp(-z * R) - rate * z * heard) / z
    change = ((1 - np.exp(-z * R)) * counted + rate * heard) / R - rate * heard / R
    kept = BITS - rate * queue
    target = change - (change * queue + rate * heard) / R - kept * heard / R**2
    return GAIN / (z + GAIN) * target


def alone(z: Any, flows: int = 1) -> Any:
    """1 + L of flows that move together."""
    return 1 - wanted(z, flows, flows / (z * CAPACITY))


@pytest.mark.parametrize("flows", [1, 2, 5])
def test_roots_are_those_of_the_characteristic_function(flows: int) -> None:
    loop = fc.linearize(keepers(flows))
    found = [z for z in loop.roots(count=6) if abs(z) > 1e-6]
    assert len(found) >= 4
    assert max(abs(alone(np.array(found), flows))) < 1e-9
    apart = fc.linearize(keepers(flows)).deviations()
    for system in apart.values():
        found = [z for z in system.roots(count=5) if abs(z) > 1e-6]
        assert max(abs(1 - wanted(np.array(found), flows, 0.0))) < 1e-9
    assert len(apart) == (flows > 1)


def test_margins_are_those_of_the_return_ratio() -> None:
    """Of the loop by hand, with crossings found by bisection."""
    report = fc.stability(keepers())
    omega = np.linspace(3, 8, 500_001)
    loop = alone(1j * omega) - 1
    across = np.flatnonzero(np.diff(np.sign(loop.imag)) * (loop.real[1:] < 0))
    gain = 1 / np.abs(loop[across]).max()
    one = np.flatnonzero(np.diff(np.sign(np.abs(loop) - 1)))
    phase = np.degrees(np.abs(np.angle(-loop[one]))).min()
    assert report.stable
    assert report.gain_margin == pytest.approx(gain, rel=1e-4)
    assert report.phase_margin == pytest.approx(phase, rel=1e-3)


def test_a_state_that_runs_on_is_no_choice_of_equilibria() -> None:
    """The root at zero of what is counted is left out, without a warning."""
    report = fc.stability(keepers(2))
    assert report.stable
    assert not report.marginal
    assert sum(f.multiplicity for f in report.free) == 2
    rest = fc.equilibrium(keepers(2))
    assert float(rest.queueing_delay[0]) == pytest.approx(2 * BITS / CAPACITY, rel=1e-12)
    assert rest.states["flow1"]["n"] == 0


def test_a_run_decays_as_the_rightmost_root_says() -> None:
    root = fc.stability(keepers()).rightmost_roots[0]
    times = np.linspace(160, 200, 2001)
    found = fc.simulate(keepers(), 200, t_eval=times, rtol=1e-10, atol=1e-12)
    swing = found.queueing_delay.values.ravel() - 0.06
    size, angle = np.exp(root.real * times), root.imag * times
    parts = np.array([size * np.cos(angle), size * np.sin(angle)]).T
    weights, *_ = np.linalg.lstsq(parts, swing)
    assert np.abs(swing).max() > 1e-6
    assert np.abs(parts @ weights - swing).max() < 1e-3 * np.abs(swing).max()


# --- patched TIMELY -------------------------------------------------------------------------------

rate, delta, beta, alpha, share = positive("R delta beta alpha sigma")
low, least, segment, way = positive("q' D_min Seg D_prop")
g = Symbol("g", real=True)
period = Let(r"\tau^*", Max(segment / rate, least))
weight = Let("w", Min(Max(share * g + Rational(1, 2), 0), 1))
TIMELY = fc.Source(
    "PatchedTIMELY",
    {
        rate: ((1 - weight) * delta - weight * beta * rate * (e - way - low) / low) / period,
        g: alpha / period * (-g + (e - fc.ago(e, period)) / least),
    },
    {"rate": rate},
    params={delta: 10e6, beta: 0.008, alpha: 0.875, share: 0.5, low: 50e-6, least: 20e-6,
            segment: 128e3, way: 100e-6},
    units={rate: "bit/s", g: "1", delta: "bit/s", beta: "1", alpha: "1", share: "1", low: "s",
           least: "s", segment: "bit", way: "s"},
    initial={rate: 1e9, g: 0},
    lower={rate: 1e6},
    ref="Y. Zhu and others, ECN or delay: lessons learnt from analysis of DCQCN and TIMELY, 2016",
)  # fmt: skip


def timely(flows: int, slope: float) -> fc.Network:
    """Over 10 Gbit/s and 100 us, and a packet of 1000 bytes on its way back."""
    net = fc.Network().link("l", fc.DropTail, capacity="10 Gbit/s", delay="100 us")
    for i in range(flows):
        net.flow(f"f{i}", TIMELY(sigma=slope), route=["l"], return_delay="0.8 us")
    return net


@pytest.mark.parametrize(("flows", "stable"), [(4, False), (5, True), (35, True), (37, False)])
def test_patched_timely_as_it_was_coded(flows: int, stable: bool) -> None:
    """Its queue is the paper's, and it is stable for 5 to 35 flows, as a linear run has it."""
    net = timely(flows, 0.5)
    queue = 50e-6 * (1 + flows * 10e6 / (0.008 * 10e9))
    assert float(fc.equilibrium(net).queueing_delay[0]) == pytest.approx(queue, rel=1e-9)
    assert fc.stability(net).stable == stable


@pytest.mark.parametrize(("flows", "grows"), [(10, False), (20, True)])
def test_patched_timely_as_it_is_printed(flows: int, grows: bool) -> None:
    """The slope 2 of the paper's weight: 10 flows settle, 20 do not, in runs as by the verdict."""
    net = timely(flows, 2.0)
    assert fc.stability(net).stable != grows
    rest = float(fc.equilibrium(net).queueing_delay[0])
    found = fc.simulate(net, 0.2, t_eval=np.linspace(0.18, 0.2, 401)).queueing_delay.values
    assert (np.ptp(found) > 0.1 * rest) == grows


def test_many_points_are_judged_as_one_is() -> None:
    net = timely(10, 0.5)
    found = fc.sweep(net, {"sigma": [0.5, 2.0]}, ["stable", "gain_margin", "phase_margin"])
    for i, slope in enumerate((0.5, 2.0)):
        one = fc.stability(timely(10, slope))
        assert bool(found.stable[i]) == one.stable
        assert float(found.gain_margin[i]) == pytest.approx(one.gain_margin, rel=1e-6)
        assert float(found.phase_margin[i]) == pytest.approx(one.phase_margin, rel=1e-6)


def test_sufficient_tests_are_refused() -> None:
    with pytest.raises(fc.errors.Unsupported, match="knows its own past"):
        fc.stability(keepers()).passivity  # noqa: B018
