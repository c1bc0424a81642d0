"""The proportional-integral controller of a queue that marks: Hollot, Misra, Towsley and Gong,
INFOCOM 2001.

Its change is that of the queue as it is: an empty queue does not fall, and a full one does not
rise. The queue counts as empty or full within a millionth of the wanted queue or of the buffer, as
a queue that rests on its bound is nowhere on one side of it.
"""

from __future__ import annotations

from sympy import Eq, Float, Heaviside

from fluidcc.laws import Steady, extended
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import Let, nonnegative, positive, q_max

__all__ = ["PI"]

(q,) = DropTail.states
p = nonnegative("p")  # mark ratio [1]
a, b = positive("a b")  # gains [1/s] of q' and [1/s^2] of q - q_ref
q_ref = positive("q_ref")  # the queueing delay wanted [s]

_edge = Let(r"\varepsilon", Float("1e-6"))
_change = DropTail.flow[q] * Heaviside(q / q_ref - _edge, 0) * Heaviside(1 - _edge - q / q_max, 0)

# The continuous law of p(k) = p(k-1) + a (q(k) - q_ref) - b' (q(k-1) - q_ref), with b' = a - b dt,
# held within [0, 1]. Gains are those of a queueing delay: a packet of queue is packet/c seconds, so
# a gain per packet is multiplied by c/packet. The defaults are the paper's, at 3750 packets/s: a =
# 1.82e-5 and b = 9.64e-6 a packet.
PI = extended(
    DropTail,
    "PI",
    flow={p: a * _change + b * (q - q_ref)},
    out={"mark": p},
    params={a: 0.0682, b: 0.03615, q_ref: 0.05},
    units={p: "1", a: "1/s", b: "1/s^2", q_ref: "s"},
    lower={p: 0},
    upper={p: 1},
    initial={p: 0},
    claims={"no steady error": Steady(Eq(q, q_ref))},
    about="A proportional-integral controller marks, so that the queue stays at a set point.",
    meaning={
        p: "mark ratio",
        a: "gain of the change of the queue",
        b: "gain of the distance from the set point",
        q_ref: "queueing delay wanted",
    },
    ref="Hollot, Misra, Towsley and Gong, INFOCOM 2001 (PI)",
)
