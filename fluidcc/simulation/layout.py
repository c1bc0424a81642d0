"""From a network to the solver's workspace: who reads what, when, and where it stands in the flat
arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from sympy import Pow

from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law, Source
from fluidcc.laws.early_loss import sparing
from fluidcc.laws.kernels import count_switches
from fluidcc.laws.parts import per_structure, told_apart, used
from fluidcc.laws.past import lags, pasts, remembered
from fluidcc.laws.steady import grouped, trackers
from fluidcc.network.network import Network, require_flows
from fluidcc.network.patterns import Modulated
from fluidcc.network.specs import FlowSpec, LinkSpec, resolve_pattern
from fluidcc.network.wired import Wired
from fluidcc.numerics.fluid import state as s
from fluidcc.symbols import (
    OF_FLOWS,
    REPORTING,
    SOURCE_INPUTS,
    SUDDEN,
    Let,
    e,
    e_b,
    no_ecn,
    offer_max,
    offer_min,
    packet,
    symbols_of,
    unfold,
    x_tau,
    y,
)  # fmt: skip

#: what a link law may give that is not the solver's own
ACTING = {"drop": s.DROPS, "offer": s.OFFERS, "reports": s.REPORTS}

_GIVEN = {"mark", "price", *ACTING}
_CARRIED = {*SOURCE_INPUTS[: SOURCE_INPUTS.index(e_b)]}  # what data bring to a source

# sources whose own kinks are located as events; with more, error control sees to them
LOCATE_LIMIT = 64


# Of which data: of all, where the link treats them alike; or of those that can be marked, or cannot
EITHER, ECN, NO_ECN = range(3)


@dataclass(frozen=True)
class Node:
    """A place where a queue is inverted, or a router heard: see `numerics.fluid.reads`, `rhs`; for
    which data.

    Where a link marks at departure a node of the time of that, `late` = state.MARK_ONLY, stands
    before its queue's, state.WITHOUT_MARK.
    """

    parent: int
    link: int
    offset: float
    ecn: int = EITHER
    late: int = 0


@dataclass(frozen=True)
class Group:
    """Flows or links with laws of equal structure, side by side in the workspace.

    Attributes
    ----------
    kind : str
        ``"flow"`` or ``"link"``.
    law : Law
        Of the first one.
    members : list of int
    specs : list of FlowSpec or LinkSpec
        Of each member.
    own : tuple of Symbol
        States that the kernel integrates.
    first : int
        Place of the first member among those of all groups of its kind.
    states, parameters, switches : int
        Where the group's own begin among those of all groups.
    """

    kind: str
    law: Law
    members: list[int]
    specs: list[Any]
    own: tuple[Any, ...]
    first: int
    states: int
    parameters: int
    switches: int

    @property
    def size(self) -> int:
        return len(self.members)


@dataclass
class Layout:
    """Static structure of a network, by index instead of by name."""

    wired: Wired
    frozen: Mapping[str, float] | None
    flows: list[FlowSpec] = field(default_factory=list)
    links: list[LinkSpec] = field(default_factory=list)
    order: list[int] = field(default_factory=list)  # internal flow -> position in the network
    groups: list[Group] = field(default_factory=list)
    link_groups: list[Group] = field(default_factory=list)
    backlog: int = 0
    n_states: int = 0
    n_parameters: int = 0
    # of each switch its flow, or -1 - its link
    switch_owner: list[int] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    classes: list[tuple[tuple[int, ...], float, float]] = field(default_factory=list)
    # by class: which of the data at each link of its route are its own
    parts: list[tuple[int, ...]] = field(default_factory=list)
    paths: list[list[int]] = field(default_factory=list)
    flow_class: list[int] = field(default_factory=list)
    aggregates: list[tuple[int, ...]] = field(default_factory=list)
    fed: list[tuple[int, ...]] = field(default_factory=list)  # by aggregate: parts of its flows
    feeds: list[int] = field(default_factory=list)  # by flow: its aggregate, -1 without one
    # leaf, aggregate (or trunk), link
    streams: list[tuple[int, int, int]] = field(default_factory=list)
    rate_state: list[int] = field(default_factory=list)
    own_rate: list[int] = field(default_factory=list)
    # of what is remembered of flows, a state or -1 - the place of a signal
    pasts: list[int] = field(default_factory=list)
    # by lag: its flow, and the pairs of `State.recall`
    lags: list[tuple[int, list[int]]] = field(default_factory=list)
    # links that drop before their queue, or tell sources something
    acting: list[int] = field(default_factory=list)
    # by class: whether some source goes by what data carry
    hears: list[bool] = field(default_factory=list)
    # by class: nodes that look at what links tell
    told: list[list[int]] = field(default_factory=list)
    # by flow: its first switch at which another offer is the least or the largest, -1: none
    rivals: list[int] = field(default_factory=list)
    counted: bool = False  # some link's law knows of the flows that cross it
    refit: bool = False
    echo: bool = False  # some rate follows at once what comes back: no state smooths it
    locate: bool = True
    hybrid: bool = False  # some law jumps or ticks
    marking: bool = False  # some link marks or drops
    mixed: bool = False  # some link's law knows of flows without ECN, as one that drops of them
    apart: bool = False  # so, or some law hears what is marked apart from what is lost
    pricing: bool = False
    lossy: bool = False  # some buffer is finite

    @property
    def net(self) -> Network:
        """The network."""
        return self.wired.net

    @property
    def every_group(self) -> list[Group]:
        """Groups of flows, then of links."""
        return [*self.groups, *self.link_groups]

    def route(self, i: int) -> tuple[int, ...]:
        """Links of flow `i`, by index."""
        return self.classes[self.flow_class[i]][0]

    def gives(self, node: Node) -> int:
        """What a link gives the data of a node, as bits of `numerics.fluid.state`."""
        given = gives_of(self.links[node.link].law)
        return s.ALONE | s.MARKS * (node.ecn == ECN) if node.ecn and given & s.MIXED else given

    def patterns(self, seed: int, until: float) -> dict[str, Any]:
        """Times [s] and rates [bit/s] of flows that send by a pattern, by name."""
        return {
            f.name: resolve_pattern(f, seed, until) for f in self.flows if f.pattern is not None
        }

    @property
    def own_rates(self) -> int:
        """How many flows look at their own past rate."""
        return sum(slot >= 0 for slot in self.own_rate)

    def rate_place(self, slot: int) -> int:
        """Where a record has the quartic of an aggregate of rates, or after those of an own one."""
        return s.RLINKS + len(self.links) * s.LSIZE + 5 * slot

    def acted_place(self, link: int) -> int:
        """Where a record has the quartics of an acting link, what it drops first."""
        before = len(self.aggregates) + self.own_rates + s.XSIZE * self.acting.index(link)
        return self.rate_place(before)

    @property
    def record_size(self) -> int:
        """Numbers in a record."""
        rest = len(self.aggregates) + self.own_rates + s.XSIZE * len(self.acting)
        return self.rate_place(rest + len(self.pasts))

    @property
    def signals(self) -> int:
        """How many signals flows have: those of the vocabulary, then their own pasts."""
        return s.USIZE + max((len(pasts(g.law)) for g in self.groups), default=0)


def require_runnable(net: Network) -> None:
    """Refuse what is no network, or none that can be integrated.

    Raises
    ------
    InvalidInput
        Naming what is wrong, and what would be right.
    """
    require_flows(net)
    wired = Wired.of(net)
    for f, (_, forward, back, _) in zip(wired.flows, wired.delays, strict=True):
        if forward + back <= 0.0 and _needs_delay(f.law):
            raise InvalidInput(
                f"flow {f.name!r} has no propagation delay on its way there and back, and "
                f"{f.law.name} hears itself at "
                "once or divides by that (an algebraic loop); give a link delay, access_delay or "
                "return_delay above 0"
            )


@per_structure
def _needs_delay(law: Law) -> bool:
    """Whether a rate follows the network at once, or the law divides by the round trip."""
    if symbols_of(law.out["rate"]) & _CARRIED:
        return True
    inverse = (
        p.base
        for _, f in law.expressions()
        for p in unfold(f).atoms(Pow)
        if p.exp.is_nonnegative is not True
    )
    return any(base.subs({e: 0, e_b: 0}) == 0 for base in inverse)


def lay_out(net: Network, frozen: Mapping[str, float] | None = None) -> Layout:
    """Group the flows by law, share what they read, and number everything.

    Parameters
    ----------
    net : Network
    frozen : mapping of str to float, optional
        Constant queueing delay [s] of each link for the lags of the frozen model; None for FIFO
        delays.
    """
    at = Layout(Wired.of(net), frozen)
    at.links = [
        replace(link, law=sparing(link.law, True, f"link {link.name!r}")) if mixed else link
        for link, mixed in zip(at.wired.links, at.wired.mixed, strict=True)
    ]
    _group_flows(at)
    _group_links(at)
    _classify(at)
    _read_nodes(at)
    _stream_nodes(at)
    _own_rates(at)
    _tellers(at)
    _own_pasts(at)
    laws = [g.law for g in at.every_group]
    at.hybrid = any(law.jumps or law.ticks for law in laws)
    at.locate = len(at.flows) <= LOCATE_LIMIT or any(law.jumps for law in laws)
    at.refit = (
        bool(at.streams)
        or any(source < 0 for source in at.pasts)
        or any(_varies(g.law) and at.rate_state[g.members[0]] < 0 for g in at.groups)
    )
    at.refit = at.refit or any(set(g.law.out) & _GIVEN for g in at.link_groups)
    outs = {name for g in at.link_groups for name in g.law.out}
    at.marking, at.pricing = bool({"mark", "drop"} & outs), "price" in outs
    at.mixed = any(map(any, at.parts))
    at.apart = at.mixed or any(told_apart(g.law) for g in at.groups)
    at.lossy = any(math.isfinite(link.buffer) for link in at.links)
    at.echo = any(symbols_of(g.law.out["rate"]) & {*SUDDEN} for g in at.groups)
    for i, f in enumerate(at.flows):
        noise = isinstance(f.pattern, Modulated) and f.pattern.kind == "noise"
        if f.pattern is not None and not noise:  # of which the law sets the rate
            at.rate_state[i] = -2
    return at


def _group_flows(at: Layout) -> None:
    specs = [begun(flow) for flow in at.net.flows.values()]
    for members in grouped([f.law for f in specs]):
        first, count, law = len(at.order), len(members), specs[members[0]].law
        at.order += members
        at.flows += [specs[i] for i in members]
        rate = law.out["rate"]
        while isinstance(rate, Let):
            rate = rate.definition
        state = at.n_states + law.states.index(rate) * count if rate in law.states else -1
        at.rate_state += [state + j if state >= 0 else -1 for j in range(count)]
        _add_group(at, "flow", [*range(first, first + count)], law.states)
    at.backlog = at.n_states
    at.n_states += len(at.links)


def _group_links(at: Layout) -> None:
    for members in grouped([link.law for link in at.links]):
        law = at.links[members[0]].law
        own = tuple(z for z in law.states if z != law.queue)
        if own or law.jumps or law.ticks or set(law.out) & _GIVEN:
            _add_group(at, "link", members, own)


def _add_group(at: Layout, kind: str, members: list[int], own: tuple[Any, ...]) -> None:
    every, groups = (at.flows, at.groups) if kind == "flow" else (at.links, at.link_groups)
    specs: list[Any] = [every[i] for i in members]
    law, count, first = specs[0].law, len(members), sum(g.size for g in groups)
    places = first, at.n_states, at.n_parameters, len(at.switch_owner)
    groups.append(Group(kind, law, members, specs, own, *places))
    at.n_states += len(own) * count
    at.n_parameters += len(law.params) * count
    owners = members if kind == "flow" else [-1 - l for l in members]
    at.switch_owner += owners * count_switches(law)


def _varies(law: Law) -> bool:
    return bool(symbols_of(law.out["rate"]) & {*law.states, *SOURCE_INPUTS} - {packet})


def _classify(at: Layout) -> None:
    wired, rows = at.wired, at.wired.row.tolist()
    knows = [no_ecn in used(link.law) for link in at.links]
    ways = [
        ((route, access, back), tuple((ECN if f.ecn else NO_ECN) * knows[l] for l in route))
        for f, route, (access, _, back, _) in zip(
            wired.flows, wired.routes, wired.delays, strict=True
        )
    ]
    known: dict[Any, int] = {}
    for i in at.order:
        at.flow_class.append(known.setdefault(ways[rows[i]], len(known)))
    at.classes, at.parts = [way for way, _ in known], [parts for _, parts in known]


def _held(at: Layout, link: int) -> float:
    return float(at.frozen[at.links[link].name]) if at.frozen is not None else 0.0


def _node(at: Layout, known: dict[Node, int], node: Node) -> int:
    if node not in known:
        known[node] = len(at.nodes)
        at.nodes.append(node)
    return known[node]


def _read_nodes(at: Layout) -> None:
    """The way back from what a source hears to what it sent: one chain of queues for each class."""
    known: dict[Node, int] = {}
    for (route, access, back), parts in zip(at.classes, at.parts, strict=True):
        offset = access + back
        parent = -1
        path = []
        for link, ecn in zip(reversed(route), reversed(parts), strict=True):
            here = at.links[link].delay + _held(at, link)
            offset = offset + here if at.frozen is not None or parent < 0 else here
            late = 0
            if at.links[link].stamp == "departure":
                leaves = Node(parent, link, offset - _held(at, link), ecn, s.MARK_ONLY)
                parent, late = _node(at, known, leaves), s.WITHOUT_MARK
                path.append(parent)
            back_there = 0.0 if late and at.frozen is None else offset
            parent = _node(at, known, Node(parent, link, back_there, ecn, late))
            path.append(parent)
        at.paths.append(path)


def _stream_nodes(at: Layout) -> None:
    """The way back from the arrivals at a later link to the rates at the first one.

    Where all that leaves a link goes to the same next one, that is a trunk, and one stream: what
    left the queue, whoever sent it. So a busy link feeds the next one at exactly its capacity. It
    is marked by -1 - link. A next one that treats some data otherwise has streams of both.
    """
    known = {node: k for k, node in enumerate(at.nodes)}
    routes = [route for route, _, _ in at.classes]
    ways = sorted({way for way in zip(routes, at.parts, strict=True) if len(way[0]) > 1})
    at.aggregates, at.fed = [route for route, _ in ways], [parts for _, parts in ways]
    place = {way: g for g, way in enumerate(ways)}
    of = [place.get(way, -1) for way in zip(routes, at.parts, strict=True)]
    at.feeds = [of[k] for k in at.flow_class]
    trunks = {} if at.frozen is not None else trunks_of(routes)
    trunks = {
        link: after for link, after in trunks.items()
        if no_ecn not in used(at.links[after].law)
    }  # fmt: skip
    for link, after in trunks.items():
        at.streams.append(
            (_node(at, known, Node(-1, link, at.links[link].delay)), -1 - link, after)
        )
    for g, (route, parts) in enumerate(ways):
        for position in range(1, len(route)):
            if route[position - 1] in trunks:
                continue
            parent, offset = -1, 0.0
            if at.frozen is not None:
                offset = sum(at.links[l].delay + _held(at, l) for l in route[:position])
                parent = _node(at, known, Node(-1, route[0], offset, parts[0]))
            else:
                for hop in reversed(range(position)):
                    link = route[hop]
                    node = Node(parent, link, at.links[link].delay, parts[hop])
                    parent = _node(at, known, node)
            at.streams.append((parent, g, route[position]))


def trunks_of(routes: Iterable[tuple[int, ...]]) -> dict[int, int]:
    """The next link of each link whose flows all go on to the same one."""
    after: dict[int, set[int]] = {}
    for route in routes:
        for link, following in zip(route, (*route[1:], -1), strict=True):
            after.setdefault(link, set()).add(following)
    return {
        link: next(iter(ends)) for link, ends in after.items() if len(ends) == 1 and -1 not in ends
    }


def _tellers(at: Layout) -> None:
    """The way from each router that tells something straight back to the sources; and who goes by
    what data carry.
    """
    at.acting = [l for l, link in enumerate(at.links) if acts(link.law)]
    at.counted = any(used(g.law) & {*OF_FLOWS} for g in at.link_groups)
    offered = {offer_min, offer_max}
    heard = {i: used(g.law) for g in at.groups for i in g.members}
    members = inverse(at.flow_class, len(at.classes))
    at.hears = [any(heard[i] & _CARRIED for i in of) for of in members]
    known: dict[Node, int] = {}
    offers = []
    for (route, access, _), of in zip(at.classes, members, strict=True):
        found = _told_lags(at.flows[of[0]].name, [at.links[l] for l in route], access)
        at.told.append([_node(at, known, Node(s.TOLD, route[hop], lag)) for hop, lag in found])
        offers.append(sum(bool(acts(at.links[route[hop]].law) & s.OFFERS) for hop, _ in found))
    for i, k in enumerate(at.flow_class):
        some = heard[i] & offered and offers[k] > 1
        at.rivals.append(len(at.switch_owner) if some else -1)
        at.switch_owner += [i] * (2 * (offers[k] - 1) if some else 0)


def inverse(values: list[int], count: int) -> list[list[int]]:
    """Where each of the first numbers stands, as flows by their class."""
    rows: list[list[int]] = [[] for _ in range(count)]
    for k, v in enumerate(values):
        rows[v].append(k)
    return rows


def _own_rates(at: Layout) -> None:
    slot = 0
    for group in at.groups:
        reads = x_tau in used(group.law)
        at.own_rate += [slot + j if reads else -1 for j in range(group.size)]
        slot += group.size if reads else 0


def _own_pasts(at: Layout) -> None:
    """What is remembered of each flow, and each of its lags as a read node, which is the last."""
    nf = len(at.flows)
    for g in at.groups:
        of = remembered(g.law)
        first = len(at.pasts)
        for z in of:
            state = g.states + g.own.index(z) * g.size if z in g.own else -1
            row = -1 if z in g.own else SOURCE_INPUTS.index(z)
            at.pasts += [state + n if state >= 0 else -1 - (row * nf + g.first + n)
                         for n in range(g.size)]  # fmt: skip
        for lag in lags(g.law):
            rows = [(s.USIZE + k, of.index(one.of)) for k, one in enumerate(pasts(g.law))
                    if one.lag == lag]  # fmt: skip
            for n in range(g.size):
                pairs = [(row * nf + g.first + n, first + k * g.size + n) for row, k in rows]
                at.lags.append((g.first + n, [*chain.from_iterable(pairs)]))
                at.nodes.append(Node(s.TOLD, at.route(g.first + n)[0], 0.0))


def base_delay(at: Layout, k: int) -> float:
    """Propagation delay of the links of class `k` [s]."""
    return math.fsum(at.links[l].delay for l in at.classes[k][0])


def compared_quartics(at: Layout) -> tuple[list[int], list[int]]:
    """Where a record has the quartics by which records are compared (backlog, arrivals and marks of
    each link, then aggregates of rates), and where the others, which show in the states.
    """
    kinds = [s.LB, s.LY, *([s.LMARK] if at.marking else [])]
    links = [s.RLINKS + l * s.LSIZE for l in range(len(at.links))]
    ends = range(at.rate_place(0), at.record_size, 5)
    compared = [*(b + k for b in links for k in kinds), *ends[: len(at.aggregates)]]
    prices = [b + s.LPRICE for b in links] if at.pricing else []
    return compared, [*prices, *ends[len(at.aggregates) :]]


# --- links that act on their own ------------------------------------------------------------------


def acts(law: Law) -> int:
    """What a link law does on its own, as bits of `slots`."""
    return sum(bit for name, bit in ACTING.items() if name in law.out)


def gives_of(law: Law) -> int:
    """The same, and whether it marks, and drops in place of that of some flows."""
    mixed = law.out.get("drop") == no_ecn * law.out.get("mark", 1)
    return acts(law) | s.MARKS * ("mark" in law.out) | s.MIXED * mixed


def _told_lags(flow: str, route: Sequence[LinkSpec], access: float) -> list[tuple[int, float]]:
    """The hops of a route that tell sources something, and how long ago they said what is heard now
    [s].

    A class's clock is that of its first queue, an access delay after that of its sources.

    Raises
    ------
    InvalidInput
        If more links report than a source keeps reports of, or a loop has no delay.
    """
    found, lag = [], 2 * access
    for hop, link in enumerate(route):
        if acts(link.law) & (s.OFFERS | s.REPORTS):
            if not lag > 0.0 and _by_arrivals(link.law):
                raise InvalidInput(
                    f"flow {flow!r} is beside link {link.name!r}, which tells it at once what "
                    "follows from the rate "
                    "that arrives, a loop without any delay; give the flow an access_delay above 0"
                )
            found.append((hop, lag))
        lag += link.delay
    reporters = [route[hop].name for hop, _ in found if acts(route[hop].law) & s.REPORTS]
    if len(reporters) > s.REPORTERS:
        raise InvalidInput(
            f"flow {flow!r} crosses {len(reporters)} links that report, and a source keeps a rate "
            f"for {s.REPORTERS} of "
            "them; let those that never are the narrowest drop without reporting, as "
            "fluidcc.PAQMDrop does"
        )
    return found


def _by_arrivals(law: Law) -> bool:
    """Whether what a link tells changes at once with the rate that arrives."""
    return any(y in symbols_of(law.out[name]) for name in ("offer", *REPORTING) if name in law.out)


# --- what was before time 0 -----------------------------------------------------------------------


def begun(flow: FlowSpec) -> FlowSpec:
    """The flow, from time 0 on if it has always been on and keeps account of what it has under way.

    A constant rate before time 0 would fill its path with data that it knows nothing of: an ack
    clock would send them round for ever, beyond its window.
    """
    if not flow.intervals or flow.intervals[0][0] != -math.inf:
        return flow
    if not _keeps_account(flow.law):
        return flow
    return replace(flow, intervals=((0.0, flow.intervals[0][1]), *flow.intervals[1:]))


@per_structure
def _keeps_account(law: Source) -> bool:
    """Whether a law keeps account of what it has under way."""
    return any(account.data != 0 for account in trackers(law).values())
