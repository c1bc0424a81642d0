"""Section V-D of the LDCC paper: beside NADA and GCC, Figs. 13 and 14."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Eq, Min, Rational, Symbol

from fluidcc.analysis.orbit import LimitCycle, limit_cycle
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import gcc
from fluidcc.laws import Jump, Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import W_OVER_BETA, bound, mbit, ms, near, percent
from fluidcc.papers.model import DIFFERS, NOT_GIVEN, REFUTED, REPRODUCED, Outcome, claim, from_proofs, law_proof, proof
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import GCC, LDCC, NADA
from fluidcc.sources.gcc import A, cap, g, m, p
from fluidcc.sources.gcc import T as T_follow
from fluidcc.symbols import edot, pi, x_tau

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["CAPACITIES", "DELAY", "R_MAX", "closed", "cycle", "even_capacities", "ldcc_delay", "nada_delay", "settled"]

DELAY, THRESHOLD = 0.025, 0.1
R_MAX = 5e6
"""NADA's largest rate in Figs. 13 and 14 [bit/s]: not printed, chosen."""
CAPACITIES = (0.5e6, 0.75e6, 1e6, 1.5e6, 2e6, 2.5e6, 3e6)
"""Capacities of Fig. 13 [bit/s]: the axis is lost, chosen."""


def alone(law: Source, capacity: float) -> Network:
    """One flow on the link of Figs. 13 and 14."""
    return Network().link("link", DropTail, capacity=capacity, delay=DELAY).flow("flow", law, route=["link"], start=0)


@lru_cache(maxsize=64)
def settled(law: Source, capacity: float, until: float = 200.0) -> xr.Dataset:
    """The last quarter of a run of it."""
    run = simulate(alone(law, capacity), until, samples=8001)
    return run.isel(time=slice(6000, None))


@lru_cache(maxsize=32)
def cycle(capacity: float, law: Source = GCC) -> LimitCycle:
    """GCC's limit cycle, by simulation."""
    return limit_cycle(alone(law, capacity))


def closed() -> Any:
    """GCC's limit cycle in closed form; it does not depend on the capacity."""
    return gcc.cycle(2 * DELAY, *(GCC.parameter(name) for name in ("g", "gamma", "alpha")))


def ldcc_delay(capacity: float) -> float:
    """One-way delay of LDCC alone at equilibrium [s]."""
    return float(equilibrium(alone(LDCC, capacity)).one_way_delay[0])


def nada_delay(capacity: float, largest: float = R_MAX) -> float:
    """One-way delay of NADA alone at equilibrium [s]: R_MAX OWD_min/R_eq."""
    return largest * DELAY / min(capacity, largest)


def even_capacities(largest: float) -> tuple[float, float] | None:
    """The capacities between which NADA's delay is longer than LDCC's [bit/s], or None if there are none.

    R_MAX p/c > (p W/c + T)/(1 - W/c), with W = w/beta and the same propagation delay p both ways, is
    T c^2 - p (R_MAX - W) c + p R_MAX W < 0.
    """
    b = DELAY * (largest - W_OVER_BETA)
    root = b * b - 4 * THRESHOLD * DELAY * largest * W_OVER_BETA
    if root <= 0:
        return None
    return (b - root**0.5) / (2 * THRESHOLD), (b + root**0.5) / (2 * THRESHOLD)


# --- what is not printed ----------------------------------------------------------------------------------------------


@claim("ldcc", "Figs. 13, 14", "R_MAX and the capacities of Fig. 13.", "not printed")
def comparison_r_max() -> Outcome:
    return Outcome(
        NOT_GIVEN,
        f"R_MAX = {mbit(R_MAX)}, capacities of {mbit(CAPACITIES[0])} to {mbit(CAPACITIES[-1])}",
        "The text has NADA above LDCC for small capacities, which needs an R_MAX of 3.6 Mbit/s at least.",
        {"R_max": R_MAX},
    )


@claim("ldcc", "V-D", "The parameters of the simplified GCC.", "not printed")
def comparison_gcc_parameters() -> Outcome:
    return Outcome(
        NOT_GIVEN,
        "growth by 8 % a second, decrease to 0.85 of what is received, thresholds of +-0.05",
        "Growth and decrease are those of the IETF draft (draft-ietf-rmcat-gcc-02). Its thresholds are of a filtered "
        "delay variation between groups of packets; a gradient of 0.05 is chosen, a third of the pace at which the "
        "queue drains after a decrease.",
        {name: GCC.parameter(name) for name in ("g", "gamma", "alpha")},
    )


# --- GCC --------------------------------------------------------------------------------------------------------------


@claim(
    "ldcc",
    "V-D",
    "It is impossible for GCC to reach an equilibrium rate.",
    "no equilibrium; it necessarily oscillates",
)
def comparison_gcc_no_rest() -> Outcome:
    still = {edot: 0, pi: 0, p: 0, x_tau: A}
    growing = GCC.flow[A].subs(still).subs(m, 1)
    room = Symbol("r", positive=True)  # cap - 1
    parts = [proof(Eq(growing, A * Min(g, (cap - 1) / T_follow)), where=[cap > 1])]
    parts.append(proof(Min(g, room / T_follow) > 0))
    left = [(GCC.jumps[1].when, -1), (GCC.jumps[2].when, 0)]  # from decrease to hold, from hold to increase
    parts += [proof(when.subs({edot: 0, m: mode}) > 0) for when, mode in left]
    c = cycle(1.5e6)
    return from_proofs(
        *parts,
        computed="with a delay that rests, decrease and hold are left at once, and in increase the rate grows: A' = A "
        f"min(g, (cap - 1)/T) > 0. At 1.5 Mbit/s it has a limit cycle of {c.period:.4g} s",
        reason="That it oscillates is computed, see the rows on Fig. 14.",
        values={"period": c.period},
    )


@claim(
    "ldcc",
    "V-D",
    "At the threshold GCC decreases the rate until the queueing derivative is smaller than a negative threshold.",
    "decrease ends below the negative threshold",
    erratum=True,
)
def comparison_gcc_rule() -> Outcome:
    half = Rational(1, 2)
    gamma = next(s for s in GCC.params if s.name == "gamma")
    printed = replace(
        GCC,
        name="PrintedGCC",
        jumps=(GCC.jumps[0], Jump(when=Min(-gamma - edot, -m - half), reset={m: 1})),
    )
    runs = {
        (name, alpha): simulate(alone(law(alpha=alpha), 1.5e6), 120, samples=1201)
        for name, law in (("printed", printed), ("draft", GCC))
        for alpha in (0.85, 0.97)
    }
    rate = {key: run.rate.values[-400:, 0] for key, run in runs.items()}
    stuck = float(np.ptp(rate["printed", 0.97]))
    moving = min(float(np.ptp(v)) for key, v in rate.items() if key != ("printed", 0.97))
    low = float(rate["printed", 0.97][-1]) / 1.5e6
    good = stuck < 1.0 and moving > 1e4
    return Outcome(
        DIFFERS if good else REFUTED,
        f"with a decrease to 0.85 the printed rule cycles; with a decrease to 0.97 it stays at {low:.3g} c for ever, "
        "where the draft's automaton goes on",
        "A queue that drains more slowly than the threshold is never below it, and once it is empty its derivative is "
        "0: the printed rule then never increases again. It needs 1 - alpha > gamma, or an empty queue to count as "
        "underuse, as in the draft, where the end of over-use ends the decrease.",
        {"stuck": stuck, "moving": moving, "low": low},
    )


@claim("ldcc", "Fig. 14", "GCC's rate and delay over time: a cycle.", "curves; values not printed")
def comparison_gcc_cycle() -> Outcome:
    found, exact = cycle(1.5e6), closed()
    pairs = (
        (found.period, exact.period),
        (float(found.mean.rate[0]) / 1.5e6, exact.rate_mean),
        (float(found.most.rate[0]) / 1.5e6, exact.rate_high),
        (float(found.least.rate[0]) / 1.5e6, exact.rate_low),
        (float(found.most.queueing_delay[0]), exact.queue_max),
        (float(found.mean.queueing_delay[0]), exact.queue_mean),
    )
    error = max(abs(a / b - 1) for a, b in pairs)
    return Outcome(
        NOT_GIVEN,
        f"period {exact.period:.5g} s, rate {mbit(exact.rate_low * 1.5e6)} to {mbit(exact.rate_high * 1.5e6)}, queue "
        f"up to {ms(exact.queue_max)}, {ms(exact.queue_mean)} on average; the simulated cycle is the closed form "
        f"within {bound(error)}",
        "The cycle is in closed form for the parameters taken; the printed curves are lost.",
        {"period": exact.period, "error": error, "queue_max": exact.queue_max, "queue_mean": exact.queue_mean},
    )


@claim("ldcc", "Fig. 13", "GCC achieves a lower average self-inflicted delay for all the tested rates.", "lowest")
def comparison_gcc_lowest() -> Outcome:
    mean = closed().queue_mean
    simulated = [float(cycle(c).mean.queueing_delay[0]) for c in (CAPACITIES[0], CAPACITIES[-1])]
    others = min(min(ldcc_delay(c), nada_delay(c)) for c in CAPACITIES) - DELAY
    good = mean < others and near(simulated, [mean, mean], 1e-6)
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"{ms(mean)} of queue at every capacity, as the closed form does not contain it; LDCC and NADA have "
        f"{ms(others)} at least",
        "" if good else "not the lowest",
        {"gcc": mean, "others": others},
    )


@claim(
    "ldcc",
    "V-D",
    "The variability of GCC's delay is pretty large: the maximum is much higher than the average.",
    "maximum >> average",
)
def comparison_gcc_varies() -> Outcome:
    c = closed()
    ratio = c.queue_max / c.queue_mean
    return Outcome(
        REPRODUCED if ratio > 3 else DIFFERS,
        f"{ms(c.queue_max)} against {ms(c.queue_mean)} of queue, {ratio:.3g} times the average",
        "" if ratio > 3 else "not much higher",
        {"ratio": ratio},
    )


# --- NADA -------------------------------------------------------------------------------------------------------------


@claim("ldcc", "V-D", "The equilibrium of NADA is OWD_eq = R_MAX OWD_min/R_eq.", "R_MAX OWD_min/R_eq")
def comparison_owd_eq() -> Outcome:
    error = max(
        abs(float(settled(NADA(R_max=R_MAX), c).one_way_delay.values[-1, 0]) / nada_delay(c) - 1) for c in CAPACITIES
    )
    return from_proofs(
        law_proof(NADA, "V-C OWD_eq = R_MAX OWD_min/R_eq"),
        computed="every equilibrium of the form of 2013 without losses, with R_MIN = 0 and weight 1, is that one; "
        f"runs at {len(CAPACITIES)} capacities end within {bound(error)} of it",
        reason="With a least rate, (R_eq - R_MIN) OWD_eq = (R_MAX - R_MIN) OWD_min.",
        values={"error": error},
    )


@claim(
    "ldcc",
    "Fig. 13",
    "NADA converges to a larger delay for small capacities, while LDCC alleviates the variations across capacities.",
    "NADA above LDCC at small capacities",
)
def comparison_small_capacities() -> Outcome:
    grows = {name: f(CAPACITIES[0]) / f(CAPACITIES[-1]) for name, f in (("NADA", nada_delay), ("LDCC", ldcc_delay))}
    edges = even_capacities(R_MAX)
    assert edges is not None
    above = [c for c in CAPACITIES if nada_delay(c) > ldcc_delay(c)]
    agrees = above == [c for c in CAPACITIES if edges[0] < c < edges[1]]
    e, R, W, T, d = (Symbol(name, positive=True) for name in ("c", "R", "W", "T", "p"))
    algebra = proof(
        Eq(R * d / e - (d * W / e + T) / (1 - W / e), -(T * e**2 - d * (R - W) * e + d * R * W) / (e * (e - W)))
    )
    least = _least_r_max()
    good = bool(algebra) and agrees and grows["NADA"] > 2 * grows["LDCC"] and even_capacities(0.99 * least) is None
    return Outcome(
        DIFFERS if good else REFUTED,
        f"from 3 to 0.5 Mbit/s NADA's delay grows {grows['NADA']:.3g}-fold, LDCC's {grows['LDCC']:.3g}-fold; with "
        f"R_MAX = {mbit(R_MAX)} NADA's is the longer one from {mbit(edges[0], 3)} to {mbit(edges[1], 3)}",
        "LDCC's delay alleviates the variation until the capacity is near w/beta = 0.2 Mbit/s, where by (19) it grows "
        "without limit and is the longer one again. And with an R_MAX below (sqrt(T) + sqrt(T + p))^2/p w/beta, "
        f"{mbit(least)} here, NADA's delay is shorter than LDCC's at every capacity.",
        {**grows, "low": edges[0], "high": edges[1], "least R_max": least},
    )


def _least_r_max() -> float:
    """The R_MAX below which NADA's delay is nowhere longer than LDCC's [bit/s]."""
    return float((THRESHOLD**0.5 + (THRESHOLD + DELAY) ** 0.5) ** 2 / DELAY * W_OVER_BETA)


# --- Fig. 14 ----------------------------------------------------------------------------------------------------------


@claim("ldcc", "Fig. 14", "At 1.5 Mbit/s LDCC and NADA achieve a constant rate and delay; GCC does not.", "")
def comparison_constant() -> Outcome:
    spread = {}
    for name, law in (("LDCC", LDCC), ("NADA", NADA(R_max=R_MAX)), ("GCC", GCC)):
        late = settled(law, 1.5e6)
        spread[name] = float(np.ptp(late.rate.values)) / 1.5e6, float(np.ptp(late.one_way_delay.values))
    calm = max(max(v) for name, v in spread.items() if name != "GCC")
    good = calm < 1e-3 and spread["GCC"][0] > 0.1
    delays = {name: f(1.5e6) for name, f in (("LDCC", ldcc_delay), ("NADA", nada_delay))}
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"LDCC and NADA rest at c with {ms(delays['LDCC'])} and {ms(delays['NADA'])}; GCC's rate moves by "
        f"{percent(spread['GCC'][0])} of c and its delay by {ms(spread['GCC'][1])}",
        "" if good else "another of them moves",
        {f"{k} {what}": v[i] for k, v in spread.items() for i, what in enumerate(("rate", "delay"))} | delays,
    )
