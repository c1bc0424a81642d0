"""Stability of the sampled law (25): the monodromy of a network whose rates change at ticks and are
held in between.

Between ticks everything is an integral of rates that are constant, so what each source has measured
at a tick is an exact linear map of what was before, whatever the delays and periods are:
`fluidcc.papers.held` makes it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import OperatingPoint, operating_point
from fluidcc.analysis.wiring import HEARD, LinearLaw, sources
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.base.tables import InTable
from fluidcc.base.units import to_si
from fluidcc.conditions.local import LocalLoop, local_loop
from fluidcc.laws.linear import standing
from fluidcc.network.parameters import evaluated
from fluidcc.papers.held import HeldLoop, Measurement, Path
from fluidcc.symbols import e, edot, loss, mark, offer_min, pi, price, symbols_of, x_tau

if TYPE_CHECKING:
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network.network import Network


@dataclass(frozen=True, repr=False)
class SampledStability(InTable):
    """Multipliers of a sampled network over one period.

    Attributes
    ----------
    period : float
        T_s [s]; of several periods the least common multiple.
    multipliers : ndarray of complex
        Eigenvalues of the monodromy matrix, by falling modulus; N - 1 times those of the
        differences among N identical flows.
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
        """Rate at which small deviations vanish [1/s]: -log(radius)/period; infinite
        where they are gone after some periods.
        """
        return -math.log(self.radius) / self.period if self.radius else math.inf

    _shown = ("stable", "period [s]", "radius", "decay_rate [1/s]", "multipliers", "undetermined")


def of_sources(net: Network, period: Any, at: float | str | Equilibrium) -> SampledStability:
    """The multipliers of a network of sampled sources; see `fluidcc.sampled_stability`."""
    h = None if period is None else to_si(period, "s", "period")
    if h is not None and not 0 < h < math.inf:
        raise InvalidInput(f"the period is {period!r}; give a positive time, such as '100 ms'")
    net, own = _continuous(net)
    point = operating_point(net, at)
    laws = sources(point)
    for f, law in zip(point.classes, laws, strict=True):
        if not _averages(law):
            raise Unsupported(
                f"flow {f.name!r} has the law {f.spec.law.name}; the sampled law (25) is that of "
                "LDCC"
            )
        if h is None and f.name not in own:
            raise InvalidInput(
                f"no period is given, and flow {f.name!r} ({f.spec.law.name}) is not sampled; "
                "give one, such as '100 ms', or the flow the law fluidcc.SampledLDCC"
            )
    loop = local_loop(point)
    if loop.signal != "queueing delay":
        raise Unsupported(
            f"its links answer by {loop.signal}; the sampled law is analysed on queues that are "
            "not full"
        )
    periods = own if h is None else dict.fromkeys(net.flows, h)
    held, differences = _loop(point, loop, laws, periods)
    every = np.concatenate((held.multipliers, differences))
    return SampledStability(held.period, every[np.argsort(-np.abs(every), kind="stable")])


def _continuous(net: Network) -> tuple[Network, dict[str, float]]:
    """The network with sampled sources as if they ran all the time, whose periods are told by
    flow.
    """
    ticks = {}
    for name, flow in net.flows.items():
        if len(flow.law.ticks) == 1 and symbols_of(flow.law.ticks[0].every) <= {*flow.law.params}:
            (tick,) = flow.law.ticks
            ticks[name] = float(evaluated(tick.every, flow.law.params))
            law = standing(flow.law, f"flow {name!r}")
            net = net.with_flow(name, law=law, initial=None)
    return net, ticks


def _averages(law: LinearLaw) -> bool:
    """Whether a law is of the form that (25) samples: its one state is the rate, and it hears of
    delay, and of its slope and losses by their sum.
    """
    if len(law.A) != 1 or law.C[0] != 1 or np.any(law.D):
        return False
    slope, lost = (float(law.B[0, HEARD.index(s)]) for s in (edot, pi))
    rest = [law.B[0, HEARD.index(s)] for s in (loss, mark, price, offer_min, x_tau)]
    return slope != 0 and math.isclose(slope, lost, rel_tol=1e-9) and not np.any(rest)


def _loop(
    point: OperatingPoint, loop: LocalLoop, laws: list[LinearLaw], periods: dict[str, float]
) -> tuple[HeldLoop, NDArray[np.complex128]]:
    """The queues as integrators of rates that are held, and the multipliers of the differences
    among identical flows.

    An input for the flows of a class that tick together, to each link that it crosses, at its
    forward delay. Of each of these it measures the mean of q over the period that ended a backward
    delay ago, and q itself at both ends of that period, whose difference is the integral of q'.
    Links hear nothing of the differences among such flows: each keeps of its own what it keeps of
    its rate. A tick adds the period times the derivative that the continuous law has of the means.
    """
    inputs = [
        (k, h, n)
        for k, f in enumerate(point.classes)
        for h, n in Counter(periods[n] for n in f.names).items()
    ]
    keep, paths, measurements = [], [], []
    for j, (k, h, n) in enumerate(inputs):
        by_delay, by_signal = (float(laws[k].B[0, HEARD.index(s)]) for s in (e, edot))
        keep.append(1 + h * float(laws[k].A[0, 0]))
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
