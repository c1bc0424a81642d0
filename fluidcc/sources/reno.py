"""AIMD window control, the hybrid automaton, and Reno, the fluid limit of Misra, Gong and Towsley
that follows.

Both send their window over the round trip, W/RTT, as the sender hears of it. That is static, where
TCP is clocked by acknowledgements. For active queue management Reno is a poor stand-in for TCP.
With 60 flows, 3,750 packets/s, a round trip of 0.246 s and marks in proportion to the queue, its
critical gain is 6.65e-5 a packet; that of Misra, Gong and Towsley's model, where the rate follows
the queue's round trip at once, is 1.82e-4, and with a clock of acknowledgements it is 2.3e-4. Over
RED its queue is up to 20 %, and its utilisation up to 19 %, off that of packets.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Eq

from fluidcc.laws import Steady
from fluidcc.sources.binomial import W, binomial
from fluidcc.symbols import packet, pi, positive, x_tau

__all__ = ["AIMD", "Reno"]

a, b = positive("a b")  # increase a round trip [packet], decrease factor [1]

AIMD = replace(
    binomial(
        "AIMD", 0, 1, {a: 1, b: 0.5}, "Hespanha, Bohacek, Obraczka and Lee, HSCC 2001",
        "Additive increase, multiplicative decrease of a window at a loss: TCP as an automaton.",
        up=a, down=b,
    ),
    meaning={W: "congestion window", a: "increase a round trip", b: "part given up at a loss"},
)  # fmt: skip

# dW/dt = a/RTT - b W x_tau pi/packet, with a = 1 packet and b = 1/2: Misra, Gong and Towsley,
# SIGCOMM 2000. One jump for every lost or marked packet, of which x_tau pi / packet a second left
# one round trip ago.
Reno = AIMD.averaged(
    intensity=x_tau * pi / packet,
    name="Reno",
    about="TCP Reno as a fluid: AIMD averaged over losses or marks at random.",
    claims={
        "square-root law": Steady(Eq(W**2 * pi, a / b)),
    },
    ref="Misra, Gong and Towsley, SIGCOMM 2000, with the rate in bit/s; static, W/RTT: it "
    "misjudges "
    "TCP over queues that mark, by factors of about 3 in the critical gain (see fluidcc.stability)",
)
