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

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.cli import main
from fluidcc.cli import sweep_files as files

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
def test_the_command_gives_the_same_bits_on_a_cluster(
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
