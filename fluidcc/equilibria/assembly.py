"""A network at one time as arrays and functions of arrays, for its steady state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Float

from fluidcc.base.arguments import number
from fluidcc.base.errors import Unsupported
from fluidcc.base.units import to_si
from fluidcc.laws.bytecode import hears_rate, link_tape, source_tape
from fluidcc.laws.steady import state_bounds
from fluidcc.network.patterns import Modulated
from fluidcc.numerics.steady.search import Numbers, Shape
from fluidcc.symbols import c, e_b, packet, plain, q_max, unfold

if TYPE_CHECKING:
    from fluidcc.network.network import FlowSpec, LinkSpec, Network
    from fluidcc.numerics.tape import Tape

__all__ = ["Assembled", "assemble", "capacity_at", "constant_rate", "is_on", "moment"]


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
            f"simulate it, "
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


def _states(law: Any) -> list[Any]:
    """The states of a law that are unknowns of their own: not a link's queue."""
    return [z for z in law.states if z != getattr(law, "queue", None)]


def _joined(parts: Iterable[Any]) -> Any:
    return np.array([float(v) for part in parts for v in part])


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
        first, S = self.shape.flows + 2 * self.shape.links, self.shape
        ends = np.cumsum([first, *S.flow_states, *S.link_states]).tolist()
        own = [list(range(a, b)) for a, b in pairwise(ends)]
        return own[: S.flows], own[S.flows :]

    def parameters(self, point: int, flow: int) -> dict[Any, Float]:
        """Values of the parameters of an adaptive flow's law at a point, by symbol."""
        law = list(self.net.flows.values())[flow].law
        first = sum(self.shape.flow_par[:flow]) + PLACE_OF_A_FLOW
        values = self.numbers.par[point, first : first + len(law.params)]
        return {s: Float(v) for s, v in zip(law.params, values, strict=True)}


PLACE_OF_A_FLOW = 3
"""Among a flow's parameters edot = 0, e_b and the packet size come first."""

PLACE_OF_A_LINK = 2
"""Among a link's, c and q_max."""


def assemble(net: Network, at: float, many: tuple[int, ...] = ()) -> Assembled:
    """The network at one time, as arrays and formulas on registers.

    Parameters
    ----------
    net : Network
    at : float
        Time [s].
    many : tuple of int
        How many identical flows each flow stands for; by default itself alone.

    Raises
    ------
    Unsupported
        If a flow sends at random, or a bound of a state varies.
    """
    flows, links = list(net.flows.values()), list(net.links.values())
    rates = [constant_rate(f, at) if is_on(f, at) else 0.0 for f in flows]
    laws: list[Any] = [
        None if rate is not None else f.law for f, rate in zip(flows, rates, strict=True)
    ]
    place = {name: l for l, name in enumerate(net.links)}
    routes = [tuple(place[name] for name in f.route) for f in flows]
    shape = _shape(routes, laws, [link.law for link in links], many or (1,) * len(flows))
    capacity = np.array([capacity_at(link, at) for link in links])
    longest = np.array([link.buffer for link in links]) / capacity
    base = np.array(
        [f.access_delay + sum(net.links[name].delay for name in f.route) for f in flows]
    )
    back = np.array(
        [d if f.return_delay is None else f.return_delay for f, d in zip(flows, base, strict=True)]
    )
    own = [
        [f.initial[plain(z)] for z in law.states] if law else []
        for f, law in zip(flows, laws, strict=True)
    ]
    own += [[link.initial[plain(z)] for z in _states(link.law)] for link in links]
    numbers = Numbers(
        base=base,
        trip=base + back,
        rate=np.array([rate or 0.0 for rate in rates]),
        par=_joined(
            [0.0, b, f.packet, *law.params.values()] if law else ()
            for f, b, law in zip(flows, back, laws, strict=True)
        ),
        c=capacity,
        q_max=longest,
        link_par=_joined(
            [c, q, *k.law.params.values()] for k, c, q in zip(links, capacity, longest, strict=True)
        ),
        initial=np.concatenate([np.zeros(len(flows) + 2 * len(links)), _joined(own)]),
        lower=_bounds("lower", flows, laws, back, links, capacity, longest),
        upper=_bounds("upper", flows, laws, back, links, capacity, longest),
    )
    return Assembled(net, shape, Numbers(*(a[None] for a in numbers)), at)


def _bounds(
    side: str, flows: Any, laws: Any, back: Any, links: Any, capacity: Any, longest: Any
) -> Any:
    """Bounds of all unknowns: none of rates and arrivals, 0 and nothing above of queues, the
    laws' of states.
    """
    infinite = -np.inf if side == "lower" else np.inf
    queue = [0.0 if side == "lower" or link.law.queue is None else np.inf for link in links]
    own = [
        state_bounds(law, tuple(law.states), side, ((e_b, float(b)), (packet, float(f.packet))))
        for f, b, law in zip(flows, back, laws, strict=True)
        if law
    ]
    own += [
        state_bounds(k.law, tuple(_states(k.law)), side, ((c, float(rate)), (q_max, float(q))))
        for k, rate, q in zip(links, capacity, longest, strict=True)
    ]
    return np.concatenate(
        [np.full(len(flows), infinite), queue, np.full(len(links), infinite), _joined(own)]
    )


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

    flow_law = [-1 if law is None else tape_of(law, source_tape) for law in laws]
    link_law = [tape_of(law, link_tape) for law in link_laws]
    return Shape(
        routes=tuple(routes),
        flow_law=tuple(flow_law),
        flow_states=tuple(len(law.states) if law else 0 for law in laws),
        flow_par=tuple(PLACE_OF_A_FLOW + len(law.params) if law else 0 for law in laws),
        is_rate=tuple(law.out["rate"] == z for law in laws if law for z in law.states),
        link_law=tuple(link_law),
        link_states=tuple(len(_states(law)) for law in link_laws),
        link_par=tuple(PLACE_OF_A_LINK + len(law.params) for law in link_laws),
        queued=tuple(law.queue is not None for law in link_laws),
        hears=tuple(hears_rate(law) for law in link_laws),
        drops=tuple("drop" in law.out for law in link_laws),
        tapes=tuple(tapes),
        many=many,
    )
