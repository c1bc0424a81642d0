"""What makes a result of a run doubtful, though the solver has nothing to complain of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc.laws import Law
from fluidcc.laws.steady import few_packets, window_name
from fluidcc.laws.trackers import trackers
from fluidcc.simulation.layout import Layout, used
from fluidcc.sources.by_bytes import mean_size
from fluidcc.symbols import RTT, offer_min, plain, reports, symbols_of, unfold

__all__ = ["Read", "doubts", "unheard"]

Read = Callable[[str, str], NDArray[np.float64]]  # samples of a variable of a flow, by their names

MISLED = 0.01  # of the round trip: what a flow may take for propagation too much without a word


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
        "has without one"
    ]


def doubts(at: Layout, read: Read) -> list[str]:
    """Sentences on what to doubt, of which the result's attribute ``warnings`` consists.

    Parameters
    ----------
    at : Layout
    read : callable
        Gives the samples of the run of a variable of a flow, such as ``read("rtt", "a")``.
    """
    return [*unheard(at), *_by_bytes(at), *_small_windows(at, read), *_path_delays(at, read)]


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


def _path_delays(at: Layout, read: Read) -> list[str]:
    """Flows that take a queue for propagation, and flows whose threshold lies below the queue at
    all times.
    """
    misled: dict[str, tuple[float, float, str]] = {}
    buried: dict[str, tuple[float, float]] = {}
    for group in at.groups:
        keeper = next(_keepers(group.law), None)
        if keeper is None:
            continue
        for i in group.members:
            flow = at.flows[i]
            rate = read("rate", flow.name)
            late = slice(len(rate) // 2, None)
            if not np.any(rate[late] > 0):
                continue
            state = read(f"{group.law.name}_{plain(keeper)}", flow.name)
            trip = read("rtt", flow.name)
            seen = trip - state if keeper in trackers(group.law) else np.minimum(state, trip)
            for older in _handed_on(group.law, keeper):
                seen = np.minimum(seen, read(f"{group.law.name}_{plain(older)}", flow.name))
            empty = at.net.base_rtt(flow.name)
            if seen[-1] > (1 + MISLED) * empty and seen[-1] < trip.max() * (1 + MISLED):
                forgets = any(keeper in tick.update for tick in group.law.ticks)
                misled[flow.name] = (float(seen[-1]), empty, "not lately" if forgets else "never")
            limit = _threshold(flow.law, float(trip[late].max() - seen[-1]))
            least = float((trip - seen)[late].min())
            if limit is not None and least > limit:
                buried[flow.name] = (least, limit)
    return [*_told_misled(misled), *_told_buried(buried)]


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


def _threshold(law: Law, span: float) -> float | None:
    """Queueing delay above which a law with the parameter tau0 backs off [s]."""
    known = {plain(s): float(v) for s, v in law.params.items()}
    part = known.get("gamma", 0.0)
    return (1 - part) * known["tau0"] + part * span if "tau0" in known else None


def _told_misled(misled: dict[str, tuple[float, float, str]]) -> list[str]:
    if not misled:
        return []
    name = max(misled, key=lambda one: misled[one][0] - misled[one][1])
    seen, empty, when = misled[name]
    more = f", and so with {len(misled) - 1} more" if len(misled) > 1 else ""
    return [
        f"flow {name!r} has {when} seen its path empty: the smallest round trip it knows is "
        f"{1e3 * seen:.4g} ms, "
        f"that of the empty path {1e3 * empty:.4g} ms, so it takes {1e3 * (seen - empty):.3g} ms "
        "of queue for "
        f"propagation{more}"
    ]


def _told_buried(buried: dict[str, tuple[float, float]]) -> list[str]:
    if not buried:
        return []
    name = max(buried, key=lambda one: buried[one][0] - buried[one][1])
    least, limit = buried[name]
    more = f", and so with {len(buried) - 1} more" if len(buried) > 1 else ""
    return [
        f"the threshold of flow {name!r}, {1e3 * limit:.3g} ms, lies below the smallest queueing "
        "delay that it sees, "
        f"{1e3 * least:.3g} ms: it backs off whenever it may{more}"
    ]


def _small_windows(at: Layout, read: Read) -> list[str]:
    """Windows that are on average below a few packets in the later half of the run."""
    mean: dict[str, float] = {}
    for group in at.groups:
        if window := window_name(group.law):
            for i in group.members:
                name = at.flows[i].name
                rate = read("rate", name)
                late = slice(len(rate) // 2, None)
                rows = read(f"{group.law.name}_{window}", name)[late][rate[late] > 0]
                if len(rows):
                    mean[name] = min(float(np.mean(rows)), mean.get(name, np.inf))
    return few_packets(mean, "on average ")
