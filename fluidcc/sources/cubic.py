"""CUBIC TCP (RFC 9438): after a loss a window climbs back by the cube of time, whatever its round
trip.

At a cut a window w falls to beta w, and M becomes w, or less where w has not come back to the last
M (fast convergence, Section 4.7). From then on the target is

    W(T) = C T^3 + M,   T = time since the cut - K,   K = cbrt((M - beta w)/C)

at the time of the next round trip, within [w, 1.5 w] (4.2); each acknowledgement brings w nearer by
(target - w)/w. That is late by a round trip, which the lead makes good. E is the window of a TCP
that keeps beta at a cut and at equal losses has what Reno has: w comes to be no less (4.3).

It is a law of jumps, with one cut a round trip at most. Left out are slow start (it begins as after
it, with K = 0) and time-outs.

Linux has C = 410/1024 and beta = 717/1024, takes the least round trip for the lead, and E never
grows as fast as Reno.
"""

from __future__ import annotations

from typing import Any

from sympy import Eq, Expr, Heaviside, Max, Min, Rational, Symbol

from fluidcc.laws import Jump
from fluidcc.sources.windows import acked, w, window
from fluidcc.symbols import RTT, Let, pi, positive

__all__ = ["CUBIC"]

M, E, E_0 = positive("M E E_0")
T = Symbol("T", real=True)
C, beta = positive("C beta")


def _root(f: Any) -> Expr:
    return f ** Rational(1, 3)


_slow = Let(r"\alpha", 3 * (1 - beta) / (1 + beta))  # as many packets as Reno, on the whole

_target = Let("W", C * (T + RTT) ** 3 + M)
_climb = Let("g", Min(Max(_target - w, 0), w / 2))
_kept = 1 - (1 - beta) / 2 * Heaviside(M - w)  # M over w after a cut

CUBIC = window(
    "CUBIC",
    acked / w * Max(_climb, E - w),
    flow={T: 1, M: 0, E: acked / w * (_slow + (1 - _slow) * Heaviside(E - E_0, 1)), E_0: 0},
    initial={T: 0, M: w, E: w, E_0: w},
    jumps=[
        Jump(
            when=pi,
            reset={
                w: beta * w,
                M: w * _kept,
                T: -_root(w * (_kept - beta) / C),
                E: beta * w,
                E_0: w,
            },
            refractory=RTT,
        )
    ],
    params={C: 0.4, beta: 0.7},
    units={C: "packet/s^3", beta: "1", T: "s", M: "packet", E: "packet", E_0: "packet"},
    limits={beta: 1},
    claims={
        "4.2: W is beta w at the cut": Eq(
            (C * T**3 + M).subs(T, -_root(M * (1 - beta) / C)), beta * M
        )
    },
    about="CUBIC TCP: windows climb by the cube of the time since the last loss.",
    meaning={
        T: "time since the cut, less K",
        M: "window before the last cut, or less",
        E: "window that TCP would have",
        E_0: "window at the last cut",
        C: "coefficient of the cube",
        beta: "part kept at a cut",
    },
    ref="RFC 9438, Sections 4.1 to 4.7",
)
