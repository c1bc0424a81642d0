"""Wrong arguments and failed integrations of `solve_dde`: one sentence each."""

import re
from typing import Any

import numpy as np
import pytest

from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.numerics.dde.solve import solve_dde
from tests.numerics.dde.problems import marked


def fun(t: float, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return -Z[:, 0]


DEFAULTS: dict[str, Any] = {"fun": fun, "t_span": (0, 1), "history": 1.0, "lags": [1.0]}
WRONG: list[tuple[type[Exception], dict[str, Any], str]] = [
    (InvalidInput, {"t_span": (0, np.inf)}, "finite"),
    (InvalidInput, {"lags": [-0.1]}, "lags\\[0\\] = -0.1 is negative"),
    (InvalidInput, {"lags": lambda t, y: [1, -1]}, "\\[1\\] = -1.0 is negative"),
    (InvalidInput, {"lags": [[1.0]]}, "vector"),
    (InvalidInput, {"lag_states": [0, 0]}, "the index of one state for each of 1"),
    (InvalidInput, {"lag_states": [1]}, "lag_states has 1; give indices of states, from 0 to 0"),
    (InvalidInput, {"t_eval": [0.5, 0.2]}, "increase"),
    (InvalidInput, {"args": 5}, "args=\\(5,\\)"),
    (InvalidInput, {"events": [1]}, "event 0 is 1; it must be a function"),
    (InvalidInput, {"jumps": [3]}, "pair"),
    (InvalidInput, {"jumps": [(0.5, 3)]}, "change"),
    (InvalidInput, {"jumps": [(2.0, fun)]}, "within t_span"),
    (InvalidInput, {"fun": lambda t, y, Z: [1.0, 2.0]}, "fun returned .* at t = 0; give 1 number"),
    (InvalidInput, {"fun": lambda t, y, Z: 1j * y}, "fun at t = 0 is .*; give real numbers"),
    (InvalidInput, {"fun": lambda t, y: y}, "fun must accept 3 arguments"),
    (InvalidInput, {"events": lambda t: t}, "event 0 must accept 2 arguments"),
    (InvalidInput, {"events": lambda t, y: [1, 2]}, "event 0 returned shape \\(2,\\)"),
    (InvalidInput, {"jumps": [(0.5, lambda t, y: [1.0, 2.0])]}, "change of jump 0 .* at t = 0.5"),
    (InvalidInput, {"history": lambda t: [1.0] * (1 + (t < 0))}, "history returned .* at t = -1"),
    (InvalidInput, {"history": [[1.0, 2.0]]}, "history has shape \\(1, 2\\)"),
    (InvalidInput, {"lags": lambda t, y: [1.0] * (1 + (t > 0.5))}, "lags returned .* at t = 0"),
    (Unsupported, {"t_span": (1, 0)}, "backwards"),
    (Unsupported, {"history": 1j}, "complex"),
    (UnknownName, {"method": "BDF"}, "Tsit5, DP5"),
    (InvalidInput, {"events": lambda t, y: np.nan}, "event 0 returned NaN at t = 0;"),
    (InvalidInput, {"events": lambda t, y: np.sqrt(0.25 - t) + 1}, "event 0 .* at t = 0.25;"),
    (InvalidInput, {"jumps": [(lambda t, y: np.sqrt(0.25 - t) + 1, np.copy)]}, "jump 0 .* = 0.25;"),
    (InvalidInput, {"switches": marked(lambda t, y, Z: t, terminal=True)}, "switch 0 .* terminal"),
]


@pytest.mark.parametrize(("error", "changes", "text"), WRONG)
def test_wrong_arguments_are_named(
    error: type[Exception], changes: dict[str, Any], text: str
) -> None:
    with pytest.raises(error, match=text):
        solve_dde(**{**DEFAULTS, **changes})


FAILURES: list[tuple[dict[str, Any], str]] = [
    ({"fun": lambda t, y, Z: y**2, "t_span": (0, 5)}, "step size collapsed to .* at t = 1.0000"),
    ({"fun": lambda t, y, Z: -np.sqrt(y), "t_span": (0, 5)}, "after t = 2.0000.*terminal event"),
    ({"fun": lambda t, y, Z: [np.nan]}, "fun returned nan at t = 0"),
    ({"t_span": (0, 500), "max_steps": 10}, "10 steps were taken"),
    ({"fun": lambda t, y, Z: [1 - 2.0 * (y[0] > 0)], "history": -1.0, "t_span": (0, 5)},
     "slides along a jump"),
    ({"lags": lambda t, y: [1 - t], "t_span": (0, 5)}, "lag 0 becomes negative after t = 1.0000"),
    ({"jumps": [(0.5, lambda t, y: [np.inf])]}, "jump 0 at t = 0.5"),
    ({"lags": lambda t, y: [1.0 if t < 0.5 else np.nan]}, "lag 0 is NaN at t = 0.[5-9]"),
    ({"lags": lambda t, y: [1.0 if t < 0.5 else np.inf]}, "lag 0 is infinite at t = 0.[5-9]"),
    ({"history": lambda t: 1.0 if t > -0.5 else np.nan}, "fun returned nan at t = 0"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), FAILURES)
def test_failures_say_what_where_and_what_to_try(arguments: dict[str, Any], text: str) -> None:
    result = solve_dde(**{**DEFAULTS, **arguments})
    assert (result.status, result.success) == (-1, False)
    assert re.search(text, result.message), result.message
    assert result.t[0] == 0
    assert result.t.size == result.y.shape[1]


def test_an_empty_span_gives_the_start() -> None:
    result = solve_dde(fun, (0, 0), 1.0, [1.0], dense_output=True)
    np.testing.assert_array_equal(result.y, [[1.0]])
    assert result.sol is not None
    assert result.sol(0.0) == 1.0


def test_result_reads_like_scipys() -> None:
    result = solve_dde(fun, (0, 1), 1.0, [1.0], events=lambda t, y: y[0] + 5)
    assert result["success"]
    assert result.t_events[0].shape == (0,)
    assert result.y_events[0].shape == (0, 1)
    assert solve_dde(fun, (0, 1), 1.0, [1.0]).t_events is None
    assert "success=True" in repr(result)
    with pytest.raises(KeyError):
        result["nonsense"]
