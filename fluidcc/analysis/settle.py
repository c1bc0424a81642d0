"""From near a limit cycle onto it: by waiting where that takes fewer steps, else by Newton's method."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.approach import COARSE, Approach
from fluidcc.analysis.returns import Lost, Section
from fluidcc.base.errors import SolverError

__all__ = ["Settled", "settled"]

_LADDER = 1e-2  # from one accuracy to the next, finer one
_ENOUGH = 30.0  # times the accuracy: nearer to the orbit it is not worth while to come with it
_LOOKED_AT, _AT_ONCE, _A_WHILE = 4, 50, 10  # cycles that are looked at, and waited for at most, and to see what comes
_NEWTON = 8  # steps at most
_NOISE = 1e-6  # changes below, which do not fall any more, are those of the integration
_LOST = 1e-2  # change from cycle to cycle at which the orbit was near none


class Settled(NamedTuple):
    """A section on the orbit, what is left to it, and how many steps of Newton's method led there."""

    section: Section
    error: float
    steps: int


def settled(approach: Approach, tol: float) -> Settled:
    """The cycle to `tol`, or to what the accuracy of the integration or the effort allows.

    An orbit that leaves what it was near is followed on.

    Raises
    ------
    SolverError
        If the effort does not suffice: what there is, and what to try.
    """
    while True:
        section = approach.near()
        try:
            for rtol in _ladder(approach.rtol):
                section = _waited(section.finer(rtol), max(tol, _ENOUGH * rtol))
            return _refined(section.finer(approach.rtol), tol)
        except Lost:
            if approach.effort.left <= 0:
                raise


def _ladder(finest: float) -> list[float]:
    """Accuracies from that of the approach on, without the finest."""
    found = [COARSE]
    while found[-1] > finest / _LADDER:
        found.append(found[-1] * _LADDER)
    return [rtol for rtol in found if rtol > 2 * finest]


class _Look(NamedTuple):
    """What some cycles were like."""

    changes: NDArray[np.float64]  # the largest one, from each cycle to the next
    cost: float  # steps of the solver for a cycle
    state: str

    @property
    def falls(self) -> bool:
        return bool(np.all(np.diff(self.changes) < 0)) or not self.changes.any()

    @property
    def ratio(self) -> float:
        """Of one change to the one before it, but not so small that nothing could tell."""
        return max(math.sqrt(self.changes[-1] / self.changes[0]), 0.01) if self.changes[0] > 0 else 0.01

    @property
    def largest(self) -> float:
        return float(self.changes.max())

    def left(self, floor: float) -> float:
        """How far it was to the orbit at first, if the changes go on falling as they did."""
        return self.largest / (1 - self.ratio) if self.falls and self.largest > floor else self.largest

    def wait(self, tol: float) -> int:
        """Cycles until it is as near to the orbit as that, if the changes go on falling as they did."""
        if self.largest == 0:
            return 1
        return max(1, math.ceil(math.log(tol * (1 - self.ratio) / self.largest) / math.log(self.ratio)))


def _cost_of_look(section: Section) -> float:
    return section.effort.ahead(2 * (_LOOKED_AT + 1) * section.period, section.rtol)


def _look(section: Section) -> _Look:
    before, ahead = section.effort.used, _cost_of_look(section)
    if ahead > section.effort.left:
        raise _spent(
            section, f"there is something like a cycle of {section.period:.6g} s near {section.start:.6g} s", ahead
        )
    marks, states = section.walk(section.base, _LOOKED_AT)
    period = np.diff(marks)
    by_time = np.abs(np.diff(period)) / period[-1]
    by_state = np.abs(np.diff(states, axis=0)).max(axis=1, initial=0.0)[1:]
    changes = np.maximum(by_time, by_state)
    state = (
        f"there is something like a cycle of {section.period:.6g} s near {section.start:.6g} s, but from one to the "
        f"next something still changes by {changes[-1]:.1e} of its size"
    )
    if changes[-1] > _LOST:
        raise Lost(state)
    return _Look(changes, (section.effort.used - before) / (2 * (_LOOKED_AT + 1)), state)


def _spent(section: Section, state: str, ahead: float) -> SolverError:
    return SolverError(
        f"{state}. To go on takes some {ahead:.0f} steps of the solver, and {section.effort.used} of "
        f"{section.effort.most} are used: give a larger max_steps, or a larger tol"
    )


def _waited(section: Section, tol: float) -> Section:
    """The section nearer to the orbit, as far as it comes there by itself soon."""
    for _ in range(_NEWTON):
        seen = _look(section)
        if not seen.falls or seen.largest <= tol:
            break
        wait = seen.wait(tol)
        if wait > 2 * section.cost_of_newton or seen.cost * wait + _cost_of_look(section) > section.effort.left:
            break
        section = section.later(min(wait, _AT_ONCE))
    return section


def _refined(section: Section, tol: float) -> Settled:
    """The cycle to `tol`, or to where nothing comes nearer any more."""
    best, stuck, newton = math.inf, 0, 0
    while True:
        seen = _look(section)
        error = seen.left(section.rtol)
        stuck = 0 if seen.falls and seen.largest < 0.1 * best else stuck + 1
        if error <= tol or (stuck > 1 and seen.largest < _NOISE):
            return Settled(section, error, newton)
        if newton >= _NEWTON:
            raise SolverError(f"{seen.state}; give a larger tol or a smaller rtol, or simulate it and look")
        jump = section.cost_of_newton
        wait = seen.wait(tol) if seen.falls else _A_WHILE  # for an orbit may leave what it is near
        by_itself = wait <= 2 * jump and stuck == 0 if seen.falls else stuck < 3
        ahead = seen.cost * (wait if by_itself else jump) + _cost_of_look(section)
        if ahead > section.effort.left and seen.largest < _NOISE:
            return Settled(section, error, newton)
        if ahead > section.effort.left:
            raise _spent(section, seen.state, ahead)
        if by_itself:
            best = min(best, seen.largest)
            section = section.later(min(wait, _AT_ONCE))
            continue
        if newton and seen.largest > 0.5 * best:  # disturbances reached over a kink of the map
            section = replace(section, step=section.step / 30)
        best = min(best, seen.largest)
        section, newton = section.corrected(), newton + 1
