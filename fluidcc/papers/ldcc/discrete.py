"""Section III-B of the LDCC paper: interarrival times and the discrete law, equations (21) to (25)."""

from __future__ import annotations

from dataclasses import replace

from sympy import Eq, Function, Symbol, diff, symbols

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import T, beta, eta, mbit, percent, positive, w, x
from fluidcc.papers.ldcc.law import ABOVE, FLOW, V
from fluidcc.papers.model import DIFFERS, REFUTED, Outcome, claim, from_proofs, proof
from fluidcc.sources import LDCC
from fluidcc.sources.sampled import merged
from fluidcc.symbols import RTT, Let, e, edot, pi, unfold

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
