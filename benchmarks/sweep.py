"""The measurements of sweeps. CPU seconds throughout, so that a busy machine does not decide.

The floor of a trajectory, from operation counts: P1 takes about 2,000 evaluations of four states at rtol 3e-7. One
evaluation is some 110 floating-point operations (three laws of 15, three queue look-ups of 12, the stage sums of 30),
of which about a third wait for one another: 25 ns at 4 GHz, or 50 us a point; 601 samples of ten rows at 1 ns each are
6 us more. So no scalar kernel of this method can do better than about 55 us a point here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from time import perf_counter, process_time
from typing import Any

import numpy as np

import fluidcc as fc
from benchmarks.networks import as_network, delays
from benchmarks.reference.cases import P1
from benchmarks.speed import ROOT, Row, Skipped, fastest, ours, theirs
from fluidcc.sweep import Refine

__all__ = ["chart", "cluster", "trajectories"]

GRID = {
    "w": np.linspace(15e3, 25e3, 25),
    "beta": np.linspace(0.08, 0.12, 20),
    "return_delay": np.linspace(0.02, 0.05, 20),
}
MEASURES = ["mean_rate", "final_rate", "max_queueing_delay"]
FLOOR = 55e-6  # seconds a point, from the module's count
RUNS = 50


def trajectories() -> Iterator[Row]:
    """10,000 points of P1 against JiTCDDE's time for one, at equal accuracy, per core."""
    rtol = fastest(ours(P1, "fused"))[0]
    how: dict[str, Any] = {"until": P1.until, "delays": delays(P1), "rtol": rtol, "atol": 0.01 * rtol}
    net = as_network(P1)
    fc.sweep(net, GRID, MEASURES, executor="serial", **how)  # compiled and loaded
    spent = []
    for _ in range(3):
        began = process_time()
        data = fc.sweep(net, GRID, MEASURES, executor="serial", **how)
        spent.append(process_time() - began)
    each = min(spent) / data.attrs["points"]
    value = (
        f"{each * 1e6:.0f} us a point of {data.attrs['points']} (rtol {rtol:.0e}), {each / FLOOR:.1f} times the floor"
    )
    yield Row("sweep of P1", value)
    them = theirs(P1)
    at = fastest(them)[0]
    began = process_time()
    for _ in range(RUNS):
        them(at)
    run = (process_time() - began) / RUNS
    yield Row("JiTCDDE, a run", f"{run * 1e3:.2f} ms, the mean of {RUNS}")
    yield Row("P1 per core", f"{run / each:.1f}", ">= 25", run / each >= 25)


def cluster() -> Iterator[Row]:
    """Two Dask workers against one, and what scheduling adds to a point."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as problem:
        raise Skipped(f"distributed is not installed ({problem})") from problem
    net = as_network(P1)
    how: dict[str, Any] = {"until": P1.until, "delays": delays(P1)}
    one_process = fc.sweep(net, GRID, MEASURES, executor="serial", **how)
    took: dict[int, float] = {}
    for workers in (1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50) as local,
            Client(local) as client,
        ):
            fc.sweep(net, GRID, MEASURES, executor=client, **how)  # loaded on the workers
            times = []
            for _ in range(3):
                began = perf_counter()
                data = fc.sweep(net, GRID, MEASURES, executor=client, **how)
                times.append((perf_counter() - began, data.attrs["point_seconds"]))
            took[workers], inside = min(times)
        if any(data[name].values.tobytes() != one_process[name].values.tobytes() for name in MEASURES):
            raise AssertionError("the cluster's results differ from those of one process")
        if workers == 1:
            share = took[1] / inside - 1.0
            yield Row("scheduling", f"{100 * share:.1f} % on top of the points' own time", "< 5 %", share < 0.05)
    gain = took[1] / took[2]
    yield Row(
        "two workers", f"{took[1]:.2f} s with one, {took[2]:.2f} s with two: {gain:.2f} times", ">= 1.7", gain >= 1.7
    )


@lru_cache(maxsize=1024)
def _rest(rtt: float) -> Any:
    """The equilibrium, on which the gain eta has no influence."""
    return fc.equilibrium(_dumbbell(0.4, rtt))


def _dumbbell(eta: float, rtt: float) -> fc.Network:
    return fc.dumbbell([fc.LDCC(eta=eta)] * 3, {"capacity": "3 Mbit/s"}, rtt=rtt)


def _judged(point: Any) -> dict[str, Any]:
    report = fc.stability(_dumbbell(point["eta"], point["rtt"]), at=_rest(point["rtt"]))
    rule = report.sufficient["eta divided by M"]
    return {"stable": report.stable, "gain_margin": report.gain_margin, "sufficient": bool(rule.holds)}


def chart(file: str = "figures/ldcc_stability.png", points: int = 300) -> Iterator[Row]:
    """The stability of three LDCC flows over gain and round-trip time, drawn."""
    import matplotlib as mpl

    mpl.use("Agg")
    axes = {"eta": np.linspace(0.2, 3.0, points), "rtt": np.linspace(0.02, 0.28, points)}
    began = perf_counter()
    data = fc.sweep(_judged, axes, refine=Refine("stable", 32), executor="processes")
    took = perf_counter() - began
    data["rtt"].attrs["units"] = "s"
    axis: Any = fc.plot.stability_chart(data, value="gain_margin")
    axis.figure.savefig(ROOT / file, dpi=120)
    many, failed = data.attrs["measured"], data.attrs["failed"]
    value = f"{took:.0f} s for {points} x {points} points, {many} of them measured, {failed} failed"
    yield Row("stability chart", value, "< 60 s", took < 60 and not failed)
