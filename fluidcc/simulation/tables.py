"""The tables of a workspace: two flat arrays under construction, and what a layout puts into them.

Numbers are added to `Arrays`, and where they stand is noted in slots of the head. There is who
meets whom, what is known beforehand to change, jumps and ticks, and the natural sizes of which
tolerances are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.laws import Law, Tick
from fluidcc.laws.kernels import bound_switches, count_switches, event_kernel_address
from fluidcc.network.network import LinkSpec, Modulated
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.layout import Group, Layout, acts
from fluidcc.symbols import REPORTING, symbols_of

__all__ = [
    "Arrays", "add_capacities", "add_changes", "add_maps", "add_nodes", "collect_changes",
    "event_of", "event_rows", "hops_at_once", "jump_switches", "owner_of", "state_sizes",
    "work_sizes",
]  # fmt: skip

_Part = tuple[
    int, int, Any
]  # from where to where, and what: numbers, or one for all of these places
Change = tuple[float, int, int, float]  # time, kind, index, value


class Arrays:
    """What becomes `F` and `I` (see `fluidcc.numerics.fluid.slots`).

    A workspace has a hundred parts of a few numbers each, so that they are kept as lists: an array
    for each would take several times as long to make as the two that they end in.

    Attributes
    ----------
    scalars : list of float
        The first numbers of `F`.
    head : list of int
        The first numbers of `I`.
    sizes : list of int
        How long `F` and `I` are so far.
    """

    def __init__(self) -> None:
        self.scalars, self.head = [0.0] * s.FHEADER, [0] * s.HEADER
        self.sizes = [s.FHEADER, s.HEADER]
        self._floats: list[_Part] = [(0, s.FHEADER, self.scalars)]
        self._ints: list[_Part] = [(0, s.HEADER, self.head)]

    def floats(self, slot: int, values: Sequence[float] | NDArray[np.float64]) -> None:
        """Add numbers, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[0]
        stop = self.sizes[0] = start + len(values)
        self._floats.append((start, stop, values))

    def room(self, slot: int, size: int, value: float = 0.0) -> None:
        """Add `size` times the same number, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[0]
        stop = self.sizes[0] = start + size
        if value != 0.0:
            self._floats.append((start, stop, value))

    def ints(self, slot: int, values: Sequence[int] | NDArray[np.int64]) -> None:
        """Add whole numbers, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[1]
        stop = self.sizes[1] = start + len(values)
        self._ints.append((start, stop, values))

    def int_room(self, slot: int, size: int, value: int = 0) -> None:
        """Add `size` times the same whole number, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[1]
        stop = self.sizes[1] = start + size
        if value:
            self._ints.append((start, stop, value))

    def table(self, starts: int, values: int, rows: list[list[int]]) -> None:
        """Add rows of different lengths: where each starts, then all their numbers."""
        self.ints(starts, [0, *accumulate(map(len, rows))])
        self.ints(values, [*chain.from_iterable(rows)])

    def joined(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """`F` and `I`; their parts are let go."""
        F, I = np.zeros(self.sizes[0]), np.zeros(self.sizes[1], dtype=np.int64)
        for array, parts in ((F, self._floats), (I, self._ints)):
            for start, stop, values in parts:
                array[start:stop] = values
            parts.clear()
        return F, I


# --- who meets whom -------------------------------------------------------------------------------


def add_nodes(into: Arrays, at: Layout) -> None:
    """The places where queues are inverted, and routers heard."""
    nodes = at.nodes
    n = len(nodes)
    into.ints(s.JNPAR, [node.parent for node in nodes])
    into.ints(s.JNLINK, [node.link for node in nodes])
    into.ints(s.JALL, range(n))
    into.int_room(s.JNCUR, n)
    into.int_room(s.JNCUR0, n)
    into.floats(s.OOFF, [node.offset for node in nodes])
    for slot in (s.OTH, s.OUN, s.OCE, s.OCS, s.OCF, s.OCP, s.OCQ):
        into.room(slot, n)


def add_maps(into: Arrays, at: Layout) -> None:
    """Flows, classes, links and what leads from one to the other."""
    nf, nl = len(at.flows), len(at.links)
    routes = [at.route(i) for i in range(nf)]
    into.ints(s.JCLS, at.flow_class)
    into.ints(s.JLEAF, [path[-1] for path in at.paths])
    into.ints(s.JFIRST, [route[0] for route in routes])
    into.int_room(s.JON, nf)
    which = {route: g for g, route in enumerate(at.aggregates)}
    into.ints(s.JXG, [which.get(route, -1) for route in routes])
    into.ints(s.JXT, at.own_rate)
    into.ints(s.JSTR, [*chain.from_iterable(at.streams)])
    into.int_room(s.JMODE, nl, s.HELD)
    into.ints(s.JQUEUE, [link.law.queue is not None for link in at.links])
    pairs = {(a, b) for route in routes for a, b in pairwise(route)}
    nexts = [sorted(b for a, b in pairs if a == l) for l in range(nl)]
    into.table(s.JNEXT, s.JNEXTV, nexts)
    into.room(s.OLANDED, nl + len(at.classes), -math.inf)
    into.int_room(s.JLANDED, nl + len(at.classes))
    ends = [route[-1] for route, _, _ in at.classes]
    into.table(s.JLAST, s.JLASTV, _inverse(ends, nl))
    into.head[s.HOPS], into.head[s.SPREAD] = _followed(
        tuple(map(tuple, nexts)), tuple(map(ends.count, range(nl)))
    )
    into.ints(s.JCFIRST, [route[0] for route, _, _ in at.classes])
    into.table(s.JCFLOW, s.JCFLOWV, _inverse(at.flow_class, len(at.classes)))
    into.table(s.JPATH, s.JPATHV, at.paths)
    into.int_room(s.JCSAMP, len(at.classes))
    into.ints(s.JLSAMP, [0])
    into.ints(s.JACT, [at.acting.index(l) if l in at.acting else -1 for l in range(nl)])
    into.ints(s.JACTS, [acts(link.law) for link in at.links])
    into.table(s.JTOLD, s.JTOLDV, at.told)
    into.ints(s.JHEARS, at.hears)
    place = [(0, 0, 0)] * nf
    for g in at.groups:
        for n, i in enumerate(g.members):
            place[i] = (g.states + n, g.size, len(g.own))
    for k, slot in enumerate((s.JFSTATE, s.JFSTRIDE, s.JFN)):
        into.ints(slot, [of[k] for of in place])


@lru_cache(
    maxsize=64
)  # the links of a network stay as they are while its numbers change, as they do in a sweep
def _followed(
    nexts: tuple[tuple[int, ...], ...], ends: tuple[int, ...], most: int = 64
) -> tuple[int, int]:
    """Hops over which a breaking point is followed, once round all links at most, and its landings
    at sources.

    `ends` has the number of feedback classes whose path ends at each link. In a mesh the hops are
    cut where they would make more than `most` landings at links.
    """
    n = len(nexts)
    fan = np.zeros((n, n))
    for a, after in enumerate(nexts):
        fan[a, after] = 1.0
    landings, ways, sources = np.zeros(n), np.eye(n), np.array(ends, dtype=float)
    spread = sources.copy()
    hops = 0
    while hops < n:
        ways = ways @ fan
        landings += ways.sum(axis=1)
        if landings.max() > most:
            break
        spread += ways @ sources
        hops += 1
    return hops, max(sum(ends), int(spread.max(initial=0.0)))


def hops_at_once(at: Layout) -> int:
    """Hops without propagation delay worth the name, over the longest route; at least one if a
    router tells at once.
    """
    hops = max(
        (sum(at.links[l].delay < 1e-9 for l in route[:-1]) for route, _, _ in at.classes), default=0
    )
    return max(hops, int(any(at.nodes[n].offset < 1e-9 for of in at.told for n in of)))


def _inverse(values: list[int], count: int) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(count)]
    for k, v in enumerate(values):
        rows[v].append(k)
    return rows


# --- what is known to change ----------------------------------------------------------------------


def add_capacities(into: Arrays, at: Layout, since: float) -> None:
    """What each link can do, and the work it can have done up to each change of that."""
    starts, when, work, rate = [0], [], [], []
    for link in at.links:
        t0, done, c0 = 0.0, 0.0, link.capacity
        when.append(t0)
        work.append(done)
        rate.append(c0)
        for t1, c1 in link.schedule:
            done += c0 * (t1 - t0)
            t0, c0 = t1, c1
            when.append(t0)
            work.append(done)
            rate.append(c0)
        starts.append(len(when))
    into.floats(s.OCAP, [_capacity_before(link, since) for link in at.links])
    into.floats(s.OSEGT, when)
    into.floats(s.OSEGS, work)
    into.floats(s.OSEGC, rate)
    into.ints(s.JSEG, starts)


def _capacity_before(link: LinkSpec, since: float) -> float:
    """Return the capacity just before the run: a change at its very start is one like any other."""
    return next((c for t, c in reversed(link.schedule) if t < since), link.capacity)


def collect_changes(
    at: Layout, patterns: dict[str, Any], since: float
) -> tuple[list[Change], dict[int, float]]:
    """Starts, stops, scheduled rates and capacities, at the clock of each flow's first queue.

    And the rates of flows with scheduled ones just before `since`.
    """
    changes: list[Change] = []
    before: dict[int, float] = {}
    for l, link in enumerate(at.links):
        changes += [(time, s.CAPACITY, l, value) for time, value in link.schedule]
    for i, f in enumerate(at.flows):
        shift = f.access_delay
        for begin, stop in f.intervals:
            if begin >= 0.0:
                changes.append((begin + shift, s.FLOW_ON, i, 0.0))
            elif shift > 0.0 and (at.locate or at.hybrid):
                changes.append((shift, s.FLOW_RELEASE, i, 0.0))
            if math.isfinite(stop):
                changes.append((stop + shift, s.FLOW_OFF, i, 0.0))
        if f.name in patterns:
            if not (
                isinstance(f.pattern, Modulated) and f.pattern.kind == "noise"
            ):  # else its law sets the rate
                at.rate_state[i] = -2
            drawn = zip(*patterns[f.name], strict=True)
            rates = [(max(time, 0.0) + shift, value) for time, value in drawn]
            changes += [(time, s.FLOW_RATE, i, value) for time, value in rates]
            before[i] = next((value for time, value in reversed(rates) if time < since), 0.0)
    now = since * (1.0 - 1e-11)  # what happens at the start again does no harm
    return sorted(
        (change for change in changes if change[0] >= now), key=lambda change: change[0]
    ), before


def add_changes(into: Arrays, at: Layout, changes: list[Change]) -> None:
    """The list of changes."""
    into.head[s.NSCHED] = len(changes)
    into.floats(s.OSCHED, [number for time, _, _, value in changes for number in (time, value)])
    into.ints(s.JSCHED, [number for _, kind, index, _ in changes for number in (kind, index)])
    into.ints(s.JRATE, at.rate_state)


# --- jumps and ticks, in the order in which simultaneous ones happen ------------------------------


def event_rows(at: Layout, head: Sequence[int]) -> list[list[int]]:
    """One row of `slots.JHY` for each jump and tick of each flow and link.

    Parameters
    ----------
    head : sequence of int
        The first integers of the workspace, with the offsets of signals filled in.
    """
    rows = [row for g in at.link_groups for row in _rows(at, g, False, head)]
    rows += [row for g in at.groups for row in _rows(at, g, True, head)]

    def order(row: list[int]) -> tuple[int, int, int]:
        owner = row[s.HOWNER]
        of_source = row[s.HKIND] in (s.SOURCE_TICK, s.SOURCE_JUMP)
        return row[s.HKIND], at.order[owner] if of_source else owner, row[s.HWANT]

    return sorted(rows, key=order)


def _rows(at: Layout, g: Group, source: bool, head: Sequence[int]) -> Iterator[list[int]]:
    law, row = g.law, [0] * s.HSIZE
    if not law.jumps and not law.ticks:
        return
    jump_kind, tick_kind = (s.SOURCE_JUMP, s.SOURCE_TICK) if source else (s.LINK_JUMP, s.LINK_TICK)
    row[s.HKERNEL] = event_kernel_address(law)
    row[s.HN], row[s.HNZ], row[s.HCOUNT] = g.size, len(g.own), -1
    row[s.HSU] = len(at.flows) if source else len(at.links)
    first_condition = g.switches + (count_switches(law) - len(law.jumps)) * g.size
    for member, owner in enumerate(g.members):
        row[s.HOWNER] = owner
        row[s.HZ], row[s.HP] = g.states + member, g.parameters + member
        row[s.HU] = head[s.OU if source else s.OUL] + g.first + member
        for want, jump in enumerate(law.jumps):
            row[s.HWANT], row[s.HKIND], row[s.HONCE] = want, jump_kind, jump.once
            row[s.HTELLS] = _tells(law, jump.reset)
            row[s.HSWITCH] = first_condition + want * g.size + member
            yield list(row)
        row[s.HKIND], row[s.HONCE], row[s.HSWITCH] = tick_kind, 0, -1
        for want, tick in enumerate(law.ticks, len(law.jumps)):
            row[s.HWANT], row[s.HCONST], row[s.HTELLS] = (
                want,
                _constant(law, tick),
                _tells(law, tick.update),
            )
            yield list(row)
        row[s.HCONST] = 0


def _tells(law: Law, changed: Iterable[Any]) -> bool:
    """Whether what a router says depends on one of the states that change."""
    said = {
        s for name in ("offer", *REPORTING) if name in law.out for s in symbols_of(law.out[name])
    }
    return not said.isdisjoint(changed)


def _constant(law: Law, tick: Tick) -> bool:
    return bool(symbols_of(tick.every) <= {*law.params, *law.constants})


def jump_switches(at: Layout, rows: list[list[int]]) -> list[int]:
    """Of each switch, the number of the jump whose condition it is, or what it is else."""
    which = [s.NO_JUMP] * at.n_switches
    for g in (*at.groups, *at.link_groups):
        for n in bound_switches(g.law):
            first = g.switches + n * g.size
            which[first : first + g.size] = [s.OF_BOUND] * g.size
    for k, row in enumerate(rows):
        if row[s.HSWITCH] >= 0:
            which[row[s.HSWITCH]] = k
    return which


def owner_of(row: Any) -> tuple[bool, int]:
    """Whether the owner of a row is a flow, and its number."""
    return row[s.HKIND] in (s.SOURCE_TICK, s.SOURCE_JUMP), int(row[s.HOWNER])


def event_of(at: Layout, row: Any) -> str:
    """What a row is, for messages."""
    source, owner = owner_of(row)
    spec: Any = at.flows[owner] if source else at.links[owner]
    kind = "jump" if row[s.HKIND] > s.SOURCE_TICK else "tick"
    number = int(row[s.HWANT]) - (len(spec.law.jumps) if kind == "tick" else 0)
    return f"{kind} {number} of {'flow' if source else 'link'} {spec.name!r} ({spec.law.name})"


# --- natural sizes --------------------------------------------------------------------------------


def state_sizes(at: Layout, work: list[float]) -> list[float]:
    """The natural size of each state, of which `atol` is a fraction: capacity, its work in a base
    RTT, one.

    Parameters
    ----------
    at : Layout
    work : list of float
        What each link does in a base RTT: `work_sizes`.
    """
    scale = [1.0] * at.n_states
    scale[at.backlog : at.backlog + len(at.links)] = work
    for group in at.groups:
        for j, z in enumerate(group.own):
            if group.law.units[z] == "bit/s":
                for n, i in enumerate(group.members):
                    top = max(at.links[l].capacity for l in at.route(i))
                    scale[group.states + j * group.size + n] = top
    return scale


def work_sizes(at: Layout) -> list[float]:
    """What each link does in the longest base RTT of its flows [bit]."""
    work = [0.0] * len(at.links)
    for route, access, back in at.classes:
        trip = max(access + sum(at.links[l].delay for l in route) + back, 1e-3)
        for l in route:
            work[l] = max(work[l], at.links[l].capacity * trip)
    return [
        bits if bits > 0.0 else link.capacity for bits, link in zip(work, at.links, strict=True)
    ]
