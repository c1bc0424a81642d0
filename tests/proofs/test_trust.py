"""Nothing true is refuted and nothing false is proved: sixty inequalities whose gap vanishes, fifty
statements that are false far away or in a narrow place, twenty claims about equilibria, and
polynomials of known sign.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Abs, And, Eq, Max, Min, Ne, Piecewise, Rational, cos, exp, log, sin, sqrt, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Source, Steady
from fluidcc.proofs.prove import Verdict, prove
from fluidcc.symbols import e, pi

z, w, a, b = symbols("z w a b", positive=True)
x, y = symbols("x y", real=True)
n = symbols("n", integer=True, positive=True)

TRUE: list[tuple[Any, tuple[Any, ...]]] = [
    (b * (1 - exp(-z)) < b, ()), (sp.tanh(z) < 1, ()), (z / (1 + z) < 1, ()),
    (log(1 + z) < z, ()), (sin(z) < z, ()), (exp(z) > 1 + z, ()), (sqrt(1 + z) < 1 + z / 2, ()),
    (sp.atan(z) < sp.pi / 2, ()), (z / sqrt(1 + z**2) < 1, ()), (cos(z) > 1 - z**2 / 2, ()),
    (log(1 + z) > z / (1 + z), ()), (sp.sinh(z) > z, ()), (sp.tanh(z) < z, ()),
    (sqrt(z**2 + 1) > z, ()), (log(z + 1) > log(z), ()), (1 / (1 + exp(-x)) < 1, ()),
    (exp(-z) * (2 + sin(z)) > 0, ()), (exp(-z) < 1 / (1 + z), ()), (n * log(1 + 1 / n) < 1, ()),
    (2**n > n, ()), (1 - 2**-n < 1, ()), (sqrt(z + w) < sqrt(z) + sqrt(w), ()),
    (z * w / (z + w) < w, ()), (a / (a + b * z) < 1, ()), (Max(1 - z, 0) < 1, ()),
    (Piecewise((1 - exp(-z), z < 1), (1, True)) <= 1, ()), (Abs(x) / (1 + Abs(x)) < 1, ()),
    (Min(z, 1) * (1 - exp(-w)) < 1, ()), (z**2 < z, (z < 1,)),
    (1 / (1 - z) > 1 + z, (z < 1,)),
]  # fmt: skip
c = symbols("c", positive=True)
LOST = (1 + 1 / z) ** z < sp.E  # floats lose its gap, of which then nothing is told
# Gaps that vanish at an open end, at an inner point or along a line: by slopes, by a change of
# scale, by Taylor's theorem.
VANISHING: list[tuple[Any, tuple[Any, ...]]] = [
    (sp.tan(z) > z, (z < sp.pi / 2,)), (sp.cosh(z) > 1 + z**2 / 2, ()), (z * log(z) >= z - 1, ()),
    ((a + b + c) / 3 >= (a * b * c) ** Rational(1, 3), ()),
    (a / (b + c) + b / (a + c) + c / (a + b) >= Rational(3, 2), ()),
    ((a + b) * (b + c) * (c + a) >= 8 * a * b * c, ()), (z**z >= exp(-exp(-1)), ()),
    (a**3 * b + b**3 * c + c**3 * a >= a * b * c * (a + b + c), ()), (log(z) <= z / sp.E, ()),
    (exp(z) > 1 + z + z**2 / 2 + z**3 / 6, ()), (sin(z) > 2 * z / sp.pi, (z < sp.pi / 2,)),
    ((w - z) / log(w / z) > sqrt(z * w), (w > z,)), ((1 + z) ** a >= 1 + a * z, (a >= 1,)),
    (log((a + b) / 2) >= (log(a) + log(b)) / 2, ()), (a * log(a / b) >= a - b, ()),
    (LOST, ()), ((1 + 1 / z) ** (z + 1) > sp.E, ()), (sp.asin(z) > z, (z < 1,)),
    (log(z) > 2 * (z - 1) / (z + 1), (z > 1,)), (sp.atan(z) + 1 / z > sp.pi / 2, ()),
    (sqrt((a**2 + b**2) / 2) >= (a + b) / 2, ()), (z / (exp(z) - 1) < 1, ()),
    (a**3 / 3 + 2 * b ** Rational(3, 2) / 3 >= a * b, ()), (cos(z) < 1 - z**2 / 2 + z**4 / 24, ()),
    (log(1 + exp(-z)) > exp(-z) / (1 + exp(-z)), ()), (x**4 + y**4 + 1 >= 4 * x * y - 1, ()),
]  # fmt: skip
# Equations that are false everywhere, and plainly only where something narrow is.
NARROW: list[Any] = [
    Eq(sqrt(z**2 + exp(-(10**8) * (z - sqrt(2)) ** 2)), z),
    Eq(log(exp(z) + exp(-(10**9) * (z - sqrt(3)) ** 2)), z),
    Eq(sin(x) ** 2 + cos(x) ** 2 + exp(-(10**10) * (x - sp.pi) ** 2), 1),
    Eq(z / (1 + exp(-(10**8) * (z - sp.E) ** 2)), z), Eq(sp.tanh(10**7 * (z - sqrt(7))) ** 2, 1),
    Eq(z * (1 + exp(-(10**9) * (log(z) - 1) ** 2)), z),
    Eq(Max(exp(-(10**6) * (z - sqrt(2)) ** 2) - Rational(1, 2), 0), 0),
]  # fmt: skip
bump = exp(-(((z - Rational(37, 10)) * 10**4) ** 2))
FALSE: list[tuple[Any, tuple[Any, ...]]] = [
    (z < 10**6, ()), ((z - 3) ** 2 > 0, ()), (2 * bump < 1, ()),
    (exp(z) < sp.Integer(10) ** 300, ()), ((z - 1) * (z - 1 - Rational(1, 10**5)) >= 0, ()),
    (z + 1 / z > 2, ()), ((z**2 - 2) ** 2 > 0, ()), (sin(x) < 1, ()), (cos(z) > -1, ()),
    (z**2 * exp(-z) < Rational(54, 100), ()), (log(z) < 100, ()), (z**10 < exp(z), ()),
    (2**n > n**3, ()), (z * w < 10**12, ()), (z / (1 + z) < 1 - Rational(1, 10**9), ()),
    ((x - y) ** 2 > 0, ()), ((z - 2 * w) ** 2 > 0, ()), (Abs(x - 5) > Rational(1, 10**6), ()),
    (Piecewise((-1, And(z > 2, z < 2 + Rational(1, 10**4))), (1, True)) > 0, ()),
    (Eq(Max(z - 10**9, 0), 0), ()), (1 / z > Rational(1, 10**20), ()), ((z - a) ** 2 > 0, ()),
    (exp(z) - 1 - z < 10**30 * z**2, ()), ((n - 1000) ** 2 > 0, ()), (Ne(z**2, 7 * z), ()),
    (1 / (10**9 - z) > 0, ()), (z < 5, (z > 3,)), (sin(z) / z > -Rational(217, 1000), ()),
    (z**4 - 2 * z**2 + 1 > Rational(1, 10**8), ()), (Eq(sp.sign(x) ** 2, 1), ()),
    # the gap vanishes, or what is bounded grows slowly, at an end of the domain
    (log(1 + log(1 + z)) < 10, ()), (log(z) ** 2 < 10**6, ()), (z ** Rational(1, 100) < 10**6, ()),
    (z * (sqrt(z**2 + 1) - z) < Rational(1, 2) - Rational(1, 10**20), ()),
    (sp.atan(x) < sp.pi / 2 - Rational(1, 10**30), ()), (z / (z + w) < 1 - Rational(1, 10**35), ()),
    (sqrt(z + 1) - sqrt(z) > Rational(1, 10**18), ()), (log(1 + 1 / z) > Rational(1, 10**25), ()),
    (1 - cos(x) > Rational(1, 10**20), ()), (n * log(1 + 1 / n) < 1 - Rational(1, 10**9), ()),
]  # fmt: skip


def _fails(verdict: Any, statement: Any, where: tuple[Any, ...]) -> bool:
    """Return whether SymPy agrees that the counterexample is one."""
    at = {s: sp.sympify(verdict.counterexample[str(s)]) for s in statement.free_symbols}
    at = {s: Rational(v) if v.is_Float else v for s, v in at.items()}
    met = all(f.subs(at) == True for f in where)  # noqa: E712  SymPy's own true
    return met and statement.subs(at) == False  # noqa: E712


@pytest.mark.slow
def test_true_statements_are_never_refuted_and_nearly_all_proved() -> None:
    found = [(f, prove(f, where=where).status) for f, where in TRUE]  # type: ignore[union-attr]
    assert len(found) == 30
    assert not [f for f, status in found if status == "refuted"]
    left = [f for f, status in found if status != "proved"]
    assert len(left) <= 2, left


@pytest.mark.slow
def test_gaps_that_vanish_are_nearly_all_decided() -> None:
    found: list[Any] = [prove(f, where=where) for f, where in VANISHING]
    assert len(found) == 26
    assert not [one for one in found if one.status == "refuted"]
    assert sum(one.status == "proved" for one in found) >= 23, found
    (lost,) = (one for one in found if one.statement == LOST)
    assert " -" not in lost.how.split(" at z")[0]


@pytest.mark.parametrize("statement", NARROW)
def test_a_narrow_peak_refutes_an_equation(statement: Any) -> None:
    verdict = prove(statement)
    assert verdict.status == "refuted"  # type: ignore[union-attr]
    assert _fails(verdict, statement, ())


def test_large_numbers_are_not_taken_apart_and_derivatives_are_named() -> None:
    assert prove(1 / z + 1 / w > Rational(1, 10**400)).status == "refuted"  # type: ignore[union-attr]
    still = prove(Eq(sp.Function("x")(z).diff(z), 0))
    assert [*still.counterexample] == ["x'(z)"]  # type: ignore[union-attr]


@pytest.mark.slow
def test_false_statements_are_never_waved_through_and_nearly_all_refuted() -> None:
    left = []
    for statement, where in FALSE:
        verdict = prove(statement, where=where)
        assert verdict.status not in ("proved", "checked"), statement  # type: ignore[union-attr]
        if verdict.status == "refuted":  # type: ignore[union-attr]
            assert _fails(verdict, statement, where), (statement, verdict)
        else:
            left.append(statement)
    assert len(FALSE) == 40
    assert len(left) <= 2, left


m0 = symbols("m0", integer=True, nonnegative=True)
K, G = sp.Function("K", integer=True), sp.Function("G", negative=True)
R = sp.Function("R", positive=True)
NEVER: list[tuple[Any, str]] = [  # what was once said of them, wrongly
    (x**n > -1, "proved"),  # a negative number to a whole power is real
    (x**y >= 0, "proved"),
    (Piecewise((x, sqrt(x) >= 0), (-1, True)) > Rational(-1, 2), "refuted"),  # undefined below 0
    (K(x) * (K(x) - 1) >= 0, "refuted"),  # assumptions on functions count
    (G(x) < 0, "refuted"),
    (Eq(sp.Integral(R(x), (x, 0, 1)), R(x)), "proved"),  # all values of R count
    (Abs(x) + (m0 - 12347) ** 2 > 0, "proved"),  # a symbol with the name of a branch
    (sp.atan(z) + sp.atan(1 / z) > sp.pi / 2, "proved"),  # the slope is zero all over
    (sp.Symbol("i", imaginary=True) ** 2 >= 0, "proved"),
    (sin(z * 10**8) < 2, "refuted"),  # algebra must not multiply it out
    (log(n + 1) - log(n) < 1 / n, "refuted"),  # no float where the domain has no end
    (3**n >= 2**n + 1, "refuted"),  # nor a power with a million digits
    (z * exp(-z) < Rational(1, 2), "refuted"),  # zeros of intervals keep their sign
    (Eq(sp.tanh(1000 + z), 1), "checked"),  # they agree to 868 digits
    (sqrt(z) < z + 1, "checked"),  # true, and the small share that is left is no support
]  # fmt: skip


@pytest.mark.parametrize(("statement", "wrong"), NEVER)
def test_powers_branches_and_functions_are_what_they_are(statement: Any, wrong: str) -> None:
    assert prove(statement).status != wrong  # type: ignore[union-attr]


def test_what_is_too_long_for_algebra_is_not_decided_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fluidcc.proofs.prove.MOST", 20_000)
    sums = sp.Add(*((z + k) ** 2 * w**k for k in range(1, 80)))
    verdict = prove(sums > sp.expand(sums) - exp(-z))
    assert isinstance(verdict, Verdict)
    assert verdict.status in ("checked", "undecided")
    assert "too long for algebra" in verdict.how or "its search ended" in verdict.how


# Of other kinds: wide scales, conditions, corners, minima in several symbols.
OTHER: list[tuple[Any, tuple[Any, ...], str]] = [
    (log(1 + 1e-9 * z) < 1e-9 * z, (), "proved"), (log(1 + exp(x)) > Max(x, 0), (), "proved"),
    (sp.tanh(a + b) < sp.tanh(a) + sp.tanh(b), (), "proved"),
    (a * b < Rational(1, 4), (Eq(a + b, 1), a < b), "proved"), (2**n > n + 1, (n >= 2,), "proved"),
    (x + y < 14.142, (x**2 + y**2 <= 100,), "refuted"), (sin(a) * sin(b) < 1, (), "refuted"),
    (x * y < 50, (x**2 + y**2 <= 100,), "refuted"), (n**2 - 201 * n + 10100 > 0, (), "refuted"),
    ((x**2 - 3) ** 2 + (y - 1) ** 2 > 0, (), "refuted"), (sp.coth(z) > 1, (), "proved"),
    (sp.coth(z) - 1 < 2 * exp(-2 * z), (), "refuted"), (sp.sech(x) <= 1, (), "proved"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "where", "status"), OTHER)
def test_other_kinds_of_inequalities_are_decided(statement: Any, where: Any, status: str) -> None:
    verdict = prove(statement, where=where)
    assert verdict.status == status  # type: ignore[union-attr]
    assert status == "proved" or _fails(verdict, statement, where)


def test_a_proof_ends_after_so_many_steps_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of eleven maxima has 2,048 branches, none of which excludes another."""
    monkeypatch.setattr("fluidcc.proofs.prove.MOST", 5_000)
    parts = symbols("z:12", positive=True)
    sums = sum(Max(one, other) for one, other in pairwise(parts))
    verdict = prove(sums >= sum(parts) / 2)
    assert verdict.status == "undecided"  # type: ignore[union-attr]
    assert "after 5,000 steps" in verdict.how  # type: ignore[union-attr]
    half: Any = prove(1 - (1 - z) ** w < w * z, where=[z < 1, w > 1])
    assert re.search(r"after 5,000 steps.*it holds at \d+ of \d+ points", half.how)


# --- claims about equilibria ----------------------------------------------------------------------

X, Z, A, T = symbols("X Z A T", positive=True)
s = symbols("s", nonnegative=True)


def _law(flows: dict[Any, Any], claim: Any) -> Source:
    units = {X: "bit/s", Z: "1", s: "1", A: "bit/s", T: "s"}
    return Source(
        "Try", {k: f / T for k, f in flows.items()}, {"rate": X}, {A: 2e6, T: 1.0},
        {k: u for k, u in units.items() if k in flows or k in (A, T)},
        initial=dict.fromkeys(flows, 1.0), claims={"it": Steady(claim)},
    )  # fmt: skip


cubic = {X: -(((X - A) / A) ** 3) * A * pi}
two, pair = {X: (A - X) * pi, Z: 1 - Z * pi}, {X: (X - A) * (X - 2 * A) / A}
STEADY: list[tuple[dict[Any, Any], Any, bool]] = [
    (cubic, Eq(pi, 0), False), (cubic, Eq((X - A) * pi, 0), True), (cubic, Eq(X, A), False),
    (cubic | {Z: 1 - Z * pi}, Eq(X, A), True), (two, Eq(Z * pi, 1), True), (two, pi > 0, True),
    (two, Eq(pi, 0), False), (two, Z >= 1, True), (two, Z > 1, False),
    ({X: A - X * pi}, X >= A, True), ({X: A - X * pi}, Eq(X, A), False),
    (pair, X >= A, True), (pair, Eq(X, A), False), (pair, X < 3 * A, True),
    ({X: X * (A - X) / A}, Eq(X, A), True), ({X: (A - X) * e / T}, Eq(X, A), False),
    ({X: (A - X) * e / T}, Eq(e * X, e * A), True),
    ({X: A - X + Max(X - 2 * A, 0) * 2}, X >= A, True),
    ({X: (A - X) * pi, s: (1 - s) * s}, Eq(s, 1), False),
    ({X: (A - X) * pi + (2 * A - X) * (1 - pi)}, And(X >= A, X <= 2 * A), True),
    ({X: (X - A) * (X**2 - A * X + A**2) / A**2}, Eq(X, A), True),
    ({X: A * exp(-pi) - X}, X < A, False), ({X: Min(A, 2 * A * pi) - X}, X <= A, True),
]  # fmt: skip


@pytest.mark.slow
def test_claims_about_equilibria_hold_on_every_branch() -> None:
    left = []
    for flows, claim, true in STEADY:
        (verdict,) = prove(_law(flows, claim))  # type: ignore[misc]
        assert verdict.status != ("refuted" if true else "proved"), (flows, claim, verdict)
        assert true or not verdict, (flows, claim, verdict)
        if verdict.status not in ("proved", "refuted"):
            left.append((flows, claim, verdict))
    assert len(STEADY) == 23
    assert len(left) <= 2, left


def test_a_law_without_equilibrium_claims_nothing_and_conditions_hold_for_laws_too() -> None:
    (verdict,) = prove(_law({X: A + X}, Eq(X, A)))  # type: ignore[misc]
    assert verdict.status == "undecided"
    assert "no equilibrium" in verdict.how
    law = _law(pair, Eq(X, A))
    (verdict,) = prove(law, where=[X < 2 * A])  # type: ignore[misc]
    assert verdict.status == "proved"
    for wrong, words in (
        (["X < A"], "give a law, a formula, or a SymPy relation"),
        (z < 1, "give a list"),
        ([sp.Symbol("X") < A], "another symbol X"),
        ([z < 1], "about z, which Try has not"),
    ):
        with pytest.raises(InvalidInput, match=words):
            prove(law, where=wrong)
    assert prove(fc.LDCC, where=[e < 1])


# --- polynomials whose sign is known --------------------------------------------------------------

small = st.integers(-4, 4)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(small, min_size=2, max_size=3), st.lists(small, min_size=2, max_size=3), small)
def test_sums_of_squares_are_positive_and_not_where_one_is_taken_away(
    first: list[int], second: list[int], root: int
) -> None:
    squares = sp.Poly(first, x).as_expr() ** 2 + sp.Poly(second, x).as_expr() ** 2
    above = prove(sp.expand(squares) + Rational(1, 1000) > 0, label="sum")
    assert isinstance(above, Verdict)
    assert above.status == "proved"
    at = Rational(root) + Rational(1, 7)
    dips = sp.expand(squares - squares.subs(x, at)) - Rational(1, 1000) >= 0
    below = prove(dips)
    assert isinstance(below, Verdict)
    assert below.status == "refuted"
