"""Sections IV-D, V-A, V-C and V-D of the binomial paper: loss and its growth, and ISCC."""

from __future__ import annotations

import numpy as np
from sympy import And, Eq, Integer, Rational, exp, limit, oo, symbols

from fluidcc.formulas import binomial
from fluidcc.papers.binomial.common import (
    C,
    abstract,
    cycles_to_fairness,
    iscc,
    k,
    l,
    lam,
    n,
    sigma,
    x,
    z,
)
from fluidcc.papers.model import (
    Outcome,
    claim,
    differs_if,
    from_proofs,
    proof,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import compared, named, percent

F = binomial.loss.form
P = F.doit()
SMALL = binomial.loss_approximate.form.doit()
GENERIC = {k: symbols("q", positive=True) - 2}  # k + 2 = q > 0: no scheme in use has k <= -2


@claim("(34)", "(34)")
def loss_ratio() -> Outcome:
    """Lost over sent with the largest overshoot lambda C^-k R; R cancels."""
    R = symbols("R", positive=True)
    data = binomial.cycle_data.form.doit().subs(binomial.cycle_data.arguments[4], C)
    over = lam * C**-k * R
    closed = (
        lam**2
        * (k + 2)
        / (C ** (2 * k + 2) * (1 - (1 - sigma * C ** (l - 1)) ** (k + 2)) + lam**2 * (k + 2))
    )
    return from_proofs(
        Eq((over / (data + over)).subs(GENERIC), P.subs(n, 1).subs(GENERIC)),
        Eq(P.subs(n, 1).subs(GENERIC), closed.subs(GENERIC)),
        computed="with X from (27); for one flow, and n flows have C/n for C",
    )


@claim("(35)", "(35)")
def aimd_loss() -> Outcome:
    """AIMD loses 2 lambda^2/(C^2 sigma (2 - sigma) + 2 lambda^2)."""
    return from_proofs(
        Eq(P.subs({k: 0, l: 1, n: 1}), 2 * lam**2 / (C**2 * sigma * (2 - sigma) + 2 * lam**2)),
        Eq(SMALL.subs({k: 0, l: 1, n: 1}), 2 * lam**2 / (C**2 * sigma * (2 - sigma))),
        Eq(SMALL.subs({k: 0, l: 1}) / SMALL.subs({k: 0, l: 1, n: 1}), n**2),
        computed="and the approximation grows as n^2",
    )


@claim("(35)", "100 %")
def loss_of_many() -> Outcome:
    """For n -> infinity the exact forms approach 100 %."""
    return from_proofs(
        Eq(limit(P.subs({k: 0, l: 1}), n, oo), 1),
        Eq(abstract(F / (1 - F)), abstract(binomial.loss_approximate.form)),
        computed="for AIMD as a limit; p = a/(1 + a) for every scheme, with a from (36)",
    )


@claim("Section IV-D", "0.1 %, 10 %, 100 %")
def loss_example() -> Outcome:
    """An AIMD flow alone loses 0.1 %, ten on its link lose 10 %, a hundred 100 %."""
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


@claim("(36)", "(36)")
def loss_of_n() -> Outcome:
    """p_n is (34), small, at the fair share C/n."""
    closed = (
        lam**2
        * (k + 2)
        * n ** (2 * k + 2)
        / (C ** (2 * k + 2) * (1 - (1 - sigma * (C / n) ** (l - 1)) ** (k + 2)))
    )
    return from_proofs(
        Eq(SMALL.subs(GENERIC), closed.subs(GENERIC)),
        computed="the exact form over one minus itself, for all n",
    )


@claim("(37)", "n^(l+2k+1) (2 - (k+1) z_1)/(2 - (k+1) z_n)")
def loss_growth() -> Outcome:
    """s_n in full and to two terms."""
    z1, zn = sigma * C ** (l - 1), sigma * (C / n) ** (l - 1)
    full = n ** (2 * k + 2) * (1 - (1 - z1) ** (k + 2)) / (1 - (1 - zn) ** (k + 2))
    cut = lambda q, part: q * part - q * (q - 1) / 2 * part**2  # noqa: E731
    truncated = n ** (2 * k + 2) * cut(k + 2, z1) / cut(k + 2, zn)
    return from_proofs(
        Eq(binomial.loss_increase.expr.subs(GENERIC), full.subs(GENERIC)),
        Eq(truncated, binomial.loss_increase_two_term.form),
        computed="both lines, for all k and l",
    )


@claim("(37)", "2, 3, 2.5")
def exponents() -> Outcome:
    """The exponent l + 2k + 1 of AIMD, IIAD and SQRT is 2, 3 and 2.5."""
    form, half = binomial.scalability_exponent.form, Rational(1, 2)
    return from_proofs(
        Eq(form.subs({k: 0, l: 1}), 2),
        Eq(form.subs({k: 1, l: 0}), 3),
        Eq(form.subs({k: half, l: half}), 2 + half),
        computed="l + 2 k + 1 is 2, 3 and 5/2",
    )


@claim("(37)", "s_n = O(n^(l+2k+1))", erratum=True)
def growth_bound() -> Outcome:
    """s_n grows no faster than n^(l+2k+1)."""
    z1 = symbols("z_1", positive=True)
    ratio = (2 - (k + 1) * z1) / (2 - (k + 1) * z)  # of the second line of (37) to n^(l+2k+1)
    above = proof(ratio > 1, where=[z > z1, k > -1, (k + 1) * z < 2])
    at = (1.0, 0.0, 5e3, 1544e3)  # IIAD of Fig. 5
    flows = np.array([10, 100, 300])
    found = binomial.loss_increase(*at, flows) / flows ** binomial.scalability_exponent(1.0, 0.0)
    values = named("n = {}", flows, found)
    return refuted_if(
        above and np.all(np.diff(found) > 0),
        "for l < 1 and k > -1 s_n of (37) exceeds n^(l+2k+1), proved from its second line",
        "For l < 1 z_n grows with n, and the denominator falls. For the IIAD of Fig. 5 s_n/n^3 is "
        + ", ".join(f"{v:.3g} at {a}" for a, v in values.items())
        + ". What grows more slowly is the ratio of the exact losses (34), which are at most 1.",
        values,
    )


@claim("Section V-A", "n^(3-l)")
def aimd_scales_best() -> Outcome:
    """Of the TCP-friendly binomial schemes with l <= 1 AIMD has the least exponent in (37)."""
    form = binomial.scalability_exponent.form
    return from_proofs(
        Eq(form.subs(k, 1 - l), 3 - l),
        proof(form.subs(k, 1 - l) >= form.subs({k: 0, l: 1}), where=[l <= 1]),
        computed="the exponent is 3 - l with k = 1 - l, least at l = 1",
    )


# --- Sections V-C and V-D of the binomial paper ---------------------------------------------------


_, _, _, m_I, m_D = binomial.iscc_parameters.arguments
UP, DOWN = binomial.iscc_parameters.form.values()
r = symbols("r", positive=True)  # x/C


@claim("(38)", "l + 2k + 1 = 0, k + l > 0")
def ideal_scalability() -> Outcome:
    """The conditions l + 2k + 1 = 0 and k + l > 0 ask for k < -1 and l > 1."""
    given = [Eq(l + 2 * k + 1, 0), k + l > 0]
    return from_proofs(
        proof(k < -1, where=given),
        proof(l > 1, where=given),
        proof(k + l > 0, where=[Eq(l + 2 * k + 1, 0), k < -1]),
        computed="both ways",
        reason="That s_n is constant and rates get fair under them is the limit of small losses "
        "and small decreases: in (37) there is also the factor (2 - (k+1) z_1)/(2 - (k+1) z_n).",
    )


@claim("(39)", "x/m_D")
def iscc_decrease() -> Outcome:
    """With it a decrease takes at most x/m_D, and rates do not cross if m_D >= l."""
    s, more = symbols("s", positive=True), symbols("g", nonnegative=True)  # l = 1 + s, m_D = l + g
    part = (DOWN * x**l / x).subs(l, 1 + s).subs(x, r * C)
    q = symbols("q", positive=True)  # ln(C/x)
    slope = (1 + s) / (1 + s + more)
    return from_proofs(
        Eq(part, r**s / m_D),
        1 - exp(-q * s) > 0,
        slope <= 1,
        computed="the part is (x/C)^(l-1)/m_D, and R_D' = l (x/C)^(l-1)/m_D <= 1, for x <= C and l "
        "> 1",
    )


@claim("(40), (41)", "any x > 0", erratum=True)
def iscc_increase() -> Outcome:
    """lambda = C^(k+1)/m_I keeps an increase at x/m_I at most, for any x > 0."""
    part = (UP * x**-k / x).subs(x, r * C)
    form = proof(Eq(part, r ** (-k - 1) / m_I))
    wrong = proof(r ** (-k - 1) <= 1, where=[k < -1])
    return differs_if(
        form and not wrong,
        "an increase is the part (x/C)^(-k-1)/m_I of the rate, proved: at most 1/m_I for k <= -1 "
        "and x <= C",
        "Not for any x: above C, where overshoots and estimates of C that are too low lead, it is "
        "more, at "
        + ", ".join(
            f"{'x/C' if a == 'r' else a} = {b:.3g}" for a, b in sorted(wrong.counterexample.items())
        )
        + ".",
    )


@claim("(42)", "(k+2)/(m_I^2 (1 - (1 - 1/m_D)^(k+2)) + k + 2)")
def iscc_single() -> Outcome:
    """The loss of a single ISCC flow."""
    q = symbols("q", positive=True)
    printed = (k + 2) / (m_I**2 * (1 - (1 - 1 / m_D) ** (k + 2)) + k + 2)
    ours = binomial.iscc_loss.expr.subs(n, 1)
    return from_proofs(
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
        computed="from (34), (39) and (41)",
    )


@claim("(42)", "no dependence on n", erratum=True)
def iscc_of_n() -> Outcome:
    """The loss of ISCC no longer depends on n or C."""
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
    return refuted_if(
        top and not np.ptp(found) < 1e-6,
        "C cancels; n does not: the decrease at the fair share is the part n^(1-l)/m_D, which (42) "
        "takes at n = 1",
        "ISCC(-1.5, 2) with m_I = 20, m_D = 2: "
        f"{', '.join(f'{percent(v, 4)} at {a}' for a, v in values.items())}. It rises to 1/(1 + "
        "m_I^2/m_D) and is constant to 17 %, so the conclusion nearly stands.",
        values,
    )


@claim("Section VI-A", "l = 3, k = -2")
def tcp_friendly_iscc() -> Outcome:
    """l = 3, k = -2 is the only ideally scalable TCP-friendly scheme."""
    return from_proofs(
        proof(And(Eq(l, 3), Eq(k, -2)), where=[Eq(k + l, 1), Eq(l + 2 * k + 1, 0)]),
        computed="the one solution of k + l = 1 and l + 2k + 1 = 0",
    )


@claim("Section VI-A", "slow")
def tcp_friendly_is_slow() -> Outcome:
    """The TCP-friendly ISCC with l = 3, k = -2 converges slowly."""
    cycles = {
        name: cycles_to_fairness(a, b, 1.0, iscc(a, b, estimate=100.0)[1])[0]
        for name, (a, b) in {"ISCC(-1.5, 2)": (-1.5, 2), "ISCC(-2, 3)": (-2, 3)}.items()
    }
    slower = cycles["ISCC(-2, 3)"] > cycles["ISCC(-1.5, 2)"]
    return reproduced_if(
        slower,
        "cycles from (20, 80) on C = 100 to a fairness of 0.99: "
        + ", ".join(f"{a} {b:g}" for a, b in cycles.items()),
        values=cycles,
    )


@claim("Section VI-A", "slower as k + l -> 0")
def slow_near_one() -> Outcome:
    """Values of l near 1 bring k near -1 and so slow convergence."""
    powers = np.array([1.05, 1.2, 1.5, 2.0])
    found = [
        cycles_to_fairness((-1 - b) / 2, b, 1.0, iscc((-1 - b) / 2, b, estimate=100.0)[1])[0]
        for b in powers
    ]
    values = named("l = {:g}", powers, found)
    falls = bool(np.all(np.diff(found) < 0))
    return reproduced_if(
        falls,
        "cycles from (20, 80) on C = 100 to a fairness of 0.99, m_D = 2: "
        + ", ".join(f"{v:g} ({a})" for a, v in values.items()),
        values=values,
    )


@claim("Section VI-C", "1/2, 5 %")
def experiment_parameters() -> Outcome:
    """With m_D = 2 and m_I = 20 rates fall by 1/2 at most and grow by 5 % at most."""
    rates = np.linspace(1e-3, 1.0, 2001)
    up, down = iscc(-1.5, 2)
    values = {
        "growth": np.max(up * rates**1.5 / rates),
        "fall": np.max(down * rates**2 / rates),
    }
    return compared(
        [("5", 100 * values["growth"]), ("50", 100 * values["fall"])],
        f"at most {percent(values['growth'])} and {percent(values['fall'])}, both at x = C",
        values=values,
    )
