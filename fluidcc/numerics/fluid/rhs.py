"""The right-hand side of a network: signals to the sources, rates to the links, backlogs.

Some links act on their own: they drop before their queue, and tell sources something straight back.
What a link drops never enters its queue: all that speaks of arrivals elsewhere, of modes and of
delays, means what is let in. What it tells is looked up at a constant delay, that of the way from
its queue back to the source; no queue is on it. So the reads of one class are nodes whose parent is
`state.TOLD`.
"""

from __future__ import annotations

from fluidcc.numerics.layout import NO_OFFER, at, clear

from ..compiling import njit
from ..fluid import state as s
from .calls import call_kernel
from .past import look_back
from .reads import acted_of, link_of, lost, quartic, rate_of, read_nodes, record_of, share
from .slides import slide


@njit()
def _signals(run: s.State, now: float, want: int) -> None:
    """What each source knows at `now`: its class's path, plus its own access delay."""
    # taken out of the loop, since the compiler cannot know that the stores leave them alone
    nf, u, classes, leaves = run.n_flows, run.signals, run.flow_class, run.leaf
    entry, stretched, price = run.entry_time, run.path_stretch, run.path_price
    kept, unmarked, told_apart = run.path_kept, run.path_unmarked, run.apart
    access_delay, delay, wait, lag = run.access_delay, run.class_delay, run.path_wait, run.class_lag
    frozen, lossy, prices = run.frozen, run.lossy or run.marking, run.pricing
    for i in range(nf):
        k = classes[i]
        leaf, access = leaves[k], access_delay[i]
        if frozen:
            u[s.UE * nf + i] = access + delay[k] + wait[leaf]
            u[s.UEDOT * nf + i] = stretched[leaf]
        else:
            u[s.UE * nf + i] = access + (now - lag[k]) - entry[leaf]
            u[s.UEDOT * nf + i] = stretched[leaf] - 1.0
        if lossy:
            u[s.UPI * nf + i] = lost(kept[leaf] * unmarked[leaf])
            if told_apart:
                u[s.ULOSS * nf + i] = lost(kept[leaf])
                u[s.UMARK * nf + i] = lost(unmarked[leaf])
        if prices:
            u[s.UPRICE * nf + i] = price[leaf]
        u[s.UT * nf + i] = now - access
    if run.n_own_rates:
        _own_past(run)
    if run.n_acting:
        tell(run, want)


@njit()
def _own_past(run: s.State) -> None:
    """The rate that a source had when it sent what is now reported."""
    nf = run.n_flows
    for i in range(nf):
        slot = run.own_rate[i]
        if slot >= 0:
            leaf = run.leaf[run.flow_class[i]]
            past = rate_of(run, record_of(run, run.cursor[leaf]), run.n_aggregates + slot)
            run.signals[s.UXTAU * nf + i] = quartic(past, run.entry_place[leaf])


@njit()
def _sources(run: s.State, oz: s.Floats, od: s.Floats, want: int) -> None:
    """Every group of sources: derivatives, rates and, when wanted, the values of the switches."""
    nf = run.n_flows
    for g in range(run.n_groups):
        j = at(run.group, 8 * g)
        first, n, off = j[1], j[2], j[3]
        call_kernel(
            j[0], n, nf, at(oz, off), at(run.signals, first), at(run.parameters, j[5]),
            at(run.switch, j[6]), at(od, off), at(run.rate, first), at(run.switch_value, j[6]),
            want,
        )  # fmt: skip
    if run.n_slides:
        slide(run, 1, oz, od, want)
    for i in range(nf):
        on = run.flow_on[i]
        if on != s.ON:
            if on == s.OFF:
                run.rate[i] = 0.0
            elif run.signals[s.UT * nf + i] > 0.0:  # released without a breaking point of its own
                continue
            for k in range(run.flow_states[i]):
                od[run.flow_state[i] + k * run.flow_stride[i]] = 0.0
        if on and run.rate_state[i] == -2:
            run.rate[i] = run.pattern_rate[i]


@njit()
def add_by_first_link(run: s.State, values: s.Floats, of_states: bool, target: s.Floats) -> None:
    """Add up values of flows, or of the states that are their rates, by the flows' first link."""
    clear(target, run.n_links)
    for i in range(run.n_flows):
        k = run.rate_state[i] if of_states else i
        if k >= 0:
            target[run.first_link[i]] += values[k]


@njit()
def _arrivals(run: s.State, od: s.Floats, stage: int) -> None:
    nl, arr = run.n_links, run.arrival
    add_by_first_link(run, run.rate, False, arr)
    if run.mixed:
        clear(run.unmarkable, nl)
        for i in range(run.n_flows):
            if run.no_ecn[i]:
                run.unmarkable[run.first_link[i]] += run.rate[i]
    if not run.refit and stage >= 0:
        add_by_first_link(run, od, True, at(run.arrival_slopes, stage * nl))
    for n in range(run.n_streams):
        j = at(run.stream, 3 * n)
        leaf = j[0]
        record, u = record_of(run, run.cursor[leaf]), run.entry_place[leaf]
        if j[1] >= 0:
            x = quartic(rate_of(run, record, j[1]), u)
        else:  # a trunk: all that arrived at the link before
            link = -1 - j[1]
            x = quartic(at(link_of(record, link), s.LY), u)
            if run.acting[link] >= 0:
                x += quartic(acted_of(run, record, run.acting[link]), u)
        arr[j[2]] += x * run.path_passed[leaf]
        if j[1] >= 0 and run.mixed and run.no_ecn[run.n_flows + j[1]]:
            run.unmarkable[j[2]] += x * run.path_passed[leaf]


@njit()
def _links(run: s.State, now: float, oz: s.Floats, od: s.Floats, want: int) -> None:
    """Backlogs by mode, then the link laws that have states, marks or prices of their own."""
    nl = run.n_links
    ob = run.first_backlog
    for l in range(nl):
        y = run.arrival[l]
        od[ob + l] = y - run.capacity[l] if run.mode[l] == s.BUSY else 0.0
    if run.n_link_groups == 0:
        return
    ul, lo = run.link_inputs, run.link_outputs
    last = at(run.link_group, 8 * (run.n_link_groups - 1))
    members = last[1] + last[2]
    for m in range(members):
        l = run.link_member[m]
        c = run.capacity[l]
        ul[m] = run.arrival[l]
        ul[nl + m] = c
        ul[2 * nl + m] = oz[ob + l] / c
        ul[3 * nl + m] = run.buffer[l] / c
        ul[4 * nl + m] = now
        for k in range(3):
            ul[(5 + k) * nl + m] = run.crossing[k * nl + l]
        if run.mixed:
            ul[8 * nl + m] = share(run.unmarkable[l], run.arrival[l] - run.unmarkable[l])
    for g in range(run.n_link_groups):
        j = at(run.link_group, 8 * g)
        call_kernel(
            j[0], j[2], nl, at(oz, j[3]), at(ul, j[1]), at(run.parameters, j[5]),
            at(run.switch, j[6]), at(od, j[3]), at(lo, j[1]), at(run.switch_value, j[6]), want,
        )  # fmt: skip
    if run.n_slides:
        slide(run, 0, oz, od, want)
    for m in range(members):
        l = run.link_member[m]
        run.mark[l] = lo[m]
        run.price[l] = lo[nl + m]
        if run.n_acting and run.acting[l] >= 0:
            act(run, l, at(lo, 2 * nl + m), at(od, ob + l))


@njit()
def evaluate(
    run: s.State,
    now: float,
    oz: s.Floats,
    od: s.Floats,
    stage: int,
    right: int,
    last: int,
    want: int,
) -> int:
    """Derivatives at `od` of the states at `oz` and time `now`; 1 if the past looked into the step
    in progress.

    `right` takes the right-hand limit at breaking points; `last` is the newest record that may be
    read.
    """
    run.nfev += 1
    inside = read_nodes(run, now, right, last)
    _signals(run, now, want)
    if run.n_lags:
        inside |= look_back(run, now, oz, right, last)
    _sources(run, oz, od, want)
    _arrivals(run, od, stage)
    _links(run, now, oz, od, want)
    return inside


# --- links that drop or tell something themselves -------------------------------------------------


@njit()
def act(run: s.State, link: int, out: s.Floats, slope: s.Floats) -> None:
    """Let in what is not dropped; keep what the link tells. Its outputs are in `out`, as many
    places apart as there are links, `drop` first.
    """
    nl, x = run.n_links, at(run.acted, s.XSIZE * run.acting[link])
    drop, arrivals = out[0], run.arrival[link]
    x[0] = drop * arrivals
    for k in range(1, s.XSIZE):
        x[k] = out[k * nl]
    if run.gives[link] & s.DROPS:
        run.arrival[link] = arrivals - x[0]
        if run.gives[link] & s.MIXED == 0:
            run.mark[link] = 1.0 - (1.0 - run.mark[link]) * (1.0 - drop)
        if run.mode[link] == s.BUSY:
            slope[0] = run.arrival[link] - run.capacity[link]


@njit()
def drops(run: s.State, link: int) -> bool:
    """Whether a link drops before its queue."""
    return run.n_acting > 0 and run.gives[link] & s.DROPS != 0


@njit()
def tell(run: s.State, want: int) -> None:
    """What each source hears of the routers on its route; when wanted, where one offer passes
    another.
    """
    nf, u = run.n_flows, run.signals
    for i in range(nf):
        k = run.flow_class[i]
        least, most, count = NO_OFFER, 0.0, 0
        rival = run.rivals[i] if want else -1
        for m in range(run.told_start[k], run.told_start[k + 1]):
            node = run.told_node[m]
            link = run.node_link[node]
            told, v = record_of(run, run.cursor[node]), run.entry_place[node]
            told = acted_of(run, told, run.acting[link])
            if run.gives[link] & s.OFFERS:
                offer = quartic(at(told, 5 * s.XOFFER), v)
                if rival >= 0 and least < NO_OFFER:
                    run.switch_value[rival] = least - offer
                    run.switch_value[rival + 1] = offer - most
                    rival += 2
                least, most = min(least, offer), max(most, offer)
            if run.gives[link] & s.REPORTS:
                u[(s.UFACTOR + count) * nf + i] = quartic(at(told, 5 * s.XFACTOR), v)
                u[(s.URAISE + count) * nf + i] = quartic(at(told, 5 * s.XRAISE), v)
                u[(s.UREPORTS + count) * nf + i] = quartic(at(told, 5 * s.XREPORTS), v)
                count += 1
        u[s.UOFFERMIN * nf + i] = least
        u[s.UOFFERMAX * nf + i] = most


@njit()
def count_crossing(run: s.State) -> None:
    """How many flows that are on cross each link, and their round trips up to it."""
    cross, nl = run.crossing, run.n_links
    clear(cross, 3 * nl)
    for i in range(run.n_flows):
        if run.flow_on[i] != s.OFF:
            k, trip = run.flow_class[i], 2.0 * run.access_delay[i]
            for m in range(run.path_start[k + 1] - 1, run.path_start[k] - 1, -1):
                if run.node_late[run.path_node[m]] == s.MARK_ONLY:
                    continue
                l = run.node_link[run.path_node[m]]
                cross[l] += 1.0
                cross[nl + l] = max(cross[nl + l], trip)
                cross[2 * nl + l] += (trip - cross[2 * nl + l]) / cross[l]
                trip += 2.0 * run.link_delay[l]
