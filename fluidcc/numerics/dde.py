"""The public solver of delay differential equations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from fluidcc.numerics.dde_driver import Integration
from fluidcc.numerics.dde_input import check
from fluidcc.numerics.dde_result import DdeResult, DdeSolution

__all__ = ["DdeResult", "DdeSolution", "solve_dde"]


def solve_dde(
    fun: Callable[..., Any],
    t_span: Sequence[float],
    history: Any,
    lags: Any,
    *,
    method: str = "Tsit5",
    t_eval: ArrayLike | None = None,
    dense_output: bool = False,
    events: Any = None,
    jumps: Any = None,
    switches: Any = None,
    args: Any = (),
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
    max_step: float = math.inf,
    first_step: float | None = None,
    max_steps: int = 1_000_000,
    breaking_points: ArrayLike = (),
    max_order: int | None = None,
) -> DdeResult:
    return Integration(
        check(
            fun, t_span, history, lags, method=method, t_eval=t_eval, dense_output=dense_output, events=events,
            jumps=jumps, switches=switches, args=args, rtol=rtol, atol=atol, max_step=max_step,
            first_step=first_step, max_steps=max_steps, breaking_points=breaking_points, max_order=max_order,
        )  # fmt: skip
    ).run()
