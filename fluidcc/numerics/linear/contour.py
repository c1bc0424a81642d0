"""The argument principle on polygons, with the known roots divided out.

``f(s) / prod(s - r)`` winds as often as f does, less the known roots inside; that holds for any r, so that the count
does not rest on their accuracy. Divided out they no longer turn the argument, and few points are enough.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fluidcc.errors import SolverError
from fluidcc.numerics.linear.pencil import Complex, Pencil

__all__ = ["OnContour", "cluster_moments", "half_box", "winding"]

Floats = NDArray[np.float64]

TURN = 1.0  # how much the logarithmic derivative may change over an interval, times its length
AGREE = 0.3  # radians between the turn of the argument and that which the derivative foretells
ROUNDS = 60


class OnContour(SolverError):
    """A root lies on the contour, or too near to tell."""


def winding(pencil: Pencil, vertices: Complex, known: Complex, density: float = 1.0) -> float:
    """Turns of the argument of f / prod(s - known) along an open or closed polygon, in units of 2 pi.

    Everything in the pencil's own unit of time. Intervals are halved until the argument's turn agrees with what the
    logarithmic derivative foretells and that derivative hardly changes across them.
    """
    s = _start(vertices, density)
    phase, slope = _evaluate(pencil, s, known)
    for _ in range(ROUNDS):
        step = np.diff(s)
        foretold = (0.5 * (slope[1:] + slope[:-1]) * step).imag
        turn = np.angle(phase[1:] * phase[:-1].conj())
        miss = np.abs((turn - foretold + np.pi) % (2 * np.pi) - np.pi)
        bad = ~((np.abs(slope[1:] - slope[:-1]) * np.abs(step) < TURN) & (miss < AGREE))
        if not bad.any():
            turn += 2 * np.pi * np.round((foretold - turn) / (2 * np.pi))
            return float(turn.sum() / (2 * np.pi))
        if np.abs(step[bad]).min() < 1e-13 * (1 + np.abs(s[:-1][bad]).max()):
            break
        at = np.flatnonzero(bad)
        fresh = 0.5 * (s[at] + s[at + 1])
        new_phase, new_slope = _evaluate(pencil, fresh, known)
        s = np.insert(s, at + 1, fresh)
        phase, slope = np.insert(phase, at + 1, new_phase), np.insert(slope, at + 1, new_slope)
    where = s[:-1][bad][0] / pencil.time
    raise OnContour(f"the argument could not be followed near s = {where:.6g} 1/s: a root lies on the contour")


def half_box(left: float, right: float, top: float, detours: Complex | tuple[()] = (), size: float = 0.0) -> Complex:
    """Vertices of the upper half of a box, from its left to its right end on the real axis, clockwise.

    Around each of the `detours`, points on the left edge in the upper half plane, the path turns right by `size`.
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


def cluster_moments(pencil: Pencil, centre: complex, size: float, count: int = 48) -> tuple[int, Complex]:
    """The number of roots within `size` of `centre`, and the sums of the first powers of their offsets."""
    offset = size * np.exp(2j * np.pi * (np.arange(count) + 0.5) / count)
    slope = pencil.values(centre + offset, scaled=True).slope
    powers = offset[None, :] ** np.arange(1, 10)[:, None]
    sums = (powers * slope).mean(axis=1)
    inside = round(float(sums[0].real))
    if not np.isfinite(sums).all() or abs(sums[0] - inside) > 0.05 or inside > 8:
        return -1, sums
    return inside, sums[1 : inside + 1]


def _start(vertices: Complex, density: float) -> Complex:
    parts = []
    for a, b in pairwise(vertices):
        count = 4 + int(density * min(abs(b - a), 400.0))
        parts.append(a + (b - a) * np.arange(count) / count)
    return np.concatenate([*parts, vertices[-1:]])


def _evaluate(pencil: Pencil, s: Complex, known: Complex) -> tuple[Complex, Complex]:
    values = pencil.values(s, scaled=True)
    phase, slope = values.phase, values.slope
    if len(known):
        gap = s[:, None] - known
        with np.errstate(all="ignore"):
            inverse = 1 / gap
            phase = phase * np.prod(gap.conj() / np.abs(gap), axis=1)
            slope = slope - inverse.sum(axis=1)
    return phase, slope
