"""States that keep account of the round trip, or of what is under way, where what a source hears
leaps.

While a router lets nothing into a queue that drains, nothing leaves that entered meanwhile: what
was sent in that time is heard of at one instant, when the next datum comes. The round trip then
falls at once, and what was under way, which is lost, no longer is. A flow of such a state has
1/(1 + edot) in it, which is infinite there for no time at all: its integral is what is put in here.

What an account of the round trip is, is known at the end of each step: it has moved as the round
trip has. The error that the step has made in it is given back, or the errors of all steps would
stay in it for ever. What is under way is known no better than by integrals of what has been
recorded, whose errors a clock that forgets nothing would keep: it is left as it is, but for steps
in which much is heard at once. Before a router lets nothing in it lets ever less in: 1/(1 + edot)
grows as one over a square root, of which a step sees but a part.
"""

from __future__ import annotations

import math

from fluidcc.numerics.layout import at, copy

from ..compiling import njit
from ..fluid import state as s
from .breaking_points import forward_class
from .reads import area, norm, rate_of, read_nodes, record_of, resolution

# Errors of a step in an account, over the tolerance, that are given back: what is off by more has
# been held, or has a kink in it.
_OWN = 10.0
_RUSH = 2.0  # seconds heard of in one, beyond which the integrals of what was sent are better


@njit()
def keep_heard(run: s.State) -> None:
    """Keep until when each class has heard of what was sent, by the limit from the left now."""
    copy(run.cursor, run.cursor_start, run.n_nodes)
    read_nodes(run, run.t, 0, run.n_records - 1)
    for k in range(run.n_classes):
        run.heard[k] = max(run.entry_time[run.leaf[k]], run.heard[run.n_classes + k])


@njit(entry=True)
def sent(run: s.State, slot: int, record: int, since: float, until: float) -> float:
    """What a flow that reads its own rate has sent between two times, of which the later one lies
    in `record` [bit].
    """
    total = 0.0
    while record >= run.oldest:
        r = record_of(run, record)
        begin, inverse = r[s.RT0], r[s.RINVH]
        o = rate_of(run, r, run.n_aggregates + slot)
        first = max(since - begin, 0.0) * inverse
        last = min((until - begin) * inverse, 1.0)
        total += r[s.RH] * (area(o, last) - area(o, first))
        if begin <= since:
            break
        record -= 1
    return total


@njit()
def _hear(run: s.State) -> None:
    """Keep until when each class has heard, which is never taken back: of a queue that lets hardly
    anything in, rounding may find an earlier time.
    """
    for k in range(run.n_classes):
        heard = run.heard[run.n_classes + k]
        run.heard[run.n_classes + k] = max(heard, run.entry_time[run.leaf[k]])


@njit()
def settle(run: s.State) -> bool:
    """Bring the accounts of flows that have just heard of a stretch of time up to its end, after
    `start`; return whether there were any.
    """
    changed = False
    for j in range(run.n_accounts):
        row, part = at(run.account, 2 * j), at(run.account_part, 3 * j)
        flow = row[0]
        k = run.flow_class[flow]
        leaf = run.leaf[k]
        before, after = run.heard[k], run.entry_time[leaf]
        if run.flow_on[flow] != s.ON or after - before <= 10.0 * resolution(run, run.t):
            continue
        change = -part[0] * (after - before)
        if part[1] != 0.0:
            record = run.cursor[leaf]
            change -= part[1] * sent(run, run.own_rate[flow], record, before, after)
        run.y[row[1]] = max(run.y[row[1]] + change, part[2])
        for m in range(run.n_switches if run.locate else 0):
            if run.switch_owner[m] == flow and run.switch_rule[m] < 0:
                run.switch[m] = s.UNDECIDED
        forward_class(run, run.first_link[flow], 0)
        changed = True
    _hear(run)
    return changed


@njit()
def give_back(run: s.State, end: float) -> None:
    """Bring accounts of the round trip, and where much was heard those of what is under way, to
    what they are at the end of the step just taken.
    """
    nc, found = run.n_classes, run.n_leaping > 0
    for j in range(run.n_accounts):
        found = found or at(run.account_part, 3 * j)[1] == 0.0
    if not found:
        return
    copy(run.cursor, run.cursor_start, run.n_nodes)
    read_nodes(run, end, 0, run.n_records)
    for j in range(run.n_accounts):
        row, part = at(run.account, 2 * j), at(run.account_part, 3 * j)
        flow, z = row[0], row[1]
        k, took = run.flow_class[flow], end - run.t
        leaf, begun = run.leaf[k], run.heard[nc + k]
        heard = max(begun, run.entry_time[leaf])
        change, most = part[0] * (took - (heard - begun)), _OWN
        if part[1] != 0.0:
            if not _RUSH * took < heard - begun < math.inf:
                continue
            own, most = run.own_rate[flow], math.inf
            change += part[1] * sent(run, own, run.n_records, run.t, end)
            change -= part[1] * sent(run, own, run.cursor[leaf], begun, heard)
        before, now = run.y[z], run.y_end[z]
        error = before + change - now
        # held, or before the first acknowledgement, it has no slope
        moving = run.slopes[z] != 0.0 and run.slopes[6 * run.n_states + z] != 0.0
        if moving and norm(0.0, error, run.atol[z], run.rtol, before, now) <= most:
            run.y_end[z] = max(now + error, part[2])
    _hear(run)
