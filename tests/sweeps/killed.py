"""Run by test_store: sweeps that are killed with SIGKILL at random moments, and resumed. Prints
what was found.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr  # noqa: F401  imported before the fork, so that the moments fall into the sweep

import fluidcc as fc
from fluidcc.base.errors import warn

GRID = {"x": [0.1 * k for k in range(12)], "y": [1.0, -1.0]}
CHUNK = 2


def measured(point: Mapping[str, float]) -> dict[str, Any]:
    time.sleep(0.005)
    with open(os.environ["POINTS"], "a") as file:
        file.write(f"{point['x']} {point['y']}\n")
    if point["x"] == GRID["x"][5]:
        raise ValueError("no value here")
    if point["x"] == GRID["x"][7]:
        warn("it may be wrong")
    return {"sine": np.sin(point["x"]) * point["y"], "both": [point["x"] / 3, point["y"]]}


def sweep(folder: Path, log: Path, network: bool) -> Any:
    """Of a function, which writes down the points it was called for, or of a network: runs and
    equilibria.
    """
    os.environ["POINTS"] = str(log)
    if not network:
        return fc.sweep(measured, GRID, store=folder, executor="serial", chunk=CHUNK)
    net = fc.dumbbell({"a": fc.LDCC, "b": fc.LDCC}, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    grid = {"beta": np.linspace(0.05, 0.3, 6), "capacity": [2e6, 3e6, 6e6, 60e6]}
    return fc.sweep(
        net,
        grid,
        ["mean_rate", "equilibrium_rtt"],
        until=20,
        store=folder,
        executor="serial",
        chunk=CHUNK,
    )


def same(one: Any, other: Any) -> bool:
    """Whether all variables are, to the last bit."""
    return set(one) == set(other) and all(
        one[name].values.tobytes() == other[name].values.tobytes() for name in one
    )


def main(folder: Path) -> None:
    whole, span = {}, {}
    for network in (False, True):
        whole[network] = sweep(folder / f"whole{network}", folder / "log", network)
        began = time.perf_counter()
        sweep(folder / f"again{network}", folder / "log", network)
        span[network] = time.perf_counter() - began
    found: dict[str, Any] = {"identical": 0, "again": 0, "killed": 0, "finished": []}
    for k in range(20):
        network = k % 4 == 3
        store, log = folder / f"{k}", folder / f"log{k}"
        child = os.fork()
        if not child:
            sweep(store, log, network)
            os._exit(0)
        time.sleep(random.Random(k).uniform(0.0, span[network]))
        os.kill(child, signal.SIGKILL)
        found["killed"] += os.waitpid(child, 0)[1] == signal.SIGKILL
        there = sorted(int(f.stem) for f in (store / "chunks").glob("[0-9]*.json"))
        found["finished"].append(len(there))
        resumed = folder / f"resumed{k}"
        found["identical"] += same(sweep(store, resumed, network), whole[network])
        computed = set(resumed.read_text().splitlines()) if resumed.exists() else set()
        points = [f"{x} {y}" for x in GRID["x"] for y in GRID["y"]]
        found["again"] += sum(
            points[CHUNK * n + j] in computed for n in there for j in range(CHUNK)
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
