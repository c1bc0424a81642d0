"""Section II of the LDCC paper: the network, the NUM problem, and known controls, (1) to (14)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Eq, Function, Symbol, diff, integrate, log

from fluidcc.equilibria import num
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail, DualLink, PenaltyLink
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import (
    RATE,
    W_OVER_BETA,
    WEIGHT,
    QueueingDelay,
    alone,
    at_time,
    equilibrium_of,
    near,
    parking,
    positive,
    run,
    series,
)
from fluidcc.papers.model import (
    Outcome,
    claim,
    differs_if,
    from_proofs,
    law_proof,
    proof,
    proved_if,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import bound, kbit, mbit, ms, off, percent
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC, PrimalDual, PrimalPenalty, Reno
from fluidcc.symbols import RTT, c, e, e_b, packet, pi, unfold, x_tau, y

(LOSS,) = DropTail.out.values()


@claim("(1)", "y_l = sum R_lr x_r")
def link_rates() -> Outcome:
    """The rate of a link is the sum of the rates of the users on it: y = R x."""
    net = scenarios["ldcc_fig10"].net
    late = at_time("ldcc_fig10", 255.0)
    gap = off(net.routing_matrix() @ late.rate.values, late.arrival_rate.values)
    short, mixed = equilibrium_of("ldcc_fig11"), scenarios["ldcc_fig11"].net
    excess = (mixed.routing_matrix() @ short.rate.values / short.arrival_rate.values - 1)[1]
    return differs_if(
        abs(excess) > 1e-9,
        f"Fig. 10 at 255 s: R x = y within {bound(gap)}; Fig. 11: R x exceeds y on link 2 by "
        f"{percent(excess)}",
        "It holds where nothing is lost upstream. In Fig. 11 link 1 loses "
        f"{percent(short.loss.values[1])}, which never reaches link 2; the library sends on "
        "what a link has admitted.",
        {"fig10": gap, "fig11": excess},
    )


@claim("(2)", "q' = (y - c)^+ / c")
def queue_growth() -> Outcome:
    """The queueing delay grows by (y - c)/c a second while y > c, and is zero when the buffer is
    empty."""
    times = [0.5, 1.0, 2.0, 2.9, 3.5]
    burst = {"law": CBR(rate=1e6), "stop": 1.0}
    net = dumbbell([CBR(rate=0.5e6), burst], {"capacity": 1e6, "delay": 0.01})
    q = simulate(net, 4.0, t_eval=times).queueing_delay.values[:, 0]
    error = np.max(np.abs(q - [0.25, 0.5, 0.0, 0.0, 0.0]))
    return reproduced_if(
        error < 1e-9,
        f"1.5 c for 1 s, then 0.5 c: q = {ms(q[0])} at 0.5 s, {ms(q[1])} at 1 s, empty from 2 s "
        f"on; exact within {bound(error)}",
        values={"error": error},
    )


@claim("II-A", "leaves at t + q(t)")
def fifo_delay() -> Outcome:
    """A packet that arrives at time t takes q(t) before it is sent over the link."""
    s, times = scenarios["ldcc_fig5"], np.array([5.0, 20.0, 101.0, 105.0, 262.0])
    q = simulate(s.net, 300.0, t_eval=times).queueing_delay.values[:, 0]
    both = np.unique(np.concatenate([times, times + q]))
    r = simulate(s.net, 300.0, t_eval=both)
    arrived = r.entered.values[:, 0]
    left = arrived - r.lost.values[:, 0] - r.backlog.values[:, 0]
    a, d = np.interp(times, both, arrived), np.interp(times + q, both, left)
    error = float(np.max(np.abs(a - d)) / np.max(a))
    return reproduced_if(
        error < 1e-6,
        f"in Fig. 5, bits arrived by t = bits sent by t + q(t), within {bound(error)}",
        values={"error": error},
    )


@claim("(3)", "e = sum R (p + q)")
def one_way_delay() -> Outcome:
    """The one-way delay is the sum of propagation and queueing delays on the path."""
    net = scenarios["ldcc_fig10"].net
    eq = equilibrium_of("ldcc_fig10")
    p = np.array([link.delay for link in net.links.values()])
    e_sum = net.routing_matrix().T @ (p + eq.queueing_delay.values)
    late = at_time("ldcc_fig10", 255.0).one_way_delay.values
    error = off(e_sum, late)
    return reproduced_if(
        error < 1e-3,
        f"Fig. 10 with three flows: e = {', '.join(ms(v) for v in e_sum[:3])}; the run has reached "
        f"it within {bound(error)}",
        values={"error": error},
    )


@claim("(4)", "pi = (y - c)^+ / y")
def loss_ratio() -> Outcome:
    """The loss ratio of a full buffer is (y - c)/y."""
    r = run("ldcc_fig6")
    arrival, lost = r.arrival_rate.values[:, 0], r.link_loss.values[:, 0]
    full = lost > 0
    printed = 1 - 3.5e6 / arrival[full]
    return from_proofs(
        Eq(y * (1 - LOSS), c),
        computed=f"what is admitted, y (1 - pi), is c; in Fig. 6 every one of {full.sum()} samples "
        "with losses has this ratio",
        values={"samples": full.sum()},
        checks=near(lost[full], printed, 1e-9),
    )


@claim("(5)", "pi_r = 1 - prod (1 - pi_l)")
def path_loss() -> Outcome:
    """Over links that lose independently, a path loses 1 - prod (1 - pi_l) over its links."""
    eq = equilibrium_of("ldcc_fig11")
    one, two, three = (float(v) for v in eq.loss.values[[0, 1, 2]])
    p1, p2, sent = positive("p1", "p2", "x")
    admitted = sent * (1 - p1)  # by link 1, and of that link 2 loses p2
    return from_proofs(
        Eq((sent * p1 + admitted * p2) / sent, 1 - (1 - p1) * (1 - p2)),
        computed=f"Fig. 11: {percent(two)} and {percent(three)} on the links make "
        f"{percent(one, 4)} on the path",
        values={"path": one, "link1": two, "link2": three},
        checks=abs(one - (1 - (1 - two) * (1 - three))) <= 1e-12,
    )


@claim("(6)", "pi_r ~ sum pi_l")
def loss_sum() -> Outcome:
    """For small losses the path loses about the sum of its links' loss ratios."""
    # With S the sum and D = S - (1 - prod) over the links so far, a further link makes S + p and D
    # + p (S - D).
    S, D, p, d = (Symbol(name, nonnegative=True) for name in ("S", "D", "p", "d"))
    more = D + p * (S - D)
    above = more.subs(S, D + d) >= 0  # given 0 <= D <= S
    below = d + p**2 / 2 + p * D >= 0  # given d = S^2/2 - D >= 0
    eq = equilibrium_of("ldcc_fig11")
    path, total = eq.loss.values[0], eq.loss.values[1] + eq.loss.values[2]
    return from_proofs(
        above,
        Eq((S + p) ** 2 / 2 - more, (S**2 / 2 - D) + p**2 / 2 + p * D),
        below,
        computed="0 <= sum - pi_r <= sum^2/2 for any number of links, by induction; Fig. 11: "
        f"{percent(total, 4)} for {percent(path, 4)}",
        values={"path": path, "sum": total},
    )


@claim("(7)", "RTT = tau_f + tau_b")
def split_of_rtt() -> Outcome:
    """Forward delay to a link plus delay from it back is the round-trip time, whichever link it
    is."""
    before, after = positive("a", "d")  # up to the link, and from it to the receiver
    back = Symbol("e_b", nonnegative=True)
    return from_proofs(
        Eq(before + (after + back), (before + after) + back),
        computed="for any link of any path, by e = its part up to the link and the rest, and RTT = "
        "e + e_b",
        reason="With moving queues it holds along the way of one piece of data: each delay is "
        "taken at the time it is met.",
    )


@claim("(8)", "y_l(t) = sum R_lr x_r(t - tau_f)", erratum=True)
def delayed_rates() -> Outcome:
    """The rate at a link is the sum of the sending rates a forward delay earlier."""
    # A queue empty at 0 and fed x > c has q = (x - c)/c theta; data sent at theta leave it at theta
    # + q(theta).
    cap, rate, theta = positive("c", "x", "theta")
    leaves = theta + (rate - cap) / cap * theta
    fifo = proof(Eq(rate / diff(leaves, theta), cap))
    net = series(2e6, 2.5e6, 3e6)
    into, made = {}, {}
    for mode in ("fifo", "frozen"):
        last = simulate(net, 10.0, samples=3, delays=mode).isel(time=-1)
        into[mode] = last.arrival_rate.values[1]
        made[mode] = float((last.entered[1] + last.backlog[0] - last.entered[0]).item())
    return refuted_if(
        fifo,
        f"3 Mbit/s through 2 then 2.5 Mbit/s: link 2 gets {mbit(into['frozen'])} by (8), "
        f"{mbit(into['fifo'])} in order of arrival",
        "(8) does not conserve flow where a queue upstream moves: after 10 s it has made "
        f"{made['frozen'] / 1e6:.3g} Mbit from nothing. Data sent at x reach the next link at x/(1 "
        "+ q') (proved; 1 - tau_f' by the time of arrival), which is c behind a busy queue. "
        "delays='fifo' has this factor; delays='frozen' is (8) as printed.",
        {**into, "made": made["frozen"], "made_fifo": made["fifo"]},
    )


@claim("(8), (31)", "no factor 1 - tau_f'", erratum=True)
def frozen_against_fifo() -> Outcome:
    """(8) and (31) hold while the queues upstream move."""
    fifo, frozen = run("ldcc_fig10"), run("ldcc_fig10", "frozen")
    gap = np.abs(fifo.rate.values - frozen.rate.values)[:, :3]
    worst, end = np.max(gap), np.max(gap[-1])
    when = fifo.time.values[np.argmax(np.max(gap, axis=1))]
    return differs_if(
        worst > 1e-6 * float(fifo.rate.max()),
        f"Fig. 10: rates differ by up to {kbit(worst, 3)} (at {when:.4g} s), by {kbit(end, 1)} at "
        "the end",
        "With delays='frozen' for (8) and (31). The equilibrium is the same, the transients are "
        "not. The constant delays are those of the equilibrium with three flows.",
        {"worst": worst, "end": end, "when": when},
    )


@claim("(9)", "RTT = e + e_b")
def round_trip() -> Outcome:
    """The round-trip time is the one-way delay plus a backward delay that does not depend on the
    rate."""
    r, net = run("ldcc_fig10"), scenarios["ldcc_fig10"].net
    back = np.array([net.return_delay(f) for f in net.flow_names])
    gap = np.max(np.abs(r.rtt.values - r.one_way_delay.values - back))
    return reproduced_if(
        gap <= 1e-12 and proof(Eq(RTT, e + e_b)),
        f"throughout the run of Fig. 10, with e_b = {', '.join(ms(b) for b in back[:3])}",
        "A definition. Where the paper gives no e_b it is the forward propagation delay.",
        {"gap": gap},
    )


# --- II-B and II-C: the NUM problem, penalties and prices, (10) to (14)


def _final(net: Network, until: float) -> Any:
    """Return the last sample of a run."""
    return simulate(net, until, samples=2).isel(time=-1)


@claim("(10)", "unique")
def num_unique() -> Outcome:
    """With the strictly concave utilities w log x the NUM problem has one solution."""
    net = parking(PrimalDual, DualLink)
    solution = num.solve(net)
    # Strictly concave in each rate and a sum over rates, so strictly concave; the constraints are
    # linear.
    U = WEIGHT * log(RATE)
    return from_proofs(
        diff(U, RATE) > 0,
        diff(U, RATE, 2) < 0,
        checks=max(solution.gap, solution.kkt) <= 1e-10,
        computed="U' > 0 > U''; on a parking lot the solver's duality gap and optimality residual "
        "are below 1e-10",
        values={"gap": abs(solution.gap), "kkt": abs(solution.kkt)},
    )


@claim("II-B", "no queueing delay")
def no_queue_at_optimum() -> Outcome:
    """An exact solution violates no constraint, 'resulting in no queueing delay at the
    bottlenecks'."""
    net = parking(QueueingDelay, DropTail)
    eq, best = equilibrium(net), num.solve(net)
    q = eq.queueing_delay.values
    return refuted_if(
        near(eq.rate.values, best.rate.values, 1e-8),
        f"at the optimum of a parking lot the queues are {ms(q[0])} and {ms(q[1])}",
        "That no link is overloaded only keeps queues from growing. The paper's own (14) with nu = "
        "1/c ends at the exact optimum with queueing delays equal to its multipliers, which are "
        "positive on every bottleneck.",
        {"q1": q[0], "q2": q[1]},
    )


@claim("(11)", "max sum U - sum int g")
def penalty_concave() -> Outcome:
    """The penalty g(y) = (y/c)^B, which is positive and increasing, turns NUM into an
    unconstrained concave problem."""
    laws = [law_proof(PenaltyLink, label) for label in PenaltyLink.claims]
    x1, x2, v = positive("x1", "x2", "v")
    cost = integrate(PenaltyLink.out["price"].subs(y, v), (v, 0, x1 + x2))
    return from_proofs(
        *laws,
        diff(cost, x1, 2) >= 0,
        Eq(diff(cost, x1, 2), diff(cost, x1, x2)),
        computed="for g = (y/c)^B; the Hessian of the cost of a link is g'(y) 1 1^T with g' >= 0",
    )


@claim("(12)", "x' = alpha (U' - sum R g)")
def gradient_of_penalty() -> Outcome:
    """The rate equation (12) climbs the gradient of (11)."""
    U1, U2, g1, g2 = (Function(name) for name in ("U1", "U2", "g1", "g2"))
    x1, x2, s = positive("x1", "x2", "s")
    # Flow 1 crosses links 1 and 2, flow 2 link 1.
    objective = U1(x1) + U2(x2) - integrate(g1(s), (s, 0, x1 + x2)) - integrate(g2(s), (s, 0, x1))
    wanted = diff(U1(x1), x1) - g1(x1 + x2) - g2(x1)
    return proved_if(
        (diff(objective, x1) - wanted).simplify() == 0,
        "for any U and g, by differentiation: dJ/dx1 = U1'(x1) - g1(x1 + x2) - g2(x1)",
    )


@claim("(11), (12)", "not given")
def penalty_converges() -> Outcome:
    """Penalties solve the problem approximately: better, the closer g is to a wall at c."""
    gaps = {}
    for sharp in (8, 32, 128):
        net = parking(PrimalPenalty, PenaltyLink(B=sharp))
        best, eq = num.solve(net).rate.values, equilibrium(net).rate.values
        gaps[f"B={sharp}"] = off(eq, best)
    net = parking(PrimalPenalty(alpha=4e7), PenaltyLink)
    end = _final(net, 120.0).rate.values
    settled = near(end, equilibrium(net).rate.values, 1e-4)
    text = ", ".join(f"{percent(v)} at {k}" for k, v in gaps.items())
    falling = list(gaps.values()) == sorted(gaps.values(), reverse=True)
    return reproduced_if(
        settled and falling,
        f"(12) settles at the maximum of (11); its rates are off those of NUM by {text}",
        "The paper prints no g; (y/c)^B is taken.",
        gaps,
    )


@claim("(12)", "pi > 0, q = q_max")
def loss_as_price() -> Outcome:
    """With g = pi, losses at equilibrium cannot be null and the bottleneck buffers are full."""
    flows, cap = positive("N", "c")
    rate = (cap + flows * WEIGHT) / flows
    share = (flows * rate - cap) / (flows * rate)
    # the delay penalty never acts: price and loss are one
    eq = equilibrium(alone(*[LDCC(T=10.0)] * 3, buffer=2e5))
    exact = 3 * 20e3 / (3e6 + 3 * 20e3)
    values = {"loss": eq.loss.values[0], "exact": exact}
    return from_proofs(
        Eq(WEIGHT / rate, share),
        share > 0,
        computed=f"N flows on one link: pi = N w/(c + N w); 3 Mbit/s, N = 3: {percent(exact, 4)}, "
        "buffer full",
        values=values,
        checks=eq.full.values[0] and abs(values["loss"] - exact) < 1e-12,
    )


@claim("(13)", "min_lambda sup_x sum U - sum lambda (y - c)")
def dual_conditions() -> Outcome:
    """(13) is the Lagrangian dual of (10); its conditions are U' = sum lambda and lambda (y - c) =
    0."""
    x1, x2, x3, l1, l2, c1, c2 = positive("x1", "x2", "x3", "l1", "l2", "c1", "c2")
    U = [Function(f"U{k}") for k in (1, 2, 3)]
    utility = sum(u(v) for u, v in zip(U, (x1, x2, x3), strict=True))
    lagrangian = utility - l1 * (x1 + x2 - c1) - l2 * (x1 + x3 - c2)
    by_rate = (diff(lagrangian, x1) - (diff(U[0](x1), x1) - l1 - l2)).expand() == 0
    by_price = (diff(lagrangian, l1) + x1 + x2 - c1).expand() == 0
    solution = num.solve(parking(PrimalDual, DualLink))
    values = {"gap": abs(solution.gap), "kkt": abs(solution.kkt)}
    return from_proofs(
        law_proof(DualLink, "(13) complementary slackness"),
        checks=by_rate and by_price and max(values.values()) < 1e-10,
        computed="stationarity by differentiation, slackness from (14b); strong duality: gap below "
        "1e-10 on a parking lot",
        values=values,
    )


@claim("(14)", "converges")
def primal_dual_converges() -> Outcome:
    """The primal-dual updates (14) converge to the solution of (10) and (13)."""
    net = parking(PrimalDual(alpha=4e7), DualLink(nu=2e-8))
    end, best = _final(net, 120.0), num.solve(net)
    rate, price = end.rate.values, end.link_price.values
    swinging = parking(PrimalDual(alpha=4e7), DualLink(nu=2e-7))
    eager = simulate(swinging, 120.0, samples=1201)
    values = {
        "rate": off(rate, best.rate.values),
        "price": off(price, best.price.values),
        "swing": off(eager.rate.values[-100:], best.rate.values),
    }
    worst = max(values["rate"], values["price"])
    return reproduced_if(
        worst < 1e-3,
        f"a run on a parking lot ends at the optimum within {bound(worst)} in rates and prices",
        "With 50 ms of delay and moderate gains. The statement is about no delay: with nu ten "
        f"times as large the rates still swing by {percent(values['swing'], 2)} after 120 s.",
        values,
    )


@claim("(14b)", "lambda = q")
def price_is_delay() -> Outcome:
    """With nu = 1/c the dual variables have the form of the queueing delays (2)."""
    net = parking(QueueingDelay, DropTail)
    eq, best = equilibrium(net), num.solve(net)
    gap = off(eq.queueing_delay.values, best.price.values)
    q = ", ".join(ms(v) for v in eq.queueing_delay.values)
    return from_proofs(
        law_proof(DualLink, "(14b) with nu = 1/c is (2)"),
        checks=gap <= 1e-8,
        computed="sources that react to their queueing delay on drop-tail queues end at the "
        f"optimum, with queueing delays ({q}) equal to the multipliers",
        values={"gap": gap},
    )


@claim("II-C", "'generally'")
def more_capacity_less_delay() -> Outcome:
    """The larger the capacity, the larger the rates and the lower the delays at equilibrium."""
    flows, cap = positive("N", "c")
    single = proof(diff(WEIGHT * flows / cap, cap) < 0)
    small, large = (num.solve(parking(PrimalDual, DualLink, (c1, 3e6))) for c1 in (2e6, 2.5e6))
    b = [float(s.rate.sel(flow="b")) for s in (small, large)]
    price = [float(s.price.sel(link="link2")) for s in (small, large)]
    names = ("b_before", "b_after", "price2_before", "price2_after")
    values = dict(zip(names, b + price, strict=True))
    return differs_if(
        single and b[1] < b[0] and price[1] > price[0],
        "q = N w/c on one link falls with c (proved); link 1 of a parking lot from 2 to 2.5 "
        f"Mbit/s: flow b from {mbit(b[0])} to {mbit(b[1])}, price of link 2 up by "
        f"{percent(price[1] / price[0] - 1)}",
        "True of one link, not of networks: capacity on one link lets the long flow grow, which "
        "takes rate from the flows of its other links and lengthens their queue.",
        values,
    )


@claim("II-C", "q > 0")
def self_inflicted() -> Outcome:
    """A flow alone on a link must create some queueing delay to get all of it (self-inflicted
    delay)."""
    (cap,) = positive("c")
    q = equilibrium(alone(QueueingDelay, capacity=2e6)).queueing_delay.values[0]
    return from_proofs(
        WEIGHT / cap > 0,
        computed=f"q = U'(c) = w/c > 0; w = 50 kbit, c = 2 Mbit/s: {ms(q)}",
        values={"q": q},
        checks=abs(q - 50e3 / 2e6) <= 1e-12,
    )


# --- II-C: what loss-based and delay-based control do, and where they fail


@claim("II-C", "x' = alpha (U' - pi)")
def tcp_as_gradient() -> Outcome:
    """The classical loss-based TCP can be modelled by systems governed by (12)."""
    (window,) = Reno.states
    trip, (flow,) = Symbol("R", positive=True), Reno.flow.values()
    rate = Symbol("x", positive=True)
    steady = {window: rate * trip / packet, x_tau: rate}
    growth = packet / trip * unfold(flow).subs(e, trip - e_b).subs(steady)
    slope = (growth / -diff(growth, pi)).subs(pi, 0)  # U'(x), with x' = gain (U' - pi)
    return from_proofs(
        -diff(growth, pi) > 0,
        Eq(growth, -diff(growth, pi) * (slope - pi)),
        diff(slope, rate) < 0,
        law_proof(Reno, "square-root law"),
        computed="the fluid Reno, at constant RTT, is (12) with U' = (a/b) (packet/(RTT x))^2 and "
        "a gain alpha = b x^2/packet that grows with x",
    )


@claim("II-C", "unfair")
def latecomers() -> Outcome:
    """An error in the propagation delay leads to unfairness among delay-based flows."""
    seen = equilibrium(alone(QueueingDelay)).one_way_delay.item()  # never an empty queue
    early, late = equilibrium(alone(QueueingDelay, QueueingDelay(p=seen))).rate.values
    equal = equilibrium(alone(LDCC, LDCC)).rate.values
    # With q in units of w/c: 1/q + 1/(q - 1) = 1, so q = (3 + sqrt 5)/2 and late : early = q : q -
    # 1 = (1 + sqrt 5)/2.
    ratio, golden = late / early, (1 + 5**0.5) / 2
    values = {"ratio": ratio, "exact": golden, "ldcc": equal[1] / equal[0]}
    return reproduced_if(
        abs(ratio / golden - 1) < 1e-8 and near(equal[0], equal[1]),
        f"a latecomer that takes the standing queue for propagation gets {ratio:.4g} times the "
        "rate; under LDCC, which uses the total delay, 1",
        "exactly the golden ratio",
        values,
    )


@claim("II-C", "'drastically lower'")
def starvation() -> Outcome:
    """A loss-based flow fills the buffer and drives purely delay-based flows to starvation."""
    rates = {}
    for name, law in (("queueing delay", QueueingDelay(w=5e3)), ("LDCC", LDCC)):
        rates[name] = equilibrium(alone(law, LDCC(T=10.0), buffer=3e6)).rate.values[0]
    exact = 5e3 / 1.0
    return reproduced_if(
        abs(rates["queueing delay"] - exact) < 1e-3 and rates["LDCC"] > 0.9 * W_OVER_BETA,
        f"1 s of buffer filled by a loss-based flow leaves {kbit(exact)} (w/q) to a flow that "
        f"reacts to queueing delay, and {kbit(rates['LDCC'])} to LDCC",
        "The loss-based flow is LDCC without its delay penalty; the queue-based one has w = 5 "
        "kbit, which alone would give it all of the link at 1.7 ms of queue.",
        rates,
    )
