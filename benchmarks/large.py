"""How time and memory grow: points of a sweep, flows, links. Each case runs in a process of its
own, and its memory is what it adds to that process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np

import fluidcc as fc
from benchmarks.networks import crowd
from benchmarks.speed import ROOT, Row, Skipped
from fluidcc.sweeps import Refine

__all__ = ["CASES", "boundary", "large", "links"]

SAMPLES = 11


def links(flows: int, count: int) -> fc.Network:
    """LDCC flows of different gains, each over two neighbours of a ring of different links."""
    random = np.random.default_rng(0)
    net = fc.Network()
    for k in range(count):
        capacity = float(random.uniform(1.6e6, 2.4e6)) * flows / count
        net.link(f"l{k}", fc.DropTail, capacity=capacity, delay=0.005)
    for i, (k, eta) in enumerate(
        zip(random.integers(0, count, flows), random.uniform(0.2, 0.5, flows), strict=True)
    ):
        route = [f"l{k}", f"l{(k + 1) % count}"]
        net.flow(f"f{i}", fc.LDCC(eta=float(eta)), route=route, return_delay=0.03)
    return net


def _sweep(points: int, measure: str, **how: Any) -> Callable[[], object]:
    net = fc.dumbbell([fc.LDCC], {"capacity": "3 Mbit/s"}, rtt="50 ms")
    return lambda: fc.sweep(net, {"eta": np.linspace(0.1, 0.8, points)}, [measure], **how)


def _of_network(build: Callable[[], fc.Network]) -> Iterator[tuple[str, Callable[[], object]]]:
    net = build()
    yield "build", build
    yield "equilibrium", lambda: fc.equilibrium(net)
    yield "simulate 1 s", lambda: fc.simulate(net, until=1.0, samples=SAMPLES)


#: by name: sizes, and what is done at a size
CASES: dict[str, tuple[tuple[int, ...], Callable[[int], Iterator[Any]]]] = {
    "points": (
        (10_000, 100_000),
        lambda n: iter(
            [
                ("margins", _sweep(n, "gain_margin")),
                ("runs of 10 s", _sweep(n, "mean_rate", until=10)),
            ]
        ),
    ),
    "flows on one link": ((10_000, 100_000), lambda n: _of_network(lambda: crowd(n))),
    "flows on 100 links": ((1000, 10_000), lambda n: _of_network(lambda: links(n, 100))),
    "flows on 1,000 links": ((1000, 10_000), lambda n: _of_network(lambda: links(n, 1000))),
}


def large() -> Iterator[Row]:
    """Seconds of processor time and megabytes at two sizes, and the power of the size by which the
    time grows.
    """
    if sys.platform == "win32":
        raise Skipped("the memory of a process is measured as Unix does")
    for name, (sizes, _) in CASES.items():
        spent: dict[str, list[float]] = {}
        for size in sizes:
            run = [sys.executable, "-m", "benchmarks.large", name, str(size)]
            done = subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
            for line in done.stdout.splitlines():
                what, seconds, memory = line.rsplit(maxsplit=2)
                spent.setdefault(what, []).append(float(seconds))
                power = ""
                if len(spent[what]) > 1:
                    growth = np.log(spent[what][-1] / spent[what][-2]) / np.log(sizes[1] / sizes[0])
                    power = f", as the size to the power {growth:.1f}"
                yield Row(f"{size} {name}", f"{what}: {float(seconds):.2f} s, {memory} MB{power}")


def boundary(points: int = 1000) -> Iterator[Row]:
    """The boundary of stability on a fine grid, from verdicts beside it alone."""
    from benchmarks.sweep import parking_lot

    grid = {"eta": np.linspace(0.1, 2.2, points), "long.rtt": np.geomspace(0.03, 1.0, points)}
    began = process_time()
    data = fc.sweep(parking_lot(), grid, ["stable"], refine=Refine("stable", 64))
    took, many = process_time() - began, data.attrs["measured"]
    value = f"{took:.1f} s for {points} x {points} points, {many} verdicts"
    yield Row("boundary", value, "<= 10^4", many <= 10_000 and not data.attrs["failed"])


def main(name: str, size: int) -> None:
    """Measure a case at a size: a line with seconds and megabytes for each thing that is done."""
    import resource

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    _sweep(3, "gain_margin")()  # load what is compiled
    _sweep(3, "mean_rate", until=1)()
    for _, run in _of_network(lambda: crowd(2)):
        run()
    for what, run in CASES[name][1](size):
        before, began = peak(), process_time()
        attrs = getattr(run(), "attrs", {})
        # a sweep's processes live on, but it knows what its points took in all of them
        took = attrs.get("point_seconds", process_time() - began)
        print(what, took, round(peak() - before), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
