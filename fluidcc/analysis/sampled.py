"""Stability of the sampled law (25): the monodromy of a network whose rates change at ticks and are held in between.

Between ticks everything is an integral of rates that are constant, so what each source has measured at a tick is an
exact linear map of the rates of the ticks before, whatever the delays are in periods.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sympy import lambdify

from fluidcc.analysis.local import LocalLoop, local_loop
from fluidcc.analysis.point import Point, operating_point
from fluidcc.errors import InvalidInput, Unsupported
from fluidcc.sources import LDCC, SampledLDCC
from fluidcc.symbols import e_b, packet, plain, unfold
from fluidcc.units import to_si

if TYPE_CHECKING:
    from fluidcc.equilibrium import Equilibrium
    from fluidcc.network import Network

__all__ = ["SampledStability", "sampled_stability"]


@dataclass(frozen=True)
class SampledStability:
    """Multipliers of a sampled network over one period.

    Attributes
    ----------
    period : float
        T_s [s].
    multipliers : ndarray of complex
        Eigenvalues of the monodromy matrix, by falling modulus.
    """

    period: float
    multipliers: NDArray[np.complex128]

    @property
    def radius(self) -> float:
        """Largest modulus."""
        return float(abs(self.multipliers[0]))

    @property
    def stable(self) -> bool:
        """Whether every multiplier is inside the unit circle."""
        return self.radius < 1

    @property
    def decay_rate(self) -> float:
        """Rate at which small deviations vanish [1/s]: -log(radius)/T_s."""
        return -math.log(self.radius) / self.period

    def _repr_html_(self) -> str:
        verdict = "stable" if self.stable else "unstable"
        text = (
            f"T_s = {self.period:.6g} s: {verdict}, largest multiplier {self.radius:.6g}, decay {self.decay_rate:.4g}/s"
        )
        return f"<p>{html.escape(text)}</p>"


def sampled_stability(net: Network, period: Any, at: float | Equilibrium = math.inf) -> SampledStability:
    """Replace every LDCC flow by its sampled law (25) with the given period, and find its multipliers.

    All flows tick at the same instants. Delays are those of the equilibrium, which is that of the continuous law.

    Parameters
    ----------
    net : Network
        LDCC flows on queues; constant flows may be there as well.
    period : float or str
        T_s [s].
    at : float or Equilibrium
        As in `fluidcc.linearize`.

    Raises
    ------
    InvalidInput
        If the period is not positive.
    Unsupported
        If a flow has another law, or the links do not answer by their queueing delays.
    """
    h = to_si(period, "s", "period")
    if not 0 < h < math.inf:
        raise InvalidInput(f"the period is {period!r}; give a positive time, such as '100 ms'")
    point = operating_point(net, at)
    for f in point.classes:
        if f.spec.law.name != LDCC.name or f.spec.law.flow != LDCC.flow:
            raise Unsupported(
                f"flow {f.names[0]!r} has the law {f.spec.law.name}; the sampled law (25) is that of LDCC"
            )
    loop = local_loop(point)
    if loop.signal != "queueing delay":
        raise Unsupported(f"its links answer by {loop.signal}; the sampled law is analysed on queues that are not full")
    matrix = _monodromy(point, loop, h)
    values = np.linalg.eigvals(matrix)
    return SampledStability(h, values[np.argsort(-np.abs(values))])


@lru_cache(maxsize=1)
def _slopes() -> Any:
    """Derivatives of the tick's new rate by the rate and by the two integrals."""
    (update,) = (tick.update for tick in SampledLDCC.ticks)
    x, delays, signals = SampledLDCC.states
    new = unfold(update[x])
    arguments = (*SampledLDCC.states, e_b, packet, *SampledLDCC.params)
    return lambdify(arguments, [new.diff(z) for z in (x, delays, signals)], "numpy")


def _tick(point: Point, h: float) -> Any:
    """Derivatives of each class's update by its rate, and by its integrals of delay and of signal: (3, classes)."""
    rest = point.rest.one_way_delay
    found = []
    for k, f in enumerate(point.classes):
        own = {plain(s): float(v) for s, v in zip(f.spec.law.params, point.p[k], strict=True)}
        values = [h if plain(s) == "T_s" else own[plain(s)] for s in SampledLDCC.params]
        delay = float(rest.sel(flow=f.names[0]))
        found.append(_slopes()(point.x[k], h * delay, 0.0, point.back[k], point.packet[k], *values))
    return np.array(found, float).T


def _monodromy(point: Point, loop: LocalLoop, h: float) -> Any:
    """The map of (rates of the last ticks, integrals of each link's arrivals) over one period.

    What class r hears of link l is the integral of y_l a delay d = m h + f h ago: that of now, less what came since.
    """
    L, K = loop.route.shape
    trips = (
        loop.forward[:, :, None] + np.where(loop.route > 0, loop.trip - loop.forward, 0.0)[:, None, :]
    )  # l, from, to
    depth = int(np.floor(trips.max() / h)) + 2
    size = depth * K + L
    by_rate, by_delay, by_signal = _tick(point, h)
    brings = loop.gamma[:, None] * loop.route * loop.count * h  # of one period's rate, to the queue of each link
    heard, change = np.zeros((2, K, size))
    for to in range(K):
        for l in np.flatnonzero(loop.route[:, to]):
            heard[to, depth * K + l] += h
            for k in np.flatnonzero(loop.route[l]):
                m, f = divmod(trips[l, k, to] / h, 1.0)
                m, gain = int(m), brings[l, k]
                for j in range(1, m + 1):
                    heard[to, j * K + k] -= h * gain
                heard[to, (m + 1) * K + k] += h * gain * (f - f * f / 2 - f)
                heard[to, m * K + k] += h * gain * (1 - f) ** 2 / 2
                change[to, (m + 1) * K + k] += gain * f
                change[to, m * K + k] += gain * (1 - f)
    M = np.zeros((size, size))
    M[:K] = by_delay[:, None] * heard + by_signal[:, None] * change
    M[:K, :K] += np.diag(by_rate)
    M[K : depth * K, : (depth - 1) * K] = np.eye((depth - 1) * K)
    M[depth * K :, depth * K :] = np.eye(L)
    M[depth * K :, :K] = brings
    return M
