"""Sections II-B and II-C of the LDCC paper: the NUM problem, penalties and prices, equations (10) to (14)."""

from __future__ import annotations

import numpy as np
from sympy import Eq, Function, diff, integrate, log

from fluidcc.equilibria import num
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail, DualLink, PenaltyLink
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import bound, mbit, ms, near, percent, positive
from fluidcc.papers.ldcc.networks import RATE, WEIGHT, QueueingDelay, parking
from fluidcc.papers.model import DIFFERS, PROVED, REFUTED, REPRODUCED, Outcome, claim, from_proofs, law_proof, proof
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import LDCC, PrimalDual, PrimalPenalty
from fluidcc.symbols import y


def _final(net: Network, until: float) -> object:
    return simulate(net, until, samples=2, progress=False).isel(time=-1)


@claim("ldcc", "(10)", "With the strictly concave utilities w log x the NUM problem has one solution.", "unique")
def num_unique() -> Outcome:
    net = parking(PrimalDual, DualLink)
    solution = num.solve(net)
    if max(solution.gap, solution.kkt) > 1e-10:
        return Outcome(DIFFERS, f"gap {solution.gap:.0e}", "the solver has not met the optimality conditions")
    # Strictly concave in each rate and a sum over rates, so strictly concave; the constraints are linear.
    U = WEIGHT * log(RATE)
    slope, curve = proof(diff(U, RATE) > 0), proof(diff(U, RATE, 2) < 0)
    return from_proofs(
        slope,
        curve,
        computed="U' > 0 > U''; on a parking lot the solver's duality gap and optimality residual are below 1e-10",
        values={"gap": abs(solution.gap), "kkt": abs(solution.kkt)},
    )


@claim(
    "ldcc",
    "II-B",
    "An exact solution violates no constraint, 'resulting in no queueing delay at the bottlenecks'.",
    "no queueing delay",
)
def no_queue_at_optimum() -> Outcome:
    net = parking(QueueingDelay, DropTail)
    eq, best = equilibrium(net), num.solve(net)
    if not near(eq.rate.values, best.rate.values, 1e-8):
        return Outcome(DIFFERS, "the equilibrium is not the optimum", "so it says nothing about queues at the optimum")
    q = eq.queueing_delay.values
    return Outcome(
        REFUTED,
        f"at the optimum of a parking lot the queues are {ms(q[0])} and {ms(q[1])}",
        "That no link is overloaded only keeps queues from growing. The paper's own (14) with nu = 1/c ends at the "
        "exact optimum with queueing delays equal to its multipliers, which are positive on every bottleneck.",
        {"q1": q[0], "q2": q[1]},
    )


@claim(
    "ldcc",
    "(11)",
    "The penalty g(y) = (y/c)^B, which is positive and increasing, turns NUM into an unconstrained concave problem.",
    "max sum U - sum int g",
)
def penalty_concave() -> Outcome:
    laws = [law_proof(PenaltyLink, label) for label in PenaltyLink.claims]
    x1, x2, v = positive("x1", "x2", "v")
    cost = integrate(PenaltyLink.out["price"].subs(y, v), (v, 0, x1 + x2))
    proofs = [*laws, proof(diff(cost, x1, 2) >= 0), proof(Eq(diff(cost, x1, 2), diff(cost, x1, x2)))]
    return from_proofs(
        *proofs, computed="for g = (y/c)^B; the Hessian of the cost of a link is g'(y) 1 1^T with g' >= 0"
    )


@claim("ldcc", "(12)", "The rate equation (12) climbs the gradient of (11).", "x' = alpha (U' - sum R g)")
def gradient_of_penalty() -> Outcome:
    U1, U2, g1, g2 = (Function(name) for name in ("U1", "U2", "g1", "g2"))
    x1, x2, s = positive("x1", "x2", "s")
    # Flow 1 crosses links 1 and 2, flow 2 link 1.
    objective = U1(x1) + U2(x2) - integrate(g1(s), (s, 0, x1 + x2)) - integrate(g2(s), (s, 0, x1))
    wanted = diff(U1(x1), x1) - g1(x1 + x2) - g2(x1)
    if (diff(objective, x1) - wanted).simplify() != 0:
        return Outcome(REFUTED, str(diff(objective, x1)), "the gradient is another")
    return Outcome(PROVED, "for any U and g, by differentiation: dJ/dx1 = U1'(x1) - g1(x1 + x2) - g2(x1)")


@claim(
    "ldcc",
    "(11), (12)",
    "Penalties solve the problem approximately: better, the closer g is to a wall at c.",
    "not given",
)
def penalty_converges() -> Outcome:
    gaps = {}
    for sharp in (8, 32, 128):
        net = parking(PrimalPenalty, PenaltyLink(B=sharp))
        best, eq = num.solve(net).rate.values, equilibrium(net).rate.values
        gaps[f"B={sharp}"] = float(np.max(np.abs(eq / best - 1)))
    net = parking(PrimalPenalty(alpha=4e7), PenaltyLink)
    end = _final(net, 120.0).rate.values  # type: ignore[attr-defined]
    settled = near(end, equilibrium(net).rate.values, 1e-4)
    text = ", ".join(f"{percent(v)} at {k}" for k, v in gaps.items())
    falling = list(gaps.values()) == sorted(gaps.values(), reverse=True)
    if not (settled and falling):
        return Outcome(
            DIFFERS, text, f"(12) {'settles' if settled else 'does not settle'} at the maximum of (11)", gaps
        )
    return Outcome(
        REPRODUCED,
        f"(12) settles at the maximum of (11); its rates are off those of NUM by {text}",
        "The paper prints no g; (y/c)^B is taken.",
        gaps,
    )


@claim(
    "ldcc",
    "(12)",
    "With g = pi, losses at equilibrium cannot be null and the bottleneck buffers are full.",
    "pi > 0, q = q_max",
)
def loss_as_price() -> Outcome:
    flows, cap = positive("N", "c")
    rate = (cap + flows * WEIGHT) / flows
    share = (flows * rate - cap) / (flows * rate)
    standing = proof(Eq(WEIGHT / rate, share))
    shown = proof(share > 0)
    net = Network().link("l", DropTail, capacity=3e6, delay=0.025, buffer=2e5)
    for k in range(3):
        net.flow(f"f{k}", LDCC(T=10.0), route=["l"])  # the delay penalty never acts: price and loss are one
    eq = equilibrium(net)
    exact = 3 * 20e3 / (3e6 + 3 * 20e3)
    values = {"loss": float(eq.loss.values[0]), "exact": exact}
    if not (eq.full.values[0] and abs(values["loss"] - exact) < 1e-12):
        return Outcome(DIFFERS, percent(values["loss"]), f"by hand {percent(exact)} with a full buffer", values)
    return from_proofs(
        standing,
        shown,
        computed=f"N flows on one link: pi = N w/(c + N w); 3 Mbit/s, N = 3: {percent(exact, 4)}, buffer full",
        values=values,
    )


@claim(
    "ldcc",
    "(13)",
    "(13) is the Lagrangian dual of (10); its conditions are U' = sum lambda and lambda (y - c) = 0.",
    "min_lambda sup_x sum U - sum lambda (y - c)",
)
def dual_conditions() -> Outcome:
    x1, x2, x3, l1, l2, c1, c2 = positive("x1", "x2", "x3", "l1", "l2", "c1", "c2")
    U = [Function(f"U{k}") for k in (1, 2, 3)]
    lagrangian = sum(u(v) for u, v in zip(U, (x1, x2, x3), strict=True)) - l1 * (x1 + x2 - c1) - l2 * (x1 + x3 - c2)
    by_rate = (diff(lagrangian, x1) - (diff(U[0](x1), x1) - l1 - l2)).expand() == 0
    by_price = (diff(lagrangian, l1) + x1 + x2 - c1).expand() == 0
    solution = num.solve(parking(PrimalDual, DualLink))
    values = {"gap": abs(solution.gap), "kkt": abs(solution.kkt)}
    if not (by_rate and by_price and max(values.values()) < 1e-10):
        return Outcome(DIFFERS, f"gap {solution.gap:.0e}", "the conditions are not those of (10)", values)
    slack = law_proof(DualLink, "(13) complementary slackness")
    return from_proofs(
        slack,
        computed="stationarity by differentiation, slackness from (14b); strong duality: gap below "
        "1e-10 on a parking lot",
        values=values,
    )


@claim("ldcc", "(14)", "The primal-dual updates (14) converge to the solution of (10) and (13).", "converges")
def primal_dual_converges() -> Outcome:
    net = parking(PrimalDual(alpha=4e7), DualLink(nu=2e-8))
    end, best = _final(net, 120.0), num.solve(net)
    rate, price = end.rate.values, end.link_price.values  # type: ignore[attr-defined]
    eager = simulate(parking(PrimalDual(alpha=4e7), DualLink(nu=2e-7)), 120.0, samples=1201, progress=False)
    values = {
        "rate": float(np.max(np.abs(rate / best.rate.values - 1))),
        "price": float(np.max(np.abs(price / best.price.values - 1))),
        "swing": float(np.max(np.abs(eager.rate.values[-100:] / best.rate.values - 1))),
    }
    worst = max(values["rate"], values["price"])
    good = worst < 1e-3
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"a run on a parking lot ends at the optimum within {bound(worst)} in rates and prices",
        "With 50 ms of delay and moderate gains. The statement is about no delay: with nu ten times as large the rates "
        f"still swing by {percent(values['swing'], 2)} after 120 s."
        if good
        else "it has not settled",
        values,
    )


@claim("ldcc", "(14b)", "With nu = 1/c the dual variables have the form of the queueing delays (2).", "lambda = q")
def price_is_delay() -> Outcome:
    form = law_proof(DualLink, "(14b) with nu = 1/c is (2)")
    net = parking(QueueingDelay, DropTail)
    eq, best = equilibrium(net), num.solve(net)
    gap = float(np.max(np.abs(eq.queueing_delay.values / best.price.values - 1)))
    if gap > 1e-8:
        return Outcome(DIFFERS, f"queueing delays and multipliers differ by {percent(gap)}", "they should be equal")
    q = ", ".join(ms(v) for v in eq.queueing_delay.values)
    return from_proofs(
        form,
        computed=f"sources that react to their queueing delay on drop-tail queues end at the optimum, with "
        f"queueing delays ({q}) equal to the multipliers",
        values={"gap": gap},
    )


@claim(
    "ldcc",
    "II-C",
    "The larger the capacity, the larger the rates and the lower the delays at equilibrium.",
    "'generally'",
)
def more_capacity_less_delay() -> Outcome:
    flows, cap = positive("N", "c")
    single = proof(diff(WEIGHT * flows / cap, cap) < 0)
    small, large = (num.solve(parking(PrimalDual, DualLink, (c1, 3e6))) for c1 in (2e6, 2.5e6))
    b, price = (
        [float(s.rate.sel(flow="b")) for s in (small, large)],
        [float(s.price.sel(link="link2")) for s in (small, large)],
    )
    values = {"b_before": b[0], "b_after": b[1], "price2_before": price[0], "price2_after": price[1]}
    if not single or not (b[1] < b[0] and price[1] > price[0]):
        return Outcome(REPRODUCED, "q = N w/c on one link falls with c; so it does on the parking lot", "", values)
    return Outcome(
        DIFFERS,
        "q = N w/c on one link falls with c (proved); link 1 of a parking lot from 2 to 2.5 Mbit/s: "
        f"flow b from {mbit(b[0])} to {mbit(b[1])}, price of link 2 up by {percent(price[1] / price[0] - 1)}",
        "True of one link, not of networks: capacity on one link lets the long flow grow, which takes rate from the "
        "flows of its other links and lengthens their queue.",
        values,
    )


@claim(
    "ldcc",
    "II-C",
    "A flow alone on a link must create some queueing delay to get all of it (self-inflicted delay).",
    "q > 0",
)
def self_inflicted() -> Outcome:
    (cap,) = positive("c")
    net = Network().link("l", DropTail, capacity=2e6, delay=0.025).flow("f", QueueingDelay, route=["l"])
    q = float(equilibrium(net).queueing_delay.values[0])
    if abs(q - 50e3 / 2e6) > 1e-12:
        return Outcome(DIFFERS, ms(q), "by hand w/c = 25 ms")
    return from_proofs(
        proof(WEIGHT / cap > 0), computed=f"q = U'(c) = w/c > 0; w = 50 kbit, c = 2 Mbit/s: {ms(q)}", values={"q": q}
    )
