"""A network at one time as arrays and functions of arrays, for its steady state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Heaviside, Symbol

from fluidcc.base.arguments import number
from fluidcc.base.errors import Unsupported
from fluidcc.base.units import to_si
from fluidcc.laws.bytecode import hears_rate, link_tape, source_tape
from fluidcc.laws.steady import levels, trackers
from fluidcc.network.parameters import Parameters, evaluated
from fluidcc.network.patterns import Modulated
from fluidcc.numerics.steady.state import Numbers, Shape
from fluidcc.symbols import c, e_b, packet, plain, q_max, symbols_of, unfold, y

if TYPE_CHECKING:
    from fluidcc.laws import Law
    from fluidcc.network.network import Network
    from fluidcc.network.specs import FlowSpec, LinkSpec
    from fluidcc.numerics.tape import Tape


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


@lru_cache(maxsize=256)
def switches(law: Any) -> set[Heaviside]:
    """The jumps of a link's law where what is compared moves."""
    moving = {y, *law.states}
    atoms = {s for _, f in law.expressions() for s in unfold(f).atoms(Heaviside)}
    return {s for s in atoms if s.args[0].free_symbols & moving}


@dataclass(frozen=True)
class Assembled:
    """A network at one time: its structure, and its numbers at one or more points."""

    net: Network
    shape: Shape
    numbers: Numbers
    at: float

    def queues(self, u: Any) -> Any:
        """The queues s among some unknowns."""
        return u[..., self.shape.flows : self.shape.flows + self.shape.links]

    def arrivals(self, u: Any) -> Any:
        """The arrival rates among some unknowns [bit/s]."""
        first = self.shape.flows + self.shape.links
        return u[..., first : first + self.shape.links]

    @cached_property
    def states(self) -> tuple[list[list[int]], list[list[int]]]:
        """Which unknowns are the states of each flow, and those of each link other than its
        queue.
        """
        S = self.shape
        ends = np.cumsum([S.flows + 2 * S.links, *S.states]).tolist()
        own = [list(range(a, b)) for a, b in pairwise(ends)]
        return own[: S.flows], own[S.flows :]

    def named_states(self) -> Iterator[tuple[str, Any, Symbol, int]]:
        """Kind and spec of what has each state, the state, and which unknown it is."""
        owners: Any = (self.net.flows, self.net.links)
        for kind, specs, places in zip(("flow", "link"), owners, self.states, strict=True):
            for spec, own in zip(specs.values(), places, strict=True):
                for z, i in zip(own_states(spec.law), own, strict=False):  # none of one that is off
                    yield kind, spec, z, i

    def parameters(self, point: int, flow: int) -> dict[Symbol, float]:
        """Values of the parameters of an adaptive flow's law at a point, by symbol."""
        law = list(self.net.flows.values())[flow].law
        first = sum(self.shape.par[:flow]) + PLACE_OF_A_FLOW
        values = self.numbers.par[point, first : first + len(law.params)]
        return dict(zip(law.params, values.tolist(), strict=True))


PLACE_OF_A_FLOW = 3
"""Among a flow's parameters edot = 0, e_b and the packet size come first."""

LONGEST_QUEUE = 1e6
"""A queueing delay beyond which a queue counts as growing without limit, relative to the longest of
round trips, times that packets take, and times in laws.
"""

PLACE_OF_A_LINK = 2
"""Among a link's, c and q_max."""


def assemble(
    net: Network, at: float, many: tuple[int, ...] = (), given: Parameters | None = None
) -> Assembled:
    """The network at one time, as arrays and formulas on registers.

    Parameters
    ----------
    net : Network
    at : float
        Time [s].
    many : tuple of int
        How many identical flows each flow stands for; by default itself alone.
    given : Parameters, optional
        The numbers that are set otherwise, of the network before laws were replaced in it.

    Raises
    ------
    Unsupported
        If a flow sends at random, or a bound of a state varies.
    """
    given = Parameters(net) if given is None else given
    flows, links = list(net.flows.values()), list(net.links.values())
    rates = [constant_rate(f, at) if is_on(f, at) else 0.0 for f in flows]
    laws: list[Any] = [
        None if rate is not None else f.law for f, rate in zip(flows, rates, strict=True)
    ]
    place = {name: l for l, name in enumerate(net.links)}
    routes = [tuple(place[name] for name in f.route) for f in flows]
    shape = _shape(routes, laws, [link.law for link in links], many or (1,) * len(flows))
    table = _Table(given)
    for f, law, rate in zip(flows, laws, rates, strict=True):
        table.flow(f, law, rate or 0.0, is_on(f, at))
    for link in links:
        table.link(link, capacity_at(link, at))
    return Assembled(net, shape, table.numbers(), at)


def flow_numbers(given: Parameters, name: str, law: Law) -> dict[Symbol, Any]:
    """What a flow's law knows at each point: its parameters, return delay and packet size.

    The levels of trackers follow from the path's delay and from what the trackers show at first.
    """
    _, forward, back, size = given.flow(name)
    known = {**given.of_law("flow", name, law), e_b: back, packet: size}
    original = given.net.flows[name].law
    for level, z in levels(law).items():
        if level not in original.params:
            slope = evaluated(trackers(original)[z].delay, known)
            known[level] = initial_state(given, "flow", name, z, known) - slope * forward
    return known


def link_numbers(given: Parameters, link: LinkSpec, capacity: float) -> dict[Symbol, Any]:
    """What a link's law knows at each point: its parameters, capacity and longest queue."""
    rate, _, longest = given.link(link.name, capacity)
    return {**given.of_law("link", link.name, link.law), c: rate, q_max: longest}


def initial_state(
    given: Parameters, kind: str, name: str, z: Symbol, known: Mapping[Symbol, Any]
) -> Any:
    """Where a state starts: a number, or one for each point."""
    key = (kind, name, "initial", plain(z))
    if key in given.set:
        return given.set[key]
    spec = getattr(given.net, f"{kind}s")[name]
    told = (given.net.given(kind, name)["initial"] or {}) if given.set else spec.initial
    if plain(z) not in told and z in spec.law.initial:
        return evaluated(spec.law.initial[z], known)
    return spec.initial[plain(z)]


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


class _Table:
    """Columns of the numbers of all points, one thing after the other."""

    def __init__(self, given: Parameters) -> None:
        self.given = given
        self.columns: dict[str, list[Any]] = {
            name: [] for name in (*Numbers._fields, "initial", "lower", "upper")
        }
        self.times: list[Any] = []  # of laws [s]
        self.packets: list[Any] = []  # of flows [bit]
        self.queues: list[float] = []  # how long each may get

    def flow(self, f: FlowSpec, law: Law | None, rate: float, on: bool) -> None:
        """Add a flow; one without a law has a constant rate."""
        given, to = self.given, self.columns
        _, forward, back, size = given.flow(f.name)
        to["base"].append(forward)
        to["trip"].append(forward + back)
        self.packets.append(size)
        if law is not None:
            known = flow_numbers(given, f.name, law)
            to["par"] += [0.0, back, size, *(known[s] for s in law.params)]
            self._states("flow", f.name, law, known)
        elif on and f.pattern is None and given.touches("flow", f.name):
            rate = evaluated(
                f.law.out["rate"], {**given.of_law("flow", f.name, f.law), packet: size}
            )
        to["rate"].append(rate)

    def link(self, link: LinkSpec, capacity: float) -> None:
        """Add a link."""
        known, to = link_numbers(self.given, link, capacity), self.columns
        to["c"].append(known[c])
        to["q_max"].append(known[q_max])
        to["par"] += [known[c], known[q_max], *(known[s] for s in link.law.params)]
        self.queues.append(0.0 if link.law.queue is None else math.inf)
        self._states("link", link.name, link.law, known)

    def _states(self, kind: str, name: str, law: Law, known: Mapping[Symbol, Any]) -> None:
        """Add initial values and bounds of a law's states, and its times."""
        states, to = own_states(law), self.columns
        self.times += [known[s] for s in law.params if law.units.get(s) == "s"]
        to["initial"] += [initial_state(self.given, kind, name, z, known) for z in states]
        for side, ends in zip(("lower", "upper"), bounds(law, states, known), strict=True):
            to[side] += ends

    def numbers(self) -> Numbers:
        """All numbers as arrays (points, ...): none bounds rates and arrivals, 0 bounds queues."""
        to, F, L = self.columns, len(self.columns["base"]), len(self.queues)
        to["initial"] = [0.0] * (F + 2 * L) + to["initial"]
        to["lower"] = [-math.inf] * F + [0.0] * L + [-math.inf] * L + to["lower"]
        to["upper"] = [math.inf] * F + self.queues + [math.inf] * L + to["upper"]
        packets = [size / np.where(c, c, math.inf) for size in self.packets for c in to["c"]]
        natural = reduce(np.fmax, to["trip"] + packets)
        natural = np.where(natural > 0, natural, 1.0)
        to["times"] = [natural, LONGEST_QUEUE * reduce(np.fmax, self.times, natural)]
        return Numbers(**{name: self._array(to[name]) for name in Numbers._fields})

    def _array(self, columns: list[Any]) -> Any:
        points = self.given.points
        if not any(isinstance(v, np.ndarray) for v in columns):
            return np.repeat(np.array(columns, float)[None], points, axis=0)
        return np.stack([np.broadcast_to(np.asarray(v, float), points) for v in columns], axis=1)


def _shape(
    routes: list[tuple[int, ...]], laws: list[Any], link_laws: list[Any], many: tuple[int, ...]
) -> Shape:
    """The structure; a law of None is a flow of constant rate."""
    known: dict[Any, int] = {}
    tapes: list[Tape] = []

    def tape_of(law: Any, write: Callable[[Any], Tape]) -> int:
        key = id(law)
        if key not in known:
            written = write(law)
            known[key] = next((i for i, t in enumerate(tapes) if t is written), len(tapes))
            tapes.extend([written] if known[key] == len(tapes) else [])
        return known[key]

    flow_tapes = [-1 if law is None else tape_of(law, source_tape) for law in laws]
    link_tapes = [tape_of(law, link_tape) for law in link_laws]
    every = [*laws, *link_laws]
    known_first = [*([PLACE_OF_A_FLOW] * len(laws)), *([PLACE_OF_A_LINK] * len(link_laws))]
    return Shape(
        routes=tuple(routes),
        law=(*flow_tapes, *link_tapes),
        states=tuple(len(own_states(law)) if law else 0 for law in every),
        par=tuple(
            n + len(law.params) if law else 0 for n, law in zip(known_first, every, strict=True)
        ),
        is_rate=tuple(law.out["rate"] == z for law in laws if law for z in law.states),
        queued=tuple(law.queue is not None for law in link_laws),
        hears=tuple(hears_rate(law) for law in link_laws),
        drops=tuple("drop" in law.out for law in link_laws),
        offers=tuple("offer" in law.out for law in link_laws),
        tapes=tuple(tapes),
        many=many,
    )
