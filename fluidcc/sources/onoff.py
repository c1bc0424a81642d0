"""Modulated sources: a run draws their rate, a piecewise-constant pattern, with its seed; they listen to nothing."""

from __future__ import annotations

from sympy import symbols

from fluidcc.law import Source

__all__ = ["OnOff", "Poisson"]

rate = symbols("rate", nonnegative=True)  # peak, or mean, rate [bit/s]
shape, mean_on, mean_off, interval = symbols("shape mean_on mean_off interval", positive=True)

# Bursts at `rate` of Pareto length with mean `mean_on`, idle times Pareto with mean `mean_off`.
OnOff = Source(
    name="OnOff",
    out={"rate": rate},
    params={rate: 5e6, shape: 1.25, mean_on: 0.1, mean_off: 0.1},
    units={rate: "bit/s", shape: "1", mean_on: "s", mean_off: "s"},
    ref="FAST persistent congestion, Section V: Pareto bursts of shape 1.25 and mean 100 ms",
)

# Packets of a Poisson stream of mean rate `rate`, counted in consecutive intervals.
Poisson = Source(
    name="Poisson",
    out={"rate": rate},
    params={rate: 0.5e6, interval: 0.1},
    units={rate: "bit/s", interval: "s"},
)
