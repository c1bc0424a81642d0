"""The router of RCP: one rate R, offered to all flows, from what comes and what is in the queue.

    R' = R/(d c) (alpha (gamma c - y) - beta q c/d),

d a mean round trip, which routers hear of in packets' headers: here a parameter. With gamma < 1, as
deployed, it rests without a queue; with gamma > 1 with the queue alpha (gamma - 1) d/beta. With 1,
as in the paper, rest is at the edge of an empty queue. An offer comes straight back, as long as the
way to the router took; those of the paper go on to the receiver and come with acknowledgements.
"""

from __future__ import annotations

from fluidcc.laws import extended
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import c, positive, y

__all__ = ["RCPLink"]

(q,) = DropTail.states
R = positive("R")  # [bit/s]
alpha, beta, gamma, d = positive("alpha beta gamma d")

RCPLink = extended(
    DropTail,
    "RCPLink",
    flow={R: R / (d * c) * (alpha * (gamma * c - y) - beta * q * c / d)},
    out={"offer": R},
    params={alpha: 0.4, beta: 0.226, gamma: 0.95, d: 0.1},
    units={R: "bit/s", alpha: "1", beta: "1", gamma: "1", d: "s"},
    lower={R: c / 1e6},
    upper={R: c},
    initial={R: 1e6},
    meaning={
        R: "rate that it offers",
        alpha: "gain of the spare capacity",
        beta: "gain of the queue",
        gamma: "part of the capacity that is to be used",
        d: "mean round trip",
    },
    about="The router of RCP: offers one rate to all flows.",
    ref="Dukkipati, Kobayashi, Zhang-Shen and McKeown, IWQoS 2005",
)
