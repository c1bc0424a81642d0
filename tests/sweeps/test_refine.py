"""A refined sweep has every verdict of the full one, for a small part of its cost."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.sweeps import Refine


def disc(p: Any) -> dict[str, Any]:
    """Inside an ellipse, and the distance from its boundary."""
    inside = 1.0 - (p["x"] - 0.3) ** 2 / 0.25 - (p["y"] + 0.1) ** 2 / 0.1
    return {"inside": bool(inside > 0), "margin": inside}


def grid(n: int) -> dict[str, Any]:
    return {"x": np.linspace(-1, 1, n), "y": np.linspace(-1, 1, n)}


def test_a_200_by_200_chart_costs_a_few_thousand_verdicts() -> None:
    full = fc.sweep(disc, grid(200), executor="serial")
    part = fc.sweep(disc, grid(200), refine="inside", executor="serial")
    assert part.inside.dtype == bool
    np.testing.assert_array_equal(part.inside, full.inside)
    assert part.attrs["measured"] == int(part.measured.sum()) < 3000
    there = part.measured.values
    np.testing.assert_array_equal(part.margin.values[there], full.margin.values[there])
    assert np.isnan(part.margin.values[~part.measured.values]).all()


@pytest.mark.parametrize("shape", [(2, 2), (3, 17), (1, 30), (9, 17, 9)])
@pytest.mark.parametrize("step", [1, 4, 8])
def test_any_shape(shape: tuple[int, ...], step: int) -> None:
    axes = {k: np.linspace(-1, 1, n) for k, n in zip("xyz", shape, strict=False)}

    def half(p: Any) -> dict[str, Any]:
        return {"yes": bool(p["y"] > 0.21 * p["x"] + 0.05 + p.get("z", 0.0) ** 2)}

    part = fc.sweep(half, axes, refine=Refine("yes", step), executor="serial")
    np.testing.assert_array_equal(part.yes, fc.sweep(half, axes, executor="serial").yes)
    assert part.attrs["measured"] < np.prod(shape) or step == 1 or len(shape) == 2


def test_the_boundary_lies_between_measured_points() -> None:
    """A thin tongue is followed out of the cells in which it was first seen."""
    tongue = lambda p: {"yes": bool(abs(p["y"] - 0.4 * np.sin(3 * p["x"])) < 0.03)}  # noqa: E731
    part = fc.sweep(tongue, grid(101), refine="yes", executor="serial")
    yes, measured = part.yes.values, part.measured.values
    for axis in (0, 1):
        a, b = (np.moveaxis(yes, axis, 0)[s] for s in (slice(None, -1), slice(1, None)))
        c, d = (np.moveaxis(measured, axis, 0)[s] for s in (slice(None, -1), slice(1, None)))
        assert np.all((a == b) | (c & d))


seen: Counter[tuple[float, float]] = Counter()


def watched(p: Any) -> dict[str, Any]:
    seen[p["x"], p["y"]] += 1
    return disc(p)


def test_no_point_is_measured_twice_and_a_store_resumes(tmp_path: Path) -> None:
    seen.clear()
    one = fc.sweep(watched, grid(40), refine="inside", executor="serial", store=tmp_path / "s")
    again = {k for k, n in seen.items() if n > 1}
    assert len(again) < 400, "only what was tried to learn the form of results and their cost"
    seen.clear()
    two = fc.sweep(watched, grid(40), refine="inside", executor="serial", store=tmp_path / "s")
    assert not seen
    assert two.inside.equals(one.inside)
    assert two.margin.equals(one.margin)


@pytest.mark.filterwarnings("ignore:.* points failed")
def test_failed_points_do_not_decide() -> None:
    """Not even where all corners of a coarse cell fail; one fails of the cell with the island."""

    def measured(p: Any) -> dict[str, Any]:
        if abs(p["x"]) < 0.35 and abs(p["y"]) < 0.35:
            raise ValueError("hole")
        return {"yes": bool(p["y"] > 0 or np.hypot(p["x"] + 0.4, p["y"] + 0.4) < 0.05)}

    part = fc.sweep(measured, grid(21), refine=Refine("yes", 4), executor="serial")
    full = fc.sweep(measured, grid(21), executor="serial")
    np.testing.assert_array_equal(part.yes, full.yes)
    np.testing.assert_array_equal(part.error, full.error)


@pytest.mark.parametrize(
    ("refine", "says"),
    [("insid", "'insid', which is not measured; did you mean 'inside'"),
     (("inside", "margi"), "'margi', which is not measured; did you mean 'margin'"),
     ("margin", "not one yes or no"), ([], "give the name of a measure"),
     (3, "give the name of a measure"), (("inside", 3), "give the name of a measure")],
)  # fmt: skip
def test_mistakes_are_named(refine: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        fc.sweep(disc, grid(5), refine=refine, executor="serial")
    with pytest.raises(InvalidInput, match="power of two"):
        Refine("inside", 3)


def test_several_verdicts_are_followed_at_once(tmp_path: Path) -> None:
    def two(p: Any) -> dict[str, Any]:
        return {**disc(p), "above": bool(p["y"] > 0.5 * p["x"] + 0.4)}

    full = fc.sweep(two, grid(65), executor="serial")
    both: Any = {"refine": ["inside", "above"], "store": tmp_path / "s"}
    part = fc.sweep(two, grid(65), executor="serial", **both)
    np.testing.assert_array_equal(part.inside, full.inside)
    np.testing.assert_array_equal(part.above, full.above)
    assert part.attrs["measured"] < 65 * 65 / 3
