"""Roots inside a contour: how many there are, by the argument of the determinant, and where, by
Newton's iteration; of those that it does not part, their mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import SolverError, Undecided
from fluidcc.numerics.linear.compiled.zeros import iterate, turns
from fluidcc.numerics.linear.pencil import Complex, Pencil

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


AROUND = 64
"""Points of a circle."""

MULTIPLE = 24
"""Roots in a circle up to which they follow from the moments of the logarithmic derivative."""


def cluster_moments(pencil: Pencil, centre: complex, size: float) -> tuple[int, Complex]:
    """The number of roots within `size` of `centre`, and the sums of the first powers of their
    offsets.
    """
    offset = size * np.exp(2j * np.pi * (np.arange(AROUND) + 0.5) / AROUND)
    # they overflow far to the left, where no root can be resolved
    with np.errstate(over="ignore", invalid="ignore"):
        slope = pencil.values(centre + offset, scaled=True).slope
        powers = offset[None, :] ** np.arange(1, MULTIPLE + 2)[:, None]
        sums = (powers * slope).mean(axis=1)
    if not np.isfinite(sums).all():
        return -1, sums
    inside = round(float(sums[0].real))
    if abs(sums[0] - inside) > 0.05 or inside > MULTIPLE:
        return -1, sums
    return inside, sums[1 : inside + 1]


def resolution(
    pencil: Pencil, root: complex, size: float, times: int, enough: float = 0.0
) -> float:
    """Distance from a root of that multiplicity below which nothing is resolved: where rounding
    changes the determinant by its size, found from a circle that holds no other root inwards, as
    far as `enough`.
    """
    for _ in range(12):
        size *= rounding(pencil, root, size, times) ** (1 / times)
        if size < enough:
            break
    return size


def rounding(pencil: Pencil, root: complex, size: float, times: int) -> float:
    on = root + size * np.exp(0.25j * np.pi * (np.arange(8) + 0.5))
    try:
        return min(float(times * pencil.rounding(on).max()), 1.0)
    except np.linalg.LinAlgError:
        return 1.0


def one_root(pencil: Pencil, centre: complex, size: float, times: int) -> complex | None:
    """The mean of so many roots in a circle, if rounding does not resolve them: it is well known,
    where they themselves are not.
    """
    for _ in range(2):
        count, sums = cluster_moments(pencil, centre, size)
        if count != times:
            return None
        mean, centre = centre, centre + sums[0] / times
    blur = rounding(pencil, mean, size, times)
    one = blur < 0.1 and (np.abs(sums) < size ** np.arange(1, times + 1) * blur).all()
    return _upper(complex(centre), 1e-8) if one else None


# --- from guesses to roots ------------------------------------------------------------------------


CLOSE = 1e-5
"""Polished guesses nearer than this (relative, in the longest delay's unit) are examined as one
cluster.
"""

LOOSE = 0.02
"""The same for guesses on which Newton converges slowly: near a root of multiplicity m they stop
at eps^(1/m).
"""

SLOW = 1e-3
"""Roots below this, in the longest delay's unit, are taken for one where rounding parts them."""

DENSE = 400
"""Unknowns up to which matrices are decomposed."""

MOST = 300_000
"""Pairs of a guess and a known root in one call of compiled code, a tenth of a second or so."""


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
        # of a slow root beside one at zero fewer digits are known
        slow = abs(first) < SLOW and pencil.size <= DENSE
        blur = resolution(pencil, first, 0.1 * abs(first), 1) if slow else 0.0
        near = np.abs(s[left] - first) < np.maximum(link * abs(first), blur)
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
    size = min(0.2 * abs(centre), 0.4 * room, 1.0)
    count, sums = -1, np.empty(0, complex)
    for _ in range(8):
        if size < 1.5 * spread:
            break
        inside, found = cluster_moments(pencil, centre, size)
        if inside > 1:
            root = one_root(pencil, centre + found[0] / inside, size, inside)
            if root is not None:
                return [(root, inside)]
        if count < 1:
            count, sums = inside, found
        if inside == 1:
            break
        size *= 0.45
    if count < 1:
        return [(centre, 1)] if steps.min() < 1e-11 else []
    if count == 1:
        at = centre if steps.min() < 1e-11 else centre + sums[0]
        one, _ = newton(pencil, np.array([at]), np.empty(0, complex), 4)
        return [(_upper(complex(one[0])), 1)]
    apart, steps = centre + _from_sums(sums), np.empty(count)
    for _ in range(30):  # each away from the others (Ehrlich and Aberth)
        for i in range(count):
            apart[[i]], steps[[i]] = newton(pencil, apart[[i]], np.delete(apart, i), 3)
        if steps.max() < 1e-12:
            break
    gaps = np.abs(apart[:, None] - apart) + np.diag(np.full(count, np.inf))
    if not (steps * np.abs(apart) < 0.05 * gaps.min(axis=1)).all():
        return []
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
