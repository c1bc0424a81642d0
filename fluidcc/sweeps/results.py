"""Results of some points of a sweep, the form that they have, and the labelled dataset of all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base import version
from fluidcc.base.errors import InvalidInput
from fluidcc.sweeps.grid import Grid
from fluidcc.sweeps.measures import TOLD, Value

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Piece", "Variable", "empty_piece", "labelled"]


@dataclass(frozen=True)
class Variable:
    """The form of a measured value: its type, and its dimensions beyond the grid's."""

    dtype: str
    boolean: bool = False
    shape: tuple[int, ...] = ()
    dims: tuple[str, ...] = ()
    coords: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Value) -> Variable:
        """Return the form of this value."""
        array = np.asarray(value.values)
        kind = "complex128" if array.dtype.kind == "c" else "float64"
        boolean = array.dtype.kind == "b"
        return cls(kind, boolean, array.shape, value.dims, value.coords, value.attrs)

    def fill(self, value: Value, row: Any, name: str) -> None:
        """Put a value into its row of the results.

        Raises
        ------
        InvalidInput
            If it has another form.
        """
        array = np.asarray(value.values)
        if array.dtype.kind == "c" and self.dtype != "complex128":
            if np.any(array.imag != 0):
                raise InvalidInput(
                    f"{name} is complex here, and real at the first point; return complex numbers "
                    "there"
                )
            array = array.real
        if value.coords == self.coords and array.shape == self.shape:
            row[...] = array
            return
        if value.dims != self.dims or len(self.dims) != 1 or self.dims[0] not in value.coords:
            raise InvalidInput(
                f"{name} has shape {array.shape} here, and {self.shape} at the first point"
            )
        labels = list(self.coords[self.dims[0]])
        for label, number in zip(value.coords[self.dims[0]], array, strict=True):
            if label not in labels:
                raise InvalidInput(
                    f"{name} has the {self.dims[0]} {label!r} here, which the first point has not"
                )
            row[labels.index(label)] = number


@dataclass
class Piece:
    """Results of some points.

    Attributes
    ----------
    values : dict
        For each variable an array (points, ...).
    errors, doubts : dict
        Why points failed, and what makes the results of others doubtful, by row.
    seconds : float
        What measuring them has taken.
    """

    values: dict[str, NDArray[Any]]
    errors: dict[int, str] = field(default_factory=dict)
    doubts: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def put(self, first: int, part: Piece) -> None:
        """Put the results of some points in, from row `first` on."""
        for name, values in part.values.items():
            self.values[name][first : first + len(values)] = values
        self.errors |= {first + row: text for row, text in part.errors.items()}
        self.doubts |= {first + row: text for row, text in part.doubts.items()}
        self.seconds += part.seconds

    def part(self, start: int, stop: int) -> Piece:
        """Return the results in some rows."""
        errors, doubts = (
            {row - start: texts[row] for row in range(start, stop) if row in texts}
            for texts in (self.errors, self.doubts)
        )
        return Piece({name: v[start:stop] for name, v in self.values.items()}, errors, doubts)


def empty_piece(schema: Mapping[str, Variable], count: int) -> Piece:
    """Return room for the results of some points, all NaN.

    Raises
    ------
    InvalidInput
        If the memory has no room for them.
    """
    try:
        return Piece(
            {k: np.full((count, *v.shape), np.nan, dtype=v.dtype) for k, v in schema.items()}
        )
    except MemoryError:
        need = sum(count * math.prod(v.shape) * np.dtype(v.dtype).itemsize for v in schema.values())
        raise InvalidInput(
            f"the results of {count} points take {need / 2**30:.3g} GiB, for which there is no "
            "memory here; give a smaller grid"
        ) from None


def labelled(grid: Grid, schema: Mapping[str, Variable], piece: Piece) -> xr.Dataset:
    """Return the results of all points over the axes of the grid.

    The variable ``error`` says why points failed, and ``warning`` why they are doubtful; each is
    there only if it says something of some point.
    """
    import xarray as xr

    coords: dict[str, Any] = {axis.name: axis.coordinate() for axis in grid.axes}
    data: dict[str, Any] = {}
    for name, v in schema.items():
        values = piece.values[name].reshape(*grid.shape, *v.shape)
        if v.boolean and not np.any(np.isnan(values)):
            values = values.astype(bool)
        data[name] = ((*grid.names, *v.dims), values, dict(v.attrs))
        coords.update({dim: list(labels) for dim, labels in v.coords.items()})
    told = (
        (piece.errors, "why the point could not be measured"),
        (piece.doubts, "what makes its results doubtful"),
    )
    for name, (texts, what) in zip(TOLD, told, strict=True):
        if texts:
            column = np.full(grid.size, "", dtype=object)
            column[list(texts)] = list(texts.values())
            about = {"long_name": f"{what}; empty where nothing is to be said"}
            data[name] = (grid.names, column.astype(str).reshape(grid.shape), about)
    result = xr.Dataset(data, coords)
    result.attrs.update(
        axes=list(grid.names), points=grid.size, failed=len(piece.errors), warned=len(piece.doubts),
        point_seconds=piece.seconds, fluidcc=version.__version__,
    )  # fmt: skip
    return result
