"""The own past of sources: states and signals a lag ago, out of the history.

A record has a quartic of each state or signal whose past somebody has. They are on the clock of the
flow, as all that is a flow's: what a flow was a lag ago is in the record of now less the lag. Each
lag of each flow is a read node, the last of all, so that its place in the history is known and kept
as theirs are.

Before a flow starts its past is what it was at its start, which is kept apart.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.layout import at

from ..compiling import njit
from ..fluid import state as s
from .calls import call_kernel
from .reads import entered, find, quartic, record_of, resolution

KEPT = 2.0  # lags back to which the history is kept: by so much a lag may grow within itself


@njit()
def past_of(run: s.State, record: s.Floats, slot: int) -> s.Floats:
    """The quartic in a record of what is remembered of a flow."""
    before = run.n_aggregates + run.n_own_rates + s.XSIZE * run.n_acting
    return at(record, s.RLINKS + run.n_links * s.LSIZE + 5 * (before + slot))


@njit()
def _now(run: s.State, oz: s.Floats, slot: int) -> float:
    """What a state, of those at `oz`, or a signal is now."""
    source = run.past_source[slot]
    return oz[source] if source >= 0 else run.signals[-1 - source]


@njit()
def _lags(run: s.State, oz: s.Floats) -> None:
    for g in range(run.n_lag_groups):
        own = at(run.lag_group, 3 * g)
        j, lags = at(run.group, 8 * own[1]), at(run.lag, own[2])
        call_kernel(
            own[0], j[2], run.n_flows, at(oz, j[3]), at(run.signals, j[1]),
            at(run.parameters, j[5]), at(run.switch, j[6]), run.scratch, lags, run.switch_value, 0,
        )  # fmt: skip


@njit()
def look_back(run: s.State, now: float, oz: s.Floats, right: int, last: int) -> int:
    """Put what sources were and knew a lag before `now` among their signals, for states at `oz`;
    return 1 if one of them looked into the step in progress.
    """
    _lags(run, oz)
    tol, inside, first = resolution(run, now), 0, run.n_nodes - run.n_lags
    for m in range(run.n_lags):
        n, i, lag = first + m, run.lag_flow[m], run.lag[m]
        begun = run.flow_begun[i] if run.flow_on[i] != s.OFF else now
        target = min(now - lag, now) if lag == lag else now
        fresh = now - begun <= tol
        early = target <= begun + tol
        target = min(max(target, begun), now)
        sought, slack = (target + tol, 0.0) if right else (target, tol)
        k = find(run, -1, run.cursor[n], sought, slack, last)[0]
        record = record_of(run, k)
        u, _ = entered(record, record, target, True)
        run.cursor[n], run.entry_place[n], run.entry_time[n] = k, u, target
        forgotten = lag != lag or record[s.RT0] > target + tol
        there = fresh or lag <= tol
        if not (there or early):
            inside |= k >= run.n_records or target > run.t + tol
        for r in range(run.recall_start[m], run.recall_start[m + 1]):
            place, slot = run.recall[2 * r], run.recall[2 * r + 1]
            if fresh:
                run.past_first[slot] = _now(run, oz, slot)
            if there:
                value = _now(run, oz, slot)
            elif early:
                value = run.past_first[slot]
            else:
                value = np.nan if forgotten else quartic(past_of(run, record, slot), u)
            run.signals[place] = value
    return inside


@njit()
def keep_signals(run: s.State, node: int) -> None:
    """Remember the signals whose past somebody has at one of the five nodes."""
    for slot in range(run.n_pasts):
        source = run.past_source[slot]
        if source < 0:
            run.node_past[node * run.n_pasts + slot] = run.signals[-1 - source]


@njit()
def oldest_wanted(run: s.State, end: float) -> int:
    """The oldest record that lags may still ask for after `end`."""
    oldest = run.n_records
    for m in range(run.n_lags):
        n = run.n_nodes - run.n_lags + m
        i = run.lag_flow[m]
        begun = run.flow_begun[i] if run.flow_on[i] != s.OFF else end
        want = max(end - KEPT * max(run.lag[m], end - run.entry_time[n]), begun)
        oldest = min(oldest, find(run, -1, run.cursor[n], want, 0.0, run.n_records - 1)[0])
    return oldest
