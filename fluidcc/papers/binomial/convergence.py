"""Section III and IV-B of the binomial paper: what makes rates fair, equations (1) to (24)."""

from __future__ import annotations

import numpy as np
from sympy import And, Eq, Symbol, cos, diff, log, simplify, sin, symbols

from fluidcc.formulas import binomial, response
from fluidcc.papers.binomial.common import (
    R_D,
    R_I,
    Delta,
    cycles_to_fairness,
    k,
    l,
    lam,
    mean_value,
    sigma,
    x,
    xi,
    z,
)
from fluidcc.papers.model import DIFFERS, NOT_GIVEN, REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof

Y = x + Delta  # the larger of two rates
SLOW = x - log(1 + x)
"""A decrease that is strictly steeper than proportional, and nowhere as steep as 1."""


@claim(
    "binomial",
    "(3), (4)",
    "Binomial controls of windows and of rates differ only in constants.",
    "lambda = alpha (MTU/RTT)^(k+1), sigma = beta (MTU/RTT)^(1-l)",
)
def windows_and_rates() -> Outcome:
    alpha, beta, _, _, mtu, rtt = binomial.window_to_rate.arguments
    up, down = binomial.window_to_rate.form.values()
    W, unit = symbols("W u", positive=True)
    put = {mtu: unit, rtt: 1}
    return from_proofs(
        proof(Eq(up.subs(put) * (W * unit) ** -k, unit * alpha * W**-k)),
        proof(Eq(down.subs(put) * (W * unit) ** l, unit * beta * W**l)),
        computed="for all k and l",
    )


@claim("binomial", "(5)", "AIMD(alpha, beta) is as fast as TCP at the same loss, if losses are periodic.",
       "alpha = 3 beta/(2 - beta)")  # fmt: skip
def tcp_friendly_aimd() -> Outcome:
    _, alpha, beta = response.aimd_window.arguments
    friendly = response.aimd_window.form.subs(alpha, binomial.tcp_friendly_alpha.form)
    same = response.square_root_window.form.subs(response.square_root_window.arguments[1], 1)
    return from_proofs(
        proof(Eq(friendly, same), where=[beta < 2]),
        computed="the mean windows of periodic sawtooths are equal",
        reason="With one loss in 1/p packets. At random losses the mean windows are sqrt(alpha/(beta p)), "
        "and equal with alpha = 2 beta.",
    )


@claim("binomial", "(10)", "Any positive decrease lowers the sum of the rates.", "R_D > 0")
def decrease_lowers_the_sum() -> Outcome:
    return from_proofs(proof(-R_D(x) - R_D(Y) < 0), computed="for every positive R_D")


@claim(
    "binomial",
    "(11), (12)",
    "A decrease loses no fairness iff x R_D(y) >= y R_D(x) for x < y.",
    "x R_D(y) - y R_D(x) >= 0",
)
def fairness_of_a_decrease() -> Outcome:
    after = (x - R_D(x)) / (Y - R_D(Y)) - x / Y
    return from_proofs(
        proof(Eq(after, (x * R_D(Y) - Y * R_D(x)) / (Y * (Y - R_D(Y)))), where=[Y - R_D(Y) > 0]),
        computed="the fairness changes by (x R_D(y) - y R_D(x))/(y (y - R_D(y))), for all R_D with y > R_D(y)",
    )


@claim("binomial", "(13)-(15)", "(12) for all x < y is R_D'(x) >= R_D(x)/x for all x.", "R_D' >= R_D/x")
def slope_of_a_decrease() -> Outcome:
    ratio = lambda v: R_D(v) / v  # noqa: E731
    slope = diff(ratio(xi), xi)
    necessary = diff(x * R_D(Y) - Y * R_D(x), Delta).subs(Delta, 0).doit()
    return from_proofs(
        # (12) is zero at y = x; if it is never negative its slope there is not either
        proof(Eq(necessary, x * R_D(x).diff(x) - R_D(x))),
        # R_D(y)/y = R_D(x)/x + Delta (R_D/x)'(xi), by the mean value theorem
        proof(x * Y * (ratio(x) + Delta * slope) - Y * R_D(x) >= 0, where=[R_D(xi).diff(xi) >= R_D(xi) / xi]),
        computed="both ways, for every differentiable R_D: R_D/x must not fall",
    )


@claim("binomial", "(18)", "So R_D(x) >= c2 x for all x > 0, with one constant c2 > 0.", "R_D(x) >= c2 x", erratum=True)
def decrease_at_least_linear() -> Outcome:
    c2 = symbols("c2", positive=True)
    wrong = proof(c2 * x <= SLOW)
    fits = proof(log(1 + x) > x / (1 + x))  # which is (15) for it, see strict_decrease
    if wrong or not fits:
        return from_proofs(wrong, computed="as printed")
    return Outcome(
        REFUTED,
        "R_D = x - ln(1 + x) satisfies (15), and R_D/x -> 0 as x -> 0",
        "It fails at "
        + ", ".join(f"{a} = {b:.3g}" for a, b in sorted(wrong.counterexample.items()))
        + ". The integrals "
        "of (16) have a lower end: R_D(x) >= c2 x holds for x >= x0 with c2 = R_D(x0)/x0, and below x0 with the sign "
        "reversed. So the conclusion drawn for large x stands.",
        dict(wrong.counterexample),
    )


@claim("binomial", "(19)", "Two rates do not cross in a decrease iff R_D' < 1.", "R_D'(x) < 1", erratum=True)
def no_crossing_down() -> Outcome:
    y, value, slope = mean_value(R_D)
    enough = proof(y - value > x - R_D(x), where=[slope < 1])
    touching = (x - sin(x)) / 2  # x - R_D = (x + sin x)/2 rises strictly, though its slope vanishes at pi, 3 pi, ...
    steep = proof(Eq(diff(touching, x), (1 - cos(x)) / 2))
    if not (enough and steep):
        return from_proofs(enough, steep, computed="as printed")
    return Outcome(
        DIFFERS,
        "sufficient: proved for every differentiable R_D; necessary is only R_D' <= 1, with equality on no interval",
        "R_D = (x - sin x)/2 never lets two rates cross, as x - R_D = (x + sin x)/2 rises strictly, and R_D' = "
        "(1 - cos x)/2 is 1 at x = pi.",
    )


@claim("binomial", "(20)", "Rates stay positive if (15) and (19) hold.", "x - R_D(x) > 0")
def rates_stay_positive() -> Outcome:
    slope = R_D(x).diff(x)
    return from_proofs(proof(x - R_D(x) > 0, where=[slope >= R_D(x) / x, slope < 1]), computed="for every R_D")


@claim(
    "binomial",
    "Section III-C",
    "If (15) is made strict, (19) can no longer hold.",
    "(15) strict excludes (19)",
    erratum=True,
)
def strict_decrease() -> Outcome:
    slope = diff(SLOW, x)
    # x R_D' - R_D = log(1 + x) - x/(1 + x)
    form = proof(Eq(x * slope - SLOW, log(1 + x) - x / (1 + x)))
    strict, below, positive = proof(log(1 + x) > x / (1 + x)), proof(slope < 1), proof(SLOW > 0)
    if not (form and strict and below and positive):
        return from_proofs(form, strict, below, positive, computed="as printed")
    return Outcome(
        REFUTED,
        "R_D = x - ln(1 + x) is positive, strictly steeper than R_D/x and less steep than 1, all proved",
        "So a decrease may improve fairness strictly for all x > 0, and (21) need not be strict.",
    )


@claim("binomial", "Section III-A", "x - lg(x + 2) can be used as a decrease.", "x - lg(x + 2)", erratum=True)
def logarithmic_example() -> Outcome:
    wrong = [proof(x - log(x + 2) / log(base) > 0) for base in (2, 10)]
    if any(wrong):
        return from_proofs(*wrong, computed="positive")
    return Outcome(
        REFUTED,
        "negative near zero, with logarithms to the base 2 as well as 10",
        "At x = 0 it is -lg 2. It is positive from x = 2 on (base 2) or 0.38 on (base 10); x - ln(1 + x) would do.",
        {"at 0.1, base 10": 0.1 - np.log10(2.1)},
    )


@claim("binomial", "(21)", "An increase loses no fairness iff R_I' <= R_I/x.", "R_I' <= R_I/x")
def slope_of_an_increase() -> Outcome:
    ratio = lambda v: R_I(v) / v  # noqa: E731
    slope = diff(ratio(xi), xi)
    after = (x + R_I(x)) / (Y + R_I(Y)) - x / Y
    necessary = diff(Y * R_I(x) - x * R_I(Y), Delta).subs(Delta, 0).doit()
    return from_proofs(
        proof(Eq(after, (Y * R_I(x) - x * R_I(Y)) / (Y * (Y + R_I(Y))))),
        proof(Eq(necessary, R_I(x) - x * R_I(x).diff(x))),
        proof(Y * R_I(x) - x * Y * (ratio(x) + Delta * slope) >= 0, where=[R_I(xi).diff(xi) <= R_I(xi) / xi]),
        computed="both ways, for every differentiable R_I",
    )


@claim("binomial", "(22)", "Two rates do not cross in an increase if R_I' > -1.", "R_I'(x) > -1")
def no_crossing_up() -> Outcome:
    y, value, slope = mean_value(R_I)
    return from_proofs(
        proof(y + value > x + R_I(x), where=[slope > -1]),
        computed="sufficient, for every differentiable R_I",
        reason="Necessary is R_I' >= -1, with equality on no interval, as for (19).",
    )


@claim("binomial", "(23)", "Binomial controls never lose fairness iff k > -1 and l >= 1.", "k > -1, l >= 1")
def binomial_fairness() -> Outcome:
    up, down = lam * x**-k, sigma * x**l
    return from_proofs(
        proof(Eq(up / x - diff(up, x), lam * (1 + k) * x ** (-k - 1))),  # (21), strictly, iff 1 + k > 0
        proof(lam * (1 + k) * x ** (-k - 1) > 0, where=[k > -1]),
        proof(Eq(diff(down, x) - down / x, sigma * (l - 1) * x ** (l - 1))),  # (15) iff l >= 1
        proof(sigma * (l - 1) * x ** (l - 1) >= 0, where=[l >= 1]),
        computed="R_I/x - R_I' = lambda (1 + k) x^(-k-1) and R_D' - R_D/x = sigma (l - 1) x^(l-1)",
    )


@claim("binomial", "(24)", "Rates do not cross for any k, and for l <= 1, at large enough x.", "k anything, l <= 1")
def binomial_crossing() -> Outcome:
    up, down = lam * x**-k, sigma * x**l
    s = symbols("s", positive=True)
    return from_proofs(
        proof(Eq(diff(up, x) + 1, (x ** (k + 1) - k * lam) * x ** (-k - 1))),  # (22) iff k lambda < x^(k+1)
        proof(Eq(1 - diff(down, x), 1 - l * sigma * x ** (l - 1))),  # (19) iff l sigma x^(l-1) < 1
        # l = 1 + s > 1: the slope is s-th power, and 1 at the rate below; above it rates cross
        proof(Eq(((1 + s) * sigma * x**s).subs(x, ((1 + s) * sigma) ** (-1 / s)), 1)),
        proof(k * lam < x ** (k + 1), where=[k < 0]),
        computed="for k > 0 from x = (k lambda)^(1/(k+1)) on, for l < 1 from (l sigma)^(1/(1-l)) on, for l = 1 if "
        "sigma < 1; for l > 1 only below (l sigma)^(-1/(l-1))",
    )


@claim(
    "binomial",
    "Section III-B",
    "No increase of a binomial scheme makes rates cross in practice.",
    "never",
    erratum=True,
)
def crossing_increase() -> Outcome:
    small, large = 0.5, 1.0  # packets; IIAD(1, 1/2) adds 1/w
    after = small + 1 / small, large + 1 / large
    if after[0] <= after[1]:
        return Outcome(REPRODUCED, f"{after}")
    return Outcome(
        DIFFERS,
        f"IIAD(1, 1/2) takes windows of {small:g} and {large:g} packets to {after[0]:g} and {after[1]:g}",
        "True of windows above (k alpha)^(1/(k+1)): 1 packet for IIAD, 0.63 for SQRT with alpha = 1, none for k <= 0.",
        {"small": after[0], "large": after[1]},
    )


@claim(
    "binomial",
    "Section IV-A",
    "If rates may be arbitrarily large, AIMD is the only TCP-friendly binomial control that gets fairer monotonically.",
    "k = 0, l = 1",
)
def only_aimd() -> Outcome:
    return from_proofs(
        proof(And(Eq(l, 1), Eq(k, 0)), where=[l >= 1, l <= 1, Eq(k + l, 1)]),  # (23), (24), k + l = 1
        proof(k > -1, where=[Eq(k, 0)]),
        computed="l >= 1 by (23), l <= 1 by (24), and k + l = 1",
        reason="With an upper limit on rates l > 1 is possible, see (39).",
    )


@claim(
    "binomial",
    "Section IV-B",
    "A binomial scheme gets fair iff k + l > 0, and unfair iff k + l < 0.",
    "k + l > 0",
    erratum=True,
)
def converges_iff() -> Outcome:
    factor = binomial.convergence_factor.form.subs(sigma, z * binomial.convergence_factor.arguments[-1] ** (1 - l))
    factor = simplify(factor)
    d = Symbol("d", real=True)  # difference of two rates near x; d' = R_I'(x) d/R while x' = R_I(x)/R
    growth = proof(Eq(diff(lam * x**-k, x) * d / (lam * x**-k), -k * d / x))  # d(d)/dx, so d ~ x^-k
    down = proof(Eq(diff(x - sigma * x**l, x).subs(sigma, z * x ** (1 - l)), 1 - l * z))
    first = proof(Eq(diff(factor, z).subs(z, 0), -(k + l)))
    up = {"k": -0.5, "l": 0.6, "z": 0.9}, {"k": 0.5, "l": -0.51, "z": 0.9}
    values = [binomial.convergence_factor(v["k"], v["l"], v["z"], 1.0) for v in up]
    if not (growth and down and first and values[0] > 1 > values[1]):
        return from_proofs(growth, down, first, computed="as printed")
    return Outcome(
        REFUTED,
        "a small difference of rates is multiplied by (1 - l z)(1 - z)^k in a cycle, proved; z = sigma U^(l-1)",
        f"k + l > 0 is the limit of small z, where the factor is 1 - (k + l) z. k = -0.5, l = 0.6, z = 0.9 has k + l = "
        f"0.1 and a factor of {values[0]:.3g}: unfair. k = 0.5, l = -0.51, z = 0.9 has k + l = -0.01 and a factor of "
        f"{values[1]:.3g}.",
        {"diverges": values[0], "converges": values[1]},
    )


# lambda only sets the pace of a cycle, so any will do.
FAIRNESS_SCHEMES = {
    "AIMD": (0, 1, 0.5),
    "IIAD": (1, 0, 5.0),
    "SQRT": (0.5, 0.5, 0.5 * 10**0.5),
    "ISCC(-1.5, 2)": (-1.5, 2, 1 / 200),
}


@claim("binomial", "Figs. 2, 3", "Rates from (20, 80) on C = 100 converge to fairness.", "")
def cycles_to_fair() -> Outcome:
    found = {name: cycles_to_fairness(a, b, 1.0, down) for name, (a, b, down) in FAIRNESS_SCHEMES.items()}
    values = {name: float(c) for name, (c, _) in found.items()}
    return Outcome(
        NOT_GIVEN,
        "cycles until the lower rate is 99 % of the higher one: "
        + "; ".join(f"{name} {c} (by the factor {f:.1f})" for name, (c, f) in found.items()),
        "The figures are sketches. Taken: AIMD(1/2); IIAD with sigma = 5; SQRT with sigma = sqrt(10)/2, so that a rate "
        "of 10 would fall by half as AIMD's does; ISCC with m_D = 2. Fluid cycles with synchronised, immediate "
        "feedback. The factor (1 - l z)(1 - z)^k is one of small differences; its count extrapolates it to large ones.",
        values,
    )
