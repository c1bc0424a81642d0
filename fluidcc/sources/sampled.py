"""The discrete law of LDCC, equation (25): the continuous one, sampled every T_s and held, with
averages over T_s.
"""

from __future__ import annotations

from typing import Any

from sympy import Max, expand, symbols

from fluidcc.laws import Tick, extended
from fluidcc.sources.ldcc import LDCC
from fluidcc.symbols import Let, e, edot, packet, pi, positive

__all__ = ["SampledLDCC"]

(x,) = LDCC.states
delays, signals = symbols(
    "E S", real=True
)  # integrals since the last update: of e [s^2], of what (23) measures [s]
T_s = positive("T_s")  # update interval [s]


def _signal(arrived: Any) -> Let:
    """Return (x - x_recv)/x_recv of (23) and (24), with x_recv = x arrived/(1 + e'): both parts in
    one signal.
    """
    return Let("m", (edot + 1 - arrived) / arrived)


merged = _signal(1 - pi)
# What is received in an interval is one packet at least, so that a link that loses or marks all
# gives a large number and not one over zero: the rate then falls to its floor at the next tick.
measured = _signal(Max(1 - pi, packet / (packet + x * T_s)))

# Rectangular averages over the interval take the place of e and of e' + pi; the penalty keeps its
# (.)^+, which (25) leaves out.
_average = {e: delays / T_s, edot: 0, pi: signals / T_s}

# Multiplied out, so that x w/x is w where a tick has brought the rate down to 0.
_step = T_s * expand(LDCC.flow[x]).subs(_average, simultaneous=True)

SampledLDCC = extended(
    LDCC,
    "SampledLDCC",
    flow={x: 0, delays: e, signals: measured},
    params={T_s: 0.1},
    units={delays: "s^2", signals: "s", T_s: "s"},
    initial={delays: 0, signals: 0},
    ticks=(Tick(every=T_s, update={x: x + _step, delays: 0, signals: 0}),),
    ref="LDCC, equation (25)",
    about="LDCC as it is programmed: updated at intervals, with averages over them.",
    meaning={
        delays: "integral of the delay since the last update",
        signals: "integral of the congestion signals since the last update",
        T_s: "interval of updates",
    },
)
