"""What is finished is kept, through SIGKILL at any moment, and only the same sweep goes on in a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InvalidInput
from fluidcc.sweep.store import differences

ROOT = Path(__file__).parents[2]


def network() -> fc.Network:
    return fc.dumbbell({"a": fc.LDCC}, {"capacity": "2 Mbit/s"}, rtt="50 ms")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
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
        ({"net": network().with_link("bottleneck", capacity=3e6)}, "link bottleneck capacity was 2000000.0, now 3"),
        ({"net": network().with_flow("a", law=fc.LDCC(w=3e4))}, "flow a w was 20000.0, now 30000.0"),
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
    monkeypatch.setattr(fc, "__version__", "99.0")
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


def test_a_damaged_chunk_is_noticed(tmp_path: Path) -> None:
    fc.sweep(lambda p: p["x"], {"x": np.arange(4.0)}, store=tmp_path / "s", executor="serial", chunk=2)
    (file,) = (p for p in (tmp_path / "s" / "value" / "c").rglob("*") if p.name == "1")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(OSError, match="damaged"):
        fc.sweep(lambda p: p["x"], {"x": np.arange(4.0)}, store=tmp_path / "s", executor="serial")


def test_two_sweeps_cannot_share_a_store(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")

    def nested(point: Any) -> float:
        return float(point["x"])

    def outer(point: Any) -> float:
        with pytest.raises(InvalidInput, match="in use"):
            fc.sweep(nested, {"x": [1.0]}, store=tmp_path / "s", executor="serial")
        return 1.0

    # the first two points are tried before the store is made
    data = fc.sweep(lambda p: outer(p) if (tmp_path / "s" / "sweep.json").exists() else 1.0, {"x": np.arange(30.0)},
                    store=tmp_path / "s", executor="serial", chunk=30)  # fmt: skip
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
