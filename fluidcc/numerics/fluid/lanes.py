"""Four samples at once: straight lines of arithmetic on neighbouring numbers, which the compiler turns into vectors.

Sample rows are `slots.PAD` longer than there are samples, so that the last four may run over their end; the samples
after those of a step are written again by the step to which they belong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..tableaus import TSIT5
from . import slots as s

__all__ = ["LANES", "Four", "only", "places", "put", "quartic_lanes", "state_quartic"]

LANES = 4
_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_INLINE = {**_CFG, "forceinline": True}
_P = np.ascontiguousarray(TSIT5.P)

Four = tuple[float, float, float, float]


@njit(**_INLINE)
def places(F: Any, times: int, start: float, inverse: float) -> Four:
    """Where the four times from F[times] on are in a step from `start`, of length one over `inverse`.

    Beyond the sample times there stand other numbers; what is made of them is not kept.
    """
    a, b = (F[times] - start) * inverse, (F[times + 1] - start) * inverse
    c, d = (F[times + 2] - start) * inverse, (F[times + 3] - start) * inverse
    a, b, c, d = max(0.0, a), max(0.0, b), max(0.0, c), max(0.0, d)
    return min(1.0, a), min(1.0, b), min(1.0, c), min(1.0, d)


@njit(**_CFG)
def state_quartic(F: Any, I: Any, n: int) -> int:
    """Put the quartic of the dense output of state `n` in the step just taken where it is returned."""
    ns, k, h, target = I[s.NS], I[s.OK] + n, F[s.H], I[s.OBATCH]
    p, q, r, t = F[k], F[k + ns], F[k + 2 * ns], F[k + 3 * ns]
    u, v, w = F[k + 4 * ns], F[k + 5 * ns], F[k + 6 * ns]
    a = (_P[0, 0] * p + _P[1, 0] * q + _P[2, 0] * r) + (_P[3, 0] * t + _P[4, 0] * u + _P[5, 0] * v + _P[6, 0] * w)
    b = (_P[0, 1] * p + _P[1, 1] * q + _P[2, 1] * r) + (_P[3, 1] * t + _P[4, 1] * u + _P[5, 1] * v + _P[6, 1] * w)
    c = (_P[0, 2] * p + _P[1, 2] * q + _P[2, 2] * r) + (_P[3, 2] * t + _P[4, 2] * u + _P[5, 2] * v + _P[6, 2] * w)
    d = (_P[0, 3] * p + _P[1, 3] * q + _P[2, 3] * r) + (_P[3, 3] * t + _P[4, 3] * u + _P[5, 3] * v + _P[6, 3] * w)
    F[target] = F[I[s.OY] + n]
    F[target + 1], F[target + 2], F[target + 3], F[target + 4] = h * a, h * b, h * c, h * d
    return target


@njit(**_INLINE)
def put(F: Any, target: int, values: Four) -> None:
    """Four values into F[target : target + 4]."""
    F[target], F[target + 1], F[target + 2], F[target + 3] = values


@njit(**_INLINE)
def only(condition: bool, values: Four) -> Four:
    """The values if the condition holds, else zeros."""
    return values if condition else (0.0, 0.0, 0.0, 0.0)


@njit(**_INLINE)
def quartic_lanes(F: Any, o: int, stride: int, at: Four) -> Four:
    """The quartic whose coefficients stand from F[o] on, `stride` apart, at four places."""
    a, b, c, d = at
    p, q, r, v, w = F[o], F[o + stride], F[o + 2 * stride], F[o + 3 * stride], F[o + 4 * stride]
    a = p + a * (q + a * (r + a * (v + a * w)))
    b = p + b * (q + b * (r + b * (v + b * w)))
    c = p + c * (q + c * (r + c * (v + c * w)))
    return a, b, c, p + d * (q + d * (r + d * (v + d * w)))
