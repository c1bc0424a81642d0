"""The public solver of delay differential equations."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import explained, flag, number, numbers, shown, whole
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.numerics.dde import state as s
from fluidcc.numerics.dde.functions import Array, FrameLayout, Function, parameter_kinds
from fluidcc.numerics.dde.result import DdeSolution
from fluidcc.numerics.dde.run import FEW, MANY, Problem, Watcher, solve, solve_many
from fluidcc.numerics.tableaus import METHODS


@explained
def solve_dde(
    fun: Callable[..., Any],
    t_span: Sequence[float],
    history: Any,
    lags: Any = None,
    *,
    lag_states: ArrayLike | None = None,
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
    workers: int | None = None,
) -> Any:
    r"""Solve an initial value problem of delay differential equations, in the manner of SciPy's
    ``solve_ivp``.

    .. math::

        y'(t) = f(t, y(t), y(t - \tau_1), \dots, y(t - \tau_m)), \qquad
        y(t) = \phi(t) \text{ for } t \le t_0,

    where the lags :math:`\tau_j \ge 0` are constants or functions of t and y(t), and may be shorter
    than a step or vanish. Kinks that the lags carry forward become mesh points, so that the order
    of the method is kept.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, Z, *args)``, or ``fun(t, y, Z, modes, *args)`` with `switches`, returns y',
        shape (n,). y has shape (n,) and Z shape (n, m): ``Z[:, j]`` is the state at ``t - lag j``.
        Plain, or compiled by numba, which is many times as fast; it is fastest if it returns a
        tuple, or of one equation a number, for which no memory is allocated. `fluidcc.solve_dde`
        also takes equations in SymPy, ``{x(t): right-hand side, ...}`` or a list of
        ``Eq(x(t).diff(t, n), ...)``, and compiles them. They tell the lags, as in ``x(t - tau)`` or
        ``x(t - tau).diff(t)``, and Max, Abs, Heaviside and Piecewise become switches; equations of
        higher order become systems, and those that are linear in the highest derivatives are solved
        for them. y has the functions in the order of the equations, then their lower derivatives;
        ``result.of(x(t).diff(t))`` is a row. `args` is then ``{parameter: value}``, each one number
        or one a run, `history` may be ``{x(t): expression}``, from which that of the derivatives
        follows, and an event, or `when` of a jump, an expression, or ``(expression, {"direction":
        1, "terminal": True})``.
    t_span : (float, float)
        Start and end, in this order.
    history : array_like, shape (n,), or callable, or DdeSolution
        The state at and before the start: constants, or ``history(t)``; or the ``sol`` of an
        earlier run, to go on from any time of it, its breaking points included.
    lags : array_like, shape (m,), or callable; not for equations
        Constants, or ``lags(t, y, *args)`` or ``lags(t, y)``; in units of t.
    lag_states : array_like of int, shape (m,), optional
        The one state that each lag is read for: Z has then the shape (m,), with ``Z[j]`` the state
        ``lag_states[j]`` at ``t - lag j``. In a network with many lags this saves most of the work.
    method : {"Tsit5", "DP5"}
        Tsitouras' pair of order 5(4) or that of Dormand and Prince ("RK45" is accepted), each with
        its own dense output of order four.
    t_eval : array_like, optional
        Increasing times at which to give the state; by default the mesh. At a jump: the state after
        it.
    dense_output : bool
        Whether to give ``sol``, callable at any time, history included. Without it, and with
        constant lags, only as much of the past is kept as the largest lag needs.
    events : callable or list of callables, optional
        ``event(t, y, *args)``, or ``event(t, y, Z, *args)`` if it has the attribute ``delayed =
        True``; its zeros are reported. Attributes as in SciPy: ``terminal`` (bool, or the number of
        occurrences that end the run) and ``direction`` (+1: only rising, -1: only falling zeros). A
        zero at the start is not an occurrence, nor one that is touched without a change of sign; a
        value that stays zero is one where it gets there, and so is a jump to the other sign. Each
        step, however long, is looked through in panels in which a quartic through five values of
        the event foretells two others and has one zero at most.
    jumps : list of (when, change), optional
        Changes of the state: `when` is a time, several times, or a function like an event (with
        `direction`, `delayed` and `terminal`); ``change(t, y, *args)`` returns the new state
        (``change.delayed = True``: ``change(t, y, Z, *args)``). Delayed look-ups see both sides.
        Jumps at one time happen in the order given, those with a function before those at given
        times; then, one after the other, those whose function the change of another one has carried
        over zero. What a change does to its own function is no occurrence. The run fails after 200
        rounds of that. The result says when, in ``t_jumps``, and which, in ``jump_index``.
    switches : callable or list of callables, optional
        ``switch(t, y, Z, *args)``: `fun` gets ``modes``, shape (number of switches,), where
        ``modes[k]`` is 1.0 while switch k is positive and 0.0 otherwise. The mode is held during a
        step, which ends exactly where the switch changes sign; so a right-hand side with jumps or
        kinks is solved at full order. (Undeclared ones, of `lags` too, are found by error control,
        at the cost of many small steps and some tens of tolerances; their images under the lags are
        mesh points if there are up to 4 lags. At rest, where errors tell nothing, `fun` is tried at
        intervals of a thousandth of `t_span`; see the notes for what is not seen.)
    args : tuple, or ndarray of shape (runs, parameters)
        Passed on to `fun`, `lags`, events, switches and changes. An array of two dimensions asks
        for many runs, one for each row of parameters; `history` and `lags` may then be such arrays
        too. The runs share their compiled functions, and cores.
    rtol, atol : float; float or array_like, shape (n,)
        The local error is kept below ``atol + rtol * abs(y)``: at the end of a step in the root
        mean square, and within it (by the defect in its middle) in each state.
    max_step, first_step : float, optional
        Bounds on the step size, and the first one.
    max_steps : int
        The run fails when so many steps did not reach the end, or a thousand times as many would
        not at its pace.
    breaking_points : array_like, optional
        Times, in the history or later, at which the history or `fun` is known not to be smooth.
    max_order : int, optional
        Discontinuities up to this order of derivative become mesh points: by default 5 for up to 4
        lags, 3 for up to 20, 2 for up to 400, 1 for up to 4000, then 0. The rest is left to error
        control: the kink that a smooth history makes at the start is of order 1, and comes back as
        one of order 2 a lag later; after a history that jumps at the start they are 0 and 1.
    workers : int, optional
        Threads that share many runs: by default one a core, or one if functions are plain Python.

    Returns
    -------
    DdeResult, or list of DdeResult for many runs
        With the fields ``t, y, sol, t_events, y_events, nfev, njev, nlu, status, message, success``
        of SciPy's, and ``t_jumps``, ``jump_index``, ``breaking_points``, ``modes`` and
        ``statistics``. A failed integration (collapse of the step size, NaN, too many steps, a lag
        that turns negative, accumulating jumps) has ``success=False``, everything up to the
        failure, and a message that says what, where, and what to try.

    Raises
    ------
    InvalidInput
        If an argument has a value that cannot be meant: each message names it. A negative lag at
        the start is one. If an event, switch or `when` of a jump is NaN: the message says where.
    UnknownName
        If there is no such method.
    Unsupported
        For backward integration and complex states.

    Notes
    -----
    With constant lags the table of breaking points is known: a kink of order p at one time causes
    one of order p + 1 a lag later, and coincident ones are merged. With state-dependent lags the
    delayed argument is watched like an event; a trial step reads the smooth piece of the past that
    it began in, extrapolated where necessary, is taken again to where the argument leaves that
    piece, and the next step reads the next piece. Steps longer than a lag iterate on their own
    dense output until it no longer changes.

    The solver is compiled once after installation. It calls functions that numba has compiled
    directly, and any other through Python; they may be mixed. A compiled function is called through
    Python too where `args` holds anything but numbers and arrays of numbers. With more than 20
    constant lags a history in Python is called beforehand, and lags read quartic pieces that are
    right to a hundredth of the tolerance at two more places each; one that they do not fit is
    called for each lag.

    What comes and goes between two places at which a function is called is not seen: a pulse of
    `fun` that falls between the stages of a step or, at rest, is shorter than a thousandth of
    `t_span`; an event that goes to zero and back between seven values that a quartic explains.
    Declare such times in `breaking_points`, or bound the steps by `max_step`. Here is a dip of 0.2
    in 1000:

    >>> import numpy as np
    >>> from fluidcc.numerics.dde.solve import solve_dde
    >>> def dip(t, y):
    ...     return abs(y[0] - 500) - 0.1 if abs(y[0] - 500) < 0.2 else 0.1
    >>> clock = {"fun": lambda t, y, Z: [1.0], "t_span": (0, 1000), "history": 0.0, "lags": []}
    >>> [len(solve_dde(**clock, events=dip, max_step=h).t_events[0]) for h in (np.inf, 0.1)]
    [0, 2]

    References
    ----------
    A. Bellen, M. Zennaro, "Numerical Methods for Delay Differential Equations", Oxford, 2003.

    S. Thompson, L. F. Shampine, "A friendly Fortran DDE solver", Applied Numerical Mathematics 56
    (2006) 503-516.

    Examples
    --------
    The delayed negative feedback y' = -y(t - 1) from y = 1, whose solution is polynomial between
    integers:

    >>> tight = {"rtol": 1e-8, "atol": 1e-8}
    >>> result = solve_dde(lambda t, y, Z: -Z[:, 0], (0, 3), 1.0, [1.0], t_eval=[1, 2, 3], **tight)
    >>> result.y.round(6)
    array([[ 0.      , -0.5     , -0.166667]])

    A lag that depends on the state (Feldstein and Neves), y' = y(y(t) - sqrt(2) + 1) / (2 sqrt(t)),
    y = 1 up to t = 1; the kink at t = 1 returns at t = 2:

    >>> result = solve_dde(
    ...     lambda t, y, Z: Z[:, 0] / (2 * np.sqrt(t)), (1, 4), 1.0,
    ...     lambda t, y: [t - y[0] + np.sqrt(2) - 1]
    ... )
    >>> result.breaking_points.round(6)
    array([[2., 2.]])

    A right-hand side that switches, y' = -1 - y + 2 [y(t/2) < 0]:

    >>> result = solve_dde(
    ...     lambda t, y, Z, modes: -1 - y + 2 * modes[0], (0, 3), 1.0, lambda t, y: [t / 2],
    ...     switches=lambda t, y, Z: -Z[0, 0], events=lambda t, y: y[0],
    ... )
    >>> np.exp(result.t_events[0]).round(5)
    array([2., 6.])

    The Mackey-Glass equation, compiled, for three lags at once:

    >>> import numba
    >>> @numba.njit
    ... def mackey_glass(t, y, Z, beta):
    ...     return np.array([beta * Z[0, 0] / (1 + Z[0, 0] ** 10) - 0.1 * y[0]])
    >>> lags = np.array([[6.0], [12.0], [17.0]])
    >>> runs = solve_dde(mackey_glass, (0, 300), 0.5, lags, args=np.full((3, 1), 0.2))
    >>> [float(np.ptp(run.y[0, run.t > 200]).round(2)) for run in runs]
    [0.31, 0.61, 0.86]

    The same in SymPy:

    >>> import sympy as sp
    >>> import fluidcc as fc
    >>> t, beta, tau = sp.symbols("t beta tau")
    >>> x = sp.Function("x")
    >>> equations = {x(t): beta * x(t - tau) / (1 + x(t - tau) ** 10) - x(t) / 10}
    >>> runs = fc.solve_dde(equations, (0, 300), 0.5, args={beta: 0.2, tau: [6, 12, 17]})
    >>> [float(np.ptp(run.y[0, run.t > 200]).round(2)) for run in runs]
    [0.31, 0.61, 0.86]

    A pendulum that is damped by its speed of a little before, of second order; its highest point:

    >>> pendulum = [sp.Eq(x(t).diff(t, 2), -sp.sin(x(t)) - x(t - 0.1).diff(t) / 5)]
    >>> top = (x(t).diff(t), {"direction": -1, "terminal": True})
    >>> run = fc.solve_dde(pendulum, (0, 20), {x(t): t}, events=top)
    >>> print(run.of(x(t)).max().round(3), run.t_events[0].round(3))
    0.878 [1.534]
    """
    if not callable(fun):
        raise InvalidInput(f"fun is {shown(fun)}; it must be a function of (t, y, Z).")
    if lags is None:
        raise InvalidInput("lags is missing; give a list of times, or a function of (t, y)")
    flag(dense_output, "dense_output")
    t0, tf = _span(t_span)
    many = isinstance(args, np.ndarray) and args.ndim == 2
    sets = _sets(args, history, lags) if many else [(args, history, lags)]
    args, history, lags = sets[0]
    args = _args(args)
    start = _start(history, t0)
    n = start.size
    delays, count = _lags(lags, t0, start, args)
    single = _lag_states(lag_states, count, n)
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownName(f"method {shown(method)} is not known: use one of {', '.join(METHODS)}.")
    watchers, changes, known = _watchers(events, jumps, switches, t0, tf, n, len(args))
    modes = sum(w.kind == s.SWITCH for w in watchers)
    names = ("t", "y", "Z", *(["modes"] if modes else []), "args")
    if max_order is None:  # the table grows like count**max_order within the largest lag
        max_order = sum(count <= most for most in (FEW, FEW, MANY, 400, 4000))
    else:
        max_order = whole(max_order, "max_order", most=50)
    breaks = np.ravel(numbers(breaking_points, "breaking_points", "a list of finite times"))
    known += [(b, 1, -1) for b in breaks.tolist() if b != t0]
    if isinstance(history, DdeSolution):
        known += [(b, order, -1) for b, order in history.breaking_points if b < t0]
    past = (n, count) if single is None else (count,)
    relative, absolute = _tolerances(rtol, atol, n)
    given: dict[str, Any] = {
        "n": n, "m": count, "t": t0, "t_end": tf, "rtol": relative, "atol": absolute,
        "n_read": n if single is None else 1, "top": np.zeros(count) if single is None else single,
        "max_step": number(max_step, "max_step", "a positive time", above=0.0, infinite=True),
        "max_steps": whole(max_steps, "max_steps", least=1), "max_order": max_order,
        **{name: np.ravel(getattr(METHODS[method], name)) for name in "ABCEP"},
    }  # fmt: skip
    if first_step is not None:
        given["first_step"] = number(first_step, "first_step", "a positive time", above=0.0)
    problem = Problem(
        given, start, Function(history, "history", ("t",), n) if callable(history) else None,
        delays, _function(fun, "fun", names, n, len(args)), args,
        FrameLayout(max(n, count, 1), n, past, modes, parameter_kinds(args)),
        _samples(t_eval, t0, tf), bool(dense_output), watchers, changes,
        None if events is None else sum(w.kind == s.EVENT for w in watchers),
        sorted(known, key=lambda one: one[0]),
    )  # fmt: skip
    workers = None if workers is None else whole(workers, "workers", least=1)
    if not many:
        return solve(problem)
    runs = []
    for own, past_of_run, lags_of_run in sets:
        changed: dict[str, Any] = {"args": own}
        if not callable(history):
            changed["start"] = _start(past_of_run, t0)
        if not callable(lags):
            changed["lags"], _ = _lags(lags_of_run, t0, start, own)
        runs.append(replace(problem, **changed))
    return solve_many(runs, workers)


# --- checks of the arguments: each error names the argument, its value, and what would be right ---


def called(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the user returns at the start, its call explained where it does not
    fit.
    """
    _require_takes(what, function, len(arguments))
    return function(*arguments)


def _require_takes(what: str, function: Any, count: int) -> None:
    if not _takes(function, count):
        raise InvalidInput(
            f"{what} must accept {count} arguments, with which it is called; see solve_dde for its "
            f"form"
        )


def _function(
    given: Callable[..., Any], what: str, names: tuple[str, ...], count: int, args: int
) -> Function:
    """A function that will be called with the arguments of those names, the last of them `args`."""
    _require_takes(what, given, len(names) - 1 + args)
    return Function(given, what, names, count)


def _sets(args: Any, history: Any, lags: Any) -> list[tuple[tuple[float, ...], Any, Any]]:
    """Parameters, history and lags of each of many runs."""
    rows = numbers(args, "args", "finite numbers, a row for each run")
    if not rows.size:
        raise InvalidInput(f"args has shape {rows.shape}; give a row of parameters for each run")
    columns: list[Iterable[Any]] = []
    for what, given in (("history", history), ("lags", lags)):
        table = isinstance(given, np.ndarray) and given.ndim == 2
        if table and len(given) != len(rows):
            raise InvalidInput(
                f"{what} has {len(given)} rows where args has {len(rows)}; give a row for each run"
            )
        columns.append(given if table else [given] * len(rows))
    return list(zip(map(tuple, rows.tolist()), *columns, strict=True))


def _args(args: Any) -> tuple[object, ...]:
    if args is None:
        return ()
    if not isinstance(args, Iterable) or isinstance(args, str | Mapping):
        raise InvalidInput(f"args = {shown(args)} must be a tuple: write args=({shown(args)},).")
    return tuple(args)


def _span(t_span: Sequence[float]) -> tuple[float, float]:
    ends = numbers(t_span, "t_span", "two finite times, (start, end)")
    if ends.shape != (2,):
        raise InvalidInput(f"t_span is {shown(t_span)}; give two finite times, (start, end)")
    t0, tf = ends.tolist()
    if tf < t0:
        raise Unsupported(
            f"t_span = ({t0}, {tf}) runs backwards: a delay equation has no unique past; "
            "substitute s = -t if yours is one of advanced arguments."
        )
    return t0, tf


def _start(history: Any, t0: float) -> Array:
    what = f"history({t0:.6g})" if callable(history) else "history"
    given = called(what, history, t0) if callable(history) else history
    if _is_complex(given):
        raise Unsupported(
            f"{what} is complex: solve for the real and imaginary parts as separate states."
        )
    right = "a finite number, or a vector of them, one for each state"
    start = np.atleast_1d(numbers(given, what, right))
    if start.size == 0 or start.ndim > 1:
        raise InvalidInput(f"{what} has shape {start.shape}; give {right}")
    return start.copy()


def _is_complex(value: Any) -> bool:
    try:
        return np.iscomplexobj(value)
    except (ValueError, TypeError):  # rows of different lengths, or no numbers
        return False


def _lags(
    lags: Any, t0: float, y0: Array, args: tuple[object, ...]
) -> tuple[Array | Function, int]:
    names: tuple[str, ...] = ("t", "y", "args")
    given, what, right = lags, "lags", "a vector of times, one lag for each column of Z"
    if isinstance(lags, list | tuple) and any(map(callable, lags)):
        right = "one function of (t, y) that returns them all"
    if callable(lags):
        what = f"lags({t0:.6g}, y)"
        if args and not _takes(lags, 2 + len(args)) and _takes(lags, 2):
            names = names[:2]  # a function of (t, y) alone stays one when fun has more arguments
        given = called(what, lags, t0, y0, *(args if "args" in names else ()))
    values = np.atleast_1d(numbers(given, what, right, finite=False))
    if values.ndim != 1:
        raise InvalidInput(
            f"{what} has shape {values.shape}: it must be a vector, one lag per column of Z; give "
            f"a list of times"
        )
    for j, lag in enumerate(values):
        if not math.isfinite(lag):
            raise InvalidInput(f"{what}[{j}] = {lag}; give a finite time, 0 or more")
        if lag < 0:
            raise InvalidInput(
                f"{what}[{j}] = {lag} is negative: the state at t - lag would lie in the future; "
                "give a time of 0 or more"
            )
    if callable(lags):
        return Function(lags, "lags", names, values.size), values.size
    return values, values.size


def _lag_states(given: Any, count: int, n: int) -> NDArray[np.int64] | None:
    if given is None:
        return None
    states = numbers(given, "lag_states", "a vector of indices of states, one for each lag")
    if states.shape != (count,):
        raise InvalidInput(
            f"lag_states has shape {states.shape}; give the index of one state for each of "
            f"{count} lags"
        )
    wrong = states[(states != np.floor(states)) | (states < 0) | (states >= n)]
    if wrong.size:
        raise InvalidInput(
            f"lag_states has {wrong[0]:g}; give indices of states, from 0 to {n - 1}"
        )
    return states.astype(np.int64)


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(getattr(function, "py_func", function)).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin that does not tell
        return True
    return True


def _samples(t_eval: ArrayLike | None, t0: float, tf: float) -> Array | None:
    if t_eval is None:
        return None
    times = numbers(t_eval, "t_eval", "a vector of finite times", ndim=1)
    if times.size and not (times.min() >= t0 and times.max() <= tf):
        raise InvalidInput(
            f"t_eval runs from {times.min()} to {times.max()}: it must lie in t_span = ({t0}, "
            f"{tf})."
        )
    if np.any(np.diff(times) <= 0):
        raise InvalidInput("t_eval must increase strictly: sort it, and give each time once.")
    return times


def _tolerances(rtol: Any, atol: Any, n: int) -> tuple[float, Array]:
    relative = number(
        rtol, "rtol", "a number between 1e-14 (rounding) and 1", least=1e-14, below=1.0
    )
    right = f"one number, or {n}, none negative"
    absolute = numbers(atol, "atol", right)
    if absolute.shape not in ((), (n,)) or not (absolute >= 0).all():
        raise InvalidInput(f"atol is {shown(atol)}; give {right}")
    return relative, np.broadcast_to(absolute, (n,)).copy()


def _watchers(
    events: Any, jumps: Any, switches: Any, t0: float, tf: float, n: int, args: int
) -> tuple[list[Watcher], list[Function], list[tuple[float, int, int]]]:
    watchers = [_watcher(s.EVENT, i, g, args) for i, g in enumerate(listed("events", events))]
    for i, g in enumerate(listed("switches", switches)):
        watchers.append(_watcher(s.SWITCH, i, g, args))
    changes: list[Function] = []
    known: list[tuple[float, int, int]] = []
    for i, jump in enumerate(listed("jumps", jumps)):
        try:
            when, change = jump
        except (TypeError, ValueError):
            raise InvalidInput(
                f"jumps[{i}] is {shown(jump)}; give a pair (when, change)."
            ) from None
        if not callable(change):
            raise InvalidInput(
                f"jumps[{i}]: change is {shown(change)}; give a function of (t, y) for the new "
                f"state."
            )
        if callable(when):
            watchers.append(_watcher(s.JUMP, i, when, args))
        else:
            known += [(t, 0, i) for t in _times(when, f"jumps[{i}]", t0, tf)]
        changes.append(_watching(change, f"the change of jump {i}", n, args))
    return watchers, changes, known


def _times(when: Any, what: str, t0: float, tf: float) -> list[float]:
    times = np.atleast_1d(numbers(when, f"{what}: when", "a function, or finite times")).ravel()
    for t in times:
        if not t0 <= t <= tf:
            raise InvalidInput(f"{what} is at t = {t}: it must lie within t_span = ({t0}, {tf}).")
    return times.tolist()


def listed(what: str, given: Any) -> Iterable[Any]:
    if given is None:
        return ()
    if callable(given):
        return (given,)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(f"{what} is {shown(given)}; give them in a list")
    return given


def _watcher(kind: int, index: int, g: Any, args: int) -> Watcher:
    what = f"{('event', 'jump', 'switch')[kind]} {index}"
    if not callable(g):
        raise InvalidInput(f"{what} is {shown(g)}; it must be a function.")
    direction = number(getattr(g, "direction", 0.0), f"direction of {what}", "-1, 0 or +1")
    terminal = getattr(g, "terminal", None)
    if kind == s.SWITCH and (direction or terminal):
        raise InvalidInput(
            f"{what} has a direction, or is terminal; give these to an event of the same function"
        )
    if not isinstance(terminal, bool | np.bool_ | None):
        terminal = whole(terminal, f"terminal of {what}")
    function = _watching(g, what, 1, args, kind == s.SWITCH)
    return Watcher(kind, index, function, int(np.sign(direction)), int(terminal or 0))


def _watching(given: Any, what: str, count: int, args: int, delayed: bool = False) -> Function:
    """A function of (t, y), or of (t, y, Z) where its attribute ``delayed`` says so."""
    late = ["Z"] if getattr(given, "delayed", delayed) else []
    return _function(given, what, ("t", "y", *late, "args"), count, args)
