"""Section II of the LDCC paper: the network, the NUM problem, and known controls, (1) to (14)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Eq, Function, Symbol, diff, integrate, log, symbols

from fluidcc.equilibria import num
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Link, Source, marginal
from fluidcc.links import DropTail, DualLink, PenaltyLink
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import (
    W_OVER_BETA,
    alone,
    at_time,
    equilibrium_of,
    near,
    positive,
    run,
    series,
)
from fluidcc.papers.model import Claim, Outcome, law_proof, proof
from fluidcc.papers.printed import off
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC, PrimalDual, PrimalPenalty, Reno
from fluidcc.symbols import RTT, c, e, e_b, packet, pi, unfold, x_tau, y

RATE, WEIGHT = symbols("x w", positive=True)
_gain, _known = symbols("alpha p", positive=True)
# x' = alpha (U'(x) - (e - p)): the source of Section II-C that has estimated its queueing delay; U'
# is in seconds.
QueueingDelay = Source(
    name="QueueingDelay",
    flow={RATE: _gain * (marginal(WEIGHT * log(RATE), RATE) - (e - _known))},
    out={"rate": RATE},
    params={WEIGHT: 50e3, _gain: 2e6, _known: 0.025},
    units={RATE: "bit/s", WEIGHT: "bit", _gain: "bit/s^3", _known: "s"},
    lower={RATE: 0},
    initial={RATE: WEIGHT / _known / 10},
    utility=WEIGHT * log(RATE),
    ref="LDCC, Section II-C",
)


def parking(source: Source, link: Link, capacities: tuple[float, float] = (2e6, 3e6)) -> Network:
    """A long flow over two links and a flow on each."""
    net = Network().link("link1", link, capacity=capacities[0], delay=0.0125)
    net.link("link2", link, capacity=capacities[1], delay=0.0125)
    net.flow("long", source, route=["link1", "link2"])
    net.flow("a", source, route=["link1"], access_delay=0.0125)
    return net.flow("b", source, route=["link2"], access_delay=0.0125)


(LOSS,) = DropTail.out.values()


def link_rates(claim: Claim) -> Outcome:
    net = scenarios["ldcc_fig10"].net
    late = at_time("ldcc_fig10", 255.0)
    gap = off(net.routing_matrix() @ late.rate.values, late.arrival_rate.values)
    short, mixed = equilibrium_of("ldcc_fig11"), scenarios["ldcc_fig11"].net
    excess = (mixed.routing_matrix() @ short.rate.values / short.arrival_rate.values - 1)[1]
    return claim.differs_if(abs(excess) > 1e-9, {"fig10": gap, "fig11": excess}, short=short)


def queue_growth(claim: Claim) -> Outcome:
    times = [0.5, 1.0, 2.0, 2.9, 3.5]
    burst = {"law": CBR(rate=1e6), "stop": 1.0}
    net = dumbbell([CBR(rate=0.5e6), burst], {"capacity": 1e6, "delay": 0.01})
    q = simulate(net, 4.0, t_eval=times).queueing_delay.values[:, 0]
    error = np.max(np.abs(q - [0.25, 0.5, 0.0, 0.0, 0.0]))
    return claim.reproduced_if(error < 1e-9, {"error": error}, q=q)


def fifo_delay(claim: Claim) -> Outcome:
    s, times = scenarios["ldcc_fig5"], np.array([5.0, 20.0, 101.0, 105.0, 262.0])
    q = simulate(s.net, 300.0, t_eval=times).queueing_delay.values[:, 0]
    both = np.unique(np.concatenate([times, times + q]))
    r = simulate(s.net, 300.0, t_eval=both)
    arrived = r.entered.values[:, 0]
    left = arrived - r.lost.values[:, 0] - r.backlog.values[:, 0]
    a, d = np.interp(times, both, arrived), np.interp(times + q, both, left)
    error = float(np.max(np.abs(a - d)) / np.max(a))
    return claim.reproduced_if(error < 1e-6, {"error": error})


def one_way_delay(claim: Claim) -> Outcome:
    net = scenarios["ldcc_fig10"].net
    eq = equilibrium_of("ldcc_fig10")
    p = np.array([link.delay for link in net.links.values()])
    e_sum = net.routing_matrix().T @ (p + eq.queueing_delay.values)
    late = at_time("ldcc_fig10", 255.0).one_way_delay.values
    error = off(e_sum, late)
    return claim.reproduced_if(error < 1e-3, {"error": error}, e_sum=e_sum[:3])


def loss_ratio(claim: Claim) -> Outcome:
    r = run("ldcc_fig6")
    arrival, lost = r.arrival_rate.values[:, 0], r.link_loss.values[:, 0]
    full = lost > 0
    printed = 1 - 3.5e6 / arrival[full]
    return claim.proved(
        Eq(y * (1 - LOSS), c),
        values={"samples": full.sum()},
        checks=near(lost[full], printed, 1e-9),
    )


def path_loss(claim: Claim) -> Outcome:
    eq = equilibrium_of("ldcc_fig11")
    one, two, three = (float(v) for v in eq.loss.values[[0, 1, 2]])
    p1, p2, sent = positive("p1", "p2", "x")
    admitted = sent * (1 - p1)  # by link 1, and of that link 2 loses p2
    return claim.proved(
        Eq((sent * p1 + admitted * p2) / sent, 1 - (1 - p1) * (1 - p2)),
        values={"path": one, "link1": two, "link2": three},
        checks=abs(one - (1 - (1 - two) * (1 - three))) <= 1e-12,
    )


def loss_sum(claim: Claim) -> Outcome:
    # With S the sum and D = S - (1 - prod) over the links so far, a further link makes S + p and D
    # + p (S - D).
    S, D, p, d = (Symbol(name, nonnegative=True) for name in ("S", "D", "p", "d"))
    more = D + p * (S - D)
    above = more.subs(S, D + d) >= 0  # given 0 <= D <= S
    below = d + p**2 / 2 + p * D >= 0  # given d = S^2/2 - D >= 0
    eq = equilibrium_of("ldcc_fig11")
    path, total = eq.loss.values[0], eq.loss.values[1] + eq.loss.values[2]
    return claim.proved(
        above,
        Eq((S + p) ** 2 / 2 - more, (S**2 / 2 - D) + p**2 / 2 + p * D),
        below,
        values={"path": path, "sum": total},
    )


def split_of_rtt(claim: Claim) -> Outcome:
    before, after = positive("a", "d")  # up to the link, and from it to the receiver
    back = Symbol("e_b", nonnegative=True)
    return claim.proved(Eq(before + (after + back), (before + after) + back))


def delayed_rates(claim: Claim) -> Outcome:
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
    return claim.refuted_if(
        fifo,
        {**into, "made": made["frozen"], "made_fifo": made["fifo"]},
        megabit=made["frozen"] / 1e6,
    )


def frozen_against_fifo(claim: Claim) -> Outcome:
    fifo, frozen = run("ldcc_fig10"), run("ldcc_fig10", "frozen")
    gap = np.abs(fifo.rate.values - frozen.rate.values)[:, :3]
    worst, end = np.max(gap), np.max(gap[-1])
    when = fifo.time.values[np.argmax(np.max(gap, axis=1))]
    return claim.differs_if(
        worst > 1e-6 * float(fifo.rate.max()), {"worst": worst, "end": end, "when": when}
    )


def round_trip(claim: Claim) -> Outcome:
    r, net = run("ldcc_fig10"), scenarios["ldcc_fig10"].net
    back = np.array([net.return_delay(f) for f in net.flow_names])
    gap = np.max(np.abs(r.rtt.values - r.one_way_delay.values - back))
    return claim.reproduced_if(
        gap <= 1e-12 and proof(Eq(RTT, e + e_b)), {"gap": gap}, back=back[:3]
    )


# --- II-B and II-C: the NUM problem, penalties and prices, (10) to (14)


def _final(net: Network, until: float) -> Any:
    """Return the last sample of a run."""
    return simulate(net, until, samples=2).isel(time=-1)


def num_unique(claim: Claim) -> Outcome:
    net = parking(PrimalDual, DualLink)
    solution = num.solve(net)
    # Strictly concave in each rate and a sum over rates, so strictly concave; the constraints are
    # linear.
    U = WEIGHT * log(RATE)
    return claim.proved(
        diff(U, RATE) > 0,
        diff(U, RATE, 2) < 0,
        values={"gap": abs(solution.gap), "kkt": abs(solution.kkt)},
        checks=max(solution.gap, solution.kkt) <= 1e-10,
    )


def no_queue_at_optimum(claim: Claim) -> Outcome:
    net = parking(QueueingDelay, DropTail)
    eq, best = equilibrium(net), num.solve(net)
    q = eq.queueing_delay.values
    return claim.refuted_if(near(eq.rate.values, best.rate.values, 1e-8), {"q1": q[0], "q2": q[1]})


def penalty_concave(claim: Claim) -> Outcome:
    laws = [law_proof(PenaltyLink, label) for label in PenaltyLink.claims]
    x1, x2, v = positive("x1", "x2", "v")
    cost = integrate(PenaltyLink.out["price"].subs(y, v), (v, 0, x1 + x2))
    return claim.proved(*laws, diff(cost, x1, 2) >= 0, Eq(diff(cost, x1, 2), diff(cost, x1, x2)))


def gradient_of_penalty(claim: Claim) -> Outcome:
    U1, U2, g1, g2 = (Function(name) for name in ("U1", "U2", "g1", "g2"))
    x1, x2, s = positive("x1", "x2", "s")
    # Flow 1 crosses links 1 and 2, flow 2 link 1.
    objective = U1(x1) + U2(x2) - integrate(g1(s), (s, 0, x1 + x2)) - integrate(g2(s), (s, 0, x1))
    wanted = diff(U1(x1), x1) - g1(x1 + x2) - g2(x1)
    return claim.proved_if((diff(objective, x1) - wanted).simplify() == 0)


def penalty_converges(claim: Claim) -> Outcome:
    gaps = {}
    for sharp in (8, 32, 128):
        net = parking(PrimalPenalty, PenaltyLink(B=sharp))
        best, eq = num.solve(net).rate.values, equilibrium(net).rate.values
        gaps[f"B={sharp}"] = off(eq, best)
    net = parking(PrimalPenalty(alpha=4e7), PenaltyLink)
    end = _final(net, 120.0).rate.values
    settled = near(end, equilibrium(net).rate.values, 1e-4)
    falling = list(gaps.values()) == sorted(gaps.values(), reverse=True)
    return claim.reproduced_if(settled and falling, gaps)


def loss_as_price(claim: Claim) -> Outcome:
    flows, cap = positive("N", "c")
    rate = (cap + flows * WEIGHT) / flows
    share = (flows * rate - cap) / (flows * rate)
    # the delay penalty never acts: price and loss are one
    eq = equilibrium(alone(*[LDCC(T=10.0)] * 3, buffer=2e5))
    exact = 3 * 20e3 / (3e6 + 3 * 20e3)
    values = {"loss": eq.loss.values[0], "exact": exact}
    return claim.proved(
        Eq(WEIGHT / rate, share),
        share > 0,
        values=values,
        checks=eq.full.values[0] and abs(values["loss"] - exact) < 1e-12,
    )


def dual_conditions(claim: Claim) -> Outcome:
    x1, x2, x3, l1, l2, c1, c2 = positive("x1", "x2", "x3", "l1", "l2", "c1", "c2")
    U = [Function(f"U{k}") for k in (1, 2, 3)]
    utility = sum(u(v) for u, v in zip(U, (x1, x2, x3), strict=True))
    lagrangian = utility - l1 * (x1 + x2 - c1) - l2 * (x1 + x3 - c2)
    by_rate = (diff(lagrangian, x1) - (diff(U[0](x1), x1) - l1 - l2)).expand() == 0
    by_price = (diff(lagrangian, l1) + x1 + x2 - c1).expand() == 0
    solution = num.solve(parking(PrimalDual, DualLink))
    values = {"gap": abs(solution.gap), "kkt": abs(solution.kkt)}
    return claim.proved(
        law_proof(DualLink, "(13) complementary slackness"),
        values=values,
        checks=by_rate and by_price and max(values.values()) < 1e-10,
    )


def primal_dual_converges(claim: Claim) -> Outcome:
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
    return claim.reproduced_if(worst < 1e-3, values, worst=worst)


def price_is_delay(claim: Claim) -> Outcome:
    net = parking(QueueingDelay, DropTail)
    eq, best = equilibrium(net), num.solve(net)
    gap = off(eq.queueing_delay.values, best.price.values)
    return claim.proved(
        law_proof(DualLink, "(14b) with nu = 1/c is (2)"),
        values={"gap": gap},
        checks=gap <= 1e-8,
        q=eq.queueing_delay.values,
    )


def more_capacity_less_delay(claim: Claim) -> Outcome:
    flows, cap = positive("N", "c")
    single = proof(diff(WEIGHT * flows / cap, cap) < 0)
    small, large = (num.solve(parking(PrimalDual, DualLink, (c1, 3e6))) for c1 in (2e6, 2.5e6))
    b = [float(s.rate.sel(flow="b")) for s in (small, large)]
    price = [float(s.price.sel(link="link2")) for s in (small, large)]
    names = ("b_before", "b_after", "price2_before", "price2_after")
    values = dict(zip(names, b + price, strict=True))
    return claim.differs_if(
        single and b[1] < b[0] and price[1] > price[0], values, up=price[1] / price[0] - 1
    )


def self_inflicted(claim: Claim) -> Outcome:
    (cap,) = positive("c")
    q = equilibrium(alone(QueueingDelay, capacity=2e6)).queueing_delay.values[0]
    return claim.proved(WEIGHT / cap > 0, values={"q": q}, checks=abs(q - 50e3 / 2e6) <= 1e-12)


# --- II-C: what loss-based and delay-based control do, and where they fail


def tcp_as_gradient(claim: Claim) -> Outcome:
    (window,) = Reno.states
    trip, (flow,) = Symbol("R", positive=True), Reno.flow.values()
    rate = Symbol("x", positive=True)
    steady = {window: rate * trip / packet, x_tau: rate}
    growth = packet / trip * unfold(flow).subs(e, trip - e_b).subs(steady)
    slope = (growth / -diff(growth, pi)).subs(pi, 0)  # U'(x), with x' = gain (U' - pi)
    return claim.proved(
        -diff(growth, pi) > 0,
        Eq(growth, -diff(growth, pi) * (slope - pi)),
        diff(slope, rate) < 0,
        law_proof(Reno, "square-root law"),
    )


def latecomers(claim: Claim) -> Outcome:
    seen = equilibrium(alone(QueueingDelay)).one_way_delay.item()  # never an empty queue
    early, late = equilibrium(alone(QueueingDelay, QueueingDelay(p=seen))).rate.values
    equal = equilibrium(alone(LDCC, LDCC)).rate.values
    # With q in units of w/c: 1/q + 1/(q - 1) = 1, so q = (3 + sqrt 5)/2 and late : early = q : q -
    # 1 = (1 + sqrt 5)/2.
    ratio, golden = late / early, (1 + 5**0.5) / 2
    values = {"ratio": ratio, "exact": golden, "ldcc": equal[1] / equal[0]}
    return claim.reproduced_if(abs(ratio / golden - 1) < 1e-8 and near(equal[0], equal[1]), values)


def starvation(claim: Claim) -> Outcome:
    rates = {}
    for name, law in (("queueing delay", QueueingDelay(w=5e3)), ("LDCC", LDCC)):
        rates[name] = equilibrium(alone(law, LDCC(T=10.0), buffer=3e6)).rate.values[0]
    exact = 5e3 / 1.0
    return claim.reproduced_if(
        abs(rates["queueing delay"] - exact) < 1e-3 and rates["LDCC"] > 0.9 * W_OVER_BETA,
        rates,
        exact=exact,
    )
