"""Compound TCP: a window is the sum of Reno's and of one that grows fast while there is no queue
(draft-sridharan-tcpm-ctcp; Tan, Song, Zhang and Sridharan, INFOCOM 2006).

The sum w grows by alpha w^k a round trip, and by 1 at the least, as long as fewer than gamma of its
packets wait in queues, w (RTT - RTT_min)/RTT. Of that 1 is Reno's, cwnd, and the rest is of dwnd =
w - cwnd. With a longer queue dwnd shrinks by zeta times the packets that wait, its last packet in
proportion. At a loss w falls to (1 - beta) w, and cwnd to its half.

The law is the mean over losses at random, one cut a round trip at most. gamma is fixed here, and
not adapted to the path. Between gamma - 1/2 and gamma + 1/2 packets one law goes over into the
other: at a step a fluid would slide, which packets do not resolve either.
"""

from __future__ import annotations

from sympy import Eq, Max, Min, Rational

from fluidcc.sources.windows import acked, cuts, delta, w, window
from fluidcc.symbols import RTT, Let, nonnegative, pi, positive

__all__ = ["Compound"]

cwnd = nonnegative("cwnd")
alpha, beta, k, gamma, zeta = positive("alpha beta k gamma zeta")

_round = Let(r"\rho", (1 - pi) * acked / w)  # round trips a second
_waits = Let(r"\mathrm{diff}", w * delta / RTT)
_short = Let(r"\sigma", Min(Max(gamma + Rational(1, 2) - _waits, 0), 1))
_fast = Max(alpha * w**k - 1, 0)
_dwnd = _fast * _short - zeta * _waits * (1 - _short) * Min(w - cwnd, 1)

Compound = window(
    "Compound",
    _round * (1 + Let(r"\Delta", _dwnd)) - beta * w * cuts(),
    flow={cwnd: _round - cwnd / 2 * cuts()},
    initial={cwnd: w},
    params={alpha: Rational(1, 8), beta: Rational(1, 2), k: Rational(3, 4), gamma: 30, zeta: 1},
    units={cwnd: "packet", gamma: "packet", alpha: "1", beta: "1", k: "1", zeta: "1"},
    limits={beta: 0.5, k: 1},
    least=2,
    claims={"from alpha w^k = 1 on w grows by that": Eq(1 + _fast.subs(alpha, 2 / w**k), 2)},
    about="Compound TCP: Reno's window, and one that grows fast while there is no queue.",
    meaning={
        cwnd: "Reno's part of the window",
        alpha: "increase a round trip of a window of one packet",
        beta: "part given up at a loss",
        k: "exponent of the increase",
        gamma: "packets that wait in queues from which on the delay window shrinks",
        zeta: "part of these by which it does, a round trip",
    },
    ref="draft-sridharan-tcpm-ctcp; Tan, Song, Zhang and Sridharan, INFOCOM 2006",
)
