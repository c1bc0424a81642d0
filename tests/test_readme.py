"""The README keeps its word: its Python runs, its scenario loads."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import fluidcc as fc
from fluidcc.cli.parser import make_parser

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), flags=re.M | re.S)


def test_the_tour_runs() -> None:
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, str(README), "exec"), names)
    assert names["net"] == fc.scenarios["tour"].net


def test_the_commands_are_understood() -> None:
    commands = [
        line for block in blocks("sh") for line in block.splitlines() if line.startswith("fluidcc ")
    ]
    assert len(commands) >= 5
    for line in commands:
        given = make_parser().parse_args(shlex.split(line, comments=True)[1:])
        assert callable(given.run)


def test_the_files_it_names_are_there() -> None:
    named = set(re.findall(r"`(fluidcc/[\w/]+\.py)`", README.read_text()))
    assert {name for name in named if not (README.parent / name).is_file()} == {
        "fluidcc/sources/keeper.py"
    }
    notebooks = re.findall(r"^\| `(\w+\.ipynb)` \|", README.read_text(), flags=re.M)
    assert notebooks == sorted(file.name for file in (README.parent / "notebooks").glob("*.ipynb"))


def test_the_scenario_loads() -> None:
    (text,) = blocks("toml")
    s = fc.Scenario.loads(text, "README.toml")
    assert s.net.flows["udp"].intervals == ((2.0, 20.0), (30.0, 50.0))
