"""Section IV-B of the LDCC paper, the algebra: from the delayed equations to G_r, (30) to (38) and (40) to (43)."""

from __future__ import annotations

from typing import Any

from sympy import Dummy, Eq, Expr, Matrix, Symbol, diff, exp, simplify, sqrt, symbols

from fluidcc.laws.linear import AtRest, at_rest
from fluidcc.laws.prove import Verdict
from fluidcc.links import DropTail
from fluidcc.papers.ldcc.common import beta, positive, w, x
from fluidcc.papers.ldcc.law import ABOVE, FLOW
from fluidcc.papers.model import DIFFERS, Outcome, claim, from_proofs, proof
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, Let, c, e, edot, pi, y

__all__ = ["REST", "ROUND", "U2", "K", "s", "slope"]

s = Symbol("s", positive=True)  # identities of analytic functions hold everywhere once they hold for s > 0
REST: AtRest = at_rest(LDCC, given={pi: 0}, eliminate=e)
"""The law where x' = 0 without losses: e is that of (19)."""
ROUND = REST.put(RTT)
K = REST.put(next(v for v in FLOW.atoms(Let) if v.name == "k"))  # k = eta/RTT
U2 = diff(LDCC.utility, x, 2)
_f, _b, _m = positive("tau_f", "tau_b", "tau_m")  # delays to a link, back from it, and to another link of the same user


def slope() -> Expr:
    """v' at the equilibrium, from (17)."""
    return REST.put(diff(ABOVE, e))


def own_loop() -> Expr:
    """G_r of (36) by the law: minus its response to delay, over s x_r, one round trip later."""
    return -REST.transfer("rate", e, s) / x * exp(-s * ROUND) / s


def at(statement: Any) -> Verdict:
    """`proof` of a statement at an equilibrium, where x > w/beta."""
    return proof(statement, where=[x > w / beta])


def printed_response(k: Expr, curvature: Expr, penalty: Expr) -> Expr:
    """delta x / delta e by (32): K X (-V' - s)/(s - K X U'')."""
    return k * x * (-penalty - s) / (s - k * x * curvature)


@claim(
    "ldcc",
    "(30)",
    "With delays, x_r' = k_r x_r (U' - v(sum R d_l(t - tau_b)) - sum R d_l'(t - tau_b)).",
    "d_l'(t - tau_b), k_r constant",
)
def delayed_rate_equation() -> Outcome:
    # What the source hears at t left at theta, and t = theta + e(theta) + e_b: (30) has the slope of e over t, the
    # law that over theta, which is what interarrival times measure by (23).
    over_time = Symbol("D", real=True)
    over_sending = over_time / (1 - over_time)  # de/dtheta = (de/dt)(1 + de/dtheta)
    chain = proof(Eq(over_time * (1 + over_sending), over_sending), where=[over_time < 1])
    first = diff(over_sending, over_time).subs(over_time, 0)
    second = diff(over_sending, over_time, 2).subs(over_time, 0)
    same = proof(Eq(first, 1))
    if not (chain and same):
        return from_proofs(chain, same, computed="")
    return Outcome(
        DIFFERS,
        "the same to first order; e' by the time of sending is D/(1 - D) where (30) has D = sum R d'(t - tau_b)",
        f"The two differ by D^2 and more (second derivative {second} at 0), as (30) freezes tau_b, which contains the "
        "queueing delays, and holds k_r = eta/RTT. An equilibrium and its linearisation are unchanged: there D = 0 "
        "and the bracket that k multiplies vanishes.",
        {"first": float(first), "second": float(second)},
    )


@claim(
    "ldcc", "(31)", "With delays, q_l' = (sum R x_r(t - tau_f) - c_l)/c_l.", "no projection, and tau_f as if constant"
)
def delayed_queue() -> Outcome:
    rates = symbols("x1:4", positive=True)
    (flow,) = DropTail.flow.values()
    form = proof(Eq(flow.subs(y, sum(rates)), (sum(rates) - c) / c))
    if not form:
        return from_proofs(form, computed="")
    return Outcome(
        DIFFERS,
        "(2) with (8) put in, for a queue between its ends",
        "(31) drops the projection of (2), so it holds at links that are saturated and not full. A link that is not "
        "saturated has no integrator and drops out of what follows: (32) to (39) are about the saturated links alone, "
        "and M counts those. Behind another queue that moves, tau_f is not constant either; see (8).",
    )


@claim(
    "ldcc",
    "(32)",
    "Linearised: s dx = K X (U'' dx - V' R_b^T dq - s R_b^T dq), s dq = C^-1 R_f dx.",
    "K X U'', K X V', K X",
)
def linearised() -> Outcome:
    A, B = REST.A[0, 0], REST.B
    by = {signal: B[0, LDCC.inputs.index(signal)] for signal in (e, edot)}
    link = diff(next(iter(DropTail.flow.values())), y)
    return from_proofs(
        at(Eq(A, REST.put(K * x * U2))),
        at(Eq(by[e], -K * x * slope())),
        at(Eq(by[edot], -K * x)),
        proof(Eq(link, 1 / c)),
        computed="the Jacobians of the law and of the link are these entries",
        reason="Although k = eta/RTT depends on e: at the equilibrium it multiplies zero. With two saturated queues "
        "on one path (32) is not the linearisation of a network that conserves flow; see the row on multi-bottleneck "
        "networks.",
    )


@claim("ldcc", "(33)", "Solving (32) for dx gives (33).", "C^-1 R_f s^-1 (Is - KXU'')^-1 KX(-V' - s) R_b^T dq")
def solved() -> Outcome:
    own = REST.transfer("rate", e, s)
    return from_proofs(
        at(Eq(own, printed_response(K, U2, slope()))),
        computed="user by user, as K, X, V' and U'' are diagonal: the law's own transfer function from delay to rate",
    )


@claim(
    "ldcc",
    "(34), (35)",
    "The return ratio is F = C^-1 R_f s^-1 (Is - KXU'')^-1 K (V' + s) diag(e^-sRTT) X R_f^T(-s).",
    "R_b^T(s) = diag(e^-sRTT) R_f^T(-s)",
)
def return_ratio() -> Outcome:
    # Each entry (l, m) is a sum over users; the summands are compared, so it holds for networks of any size.
    by_law = -(exp(-s * _f) / c / s) * REST.transfer("rate", e, s) * exp(-s * _b)
    k, curvature, penalty, round_trip = Dummy("k"), Dummy("U2"), Dummy("v1"), _m + _b  # (7), for link m
    printed = (
        exp(-s * _f) / c / s / (s - k * x * curvature) * k * (penalty + s) * exp(-s * round_trip) * x * exp(s * _m)
    )
    printed = printed.subs({k: K, curvature: U2, penalty: slope()})
    return from_proofs(
        at(Eq(by_law, printed)),
        proof(Eq(exp(-s * _b), exp(-s * round_trip) * exp(s * _m))),
        computed="entry by entry, for any number of users and links",
        reason="The loop is broken at the queues; the minus sign of the feedback is in '-1'.",
    )


@claim("ldcc", "(36), (37)", "F = C^-1 R_f G X R_f^T(-s) with a diagonal G.", "s^-1 (Is - KXU'')^-1 K (V' + s) e^-sRTT")
def diagonal_part() -> Outcome:
    users = 3
    g = symbols(f"g1:{users + 1}", positive=True)
    X = symbols(f"x1:{users + 1}", positive=True)
    caps, lags = symbols("c1:3", positive=True), symbols("t1:7", positive=True)
    F, scaled = _two_links(users, g, X, caps, lags)
    C = Matrix.diag(*(1 / sqrt(v) for v in caps))
    gap = (F - C * scaled * C.inv()).applyfunc(simplify)
    return from_proofs(
        at(Eq(own_loop(), loop_of_one_user(K, slope(), U2))),
        *(proof(Eq(entry, 0)) for entry in gap),
        computed="G_r is minus the law's transfer function from delay to rate, over s x_r, times e^-sRTT; "
        "F = C^(-1/2) (R~ G R~^T(-s)) C^(1/2)",
    )


def loop_of_one_user(k: Expr, penalty: Expr, curvature: Expr) -> Expr:
    """G_r(s) as (36) and (40) print it."""
    return k * exp(-s * ROUND) / s * (penalty + s) / (s - k * x * curvature)


def _two_links(users: int, g: Any, X: Any, caps: Any, lags: Any) -> tuple[Matrix, Matrix]:
    """F by (35), and R~ G R~^T(-s) by (37), for two links and users with delays of their own to each."""
    forward = Matrix(2, users, lambda l, r: exp(-s * lags[l * users + r]))
    ahead = Matrix(2, users, lambda l, r: exp(s * lags[l * users + r]))
    G, rates = Matrix.diag(*g), Matrix.diag(*X)
    root, C = Matrix.diag(*(sqrt(v) for v in X)), Matrix.diag(*(1 / sqrt(v) for v in caps))
    F = C * C * forward * G * rates * ahead.T
    return F, (C * forward * root) * G * (C * ahead * root).T


@claim("ldcc", "(38)", "The eigenvalues of F are those of R~ G R~^T(-s).", "the order of a matrix product")
def same_spectrum() -> Outcome:
    users = 3
    g, X = symbols("g1:4", positive=True), symbols("x1:4", positive=True)
    caps, lags = symbols("c1:3", positive=True), symbols("t1:7", positive=True)
    F, scaled = _two_links(users, g, X, caps, lags)
    return from_proofs(
        proof(Eq(F.trace(), scaled.trace())),
        proof(Eq(F.det(), scaled.det())),
        computed="the matrices are similar, by C^(1/2), whatever their size; checked on trace and determinant of two "
        "links with three users",
    )
