"""From the results of all points to a labelled dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base import version
from fluidcc.sweeps.chunk import Piece
from fluidcc.sweeps.measures import TOLD
from fluidcc.sweeps.task import Task

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["labelled"]


def labelled(task: Task, piece: Piece) -> xr.Dataset:
    """The results over the axes of the grid; with ``error``, why points failed, and ``warning``, why they are doubtful.

    Each of the two is there only if it says something of some point.
    """
    import xarray as xr

    grid = task.grid
    coords: dict[str, Any] = {axis.name: axis.coordinate() for axis in grid.axes}
    data: dict[str, Any] = {}
    for name, v in task.schema.items():
        values = piece.values[name].reshape(*grid.shape, *v.shape)
        if v.boolean and not np.any(np.isnan(values)):
            values = values.astype(bool)
        data[name] = ((*grid.names, *v.dims), values, dict(v.attrs))
        coords.update({dim: list(labels) for dim, labels in v.coords.items()})
    told = ((piece.errors, "why the point could not be measured"), (piece.doubts, "what makes its results doubtful"))
    for name, (texts, what) in zip(TOLD, told, strict=True):
        if texts:
            column = np.full(grid.size, "", dtype=object)
            column[list(texts)] = list(texts.values())
            about = {"long_name": f"{what}; empty where nothing is to be said"}
            data[name] = (grid.names, column.astype(str).reshape(grid.shape), about)
    result = xr.Dataset(data, coords)
    result.attrs.update(axes=list(grid.names), points=grid.size, failed=len(piece.errors), warned=len(piece.doubts))
    result.attrs.update(point_seconds=piece.seconds)
    result.attrs["fluidcc"] = version.__version__
    return result
