"""Where things stand in the three arrays that the compiled search works on: I (integers), P (one
point), D (scratch).

The first entries of I are sizes and offsets, below. A flow, a link and a tape have a record each in
I, whose fields are further below. Compiled code that takes a few flat arrays compiles and runs in a
fraction of the time of code that takes tuples of many.
"""

from __future__ import annotations

# --- header of I: sizes ---------------------------------------------------------------------------
FLOWS, LINKS, UNKNOWNS = 0, 1, 2
Z_FIRST, V_FIRST = 3, 4  # first unknown that is a flow's state; that is a link's
# --- header of I: offsets into I ------------------------------------------------------------------
FLOW, LINK, TAPE = 5, 6, 7  # records
HOP = 8  # links of routes
OWNER, IS_RATE, PLACE = 9, 10, 11  # by unknown: whose it is, whether a rate, place in a matrix
LOW, HIGH, FIXED = 12, 13, 14  # by unknown: flags of the active set
# by link: 1 where its unknown is what s is beyond q_max, so that small losses keep all their digits
BEYOND = 42
# --- header of I: offsets into P ------------------------------------------------------------------
# by flow: one-way and round-trip propagation delay [s], constant rate [bit/s]
BASE, TRIP, RATE = 15, 16, 17
C, Q_MAX = 18, 19  # by link: [bit/s], [s]
INITIAL, LOWER, UPPER = 20, 21, 22  # by unknown
# --- header of I: offsets into D ------------------------------------------------------------------
G, MOVE, SIZE, SCALE, REFERENCE = 23, 24, 25, 26, 27  # by unknown
END = 45  # by unknown
E, PI, PRICE, DE, DPI, DPRICE = 28, 29, 30, 31, 32, 33  # by flow: signals, and their changes
QUEUE, LOSS, QUEUE_SLOPE, LOSS_SLOPE = 34, 35, 36, 37  # by link
PASSING = 38  # by hop: share of the flow that reaches it, times how many flows are like it
REGISTERS = 39
TOLD, TOLD_END = 40, 41  # what all tapes gave
OWN = 43  # matrix and right-hand sides of one flow
# --- header of I: offset into I -------------------------------------------------------------------
SEEN = 44  # the active sets of a step so far, a number each
HEADER = 46

ROUNDS = 60
"""Changes of the active set in one step, after which the last one is taken."""

# --- fields of a flow's record --------------------------------------------------------------------
LAW = 0  # tape, -1 for a constant rate
HOPS, HOPS_END = 1, 2  # its hops
STATES, COUNT = 3, 4  # its first state among the unknowns, and how many it has
PAR, PAR_END = 5, 6  # its parameters, in P
GIVES = 7  # what its tape gives, in D
REPLY = 8  # 4 numbers for each of its unknowns (states, then rate), in D
KEPT = 9  # 1 where its unknowns are not eliminated
MANY = 10  # how many flows are like it: it stands for all of them
FLOW_SIZE = 11
# --- further fields of a link's record, which shares LAW, STATES, COUNT, PAR, PAR_END, GIVES ------
QUEUED = 1  # 1 where it holds a queue
HEARS = 2  # 1 where what it tells depends on its arrival rate
DROPS = 8  # 1 where it drops before its queue, at a ratio that its tape gives last
LINK_SIZE = 9
# --- fields of a tape's record --------------------------------------------------------------------
OPS, OPS_END = 0, 1  # instructions, in I
CONSTANTS, CONSTANTS_END = 2, 3  # in D
INPUTS = 4
OUT, OUT_END = 5, 6  # registers of the values, in I
TAPE_SIZE = 7
