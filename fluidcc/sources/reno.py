"""AIMD window control, the hybrid automaton, and Reno, the fluid limit of Misra, Gong and Towsley that follows."""

from __future__ import annotations

from sympy import Eq, symbols

from fluidcc.law import Steady
from fluidcc.sources.binomial import W, binomial
from fluidcc.symbols import packet, pi, x_tau

__all__ = ["AIMD", "Reno"]

a, b = symbols("a b", positive=True)  # increase a round trip [packet], decrease factor [1]

AIMD = binomial("AIMD", 0, 1, {a: 1, b: 0.5}, "Hespanha, Bohacek, Obraczka and Lee, HSCC 2001", up=a, down=b)

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
