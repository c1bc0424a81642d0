"""Symbols, numbers, runs and networks that the claims of the LDCC paper share."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linearize import linearize
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.equilibria.result import Equilibrium
from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC
from fluidcc.symbols import plain

if TYPE_CHECKING:
    import xarray as xr

_named = {plain(s): s for s in (*LDCC.states, *LDCC.params)}
x, w, beta, T, eta = (_named[name] for name in ("x", "w", "beta", "T", "eta"))

W_OVER_BETA = LDCC.parameter("w") / LDCC.parameter("beta")
"""w/beta of Section V: 200 kbit/s."""
_DELAYS = (25, 25, 25, 25), (25, 30, 40, 50), (25, 40, 60, 75), (25, 75, 75, 75), (25, 25, 25, 75)
FAIR_DELAYS = {
    ", ".join(map(str, delays)) + " ms": tuple(delay / 1000 for delay in delays)
    for delays in _DELAYS
}
"""Propagation delays for Figs. 7 and 8: the paper's are lost; its other figures have 25 ms."""
THREEFOLD = tuple(FAIR_DELAYS)[2:]
"""Those whose longest is three times the shortest."""


def near(a: Any, b: Any, rtol: float = 1e-6) -> bool:
    """Whether two numbers or arrays agree, relative to the largest."""
    b = np.asarray(b)
    return bool(np.max(np.abs(np.asarray(a) - b)) <= rtol * np.max(np.abs(b)))


@cache
def run(name: str, delays: str = "fifo") -> xr.Dataset:
    """A ready scenario in time; computed once a process, as several claims and figures look at it.

    Frozen delays are those of the equilibrium with every flow on, at 200 s in the scenarios of the
    paper.
    """
    s = scenarios[name]
    options: dict[str, Any] = {"samples": s.samples, "seed": s.seed}
    if delays == "frozen":
        held = equilibrium_of(name).queueing_delay.to_series()
        options |= {"delays": delays, "frozen_at": {str(k): float(v) for k, v in held.items()}}
    return simulate(s.net, s.until, **options)


def equilibrium_of(name: str, time: float = 200.0) -> Equilibrium:
    """The equilibrium of a ready scenario with the flows that are on at a time [s]."""
    return equilibrium(scenarios[name].net, at=time)


def at_time(name: str, time: float) -> xr.Dataset:
    """The sample of that run nearest to a time [s]."""
    return run(name).sel(time=time, method="nearest")


# --- Networks and a law beside the ready scenarios


def four_flows(
    delays: tuple[float, ...],
    capacity: float,
    *,
    source: Source = LDCC,
    longest_queue: float | None = 0.5,
) -> Network:
    """The network of Figs. 7 and 8: flows of these propagation delays [s] on one link, the buffer
    given as a delay."""
    buffer = longest_queue and longest_queue * capacity
    flows = [{"law": source, "access_delay": p} for p in delays]
    return dumbbell(flows, {"capacity": capacity, "buffer": buffer})


def with_law(net: Network, law: Source) -> Network:
    """Return the network with this law in place of that of its three LDCC flows."""
    for name in ("flow1", "flow2", "flow3"):
        net = net.with_flow(name, law=law)
    return net


def alone(*laws: Any, capacity: float = 3e6, buffer: float | None = None) -> Network:
    """Flows of these laws on one link, 25 ms there and 25 ms back."""
    return dumbbell(laws, {"capacity": capacity, "delay": 0.025, "buffer": buffer})


def series(first: float, second: float, rate: float, start: float = -math.inf) -> Network:
    """A constant flow through two links of these capacities [bit/s], 10 ms each."""
    net = Network().link("link1", DropTail, capacity=first, delay=0.01)
    net.link("link2", DropTail, capacity=second, delay=0.01)
    return net.flow("flow", CBR(rate=rate), route=["link1", "link2"], start=start)


def unstable(net: Network, delays: str = "fifo", at: float | Equilibrium = math.inf) -> int:
    """How many characteristic roots of the network lie right of the axis."""
    return linearize(net, delays=delays, at=at).count_unstable().unstable
