"""The binomial paper's formulas over many points, and its interval model against a plain Python
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.speed import Row
from fluidcc.formulas import binomial
from fluidcc.papers.binomial.synchronized import synchronized

__all__ = ["formulas", "intervals"]

POINTS, FLOWS, STEPS = 1_000_000, 1000, 4000


def least(run: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of several runs; the first, which compiles, does not count."""
    run()
    found = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        found.append(perf_counter() - start)
    return min(found)


def formulas() -> Iterator[Row]:
    """A million points of `efficiency` and of `loss`."""
    rng = np.random.default_rng(0)
    k, l, sigma, U = (
        rng.uniform(a, b, POINTS) for a, b in ((-3, 3), (-1, 1), (0.1, 0.9), (1, 100))
    )
    for f, arguments in (
        (binomial.efficiency, (k, l, sigma, U)),
        (binomial.loss, (k, l, U, sigma, U)),
    ):
        seconds = least(lambda f=f, arguments=arguments: f(*arguments))  # type: ignore[misc]
        yield Row(f.name, f"{POINTS:.0e} points in {seconds:.3f} s", "1 s", seconds < 1)


def plain(
    k: float, l: float, lam: float, sigma: float, capacity: float, rates: list[float], steps: int
) -> list[float]:
    """The interval model as one would write it."""
    x = list(rates)
    for _ in range(steps):
        if sum(x) > capacity:
            for i in range(len(x)):
                x[i] -= sigma * x[i] ** l
        else:
            for i in range(len(x)):
                x[i] += lam * x[i] ** -k
    return x


def intervals() -> Iterator[Row]:
    """Flows of different rates, and flows of one rate, for which only one rate is followed."""
    start = np.random.default_rng(0).uniform(0.5, 1.5, FLOWS)
    for name, k, l, sigma in (("AIMD", 0, 1, 0.5), ("IIAD", 1, 0, 0.3), ("SQRT", 0.5, 0.5, 0.4)):
        for what, n, rates in (("rates", 1, start), ("equal", FLOWS, np.ones(1))):

            def run(
                k: float = k, l: float = l, sigma: float = sigma, n: int = n, rates: Any = rates
            ) -> object:
                # what is not kept in the plain loop is not kept here
                return synchronized(
                    k, l, 0.003, sigma, FLOWS, n=n, initial=rates, intervals=STEPS, keep=False
                )

            fast = least(run)
            began = perf_counter()
            plain(k, l, 0.003, sigma, FLOWS, list(np.broadcast_to(rates, FLOWS)), STEPS // 20)
            slow = 20 * (perf_counter() - began)
            value = (
                f"{FLOWS} {what}, {STEPS} intervals: {slow:.2f} s plain, {fast * 1e3:.1f} ms, "
                f"{slow / fast:.0f} times"
            )
            yield Row(f"intervals {name}", value, "100 times", slow / fast > 100)
