"""Sliding: a switch that both branches lead back to stays at 0, by Filippov's mean of the branches.

The mean is such a share of the branch with the switch on that the switch stays as it is; its kernel
(`laws.sliding`) computes both branches. While the share is between 0 and 1 the mode is
`state.SLIDES`, and the value of the switch share (1 - share), so that where it ceases to slide is
located as every other change of mode is.

When a switch of a law that may slide changes for the first time, Python has the kernel compiled.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.layout import at

from ..compiling import njit
from ..fluid import state as s
from .calls import call_kernel

HASTE = 1e-6  # of a natural time within which the next change of a switch is one in haste
MANY = 500  # of them in a row are without end


@njit()
def _call(run: s.State, row: s.Ints, want: int, oz: s.Floats, od: s.Floats, o: s.Floats) -> None:
    z, signals = row[s.GZ], run.signals if row[s.GSOURCE] else run.link_inputs
    call_kernel(
        row[s.GKERNEL], row[s.GN], row[s.GSU], at(oz, z), at(signals, row[s.GU]),
        at(run.parameters, row[s.GP]), at(run.switch, row[s.GM]), at(od, z), o,
        at(run.switch_value, row[s.GM]), want * row[s.GALL] + row[s.GWANT],
    )  # fmt: skip


@njit()
def slide(run: s.State, of_source: int, oz: s.Floats, od: s.Floats, want: int) -> None:
    """Put Filippov's mean in place of what the branch gives, for every source or link that
    slides.
    """
    for r in range(run.n_slides):
        row = at(run.slide, s.GSIZE * r)
        if row[s.GSOURCE] == of_source and run.switch[row[s.GSWITCH]] == s.SLIDES:
            o = at(run.rate if of_source else run.link_outputs, row[s.GO])
            _call(run, row, want, oz, od, o)


@njit()
def slides_now(run: s.State) -> bool:
    """Whether some switch slides."""
    for r in range(run.n_slides):
        if run.switch[run.slide[s.GSIZE * r + s.GSWITCH]] == s.SLIDES:
            return True
    return False


@njit()
def put_on_surfaces(run: s.State) -> bool:
    """Put states back to where the switches that slide are 0, now that all signals are known;
    return whether any were not.
    """
    moved = False
    for r in range(run.n_slides):
        row = at(run.slide, s.GSIZE * r)
        if run.switch[row[s.GSWITCH]] == s.SLIDES:
            _call(run, row, 2, run.y, run.scratch, run.rule_result)
            moved |= run.rule_result[2] != 0.0
    return moved


@njit()
def look_for_slides(run: s.State) -> int:
    """Let switches that have come to 0 now slide if both branches lead back there, and let those
    that have ceased to choose a branch; how many do. All signals are known.
    """
    changed = 0
    for r in range(run.n_slides):
        row = at(run.slide, s.GSIZE * r)
        k, owner = row[s.GSWITCH], run.switch_owner[row[s.GSWITCH]]
        mode = run.switch[k]
        if mode == s.SLIDES or run.flip_time[k] != run.t:
            continue
        if owner >= 0 and run.flow_on[owner] == s.OFF:
            continue
        if mode != s.LEAVES and _beside(run, k) >= 0:
            _cross_or_refuse(run, row, _beside(run, k))
            continue
        _call(run, row, 3, run.y, run.scratch, run.rule_result)
        off, on = run.rule_result[0], run.rule_result[1]
        if mode == s.LEAVES:
            run.switch[k] = 1.0 if on + off > 0.0 else 0.0
            run.flip_time[k] = -np.inf  # not to slide again before it has changed once more
        elif on < 0.0 < off:
            _call(run, row, 2, run.y, run.scratch, run.rule_result)
            run.switch[k] = s.SLIDES
            run.slides += 1
        else:
            continue
        changed += 1
    return changed


@njit()
def _beside(run: s.State, switch: int) -> int:
    """Another switch of the same law that slides, or -1."""
    for k in range(run.n_switches):
        if run.switch_owner[k] == run.switch_owner[switch] and run.switch[k] == s.SLIDES:
            return k
    return -1


@njit()
def _cross_or_refuse(run: s.State, row: s.Ints, beside: int) -> None:
    """End the run unless a switch passes 0 on whichever side the other one that slides is: of both
    at once no mean is known.
    """
    up = down = True
    for side in range(2):
        run.switch[beside] = float(side)
        _call(run, row, 3, run.y, run.scratch, run.rule_result)
        off, on = run.rule_result[0], run.rule_result[1]
        up, down = up and off > 0.0 and on > 0.0, down and off < 0.0 and on < 0.0
    run.switch[beside] = s.SLIDES
    if not (up or down):
        run.code = s.CHATTER
        run.where = run.n_links + row[s.GSWITCH]


@njit(forceinline=True)
def other(mode: float) -> float:
    """The mode that a switch changes to."""
    if mode == s.SLIDES:
        return s.LEAVES
    return 0.0 if mode > 0.5 else 1.0


@njit()
def turn(run: s.State, k: int) -> None:
    """Change the mode of switch `k` now, and count changes in haste."""
    run.hasty[k] = run.hasty[k] + 1 if run.t - run.flip_time[k] <= HASTE * run.natural else 0
    run.flip_time[k] = run.t
    run.switch[k] = other(run.switch[k])


@njit()
def stops(run: s.State, flipped: int) -> bool:
    """Whether Python is to be asked if a switch that has changed may slide, or changes without
    end.
    """
    for k in range(run.n_switches):
        if not run.is_kink[k] or (k != flipped and not run.pending[k]):
            continue
        if run.slide_of[k] == s.NOT_ASKED or run.hasty[k] >= MANY:
            run.code = s.ASKED if run.slide_of[k] == s.NOT_ASKED else s.CHATTER
            run.where = run.n_links + k
            return True
    return False
