"""HighSpeed TCP (RFC 3649): above 38 packets a window grows the faster, and loses the less, the
larger it is.

The part given up at a loss falls from 1/2 at 38 packets to 0.1 at 83,000, in the logarithm of the
window (Section 5); the increase follows from that and the loss ratio at which windows are to be of
that size, p(w) = 0.078/w^1.2: a(w) = 2 w^2 p(w) b(w)/(2 - b(w)). Up to 38 it is TCP. Kernels have
the table of Appendix B, whose rows are the windows at which a(w) is 1, 2, 3, ...; it follows
from the printed p(w) to 0.05. The law is the mean over losses at random, with one cut a round trip
at most.
"""

from __future__ import annotations

from sympy import Eq, Float, Max, Min, log

from fluidcc.sources.windows import acked, cuts, w, window
from fluidcc.symbols import Let, pi, positive, unfold

__all__ = ["HighSpeed"]

w_low, w_high, b_low, b_high = positive("w_low w_high b_low b_high")

_share = Min(Max(log(w / w_low) / log(w_high / w_low), 0), 1)
_b = Let("b(w)", b_low + (b_high - b_low) * _share)
_p = Let("p(w)", Float("0.078") / w ** Float("1.2"))
increase = Let("a(w)", Max(2 * w**2 * _p * _b / (2 - _b), 1))

HighSpeed = window(
    "HighSpeed",
    increase * (1 - pi) * acked / w - _b * w * cuts(),
    params={w_low: 38, w_high: 83_000, b_low: 0.5, b_high: 0.1},
    units={w_low: "packet", w_high: "packet", b_low: "1", b_high: "1"},
    where=(w_low < w_high, b_high <= b_low),
    limits={b_low: 1, b_high: 1},
    claims={
        "at w_low b_low is given up": Eq(unfold(_b).subs(w, w_low), b_low),
        "at w_high b_high is": Eq(unfold(_b).subs(w, w_high), b_high),
        "at 38 packets it grows as TCP": Eq(
            unfold(increase).subs({w: 38, w_low: 38, b_low: 0.5}), 1
        ),
    },
    ref="RFC 3649, Section 5",
    about="HighSpeed TCP: larger windows grow faster, and give up less at a loss.",
    meaning={
        w_low: "window up to which it is TCP",
        w_high: "window at which the part given up is least",
        b_low: "part given up at a loss, up to w_low",
        b_high: "part given up at a loss, at w_high",
    },
)
