"""The public solver of delay differential equations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from fluidcc.base.arguments import explained
from fluidcc.numerics.dde.driver import Integration
from fluidcc.numerics.dde.input import check
from fluidcc.numerics.dde.result import DdeResult, DdeSolution

__all__ = ["DdeResult", "DdeSolution", "solve_dde"]


@explained
def solve_dde(
    fun: Callable[..., Any],
    t_span: Sequence[float],
    history: Any,
    lags: Any,
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
) -> DdeResult:
    r"""Solve an initial value problem of delay differential equations, in the manner of SciPy's
    ``solve_ivp``.

    .. math:: y'(t) = f(t, y(t), y(t - \tau_1), \dots, y(t - \tau_m)), \qquad y(t) = \phi(t) \text{
    for } t \le t_0,

    where the lags :math:`\tau_j \ge 0` are constants or functions of t and y(t), and may be shorter
    than a step or vanish. Kinks that the lags carry forward become mesh points, so that the order
    of the method is kept.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, Z, *args)``, or ``fun(t, y, Z, modes, *args)`` with `switches`, returns y',
        shape (n,). y has shape (n,) and Z shape (n, m): ``Z[:, j]`` is the state at ``t - lag j``.
        Plain or compiled by numba.
    t_span : (float, float)
        Start and end, in this order.
    history : array_like, shape (n,), or callable, or DdeSolution
        The state at and before the start: constants, or ``history(t)``; or the ``sol`` of an
        earlier run, to go on from any time of it, its breaking points included.
    lags : array_like, shape (m,), or callable
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
        zero at the start is not an occurrence.
    jumps : list of (when, change), optional
        Changes of the state: `when` is a time, several times, or a function like an event (with
        `direction` and `delayed`); ``change(t, y, *args)`` returns the new state (``change.delayed
        = True``: ``change(t, y, Z, *args)``). Delayed look-ups see both sides. Jumps at one time
        happen in the order given.
    switches : callable or list of callables, optional
        ``switch(t, y, Z, *args)``: `fun` gets ``modes``, shape (number of switches,), where
        ``modes[k]`` is 1.0 while switch k is positive and 0.0 otherwise. The mode is held during a
        step, which ends exactly where the switch changes sign; so a right-hand side with jumps or
        kinks is solved at full order. (Undeclared ones, of `lags` too, are found by error control,
        at the cost of many small steps and some tens of tolerances; their images under the lags are
        mesh points if there are up to 4 lags.)
    args : tuple
        Passed on to `fun`, `lags`, events, switches and changes.
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
        lags, 3 for up to 20, then 2. The rest is left to error control.

    Returns
    -------
    DdeResult
        With the fields ``t, y, sol, t_events, y_events, nfev, njev, nlu, status, message, success``
        of SciPy's, and ``t_jumps``, ``breaking_points``, ``modes`` and ``statistics``. A failed
        integration (collapse of the step size, NaN, too many steps, a lag that turns negative,
        accumulating jumps) has ``success=False``, everything up to the failure, and a message that
        says what, where, and what to try.

    Raises
    ------
    InvalidInput
        If an argument has a value that cannot be meant: each message names it. A negative lag at
        the start is one.
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
    piece, and the next step reads the next piece ([1]_, [2]_). Steps longer than a lag iterate on
    their own dense output until it no longer changes.

    References
    ----------
    .. [1] A. Bellen, M. Zennaro, "Numerical Methods for Delay Differential Equations", Oxford,
    2003. .. [2] S. Thompson, L. F. Shampine, "A friendly Fortran DDE solver", Applied Numerical
    Mathematics 56 (2006)
           503-516.

    Examples
    --------
    The delayed negative feedback y' = -y(t - 1) from y = 1, whose solution is polynomial between
    integers:

    >>> from fluidcc.numerics.dde.solve import solve_dde
    >>> tight = {"rtol": 1e-8, "atol": 1e-8}
    >>> result = solve_dde(lambda t, y, Z: -Z[:, 0], (0, 3), 1.0, [1.0], t_eval=[1, 2, 3], **tight)
    >>> result.y.round(6)
    array([[ 0.      , -0.5     , -0.166667]])

    A lag that depends on the state (Feldstein and Neves), y' = y(y(t) - sqrt(2) + 1) / (2 sqrt(t)),
    y = 1 up to t = 1; the kink at t = 1 returns at t = 2:

    >>> import numpy as np
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
    """
    return Integration(
        check(
            fun,
            t_span,
            history,
            lags,
            lag_states=lag_states,
            method=method,
            t_eval=t_eval,
            dense_output=dense_output,
            events=events,
            jumps=jumps,
            switches=switches,
            args=args,
            rtol=rtol,
            atol=atol,
            max_step=max_step,
            first_step=first_step,
            max_steps=max_steps,
            breaking_points=breaking_points,
            max_order=max_order,
        )
    ).run()
