"""The bar of a sweep: points, their rate and the time to go, also after a resumption."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base import progress
from fluidcc.base.progress import Progress
from fluidcc.sweeps.execute import BAR

SHOWN = re.compile(
    r"sweep: *\d+%.* of 30 points \[ *[\d.]+(points/s|s/points).*, \d\d:\d\d elapsed, .* to go\]"
)


def measured(point: Any) -> float:
    return float(point["x"]) ** 2


def test_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    fc.sweep(measured, {"x": np.arange(30.0)}, executor="serial", chunk=3, progress=True)
    assert SHOWN.search(screen.getvalue().replace(" points/s", "points/s"))


def test_what_was_finished_before_does_not_make_it_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress(30, True, about="sweep", form=BAR, unit="points", start=20) as bar:
        assert "20 of 30 points" in screen.getvalue()
        bar._bar.start_t -= 10.0
        bar.reach(25)
        shown = bar._bar.format_dict
    assert shown["n"] - shown["initial"] == 5
    assert 9.5 < shown["elapsed"] < 30


def test_a_resumed_sweep_starts_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, float]] = []
    old = Progress.reach

    def reach(self: Progress, count: float) -> None:
        seen.append((self._start, count))
        old(self, count)

    monkeypatch.setattr(Progress, "reach", reach)
    grid = {"x": np.arange(10.0)}
    fc.sweep(measured, grid, executor="serial", chunk=4, store=tmp_path / "s")
    assert seen == [(0, 0), (0, 4), (0, 8), (0, 10)]
    for gone, start in ((2, 8), (0, 6)):  # the last chunk is a short one
        (tmp_path / "s" / "digest" / "c" / f"{gone}").unlink()
        del seen[:]
        fc.sweep(measured, grid, executor="serial", store=tmp_path / "s")
        assert seen == [(start, start), (start, 10)]


@pytest.mark.slow
def test_in_jupyter(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook()
    lines = [
        "import time",
        "import fluidcc as fc, fluidcc.base.progress as progress",
        "progress.PATIENCE = 0.05",
        "slow = lambda p: time.sleep(0.02) or p['x']",
        "fc.sweep(slow, {'x': list(range(30))}, executor='serial', chunk=3)",
    ]
    book.cells = [nbformat.v4.new_code_cell("\n".join(lines))]
    where = {"metadata": {"path": str(Path(__file__).parents[2])}}
    client.NotebookClient(book, timeout=120, resources=where).execute()
    said = json.dumps([out for out in book.cells[0].outputs if out.output_type != "execute_result"])
    assert "sweep" in said
    assert "of 30 points" in said
