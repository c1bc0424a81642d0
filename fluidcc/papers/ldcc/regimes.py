"""Section IV-B of the LDCC paper on whole networks: several bottlenecks, gains, losses, and the sampled law."""

from __future__ import annotations

import numpy as np
from sympy import Eq, diff

from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.local import local_loop
from fluidcc.analysis.operating_point import BUSY, FULL, operating_point
from fluidcc.analysis.sampled import sampled_stability
from fluidcc.analysis.sufficient import sufficient_conditions
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell, parking_lot
from fluidcc.numerics.linear.margins import margins
from fluidcc.papers.ldcc.common import eta, ms, x
from fluidcc.papers.ldcc.law import FLOW
from fluidcc.papers.ldcc.networks import unstable
from fluidcc.papers.ldcc.user_loop import pole_symbol, slope_symbol
from fluidcc.papers.model import DIFFERS, REFUTED, REPRODUCED, Outcome, claim, proof
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, pi, unfold, y


def _flipping() -> Network:
    """Three links in a row at one capacity, whose cross flows are small: FIFO queues calm it, frozen delays do not."""
    long, cross = LDCC(w=1e5, beta=2, T=0.1, eta=0.7), LDCC(w=2e3, beta=2, T=0.05, eta=0.7)
    return parking_lot([long], [[cross], [cross], [cross]], {"capacity": 8e4, "delay": 0.02})


@claim(
    "ldcc",
    "(31), (32)",
    "(32) is the linearisation of a network with several bottlenecks on a path.",
    "R_f with constant delays",
    erratum=True,
)
def several_bottlenecks() -> Outcome:
    net = _flipping()
    fifo, frozen = unstable(net), unstable(net, "frozen")
    gains = {d: float(margins(linearize(net, "open", delays=d)).gain) for d in ("fifo",)}
    gains["frozen"] = float(margins(linearize(net, "open", delays="frozen")).gain_down)
    values = {"fifo": fifo, "frozen": frozen, "gain_fifo": gains["fifo"], "gain_frozen": gains["frozen"]}
    if fifo or not frozen:
        return Outcome(REPRODUCED, f"unstable roots: {fifo} and {frozen}", "", values)
    return Outcome(
        REFUTED,
        f"three links in a row: {frozen} unstable roots by (32), none with queues that conserve flow "
        f"(gain margins {gains['frozen']:.3g} and {gains['fifo']:.3g})",
        "What leaves a busy queue is its capacity, however the rates before it move; (31) lets their variations pass "
        "on to the next queue. To first order that adds a term for each pair of queues on a path, and here it decides: "
        "w = 100 kbit/s, beta = 2, T = 100 ms, eta = 0.7, cross flows with w = 2 kbit/s and T = 50 ms, 80 kbit/s, "
        "20 ms a link. On one bottleneck a path (32) is exact.",
        values,
    )


@claim(
    "ldcc",
    "IV-B",
    "The zero-pole couple is at low frequencies and the crossover high enough for stability (parameters of Section V).",
    "qualitative",
)
def places_in_section_v() -> Outcome:
    net = scenarios["ldcc_fig5"].net
    found = margins(linearize(net, "open", at=50.0))
    rest = operating_point(net, 50.0)
    trip, rate = float(rest.rest.rtt.sel(flow="flow1")), float(rest.rest.rate.sel(flow="flow1"))
    at = {x: rate, **LDCC.params}
    pole, zero = float(pole_symbol(trip).subs(at)), float(slope_symbol(trip).subs(at))
    values = {"pole": pole, "zero": zero, "crossover": float(found.crossover), "gain": float(found.gain),
              "phase": float(found.phase), "delay": float(found.delay)}  # fmt: skip
    if not (max(pole, zero) < 0.5 * found.crossover and linearize(net, at=50.0).count_unstable().unstable == 0):
        return Outcome(DIFFERS, str(values), "the couple is not below the crossover", values)
    return Outcome(
        REPRODUCED,
        f"Fig. 5 with two flows: pole {pole:.3g}, zero {zero:.3g}, crossover {values['crossover']:.3g} rad/s; "
        f"gain margin {values['gain']:.3g}, phase margin {values['phase']:.3g} degrees, delay margin "
        f"{ms(values['delay'], 3)}",
        "The zero is well above the pole, which costs phase at the crossover: an integrator with this delay alone "
        "would have more.",
        values,
    )


@claim(
    "ldcc",
    "V-A",
    "'we set k = 1/(2.5 RTT) and we neglect the dependency on M', the largest number of links on a route.",
    "eta = 0.4 for every M",
)
def hops_neglected() -> Outcome:
    found = sufficient_conditions(scenarios["ldcc_fig10"].net, equilibrium=200.0)
    rule = found["-1/M rule"]
    values = {"rule": rule.margin, "hull": found["convex hull"].margin, "exact": rule.margin * rule.conservatism}
    if not rule.holds:
        return Outcome(DIFFERS, rule.why, "the condition on -1/M fails", values)
    return Outcome(
        REPRODUCED,
        f"Fig. 10 with three flows, M = 2: gain may grow by {values['rule']:.4g} until the condition on -1/M fails, by "
        f"{values['hull']:.4g} until (39) does, by {values['exact']:.4g} until the network is unstable",
        "eta = 0.4 is small enough to be divided by the M of the paper's networks.",
        values,
    )


@claim(
    "ldcc",
    "IV-B",
    "'the non-linear mapping of the experienced delay leads to a stable system'.",
    "no condition on eta",
    erratum=True,
)
def stable_without_condition() -> Outcome:
    low, high = 0.4, 4.0
    rest = equilibrium(_one_flow(low))  # does not depend on the gain
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if unstable(_one_flow(middle), at=rest) else (middle, high)
    values = {"critical": low}
    if not unstable(_one_flow(high * 1.01)):
        return Outcome(REPRODUCED, "stable up to eta = 4", "", values)
    return Outcome(
        DIFFERS,
        f"one flow on 3 Mbit/s: stable up to eta = {low:.6g}, unstable beyond; the paper's 0.4 is stable",
        "With delays there is a largest gain, near pi/2 for a fast flow, as with any integrator and delay, and less "
        "where the penalty is steep. The mapping keeps the equilibrium, not stability, from depending on the delay.",
        values,
    )


def _one_flow(gain: float) -> Network:
    return dumbbell([LDCC(eta=gain)], {"capacity": 3e6}, rtt=0.05)


@claim(
    "ldcc",
    "IV-B",
    "With losses, the delay-based terms disappear from the linearisation, as the queue is full and its delay constant.",
    "last paragraph of IV-B",
)
def loss_driven() -> Outcome:
    bracket = unfold(FLOW)
    by_loss = diff(bracket, pi)
    gain = proof(Eq(by_loss, -eta * x / unfold(RTT)))
    excess = proof(Eq(diff((y - c) / y, y), c / y**2))
    net = scenarios["ldcc_fig6"].net
    point = operating_point(net, 200.0)
    loop = local_loop(point)
    stable = linearize(net, at=200.0).count_unstable().unstable == 0
    by_delay = float(np.abs(linearize(net, at=200.0).B2[:, :1]).max())
    found = margins(linearize(net, "open", at=200.0))
    johari = np.pi / 2 / sufficient_conditions(net, equilibrium=point)["Johari-Tan"].margin
    values = {"gain": float(found.gain), "phase": float(found.phase), "johari": johari, "feedback": by_delay}
    if not (gain and excess and stable and loop.signal == "loss"):
        return Outcome(REFUTED, str(values), "a full queue answers by its delay, or Fig. 6 is unstable", values)
    return Outcome(
        DIFFERS,
        f"Fig. 6 with three flows: only losses are in its linearisation; stable, gain margin {values['gain']:.4g}, "
        f"phase margin {values['phase']:.4g} degrees",
        "True: a full queue keeps its length, and dpi = (c/y^2) dy. Delay terms leave the linearisation but not the "
        "equilibrium: U' = v + pi, so w/x is not the loss alone where e > T. And the proofs that are referred to need "
        f"RTT times gain below pi/2 (here {johari:.3g}, by Johari and Tan): a condition on eta that the paper does not "
        "state, met by eta = 0.4 at every load since the gain is eta (1 - pi)/RTT.",
        values,
    )


@claim(
    "ldcc",
    "IV-B",
    "'A constant delay plays no role in the placement of eigenvalues of the linear dynamic system at equilibrium.'",
    "last paragraph of IV-B",
    erratum=True,
)
def constant_delay() -> Outcome:
    net, found = scenarios["ldcc_fig6"].net, {}
    (link,) = net.link_names
    for packets in (5, 25):
        system = linearize(net.with_link(link, buffer=f"{packets} packets"), at=200.0)
        found[packets] = float(system.point.rest.rtt.values[0]), system.roots(count=4)
    few, many = (trip * roots for trip, roots in found.values())
    values = {
        "moved": float(np.max(np.abs(found[5][1] / found[25][1] - 1))),
        "spread": float(np.max(np.abs(few / many - 1))),
        "few": float(found[5][1][0].real),
        "many": float(found[25][1][0].real),
    }
    if values["moved"] < 1e-9:
        return Outcome(REPRODUCED, "the same roots with 5 and 25 packets of buffer", "", values)
    if values["spread"] > 1e-9:
        return Outcome(REFUTED, str(values), "roots times RTT differ between buffers of 5 and 25 packets", values)
    return Outcome(
        DIFFERS,
        f"Fig. 6 with three flows and a buffer of 5 or 25 packets: the slowest root of the loop is at "
        f"{values['few']:.4g} or {values['many']:.4g}/s",
        "A full queue's delay is part of the RTT, and every root is a number over the RTT, as k = eta/RTT and the lag "
        "is the RTT: the roots times the RTT are the same to rounding. So this delay moves the roots, and does not "
        "decide about stability, as long as e < T.",
        values,
    )


def _mixed() -> Network:
    """Two links: the first loses packets from a buffer of 10 packets, the second queues."""
    net = Network().link("short", DropTail, capacity=2e6, delay=0.01, buffer="10 packets")
    net.link("long", DropTail, capacity=1.5e6, delay=0.02)
    net.flow("both", LDCC, route=["short", "long"], access_delay=0.01)
    return net.flow("a", LDCC, route=["short"]).flow("b", LDCC, route=["long"])


@claim(
    "ldcc",
    "IV-B",
    "The two parts can be studied one at a time: delays without losses, or losses at constant delay.",
    "last paragraph of IV-B",
    erratum=True,
)
def mixed_regime() -> Outcome:
    net = _mixed()
    system = linearize(net)
    mode = system.point.mode
    found = margins(linearize(net, "open"))
    count = system.count_unstable().unstable
    values = {"gain": float(found.gain), "phase": float(found.phase), "unstable": count}
    if set(mode.tolist()) != {BUSY, FULL}:
        return Outcome(REPRODUCED, f"regimes {mode.tolist()}", "", values)
    return Outcome(
        DIFFERS,
        f"a flow through a full buffer of 2 Mbit/s and a queue of 1.5 Mbit/s: one loop with losses and delays, "
        f"{'un' if count else ''}stable, gain margin {values['gain']:.3g}, phase margin {values['phase']:.3g} degrees",
        "On a path with a full link and another that queues both signals act at once: dpi = (c/y^2) dy without an "
        "integrator from the one, dq = dy/(c s) from the other. Neither (34) nor the loss-based form is its "
        "linearisation; the exact one has both.",
        values,
    )


@claim(
    "ldcc",
    "(25), V",
    "The discrete law with T_s = RTT is stable where the continuous one is.",
    "T_s = RTT, eta = 0.4",
)
def sampled_law() -> Outcome:
    net = _one_flow(0.4)
    rest = equilibrium(net)
    trip = float(rest.rtt.values[0])
    radius = {r: sampled_stability(net, r * trip, rest).radius for r in (0.5, 1.0)}
    low, high = 1.0, 64.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sampled_stability(net, middle * trip, rest).stable else (low, middle)
    continuous = float(np.exp(linearize(net).roots(1)[0].real * trip))
    values = {"radius": radius[1.0], "continuous": continuous, "critical": low, "half": radius[0.5]}
    if radius[1.0] >= 1:
        return Outcome(REFUTED, f"largest multiplier {radius[1.0]:.4g}", "one flow on 3 Mbit/s", values)
    return Outcome(
        REPRODUCED,
        f"one flow on 3 Mbit/s: largest multiplier over an RTT {radius[1.0]:.4f}, continuous law {continuous:.4f}; "
        f"stable up to T_s = {low:.4g} RTT",
        "By the monodromy of the sampled law with rectangular averages over T_s, exact for any T_s/RTT. Averaging over "
        "T_s delays by T_s/2 and holding by T_s/2 more, so large eta bear shorter intervals only; see the chart.",
        values,
    )
