"""Statistics of trajectories by name."""

from __future__ import annotations

import numpy as np

from fluidcc.metrics import mean
from fluidcc.sweep.measures import Value
from fluidcc.sweep.point import Point

__all__ = ["statistic"]


def statistic(name: str, point: Point) -> Value:
    """``mean_rate`` and the like, of the window of a point's run."""
    kind, _, variable = name.partition("_")
    data = point.run[variable]
    first, last = point.options.get("window") or (0.0, point.until)
    part = data.sel(time=slice(first, last))
    if kind == "final":
        values = data.values[-1]
    elif kind in ("min", "max"):
        values = getattr(part, kind)("time").values
    else:
        values = mean(data, first, last).values
        if kind == "std":
            values = np.sqrt(mean((data - values) ** 2, first, last).values)
    dim = str(data.dims[1])
    return Value(np.asarray(values), (dim,), {dim: tuple(data[dim].values.tolist())}, {"units": data.attrs["units"]})
