"""What makes a result of a run doubtful, though the solver has nothing to complain of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc.laws import Law
from fluidcc.laws.steady import few_packets, trackers, window
from fluidcc.simulation.layout import Group, Layout, used
from fluidcc.simulation.workspace import Workspace
from fluidcc.sources.by_bytes import mean_size
from fluidcc.symbols import RTT, e, e_b, offer_min, reports, symbols_of, unfold

MISLED = 0.01  # of the round trip: what a flow may take for propagation too much without a word
_MISLED = (
    "flow {!r} has {when} seen its path empty: the smallest round trip it knows is {:.4g} ms, that "
    "of the empty path {:.4g} ms, so it takes {off:.3g} ms of queue for propagation{more}: start "
    "it on an empty path, or let it look again, by fluidcc.with_pause or "
    "fluidcc.with_windowed_minimum"
)
_BURIED = (
    "the threshold of flow {0!r}, {2:.3g} ms, lies below the smallest queueing delay that it sees, "
    "{1:.3g} ms: it backs off whenever it may{more}, so raise the threshold, or have the others "
    "leave less of a queue"
)


def unheard(at: Layout) -> list[str]:
    """Flows whose law waits for a router, and on whose route none speaks."""
    found: list[str] = []
    for group in at.groups:
        if used(group.law) & {offer_min, *reports}:
            found += [at.flows[i].name for i in group.members if not at.told[at.flow_class[i]]]
    if not found:
        return []
    some = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return [
        f"no router on the route of {some} reports or offers anything: it goes on at the rate it "
        "has without one, so give a link of its route a law that does, such as fluidcc.PAQMECF"
    ]


def doubts(space: Workspace) -> list[str]:
    """Sentences on what to doubt of a finished run, of which the result's attribute ``warnings``
    consists.

    All numbers are read from the workspace, of which a sweep has one for runs of many networks.
    """
    at = space.at
    return [*unheard(at), *_by_bytes(at), *_small_windows(space), *_path_delays(space)]


def looks_at_samples(at: Layout) -> bool:
    """Whether what makes a run doubtful depends on its samples."""
    return any(window(g.law) or next(_keepers(g.law), None) is not None for g in at.groups)


def _by_bytes(at: Layout) -> list[str]:
    """Flows whose losses are dealt out by bytes, on links that drop before their queue and thin all
    flows alike.
    """
    for flow in at.flows:
        if mean_size in flow.law.params and (
            dropping := [n for n in flow.route if "drop" in at.net.links[n].law.out]
        ):
            return [
                f"flow {flow.name!r} hears of drops by bytes, but link {dropping[0]!r} thins all "
                "its flows alike: "
                "where sizes differ much, use the link's marking form"
            ]
    return []


def _path_delays(space: Workspace) -> list[str]:
    """Flows that take a queue for propagation, and flows whose threshold lies below the queue at
    all times.
    """
    at, state = space.at, space.state
    misled: dict[str, tuple[float, float, str]] = {}
    buried: dict[str, tuple[float, float]] = {}
    for group in at.groups:
        keeper = next(_keepers(group.law), None)
        if keeper is None:
            continue
        kept = space.states_of(group, keeper)
        older = [space.states_of(group, z) for z in _handed_on(group.law, keeper)]
        for n, i in enumerate(group.members):
            name, rate, trip = at.flows[i].name, space.rate(i), space.round_trip(i)
            late = slice(len(rate) // 2, None)
            if not np.any(rate[late] > 0):
                continue
            seen = trip - kept[n] if keeper in trackers(group.law) else np.minimum(kept[n], trip)
            for before in older:
                seen = np.minimum(seen, before[n])
            k = at.flow_class[i]
            empty = float(state.class_lag[k] + state.class_delay[k])
            if seen[-1] > (1 + MISLED) * empty and seen[-1] < trip.max() * (1 + MISLED):
                forgets = any(keeper in tick.update for tick in group.law.ticks)
                misled[name] = (float(seen[-1]), empty, "not lately" if forgets else "never")
            if at.flows[i].law.threshold is not None:
                limit = _threshold(space, group, n, trip)
                least = float((trip - seen)[late].min())
                if least > limit:
                    buried[name] = (least, limit)
    return [*_worst(misled, _MISLED), *_worst(buried, _BURIED)]


def _threshold(space: Workspace, group: Group, n: int, trip: NDArray[np.float64]) -> float:
    """Queueing delay above which member `n` backs off [s], where the round trip of the later half
    is largest.
    """
    i = group.members[n]
    law = space.at.flows[i].law
    back = float(space.state.return_delay[space.at.flow_class[i]])
    k = len(trip) // 2 + int(np.argmax(trip[len(trip) // 2 :]))
    known = dict(zip(law.params, space.flow_parameters(i).tolist(), strict=True))
    known |= {z: float(space.states_of(group, z)[n, k]) for z in group.own}
    return float(unfold(law.threshold).xreplace({**known, e: float(trip[k]) - back, e_b: back}))


def _keepers(law: Law) -> Iterator[Symbol]:
    """States that keep the smallest round trip: those of `trackers`, and those that a jump sets to
    the round trip.
    """
    yield from (z for z, account in trackers(law).items() if account.delay == 1)
    like = symbols_of(RTT)
    changes = (
        pair for jump in law.jumps for pair in jump.reset.items() if symbols_of(pair[1]) == like
    )
    yield from (z for z, new in changes if unfold(new) == unfold(RTT))


def _handed_on(law: Law, keeper: Symbol) -> list[Symbol]:
    """States to which ticks hand what `keeper` has kept, as the periods of a window do."""
    kept = [keeper, unfold(RTT - keeper)]
    while more := [
        z for t in law.ticks for z, new in t.update.items() if z not in kept and unfold(new) in kept
    ]:
        kept += more
    return [z for z in kept[2:] if isinstance(z, Symbol)]


def _worst(found: Mapping[str, tuple[Any, ...]], text: str) -> Iterator[str]:
    """A sentence on the flow whose two numbers [s] are furthest apart, and how many more there
    are.
    """
    if found:
        name = max(found, key=lambda one: found[one][0] - found[one][1])
        more = f", and so with {len(found) - 1} more" if len(found) > 1 else ""
        seen, least, *when = found[name]
        off = 1e3 * (seen - least)
        yield text.format(name, 1e3 * seen, 1e3 * least, off=off, more=more, when="".join(when))


def _small_windows(space: Workspace) -> list[str]:
    """Windows that are on average below a few packets in the later half of the run."""
    mean: dict[str, float] = {}
    for group in space.at.groups:
        if z := window(group.law):
            for i, values in zip(group.members, space.states_of(group, z), strict=True):
                rate = space.rate(i)
                late = slice(len(rate) // 2, None)
                sent = values[late][rate[late] > 0]
                if len(sent):
                    mean[space.at.flows[i].name] = float(np.mean(sent))
    return few_packets(mean, "on average ")
