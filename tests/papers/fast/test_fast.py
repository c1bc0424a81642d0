"""Claims on FAST's persistent congestion: their numbers by other means."""

import math

import numpy as np
import pytest

from fluidcc.papers.fast import figures as figures_fast
from fluidcc.papers.fast.common import FLOWS, ratios
from fluidcc.papers.zoo.fast import ALPHA, METHODS, C
from tests.papers.rows import outcome


def golden(n: int) -> float:
    """The newcomer's backlog over alpha: the positive root of b^2 - b - n, by a fixed point."""
    b = 1.0
    for _ in range(500):
        b = math.sqrt(b + n)
    return b


def test_the_unfairness_by_a_fixed_point() -> None:
    found = [outcome("fast.fast_over_n").values[f"n = {n}"] for n in FLOWS]
    assert found == pytest.approx([golden(n) for n in FLOWS], rel=0.02)


def test_the_threshold_by_a_fixed_point() -> None:
    found = outcome("fast.decoded").values
    assert found["threshold"] == pytest.approx(8 * golden(8) * ALPHA / C)
    assert found["threshold"] == pytest.approx(0.108, abs=5e-4)
    assert found["C"] == pytest.approx(8 * golden(8) * ALPHA / 0.108)


@pytest.mark.slow
def test_below_the_threshold_a_pause_leaves_what_is_not_drained() -> None:
    """The others answer a round trip r after the pause begins; till then 99 % of x0 r have gone.

    The newcomer then takes for propagation what is left, and rests where (2) fills the link.
    """
    found = outcome("fast.reduction_over_rtt").values
    for d in (0.04, 0.06, 0.08, 0.1):
        queue = (golden(8) + 8) * ALPHA
        left = queue - 0.99 * C / golden(8) * (d + queue / C)
        b = np.linspace(1, 8 * ALPHA, 400001)  # what the newcomer has in the queue after the pause
        b = b[np.argmin(np.abs(ALPHA / b + 8 * ALPHA / (b + left) - 1))]
        assert found[f"d = {d:g}"] == pytest.approx((b + left) / b, rel=0.05)
        if d == 0.06:  # however long it is
            longer = outcome("fast.longer_pause").values
            assert all(
                v == pytest.approx((b + left) / b, rel=0.02)
                for k, v in longer.items()
                if "pause" in k
            )


@pytest.mark.slow
def test_what_a_short_buffer_loses() -> None:
    """Queue and probe above the 500 packets of the buffer."""
    queue = (golden(4) + 4) * ALPHA
    probe = 0.5 * C / golden(4) * (0.1 + queue / C)
    assert outcome("fast.small_buffer").values["theta = -0.5"] == pytest.approx(
        queue + probe - 500, rel=0.05
    )


def test_the_plateaus_by_bisection() -> None:
    """After each arrival the flows' parts of the queue are alpha C/x, and rates fill the link."""
    met: list[float] = []
    queue = 0.0
    for _ in range(5):
        met.append(queue)
        low, high = queue + ALPHA, queue + 5 * ALPHA
        for _ in range(100):
            mid = 0.5 * (low + high)
            low, high = (mid, high) if sum(ALPHA / (mid - b) for b in met) > 1 else (low, mid)
        queue = low
    rate = [ALPHA * C / (queue - b) for b in met]
    found = outcome("fast.plateaus_of_fast").values
    assert [found[f"flow{i}"] for i in range(1, 6)] == pytest.approx(rate, rel=0.02)


@pytest.mark.slow
def test_one_of_two_newcomers_at_once_takes_four_others_for_twelve() -> None:
    values = outcome("fast.simultaneous").values
    assert values["apart"] == pytest.approx(12 / 4, rel=0.01)
    assert values["together"] == pytest.approx(1.0, rel=0.01)


@pytest.mark.slow
def test_what_a_small_disturbance_becomes_is_the_rightmost_root() -> None:
    """Below and above both boundaries; that of x = w/r by its characteristic equation."""
    values = outcome("fast.stability_needs_the_clock").values
    for law in ("StaticFAST", "FAST"):
        for side, sign in (("0.95", -1), ("1.05", 1)):
            assert values[f"{law}, {side}"] == pytest.approx(
                values[f"{law}, {side}, root"], rel=1e-3
            )
            assert sign * values[f"{law}, {side}"] > 0
    # w' = k (1 - q w/(R alpha)), C q' = w/R - C, where R = r + q is heard one round trip late.
    # Small disturbances: C s dq = dw/R - C/R e dq and, with w = C R,
    # s dw = -k (w/(R alpha) (1 - q/R) e dq + q/(R alpha) dw)
    r, q = 0.1, ALPHA / C
    R = r + q

    def crossing(omega: float) -> tuple[float, float]:
        # what is heard is q one round trip ago
        e = complex(math.cos(omega * R), -math.sin(omega * R))
        left = 1j * omega * (1j * omega + e / R)
        right = -(C * (1 - q / R) * e / ALPHA / (R * C) + q / (R * ALPHA) * (1j * omega + e / R))
        k = left / right
        return k.real, k.imag

    from scipy.optimize import brentq

    omega = brentq(lambda v: crossing(v)[1], 0.3 / R, 1.6 / R)
    gamma = crossing(omega)[0] * 0.2 / ALPHA
    assert outcome("fast.stabilizes").values["static, r = 0.1"] == pytest.approx(
        gamma * r / 0.2, rel=1e-9
    )


def test_figure_3_draws_the_ratios() -> None:
    (ax,) = figures_fast.FIGURES["fast_fig3a"]().axes
    for method in METHODS:
        line = next(line for line in ax.lines if line.get_label() == method)
        assert np.asarray(line.get_ydata()) == pytest.approx(ratios(method, "rtt"))
