"""Newton's iteration on the determinant of a pencil, away from known roots. Compiled."""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.lanes import LANES
from fluidcc.numerics.linear.compiled.replay import AT, PIVOT, eliminate, pivoted, put, room, scalars

__all__ = ["SMALL", "iterate"]

SMALL = 40  # unknowns up to which poor points are solved with pivoting at once


@njit(**COUNTED)
def iterate(start, whole, real, known, rounds):  # type: ignore[no-untyped-def]
    """Newton's iteration from every start, away from the `known` roots (Maehly), eight of them abreast.

    Returns the last points, the relative size of the last steps, and a flag where a multiplier was large, unless the
    pencil is small, so that it is solved with pivoting here.
    """
    end, size = start.copy(), np.full(len(start), np.inf)
    poor = np.zeros(len(start), np.bool_)
    work, none = room(whole, real), np.empty((0, 0), np.complex128)
    who, taken, s = np.full(LANES, -1), np.zeros(LANES, np.int64), np.ones(LANES, np.complex128)
    following = 0
    while True:
        for w in range(LANES):
            if who[w] < 0 and following < len(start):
                who[w], taken[w], s[w] = following, 0, start[following]
                following += 1
        if who.max() < 0:
            return end, size, poor
        put(s, whole, work)
        eliminate(whole, real, work, True)
        for w in range(LANES):
            i = who[w]
            if i < 0:
                continue
            _, _, rate, bad = scalars(whole, work, w)
            if bad and whole[AT] - whole[PIVOT] <= SMALL:
                _, _, rate, _ = pivoted(s[w], whole, real, none, none)
            elif bad:
                poor[i], end[i], who[w] = True, s[w], -1
                continue
            s[w], size[i] = _step(s[w], rate, known)
            taken[w] += 1
            if size[i] <= 1e-13 or taken[w] == rounds:
                end[i], who[w] = s[w], -1


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _step(s, rate, known):  # type: ignore[no-untyped-def]
    """Where Newton's step leads from s, away from the known roots, and its relative size."""
    for root in known:
        gap = s - root
        if gap != 0:
            rate -= 1 / gap
    reach = 1 + abs(s)
    step = 1 / rate if rate != 0 else 0.5 + 0j
    if not np.isfinite(step.real + step.imag):
        step = 0.5 + 0j
    length = abs(step)
    if length > 0.5 * reach:  # far from any root: no leap
        step *= 0.5 * reach / length
        length = 0.5 * reach
    return s - step, length / reach
