"""Section IV-A and Appendix A of the LDCC paper: passivity, (26) to (29) and (45) to (48)."""

from __future__ import annotations

import numpy as np
from sympy import Eq, I, Max, Symbol, conjugate, diff, integrate, log, re, simplify, symbols

from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import T, beta, w, x
from fluidcc.papers.ldcc.law import ABOVE, FLOW, V
from fluidcc.papers.ldcc.law import GAIN as K
from fluidcc.papers.ldcc.stability import REST, U2, pole_and_zero, pole_symbol, slope_symbol
from fluidcc.papers.ldcc.undelayed import (
    Undelayed,
    check_storage,
    evaluated,
    paper_storage,
    repaired_storage,
    steepest,
    undelayed,
)
from fluidcc.papers.model import Found, differs_if, proof, proved, proved_if, refuted_if
from fluidcc.sources import LDCC
from fluidcc.symbols import c, e, e_b, edot, nonnegative, pi, plain, positive, unfold, y

HAT, ALPHA = positive("xhat alpha")
GAIN = unfold(K)
_d, _z = positive("d z")
(QUEUE,) = DropTail.flow.values()


def supply_rates_cancel() -> Found:
    y1, y2 = symbols("y1 y2", real=True)  # a part of the two outputs; the inputs are -y2 and y1
    return proved(Eq(-y2 * y1 + y1 * y2, 0))


def equilibrium_conditions() -> Found:
    still = FLOW.subs({pi: 0, edot: 0})
    spare, gap = nonnegative("s"), positive("g")
    return proved(
        Eq(unfold(still), unfold(GAIN * x * (w / x - V))),
        Eq(GAIN * x * (w / x - V), GAIN * (w - x * V)),
        Eq(QUEUE.subs(y, c), 0),
        Max(QUEUE.subs(y, c - spare), 0) <= 0,
        QUEUE.subs(y, c + gap) > 0,
        QUEUE.subs(y, c - gap) < 0,
    )


def user_storage_positive() -> Found:
    value = integrate((_z - HAT) / _z, (_z, HAT, x))
    return proved(
        Eq(value, x - HAT - HAT * log(x / HAT)),
        Eq(diff(value, x), (x - HAT) / x),
        diff(value, x, 2) > 0,
        Eq(value.subs(x, HAT), 0),
    )


def gain_before_the_sum() -> Found:
    k1, k2, d1, d2, z1, z2 = positive("k1 k2 d1 d2 z1 z2")
    # V_user' with each user's own motion x_r' = k_r x_r z_r, deviations d_r: (45a) has sum d_r
    # z_r/alpha.
    wanted = (d1 * z1 + d2 * z2) / ALPHA
    before = proof(Eq((d1 * k1 * z1 + d2 * k2 * z2) / (k1 * ALPHA), wanted))
    inside = proof(Eq(d1 * k1 * z1 / (k1 * ALPHA) + d2 * k2 * z2 / (k2 * ALPHA), wanted))
    return differs_if(before.status == "refuted" and inside, before.counterexample)


def _two_links() -> Undelayed:
    """One flow through 2 and 3 Mbit/s: the second link is not saturated."""
    net = Network().link("first", DropTail, capacity=2e6, delay=0.025)
    net.link("second", DropTail, capacity=3e6, delay=0.01)
    return undelayed(net.flow("flow", LDCC, route=["first", "second"]), held=("k",))


def link_storage_offset() -> Found:
    system = _two_links()
    printed, meant = (paper_storage(system, literal=literal) for literal in (True, False))
    found = check_storage(system, printed, samples=256)
    spare = positive("s")
    definite = proof(c * _d**2 / 2 + spare * _d / ALPHA > 0)
    return differs_if(
        not found.positive_definite and not meant.offset and definite, offset=printed.offset
    )


# --- Appendix A, (45) to (48), step by step

_q, _q_hat = positive("q qhat")
RATE = unfold(FLOW).subs(pi, 0)
STEEPEST = beta / (T + e_b)
"""The largest slope of (17), at e = T."""


def users_derivative() -> Found:
    gradient = (x - HAT) / (x * GAIN * ALPHA)
    return proved(Eq(gradient * RATE, (x - HAT) * (w / x - V - edot) / ALPHA))


def users_projection() -> Found:
    z = Symbol("z", real=True)
    return proved(-HAT * Max(z, 0) <= -HAT * z, proof(Eq(w / x, REST.put(ABOVE)), x > w / beta))


def _fig5() -> Undelayed:
    """Fig. 5 with two LDCC flows and the constant one, without communication delays and with k
    held."""
    return undelayed(scenarios["ldcc_fig5"].net, at=50.0, held=("k",))


def users_inequality() -> Found:
    dx, de, dv = positive("dx de dv")
    fails = proof(-dx * dv / ALPHA > -dx * de, dv < ALPHA * de)
    system = _fig5()
    alpha, delay = steepest(system), system.rest.one_way_delay[0].item()
    rate = system.rest.rate[0].item()
    own = V.subs({**system.net.flows["flow1"].law.params, e_b: system.net.return_delay("flow1")})
    rise = own.subs(e, delay + 0.01) - own.subs(e, delay)
    left, right = -0.1 * rate * rise / alpha, -0.1 * rate * 0.01
    return refuted_if(
        fails and left >= right, left=left, right=right, alpha=alpha, rate=rate, delay=delay
    )


def slope_inequality() -> Found:
    # Written from T upwards, where v rises: from T + a to T + a + d, and back.
    a = positive("a")
    rise = simplify(ABOVE.subs(e, T + a + _d) - ABOVE.subs(e, T + a))
    above, below = proof(STEEPEST * _d - rise > 0), proof(-rise - STEEPEST * -_d > 0)
    largest = proof(diff(ABOVE, e).subs(e, T + a) < STEEPEST)
    return refuted_if(above and below and largest)


def routing_adjoint() -> Found:
    crosses, rate, delay = symbols("R x d", real=True)  # a term of both double sums
    return proved(Eq(rate * (crosses * delay), (crosses * rate) * delay))


def users_dissipation() -> Found:
    value = -(x - HAT) * (w / x - w / HAT) / ALPHA
    bend = positive("b")  # -U'' between x and x^, where U'(x) - U'(x^) = U'' dx
    return proved(
        U2 < 0,
        Eq(value, w * (x - HAT) ** 2 / (ALPHA * x * HAT)),
        bend * (x - HAT) ** 2 / ALPHA >= 0,
    )


def links_derivative() -> Found:
    z, d, excess = symbols("z dq u", real=True)
    spare, still = nonnegative("s"), positive("yhat")
    return proved(
        Eq(c * (_q - _q_hat) * QUEUE, (_q - _q_hat) * (y - c)),  # c dq q' where q > 0
        -_q_hat * Max(z, 0) <= -_q_hat * z,  # (47b): q = 0, so dq = -q^ <= 0
        Eq(d * (y - c), d * (still - c) + d * (y - still)),  # (47c)
        # (47d): (dy - (c - y^)) q' = (y - c) q' >= 0, with q' = (u)^+/c at an empty queue, else u/c
        proof(excess * Max(excess, 0) / c >= 0),
        proof(excess**2 / c >= 0),
        _q * spare >= 0,
    )


def links_inequality() -> Found:
    (excess, change), still = symbols("u dy", real=True), positive("yhat")
    inflow = still + change
    first = proof(Eq((inflow - still) * excess - (c - still) * excess, (inflow - c) * excess))
    strict, weak = proof((excess**2 / c).subs(excess, 0) > 0), proof(excess**2 / c >= 0)
    return differs_if(strict.status == "refuted" and first and weak)


def sum_of_storages() -> Found:
    system = _fig5()
    storage = paper_storage(system)
    queues = set(system.queue.values())
    state = {plain(z): v * (2.0 if z in queues else 1.01) for z, v in system.point.items()}
    point = np.array([state[plain(z)] for z in system.states], dtype=float)
    rate = evaluated(system.states, storage.terms(system), point).sum()  # [bit]
    found = check_storage(system, storage, samples=1024)
    return refuted_if(
        rate > 0 and not found.decreasing,
        state,
        V=storage.values(system, point),  # [bit s]
        rate=rate,
        worst=found.rate,
        top=found.dissipation[-1],
    )


# --- What holds in place of the proof in Appendix A


def repaired() -> Found:
    dx, dv, Y, slope_of_queue, utility = symbols("dx dv Y qdot dU", real=True)
    k = positive("k")
    # One user's term, from the law: its bracket is U' - v - e' = dU - dv - q', as U'(x^) = v^.
    bracket = proof(Eq(RATE / (x * GAIN), w / x - V - edot))
    term = k * dx * utility - k * dx * (dv + slope_of_queue)
    user = proof(Eq(dx * k * (utility - dv - slope_of_queue), term))
    # All users: the second part is linear in dx, so it sums to Y = sum dx = y - c; the link adds k
    # dv Y.
    total = -k * Y * (dv + slope_of_queue) + k * dv * Y
    busy = proof(Eq(total.subs(slope_of_queue, Y / c), -k * Y**2 / c))
    # An empty queue that stays empty: q' = 0, Y <= 0, v <= v^, and the link's term is dv k c q' =
    # 0.
    empty, fall = nonnegative("m f")
    idle = proof(-k * (-fall) * (-empty) <= 0)
    concave = proof(k * (x - HAT) * (w / x - w / HAT) <= 0)
    rising = proof(diff(ABOVE, e) > 0)
    net = dumbbell([LDCC] * 3, {"capacity": 3e6}, rtt=0.05)
    systems = [undelayed(net, held=held) for held in ((), ("k",))]
    tried = [check_storage(one, repaired_storage(one), samples=512) for one in systems]
    return proved_if(
        bracket and user and busy and idle and concave and rising and all(tried),
        tried=sum(r.tried for r in tried),
    )


def locally_stable() -> Found:
    sigma, omega = nonnegative("sigma"), Symbol("omega", real=True)
    round_trip, zero, pole = positive("R z a")
    # of (43), from minus delay to rate, over k x: (point + zero)/(point + pole)
    point = sigma + I * omega
    real_part = simplify(re(simplify((point + zero) * conjugate(point + pole))))
    proofs = (
        proof(Eq(REST.put(U2 * x), -w / x)),
        proof(slope_symbol(round_trip) > 0, x > w / beta),
        proof(pole_symbol(round_trip) > 0),
        proof(real_part > 0),
        proof(simplify((point + pole) * conjugate(point + pole)) > 0),
    )
    rng = np.random.default_rng(11)
    worst = max(_slowest(rng) for _ in range(200))
    return proved_if(all(proofs) and worst < 0, worst=worst)


def _slowest(rng: np.random.Generator) -> float:
    """The rightmost root of a random undelayed network, times its mean round-trip time."""
    links = int(rng.integers(1, 5))
    flows = links + int(rng.integers(0, 5))
    R = np.zeros((links, flows))
    while np.linalg.matrix_rank(R) < links or not R.any(0).all():
        R = (rng.random((links, flows)) < 0.5).astype(float)
    trip, size = rng.uniform(0.02, 0.5, flows), 2e5 * 10 ** rng.uniform(0.05, 2, flows)
    gain, weight = 10 ** rng.uniform(-1, 0.5, flows), 20e3
    a, z = pole_and_zero(trip, gain, weight, 0.1, size)
    drive = gain / trip * size
    c_inv = np.diag(1 / (R @ size))
    # x' = -a x - k x (v' q + q'), q' = C^-1 R x.
    own = [-np.diag(a) - drive[:, None] * (R.T @ c_inv @ R), -(drive * z)[:, None] * R.T]
    J = np.block([own, [c_inv @ R, np.zeros((links, links))]])
    return float(np.max(np.linalg.eigvals(J).real) * trip.mean())
