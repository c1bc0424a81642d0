"""A run of the compiled solver, seen from Python: its memory, its pauses, its end in words."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from fluidcc.base.errors import InvalidInput
from fluidcc.base.progress import Progress, unless
from fluidcc.numerics.dde import state as s
from fluidcc.numerics.dde.driver import CROWD, advance
from fluidcc.numerics.dde.functions import Array, Frame, FrameLayout, Function, is_compiled
from fluidcc.numerics.dde.result import DdeResult, DdeSolution, Statistics
from fluidcc.numerics.dde.state import Run, Stop
from fluidcc.numerics.dde.table import history_table

FEW = 4  # lags: so many carry every discontinuity on as far as the order of the method
_EPS = float(np.finfo(float).eps)
_PAUSE = 0.2  # seconds between two returns to Python
_HAS_AFFINITY = hasattr(os, "sched_getaffinity")
_FORM = "{l_bar}{bar}| t = {n:.4g} of {total:.4g} [{elapsed} elapsed, {remaining} to go]"
_STORE = 64  # pieces and points that there is room for at first
_ZEROS = 128  # that one step may have
PROBES = 1000  # of an interval where errors tell nothing
MANY = 20  # lags: so many read a table of a history in Python
_PLACES = np.array([0.0, 0.13, 0.29, 0.5, 0.71, 0.87, 1.0])  # irregular: no period fits them
_POWERS = np.vander(_PLACES, 5, increasing=True)
_INNER = [[math.comb(j, i) / math.comb(4, i) for i in range(5)] for j in range(1, 5)]  # Bernstein's
_FIT = np.vstack([_POWERS[[2, 4]], _INNER]) @ np.linalg.inv(_POWERS[[0, 1, 3, 5, 6]])
_FIT[5] = np.eye(5)[4]
_BOUNDLESS = 1 << 62


@dataclass
class Watcher:
    """A scalar function of (t, y) or (t, y, Z) whose zeros matter."""

    kind: int  # `state.EVENT`, `JUMP` or `SWITCH`
    number: int  # among those of its kind
    function: Function
    direction: int
    terminal: int


@dataclass
class Problem:
    """A delay equation to solve, every argument in its normal form."""

    numbers: dict[str, Any]  # by name in `Run`, those that no run of many has to itself
    start: Array  # the state at the beginning
    history: Function | None  # None: the state was the same before
    lags: Array | Function
    fun: Function
    args: tuple[object, ...]
    layout: FrameLayout
    t_eval: Array | None
    dense_output: bool
    watchers: list[Watcher]
    changes: list[Function]  # what each jump makes of the state
    events: int | None  # how many, None: not asked for
    known: list[tuple[float, int, int]]  # discontinuities, in order: time, order, jump (-1: none)
    functions: list[Function | None] = field(init=False)

    def __post_init__(self) -> None:
        lags = self.lags if isinstance(self.lags, Function) else None
        watched = [w.function for w in self.watchers]
        self.functions = [self.fun, lags, self.history, *watched, *self.changes]


def solve(problem: Problem, show: bool | None = None) -> DdeResult:
    """Integrate to the end, a terminal event, or a failure; with a bar if that takes long."""
    frame = Frame(problem.layout, problem.args)
    run, kept = _prepare(problem, frame)
    steps, begin, start = 64, True, run.t
    # a trial step may leave the domain of a function; what matters is reported
    with np.errstate(all="ignore"), ExitStack() as stack:
        bar: Progress | None = None
        while True:
            began = perf_counter()
            try:
                code = advance(run, begin, steps)
            except Stop:
                code = run.code
            if frame.error is not None:
                raise frame.error
            if code == s.USER:
                function: Any = problem.functions[run.where]
                function(frame, run.when)  # raises what the function raised
                raise InvalidInput(f"{function.what} failed at t = {run.when:.10g}; mend it")
            if code == s.BAD_WATCHER:
                raise InvalidInput(
                    f"{problem.watchers[run.where].function.what} returned NaN at t = "
                    f"{run.when:.10g}; give it a number wherever the state is, or end t_span or "
                    f"declare a terminal event before that"
                )
            if code == s.GROW:
                _grow(run)
            elif code != s.PAUSED:
                break
            if bar is None:
                named: Any = {"about": "solve_dde", "form": _FORM, "unit": "", "waited": _PAUSE}
                bar = stack.enter_context(Progress(run.t_end - start, show, **named))
            bar.reach(run.t - start)
            share = _PAUSE / max(perf_counter() - began, 1e-9)
            steps, begin = max(1, int(steps * min(max(share, 0.1), 4.0))), False
    del kept
    return _result(problem, run, frame, code)


def solve_many(problems: list[Problem], workers: int | None) -> list[DdeResult]:
    """Solve each, over so many threads: by default one a core, or one in all where functions are
    plain Python, which runs in one thread at a time anyway.
    """
    results = [solve(p, False) for p in problems[:1]]  # what has to be compiled is compiled by this
    if workers is None:
        plain = any(f is not None and not is_compiled(f.function) for f in problems[0].functions)
        workers = 1 if plain else len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count()
    stop = threading.Event()
    form = "{l_bar}{bar}| {n:.0f} of {total:.0f} [{elapsed} elapsed, {remaining} to go]"
    with (
        Progress(len(problems), about="solve_dde", form=form, unit="runs") as bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        try:
            for run in [pool.submit(unless, stop, solve, p, False) for p in problems[1:]]:
                results.append(run.result())
                bar.reach(len(results))
        except BaseException:  # Ctrl-C is heard here alone
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return results


# --- memory ---------------------------------------------------------------------------------------

#: what grows: the arrays of each store, with numbers an entry for each state, or 0 where an entry
#: is one number
_STORES = {
    "pieces": {"piece_t": 0, "piece_h": 0, "piece_y": 1, "piece_q": 4},
    "points": {"point_t": 0, "point_order": 0, "point_piece": 0},
    "mesh": {"mesh_t": 0, "mesh_y": 1},
    "notes": {"note_what": 0, "note_which": 0, "note_t": 0, "note_y": 1},
}


def _prepare(p: Problem, frame: Frame) -> tuple[Run, list[Any]]:
    """The state of a run before its first step, and what must be kept as long as it runs."""
    run = Run()
    arrays: dict[str, Any] = {}
    for name, value in p.numbers.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            setattr(run, name, value)
    n, m, w, called = run.n, run.m, len(p.watchers), isinstance(p.lags, Function)
    run.scale = max(abs(run.t), abs(run.t_end))
    run.tolerance = 64 * _EPS * run.scale
    run.aside = run.tolerance / 4
    run.few = m <= FEW
    run.quiet, run.probe = min(max(1e-6, 100 * _EPS / run.rtol), 1e-3), (run.t_end - run.t) / PROBES
    run.start_order = _start_order(p)
    run.follow = any(order >= run.max_order for _, order, _ in [*p.known, (0, run.start_order, -1)])
    run.keep = p.dense_output or called
    lag = np.full(m, math.inf) if isinstance(p.lags, Function) else p.lags
    run.longest = lag.max(initial=0.0)
    run.shortest = 0.0 if called else lag[lag > 0].min(initial=math.inf)
    arrays["lag"], run.settled = lag, run.t + run.longest
    run.out, run.stage = frame.views["out"], frame.views["y"]
    run.z, run.modes = frame.views["Z"], frame.views["modes"]
    run.n_watchers, run.n_known = w, len(p.known)
    run.n_watched = w + 2 * m * called
    run.look_back = any(one.function.delayed for one in p.watchers)
    run.most_found = 16 * run.n_watched + _ZEROS
    sizes = {
        "y past rate y_end allowed": n, "q guess flat before_q": 4 * n, "k": 7 * n,
        "at branch cursor next_point": m,
    }  # fmt: skip
    if run.n_watched:
        sizes |= {
            "size value value_before seen sign noisy": w, "side": run.n_watched,
            "panel": 7 * run.n_watched, "found_u found_what found_side found_kind": run.most_found,
        }  # fmt: skip
        arrays |= {"place": _PLACES, "fit": _FIT.ravel(), "switched": [-math.inf] * w}
        for name in ("kind", "number", "direction", "terminal"):
            arrays[name] = [getattr(one, name) for one in p.watchers]
    arrays |= {name: size for names, size in sizes.items() for name in names.split()}
    arrays["change_delayed"] = [change.delayed for change in p.changes]
    arrays["known_t"], arrays["known_order"], arrays["known_jump"] = np.reshape(p.known, (-1, 3)).T
    past = _past(run, p)
    run.n_pieces = past["piece_t"].size if past else 0
    run.margin = (CROWD + 10) * w + run.n_known + 2 + (run.most_found if w else 0)
    for store in _STORES:
        arrays |= _room(run, store, max(_STORE, 2 * run.margin + run.n_pieces))
    if p.t_eval is not None:
        run.sampling, run.sample_t, run.n_samples = True, p.t_eval, p.t_eval.size
        arrays |= _room(run, "mesh", run.n_samples)
        run.most_mesh = _BOUNDLESS
    run.allot(arrays)
    for name, values in past.items():
        run.arrays[name][: values.size] = values
    run.y[:] = p.start
    run.panel_width, run.before_h, run.last_error = math.inf, 1.0, 1e-4
    run.suspect, run.paced_at, run.earliest = -math.inf, run.t, math.inf
    kept = [f and f.by_address(frame) for f in p.functions]
    if past:
        kept[s.HISTORY] = None
    run.function = np.array([0 if f is None else _address(f) for f in kept], dtype=np.int64)
    return run, kept


def _start_order(p: Problem) -> int:
    """0 if the history jumps to the state at the start, else 1."""
    if p.history is None or p.layout.past[-1] == 0:
        return 1
    before = float(np.nextafter(p.numbers["t"], -math.inf))
    try:
        gap = np.abs(p.history.at(before) - p.start)
    except Exception:  # it may be defined no further back
        return 1
    return int(not (gap > p.numbers["atol"] + p.numbers["rtol"] * np.abs(p.start)).any())


def _past(run: Run, p: Problem) -> dict[str, Any]:
    """The history as pieces: if it is constant, or in Python and read by many constant lags."""
    if p.history is None:
        one, none = np.array([run.t]), np.zeros(4 * run.n)
        return {"piece_t": one, "piece_h": np.ones(1), "piece_y": p.start, "piece_q": none}
    if is_compiled(p.history.function) or run.m <= MANY or not 0 < run.longest < math.inf:
        return {}
    first = run.t - run.longest
    ends = [first, *(b for b, *_ in p.known if first < b < run.t), run.t]
    return history_table(p.history.at, ends, run.rtol, p.numbers["atol"]) or {}


def _room(run: Run, store: str, entries: int) -> dict[str, int]:
    """How many numbers a store of so many entries has."""
    setattr(run, f"most_{store}", entries)
    return {name: entries * (width * run.n or 1) for name, width in _STORES[store].items()}


def _grow(run: Run) -> None:
    """Double the stores in which one step may find no room; the entries that are there stay."""
    for store in _STORES:
        most = getattr(run, f"most_{store}")
        if getattr(run, f"n_{store}") + run.margin > most:
            old = {name: run.arrays[name] for name in _STORES[store]}
            run.allot(_room(run, store, 2 * most))
            for name, values in old.items():
                run.arrays[name][: values.size] = values


def _address(function: Any) -> int:
    if hasattr(function, "address"):  # compiled
        return int(function.address)
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


# --- the result -----------------------------------------------------------------------------------


def _result(p: Problem, run: Run, frame: Frame, code: int) -> DdeResult:
    """The result of the run so far."""
    n, t, y = run.n, run.t, run.y.copy()
    if run.n_mesh < run.n_samples and run.sample_t[run.n_mesh] <= t:
        run.mesh_y[n * run.n_mesh : n * run.n_mesh + n] = y
        run.n_mesh += 1
    times = run.sample_t if run.sampling else run.mesh_t
    sol = None
    if p.dense_output:
        points, first, k = run.n_points, run.point_piece[run.initial], run.n_pieces
        known = zip(run.point_t[:points].tolist(), run.point_order[:points].tolist(), strict=True)
        before = p.start if p.history is None else p.history.function
        pieces = (
            run.piece_t[first:k].copy(), run.piece_h[first:k].copy(),
            run.piece_y[n * first : n * k].reshape(-1, n).copy(),
            run.piece_q[4 * n * first : 4 * n * k].reshape(-1, n, 4).copy(),
        )  # fmt: skip
        sol = DdeSolution(before, pieces, p.numbers["t"], t, p.start, y, list(known))
    notes = run.n_notes
    what, which, when = run.note_what[:notes], run.note_which[:notes], run.note_t[:notes]
    hits = [(what == s.HIT) & (which == i) for i in range(p.events or 0)]
    states, jumped = run.note_y[: n * notes].reshape(-1, n), what == s.JUMPED
    landed: dict[float, int] = {}
    for k in np.flatnonzero(what == s.LANDED).tolist():
        landed[when[k]] = min(which[k], landed.get(when[k], which[k]))
    status = {s.DONE: 0, s.TERMINATED: 1}.get(code, -1)
    return DdeResult(
        t=times[: run.n_mesh].copy(),
        y=run.mesh_y[: n * run.n_mesh].reshape(-1, n).T.copy(),
        sol=sol,
        t_events=None if p.events is None else [when[hit] for hit in hits],
        y_events=None if p.events is None else [states[hit] for hit in hits],
        t_jumps=when[jumped], jump_index=which[jumped],
        breaking_points=np.array([*landed.items()], dtype=float).reshape(-1, 2),
        nfev=int(run.nfev), status=status, message=_message(p, run, frame, code),
        modes=run.modes.copy() if p.layout.modes else None,
        statistics=Statistics(*map(int, (
            run.steps, run.rejections, run.resteps, run.passes, (what == s.HIT).sum(),
            jumped.sum(), run.switchings, len(landed),
        ))),
    )  # fmt: skip


def _message(p: Problem, run: Run, frame: Frame, code: int) -> str:
    """What happened, where, and after a failure what to try."""
    if code == s.DONE:
        return "The solver successfully reached the end of the integration interval."
    if code == s.TERMINATED:
        return "A termination event occurred."
    here = f"t = {run.t:.10g}, y = {_short(run.y)}"
    if code == s.BAD_RATE:
        return (
            f"fun returned {frame.views['out'][run.where]} at {here}: "
            "check fun there, and the delayed states it uses."
        )
    if code == s.TOO_MANY_STEPS:
        return (
            f"{run.steps} steps were taken and t = {run.t:.10g} reached of {run.t_end:.10g}, the "
            f"last of {run.h:.3g}: raise max_steps, loosen rtol and atol, or look whether it is "
            "stiff or slides along a jump of fun."
        )
    if code == s.COLLAPSE:
        return _collapse(p, run, frame, here)
    if code == s.BAD_LAG:
        return _bad_lag(run.where, run.at[run.where], run.when)
    if code == s.BAD_JUMP:
        new = _short(frame.views["out"][: run.n])
        return (
            f"jump {run.where} at t = {run.t:.10g} turned the state {_short(run.y)} into {new}: "
            f"it must return {run.n} finite numbers."
        )
    if code == s.ENDLESS_JUMPS:
        return (
            f"jumps trigger each other without end at t = {run.t:.10g}: make one of them stop "
            f"the others."
        )
    what = f"ever faster jumps {run.where}"
    if code == s.CROWDED:
        what = f"{run.where} events, switchings or jumps"
    return (
        f"{what} accumulate at {here}: the solution slides along a switching surface or jumps "
        "without end; replace the switch by its sliding mode, or give it a hysteresis."
    )


def _collapse(p: Problem, run: Run, frame: Frame, here: str) -> str:
    """Why the step size collapsed."""
    end = run.t + run.h
    if isinstance(p.lags, Function):
        frame.views["y"][:] = run.y_end
        lags = p.lags(frame, end)
        for j, lag in enumerate(lags):
            if not math.isfinite(lag):
                return _bad_lag(j, lag, end)
        if -lags.min(initial=1.0) > 1e-3 * run.rtol * max(abs(end), run.when):
            return (
                f"lag {int(np.argmin(lags))} becomes negative after {here}: the state at t - lag "
                f"would lie in the future; correct lags, or end t_span or declare a terminal "
                f"event before that."
            )
    if run.problem == s.NOT_FINITE:
        return (
            f"fun or the state became infinite or NaN however small the step, after {here}: "
            f"the solution may blow up or leave the domain of fun there; end t_span before it or "
            "declare a terminal event."
        )
    if run.problem == s.TOO_FINE:
        return (
            f"an event has more zeros than steps can resolve after {here}: it is noise, or "
            f"oscillates without end; give a smooth function of the state"
        )
    return (
        f"the step size collapsed to {run.when:.3g} at {here}: the solution may have a "
        f"singularity, or fun jump as a function of the state (declare it in switches); or rtol "
        "and atol ask for more than rounding allows."
    )


def _bad_lag(j: int, lag: float, t: float) -> str:
    what = "NaN" if math.isnan(lag) else "infinite"
    return f"lag {j} is {what} at t = {t:.10g}: it must be finite wherever the state is."


def _short(y: Array) -> str:
    """A state as text, abbreviated."""
    return np.array2string(y, precision=6, threshold=6, edgeitems=2)
