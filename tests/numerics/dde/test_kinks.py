"""Kinks and jumps that nobody declared: of `fun`, and of a lag, wherever they fall in a step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from fluidcc.numerics.dde.solve import solve_dde
from tests.numerics.dde.problems import Array, Problem


def corner(a: float, at: float, order: int) -> Problem:
    """y' = cos t + a (t - at)_+^order: a jump, a kink, or one of the second derivative."""
    return Problem(
        f"corner of order {order}",
        lambda t, y, Z: [np.cos(t) + a * (t > at) * (t - at) ** order],
        (0, 3),
        0.0,
        [],
        lambda t: np.sin(t) + a * np.maximum(t - at, 0) ** (order + 1) / (order + 1),
    )


def modulus(start: float) -> Problem:
    """y' = 1 + |y| from below zero: an exponential on either side."""
    zero = np.log(1 - start)
    return Problem(
        "modulus",
        lambda t, y, Z: 1 + np.abs(y),
        (0, zero + 1),
        start,
        [],
        lambda t: np.where(t < zero, 1 - (1 - start) * np.exp(-t), np.exp(t - zero) - 1),
    )


def clipped(w: float) -> Problem:
    """y' = max(sin wt, 0): at rest for half-waves, so that steps become as long as they."""

    def exact(t: Array) -> Array:
        half = np.floor(w * t / np.pi)
        part = np.where(half % 2 == 0, 1 - np.cos(w * t), 0)
        return (2 * np.ceil(half / 2) + part) / w

    never_over_one = {"max_step": np.pi / w}  # what lies between all nodes is nobody's to find
    fun = lambda t, y, Z: [max(np.sin(w * t), 0.0)]  # noqa: E731
    return Problem("clipped", fun, (0, 6), 0.0, [], exact, (), never_over_one)


def kinked_lag(at: float, w: float) -> Problem:
    """y' = y(t - 2 - |x|), x' = 1, the past cos wt and x = 0 at `at`: a kink of the lag."""

    def exact(t: Array) -> Array:
        before = np.minimum(t, at)
        ramp = (np.sin(w * (2 * before - 2 - at)) + np.sin(w * (2 + at))) / (2 * w)
        return 1 + ramp + np.maximum(t - at, 0) * np.cos(w * (at - 2))

    return Problem(
        "kinked lag",
        lambda t, y, Z: [Z[0, 0], 1.0],
        (0, 2),
        lambda t: [np.cos(w * t), t - at],
        lambda t, y: [2 + abs(y[1])],
        exact,
    )


FAMILIES: dict[str, Callable[[Any], Problem]] = {
    "jump": lambda rng: corner(rng.uniform(0.5, 20), rng.uniform(0.3, 2.7), 0),
    "kink": lambda rng: corner(rng.uniform(0.5, 20), rng.uniform(0.3, 2.7), 1),
    "second derivative": lambda rng: corner(rng.uniform(0.5, 20), rng.uniform(0.3, 2.7), 2),
    "modulus": lambda rng: modulus(rng.uniform(-5, -0.3)),
    "clipped": lambda rng: clipped(rng.uniform(1, 4)),
    "kinked lag": lambda rng: kinked_lag(rng.uniform(0.3, 1.7), rng.uniform(1, 5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["Tsit5", "DP5"])
@pytest.mark.parametrize("family", FAMILIES)
def test_an_undeclared_kink_costs_at_most_a_hundred_tolerances_wherever_it_falls(
    family: str, method: str
) -> None:
    rng = np.random.default_rng(3)
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        for _ in range(8):
            problem = FAMILIES[family](rng)
            how = {"method": method, "rtol": rtol, "atol": rtol, **problem.kwargs}
            given = problem.fun, problem.span, problem.history, problem.lags
            result = solve_dde(*given, dense_output=True, **how)
            assert result.success, result.message
            assert result.sol is not None
            t = np.linspace(*problem.span, 1001)
            exact = problem.exact(t)
            error = np.abs(result.sol(t)[0] - exact) / np.maximum(1, np.abs(exact))
            assert error.max() <= 100 * rtol


def test_a_found_kink_is_carried_on_by_the_lags() -> None:
    """y' = |x|, x' = 1, z' = y(t - 0.7): a kink of y' where x = 0, and of z'' 0.7 later."""
    at = 1.2345
    fun, start = lambda t, y, Z: [abs(y[1]), 1.0, Z[0, 0]], [0.0, -at, 0.0]
    result = solve_dde(fun, (0, 3), start, [0.7], rtol=1e-8, atol=1e-8)
    points = result.breaking_points[:, 0]
    for expected in (at, at + 0.7, at + 1.4):
        assert np.abs(points - expected).min() < 1e-3


@pytest.mark.parametrize("at", [1.2, 1.3, 1.5])
def test_a_kink_in_one_of_many_states_is_seen(at: float) -> None:
    """y_0' = cos t + 20 (t - at)_+, while 99 others are at rest."""
    drive = np.eye(100)[0]
    fun = lambda t, y, Z: drive * (np.cos(t) + 20 * max(t - at, 0.0))  # noqa: E731
    for rtol in (1e-4, 1e-6, 1e-8):
        result = solve_dde(fun, (0, 3), 0 * drive, [], rtol=rtol, atol=rtol)
        exact = np.sin(result.t) + 10 * np.maximum(result.t - at, 0) ** 2
        assert np.abs((result.y[0] - exact) / np.maximum(1, exact)).max() <= 20 * rtol


# DETEST C1 to C4 (Enright & Hayashi, "The evaluation of numerical software for delay differential
# equations", 1997), whose lags have kinks in the state (C1), nearly vanish (C2), or reach back to a
# jump of the past (C3).


@njit
def small_steps(fun: Any, lags: Any, history: Any, end: float, steps: int) -> Array:
    """By the classical method on its own cubic Hermite polynomials; lags longer than a step."""
    h = end / steps
    now = history(0.0)
    y, rate = np.empty((steps + 1, now.size)), np.empty((steps + 1, now.size))
    y[0] = now
    stage, slopes = now.copy(), np.zeros((4, now.size))
    for i in range(steps):
        for k in range(5):
            t = (i + (0.0, 0.5, 0.5, 1.0, 1.0)[k]) * h
            if k == 4:
                stage = y[i] + h / 6 * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])
                y[i + 1] = stage
                break
            stage = y[i] + (0.0, 0.5, 0.5, 1.0)[k] * h * slopes[max(k - 1, 0)]
            lag = lags(t, stage)
            past = np.empty((now.size, lag.size))
            for j in range(lag.size):
                at = t - lag[j]
                if at <= 0:
                    past[:, j] = history(at)
                    continue
                m = min(int(at / h), i - 1)
                u = at / h - m
                past[:, j] = (1 - u) ** 2 * ((1 + 2 * u) * y[m] + u * h * rate[m])
                past[:, j] += u**2 * ((3 - 2 * u) * y[m + 1] - (1 - u) * h * rate[m + 1])
            slopes[k] = fun(t, stage, past)
            if k == 0:
                rate[i] = slopes[0]
    return y


def blood(s0: float, t1: float, gamma: float, q: float, k: float, a: float, past: Any) -> Any:
    """Mahaffy, Belair and Mackey's model of erythropoiesis, C3 and C4."""

    @njit
    def fun(t: float, y: Array, Z: Array) -> Array:
        made = a / (1 + 0.0382 * y[0] ** 6.96)
        lived = 1 - q * np.exp(gamma * y[2]) / (s0 * Z[1, 1])
        return np.array([s0 * Z[1, 0] - gamma * y[0] - q, made - k * y[1], lived])

    @njit
    def lags(t: float, y: Array) -> Array:
        return np.array([t1, t1 + y[2]])

    return fun, lags, past


# fun, lags, history, end, small steps, tolerances
DETEST: dict[str, tuple[Any, Any, Any, float, int, float]] = {
    "C1": (  # a shift of y at t = 9.7 comes back 169-fold
        njit(lambda t, y, Z: -2 * Z[:, 0] * (1 - y**2)),
        njit(lambda t, y: np.array([1 + abs(y[0])])), njit(lambda t: np.array([0.5])),
        30.0, 100_000, 600.0,
    ),
    "C2": (
        njit(lambda t, y, Z: np.array(
            [-2 * Z[0, 0], (np.abs(Z[0, 0]) - np.abs(y[0])) / (1 + np.abs(Z[0, 0]))]
        )),
        njit(lambda t, y: y[1:]), njit(lambda t: np.array([1.0, 0.5])), 40.0, 400_000, 100.0,
    ),
    "C3": (
        *blood(0.0031, 6.0, 0.001, 0.0275, 2.8, 6570.0,
               njit(lambda t: np.array([3.325, 9.5 if t <= -6 else 10.0, 120.0]))),
        300.0, 400_000, 100.0,
    ),
    "C4": (
        *blood(0.00372, 3.0, 0.1, 0.00178, 6.65, 15600.0,
               njit(lambda t: np.array([3.5, 10.0, 50.0]))),
        100.0, 100_000, 100.0,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", DETEST)
def test_detest_c_is_solved_though_nobody_declares_a_kink(name: str) -> None:
    fun, lags, history, end, steps, tolerances = DETEST[name]
    exact = small_steps(fun, lags, history, end, steps)
    coarse = small_steps(fun, lags, history, end, steps // 2)
    size = np.maximum(1, np.abs(exact))
    doubt = (np.abs(exact[::2] - coarse) / size[::2]).max()
    assert doubt < 1e-6
    for rtol in (1e-4, 1e-8):
        result = solve_dde(
            fun.py_func, (0, end), history.py_func, lags.py_func, rtol=rtol, atol=rtol,
            t_eval=np.linspace(0, end, 2001), breaking_points=[-6.0] if name == "C3" else [],
        )  # fmt: skip
        assert result.success, result.message
        error = np.abs(result.y.T - exact[:: steps // 2000]) / size[:: steps // 2000]
        assert error.max() <= tolerances * rtol + doubt
