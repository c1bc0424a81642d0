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

from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import beta, eta, w, x
from fluidcc.papers.ldcc.stability import s
from fluidcc.papers.ldcc.user_loop import loop_symbol, pole_symbol
from fluidcc.sources import LDCC

__all__ = ["Chart", "ParkingLots", "chart", "critical_gains", "parking_lot_network"]

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


class ParkingLots:
    """Parking lots side by side: how far left each condition's curve crosses the real axis, as a function of eta.

    Parameters
    ----------
    M, rate, ratio : array_like (points,)
        Hops, rate of every flow [bit/s], RTT of the long flow over that of the others.
    """

    share = 0.5  # x/c: each link carries its own flow and the long one

    def __init__(self, M: Any, rate: Any, ratio: Any) -> None:
        self.M, rate, ratio = (np.asarray(v, float)[:, None] for v in (M, rate, ratio))
        self.omega = np.geomspace(1e-3, 30, _POINTS)[None] / np.sqrt(ratio)
        w_, beta_ = LDCC.parameter("w"), LDCC.parameter("beta")
        self.parts = [_PARTS(1j * self.omega, rate, w_, beta_, trip) for trip in (1.0, ratio)]

    def users(self, gain: Any) -> list[Any]:
        """G of a flow on one link, and of the long one, at each frequency."""
        g = np.asarray(gain, float)[:, None]
        return [g * base / (1j * self.omega + g * pole) for base, pole in self.parts]

    def exact(self, gain: Any) -> Any:
        """Of the eigenvalues of F: one, and M - 1 times that of a flow on one link."""
        own, long = self.users(gain)
        others = np.where(self.M[:, 0] > 1, _reach(self.share * own), 0.0)
        return np.maximum(others, _reach(self.share * (own + self.M * long)))

    def rule(self, gain: Any) -> Any:
        """Of each G, times M."""
        return self.M[:, 0] * self.alone(gain)

    def hull(self, gain: Any) -> Any:
        """Of the hull of both, times the exact spectral radius."""
        return self.share * (1 + self.M[:, 0]) * _between(*self.users(gain))

    def alone(self, gain: Any) -> Any:
        """Of each G."""
        return np.max([_reach(g) for g in self.users(gain)], axis=0)


def critical_gains(M: Any, rate: Any, ratio: Any) -> tuple[Any, Any, Any, Any]:
    """Critical eta of the network, by the -1/M rule, by the hull with the exact spectral radius, and by eta_1/M.

    Parameters
    ----------
    M, rate, ratio : array_like (points,)
        As for `ParkingLots`.
    """
    lots = ParkingLots(M, rate, ratio)
    n = len(lots.M)
    one = _critical(lots.alone, n)
    return _critical(lots.exact, n), _critical(lots.rule, n), _critical(lots.hull, n), one / lots.M[:, 0]


def parking_lot_network(M: int, rate: float, ratio: float, gain: float) -> Network:
    """One of these parking lots as a network: M links of 2 `rate`, thresholds such that every flow gets `rate`.

    The RTT of the flows on one link is 0.2 s, nine tenths of every RTT are before the receiver, and half of that of
    the flows on one link is in the links of the long flow together if its RTT is the same.
    """
    trip, hop = 0.2, 0.1 / M
    net = Network()
    for l in range(M):
        net.link(f"l{l}", DropTail, capacity=2 * rate, delay=0.2 * hop)
    for name, own, hops in [("long", ratio * trip, M), *((f"f{l}", trip, 1) for l in range(M))]:
        route = list(net.link_names) if name == "long" else [f"l{name[1:]}"]
        threshold = 0.9 * own - LDCC.parameter("w") / (LDCC.parameter("beta") * rate) * own  # v = w/x at e = 0.9 RTT
        net.flow(name, LDCC(eta=gain, T=threshold), route=route, access_delay=0.9 * own - hops * hop,
                 return_delay=0.1 * own)  # fmt: skip
    return net


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
