"""Claims on ECF and P-AQM: their verdicts, their numbers by other means, and the figures."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fluidcc.papers.ecf import equations as ecf_equations
from fluidcc.papers.ecf import figures as figures_ecf
from fluidcc.papers.ecf import runs as ecf_runs
from fluidcc.papers.ecf.common import COUNTS, RTTS, C, averages, mean_field, periods, starting
from fluidcc.papers.model import Outcome, claims_of
from fluidcc.symbols import unfold

IDS = [c.id.split(".")[1] for c in claims_of("ecf")]
WANTED = {
    "proved": {
        "control", "inner_eigenvalues", "wanted_rate", "wanted_rate_late", "converges",
        "period_of_v1",
    },
    "reproduced": {
        "truncated", "filtered", "gains", "measured_rate", "scheduler", "decrease_and_increase",
        "source", "drops_and_marks", "continuum", "max_min", "shares", "started", "excited",
        "sawtooth", "set_points", "dccp_drops", "late_ones", "slow_tfrc", "frames", "overheads",
        "byte_mode", "marks_by_length", "window", "ecf_margins", "rtt_fairness", "tfrc_drops",
        "inner_drops",
    },
    "differs": {
        "period_of_v2", "hold_form", "ecf_delay", "poisson_fairness", "tfrc_jitter",
        "tfrc_over_red", "tcp_queue", "ecf_jitter", "utilisation", "red_delay", "red_margins",
        "tfrc", "tfrc_jitter_over_red",
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
    assert outcome("overheads").values == pytest.approx(
        {"few": 5 * 56 * 8 / 0.16, "many": 100 * 56 * 8 / 0.52}
    )


def test_red_needs_the_marks_of_the_square_root_law() -> None:
    """With W = c (RTT + q)/(N packet) the ratio is 2/W^2, wherever the run is calm."""
    for count, rtt in ((10, 0.06), (30, 0.06), (30, 0.1)):
        r = mean_field("TCP-like", "RED", count, rtt)
        found = averages(r)
        assert found["jitter"] < 1e-3
        window = C * (rtt + found["delay"]) / (count * 12000.0)
        assert float(r.loss.mean()) == pytest.approx(2 / window**2, rel=1e-3)


def test_what_poisson_sources_send_scatters_as_counts_do() -> None:
    """What is sent is spread as a count of packets, and a little more for what ECF sets."""
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


# --- a wrong value turns the verdict --------------------------------------------------------------

AS_PRINTED = {
    "ecf_jitter": {"jitter": (4e-3, 5e-3, 9.6e-3)},
    "ecf_delay": {"delay": (28e-3, 28e-3, 18.7e-3)},
    "tfrc": {"delay": (49e-3, 45e-3, 40e-3)},
    "tfrc_jitter": {"jitter": (2.8e-3, 3.9e-3, 10.8e-3)},
    "tfrc_jitter_over_red": {"jitter": (3e-3, 4e-3, 9.6e-3)},
    "utilisation": {"utilisation": (0.92, 0.999, 1.0)},
    "tfrc_drops": {"loss": (0.0, 0.0, 0.0)},
    "inner_drops": {"loss": (0.02, 0.02, 0.02)},
}


def _faked(
    monkeypatch: pytest.MonkeyPatch, what: str, values: tuple[float, ...], ours: float
) -> None:
    """Every run has these values at 60, 100 and 240 ms; of ECF's utilisation all are `ours`."""
    fixed = {"delay": 0.03, "jitter": 3e-3, "utilisation": ours, "loss": 0.0}
    monkeypatch.setattr(
        ecf_runs,
        "averages",
        lambda rtt: fixed if rtt is None else {**fixed, what: values[RTTS.index(rtt)]},
    )
    monkeypatch.setattr(ecf_runs, "mean_field", lambda kind, aqm, n, rtt: rtt)
    monkeypatch.setattr(ecf_runs, "dccp", lambda n, rtt: rtt)
    monkeypatch.setattr(ecf_runs, "held_at", lambda aim: 0.06)
    monkeypatch.setattr(
        ecf_runs, "steady", lambda kind, v, n, rtt: None if what == "utilisation" else rtt
    )


@pytest.mark.parametrize("name", AS_PRINTED)
def test_what_is_as_printed_is_reproduced_and_another_value_differs(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ((what, values),) = AS_PRINTED[name].items()
    _faked(monkeypatch, what, values, 0.999)
    assert getattr(ecf_runs, name)().verdict == "reproduced"
    wrong = {"tfrc_drops": (1e-3,) * 3, "inner_drops": (9e-3,) * 3}.get(
        name, tuple(0.8 * v for v in values)
    )
    _faked(monkeypatch, what, wrong, 0.999)
    assert getattr(ecf_runs, name)().verdict == "differs"


def test_a_delay_that_falls_with_the_round_trip_is_as_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def table(bend: float) -> None:
        monkeypatch.setattr(ecf_runs, "mean_field", lambda kind, aqm, n, rtt: (n, rtt))
        monkeypatch.setattr(ecf_runs, "dccp", lambda n, rtt: (n, rtt))
        monkeypatch.setattr(
            ecf_runs,
            "averages",
            lambda at: {"delay": at[0] * 1e-3 - at[1] / 10 + bend * (at == (30, 0.1))},
        )

    table(0.0)
    assert ecf_runs.red_delay().verdict == "reproduced"
    table(0.01)
    assert ecf_runs.red_delay().verdict == "differs"


def test_oscillations_that_grow_all_along_are_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    stable = type("Report", (), {"delay_margin": 0.01, "__bool__": lambda self: False})
    monkeypatch.setattr(ecf_equations, "at_rest", lambda n, rtt: (None, 0.1))
    monkeypatch.setattr(ecf_equations, "stability", lambda net: stable())
    monkeypatch.setattr(ecf_equations, "mean_field", lambda kind, aqm, n, rtt: (n, rtt))
    monkeypatch.setattr(ecf_equations, "averages", lambda at: {"jitter": at[0] * at[1] / 100})
    assert ecf_equations.red_margins().verdict == "reproduced"
    monkeypatch.setattr(ecf_equations, "averages", lambda at: {"jitter": at[0] / at[1] / 100})
    assert ecf_equations.red_margins().verdict == "differs"


@pytest.mark.parametrize("check", ["control", "wanted_rate", "wanted_rate_late"])
def test_another_formula_is_not_proved(monkeypatch: pytest.MonkeyPatch, check: str) -> None:
    (tick,) = ecf_equations.PAQM.ticks
    twice = {
        z: unfold(f).subs(ecf_equations._K, 2 * ecf_equations._K) for z, f in tick.update.items()
    }
    monkeypatch.setattr(
        ecf_equations, "PAQM", replace(ecf_equations.PAQM, ticks=(replace(tick, update=twice),))
    )
    for name in ("V1", "V2"):
        monkeypatch.setattr(ecf_equations, name, getattr(ecf_equations, name) + ecf_equations.c)
    assert getattr(ecf_equations, check)().verdict == "refuted"


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


@pytest.mark.parametrize("name", figures_ecf.FIGURES)
def test_figures_have_labelled_axes_with_data(name: str) -> None:
    for ax in figures_ecf.FIGURES[name]().axes:
        assert "[" in ax.get_xlabel()
        assert "[" in ax.get_ylabel()
        assert all(
            np.any(np.isfinite(np.asarray(line.get_ydata(), dtype=float))) for line in ax.lines
        )
        assert len(ax.lines) >= 2
