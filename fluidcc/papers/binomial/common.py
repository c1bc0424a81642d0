"""Symbols, schemes and runs that several claims of the binomial paper use."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Function, symbols

from fluidcc.formulas import binomial
from fluidcc.formulas._formula import deficit
from fluidcc.simulation.synchronized import Orbit, synchronized

k, l, lam, sigma, C, n = binomial.loss.arguments
U = binomial.efficiency.arguments[-1]
# rates, the part that a decrease takes, a rate between two
x, z, xi, Delta = symbols("x z xi Delta", positive=True)
R_I, R_D = (Function(name, positive=True) for name in ("R_I", "R_D"))

T1 = 1544e3  # Capacity of a T1 link [bit/s]

# lambda and sigma of Fig. 5, for MTU/RTT of 5, 50 and 10 kbit/s.
SCHEMES = {
    "AIMD1": binomial.window_to_rate(1, 0.5, 0, 1, 5e3, 1.0),
    "AIMD2": binomial.window_to_rate(1, 0.5, 0, 1, 50e3, 1.0),
    "IIAD": binomial.window_to_rate(1, 0.5, 1, 0, 10e3, 1.0),
}
POWERS = {"AIMD1": (0, 1), "AIMD2": (0, 1), "IIAD": (1, 0)}
FLOWS = 100


def abstract(f: Any) -> Any:
    """Return `f` with an undefined positive function in place of `deficit`; claims stay true."""
    return f.replace(deficit, Function("D", positive=True))


def grouped(value: float) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,.0f}".replace(",", " ")


def mean_value(f: Any) -> tuple[Any, Any, Any]:
    """Return y = x + Delta, f(y) by the mean value theorem, and f'(xi), where x < xi < y."""
    slope = f(xi).diff(xi)
    return x + Delta, f(x) + Delta * slope, slope


def orbit_of(scheme: str, flows: int, **changes: Any) -> Orbit:
    """The orbit of `flows` flows of a scheme of Fig. 5, exact where its steps are affine."""
    (a, b), (up, down) = POWERS[scheme], SCHEMES[scheme]
    return synchronized(a, b, up, down, T1, n=flows, exact=a == 0 and not changes, **changes).orbit


@cache
def fig5(scheme: str) -> NDArray[np.float64]:
    """Loss ratio p_n for n = 1, ..., 100 flows of a scheme of Fig. 5; computed once."""
    return np.array([float(orbit_of(scheme, flows).loss) for flows in range(1, FLOWS + 1)])


ISCC_FLOWS = (1, 2, 5, 10, 20, 50, 100, 200)


def iscc(k: float, l: float, estimate: Any = 1.0) -> tuple[Any, Any]:
    """Return lambda and sigma of ISCC(k, l), m_I = 20 and m_D = max(2, l), on a link of capacity 1
    that is taken to be `estimate`."""
    return tuple(binomial.iscc_parameters(k, l, estimate, 20.0, max(2.0, l)))


@cache
def iscc_losses(k: float, l: float, first: int = len(ISCC_FLOWS)) -> NDArray[np.float64]:
    """Loss ratios of ISCC(k, l), m_I = 20 and m_D = max(2, l), for the first of `ISCC_FLOWS`."""
    return np.array(
        [synchronized(k, l, *iscc(k, l), 1.0, n=flows).orbit.loss for flows in ISCC_FLOWS[:first]]
    )


@cache
def cycles_to_fairness(k: float, l: float, lam: float, sigma: float) -> tuple[int, float]:
    """Cycles until two flows from (20, 80) on C = 100 have fairness 0.99, in full and linearised.

    The cycles are those of the fluid: x' = lam x**-k up to x + y = C, then both fall. The factor is
    `binomial.convergence_factor` at the fair share, which says how a small difference shrinks.
    """
    low, high, cycles, goal = 20.0, 80.0, 0, 0.99
    while low / high < goal and cycles < 100_000:
        low, high = climb(low - sigma * low**l, high - sigma * high**l, k, 100.0)
        cycles += 1
    factor = binomial.convergence_factor(k, l, sigma, 50.0)
    # fairness f is a relative difference (1 - f)/(1 + f) of the two rates from their mean
    gap = lambda f: (1 - f) / (1 + f)  # noqa: E731
    return cycles, math.log(gap(goal) / gap(0.25)) / math.log(abs(factor))


def climb(a: float, b: float, k: float, capacity: float) -> tuple[float, float]:
    """Where two rates with x' = x**-k meet a + b = capacity: both x**(k + 1) grow by the same."""
    from scipy.optimize import brentq

    def rates(s: float) -> tuple[float, float]:
        power = k + 1
        return tuple(  # type: ignore[return-value]
            (v**power + power * s) ** (1 / power) if v**power + power * s > 0 else math.inf
            for v in (a, b)
        )

    top = 1.0
    while sum(rates(top)) < capacity:
        top *= 2
    s = brentq(lambda s: min(sum(rates(s)), 1e300) - capacity, 0.0, top, xtol=1e-300, rtol=1e-15)
    return rates(s)
