"""Calls whose arguments do not fit: one sentence, with the remedy."""

from typing import Any

import pytest

from fluidcc.base.arguments import explained, whole
from fluidcc.base.errors import InvalidInput


def test_errors_from_within_stay_as_they_are() -> None:
    @explained
    def f(x: Any) -> Any:
        return x + "text"

    assert f("a ") == "a text"
    with pytest.raises(TypeError, match="unsupported operand|can only concatenate"):
        f(1)


def test_the_ends_of_a_range_belong_to_it() -> None:
    assert [whole(n, "n", least=1, most=3) for n in (1, 3)] == [1, 3]
    for n in (0, 4):
        with pytest.raises(InvalidInput, match="from 1 to 3"):
            whole(n, "n", least=1, most=3)
