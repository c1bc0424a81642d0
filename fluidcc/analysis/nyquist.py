"""Where the users' loops, and the convex hull of them, meet the negative real axis: vectorised, refined to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.local import LocalLoop

__all__ = ["crossings", "hull_reach", "passes"]

_POINTS, _TURNS, _CHUNK, _ZOOMS, _CELLS, _MOST = 600, 4000, 512, 12, 6, 100
_PAIRS = 500_000  # of points, looked at in one go


def _grid(loop: LocalLoop) -> NDArray[np.float64]:
    """Frequencies [rad/s] from below every pole to where every loop has turned many times and shrunk."""
    slow = [abs(v) for A, _, _, _ in loop.laws if len(A) for v in np.linalg.eigvals(A) if v != 0]
    low = 1e-3 * min([1 / loop.trip.max(), *slow])
    high = 8 * np.pi / loop.trip.min()
    step = max(0.1 / loop.trip.max(), high / _TURNS)
    return np.unique(np.concatenate([np.geomspace(low, high, _POINTS), np.arange(step, high, step)]))


def crossings(loop: LocalLoop) -> tuple[NDArray[np.float64], list[list[tuple[float, int]]]]:
    """Where each G_r crosses the negative real axis.

    Returns
    -------
    reach : ndarray (classes,)
        The largest -Re G_r there; 0 if it never does.
    found : list of list of (float, int)
        Every crossing: -Re G_r, and +1 if it enters the upper half plane as the frequency grows, else -1.
    """
    omega = _grid(loop)
    G = loop.user(1j * omega)
    turned = (np.sign(G[:, :-1].imag) != np.sign(G[:, 1:].imag)) & (G[:, :-1].real < 0)
    users, cells = np.nonzero(turned)
    reach = -_met(loop, users, omega[cells], omega[cells + 1])
    signs = np.where(G[users, cells + 1].imag > 0, 1, -1)
    found: list[list[tuple[float, int]]] = [[] for _ in G]
    for k, value, sign in zip(users.tolist(), reach.tolist(), signs.tolist(), strict=True):
        if value > 0:
            found[k].append((value, sign))
    return np.array([max((v for v, _ in points), default=0.0) for points in found]), found


def _met(loop: LocalLoop, users: NDArray[np.int64], a: NDArray[np.float64], b: NDArray[np.float64]) -> Any:
    """Re G where Im G is zero between a and b, of each of these users: the Illinois method, for all at once."""
    (left, right), rows = (loop.user_at(users, 1j * w).imag for w in (a, b)), range(_MOST if len(users) else 0)
    for _ in rows:
        new = b - right * (b - a) / (right - left)
        value = loop.user_at(users, 1j * new).imag
        kept = np.sign(value) == np.sign(right)
        a, left = np.where(kept, a, b), np.where(kept, 0.5 * left, right)
        moved, b, right = np.abs(new - b), new, value
        if np.all(moved <= 1e-14 * b):
            break
    return loop.user_at(users, 1j * b).real


def passes(points: list[tuple[float, int]], hops: int) -> bool:
    """Whether a loop with these crossings does not encircle -1/hops: as many ways in as out, left of it."""
    return sum(sign for value, sign in points if value * hops >= 1) == 0


def hull_reach(loop: LocalLoop) -> tuple[float, float]:
    """The largest h with -h in rho(R~ R~*) co(0, G_1, ..., G_R) at a frequency, and that frequency [rad/s].

    Between two neighbouring frequencies the hull of both is taken, which contains a crossing that happens in between;
    the cells that reach furthest are cut until that no longer matters.
    """
    omega = _grid(loop)
    G, radius = loop.user(1j * omega), loop.radius(omega)
    ends, most = np.concatenate([G[:, :-1], G[:, 1:]]), np.maximum(radius[:-1], radius[1:])
    # No hull reaches further left than its points, and none that is on one side of the axis reaches it at all.
    bound = most * np.maximum(-ends.real.min(axis=0), 0.0)
    bound[(ends.imag.min(axis=0) > 0) | (ends.imag.max(axis=0) < 0)] = 0.0
    order, reach = np.argsort(-bound), np.zeros(len(bound))
    chunk = max(_CELLS, min(_CHUNK, _PAIRS // len(ends) ** 2))
    for a in range(0, len(order), chunk):
        cells = order[a : a + chunk]
        if bound[cells[0]] <= np.partition(reach, -_CELLS)[-_CELLS]:
            break
        reach[cells] = most[cells] * _axis_reach(ends[:, cells])
    best = np.argsort(reach)[::-1][:_CELLS]
    left, right = omega[best], omega[best + 1]
    for _ in range(_ZOOMS):
        cuts = np.linspace(left, right, 9).T
        left, right = cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
        reach = _cells(loop, left, right)
        keep = np.argsort(reach)[::-1][:_CELLS]
        left, right, reach = left[keep], right[keep], reach[keep]
    top = int(np.argmax(reach))
    return float(reach[top]), float(left[top])


def _cells(loop: LocalLoop, left: Any, right: Any) -> Any:
    """Reach of the hull over each cell [left, right]."""
    ends, n = np.concatenate([left, right]), len(left)
    G, radius = loop.user(1j * ends), loop.radius(ends)
    return np.maximum(radius[:n], radius[n:]) * _axis_reach(np.concatenate([G[:, :n], G[:, n:]]))


def _axis_reach(z: Any) -> Any:
    """How far left on the real axis the hull of 0 and the points z (points, cells) reaches."""
    above, below = np.maximum(z.imag, 0), np.maximum(-z.imag, 0)
    u, d = above[:, None], below[None]
    total = u + d
    weight = np.where((u > 0) & (d >= 0) & (total > 0) & (z.imag[None] <= 0), 1.0, 0.0)
    meets = np.divide(z.real[:, None] * d + z.real[None] * u, total, out=np.zeros_like(total), where=total > 0)
    return np.maximum(np.max(-meets * weight, axis=(0, 1)), 0.0)
