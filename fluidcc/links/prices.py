"""Ideal price links of network utility maximisation: equations (11) to (14) of the LDCC paper."""

from __future__ import annotations

from sympy import Eq

from fluidcc.laws import Link, Steady
from fluidcc.symbols import c, nonnegative, positive, y

__all__ = ["DualLink", "PenaltyLink"]

B, nu = positive("B nu")  # sharpness [1], gain [1/bit]
multiplier = nonnegative("lambda")  # the dual variable [1]

# g(y) of (11) and (12), positive and increasing; the larger B, the closer to the constraint y <= c.
PenaltyLink = Link(
    name="PenaltyLink",
    out={"price": (y / c) ** B},
    params={B: 8},
    units={B: "1"},
    claims={
        "(11) g increases": ((y / c) ** B).diff(y) >= 0,
        "(11) g is positive": (y / c) ** B >= 0,
    },
    ref="LDCC, equations (11) and (12)",
    about="A price that grows with the load: a soft limit at the capacity.",
    meaning={B: "sharpness"},
)

DualLink = Link(
    name="DualLink",
    flow={multiplier: nu * (y - c)},  # (14b)
    out={"price": multiplier},
    params={nu: 1e-6},
    units={multiplier: "1", nu: "1/bit"},
    lower={multiplier: 0},
    initial={multiplier: 0},
    claims={
        "(14b) with nu = 1/c is (2)": Eq(nu * (y - c) - (y - c) / c, (nu - 1 / c) * (y - c)),
        "(13) complementary slackness": Steady(Eq(y, c), eliminate=y),
    },
    ref="LDCC, equation (14b)",
    about="A price that rises while more comes than the capacity, and else falls.",
    meaning={multiplier: "price", nu: "gain"},
)
