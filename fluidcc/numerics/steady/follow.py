"""Equilibria by pseudo-transient continuation: implicit Euler steps that grow until they are Newton
steps.

Following the dynamics loosely keeps the iteration away from equilibria that no trajectory reaches,
and makes a system without any equilibrium show itself as growth without limit.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit

from ..layout import copy
from .evaluate import balanced, evaluate, rests
from .state import Numbers, SearchState, Shape, state_of
from .step import projected_step

_jit: Any = njit(counted=False)
_making: Any = njit()

SMALL_QUEUE, SMALL_EXCESS = 0.2, 0.1
"""Changes of a queueing delay [natural times] are small relative to at least this; of what a full
buffer loses, over what it lets in, to at least that.
"""


@_jit
def _largest_capacity(w: SearchState) -> float:
    largest = 0.0
    for l in range(w.n_links):
        largest = max(largest, w.c[l])
    return largest


@_jit
def _scales(w: SearchState) -> None:
    """Sizes below which a change is small (0 where none is known), and the largest so far."""
    F, L = w.n_flows, w.n_links
    for i in range(w.n_unknowns):
        w.scale[i] = 1e-6 * _largest_capacity(w) if i < F else 0.0
    for l in range(L):
        w.scale[F + l], w.scale[F + L + l] = SMALL_QUEUE * w.times[0], 1e-6 * w.c[l]
    for i in range(w.n_unknowns):
        w.reference[i] = max(abs(w.u[i]), w.scale[i])


@_jit
def _sizes(w: SearchState, least: float, exact: bool) -> None:
    """What changes are measured by; if `exact`, those of queues and losses by these alone."""
    for i in range(w.n_unknowns):
        size = max(abs(w.u[i]), (least if exact else max(least, 1.0)) * w.scale[i])
        size = max(size, least * w.reference[i])
        w.size[i] = size if size > 0 else 1.0
    for l in range(w.n_links):
        if w.beyond[l]:
            i = w.n_flows + l
            w.size[i] = max(w.u[i], 1e-9 if exact else SMALL_EXCESS)


@_jit
def _guarded(w: SearchState) -> bool:
    """Approach a bound of zero by factors of ten: a rate equation in proportion to x would never
    leave x = 0.

    A move there against a rising G is what too long a step makes of an unstable zero; it is
    refused.
    """
    for i in range(w.first_state, w.n_unknowns):
        known = w.lower[i] == 0 and w.reference[i] > 0 and w.u[i] > 1e-9 * w.reference[i]
        if known and w.u[i] + w.move[i] < 0.1 * w.u[i]:
            if w.residual[i] > 0:
                return False
            w.move[i] = -0.9 * w.u[i]
    return True


@_jit
def _changes(w: SearchState) -> tuple[float, float]:
    """Largest relative change of a state or queue, and of any unknown."""
    F, L = w.n_flows, w.n_links
    change = error = 0.0
    for i in range(w.n_unknowns):
        relative, known = abs(w.move[i]) / w.size[i], w.reference[i] > 0 or w.move[i] == 0
        if known and not (i < F or F + L <= i < F + 2 * L):
            change = max(change, relative)
        error = max(error, relative if known else 1.0)
    return change, error


@_jit
def _to_kink(w: SearchState) -> None:
    """The end of a move, cut short at the first buffer that fills: beyond, derivatives are
    wrong, and steps cycle.
    """
    first, place, kink = 1.0, -1, 0.0
    for l in range(w.n_links):
        i = w.n_flows + l
        if w.move[i] != 0 and 0 < w.q_max[l] < np.inf:
            full = 0.0 if w.beyond[l] else w.q_max[l]
            share = (full - w.u[i]) / w.move[i]
            if 1e-9 < share < first:
                first, place, kink = share, i, full
    for i in range(w.n_unknowns):
        w.end[i] = w.u[i] + first * w.move[i]
    if place >= 0:
        w.end[place] = kink


# --- equilibria by pseudo-transient continuation --------------------------------------------------


CONVERGED, GROWING, STALLED, UNDEFINED = range(4)
"""How a search ended: well; an unknown passed its ceiling; the steps ran out; not finite at the
start.
"""

LARGEST_RATE = 1e9
"""A rate this many times the largest capacity counts as growing without limit."""

ROUNDING = 1e-15
"""A relative Newton step after which there is nothing left to get smaller; twice what rounding
leaves of an equation, relative to what it balances.
"""

OTHER_START = 1.0
"""Queueing delay [natural times] to start from where a search from empty queues stalls."""

HALF = 0.5
"""Load to start from where a law has no value at a full link, such as a price c/(c - y)."""

LONG = 1e9
"""A pseudo-step [natural times] this long and longer is all but one of Newton's."""


@_jit
def _shift(w: SearchState, l: int, beyond: bool) -> None:
    """Measure a link's unknown from q_max, or from 0 again."""
    i = w.n_flows + l
    by = -w.q_max[l] if beyond else w.q_max[l]
    w.beyond[l] = beyond
    w.u[i] += by
    w.lower[i] += by
    w.upper[i] += by
    if not beyond:
        w.lower[i] = max(w.lower[i], 0.0)


@_jit
def _choose_origins(w: SearchState) -> None:
    """Measure each link's unknown from where its kink or its regime is."""
    for l in range(w.n_links):
        i = w.n_flows + l
        beyond, rising = w.beyond[l] == 1, w.u[i + w.n_links] > w.c[l]
        over = w.u[i] if beyond else w.u[i] - w.q_max[l]
        if not beyond and (over > 0 or (over == 0 and rising)):
            _shift(w, l, True)
        elif beyond and (over < 0 or (over == 0 and not rising)):
            _shift(w, l, False)


@_jit
def _too_far(w: SearchState, ceiling: float) -> bool:
    """Whether a rate or an endless queue is beyond its ceiling."""
    for l in range(w.n_links):
        if w.u[w.n_flows + l] > (ceiling if w.q_max[l] == np.inf else 1e15):
            return True
    most = LARGEST_RATE * _largest_capacity(w)
    for f in range(w.n_flows):  # noqa: SIM110 - numba has no generators
        if w.u[f] > most:
            return True
    return False


@_making
def _follow(w: SearchState, ceiling: float, largest: float, limit: int) -> tuple[int, float, int]:
    """Follow the dynamics in growing steps, none of which changes a state by more than
    `largest`, relatively.
    """
    natural, error = w.times[0], np.inf
    h = 0.2 * natural
    _scales(w)
    if not evaluate(w, False):
        return UNDEFINED, error, 0
    for count in range(limit):
        _sizes(w, 1e-3, False)
        fine, change = projected_step(w, h) and _guarded(w), 0.0
        if fine:
            change, error = _changes(w)
            fine = change <= max(largest, 0.95)  # 0.9 is what `_guarded` lets through
        if fine:
            _to_kink(w)
            fine = evaluate(w, True)
            if not fine:
                evaluate(w, False)
        if not fine:
            h *= 0.25
            if h < 1e-13 * natural:
                return STALLED, error, count + 1
            continue
        for i in range(w.n_unknowns):
            w.u[i] = w.end[i]
            w.reference[i] = max(w.reference[i], abs(w.u[i]))
        _choose_origins(w)
        if _too_far(w, ceiling):
            return GROWING, error, count + 1
        if h > LONG * natural and error < 1e-9:
            _sizes(w, 1e-6, True)
            if rests(w):  # else what moves slowly may still go far
                return CONVERGED, error, count + 1
        ratio = change / largest
        faster = 10.0 if ratio < 0.05 else (5.0 if ratio < 0.2 else (2.0 if ratio < 0.5 else 1.2))
        h = min(h * faster, 1e31 * natural)
    return CONVERGED if h > LONG * natural and error < 1e-9 else STALLED, error, limit


@_making
def _settle(w: SearchState) -> None:
    """What pseudo-time has not quite brought to its bound goes there, and stays if the drift is
    only rounding.
    """
    for l in range(w.n_links):
        i = w.n_flows + l
        if not w.beyond[l] and w.u[i] < 1e-7 * w.scale[i]:
            w.u[i] = 0.0
    evaluate(w, False)
    for l in range(w.n_links):
        i = w.n_flows + l
        if not w.beyond[l] and w.u[i] == 0 and _is_rounding(w, l):
            w.upper[i] = 0.0


@_jit
def _is_rounding(w: SearchState, l: int) -> bool:
    """Whether a queue's drift is no more than rounding makes of none."""
    i = w.n_flows + l
    return abs(w.residual[i]) <= 1e-8 * (1.0 + w.u[i + w.n_links] / w.c[l])


@_making
def _finish_settled(w: SearchState) -> tuple[float, int]:
    """`_finish` from where `_settle` leaves; from where it was, if a queue that had to be empty
    would grow there.

    A queue of less than a nanosecond can be what holds a flow: one that draws its losses by it.
    """
    n, L = w.n_unknowns, w.n_links
    copy(w.u_before, w.u, n)
    copy(w.lower_before, w.lower, n)
    copy(w.upper_before, w.upper, n)
    copy(w.beyond_before, w.beyond, L)
    _settle(w)
    error, steps = _finish(w)
    for l in range(L):
        i = w.n_flows + l
        if w.upper[i] == 0.0 and w.upper_before[i] > 0.0 and not _is_rounding(w, l):
            copy(w.u, w.u_before, n)
            copy(w.lower, w.lower_before, n)
            copy(w.upper, w.upper_before, n)
            copy(w.beyond, w.beyond_before, L)
            evaluate(w, False)
            error, more = _finish(w)
            return error, steps + more
    return error, steps


@_making
def _finish(w: SearchState) -> tuple[float, int]:
    """Newton steps as long as they get smaller; the last one's size, and how many they are."""
    last = np.inf
    for count in range(60):
        _sizes(w, 1e-6, True)
        if not projected_step(w, 1e8 * LONG * w.times[0]):
            return last, count
        error = 0.0
        for i in range(w.n_unknowns):
            error = max(error, abs(w.move[i]) / w.size[i])
        if not error < 0.9 * last:  # at a root of multiplicity m they shrink to 1 - 1/m
            return last, count
        for i in range(w.n_unknowns):
            w.u[i] += w.move[i]
        _choose_origins(w)
        last = error
        evaluate(w, False)
        if error <= ROUNDING:
            return last, count + 1
    return last, 60


# --- how far from an equilibrium a search may have ended ------------------------------------------


FAREST = 0.01
"""An error beyond this is none: there may be any number of equilibria nearer."""

MULTIPLICITY = 10.0
"""Of Newton steps towards a root of multiplicity m each leads 1/m of the way: m is at most this."""


@_jit
def _rounding(w: SearchState, i: int) -> float:
    """What rounding may make of the residual of equation `i`."""
    return w.noise[i] + 0.5 * ROUNDING * balanced(w, i)


@_making
def _shake(w: SearchState) -> None:
    """Find what the rounding in laws makes of residuals: as much as it changes if shaken."""
    n = w.n_unknowns
    copy(w.end, w.residual, n)
    for i in range(n):
        w.noise[i] = 0.0
    for k in range(3):
        w.shake = 1.0 + k
        evaluate(w, False)
        for i in range(n):
            w.noise[i] = max(w.noise[i], abs(w.residual[i] - w.end[i]))
    w.shake = 0.0
    evaluate(w, False)


@_making
def _leads_back(w: SearchState, by: float) -> bool:
    """Whether a Newton step from aside, by so many times `end`, leads back, whatever part of the
    residual is rounding.
    """
    n, here = w.n_unknowns, w.u_before
    for i in range(n):
        w.u[i] = min(max(here[i] + by * w.end[i], w.lower[i]), w.upper[i])
    if not evaluate(w, False):
        return False
    for i in range(n):
        left = max(abs(w.residual[i]) - _rounding(w, i), 0.0)
        w.residual[i] = np.copysign(left, w.residual[i])
    if not projected_step(w, np.inf):
        return False
    for i in range(n):
        away = w.u[i] - here[i]
        told = abs(away) > 0.1 * abs(by) * w.size[i]
        if told and not -w.move[i] * np.sign(away) >= abs(away) / MULTIPLICITY:
            return False
    return True


@_making
def _bound(w: SearchState) -> float:
    """The relative distance within which an equilibrium is, where `evaluate` has been; infinite if
    none is known.

    It is the least at which Newton steps from both sides lead back, aside along what rounding
    moves most. Near a root of multiplicity m that is where the m-th powers exceed rounding.
    """
    n, by, largest = w.n_unknowns, 2.0 * ROUNDING, 0.0
    copy(w.u_before, w.u, n)
    _shake(w)
    for i in range(n):
        w.end[i] = 0.0
    for k in range(1, 3):
        evaluate(w, False)
        for i in range(n):
            w.residual[i] += _rounding(w, i) * np.sin(k * (i + 1.0))  # of any signs and sizes
        if not (projected_step(w, np.inf) or projected_step(w, 1e8 * LONG * w.times[0])):
            return np.inf
        for i in range(n):
            if not w.fixed[i]:
                moved = max(abs(w.end[i]), abs(w.move[i]), ROUNDING * w.size[i])
                w.end[i] = np.copysign(moved, w.move[i])
                largest = max(largest, moved / w.size[i])
    for i in range(n):
        w.end[i] /= max(largest, ROUNDING)
    found = np.inf
    while by < FAREST and found == np.inf:
        if _leads_back(w, by) and _leads_back(w, -by):
            found = by
        by *= 2.0
    copy(w.u, w.u_before, n)
    evaluate(w, False)
    return found


@njit(entry=True)
def _find(w: SearchState, ceiling: float, bold: bool, told: Any) -> tuple[int, float, int]:
    """Move `u` to an equilibrium: how that ended, the bound of its error, or else the last relative
    step, and the number of steps.

    Where it ended well every equation holds. What follows from `u` is `told` (see `SearchEnds`).
    """
    for i in range(w.n_unknowns):
        w.u[i] = min(max(w.u[i], w.lower[i]), w.upper[i])
    _choose_origins(w)
    status, error, steps = STALLED, np.inf, 0
    # Largest relative change of a state in one step, and for how many steps: bold at first, but not
    # for long, as kinks may make bold steps cycle for ever.
    for k in range(0 if bold else 1, 3):
        largest, limit = (3.0, 60) if k == 0 else ((0.5, 400) if k == 1 else (0.1, 800))
        status, error, more = _follow(w, ceiling, largest, limit)
        steps += more
        if status != STALLED:
            break
    if status == CONVERGED:
        error, more = _finish_settled(w)
        steps += more
        _sizes(w, 1e-6, True)
        if evaluate(w, False) and rests(w):
            error = _bound(w)
        else:
            status = STALLED
    _tell(w, told)
    return status, error, steps


@_jit
def _tell(w: SearchState, told: Any) -> None:
    """What follows from `u`, see `SearchEnds`, which is measured from 0 again."""
    F, L = w.n_flows, w.n_links
    evaluate(w, False)
    for f in range(F):
        told[f], told[F + f] = w.e[f], w.pi[f]
    for l in range(L):
        told[2 * F + l], told[2 * F + L + l] = w.queue[l], w.loss[l]
        told[2 * F + 2 * L + l], told[2 * F + 3 * L + l] = w.link_price[l], w.drop[l]
        told[2 * F + 4 * L + l] = w.mark[l]
        if w.beyond[l]:
            _shift(w, l, False)


@_making
def _start(w: SearchState, queue: float, load: float) -> None:
    """Unknowns to start from: `queue` [natural times], and an equal share of that `load` of the
    scarcest link, for states that are rates too.

    A path without any delay gets a queue, as laws may divide by the round trip.
    """
    F, L, crossing = w.n_flows, w.n_links, np.zeros(w.n_links)
    for f in range(F):
        for h in range(w.hop_start[f], w.hop_start[f + 1]):
            crossing[w.hop[h]] += w.many[f]
    copy(w.u, w.initial, w.n_unknowns)
    for l in range(L):
        if w.queued[l]:
            w.u[F + l] = min(queue * w.times[0], 0.5 * w.q_max[l])
    for f in range(F):
        share = np.inf
        for h in range(w.hop_start[f], w.hop_start[f + 1]):
            share = min(share, load * w.c[w.hop[h]] / crossing[w.hop[h]])
        if w.law[f] < 0:
            share = w.rate[f]
        w.u[f] = share
        for i in range(w.first[f], w.first[f] + w.count[f]):
            if w.is_rate[i]:
                w.u[i] = share
        for h in range(w.hop_start[f], w.hop_start[f + 1]):
            w.u[F + L + w.hop[h]] += share * w.many[f]
        l = w.hop[w.hop_start[f]]
        if w.trip[f] == 0 and w.queued[l]:
            w.u[F + l] = max(w.u[F + l], min(0.1 * w.times[0], 0.5 * w.q_max[l]))


@njit(entry=True)
def _find_many(
    w: SearchState, rows: Any, u: Any, told: Any, status: Any, error: Any, steps: Any
) -> None:
    """The equilibrium at each point from its own start, so that no result depends on which
    points go together.
    """
    for i in range(len(rows)):
        steps[i] = 0
        for queue, load in ((0.0, 1.0), (OTHER_START, 1.0), (0.0, HALF)):
            if load < 1.0 and status[i] != UNDEFINED:
                break
            copy(w.base, rows[i], rows.shape[1])
            _start(w, queue, load)
            status[i], error[i], more = _find(w, w.times[1], True, told[i])
            steps[i] += more
            for k in range(w.n_unknowns):
                u[i, k] = w.u[k]
            if status[i] != STALLED and status[i] != UNDEFINED:
                break


# --- searches from Python: many points at once, and one again under other conditions --------------


class SearchEnds(NamedTuple):
    """Where searches ended, by point.

    Attributes
    ----------
    u : array (points, unknowns)
    told : array (points, 2 flows + 5 links)
        e and loss ratio of the flows' paths; queueing delay, loss ratio of the buffer, price,
        ratio dropped before the queue and ratio marked of the links.
    status : array of int
        How they ended.
    error : array
        What bounds that of each unknown, relative to its size; the last relative step if none was
        found.
    steps : array of int
        How many steps it took.
    """

    u: Any
    told: Any
    status: Any
    error: Any
    steps: Any

    def point(self, i: int) -> SearchEnds:
        """Where the search at one point ended."""
        return SearchEnds(
            self.u[i], self.told[i], int(self.status[i]), float(self.error[i]), int(self.steps[i])
        )


class Search:
    """Searches in networks of one structure, one at a time."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.state = deepcopy(state_of(shape))

    def everywhere(self, numbers: Numbers) -> SearchEnds:
        """Look for an equilibrium at each point; no result depends on the other points."""
        points, S = len(numbers.c), self.shape
        found = SearchEnds(
            np.empty((points, S.unknowns)),
            np.empty((points, 2 * S.flows + 5 * S.links)),
            np.empty(points, np.int64),
            np.empty(points),
            np.empty(points, np.int64),
        )
        with np.errstate(all="ignore"):
            _find_many(self.state, numbers.rows, *found)
        return found

    def again(
        self, numbers: Numbers, point: int, u: Any, *, ceiling: float | None = None,
        bold: bool = True, held: Any = None,
    ) -> SearchEnds:  # fmt: skip
        """Look again at one point, from `u`, with the unknowns `held` kept where they are.

        A queue longer than `ceiling` [s], by default that of the point, counts as endless.
        """
        w, told = self._at(numbers, point, u), np.empty(2 * self.shape.flows + 5 * self.shape.links)
        if held is not None:
            w.lower[held] = w.upper[held] = u[held]
        with np.errstate(all="ignore"):
            most = w.times[1] if ceiling is None else ceiling
            status, error, steps = _find(w, most, bold, told)
        return SearchEnds(w.u[: len(u)].copy(), told, int(status), float(error), int(steps))

    def residual(self, numbers: Numbers, point: int, u: Any) -> Any:
        """G at `u` at one point."""
        w = self._at(numbers, point, u)
        with np.errstate(all="ignore"):
            evaluate(w, False)
        return w.residual[: len(u)].copy()

    def _at(self, numbers: Numbers, point: int, u: Any) -> SearchState:
        """The state with the numbers of a point and these unknowns."""
        w, row = self.state, Numbers(*(a[point : point + 1] for a in numbers)).rows[0]
        w.base[: len(row)], w.u[: len(u)] = row, u
        return w
