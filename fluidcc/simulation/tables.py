"""The tables of a workspace: scalars and arrays of the solver's state, by name, from a layout.

There is who meets whom, what is known beforehand to change, jumps and ticks, and the natural sizes
of which tolerances are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fluidcc.base.units import dimension
from fluidcc.laws import Law, Tick
from fluidcc.laws.kernels import (
    bound_switches,
    count_switches,
    event_kernel_address,
    lag_kernel_address,
)
from fluidcc.laws.past import lags
from fluidcc.laws.steady import trackers
from fluidcc.network.parameters import evaluated
from fluidcc.network.specs import LinkSpec
from fluidcc.numerics.fluid import state as s
from fluidcc.simulation.layout import NO_ECN, Group, Layout, acts, base_delay, gives_of, inverse
from fluidcc.symbols import REPORTING, packet, symbols_of

Tables = dict[str, Any]  # by the names that scalars and arrays have in the solver's state
Change = tuple[float, int, int, float]  # time, kind, index, value


# --- who meets whom -------------------------------------------------------------------------------


def rows_of(starts: str, values: str, rows: list[list[int]]) -> Tables:
    """Rows of different lengths: where each starts, then all their numbers."""
    return {starts: [0, *accumulate(map(len, rows))], values: [*chain.from_iterable(rows)]}


def nodes(at: Layout) -> Tables:
    """The places where queues are inverted, and routers heard."""
    return {
        "node_parent": [node.parent for node in at.nodes],
        "node_link": [node.link for node in at.nodes],
        "node_gives": [at.gives(node) if at.apart else 0 for node in at.nodes],
        "node_offset": [node.offset for node in at.nodes],
        "node_late": [node.late for node in at.nodes],
        "every_node": range(len(at.nodes)),
    }


def maps(at: Layout) -> Tables:
    """Flows, classes, links and what leads from one to the other."""
    nf, nl = len(at.flows), len(at.links)
    routes = [at.route(i) for i in range(nf)]
    pairs = {(a, b) for route in routes for a, b in pairwise(route)}
    nexts = [sorted(b for a, b in pairs if a == l) for l in range(nl)]
    ends = [route[-1] for route, _, _ in at.classes]
    hops, spread = _followed(tuple(map(tuple, nexts)), tuple(map(ends.count, range(nl))))
    return {
        "flow_class": at.flow_class,
        "leaf": [path[-1] for path in at.paths],
        "first_link": [route[0] for route in routes],
        "feeds": at.feeds,
        "no_ecn": [*(not f.ecn for f in at.flows), *(NO_ECN in parts for parts in at.fed)],
        "own_rate": at.own_rate,
        "stream": [*chain.from_iterable(at.streams)],
        "has_queue": [link.law.queue is not None for link in at.links],
        "class_link": [route[0] for route, _, _ in at.classes],
        "acting": [at.acting.index(l) if l in at.acting else -1 for l in range(nl)],
        "gives": [gives_of(link.law) for link in at.links],
        "late": [link.stamp == "departure" for link in at.links],
        "hears": at.hears,
        "mode": [s.HELD] * nl,
        **rows_of("next_start", "next_link", nexts),
        "landed_time": [-math.inf] * (nl + len(at.classes) + len(at.lags)),
        **rows_of("ending_start", "ending", inverse(ends, nl)),
        "most_hops": hops,
        "spread": spread,
        **rows_of("class_flow_start", "class_flow", inverse(at.flow_class, len(at.classes))),
        **rows_of("path_start", "path_node", at.paths),
        **rows_of("told_start", "told_node", at.told),
        # flows are numbered group by group
        "flow_state": [g.states + n for g in at.groups for n in range(g.size)],
        "flow_stride": [g.size for g in at.groups for _ in g.members],
        "flow_states": [len(g.own) for g in at.groups for _ in g.members],
    }


def own_pasts(at: Layout) -> Tables:
    """What flows know of their own past, and since when they have one."""
    groups, first = [], 0
    for k, g in enumerate(at.groups):
        if count := len(lags(g.law)) * g.size:
            groups.append([lag_kernel_address(g.law), k, first])
            first += count
    flows = [flow for flow, _ in at.lags]
    return {
        "n_lags": len(at.lags),
        "n_lag_groups": len(groups),
        "n_pasts": len(at.pasts),
        "flow_begun": [f.access_delay for f in at.flows],
        "lag_group": [*chain.from_iterable(groups)],
        "lag": len(at.lags),
        "lag_flow": flows,
        "lag_of": [_looked_up(at, pairs) for _, pairs in at.lags],
        **rows_of("flow_lag_start", "flow_lag", inverse(flows, len(at.flows))),
        "recall_start": [0, *accumulate(len(pairs) // 2 for _, pairs in at.lags)],
        "recall": [*chain.from_iterable(pairs for _, pairs in at.lags)],
        "past_source": at.pasts,
        "past_first": len(at.pasts),
        "node_past": 5 * len(at.pasts),
    }


def _looked_up(at: Layout, pairs: list[int]) -> int:
    """What of a flow a lag is of, as bits."""
    kinds = {s.OF_STATES if at.pasts[slot] >= 0 else s.OF_SIGNALS for slot in pairs[1::2]}
    return sum(kinds)


def accounts(at: Layout) -> Tables:
    """States that keep account. Their news may leap where a link may drop all that comes while its
    queue drains. Of delays that are taken for constant all that matters is whether they may
    together fall by a second a second.
    """
    rows: list[int] = []
    parts: list[float] = []
    leaping = any(acts(link.law) & s.DROPS for link in at.links)
    frozen = at.frozen is not None and not any(len(flow.route) > 1 for flow in at.flows)
    for g in () if frozen else at.groups:
        for z, account in trackers(g.law).items():
            for n, (i, flow) in enumerate(zip(g.members, g.specs, strict=True)):
                known = {**flow.law.params, packet: flow.packet}
                least = g.law.lower.get(z, -math.inf)
                rows += [i, g.states + g.own.index(z) * g.size + n]
                parts += [evaluated(f, known) for f in (account.delay, account.data)]
                parts.append(float(least) if getattr(least, "is_number", False) else -math.inf)
    return {
        "n_accounts": len(rows) // 2,
        "n_leaping": len(rows) // 2 if leaping else 0,
        "account": rows,
        "account_part": parts,
        "heard": [-math.inf] * (2 * len(at.classes)),
    }


# the links of a network stay as they are while its numbers change, as they do in a sweep
@lru_cache(maxsize=64)
def _followed(
    nexts: tuple[tuple[int, ...], ...], ends: tuple[int, ...], most: int = 64
) -> tuple[int, int]:
    """Hops over which a breaking point is followed, once round all links at most, and its landings
    at sources.

    `ends` has the number of feedback classes whose path ends at each link. In a mesh the hops are
    cut where they would make more than `most` landings at links.
    """
    n, onward = len(nexts), [*chain.from_iterable(nexts)]
    starts = [0, *accumulate(map(len, nexts))]
    fan = csr_array((np.ones(len(onward)), onward, starts), shape=(n, n))
    # Ways of so many hops from each link, and those of them that end where a class does.
    ways, ending = np.ones(n), np.array(ends, dtype=float)
    landings, spread = np.zeros(n), ending
    hops = 0
    while hops < n:
        ways, ending = fan @ ways, fan @ ending
        landings = landings + ways
        if landings.max() > most:
            break
        spread = spread + ending
        hops += 1
    return hops, max(sum(ends), int(spread.max(initial=0.0)))


def hops_at_once(at: Layout) -> int:
    """Hops without propagation delay worth the name, over the longest route; at least one if a
    router tells at once.
    """
    none = 1e-9 * natural_time(at)
    hops = max(
        (sum(at.links[l].delay < none for l in route[:-1]) for route, _, _ in at.classes), default=0
    )
    return max(hops, int(any(at.nodes[n].offset < none for of in at.told for n in of)))


# --- what is known to change ----------------------------------------------------------------------


def capacities(at: Layout, since: float) -> Tables:
    """What each link can do, and the work it can have done up to each change of that."""
    starts, when, work, rate = [0], [], [], []
    for link in at.links:
        t0, done, c0 = 0.0, 0.0, link.capacity
        for t1, c1 in ((t0, c0), *link.schedule):
            done += c0 * (t1 - t0)
            t0, c0 = t1, c1
            when.append(t0)
            work.append(done)
            rate.append(c0)
        starts.append(len(when))
    return {
        "capacity": [_capacity_before(link, since) for link in at.links],
        "segment_time": when,
        "segment_work": work,
        "segment_capacity": rate,
        "segment_start": starts,
    }


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
            drawn = zip(*patterns[f.name], strict=True)
            rates = [(max(time, 0.0) + shift, value) for time, value in drawn]
            changes += [(time, s.FLOW_RATE, i, value) for time, value in rates]
            before[i] = next((value for time, value in reversed(rates) if time < since), 0.0)
    now = since * (1.0 - 1e-11)  # what happens at the start again does no harm
    return sorted(
        (change for change in changes if change[0] >= now), key=lambda change: change[0]
    ), before


def scheduled(changes: list[Change]) -> Tables:
    """The list of changes."""
    return {
        "n_scheduled": len(changes),
        "scheduled": [number for time, _, _, value in changes for number in (time, value)],
        "scheduled_kind": [number for _, kind, index, _ in changes for number in (kind, index)],
    }


# --- jumps and ticks, in the order in which simultaneous ones happen ------------------------------


def event_rows(at: Layout) -> list[list[int]]:
    """One row of `State.rule` for each jump and tick of each flow and link."""
    rows = [row for g in at.every_group for row in _rows(at, g)]

    def order(row: list[int]) -> tuple[int, int, int]:
        owner = row[s.HOWNER]
        of_source = row[s.HKIND] in (s.SOURCE_TICK, s.SOURCE_JUMP)
        return row[s.HKIND], at.order[owner] if of_source else owner, row[s.HWANT]

    return sorted(rows, key=order)


def _rows(at: Layout, g: Group) -> Iterator[list[int]]:
    law, row, source = g.law, [0] * s.HSIZE, g.kind == "flow"
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
        row[s.HU] = g.first + member
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
    which = [s.NO_JUMP] * len(at.switch_owner)
    for g in at.every_group:
        for n in bound_switches(g.law):
            first = g.switches + n * g.size
            which[first : first + g.size] = [s.OF_BOUND] * g.size
    for k, row in enumerate(rows):
        if row[s.HSWITCH] >= 0:
            which[row[s.HSWITCH]] = k
    return which


@dataclass(frozen=True)
class Event:
    """A jump or tick of the flow or link `name`: number `rule` among those of its law."""

    kind: str
    owner: str
    name: str
    law: str
    rule: int
    access_delay: float

    def __str__(self) -> str:
        return f"{self.kind} {self.rule} of {self.owner} {self.name!r} ({self.law})"


def event_of(at: Layout, row: Sequence[int]) -> Event:
    """What a row of `State.rule` is."""
    source = row[s.HKIND] in (s.SOURCE_TICK, s.SOURCE_JUMP)
    spec: Any = at.flows[row[s.HOWNER]] if source else at.links[row[s.HOWNER]]
    kind = "jump" if row[s.HKIND] > s.SOURCE_TICK else "tick"
    rule = row[s.HWANT] - (len(spec.law.jumps) if kind == "tick" else 0)  # ticks come after jumps
    access = spec.access_delay if source else 0.0
    return Event(kind, "flow" if source else "link", spec.name, spec.law.name, rule, access)


# --- natural sizes --------------------------------------------------------------------------------


def _trips(at: Layout) -> list[float]:
    """The base RTT of each class [s]."""
    return [access + base_delay(at, k) + back for k, (_, access, back) in enumerate(at.classes)]


def natural_time(at: Layout) -> float:
    """What times are short or long beside, in any unit: 20 of the longest base RTT, or without
    delays of the time that a packet takes.
    """
    alone = max(f.packet for f in at.flows) / min(link.capacity for link in at.links)
    return 20.0 * (max(_trips(at)) or alone)


def state_sizes(at: Layout, work: list[float]) -> list[float]:
    """The natural size of each state, of which `atol` is a fraction: in its unit, of a capacity and
    a base RTT; of a plain number `_size`.

    Parameters
    ----------
    at : Layout
    work : list of float
        What each link does in a base RTT: `work_sizes`.
    """
    scale = [1.0] * at.n_states
    scale[at.backlog : at.backlog + len(at.links)] = work
    for g in at.every_group:
        for j, z in enumerate(g.own):
            unit = dimension(g.law.units[z])
            for n, (i, spec) in enumerate(zip(g.members, g.specs, strict=True)):
                size = _size(spec.law.initial.get(z))
                if unit.bit or unit.s:
                    route = at.route(i) if g.kind == "flow" else (i,)
                    top = max(at.links[l].capacity for l in route)
                    trip = max(work[l] / at.links[l].capacity for l in route)
                    size = top**unit.bit * trip ** (unit.bit + unit.s)
                scale[g.states + j * g.size + n] = size
    return scale


def _size(first: Any) -> float:
    """Of a plain number that begins with `first`, an expression if its law says so: one, or that
    where it is less.
    """
    return min(1.0, abs(float(first)) or 1.0) if getattr(first, "is_number", False) else 1.0


def work_sizes(at: Layout) -> list[float]:
    """What each link does in the longest base RTT of its flows [bit]."""
    least = 1e-3 * natural_time(at)
    work = [least * link.capacity for link in at.links]
    for (route, _, _), trip in zip(at.classes, _trips(at), strict=True):
        for l in route:
            work[l] = max(work[l], at.links[l].capacity * trip)
    return work
