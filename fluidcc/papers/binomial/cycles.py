"""Sections III and IV of the binomial paper: how rates get fair, and how efficient cycles are."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sympy import And, Eq, Function, Symbol, cos, diff, limit, log, series, simplify, sin, symbols

from fluidcc.formulas import binomial, response
from fluidcc.formulas._formula import deficit
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import agrees, named, percent

k, l, lam, sigma, C, n = binomial.loss.arguments
U = binomial.efficiency.arguments[-1]
# rates, the part that a decrease takes, a rate between two
x, z, xi, Delta = symbols("x z xi Delta", positive=True)
R_I, R_D = (Function(name, positive=True) for name in ("R_I", "R_D"))
Y = x + Delta  # the larger of two rates
# A decrease that is strictly steeper than proportional, and nowhere as steep as 1
SLOW = x - log(1 + x)


def abstract(f: Any) -> Any:
    """Return `f` with an undefined positive function in place of `deficit`; claims stay true."""
    return f.replace(deficit, Function("D", positive=True))


def mean_value(f: Any) -> tuple[Any, Any, Any]:
    """Return y = x + Delta, f(y) by the mean value theorem, and f'(xi), where x < xi < y."""
    slope = f(xi).diff(xi)
    return x + Delta, f(x) + Delta * slope, slope


@cache
def cycles_to_fairness(k: float, l: float, lam: float, sigma: float) -> tuple[int, float]:
    """Cycles until two flows from (20, 80) on C = 100 have fairness 0.99, in full and linearised.

    The cycles are those of the fluid: x' = lam x**-k up to x + y = C, then both fall. The factor is
    `binomial.convergence_factor` at the fair share, which says how a small difference shrinks.
    """
    low, high, cycles, goal = 20.0, 80.0, 0, 0.99
    while low / high < goal and cycles < 100_000:
        low, high = climb(low - sigma * low**l, high - sigma * high**l, k, 100.0)
        cycles += 1
    factor = binomial.convergence_factor(k, l, sigma, 50.0)
    # fairness f is a relative difference (1 - f)/(1 + f) of the two rates from their mean
    gap = lambda f: (1 - f) / (1 + f)  # noqa: E731
    return cycles, math.log(gap(goal) / gap(0.25)) / math.log(abs(factor))


def climb(a: float, b: float, k: float, capacity: float) -> tuple[float, float]:
    """Where two rates with x' = x**-k meet a + b = capacity: both x**(k + 1) grow by the same."""

    def rates(s: float) -> tuple[float, float]:
        power = k + 1
        return tuple(  # type: ignore[return-value]
            (v**power + power * s) ** (1 / power) if v**power + power * s > 0 else math.inf
            for v in (a, b)
        )

    top = 1.0
    while sum(rates(top)) < capacity:
        top *= 2
    s = brentq(lambda s: min(sum(rates(s)), 1e300) - capacity, 0.0, top, xtol=1e-300, rtol=1e-15)
    return rates(s)


def windows_and_rates(claim: Claim) -> Outcome:
    alpha, beta, _, _, mtu, rtt = binomial.window_to_rate.arguments
    up, down = binomial.window_to_rate.form.values()
    W, unit = symbols("W u", positive=True)
    put = {mtu: unit, rtt: 1}
    return claim.proved(
        Eq(up.subs(put) * (W * unit) ** -k, unit * alpha * W**-k),
        Eq(down.subs(put) * (W * unit) ** l, unit * beta * W**l),
    )


def tcp_friendly_aimd(claim: Claim) -> Outcome:
    _, alpha, beta = response.aimd_window.arguments
    friendly = response.aimd_window.form.subs(alpha, binomial.tcp_friendly_alpha.form)
    same = response.square_root_window.form.subs(response.square_root_window.arguments[1], 1)
    return claim.proved(proof(Eq(friendly, same), where=[beta < 2]))


def decrease_lowers_the_sum(claim: Claim) -> Outcome:
    return claim.proved(-R_D(x) - R_D(Y) < 0)


def fairness_of_a_decrease(claim: Claim) -> Outcome:
    after = (x - R_D(x)) / (Y - R_D(Y)) - x / Y
    return claim.proved(
        proof(Eq(after, (x * R_D(Y) - Y * R_D(x)) / (Y * (Y - R_D(Y)))), where=[Y - R_D(Y) > 0])
    )


def slope_of_a_decrease(claim: Claim) -> Outcome:
    ratio = lambda v: R_D(v) / v  # noqa: E731
    slope = diff(ratio(xi), xi)
    necessary = diff(x * R_D(Y) - Y * R_D(x), Delta).subs(Delta, 0).doit()
    return claim.proved(
        Eq(necessary, x * R_D(x).diff(x) - R_D(x)),
        proof(
            x * Y * (ratio(x) + Delta * slope) - Y * R_D(x) >= 0,
            where=[R_D(xi).diff(xi) >= R_D(xi) / xi],
        ),
    )


def decrease_at_least_linear(claim: Claim) -> Outcome:
    c2 = symbols("c2", positive=True)
    wrong = proof(c2 * x <= SLOW)
    fits = proof(log(1 + x) > x / (1 + x))  # which is (15) for it, see strict_decrease
    return claim.refuted_if(not wrong and fits, dict(wrong.counterexample))


def no_crossing_down(claim: Claim) -> Outcome:
    y, value, slope = mean_value(R_D)
    enough = proof(y - value > x - R_D(x), where=[slope < 1])
    # x - R_D = (x + sin x)/2 rises strictly, though its slope vanishes at pi, 3 pi, ...
    touching = (x - sin(x)) / 2
    steep = proof(Eq(diff(touching, x), (1 - cos(x)) / 2))
    return claim.differs_if(enough and steep)


def rates_stay_positive(claim: Claim) -> Outcome:
    slope = R_D(x).diff(x)
    return claim.proved(proof(x - R_D(x) > 0, where=[slope >= R_D(x) / x, slope < 1]))


def strict_decrease(claim: Claim) -> Outcome:
    slope = diff(SLOW, x)
    # x R_D' - R_D = log(1 + x) - x/(1 + x)
    form = proof(Eq(x * slope - SLOW, log(1 + x) - x / (1 + x)))
    strict, below, positive = proof(log(1 + x) > x / (1 + x)), proof(slope < 1), proof(SLOW > 0)
    return claim.refuted_if(form and strict and below and positive)


def logarithmic_example(claim: Claim) -> Outcome:
    wrong = [proof(x - log(x + 2) / log(base) > 0) for base in (2, 10)]
    return claim.refuted_if(not any(wrong), {"at 0.1, base 10": 0.1 - np.log10(2.1)})


def slope_of_an_increase(claim: Claim) -> Outcome:
    ratio = lambda v: R_I(v) / v  # noqa: E731
    slope = diff(ratio(xi), xi)
    after = (x + R_I(x)) / (Y + R_I(Y)) - x / Y
    necessary = diff(Y * R_I(x) - x * R_I(Y), Delta).subs(Delta, 0).doit()
    return claim.proved(
        Eq(after, (Y * R_I(x) - x * R_I(Y)) / (Y * (Y + R_I(Y)))),
        Eq(necessary, R_I(x) - x * R_I(x).diff(x)),
        proof(
            Y * R_I(x) - x * Y * (ratio(x) + Delta * slope) >= 0,
            where=[R_I(xi).diff(xi) <= R_I(xi) / xi],
        ),
    )


def no_crossing_up(claim: Claim) -> Outcome:
    y, value, slope = mean_value(R_I)
    return claim.proved(proof(y + value > x + R_I(x), where=[slope > -1]))


def binomial_fairness(claim: Claim) -> Outcome:
    up, down = lam * x**-k, sigma * x**l
    return claim.proved(
        Eq(up / x - diff(up, x), lam * (1 + k) * x ** (-k - 1)),
        proof(lam * (1 + k) * x ** (-k - 1) > 0, where=[k > -1]),
        Eq(diff(down, x) - down / x, sigma * (l - 1) * x ** (l - 1)),
        proof(sigma * (l - 1) * x ** (l - 1) >= 0, where=[l >= 1]),
    )


def binomial_crossing(claim: Claim) -> Outcome:
    up, down = lam * x**-k, sigma * x**l
    s = symbols("s", positive=True)
    return claim.proved(
        Eq(diff(up, x) + 1, (x ** (k + 1) - k * lam) * x ** (-k - 1)),
        Eq(1 - diff(down, x), 1 - l * sigma * x ** (l - 1)),
        Eq(((1 + s) * sigma * x**s).subs(x, ((1 + s) * sigma) ** (-1 / s)), 1),
        proof(k * lam < x ** (k + 1), where=[k < 0]),
    )


def crossing_increase(claim: Claim) -> Outcome:
    small, large = (w + 1 / w for w in (0.5, 1.0))  # packets; IIAD(1, 1/2) adds 1/w
    return claim.differs_if(small > large, {"small": small, "large": large})


def only_aimd(claim: Claim) -> Outcome:
    given = [l >= 1, l <= 1, Eq(k + l, 1)]  # (23), (24), TCP-friendly
    return claim.proved(
        proof(And(Eq(l, 1), Eq(k, 0)), where=given), proof(k > -1, where=[Eq(k, 0)])
    )


def converges_iff(claim: Claim) -> Outcome:
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
    return claim.refuted_if(
        growth and down and first and values[0] > 1 > values[1],
        {"diverges": values[0], "converges": values[1]},
    )


# lambda only sets the pace of a cycle, so any will do.
FAIRNESS_SCHEMES = {
    "AIMD": (0, 1, 0.5),
    "IIAD": (1, 0, 5.0),
    "SQRT": (0.5, 0.5, 0.5 * 10**0.5),
    "ISCC(-1.5, 2)": (-1.5, 2, 1 / 200),
}


def cycles_to_fair(claim: Claim) -> Outcome:
    found = {
        name: cycles_to_fairness(a, b, 1.0, down) for name, (a, b, down) in FAIRNESS_SCHEMES.items()
    }
    values = {name: c for name, (c, _) in found.items()}
    return claim.not_given(
        values,
        computed="cycles until the lower rate is 99 % of the higher one: "
        + "; ".join(f"{name} {c} (by the factor {f:.1f})" for name, (c, f) in found.items()),
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


def increase_in_time(claim: Claim) -> Outcome:
    t, R, s, x0 = symbols("t R s x0", positive=True)
    up = {k: s - 1}  # k + 1 = s > 0
    printed = (lam * (k + 1) * t / R) ** (1 / (k + 1))
    good = proof(Eq(diff(printed.subs(up), t), (lam * printed**-k / R).subs(up)))
    general = (x0 ** (k + 1) + lam * (k + 1) * t / R) ** (1 / (k + 1))
    # x^(k+1) grows by lambda (k+1)/R a second, whatever k + 1 is
    right = proof(Eq(diff((general ** (k + 1)).powsimp(force=True), t), lam * (k + 1) / R))
    base = float(printed.base.subs({k: -1.5, lam: 1, t: 1, R: 1}))
    return claim.differs_if(good and right and base < 0, base=base)


def sawtooth(claim: Claim) -> Outcome:
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
    return claim.proved(*checks)


def exact_efficiency(claim: Claim) -> Outcome:
    a, b, form = binomial.cycle_data.form, binomial.cycle_time.form, binomial.efficiency.form
    generic = (k + 1) * (1 - (1 - z) ** (k + 2)) / ((k + 2) * (1 - (1 - z) ** (k + 1)))
    limits = []
    for at in (-1, -2):
        there = E.subs(k, at)
        near = limit(generic.subs(z, 1 - symbols("r", positive=True)), k, at)  # r = 1 - z
        limits.append(
            proof(Eq(near.subs(symbols("r", positive=True), 1 - z), there), where=[z < 1])
        )
    return claim.proved(Eq(abstract(a / (U * b)), abstract(form)), *limits)


def flow_limit(claim: Claim) -> Outcome:
    s, t = symbols("s t", positive=True)  # 1 - l = s > 0; n is t times the bound
    bound = C / sigma ** (1 / s)
    exact = Eq((sigma * (C / n) ** (-s)).subs(n, t * bound), t**s)
    value = binomial.max_flows(-0.5, BETA, W)
    return claim.proved(exact, checks=agrees("158", np.floor(value)), value=value)


def taylor(claim: Claim) -> Outcome:
    q = symbols("q", real=True)
    wanted = q * z - q * (q - 1) / 2 * z**2 + q * (q - 1) * (q - 2) / 6 * z**3
    return claim.proved(Eq(series(1 - (1 - z) ** q, z, 0, 4).removeO().expand(), wanted.expand()))


def part_below_one(claim: Claim) -> Outcome:
    value = 2.0 * 1.0 ** (0 - 1)
    return claim.differs_if(value >= 1, {"z": value})


def leading_term(claim: Claim) -> Outcome:
    one = ((k + 1) * (k + 2) * z) / ((k + 2) * (k + 1) * z)
    return claim.proved(Eq(one, binomial.efficiency_one_term.form), Eq(limit(TWO, z, 0), 1))


def two_terms(claim: Claim) -> Outcome:
    cut = lambda q: q * z - q * (q - 1) / 2 * z**2  # noqa: E731
    truncated = (k + 1) * cut(k + 2) / ((k + 2) * cut(k + 1))
    return claim.proved(
        Eq(truncated, TWO), Eq(E.subs(k, 0), TWO.subs(k, 0)), Eq(TWO.subs(k, 0), (2 - z) / 2)
    )


def efficiency_of_n(claim: Claim) -> Outcome:
    right = binomial.efficiency_n_two_term.form
    read = 1 - sigma * C ** (l - 1) / (2 * n ** (l - 1) - k * sigma * C ** (l - 1))
    good = proof(Eq(right, read))
    literal = 1 - sigma * (C / n) ** (l - 1) / (2 * n ** (l - 1) - k * sigma * (C / n) ** (l - 1))
    wrong = proof(Eq(right, literal))
    return claim.differs_if(good and not wrong, wrong=wrong)


def independent_of_n(claim: Claim) -> Outcome:
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
    return claim.proved(
        Eq(falls, -rises * (sent - low * lasts) / (U * lasts**2)),
        Eq(above, U * lasts),
        -rises * gap / (U * lasts**2) < 0,
        Eq(diff(at, n), (1 - l) * at / n),
    )


def _part_of_n() -> Any:
    """z_n: the part of its rate that each of n flows gives up."""
    return sigma * (C / n) ** (l - 1)


def errors_at_aimd(claim: Claim) -> Outcome:
    at = np.array([0.5, -0.5, 1.0])
    found = 1 / binomial.efficiency(at, 1, BETA, W) - 1
    grid = 1 / binomial.efficiency(np.linspace(-0.5, 1, 61), 1, BETA, W) - 1
    values = named("k = {:g}", at, found)
    if not np.all(np.diff(grid) < 0):
        return claim.outcome("differs", values, computed=str(values), reason="Not monotone in k.")
    text = ", ".join(f"{percent(v, 4)} at {a}" for a, v in values.items()) + "; monotone in k"
    return claim.compared(found, values, computed=text)


def efficient_below_half(claim: Claim) -> Outcome:
    exact, one, _ = errors(1)
    below = powers_of_fig4() < 0.5
    values = {"least efficiency": exact[below].min(), "largest error": one[below].max()}
    return claim.reproduced_if(values["largest error"] < 0.05, values)


def two_terms_better(claim: Claim) -> Outcome:
    _, one, two = errors(1)
    ratio = one / two
    values = {"least": ratio.min(), "most": ratio.max()}
    span = powers_of_fig4()[(ratio >= 5) & (ratio <= 1000)]
    return claim.compared(values.values(), values, at=span.min())


def efficiency_crossing(claim: Claim) -> Outcome:
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
    return claim.differs_if(same, roots)


def errors_of_150_flows(claim: Claim) -> Outcome:
    _, one, two = errors(150)
    at = powers_of_fig4()
    values = {"least": one.min(), "most": one.max(), "two terms, most": two.max()}
    low, high = at[one.argmin()], at[one.argmax()]
    return claim.compared([(values["least"], values["most"])], values, low=low, high=high)
