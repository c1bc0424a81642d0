"""Hundreds of lags: which kinks are mesh points, and how often the history is called."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from fluidcc.numerics.dde.solve import solve_dde

N, M = 6, 450
RNG = np.random.default_rng(1)
LAGS, READ = RNG.uniform(0.05, 1, M), np.tile(np.arange(N), M // N)
GIVEN: dict[str, Any] = {"t_span": (0, 2), "lags": LAGS, "lag_states": READ, "rtol": 1e-7}


@njit
def coupled(t: float, y: Any, Z: Any) -> Any:
    out = -y.copy()
    for k in range(len(Z)):
        out[k % len(y)] += 0.01 * np.sin(Z[k])
    return out


def test_kinks_that_are_left_to_error_control_cost_no_accuracy_and_no_steps() -> None:
    """Which is done for more than 400 lags, and by max_order=1 (SciML/StochasticDelayDiffEq.jl#22);
    jumps of the state are carried on even then.
    """
    past = lambda t: 1.0 + np.sin(3 * t + np.arange(N))  # noqa: E731
    all_of_them = solve_dde(coupled, history=past, max_order=2, **GIVEN)
    assert all_of_them.statistics.breaking_points == M
    for order, jumps, landings in ((None, [], 0), (1, [], 0), (1, [(0.5, lambda t, y: y + 1)], M)):
        run = solve_dde(coupled, history=past, max_order=order, jumps=jumps, **GIVEN)
        if jumps:
            assert run.statistics.breaking_points == 1 + landings
            continue
        assert run.statistics.breaking_points == 0
        assert run.statistics.steps < 0.3 * all_of_them.statistics.steps
        np.testing.assert_allclose(run.y[:, -1], all_of_them.y[:, -1], atol=3e-6)


@pytest.mark.parametrize("kind", ["smooth", "kinked", "jumps", "jumps, declared"])
def test_a_history_in_python_is_called_a_few_hundred_times_and_is_as_one_compiled(
    kind: str,
) -> None:
    """The compiled one is called for each lag in each stage."""
    calls = []
    shape = {"smooth": lambda t: np.cos(5 * t), "kinked": lambda t: abs(t + 0.4)}
    form = njit(shape.get(kind, lambda t: 1.0 if t < -0.4 else 2.0))
    exact = njit(lambda t: form(t) * np.ones(N))

    def past(t: float) -> Any:
        calls.append(t)
        return exact(t)

    more: dict[str, Any] = {"breaking_points": [-0.4]} if "declared" in kind else {}
    table = solve_dde(coupled, history=past, **GIVEN, **more)
    direct = solve_dde(coupled, history=exact, **GIVEN, **more)
    assert len(calls) < 1000 < direct.nfev * M
    np.testing.assert_allclose(table.y[:, -1], direct.y[:, -1], atol=2e-6)


def test_a_history_that_no_table_fits_is_called_for_each_lag() -> None:
    """It is defined no further back than the run comes to ask."""

    def past(t: float) -> Any:
        if t < -0.9:
            raise ValueError("unknown")
        return np.ones(N)

    early = {**GIVEN, "t_span": (0, 0.2), "lags": np.minimum(LAGS, 0.9)}
    assert solve_dde(coupled, history=past, **early).success
    with pytest.raises(ValueError, match="unknown"):
        solve_dde(coupled, history=past, **{**early, "lags": LAGS})
