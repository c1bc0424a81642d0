"""TFRC: TCP-friendly rate control, the equation of RFC 5348 over the weighted average loss interval
(WALI).

`TFRC` begins with given loss intervals, and so does `TFRCFluid`, in which each lost or marked
packet is a loss event of its own. `SlowStartTFRC` has the start of Section 4.3: in each round trip
the rate is twice what was received in the one before, until, by the ratio that is heard, one packet
has been lost or marked. From then on it is that of the equation, and still at most twice what is
received (or one packet in `t_mbi`). Its losses come at random, and those within a round trip of a
loss event belong to it: of n a second, n/(1 + n RTT) make an event. When slow start ends, all
intervals are those that go with the rate received (Section 6.3.1), by the first term of the
equation, which is all of it within 5 % from 17 packets a round trip on. What is received is what is
known of one round trip ago, and no mean over one; lost packets count as received here.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Max, Min, Rational

from fluidcc.laws import Jump, Source, extended
from fluidcc.laws.law import tfrc_rate
from fluidcc.symbols import RTT, Let, edot, nonnegative, packet, pi, positive, unfold, x_tau

__all__ = ["TFRC", "SlowStartTFRC", "TFRCFluid"]

s0 = nonnegative("s0")  # packets since the last loss event
I = positive("I1:9")  # the last eight loss intervals [packet]
b, n0 = positive("b n0")  # packets an acknowledgement [1], first intervals [packet]

WEIGHTS = (
    1,
    1,
    1,
    1,
    Rational(4, 5),
    Rational(3, 5),
    Rational(2, 5),
    Rational(1, 5),
)  # Section 5.4

# The open interval counts only when it makes the average longer.
closed = sum(w * v for w, v in zip(WEIGHTS, I, strict=True))
opened = sum(w * v for w, v in zip(WEIGHTS, (s0, *I), strict=False))
mean = Let(r"\bar{I}", Max(closed, opened) / sum(WEIGHTS))
rate = tfrc_rate(1 / mean, RTT, packet, b)

TFRC = Source(
    name="TFRC",
    flow={s0: rate / packet, **dict.fromkeys(I, 0)},
    out={"rate": rate},
    params={b: 1, n0: 100},
    units={s0: "packet", **dict.fromkeys(I, "packet"), b: "1", n0: "packet"},
    initial={s0: 0, **dict.fromkeys(I, n0)},
    # a loss event: losses within a round trip are one
    jumps=(
        Jump(
            on=pi,
            reset={s0: 0, I[0]: s0, **dict(zip(I[1:], I[:-1], strict=True))},
            refractory=RTT,
        ),
    ),
    ref="RFC 5348, Sections 3.1 and 5.4; Floyd, Handley, Padhye and Widmer, SIGCOMM 2000",
    about="TFRC: the rate that TCP would have at the loss intervals it sees.",
    meaning={
        s0: "packets since the last loss event",
        **{v: f"loss interval {k} events back" for k, v in enumerate(I, 1)},
        b: "packets that an acknowledgement covers",
        n0: "loss intervals at first",
    },
)

# One loss event for each lost packet, of which x_tau pi / packet a second left one round trip ago.
TFRCFluid = TFRC.averaged(
    intensity=x_tau * pi / packet,
    name="TFRCFluid",
    about="TFRC in which each lost or marked packet is a loss event of its own.",
)

# At rest every interval is 1/pi and the rate that of the equation.
_rest = dict.fromkeys((s0, *I), 1 / pi)
_sent = unfold(rate).subs(_rest)
TFRCFluid = replace(
    TFRCFluid,
    claims={
        **{
            f"{z} rests at 1/pi": unfold(f).subs(_rest).subs(x_tau, _sent)
            for z, f in TFRCFluid.flow.items()
        },
        "the rate at rest is the equation's": _sent - tfrc_rate(pi, RTT, packet, b),
    },
)

fast = nonnegative("fast")  # 1 in slow start, then 0
marked = nonnegative("m")  # packets lost or marked in slow start, as expected from the ratio
v0, t_mbi = positive("v0 t_mbi")  # first packets a round trip; longest time between packets [s]

_lost = Let("n", x_tau * pi / packet)  # packets lost or marked a second
_received = Let("R", x_tau / (1 + edot))  # [bit/s]
_interval = Let("I'", Max(2 * b / 3 * (RTT * _received / packet) ** 2, 1))
_doubled = Let("X'", Max(2 * _received, packet * v0 / RTT))
_limited = Let("X", Min(rate, Max(2 * _received, packet / t_mbi)))

SlowStartTFRC = extended(
    TFRCFluid,
    "SlowStartTFRC",
    flow={
        **{
            z: (1 - fast) * f
            for z, f in TFRC.averaged(intensity=_lost / (1 + _lost * RTT)).flow.items()
        },
        marked: fast * _lost,
        fast: 0,
    },
    out={"rate": fast * _doubled + (1 - fast) * _limited},
    params={v0: 3, t_mbi: 64},
    units={marked: "packet", fast: "1", v0: "packet", t_mbi: "s"},
    initial={marked: 0, fast: 1},
    jumps=(Jump(when=fast * marked - 1, reset={fast: 0, s0: 0, **dict.fromkeys(I, _interval)}),),
    ref="RFC 5348, Sections 3.1, 4.3, 5.4 and 6.3.1",
    about="TFRC that begins with slow start.",
    meaning={
        marked: "packets lost or marked in slow start",
        fast: "1 in slow start, then 0",
        v0: "packets in the first round trip",
        t_mbi: "longest time between packets",
    },
)
