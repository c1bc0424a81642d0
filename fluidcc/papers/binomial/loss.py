"""Sections IV-D, V-A, V-C and V-D of the binomial paper: loss and its growth, and ISCC."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sympy import And, Eq, Expr, Rational, diff, exp, limit, oo

from fluidcc.formulas import binomial
from fluidcc.papers.binomial.cycles import (
    C,
    abstract,
    cycles_to_fairness,
    first_terms,
    k,
    l,
    lam,
    n,
    sigma,
    x,
    z,
)
from fluidcc.papers.binomial.synchronized import synchronized
from fluidcc.papers.model import (
    Found,
    compared,
    differs_if,
    proof,
    proved,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import falling, named, rising
from fluidcc.symbols import nonnegative, positive


def iscc(k: float, l: float, estimate: Any = 1.0) -> tuple[Any, Any]:
    """Return lambda and sigma of ISCC(k, l), m_I = 20 and m_D = max(2, l), on a link of capacity 1
    that is taken to be `estimate`."""
    return tuple(binomial.iscc_parameters(k, l, estimate, 20.0, max(2.0, l)))


F = binomial.loss.form
P = F.doit()
SMALL = binomial.loss_approximate.form.doit()
q, r, z1 = positive("q r z_1")  # r is x/C
GENERIC = {k: q - 2}, {k: -q - 2}  # at k = -2 the printed forms are 0/0
AIMD = {k: 0, l: 1}


def loss_ratio() -> Found:
    data = binomial.cycle_data.form.doit().subs(binomial.cycle_data.arguments[4], C)
    over = lam * C**-k * positive("R")
    growth = lam**2 * (k + 2)
    closed = growth / (C ** (2 * k + 2) * (1 - (1 - sigma * C ** (l - 1)) ** (k + 2)) + growth)
    one = P.subs(n, 1)
    return proved(*_all_k(over / (data + over), one), *_all_k(one, closed))


def _all_k(a: Any, b: Any) -> list[Any]:
    """That two forms are equal on either side of k = -2."""
    return [Eq(a.subs(side), b.subs(side)) for side in GENERIC]


def aimd_loss() -> Found:
    sent, one = C**2 * sigma * (2 - sigma), SMALL.subs({**AIMD, n: 1})
    return proved(
        Eq(P.subs({**AIMD, n: 1}), 2 * lam**2 / (sent + 2 * lam**2)),
        Eq(one, 2 * lam**2 / sent),
        Eq(SMALL.subs(AIMD) / one, n**2),
    )


def why_quadratic() -> Found:
    lasts, data = (
        f.form.doit().subs(AIMD).subs(f.arguments[4], C / n)
        for f in (binomial.cycle_time, binomial.cycle_data)
    )
    R = binomial.cycle_time.arguments[5]
    return proved(
        Eq(lasts, sigma * C * R / (lam * n)),  # of N = lasts/R steps
        Eq(data * n**2, data.subs(n, 1)),
    )


def loss_of_many() -> Found:
    ideal = P.subs({k: Rational(-3, 2), l: 2})
    parts = (
        Eq(limit(P.subs(AIMD), n, oo), 1),
        Eq(abstract(F / (1 - F)), abstract(binomial.loss_approximate.form)),
        Eq(limit(ideal, n, oo), lam**2 / (sigma + lam**2)),
    )
    return differs_if(all(map(proof, parts)), many=binomial.iscc_loss(-1.5, 2, 20, 2, 10**6))


def loss_example() -> Found:
    # lambda such that (34) gives 0.1 % for one flow
    up = np.sqrt(1e-3 / (1 - 1e-3) * 0.5 * (2 - 0.5) / 2)
    flows = np.array([1, 10, 100])
    found, small = (
        f(0, 1, up, 0.5, 1.0, flows) for f in (binomial.loss, binomial.loss_approximate)
    )
    return compared(found[:2], named("{}", flows, found), found=found, small=small)


def loss_of_n() -> Found:
    sent = C ** (2 * k + 2) * (1 - (1 - sigma * (C / n) ** (l - 1)) ** (k + 2))
    closed = lam**2 * (k + 2) * n ** (2 * k + 2) / sent
    odds = Eq(abstract(F / (1 - F)), abstract(binomial.loss_approximate.form))
    return proved(*_all_k(SMALL, closed), odds)


def loss_growth() -> Found:
    one, each, more = sigma * C ** (l - 1), sigma * (C / n) ** (l - 1), n ** (2 * k + 2)
    full = more * (1 - (1 - one) ** (k + 2)) / (1 - (1 - each) ** (k + 2))
    truncated = more * first_terms(k + 2, one) / first_terms(k + 2, each)
    return proved(
        *_all_k(binomial.loss_increase.expr, full),
        Eq(truncated, binomial.loss_increase_two_term.form),
    )


def exponents() -> Found:
    form, half = binomial.scalability_exponent.form, Rational(1, 2)
    return proved(
        Eq(form.subs(AIMD), 2),
        Eq(form.subs({k: 1, l: 0}), 3),
        Eq(form.subs({k: half, l: half}), 2 + half),
    )


def _faster() -> Any:
    """That the second line of (37) exceeds n^(l+2k+1) for n > 1, k > -1 and l < 1."""
    ratio = (2 - (k + 1) * z1) / (2 - (k + 1) * z)
    p, q, r = positive("p q r")  # k + 1, z - z1 and 2 - (k + 1) z
    return proof(ratio.subs({z1: z - q}).subs({k: p - 1, z: (2 - r) / p}) > 1)


def growth_bound() -> Found:
    flows = np.array([10, 40, 100, 300])
    # IIAD of Fig. 5
    growth = binomial.loss_increase(1.0, 0.0, 5e3, 1544e3, flows)
    exact = binomial.loss_increase_exact(1.0, 0.0, 1e8, 5e3, 1544e3, flows)
    found, full = (s / flows ** binomial.scalability_exponent(1.0, 0.0) for s in (growth, exact))
    return refuted_if(
        _faster() and rising(found) and full[1] > 1,
        named("n = {}", flows, found), found=named("n = {}", flows, found), exact=full,
    )  # fmt: skip


def aimd_scales_best() -> Found:
    form = binomial.scalability_exponent.form
    return proved(
        Eq(form.subs(k, 1 - l), 3 - l),
        proof(form.subs(k, 1 - l) >= form.subs(AIMD), l <= 1),
        _faster(),
        Eq(binomial.loss_increase_two_term.form.subs(AIMD), n**2),
    )


# --- Sections V-C and V-D of the binomial paper ---------------------------------------------------


_, _, _, m_I, m_D = binomial.iscc_parameters.arguments
UP, DOWN = binomial.iscc_parameters.form.values()
IDEAL = Eq(l + 2 * k + 1, 0)


def ideal_scalability() -> Found:
    return proved(
        proof(k < -1, IDEAL, k + l > 0),
        proof(l > 1, IDEAL, k + l > 0),
        proof(k + l > 0, IDEAL, k < -1),
    )


def limited_rates() -> Found:
    s, t = positive("s t")  # l - 1, and x over the rate where crossing, or nothing left, begins
    slope, part = diff(sigma * x**l, x).subs(l, 1 + s), sigma * x**s
    return proved(
        proof(l > 1, IDEAL, k + l > 0),
        Eq(slope.subs(x, t * ((1 + s) * sigma) ** (-1 / s)), t**s),
        Eq(part.subs(x, t * sigma ** (-1 / s)), t**s),
    )


def _at_most_one(s: Expr) -> Any:
    """(x/C)^s <= 1 for x <= C, with ln(C/x) for q."""
    return 1 - exp(-nonnegative("q") * s) >= 0


def iscc_decrease() -> Found:
    s, more = positive("s"), nonnegative("g")  # l = 1 + s, m_D = l + g
    part = (DOWN * x**l / x).subs(l, 1 + s).subs(x, r * C)
    return proved(Eq(part, r**s / m_D), _at_most_one(s), (1 + s) / (1 + s + more) <= 1)


def iscc_increase() -> Found:
    s = positive("s")  # k = -1 - s
    part = UP * x**-k / x
    grows = Eq(part.subs(k, -1 - s).subs(x, r * C), r**s / m_I)
    return proved(grows, _at_most_one(s), Eq(part.subs(k, -1), 1 / m_I))


def iscc_single() -> Found:
    printed = (k + 2) / (m_I**2 * (1 - (1 - 1 / m_D) ** (k + 2)) + k + 2)
    with_parameters = F.subs({lam: UP, sigma: DOWN}).doit()
    return proved(
        *(
            proof(one, m_D > 1)
            for ours in (binomial.iscc_loss.expr, with_parameters)
            for one in _all_k(ours.subs(n, 1), printed)
        )
    )


def iscc_of_n() -> Found:
    flows = np.array([1, 2, 10, 100, 10**6])
    found = binomial.iscc_loss(-1.5, 2, 20, 2, flows)
    ideal = binomial.iscc_loss.form.doit().subs({k: -1.5, l: 2, m_I: 20, m_D: 2}).nsimplify()
    # l = -2k - 1: z_n = n^(1-l)/m_D -> 0, and what is sent over the overshoot tends to m_I^2/m_D
    top = proof(Eq(limit(ideal, n, oo), 1 / (1 + Rational(20**2, 2))))
    return refuted_if(top and np.ptp(found) > 1e-6, named("n = {}", flows, found))


def tcp_friendly_iscc() -> Found:
    return proved(proof(And(Eq(l, 3), Eq(k, -2)), Eq(k + l, 1), IDEAL))


def _cycles(k: float, l: float) -> int:
    """Cycles of ISCC(k, l) from (20, 80) on C = 100 to a fairness of 0.99."""
    return cycles_to_fairness(k, l, iscc(k, l, estimate=100.0)[1])


@cache
def to_fairness(k: float, l: float, flows: int) -> int:
    """Intervals of ISCC(k, l), m_I = 20 and m_D = 3, to a fairness of 0.99, half of the flows from
    0.4 and half from 1.6 of their fair share."""
    up, down = binomial.iscc_parameters(k, l, 1.0, 20.0, 3.0)
    run = synchronized(
        k, l, up, down, 1.0,
        n=flows // 2, initial=[0.4 / flows, 1.6 / flows], intervals=60_000,
    )  # fmt: skip
    return int(np.sum(np.maximum.accumulate(run.fairness) < 0.99))


def tcp_friendly_is_slow() -> Found:
    flows = (2, 10, 50)
    slow, usual = (np.array([to_fairness(a, b, m) for m in flows]) for a, b in ((-2, 3), (-1.5, 2)))
    return reproduced_if(
        rising(slow / usual) and slow[1] > usual[1],
        named("n = {}", flows, slow), slow=slow, usual=usual, flows=flows,
    )  # fmt: skip


def slow_near_one() -> Found:
    powers = np.array([1.05, 1.2, 1.5, 2.0])
    found = [_cycles((-1 - b) / 2, b) for b in powers]
    return reproduced_if(falling(found), named("l = {:g}", powers, found))


def experiment_parameters() -> Found:
    rates, powers = np.linspace(1e-3, 1.0, 2001), (-1.2, -1.5)
    up, down = zip(*(iscc(k, 2) for k in powers), strict=True)
    growth = max(np.max(a * rates ** (-k - 1)) for a, k in zip(up, powers, strict=True))
    fall = max(np.max(a * rates) for a in down)
    return compared([growth, fall], growth=growth, fall=fall)
