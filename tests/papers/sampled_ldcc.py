"""The sampled law (25) of LDCC on queues with frozen delays, as a held loop: between ticks
everything is an integral of rates that are constant, so that its map is exact, whatever the delays
and periods are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fluidcc as fc
from fluidcc.analysis.operating import operating_point
from fluidcc.analysis.wiring import HEARD, sources
from fluidcc.conditions.local import local_loop
from fluidcc.laws.sampled import standing
from fluidcc.network.parameters import evaluated
from fluidcc.papers.held import HeldLoop, Measurement, Path
from fluidcc.symbols import e, edot


def held_ldcc(net: fc.Network, period: float | None = None) -> NDArray[np.complex128]:
    """The multipliers of a network of LDCC at that period, or of its sampled law at its own ones,
    by falling modulus.
    """
    net, own = _continuous(net)
    point = operating_point(net)
    periods = own if period is None else dict.fromkeys(net.flows, period)
    held, differences = _loop(point, local_loop(point), sources(point), periods)
    every = np.concatenate((held.multipliers, differences))
    return every[np.argsort(-np.abs(every), kind="stable")]


def _continuous(net: fc.Network) -> tuple[fc.Network, dict[str, float]]:
    """The network with sampled sources as if they ran all the time, whose periods are told by
    flow.
    """
    ticks = {}
    for name, flow in net.flows.items():
        if flow.law.ticks:
            (tick,) = flow.law.ticks
            ticks[name] = float(evaluated(tick.every, flow.law.params))
            law = standing(flow.law, f"flow {name!r}")
            net = net.with_flow(name, law=law, initial=None)
    return net, ticks


def _loop(
    point: Any, loop: Any, laws: list[Any], periods: dict[str, float]
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
