"""The command line does what the functions do, and answers a mistake with one line."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import papers as claims
from fluidcc.cli import main
from fluidcc.sweeps.execute import cores


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(path: str) -> Any:
    import xarray as xr

    with xr.open_dataset(path, engine="h5netcdf") as ds:
        return ds.load()


def shell(*args: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """A process of its own; it finds the package where this one did."""
    root = str(Path(fc.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "fluidcc", *args]
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, env=env
    )


def test_a_scenario_becomes_a_result_and_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "ldcc_fig6", "--until", "20 s", "--set", "samples=11"]) == 0
    said = capsys.readouterr()
    assert (said.out.split(), said.err) == (["ldcc_fig6.nc", "ldcc_fig6.png"], "")
    assert Path("ldcc_fig6.png").read_bytes()[:4] == b"\x89PNG"
    result = opened("ldcc_fig6.nc")
    wanted = fc.scenarios["ldcc_fig6"].simulate(until=20.0, samples=11)
    np.testing.assert_allclose(result.rate, wanted.rate, rtol=1e-9)
    assert result.rate.attrs["units"] == "bit/s"
    assert result.attrs["scenario"] == "ldcc_fig6"
    assert result.attrs["steps"] == wanted.attrs["steps"]


def test_a_run_becomes_a_table() -> None:
    assert main(["simulate", "p1", "--until", "2 s", "--set", "samples=5", "-o", "r.csv"]) == 0
    rows = np.genfromtxt("r.csv", delimiter=",", names=True, deletechars="")
    run = fc.scenarios["p1"].simulate(until=2.0, samples=5)
    np.testing.assert_allclose(rows["time_[s]"], run.time)
    for name in run.flow.values:
        np.testing.assert_allclose(
            rows[f"rate[{name}]_[bit/s]"], run.rate.sel(flow=name), rtol=1e-9
        )
    assert len(rows) == 5


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in ((["help"], "exit codes"), (["help", "sweep"], "fluidcc sweep file.toml")):
        assert main(words) == 0
        assert says in capsys.readouterr().out
    assert main(["help", "simlate"]) == 2
    assert "did you mean 'simulate'?" in capsys.readouterr().err


def test_options_of_simulate(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    changes = ("flows.a.params.beta=0.2", "flows.b.initial.x=1 Mbit/s", "until=9 s")
    given = [text for change in changes for text in ("--set", change)]
    files = ["-o", "out/r.nc", "--figure", "f.svg"]
    assert main(["simulate", "p1", *given, "--rtol", "1e-4", "--progress", *files]) == 0
    said = capsys.readouterr()
    assert said.out.split() == [str(Path("out/r.nc")), "f.svg"]
    assert "of 9 s" in said.err
    result = opened("out/r.nc")
    net = fc.scenarios["p1"].net
    net = net.with_flow("a", law=fc.LDCC(beta=0.2)).with_flow("b", initial={"x": 1e6})
    wanted = fc.simulate(net, until=9.0, rtol=1e-4, delays="frozen")
    np.testing.assert_allclose(result.rate, wanted.rate, rtol=1e-12)
    assert result.attrs["rtol"] == 1e-4
    assert "<svg" in Path("f.svg").read_text()
    assert main(["simulate", "p1", "-o", "out/p.pdf"]) == 2
    assert "a picture is --figure" in capsys.readouterr().err


@pytest.mark.slow
def test_no_traceback_in_a_process_of_its_own() -> None:
    done = shell("simulate", "nowhere.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_reader_that_has_seen_enough() -> None:
    read, write = os.pipe()
    os.close(read)
    done = shell("help", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fluidcc.cli.parser.run_simulate", stop)
    assert main(["simulate", "p1"]) == 130
    assert capsys.readouterr().err == "fluidcc: stopped\n"


def test_warnings_are_lines_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import warnings

    def warn(_: Any) -> None:
        warnings.simplefilter("always")
        warnings.warn("look\nhere", fc.errors.FluidccWarning, stacklevel=1)

    monkeypatch.setattr("fluidcc.cli.parser.run_simulate", warn)
    assert main(["simulate", "p1"]) == 0
    assert capsys.readouterr().err == "fluidcc: warning: look here\n"


def test_claims_and_reproduce(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    class Table:
        def __init__(self, *given: Any, **more: Any) -> None:
            asked.append((*given, *more.values()))

        def __repr__(self) -> str:
            return "a table"

        def to_markdown(self) -> str:
            return "| a | table |\n"

        def __iter__(self) -> Any:
            return iter(())

        def counts(self) -> dict[str, int]:
            return {"proved": 3}

        def summary(self) -> str:
            return "3 claims: 3 proved"

    monkeypatch.setattr(claims, "table", Table)
    monkeypatch.setattr(claims, "reproduce", Table)
    for command in (
        ["claims", "ldcc"], ["claims", "--format", "md"], ["reproduce"],
        ["reproduce", "--folder", "x", "--force"],
    ):  # fmt: skip
        assert main(command) == 0
    every = cores()
    assert asked == [
        ("ldcc",), (None,), (Path("figures"), False, every), (Path("x"), True, every),
    ]  # fmt: skip
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["a table", "| a | table |"]
    assert said[2] == f"{Path('figures/claims.md')}: 3 claims: 3 proved"


def test_list_says_of_everything_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = dict(line.split(maxsplit=1) for line in lines if line.startswith("  "))
    assert {"LDCC", "StaticReno", "DropTail", *fc.scenarios, *claims.papers()} <= {*rows}
    assert rows["RED"] == fc.RED.about
    assert rows["tour"] == fc.scenarios["tour"].title


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"fluidcc {fc.__version__}\n"


def test_it_starts_without_the_libraries() -> None:
    code = (
        "import sys, fluidcc.cli; print([m for m in ('numba', 'sympy', 'xarray', 'matplotlib') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_stability_is_a_text_and_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    change = ["--set", "flows.flow1.params.eta=0.5"]
    assert main(["stability", "ldcc_fig5", "-o", "loop.png", *change]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = dict(line.split("  ", 1) for line in lines if "  " in line)
    from fluidcc.network.scenarios import Scenario

    report = fc.stability(Scenario.load("ldcc_fig5", {"flows.flow1.params.eta": 0.5}).net)
    assert said["verdict"].strip() == report.verdict == "stable"
    assert float(said["gain margin"].split()[0]) == pytest.approx(report.gain_margin, rel=1e-4)
    assert Path("loop.png").stat().st_size > 1000


def test_stability_at_a_time_with_flows_of_then(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stability", "ldcc_fig5", "--at", "50 s", "--delays", "frozen", "--certify"]) == 0
    assert "proved" in capsys.readouterr().out


def test_an_equilibrium_is_that_of_the_time_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """In Fig. 5 of LDCC a third flow is there from 100 to 260 s."""
    net = fc.scenarios["ldcc_fig5"].net
    for at, options in ((np.inf, []), (150.0, ["--at", "150 s"])):
        assert main(["equilibrium", "ldcc_fig5", *options]) == 0
        assert capsys.readouterr().out.strip() == str(fc.equilibrium(net, at=at)).strip()


@pytest.mark.parametrize(("scenario", "lost"), [("ldcc_fig6", True), ("p1", False)])
def test_losses_are_drawn_where_there_are_some(
    scenario: str, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    draw = fc.plot.timeseries

    def seen(result: Any, names: list[str]) -> Any:
        drawn.extend(names)
        return draw(result, names)

    monkeypatch.setattr("fluidcc.plotting.timeseries", seen)
    assert main(["simulate", scenario, "--set", "samples=21"]) == 0
    assert ("loss" in drawn) == lost
