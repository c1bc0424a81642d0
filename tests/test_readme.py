"""The README keeps its word: its Python runs, its scenario loads."""

from __future__ import annotations

import re
from pathlib import Path

import fluidcc as fc

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), flags=re.M | re.S)


def test_the_tour_runs() -> None:
    (tour,) = blocks("python")
    names: dict[str, object] = {}
    exec(compile(tour, str(README), "exec"), names)
    assert names["net"] == fc.scenarios["tour"].net


def test_the_scenario_loads() -> None:
    (text,) = blocks("toml")
    s = fc.Scenario.loads(text, "README.toml")
    assert s.net.flows["udp"].intervals == ((2.0, 20.0), (30.0, 50.0))
