"""Equilibria by pseudo-transient continuation: implicit Euler steps that grow until they are Newton steps.

Following the dynamics loosely keeps the iteration away from equilibria that no trajectory reaches, and makes a system
without any equilibrium show itself as growth without limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED

from ..steady import slots as s
from .drops import dropped
from .evaluate import evaluate
from .residual import rests
from .sizes import SMALL_QUEUE, changes, guarded, largest_capacity, scales, sizes, to_kink
from .step import projected_step

__all__ = ["CONVERGED", "GROWING", "LONGEST_QUEUE", "STALLED", "UNDEFINED", "find", "find_many", "tell"]

_jit: Any = njit(**UNCOUNTED)
_making: Any = njit(**COUNTED)

CONVERGED, GROWING, STALLED, UNDEFINED = range(4)
"""How a search ended: well; an unknown passed its ceiling; the steps ran out; not finite at the start."""

LONGEST_QUEUE = 1e5
"""A queueing delay [s] beyond which a queue counts as growing without limit."""

LARGEST_RATE = 1e9
"""A rate this many times the largest capacity counts as growing without limit."""

ROUNDING = 1e-15
"""A relative Newton step after which there is nothing left to get smaller."""

OTHER_START = 0.1
"""Queueing delay [s] to start from where a search from empty queues stalls."""


@_jit
def _shift(I: Any, P: Any, u: Any, l: int, beyond: bool) -> None:
    """Measure a link's unknown from q_max, or from 0 again."""
    i, q_max = I[s.FLOWS] + l, P[I[s.Q_MAX] + l]
    by = -q_max if beyond else q_max
    I[I[s.BEYOND] + l] = 1 if beyond else 0
    u[i] += by
    P[I[s.LOWER] + i] += by
    P[I[s.UPPER] + i] += by
    if not beyond:
        P[I[s.LOWER] + i] = max(P[I[s.LOWER] + i], 0.0)


@_jit
def _choose_origins(I: Any, P: Any, u: Any) -> None:
    """Measure each link's unknown from where its kink or its regime is."""
    F, L = I[s.FLOWS], I[s.LINKS]
    for l in range(L):
        beyond, rising = I[I[s.BEYOND] + l] == 1, u[F + L + l] > P[I[s.C] + l]
        over = u[F + l] if beyond else u[F + l] - P[I[s.Q_MAX] + l]
        if not beyond and (over > 0 or (over == 0 and rising)):
            _shift(I, P, u, l, True)
        elif beyond and (over < 0 or (over == 0 and not rising)):
            _shift(I, P, u, l, False)


@_jit
def _too_far(I: Any, P: Any, u: Any, ceiling: float) -> bool:
    """Whether a rate or an endless queue is beyond its ceiling."""
    F = I[s.FLOWS]
    for l in range(I[s.LINKS]):
        if u[F + l] > (ceiling if P[I[s.Q_MAX] + l] == np.inf else 1e15):
            return True
    most = LARGEST_RATE * largest_capacity(I, P)
    for f in range(F):  # noqa: SIM110 - numba has no generators
        if u[f] > most:
            return True
    return False


@_jit
def _follow(I: Any, P: Any, D: Any, u: Any, ceiling: float, largest: float, limit: int) -> tuple[int, float, int]:
    """Follow the dynamics in growing steps, none of which changes a state by more than `largest`, relatively."""
    n = I[s.UNKNOWNS]
    end = D[I[s.END] : I[s.END] + n]
    h, error = 1e-2, np.inf
    scales(I, P, D, u)
    if not evaluate(I, P, D, u):
        return UNDEFINED, error, 0
    for count in range(limit):
        sizes(I, P, D, u, 1e-3, False)
        fine, change = projected_step(I, P, D, u, h) and guarded(I, P, D, u), 0.0
        if fine:
            change, error = changes(I, D)
            fine = change <= max(largest, 0.95)  # 0.9 is what `guarded` lets through
        if fine:
            to_kink(I, P, D, u, end)
            fine = evaluate(I, P, D, end)
            if not fine:
                evaluate(I, P, D, u)
        if not fine:
            h *= 0.25
            if h < 1e-14:
                return STALLED, error, count + 1
            continue
        for i in range(n):
            u[i] = end[i]
            D[I[s.REFERENCE] + i] = max(D[I[s.REFERENCE] + i], abs(u[i]))
        _choose_origins(I, P, u)
        if _too_far(I, P, u, ceiling):
            return GROWING, error, count + 1
        if h > 1e8 and error < 1e-9:
            sizes(I, P, D, u, 1e-6, True)
            if rests(I, P, D, u):  # else what moves slowly may still go far
                return CONVERGED, error, count + 1
        ratio = change / largest
        h = min(h * (10.0 if ratio < 0.05 else (5.0 if ratio < 0.2 else (2.0 if ratio < 0.5 else 1.2))), 1e30)
    return CONVERGED if h > 1e8 and error < 1e-9 else STALLED, error, limit


@_making
def _settle(I: Any, P: Any, D: Any, u: Any) -> int:
    """What pseudo-time has not quite brought to its bound goes there, and stays if the drift is only rounding."""
    F, L = I[s.FLOWS], I[s.LINKS]
    near = np.zeros(L, np.bool_)
    for l in range(L):
        near[l] = not I[I[s.BEYOND] + l] and u[F + l] < 1e-7 * SMALL_QUEUE
        if near[l]:
            u[F + l] = 0.0
    evaluate(I, P, D, u)
    for l in range(L):
        if near[l] and _is_rounding(I, P, D, u, l):
            P[I[s.UPPER] + F + l] = 0.0
    return 0


@_jit
def _is_rounding(I: Any, P: Any, D: Any, u: Any, l: int) -> bool:
    """Whether a queue's drift is no more than rounding makes of none."""
    F, L = I[s.FLOWS], I[s.LINKS]
    return bool(abs(D[I[s.G] + F + l]) <= 1e-8 * (1.0 + u[F + L + l] / P[I[s.C] + l]))


@_making
def _finish_settled(I: Any, P: Any, D: Any, u: Any) -> tuple[float, int]:
    """`_finish` from where `_settle` leaves; from where it was, if a queue that had to be empty would grow there.

    A queue of less than a nanosecond can be what holds a flow: one that draws its losses by it.
    """
    F, first, last = I[s.FLOWS], I[s.BEYOND], I[s.BEYOND] + I[s.LINKS]
    u_before, P_before, beyond = u.copy(), P.copy(), I[first:last].copy()
    _settle(I, P, D, u)
    error, steps = _finish(I, P, D, u)
    for l in range(I[s.LINKS]):
        i = I[s.UPPER] + F + l
        if P[i] == 0.0 and P_before[i] > 0.0 and not _is_rounding(I, P, D, u, l):
            u[:], P[:], I[first:last] = u_before, P_before, beyond
            evaluate(I, P, D, u)
            error, more = _finish(I, P, D, u)
            return error, steps + more
    return error, steps


@_jit
def _finish(I: Any, P: Any, D: Any, u: Any) -> tuple[float, int]:
    """Newton steps as long as they get smaller; the last one's size, and how many they are."""
    n, last = I[s.UNKNOWNS], np.inf
    for count in range(8):
        sizes(I, P, D, u, 1e-6, True)
        if not projected_step(I, P, D, u, 1e16):
            return last, count
        error = 0.0
        for i in range(n):
            error = max(error, abs(D[I[s.MOVE] + i]) / D[I[s.SIZE] + i])
        if not error < 0.5 * last:
            return last, count
        for i in range(n):
            u[i] += D[I[s.MOVE] + i]
        _choose_origins(I, P, u)
        last = error
        evaluate(I, P, D, u)
        if error <= ROUNDING:
            return last, count + 1
    return last, 8


@_jit
def find(I: Any, P: Any, D: Any, u: Any, ceiling: float, bold: bool) -> tuple[int, float, int]:
    """Move `u` to an equilibrium: how that ended, the last relative Newton step, and the number of steps.

    Where it ended well every equation holds. `P` is changed.
    """
    for i in range(I[s.UNKNOWNS]):
        u[i] = min(max(u[i], P[I[s.LOWER] + i]), P[I[s.UPPER] + i])
    _choose_origins(I, P, u)
    status, error, steps = STALLED, np.inf, 0
    # Largest relative change of a state in one step, and for how many steps: bold at first, but not for long, as kinks
    # may make bold steps cycle for ever.
    for k in range(0 if bold else 1, 3):
        largest, limit = (3.0, 60) if k == 0 else ((0.5, 400) if k == 1 else (0.1, 800))
        status, error, more = _follow(I, P, D, u, ceiling, largest, limit)
        steps += more
        if status != STALLED:
            break
    if status == CONVERGED:
        error, more = _finish_settled(I, P, D, u)
        steps += more
        sizes(I, P, D, u, 1e-6, True)
        if not (evaluate(I, P, D, u) and rests(I, P, D, u)):
            status = STALLED
    return status, error, steps


@_making
def _start(I: Any, P: Any, u: Any, queue: float) -> None:
    """Unknowns to start from: `queue` [s], and an equal share of the scarcest link, for states that are rates too.

    A path without any delay gets a queue, as laws may divide by the round trip.
    """
    F, L = I[s.FLOWS], I[s.LINKS]
    crossing = np.zeros(L)
    for f in range(F):
        flow = I[s.FLOW] + f * s.FLOW_SIZE
        for h in range(I[flow + s.HOPS], I[flow + s.HOPS_END]):
            crossing[I[I[s.HOP] + h]] += I[flow + s.MANY]
    for i in range(I[s.UNKNOWNS]):
        u[i] = P[I[s.INITIAL] + i]
    for l in range(L):
        if I[I[s.LINK] + l * s.LINK_SIZE + s.QUEUED]:
            u[F + l] = min(queue, 0.5 * P[I[s.Q_MAX] + l])
    for f in range(F):
        flow = I[s.FLOW] + f * s.FLOW_SIZE
        share = np.inf
        for h in range(I[flow + s.HOPS], I[flow + s.HOPS_END]):
            l = I[I[s.HOP] + h]
            share = min(share, P[I[s.C] + l] / crossing[l])
        if I[flow + s.LAW] < 0:
            share = P[I[s.RATE] + f]
        u[f] = share
        for i in range(I[flow + s.STATES], I[flow + s.STATES] + I[flow + s.COUNT]):
            if I[I[s.IS_RATE] + i]:
                u[i] = share
        for h in range(I[flow + s.HOPS], I[flow + s.HOPS_END]):
            u[F + L + I[I[s.HOP] + h]] += share * I[flow + s.MANY]
        l = I[I[s.HOP] + I[flow + s.HOPS]]
        if P[I[s.TRIP] + f] == 0 and I[I[s.LINK] + l * s.LINK_SIZE + s.QUEUED]:
            u[F + l] = max(u[F + l], min(0.01, 0.5 * P[I[s.Q_MAX] + l]))


@_jit
def tell(I: Any, P: Any, D: Any, u: Any, told: Any) -> None:
    """What follows from `u`: e and loss ratio of the paths, queueing delay, loss ratio and price of the links."""
    F, L = I[s.FLOWS], I[s.LINKS]
    evaluate(I, P, D, u)
    for f in range(F):
        told[f], told[F + f] = D[I[s.E] + f], D[I[s.PI] + f]
    for l in range(L):
        link = I[s.LINK] + l * s.LINK_SIZE
        told[2 * F + l], told[2 * F + L + l] = D[I[s.QUEUE] + l], D[I[s.LOSS] + l]
        told[2 * F + 2 * L + l] = D[I[link + s.GIVES] + I[link + s.COUNT] + 1]
        told[2 * F + 3 * L + l] = dropped(I, D, l)
        if I[I[s.BEYOND] + l]:
            _shift(I, P, u, l, False)


@_making
def find_many(I: Any, N: Any, D: Any, ceiling: float, u: Any, told: Any, status: Any, error: Any, steps: Any) -> None:
    """The equilibrium at each point from its own start, so that no result depends on which points go together."""
    for i in range(len(N)):
        steps[i] = 0
        for queue in (0.0, OTHER_START):
            P = N[i].copy()
            _start(I, P, u[i], queue)
            status[i], error[i], more = find(I, P, D, u[i], ceiling, True)
            steps[i] += more
            tell(I, P, D, u[i], told[i])
            if status[i] != STALLED:
                break
