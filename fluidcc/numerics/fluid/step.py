"""One step of the embedded pair, on arrays of any size: stages, and passes over them.

A step may be longer than the shortest delay: the past is then looked up in the step's own dense
output, first in a guess, and the step is repeated until it agrees with itself: see `fixed_point`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from ..tableaus import TSIT5
from .fixed_point import begin_passes, judge, measure, mix
from .reads import norm
from .records import keep_node, write_record
from .rhs import add_by_first_link, evaluate

__all__ = ["dense", "step_array"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_A = np.ascontiguousarray(TSIT5.A)
_C = np.ascontiguousarray(TSIT5.C)
_E = np.ascontiguousarray(TSIT5.E)
_P = np.ascontiguousarray(TSIT5.P)


@njit(**_CFG)
def _error_norm(F: Any, I: Any, oa: int, ob: int) -> float:
    """Return the largest |a| over the tolerance of its state; `ob` holds the state itself. Infinite
    with a NaN.
    """
    worst, y, atol = 0.0, I[s.OY], I[s.OATOL]
    for i in range(I[s.NS]):
        worst = norm(worst, F[oa + i], F[atol + i], F[s.RTOL], F[y + i], F[ob + i])
    return worst


@njit(**_CFG)
def _combine(F: Any, I: Any, row: int, target: int, h: float) -> None:
    """State of stage `row`. Spelled out stage by stage, so that the loops over the states are
    vectorised.
    """
    n, y, k0 = I[s.NS], I[s.OY], I[s.OK]
    k1, k2, k3, k4, k5 = k0 + n, k0 + 2 * n, k0 + 3 * n, k0 + 4 * n, k0 + 5 * n
    a, b, c = h * _A[row, 0], h * _A[row, 1], h * _A[row, 2]
    d, e, f = h * _A[row, 3], h * _A[row, 4], h * _A[row, 5]
    if row == 1:
        for i in range(n):
            F[target + i] = F[y + i] + a * F[k0 + i]
    elif row == 2:
        for i in range(n):
            F[target + i] = F[y + i] + (a * F[k0 + i] + b * F[k1 + i])
    elif row == 3:
        for i in range(n):
            F[target + i] = F[y + i] + (a * F[k0 + i] + b * F[k1 + i] + c * F[k2 + i])
    elif row == 4:
        for i in range(n):
            F[target + i] = F[y + i] + (
                a * F[k0 + i] + b * F[k1 + i] + c * F[k2 + i] + d * F[k3 + i]
            )
    elif row == 5:
        for i in range(n):
            F[target + i] = F[y + i] + (
                a * F[k0 + i] + b * F[k1 + i] + c * F[k2 + i] + d * F[k3 + i] + e * F[k4 + i]
            )
    else:
        for i in range(n):
            F[target + i] = F[y + i] + (
                a * F[k0 + i]
                + b * F[k1 + i]
                + c * F[k2 + i]
                + d * F[k3 + i]
                + e * F[k4 + i]
                + f * F[k5 + i]
            )


@njit(**_CFG, forceinline=True)
def _weight(stage: int, u: float, h: float) -> float:
    return h * u * (_P[stage, 0] + u * (_P[stage, 1] + u * (_P[stage, 2] + u * _P[stage, 3])))


@njit(**_CFG)
def dense(F: Any, I: Any, u: float, target: int, h: float) -> None:
    n, y, k0 = I[s.NS], I[s.OY], I[s.OK]
    k1, k2, k3, k4, k5, k6 = k0 + n, k0 + 2 * n, k0 + 3 * n, k0 + 4 * n, k0 + 5 * n, k0 + 6 * n
    a, b, c, d = _weight(0, u, h), _weight(1, u, h), _weight(2, u, h), _weight(3, u, h)
    e, f, g = _weight(4, u, h), _weight(5, u, h), _weight(6, u, h)
    for i in range(n):
        early = a * F[k0 + i] + b * F[k1 + i] + c * F[k2 + i] + d * F[k3 + i]
        F[target + i] = F[y + i] + (early + (e * F[k4 + i] + f * F[k5 + i] + g * F[k6 + i]))


@njit(**_CFG)
def step_array(F: Any, I: Any) -> int:
    """Take the step from F[T] of size F[H]; the first stage is in place. Return 0, or 1 if the
    passes diverge.
    """
    n = I[s.NS]
    nq, nql = I[s.NQ], I[s.NQL]
    begin_passes(F, I, nq, I[s.NL])
    for sweep in range(I[s.PASSES]):
        inside = _pass(F, I)
        I[s.SWEEPS] = sweep + 1
        if not inside:
            break
        measure(F, I, nql)
        verdict = judge(F, I, _change(F, I))
        if verdict < 0:
            return 1
        if verdict > 1:
            break
        mix(F, I, nq, nql, I[s.NMIX], verdict > 0)
        if verdict > 0:
            _mixed_end(F, I)
            break
        for i in range(n):
            F[I[s.OZP] + i] = F[I[s.OY1] + i]
        I[s.EXTRA] += 1
    else:
        return 1
    _error(F, I, F[s.H])
    return 0


@njit(**_CFG)
def _pass(F: Any, I: Any) -> int:
    """All stages, and the record they make; return 1 if one of them looked into the step itself."""
    n, nn, nrec = I[s.NS], I[s.NN], I[s.NREC]
    t, h = F[s.T], F[s.H]
    ok, oy1 = I[s.OK], I[s.OY1]
    for j in range(nn):
        I[I[s.JNCUR] + j] = I[I[s.JNCUR0] + j]
    inside = 0
    for k in range(1, 6):
        _combine(F, I, k, I[s.OZ], h)
        inside |= evaluate(F, I, t + _C[k] * h, I[s.OZ], ok + k * n, k, 0, nrec, 0)
    _combine(F, I, 6, oy1, h)
    inside |= evaluate(F, I, t + h, oy1, ok + 6 * n, 6, 0, nrec, 1)
    keep_node(F, I, 4)
    reach = t
    for j in range(nn):
        reach = max(reach, F[I[s.OTH] + j])
    F[s.REACH] = min(1.0, (reach - t) / h)
    if I[s.NODES]:
        _nodes(F, I, t, h, nrec)
    write_record(F, I, h)
    return inside


@njit(**_CFG)
def _mixed_end(F: Any, I: Any) -> None:
    """The end of a step whose stages have been mixed: states, rates and arrivals, which are sums of
    states.
    """
    nf, nl, n = I[s.NF], I[s.NL], I[s.NS]
    end, rates = I[s.OY1], I[s.ORN] + 4 * nf
    _combine(F, I, 6, end, F[s.H])
    for i in range(nf):
        state = I[I[s.JRATE] + i]
        if state >= 0 and I[I[s.JON] + i] != s.OFF:
            F[rates + i] = F[end + state]
    add_by_first_link(F, I, rates, -1, I[s.OAN] + 4 * nl)
    for stage in range(1, 7):
        add_by_first_link(F, I, I[s.OK] + stage * n, I[s.JRATE], I[s.OAK] + stage * nl)


@njit(**_CFG)
def _change(F: Any, I: Any) -> float:
    """What the pass changed since the one before, over the tolerance; of the first one, no matter
    what.
    """
    for i in range(I[s.NS]):
        F[I[s.OZP] + i] -= F[I[s.OY1] + i]
    delta = _error_norm(F, I, I[s.OZP], I[s.OY1])
    return max(delta, _arrival_change(F, I)) if I[s.NODES] else delta


@njit(**_CFG)
def _arrival_change(F: Any, I: Any) -> float:
    """What the pass changed in the arrivals, relative to the tolerance: queues that are empty do
    not show it.
    """
    nl, worst = I[s.NL], 0.0
    for half in range(2):
        for l in range(nl):
            o = I[s.OANP] + half * nl + l
            new = F[I[s.OAN] + (2 + 2 * half) * nl + l]
            worst = max(worst, abs(new - F[o]) / (F[s.RTOL] * F[I[s.OCAP] + l]))
            F[o] = new
    return worst


@njit(**_CFG)
def _nodes(F: Any, I: Any, t: float, h: float, last: int) -> None:
    """Rates and arrivals at the three inner nodes, on the dense output of this pass."""
    for j in range(I[s.NN]):
        I[I[s.JNCUR] + j] = I[I[s.JNCUR0] + j]
    for node in range(1, 4):
        u = 0.25 * node
        dense(F, I, u, I[s.OZ], h)
        evaluate(F, I, t + u * h, I[s.OZ], I[s.OSCRATCH], -1, 0, last, 0)
        keep_node(F, I, node)


@njit(**_CFG)
def _error(F: Any, I: Any, h: float) -> None:
    n, ok, oz = I[s.NS], I[s.OK], I[s.OZ]
    for i in range(n):
        acc = 0.0
        for k in range(7):
            acc += _E[k] * F[ok + k * n + i]
        F[oz + i] = h * acc
    F[s.ERR] = _error_norm(F, I, oz, I[s.OY1])
