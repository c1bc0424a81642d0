"""Wrong arguments and failed integrations of `solve_dde`: one sentence each that a person can
act on.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.numerics.dde.solve import solve_dde


def fun(t: float, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return -Z[:, 0]


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"fun": 3}, InvalidInput, "fun is 3; it must be a function"),
        ({"t_span": 3}, InvalidInput, "t_span"),
        ({"t_span": (0, np.inf)}, InvalidInput, "finite"),
        ({"t_span": (1, 0)}, Unsupported, "backwards"),
        ({"history": np.nan}, InvalidInput, "history"),
        ({"history": "one"}, InvalidInput, "history"),
        ({"history": lambda t: [np.inf]}, InvalidInput, r"history\(0\)"),
        ({"history": 1j}, Unsupported, "complex"),
        ({"lags": [-0.1]}, InvalidInput, r"lags\[0\] = -0.1 is negative"),
        ({"lags": lambda t, y: [1, -1]}, InvalidInput, r"\[1\] = -1.0 is negative"),
        ({"lags": [np.nan]}, InvalidInput, "finite"),
        ({"lags": [[1.0]]}, InvalidInput, "vector"),
        (
            {"lag_states": [0, 0]},
            InvalidInput,
            r"lag_states has shape \(2,\); give the index of one state for each of 1",
        ),
        (
            {"lag_states": [1]},
            InvalidInput,
            "lag_states has 1; give indices of states, from 0 to 0",
        ),
        ({"lag_states": [-1]}, InvalidInput, "lag_states has -1; give"),
        ({"lag_states": [0.5]}, InvalidInput, "lag_states has 0.5; give"),
        ({"lag_states": "first"}, InvalidInput, "lag_states"),
        ({"method": "BDF"}, UnknownName, "Tsit5, DP5"),
        ({"t_eval": [0, 2]}, InvalidInput, "t_eval"),
        ({"t_eval": [0.5, 0.2]}, InvalidInput, "increase"),
        ({"rtol": 0.0}, InvalidInput, "rtol"),
        ({"atol": [1.0, 1.0]}, InvalidInput, "atol"),
        ({"atol": -1.0}, InvalidInput, "atol"),
        ({"max_step": 0}, InvalidInput, "max_step"),
        ({"first_step": -1}, InvalidInput, "first_step"),
        ({"args": 5}, InvalidInput, r"args=\(5,\)"),
        ({"events": [1]}, InvalidInput, "event 0 is 1; it must be a function"),
        ({"jumps": [3]}, InvalidInput, "pair"),
        ({"jumps": [(0.5, 3)]}, InvalidInput, "change"),
        ({"jumps": [(2.0, fun)]}, InvalidInput, "within t_span"),
        ({"breaking_points": [np.nan]}, InvalidInput, "breaking_points"),
        ({"max_order": 0}, InvalidInput, "max_order"),
        (
            {"fun": lambda t, y, Z: [1.0, 2.0]},
            InvalidInput,
            r"fun returned shape \(2,\) at t = 0; give 1 number",
        ),
        ({"fun": lambda t, y, Z: 1j * y}, InvalidInput, "fun at t = 0 is .*; give real numbers"),
        ({"fun": lambda t, y, Z: None}, InvalidInput, "fun at t = 0 is None; give real numbers"),
        ({"fun": lambda t, y: y}, InvalidInput, "fun cannot be called with 3 arguments"),
        ({"events": lambda t: t}, InvalidInput, "event 0 cannot be called with 2 arguments"),
        ({"events": lambda t, y: [1, 2]}, InvalidInput, r"event 0 returned shape \(2,\)"),
        (
            {"jumps": [(0.5, lambda t, y: [1.0, 2.0])]},
            InvalidInput,
            r"change of jump 0 returned shape \(2,\) at t = 0.5",
        ),
        (
            {"history": lambda t: [1.0] * (1 + (t < 0))},
            InvalidInput,
            r"history returned shape \(2,\) at t = -1",
        ),
        ({"history": [[1.0, 2.0]]}, InvalidInput, r"history has shape \(1, 2\)"),
        (
            {"lags": lambda t, y: [1.0] * (1 + (t > 0.5))},
            InvalidInput,
            r"lags returned shape \(2,\) at t = 0",
        ),
        ({"vectorized": True}, InvalidInput, "has no argument 'vectorized'"),
    ],
)
def test_wrong_arguments_are_named(
    changes: dict[str, Any], error: type[Exception], text: str
) -> None:
    arguments: dict[str, Any] = {
        "fun": fun,
        "t_span": (0, 1),
        "history": 1.0,
        "lags": [1.0],
    } | changes
    with pytest.raises(error, match=text):
        solve_dde(**arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"fun": lambda t, y, Z: y**2, "t_span": (0, 5)},
            "step size collapsed to .* at t = 1.0000",
        ),
        (
            {"fun": lambda t, y, Z: -np.sqrt(y), "t_span": (0, 5)},
            "after t = 2.0000.*terminal event",
        ),
        ({"fun": lambda t, y, Z: [np.nan]}, "fun returned nan at t = 0"),
        ({"t_span": (0, 500), "max_steps": 10}, "10 steps were taken"),
        (
            {"fun": lambda t, y, Z: [1 - 2.0 * (y[0] > 0)], "history": -1.0, "t_span": (0, 5)},
            "slides along a jump",
        ),
        (
            {"lags": lambda t, y: [1 - t], "t_span": (0, 5)},
            "lag 0 becomes negative after t = 1.0000",
        ),
        ({"jumps": [(0.5, lambda t, y: [np.inf])]}, "jump 0 at t = 0.5"),
        ({"lags": lambda t, y: [1.0 if t < 0.5 else np.nan]}, "lag 0 is NaN at t = 0.[5-9]"),
        ({"lags": lambda t, y: [1.0 if t < 0.5 else np.inf]}, "lag 0 is infinite at t = 0.[5-9]"),
        ({"history": lambda t: 1.0 if t > -0.5 else np.nan}, "fun returned nan at t = 0"),
        ({"events": lambda t, y: np.nan}, "event 0 returned NaN"),
    ],
)
def test_failures_say_what_where_and_what_to_try(arguments: dict[str, Any], text: str) -> None:
    defaults: dict[str, Any] = {"fun": fun, "t_span": (0, 1), "history": 1.0, "lags": [1.0]}
    result = solve_dde(**(defaults | arguments))
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
    assert result.t_events[0].shape == (0,)  # type: ignore[index]
    assert result.y_events[0].shape == (0, 1)  # type: ignore[index]
    assert solve_dde(fun, (0, 1), 1.0, [1.0]).t_events is None
    assert "success=True" in repr(result)
    with pytest.raises(KeyError):
        result["nonsense"]
