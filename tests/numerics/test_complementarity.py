"""Mixed complementarity: problems whose solution is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fluidcc.numerics.complementarity import Problem, Result, find_equilibrium


def problem(fun: Any, jacobian: Any, n: int, **changes: Any) -> Problem:
    values: dict[str, Any] = {
        "lower": np.full(n, -np.inf),
        "upper": np.full(n, np.inf),
        "mass": np.ones(n),
        "scale": np.ones(n),
        "ceiling": np.full(n, np.inf),
        "kink": np.full(n, np.inf),
        **{k: np.asarray(v, float) for k, v in changes.items()},
    }
    return Problem(lambda u: (np.asarray(fun(u), float), csr_array(np.atleast_2d(jacobian(u)))), **values)


def solve(p: Problem, *start: float) -> Result:
    return find_equilibrium(p, np.array(start, float))


@pytest.mark.parametrize(("low", "high", "end"), [(-5, 5, 2), (-5, 1, 1), (3, 5, 3)])
def test_one_state_rests_inside_or_at_a_bound(low: float, high: float, end: float) -> None:
    result = solve(problem(lambda u: 2 - u, lambda u: [[-1.0]], 1, lower=[low], upper=[high]), 4.0)
    assert result.status == "converged"
    assert result.u.item() == pytest.approx(end, rel=1e-15)


def test_unstable_equilibria_are_left() -> None:
    # u' = u (1 - u): 0 is an equilibrium that no trajectory from above reaches.
    result = solve(problem(lambda u: u * (1 - u), lambda u: [[1 - 2 * u[0]]], 1, lower=[0], scale=[0]), 1e-3)
    assert result.u.item() == pytest.approx(1, rel=1e-14)


def test_algebraic_unknowns() -> None:
    # u' = 6 - v with 0 = u^2 + u - v: u = 2, v = 6.
    result = solve(
        problem(lambda u: [6 - u[1], u[0] ** 2 + u[0] - u[1]], lambda u: [[0, -1], [2 * u[0] + 1, -1]], 2, mass=[1, 0]),
        1.0,
        1.0,
    )
    assert result.status == "converged"
    np.testing.assert_allclose(result.u, [2, 6], rtol=1e-14)


def test_oscillators_come_to_rest() -> None:
    # A centre: explicit steps would spiral out, implicit ones spiral in.
    result = solve(problem(lambda u: [u[1], -u[0]], lambda u: [[0, 1], [-1, 0]], 2), 1.0, 0.0)
    np.testing.assert_allclose(result.u, 0, atol=1e-12)


def test_growth_without_limit_is_told() -> None:
    assert solve(problem(lambda u: [1.0], lambda u: [[0.0]], 1, ceiling=[1e6]), 0.0).status == "growing"


def test_steps_do_not_cycle_about_a_kink() -> None:
    # u' = v, v' = -g(u) - v/100 with g' = 1 below and 100 above 1 would jump from one side to the other.
    def fun(u: Any) -> list[float]:
        return [u[1], 1.5 - (u[0] if u[0] < 1 else 100 * u[0] - 99) - 0.01 * u[1]]

    def slopes(u: Any) -> list[list[float]]:
        return [[0, 1], [-1.0 if u[0] < 1 else -100.0, -0.01]]

    result = solve(problem(fun, slopes, 2, kink=[1, np.inf]), 0.0, 0.0)
    assert result.status == "converged"
    np.testing.assert_allclose(result.u, [1.005, 0], atol=1e-12)


def test_a_start_without_a_value_is_told() -> None:
    assert solve(problem(lambda u: [np.nan], lambda u: [[0.0]], 1), 0.0).status == "undefined"


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_linear_complementarity(n: int, seed: int) -> None:
    # u' = b - A u on u >= 0 with A positive definite: the unique solution of a convex quadratic programme.
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    A, b = root @ root.T + 0.1 * np.eye(n), rng.normal(size=n)
    result = solve(problem(lambda u: b - A @ u, lambda u: -A, n, lower=np.zeros(n)), *np.ones(n))
    assert result.status == "converged"
    slack = A @ result.u - b
    assert np.all(result.u >= 0)
    assert np.all(slack >= -1e-9)
    np.testing.assert_allclose(result.u * slack, 0, atol=1e-9)
