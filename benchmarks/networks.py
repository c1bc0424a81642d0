"""The reference cases and the scaling series as fluidcc networks."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidcc as fc
from benchmarks.reference.problem import Case

__all__ = ["as_network", "crowd", "delays", "error"]


def as_network(case: Case) -> fc.Network:
    """The network of a reference case; simulate it with ``delays=delays(case)``."""
    law = fc.LDCC(w=case.w, beta=case.beta, T=case.T, eta=case.eta)
    net = fc.Network()
    for i, link in enumerate(case.links):
        buffer = None if np.isinf(link.q_max) else link.q_max * link.capacity
        net.link(f"l{i}", fc.DropTail, capacity=link.capacity, delay=link.delay, buffer=buffer)
    for i, flow in enumerate(case.flows):
        route = [f"l{j}" for j in flow.route]
        net.flow(
            f"f{i}", law, route=route, return_delay=flow.return_delay, initial={"x": flow.rate}
        )
    return net


def delays(case: Case) -> str:
    """The ``delays`` argument of `fluidcc.simulate` that the case means."""
    return "fifo" if case.fifo else "frozen"


def crowd(flows: int, *, differ: str = "return_delay", seed: int = 0) -> fc.Network:
    """LDCC flows with as many different feedback lags on one link that gives each 1 Mbit/s.

    With ``differ="access_delay"`` they also reach the queue at different times, so that the kink of
    each start is a time of its own.
    """
    random = np.random.default_rng(seed)
    net = fc.Network().link("l", fc.DropTail, capacity=1e6 * flows, delay=0.025)
    delay, rates = random.uniform(0.02, 0.07, flows), random.uniform(0.1e6, 0.9e6, flows)
    for i in range(flows):
        net.flow(
            f"f{i}",
            fc.LDCC,
            route=["l"],
            initial={"x": float(rates[i])},
            **{differ: float(delay[i])},
        )
    return net


def error(dataset: Any, reference: Any) -> float:
    """Largest error of rates and queueing delays over the samples, each relative to its largest
    value.
    """
    rate = dataset["rate"].transpose("flow", "time").to_numpy()
    queue = dataset["queueing_delay"].transpose("link", "time").to_numpy()
    return relative(np.vstack([rate, queue]), reference)


def relative(got: Any, reference: Any) -> float:
    """`error` of rows of samples: the rates, then the queues."""
    wanted = np.vstack([reference["rate"], reference["queue"]])
    return float(np.max(np.abs(got - wanted) / np.max(np.abs(wanted), axis=1, keepdims=True)))
