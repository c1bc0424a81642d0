"""PIE: a proportional-integral controller whose gains grow with its mark ratio (RFC 8033).

It is PI2 without the square, as the continuous limit of a program that acts every T seconds. What
the square does at every ratio, PIE does by steps: both gains are divided by 2048 below a ratio of
1e-6, and by less up to 0.1. Left out: the allowance of 150 ms for a burst, and the two packets that
are always let in.
"""

from __future__ import annotations

from itertools import pairwise
from math import log

from sympy import Float, Heaviside, Max, Min

from fluidcc.laws import extended
from fluidcc.laws.early_loss import dropping
from fluidcc.links.pi2 import PI2
from fluidcc.symbols import Let, positive

__all__ = ["PIE", "PIEDrop"]

q, p, h = PI2.states
alpha, beta, T, target = PI2.params
decay, rise, spared = positive("decay rise spared")

DIVISORS = (2048, 512, 128, 32, 8, 2, 1)  # below ratios of 10^-6, 10^-5, ..., 0.1, and above
_tuned = Let(
    "k",
    sum(
        (Float(1) / n - Float(1) / before) * Heaviside(p - Float(10) ** e, 1)
        for e, (before, n) in zip(range(-6, 0), pairwise(DIVISORS), strict=True)
    )
    + Float(1) / DIVISORS[0],
)
_raised = Let("r", _tuned * PI2.flow[p])
_idle = Heaviside(Float("1e-6") - q / target, 0)
# A ramp near half the target: on a step a fluid slides, which packets do not resolve either.
_let_in = Min(Max(10.5 - 20 * q / target, 0), 1) * Heaviside(spared - h, 0)

PIE = extended(
    PI2,
    "PIE",
    flow={
        p: _raised
        - Heaviside(p - Float("0.1"), 1) * Max(_raised - rise / T, 0)
        - decay / T * p * _idle
    },
    out={"mark": h * (1 - _let_in)},
    params={alpha: 0.125, beta: 1.25, T: 0.015, rise: 0.02, decay: -log(0.98), spared: 0.2},
    units={rise: "1", decay: "1", spared: "1"},
    claims=PI2.claims,
    about="A proportional-integral controller whose gains grow with its mark ratio.",
    meaning={
        p: "mark ratio as it is computed",
        h: "mark ratio as it is held between updates",
        rise: "largest rise of a ratio above 0.1, each update",
        decay: "logarithm of its fall while the queue is empty, each update",
        spared: "ratio below which nothing is marked that waits for less than half the target",
    },
    ref="RFC 8033, sections 4.1, 4.2 and 5.1",
)
PIEDrop = dropping(PIE, "PIEDrop")
