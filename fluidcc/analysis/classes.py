"""Flows by class: those that are identical and stand alike at an equilibrium are linearised once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fluidcc.assembly import constant_rate, is_on
from fluidcc.errors import InvalidInput
from fluidcc.identical import identical

if TYPE_CHECKING:
    from fluidcc.equilibrium import Equilibrium
    from fluidcc.network import FlowSpec, Network

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
    links, place = ({name: i for i, name in enumerate(names)} for names in (net.links, net.flows))
    found: dict[Any, list[list[str]]] = {}
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
        for names in _at_one_rest(kind, rest):
            there = next((n for n in same if _close(rest.states[n[0]], rest.states[names[0]])), None)
            if there is None:
                same.append(names)
            else:
                there += names
    if not found:
        raise InvalidInput(
            "no flow of the network listens (all are off or send at constant rates), so there is nothing to linearise; "
            "add a flow with a law such as fluidcc.LDCC"
        )
    chosen = [sorted(names, key=place.__getitem__) for same in found.values() for names in same]
    chosen.sort(key=lambda names: place[names[0]])
    classes = [FlowClass(tuple(n), net.flows[n[0]], tuple(links[l] for l in net.flows[n[0]].route)) for n in chosen]
    return tuple(classes), [place[n[0]] for n in chosen], tuple(sorted(constant, key=lambda sent: sent[-1]))


def _at_one_rest(kind: tuple[str, ...], rest: Equilibrium) -> list[list[str]]:
    """Identical flows in groups whose states are equal: one, unless the equilibrium was given and tells them apart."""
    groups: list[list[str]] = []
    for name in kind:
        here = rest.states[name]
        if groups and rest.states[groups[-1][0]] == here:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _close(there: Mapping[str, float], here: Mapping[str, float]) -> bool:
    return all(math.isclose(there[z], here[z], rel_tol=1e-7, abs_tol=1e-12) for z in here)
