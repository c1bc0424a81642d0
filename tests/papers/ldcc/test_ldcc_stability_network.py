"""Networks of Section IV-B: verdicts, the counterexamples by independent means, and the chart
against `linearize`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.papers.ldcc import stability
from fluidcc.papers.ldcc.stability import critical_gains
from fluidcc.papers.model import claims_of


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
