"""The state of a run: every number and array that the network solver reads and writes, by name.

All of it stands in one array of floats `F` and one of integers `I`, so that compiled steps are
called by address with two pointers, and the solver can return to Python at any step and go on
later. `State` names what is in them: the first floats and integers are its scalars, and of each of
its arrays an integer says where it begins. ``w.h`` is the step, ``w.capacity[l]`` the capacity of
link `l`; compiled code reads the same by the same names (see `calls`).

States are stored variable by variable within a group of equal laws (structure of arrays); the
history has one record a step, shared by all links and independent of the number of flows.
"""

from __future__ import annotations

from ..layout import Floats, Ints, NamedArrays


class State(NamedArrays):
    """The two arrays of a run, read and written by name."""

    # --- how many, and how large ------------------------------------------------------------------
    n_flows: int
    n_links: int
    n_groups: int  # groups of flows with equal law
    n_link_groups: int  # groups of links with equal law that have states, marks or prices
    n_states: int  # flows', then the backlogs, then links' own
    first_backlog: int
    n_nodes: int  # read nodes
    n_classes: int  # feedback classes: distinct (route, access delay, return delay)
    n_streams: int  # streams into links that are not the first of their flows
    n_aggregates: int  # of first-hop rates that feed streams
    n_own_rates: int  # flows whose law reads its own past rate
    n_lags: int  # lags of flows that know their past, each a read node, the last ones
    n_lag_groups: int  # groups of such flows
    n_pasts: int  # states and signals whose past they know
    n_acting: int  # links that drop before their queue, or tell sources something
    n_switches: int  # of sources and links, in all
    n_rules: int  # jumps and ticks, in all
    n_slides: int  # switches that may slide, of those that have been asked about
    n_accounts: int  # states that keep account of the round trip or of what is under way
    n_leaping: int  # of them those whose news may leap: all, or none
    n_samples: int
    n_scheduled: int
    n_quartics: int  # in a record
    n_compared: int  # of them those of links by which records are compared
    record_size: int

    # --- switches: 1 or 0 -------------------------------------------------------------------------
    echo: int  # some rate follows at once what comes back, so that no state smooths it
    frozen: int  # constant delays, as printed in the papers; else FIFO
    refit: int  # arrivals are refitted at five nodes a step; else they are sums of states
    marking: int  # some link marks or drops before its queue
    apart: int  # some law hears what is marked apart from what is lost
    pricing: int  # some link has a price
    lossy: int  # some buffer is finite
    locate: int  # kinks of single sources are located as events
    track: int  # breaking points are sent on to the sources
    counted: int  # some link's law knows of the flows that cross it
    mixed: int  # some link's law knows of flows without ECN, as one that drops of them

    # --- limits of the run ------------------------------------------------------------------------
    most_passes: int  # in a step
    hops_at_once: int  # hops without propagation delay in a row, at most
    most_generations: int  # of breaking points that are followed
    most_hops: int  # links over which one of them is followed before a source is reached
    # landings at sources that one breaking point makes before it passes through a source, at most
    spread: int
    landing_room: int
    log_size: int
    ring_mask: int  # ring size - 1 (the ring size is a power of two)
    budget: int  # steps until the driver pauses
    rtol: float
    time_tol: float  # relative resolution of breaking points
    natural: float  # a time by which others are long or short: near time 0 that resolves them
    t_end: float
    t_stop: float  # where the driver returns to Python, at t_end or before
    h_max: float
    # time in which a kink of a rate that no state smooths is seen, and below which its roughness
    # matters less
    brief: float

    # --- where it stands --------------------------------------------------------------------------
    t: float  # start of the step
    h: float  # step
    h_next: float
    h_before: float
    h_passes: float  # longest step for which the passes agree soon
    next_rule: float  # the next tick, or end of a refractory time
    t_flip: float
    error: float
    error_before: float
    # what quartics miss of rates that no state smooths in the step just taken, over the tolerance
    rough: float
    code: int  # why the driver returned
    where: int  # the flow, link or state it speaks of
    fresh: int  # the step starts at a breaking point
    asked: int  # number of links plus the switch for which Python was asked for a kernel, or 0
    n_records: int  # so far; the next has this number
    oldest: int  # the oldest record still in the ring
    n_landings: int  # pending
    n_logged: int
    next_scheduled: int
    link_sample: int  # next sample of the links

    # --- passes of a step -------------------------------------------------------------------------
    passes: int  # of the last step
    sigma: float  # change of the states, over the tolerance, by a change of what a pass looks into
    change: float  # of a record by a pass
    gap: float  # the same, by the pass before
    reach: float  # how far into the step the last pass looked, as a share
    # what a further pass would change of the states, over the tolerance, after the second pass
    rest_first: float
    quartic_weight: Floats  # n_compared inverse natural sizes
    quartic_place: Ints  # n_quartics places in a record
    looked: Floats  # 4 x n_compared coefficients of u to u^4: what the pass looks into
    end_before: Floats  # end states of the pass before
    # 2 x n_links arrival rates in the middle and at the end, in the pass before
    arrival_before: Floats

    # --- statistics -------------------------------------------------------------------------------
    steps: int
    rejections: int
    nfev: int
    events: int
    breaking_points: int
    untracked: int
    extra_passes: int  # passes beyond the first
    jumps: int
    ticks: int
    slides: int  # times that a switch began to slide
    mode_flips: int  # changes of mode without progress in time
    let_pass: int  # steps of a hair taken past such changes, since the last longer one

    # --- states -----------------------------------------------------------------------------------
    y: Floats  # states at the start of the step
    y_end: Floats  # states at its end
    slopes: Floats  # 7 x n_states stage derivatives
    stage: Floats  # states of a stage
    scratch: Floats  # derivatives that are thrown away
    atol: Floats
    initial: Floats  # states at the start of each flow

    # --- flows ------------------------------------------------------------------------------------
    signals: Floats  # USIZE x n_flows
    rate: Floats  # of the last evaluation
    node_rate: Floats  # 5 x n_flows at the nodes
    access_delay: Floats
    pattern_rate: Floats  # scheduled rates
    flow_class: Ints
    first_link: Ints
    flow_on: Ints  # OFF, ON or HOLDING
    rate_state: Ints  # state that is the rate; -1: constant or general, -2: scheduled
    feeds: Ints  # aggregate that it feeds, -1: none
    own_rate: Ints  # slot among the own-rate readers, -1: none
    flow_state: Ints  # its first state
    flow_stride: Ints  # distance between its states
    flow_states: Ints  # number of its states
    no_ecn: Ints  # n_flows, then n_aggregates: 1 where their data cannot be marked
    # first of the switches at which another offer becomes the least or the largest, -1: none
    rivals: Ints

    # --- own pasts: see `past` --------------------------------------------------------------------
    flow_begun: Floats  # when each flow has started, for the last time
    lag_group: Ints  # 3 x n_lag_groups: kernel, group of flows, first lag
    lag: Floats  # n_lags, of the last evaluation
    lag_flow: Ints
    lag_of: Ints  # what is looked up there: bits of OF_STATES, OF_SIGNALS
    flow_lag_start: Ints  # n_flows + 1 starts into `flow_lag`
    flow_lag: Ints  # lags of a flow
    recall_start: Ints  # n_lags + 1 starts into `recall`
    recall: Ints  # pairs: place in `signals`, number of what is remembered
    past_source: Ints  # n_pasts: state, or -1 - place in `signals`
    past_first: Floats  # at the start of the flow
    node_past: Floats  # 5 x n_pasts signals at the nodes

    # --- feedback classes -------------------------------------------------------------------------
    return_delay: Floats
    class_lag: Floats  # return plus access delay
    class_delay: Floats  # propagation delays of the links
    leaf: Ints  # leaf node
    class_link: Ints  # first link
    class_flow_start: Ints  # n_classes + 1 starts into `class_flow`
    class_flow: Ints  # flows of a class
    class_sample: Ints  # next sample
    path_start: Ints  # n_classes + 1 starts into `path_node`
    path_node: Ints  # nodes of a class, from the root to the leaf
    told_start: Ints  # n_classes + 1 starts into `told_node`
    told_node: Ints  # nodes of a class that look at what links tell it, in the order of the route
    hears: Ints  # some source of the class goes by what data carry

    # --- links ------------------------------------------------------------------------------------
    capacity: Floats  # now
    buffer: Floats
    link_delay: Floats  # propagation
    work_done: Floats  # S(t) at the start of the step
    arrival: Floats  # rates of the last evaluation
    unmarkable: Floats  # of them those of data that cannot be marked
    node_arrival: Floats  # 5 x n_links at the nodes
    arrival_slopes: Floats  # 7 x n_links stage derivatives (without refit)
    mark: Floats  # of the last evaluation
    node_mark: Floats  # 5 x n_links
    price: Floats  # of the last evaluation
    node_price: Floats  # 5 x n_links
    # 9 x n_links inputs of link laws: y, c, q, q_max, t, `crossing`, and the share without ECN
    link_inputs: Floats
    # 7 x n_links outputs of link laws: mark, price, drop, offer, factor, raise, reports
    link_outputs: Floats
    crossing: Floats  # 3 x n_links: flows that are on, longest and mean round trip to their sources
    totals: Floats  # 2 x n_links cumulative bits: arrived, lost
    mode: Ints
    has_queue: Ints
    acting: Ints  # number of a link among those that act, -1: none
    gives: Ints  # what it gives: bits of DROPS, OFFERS, REPORTS, MARKS, MIXED
    late: Ints  # it marks at departure
    acted: Floats  # XSIZE x n_acting last evaluation
    node_acted: Floats  # 5 x XSIZE x n_acting
    segment_start: Ints  # n_links + 1 starts of the capacity schedule of each link
    segment_time: Floats
    segment_work: Floats  # work up to that time
    segment_capacity: Floats  # from then on

    # --- groups of equal laws, and streams from link to link --------------------------------------
    # 8 x n_groups: kernel, first flow, flows, then states, parameters and switches: offsets and
    # numbers
    group: Ints
    link_group: Ints  # 8 x n_link_groups: the same for links
    link_member: Ints  # link of each member of the link groups, in order
    parameters: Floats  # of all groups
    stream: Ints  # 3 x n_streams: leaf, aggregate (or -1 - link: all that it let through), link

    # --- switches of laws -------------------------------------------------------------------------
    switch: Floats  # modes
    switch_value: Floats
    switch_owner: Ints  # its flow, or -1 - its link
    # it chooses the branch of a kink; else it holds a state at a bound, or is the condition of a
    # jump
    is_kink: Ints
    # jump of which it is the condition; NO_JUMP: none, OF_BOUND: it is that of a bound
    switch_rule: Ints
    together: Ints  # changes at the same instant as the first event of the step
    pending: Ints  # the same, for the event that the step now leads to
    crossed_switch: Ints  # those that change in the step
    # NOT_ASKED, NO_SLIDE, or number of its row of `slide`
    slide_of: Ints
    slide: Ints  # GSIZE x n_switches: see G... below
    flip_time: Floats  # when it last changed, or came to 0; see `slides`
    within: Floats  # 9 x n_switches values in a step of those that slide
    hasty: Ints  # changes in a row that each came in haste
    # 3 x n_switches values at the end of a step, and a hair before and after the first of them
    # changes
    switched: Floats

    # --- read nodes -------------------------------------------------------------------------------
    node_parent: Ints  # ROOT: the source, TOLD: a router, straight back
    node_link: Ints
    node_late: Ints  # MARK_ONLY: what leaves a link that marks then; WITHOUT_MARK: its queue
    node_gives: Ints  # what the link gives its data, 0 where nobody tells marks from losses
    cursor: Ints  # record it looks at
    cursor_start: Ints  # the same, at the start of the step
    every_node: Ints  # 0 .. n_nodes - 1
    node_offset: Floats
    entry_time: Floats
    entry_place: Floats  # local position in the record
    path_stretch: Floats  # product of D' (FIFO) or sum of q' (frozen), down the path
    path_kept: Floats  # product of 1 - loss, and of 1 - mark where laws do not tell these apart
    path_unmarked: Floats  # product of 1 - mark where they do
    path_passed: Floats  # product of the flow factors
    path_price: Floats  # sum of prices
    path_wait: Floats  # sum of queueing delays (frozen)

    # --- breaking points and scheduled changes ----------------------------------------------------
    scheduled: Floats  # 2 x n_scheduled: time, value
    scheduled_kind: Ints  # 2 x n_scheduled: kind, index
    landing_time: Floats
    landing: Ints  # 3 x landing_room: kind, index, generation
    # n_links + n_classes + n_lags times of the last landing at a link, at a class, of a past
    landed_time: Floats
    landed: Ints  # generations of the landings that were handled at that time
    next_start: Ints  # n_links + 1 starts into `next_link`
    next_link: Ints
    ending_start: Ints  # n_links + 1 starts into `ending`
    ending: Ints  # classes that end at the link

    # --- jumps and ticks: see `events` ------------------------------------------------------------
    rule: Ints  # HSIZE x n_rules: see H... below
    rule_time: Floats  # of the next tick, or end of the refractory time
    rule_base: Floats  # time from which ticks count in periods
    rule_period: Floats
    rule_last: Floats  # time of the last jump
    rule_gap: Floats  # by how much the condition fell short of 0 where the last jump was located
    rule_result: Floats  # 3: what a kernel returns besides states
    # 2 x log_size: time, number of the jump or tick; -1 where only the modes may have changed
    log: Floats

    # --- accounts, which news of a stretch of time at one instant changes: see `accounts` ---------
    account: Ints  # 2 x n_accounts: flow, state
    # 3 x n_accounts: what a second of round trip and a bit under way are in it, its least value
    account_part: Floats
    # 2 x n_classes: until when each has heard of what was sent, at the left of now and so far
    heard: Floats

    # --- samples and history ----------------------------------------------------------------------
    sample_time: Floats
    samples: Floats
    ring: Floats  # records of the history


PLACES = State.places
N_FLOATS, N_INTS = State.sizes["Floats"], State.sizes["Ints"]


# --- a record of the history ----------------------------------------------------------------------
(RT0, RH, RINVH, RLINKS) = range(4)
# a link in a record: backlog quartic, capacity x h, work at t0, arrival quartic, capacity, mode;
# mark, price quartics (arrivals are those let into the queue; the mark ratio is of all that does
# not come through unmarked, or at a mixed link what it marks or drops of each flow)
(LB, LCH, LS0, LY, LC, LMODE, LMARK, LPRICE, LSIZE) = (0, 5, 6, 7, 12, 13, 14, 19, 24)
# the end of a record, after links, routes and own rates: of each acting link these quartics, five
# numbers each
(XDROPPED, XOFFER, XFACTOR, XRAISE, XREPORTS, XSIZE) = range(6)
# mixed: it drops in place of marking, of some of its flows; and alone: data of some only
(DROPS, OFFERS, REPORTS, MARKS, MIXED, ALONE) = (1, 2, 4, 8, 16, 32)
(ROOT, TOLD) = (-1, -2)
(MARK_ONLY, WITHOUT_MARK) = (1, 2)
(OF_STATES, OF_SIGNALS) = (1, 2)

# --- modes of a link ------------------------------------------------------------------------------
(EMPTY, BUSY, FULL, HELD) = range(4)

# --- signals, as rows of `State.signals` ----------------------------------------------------------
(UE, UEDOT, ULOSS, UMARK, UPI, UPRICE, UXTAU, UEB, UPACKET, UT, UOFFERMIN, UOFFERMAX) = range(12)
(UFACTOR, URAISE, UREPORTS) = (12, 15, 18)
(UNOISE, USIZE, REPORTERS) = (21, 22, 3)  # of as many routers on a route a source hears the reports

# --- a jump or tick, as a row of `State.rule` -----------------------------------------------------
# kind, flow or link, kernel, number in the law, states, their stride, signals, their
# stride, parameters, switch, once, period constant, number of states; held or ticks so
# far, located now, quick repeats; whether it changes what a router says
(
    HKIND, HOWNER, HKERNEL, HWANT, HZ, HN, HU, HSU, HP, HSWITCH, HONCE, HCONST, HNZ, HCOUNT, HDUE,
    HREPEAT, HTELLS, HSIZE,
) = range(18)  # fmt: skip
(LINK_TICK, SOURCE_TICK, LINK_JUMP, SOURCE_JUMP) = range(4)
(NO_JUMP, OF_BOUND) = (-1, -2)
UNDECIDED = 2.0  # mode of a switch that is 0 or 1 by its value at the next start
# a switch that slides, and one that will be 0 or 1 by the side on which it has ceased to
(SLIDES, LEAVES) = (1.5, 1.25)

# --- a switch that may slide, as a row of `State.slide` -------------------------------------------
# kernel, switch in the law and of the run, whether of a source, number of switches of the law;
# states, their stride, signals, their stride, parameters, first switch, outputs
(GKERNEL, GWANT, GSWITCH, GSOURCE, GALL, GZ, GN, GU, GSU, GP, GM, GO, GSIZE) = range(13)
(NOT_ASKED, NO_SLIDE) = (-2, -1)

# --- kinds of breaking points ---------------------------------------------------------------------
(AT_CLASS, AT_LINK, AT_PAST, FLOW_ON, FLOW_OFF, FLOW_RATE, CAPACITY, FLOW_RELEASE) = range(8)

# --- what a flow does -----------------------------------------------------------------------------
# holding: it sends, but its states stand still, as they did before time 0
(OFF, ON, HOLDING) = range(3)

# --- why the driver returned ----------------------------------------------------------------------
(
    DONE, PAUSED, GROW_RING, GROW_LANDINGS, COLLAPSE, NONFINITE, NEGATIVE, CHATTER, DRAIN, ZENO,
    PERIOD, ASKED,
) = range(12)  # fmt: skip

# --- rows of the samples --------------------------------------------------------------------------
# of a class: what its path loses, what it marks of the rest, and both together
(SDELAY, SLOSS, SMARK, SEITHER, SPRICE, SCLASSROWS) = range(6)
# of a link: SLLOSS is what it drops before its queue (SLDROP) and what a full buffer loses
(
    SBACKLOG, SQDELAY, SARRIVAL, SDEPART, SLLOSS, SENTERED, SLOST, SLMARK, SLDROP, SLPRICE,
    SLINKROWS,
) = range(11)  # fmt: skip
