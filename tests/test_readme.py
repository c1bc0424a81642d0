"""README and the page of the command keep their word: Python runs, commands parse, files load."""

import ast
import inspect
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.cli import main
from fluidcc.cli.parser import make_parser
from fluidcc.cli.sweep_files import _NEEDED, _OF_SWEEP, _OWN

ROOT = Path(__file__).parent.parent
README, SHELL = ROOT / "README.md", ROOT / "docs" / "command_line.md"


def blocks(file: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", file.read_text(), flags=re.M | re.S)


def test_its_numbers_are_those_of_the_library() -> None:
    """Laws and rows of claims are added now and then: to ten; those that are refuted one by one."""
    text, claims = README.read_text(), (ROOT / "figures" / "claims.md").read_text()
    (ready,) = re.findall(r"more than (\d+) are ready", text)
    assert int(ready) == (len({*sources.__all__, *links.__all__}) - 1) // 10 * 10
    ((some, refuted),) = re.findall(
        r"some (\d+) in five papers and [^.]*? (\d+) are\s+refuted", text
    )
    assert refuted == re.findall(r"(\d+) refuted", claims)[0]
    assert int(some) == round(int(re.findall(r"(\d+) claims", claims)[0]), -1)


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


def test_the_files_of_the_page_load_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lte.csv").write_text("time,capacity\n0,6\n1,4\n2,5\n")
    plain, traced, sweep = blocks(SHELL, "toml")
    s = fc.Scenario.loads(plain, "command_line.toml")
    assert s.net.flows["udp"].intervals == ((2.0, 20.0), (30.0, 50.0))
    net = fc.Scenario.loads(traced, "command_line.toml").net
    assert net.links["cellular"].schedule == ((1.0, 4e6), (2.0, 5e6))
    assert net.flow_names == ("b", *(f"b_{k}" for k in range(2, 11)))
    Path("file.toml").write_text(sweep)
    assert main(["sweep", "file.toml"]) == 0
    rows = np.genfromtxt("sweep.csv", delimiter=",", names=True, deletechars="")
    assert len(rows) == 6
    assert set(rows["eta"]) == {0.2, 0.4}
    assert np.isfinite(rows["mean_rate[flow1]_[bit/s]"]).all()
    said = {line.removeprefix("# ").split(" ")[0] for line in sweep.splitlines()}
    assert {*_NEEDED, *_OF_SWEEP, *_OWN} - {"grid", "set", "options"} <= said  # it says them all


def test_which_function_names_calls_as_they_are() -> None:
    text = (ROOT / "docs" / "which_function.md").read_text()
    calls = [c for c in re.findall(r"`(fc\.[^`]*?\)) ?[<`]", text) if "..." not in c]
    assert len(calls) > 14
    for call in calls:
        tree = ast.parse(call, mode="eval").body
        assert isinstance(tree, ast.Call)
        function = eval(ast.unparse(tree.func), {"fc": fc})
        inspect.signature(function).bind(*tree.args, **{k.arg or "": k for k in tree.keywords})
    (averaged,) = re.findall(r"`law(\.averaged\(.*?\))`, with `(.*?)`", text)
    names: dict[str, object] = {"law": fc.AIMD}
    exec(averaged[1], names)
    link = {"capacity": "10 Mbit/s", "delay": "20 ms", "law": fc.RED}
    smooth = eval(f"law{averaged[0]}", names)
    assert isinstance(fc.stability(fc.dumbbell([smooth], link)).stable, bool)
