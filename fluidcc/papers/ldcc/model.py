"""Section II of the LDCC paper: the network, the NUM problem, and known controls, (1) to (14)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Eq, Function, diff, integrate, log, symbols

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
    run,
    series,
)
from fluidcc.papers.model import (
    Found,
    differs_if,
    law_proof,
    not_given,
    proof,
    proved,
    proved_if,
    reproduced_if,
)
from fluidcc.papers.printed import falling, off
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC, PrimalDual, PrimalPenalty
from fluidcc.sources import StaticReno as Reno
from fluidcc.symbols import RTT, c, e, e_b, nonnegative, packet, pi, positive, unfold, x_tau, y

RATE, WEIGHT = positive("x w")
_gain, _known = positive("alpha p")
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


def parking(source: Source, link: Link, capacity: float = 2e6) -> Network:
    """A long flow over two links, the second of 3 Mbit/s, and a flow on each."""
    net = Network().link("link1", link, capacity=capacity, delay=0.0125)
    net.link("link2", link, capacity=3e6, delay=0.0125)
    net.flow("long", source, route=["link1", "link2"])
    net.flow("a", source, route=["link1"], access_delay=0.0125)
    return net.flow("b", source, route=["link2"], access_delay=0.0125)


(LOSS,) = DropTail.out.values()
FLOWS = positive("N")


def link_rates() -> Found:
    net = scenarios["ldcc_fig10"].net
    late = at_time("ldcc_fig10", 255.0)
    short, mixed = equilibrium_of("ldcc_fig11"), scenarios["ldcc_fig11"].net
    excess = (mixed.routing_matrix() @ short.rate.values / short.arrival_rate.values - 1)[1]
    same = off(net.routing_matrix() @ late.rate.values, late.arrival_rate.values)
    return differs_if(same < 1e-5 < excess, fig10=same, fig11=excess, short=short)


def queue_growth() -> Found:
    burst = {"law": CBR(rate=1e6), "stop": 1.0}
    net = dumbbell([CBR(rate=0.5e6), burst], {"capacity": 1e6, "delay": 0.01})
    q = simulate(net, 4.0, t_eval=[0.5, 1.0, 2.0, 2.9, 3.5]).queueing_delay.values[:, 0]
    error = np.max(np.abs(q - [0.25, 0.5, 0.0, 0.0, 0.0]))
    return reproduced_if(error < 1e-9, error=error, q=q)


def fifo_delay() -> Found:
    net, times = scenarios["ldcc_fig5"].net, np.array([5.0, 20.0, 101.0, 105.0, 262.0])
    q = simulate(net, 300.0, t_eval=times).queueing_delay.values[:, 0]
    both = np.unique([times, times + q])
    r = simulate(net, 300.0, t_eval=both)
    left = r.entered - r.lost - r.backlog
    a = np.interp(times, both, r.entered.values[:, 0])
    error = np.max(np.abs(a - np.interp(times + q, both, left.values[:, 0]))) / np.max(a)
    return reproduced_if(error < 1e-6, error=error, times=times)


def one_way_delay() -> Found:
    net = scenarios["ldcc_fig10"].net
    p = np.array([link.delay for link in net.links.values()])
    queues = equilibrium_of("ldcc_fig10").queueing_delay.values
    e_sum = net.routing_matrix().T @ (p + queues)
    error = off(e_sum, at_time("ldcc_fig10", 255.0).one_way_delay.values)
    return reproduced_if(error < 1e-3, error=error, e_sum=e_sum[:3])


def loss_ratio() -> Found:
    r = run("ldcc_fig6")
    arrival, lost = r.arrival_rate.values, r.link_loss.values
    full = lost > 0
    return proved(
        Eq(y * (1 - LOSS), c),
        samples=full.sum(),
        checks=near(lost[full], 1 - 3.5e6 / arrival[full], 1e-9),
    )


def path_loss() -> Found:
    path, link1, link2 = equilibrium_of("ldcc_fig11").loss.values[:3]
    # one link more, of p2: p1 is the loss over those before it
    p1, p2, sent = positive("p1 p2 x")
    admitted = sent * (1 - p1)
    return proved(
        Eq((sent * p1 + admitted * p2) / sent, 1 - (1 - p1) * (1 - p2)),
        path=path,
        link1=link1,
        link2=link2,
        checks=abs(path - (1 - (1 - link1) * (1 - link2))) <= 1e-12,
    )


def loss_sum() -> Found:
    # With S the sum and D = S - (1 - prod) over the links so far, a further link makes S + p and D
    # + p (S - D).
    S, D, p, d = nonnegative("S D p d")
    more = D + p * (S - D)
    path, *links = equilibrium_of("ldcc_fig11").loss.values[:3]
    total = sum(links)
    return proved(
        more.subs(S, D + d) >= 0,  # given 0 <= D <= S
        Eq((S + p) ** 2 / 2 - more, (S**2 / 2 - D) + p**2 / 2 + p * D),
        d + p**2 / 2 + p * D >= 0,  # given d = S^2/2 - D >= 0
        path=path,
        sum=total,
        checks=0 <= total - path <= total**2 / 2,
    )


def split_of_rtt() -> Found:
    before, after = positive("a d")  # up to the link, and from it to the receiver
    back = nonnegative("e_b")
    return proved(Eq(before + (after + back), (before + after) + back))


def delayed_rates() -> Found:
    # Data sent at theta leave a queue at theta + q(theta), and so at x/(1 + q'), with q' by (2).
    (growth,) = DropTail.flow.values()
    fifo = proof(Eq(y / (1 + growth), c))
    into, made = {}, {}
    for mode in ("fifo", "frozen"):
        last = _final(series(2e6, 2.5e6, 3e6), 10.0, delays=mode)
        into[mode] = last.arrival_rate[1]
        made[mode] = last.entered[1].item() + last.backlog[0].item() - last.entered[0].item()
    held = fifo and abs(made["fifo"]) < 1 and near(into["fifo"], 2e6)
    return differs_if(
        held and made["frozen"] > 1e6 and into["frozen"] > into["fifo"],
        into,
        made=made["frozen"],
        megabit=made["frozen"] / 1e6,
    )


def frozen_against_fifo() -> Found:
    fifo = run("ldcc_fig10")
    gap = np.abs(fifo.rate - run("ldcc_fig10", "frozen").rate)[:, :3].max("flow")
    worst = gap.max()
    return not_given(worst=worst, end=gap[-1], when=gap.idxmax("time"))


def round_trip() -> Found:
    r, net = run("ldcc_fig10"), scenarios["ldcc_fig10"].net
    back = np.array([net.return_delay(f) for f in net.flow_names])
    gap = np.max(np.abs((r.rtt - r.one_way_delay).values - back))
    return reproduced_if(gap <= 1e-12 and proof(Eq(RTT, e + e_b)), gap=gap, back=back[:3])


# --- II-B and II-C: the NUM problem, penalties and prices, (10) to (14)


def _final(net: Network, until: float, **more: Any) -> Any:
    """Return the last sample of a run."""
    return simulate(net, until, samples=2, **more).isel(time=-1)


def _gaps(net: Network) -> dict[str, float]:
    """Duality gap of the optimum, and how far it is off the conditions of Karush, Kuhn, Tucker."""
    solution = num.solve(net)
    return {"gap": abs(solution.gap), "kkt": abs(solution.kkt)}


def num_unique() -> Found:
    gaps = _gaps(parking(PrimalDual, DualLink))
    # Half way between two solutions of the same sum U of utilities it is larger, by `more` > 0 as
    # they are strictly concave, and links with capacity `s` and `d` to spare have some.
    total, more, (s, d) = symbols("U", real=True), positive("m"), nonnegative("s d")
    return proved(
        (total + total) / 2 + more > total,
        ((c - s) + (c - d)) / 2 <= c,
        gaps,
        checks=max(gaps.values()) <= 1e-10,
    )


def capacity_constraint() -> Found:
    net = scenarios["ldcc_fig5"].net
    (link,), R = net.links.values(), net.routing_matrix()
    most = link.capacity / R.sum(axis=0)  # literally: sum over l of R_lr x_r <= c, user by user
    load = (R @ most)[0] / link.capacity
    return differs_if(load > 1, load=load)


def no_queue_at_optimum() -> Found:
    net = parking(QueueingDelay, DropTail)
    eq = equilibrium(net)
    q1, q2 = eq.queueing_delay.values
    return differs_if(near(eq.rate, num.solve(net).rate, 1e-8) and min(q1, q2) > 0, q1=q1, q2=q2)


def penalty_concave() -> Found:
    # int_0^y g has the slope g(y) u along rates that move y at u, and so bends by g' u^2.
    g, slope, (u, y_of, move) = Function("g"), nonnegative("g'"), symbols("u y t", real=True)
    cost = integrate(g(y), (y, 0, y_of)).subs(y_of, y_of + move * u)
    bend = diff(cost, move, 2).doit().subs(move, 0) / diff(g(y_of), y_of)
    return proved(Eq(bend, u**2), slope * u**2 >= 0)


def gradient_of_penalty() -> Found:
    # The terms of (11) that contain one rate: its utility, and the cost of each link on its route.
    U, g, others, s = Function("U"), Function("g"), nonnegative("others"), positive("s")
    along = diff(U(RATE) - integrate(g(s), (s, 0, RATE + others)), RATE)
    return proved_if((along - diff(U(RATE), RATE) + g(RATE + others)).simplify() == 0)


def penalty_converges() -> Found:
    gaps = {}
    for sharp in (8, 32, 128):
        net = parking(PrimalPenalty, PenaltyLink(B=sharp))
        gaps[f"B={sharp}"] = off(equilibrium(net).rate.values, num.solve(net).rate.values)
    net = parking(PrimalPenalty(alpha=4e7), PenaltyLink)
    settled = near(_final(net, 120.0).rate, equilibrium(net).rate, 1e-4)
    return differs_if(settled and falling(gaps.values()), gaps)


def loss_as_price() -> Found:
    rate = (c + FLOWS * WEIGHT) / FLOWS
    share = (FLOWS * rate - c) / (FLOWS * rate)
    # the delay penalty never acts: price and loss are one
    slope, price = positive("U'"), symbols("pi", real=True)
    eq = equilibrium(alone(*[LDCC(T=10.0)] * 3, buffer=2e5))
    loss, exact = eq.loss[0], 3 * 20e3 / (3e6 + 3 * 20e3)
    return proved(
        proof(price > 0, Eq(slope - price, 0)),  # (12) at rest, for any utility that rises
        Eq(WEIGHT / rate, share),
        loss=loss,
        exact=exact,
        checks=eq.full[0] and abs(loss - exact) < 1e-12,
    )


def dual_conditions() -> Found:
    # one flow of the Lagrangian, with the sum S of its links' prices, or one link; the rest is free
    # of its rate, or of its price
    U, (path, price, rest) = Function("U"), positive("S lambda rest")
    by_rate = diff(rest + U(RATE) - RATE * path, RATE) == diff(U(RATE), RATE) - path
    by_price = (diff(rest - price * (y - c), price) - (c - y)).expand() == 0
    gaps = _gaps(parking(PrimalDual, DualLink))
    return proved(
        law_proof(DualLink, "(13) complementary slackness"),
        gaps,
        checks=by_rate and by_price and max(gaps.values()) < 1e-10,
    )


def primal_dual_converges() -> Found:
    net = parking(PrimalDual(alpha=4e7), DualLink(nu=2e-8))
    end, best = _final(net, 120.0), num.solve(net)
    swinging = parking(PrimalDual(alpha=4e7), DualLink(nu=2e-7))
    eager = simulate(swinging, 120.0, samples=1201)
    worst = max(
        off(end.rate.values, best.rate.values), off(end.link_price.values, best.price.values)
    )
    swing = off(eager.rate.values[-100:], best.rate.values)
    return reproduced_if(worst < 1e-3 < swing, swing=swing, worst=worst)


def price_is_delay() -> Found:
    net = parking(QueueingDelay, DropTail)
    q = equilibrium(net).queueing_delay.values
    gap = off(q, num.solve(net).price.values)
    return proved(
        law_proof(DualLink, "(14b) with nu = 1/c is (2)"), gap=gap, checks=gap <= 1e-8, q=q
    )


def more_capacity_less_delay() -> Found:
    single = proof(diff(WEIGHT * FLOWS / c, c) < 0)
    small, large = (num.solve(parking(PrimalDual, DualLink, cap)) for cap in (2e6, 2.5e6))
    before, after = (s.rate.sel(flow="b").item() for s in (small, large))
    cheap, dear = (s.price.sel(link="link2").item() for s in (small, large))
    return differs_if(
        single and after < before and dear > cheap,
        b_before=before,
        b_after=after,
        price2_before=cheap,
        price2_after=dear,
        up=dear / cheap - 1,
    )


def self_inflicted() -> Found:
    q = equilibrium(alone(QueueingDelay, capacity=2e6)).queueing_delay[0]
    slope, price = positive("U'"), symbols("lambda", real=True)  # (14a) at rest
    return proved(proof(price > 0, Eq(slope - price, 0)), q=q, checks=abs(q - 50e3 / 2e6) <= 1e-12)


# --- II-C: what loss-based and delay-based control do, and where they fail


def tcp_as_gradient() -> Found:
    (window,) = Reno.states
    trip, (flow,) = positive("R"), Reno.flow.values()
    steady = {window: RATE * trip / packet, x_tau: RATE}
    growth = packet / trip * unfold(flow).subs(e, trip - e_b).subs(steady)
    slope = (growth / -diff(growth, pi)).subs(pi, 0)  # U'(x), with x' = gain (U' - pi)
    gain = -diff(growth, pi)
    a, b = Reno.params
    form = (
        proof(Eq(growth, gain * (slope - pi))),
        proof(Eq(slope, a / b * (packet / (trip * RATE)) ** 2)),
        proof(Eq(gain, b * RATE**2 / packet)),
    )
    return differs_if(all(form))


def latecomers() -> Found:
    seen = equilibrium(alone(QueueingDelay)).one_way_delay.item()  # never an empty queue
    early, late = equilibrium(alone(QueueingDelay, QueueingDelay(p=seen))).rate.values
    one, other = equilibrium(alone(LDCC, LDCC)).rate.values
    # With q in units of w/c: 1/q + 1/(q - 1) = 1, so q = (3 + sqrt 5)/2 and late : early = q : q -
    # 1 = (1 + sqrt 5)/2.
    ratio, golden = late / early, (1 + 5**0.5) / 2
    return reproduced_if(
        off(ratio, golden) < 1e-8 and near(one, other), ratio=ratio, exact=golden, ldcc=other / one
    )


def starvation() -> Found:
    delay_based, ldcc = (
        equilibrium(alone(law, LDCC(T=10.0), buffer=3e6)).rate[0]
        for law in (QueueingDelay(w=5e3), LDCC)
    )
    exact = 5e3 / 1.0
    return reproduced_if(
        abs(delay_based - exact) < 1e-3 and ldcc > W_OVER_BETA,
        {"queueing delay": delay_based},
        LDCC=ldcc,
        exact=exact,
    )
