"""What `solve_dde` returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import explained_class, numbers
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.tables import InTable
from fluidcc.numerics.dde.functions import Array, returned


@explained_class
@dataclass(eq=False, repr=False)
class DdeSolution:
    """The continuous solution, callable at any time from the history up to `t_max`.

    Attributes
    ----------
    history : callable or ndarray, shape (n,)
        The given past: a function of t, or constants.
    pieces : tuple of ndarray
        Of the k steps: starts, shape (k,), sizes, shape (k,), states at the start, shape (k, n),
        and coefficients of the powers 1 to 4 of the share of the step, shape (k, n, 4).
    t_min, t_max : float
        Where the integration began and ended.
    first, last : ndarray, shape (n,)
        The state there; at the very end a jump may have changed it.
    breaking_points : list of (float, int)
        Times at which a derivative of the given order jumps (0: the state itself), the initial
        point included.
    """

    history: Callable[..., object] | Array
    pieces: tuple[Array, Array, Array, Array]
    t_min: float
    t_max: float
    first: Array
    last: Array
    breaking_points: list[tuple[float, int]]

    def _of_pieces(self, t: Array, side: str) -> Array:
        """The states at those times, shape (n, t.size), each from the piece that holds it."""
        starts, widths, values, slopes = self.pieces
        i = np.searchsorted(starts, t, side=side)  # type: ignore[call-overload]
        i = np.clip(i - 1, 0, starts.size - 1)
        u, c = ((t - starts[i]) / widths[i])[:, None], slopes[i]
        p = values[i] + u * (c[..., 0] + u * (c[..., 1] + u * (c[..., 2] + u * c[..., 3])))
        result: Array = p.T
        return result

    def _of_history(self, t: float) -> Array:
        if not callable(self.history):
            return self.history
        return returned(self.history(t), self.first.size, "history", t)

    def __call__(self, t: ArrayLike, side: str = "right") -> Array:
        """The state at time t: shape (n,) for a scalar, (n, t.size) for a vector.

        Parameters
        ----------
        t : float or array_like, shape (k,)
            Times, at most `t_max`; before `t_min` the history answers.
        side : {"right", "left"}
            Which value to give at a jump: after it (default) or before it.

        Raises
        ------
        InvalidInput
            If a time lies after `t_max`.
        """
        if side not in ("right", "left"):
            raise InvalidInput(f'side must be "right" or "left", not {side!r}.')
        times = np.atleast_1d(numbers(t, "t", "a time, or a vector of times"))
        if times.ndim > 1:
            raise InvalidInput(f"t has shape {times.shape}; give a time, or a vector of times")
        slack = 64 * np.finfo(float).eps * max(abs(self.t_max), abs(self.t_min))
        latest = times.max(initial=-np.inf)
        if not latest <= self.t_max + slack:
            raise InvalidInput(
                f"the solution ends at t = {self.t_max:.10g}: it has no value at t = {latest:.10g}."
            )
        past = times < self.t_min if side == "right" else times <= self.t_min
        if self.pieces[0].size == 0:
            past[:] = True
        out = np.empty((self.first.size, times.size))
        for i in np.flatnonzero(past):
            out[:, i] = self._of_history(min(times[i], self.t_min))
        if not past.all():
            out[:, ~past] = self._of_pieces(times[~past], side)
        if side == "right":
            out[:, times >= self.t_max] = self.last[:, None]
        return out[:, 0] if np.ndim(t) == 0 else out


@dataclass
class Statistics(InTable):
    """Counts of the work done.

    Attributes
    ----------
    steps, rejections, resteps : int
        Steps kept, refused by the error estimate, and repeated to end on an event or a breaking
        point.
    passes : int
        Repetitions of steps that looked into themselves, because a lag was shorter than the step.
    events, jumps, switchings : int
        Zeros found of `events`; changes of the state; changes of a mode.
    breaking_points : int
        Discontinuities of the solution or a low derivative that became mesh points, the initial one
        not counted.
    """

    steps: int = 0
    rejections: int = 0
    resteps: int = 0
    passes: int = 0
    events: int = 0
    jumps: int = 0
    switchings: int = 0
    breaking_points: int = 0

    _shown = (
        "steps", "rejections", "resteps", "passes", "events", "jumps", "switchings",
        "breaking_points",
    )  # fmt: skip


@explained_class
@dataclass
class DdeResult(InTable):
    """Result of `solve_dde`, with the fields of that of `scipy.integrate.solve_ivp` and a few more.

    Attributes
    ----------
    t : ndarray, shape (k,)
        Times: `t_eval` as far as it was reached, or the mesh. The mesh holds the time of a jump
        twice.
    y : ndarray, shape (n, k)
        States at those times.
    sol : DdeSolution or None
        The continuous solution, history included (with ``dense_output=True``).
    t_events, y_events : list of ndarray or None
        For each event the times, shape (k,), and states, shape (k, n), of its zeros.
    t_jumps, jump_index : ndarray, shape (k,)
        Times at which the state was changed, given ones as they were given, and which of `jumps`
        did it.
    breaking_points : ndarray, shape (k, 2)
        Time and order of every discontinuity that was landed on: order p says that the p-th
        derivative jumps.
    nfev, njev, nlu : int
        Evaluations of `fun`; the other two are zero (nothing is implicit), for the sake of SciPy's
        callers.
    status : int
        0: the end was reached; 1: a terminal event occurred; -1: the integration failed.
    message : str
        What happened, where, and after a failure what to try.
    success : bool
        Whether status is not negative.
    modes : ndarray or None
        The modes at the end, if there are switches.
    rows : dict of str to int
        Of equations in SymPy, the row of `y` of each variable by its name, ``"x"``, ``"x'"``. They
        stand in the order of the equations, then their lower derivatives; `of` looks them up.
    statistics : Statistics
        Counts of steps, rejections, events and breaking points.
    """

    t: Array
    y: Array
    sol: DdeSolution | None
    t_events: list[Array] | None
    y_events: list[Array] | None
    t_jumps: Array
    jump_index: NDArray[np.int64]
    breaking_points: Array
    nfev: int
    status: int
    message: str
    modes: Array | None = None
    rows: dict[str, int] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)
    njev: int = 0
    nlu: int = 0

    _shown = ("success", "message", "t", "y", "t_jumps", "nfev")

    @property
    def success(self) -> bool:
        """Whether the end, or a terminal event, was reached."""
        return self.status >= 0

    def of(self, variable: object) -> Array:
        """The row of `y` of a variable of equations in SymPy: ``result.of(x(t).diff(t))``, or
        ``result.of("x'")``.

        Raises
        ------
        UnknownName
            If there is no such variable.
        """
        if str(variable) not in self.rows:
            known = ", ".join(name for name in self.rows if "(" not in name)
            raise UnknownName(
                f"the result has no variable {variable}; "
                + (f"it has {known}" if known else "only equations in SymPy name theirs; use y")
            )
        row: Array = self.y[self.rows[str(variable)]]
        return row

    __iter__ = None  # it is no sequence

    def __getitem__(self, name: str) -> Any:
        """``result["t"]`` is ``result.t``, as with SciPy's results."""
        if not isinstance(name, str) or name.startswith("_") or not hasattr(self, name):
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        end = (
            f", t = {self.t[0]:.6g} ... {self.t[-1]:.6g} ({self.t.size} points)"
            if self.t.size
            else ""
        )
        return f"DdeResult(success={self.success}{end}, nfev={self.nfev}, message={self.message!r})"
