"""DataArrays and plain arrays alike: values, axes, and what is left when an axis goes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import UnknownName

__all__ = ["Array", "axis_of", "reduced", "values_of"]

Array = NDArray[np.float64]


def values_of(x: Any, what: str, finite: bool = False) -> Array:
    """The numbers alone."""
    return numbers(getattr(x, "values", x), what, "an array of numbers", finite=finite)


def reduced(x: Any, values: Any, dim: str, name: str | None = None, units: str | None = None) -> Any:
    """`values`, which lack the axis `dim` of the DataArray `x`, with the labels that remain."""
    import xarray as xr

    rest = [d for d in x.dims if d != dim]
    attrs = {k: v for k, v in x.attrs.items() if k == "units"} if units is None else {"units": units}
    return xr.DataArray(values, {d: x.coords[d] for d in rest if d in x.coords}, rest, name or x.name, attrs)


def axis_of(x: Any, dim: str) -> int:
    """Which axis of a DataArray has that name."""
    if not isinstance(dim, str) or dim not in x.dims:
        raise UnknownName(
            f"{x.name or 'the array'} has no dimension {shown(dim)}: it has {', '.join(map(str, x.dims))}"
        )
    return int(x.get_axis_num(dim))
