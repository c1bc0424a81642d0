"""Modes instead of max(): queue empty, busy or full, and the switches of the laws, found on the
dense output.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.layout import at, clear, copy

from ..compiling import njit
from ..fluid import state as s
from .reads import link_of, quartic, record_of, resolution, root, slope
from .rhs import evaluate
from .step import dense

# relative difference of arrivals and capacity that only the coming step can tell from none
TIE = 1e-9
FINE = 1e-3  # of the resolution of time, to which the change of a switch is located
SURPLUS = 1e-12  # relative surplus of arrivals over capacity that is rounding, not a queue
UNRESOLVED = 1e-3  # of the value of a switch that slides, between nodes of a step
SLACK = 1e-14  # backlog below zero that is rounding, relative to the work of a natural time


@njit(forceinline=True)
def below(o: s.Floats, level: float, sign: float, slack: float) -> bool:
    """Whether the Bernstein coefficients of sign * (quartic - level) show that it is below `slack`.

    It lies within their hull. The quartic's own coefficients stand at `o`.
    """
    a, b, c, d = o[0] - level, o[1], o[2], o[3]
    first, second, third = a + 0.25 * b, a + 0.5 * b + c / 6.0, a + 0.75 * b + 0.5 * c + 0.25 * d
    last = a + b + c + d + o[4]
    top = max(max(sign * a, sign * first), max(sign * second, max(sign * third, sign * last)))
    return top <= slack


@njit()
def _passes(o: s.Floats, level: float, sign: float, slack: float) -> float:
    """First u in (0, 1] where sign * (quartic - level) exceeds `slack`; 2 if nowhere.

    Eight nodes, and where the quartic turns between two of them its extreme, so that a short dip is
    not missed.
    """
    if below(o, level, sign, slack):
        return 2.0
    before = 0.0
    for k in range(1, 9):
        u = 0.125 * k
        if sign * (quartic(o, u) - level) > slack:
            return _root_from(o, level, before, u, sign)
        turn = _extreme(o, before, u, sign)
        if turn > 0.0 and sign * (quartic(o, turn) - level) > slack:
            return _root_from(o, level, before, turn, sign)
        before = u
    return 2.0


@njit()
def _root_from(o: s.Floats, level: float, low: float, high: float, sign: float) -> float:
    if sign * (quartic(o, low) - level) > 0.0:
        return low
    return root(o[1], o[2], o[3], o[4], level - o[0], low, high)


@njit()
def _extreme(o: s.Floats, low: float, high: float, sign: float) -> float:
    """A maximum of sign * quartic inside the interval, or -1."""
    if sign * _slope(o, low) <= 0.0 or sign * _slope(o, high) >= 0.0:
        return -1.0
    return root(2.0 * o[2], 3.0 * o[3], 4.0 * o[4], 0.0, -o[1], low, high)


@njit()
def _slope(o: s.Floats, u: float) -> float:
    return slope(o[1], o[2], o[3], o[4], u)


@njit()
def _link_event(run: s.State, link: int) -> tuple[float, int]:
    """When the link leaves its mode in the step just taken (2: not), and for which mode."""
    block = link_of(record_of(run, run.n_records), link)
    mode = run.mode[link]
    c = run.capacity[link]
    if mode == s.EMPTY:
        return _passes(at(block, s.LY), c, 1.0, SURPLUS * c), s.BUSY
    if mode == s.FULL:
        return _passes(at(block, s.LY), c, -1.0, SURPLUS * c), s.BUSY
    slack = SLACK * c * run.natural
    drained = _passes(block, 0.0, -1.0, slack)
    filled = 2.0
    if run.buffer[link] < 1e300:
        filled = _passes(block, run.buffer[link], 1.0, slack)
    if filled < drained:
        return filled, s.FULL
    return drained, s.EMPTY


@njit()
def _switch_event(run: s.State, k: int, h: float, tol: float, enough: float) -> float:
    """Where switch `k` changes sign in the step just taken: the Illinois method on the dense
    output.

    What a switch looks at counts as 0 within rounding, and leaves 0 at once. How far that is from
    where it was first found to be 0 is searched by its order of magnitude. From `enough` on any
    place will do.
    """
    g = at(run.switch_value, k)
    oz, scratch, last = run.stage, run.scratch, run.n_records
    a, b = 0.0, 1.0
    fb = g[0]
    dense(run, 0.0, oz)
    evaluate(run, run.t, oz, scratch, -1, 1, last, 1)
    fa = g[0]
    if (fa > 0.0) == (fb > 0.0):
        return 0.0
    fine, zero = FINE * tol / h, 2.0
    for k2 in range(60):
        if b - a <= fine or fa == fb or a >= enough:
            break
        if fa == 0.0:
            zero = min(a, zero)
            near, far = a - zero + fine, b - zero
            m = zero + np.sqrt(near * far) if far > 1e4 * near else 0.5 * (a + b)
        else:
            m = b - fb * (b - a) / (fb - fa) if k2 % 4 < 3 else 0.5 * (a + b)
            m = min(max(m, a + 0.5 * fine), b - 0.5 * fine)
        if not a < m < b:
            m = 0.5 * (a + b)
        dense(run, m, oz)
        evaluate(run, run.t + m * h, oz, scratch, -1, 0, last, 1)
        fm = g[0]
        if (fm > 0.0) == (
            fb > 0.0
        ):  # not where it is 0: so it may be for long, as of states held at a bound
            if k2 % 4 < 3:
                fa *= 0.5
            b, fb = m, fm
        else:
            if k2 % 4 < 3:
                fb *= 0.5
            a, fa = m, fm
    return b


@njit()
def first_event(run: s.State, enough: float) -> tuple[float, int, int]:
    """The earliest change of mode in the step just taken.

    Parameters
    ----------
    enough : float
        From where on in the step it does not matter when exactly.

    Returns
    -------
    u : float
        Where in the step; 2 if there is none.
    index : int
        Link l, or number of links + k for switch k.
    mode : int
        The mode after it.
    """
    best, index, mode = 2.0, -1, 0
    nl = run.n_links
    for link in range(nl):
        if run.has_queue[link]:
            u, new = _link_event(run, link)
            if u < best:
                best, index, mode = u, link, new
    for k in range(run.n_switches if run.locate else 0):
        if _crossed(run, k):
            u, k = _first_switch(run, enough)
            if u < best:
                return u, nl + k, 0 if run.switch[k] > 0.5 else 1
            break
    if best < 2.0:
        clear(run.together, run.n_switches)
    return best, index, mode


@njit(forceinline=True)
def _changed(run: s.State, k: int, value: float) -> bool:
    """Whether `value` of switch `k` has another sign than its mode."""
    return (run.switch[k] > 0.5) != (value > 0.0) and value != 0.0


@njit(forceinline=True)
def _crossed(run: s.State, k: int) -> bool:
    """Whether switch `k` has the other sign at the end of the step, and its source sends."""
    owner = run.switch_owner[k]
    return _changed(run, k, run.switch_value[k]) and (owner < 0 or run.flow_on[owner] == s.ON)


@njit()
def leave_crossed(run: s.State) -> bool:
    """Leave kinks that the step just taken has crossed to be decided at the next `start`; return
    whether there are any.
    """
    found = False
    for k in range(run.n_switches):
        if run.is_kink[k] and run.switch[k] != s.SLIDES and _crossed(run, k):
            run.switch[k] = s.UNDECIDED
            found = True
    return found


@njit()
def _switches_at(run: s.State, u: float, values: s.Floats) -> None:
    """Values of every switch at `u` of the step just taken, into `values`; nothing has changed
    before its start.
    """
    if u <= 0.0:
        clear(values, run.n_switches)
        return
    dense(run, u, run.stage)
    evaluate(run, run.t + u * run.h, run.stage, run.scratch, -1, 0, run.n_records, 1)
    copy(values, run.switch_value, run.n_switches)


@njit()
def _first_switch(run: s.State, enough: float) -> tuple[float, int]:
    """The switch that changes first in the step; those that change with it are marked in JTOGETHER.

    Only those are located that have changed a hair before the first one so far: of many switches, a
    few.
    """
    nsw, h = run.n_switches, run.h
    tol = resolution(run, run.t)
    hair = 10.0 * tol / h
    ends, found = run.switched, run.crossed_switch
    before, after = at(ends, nsw), at(ends, 2 * nsw)
    count = 0
    copy(ends, run.switch_value, nsw)
    clear(run.together, nsw)
    for k in range(nsw):
        if _crossed(run, k):
            found[count] = k
            count += 1
    best, index, n = 2.0, -1, 0
    while n < count:  # those up to n are located, or come later than the best
        k = found[n]
        n += 1
        if k < 0 or (index >= 0 and not _changed(run, k, before[k])):
            continue
        found[n - 1] = -1 - k
        run.switch_value[k] = ends[k]
        u = _switch_event(run, k, h, tol, enough)
        if u < best:
            best, index = u, k
            if count > 1:
                _switches_at(run, best - hair, before)
                _switches_at(run, min(1.0, best + hair), after)
            n = 0
    copy(run.switch_value, ends, nsw)
    for n in range(count):
        k = found[n] if found[n] >= 0 else -1 - found[n]
        if k != index and _changed(run, k, after[k]):
            run.together[k] = 1
    return best, index


@njit()
def resolves_slides(run: s.State) -> float:
    """How much shorter the step is to be for no end of a slide to hide in it; 1 if no shorter.

    The quartic through five of nine values of the switch has to foretell the others.
    """
    if run.h <= 1e3 * resolution(run, run.t):
        return 1.0
    nsw, values = run.n_switches, run.within
    copy(at(values, 8 * nsw), run.switch_value, nsw)
    for j in range(8):
        u, right = 0.125 * j, int(j == 0)
        dense(run, u, run.stage)
        evaluate(run, run.t + u * run.h, run.stage, run.scratch, -1, right, run.n_records, 1)
        copy(at(values, j * nsw), run.switch_value, nsw)
    copy(run.switch_value, at(values, 8 * nsw), nsw)
    share = 1.0
    for k in range(nsw):
        if run.switch[k] == s.SLIDES:
            share = min(share, _resolved(at(values, k), nsw))
    return share


@njit()
def _resolved(v: s.Floats, n: int) -> float:
    """The share of a step up to which nine values tell what is between."""
    size = 0.25
    for j in range(9):
        size = max(size, abs(v[j * n]))
    for j in range(1, 8):
        if v[j * n] < 0.0 <= v[8 * n]:
            return 0.125 * j
    for way in range(2):  # from the left, and from the right
        i, m = 8 * way * n, n - 2 * way * n
        a, b, c, d, e = v[i], v[i + 2 * m], v[i + 4 * m], v[i + 6 * m], v[i + 8 * m]
        outer = (35.0 * a + 140.0 * b - 70.0 * c + 28.0 * d - 5.0 * e) / 128.0
        inner = (-5.0 * a + 60.0 * b + 90.0 * c - 20.0 * d + 3.0 * e) / 128.0
        outer -= v[i + m]
        inner -= v[i + 3 * m]
        if max(abs(outer), abs(inner)) > UNRESOLVED * size:
            return 0.5
    return 1.0


@njit()
def settle_links(run: s.State, skip: int) -> int:
    """Decide every link's mode afresh from its backlog and arrivals; return how many changed.

    Where arrivals equal the capacity the mode stays: the step to come decides it. So does that of
    link `skip`, which has just changed at an event.
    """
    changed = 0
    for link in range(run.n_links):
        old = run.mode[link]
        if not run.has_queue[link]:
            run.mode[link] = s.EMPTY
            continue
        if link == skip:
            continue
        b = run.y[run.first_backlog + link]
        y = run.arrival[link]
        c = run.capacity[link]
        tie, slack = abs(y - c) <= TIE * c, SLACK * c * run.natural
        mode = s.BUSY
        if b <= slack:
            mode = s.EMPTY if y < c else s.BUSY
            if tie:
                mode = old if old != s.HELD and old != s.FULL else s.EMPTY
        elif b >= run.buffer[link] - slack:
            mode = s.FULL if y > c else s.BUSY
            if tie:
                mode = old if old == s.FULL else s.BUSY
        if mode != old:
            run.mode[link] = mode
            changed += 1
    return changed
