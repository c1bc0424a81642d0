"""Results to files: NetCDF, Zarr, Parquet, CSV, by the name's ending."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fluidcc.base.errors import Unsupported
from fluidcc.base.files import check_new, writing

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["ENDINGS", "check_output", "save", "table"]

ENDINGS = (".nc", ".zarr", ".parquet", ".csv")


def check_output(path: Path, *, force: bool = False, keep: Mapping[str, Path] | None = None) -> None:
    """Refuse a name that `save` could not use, or must not: before a long run rather than after it.

    Raises
    ------
    InvalidInput
        See `fluidcc.base.files.check_new`.
    Unsupported
        If the package for its format is not installed.
    """
    check_new(path, "--output", ENDINGS, force=force, keep=keep)
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise Unsupported(
                f"--output {path}: Parquet needs the package pyarrow, which is not installed; "
                "install fluidcc[parquet], or write .nc, .zarr or .csv"
            ) from None


def save(data: xr.Dataset, path: Path) -> None:
    """Write the results of a sweep to a file that `check_output` has found to be good.

    Parameters
    ----------
    path : Path
        Ends in .nc (NetCDF 4), .zarr, .parquet or .csv; the last two hold one row for each point, with a column for
        each axis, variable, and flow or link. Complex variables are two, ``root_real`` and ``root_imaginary``, but in
        Zarr.
    """
    ending = path.suffix.lower()
    with writing(path):
        if ending == ".nc":
            _split(data).to_netcdf(path, engine="h5netcdf")
        elif ending == ".zarr":
            data.to_zarr(path, mode="w", zarr_format=2, consolidated=True)  # format 3 has no settled type for text yet
        elif ending == ".csv":
            table(data).to_csv(path, index=False)
        else:
            table(data).to_parquet(path, index=False)


def _split(data: xr.Dataset) -> xr.Dataset:
    """Complex variables as two, since NetCDF has no complex numbers."""
    for name in [str(n) for n, v in data.data_vars.items() if v.dtype.kind == "c"]:
        parts = {f"{name}_real": data[name].real, f"{name}_imaginary": data[name].imag}
        data = data.drop_vars(name).assign({k: v.assign_attrs(data[name].attrs) for k, v in parts.items()})
    return data


def table(data: xr.Dataset) -> pd.DataFrame:
    """One row for each point: columns for axes, and for each variable one for every flow or link, as ``rate[a]``."""
    import pandas as pd

    axes = [str(d) for d in data.attrs.get("axes", ())] or [str(d) for d in data.dims]
    first = data[axes[0]]
    for axis in axes[1:]:
        first = first.broadcast_like(data[axis])
    columns = {axis: data[axis].broadcast_like(first).transpose(*axes).values.ravel() for axis in axes}
    for name, values in _split(data).data_vars.items():
        rest = [d for d in values.dims if d not in axes]
        stacked = values.transpose(*axes, *rest).values.reshape(len(columns[axes[0]]), -1)
        labels = [""]
        for dim in rest:
            names = data[dim].values if dim in data.coords else range(data.sizes[dim])
            labels = [f"{label},{n}" if label else str(n) for label in labels for n in names]
        for k, label in enumerate(labels):
            column = f"{name}[{label}]" if label else str(name)
            columns[column] = stacked[:, k]
    return pd.DataFrame(columns)
