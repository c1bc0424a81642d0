"""Running a network until its jumps come back at the same intervals with the same states, about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.effort import Effort
from fluidcc.analysis.returns import Label, Section, events, natural_sizes, states_at
from fluidcc.base.errors import SolverError
from fluidcc.network import Network
from fluidcc.numerics.periodic import find_recurrence, nearest_recurrence
from fluidcc.simulation.in_flight import counted_anew

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Approach"]

Array = NDArray[np.float64]

COARSE = 1e-6  # accuracy of the approach, which looks for what repeats to three digits
_FIRST, _SOONER = 400, 0.1  # round trips before the first look, or the part of the effort after which it is made
_AGAIN = 1.5  # times as late is the next look
_PIECE = 20_000  # steps of a piece: about a second
_MARKS = 1600  # that are compared; four of the longest cycle


@dataclass
class Approach:
    """A run in pieces, each of which can be gone through again.

    Attributes
    ----------
    rtol : float
        That the orbit is to have in the end.
    longest : float
        How long the run may become [s].
    pieces : list of Dataset
        Each goes on from the one before it.
    """

    net: Network
    effort: Effort
    rtol: float
    longest: float
    pieces: list[xr.Dataset] = field(default_factory=list)

    @property
    def now(self) -> float:
        """How far it has come [s]."""
        return float(self.pieces[-1].attrs["end"]) if self.pieces else 0.0

    def near(self) -> Section:
        """Go on until something repeats to three digits.

        Raises
        ------
        SolverError
            If nothing does within the effort and the time; it says what was seen, and what to try.
        """
        trip = max(self.net.base_rtt(name) for name in self.net.flows)
        look, spared = _FIRST * trip, (1 - _SOONER) * self.effort.most
        if self.pieces:
            look, spared = _AGAIN * self.now, 0.0
        while True:
            self._go_on(min(look, self.longest), spared)
            section, why = self._section()
            if section is not None:
                return section
            if self.now >= self.longest or self.effort.left <= 0:
                raise SolverError(self._in_vain(why))
            look, spared = _AGAIN * self.now, 0.0

    def _go_on(self, look: float, spared: float) -> None:
        """More pieces, to that time, or until no more steps than so many are left."""
        length = look / 20
        while self.now < look and self.effort.left > spared:
            left = look - self.now
            before = self.pieces[-1] if self.pieces else None
            if before is not None:
                length = min(4 * length, _PIECE * length / max(1, int(before.attrs["steps"])))
            length = left if left < 1.5 * length else length
            stop = look if length == left else self.now + length
            self.pieces.append(self.effort.go(self.net, stop, COARSE, before))

    def _section(self) -> tuple[Section | None, str]:
        """The rarest event that still comes back, if it does so with the same states."""
        since = 0.25 * self.now
        kind = "jump" if any(run.attrs["jumps"] for run in self.pieces) else "tick"
        times, labels = self._events(kind)
        if len(times) == 0:
            return None, "there was no jump"
        counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
        often = {one: n for one, n in counts.items() if n >= 4 and self._lasts(one, labels, times)}
        if not often:
            return None, f"no {kind} comes back often enough"
        label = min(often, key=lambda one: often[one])
        marks = times[np.array([one == label for one in labels]) & (times > since)][-_MARKS:]
        bare = find_recurrence(marks, np.empty((len(marks), 0)))
        if bare is None:
            return None, f"the {kind}s of {label[0]!r} come at intervals that do not repeat{_nearest(marks)}"
        found = None
        for most in (16 * bare.marks + 1, _MARKS):  # even intervals, as of ticks, say little of the states
            if self._cost(marks[-most:]) > self.effort.left:
                return None, f"the {kind}s of {label[0]!r} repeat, and to compare the states there is more than is left"
            states, size = self._states(marks[-most:])
            found = find_recurrence(marks[-most:], states / size)
            if found is not None or most >= len(marks):
                break
        if found is None:
            return None, f"the {kind}s of {label[0]!r} repeat, but not with the same states"
        return self._between(label, found.marks, found.period, size), ""

    def _events(self, kind: str) -> tuple[Array, list[Label]]:
        parts = [events(run, kind) for run in self.pieces]
        return np.concatenate([times for times, _ in parts]), [label for _, labels in parts for label in labels]

    def _lasts(self, label: Label, labels: list[Label], times: Array) -> bool:
        """Whether an event still happens at the end, as often as it did."""
        own = times[[one == label for one in labels]]
        return bool(self.now - own[-1] <= 2.0 * np.diff(own).max())

    def _cost(self, marks: Array) -> int:
        """Steps that `_states` will take."""
        return sum(int(run.attrs["steps"]) for run in self.pieces if float(run.attrs["end"]) >= marks[0])

    def _states(self, marks: Array) -> tuple[Array, Array]:
        """What there was just after each mark (marks, n), and how large each state is (n,)."""
        found, start = [], None
        for run in self.pieces:
            end = float(run.attrs["end"])
            began = 0.0 if start is None else float(start.attrs["end"])
            inside = marks[(marks > began) & (marks <= end)]
            if len(inside):
                there = self.effort.go(self.net, end, COARSE, start, inside)
                found.append(states_at(there)[0])
            start = run
        states = np.concatenate(found)
        return states, np.maximum(np.abs(states).max(axis=0), natural_sizes(there, self.net))

    def _between(self, label: Label, count: int, period: float, size: Array) -> Section:
        """A section that begins between two marks."""
        last = self.pieces[-1]
        at = np.linspace(self.now, self.now + 2 * period, 201)[1:]
        ahead = self.effort.go(self.net, self.now + 2.5 * period, COARSE, last, at)
        size = np.maximum(np.abs(states_at(ahead)[0]).max(axis=0), size)
        times, labels = events(ahead, "jump" if ahead.attrs["jumps"] else "tick")
        marks = times[[one == label for one in labels]]
        middle = float(marks[0] + 0.37 * (marks[1] - marks[0]))
        base = counted_anew(self.net, self.effort.go(self.net, middle, COARSE, last))
        return Section(self.net, label, count, period, base, size, self.rtol, self.effort)

    def _in_vain(self, why: str) -> str:
        limit = "until" if self.now >= self.longest else "max_steps"
        return (
            f"no limit cycle within {self.now:.6g} s and {self.effort.used} steps of the solver: {why}. Give a larger "
            f"{limit}; if it never repeats, as flows of unequal round trips may not, take means over a long simulation"
        )


def _nearest(marks: Array) -> str:
    near = nearest_recurrence(marks)
    if near is None:
        return ""
    return f" (the nearest to it: {near.marks} of them, {near.period:.4g} s, to {100 * near.changes.max():.2g} %)"
