"""The argument principle on polygons, with the known roots divided out.

``f(s) / prod(s - r)`` winds as often as f does, less the known roots inside; that holds for any r, so that the count
does not rest on their accuracy. Divided out they no longer turn the argument, and few points are enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import SolverError
from fluidcc.numerics.linear.compiled.zeros import turns
from fluidcc.numerics.linear.pencil import Complex, Pencil

__all__ = ["OnContour", "cluster_moments", "half_box", "winding"]

Floats = NDArray[np.float64]


class OnContour(SolverError):
    """A root lies on the contour, or too near to tell."""


def winding(pencil: Pencil, vertices: Complex, known: Complex, density: float = 1.0) -> float:
    """Turns of the argument of f / prod(s - known) along an open or closed polygon, in units of 2 pi.

    Everything in the pencil's own unit of time. Intervals are halved until the argument's turn agrees with what the
    logarithmic derivative foretells and that derivative hardly changes across them.
    """
    total, where = turns(
        pencil.whole,
        pencil.table[0],
        np.ascontiguousarray(vertices, complex),
        np.ascontiguousarray(known, complex),
        density,
    )
    if np.isnan(total):
        raise OnContour(
            f"the argument could not be followed near s = {where / pencil.time:.6g} 1/s: a root lies on the contour"
        )
    return float(total)


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
    with np.errstate(over="ignore", invalid="ignore"):  # far to the left, where there is nothing to be told
        slope = pencil.values(centre + offset, scaled=True).slope
        powers = offset[None, :] ** np.arange(1, 10)[:, None]
        sums = (powers * slope).mean(axis=1)
    if not np.isfinite(sums).all():
        return -1, sums
    inside = round(float(sums[0].real))
    if abs(sums[0] - inside) > 0.05 or inside > 8:
        return -1, sums
    return inside, sums[1 : inside + 1]
