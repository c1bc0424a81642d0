"""Results of some points of a sweep, and the form that they have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.sweeps.measures import Value

__all__ = ["Piece", "Variable", "empty_piece"]


@dataclass(frozen=True)
class Variable:
    """How a measured value looks: its type, and its dimensions, coordinates and attributes beyond the grid's."""

    dtype: str
    boolean: bool = False
    shape: tuple[int, ...] = ()
    dims: tuple[str, ...] = ()
    coords: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Value) -> Variable:
        """How this value looks."""
        array = np.asarray(value.values)
        kind = "complex128" if array.dtype.kind == "c" else "float64"
        return cls(kind, array.dtype.kind == "b", array.shape, value.dims, value.coords, value.attrs)

    def fill(self, value: Value, row: Any, name: str) -> None:
        """Put a value into its row of the results."""
        array = np.asarray(value.values)
        if array.dtype.kind == "c" and self.dtype != "complex128":
            if np.any(array.imag != 0):
                raise InvalidInput(f"{name} is complex here, and real at the first point; return complex numbers there")
            array = array.real
        if value.coords == self.coords and array.shape == self.shape:
            row[...] = array
            return
        if value.dims != self.dims or len(self.dims) != 1 or self.dims[0] not in value.coords:
            raise InvalidInput(f"{name} has shape {array.shape} here, and {self.shape} at the first point")
        labels = list(self.coords[self.dims[0]])
        for label, number in zip(value.coords[self.dims[0]], array, strict=True):
            if label not in labels:
                raise InvalidInput(f"{name} has the {self.dims[0]} {label!r} here, which the first point has not")
            row[labels.index(label)] = number


@dataclass
class Piece:
    """Results of some points: an array (points, ...) for each variable, why some failed, and why some are doubtful."""

    values: dict[str, NDArray[Any]]
    errors: dict[int, str]
    seconds: float = 0.0
    once: float = 0.0  # seconds of these for what later points use too
    each: float = 0.0  # seconds a point takes, where that is known better than from these
    call: float = 0.0  # seconds that measuring any number of points takes besides, as far as it is known
    doubts: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def put(self, first: int, part: Piece) -> None:
        """Put the results of some points in, from row `first` on."""
        for name, values in part.values.items():
            self.values[name][first : first + len(values)] = values
        self.errors |= {first + row: text for row, text in part.errors.items()}
        self.doubts |= {first + row: text for row, text in part.doubts.items()}
        self.seconds += part.seconds
        self.once += part.once

    def part(self, start: int, stop: int) -> Piece:
        """Some of its rows."""
        errors, doubts = (
            {row - start: text for row, text in of.items() if start <= row < stop} for of in (self.errors, self.doubts)
        )
        values = {name: v[start:stop] for name, v in self.values.items()}
        share = (stop - start) / len(self)
        return Piece(values, errors, self.seconds * share, self.once * share, self.each, self.call, doubts)


def empty_piece(schema: Mapping[str, Variable], count: int) -> Piece:
    """Room for the results of some points, all NaN."""
    try:
        return Piece({k: np.full((count, *v.shape), np.nan, dtype=v.dtype) for k, v in schema.items()}, {})
    except MemoryError:
        need = sum(count * math.prod(v.shape) * np.dtype(v.dtype).itemsize for v in schema.values())
        raise InvalidInput(
            f"the results of {count} points take {need / 2**30:.3g} GiB, for which there is no memory here; give a "
            "smaller grid"
        ) from None
