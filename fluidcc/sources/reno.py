"""AIMD window control, the automaton, and Reno, its mean over losses and marks at random: clocked
by acknowledgements, as TCP is, and static.

`StaticAIMD` and `StaticReno`, the fluid limit of Misra, Gong and Towsley that follows, send their
window over the round trip, W/RTT, as the sender hears of it. For one saturated drop-tail link, and
flows of one round trip, that is enough, and far quicker. For active queue management it is a poor
stand-in for TCP. With 60 flows, 3,750 packets/s, a round trip of 0.246 s and marks in proportion to
the queue, its critical gain is 6.65e-5 a packet; that of Misra, Gong and Towsley's model, where the
rate follows the queue's round trip at once, is 1.82e-4, and with a clock of acknowledgements it is
2.3e-4. Over RED its queue is up to 20 %, and its utilisation up to 19 %, off that of packets.

Over a loss ratio p the window of Reno is about sqrt(2/p) packets, the mean of losses at random.
That of AIMD is about sqrt(1.5/p) for losses at equal distances, ``losses="packets"`` of a run.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Eq

from fluidcc.laws import Steady
from fluidcc.sources.binomial import STATIC, W, binomial, clocked
from fluidcc.sources.windows import acked, cuts, w, window
from fluidcc.symbols import RTT, edot, packet, pi, positive, unfold, x_tau

__all__ = ["AIMD", "Reno", "StaticAIMD", "StaticReno"]

a, b = positive("a b")  # increase a round trip [packet], decrease factor [1]
_TCP = {a: 1, b: 0.5}
_MEANING = {a: "increase a round trip", b: "part given up at a loss"}

# RFC 5681, congestion avoidance, and RFC 6937 after a cut.
AIMD = clocked(
    "AIMD", 0, 1, _TCP, "RFC 5681, RFC 6937",
    "Additive increase, multiplicative decrease of a window at a loss: TCP as an automaton.",
    up=a, down=b, meaning=_MEANING,
)  # fmt: skip

_grows = a * (1 - pi) * acked / w
Reno = window(
    "Reno", _grows - b * w * cuts(), params=_TCP, units=dict.fromkeys(_TCP, "1"), meaning=_MEANING,
    limits={b: 1}, mean_of="fluidcc.AIMD",
    about="TCP Reno as a fluid, clocked by acknowledgements: AIMD averaged over random losses.",
    claims={
        "RFC 5681, 3.1: without losses a window grows by a in a round trip": Eq(
            unfold(_grows).subs({pi: 0, edot: 0, x_tau: packet * w / RTT}), a / RTT
        ),
    },
    ref="RFC 5681; at most one cut a round trip",
)  # fmt: skip

StaticAIMD = replace(
    binomial(
        "StaticAIMD", 0, 1, _TCP, "Hespanha, Bohacek, Obraczka and Lee, HSCC 2001",
        f"AIMD {STATIC}",
        up=a, down=b,
    ),
    limits={b: 1},
    meaning={W: "congestion window", **_MEANING},
)  # fmt: skip

# dW/dt = a/RTT - b W x_tau pi/packet, with a = 1 packet and b = 1/2: Misra, Gong and Towsley,
# SIGCOMM 2000. One jump for every lost or marked packet, of which x_tau pi / packet a second left
# one round trip ago.
StaticReno = StaticAIMD.averaged(
    intensity=x_tau * pi / packet,
    name="StaticReno",
    about="TCP Reno as a fluid whose rate is its window over RTT: AIMD averaged over losses.",
    claims={
        "square-root law": Steady(Eq(W**2 * pi, a / b)),
    },
    ref="Misra, Gong and Towsley, SIGCOMM 2000, with the rate in bit/s; static, W/RTT: it "
    "misjudges "
    "TCP over queues that mark, by factors of about 3 in the critical gain (see fluidcc.stability)",
)
