"""`solve_dde` against exact solutions and independent solvers."""

import math
from time import sleep
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.base import progress
from fluidcc.numerics.dde.result import DdeResult
from fluidcc.numerics.dde.solve import solve_dde
from tests.numerics.dde.problems import FELDSTEIN_NEVES_KINKS, PROBLEMS, Array, Problem

SOLVABLE = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=lambda p: p.name)


def solve(problem: Problem, rtol: float, **kwargs: Any) -> DdeResult:
    options = {"rtol": rtol, "atol": rtol, "dense_output": True} | problem.kwargs | kwargs
    return solve_dde(problem.fun, problem.span, problem.history, problem.lags, **options)


@SOLVABLE
def test_the_exact_solution_satisfies_its_equation(problem: Problem) -> None:
    """Central differences of the exact solution against the right-hand side on it."""
    rng = np.random.default_rng(1)
    t = rng.uniform(*problem.span, 60)
    t = np.array([s for s in t if all(abs(s - k) > 0.01 for k in (*problem.kinks, *problem.span))])
    h = 1e-4 * np.minimum(1, t)
    near, far = (problem.solution(t + d) - problem.solution(t - d) for d in (h, 2 * h))
    slope = (8 * near - far) / (12 * h)

    def state(s: float) -> Array:
        if s <= problem.span[0]:
            past = problem.history(s) if callable(problem.history) else problem.history
            return np.atleast_1d(np.asarray(past, dtype=float))
        return problem.solution(np.array([s]))[:, 0]

    for s, d in zip(t, slope.T, strict=True):
        y = state(s)
        lags = problem.lags(s, y) if callable(problem.lags) else problem.lags
        z = np.column_stack([state(s - lag) for lag in lags])
        modes = [(float(problem.kwargs["switches"](s, y, z) > 0),)] if problem.kwargs else []
        assert np.atleast_1d(problem.fun(s, y, z, *modes)) == pytest.approx(d, rel=1e-8, abs=1e-8)


@SOLVABLE
@pytest.mark.parametrize("method", ["Tsit5", "DP5"])
@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
def test_error_is_at_most_a_hundred_tolerances(problem: Problem, method: str, rtol: float) -> None:
    result = solve(problem, rtol, method=method)
    assert result.success, result.message
    t = np.linspace(*problem.span, 2001)
    assert result.sol is not None
    assert np.abs(result.sol(t) - problem.solution(t)).max() <= 100 * rtol
    assert np.abs(result.y - problem.solution(result.t)).max() <= 100 * rtol


@pytest.mark.parametrize("method", ["Tsit5", "DP5"])
@pytest.mark.parametrize("name", ["constant", "Feldstein-Neves", "Paul", "switching"])
def test_no_order_is_lost_at_kinks(name: str, method: str) -> None:
    """With fixed steps four times shorter, the error of the dense output falls like 4**4."""
    problem, errors = PROBLEMS[name], []
    t = np.linspace(*problem.span, 2001)
    for step in (0.1, 0.025):
        result = solve(problem, 0.5, atol=10.0, max_step=step, first_step=step, method=method)
        assert result.sol is not None
        errors.append(np.abs(result.sol(t)[0] - problem.exact(t)).max())
    assert errors[1] < errors[0] / 4**4


def test_breaking_points_of_state_dependent_lags_are_found_and_their_order_known() -> None:
    result = solve(PROBLEMS["Feldstein-Neves"], 1e-10)
    np.testing.assert_allclose(result.breaking_points[:2, 0], FELDSTEIN_NEVES_KINKS, rtol=1e-9)
    np.testing.assert_array_equal(result.breaking_points[:2, 1], [2, 3])


def test_breaking_points_of_constant_lags_are_mesh_points_exactly() -> None:
    result = solve_dde(lambda t, y, Z: -Z[:, 0] - Z[:, 1], (0, 4), 1.0, [1.0, 0.3])
    some = [(i, j) for i in range(5) for j in range(6) if 1 <= i + j <= 4 and i + 0.3 * j <= 4]
    expected = {round(i + 0.3 * j, 12) for i, j in some}
    assert {round(t, 12) for t in result.breaking_points[:, 0]} == expected
    assert np.isin(result.breaking_points[:, 0], result.t).all()


def test_coincident_breaking_points_are_merged() -> None:
    """0.1 added thirty times is not 3 in floating point."""
    result = solve_dde(lambda t, y, Z: -Z[:, 0] - Z[:, 1] - Z[:, 2], (0, 2), 1.0, [0.1, 0.2, 0.3])
    assert np.diff(result.t).min() > 1e-3


@pytest.mark.parametrize("lag", [1e-3, 1e-7, 1e-12, 0.0])
def test_a_small_lag_does_not_force_small_steps(lag: float) -> None:
    result = solve_dde(lambda t, y, Z: -Z[:, 0], (0, 10), 1.0, [lag], rtol=1e-8, atol=1e-10)
    root = -1.0  # of s = -exp(-s lag), by Newton's method
    for _ in range(20):
        root -= (root + math.exp(-root * lag)) / (1 - lag * math.exp(-root * lag))
    share = -1 / (root * (1 + lag * root))  # residue of the Laplace transform, y = 1 before
    np.testing.assert_allclose(result.y[0, -1], share * math.exp(10 * root), rtol=1e-5)
    assert result.statistics.steps < 150
    assert "np." not in repr(result.statistics)


def test_a_run_that_takes_long_says_how_far_it_is(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(progress, "watched", lambda: True)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)

    def slow(t: float, y: Array, Z: Array) -> list[float]:
        sleep(5e-4)
        return [1.0]

    solve_dde(slow, (3, 4), 0.0, [], max_step=0.01)
    told = capsys.readouterr().err
    assert "solve_dde" in told
    assert " of 1 [" in told


@settings(max_examples=25, deadline=None)
@given(
    st.floats(-2, 1),
    st.floats(-2, 2),
    st.floats(0.2, 2),
    st.floats(-2, 2),
    st.sampled_from(["constant", "function"]),
)
def test_linear_equation_with_exponential_solution(
    a: float, b: float, lag: float, s: float, kind: str
) -> None:
    """y' = a y + b y(t - lag) + g with g chosen so that y = exp(s t), history included."""
    g = s - a - b * math.exp(-s * lag)
    lags = [lag] if kind == "constant" else lambda t, y: [lag]
    fun = lambda t, y, Z: a * y + b * Z[:, 0] + g * np.exp(s * t)  # noqa: E731
    result = solve_dde(fun, (0, 3), lambda t: np.exp(s * t), lags, rtol=1e-7, atol=1e-9)
    growth = math.exp(3 * max(abs(a) + abs(b), abs(s)))
    assert result.success
    assert abs(result.y[0, -1] - math.exp(3 * s)) < 1e-6 * growth


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant", "function"])
@pytest.mark.parametrize(
    "history", [np.arange(5.0), lambda t: np.cos(t + np.arange(5.0))], ids=["constant", "function"]
)
def test_lags_read_for_one_state_each_give_the_same_solution(kind: str, history: Any) -> None:
    """Five states with a lag for each of eight edges, one without delay, and a jump."""
    rng = np.random.default_rng(2)
    source, target, edges = rng.integers(0, 5, 8), rng.integers(0, 5, 8), np.arange(8)
    lengths = np.concatenate([[0.0], rng.uniform(0.2, 1.5, 7)])
    lags = lengths if kind == "constant" else lambda t, y: lengths * (1 + 0.1 * np.sin(t))

    def rate(t: float, y: Array, heard: Array) -> Any:
        return np.bincount(target, np.sin(heard - y[target]), 5)

    options: dict[str, Any] = {"jumps": [(0.7, lambda t, y: y + 0.1)]}
    full = solve_dde(lambda t, y, Z: rate(t, y, Z[source, edges]), (0, 4), history, lags, **options)
    single = solve_dde(rate, (0, 4), history, lags, lag_states=source, **options)
    assert single.success
    np.testing.assert_array_equal(single.t, full.t)
    np.testing.assert_array_equal(single.y, full.y)


def test_samples_agree_with_dense_output() -> None:
    t = np.linspace(0, 300, 301)

    def fun(t: float, y: Array, Z: Array) -> Array:
        return 0.2 * Z[:, 0] / (1 + Z[:, 0] ** 10) - 0.1 * y

    dense = solve_dde(fun, (0, 300), 0.5, [14.0], dense_output=True)
    sampled = solve_dde(fun, (0, 300), 0.5, [14.0], t_eval=t)
    assert dense.sol is not None
    np.testing.assert_array_equal(sampled.t, t)
    np.testing.assert_allclose(sampled.y, dense.sol(t), atol=1e-14)


def test_dense_output_covers_the_history_and_refuses_the_future() -> None:
    past = lambda t: [1 + t]  # noqa: E731
    result = solve_dde(lambda t, y, Z: -Z[:, 0], (0, 2), past, [1.0], dense_output=True)
    assert result.sol is not None
    np.testing.assert_allclose(result.sol([-0.5, 0.0]), [[0.5, 1.0]])
    assert result.sol(-0.25).shape == (1,)
    with pytest.raises(ValueError, match="ends at t = 2"):
        result.sol(2.5)


def test_a_run_can_go_on_from_the_solution_of_another() -> None:
    problem = PROBLEMS["constant"]
    how: Any = {"dense_output": True, "rtol": 1e-9, "atol": 1e-9}
    first = solve_dde(problem.fun, (0, 2.5), 1.0, [1.0], **how)
    second = solve_dde(problem.fun, (2.5, 10), first.sol, [1.0], **how)
    assert second.sol is not None
    t = np.linspace(0.1, 10, 200)
    np.testing.assert_allclose(second.sol(t)[0], problem.exact(t), atol=1e-7)
    assert 3.0 in second.t  # the kink that the first run had still under way


def test_a_break_in_the_history_is_landed_on() -> None:
    """y' = y(t - 1), 1 before -1/2 and 3 after: y = 1 + t, then 3/2 + 3 (t - 1/2)."""
    past = lambda t: 1.0 if t < -0.5 else 3.0 if t < 0 else 1.0  # noqa: E731
    how: Any = {"breaking_points": [-0.5], "rtol": 1e-10, "atol": 1e-10}
    result = solve_dde(lambda t, y, Z: Z[:, 0], (0, 1), past, [1.0], **how)
    np.testing.assert_allclose(result.y[0, -1], 3.0, atol=1e-12)
    assert 0.5 in result.t
