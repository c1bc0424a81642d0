"""Stability as a theorem about the given numbers: roots counted and enclosed in interval
arithmetic.

A walk around a box proves how many roots it holds. On each segment S, with a floating-point inverse
M of the pencil at its midpoint, an enclosure of ``det(M P(s))`` over all s in S has positive real
part; so f has no zero on S and its argument turns there by less than pi, and the turn is that
between the segment's ends. Every rounding is enclosed (Arb).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError
from fluidcc.base.extras import need
from fluidcc.base.tables import InTable
from fluidcc.numerics.linear.pencil import in_own_units
from fluidcc.numerics.linear.wiring import (
    Blocks,
    block_of,
    core_of,
    entries_of,
    spectral_radius,
)

if TYPE_CHECKING:
    from fluidcc.numerics.linear.dlti import DelayLTI

SEGMENTS = 40_000
SHORTEST = 1e-9  # of the modulus: below it a root must be on the path
NEAREST = 1e-15  # of the walk's size: nearer to the origin the modulus counts as this


@dataclass(frozen=True)
class Ball(InTable):
    """Exactly `multiplicity` roots lie within `radius` of `centre` [1/s]."""

    centre: complex
    radius: float
    multiplicity: int

    _shown = ("centre [1/s]", "radius [1/s]", "multiplicity")

    def __str__(self) -> str:
        times = f", {self.multiplicity} times" if self.multiplicity > 1 else ""
        return f"{self.centre:.6g} ± {self.radius:.1e}{times}"


@dataclass(frozen=True, repr=False)
class Certificate(InTable):
    """What interval arithmetic proves of a system's roots.

    Attributes
    ----------
    certified : bool
        Whether the number of roots right of the imaginary axis is proved.
    unstable : int or None
        That number.
    rightmost : tuple of Ball
        Enclosures of the rightmost roots, empty if they could not be proved.
    abscissa : tuple of float or None
        The largest real part of all roots lies between these [1/s].
    radius : float
        All roots right of the axis have at most this modulus [1/s], proved.
    reason : str
        Why something is not proved, or 'certified'.
    segments : int
        How many pieces the walks took.
    """

    certified: bool
    unstable: int | None
    rightmost: tuple[Ball, ...]
    abscissa: tuple[float, float] | None
    radius: float
    reason: str
    segments: int

    _shown = (
        "certified", "stable", "unstable", "rightmost [1/s]", "abscissa [1/s]", "radius [1/s]",
        "reason", "segments",
    )  # fmt: skip

    @property
    def stable(self) -> bool | None:
        """True or False as proved; None if nothing is proved."""
        return self.unstable == 0 if self.certified else None


class _Failed(Exception):
    """A walk that proves nothing; the message says where."""


def certify(system: DelayLTI, roots: int = 2, digits: float = 1e-7) -> Certificate:
    """Prove the number of unstable roots, and enclose the rightmost ones.

    Parameters
    ----------
    system : DelayLTI
        What is proved holds for its matrices and delays as they stand, bit by bit.
    roots : int
        How many rightmost roots to enclose; none with 0.
    digits : float
        Half the side of the enclosing squares, relative to the modulus; of a multiple root a
        hundredth.
    """
    walk = _Walk(system._block)
    unit = walk.unit
    try:
        bound = walk.radius(0.0)
        count = walk.count(0.0, bound)
    except _Failed as failed:
        return Certificate(False, None, (), None, np.nan, str(failed), walk.segments)
    if not roots:
        return Certificate(True, count, (), None, bound / unit, "certified", walk.segments)
    try:
        balls, abscissa = _rightmost(system, walk, roots, digits)
        reason = "certified"
    except (_Failed, FluidccError) as failed:
        balls, abscissa, reason = (
            (),
            None,
            f"the count is certified, the rightmost roots are not: {failed}",
        )
    return Certificate(True, count, balls, abscissa, bound / unit, reason, walk.segments)


def _rightmost(
    system: DelayLTI, walk: _Walk, roots: int, digits: float
) -> tuple[tuple[Ball, ...], tuple[float, float]]:
    """Enclosures of all roots right of a line, as many as the walk around that half plane
    counts.
    """
    found = system.roots(count=roots) * walk.unit
    more = system.roots(count=len(found) + 2) * walk.unit
    rest = more[len(found) :]
    last = float(found.real.min())
    gap = last - float(rest.real.max()) if len(rest) else 1.0
    if gap < 1e-5 * abs(found[-1]):
        raise _Failed(
            f"the roots do not part near Re s = {last / walk.unit:.6g} 1/s; ask for another "
            f"number of them"
        )
    left = last - min(0.5 * gap, 1.0)
    upper = found[found.imag >= 0]
    same = np.abs(upper[:, None] - upper) <= 1e-9 * np.abs(upper)
    first, times = np.unique(same.argmax(axis=1), return_counts=True)
    balls = []
    for root, multiplicity in zip(upper[first].tolist(), times.tolist(), strict=True):
        # near a multiple root the function is flat: a wider square is proved in fewer pieces
        size = (digits if multiplicity == 1 else 0.01) * abs(root)
        corner = size * np.array([-1 - 1j, 1 - 1j, 1 + 1j, -1 + 1j, -1 - 1j], complex)
        inside = walk.turns((root + corner).astype(complex), closed=True)
        if inside != multiplicity:
            raise _Failed(
                f"{inside} roots near s = {root / walk.unit:.6g} 1/s where {multiplicity} were "
                f"expected"
            )
        ball = Ball(
            root / walk.unit,
            float(np.nextafter(1.4143 * size / walk.unit, np.inf)),
            multiplicity,
        )
        balls.append(ball)
        if root.imag > size:
            balls.append(Ball(ball.centre.conjugate(), ball.radius, multiplicity))
    total = sum(ball.multiplicity for ball in balls)
    around = walk.count(left, walk.radius(left))
    if around != total:
        raise _Failed(
            f"{around} roots right of {left / walk.unit:.6g} 1/s, of which {total} are enclosed"
        )
    balls.sort(key=lambda ball: -ball.centre.real)
    low = max(ball.centre.real - ball.radius for ball in balls)
    return tuple(balls), (low, max(ball.centre.real + ball.radius for ball in balls))


class _Walk:
    """Walks in the complex plane around which the argument of the characteristic function is
    proved.

    Time is measured in a power of two and the balancing factors are powers of two, so that the
    scaled numbers are the given ones exactly.
    """

    def __init__(self, block: Blocks) -> None:
        self.flint = flint = need("flint", "certify", "a proof of the verdict (certify)")
        # the unit multiplies real roots: s (scaled) = unit s
        own, times, _ = in_own_units(core_of(entries_of(block)), powers=True)
        self.block, self.unit = block_of(own), float(times[0])
        self.n, self.k = len(self.block.A), len(self.block.delays)
        b = self.block
        self.constant = np.block([[-b.A, np.zeros((self.n, self.k))], [-b.C, np.eye(self.k)]])
        self.late = np.vstack((-b.B, -b.D))
        self.lags = [flint.arb(float(lag)) for lag in b.delays]
        self.exact, self.exact_late = (
            flint.acb_mat([[flint.acb(float(x)) for x in row] for row in part])
            for part in (self.constant, self.late)
        )
        self.segments = 0

    def radius(self, left: float) -> float:
        """A proved bound on the modulus of every root with real part at least `left`.

        With w > 0, ``|C2| wx + |D22| E wz <= wz`` and ``|A| wx + |B2| E wz <= R wx``, each root has
        modulus at most R.
        """
        flint, b = self.flint, self.block
        size, (A, B, C, D) = np.exp(-left * b.delays), map(np.abs, b[:4])
        if spectral_radius(D * size) >= 1:
            raise _Failed(
                "the channels amplify each other (spectral radius of abs(D22) at least one): no "
                "bound is proved"
            )
        wx = np.ones(self.n)  # unknowns are balanced
        wz = np.linalg.solve(np.eye(self.k) - D * size, C @ wx + 1e-9) * (1 + 1e-12)
        x, z = ([flint.arb(float(v)) for v in w] for w in (wx, wz))
        late = [
            v * (-flint.arb(float(left)) * lag).exp() for v, lag in zip(z, self.lags, strict=True)
        ]
        whole = np.block([[A, B], [C, D]]).tolist()
        image_of_w = flint.arb_mat(whole) * flint.arb_mat([[v] for v in (*x, *late)])
        if not all(image_of_w[self.n + i, 0] < v for i, v in enumerate(z)):
            raise _Failed("no bound on the roots is proved: the channels amplify each other")
        bound = flint.arb(0)
        for i, v in enumerate(x):
            bound = bound.max(image_of_w[i, 0] / v)
        return float(np.nextafter(float(bound.upper()) * (1 + 1e-12), np.inf))

    def count(self, left: float, bound: float) -> int:
        """Roots with real part above `left`, proved: none lies on that line."""
        if not self.n:
            return 0
        top = 1.01 * max(bound, abs(left)) + 0.01
        path = np.array([left, left + 1j * top, top + 1j * top, top], complex)
        return -self.turns(path, closed=False)

    def turns(self, path: NDArray[np.complex128], closed: bool) -> int:
        """Turns of the argument around a closed polygon, or around one that is closed by its
        mirror image.
        """
        total = self.flint.arb(0)
        size = float(np.abs(np.diff(path)).max())
        for a, b in pairwise(path):
            total += self._side(complex(a), complex(b), size)
        number = total / self.flint.arb.pi() / (2 if closed else 1)
        whole = round(float(number.mid()))
        if not abs(number - whole) < 0.25:
            raise _Failed(f"the argument does not close: {number} turns")
        return whole

    def _side(self, a: complex, b: complex, size: float) -> Any:
        """The turn along a straight line, halved until every part is proved."""
        total = self.flint.arb(0)
        # the rightmost part of the stack is next: parts touch in the same floating-point numbers
        todo = [(a, b)]
        while todo:
            p, q = todo.pop()
            self.segments += 1
            if self.segments > SEGMENTS:
                raise _Failed(f"{SEGMENTS} segments were not enough")
            turn = self._proved(p, q)
            if turn is not None:
                total += turn
                continue
            if abs(q - p) < SHORTEST * max(abs(p), NEAREST * size):
                raise _Failed(
                    f"a root lies on the path, or too near, at s = {p / self.unit:.6g} 1/s"
                )
            middle = 0.5 * (p + q)
            todo += [(middle, q), (p, middle)]
        return total

    def _proved(self, p: complex, q: complex) -> Any:
        """The turn from p to q if the segment is proved to be free of roots, else None."""
        acb, arb = self.flint.acb, self.flint.arb
        middle = 0.5 * (p + q)
        value = self.constant.astype(complex)
        value[range(self.n), range(self.n)] += middle
        value[:, self.n :] += self.late * np.exp(-middle * self.block.delays)
        try:
            inverse = np.linalg.inv(value)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(inverse).all():
            return None
        left = self.flint.acb_mat(
            [[acb(float(x.real), float(x.imag)) for x in row] for row in inverse]
        )
        hull = acb(arb(p.real).union(arb(q.real)), arb(p.imag).union(arb(q.imag)))
        if not (left * self._pencil(hull)).det().real > 0:
            return None
        ends = [(left * self._pencil(acb(s.real, s.imag))).det() for s in (p, q)]
        return ends[1].arg() - ends[0].arg()

    def _pencil(self, s: Any) -> Any:
        found, lags = self.flint.acb_mat(self.exact), [(-s * lag).exp() for lag in self.lags]
        for i in range(self.n):
            found[i, i] += s
        for i, j in np.argwhere(self.late).tolist():
            found[i, self.n + j] += self.exact_late[i, j] * lags[j]
        return found
