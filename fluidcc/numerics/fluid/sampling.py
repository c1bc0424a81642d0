"""Samples at given times, taken inside the step, so that no polynomial of a single flow is ever
stored.

A sample belongs to the step that begins at or before it: at a jump it shows the value after. Flows
are integrated at the clock of their first queue, so that a flow's sample at t is taken at t +
access delay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.layout import at

from ..compiling import njit
from ..fluid import state as s
from .breaking_points import finish
from .reads import (
    acted_of,
    acted_place,
    apart,
    area,
    keep,
    link_of,
    lost,
    quartic,
    read_list,
    record_of,
    resolution,
    rise,
    share,
    work,
)  # fmt: skip
from .records import fitted_of, state_quartic
from .rhs import drops

_FAST: dict[str, Any] = {"fastmath": {"arcp", "contract"}}
_INLINE: dict[str, Any] = {**_FAST, "forceinline": True}


@njit(**_FAST)
def sample_step(run: s.State, final: bool) -> None:
    """Take every sample inside the accepted step; `final` includes its end."""
    end = np.inf if final else run.t + run.h
    for k in range(run.n_classes):
        shift = run.access_delay[run.class_flow[run.class_flow_start[k]]]
        first = run.class_sample[k]
        j = _first_sample(run, first, end - shift)
        if j > first:
            _path(run, k, first, j, shift)
            for m in range(run.class_flow_start[k], run.class_flow_start[k + 1]):
                _flow(run, run.class_flow[m], first, j, shift)
            run.class_sample[k] = j
    first = run.link_sample
    j = _first_sample(run, first, end)
    if j > first:
        _links(run, first, j)
        run.link_sample = j


@njit(**_FAST)
def _first_sample(run: s.State, first: int, end: float) -> int:
    """Return the number of the first sample, from `first` on, that is at `end` or after it."""
    size, ts, j = run.n_samples, run.sample_time, first
    while j < size and ts[j] < end:
        j += 1
    return j


@njit(**_INLINE)
def _position(time: float, start: float, inverse: float) -> float:
    """Return where `time` is in a step from `start`, of length one over `inverse`: between 0 and
    1.
    """
    return min(max((time - start) * inverse, 0.0), 1.0)


# --- flows ----------------------------------------------------------------------------------------


@njit(**_FAST)
def rate_at(run: s.State, i: int, u: float) -> float:
    """Return the rate of flow `i`, which is none of its states, at `u` of the step.

    It is on the quartic through values at u = 0, 1/4, 1/2, 3/4, 1. Where that falls below 0, which
    only a quartic does between values that do not, the straight line between two of the values is
    taken.
    """
    o, stride = at(run.node_rate, i), run.n_flows
    if not run.refit:
        return o[0]
    a, b, c, d, e = fitted_of(o, stride)
    v = a + rise(b, c, d, e, u)
    if v >= 0.0:
        return v
    k = min(int(4.0 * u), 3)
    before, after = o[k * stride], o[(k + 1) * stride]
    return before + (4.0 * u - k) * (after - before)


@njit(**_FAST)
def _state(run: s.State, n: int, first: int, end: int, shift: float, target: s.Floats) -> None:
    """Put samples `first` to `end` of state `n` into the row at `target`."""
    a, b, c, d, e = state_quartic(run, n)
    ts, start, inverse = run.sample_time, run.t - shift, 1.0 / run.h
    for j in range(first, end):
        u = _position(ts[j], start, inverse)
        target[j] = a + rise(b, c, d, e, u)


@njit(**_FAST)
def _flow(run: s.State, i: int, first: int, end: int, shift: float) -> None:
    """Take samples `first` to `end` of a flow: its states and its rate."""
    nf, out, size = run.n_flows, run.samples, run.n_samples
    states = at(out, (nf + s.SCLASSROWS * run.n_classes + s.SLINKROWS * run.n_links) * size)
    off, step, rate = run.flow_state[i], run.flow_stride[i], run.rate_state[i]
    target, on = at(out, i * size), run.flow_on[i] != s.OFF
    for n in range(off, off + run.flow_states[i] * step, step):
        _state(run, n, first, end, shift, at(states, n * size))
    ts, start, inverse = run.sample_time, run.t - shift, 1.0 / run.h
    for j in range(first, end):
        if not on:
            target[j] = 0.0
        elif rate >= 0:
            target[j] = states[rate * size + j]
        else:
            target[j] = rate_at(run, i, _position(ts[j], start, inverse))


# --- paths ----------------------------------------------------------------------------------------


@njit(**_FAST)
def _path(run: s.State, k: int, first: int, end: int, shift: float) -> None:
    """Take samples `first` to `end` of the delay, loss, marks and price of class `k`, by the read
    nodes of its path.
    """
    path = run.path_start[k]
    count, nodes = run.path_start[k + 1] - path, at(run.path_node, path)
    leaf, ts = nodes[count - 1], run.sample_time
    row, step = at(run.samples, (run.n_flows + k) * run.n_samples), run.n_classes * run.n_samples
    # the part of the delay that queues do not change
    constant = shift + (run.class_delay[k] if run.frozen else -run.class_lag[k])
    cursors = run.cursor_start  # of the start of the step
    for j in range(first, end):
        now = ts[j] + shift
        read_list(run, nodes, count, cursors, now, 1, run.n_records)
        cursors = run.cursor  # each sample goes on from the one before
        delay = run.path_wait[leaf] if run.frozen else now - run.entry_time[leaf]
        row[s.SDELAY * step + j] = constant + delay
        row[s.SEITHER * step + j] = lost(run.path_kept[leaf] * run.path_unmarked[leaf])
        row[s.SPRICE * step + j] = run.path_price[leaf] if run.pricing else 0.0
        kept, unmarked = run.path_kept[leaf], run.path_unmarked[leaf]
        if run.marking and not run.apart:
            kept, unmarked = _down_the_path(run, nodes, count, now)
        row[s.SLOSS * step + j] = lost(kept)
        row[s.SMARK * step + j] = lost(unmarked)


@njit(**_FAST)
def _down_the_path(run: s.State, nodes: s.Ints, count: int, now: float) -> tuple[float, float]:
    """Return what a path keeps of what enters it, and what it leaves unmarked of that, where its
    nodes have been read for `now`.
    """
    kept, unmarked = 1.0, 1.0
    for m in range(count):
        n = nodes[m]
        parent, link = run.node_parent[n], run.node_link[n]
        record, u, c = record_of(run, run.cursor[n]), run.entry_place[n], run.capacity[link]
        block, late = link_of(record, link), run.node_late[n]
        through, plain = _apart(run, link, record, block, u)
        if late == s.MARK_ONLY:
            unmarked *= plain
            continue
        if not run.frozen:
            next_in = now if parent < 0 else run.entry_time[parent]
            c = work(run, link, next_in - run.node_offset[n], resolution(run, now))[1]
        kept *= keep(block, quartic(at(block, s.LY), u), c, run.buffer[link])
        kept *= through
        unmarked *= 1.0 if late else plain
    return kept, unmarked


@njit(**_INLINE)
def _apart(
    run: s.State, link: int, record: s.Floats, block: s.Floats, u: float
) -> tuple[float, float]:
    """The same of what enters a link at `u` of a record, before its queue."""
    act = acted_place(run, run.acting[link])
    return apart(record, block, act, u, run.gives[link])


# --- links ----------------------------------------------------------------------------------------


@njit(**_FAST)
def _links(run: s.State, first: int, end: int) -> None:
    """Take samples `first` to `end` of all links, and of the states of their laws."""
    size, nl, ts, start, inverse = run.n_samples, run.n_links, run.sample_time, run.t, 1.0 / run.h
    rows = at(run.samples, (run.n_flows + s.SCLASSROWS * run.n_classes) * size)
    states = at(rows, s.SLINKROWS * nl * size)
    for link in range(nl):
        for j in range(first, end):
            u = _position(ts[j], start, inverse)
            _link(run, link, u, at(rows, link * size + j), nl * size)
    for n in range(run.first_backlog + nl, run.n_states):
        _state(run, n, first, end, 0.0, at(states, n * size))


@njit(**_INLINE)
def _link(run: s.State, link: int, u: float, o: s.Floats, step: int) -> None:
    """Take one sample of a link, at `u` of the step: into `o`, and the next kinds `step` apart."""
    block, h = link_of(record_of(run, run.n_records), link), run.h
    c, mode = block[s.LC], block[s.LMODE]
    backlog, arrived = quartic(block, u), quartic(at(block, s.LY), u)
    backlog = backlog if backlog > 0.0 else 0.0
    wait = backlog / c
    if backlog > 0.0 and run.segment_start[link + 1] - run.segment_start[link] > 1:
        wait = finish(run, link, block[s.LS0] + u * block[s.LCH] + backlog) - (run.t + u * h)
    o[s.SBACKLOG * step] = backlog
    o[s.SQDELAY * step] = wait
    o[s.SDEPART * step] = arrived if mode == s.EMPTY else c
    if run.pricing:
        o[s.SLPRICE * step] = quartic(at(block, s.LPRICE), u)
    entered, gone, ratio, through, unmarked = h * area(at(block, s.LY), u), 0.0, 0.0, 1.0, 1.0
    if run.marking:
        through, unmarked = _apart(run, link, record_of(run, run.n_records), block, u)
    o[s.SLDROP * step] = 1.0 - through
    o[s.SLMARK * step] = 1.0 - unmarked
    if mode == s.FULL:
        gone, ratio = entered - u * h * c, 1.0 - c / arrived if arrived > c else 0.0
    if drops(run, link):
        dropped = acted_of(run, record_of(run, run.n_records), run.acting[link])
        rate, total = quartic(dropped, u), h * area(dropped, u)
        ratio = 1.0 - share(arrived, rate) * (1.0 - ratio)
        arrived, entered, gone = arrived + rate, entered + total, gone + total
    o[s.SARRIVAL * step] = arrived
    o[s.SENTERED * step] = run.totals[link] + entered
    o[s.SLLOSS * step] = ratio
    o[s.SLOST * step] = run.totals[run.n_links + link] + gone


@njit(**_FAST)
def add_totals(run: s.State) -> None:
    """Add the accepted step to what each link has taken in and lost."""
    taken, gone, h = run.totals, at(run.totals, run.n_links), run.h
    for link in range(run.n_links):
        block = link_of(record_of(run, run.n_records), link)
        entered = h * area(at(block, s.LY), 1.0)
        taken[link] += entered
        if block[s.LMODE] == s.FULL:
            gone[link] += entered - block[s.LCH]
        if drops(run, link):
            act = acted_of(run, record_of(run, run.n_records), run.acting[link])
            dropped = h * area(act, 1.0)
            taken[link] += dropped
            gone[link] += dropped
