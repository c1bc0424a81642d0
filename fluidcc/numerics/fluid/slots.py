"""The workspace of the network solver: where each array stands in the flat float and integer arrays
`F` and `I`.

One pair of arrays holds everything (states, history ring, modes, samples), so that compiled steps
are called by address with two pointers, and the solver can return to Python at any step and go on
later. The first integers of `I` are sizes and offsets, named here; the first floats of `F` are
scalars. Sizes are in items, offsets are indices.

Layouts: states are stored variable by variable within a group of equal laws (structure of arrays);
the history has one record a step, shared by all links and independent of the number of flows.
"""

from __future__ import annotations

# --- sizes and switches in I ----------------------------------------------------------------------
(
    NF,  # flows
    NL,  # links
    NG,  # groups of flows with equal law
    NGL,  # groups of links with equal law that have states, marks or prices
    NS,  # states: flows', then the backlogs, then links' own
    NN,  # read nodes
    NC,  # feedback classes: distinct (route, access delay, return delay)
    NSTR,  # streams into links that are not the first of their flows
    NX,  # aggregates of first-hop rates that feed streams
    NT,  # flows whose law reads its own past rate
    ECHO,  # 1: some rate follows at once what comes back, so that no state smooths it
    FROZEN,  # 1: constant delays, as printed in the papers; 0: FIFO
    NODES,  # 1: arrivals are refitted at five nodes a step; 0: they are sums of states
    MARKS,  # 1: some link marks
    PRICES,  # 1: some link has a price
    LOSSY,  # 1: some buffer is finite
    LOCATE,  # 1: kinks of single sources are located as events
    TRACK,  # 1: breaking points are sent on to the sources
    MASK,  # ring size - 1 (the ring size is a power of two)
    STRIDE,  # floats in a history record
    NREC,  # records so far; the next has this number
    FIRST,  # the oldest record still in the ring
    NSAMP,  # sample times
    CODE,  # why the driver returned
    WHERE,  # the flow, link or state it speaks of
    FRESH,  # 1: the step starts at a breaking point
    BUDGET,  # steps until the driver pauses
    NHEAP,  # pending landings
    HEAPCAP,
    ISCHED,  # next scheduled change
    NSCHED,
    PASSES,  # largest number of fixed-point passes in a step
    ATONCE,  # hops without propagation delay in a row, at most
    SWEEPS,  # passes of the last step
    NSW,  # source and link switches, in all
    GMAX,  # generations of breaking points that are followed
    HOPS,  # links over which one of them is followed before a source is reached
    # landings at sources that one breaking point makes before it passes through a source, at most
    SPREAD,
    NQ,  # quartics in a record
    NQL,  # of them those of links by which records are compared
    NPAIR,  # 1 + number of the newest difference of passes; 0 if there is none
    PASS,  # number of the pass
    DEGREE,  # up to which a guess carries the last record on, or `fixed_point.DECAYING`
    # statistics
    STEPS,
    REJECTED,
    NFEV,
    EVENTS,
    BREAKS,
    UNTRACKED,
    EXTRA,  # passes beyond the first
    MODEFLIPS,  # changes of mode without progress in time
    LETPASS,  # steps of a hair taken past such changes, since the last longer one
    # offsets into F
    OB,  # first backlog among the states
    OY,  # states at the start of the step
    OY1,  # states at its end
    OK,  # 7 x NS stage derivatives
    OZ,  # states of a stage
    OSCRATCH,  # derivatives that are thrown away
    OZP,  # end state of the pass before
    OLANDED,  # NL + NC times of the last landing at a link, at a class
    OATOL,
    OPASS,  # memory of the passes: see `fixed_point`
    OPROBE,
    OGRAM,  # products of their differences
    OENDS,  # stages of the pass before, and their differences
    # states whose stages are mixed where a step ends: NS, or 0 where the stages do not make the
    # whole record
    NMIX,
    OWEIGHT,  # NQL inverse natural sizes of the quartics
    OU,  # USIZE x NF signals
    ORATE,  # NF rates of the last evaluation
    ORN,  # 5 x NF rates at the nodes
    OARR,  # NL arrival rates of the last evaluation
    OAN,  # 5 x NL arrival rates at the nodes
    OANP,  # 2 x NL arrival rates in the middle and at the end, in the pass before
    OAK,  # 7 x NL stage derivatives of the arrival rates (NODES = 0)
    OMARK,  # NL marks of the last evaluation
    OPRICE,  # NL prices of the last evaluation
    OMN,  # 5 x NL
    OPN,  # 5 x NL
    OPROP,  # NL propagation delays
    OACC,  # NF access delays
    OEB,  # NC return delays
    OCLAG,  # NC lags: return plus access delay
    OCPROP,  # NC propagation delays of the links
    OPAR,  # parameters of all groups
    OSW,  # modes of all switches
    OGS,  # values of all switches
    OUL,  # 6 x NL inputs of link laws: y, c, q, q_max, t, crossing
    OLO,  # 7 x NL outputs of link laws: mark, price, drop, offer, factor, raise, reports
    OCAP,  # NL capacities now
    OBUF,  # NL buffers
    OSEGT,  # capacity schedule: times
    OSEGS,  # work up to that time
    OSEGC,  # capacity from then on
    OS0,  # NL work S(t) at the start of the step
    OTH,  # NN entry times
    OUN,  # NN local position in the record
    OCE,  # NN product of D' (FIFO) or sum of q' (frozen), down the path
    OCS,  # NN product of 1 - loss
    OCF,  # NN product of the flow factors
    OCP,  # NN sum of prices
    OCQ,  # NN sum of queueing delays (frozen)
    OOFF,  # NN offsets
    OHIST,  # the ring
    OTS,  # sample times
    OOUT,  # samples
    OSCHED,  # scheduled changes: time, value
    OHEAP,  # landing times
    OINIT,  # NS initial states
    OPAT,  # NF scheduled rates
    OINT,  # 2 x NL cumulative bits: arrived, lost
    # offsets into I
    JNPAR,  # NN parents; ROOT: the source, TOLD: a router, straight back
    JQ,  # NQ places of quartics in a record
    JNLINK,  # NN links
    JNCUR,  # NN cursors
    JALL,  # 0 .. NN - 1
    JNCUR0,  # NN cursors at the start of the step
    JCLS,  # NF class of a flow
    JLEAF,  # NC leaf node of a class
    JFIRST,  # NF first link
    JON,  # NF off, on or holding
    JRATE,  # NF state that is the rate; -1: constant or general, -2: scheduled
    JXG,  # NF aggregate that it feeds, -1: none
    JXT,  # NF slot among the own-rate readers, -1: none
    # 8 x NG: kernel, first flow, flows, then states, parameters and switches: offsets and numbers
    JGRP,
    JGRL,  # 8 x NGL: the same for links
    JLMEM,  # NL link of each member of the link groups, in order
    JSTR,  # 3 x NSTR: leaf, aggregate (or -1 - link: all that it let through), link
    JMODE,  # NL modes
    JQUEUE,  # NL 1: the link has a queue
    JSEG,  # NL + 1 starts of the schedule of each link
    JSCHED,  # 2 x NSCHED: kind, index
    JHEAP,  # 3 x HEAPCAP: kind, index, generation
    JLANDED,  # NL + NC generations of the landings that were handled at that time
    JNEXT,  # NL + 1 starts into JNEXTV
    JNEXTV,  # next links
    JLAST,  # NL + 1 starts into JLASTV
    JLASTV,  # classes that end at the link
    JCFIRST,  # NC first link of a class
    JCFLOW,  # NC + 1 starts into JCFLOWV
    JCFLOWV,  # flows of a class
    JCSAMP,  # NC next sample of a class
    JLSAMP,  # next sample of the links
    JPATH,  # NC + 1 starts into JPATHV
    JPATHV,  # nodes of a class, from the root to the leaf
    JFSTATE,  # NF offset of the flow's first state
    JFSTRIDE,  # NF distance between its states
    JFN,  # NF number of its states
    JTOGETHER,  # NSW 1: changes at the same instant as the first event of the step
    JPEND,  # NSW the same, for the event that the step now leads to
    JSWOWN,  # NSW owner of a switch: its flow, or -1 - its link
    # NSW 1: it chooses the branch of a kink; else it holds a state at a bound, or is the condition
    # of a jump
    JKINK,
    # jumps and ticks: see `events`
    NHY,  # jumps and ticks, in all
    JUMPS,  # statistics
    TICKS,
    NLOG,  # entries of the log
    LOGCAP,
    OHTIME,  # NHY time of the next tick, or end of the refractory time
    OHBASE,  # NHY time from which ticks count in periods
    OHPER,  # NHY period
    OHLAST,  # NHY time of the last jump
    OHG,  # NHY by how much the condition fell short of 0 where the last jump was located
    OHNEW,  # 2: what a kernel returns besides states
    OLOG,  # 2 x LOGCAP: time, number of the jump or tick; -1 where only the modes may have changed
    JHY,  # HSIZE x NHY: see H... below
    # NSW jump of which a switch is the condition; NO_JUMP: none, OF_BOUND: it is that of a bound
    JHSW,
    # links that drop before their queue, or tell sources something: see `rhs`
    NACT,  # such links
    COUNTED,  # 1: some link's law knows how many flows cross it
    JACT,  # NL number of a link among them, -1: none
    JACTS,  # NL what it gives: bits of DROPS, OFFERS, REPORTS
    JTOLD,  # NC + 1 starts into JTOLDV
    JTOLDV,  # nodes of a class that look at what links tell it, in the order of the route
    JHEARS,  # NC 1: some source of the class goes by what data carry
    # NF first of the switches at which another offer becomes the least or the largest, -1: none
    JRIVALS,
    OACT,  # XSIZE x NACT last evaluation
    OACTN,  # 5 x XSIZE x NACT at the nodes
    OCROSS,  # NL flows that are on
    # 3 x NSW values at the end of a step, and a hair before and after the first of them changes
    OSWITCHED,
    JCROSSED,  # NSW those that change in the step
    HEADER,
) = range(179)

# --- scalars in F ---------------------------------------------------------------------------------
(
    T,  # start of the step
    H,  # step
    TEND,
    TSTOP,  # where the driver returns to Python, at TEND or before
    RTOL,
    TOLT,  # relative resolution of breaking points
    HNEXT,
    ERR,
    ERRPREV,
    SIGMA,  # change of the states, over the tolerance, by a change of what a pass looks into
    GAP,  # change of what passes look into, from the one before
    CHANGE,  # of a record by a pass
    REACH,  # how far into the step the last pass looked, as a share
    RESTFIRST,  # the next, after the second pass
    REST,  # what a further pass would change of the states, over the tolerance
    RATIO,  # step, over the one before, where that is carried on
    RATIOBEFORE,
    DECAY,  # of the next record, over the last one, as expected from the last two; 0 if unknown
    REGULAR,  # share of what the guess before missed that is added to the guess
    HPREV,
    TFLIP,
    HMAX,
    HYNEXT,  # the next tick, or end of a refractory time
    HPASS,  # longest step for which the passes agree soon
    # time in which a kink of a rate that no state smooths is seen, and below which its roughness
    # matters less
    BRIEF,
    ROUGH,  # what quartics miss of such rates in the step just taken, over the tolerance
    FHEADER,
) = range(27)

# --- a record of the history ----------------------------------------------------------------------
(RT0, RH, RINVH, RLINKS) = range(4)
# a link in a record: backlog quartic, capacity x h, work at t0, arrival quartic, capacity, mode;
# mark, price quartics (arrivals are those let into the queue; the mark ratio is of all that does
# not come through unmarked)
(LB, LCH, LS0, LY, LC, LMODE, LMARK, LPRICE, LSIZE) = (0, 5, 6, 7, 12, 13, 14, 19, 24)
# the end of a record, after links, routes and own rates: of each acting link these quartics, five
# numbers each
(XDROPPED, XOFFER, XFACTOR, XRAISE, XREPORTS, XSIZE) = range(6)
(DROPS, OFFERS, REPORTS) = (1, 2, 4)
(ROOT, TOLD) = (-1, -2)
# [bit/s] the least offer where there is none; infinity times a mode of 0 would be no number
NO_OFFER = 1e30

# --- modes of a link ------------------------------------------------------------------------------
(EMPTY, BUSY, FULL, HELD) = range(4)

# --- signals, as rows of OU -----------------------------------------------------------------------
(UE, UEDOT, UPI, UPRICE, UXTAU, UEB, UPACKET, UT, UOFFERMIN, UOFFERMAX) = range(10)
(UFACTOR, URAISE, UREPORTS) = (10, 13, 16)
(UNOISE, USIZE, REPORTERS) = (19, 20, 3)  # of as many routers on a route a source hears the reports

# --- a jump or tick, as a row of JHY --------------------------------------------------------------
# kind, flow or link, kernel, number in the law, states, their stride, signals (absolute), their
# stride, parameters (absolute), switch, once, period constant, number of states; held or ticks so
# far, located now, quick repeats; whether it changes what a router says
(
    HKIND, HOWNER, HKERNEL, HWANT, HZ, HN, HU, HSU, HP, HSWITCH, HONCE, HCONST, HNZ, HCOUNT, HDUE,
    HREPEAT, HTELLS, HSIZE,
) = range(18)  # fmt: skip
(LINK_TICK, SOURCE_TICK, LINK_JUMP, SOURCE_JUMP) = range(4)
(NO_JUMP, OF_BOUND) = (-1, -2)

# --- kinds of breaking points ---------------------------------------------------------------------
(AT_CLASS, AT_LINK, FLOW_ON, FLOW_OFF, FLOW_RATE, CAPACITY, FLOW_RELEASE) = range(7)

# --- what a flow does -----------------------------------------------------------------------------
(OFF, ON, HOLDING) = range(
    3
)  # holding: it sends, but its states stand still, as they did before time 0

# --- why the driver returned ----------------------------------------------------------------------
(
    DONE,
    PAUSED,
    GROW_RING,
    GROW_HEAP,
    COLLAPSE,
    NONFINITE,
    NEGATIVE,
    CHATTER,
    DRAIN,
    ZENO,
    PERIOD,
) = range(11)

# --- rows of the samples --------------------------------------------------------------------------
(SDELAY, SLOSS, SPRICE, SCLASSROWS) = range(4)
(SBACKLOG, SQDELAY, SARRIVAL, SDEPART, SLLOSS, SENTERED, SLOST, SLPRICE, SLINKROWS) = range(9)
