"""Characteristic roots: guesses by Chebyshev discretisation, polished by Newton, complete by the argument principle."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput, Undecided, Unsupported
from fluidcc.numerics.linear.bounds import essential_abscissa, is_neutral, radius
from fluidcc.numerics.linear.compiled.zeros import STARTS, gather
from fluidcc.numerics.linear.contour import OnContour, half_box, winding
from fluidcc.numerics.linear.core import core_of
from fluidcc.numerics.linear.pencil import Complex, Pencil
from fluidcc.numerics.linear.polish import mirrored, newton, resolve
from fluidcc.numerics.linear.spectral import approximate_roots, points_for, undelayed
from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["Region", "Search", "rightmost", "roots_in"]

Region = tuple[float, float, float, float]

REACHES = (6.0, 25.0, 80.0)
"""Frequencies that successive discretisations resolve, in units of the longest delay."""

LEAST = (10, 16, 24)

AGAIN = 4
"""Searches for slow roots away from those that are known."""

FARTHEST = -300.0
"""Left of it, in units of 1/(longest delay), no region begins: exp(300) squared is still a number."""

PARTS = 4000
"""Boxes that are looked at until all roots in one are found."""

FEW = 6
"""Missing roots up to which Newton's iteration is tried in a box, conjugates among them; else it is halved at once."""

SPREAD = np.array([0.07, 0.31, 0.52, 0.74, 0.95])
"""Where it starts, from side to side."""

APART = np.array([1.0 + 0.7j, 0.3 + 23.0j, -2.0 + 5.3j, -8.0 + 1.9j])
"""Where a determinant is compared with the polynomial of its roots, in units of 1/(longest delay)."""

MANY = 24
"""States from which the first guesses include the roots without delays."""


class Search:
    """What is known of the roots of one block: finds more, and proves that a region holds no others.

    Everything in the pencil's unit of time; roots in the closed upper half plane only.
    """

    def __init__(self, block: Blocks) -> None:
        self.core = core_of(block)
        self.roots: Complex = np.empty(0, complex)
        self.times = np.empty(0, np.int64)
        self.begun = self.slow = False
        self.effort = -1
        self.finite = not len(self.core.delays)

    @cached_property
    def pencil(self) -> Pencil:
        """The pencil of the core."""
        return Pencil(self.core)

    @property
    def block(self) -> Blocks:
        """The core, scaled."""
        return self.pencil.block

    @cached_property
    def neutral(self) -> bool:
        """Whether the difference operator depends on s."""
        return is_neutral(self.block)

    @cached_property
    def essential(self) -> float:
        """Right of it the number of roots is finite."""
        return essential_abscissa(self.block) if self.neutral else -np.inf

    def improve(self, wanted: int, reach: float = 0.0) -> None:
        """First what Newton's iteration reaches from a few points, then slow roots, then ever finer discretisations."""
        if not self.begun:
            self.begun = True
            if not self.finite:
                self._begin(wanted)
                return
        if not self.slow and not self.finite:
            self._add_slow()
            return
        self.effort += 1
        level = min(self.effort, len(REACHES) - 1)
        least = LEAST[level] + 12 * (self.effort - level)
        frequency = max(reach, min(REACHES[level] * 2.0 ** (self.effort - level), 400.0))
        frequency = min(frequency, max(reach, radius(self.block, 0.0))) if self.essential < 0 and level else frequency
        points = (
            points_for(self.block.delays, frequency, least + wanted // 3)
            if len(self.block.delays)
            else np.empty(0, np.int64)
        )
        shifts = 0j + 1j * np.linspace(0, max(4.0, min(frequency, 40.0)), 5 + 3 * self.effort)
        guesses = approximate_roots(self.block, points, shifts)
        if self.finite and self.effort:  # clusters that Newton cannot part: the eigenvalues of A are the roots
            upper = guesses[guesses.imag >= 0]
            self.roots, self.times = upper[np.argsort(-upper.real)], np.ones(len(upper), np.int64)
            return
        guesses = guesses[guesses.imag >= -1e-6 * (1 + np.abs(guesses))]
        if not self.finite:
            guesses = guesses[np.argsort(-guesses.real)][: max(2 * wanted, wanted + 6)]
        self.add(guesses)

    def _begin(self, wanted: int) -> None:
        if len(self.block.A) > MANY:
            self._add_slow(STARTS)
            return
        roots = gather(self.pencil.whole, self.pencil.table[0], min(8 + wanted, len(STARTS)))
        upper = roots[roots.imag >= 0]
        self.roots, self.times = upper[np.argsort(-upper.real)], np.ones(len(upper), np.int64)

    def _add_slow(self, more: Complex | None = None) -> None:
        """What is near the roots that are slow for the delays, however many there are.

        Slow roots of many flows lie densely: Newton's iteration is repeated away from those that it has found.
        """
        self.slow = True
        near = undelayed(self.block)
        near = near[near.imag >= 0]
        self.add(near if more is None else np.concatenate((more[more.imag >= 0], near)))
        for _ in range(AGAIN):
            before = int(self.times.sum())
            if before >= len(near):
                break
            s, size = newton(self.pencil, near, self.known(), 40)
            self.add(s[(size < 1e-8) & (s.imag > -1e-6)])
            if self.times.sum() == before:
                break

    def add(self, guesses: Complex) -> None:
        """Polish guesses and merge them with what is known."""
        if not len(guesses):
            return
        fresh = np.concatenate((guesses, self.roots[self.times == 1]))
        many, repeat = self.roots[self.times > 1], self.times[self.times > 1]
        roots, times = resolve(self.pencil, fresh)
        if len(many):
            apart = np.abs(roots[:, None] - many).min(axis=1) > 1e-4 * (1 + np.abs(roots))
            roots, times = np.concatenate((roots[apart], many)), np.concatenate((times[apart], repeat))
        order = np.argsort(-roots.real)
        self.roots, self.times = roots[order], times[order]

    def without_lags(self) -> bool:
        """Whether all delays cancel, so that as many roots as there are states are all; no others are kept then.

        So it is with the clock of acknowledgements of windows that stand at a bound: the determinant is the polynomial
        of these roots, and what else was found far to the left is rounding. A lag that acts so little that its roots
        lie left of about -24/(longest delay) is taken for none.
        """
        n, every = len(self.block.A), self.known()
        if len(every) < n:
            return False
        gaps = APART[:, None] - every[:n]
        found = self.pencil.values(APART, slope=False, scaled=True)
        ratio = found.phase * np.exp(found.log - np.log(np.abs(gaps)).sum(axis=1)) / (gaps / np.abs(gaps)).prod(axis=1)
        if not np.abs(ratio / ratio[0] - 1).max() < 1e-7:
            return False
        upper = every[:n][every[:n].imag >= 0]
        self.roots, self.times = upper, np.ones(len(upper), np.int64)
        return True

    def known(self) -> Complex:
        """Every known root with its conjugate and multiplicity."""
        return mirrored(self.roots, self.times)

    def missing(self, box: Region, density: float = 1.0) -> int:
        """Roots in a box that are not known: the winding of what is left of f.

        A box that stands on the real axis counts with its mirror image.
        """
        left, right, bottom, top = box
        if bottom == 0:
            turns = -2 * winding(self.pencil, half_box(left, right, top), self.known(), density)
        else:
            corners = complex(left, bottom), complex(left, top), complex(right, top), complex(right, bottom)
            turns = -winding(self.pencil, np.array([*corners, corners[0]]), self.known(), density)
        count = round(turns)
        if abs(turns - count) > 0.02:
            raise OnContour(f"the argument does not close: {turns:.4f} turns")
        return count

    def complete(self, box: Region, density: float = 1.0) -> None:
        """Find every root in a box of the upper half plane: it is halved until nothing is missing in any part.

        Raises
        ------
        OnContour
            The argument cannot be followed around a part, or `PARTS` of them are not enough.
        """
        waiting = [box]
        for _ in range(PARTS):
            if not waiting:
                return
            part = waiting.pop()
            missing = self.missing(part, density)
            if 0 < missing <= FEW:
                self.hunt(part)
                missing = self.missing(part, density)
            if missing > 0:
                waiting += self._halves(part, density)
            elif missing < 0:
                raise OnContour(f"{-missing} more roots were found than the argument principle counts")
        raise OnContour(f"roots were still missing in one of {PARTS} parts of the region")

    def _halves(self, box: Region, density: float) -> list[Region]:
        """Two parts of a box between which the argument can be followed."""
        left, right, bottom, top = box
        for share in (0.5, 0.44, 0.57, 0.37):
            x, y = left + share * (right - left), bottom + share * (top - bottom)
            wide = right - left > top - bottom
            line = (complex(x, bottom), complex(x, top)) if wide else (complex(left, y), complex(right, y))
            with suppress(OnContour):
                winding(self.pencil, np.array(line), self.known(), density)
                return (
                    [(left, x, bottom, top), (x, right, bottom, top)]
                    if wide
                    else [(left, right, bottom, y), (left, right, y, top)]
                )
        raise OnContour(f"roots are too close to one another near s = {complex(x, y) / self.pencil.time:.6g} 1/s")

    def reach_right_of(self, left: float) -> float:
        """Half the side of a box that holds every root right of `left`."""
        bound = radius(self.block, left)
        if not np.isfinite(bound):
            raise Unsupported(
                f"the system is neutral with essential abscissa {self.essential / self.pencil.time:.6g} 1/s: "
                f"infinitely many roots may lie right of {left / self.pencil.time:.6g} 1/s; ask for a bounded region"
            )
        return max(bound, abs(left)) * 1.05 + 0.5

    def hunt(self, box: Region) -> None:
        """Newton away from all known roots, from points spread over a box."""
        left, right, bottom, top = box
        x, y = (low + (high - low) * SPREAD for low, high in ((left, right), (bottom, top)))
        s, size = newton(self.pencil, (x[:, None] + 1j * y).ravel(), self.known(), 40)
        near = (np.abs(s.real - 0.5 * (left + right)) < right - left) & (s.imag > -1e-6) & (s.imag < 2 * top - bottom)
        self.add(s[(size < 1e-8) & near])


def rightmost(of: Search, count: int, attempts: int = 7) -> Complex:
    """The `count` rightmost roots [1/s], repeated by multiplicity; all of them if the system has fewer.

    Conjugates stand together, so that there may be one more than asked for.

    Raises
    ------
    Unsupported
        The system is neutral, and not as many roots are found right of its essential abscissa.
    Undecided
        The roots found and the argument principle do not agree.
    """
    if count < 1:
        raise InvalidInput(f"count must be at least 1, got {count}")
    problem = "too few roots were found"
    for attempt in range(attempts):
        if attempt and not of.finite and of.without_lags():
            every = of.known()
            return every[: _whole(every, count)] / of.pencil.time
        if not of.begun or attempt in (1, 2) or len(of.known()) < count:
            of.improve(count)
        every = of.known()
        if of.finite:
            if len(every) == len(of.block.A):
                return every[: _whole(every, count)] / of.pencil.time
            continue
        left = _gap(every.real, count)
        if left <= of.essential:  # a line right of where infinitely many are, and nearer to it each time
            room = float(every.real.max(initial=-np.inf)) - of.essential
            left = of.essential + (room if room > 0 else 1.0) * 0.5 ** (attempt + 1)
        try:
            top = of.reach_right_of(left)
            box = (left, max(top, left + 1), 0.0, top)
            if attempt >= 2:
                of.complete(box, 1.0 + attempt)
            missing = of.missing(box, 1.0 + attempt)
        except OnContour as raised:
            problem = str(raised)
            continue
        every = of.known()
        right = int((every.real > left).sum())
        if missing == 0 and right >= count:
            return every[: _whole(every, count)] / of.pencil.time
        problem = f"{right} were found right of {left / of.pencil.time:.6g} 1/s, where there are {right + missing}"
    if np.isfinite(of.essential):
        raise Unsupported(
            f"the system is neutral with essential abscissa {of.essential / of.pencil.time:.6g} 1/s, near which "
            f"infinitely many roots may lie, and its {count} rightmost roots could not be settled: {problem}; ask for "
            "fewer or for a bounded region"
        )
    raise Undecided(f"the {count} rightmost roots could not be settled: {problem}; ask for fewer or for a region")


def roots_in(of: Search, region: Region) -> Complex:
    """All roots in a box (re_min, re_max, im_min, im_max) [1/s], repeated by multiplicity, by falling real part.

    Raises
    ------
    InvalidInput
        The box is empty or not finite, or it begins too far to the left.
    Undecided
        A root lies on its edge, or the counts do not agree.
    """
    right = "a finite box (re_min, re_max, im_min, im_max) [1/s]"
    ends = numbers(region, "region", right)
    if ends.shape != (4,) or not (ends[0] < ends[1] and ends[2] < ends[3]):
        raise InvalidInput(f"region is {shown(region)}; give {right}")
    low, high, bottom, top = ends.tolist()
    unit = of.pencil.time
    if low * unit < FARTHEST and not of.finite:
        raise InvalidInput(
            f"region begins at re_min = {low:g} 1/s, where lagged terms exceed the range of floating-point numbers; "
            f"begin at {FARTHEST / unit:.4g} 1/s, which is {FARTHEST:g} over the longest delay, or right of it"
        )
    height = max(abs(bottom), abs(top)) * unit
    box = (low * unit, high * unit, 0.0, height * (1 + 1e-9))
    problem = ""
    for attempt in range(3):
        if of.finite:  # eigenvalues of A, however close to one another
            of.improve(1)
        try:
            of.complete(box, 1.0 + attempt)
            missing = of.missing(box, 1.0 + attempt)
        except OnContour as raised:
            problem = str(raised)
            continue
        if missing == 0:
            s = of.known() / unit
            inside = (s.real >= low) & (s.real <= high) & (s.imag >= bottom) & (s.imag <= top)
            return s[inside]
        problem = f"the argument principle counts {missing} more than were found"
    raise Undecided(f"the roots in {tuple(ends.tolist())} could not be settled: {problem}; move the region's edges")


def _whole(every: Complex, count: int) -> int:
    """`count`, or one more where it would part two conjugates."""
    count = min(count, len(every))
    if count < len(every) and every[count - 1].imag > 0 and every[count] == every[count - 1].conj():
        return count + 1
    return count


def _gap(real: NDArray[np.float64], count: int) -> float:
    """A line left of the first `count` real parts, in a gap wide enough to walk through; left of all if too few."""
    for i in range(count, len(real)):
        if real[i - 1] - real[i] > 1e-3:
            return float(real[i - 1] - min(0.5 * (real[i - 1] - real[i]), 0.5))
    return float(real.min(initial=0.0)) - (0.05 if len(real) >= count else 0.5)
