"""What goes out together: every chunk once, in sizes that follow what points have cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.sweep.jobs import LEAST, SENDING, SHARES, SPAN, Chunks, Jobs, work_in_a_job
from fluidcc.sweep.running import ENOUGH, _cost
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


@pytest.mark.parametrize("workers", [1, 2, 50, 500])
@pytest.mark.parametrize("seconds", [0.3, 10.0, 1e3, 1e5])
def test_a_scheduler_keeps_up_with_a_long_sweep(seconds: float, workers: int) -> None:
    """Half of the time of a sweep is enough to send its jobs, unless there would be too few of them for all to work."""
    assert work_in_a_job(seconds, workers) == (SPAN, LEAST)
    cost = 1e-3 * seconds / workers
    most, least = work_in_a_job(seconds, workers, True)
    assert most >= SPAN
    assert LEAST <= least <= most
    size = round(seconds / cost)
    jobs = list(Jobs(range(size), size, workers=workers, cost=cost, span=most, least=least))
    busy = len(jobs) * SENDING
    if seconds / workers >= 100.0:
        assert busy <= 0.55 * seconds / workers
        assert len(jobs) >= 4 * workers
    ends = np.zeros(min(workers, 50))
    if len(ends) == workers:
        for _, points in jobs:
            ends[np.argmin(ends)] += len(points) * cost
        assert ends.max() <= seconds / workers + 2 * max(least, cost)


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
        free = compiled = False

        def evaluate(self, points: Any) -> Piece:
            self.looks += 1
            return Piece({}, {}, 1e-4 * len(points) + hiccup * (self.looks == 2))

    cost = _cost(Fake(), range(10_000))  # type: ignore[arg-type]
    assert cost == pytest.approx(1e-4)
    assert cost * 10_000 > ENOUGH


@pytest.mark.parametrize(("each", "call"), [(1e-4, 0.05), (0.02, 0.05), (1e-6, 0.001)])
def test_what_a_call_costs_is_not_what_a_point_costs(each: float, call: float) -> None:
    class Fake:
        free = compiled = True

        def evaluate(self, points: Any) -> Piece:
            return Piece({}, {}, call + each * len(points))

    assert _cost(Fake(), range(1_000_000)) < 2.5 * each  # type: ignore[arg-type]


@pytest.mark.parametrize(("compiled", "looks"), [(True, 2), (False, 1)])
def test_loading_code_is_no_cost_of_a_point(compiled: bool, looks: int) -> None:
    """A dear first look is repeated where code was loaded in it; elsewhere the probe of the first point has done so."""

    class Fake:
        free = False
        seen = 0

        def evaluate(self, points: Any) -> Piece:
            self.seen += 1
            return Piece({}, {}, 1.0 + 5.0 * (self.seen == 1 and compiled))

    fake = Fake()
    fake.compiled = compiled  # type: ignore[attr-defined]
    assert _cost(fake, range(1000)) == 1.0  # type: ignore[arg-type]
    assert fake.seen == looks
