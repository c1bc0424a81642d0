"""One step of the embedded pair, on arrays of any size: stages, and passes over them.

A step may be longer than the shortest delay: the past is then looked up in the step's own dense
output, first in a guess, and the step is repeated until it agrees with itself: see `fixed_point`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.layout import at, clear, copy

from ..compiling import njit
from ..fluid import state as s
from ..tableaus import TSIT5
from .fixed_point import begin_passes, judge, keep_looked, measure
from .reads import norm, rise
from .records import keep_node, write_record
from .rhs import evaluate

_INLINE: dict[str, Any] = {"fastmath": {"arcp", "contract"}, "forceinline": True}
_A = np.ascontiguousarray(TSIT5.A)
_C = np.ascontiguousarray(TSIT5.C)
_E = tuple(map(float, TSIT5.E))
_P = np.ascontiguousarray(TSIT5.P)
# error of the dense output inside a step, where the past is looked up, over that of its end
BETWEEN = 4.0


@njit(**_INLINE)
def _error_norm(run: s.State, n: int, values: s.Floats) -> float:
    """Return the largest |value| over the tolerance of its state. Infinite with a NaN."""
    worst, y, end, atol = 0.0, run.y, run.y_end, run.atol
    for i in range(n):
        worst = norm(worst, values[i], atol[i], run.rtol, y[i], end[i])
    return worst


@njit(forceinline=True)
def _add(target: s.Floats, weight: float, slopes: s.Floats, n: int) -> None:
    for i in range(n):
        target[i] += weight * slopes[i]


@njit(forceinline=True)
def _from_start(run: s.State, target: s.Floats, h: float) -> None:
    """Turn a mean slope into the states that it leads to in `h`."""
    y = run.y
    for i in range(run.n_states):
        target[i] = y[i] + h * target[i]


@njit()
def _stage(run: s.State, row: int, target: s.Floats) -> None:
    """State of stage `row`; the slopes of later ones may be anything."""
    n = run.n_states
    clear(target, n)
    for j in range(row):
        _add(target, _A[row, j], at(run.slopes, j * n), n)
    _from_start(run, target, run.h)


@njit()
def dense(run: s.State, u: float, target: s.Floats) -> None:
    """States at `u` of the step, on its dense output."""
    n = run.n_states
    clear(target, n)
    for j in range(7):
        weight = rise(_P[j, 0], _P[j, 1], _P[j, 2], _P[j, 3], u)
        _add(target, weight, at(run.slopes, j * n), n)
    _from_start(run, target, run.h)


@njit(cache=False, forceinline=True)
def passes(run: s.State, one_pass: Any, n: int, nq: int, nql: int, nl: int) -> int:
    """Take the step from now; the first stage is in place. Return 0, or 1 if the passes diverge.

    It is compiled with each fused step, and once for the array step. `one_pass` computes all
    stages, and the record they make, and returns whether one of them looked into the step itself;
    `n`, `nq`, `nql` and `nl` are `n_states`, `n_quartics`, `n_compared` and `n_links`.
    """
    begin_passes(run, nq, nl)
    for sweep in range(run.most_passes):
        inside = one_pass(run)
        run.passes = sweep + 1
        if not inside:
            break
        measure(run, nql)
        verdict = judge(run, sweep, _change(run, n))
        if verdict < 0:
            return 1
        if verdict > 0:
            break
        keep_looked(run, nql)
        copy(run.end_before, run.y_end, n)
        run.extra_passes += 1
    else:
        return 1
    _error(run, n)
    return 0


@njit()
def step_array(run: s.State) -> int:
    """Do so with a pass on arrays of any size."""
    return passes(run, _pass, run.n_states, run.n_quartics, run.n_compared, run.n_links)


@njit()
def _pass(run: s.State) -> int:
    """All stages, and the record they make; return 1 if one of them looked into the step itself.

    Where none did, and the error is too large, there is no record: the step is taken again.
    """
    n, nn, nrec = run.n_states, run.n_nodes, run.n_records
    t, h = run.t, run.h
    ok, oy1 = run.slopes, run.y_end
    copy(run.cursor, run.cursor_start, nn)
    inside = 0
    for k in range(1, 6):
        _stage(run, k, run.stage)
        inside |= evaluate(run, t + _C[k] * h, run.stage, at(ok, k * n), k, 0, nrec, 0)
    _stage(run, 6, oy1)
    inside |= evaluate(run, t + h, oy1, at(ok, 6 * n), 6, 0, nrec, 1)
    if not inside:
        _error(run, n)
        if not BETWEEN * run.error <= 1.0:
            return 0
    keep_node(run, 4)
    reach = t
    for j in range(nn):
        reach = max(reach, run.entry_time[j])
    run.reach = min(1.0, (reach - t) / h)
    if run.refit:
        _nodes(run, t, h, nrec)
    write_record(run, h)
    return inside


@njit(**_INLINE)
def _change(run: s.State, n: int) -> float:
    """What the pass changed since the one before, over the tolerance; of the first one, no matter
    what.
    """
    before, end = run.end_before, run.y_end
    for i in range(n):
        before[i] -= end[i]
    delta = _error_norm(run, n, before)
    return max(delta, _arrival_change(run)) if run.refit else delta


@njit()
def _arrival_change(run: s.State) -> float:
    """What the pass changed in the arrivals, relative to the tolerance: queues that are empty do
    not show it.
    """
    nl, worst = run.n_links, 0.0
    for half in range(2):
        for l in range(nl):
            o = at(run.arrival_before, half * nl + l)
            new = run.node_arrival[(2 + 2 * half) * nl + l]
            worst = max(worst, abs(new - o[0]) / (run.rtol * run.capacity[l]))
            o[0] = new
    return worst


@njit()
def _nodes(run: s.State, t: float, h: float, last: int) -> None:
    """Rates and arrivals at the three inner nodes, on the dense output of this pass."""
    copy(run.cursor, run.cursor_start, run.n_nodes)
    for node in range(1, 4):
        u = 0.25 * node
        dense(run, u, run.stage)
        evaluate(run, t + u * h, run.stage, run.scratch, -1, 0, last, 0)
        keep_node(run, node)


@njit(**_INLINE)
def _error(run: s.State, n: int) -> None:
    error = run.stage
    clear(error, n)
    for j in range(7):
        _add(error, run.h * _E[j], at(run.slopes, j * n), n)
    run.error = _error_norm(run, n, error)
