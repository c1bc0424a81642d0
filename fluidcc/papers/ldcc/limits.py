"""Section II-C of the LDCC paper: what loss-based and delay-based control do, and where they fail."""

from __future__ import annotations

from sympy import Eq, Symbol, diff

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import W_OVER_BETA, kbit, near
from fluidcc.papers.ldcc.networks import QueueingDelay
from fluidcc.papers.model import DIFFERS, REPRODUCED, Outcome, claim, from_proofs, law_proof, proof
from fluidcc.sources import LDCC, Reno
from fluidcc.symbols import e, e_b, packet, pi, unfold, x_tau


@claim(
    "ldcc", "II-C", "The classical loss-based TCP can be modelled by systems governed by (12).", "x' = alpha (U' - pi)"
)
def tcp_as_gradient() -> Outcome:
    (window,) = Reno.states
    trip, (flow,) = Symbol("R", positive=True), Reno.flow.values()
    rate = Symbol("x", positive=True)
    growth = packet / trip * unfold(flow).subs(e, trip - e_b).subs({window: rate * trip / packet, x_tau: rate})
    gain = proof(-diff(growth, pi) > 0)
    slope = (growth / -diff(growth, pi)).subs(pi, 0)  # U'(x), with x' = gain (U' - pi)
    form = proof(Eq(growth, -diff(growth, pi) * (slope - pi)))
    decreasing = proof(diff(slope, rate) < 0)
    return from_proofs(
        gain,
        form,
        decreasing,
        law_proof(Reno, "square-root law"),
        computed="the fluid Reno, at constant RTT, is (12) with U' = (a/b) (packet/(RTT x))^2 and a gain "
        "alpha = b x^2/packet that grows with x",
    )


@claim("ldcc", "II-C", "An error in the propagation delay leads to unfairness among delay-based flows.", "unfair")
def latecomers() -> Outcome:
    net = Network().link("l", DropTail, capacity=3e6, delay=0.025)
    net.flow("early", QueueingDelay, route=["l"])
    alone = equilibrium(net).one_way_delay.item()
    net.flow("late", QueueingDelay(p=alone), route=["l"])  # it has never seen the queue empty
    early, late = (float(v) for v in equilibrium(net).rate.values)
    fair = Network().link("l", DropTail, capacity=3e6, delay=0.025).flow("early", LDCC, route=["l"])
    equal = equilibrium(fair.flow("late", LDCC, route=["l"])).rate.values
    # With q in units of w/c: 1/q + 1/(q - 1) = 1, so q = (3 + sqrt 5)/2 and late : early = q : q - 1 = (1 + sqrt 5)/2.
    ratio, golden = late / early, (1 + 5**0.5) / 2
    values = {"ratio": ratio, "exact": golden, "ldcc": float(equal[1] / equal[0])}
    good = abs(ratio / golden - 1) < 1e-8 and near(equal[0], equal[1])
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"a latecomer that takes the standing queue for propagation gets "
        f"{ratio:.4g} times the rate; under LDCC, which uses the total delay, 1",
        "exactly the golden ratio" if good else "by hand the golden ratio",
        values,
    )


@claim(
    "ldcc",
    "II-C",
    "A loss-based flow fills the buffer and drives purely delay-based flows to starvation.",
    "'drastically lower'",
)
def starvation() -> Outcome:
    rates = {}
    for name, law in (("queueing delay", QueueingDelay(w=5e3)), ("LDCC", LDCC)):
        net = Network().link("l", DropTail, capacity=3e6, delay=0.025, buffer=3e6)
        net.flow("delay", law, route=["l"]).flow("loss", LDCC(T=10.0), route=["l"])
        rates[name] = float(equilibrium(net).rate.sel(flow="delay"))
    exact = 5e3 / 1.0
    good = abs(rates["queueing delay"] - exact) < 1e-3 and rates["LDCC"] > 0.9 * W_OVER_BETA
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"1 s of buffer filled by a loss-based flow leaves {kbit(exact)} (w/q) to "
        f"a flow that reacts to queueing delay, and {kbit(rates['LDCC'])} to LDCC",
        "The loss-based flow is LDCC without its delay penalty; the queue-based one has w = 5 kbit, which alone "
        "would give it all of the link at 1.7 ms of queue.",
        rates,
    )
