"""What people read of a law: `help`, the signature that editors show, and a line in lists."""

import inspect
import pydoc

import pytest
from sympy import exp, log, symbols
from sympy.codegen.cfunctions import expm1, log1p

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.laws import Law
from fluidcc.laws.written import formula

LIBRARY = [getattr(room, name) for room in (sources, links) for name in room.__all__]


@pytest.mark.parametrize("law", LIBRARY, ids=lambda law: law.name)
def test_every_law_says_what_it_does_and_what_its_parameters_are(law: Law) -> None:
    assert law.about.endswith(".")
    assert len(law.about) <= 90
    assert [str(s) for s in (*law.params, *law.states) if s not in law.meaning] == []


def test_no_law_has_the_line_of_another() -> None:
    assert len({law.about for law in LIBRARY}) == len(LIBRARY)


def test_help_tells_of_the_law_and_not_of_its_class() -> None:
    text = pydoc.plain(pydoc.render_doc(fc.LDCC(eta=0.2)))
    assert "dx/dt = " in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "T 0.1 s one-way delay above which there is a penalty" in rows
    assert "eta 0.2 gain, over the round trip" in rows
    assert "e s one-way delay of the path" in rows
    assert "LDCC, equations (15)-(20)" in text
    assert "Time derivative of each state" not in text
    assert (fc.Source.__doc__ or "").startswith("A sender: states")
    assert (fc.Link.__doc__ or "").startswith("A queue or price")


def test_jumps_ticks_and_primes_are_told_apart() -> None:
    assert "w <- w*beta  when pi > 0, at most once per hold*RTT" in (fc.HTCP.__doc__ or "")
    assert "dw/dt = w\N{PRIME}\n" in (fc.HTCP.__doc__ or "")
    assert "every T_s" in (fc.SampledLDCC.__doc__ or "")


def test_editors_offer_the_parameters_of_a_law() -> None:
    offered = inspect.signature(fc.LDCC).parameters
    assert {name: p.default for name, p in offered.items()} == {
        "w": 20e3, "beta": 0.1, "T": 0.1, "eta": 0.4
    }  # fmt: skip
    assert all(p.kind is p.KEYWORD_ONLY for p in offered.values())
    assert "flow" in inspect.signature(fc.Source).parameters


def test_a_law_of_ones_own_says_what_it_was_told() -> None:
    x, g = symbols("x g", positive=True)
    law = fc.Source(
        "Mine", {x: g}, {"rate": x}, params={g: 1}, units={x: "bit/s", g: "bit/s^2"},
        initial={x: 1}, about="It grows.", meaning={g: "how fast"},
    )  # fmt: skip
    assert (law.__doc__ or "").startswith("It grows.\n")
    assert "how fast" in (law.__doc__ or "")
    with pytest.raises(fc.errors.LawError, match="meaning is 3; give a mapping"):
        fc.Source("Mine", {}, {"rate": g}, meaning=3)  # type: ignore[arg-type]


def test_words_stand_upright_and_sums_in_brackets() -> None:
    text = fc.FAST._repr_latex_()
    assert r"\mathrm{trickle} \, w" in text
    named = fc.symbols.x_tau / fc.Let(r"1 + \dot{e}", fc.symbols.edot)
    assert formula(named) == r"\frac{x_{\tau}}{\left(1 + \dot{e}\right)}"
    assert r"R_{\mathrm{max}}" in fc.NADA._repr_latex_()


def test_functions_of_small_numbers_are_written_as_people_do() -> None:
    n, p = symbols("n p", positive=True)
    assert formula(-expm1(n * log1p(-p))) == r"1 - \left(1 - p\right)^{n}"
    assert formula(exp(n * log(1 - p))) == r"\left(1 - p\right)^{n}"
    assert formula(expm1(p) / n) == formula((exp(p) - 1) / n)
