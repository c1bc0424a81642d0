"""DCQCN against the paper's equations typed once more, in NumPy, for N flows with one delay."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc

R_AI, B, T, F, G, TAU, TAU_A = 5000.0, 1e4, 55e-6, 5, 1 / 256, 50e-6, 55e-6  # in packets
CAPACITY, K_MIN, SLOPE = 5e6, 5.0, 0.01 / 195  # 40 Gbit/s; marks over the queue [1/packet]


def parts(p: Any, r: Any) -> Any:
    """a to e of the fixed point, and what alpha follows."""
    b, d = (p / ((1 - p) ** -n - 1) for n in (B, T * r))
    a, follows = (1 - (1 - p) ** (n * r) for n in (TAU, TAU_A))
    return a, b, b * (1 - p) ** (F * B), d, d * (1 - p) ** (F * T * r), follows


def flow(alpha: Any, target: Any, rate: Any, p: Any, r: Any) -> Any:
    """(5) to (7), of the mark ratio and the rate a loop ago."""
    a, b, c, d, e, follows = parts(p, r)
    return (
        G / TAU_A * (follows - alpha),
        -(target - rate) / TAU * a + R_AI * r * (c + e),
        -rate * alpha / (2 * TAU) * a + (target - rate) / 2 * r * (b + d),
    )


def fixed_point(n: float) -> tuple[float, ...]:
    """alpha, R_T, R_C and p at which n flows rest, by a^2 alpha/((b + d)(c + e)) = tau^2 R_AI R."""
    r = CAPACITY / n

    def gap(p: float) -> float:
        a, b, c, d, e, alpha = parts(p, r)
        return a * a * alpha - TAU**2 * R_AI * r * (b + d) * (c + e)

    p = brentq(gap, 1e-6, 0.06, xtol=1e-17, rtol=1e-15)
    a, b, _, d, _, alpha = parts(p, r)
    return alpha, r + alpha * a / (TAU * (b + d)), r, p


def ratio(n: int, loop: float, s: complex) -> complex:
    """The return ratio of rates: what marks, and a rate's own past, make of them."""
    alpha, target, r, p = fixed_point(n)
    at, h = np.array([alpha, target, r, p, r]), 1e-30
    J = np.array([np.imag(flow(*(at + 1j * h * (v * row)))) / (h * v)
                  for v, row in zip(at, np.eye(5), strict=True)]).T  # fmt: skip
    by_marks, by_rate = np.linalg.solve(s * np.eye(3) - J[:, :3], J[:, 3:])[2]
    return complex(-np.exp(-s * loop) * (n * SLOPE / s * by_marks + by_rate))


# As in the paper no queue is in the loop: its switches mark what leaves.
MARKS = {"mark": fc.RampMark.out["mark"]}
EGRESS = replace(fc.RampMark, name="Egress", queue=None, out=MARKS)


def over(n: int, loop: float, unit: float = 1.0, ceiling: float = 1.0) -> fc.Network:
    """n flows; with a ceiling of 1 the ramp goes on beyond 200 kB, as in the paper's analysis."""
    law = fc.DCQCN(R_AI=40e6 / unit, T=T * unit, tau=TAU * unit, tau_alpha=TAU_A * unit)
    ramp = EGRESS(K_min=1e-6 * unit, K_max=(1 + ceiling * 3900) * 1e-6 * unit, p_max=ceiling)
    return fc.dumbbell([law] * n, {"law": ramp, "capacity": 40e9 / unit}, rtt=loop * unit)


@pytest.mark.parametrize("n", [2, 10, 64])
def test_it_rests_at_the_fixed_point(n: int) -> None:
    rest = fc.equilibrium(over(n, 85e-6))
    alpha, target, rate, p = fixed_point(n)
    assert rest.mark.values == pytest.approx(p, rel=1e-9)
    assert rest.rate.values == pytest.approx(8000 * rate, rel=1e-9)
    found = rest.states["flow1"]
    assert [float(found["alpha"]), float(found["R_T"])] == pytest.approx(
        [alpha, 8000 * target], rel=1e-9
    )


def test_from_15_flows_on_it_rests_only_where_the_ramp_goes_on() -> None:
    edge = brentq(lambda n: fixed_point(n)[3] - 0.01, 2, 60)
    assert edge == pytest.approx(14.96, abs=0.01)
    assert float(fc.equilibrium(over(14, 85e-6, ceiling=0.01)).mark[0]) < 0.01
    with pytest.raises(fc.base.errors.NoEquilibrium):
        fc.equilibrium(over(16, 85e-6, ceiling=0.01))


def hand_margin(n: int, loop: float) -> float:
    """By how much it may grow before the return ratio comes to -1."""
    w = np.geomspace(1e2, 1e6, 4000)
    at = np.array([ratio(n, loop, 1j * one) for one in w])
    ends = np.flatnonzero((np.diff(np.sign(at.imag)) != 0) & (at.real[1:] < 0))
    roots = [
        brentq(lambda v: ratio(n, loop, 1j * v).imag, w[k], w[k + 1], rtol=1e-13) for k in ends
    ]
    return min(v for one in roots if (v := 1 / abs(ratio(n, loop, 1j * one))) > 1)


@pytest.mark.parametrize(("n", "stable"), [(2, True), (10, False), (64, True)])
def test_it_is_stable_for_few_and_for_many_flows_only(n: int, stable: bool) -> None:
    """The paper's Fig. 3, at 85 us. Roots and gain margin are those of the typed equations."""
    report = fc.stability(over(n, 85e-6))
    assert report.stable == stable
    root = report.rightmost_roots[0]
    if root.imag:  # else of a shift between flows
        assert abs(1 + ratio(n, 85e-6, root)) < 1e-9
    if stable:
        assert report.margins.gain == pytest.approx(hand_margin(n, 85e-6), rel=1e-6)
        slow = fc.stability(over(n, 85e-6, unit=1e3))  # time has no unit
        assert slow.margins.gain == pytest.approx(report.margins.gain, rel=1e-9)


def test_it_hears_marks_alone() -> None:
    """A path that loses packets sends no notices: the rate grows as one that is told nothing."""
    rates = []
    for ratio in (0, 0.01):
        net = fc.Network().link("l", fc.DropTail, capacity="40 Gbit/s", delay="5 us", loss=ratio)
        net.flow("f", fc.DCQCN, route=["l"], return_delay="5 us")
        rates.append(fc.simulate(net, "2 ms").rate)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-6)
    assert rates[0][-1, 0] > 1.05 * rates[0][0, 0]
