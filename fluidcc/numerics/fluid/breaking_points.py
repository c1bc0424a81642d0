"""Breaking points: where the solution is not smooth, and where that will be felt next.

With FIFO queues a kink at a link lands explicitly: what enters at xi leaves at D(xi), reaches the
next link a propagation delay later, and in the end the sources. It is a landing in a list,
forwarded hop by hop. Each passage through a source makes it smoother by one order, which is a
generation.

Classes of sources that go by nothing that data carry are passed over. What routers say comes
straight back: where that changes at once, by a tick or a jump, is a breaking point of who hears it.

How far it is followed is a rule, so that exactness does not cost scale: the first generation where
a kink lands at sources at most 64 times (8 where laws jump or tick), once for each feedback class
unless routes cross; the second with at most 8, the third with at most 4. With more than 4 landings
at sources none of them is followed while 50 are ahead: flows that start one after another would
make thousands, each of which ends a step. What is not followed is counted in the statistics and
left to error control.

A source that sends what is acknowledged makes nothing smoother: a jump or kink of its rate comes
round for ever, weaker at best. As long as it matters, it counts as new each time, where it lands at
sources at most 4 times. With queues that change and lags that differ it lands at other instants
each time round, and so do its parts, which grow in number as they grow smaller. So those that were
seen go first: with 50 landings ahead of it, what only may be there (the later generations) is no
longer followed, with 200 nothing is; the steps that meet it are then shortened.

A busy queue mixes its flows, so a kink goes on from link to link with every flow that crosses them,
and round a cycle of links for ever, weaker by the flows' shares each time. It is followed once
round, and over as many hops as make at most 64 landings: in a mesh of links they would double and
double again.

Rates that no state smooths: those of sources that send what is acknowledged, say.

What such a source hears is in its rate at once. So a kink of a rate comes round for ever, and what
a quartic misses of a kink does too: where it swings, the next one swings more. The states hardly
show that, since it is short. Therefore

- a kink is followed on wherever it is seen, as a jump is: see `repeat_kinks`;
- a step is taken again, shorter, where quartics cannot follow the rates in it: see `roughness`;
- what is then left is too short to matter, and its rates are straight lines, which never swing: see
  `straighten`.
"""

from __future__ import annotations

from fluidcc.numerics.layout import at, copy

from ..compiling import njit
from ..fluid import state as s
from .past import past_of
from .reads import link_of, rate_of, record_of, resolution, work

_FEW = 4  # landings at sources, so many that they need no second thought
# landings ahead, with which only jumps and kinks of rates that have been seen are followed on
_CROWD = 50
_PENDING = 200  # landings ahead, with which those are not either
SEEN = 0.2  # of the tolerance, by which a jump of a rate makes a difference
# a landing's generation counts ones for passages through sources, and eights for links crossed
# since
_HOP = 8
NEVER = 99  # a generation that is not followed
# of the fourth difference of five values is too much: a third of what their quartic misses of a
# kink
MISSED = 0.012
# fourth difference, over all that the values vary, below which the quartic follows them
SMOOTH = 0.1


# --- landings ahead, the earliest first -----------------------------------------------------------


@njit()
def _move(run: s.State, source: int, target: int) -> None:
    run.landing_time[target] = run.landing_time[source]
    copy(at(run.landing, 3 * target), at(run.landing, 3 * source), 3)


@njit(entry=True)
def push(run: s.State, time: float, kind: int, index: int, generation: int) -> None:
    """Put a landing where it belongs; when there is no room the driver is told to make some."""
    k = run.n_landings
    if k >= run.landing_room:
        run.code = s.GROW_LANDINGS
        return
    run.n_landings = k + 1
    while k > 0 and run.landing_time[k - 1] > time:
        _move(run, k - 1, k)
        k -= 1
    run.landing_time[k] = time
    row = at(run.landing, 3 * k)
    row[0], row[1], row[2] = kind, index, generation


@njit()
def pop(run: s.State) -> tuple[int, int, int]:
    """Take the earliest landing out: its kind, index and generation."""
    kind, index, generation = run.landing[0], run.landing[1], run.landing[2]
    run.n_landings -= 1
    for k in range(run.n_landings):
        _move(run, k + 1, k)
    return kind, index, generation


@njit()
def news(run: s.State, kind: int, index: int, generation: int, tol: float) -> bool:
    """Whether a landing now tells what none before it told there at that instant: coincident
    ones count once.
    """
    place = index if kind == s.AT_LINK else run.n_links + index
    if kind == s.AT_PAST:
        place += run.n_classes
    before = run.landed[place]
    if abs(run.landed_time[place] - run.t) > tol:
        run.landed_time[place] = run.t
        run.landed[place] = generation
        return True
    passed, hops = min(generation % _HOP, before % _HOP), min(generation // _HOP, before // _HOP)
    run.landed[place] = passed + _HOP * hops
    return run.landed[place] != before


@njit()
def finish(run: s.State, link: int, amount: float) -> float:
    """The time by which the link has done `amount` of work: the inverse of `work`."""
    first = run.segment_start[link]
    k = run.segment_start[link + 1] - 1
    while k > first and amount < run.segment_work[k]:
        k -= 1
    return run.segment_time[k] + (amount - run.segment_work[k]) / run.segment_capacity[k]


@njit()
def _followed(run: s.State, generation: int) -> bool:
    few = run.spread <= _FEW
    if generation > run.most_generations:
        return False
    # jumps and ticks are many, and each makes as many landings as there are classes
    most = 8 if run.n_rules or generation > 1 else 64
    crowd = run.n_landings >= _CROWD and (run.echo or not few)
    if generation <= 0 or (not crowd and (few or (generation <= 2 and run.spread <= most))):
        return True
    run.untracked += 1
    return False


@njit()
def emit(run: s.State, link: int, leave: float, generation: int) -> None:
    """What leaves the queue at `leave` is not smooth: tell the next links, and the sources whose
    path ends here.
    """
    arrive = leave + run.link_delay[link]
    first, after = run.next_start[link], run.next_start[link + 1]
    if generation < _HOP * run.most_hops:
        for k in range(first, after):
            push(run, arrive, s.AT_LINK, run.next_link[k], generation + _HOP)
    else:
        run.untracked += after - first
    generation %= _HOP
    if not run.track or not _followed(run, generation):
        return
    for k in range(run.ending_start[link], run.ending_start[link + 1]):
        c = run.ending[k]
        if not run.hears[c]:
            continue
        push(run, arrive + run.class_lag[c], s.AT_CLASS, c, generation)


@njit()
def speak(run: s.State, link: int, generation: int) -> None:
    """What `link` says is not smooth now: sources hear that straight back; those beside it have
    heard it already.
    """
    for c in range(run.n_classes):
        for m in range(run.told_start[c], run.told_start[c + 1]):
            node = run.told_node[m]
            if run.node_link[node] == link and run.node_offset[node] > 0.0:
                push(run, run.t + run.node_offset[node], s.AT_CLASS, c, generation)


@njit()
def bend(run: s.State, link: int) -> None:
    """A mode or switch of `link` changes now: what it says, if anything, has a kink."""
    if run.n_acting and run.gives[link] & (s.OFFERS | s.REPORTS):
        speak(run, link, 1)


@njit()
def forward(run: s.State, link: int, generation: int) -> None:
    """The queue of `link` is not smooth now."""
    now = run.t
    if run.frozen:
        if not run.track or not _followed(run, generation):
            return
        for c in range(run.n_classes):
            if not run.hears[c]:
                continue
            for k in range(run.path_start[c], run.path_start[c + 1]):
                n = run.path_node[k]
                if run.node_link[n] == link:
                    push(run, now + run.node_offset[n], s.AT_CLASS, c, generation)
        return
    if run.late[link]:
        emit(run, link, now, generation)
    amount = work(run, link, now)[0] + run.y[run.first_backlog + link]
    emit(run, link, finish(run, link, amount), generation)


@njit()
def forward_class(run: s.State, link: int, generation: int) -> None:
    """The rates into `link`, where their sources begin, are not smooth now."""
    forward(run, link, generation)
    if run.frozen:
        for n in range(run.n_streams):
            j = at(run.stream, 3 * n)
            if run.node_link[j[0]] == link:
                push(run, run.t + run.node_offset[j[0]], s.AT_LINK, j[2], generation)


@njit()
def recall(run: s.State, flow: int, of_states: int, of_signals: int) -> None:
    """A flow is not smooth now, its states and what it hears by these generations: it will see that
    in its own past, after each lag as it is now.
    """
    for k in range(run.flow_lag_start[flow], run.flow_lag_start[flow + 1]):
        m = run.flow_lag[k]
        generation = NEVER
        if run.lag_of[m] & s.OF_STATES:
            generation = of_states
        if run.lag_of[m] & s.OF_SIGNALS:
            generation = min(generation, of_signals)
        if run.lag[m] > 0.0 and generation < NEVER and run.track and _followed(run, generation):
            push(run, run.t + run.lag[m], s.AT_PAST, m, generation)


@njit()
def recall_class(run: s.State, index: int, generation: int) -> None:
    """What a class hears is not smooth now, which its flows will see in their own past; and in that
    of their states, which are smoother.
    """
    if run.n_lags:
        for k in range(run.class_flow_start[index], run.class_flow_start[index + 1]):
            recall(run, run.class_flow[k], generation + 1, generation)


@njit()
def send_kink(run: s.State, switch: int, told: int) -> int:
    """Send on the kink of a switch that changes now, unless that of its link, `told`, has been;
    return the link.
    """
    owner = run.switch_owner[switch]
    link = run.first_link[owner] if owner >= 0 else -1 - owner
    if link != told:
        forward_class(run, link, 1)
        if owner < 0:
            bend(run, link)
    if owner >= 0:
        recall(run, owner, 1, NEVER)
    return int(link)


@njit()
def keep_rates(run: s.State) -> None:
    """Keep the rates of the sources until now, which are those of the end of the step, for
    `repeat_jumps`.
    """
    copy(at(run.node_rate, run.n_flows), run.node_rate, run.n_flows)


@njit()
def repeat_jumps(run: s.State) -> None:
    """Rates of sources that read their own past have jumped now: that is felt as if it had happened
    here.
    """
    told = -1
    for i in range(run.n_flows):
        link = run.first_link[i]
        if link == told or run.own_rate[i] < 0:
            continue
        jump = run.node_rate[i] - run.node_rate[run.n_flows + i]
        if abs(jump) > SEEN * run.rtol * run.capacity[link]:
            follow(run, link)
            told = link


@njit()
def follow(run: s.State, link: int) -> None:
    """The rates into `link` are as little smooth now as if it had happened here: send that on,
    where it is not much.
    """
    if run.spread <= _FEW and run.track and run.n_landings < _PENDING:
        forward_class(run, link, 0)
    else:
        run.untracked += 1


# --- rates that no state smooths ------------------------------------------------------------------


@njit()
def _missed(o: s.Floats, stride: int) -> float:
    """What the quartic through five values at `o` misses between them, where they are rough; else
    0.
    """
    a, b, c = o[0], o[stride], o[2 * stride]
    d, e = o[3 * stride], o[4 * stride]
    fourth = abs((a + e) - 4.0 * (b + d) + 6.0 * c)
    varies = abs(b - a) + abs(c - b) + abs(d - c) + abs(e - d)
    return MISSED * fourth if fourth > SMOOTH * varies else 0.0


@njit()
def _negative(o: s.Floats, stride: int) -> bool:
    """Whether the quartic through five values at `o`, none below 0, may be: by its Bernstein
    coefficients.
    """
    a, b, c = o[0], o[stride], o[2 * stride]
    d, e = o[3 * stride], o[4 * stride]
    if min(a, b, c, d, e) < 0.0:
        return False
    first = -13.0 * a + 48.0 * b - 36.0 * c + 16.0 * d - 3.0 * e
    third = -13.0 * e + 48.0 * d - 36.0 * c + 16.0 * b - 3.0 * a
    return min(first, third, 13.0 * (a + e) - 64.0 * (b + d) + 120.0 * c) < 0.0


@njit()
def _worst(run: s.State) -> float:
    """The same for all that links tell in the step just taken, and rates looked back at, over the
    tolerance.
    """
    nl, nf, worst = run.n_links, run.n_flows, 0.0
    for l in range(nl):
        worst = max(worst, _missed(at(run.node_arrival, l), nl) / run.capacity[l])
        if run.marking:
            worst = max(worst, _missed(at(run.node_mark, l), nl))
        if run.pricing:
            price = at(run.node_price, l)
            a, b, c = abs(price[0]), abs(price[2 * nl]), abs(price[4 * nl])
            missed = _missed(price, nl)
            if missed > 0.0:
                worst = max(worst, missed / (run.rtol * max(a, b, c) + min(a, b, c)))
            if _negative(price, nl):
                worst = max(worst, 2.0 * run.rtol)
    for i in range(nf):
        if run.own_rate[i] >= 0:
            worst = max(worst, _missed(at(run.node_rate, i), nf) / run.capacity[run.first_link[i]])
    return worst / run.rtol


@njit()
def roughness(run: s.State) -> float:
    """By how much the step just taken is too long for rates that no state smooths: above 1, take a
    shorter one.
    """
    if not run.echo:
        return 0.0
    run.rough = _worst(run)
    if run.h <= 100.0 * resolution(run, run.t):
        return 0.0
    return run.rough * min(1.0, run.h / run.brief)


@njit()
def unfollowed(run: s.State) -> bool:
    """Whether quartics cannot follow the rates in the step just taken, however brief it is:
    `roughness` has seen it.
    """
    return run.echo != 0 and run.rough > 1.0


@njit()
def straighten(run: s.State) -> None:
    """Let the rates, marks and prices in the step just taken be straight lines."""
    r = record_of(run, run.n_records)
    for l in range(run.n_links):
        b = link_of(r, l)
        _line(at(b, s.LY))
        if run.marking:
            _line(at(b, s.LMARK))
        if run.pricing:
            _line(at(b, s.LPRICE))
    for g in range(run.n_aggregates + run.n_own_rates):
        _line(rate_of(run, r, g))
    for slot in range(run.n_pasts):
        if run.past_source[slot] < 0:
            _line(past_of(run, r, slot))


@njit()
def _line(o: s.Floats) -> None:
    o[1] = (o[1] + o[2]) + (o[3] + o[4])
    o[2] = o[3] = o[4] = 0.0


@njit()
def repeat_kinks(run: s.State) -> None:
    """Send on the kinks of rates at the start of the step just taken, which began at a breaking
    point.

    That is for networks with `echo` alone.
    """
    before, after = record_of(run, run.n_records - 1), record_of(run, run.n_records)
    told = -1
    for i in range(run.n_flows):
        link, slot = run.first_link[i], run.own_rate[i]
        if link == told or slot < 0:
            continue
        slot += run.n_aggregates
        a, b = rate_of(run, before, slot), rate_of(run, after, slot)
        slope = (a[1] + 2.0 * a[2] + 3.0 * a[3] + 4.0 * a[4]) / before[s.RH]
        kink = abs(b[1] / run.h - slope)
        if kink * run.brief > run.rtol * run.capacity[link]:
            follow(run, link)
            told = link
