"""TCP Westwood+: at a loss a window falls to what the path holds without a queue, the bandwidth
that acknowledgements show times the least round trip (Grieco and Mascolo, CCR 2004;
tcp_westwood.c of Linux).

Once an interval T = max(RTT, 50 ms) the acknowledged packets a second are a sample, of which B is
the average, twice with weight 1/8. Between losses it is Reno. The law is the mean over losses at
random, one cut a round trip at most: each takes what waits in the queue, w - B RTT_min. B begins as
if the first window were acknowledged in 50 ms; Linux takes its first sample.
"""

from __future__ import annotations

from sympy import Eq, Max, Rational

from fluidcc.sources.windows import acked, cuts, delta, w, window
from fluidcc.symbols import RTT, Let, nonnegative, pi, positive, unfold

__all__ = ["Westwood"]

n, B = nonnegative("n B")
g, T_min = positive("g T_min")

_T = Let("T", Max(RTT, T_min))
_holds = Let("B RTT_{min}", B * (RTT - delta))

Westwood = window(
    "Westwood",
    (1 - pi) * acked / w - Max(w - _holds, 0) * cuts(),
    flow={n: g * (acked - n) / _T, B: g * (n - B) / _T},
    initial={n: w / T_min, B: w / T_min},
    params={g: Rational(1, 8), T_min: 0.05},
    units={n: "packet/s", B: "packet/s", g: "1", T_min: "s"},
    limits={g: 1},
    least=2,
    claims={
        "at rest a cut takes the flow's part of the queue": Eq(
            unfold(w - _holds).subs(B, w / RTT), w / RTT * delta
        ),
    },
    about="TCP Westwood+: after a loss a window is what the path holds without a queue.",
    meaning={
        n: "acknowledged packets a second, averaged once",
        B: "bandwidth: acknowledged packets a second, averaged twice",
        g: "weight of the latest interval",
        T_min: "shortest interval",
    },
    ref="Grieco and Mascolo, CCR 2004; tcp_westwood.c of Linux",
)
