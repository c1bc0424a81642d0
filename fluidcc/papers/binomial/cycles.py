"""Sections III and IV of the binomial paper: how rates get fair, and how efficient cycles are."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import (
    And,
    Eq,
    Function,
    Rational,
    Symbol,
    cos,
    diff,
    limit,
    log,
    pi,
    powdenest,
    series,
    simplify,
    sin,
    symbols,
)

from fluidcc.formulas import binomial, response
from fluidcc.formulas._formula import deficit
from fluidcc.papers.model import (
    Found,
    compared,
    differs_if,
    proof,
    proved,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import agrees, falling, named, percent, rising
from fluidcc.papers.zoo.binomial import BASE, TABLE
from fluidcc.symbols import nonnegative, positive

k, l, lam, sigma, C, n = binomial.loss.arguments
U = binomial.efficiency.arguments[-1]
# rates, the part that a decrease takes, a rate between two
x, z, xi, Delta = positive("x z xi Delta")
window, unit, rest, R, t = positive("W u r R t")
R_I, R_D = (Function(name, positive=True) for name in ("R_I", "R_D"))
Y = x + Delta  # the larger of two rates
_CYCLES = 100_000  # in which rates that get fair at all do so
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
def cycles_to_fairness(k: float, l: float, sigma: float) -> int:
    """Cycles until two flows from (20, 80) on C = 100 have fairness 0.99.

    The cycles are those of the fluid: x' = lam x**-k up to x + y = C, then both fall; lam only sets
    the pace.
    """
    low, high, cycles = 20.0, 80.0, 0
    while low / high < 0.99 and cycles < _CYCLES:
        low, high = climb(low - sigma * low**l, high - sigma * high**l, k, 100.0)
        cycles += 1
    return cycles


def climb(a: float, b: float, k: float, capacity: float) -> tuple[float, float]:
    """Where two rates with x' = x**-k meet a + b = capacity: both x**(k + 1) grow by the same."""
    power = k + 1

    def grown(v: float, s: float) -> float:
        left = v**power + power * s
        return left ** (1 / power) if left > 0 else math.inf

    def excess(s: float) -> float:
        return min(grown(a, s) + grown(b, s), 1e300) - capacity

    top = 1.0
    while excess(top) < 0:
        top *= 2
    s = brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-15)
    return grown(a, s), grown(b, s)


def windows_and_rates() -> Found:
    alpha, beta, _, _, mtu, rtt = binomial.window_to_rate.arguments
    up, down = (form.subs({mtu: unit, rtt: 1}) for form in binomial.window_to_rate.form.values())
    return proved(
        Eq(up * (window * unit) ** -k, unit * alpha * window**-k),
        Eq(down * (window * unit) ** l, unit * beta * window**l),
    )


def tcp_friendly_aimd() -> Found:
    _, alpha, beta = response.aimd_window.arguments
    friendly = response.aimd_window.form.subs(alpha, binomial.tcp_friendly_alpha.form)
    same = response.square_root_window.form.subs(response.square_root_window.arguments[1], 1)
    form = response.aimd_window.form  # as sqrt(alpha), so by no other one
    # from the top W down to W (1 - beta), and up by alpha N: W = alpha N/beta
    mean = alpha * n * (2 - beta) / (2 * beta)
    top = alpha * n / beta
    tcp = {alpha: 1, beta: Rational(1, 2)}
    own = mean.subs(alpha, binomial.tcp_friendly_alpha.form)
    # of random losses that a window does not bring about: alpha - beta E W/n is 0 in the mean
    random = alpha * n / beta
    share = (random / random.subs(tcp)).subs(alpha, binomial.tcp_friendly_alpha.form)
    parts = (
        proof(Eq(friendly, same), beta < 2),
        proof(Eq(diff(form**2 / alpha, alpha), 0)),
        proof(Eq((top + top * (1 - beta)) / 2, mean)),
        proof(Eq(own, mean.subs(tcp)), beta < 2),
        proof(Eq(alpha - beta * random / n, 0)),
    )
    share = share.subs(beta, Rational(1, 8))
    return differs_if(all(parts) and share != 1, share=share)


def decrease_lowers_the_sum() -> Found:
    return proved(-R_D(x) - R_D(Y) < 0)


def fairness_of_a_decrease() -> Found:
    after = (x - R_D(x)) / (Y - R_D(Y)) - x / Y
    return proved(proof(Eq(after, (x * R_D(Y) - Y * R_D(x)) / (Y * (Y - R_D(Y)))), Y - R_D(Y) > 0))


def slope_of_a_decrease() -> Found:
    gain = x * R_D(Y) - Y * R_D(x)
    return proved(
        Eq(gain, x * (R_D(Y) - R_D(x)) - Delta * R_D(x)),  # (13)
        Eq(_at_first(gain), x * R_D(x).diff(x) - R_D(x)),
        _kept(R_D, -1)[0],
    )


def _kept(step: Any, sign: int) -> tuple[Any, ...]:
    """That a step with (15), or (21), costs no fairness, wins some where that is strict, and that
    with (19), or (22), rates do not cross."""
    # by the mean value theorem, of step(x)/x and of step(x)
    gain = -sign * x * Y * Delta * diff(step(xi) / xi, xi)
    y, value, slope = mean_value(step)
    meets = sign * (step(xi) / xi - slope)
    return (
        proof(gain >= 0, meets >= 0),
        proof(gain > 0, meets > 0),
        proof(y + sign * value > x + sign * step(x), sign * slope > -1),
    )


def _at_first(gain: Any) -> Any:
    """How a gain in fairness begins, between rates that are nearly equal."""
    return diff(gain, Delta).subs(Delta, 0).doit()


def decrease_at_least_linear() -> Found:
    fits = proof(log(1 + x) > x / (1 + x))  # which is (15) for it, see strict_decrease
    return refuted_if(limit(SLOW / x, x, 0) == 0 and fits)


def no_crossing_down() -> Found:
    enough = _kept(R_D, -1)[2]
    needed = proof(Eq(_at_first(Y - R_D(Y) - (x - R_D(x))), 1 - R_D(x).diff(x)))
    # x - R_D = (x + sin x)/2 rises strictly, though its slope vanishes at pi, 3 pi, ...
    slope = diff((x - sin(x)) / 2, x)
    steep = proof(Eq(slope, (1 - cos(x)) / 2))
    return differs_if(enough and needed and steep and slope.subs(x, pi) == 1)


def rates_stay_positive() -> Found:
    return proved(_positive())


def _positive() -> Any:
    slope = R_D(x).diff(x)
    return proof(x - R_D(x) > 0, slope >= R_D(x) / x, slope < 1)


def strict_decrease() -> Found:
    slope = diff(SLOW, x)
    # x R_D' - R_D = log(1 + x) - x/(1 + x)
    form = proof(Eq(x * slope - SLOW, log(1 + x) - x / (1 + x)))
    strict, below, above = proof(log(1 + x) > x / (1 + x)), proof(slope < 1), proof(SLOW > 0)
    return refuted_if(form and strict and below and above)


def logarithmic_example() -> Found:
    wrong = [proof(x - log(x + 2) / log(base) > 0) for base in (2, 10)]
    never = all(w.status == "refuted" for w in wrong)
    return refuted_if(never, {"at 0.1, base 10": 0.1 - np.log10(2.1)})


def slope_of_an_increase() -> Found:
    after, gain = (x + R_I(x)) / (Y + R_I(Y)) - x / Y, Y * R_I(x) - x * R_I(Y)
    return proved(
        Eq(after, gain / (Y * (Y + R_I(Y)))),
        Eq(_at_first(gain), R_I(x) - x * R_I(x).diff(x)),
        _kept(R_I, 1)[0],
    )


def no_crossing_up() -> Found:
    enough = _kept(R_I, 1)[2]
    needed = proof(Eq(_at_first(Y + R_I(Y) - (x + R_I(x))), 1 + R_I(x).diff(x)))
    # x + R_I = x + 2 - sin x rises strictly, though its slope vanishes at 2 pi, 4 pi, ...
    slope = diff(2 - sin(x), x)
    steep = proof(Eq(slope, -cos(x)))
    return differs_if(enough and needed and steep and slope.subs(x, 2 * pi) == -1)


def fairer() -> list[Any]:
    """That steps with (15), (19), (21), (22) never cost fairness, and win some where (15), or (21),
    is strict; of two rates, the lower over the higher."""
    return [_positive(), *_kept(R_D, -1), *_kept(R_I, 1)]


UP, DOWN = lam * x**-k, sigma * x**l


def binomial_fairness() -> Found:
    return proved(
        Eq(UP / x - diff(UP, x), lam * (1 + k) * x ** (-k - 1)),
        proof(lam * (1 + k) * x ** (-k - 1) > 0, k > -1),
        proof(lam * (1 + k) * x ** (-k - 1) <= 0, k <= -1),
        Eq(diff(DOWN, x) - DOWN / x, sigma * (l - 1) * x ** (l - 1)),
        proof(sigma * (l - 1) * x ** (l - 1) >= 0, l >= 1),
        proof(sigma * (l - 1) * x ** (l - 1) < 0, l < 1),
    )


def binomial_crossing() -> Found:
    s = positive("s")  # k, 1 - l or l - 1; x is t times where the slope is 1 or -1
    return proved(
        Eq(diff(UP, x) + 1, (x ** (k + 1) - k * lam) * x ** (-k - 1)),
        Eq((x ** (s + 1)).subs(x, t * (s * lam) ** (1 / (s + 1))), t ** (s + 1) * s * lam),
        proof(k * lam < x ** (k + 1), k <= 0),
        Eq(1 - diff(DOWN, x), 1 - l * sigma * x ** (l - 1)),
        Eq((z * x**-s).subs(x, t * z ** (1 / s)), t**-s),  # z is l sigma
        proof(l * sigma * x ** (l - 1) <= 0, l <= 0),
        Eq(((1 + s) * sigma * x**s).subs(x, t * ((1 + s) * sigma) ** (-1 / s)), t**s),
    )


def crossing_increase() -> Found:
    low, high = BASE, 20e3
    after = [rate + TABLE["IIAD(0.10, 1/2)"][2] / rate for rate in (low, high)]
    ends = {
        name.partition("(")[0]: (a * up) ** (1 / (a + 1))
        for name, (a, _, up, _) in TABLE.items() if a > 0
    }  # fmt: skip
    return differs_if(after[0] > after[1], before=(low, high), after=after, ends=ends)


def only_aimd() -> Found:
    given = [l >= 1, l <= 1, Eq(k + l, 1)]  # (23), (24), TCP-friendly
    return proved(
        proof(And(Eq(l, 1), Eq(k, 0)), *given),
        *binomial.monotonic_convergence(lam, sigma * x, where=[sigma < 1]),
    )


def converges_iff() -> Found:
    share = binomial.convergence_factor.arguments[-1]
    factor = simplify(binomial.convergence_factor.form.subs(sigma, z * share ** (1 - l)))
    # difference of two rates near x; d' = R_I'(x) d/R while x' = R_I(x)/R
    d = Symbol("d", real=True)
    growth = proof(Eq(diff(UP, x) * d / UP, -k * d / x))  # d(d)/dx, so d ~ x^-k
    down = proof(Eq(diff(x - DOWN, x).subs(sigma, z * x ** (1 - l)), 1 - l * z))
    first = proof(Eq(diff(factor, z).subs(z, 0), -(k + l)))
    diverges = binomial.convergence_factor(-0.5, 0.6, 0.9, 1.0)
    converges = binomial.convergence_factor(0.5, -0.51, 0.9, 1.0)
    still = binomial.convergence_factor(-0.5, 0.5, 0.9, 1.0)
    return refuted_if(
        growth and down and first and diverges > 1 > converges,
        diverges=diverges,
        converges=converges,
        still=still,
    )


def nonmonotonic_powers() -> Found:
    s, d = positive("s"), nonnegative("d")  # k + l and 1 - l
    return proved((k + 1).subs(k, s - l).subs(l, 1 - d) > 0)


FAIRNESS_SCHEMES = {
    "AIMD": (0, 1, 0.5),
    "IIAD": (1, 0, 5.0),
    "SQRT": (0.5, 0.5, 0.5 * 10**0.5),
    "ISCC(-1.5, 2)": (-1.5, 2, 1 / 200),
}


def corners(scheme: str, cycles: int) -> np.ndarray:
    """Corners of the fluid's cycles on C = 100 from (20, 80): on the efficiency line, and after a
    decrease."""
    k, l, sigma = FAIRNESS_SCHEMES[scheme]
    path = [(20.0, 80.0)]
    for _ in range(cycles):
        a, b = path[-1]
        down = a - sigma * a**l, b - sigma * b**l
        path += [down, climb(*down, k, 100.0)]
    return np.array(path)


def cycles_to_fair() -> Found:
    found = {name: cycles_to_fairness(*one) for name, one in FAIRNESS_SCHEMES.items()}
    good, first = max(found.values()) < _CYCLES, {}
    for name in ("IIAD", "SQRT"):
        path = corners(name, found[name])
        fair = path.min(axis=1) / path.max(axis=1)
        good &= rising(fair[::2]) and bool(np.all(fair[1::2] < fair[:-1:2]))
        first[name] = fair[:3]
    return reproduced_if(good, found, found=found, first=first)


# --- Section IV-C of the binomial paper -----------------------------------------------------------


K, W, BETA = 0.5, 100.0, 0.5  # Of Fig. 4: k, capacity in packets a round trip, and beta.

_whole = {sigma: z * U ** (1 - l)}  # so that sigma U^(l-1) is z
E = binomial.efficiency.expr.subs(_whole).simplify()
TWO = binomial.efficiency_two_term.form.subs(_whole).simplify()


def powers_of_fig4() -> np.ndarray:
    """The powers l on the axis of Fig. 4."""
    return np.linspace(-0.5, 1.0, 301)


@cache
def errors(flows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact efficiency and relative errors of its one- and two-term forms over `powers_of_fig4`."""
    exact, one, two = (
        f(K, powers_of_fig4(), BETA, W / flows)
        for f in (
            binomial.efficiency, binomial.efficiency_one_term, binomial.efficiency_two_term
        )
    )  # fmt: skip
    return exact, abs(one - exact) / exact, abs(two - exact) / exact


def increase_in_time() -> Found:
    s, x0 = positive("s x0")
    up = {k: s - 1}  # k + 1 = s > 0
    printed = (lam * (k + 1) * t / R) ** (1 / (k + 1))
    good = proof(Eq(diff(printed.subs(up), t), (lam * printed**-k / R).subs(up)))
    general = (x0 ** (k + 1) + lam * (k + 1) * t / R) ** (1 / (k + 1))
    # x^(k+1) grows by lambda (k+1)/R a second, whatever k + 1 is
    right = proof(Eq(diff(powdenest(general ** (k + 1), force=True), t), lam * (k + 1) / R))
    # for k + 1 = -s only with times below 0, t before the rate is infinite
    before = (lam * s * t / R) ** (-1 / s)
    late = proof(Eq(-diff(before, t), (lam * before**-k / R).subs(k, -1 - s)))
    return differs_if(good and right and late)


def sawtooth() -> Found:
    return proved(*_integrals())


def _integrals() -> list[Any]:
    """That (26) and (27) are the integrals of R/lambda x^k dx and x times that."""
    q = positive("q")
    checks = []
    for (formula, power, other), sign in product(
        ((binomial.cycle_time, k, k + 1), (binomial.cycle_data, k + 1, k + 2)), (1, -1, 0)
    ):
        put = {k: sign * q - (other - k)}  # k + 1 or k + 2 is q, -q or 0
        f = formula.form.subs(_whole).subs(put).doit().simplify()
        # from L = U (1 - z): it vanishes at z = 0, and a lower L adds L^power R/lambda dL, with dL
        # = -U dz
        added = ((U * (1 - z)) ** power * U * R / lam).subs(put)
        checks += [proof(Eq(diff(f, z), added), z < 1), proof(Eq(f.subs(z, 0), 0))]
    return checks


def exact_efficiency() -> Found:
    data, lasts, form = (
        abstract(f.form) for f in (binomial.cycle_data, binomial.cycle_time, binomial.efficiency)
    )
    # r = 1 - z
    generic = (k + 1) * (1 - rest ** (k + 2)) / ((k + 2) * (1 - rest ** (k + 1)))
    limits = [
        proof(Eq(limit(generic, k, at).subs(rest, 1 - z), E.subs(k, at)), z < 1) for at in (-1, -2)
    ]
    return proved(Eq(data / (U * lasts), form), *limits)


def flow_limit() -> Found:
    s = positive("s")  # 1 - l = s > 0; n is t times the bound
    exact = Eq((sigma * (C / n) ** (-s)).subs(n, t * C / sigma ** (1 / s)), t**s)
    value = binomial.max_flows(-0.5, BETA, W)
    return proved(exact, checks=agrees("158", np.floor(value)), value=value)


def taylor() -> Found:
    q = symbols("q", real=True)
    wanted = q * z - q * (q - 1) / 2 * z**2 + q * (q - 1) * (q - 2) / 6 * z**3
    return proved(Eq(series(1 - (1 - z) ** q, z, 0, 4).removeO().expand(), wanted.expand()))


def part_below_one() -> Found:
    q, part = 5, 0.9  # k + 2 with k = 3, and z
    terms = [math.comb(q, m) * part**m for m in (1, 2, 3)]
    power, m = Symbol("q", real=True), positive("m")
    # the term after the m-th is it times z |q - m|/(m + 1)
    shrinks = proof(power - m <= m + 1, power <= 3, m >= 1), proof(m - power <= m + 1, power >= -1)
    return differs_if(terms[1] > terms[0] and all(shrinks), terms=terms)


def leading_term() -> Found:
    one = ((k + 1) * (k + 2) * z) / ((k + 2) * (k + 1) * z)
    return proved(Eq(one, binomial.efficiency_one_term.form), Eq(limit(TWO, z, 0), 1))


def first_terms(q: Any, part: Any) -> Any:
    """The first two terms of 1 - (1 - part)^q."""
    return q * part - q * (q - 1) / 2 * part**2


def two_terms() -> Found:
    truncated = (k + 1) * first_terms(k + 2, z) / ((k + 2) * first_terms(k + 1, z))
    return proved(
        Eq(truncated, TWO), Eq(E.subs(k, 0), TWO.subs(k, 0)), Eq(TWO.subs(k, 0), (2 - z) / 2)
    )


def efficiency_of_n() -> Found:
    part = sigma * C ** (l - 1)
    printed = 1 - part / (2 * n ** (l - 1) - k * part)
    iiad = {k: 1, l: 0, sigma: BETA, n: 2}
    twice = printed.subs(C, C / n).subs({**iiad, C: W})
    right = printed.subs({**iiad, C: W})
    exact = binomial.efficiency(1, 0, BETA, W / 2)
    good = proof(Eq(binomial.efficiency_n_two_term.form, printed))
    return differs_if(
        good and abs(right / exact - 1) < 1e-4 < abs(twice / exact - 1),
        right=right, twice=twice, exact=exact,
    )  # fmt: skip


def independent_of_n() -> Found:
    # The exact efficiency is e = X/(U dt), of z_n alone. With the low end L = U (1 - z), by the
    # integrals, dX/dz = L d(dt)/dz, so that e' = d(dt)/dz (L dt - X)/(U dt^2); and
    # D = X - L dt is 0 at z = 0 and has D' = U dt > 0. So e falls strictly.
    sent, lasts = (Function(name, positive=True)(z) for name in ("X", "T"))
    rises, gap = positive("t D")  # d(dt)/dz
    low = U * (1 - z)
    put = {diff(sent, z): low * rises, diff(lasts, z): rises}
    at = _part_of_n()
    return proved(
        *_integrals(),
        Eq(diff(sent / (U * lasts), z).subs(put), -rises * (sent - low * lasts) / (U * lasts**2)),
        Eq(diff(sent - low * lasts, z).subs(put), U * lasts),
        -rises * gap / (U * lasts**2) < 0,
        Eq(diff(at, n), (1 - l) * at / n),
    )


def _part_of_n() -> Any:
    """z_n: the part of its rate that each of n flows gives up."""
    return sigma * (C / n) ** (l - 1)


def errors_at_aimd() -> Found:
    at = np.array([0.5, -0.5, 1.0])
    found = 1 / binomial.efficiency(at, 1, BETA, W) - 1
    values = named("k = {:g}", at, found)
    if not falling(1 / binomial.efficiency(np.linspace(-0.5, 1, 61), 1, BETA, W)):
        return differs_if(True, values, computed=str(values), reason="Not monotone in k.")
    text = ", ".join(f"{percent(v, 4)} at {a}" for a, v in values.items()) + "; monotone in k"
    return compared(found, values, computed=text)


def efficient_below_half() -> Found:
    exact, one, _ = errors(1)
    below = powers_of_fig4() < 0.5
    ends = {"least efficiency": exact[below].min(), "largest error": one[below].max()}
    if not rising(one):
        return differs_if(True, ends, last=one[-1], reason="The error does not rise with l.")
    return compared([one[-1]], ends, last=one[-1])


def two_terms_better() -> Found:
    _, one, two = errors(1)
    ratio = one / two
    least, most = ratio.min(), ratio.max()
    span = powers_of_fig4()[(ratio >= 5) & (ratio <= 1000)]
    return compared([least, most], least=least, most=most, at=span.min())


def efficiency_crossing() -> Found:
    # at the limit (29) z is 1
    generic = (k + 1) * (1 - rest ** (k + 2)) / ((k + 2) * (1 - rest ** (k + 1)))
    s = positive("s")  # k + 1
    at_limit = proof(Eq(limit(generic.subs(k, s - 1), rest, 0), s / (s + 1)))
    aimd = binomial.efficiency(0, 1, BETA, W)
    last = {f"k = {a:g}": (a + 1) / (a + 2) for a in (K, 1.0, 3.0)}
    roots, limits = {}, {}
    for a in (-0.5, 0.0, 0.5):
        excess = lambda m, a=a: binomial.efficiency_n(K, a, BETA, W, m) - aimd  # noqa: E731
        most = binomial.max_flows(a, BETA, W)
        roots[f"l = {a:g}"] = brentq(excess, 1.0, 0.9999 * most) / W
        limits[f"l = {a:g}"] = most / W
    return differs_if(
        at_limit and last["k = 1"] < aimd < last["k = 3"],
        roots,
        roots=roots,
        limits=limits,
        last=last,
        aimd=aimd,
    )


def errors_of_150_flows() -> Found:
    _, one, two = errors(150)
    at, least, most = powers_of_fig4(), one.min(), one.max()
    return compared(
        [(least, most)],
        {"two terms, most": two.max()},
        least=least,
        most=most,
        low=at[one.argmin()],
        high=at[one.argmax()],
    )
