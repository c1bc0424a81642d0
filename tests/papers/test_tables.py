"""Tables of claims: rows, filters and renderings, and what a failing check leaves behind."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import UnknownName
from fluidcc.papers import model, tables


def _row(name: str, outcome: model.Outcome, **changes: object) -> tables.Row:
    claim = model.Claim(f"p.{name}", "p", "runs", "(1)", "a < b | c_d", "1 * 2", **changes)  # type: ignore[arg-type]
    return tables.Row(claim, outcome)


TABLE = tables.Table(
    (
        _row("one", model.Outcome("proved", "yes")),
        _row(
            "two",
            model.Outcome("differs", "by 3", "because\nof <this>", {"v": np.float64(3)}),
            erratum=True,
        ),
    )
)


def test_rows_are_found_by_position_id_and_name() -> None:
    assert TABLE[1] is TABLE["p.two"] is TABLE["two"]
    assert [r.id for r in TABLE[:1]] == ["p.one"]
    assert TABLE["two"].values == {"v": 3.0}
    assert type(TABLE["two"].values["v"]) is float
    with pytest.raises(UnknownName, match=r"the ids are p\.one, p\.two"):
        TABLE["three"]


def test_filters_combine() -> None:
    assert [r.id for r in TABLE.filter(verdict="proved")] == ["p.one"]
    assert [
        r.id for r in TABLE.filter(lambda r: r.computed == "by 3", erratum=True, place="1")
    ] == ["p.two"]
    assert len(TABLE.filter(place="(2)")) == 0


def test_it_counts() -> None:
    assert TABLE.counts() == {"proved": 1, "differs": 1}
    assert TABLE.summary() == "2 claims: 1 proved, 1 differs"
    assert repr(TABLE[:0]) == "0 claims: none"
    assert "p.two  (1)  differs  by 3" in repr(TABLE)


def test_what_no_paper_has_is_counted_apart() -> None:
    more = tables.Table((*TABLE, _row("three", model.Outcome("reproduced", "3"), own=True)))
    assert more.summary() == ("2 claims: 1 proved, 1 differs; 1 of the library's own: 1 reproduced")
    assert [r.id for r in more.filter(own=True)] == ["p.three"]
    assert {c.published for c in model.claims_of() if c.own} == {"not in the paper"}


def test_markdown_has_one_line_a_row_and_as_many_cells() -> None:
    lines = TABLE.to_markdown().splitlines()
    assert len(lines) == 4
    cells = [line.replace("\\|", "").count("|") for line in lines]
    assert len(set(cells)) == 1
    assert "a \\< b \\| c\\_d" in lines[2]
    assert "because of \\<this>" in lines[3]


def test_pandas_has_a_row_for_each_claim() -> None:
    frame = TABLE.to_pandas()
    assert list(frame.index) == ["p.one", "p.two"]
    assert frame.loc["p.two", ["verdict", "computed"]].tolist() == ["differs", "by 3"]


def test_html_escapes_what_papers_print() -> None:
    page = TABLE._repr_html_()
    assert "a &lt; b" in page
    assert "of &lt;this&gt;" in page
    assert page.count("<tr") == 3


def test_one_place_alone_is_tested() -> None:
    only = fc.claims.table("ldcc", only="(16)", progress=False)
    assert [r.id for r in only] == ["ldcc.utility"]
    assert [r.id for r in fc.claims.table(only="ldcc.utility", progress=False)] == ["ldcc.utility"]
    with pytest.raises(UnknownName, match=r"no claim is about .\(99\).; did you mean"):
        fc.claims.table("ldcc", only="(99)")


def test_a_check_that_fails_says_which_claim_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(claim: model.Claim) -> model.Outcome:
        raise ZeroDivisionError("oops")

    bad = model.Claim("p.bad", "p", "runs", "(7)", "This.")
    monkeypatch.setattr(model.Claim, "check", broken)
    monkeypatch.setattr(tables, "claims_of", lambda paper: [bad])
    with pytest.raises(ZeroDivisionError) as caught:
        tables.table(progress=False)
    assert caught.value.__notes__ == ["while testing the claim p.bad, (7): This."]
