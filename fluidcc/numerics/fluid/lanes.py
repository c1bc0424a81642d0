"""Eight samples at once, as vectors.

Sample rows are `slots.PAD` longer than there are samples, so that the last eight may run over their end; the samples
after those of a step are written again by the step to which they belong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from ..tableaus import TSIT5
from .vectors import choose, put_vector, vector_at

__all__ = ["LANES", "places", "put", "quartic_lanes", "state_quartic"]

LANES = 8
_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_INLINE = {**_CFG, "forceinline": True}
_P = np.ascontiguousarray(TSIT5.P)


@njit(**_INLINE)
def places(F: Any, times: int, start: float, inverse: float) -> Any:
    """Where the times from F[times] on are in a step from `start`, of length one over `inverse`.

    Beyond the sample times there stand other numbers; what is made of them is not kept.
    """
    at = (vector_at(F, times, LANES) - start) * inverse
    at = choose(at > 0.0, at, 0.0)
    return choose(at < 1.0, at, 1.0)


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
def put(F: Any, target: int, values: Any) -> None:
    """Values, or as many times one, into F[target : target + LANES]."""
    put_vector(F, target, LANES, values)


@njit(**_INLINE)
def quartic_lanes(F: Any, o: int, stride: int, at: Any) -> Any:
    """The quartic whose coefficients stand from F[o] on, `stride` apart, at some places."""
    p, q, r, v, w = F[o], F[o + stride], F[o + 2 * stride], F[o + 3 * stride], F[o + 4 * stride]
    return p + at * (q + at * (r + at * (v + at * w)))
