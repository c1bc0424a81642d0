"""One step of the embedded pair, on arrays of any size: stages, fixed-point passes, and the provisional record.

A step may be longer than the shortest delay: the past is then looked up in the step's own dense output, and the
step is repeated until it agrees with itself, the last pass being a confirmation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ..tableaus import TSIT5
from . import slots as s
from .reads import act_place
from .rhs import evaluate

__all__ = ["FIT", "dense", "error_norm", "keep_node", "step_array", "write_record"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_A = np.ascontiguousarray(TSIT5.A)
_C = np.ascontiguousarray(TSIT5.C)
_E = np.ascontiguousarray(TSIT5.E)
_P = np.ascontiguousarray(TSIT5.P)
#: rows: the coefficients of u, u^2, u^3, u^4 of the quartic through values at u = 0, 1/4, 1/2, 3/4, 1
FIT = np.linalg.inv(np.vander(np.linspace(0.0, 1.0, 5), 5, increasing=True))

CONVERGED = 0.05  # of the tolerance: what the passes may still change
FIRST_RATE = 0.2  # contraction taken for granted before it is measured
MORE = 4  # passes that a step is worth once its contraction is known


@njit(**_CFG)
def error_norm(F: Any, I: Any, oa: int, ob: int) -> float:
    """Largest |a| over the tolerance of its state; `ob` holds the state itself."""
    worst = 0.0
    rtol = F[s.RTOL]
    for i in range(I[s.NS]):
        size = max(abs(F[I[s.OY] + i]), abs(F[ob + i]))
        ratio = abs(F[oa + i]) / (F[I[s.OATOL] + i] + rtol * size)
        if not ratio <= worst:  # a NaN comes through as NaN
            worst = ratio
            if worst != worst:
                return np.inf
    return worst


@njit(**_CFG)
def judge(before: float, delta: float) -> int:
    """Whether the passes agree (1), go on (0), or are not worth going on with (-1), from their last two changes."""
    rate = min(0.9, delta / before) if before < np.inf else FIRST_RATE
    if delta * rate <= CONVERGED * (1.0 - rate):
        return 1
    if not delta < np.inf or (before < np.inf and delta * rate**MORE > CONVERGED):
        return -1
    return 0


@njit(**_CFG)
def _combine(F: Any, I: Any, row: int, target: int, h: float) -> None:
    """State of stage `row`. Spelled out stage by stage, so that the loops over the states are vectorised."""
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
            F[target + i] = F[y + i] + (a * F[k0 + i] + b * F[k1 + i] + c * F[k2 + i] + d * F[k3 + i])
    elif row == 5:
        for i in range(n):
            F[target + i] = F[y + i] + (a * F[k0 + i] + b * F[k1 + i] + c * F[k2 + i] + d * F[k3 + i] + e * F[k4 + i])
    else:
        for i in range(n):
            F[target + i] = F[y + i] + (
                a * F[k0 + i] + b * F[k1 + i] + c * F[k2 + i] + d * F[k3 + i] + e * F[k4 + i] + f * F[k5 + i]
            )


@njit(**_CFG)
def dense(F: Any, I: Any, u: float, target: int, h: float) -> None:
    n, oy, ok = I[s.NS], I[s.OY], I[s.OK]
    w = np.empty(7)
    for k in range(7):
        w[k] = h * u * (_P[k, 0] + u * (_P[k, 1] + u * (_P[k, 2] + u * _P[k, 3])))
    for i in range(n):
        acc = 0.0
        for k in range(7):
            acc += w[k] * F[ok + k * n + i]
        F[target + i] = F[oy + i] + acc


@njit(**_CFG)
def keep_node(F: Any, I: Any, node: int) -> None:
    """Remember rates, arrivals, marks and prices at one of the five nodes."""
    nf, nl = I[s.NF], I[s.NL]
    for i in range(nf):
        F[I[s.ORN] + node * nf + i] = F[I[s.ORATE] + i]
    for l in range(nl):
        F[I[s.OAN] + node * nl + l] = F[I[s.OARR] + l]
        F[I[s.OMN] + node * nl + l] = F[I[s.OMARK] + l]
        F[I[s.OPN] + node * nl + l] = F[I[s.OPRICE] + l]
    size = s.XSIZE * I[s.NACT]
    for k in range(size):
        F[I[s.OACTN] + node * size + k] = F[I[s.OACT] + k]


@njit(**_CFG)
def _fit(F: Any, source: int, stride: int, target: int) -> None:
    for j in range(5):
        acc = 0.0
        for k in range(5):
            acc += FIT[j, k] * F[source + k * stride]
        F[target + j] = acc


@njit(**_CFG)
def _fit_state(F: Any, I: Any, state: int, target: int, h: float) -> None:
    """Add the quartic of a state's dense output onto the one at `target`."""
    n, ok = I[s.NS], I[s.OK]
    F[target] += F[I[s.OY] + state]
    for j in range(4):
        acc = 0.0
        for k in range(7):
            acc += _P[k, j] * F[ok + k * n + state]
        F[target + 1 + j] += h * acc


@njit(**_CFG)
def write_record(F: Any, I: Any, h: float, linear: int) -> None:
    """The step's record at the ring's next place; `linear` uses the first stage only (before any pass)."""
    nl, nf = I[s.NL], I[s.NF]
    r = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE]
    F[r + s.RT0] = F[s.T]
    F[r + s.RH] = h
    F[r + s.RINVH] = 1.0 / h
    for l in range(nl):
        b = r + s.RLINKS + l * s.LSIZE
        for j in range(5):
            F[b + j] = 0.0
            F[b + s.LY + j] = 0.0
            F[b + s.LMARK + j] = 0.0
            F[b + s.LPRICE + j] = 0.0
        state = I[s.OB] + l
        if linear:
            F[b] = F[I[s.OY] + state]
            F[b + 1] = h * F[I[s.OK] + state]
            F[b + s.LY] = F[I[s.OAN] + l]
            F[b + s.LMARK] = F[I[s.OMN] + l]
            F[b + s.LPRICE] = F[I[s.OPN] + l]
        else:
            _fit_state(F, I, state, b, h)
            _link_quartics(F, I, l, b, h)
        F[b + s.LCH] = F[I[s.OCAP] + l] * h
        F[b + s.LS0] = F[I[s.OS0] + l]
        F[b + s.LC] = F[I[s.OCAP] + l]
        F[b + s.LMODE] = I[I[s.JMODE] + l]
    size = s.XSIZE * I[s.NACT]
    for k in range(size):
        o = r + act_place(I, 0) + 5 * k
        if linear:
            F[o], F[o + 1], F[o + 2], F[o + 3], F[o + 4] = F[I[s.OACTN] + k], 0.0, 0.0, 0.0, 0.0
        else:
            _fit(F, I[s.OACTN] + k, size, o)
    x = r + s.RLINKS + nl * s.LSIZE
    for j in range(5 * (I[s.NX] + I[s.NT])):
        F[x + j] = 0.0
    for i in range(nf):
        g = I[I[s.JXG] + i]
        if g >= 0:
            _add_rate(F, I, i, x + 5 * g, h, linear)
        g = I[I[s.JXT] + i]
        if g >= 0:
            _add_rate(F, I, i, x + 5 * (I[s.NX] + g), h, linear)


@njit(**_CFG)
def _link_quartics(F: Any, I: Any, l: int, b: int, h: float) -> None:
    nl = I[s.NL]
    if I[s.NODES]:
        _fit(F, I[s.OAN] + l, nl, b + s.LY)
        if I[s.MARKS]:
            _fit(F, I[s.OMN] + l, nl, b + s.LMARK)
        if I[s.PRICES]:
            _fit(F, I[s.OPN] + l, nl, b + s.LPRICE)
        return
    F[b + s.LY] = F[I[s.OAN] + l]
    for j in range(4):
        acc = 0.0
        for k in range(7):
            acc += _P[k, j] * F[I[s.OAK] + k * nl + l]
        F[b + s.LY + 1 + j] = h * acc


@njit(**_CFG)
def _add_rate(F: Any, I: Any, i: int, target: int, h: float, linear: int) -> None:
    nf = I[s.NF]
    if linear:
        F[target] += F[I[s.ORN] + i]
    elif I[s.NODES]:
        for j in range(5):
            for k in range(5):
                F[target + j] += FIT[j, k] * F[I[s.ORN] + k * nf + i]
    elif I[I[s.JON] + i] != s.ON or I[I[s.JRATE] + i] < 0:
        F[target] += F[I[s.ORN] + i]
    else:
        _fit_state(F, I, I[I[s.JRATE] + i], target, h)


@njit(**_CFG)
def step_array(F: Any, I: Any) -> int:
    """Take the step from F[T] of size F[H]; the first stage is in place. Return 0, or 1 if the passes diverge."""
    n, nn = I[s.NS], I[s.NN]
    t, h = F[s.T], F[s.H]
    ok, oy1, ozp = I[s.OK], I[s.OY1], I[s.OZP]
    nrec = I[s.NREC]
    guess = nrec - 1 if not I[s.FRESH] and h <= 2.0 * F[s.HPREV] else nrec
    if guess == nrec:
        write_record(F, I, h, 1)
    delta = np.inf
    for sweep in range(I[s.PASSES]):
        last = guess if sweep == 0 else nrec
        for j in range(nn):
            I[I[s.JNCUR] + j] = I[I[s.JNCUR0] + j]
        inside = 0
        for k in range(1, 6):
            _combine(F, I, k, I[s.OZ], h)
            inside |= evaluate(F, I, t + _C[k] * h, I[s.OZ], ok + k * n, k, 0, last, 0)
        _combine(F, I, 6, oy1, h)
        inside |= evaluate(F, I, t + h, oy1, ok + 6 * n, 6, 0, last, 1)
        keep_node(F, I, 4)
        if I[s.NODES]:
            _nodes(F, I, t, h, last)
        write_record(F, I, h, 0)
        I[s.SWEEPS] = sweep + 1
        if not inside:
            delta = 0.0
            break
        drift = _arrival_change(F, I) if I[s.NODES] else 0.0
        if sweep > I[s.ATONCE]:  # through links without delay, news takes a pass for each
            before = delta
            for i in range(n):
                F[ozp + i] -= F[oy1 + i]
            delta = max(error_norm(F, I, ozp, oy1), drift)
            verdict = judge(before, delta)
            if verdict > 0:
                break
            if verdict < 0:
                F[s.DELTA] = delta
                return 1
        for i in range(n):
            F[ozp + i] = F[oy1 + i]
        I[s.EXTRA] += 1
    else:
        F[s.DELTA] = delta
        return 1
    F[s.DELTA] = delta
    _error(F, I, h)
    return 0


@njit(**_CFG)
def _arrival_change(F: Any, I: Any) -> float:
    """What the pass changed in the arrivals, relative to the tolerance: queues that are empty do not show it."""
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
    F[s.ERR] = error_norm(F, I, oz, I[s.OY1])
