"""Many runs of one structure in one call, without the GIL: each from its own numbers, to statistics
of its samples.

The driver comes as an argument, a compiled function: so that this module does not compile it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, float64, int64, types

from ..compiling import njit
from ..fluid import state as s
from .calls import state

MEAN, STD, MIN, MAX, FINAL = range(5)
SAMPLES, INITIAL, RING, TIMES = (
    s.PLACES[name][1] for name in ("samples", "initial", "ring", "sample_time")
)


def _jit(*signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return (lambda f: f) if config.DISABLE_JIT else njit(*signature, entry=True)


@njit(entry=True)
def statistic(kind: int, F: Any, row: int, times: int, count: int) -> float:
    """A statistic of the piecewise-linear curve through `count` samples from F[row] on, at times
    from F[times] on.
    """
    if kind == FINAL:
        return F[row + count - 1]
    if kind == MIN or kind == MAX:  # noqa: SIM109 - two comparisons are what numba makes best
        best = F[row]
        for j in range(1, count):
            if best != best or F[row + j] != F[row + j]:
                return np.nan
            best = max(best, F[row + j]) if kind == MAX else min(best, F[row + j])
        return best
    span = F[times + count - 1] - F[times]
    total = 0.0
    for j in range(1, count):
        total += 0.5 * (F[times + j] - F[times + j - 1]) * (F[row + j] + F[row + j - 1])
    mean = total / span
    if kind == MEAN:
        return mean
    total = 0.0
    for j in range(1, count):  # the square of a straight line, integrated
        a, b = F[row + j - 1] - mean, F[row + j] - mean
        total += (F[times + j] - F[times + j - 1]) * (a * a + a * b + b * b) / 3.0
    return np.sqrt(total / span)


if not config.DISABLE_JIT:
    _A, _N = float64[::1], int64[::1]
    _ADVANCE = types.FunctionType(int64(_A, _N, int64, int64, float64))
    _SIGNATURE: tuple[Any, ...] = (
        int64(
            _A, _N, _A, _N, _N, float64[:, ::1], _N, _N, float64[:, ::1], _N,
            int64, int64, int64, int64, _ADVANCE,
        ),
    )  # fmt: skip
else:
    _SIGNATURE = ()


@_jit(*_SIGNATURE)
def run_many(
    F: Any,
    I: Any,
    head: Any,
    I0: Any,
    where: Any,
    values: Any,
    kinds: Any,
    rows: Any,
    out: Any,
    codes: Any,
    first: int,
    anew: int,
    hops: int,
    address: int,
    advance: Any,
) -> int:
    """Run points `first` to the last; return the number of the first one that is not through, or of
    points.

    `code` then says why: it needs a larger workspace, or `budget` steps of `I0` have been taken,
    of all points together. If that was in the middle of a run, the code is `state.PAUSED`, and with
    `anew` 0 the next call goes on with it.

    Parameters
    ----------
    F, I : arrays
        The workspace.
    head, I0 : arrays
        What stands in `F` before a run, up to the samples and from their end to the ring; and in
        `I`.
    where, values : arrays
        Places in `F`, and for each point the numbers that are put there.
    kinds, rows : arrays of int
        The statistics: kind, row of samples in `F`.
    out, codes : arrays
        Results (points, statistics), and why each run ended.
    """
    run, model = state(F, I), state(F, I0)
    a, b, ring = I0[SAMPLES], I0[INITIAL], I0[RING]
    times, count, left = I0[TIMES], model.n_samples, model.budget
    for p in range(first, len(codes)):
        if left <= 0:
            return p
        going_on = p == first and anew == 0
        if not going_on:
            for k in range(len(I0)):
                I[k] = I0[k]
            for k in range(a):
                F[k] = head[k]
            for k in range(b, ring):
                F[k] = head[a + k - b]
            for k in range(len(where)):
                F[where[k]] = values[p, k]
        before = run.steps
        run.budget = left
        code = advance(F, I, address, 0 if going_on else hops, 0.0)
        if code == s.GROW_RING or code == s.GROW_HEAP or code == s.PAUSED:
            return p
        left -= run.steps - before
        codes[p] = code
        for m in range(len(kinds)):
            out[p, m] = statistic(kinds[m], F, rows[m], times, count) if code == s.DONE else np.nan
    return len(codes)
