"""Sweep files, the command line, and results on disk."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput, Unsupported
from fluidcc.base.packed import axes_of
from fluidcc.cli import main
from fluidcc.cli.sweep_files import check_output, save, table

GOOD = """
scenario = "small.toml"
measure = ["mean_rate", "equilibrium_rtt"]
until = "3 s"
window = ["1 s", "3 s"]

[grid]
beta = [0.1, 0.2]
capacity = { from = "2 Mbit/s", to = "4 Mbit/s", points = 3 }

[set]
"flows.a.params.eta" = 0.3

[options]
rtol = 1e-7
"""
SMALL = """
until = "9 s"
[links.l]
capacity = "3 Mbit/s"
delay = "25 ms"
[flows.a]
law = "LDCC"
route = ["l"]
[flows.b]
law = "LDCC"
route = ["l"]
"""


def write(folder: Path, text: str) -> Path:
    (folder / "small.toml").write_text(SMALL)
    file = folder / "sweep.toml"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def wanted() -> xr.Dataset:
    """The call that the file stands for."""
    flows = dict.fromkeys("ab", fc.LDCC)
    net = fc.dumbbell(flows, {"name": "l", "capacity": "3 Mbit/s", "delay": "25 ms"})
    net = net.with_flow("a", law=fc.LDCC(eta=0.3))
    grid = {"beta": [0.1, 0.2], "capacity": [2e6, 3e6, 4e6]}
    what: Any = net, grid, ["mean_rate", "equilibrium_rtt"]
    return fc.sweep(*what, until=3, window=(1, 3), rtol=1e-7)


@pytest.mark.parametrize("ending", [".nc", ".zarr", ".csv", ".parquet"])
def test_a_file_is_the_call(
    tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str], wanted: xr.Dataset
) -> None:
    file, output = write(tmp_path, GOOD), tmp_path / f"out{ending}"
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    store = ["--store", str(tmp_path / "store")] if ending == ".nc" else []
    assert main(["sweep", str(file), "--output", str(output), "--executor", "serial", *store]) == 0
    assert "6 points" in capsys.readouterr().out
    if ending in (".csv", ".parquet"):
        frame = pd.read_csv(output) if ending == ".csv" else pd.read_parquet(output)
        unit = " [bit/s]" if ending == ".csv" else ""
        heads = ["beta", *(f"{n}{unit}" for n in ("capacity", "mean_rate[a]", "mean_rate[b]"))]
        assert list(frame)[:4] == heads
        rates = wanted.mean_rate.sel(flow="b").values.ravel()
        np.testing.assert_array_equal(frame[heads[3]], rates)
        np.testing.assert_array_equal(frame[heads[1]], [2e6, 3e6, 4e6] * 2)
        return
    with opened(output) as read:
        xr.testing.assert_equal(read.load(), wanted)
        assert axes_of(read) == ["beta", "capacity"]


def test_a_sweep_survives_the_netcdf_of_scipy_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a base install has: the thread pydata/xarray#8148."""
    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    grid = {"beta": [0.1, 0.2], "capacity": ["3 Mbit/s", "1 Mbit/s"]}
    ds = fc.sweep(net, grid, ["stable", "delay_margin", "equilibrium_rate"], executor="serial")
    ds.to_netcdf(tmp_path / "a.nc", engine="scipy")
    monkeypatch.setattr("fluidcc.cli.sweep_files.find_spec", lambda name: None)
    save(ds.assign(root=1j * ds.delay_margin), tmp_path / "b.nc")
    for name in ("a.nc", "b.nc"):
        with xr.open_dataset(tmp_path / name, engine="scipy") as read:
            xr.testing.assert_equal(read[list(ds)].load(), ds)
            assert list(table(read))[:2] == axes_of(read) == ["beta", "capacity"]


def opened(path: Path) -> Any:
    if path.suffix == ".nc":
        return xr.open_dataset(path, engine="h5netcdf")
    return xr.open_zarr(path)


@pytest.mark.filterwarnings("default::fluidcc.base.errors.FluidccWarning")
def test_the_command_tells_of_doubtful_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Windows of few packets at the smaller capacity: in the file, and on the terminal."""
    text = 'scenario = "small.toml"\nmeasure = "mean_rate"\n[grid]\ncapacity = [1e5, 3e6]\n'
    file, output = write(tmp_path, text), str(tmp_path / "out.csv")
    small = SMALL.replace("LDCC", "StaticReno").replace("delay", 'buffer = "20 kbit"\ndelay')
    (tmp_path / "small.toml").write_text(small)
    assert main(["sweep", str(file), "--output", output, "--executor", "serial"]) == 0
    said = capsys.readouterr()
    assert "2 points in " in said.out
    assert said.out.endswith("0 failed, 1 with a warning\n")
    told = "fluidcc: warning: 1 of 2 points carry a warning, in the variable 'warning'; the first"
    assert said.err.startswith(told)
    texts = pd.read_csv(output, keep_default_na=False)["warning"].tolist()
    assert ["single packets then rule" in text for text in texts] == [True, False]


def test_failures_and_complex_numbers_survive(tmp_path: Path) -> None:
    def measured(p: Any) -> dict[str, Any]:
        if p["x"] == 2:
            raise ValueError("two")
        return {"root": complex(-p["x"], 1.0)}

    with pytest.warns(FluidccWarning, match="1 of 3 points failed"):
        ds = fc.sweep(measured, {"x": [1, 2, 3]})
    for ending in (".nc", ".zarr"):
        save(ds, tmp_path / f"out{ending}")
        with opened(tmp_path / f"out{ending}") as read:
            root = read.root if "root" in read else read.root_real + 1j * read.root_imaginary
            np.testing.assert_array_equal(root, ds.root)
            assert [str(t) for t in read.error.astype(str).values] == ["", "ValueError: two", ""]
    assert list(table(ds)) == ["x", "error", "root_real", "root_imaginary"]
    for ending in (".csv", ".parquet") if importlib.util.find_spec("pyarrow") else (".csv",):
        file = tmp_path / f"out{ending}"
        save(ds, file)
        csv = ending == ".csv"
        frame = pd.read_csv(file, keep_default_na=False) if csv else pd.read_parquet(file)
        assert list(frame["error"]) == ["", "ValueError: two", ""]
        reals = [float(v or "nan") for v in frame["root_real"]]
        assert reals == pytest.approx([-1, np.nan, -3], nan_ok=True)


def test_outputs_that_cannot_be_written_are_refused_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        check_output(tmp_path / "no" / "x.nc")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unsupported, match=r'needs the package pyarrow, .*"\.\[store\]"'):
        check_output(tmp_path / "x.parquet")


def test_a_cluster_without_dask_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    file = write(tmp_path, GOOD)
    assert main(["sweep", str(tmp_path / "no.toml")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["sweep", str(file), "--scheduler", "tcp://127.0.0.1:8786"]) == 2
    says = 'needs the package distributed, which is not installed: pip install ".[cluster]"'
    assert says in capsys.readouterr().err
