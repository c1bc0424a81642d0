"""Claims of the binomial paper: their numbers by other means."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.papers.binomial import figures as figures_binomial
from fluidcc.papers.binomial.cycles import climb, cycles_to_fairness
from fluidcc.papers.binomial.runs import fig5
from fluidcc.plotting import convergence_plane
from tests.papers.rows import outcome


def test_losses_of_100_flows_by_hand() -> None:
    # AIMD1: steps of 5 kbit/s. From x the rates of a period of three are x, x + 5 and x + 10, and
    # (x + 10)/2 = x: x = 10.
    assert fig5("AIMD1")[99] == pytest.approx((100 * 20 - 1544) / (100 * (10 + 15 + 20)))


def test_the_fair_cycle_of_aimd_by_hand() -> None:
    # both fall by half and rise by the same, so the difference of the rates halves: 60, 30, 15, ...
    fair = [(100 - 60 * 0.5**m) / (100 + 60 * 0.5**m) for m in range(20)]
    assert cycles_to_fairness(0, 1, 0.5) == next(m for m, f in enumerate(fair) if f >= 0.99)


def test_rates_climb_together() -> None:
    a, b = climb(10.0, 40.0, 1.0, 100.0)
    assert a + b == pytest.approx(100)
    assert a**2 - 10**2 == pytest.approx(b**2 - 40**2)  # x' = 1/x: x^2 grows at the same pace


def test_the_counterexamples_of_convergence_in_the_interval_model() -> None:
    # k + l = 0.1 > 0, but with z = 0.9 two nearly equal rates part
    run = fc.synchronized(-0.5, 0.6, 2e-4, 0.9, 2.0, initial=[0.999, 1.001], intervals=40_000)
    assert run.fairness[-1] < run.fairness[0]
    # and k + l = -0.01 < 0, but they meet
    run = fc.synchronized(0.5, -0.51, 2e-4, 0.9, 2.0, initial=[0.97, 1.03], intervals=40_000)
    assert run.fairness[-1] > run.fairness[0]


def test_numbers_of_figure_4() -> None:
    assert list(outcome("binomial.errors_at_aimd").values.values()) == pytest.approx(
        [0.3088, 0.3592, 0.2857], abs=5e-5
    )
    assert outcome("binomial.flow_limit").computed.count("158.74") == 1
    crossing = outcome("binomial.efficiency_crossing").values
    for l in (-0.5, 0.0, 0.5):  # (3/5)(1 - r^2.5)/(1 - r^1.5) = 3/4 at a decrease to the part r
        left = 1 - 0.5 * crossing[f"l = {l:g}"] ** (1 - l)
        assert 0.6 * (1 - left**2.5) / (1 - left**1.5) == pytest.approx(0.75)
    values = outcome("binomial.experiment_parameters").values
    assert values == pytest.approx({"growth": 0.05, "fall": 0.5})


def test_losses_of_the_example_by_hand() -> None:
    """Exactly, p = a/(1 + a) with a = 1/999, 100/999 and 10 000/999: 0.1, 9.1 and 90.9 %."""
    found = outcome("binomial.loss_example").values
    assert list(found.values()) == pytest.approx([1e-3, 100 / 1099, 10_000 / 10_999])


def test_the_tcp_friendly_iscc_is_slow_by_a_loop() -> None:
    x, intervals = np.array([0.2, 0.8]), 0
    while x[0] / x[1] < 0.99:
        x, intervals = x - x**3 / 3 if x.sum() > 1 else x + x**2 / 20, intervals + 1
    assert outcome("binomial.tcp_friendly_is_slow").values["n = 2"] == intervals


def test_figure_5_draws_the_losses() -> None:
    growth, ratio = figures_binomial.FIGURES["binomial_fig5"]().axes
    for name in ("AIMD1", "AIMD2", "IIAD"):
        line = next(line for line in ratio.lines if line.get_label() == name)
        assert np.asarray(line.get_ydata()) == pytest.approx(100 * fig5(name))
        line = next(line for line in growth.lines if line.get_label() == name)
        assert np.asarray(line.get_ydata())[-1] == pytest.approx(fig5(name)[-1] / fig5(name)[0])


def test_the_corners_of_cycles() -> None:
    path = figures_binomial.corners("AIMD", 3)
    assert path[::2].sum(axis=1) == pytest.approx(100)
    assert path[1] == pytest.approx([10, 40])  # half of (20, 80)
    assert path[2] == pytest.approx([35, 65])  # and up by the same


def test_the_plane_has_its_lines() -> None:
    ax = convergence_plane([[20, 80], [10, 40], [35, 65]], 100, label="AIMD", unit="Mbit/s")
    assert ax.get_xlabel() == "rate x [Mbit/s]"
    lines = {line.get_label(): np.asarray(line.get_xydata()) for line in ax.lines}
    assert lines["efficiency line"].sum(axis=1) == pytest.approx([100, 100])
    assert np.ptp(lines["fairness line"], axis=1) == pytest.approx([0, 0])
    assert lines["equi-fairness line"][1, 1] / lines["equi-fairness line"][1, 0] == pytest.approx(4)
    assert len(lines["AIMD"]) == 3
