"""Networks at rest, and every condition that an equilibrium meets."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from sympy import lambdify

import fluidcc as fc
from fluidcc import symbols as sy

W, BETA, T = 20e3, 0.1, 0.1  # LDCC's defaults, of Section V


def bottleneck(capacity: float = 2e6, **link: Any) -> fc.Network:
    return fc.Network().link(
        "l", **{"law": fc.DropTail, "capacity": capacity, "delay": 0.025, **link}
    )


def with_flows(
    net: fc.Network, n: int, law: Any, route: tuple[str, ...] = ("l",), **place: Any
) -> fc.Network:
    for k in range(n):
        net.flow(f"{law.name}{k}", law, route=list(route), **place)
    return net


@lru_cache
def drift_functions(law: Any, symbols: Any) -> Any:
    """A law's flows, and the terms s df/ds that they balance, by symbol."""
    flows = [sy.unfold(f) for f in law.flow.values()]
    return lambdify(symbols, flows), lambdify(
        symbols, [[f.diff(s) * s for s in symbols] for f in flows]
    )


def relative_drift(net: fc.Network, eq: Any, name: str) -> np.ndarray:
    """The law's flows at the result, over the sum of the sizes of what they balance."""
    spec = net.flows[name]
    law = spec.law
    values = {
        sy.e: eq.one_way_delay.sel(flow=name),
        sy.edot: 0.0,
        sy.pi: eq.lost_or_marked(name),
        sy.price: sum(float(eq.price.sel(link=l)) for l in spec.route),
        sy.x_tau: eq.rate.sel(flow=name),
        sy.e_b: net.return_delay(name),
        sy.packet: spec.packet,
        sy.t: 0.0,
        **law.params,
    }
    values |= {z: eq.states[name][sy.plain(z)] for z in law.states}
    flows, terms = drift_functions(law, tuple(values))
    point = [float(v) for v in values.values()]
    sizes = [sum(map(abs, row)) for row in terms(*point)]
    return np.array(flows(*point)) / sizes


def check(net: fc.Network, eq: Any, tolerance: float = 1e-9) -> None:
    """Every condition of an equilibrium, evaluated link by link and flow by flow."""
    passed = {f: float(eq.rate.sel(flow=f)) for f in net.flows}
    arrivals = dict.fromkeys(net.links, 0.0)
    kept = dict.fromkeys(net.flows, 1.0)
    loss = {}
    for name, link in net.links.items():
        q, y = (float(v.sel(link=name)) for v in (eq.queueing_delay, eq.arrival_rate))
        c, full = link.capacity, bool(eq.full.sel(link=name))
        longest = link.buffer / c
        loss[name] = 1 - c / y if full else 0.0
        assert 0 <= q <= longest
        assert loss[name] >= -tolerance
        assert (q == longest) == full
        assert y * (1 - loss[name]) <= c * (1 + tolerance)
        if q > 0:
            assert y * (1 - loss[name]) == pytest.approx(c, rel=tolerance)
            assert bool(eq.saturated.sel(link=name))
    for f, flow in net.flows.items():
        for name in flow.route:
            arrivals[name] += passed[f]
            passed[f] *= 1 - loss[name]
            kept[f] *= 1 - loss[name]
        queued = sum(float(eq.queueing_delay.sel(link=l)) for l in flow.route)
        delay = net.propagation_delay(f) + queued
        assert float(eq.one_way_delay.sel(flow=f)) == pytest.approx(delay, rel=1e-12)
        assert float(eq.rtt.sel(flow=f)) == pytest.approx(delay + net.return_delay(f), rel=1e-12)
        assert float(eq.loss.sel(flow=f)) == pytest.approx(1 - kept[f], rel=1e-6, abs=tolerance)
        for z, drift in zip(flow.law.states, relative_drift(net, eq, f), strict=True):
            at_bound = z in flow.law.lower and eq.states[f][sy.plain(z)] == float(flow.law.lower[z])
            assert drift <= 1e-12 if at_bound else abs(drift) <= 1e-12
    for name, y in arrivals.items():
        near = pytest.approx(y, rel=tolerance, abs=tolerance)
        assert float(eq.arrival_rate.sel(link=name)) == near
