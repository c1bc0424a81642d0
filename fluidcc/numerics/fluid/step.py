"""One step of the embedded pair, on arrays of any size: stages, and passes over them.

A step may be longer than the shortest delay: the past is then looked up in the step's own dense
output, first in a guess, and the step is repeated until it agrees with itself: see `fixed_point`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.layout import at, copy

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


@njit(**_INLINE)
def _error_norm(run: s.State, n: int, values: s.Floats) -> float:
    """Return the largest |value| over the tolerance of its state. Infinite with a NaN."""
    worst, y, end, atol = 0.0, run.y, run.y_end, run.atol
    for i in range(n):
        worst = norm(worst, values[i], atol[i], run.rtol, y[i], end[i])
    return worst


@njit()
def _combine(run: s.State, row: int, target: s.Floats, h: float) -> None:
    """State of stage `row`. Spelled out stage by stage, so that the loops over the states are
    vectorised.
    """
    n, y, k0 = run.n_states, run.y, run.slopes
    k1, k2, k3, k4, k5 = at(k0, n), at(k0, 2 * n), at(k0, 3 * n), at(k0, 4 * n), at(k0, 5 * n)
    a, b, c = h * _A[row, 0], h * _A[row, 1], h * _A[row, 2]
    d, e, f = h * _A[row, 3], h * _A[row, 4], h * _A[row, 5]
    if row == 1:
        for i in range(n):
            target[i] = y[i] + a * k0[i]
    elif row == 2:
        for i in range(n):
            target[i] = y[i] + (a * k0[i] + b * k1[i])
    elif row == 3:
        for i in range(n):
            target[i] = y[i] + (a * k0[i] + b * k1[i] + c * k2[i])
    elif row == 4:
        for i in range(n):
            target[i] = y[i] + (a * k0[i] + b * k1[i] + c * k2[i] + d * k3[i])
    elif row == 5:
        for i in range(n):
            target[i] = y[i] + (a * k0[i] + b * k1[i] + c * k2[i] + d * k3[i] + e * k4[i])
    else:
        for i in range(n):
            target[i] = y[i] + (
                a * k0[i] + b * k1[i] + c * k2[i] + d * k3[i] + e * k4[i] + f * k5[i]
            )


@njit(forceinline=True)
def _weight(stage: int, u: float, h: float) -> float:
    return h * rise(_P[stage, 0], _P[stage, 1], _P[stage, 2], _P[stage, 3], u)


@njit()
def dense(run: s.State, u: float, target: s.Floats, h: float) -> None:
    n, y, k0 = run.n_states, run.y, run.slopes
    k1, k2, k3 = at(k0, n), at(k0, 2 * n), at(k0, 3 * n)
    k4, k5, k6 = at(k0, 4 * n), at(k0, 5 * n), at(k0, 6 * n)
    a, b, c, d = _weight(0, u, h), _weight(1, u, h), _weight(2, u, h), _weight(3, u, h)
    e, f, g = _weight(4, u, h), _weight(5, u, h), _weight(6, u, h)
    for i in range(n):
        early = a * k0[i] + b * k1[i] + c * k2[i] + d * k3[i]
        target[i] = y[i] + (early + (e * k4[i] + f * k5[i] + g * k6[i]))


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
    """All stages, and the record they make; return 1 if one of them looked into the step itself."""
    n, nn, nrec = run.n_states, run.n_nodes, run.n_records
    t, h = run.t, run.h
    ok, oy1 = run.slopes, run.y_end
    copy(run.cursor, run.cursor_start, nn)
    inside = 0
    for k in range(1, 6):
        _combine(run, k, run.stage, h)
        inside |= evaluate(run, t + _C[k] * h, run.stage, at(ok, k * n), k, 0, nrec, 0)
    _combine(run, 6, oy1, h)
    inside |= evaluate(run, t + h, oy1, at(ok, 6 * n), 6, 0, nrec, 1)
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
        dense(run, u, run.stage, h)
        evaluate(run, t + u * h, run.stage, run.scratch, -1, 0, last, 0)
        keep_node(run, node)


@njit(**_INLINE)
def _error(run: s.State, n: int) -> None:
    k, error, h = run.slopes, run.stage, run.h
    for i in range(n):
        early = _E[0] * k[i] + _E[1] * k[n + i] + _E[2] * k[2 * n + i] + _E[3] * k[3 * n + i]
        late = _E[4] * k[4 * n + i] + _E[5] * k[5 * n + i] + _E[6] * k[6 * n + i]
        error[i] = h * (early + late)
    run.error = _error_norm(run, n, error)
