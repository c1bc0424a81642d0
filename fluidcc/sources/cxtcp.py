"""Cx-TCP, as the LDCC paper describes it (Section VI): AIMD that also backs off, by chance, on the
queueing delay.

The probability rises in proportion to the queueing delay up to a threshold, and falls to zero
beyond it, so that flows that fill the buffer are met on their own terms, by losses. What the
description leaves open is read as follows: the probability is that of a packet, as if the path
marked it (which is how such end-to-end emulation of a router is meant); it is `peak` at the
threshold `turn`, from where it falls linearly to 0 within `fall`. No values are given: the defaults
are chosen. The fluid is that of StaticReno, with one backoff for every packet lost or so drawn.
"""

from __future__ import annotations

from sympy import Eq, Max, Min

from fluidcc.laws import extended
from fluidcc.sources.binomial import W
from fluidcc.sources.reno import StaticReno as Reno
from fluidcc.sources.reno import a, b
from fluidcc.sources.windows import change, delta
from fluidcc.symbols import RTT, Let, pi, positive, x_tau

__all__ = ["CxTCP"]

peak, turn, fall = positive("peak turn fall")

_drawn = Let("g", peak * Min(delta / turn, Max((turn + fall - delta) / fall, 0)))
# Lost, or drawn. Not 1 - (1 - pi) (1 - g), which is zero to rounding where both are below 1e-16.
_heard = Let("p", pi + (1 - pi) * _drawn)

CxTCP = extended(
    Reno,
    "CxTCP",
    flow={W: Reno.flow[W].subs(pi, _heard), delta: change},
    params={peak: 0.05, turn: 0.02, fall: 0.04},
    units={delta: "s", peak: "1", turn: "s", fall: "s"},
    lower={delta: 0},
    initial={delta: 0},
    claims={
        "square-root law of losses and draws": Eq(
            Reno.flow[W].subs(pi, _heard).subs(x_tau, Reno.out["rate"]),
            (a - b * W**2 * _heard) / RTT,
        ),
        "beyond turn + fall it is Reno": Eq(_heard.subs(delta, turn + fall + delta), pi),
    },
    about="Cx-TCP: Reno that also backs off, by chance, on the queueing delay.",
    meaning={
        delta: "queueing delay as the source sees it",
        peak: "largest probability of a backoff on delay, for a packet",
        turn: "queueing delay at which that probability is largest",
        fall: "further delay within which it falls to 0",
    },
    ref="Budzisz, Stanojevic, Schlote, Baker and Shorten 2011, as described in LDCC, Section VI",
)
