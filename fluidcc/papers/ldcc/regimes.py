"""Section IV-B of the LDCC paper: the loop of one user, (40) to (43), and whole networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, I, Symbol, conjugate, diff, exp, eye, factor, lambdify, simplify

from fluidcc.analysis.boundary import Boundary, stability_boundary
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.operating import operating_point
from fluidcc.analysis.point import BUSY, FULL
from fluidcc.analysis.sampled import sampled_stability
from fluidcc.analysis.stability import stability
from fluidcc.conditions.local import local_loop
from fluidcc.conditions.sufficient import sufficient_conditions
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell, parking_lot
from fluidcc.numerics.linear.margins import margins
from fluidcc.papers.ldcc.common import T, beta, eta, unstable, w, with_law, x
from fluidcc.papers.ldcc.law import ABOVE, FLOW, V
from fluidcc.papers.ldcc.stability import (
    REST,
    ROUND,
    U2,
    K,
    as_printed,
    at,
    chart,
    loop_symbol,
    own_loop,
    pole_symbol,
    s,
    slope,
    slope_symbol,
)
from fluidcc.papers.model import (
    Found,
    differs_if,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import off
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, e, edot, pi, positive, unfold, y

_R = positive("R")


def normalisation_stability() -> Found:
    # In units of the round trip; `bare` has the zero of the penalty beta (e - T)/(2 T).
    z = positive("z")
    loop = loop_symbol(_R)
    bare = loop * (beta / (2 * T) + s) / (slope_symbol(_R) + s)
    own, moved = (
        proof(Eq(f.subs(s, z / _R), f.subs({s: z, _R: 1})), x > w / beta) for f in (loop, bare)
    )
    return proved(own, checks=moved.status == "refuted")


def derivative_helps() -> Found:
    net = scenarios["ldcc_fig5"].net
    without = with_law(net, replace(LDCC, claims={}, flow={x: FLOW.subs(edot, 0)}))
    (root,) = stability(without, at=50.0).rightmost_roots[:1]
    return reproduced_if(
        not unstable(net, at=50.0) and unstable(without, at=50.0),
        root=root.real,
        slowest=stability(net, at=50.0).rightmost_roots[0].real,
        omega=abs(root.imag),
    )


def user_loop() -> Found:
    return proved(as_printed())


def poles_of_user_loop() -> Found:
    bend = positive("b")  # -U'' of any concave utility
    return proved(
        U2 < 0,
        at(-K * x * bend < 0),
        at(Eq(REST.A[0, 0], -pole_symbol(ROUND))),
        -pole_symbol(_R) < 0,
    )


def curvature() -> Found:
    return proved(Eq(U2, -w / x**2))


def penalty_slope() -> Found:
    return proved(
        Eq(diff(ABOVE, e), (beta - ABOVE) / unfold(RTT)),
        proof(Eq(V, ABOVE), e > T),
        at(Eq(slope(), slope_symbol(ROUND))),
    )


def zero_of_user_loop() -> Found:
    printed = slope_symbol(_R)
    return proved(at(printed > 0), proof(printed <= 0, x <= w / beta))


def user_loop_of_ldcc() -> Found:
    return proved(at(Eq(own_loop(), loop_symbol(ROUND))))


def places_of_pole_and_zero() -> Found:
    pole, zero = pole_symbol(_R), slope_symbol(_R)
    return proved(
        at(Eq(-REST.A[0, 0], pole_symbol(ROUND))),
        at(Eq(slope(), slope_symbol(ROUND))),
        at(pole < eta * beta / _R),
        at(zero > 0),
        at(zero < beta / _R),
        at(Eq(pole / eta + zero, beta / _R)),
    )


def gain_divided() -> Found:
    # M = 1 + m, so that its being above 1 is an assumption.
    M, omega, a, more = positive("M omega a m")
    pole, loop = pole_symbol(_R), loop_symbol(_R)
    divided = M * loop.subs(eta, eta / M)
    form = proof(Eq(simplify(divided / loop), (s + pole) / (s + pole / M)))
    turned = (I * omega + a) / (I * omega + a / (1 + more))
    larger = proof(factor(simplify(turned * conjugate(turned)) - 1) > 0)
    later = proof(factor(simplify((turned - conjugate(turned)) / (2 * I))) < 0)
    found = chart()
    over = (found["divided"] / found["rule"])[1:]  # beside M = 1
    return differs_if(
        form and larger and later and over.min() > 1,
        lots=over.size,
        least=over.min(),
        most=over.max(),
    )


def identical_flows() -> Found:
    own, count = -REST.A[0, 0], Symbol("N", positive=True, integer=True)
    heard = REST.B[0, LDCC.inputs.index(e)] + s * REST.B[0, LDCC.inputs.index(edot)]
    lag = exp(-s * ROUND)
    second = s**2 + own * s + K * x * count / c * (s + slope()) * lag
    # Schur complement of the diagonal block of N users, for every N; the whole determinant for
    # small ones.
    shown = [at(Eq((s + own) * (s - count * heard * lag / c / (s + own)), second))]
    a, h, E, cap = positive("a h E c")  # pole, drive, delay, capacity
    for n in range(1, 6):
        M = (s + a) * eye(n + 1)
        for i in range(n):
            M[i, n], M[n, i] = h * E, -1 / cap
        M[n, n] = s
        whole = (s + a) ** (n - 1) * (s * (s + a) + n * h * E / cap)
        shown.append(proof(Eq(M.det(method="berkowitz"), whole)))
    return proved(*shown)


def parking_lot_eigenvalues() -> Found:
    cross, long, n, m, xc, xl, cap, t, other, M = positive("G_c G_l n m x_c x_l c t_i t_j M")
    u = Symbol("u_j", real=True)
    alone, outer = n * xc * cross / cap, m * xl * long / cap * exp(-s * (t - other))
    # Entry (i, j) of F is `outer`, and `alone` more where i = j. So F maps exp(-s t_j), of M
    # entries, to that times one eigenvalue, and any u with sum exp(s t_j) u_j = 0 to alone u.
    vector = exp(-s * t)
    together = (n * xc * cross + M * m * xl * long) / cap
    return proved(
        Eq(alone * vector + M * (outer * exp(-s * other)).simplify(), together * vector),
        Eq(outer * u, m * xl * long / cap * vector * (exp(s * other) * u)),
    )


# --- Whole networks: several bottlenecks, gains, losses, and the sampled law


def several_bottlenecks() -> Found:
    # Three links at one capacity with small cross flows: FIFO queues calm it, frozen delays do not.
    long, cross = LDCC(w=1e5, beta=2, T=0.1, eta=0.7), LDCC(w=2e3, beta=2, T=0.05, eta=0.7)
    net = parking_lot([long], [[cross]] * 3, {"capacity": 8e4, "delay": 0.02})
    fifo, frozen = unstable(net), unstable(net, "frozen")
    return differs_if(
        not fifo and frozen,
        fifo=fifo,
        frozen=frozen,
        gain_fifo=margins(linearize(net, "open", delays="fifo")).gain,
        gain_frozen=margins(linearize(net, "open", delays="frozen")).gain_below,
    )


def places_in_section_v() -> Found:
    net = scenarios["ldcc_fig5"].net
    found = margins(linearize(net, "open", at=50.0))
    rest = equilibrium(net, at=50.0)
    at = {x: rest.rate[0].item(), **LDCC.params}
    trip = rest.rtt[0].item()
    pole, zero = (f(trip).subs(at) for f in (pole_symbol, slope_symbol))
    size = lambdify(s, loop_symbol(trip).subs(at), "numpy")
    own = brentq(lambda omega: abs(size(1j * omega)) - 1, 1e-3 / trip, 10 / trip)
    return reproduced_if(
        max(pole, zero) < min(own, found.crossover) and not unstable(net, at=50.0),
        pole=pole,
        zero=zero,
        own=own,
        crossover=found.crossover,
        gain=found.gain,
        phase=found.phase,
        delay=found.delay,
    )


def hops_neglected() -> Found:
    found = sufficient_conditions(scenarios["ldcc_fig10"].net, equilibrium=200.0)
    rule = found["-1/M rule"]
    return reproduced_if(
        rule.holds,
        rule=rule.margin,
        hull=found["convex hull"].margin,
        exact=rule.margin * rule.conservatism,
    )


def _one_flow(gain: float) -> Network:
    return dumbbell([LDCC(eta=gain)], {"capacity": 3e6}, rtt=0.05)


def stable_without_condition() -> Found:
    found = stability_boundary(_one_flow(0.4), "eta")
    assert isinstance(found, Boundary)
    sides = [unstable(_one_flow(gain)) > 0 for gain in (0.4, found.value * 1.01)]
    return differs_if(sides == [False, True], critical=found.value)


def loss_driven() -> Found:
    gain = proof(Eq(diff(unfold(FLOW), pi), -eta * x / unfold(RTT)))
    excess = proof(Eq(diff((y - c) / y, y), c / y**2))
    net = scenarios["ldcc_fig6"].net
    point, closed = operating_point(net, 200.0), linearize(net, at=200.0)
    found = margins(linearize(net, "open", at=200.0))
    return differs_if(
        gain and excess and not unstable(net, at=200.0) and local_loop(point).signal == "loss",
        gain=found.gain,
        phase=found.phase,
        johari=np.pi / 2 / sufficient_conditions(net, equilibrium=point)["Johari-Tan"].margin,
        feedback=np.abs(closed.B[:, closed.n_inputs]).max(),
        otherwise="refuted",
    )


def constant_delay() -> Found:
    net = scenarios["ldcc_fig6"].net
    (link,) = net.link_names
    nets = [net.with_link(link, buffer=f"{packets} packets") for packets in (5, 25)]
    few, many = (stability(one, at=200.0).rightmost_roots for one in nets)
    short, long = (equilibrium(one, at=200.0).rtt.values[0] for one in nets)
    spread, moved = off(short * few, long * many), off(few, many)
    return differs_if(
        spread <= 1e-9 <= moved,
        moved=moved,
        spread=spread,
        few=few[0].real,
        many=many[0].real,
        otherwise="refuted",
    )


def mixed_regime() -> Found:
    # The first of two links loses packets from a buffer of 10 packets, the second queues.
    short = {"name": "short", "capacity": 2e6, "delay": 0.01, "buffer": "10 packets"}
    both, links = {"law": LDCC, "access_delay": 0.01}, (short, {"capacity": 1.5e6, "delay": 0.02})
    net = parking_lot([both], [LDCC, LDCC], links)
    found, count, rest = margins(linearize(net, "open")), unstable(net), equilibrium(net)
    loss, delay = rest.loss.values[0], rest.one_way_delay.values[0]
    return differs_if(
        set(linearize(net).point.mode.tolist()) == {BUSY, FULL}
        and loss > 0
        and delay > LDCC.parameter("T"),
        loss=loss,
        delay=delay,
        gain=found.gain,
        phase=found.phase,
        unstable=count,
        stable="unstable" if count else "stable",
    )


def sampled_law() -> Found:
    def radius(gain: float) -> float:
        net = _one_flow(gain)
        rest = equilibrium(net)
        return sampled_stability(net, rest.rtt.values[0], rest).radius

    longest = stability_boundary(_one_flow(0.4), "eta")
    assert isinstance(longest, Boundary)
    critical = brentq(lambda gain: radius(gain) - 1, 0.4, 3.0)
    return differs_if(
        radius(0.4) < 1 and critical < longest.value,
        radius=radius(0.4),
        critical=critical,
        longest=longest.value,
        one=radius(1.0),
    )
