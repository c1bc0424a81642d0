"""TCP-Illinois: a window grows the slower, and loses the more at a loss, the longer the queue (Liu,
Basar and Srikant, Performance Evaluation 65, 2008; tcp_illinois.c of Linux).

With d_a the queueing delay, averaged over a round trip, and d_m the largest ever seen,

    alpha = alpha_max up to d_1 = d_m/100, and k_1/(k_2 + d_a) beyond, which is alpha_min at d_m,
    beta  = beta_min up to d_2 = d_m/10, beta_max from d_3 = 8 d_m/10, and linear between.

A window below W_thresh packets is Reno's. The law is the mean over losses at random, one cut a
round trip at most. d_m, which a source learns from full buffers and never forgets, is a parameter
here. Left out is that alpha rises to its maximum only after five round trips below d_1.
"""

from __future__ import annotations

from sympy import Eq, Heaviside, Max, Min, Rational

from fluidcc.sources.windows import acked, cuts, delta, w, window
from fluidcc.symbols import RTT, Let, nonnegative, pi, positive, unfold

__all__ = ["Illinois"]

d_a = nonnegative("d_a")
alpha_max, alpha_min, beta_max, beta_min = positive("alpha_max alpha_min beta_max beta_min")
d_m, W_thresh = positive("d_m W_thresh")

_large = Heaviside(w - W_thresh, 1)
_far = (alpha_max - alpha_min) / alpha_min * Max(d_a - d_m / 100, 0)
_a = Let(r"\alpha(d_a)", alpha_max / (1 + _far / (d_m * Rational(99, 100))))
_share = Min(Max((d_a - d_m / 10) / (d_m * Rational(7, 10)), 0), 1)
_b = Let(r"\beta(d_a)", beta_min + (beta_max - beta_min) * _share)
_alpha = Let(r"\alpha", 1 + (_a - 1) * _large)
_beta = Let(r"\beta", Rational(1, 2) + (_b - Rational(1, 2)) * _large)

Illinois = window(
    "Illinois",
    _alpha * (1 - pi) * acked / w - _beta * w * cuts(),
    flow={d_a: (delta - d_a) / RTT},
    initial={d_a: 0},
    params={alpha_max: 10, alpha_min: 0.3, beta_max: 0.5, beta_min: 0.125, d_m: 0.1, W_thresh: 15},
    units={
        d_a: "s", d_m: "s", W_thresh: "packet",
        **dict.fromkeys((alpha_max, alpha_min, beta_max, beta_min), "1"),
    },
    limits={beta_max: 1, beta_min: 1},
    where=(alpha_min < alpha_max, beta_min < beta_max),
    claims={
        "without a queue it grows by alpha_max": Eq(unfold(_a).subs(d_a, 0), alpha_max),
        "at d_m it grows by alpha_min": Eq(unfold(_a).subs(d_a, d_m), alpha_min),
        "at d_2 beta_min is given up": Eq(unfold(_b).subs(d_a, d_m / 10), beta_min),
        "at d_3 beta_max is": Eq(unfold(_b).subs(d_a, d_m * Rational(8, 10)), beta_max),
    },
    about="TCP-Illinois: increase and decrease of a window follow the queueing delay.",
    meaning={
        d_a: "queueing delay, averaged over a round trip",
        d_m: "largest queueing delay seen",
        alpha_max: "increase a round trip without a queue",
        alpha_min: "increase a round trip at the largest queueing delay",
        beta_min: "part given up at a loss, with a short queue",
        beta_max: "part given up at a loss, with a long queue",
        W_thresh: "window below which it is Reno's",
    },
    ref="Liu, Basar and Srikant, Performance Evaluation 65, 2008; tcp_illinois.c of Linux",
)  # fmt: skip
