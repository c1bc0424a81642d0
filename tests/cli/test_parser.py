"""What the parser offers: examples that run, JSON, suggestions, completion."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.cli import main, plain
from fluidcc.cli.completion import script
from fluidcc.cli.parser import commands_of, make_parser

COMMANDS = dict(commands_of(make_parser()))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_are_understood(name: str) -> None:
    head, *lines = str(COMMANDS[name].epilog).splitlines()
    assert head == "examples:"
    for line in lines:
        words = shlex.split(line.split(" > ")[0].split(" >> ")[0])
        assert words[:2] == ["fluidcc", name]
        assert make_parser().parse_args(words[1:]).run


def said(*args: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints as JSON, which has no NaN in it."""
    assert main([*args, "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_what_commands_say_is_json_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rest = said("equilibrium", "ldcc_fig5", capsys=capsys)
    net = fc.scenarios["ldcc_fig5"].net
    assert rest["rate"] == dict(zip(net.flows, fc.equilibrium(net).rate.values, strict=True))
    assert rest["at"] is None
    report = said("stability", "ldcc_fig5", capsys=capsys)
    judged = fc.stability(net)
    assert (report["verdict"], report["stable"]) == ("stable", True)
    assert report["gain_margin"] == judged.gain_margin
    assert report["rightmost_roots"][0] == [judged.rightmost_roots[0].real, 0.0]
    run = said("simulate", "p1", "--set", "samples=11", capsys=capsys)
    assert (run["output"], run["figure"], run["delays"]) == ("p1.nc", "p1.png", "frozen")
    there = said("list", capsys=capsys)
    assert there["sources"]["LDCC"] == fc.LDCC.about
    Path("grid.toml").write_text(
        'scenario = "p1"\nmeasure = "mean_rate"\nuntil = 1\n[grid]\n"a.beta" = [0.1, 0.2]\n'
    )
    grid = said("sweep", "grid.toml", "--executor", "serial", capsys=capsys)
    assert (grid["output"], grid["points"], grid["failed"]) == ("grid.nc", 2, 0)
    assert grid["first_failure"] is None
    assert Path(said("dask-config", capsys=capsys)["file"]).is_file()
    assert said("completion", "fish", capsys=capsys)["script"] == script("fish", COMMANDS)


def test_claims_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = fc.claims.table("ldcc", only="(16)")
    monkeypatch.setattr(fc.claims, "table", lambda paper: few)
    (row,) = said("claims", "ldcc", capsys=capsys)
    assert (row["id"], row["place"], row["verdict"]) == (few[0].id, "(16)", "proved")


def test_what_json_has_no_word_for() -> None:
    given = {1: np.array([1.0, np.nan, np.inf]), "z": 1 - 2j, "path": Path("a"), "n": np.int64(3)}
    assert plain(given) == {
        "1": [1.0, None, None], "z": [1.0, -2.0], "path": "a", "n": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["simulte"], "there is no 'simulte' here; did you mean 'simulate'"),
        (["simulate", "p1", "--untl", "3"], "there is no option '--untl' here; did you mean '--un"),
        (
            ["equilibrium", "p1", "--dlays", "fifo"],
            "fluidcc equilibrium: there is no option '--dlays' here; did you mean",
        ),
        (["stability", "p1", "--delays", "fif"], "there is no 'fif' here; did you mean 'fifo'"),
    ],
)
def test_a_mistyped_word(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(args)
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


# --- completion -----------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fluidcc s", "simulate sweep stability"),
        ("fluidcc simulate ldcc_fig1", " ".join(f"ldcc_fig1{k}" for k in range(5))),
        ("fluidcc stability p1 --delays ", "fifo frozen"),
        ("fluidcc claims bi", "binomial"),
        ("fluidcc simulate p1 --progr", "--progress"),
        ("fluidcc simulate p1 -o ", ""),
    ],
)
def test_bash_completes(typed: str, offered: str) -> None:
    words = " ".join(f"'{word}'" for word in typed.split(" "))
    code = (
        f"{script('bash', COMMANDS)}\nCOMP_WORDS=({words})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}}-1))\n"
    )
    code += '_fluidcc\necho "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == offered


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fluidcc s", ["simulate", "stability", "sweep"]),
        ("fluidcc simulate ldcc_fig1", ["ldcc_fig10", "ldcc_fig11"]),
        ("fluidcc claims ", ["binomial", "delay_aimd", "ecf", "fast", "ldcc"]),
        ("fluidcc stability p1 --delays ", ["fifo", "frozen"]),
        ("fluidcc simulate p1 --progr", ["--progress"]),
    ],
)
def test_fish_completes(typed: str, offered: list[str]) -> None:
    code = f"{script('fish', COMMANDS)}\ncomplete -C '{typed}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], capture_output=True, text=True, check=True
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == offered


def test_zsh_and_fish_have_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("zsh", COMMANDS).endswith(script("bash", COMMANDS))
    assert main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, command in COMMANDS.items():
        assert any(f"-n __fish_use_subcommand -f -a {name} " in line for line in lines)
        own = [line for line in lines if f"__fish_seen_subcommand_from {name}'" in line]
        for option in command._option_string_actions:
            if option.startswith("--"):
                assert any(f"-l {option[2:]} " in line for line in own)
    assert all(line.replace(r"\'", "").count("'") % 2 == 0 for line in lines)
