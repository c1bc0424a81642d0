"""The pages of laws keep their word: each has an example of its own, without a refusal, with flows
that differ and a link that they use, and equations that fit the column.
"""

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.laws.written import formula
from tests.scan.cases import of_today

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import equations  # type: ignore[import-not-found]  # noqa: E402
import examples  # type: ignore[import-not-found]  # noqa: E402
import pages as made  # type: ignore[import-not-found]  # noqa: E402
import references  # type: ignore[import-not-found]  # noqa: E402

LAWS = sorted({*sources.__all__, *links.__all__})


def test_every_law_stands_in_one_group() -> None:
    found = [name for names in examples.groups().values() for name in names]
    assert sorted(found) == LAWS
    gone = {n for laws in examples.GROUPS.values() for n in laws} - set(LAWS)
    assert gone == set()


@pytest.mark.parametrize("name", LAWS)
def test_equations_fit_the_column(name: str) -> None:
    law = getattr(fc, name)
    rows = equations.fitted(law)
    assert [row for row in rows if equations.width(row) > equations.COLUMN] == []
    assert len([row for row in rows if row.startswith(r"\dot")]) <= len(law.flow)
    heads = [
        row.split("&=")[0].removeprefix(r"\text{where}\quad").strip()
        for row in rows[len(law.flow) + len(law.out) :]
        if "&=" in row
    ]
    assert len({*heads, *map(formula, law.params)}) == len(heads) + len(law.params)  # no two alike


def test_what_is_wider_than_a_column_is_seen() -> None:
    assert equations.width("a" * 80) == 80 > equations.COLUMN
    assert equations.width(r"\frac{aaaa}{bb} + \mathrm{RTT}_{\max}") == pytest.approx(
        4.4 + 2 + 3 + 0.75 * 3.6
    )
    assert equations.width(r"a \begin{cases} bb & ccc \\ d & e \end{cases} f") == 1 + 9.0 + 1


@pytest.mark.parametrize("name", LAWS)
def test_each_law_has_its_reference(name: str) -> None:
    law = getattr(fc, name)
    assert references.cited(f"{law.ref} {law.about}") or not law.ref


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", of_today(LAWS, 3))
def test_the_example_of_a_law_answers_what_is_asked(name: str) -> None:
    """No refusal: neither of the run nor of the questions, of a third of the laws, others each day;
    `make docs` runs and asks all.
    """
    _, net, until, asks = examples.example_of(getattr(fc, name))
    laws = {spec.law.name for spec in (*net.flows.values(), *net.links.values())}
    assert name in laws
    run = fc.simulate(net, until, samples=400)
    half = float(run.time[-1]) / 2
    rates = run.rate.values
    apart = np.abs(rates[:, 0] - rates[:, 1]).max()
    assert apart > 0.05 * rates.max()
    used = fc.metrics.mean(run.arrival_rate, half) / run.capacity.isel(time=-1)
    assert float(used.min()) > 0.5
    for ask in asks:
        if ask != "means":
            result: Any = eval(examples.QUESTIONS[ask][0], {"fc": fc, "net": net})
            assert "<table" in result._repr_html_()


def test_what_public_functions_return_has_a_page() -> None:
    known = {kind.__name__ for kind in made.RESULTS.values()} | set(dir(fc))
    known |= {"DataArray", "Dataset", "Axes", "Figure", "DataFrame", "Expr"}
    missing = []
    for name in (name for some in made.API.values() for name, _ in made.told(some)):
        doc = inspect.getdoc(eval(f"fc.{name}", {"fc": fc})) or ""
        returned = re.search(r"^Returns\n-+\n(.*)$", doc, re.M)
        words = re.findall(r"\b[A-Z][a-z]+[A-Za-z]*\b", returned[1] if returned else "")
        missing += [(name, word) for word in words if word not in known]
    assert missing == []


def test_pages_are_code_that_parses_and_stand_in_a_list() -> None:
    pages = [p for p in DOCS.glob("**/*.md") if not {"made", "_build"} & set(p.parts)]
    listed = " ".join(p.read_text("utf-8") for p in pages)
    for page in pages:
        text = page.read_text("utf-8")
        for cell in re.findall(r"^```\{code-cell\}\n(.*?)^```", text, flags=re.M | re.S):
            ast.parse("\n".join(x for x in cell.split("\n") if not x.startswith(":")))
        if page.name != "index.md":
            assert page.relative_to(DOCS).with_suffix("").as_posix() in listed


def test_the_numbers_of_the_front_page_are_counted() -> None:
    named = set(re.findall(r"\{\{ (\w+) \}\}", (DOCS / "index.md").read_text("utf-8")))
    counts = made.counts()
    assert named == {*counts}
    assert counts["laws"] == str(len(LAWS))
    assert all(number.isdigit() for number in counts.values())


def test_the_gallery_has_twenty_pictures() -> None:
    text = (DOCS / "gallery.md").read_text("utf-8")
    sections = text.split("\n## ")[1:]
    assert len(sections) == 20
    assert all(section.count("```{code-cell}") == 1 for section in sections)
