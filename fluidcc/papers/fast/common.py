"""Runs in the networks of the paper on FAST."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.formulas import fast
from fluidcc.laws import Source
from fluidcc.metrics import over_others
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.zoo.fast import ALPHA, GAP, METHODS, PACKET, RTT, START, WAIT, C, meeting
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import FAST
from fluidcc.sources.propagation import with_estimator

if TYPE_CHECKING:
    import xarray as xr

# Round-trip propagation delays of the curves of Fig. 3(a) [s].
RTTS = (0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.2)
FLOWS = (1, 2, 4, 8, 16)  # Numbers of existing flows of the curves of Fig. 3(b).


@cache
def ratio(method: str, n: int, rtt: float) -> float:
    """The newcomer's rate over the mean of the n others, 25 s after it paused or probed."""
    end = START + WAIT + 35
    net = meeting(METHODS[method], [rtt] * n, rtt)
    run = simulate(net, end, t_eval=np.arange(end - 10, end, 0.05), rtol=1e-6)
    return float(over_others(run.rate.mean("time"), -1))


def ratios(method: str, over: str) -> np.ndarray:
    """A curve of Fig. 3: `over` "rtt", with eight others, or over "n", at 100 ms."""
    cases = [(8, d) for d in RTTS] if over == "rtt" else [(n, RTT) for n in FLOWS]
    return np.array([ratio(method, *case) for case in cases])


@cache
def arrivals(method: str) -> xr.Dataset:
    """Five flows of Fig. 2 that start 20 s apart; with the estimator they probe after 10 s."""
    return scenarios["fast_fig2a"](method=method).simulate(rtol=1e-6)


def plateaus(method: str, last: float = 3.0) -> fast.Arrivals:
    """Mean queue [packet] and rates [packet/s] in the last seconds before each further arrival."""
    run = arrivals(method)
    ends = GAP * np.arange(1, 6)
    means = [run.sel(time=slice(end - last, end - 0.1)).mean("time") for end in ends]
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
    law = with_estimator(others)(wait=WAIT, theta=theta, rounds=rounds)
    net = meeting(law, rtts, rtt, others=others, newcomers=newcomers, apart=apart)
    at = START + WAIT
    r = simulate(net, at + 3, t_eval=np.arange(at - 0.01, at + 2.99, 1e-3), rtol=1e-7)
    # for the propagation delay
    taken = (r.rtt[:, -1] - r[f"{law.name}_delta"].values.reshape(len(r.time), -1)[:, -1]).values
    queue = r.queueing_delay.values[:, 0]
    met = len(rtts) * ALPHA / C
    longer = (rtt + queue[0]) / (min(rtts) + queue[0])
    return (taken[0] - taken[-1]) / met, rounds * longer, queue.min()
