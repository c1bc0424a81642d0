"""Averages over time and settling times, exact for the piecewise-linear curve through the samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.base.arguments import explained, number
from fluidcc.base.errors import InvalidInput
from fluidcc.base.units import to_si
from fluidcc.metrics.arrays import Array, axis_of, reduced, values_of

__all__ = ["mean", "settling_time", "windowed_mean"]


def _time_first(x: Any, time: Any) -> tuple[Array, Array, Any]:
    """(times, values with time as their first axis, the DataArray or None)."""
    if hasattr(x, "dims"):
        values, t, source = np.moveaxis(values_of(x, "x"), axis_of(x, "time"), 0), values_of(x["time"], "time"), x
    elif time is None:
        raise InvalidInput("an array carries no times: give time=, one for each entry of its first axis")
    else:
        values, t, source = np.atleast_1d(values_of(x, "x")), values_of(time, "time"), None
    if t.ndim != 1 or len(t) != len(values):
        raise InvalidInput(f"there are {t.size} times for {len(values)} samples: give one time for each")
    if len(t) < 2 or not np.all(np.diff(t) > 0):
        raise InvalidInput("the times must increase, and be two at least")
    return t, values, source


def _integral(t: Array, values: Array, at: Array) -> Array:
    """Integral of the piecewise-linear curve from its first time to each of `at`."""
    step = np.diff(t).reshape(-1, *([1] * (values.ndim - 1)))
    pieces = 0.5 * step * (values[1:] + values[:-1])
    total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(pieces, axis=0)])
    i = np.clip(np.searchsorted(t, at, side="right") - 1, 0, len(t) - 2)
    part = (at - t[i]).reshape(-1, *([1] * (values.ndim - 1)))
    slope = (values[i + 1] - values[i]) / step[i]
    return total[i] + part * (values[i] + 0.5 * part * slope)


@explained
def mean(x: Any, start: float | str | None = None, stop: float | str | None = None, *, time: Any = None) -> Any:
    """Mean over a span of time.

    Parameters
    ----------
    x : DataArray with "time", or array with time as its first axis
        Samples in any unit.
    start, stop : float or str, optional
        The span [s]; by default all there is.
    time : array, optional
        Times [s], for an array.

    Returns
    -------
    DataArray, or float or array
        In the unit of `x`.

    Examples
    --------
    >>> mean([0.0, 2.0, 2.0], 0.5, 2.0, time=[0.0, 1.0, 2.0])
    1.8333333333333333
    """
    t, values, source = _time_first(x, time)
    a = float(t[0]) if start is None else to_si(start, "s", "start")
    b = float(t[-1]) if stop is None else to_si(stop, "s", "stop")
    if not t[0] <= a < b <= t[-1]:
        raise InvalidInput(f"the span from {a:g} to {b:g} s is not within the samples, {t[0]:g} to {t[-1]:g} s")
    ends = _integral(t, values, np.array([a, b]))
    average = (ends[1] - ends[0]) / (b - a)
    if source is not None:
        return reduced(source, average, "time")
    return float(average) if average.ndim == 0 else average


@explained
def windowed_mean(x: Any, window: float | str, *, time: Any = None) -> Any:
    """Means over consecutive windows, as in plots of throughput per second.

    Parameters
    ----------
    x : DataArray with "time", or array with time as its first axis
        Samples in any unit.
    window : float or str
        Length of the windows [s]; what is left over at the end is dropped.
    time : array, optional
        Times [s], for an array.

    Returns
    -------
    DataArray, or tuple (times, array)
        In the unit of `x`, each mean at the end of its window.
    """
    t, values, source = _time_first(x, time)
    window = to_si(window, "s", "window")
    count = math.floor((t[-1] - t[0]) / window * (1 + 1e-12)) if window > 0 else 0
    if count > 10_000_000:
        raise InvalidInput(f"a window of {window:g} s makes {count:.2g} windows of the samples; give a longer one")
    if count < 1:
        raise InvalidInput(
            f"a window of {window:g} s does not fit into the {t[-1] - t[0]:g} s of samples: give a shorter one, above 0"
        )
    edges = np.minimum(t[0] + window * np.arange(count + 1), t[-1])
    means = np.diff(_integral(t, values, edges), axis=0) / window
    if source is None:
        return edges[1:], means
    import xarray as xr

    rest = [d for d in source.dims if d != "time"]
    coords = {"time": edges[1:], **{d: source.coords[d] for d in rest if d in source.coords}}
    out = xr.DataArray(means, coords, ["time", *rest], source.name, {**source.attrs, "window": window})
    return out.transpose(*source.dims)


@explained
def settling_time(
    x: Any, target: Any = None, *, tolerance: float = 0.05, time: Any = None, start: float | str = 0.0
) -> Any:
    """Time after which a signal stays within a band around its final value.

    Parameters
    ----------
    x : DataArray with "time", or array with time as its first axis
        Samples in any unit.
    target : float or array, optional
        The final value, in the unit of `x`, such as a rate of `fluidcc.equilibrium`; by default the last sample.
    tolerance : float
        Half the width of the band, relative to the target [1].
    time : array, optional
        Times [s], for an array.
    start : float or str
        From when on the time is counted [s].

    Returns
    -------
    DataArray, or float or array
        [s]; 0 if the signal never leaves the band after `start`, NaN if its last sample is outside.
    """
    t, values, source = _time_first(x, time)
    start = to_si(start, "s", "start")
    tolerance = number(tolerance, "tolerance", "a positive number, such as 0.05", above=0.0)
    goal = values[-1] if target is None else values_of(target, "target", finite=True)
    if goal.ndim and goal.shape != values.shape[1:]:
        raise InvalidInput(f"target has shape {goal.shape}, the signals {values.shape[1:]}; give one target for each")
    band = tolerance * np.abs(goal)
    settled = np.empty(values.shape[1:])
    for place in np.ndindex(values.shape[1:]):
        one = (slice(None), *place)
        settled[place] = _last_exit(
            t,
            values[one],
            float(np.broadcast_to(goal, settled.shape)[place]),
            float(np.broadcast_to(band, settled.shape)[place]),
            start,
        )
    if source is not None:
        return reduced(source, settled, "time", "settling_time", "s")
    return float(settled) if settled.ndim == 0 else settled


def _last_exit(t: Array, x: Array, goal: float, band: float, start: float) -> float:
    """When the piecewise-linear curve enters the band for good, from `start` on."""
    outside = np.flatnonzero(np.abs(x - goal) > band)
    if not outside.size:
        return 0.0
    i = int(outside[-1])
    if i == len(x) - 1:
        return math.nan
    edge = goal + math.copysign(band, x[i] - goal)
    enters = t[i] + (t[i + 1] - t[i]) * (x[i] - edge) / (x[i] - x[i + 1])
    return max(float(enters) - start, 0.0)
