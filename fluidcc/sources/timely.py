"""TIMELY (Mittal and others, SIGCOMM 2015), and as it is patched by Zhu, Ghobadi, Misra and Padhye
(CoNEXT 2016): a rate by the queueing delay and its gradient.

A source measures at each completion of a segment, and then changes its rate: by ticks, as the
algorithms are printed. From one to the next it takes tau = max(Seg/R, D_min). The fluid of the
second paper divides the same changes by tau, and takes the delay of now less that of tau ago: what
a tick has as `d`. So no Taylor form and no average is in the law here.

The gradient g is the smoothed difference of two measurements over D_min. Below T_low a rate grows
by delta; above T_high it shrinks by how far the delay is beyond. In between TIMELY grows while g <=
0, and else shrinks by g: where a queue stands still it always grows, so nothing rests. Patched, it
weighs both by w(g), which is 1/2 at g = 0: it rests at q = T_low (1 + N delta/(beta C)).

Delays are queueing delays, as in the second paper. No change takes more than half of a rate, as in
eRPC, and a rate is delta at the least: slower links are overrun. Left out is the faster increase
after five completions in a row. The text prints the slope 2 of w; the authors' code has 1/2.

Flows that tick together, over 10 Gbit/s and 100 us, are stable from 3 to 19 with the slope 2, and
from 5 on with 1/2.
"""

from __future__ import annotations

from typing import Any

from sympy import Eq, Expr, Max, Min, Piecewise, Rational, Symbol

from fluidcc.laws import Source, Tick
from fluidcc.sources.windows import MEANING, change
from fluidcc.sources.windows import delta as seen
from fluidcc.symbols import Let, nonnegative, positive

__all__ = ["TIMELY", "PatchedTIMELY"]

R = positive("R")
g = Symbol("g", real=True)
q = nonnegative("q")
d = Symbol("d", real=True)
delta, alpha, beta, T_low, T_high, D_min, Seg, slope = positive(
    "delta alpha beta T_low T_high D_min Seg slope"
)

tau = Let("tau", Max(Seg / R, D_min))
gradient = Let("g'", (1 - alpha) * g + alpha * d / D_min)
weight = Let("w", Min(Max(slope * gradient + Rational(1, 2), 0), 1))
error = Let("E", (q - T_low) / T_low)


def _timely(name: str, between: Expr, **more: Any) -> Source:
    """Make the law that takes the rate `between` T_low and T_high."""
    beyond = R * (1 - beta * (1 - T_high / Max(q, T_high)))
    changed = Piecewise((R + delta, q < T_low), (beyond, q > T_high), (between, True))
    params = {
        delta: 10e6,
        alpha: 0.875,
        beta: 0.8,
        T_low: 50e-6,
        T_high: 500e-6,
        D_min: 20e-6,
        Seg: 128e3,
    }
    return Source(
        name=name,
        flow={R: 0, g: 0, d: change, q: change},
        out={"rate": R},
        params=params | more.pop("params", {}),
        units={
            **dict.fromkeys((R, delta), "bit/s"),
            **dict.fromkeys((g, alpha, beta, *more.pop("plain", ())), "1"),
            **dict.fromkeys((q, d, T_low, T_high, D_min), "s"),
            Seg: "bit",
        },
        lower={R: delta, q: 0},
        initial={R: 1e9, g: 0, d: 0, q: 0},
        limits={alpha: 1, beta: 1},
        where=(T_low < T_high,),
        ticks=(Tick(every=tau, update={R: Max(changed, R / 2), g: gradient, d: 0}),),
        meaning={
            R: "rate",
            g: "smoothed gradient of the delay",
            q: MEANING[seen],
            d: "its change since the last completion",
            delta: "additive increase",
            alpha: "weight of the newest difference",
            beta: "decrease, as a share",
            T_low: "queueing delay below which it always grows",
            T_high: "queueing delay above which it always shrinks",
            D_min: "smallest round trip, by which the gradient is measured",
            Seg: "segment, after which it measures",
            slope: "how fast the weight follows the gradient",
        },
        **more,
    )


TIMELY = _timely(
    "TIMELY",
    Piecewise((R + delta, gradient <= 0), (R * (1 - beta * gradient), True)),
    about="TIMELY: for data centres, by the gradient of the round trip; rests nowhere.",
    ref="Mittal and others, SIGCOMM 2015, Algorithm 1; Zhu, Ghobadi, Misra and Padhye, CoNEXT 2016",
)
_patched = delta * (1 - weight) + R * (1 - beta * weight * error)
PatchedTIMELY = _timely(
    "PatchedTIMELY",
    _patched,
    params={beta: 0.008, slope: 2},
    plain=[slope],
    claims={
        "it rests at T_low (1 + delta/(beta R))": Eq(
            _patched.subs({g: 0, d: 0, q: T_low * (1 + delta / (beta * R))}), R
        )
    },
    about="TIMELY with a rest: increase and decrease are weighed by the gradient of the delay.",
    ref="Zhu, Ghobadi, Misra and Padhye, CoNEXT 2016",
)
