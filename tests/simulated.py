"""Networks that several suites on `simulate` run."""

import math
from pathlib import Path
from typing import Any

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
        route, initial = [f"l{i}" for i in f.route], {"x": f.rate}
        net.flow(f"f{k}", law, route=route, return_delay=f.return_delay, initial=initial)
    return net


def one_link(capacity: Any = 3e6, delay: float = 0.025, buffer: Any = None) -> Network:
    return Network().link("l", DropTail, capacity=capacity, delay=delay, buffer=buffer)
