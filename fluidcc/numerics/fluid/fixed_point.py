"""Implicit steps (longer than a delay): fixed-point iteration, and when it stops.

A pass turns the record of the step that it looked into, X, into the record of what it found, G(X).
The first pass looks into the last step's record, carried on; each further one into what the pass
before found. If the guess is so good that it makes no difference, one pass is enough. If the passes
do not come together soon the step is tried again, shorter.

What is compared are records, which are independent of the number of flows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.layout import at, copy

from ..compiling import njit
from ..fluid import state as s
from .reads import record_of, rise
from .records import carry_on, linear_record

# where the caller's sizes are constants, there are no loops left
_SIZED: dict[str, Any] = {"fastmath": {"arcp", "contract"}, "forceinline": True}

CONVERGED = 0.01  # of the tolerance: what the passes may still change
# margin for how a change of the record changes the states, which is known from passes before
DOUBT = 1.5
AGEING = 1.2  # by which that grows with each step that relies upon it
FADING = 0.8  # by which that may fall from step to step
# share of what a pass changed in the states that another one may where records are compared in part
UNSEEN = 0.25


@njit(**_SIZED)
def begin_passes(run: s.State, nq: int, nl: int) -> None:
    """Put what the first pass looks into at the ring's next place: the last record carried on, or
    after a breaking point the first stage alone.

    `nq` is `n_quartics`, and `nl` is `n_links`.
    """
    if run.fresh or run.h > 2.0 * run.h_before:
        linear_record(run, run.h)
        run.sigma = np.inf
    else:
        before = record_of(run, run.n_records - 1)
        carry_on(run, before, record_of(run, run.n_records), nq, nl)
    keep_looked(run, run.n_compared)


@njit(**_SIZED)
def keep_looked(run: s.State, nql: int) -> None:
    """Keep what the next pass looks into, of the quartics that are compared."""
    r, x = record_of(run, run.n_records), run.looked
    for q in range(nql):
        copy(at(x, 4 * q), at(r, run.quartic_place[q] + 1), 4)


@njit(**_SIZED)
def measure(run: s.State, nql: int) -> None:
    """How far the record that the pass made is from the one it looked into, where passes look.

    `nql` is `n_compared`.
    """
    r, jq, weights = record_of(run, run.n_records), run.quartic_place, run.quartic_weight
    x, worst = run.looked, 0.0
    u4 = run.reach
    u1, u2, u3 = 0.25 * u4, 0.5 * u4, 0.75 * u4
    for q in range(nql):
        o, w = at(r, jq[q]), weights[q]
        a, b = w * (o[1] - x[0]), w * (o[2] - x[1])
        c, d = w * (o[3] - x[2]), w * (o[4] - x[3])
        first, second = rise(a, b, c, d, u1), rise(a, b, c, d, u2)
        third, last = rise(a, b, c, d, u3), rise(a, b, c, d, u4)
        largest = max(max(abs(first), abs(second)), max(abs(third), abs(last)))
        if not largest <= worst:  # a NaN comes through
            worst = largest
        x = at(x, 4)
    run.gap, run.change = run.change, worst


@njit(**_SIZED)
def judge(run: s.State, number: int, delta: float) -> int:
    """Return whether the passes agree (1), go on (0), or are not worth going on with (-1).

    `delta` is what pass `number` changed in the states since the one before, over the tolerance.
    Over the change of what the two looked into, that says what a further pass would change. It
    depends on where that change is, and is never thought to be much less than it has been. Where
    not all of a record is compared there is a second pass always.
    """
    span, blind = run.reach * run.h, run.n_quartics > run.n_compared
    if number > 0:
        sigma = delta / (run.gap * span) if run.gap * span > 0.0 else 0.0
        run.sigma = max(sigma, FADING * run.sigma if run.sigma < np.inf else 0.0)
    rest = DOUBT * run.sigma * span * run.change if run.change > 0.0 else 0.0
    if number > 0:
        rest = min(rest, delta * (max(1.0, run.change / run.gap) if run.gap > 0.0 else 1.0))
        if blind:
            rest = max(rest, UNSEEN * delta)
    if (
        rest <= CONVERGED
        and run.change <= run.rtol
        and number >= (max(1, run.hops_at_once) if blind else run.hops_at_once)
    ):
        if number == 0:
            run.sigma *= AGEING
        return 1
    if not run.change < np.inf or not delta < np.inf:
        return -1
    if number == 1:
        run.rest_first = rest
    elif rest > 1.0 and number > 2 + run.hops_at_once:
        rate = rest / run.rest_first
        if rest * (rate * rate if number == 3 else rate) > CONVERGED:
            return -1
    return 0
