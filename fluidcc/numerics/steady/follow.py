"""Equilibria by pseudo-transient continuation: implicit Euler steps that grow until they are Newton
steps.

Following the dynamics loosely keeps the iteration away from equilibria that no trajectory reaches,
and makes a system without any equilibrium show itself as growth without limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED

from ..steady import slots as s
from .eliminate import arrival_rows, back, kept_rows, link_rows, places, solve_scaled
from .evaluate import TOLERANCE, balanced, change, derivatives, dropped, evaluate, rests

__all__ = [
    "CONVERGED", "GROWING", "LONGEST_QUEUE", "SMALL_QUEUE", "STALLED", "UNDEFINED", "changes",
    "find", "find_many", "guarded", "largest_capacity", "projected_step", "scales", "sizes",
    "tell", "to_kink",
]  # fmt: skip


_jit: Any = njit(**UNCOUNTED)
_making: Any = njit(**COUNTED)

SMALL_QUEUE = 0.02
"""Changes of a queueing delay [s] are small relative to at least this."""


@_jit
def largest_capacity(I: Any, P: Any) -> float:
    largest = 0.0
    for l in range(I[s.LINKS]):
        largest = max(largest, P[I[s.C] + l])
    return largest


@_jit
def scales(I: Any, P: Any, D: Any, u: Any) -> None:
    """Sizes below which a change is small (0 where none is known), and the largest so far."""
    F, L, scale = I[s.FLOWS], I[s.LINKS], I[s.SCALE]
    largest = largest_capacity(I, P)
    for i in range(I[s.UNKNOWNS]):
        D[scale + i] = 1e-6 * largest if i < F else 0.0
    for l in range(L):
        D[scale + F + l], D[scale + F + L + l] = SMALL_QUEUE, 1e-6 * P[I[s.C] + l]
    for i in range(I[s.UNKNOWNS]):
        D[I[s.REFERENCE] + i] = max(abs(u[i]), D[scale + i])


@_jit
def sizes(I: Any, P: Any, D: Any, u: Any, least: float, exact: bool) -> None:
    """What changes are measured by; if `exact`, those of losses by the losses alone."""
    for i in range(I[s.UNKNOWNS]):
        size = max(max(abs(u[i]), least * D[I[s.REFERENCE] + i]), D[I[s.SCALE] + i])
        D[I[s.SIZE] + i] = size if size > 0 else 1.0
    for l in range(I[s.LINKS]):
        if I[I[s.BEYOND] + l]:
            i = I[s.FLOWS] + l
            D[I[s.SIZE] + i] = (
                max(u[i], 1e-9) if exact else max(u[i] + P[I[s.Q_MAX] + l], SMALL_QUEUE)
            )


@_jit
def guarded(I: Any, P: Any, D: Any, u: Any) -> bool:
    """Approach a bound of zero by factors of ten: a rate equation in proportion to x would never
    leave x = 0.

    A move there against a rising G is what too long a step makes of an unstable zero; it is
    refused.
    """
    move = I[s.MOVE]
    for i in range(I[s.Z_FIRST], I[s.UNKNOWNS]):
        reference = D[I[s.REFERENCE] + i]
        if (
            P[I[s.LOWER] + i] == 0
            and reference > 0
            and u[i] > 1e-9 * reference
            and u[i] + D[move + i] < 0.1 * u[i]
        ):
            if D[I[s.G] + i] > 0:
                return False
            D[move + i] = -0.9 * u[i]
    return True


@_jit
def changes(I: Any, D: Any) -> tuple[float, float]:
    """Largest relative change of a state or queue, and of any unknown."""
    F, L = I[s.FLOWS], I[s.LINKS]
    change = error = 0.0
    for i in range(I[s.UNKNOWNS]):
        relative = abs(D[I[s.MOVE] + i]) / D[I[s.SIZE] + i]
        known = D[I[s.REFERENCE] + i] > 0 or D[I[s.MOVE] + i] == 0
        if known and not (i < F or F + L <= i < F + 2 * L):
            change = max(change, relative)
        error = max(error, relative if known else 1.0)
    return change, error


@_jit
def to_kink(I: Any, P: Any, D: Any, u: Any, end: Any) -> None:
    """The end of a move, cut short at the first buffer that fills: beyond, derivatives are
    wrong, and steps cycle.
    """
    F, move = I[s.FLOWS], I[s.MOVE]
    first, at = 1.0, -1
    for l in range(I[s.LINKS]):
        if D[move + F + l] != 0 and 0 < P[I[s.Q_MAX] + l] < np.inf:
            kink = 0.0 if I[I[s.BEYOND] + l] else P[I[s.Q_MAX] + l]
            share = (kink - u[F + l]) / D[move + F + l]
            if 1e-9 < share < first:
                first, at = share, l
    for i in range(I[s.UNKNOWNS]):
        end[i] = u[i] + first * D[move + i]
    if at >= 0:
        end[F + at] = 0.0 if I[I[s.BEYOND] + at] else P[I[s.Q_MAX] + at]


# --- one linearly implicit Euler step, projected: a complementarity problem by active sets ---


@_making
def _solve(I: Any, P: Any, D: Any, u: Any, h: float) -> bool:
    """All moves, with those of the fixed unknowns given; False where the system is singular."""
    m = places(I, D, h)
    work = np.zeros(m * (m + 2))
    return _solve_in(
        I, P, D, u, h, work[: m * m].reshape(m, m), work[m * m : m * (m + 1)], work[m * (m + 1) :]
    )


@_jit
def _solve_in(I: Any, P: Any, D: Any, u: Any, h: float, M: Any, b: Any, columns: Any) -> bool:
    """The same in a matrix and vectors for as many unknowns as are left."""
    n = I[s.UNKNOWNS]
    for i in range(n):
        if I[I[s.PLACE] + i] >= 0:
            columns[I[I[s.PLACE] + i]] = D[I[s.SIZE] + i]
    arrival_rows(I, P, D, u, M, b)
    link_rows(I, P, D, u, h, M, b)
    kept_rows(I, D, h, M, b)
    if not solve_scaled(M, b, columns):
        return False
    for i in range(n):
        if I[I[s.PLACE] + i] >= 0:
            D[I[s.MOVE] + i] = b[I[I[s.PLACE] + i]]
    back(I, D, u)
    for i in range(I[s.MOVE], I[s.MOVE] + n):  # noqa: SIM110 - numba has no generators
        if not np.isfinite(D[i]):
            return False
    return True


@_jit
def _drift(I: Any, P: Any, D: Any, i: int, u: Any, h: float) -> float:
    """G - (M/h - J) move of a state or queue, which says whether a bound holds it."""
    F, L, move = I[s.FLOWS], I[s.LINKS], I[s.MOVE]
    value = D[I[s.G] + i] - D[move + i] / h
    if i < F + L:
        l = i - F
        c = P[I[s.C] + l]
        let_in, through, y = 1.0 - dropped(I, D, l), 1.0 - D[I[s.LOSS] + l], u[L + i]
        value += let_in * through / c * D[move + L + i] - y * through / c * change(I, D, l)
        return value - y * let_in * D[I[s.LOSS_SLOPE] + l] / c * D[move + i]
    j = I[I[s.OWNER] + i]
    if i < I[s.V_FIRST]:
        flow = I[s.FLOW] + j * s.FLOW_SIZE
        k, first = I[flow + s.COUNT], I[flow + s.STATES]
        J = I[flow + s.GIVES] + (k + 1) + (i - first) * (k + 4)
        for other in range(k):
            value += D[J + other] * D[move + first + other]
        J += k
        value += D[J] * D[move + j] + D[J + 1] * D[I[s.DE] + j]
        return value + D[J + 2] * D[I[s.DPI] + j] + D[J + 3] * D[I[s.DPRICE] + j]
    link = I[s.LINK] + j * s.LINK_SIZE
    k, first = I[link + s.COUNT], I[link + s.STATES]
    J = derivatives(I, link) + (i - first) * (k + 2)
    value += D[J] * D[I[s.QUEUE_SLOPE] + j] * D[move + F + j]
    for other in range(k):
        value += D[J + 1 + other] * D[move + first + other]
    return value + D[J + k + 1] * D[move + F + L + j]


@_jit
def _solved(I: Any, P: Any, D: Any, u: Any, h: float) -> bool:
    """Whether the last moves keep all bounds, and no state at one drifts off it by more than
    rounding.
    """
    F, L, fixed = I[s.FLOWS], I[s.LINKS], I[s.FIXED]
    for i in range(F, I[s.UNKNOWNS]):
        if F + L <= i < F + 2 * L:
            continue
        end, lower, upper = u[i] + D[I[s.MOVE] + i], P[I[s.LOWER] + i], P[I[s.UPPER] + i]
        if I[fixed + i]:
            drift = _drift(I, P, D, i, u, h)
            off = (drift > 0 and end < upper) or (drift < 0 and end > lower)
            if off and abs(drift) > TOLERANCE * balanced(I, P, D, i):
                return False
        elif max(lower - end, end - upper) > TOLERANCE * D[I[s.SIZE] + i]:
            return False
    return True


@_jit
def projected_step(I: Any, P: Any, D: Any, u: Any, h: float) -> bool:
    """Put the move of one step of length `h` into `D`; False where it has none.

    Too long a step may have none: that of a state which grows away from a bound leads to beyond it,
    where the bound does not hold it.
    """
    F, L, n = I[s.FLOWS], I[s.LINKS], I[s.UNKNOWNS]
    low, high, fixed, seen = I[s.LOW], I[s.HIGH], I[s.FIXED], I[s.SEEN]
    move, lower, upper = I[s.MOVE], I[s.LOWER], I[s.UPPER]
    for i in range(n):
        I[low + i] = u[i] <= P[lower + i] and D[I[s.G] + i] < 0
        I[high + i] = u[i] >= P[upper + i] and D[I[s.G] + i] > 0
    for turn in range(s.ROUNDS):
        for i in range(n):
            I[fixed + i] = I[low + i] + I[high + i]
            D[move + i] = (
                P[lower + i] - u[i] if I[low + i] else (P[upper + i] - u[i] if I[high + i] else 0.0)
            )
        if not _solve(I, P, D, u, h):
            return False
        same, mark = True, 1
        for i in range(F, n):
            if F + L <= i < F + 2 * L:
                continue
            if I[fixed + i]:
                drift = _drift(I, P, D, i, u, h)
                I[low + i] = I[low + i] and drift <= 0
                I[high + i] = I[high + i] and drift >= 0
            else:
                I[low + i] = u[i] + D[move + i] < P[lower + i]
                I[high + i] = u[i] + D[move + i] > P[upper + i]
            same = same and I[fixed + i] == I[low + i] + I[high + i]
            mark = (
                mark * 1000003 + 1 + I[low + i] + 2 * I[high + i]
            ) % 1099511627689  # a hash that fits 64 bits
        for before in range(seen, seen + turn):
            if I[before] == mark and not _solved(I, P, D, u, h):
                return False
            same = same or I[before] == mark
        if same:
            break
        I[seen + turn] = mark
    for i in range(n):
        D[move + i] = min(max(u[i] + D[move + i], P[lower + i]), P[upper + i]) - u[i]
    return True


# --- equilibria by pseudo-transient continuation --------------------------------------------------


CONVERGED, GROWING, STALLED, UNDEFINED = range(4)
"""How a search ended: well; an unknown passed its ceiling; the steps ran out; not finite at the
start.
"""

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
def _follow(
    I: Any, P: Any, D: Any, u: Any, ceiling: float, largest: float, limit: int
) -> tuple[int, float, int]:
    """Follow the dynamics in growing steps, none of which changes a state by more than
    `largest`, relatively.
    """
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
        h = min(
            h * (10.0 if ratio < 0.05 else (5.0 if ratio < 0.2 else (2.0 if ratio < 0.5 else 1.2))),
            1e30,
        )
    return CONVERGED if h > 1e8 and error < 1e-9 else STALLED, error, limit


@_making
def _settle(I: Any, P: Any, D: Any, u: Any) -> int:
    """What pseudo-time has not quite brought to its bound goes there, and stays if the drift is
    only rounding.
    """
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
    """`_finish` from where `_settle` leaves; from where it was, if a queue that had to be empty
    would grow there.

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
    """Move `u` to an equilibrium: how that ended, the last relative Newton step, and the number of
    steps.

    Where it ended well every equation holds. `P` is changed.
    """
    for i in range(I[s.UNKNOWNS]):
        u[i] = min(max(u[i], P[I[s.LOWER] + i]), P[I[s.UPPER] + i])
    _choose_origins(I, P, u)
    status, error, steps = STALLED, np.inf, 0
    # Largest relative change of a state in one step, and for how many steps: bold at first, but not
    # for long, as kinks may make bold steps cycle for ever.
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
    """Unknowns to start from: `queue` [s], and an equal share of the scarcest link, for states that
    are rates too.

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
    """What follows from `u`: e and loss ratio of the paths, queueing delay, loss ratio and price
    of the links.
    """
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
def find_many(
    I: Any, N: Any, D: Any, ceiling: float, u: Any, told: Any, status: Any, error: Any, steps: Any
) -> None:
    """The equilibrium at each point from its own start, so that no result depends on which
    points go together.
    """
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
