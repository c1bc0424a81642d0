"""Data Center TCP (RFC 8257): a window is cut by half the share of its packets that were marked.

Once a window of acknowledgements alpha, the estimate of the share, follows the share M that was
marked: alpha <- (1 - g) alpha + g M. Once a window with a mark in it w falls to w (1 - alpha/2).
The law is the mean of both, as in the authors' fluid model (SIGMETRICS 2011), with the ack clock
and with a cut for a window only where a packet of it is marked. A loss halves the window, once a
round trip.
"""

from __future__ import annotations

from sympy import Rational

from fluidcc.sources.windows import acked, cuts, w, window
from fluidcc.symbols import RTT, loss, mark, nonnegative, pi, positive

__all__ = ["DCTCP"]

alpha = nonnegative("alpha")
g = positive("g")

DCTCP = window(
    "DCTCP",
    acked * (1 - pi) / w - alpha * w / 2 * cuts(mark) - w / 2 * cuts(loss),
    flow={alpha: g * (mark - alpha) / RTT},
    initial={alpha: 1},
    params={g: Rational(1, 16)},
    units={alpha: "1", g: "1"},
    limits={g: 1},
    least=2,
    about="Data Center TCP: a window is cut by half the share of its packets that were marked.",
    meaning={alpha: "estimate of the share that is marked", g: "weight of the latest window"},
    ref="RFC 8257, Sections 3.3, 3.5 and 4.2",
)
