"""Refinement: measure only near where a verdict changes, and know the rest of the grid from it.

A coarse part of the grid is measured first. Each of its cells whose corners disagree (or where one
failed) is halved along every axis, down to neighbouring points; the points inside a cell whose
corners agree take their verdict. Last, wherever neighbours have different verdicts and one of them
is not measured, it is, and so on until none is left: so the boundary in the result lies between
measured points all along. An island that is smaller than the coarse cells, and touched by no
boundary, is not seen: choose `step` by the smallest feature that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.network.patterns import near
from fluidcc.sweeps.task import Piece, Task, empty_piece, labelled

if TYPE_CHECKING:
    import xarray as xr

Run = Callable[..., tuple[Task, Piece]]


@dataclass(frozen=True)
class Refine:
    """How a sweep is refined.

    Attributes
    ----------
    verdict : str or tuple of str
        Name of the measure, with one yes or no for each point, such as ``"stable"``; of several,
        the boundaries of all are followed.
    step : int
        Distance of the points that are measured first, a power of two.
    """

    verdict: str | tuple[str, ...]
    step: int = 8

    def __post_init__(self) -> None:
        if (
            isinstance(self.step, bool)
            or not isinstance(self.step, int)
            or self.step < 1
            or self.step & (self.step - 1)
        ):
            raise InvalidInput(
                f"step of the refinement is {shown(self.step)}; give a power of two, such as 8"
            )
        names = (self.verdict,) if isinstance(self.verdict, str) else self.verdict
        if (
            not isinstance(names, tuple | list)
            or not names
            or not all(isinstance(name, str) for name in names)
        ):
            raise InvalidInput(
                f"refine is {shown(self.verdict)}; give the name of a measure, such as 'stable', "
                "or several"
            )

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Names of all of them."""
        return (self.verdict,) if isinstance(self.verdict, str) else tuple(self.verdict)


def refined(task: Task, how: str | Sequence[str] | Refine, run: Run) -> xr.Dataset:
    """The results of a refined sweep, with the verdicts everywhere, and ``measured`` where they are
    no inference.

    Parameters
    ----------
    run : callable
        Measures some points of a task: the task with its schema, and the results.

    Raises
    ------
    InvalidInput
        If a verdict is no measure, or not yes or no.
    """
    if not isinstance(how, Refine):
        names: Any = tuple(how) if isinstance(how, list) else how
        how = Refine(names)
    work = _Refinement(task, how, run)
    step = how.step
    while step:
        work.level(step)
        step //= 2
    while np.any(doubtful := work.at_the_boundary() & ~work.measured):
        work.measure(doubtful)
    return work.dataset()


class _Refinement:
    """What is known so far, over the axes of the grid: by verdict 1, 0, and -1 for unknown; whether
    measured; all results.
    """

    def __init__(self, task: Task, how: Refine, run: Run) -> None:
        self.task, self.verdicts, self._run = task, how.verdicts, run
        self.verdict = np.full((len(how.verdicts), *task.grid.shape), -1, dtype=np.int8)
        self.measured = np.zeros(task.grid.shape, dtype=bool)
        self._whole: Piece | None = None
        self._parts = 0

    def measure(self, these: NDArray[np.bool_]) -> None:
        """Measure some points."""
        points = np.flatnonzero(these)
        if not len(points):
            return
        self.task, piece = self._run(self.task, points=points, folder=f"part{self._parts}")
        self._parts += 1
        self._check()
        if self._whole is None:
            self._whole = empty_piece(self.task.schema, self.task.grid.size)
        self._whole.put(points, piece)
        for verdict, name in zip(self.verdict, self.verdicts, strict=True):
            found = piece.values[name]
            verdict.ravel()[points] = np.where(np.isnan(found), -1, found != 0)
        self.measured.ravel()[points] = True

    def _check(self) -> None:
        schema = self.task.schema
        for name in self.verdicts:
            if name not in schema:
                raise UnknownName(
                    f"refine is {name!r}, which is not measured; {near(name, schema)}"
                )
            if not schema[name].boolean or schema[name].shape:
                raise InvalidInput(
                    f"refine is {name!r}, which is not one yes or no for each point; give a "
                    "measure that is"
                )

    def level(self, step: int) -> None:
        """Measure the corners of cells of this size where a verdict is unknown; fill the cells
        whose corners agree.
        """
        edges = [np.array([*range(0, n - 1, step), n - 1]) for n in self.measured.shape]
        corners = np.zeros_like(self.measured)
        corners[np.ix_(*edges)] = True
        self.measure(corners & ~self.measured & np.any(self.verdict < 0, axis=0))
        cells = [np.maximum(np.arange(n) - 1, 0) // step for n in self.measured.shape]
        for verdict in self.verdict:
            low = high = verdict[np.ix_(*edges)]
            for axis in range(low.ndim):
                low, high = _pairs(np.minimum, low, axis), _pairs(np.maximum, high, axis)
            inside = np.where(low == high, low, -1)[np.ix_(*cells)]
            unknown = (verdict < 0) & ~self.measured
            verdict[unknown] = inside[unknown]

    def at_the_boundary(self) -> NDArray[np.bool_]:
        """Return which points have a neighbour with another verdict."""
        near = ndimage.generate_binary_structure(self.measured.ndim, 1)
        edge = partial(ndimage.morphological_gradient, footprint=near, mode="nearest")
        return np.any([edge(verdict) > 0 for verdict in self.verdict], axis=0)

    def dataset(self) -> xr.Dataset:
        """All results; the verdicts of points that were not measured are inferred."""
        assert self._whole is not None
        for name, verdict in zip(self.verdicts, self.verdict, strict=True):
            self._whole.values[name] = np.where(verdict < 0, np.nan, verdict).ravel()
        data = labelled(self.task.grid, self.task.schema, self._whole)
        inferred = " and ".join(self.verdicts)
        about = {
            "long_name": f"whether the point was measured; {inferred} inferred where it was not"
        }
        data["measured"] = (self.task.grid.names, self.measured, about)
        data.attrs["measured"] = int(self.measured.sum())
        return data


def _pairs(function: Any, values: NDArray[np.int8], axis: int) -> NDArray[np.int8]:
    """A function of all neighbours along an axis; of a single value with itself."""
    along = np.moveaxis(values, axis, 0)
    found = function(along[:-1], along[1:]) if len(along) > 1 else along
    return np.moveaxis(found, 0, axis)
