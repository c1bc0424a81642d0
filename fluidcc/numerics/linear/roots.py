"""Characteristic roots: guesses by Chebyshev collocation of the delays, polished by Newton's
iteration, complete by the argument principle.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput, Undecided, Unsupported
from fluidcc.numerics.linear.bounds import (
    approximate_roots,
    essential_abscissa,
    is_neutral,
    points_for,
    radius,
)
from fluidcc.numerics.linear.compiled.zeros import ROUNDING
from fluidcc.numerics.linear.contours import (
    DENSE,
    MULTIPLE,
    Floats,
    OnContour,
    cluster_moments,
    half_box,
    mirrored,
    newton,
    one_root,
    resolution,
    resolve,
    rounding,
    winding,
)
from fluidcc.numerics.linear.pencil import POLES, Complex, Pencil
from fluidcc.numerics.linear.wiring import (
    SINGULAR,
    Blocks,
    Entries,
    block_of,
    close_channels,
    conditioned,
    core_of,
    in_own_time,
    independent,
)

# --- all roots in a region, and the rightmost -----------------------------------------------


Region = tuple[float, float, float, float]

REACH = 6.0
"""Frequency that the first collocation resolves, in units of the longest delay; each that follows
resolves three times as much.
"""

LEAST = 10
"""Points that the longest delay has at least in it."""

FARTHEST = -300.0
"""Left of it, in units of 1/(longest delay), no region begins: exp(300) squared is still a
number.
"""

APART = np.array([1.0 + 0.7j, 0.3 + 23.0j, -2.0 + 5.3j, -8.0 + 1.9j])
"""Where a determinant is compared with the polynomial of its roots, in units of 1/(longest
delay).
"""

OWN = 0.01
"""What the computation of eigenvalues adds to its largest entry, of what entries are off."""

JOINED = 4e-15
"""Relative error of entries by which eigenvalues are moved that may be one."""

NEAR_ZERO = 1e-7
"""Roots of a system of more than `DENSE` unknowns within this, in units of 1/(longest delay), are
taken for roots at zero.
"""

STEP = 12.0
"""Frequencies between collocations, in units of 1/(longest delay); each resolves those around
it.
"""

ATTEMPTS = 5
"""Collocations, each finer than the one before, until a search for one root is given up."""

EDGE = 1e-11
"""Distance at which a root lies on the edge of a region, relative to its modulus and one."""

CLEAR = 1e-6
"""Distance from the axis, relative to its modulus, from which on rounding does not bring a root
there that is by itself.
"""

FOLLOWING = 4
"""Gaps among which the widest is taken where none is wide."""

SLOWEST, BESIDE = 8, 1e-4
"""Poles of a large system between which its slowest roots are looked for first, and how near to
them, as a part of the distance between two."""

FEW = 6
"""Roots up to which the first collocation is thought to have them; a chain has one in about three
units of frequency.
"""

MOST_STARTS = 4000
"""Points of the axis from which roots near it are looked for."""

FARTHEST_CHAIN, CHAINED = 60.0, 60
"""Frequency up to which roots of the difference operator are looked for, and from how many."""

PEAKS = 6
"""Frequencies near which roots are looked for, where the argument turns fastest."""


def eigenvalues(A: Floats, size: Floats, by: float) -> tuple[Complex, Floats]:
    """Those of a matrix, and how far they are moved if what has that size is off by a part of it:
    to first order, infinitely far where several are one.
    """
    from scipy.linalg import eig

    values, left, right = eig(A, left=True, right=True)
    moved = by * (np.abs(left) * (size @ np.abs(right))).sum(axis=0)
    moved += OWN * by * size.max(initial=0.0)
    return values, moved / np.maximum(np.abs((left.conj() * right).sum(axis=0)), 1e-300)


class RootSearch:
    """What is known of the roots of one block: finds more, and proves that a region holds no
    others. Roots below 1e-9 of `slowest` are not resolved from zero.

    Everything in the pencil's unit of time; roots in the closed upper half plane only, those at
    zero aside.
    """

    def __init__(self, core: Entries) -> None:
        late = np.arange(core.n + core.k) >= core.n
        self.late = not core.part(late).acyclic  # channels feed one another round and round
        self.core, self.slowest = in_own_time(core) if self.late else core, 0.0
        self.roots: Complex = np.empty(0, complex)
        self.times = np.empty(0, np.int64)
        self.rest: Complex = np.empty(0, complex)
        self.effort, self.least = 0, 0.0
        self.finite = not core.delays.any()

    @cached_property
    def pencil(self) -> Pencil:
        """The pencil of the core."""
        return Pencil(self.core)

    @cached_property
    def block(self) -> Blocks:
        """The core, scaled, without channels of no delay."""
        return close_channels(block_of(self.pencil.own))

    @cached_property
    def single(self) -> bool:
        """Whether every cycle is that of one state without delay: then the entries of the diagonal
        are the roots, exactly.
        """
        core = self.core
        return not core.k and bool((core.row == core.column).all())

    @property
    def diagonal(self) -> Complex:
        """The roots of a block that is `single` [1/s], by falling real part."""
        found = np.zeros(self.core.n, complex)
        found[self.core.row] = self.core.value[0]
        return found[np.argsort(-found.real)]

    @property
    def large(self) -> bool:
        """Whether it has too many unknowns for its matrices to be decomposed."""
        return self.core.n + self.core.k > DENSE

    @cached_property
    def neutral(self) -> bool:
        """Whether the difference operator depends on s."""
        return self.late and is_neutral(self.block)

    @cached_property
    def essential(self) -> float:
        """Right of it the number of roots is finite."""
        return essential_abscissa(self.block) if self.neutral else -np.inf

    @cached_property
    def chain(self) -> float:
        """A root of the difference operator, by its real part; minus infinity if none was found
        right of the axis. Near the line through it infinitely many roots are.
        """
        late = np.arange(self.core.n + self.core.k) >= self.core.n
        rest, unit = Pencil(self.core.part(late)), self.pencil.time
        starts: Any = self.essential + 1j * np.linspace(0.0, FARTHEST_CHAIN, CHAINED)
        starts *= rest.time / unit
        s, size = newton(rest, starts, np.empty(0, complex), 50)
        for root in s[(size < 1e-9) & (s.real > 1e-6)].tolist():
            if cluster_moments(rest, root, 0.5 * root.real)[0] > 0:
                return float(root.real * unit / rest.time)
        return -np.inf

    @cached_property
    def zeros(self) -> Complex:
        """The roots at zero: those that rounding of the entries may bring there.

        P(0) is singular then. How far an eigenvalue is moved by relative changes of the entries
        does not depend on units, nor on how small it is beside the others.
        """
        if self.large:
            self.least = NEAR_ZERO
            return np.zeros(max(cluster_moments(self.pencil, 0.0, NEAR_ZERO)[0], 0), complex)
        A, B, C, D, lags = self.block
        whole = np.block([[A, B], [C, D - np.eye(len(lags))]])
        if conditioned(whole, np.abs(whole))[1] < 1 / SINGULAR:
            return np.empty(0, complex)
        around = np.linalg.pinv(np.eye(len(lags)) - D)
        size = np.abs(A) + np.abs(B) @ np.abs(around) @ np.abs(C)
        values, moved = eigenvalues(A + B @ around @ C, size, SINGULAR)
        gone = np.abs(values) <= moved
        count, room = int(gone.sum()), min(1.0, float(np.abs(values[~gone]).min(initial=1.0)))
        self.least = max(ROUNDING, min(10 * float(moved[gone].max(initial=0.0)), 0.1 * room))
        size = 0.0 if self.finite else 0.1 * room  # lags may make more
        while size > ROUNDING:  # and smaller, until none is in the circle that is only near zero
            inside, sums = cluster_moments(self.pencil, 0.0, size)
            if inside == 0:
                break
            if inside > 0:
                power = np.arange(1, inside + 1)
                blur = rounding(self.pencil, 0.0, size, inside)
                blur = max(blur, 1e-9 * (self.slowest / size) ** inside)
                if blur > 0.1 or (np.abs(sums) < blur * size**power).all():
                    spread = float(((np.abs(sums) / inside) ** (1 / power)).max())
                    self.least, count = min(max(1e-6 * size, 10 * spread), size), inside
                    break
            size *= 0.3
        return np.zeros(count, complex)

    def improve(self, wanted: int, reach: float = 0.0, left: float = 0.0) -> None:
        """Look for more roots, by ever finer collocations up to a frequency, between a line and the
        axis; the eigenvalues of A where nothing is delayed.
        """
        if self.finite:
            self._add_eigenvalues()
        elif self.large and not self.effort:
            self._add_slow()
        else:
            self._add_finer(wanted, reach, 0.5 * left)
        self.effort += 1

    def _add_eigenvalues(self) -> None:
        """Those that are one to rounding by their mean; others polished at first, then as they are:
        clusters that Newton's iteration cannot part.
        """
        if self.effort:
            many, simple = self.times > 1, np.ones(len(self.rest), np.int64)
            self.roots = np.append(self.roots[many], self.rest)
            self.times = np.append(self.times[many], simple)
            return
        from scipy.sparse.csgraph import connected_components

        A = self.block.A
        every, moved = eigenvalues(A, np.abs(A), JOINED)
        order = np.argsort(np.abs(every))[len(self.zeros) :]
        every, moved = every[order], moved[order]
        near, alone = np.maximum(moved, moved[:, None]), every.imag >= 0
        label = connected_components(np.abs(every[:, None] - every) <= near)[1]
        for group in label == np.unique(label)[:, None]:
            mean, others = complex(every[group].mean()), every[~group]
            size = 0.4 * min(abs(mean), float(np.abs(others - mean).min(initial=np.inf)))
            times = int(group.sum())
            if 1 < times <= MULTIPLE and mean.imag > -1e-9 * size and not self.large:
                root = one_root(self.pencil, mean, size, times)
                if root is not None:
                    if abs(mean.imag) <= 1e-9 * size:  # of conjugates
                        root = complex(root.real)
                    self.roots, self.times = (
                        np.append(self.roots, root),
                        np.append(self.times, times),
                    )
                    alone &= ~group
        self.rest = every[alone]
        self.add(self.rest)

    def _add_slow(self) -> None:
        """The roots between the slowest poles of many states, where the sign of the determinant
        tells that there is one: flows that hear one another but little have one between each two.
        """
        from scipy.optimize import brentq

        poles = np.sort(self.beyond(0.0).real)
        poles = poles[np.append(np.diff(poles) > 1e-9 * np.abs(poles[1:]), True)][-SLOWEST:]
        if len(poles) < 2:
            return
        size = self.pencil.values(0.5 * (poles[1:] + poles[:-1]) + 0j, scaled=True).log.max()

        def value(s: float) -> float:
            found = self.pencil.values(np.array([s + 0j]), scaled=True)
            return float(found.phase[0].real * np.exp(found.log[0] - size))

        found = list[complex]()
        for low, high in zip(poles[:-1].tolist(), poles[1:].tolist(), strict=True):
            room = BESIDE * (high - low)  # at a pole its part is singular
            if value(low + room) * value(high - room) < 0:
                root = brentq(value, low + room, high - room, xtol=1e-12, rtol=1e-12)
                found.append(complex(root))
        self.add(np.array(found, complex))

    def _add_finer(self, wanted: int, reach: float, centre: float) -> None:
        """What collocations find that are finer than those before, and what Newton's iteration
        finds from there away from all that is known.
        """
        frequency = max(reach, min(REACH * 3.0**self.effort, 400.0))
        own = self.pencil.own
        far, least = STEP + 4.0 * self.effort + abs(centre), LEAST + 7 * self.effort
        shifts = centre + 1j * np.arange(0.0, frequency, STEP)
        if self.large:  # the slowest are the most, and need the fewest points
            far, least = 0.5 * far, least // 2
            near = self.roots[:1] if self.effort else shifts[:1]
            shifts = np.concatenate(
                (near, shifts[1 : 1 + self.effort], 1j * self._peaks(frequency))
            )
        points = points_for(own.delays[0], far, least)
        more = 1 + self.effort
        guesses = approximate_roots(own, points, shifts, STEP, more)
        guesses = guesses[np.argsort(-guesses.real)][: more * max(2 * wanted, wanted + 6)]
        self.add(guesses)
        if self.effort:
            s, size = newton(self.pencil, guesses, self.known(), 40)
            self.add(s[(size < 1e-8) & (s.imag > -1e-6)])

    def add_along_axis(self, top: float) -> None:
        """Look for the roots nearest the axis, which decide, by Newton's iteration from points of
        it: of a long chain they are few, and the others are far to the right.
        """
        omega = np.linspace(0.0, top, int(min(top + 2, MOST_STARTS)))
        s, size = newton(self.pencil, (1j * omega).astype(complex), self.known(), 40)
        self.add(s[(size < 1e-8) & (s.imag > -1e-6)])

    def _peaks(self, frequency: float) -> Floats:
        """Where the argument of the determinant turns fastest along the axis."""
        omega = np.geomspace(1e-2, frequency, 40 * (1 + self.effort))
        pace = np.abs(self.pencil.values((1j * omega).astype(complex), scaled=True).slope)
        peak = np.flatnonzero((pace[1:-1] > pace[:-2]) & (pace[1:-1] >= pace[2:])) + 1
        return omega[peak[np.argsort(-pace[peak])][: PEAKS * self.effort]]

    def add(self, guesses: Complex) -> None:
        """Polish guesses and merge them with what is known."""
        if not len(guesses):
            return
        fresh = np.concatenate((guesses, self.roots[self.times == 1]))
        many, repeat = self.roots[self.times > 1], self.times[self.times > 1]
        apart = np.concatenate((self.zeros, mirrored(many, repeat)))
        roots, times = resolve(self.pencil, fresh, apart, self.least)
        if len(many):
            apart = np.abs(roots[:, None] - many).min(axis=1) > 1e-4 * np.abs(roots)
            roots, times = (
                np.concatenate((roots[apart], many)),
                np.concatenate((times[apart], repeat)),
            )
        order = np.argsort(-roots.real)
        self.roots, self.times = roots[order], times[order]

    def errors(self, roots: Complex) -> Floats:
        """How far each of some known roots may be moved by rounding of the entries, see
        `resolution`, as far as its side of the axis is in doubt. It is not for one by itself, on
        which Newton's steps would not have become small otherwise: 0.
        """
        found, every = np.zeros(len(roots)), self.known()
        if self.large:
            return found
        for i, root in enumerate(roots.tolist()):
            far = np.abs(every - root)
            same = far <= 1e-11 * abs(root)
            gap = float(far[~same].min(initial=np.inf))
            if same.sum() == 1 and CLEAR * abs(root) < abs(root.real) < gap:
                continue
            size = min(1.0, 0.1 * abs(root), 0.4 * gap)
            times, far_enough = max(1, int(same.sum())), 0.5 * abs(root.real)
            found[i] = resolution(self.pencil, root, size, times, far_enough)
        return found

    def without_lags(self) -> bool:
        """Whether all delays cancel, so that as many roots as there are states are all; no others
        are kept then.

        So it is with the clock of acknowledgements of windows that stand at a bound: the
        determinant is the polynomial of these roots, and what else was found far to the left is
        rounding. A lag that acts so little that its roots lie left of about -24/(longest delay) is
        taken for none.
        """
        n, every = self.core.n, self.known()
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
        every = every[:n][(every[:n].imag >= 0) & (np.abs(every[:n]) > self.least)]
        self.roots, self.times = every[np.argsort(-every.real)], np.ones(len(every), np.int64)
        return True

    def known(self) -> Complex:
        """Every known root with its conjugate and multiplicity."""
        return mirrored(np.append(self.roots, 0), np.append(self.times, len(self.zeros)))

    def missing(self, left: float, right: float, top: float, density: float = 1.0) -> int:
        """Roots in a box around the real axis that are not known: the winding of what is left of
        f.
        """
        known = np.concatenate((self.known(), self.beyond(left)))
        turns = -2 * winding(self.pencil, half_box(left, right, top), known, density)
        count = round(turns)
        if abs(turns - count) > 0.02:
            raise OnContour(f"the argument does not close: {turns:.4f} turns")
        return count

    def beyond(self, left: float) -> Complex:
        """Poles of many states left of a line: near them the determinant has as many roots, without
        which its argument is followed in longer steps.
        """
        poles, _ = self.pencil.outlook
        if poles.shape[1] <= POLES:
            return np.empty(0, complex)
        return poles[0][poles[0].real < left - 1e-6 * (1 + np.abs(poles[0]))]

    def reach_right_of(self, left: float) -> float:
        """Half the side of a box that holds every root right of `left`."""
        found = self.pencil.radius(left)
        if not np.isfinite(found):
            found = radius(self.block, left)
        if not np.isfinite(found):
            raise Unsupported(
                f"the system is neutral with essential abscissa "
                f"{self.essential / self.pencil.time:.6g} 1/s: "
                f"infinitely many roots may lie right of {left / self.pencil.time:.6g} 1/s; ask "
                f"for a bounded region"
            )
        return max(found, abs(left)) * 1.05 + 0.5


class Searches:
    """The roots of a block: those of its parts that have no loop in common, each found by itself.

    Where entries are not `exact`, as with linearised networks, roots slower than 1e-9 over the
    longest delay are not resolved from zero; over a `unit` of time [s] where nothing is delayed.
    """

    def __init__(self, of: Entries, exact: bool = True, unit: float = 0.0) -> None:
        self.core = core_of(of)
        self.parts = [RootSearch(part) for part in independent(self.core)]
        if not exact:
            unit = float(of.delays.max(initial=0.0)) or unit
            unit = unit or min((part.pencil.time for part in self.parts), default=1.0)
            for part in self.parts:
                part.slowest = part.pencil.time / unit

    @property
    def essential(self) -> float:
        """Right of it the number of roots is finite [1/s]."""
        return max((one.essential / one.pencil.time for one in self.parts), default=-np.inf)

    def rightmost(self, count: int, fewer: bool = False) -> Complex:
        """The `count` rightmost roots [1/s], as `rightmost` of one part; of each part no more are
        looked for than may be among them.
        """
        if count < 1:
            raise InvalidInput(f"count must be at least 1, got {count}")
        if len(self.parts) == 1:
            return rightmost(self.parts[0], count, fewer)
        known = [rightmost(part, 1, fewer) for part in self.parts]
        ended = [not len(s) for s in known]
        while True:
            every = np.concatenate(known) if known else np.empty(0, complex)
            best = every[np.lexsort((-every.imag, -every.real))]
            best = best[: _whole(best, count)]
            last = best[-1].real if len(best) >= count else -np.inf
            short = [i for i, s in enumerate(known) if not ended[i] and s[-1].real > last]
            if not short:
                return best
            for i in short:
                more = rightmost(self.parts[i], len(known[i]) + 1, fewer)
                known[i], ended[i] = more, len(more) <= len(known[i])

    def inside(self, region: Region) -> Complex:
        """All roots in a box (re_min, re_max, im_min, im_max) [1/s], as `roots_in` of one part."""
        found = [roots_in(part, region) for part in self.parts]
        every = np.concatenate(found) if found else np.empty(0, complex)
        return every[np.argsort(-every.real, kind="stable")]


def rightmost(of: RootSearch, count: int, fewer: bool = False) -> Complex:
    """The `count` rightmost roots [1/s], repeated by multiplicity; all of them if the system has
    fewer.

    Conjugates stand together, so that there may be one more than asked for. With `fewer`, where so
    many cannot be settled in two attempts, as many of those that were found as can; if none, the
    search for one goes on.

    Raises
    ------
    Unsupported
        The system is neutral, and not as many roots are found right of its essential abscissa.
    Undecided
        The roots found and the argument principle do not agree.
    """
    if of.single:
        return of.diagonal[:count]
    problem, most = "too few roots were found", 2 if fewer and count > 1 else ATTEMPTS
    for attempt in range(most):
        if attempt and not of.finite and of.without_lags():
            every = of.known()
            return every[: _whole(every, count)] / of.pencil.time
        if attempt or not of.effort or (len(of.known()) < count and not (fewer and of.large)):
            of.improve(count, 4.0 * count * (1 + attempt) if count > FEW else 0.0)
        every = of.known()
        if of.finite:
            if len(every) == of.core.n:
                return every[: _whole(every, count)] / of.pencil.time
            continue
        wanted = [count]
        if fewer and (of.large or attempt == most - 1):
            wanted = [*range(min(count, len(every)), 0, -1)]
        for number in wanted:
            problem = _proved(of, every, number, attempt)
            if not problem:
                return every[: _whole(every, number)] / of.pencil.time
    if fewer and count > 1:
        return rightmost(of, 1, fewer)
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


def _proved(of: RootSearch, every: Complex, count: int, attempt: int) -> str:
    """Nothing if no root that is not known lies right of the first `count`; else why not."""
    left = _gap(every.real, count)
    # a line right of where infinitely many are, and nearer to it each time
    if left <= of.essential:
        room = float(every.real.max(initial=-np.inf)) - of.essential
        left = of.essential + (room if room > 0 else 1.0) * 0.5 ** (attempt + 1)
    right, unit = int((every.real > left).sum()), of.pencil.time
    try:
        top = of.reach_right_of(left)
        missing = of.missing(left, max(top, left + 1), top, 1.0 + attempt)
    except (OnContour, Undecided) as raised:
        return str(raised)
    if missing == 0 and right >= count:
        return ""
    there = f"right of {left / unit:.6g} 1/s, where there are {right + missing}"
    return f"{right} were found {there}"


def roots_in(of: RootSearch, region: Region) -> Complex:
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
    box = (low * unit, high * unit, height * (1 + 1e-9))
    problem, missing = "", 0
    with suppress(OnContour):
        missing = of.missing(*box)
    for attempt in range(5):
        of.improve(len(of.known()) + 2 * abs(missing) + 6, height + STEP, min(box[0], 0.0))
        try:
            missing = of.missing(*box, 1.0 + attempt)
        except OnContour as raised:
            problem = str(raised)
            continue
        every = of.known()
        edges = np.abs(np.stack((every.real - box[0], every.real - box[1], every.imag - box[2])))
        if (edges < EDGE * (1 + np.abs(every))).any():
            problem = "a root lies on the contour"
            break
        if missing == 0:
            s = every / unit
            inside = (s.real >= low) & (s.real <= high) & (s.imag >= bottom) & (s.imag <= top)
            return s[inside]
        problem = f"the argument principle counts {missing} more than were found"
    raise Undecided(
        f"the roots in {tuple(ends.tolist())} could not be settled: {problem}; move the region's "
        f"edges"
    )


def rightmost_of_stack(of: Entries) -> Complex:
    """The rightmost root of each system of a stack [1/s], in the upper half plane; NaN where it
    cannot be settled.
    """
    found = np.full(len(of.value), np.nan + 0j)
    for i in range(len(found)):
        with suppress(Undecided, Unsupported):
            one = of._replace(value=of.value[i : i + 1], delays=of.delays[i : i + 1])
            roots = Searches(one, exact=False).rightmost(1)
            found[i] = complex(roots[0].real, abs(roots[0].imag)) if len(roots) else found[i]
    return found


def _whole(every: Complex, count: int) -> int:
    """`count`, or one more where it would part two conjugates."""
    count = min(count, len(every))
    if count < len(every) and every[count - 1].imag > 0 and every[count] == every[count - 1].conj():
        return count + 1
    return count


def _gap(real: NDArray[np.float64], count: int) -> float:
    """A line left of the first `count` real parts, in a gap wide enough to walk through, or the
    widest of those that follow; left of all if too few.
    """
    gaps = real[count - 1 : -1] - real[count:]
    parted = np.flatnonzero(gaps > 1e-7)
    if len(parted):
        gaps = gaps[: max(FOLLOWING, int(parted[0]) + 1)]
        wide = np.flatnonzero(gaps > 1e-3)
        i = int(wide[0]) if len(wide) else int(gaps.argmax())
        return float(real[count - 1 + i] - min(0.5 * gaps[i], 0.5))
    return float(real.min(initial=0.0)) - (0.05 if len(real) >= count else 0.5)
