"""The driver: step control. One for every network, compiled once."""

from __future__ import annotations

import math
from typing import Any

from fluidcc.numerics.layout import at, copy

from ..compiling import njit
from ..fluid import state as s
from .accounts import give_back, keep_heard, settle
from .breaking_points import (
    keep_rates,
    repeat_jumps,
    repeat_kinks,
    roughness,
    straighten,
    unfollowed,
)
from .calls import call_step
from .events import act, arrive, due, flip, next_break, start
from .modes import first_event, leave_crossed, resolves_slides
from .past import oldest_wanted
from .reads import record_of, resolution, work
from .records import keep_node
from .rhs import evaluate
from .sampling import add_totals, sample_step
from .slides import put_on_surfaces, slides_now, stops
from .step import BETWEEN, step_array

# what is called from one place alone is compiled there alone
_ONCE: dict[str, Any] = {"inline": "always"}

SAFETY, SHRINK, GROWTH = 0.9, 0.2, 5.0
# error of a step that has none, as on a straight line, and how much longer the next may be
NONE, LEAP = 1e-8, 100.0
STEADY = 0.98  # safety where steps follow each other smoothly
# records of the past that a step may look through: what a held state hears enters no error
READ = 4
TELLING = 0.05  # share of a planned step that tells something about the rest of it
EPS = 2.220446049250313e-16
DIGITS = 2.0**43 + 1.0  # times which a number less a part of that leaves its first ten bits
LET_PASS = 100  # steps of a hair in a row at most
ATTEMPTS = 2000  # at one step, some times as many as it takes from the longest to the shortest one


@njit()
def _bad_rate(run: s.State) -> int:
    for i in range(run.n_flows):
        if run.node_rate[4 * run.n_flows + i] < -1e-6 * run.capacity[run.first_link[i]]:
            return i
    return -1


@njit()
def _folds(run: s.State) -> bool:
    """Whether delays that are taken for constant fall by a second a second, for a flow that divides
    by 1 + edot.
    """
    for j in range(run.n_accounts):
        if run.signals[s.UEDOT * run.n_flows + run.account[2 * j]] <= -1.0:
            return True
    return False


@njit(**_ONCE)
def _attempt(run: s.State, address: int) -> float:
    """Try the step; return 1, or by how much the next attempt is to be shorter."""
    status = call_step(address, run) if address and not slides_now(run) else step_array(run)
    if status:  # the passes diverge
        run.h_passes = 0.8 * run.h
        return 0.4
    if run.frozen and _folds(run):
        return 0.1
    err = BETWEEN * run.error
    if err > 1.0:
        return max(SHRINK, SAFETY * err ** (-0.2)) if err < 1e300 else 0.1
    rough = roughness(run)
    if rough > 1.0:
        return max(SHRINK, SAFETY / rough)
    return resolves_slides(run) if run.n_slides and slides_now(run) else 1.0


@njit(**_ONCE)
def _advance(run: s.State, address: int) -> int:
    """One accepted step, with what happens at its end. Return 0, or a code that ends the run."""
    stop = next_break(run)
    pending, mode, near = -1, 0, 1e-6
    h = run.h_next
    end = stop if run.t + 1.05 * h >= stop else run.t + h
    hmin = 16.0 * EPS * max(abs(run.t), 1e-3 * run.natural)
    attempts = 0
    while True:
        h = end - run.t
        attempts += 1
        if (h <= hmin and end < stop) or not h > 0.0 or attempts > ATTEMPTS:
            run.code = s.NONFINITE if run.error > 1e300 else s.COLLAPSE
            return 1
        run.h = h
        shorter = _attempt(run, address)
        if shorter < 1.0:
            run.rejections += 1
            pending = -1
            run.h_next = _coarse(run, shorter * h)
            end = run.t + run.h_next
            continue
        u, index, new = first_event(run, 2.0 if pending < 0 else 1.0 - near)
        # The step that leads to an event ends there, up to rounding; another event at that instant
        # is the next step's.
        if u >= 2.0 or (pending >= 0 and u >= 1.0 - near):
            if h > _hair(run):
                run.let_pass = 0
            break
        near = min(1e-3, 4.0 * near)  # each attempt looks back a little differently
        if u * h <= resolution(run, run.t):
            if not _chatters(run) or run.let_pass >= LET_PASS:
                return _flip_here(run, index, new)
            # between two breaking points that are one but for rounding, say: no mode is to be had
            if h <= _hair(run):
                pending = -1
                run.let_pass += 1
                break
            pending, end = -1, run.t + 0.5 * _hair(run)
            continue
        pending, mode = index, new
        copy(run.pending, run.together, run.n_switches)
        end = run.t + u * h
    return _finish_step(run, end, stop, pending, mode)


@njit()
def _hair(run: s.State) -> float:
    """A time that is hardly more than rounding, within which a change of mode does not matter."""
    return 100.0 * resolution(run, run.t)


@njit()
def _chatters(run: s.State) -> bool:
    """Whether modes have changed so often at this instant that they will without end: often beside
    how many take part.
    """
    if run.t_flip != run.t or run.mode_flips < 20:
        return False
    count = run.n_links
    for k in range(run.n_switches):
        count += run.flip_time[k] == run.t
    return run.mode_flips >= 20 + 4 * count


@njit(**_ONCE)
def _flip_here(run: s.State, index: int, mode: int) -> int:
    """A mode changes at the very start of the step: no time passes."""
    if _chatters(run):
        run.code = s.CHATTER
        run.where = index
        return 1
    if run.t_flip == run.t:
        run.mode_flips += 1
    else:
        run.mode_flips = 0
        run.t_flip = run.t
    copy(run.pending, run.together, run.n_switches)
    flip(run, index, mode)
    return _anew(run, index, False)


@njit()
def _anew(run: s.State, flipped: int, jumped: bool) -> int:
    """Right-hand limits now, and all that happens. Return 0, or 1 with the reason in `code`."""
    if run.n_own_rates:
        keep_rates(run)
    if run.n_leaping and not run.frozen:
        keep_heard(run)
    start(run, flipped, jumped)
    if flipped >= run.n_links and stops(run, flipped - run.n_links):
        run.asked = flipped
        return 1
    return _happen(run)


@njit()
def _happen(run: s.State) -> int:
    """All that happens now, after the right-hand limits."""
    if run.n_leaping and not run.frozen and settle(run):
        start(run, -1, True)
    code = act(run)
    if run.n_own_rates:
        repeat_jumps(run)
    arrive(run)  # what reaches the next link at this very instant: no step could end there
    return code or run.code == s.CHATTER


@njit()
def _answered(run: s.State) -> int:
    """Go on where Python was asked if a switch may slide."""
    flipped, run.asked = run.asked, 0
    start(run, flipped, False)
    if stops(run, flipped - run.n_links):
        run.asked = flipped
        return 1
    return _happen(run)


@njit()
def _bound_by_passes(run: s.State, passes: int, h: float) -> None:
    """Keep the next step below those that took many passes: one lucky step does not refute them."""
    if passes > 2:
        run.h_next = min(run.h_next, (1.25 if passes == 3 else (1.0 if passes == 4 else 0.85)) * h)
    if passes > 4:
        run.h_passes = 0.85 * h
    elif passes < 4:
        run.h_passes *= 1.08
    run.h_next = min(run.h_next, run.h_passes)


@njit()
def _bound_by_past(run: s.State) -> None:
    """Keep the next step from leaping over what took the past many steps, as a pulse that frees a
    held state.

    Where switches are not located any state with a bound may be held.
    """
    held = False
    for k in range(run.n_switches):
        held |= run.switch_rule[k] == s.OF_BOUND and run.switch[k] < 0.5
    for j in range(run.n_nodes if held else 0):
        k = run.cursor_start[j] + READ
        if k < run.n_records:
            record = record_of(run, k)
            ahead = record[s.RT0] + record[s.RH] - run.entry_time[j]
            run.h_next = min(run.h_next, max(ahead, run.brief))


@njit()
def _proportional(before: float, err: float) -> float:
    """PI control: before^(1/16) / err^(1/8), by roots, which cost a third of powers."""
    return math.sqrt(math.sqrt(math.sqrt(math.sqrt(before) / err)))


@njit()
def _coarse(run: s.State, h: float) -> float:
    """A step to three digits, so that rounding errors, of which error estimates are full, do not
    decide it: a run in another unit, or on another machine, takes the same steps.
    """
    share = h / run.natural
    upper = DIGITS * share
    return (upper - (upper - share)) * run.natural


@njit(**_ONCE)
def _finish_step(run: s.State, end: float, stop: float, pending: int, mode: int) -> int:
    h, err = run.h, max(BETWEEN * run.error, 1e-10)
    i = _bad_rate(run)
    if i >= 0 and not run.let_pass:
        run.code = s.NEGATIVE
        run.where = i
        return 1
    factor = min(GROWTH, max(SHRINK, STEADY * _proportional(max(run.error_before, 1e-10), err)))
    if err <= NONE and run.rejections == 0:  # from the first step; later on kinks lie ahead
        factor = LEAP
    # a step cut by an event or breaking point says nothing against the one planned
    cut = pending >= 0 or end >= stop
    plan = _coarse(run, factor * h)
    if cut and factor >= 1.0 and plan < run.h_next:
        plan = (
            run.h_next
            if h < TELLING * run.h_next
            else min(run.h_next, _coarse(run, SAFETY * err ** (-0.2) * h))
        )
    run.h_next = plan
    _bound_by_passes(run, run.passes - run.hops_at_once, h)
    run.h_next = min(run.h_next, run.h_max)
    run.error_before = err
    if run.echo and run.fresh:
        repeat_kinks(run)
    _accept(run, end)
    _bound_by_past(run)
    if run.n_slides and slides_now(run):
        _stay_on_surfaces(run)
    fresh = int(pending < 0 and run.let_pass > 0 and leave_crossed(run))
    if pending >= 0:
        flip(run, pending, mode)
        fresh = 1
    if due(run):
        fresh |= arrive(run)
    if fresh or run.next_rule <= end + resolution(run, end):
        return _anew(run, pending, True)
    return 0


@njit()
def _stay_on_surfaces(run: s.State) -> None:
    """Keep what slides from drifting away by the errors of the steps."""
    last = run.n_records - 1
    evaluate(run, run.t, run.y, run.scratch, -1, 0, last, 0)
    if put_on_surfaces(run):
        evaluate(run, run.t, run.y, run.slopes, 0, 0, last, 0)
        keep_node(run, 0)


@njit(**_ONCE)
def _accept(run: s.State, end: float) -> None:
    """Take over the step, which ends at `end` exactly: its samples and totals, and its end."""
    final = end >= run.t_end
    swings = unfollowed(run)
    sample_step(run, final)
    add_totals(run)
    if swings:  # what was sampled is better than what is good to look back at
        straighten(run)
    if run.n_accounts and not run.frozen:
        give_back(run, end)
    _hand_over(run)
    run.h_before = run.h
    run.t = end
    run.n_records += 1
    run.steps += 1
    for link in range(run.n_links):
        run.work_done[link] = work(run, link, end)[0]
    copy(run.cursor_start, run.cursor, run.n_nodes)
    oldest = run.n_records
    for j in range(run.n_nodes):
        oldest = min(oldest, run.cursor[j])
    if run.n_lags:
        oldest = min(oldest, oldest_wanted(run, end))
    run.oldest = max(run.oldest, oldest - 1)
    run.fresh = 0


@njit()
def _hand_over(run: s.State) -> None:
    """Let what holds at the end of the step just taken hold at the start of the next one."""
    ns, nf, nl, acting = run.n_states, run.n_flows, run.n_links, s.XSIZE * run.n_acting
    copy(run.y, run.y_end, ns)
    copy(run.slopes, at(run.slopes, 6 * ns), ns)
    copy(run.node_rate, at(run.node_rate, 4 * nf), nf)
    copy(run.node_arrival, at(run.node_arrival, 4 * nl), nl)
    copy(run.node_mark, at(run.node_mark, 4 * nl), nl)
    copy(run.node_price, at(run.node_price, 4 * nl), nl)
    if not run.refit:
        copy(run.arrival_slopes, at(run.arrival_slopes, 6 * nl), nl)
    copy(run.node_acted, at(run.node_acted, 4 * acting), acting)
    copy(run.node_past, at(run.node_past, 4 * run.n_pasts), run.n_pasts)


@njit(**_ONCE)
def drive(run: s.State, address: int) -> int:
    """Integrate until `t_stop`, or until Python has something to do; return the code of what."""
    run.code = s.DONE
    if run.asked and _answered(run):
        return run.code
    budget = run.steps + run.budget
    while run.t < run.t_stop:
        if run.n_records - run.oldest >= run.ring_mask - 1:
            run.code = s.GROW_RING
            break
        if run.n_landings > run.landing_room // 2:
            run.code = s.GROW_LANDINGS
            break
        if run.n_logged > run.log_size // 2:
            run.code = s.DRAIN
            break
        if run.steps >= budget:
            run.code = s.PAUSED
            break
        if _advance(run, address):
            break
    return run.code
