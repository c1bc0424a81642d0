"""Sources of network utility maximisation, which listen to prices: (12) and (14a) of the LDCC
paper, the primal algorithm, and those whose gain scales with their own round trip (Scalable TCP,
and that of Paganini, Doyle and Low).
"""

from __future__ import annotations

from sympy import exp, log

from fluidcc.laws import Source, Steady, extended, marginal
from fluidcc.symbols import RTT, Let, packet, pi, positive, price, x_tau

__all__ = [
    "AlphaFairPrimalDual", "DelayedPrimal", "PrimalDual", "PrimalPenalty", "ScalableSource",
    "ScalableTCP",
]  # fmt: skip


x = positive("x")  # sending rate [bit/s]
w, alpha, a = positive("w alpha a")  # weight [bit/s], gain [bit/s^2], fairness exponent [1]
kappa = positive("kappa")  # gain [1/s]

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
    about="Climbs its utility, less the price of links that ask for one as they fill.",
    meaning={x: "sending rate", w: "weight of the flow", alpha: "gain", a: "exponent of fairness"},
)

# The same, where price = sum of lambda_l.
PrimalDual = extended(
    PrimalPenalty,
    "PrimalDual",
    claims={"optimum of (13)": Steady(marginal(U, x) - price)},
    ref="LDCC, equation (14a)",
    about="Climbs its utility, less the price that links adapt: proportional fairness.",
)

# Mo and Walrand's family: U' = (w/x)^a; a -> 1 is proportional fairness, a = 2 minimum potential
# delay.
AlphaFairPrimalDual = extended(
    PrimalDual.with_utility(w**a * x ** (1 - a) / (1 - a), params={a: 2}, units={a: "1"}),
    "AlphaFairPrimalDual",
    about="PrimalDual with alpha-fair utilities (Mo and Walrand), whose alpha is a here.",
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
    about="The primal algorithm: a rate follows its weight, less what was marked a round trip ago.",
    meaning={x: "sending rate", kappa: "gain", w: "what it is willing to pay"},
)


# --- gains that scale with the round trip ---------------------------------------------------------


W = positive("W")  # window [packet]
a, b = positive(
    "a b"
)  # increase for each acknowledgement [packet], decrease factor for each loss [1]
alpha, hops, top = positive("alpha M x_max")  # gain [s], links on the route [1], rate without price

# Of the x_tau / packet acknowledgements a second a share p tells of a loss: what links lose or
# mark, and prices, which stand for that.
heard = Let("p", price + pi)
ScalableTCP = Source(
    name="ScalableTCP",
    flow={W: x_tau / packet * (a * (1 - heard) - b * W * heard)},
    out={"rate": packet * W / RTT},
    params={a: 0.01, b: 0.125},
    units={W: "packet", a: "packet", b: "1"},
    lower={W: 1},
    initial={W: 10},
    claims={"equilibrium": Steady(a * (1 - heard) - b * W * heard)},
    ref="Kelly, ACM CCR 33(2), 2003",
    about="Scalable TCP: so much more for each acknowledgement, a share less for each loss.",
    meaning={W: "congestion window", a: "increase for an acknowledgement", b: "decrease at a loss"},
)

# The rate falls by alpha/(M RTT) of itself for each second of price.
ScalableSource = Source(
    name="ScalableSource",
    out={"rate": top * exp(-alpha * price / (hops * RTT))},
    params={alpha: 1.0, hops: 1, top: 1e7},
    units={alpha: "s", hops: "1", top: "bit/s"},
    ref="Paganini, Doyle and Low, CDC 2001",
    about="A rate that falls exponentially with the price, at a gain that scales with the RTT.",
    meaning={alpha: "gain", hops: "links on the route", top: "rate without a price"},
)
