"""Section III-A of the LDCC paper: the rate equation and its equilibrium, equations (15) to (20), and Fig. 2."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from sympy import Eq, Symbol, diff, lambdify, limit, log, oo

from fluidcc.base.errors import NoEquilibrium
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import (
    E_HAT,
    W_OVER_BETA,
    T,
    at_time,
    beta,
    delay_by_19,
    kbit,
    ms,
    near,
    percent,
    positive,
    w,
    x,
)
from fluidcc.papers.ldcc.networks import four_flows
from fluidcc.papers.model import DIFFERS, REFUTED, REPRODUCED, Outcome, claim, from_proofs, law_proof, proof
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, Let, e, e_b, edot, pi, unfold

(FLOW,) = LDCC.flow.values()
V = unfold(next(v for v in FLOW.atoms(Let) if v.name == "v"))  # (17)
ABOVE = beta * (e - T) / (e + e_b)  # v where e > T
U = w * log(x)


@claim(
    "ldcc",
    "(15)",
    "The rate follows x' = k x (U'(x) - v(e) - e' - pi), kept from becoming negative.",
    "x' = k x (U' - v - e' - pi)^+_x",
)
def rate_equation() -> Outcome:
    k = next(v for v in FLOW.atoms(Let) if v.name == "k")
    form = proof(Eq(FLOW, k * x * (w / x - beta * (e - T) / RTT - edot - pi)), where=[e > T])
    at_zero = unfold(k) * limit(x * (diff(U, x) - V - edot - pi), x, 0, "+")
    return from_proofs(
        form,
        proof(at_zero > 0),
        computed="the law of the library; and x' tends to k w > 0 as x tends to 0",
        reason="So the projection never acts with the utility (16): the rate stays positive by itself.",
    )


@claim(
    "ldcc", "III-A", "The term e' does not change the equilibrium, where the derivative is zero.", "same equilibrium"
)
def derivative_term() -> Outcome:
    without = unfold(FLOW).subs(edot, 0)
    alone = proof(Eq(unfold(FLOW), without - unfold(FLOW).diff(edot).subs(edot, 0) * -edot))
    return from_proofs(
        alone, computed="e' enters linearly and alone: with e' = 0 the equation is that without the term"
    )


@claim("ldcc", "(16)", "The utility w log x is increasing and strictly concave.", "U = w log x")
def utility() -> Outcome:
    if LDCC.utility != U:
        return Outcome(DIFFERS, str(LDCC.utility), "the law has another utility")
    return from_proofs(proof(diff(U, x) > 0), proof(diff(U, x, 2) < 0), computed="U' = w/x > 0, U'' = -w/x^2 < 0")


@claim(
    "ldcc", "(17)", "The penalty is 0 up to the threshold T, and beta (e - T)/RTT above.", "v = beta ((e - T)/RTT)^+"
)
def penalty() -> Outcome:
    return from_proofs(
        proof(Eq(V, 0), where=[e <= T]),
        proof(Eq(V, ABOVE), where=[e > T]),
        proof(V >= 0),
        computed="on either side of T, continuous at T",
    )


@claim("ldcc", "(17)", "The penalty is a non-decreasing, non-linear function of the delay.", "not linear")
def penalty_shape() -> Outcome:
    slope = diff(ABOVE, e)
    return from_proofs(
        proof(Eq(slope, beta * (T + e_b) / (e + e_b) ** 2)),
        proof(slope > 0),
        proof(diff(ABOVE, e, 2) < 0),
        computed="above T: v' = beta (T + e_b)/(e + e_b)^2 > 0 > v''",
        reason="Increasing and concave above T, so its slope is largest at T: beta/(T + e_b).",
    )


@claim("ldcc", "Fig. 2", "The penalty saturates to beta for large delays.", "v -> beta")
def saturation() -> Outcome:
    if limit(ABOVE, e, oo) != beta:
        return Outcome(REFUTED, f"the limit is {limit(ABOVE, e, oo)}", "by SymPy's limit")
    return from_proofs(proof(beta > V), computed="v < beta always, and v tends to beta")


@claim(
    "ldcc",
    "Fig. 2",
    "Curves of the penalty for several propagation delays p, with e_b = p.",
    "curves; values not printed",
)
def penalty_curves() -> Outcome:
    v = lambdify((e, e_b, T, beta), V, "numpy")
    delays, grid = (0.025, 0.05, 0.1), np.array([0.15, 0.3, 1.0, 10.0])
    curves = {p: v(grid, p, 0.1, 0.1) for p in delays}
    ordered = all(np.all(curves[a] > curves[b]) for a, b in pairwise(delays))
    p1, gap = positive("p1", "d")
    lower = proof(ABOVE.subs(e_b, p1) - ABOVE.subs(e_b, p1 + gap) > 0, where=[e > T])
    values = {f"{ms(e_)}, p = {ms(p)}": float(c) for p in delays for e_, c in zip(grid, curves[p], strict=True)}
    if not (ordered and lower):
        return Outcome(DIFFERS, "the curves cross", "a longer return delay should mean a lower penalty", values)
    return Outcome(
        REPRODUCED,
        "at e = 300 ms, p = 25, 50, 100 ms: v = "
        + ", ".join(f"{curves[p][1]:.4f}" for p in delays)
        + "; longer p, lower v (proved)",
        "The values of p and the scales of the figure are lost; drawn in ldcc_fig2.png.",
        values,
    )


@claim(
    "ldcc",
    "(18)",
    "Without losses the delay at equilibrium is RTT U'/beta + T = RTT w/(beta x) + T.",
    "e = RTT w/(beta x) + T",
)
def equilibrium_delay() -> Outcome:
    slope = Symbol("U'", positive=True)  # of any utility
    general = proof(Eq(slope - ABOVE, 0), where=[Eq(e, RTT.definition * slope / beta + T)])
    shown = law_proof(LDCC, "(18)")
    return from_proofs(shown, general, computed="from x' = 0 in (15); with U' for w/x for any utility")


@claim("ldcc", "(18), footnote 1", "It holds for any increasing concave utility, and different ones.", "any utility")
def other_utilities() -> Outcome:
    net = Network().link("l", DropTail, capacity=3e6, delay=0.025)
    a = Symbol("a", positive=True)
    fair = LDCC.with_utility(w * x ** (1 - a) * (5 * w) ** (a - 1) / (1 - a), params={a: 2}, units={a: "1"})
    net.flow("log", LDCC, route=["l"]).flow("alpha", fair, route=["l"])
    eq = equilibrium(net)
    rate, delay = eq.rate.values, eq.one_way_delay.values
    slopes = np.array([20e3 / rate[0], 20e3 / rate[1] ** 2 * 100e3])
    error = float(np.max(np.abs(eq.rtt.values * slopes / 0.1 + 0.1 - delay)))
    good = error < 1e-9
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"U = w log x and U = -5 w^2/x on one link: {rate[0] / 1e6:.4g} and "
        f"{rate[1] / 1e6:.4g} Mbit/s, both meet (18) with their own U'",
        "" if good else "(18) fails for one of them",
        {"error": error},
    )


@claim(
    "ldcc",
    "(19)",
    "With RTT = e + e_b the delay at equilibrium is (e_b r + T)/(1 - r), r = w/(beta x).",
    "e = (e_b r + T)/(1 - r)",
)
def equilibrium_delay_solved() -> Outcome:
    shown = law_proof(LDCC, "(19)")
    late = at_time("ldcc_fig5", 259.0)
    by_formula, by_run = float(delay_by_19(late.rate[:3].mean(), 0.025)), float(late.one_way_delay.values[0])
    values = {"formula": by_formula, "run": by_run}
    if abs(by_run / by_formula - 1) > 2e-3:
        return Outcome(DIFFERS, f"{ms(by_formula)} by (19), {ms(by_run)} in the run of Fig. 5", "not settled", values)
    return from_proofs(
        shown,
        computed=f"from (18) and (9); Fig. 5 with three flows: {ms(by_formula, 5)}, in the run {ms(by_run, 5)}",
        values=values,
    )


@claim("ldcc", "(19)", "The larger the rate at equilibrium, the closer the delay is to T.", "e -> T")
def larger_rate() -> Outcome:
    if limit(E_HAT, x, oo) != T:
        return Outcome(REFUTED, f"the limit is {limit(E_HAT, x, oo)}", "by SymPy's limit")
    excess = Symbol("d", positive=True)
    falls = proof(diff(E_HAT, x).subs(x, w / beta + excess) < 0)
    return from_proofs(falls, computed="e falls as x grows above w/beta, and tends to T")


@claim("ldcc", "(20)", "The rate at an equilibrium without losses exceeds w/beta.", "x > w/beta")
def rate_floor() -> Outcome:
    return from_proofs(
        law_proof(LDCC, "(20)"),
        computed=f"where x' = 0 and pi = 0; at the values of Section V {kbit(W_OVER_BETA)}",
        values={"floor": W_OVER_BETA},
    )


@claim(
    "ldcc", "(20)", "Where (20) cannot hold, queues grow to the end of the buffer and losses take over.", "loss-driven"
)
def below_floor() -> Outcome:
    shared = 6 * W_OVER_BETA * 0.75  # a fair share of three quarters of w/beta
    endless, finite = (four_flows((0.025,) * 6, shared, longest_queue=q) for q in (None, 0.5))
    try:
        equilibrium(endless)
    except NoEquilibrium:
        none = True
    else:
        none = False
    eq, late = equilibrium(finite), simulate(finite, 300.0, samples=2, progress=False).isel(time=-1)
    settled = near(late.rate.values, eq.rate.values, 1e-3)
    good = none and bool(eq.full.values[0]) and settled
    values = {"loss": float(eq.loss.values[0]), "rate": float(eq.rate.values[0])}
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"six flows on {shared / 1e6:g} Mbit/s: no equilibrium with an endless "
        f"buffer; with 0.5 s of buffer it is full, loses {percent(values['loss'])}, and the run ends there",
        "" if good else "the run or the equilibrium says otherwise",
        values,
    )
