"""Section II-A of the LDCC paper: links, delays and losses, equations (1) to (9)."""

from __future__ import annotations

import numpy as np
from sympy import Eq, Symbol, diff

import fluidcc.papers.ldcc.common as common
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import at_time, bound, ms, near, percent, positive, run
from fluidcc.papers.ldcc.networks import series
from fluidcc.papers.model import DIFFERS, REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR
from fluidcc.symbols import RTT, c, e, e_b, y

(LOSS,) = DropTail.out.values()


@claim("ldcc", "(1)", "The rate of a link is the sum of the rates of the users on it: y = R x.", "y_l = sum R_lr x_r")
def link_rates() -> Outcome:
    net = scenarios["ldcc_fig10"].net
    late = at_time("ldcc_fig10", 255.0)
    gap = np.max(np.abs(net.routing_matrix() @ late.rate.values / late.arrival_rate.values - 1))
    short, mixed = equilibrium(scenarios["ldcc_fig11"].net, at=200.0), scenarios["ldcc_fig11"].net
    excess = (mixed.routing_matrix() @ short.rate.values / short.arrival_rate.values - 1)[1]
    return Outcome(
        DIFFERS if abs(excess) > 1e-9 else REPRODUCED,
        f"Fig. 10 at 255 s: R x = y within {bound(gap)}; Fig. 11: R x exceeds y on link 2 by {percent(excess)}",
        "It holds where nothing is lost upstream. In Fig. 11 link 1 loses "
        f"{percent(float(short.loss.values[1]))}, which "
        "never reaches link 2; the library sends on what a link has admitted.",
        {"fig10": gap, "fig11": excess},
    )


@claim(
    "ldcc",
    "(2)",
    "The queueing delay grows by (y - c)/c a second while y > c, and is zero when the buffer is empty.",
    "q' = (y - c)^+ / c",
)
def queue_growth() -> Outcome:
    times = [0.5, 1.0, 2.0, 2.9, 3.5]
    net = Network().link("l", DropTail, capacity=1e6, delay=0.01)
    net.flow("base", CBR(rate=0.5e6), route=["l"]).flow("burst", CBR(rate=1e6), route=["l"], stop=1.0)
    q = simulate(net, 4.0, t_eval=times, progress=False).queueing_delay.values[:, 0]
    error = float(np.max(np.abs(q - [0.25, 0.5, 0.0, 0.0, 0.0])))
    verdict = REPRODUCED if error < 1e-9 else DIFFERS
    return Outcome(
        verdict,
        f"1.5 c for 1 s, then 0.5 c: q = {ms(q[0])} at 0.5 s, {ms(q[1])} at 1 s, empty from 2 s on; "
        f"exact within {bound(error)}",
        "as worked out by hand" if verdict == DIFFERS else "",
        {"error": error},
    )


@claim(
    "ldcc", "II-A", "A packet that arrives at time t takes q(t) before it is sent over the link.", "leaves at t + q(t)"
)
def fifo_delay() -> Outcome:
    s, times = scenarios["ldcc_fig5"], np.array([5.0, 20.0, 101.0, 105.0, 262.0])
    q = simulate(s.net, 300.0, t_eval=times, progress=False).queueing_delay.values[:, 0]
    both = np.unique(np.concatenate([times, times + q]))
    r = simulate(s.net, 300.0, t_eval=both, progress=False)
    arrived = r.entered.values[:, 0]
    left = arrived - r.lost.values[:, 0] - r.backlog.values[:, 0]
    a, d = np.interp(times, both, arrived), np.interp(times + q, both, left)
    error = float(np.max(np.abs(a - d)) / np.max(a))
    return Outcome(
        REPRODUCED if error < 1e-6 else DIFFERS,
        f"in Fig. 5, bits arrived by t = bits sent by t + q(t), within {bound(error)}",
        "" if error < 1e-6 else "the queue is not first in, first out",
        {"error": error},
    )


@claim(
    "ldcc", "(3)", "The one-way delay is the sum of propagation and queueing delays on the path.", "e = sum R (p + q)"
)
def one_way_delay() -> Outcome:
    net = scenarios["ldcc_fig10"].net
    eq = equilibrium(net, at=200.0)
    p = np.array([link.delay for link in net.links.values()])
    e_sum = net.routing_matrix().T @ (p + eq.queueing_delay.values)
    late = at_time("ldcc_fig10", 255.0).one_way_delay.values
    error = float(np.max(np.abs(e_sum / late - 1)))
    return Outcome(
        REPRODUCED if error < 1e-3 else DIFFERS,
        f"Fig. 10 with three flows: e = {', '.join(ms(v) for v in e_sum[:3])}; the run has reached it within "
        f"{bound(error)}",
        "" if error < 1e-3 else "the run has not settled",
        {"error": error},
    )


@claim("ldcc", "(4)", "The loss ratio of a full buffer is (y - c)/y.", "pi = (y - c)^+ / y")
def loss_ratio() -> Outcome:
    r = run("ldcc_fig6")
    arrival, lost = r.arrival_rate.values[:, 0], r.link_loss.values[:, 0]
    full = lost > 0
    printed = 1 - 3.5e6 / arrival[full]
    exact = proof(Eq(y * (1 - LOSS), c))
    if not near(lost[full], printed, 1e-9):
        return Outcome(DIFFERS, "the run of Fig. 6 loses another share", "compare with (y - c)/y while full")
    return from_proofs(
        exact,
        computed=f"what is admitted, y (1 - pi), is c; in Fig. 6 every one of {full.sum()} samples "
        "with losses has this ratio",
        values={"samples": float(full.sum())},
    )


@claim(
    "ldcc",
    "(5)",
    "Over links that lose independently, a path loses 1 - prod (1 - pi_l) over its links.",
    "pi_r = 1 - prod (1 - pi_l)",
)
def path_loss() -> Outcome:
    eq = equilibrium(scenarios["ldcc_fig11"].net, at=200.0)
    one, two, three = (float(v) for v in eq.loss.values[[0, 1, 2]])
    p1, p2, sent = positive("p1", "p2", "x")
    admitted = sent * (1 - p1)  # by link 1, and of that link 2 loses p2
    shown = proof(Eq((sent * p1 + admitted * p2) / sent, 1 - (1 - p1) * (1 - p2)))
    if abs(one - (1 - (1 - two) * (1 - three))) > 1e-12:
        return Outcome(DIFFERS, f"flow 1 loses {percent(one)}", "the product over the links gives another value")
    return from_proofs(
        shown,
        computed=f"Fig. 11: {percent(two)} and {percent(three)} on the links make {percent(one, 4)} on the path",
        values={"path": one, "link1": two, "link2": three},
    )


@claim("ldcc", "(6)", "For small losses the path loses about the sum of its links' loss ratios.", "pi_r ~ sum pi_l")
def loss_sum() -> Outcome:
    # With S the sum and D = S - (1 - prod) over the links so far, a further link makes S + p and D + p (S - D).
    S, D, p, d = (Symbol(name, nonnegative=True) for name in ("S", "D", "p", "d"))
    more = D + p * (S - D)
    above = proof(more.subs(S, D + d) >= 0)  # given 0 <= D <= S
    split = proof(Eq((S + p) ** 2 / 2 - more, (S**2 / 2 - D) + p**2 / 2 + p * D))
    below = proof(d + p**2 / 2 + p * D >= 0)  # given d = S^2/2 - D >= 0
    eq = equilibrium(scenarios["ldcc_fig11"].net, at=200.0)
    path, total = float(eq.loss.values[0]), float(eq.loss.values[1] + eq.loss.values[2])
    return from_proofs(
        above,
        split,
        below,
        computed="0 <= sum - pi_r <= sum^2/2 for any number of links, by induction; Fig. 11: "
        f"{percent(total, 4)} for {percent(path, 4)}",
        values={"path": path, "sum": total},
    )


@claim(
    "ldcc",
    "(7)",
    "Forward delay to a link plus delay from it back is the round-trip time, whichever link it is.",
    "RTT = tau_f + tau_b",
)
def split_of_rtt() -> Outcome:
    before, after = positive("a", "d")  # up to the link, and from it to the receiver
    back = Symbol("e_b", nonnegative=True)
    return from_proofs(
        proof(Eq(before + (after + back), (before + after) + back)),
        computed="for any link of any path, by e = its part up to the link and the rest, and RTT = e + e_b",
        reason="With moving queues it holds along the "
        "way of one piece of data: each delay is taken at the time it is met.",
    )


@claim(
    "ldcc",
    "(8)",
    "The rate at a link is the sum of the sending rates a forward delay earlier.",
    "y_l(t) = sum R_lr x_r(t - tau_f)",
    erratum=True,
)
def delayed_rates() -> Outcome:
    # A queue empty at 0 and fed x > c has q = (x - c)/c theta; data sent at theta leave it at theta + q(theta).
    cap, rate, theta = positive("c", "x", "theta")
    leaves = theta + (rate - cap) / cap * theta
    fifo = proof(Eq(rate / diff(leaves, theta), cap))
    if not fifo:
        return from_proofs(fifo, computed="")
    net = series(2e6, 2.5e6, 3e6)
    last = {
        mode: simulate(net, 10.0, samples=3, delays=mode, progress=False).isel(time=-1) for mode in ("fifo", "frozen")
    }
    into = {mode: float(r.arrival_rate.values[1]) for mode, r in last.items()}
    made = {mode: float(r.entered.values[1] + r.backlog.values[0] - r.entered.values[0]) for mode, r in last.items()}
    return Outcome(
        REFUTED,
        f"3 Mbit/s through 2 then 2.5 Mbit/s: link 2 gets {common.mbit(into['frozen'])} by (8), "
        f"{common.mbit(into['fifo'])} in order of arrival",
        "(8) does not conserve flow where a queue upstream moves: after 10 s it has made "
        f"{made['frozen'] / 1e6:.3g} Mbit from nothing. Data sent at x reach the next link at "
        "x/(1 + q') (proved; 1 - tau_f' by the time of arrival), which "
        "is c behind a busy queue. delays='fifo' has this factor; delays='frozen' is (8) as "
        "printed.",
        {"frozen": into["frozen"], "fifo": into["fifo"], "made": made["frozen"], "made_fifo": made["fifo"]},
    )


@claim(
    "ldcc",
    "(8), (31)",
    "(8) and (31) hold while the queues upstream move.",
    "no factor 1 - tau_f'",
    erratum=True,
)
def frozen_against_fifo() -> Outcome:
    fifo, frozen = run("ldcc_fig10"), run("ldcc_fig10", "frozen")
    gap = np.abs(fifo.rate.values - frozen.rate.values)[:, :3]
    worst, end = float(np.max(gap)), float(np.max(gap[-1]))
    when = float(fifo.time.values[np.argmax(np.max(gap, axis=1))])
    return Outcome(
        DIFFERS if worst > 1e-6 * float(fifo.rate.max()) else REPRODUCED,
        f"Fig. 10: rates differ by up to {common.kbit(worst, 3)} (at {when:.4g} s), by "
        f"{common.kbit(end, 1)} at the end",
        "With delays='frozen' for (8) and (31). The equilibrium is the same, the transients are "
        "not. The constant delays are those of the equilibrium with "
        "three flows.",
        {"worst": worst, "end": end, "when": when},
    )


@claim(
    "ldcc",
    "(9)",
    "The round-trip time is the one-way delay plus a backward delay that does not depend on the rate.",
    "RTT = e + e_b",
)
def round_trip() -> Outcome:
    r, net = run("ldcc_fig10"), scenarios["ldcc_fig10"].net
    back = np.array([net.return_delay(f) for f in net.flow_names])
    gap = float(np.max(np.abs(r.rtt.values - r.one_way_delay.values - back)))
    if gap > 1e-12 or not proof(Eq(RTT, e + e_b)):
        return Outcome(DIFFERS, f"the run of Fig. 10 differs from it by {ms(gap)}", "the return delay is not constant")
    return Outcome(
        REPRODUCED,
        f"throughout the run of Fig. 10, with e_b = {', '.join(ms(b) for b in back[:3])}",
        "A definition. Where the paper gives no e_b it is the forward propagation delay.",
        {"gap": gap},
    )
