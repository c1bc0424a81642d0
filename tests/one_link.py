"""Flows over one link by Euler's method, apart from the engine: good to three digits.

Laws are evaluated as they stand; of the network there is a FIFO queue, and what is acknowledged
when. The error goes with the step, unevenly, as delays of flows are no multiples of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, lambdify

from fluidcc.network import Network
from fluidcc.symbols import e, e_b, edot, packet, unfold, x_tau

Array = NDArray[np.float64]


@dataclass
class _Flow:
    """A flow, with what it has sent and what it knows."""

    base: float  # round trip of the empty path [s]
    back: float  # of it the way back [s]
    access: int  # steps to the link
    begin: int
    evaluate: Any
    lower: list[float]
    states: list[float]
    rates: list[float] = field(default_factory=list)
    heard: int = 0  # the step whose data are acknowledged now


def _made(net: Network, name: str, step: float) -> _Flow:
    spec = net.flows[name]
    law, size = spec.law, float(spec.packet)
    known = {**law.params, packet: size, e_b: net.return_delay(name)}

    def plain(f: Any) -> Expr:
        return unfold(f).subs(known)

    forms = [plain(law.out["rate"]), *(plain(f) for f in law.flow.values())]
    step_function = {"Heaviside": lambda v, at_zero=0.5: at_zero if v == 0 else float(v > 0)}
    evaluate = lambdify(
        (list(law.states), e, x_tau, edot), forms, modules=[step_function, "math"], cse=True
    )
    lower = [float(law.lower[z]) if z in law.lower else -math.inf for z in law.states]
    initial = [float(law.initial.get(z, 0.0)) for z in law.states]
    access, begin = (round(v / step) for v in (spec.access_delay, spec.intervals[0][0]))
    assert not law.jumps
    trip, back = net.base_rtt(name), net.return_delay(name)
    return _Flow(trip, back, access, begin, evaluate, lower, initial)


def _run(net: Network, until: float, step: float) -> tuple[Array, Array]:
    """What has arrived at the link by each step, and what of it was lost [bit]."""
    (link,) = net.links.values()
    flows = [_made(net, name, step) for name in net.flows]
    capacity, room, n = float(link.capacity), float(link.buffer), round(until / step)
    queue, arrived, lost = [0.0], [0.0], [0.0]
    waits = [0.0]  # queueing delay at each step

    def acknowledged(flow: _Flow, k: int) -> float:
        """When what is sent at step k is known to have arrived, in steps."""
        return k + (flow.base + waits[k + flow.access]) / step

    for now in range(n):
        for flow in flows:
            if now < flow.begin:
                flow.rates.append(0.0)
                continue
            last = flow.heard
            while last + 1 + flow.access < len(waits) and acknowledged(flow, last + 1) <= now:
                last += 1
            flow.heard = last
            trip, old, bent = flow.base, 0.0, 0.0  # until something has come back
            if now * step > flow.base and acknowledged(flow, last) <= now:
                here, there = acknowledged(flow, last), acknowledged(flow, last + 1)
                part = min((now - here) / (there - here), 1.0)
                trip, old, bent = (now - last - part) * step, flow.rates[last], there - here - 1.0
            rate, *slopes = flow.evaluate(flow.states, trip - flow.back, old, bent)
            flow.rates.append(max(rate, 0.0))
            flow.states = [
                max(z + step * f, least)
                for z, f, least in zip(flow.states, slopes, flow.lower, strict=True)
            ]
        coming = sum(flow.rates[now - flow.access] for flow in flows if now >= flow.access)
        level = max(queue[-1] + step * (coming - capacity), 0.0)
        lost.append(lost[-1] + max(level - room, 0.0))
        queue.append(min(level, room))
        waits.append(queue[-1] / capacity)
        arrived.append(arrived[-1] + step * coming)
    return np.array(arrived), np.array(lost)


def one_link(net: Network, times: Array, step: float) -> dict[str, Array]:
    """What has arrived and what was lost on the link of `net` by `times` [bit]."""
    found = _run(net, float(times[-1]), step)
    return {
        name: np.interp(times, step * np.arange(len(column)), column)
        for name, column in zip(("entered", "lost"), found, strict=True)
    }
