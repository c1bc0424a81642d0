"""The past of `solve_dde`: one-sided histories, breaking points, bounded memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluidcc.numerics.dde.driver import Integration
from fluidcc.numerics.dde.history import BreakingPoints, History
from fluidcc.numerics.dde.solve import solve_dde


def test_a_history_is_never_asked_beyond_its_piece() -> None:
    asked: list[float] = []

    def past(t: float) -> np.ndarray:
        asked.append(t)
        return np.array([t**3 if t < -1 else 5.0])

    history = History(past, np.array([5.0]), 0.0)
    asked.clear()
    assert history.piece(-0.9, -math.inf, -1.0)[0] == pytest.approx(
        (-0.9) ** 3
    )  # the cubic, continued
    assert history.piece(-1.0, -math.inf, -1.0)[0] == pytest.approx(-1.0)
    assert max(asked) < -1
    asked.clear()
    assert history.piece(0.2, -1.0, 0.0)[0] == 5.0
    assert history.piece(-1.1, -1.0, 0.0)[0] == 5.0
    assert max(asked) <= 0
    assert min(asked) > -1


def test_a_history_is_not_asked_earlier_than_it_is_needed() -> None:
    def past(t: float) -> np.ndarray:
        return np.array([math.log(t)])  # raises where t is not positive

    history = History(past, np.array([math.log(0.1)]), 0.1)
    assert history.piece(0.04, -math.inf, 0.1)[0] == math.log(0.04)
    for beyond in (0.11, 0.2, 1.0):  # the cubic through four points from 0.04 to 0.1
        nodes = np.array([0.1, 0.1 - min(beyond - 0.1, 0.02)])
        nodes = nodes[0] - np.arange(4) * (nodes[0] - nodes[1])
        cubic = np.polynomial.Polynomial.fit(nodes, np.log(nodes), 3)
        assert history.piece(beyond, -math.inf, 0.1)[0] == pytest.approx(cubic(beyond), rel=1e-9)


def test_a_history_may_be_defined_no_further_back_than_the_lags_reach() -> None:
    run = solve_dde(
        lambda t, y, Z: 1 - Z[:, 0],
        (0.1, 10),
        lambda t: [math.log(t)],
        lambda t, y: [t - math.exp(1 - 1 / t)],
        rtol=1e-8,
        atol=1e-8,
    )
    np.testing.assert_allclose(run.y[0], np.log(run.t), atol=1e-6)


def test_memory_is_bounded_by_the_largest_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Integration] = []
    start = Integration._start

    def started(self: Integration) -> None:
        runs.append(self)
        start(self)

    monkeypatch.setattr(Integration, "_start", started)
    for dense in (False, True):
        solve_dde(lambda t, y, Z: -Z[:, 0], (0, 500), 1.0, [1.0], max_step=0.5, dense_output=dense)
    short, long = (run.pieces for run in runs)
    assert short.total == long.total >= 1000
    assert short.starts.size == 64
    assert long.starts.size >= 1000


def test_coincident_points_take_the_lower_order_and_high_orders_are_dropped() -> None:
    points = BreakingPoints(3)
    assert points.add(0.0, 1, 0) == 0
    assert points.add(1.0, 2, 5) == 1
    assert points.add(1.0, 0, 5) == 1
    assert points.add(2.0, 3, 9) is None
    assert (points.times, points.orders) == ([0.0, 1.0], [1, 0])
    assert points.landed == [(0.0, 1), (1.0, 0), (2.0, 3)]
    assert points.interval(1) == (0.0, 1.0)
    assert points.interval(2) == (1.0, math.inf)
