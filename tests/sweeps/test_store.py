"""What is finished is kept, through SIGKILL at any moment, and only the same sweep goes on in a
store.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
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
from fluidcc.sweeps.store import differences

ROOT = Path(__file__).parents[2]


def network() -> fc.Network:
    return fc.dumbbell({"a": fc.LDCC}, {"capacity": "2 Mbit/s"}, rtt="50 ms")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(tmp_path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["identical"] == 20
    assert found["again"] == 0
    assert found["killed"] >= 10  # the rest had finished before the blow
    assert len(set(found["finished"])) > 4, "the moments are spread over the sweep"


def test_finished_chunks_are_read_and_not_computed(tmp_path: Path) -> None:
    calls: list[float] = []

    class Counting:
        def __call__(self, point: Any) -> float:
            calls.append(point["x"])
            return float(point["x"])

        def __repr__(self) -> str:
            return "Counting"

        __dict__: dict[str, Any] = {}

    grid = {"x": [1.0, 2.0, 3.0, 4.0]}
    first = fc.sweep(Counting(), grid, store=tmp_path / "s", chunk=2, executor="serial")
    del calls[:]
    again = fc.sweep(Counting(), grid, store=tmp_path / "s", chunk=2, executor="serial")
    assert calls == []
    assert again.value.identical(first.value)
    (tmp_path / "s" / "chunks" / "1.json").unlink()
    third = fc.sweep(Counting(), grid, store=tmp_path / "s", executor="serial")
    assert calls == [3.0, 4.0]
    assert third.value.identical(first.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grid": {"beta": [0.1, 0.3]}}, "grid beta was [0.1, 0.2], now [0.1, 0.3]"),
        ({"measure": "equilibrium_rate"}, "measure equilibrium_rtt is no longer there"),
        (
            {"net": network().with_link("bottleneck", capacity=3e6)},
            "link bottleneck capacity was 2000000.0, now 3",
        ),
        (
            {"net": network().with_flow("a", law=fc.LDCC(w=3e4))},
            "flow a w was 20000.0, now 30000.0",
        ),
        ({"until": 7}, "option until was null, now 7.0"),
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
    fc.sweep(lambda p: p["x"], {"x": [1, 2]}, store=tmp_path / "s", executor="serial")
    with pytest.raises(InvalidInput, match="model function was"):
        fc.sweep(lambda p: p["x"] + 1, {"x": [1, 2]}, store=tmp_path / "s", executor="serial")
    monkeypatch.setattr(version, "__version__", "99.0")
    with pytest.raises(InvalidInput, match="version of fluidcc was .*, now .99.0"):
        fc.sweep(lambda p: p["x"], {"x": [1, 2]}, store=tmp_path / "s", executor="serial")


def test_what_a_function_calls_and_closes_over_counts(tmp_path: Path) -> None:
    def make(factor: float) -> Any:
        return lambda p: factor * p["x"]

    fc.sweep(make(2.0), {"x": [1, 2]}, store=tmp_path / "s", executor="serial")
    fc.sweep(make(2.0), {"x": [1, 2]}, store=tmp_path / "s", executor="serial")
    with pytest.raises(InvalidInput, match="another sweep"):
        fc.sweep(make(3.0), {"x": [1, 2]}, store=tmp_path / "s", executor="serial")


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


def chunk(store: Path, number: int) -> Path:
    return store / "value" / "c" / str(number)


# What befalls chunk 1 or 2 of a store: its values, or its note.
DAMAGE: dict[str, Callable[[Path], Any]] = {
    "its values are gone": lambda s: chunk(s, 1).unlink(),
    "its values are cut short": lambda s: chunk(s, 1).write_bytes(chunk(s, 1).read_bytes()[:9]),
    "its values are emptied": lambda s: chunk(s, 1).write_bytes(b""),
    "a bit of its values is flipped": lambda s: chunk(s, 1).write_bytes(
        flipped(chunk(s, 1).read_bytes())
    ),
    "its values are those of another chunk": lambda s: chunk(s, 1).write_bytes(
        chunk(s, 0).read_bytes()
    ),
    "the values of all are gone": lambda s: shutil.rmtree(s / "value" / "c"),
    "its note is gone": lambda s: (s / "chunks" / "2.json").unlink(),
    "its note is empty": lambda s: (s / "chunks" / "2.json").write_text(""),
    "its note is cut short": lambda s: (s / "chunks" / "2.json").write_text(
        '{"seconds": 0.1, "err'
    ),
    "its note is of another shape": lambda s: (s / "chunks" / "2.json").write_text("[1, 2]"),
    "its note lacks a part": lambda s: (s / "chunks" / "2.json").write_text('{"seconds": 0.1}'),
    "its note is nested without end": lambda s: (s / "chunks" / "2.json").write_text("[" * 100_000),
    "its note says another reason": lambda s: (s / "chunks" / "2.json").write_text(
        (s / "chunks" / "2.json").read_text().replace("no value", "a value")
    ),
    "its note is that of another chunk": lambda s: shutil.copy(
        s / "chunks" / "0.json", s / "chunks" / "2.json"
    ),
    "all notes are gone": lambda s: shutil.rmtree(s / "chunks"),
    "Zarr's note of the group is damaged": lambda s: (s / "zarr.json").write_text("[]"),
    "a stranger is among the notes": lambda s: (s / "chunks" / "7x.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.filterwarnings("ignore::fluidcc.base.errors.FluidccWarning")
def test_a_chunk_that_is_lost_or_damaged_is_computed_again(damage: str, tmp_path: Path) -> None:
    grid = {"x": np.arange(8.0)}
    first = fc.sweep(tripled, grid, store=tmp_path / "s", executor="serial", chunk=2)
    DAMAGE[damage](tmp_path / "s")
    for _ in range(2):  # what has been mended stays so
        again = fc.sweep(tripled, grid, store=tmp_path / "s", executor="serial", chunk=2)
        assert again.drop_attrs().identical(first.drop_attrs())
        assert again.value.values.tolist()[:4] == [0, 3, 6, 9]
        assert (again.attrs["failed"], again.attrs["warned"]) == (1, 1)


def test_only_what_is_lost_is_computed_again(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def measured(point: Any) -> dict[str, float]:
        with log.open("a") as file:
            file.write(f"{point['x']:g} ")
        return {
            "one": point["x"],
            "two": math.copysign(math.nan, -1),
        }  # NaN of any bits is a result

    grid = {"x": np.arange(6.0)}
    fc.sweep(measured, grid, store=tmp_path / "s", executor="serial", chunk=2)
    log.write_text("")
    fc.sweep(measured, grid, store=tmp_path / "s", executor="serial", chunk=2)
    assert log.read_text() == ""
    (tmp_path / "s" / "one" / "c" / "1").unlink()
    fc.sweep(measured, grid, store=tmp_path / "s", executor="serial", chunk=2)
    assert log.read_text() == "2 3 "


def as_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


# What befalls the frame of a store, and what the refusal must name.
FRAME: dict[str, tuple[Callable[[Path], Any], str]] = {
    "an array is gone": (lambda s: shutil.rmtree(s / "value"), "value is damaged"),
    "what Zarr says of an array is cut short": (
        lambda s: (s / "value" / "zarr.json").write_text('{\n"shape": '),
        "value is damaged",
    ),
    "an array has another shape": (
        lambda s: (s / "value" / "zarr.json").write_text(
            re.sub(r'"shape": \[\s*8', '"shape": [9', (s / "value" / "zarr.json").read_text())
        ),
        "value is damaged",
    ),
    "sweep.json is empty": (lambda s: (s / "sweep.json").write_text(""), "sweep.json is damaged"),
    "sweep.json is cut short": (
        lambda s: (s / "sweep.json").write_text((s / "sweep.json").read_text()[:99]),
        "sweep.json is damaged",
    ),
    "sweep.json is of another shape": (
        lambda s: (s / "sweep.json").write_text("[]"),
        "sweep.json is damaged",
    ),
    "sweep.json is nested without end": (
        lambda s: (s / "sweep.json").write_text("[" * 100_000),
        "sweep.json is damaged",
    ),
    "sweep.json says a chunk of no points": (
        lambda s: (s / "sweep.json").write_text(
            (s / "sweep.json").read_text().replace('"chunk": 2', '"chunk": 0')
        ),
        "sweep.json is damaged",
    ),
    "sweep.json is gone": (lambda s: (s / "sweep.json").unlink(), "holds something else"),
    "a file is where the notes are": (lambda s: as_file(s / "chunks"), "chunks is damaged"),
    "the lock is a folder": (lambda s: as_folder(s / "lock"), "its file 'lock' cannot be"),
}


@pytest.mark.parametrize("damage", FRAME)
def test_a_store_whose_frame_is_damaged_is_refused(damage: str, tmp_path: Path) -> None:
    def run() -> Any:
        return fc.sweep(
            lambda p: p["x"],
            {"x": np.arange(8.0)},
            store=tmp_path / "s",
            executor="serial",
            chunk=2,
        )

    run()
    do, says = FRAME[damage]
    do(tmp_path / "s")
    with pytest.raises(InvalidInput, match=says) as caught:
        run()
    assert str(tmp_path / "s") in str(caught.value)
    assert re.search(r"; (give|delete|wait)", str(caught.value))


@pytest.mark.parametrize("name", ["lock", "chunks", "sweep.json", "a/b", "..", "", "x" * 300])
def test_a_variable_with_a_name_of_the_stores_own_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="variable .* cannot be kept in a store under this name"):
        fc.sweep(
            lambda p: {name: p["x"]}, {"x": [1.0, 2.0]}, store=tmp_path / "s", executor="serial"
        )
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_store_that_no_folder_can_be_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="store .* cannot be "):
        fc.sweep(lambda p: p["x"], {"x": [1.0, 2.0]}, store=tmp_path / name, executor="serial")


def test_two_sweeps_cannot_share_a_store(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")

    def nested(point: Any) -> float:
        return float(point["x"])

    def outer(point: Any) -> float:
        with pytest.raises(InvalidInput, match="in use"):
            fc.sweep(nested, {"x": [1.0]}, store=tmp_path / "s", executor="serial")
        return 1.0

    # the first two points are tried before the store is made
    def measured(point: Any) -> float:
        return outer(point) if (tmp_path / "s" / "sweep.json").exists() else 1.0

    grid = {"x": np.arange(30.0)}
    data = fc.sweep(measured, grid, store=tmp_path / "s", executor="serial", chunk=30)
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
