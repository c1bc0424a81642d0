"""Flows that differ in nothing but their names: what is true of one is true of all, so that one
stands for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fluidcc.network.network import Network

__all__ = ["Collapsed", "apart", "collapsed", "identical", "in_pairs", "places"]

T = TypeVar("T")


@dataclass(frozen=True)
class Collapsed:
    """A network in which one flow stands for several that are identical, under the name of the
    first.
    """

    net: Network
    many: tuple[int, ...]  # by flow of `net`: how many it stands for
    place: Mapping[str, int]  # by flow of the whole network: the flow of `net` that stands for it
    where: NDArray[np.intp]  # the same, in the order of the whole network's flows


def _per_network(make: Callable[[Network], T]) -> Callable[[Network], T]:
    """Make a function of a network work its value out once, until a link or flow is added."""

    @wraps(make)
    def found(net: Network) -> T:
        return net.derived(make)

    return found


@_per_network
def identical(net: Network) -> tuple[tuple[str, ...], ...]:
    """Return the names of the flows of each kind: equal in law, route, on-periods, delays, packet,
    initial states and pattern.

    Kinds and their members are in the order of the network.
    """
    found: dict[Any, list[str]] = {}
    for name, f in net.flows.items():
        states = tuple(f.initial.items())
        delays = (f.access_delay, f.return_delay)
        kind = (f.law, f.route, f.intervals, delays, f.packet, states, f.pattern)
        found.setdefault(kind, []).append(name)
    return tuple(map(tuple, found.values()))


@_per_network
def collapsed(net: Network) -> Collapsed:
    """Return the network with one flow of each kind; the same object where no two flows are
    identical.
    """
    return _one_for(net, identical(net))


@_per_network
def in_pairs(net: Network) -> Collapsed:
    """Return the network with one flow of each kind by itself, and another one for the rest of
    them.

    Whatever identical flows can do to differ, two of them can.
    """
    parts = (part for names in identical(net) for part in (names[:1], names[1:]))
    return _one_for(net, tuple(part for part in parts if part))


def apart(net: Network) -> Collapsed:
    """Return the network itself, every flow for itself."""
    return Collapsed(net, (1,) * len(net.flows), places(net), np.arange(len(net.flows)))


@_per_network
def places(net: Network) -> Mapping[str, int]:
    """Return the place of every flow among the network's, by name."""
    return {name: k for k, name in enumerate(net.flows)}


def _one_for(net: Network, groups: tuple[tuple[str, ...], ...]) -> Collapsed:
    group = {name: i for i, names in enumerate(groups) for name in names}
    place = {name: group[name] for name in net.flows}
    where = np.array(list(place.values()), np.intp)
    alone = len(groups) == len(net.flows)
    few = net if alone else net.only([names[0] for names in groups])
    return Collapsed(few, tuple(map(len, groups)), place, where)
