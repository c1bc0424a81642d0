"""The network that the numbers of the paper on FAST decode to, and runs in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.formulas import fast
from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import FAST
from fluidcc.sources.propagation import with_estimator, with_pause

if TYPE_CHECKING:
    import xarray as xr

ALPHA = 50.0  # Packets that each flow wants in the queue: Section V

# Bits of a packet. The paper names neither its link nor its packets: (7) is its 108 ms with these
# two.
PACKET = 8000.0
C = 100e6 / PACKET  # Capacity [packet/s]: 100 Mbit/s
RTT = 0.1  # Round-trip propagation delay where the paper names none [s]
GAP = 20.0  # Seconds between arrivals in Fig. 2.

# Round-trip propagation delay in Fig. 2 [s]; the paper's is not given. At 100 ms windows settle too
# slowly.
RTT_2 = 0.04

# Round-trip propagation delays of the curves of Fig. 3(a) [s].
RTTS = (0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.2)
FLOWS = (1, 2, 4, 8, 16)  # Numbers of existing flows of the curves of Fig. 3(b).

_START, _WAIT = 15.0, 40.0  # the newcomer's, and its age when it pauses or probes [s]
_ESTIMATOR, _PAUSE = with_estimator(FAST), with_pause(FAST)

# What the newcomer does, in Fig. 3.
METHODS = {
    "FAST": FAST,
    "rate reduction": _PAUSE(wait=_WAIT, pause=0.5),  # longer than the queue takes to empty
    "estimator": _ESTIMATOR(wait=_WAIT),  # theta = -0.5 and t_eps = r*, as in the paper
}


def meeting(
    law: Source,
    rtts: Sequence[float],
    rtt: float,
    *,
    others: Source = FAST,
    newcomers: int = 1,
    apart: float = 0.0,
    buffer: float = math.inf,
) -> Network:
    """Newcomers with `law` and round trip `rtt`; all but the last wait `apart` seconds longer.

    There are already FAST flows of round trips `rtts`; `buffer` is in packets, and endless by
    default.
    """
    first = 0.5 * min(*rtts, rtt)
    net = Network().link("l", DropTail, capacity=C * PACKET, delay=first, buffer=buffer * PACKET)
    way: dict[str, Any] = {"route": ["l"], "packet": PACKET}
    for i, r in enumerate(rtts):
        # They begin near their fair share: how they came there is of no interest.
        begins = {"w": C * r / len(rtts) + ALPHA}
        net.flow(f"f{i}", others, start=0, access_delay=r / 2 - first, initial=begins, **way)
    for i in range(newcomers):
        late = law(wait=law.parameter("wait") + apart) if apart and i < newcomers - 1 else law
        net.flow(f"new{i}", late, start=_START, access_delay=rtt / 2 - first, **way)
    return net


def over_others(r: xr.Dataset) -> float:
    """Mean rate of the last flow over that of the others."""
    mean = r.rate.mean("time").values
    return float(mean[-1] / mean[:-1].mean())


@cache
def ratio(method: str, n: int, rtt: float) -> float:
    """The newcomer's rate over the mean of the n others, 25 s after it paused or probed."""
    end = _START + _WAIT + 35
    net = meeting(METHODS[method], [rtt] * n, rtt)
    return over_others(simulate(net, end, t_eval=np.arange(end - 10, end, 0.05), rtol=1e-6))


def ratios(method: str, over: str) -> np.ndarray:
    """A curve of Fig. 3: `over` "rtt", with eight others, or over "n", at 100 ms."""
    cases = [(8, d) for d in RTTS] if over == "rtt" else [(n, RTT) for n in FLOWS]
    return np.array([ratio(method, *case) for case in cases])


@cache
def arrivals(method: str) -> xr.Dataset:
    """Five flows of Fig. 2 that start 20 s apart; with the estimator they probe after 10 s."""
    law = {"FAST": FAST, "estimator": _ESTIMATOR(wait=GAP / 2)}[method]
    flows = [{"law": law, "start": GAP * i, "packet": PACKET} for i in range(5)]
    net = dumbbell(flows, {"capacity": C * PACKET, "delay": RTT_2 / 2})
    return simulate(net, 5 * GAP, samples=2001, rtol=1e-6)


def plateaus(method: str) -> fast.Arrivals:
    """Mean queue [packet] and rates [packet/s] in the last 3 s before each further arrival."""
    run = arrivals(method)
    ends = GAP * np.arange(1, 6)
    means = [run.sel(time=slice(end - 3, end - 0.1)).mean("time") for end in ends]
    backlog, rate = (np.array([m[name] for m in means]) / PACKET for name in ("backlog", "rate"))
    return fast.Arrivals(backlog[:, 0], rate)


@cache
def correction(
    rounds: float,
    rtts: tuple[float, ...] = (RTT,) * 4,
    rtt: float = RTT,
    theta: float = -0.5,
    others: Source = FAST,
    newcomers: int = 1,
    apart: float = 0.0,
) -> tuple[float, float, float]:
    """The estimator's correction over n alpha/C; t_eps over the others' least RTT; least queue [s].

    `rounds` is t_eps over the newcomer's own round trip; of several newcomers it is the last's
    correction, and the others of them probe `apart` later.
    """
    law = with_estimator(others)(wait=_WAIT, theta=theta, rounds=rounds)
    net = meeting(law, rtts, rtt, others=others, newcomers=newcomers, apart=apart)
    at = _START + _WAIT
    r = simulate(net, at + 3, t_eval=np.arange(at - 0.01, at + 2.99, 1e-3), rtol=1e-7)
    # for the propagation delay
    taken = (r.rtt[:, -1] - r[f"{law.name}_delta"].values.reshape(len(r.time), -1)[:, -1]).values
    queue = r.queueing_delay.values[:, 0]
    met = len(rtts) * ALPHA / C
    longer = (rtt + queue[0]) / (min(rtts) + queue[0])
    return (taken[0] - taken[-1]) / met, rounds * longer, queue.min()
