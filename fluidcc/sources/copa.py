"""Copa (Arun and Balakrishnan, NSDI 2018): a window that goes to and fro about the rate
1/(delta d_q), at which it has 1/delta packets in the queue.

The queueing delay d_q is RTT_s - RTT_min: RTT_s is the least round trip of the last half of one,
RTT_min that of the last 10 s. With each acknowledgement the window w grows by v/(delta w) packets
while w/RTT_s is no more than 1/(delta d_q), and else shrinks by as much. Once a round trip v
becomes 1 if w has turned in it; from the third on that has not, v doubles. It paces at 2 w/RTT_s,
and starts with a window that doubles in a round trip until it is too fast.

Alone, or beside others of its round trip, it so empties the queue once in five round trips, the
paper's Section 3. Where d_q was above 0.1 (RTT_max - RTT_min) for five of them, RTT_max the largest
of the last four, others must fill it. Then it competes: 1/delta grows by a packet a round trip, and
halves in a round trip with a loss, down to what it was. Otherwise it is deaf to losses.

It looks at the round trip seven times in one, and turns then: it may turn up a seventh of a round
trip late, and overlooks dips in between. RTT_min is kept by quarters of its 10 s. An
acknowledgement changes w by a packet at most. In a round trip losses have
come to a packet or there is none, and those of the round trip after a cut are of the same. Left out
are marks, time-outs, and the cut of the authors' code when 0.3 of the packets are lost.

On 100 Mbit/s and 40 ms, beside one CUBIC over buffers of 0.5, 1 and 4 bandwidth-delay products, it
gets 0.52, 0.40 and 0.13 of the link; with part = 1, that is without competing, at most 0.02.
Beside flows of other round trips the queue empties less often, and Copa competes with Copa: over
10 Mbit/s and 300 packets, flows of 40 and 80 ms hold 136 of these on average, packets 154. There
flows of 40 ms may come to the same when one begins later, in packets too.
From some first windows v is large when w turns, and stays so to the end of that round trip: then w
swings widely for ever, as with packets. Facebook's mvfst has v = 1 at once.
"""

from __future__ import annotations

from sympy import Max, Min, Piecewise, Rational, symbols

from fluidcc.laws import Tick, highest, lowest, rounds
from fluidcc.sources.clocks import s
from fluidcc.sources.windows import w, window
from fluidcc.symbols import RTT, Let, loss, nonnegative, positive

__all__ = ["Copa"]

a, v, starts, W, k, b = nonnegative("a v starts W k b")
up, D, l = symbols("up D l", real=True)
delta, part, memory = positive("delta part memory")

ENDLESS = 1e9  # more packets than are lost in a round trip
_HALF, _LOOKS = Rational(1, 2), RTT / 7

_standing = Let(r"\mathrm{RTT}_s", lowest(RTT, 3 * _LOOKS, 3, every=_LOOKS, name="S"))
_least = Let(r"\mathrm{RTT}_{\min}", lowest(RTT, memory, every=_LOOKS, name="R"))
_largest = Let(r"\mathrm{RTT}_{\max}", highest(RTT, rounds(4), every=_LOOKS, name="H"))
_queued = Let("d_q", _standing - _least)
_fast = w * _queued > a * _standing  # than 1/(delta d_q)
_seen = {
    up: Piecewise((-1, _fast), (1, True)),
    starts: Piecewise((0, _fast), (starts, True)),
    b: Piecewise((0, _queued <= part * (_largest - _least)), (b, True)),
}
_turned, _begins = D * (w - W) <= 0, starts > _HALF
_round = {
    D: w - W,
    W: w,
    k: Piecewise((0, _begins), (0, _turned), (k + 1, True)),
    v: Piecewise((1, _begins), (1, _turned), (v, k < 2), (Min(2 * v, Max(w / a, 1)), True)),
    a: Piecewise((1 / delta, b < 5), (a + 1, l < 1), (Max(a / 2, 1 / delta), True)),
    b: b + 1,
    l: Piecewise((0, l < 0), (l, l < 1), (-ENDLESS, True)),
}

Copa = window(
    "Copa",
    (1 - loss) * s * Piecewise((1, _begins), (up * Min(v * a / w, 1), True)),
    clock="paced",
    rate=2 * w / _standing,
    flow={l: loss * s, **dict.fromkeys((a, v, up, starts, W, D, k, b), 0)},
    initial={
        a: 1 / delta, **dict.fromkeys((v, up, starts), 1), W: w, **dict.fromkeys((D, k, b, l), 0),
    },
    ticks=[Tick(_LOOKS, _seen), Tick(RTT, _round)],
    params={delta: 0.5, part: 0.1, memory: 10},
    units={
        **dict.fromkeys((a, W, D, l), "packet"), **dict.fromkeys((v, up, starts, k, b), "1"),
        memory: "s", delta: "1/packet", part: "1",
    },
    limits={part: 1},
    least=2,
    about="Copa: keeps a few packets in the queue and empties it every five round trips.",
    meaning={
        a: "1/delta: packets that it means to have in the queue, more while it competes",
        v: "velocity: how many times 1/delta a round trip the window changes by",
        up: "1 while its window grows, -1 while it shrinks",
        starts: "1 until it was faster than 1/(delta d_q), then 0",
        W: "window at the last round trip",
        D: "change of the window in the last round trip",
        k: "round trips since the window turned, without the one in which it did",
        b: "round trips since the queue was seen nearly empty",
        l: "packets lost in this round trip, or parts of one before; negative after a cut",
        delta: "1 over the packets that it means to have in the queue",
        part: "part of the largest queueing delay below which the queue is nearly empty",
        memory: "time for which a least round trip is good",
    },
    ref="Arun and Balakrishnan, NSDI 2018, Sections 2.1 and 2.2",
)  # fmt: skip
