"""What happens at one instant: scheduled changes, landings of breaking points, changes of mode,
jumps and ticks.

After each of them the right-hand limits are found: arrivals, modes, and the first stage of the step
to come. Jumps and ticks change states at once, after these limits are known.

The order at one instant is that of the rows of JHY: ticks of links, ticks of sources, jumps of
links, jumps of sources. Ticks see what was known before any of them. Then jumps are looked for
until there are none. After each of these rounds all modes are decided afresh. What has changed is a
breaking point of order zero for all who will hear of it.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.layout import at, copy

from ..compiling import njit
from ..fluid import state as s
from .breaking_points import (
    NEVER,
    bend,
    emit,
    forward,
    forward_class,
    news,
    pop,
    recall,
    recall_class,
    send_kink,
    speak,
)
from .calls import call_kernel
from .modes import settle_links
from .reads import resolution, work
from .records import keep_node, linear_record
from .rhs import count_crossing, evaluate
from .slides import look_for_slides, other, turn

SAME = 10.0  # resolutions of time within which two jumps are at the same instant
# of HDUE: the condition has just become false, whatever its sign is by the error of the step
FELL = 2
QUICK = 4  # so many jumps of one kind at the same instant are without end


# --- right-hand limits ----------------------------------------------------------------------------


@njit()
def _decide(run: s.State, flipped: int, before: s.Floats, afresh: bool) -> int:
    """Decide switches: those undecided, and `afresh` also kinks that a jump carries over zero; how
    many change.

    `before` has the values of the switches before the jump. One that was on the other side
    already, as at an event that is located but for rounding, stays as it is, and so do those that
    have just `flipped`.
    """
    changed, told = 0, run.n_links
    for k in range(run.n_switches):
        mode, old, value = run.switch[k], before[k], run.switch_value[k]
        if mode == s.UNDECIDED:
            run.switch[k] = 1.0 if value > 0.0 else 0.0
            if value == 0.0:
                run.flip_time[k] = run.t
            changed += 1
            continue
        on = mode > 0.5
        if not afresh or on == (value > 0.0) or value == 0.0 or (old != 0.0 and on != (old > 0.0)):
            continue
        owner = run.switch_owner[k]
        if not run.is_kink[k] or (owner >= 0 and run.flow_on[owner] == s.OFF):
            continue
        if flipped >= run.n_links and (k == flipped - run.n_links or run.pending[k]):
            continue
        run.switch[k] = other(mode)
        run.flip_time[k] = run.t
        changed += 1
        told = send_kink(run, k, told)
    return changed


SWEEPS = 8
"""Times that modes are decided anew at one instant: a jump sets one switch of a law, that another,
and these a link's mode.
"""


@njit()
def start(run: s.State, flipped: int, jumped: bool) -> None:
    """Right-hand limits after a breaking point now: arrivals, modes, then the first stage.

    `flipped` is the link whose mode has just changed at an event, or the number of links plus that
    of the switch, or -1. `jumped` says that signals may have jumped from what switches were last
    computed of.
    """
    copy(run.cursor, run.cursor_start, run.n_nodes)
    for link in range(run.n_links):
        run.work_done[link] = work(run, link, run.t)[0]
    if run.counted:
        count_crossing(run)
    last = run.n_records - 1
    hops, before = run.hops_at_once, run.switched
    for sweep in range(SWEEPS + 3 * hops):
        copy(before, run.switch_value, run.n_switches)
        evaluate(run, run.t, run.y, run.slopes, 0, 1, last, 1)
        changed = settle_links(run, flipped)
        changed += _decide(run, flipped, before, run.locate > 0 and (jumped or sweep > 0))
        if run.n_slides:
            changed += look_for_slides(run)
        if not changed and sweep >= hops:
            break
        # what enters one link is at the next at once: look into the step to come, by the new modes
        if hops:
            keep_node(run, 0)
            linear_record(run, run.natural)
            last = run.n_records
    else:  # the step begins as the modes have it that were decided last
        evaluate(run, run.t, run.y, run.slopes, 0, 1, last, 0)
    keep_node(run, 0)
    copy(run.cursor_start, run.cursor, run.n_nodes)
    run.fresh = 1


@njit()
def leave_undecided(run: s.State, flow: int) -> None:
    """The switches of a flow are to be decided at the next `start`, if switches are located."""
    if run.locate:
        for k in range(run.n_switches):
            if run.switch_owner[k] == flow:
                run.switch[k] = s.UNDECIDED


# --- jumps and ticks ------------------------------------------------------------------------------


@njit()
def _log(run: s.State, number: int) -> None:
    o = at(run.log, 2 * run.n_logged)
    o[0] = run.t
    o[1] = number
    run.n_logged += 1


@njit()
def _on(run: s.State, row: s.Floats) -> bool:
    return not _of_source(row) or run.flow_on[row[s.HOWNER]] == s.ON


@njit()
def _of_source(row: s.Floats) -> bool:
    return row[s.HKIND] == s.SOURCE_TICK or row[s.HKIND] == s.SOURCE_JUMP


@njit()
def restart(run: s.State, flow: int) -> None:
    """Flow `flow` starts or stops: its ticks and jumps are as new."""
    for k in range(run.n_rules):
        row = at(run.rule, s.HSIZE * k)
        if _of_source(row) and row[s.HOWNER] == flow:
            row[s.HCOUNT] = -1
            row[s.HDUE] = 0
            run.rule_time[k] = np.inf


@njit()
def crossed(run: s.State, switch: int, landed: bool) -> bool:
    """Whether this switch is the condition of a jump, which is now due if the condition has become
    true.

    Not so where a state has `landed` on its bound just then: beyond it the condition may never be
    true. It is looked at again once the state is there exactly.
    """
    if run.n_rules == 0 or run.switch_rule[switch] < 0:
        return False
    k = run.switch_rule[switch]
    row = at(run.rule, s.HSIZE * k)
    if run.switch[switch] > 0.5:
        row[s.HDUE] = 0 if landed else 1
    else:
        row[s.HDUE] = FELL
        if run.t > run.rule_last[k]:
            row[s.HCOUNT] = 0
    return True


@njit()
def _compute(run: s.State, row: s.Floats) -> None:
    """New states in `scratch`, and two times in `rule_result`."""
    z, signals = row[s.HZ], run.signals if _of_source(row) else run.link_inputs
    call_kernel(
        row[s.HKERNEL], row[s.HN], row[s.HSU], at(run.y, z), at(signals, row[s.HU]),
        at(run.parameters, row[s.HP]), run.switch, at(run.scratch, z), run.rule_result,
        run.switch_value, row[s.HWANT],
    )  # fmt: skip


@njit()
def _change(run: s.State, k: int) -> None:
    """Take the new states over, decide the owner's switches anew, and send the jump on."""
    row = at(run.rule, s.HSIZE * k)
    z, owner = row[s.HZ], row[s.HOWNER]
    for j in range(row[s.HNZ]):
        run.y[z + j * row[s.HN]] = run.scratch[z + j * row[s.HN]]
    source = _of_source(row)
    if run.locate:
        told = owner if source else -1 - owner
        for m in range(run.n_switches):
            if run.switch_owner[m] == told and run.switch_rule[m] < 0:
                run.switch[m] = s.UNDECIDED
    if source:
        forward_class(run, run.first_link[owner], 0)
        recall(run, owner, 0, NEVER)
    else:
        forward(run, owner, 0)
        if row[s.HTELLS]:
            speak(run, owner, 0)
    _log(run, k)


@njit()
def _stop(run: s.State, code: int, k: int) -> int:
    run.code = code
    run.where = k
    return 1


@njit()
def _begin_ticks(run: s.State) -> int:
    """The first tick of each owner that has just started."""
    for k in range(run.n_rules):
        row = at(run.rule, s.HSIZE * k)
        if row[s.HCOUNT] >= 0 or not _on(run, row):
            continue
        row[s.HCOUNT] = 0
        if row[s.HKIND] == s.LINK_JUMP or row[s.HKIND] == s.SOURCE_JUMP:
            run.rule_time[k] = -np.inf
            continue
        _compute(run, row)
        period, phase = run.rule_result[0], run.rule_result[1]
        first = run.t + phase
        run.rule_time[k] = first
        run.rule_period[k] = period
        run.rule_base[k] = first
        if phase == period:  # then ticks are at multiples of the period to the last bit
            run.rule_base[k] = run.t
            row[s.HCOUNT] = 1
        if not run.t <= first < np.inf:
            run.rule_result[0] = phase
            return _stop(run, s.PERIOD, k)
    return 0


@njit()
def _ticks(run: s.State, tol: float) -> int:
    """Carry out the ticks that are due; how many, or -1."""
    done = 0
    for k in range(run.n_rules):
        row = at(run.rule, s.HSIZE * k)
        if row[s.HKIND] > s.SOURCE_TICK:
            break
        if not _on(run, row) or run.rule_time[k] > run.t + tol:
            continue
        _compute(run, row)
        period = run.rule_result[0]
        if not SAME * tol < period < np.inf:
            return -_stop(run, s.PERIOD, k)
        row[s.HCOUNT] += 1
        run.rule_time[k] = run.t + period
        if row[s.HCONST]:
            run.rule_time[k] = run.rule_base[k] + row[s.HCOUNT] * run.rule_period[k]
        _change(run, k)
        done += 1
    run.ticks += done
    return done


@njit()
def _wanted(run: s.State, k: int, tol: float) -> bool:
    """Whether jump `k` happens now; its switch follows its condition."""
    row = at(run.rule, s.HSIZE * k)
    switch = row[s.HSWITCH]
    g = run.switch_value[switch]
    due, held, fell = row[s.HDUE] == 1, row[s.HCOUNT] == 1, row[s.HDUE] == FELL
    row[s.HDUE] = 0
    if fell:
        return False
    run.switch[switch] = 1.0 if due or g > 0.0 else 0.0
    if not due and g <= 0.0:
        # a condition that was located is 0 but for the error of the step: only clearly below is it
        # false again
        if -g >= 4.0 * run.rule_gap[k]:
            row[s.HCOUNT] = 0
        return False
    waiting = run.rule_time[k] > run.t + tol
    if row[s.HONCE]:
        row[s.HCOUNT] = 1
        return not (held or waiting)
    return not waiting


@njit()
def _jump(run: s.State, k: int, tol: float) -> int:
    row = at(run.rule, s.HSIZE * k)
    last = at(run.rule_last, k)
    quick = run.t - last[0] <= SAME * tol
    row[s.HREPEAT] = row[s.HREPEAT] + 1 if quick else 0
    last[0] = run.t
    run.rule_gap[k] = max(0.0, -run.switch_value[row[s.HSWITCH]])
    if row[s.HREPEAT] >= QUICK:
        return _stop(run, s.ZENO, k)
    _compute(run, row)
    wait = run.rule_result[0]
    if not 0.0 <= wait < np.inf:
        return _stop(run, s.PERIOD, k)
    run.rule_time[k] = run.t + wait if wait > 0.0 else -np.inf
    _change(run, k)
    run.jumps += 1
    return 0


@njit()
def _jumps(run: s.State, tol: float) -> int:
    """Carry out the jumps whose condition holds; how many, or -1."""
    done = 0
    for k in range(run.n_rules):
        row = at(run.rule, s.HSIZE * k)
        if row[s.HKIND] <= s.SOURCE_TICK or not _on(run, row) or not _wanted(run, k, tol):
            continue
        if _jump(run, k, tol):
            return -1
        done += 1
    return done


@njit()
def _next_timer(run: s.State, tol: float) -> None:
    nearest = np.inf
    for k in range(run.n_rules):
        time = run.rule_time[k]
        if time > run.t + tol and time < nearest and _on(run, at(run.rule, s.HSIZE * k)):
            nearest = time
    run.next_rule = nearest


@njit()
def act(run: s.State) -> int:
    """All that happens now, after `start`. Return 0, or 1 with the reason in `code`."""
    if run.n_rules == 0:
        return 0
    tol = resolution(run, run.t)
    _log(run, -1)
    if _begin_ticks(run):
        return 1
    done = _ticks(run, tol)
    if done > 0:
        start(run, -1, True)
    while done >= 0:
        done = _jumps(run, tol)
        if done == 0:
            break
        if done > 0:
            start(run, -1, True)
    _next_timer(run, tol)
    return 1 if done < 0 else 0


# --- scheduled changes, landings and modes --------------------------------------------------------


@njit()
def _apply(run: s.State, kind: int, index: int, value: float, generation: int) -> None:
    """One scheduled change or landing now."""
    if kind == s.AT_LINK:
        forward(run, index, generation)
    elif kind == s.AT_CLASS:
        forward_class(run, run.class_link[index], generation + 1)
        recall_class(run, index, generation)
    elif kind == s.AT_PAST:
        flow = run.lag_flow[index]
        forward_class(run, run.first_link[flow], generation + 1)
        recall(run, flow, generation + 1, NEVER)
    elif kind == s.CAPACITY:
        run.capacity[index] = value
        forward(run, index, 0)
        if not run.frozen:
            emit(run, index, run.t, 0)
    else:
        _flow_change(run, kind, index, value)
        forward_class(run, run.first_link[index], 0)
        recall(run, index, 1, 1)


@njit()
def _flow_change(run: s.State, kind: int, i: int, value: float) -> None:
    if kind == s.FLOW_RATE:
        run.pattern_rate[i] = value
        run.signals[s.UNOISE * run.n_flows + i] = value
        return
    if kind == s.FLOW_RELEASE:
        run.flow_on[i] = s.ON
        return
    run.flow_on[i] = s.ON if kind == s.FLOW_ON else s.OFF
    run.flow_begun[i] = run.t
    off, step = run.flow_state[i], run.flow_stride[i]
    for k in range(run.flow_states[i]):  # a source starts anew each time
        run.y[off + k * step] = run.initial[off + k * step]
    leave_undecided(run, i)
    restart(run, i)


@njit(forceinline=True)
def due(run: s.State) -> bool:
    """Whether anything lands now, of which `arrive` takes care."""
    now = run.t + resolution(run, run.t)
    if run.n_landings > 0 and run.landing_time[0] <= now:
        return True
    return run.next_scheduled < run.n_scheduled and run.scheduled[2 * run.next_scheduled] <= now


@njit()
def arrive(run: s.State) -> int:
    """Handle all that lands now; return how many."""
    t = run.t
    tol = resolution(run, t)
    count = 0
    while run.next_scheduled < run.n_scheduled and run.scheduled[2 * run.next_scheduled] <= t + tol:
        k = run.next_scheduled
        run.next_scheduled = k + 1
        kind, index = run.scheduled_kind[2 * k], run.scheduled_kind[2 * k + 1]
        _apply(run, kind, index, run.scheduled[2 * k + 1], 0)
        count += 1
    while run.n_landings > 0 and run.landing_time[0] <= t + tol:
        kind, index, generation = pop(run)
        if news(run, kind, index, generation, tol):
            _apply(run, kind, index, 0.0, generation)
        count += 1
    if count:
        run.breaking_points += 1
    return count


@njit()
def next_break(run: s.State) -> float:
    stop = run.t_stop
    if run.next_scheduled < run.n_scheduled:
        stop = min(stop, run.scheduled[2 * run.next_scheduled])
    if run.n_landings > 0:
        stop = min(stop, run.landing_time[0])
    if run.next_rule <= stop + resolution(run, stop):  # a tick is met to the last bit
        return run.next_rule
    return stop


@njit()
def flip(run: s.State, index: int, mode: int) -> None:
    """Change a mode now, and the switches that change with it, and send the kink on."""
    run.events += 1
    nl = run.n_links
    if index < nl:
        run.mode[index] = mode
        if mode == s.EMPTY:
            run.y[run.first_backlog + index] = 0.0
        elif mode == s.FULL:
            run.y[run.first_backlog + index] = run.buffer[index]
        forward(run, index, 0)
        bend(run, index)
        return
    told, landed = -1, False
    for k in range(run.n_switches):
        if k == index - nl or run.pending[k]:
            turn(run, k)
            landed |= run.switch_rule[k] == s.OF_BOUND and run.switch[k] < 0.5
    for k in range(run.n_switches):
        if k == index - nl or run.pending[k]:
            if crossed(run, k, landed):
                continue  # the condition of a jump, which is no kink
            told = send_kink(run, k, told)
