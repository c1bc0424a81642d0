"""Where the users' loops, and the convex hull of them, meet the negative real axis: vectorised, refined to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.local import LocalLoop

__all__ = ["crossings", "hull_reach", "passes"]

_POINTS, _TURNS, _CHUNK, _ZOOMS, _CELLS = 600, 4000, 512, 12, 6


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
    found: list[list[tuple[float, int]]] = []
    for k in range(len(G)):
        turned = np.flatnonzero((np.sign(G[k, :-1].imag) != np.sign(G[k, 1:].imag)) & (G[k, :-1].real < 0))
        places = [_root(loop, k, omega[i], omega[i + 1]) for i in turned]
        signs = [1 if G[k, i + 1].imag > 0 else -1 for i in turned]
        values = loop.user(1j * np.array(places))[k] if places else np.empty(0)
        found.append([(-float(v.real), sign) for v, sign in zip(values, signs, strict=True) if v.real < 0])
    return np.array([max((v for v, _ in points), default=0.0) for points in found]), found


def _root(loop: LocalLoop, k: int, a: float, b: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda w: float(loop.user(np.array([1j * w]))[k, 0].imag), a, b, xtol=1e-14 * b, rtol=1e-14))


def passes(points: list[tuple[float, int]], hops: int) -> bool:
    """Whether a loop with these crossings does not encircle -1/hops: as many ways in as out, left of it."""
    return sum(sign for value, sign in points if value * hops >= 1) == 0


def hull_reach(loop: LocalLoop) -> tuple[float, float]:
    """The largest h with -h in rho(R~ R~*) co(0, G_1, ..., G_R) at a frequency, and that frequency [rad/s].

    Between two neighbouring frequencies the hull of both is taken, which contains a crossing that happens in between;
    the cells that reach furthest are cut until that no longer matters.
    """
    omega = _grid(loop)
    reach = np.empty(len(omega) - 1)
    for a in range(0, len(reach), _CHUNK):
        b = min(a + _CHUNK, len(reach))
        G, radius = loop.user(1j * omega[a : b + 1]), loop.radius(omega[a : b + 1])
        reach[a:b] = np.maximum(radius[:-1], radius[1:]) * _axis_reach(np.concatenate([G[:, :-1], G[:, 1:]]))
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
