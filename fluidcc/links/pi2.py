"""PI2: a proportional-integral controller whose output is squared for TCP (RFC 9332, Appendix A;
De Schepper, Bondarenko, Tsang and Briscoe, CoNEXT 2016).

Every T seconds p' += alpha (D - target) + beta (D - D of T ago), in [0, 1], and packets are marked
at the ratio p'^2, so that the gain of the loop does not depend on the load. The law is the
continuous one, p'' = alpha/T (D - target) + beta D' a second; that p' is held between updates is a
lag of T/2. The defaults are those of the classic queue of DualPI2: 15 ms, 0.16 Hz, 3.2 Hz and 16
ms. Marks are of the delay that data find on entry, as the age of the packet at the head is.
"""

from __future__ import annotations

from sympy import Eq, Float, Heaviside

from fluidcc.laws import Steady, extended
from fluidcc.laws.early_loss import dropping
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import Let, nonnegative, positive, q_max

__all__ = ["PI2", "PI2Drop"]

(q,) = DropTail.states
p, h = nonnegative("p h")  # p', and as it is held: the mark ratio is the square of that [1]
alpha, beta, T, target = positive("alpha beta T target")

_edge = Let(r"\varepsilon", Float("1e-6"))
_change = DropTail.flow[q] * Heaviside(q / target - _edge, 0) * Heaviside(1 - _edge - q / q_max, 0)

PI2 = extended(
    DropTail,
    "PI2",
    flow={p: alpha / T * (q - target) + beta * _change, h: (p - h) / (T / 2)},
    out={"mark": h**2},
    params={alpha: 0.16, beta: 3.2, T: 0.016, target: 0.015},
    units={p: "1", h: "1", alpha: "1/s", beta: "1/s", T: "s", target: "s"},
    lower={p: 0, h: 0},
    upper={p: 1},
    initial={p: 0, h: 0},
    claims={"no steady error": Steady(Eq(q, target))},
    about="A proportional-integral controller marks at the square of its output.",
    meaning={
        p: "output of the controller",
        h: "output as it is held between updates, of which the mark ratio is the square",
        alpha: "gain of the distance from the target, each update",
        beta: "gain of the change of the queue, each update",
        T: "interval of updates",
        target: "queueing delay wanted",
    },
    ref="RFC 9332, Appendix A (classic part of DualPI2)",
)
PI2Drop = dropping(PI2, "PI2Drop")
