"""The rest of a network by the length of one queue, where following its dynamics does not lead
there.

With its queue held at some length, more or less arrives at a link than leaves it. Where that turns
from more to less the network rests; if it turns at once, from more to less, it goes back and forth;
if it never turns, it rests nowhere.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fluidcc.equilibria.assembly import Assembled
from fluidcc.numerics.steady.follow import CONVERGED, GROWING, Found, Search

__all__ = ["ByLength", "by_length"]

LENGTHS = (0.0, *np.logspace(-7, 5, 25).tolist())
"""The queueing delays [s] that are tried; beyond a full buffer, what is offered above the
capacity, relative to it.
"""

NEAR = 1e-4
"""So near to its capacity [relative] a search goes on by itself."""

OVERLOAD = 1e3
"""A load that is still rising at this size rises without limit."""

HALVINGS = 100


class _Load(NamedTuple):
    """What arrives at the link with its queue at a length, relative to its capacity; NaN where
    flows do not settle.
    """

    length: float
    load: float
    found: Found


class ByLength(NamedTuple):
    """What the lengths have told.

    Attributes
    ----------
    rest : Found or None
        The equilibrium.
    switch : tuple of float or None
        The length [s] at which the load falls through 1 at once, and the load there and a hair
        beyond.
    least : float
        The least load at a length at which the flows settle, infinite where they grow at all; 0
        where that is not known at the longest.
    """

    rest: Found | None = None
    switch: tuple[float, float, float] | None = None
    least: float = 0.0


def by_length(
    system: Assembled, search: Search, point: int, u: Any, link: int, beside: Any
) -> ByLength:
    """Hold the queue of a link at many lengths, and those of the links `beside` as they are at `u`.

    Parameters
    ----------
    system : Assembled
    search : Search
        Of its shape.
    point : int
    u : ndarray (unknowns,)
        Where a search has failed.
    link : int
    beside : array of int
    """
    first = system.shape.flows
    i, full = first + link, float(system.numbers.q_max[point, link])
    kept = np.array(sorted({i, *(first + np.asarray(beside, int)).tolist()}))

    def held(length: float, start: Any) -> _Load:
        v = start.copy()
        v[i] = length
        found = search.again(system.numbers, point, v, ceiling=np.inf, held=kept)
        lost, drop = found.told[2 * first + len(system.shape.queued) :].reshape(3, -1)[::2, link]
        load = (
            system.arrivals(found.u)[link] * (1 - drop) * (1 - lost) / system.numbers.c[point, link]
        )
        if found.status != CONVERGED:
            load = np.inf if found.status == GROWING or load > OVERLOAD else np.nan
        return _Load(length, float(load), found)

    lengths = [*(q for q in LENGTHS if q < full), *(full + q for q in LENGTHS if np.isfinite(full))]
    loads = [held(lengths[-1], u)]
    for length in lengths[-2::-1]:  # from the longest on: most flows are slowest there, and settle
        last = loads[-1].found
        loads.append(held(length, last.u if last.status == CONVERGED else u))
    loads.reverse()
    if loads[0].load <= 1 and (rest := _freed(system, search, point, loads[0])) is not None:
        return ByLength(rest)
    for low, high in pairwise(loads):
        if low.load > 1 >= high.load:
            low, high = _halved(held, low, high)
            for end in sorted((low, high), key=lambda one: abs(one.load - 1)):
                if (
                    abs(end.load - 1) < NEAR
                    and (rest := _freed(system, search, point, end)) is not None
                ):
                    return ByLength(rest)
            at_once = low.load - high.load > NEAR and _next(low.length, high.length)
            if at_once and _determined(system, held, low) and _determined(system, held, high):
                return ByLength(switch=(high.length, low.load, high.load))
    told = [one.load for one in loads if not np.isnan(one.load)]
    return ByLength(least=0.0 if np.isnan(loads[-1].load) else min(told))


def _determined(system: Assembled, held: Any, one: _Load) -> bool:
    """Whether the load at a length is the same from another start: rates that keep as they are
    may be any.
    """
    if one.found.status != CONVERGED:
        return not np.isnan(one.load)
    v, S = one.found.u.copy(), system.shape
    states = slice(S.flows + 2 * S.links, S.flows + 2 * S.links + sum(S.states[: S.flows]))
    v[states] *= 1.5
    return bool(abs(held(one.length, v).load - one.load) < NEAR * one.load)


def _next(low: float, high: float) -> bool:
    """Whether two lengths are the same but for rounding."""
    return high - low <= 1e-12 * max(high, 1e-3)


def _halved(held: Any, low: _Load, high: _Load) -> tuple[_Load, _Load]:
    """Lengths as near to one another as numbers are, of which the shorter still has too much
    load.
    """
    for _ in range(HALVINGS):
        far = low.length > 0 and high.length > 4 * low.length
        middle = (
            float(np.sqrt(low.length * high.length)) if far else 0.5 * (low.length + high.length)
        )
        if not low.length < middle < high.length:
            break
        one = held(middle, high.found.u)
        if np.isnan(one.load):
            break
        low, high = (one, high) if one.load > 1 else (low, one)
        if abs(one.load - 1) < 1e-12:
            break
    return low, high


def _freed(system: Assembled, search: Search, point: int, one: _Load) -> Found | None:
    """The rest beside a length, with the queue let go."""
    again = search.again(system.numbers, point, one.found.u, ceiling=np.inf, bold=False)
    return again if again.status == CONVERGED else None
