"""How many roots lie right of the imaginary axis: once by the argument principle, once by
finding them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import Undecided, Unsupported
from fluidcc.base.tables import InTable
from fluidcc.numerics.linear.bounds import nilpotent
from fluidcc.numerics.linear.compiled.zeros import LEVEL, bound, rightmost_of_all, turns
from fluidcc.numerics.linear.pencil import Complex, Pencil, pencils
from fluidcc.numerics.linear.roots import OnContour, Search, half_box, winding
from fluidcc.numerics.linear.wiring import Blocks, core_of, of_one_pattern

NEAR = 1e-8
"""So near to the axis, as a part of the bound on all roots, a root is left to the full search."""
NO_ROOTS = np.empty(0, complex)


@dataclass(frozen=True)
class RootCount(InTable):
    """Roots right of the imaginary axis, on it, and at the origin.

    Attributes
    ----------
    unstable : int
        Roots with positive real part, on which both counts agree.
    marginal : int
        Roots on the imaginary axis to the resolution, those at the origin aside.
    at_zero : int
        Roots at the origin, exactly or to rounding of the entries: integrators that nothing moves.
    by_contour, by_roots : int
        The two counts: of the argument principle, and of the roots found and polished.
    roots : array of complex
        The roots that were found right of the axis or on it, repeated by multiplicity [1/s].
    resolution : float
        A root whose real part is below this fraction of its modulus counts as marginal.
    """

    unstable: int
    marginal: int
    at_zero: int
    by_contour: int
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
        return self.unstable


def count_right(of: Search) -> RootCount:
    """Count the roots of the closed right half plane.

    The contour is the imaginary axis up to a bound on all roots right of it, closed by a box. It
    passes roots on the axis on their right. Where the counts disagree, guesses and contour are
    refined twice.

    Parameters
    ----------
    of : Search
        A search, which may know roots already.

    Raises
    ------
    Unsupported
        The system is neutral and its difference operator is not strongly stable.
    Undecided
        The two counts disagree after refinement.
    """
    if of.single:
        return _of_single_states(of.diagonal, LEVEL * of.slowest / of.pencil.time)
    if of.essential >= 0:
        raise Unsupported(
            "the system is neutral and its difference operator is not strongly stable (essential "
            "abscissa at most "
            f"{of.essential / of.pencil.time:.3g} 1/s): chains of roots may reach into the right "
            f"half plane, so that "
            "their number is not defined"
        )
    top = of.reach_right_of(0.0)
    if not of.begun:
        of.improve(4)
    problem = ""
    for attempt in range(3):
        try:
            return _compare(of, top, 1.0 + attempt)
        except (OnContour, Undecided) as raised:
            problem = str(raised)
        of.improve(6 + 4 * attempt, reach=8.0 * (attempt + 1))
        if attempt:
            with suppress(OnContour):
                of.complete((-0.1, top, 0.0, top))
    raise Undecided(
        f"the number of roots right of the imaginary axis could not be settled: {problem}"
    )


def _of_single_states(roots: Complex, level: float) -> RootCount:
    """The count of roots that are known as they are; see `Search.single`."""
    kept = roots[roots.real >= -level]
    number = int((kept.real > level).sum())
    return RootCount(number, 0, len(kept) - number, number, number, kept, LEVEL)


def _compare(of: Search, top: float, density: float) -> RootCount:
    every = of.known()
    level = LEVEL * (of.slowest + np.abs(every))
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
    missing = round(turns)
    if abs(turns - missing) > 0.02:
        raise OnContour(f"the argument does not close: {turns:.4f} turns")
    by_roots = int(right.sum())
    by_contour = by_roots + missing
    if missing:
        raise Undecided(
            f"the argument principle counts {by_contour} roots right of the axis and {by_roots} "
            f"were found"
        )
    unit = of.pencil.time
    return RootCount(
        by_roots,
        int((on_axis & ~at_zero).sum()),
        int(at_zero.sum()),
        by_contour,
        by_roots,
        every[on_axis | right] / unit,
        LEVEL,
    )


def right_when_closed(block: Blocks) -> int:
    """The number of roots right of the axis under negative unity feedback, where the argument
    principle tells it at once; else -1, also where a root may be on the axis.
    """
    (m, p), n = block.ports, len(block.A)
    # what is fed back is a channel without delay
    B, C = np.hstack((block.B[:, m:], -block.B[:, :m])), np.vstack((block.C[p:], block.C[:p]))
    D = np.vstack((block.D[p:], block.D[:p]))
    D = np.hstack((D[:, m:], -D[:, :m]))
    if not len(block.delays) or (D.any() and not nilpotent(np.abs(D))):
        return -1
    pencil = Pencil(Blocks(block.A, B, C, D, np.append(block.delays, np.zeros(m))))
    frame, lags = pencil.frame[0], np.append(block.delays, np.zeros(m)) / pencil.time
    halves = slice(n), slice(n, None)
    parts = [np.ascontiguousarray(frame[i, j]) for i in halves for j in halves]
    top = bound(*parts, lags, -NEAR) * 1.05 + 0.5
    if not np.isfinite(top):
        return -1
    counts = []
    for left in (-NEAR * (1 + top), NEAR * (1 + top)):
        path = half_box(left, top, top)
        around = -2 * turns(pencil.whole, pencil.table[0], path, NO_ROOTS, 1.0)[0]
        if not abs(around - np.round(around)) < 0.02:
            return -1
        counts.append(round(around))
        if not counts[0]:
            return 0
    return counts[0] if counts[0] == counts[1] else -1


# --- Roots of many systems of one shape, each found by itself, in compiled loops -----------------


def rightmost_of_stack(block: Blocks) -> tuple[NDArray[np.complex128], NDArray[np.int64]]:
    """The rightmost root of each system [1/s] and its number of roots right of the axis, counted
    and found.

    The number is -1 where these do not agree at once, or a root lies on the axis to the resolution,
    or the system may be neutral: then `DelayLTI.count_unstable` has to say.
    """
    root, count = np.full(len(block.A), np.nan + 0j), np.full(len(block.A), -1)
    for rows, core in _cores(block):
        if len(core.delays[0]) and not nilpotent(np.abs(core.D).max(axis=0)):
            continue
        for part, pencil in pencils(core):
            found, right = rightmost_of_all(pencil.whole, pencil.table, *pencil.scaled)
            root[rows[part]], count[rows[part]] = found / pencil.times, right
    return root, count


def right_of_axis(block: Blocks) -> NDArray[np.int64]:
    """How many roots each system has right of the axis, where its roots are those of single
    states; -1 elsewhere.
    """
    count = np.full(len(block.A), -1)
    for rows, core in _cores(block):
        diagonal = np.diagonal(core.A, axis1=1, axis2=2)
        if len(core.delays[0]) or np.count_nonzero(core.A) > np.count_nonzero(diagonal):
            continue
        unit = block.delays[rows].max(axis=1, initial=0.0)[:, None]
        unit = np.where(unit > 0, unit, 1.0)
        count[rows] = (diagonal * unit > LEVEL * (1 + np.abs(diagonal) * unit)).sum(axis=1)
    return count


def _cores(block: Blocks) -> Any:
    """What decides the roots, by pattern."""
    for rows in of_one_pattern(block):
        yield rows, core_of(Blocks(*(part[rows] for part in block)))
