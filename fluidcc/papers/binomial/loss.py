"""Sections IV-D and V-A of the binomial paper: packet loss and its growth, equations (34) to (37)."""

from __future__ import annotations

import numpy as np
from sympy import Eq, Rational, limit, oo, symbols

from fluidcc.formulas import binomial
from fluidcc.papers.binomial.common import C, abstract, k, l, lam, n, percent, sigma, z
from fluidcc.papers.model import REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.papers.printed import compared

F = binomial.loss.form
P = F.doit()
SMALL = binomial.loss_approximate.form.doit()
GENERIC = {k: symbols("q", positive=True) - 2}  # k + 2 = q > 0: no scheme in use has k <= -2


@claim("binomial", "(34)", "Lost over sent with the largest overshoot lambda C^-k R; R cancels.", "(34)")
def loss_ratio() -> Outcome:
    R = symbols("R", positive=True)
    data = binomial.cycle_data.form.doit().subs(binomial.cycle_data.arguments[4], C)
    over = lam * C**-k * R
    closed = lam**2 * (k + 2) / (C ** (2 * k + 2) * (1 - (1 - sigma * C ** (l - 1)) ** (k + 2)) + lam**2 * (k + 2))
    return from_proofs(
        proof(Eq((over / (data + over)).subs(GENERIC), P.subs(n, 1).subs(GENERIC))),
        proof(Eq(P.subs(n, 1).subs(GENERIC), closed.subs(GENERIC))),
        computed="with X from (27); for one flow, and n flows have C/n for C",
    )


@claim("binomial", "(35)", "AIMD loses 2 lambda^2/(C^2 sigma (2 - sigma) + 2 lambda^2).", "(35)")
def aimd_loss() -> Outcome:
    return from_proofs(
        proof(Eq(P.subs({k: 0, l: 1, n: 1}), 2 * lam**2 / (C**2 * sigma * (2 - sigma) + 2 * lam**2))),
        proof(Eq(SMALL.subs({k: 0, l: 1, n: 1}), 2 * lam**2 / (C**2 * sigma * (2 - sigma)))),
        proof(Eq(SMALL.subs({k: 0, l: 1}) / SMALL.subs({k: 0, l: 1, n: 1}), n**2)),
        computed="and the approximation grows as n^2",
    )


@claim("binomial", "(35)", "For n -> infinity the exact forms approach 100 %.", "100 %")
def loss_of_many() -> Outcome:
    return from_proofs(
        proof(Eq(limit(P.subs({k: 0, l: 1}), n, oo), 1)),
        proof(
            Eq(abstract(F / (1 - F)), abstract(binomial.loss_approximate.form))
        ),  # so p = a/(1 + a) with the approximation a, and a -> oo with n
        computed="for AIMD as a limit; p = a/(1 + a) for every scheme, with a from (36)",
    )


@claim("binomial", "Section IV-D", "An AIMD flow alone loses 0.1 %, ten on its link lose 10 %, a hundred 100 %.",
       "0.1 %, 10 %, 100 %")  # fmt: skip
def loss_example() -> Outcome:
    # lambda such that (34) gives 0.1 % for one flow
    C0, half = 1.0, 0.5
    up = float(np.sqrt(1e-3 / (1 - 1e-3) * C0**2 * half * (2 - half) / 2))
    flows = np.array([1, 10, 100])
    found = binomial.loss(0, 1, up, half, C0, flows)
    small = binomial.loss_approximate(0, 1, up, half, C0, flows)
    return compared(
        zip(("0.1", "10", "100"), 100 * found, strict=True),
        f"by the exact form {', '.join(percent(v) for v in found)} for 1, 10 and 100 flows",
        f"By the approximation (36) it would be {', '.join(percent(v, 2) for v in small[:2])} and "
        f"{100 * small[2]:.0f} %: the 10 % are those of (36), the limit of 100 % is that of the "
        "exact form.",
        dict(zip(("1", "10", "100"), map(float, found), strict=True)),
    )


@claim("binomial", "(36)", "p_n is (34), small, at the fair share C/n.", "(36)")
def loss_of_n() -> Outcome:
    closed = (
        lam**2 * (k + 2) * n ** (2 * k + 2) / (C ** (2 * k + 2) * (1 - (1 - sigma * (C / n) ** (l - 1)) ** (k + 2)))
    )
    return from_proofs(
        proof(Eq(SMALL.subs(GENERIC), closed.subs(GENERIC))), computed="the exact form over one minus itself, for all n"
    )


@claim("binomial", "(37)", "s_n in full and to two terms.", "n^(l+2k+1) (2 - (k+1) z_1)/(2 - (k+1) z_n)")
def loss_growth() -> Outcome:
    z1, zn = sigma * C ** (l - 1), sigma * (C / n) ** (l - 1)
    full = n ** (2 * k + 2) * (1 - (1 - z1) ** (k + 2)) / (1 - (1 - zn) ** (k + 2))
    cut = lambda q, part: q * part - q * (q - 1) / 2 * part**2  # noqa: E731
    truncated = n ** (2 * k + 2) * cut(k + 2, z1) / cut(k + 2, zn)
    return from_proofs(
        proof(Eq(binomial.loss_increase.expr.subs(GENERIC), full.subs(GENERIC))),
        proof(Eq(truncated, binomial.loss_increase_two_term.form)),
        computed="both lines, for all k and l",
    )


@claim("binomial", "(37)", "The exponent l + 2k + 1 of AIMD, IIAD and SQRT is 2, 3 and 2.5.", "2, 3, 2.5")
def exponents() -> Outcome:
    form, half = binomial.scalability_exponent.form, Rational(1, 2)
    return from_proofs(
        proof(Eq(form.subs({k: 0, l: 1}), 2)),
        proof(Eq(form.subs({k: 1, l: 0}), 3)),
        proof(Eq(form.subs({k: half, l: half}), 2 + half)),
        computed="l + 2 k + 1 is 2, 3 and 5/2",
    )


@claim("binomial", "(37)", "s_n grows no faster than n^(l+2k+1).", "s_n = O(n^(l+2k+1))", erratum=True)
def growth_bound() -> Outcome:
    z1 = symbols("z_1", positive=True)
    ratio = (2 - (k + 1) * z1) / (2 - (k + 1) * z)  # of the second line of (37) to n^(l+2k+1)
    above = proof(ratio > 1, where=[z > z1, k > -1, (k + 1) * z < 2])
    at = (1.0, 0.0, 5e3, 1544e3)  # IIAD of Fig. 5
    flows = np.array([10, 100, 300])
    found = binomial.loss_increase(*at, flows) / flows ** binomial.scalability_exponent(1.0, 0.0)
    values = {f"n = {m}": float(v) for m, v in zip(flows, found, strict=True)}
    if not above or not np.all(np.diff(found) > 0):
        return Outcome(REPRODUCED, str(values), "", values)
    return Outcome(
        REFUTED,
        "for l < 1 and k > -1 s_n of (37) exceeds n^(l+2k+1), proved from its second line",
        "For l < 1 z_n grows with n, and the denominator falls. For the IIAD of Fig. 5 s_n/n^3 is "
        + ", ".join(f"{v:.3g} at {a}" for a, v in values.items())
        + ". What grows more slowly is the ratio of the exact losses (34), which are at most 1.",
        values,
    )


@claim("binomial", "Section V-A", "Of the TCP-friendly binomial schemes with l <= 1 AIMD has the least exponent in "
       "(37).", "n^(3-l)")  # fmt: skip
def aimd_scales_best() -> Outcome:
    form = binomial.scalability_exponent.form
    return from_proofs(
        proof(Eq(form.subs(k, 1 - l), 3 - l)),
        proof(form.subs(k, 1 - l) >= form.subs({k: 0, l: 1}), where=[l <= 1]),
        computed="the exponent is 3 - l with k = 1 - l, least at l = 1",
    )
