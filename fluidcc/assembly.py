"""A network at one time as arrays and functions of arrays, for its steady state."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Float

from fluidcc.derive.steady import Structure, bounds, grouped, link_function, source_function
from fluidcc.errors import Unsupported
from fluidcc.patterns import Modulated
from fluidcc.symbols import c, e_b, packet, plain, q_max, unfold

if TYPE_CHECKING:
    from fluidcc.network import FlowSpec, LinkSpec, Network
    from fluidcc.numerics.steady import FlowGroup, LinkGroup, SteadyNetwork

__all__ = ["assemble", "capacity_at", "constant_rate", "fair_share", "is_on"]


def is_on(flow: FlowSpec, at: float) -> bool:
    """Whether the flow sends at time `at` [s] (infinity: after every change)."""
    return any(start <= at < stop or (math.isinf(at) and at > 0 and math.isinf(stop)) for start, stop in flow.intervals)


def capacity_at(link: LinkSpec, at: float) -> float:
    """Capacity [bit/s] of the link at time `at` [s]."""
    value = link.capacity
    for time, capacity in link.schedule:
        if time <= at:
            value = capacity
    return float(value)


def constant_rate(flow: FlowSpec, at: float) -> float | None:
    """The rate [bit/s] of a flow that sends at a constant one; None if its law decides."""
    law = flow.law
    if isinstance(flow.pattern, Modulated):
        raise Unsupported(
            f"flow {flow.name!r} sends at random ({flow.pattern.kind}), so it has no rest: simulate it, "
            "or put fluidcc.CBR at its mean rate in its place"
        )
    if flow.pattern is not None:
        past = [rate for time, rate in flow.pattern if time <= at]
        return float(past[-1]) if past else 0.0
    if law.states or law.utility is not None:
        return None
    rate = unfold(law.out["rate"])
    if rate.free_symbols - {*law.params, packet}:
        return None
    return float(rate.xreplace({**law.params, packet: Float(flow.packet)}))


def _stack(entries: Any, n: int) -> Any:
    rows = np.empty((len(entries), n))
    for row, f in zip(rows, entries, strict=True):
        row[:] = f
    return rows


def _parameters(laws: list[Any]) -> list[Any]:
    """One array a parameter, over laws of the same structure."""
    return [np.array([float(v) for v in column]) for column in zip(*(f.params.values() for f in laws), strict=True)]


def _flow_group(flows: list[FlowSpec], net: Network, structure: Structure, index: list[int]) -> FlowGroup:
    from fluidcc.numerics.steady import FlowGroup

    chosen = [flows[i] for i in index]
    states = structure.law.states
    n, k = len(chosen), len(states)
    back = np.array([net.return_delay(f.name) for f in chosen])
    size = np.array([f.packet for f in chosen])
    params = _parameters([f.law for f in chosen])
    function = source_function(structure)
    ends = np.cumsum([k, 1, k * k, 4 * k, k, 4]).tolist()

    def evaluate(z: Any, signals: Any) -> Any:
        rows = _stack(function(*z, *signals, 0.0, back, size, *params), n)
        F, H, A, B, C, D = (rows[a:b] for a, b in pairwise((0, *ends)))
        return F, H[0], A.reshape(k, k, n), B.reshape(k, 4, n), C, D

    constants = [{e_b: b, packet: s} for b, s in zip(back, size, strict=True)]
    initial = np.array([[f.initial[plain(z)] for f in chosen] for z in states]).reshape(k, n)
    laws = [f.law for f in chosen]
    ends_of = [bounds(laws, states, side, constants) for side in ("lower", "upper")]
    return FlowGroup(np.array(index), evaluate, initial, *ends_of)


def _link_group(net: Network, capacity: Any, longest: Any, structure: Structure, index: list[int]) -> LinkGroup:
    from fluidcc.numerics.steady import LinkGroup

    chosen = [list(net.links.values())[i] for i in index]
    others = [z for z in structure.law.states if z != getattr(structure.law, "queue", None)]
    n, k = len(chosen), len(others)
    params = _parameters([s.law for s in chosen])
    function = link_function(structure)

    def evaluate(v: Any) -> Any:
        rows = _stack(function(*v, capacity[index], longest[index], *params), n)
        return rows[: k + 2], rows[k + 2 :].reshape(k + 2, k + 2, n)

    constants = [{c: capacity[i], q_max: longest[i]} for i in index]
    initial = np.array([[s.initial[plain(z)] for s in chosen] for z in others]).reshape(k, n)
    laws = [s.law for s in chosen]
    ends_of = [bounds(laws, others, side, constants) for side in ("lower", "upper")]
    return LinkGroup(np.array(index), evaluate, initial, *ends_of)


def _constant_group(rate: Any, index: list[int]) -> FlowGroup:
    """Flows that are off, or send at a constant rate."""
    from fluidcc.numerics.steady import FlowGroup

    n, none = len(index), np.zeros((0, len(index)))

    def evaluate(z: Any, signals: Any) -> Any:
        return none, rate, np.zeros((0, 0, n)), np.zeros((0, 4, n)), none, np.zeros((4, n))

    return FlowGroup(np.array(index, dtype=int), evaluate, none, none, none)


def assemble(net: Network, at: float) -> SteadyNetwork:
    """The network at one time, as arrays and functions of arrays."""
    from fluidcc.numerics.steady import SteadyNetwork

    flows, links = list(net.flows.values()), list(net.links.values())
    place = {name: l for l, name in enumerate(net.links)}
    route = np.full((len(flows), max((len(f.route) for f in flows), default=1)), -1)
    for i, flow in enumerate(flows):
        route[i, : len(flow.route)] = [place[name] for name in flow.route]
    capacity = np.array([capacity_at(link, at) for link in links])
    longest = np.array([link.buffer for link in links]) / capacity
    rates = {i: constant_rate(f, at) if is_on(f, at) else 0.0 for i, f in enumerate(flows)}
    fixed = [i for i, rate in rates.items() if rate is not None]
    groups = [_constant_group(np.array([rates[i] for i in fixed], float), fixed)] if fixed else []
    adaptive = [i for i, rate in rates.items() if rate is None]
    for structure, index in grouped([flows[i].law for i in adaptive]):
        groups.append(_flow_group(flows, net, structure, [adaptive[j] for j in index]))
    return SteadyNetwork(
        route,
        np.array([net.propagation_delay(f.name) for f in flows]),
        capacity,
        longest,
        np.array([link.law.queue is not None for link in links]),
        groups,
        [_link_group(net, capacity, longest, *g) for g in grouped([link.law for link in links])],
    )


def fair_share(system: SteadyNetwork, net: Network) -> Any:
    """Rates to start from [bit/s]: an equal share of the scarcest link, for states that are rates too."""
    crossing = np.zeros(len(system.c))
    np.add.at(crossing, system.at[system.inside], 1.0)
    share = np.where(system.inside, (system.c / np.maximum(crossing, 1.0))[system.at], np.inf).min(axis=1)
    for g, block in zip(system.flows, system.Z, strict=True):
        if not block.size:
            share[g.index] = g.evaluate(g.initial, np.zeros((4, len(g.index))))[1]
            continue
        law = list(net.flows.values())[g.index[0]].law
        for k, z in enumerate(law.states):
            if law.out["rate"] == z:
                g.initial[k] = share[g.index]
    return share
