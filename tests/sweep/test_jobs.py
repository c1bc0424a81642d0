"""What goes out together: every chunk once, in sizes that follow what points have cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.sweep.api import ENOUGH, _cost
from fluidcc.sweep.jobs import SHARES, SPAN, Jobs, split
from fluidcc.sweep.task import Piece


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.integers(1, 200), st.integers(1, 30), st.sets(st.integers(0, 12)), st.integers(1, 4),
    st.lists(st.floats(1e-4, 1.0), max_size=20),
)  # fmt: skip
def test_every_point_once(size: int, chunk: int, done: set[int], workers: int, costs: list[float]) -> None:
    count = -(-size // chunk)
    done = {n for n in done if n < count}
    jobs = Jobs(range(size), chunk, done, workers=workers)
    seen: list[int] = []
    for k, (first, points) in enumerate(jobs):
        assert points[0] == first * chunk
        np.testing.assert_array_equal(np.diff(points), 1)
        seen += points.tolist()
        if k < len(costs):
            jobs.learn(costs[k] * len(points), len(points))
    assert seen == [p for p in range(size) if p // chunk not in done]


def test_cheap_points_go_out_together_and_the_last_ones_apart() -> None:
    jobs = Jobs(range(1000), 1, workers=2)
    sizes = [len(next(jobs)[1])]
    jobs.learn(SPAN / 50, 1)  # fifty of them make a job
    sizes += [len(points) for _, points in jobs]
    assert sizes[0] == 1
    assert max(sizes) == 50
    assert sizes[-1] == 1
    left = 1000
    for n in sizes:
        assert n <= max(1, -(-left // (2 * SHARES)))
        left -= n
    dear = Jobs(range(100), 4, workers=2)
    dear.learn(10.0, 4)
    assert {len(points) for _, points in dear} == {4}
    fixed = Jobs(range(100), 4, workers=2, fixed=True)
    fixed.learn(1e-6, 4)
    assert {len(points) for _, points in fixed} == {4}


def test_a_job_is_kept_by_chunk() -> None:
    piece = Piece({"a": np.arange(7.0)}, {0: "first", 5: "sixth"}, 7.0)
    parts = list(split(3, piece, 3))
    assert [n for n, _ in parts] == [3, 4, 5]
    assert [p.values["a"].tolist() for _, p in parts] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [p.errors for _, p in parts] == [{0: "first"}, {2: "sixth"}, {}]
    assert [p.seconds for _, p in parts] == [3.0, 3.0, 1.0]


def test_a_store_that_was_begun_with_small_chunks_ends_with_large_jobs(tmp_path: Path) -> None:
    grid = {"x": np.arange(500.0)}

    def measured(p: Any) -> float:
        return float(p["x"]) * 2

    first = fc.sweep(measured, grid, executor="serial", store=tmp_path / "s", chunk=5)
    for n in range(0, 100, 3):
        (tmp_path / "s" / "chunks" / f"{n}.json").unlink()
    again = fc.sweep(measured, grid, executor="threads", workers=2, store=tmp_path / "s")
    assert again.value.values.tobytes() == first.value.values.tobytes()
    assert len(list((tmp_path / "s" / "chunks").glob("[0-9]*.json"))) == 100


@pytest.mark.parametrize("hiccup", [0.0, 0.3])
def test_a_cost_is_not_that_of_another_program(hiccup: float) -> None:
    """One slow look out of several does not make points dear."""

    class Fake:
        looks = 0
        free = False

        def evaluate(self, points: Any) -> Piece:
            self.looks += 1
            return Piece({}, {}, 1e-4 * len(points) + hiccup * (self.looks == 2))

    cost = _cost(Fake(), range(10_000))  # type: ignore[arg-type]
    assert cost == pytest.approx(1e-4)
    assert cost * 10_000 > ENOUGH


@pytest.mark.parametrize(("each", "call"), [(1e-4, 0.05), (0.02, 0.05), (1e-6, 0.001)])
def test_what_a_call_costs_is_not_what_a_point_costs(each: float, call: float) -> None:
    class Fake:
        free = True

        def evaluate(self, points: Any) -> Piece:
            return Piece({}, {}, call + each * len(points))

    assert _cost(Fake(), range(1_000_000)) < 2.5 * each  # type: ignore[arg-type]
