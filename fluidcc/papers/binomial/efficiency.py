"""Section IV-C of the binomial paper: the sawtooth and its efficiency, equations (25) to (33), Fig. 4."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sympy import Eq, Function, diff, limit, series, symbols

from fluidcc.formulas import binomial
from fluidcc.papers.binomial.common import C, U, abstract, k, l, lam, n, percent, sigma, z
from fluidcc.papers.model import DIFFERS, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.papers.printed import agrees, compared

__all__ = ["BETA", "K", "W", "errors", "powers_of_fig4"]

K, W, BETA = 0.5, 100.0, 0.5
"""Of Fig. 4: k, capacity in packets a round trip, and beta."""

_whole = {sigma: z * U ** (1 - l)}  # so that sigma U^(l-1) is z
E = binomial.efficiency.expr.subs(_whole).simplify()
TWO = binomial.efficiency_two_term.form.subs(_whole).simplify()


def powers_of_fig4() -> NDArray[np.float64]:
    """The powers l on the axis of Fig. 4."""
    return np.linspace(-0.5, 1.0, 301)


@lru_cache(maxsize=8)
def errors(flows: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Exact efficiency, and the relative errors of its one- and two-term forms, over `powers_of_fig4`."""
    at: tuple[Any, ...] = (K, powers_of_fig4(), BETA, W / flows)
    exact = binomial.efficiency(*at)
    one, two = (abs(f(*at) - exact) / exact for f in (binomial.efficiency_one_term, binomial.efficiency_two_term))
    return exact, one, two


@claim(
    "binomial", "(25)", "In the increase x(t) = (lambda (k + 1) t/R)^(1/(k+1)).", "valid for the schemes", erratum=True
)
def increase_in_time() -> Outcome:
    t, R, s, x0 = symbols("t R s x0", positive=True)
    up = {k: s - 1}  # k + 1 = s > 0
    printed = (lam * (k + 1) * t / R) ** (1 / (k + 1))
    good = proof(Eq(diff(printed.subs(up), t), (lam * printed**-k / R).subs(up)))
    general = (x0 ** (k + 1) + lam * (k + 1) * t / R) ** (1 / (k + 1))
    # x^(k+1) grows by lambda (k+1)/R a second, whatever k + 1 is
    right = proof(Eq(diff((general ** (k + 1)).powsimp(force=True), t), lam * (k + 1) / R))
    base = float(printed.base.subs({k: -1.5, lam: 1, t: 1, R: 1}))
    if not (good and right and base < 0):
        return from_proofs(good, right, computed="as printed")
    return Outcome(
        DIFFERS,
        "solves x' = lambda x^-k/R from x(0) = 0 for k > -1, proved",
        f"For k < -1, which ideal scalability needs, nothing grows from x(0) = 0, and the formula takes a power of a "
        f"negative number ({base:g} at k = -1.5, lambda = t = R = 1). Right for every k != -1: x^(k+1) = x(0)^(k+1) + "
        "lambda (k + 1) t/R. The results (26) and (27) hold all the same.",
    )


@claim("binomial", "(26), (27)", "Duration of an increase and what is sent in it.", "dt, X")
def sawtooth() -> Outcome:
    checks = []
    for formula, power in ((binomial.cycle_time, k), (binomial.cycle_data, k + 1)):
        f = formula.form.subs(_whole).subs(symbols("R", positive=True), 1).args
        value = formula.form.doit().subs(_whole)
        nonzero = {k: symbols("q", positive=True) - (1 if power == k else 2)}  # k + 1 or k + 2 is q
        f = value.subs(nonzero).simplify()
        R = symbols("R", positive=True)
        # from L = U (1 - z): it vanishes at z = 0, and a lower L adds L^power R/lambda dL, with dL = -U dz
        checks.append(proof(Eq(diff(f, z), ((U * (1 - z)) ** power * U * R / lam).subs(nonzero)), where=[z < 1]))
        checks.append(proof(Eq(f.subs(z, 0), 0)))
    return from_proofs(
        *checks, computed="integrals of R/lambda x^k dx and R/lambda x^(k+1) dx from U (1 - z) to U, for all k"
    )


@claim("binomial", "(28)", "The efficiency is X/(U dt).", "(k+1)(1 - (1-z)^(k+2))/((k+2)(1 - (1-z)^(k+1)))")
def exact_efficiency() -> Outcome:
    a, b, form = binomial.cycle_data.form, binomial.cycle_time.form, binomial.efficiency.form
    generic = (k + 1) * (1 - (1 - z) ** (k + 2)) / ((k + 2) * (1 - (1 - z) ** (k + 1)))
    limits = []
    for at in (-1, -2):
        there = E.subs(k, at)
        near = limit(generic.subs(z, 1 - symbols("r", positive=True)), k, at)  # r = 1 - z
        limits.append(proof(Eq(near.subs(symbols("r", positive=True), 1 - z), there), where=[z < 1]))
    return from_proofs(
        proof(Eq(abstract(a / (U * b)), abstract(form))),
        *limits,
        computed="and its limits: z/(-ln(1 - z)) at k = -1, -ln(1 - z)(1 - z)/z at k = -2",
        reason="The printed form is 0/0 at k = -1 and k = -2; fluidcc.formulas.binomial.efficiency is not.",
    )


@claim("binomial", "(29)", "Rates stay positive as long as n < C/sigma^(1/(1-l)); that is 158 in Fig. 4.", "158")
def flow_limit() -> Outcome:
    s, t = symbols("s t", positive=True)  # 1 - l = s > 0; n is t times the bound
    bound = C / sigma ** (1 / s)
    exact = proof(Eq((sigma * (C / n) ** (-s)).subs(n, t * bound), t**s))
    value = binomial.max_flows(-0.5, BETA, W)
    if not agrees("158", np.floor(value)):
        return Outcome(DIFFERS, f"{value:g}", "Not as printed: the largest n is 158 there.")
    return from_proofs(exact, computed=f"z = (n/bound)^(1-l); {value:.2f} for W = 100, beta = 1/2, l = -0.5")


@claim("binomial", "(30)", "1 - (1-z)^q = q z - q(q-1)/2 z^2 + q(q-1)(q-2)/6 z^3 ...", "Taylor")
def taylor() -> Outcome:
    q = symbols("q", real=True)
    wanted = q * z - q * (q - 1) / 2 * z**2 + q * (q - 1) * (q - 2) / 6 * z**3
    return from_proofs(
        proof(Eq(series(1 - (1 - z) ** q, z, 0, 4).removeO().expand(), wanted.expand())), computed="to third order"
    )


@claim("binomial", "(30)", "For l < 1 the value of z is less than 1.", "l < 1 => z < 1", erratum=True)
def part_below_one() -> Outcome:
    value = 2.0 * 1.0 ** (0 - 1)
    return Outcome(
        DIFFERS if value >= 1 else REPRODUCED,
        "z < 1 is the condition (29), not a consequence of l < 1",
        f"With l = 0, sigma = 2 and U = 1 z is {value:g}: rates would become negative.",
        {"z": value},
    )


@claim("binomial", "(31)", "To the leading term of (30) the efficiency is 1.", "e = 1")
def leading_term() -> Outcome:
    one = ((k + 1) * (k + 2) * z) / ((k + 2) * (k + 1) * z)
    return from_proofs(
        proof(Eq(one, binomial.efficiency_one_term.form)), proof(Eq(limit(TWO, z, 0), 1)), computed="for all k and l"
    )


@claim("binomial", "(32)", "To two terms e = 1 - z/(2 - k z), exact for AIMD.", "1 - z/(2 - k z)")
def two_terms() -> Outcome:
    cut = lambda q: q * z - q * (q - 1) / 2 * z**2  # noqa: E731
    truncated = (k + 1) * cut(k + 2) / ((k + 2) * cut(k + 1))
    return from_proofs(
        proof(Eq(truncated, TWO)),
        proof(Eq(E.subs(k, 0), TWO.subs(k, 0))),
        proof(Eq(TWO.subs(k, 0), (2 - z) / 2)),
        computed="for all k and z; at k = 0 equal to (28), (2 - z)/2",
        reason="Exact at k = 0 whatever l is.",
    )


@claim("binomial", "(33)", "With n flows e_n = 1 - z/(2 n^(l-1) - k z), z = sigma U^(l-1).", "U", erratum=True)
def efficiency_of_n() -> Outcome:
    right = binomial.efficiency_n_two_term.form
    read = 1 - sigma * C ** (l - 1) / (2 * n ** (l - 1) - k * sigma * C ** (l - 1))
    good = proof(Eq(right, read))
    literal = 1 - sigma * (C / n) ** (l - 1) / (2 * n ** (l - 1) - k * sigma * (C / n) ** (l - 1))
    wrong = proof(Eq(right, literal))
    if not good or wrong:
        return from_proofs(good, computed="as printed")
    return Outcome(
        DIFFERS,
        "proved with z = sigma C^(l-1)",
        "The sentence before it puts U = C/n; with that U in (33) n is counted twice, and it fails at "
        + ", ".join(f"{a} = {b:.3g}" for a, b in sorted(wrong.counterexample.items())),
    )


@claim("binomial", "Section IV-C", "Only with l = 1 does the efficiency not depend on the number of flows.", "l = 1")
def independent_of_n() -> Outcome:
    # The exact efficiency is e = X/(U dt), of z_n alone. With the low end L = U (1 - z) it is proved
    # in `sawtooth` that dX/dz = L d(dt)/dz, so that e' = d(dt)/dz (L dt - X)/(U dt^2); and
    # D = X - L dt is 0 at z = 0 and has D' = U dt > 0. So e falls strictly.
    sent, lasts = (Function(name, positive=True)(z) for name in ("X", "T"))
    rises = symbols("t", positive=True)  # d(dt)/dz
    low = U * (1 - z)
    put = {diff(sent, z): low * rises, diff(lasts, z): rises}
    falls = diff(sent / (U * lasts), z).subs(put)
    above = diff(sent - low * lasts, z).subs(put)
    gap = symbols("D", positive=True)
    at = _part_of_n()
    return from_proofs(
        proof(Eq(falls, -rises * (sent - low * lasts) / (U * lasts**2))),
        proof(Eq(above, U * lasts)),
        proof(-rises * gap / (U * lasts**2) < 0),
        proof(Eq(diff(at, n), (1 - l) * at / n)),
        computed="the exact efficiency (28) falls strictly with z_n = sigma (C/n)^(l-1), for all k; and dz_n/dn = "
        "(1 - l) z_n/n is zero only for l = 1",
    )


def _part_of_n() -> Any:
    """z_n: the part of its rate that each of n flows gives up."""
    return sigma * (C / n) ** (l - 1)


@claim("binomial", "Fig. 4(a)", "At l = 1 the one-term form errs by 31 % for k = 1/2; by 35 to 28 % for k = -0.5 to 1.",
       "31 %, 35 %, 28 %", erratum=True)  # fmt: skip
def errors_at_aimd() -> Outcome:
    at = np.array([0.5, -0.5, 1.0])
    found = 1 / binomial.efficiency(at, 1, BETA, W) - 1
    grid = 1 / binomial.efficiency(np.linspace(-0.5, 1, 61), 1, BETA, W) - 1
    values = {f"k = {a:g}": float(v) for a, v in zip(at, found, strict=True)}
    if not np.all(np.diff(grid) < 0):
        return Outcome(DIFFERS, str(values), "it is not monotone in k", values)
    text = ", ".join(f"{percent(v, 4)} at {a}" for a, v in values.items()) + "; monotone in k"
    return compared(
        zip(("31", "35", "28"), (100 * v for v in values.values()), strict=True),
        text,
        "31 is rounded, the other two are cut off.",
        values,
    )


@claim(
    "binomial", "Fig. 4(a)", "For l below 0.5 the efficiency is close to 100 %, and the error negligible.", "~ 100 %"
)
def efficient_below_half() -> Outcome:
    exact, one, _ = errors(1)
    below = powers_of_fig4() < 0.5
    values = {"least efficiency": float(exact[below].min()), "largest error": float(one[below].max())}
    return Outcome(
        REPRODUCED if values["largest error"] < 0.05 else DIFFERS,
        f"efficiency of at least {percent(values['least efficiency'])}, "
        f"error of at most {percent(values['largest error'])}",
        "No number is printed: an error below 5 % is taken for negligible."
        if values["largest error"] < 0.05
        else "The error is not negligible: it is not below 5 %.",
        values,
    )


@claim("binomial", "Fig. 4(a)", "The two-term form errs by 5 to 1000 times less than the one-term form.", "5 to 1000",
       erratum=True)  # fmt: skip
def two_terms_better() -> Outcome:
    _, one, two = errors(1)
    ratio = one / two
    values = {"least": float(ratio.min()), "most": float(ratio.max())}
    span = powers_of_fig4()[(ratio >= 5) & (ratio <= 1000)]
    return compared(
        [("5", values["least"]), ("1000", values["most"])],
        f"{values['least']:.3g} times at l = 1, {values['most']:.3g} times at l = -0.5",
        f"1000 is reached at l = {span.min():.2g}, and below the factor goes on growing, as "
        "1/z^2. Where the axis of the figure begins is not said; Fig. 4(b) has l = -0.5.",
        values,
    )


@claim("binomial", "Fig. 4(b)", "Near the limit (29) all schemes with l < 1 are less efficient than AIMD.", "near 158",
       erratum=True)  # fmt: skip
def efficiency_crossing() -> Outcome:
    # at n = W the fair share is one packet, so z = beta for every l: equal efficiencies at equal k
    same = proof(Eq(binomial.efficiency_n.expr.subs({C: n}), binomial.efficiency_n.expr.subs({C: n, l: 1})))
    aimd = binomial.efficiency(0, 1, BETA, W)
    roots = {
        f"l = {a:g}": brentq(
            lambda m, a=a: binomial.efficiency_n(K, a, BETA, W, m) - aimd, 1.0, 0.9999 * binomial.max_flows(a, BETA, W)
        )
        / W
        for a in (-0.5, 0.0, 0.5)
    }
    if not same:
        return from_proofs(same, computed="")
    return Outcome(
        DIFFERS,
        "at n = W = 100 every scheme is as efficient as that with l = 1 and the same k and beta, proved, and worse "
        "from there on",
        "Not near the limit: at n = W the fair share is one packet and z = beta whatever l is. Against AIMD itself, "
        "k = 0, the k = 1/2 of the figure crosses at n/W = "
        + ", ".join(f"{v:.3f} ({a})" for a, v in roots.items())
        + ".",
        roots,
    )


@claim("binomial", "Fig. 4(b)", "At n = 150 the one-term error is between 30 and 65 %.", "30 % to 65 %", erratum=True)
def errors_of_150_flows() -> Outcome:
    _, one, two = errors(150)
    at = powers_of_fig4()
    values = {"least": float(one.min()), "most": float(one.max()), "two terms, most": float(two.max())}
    low, high = at[one.argmin()], at[one.argmax()]
    text = f"{percent(values['least'])} at l = {low:.2g} to {percent(values['most'])} at l = {high:.2g}"
    return compared(
        [("30-65", 100 * values["least"]), ("30-65", 100 * values["most"])],
        text,
        "With k = 1/2, W = 100, beta = 1/2, as Fig. 4(a); k is not said again for Fig. 4(b).",
        values,
    )
