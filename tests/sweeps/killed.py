"""Run by test_store: sweeps killed with SIGKILL at random moments, and resumed."""

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


def sweep(folder: Path, log: Path) -> Any:
    """Of a function, which writes down the points it was called for."""
    os.environ["POINTS"] = str(log)
    return fc.sweep(measured, GRID, store=folder, executor="serial", chunk=CHUNK)


def same(one: Any, other: Any) -> bool:
    return set(one) == set(other) and all(
        one[name].values.tobytes() == other[name].values.tobytes() for name in one
    )


def main(folder: Path) -> None:
    whole = sweep(folder / "whole", folder / "log")
    began = time.perf_counter()
    sweep(folder / "again", folder / "log")
    span = time.perf_counter() - began
    points = [f"{x} {y}" for x in GRID["x"] for y in GRID["y"]]
    found: dict[str, Any] = {"identical": 0, "again": 0, "killed": 0, "finished": []}
    for k in range(20):
        store, resumed = folder / f"{k}", folder / f"resumed{k}"
        child = os.fork()
        if not child:
            sweep(store, folder / f"log{k}")
            os._exit(0)
        time.sleep(random.Random(k).uniform(0.0, span))
        os.kill(child, signal.SIGKILL)
        found["killed"] += os.waitpid(child, 0)[1] == signal.SIGKILL
        there = sorted(int(f.stem) for f in (store / "digest" / "c").glob("[0-9]*"))
        found["finished"].append(len(there))
        found["identical"] += same(sweep(store, resumed), whole)
        computed = set(resumed.read_text().splitlines()) if resumed.exists() else set()
        kept = [points[CHUNK * n + j] for n in there for j in range(CHUNK)]
        found["again"] += len(computed.intersection(kept))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
