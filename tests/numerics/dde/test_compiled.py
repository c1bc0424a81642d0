"""`solve_dde` on functions compiled by numba: the solution of plain Python, and errors in words."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError

from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.dde.functions import _reason
from fluidcc.numerics.dde.solve import solve_dde
from tests.numerics.dde.problems import PROBLEMS, Problem, marked


def compiled(function: Any) -> Any:
    """The same function by numba, which like NumPy takes 1/0 for infinite."""
    if not callable(function):
        return function
    plain = (lambda t: np.log(t)) if function is np.log else function
    return numba.njit(plain, error_model="numpy")


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=lambda p: p.name)
def test_compiled_and_plain_functions_give_one_solution(problem: Problem) -> None:
    """To rounding, and within a hundred tolerances of the exact one."""
    parts = (problem.fun, problem.history, problem.lags)
    switches = problem.kwargs.get("switches")
    fun, history, lags, switch = map(compiled, (*parts, switches))
    t = np.linspace(*problem.span, 501)
    for method in ("Tsit5", "DP5"):
        for rtol in (1e-4, 1e-8):
            same: Any = {"rtol": rtol, "atol": rtol, "dense_output": True, "method": method}
            ours = solve_dde(fun, problem.span, history, lags, switches=switch, **same)
            plain = solve_dde(parts[0], problem.span, *parts[1:], switches=switches, **same)
            assert ours.success, ours.message
            assert ours.nfev == plain.nfev
            assert ours.sol is not None
            assert plain.sol is not None
            np.testing.assert_allclose(ours.sol(t), plain.sol(t), rtol=1e-9, atol=1e-9)
            assert np.abs(ours.sol(t) - problem.solution(t)).max() <= 100 * rtol


@pytest.mark.slow
def test_events_jumps_and_parameters_may_be_compiled_or_plain_in_any_mixture() -> None:
    """A sawtooth back to `low` when y(t - lag) = 1, and the events y = 0.5 on its way up."""
    parts: dict[str, Any] = {
        "fun": lambda t, y, Z, up, low, on: np.array([up[1] if on else 0.0]),
        "lags": lambda t, y, up, low, on: np.array([0.3 * low]),
        "change": lambda t, y, up, low, on: np.array([float(low - 1)]),
        "when": lambda t, y, Z, up, low, on: Z[0, 0] - 1,
        "event": lambda t, y, up, low, on: y[0] - 0.5,
    }

    def run(of: Callable[[str], Any]) -> Any:
        when = marked(of("when"), delayed=True, direction=1)
        return solve_dde(
            of("fun"), (0, 10), 0.0, of("lags"), args=(np.array([7.0, 1.0]), 1, True),
            jumps=[(when, of("change"))], events=marked(of("event"), direction=1),
        )  # fmt: skip

    plain = run(parts.__getitem__)
    np.testing.assert_allclose(plain.t_jumps, 1.3 * np.arange(1, 8), atol=1e-12)
    ready = {name: numba.njit(part) for name, part in parts.items()}
    assert run(ready.__getitem__).nfev == plain.nfev
    for left in parts:
        mixed = run({**ready, left: parts[left]}.__getitem__)
        np.testing.assert_allclose(mixed.t_jumps, plain.t_jumps, rtol=1e-14)
        np.testing.assert_allclose(mixed.t_events[0], plain.t_events[0], rtol=1e-14)
        np.testing.assert_array_equal(mixed.y[:, -1], plain.y[:, -1])


@pytest.mark.slow
def test_parameters_that_are_no_numbers_are_passed_on_too() -> None:
    fun = numba.njit(lambda t, y, Z, how: -y if how == "down" else y)
    result = solve_dde(fun, (0, 1), 1.0, [], args=("down",), rtol=1e-8, atol=1e-8)
    assert result.y[0, -1] == pytest.approx(np.exp(-1), abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"fun": lambda t, y, Z: y + "one"}, InvalidInput,
         r"fun cannot be compiled by numba .*: .*>>> add\(array"),
        ({"fun": lambda t, y, Z: 1j * y}, InvalidInput, "fun cannot be compiled by numba"),
        ({"fun": lambda t, y, Z: np.array([1.0, 2.0])}, InvalidInput,
         r"fun returned shape \(2,\) at t = 0; give 1 number"),
        ({"fun": lambda t, y, Z: y * (1 / (1 - int(t > 0.5)))}, ZeroDivisionError,
         "division by zero"),
        ({"events": lambda t, y: (1, 2)}, InvalidInput, r"event 0 returned shape \(2,\)"),
    ],
)  # fmt: skip
def test_what_a_compiled_function_does_wrong_is_said(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = {"fun": lambda t, y, Z: -Z[:, 0], **arguments}
    call = {name: numba.njit(function) for name, function in given.items()}
    with pytest.raises(error, match=text):
        solve_dde(t_span=(0, 1), history=1.0, lags=[1.0], **call)


def test_the_colours_of_numbas_report_are_left_out() -> None:
    """As numba has them where colorama is installed."""
    report = "\x1b[1mFailed in nopython mode\x1b[0m\n\x1b[1m\x1b[31mNo add\x1b[0m\n >>> add(int64)"
    assert _reason(NumbaError(report)) == "No add >>> add(int64)"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["compiled", "plain"])
def test_many_runs_in_one_call_are_those_of_as_many_calls(kind: str) -> None:
    """Parameters, lags and initial states by rows, over two threads."""

    def plain(t: float, y: Any, Z: Any, a: float, b: float) -> Any:
        return a * Z[0, 0] / (1 + Z[0, 0] ** 10) - b * y

    fun = numba.njit(plain) if kind == "compiled" else plain
    rng = np.random.default_rng(4)
    sets, lags = rng.uniform(0.1, 0.3, (20, 2)), rng.uniform(1, 20, (20, 1))
    start, t = rng.uniform(0.5, 1.5, (20, 1)), np.linspace(0, 100, 11)
    runs = solve_dde(fun, (0, 100), start, lags, args=sets, t_eval=t, workers=2)
    for row, lag, y, run in zip(sets, lags, start, runs, strict=True):
        alone = solve_dde(fun, (0, 100), y, lag, args=tuple(row), t_eval=t)
        np.testing.assert_array_equal(run.y, alone.y)
    by_function = solve_dde(fun, (0, 5), start[0], lambda t, y, a, b: [10 * a], args=sets)
    for row, run in zip(sets, by_function, strict=True):
        alone = solve_dde(fun, (0, 5), start[0], [10 * row[0]], args=tuple(row))
        np.testing.assert_allclose(run.y[:, -1], alone.y[:, -1], atol=1e-6)


def test_a_failure_in_one_of_many_runs_ends_that_one_and_an_exception_all() -> None:
    blow_up = numba.njit(lambda t, y, Z, power: y**power)
    runs = solve_dde(blow_up, (0, 2), 1.0, [], args=np.array([[1.0], [2.0], [0.5]]))
    assert [run.success for run in runs] == [True, False, True]

    def raising(t: float, y: Any, Z: Any, k: float) -> Any:
        if k == 2.0:
            raise ArithmeticError("two")
        return -k * y

    with pytest.raises(ArithmeticError, match="two"):
        solve_dde(raising, (0, 2), 1.0, [], args=np.array([[1.0], [2.0], [0.5]]), workers=2)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"args": np.empty((0, 2))}, r"args has shape \(0, 2\); give a row"),
        ({"args": np.array([[np.nan]])}, "args"),
        ({"lags": np.ones((3, 1))}, "lags has 3 rows where args has 2"),
        ({"history": np.ones((3, 1))}, "history has 3 rows where args has 2"),
        ({"lags": np.array([[1.0], [-1.0]])}, r"lags\[0\] = -1.0 is negative"),
        ({"workers": 0}, "workers"),
    ],
)
def test_wrong_tables_are_named(changes: dict[str, Any], text: str) -> None:
    given = {"history": 1.0, "lags": [1.0], "args": np.ones((2, 1)), **changes}
    with pytest.raises(InvalidInput, match=text):
        solve_dde(lambda t, y, Z, k: -k * y, (0, 1), **given)
