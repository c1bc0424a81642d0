"""The integration of a delay equation: step sizes, landings, discontinuities, and what is recorded.

Where the next step must end is known in advance for constant lags, given jumps and given breaking
points. The rest (events, switches, and state-dependent delayed arguments that cross a breaking
point) is found on the dense output of a trial step, for which modes and pieces of the past were
held, so that it is smooth even beyond that point; the step is then taken again to just past the
point, and cut there.

Where a refused error does not shrink like that of a smooth problem, a jump or kink of the
right-hand side (or of a lag) is suspected. All that it can do within a step is bounded by h/2 times
the mismatch between `fun` at the end and the continuation of the previous piece, and this bound
must be below the tolerance until that place is passed. (It is too severe to be asked of every
step.) The step that passes it shows by an error far above that of its smooth neighbour; its end
becomes a breaking point, so that the kinks that the lags make of it are known.
"""

from __future__ import annotations

import math

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.dde import state as s
from fluidcc.numerics.dde.events import (
    HIT,
    ROUNDING,
    STOPS,
    counts,
    look,
    scan,
    sign,
    stops,
    watch,
)
from fluidcc.numerics.dde.past import (
    NO_ORDER,
    add_piece,
    add_point,
    ask,
    fail,
    forget,
    incline,
    inside,
    land,
    locate,
    look_up,
    next_landing,
    note,
    slope,
)
from fluidcc.numerics.dde.state import Run
from fluidcc.numerics.dde.step import EPS, attempt, expected_slope
from fluidcc.numerics.layout import Floats, at, copy

CROWD = 200  # so many discontinuities at one time are an accumulation
_REST = 100.0  # tolerances: a step in which nothing moves further is at rest
_PACE = 10_000  # steps between two checks of the pace


@njit(entry=True)
def advance(run: Run, begin: bool, steps: int) -> int:
    """Take so many steps, the first ones of a run if it is to `begin`.

    Returns
    -------
    int
        Why it ended: at the end, at a terminal event, or where Python has something to do.
    """
    if begin:
        _begin(run)
    for _ in range(steps):
        if run.finished:
            return s.TERMINATED
        if not run.t < run.t_end:
            return s.DONE
        if _full(run):
            return s.GROW
        _step(run)
    return s.PAUSED


@njit()
def _full(run: Run) -> bool:
    """Whether what one step may record could find no room."""
    if not run.keep:
        forget(run, run.t - run.longest)
    return (
        run.n_pieces + run.margin > run.most_pieces
        or run.n_points + run.margin > run.most_points
        or run.n_notes + run.margin > run.most_notes
        or run.n_mesh + run.margin > run.most_mesh
    )


# --- the start ------------------------------------------------------------------------------------


@njit()
def _begin(run: Run) -> None:
    while run.next_known < run.n_known and run.known_t[run.next_known] < run.t:
        add_point(run, run.known_t[run.next_known], run.known_order[run.next_known], False)
        run.next_known += 1
    _mesh(run)
    add_point(run, run.t, run.start_order, False)
    run.initial = run.n_points - 1
    constant = run.function[s.LAGS] == 0
    locate(run, run.tolerance if constant else 1e-9 * max(run.t_end - run.t, run.scale))
    if _known(run) == 0:
        add_point(run, run.t, 0, False)
    _values_now(run, run.t)
    for i in range(run.n_watchers):
        g = run.value[i]
        run.sign[i], run.size[i] = sign(g), abs(g)
        if run.kind[i] == s.SWITCH:
            _switch(run, i, sign(g) or -1)
    run.switchings = 0
    _rate(run, run.t)
    run.wish = _first_step(run)


@njit()
def _rate(run: Run, t: float) -> None:
    """The right-hand side of the present state."""
    copy(run.stage, run.y, run.n)
    slope(run, t, t, 1.0, run.y, run.flat)
    copy(run.rate, run.out, run.n)
    for i in range(run.n):
        if not math.isfinite(run.out[i]):
            fail(run, s.BAD_RATE, i, run.t)


@njit()
def _first_step(run: Run) -> float:
    """A first step by the sizes of y and y' (Hairer, Norsett & Wanner I, II.4)."""
    span, d0, d1 = run.t_end - run.t, 0.0, 0.0
    if run.first_step > 0 or span == 0:
        return min(run.first_step, span)
    for i in range(run.n):
        allowed = run.atol[i] + run.rtol * abs(run.y[i])
        if allowed > 0:  # of a zero nothing is known
            d0 += (run.y[i] / allowed) ** 2
            d1 += (run.rate[i] / allowed) ** 2
    d0, d1 = math.sqrt(d0 / run.n), math.sqrt(d1 / run.n)
    unit = 1e-4 * span if d0 < 1e-5 or d1 * span < 1e-5 else d0 / d1
    return min(unit * (0.01 / max(d1 * unit, 0.01)) ** 0.2, span)


# --- one step -------------------------------------------------------------------------------------


@njit()
def _step(run: Run) -> None:
    _check_pace(run)
    target, last = min(run.t_end, next_landing(run)), 0.0
    # what was given is kept bit by bit where something else falls on it but for rounding
    k = run.next_known
    if k < run.n_known and run.known_t[k] <= target + run.tolerance:
        target = run.known_t[k]
        last = run.aside if run.known_jump[k] < 0 else 0.0
    kink = _good_step(run, target - last)
    end = run.t + min(run.ends, 1.0) * run.h
    due = abs(end - target) <= run.tolerance
    if run.n_watchers > 0 and (due or kink or run.ends <= 1.0):  # a discontinuity may follow
        t = look(run, min(run.ends, 1.0))
        for i in range(run.n_watchers):
            run.value_before[i] = watch(run, i, t)
    _accept(run, target if due else end, kink)


@njit()
def _check_pace(run: Run) -> None:
    """Fail at the last step allowed, or when a thousand times as many would not do at the present
    pace.
    """
    hopeless = False
    if run.steps >= run.paced + _PACE:
        ahead = (run.t - run.paced_at) * (run.max_steps / _PACE) * 1e3
        hopeless = ahead < run.t_end - run.t
        run.paced, run.paced_at = run.steps, run.t
    if hopeless or run.steps >= run.max_steps:
        fail(run, s.TOO_MANY_STEPS, 0, run.t)


@njit()
def _accept(run: Run, end: float, kink: bool) -> None:
    """Keep the trial step up to `end`, and deal with all that happens there."""
    u, found = min(run.ends, 1.0), run.ends <= 1.0
    for k in range(run.n_found):  # signs of watchers after the step, and events that do not end it
        i, way = run.found_what[k], run.found_side[k]
        if i >= run.n_watchers or run.found_u[k] > run.last:
            continue
        run.sign[i] = way
        if run.found_kind[k] == HIT and run.kind[i] == s.EVENT and counts(run, i, way):
            inside(run, run.found_u[k], run.stage)
            _hit(run, i, run.t + run.found_u[k] * run.h, run.stage)
    copy(run.rate, at(run.k, 6 * run.n), run.n)
    if found:
        inside(run, u, run.y_end)
    if end - run.t > run.tolerance or not found:
        add_piece(run, end)
        run.steps += 1
        run.crowd = 0
        _sample(run, end)
        copy(run.y, run.y_end, run.n)
        copy(run.before_q, run.q, 4 * run.n)
        run.t, run.before_h, run.cut, run.smooth = end, run.h, u, True
        _mesh(run)
    order = NO_ORDER
    for k in range(run.n_found):
        if run.found_kind[k] == STOPS and run.found_u[k] <= run.last:
            order = min(order, _stop(run, run.found_what[k], run.found_side[k]))
    order = min(order, land(run), _known(run))
    if kink:  # with many lags, its images cost more as mesh points than under error control
        order = min(order, 1 if run.few else run.max_order)
    if found or order < NO_ORDER:
        _kink(run, min(order, run.max_order + 1))


@njit()
def _good_step(run: Run, target: float) -> bool:
    """Make a good trial step that does not go beyond `target`; return whether an undeclared kink of
    fun lies in it.
    """
    t, gap = run.t, target - run.t
    wish = min(run.wish, run.max_step)
    h = gap if 1.001 * wish >= gap else min(wish, 0.5 * gap) if 2 * wish > gap else wish
    floor = 10 * EPS * max(abs(t), 1e-6 * run.scale)
    refused = again = 0
    # the step or attempt before, where its error tells how that of this one should be
    h_before, error_before = run.before_h if run.smooth else 0.0, run.before_error
    while True:
        run.h = h
        attempt(run)
        error = run.error
        if run.problem == s.NO_PROBLEM and t <= run.suspect:
            error = max(error, _mismatch(run))
        if run.problem == s.NO_PROBLEM and error <= 1.0 and h > run.probe and _rests(run):
            u = _surprise(run)
            if u < 1.0:
                if refused == 0 and run.suspect == -math.inf:
                    run.usual = run.wish
                refused += 1
                run.rejections += 1
                run.suspect = max(run.suspect, t + u * h)
                h = max(u * h - run.probe, 0.5 * run.probe)
                h_before = 0.0
                continue
        if run.problem == s.NO_PROBLEM and error <= 1.0:
            scan(run)
            if not run.too_fine:
                if run.ends < 0.9 and again < 3 and run.ends * h > floor:
                    again += 1
                    run.resteps += 1
                    h *= min(1.0, 1.001 * run.ends)
                    continue
                break
            run.problem, run.resteps, shrink = s.TOO_FINE, run.resteps + 1, 0.25
        else:
            refused += 1
            _refuse(run, h_before, error_before, refused)
            smooth = run.problem == s.NO_PROBLEM
            h_before, error_before = h if smooth else 0.0, run.error
            shrink = max(0.2, 0.9 * error**-0.2) if smooth else 0.25
        h *= shrink
        if h < floor:
            fail(run, s.COLLAPSE, 0, h)
    # Gustafsson's PI rule with the constants of DOPRI5 (Hairer & Wanner II, Section IV.2)
    factor = min(5.0, 0.9 * max(error, 1e-10) ** -0.17 * run.last_error**0.04)
    run.last_error = max(error, 1e-4)
    proposal = h * (min(factor, 1.0) if refused else factor)
    run.wish = max(proposal, run.wish) if not refused and h < run.wish else proposal
    kink = _passes_kink(run)
    if kink:
        run.wish = run.usual  # what shortened the steps is behind
    if kink or run.suspect <= t + h:
        run.suspect = -math.inf
    run.before_error = run.error
    return kink


@njit()
def _rests(run: Run) -> bool:
    """Whether the error of the trial step tells nothing of what lies between the stages: it is
    rounding, or hardly anything moves.
    """
    if run.error <= run.quiet:
        return True
    for l in range(7):
        for i in range(run.n):
            if not run.h * abs(run.k[run.n * l + i]) <= _REST * run.allowed[i]:
                return False
    return True


@njit()
def _surprise(run: Run) -> float:
    """Where in a step at rest `fun` is not as the step has it; 1 if it is so at all places, which
    are `probe` apart.
    """
    places = int(run.h / run.probe)
    for k in range(1, places + 1):
        u = k * run.probe / run.h
        if u >= 1.0:
            break
        inside(run, u, run.stage)
        slope(run, run.t + u * run.h, run.t, run.h, run.y, run.q)
        for i in range(run.n):
            gap = run.out[i] - incline(run.q, i, u) / run.h
            if not run.probe * abs(gap) <= run.allowed[i]:
                return u
    return 1.0


@njit()
def _passes_kink(run: Run) -> bool:
    """Whether the suspected kink lies in this good step, which follows a smooth one."""
    if run.t > run.suspect or not run.smooth:
        return False
    smooth = run.before_error * (run.h / run.before_h) ** 5
    return run.error > 100 * max(smooth, 1e-6)  # below that, errors are rounding


@njit()
def _refuse(run: Run, h_before: float, error_before: float, refused: int) -> None:
    """Count a refusal, and suspect a jump of fun if the error does not shrink with h as in a
    smooth problem.
    """
    run.rejections += 1
    if refused == 1 and run.suspect == -math.inf:
        run.usual = run.wish
    if run.problem != s.NO_PROBLEM or h_before == 0 or run.error <= 1.0:
        return
    if run.follow and run.t < run.settled:  # that kinks come is known: they are too many to land on
        return
    smooth = error_before * (run.h / h_before) ** 5
    if run.error > (10.0 if refused == 1 else 1.5) * smooth:
        run.suspect = max(run.suspect, run.t + run.h)


@njit()
def _mismatch(run: Run) -> float:
    """What a jump of fun could have done in this step, in units of the tolerance."""
    total = 0.0
    for i in range(run.n):
        gap = run.k[6 * run.n + i] - expected_slope(run, i)
        total += (0.5 * run.h * gap / run.allowed[i]) ** 2
    return math.sqrt(total / run.n)


# --- discontinuities ------------------------------------------------------------------------------


@njit()
def _stop(run: Run, i: int, way: int) -> int:
    if i >= run.n_watchers:
        j, upper = (i - run.n_watchers) // 2, (i - run.n_watchers) % 2
        k = run.branch[j]
        run.branch[j] = k + way
        return run.point_order[k - 1 + upper] + 1
    if run.kind[i] == s.SWITCH:
        _switch(run, i, way)
        return 1
    run.sign[i] = 0
    return _fire(run, i)


@njit()
def _switch(run: Run, i: int, way: int) -> None:
    run.modes[run.number[i]] = 1.0 if way > 0 else 0.0
    run.sign[i], run.switched[i] = way, run.t
    run.switchings += 1


@njit()
def _fire(run: Run, i: int) -> int:
    """A terminal event or one with a jump has occurred; the order of what it makes."""
    if run.kind[i] == s.EVENT:
        _hit(run, i, run.t, run.y)
    else:
        _jump(run, run.number[i], run.t)
        _check_accumulation(run, run.number[i])
        run.seen[i] += 1
    if run.terminal[i] > 0 and run.seen[i] >= run.terminal[i]:
        run.finished = True
    return NO_ORDER if run.kind[i] == s.EVENT else 0


@njit()
def _check_accumulation(run: Run, number: int) -> None:
    """Fail where the times of a jump seem to converge (Zeno)."""
    later, gap, last, streak = run.t, 0.0, 0.0, 0
    for k in range(run.n_notes - 2, -1, -1):
        if run.note_what[k] != s.JUMPED or run.note_which[k] != number:
            continue
        if streak > 0 and not gap < 0.99 * (later - run.note_t[k]):
            break
        gap, later, streak = later - run.note_t[k], run.note_t[k], streak + 1
        if streak == 1:
            last = gap
    if streak > 12 and last < 1e-5 * (run.t - later):
        fail(run, s.FASTER_JUMPS, number, run.t)


@njit()
def _jump(run: Run, number: int, t: float) -> None:
    """Change the state; `t` is now, as it was given."""
    copy(run.stage, run.y, run.n)
    if run.change_delayed[number]:
        look_up(run, run.t, run.t, 1.0, run.y, run.flat)
    ask(run, s.OTHERS + run.n_watchers + number, run.t)
    for i in range(run.n):
        if not math.isfinite(run.out[i]):
            fail(run, s.BAD_JUMP, number, run.t)
    copy(run.y, run.out, run.n)
    note(run, s.JUMPED, number, t, run.y)
    _mesh(run)


@njit()
def _known(run: Run) -> int:
    """Deal with what was known to come at this time; the least order of its discontinuities."""
    order = NO_ORDER
    while run.next_known < run.n_known and run.known_t[run.next_known] <= run.t + run.tolerance:
        k = run.next_known
        run.next_known = k + 1
        order = min(order, run.known_order[k])
        if run.known_jump[k] >= 0:
            _jump(run, run.known_jump[k], run.known_t[k])
    return order


@njit()
def _kink(run: Run, order: int) -> None:
    """Begin a new smooth interval here, with a discontinuity of that order behind it."""
    run.crowd += 1
    if run.crowd > CROWD:
        fail(run, s.CROWDED, run.crowd, run.t)
    add_point(run, run.t, order, True)
    run.smooth = False
    if run.n_watchers > 0 and _settle(run):
        add_point(run, run.t, 0, True)
    if not run.finished:
        _rate(run, run.t + run.aside)


@njit()
def _values_now(run: Run, t: float) -> None:
    """Put every watcher's value at a mesh point, on its later side, into `value`."""
    copy(run.stage, run.y, run.n)
    if run.look_back:
        look_up(run, t, t, 1.0, run.y, run.flat)
    for i in range(run.n_watchers):
        run.value[i] = watch(run, i, t)


@njit()
def _settle(run: Run) -> bool:
    """Act on watchers that the discontinuity carried over zero, one after the other, until none is;
    whether that made further jumps.

    A value that has not jumped is left alone: just after its zero, its sign is rounding. What a
    jump does to its own function is no occurrence.
    """
    jumped = False
    _values_now(run, run.t)
    for _ in range(CROWD):
        again = False
        for i in range(run.n_watchers):
            old, g = run.value_before[i], run.value[i]
            side, new = run.sign[i], sign(g)
            run.value_before[i] = g
            if abs(g - old) <= ROUNDING * run.size[i] or new == 0:
                continue
            if run.kind[i] != s.SWITCH:
                run.sign[i] = new
            if new * side >= 0:
                continue
            if run.kind[i] == s.SWITCH:
                _switch(run, i, new)
            elif stops(run, i, new):
                if _fire(run, i) == 0:
                    again = True
                    _values_now(run, run.t)
                    g = run.value_before[i] = run.value[i]
                    run.sign[i] = sign(g) if abs(g) > ROUNDING * run.size[i] else 0
            elif run.kind[i] == s.EVENT and counts(run, i, new):
                _hit(run, i, run.t, run.y)
        jumped = jumped or again
        if not again:
            return jumped
    fail(run, s.ENDLESS_JUMPS, 0, run.t)
    return jumped


# --- what is recorded -----------------------------------------------------------------------------


@njit()
def _mesh(run: Run) -> None:
    """A mesh point, or the other side of one at which the state jumped."""
    if run.sampling:
        return
    run.mesh_t[run.n_mesh] = run.t
    copy(at(run.mesh_y, run.n * run.n_mesh), run.y, run.n)
    run.n_mesh += 1


@njit()
def _sample(run: Run, end: float) -> None:
    """Values at the given times before `end` (at `end` itself a jump may still come)."""
    while run.n_mesh < run.n_samples and run.sample_t[run.n_mesh] < end:
        u = (run.sample_t[run.n_mesh] - run.t) / run.h
        inside(run, u, at(run.mesh_y, run.n * run.n_mesh))
        run.n_mesh += 1


@njit()
def _hit(run: Run, i: int, t: float, y: Floats) -> None:
    """An event has occurred, at state y."""
    note(run, s.HIT, run.number[i], t, y)
    run.seen[i] += 1
