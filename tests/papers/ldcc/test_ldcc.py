"""The claims of the LDCC paper: every row is complete, and its numbers agree with formulas
worked out here.
"""

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.papers.ldcc import stability
from fluidcc.papers.ldcc.stability import critical_gains
from fluidcc.papers.model import claims_of
from tests.papers.rows import outcome

FLOOR = 200e3  # w/beta [bit/s]


def values_of(name: str) -> dict[str, float]:
    return dict(outcome(f"ldcc.{name}").values)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "by_hand"), NUMBERS, ids=[f"{n}-{k}" for n, k, _ in NUMBERS]
)
def test_numbers_by_hand(name: str, key: str, by_hand: float) -> None:
    assert values_of(name)[key] == pytest.approx(by_hand, rel=2e-5)


def test_the_parking_lot_meets_19_on_every_route_and_fills_both_links() -> None:
    v = values_of("fig10_long_flow")
    x1, x2, x3 = v["x1"], v["x2"], v["x3"]
    assert x2 == pytest.approx(x3)
    assert x1 + x2 == pytest.approx(2e6)  # 2.5 less the constant 0.5 Mbit/s
    # Flow 1 meets both queues: e1 = 50 ms + 2 (e2 - 25 ms).
    assert delay(x1, 0.05) == pytest.approx(0.05 + 2 * (delay(x2, 0.025) - 0.025))
    assert delay(v["two_x1"], 0.05) - 0.05 == pytest.approx(delay(v["two_x2"], 0.025) - 0.025)


def test_the_mixed_parking_lot_balances() -> None:
    v, rates = values_of("fig11_mixed"), values_of("fig11_long_flow")
    assert v["e1"] == pytest.approx(0.15)
    assert 20e3 / rates["x1"] == pytest.approx(0.1 * (0.15 - 0.1) / 0.2 + v["loss1"])
    assert rates["two_x1"] == pytest.approx(20e3 / lossy(1e6, 2, capacity=2.5e6))


@pytest.mark.slow
def test_the_penalty_at_300_ms() -> None:
    found = values_of("penalty_curves")
    assert found["300 ms, p = 25 ms"] == pytest.approx(0.1 * 0.2 / 0.325)
    assert found["300 ms, p = 100 ms"] == pytest.approx(0.1 * 0.2 / 0.4)


def test_rates_of_figure_8_by_bisection() -> None:
    p = np.array([0.025, 0.04, 0.06, 0.075])
    for c in (2, 4, 6):
        q = queue(tuple(p), c * 1e6)
        rate = FLOOR * (2 * p + q) / (p + q - 0.1)
        assert values_of("fig8_extremes")[f"low{c}"] == pytest.approx(rate[-1], rel=1e-6)
        assert values_of("fig8_extremes")[f"high{c}"] == pytest.approx(rate[0], rel=1e-6)
    assert values_of("fig8_worst")["25, 40, 60, 75 ms"] == pytest.approx(rate[-1] / 1.5e6, rel=1e-6)


def test_jain_by_hand() -> None:
    p = np.array([0.025, 0.025, 0.025, 0.075])
    for c in (1.25, 1.6, 3.0, 6.0):
        q = queue(tuple(p), c * 1e6)
        rate = FLOOR * (2 * p + q) / (p + q - 0.1)
        expected = rate.sum() ** 2 / (4 * (rate**2).sum())
        assert values_of("fig7_capacity")[f"{c:g}"] == pytest.approx(expected, abs=1e-9)


# --- networks of Section IV-B ---------------------------------------------------------------------


def test_a_small_chart_gives_the_row_of_each_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "RATES", np.array([1e6]))
    monkeypatch.setattr(stability, "RATIOS", np.array([1.0, 8.0]))
    stability.chart.cache_clear()
    try:
        rows = {claim.id: claim for claim in claims_of("ldcc")}
        found, spread = (rows[f"ldcc.{k}"].check() for k in ("each_user_alone", "conservatism"))
    finally:
        stability.chart.cache_clear()
    assert found.verdict == "refuted"
    assert found.values["rule"] > 1 > found.values["exact"]
    assert found.values["points"] == 8
    assert spread.values["hull most"] <= 1.001


def test_the_counterexample_is_unstable_by_its_characteristic_equation() -> None:
    # 1 + sum of shares times (43), written out: count the turns of it around zero along a closed
    # contour.
    net, _ = stability.counterexample()
    rest = fc.equilibrium(net)
    x, trip = rest.rate.values, rest.rtt.values

    def characteristic(s: Any) -> Any:
        total = 0.0
        for rate, R in zip(x, trip, strict=True):
            zero, pole = (0.5 - 1e3 / rate) / R, 0.95 * 1e3 / (rate * R)
            total = total + rate / 10.44e6 * 0.95 * np.exp(-s * R) / R * (zero + s) / (s + pole)
        return s + total

    size = 300.0
    t = np.linspace(0, 1, 400_001)
    right = size * np.exp(1j * np.pi * (t - 0.5))
    down = 1j * size * (1 - 2 * t)
    turns = np.sum(
        np.diff(np.unwrap(np.angle(characteristic(np.concatenate([right, down[1:]])))))
    ) / (2 * np.pi)
    assert round(float(turns)) == 2


@pytest.mark.parametrize(
    ("hops", "rate", "ratio"),
    [(1, 1e6, 1.0), (1, 0.25e6, 3.0), (1, 4e6, 3.4), (2, 1e6, 3.0), (3, 4e6, 20.0)],
)
def test_the_chart_is_the_boundary_of_the_linearised_network(
    hops: int, rate: float, ratio: float
) -> None:
    (exact,), _, (hull,), _ = critical_gains([hops], [rate], [ratio])
    assert hull <= exact * 1.001
    net = stability.parking_lot_network(hops, rate, ratio, exact)
    assert fc.equilibrium(net).rate.values == pytest.approx(rate, rel=1e-9)
    edge: Any = fc.stability_boundary(net, "eta", (0.9 * exact, 1.1 * exact), delays="frozen")
    assert edge.value == pytest.approx(exact, rel=1e-3)
    assert edge.stable_below
