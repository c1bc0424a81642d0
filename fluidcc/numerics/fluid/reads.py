"""Looking up the past: which data, sent when, is what a path delivers now.

A read node inverts one queue. Its entry time theta solves W(theta) = S(T), where T is the departure
time, S the work the link can do up to a time, and W = S + backlog: first in, first out. Nodes form
chains backwards along a route, and equal chains are shared. With frozen delays theta is T minus a
constant.

A breaking point is met but for the resolution of time. No record is extrapolated that far: a very
short one would give anything.

What a queue does to what passes is a function each, which the fused steps use too (see
`fluidcc.simulation.fused`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.layout import at

from ..compiling import njit
from ..fluid import state as s

_INLINE: dict[str, Any] = {"fastmath": {"arcp", "contract"}, "forceinline": True}
EARLY = 0.6  # share of a step in which breaking points lie at its start, and else at its end
ROUNDING = 16.0 * 2.220446049250313e-16  # of a product of ratios along a path

# product of D' (FIFO) or sum of q' (frozen) down a path, products of 1 - loss, of 1 - mark (part of
# the former where nobody tells them apart) and of departures over arrivals, sums of prices and of
# queueing delays (frozen)
Passed = tuple[float, float, float, float, float, float]
NOTHING, NOTHING_FROZEN = (1.0, 1.0, 1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 1.0, 1.0, 0.0, 0.0)


@njit(**_INLINE)
def quartic(o: s.Floats, u: float) -> float:
    """Value at `u` of the quartic whose coefficients stand at `o`."""
    return o[0] + rise(o[1], o[2], o[3], o[4], u)


@njit(**_INLINE)
def rise(b: float, c: float, d: float, e: float, u: float) -> float:
    """By how much a quartic with these coefficients of u, u^2, u^3, u^4 rises from 0 to `u`."""
    return u * (b + u * (c + u * (d + u * e)))


@njit(**_INLINE)
def area(o: s.Floats, u: float) -> float:
    """Integral from 0 to `u` of the quartic whose coefficients stand at `o`."""
    c, d, e = o[2] * (1.0 / 3.0), o[3] * 0.25, o[4] * 0.2
    return u * (o[0] + u * (o[1] * 0.5 + u * (c + u * (d + u * e))))


@njit(**_INLINE)
def slope(b: float, c: float, d: float, e: float, u: float) -> float:
    """How steep it is there."""
    return b + u * (2.0 * c + u * (3.0 * d + u * 4.0 * e))


@njit()
def resolution(run: s.State, time: float) -> float:
    """The difference of two instants at `time` that is none."""
    return run.time_tol * max(run.natural, abs(time))


@njit()
def work(run: s.State, link: int, time: float, early: float = 0.0) -> tuple[float, float]:
    """The work the link can have done at `time` [bit], and its capacity then [bit/s].

    A new capacity holds from `early` before its time on: the resolution of time where the limit
    from the right is asked for, and minus that where the limit from the left is: of an instant a
    rounding error beside the change it is known on which side it lies.
    """
    first = run.segment_start[link]
    k = run.segment_start[link + 1] - 1
    while k > first and time + early < run.segment_time[k]:
        k -= 1
    c = run.segment_capacity[k]
    return run.segment_work[k] + c * (time - run.segment_time[k]), c


# --- records and their parts ----------------------------------------------------------------------


@njit()
def record_of(run: s.State, number: int) -> s.Floats:
    """Record `number` of the history."""
    return at(run.ring, (number & run.ring_mask) * run.record_size)


@njit()
def link_of(record: s.Floats, link: int) -> s.Floats:
    """What a record has of a link."""
    return at(record, s.RLINKS + link * s.LSIZE)


@njit()
def rate_of(run: s.State, record: s.Floats, slot: int) -> s.Floats:
    """The quartic in a record of an aggregate of rates, or after those of an own rate."""
    return at(record, s.RLINKS + run.n_links * s.LSIZE + 5 * slot)


@njit()
def acted_place(run: s.State, act: int) -> int:
    """Where in a record the quartics of acting link `act` begin, what it drops first."""
    own = run.n_aggregates + run.n_own_rates + s.XSIZE * act
    return s.RLINKS + run.n_links * s.LSIZE + 5 * own


@njit()
def acted_of(run: s.State, record: s.Floats, act: int) -> s.Floats:
    """These quartics."""
    return at(record, acted_place(run, act))


# --- the record that is looked for ----------------------------------------------------------------


@njit(**_INLINE)
def _begins(record: s.Floats, link: int) -> float:
    """The work W of a link where a record begins; its time for link -1."""
    if link < 0:
        return record[s.RT0]
    block = link_of(record, link)
    return block[s.LS0] + block[s.LB]


@njit()
def find(
    run: s.State, link: int, k: int, target: float, tol: float, last: int
) -> tuple[int, float, float]:
    """The record in which the link's W, or for link -1 the time, reaches `target`, searched from
    `k`: its number and range.
    """
    k = min(k, last)
    low, high = -np.inf, np.inf
    while k < last:
        high = _begins(record_of(run, k + 1), link)
        if target - tol < high:
            break
        k += 1
        high = np.inf
    while k > run.oldest:
        low = _begins(record_of(run, k), link)
        if target + tol >= low:
            break
        k -= 1
        high = low
        low = -np.inf
    return k, low, high


@njit(**_INLINE)
def near(
    run: s.State,
    link: int,
    k: int,
    record: s.Floats,
    low: float,
    high: float,
    target: float,
    tol: float,
    last: int,
) -> tuple[int, s.Floats, float, float]:
    """The same and the record itself, searched only beyond the range of the one before."""
    if target - tol >= high or target + tol < low:
        k, low, high = find(run, link, k, target, tol, last)
        record = record_of(run, k)
    return k, record, low, high


# --- the place in it ------------------------------------------------------------------------------


@njit(**_INLINE)
def invert(block: s.Floats, target: float) -> float:
    """Return the local position u in a record where W(u) = target.

    One step of Halley's method, which triples the number of correct digits, and one of Newton's,
    which doubles it, do for all but strange quartics.
    """
    # what the link can do in the step, beside which nothing that arrives is no slope
    whole = block[s.LCH]
    top = target - block[s.LS0]
    if block[s.LMODE] == s.EMPTY:
        return (top - block[0]) / whole
    b1, b2, b3, b4 = block[1] + whole, block[2], block[3], block[4]
    rhs, total = top - block[0], b1 + b2 + b3 + b4
    u = rhs / total
    g, steep = rise(b1, b2, b3, b4, u) - rhs, slope(b1, b2, b3, b4, u)
    bend = b2 + u * (3.0 * b3 + u * 6.0 * b4)  # half of the second derivative
    u -= g * steep / (steep * steep - g * bend)
    steep = slope(b1, b2, b3, b4, u)
    du = (rise(b1, b2, b3, b4, u) - rhs) / steep
    u -= du
    fine = (abs(du) < 1e-6) & (steep > 1e-3 * total) & (total > 1e-14 * whole)
    # a backlog is not negative: theta <= T
    return u if fine & (u * whole <= top) else _search(block, target)


@njit(**_INLINE)
def entered(record: s.Floats, block: s.Floats, target: float, timed: bool) -> tuple[float, float]:
    """Where in a record the W of the link whose `block` that is, or if `timed` the time, is
    `target`: the local position within the record, and the time.
    """
    if timed:
        u = (target - record[s.RT0]) * record[s.RINVH]
    else:
        u = invert(block, target)
    return min(max(u, 0.0), 1.0), record[s.RT0] + u * record[s.RH]


@njit()
def _search(block: s.Floats, target: float) -> float:
    """The same by Newton inside a bracket."""
    b1, b2, b3, b4 = block[1] + block[s.LCH], block[2], block[3], block[4]
    rhs = target - block[s.LS0] - block[0]
    top, total = (rhs + block[0]) / block[s.LCH], b1 + b2 + b3 + b4
    if total <= 1e-14 * block[s.LCH]:  # nothing arrived while the queue was busy: the largest theta
        return min(1.0, top)
    if rhs <= 0.0 and b1 <= 1e-3 * total:  # before it by rounding, and next to nothing arrives
        return 0.0
    u = rhs / total
    for _ in range(12):
        steep = slope(b1, b2, b3, b4, u)
        if steep <= 1e-3 * total:
            return root(b1, b2, b3, b4, rhs, min(u, 0.0) - 1.0, max(min(1.0, top), 0.0))
        du = (rise(b1, b2, b3, b4, u) - rhs) / steep
        u -= du
        if abs(du) < 1e-7:  # the convergence is quadratic, and W nearly linear
            break
    return min(u, top)


@njit()
def root(b: float, c: float, d: float, e: float, level: float, low: float, high: float) -> float:
    """Where the rise of a quartic passes `level` between two places, beyond which it is on the side
    that it has at `high`: by bisection, to the last bits.
    """
    above = rise(b, c, d, e, high) > level
    for _ in range(80):
        u = 0.5 * (low + high)
        if (rise(b, c, d, e, u) > level) == above:
            high = u
        else:
            low = u
    return high


# --- what a queue does to what passes -------------------------------------------------------------


@njit(**_INLINE)
def stretch(b: s.Floats, y: float, c: float, inverse: float) -> float:
    """D' of the queue whose block stands at `b`, for arrivals `y` and the capacity `c` when they
    leave.
    """
    mode, let_in = b[s.LMODE], b[s.LC]
    full = mode == s.FULL
    let_in = (let_in if full else y) * inverse
    return let_in if full | (mode == s.BUSY) else 1.0


@njit(**_INLINE)
def drift(b: s.Floats, y: float, inverse: float) -> float:
    """q' of the queue whose block stands at `b`, for frozen delays."""
    if b[s.LMODE] == s.BUSY:
        return (y - b[s.LC]) * inverse
    return 0.0


@njit(**_INLINE)
def keep(b: s.Floats, y: float, c: float, buffer: float) -> float:
    """What is not lost of the arrivals."""
    mode = b[s.LMODE]
    if mode == s.FULL:
        return b[s.LC] / y if y > b[s.LC] else 1.0
    if mode == s.HELD:
        return c / y if y > c and b[0] >= buffer else 1.0
    return 1.0


@njit(**_INLINE)
def thinned(b: s.Floats, y: float, c: float, dropped: float) -> float:
    """Departures over what came, of a queue that lets in `y` of it and not what is `dropped`."""
    come, mode = y + dropped, b[s.LMODE]
    if mode == s.BUSY or mode == s.FULL:
        return c / come if come > 0.0 else 0.0
    if mode == s.HELD and y > 0.0 and (b[0] > 0.0 or y > c):
        return c / y * share(y, dropped)
    return share(y, dropped)


@njit(**_INLINE)
def share(let_in: float, dropped: float) -> float:
    """What is let in of what comes."""
    return let_in / (let_in + dropped) if let_in + dropped > 0.0 else 1.0


@njit(**_INLINE)
def lost(kept: float) -> float:
    """The loss or mark ratio of a path that lets through `kept`: 0 where it differs from that by
    rounding alone.
    """
    ratio = 1.0 - kept
    return ratio if abs(ratio) > ROUNDING else 0.0


@njit(**_INLINE)
def apart(record: s.Floats, block: s.Floats, act: int, u: float, gives: int) -> tuple[float, float]:
    """What a link lets into its queue of what enters at `u` of a record, and what it leaves
    unmarked of that; a record has only what becomes of both.
    """
    both = 1.0 - quartic(at(block, s.LMARK), u)
    if gives & s.MARKS == 0:
        return both, 1.0
    if gives & s.DROPS == 0:
        return 1.0, both
    through = share(quartic(at(block, s.LY), u), quartic(at(record, act), u))
    if gives & s.MIXED:
        return through, both
    return through, min(both / through, 1.0) if through > 0.0 else 1.0


@njit(**_INLINE)
def passed(
    record: s.Floats,
    block: s.Floats,
    act: int,
    u: float,
    c: float,
    inverse: float,
    buffer: float,
    up: Passed,
    frozen: bool,
    marks: bool,
    gives: int,
    prices: bool,
) -> Passed:
    """What a queue does to what enters it at `u` of a record, on top of what the rest of its path
    did.

    `block` is what the record has of the link, and `act` where it has what the link drops, or 0;
    `gives` is what the link gives it, 0 where nobody tells marks from losses; `c` is the capacity
    when it leaves, and `inverse` one over that, or with frozen delays over that when it enters.
    """
    change, kept, unmarked, through, price, wait = up
    let_in = 1.0
    y = quartic(at(block, s.LY), u)
    kept *= keep(block, y, c, buffer)
    if marks:
        let_in, plain = apart(record, block, act, u, gives)
        kept *= let_in
        unmarked *= plain
    if prices:
        price += quartic(at(block, s.LPRICE), u)
    if frozen:
        wait += quartic(block, u) * inverse
        return change + drift(block, y, inverse), kept, unmarked, through, price, wait
    dropped = quartic(at(record, act), u) if act else 0.0
    through *= thinned(block, y, c, dropped)
    if gives & s.ALONE:
        through *= let_in
    return change * stretch(block, y, c, inverse), kept, unmarked, through, price, wait


@njit(**_INLINE)
def pick(condition: bool, a: float, b: float) -> float:
    """`a` if the condition holds, else `b`; without a branch in the text that calls it."""
    return a if condition else b


@njit(**_INLINE)
def norm(
    worst: float, value: float, atol: float, rtol: float, before: float, after: float
) -> float:
    """The larger of `worst` and |value| over its tolerance; infinite once there was a NaN."""
    ratio = abs(value) / (atol + rtol * max(abs(before), abs(after)))
    if ratio > worst:
        return ratio
    return worst if ratio == ratio else np.inf


# --- all nodes ------------------------------------------------------------------------------------


@njit()
def read_list(
    run: s.State, nodes: s.Floats, count: int, cursors: s.Floats, now: float, right: int, last: int
) -> int:
    """Evaluate the `count` nodes whose numbers are in `nodes`, parents before their children, at
    time `now`.

    Each starts at its cursor in `cursors` and leaves its new one in `run.cursor`. The sizes and
    arrays are taken out of the loop, since the compiler cannot know that the stores leave them
    alone. Return 1 if a node looked into the step in progress.
    """
    frozen, prices, marks, acts = run.frozen > 0, run.pricing > 0, run.marking > 0, run.n_acting
    parents, links, found, offset = run.node_parent, run.node_link, run.cursor, run.node_offset
    capacity, entry, places = run.capacity, run.entry_time, run.entry_place
    stretches, keeps, plain = run.path_stretch, run.path_kept, run.path_unmarked
    throughs, charges, waits = run.path_passed, run.path_price, run.path_wait
    buffer, gives, lates = run.buffer, run.node_gives, run.node_late
    tolt = resolution(run, now)
    begun = run.t + tolt
    early = tolt if right or now - run.t < EARLY * run.h else -tolt
    inside = 0
    for m in range(count):
        n = nodes[m]
        parent, link, late = parents[n], links[n], lates[n]
        depart = (now if parent < 0 or frozen else entry[parent]) - offset[n]
        c, target, tol, of = capacity[link], depart, tolt, -1
        if not (frozen or parent == s.TOLD or late == s.MARK_ONLY):
            of = link
            target, c = work(run, link, depart, early)
            tol = tolt * c
        sought, slack = (target + tol, 0.0) if right else (target, tol)
        k = find(run, of, cursors[n], sought, slack, last)[0]
        record = record_of(run, k)
        block = link_of(record, link)
        u, theta = entered(record, block, target, of < 0)
        found[n], places[n], entry[n] = k, u, theta
        inside |= k >= run.n_records or theta > begun
        up = NOTHING_FROZEN if frozen else NOTHING
        if parent >= 0:
            up = (
                stretches[parent], keeps[parent], plain[parent], throughs[parent], charges[parent],
                waits[parent],
            )  # fmt: skip
        act = 0
        if acts and run.acting[link] >= 0 and gives[n] & s.ALONE == 0:
            act = acted_place(run, run.acting[link])
        if late == s.MARK_ONLY:
            plainly = apart(record, block, act, u, run.gives[link])[1]
            change, kept, unmarked, through, charge, wait = up
            kept, unmarked = (kept, unmarked * plainly) if run.apart else (kept * plainly, unmarked)
            stretches[n], keeps[n], plain[n], throughs[n] = change, kept, unmarked, through
            charges[n], waits[n] = charge, wait
            continue
        inverse = 1.0 / (block[s.LC] if frozen else c)
        stretches[n], keeps[n], plain[n], throughs[n], charges[n], waits[n] = passed(
            record, block, act, u, c, inverse, buffer[link], up, frozen, marks and late == 0,
            gives[n], prices,
        )  # fmt: skip
        if late == s.WITHOUT_MARK:
            keeps[n] *= apart(record, block, act, u, run.gives[link])[0]
    return inside


@njit()
def read_nodes(run: s.State, now: float, right: int, last: int) -> int:
    """Evaluate every node but those of lags at `now`; return 1 if one of them looked into the step
    in progress.
    """
    count = run.n_nodes - run.n_lags
    return read_list(run, run.every_node, count, run.cursor, now, right, last)
