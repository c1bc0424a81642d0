"""A cluster on one machine, by the commands that start one on many: a Dask scheduler and two
workers, one thread each.

The same sweep is run here and there, and must give the same bits.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client

import fluidcc as fc


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """One of Dask's commands, such as ``dask scheduler``."""
    print("  dask", *arguments, flush=True)
    command = [sys.executable, "-m", "dask", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> None:
    """Start it, use it, end it."""
    print("starting:")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        parts = [
            start(
                "scheduler",
                "--port",
                "0",
                "--dashboard-address",
                ":0",
                "--scheduler-file",
                str(file),
            )
        ]
        worker = (
            "worker",
            "--scheduler-file",
            str(file),
            "--nthreads",
            "1",
            "--local-directory",
            folder,
        )
        parts += [start(*worker) for _ in range(2)]
        try:
            while not file.exists():
                time.sleep(0.1)
            with Client(scheduler_file=str(file)) as client:
                client.wait_for_workers(2)
                demonstrate(client)
        finally:
            for part in reversed(parts):
                part.terminate()
            for part in parts:
                part.wait()


def demonstrate(client: Client) -> None:
    """The same sweep in this process and on the cluster."""
    net = fc.dumbbell([fc.LDCC] * 3, {"capacity": "3 Mbit/s", "buffer": "100 packets"}, rtt="50 ms")
    grid = {
        "w": np.linspace(1e4, 4e4, 20),
        "beta": np.linspace(0.05, 0.2, 20),
        "eta": np.linspace(0.2, 0.6, 10),
    }
    measures = ["mean_rate", "max_queueing_delay"]
    print("each process loads the code", flush=True)
    for executor in ("serial", client):
        fc.sweep(net, grid, measures, until="1 s", executor=executor)
    here = fc.sweep(net, grid, measures, until="600 s", executor="serial")
    there = fc.sweep(net, grid, measures, until="600 s", executor=client)
    same = all(here[name].values.tobytes() == there[name].values.tobytes() for name in measures)
    print(f"{here.attrs['points']} points: {here.attrs['seconds']:.2f} s in one process, "
          f"{there.attrs['seconds']:.2f} s on {len(client.nthreads())} workers of "
          f"{client.scheduler.address}; "
          f"{'the same bits' if same else 'DIFFERENT RESULTS'}")  # fmt: skip
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
