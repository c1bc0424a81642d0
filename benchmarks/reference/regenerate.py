"""Recompute `tests/data/reference_*.npz`: ``python -m benchmarks.reference.regenerate [names]``
(about five minutes).

Each file holds the samples of one case of `cases.py`: `time` [s], `rate` (flow, time) [bit/s],
`queue` (link, time) [s], `arrival` (link, time) [bit/s], the events (`event_time`, `event_what`,
`event_where`) and `error_rate`, `error_queue`: the largest differences among runs with other nodes,
other steps and other generations of kinks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.reference.cases import CASES
from benchmarks.reference.collocation import solve
from benchmarks.reference.problem import Case, Solution

DATA = Path(__file__).parents[2] / "tests" / "data"


def variants(case: Case) -> list[dict[str, float]]:
    """Settings that differ in each source of error; the first is the one that is kept."""
    if len(case.links) == 1:
        return [
            {"nodes": 18, "generations": 14},
            {"nodes": 14, "generations": 12},
            {"nodes": 14, "h_max": 0.017},
        ]
    # with two hops the kinks multiply as fast as a source can smooth them
    return [
        {"nodes": 18, "generations": 3},
        {"nodes": 14, "generations": 4},
        {"generations": 3, "h_max": 0.017},
    ]


def difference(a: Solution, b: Solution) -> tuple[float, float]:
    """Largest difference of rates [bit/s] and of queueing delays [s]."""
    return float(np.max(np.abs(a.rate - b.rate))), float(np.max(np.abs(a.queue - b.queue)))


def regenerate(case: Case) -> None:
    """Solve `case` in several ways, print how far they agree, and save the first."""
    kept, *others = [solve(case, **kwargs) for kwargs in variants(case)]  # type: ignore[arg-type]
    errors = np.max([difference(kept, other) for other in others], axis=0)
    print(
        f"{case.name}: {kept.pieces} pieces, {len(kept.events)} events, errors {errors[0]:.1e} "
        f"bit/s, {errors[1]:.1e} s"
    )
    for event in kept.events[:8]:
        print(f"    {event.time:.14f} s  {event.what} [{event.where}]")
    np.savez_compressed(
        DATA / f"reference_{case.name}.npz",
        time=kept.time,
        rate=kept.rate,
        queue=kept.queue,
        arrival=kept.arrival,
        event_time=np.array([float(event.time) for event in kept.events]),
        event_what=np.array([event.what for event in kept.events]),
        event_where=np.array([event.where for event in kept.events]),
        error_rate=errors[0],
        error_queue=errors[1],
    )


if __name__ == "__main__":
    DATA.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        if not sys.argv[1:] or case.name in sys.argv[1:]:
            regenerate(case)
