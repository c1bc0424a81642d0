"""What goes out together: every chunk once, in sizes that follow what points have cost."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.sweeps.chunk import Piece
from fluidcc.sweeps.jobs import FIRST, LEAST, SENDING, SHARES, SPAN, Chunks, Job, Jobs, work_in_a_job


def result(job: Job, each: float, most: int | None = None) -> Piece:
    """What a worker sends back, of whose points each takes so long; of the first ones only if it is told to end."""
    many = max(1, round(job.seconds / each)) if job.seconds < math.inf else len(job.points)
    count = min(len(job.points), many, most or len(job.points))
    return Piece({"a": np.zeros(count)}, {}, each * count)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.integers(1, 200), st.integers(1, 30), st.sets(st.integers(0, 12)), st.integers(1, 4), st.floats(0.0, 1.0),
    st.booleans(), st.lists(st.tuples(st.floats(1e-4, 1.0), st.integers(1, 300)), max_size=20), st.randoms(),
)  # fmt: skip
def test_every_point_once(
    size: int, chunk: int, done: set[int], workers: int, cost: float, fixed: bool, replies: Any, random: Any
) -> None:
    """Also where workers end before they have measured all, in any order."""
    count = -(-size // chunk)
    done = {n for n in done if n < count}
    jobs = Jobs(range(size), chunk, done, workers=workers, cost=cost, fixed=fixed)
    wanted = [p for p in range(size) if p // chunk not in done]
    assert jobs.left == len(wanted)
    whole = fixed and not replies
    seen: list[int] = []
    out: list[Job] = []
    while True:
        while len(out) < 2 * workers and (job := next(jobs, None)) is not None:
            assert job.points[0] == job.first
            np.testing.assert_array_equal(np.diff(job.points), 1)
            if whole:
                assert len(job.points) == min(chunk, size - job.first)
                assert job.seconds == math.inf
            out.append(job)
        if not out:
            break
        job = out.pop(random.randrange(len(out)))
        each, most = replies.pop() if replies else (0.01, None)
        piece = result(job, each, most)
        seen += list(job.points[: len(piece)])
        jobs.learn(job, piece)
    assert sorted(seen) == wanted
    assert jobs.left == 0


class Workers:
    """Workers that take jobs in order, as a pool sends them, by a clock of their own; points take what they take."""

    def __init__(self, workers: int, ahead: int = 2, once: float = 0.0) -> None:
        self.now, self.ahead, self.once = 0.0, ahead, once  # once: what each worker makes in its first job
        self.ends = [0.0] * workers

    def _most(self, out: Iterable[Job]) -> int:
        return len(self.ends) * (1 if any(job.seconds < math.inf for job in out) else self.ahead)

    def run(self, jobs: Jobs, each: Callable[[Job], float]) -> list[Job]:
        """The jobs in the order in which they went out."""
        sent: list[Job] = []
        out: list[tuple[float, int]] = []
        made: dict[int, float] = {}
        while True:
            while len(out) < self._most(sent[number] for _, number in out) and (job := next(jobs, None)) is not None:
                worker = int(np.argmin(self.ends))
                made[len(sent)] = self.once if self.ends[worker] == 0.0 else 0.0
                spent = made[len(sent)] + len(result(job, each(job))) * each(job)
                self.ends[worker] = max(self.ends[worker], self.now) + spent
                insort(out, (self.ends[worker], len(sent)))
                sent.append(job)
            if not out:
                return sent
            self.now, number = out.pop(0)
            piece = result(sent[number], each(sent[number]))
            jobs.learn(sent[number], replace(piece, seconds=piece.seconds + made[number], once=made[number]))


@pytest.mark.parametrize("once", [0.0, 0.02, 0.1])
def test_what_a_worker_makes_once_is_foreseen(once: float) -> None:
    """The first result tells of it, and then it is known that the other workers' first jobs take it too."""
    cost, workers = 5e-5, Workers(2, once=once)
    jobs = Jobs(range(10_000), 10_000, workers=2, cluster=True, clock=lambda: workers.now)
    workers.run(jobs, lambda job: cost)
    assert max(workers.ends) - min(workers.ends) <= 2 * cost


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_a_short_sweep_on_a_cluster_is_one_job_for_each_worker(workers: int) -> None:
    """Its scheduler takes for a job what some hundred points take."""
    size, hands = 10_000, Workers(workers)
    each = 0.9 * FIRST * workers / size
    jobs = Jobs(range(size), size, workers=workers, cluster=True, clock=lambda: hands.now)
    assert len(hands.run(jobs, lambda job: each)) == workers
    assert hands.now == pytest.approx(0.9 * FIRST, rel=1e-2)


@pytest.mark.parametrize("slower", [2.0, 5.0, 50.0])
def test_what_a_slow_worker_does_not_do_in_time_others_do(slower: float) -> None:
    """On a cluster, where each gets its share of all at first: here the points of the second half take longer."""
    size, hands = 10_000, Workers(2)
    each = 0.5 * FIRST / size

    def takes(job: Job) -> float:
        return each * (slower if job.first >= size // 2 else 1.0)

    jobs = Jobs(range(size), size, workers=2, cluster=True, clock=lambda: hands.now)
    hands.run(jobs, takes)
    best = (1 + slower) * each * size / 4
    assert hands.now <= best + FIRST


def test_what_will_come_back_is_no_less_left_than_what_is_there() -> None:
    """Two workers have half of the points each, and time for a fifth of these; the second one is about to end."""
    size, hands = 10_000, Workers(2)
    each = FIRST / 1000
    jobs = Jobs(range(size), size, workers=2, cluster=True, clock=lambda: hands.now)
    first, second = next(jobs), next(jobs)
    hands.now = FIRST
    jobs.learn(first, result(first, each))
    assert jobs.left == 4000
    third = next(jobs)
    assert len(third.points) == pytest.approx(8000 / (SHARES * 2), abs=2)
    jobs.learn(second, result(second, each))
    assert len(next(jobs).points) == pytest.approx((8000 - len(third.points)) / (SHARES * 2), abs=2)


def test_of_a_job_that_is_given_up_nothing_will_come_back() -> None:
    """As after the second one of the test before, of which it was expected that 4000 points would."""
    jobs = Jobs(range(10_000), 10_000, workers=2, cluster=True, clock=lambda: 0.0)
    first, second = next(jobs), next(jobs)
    assert jobs.timed
    jobs.give_up(second)
    assert jobs.timed
    jobs.learn(first, result(first, FIRST / 1000))
    assert not jobs.timed
    assert len(next(jobs).points) == 4000 / (SHARES * 2)


def test_what_a_first_job_leaves_is_not_cut_into_one_more_job_and_a_crumb() -> None:
    """Also where less is expected to come back from the other worker."""
    hands = Workers(2)
    jobs = Jobs(range(3280), 3280, workers=2, cluster=True, clock=lambda: hands.now)
    first, _ = next(jobs), next(jobs)
    hands.now = FIRST
    piece = Piece({"a": np.zeros(1220)}, {}, FIRST, each=FIRST / 1300)  # it began slowly
    jobs.learn(first, piece)
    assert len(next(jobs).points) == 1640 - 1220


@pytest.mark.parametrize("slower", [0.98, 1.0, 1.02])
@pytest.mark.parametrize("much", [1.3, 1.6, 2.0, 3.0])
def test_after_the_first_jobs_of_a_cluster_all_end_together(slower: float, much: float) -> None:
    hands, each = Workers(2), 1e-4
    size = 2 * round(much * FIRST / each)
    jobs = Jobs(range(size), size, workers=2, cluster=True, clock=lambda: hands.now)
    hands.run(jobs, lambda job: each * (slower if job.first >= size // 2 else 1.0))
    assert max(hands.ends) - min(hands.ends) <= 0.04 * FIRST


def test_jobs_shrink_toward_the_end() -> None:
    """The last ones end at the same time, where points take what is expected of them."""
    cost, workers = SPAN / 50, Workers(2)
    sent = workers.run(Jobs(range(1000), 1000, workers=2, cost=cost, clock=lambda: workers.now), lambda job: cost)
    sizes = [len(job.points) for job in sent]
    assert sum(sizes) == 1000
    assert max(sizes) == 50
    assert sizes[:-2] == sorted(sizes[:-2], reverse=True)
    assert LEAST / 2 <= sizes[-1] * cost <= 1.5 * LEAST + cost
    assert max(workers.ends) - min(workers.ends) <= 2 * cost


@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_the_last_jobs_make_up_for_what_was_not_foreseen(spread: float) -> None:
    """Whatever points take, workers end within what is not foreseen of two small jobs."""
    random, cost = np.random.default_rng(7), 1e-4
    for _ in range(20):
        workers = Workers(4)
        jobs = Jobs(range(100_000), 100_000, workers=4, cost=cost, clock=lambda of=workers: of.now)  # type: ignore[misc]
        factors: dict[int, float] = {}

        def each(job: Job, of: Any = factors) -> float:
            return float(of.setdefault(job.first, cost * random.uniform(1 - spread, 1 + spread)))

        workers.run(jobs, each)
        assert max(workers.ends) - min(workers.ends) <= 4 * spread * 1.5 * LEAST


def test_what_points_cost_is_learned_and_dear_ones_go_out_alone() -> None:
    jobs = Jobs(range(1000), 1000, workers=2)
    first = next(jobs)
    assert first.seconds == FIRST, "nothing is known: it ends by time"
    assert len(first.points) == 250
    jobs.learn(first, result(first, SPAN / 50))
    assert jobs.left == 1000 - round(FIRST / (SPAN / 50))
    second = next(jobs)
    assert second.first == 1000 - jobs.left - len(second.points), "from where the first one ended"
    assert (len(second.points), second.seconds) == (50, math.inf)
    jobs.learn(second, result(second, SPAN / 50))
    third = next(jobs)
    jobs.learn(third, result(third, 4 * SPAN / 50))  # four times as dear: by one job, twice
    assert len(next(jobs).points) == 25
    dear = Jobs(range(100), 100, workers=2, cost=10.0)
    assert [len(job.points) for job in dear] == [1] * 100


@pytest.mark.parametrize("hiccup", [3.0, 1000.0])
def test_a_first_look_that_loads_code_is_soon_forgotten(hiccup: float) -> None:
    jobs = Jobs(range(100_000), 100_000, workers=2)
    for k in range(8):
        job = next(jobs)
        jobs.learn(job, result(job, 1e-4 * (hiccup if k == 0 else 1.0)))
    assert jobs.cost == pytest.approx(1e-4, rel=0.2)


@pytest.mark.parametrize("workers", [1, 2, 50, 500])
@pytest.mark.parametrize("seconds", [0.3, 10.0, 1e3, 1e5])
def test_a_scheduler_keeps_up_with_a_long_sweep(seconds: float, workers: int) -> None:
    """Half of the time of a sweep is enough to send its jobs, unless there would be too few of them for all to work."""
    assert work_in_a_job(seconds, workers) == (SPAN, LEAST)
    cost = 1e-3 * seconds / workers
    most, least = work_in_a_job(seconds, workers, True)
    assert most >= SPAN
    assert LEAST <= least <= most
    size, hands = round(seconds / cost), Workers(workers)
    jobs = Jobs(range(size), size, workers=workers, cost=cost, cluster=True, clock=lambda: hands.now)
    sent = hands.run(jobs, lambda job: cost)
    busy = len(sent) * SENDING
    if seconds / workers >= 100.0:
        assert busy <= 0.55 * seconds / workers
        assert len(sent) >= 4 * workers
    assert hands.now <= seconds / workers + 2 * cost + least / 2


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


def test_no_crumbs_are_left_where_points_were_taken_back() -> None:
    jobs = Jobs(range(1000), 1000, workers=2)
    first, second = next(jobs), next(jobs)
    jobs.learn(first, result(first, 1e-3, 60))
    jobs.learn(second, result(second, 1e-3))
    back = len(first.points) - 60
    wanted = jobs.left // (SHARES * 2)
    assert wanted < back < 1.5 * wanted
    assert len(next(jobs).points) == back, "a few points more than wanted, rather than these few alone"
