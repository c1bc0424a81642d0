"""Networks and a law that the claims of the LDCC paper need beside the ready scenarios."""

from __future__ import annotations

import math

from sympy import log, symbols

from fluidcc.analysis.linearize import linearize
from fluidcc.equilibria.equilibrium import Equilibrium
from fluidcc.laws import Link, Source, marginal
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.sources import CBR, LDCC
from fluidcc.symbols import e

__all__ = ["RATE", "WEIGHT", "QueueingDelay", "four_flows", "parking", "series", "unstable"]

RATE, WEIGHT = symbols("x w", positive=True)
_gain, _known = symbols("alpha p", positive=True)

# x' = alpha (U'(x) - (e - p)): the source of Section II-C that has estimated its queueing delay; U' is in seconds.
QueueingDelay = Source(
    name="QueueingDelay",
    flow={RATE: _gain * (marginal(WEIGHT * log(RATE), RATE) - (e - _known))},
    out={"rate": RATE},
    params={WEIGHT: 50e3, _gain: 2e6, _known: 0.025},
    units={RATE: "bit/s", WEIGHT: "bit", _gain: "bit/s^3", _known: "s"},
    lower={RATE: 0},
    initial={RATE: WEIGHT / _known / 10},
    utility=WEIGHT * log(RATE),
    ref="LDCC, Section II-C",
)


def parking(source: Source, link: Link, capacities: tuple[float, float] = (2e6, 3e6), **params: float) -> Network:
    """A long flow over two links and a flow on each; `params` of the long flow."""
    net = Network().link("link1", link, capacity=capacities[0], delay=0.0125)
    net.link("link2", link, capacity=capacities[1], delay=0.0125)
    net.flow("long", source(**params), route=["link1", "link2"])
    return net.flow("a", source, route=["link1"], access_delay=0.0125).flow(
        "b", source, route=["link2"], access_delay=0.0125
    )


def four_flows(
    delays: tuple[float, ...], capacity: float, *, source: Source = LDCC, longest_queue: float | None = 0.5
) -> Network:
    """The network of Figs. 7 and 8: flows of these propagation delays [s] on one link, the buffer given as a delay."""
    buffer = None if longest_queue is None else longest_queue * capacity
    net = Network().link("bottleneck", DropTail, capacity=capacity, buffer=buffer)
    for i, p in enumerate(delays, 1):
        net.flow(f"flow{i}", source, route=["bottleneck"], access_delay=p)
    return net


def series(first: float, second: float, rate: float, start: float = -math.inf) -> Network:
    """A constant flow through two links of these capacities [bit/s], 10 ms each."""
    net = Network().link("link1", DropTail, capacity=first, delay=0.01)
    net.link("link2", DropTail, capacity=second, delay=0.01)
    return net.flow("flow", CBR(rate=rate), route=["link1", "link2"], start=start)


def unstable(net: Network, delays: str = "fifo", at: float | Equilibrium = math.inf) -> int:
    """How many characteristic roots of the network lie right of the axis."""
    return linearize(net, delays=delays, at=at).count_unstable().unstable
