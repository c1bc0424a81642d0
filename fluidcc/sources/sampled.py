"""The discrete law of LDCC, equation (25): the continuous one, sampled every T_s and held, with averages over T_s."""

from __future__ import annotations

from dataclasses import replace

from sympy import symbols

from fluidcc.law import Tick
from fluidcc.sources.ldcc import LDCC
from fluidcc.symbols import Let, e, edot, pi

__all__ = ["SampledLDCC"]

(x,) = LDCC.states
delays, signals = symbols("E S", real=True)  # integrals since the last update: of e [s^2], of what (23) measures [s]
T_s = symbols("T_s", positive=True)  # update interval [s]

# (x - x_recv)/x_recv of (23) and (24) with x_recv = x (1 - pi)/(1 + e'): both parts in one signal.
merged = Let("m", (edot + pi) / (1 - pi))

# Rectangular averages over the interval take the place of e and of e' + pi; the penalty keeps its (.)^+, which (25)
# leaves out.
_average = {e: delays / T_s, edot: 0, pi: signals / T_s}

_step = T_s * LDCC.flow[x].subs(_average, simultaneous=True)

SampledLDCC = replace(
    LDCC,
    name="SampledLDCC",
    flow={x: 0, delays: e, signals: merged},
    params={**LDCC.params, T_s: 0.1},
    units={**LDCC.units, delays: "s^2", signals: "s", T_s: "s"},
    initial={**LDCC.initial, delays: 0, signals: 0},
    ticks=(Tick(every=T_s, update={x: x + _step, delays: 0, signals: 0}),),
    claims={},
    ref="LDCC, equation (25)",
)
