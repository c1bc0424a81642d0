"""Stability of the sampled law (25): the monodromy of a network whose rates change at ticks and are held in between.

Between ticks everything is an integral of rates that are constant, so what each source has measured at a tick is an
exact linear map of what was before, whatever the delays are in periods: `fluidcc.numerics.linear.sampled` makes it.
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
from fluidcc.analysis.sampled_routers import router_loop
from fluidcc.arguments import explained
from fluidcc.equilibrium import Equilibrium
from fluidcc.errors import InvalidInput, Unsupported
from fluidcc.network import require_network
from fluidcc.numerics.linear.sampled import SampledLoop
from fluidcc.sources import LDCC, SampledLDCC
from fluidcc.symbols import e_b, packet, plain, unfold
from fluidcc.units import to_si

if TYPE_CHECKING:
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


@explained
def sampled_stability(net: Network, period: Any = None, at: float | str | Equilibrium = math.inf) -> SampledStability:
    """Find the multipliers of a network that is sampled: sources of LDCC's law (25), or one router of P-AQM.

    Flows of LDCC all tick at the same instants. Delays are those of the equilibrium, which is that of the continuous
    law. Of routers, the loop of `fluidcc.PAQMECF` with sources of `fluidcc.ECF` (decreases, which are carried out in
    full) and that of `fluidcc.PAQMDrop` under constant rates are known, from the laws' own updates.

    Parameters
    ----------
    net : Network
        Flows of LDCC or of its sampled law on queues, with constant flows or without; or one link of P-AQM.
    period : float or str, optional
        T_s [s] of all flows; by default that of the sampled laws. Routers have their own.
    at : float, str or Equilibrium
        As in `fluidcc.linearize`.

    Raises
    ------
    InvalidInput
        If the period is not positive, or none is given and the flows do not agree on one.
    Unsupported
        If a flow has another law, or the links do not answer by their queueing delays.
    """
    require_network(net)
    if (router := router_loop(net, at.at if isinstance(at, Equilibrium) else at)) is not None:
        if period is not None:
            raise InvalidInput(
                f"the period is {period!r}, but the router has its own, {router.period:g} s; leave it out"
            )
        return SampledStability(router.period, router.multipliers)
    net, ticks = _continuous(net)
    if period is None and len(ticks) != 1:
        said = f"tick every {' or '.join(f'{t:g} s' for t in sorted(ticks))}" if ticks else "are not sampled"
        raise InvalidInput(f"no period is given and the flows of the network {said}; give one, such as '100 ms'")
    h = next(iter(ticks)) if period is None else to_si(period, "s", "period")
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
    return SampledStability(h, _loop(point, loop, h).multipliers)


def _continuous(net: Network) -> tuple[Network, set[float]]:
    """The network with LDCC in the place of its sampled law, whose periods are told."""
    ticks = set()
    for name, flow in net.flows.items():
        if flow.law.name == SampledLDCC.name and flow.law.flow == SampledLDCC.flow:
            own = {plain(s): value for s, value in flow.law.params.items()}
            ticks.add(float(own.pop("T_s")))
            net = net.with_flow(name, law=LDCC(**own), initial=None)
    return net, ticks


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


def _loop(point: Point, loop: LocalLoop, h: float) -> SampledLoop:
    """The queues as a plant, the ticks as its controllers.

    An input for each class at each link it crosses, at its forward delay. A class measures of each link on its route
    the mean of q over the period that ended a backward delay ago, and q itself at both ends of that period, whose
    difference is the integral of q'.
    """
    L, K = loop.route.shape
    pairs = [(l, k) for k in range(K) for l in np.flatnonzero(loop.route[:, k])]
    by_rate, by_delay, by_signal = _tick(point, h)
    B = np.zeros((L, len(pairs)))
    C, G, H = np.zeros((3 * len(pairs), L)), np.zeros((K, 3 * len(pairs))), np.zeros((len(pairs), K))
    for i, (l, k) in enumerate(pairs):
        B[l, i] = loop.gamma[l] * loop.count[k]
        C[3 * i : 3 * i + 3, l] = 1.0
        G[k, 3 * i : 3 * i + 3] = h * by_delay[k], by_signal[k], -by_signal[k]
        H[i, k] = 1.0
    ahead = [float(loop.forward[l, k]) for l, k in pairs]
    behind = [float(loop.trip[k]) - d for (_, k), d in zip(pairs, ahead, strict=True)]
    F = np.diag(by_rate)
    return SampledLoop(
        h, np.zeros((L, L)), B, C, F, G, H @ F, H @ G, ahead, [d + late for d in behind for late in (0.0, 0.0, h)],
        [True, False, False] * len(pairs),
    )  # fmt: skip
