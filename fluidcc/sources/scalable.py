"""Sources whose gain scales with their own round trip: Scalable TCP, and that of Paganini, Doyle
and Low.
"""

from __future__ import annotations

from sympy import exp, symbols

from fluidcc.laws import Source, Steady
from fluidcc.symbols import RTT, packet, price, x_tau

__all__ = ["ScalableSource", "ScalableTCP"]

W = symbols("W", positive=True)  # window [packet]
a, b = symbols(
    "a b", positive=True
)  # increase for each acknowledgement [packet], decrease factor for each loss [1]
alpha, hops, top = symbols(
    "alpha M x_max", positive=True
)  # gain [s], links on the route [1], rate without price

# Of the x_tau / packet acknowledgements a second a share p, the price, tells of a loss.
ScalableTCP = Source(
    name="ScalableTCP",
    flow={W: x_tau / packet * (a * (1 - price) - b * W * price)},
    out={"rate": packet * W / RTT},
    params={a: 0.01, b: 0.125},
    units={W: "packet", a: "packet", b: "1"},
    lower={W: 1},
    initial={W: 10},
    claims={"equilibrium": Steady(a * (1 - price) - b * W * price)},
    ref="Kelly, ACM CCR 33(2), 2003",
)

# The rate falls by alpha/(M RTT) of itself for each second of price.
ScalableSource = Source(
    name="ScalableSource",
    out={"rate": top * exp(-alpha * price / (hops * RTT))},
    params={alpha: 1.0, hops: 1, top: 1e7},
    units={alpha: "s", hops: "1", top: "bit/s"},
    ref="Paganini, Doyle and Low, CDC 2001",
)
