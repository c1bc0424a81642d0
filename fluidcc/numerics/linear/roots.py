"""Characteristic roots: guesses by Chebyshev discretisation, polished by Newton, complete by the
argument principle.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput, SolverError, Undecided, Unsupported
from fluidcc.numerics.linear.bounds import (
    approximate_roots,
    essential_abscissa,
    is_neutral,
    points_for,
    radius,
    undelayed,
)
from fluidcc.numerics.linear.compiled.zeros import ROUNDING, STARTS, gather, iterate, turns
from fluidcc.numerics.linear.pencil import Complex, Pencil
from fluidcc.numerics.linear.wiring import SINGULAR, Blocks, core_of, joined

Floats = NDArray[np.float64]


class OnContour(SolverError):
    """A root lies on the contour, or too near to tell."""


def winding(pencil: Pencil, vertices: Complex, known: Complex, density: float = 1.0) -> float:
    """Turns of the argument of f / prod(s - known) along an open or closed polygon, in units of 2
    pi.

    Everything in the pencil's own unit of time. Intervals are halved until the argument's turn
    agrees with what the logarithmic derivative foretells and that derivative hardly changes across
    them.
    """
    total, where = turns(
        pencil.whole,
        pencil.table[0],
        np.ascontiguousarray(vertices, complex),
        np.ascontiguousarray(known, complex),
        density,
    )
    if np.isinf(total):
        raise Undecided(
            f"the argument turns too often to be followed, near s = {where / pencil.time:.6g} 1/s: "
            "ask for fewer roots, or for a smaller region"
        )
    if np.isnan(total):
        raise OnContour(
            f"the argument could not be followed near s = {where / pencil.time:.6g} 1/s: a root "
            f"lies on the contour"
        )
    return float(total)


def half_box(
    left: float, right: float, top: float, detours: Complex | tuple[()] = (), size: float = 0.0
) -> Complex:
    """Vertices of the upper half of a box, from its left to its right end on the real axis,
    clockwise.

    Around each of the `detours`, points on the left edge in the upper half plane, the path turns
    right by `size`.
    """
    heights = np.sort(np.unique(np.abs(np.imag(detours))))
    path: list[complex] = []
    for h in heights:
        if h <= size:
            path = path or [left + size, left + 1j * (h + size)]
        else:
            path = path or [left + 0j]
            path += [left + 1j * (h - size), left + size + 1j * h, left + 1j * (h + size)]
    path = path or [left + 0j]
    return np.array([*path, left + 1j * top, right + 1j * top, right + 0j], complex)


def cluster_moments(
    pencil: Pencil, centre: complex, size: float, count: int = 48
) -> tuple[int, Complex]:
    """The number of roots within `size` of `centre`, and the sums of the first powers of their
    offsets.
    """
    offset = size * np.exp(2j * np.pi * (np.arange(count) + 0.5) / count)
    # they overflow far to the left, where there is nothing to be told
    with np.errstate(over="ignore", invalid="ignore"):
        slope = pencil.values(centre + offset, scaled=True).slope
        powers = offset[None, :] ** np.arange(1, 10)[:, None]
        sums = (powers * slope).mean(axis=1)
    if not np.isfinite(sums).all():
        return -1, sums
    inside = round(float(sums[0].real))
    if abs(sums[0] - inside) > 0.05 or inside > 8:
        return -1, sums
    return inside, sums[1 : inside + 1]


# --- from guesses to roots ------------------------------------------------------------------------


CLOSE = 1e-5
"""Polished guesses nearer than this (relative, in the longest delay's unit) are examined as one
cluster.
"""

LOOSE = 0.02
"""The same for guesses on which Newton converges slowly: near a root of multiplicity m they stop
at eps^(1/m).
"""

MOST = 300_000
"""Pairs of a guess and a known root in one call of compiled code, a tenth of a second or so."""

SPLIT = 1e-6
"""Roots of a cluster that lie closer than this fraction of its circle are one multiple root."""


def newton(
    pencil: Pencil, guesses: Complex, known: Complex, rounds: int = 25
) -> tuple[Complex, NDArray[np.float64]]:
    """Newton's iteration from every guess, away from the `known` roots (Maehly), and the size of
    its last step.

    Everything in the pencil's unit of time.
    """
    few = 1 + MOST // (1 + len(known))  # at a time, so that Ctrl-C is heard in between
    parts = [
        iterate(guesses[i : i + few].astype(complex), pencil.whole, pencil.table[0], known, rounds)
        for i in range(0, max(len(guesses), 1), few)
    ]
    s, size = (np.concatenate(part) for part in zip(*parts, strict=True))
    return s, size


def resolve(
    pencil: Pencil, guesses: Complex, zeros: Complex, least: float
) -> tuple[Complex, NDArray[np.int64]]:
    """Different roots reached from the guesses, in the closed upper half plane, with their
    multiplicities; without those at zero, and what is slower than `least`.

    A guess is accepted when Newton's step, which is the distance to the root to first order, falls
    below 1e-11. Roots that come close to each other, and guesses that converge slowly, are counted
    by the argument principle on a circle.
    """
    s, size = newton(pencil, guesses, zeros)
    good = (size < 1e-3) & (np.abs(s) > least)
    s, size = s[good], size[good]
    s = np.where(s.imag < 0, s.conj(), s)
    s = np.where(np.abs(s.imag) < 1e-11 * np.abs(s), s.real, s)
    roots: list[complex] = []
    times: list[int] = []
    left = np.argsort(-s.real)
    while len(left):
        first = s[left[0]]
        link = np.where(np.maximum(size[left], size[left[0]]) < 1e-11, CLOSE, LOOSE)
        near = np.abs(s[left] - first) < link * abs(first)
        near[0] = True
        group, left = left[near], left[~near]
        if len(group) == 1 and size[group[0]] < 1e-11:
            roots.append(first)
            times.append(1)
            continue
        others = np.concatenate((zeros, s[left], np.array(roots, complex)))
        for root, multiplicity in _cluster(
            pencil, s[group], size[group], _with_mirror(others, s[group])
        ):
            roots.append(root)
            times.append(multiplicity)
    return np.array(roots, complex), np.array(times, np.int64)


def _with_mirror(others: Complex, group: Complex) -> Complex:
    """What must stay outside the circle around a group: the others, their conjugates and the
    group's own.
    """
    own = group.conj()[np.abs(group.imag) > 2 * LOOSE * np.abs(group)]
    return np.concatenate((others, others.conj(), own))


def _cluster(
    pencil: Pencil, group: Complex, steps: NDArray[np.float64], others: Complex
) -> list[tuple[complex, int]]:
    centre = complex(group[np.argmin(steps)]) if steps.min() < 1e-11 else complex(group.mean())
    spread = float(np.abs(group - centre).max())
    room = float(np.abs(others - centre).min()) if len(others) else np.inf
    size = min(0.05 * abs(centre), 0.4 * room)
    count, sums = -1, np.empty(0, complex)
    for _ in range(6):
        if size < 1.5 * spread:
            break
        count, sums = cluster_moments(pencil, centre, size)
        if count > 0:
            break
        size *= 0.45
    if count < 1:
        return [(centre, 1)] if steps.min() < 1e-11 else []
    mean = centre + sums[0] / count
    if count == 1:
        root, _ = newton(
            pencil, np.array([centre if steps.min() < 1e-11 else mean]), np.empty(0, complex), 4
        )
        return [(_upper(complex(root[0])), 1)]
    variance = sums[1] / count - (sums[0] / count) ** 2
    if abs(variance) < (SPLIT * size) ** 2 * 10:
        return [(_upper(mean, 1e-8), count)]
    apart, _ = newton(pencil, centre + _from_sums(sums), np.empty(0, complex), 8)
    if not np.abs(apart[:, None] - apart + np.eye(count)).min() > 1e-3 * abs(variance) ** 0.5:
        apart = centre + _from_sums(sums)
    # the mirror images of roots that are in this circle too
    below = apart.imag < -1e-9 * abs(centre)
    return [(_upper(complex(root)), 1) for root in apart[~below]]


def _upper(root: complex, tolerance: float = 1e-11) -> complex:
    """On the real axis if it is there to rounding, else in the upper half plane."""
    return complex(root.real, 0.0 if abs(root.imag) < tolerance * abs(root) else abs(root.imag))


def _from_sums(sums: Complex) -> Complex:
    """Numbers from the sums of their powers (Newton's identities)."""
    e = [1.0 + 0j]
    for k in range(1, len(sums) + 1):
        e.append(sum((-1) ** (i - 1) * e[k - i] * sums[i - 1] for i in range(1, k + 1)) / k)
    return np.roots([(-1) ** k * value for k, value in enumerate(e)]).astype(complex)


def mirrored(roots: Complex, times: NDArray[np.int64]) -> Complex:
    """All roots, multiple ones repeated and conjugates added, by falling real part."""
    repeated = np.repeat(roots, times)
    every = np.concatenate((repeated, repeated[repeated.imag > 0].conj()))
    every = every[np.argsort(-every.real)]
    level = np.cumsum(-np.diff(every.real, prepend=every.real[:1]) > 1e-12 * np.abs(every))
    return every[np.lexsort((-every.imag, np.abs(every.imag), level))]


# --- all roots in a region, and the rightmost -----------------------------------------------


Region = tuple[float, float, float, float]

REACHES = (6.0, 25.0, 80.0)
"""Frequencies that successive discretisations resolve, in units of the longest delay."""

LEAST = (10, 16, 24)

AGAIN = 4
"""Searches for slow roots away from those that are known."""

FARTHEST = -300.0
"""Left of it, in units of 1/(longest delay), no region begins: exp(300) squared is still a
number.
"""

PARTS = 4000
"""Boxes that are looked at until all roots in one are found."""

FEW = 6
"""Missing roots up to which Newton's iteration is tried in a box, conjugates among them; else it
is halved at once.
"""

SPREAD = np.array([0.07, 0.31, 0.52, 0.74, 0.95])
"""Where it starts, from side to side."""

APART = np.array([1.0 + 0.7j, 0.3 + 23.0j, -2.0 + 5.3j, -8.0 + 1.9j])
"""Where a determinant is compared with the polynomial of its roots, in units of 1/(longest
delay).
"""

OWN = 1e-14
"""What the computation of eigenvalues adds to a matrix, of its largest entry."""

SLOW = 0.05
"""Roots without delays slower than this, in units of 1/(longest delay), are first guesses."""

MANY = 24
"""States from which the first guesses include the roots without delays."""


class Search:
    """What is known of the roots of one block: finds more, and proves that a region holds no
    others. Where entries are not `exact`, as with linearised networks, roots slower than 1e-9 over
    the longest delay are not told from zero.

    Everything in the pencil's unit of time; roots in the closed upper half plane only, those at
    zero aside.
    """

    def __init__(self, block: Blocks, exact: bool = True) -> None:
        self.core = core_of(block)
        self.slowest = 0.0 if exact else 1.0
        self.roots: Complex = np.empty(0, complex)
        self.times = np.empty(0, np.int64)
        self.begun = self.slow = False
        self.effort, self.least = -1, 0.0
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
    def single(self) -> bool:
        """Whether every cycle is that of one state without delay: then the entries of the diagonal
        are the roots, exactly.
        """
        A = self.core.A
        return self.finite and np.count_nonzero(A) == np.count_nonzero(np.diag(A))

    @property
    def diagonal(self) -> Complex:
        """The roots of a block that is `single` [1/s], by falling real part."""
        return np.sort(np.diag(self.core.A))[::-1].astype(complex)

    @cached_property
    def neutral(self) -> bool:
        """Whether the difference operator depends on s."""
        return is_neutral(self.block)

    @cached_property
    def essential(self) -> float:
        """Right of it the number of roots is finite."""
        return essential_abscissa(self.block) if self.neutral else -np.inf

    @cached_property
    def zeros(self) -> Complex:
        """The roots at zero: those that rounding of the entries may bring there.

        P(0) is singular then. How far an eigenvalue is moved by relative changes of the entries
        does not depend on units, nor on how small it is beside the others.
        """
        A, B, C, D, lags = self.block
        whole = joined(A, B, C, D - np.eye(len(lags)))
        with suppress(np.linalg.LinAlgError):
            told = np.abs(np.linalg.inv(whole)) @ np.abs(whole)
            if told.sum(axis=1).max(initial=0.0) < 1 / SINGULAR:
                return np.empty(0, complex)
        from scipy.linalg import eig

        around = np.linalg.pinv(np.eye(len(lags)) - D)
        values, left, right = eig(A + B @ around @ C, left=True, right=True)
        size = np.abs(A) + np.abs(B) @ np.abs(around) @ np.abs(C)
        moved = SINGULAR * (np.abs(left) * (size @ np.abs(right))).sum(axis=0)
        moved += OWN * size.max(initial=0.0)
        moved = moved / np.maximum(np.abs((left.conj() * right).sum(axis=0)), 1e-300)
        gone = np.abs(values) <= moved
        count, room = int(gone.sum()), min(1.0, float(np.abs(values[~gone]).min(initial=1.0)))
        self.least = max(ROUNDING, min(10 * float(moved[gone].max(initial=0.0)), 0.1 * room))
        for size in (0.03 * room, 0.1 * room) if not self.finite else ():  # lags may make more
            inside, sums = cluster_moments(self.pencil, 0.0, size)
            if inside > 0:
                spread = (np.abs(sums) / inside) ** (1 / np.arange(1, inside + 1))
                self.least, count = max(1e-6 * size, 10 * float(spread.max())), inside
                break
        return np.zeros(count, complex)

    def improve(self, wanted: int, reach: float = 0.0) -> None:
        """First what Newton's iteration reaches from a few points, then ever finer discretisations,
        with the slow roots after the first; the eigenvalues of A where nothing is delayed.
        """
        if self.finite:
            self._add_eigenvalues()
        elif not self.begun:
            self._begin(wanted)
        elif self.effort >= 0 and not self.slow:
            self._add_slow()
        else:
            self._add_finer(wanted, reach)
        self.begun = True

    def _add_eigenvalues(self) -> None:
        """Polished at first, then as they are: clusters that Newton's iteration cannot part."""
        A = self.block.A
        every = (np.diag(A) if self.single else np.linalg.eigvals(A)).astype(complex)
        every = every[np.argsort(np.abs(every))][len(self.zeros) :]
        upper = every[every.imag >= 0]
        if self.begun or self.single:
            self._take(upper)
        else:
            self.add(upper)

    def _add_finer(self, wanted: int, reach: float) -> None:
        """What a discretisation finds that is finer than the one before."""
        self.effort += 1
        level = min(self.effort, len(REACHES) - 1)
        least = LEAST[level] + 12 * (self.effort - level)
        frequency = max(reach, min(REACHES[level] * 2.0 ** (self.effort - level), 400.0))
        if self.essential < 0 and level:
            frequency = min(frequency, max(reach, radius(self.block, 0.0)))
        points = points_for(self.block.delays, frequency, least + wanted // 3)
        shifts = 1j * np.linspace(0, max(4.0, min(frequency, 40.0)), 5 + 3 * self.effort)
        guesses = approximate_roots(self.block, points, shifts)
        guesses = guesses[guesses.imag >= -1e-6 * (1 + np.abs(guesses))]
        self.add(guesses[np.argsort(-guesses.real)][: max(2 * wanted, wanted + 6)])

    def _take(self, upper: Complex) -> None:
        """These and no others, each simple."""
        upper = upper[np.abs(upper) > self.least]
        self.roots, self.times = upper[np.argsort(-upper.real)], np.ones(len(upper), np.int64)

    def _begin(self, wanted: int) -> None:
        if len(self.block.A) > MANY:
            self._add_slow(STARTS)
            return
        near = undelayed(self.block)
        slow = near[(near.imag >= 0) & (np.abs(near) < SLOW)]
        starts = np.concatenate((slow, STARTS[: 16 + wanted]))
        roots = gather(self.pencil.whole, self.pencil.table[0], starts, len(self.zeros))
        self._take(roots[roots.imag >= 0])

    def _add_slow(self, more: Complex | None = None) -> None:
        """What is near the roots that are slow for the delays, however many there are.

        Slow roots of many flows lie densely: Newton's iteration is repeated away from those that it
        has found.
        """
        self.slow = True
        near = undelayed(self.block)
        near = near[near.imag >= 0]
        self.add(near)
        starts = near if more is None else np.concatenate((more[more.imag >= 0], near))
        for turn in range(AGAIN):
            before = int(self.times.sum())
            if before >= len(near) and (turn or more is None):
                break
            s, size = newton(self.pencil, starts, self.known(), 40)
            self.add(s[(size < 1e-8) & (s.imag > -1e-6)])
            if self.times.sum() == before:
                break

    def add(self, guesses: Complex) -> None:
        """Polish guesses and merge them with what is known."""
        if not len(guesses):
            return
        fresh = np.concatenate((guesses, self.roots[self.times == 1]))
        many, repeat = self.roots[self.times > 1], self.times[self.times > 1]
        roots, times = resolve(self.pencil, fresh, self.zeros, self.least)
        if len(many):
            apart = np.abs(roots[:, None] - many).min(axis=1) > 1e-4 * np.abs(roots)
            roots, times = (
                np.concatenate((roots[apart], many)),
                np.concatenate((times[apart], repeat)),
            )
        order = np.argsort(-roots.real)
        self.roots, self.times = roots[order], times[order]

    def without_lags(self) -> bool:
        """Whether all delays cancel, so that as many roots as there are states are all; no others
        are kept then.

        So it is with the clock of acknowledgements of windows that stand at a bound: the
        determinant is the polynomial of these roots, and what else was found far to the left is
        rounding. A lag that acts so little that its roots lie left of about -24/(longest delay) is
        taken for none.
        """
        n, every = len(self.block.A), self.known()
        if len(every) < n:
            return False
        gaps = APART[:, None] - every[:n]
        found = self.pencil.values(APART, scaled=True)
        ratio = (
            found.phase
            * np.exp(found.log - np.log(np.abs(gaps)).sum(axis=1))
            / (gaps / np.abs(gaps)).prod(axis=1)
        )
        if not np.abs(ratio / ratio[0] - 1).max() < 1e-7:
            return False
        self._take(every[:n][every[:n].imag >= 0])
        return True

    def known(self) -> Complex:
        """Every known root with its conjugate and multiplicity."""
        return mirrored(np.append(self.roots, 0), np.append(self.times, len(self.zeros)))

    def missing(self, box: Region, density: float = 1.0) -> int:
        """Roots in a box that are not known: the winding of what is left of f.

        A box that stands on the real axis counts with its mirror image.
        """
        left, right, bottom, top = box
        if bottom == 0:
            turns = -2 * winding(self.pencil, half_box(left, right, top), self.known(), density)
        else:
            corners = (
                complex(left, bottom),
                complex(left, top),
                complex(right, top),
                complex(right, bottom),
            )
            turns = -winding(self.pencil, np.array([*corners, corners[0]]), self.known(), density)
        count = round(turns)
        if abs(turns - count) > 0.02:
            raise OnContour(f"the argument does not close: {turns:.4f} turns")
        return count

    def complete(self, box: Region, density: float = 1.0) -> None:
        """Find every root in a box of the upper half plane: it is halved until nothing is missing
        in any part.

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
                raise OnContour(
                    f"{-missing} more roots were found than the argument principle counts"
                )
        raise OnContour(f"roots were still missing in one of {PARTS} parts of the region")

    def _halves(self, box: Region, density: float) -> list[Region]:
        """Two parts of a box between which the argument can be followed."""
        left, right, bottom, top = box
        for share in (0.5, 0.44, 0.57, 0.37):
            x, y = left + share * (right - left), bottom + share * (top - bottom)
            wide = right - left > top - bottom
            line = (
                (complex(x, bottom), complex(x, top))
                if wide
                else (complex(left, y), complex(right, y))
            )
            with suppress(OnContour):
                winding(self.pencil, np.array(line), self.known(), density)
                return (
                    [(left, x, bottom, top), (x, right, bottom, top)]
                    if wide
                    else [(left, right, bottom, y), (left, right, y, top)]
                )
        raise OnContour(
            f"roots are too close to one another near s = {complex(x, y) / self.pencil.time:.6g} "
            f"1/s"
        )

    def reach_right_of(self, left: float) -> float:
        """Half the side of a box that holds every root right of `left`."""
        bound = radius(self.block, left)
        if not np.isfinite(bound):
            raise Unsupported(
                f"the system is neutral with essential abscissa "
                f"{self.essential / self.pencil.time:.6g} 1/s: "
                f"infinitely many roots may lie right of {left / self.pencil.time:.6g} 1/s; ask "
                f"for a bounded region"
            )
        return max(bound, abs(left)) * 1.05 + 0.5

    def hunt(self, box: Region) -> None:
        """Newton away from all known roots, from points spread over a box."""
        left, right, bottom, top = box
        x, y = (low + (high - low) * SPREAD for low, high in ((left, right), (bottom, top)))
        s, size = newton(self.pencil, (x[:, None] + 1j * y).ravel(), self.known(), 40)
        near = (
            (np.abs(s.real - 0.5 * (left + right)) < right - left)
            & (s.imag > -1e-6)
            & (s.imag < 2 * top - bottom)
        )
        self.add(s[(size < 1e-8) & near])


def rightmost(of: Search, count: int, attempts: int = 7) -> Complex:
    """The `count` rightmost roots [1/s], repeated by multiplicity; all of them if the system has
    fewer.

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
    if of.single:
        return of.diagonal[:count]
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
        # a line right of where infinitely many are, and nearer to it each time
        if left <= of.essential:
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
        problem = (
            f"{right} were found right of {left / of.pencil.time:.6g} 1/s, where there are "
            f"{right + missing}"
        )
    if np.isfinite(of.essential):
        raise Unsupported(
            f"the system is neutral with essential abscissa {of.essential / of.pencil.time:.6g} "
            f"1/s, near which "
            f"infinitely many roots may lie, and its {count} rightmost roots could not be "
            f"settled: {problem}; ask for "
            "fewer or for a bounded region"
        )
    raise Undecided(
        f"the {count} rightmost roots could not be settled: {problem}; ask for fewer or for a "
        f"region"
    )


def roots_in(of: Search, region: Region) -> Complex:
    """All roots in a box (re_min, re_max, im_min, im_max) [1/s], repeated by multiplicity, by
    falling real part.

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
            f"region begins at re_min = {low:g} 1/s, where lagged terms exceed the range of "
            f"floating-point numbers; "
            f"begin at {FARTHEST / unit:.4g} 1/s, which is {FARTHEST:g} over the longest delay, "
            f"or right of it"
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
    raise Undecided(
        f"the roots in {tuple(ends.tolist())} could not be settled: {problem}; move the region's "
        f"edges"
    )


def _whole(every: Complex, count: int) -> int:
    """`count`, or one more where it would part two conjugates."""
    count = min(count, len(every))
    if count < len(every) and every[count - 1].imag > 0 and every[count] == every[count - 1].conj():
        return count + 1
    return count


def _gap(real: NDArray[np.float64], count: int) -> float:
    """A line left of the first `count` real parts, in a gap wide enough to walk through; left of
    all if too few.
    """
    for i in range(count, len(real)):
        if real[i - 1] - real[i] > 1e-3:
            return float(real[i - 1] - min(0.5 * (real[i - 1] - real[i]), 0.5))
    return float(real.min(initial=0.0)) - (0.05 if len(real) >= count else 0.5)
