"""Section IV-B of the LDCC paper: the loop of one user, (40) to (43), and whole networks."""

from __future__ import annotations

import numpy as np
from sympy import Dummy, Eq, I, Matrix, Symbol, conjugate, diff, exp, factor, prod, simplify

from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.local import local_loop
from fluidcc.analysis.operating_point import operating_point
from fluidcc.analysis.point import BUSY, FULL
from fluidcc.analysis.sampled import sampled_stability
from fluidcc.analysis.sufficient import sufficient_conditions
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell, parking_lot
from fluidcc.numerics.linear.margins import margins
from fluidcc.papers.ldcc.common import T, beta, eta, positive, unstable, w, x
from fluidcc.papers.ldcc.law import ABOVE, FLOW, V
from fluidcc.papers.ldcc.stability import (
    REST,
    ROUND,
    U2,
    K,
    at,
    loop_of_one_user,
    loop_symbol,
    own_loop,
    pole_symbol,
    s,
    slope,
    slope_symbol,
)
from fluidcc.papers.model import (
    REFUTED,
    Outcome,
    claim,
    differs_if,
    from_proofs,
    proof,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import at_values, ms, off
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, e, edot, pi, unfold, y


@claim("(40)", "one integrator, one pole, one zero, one delay")
def user_loop() -> Outcome:
    """G_r(jw) = k_r e^{-jw RTT}/(jw) (v' + jw)/(jw - k_r x_r U'')."""
    return from_proofs(
        at(Eq(own_loop(), loop_of_one_user(K, slope(), U2))),
        computed="from the law; s = jw by analytic continuation",
    )


@claim("(40)", "0 and k x U'' < 0")
def poles_of_user_loop() -> Outcome:
    """Both poles of (40) are non positive."""
    round_trip = Symbol("R", positive=True)
    return from_proofs(
        U2 < 0,
        at(Eq(REST.A[0, 0], -pole_symbol(ROUND))),
        -pole_symbol(round_trip) < 0,
        computed="0, and k x U'' = -eta w/(x RTT) < 0, by concavity alone",
    )


@claim("(41)", "-w/x^2")
def curvature() -> Outcome:
    """U'' = -w/x^2."""
    return from_proofs(Eq(U2, -w / x**2), computed="by differentiation of (16)")


@claim("(42)", "(beta - w/x)/RTT")
def penalty_slope() -> Outcome:
    """v' = (beta - w/x)/RTT at an equilibrium."""
    return from_proofs(
        Eq(diff(ABOVE, e), (beta - ABOVE) / unfold(RTT)),
        proof(Eq(V, ABOVE), where=[e > T]),
        at(Eq(slope(), (beta - w / x) / ROUND)),
        computed="v' = (beta - v)/RTT for all e > T, and v = U' = w/x at an equilibrium",
    )


@claim("(42)", "x > w/beta")
def zero_of_user_loop() -> Outcome:
    """The zero of (40) is negative iff x > w/beta."""
    round_trip = Symbol("R", positive=True)
    printed = (beta - w / x) / round_trip
    return from_proofs(
        proof(printed > 0, where=[x > w / beta]),
        proof(printed <= 0, where=[x <= w / beta]),
        computed="the zero is at -v', and v' > 0 iff x > w/beta: by (20) at every equilibrium "
        "without losses",
    )


@claim("(43)", "with eta = k RTT")
def user_loop_of_ldcc() -> Outcome:
    """G_r(jw) = eta e^{-jw RTT}/(jw RTT) ((beta - w/x)/RTT + jw)/(jw + eta w/(x RTT))."""
    return from_proofs(
        at(Eq(own_loop(), loop_symbol(ROUND))), computed="from the law, at the equilibrium (19)"
    )


@claim("(43)", "bounds")
def places_of_pole_and_zero() -> Outcome:
    """The pole is not at more than eta beta/RTT, the zero between 0 and beta/RTT."""
    round_trip = Symbol("R", positive=True)
    pole, zero = pole_symbol(round_trip), slope_symbol(round_trip)
    return from_proofs(
        at(Eq(-REST.A[0, 0], pole_symbol(ROUND))),
        at(Eq(slope(), slope_symbol(ROUND))),
        at(pole < eta * beta / round_trip),
        at(zero > 0),
        at(zero < beta / round_trip),
        at(Eq(pole / eta + zero, beta / round_trip)),
        computed="proved, as x > w/beta; moreover pole/eta + zero = beta/RTT",
        reason="So with eta = 1 the two always lie symmetrically about beta/(2 RTT).",
    )


@claim("IV-B", "eta -> eta/M", erratum=True)
def gain_divided() -> Outcome:
    """'The value of the normalized gain eta_r should be divided by M according to Eq. (39).'"""
    M, round_trip = positive("M", "R")
    pole, loop = pole_symbol(round_trip), loop_symbol(round_trip)
    wrong = proof(Eq(M * loop.subs(eta, eta / M), loop), where=[M > 1])
    ratio = simplify(M * loop.subs(eta, eta / M) / loop)
    form = proof(Eq(ratio, (s + pole) / (s + pole / M)))
    # M = 1 + m, so that its being above 1 is an assumption.
    omega, a, more = positive("omega", "a", "m")
    turned = (I * omega + a) / (I * omega + a / (1 + more))
    larger = proof(factor(simplify(turned * conjugate(turned)) - 1) > 0)
    later = proof(factor(simplify((turned - conjugate(turned)) / (2 * I))) < 0)
    return refuted_if(
        form and larger and later and not wrong,
        "M G_r(s; eta/M) = G_r(s; eta) (s + a)/(s + a/M) with a = eta w/(x RTT), proved",
        "G_r is not proportional to eta, which also moves its pole. The factor (jw + a)/(jw + "
        "a/M) has modulus above 1 and a negative phase at every w, both proved: dividing eta by M "
        "leaves less margin than the condition on -1/M asks for. Not equal, for instance, at "
        f"{at_values(wrong.counterexample)}.",
        dict(wrong.counterexample),
    )


@claim("IV-B", "not in the paper")
def identical_flows() -> Outcome:
    """N identical flows on one link: (s + a)^(N-1) [s^2 + a s + k rho (s + v') e^-sRTT], rho = N
    x/c."""
    shown, a, count = [], -REST.A[0, 0], Symbol("N", positive=True, integer=True)
    heard = REST.B[0, LDCC.inputs.index(e)] + s * REST.B[0, LDCC.inputs.index(edot)]
    lag = exp(-s * ROUND)
    second = s**2 + a * s + K * x * count / c * (s + slope()) * lag
    # Schur complement of the diagonal block of N users, for every N; the whole determinant for
    # small ones.
    shown.append(at(Eq((s + a) * (s - count * heard * lag / c / (s + a)), second)))
    pole, drive, delay, capacity = (Dummy(name, positive=True) for name in ("a", "h", "E", "c"))
    for n in range(1, 6):
        M = Matrix.zeros(n + 1)
        for i in range(n):
            M[i, i], M[i, n], M[n, i] = s + pole, drive * delay, -1 / capacity
        M[n, n] = s
        whole = (s + pole) ** (n - 1) * (s * (s + pole) + n * drive * delay / capacity)
        shown.append(proof(Eq(M.det(method="berkowitz"), whole)))
    return from_proofs(
        *shown,
        computed="by the Schur complement of the users, for every N, and as a determinant for N = "
        "1 to 5",
        reason="The N - 1 modes at -a = -eta w/(x RTT) make rates equal; no delay can upset them.",
    )


@claim("IV-B", "not in the paper")
def parking_lot_eigenvalues() -> Outcome:
    """Symmetric parking lot (n cross flows a link, m long flows over all M): eigenvalues of F in
    closed form."""
    cross, long, n, m, xc, xl, cap = positive("G_c", "G_l", "n", "m", "x_c", "x_l", "c")
    shown = []
    for hops in (2, 3, 4):
        lags = [Symbol(f"t{l}", positive=True) for l in range(hops)]
        outer = Matrix(hops, hops, lambda i, j, lags=lags: exp(-s * (lags[i] - lags[j])))
        F = (n * xc * cross * Matrix.eye(hops) + m * xl * long * outer) / cap
        z = Dummy("z", positive=True)
        alone, together = n * xc * cross / cap, (n * xc * cross + hops * m * xl * long) / cap
        polynomial = (z * Matrix.eye(hops) - F).det(method="berkowitz")
        shown.append(proof(Eq(polynomial, prod([z - alone] * (hops - 1)) * (z - together))))
    return from_proofs(
        *shown,
        computed="n x_c G_c/c, M - 1 times, and (n x_c G_c + M m x_l G_l)/c; for M = 2, 3, 4",
        reason="The long flows' part is a matrix of rank one, whatever the delays between the "
        "links, so the same holds for every M. With (32); queues that conserve flow couple "
        "the links further.",
    )


# --- Whole networks: several bottlenecks, gains, losses, and the sampled law


@claim("(31), (32)", "R_f with constant delays", erratum=True)
def several_bottlenecks() -> Outcome:
    """(32) is the linearisation of a network with several bottlenecks on a path."""
    # Three links at one capacity with small cross flows: FIFO queues calm it, frozen delays do not.
    long, cross = LDCC(w=1e5, beta=2, T=0.1, eta=0.7), LDCC(w=2e3, beta=2, T=0.05, eta=0.7)
    net = parking_lot([long], [[cross]] * 3, {"capacity": 8e4, "delay": 0.02})
    fifo, frozen = unstable(net), unstable(net, "frozen")
    gain_fifo = float(margins(linearize(net, "open", delays="fifo")).gain)
    gain_frozen = float(margins(linearize(net, "open", delays="frozen")).gain_down)
    values = {"fifo": fifo, "frozen": frozen, "gain_fifo": gain_fifo, "gain_frozen": gain_frozen}
    return refuted_if(
        not fifo and frozen,
        f"three links in a row: {frozen} unstable roots by (32), none with queues that conserve "
        f"flow (gain margins {gain_frozen:.3g} and {gain_fifo:.3g})",
        "What leaves a busy queue is its capacity, however the rates before it move; (31) lets "
        "their variations pass on to the next queue. To first order that adds a term for each pair "
        "of queues on a path, and here it decides: w = 100 kbit/s, beta = 2, T = 100 ms, eta = "
        "0.7, cross flows with w = 2 kbit/s and T = 50 ms, 80 kbit/s, 20 ms a link. On one "
        "bottleneck a path (32) is exact.",
        values,
    )


@claim("IV-B", "qualitative")
def places_in_section_v() -> Outcome:
    """The zero-pole couple is at low frequencies and the crossover high enough for stability
    (parameters of Section V)."""
    net = scenarios["ldcc_fig5"].net
    found = margins(linearize(net, "open", at=50.0))
    rest = operating_point(net, 50.0)
    trip, rate = float(rest.rest.rtt.sel(flow="flow1")), float(rest.rest.rate.sel(flow="flow1"))
    at = {x: rate, **LDCC.params}
    pole, zero = float(pole_symbol(trip).subs(at)), float(slope_symbol(trip).subs(at))
    names = ("crossover", "gain", "phase", "delay")
    values = {"pole": pole, "zero": zero} | {k: getattr(found, k) for k in names}
    return reproduced_if(
        max(pole, zero) < 0.5 * found.crossover and not unstable(net, at=50.0),
        f"Fig. 5 with two flows: pole {pole:.3g}, zero {zero:.3g}, crossover "
        f"{values['crossover']:.3g} rad/s; gain margin {values['gain']:.3g}, phase margin "
        f"{values['phase']:.3g} degrees, delay margin {ms(values['delay'], 3)}",
        "The zero is well above the pole, which costs phase at the crossover: an integrator with "
        "this delay alone would have more.",
        values,
    )


@claim("V-A", "eta = 0.4 for every M")
def hops_neglected() -> Outcome:
    """'we set k = 1/(2.5 RTT) and we neglect the dependency on M', the largest number of links on
    a route."""
    found = sufficient_conditions(scenarios["ldcc_fig10"].net, equilibrium=200.0)
    rule = found["-1/M rule"]
    values = {"rule": rule.margin, "hull": found["convex hull"].margin}
    values["exact"] = rule.margin * rule.conservatism
    return reproduced_if(
        rule.holds,
        f"Fig. 10 with three flows, M = 2: gain may grow by {values['rule']:.4g} until the "
        f"condition on -1/M fails, by {values['hull']:.4g} until (39) does, by "
        f"{values['exact']:.4g} until the network is unstable",
        "eta = 0.4 is small enough to be divided by the M of the paper's networks.",
        values,
    )


@claim("IV-B", "no condition on eta", erratum=True)
def stable_without_condition() -> Outcome:
    """'the non-linear mapping of the experienced delay leads to a stable system'."""
    low, high = 0.4, 4.0
    rest = equilibrium(_one_flow(low))  # does not depend on the gain
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if unstable(_one_flow(middle), at=rest) else (middle, high)
    values = {"critical": low}
    return differs_if(
        unstable(_one_flow(high * 1.01)),
        f"one flow on 3 Mbit/s: stable up to eta = {low:.6g}, unstable beyond; the paper's 0.4 is "
        "stable",
        "With delays there is a largest gain, near pi/2 for a fast flow, as with any integrator "
        "and delay, and less where the penalty is steep. The mapping keeps the equilibrium, not "
        "stability, from depending on the delay.",
        values,
    )


def _one_flow(gain: float) -> Network:
    return dumbbell([LDCC(eta=gain)], {"capacity": 3e6}, rtt=0.05)


@claim("IV-B", "last paragraph of IV-B")
def loss_driven() -> Outcome:
    """With losses, the delay-based terms disappear from the linearisation, as the queue is full
    and its delay constant."""
    gain = proof(Eq(diff(unfold(FLOW), pi), -eta * x / unfold(RTT)))
    excess = proof(Eq(diff((y - c) / y, y), c / y**2))
    net = scenarios["ldcc_fig6"].net
    point = operating_point(net, 200.0)
    by_delay = np.abs(linearize(net, at=200.0).B2[:, :1]).max()
    found = margins(linearize(net, "open", at=200.0))
    johari = np.pi / 2 / sufficient_conditions(net, equilibrium=point)["Johari-Tan"].margin
    values = {"gain": found.gain, "phase": found.phase}
    values |= {"johari": johari, "feedback": by_delay}
    return differs_if(
        gain and excess and not unstable(net, at=200.0) and local_loop(point).signal == "loss",
        "Fig. 6 with three flows: only losses are in its linearisation; stable, gain margin "
        f"{values['gain']:.4g}, phase margin {values['phase']:.4g} degrees",
        "True: a full queue keeps its length, and dpi = (c/y^2) dy. Delay terms leave the "
        "linearisation but not the equilibrium: U' = v + pi, so w/x is not the loss alone where e "
        "> T. And the proofs that are referred to need RTT times gain below pi/2 (here "
        f"{johari:.3g}, by Johari and Tan): a condition on eta that the paper does not state, met "
        "by eta = 0.4 at every load since the gain is eta (1 - pi)/RTT.",
        values,
        otherwise=REFUTED,
    )


@claim("IV-B", "last paragraph of IV-B", erratum=True)
def constant_delay() -> Outcome:
    """'A constant delay plays no role in the placement of eigenvalues of the linear dynamic system
    at equilibrium.'"""
    net, found = scenarios["ldcc_fig6"].net, {}
    (link,) = net.link_names
    for packets in (5, 25):
        system = linearize(net.with_link(link, buffer=f"{packets} packets"), at=200.0)
        found[packets] = system.point.rest.rtt.values[0], system.roots(count=4)
    few, many = (trip * roots for trip, roots in found.values())
    values = {
        "moved": off(found[5][1], found[25][1]),
        "spread": off(few, many),
        "few": found[5][1][0].real,
        "many": found[25][1][0].real,
    }
    return differs_if(
        values["spread"] <= 1e-9 <= values["moved"],
        "Fig. 6 with three flows and a buffer of 5 or 25 packets: the slowest root of the loop is "
        f"at {values['few']:.4g} or {values['many']:.4g}/s",
        "A full queue's delay is part of the RTT, and every root is a number over the RTT, as k = "
        "eta/RTT and the lag is the RTT: the roots times the RTT are the same to rounding. So this "
        "delay moves the roots, and does not decide about stability, as long as e < T.",
        values,
        otherwise=REFUTED,
    )


@claim("IV-B", "last paragraph of IV-B", erratum=True)
def mixed_regime() -> Outcome:
    """The two parts can be studied one at a time: delays without losses, or losses at constant
    delay."""
    # The first of two links loses packets from a buffer of 10 packets, the second queues.
    short = {"name": "short", "capacity": 2e6, "delay": 0.01, "buffer": "10 packets"}
    both, links = {"law": LDCC, "access_delay": 0.01}, (short, {"capacity": 1.5e6, "delay": 0.02})
    net = parking_lot([both], [LDCC, LDCC], links)
    system = linearize(net)
    found = margins(linearize(net, "open"))
    count = system.count_unstable().unstable
    values = {"gain": found.gain, "phase": found.phase, "unstable": count}
    return differs_if(
        set(system.point.mode.tolist()) == {BUSY, FULL},
        "a flow through a full buffer of 2 Mbit/s and a queue of 1.5 Mbit/s: one loop with losses "
        f"and delays, {'un' if count else ''}stable, gain margin {values['gain']:.3g}, phase "
        f"margin {values['phase']:.3g} degrees",
        "On a path with a full link and another that queues both signals act at once: dpi = "
        "(c/y^2) dy without an integrator from the one, dq = dy/(c s) from the other. Neither (34) "
        "nor the loss-based form is its linearisation; the exact one has both.",
        values,
    )


@claim("(25), V", "T_s = RTT, eta = 0.4")
def sampled_law() -> Outcome:
    """The discrete law with T_s = RTT is stable where the continuous one is."""
    net = _one_flow(0.4)
    rest = equilibrium(net)
    trip = rest.rtt.values[0]
    radius = {r: sampled_stability(net, r * trip, rest).radius for r in (0.5, 1.0)}
    low, high = 1.0, 64.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        stable = sampled_stability(net, middle * trip, rest).stable
        low, high = (middle, high) if stable else (low, middle)
    continuous = float(np.exp(linearize(net).roots(1)[0].real * trip))
    values = {"radius": radius[1.0], "continuous": continuous, "critical": low, "half": radius[0.5]}
    return reproduced_if(
        radius[1.0] < 1,
        f"one flow on 3 Mbit/s: largest multiplier over an RTT {radius[1.0]:.4f}, continuous law "
        f"{continuous:.4f}; stable up to T_s = {low:.4g} RTT",
        "By the monodromy of the sampled law with rectangular averages over T_s, exact for any "
        "T_s/RTT. Averaging over T_s delays by T_s/2 and holding by T_s/2 more, so large eta bear "
        "shorter intervals only; see the chart.",
        values,
        otherwise=REFUTED,
    )
