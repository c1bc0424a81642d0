"""The arguments of `solve_dde`, checked at the call."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.numerics.dde_events import Watcher
from fluidcc.numerics.dde_history import Array, History
from fluidcc.numerics.dde_result import DdeSolution
from fluidcc.numerics.tableaus import METHODS, Tableau

__all__ = ["Problem", "check"]


@dataclass
class Problem:
    """A delay equation to solve, every argument in its normal form."""

    fun: Callable[..., object]
    t0: float
    tf: float
    history: History
    lags: Array | Callable[..., Array]
    count: int  # how many lags
    args: tuple[object, ...]
    pair: Tableau
    t_eval: Array | None
    dense_output: bool
    watchers: list[Watcher]
    events: int | None  # how many, None: not asked for
    timed: list[tuple[float, Watcher]]  # jumps at given times, in order
    breaks: list[tuple[float, int]]  # (time, order), in order: known discontinuities besides the initial point
    rtol: float
    atol: Array
    max_step: float
    first_step: float | None
    max_steps: int
    max_order: int


def check(
    fun: Callable[..., object],
    t_span: Sequence[float],
    history: Any,
    lags: Any,
    *,
    method: str,
    t_eval: ArrayLike | None,
    dense_output: bool,
    events: Any,
    jumps: Any,
    switches: Any,
    args: Any,
    rtol: float,
    atol: Any,
    max_step: float,
    first_step: float | None,
    max_steps: int,
    breaking_points: Any,
    max_order: int | None,
) -> Problem:
    """Check every argument of `solve_dde`; each error names the argument, its value, and what would be right."""
    if not callable(fun):
        raise InvalidInput(f"fun must be a function of (t, y, Z), not {fun!r}.")
    t0, tf = _span(t_span)
    args = _args(args)
    past = _history(history, t0)
    delays, count = _lags(lags, t0, past(t0), args)
    if method not in METHODS:
        raise UnknownName(f"method {method!r} is not known: use one of {', '.join(METHODS)}.")
    n = past.constant.size
    watchers, timed = _watchers(events, jumps, switches, t0, tf)
    if max_order is None:  # the table grows like count**max_order within the largest lag
        max_order = 5 if count <= 4 else 3 if count <= 20 else 2
    elif max_order < 1:
        raise InvalidInput(f"max_order = {max_order} must be at least 1, to land on the first kinks.")
    breaks = [(float(b), 1) for b in np.atleast_1d(np.asarray(breaking_points, dtype=float))]
    if isinstance(history, DdeSolution):
        breaks += [b for b in history.breaking_points if b[0] < t0]
    if any(not math.isfinite(b) for b, _ in breaks):
        raise InvalidInput("breaking_points must be finite times.")
    return Problem(
        fun, t0, tf, past, delays, count, args, METHODS[method], _samples(t_eval, t0, tf), bool(dense_output),
        watchers, None if events is None else sum(w.kind == "event" for w in watchers), timed, sorted(breaks),
        *_tolerances(rtol, atol, n), _positive("max_step", max_step),
        None if first_step is None else _positive("first_step", first_step),
        int(_positive("max_steps", max_steps)), max_order,
    )  # fmt: skip


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise InvalidInput(f"{name} = {value!r} must be positive.")
    return value


def _args(args: Any) -> tuple[object, ...]:
    if args is None:
        return ()
    try:
        return tuple(args)
    except TypeError:
        raise InvalidInput(f"args = {args!r} must be a tuple: write args=({args!r},).") from None


def _span(t_span: Sequence[float]) -> tuple[float, float]:
    try:
        t0, tf = map(float, t_span)
    except (TypeError, ValueError):
        raise InvalidInput(f"t_span = {t_span!r} must be two numbers, (start, end).") from None
    if not (math.isfinite(t0) and math.isfinite(tf)):
        raise InvalidInput(f"t_span = ({t0}, {tf}) must be finite.")
    if tf < t0:
        raise Unsupported(
            f"t_span = ({t0}, {tf}) runs backwards: a delay equation has no unique past; "
            "substitute s = -t if yours is one of advanced arguments."
        )
    return t0, tf


def _history(history: Any, t0: float) -> History:
    function = history if callable(history) else None
    raw = np.atleast_1d(np.asarray(history(t0) if callable(history) else history))
    what = f"history({t0:.6g})" if callable(history) else "history"
    if np.iscomplexobj(raw):
        raise Unsupported(f"{what} is complex: solve for the real and imaginary parts as separate states.")
    try:
        start = np.asarray(raw, dtype=float).ravel()
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} = {raw!r} must be a number or a vector of numbers.") from None
    if start.size == 0 or not np.isfinite(start).all():
        raise InvalidInput(f"{what} = {start} must be at least one number, all finite.")
    return History(function, start.copy(), t0)


def _lags(lags: Any, t0: float, y0: Array, args: tuple[object, ...]) -> tuple[Any, int]:
    if callable(lags) and args and not _takes(lags, 2 + len(args)) and _takes(lags, 2):
        plain = lags  # a function of (t, y) alone stays one when fun has further arguments

        def lags(t: float, y: Array, *_: object) -> Any:
            return plain(t, y)

    values = np.atleast_1d(np.asarray(lags(t0, y0, *args) if callable(lags) else lags, dtype=float))
    what = f"lags({t0:.6g}, y)" if callable(lags) else "lags"
    if values.ndim != 1:
        raise InvalidInput(f"{what} has shape {values.shape}: it must be a vector, one lag per column of Z.")
    for j, lag in enumerate(values):
        if not math.isfinite(lag):
            raise InvalidInput(f"{what}[{j}] = {lag} must be finite.")
        if lag < 0:
            raise InvalidInput(f"{what}[{j}] = {lag} is negative: the state at t - lag would lie in the future.")
    return (lags if callable(lags) else values), values.size


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(getattr(function, "py_func", function)).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def _samples(t_eval: ArrayLike | None, t0: float, tf: float) -> Array | None:
    if t_eval is None:
        return None
    times = np.asarray(t_eval, dtype=float)
    if times.ndim != 1:
        raise InvalidInput(f"t_eval has shape {times.shape}: it must be a vector of times.")
    if times.size and not (times.min() >= t0 and times.max() <= tf):
        raise InvalidInput(f"t_eval runs from {times.min()} to {times.max()}: it must lie in t_span = ({t0}, {tf}).")
    if np.any(np.diff(times) <= 0):
        raise InvalidInput("t_eval must increase strictly: sort it, and give each time once.")
    return times


def _tolerances(rtol: Any, atol: Any, n: int) -> tuple[float, Array]:
    if np.ndim(rtol) != 0 or not 1e-14 <= rtol < 1:
        raise InvalidInput(f"rtol = {rtol!r} must be a number between 1e-14 (rounding) and 1.")
    absolute = np.asarray(atol, dtype=float)
    if absolute.shape not in ((), (n,)) or not (absolute >= 0).all():
        raise InvalidInput(f"atol = {atol!r} must be a number or {n} numbers, none negative.")
    return float(rtol), np.broadcast_to(absolute, (n,)).copy()


def _watchers(
    events: Any, jumps: Any, switches: Any, t0: float, tf: float
) -> tuple[list[Watcher], list[tuple[float, Watcher]]]:
    watchers = [_watcher("event", i, g) for i, g in enumerate(_listed(events))]
    watchers += [_watcher("switch", i, g) for i, g in enumerate(_listed(switches))]
    timed: list[tuple[float, Watcher]] = []
    for i, jump in enumerate(jumps if jumps is not None else ()):
        try:
            when, change = jump
        except (TypeError, ValueError):
            raise InvalidInput(f"jumps[{i}] must be a pair (when, change), not {jump!r}.") from None
        if not callable(change):
            raise InvalidInput(f"jumps[{i}]: change must be a function of (t, y) giving the new state, not {change!r}.")
        w = _watcher("jump", i, when if callable(when) else change)
        w.change = change
        if callable(when):
            watchers.append(w)
            continue
        for t in np.atleast_1d(np.asarray(when, dtype=float)):
            if not t0 <= t <= tf:
                raise InvalidInput(f"jumps[{i}] is at t = {t}: it must lie within t_span = ({t0}, {tf}).")
            timed.append((float(t), w))
    return watchers, sorted(timed, key=lambda pair: pair[0])


def _listed(functions: Any) -> Iterable[Callable[..., float]]:
    if functions is None:
        return ()
    return (functions,) if callable(functions) else functions


def _watcher(kind: str, index: int, g: Any) -> Watcher:
    if not callable(g):
        raise InvalidInput(f"{kind} {index} must be a function, not {g!r}.")
    return Watcher(
        kind, index, g, bool(getattr(g, "delayed", kind == "switch")),
        float(getattr(g, "direction", 0.0)), int(getattr(g, "terminal", 0) or 0),
    )  # fmt: skip
