"""How many roots lie right of the imaginary axis: once by the argument principle, once by
finding them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import Undecided, Unsupported
from fluidcc.base.tables import InTable
from fluidcc.numerics.linear.compiled.zeros import (
    LEVEL,
    ROUNDING,
    WIDE,
    WIDEST,
    right_of_axis,
)
from fluidcc.numerics.linear.contours import OnContour, half_box, winding
from fluidcc.numerics.linear.pencil import POLES, Complex, pencils
from fluidcc.numerics.linear.roots import FEW, RootSearch, Searches
from fluidcc.numerics.linear.wiring import Entries, core_of


@dataclass(frozen=True, repr=False)
class RootCount(InTable):
    """Roots right of the imaginary axis, on it, and at the origin.

    Attributes
    ----------
    unstable : int or inf
        Roots with positive real part, by the argument principle; infinitely many where those of
        the difference operator of a neutral system are there.
    marginal : int
        Roots on the imaginary axis to the resolution, those at the origin aside.
    at_zero : int
        Roots at the origin, exactly or to rounding of the entries: integrators that nothing moves.
    by_contour, by_roots : int
        The count of the argument principle, and that of the roots found and polished: fewer where
        not all could be found.
    roots : array of complex
        The roots that were found right of the axis or on it, repeated by multiplicity [1/s].
    resolution : float
        A root whose real part is below this fraction of its modulus counts as marginal; a multiple
        root also where it is below what rounding of the entries moves its parts by.
    """

    unstable: Any
    marginal: int
    at_zero: int
    by_contour: Any
    by_roots: int
    roots: Complex
    resolution: float

    _shown = (
        "stable", "unstable", "marginal", "at_zero", "by_contour", "by_roots", "roots [1/s]",
        "resolution",
    )  # fmt: skip

    @property
    def stable(self) -> bool:
        """No root right of the axis or on it."""
        return self.unstable == self.marginal == self.at_zero == 0

    def __int__(self) -> int:
        return int(self.unstable)


def counted(of: Searches) -> RootCount:
    """The roots of the closed right half plane, as `count_right` of each part."""
    counts = [count_right(part) for part in of.parts]
    if len(counts) == 1:
        return counts[0]
    total = {name: sum(getattr(c, name) for c in counts) for name in
             ("unstable", "marginal", "at_zero", "by_contour", "by_roots")}  # fmt: skip
    roots = np.concatenate([np.empty(0, complex), *(c.roots for c in counts)])
    return RootCount(**total, roots=roots, resolution=LEVEL)


def count_right(of: RootSearch) -> RootCount:
    """Count the roots of the closed right half plane.

    The contour is the imaginary axis up to a bound on all roots right of it, closed by a box: once
    on either side of the axis. Where the two differ a root may be on it; then all roots near it are
    found, and the contour passes those on the axis on their right. Guesses and contour are refined
    twice.

    Raises
    ------
    Unsupported
        The system is neutral, and its difference operator neither strongly stable nor unstable.
    Undecided
        A root may lie on the axis, and contour and roots disagree after refinement.
    """
    if of.single:
        return _of_single_states(of.diagonal, LEVEL * of.slowest / of.pencil.time)
    own, pencil = of.pencil.own, of.pencil
    parts = own.row, own.column, own.value[0], own.n, own.delays[0], of.slowest
    number = -1
    if not len(of.zeros):
        number = right_of_axis(pencil.whole, pencil.table[0], *parts, of.beyond(-LEVEL))
    if number >= 0:
        return _with_roots(of, number)
    if of.essential >= 0:
        if of.chain > 0:
            return RootCount(np.inf, 0, 0, np.inf, 0, np.empty(0, complex), LEVEL)
        raise Unsupported(
            "the system is neutral and its difference operator is not strongly stable (essential "
            "abscissa at most "
            f"{of.essential / of.pencil.time:.3g} 1/s): chains of roots may reach into the right "
            "half plane, so that whether it is stable depends on the last digits of its delays; "
            "put a lag between what is heard and what is done at once"
        )
    top = of.reach_right_of(0.0)
    problem, missing = "", 0
    for attempt in range(4):
        if missing > FEW or (missing and attempt > 1):
            of.add_along_axis(top)
        if attempt > 1 or not (missing > FEW or (of.effort and not attempt)):
            of.improve(6 + 4 * attempt + missing, reach=max(8.0 * attempt, 4.0 * missing))
        try:
            found = _compare(of, top, 1.0 + attempt)
        except (OnContour, Undecided) as raised:
            problem = str(raised)
            continue
        if isinstance(found, RootCount):
            return found
        missing = abs(found)
        problem = f"the argument principle counts {found} more than were found"
    raise Undecided(
        f"the number of roots right of the imaginary axis or on it could not be settled: {problem}"
    )


def _with_roots(of: RootSearch, number: int) -> RootCount:
    """A count with those of the roots that are found; none is on the axis."""
    for attempt in range(3):
        every = of.known() if number else np.empty(0, complex)
        right = every[every.real > 0]
        if len(right) > number:
            raise Undecided(
                f"the argument principle counts {number} roots right of the axis and "
                f"{len(right)} were found"
            )
        if len(right) == number:
            break
        reach = 4.0 * number * (1 + attempt) if number > FEW else 8.0 * attempt
        of.improve(number + 4, min(reach, of.reach_right_of(0.0)))
    return RootCount(number, 0, 0, number, len(right), right / of.pencil.time, LEVEL)


def _of_single_states(roots: Complex, level: float) -> RootCount:
    """The count of roots that are known as they are; see `RootSearch.single`."""
    kept = roots[roots.real >= -level]
    number = int((kept.real > level).sum())
    return RootCount(number, 0, len(kept) - number, number, number, kept, LEVEL)


def _compare(of: RootSearch, top: float, density: float) -> RootCount | int:
    """The count, if contour and roots agree; else how many are counted that are not known."""
    every = of.known()
    level = LEVEL * (of.slowest + np.abs(every))
    near = (np.abs(every.real) < WIDE * np.abs(every)) & (every.imag >= 0)
    for root, error in zip(every[near], of.errors(every[near]), strict=True):
        same = (every == root) | (every == root.conjugate())
        level[same] = np.maximum(level[same], error)
    on_axis, right = np.abs(every.real) <= level, every.real > level
    at_zero = on_axis & (np.abs(every) <= 1e-7 * of.slowest)
    axis = every[on_axis & (every.imag >= 0)]
    others = every[~on_axis]
    size = 0.2
    if len(axis):
        heights = np.unique(np.abs(axis.imag))
        apart = np.abs(others[:, None] - axis).min() if len(others) else 1.0
        between = np.diff(heights)
        between = between[between > 1e-6 * heights[1:]]
        size = min(0.2, 0.3 * apart, *(0.3 * between), *(0.3 * heights[heights > 0]))
    # those on the axis are to the left of the path, wherever rounding put them
    exact = np.where(on_axis, 1j * every.imag, every)
    path = half_box(0.0, top, top, axis, size if len(axis) else 0.0)
    turns = -2 * winding(of.pencil, path, exact, density)
    missing, far = round(turns), 0
    if abs(turns - missing) > 0.02:
        raise OnContour(f"the argument does not close: {turns:.4f} turns")
    if missing > 0 and _all_known_near_axis(of, top, exact, density):
        missing, far = 0, missing  # those of a long chain, which are right of it for certain
    elif not missing and len(axis):  # left of those on the axis no other is passed
        line = 0.5 * max(others.real.max(initial=-1.0, where=others.real < 0), of.essential)
        missing = of.missing(max(float(line), -WIDEST), top, top, density)
    if missing:
        return missing
    by_roots = int(right.sum())
    unit = of.pencil.time
    return RootCount(
        by_roots + far,
        int((on_axis & ~at_zero).sum()),
        int(at_zero.sum()),
        by_roots + far,
        by_roots,
        every[on_axis | right] / unit,
        LEVEL,
    )


def _all_known_near_axis(of: RootSearch, top: float, known: Complex, density: float) -> bool:
    """Whether no root that is not known lies between two lines on either side of the axis."""
    start, height = max(LEVEL * of.slowest, ROUNDING), min(top, WIDEST / WIDE)
    turns = []
    for sign in (-1.0, 1.0):
        aside = sign * (start + WIDE * height)
        path = [sign * start, complex(aside, height), complex(aside, top), complex(top, top), top]
        turns.append(winding(of.pencil, np.array(path, complex), known, density))
    return abs(turns[0] - turns[1]) < 0.02


# --- Roots of many systems of one shape, each counted by itself, in compiled loops ----------------


def counts_of_stack(of: Entries) -> NDArray[np.int64]:
    """How many roots each system has right of the axis, by the argument principle.

    The number is -1 where that does not tell at once, or a root lies on the axis to the resolution,
    or the system may be neutral: then `DelayLTI.count_unstable` has to say.
    """
    count = np.full(len(of.value), -1)
    for rows, pencil in pencils(core_of(of)):
        own, poles = pencil.own, pencil.outlook[0]
        poles = poles if poles.shape[1] > POLES else poles[:, :0]
        for k, row in enumerate(rows.tolist()):
            parts = own.row, own.column, own.value[k], own.n, own.delays[k], 1.0, poles[k]
            count[row] = right_of_axis(pencil.whole, pencil.table[k], *parts)
    return count


def right_of_stack(of: Entries) -> NDArray[np.int64]:
    """How many roots each system has right of the axis, where its roots are those of single
    states; -1 elsewhere.
    """
    core = core_of(of)
    if core.k or (core.row != core.column).any():
        return np.full(len(of.value), -1)
    unit = of.delays.max(axis=1, initial=0.0)[:, None]
    speed = core.value * np.where(unit > 0, unit, 1.0)
    return np.asarray((speed > LEVEL * (1 + np.abs(speed))).sum(axis=1))
