"""The state of a run of `solve_dde`: every number and array that the compiled solver reads and
writes, by name.

So compiled code takes two pointers, whatever the equation, is compiled once for all of them, and
can return to Python at any step and go on later: ``run.h`` is the step and ``run.y[i]`` state `i`.
Functions of the user are called by address, as `functions` says.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from numba import config, types
from numba.extending import intrinsic

from fluidcc.numerics.layout import Floats, Ints, Scattered

#: a function of the user: (t, frame) -> 1, or 0 where it failed; one in Python knows its frame
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_double)


class Stop(Exception):
    """A run cannot go on; `Run.code` says why."""


class Run(Scattered):
    """The numbers and arrays of a run, read and written by name."""

    # --- the problem: n states, m lags ------------------------------------------------------------
    n: int
    m: int
    n_read: int  # states that each lag is read for: n, or 1
    t_end: float
    rtol: float
    max_step: float
    first_step: float  # 0: to be chosen
    max_steps: int
    max_order: int  # the highest order of a discontinuity that is landed on
    margin: int  # entries that one step may add to a store at most
    few: int  # whether the lags are so few that kinks which are found are carried on
    follow: int  # whether some points are not landed on: lags pass them as they come
    settled: float  # until this time
    keep: int  # whether the whole past is kept
    scale: float  # of times
    tolerance: float  # times closer than this are one
    aside: float  # so far from a jump of fun, its value is that of one side
    longest: float  # lag: what lies further back is not needed
    shortest: float  # positive lag: no step so short sees itself
    start_order: int  # of the discontinuity at the start
    quiet: float  # errors below tell nothing of what lies between the stages,
    probe: float  # so that fun is tried at such intervals
    atol: Floats
    lag: Floats  # m constants, infinite if they are a function
    top: Ints  # the (first) state that each lag is read for
    A: Floats  # the pair, as in `tableaus`
    B: Floats
    C: Floats
    E: Floats
    P: Floats

    # --- functions of the user, and the frame in which they find arguments and put results --------
    function: Ints  # addresses: see FUN, LAGS, HISTORY, OTHERS
    out: Floats  # what a function returned; the frame begins here
    stage: Floats  # n: the state
    z: Floats  # n_read x m: the delayed states
    modes: Floats

    # --- where it stands --------------------------------------------------------------------------
    t: float
    h: float  # of the trial step
    wish: float  # proposed next step
    error: float  # of the trial step, in units of the tolerance
    problem: int  # why the trial step cannot be judged by its error; 0: it can
    code: int  # why the run paused or failed
    where: int  # the lag or watcher it speaks of
    when: float  # the time it speaks of
    finished: int
    y: Floats
    rate: Floats  # right-hand side of it
    y_end: Floats  # of the trial step
    q: Floats  # n x 4: the trial step is y + q @ (u, u^2, u^3, u^4)
    k: Floats  # 7 x n stages
    guess: Floats  # n x 4: what the step looks into
    allowed: Floats  # error of each state
    at: Floats  # m delayed times
    least_lag: float  # seen at the last call of `arguments`
    flat: Floats  # n x 4 zeros

    # --- the step before --------------------------------------------------------------------------
    smooth: int  # whether the solution goes on smoothly from it
    before_h: float
    before_error: float
    before_q: Floats
    cut: float  # where in it the last piece ended
    last_error: float  # for the PI rule, at least 1e-4
    suspect: float  # fun may jump before this time
    usual: float  # the step size before steps were refused for that
    paced: int  # steps and time at the last check of the pace
    paced_at: float
    crowd: int  # discontinuities in a row without progress

    # --- the past: polynomial pieces, breaking points that cut it, and where each lag looks -------
    n_pieces: int
    most_pieces: int
    base: int  # pieces forgotten
    piece_t: Floats
    piece_h: Floats
    piece_y: Floats
    piece_q: Floats
    n_points: int
    most_points: int
    initial: int  # index of the initial point
    point_t: Floats
    point_order: Ints
    point_piece: Ints  # the piece that begins there
    branch: Ints  # the interval of the past that each lag looks into; interval k ends in point k
    cursor: Ints  # the piece that each lag was found in
    next_point: Ints  # that each constant lag will carry forward
    earliest: float  # time at which the history was needed
    past: Floats  # n: a state of the history, where that is a function

    # --- known discontinuities, in order of time --------------------------------------------------
    n_known: int
    next_known: int
    known_t: Floats
    known_order: Ints
    known_jump: Ints  # what changes the state then; -1: nothing

    # --- watchers: events, functions that trigger jumps, switches ---------------------------------
    n_watchers: int
    n_watched: int  # they, and each end of the interval of each lag that is a function
    look_back: int  # whether any of them reads delayed states
    kind: Ints
    number: Ints  # among those of its kind
    direction: Ints
    terminal: Ints  # how many occurrences end the run; 0: none
    seen: Ints  # occurrences
    sign: Ints  # before the step; 0: on the surface, not yet known
    size: Floats  # the largest value seen
    switched: Floats  # when its mode last changed
    change_delayed: Ints
    value: Floats  # of watchers
    value_before: Floats
    side: Ints  # their signs during a scan
    place: Floats  # 7 in a panel of a step, of which five fit a quartic
    fit: Floats  # 6 x 5: what it foretells at the other two, its inner coefficients, its end
    panel: Floats  # 7 x n_watched: values there
    panel_width: float  # most of the next, in time
    too_fine: int  # whether watchers are not resolved in the panels that a step may have
    noisy: Ints  # whether values of watchers in the panel are rounding, of which none counts
    hole: float  # where in the step a watcher is NaN, 2 if nowhere, and which
    hole_of: int
    n_found: int  # zeros in a trial step
    most_found: int
    ends: float  # the first zero in it that must end it; 2 if there is none
    last: float  # a little behind, up to where zeros count
    found_u: Floats
    found_what: Ints
    found_side: Ints  # the new sign
    found_kind: Ints

    # --- what is recorded -------------------------------------------------------------------------
    sampling: int  # whether at given times, else at every mesh point
    n_samples: int
    sample_t: Floats
    n_mesh: int  # recorded so far
    most_mesh: int
    mesh_t: Floats
    mesh_y: Floats
    n_notes: int
    most_notes: int
    note_what: Ints  # HIT, JUMPED or LANDED
    note_which: Ints  # the number of the event or jump, the order of the discontinuity
    note_t: Floats
    note_y: Floats

    # --- statistics -------------------------------------------------------------------------------
    steps: int
    rejections: int
    resteps: int
    passes: int
    switchings: int
    nfev: int


def _call_python(address: int, t: float, frame: Any) -> int:
    return int(FUNCTION(int(address))(t))


if config.DISABLE_JIT:
    call: Callable[..., Any] = _call_python
else:

    @intrinsic
    def call(typingctx, address, t, frame):  # type: ignore[no-untyped-def]
        """Call the function of the user that stands at `address`."""
        from llvmlite import ir

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            word, double = ir.IntType(64), ir.DoubleType()
            kind = ir.FunctionType(word, [double, double.as_pointer()])
            return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

        return types.int64(types.int64, types.float64, frame), codegen


# --- functions of the user ------------------------------------------------------------------------
(FUN, LAGS, HISTORY, OTHERS) = range(4)  # then one function a watcher, then the changes of jumps

# --- kinds of watchers ----------------------------------------------------------------------------
(EVENT, JUMP, SWITCH) = range(3)

# --- what is noted: an event, a jump, a discontinuity that is landed on ---------------------------
(HIT, JUMPED, LANDED) = range(3)

# --- why a trial step cannot be judged by its error -----------------------------------------------
(NO_PROBLEM, NOT_FINITE, NO_FIXED_POINT, NEGATIVE_LAG, TOO_FINE) = range(5)

# --- why the driver returned ----------------------------------------------------------------------
(
    DONE, PAUSED, GROW, TERMINATED, BAD_RATE, TOO_MANY_STEPS, COLLAPSE, BAD_LAG, BAD_WATCHER,
    BAD_JUMP, FASTER_JUMPS, CROWDED, ENDLESS_JUMPS, USER,
) = range(14)  # fmt: skip
