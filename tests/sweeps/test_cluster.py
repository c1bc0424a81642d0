"""A Dask cluster gives what this process gives, and loses nothing with a worker."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput, SweepFailed
from fluidcc.cli import main
from fluidcc.sweeps import execute, files
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.evaluate import evaluate, probed
from fluidcc.sweeps.task import empty_piece

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
tornado = pytest.importorskip("tornado.ioloop")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning:distributed"),
]


@pytest.fixture(scope="module")
def loop() -> Iterator[Any]:
    """A loop for all clients here: one that Dask starts may be too late on a busy machine."""
    started: Future[Any] = Future()

    async def main() -> None:
        ended = asyncio.Event()
        started.set_result((tornado.IOLoop.current(), ended))
        await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    one, ended = started.result()
    yield one
    gc.collect()  # a client that could not connect needs the loop to be closed
    one.add_callback(ended.set)
    thread.join()


@contextmanager
def scheduler(folder: Path, workers: int) -> Iterator[str]:
    """The address of a scheduler with workers, as the commands of Dask start them."""
    file = folder / "scheduler.json"
    patient = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "300s"}
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": patient}
    both = ["--no-dashboard", "--scheduler-file", str(file)]
    one = ["scheduler", "--host", "127.0.0.1", "--port", "0", *both]
    some = ["worker", "--nthreads", "1", "--local-directory", str(folder), *both]
    with ExitStack() as parts:
        started = []
        for arguments in (one, *[some] * workers):
            command = [sys.executable, "-m", "dask", *arguments]
            started.append(parts.enter_context(subprocess.Popen(command, **quiet)))
            parts.callback(started[-1].terminate)
        while not file.exists():
            assert [part.poll() for part in started] == [None] * len(started)
            time.sleep(0.05)
        yield json.loads(file.read_text())["address"]


@pytest.fixture(scope="module")
def client(loop: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with (
        scheduler(tmp_path_factory.mktemp("dask"), 2) as address,
        distributed.Client(address, loop=loop, timeout="300s", set_as_default=False) as one,
    ):
        one.wait_for_workers(2)
        yield one


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits(client: Any) -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "3 Mbit/s", "delay": "25 ms"})
    grid = {"beta": np.linspace(0.1, 0.3, 6), "w": [2e4, 3e4]}
    what: Any = net, grid, ["mean_rate", "equilibrium_rtt"]
    here = fc.sweep(*what, until=3, executor="serial")
    there = fc.sweep(*what, until=3, executor=client, chunk=2)
    assert there.attrs["failed"] == 0
    for name in ("mean_rate", "equilibrium_rtt"):
        assert there[name].values.tobytes() == here[name].values.tobytes()


def test_settings_for_sweeps_are_settings_of_dask(capsys: pytest.CaptureFixture[str]) -> None:
    """Of this version of it: a name that Dask does not know would do nothing, without a word."""
    main(["dask-config"])
    (ours,) = dask.config.collect_yaml([capsys.readouterr().out.strip()])
    settings = Path(distributed.__file__).with_name("distributed.yaml")
    (known,) = dask.config.collect_yaml([str(settings)])

    def names(of: Any, before: str = "") -> Iterator[str]:
        for key, value in of.items():
            name = f"{before}{key}".replace("_", "-")
            yield from names(value, f"{name}.") if isinstance(value, dict) else [name]

    assert set(names(ours)) <= set(names(known))


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


SWEEP = """
scenario = "ldcc_fig5"
measure = ["mean_rate", "equilibrium_rtt"]
until = "3 s"
[grid]
beta = [0.1, 0.2, 0.3]
"""


@pytest.fixture
def on_the_loop(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that the command makes run on the loop of the tests."""
    monkeypatch.setattr(distributed, "Client", partial(distributed.Client, loop=loop))


@pytest.mark.slow
@pytest.mark.usefixtures("on_the_loop")
def test_the_command_with_a_scheduler(
    client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    for name, how in (
        ("here", ["--executor", "serial"]),
        ("there", ["--scheduler", client.scheduler.address]),
    ):
        assert main(["sweep", str(file), "--output", str(tmp_path / f"{name}.csv"), *how]) == 0
        assert "3 points" in capsys.readouterr().out
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("on_the_loop")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "127.0.0.1", "carrier://pigeon:1"])
def test_no_scheduler(address: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """What is no address is not tried: a client that fails so waits for 20 s in the end."""
    made: list[Any] = []
    make = distributed.Client

    def client(*args: Any, **how: Any) -> Any:
        made.append(args)
        return make(*args, **how)

    monkeypatch.setattr(files, "PATIENCE", 0.3)
    monkeypatch.setattr(distributed, "Client", client)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    command = ["sweep", str(tmp_path / "sweep.toml"), "--output", str(tmp_path / "x.csv")]
    with dask.config.set(scheduler="threads"):
        assert main([*command, "--scheduler", address]) == 2
        assert dask.config.get("scheduler") == "threads", "what Dask runs elsewhere is left"
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"fluidcc: --scheduler {address}: there is no Dask scheduler")
    assert "start one with 'dask scheduler'" in said
    assert "\n" not in said
    assert bool(made) is address.startswith("tcp:")


def test_workers_of_another_version_are_refused(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "versions", lambda: {"fluidcc": "99.0"})
    with pytest.raises(InvalidInput, match=r"a worker on .* has fluidcc .*, and the sweep 99.0"):
        fc.sweep(lambda p: p["x"], {"x": [1.0, 2.0]}, executor=client)


@pytest.mark.slow
def test_workers_without_fluidcc_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they get a job, of which they would die; those that have it are not asked again."""

    def blind(yes: bool) -> None:
        from importlib import util

        both: Any = util
        both.seen = getattr(both, "seen", both.find_spec)
        both.find_spec = (lambda name: None) if yes else both.seen

    client.wait_for_workers(2, timeout=60)  # one that an earlier test has ended comes back
    monkeypatch.setattr(execute, "_asked", WeakKeyDictionary())
    client.run(blind, True)
    try:
        says = r"worker tcp://.* cannot import fluidcc, nor can 1 more; install it"
        with pytest.raises(InvalidInput, match=says):
            fc.sweep(squared, {"x": [1.0, 2.0]}, executor=client)
    finally:
        client.run(blind, False)
    assert fc.sweep(squared, {"x": [1.0, 2.0]}, executor=client).value.values.tolist() == [1.0, 4.0]
    monkeypatch.setattr(client, "run", None)
    assert fc.sweep(squared, {"x": [3.0]}, executor=client).value.values.tolist() == [9.0]


def squared(point: Any) -> float:
    time.sleep(0.02)
    return float(point["x"]) ** 2


@pytest.mark.slow
def test_a_cluster_without_workers_or_without_scheduler_is_told(loop: Any, tmp_path: Path) -> None:
    with (
        scheduler(tmp_path, 0) as address,
        distributed.Client(address, loop=loop, timeout="300s", set_as_default=False) as client,
        pytest.raises(InvalidInput, match="has no workers; start dask worker"),
    ):
        fc.sweep(squared, {"x": [1.0]}, executor=client)
    with pytest.raises(InvalidInput, match="not connected to a scheduler"):
        fc.sweep(squared, {"x": [1.0]}, executor=client)


@pytest.mark.parametrize("left", [0, None])
def test_when_a_cluster_goes_away_in_the_middle(
    left: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without workers it waits for others, and says so; without a scheduler it ends."""
    monkeypatch.setattr(execute, "PATIENCE", 0.05)
    late: list[Future[Any]] = []
    task = probed(make_task(squared, {"x": [2.0]}, None, None, None, {}))

    class Executor:
        def submit(self, function: Any, *args: Any) -> Future[Any]:
            late.append(Future())
            if left is not None:
                threading.Timer(0.3, lambda: late[-1].set_result(evaluate(task, *args))).start()
            return late[-1]

    workers = execute.Workers(task, Executor, 1, apart=True, present=lambda: left)
    found, points, jobs = empty_piece(task.schema, 1), range(1), [execute.Job(0, 0, 1)]
    if left is None:
        with pytest.raises(SweepFailed, match="the Dask scheduler is gone"):
            list(workers.run(points, jobs, found))
        return
    with pytest.warns(FluidccWarning, match="has no workers now"):
        assert list(workers.run(points, jobs, found)) == jobs
    assert found.values["value"].tolist() == [4.0]


@pytest.mark.slow
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
