"""Calls whose arguments do not fit: one sentence, with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

import fluidcc as fc
from fluidcc.base.arguments import explained, whole
from fluidcc.base.errors import InvalidInput

fc_: Any = fc  # the wrong calls below are meant


def net() -> Any:
    return fc.Network()


CALLS: dict[str, Any] = {
    r"link\(\) lacks capacity; give capacity \(float, str or list of pairs\)": (
        lambda: net().link("a", fc.DropTail)
    ),
    r"link\(\) lacks law and capacity; give law \(Link\) and": lambda: net().link("a"),
    r"link\(\) has no argument 'capcity'; did you mean 'capacity'\?": (
        lambda: net().link("a", fc.DropTail, capcity=1)
    ),
    r"link\(\) takes name, law by position, and by name capacity,.*; 3e6 is": (
        lambda: net().link("a", fc.DropTail, "3e6")
    ),
    r"flow\(\) lacks route; give route \(sequence of str\)": lambda: net().flow("f", fc.LDCC),
    r"flow\(\) has law twice": lambda: net().flow("f", fc.LDCC, law=fc.LDCC, route=["l"]),
    r"dumbbell\(\) has no argument 'zzz'; it takes flows, link, rtt": (
        lambda: fc_.dumbbell([fc.LDCC], {}, zzz=1)
    ),
    r"parking_lot\(\) lacks cross and link": lambda: fc_.parking_lot(0),
    r"link is 3; give arguments such as": lambda: fc_.parking_lot([fc.LDCC], [fc.LDCC], 3),
    r"LDCC takes parameters by name, not 0.4 by position; it has w, beta": lambda: fc_.LDCC(0.4),
    r"the network has no flows, so there is nothing to share; add one": lambda: fc.num.solve(net()),
    r"at is nan; give a time in seconds": (
        lambda: fc.num.solve(fc.dumbbell([fc.LDCC], {"capacity": 1e6}), at=float("nan"))
    ),
}


@pytest.mark.parametrize("text", CALLS)
def test_wrong_calls_are_answered_by_a_remedy(text: str) -> None:
    with pytest.raises(InvalidInput, match=text.replace("3e6 is", "'3e6' is")) as caught:
        CALLS[text]()
    assert str(caught.value).count(". ") == 0  # one sentence


@pytest.mark.parametrize("text", [text for text in CALLS if "lacks" in text])
def test_a_missing_argument_is_a_type_error_as_in_python(text: str) -> None:
    with pytest.raises(TypeError, match=text):
        CALLS[text]()


def test_a_sweep_of_a_network_without_a_measure_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="the measure is missing; give a name"):
        fc.sweep(fc.dumbbell([fc.LDCC], {"capacity": 1e6}), {"beta": [0.1]})


def test_errors_from_within_stay_as_they_are() -> None:
    @explained
    def f(x: Any) -> Any:
        return x + "text"

    assert f("a ") == "a text"
    with pytest.raises(TypeError, match="unsupported operand|can only concatenate"):
        f(1)


def test_times_are_read_from_text() -> None:
    net = fc.dumbbell({"a": fc.LDCC, "b": {"law": fc.LDCC, "start": 5}}, {"capacity": 3e6})
    assert fc.num.solve(net, at="4000 ms").rate.values.tolist() == pytest.approx([3e6, 0])
    assert fc.num.solve(net, at="6 s").rate.values.tolist() == pytest.approx([1.5e6, 1.5e6])


def test_the_ends_of_a_range_belong_to_it() -> None:
    assert [whole(n, "n", least=1, most=3) for n in (1, 3)] == [1, 3]
    for n in (0, 4):
        with pytest.raises(InvalidInput, match="from 1 to 3"):
            whole(n, "n", least=1, most=3)
