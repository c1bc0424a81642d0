"""Claims on ECF and P-AQM: their numbers by other means."""

import math

import numpy as np
import pytest

from fluidcc.papers.ecf.common import COUNTS, RTTS, C, averages, mean_field, periods, starting
from tests.papers.rows import outcome


def test_the_printed_periods_and_overheads() -> None:
    assert [round(1e3 * periods(rtt)[1]) for rtt in (0.06, 0.24)] == [160, 520]
    assert outcome("ecf.overheads").values == pytest.approx(
        {"few": 5 * 56 * 8 / 0.16, "many": 100 * 56 * 8 / 0.52}
    )


def test_the_best_gains_by_the_roots_of_the_inner_loop() -> None:
    """z^2 - z + K has (1 + sqrt(1 - 4 K))/2 and, above 1/4, the modulus sqrt(K)."""
    found = outcome("ecf.gains").values
    assert found["slowest"] == pytest.approx((1 + math.sqrt(0.2)) / 2)
    assert found["top"] == pytest.approx((0.6 + math.sqrt(0.2)) / 2)


def test_the_reports_by_hand() -> None:
    """V1: r' = c + (q0' - q) c/T is 35.25 Mbit/s for 15, and 32.25 for 33 after 160 ms."""
    found = outcome("ecf.decrease_and_increase").values
    assert found == pytest.approx({"AI": 20.25e6 / 6, "MD": 32.25 / 33})


def test_red_needs_the_marks_of_the_square_root_law() -> None:
    """With W = c (RTT + q)/(N packet) the ratio is 2/W^2, wherever the run is calm."""
    for count, rtt in ((10, 0.06), (30, 0.06), (30, 0.1)):
        r = mean_field("TCP-like", "RED", count, rtt)
        found = averages(r)
        assert found["jitter"] < 1e-3
        window = C * (rtt + found["delay"]) / (count * 12000.0)
        assert float(r.mark.mean()) == pytest.approx(2 / window**2, rel=1e-3)


@pytest.mark.slow
def test_what_poisson_sources_send_scatters_as_counts_do() -> None:
    """What is sent is spread as a count of packets, and a little more for what ECF sets."""
    found = outcome("ecf.poisson_fairness").values
    assert found["chance"] == pytest.approx(1 / math.sqrt(90 * 1e6 / 12000))
    assert 0.98 < found["told least"] < found["told largest"] < 1.02
    draws = np.random.default_rng(0).normal(0, found["chance"], (4000, 30))
    assert found["lucky"] == pytest.approx(np.mean(np.abs(draws).max(1) < 0.02), abs=0.02)
    assert found["sent largest"] - 1 < 1.5 * np.quantile(draws.max(1), 0.99)


def test_margins_fall_with_the_number_of_sources() -> None:
    found = outcome("ecf.red_margins").values
    for rtt in RTTS[:2]:
        margins = [found[f"margin {n}, {rtt:g}"] for n in COUNTS]
        assert margins == sorted(margins, reverse=True)


@pytest.mark.slow
def test_differences_fall_by_the_decreases_and_by_nothing_else() -> None:
    """Increases are equal for all, so a difference of two rates is multiplied by every MD."""
    r = starting("CBR")
    gap = (
        (r.rate.sel(flow="s5") - r.rate.sel(flow="s1"))
        .sel(time=[44.0, 49.0], method="nearest")
        .values
    )
    ticks = 0.16 * np.arange(1, 400)
    told = r.PAQMECF_MD.sel(
        time=ticks[(ticks + 0.01 > 44) & (ticks + 0.01 < 49)] + 0.08, method="nearest"
    )
    assert gap[1] / gap[0] == pytest.approx(float(np.prod(told)), rel=1e-6)
