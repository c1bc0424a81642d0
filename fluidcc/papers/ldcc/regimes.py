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
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import off
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, e, edot, pi, unfold, y


def user_loop(claim: Claim) -> Outcome:
    return claim.proved(at(Eq(own_loop(), loop_of_one_user(K, slope(), U2))))


def poles_of_user_loop(claim: Claim) -> Outcome:
    round_trip = Symbol("R", positive=True)
    return claim.proved(
        U2 < 0, at(Eq(REST.A[0, 0], -pole_symbol(ROUND))), -pole_symbol(round_trip) < 0
    )


def curvature(claim: Claim) -> Outcome:
    return claim.proved(Eq(U2, -w / x**2))


def penalty_slope(claim: Claim) -> Outcome:
    return claim.proved(
        Eq(diff(ABOVE, e), (beta - ABOVE) / unfold(RTT)),
        proof(Eq(V, ABOVE), where=[e > T]),
        at(Eq(slope(), (beta - w / x) / ROUND)),
    )


def zero_of_user_loop(claim: Claim) -> Outcome:
    round_trip = Symbol("R", positive=True)
    printed = (beta - w / x) / round_trip
    return claim.proved(
        proof(printed > 0, where=[x > w / beta]), proof(printed <= 0, where=[x <= w / beta])
    )


def user_loop_of_ldcc(claim: Claim) -> Outcome:
    return claim.proved(at(Eq(own_loop(), loop_symbol(ROUND))))


def places_of_pole_and_zero(claim: Claim) -> Outcome:
    round_trip = Symbol("R", positive=True)
    pole, zero = pole_symbol(round_trip), slope_symbol(round_trip)
    return claim.proved(
        at(Eq(-REST.A[0, 0], pole_symbol(ROUND))),
        at(Eq(slope(), slope_symbol(ROUND))),
        at(pole < eta * beta / round_trip),
        at(zero > 0),
        at(zero < beta / round_trip),
        at(Eq(pole / eta + zero, beta / round_trip)),
    )


def gain_divided(claim: Claim) -> Outcome:
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
    return claim.refuted_if(form and larger and later and not wrong, dict(wrong.counterexample))


def identical_flows(claim: Claim) -> Outcome:
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
    return claim.proved(*shown)


def parking_lot_eigenvalues(claim: Claim) -> Outcome:
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
    return claim.proved(*shown)


# --- Whole networks: several bottlenecks, gains, losses, and the sampled law


def several_bottlenecks(claim: Claim) -> Outcome:
    # Three links at one capacity with small cross flows: FIFO queues calm it, frozen delays do not.
    long, cross = LDCC(w=1e5, beta=2, T=0.1, eta=0.7), LDCC(w=2e3, beta=2, T=0.05, eta=0.7)
    net = parking_lot([long], [[cross]] * 3, {"capacity": 8e4, "delay": 0.02})
    fifo, frozen = unstable(net), unstable(net, "frozen")
    gain_fifo = float(margins(linearize(net, "open", delays="fifo")).gain)
    gain_frozen = float(margins(linearize(net, "open", delays="frozen")).gain_down)
    values = {"fifo": fifo, "frozen": frozen, "gain_fifo": gain_fifo, "gain_frozen": gain_frozen}
    return claim.refuted_if(not fifo and frozen, values)


def places_in_section_v(claim: Claim) -> Outcome:
    net = scenarios["ldcc_fig5"].net
    found = margins(linearize(net, "open", at=50.0))
    rest = operating_point(net, 50.0)
    trip, rate = float(rest.rest.rtt.sel(flow="flow1")), float(rest.rest.rate.sel(flow="flow1"))
    at = {x: rate, **LDCC.params}
    pole, zero = float(pole_symbol(trip).subs(at)), float(slope_symbol(trip).subs(at))
    names = ("crossover", "gain", "phase", "delay")
    values = {"pole": pole, "zero": zero} | {k: getattr(found, k) for k in names}
    return claim.reproduced_if(
        max(pole, zero) < 0.5 * found.crossover and not unstable(net, at=50.0), values
    )


def hops_neglected(claim: Claim) -> Outcome:
    found = sufficient_conditions(scenarios["ldcc_fig10"].net, equilibrium=200.0)
    rule = found["-1/M rule"]
    values = {"rule": rule.margin, "hull": found["convex hull"].margin}
    values["exact"] = rule.margin * rule.conservatism
    return claim.reproduced_if(rule.holds, values)


def stable_without_condition(claim: Claim) -> Outcome:
    low, high = 0.4, 4.0
    rest = equilibrium(_one_flow(low))  # does not depend on the gain
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if unstable(_one_flow(middle), at=rest) else (middle, high)
    values = {"critical": low}
    return claim.differs_if(unstable(_one_flow(high * 1.01)), values)


def _one_flow(gain: float) -> Network:
    return dumbbell([LDCC(eta=gain)], {"capacity": 3e6}, rtt=0.05)


def loss_driven(claim: Claim) -> Outcome:
    gain = proof(Eq(diff(unfold(FLOW), pi), -eta * x / unfold(RTT)))
    excess = proof(Eq(diff((y - c) / y, y), c / y**2))
    net = scenarios["ldcc_fig6"].net
    point = operating_point(net, 200.0)
    closed = linearize(net, at=200.0)
    by_delay = np.abs(closed.B[:, closed.n_inputs]).max()
    found = margins(linearize(net, "open", at=200.0))
    johari = np.pi / 2 / sufficient_conditions(net, equilibrium=point)["Johari-Tan"].margin
    values = {"gain": found.gain, "phase": found.phase}
    values |= {"johari": johari, "feedback": by_delay}
    return claim.differs_if(
        gain and excess and not unstable(net, at=200.0) and local_loop(point).signal == "loss",
        values,
        otherwise="refuted",
    )


def constant_delay(claim: Claim) -> Outcome:
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
    return claim.differs_if(
        values["spread"] <= 1e-9 <= values["moved"], values, otherwise="refuted"
    )


def mixed_regime(claim: Claim) -> Outcome:
    # The first of two links loses packets from a buffer of 10 packets, the second queues.
    short = {"name": "short", "capacity": 2e6, "delay": 0.01, "buffer": "10 packets"}
    both, links = {"law": LDCC, "access_delay": 0.01}, (short, {"capacity": 1.5e6, "delay": 0.02})
    net = parking_lot([both], [LDCC, LDCC], links)
    system = linearize(net)
    found = margins(linearize(net, "open"))
    count = system.count_unstable().unstable
    values = {"gain": found.gain, "phase": found.phase, "unstable": count}
    return claim.differs_if(
        set(system.point.mode.tolist()) == {BUSY, FULL},
        values,
        stable="unstable" if count else "stable",
    )


def sampled_law(claim: Claim) -> Outcome:
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
    return claim.reproduced_if(radius[1.0] < 1, values, otherwise="refuted")
