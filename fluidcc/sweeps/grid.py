"""The grid of a sweep: named axes with their values, and points numbered in row-major order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import shown, whole
from fluidcc.base.errors import InvalidInput
from fluidcc.base.units import to_si

MOST_VALUES = 10**7  # of an axis
MOST_POINTS = 10**10  # of a grid: results of one number each are 80 GB


@dataclass(frozen=True)
class Axis:
    """One axis: its name, its values as they are set, and its unit ("" where the values are no
    quantities).
    """

    name: str
    values: tuple[Any, ...]
    unit: str = ""

    @cached_property
    def numeric(self) -> bool:
        """Whether every value is a number."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values as an array, of numbers."""
        return np.array(self.values, dtype=float)

    def ends(self) -> tuple[Any, ...]:
        """The least and the greatest value; all of them where they are not numbers."""
        return (min(self.values), max(self.values)) if self.numeric else self.values

    def coordinate(self) -> tuple[str, Any, dict[str, str]]:
        """Return the axis as a coordinate of xarray; values that are no numbers by their names."""
        values = (
            list(self.values) if self.numeric else [str(getattr(v, "name", v)) for v in self.values]
        )
        return (self.name, np.asarray(values), {"units": self.unit} if self.unit else {})


@dataclass(frozen=True)
class Grid:
    """All combinations of the axes' values; the last axis varies fastest."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(axis.name for axis in self.axes)

    def places(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position along each axis, shape (axes, points)."""
        return np.array(np.unravel_index(points, self.shape), dtype=np.int64).reshape(
            len(self.axes), len(points)
        )

    def point(self, number: int) -> dict[str, Any]:
        """Values by axis of point `number`."""
        return self.values(range(len(self.axes)), np.unravel_index(number, self.shape))

    def values(self, axes: Iterable[int], positions: Iterable[Any]) -> dict[str, Any]:
        """Values by name at these positions along some axes, which are given by number."""
        pairs = zip((self.axes[k] for k in axes), positions, strict=True)
        return {axis.name: axis.values[position] for axis, position in pairs}


def combinations(
    positions: NDArray[np.int64],
) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64]]]:
    """Give each combination of positions along some axes (axes, points), with the points at it."""
    columns, which = np.unique(positions, axis=1, return_inverse=True)
    order, which = np.argsort(which.ravel(), kind="stable"), which.ravel()
    members = np.split(order, np.cumsum(np.bincount(which))[:-1])
    yield from zip(map(tuple, columns.T.tolist()), members, strict=True)


def make_grid(
    given: Mapping[str, Any], units: Mapping[str, str], packets: Mapping[str, float] | None = None
) -> Grid:
    """Read the axes of a sweep.

    Parameters
    ----------
    given : mapping of str to values
        Of each axis a sequence of numbers, of text with units or of other objects; or a mapping for
        `{"from": a, "to": b, "points": n, "scale": "linear" or "log"}`.
    units : mapping of str to str
        Unit in which the values of an axis are read, by its name; no entry leaves them as they are.
    packets : mapping of str to float, optional
        Packet size [bit] by which an axis in packets is read.

    Raises
    ------
    InvalidInput
        If there is no axis, one is empty, a value is there twice, or cannot be read.
    """
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput(
            f"the grid is {shown(given)}; give axes by name, such as {{'beta': [0.1, 0.2]}}"
        )
    sizes = packets or {}
    grid = Grid(
        tuple(
            _axis(str(n), values, units.get(str(n)), sizes.get(str(n)))
            for n, values in given.items()
        )
    )
    if grid.size > MOST_POINTS:
        long = " times ".join(f"{len(axis.values)} of {axis.name!r}" for axis in grid.axes)
        raise InvalidInput(
            f"the grid has {grid.size:.3g} points ({long}); give at most {MOST_POINTS:.0e}"
        )
    return grid


def _axis(name: str, given: Any, unit: str | None, packet: float | None) -> Axis:
    what = f"axis {name!r} of the grid"
    if isinstance(given, Mapping):
        return Axis(name, _spread(given, unit or "1", what), unit or "")
    if isinstance(given, str) or not (isinstance(given, Sequence) or hasattr(given, "__array__")):
        raise InvalidInput(f"{what} is {shown(given)}; give a list of values")
    count = np.size(given) if hasattr(given, "__array__") else len(given)
    if count > MOST_VALUES:
        raise InvalidInput(f"{what} has {count} values; give at most {MOST_VALUES}")
    raw = np.atleast_1d(np.asarray(given)).tolist() if hasattr(given, "__array__") else list(given)
    if any(isinstance(v, list) for v in raw):
        raise InvalidInput(f"{what} is {shown(raw)}, lists in a list; give a list of values")
    if not raw:
        raise InvalidInput(f"{what} has no values; give at least one")
    if any(isinstance(v, float) and v != v for v in raw):
        raise InvalidInput(f"{what} has the value nan; leave it out")
    values: list[Any] = raw
    if unit == "count":
        values = [whole(v, what) for v in raw]
    elif unit is not None:
        values = [to_si(v, unit, what, packet=packet, allow_inf=True) for v in raw]
    seen = set()
    for as_given, value in zip(raw, values, strict=True):
        key = (type(value), value if isinstance(value, Hashable) else repr(value))
        if key in seen:
            raise InvalidInput(f"{what} has the value {shown(as_given)} twice; give each once")
        seen.add(key)
    return Axis(name, tuple(values), unit or "")


def _spread(given: Mapping[str, Any], unit: str, what: str) -> tuple[float, ...]:
    """Values from ``{"from": a, "to": b, "points": n, "scale": "linear" or "log"}``."""
    unknown = set(given) - {"from", "to", "points", "scale"}
    if unknown or not {"from", "to", "points"} <= set(given):
        raise InvalidInput(
            f"{what} is {shown(dict(given))}; give the keys from, to and points, and scale='log' "
            "for even ratios"
        )
    low, high = (to_si(given[key], unit, f"{key!r} of {what}") for key in ("from", "to"))
    count, scale = given["points"], given.get("scale", "linear")
    count = whole(count, f"points of {what}", least=2, most=MOST_VALUES)
    if scale not in ("linear", "log"):
        raise InvalidInput(f"scale of {what} is {shown(scale)}; give 'linear' or 'log'")
    if scale == "log" and not (low > 0 and high > 0):
        raise InvalidInput(
            f"{what} is logarithmic and runs from {low:g} to {high:g}; give ends above 0"
        )
    if low == high:
        raise InvalidInput(f"{what} runs from {low:g} to {high:g}; give two different ends")
    values = np.geomspace(low, high, count) if scale == "log" else np.linspace(low, high, count)
    return tuple(values.tolist())
