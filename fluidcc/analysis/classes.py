"""Flows by class: those that are identical and stand alike at an equilibrium are linearised once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fluidcc.base.errors import InvalidInput
from fluidcc.equilibria.assembly import constant_rate, is_on
from fluidcc.network.flow_classes import collapsed, identical, places

if TYPE_CHECKING:
    from fluidcc.equilibria.equilibrium import Equilibrium
    from fluidcc.network.network import FlowSpec, Network

__all__ = ["FlowClass", "classes_of"]


@dataclass(frozen=True)
class FlowClass:
    """Identical flows: same law, route, delays, packet and equilibrium."""

    names: tuple[str, ...]
    spec: FlowSpec
    route: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many flows it has."""
        return len(self.names)

    @property
    def label(self) -> str:
        """The flow's name, or that of the first and how many there are."""
        return self.names[0] if self.count == 1 else f"{self.names[0]} (x{self.count})"


def classes_of(net: Network, at: float, rest: Equilibrium) -> tuple[tuple[FlowClass, ...], list[int], tuple[Any, ...]]:
    """The classes of flows in order, the place of the first flow of each, and the flows of constant rate."""
    links, place = {name: i for i, name in enumerate(net.links)}, places(net)
    found: dict[Any, list[tuple[str, ...]]] = {}
    constant: list[Any] = []
    for kind in identical(net):
        flow = net.flows[kind[0]]
        if not is_on(flow, at):
            continue
        rate = constant_rate(flow, at)
        if rate is not None:
            constant += [(tuple(links[l] for l in flow.route), rate, place[name]) for name in kind]
            continue
        key = (flow.law, flow.route, flow.access_delay, net.return_delay(flow.name), flow.packet)
        same = found.setdefault(key, [])
        for names in _at_one_rest(kind, rest, net):
            there = next((i for i, n in enumerate(same) if _close(rest.states[n[0]], rest.states[names[0]])), None)
            if there is None:
                same.append(names)
            else:
                same[there] = tuple(sorted(same[there] + names, key=place.__getitem__))
    if not found:
        raise InvalidInput(
            "no flow of the network listens (all are off or send at constant rates), so there is nothing to linearise; "
            "add a flow with a law such as fluidcc.LDCC"
        )
    chosen = sorted((names for same in found.values() for names in same), key=lambda names: place[names[0]])
    classes = [FlowClass(n, net.flows[n[0]], tuple(links[l] for l in net.flows[n[0]].route)) for n in chosen]
    return tuple(classes), [place[n[0]] for n in chosen], tuple(sorted(constant, key=lambda sent: sent[-1]))


def _at_one_rest(kind: tuple[str, ...], rest: Equilibrium, net: Network) -> list[tuple[str, ...]]:
    """Identical flows in groups whose states are equal: one, unless the equilibrium was given and tells them apart."""
    if getattr(rest.states, "place", None) is collapsed(net).place:
        return [kind]
    runs = groupby(kind, key=lambda name: dict(rest.states[name]))
    return [tuple(names) for _, names in runs]


def _close(there: Mapping[str, float], here: Mapping[str, float]) -> bool:
    return all(math.isclose(there[z], here[z], rel_tol=1e-7, abs_tol=1e-12) for z in here)
