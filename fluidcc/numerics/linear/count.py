"""How many roots lie right of the imaginary axis: once by the argument principle, once by finding them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from fluidcc.base.errors import Undecided, Unsupported
from fluidcc.numerics.linear.contour import OnContour, half_box, winding
from fluidcc.numerics.linear.pencil import Complex
from fluidcc.numerics.linear.roots import Search

__all__ = ["RootCount", "count_right"]

RESOLUTION = 1e-9
"""Real parts below this, times 1/(longest delay) + abs(s), are not told from zero."""


@dataclass(frozen=True)
class RootCount:
    """Roots right of the imaginary axis, on it, and at the origin.

    Attributes
    ----------
    unstable : int
        Roots with positive real part, on which both counts agree.
    marginal : int
        Roots on the imaginary axis to the resolution, those at the origin aside.
    at_zero : int
        Roots at the origin: integrators that nothing moves.
    by_contour, by_roots : int
        The two counts: of the argument principle, and of the roots found and polished.
    roots : array of complex
        The roots that were found right of the axis or on it, repeated by multiplicity [1/s].
    resolution : float
        Absolute value of a real part [1/s] below which a slow root counts as marginal.
    """

    unstable: int
    marginal: int
    at_zero: int
    by_contour: int
    by_roots: int
    roots: Complex
    resolution: float

    @property
    def stable(self) -> bool:
        """No root right of the axis or on it."""
        return self.unstable == self.marginal == self.at_zero == 0

    def __int__(self) -> int:
        return self.unstable


def count_right(of: Search) -> RootCount:
    """Count the roots of the closed right half plane.

    The contour is the imaginary axis up to a bound on all roots right of it, closed by a box. It passes roots on the
    axis on their right. Where the counts disagree, guesses and contour are refined twice.

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
    if of.finite and not np.any(of.core.A - np.diag(np.diag(of.core.A))):
        return _of_single_states(np.diag(of.core.A).astype(complex))
    if of.essential >= 0:
        raise Unsupported(
            "the system is neutral and its difference operator is not strongly stable (essential abscissa at most "
            f"{of.essential / of.pencil.time:.3g} 1/s): chains of roots may reach into the right half plane, so that "
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
    raise Undecided(f"the number of roots right of the imaginary axis could not be settled: {problem}")


def _of_single_states(roots: Complex) -> RootCount:
    """Where every cycle is that of one state without delay, the entries of the diagonal are the roots, exactly."""
    unit = 1 / max(float(np.abs(roots).max(initial=0.0)), np.finfo(float).tiny)
    scaled = roots.real * unit
    on_axis, right = np.abs(scaled) <= RESOLUTION, scaled > RESOLUTION
    kept = np.sort(roots[on_axis | right])[::-1]
    number = int(right.sum())
    return RootCount(number, 0, int(on_axis.sum()), number, number, kept, RESOLUTION / unit)


def _compare(of: Search, top: float, density: float) -> RootCount:
    every = of.known()
    level = RESOLUTION * (1 + np.abs(every))
    on_axis, right = np.abs(every.real) <= level, every.real > level
    at_zero = on_axis & (np.abs(every) <= 1e-7)
    axis = every[on_axis & (every.imag >= 0)]
    others = every[~on_axis]
    size = 0.2
    if len(axis):
        heights = np.unique(np.abs(axis.imag))
        apart = np.abs(others[:, None] - axis).min() if len(others) else 1.0
        between = np.diff(heights)
        size = min(0.2, 0.3 * apart, *(0.3 * between[between > 1e-6]), *(0.3 * heights[heights > 1e-6]))
    exact = np.where(on_axis, 1j * every.imag, every)  # to the left of the path, wherever rounding put them
    path = half_box(0.0, top, top, axis, size if len(axis) else 0.0)
    turns = -2 * winding(of.pencil, path, exact, density)
    missing = round(turns)
    if abs(turns - missing) > 0.02:
        raise OnContour(f"the argument does not close: {turns:.4f} turns")
    by_roots = int(right.sum())
    by_contour = by_roots + missing
    if missing:
        raise Undecided(f"the argument principle counts {by_contour} roots right of the axis and {by_roots} were found")
    unit = of.pencil.time
    return RootCount(
        by_roots,
        int((on_axis & ~at_zero).sum()),
        int(at_zero.sum()),
        by_contour,
        by_roots,
        every[on_axis | right] / unit,
        RESOLUTION / unit,
    )
