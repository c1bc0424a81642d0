"""Rows that are put together are the rows that would be built, and few are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from fluidcc.errors import FluidccError, InvalidInput
from fluidcc.sweep.grid import make_grid
from fluidcc.sweep.rows import Rows

GRID = make_grid({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0, 7.0], "c": [8.0, 9.0]}, {})
Row = Callable[[Mapping[str, Any]], Any]


def apart(v: Mapping[str, Any]) -> Any:
    return "one", np.array([v["a"], 1.0, v["b"] ** 2, v["b"], 2.0 * v["c"], np.nan])


def shared(v: Mapping[str, Any]) -> Any:
    return "one", np.array([v["a"], v["b"] / v["a"], v["c"]])


def hidden(v: Mapping[str, Any]) -> Any:
    """A place that depends on two axes, though not on either alone at the first point."""
    return "one", np.array([v["a"], v["b"], (v["a"] - 1) * (v["b"] - 4), v["c"]])


def structural(v: Mapping[str, Any]) -> Any:
    return ("odd" if v["b"] % 2 else "even"), np.array([v["a"], v["b"], v["c"]])[: 3 - int(v["b"] % 2)]


def failing(v: Mapping[str, Any]) -> Any:
    if v["b"] == 6.0:
        raise InvalidInput("six")
    return "one", np.array([v["a"], v["b"], v["c"]])


CASES = [(apart, 9 - 2 + 4), (shared, 12 + 2 + 4), (hidden, 24), (structural, 24), (failing, 24)]


@pytest.mark.parametrize(("build", "most"), CASES, ids=[c[0].__name__ for c in CASES])
def test_rows_are_those_that_would_be_built(build: Row, most: int) -> None:
    calls: list[Mapping[str, Any]] = []

    def counted(values: Mapping[str, Any]) -> Any:
        calls.append(values)
        return build(values)

    rows = Rows(GRID, counted)
    points = np.arange(GRID.size)[::-1].copy()
    parts, errors = rows.parts(points)
    assert len(calls) <= most
    seen = set(errors)
    for part in parts:
        for member, row in zip(part.members, part.rows, strict=True):
            key, wanted = build(GRID.point(int(points[member])))
            assert part.key == key
            np.testing.assert_array_equal(row, wanted)
            seen.add(int(member))
    assert seen == set(range(GRID.size))
    assert all("six" in str(e) and GRID.point(int(points[k]))["b"] == 6.0 for k, e in errors.items())
    assert len(errors) == (6 if build is failing else 0)


def test_nothing_that_can_be_built() -> None:
    def never(values: Mapping[str, Any]) -> Any:
        raise FluidccError("never")

    parts, errors = Rows(GRID, never).parts(np.array([3, 4]))
    assert parts == []
    assert [str(e) for e in errors.values()] == ["never", "never"]
