"""The table of a network that all solvers read: at one time, at one point or at many.

Flows that nothing tells apart are one row, links are one each, and both are known by their numbers
instead of by their names. What laws know there is worked out once, as a number or as an array of
the points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc.base.arguments import number
from fluidcc.base.errors import Unsupported
from fluidcc.base.units import to_si
from fluidcc.laws import Law
from fluidcc.laws.early_loss import sparing
from fluidcc.laws.steady import levels, trackers
from fluidcc.network.network import Network, identical
from fluidcc.network.parameters import Parameters, evaluated
from fluidcc.network.patterns import Modulated
from fluidcc.network.specs import FlowSpec, LinkSpec
from fluidcc.symbols import c, e_b, packet, plain, q_max, symbols_of

Kinds = tuple[tuple[str, ...], ...]


class Wired:
    """A network at one time.

    Parameters
    ----------
    given : Parameters
        The network, and its numbers that are set otherwise, at one or more points.
    at : float
        Time [s].
    kinds : tuple of tuple of str, optional
        Names of the flows of each row; by default identical ones together.

    Attributes
    ----------
    flows, links : tuple of FlowSpec, LinkSpec
        Of each row its first flow, and the links: one that marks, and that flows without ECN alone
        cross, has the law that drops in place of that.
    routes : tuple of tuple of int
        The links of each row.
    mixed : tuple of bool
        Which links mark some of their flows, and drop of others, without ECN, before the queue.
    """

    def __init__(self, given: Parameters, at: float = math.inf, kinds: Kinds | None = None) -> None:
        net = given.net
        self.given, self.net, self.at = given, net, at
        self.kinds = self._kinds() if kinds is None else kinds
        self.flows: tuple[FlowSpec, ...] = tuple(net.flows[names[0]] for names in self.kinds)
        able = _by_ecn(net)
        for (n, link), some in zip(net.links.items(), able, strict=True):
            if False in some and link.stamp == "departure":
                raise Unsupported(
                    f"link {n!r} marks at departure, where it cannot drop of flows with ecn=False: "
                    "give the link stamp='arrival', or its flows ecn=True"
                )
        self.mixed = tuple(len(some) == 2 for some in able)
        self.links: tuple[LinkSpec, ...] = tuple(
            replace(link, law=sparing(link.law, False, f"link {n!r}")) if some == {False} else link
            for (n, link), some in zip(net.links.items(), able, strict=True)
        )
        place = {name: l for l, name in enumerate(net.links)}
        self.routes = tuple(tuple(place[name] for name in f.route) for f in self.flows)
        self._known: dict[Any, dict[Symbol, Any]] = {}

    @classmethod
    def of(cls, net: Network, at: float = math.inf) -> Wired:
        """Return the table of a network with its own numbers, made once."""
        return net.derived(_table, at)

    # --- rows -------------------------------------------------------------------------------------

    @property
    def points(self) -> int:
        """How many points there are."""
        return self.given.points

    @property
    def many(self) -> tuple[int, ...]:
        """Number of flows of each row."""
        return tuple(map(len, self.kinds))

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of every flow among the network's, by name."""
        return {name: k for k, name in enumerate(self.net.flows)}

    @cached_property
    def row(self) -> NDArray[np.intp]:
        """The row of every flow of the network."""
        row = {name: k for k, names in enumerate(self.kinds) for name in names}
        return np.array([row[name] for name in self.net.flows], np.intp)

    def _kinds(self) -> Kinds:
        """Identical flows, apart where something is set of some of them only."""
        told: dict[str, list[Any]] = {}
        for (kind, name, *key), values in self.given.set.items():
            if kind == "flow":
                told.setdefault(name, []).append((*key, np.asarray(values).tobytes()))
        same = identical(self.net)
        return self.parted(same, lambda name: tuple(told.get(name, ()))) if told else same

    def parted(self, kinds: Kinds, tell: Callable[[str], Hashable]) -> Kinds:
        """Return kinds of flows split by a key of each flow, in the order of the network."""
        found: list[tuple[str, ...]] = []
        for names in kinds:
            parts: dict[Hashable, list[str]] = {}
            for name in names:
                parts.setdefault(tell(name), []).append(name)
            found += map(tuple, parts.values())
        return tuple(sorted(found, key=lambda names: self.place[names[0]]))

    def apart(self) -> Wired:
        """The table with a row for every flow."""
        return Wired(self.given, self.at, tuple((name,) for name in self.net.flows))

    def in_pairs(self) -> Wired:
        """The table with two rows for flows of a kind, one for the first of them: whatever
        identical flows can do to differ, two of them can.
        """
        halves = (half for names in self.kinds for half in (names[:1], names[1:]))
        return Wired(self.given, self.at, tuple(half for half in halves if half))

    # --- numbers ----------------------------------------------------------------------------------

    def array(self, values: Iterable[Any]) -> NDArray[np.float64]:
        """Numbers, or arrays of the points, as an array (things, points)."""
        some = list(values)
        found = np.empty((len(some), self.points))
        for row, value in zip(found, some, strict=True):
            row[:] = value
        return found

    @cached_property
    def delays(self) -> list[tuple[Any, Any, Any, Any]]:
        """Access, forward and return delay [s] and packet [bit] of each row."""
        return [self.given.flow(f.name) for f in self.flows]

    @cached_property
    def rates(self) -> list[float | None]:
        """The rate [bit/s] of rows that send at a constant one, or are off; None of others."""
        return [constant_rate(f, self.at) if is_on(f, self.at) else 0.0 for f in self.flows]

    def flow(self, k: int, law: Law) -> dict[Symbol, Any]:
        """What the law of row `k` knows, or another one in its place: parameters, return delay and
        packet size.

        The levels of trackers follow from the path's delay and from what they show at first.
        """
        key = k, law
        if key not in self._known:
            name, original = self.flows[k].name, self.flows[k].law
            _, forward, back, size = self.delays[k]
            known = {**self.given.of_law("flow", name, law), e_b: back, packet: size}
            self._known[key] = known
            for level, z in levels(law).items():
                if level not in original.params:
                    slope = evaluated(trackers(original)[z].delay, known)
                    first = self.given.initial("flow", name, z, known)
                    known[level] = first - slope * forward
        return self._known[key]

    def link(self, l: int, law: Law | None = None) -> dict[Symbol, Any]:
        """What the law of link `l` knows: parameters, capacity and longest queueing delay."""
        link = self.links[l]
        key = l, law or link.law, "link"
        if key not in self._known:
            rate, _, longest = self.given.link(link.name, capacity_at(link, self.at))
            known = self.given.of_law("link", link.name, key[1])
            self._known[key] = {**known, c: rate, q_max: longest}
        return self._known[key]


def _table(net: Network, at: float) -> Wired:
    return Wired(Parameters(net), at)


def _by_ecn(net: Network) -> list[set[bool]]:
    """Of each link that marks whether its flows can be marked: yes, no, or some."""
    able: dict[str, set[bool]] = {name: set() for name in net.links}
    for f in net.flows.values():
        for name in f.route:
            if "mark" in net.links[name].law.out:
                able[name].add(f.ecn)
    return list(able.values())


# --- a network at one time ------------------------------------------------------------------------


def moment(at: Any) -> float:
    """The time `at` [s] at which a network is looked at, from a number or text.

    Raises
    ------
    InvalidInput
        If it is none.
    """
    value = to_si(at, "s", "at") if isinstance(at, str) else at
    right = "a time in seconds, from 0 to infinity, which is after every change"
    return number(value, "at", right, least=0.0, infinite=True)


def is_on(flow: FlowSpec, at: float) -> bool:
    """Whether the flow sends at time `at` [s] (infinity: after every change)."""
    return any(
        start <= at < stop or (math.isinf(at) and at > 0 and math.isinf(stop))
        for start, stop in flow.intervals
    )


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
            f"flow {flow.name!r} sends at random ({flow.pattern.kind}), so it has no rest: "
            "simulate it, or put fluidcc.CBR at its mean rate in its place"
        )
    if flow.pattern is not None:
        past = [rate for time, rate in flow.pattern if time <= at]
        return float(past[-1]) if past else 0.0
    if law.states or law.utility is not None:
        return None
    rate = law.out["rate"]
    if symbols_of(rate) - {*law.params, packet}:
        return None
    return float(evaluated(rate, {**law.params, packet: flow.packet}))


def own_states(law: Any) -> list[Any]:
    """The states of a law that are unknowns of their own: not a link's queue."""
    return [z for z in law.states if z != getattr(law, "queue", None)]


def bounds(law: Law, states: Iterable[Symbol], known: Mapping[Symbol, Any]) -> list[list[Any]]:
    """Lower and upper bounds of some states of a law; infinite where there is none.

    Parameters
    ----------
    law : Law
    states : iterable of Symbol
    known : mapping
        Its parameters and what else a bound may depend on, each a number or an array of the points.

    Raises
    ------
    Unsupported
        If a bound depends on anything else.
    """
    found: list[list[Any]] = [[], []]
    for ends, side, none in zip(found, (law.lower, law.upper), (-math.inf, math.inf), strict=True):
        for z in states:
            try:
                ends.append(evaluated(side[z], known) if z in side else none)
            except KeyError:
                raise Unsupported(
                    f"{law.name} bounds {plain(z)} by {side[z]}, which varies: simulate it instead"
                ) from None
    return found
