"""Records of the history: quartics of what each link did in a step, from the step's stages and
nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from ..tableaus import TSIT5
from .reads import act_place

__all__ = [
    "FIT",
    "NODE_WEIGHTS",
    "carry_on",
    "keep_node",
    "linear_record",
    "place",
    "state_quartic",
    "write_record",
]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_P = np.ascontiguousarray(TSIT5.P)
#: rows: the coefficients of u, u^2, u^3, u^4 of the quartic through values at u = 0, 1/4, 1/2, 3/4,
#: 1, by the last four less the first, so that what is constant stays so to the last bit
FIT = np.ascontiguousarray(
    np.linalg.inv(np.vander(np.linspace(0.0, 1.0, 5), 5, increasing=True))[1:, 1:]
)

#: what the stages contribute to the dense output at the inner nodes of a step: (3 nodes, 7 stages)
NODE_WEIGHTS = np.array([TSIT5.P @ [u, u**2, u**3, u**4] for u in (0.25, 0.5, 0.75)])


@njit(**_CFG)
def place(I: Any, number: int) -> int:
    """Where record `number` begins."""
    return I[s.OHIST] + (number & I[s.MASK]) * I[s.STRIDE]


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


@njit(**_CFG, forceinline=True)
def _head(F: Any, I: Any, r: int, h: float, nl: int) -> None:
    """All but the quartics, of `nl` links."""
    F[r + s.RT0] = F[s.T]
    F[r + s.RH] = h
    F[r + s.RINVH] = 1.0 / h
    for l in range(nl):
        b = r + s.RLINKS + l * s.LSIZE
        F[b + s.LCH] = F[I[s.OCAP] + l] * h
        F[b + s.LS0] = F[I[s.OS0] + l]
        F[b + s.LC] = F[I[s.OCAP] + l]
        F[b + s.LMODE] = I[I[s.JMODE] + l]


@njit(**_CFG)
def linear_record(F: Any, I: Any, h: float) -> None:
    """The record at the ring's next place, from the first stage only."""
    r = place(I, I[s.NREC])
    _head(F, I, r, h, I[s.NL])
    for q in range(I[s.NQ]):
        o = r + I[I[s.JQ] + q]
        for j in range(5):
            F[o + j] = 0.0
    for l in range(I[s.NL]):
        b = r + s.RLINKS + l * s.LSIZE
        state = I[s.OB] + l
        F[b] = F[I[s.OY] + state]
        F[b + 1] = h * F[I[s.OK] + state]
        F[b + s.LY] = F[I[s.OAN] + l]
        F[b + s.LMARK] = F[I[s.OMN] + l]
        F[b + s.LPRICE] = F[I[s.OPN] + l]
    for k in range(s.XSIZE * I[s.NACT]):
        F[r + act_place(I, 0) + 5 * k] = F[I[s.OACTN] + k]
    x = r + s.RLINKS + I[s.NL] * s.LSIZE
    for i in range(I[s.NF]):
        g, own = I[I[s.JXG] + i], I[I[s.JXT] + i]
        if g >= 0:
            F[x + 5 * g] += F[I[s.ORN] + i]
        if own >= 0:
            F[x + 5 * (I[s.NX] + own)] += F[I[s.ORN] + i]


@njit(**_CFG, forceinline=True)
def carry_on(F: Any, I: Any, before: int, r: int, nq: int, nl: int) -> None:
    """The record at `r`, for the step from F[T] of size F[H]: the quartics of that at `before`,
    beyond its end.
    """
    _head(F, I, r, F[s.H], nl)
    ratio = F[s.H] * F[before + s.RINVH]
    square = ratio * ratio
    for q in range(nq):
        o = I[I[s.JQ] + q]
        a, b = before + o, r + o
        k0, k1, k2, k3, k4 = F[a], F[a + 1], F[a + 2], F[a + 3], F[a + 4]
        F[b] = (k0 + k1) + (k2 + k3) + k4
        F[b + 1] = ratio * ((k1 + 2.0 * k2) + (3.0 * k3 + 4.0 * k4))
        F[b + 2] = square * (k2 + 3.0 * k3 + 6.0 * k4)
        F[b + 3] = square * ratio * (k3 + 4.0 * k4)
        F[b + 4] = square * square * k4


@njit(**_CFG)
def _fit(F: Any, source: int, stride: int, target: int) -> None:
    first = F[source]
    F[target] = first
    for j in range(4):
        acc = 0.0
        for k in range(4):
            acc += FIT[j, k] * (F[source + (k + 1) * stride] - first)
        F[target + 1 + j] = acc


@njit(**_CFG)
def state_quartic(F: Any, I: Any, n: int) -> tuple[float, float, float, float, float]:
    """Return the coefficients of the dense output of state `n` in the step."""
    ns, k, h = I[s.NS], I[s.OK] + n, F[s.H]
    p, q, r, t = F[k], F[k + ns], F[k + 2 * ns], F[k + 3 * ns]
    u, v, w = F[k + 4 * ns], F[k + 5 * ns], F[k + 6 * ns]
    a = (_P[0, 0] * p + _P[1, 0] * q + _P[2, 0] * r) + (
        _P[3, 0] * t + _P[4, 0] * u + _P[5, 0] * v + _P[6, 0] * w
    )
    b = (_P[0, 1] * p + _P[1, 1] * q + _P[2, 1] * r) + (
        _P[3, 1] * t + _P[4, 1] * u + _P[5, 1] * v + _P[6, 1] * w
    )
    c = (_P[0, 2] * p + _P[1, 2] * q + _P[2, 2] * r) + (
        _P[3, 2] * t + _P[4, 2] * u + _P[5, 2] * v + _P[6, 2] * w
    )
    d = (_P[0, 3] * p + _P[1, 3] * q + _P[2, 3] * r) + (
        _P[3, 3] * t + _P[4, 3] * u + _P[5, 3] * v + _P[6, 3] * w
    )
    return F[I[s.OY] + n], h * a, h * b, h * c, h * d


@njit(**_CFG)
def _add_state(F: Any, I: Any, state: int, target: int) -> None:
    """Add the quartic of a state onto the one at `target`."""
    for j, c in enumerate(state_quartic(F, I, state)):
        F[target + j] += c


@njit(**_CFG)
def write_record(F: Any, I: Any, h: float) -> None:
    """The quartics of the step's record at the ring's next place; the rest stands there from its
    guess.
    """
    nl, nf = I[s.NL], I[s.NF]
    r = place(I, I[s.NREC])
    for l in range(nl):
        b = r + s.RLINKS + l * s.LSIZE
        for j in range(5):
            F[b + j] = 0.0
        _add_state(F, I, I[s.OB] + l, b)
        _link_quartics(F, I, l, b, h)
    size = s.XSIZE * I[s.NACT]
    for k in range(size):
        _fit(F, I[s.OACTN] + k, size, r + act_place(I, 0) + 5 * k)
    x = r + s.RLINKS + nl * s.LSIZE
    for j in range(5 * (I[s.NX] + I[s.NT])):
        F[x + j] = 0.0
    for i in range(nf):
        g = I[I[s.JXG] + i]
        if g >= 0:
            _add_rate(F, I, i, x + 5 * g)
        g = I[I[s.JXT] + i]
        if g >= 0:
            _add_rate(F, I, i, x + 5 * (I[s.NX] + g))


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
def _add_rate(F: Any, I: Any, i: int, target: int) -> None:
    nf = I[s.NF]
    if I[s.NODES]:
        rates = I[s.ORN] + i
        F[target] += F[rates]
        for j in range(4):
            for k in range(4):
                F[target + 1 + j] += FIT[j, k] * (F[rates + (k + 1) * nf] - F[rates])
    elif I[I[s.JON] + i] != s.ON or I[I[s.JRATE] + i] < 0:
        F[target] += F[I[s.ORN] + i]
    else:
        _add_state(F, I, I[I[s.JRATE] + i], target)
