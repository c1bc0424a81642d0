"""Section IV-B of the LDCC paper: the loop of one user, (40) to (43), and what follows from it in closed form."""

from __future__ import annotations

from sympy import Dummy, Eq, Expr, I, Matrix, Symbol, conjugate, diff, exp, factor, lambdify, prod, simplify

from fluidcc.papers.ldcc.common import T, beta, eta, positive, w, x
from fluidcc.papers.ldcc.law import ABOVE, V
from fluidcc.papers.ldcc.stability import REST, ROUND, U2, K, at, loop_of_one_user, own_loop, s, slope
from fluidcc.papers.model import REFUTED, Outcome, claim, from_proofs, proof
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, e, edot, unfold

__all__ = ["loop_symbol", "pole_and_zero", "pole_symbol", "slope_symbol"]


def slope_symbol(round_trip: Expr) -> Expr:
    """(42) with a free round-trip time."""
    return (beta - w / x) / round_trip


def loop_symbol(round_trip: Expr) -> Expr:
    """(43) with a free round-trip time."""
    lag = exp(-s * round_trip) / (s * round_trip)
    return eta * lag * (slope_symbol(round_trip) + s) / (s + pole_symbol(round_trip))


def pole_symbol(round_trip: Expr) -> Expr:
    """The pole of (43), as a positive number, with a free round-trip time."""
    return eta * w / (x * round_trip)


_ROUND = Symbol("R", positive=True)
pole_and_zero = lambdify((_ROUND, eta, w, beta, x), (pole_symbol(_ROUND), slope_symbol(_ROUND)), "numpy")
"""Pole (as a positive number) and zero of (43) from round-trip time, eta, w, beta and rate."""


@claim(
    "ldcc",
    "(40)",
    "G_r(jw) = k_r e^{-jw RTT}/(jw) (v' + jw)/(jw - k_r x_r U'').",
    "one integrator, one pole, one zero, one delay",
)
def user_loop() -> Outcome:
    return from_proofs(
        at(Eq(own_loop(), loop_of_one_user(K, slope(), U2))),
        computed="from the law; s = jw by analytic continuation",
    )


@claim("ldcc", "(40)", "Both poles of (40) are non positive.", "0 and k x U'' < 0")
def poles_of_user_loop() -> Outcome:
    round_trip = Symbol("R", positive=True)
    return from_proofs(
        proof(U2 < 0),
        at(Eq(REST.A[0, 0], -pole_symbol(ROUND))),
        proof(-pole_symbol(round_trip) < 0),
        computed="0, and k x U'' = -eta w/(x RTT) < 0, by concavity alone",
    )


@claim("ldcc", "(41)", "U'' = -w/x^2.", "-w/x^2")
def curvature() -> Outcome:
    return from_proofs(proof(Eq(U2, -w / x**2)), computed="by differentiation of (16)")


@claim("ldcc", "(42)", "v' = (beta - w/x)/RTT at an equilibrium.", "(beta - w/x)/RTT")
def penalty_slope() -> Outcome:
    everywhere = proof(Eq(diff(ABOVE, e), (beta - ABOVE) / unfold(RTT)))
    return from_proofs(
        everywhere,
        proof(Eq(V, ABOVE), where=[e > T]),
        at(Eq(slope(), (beta - w / x) / ROUND)),
        computed="v' = (beta - v)/RTT for all e > T, and v = U' = w/x at an equilibrium",
    )


@claim("ldcc", "(42)", "The zero of (40) is negative iff x > w/beta.", "x > w/beta")
def zero_of_user_loop() -> Outcome:
    round_trip = Symbol("R", positive=True)
    printed = (beta - w / x) / round_trip
    return from_proofs(
        proof(printed > 0, where=[x > w / beta]),
        proof(printed <= 0, where=[x <= w / beta]),
        computed="the zero is at -v', and v' > 0 iff x > w/beta: by (20) at every equilibrium without losses",
    )


@claim(
    "ldcc",
    "(43)",
    "G_r(jw) = eta e^{-jw RTT}/(jw RTT) ((beta - w/x)/RTT + jw)/(jw + eta w/(x RTT)).",
    "with eta = k RTT",
)
def user_loop_of_ldcc() -> Outcome:
    return from_proofs(at(Eq(own_loop(), loop_symbol(ROUND))), computed="from the law, at the equilibrium (19)")


@claim("ldcc", "(43)", "The pole is not at more than eta beta/RTT, the zero between 0 and beta/RTT.", "bounds")
def places_of_pole_and_zero() -> Outcome:
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


@claim(
    "ldcc",
    "IV-B",
    "'The value of the normalized gain eta_r should be divided by M according to Eq. (39).'",
    "eta -> eta/M",
    erratum=True,
)
def gain_divided() -> Outcome:
    M, round_trip = positive("M", "R")
    pole, loop = pole_symbol(round_trip), loop_symbol(round_trip)
    wrong = proof(Eq(M * loop.subs(eta, eta / M), loop), where=[M > 1])
    if wrong:
        return from_proofs(wrong, computed="G is proportional to eta")
    ratio = simplify(M * loop.subs(eta, eta / M) / loop)
    form = proof(Eq(ratio, (s + pole) / (s + pole / M)))
    if not form:
        return from_proofs(form, computed="")
    omega, a, more = positive("omega", "a", "m")  # M = 1 + m, so that its being above 1 is an assumption
    turned = (I * omega + a) / (I * omega + a / (1 + more))
    larger = proof(factor(simplify(turned * conjugate(turned)) - 1) > 0)
    later = proof(factor(simplify((turned - conjugate(turned)) / (2 * I))) < 0)
    if not (larger and later):
        return from_proofs(larger, later, computed="")
    at_values = ", ".join(f"{k} = {v:.3g}" for k, v in sorted(wrong.counterexample.items()))
    return Outcome(
        REFUTED,
        "M G_r(s; eta/M) = G_r(s; eta) (s + a)/(s + a/M) with a = eta w/(x RTT), proved",
        "G_r is not proportional to eta, which also moves its pole. The factor (jw + a)/(jw + a/M) has modulus above 1 "
        "and a negative phase at every w, both proved: dividing eta by M leaves less margin than the condition on "
        f"-1/M asks for. Not equal, for instance, at {at_values}.",
        dict(wrong.counterexample),
    )


@claim(
    "ldcc",
    "IV-B",
    "N identical flows on one link: (s + a)^(N-1) [s^2 + a s + k rho (s + v') e^-sRTT], rho = N x/c.",
    "not in the paper",
)
def identical_flows() -> Outcome:
    shown, a, count = [], -REST.A[0, 0], Symbol("N", positive=True, integer=True)
    heard = REST.B[0, LDCC.inputs.index(e)] + s * REST.B[0, LDCC.inputs.index(edot)]
    lag = exp(-s * ROUND)
    second = s**2 + a * s + K * x * count / c * (s + slope()) * lag
    # Schur complement of the diagonal block of N users, for every N; the whole determinant for small ones.
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
        computed="by the Schur complement of the users, for every N, and as a determinant for N = 1 to 5",
        reason="The N - 1 modes at -a = -eta w/(x RTT) make rates equal; no delay can upset them.",
    )


@claim(
    "ldcc",
    "IV-B",
    "Symmetric parking lot (n cross flows a link, m long flows over all M): eigenvalues of F in closed form.",
    "not in the paper",
)
def parking_lot_eigenvalues() -> Outcome:
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
        reason="The long flows' part is a matrix of rank one, whatever the delays between the links, so the same holds "
        "for every M. With (32); queues that conserve flow couple the links further.",
    )
