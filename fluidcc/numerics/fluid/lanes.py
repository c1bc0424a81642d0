"""Four samples at once: straight lines of arithmetic on neighbouring numbers, which the compiler turns into vectors.

Sample rows are `slots.PAD` longer than there are samples, so that the last four may run over their end; the samples
after those of a step are written again by the step to which they belong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ..tableaus import TSIT5
from . import slots as s

__all__ = ["LANES", "Four", "place_lanes", "put", "quartic_lanes", "state_lanes", "time_lanes", "weigh"]

LANES = 4
_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_P = np.ascontiguousarray(TSIT5.P)

Four = tuple[float, float, float, float]


@njit(**_CFG)
def time_lanes(F: Any, I: Any, j: int, end: int, shift: float) -> Four:
    """Times of the samples from number `j`; those from `end` on repeat the last one."""
    ts, last = I[s.OTS], end - 1
    a, b, c = F[ts + j], F[ts + min(j + 1, last)], F[ts + min(j + 2, last)]
    return a + shift, b + shift, c + shift, F[ts + min(j + 3, last)] + shift


@njit(**_CFG)
def place_lanes(F: Any, times: Four) -> Four:
    """Where times are in the step just taken."""
    t, inverse = F[s.T], 1.0 / F[s.H]
    a, b, c, d = times
    a, b, c, d = (a - t) * inverse, (b - t) * inverse, (c - t) * inverse, (d - t) * inverse
    return min(1.0, max(0.0, a)), min(1.0, max(0.0, b)), min(1.0, max(0.0, c)), min(1.0, max(0.0, d))


@njit(**_CFG)
def weigh(F: Any, I: Any, at: Four) -> None:
    """The weights of the seven stages in the dense output at four places, into OBATCH."""
    a, b, c, d = at
    h, o = F[s.H], I[s.OBATCH]
    for k in range(7):
        p, q, r, v = _P[k, 0], _P[k, 1], _P[k, 2], _P[k, 3]
        wa, wb = h * a * (p + a * (q + a * (r + a * v))), h * b * (p + b * (q + b * (r + b * v)))
        wc, wd = h * c * (p + c * (q + c * (r + c * v))), h * d * (p + d * (q + d * (r + d * v)))
        F[o + 4 * k], F[o + 4 * k + 1], F[o + 4 * k + 2], F[o + 4 * k + 3] = wa, wb, wc, wd


@njit(**_CFG)
def state_lanes(F: Any, I: Any, n: int) -> Four:
    """State `n` by the weights of `weigh`. Spelled out, or it would not be vectorised."""
    ns, k, o, y = I[s.NS], I[s.OK] + n, I[s.OBATCH], F[I[s.OY] + n]
    p, q, r, t = F[k], F[k + ns], F[k + 2 * ns], F[k + 3 * ns]
    u, v, w = F[k + 4 * ns], F[k + 5 * ns], F[k + 6 * ns]
    a = (y + F[o] * p + F[o + 4] * q + F[o + 8] * r) + (F[o + 12] * t + F[o + 16] * u + F[o + 20] * v + F[o + 24] * w)
    o += 1
    b = (y + F[o] * p + F[o + 4] * q + F[o + 8] * r) + (F[o + 12] * t + F[o + 16] * u + F[o + 20] * v + F[o + 24] * w)
    o += 1
    c = (y + F[o] * p + F[o + 4] * q + F[o + 8] * r) + (F[o + 12] * t + F[o + 16] * u + F[o + 20] * v + F[o + 24] * w)
    o += 1
    d = (y + F[o] * p + F[o + 4] * q + F[o + 8] * r) + (F[o + 12] * t + F[o + 16] * u + F[o + 20] * v + F[o + 24] * w)
    return a, b, c, d


@njit(**_CFG)
def put(F: Any, target: int, values: Four) -> None:
    """Four values into F[target : target + 4]."""
    F[target], F[target + 1], F[target + 2], F[target + 3] = values


@njit(**_CFG)
def quartic_lanes(F: Any, o: int, at: Four) -> Four:
    """The quartic whose coefficients stand at `o`, at four places."""
    a, b, c, d = at
    p, q, r, v, w = F[o], F[o + 1], F[o + 2], F[o + 3], F[o + 4]
    a = p + a * (q + a * (r + a * (v + a * w)))
    b = p + b * (q + b * (r + b * (v + b * w)))
    c = p + c * (q + c * (r + c * (v + c * w)))
    return a, b, c, p + d * (q + d * (r + d * (v + d * w)))
