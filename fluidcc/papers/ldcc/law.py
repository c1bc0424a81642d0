"""Section III of the LDCC paper: the law, its equilibrium and its discrete form, (15) to (25)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from sympy import Eq, Function, Symbol, diff, lambdify, limit, log, oo, symbols

from fluidcc.base.errors import NoEquilibrium
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.metrics import jain
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import (
    E_HAT,
    FAIR_DELAYS,
    W_OVER_BETA,
    T,
    at_time,
    beta,
    delay_by_19,
    eta,
    four_flows,
    kbit,
    mbit,
    ms,
    near,
    percent,
    positive,
    w,
    x,
)
from fluidcc.papers.model import DIFFERS, REFUTED, REPRODUCED, Outcome, claim, from_proofs, law_proof, proof
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC
from fluidcc.sources.sampled import merged
from fluidcc.symbols import RTT, Let, e, e_b, edot, pi, unfold

if TYPE_CHECKING:
    import xarray as xr

__all__ = []


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


# --- Section III-A of the LDCC paper: what its penalty does for starvation and fairness


@lru_cache(maxsize=1)
def burst() -> xr.Dataset:
    """A flow alone on 1 Mbit/s with an endless buffer, and a burst of 3 Mbit/s from 40 to 42 s; computed once."""
    net = Network().link("l", DropTail, capacity=1e6, delay=0.025)
    net.flow("ldcc", LDCC, route=["l"], initial={"x": 1e6})
    net.flow("burst", CBR(rate=3e6), route=["l"], start=40.0, stop=42.0)
    return simulate(net, 60.0, samples=6001, progress=False)


@claim("ldcc", "III-A", "The penalty alone never lets the rate fall below w/beta.", "x >= w/beta")
def penalty_cannot_starve() -> Outcome:
    held = FLOW.subs({edot: 0, pi: 0})
    shortfall = Symbol("s", nonnegative=True)
    grows = proof(unfold(held).subs(w, beta * (x + shortfall)) > 0)  # w/beta = x + s >= x
    return from_proofs(grows, computed="without losses and with e' = 0, x' > 0 wherever x <= w/beta")


@claim(
    "ldcc",
    "III-A",
    "'The experienced delay can never force the sending rate to decrease to a value lower than w/beta.'",
    "x >= w/beta = 200 kbit/s",
)
def delay_cannot_starve() -> Outcome:
    r = burst()
    rate = r.rate.sel(flow="ldcc")
    before, low = float(rate.sel(time=39.0, method="nearest")), float(rate.min())
    if low > W_OVER_BETA or float(r.lost.max()) > 0:
        return Outcome(REPRODUCED, f"lowest rate {kbit(low)}", "", {"low": low})
    return Outcome(
        REFUTED,
        f"from {kbit(before)}, a burst of 3 c for 2 s on an endless buffer brings it to {kbit(low)} with no loss",
        "The argument by (20) is about equilibria, and holds of v (see the row above). But e' is part of "
        "the delay's signal and is not bounded by beta: while queues grow, x is drawn to w/(v + e').",
        {"before": before, "low": low},
    )


@claim(
    "ldcc",
    "III-A",
    "For large delays (low capacity) flows of different propagation delay have similar penalties.",
    "similar rates",
)
def similar_penalties() -> Outcome:
    p1, p2, q = positive("p1", "p2", "q")
    ratio = limit(ABOVE.subs({e: p1 + q, e_b: p1}) / ABOVE.subs({e: p2 + q, e_b: p2}), q, oo)
    if ratio != 1:
        return Outcome(REFUTED, f"the ratio tends to {ratio}", "by SymPy's limit")
    rates = {
        c: equilibrium(four_flows(FAIR_DELAYS["25, 25, 25, 75 ms"], c, longest_queue=None)).rate.values
        for c in (0.9e6, 6e6)
    }
    spread = {f"{c / 1e6:g}": float(r.max() / r.min()) for c, r in rates.items()}
    nearer = spread["0.9"] < spread["6"]
    return Outcome(
        REPRODUCED if nearer else DIFFERS,
        "the ratio of two penalties tends to 1 (SymPy's limit); fastest over slowest of 25, 25, 25, 75 ms: "
        + ", ".join(f"{v:.4g} at {c} Mbit/s" for c, v in spread.items()),
        "With an endless buffer." if nearer else "The rates are no nearer at the low capacity.",
        spread,
    )


@claim(
    "ldcc",
    "III-A",
    "At one queue, dividing the penalty by RTT brings flows of different propagation delays nearer to each other.",
    "'motivated by rate fairness'",
)
def normalisation() -> Outcome:
    shorter, more, q = positive("p", "d", "q")
    excess = Symbol("h", positive=True)  # h = p + q - T > 0: the delay of the short flow above T
    linear = (excess + more) / excess  # x1/x2 where v = beta (e - T)/constant
    divided = linear * (2 * shorter + q) / (2 * (shorter + more) + q)
    shown = proof(linear - divided > 0)
    (v,) = (k for k in FLOW.atoms(Let) if k.name == "v")
    bare = replace(LDCC, claims={}, flow={x: FLOW.xreplace({v: Let("v", v.definition * RTT / (2 * T))})})
    index = {
        name: float(jain(equilibrium(four_flows(FAIR_DELAYS["25, 40, 60, 75 ms"], 6e6, source=law)).rate))
        for name, law in (("divided by RTT", LDCC), ("divided by 2 T", bare))
    }
    return from_proofs(
        shown,
        computed="at one queue the short flow's advantage is smaller by (2 p1 + q)/(2 p2 + q); 25, 40, 60, "
        "75 ms at 6 Mbit/s: Jain's index " + ", ".join(f"{v:.4g} {k}" for k, v in index.items()),
        values=index,
    )


@claim(
    "ldcc",
    "III-A",
    "If the longest delay is below T, the penalty is always zero and losses alone drive the flow.",
    "e_max < T",
)
def only_losses() -> Outcome:
    eq = equilibrium(scenarios["ldcc_fig6"].net)
    rate, delay, loss = (float(a.values[0]) for a in (eq.rate, eq.one_way_delay, eq.loss))
    # With v = 0, w/x = pi and two flows: pi = (2 x + u - c)/(2 x + u), a quadratic in x.
    a, b, c0 = 2.0, 0.5e6 - 3.5e6 - 2 * 20e3, -20e3 * 0.5e6
    exact = (-b + (b * b - 4 * a * c0) ** 0.5) / (2 * a)
    good = delay < 0.1 and abs(rate / exact - 1) < 1e-9
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"Fig. 6: e = {ms(delay)} < T, w/x = pi = {percent(loss, 4)}, two flows at {rate / 1e6:.4f} Mbit/s",
        "" if good else f"by hand {exact / 1e6:.4f} Mbit/s",
        {"rate": rate, "exact": exact, "delay": delay},
    )


# --- Section III-B of the LDCC paper: interarrival times and the discrete law, equations (21) to (25)


MERGED = merged.definition  # (x - x_recv)/x_recv with x_recv = x (1 - pi)/(1 + e')
LITERAL = Let("v", beta * (e - T) / RTT)  # (25) has no (.)^+
_v = next(v for v in FLOW.atoms(Let) if v.name == "v")

MergedLDCC = replace(LDCC, claims={}, flow={x: FLOW.xreplace({pi: MERGED - edot})})
"""(15) with the one signal that (25) measures in place of e' + pi."""
LiteralLDCC = replace(LDCC, claims={}, flow={x: FLOW.xreplace({_v: LITERAL})})
"""(15) with the penalty as (25) prints it, negative below T."""


@claim(
    "ldcc",
    "(21)",
    "The receiving rate in packets a second is one over the interarrival time.",
    "x_recv(n) = 1/(t_a(n) - t_a(n-1))",
)
def receiving_rate() -> Outcome:
    # The n-th packet arrives when the cumulative arrivals reach n; between n - 1 and n their mean rate is this.
    rate, before = positive("rho", "t0")
    arrived = Function("A")
    n = symbols("n")
    linear = arrived(n).replace(arrived, lambda k: before + k / rate)
    return from_proofs(
        proof(Eq(1 / (linear - linear.subs(n, n - 1)), rate)),
        computed="exact for a steady stream; in general the mean rate between two arrivals",
        reason="A definition.",
    )


@claim(
    "ldcc",
    "(22)",
    "x_recv(n) = 1/(1/x + e(n + 1) - e(n)), from (21) with t_a(n) = t_s(n) + e(n).",
    "e(n + 1) - e(n)",
    erratum=True,
)
def receiving_rate_index() -> Outcome:
    n = Symbol("n", integer=True)
    sent, delay = Function("t_s", real=True), Function("e", real=True)
    arrival = lambda k: sent(k) + delay(k)  # noqa: E731
    rate, e0, e1, e2 = symbols("x e0 e1 e2", positive=True)

    def put(f: object) -> object:
        return f.subs(sent(n), sent(n - 1) + 1 / rate).subs({delay(n - 1): e0, delay(n): e1, delay(n + 1): e2})  # type: ignore[attr-defined]

    by_definition = put(1 / (arrival(n) - arrival(n - 1)))
    printed = put(1 / (1 / rate + delay(n + 1) - delay(n)))
    shifted = put(1 / (1 / rate + delay(n) - delay(n - 1)))
    wrong, right = proof(Eq(by_definition, printed)), proof(Eq(by_definition, shifted))
    if wrong or not right:
        return from_proofs(wrong, computed="as printed")
    at = ", ".join(f"{k} = {v:.3g}" for k, v in sorted(wrong.counterexample.items()))
    return Outcome(
        DIFFERS,
        "proved with e(n) - e(n - 1)",
        f"The index is off by one: (21) at n gives 1/(1/x + e(n) - "
        f"e(n - 1)); as printed it is x_recv(n + 1), and it fails at {at}. Of no consequence "
        "later.",
        dict(wrong.counterexample),
    )


@claim("ldcc", "(23)", "Then e' = (x - x_recv)/x_recv.", "e' ~ (x - x_recv)/x_recv")
def derivative_from_rates() -> Outcome:
    rate, step = positive("x", "s")
    change = Symbol("Delta", real=True)
    received = 1 / (1 / rate + change)
    discrete = proof(Eq((rate - received) / received, change * rate))
    # Fluid: data sent in d theta arrives in (1 + e') d theta, where e' is by the time of sending.
    slope = Symbol("s", real=True)
    fluid = proof(Eq((rate - rate / (1 + slope)) / (rate / (1 + slope)), slope))
    del step
    return from_proofs(
        discrete,
        fluid,
        computed="from (22) with e' = Delta e x; in a fluid it is exact, with e' the derivative by the time of sending",
        reason="The only approximation is a difference quotient for e'.",
    )


@claim(
    "ldcc",
    "(24)",
    "With losses and no change of delay the same signal is pi/(1 - pi).",
    "(x - x_recv)/x_recv = pi/(1 - pi)",
)
def signal_of_losses() -> Outcome:
    received = x * (1 - pi)
    both = x * (1 - pi) / (1 + edot)
    return from_proofs(
        proof(Eq((x - received) / received, pi / (1 - pi)), where=[pi < 1]),
        proof(Eq((x - both) / both, MERGED), where=[pi < 1, edot > -1]),
        computed="with x_recv = x (1 - pi); with both, (e' + pi)/(1 - pi)",
        reason="The sentence after it says 'left hand side' for the right hand side.",
    )


@claim("ldcc", "(24)", "For low losses pi/(1 - pi) is a good approximation of pi.", "1 - pi ~ 1")
def loss_signal_approximation() -> Outcome:
    shown = proof(Eq(pi / (1 - pi) - pi, pi**2 / (1 - pi)), where=[pi < 1])
    net = scenarios["ldcc_fig6"].net
    merged = net
    for name in ("flow1", "flow2", "flow3"):
        merged = merged.with_flow(name, law=MergedLDCC)
    a, b = equilibrium(net, at=200.0), equilibrium(merged, at=200.0)
    loss = [float(v.loss.values[0]) for v in (a, b)]
    rate = [float(v.rate.values[0]) for v in (a, b)]
    return from_proofs(
        shown,
        computed=f"too large by pi^2/(1 - pi); Fig. 6 with three flows: {mbit(rate[0], 5)} and "
        f"{percent(loss[0], 4)} loss by (15), {mbit(rate[1], 5)} and {percent(loss[1], 4)} by (25)",
        values={"rate_15": rate[0], "rate_25": rate[1], "loss_15": loss[0], "loss_25": loss[1]},
    )


@claim(
    "ldcc",
    "(25)",
    "The discrete rule is an Euler step of (15) of length T_s, with the merged signal for e' + pi.",
    "x + T_s k x (U' - beta (e - T)/RTT - (x - x_recv)/x_recv)",
)
def discrete_rule() -> Outcome:
    sampling, k = Symbol("T_s", positive=True), eta / RTT
    signal = Symbol("m", real=True)
    printed = x + sampling * k * x * (w / x - beta * (e - T) / RTT - signal)
    step = x + sampling * FLOW.subs(edot, 0).subs(pi, signal)
    first_order = diff(MERGED, edot).subs({edot: 0, pi: 0}) == diff(MERGED, pi).subs({edot: 0, pi: 0}) == 1
    if not first_order:
        return Outcome(REFUTED, "the signal is not e' + pi to first order", "by differentiation at 0")
    return from_proofs(
        proof(Eq(unfold(printed), unfold(step)), where=[e >= T]),
        computed="for e >= T; (e' + pi)/(1 - pi) is e' + pi to first order",
    )


@claim("ldcc", "(25)", "The rule uses beta (e - T)/RTT for the penalty (17).", "no (.)^+", erratum=True)
def discrete_rule_below_threshold() -> Outcome:
    below = proof(V - ABOVE > 0, where=[e < T])
    if not below:
        return from_proofs(below, computed="")
    net = scenarios["ldcc_fig6"].net
    literal = net
    for name in ("flow1", "flow2", "flow3"):
        literal = literal.with_flow(name, law=LiteralLDCC)
    a, b = equilibrium(net, at=200.0), equilibrium(literal, at=200.0)
    loss = [float(v.loss.values[0]) for v in (a, b)]
    return Outcome(
        DIFFERS,
        f"Fig. 6 with three flows loses {percent(loss[0])} by (15) and {percent(loss[1])} by (25) as printed",
        "(25) drops the (.)^+ of (17), so below T the printed penalty is negative (proved) and the flow accelerates: "
        "the short delay pays for losses. The positive part is meant.",
        {"loss": loss[0], "literal": loss[1]},
    )


@claim("ldcc", "III-B", "With T_s = RTT the dependency on RTT disappears from T_s k.", "T_s k = constant")
def gain_of_a_round_trip() -> Outcome:
    (k,) = (v for v in FLOW.atoms(Let) if v.name == "k")
    return from_proofs(
        proof(Eq(RTT * k, eta)),
        computed="T_s k = eta, 0.4 in Section V",
        values={"eta": 0.4},
        reason="Of the gain; the penalty still contains RTT.",
    )
