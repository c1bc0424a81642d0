"""LDCC (Low-Delay Congestion Control): the rate equation (15), in the paper's notation."""

from __future__ import annotations

from sympy import Eq, Max, log

from fluidcc.laws import Source, Steady, marginal
from fluidcc.symbols import RTT, Let, e, e_b, edot, pi, positive

__all__ = ["LDCC"]

x = positive("x")  # sending rate [bit/s]
w, beta, T, eta = positive("w beta T eta")

U = w * log(x)  # (16) utility
v = Let("v", beta * Max(e - T, 0) / RTT)  # (17) delay penalty
k = Let("k", eta / RTT)  # gain, Section IV

LDCC = Source(
    name="LDCC",
    flow={x: k * x * (marginal(U, x) - v - edot - pi)},  # (15)
    out={"rate": x},
    params={w: 20e3, beta: 0.1, T: 0.1, eta: 0.4},
    units={x: "bit/s", w: "bit/s", beta: "1", T: "s", eta: "1"},
    lower={x: 0},
    initial={x: 5 * w},  # the paper gives none; 100 kbit/s at its w
    utility=U,
    gain=k,
    penalty=v,
    claims={
        "(17) v is never negative": v >= 0,
        "(17) v saturates below beta": v < beta,
        "(18)": Steady(Eq(e, RTT * w / (beta * x) + T), given={pi: 0}),
        "(19)": Steady(Eq(e, (e_b * w / (beta * x) + T) / (1 - w / (beta * x))), given={pi: 0}),
        "(20)": Steady(x > w / beta, given={pi: 0}),
    },
    ref="LDCC, equations (15)-(20)",
    about="Low-delay congestion control: listens to delay, its change and losses.",
    meaning={
        x: "sending rate",
        w: "weight of the flow",
        beta: "gain of the penalty for delay",
        T: "one-way delay above which there is a penalty",
        eta: "gain, over the round trip",
    },
)
