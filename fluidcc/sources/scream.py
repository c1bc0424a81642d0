"""SCReAM 2 (draft-ietf-ccwg-rfc8298bis-screamv2-01), where routers mark for L4S: media, the rate of
which is w/R, the reference window over the round trip, and some 20 % less.

Without marks, losses and delay w grows by a packet and 2 % a round trip. At most once in I = min(T,
R), T the virtual round trip of 25 ms, it is cut: by 0.3 if a packet was lost; else, if one was
marked, by alpha/2; else by alpha_v/2, where alpha_v goes from 0 to 1 while v, the averaged queueing
delay, goes from half of its target to the target. Of alpha/2 and alpha_v/2 each takes the part I/R.
The 2 % come back in 100 round trips after the last mark or loss. Near w_i, w before the last cut,
growth is a quarter, and so are cuts for marks while the queueing delay is below a quarter of its
target. Over a queue that is held at just that, 15 ms as PI2 by default, there is no rest.

alpha follows the shares of marks in 10 ms each, or a round trip if that is shorter: by 1/8 upwards,
and towards 0 by 1/128. The law is the mean over marks and losses at random. Where these are rare
most shares are 0, and alpha is 1/(P + (1 - P)/16) times the mark ratio, P the chance of one that is
not. This takes those that are not as equal, which they are where packets are marked one by one:
alpha is right up to 0.3 marks in that time, a quarter too small with 0.6 to 1, 30 % with 1.5 to 3,
6 % with 30. Rates over links that mark at random are within 8 % of packets'. Over
`fluidcc.StepMark`, which marks all or nothing for a while, they were not compared.

The round trip that it hears is the smoothed one, a packet is MSS, and frames are all of one size.
Left out are classic ECN, limits of the rate, targets beyond 60 ms beside flows that fill the
buffer, and that at the first mark in 100 round trips w falls to what is in flight. What is optional
in the draft is off, as there. Beside one Reno on 100 Mbit/s and 40 ms it has 0.2 of the link over a
bandwidth-delay product without marks, and 0.9 over PI2 at 5 ms.
"""

from __future__ import annotations

from sympy import Expr, Float, Heaviside, Max, Min, Piecewise, Rational, exp

from fluidcc.laws import Source
from fluidcc.sources.dctcp import alpha
from fluidcc.sources.windows import MEANING, acked, change, cuts, delta, w
from fluidcc.symbols import RTT, Let, loss, mark, nonnegative, packet, positive

__all__ = ["SCReAM"]

_NONE = Float("1e-6")  # so that where nothing is marked one of two equal falls is the larger
_NEARLY = 1 - Float("1e-3")  # of v, below which it follows at once: not at rest

post, v = nonnegative("post v")
w_i = positive("w_i")
T, T_alpha, up, down, g_v, beta, mul, rounds = positive("T T_alpha up down g_v beta mul rounds")
target, near, scale, scl_min, few, slack, overhead = positive(
    "target near scale scl_min few slack overhead"
)

_I, _T_alpha = Let("I", Min(T, RTT)), Let(r"T_{\alpha}'", Min(T_alpha, RTT))


def _events(name: str, ratio: Expr) -> Expr:
    """Part of its chances of a cut, one in I, that it takes where this ratio is lost or marked."""
    seen = acked * ratio * _I
    return Let(name, seen / (seen + exp(-seen)))


_lost = _events("L", loss)
_marked = Let("M", (1 - _lost) * _events("m", mark))
_virtual = Let(r"\alpha_v", Min(Max(2 * v / target - 1, 0), 1))
_delayed = (1 - _lost) * (1 - _marked)
_scl = Let(r"\mathrm{scl}", Min(Max((scale * (w - w_i) / w_i) ** 2, scl_min), 1))
_near = Let("k", Max(near, _scl))
_back = Piecewise((_near, delta < target / 4), (1, True))
_grown = Min(1, RTT / T) * _near * (1 + mul * w * post * _scl) / w
_any = Let("P", cuts(mark, _T_alpha) * _T_alpha)  # a share of marks that is not 0

_rate = w / RTT / (slack * (1 + overhead)) * (1 - Min(Max(1 / w - few, 0), 2 * few))

SCReAM = Source(
    name="SCReAM",
    flow={
        w: acked * (1 - (1 - loss) * mark) * _grown
        - w * (alpha * _marked * _back + _virtual * _delayed) / (2 * RTT)
        - w * (1 - beta) * _lost / _I,
        alpha: Max(up * (mark - _any * alpha) - down * (1 - _any) * alpha, -down * alpha - _NONE)
        / _T_alpha,
        w_i: (w - w_i) / _I * (_lost + _marked + _delayed * Heaviside(v - target / 2, 0)),
        post: 1 / (rounds * Max(T, RTT)) - post * acked * (mark + loss),
        v: Min(g_v * (delta - v), delta - _NEARLY * v) / _I,
        delta: change,
    },
    out={"rate": packet * _rate},
    initial={w: 3, alpha: 0, w_i: 0.001, post: 1, v: 0, delta: 0},
    lower={w: 3, delta: 0},
    upper={post: 1},
    window=w,
    params={
        T: 0.025, T_alpha: 0.01, up: Rational(1, 8), down: Rational(1, 128), g_v: Rational(1, 4),
        beta: 0.7, mul: 0.02, rounds: 100, target: 0.06, near: 0.25, scale: 8, scl_min: 0.1,
        slack: 1.2, overhead: 0.02, few: 0.1,
    },
    units={
        **dict.fromkeys((alpha, post, up, down, g_v, beta, mul, rounds, near, scale, scl_min), "1"),
        **dict.fromkeys((delta, v, T, T_alpha, target), "s"), **dict.fromkeys((w, w_i), "packet"),
        **dict.fromkeys((slack, overhead, few), "1"),
    },
    limits=dict.fromkeys((up, down, g_v, beta, near, scl_min, few), 1),
    about="SCReAM version 2: media over links that mark for L4S, or by the queueing delay.",
    meaning={
        w: "reference window",
        delta: MEANING[delta],
        alpha: "estimate of the share that is marked",
        w_i: "window before the last cut",
        post: "part of 100 round trips for which nothing was marked or lost",
        v: "averaged queueing delay",
        T: "virtual round trip",
        T_alpha: "time in which marks are counted, or a round trip",
        up: "weight of the latest share, upwards",
        down: "weight of the latest share, downwards",
        g_v: "weight of the latest queueing delay, upwards",
        beta: "part that is kept at a loss",
        mul: "growth in proportion to the window, a round trip",
        rounds: "round trips after the last mark or loss until that is whole",
        target: "queueing delay for which the window would be halved",
        near: "least part of growth and cuts near the window before the last cut",
        scale: "how fast growth and cuts are whole again beyond it",
        scl_min: "least part of the proportional growth",
        slack: "window over the round trip, by the rate of the media and what it is sent in",
        overhead: "of what it is sent in, by a packet",
        few: "packets by one, for which the rate begins to be less",
    },
    ref="draft-ietf-ccwg-rfc8298bis-screamv2-01, Sections 4.2 and 4.4",
)  # fmt: skip
