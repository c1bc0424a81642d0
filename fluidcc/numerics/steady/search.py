"""Searches from Python: many points at once, and one again under other conditions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.numerics.tape import Tape

from ..steady import slots as s
from .evaluate import evaluate
from .follow import LONGEST_QUEUE, find, find_many, tell

__all__ = ["Arrays", "Found", "Numbers", "Search", "Shape", "arrays", "rows"]


Index = NDArray[np.int64]
Array = NDArray[np.float64]


class Shape(NamedTuple):
    """What does not depend on any number.

    Identical flows start alike and stay alike, so one of them stands for all: only what arrives at
    links counts them.

    A flow's tape takes its states, e, pi, price, own rate, and its parameters; it gives the
    derivatives of the states and the rate, then row by row their derivatives by states, own rate,
    e, pi and price. A link's takes queueing delay, its other states, arrival rate, and its
    parameters; it gives the derivatives of the states, mark and price, and the ratio dropped before
    the queue where it does that; then row by row their derivatives by queueing delay, states and
    arrival rate.
    """

    routes: tuple[tuple[int, ...], ...]
    flow_law: tuple[int, ...]  # tape of each flow, -1 where its rate is constant
    flow_states: tuple[int, ...]
    flow_par: tuple[int, ...]  # how many parameters
    is_rate: tuple[bool, ...]  # by state of flows: whether it is the rate
    link_law: tuple[int, ...]
    link_states: tuple[int, ...]
    link_par: tuple[int, ...]
    queued: tuple[bool, ...]  # whether a link holds a queue
    hears: tuple[bool, ...]  # whether what a link tells depends on its arrival rate
    drops: tuple[bool, ...]  # whether a link drops before its queue
    tapes: tuple[Tape, ...]
    many: tuple[int, ...]  # how many identical flows each flow stands for

    @property
    def flows(self) -> int:
        """Number of flows."""
        return len(self.routes)

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.link_law)

    @property
    def unknowns(self) -> int:
        """Number of unknowns."""
        return self.flows + 2 * self.links + sum(self.flow_states) + sum(self.link_states)


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
    par: Array  # parameters of all flows
    link_par: Array


class Arrays(NamedTuple):
    """What the compiled search takes: see `slots`."""

    I: Index
    D: Array


def rows(numbers: Numbers) -> Array:
    """All numbers of a point in one row."""
    return np.ascontiguousarray(np.concatenate(numbers, axis=1))


class _Writer:
    """Appends tables to an array, and remembers in its header where."""

    def __init__(self) -> None:
        self.parts: list[Index] = [np.zeros(s.HEADER, np.int64)]
        self.size = s.HEADER

    def put(self, slot: int, table: ArrayLike) -> int:
        """Append a table; 0 as its slot keeps no note."""
        at, part = self.size, np.asarray(table, np.int64).ravel()
        self.parts.append(part)
        self.size += len(part)
        if slot:
            self.parts[0][slot] = at
        return at


def _ends(counts: ArrayLike, first: int) -> Index:
    return first + np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))])


def arrays(S: Shape) -> Arrays:
    """Integers, and scratch with the tapes' constants in it, for one thread."""
    laid = _laid_out(S)
    return Arrays(laid.I.copy(), laid.D.copy())


@lru_cache(maxsize=32)
def _laid_out(S: Shape) -> Arrays:
    F, L, n = S.flows, S.links, S.unknowns
    w = _Writer()
    head = w.parts[0]
    head[s.FLOWS], head[s.LINKS], head[s.UNKNOWNS] = F, L, n
    z, v = _ends(S.flow_states, F + 2 * L), _ends(S.link_states, F + 2 * L + sum(S.flow_states))
    head[s.Z_FIRST], head[s.V_FIRST] = F + 2 * L, v[0]
    slots = s.BASE, s.TRIP, s.RATE, s.C, s.Q_MAX, s.INITIAL, s.LOWER, s.UPPER
    ends = _ends((F, F, F, L, L, n, n, n), 0)
    head[[*slots]] = ends[:-1]
    par = _ends(S.flow_par, int(ends[-1]))
    link_par = _ends(S.link_par, int(par[-1]))
    hops = _ends([len(route) for route in S.routes], 0)
    D_size = _scratch(S, head, int(hops[-1]))
    k, own = np.array(S.flow_states, int), np.array(S.link_states, int)
    gives, link_gives = (k + 1) * (k + 5), (own + 2 + np.array(S.drops, int)) * (own + 3)
    told = _ends([*gives, *link_gives], D_size)
    reply = _ends(4 * (k + 1), int(told[-1]))
    head[s.TOLD], head[s.TOLD_END] = told[0], told[-1]
    flows = (
        S.flow_law, hops[:-1], hops[1:], z[:-1], k, par[:-1], par[1:], told[:F], reply[:-1],
        np.zeros(F), S.many,
    )  # fmt: skip
    w.put(s.FLOW, np.array(flows, np.int64).T)
    links = (
        S.link_law, S.queued, S.hears, v[:-1], own, link_par[:-1], link_par[1:], told[F:-1],
        S.drops,
    )  # fmt: skip
    w.put(s.LINK, np.array(links, np.int64).T)
    constants = _ends([len(t.constants) for t in S.tapes], int(reply[-1]))
    w.put(s.TAPE, _tapes(S, w, constants))
    w.put(s.HOP, [l for route in S.routes for l in route])
    owners = [*range(F), *range(L), *range(L), *np.repeat(range(F), k), *np.repeat(range(L), own)]
    w.put(s.OWNER, owners)
    w.put(s.IS_RATE, [*([0] * (F + 2 * L)), *S.is_rate, *([0] * sum(own))])
    for slot in (s.PLACE, s.LOW, s.HIGH, s.FIXED, s.BEYOND):
        w.put(slot, np.zeros(n))
    w.put(s.SEEN, np.zeros(s.ROUNDS))
    D = np.zeros(int(constants[-1]))
    D[int(constants[0]) :] = np.concatenate([t.constants for t in S.tapes]) if S.tapes else ()
    return Arrays(np.concatenate(w.parts), D)


def _tapes(S: Shape, w: _Writer, constants: Index) -> list[list[int]]:
    """The records of the tapes, whose instructions are appended."""
    records = []
    for t, first, end in zip(S.tapes, constants[:-1], constants[1:], strict=True):
        ops, out = w.put(0, t.instructions), w.put(0, t.outputs)
        ends = ops + t.instructions.size, int(first), int(end), t.inputs, out, out + len(t.outputs)
        records.append([ops, *ends])
    return records


def _scratch(S: Shape, head: Index, hops: int) -> int:
    """Give every scratch array its place; their size together."""
    F, L, n = S.flows, S.links, S.unknowns
    registers = max((t.inputs + len(t.constants) + len(t.instructions) for t in S.tapes), default=0)
    own = max(((k + 1) * (k + 5) for k in S.flow_states), default=0)
    sizes = {
        **dict.fromkeys((s.G, s.MOVE, s.SIZE, s.SCALE, s.REFERENCE, s.END), n),
        **dict.fromkeys((s.E, s.PI, s.PRICE, s.DE, s.DPI, s.DPRICE), F),
        **dict.fromkeys((s.QUEUE, s.LOSS, s.QUEUE_SLOPE, s.LOSS_SLOPE), L),
        s.PASSING: hops,
        s.REGISTERS: registers,
        s.OWN: own,
    }
    ends = _ends([*sizes.values()], 0)
    head[[*sizes]] = ends[:-1]
    return int(ends[-1])


# --- Searches from Python: many points at once, and one again under other conditions -------------


class Found(NamedTuple):
    """Where searches ended, by point.

    Attributes
    ----------
    u : array (points, unknowns)
    told : array (points, 2 flows + 4 links)
        e and loss ratio of the flows' paths; queueing delay, loss ratio of the buffer, price and
        ratio dropped before the queue of the links.
    status : array of int
        How they ended: see `follow`.
    error : array
        The last relative Newton step.
    steps : array of int
        How many steps it took.
    """

    u: Any
    told: Any
    status: Any
    error: Any
    steps: Any

    def point(self, i: int) -> Found:
        """Where the search at one point ended."""
        return Found(
            self.u[i], self.told[i], int(self.status[i]), float(self.error[i]), int(self.steps[i])
        )


class Search:
    """Searches in networks of one structure, one at a time."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.arrays = arrays(shape)

    def everywhere(self, numbers: Numbers) -> Found:
        """Look for an equilibrium at each point; no result depends on the other points."""
        points, S = len(numbers.c), self.shape
        found = Found(
            np.empty((points, S.unknowns)),
            np.empty((points, 2 * S.flows + 4 * S.links)),
            np.empty(points, np.int64),
            np.empty(points),
            np.empty(points, np.int64),
        )
        I, D = self.arrays
        with np.errstate(all="ignore"):
            find_many(I, rows(numbers), D, LONGEST_QUEUE, *found)
        return found

    def again(
        self, numbers: Numbers, point: int, u: Any, *, ceiling: float = LONGEST_QUEUE,
        bold: bool = True,
        held: Any = None,
    ) -> Found:  # fmt: skip
        """Look again at one point, from `u`, with the unknowns `held` kept where they are."""
        (I, D), S = self.arrays, self.shape
        u, P = u.copy(), rows(Numbers(*(a[point : point + 1] for a in numbers)))[0]
        if held is not None:
            P[I[s.LOWER] + held] = P[I[s.UPPER] + held] = u[held]
        told = np.empty(2 * S.flows + 4 * S.links)
        with np.errstate(all="ignore"):
            status, error, steps = find(I, P, D, u, ceiling, bold)
            tell(I, P, D, u, told)
        return Found(u, told, int(status), float(error), int(steps))

    def residual(self, numbers: Numbers, point: int, u: Any) -> Any:
        """G at `u` at one point."""
        I, D = self.arrays
        with np.errstate(all="ignore"):
            evaluate(I, rows(Numbers(*(a[point : point + 1] for a in numbers)))[0], D, u)
        return D[I[s.G] : I[s.G] + self.shape.unknowns].copy()
