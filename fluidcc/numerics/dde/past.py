"""The past of a delay equation: the given history, the polynomial pieces of the steps taken since,
its breaking points, and which smooth piece of it each delayed argument is in.

A delay carries every kink of the solution forward: where ``t - lag`` passes a point at which the
derivative of order p jumps, the derivative of order p + 1 jumps. Points of order up to that of the
method must be mesh points; those whose image still matters are kept in a table, and cut the past
into smooth intervals: interval k lies between points k - 1 and k.
"""

from __future__ import annotations

import math

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.dde import state as s
from fluidcc.numerics.dde.state import Run
from fluidcc.numerics.layout import Floats, at, copy

NO_ORDER = 1 << 62  # no discontinuity


@njit()
def fail(run: Run, code: int, where: int, when: float) -> None:
    """End the run: `code` says why, `where` of which lag or watcher, `when` at what time."""
    run.code, run.where, run.when = code, where, when
    raise s.Stop


@njit()
def ask(run: Run, which: int, t: float) -> None:
    """Call a function of the user on what stands in the frame; its result is then in `out`."""
    if s.call(run.function[which], t, run.out) == 0:
        fail(run, s.USER, which, t)


@njit()
def rise(q: Floats, i: int, u: float) -> float:
    """By how much state i is more at u than at 0, of the polynomial with coefficients q."""
    c = 4 * i
    return u * (q[c] + u * (q[c + 1] + u * (q[c + 2] + u * q[c + 3])))


@njit()
def incline(q: Floats, i: int, u: float) -> float:
    """The derivative of that by u."""
    c = 4 * i
    return q[c] + u * (2 * q[c + 1] + u * (3 * q[c + 2] + u * 4 * q[c + 3]))


@njit()
def inside(run: Run, u: float, target: Floats) -> None:
    """Put the state at u in the trial step into an array."""
    for i in range(run.n):
        target[i] = run.y[i] + rise(run.q, i, u)


# --- pieces ---------------------------------------------------------------------------------------


@njit()
def add_piece(run: Run, end: float) -> None:
    """Keep the trial step, up to its end or before."""
    i, n = run.n_pieces, run.n
    run.piece_t[i], run.piece_h[i] = run.t, run.h
    copy(at(run.piece_y, n * i), run.y, n)
    copy(at(run.piece_q, 4 * n * i), run.q, 4 * n)
    run.n_pieces = i + 1


@njit()
def forget(run: Run, before: float) -> None:
    """Drop the pieces that end before that time, if they are at least half of a full store."""
    if run.n_pieces + run.margin <= run.most_pieces:
        return
    drop = 0
    while drop + 1 < run.n_pieces and run.piece_t[drop + 1] <= before:
        drop += 1
    if drop < run.n_pieces // 2:
        return
    n, left = run.n, run.n_pieces - drop
    copy(run.piece_t, at(run.piece_t, drop), left)
    copy(run.piece_h, at(run.piece_h, drop), left)
    copy(run.piece_y, at(run.piece_y, n * drop), n * left)
    copy(run.piece_q, at(run.piece_q, 4 * n * drop), 4 * n * left)
    for j in range(run.m):
        run.cursor[j] -= drop
    run.n_pieces = left
    run.base += drop


@njit()
def _piece(run: Run, j: int, t: float, first: int, end: int) -> int:
    """The piece of ``first .. end - 1`` that holds time t, or the nearest one: lag j goes on from
    where it was.
    """
    i = min(max(run.cursor[j], first), end - 1)
    while i > first and run.piece_t[i] > t:
        i -= 1
    while i + 1 < end and run.piece_t[i + 1] <= t:
        i += 1
    run.cursor[j] = i
    return i


# --- the given history ----------------------------------------------------------------------------


@njit()
def _add_history(run: Run, j: int, t: float, weight: float) -> None:
    """Add to `past` what lag j reads of the history."""
    ask(run, s.HISTORY, t)
    for i in range(run.top[j], run.top[j] + run.n_read):
        run.past[i] += weight * run.out[i]


@njit()
def _history(run: Run, j: int, t: float, low: float, high: float) -> None:
    """Put into `past` what lag j reads at t of the smooth piece between two breaking points,
    continued beyond them if t lies there.

    A function cannot be trusted after its end or beyond a break, so the continuation is the cubic
    through four points before it, at the distance of the overshoot; but none of them earlier than
    has been needed for the solution, since the function may be defined no further back.
    """
    for i in range(run.top[j], run.top[j] + run.n_read):
        run.past[i] = 0.0
    if t <= low:
        _add_history(run, j, np.nextafter(low, np.inf), 1.0)
        return
    if t < high:
        run.earliest = min(run.earliest, t)
        _add_history(run, j, t, 1.0)
        return
    # the state may jump at the end, even at the start of the run
    inside = np.nextafter(high, -np.inf)
    over = t - high
    back = min(over, (high - run.earliest) / 3.0) if run.earliest < high else over
    if not over > run.tolerance or high - 3.0 * back <= low:
        _add_history(run, j, inside, 1.0)
        return
    u = over / back
    a, b, c = u + 1.0, u + 2.0, u + 3.0
    weights = (a * b * c / 6.0, -0.5 * u * b * c, 0.5 * u * a * c, -u * a * b / 6.0)
    for k in range(4):
        _add_history(run, j, inside if k == 0 else high - k * back, weights[k])


# --- breaking points ------------------------------------------------------------------------------


@njit()
def low_end(run: Run, k: int) -> float:
    """Where interval k of the past begins."""
    return run.point_t[k - 1] if k > 0 else -math.inf


@njit()
def high_end(run: Run, k: int) -> float:
    """Where interval k of the past ends."""
    return run.point_t[k] if k < run.n_points else math.inf


@njit()
def landed_on(run: Run, k: int) -> bool:
    """Whether the images of point k are mesh points."""
    return bool(run.point_order[k] < run.max_order)


@njit()
def add_point(run: Run, t: float, order: int, record: bool) -> None:
    """Put a breaking point at t, before the next piece, unless nothing of it is carried on; the
    start and those of the history stay, which lags pass as they come.
    """
    if record and order <= run.max_order:
        note(run, s.LANDED, order, t, run.y)
    if order >= run.max_order and record:
        return
    k = run.n_points
    if k > 0 and run.point_t[k - 1] == t:
        run.point_order[k - 1] = min(order, run.point_order[k - 1])
        return
    run.point_t[k], run.point_order[k] = t, order
    run.point_piece[k] = run.base + run.n_pieces
    while t < run.t and run.point_piece[k] > 0 and run.piece_t[run.point_piece[k] - 1] >= t:
        run.point_piece[k] -= 1
    run.n_points = k + 1


@njit()
def land(run: Run) -> int:
    """Move on the constant lags that have carried a point forward up to now; the order of the
    discontinuity, or `NO_ORDER`.
    """
    order = NO_ORDER
    for j in range(run.m):
        k = run.next_point[j]
        while k < run.n_points:
            if landed_on(run, k):
                if run.point_t[k] + run.lag[j] > run.t + run.tolerance:
                    break
                run.branch[j] = max(run.branch[j], k + 1)
                order = min(order, run.point_order[k] + 1)
            k += 1
        run.next_point[j] = k
    return order


@njit()
def next_landing(run: Run) -> float:
    """When a constant lag will next carry a point forward; those of the present are left out."""
    soonest = math.inf
    land(run)
    for j in range(run.m):
        if run.next_point[j] < run.n_points:
            soonest = min(soonest, run.point_t[run.next_point[j]] + run.lag[j])
    return soonest


# --- the record -----------------------------------------------------------------------------------


@njit()
def note(run: Run, what: int, which: int, t: float, y: Floats) -> None:
    """Record an event or a jump with its number, or a landing with its order."""
    k = run.n_notes
    run.note_what[k], run.note_which[k], run.note_t[k] = what, which, t
    copy(at(run.note_y, run.n * k), y, run.n)
    run.n_notes = k + 1


# --- delayed states -------------------------------------------------------------------------------


@njit()
def arguments(run: Run, t: float) -> None:
    """Put the delayed times seen from t and the state in the frame into `at`."""
    if run.function[s.LAGS] == 0:
        for j in range(run.m):
            run.at[j] = t - run.lag[j]
        return
    ask(run, s.LAGS, t)
    run.least_lag = math.inf
    for j in range(run.m):
        run.least_lag = min(run.least_lag, run.out[j])
        run.at[j] = t - run.out[j]


@njit()
def _passed(run: Run, j: int, then: float) -> int:
    """The interval that lag j looks into, after points that are not landed on."""
    k = run.branch[j]
    while k < run.n_points and then > run.point_t[k] and not landed_on(run, k):
        k += 1
    while k > 0 and then <= run.point_t[k - 1] and not landed_on(run, k - 1):
        k -= 1
    run.branch[j] = k
    return k


@njit()
def look_up(run: Run, t: float, now: float, width: float, y: Floats, q: Floats) -> bool:
    """Put the delayed states seen from t and the state in the frame there too, in a step from `now`
    in which the solution is ``y + q @ (u, u^2, u^3, u^4)`` with ``u = (t - now) / width``.

    A time outside its interval is extrapolated from the nearest piece, so that a step sees a smooth
    delayed state. Return whether the step looks into itself.
    """
    arguments(run, t)
    implicit = False
    m, n, z, n_read = run.m, run.n, run.z, run.n_read
    called = run.function[s.HISTORY] != 0
    for j in range(m):
        then, k, u = run.at[j], run.branch[j], 0.0
        if run.follow:
            k = _passed(run, j, then)
        source, powers = run.past, run.flat
        if run.lag[j] == 0:
            source = run.stage
        elif called and k <= run.initial:
            _history(run, j, then, low_end(run, k), high_end(run, k))
        else:
            first = max(run.point_piece[k - 1] - run.base, 0) if k > 0 else 0
            newest = k == run.n_points
            if newest and (then > now or first >= run.n_pieces):
                implicit = implicit or then > now
                source, powers, u = y, q, (then - now) / width
            else:
                end = run.n_pieces if newest else run.point_piece[k] - run.base
                p = _piece(run, j, then, first, max(end, first + 1))
                source, powers = at(run.piece_y, n * p), at(run.piece_q, 4 * n * p)
                u = (then - run.piece_t[p]) / run.piece_h[p]
        top = run.top[j]
        for i in range(n_read):
            z[i * m + j] = source[top + i] + rise(powers, top + i, u)
    return implicit


@njit()
def slope(run: Run, t: float, now: float, width: float, y: Floats, q: Floats) -> bool:
    """Put the right-hand side at t and the state in the frame into `out`; return whether the step
    looks into itself.
    """
    implicit = look_up(run, t, now, width, y, q)
    ask(run, s.FUN, t)
    run.nfev += 1
    return implicit


@njit()
def locate(run: Run, probe: float) -> None:
    """Set every branch from scratch: where the arguments are a little after the present."""
    copy(run.stage, run.y, run.n)
    arguments(run, run.t + probe)
    for j in range(run.m):
        k = 0
        while k < run.n_points and run.point_t[k] < run.at[j]:
            k += 1
        run.branch[j] = k
