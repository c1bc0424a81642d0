"""Sweeps from files to files: ``fluidcc sweep file.toml``, and what it reads and writes.

A sweep file has a scenario, a grid, measures and where the results go, in TOML. Errors name file,
key, value and remedy.

.. code-block:: toml

    scenario = "ldcc_fig5"              # a ready scenario, or a scenario file beside this one
    measure = ["mean_rate", "max_queueing_delay"]
    window = ["100 s", "200 s"]
    output = "sweep.nc"

    [grid]
    beta = [0.1, 0.2]
    capacity = { from = "1 Mbit/s", to = "10 Mbit/s", points = 5, scale = "log" }

    [options]                           # those of fluidcc.simulate
    rtol = 1e-6
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc.base.arguments import brief, shown
from fluidcc.base.errors import FluidccError, InvalidInput, ScenarioError
from fluidcc.base.extras import need
from fluidcc.base.files import check_new, writing
from fluidcc.base.packed import axes_of
from fluidcc.network.scenarios import Scenario, check_table, located, scenarios, toml
from fluidcc.sweeps.api import make_task, sweep
from fluidcc.sweeps.execute import Execution
from fluidcc.sweeps.measures import OF_RUNS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# How results are written, and the package that this takes.
ENDINGS = {".nc": "", ".zarr": "zarr", ".parquet": "pyarrow", ".csv": ""}
PATIENCE = 10.0  # seconds in which a scheduler must answer


# --- the command ----------------------------------------------------------------------------------


def run_file(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Run a sweep file by the arguments of the command line, which win over what the file says.

    Returns
    -------
    tuple
        What there is to say, as text and as data.
    """
    scenario, given, file = load_sweep(args.file)
    output = args.output or Path(file.get("output") or f"{Path(args.file).stem}.nc")
    if args.store is not None:
        given["store"] = args.store
    keep = {"the sweep's file": Path(args.file)}
    beside = Path(args.file).parent / file["scenario"]
    keep |= {"its scenario": beside} if _is_file(beside) else {}
    keep |= {"its store": Path(given["store"])} if given.get("store") else {}
    check_output(output, force=args.force, keep=keep)
    if args.workers is not None:
        given["workers"] = args.workers
    if args.executor is not None:
        given["executor"] = args.executor
    with _client(args.scheduler) as client:
        if client is not None:
            given["executor"] = client
        data = sweep(
            scenario, given.pop("grid"), given.pop("measure"), progress=args.progress, **given
        )
    data.attrs.update(scenario=scenario.name, title=file.get("title") or scenario.title)
    save(data, output)
    failed = int(data.attrs["failed"])
    warned = f", {data.attrs['warned']} with a warning" if data.attrs["warned"] else ""
    text = (
        f"{output}: {data.attrs['points']} points in {data.attrs['seconds']:.3g} s, {failed} "
        f"failed{warned}"
    )
    first = next(filter(None, data["error"].values.ravel()), None) if failed else None
    return text, {"output": output, "first_failure": first, **data.attrs}


def _client(address: str | None) -> AbstractContextManager[Any]:
    if address is None:
        return nullcontext()
    distributed = need("distributed", "cluster", f"--scheduler {address}")
    try:
        distributed.comm.get_address_host_port(
            address
        )  # a client of what is no address would take 20 s to end, with a traceback
        # Not the process's default: one that cannot connect would leave Dask's scheduler set to a
        # cluster that is not.
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"--scheduler {address}: there is no Dask scheduler ({' '.join(str(error).split())}); "
            "start one with 'dask scheduler', and workers with 'dask worker ADDRESS'"
        ) from None


# --- sweep files ----------------------------------------------------------------------------------


_NEEDED = {
    "scenario": "a ready scenario or a scenario file, such as 'ldcc_fig5'",
    "measure": "the name of a measure, such as 'mean_rate', or a list of them",
    "grid": "a table of axes, such as beta = [0.1, 0.2] below [grid]",
}
_OF_SWEEP = ("until", "window", "store", "refine", "chunk", "workers", "executor")
_OWN: dict[str, tuple[type, str]] = {  # what `sweep` does not check: its type, and what is right
    "scenario": (str, _NEEDED["scenario"]),
    "output": (str, "a file, such as 'sweep.nc'"),
    "store": (str, "a folder, such as 'sweep.zarr'"),
    "title": (str, "text"),
    "set": (dict, 'a table of changes of the scenario, such as "flows.a.params.beta" = 0.2'),
    "options": (dict, "a table of options of simulate, such as rtol = 1e-6"),
}
_OPTIONS = sorted({*OF_RUNS} - {"restart"})


def load_sweep(path: str | Path) -> tuple[Scenario, dict[str, Any], dict[str, Any]]:
    """Read a sweep file.

    Returns
    -------
    tuple
        The scenario, the arguments of `fluidcc.sweep` besides it, and what the file says.

    Raises
    ------
    ScenarioError
        If there is no such file, or something in it is wrong.
    """
    path = Path(path)
    if not _is_file(path):
        raise ScenarioError(
            f"{brief(str(path))}: no such file; give a TOML file with a scenario, a measure and a "
            "grid"
        )
    file = toml(path.read_bytes(), path.name)
    if "flows" in file:
        raise ScenarioError(
            f"{path.name} is a scenario; run it with 'fluidcc simulate', or give a file of a "
            f"sweep, with scenario = '{path.name}', a measure and a grid"
        )
    check_table(file, {*_NEEDED, *_OF_SWEEP, *_OWN}, _NEEDED, path.name)
    for key, (kind, right) in _OWN.items():
        if key in file and not isinstance(file[key], kind):
            raise ScenarioError(f"{path.name}, {key} is {shown(file[key])}; give {right}")
    options, changes = file.get("options", {}), file.get("set", {})
    check_table(options, _OPTIONS, {}, path.name, "options")
    beside = path.parent / file["scenario"]
    try:
        scenario = Scenario.load(beside if _is_file(beside) else file["scenario"], changes)
    except FluidccError as error:
        there = file["scenario"] in scenarios or _is_file(beside)
        key = "set" if changes and there else "scenario"
        raise ScenarioError(f"{path.name}, {key}: {error}") from error
    with located(path.name, ""):  # as `sweep` would, but with the name of the file
        until, window = file.get("until"), file.get("window")
        make_task(scenario, file["grid"], file["measure"], until, window, options)
        Execution(**{k: file[k] for k in ("store", "chunk", "workers") if k in file})
    given = {k: file[k] for k in ("grid", "measure", *_OF_SWEEP) if k in file}
    return scenario, {**given, **options}, file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no name that a file can have
        return False


# --- results on disk ------------------------------------------------------------------------------


def check_output(
    path: Path, *, force: bool = False, keep: Mapping[str, Path] | None = None
) -> None:
    """Refuse a name that `save` could not use, or must not: before a long run rather than after it.

    Raises
    ------
    InvalidInput
        See `fluidcc.base.files.check_new`.
    Unsupported
        If the package for its format is not installed.
    """
    check_new(path, "--output", list(ENDINGS), force=force, keep=keep)
    if package := ENDINGS[path.suffix.lower()]:
        need(package, "store", f"--output {path}")


def save(data: xr.Dataset, path: Path) -> None:
    """Write the results of a sweep to a file that `check_output` has found to be good.

    Parameters
    ----------
    path : Path
        Ends in .nc (NetCDF 4, or 3 where h5netcdf is not installed), .zarr, .parquet or .csv; the
        last two hold one row for each point, with a column for each axis, variable, and flow or
        link; heads of columns in .csv have units. Complex variables are two, ``root_real`` and
        ``root_imaginary``, but in Zarr.
    """
    ending = path.suffix.lower()
    with writing(path):
        if ending == ".nc":
            engine: Any = "h5netcdf" if find_spec("h5netcdf") and find_spec("h5py") else "scipy"
            _split(data).to_netcdf(path, engine=engine)
        elif ending == ".zarr":
            data.to_zarr(
                path, mode="w", zarr_format=2, consolidated=True
            )  # format 3 has no settled type for text yet
        elif ending == ".csv":
            write_csv(data, path)
        else:
            table(data).to_parquet(path, index=False)


def _split(data: xr.Dataset) -> xr.Dataset:
    """Complex variables as two, since NetCDF has no complex numbers."""
    for name in [str(n) for n, v in data.data_vars.items() if v.dtype.kind == "c"]:
        parts = {f"{name}_real": data[name].real, f"{name}_imaginary": data[name].imag}
        data = data.drop_vars(name).assign(
            {k: v.assign_attrs(data[name].attrs) for k, v in parts.items()}
        )
    return data


def write_csv(data: xr.Dataset, path: Path, axes: list[str] | None = None) -> None:
    """Write a `table` with units in its head, as ``rate[a] [bit/s]``."""
    frame, variables = table(data, axes), _split(data).variables
    units = [variables[name.partition("[")[0]].attrs.get("units") for name in frame]
    heads = [
        name if unit in (None, "", "1") else f"{name} [{unit}]"
        for name, unit in zip(frame, units, strict=True)
    ]
    frame.to_csv(path, index=False, header=heads)


def table(data: xr.Dataset, axes: list[str] | None = None) -> pd.DataFrame:
    """One row for each point: columns for axes, and for each variable one for every flow or link,
    as ``rate[a]``.
    """
    axes = axes_of(data) if axes is None else axes
    columns = {}
    for name, values in _split(data).data_vars.items():
        rest = [d for d in values.dims if d not in axes]
        for place in product(*(range(data.sizes[d]) for d in rest)):
            at = dict(zip(rest, place, strict=True))
            label = ",".join(
                str(data[d].values[i] if d in data.coords else i) for d, i in at.items()
            )
            column = f"{name}[{label}]" if rest else str(name)
            columns[column] = values.isel(at).drop_vars(rest, errors="ignore")
    return data[axes].assign(columns).to_dataframe(dim_order=axes).reset_index()
