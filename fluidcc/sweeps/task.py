"""The work of a sweep and its results as data, which can be sent to any worker and back: which
points there are, what is measured at each, and what was found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base import version
from fluidcc.base.errors import InvalidInput
from fluidcc.base.progress import interrupted
from fluidcc.network import Network
from fluidcc.network.parameters import Parameters
from fluidcc.network.scenarios import RUN_FIELDS, Scenario
from fluidcc.sweeps.axes import Grid, changed, on_copies
from fluidcc.sweeps.measures import TOLD, Measure, Point, Value, as_values

if TYPE_CHECKING:
    import xarray as xr

Points = NDArray[np.int64] | range
PROBES = 20  # points that are tried before it is said that none can be measured


@dataclass(frozen=True, eq=False)
class Task:
    """What to do at each point.

    Attributes
    ----------
    model : Network or function
        A function is called with each point.
    grid : Grid
    measures : tuple of Measure
        None if the function returns results.
    options : mapping
        Those of the runs.
    schema : mapping
        The form of the results by variable, once it is known.
    """

    model: Network | Callable[[Mapping[str, Any]], Any]
    grid: Grid
    measures: tuple[Measure, ...]
    options: Mapping[str, Any]
    schema: Mapping[str, Variable] = field(default_factory=dict)

    def point(self, number: int) -> Point | dict[str, Value]:
        """Return the point of that number; or its results, where the model returns results."""
        values, options = self.grid.point(number), dict(self.options)
        if isinstance(self.model, Network):
            return self.at(values)
        made = self.model(Point(values, None, options))
        if isinstance(made, Scenario):
            own = {key: getattr(made, key) for key in ("until", *RUN_FIELDS)}
            options |= {k: v for k, v in own.items() if options.get(k) is None}
            made = made.net
        if isinstance(made, Network):
            if not self.measures:
                raise InvalidInput("the swept function returns a network; give the measure")
            return Point(values, made, options)
        if self.measures:
            raise InvalidInput(
                f"the swept function returns {type(made).__name__}; return a Network or Scenario, "
                "or leave measure out"
            )
        return as_values(made, "value")

    def at(self, values: Mapping[str, Any]) -> Point:
        """Return the point with these values by axis, of a network; other axes set nothing."""
        assert isinstance(self.model, Network)
        targets = {axis: self.grid.targets[axis] for axis in values}
        options = {axis: values[axis] for axis, t in targets.items() if t.kind == "option"}
        net = changed(self.model, targets, values)
        return Point(values, net, {**self.options, **options})

    def given(self, net: Network, axes: list[int], positions: NDArray[np.int64]) -> Parameters:
        """Return what some axes set, by number, at positions (axes of the grid, points); `net` has
        what the others set.
        """
        model: Any = self.model
        some = {k: self.grid.axes[k] for k in axes}
        given = Parameters.of(
            net,
            {
                axis.name: on_copies(self.grid.targets[axis.name], model, net)
                for axis in some.values()
            },
            {axis.name: axis.numbers[positions[k]] for k, axis in some.items()},
        )
        given.points = positions.shape[1]  # also where no axis sets a number
        return given

    @property
    def structural(self) -> bool:
        """Whether the networks of the points differ in numbers of flows, or in laws."""
        return any(target.structural for target in self.grid.targets.values())

    def order(self) -> Points:
        """Return the numbers of all points, such that those come together which differ only in
        parameters and initial states, for which no workspace is built.
        """
        kinds = [t.kind in ("parameter", "initial") for t in self.grid.targets.values()]
        if kinds == sorted(kinds):
            return range(self.grid.size)
        numbers = np.arange(self.grid.size).reshape(self.grid.shape)
        return numbers.transpose(np.argsort(kinds, kind="stable")).ravel()

    def probes(self) -> list[int]:
        """Return some points, evenly over the grid; that with the most flows is the first."""
        shape = self.grid.shape
        numbers = np.unique(np.linspace(0, self.grid.size - 1, PROBES).astype(np.int64)).tolist()
        counts = [name for name, target in self.grid.targets.items() if target.kind == "count"]
        if not counts:
            return numbers
        most = [int(np.argmax(a.values)) if a.name in counts else 0 for a in self.grid.axes]
        return [int(np.ravel_multi_index(most, shape)), *numbers]

    def along_the_axes(self) -> list[int]:
        """Return the points that have each value of one axis and the first ones of the others."""
        shape = self.grid.shape
        steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        found = {i * step for size, step in zip(shape, steps, strict=True) for i in range(size)}
        return sorted(found)


def reason(error: BaseException) -> str:
    """Kind and text of an error, in one line; Ctrl-C is no reason of a point, but goes on."""
    if interrupted(error):
        raise KeyboardInterrupt from error
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def in_words(failed: Mapping[str, str]) -> str:
    """Return why measures failed, by name, as one text."""
    return "; ".join(f"{name}: {why}" if name else why for name, why in failed.items())


# --- results --------------------------------------------------------------------------------------


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

    def places(self, rows: Any, net: Network) -> Any:
        """Return where values for each flow or link of a network belong in some rows of the
        results.
        """
        for dim, labels in self.coords.items():
            numbers = {label: k for k, label in enumerate(labels)}
            names = net.flow_names if dim == "flow" else net.link_names
            return np.ix_(rows, [numbers[name] for name in names])
        return rows

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
        dim = self.dims[0] if value.dims == self.dims and len(self.dims) == 1 else ""
        if dim not in value.coords:
            raise InvalidInput(
                f"{name} has shape {array.shape} here, and {self.shape} at the first point"
            )
        places = {label: k for k, label in enumerate(self.coords[dim])}
        for label, number in zip(value.coords[dim], array, strict=True):
            if label not in places:
                raise InvalidInput(
                    f"{name} has the {dim} {label!r} here, which the first point has not"
                )
            row[places[label]] = number


@dataclass
class Piece:
    """Results of some points.

    Attributes
    ----------
    values : dict
        For each variable an array (points, ...); and texts, "" where nothing is to be said:
        ``error``, why a point failed, and ``warning``, what makes its results doubtful.
    seconds : float
        What measuring them has taken.
    fresh : bool
        Whether their worker had none of the task before, and has loaded code in that time.
    """

    values: dict[str, NDArray[Any]]
    seconds: float = 0.0
    fresh: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def fail(self, row: int, reasons: Mapping[str, str]) -> None:
        """Add why measures failed at a point, by name (or ``""``, if it is about all of them)."""
        self._tell("error", row, [in_words(reasons)])

    def doubt(self, row: int, texts: Sequence[str]) -> None:
        """Add what makes results doubtful at a point."""
        self._tell("warning", row, texts)

    def _tell(self, what: str, row: int, texts: Sequence[str]) -> None:
        said = self.values[what]
        for text in texts:
            if text and f"; {text}; " not in f"; {said[row]}; ":  # whole, not as part of another
                said[row] = f"{said[row]}; {text}" if said[row] else text

    def put(self, rows: Any, part: Piece) -> None:
        """Put the results of some points into these rows."""
        for name, values in part.values.items():
            self.values[name][rows] = values
        self.seconds += part.seconds

    def part(self, start: int, stop: int) -> Piece:
        """Return the results in some rows."""
        return Piece({name: v[start:stop] for name, v in self.values.items()})

    def nothing(self) -> bool:
        """Return whether all measures failed at all points."""
        numbers = [v for name, v in self.values.items() if name not in TOLD]
        return all(self.values["error"]) and all(np.isnan(v).all() for v in numbers)


def empty_piece(schema: Mapping[str, Variable], count: int) -> Piece:
    """Return room for the results of some points, all NaN.

    Raises
    ------
    InvalidInput
        If the memory has no room for them.
    """
    sizes = {name: (count, *v.shape) for name, v in schema.items()}
    try:
        values = {k: np.full(sizes[k], np.nan, dtype=v.dtype) for k, v in schema.items()}
        return Piece(values | {name: np.full(count, "", dtype=object) for name in TOLD})
    except MemoryError:
        need = sum(math.prod(sizes[k]) * np.dtype(v.dtype).itemsize for k, v in schema.items())
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
    for name, what in TOLD.items():
        texts = piece.values[name]
        if any(texts):
            about = {"long_name": f"{what}; empty where nothing is to be said"}
            data[name] = (grid.names, texts.astype(str).reshape(grid.shape), about)
    result = xr.Dataset(data, coords)
    result.attrs.update(
        axes=json.dumps(list(grid.names)), points=grid.size,
        failed=int(np.count_nonzero(piece.values["error"])),
        warned=int(np.count_nonzero(piece.values["warning"])),
        point_seconds=piece.seconds, fluidcc=version.__version__,
    )  # fmt: skip
    return result
