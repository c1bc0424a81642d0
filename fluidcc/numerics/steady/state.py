"""What a search for an equilibrium reads and writes, by name, and the network that it is made of.

An owner is a flow or a link: flow f is owner f, link l is owner ``n_flows + l``. The unknowns are
the rate of each flow, the queue of each link, what arrives at each link, then the states of the
flows and those of the links. So a flow's rate and a link's queue have the number of their owner.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.numerics.tape import Tape

from ..layout import Floats, Ints, NamedArrays

Array = NDArray[np.float64]

HEARD, UNION = 6, 4
"""What a flow may hear of its path: e, pi, price and the least offer; and loss and mark, of which
most laws hear the union pi alone.
"""

ROUNDS = 60
"""Changes of the active set in one step, after which the last one is taken."""


class SearchState(NamedArrays):
    """The two arrays of a search, read and written by name."""

    n_flows: int
    n_links: int
    n_unknowns: int
    first_state: int  # the first unknown that is a state of a flow
    first_link_state: int  # the first that is one of a link
    n_told: int  # numbers that the laws give
    shake: float  # how their rounding is shaken, 0 where it is not

    # --- the numbers of a point, in the order of `Numbers` ----------------------------------------
    base: Floats
    trip: Floats
    rate: Floats
    c: Floats
    q_max: Floats
    initial: Floats
    lower: Floats
    upper: Floats
    par: Floats
    times: Floats

    # --- owners -----------------------------------------------------------------------------------
    law: Ints  # tape, -1 for a constant rate
    first: Ints  # its first state among the unknowns
    count: Ints  # how many states it has
    par_start: Ints  # owners + 1 starts into `par`
    gives: Ints  # where in `told` stands what its law gives
    slopes: Ints  # and where the derivatives of that begin
    width: Ints  # how many derivatives each has
    told: Floats  # see `Shape`

    # --- flows ------------------------------------------------------------------------------------
    hop_start: Ints  # n_flows + 1 starts into `hop`
    hop: Ints  # links of the routes
    many: Ints  # how many flows are like it: it stands for all of them
    kept: Ints  # 1 where its unknowns are not eliminated
    heard: Ints  # HEARD or UNION: how much its law hears
    e: Floats
    lost: Floats
    marked: Floats  # of what is not lost
    pi: Floats  # the union of both
    price: Floats
    offer: Floats  # the least on its path
    least: Ints  # the link that makes it, -1 where none does
    # by hop: share of the flow that its queue is offered, times how many flows are like it; and 1
    # where its link drops of it, before the queue, what it marks of others
    passing: Floats
    spared: Ints

    # --- links ------------------------------------------------------------------------------------
    queued: Ints  # 1 where it holds a queue
    hears: Ints  # 1 where what it tells depends on its arrival rate
    drops: Ints  # 1 where it drops before its queue
    offers: Ints  # 1 where it offers a rate
    # 1 where its unknown is what s is beyond q_max, so that small losses keep all their digits
    beyond: Ints
    beyond_before: Ints
    queue: Floats
    loss: Floats
    queue_slope: Floats
    loss_slope: Floats
    mark: Floats
    link_price: Floats
    link_offer: Floats
    drop: Floats

    # --- unknowns ---------------------------------------------------------------------------------
    owner: Ints
    is_rate: Ints  # a flow's state that is its rate
    place: Ints  # in the matrix of a step, -1 where it is eliminated or fixed
    low: Ints  # flags of the active set
    high: Ints
    fixed: Ints
    u: Floats
    end: Floats  # after a step
    u_before: Floats
    lower_before: Floats
    upper_before: Floats
    residual: Floats
    move: Floats
    noise: Floats  # what the rounding in laws leaves of a residual
    size: Floats  # what changes are measured by, 1 where that is not known
    scale: Floats  # sizes below which a change is small, 0 where none is known
    reference: Floats  # the largest size so far
    # (1 + HEARD) x n_unknowns: how what is eliminated moves, and its derivatives by what is heard
    reply: Floats
    seen: Ints  # the active sets of a step so far, a number each

    # --- tapes ------------------------------------------------------------------------------------
    instruction_start: Ints  # tapes + 1 starts
    instruction: Ints
    constant_start: Ints
    constant: Floats
    output_start: Ints
    output: Ints
    inputs: Ints
    registers: Floats


class Shape(NamedTuple):
    """What does not depend on any number.

    Identical flows start alike and stay alike, so one of them stands for all: only what arrives at
    links counts them.

    A flow's tape takes its states, what it hears, own rate, and its parameters; it gives the
    derivatives of the states and the rate, then row by row their derivatives by states, own rate
    and what it hears. A link's takes queueing delay, its other states, arrival
    rate, and its parameters; it gives the derivatives of the states, mark and price, the ratio
    dropped before the queue where it does that, and the rate offered where it does; then row by row
    their derivatives by queueing delay, states and arrival rate.
    """

    routes: tuple[tuple[int, ...], ...]
    spared: tuple[tuple[bool, ...], ...]  # by hop: see `SearchState`
    law: tuple[int, ...]  # tape of each flow and link, -1 where a rate is constant
    states: tuple[int, ...]  # how many each of them has
    par: tuple[int, ...]  # how many parameters
    apart: tuple[bool, ...]  # by flow: whether it hears marks apart from losses
    is_rate: tuple[bool, ...]  # by state of flows: whether it is the rate
    queued: tuple[bool, ...]  # whether a link holds a queue
    hears: tuple[bool, ...]  # whether what a link tells depends on its arrival rate
    drops: tuple[bool, ...]  # whether a link drops before its queue
    offers: tuple[bool, ...]  # whether it offers a rate
    tapes: tuple[Tape, ...]
    many: tuple[int, ...]  # how many identical flows each flow stands for

    @property
    def flows(self) -> int:
        """Number of flows."""
        return len(self.routes)

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.queued)

    @property
    def unknowns(self) -> int:
        """Number of unknowns."""
        return self.flows + 2 * self.links + sum(self.states)


class Numbers(NamedTuple):
    """Numbers by point (first axis) and thing."""

    base: Array  # one-way propagation delay of each flow [s]
    trip: Array  # round-trip propagation delay of each flow [s]
    rate: Array  # of flows with a constant one [bit/s]
    c: Array  # capacity [bit/s]
    q_max: Array  # longest queueing delay [s], may be infinite
    initial: Array  # of states, other unknowns 0
    lower: Array  # bounds of all unknowns
    upper: Array
    par: Array  # parameters of all flows, then of all links
    times: Array  # a natural time, and how long no queue gets that does not grow for ever [s]

    @property
    def rows(self) -> Array:
        """All numbers of a point in one row."""
        return np.ascontiguousarray(np.concatenate(self, axis=1))


def _starts(counts: ArrayLike, first: int = 0) -> NDArray[np.int64]:
    return first + np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))])


@lru_cache(maxsize=32)
def state_of(S: Shape) -> SearchState:
    """Return the state of searches in networks of a shape, without the numbers of a point: to be
    copied.
    """
    F, L, n = S.flows, S.links, S.unknowns
    owners, k = F + L, np.array(S.states, np.int64)
    # of a flow all states and the rate; of a link all states, mark, price, and what else it gives
    values = k + np.array([*([1] * F), *np.add(2, np.add(S.drops, S.offers, dtype=int))])
    heard = np.where(S.apart, HEARD, UNION)
    width = k + np.array([*(1 + heard), *([2] * L)])
    first, gives, par = _starts(k, F + 2 * L), _starts(values * (1 + width)), _starts(S.par)
    hops = [l for route in S.routes for l in route]
    tapes = S.tapes
    registers = [t.inputs + len(t.constants) + len(t.instructions) for t in tapes]
    numbers = zip(Numbers._fields, (F, F, F, L, L, n, n, n, int(par[-1]), 2), strict=True)
    empty = dict.fromkeys(("e", "lost", "marked", "pi", "price", "offer", "least", "kept"), F)
    empty |= dict.fromkeys(("queue", "loss", "queue_slope", "loss_slope", "mark", "link_price",
                            "link_offer", "drop", "beyond", "beyond_before"), L)  # fmt: skip
    empty |= dict.fromkeys(("place", "low", "high", "fixed", "u", "end", "u_before",
                            "lower_before", "upper_before", "residual", "move", "noise", "size",
                            "scale", "reference"), n)  # fmt: skip
    empty |= {**dict(numbers), "reply": (1 + HEARD) * n, "seen": ROUNDS, "passing": len(hops),
              "told": int(gives[-1]), "registers": max(registers, default=0)}  # fmt: skip
    parts: dict[str, list[Any]] = {
        "instruction": [t.instructions.ravel() for t in tapes],
        "constant": [t.constants for t in tapes],
        "output": [t.outputs for t in tapes],
    }
    filled: dict[str, Any] = {name: np.concatenate([[], *of]) for name, of in parts.items()}
    filled |= {f"{name}_start": _starts([len(one) for one in of]) for name, of in parts.items()}
    values = dict(
        n_flows=F, n_links=L, n_unknowns=n, first_state=F + 2 * L, first_link_state=first[F],
        n_told=gives[-1], shake=0.0, law=S.law, first=first[:owners], count=k, par_start=par,
        gives=gives[:-1], slopes=gives[:-1] + values, width=width, heard=heard,
        hop_start=_starts([len(route) for route in S.routes]), hop=hops, many=S.many,
        spared=[spared for hops in S.spared for spared in hops],
        queued=S.queued, hears=S.hears, drops=S.drops, offers=S.offers,
        owner=[*range(owners), *range(F, owners), *np.repeat(range(owners), k)],
        is_rate=[*([0] * (F + 2 * L)), *S.is_rate, *([0] * sum(S.states[F:]))],
        inputs=[t.inputs for t in tapes], **filled, **empty,
    )  # fmt: skip
    return SearchState.of(values)
