"""A Let prints as its name and behaves as its definition."""

import copy
import pickle

import pytest
from sympy import Symbol, latex, sin, symbols

from fluidcc.laws.checks import dim_of_text
from fluidcc.symbols import (
    LINK_INPUTS,
    LINK_OUTPUTS,
    OUTPUT_MEANING,
    OUTPUT_UNITS,
    RTT,
    SIGNAL_MEANING,
    SIGNAL_UNITS,
    SOURCE_INPUTS,
    SOURCE_OUTPUTS,
    Let,
    e,
    e_b,
    edot,
    imported,
    plain,
    q_max,
    unfold,
    x_tau,
)

a, b = symbols("a b", positive=True)


def test_a_let_prints_as_its_name() -> None:
    v = Let("v", sin(a) / RTT)
    assert str(v + 1) == "v + 1"
    assert latex(v) == "v"
    assert latex(RTT) == r"\mathrm{RTT}"


def test_derivatives_go_through_to_the_definition() -> None:
    v = Let("v", a / RTT)
    assert unfold(v.diff(e)) == -a / (e + e_b) ** 2
    assert unfold((v**2).diff(e, 2)) == 6 * a**2 / (e + e_b) ** 4
    assert v.diff(b) == 0


@pytest.mark.parametrize("replace", ["subs", "xreplace"])
def test_substitution_goes_through_to_the_definition(replace: str) -> None:
    v = Let("v", a / RTT)
    assert unfold(getattr(v + b, replace)({e: b})) == a / (b + e_b) + b
    assert getattr(v + b, replace)({v: b}) == 2 * b
    assert getattr(v, replace)({b: a}) is v


def test_free_symbols_are_those_of_the_definition() -> None:
    assert (Let("v", a / RTT) * b).free_symbols == {a, b, e, e_b}


def test_equality_is_by_name_and_definition() -> None:
    assert Let("v", a) == Let("v", a)
    assert hash(Let("v", a)) == hash(Let("v", a))
    assert Let("v", a) != Let("v", b)
    assert Let("v", a) != Let("u", a)
    assert Let("v", a) != Symbol("v", positive=True)
    assert Let("v", a) - Let("v", b) != 0


def test_assumptions_are_those_of_the_definition() -> None:
    assert Let("v", a).is_positive
    assert RTT.is_nonnegative
    assert Let("v", edot).is_real
    assert Let("v", edot).is_nonnegative is None


@pytest.mark.parametrize("f", [RTT, Let("v", a / RTT) ** 2 + RTT])
def test_pickle_and_copy_keep_the_definition(f: Let) -> None:
    for g in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), copy.copy(f)):
        assert g == f
        assert hash(g) == hash(f)
        assert unfold(g) == unfold(f)


def test_unfold_reaches_the_bottom() -> None:
    assert unfold(Let("u", Let("v", Let("w", a) + b) * RTT)) == (a + b) * (e + e_b)


def test_plain_names() -> None:
    assert [plain(s) for s in (q_max, x_tau, edot, RTT, a)] == [
        "q_max",
        "x_tau",
        "edot",
        "RTT",
        "a",
    ]


def test_every_signal_has_a_unit() -> None:
    assert {*SOURCE_INPUTS, *LINK_INPUTS} == set(SIGNAL_UNITS)


def test_all_that_laws_hear_and_say_has_a_meaning_a_unit_and_a_name_to_import() -> None:
    for s in (*SOURCE_INPUTS, *LINK_INPUTS, RTT):
        assert s is RTT or (SIGNAL_MEANING[s] and dim_of_text(SIGNAL_UNITS[s]))
        space: dict[str, object] = {}
        line, _, last = imported(s).partition("; ")
        exec(line, space)
        assert eval(last or line.split()[-1], space) is s
    assert {*OUTPUT_MEANING} == {*SOURCE_OUTPUTS, *LINK_OUTPUTS} >= {*OUTPUT_UNITS}
