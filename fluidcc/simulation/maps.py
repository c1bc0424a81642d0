"""Who meets whom: flows and classes, links and the next links; and how far a breaking point is followed."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np

from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.arrays import Arrays
from fluidcc.simulation.feedback import acts
from fluidcc.simulation.layout import Layout

__all__ = ["add_maps", "add_nodes", "hops_at_once"]


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
    into.head[s.HOPS], into.head[s.SPREAD] = _followed(tuple(map(tuple, nexts)), tuple(map(ends.count, range(nl))))
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


@lru_cache(maxsize=64)  # the links of a network stay as they are while its numbers change, as they do in a sweep
def _followed(nexts: tuple[tuple[int, ...], ...], ends: tuple[int, ...], most: int = 64) -> tuple[int, int]:
    """Hops over which a breaking point is followed, once round all links at most, and its landings at sources.

    `ends` has the number of feedback classes whose path ends at each link. In a mesh the hops are cut where they would
    make more than `most` landings at links.
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
    """Hops without propagation delay worth the name, over the longest route; at least one if a router tells at once."""
    hops = max((sum(at.links[l].delay < 1e-9 for l in route[:-1]) for route, _, _ in at.classes), default=0)
    return max(hops, int(any(at.nodes[n].offset < 1e-9 for of in at.told for n in of)))


def _inverse(values: list[int], count: int) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(count)]
    for k, v in enumerate(values):
        rows[v].append(k)
    return rows
