"""The claims of the LDCC paper: every row is complete, and its numbers agree with formulas
worked out here.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.papers import Table
from tests.papers.rows import check_rows

FLOOR = 200e3  # w/beta [bit/s]

pytestmark = pytest.mark.xdist_group("ldcc table")  # computed once, not once in each process


@pytest.fixture(scope="module")
def rows() -> Table:
    return fc.claims.table("ldcc", progress=False)


def test_every_row_has_a_verdict_and_a_reason_where_one_is_due(rows: Table) -> None:
    check_rows(rows)


@pytest.mark.parametrize("number", range(1, 49))
def test_every_equation_has_a_row(rows: Table, number: int) -> None:
    def covers(place: str) -> bool:
        return any(part.strip().rstrip("ab)").endswith(f"({number}") for part in place.split(","))

    assert any(covers(r.place) for r in rows), f"({number})"


@pytest.mark.parametrize("figure", [2, 5, 6, 7, 8, 10, 11, 12, 13, 14])
def test_every_figure_has_a_row(rows: Table, figure: int) -> None:
    assert any(
        f"{figure}" in r.place.replace("Figs.", "Fig.").split("Fig.")[-1].replace(",", "").split()
        for r in rows
        if "Fig" in r.place
    )


def test_every_suspected_misprint_has_a_row(rows: Table) -> None:
    wanted = {
        "projection_freezes", "no_upper_projection", "loss_only_while_full", "path_loss_as_printed",
        "delayed_rates",
        "frozen_against_fifo", "receiving_rate_index", "discrete_rule_below_threshold", "threshold",
        "lowest_capacity",
        "propagation_vectors", "fig7_capacity", "kilobyte", "gain_divided",
        "gain_before_the_sum", "link_storage_offset", "users_inequality", "slope_inequality",
        "links_inequality",
        "sum_of_storages", "each_user_alone", "several_bottlenecks", "stable_without_condition",
        "mixed_regime",
        "coexistence_static", "comparison_gcc_rule", "constant_delay",
    }  # fmt: skip
    assert {r.id.split(".")[1] for r in rows.filter(erratum=True)} == wanted


def test_misprints_are_not_confirmed_as_printed(rows: Table) -> None:
    assert {r.verdict for r in rows.filter(erratum=True)} <= {"differs", "refuted", "not given"}


REFUTED = {
    "no_queue_at_optimum", "delay_cannot_starve", "delayed_rates", "projection_freezes",
    "path_loss_as_printed",
    "gain_divided", "users_inequality", "slope_inequality", "sum_of_storages",
    "each_user_alone", "several_bottlenecks", "coexistence_static",
}  # fmt: skip


def test_what_is_refuted(rows: Table) -> None:
    assert {r.id.split(".")[1] for r in rows.filter(verdict="refuted")} == REFUTED


def test_equations_15_to_25_are_proved_but_for_two_misprints(rows: Table) -> None:
    for number in (15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25):
        verdicts = [r.verdict for r in rows if r.place == f"({number})"]
        assert verdicts.count("proved") >= (0 if number == 22 else 1), number


# --- numbers, by formulas that share nothing with the library -------------------------------------


def delay(rate: float, back: float, T: float = 0.1) -> float:
    """(19)."""
    r = FLOOR / rate
    return (back * r + T) / (1 - r)


def lossy(share: float, flows: int, other: float = 0.5e6, capacity: float = 3.5e6) -> float:
    """Loss ratio at which w/x = pi, by fixed-point iteration; `share` is where it starts."""
    x = share
    for _ in range(200):
        x = (capacity / (1 - 20e3 / x) - other) / flows
    return 20e3 / x


def queue(delays: tuple[float, ...], capacity: float) -> float:
    """The queue at which flows of these propagation delays share a link, by bisection."""
    low, high = 0.0, 50.0
    for _ in range(200):
        q = 0.5 * (low + high)
        total = sum(
            FLOOR * (2 * p + q) / (p + q - 0.1) if p + q > 0.1 else math.inf for p in delays
        )
        low, high = (q, high) if total > capacity else (low, q)
    return q


NUMBERS = [
    ("fig5_values", "two", delay(1.5e6, 0.025)),
    ("fig5_values", "three", delay(1.0e6, 0.025)),
    ("threshold", "delay50", delay(1.0e6, 0.025, T=0.05)),
    ("threshold", "delay100", 0.025 + 25 * 8000 / 3.5e6),
    ("threshold", "loss100", lossy(1e6, 3)),
    ("fig6_fair", "loss", lossy(1e6, 3)),
    ("loss_signal_approximation", "loss_15", lossy(1e6, 3)),
    ("only_losses", "rate", 20e3 / lossy(1.5e6, 2)),
    ("loss_as_price", "loss", 60e3 / 3.06e6),
    ("buffer_130", "q_max", 130 * 8000 / 3.5e6),
    ("buffer_25", "e_max", 0.025 + 25 * 8000 / 3.5e6),
    ("kilobyte", "1024 B", 130 * 1024 * 8 / 3.5e6),
    ("latecomers", "ratio", (1 + math.sqrt(5)) / 2),
    ("self_inflicted", "q", 50e3 / 2e6),
    ("rate_floor", "floor", FLOOR),
    ("below_floor", "loss", 20e3 / 157.806e3 - 0.1 * (0.525 - 0.1) / 0.55),
    ("lowest_capacity", "low", queue((0.025,) * 4, 1e6)),
    ("lowest_capacity", "high", queue((0.025, 0.075, 0.075, 0.075), 1e6)),
    ("lowest_capacity", "least", 4 * FLOOR * 0.55 / 0.425),
    ("path_loss", "path", 1 - (1 - 0.0123000461) * (1 - 0.0122179718)),
    ("delayed_rates", "made", 10e6),
    ("starvation", "queueing delay", 5e3),
    ("jain_bounds", "mixed", 36 / 42),
    ("coexistence_aggressive", "limit", (20e3 * (0.1 + 30 * 8000 / 2.5e6) / 8000) ** 2 / 2),
    ("coexistence_floor", "static", 0.2e6 * (0.05 + 64.0 + 0.05) / (0.05 + 64.0 - 0.1)),
    (
        "comparison_small_capacities",
        "least R_max",
        0.2e6 * (math.sqrt(0.1) + math.sqrt(0.125)) ** 2 / 0.025,
    ),
    ("comparison_small_capacities", "LDCC", delay(0.5e6, 0.025) / delay(3e6, 0.025)),
    ("comparison_constant", "LDCC", delay(1.5e6, 0.025)),
    ("comparison_constant", "NADA", 5 / 1.5 * 0.025),
    ("related_nada_new", "NADA8698 600000", 0.01 * 1.5 / 0.6),
    ("related_nada_new", "NADA 300000", 0.025 * 4),
    ("fig5_settling", "mode", 0.4 / (0.025 + delay(1e6, 0.025)) * 20e3 / 1e6),
]


@pytest.mark.parametrize(
    ("name", "key", "by_hand"), NUMBERS, ids=[f"{n}-{k}" for n, k, _ in NUMBERS]
)
def test_numbers_by_hand(rows: Table, name: str, key: str, by_hand: float) -> None:
    assert rows[name].values[key] == pytest.approx(by_hand, rel=2e-5)


def test_the_parking_lot_meets_19_on_every_route_and_fills_both_links(rows: Table) -> None:
    v = rows["fig10_long_flow"].values
    x1, x2, x3 = v["x1"], v["x2"], v["x3"]
    assert x2 == pytest.approx(x3)
    assert x1 + x2 == pytest.approx(2e6)  # 2.5 less the constant 0.5 Mbit/s
    # Flow 1 meets both queues: e1 = 50 ms + 2 (e2 - 25 ms).
    assert delay(x1, 0.05) == pytest.approx(0.05 + 2 * (delay(x2, 0.025) - 0.025))
    assert delay(v["two_x1"], 0.05) - 0.05 == pytest.approx(delay(v["two_x2"], 0.025) - 0.025)


def test_the_mixed_parking_lot_balances(rows: Table) -> None:
    v, rates = rows["fig11_mixed"].values, rows["fig11_long_flow"].values
    assert v["e1"] == pytest.approx(0.15)
    assert 20e3 / rates["x1"] == pytest.approx(0.1 * (0.15 - 0.1) / 0.2 + v["loss1"])
    assert rates["two_x1"] == pytest.approx(20e3 / lossy(1e6, 2, capacity=2.5e6))


def test_the_penalty_at_300_ms(rows: Table) -> None:
    found = rows["penalty_curves"].values
    assert found["300 ms, p = 25 ms"] == pytest.approx(0.1 * 0.2 / 0.325)
    assert found["300 ms, p = 100 ms"] == pytest.approx(0.1 * 0.2 / 0.4)


def test_rates_of_figure_8_by_bisection(rows: Table) -> None:
    p = np.array([0.025, 0.04, 0.06, 0.075])
    for c in (2, 4, 6):
        q = queue(tuple(p), c * 1e6)
        rate = FLOOR * (2 * p + q) / (p + q - 0.1)
        assert rows["fig8_extremes"].values[f"low{c}"] == pytest.approx(rate[-1], rel=1e-6)
        assert rows["fig8_extremes"].values[f"high{c}"] == pytest.approx(rate[0], rel=1e-6)
    assert rows["fig8_worst"].values["25, 40, 60, 75 ms"] == pytest.approx(
        rate[-1] / 1.5e6, rel=1e-6
    )


def test_jain_by_hand(rows: Table) -> None:
    p = np.array([0.025, 0.025, 0.025, 0.075])
    for c in (1.25, 1.6, 3.0, 6.0):
        q = queue(tuple(p), c * 1e6)
        rate = FLOOR * (2 * p + q) / (p + q - 0.1)
        expected = rate.sum() ** 2 / (4 * (rate**2).sum())
        assert rows["fig7_capacity"].values[f"{c:g}"] == pytest.approx(expected, abs=1e-9)


def test_the_whole_table_renders(rows: Table) -> None:
    assert len(rows.to_markdown().splitlines()) == len(rows) + 2
    assert rows._repr_html_().count("<tr") == len(rows) + 1
    assert len(repr(rows).splitlines()) == len(rows) + 1
