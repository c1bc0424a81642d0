"""DCQCN, the congestion control of RoCEv2 (Zhu and others, SIGCOMM 2015), as the fluid of its
authors (CoNEXT 2016).

A receiver that sees marks tells the source, once in `tau` at most; R_C is then cut by alpha/2, and
the target R_T is what it was. alpha follows, every `tau_alpha`, whether such notices come. A byte
counter, B, and a timer, T, begin anew at each notice; every time one of them is full R_C goes half
of the way to R_T, and from the F-th time on R_T grows by R_AI as well.

Of n packets one or more is marked with the chance P(n) = 1 - (1 - p)^n, and a counter of n packets,
which each mark sets to 0, is full once in ((1 - p)^-n - 1)/p packets. What a source hears is a
round trip old, with the queue in it. The paper's feedback delay has no queue in it, as its switches
mark what leaves: their margins are larger. Rates have no upper bound and hyper increase is left
out, as in the paper. It hears marks alone: losses send no notices, and where it runs links pause
senders (PFC) before a buffer is full, which no link does here.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, Float, Max, Min, Rational, exp
from sympy.codegen.cfunctions import expm1, log1p

from fluidcc.laws import Source
from fluidcc.symbols import Let, mark, nonnegative, packet, positive, x_tau

__all__ = ["DCQCN"]

alpha = nonnegative("alpha")
R_T, R_C = positive("R_T R_C")
R_AI, B, T, F, g, tau, tau_alpha = positive("R_AI B T F g tau tau_alpha")

p = Let("p", Min(Max(mark, Float("1e-15")), 1 - Float("1e-15")))
_least = Float("1e-6") / T  # a rate of nothing [packet/s], from which a source may still grow
sent = Let("r", Max(x_tau / packet, _least))  # a loop ago [packet/s]


def _marked(n: Any) -> Expr:
    """The chance that of n packets one or more is marked."""
    return -expm1(n * log1p(-p))


def _full(n: Any, times: Any = 1) -> Expr:
    """How often a packet fills a counter of n packets, for the `times`-th time or later."""
    return p * exp(n * times * log1p(-p)) / _marked(n)


a, heard = Let("a", _marked(tau * sent)), Let("P", _marked(tau_alpha * sent))
b, c = Let("b", _full(B)), Let("c", _full(B, F + 1))
d, e = Let("d", _full(T * sent)), Let("e", _full(T * sent, F + 1))

DCQCN = Source(
    name="DCQCN",
    flow={
        alpha: g / tau_alpha * (heard - alpha),
        R_T: R_AI * sent * (c + e) - (R_T - R_C) / tau * a,
        R_C: (R_T - R_C) / 2 * sent * (b + d) - R_C * alpha / (2 * tau) * a,
    },
    out={"rate": R_C},
    params={
        R_AI: 40e6,
        B: 10_000,
        T: 55e-6,
        F: 5,
        g: Rational(1, 256),
        tau: 50e-6,
        tau_alpha: 55e-6,
    },
    units={
        alpha: "1",
        R_T: "bit/s",
        R_C: "bit/s",
        R_AI: "bit/s",
        B: "packet",
        F: "1",
        g: "1",
        T: "s",
        tau: "s",
        tau_alpha: "s",
    },
    lower={R_T: _least * packet, R_C: _least * packet},
    initial={alpha: 1, R_T: 1e9, R_C: 1e9},
    limits={g: 1},
    about="Data Center QCN: for RDMA over Ethernet, by notices of marks, byte counter and timer.",
    meaning={
        alpha: "estimate of how often notices come",
        R_T: "target rate",
        R_C: "current rate, at which it sends",
        R_AI: "additive increase",
        B: "byte counter, in packets",
        T: "timer",
        F: "times that a counter is full before the target grows",
        g: "weight of the latest interval",
        tau: "shortest time between two notices",
        tau_alpha: "interval in which alpha is updated",
    },
    ref="Zhu, Ghobadi, Misra and Padhye, CoNEXT 2016, Section 3.1; Zhu and others, SIGCOMM 2015",
)
