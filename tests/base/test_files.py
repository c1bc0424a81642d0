"""No command replaces what it reads, or a file that is there unless it is forced."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from fluidcc import papers as claims
from fluidcc.base.errors import InvalidInput
from fluidcc.base.files import check_new
from fluidcc.cli import main

LINK = '[links.l]\ncapacity = "2 Mbit/s"\ndelay = "25 ms"\n'
OWN = f'until = "1 s"\n{LINK}[flows.a]\nlaw = "LDCC"\nroute = ["l"]\n'
SWEEP = 'scenario = "own.toml"\nmeasure = "equilibrium_rtt"\n[grid]\nbeta = [0.1, 0.2]\n'
SECRET = b"of somebody else"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(OWN)
    Path("grid.toml").write_text(SWEEP)
    Path("sub").mkdir()


def everything() -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(Path().rglob("*")) if p.is_file()}


def refused(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with one line, and every file is as it was."""
    before = everything()
    assert main(args) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert "give" in error or "must end in" in error
    assert everything() == before


ENDINGS: list[tuple[list[str], str]] = [
    (["simulate", "own.toml", "--output", "own.toml"], "own.toml: its name must end in .nc"),
    (["simulate", "own.toml", "--output", "mine.txt"],
     "mine.txt: its name must end in .nc"),
    (["simulate", "own.toml", "--output", "mine"], "mine: its name must end in .nc"),
    (["simulate", "own.toml", "--figure", "own.toml"],
     "own.toml: its name must end in .pdf, .png or .svg"),
    (["simulate", "own.toml", "--figure", "x.jpeg"],
     "--figure x.jpeg: its name must end in .pdf, .png or .svg"),
    (["stability", "own.toml", "-o", "own.toml"],
     "own.toml: its name must end in .pdf, .png or .svg"),
    (["sweep", "grid.toml", "-o", "grid.toml"],
     "grid.toml: its name must end in .nc, .zarr, .parquet or .csv"),
    (["sweep", "grid.toml", "-o", "x.txt"],
     "x.txt: its name must end in .nc, .zarr, .parquet or .csv"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "says"), ENDINGS, ids=[" ".join(args) for args, _ in ENDINGS])
@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "forced"])
def test_an_ending_that_is_no_format_is_refused(
    args: list[str], says: str, force: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused([*args, *force], says, capsys)


COMMANDS = {
    "simulate": (["simulate", "own.toml"], "own.nc"),
    "simulate --output": (["simulate", "own.toml", "--output", "a.nc"], "a.nc"),
    "simulate --output, its figure": (["simulate", "own.toml", "--output", "a.nc"], "a.png"),
    "simulate in capitals": (["simulate", "own.toml", "--figure", "A.PNG"], "A.PNG"),
    "simulate, spelled otherwise": (["simulate", "own.toml", "--output", "sub/../a.nc"], "a.nc"),
    "stability": (["stability", "own.toml", "-o", "a.pdf"], "a.pdf"),
    "sweep": (["sweep", "grid.toml"], "grid.nc"),
    "sweep --output": (["sweep", "grid.toml", "--output", "a.csv"], "a.csv"),
    "sweep to Zarr": (["sweep", "grid.toml", "--output", "a.zarr"], "a.zarr"),
    "reproduce, a picture": (["reproduce", "--folder", "sub"], "sub/ldcc_fig5.png"),
    "reproduce, the table": (["reproduce", "--folder", "sub"], "sub/claims.md"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["a file", "a link to a file", "a link to nothing"])
def test_a_file_that_is_there_is_not_replaced(
    command: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    args, name = COMMANDS[command]
    if kind == "a file":
        Path(name).write_bytes(SECRET)
    else:
        Path(name).symlink_to(Path("letter").absolute())
    if kind == "a link to a file":
        Path("letter").write_bytes(SECRET)
    more = ", and not made by" if args[0] == "reproduce" else ""
    refused(args, f"is there already{more}", capsys)


READ: dict[str, tuple[Callable[[Path, Path], Any], str, list[str]]] = {
    "a hard link to the scenario": (os.link, "own.toml",
     ["simulate", "own.toml", "--output", "x.nc"]),
    "a link to the scenario": (os.symlink, "own.toml",
     ["simulate", "own.toml", "--output", "x.nc"]),
    "a figure that is the scenario": (os.symlink, "own.toml",
     ["simulate", "own.toml", "--figure", "x.png"]),
    "a figure that is the output": (os.symlink, "y.nc",
     ["simulate", "own.toml", "-o", "y.nc", "--figure", "x.png"]),
    "a judged scenario": (os.link, "own.toml", ["stability", "own.toml", "-o", "x.png"]),
    "a sweep's file": (os.link, "grid.toml", ["sweep", "grid.toml", "-o", "x.csv"]),
    "a sweep's scenario": (os.link, "own.toml", ["sweep", "grid.toml", "-o", "x.nc"]),
    "a place in a sweep's store": (os.symlink, "sub/new.csv",
     ["sweep", "grid.toml", "--store", "sub", "-o", "x.csv"]),
    "a sweep's store": (os.symlink, "sub",
     ["sweep", "grid.toml", "--store", "sub", "-o", "x.zarr"]),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_what_a_command_reads_is_never_replaced(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    link, target, args = READ[case]
    name = next(a for a in reversed(args) if a.startswith("x."))
    link(Path(target), Path(name))
    refused([*args, "--force"], "which must stay", capsys)
    assert Path("own.toml").read_text() == OWN


def test_a_store_is_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "grid.toml", "--store", "s.zarr", "--executor", "serial"]) == 0
    capsys.readouterr()
    for more in (["--store", "s.zarr"], ["--store", "s.zarr/inside"]):
        refused(["sweep", "grid.toml", "-o", "s.zarr", "--force", *more], "which must stay", capsys)
    refused(["sweep", "grid.toml", "-o", "s.zarr", "--force"], "is the store of a sweep", capsys)
    Path("sub/letter").write_bytes(SECRET)
    Path("sub").rename("sub.zarr")
    args = ["sweep", "grid.toml", "-o", "sub.zarr", "--force"]
    refused(args, "is a folder of something else", capsys)


@pytest.mark.slow
def test_what_is_forced_is_replaced() -> None:
    for name in ("own.nc", "own.png", "loop.png", "grid.csv", "figure.png"):
        Path(name).write_bytes(SECRET)
    assert main(["simulate", "own.toml", "--force"]) == 0
    with xr.open_dataset("own.nc", engine="h5netcdf") as run:
        assert run.attrs["scenario"] == "own"
    assert main(["stability", "own.toml", "-o", "loop.png", "--force"]) == 0
    assert main(["sweep", "grid.toml", "-o", "grid.csv", "--executor", "serial", "--force"]) == 0
    zarr = ["sweep", "grid.toml", "-o", "grid.ZARR", "--executor", "serial", "--force"]
    assert [main(zarr), main(zarr)] == [0, 0]
    with xr.open_zarr("grid.ZARR") as found:
        np.testing.assert_array_equal(found.beta, [0.1, 0.2])
    assert Path("own.png").read_bytes()[:4] == Path("loop.png").read_bytes()[:4] == b"\x89PNG"
    assert Path("grid.csv").read_text().startswith("beta,equilibrium_rtt[a]")
    assert Path("figure.png").read_bytes() == SECRET


def test_reproduce_replaces_what_it_has_made_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    room = sys.modules["fluidcc.papers.reproduction"]
    monkeypatch.setattr(room, "papers", lambda: ("ldcc",))
    monkeypatch.setattr(room, "_figures", lambda paper: {"fig": lambda: None})
    monkeypatch.setattr(room, "_other", dict)
    monkeypatch.setattr(room, "claims_of", lambda paper: ())
    monkeypatch.setattr(room, "_save", lambda figure, path: path.write_text("drawn"))
    Path("sub/fig.png").write_bytes(SECRET)
    with pytest.raises(InvalidInput, match=r"fig\.png is there already, and not made by `fluidcc"):
        claims.reproduce("sub")
    assert Path("sub/fig.png").read_bytes() == SECRET
    claims.reproduce("sub", force=True)
    for folder in ("sub", "figures", "figures"):
        claims.reproduce(folder)
        assert Path(folder, "fig.png").read_text() == "drawn"


@pytest.mark.parametrize("name", ["a\0.nc", f"{'x' * 300}.nc", "own.toml/x.nc"])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    says = r"--output .*(cannot be written|there is no folder)"
    with pytest.raises(InvalidInput, match=says) as caught:
        check_new(Path(name), "--output", (".nc",))
    assert "\0" not in str(caught.value)


def test_a_full_disk_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("this system has no /dev/full")
    Path("full.nc").symlink_to("/dev/full")
    args = ["simulate", "own.toml", "-o", "full.nc", "--figure", "f.png", "--force"]
    refused(args, "no space left on device", capsys)
