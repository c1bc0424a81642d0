r"""NADA (Network-Assisted Dynamic Adaptation) of 2013, the form that the LDCC paper compares with.

The receiver smooths what a packet met, its one-way delay plus a delay that stands for a loss or a
mark; the sender has its rate drawn to where rate above the least times that signal is a given
product,

    R' = kappa/tau_o^2 (theta - (R - R_min) (x + eta tau_o x')),   theta = w (R_max - R_min) x_ref,

within [R_min, R_max]: Zhu and Pan's step kappa delta_s/tau_o^2 (...) each delta_s seconds, as a
derivative.

- x is a one-way delay, not a queueing delay, and x_ref the smallest one seen: the reading under
  which the equilibrium is the one that the LDCC paper states in Section V-D, OWD_eq = R_MAX
  OWD_min/R_eq, with w = 1 and R_min = 0.
- The smallest delay so far is e - delta with delta' = de/dt, reflected at 0 (as for every source
  that sees a queue).
- Slow start of the first seconds and the shaping buffer of the encoder are left out.
- `R_max` is the most that the encoder makes, 1.5 Mbit/s: raise it where a flow is to fill a link.

What was standardised in 2020 is `fluidcc.NADA8698`, which recovers far sooner.
"""

from __future__ import annotations

from sympy import Eq

from fluidcc.laws import Source, Steady
from fluidcc.sources.windows import MEANING, change, delta
from fluidcc.symbols import Let, e, nonnegative, pi, positive

__all__ = ["NADA"]

R = positive("R")  # sending rate [bit/s]
x = nonnegative("x")  # smoothed delay, with penalties [s]
R_max, kappa, eta, tau_o, T, weight = positive("R_max kappa eta tau_o T weight")
R_min, d_L = nonnegative("R_min d_L")

_ref = Let(r"x_{\mathrm{ref}}", e - delta)
_rise = Let("x'", (e + d_L * pi - x) / T)
_product = Let("theta", weight * (R_max - R_min) * _ref)

NADA = Source(
    name="NADA",
    flow={
        R: kappa / tau_o**2 * (_product - (R - R_min) * (x + eta * tau_o * _rise)), x: _rise,
        delta: change,
    },
    out={"rate": R},
    params={R_max: 1.5e6, R_min: 0, weight: 1, kappa: 0.5, eta: 2, tau_o: 0.5, d_L: 1, T: 0.5},
    units={
        R: "bit/s", x: "s", delta: "s", R_max: "bit/s", R_min: "bit/s", weight: "1", kappa: "1",
        eta: "1", tau_o: "s", d_L: "s", T: "s",
    },
    lower={R: R_min, x: 0, delta: 0},
    upper={R: R_max},
    initial={R: 0.1 * R_max, x: 0, delta: 0},
    claims={
        "V-D OWD_eq = R_MAX OWD_min/R_eq": Steady(
            Eq(e, R_max * (e - delta) / R), given={pi: 0, R_min: 0, weight: 1}
        ),
        "weighted shares": Steady(Eq((R - R_min) * (e + d_L * pi),
        weight * (R_max - R_min) * (e - delta))),
    },
    where=(R_min <= R_max,),
    about="NADA of 2013: draws rate times (delay and penalties for losses) to a given product.",
    meaning={
        R: "sending rate",
        x: "smoothed delay, with penalties",
        delta: MEANING[delta],
        R_max: "largest rate",
        R_min: "smallest rate",
        weight: "weight of the flow",
        kappa: "gain",
        eta: "gain of the change of the delay",
        tau_o: "longest round trip that it is made for",
        d_L: "delay that stands for a loss",
        T: "time over which the delay is smoothed",
    },
    ref="Zhu and Pan, Packet Video Workshop 2013; LDCC, Section V-D",
)  # fmt: skip
