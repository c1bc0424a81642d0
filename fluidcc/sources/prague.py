"""TCP Prague: DCTCP for the Internet, at a rate that does not depend on round trips below 25 ms
(draft-briscoe-iccrg-prague-congestion-control; RFC 9332, Appendix C.2; tcp_prague.c of Linux).

Its interval is a virtual round trip, T = max(RTT, 25 ms). Once in it alpha, the estimate of the
share of marks, follows the share of that interval, and once in it w falls to w (1 - alpha/2) if a
packet was marked. Between cuts w grows by k packets a round trip, k = (RTT/T)^2, so that the rate
grows as that of DCTCP with round trip T.

A loss halves the window, once a round trip. The law is the mean over marks and losses at random.
Left out are the pacing at w/RTT within a round trip, and the ordinary growth of the first 500
rounds.
"""

from __future__ import annotations

from sympy import Eq, Max, Rational

from fluidcc.sources.dctcp import alpha, g
from fluidcc.sources.windows import acked, cuts, w, window
from fluidcc.symbols import RTT, Let, loss, mark, pi, positive, unfold

__all__ = ["Prague"]

T_min = positive("T_min")

_T = Let("T", Max(RTT, T_min))
_k = Let("k", (RTT / _T) ** 2)

Prague = window(
    "Prague",
    acked * (1 - pi) * _k / w - alpha * w / 2 * cuts(mark, _T) - w / 2 * cuts(loss),
    flow={alpha: g * (mark - alpha) / _T},
    initial={alpha: 1},
    params={g: Rational(1, 16), T_min: 0.025},
    units={alpha: "1", g: "1", T_min: "s"},
    limits={g: 1},
    least=2,
    claims={"with round trips above T_min it grows as TCP": Eq(unfold(_k).subs(T_min, RTT), 1)},
    about="TCP Prague: DCTCP whose rate does not depend on the round trip, below 25 ms.",
    meaning={
        alpha: "estimate of the share that is marked",
        g: "weight of the latest interval",
        T_min: "smallest virtual round trip, the interval of cuts",
    },
    ref="RFC 9332, Appendix C.2; draft-briscoe-iccrg-prague-congestion-control, Section 3",
)
