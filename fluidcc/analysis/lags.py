"""Gains of users that are one integral or lag, for the conditions of pi/2: Johari and Tan, Vinnicombe, Paganini."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fluidcc.analysis.local import LocalLoop

__all__ = ["DISCRETE", "JOHARI_TAN", "PAGANINI", "VINNICOMBE", "lag_gains", "own_and_gain"]

JOHARI_TAN, DISCRETE, VINNICOMBE, PAGANINI = "Johari-Tan", "Johari-Tan, discrete", "Vinnicombe", "Paganini"


def lag_gains(loop: LocalLoop) -> list[tuple[str, str, float, str]]:
    """What each condition holds against pi/2.

    Users are one integral or lag on links that answer at once, or static on links that integrate. Delays may differ.

    - "Johari-Tan": proved by its authors for one delay and conjectured for several, proved for these by Vinnicombe.
    - "Johari-Tan, discrete" is for rates that change once a step, the shortest round-trip time: with D steps of delay
      the gain times step is to stay below 2 sin(pi/(4 D + 2)). Proved by its authors for one delay, conjectured for
      several and proved for these by Tian. In short: with half the angle h at the bound every user's curve obeys
      Re z - (2h/pi) cot(h) Im z >= -1, so that no hull of them reaches beyond -1. Its value is scaled to pi/2.
    - "Vinnicombe" replaces the largest row sum of "Johari-Tan" by the spectral radius, which is at most that.
    - "Paganini": proved for any delays, as its static users scale their gain by their own round-trip time.

    Returns
    -------
    list of (str, str, float, str)
        Name, why it does not apply (or ""), the value, and what it is.
    """
    named = list(zip(loop.labels, loop.laws, strict=True))
    reasons = [
        "its links integrate" if loop.integrates else "",
        next((f"flow {l!r} is not one integral or lag" for l, law in named if not _is_lag(law)), ""),
    ]
    integral = next((f"flow {l!r} has a pole of its own, and no integral" for l, law in named if np.any(law[0])), "")
    static = [
        "" if loop.integrates else "its links answer at once, without an integral",
        next((f"flow {l!r} has dynamics of its own, which the condition has not"
              for l, law in named if len(law[0]) or np.any(law[3][1:])), ""),
    ]  # fmt: skip
    own, gain = own_and_gain(loop, any(static))
    total = loop.gamma * (loop.route @ (loop.count * loop.x))
    rate = own + gain * (loop.route.T @ total)
    most = float(np.max(loop.trip * rate))
    M = (loop.route.T * loop.gamma) @ loop.route  # per user, from user: how much of its rate each link shows
    nonnegative = (loop.trip * gain)[:, None] * M * (loop.count * loop.x) + np.diag(loop.trip * own)
    radius = float(np.max(np.abs(np.linalg.eigvals(nonnegative)))) if not any(reasons) else math.nan
    step = float(loop.trip.min())
    held = np.ceil(loop.trip / step * (1 - 1e-12))
    stepped = float(np.max(rate * step / (2 * np.sin(np.pi / (4 * held + 2))))) * math.pi / 2
    rows = (
        (JOHARI_TAN, reasons, most, "largest RTT times gain"),
        (
            DISCRETE,
            [*reasons, integral],
            stepped,
            f"in steps of {step:.4g} s, step times gain over its bound is",
        ),
        (VINNICOMBE, reasons, radius, "spectral radius of RTT times gain"),
        (PAGANINI, static, most, "largest RTT times gain"),
    )
    return [(name, " and ".join(v for v in why if v), value, text) for name, why, value, text in rows]


def _is_lag(law: Any) -> bool:
    A, B, C, D = law
    if len(A) != 1 or np.any(D) or B[1][0] != 0:
        return False
    return bool(A[0, 0] <= 0 and -C[0] * B[0][0] >= 0 and -B[2][0] * C[0] >= 0)


def own_and_gain(loop: LocalLoop, lag: bool) -> tuple[Any, Any]:
    """Of each user, from its own past rate and from its signal over its rate [1/s]."""
    own, gain = np.zeros((2, len(loop.x)))
    for k, (A, B, C, D) in enumerate(loop.laws):
        if lag and len(A):
            own[k], gain[k] = -B[2][0] * C[0], -C[0] * B[0][0] / loop.x[k]
        elif not lag:
            gain[k] = -D[0] / loop.x[k]
    return own, gain
