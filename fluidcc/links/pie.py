"""PIE: a proportional-integral controller whose gains grow with its mark ratio (RFC 8033).

It is PI2 without the square, as the continuous limit of a program that acts every T seconds. What
the square does at every ratio, PIE does by steps: both gains are divided by 2048 below a ratio of
1e-6, and by less up to 0.1. Left out: the allowance of 150 ms for a burst, and the two packets that
are always let in.
"""

from __future__ import annotations

from math import log

from sympy import Float, Heaviside, Min, Piecewise

from fluidcc.laws import extended
from fluidcc.links.pi2 import PI2
from fluidcc.links.red import dropping
from fluidcc.symbols import Let, positive

__all__ = ["PIE", "PIEDrop"]

q, p, h = PI2.states
alpha, beta, T, target = PI2.params
decay, rise, spared = positive("decay rise spared")

_DIVISORS = ((2048, -6), (512, -5), (128, -4), (32, -3), (8, -2), (2, -1))  # below 10^-6, ...
_tuned = Let("k", Piecewise(*((Float(1) / n, p < Float(10) ** k) for n, k in _DIVISORS), (1, True)))
_raised = _tuned * PI2.flow[p]
_idle = Heaviside(Float("1e-6") - q / target, 0)
_let_in = Heaviside(0.5 - q / target, 0) * Heaviside(spared - h, 0)

PIE = extended(
    PI2,
    "PIE",
    flow={
        p: Piecewise((Min(_raised, rise / T), p >= Float("0.1")), (_raised, True))
        - decay / T * p * _idle
    },
    out={"mark": h * (1 - _let_in)},
    params={alpha: 0.125, beta: 1.25, T: 0.015, rise: 0.02, decay: -log(0.98), spared: 0.2},
    units={rise: "1", decay: "1", spared: "1"},
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
