"""Limit cycles of relays and beyond Hopf points, where nothing jumps or ticks."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, fsolve

import fluidcc as fc
from fluidcc.base.errors import SolverError
from fluidcc.symbols import pi, positive, x_tau

x = positive("x")
high, low, T, r, K = positive("high low T r K")


@pytest.mark.parametrize("second", [1.0, 1e-6, 1e6])
def test_a_relay_with_a_lag_and_a_delay_has_the_cycle_of_its_exponentials(second: float) -> None:
    """A rate follows 1.2 or 0.8 of the capacity, by marks beyond a threshold of the queue: what
    arrives when the queue passes it is K + d old. So in any unit of time.
    """
    bits, delta = 1e7, 0.2
    c, trip, threshold, lag = bits / second, 0.1 * second, 0.5 * second, 0.3 * second
    law = fc.Source(
        "Relay", {x: ((1 - pi) * high + pi * low - x) / T}, {"rate": x}, initial={x: c},
        params={high: (1 + delta) * c, low: (1 - delta) * c, T: lag}, lower={x: 0},
        units={x: "bit/s", high: "bit/s", low: "bit/s", T: "s"},
    )  # fmt: skip
    link = {"law": fc.StepMark(K=threshold), "capacity": f"{c} bit/s", "buffer": 4 * bits}
    cycle = fc.limit_cycle(fc.dumbbell([law], link, rtt=f"{trip} s"))

    def half(unknown: np.ndarray) -> list[float]:
        """Half a cycle from when the queue passes K upwards: the excess rate is then -v, and the
        queue K again.
        """
        v, long = unknown
        first, later = threshold + trip, long - threshold - trip
        fell, falls = np.exp(-first / lag), np.exp(-later / lag)
        turned = delta + (v - delta) * fell
        area = delta * (first - later) + lag * ((v - delta) * (1 - fell))
        return [
            (turned + delta) * falls - delta + v,
            (area + lag * (turned + delta) * (1 - falls)) / second,
        ]

    v, long = fsolve(half, [0.1, 2.0 * second], xtol=1e-13)
    assert cycle.period == pytest.approx(2 * long, rel=1e-9)
    highest = delta + (v - delta) * np.exp(-(threshold + trip) / lag)
    assert float(cycle.most.rate[0]) == pytest.approx((1 + highest) * c, rel=1e-9)
    assert float(cycle.mean.queueing_delay[0]) == pytest.approx(threshold, rel=1e-9)


LOGISTIC = fc.Source(
    "Logistic", {x: r * x * (1 - x_tau / K)}, {"rate": x}, params={r: 1.8, K: 1e6},
    units={x: "bit/s", r: "1/s", K: "bit/s"}, initial={x: 5e5}, lower={x: 0},
)  # fmt: skip


def first(solution: Callable[[float], np.ndarray], t: float) -> float:
    return float(solution(t)[0])


def by_steps(r: float, laps: int = 120) -> np.ndarray:
    """Intervals at which Hutchinson's equation rises through 1, by SciPy one delay at a time."""
    y, marks = 0.5, []

    def past(t: float) -> float:
        return 0.5

    for lap in range(laps):
        run = solve_ivp(
            lambda t, y, past=past: r * y * (1 - past(t - 1)), (lap, lap + 1), [y],
            method="DOP853", rtol=1e-12, atol=1e-14, dense_output=True,
        )  # fmt: skip
        past, y = partial(first, run.sol), run.y[0, -1]
        at = np.linspace(lap, lap + 1, 200)
        above = run.sol(at)[0] > 1
        marks += [
            brentq(lambda s, past=past: past(s) - 1, at[k], at[k + 1], xtol=1e-13)
            for k in np.flatnonzero(~above[:-1] & above[1:])
        ]
    return np.diff(marks)


def test_the_cycle_beyond_a_hopf_point_is_that_of_another_solver() -> None:
    """Hutchinson's equation: a cycle from r = pi/2 on, to which disturbances shrink."""
    net = fc.dumbbell([LOGISTIC], {"capacity": "1 Gbit/s"}, rtt=1.0)
    cycle, others = fc.limit_cycle(net), by_steps(1.8)
    assert cycle.period == pytest.approx(others[-1], rel=1e-8)
    shrinks = np.diff(others)[9:11]
    assert cycle.contraction == pytest.approx(shrinks[1] / shrinks[0], rel=1e-2)
    assert len(cycle.jumps) == 1
    resting = net.with_flow("flow1", law=LOGISTIC(r=1.4))
    with pytest.raises(SolverError, match="no limit cycle: .* no state moves by more than"):
        fc.limit_cycle(resting)
    full = fc.dumbbell([fc.Reno], {"capacity": 1e7, "buffer": "20 packets"}, rtt="50 ms")
    with pytest.warns(fc.errors.FluidccWarning, match=r"\(Reno\) is a mean over losses"):
        fc.limit_cycle(full)
    slow = net.with_flow("flow1", law=LOGISTIC(r=1.565))  # decays by 0.5 % a cycle
    with pytest.raises(SolverError, match="rests, or drifts|something still changes by"):
        fc.limit_cycle(slow)


def test_a_smooth_law_beyond_its_hopf_point_whose_queue_falls_from_a_transient() -> None:
    """The queue rises through its first mean for 16 s, and then swings below it; against a run."""
    net = fc.dumbbell([fc.LDCC(eta=1.583)] * 3, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    cycle, run = fc.limit_cycle(net), fc.simulate(net, "150 s", samples=150_001)
    late = run.rate.sel(time=slice(140, None))
    assert float(cycle.most.rate[0]) == pytest.approx(float(late.max()), rel=1e-3)
    assert float(cycle.least.rate[0]) == pytest.approx(float(late.min()), rel=1e-3)
