"""A Dask cluster gives what this process gives, and loses nothing with a worker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning:distributed"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as one,
    ):
        yield one


def network() -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity="3 Mbit/s", delay="25 ms")
    return net.flow("a", fc.LDCC, route=["l"], initial={"x": 1e5})


def test_a_cluster_gives_the_same_bits(client: Any) -> None:
    grid = {"beta": np.linspace(0.1, 0.3, 6), "w": [2e4, 3e4]}
    here = fc.sweep(network(), grid, ["mean_rate", "equilibrium_rtt"], until=3, executor="serial")
    there = fc.sweep(network(), grid, ["mean_rate", "equilibrium_rtt"], until=3, executor=client, chunk=2)
    assert there.attrs["failed"] == 0
    for name in ("mean_rate", "equilibrium_rtt"):
        assert there[name].values.tobytes() == here[name].values.tobytes()


def test_a_worker_that_dies_is_replaced(client: Any, tmp_path: Path) -> None:
    def measured(point: Any) -> float:
        time.sleep(0.02)
        dead = tmp_path / "dead"
        if point["x"] == 7.0 and os.getpid() != home and not dead.exists():
            dead.write_text("once")
            os.kill(os.getpid(), signal.SIGKILL)
        return float(point["x"]) ** 2

    home = os.getpid()
    ds = fc.sweep(measured, {"x": np.arange(20.0)}, executor=client, chunk=2)
    assert (tmp_path / "dead").exists()
    assert ds.attrs["failed"] == 0
    assert ds.value.values.tolist() == [float(x) ** 2 for x in range(20)]


def test_a_point_that_kills_its_process_fails_alone(tmp_path: Path) -> None:
    def measured(point: Any) -> float:
        if point["x"] == 3.0 and os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
        return float(point["x"])

    home = os.getpid()
    ds = fc.sweep(measured, {"x": np.arange(6.0)}, executor="processes", workers=1, chunk=3)
    assert ds.attrs["failed"] == 1
    assert "its worker died, 2 times" in ds.error.values[3]
    assert ds.value.values[[0, 1, 2, 4, 5]].tolist() == [0, 1, 2, 4, 5]
