"""Run by test_store: sweeps that are killed with SIGKILL at random moments, and resumed. Prints what was found."""

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

GRID = {"x": [0.1 * k for k in range(12)], "y": [1.0, -1.0]}
CHUNK = 2


def measured(point: Mapping[str, float]) -> dict[str, Any]:
    time.sleep(0.005)
    with open(os.environ["POINTS"], "a") as file:
        file.write(f"{point['x']} {point['y']}\n")
    if point["x"] == GRID["x"][5]:
        raise ValueError("no value here")
    return {"sine": np.sin(point["x"]) * point["y"], "both": [point["x"] / 3, point["y"]]}


def sweep(folder: Path, log: Path) -> Any:
    os.environ["POINTS"] = str(log)
    return fc.sweep(measured, GRID, store=folder, executor="serial", chunk=CHUNK)


def main(folder: Path) -> None:
    whole = sweep(folder / "whole", folder / "log")
    began = time.perf_counter()
    sweep(folder / "again", folder / "log")
    span = time.perf_counter() - began
    found: dict[str, Any] = {"identical": 0, "again": 0, "killed": 0, "finished": []}
    for k in range(20):
        store, log = folder / f"{k}", folder / f"log{k}"
        child = os.fork()
        if not child:
            sweep(store, log)
            os._exit(0)
        time.sleep(random.Random(k).uniform(0.0, span))
        os.kill(child, signal.SIGKILL)
        found["killed"] += os.waitpid(child, 0)[1] == signal.SIGKILL
        there = sorted(int(f.stem) for f in (store / "chunks").glob("[0-9]*.json"))
        found["finished"].append(len(there))
        resumed = folder / f"resumed{k}"
        data = sweep(store, resumed)
        found["identical"] += all(
            data[name].values.tobytes() == whole[name].values.tobytes() for name in ("sine", "both", "error")
        )
        computed = set(resumed.read_text().splitlines()) if resumed.exists() else set()
        points = [f"{x} {y}" for x in GRID["x"] for y in GRID["y"]]
        found["again"] += sum(points[CHUNK * n + j] in computed for n in there for j in range(CHUNK))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
