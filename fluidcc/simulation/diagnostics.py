"""What makes a result of a run doubtful, though the solver has nothing to complain of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Rational, Symbol

from fluidcc.laws import Law
from fluidcc.laws.parts import hears_ratios, used
from fluidcc.laws.steady import few_packets, mean_at_full, trackers, window
from fluidcc.network.specs import FlowSpec
from fluidcc.numerics.fluid import state as s
from fluidcc.simulation.layout import Group, Layout
from fluidcc.simulation.workspace import Workspace
from fluidcc.sources.by_bytes import mean_size
from fluidcc.symbols import (
    RTT,
    e,
    e_b,
    loss,
    mark,
    offer_min,
    packet,
    pi,
    plain,
    price,
    reports,
    symbols_of,
    unfold,
)

_SAID_AS = {"mark": (mark, pi), "drop": (loss, pi), "price": (price,)}  # by what links give
MUCH = 1 / 3  # of what is sent: so much is lost where 1.5 times the capacity comes for ever
MISLED = 0.01  # of the round trip: what a flow may take for propagation too much without a word
_MISLED = (
    "flow {!r} has {when} seen its path empty: the smallest round trip it knows is {:.4g} ms, that "
    "of the empty path {:.4g} ms, so it takes {off:.3g} ms of queue for propagation{more}: start "
    "it on an empty path, or let it look again if its law does not by itself, by "
    "fluidcc.with_pause or fluidcc.with_windowed_minimum"
)
_BURIED = (
    "the threshold of flow {0!r}, {2:.3g} ms, lies below the smallest queueing delay that it sees, "
    "{1:.3g} ms: it backs off whenever it may{more}, so raise the threshold, or have the others "
    "leave less of a queue"
)


_RATIO = (
    "flow {!r} ({}) jumps once a round trip while what link {!r} ({}) {}s is above 0, however "
    "little it is, and that is nearly always{}: let it hear of single packets, by losses='random' "
    "of simulate(), or take their mean, such as fluidcc.Reno for AIMD and fluidcc.CUBICFluid for "
    "CUBIC"
)
_DEAF = (
    "flow {!r} ({}) ignores losses: {:.0%} of what it sent in the later half of the run was "
    "lost{}, and nothing in its law hears of that: give the link more buffer, or take a law that "
    "answers losses"
)
_STUBBORN = (
    "flow {!r} ({}) sends more than the link carries for ever: {:.0%} of it was lost in the later "
    "half of the run{}, as its increase outweighs its decrease at losses: change these, or give "
    "the link more buffer"
)
_ENDLESS = (
    "link {!r} has no end to its buffer, and its queueing delay, {:.3g} s at the end of the run, "
    "still grows: nothing is lost there, which laws that answer losses wait for; give it a "
    "buffer"
)
LONG = 1.0  # [s] of queueing delay, and so many round trips, which no network has by design
TRIPS = 10


def foreseen(space: Workspace) -> list[str]:
    """What to doubt of a run before it has begun; `simulate` warns of it."""
    return [*_unheard(space.at), *_any_ratio(space.at, space.state.t_end)]


def _any_ratio(at: Layout, end: float) -> list[str]:
    """Flows that start before the end and jump at any ratio above 0, where a link gives one that is
    hardly ever 0.
    """
    giving = {
        name: given
        for name, link in at.net.links.items()
        if (given := [out for out in _SAID_AS if _varies(link.law, out)])
    }
    found = []
    for f in at.flows if giving else ():
        heard = (
            (f.name, f.law.name, name, at.net.links[name].law.name, said)
            for name in f.route
            for said in (_reaching(f, given) for given in giving.get(name, ()))
            if any(_at_any(f.law, signal) for signal in _SAID_AS[said])
        )
        if f.intervals[0][0] < end and (first := next(heard, None)):
            found.append(first)
    more = f" (and so {len(found) - 1} more flows)" if found[1:] else ""
    return [_RATIO.format(*found[0], more)] if found else []


def _drops(law: Law, flow: FlowSpec) -> bool:
    """Whether a link drops packets of a flow before its queue."""
    return "drop" in {_reaching(flow, output) for output in law.out}


def _reaching(flow: FlowSpec, output: str) -> str:
    """What a link's output is for a flow: without ECN its packets are dropped, not marked."""
    return "drop" if output == "mark" and not flow.ecn else output


@lru_cache(maxsize=512)
def _varies(law: Law, output: str) -> bool:
    """Whether an output of a link is above 0 nearly always: it does not step between numbers."""
    if output not in law.out:
        return False
    held = law.switched()
    used, given = held.out[output].free_symbols, held.out[output].subs(law.params)
    return bool(used - {*held.modes, *law.params}) or bool(given.is_number and given > 0)


@lru_cache(maxsize=512)
def _at_any(law: Law, heard: Symbol) -> bool:
    """Whether the condition of a jump of this law is that a signal is above 0."""
    for jump in law.jumps:
        when = unfold(jump.when).subs({**law.params, packet: 1})
        if when.free_symbols == {heard}:
            small, none = (when.subs(heard, value) for value in (Rational(1, 10**12), 0))
            if small > 0 and none <= 0:
                return True
    return False


def _unheard(at: Layout) -> list[str]:
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


def _hasty(at: Layout) -> list[str]:
    """Routers that report again before what a flow makes of their last report reaches them."""
    said = []
    for name, link in at.net.links.items():
        law = link.law
        held = next((t.every for t in law.ticks if law.out.get("reports") in t.update), RTT)
        period = next((t.update[held] for t in law.ticks if held in t.update), held)
        fixed, late = period.subs(law.params), dict[str, float]()
        if fixed.free_symbols:  # it does not report, or follows what it knows
            continue
        every = float(fixed)
        for f in at.flows:
            if name in f.route and used(f.law) & {*reports}:
                before = f.route[: f.route.index(name)]
                trip = 2 * (f.access_delay + sum(at.net.links[n].delay for n in before))
                if trip > every:
                    late[f.name] = trip
        if late:
            worst = max(late, key=late.__getitem__)
            more = f" (and so for {len(late) - 1} more)" if len(late) > 1 else ""
            kept = {z: period.subs({**law.params, z: z}) for z in law.params}
            larger = " and ".join(sorted(plain(z) for z, f in kept.items() if f.has(z)))
            said.append(
                f"link {name!r} ({law.name}) reports every {every:.4g} s, before what flow "
                f"{worst!r} makes of a report reaches it, {late[worst]:.4g} s later{more}: give it "
                f"a larger {larger}, such as the longest of these times and that in which it "
                "measures, (4) of the ECF paper, by which it goes where none is given"
            )
    return said


def doubts(space: Workspace) -> list[str]:
    """Sentences on what to doubt of a finished run, of which the result's attribute ``warnings``
    consists.

    All numbers are read from the workspace, of which a sweep has one for runs of many networks.
    """
    at = space.at
    return [
        *foreseen(space), *_hasty(at), *_by_bytes(at), *_lost(space), *endless(space),
        *(text for _, text in means(space)), *_small_windows(space), *_path_delays(space),
        *_of_laws(space),
    ]  # fmt: skip


def _of_laws(space: Workspace) -> Iterator[str]:
    """What laws themselves say makes a run doubtful."""
    found: dict[str, list[str]] = {}
    for group in space.at.groups:
        for text, when in group.specs[0].law.doubts.items():
            for n, flow in enumerate(group.specs):
                if unfold(when).xreplace(space.known(group, n, -1)) > 0:
                    found.setdefault(text, []).append(flow.name)
    for text, flows in found.items():
        more = f" (and so {len(flows) - 1} more)" if flows[1:] else ""
        yield f"flow {flows[0]!r}{more} {text}"


def looks_at_samples(at: Layout) -> bool:
    """Whether what makes a run doubtful depends on its samples."""
    laws, losing = [g.specs[0].law for g in at.groups], _may_lose(at)
    return any(
        law.doubts
        or window(law)
        or next(_keepers(law), None) is not None
        or (losing and _may_go_on(law))
        for law in laws
    )


def _may_lose(at: Layout) -> bool:
    return at.lossy or any("drop" in link.law.out for link in at.links)


def _may_go_on(law: Law) -> bool:
    """Whether a law may send more than a link carries for ever: it hears no losses, or jumps."""
    return bool(law.states) and (not _hears_losses(law) or bool(law.jumps))


def _hears_losses(law: Law) -> bool:
    return hears_ratios(law, _SAID_AS["drop"])


def _lost(space: Workspace) -> list[str]:
    """Flows that go on though the links of their route lose more than a third of what comes."""
    at = space.at
    if not _may_lose(at):
        return []
    late = slice(int(space.state.n_samples) // 2, None)
    ratio, through = (space.link_rows(row)[:, late] for row in (s.SLLOSS, s.SDEPART))
    found: dict[str, list[tuple[float, str, str]]] = {}
    for i, f in enumerate(at.flows):
        rate, route = space.rate(i)[late], list(at.route(i))
        sent = float(rate.sum())
        if not _may_go_on(f.law) or not sent > 0.0:
            continue
        share = float((rate * (1.0 - np.prod(1.0 - ratio[route], axis=0))).sum()) / sent
        if share < MUCH:
            continue
        if not _hears_losses(f.law):
            found.setdefault(_DEAF, []).append((share, f.name, f.law.name))
        elif sent > float(through[route].sum(axis=1).min()) / (1.0 - MUCH):
            found.setdefault(_STUBBORN, []).append((share, f.name, f.law.name))
    said = []
    for text, flows in found.items():
        share, *who = max(flows)
        more = f", and so with {len(flows) - 1} more" if flows[1:] else ""
        said.append(text.format(*who, share, more))
    return said


def endless(space: Workspace) -> Iterator[str]:
    """Links without an end to their buffer whose queue has grown through the later half of the run,
    far beyond the round trips of their windows, which wait for losses.
    """
    at, queues = space.at, space.link_rows(s.SQDELAY)
    for l, (link, queue) in enumerate(zip(at.links, queues, strict=True)):
        if np.isfinite(link.buffer) or len(queue) < 4 or queue[-1] < LONG:
            continue
        flows = [i for i in range(len(at.flows)) if l in at.route(i)]
        waits = [i for i in flows if at.flows[i].law.window and _hears_losses(at.flows[i].law)]
        trips = [space.round_trip(i)[0] for i in waits]
        middle, late = queue[len(queue) // 2], float(np.mean(queue[-len(queue) // 4 :]))
        if trips and queue[-1] > max(1.5 * middle, TRIPS * max(trips)) and late > queue[-1] / 2:
            yield _ENDLESS.format(link.name, queue[-1])


def means(space: Workspace) -> Iterator[tuple[bool, str]]:
    """Windows that answer losses in the mean, at a buffer that is full at times, and whose link
    neither marks nor drops before: first those that `simulate` warns of, as a law says of which
    one it is the mean, or shares the link with one that jumps at losses.
    """
    at, late = space.at, slice(int(space.state.n_samples) // 2, None)
    smooth = [
        f for f in at.flows
        if not (f.law.jumps or f.law.ticks) and f.law.window is not None and _hears_losses(f.law)
    ]  # fmt: skip
    if not smooth:
        return
    lost, *early = (
        np.any(space.link_rows(row)[:, late], axis=1) for row in (s.SLLOSS, s.SLDROP, s.SLMARK)
    )
    full = [at.net.link_names[l] for l in np.flatnonzero(lost & ~np.any(early, axis=0))]
    hit = [f for f in smooth if {*f.route} & {*full}]
    jumps = [f for f in at.flows if f.law.jumps and _hears_losses(f.law)]
    beside = {name for f in jumps for name in f.route}.intersection(full)
    for told in (True, False):
        if found := [f for f in hit if bool(f.law.mean_of or beside & {*f.route}) == told]:
            link = next(name for name in found[0].route if name in full)
            yield told, mean_at_full(found[0].name, found[0].law, link, len(found) - 1)


def _by_bytes(at: Layout) -> list[str]:
    """Flows whose losses are dealt out by bytes, on links that drop before their queue and thin all
    flows alike.
    """
    for flow in at.flows:
        if mean_size in flow.law.params and (
            dropping := [n for n in flow.route if _drops(at.net.links[n].law, flow)]
        ):
            return [
                f"flow {flow.name!r} hears of drops by bytes, but link {dropping[0]!r} thins all "
                "its flows alike: "
                "where sizes differ much, use the link's marking form, and ecn=True"
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
        # what ticks set anew may be something else, such as a change since the last of them
        ticks = group.law.ticks
        keeper = min(
            _keepers(group.law), key=lambda z: any(z in tick.update for tick in ticks), default=None
        )
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
    back = float(space.state.return_delay[space.at.flow_class[group.members[n]]])
    k = len(trip) // 2 + int(np.argmax(trip[len(trip) // 2 :]))
    known = {**space.known(group, n, k), e: float(trip[k]) - back, e_b: back}
    return float(unfold(group.specs[n].law.threshold).xreplace(known))


def _keepers(law: Law) -> Iterator[Symbol]:
    """States that keep the smallest round trip: those of `trackers`, and those that a jump sets to
    the round trip and that stay there.
    """
    yield from (z for z, account in trackers(law).items() if account.delay == 1)
    like = symbols_of(RTT)
    changes = (
        pair for jump in law.jumps for pair in jump.reset.items() if symbols_of(pair[1]) == like
    )
    stay = {z for z, flow in law.flow.items() if unfold(flow) == 0}
    yield from (z for z, new in changes if z in stay and unfold(new) == unfold(RTT))


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
