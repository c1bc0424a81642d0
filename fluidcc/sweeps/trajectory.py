"""Statistics of trajectories by name."""

from __future__ import annotations

import numpy as np

from fluidcc.sweeps.grid_point import Point
from fluidcc.sweeps.measures import KINDS, Value

__all__ = ["statistic"]


def statistic(name: str, point: Point) -> Value:
    """``mean_rate`` and the like, of the piecewise-linear curve through the samples of a point's window."""
    from fluidcc.numerics.fluid.many import statistic as of_samples

    kind, _, variable = name.partition("_")
    data = point.sampled[variable].transpose(..., "time")
    times = data.time.values
    values = [of_samples(KINDS.index(kind), np.concatenate([row, times]), 0, len(row), len(row)) for row in data.values]
    dim = str(data.dims[0])
    return Value(np.array(values), (dim,), {dim: tuple(data[dim].values.tolist())}, {"units": data.attrs["units"]})
