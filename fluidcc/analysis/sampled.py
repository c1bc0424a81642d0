"""Stability of the sampled law (25): the monodromy of a network whose rates change at ticks and are held in between.

Between ticks everything is an integral of rates that are constant, so what each source has measured at a tick is an
exact linear map of what was before, whatever the delays and periods are: `fluidcc.numerics.linear.held` makes it.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sympy import lambdify

from fluidcc.analysis.local import LocalLoop, local_loop
from fluidcc.analysis.operating_point import Point, operating_point
from fluidcc.analysis.sampled_routers import router_loop
from fluidcc.base.arguments import explained
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.base.units import to_si
from fluidcc.equilibria.equilibrium import Equilibrium
from fluidcc.network.network import require_network
from fluidcc.numerics.linear.held import HeldLoop, Measurement, Path
from fluidcc.sources import LDCC, SampledLDCC
from fluidcc.symbols import e_b, packet, plain, unfold

if TYPE_CHECKING:
    from fluidcc.network import Network

__all__ = ["SampledStability", "sampled_stability"]


@dataclass(frozen=True)
class SampledStability:
    """Multipliers of a sampled network over one period.

    Attributes
    ----------
    period : float
        T_s [s]; of several periods the least common multiple.
    multipliers : ndarray of complex
        Eigenvalues of the monodromy matrix, by falling modulus; N - 1 times those of the differences among N identical
        flows.
    undetermined : int
        How many multipliers of 1 are left out: shares of sources that no router determines.
    """

    period: float
    multipliers: NDArray[np.complex128]
    undetermined: int = 0

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
        """Rate at which small deviations vanish [1/s]: -log(radius)/period."""
        return -math.log(self.radius) / self.period

    def _repr_html_(self) -> str:
        verdict = "stable" if self.stable else "unstable"
        text = (
            f"every {self.period:.6g} s: {verdict}, largest multiplier {self.radius:.6g}, decay {self.decay_rate:.4g}/s"
        )
        return f"<p>{html.escape(text)}</p>"


@explained
def sampled_stability(net: Network, period: Any = None, at: float | str | Equilibrium = math.inf) -> SampledStability:
    """Find the multipliers of a network that is sampled: sources of LDCC's law (25), or routers of P-AQM.

    Ticks are at the multiples of each period. Delays are those of the equilibrium, which for LDCC is that of the
    continuous law. All is exact to first order, also between ticks: any delays, periods and numbers of links.

    Of routers there are two loops, both from the laws' own updates. That of `fluidcc.PAQMECF` and `fluidcc.PAQMECF2`
    with sources of `fluidcc.ECF` is taken where rates are max-min fair and each filled queue is at its aim; it is that
    of decreases, which are carried out in full, without the stall rule, which disturbs a rest. That of
    `fluidcc.PAQMDrop` is the one under constant rates above its capacity.

    Parameters
    ----------
    net : Network
        Flows of LDCC or of its sampled law on queues, or routers of P-AQM; with constant flows or without.
    period : float or str, optional
        T_s [s] of all flows; by default those of the sampled laws. Routers have their own.
    at : float, str or Equilibrium
        As in `fluidcc.linearize`.

    Raises
    ------
    InvalidInput
        If the period is not positive, or none is given and a flow has none.
    Unsupported
        If a flow has another law, if the links do not answer by their queueing delays, if a router's sources have no
        rest, or where every deviation switches which router a source obeys, and if periods have no common multiple.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("aqm", fc.PAQMECF(T_s=0.08), capacity="30 Mbit/s", delay="20 ms")
    >>> for name, away in {"near": "10 ms", "far": "35 ms"}.items():
    ...     net = net.flow(name, fc.ECF, route=["aqm"], access_delay=away)
    >>> found = fc.sampled_stability(net)
    >>> found.stable, found.undetermined
    (True, 1)
    """
    require_network(net)
    if (found := router_loop(net, at.at if isinstance(at, Equilibrium) else at)) is not None:
        router, among = found
        if period is not None:
            raise InvalidInput(
                f"the period is {period!r}, but the router has its own, {router.period:g} s; leave it out"
            )
        return SampledStability(router.period, router.multipliers, router.undetermined + among)
    net, own = _continuous(net)
    if period is None:
        _need_own(net, own)
    h = None if period is None else to_si(period, "s", "period")
    if h is not None and not 0 < h < math.inf:
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
    held, differences = _loop(point, loop, own if h is None else dict.fromkeys(net.flows, h))
    every = np.concatenate((held.multipliers, differences))
    return SampledStability(held.period, every[np.argsort(-np.abs(every), kind="stable")])


def _continuous(net: Network) -> tuple[Network, dict[str, float]]:
    """The network with LDCC in the place of its sampled law, whose periods are told by flow."""
    ticks = {}
    for name, flow in net.flows.items():
        if flow.law.name == SampledLDCC.name and flow.law.flow == SampledLDCC.flow:
            own = {plain(s): value for s, value in flow.law.params.items()}
            ticks[name] = float(own.pop("T_s"))
            net = net.with_flow(name, law=LDCC(**own), initial=None)
    return net, ticks


def _need_own(net: Network, own: dict[str, float]) -> None:
    for name, flow in net.flows.items():
        if name not in own and flow.law.name == LDCC.name:
            raise InvalidInput(
                f"no period is given, and flow {name!r} ({flow.law.name}) is not sampled; give one, such as '100 ms', "
                "or the flow the law fluidcc.SampledLDCC"
            )


@lru_cache(maxsize=1)
def _slopes() -> Any:
    """Derivatives of the tick's new rate by the rate and by the two integrals."""
    (update,) = (tick.update for tick in SampledLDCC.ticks)
    x, delays, signals = SampledLDCC.states
    new = unfold(update[x])
    arguments = (*SampledLDCC.states, e_b, packet, *SampledLDCC.params)
    return lambdify(arguments, [new.diff(z) for z in (x, delays, signals)], "numpy")


def _tick(point: Point, k: int, h: float) -> Any:
    """Derivatives of a class's update over h by its rate, and by its integrals of delay and of signal."""
    f = point.classes[k]
    own = {plain(s): float(v) for s, v in zip(f.spec.law.params, point.p[k], strict=True)}
    values = [h if plain(s) == "T_s" else own[plain(s)] for s in SampledLDCC.params]
    delay = float(point.rest.one_way_delay.sel(flow=f.names[0]))
    return _slopes()(point.x[k], h * delay, 0.0, point.back[k], point.packet[k], *values)


def _loop(point: Point, loop: LocalLoop, periods: dict[str, float]) -> tuple[HeldLoop, NDArray[np.complex128]]:
    """The queues as integrators of rates that are held, and the multipliers of the differences among identical flows.

    An input for the flows of a class that tick together, to each link that it crosses, at its forward delay. Of each
    of these it measures the mean of q over the period that ended a backward delay ago, and q itself at both ends of
    that period, whose difference is the integral of q'. Links hear nothing of the differences among such flows: each
    keeps of its own what it keeps of its rate.
    """
    inputs = [(k, h, n) for k, f in enumerate(point.classes) for h, n in Counter(periods[n] for n in f.names).items()]
    keep, paths, measurements = [], [], []
    for j, (k, h, n) in enumerate(inputs):
        by_rate, by_delay, by_signal = (float(v) for v in _tick(point, k, h))
        keep.append(by_rate)
        for l in np.flatnonzero(loop.route[:, k]):
            ahead = float(loop.forward[l, k])
            behind = float(loop.trip[k]) - ahead
            paths.append(Path(int(l), j, float(loop.gamma[l]) * n, ahead))
            measurements += [
                Measurement(j, int(l), h * by_delay, behind, h),
                Measurement(j, int(l), by_signal, behind),
                Measurement(j, int(l), -by_signal, behind + h),
            ]
    held = HeldLoop([h for _, h, _ in inputs], len(loop.gamma), keep, paths, measurements)
    once = [kept ** round(held.period / h) for kept, (_, h, _) in zip(keep, inputs, strict=True)]
    return held, np.repeat(np.array(once, complex), [n - 1 for _, _, n in inputs])
