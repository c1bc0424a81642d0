"""LEDBAT++: LEDBAT that is no faster than Reno, and fair among its own
(draft-irtf-iccrg-ledbat-plus-plus, Sections 4.2 and 4.3).

Its window grows by G packets a round trip while the queueing delay is below the target, where G =
1/min(16, ceil(2 target/base)) and base is the round trip without queues. Beyond the target it
shrinks by w (delay/target - 1) packets less G, by half of itself at the most; a loss takes half of
it, once a round trip. At rest the delay is above the target by the part G/w, so flows of one base
have equal windows.

The law is the mean over losses at random. Left out are its slow start, and the slowdowns by which
it sees the base anew: start flows with a right `delta`, or on an empty path. A ratio 2 target/base
above a whole number by less than a thousandth is taken for that number, as the base is known to
errors alone.

Of flows of one base the loop is a round trip long, with the gain 1/target: it is stable while a
round trip, the target with it, takes less than pi/2 targets, 94 ms at 60 ms.
"""

from __future__ import annotations

from sympy import Expr, Float, Max, ceiling

from fluidcc.sources.windows import acked, cuts, delta, w, window
from fluidcc.symbols import RTT, Let, positive

__all__ = ["LEDBATpp"]

target = positive("target")


def _slow(base: Expr) -> Expr:
    return 1 / ceiling(Float("0.999") * 2 * target / Max(base, target / 8))


_gain = Let("G", _slow(RTT - delta))
_excess = Let(r"\epsilon", Max(delta / target - 1, 0))
_step = Let(r"\Delta", Max(_gain - w * _excess, -w / 2))

LEDBATpp = window(
    "LEDBATpp",
    acked / w * _step - w / 2 * cuts(),
    params={target: 0.06},
    units={target: "s"},
    least=2,
    claims={"it grows by a packet a round trip at the most": _slow(positive("base")) <= 1},
    ref="draft-irtf-iccrg-ledbat-plus-plus, Sections 4.2 and 4.3",
    about="LEDBAT++: takes what others leave, no faster than Reno, and fairly among its own.",
    meaning={target: "queueing delay aimed at"},
)
