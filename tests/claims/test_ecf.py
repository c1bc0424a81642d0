"""The claims on ECF and P-AQM: their verdicts, and numbers worked out here by other means."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from fluidcc.claims import figures_ecf
from fluidcc.claims.ecf_common import COUNTS, RTTS, C, averages, mean_field, periods, starting
from fluidcc.claims.model import Outcome, claims_of

IDS = [c.id.split(".")[1] for c in claims_of("ecf")]
WANTED = {
    "proved": {"control", "wanted_rate", "converges", "period_of_v1"},
    "reproduced": {
        "truncated", "filtered", "gains", "measured_rate", "scheduler", "decrease_and_increase", "source",
        "drops_and_marks", "continuum", "max_min", "red_margins", "shares", "started", "excited", "sawtooth",
        "set_points", "ecf_jitter", "utilisation", "red_delay", "dccp_drops", "late_ones", "slow_tfrc", "frames",
        "overheads", "byte_mode", "marks_by_length", "window", "tfrc",
        "ecf_margins",
    },
    "differs": {
        "period_of_v2", "hold_form", "ecf_delay", "poisson_fairness", "tfrc_jitter", "tfrc_over_red", "tcp_queue",
    },
    "not given": {"report_period", "increase_limit", "stall"},
    "out of a fluid's reach": {"granularity", "drop_ratios", "dccp_fairness"},
}  # fmt: skip


@cache
def outcome(name: str) -> Outcome:
    return next(c for c in claims_of("ecf") if c.id == f"ecf.{name}").check()


@pytest.mark.parametrize("name", IDS)
def test_verdicts(name: str) -> None:
    (wanted,) = [v for v, names in WANTED.items() if name in names]
    found = outcome(name)
    assert found.verdict == wanted, found.computed
    assert all(math.isfinite(v) for v in found.values.values())


@pytest.mark.parametrize("number", range(1, 13))
def test_every_equation_has_a_row(number: int) -> None:
    assert any(f"({number})" in c.place for c in claims_of("ecf"))


def test_the_printed_periods_and_overheads() -> None:
    assert [round(1e3 * periods(rtt)[1]) for rtt in (0.06, 0.24)] == [160, 520]
    assert outcome("overheads").values == pytest.approx({"few": 5 * 56 * 8 / 0.16, "many": 100 * 56 * 8 / 0.52})


def test_red_needs_the_marks_of_the_square_root_law() -> None:
    """With W = c (RTT + q)/(N packet) the ratio is 2/W^2, wherever the run is calm."""
    for count, rtt in ((10, 0.06), (30, 0.06), (30, 0.1)):
        r = mean_field("TCP-like", "RED", count, rtt)
        found = averages(r)
        assert found["jitter"] < 1e-3
        window = C * (rtt + found["delay"]) / (count * 12000.0)
        assert float(r.loss.mean()) == pytest.approx(2 / window**2, rel=1e-3)


def test_what_poisson_sources_send_scatters_as_counts_do() -> None:
    """The spread of what is sent is that of a count of packets, and a little more for what ECF sets."""
    found = outcome("poisson_fairness").values
    assert found["chance"] == pytest.approx(1 / math.sqrt(90 * 1e6 / 12000))
    assert 0.98 < found["told least"] < found["told largest"] < 1.02
    draws = np.random.default_rng(0).normal(0, found["chance"], (4000, 30))
    assert found["lucky"] == pytest.approx(np.mean(np.abs(draws).max(1) < 0.02), abs=0.02)
    assert found["sent largest"] - 1 < 1.5 * np.quantile(draws.max(1), 0.99)


def test_margins_fall_with_the_number_of_sources() -> None:
    found = outcome("red_margins").values
    for rtt in RTTS[:2]:
        margins = [found[f"margin {n}, {rtt:g}"] for n in COUNTS]
        assert margins == sorted(margins, reverse=True)


def test_differences_fall_by_the_decreases_and_by_nothing_else() -> None:
    """Increases are equal for all: from one time to another a difference of two rates is multiplied by every MD."""
    r = starting("CBR")
    gap = (r.rate.sel(flow="s5") - r.rate.sel(flow="s1")).sel(time=[44.0, 49.0], method="nearest").values
    ticks = 0.16 * np.arange(1, 400)
    told = r.PAQMECF_MD.sel(time=ticks[(ticks + 0.01 > 44) & (ticks + 0.01 < 49)] + 0.08, method="nearest")
    assert gap[1] / gap[0] == pytest.approx(float(np.prod(told)), rel=1e-6)


@pytest.mark.parametrize("name", figures_ecf.FIGURES)
def test_figures_have_labelled_axes_with_data(name: str) -> None:
    for ax in figures_ecf.draw(name).axes:
        assert "[" in ax.get_xlabel()
        assert "[" in ax.get_ylabel()
        assert all(np.any(np.isfinite(np.asarray(line.get_ydata(), dtype=float))) for line in ax.lines)
        assert len(ax.lines) >= 2
