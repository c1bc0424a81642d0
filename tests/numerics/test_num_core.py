"""Network utility maximisation: exact solutions, a conic solver, and optimality conditions."""

from typing import Any

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fluidcc.numerics.num_core import NumResult, UtilityGroup, maximise


def alpha_fair(weight: Any, alpha: float, index: Any = None) -> UtilityGroup:
    """w x^(1-alpha)/(1-alpha), or w log x at alpha = 1."""
    w = np.asarray(weight, float)
    return UtilityGroup(
        np.arange(len(w)) if index is None else np.asarray(index),
        lambda x: w * x**-alpha,
        lambda x: -alpha * w * x ** (-alpha - 1),
    )


def worth(weight: Any, alpha: float, x: Any) -> float:
    """The sum of these utilities."""
    return float(np.sum(weight * (np.log(x) if alpha == 1 else x ** (1 - alpha) / (1 - alpha))))


def check(
    result: NumResult, R: Any, c: Any, groups: list[UtilityGroup], tolerance: float = 1e-10
) -> None:
    """The optimality conditions, evaluated afresh."""
    R, c = np.asarray(R, float), np.asarray(c, float)
    x, price = result.rate, result.price
    assert np.all(price >= 0)
    assert np.all(x >= 0)
    assert np.all(R @ x <= c * (1 + tolerance))
    assert np.all(price * np.abs(c - R @ x) <= tolerance * (price @ c))
    for g in groups:
        path = (R.T @ price)[g.index]
        np.testing.assert_allclose(g.slope(x[g.index]), path, rtol=tolerance)
    assert max(result.kkt, result.gap) < tolerance


def solve(R: Any, c: Any, groups: list[UtilityGroup]) -> NumResult:
    result = maximise(sparse.csr_array(np.asarray(R, float)), np.asarray(c, float), groups)
    check(result, R, c, groups)
    return result


def clarabel_rates(R: Any, c: Any, w: Any, alpha: float) -> np.ndarray:
    """The same by exponential (alpha = 1) or power cones, in units of the largest capacity."""
    R, w = np.asarray(R, float), np.asarray(w, float)
    (L, N), unit = R.shape, float(np.max(c))
    # Variables (x, u), maximise sum w u with u <= log x, or u <= x^(1-a)/(1-a).
    cost = np.concatenate([np.zeros(N), -w / np.max(w)])
    rows, rhs = [np.hstack([R, np.zeros((L, N))])], [np.asarray(c, float) / unit]
    cones = [clarabel.NonnegativeConeT(L)]
    for r in range(N):
        block, offset = np.zeros((3, 2 * N)), np.zeros(3)
        if alpha == 1:  # (u, 1, x) in the exponential cone: e^u <= x
            block[0, N + r], offset[1], block[2, r] = -1, 1, -1
            cones.append(clarabel.ExponentialConeT())
        elif alpha < 1:  # x^(1-a) 1^a >= (1-a) u
            block[0, r], offset[1], block[2, N + r] = -1, 1, -(1 - alpha)
            cones.append(clarabel.PowerConeT(1 - alpha))
        else:  # with v = -(a-1) u > 0: x^((a-1)/a) v^(1/a) >= 1, that is v >= x^(1-a)
            block[0, r], block[1, N + r], offset[2] = -1, alpha - 1, 1
            cones.append(clarabel.PowerConeT((alpha - 1) / alpha))
        rows.append(block)
        rhs.append(offset)
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = 1e-10
    none, A = sparse.csc_matrix((2 * N, 2 * N)), sparse.csc_matrix(np.vstack(rows))
    solver = clarabel.DefaultSolver(none, cost, A, np.concatenate(rhs), cones, chosen)
    return np.asarray(solver.solve().x)[:N] * unit


def parking_lot(n: int) -> np.ndarray:
    """One long flow over n links, and one short flow on each."""
    return np.hstack([np.ones((n, 1)), np.eye(n)])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_parking_lot_with_logarithms(n: int) -> None:
    # Stationarity: w/x0 = n p, w/x = p, x0 + x = c.
    c, w = 3e6, 2e4
    group = alpha_fair(np.full(n + 1, w), 1.0)
    result = solve(parking_lot(n), np.full(n, c), [group])
    wanted = np.r_[c / (n + 1), np.full(n, c * n / (n + 1))]
    np.testing.assert_allclose(result.rate, wanted, rtol=1e-12)
    np.testing.assert_allclose(result.price, w * (n + 1) / (n * c), rtol=1e-12)


def log1p(*index: int) -> UtilityGroup:
    """log(1 + x), whose slope at zero is one."""
    return UtilityGroup(np.array(index), lambda x: 1 / (1 + x), lambda x: -((1 + x) ** -2.0))


without_inverse = UtilityGroup(
    np.arange(2),
    lambda x: 1 / x + 1 / (1 + x),
    lambda x: -(x**-2.0) - (1 + x) ** -2.0,
)
satiated = UtilityGroup(np.array([0]), lambda x: 1 - x, lambda x: -np.ones_like(x))
EXACT: dict[str, tuple[Any, Any, list[UtilityGroup], Any, float]] = {
    # alpha = 2: x0 = x / sqrt(n), price 1/x^2
    "delay": (parking_lot(4), [3.0] * 4, [alpha_fair([1] * 5, 2.0)], [1, 2, 2, 2, 2], 1.0),
    # w/x1 = p and v/x2^2 = p with x1 + x2 = 5
    "mixed": ([[1, 1]], [5], [alpha_fair([1.5], 1, [0]), alpha_fair([2], 2, [1])], [3, 2], 0.5),
    "without a closed inverse": ([[1, 1]], [2], [without_inverse], [1, 1], 1.5),
    # at x2 = 0 the price 10 exceeds the slope there, 1
    "a flow may stop": ([[1, 1]], [1], [alpha_fair([10.0], 1, [0]), log1p(1)], [1, 0], 10),
    "satiated below the capacity": ([[1]], [5], [satiated], [1], 0.0),
    "links in series share a price": (np.ones((3, 2)), [2] * 3, [alpha_fair([2, 2], 1)], [1, 1], 2),
    # the outer links carry together what the inner ones do
    "dependent rows": (
        [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], [2] * 4,
        [alpha_fair([1] * 4, 1)], [1] * 4, 2.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact_problems(name: str) -> None:
    R, c, groups, rate, price = EXACT[name]
    result = maximise(sparse.csr_array(np.asarray(R, float)), np.asarray(c, float), groups)
    np.testing.assert_allclose(result.rate, rate, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.sum(result.price), price, rtol=1e-12)
    assert max(result.kkt, result.gap) < 1e-12


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_a_conic_solver(alpha: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    R = (rng.random((6, 15)) < 0.35).astype(float)
    R[rng.integers(0, 6, 15), np.arange(15)] = 1
    c, w = rng.uniform(1e6, 5e6, 6), rng.uniform(0.5, 2.0, 15)
    result = solve(R, c, [alpha_fair(w, alpha)])
    # Rates are only as good as the square root of the conic solver's tolerance (1e-10).
    other = clarabel_rates(R, c, w, alpha)
    np.testing.assert_allclose(result.rate, other, rtol=5e-4)
    values = [worth(w, alpha, rate) for rate in (result.rate, other)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-8)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    links=st.integers(1, 12),
    flows=st.integers(1, 40),
    alpha=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    spread=st.floats(0, 3),
)
def test_random_networks_meet_the_optimality_conditions(
    seed: int, links: int, flows: int, alpha: float, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    R = (rng.random((links, flows)) < rng.uniform(0.05, 0.6)).astype(float)
    R[rng.integers(0, links, flows), np.arange(flows)] = 1
    weight = 10 ** rng.uniform(-1, 1, flows)
    solve(R, 10 ** (6 + spread * rng.random(links)), [alpha_fair(weight, alpha)])
