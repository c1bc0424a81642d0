"""Critical gains of symmetric parking lots: exact against the conditions of the LDCC paper, over a grid.

M links in a row, one flow over all of them and one on each, all at the same rate x; the long flow's round-trip time is
a multiple of the others'. By (43) the loops depend on frequency times RTT alone, so the RTT itself drops out and only
the ratio counts. Delays are frozen as in (30); the eigenvalues of F are those of the closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol, lambdify

from fluidcc.claims.ldcc_common import beta, eta, w, x
from fluidcc.claims.ldcc_stability import s
from fluidcc.claims.ldcc_user_loop import loop_symbol, pole_symbol
from fluidcc.sources import LDCC

__all__ = ["Chart", "chart", "critical_gains"]

HOPS = (1, 2, 3, 5)
RATES = np.geomspace(0.25e6, 25e6, 10)
RATIOS = np.geomspace(1, 100, 10)
_LOW, _HIGH, _STEPS, _POINTS = 1e-2, 30.0, 20, 1500
_ROUND = Symbol("R", positive=True)
# (43) is eta base/(s + eta pole): what does not move with the gain is computed once.
_POLE = pole_symbol(_ROUND) / eta
_BASE = (loop_symbol(_ROUND) * (s + pole_symbol(_ROUND)) / eta).simplify()
_PARTS = lambdify((s, x, w, beta, _ROUND), (_BASE, _POLE), "numpy")


@dataclass(frozen=True)
class Chart:
    """Critical gains eta, shape (hops, rates, ratios) each, and the axes."""

    hops: tuple[int, ...]
    rates: NDArray[np.float64]
    ratios: NDArray[np.float64]
    exact: NDArray[np.float64]
    rule: NDArray[np.float64]
    hull: NDArray[np.float64]
    divided: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Number of points."""
        return int(self.exact.size)


@lru_cache(maxsize=1)
def chart() -> Chart:
    """The chart at the paper's w and beta."""
    shape = (len(HOPS), len(RATES), len(RATIOS))
    M, rate, ratio = np.meshgrid(HOPS, RATES, RATIOS, indexing="ij")
    found = critical_gains(M.ravel(), rate.ravel(), ratio.ravel())
    return Chart(HOPS, RATES, RATIOS, *(v.reshape(shape) for v in found))


def critical_gains(M: Any, rate: Any, ratio: Any) -> tuple[Any, Any, Any, Any]:
    """Critical eta of the network, by the -1/M rule, by the hull with the exact spectral radius, and by eta_1/M.

    Parameters
    ----------
    M, rate, ratio : array_like (points,)
        Hops, rate of every flow [bit/s], RTT of the long flow over that of the others.
    """
    M, rate, ratio = (np.asarray(v, float)[:, None] for v in (M, rate, ratio))
    half = 0.5  # x/c: each link carries its own flow and the long one

    omega = np.geomspace(1e-3, 30, _POINTS)[None] / np.sqrt(ratio)
    parts = [_PARTS(1j * omega, rate, LDCC.parameter("w"), LDCC.parameter("beta"), trip) for trip in (1.0, ratio)]

    def users(gain: Any) -> list[Any]:
        g = np.asarray(gain, float)[:, None]
        return [g * base / (1j * omega + g * pole) for base, pole in parts]

    def exact(gain: Any) -> Any:
        own, long = users(gain)
        return np.maximum(_reach(half * own), _reach(half * (own + M * long)))

    def rule(gain: Any) -> Any:
        return M[:, 0] * np.max([_reach(g) for g in users(gain)], axis=0)

    def hull(gain: Any) -> Any:
        own, long = users(gain)
        return half * (1 + M[:, 0]) * _between(own, long)

    def alone(gain: Any) -> Any:
        return np.max([_reach(g) for g in users(gain)], axis=0)

    one = _critical(alone, len(M))
    return _critical(exact, len(M)), _critical(rule, len(M)), _critical(hull, len(M)), one / M[:, 0]


def _critical(reach: Callable[[Any], Any], points: int) -> NDArray[np.float64]:
    """The least gain at which the reach along the negative real axis is one, by bisection of all points at once.

    Beyond it the reach stays above one: |eta/(jw + eta a)| grows with eta at every frequency.
    """
    low, high = np.full(points, _LOW), np.full(points, _HIGH)
    for _ in range(_STEPS):
        middle = np.sqrt(low * high)
        beyond = reach(middle) >= 1
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.asarray(np.sqrt(low * high))


def _reach(z: Any) -> Any:
    """How far left a curve (points, frequencies) crosses the real axis."""
    return np.maximum(np.max(-_crossing(z[:, :-1], z[:, 1:]), axis=1), 0)


def _between(a: Any, b: Any) -> Any:
    """The same for the hull of two curves and 0, cell by cell."""
    pairs = ((a[:, :-1], a[:, 1:]), (b[:, :-1], b[:, 1:]), (a[:, :-1], b[:, :-1]), (a[:, :-1], b[:, 1:]))
    return np.maximum(np.max([np.max(-_crossing(u, v), axis=1) for u, v in pairs], axis=0), 0)


def _crossing(u: Any, v: Any) -> Any:
    """Where the segment from u to v meets the real axis; 0 where it does not."""
    meets = u.imag * v.imag < 0
    gap = np.where(meets, u.imag - v.imag, 1.0)
    return np.where(meets, (u.imag * v.real - v.imag * u.real) / gap, 0.0)
