"""README and the page of the command keep their word: Python runs, commands parse, files load."""

import re
import shlex
from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.cli.parser import make_parser

ROOT = Path(__file__).parent.parent
README, SHELL = ROOT / "README.md", ROOT / "docs" / "command_line.md"


def blocks(file: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", file.read_text(), flags=re.M | re.S)


def test_the_tour_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    first, *rest = blocks(README, "python")
    exec(compile(first, str(README), "exec"), names)
    assert capsys.readouterr().out.split() == blocks(README, "text")[0].split()
    for block in rest:
        exec(compile(block, str(README), "exec"), names)
    assert names["net"] == fc.scenarios["tour"].net


@pytest.mark.parametrize(("file", "least"), [(README, 1), (SHELL, 12)])
def test_the_commands_are_understood(file: Path, least: int) -> None:
    lines = "".join(blocks(file, "sh")).splitlines()
    commands = [line for line in lines if line.startswith("fluidcc ")]
    assert len(commands) >= least
    for line in commands:
        given = make_parser().parse_args(shlex.split(line.split(" | ")[0], comments=True)[1:])
        assert callable(given.run)


def test_the_files_it_names_are_there() -> None:
    text = README.read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).exists()] == []
    named = set(re.findall(r"`(fluidcc/[\w/]+\.py)`", text))
    assert {name for name in named if not (ROOT / name).is_file()} == {"fluidcc/sources/keeper.py"}


def test_the_scenario_loads() -> None:
    (text,) = blocks(SHELL, "toml")
    s = fc.Scenario.loads(text, "command_line.toml")
    assert s.net.flows["udp"].intervals == ((2.0, 20.0), (30.0, 50.0))
