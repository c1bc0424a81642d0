"""From guesses to roots: Newton on the characteristic function, duplicates merged, multiplicities counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.contour import cluster_moments
from fluidcc.numerics.linear.pencil import Complex, Pencil

__all__ = ["mirrored", "newton", "resolve"]

CLOSE = 1e-5
"""Polished guesses nearer than this (relative, in the longest delay's unit) are examined as one cluster."""

LOOSE = 0.02
"""The same for guesses on which Newton converges slowly: near a root of multiplicity m they stop at eps^(1/m)."""

SPLIT = 1e-6
"""Roots of a cluster that lie closer than this fraction of its circle are one multiple root."""


def newton(pencil: Pencil, guesses: Complex, known: Complex, rounds: int = 25) -> tuple[Complex, NDArray[np.float64]]:
    """Newton's iteration from every guess, away from the `known` roots (Maehly), and the size of its last step.

    Everything in the pencil's unit of time.
    """
    s, size, poor = pencil.newton(guesses.astype(complex), known, rounds)
    active = np.flatnonzero(poor)
    if not len(active):
        return s, size
    for _ in range(rounds):
        slope = pencil.values(s[active], scaled=True).slope
        if len(known):
            with np.errstate(all="ignore"):
                slope = slope - (1 / (s[active, None] - known)).sum(axis=1)
        with np.errstate(all="ignore"):
            step = np.where(np.isinf(slope), 0, 1 / slope)
        reach = 1 + np.abs(s[active])
        long = np.abs(step) > 0.5 * reach  # far from any root: no leap
        step[long] *= 0.5 * reach[long] / np.abs(step[long])
        step[~np.isfinite(step)] = 0.5
        s[active] -= step
        size[active] = np.abs(step) / reach
        active = active[size[active] > 1e-13]
        if not len(active):
            break
    return s, size


def resolve(pencil: Pencil, guesses: Complex) -> tuple[Complex, NDArray[np.int64]]:
    """Different roots reached from the guesses, in the closed upper half plane, with their multiplicities.

    A guess is accepted when Newton's step, which is the distance to the root to first order, falls below 1e-11. Roots
    that come close to each other, and guesses that converge slowly, are counted by the argument principle on a circle.
    """
    s, size = newton(pencil, guesses, np.empty(0, complex))
    good = size < 1e-3
    s, size = s[good], size[good]
    s = np.where(s.imag < 0, s.conj(), s)
    s = np.where(np.abs(s.imag) < 1e-11 * (1 + np.abs(s)), s.real, s)
    roots: list[complex] = []
    times: list[int] = []
    left = np.argsort(-s.real)
    while len(left):
        first = s[left[0]]
        link = np.where(np.maximum(size[left], size[left[0]]) < 1e-11, CLOSE, LOOSE)
        near = np.abs(s[left] - first) < link * (1 + abs(first))
        near[0] = True
        group, left = left[near], left[~near]
        if len(group) == 1 and size[group[0]] < 1e-11:
            roots.append(first)
            times.append(1)
            continue
        others = np.concatenate((s[left], np.array(roots, complex)))
        for root, multiplicity in _cluster(pencil, s[group], size[group], _with_mirror(others, s[group])):
            roots.append(root)
            times.append(multiplicity)
    return np.array(roots, complex), np.array(times, np.int64)


def _with_mirror(others: Complex, group: Complex) -> Complex:
    """What must stay outside the circle around a group: the others, their conjugates and the group's own."""
    own = group.conj()[np.abs(group.imag) > 2 * LOOSE * (1 + np.abs(group))]
    return np.concatenate((others, others.conj(), own))


def _cluster(pencil: Pencil, group: Complex, steps: NDArray[np.float64], others: Complex) -> list[tuple[complex, int]]:
    centre = complex(group[np.argmin(steps)]) if steps.min() < 1e-11 else complex(group.mean())
    spread = float(np.abs(group - centre).max())
    room = float(np.abs(others - centre).min()) if len(others) else np.inf
    size = min(0.05 * (1 + abs(centre)), 0.4 * room)
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
        root, _ = newton(pencil, np.array([centre if steps.min() < 1e-11 else mean]), np.empty(0, complex), 4)
        return [(_upper(complex(root[0])), 1)]
    variance = sums[1] / count - (sums[0] / count) ** 2
    if abs(variance) < (SPLIT * size) ** 2 * 10:
        return [(_upper(mean, 1e-8), count)]
    apart, _ = newton(pencil, centre + _from_sums(sums), np.empty(0, complex), 8)
    keep = (
        apart
        if np.abs(apart[:, None] - apart + np.eye(count)).min() > 1e-3 * abs(variance) ** 0.5
        else np.array(centre + _from_sums(sums))
    )
    below = keep.imag < -1e-9 * (1 + abs(centre))  # the mirror images of roots that are in this circle too
    return [(_upper(complex(root)), 1) for root in keep[~below]]


def _upper(root: complex, tolerance: float = 1e-11) -> complex:
    """On the real axis if it is there to rounding, else in the upper half plane."""
    return complex(root.real, 0.0 if abs(root.imag) < tolerance * (1 + abs(root)) else abs(root.imag))


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
    order = np.lexsort((-every.imag, np.abs(every.imag), -np.round(every.real, 12)))
    return every[order]
