"""Networks that several suites on `simulate` run."""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.reference.problem import Case
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.sources import LDCC

DATA = Path(__file__).parent / "data"
MBIT = 1e6


def network(case: Case) -> Network:
    net = Network()
    for k, link in enumerate(case.links):
        buffer = None if math.isinf(link.q_max) else link.q_max * link.capacity
        net.link(f"l{k}", DropTail, capacity=link.capacity, delay=link.delay, buffer=buffer)
    law = LDCC(w=case.w, beta=case.beta, T=case.T, eta=case.eta)
    for k, f in enumerate(case.flows):
        net.flow(
            f"f{k}",
            law,
            route=[f"l{i}" for i in f.route],
            return_delay=f.return_delay,
            initial={"x": f.rate},
        )
    return net


def one_link(
    capacity: object = 3e6, delay: float = 0.025, buffer: object = None, **initial: float
) -> Network:
    return Network().link(
        "l", DropTail, capacity=capacity, delay=delay, buffer=buffer, initial=initial or None
    )
