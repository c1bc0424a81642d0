"""Traffic that does not listen: a constant rate, and random ones that a run draws with its seed, as
piecewise-constant patterns.
"""

from __future__ import annotations

from fluidcc.laws import Source
from fluidcc.symbols import nonnegative, positive

__all__ = ["CBR", "OnOff", "Poisson"]


rate = nonnegative("rate")  # [bit/s]

CBR = Source(
    name="CBR",
    flow={},
    out={"rate": rate},
    params={rate: 0.5e6},
    units={rate: "bit/s"},
    ref="the UDP flow of LDCC, Fig. 5",
    about="A constant rate, or one that follows a pattern.",
    meaning={rate: "sending rate"},
)

peak, mean_rate = nonnegative("peak mean_rate")  # [bit/s]
shape, mean_on, mean_off, interval = positive("shape mean_on mean_off interval")

# Bursts at `peak` of Pareto length with mean `mean_on`, silences Pareto with mean `mean_off`.
OnOff = Source(
    name="OnOff",
    traffic="on_off_pareto",
    out={"rate": peak},
    params={peak: 5e6, shape: 1.25, mean_on: 0.1, mean_off: 0.1},
    units={peak: "bit/s", shape: "1", mean_on: "s", mean_off: "s"},
    ref="FAST persistent congestion, Section V: Pareto bursts of shape 1.25 and mean 100 ms",
    about="Bursts and silences of random lengths, drawn by the run's seed.",
    meaning={
        peak: "rate in a burst",
        shape: "shape of the Pareto distribution of lengths",
        mean_on: "mean length of a burst",
        mean_off: "mean length of a silence",
    },
)

# Packets of a Poisson stream of mean rate `mean_rate`, counted in consecutive intervals.
Poisson = Source(
    name="Poisson",
    traffic="poisson",
    out={"rate": mean_rate},
    params={mean_rate: 0.5e6, interval: 0.1},
    units={mean_rate: "bit/s", interval: "s"},
    about="Packets at random times, drawn by the run's seed.",
    meaning={mean_rate: "mean rate", interval: "interval in which packets are counted"},
)
