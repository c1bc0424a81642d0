"""Section III of the LDCC paper: the law, its equilibrium and its discrete form, (15) to (25)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from sympy import Eq, Function, Symbol, diff, lambdify, limit, log, oo, symbols

from fluidcc.base.errors import NoEquilibrium
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Source
from fluidcc.metrics import jain
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import (
    E_HAT,
    FAIR_DELAYS,
    W_OVER_BETA,
    T,
    alone,
    at_time,
    beta,
    delay_by_19,
    eta,
    four_flows,
    near,
    positive,
    w,
    with_law,
    x,
)
from fluidcc.papers.model import (
    Outcome,
    claim,
    differs_if,
    from_proofs,
    law_proof,
    proof,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import at_values, kbit, mbit, ms, percent
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC
from fluidcc.sources.sampled import merged
from fluidcc.symbols import RTT, Let, e, e_b, edot, pi, unfold

if TYPE_CHECKING:
    import xarray as xr

(FLOW,) = LDCC.flow.values()
GAIN, PENALTY = (next(v for v in FLOW.atoms(Let) if v.name == name) for name in ("k", "v"))
V = unfold(PENALTY)  # (17)
ABOVE = beta * (e - T) / (e + e_b)  # v where e > T
U = w * log(x)


def _with_penalty(penalty: Let) -> Source:
    """Return LDCC with another penalty."""
    return replace(LDCC, claims={}, flow={x: FLOW.xreplace({PENALTY: penalty})})


@claim("(15)", "x' = k x (U' - v - e' - pi)^+_x")
def rate_equation() -> Outcome:
    """The rate follows x' = k x (U'(x) - v(e) - e' - pi), kept from becoming negative."""
    at_zero = unfold(GAIN) * limit(x * (diff(U, x) - V - edot - pi), x, 0, "+")
    return from_proofs(
        proof(Eq(FLOW, GAIN * x * (w / x - beta * (e - T) / RTT - edot - pi)), where=[e > T]),
        at_zero > 0,
        computed="the law of the library; and x' tends to k w > 0 as x tends to 0",
        reason="So the projection never acts with the utility (16): the rate stays positive by "
        "itself.",
    )


@claim("III-A", "same equilibrium")
def derivative_term() -> Outcome:
    """The term e' does not change the equilibrium, where the derivative is zero."""
    without = unfold(FLOW).subs(edot, 0)
    return from_proofs(
        Eq(unfold(FLOW), without - unfold(FLOW).diff(edot).subs(edot, 0) * -edot),
        computed="e' enters linearly and alone: with e' = 0 the equation is that without the term",
    )


@claim("(16)", "U = w log x")
def utility() -> Outcome:
    """The utility w log x is increasing and strictly concave."""
    return from_proofs(
        diff(U, x) > 0,
        diff(U, x, 2) < 0,
        computed="U' = w/x > 0, U'' = -w/x^2 < 0",
        checks=LDCC.utility == U,
    )


@claim("(17)", "v = beta ((e - T)/RTT)^+")
def penalty() -> Outcome:
    """The penalty is 0 up to the threshold T, and beta (e - T)/RTT above."""
    return from_proofs(
        proof(Eq(V, 0), where=[e <= T]),
        proof(Eq(V, ABOVE), where=[e > T]),
        V >= 0,
        computed="on either side of T, continuous at T",
    )


@claim("(17)", "not linear")
def penalty_shape() -> Outcome:
    """The penalty is a non-decreasing, non-linear function of the delay."""
    slope = diff(ABOVE, e)
    return from_proofs(
        Eq(slope, beta * (T + e_b) / (e + e_b) ** 2),
        slope > 0,
        diff(ABOVE, e, 2) < 0,
        computed="above T: v' = beta (T + e_b)/(e + e_b)^2 > 0 > v''",
        reason="Increasing and concave above T, so its slope is largest at T: beta/(T + e_b).",
    )


@claim("Fig. 2", "v -> beta")
def saturation() -> Outcome:
    """The penalty saturates to beta for large delays."""
    return from_proofs(
        beta > V,
        computed="v < beta always, and v tends to beta",
        checks=limit(ABOVE, e, oo) == beta,
    )


@claim("Fig. 2", "curves; values not printed")
def penalty_curves() -> Outcome:
    """Curves of the penalty for several propagation delays p, with e_b = p."""
    v = lambdify((e, e_b, T, beta), V, "numpy")
    delays, grid = (0.025, 0.05, 0.1), np.array([0.15, 0.3, 1.0, 10.0])
    curves = {p: v(grid, p, 0.1, 0.1) for p in delays}
    ordered = all(np.all(curves[a] > curves[b]) for a, b in pairwise(delays))
    p1, gap = positive("p1", "d")
    lower = proof(ABOVE.subs(e_b, p1) - ABOVE.subs(e_b, p1 + gap) > 0, where=[e > T])
    shown = ", ".join(f"{curves[p][1]:.4f}" for p in delays)
    values = {
        f"{ms(at)}, p = {ms(p)}": v for p in delays for at, v in zip(grid, curves[p], strict=True)
    }
    return reproduced_if(
        ordered and lower,
        f"at e = 300 ms, p = 25, 50, 100 ms: v = {shown}; longer p, lower v (proved)",
        "The values of p and the scales of the figure are lost; drawn in ldcc_fig2.png.",
        values,
    )


@claim("(18)", "e = RTT w/(beta x) + T")
def equilibrium_delay() -> Outcome:
    """Without losses the delay at equilibrium is RTT U'/beta + T = RTT w/(beta x) + T."""
    slope = Symbol("U'", positive=True)  # of any utility
    return from_proofs(
        law_proof(LDCC, "(18)"),
        proof(Eq(slope - ABOVE, 0), where=[Eq(e, RTT.definition * slope / beta + T)]),
        computed="from x' = 0 in (15); with U' for w/x for any utility",
    )


@claim("(18), footnote 1", "any utility")
def other_utilities() -> Outcome:
    """It holds for any increasing concave utility, and different ones."""
    a = Symbol("a", positive=True)
    U_fair = w * x ** (1 - a) * (5 * w) ** (a - 1) / (1 - a)
    fair = LDCC.with_utility(U_fair, params={a: 2}, units={a: "1"})
    eq = equilibrium(alone(LDCC, fair))
    rate, delay = eq.rate.values, eq.one_way_delay.values
    slopes = np.array([20e3 / rate[0], 20e3 / rate[1] ** 2 * 100e3])
    error = np.max(np.abs(eq.rtt.values * slopes / 0.1 + 0.1 - delay))
    return reproduced_if(
        error < 1e-9,
        f"U = w log x and U = -5 w^2/x on one link: {rate[0] / 1e6:.4g} and {rate[1] / 1e6:.4g} "
        "Mbit/s, both meet (18) with their own U'",
        values={"error": error},
    )


@claim("(19)", "e = (e_b r + T)/(1 - r)")
def equilibrium_delay_solved() -> Outcome:
    """With RTT = e + e_b the delay at equilibrium is (e_b r + T)/(1 - r), r = w/(beta x)."""
    late = at_time("ldcc_fig5", 259.0)
    by_formula = float(delay_by_19(late.rate[:3].mean(), 0.025))
    by_run = late.one_way_delay.values[0]
    values = {"formula": by_formula, "run": by_run}
    return from_proofs(
        law_proof(LDCC, "(19)"),
        computed=f"from (18) and (9); Fig. 5 with three flows: {ms(by_formula, 5)}, in the run "
        f"{ms(by_run, 5)}",
        values=values,
        checks=abs(by_run / by_formula - 1) <= 2e-3,
    )


@claim("(19)", "e -> T")
def larger_rate() -> Outcome:
    """The larger the rate at equilibrium, the closer the delay is to T."""
    excess = Symbol("d", positive=True)
    return from_proofs(
        diff(E_HAT, x).subs(x, w / beta + excess) < 0,
        computed="e falls as x grows above w/beta, and tends to T",
        checks=limit(E_HAT, x, oo) == T,
    )


@claim("(20)", "x > w/beta")
def rate_floor() -> Outcome:
    """The rate at an equilibrium without losses exceeds w/beta."""
    return from_proofs(
        law_proof(LDCC, "(20)"),
        computed=f"where x' = 0 and pi = 0; at the values of Section V {kbit(W_OVER_BETA)}",
        values={"floor": W_OVER_BETA},
    )


@claim("(20)", "loss-driven")
def below_floor() -> Outcome:
    """Where (20) cannot hold, queues grow to the end of the buffer and losses take over."""
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
    return reproduced_if(
        none and bool(eq.full.values[0]) and settled,
        f"six flows on {shared / 1e6:g} Mbit/s: no equilibrium with an endless buffer; with 0.5 s "
        f"of buffer it is full, loses {percent(values['loss'])}, and the run ends there",
        values=values,
    )


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


@claim("III-A", "x >= w/beta")
def penalty_cannot_starve() -> Outcome:
    """The penalty alone never lets the rate fall below w/beta."""
    held = FLOW.subs({edot: 0, pi: 0})
    shortfall = Symbol("s", nonnegative=True)
    grows = unfold(held).subs(w, beta * (x + shortfall)) > 0  # w/beta = x + s >= x
    return from_proofs(
        grows, computed="without losses and with e' = 0, x' > 0 wherever x <= w/beta"
    )


@claim("III-A", "x >= w/beta = 200 kbit/s")
def delay_cannot_starve() -> Outcome:
    """'The experienced delay can never force the sending rate to decrease to a value lower than
    w/beta.'"""
    r = burst()
    rate = r.rate.sel(flow="ldcc")
    before, low = float(rate.sel(time=39.0, method="nearest")), float(rate.min())
    return refuted_if(
        low <= W_OVER_BETA and float(r.lost.max()) <= 0,
        f"from {kbit(before)}, a burst of 3 c for 2 s on an endless buffer brings it to "
        f"{kbit(low)} with no loss",
        "The argument by (20) is about equilibria, and holds of v (see the row above). But e' is "
        "part of the delay's signal and is not bounded by beta: while queues grow, x is drawn to "
        "w/(v + e').",
        {"before": before, "low": low},
    )


@claim("III-A", "similar rates")
def similar_penalties() -> Outcome:
    """For large delays (low capacity) flows of different propagation delay have similar
    penalties."""
    p1, p2, q = positive("p1", "p2", "q")
    ratio = limit(ABOVE.subs({e: p1 + q, e_b: p1}) / ABOVE.subs({e: p2 + q, e_b: p2}), q, oo)
    spread = {}
    for c in (0.9e6, 6e6):
        net = four_flows(FAIR_DELAYS["25, 25, 25, 75 ms"], c, longest_queue=None)
        rates = equilibrium(net).rate.values
        spread[f"{c / 1e6:g}"] = float(rates.max() / rates.min())
    return reproduced_if(
        ratio == 1 and spread["0.9"] < spread["6"],
        "the ratio of two penalties tends to 1 (SymPy's limit); fastest over slowest of 25, 25, "
        "25, 75 ms: " + ", ".join(f"{v:.4g} at {c} Mbit/s" for c, v in spread.items()),
        "With an endless buffer.",
        spread,
    )


@claim("III-A", "'motivated by rate fairness'")
def normalisation() -> Outcome:
    """At one queue, dividing the penalty by RTT brings flows of different propagation delays
    nearer to each other."""
    shorter, more, q = positive("p", "d", "q")
    excess = Symbol("h", positive=True)  # h = p + q - T > 0: the delay of the short flow above T
    linear = (excess + more) / excess  # x1/x2 where v = beta (e - T)/constant
    divided = linear * (2 * shorter + q) / (2 * (shorter + more) + q)
    bare = _with_penalty(Let("v", PENALTY.definition * RTT / (2 * T)))
    index = {}
    for name, law in (("divided by RTT", LDCC), ("divided by 2 T", bare)):
        net = four_flows(FAIR_DELAYS["25, 40, 60, 75 ms"], 6e6, source=law)
        index[name] = float(jain(equilibrium(net).rate))
    return from_proofs(
        linear - divided > 0,
        computed="at one queue the short flow's advantage is smaller by (2 p1 + q)/(2 p2 + q); 25, "
        "40, 60, 75 ms at 6 Mbit/s: Jain's index "
        + ", ".join(f"{v:.4g} {k}" for k, v in index.items()),
        values=index,
    )


@claim("III-A", "e_max < T")
def only_losses() -> Outcome:
    """If the longest delay is below T, the penalty is always zero and losses alone drive the
    flow."""
    eq = equilibrium(scenarios["ldcc_fig6"].net)
    rate, delay, loss = (a.values[0] for a in (eq.rate, eq.one_way_delay, eq.loss))
    # With v = 0, w/x = pi and two flows: pi = (2 x + u - c)/(2 x + u), a quadratic in x.
    a, b, c0 = 2.0, 0.5e6 - 3.5e6 - 2 * 20e3, -20e3 * 0.5e6
    exact = (-b + (b * b - 4 * a * c0) ** 0.5) / (2 * a)
    return reproduced_if(
        delay < 0.1 and abs(rate / exact - 1) < 1e-9,
        f"Fig. 6: e = {ms(delay)} < T, w/x = pi = {percent(loss, 4)}, two flows at "
        f"{rate / 1e6:.4f} Mbit/s",
        values={"rate": rate, "exact": exact, "delay": delay},
    )


# --- III-B: interarrival times and the discrete law, (21) to (25)

MERGED = merged.definition  # (x - x_recv)/x_recv with x_recv = x (1 - pi)/(1 + e')
LITERAL = Let("v", beta * (e - T) / RTT)  # (25) has no (.)^+

MergedLDCC = replace(LDCC, claims={}, flow={x: FLOW.xreplace({pi: MERGED - edot})})
"""(15) with the one signal that (25) measures in place of e' + pi."""
LiteralLDCC = _with_penalty(LITERAL)
"""(15) with the penalty as (25) prints it, negative below T."""


@claim("(21)", "x_recv(n) = 1/(t_a(n) - t_a(n-1))")
def receiving_rate() -> Outcome:
    """The receiving rate in packets a second is one over the interarrival time."""
    # The n-th packet arrives when the cumulative arrivals reach n; between n - 1 and n their mean
    # rate is this.
    rate, before = positive("rho", "t0")
    arrived = Function("A")
    n = symbols("n")
    linear = arrived(n).replace(arrived, lambda k: before + k / rate)
    return from_proofs(
        Eq(1 / (linear - linear.subs(n, n - 1)), rate),
        computed="exact for a steady stream; in general the mean rate between two arrivals",
        reason="A definition.",
    )


@claim("(22)", "e(n + 1) - e(n)", erratum=True)
def receiving_rate_index() -> Outcome:
    """x_recv(n) = 1/(1/x + e(n + 1) - e(n)), from (21) with t_a(n) = t_s(n) + e(n)."""
    n = Symbol("n", integer=True)
    sent, delay = Function("t_s", real=True), Function("e", real=True)
    rate, e0, e1, e2 = symbols("x e0 e1 e2", positive=True)
    arrival = [sent(k) + delay(k) for k in (n - 1, n)]
    measured = 1 / (arrival[1] - arrival[0]).subs(sent(n), sent(n - 1) + 1 / rate)
    by_definition = measured.subs({delay(n - 1): e0, delay(n): e1})
    wrong = proof(Eq(by_definition, 1 / (1 / rate + e2 - e1)))
    right = proof(Eq(by_definition, 1 / (1 / rate + e1 - e0)))
    return differs_if(
        right and not wrong,
        "proved with e(n) - e(n - 1)",
        "The index is off by one: (21) at n gives 1/(1/x + e(n) - e(n - 1)); as printed it is "
        f"x_recv(n + 1), and it fails at {at_values(wrong.counterexample)}. Of no consequence "
        "later.",
        dict(wrong.counterexample),
    )


@claim("(23)", "e' ~ (x - x_recv)/x_recv")
def derivative_from_rates() -> Outcome:
    """Then e' = (x - x_recv)/x_recv."""
    (rate,) = positive("x")
    change = Symbol("Delta", real=True)
    received = 1 / (1 / rate + change)
    # Fluid: data sent in d theta arrives in (1 + e') d theta, where e' is by the time of sending.
    slope = Symbol("s", real=True)
    return from_proofs(
        Eq((rate - received) / received, change * rate),
        Eq((rate - rate / (1 + slope)) / (rate / (1 + slope)), slope),
        computed="from (22) with e' = Delta e x; in a fluid it is exact, with e' the derivative by "
        "the time of sending",
        reason="The only approximation is a difference quotient for e'.",
    )


@claim("(24)", "(x - x_recv)/x_recv = pi/(1 - pi)")
def signal_of_losses() -> Outcome:
    """With losses and no change of delay the same signal is pi/(1 - pi)."""
    received = x * (1 - pi)
    both = x * (1 - pi) / (1 + edot)
    return from_proofs(
        proof(Eq((x - received) / received, pi / (1 - pi)), where=[pi < 1]),
        proof(Eq((x - both) / both, MERGED), where=[pi < 1, edot > -1]),
        computed="with x_recv = x (1 - pi); with both, (e' + pi)/(1 - pi)",
        reason="The sentence after it says 'left hand side' for the right hand side.",
    )


@claim("(24)", "1 - pi ~ 1")
def loss_signal_approximation() -> Outcome:
    """For low losses pi/(1 - pi) is a good approximation of pi."""
    net = scenarios["ldcc_fig6"].net
    a, b = (equilibrium(n, at=200.0) for n in (net, with_law(net, MergedLDCC)))
    loss = [v.loss.values[0] for v in (a, b)]
    rate = [v.rate.values[0] for v in (a, b)]
    return from_proofs(
        proof(Eq(pi / (1 - pi) - pi, pi**2 / (1 - pi)), where=[pi < 1]),
        computed=f"too large by pi^2/(1 - pi); Fig. 6 with three flows: {mbit(rate[0], 5)} and "
        f"{percent(loss[0], 4)} loss by (15), {mbit(rate[1], 5)} and "
        f"{percent(loss[1], 4)} by (25)",
        values={"rate_15": rate[0], "rate_25": rate[1], "loss_15": loss[0], "loss_25": loss[1]},
    )


@claim("(25)", "x + T_s k x (U' - beta (e - T)/RTT - (x - x_recv)/x_recv)")
def discrete_rule() -> Outcome:
    """The discrete rule is an Euler step of (15) of length T_s, with the merged signal for e' +
    pi."""
    sampling, k = Symbol("T_s", positive=True), eta / RTT
    signal = Symbol("m", real=True)
    printed = x + sampling * k * x * (w / x - beta * (e - T) / RTT - signal)
    step = x + sampling * FLOW.subs(edot, 0).subs(pi, signal)
    first_order = (
        diff(MERGED, edot).subs({edot: 0, pi: 0}) == diff(MERGED, pi).subs({edot: 0, pi: 0}) == 1
    )
    return from_proofs(
        proof(Eq(unfold(printed), unfold(step)), where=[e >= T]),
        computed="for e >= T; (e' + pi)/(1 - pi) is e' + pi to first order",
        checks=first_order,
    )


@claim("(25)", "no (.)^+", erratum=True)
def discrete_rule_below_threshold() -> Outcome:
    """The rule uses beta (e - T)/RTT for the penalty (17)."""
    below = proof(V - ABOVE > 0, where=[e < T])
    net = scenarios["ldcc_fig6"].net
    a, b = (equilibrium(n, at=200.0) for n in (net, with_law(net, LiteralLDCC)))
    loss = [v.loss.values[0] for v in (a, b)]
    return differs_if(
        below,
        f"Fig. 6 with three flows loses {percent(loss[0])} by (15) and {percent(loss[1])} by (25) "
        "as printed",
        "(25) drops the (.)^+ of (17), so below T the printed penalty is negative (proved) and the "
        "flow accelerates: the short delay pays for losses. The positive part is meant.",
        {"loss": loss[0], "literal": loss[1]},
    )


@claim("III-B", "T_s k = constant")
def gain_of_a_round_trip() -> Outcome:
    """With T_s = RTT the dependency on RTT disappears from T_s k."""
    return from_proofs(
        Eq(RTT * GAIN, eta),
        computed="T_s k = eta, 0.4 in Section V",
        values={"eta": 0.4},
        reason="Of the gain; the penalty still contains RTT.",
    )
