"""Appendix A of the LDCC paper: the proof by passivity, (45) to (48), step by step."""

from __future__ import annotations

import numpy as np
from sympy import Eq, Max, Symbol, diff, simplify, symbols

from fluidcc.analysis.passivity import Storage, check_storage, evaluated, paper_storage, steepest
from fluidcc.analysis.undelayed import Undelayed, undelayed
from fluidcc.links import DropTail
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import T, beta, positive, w, x
from fluidcc.papers.ldcc.law import ABOVE, FLOW, V
from fluidcc.papers.ldcc.stability import REST, U2
from fluidcc.papers.ldcc.storage import ALPHA, GAIN, HAT
from fluidcc.papers.model import DIFFERS, REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.symbols import c, e, e_b, edot, pi, plain, unfold, y

_q, _q_hat = positive("q", "qhat")
RATE = unfold(FLOW).subs(pi, 0)
STEEPEST = beta / (T + e_b)
"""The largest slope of (17), at e = T."""


@claim("ldcc", "(45a)", "V_user' = 1/alpha dx'(U'(x) - v(e) - e')^+_x.", "the gain cancels")
def users_derivative() -> Outcome:
    gradient = (x - HAT) / (x * GAIN * ALPHA)
    return from_proofs(
        proof(Eq(gradient * RATE, (x - HAT) * (w / x - V - edot) / ALPHA)),
        computed="from the law, user by user; k may be any number, and is constant in (28)",
        reason="With k = eta/RTT(e), which moves with the delay, (28) is no function of the states; hold k for it.",
    )


@claim("ldcc", "(45b), (45c)", "The projection only helps, and v(e^) = U'(x^).", "inequality by the projection")
def users_projection() -> Outcome:
    z = Symbol("z", real=True)
    return from_proofs(
        proof(-HAT * Max(z, 0) <= -HAT * z),
        proof(Eq(w / x, REST.put(ABOVE)), where=[x > w / beta]),
        computed="where x = 0 the deviation is -x^ < 0 and (z)^+ >= z; the rest is adding and subtracting v(e^)",
    )


def _fig5() -> Undelayed:
    """Fig. 5 with two LDCC flows and the constant one, without communication delays and with k held."""
    return undelayed(scenarios["ldcc_fig5"].net, at=50.0, held=("k",))


@claim(
    "ldcc",
    "(45d)",
    "-dx'(v(e) - v(e^))/alpha < -dx' de.",
    "for all deviations",
    erratum=True,
)
def users_inequality() -> Outcome:
    dx, de, dv = positive("dx", "de", "dv")
    fails = proof(-dx * dv / ALPHA > -dx * de, where=[dv < ALPHA * de])
    if not fails:
        return from_proofs(fails, computed="")
    system = _fig5()
    alpha, still = steepest(system), float(system.rest.one_way_delay.sel(flow="flow1"))
    rate = float(system.rest.rate.sel(flow="flow1"))
    flow = system.net.flows["flow1"]
    values = {**flow.law.params, e_b: system.net.return_delay("flow1")}
    penalty = [float(V.subs(values).subs(e, d)) for d in (still, still + 0.01)]
    left, right = -0.1 * rate * (penalty[1] - penalty[0]) / alpha, -0.1 * rate * 0.01
    numbers = {"left": left, "right": right, "alpha": alpha, "rate": rate, "delay": still}
    if left < right:
        return Outcome(REPRODUCED, f"{left:.4g} < {right:.4g}", "", numbers)
    return Outcome(
        REFUTED,
        f"Fig. 5, two LDCC flows: x 10 % and e 10 ms above the equilibrium give {left:.4g} < {right:.4g} bit, false",
        "(45d) multiplies (46) by -dx, which reverses it where dx > 0. Proved: it fails wherever dx and de have the "
        "same sign and the penalty's chord is not its steepest slope, that is whenever rate and queue are both above, "
        f"or both below, their equilibrium. Here alpha = {alpha:.3g}/s.",
        numbers,
    )


@claim(
    "ldcc",
    "(46)",
    "(v(e) - v(e^))/alpha < de if alpha is the largest slope of v.",
    "for all de",
    erratum=True,
)
def slope_inequality() -> Outcome:
    # Written from T upwards, where v rises: from T + a to T + a + d, and back.
    a, d = positive("a", "d")
    rise = simplify(ABOVE.subs(e, T + a + d) - ABOVE.subs(e, T + a))
    above = proof(STEEPEST * d - rise > 0)
    below = proof(-rise - STEEPEST * -d > 0)
    largest = proof(diff(ABOVE, e).subs(e, T + a) < STEEPEST)
    if not (above and below and largest):
        return from_proofs(above, below, largest, computed="")
    return Outcome(
        REFUTED,
        "proved for e > e^ >= T; for e < e^ the opposite is proved",
        "A slope of at most alpha bounds the size of the change: |v - v^| <= alpha |de|. For negative de that is "
        "v - v^ >= alpha de, so (46) reverses. With alpha = beta/(T + e_b), the largest slope of (17), at T.",
    )


@claim("ldcc", "(45e)", "dx' e' = dy' d' and dx' de = dy' dd.", "by e = R'd and y = R x")
def routing_adjoint() -> Outcome:
    R = symbols("r11:13 r21:23", real=True)
    rates, delays = symbols("x1:3", real=True), symbols("d1:3", real=True)
    by_user = sum(rates[r] * sum(R[l * 2 + r] * delays[l] for l in range(2)) for r in range(2))
    by_link = sum(delays[l] * sum(R[l * 2 + r] * rates[r] for r in range(2)) for l in range(2))
    return from_proofs(proof(Eq(by_user, by_link)), computed="R' is the adjoint of R; a term for each user and link")


@claim("ldcc", "Appendix A", "W_user = -1/alpha dx'(U'(x) - U'(x^)) is positive, by concavity.", "W_user > 0")
def users_dissipation() -> Outcome:
    value = -(x - HAT) * (w / x - w / HAT) / ALPHA
    concave = proof(U2 < 0)
    return from_proofs(
        concave,
        proof(Eq(value, w * (x - HAT) ** 2 / (ALPHA * x * HAT))),
        computed="w dx^2/(alpha x x^), positive unless dx = 0",
    )


@claim("ldcc", "(47)", "V_link' <= -W_link + dd'dy + 1/alpha dy'd'.", "(47a) to (47d)")
def links_derivative() -> Outcome:
    z, spare = Symbol("z", real=True), Symbol("s", nonnegative=True)
    (flow,) = DropTail.flow.values()
    exact = proof(Eq(c * (_q - _q_hat) * flow, (_q - _q_hat) * (y - c)))  # c dq q' where q > 0
    at_zero = proof(-_q_hat * Max(z, 0) <= -_q_hat * z)  # (47b): q = 0, so dq = -q^ <= 0
    still, d = Symbol("yhat", positive=True), Symbol("dq", real=True)
    identity = proof(Eq(d * (y - c), d * (still - c) + d * (y - still)))  # (47c)
    excess = Symbol("u", real=True)
    # (47d): (dy - (c - y^)) q' = (y - c) q' >= 0, with q' = (u)^+/c at an empty queue and u/c else.
    signs = [proof(excess * Max(excess, 0) / c >= 0), proof(excess**2 / c >= 0)]
    semidefinite = proof(_q * spare >= 0)
    return from_proofs(
        exact, at_zero, identity, *signs, semidefinite,
        computed="every step, with c from V_link cancelling the 1/c of (2), and W_link = q (c - y^) >= 0",
        reason="At a saturated link y^ = c, at another q^ = 0, so dq (y^ - c) = -q (c - y^) <= 0.",
    )  # fmt: skip


@claim(
    "ldcc",
    "(48)",
    "dy'q' - (c - y^)'q' = (y - c)'(y - c)^+_q > 0.",
    "strictly, and without 1/c",
    erratum=True,
)
def links_inequality() -> Outcome:
    excess, still = Symbol("u", real=True), Symbol("yhat", positive=True)
    inflow = still + Symbol("dy", real=True)
    first = proof(Eq((inflow - still) * excess - (c - still) * excess, (inflow - c) * excess))
    strict = proof((excess**2 / c).subs(excess, 0) > 0)
    weak = proof(excess**2 / c >= 0)
    if strict or not (first and weak):
        return from_proofs(first, strict, weak, computed="as printed")
    return Outcome(
        DIFFERS,
        "proved with >= and with q' = (y - c)^+/c",
        "It is zero where y = c, for instance at the equilibrium, and (48c) drops the 1/c of (2). Neither matters for "
        "(47).",
    )


def _raised(system: Undelayed, rate: float = 1.01, queue: float = 2.0) -> dict[str, float]:
    """A state with every rate and every queue this many times its equilibrium."""
    queues = set(system.queue.values())
    return {plain(z): float(v) * (queue if z in queues else rate) for z, v in system.point.items()}


def _derivative(system: Undelayed, storage: Storage, state: dict[str, float]) -> tuple[float, float]:
    """V and V' at a state [bit s, bit]."""
    point = np.array([state[plain(z)] for z in system.states])
    return float(storage.values(system, point)), float(evaluated(system.states, storage.terms(system), point).sum())


@claim(
    "ldcc",
    "Appendix A",
    "'the sum of the two storage functions is a Lyapunov function for the entire dynamic system'.",
    "V' <= 0, global stability",
    erratum=True,
)
def sum_of_storages() -> Outcome:
    system = _fig5()
    storage = paper_storage(system)
    state = _raised(system)
    V_there, rate = _derivative(system, storage, state)
    found = check_storage(system, storage, samples=1024)
    values = {"V": V_there, "rate": rate, "worst": found.rate, "top": float(found.dissipation[-1])}
    if rate <= 0 or found.decreasing:
        return Outcome(REPRODUCED, f"V' = {rate:.4g} bit", "", values | state)
    return Outcome(
        REFUTED,
        f"Fig. 5, two LDCC flows: rates 1 % above, queue twice its equilibrium: V = {V_there:.4g} bit s, "
        f"V' = +{rate:.4g} bit",
        "With (45d) gone, V' = -W_user - W_link - dx'(dv/alpha - de), less what (48) adds. At the equilibrium "
        "this quadratic form has no term in dq^2 but a product dx dq unless v'(e^) = alpha, so it is indefinite; and "
        "alpha, the largest slope, is above v'(e^) whenever e^ > T. So V is no Lyapunov function of any LDCC network. "
        "What it should show is true in the cases of the two rows after this one.",
        values | state,
    )
