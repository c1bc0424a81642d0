"""Sections III and IV of the binomial paper: how rates get fair, and how efficient cycles are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sympy import And, Eq, Function, Symbol, cos, diff, limit, log, series, simplify, sin, symbols

from fluidcc.formulas import binomial, response
from fluidcc.papers.binomial.common import (
    R_D,
    R_I,
    C,
    Delta,
    U,
    abstract,
    cycles_to_fairness,
    k,
    l,
    lam,
    mean_value,
    n,
    sigma,
    x,
    xi,
    z,
)
from fluidcc.papers.model import (
    DIFFERS,
    NOT_GIVEN,
    Outcome,
    claim,
    differs_if,
    from_proofs,
    proof,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import agrees, at_values, compared, named, percent

Y = x + Delta  # the larger of two rates
# A decrease that is strictly steeper than proportional, and nowhere as steep as 1
SLOW = x - log(1 + x)


@claim("(3), (4)", "lambda = alpha (MTU/RTT)^(k+1), sigma = beta (MTU/RTT)^(1-l)")
def windows_and_rates() -> Outcome:
    """Binomial controls of windows and of rates differ only in constants."""
    alpha, beta, _, _, mtu, rtt = binomial.window_to_rate.arguments
    up, down = binomial.window_to_rate.form.values()
    W, unit = symbols("W u", positive=True)
    put = {mtu: unit, rtt: 1}
    return from_proofs(
        Eq(up.subs(put) * (W * unit) ** -k, unit * alpha * W**-k),
        Eq(down.subs(put) * (W * unit) ** l, unit * beta * W**l),
        computed="for all k and l",
    )


@claim("(5)", "alpha = 3 beta/(2 - beta)")
def tcp_friendly_aimd() -> Outcome:
    """AIMD(alpha, beta) is as fast as TCP at the same loss, if losses are periodic."""
    _, alpha, beta = response.aimd_window.arguments
    friendly = response.aimd_window.form.subs(alpha, binomial.tcp_friendly_alpha.form)
    same = response.square_root_window.form.subs(response.square_root_window.arguments[1], 1)
    return from_proofs(
        proof(Eq(friendly, same), where=[beta < 2]),
        computed="the mean windows of periodic sawtooths are equal",
        reason="With one loss in 1/p packets. At random losses the mean windows are "
        "sqrt(alpha/(beta p)), and equal with alpha = 2 beta.",
    )


@claim("(10)", "R_D > 0")
def decrease_lowers_the_sum() -> Outcome:
    """Any positive decrease lowers the sum of the rates."""
    return from_proofs(-R_D(x) - R_D(Y) < 0, computed="for every positive R_D")


@claim("(11), (12)", "x R_D(y) - y R_D(x) >= 0")
def fairness_of_a_decrease() -> Outcome:
    """A decrease loses no fairness iff x R_D(y) >= y R_D(x) for x < y."""
    after = (x - R_D(x)) / (Y - R_D(Y)) - x / Y
    return from_proofs(
        proof(Eq(after, (x * R_D(Y) - Y * R_D(x)) / (Y * (Y - R_D(Y)))), where=[Y - R_D(Y) > 0]),
        computed="the fairness changes by (x R_D(y) - y R_D(x))/(y (y - R_D(y))), for all R_D with "
        "y > R_D(y)",
    )


@claim("(13)-(15)", "R_D' >= R_D/x")
def slope_of_a_decrease() -> Outcome:
    """(12) for all x < y is R_D'(x) >= R_D(x)/x for all x."""
    ratio = lambda v: R_D(v) / v  # noqa: E731
    slope = diff(ratio(xi), xi)
    necessary = diff(x * R_D(Y) - Y * R_D(x), Delta).subs(Delta, 0).doit()
    return from_proofs(
        Eq(necessary, x * R_D(x).diff(x) - R_D(x)),
        proof(
            x * Y * (ratio(x) + Delta * slope) - Y * R_D(x) >= 0,
            where=[R_D(xi).diff(xi) >= R_D(xi) / xi],
        ),
        computed="both ways, for every differentiable R_D: R_D/x must not fall",
    )


@claim("(18)", "R_D(x) >= c2 x", erratum=True)
def decrease_at_least_linear() -> Outcome:
    """So R_D(x) >= c2 x for all x > 0, with one constant c2 > 0."""
    c2 = symbols("c2", positive=True)
    wrong = proof(c2 * x <= SLOW)
    fits = proof(log(1 + x) > x / (1 + x))  # which is (15) for it, see strict_decrease
    return refuted_if(
        not wrong and fits,
        "R_D = x - ln(1 + x) satisfies (15), and R_D/x -> 0 as x -> 0",
        "It fails at "
        + at_values(wrong.counterexample)
        + ". The integrals of (16) have a lower end: R_D(x) >= c2 x holds for x >= x0 with c2 = "
        "R_D(x0)/x0, and below x0 with the sign reversed. So the conclusion drawn for large x "
        "stands.",
        dict(wrong.counterexample),
    )


@claim("(19)", "R_D'(x) < 1", erratum=True)
def no_crossing_down() -> Outcome:
    """Two rates do not cross in a decrease iff R_D' < 1."""
    y, value, slope = mean_value(R_D)
    enough = proof(y - value > x - R_D(x), where=[slope < 1])
    # x - R_D = (x + sin x)/2 rises strictly, though its slope vanishes at pi, 3 pi, ...
    touching = (x - sin(x)) / 2
    steep = proof(Eq(diff(touching, x), (1 - cos(x)) / 2))
    return differs_if(
        enough and steep,
        "sufficient: proved for every differentiable R_D; necessary is only R_D' <= 1, with "
        "equality on no interval",
        "R_D = (x - sin x)/2 never lets two rates cross, as x - R_D = (x + sin x)/2 rises "
        "strictly, and R_D' = (1 - cos x)/2 is 1 at x = pi.",
    )


@claim("(20)", "x - R_D(x) > 0")
def rates_stay_positive() -> Outcome:
    """Rates stay positive if (15) and (19) hold."""
    slope = R_D(x).diff(x)
    return from_proofs(
        proof(x - R_D(x) > 0, where=[slope >= R_D(x) / x, slope < 1]), computed="for every R_D"
    )


@claim("Section III-C", "(15) strict excludes (19)", erratum=True)
def strict_decrease() -> Outcome:
    """If (15) is made strict, (19) can no longer hold."""
    slope = diff(SLOW, x)
    # x R_D' - R_D = log(1 + x) - x/(1 + x)
    form = proof(Eq(x * slope - SLOW, log(1 + x) - x / (1 + x)))
    strict, below, positive = proof(log(1 + x) > x / (1 + x)), proof(slope < 1), proof(SLOW > 0)
    return refuted_if(
        form and strict and below and positive,
        "R_D = x - ln(1 + x) is positive, strictly steeper than R_D/x and less steep than 1, all "
        "proved",
        "So a decrease may improve fairness strictly for all x > 0, and (21) need not be strict.",
    )


@claim("Section III-A", "x - lg(x + 2)", erratum=True)
def logarithmic_example() -> Outcome:
    """x - lg(x + 2) can be used as a decrease."""
    wrong = [proof(x - log(x + 2) / log(base) > 0) for base in (2, 10)]
    return refuted_if(
        not any(wrong),
        "negative near zero, with logarithms to the base 2 as well as 10",
        "At x = 0 it is -lg 2. It is positive from x = 2 on (base 2) or 0.38 on (base 10); x - "
        "ln(1 + x) would do.",
        {"at 0.1, base 10": 0.1 - np.log10(2.1)},
    )


@claim("(21)", "R_I' <= R_I/x")
def slope_of_an_increase() -> Outcome:
    """An increase loses no fairness iff R_I' <= R_I/x."""
    ratio = lambda v: R_I(v) / v  # noqa: E731
    slope = diff(ratio(xi), xi)
    after = (x + R_I(x)) / (Y + R_I(Y)) - x / Y
    necessary = diff(Y * R_I(x) - x * R_I(Y), Delta).subs(Delta, 0).doit()
    return from_proofs(
        Eq(after, (Y * R_I(x) - x * R_I(Y)) / (Y * (Y + R_I(Y)))),
        Eq(necessary, R_I(x) - x * R_I(x).diff(x)),
        proof(
            Y * R_I(x) - x * Y * (ratio(x) + Delta * slope) >= 0,
            where=[R_I(xi).diff(xi) <= R_I(xi) / xi],
        ),
        computed="both ways, for every differentiable R_I",
    )


@claim("(22)", "R_I'(x) > -1")
def no_crossing_up() -> Outcome:
    """Two rates do not cross in an increase if R_I' > -1."""
    y, value, slope = mean_value(R_I)
    return from_proofs(
        proof(y + value > x + R_I(x), where=[slope > -1]),
        computed="sufficient, for every differentiable R_I",
        reason="Necessary is R_I' >= -1, with equality on no interval, as for (19).",
    )


@claim("(23)", "k > -1, l >= 1")
def binomial_fairness() -> Outcome:
    """Binomial controls never lose fairness iff k > -1 and l >= 1."""
    up, down = lam * x**-k, sigma * x**l
    return from_proofs(
        Eq(up / x - diff(up, x), lam * (1 + k) * x ** (-k - 1)),
        proof(lam * (1 + k) * x ** (-k - 1) > 0, where=[k > -1]),
        Eq(diff(down, x) - down / x, sigma * (l - 1) * x ** (l - 1)),
        proof(sigma * (l - 1) * x ** (l - 1) >= 0, where=[l >= 1]),
        computed="R_I/x - R_I' = lambda (1 + k) x^(-k-1) and R_D' - R_D/x = sigma (l - 1) x^(l-1)",
    )


@claim("(24)", "k anything, l <= 1")
def binomial_crossing() -> Outcome:
    """Rates do not cross for any k, and for l <= 1, at large enough x."""
    up, down = lam * x**-k, sigma * x**l
    s = symbols("s", positive=True)
    return from_proofs(
        Eq(diff(up, x) + 1, (x ** (k + 1) - k * lam) * x ** (-k - 1)),
        Eq(1 - diff(down, x), 1 - l * sigma * x ** (l - 1)),
        Eq(((1 + s) * sigma * x**s).subs(x, ((1 + s) * sigma) ** (-1 / s)), 1),
        proof(k * lam < x ** (k + 1), where=[k < 0]),
        computed="for k > 0 from x = (k lambda)^(1/(k+1)) on, for l < 1 from (l sigma)^(1/(1-l)) "
        "on, for l = 1 if sigma < 1; for l > 1 only below (l sigma)^(-1/(l-1))",
    )


@claim("Section III-B", "never", erratum=True)
def crossing_increase() -> Outcome:
    """No increase of a binomial scheme makes rates cross in practice."""
    small, large = 0.5, 1.0  # packets; IIAD(1, 1/2) adds 1/w
    after = small + 1 / small, large + 1 / large
    return differs_if(
        after[0] > after[1],
        f"IIAD(1, 1/2) takes windows of {small:g} and {large:g} packets to {after[0]:g} and "
        f"{after[1]:g}",
        "True of windows above (k alpha)^(1/(k+1)): 1 packet for IIAD, 0.63 for SQRT with alpha = "
        "1, none for k <= 0.",
        {"small": after[0], "large": after[1]},
    )


@claim("Section IV-A", "k = 0, l = 1")
def only_aimd() -> Outcome:
    """If rates may be arbitrarily large, AIMD is the only TCP-friendly binomial control that gets
    fairer monotonically."""
    return from_proofs(
        # (23), (24), k + l = 1
        proof(And(Eq(l, 1), Eq(k, 0)), where=[l >= 1, l <= 1, Eq(k + l, 1)]),
        proof(k > -1, where=[Eq(k, 0)]),
        computed="l >= 1 by (23), l <= 1 by (24), and k + l = 1",
        reason="With an upper limit on rates l > 1 is possible, see (39).",
    )


@claim("Section IV-B", "k + l > 0", erratum=True)
def converges_iff() -> Outcome:
    """A binomial scheme gets fair iff k + l > 0, and unfair iff k + l < 0."""
    factor = binomial.convergence_factor.form.subs(
        sigma, z * binomial.convergence_factor.arguments[-1] ** (1 - l)
    )
    factor = simplify(factor)
    # difference of two rates near x; d' = R_I'(x) d/R while x' = R_I(x)/R
    d = Symbol("d", real=True)
    growth = proof(Eq(diff(lam * x**-k, x) * d / (lam * x**-k), -k * d / x))  # d(d)/dx, so d ~ x^-k
    down = proof(Eq(diff(x - sigma * x**l, x).subs(sigma, z * x ** (1 - l)), 1 - l * z))
    first = proof(Eq(diff(factor, z).subs(z, 0), -(k + l)))
    up = {"k": -0.5, "l": 0.6, "z": 0.9}, {"k": 0.5, "l": -0.51, "z": 0.9}
    values = [binomial.convergence_factor(v["k"], v["l"], v["z"], 1.0) for v in up]
    return refuted_if(
        growth and down and first and values[0] > 1 > values[1],
        "a small difference of rates is multiplied by (1 - l z)(1 - z)^k in a cycle, proved; z = "
        "sigma U^(l-1)",
        "k + l > 0 is the limit of small z, where the factor is 1 - (k + l) z. k = -0.5, l = 0.6, "
        f"z = 0.9 has k + l = 0.1 and a factor of {values[0]:.3g}: unfair. k = 0.5, l = -0.51, z = "
        f"0.9 has k + l = -0.01 and a factor of {values[1]:.3g}.",
        {"diverges": values[0], "converges": values[1]},
    )


# lambda only sets the pace of a cycle, so any will do.
FAIRNESS_SCHEMES = {
    "AIMD": (0, 1, 0.5),
    "IIAD": (1, 0, 5.0),
    "SQRT": (0.5, 0.5, 0.5 * 10**0.5),
    "ISCC(-1.5, 2)": (-1.5, 2, 1 / 200),
}


@claim("Figs. 2, 3")
def cycles_to_fair() -> Outcome:
    """Rates from (20, 80) on C = 100 converge to fairness."""
    found = {
        name: cycles_to_fairness(a, b, 1.0, down) for name, (a, b, down) in FAIRNESS_SCHEMES.items()
    }
    values = {name: c for name, (c, _) in found.items()}
    return Outcome(
        NOT_GIVEN,
        "cycles until the lower rate is 99 % of the higher one: "
        + "; ".join(f"{name} {c} (by the factor {f:.1f})" for name, (c, f) in found.items()),
        "The figures are sketches. Taken: AIMD(1/2); IIAD with sigma = 5; SQRT with sigma = "
        "sqrt(10)/2, so that a rate of 10 would fall by half as AIMD's does; ISCC with m_D = 2. "
        "Fluid cycles with synchronised, immediate feedback. The factor (1 - l z)(1 - z)^k is one "
        "of small differences; its count extrapolates it to large ones.",
        values,
    )


# --- Section IV-C of the binomial paper -----------------------------------------------------------


K, W, BETA = 0.5, 100.0, 0.5  # Of Fig. 4: k, capacity in packets a round trip, and beta.

_whole = {sigma: z * U ** (1 - l)}  # so that sigma U^(l-1) is z
E = binomial.efficiency.expr.subs(_whole).simplify()
TWO = binomial.efficiency_two_term.form.subs(_whole).simplify()


def powers_of_fig4() -> NDArray[np.float64]:
    """The powers l on the axis of Fig. 4."""
    return np.linspace(-0.5, 1.0, 301)


@cache
def errors(flows: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Exact efficiency and relative errors of its one- and two-term forms over `powers_of_fig4`."""
    at: tuple[Any, ...] = (K, powers_of_fig4(), BETA, W / flows)
    exact = binomial.efficiency(*at)
    one, two = (
        abs(f(*at) - exact) / exact
        for f in (binomial.efficiency_one_term, binomial.efficiency_two_term)
    )
    return exact, one, two


@claim("(25)", "valid for the schemes", erratum=True)
def increase_in_time() -> Outcome:
    """In the increase x(t) = (lambda (k + 1) t/R)^(1/(k+1))."""
    t, R, s, x0 = symbols("t R s x0", positive=True)
    up = {k: s - 1}  # k + 1 = s > 0
    printed = (lam * (k + 1) * t / R) ** (1 / (k + 1))
    good = proof(Eq(diff(printed.subs(up), t), (lam * printed**-k / R).subs(up)))
    general = (x0 ** (k + 1) + lam * (k + 1) * t / R) ** (1 / (k + 1))
    # x^(k+1) grows by lambda (k+1)/R a second, whatever k + 1 is
    right = proof(Eq(diff((general ** (k + 1)).powsimp(force=True), t), lam * (k + 1) / R))
    base = float(printed.base.subs({k: -1.5, lam: 1, t: 1, R: 1}))
    return differs_if(
        good and right and base < 0,
        "solves x' = lambda x^-k/R from x(0) = 0 for k > -1, proved",
        "For k < -1, which ideal scalability needs, nothing grows from x(0) = 0, and the formula "
        f"takes a power of a negative number ({base:g} at k = -1.5, lambda = t = R = 1). Right for "
        "every k != -1: x^(k+1) = x(0)^(k+1) + lambda (k + 1) t/R. The results (26) and (27) hold "
        "all the same.",
    )


@claim("(26), (27)", "dt, X")
def sawtooth() -> Outcome:
    """Duration of an increase and what is sent in it."""
    checks = []
    for formula, power in ((binomial.cycle_time, k), (binomial.cycle_data, k + 1)):
        f = formula.form.subs(_whole).subs(symbols("R", positive=True), 1).args
        value = formula.form.doit().subs(_whole)
        nonzero = {k: symbols("q", positive=True) - (1 if power == k else 2)}  # k + 1 or k + 2 is q
        f = value.subs(nonzero).simplify()
        R = symbols("R", positive=True)
        # from L = U (1 - z): it vanishes at z = 0, and a lower L adds L^power R/lambda dL, with dL
        # = -U dz
        checks.append(
            proof(
                Eq(diff(f, z), ((U * (1 - z)) ** power * U * R / lam).subs(nonzero)), where=[z < 1]
            )
        )
        checks.append(proof(Eq(f.subs(z, 0), 0)))
    return from_proofs(
        *checks,
        computed="integrals of R/lambda x^k dx and R/lambda x^(k+1) dx from U (1 - z) to U, for "
        "all k",
    )


@claim("(28)", "(k+1)(1 - (1-z)^(k+2))/((k+2)(1 - (1-z)^(k+1)))")
def exact_efficiency() -> Outcome:
    """The efficiency is X/(U dt)."""
    a, b, form = binomial.cycle_data.form, binomial.cycle_time.form, binomial.efficiency.form
    generic = (k + 1) * (1 - (1 - z) ** (k + 2)) / ((k + 2) * (1 - (1 - z) ** (k + 1)))
    limits = []
    for at in (-1, -2):
        there = E.subs(k, at)
        near = limit(generic.subs(z, 1 - symbols("r", positive=True)), k, at)  # r = 1 - z
        limits.append(
            proof(Eq(near.subs(symbols("r", positive=True), 1 - z), there), where=[z < 1])
        )
    return from_proofs(
        Eq(abstract(a / (U * b)), abstract(form)),
        *limits,
        computed="and its limits: z/(-ln(1 - z)) at k = -1, -ln(1 - z)(1 - z)/z at k = -2",
        reason="The printed form is 0/0 at k = -1 and k = -2; fluidcc.formulas.binomial.efficiency "
        "is not.",
    )


@claim("(29)", "158")
def flow_limit() -> Outcome:
    """Rates stay positive as long as n < C/sigma^(1/(1-l)); that is 158 in Fig. 4."""
    s, t = symbols("s t", positive=True)  # 1 - l = s > 0; n is t times the bound
    bound = C / sigma ** (1 / s)
    exact = Eq((sigma * (C / n) ** (-s)).subs(n, t * bound), t**s)
    value = binomial.max_flows(-0.5, BETA, W)
    if not agrees("158", np.floor(value)):
        return Outcome(DIFFERS, f"{value:g}", "Not as printed: the largest n is 158 there.")
    return from_proofs(
        exact, computed=f"z = (n/bound)^(1-l); {value:.2f} for W = 100, beta = 1/2, l = -0.5"
    )


@claim("(30)", "Taylor")
def taylor() -> Outcome:
    """1 - (1-z)^q = q z - q(q-1)/2 z^2 + q(q-1)(q-2)/6 z^3 ..."""
    q = symbols("q", real=True)
    wanted = q * z - q * (q - 1) / 2 * z**2 + q * (q - 1) * (q - 2) / 6 * z**3
    return from_proofs(
        Eq(series(1 - (1 - z) ** q, z, 0, 4).removeO().expand(), wanted.expand()),
        computed="to third order",
    )


@claim("(30)", "l < 1 => z < 1", erratum=True)
def part_below_one() -> Outcome:
    """For l < 1 the value of z is less than 1."""
    value = 2.0 * 1.0 ** (0 - 1)
    return differs_if(
        value >= 1,
        "z < 1 is the condition (29), not a consequence of l < 1",
        f"With l = 0, sigma = 2 and U = 1 z is {value:g}: rates would become negative.",
        {"z": value},
    )


@claim("(31)", "e = 1")
def leading_term() -> Outcome:
    """To the leading term of (30) the efficiency is 1."""
    one = ((k + 1) * (k + 2) * z) / ((k + 2) * (k + 1) * z)
    return from_proofs(
        Eq(one, binomial.efficiency_one_term.form),
        Eq(limit(TWO, z, 0), 1),
        computed="for all k and l",
    )


@claim("(32)", "1 - z/(2 - k z)")
def two_terms() -> Outcome:
    """To two terms e = 1 - z/(2 - k z), exact for AIMD."""
    cut = lambda q: q * z - q * (q - 1) / 2 * z**2  # noqa: E731
    truncated = (k + 1) * cut(k + 2) / ((k + 2) * cut(k + 1))
    return from_proofs(
        Eq(truncated, TWO),
        Eq(E.subs(k, 0), TWO.subs(k, 0)),
        Eq(TWO.subs(k, 0), (2 - z) / 2),
        computed="for all k and z; at k = 0 equal to (28), (2 - z)/2",
        reason="Exact at k = 0 whatever l is.",
    )


@claim("(33)", "U", erratum=True)
def efficiency_of_n() -> Outcome:
    """With n flows e_n = 1 - z/(2 n^(l-1) - k z), z = sigma U^(l-1)."""
    right = binomial.efficiency_n_two_term.form
    read = 1 - sigma * C ** (l - 1) / (2 * n ** (l - 1) - k * sigma * C ** (l - 1))
    good = proof(Eq(right, read))
    literal = 1 - sigma * (C / n) ** (l - 1) / (2 * n ** (l - 1) - k * sigma * (C / n) ** (l - 1))
    wrong = proof(Eq(right, literal))
    return differs_if(
        good and not wrong,
        "proved with z = sigma C^(l-1)",
        "The sentence before it puts U = C/n; with that U in (33) n is counted twice, and it fails "
        f"at {at_values(wrong.counterexample)}",
    )


@claim("Section IV-C", "l = 1")
def independent_of_n() -> Outcome:
    """Only with l = 1 does the efficiency not depend on the number of flows."""
    # The exact efficiency is e = X/(U dt), of z_n alone. With the low end L = U (1 - z) it is
    # proved
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
        Eq(falls, -rises * (sent - low * lasts) / (U * lasts**2)),
        Eq(above, U * lasts),
        -rises * gap / (U * lasts**2) < 0,
        Eq(diff(at, n), (1 - l) * at / n),
        computed="the exact efficiency (28) falls strictly with z_n = sigma (C/n)^(l-1), for all "
        "k; and dz_n/dn = (1 - l) z_n/n is zero only for l = 1",
    )


def _part_of_n() -> Any:
    """z_n: the part of its rate that each of n flows gives up."""
    return sigma * (C / n) ** (l - 1)


@claim("Fig. 4(a)", "31 %, 35 %, 28 %", erratum=True)
def errors_at_aimd() -> Outcome:
    """At l = 1 the one-term form errs by 31 % for k = 1/2; by 35 to 28 % for k = -0.5 to 1."""
    at = np.array([0.5, -0.5, 1.0])
    found = 1 / binomial.efficiency(at, 1, BETA, W) - 1
    grid = 1 / binomial.efficiency(np.linspace(-0.5, 1, 61), 1, BETA, W) - 1
    values = named("k = {:g}", at, found)
    if not np.all(np.diff(grid) < 0):
        return Outcome(DIFFERS, str(values), "it is not monotone in k", values)
    text = ", ".join(f"{percent(v, 4)} at {a}" for a, v in values.items()) + "; monotone in k"
    return compared(
        zip(("31", "35", "28"), (100 * v for v in values.values()), strict=True),
        text,
        "31 is rounded, the other two are cut off.",
        values,
    )


@claim("Fig. 4(a)", "~ 100 %")
def efficient_below_half() -> Outcome:
    """For l below 0.5 the efficiency is close to 100 %, and the error negligible."""
    exact, one, _ = errors(1)
    below = powers_of_fig4() < 0.5
    values = {
        "least efficiency": exact[below].min(),
        "largest error": one[below].max(),
    }
    return reproduced_if(
        values["largest error"] < 0.05,
        f"efficiency of at least {percent(values['least efficiency'])}, error of at most "
        f"{percent(values['largest error'])}",
        "No number is printed: an error below 5 % is taken for negligible.",
        values,
    )


@claim("Fig. 4(a)", "5 to 1000", erratum=True)
def two_terms_better() -> Outcome:
    """The two-term form errs by 5 to 1000 times less than the one-term form."""
    _, one, two = errors(1)
    ratio = one / two
    values = {"least": ratio.min(), "most": ratio.max()}
    span = powers_of_fig4()[(ratio >= 5) & (ratio <= 1000)]
    return compared(
        [("5", values["least"]), ("1000", values["most"])],
        f"{values['least']:.3g} times at l = 1, {values['most']:.3g} times at l = -0.5",
        f"1000 is reached at l = {span.min():.2g}, and below the factor goes on growing, as 1/z^2. "
        "Where the axis of the figure begins is not said; Fig. 4(b) has l = -0.5.",
        values,
    )


@claim("Fig. 4(b)", "near 158", erratum=True)
def efficiency_crossing() -> Outcome:
    """Near the limit (29) all schemes with l < 1 are less efficient than AIMD."""
    # at n = W the fair share is one packet, so z = beta for every l: equal efficiencies at equal k
    same = proof(
        Eq(binomial.efficiency_n.expr.subs({C: n}), binomial.efficiency_n.expr.subs({C: n, l: 1}))
    )
    aimd = binomial.efficiency(0, 1, BETA, W)
    roots = {
        f"l = {a:g}": brentq(
            lambda m, a=a: binomial.efficiency_n(K, a, BETA, W, m) - aimd,
            1.0,
            0.9999 * binomial.max_flows(a, BETA, W),
        )
        / W
        for a in (-0.5, 0.0, 0.5)
    }
    return differs_if(
        same,
        "at n = W = 100 every scheme is as efficient as that with l = 1 and the same k and beta, "
        "proved, and worse from there on",
        "Not near the limit: at n = W the fair share is one packet and z = beta whatever l is. "
        "Against AIMD itself, k = 0, the k = 1/2 of the figure crosses at n/W = "
        + ", ".join(f"{v:.3f} ({a})" for a, v in roots.items())
        + ".",
        roots,
    )


@claim("Fig. 4(b)", "30 % to 65 %", erratum=True)
def errors_of_150_flows() -> Outcome:
    """At n = 150 the one-term error is between 30 and 65 %."""
    _, one, two = errors(150)
    at = powers_of_fig4()
    values = {
        "least": one.min(),
        "most": one.max(),
        "two terms, most": two.max(),
    }
    low, high = at[one.argmin()], at[one.argmax()]
    least, most = percent(values["least"]), percent(values["most"])
    return compared(
        [("30-65", 100 * values["least"]), ("30-65", 100 * values["most"])],
        f"{least} at l = {low:.2g} to {most} at l = {high:.2g}",
        "With k = 1/2, W = 100, beta = 1/2, as Fig. 4(a); k is not said again for Fig. 4(b).",
        values,
    )
