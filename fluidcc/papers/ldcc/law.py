"""Section III of the LDCC paper: the law, its equilibrium and its discrete form, (15) to (25)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Eq, Function, Symbol, diff, lambdify, limit, log, oo, symbols

from fluidcc.base.errors import NoEquilibrium
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Source
from fluidcc.metrics import jain
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import (
    FAIR_DELAYS,
    W_OVER_BETA,
    T,
    alone,
    at_time,
    beta,
    eta,
    four_flows,
    near,
    positive,
    w,
    with_law,
    x,
)
from fluidcc.papers.model import Claim, Outcome, law_proof, proof
from fluidcc.papers.printed import ms
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC
from fluidcc.sources.sampled import merged
from fluidcc.symbols import RTT, Let, e, e_b, edot, pi, unfold

if TYPE_CHECKING:
    import xarray as xr

E_HAT = LDCC.claims["(19)"].relation.rhs
"""The one-way delay at equilibrium by (19), as the law claims it."""
_E_HAT = lambdify((x, e_b, *LDCC.params), E_HAT, "numpy")
(FLOW,) = LDCC.flow.values()
GAIN, PENALTY = (next(v for v in FLOW.atoms(Let) if v.name == name) for name in ("k", "v"))
V = unfold(PENALTY)  # (17)
ABOVE = beta * (e - T) / (e + e_b)  # v where e > T
U = w * log(x)


def delay_by_19(rate: Any, back: Any) -> Any:
    """(19) at a rate [bit/s] and a return delay [s], with the parameters of Section V [s]."""
    return _E_HAT(rate, back, *LDCC.params.values())


def _with_penalty(penalty: Let) -> Source:
    """Return LDCC with another penalty."""
    return replace(LDCC, claims={}, flow={x: FLOW.xreplace({PENALTY: penalty})})


def rate_equation(claim: Claim) -> Outcome:
    at_zero = unfold(GAIN) * limit(x * (diff(U, x) - V - edot - pi), x, 0, "+")
    return claim.proved(
        proof(Eq(FLOW, GAIN * x * (w / x - beta * (e - T) / RTT - edot - pi)), where=[e > T]),
        at_zero > 0,
    )


def derivative_term(claim: Claim) -> Outcome:
    without = unfold(FLOW).subs(edot, 0)
    return claim.proved(Eq(unfold(FLOW), without - unfold(FLOW).diff(edot).subs(edot, 0) * -edot))


def utility(claim: Claim) -> Outcome:
    return claim.proved(diff(U, x) > 0, diff(U, x, 2) < 0, checks=LDCC.utility == U)


def penalty(claim: Claim) -> Outcome:
    return claim.proved(proof(Eq(V, 0), where=[e <= T]), proof(Eq(V, ABOVE), where=[e > T]), V >= 0)


def penalty_shape(claim: Claim) -> Outcome:
    slope = diff(ABOVE, e)
    return claim.proved(
        Eq(slope, beta * (T + e_b) / (e + e_b) ** 2), slope > 0, diff(ABOVE, e, 2) < 0
    )


def saturation(claim: Claim) -> Outcome:
    return claim.proved(beta > V, checks=limit(ABOVE, e, oo) == beta)


def penalty_curves(claim: Claim) -> Outcome:
    v = lambdify((e, e_b, T, beta), V, "numpy")
    delays, grid = (0.025, 0.05, 0.1), np.array([0.15, 0.3, 1.0, 10.0])
    curves = {p: v(grid, p, 0.1, 0.1) for p in delays}
    ordered = all(np.all(curves[a] > curves[b]) for a, b in pairwise(delays))
    p1, gap = positive("p1", "d")
    lower = proof(ABOVE.subs(e_b, p1) - ABOVE.subs(e_b, p1 + gap) > 0, where=[e > T])
    values = {
        f"{ms(at)}, p = {ms(p)}": v for p in delays for at, v in zip(grid, curves[p], strict=True)
    }
    return claim.reproduced_if(ordered and lower, values, shown=[curves[p][1] for p in delays])


def equilibrium_delay(claim: Claim) -> Outcome:
    slope = Symbol("U'", positive=True)  # of any utility
    return claim.proved(
        law_proof(LDCC, "(18)"),
        proof(Eq(slope - ABOVE, 0), where=[Eq(e, RTT.definition * slope / beta + T)]),
    )


def other_utilities(claim: Claim) -> Outcome:
    a = Symbol("a", positive=True)
    U_fair = w * x ** (1 - a) * (5 * w) ** (a - 1) / (1 - a)
    fair = LDCC.with_utility(U_fair, params={a: 2}, units={a: "1"})
    eq = equilibrium(alone(LDCC, fair))
    rate, delay = eq.rate.values, eq.one_way_delay.values
    slopes = np.array([20e3 / rate[0], 20e3 / rate[1] ** 2 * 100e3])
    error = np.max(np.abs(eq.rtt.values * slopes / 0.1 + 0.1 - delay))
    return claim.reproduced_if(error < 1e-9, {"error": error}, rate=rate / 1e6)


def equilibrium_delay_solved(claim: Claim) -> Outcome:
    late = at_time("ldcc_fig5", 259.0)
    by_formula = float(delay_by_19(late.rate[:3].mean(), 0.025))
    by_run = late.one_way_delay.values[0]
    values = {"formula": by_formula, "run": by_run}
    return claim.proved(
        law_proof(LDCC, "(19)"), values=values, checks=abs(by_run / by_formula - 1) <= 2e-3
    )


def larger_rate(claim: Claim) -> Outcome:
    excess = Symbol("d", positive=True)
    return claim.proved(
        diff(E_HAT, x).subs(x, w / beta + excess) < 0, checks=limit(E_HAT, x, oo) == T
    )


def rate_floor(claim: Claim) -> Outcome:
    return claim.proved(law_proof(LDCC, "(20)"), values={"floor": W_OVER_BETA})


def below_floor(claim: Claim) -> Outcome:
    shared = 6 * W_OVER_BETA * 0.75  # a fair share of three quarters of w/beta
    endless, finite = (four_flows((0.025,) * 6, shared, longest_queue=q) for q in (None, 0.5))
    none = False
    try:
        equilibrium(endless)
    except NoEquilibrium:
        none = True
    eq, late = equilibrium(finite), simulate(finite, 300.0, samples=2).isel(time=-1)
    settled = near(late.rate.values, eq.rate.values, 1e-3)
    values = {"loss": eq.loss.values[0], "rate": eq.rate.values[0]}
    return claim.reproduced_if(none and bool(eq.full.values[0]) and settled, values, shared=shared)


# --- III-A: what the penalty does for starvation and fairness


@cache
def burst() -> xr.Dataset:
    """A flow alone on 1 Mbit/s with an endless buffer, and a burst of 3 Mbit/s from 40 to 42 s;
    computed once."""
    flows = {
        "ldcc": {"law": LDCC, "initial": {"x": 1e6}},
        "burst": {"law": CBR(rate=3e6), "start": 40.0, "stop": 42.0},
    }
    return simulate(dumbbell(flows, {"capacity": 1e6, "delay": 0.025}), 60.0, samples=6001)


def penalty_cannot_starve(claim: Claim) -> Outcome:
    held = FLOW.subs({edot: 0, pi: 0})
    shortfall = Symbol("s", nonnegative=True)
    grows = unfold(held).subs(w, beta * (x + shortfall)) > 0  # w/beta = x + s >= x
    return claim.proved(grows)


def delay_cannot_starve(claim: Claim) -> Outcome:
    r = burst()
    rate = r.rate.sel(flow="ldcc")
    before, low = float(rate.sel(time=39.0, method="nearest")), float(rate.min())
    return claim.refuted_if(
        low <= W_OVER_BETA and float(r.lost.max()) <= 0, {"before": before, "low": low}
    )


def similar_penalties(claim: Claim) -> Outcome:
    p1, p2, q = positive("p1", "p2", "q")
    ratio = limit(ABOVE.subs({e: p1 + q, e_b: p1}) / ABOVE.subs({e: p2 + q, e_b: p2}), q, oo)
    spread = {}
    for c in (0.9e6, 6e6):
        net = four_flows(FAIR_DELAYS["25, 25, 25, 75 ms"], c, longest_queue=None)
        rates = equilibrium(net).rate.values
        spread[f"{c / 1e6:g}"] = float(rates.max() / rates.min())
    return claim.reproduced_if(
        ratio == 1 and spread["0.9"] < spread["6"],
        spread,
        computed="the ratio of two penalties tends to 1 (SymPy's limit); fastest over slowest of "
        "25, 25, 25, 75 ms: " + ", ".join(f"{v:.4g} at {c} Mbit/s" for c, v in spread.items()),
    )


def normalisation(claim: Claim) -> Outcome:
    shorter, more, q = positive("p", "d", "q")
    excess = Symbol("h", positive=True)  # h = p + q - T > 0: the delay of the short flow above T
    linear = (excess + more) / excess  # x1/x2 where v = beta (e - T)/constant
    divided = linear * (2 * shorter + q) / (2 * (shorter + more) + q)
    bare = _with_penalty(Let("v", PENALTY.definition * RTT / (2 * T)))
    index = {}
    for name, law in (("divided by RTT", LDCC), ("divided by 2 T", bare)):
        net = four_flows(FAIR_DELAYS["25, 40, 60, 75 ms"], 6e6, source=law)
        index[name] = float(jain(equilibrium(net).rate))
    return claim.proved(linear - divided > 0, values=index)


def only_losses(claim: Claim) -> Outcome:
    eq = equilibrium(scenarios["ldcc_fig6"].net)
    rate, delay, loss = (a.values[0] for a in (eq.rate, eq.one_way_delay, eq.loss))
    # With v = 0, w/x = pi and two flows: pi = (2 x + u - c)/(2 x + u), a quadratic in x.
    a, b, c0 = 2.0, 0.5e6 - 3.5e6 - 2 * 20e3, -20e3 * 0.5e6
    exact = (-b + (b * b - 4 * a * c0) ** 0.5) / (2 * a)
    return claim.reproduced_if(
        delay < 0.1 and abs(rate / exact - 1) < 1e-9,
        {"rate": rate, "exact": exact, "delay": delay},
        loss=loss,
    )


# --- III-B: interarrival times and the discrete law, (21) to (25)

MERGED = merged.definition  # (x - x_recv)/x_recv with x_recv = x (1 - pi)/(1 + e')
LITERAL = Let("v", beta * (e - T) / RTT)  # (25) has no (.)^+

MergedLDCC = replace(LDCC, claims={}, flow={x: FLOW.xreplace({pi: MERGED - edot})})
"""(15) with the one signal that (25) measures in place of e' + pi."""
LiteralLDCC = _with_penalty(LITERAL)
"""(15) with the penalty as (25) prints it, negative below T."""


def receiving_rate(claim: Claim) -> Outcome:
    # The n-th packet arrives when the cumulative arrivals reach n; between n - 1 and n their mean
    # rate is this.
    rate, before = positive("rho", "t0")
    arrived = Function("A")
    n = symbols("n")
    linear = arrived(n).replace(arrived, lambda k: before + k / rate)
    return claim.proved(Eq(1 / (linear - linear.subs(n, n - 1)), rate))


def receiving_rate_index(claim: Claim) -> Outcome:
    n = Symbol("n", integer=True)
    sent, delay = Function("t_s", real=True), Function("e", real=True)
    rate, e0, e1, e2 = symbols("x e0 e1 e2", positive=True)
    arrival = [sent(k) + delay(k) for k in (n - 1, n)]
    measured = 1 / (arrival[1] - arrival[0]).subs(sent(n), sent(n - 1) + 1 / rate)
    by_definition = measured.subs({delay(n - 1): e0, delay(n): e1})
    wrong = proof(Eq(by_definition, 1 / (1 / rate + e2 - e1)))
    right = proof(Eq(by_definition, 1 / (1 / rate + e1 - e0)))
    return claim.differs_if(right and not wrong, dict(wrong.counterexample))


def derivative_from_rates(claim: Claim) -> Outcome:
    (rate,) = positive("x")
    change = Symbol("Delta", real=True)
    received = 1 / (1 / rate + change)
    # Fluid: data sent in d theta arrives in (1 + e') d theta, where e' is by the time of sending.
    slope = Symbol("s", real=True)
    return claim.proved(
        Eq((rate - received) / received, change * rate),
        Eq((rate - rate / (1 + slope)) / (rate / (1 + slope)), slope),
    )


def signal_of_losses(claim: Claim) -> Outcome:
    received = x * (1 - pi)
    both = x * (1 - pi) / (1 + edot)
    return claim.proved(
        proof(Eq((x - received) / received, pi / (1 - pi)), where=[pi < 1]),
        proof(Eq((x - both) / both, MERGED), where=[pi < 1, edot > -1]),
    )


def loss_signal_approximation(claim: Claim) -> Outcome:
    net = scenarios["ldcc_fig6"].net
    a, b = (equilibrium(n, at=200.0) for n in (net, with_law(net, MergedLDCC)))
    loss = [v.loss.values[0] for v in (a, b)]
    rate = [v.rate.values[0] for v in (a, b)]
    return claim.proved(
        proof(Eq(pi / (1 - pi) - pi, pi**2 / (1 - pi)), where=[pi < 1]),
        values={"rate_15": rate[0], "rate_25": rate[1], "loss_15": loss[0], "loss_25": loss[1]},
    )


def discrete_rule(claim: Claim) -> Outcome:
    sampling, k = Symbol("T_s", positive=True), eta / RTT
    signal = Symbol("m", real=True)
    printed = x + sampling * k * x * (w / x - beta * (e - T) / RTT - signal)
    step = x + sampling * FLOW.subs(edot, 0).subs(pi, signal)
    first_order = (
        diff(MERGED, edot).subs({edot: 0, pi: 0}) == diff(MERGED, pi).subs({edot: 0, pi: 0}) == 1
    )
    return claim.proved(
        proof(Eq(unfold(printed), unfold(step)), where=[e >= T]), checks=first_order
    )


def discrete_rule_below_threshold(claim: Claim) -> Outcome:
    below = proof(V - ABOVE > 0, where=[e < T])
    net = scenarios["ldcc_fig6"].net
    a, b = (equilibrium(n, at=200.0) for n in (net, with_law(net, LiteralLDCC)))
    loss = [v.loss.values[0] for v in (a, b)]
    return claim.differs_if(below, {"loss": loss[0], "literal": loss[1]})


def gain_of_a_round_trip(claim: Claim) -> Outcome:
    return claim.proved(Eq(RTT * GAIN, eta), values={"eta": 0.4})
