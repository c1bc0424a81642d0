"""Claims: their registry, their verdicts, and the step from proofs to verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from sympy import Eq, Lt, symbols

from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.laws.prove import Verdict
from fluidcc.papers import model

x, y = symbols("x y", positive=True)


def test_a_proof_makes_a_proved_claim() -> None:
    good = model.from_proofs(
        model.proof(x + y > 0),
        model.proof(Eq((x + y) ** 2, x**2 + 2 * x * y + y**2)),
        computed="ok",
    )
    assert (good.verdict, good.computed) == ("proved", "ok")


def test_one_refuted_proof_refutes_the_claim_with_its_counterexample() -> None:
    bad = model.from_proofs(model.proof(x + y > 0), model.proof(x > y), computed="ok")
    assert bad.verdict == "refuted"
    assert "x = " in bad.reason
    assert "y = " in bad.reason


def test_one_part_that_is_only_checked_keeps_the_claim_from_being_proved() -> None:
    whole = model.proof(x + y > 0)
    assert whole.status == "proved"
    part = Verdict("", x + 1 > 0, "checked", "at random points")
    for parts in ((part,), (whole, part), (part, whole), (whole, part, whole)):
        found = model.from_proofs(*parts, computed="ok")
        assert (found.verdict, found.reason) == (
            "reproduced",
            "checked to 50 digits at random points",
        )


def test_what_cannot_be_decided_is_said() -> None:
    with pytest.raises(model.Undecided):
        model.proof(x > y, where=[Lt(x, 0, evaluate=False)])
    with pytest.raises(model.Undecided):
        model.from_proofs(Verdict("", x > y, "undecided", "no branch"), computed="ok")


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


def test_every_room_with_claims_is_listed() -> None:
    folder = Path(model.__file__).parent
    rooms = {(p.parent.name, p.stem) for p in folder.glob("*/*.py") if "@claim(" in p.read_text()}
    assert rooms == {(paper, room) for paper, rooms in model._ROOMS.items() for room in rooms}
