"""Fairness between different propagation delays: equation (44), Figs. 7 and 8 of the LDCC paper."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sympy import Eq, diff

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.metrics import jain
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import (
    FAIR_DELAYS,
    THREEFOLD,
    W_OVER_BETA,
    T,
    beta,
    mbit,
    ms,
    near,
    percent,
    positive,
    run,
    w,
)
from fluidcc.papers.ldcc.networks import four_flows
from fluidcc.papers.model import DIFFERS, NOT_GIVEN, REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.papers.printed import compared

__all__ = ["CAPACITIES", "fair_rates"]

CAPACITIES = tuple(float(c) for c in np.linspace(1e6, 6e6, 26))
"""Of Figs. 7 and 8 [bit/s]."""
WORST = "25, 25, 25, 75 ms"


@lru_cache(maxsize=8)
def fair_rates(name: str) -> NDArray[np.float64]:
    """Equilibrium rates (capacity, flow) [bit/s] with the delays of that name, over `CAPACITIES`; computed once."""
    return np.array([equilibrium(four_flows(FAIR_DELAYS[name], c)).rate.values for c in CAPACITIES])


@claim(
    "ldcc",
    "(44)",
    "Jain's index lies between 1/N, where one flow has all, and 1, where all rates are equal.",
    "1/N <= J <= 1",
)
def jain_bounds() -> Outcome:
    # S = sum x, Q = sum x^2 of N rates, and a further rate x: N Q - S^2, the sum of the squared differences of all
    # pairs, gains those to x; S^2 - Q, twice the sum of their products, gains 2 x S. Both begin with 0 at N = 1.
    count, total, squares, rate = positive("N", "S", "Q", "x")
    differences = squares - 2 * rate * total + count * rate**2  # sum of (x_i - x)^2
    grown = (count + 1) * (squares + rate**2) - (total + rate) ** 2
    above = proof(Eq(grown, count * squares - total**2 + differences))  # >= 0, so J <= 1
    below = proof(Eq((total + rate) ** 2 - (squares + rate**2), total**2 - squares + 2 * rate * total))
    same = proof(Eq((count * rate) ** 2 / (count * (count * rate**2)), 1))
    one = proof(Eq(rate**2 / (count * rate**2), 1 / count))
    values = {"equal": jain([2.0] * 5), "one": jain([2.0] + [0.0] * 4), "mixed": jain([1.0, 2.0, 3.0])}
    if not near([values["equal"], values["one"], values["mixed"]], [1, 1 / 5, 36 / 42], 1e-12):
        return Outcome(DIFFERS, f"fluidcc.metrics.jain gives {values}", "by hand 1, 1/5 and 6/7", values)
    return from_proofs(
        above,
        below,
        same,
        one,
        computed="for every N, by induction: N sum x^2 - (sum x)^2 is the sum of (x_i - x_j)^2 over all pairs, and "
        "(sum x)^2 - sum x^2 twice that of x_i x_j",
        values=values,
    )


@claim(
    "ldcc",
    "Figs. 7, 8",
    "The propagation delays of the four flows.",
    "lost; longest = 3 x shortest in the worst case",
    erratum=True,
)
def propagation_vectors() -> Outcome:
    worst = {name: float(np.min(fair_rates(name)[-1]) / (CAPACITIES[-1] / 4)) for name in THREEFOLD}
    return Outcome(
        NOT_GIVEN,
        "; ".join(FAIR_DELAYS),
        "The text has [p1 p2 p3 p4] and no numbers; the shortest is taken as 25 ms, "
        "as in the other figures. With 75 ms as the longest, the worst rate hardly depends on the other two: "
        + ", ".join(f"{v:.3g}" for v in worst.values())
        + " of the fair one at 6 Mbit/s.",
        worst,
    )


@claim("ldcc", "Fig. 7", "The more the propagation delays differ, the lower Jain's index.", "J falls")
def fig7_discrepancy() -> Outcome:
    names = list(FAIR_DELAYS)[:3]
    curves = np.array([jain(fair_rates(name)) for name in names])
    falls = np.all(np.diff(curves, axis=0) <= 1e-9)
    values = {name: float(c[-1]) for name, c in zip(names, curves, strict=True)}
    return Outcome(
        REPRODUCED if falls else DIFFERS,
        "at 6 Mbit/s " + "; ".join(f"{v:.4f} for {k}" for k, v in values.items()) + "; in this order at every capacity",
        "" if falls else "not at every capacity",
        values,
    )


@claim("ldcc", "Fig. 7", "The lower the capacity, the higher the fairness.", "J rises as c falls", erratum=True)
def fig7_capacity() -> Outcome:
    p, q = positive("p", "q")
    rate = w * (2 * p + q) / (beta * (p + q - T))  # (18) with e = p + q and e_b = p
    exact = proof(Eq(rate.subs(q, 2 * T), 2 * w / beta))
    slope = proof(Eq(diff(rate, p), w * (q - 2 * T) / (beta * (p + q - T) ** 2)))
    index = {
        f"{c / 1e6:g}": float(jain(equilibrium(four_flows(FAIR_DELAYS[WORST], c)).rate))
        for c in (1e6, 1.25e6, 1.6e6, 3e6, 6e6)
    }
    rates = equilibrium(four_flows(FAIR_DELAYS[WORST], 1.25e6)).rate.values
    peak = index["1.6"] == max(index.values())
    if not (exact and slope and peak and rates[3] > rates[0]):
        return Outcome(REPRODUCED, str(index), "", index)
    return Outcome(
        DIFFERS,
        "J = " + ", ".join(f"{v:.4f} at {k}" for k, v in index.items()) + f" Mbit/s for {WORST}",
        f"True down to x = 2 w/beta = {2 * W_OVER_BETA / 1e3:g} kbit/s a flow (1.6 Mbit/s), "
        "where q = 2 T and the rates are equal "
        "whatever the propagation delays are (proved, for e_b = p). Below, dx/dp = (w/beta)(q - "
        "2 T)/(p + q - T)^2 changes its "
        f"sign and long flows get more: {mbit(rates[3])} against {mbit(rates[0])} at 1.25 "
        "Mbit/s. The loss of "
        "fairness there is too small to show in a plot.",
        index,
    )


@claim(
    "ldcc",
    "Figs. 7, 8",
    "The capacity is varied from 1 to 6 Mbit/s with a maximum queueing delay of 0.5 s.",
    "q <= 0.5 s",
    erratum=True,
)
def lowest_capacity() -> Outcome:
    need = {
        name: float(equilibrium(four_flows(p, 1e6, longest_queue=None)).queueing_delay.values[0])
        for name, p in FAIR_DELAYS.items()
    }
    # By (18), with the queue at 0.5 s, the flows take sum (w/beta)(2 p + q)/(p + q - T): less capacity fills it.
    least = {name: sum(W_OVER_BETA * (2 * v + 0.5) / (v + 0.4) for v in p) for name, p in FAIR_DELAYS.items()}
    full = equilibrium(four_flows(FAIR_DELAYS[WORST], 1e6))
    low, high = min(need.values()), max(need.values())
    if low <= 0.5:
        return Outcome(REPRODUCED, f"{ms(low)} to {ms(high)} at 1 Mbit/s", "", need)
    return Outcome(
        DIFFERS,
        f"1 Mbit/s needs {low:.3g} to {high:.3g} s of queue",
        "More than the buffer, so at 1 Mbit/s losses drive the flows "
        f"({percent(float(full.loss.values[0]))} for {WORST}); "
        f"driven by delay only from {mbit(min(least.values()), 3)} to "
        f"{mbit(max(least.values()), 3)} on, as the delays are.",
        {"low": low, "high": high, "loss": float(full.loss.values[0]), "least": min(least.values())},
    )


@claim(
    "ldcc",
    "Fig. 8",
    "With the longest delay three times the shortest, the worst rate is about half of the normalised capacity.",
    "about 0.5",
)
def fig8_worst() -> Outcome:
    worst = {name: float(np.min(fair_rates(name) / (np.array(CAPACITIES)[:, None] / 4))) for name in THREEFOLD}
    return compared(
        [("about 0.5", v) for v in worst.values()],
        "; ".join(f"{v:.3f} for {k}" for k, v in worst.items()),
        "At the largest capacity, with a shortest delay of 25 ms (chosen).",
        worst,
    )


@claim("ldcc", "Fig. 8", "No flow starves: every rate stays a good part of the fair one.", "lowest and highest rates")
def fig8_extremes() -> Outcome:
    rates = fair_rates("25, 40, 60, 75 ms")
    low, high = rates.min(axis=1), rates.max(axis=1)
    pick = [CAPACITIES.index(c) for c in (1e6, 2e6, 4e6, 6e6)]
    good = bool(np.all(low > W_OVER_BETA))
    return Outcome(
        REPRODUCED if good else DIFFERS,
        "lowest to highest for 25, 40, 60, 75 ms: "
        + ", ".join(f"{low[i] / 1e6:.3f} to {high[i] / 1e6:.3f} at {CAPACITIES[i] / 1e6:g} Mbit/s" for i in pick),
        "" if good else "some rate is below w/beta",
        {f"low{CAPACITIES[i] / 1e6:g}": float(low[i]) for i in pick}
        | {f"high{CAPACITIES[i] / 1e6:g}": float(high[i]) for i in pick},
    )


@claim("ldcc", "Fig. 8", "The rates are averages at the equilibrium that the flows reach.", "averages of a run")
def fig8_reached() -> Outcome:
    net = scenarios["ldcc_fig7"].net
    eq, end = equilibrium(net).rate.values, run("ldcc_fig7").rate.values[-1]
    error = float(np.max(np.abs(end / eq - 1)))
    good = error < 1e-3
    return Outcome(
        REPRODUCED if good else REFUTED,
        f"25, 40, 60, 75 ms at 4 Mbit/s: the run of {run('ldcc_fig7').time.values[-1]:g} s "
        f"ends at the equilibrium within {percent(error, 1)}",
        "" if good else "it has not settled",
        {"error": error},
    )
