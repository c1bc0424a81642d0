"""AIMD window control, the hybrid automaton, and Reno, the fluid limit of Misra, Gong and Towsley that follows."""

from __future__ import annotations

from sympy import Eq, symbols

from fluidcc.law import Jump, Source, Steady
from fluidcc.symbols import RTT, packet, pi, x_tau

__all__ = ["AIMD", "Reno"]

W = symbols("W", positive=True)  # congestion window [packet]
a, b = symbols("a b", positive=True)  # increase a round trip [packet], decrease factor [1]

AIMD = Source(
    name="AIMD",
    flow={W: a / RTT},
    out={"rate": packet * W / RTT},
    params={a: 1, b: 0.5},
    units={W: "packet", a: "packet", b: "1"},
    lower={W: 1},
    initial={W: 1},
    jumps=(Jump(when=pi, reset={W: (1 - b) * W}, refractory=RTT),),
    ref="Hespanha, Bohacek, Obraczka and Lee, HSCC 2001",
)

# dW/dt = a/RTT - b W x_tau pi/packet, with a = 1 packet and b = 1/2: Misra, Gong and Towsley, SIGCOMM 2000.
# One jump for every lost or marked packet, of which x_tau pi / packet a second left one round trip ago.
Reno = AIMD.averaged(
    intensity=x_tau * pi / packet,
    name="Reno",
    claims={
        "square-root law": Steady(Eq(W**2 * pi, a / b)),
    },
    ref="Misra, Gong and Towsley, SIGCOMM 2000, with the rate in bit/s",
)
