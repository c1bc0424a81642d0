"""Gradient sources of network utility maximisation: (12) and (14a) of the LDCC paper, and the
primal algorithm.
"""

from __future__ import annotations

from sympy import log, symbols

from fluidcc.laws import Source, Steady, marginal
from fluidcc.symbols import price, x_tau

__all__ = ["AlphaFairPrimalDual", "DelayedPrimal", "PrimalDual", "PrimalPenalty"]

x = symbols("x", positive=True)  # sending rate [bit/s]
w, alpha, a = symbols(
    "w alpha a", positive=True
)  # weight [bit/s], gain [bit/s^2], fairness exponent [1]
kappa = symbols("kappa", positive=True)  # gain [1/s]

U = w * log(x)  # (16); U'(x) = w/x has no dimension, as prices here have none

PrimalPenalty = Source(
    name="PrimalPenalty",
    flow={x: alpha * (marginal(U, x) - price)},  # (12), where price = sum of g_l(y_l)
    out={"rate": x},
    params={w: 20e3, alpha: 1e6},
    units={x: "bit/s", w: "bit/s", alpha: "bit/s^2"},
    lower={x: 0},
    initial={x: 5 * w},
    utility=U,
    claims={"optimum of (11)": Steady(marginal(U, x) - price)},
    ref="LDCC, equation (12)",
)

PrimalDual = Source(
    name="PrimalDual",
    flow=PrimalPenalty.flow,  # (14a), where price = sum of lambda_l
    out=PrimalPenalty.out,
    params=PrimalPenalty.params,
    units=PrimalPenalty.units,
    lower=PrimalPenalty.lower,
    initial=PrimalPenalty.initial,
    utility=U,
    claims={"optimum of (13)": Steady(marginal(U, x) - price)},
    ref="LDCC, equation (14a)",
)

# Mo and Walrand's family: U' = (w/x)^a; a -> 1 is proportional fairness, a = 2 minimum potential
# delay.
AlphaFairPrimalDual = PrimalDual.with_utility(
    w**a * x ** (1 - a) / (1 - a), params={a: 2}, units={a: "1"}, name="AlphaFairPrimalDual"
)

# x' = kappa (w - x(t - RTT) p(t)): what was marked left a round trip ago.
DelayedPrimal = Source(
    name="DelayedPrimal",
    flow={x: kappa * (w - x_tau * price)},
    out={"rate": x},
    params={kappa: 1.0, w: 1e5},
    units={x: "bit/s", kappa: "1/s", w: "bit/s"},
    lower={x: 0},
    initial={x: w},
    claims={"equilibrium": Steady(w - x * price)},
    ref="Kelly, Maulloo and Tan 1998, with the delays of Johari and Tan 2001",
)
