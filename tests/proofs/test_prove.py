"""True statements are proved or checked, false ones refuted by values that refute them."""

from dataclasses import replace
from typing import Any

import pytest
import sympy as sp
from sympy import And, Eq, Max, Min, Ne, Piecewise, exp, log, symbols
from sympy.codegen.cfunctions import expm1, log1p

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law, Source, Steady
from fluidcc.proofs.prove import Proof, Verdict, prove
from fluidcc.proofs.standstill import standstills
from fluidcc.sources import LDCC, PrimalDual, StaticReno
from fluidcc.sources.windows import acked, w
from fluidcc.symbols import RTT, e, pi
from tests.some_laws import all_laws

p, q, r = symbols("p q r", positive=True)
s, z = symbols("s z", real=True)

R = sp.Function("R", positive=True)
# A statement, and the conditions under which it is meant.
PROVED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "expansion": (Eq((p + q) ** 3, p**3 + 3 * p**2 * q + 3 * p * q**2 + q**3), ()),
    "fraction": (1 / p - 1 / q - (q - p) / (p * q), ()),
    "logarithm": (Eq(log(p * q), log(p) + log(q)), ()),
    "root": (Eq(sp.sqrt(p**2 * q), p * sp.sqrt(q)), ()),
    "roots of roots": (Eq(sp.sqrt(p + q + 2 * sp.sqrt(p * q)), sp.sqrt(p) + sp.sqrt(q)), ()),
    "trigonometry": (Eq(sp.sin(s) ** 2 + sp.cos(s) ** 2, 1), ()),
    "kinks": (Eq(Max(s, z) + Min(s, z), s + z), ()),
    "absolute value": (Eq(Max(s, -s), sp.Abs(s)), ()),
    "touching zero where branches meet": (sp.Abs(s - 1) >= 0, ()),
    "square": (p**2 + q**2 >= 2 * p * q, ()),
    "sign": (p / (p + q) < 1, ()),
    "condition": (p > q, (p > 2 * q,)),
    "chain of conditions": (p > 3 * r, (p > q, q >= 3 * r)),
    "equation as condition": (Eq(p * q, q**2), (Eq(p, q),)),
    "branch under a condition": (Eq(Max(p - q, 0), p - q), (p >= q,)),
    "piecewise": (Piecewise((p, s > 0), (q, True)) > 0, ()),
    "both": (And(p + q > p, p + q > q), ()),
    "not zero": (Ne(p + q, 0), ()),
    "exponential": (exp(p) > 1 + p, ()),
    "x - ln(1 + x) is positive": (p > log(1 + p), ()),
    "growth in digits": (expm1(p) > p + p**2 / 2, ()),
    "logarithm in digits": (log1p(p) > p / (1 + p), (p >= sp.Rational(1, 10),)),
    "rising twice over": (exp(p) > 1 + p + p**2 / 2, ()),
    "values of a function": (q * R(p) + p * R(q) > 0, ()),
    "slopes of a function": (p - R(p) > 0, (R(p).diff(p) >= R(p) / p, R(p).diff(p) < 1)),
    "rules of derivation": (Eq((R(p) / p).diff(p), (p * R(p).diff(p) - R(p)) / p**2), ()),
}
REFUTED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "equation": (Eq((p + q) ** 2, p**2 + q**2), ()),
    "inequality": (p + q >= 2, ()),
    "strict at equality": (Max(p, q) > q, ()),
    "only far away": (p < 1000, ()),
    "one of two": (And(p**2 + q**2 >= 2 * p * q, p > q), ()),
    "under a condition": (p > 2 * q, (p > q,)),
    "equal real numbers": (sp.exp(s) + sp.exp(z) > 2 * sp.exp((s + z) / 2), ()),
    "whole numbers": (Eq(sp.floor(p) + sp.floor(-p), -1), ()),
    "nearly": (Eq(p * q, p * (q + sp.Rational(1, 10**40))), ()),
}


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "where"), PROVED.values(), ids=PROVED)
def test_proved(statement: Any, where: tuple[Any, ...]) -> None:
    verdict = prove(statement, where=where)
    assert verdict.status == "proved"  # type: ignore[union-attr]
    assert verdict


def test_checked_where_no_proof_is_found_and_not_proved_where_it_fails_at_a_point() -> None:
    """The logarithm is concave; abs(s - 1) is above zero on either side of 1, and zero there."""
    assert prove(log(p) <= p - 1)
    assert prove(sp.Abs(s - 1) > 0).status != "proved"  # type: ignore[union-attr]


def test_a_function_can_be_anything_between_its_conditions() -> None:
    verdict = prove(R(p) + p > R(q) + q, where=[p > q])  # not every function plus x rises
    assert isinstance(verdict, Verdict)
    assert verdict.status == "refuted"
    value = verdict.counterexample
    assert value["R(p)"] + value["p"] <= value["R(q)"] + value["q"]
    assert value["p"] > value["q"]


@pytest.mark.parametrize(("statement", "where"), REFUTED.values(), ids=REFUTED)
def test_refuted_by_a_counterexample(statement: Any, where: tuple[Any, ...]) -> None:
    verdict = prove(statement, where=where)
    assert isinstance(verdict, Verdict)
    assert verdict.status == "refuted"
    assert not verdict
    values = {v: verdict.counterexample[str(v)] for v in statement.free_symbols}
    for condition in where:
        assert condition.subs(values) == True  # noqa: E712  SymPy's own true
    if statement is not REFUTED["nearly"][0]:
        assert statement.subs(values) == False  # noqa: E712


def test_catastrophic_cancellation_is_not_a_counterexample() -> None:
    tiny = p * sp.Rational(1, 10**70)
    assert prove(Eq(((1 + tiny) ** 2 - 1) / tiny, 2 + tiny)).status == "proved"  # type: ignore[union-attr]
    one = Eq((exp(tiny) - exp(-tiny)) ** 2 / (exp(2 * tiny) + exp(-2 * tiny) - 2), 1)
    assert prove(one).status != "refuted"  # type: ignore[union-attr]


def test_contradictory_conditions_are_undecided() -> None:
    assert prove(p > q, where=(p < r, r < p)).status == "undecided"  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)
def test_every_claim_of_every_law_is_proved(law: Law) -> None:
    proof = prove(law)
    assert isinstance(proof, Proof)
    assert [v.label for v in proof] == list(law.claims)
    assert [v.status for v in proof] == ["proved"] * len(law.claims)


def test_a_false_number_is_refuted_by_no_values() -> None:
    assert repr(prove(3)) == "refuted (it is false)"


def test_false_claims_about_equilibria_are_refuted() -> None:
    (x,), (w, beta, T, _) = LDCC.states, LDCC.params
    lies = {
        "(18) without T": Steady(Eq(e, RTT * w / (beta * x)), given={pi: 0}),
        "(20) reversed": Steady(x < w / beta, given={pi: 0}),
        "(20) with twice the weight": Steady(x > 2 * w / beta, given={pi: 0}),
        "(18) under loss": Steady(Eq(e, RTT * w / (beta * x) + T)),
    }
    law = Source(LDCC.name, LDCC.flow, LDCC.out, LDCC.params, LDCC.units, claims=lies)
    proof = prove(law)
    assert isinstance(proof, Proof)
    assert {v.label: v.status for v in proof} == dict.fromkeys(lies, "refuted")
    values = proof["(20) with twice the weight"].counterexample
    assert values["x"] > 0
    assert values["e"] > values["T"]


def test_ldcc_stands_still_only_above_its_threshold() -> None:
    (still,) = standstills(LDCC, Steady(Eq(e, e), given={pi: 0}))
    T = list(LDCC.params)[2]
    assert any(c.gts - c.lts == e - T for c in still.conditions)


def test_reno_stands_still_where_hollot_and_others_linearise() -> None:
    (still,) = standstills(StaticReno, StaticReno.claims["square-root law"])
    (W,), (a, b) = StaticReno.states, StaticReno.params
    assert still.values[a] == W**2 * b * pi


def test_of_a_flow_linear_in_nothing_the_verdict_is_undecided_and_says_why() -> None:
    x, g = symbols("x g", positive=True)
    law = Source(
        "Odd",
        {x: g * (exp(-x / g) - exp(pi) * x / g) / RTT},
        {"rate": x},
        {g: 1.0},
        {x: "bit/s", g: "bit/s"},
        claims={"odd": Steady(Eq(x, g))},
    )
    (verdict,) = prove(law)  # type: ignore[misc]
    assert verdict.status == "undecided"
    assert "Odd: the flow of x is linear in none of g" in verdict.how


def test_a_law_that_jumps_at_losses_rests_nowhere_and_nothing_is_proved_of_it() -> None:
    for law in (fc.AIMD, fc.StaticAIMD, fc.BBRv3):
        state = next(iter(law.states))
        text = str(prove(replace(law, claims={"w": Steady(Eq(state, 1))})))
        assert "w: undecided" in text
        assert f"{law.name} {'ticks' if law.ticks else 'jumps'}, and so does not rest" in text


def test_results_show_themselves() -> None:
    proof = prove(LDCC)
    assert isinstance(proof, Proof)
    assert len(proof) == len(proof[:]) == len(LDCC.claims)
    assert "(19): proved" in repr(proof)
    with pytest.raises(InvalidInput, match="claims nothing called"):
        proof["(99)"]
    assert proof["(18)"] is proof[list(LDCC.claims).index("(18)")]
    assert repr(prove(PrimalDual(w=1), label="ignored"))


@pytest.mark.parametrize(
    ("statement", "where"), [("p > q", ()), (object(), ()), ((p, q), ()), (p > q, ("p > 2*q",))]
)
def test_what_is_no_statement_is_refused(statement: Any, where: tuple[Any, ...]) -> None:
    words = r"^(statement|where) is (str|object|tuple) .*give a law, a formula, or a SymPy relation"
    with pytest.raises(InvalidInput, match=words):
        prove(statement, where=where)
    with pytest.raises(InvalidInput, match="the condition p is neither an equation"):
        prove(p > q, where=(p,))


def test_a_claim_about_equilibria_is_as_good_as_the_worst_of_them() -> None:
    """RTT z' = a - z + 2 max(z - 2 a, 0) stands still at a, and at 3 a."""
    x, a = symbols("x a", positive=True)
    claims = {
        "either": Steady(x >= a),
        "the one": Steady(Eq(x, a)),
        "the other": Steady(Eq(x, 3 * a)),
    }
    law = Source(
        "Two", {x: (a - x + 2 * Max(x - 2 * a, 0)) / RTT}, {"rate": x}, {a: 1e6},
        {x: "bit/s", a: "bit/s"}, claims=claims,
    )  # fmt: skip
    found = prove(law)
    assert isinstance(found, Proof)
    assert [verdict.status for verdict in found] == ["proved", "refuted", "refuted"]


@pytest.mark.parametrize(
    ("status", "holds"),
    [("proved", True), ("checked", False), ("refuted", False), ("undecided", False)],
)
def test_only_what_was_proved_is_true(status: str, holds: bool) -> None:
    assert bool(Verdict("", True, status, "")) == holds


@pytest.mark.parametrize("power", [0, sp.Rational(1, 3), sp.Rational(1, 2), 1, 2])
def test_windows_without_parameters_have_their_formulas(power: Any) -> None:
    """What is linear in none but the ratio itself, whose factor may be one of roots."""
    cut = (1 - pi) * acked / w - pi * acked * w**power
    for claim, status in (
        (Eq(pi * w ** (1 + power), 1 - pi), "proved"),
        (Eq(w, ((1 - pi) / pi) ** (1 / (1 + power))), "proved"),
        (Eq(w ** (1 + power), 2 * (1 - pi) / pi), "refuted"),
    ):
        law = fc.window("Root", cut, claims={"w": Steady(claim)})
        assert f"w: {status}" in str(prove(law))


def test_floats_are_the_fractions_that_are_meant() -> None:
    """0.3 is no binary fraction, and the square of the nearest one is not the one nearest 0.09.

    (SymPy itself says that 0.1 + 0.2 is not 0.3, before anybody is asked.)
    """
    x = symbols("x", positive=True)
    for equation, status in (
        (Eq((0.3 * x) ** 2, 0.09 * x**2), "proved"),
        (Eq(x ** (2 / 3) * x ** (1 / 3), x), "proved"),
        (Eq((x / 0.3) ** (2 / 3) + x, x ** (2 / 3) / 0.3 ** (2 / 3) + x), "proved"),
        (Eq(0.3 * x + x**2, 0.30000001 * x + x**2.0), "refuted"),
        (Eq(3.7123456789012345 * x, 3.7123459 * x), "refuted"),
        (Eq(sp.Float("0.30000000000000000001", 25) * x, 3 * x / 10), "refuted"),
        (Eq(sp.Float("0.3", 25) * x, 3 * x / 10), "proved"),
        (Eq(x + 5e-324, x * (x + 1) / x), "refuted"),
    ):
        verdict = prove(equation)
        assert isinstance(verdict, Verdict)
        assert verdict.status == status
    # Of 0.3^(-2/3) SymPy has made a float that no fraction is meant by.
    window = Eq(w, ((1 - pi) / (0.3 * pi)) ** (2 / 3))
    law = fc.window(
        "Root", (1 - pi) * acked / sp.sqrt(w) - 0.3 * pi * acked * w, claims={"w": Steady(window)}
    )
    assert "w: undecided" in str(prove(law))
