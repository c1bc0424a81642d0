"""What is finished is kept, through SIGKILL, and only the same sweep goes on in a store."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base import version
from fluidcc.base.errors import InvalidInput, warn
from fluidcc.sweeps.store import IRRELEVANT, differences

ROOT = Path(__file__).parents[2]


def network(capacity: float = 2e6, w: float = 2e4) -> fc.Network:
    return fc.dumbbell({"a": fc.LDCC(w=w)}, {"capacity": capacity}, rtt="50 ms")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["identical"] == 20
    assert found["again"] == 0
    assert found["killed"] >= 10  # the rest had finished before the blow
    assert len(set(found["finished"])) > 4, "the moments are spread over the sweep"


def test_finished_chunks_are_read_and_only_what_is_lost_is_computed(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def measured(point: Any) -> dict[str, float]:
        with log.open("a") as file:
            file.write(f"{point['x']:g} ")
        # NaN of any bits is a result
        return {"one": point["x"], "two": math.copysign(math.nan, -1)}

    def run() -> tuple[Any, str]:
        log.write_text("")
        grid = {"x": np.arange(6.0)}
        data = fc.sweep(measured, grid, store=tmp_path / "s", executor="serial", chunk=2)
        return data.one, log.read_text()

    first, _ = run()
    for lost, computed in ((None, ""), ("one/c/1", "2 3 "), ("digest/c/1", "2 3 ")):
        if lost is not None:
            (tmp_path / "s" / lost).unlink()
        again, seen = run()
        assert seen == computed
        assert again.identical(first)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grid": {"beta": [0.1, 0.3]}}, "grid beta was [0.1, 0.2], now [0.1, 0.3]"),
        ({"measure": "equilibrium_rate"}, "measure equilibrium_rtt is no longer there"),
        ({"net": network(3e6)}, "link bottleneck capacity was 2000000.0, now 3"),
        ({"net": network(w=3e4)}, "flow a w was 20000.0, now 30000.0"),
        ({"delays": "fifo"}, "option delays is new"),
    ],
)
def test_another_sweep_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    def run(net: Any, grid: Any, measure: Any, **more: Any) -> Any:
        return fc.sweep(net, grid, measure, store=tmp_path / "s", executor="serial", **more)

    given = {"net": network(), "grid": {"beta": [0.1, 0.2]}, "measure": "equilibrium_rtt"}
    run(**given)
    with pytest.raises(InvalidInput) as refused:
        run(**{**given, **change})
    assert says in str(refused.value)


def test_other_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of what a function calls and closes over."""

    def make(factor: float) -> Any:
        return lambda p: factor * p["x"]

    def run(model: Any) -> None:
        fc.sweep(model, {"x": [1, 2]}, store=tmp_path / "s", executor="serial")

    run(make(2.0))
    run(make(2.0))
    for other in (make(3.0), lambda p: p["x"] + 1):
        with pytest.raises(InvalidInput, match="model function was|model function has changed"):
            run(other)
    monkeypatch.setattr(version, "__version__", "99.0")
    with pytest.raises(InvalidInput, match="version of fluidcc was .*, now .99.0"):
        run(make(2.0))


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InvalidInput, match="holds something else"):
        fc.sweep(lambda p: p["x"], {"x": [1, 2]}, store=tmp_path, executor="serial")
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def tripled(point: Any) -> float:
    if point["x"] == 4:
        raise ValueError("no value here")
    if point["x"] == 5:
        warn("it may be wrong")
    return 3 * float(point["x"])


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes | None]]] = {
    "its values are gone": ("value/c/1", lambda data: None),
    "its values are cut short": ("value/c/1", lambda data: data[:9]),
    "a bit of its values is flipped": ("value/c/1", flipped),
    "its digest is gone": ("digest/c/2", lambda data: None),
    "its digest is empty": ("digest/c/2", lambda data: b""),
    "its error is gone": ("error/c/2", lambda data: None),
    "its error is cut short": ("error/c/2", lambda data: data[:20]),
    "its warning is gone": ("warning/c/2", lambda data: None),
}


def befall(file: Path, become: Callable[[bytes], bytes | None]) -> None:
    data = become(file.read_bytes())
    file.unlink()
    if data is not None:
        file.write_bytes(data)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.filterwarnings("ignore::fluidcc.base.errors.FluidccWarning")
def test_a_chunk_that_is_lost_or_damaged_is_computed_again(damage: str, tmp_path: Path) -> None:
    grid = {"x": np.arange(8.0)}
    first = fc.sweep(tripled, grid, store=tmp_path / "s", executor="serial", chunk=2)
    name, become = DAMAGE[damage]
    befall(tmp_path / "s" / name, become)
    for _ in range(2):  # what has been mended stays so
        again = fc.sweep(tripled, grid, store=tmp_path / "s", executor="serial", chunk=2)
        assert again.drop_attrs().identical(first.drop_attrs())
        assert again.value.values.tolist()[:4] == [0, 3, 6, 9]
        assert (again.attrs["failed"], again.attrs["warned"]) == (1, 1)


FRAME: dict[str, tuple[str, Callable[[bytes], bytes | None], str]] = {
    "an array is gone": ("value/zarr.json", lambda data: None, "value is damaged"),
    "an array is cut short": ("value/zarr.json", lambda data: b'{"shape": ', "value is damaged"),
    "an array has another shape": (
        "value/zarr.json", lambda data: re.sub(rb'"shape": \[\s*8', b'"shape": [9', data),
        "value is damaged",
    ),
    "cut short": ("zarr.json", lambda data: data[:99], "s is damaged"),
    "of another shape": ("zarr.json", lambda data: b"[]", "s is damaged"),
    "nested without end": ("zarr.json", lambda data: b"[" * 100_000, "s is damaged"),
    "a chunk of no points": (
        "zarr.json", lambda data: data.replace(b'"chunk": 2', b'"chunk": 0'), "s is damaged",
    ),
    "gone": ("sweep.lock", lambda data: None, "holds something else"),
}  # fmt: skip


@pytest.mark.parametrize("damage", FRAME)
def test_a_store_whose_frame_is_damaged_is_refused(damage: str, tmp_path: Path) -> None:
    def run() -> Any:
        grid = {"x": np.arange(8.0)}
        return fc.sweep(lambda p: p["x"], grid, store=tmp_path / "s", executor="serial", chunk=2)

    run()
    name, become, says = FRAME[damage]
    befall(tmp_path / "s" / name, become)
    with pytest.raises(InvalidInput, match=says) as caught:
        run()
    assert str(tmp_path / "s") in str(caught.value)
    assert re.search(r"; (give|delete|wait)", str(caught.value))


def test_a_lock_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    (tmp_path / "s" / "sweep.lock").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="its file 'sweep.lock' cannot be written"):
        fc.sweep(lambda p: p["x"], {"x": [1.0]}, store=tmp_path / "s", executor="serial")


@pytest.mark.parametrize("name", ["sweep.lock", "digest", "zarr.json", "a/b", "..", "", "x" * 300])
def test_a_variable_with_a_name_of_the_stores_own_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="variable .* cannot be kept in a store under this name"):
        fc.sweep(lambda p: {name: p["x"]}, {"x": [1.0]}, store=tmp_path / "s", executor="serial")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_store_that_no_folder_can_be_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="store .* cannot be "):
        fc.sweep(lambda p: p["x"], {"x": [1.0, 2.0]}, store=tmp_path / name, executor="serial")


def test_two_sweeps_cannot_share_a_store(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    how: Any = {"store": tmp_path / "s", "executor": "serial"}

    def measured(point: Any) -> float:
        if (tmp_path / "s" / "zarr.json").exists():  # the first two points are tried before
            with pytest.raises(InvalidInput, match="in use"):
                fc.sweep(lambda p: p["x"], {"x": [1.0]}, **how)
        return 1.0

    data = fc.sweep(measured, {"x": np.arange(30.0)}, chunk=30, **how)
    assert float(data.value.min()) == 1.0
    assert data.attrs["failed"] == 0


def test_differences_in_words() -> None:
    old = {"a": 1, "b": {"c": [1, 2]}, "d": 0}
    assert differences(old, {"a": 2, "b": {"c": [1, 3]}, "e": 0}) == [
        "a was 1, now 2", "b c was [1, 2], now [1, 3]", "d is no longer there", "e is new",
    ]  # fmt: skip
    assert differences(old, dict(old)) == []
    (said,) = differences({"x": [0.1 * k for k in range(99)]}, {"x": [0.2 * k for k in range(50)]})
    assert said == "x was 99 values from 0.0 to 9.8, now 50 values from 0.0 to 9.8"


@pytest.mark.parametrize("name", ["published", "sampled_stability", "stability", "undelayed"])
def test_what_a_measure_may_call_belongs_to_the_identity_of_a_store(name: str) -> None:
    home = getattr(fc, name).__module__.removeprefix("fluidcc.").replace(".", "/")
    assert not any(f"{home}.py".startswith(one) for one in IRRELEVANT)
