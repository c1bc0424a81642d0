"""The past of `solve_dde`: one-sided histories, breaking points, bounded memory."""

import math
from typing import Any

import numpy as np
import pytest

from fluidcc.numerics.dde import run as module
from fluidcc.numerics.dde.solve import solve_dde


def test_a_history_is_never_asked_beyond_its_piece() -> None:
    """A growing lag leaves the piece that ends at -1; steps across the break take the cubic."""
    asked: list[float] = []

    def past(t: float) -> list[float]:
        asked.append(t)
        return [t**3 if t < -1 else 5.0, 0.0]

    def lag(t: float, y: np.ndarray) -> list[float]:
        return [0.5 + 2 * t]

    options = {"breaking_points": [-1.0], "rtol": 1e-9, "atol": 1e-9, "max_step": 0.2}
    run = solve_dde(lambda t, y, Z: [0.0, Z[0, 0]], (0, 1), past, lag, **options)  # type: ignore[arg-type]
    assert max(asked) <= 0
    assert -1.0 not in asked
    assert run.y[1, -1] == pytest.approx(2.5 - (1.5**4 - 1) / 4, abs=1e-8)


def test_a_history_may_be_defined_no_further_back_than_the_lags_reach() -> None:
    past, lag = lambda t: [math.log(t)], lambda t, y: [t - math.exp(1 - 1 / t)]
    run = solve_dde(lambda t, y, Z: 1 - Z[:, 0], (0.1, 10), past, lag, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(run.y[0], np.log(run.t), atol=1e-6)


def test_memory_is_bounded_by_the_largest_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    prepare = module._prepare

    def prepared(*arguments: Any) -> Any:
        run, kept = prepare(*arguments)
        runs.append(run)
        return run, kept

    monkeypatch.setattr(module, "_prepare", prepared)
    for dense in (False, True):
        solve_dde(lambda t, y, Z: -Z[:, 0], (0, 500), 1.0, [1.0], max_step=0.5, dense_output=dense)
    short, long = runs
    assert short.base + short.n_pieces == long.n_pieces >= 1000
    assert short.most_pieces == 64
    assert long.most_pieces >= 1000


def test_coincident_points_take_the_lower_order_and_high_orders_are_dropped() -> None:
    """A jump at 1, where a kink of order 2 lands; with max_order = 2 nothing of order 3 is seen."""
    run = solve_dde(
        lambda t, y, Z: -Z[:, 0], (0, 3.5), 1.0, [1.0], jumps=[(1.0, lambda t, y: y + 1)],
        max_order=2, dense_output=True,
    )  # fmt: skip
    np.testing.assert_array_equal(run.breaking_points, [[1, 0], [2, 1], [3, 2]])
    assert run.sol is not None
    assert run.sol.breaking_points == [(0.0, 1), (1.0, 0), (2.0, 1)]
