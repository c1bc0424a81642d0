"""Sections IV-D, V-A, V-C and V-D of the binomial paper: loss and its growth, and ISCC."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import And, Eq, Integer, Rational, exp, limit, oo, symbols

from fluidcc.formulas import binomial
from fluidcc.papers.binomial.cycles import (
    C,
    abstract,
    cycles_to_fairness,
    k,
    l,
    lam,
    n,
    sigma,
    x,
    z,
)
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import named


def iscc(k: float, l: float, estimate: Any = 1.0) -> tuple[Any, Any]:
    """Return lambda and sigma of ISCC(k, l), m_I = 20 and m_D = max(2, l), on a link of capacity 1
    that is taken to be `estimate`."""
    return tuple(binomial.iscc_parameters(k, l, estimate, 20.0, max(2.0, l)))


F = binomial.loss.form
P = F.doit()
SMALL = binomial.loss_approximate.form.doit()
GENERIC = {k: symbols("q", positive=True) - 2}  # k + 2 = q > 0: no scheme in use has k <= -2


def loss_ratio(claim: Claim) -> Outcome:
    R = symbols("R", positive=True)
    data = binomial.cycle_data.form.doit().subs(binomial.cycle_data.arguments[4], C)
    over = lam * C**-k * R
    closed = (
        lam**2
        * (k + 2)
        / (C ** (2 * k + 2) * (1 - (1 - sigma * C ** (l - 1)) ** (k + 2)) + lam**2 * (k + 2))
    )
    return claim.proved(
        Eq((over / (data + over)).subs(GENERIC), P.subs(n, 1).subs(GENERIC)),
        Eq(P.subs(n, 1).subs(GENERIC), closed.subs(GENERIC)),
    )


def aimd_loss(claim: Claim) -> Outcome:
    return claim.proved(
        Eq(P.subs({k: 0, l: 1, n: 1}), 2 * lam**2 / (C**2 * sigma * (2 - sigma) + 2 * lam**2)),
        Eq(SMALL.subs({k: 0, l: 1, n: 1}), 2 * lam**2 / (C**2 * sigma * (2 - sigma))),
        Eq(SMALL.subs({k: 0, l: 1}) / SMALL.subs({k: 0, l: 1, n: 1}), n**2),
    )


def loss_of_many(claim: Claim) -> Outcome:
    return claim.proved(
        Eq(limit(P.subs({k: 0, l: 1}), n, oo), 1),
        Eq(abstract(F / (1 - F)), abstract(binomial.loss_approximate.form)),
    )


def loss_example(claim: Claim) -> Outcome:
    # lambda such that (34) gives 0.1 % for one flow
    C0, half = 1.0, 0.5
    up = float(np.sqrt(1e-3 / (1 - 1e-3) * C0**2 * half * (2 - half) / 2))
    flows = np.array([1, 10, 100])
    found = binomial.loss(0, 1, up, half, C0, flows)
    small = binomial.loss_approximate(0, 1, up, half, C0, flows)
    return claim.compared(
        found,
        dict(zip(("1", "10", "100"), map(float, found), strict=True)),
        found=found,
        small=small,
    )


def loss_of_n(claim: Claim) -> Outcome:
    closed = (
        lam**2
        * (k + 2)
        * n ** (2 * k + 2)
        / (C ** (2 * k + 2) * (1 - (1 - sigma * (C / n) ** (l - 1)) ** (k + 2)))
    )
    return claim.proved(Eq(SMALL.subs(GENERIC), closed.subs(GENERIC)))


def loss_growth(claim: Claim) -> Outcome:
    z1, zn = sigma * C ** (l - 1), sigma * (C / n) ** (l - 1)
    full = n ** (2 * k + 2) * (1 - (1 - z1) ** (k + 2)) / (1 - (1 - zn) ** (k + 2))
    cut = lambda q, part: q * part - q * (q - 1) / 2 * part**2  # noqa: E731
    truncated = n ** (2 * k + 2) * cut(k + 2, z1) / cut(k + 2, zn)
    return claim.proved(
        Eq(binomial.loss_increase.expr.subs(GENERIC), full.subs(GENERIC)),
        Eq(truncated, binomial.loss_increase_two_term.form),
    )


def exponents(claim: Claim) -> Outcome:
    form, half = binomial.scalability_exponent.form, Rational(1, 2)
    return claim.proved(
        Eq(form.subs({k: 0, l: 1}), 2),
        Eq(form.subs({k: 1, l: 0}), 3),
        Eq(form.subs({k: half, l: half}), 2 + half),
    )


def growth_bound(claim: Claim) -> Outcome:
    z1 = symbols("z_1", positive=True)
    ratio = (2 - (k + 1) * z1) / (2 - (k + 1) * z)  # of the second line of (37) to n^(l+2k+1)
    above = proof(ratio > 1, where=[z > z1, k > -1, (k + 1) * z < 2])
    at = (1.0, 0.0, 5e3, 1544e3)  # IIAD of Fig. 5
    flows = np.array([10, 100, 300])
    found = binomial.loss_increase(*at, flows) / flows ** binomial.scalability_exponent(1.0, 0.0)
    values = named("n = {}", flows, found)
    return claim.refuted_if(above and np.all(np.diff(found) > 0), values)


def aimd_scales_best(claim: Claim) -> Outcome:
    form = binomial.scalability_exponent.form
    return claim.proved(
        Eq(form.subs(k, 1 - l), 3 - l),
        proof(form.subs(k, 1 - l) >= form.subs({k: 0, l: 1}), where=[l <= 1]),
    )


# --- Sections V-C and V-D of the binomial paper ---------------------------------------------------


_, _, _, m_I, m_D = binomial.iscc_parameters.arguments
UP, DOWN = binomial.iscc_parameters.form.values()
r = symbols("r", positive=True)  # x/C


def ideal_scalability(claim: Claim) -> Outcome:
    given = [Eq(l + 2 * k + 1, 0), k + l > 0]
    return claim.proved(
        proof(k < -1, where=given),
        proof(l > 1, where=given),
        proof(k + l > 0, where=[Eq(l + 2 * k + 1, 0), k < -1]),
    )


def iscc_decrease(claim: Claim) -> Outcome:
    s, more = symbols("s", positive=True), symbols("g", nonnegative=True)  # l = 1 + s, m_D = l + g
    part = (DOWN * x**l / x).subs(l, 1 + s).subs(x, r * C)
    q = symbols("q", positive=True)  # ln(C/x)
    slope = (1 + s) / (1 + s + more)
    return claim.proved(Eq(part, r**s / m_D), 1 - exp(-q * s) > 0, slope <= 1)


def iscc_increase(claim: Claim) -> Outcome:
    part = (UP * x**-k / x).subs(x, r * C)
    form = proof(Eq(part, r ** (-k - 1) / m_I))
    wrong = proof(r ** (-k - 1) <= 1, where=[k < -1])
    return claim.differs_if(
        form and not wrong,
        at={"x/C" if a == "r" else a: v for a, v in wrong.counterexample.items()},
    )


def iscc_single(claim: Claim) -> Outcome:
    q = symbols("q", positive=True)
    printed = (k + 2) / (m_I**2 * (1 - (1 - 1 / m_D) ** (k + 2)) + k + 2)
    ours = binomial.iscc_loss.expr.subs(n, 1)
    return claim.proved(
        proof(Eq(ours.subs(k, q - 2), printed.subs(k, q - 2)), where=[m_D > 1]),
        proof(
            Eq(
                binomial.loss.form.subs(
                    {binomial.loss.arguments[2]: UP, binomial.loss.arguments[3]: DOWN}
                )
                .doit()
                .subs({k: q - 2, n: 1}),
                printed.subs(k, q - 2),
            ),
            where=[m_D > 1],
        ),
    )


def iscc_of_n(claim: Claim) -> Outcome:
    flows = np.array([1, 2, 10, 100, 10**6])
    found = binomial.iscc_loss(-1.5, 2, 20, 2, flows)
    ideal = binomial.iscc_loss.form.doit().subs({k: -1.5, l: 2})
    values = named("n = {}", flows, found)
    # l = -2k - 1: z_n = n^(1-l)/m_D -> 0, and what is sent over the overshoot tends to m_I^2/m_D
    top = proof(
        Eq(
            limit(ideal.subs({m_I: 20, m_D: 2}).nsimplify(), n, oo),
            1 / (1 + Integer(20) ** 2 / Integer(2)),
        )
    )
    return claim.refuted_if(top and not np.ptp(found) < 1e-6, values)


def tcp_friendly_iscc(claim: Claim) -> Outcome:
    return claim.proved(proof(And(Eq(l, 3), Eq(k, -2)), where=[Eq(k + l, 1), Eq(l + 2 * k + 1, 0)]))


def tcp_friendly_is_slow(claim: Claim) -> Outcome:
    cycles = {
        name: cycles_to_fairness(a, b, 1.0, iscc(a, b, estimate=100.0)[1])[0]
        for name, (a, b) in {"ISCC(-1.5, 2)": (-1.5, 2), "ISCC(-2, 3)": (-2, 3)}.items()
    }
    slower = cycles["ISCC(-2, 3)"] > cycles["ISCC(-1.5, 2)"]
    return claim.reproduced_if(
        slower,
        cycles,
        computed="cycles from (20, 80) on C = 100 to a fairness of 0.99: "
        + ", ".join(f"{a} {b:g}" for a, b in cycles.items()),
    )


def slow_near_one(claim: Claim) -> Outcome:
    powers = np.array([1.05, 1.2, 1.5, 2.0])
    found = [
        cycles_to_fairness((-1 - b) / 2, b, 1.0, iscc((-1 - b) / 2, b, estimate=100.0)[1])[0]
        for b in powers
    ]
    values = named("l = {:g}", powers, found)
    falls = bool(np.all(np.diff(found) < 0))
    return claim.reproduced_if(falls, values)


def experiment_parameters(claim: Claim) -> Outcome:
    rates = np.linspace(1e-3, 1.0, 2001)
    up, down = iscc(-1.5, 2)
    values = {"growth": np.max(up * rates**1.5 / rates), "fall": np.max(down * rates**2 / rates)}
    return claim.compared(values.values(), values)
