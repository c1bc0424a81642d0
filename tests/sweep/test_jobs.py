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
from fluidcc.sweep.jobs import LEAST, LONGEST, SHARES, SPAN, Chunks, Jobs, work_in_a_job
from fluidcc.sweep.task import Piece


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.integers(1, 200), st.integers(1, 30), st.sets(st.integers(0, 12)), st.integers(1, 4), st.floats(0.0, 1.0),
    st.booleans(), st.lists(st.floats(1e-4, 1.0), max_size=20),
)  # fmt: skip
def test_every_point_once(
    size: int, chunk: int, done: set[int], workers: int, cost: float, fixed: bool, costs: list[float]
) -> None:
    count = -(-size // chunk)
    done = {n for n in done if n < count}
    jobs = Jobs(range(size), chunk, done, workers=workers, cost=cost, fixed=fixed)
    wanted = [p for p in range(size) if p // chunk not in done]
    assert jobs.left == len(wanted)
    seen: list[int] = []
    for k, (first, points) in enumerate(jobs):
        assert points[0] == first
        np.testing.assert_array_equal(np.diff(points), 1)
        if fixed:
            assert len(points) == min(chunk, size - first)
        seen += list(points)
        if k < len(costs):
            jobs.learn(costs[k] * len(points), len(points))
    assert seen == wanted
    assert jobs.left == 0


def test_jobs_shrink_toward_the_end() -> None:
    """So that workers who take the next job when they are through end at the same time, within a small job."""
    cost, workers = SPAN / 50, 2
    jobs = Jobs(range(1000), 1000, workers=workers, cost=cost)
    sizes, left = [], 1000
    for _, points in jobs:
        assert len(points) <= max(50, left / (SHARES * workers))
        sizes.append(len(points))
        left -= sizes[-1]
    assert max(sizes) == 50
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] * cost <= LEAST
    ends = [0.0] * workers
    for n in sizes:
        ends[int(np.argmin(ends))] += n * cost
    assert max(ends) - min(ends) <= 2 * LEAST


def test_what_points_cost_is_learned_and_dear_ones_go_out_alone() -> None:
    jobs = Jobs(range(1000), 1000, workers=2)
    assert len(next(jobs)[1]) == 1  # nothing is known
    jobs.learn(SPAN / 50, 1)
    assert len(next(jobs)[1]) == 50
    jobs.learn(4 * 50 * SPAN / 50, 50)  # four times as dear: by one job, twice
    assert len(next(jobs)[1]) == 25
    dear = Jobs(range(100), 100, workers=2, cost=10.0)
    assert [len(points) for _, points in dear] == [1] * 100


def test_a_long_sweep_on_a_cluster_has_longer_jobs() -> None:
    assert work_in_a_job(10.0, 2, LONGEST) == SPAN
    assert work_in_a_job(1e5, 500, LONGEST) == pytest.approx(2.0)
    assert work_in_a_job(1e9, 500, LONGEST) == LONGEST
    assert work_in_a_job(1e9, 500) == SPAN


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(1, 60), st.integers(1, 20), st.lists(st.integers(1, 30), min_size=1), st.randoms())
def test_chunks_are_put_together_from_jobs_in_any_order(size: int, chunk: int, sizes: list[int], random: Any) -> None:
    ends = sorted({min(e, size) for e in np.cumsum(sizes).tolist()} | {size})
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    random.shuffle(spans)
    chunks = Chunks(chunk, size)
    found: dict[int, Piece] = {}
    for first, last in spans:
        rows = np.arange(float(first), last)
        errors = {k: f"{first + k}" for k in range(last - first) if (first + k) % 3 == 0}
        for number, piece in chunks.add(first, Piece({"a": rows}, errors, 1.0 * len(rows))):
            assert number not in found
            found[number] = piece
    assert sorted(found) == list(range(-(-size // chunk)))
    for number, piece in found.items():
        rows = np.arange(number * chunk, min((number + 1) * chunk, size))
        np.testing.assert_array_equal(piece.values["a"], rows)
        assert piece.errors == {k: f"{p}" for k, p in enumerate(rows) if p % 3 == 0}
        assert piece.seconds == pytest.approx(len(rows))


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
