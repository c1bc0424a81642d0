"""Claims: their tables, their verdicts, and the step from proofs to verdicts."""

from dataclasses import replace
from inspect import getmembers, getsource, isfunction, signature
from sys import modules
from typing import Any

import pytest
from sympy import Eq, Lt, symbols

from fluidcc.base.errors import InvalidInput, Undecided, UnknownName
from fluidcc.papers import model
from fluidcc.papers.model import Claim, Outcome, compared
from fluidcc.papers.printed import agrees, bound
from fluidcc.proofs.prove import Verdict

x, y = symbols("x y", positive=True)
BY_HELPERS = {f"binomial.growth_{name}" for name in ("aimd1", "aimd2", "iiad")}
CLAIM = model.Claim("p.one", "p", "runs", "(1)", "So it is.", computed="ok")


def proved(*statements: Any) -> model.Outcome:
    return CLAIM.outcome(model.proved(*statements))


def test_a_proof_makes_a_proved_claim() -> None:
    good = proved(x + y > 0, model.proof(Eq((x + y) ** 2, x**2 + 2 * x * y + y**2)))
    assert (good.verdict, good.computed) == ("proved", "ok")


def test_one_refuted_proof_refutes_the_claim_with_its_counterexample() -> None:
    bad = proved(x + y > 0, x > y)
    assert bad.verdict == "refuted"
    assert "x = " in bad.reason
    assert "y = " in bad.reason


def test_one_part_that_is_only_checked_keeps_the_claim_from_being_proved() -> None:
    whole = model.proof(x + y > 0)
    assert whole.status == "proved"
    part = Verdict("", x + 1 > 0, "checked", "at random points")
    for parts in ((part,), (whole, part), (part, whole), (whole, part, whole)):
        found = proved(*parts)
        assert (found.verdict, found.reason) == (
            "reproduced",
            "at random points",
        )


def test_a_form_made_from_the_prose_is_rebuilt_and_no_more() -> None:
    lost = replace(CLAIM, rebuilt=True, reason="The formula is lost.")
    assert lost.outcome(model.proved(x + y > 0)).verdict == "rebuilt"
    assert lost.outcome(model.reproduced_if(True)).verdict == "rebuilt"
    assert lost.outcome(model.reproduced_if(False)).verdict == "differs"
    with pytest.raises(InvalidInput, match="needs a reason"):
        replace(lost, reason="").outcome(model.proved(x + y > 0))


def test_what_cannot_be_decided_is_said() -> None:
    with pytest.raises(Undecided):
        model.proof(x > y, Lt(x, 0, evaluate=False))
    with pytest.raises(Undecided):
        proved(Verdict("", x > y, "undecided", "no branch"))


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [("right", "so it is"), ("differs", ""), ("refuted", ""), ("not given", "")],
)
def test_an_outcome_has_a_known_verdict_and_a_reason_where_one_is_due(
    verdict: str, reason: str
) -> None:
    with pytest.raises(InvalidInput):
        model.Outcome(verdict, "1", reason)


def test_ids_are_unique_and_places_are_named() -> None:
    claims = model.claims_of("ldcc")
    assert len({c.id for c in claims}) == len(claims)
    assert all(
        c.paper == "ldcc" and c.place and c.statement.rstrip("'").endswith(".") for c in claims
    )
    assert [c for c in model.claims_of() if c.paper == "ldcc"] == claims


def test_an_unknown_paper_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="'lddc'; the papers are ldcc"):
        model.claims_of("lddc")


def test_every_table_has_its_test_and_every_test_its_table() -> None:
    within = [claim for claim in model.claims_of() if claim.room != "outside"]
    tested = {claim.test for claim in within}
    assert len(tested) == len(within)
    for module in {modules[test.__module__] for test in tested}:
        for name, function in getmembers(module, isfunction):
            is_test = signature(function).return_annotation == "Found" and not name.startswith("_")
            if is_test and function.__module__ == module.__name__:
                assert function in tested


def test_printed_numbers_are_compared() -> None:
    within = [claim for claim in model.claims_of() if claim.room != "outside"]
    compared = {c.id for c in within if "compared(" in getsource(c.test)}
    assert {c.id for c in model.claims_of() if c.digits} - compared == BY_HELPERS
    assert compared <= {c.id for c in model.claims_of() if c.digits}


def test_words_have_the_numbers_of_the_outcome_in_units() -> None:
    words = "{a:ms3}, {b:percent.1f}, {c:kbit}, {d:mbit}, {e:bound}, {a:.2e}"
    values = {"a": 0.0123456, "b": 0.5, "c": 2e5, "d": 3.5e6, "e": 2e-4}
    found = replace(CLAIM, computed=words).outcome(model.found("proved", values, f=[1.0, 2.0]))
    assert found.computed == "12.3 ms, 50.0 %, 200 kbit/s, 3.5 Mbit/s, 1e-3, 1.23e-02"
    assert found.values == values


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("reproduced_if", "reproduced", "differs"),
        ("differs_if", "differs", "reproduced"),
        ("refuted_if", "refuted", "reproduced"),
        ("proved_if", "proved", "refuted"),
    ],
)
def test_a_verdict_turns_with_the_checks(kind: str, good: str, bad: str) -> None:
    judge = getattr(model, kind)
    assert CLAIM.outcome(judge(True, reason="Why.")).verdict == good
    found = CLAIM.outcome(judge(False))
    assert (found.verdict, found.reason) == (
        bad,
        f"The checks that would make this row {good!r} fail.",
    )


# --- printed digits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "inside", "outside"),
    [
        ("352", (351.5, 352, 352.5), (351.4, 352.6)),
        ("9.6", (9.55, 9.65), (8.9, 9.54, 9.66)),
        ("10", (9.5, 10.5), (9.1, 9.49)),
        ("0", (0.0, 0.5), (0.6,)),
        ("1.00", (0.995, 1.005), (0.99, 1.01)),
        ("219 889", (219_889.4,), (219_888,)),
        ("40-50", (39.5, 45, 50.5), (39.4, 52)),
        ("30 to 65", (29.5, 65.5), (29.4, 65.6)),
        ("99.8 to 100", (99.75, 100.4), (99.7, 100.6)),
        ("about 600", (550, 576, 650), (549, 651)),
        ("about 0.5", (0.45, 0.55), (0.44, 0.56)),
        ("about 7", (6.5, 7.5), (8.0,)),
        ("< 30", (29.99,), (30.0, 32.3)),
        ("<= 5", (5.0,), (5.01,)),
        ("> 1", (1.01,), (1.0,)),
        (">= 1", (1.0,), (0.99,)),
        ("< 30 ms", (0.0299,), (0.03, 0.0323)),
        ("99.8-100 %", (0.9975, 1.004), (0.997,)),
        ("14 kbit/s", (14.4e3,), (14.6e3,)),
    ],
)  # fmt: skip
def test_a_number_agrees_if_it_rounds_to_the_printed_digits(
    printed: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    assert all(agrees(printed, v) for v in inside)
    assert not any(agrees(printed, v) for v in outside)
    assert not agrees(printed, float("nan"))


@pytest.mark.parametrize("text", ["", "ten", "1 m", "close to 1", "-3", "1.2.3", "1e3"])
def test_what_is_no_printed_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="give digits such as"):
        agrees(text, 1.0)


def test_one_number_that_does_not_agree_is_named_and_makes_a_difference() -> None:
    claim = Claim(
        "p.one", "p", "runs", "(1)", "So it is.", digits=("352", "< 30 ms"), reason="Why."
    )
    good = claim.outcome(compared([352.2, 0.012], {"a": 1}, computed="both"))
    assert good == Outcome("reproduced", "both", "Why.", {"a": 1.0})
    bad = claim.outcome(compared([352.2, (0.012, 0.0323)], computed="both"))
    assert bad == Outcome("differs", "both", "Not as printed: 32.3 for < 30. Why.")
    claim = replace(claim, digits=("1",), reason="")
    assert claim.outcome(compared([2.0])).reason == "Not as printed: 2 for 1."
    claim = replace(claim, digits=("219 889", "2-5 ms", "1.91"))
    shown = claim.outcome(compared([543_940.3, 3e-14, 1.9182])).reason
    assert shown == "Not as printed: 543940 for 219 889, 0 for 2-5, 1.92 for 1.91."


def test_a_bound_does_not_move_with_the_last_bits() -> None:
    found = [bound(v) for v in (0.0, 5e-15, 4e-11, 2e-9, 0.03)]
    assert found == ["1e-9", "1e-9", "1e-9", "1e-8", "1e-1"]
    assert bound(0.999e-7) == bound(1.001e-7) == "1e-6"
