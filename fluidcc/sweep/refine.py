"""Refinement: measure only near where a verdict changes, and know the rest of the grid from it.

A coarse part of the grid is measured first. Each of its cells whose corners disagree (or where one failed) is halved
along every axis, down to neighbouring points; the points inside a cell whose corners agree take their verdict. Last,
wherever neighbours have different verdicts and one of them is not measured, it is, and so on until none is left: so the
boundary in the result lies between measured points all along. An island that is smaller than the coarse cells, and
touched by no boundary, is not seen: choose `step` by the smallest feature that matters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.errors import InvalidInput, UnknownName
from fluidcc.patterns import near
from fluidcc.sweep.results import labelled
from fluidcc.sweep.task import Piece, Task, empty_piece

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Refine", "refined"]

Run = Callable[..., tuple[Task, Piece]]


@dataclass(frozen=True)
class Refine:
    """How a sweep is refined.

    Attributes
    ----------
    verdict : str
        Name of the measure, with one yes or no for each point, such as ``"stable"``.
    step : int
        Distance of the points that are measured first, a power of two.
    """

    verdict: str
    step: int = 8

    def __post_init__(self) -> None:
        if isinstance(self.step, bool) or self.step < 1 or self.step & (self.step - 1):
            raise InvalidInput(f"step of the refinement is {self.step!r}; give a power of two, such as 8")


def refined(task: Task, how: str | Refine, run: Run) -> xr.Dataset:
    """The results of a refined sweep, with the verdict everywhere, and ``measured`` where it is no inference.

    Parameters
    ----------
    run : callable
        Measures some points of a task: the task with its schema, and the results.

    Raises
    ------
    InvalidInput
        If the verdict is no measure, or not yes or no.
    """
    how = Refine(how) if isinstance(how, str) else how
    work = _Refinement(task, how, run)
    for step in work.steps():
        work.level(step)
    while work.settle():
        pass
    return work.dataset()


class _Refinement:
    """What is known so far: verdicts (1, 0, and -1 for unknown), whether measured, and all results."""

    def __init__(self, task: Task, how: Refine, run: Run) -> None:
        self.task, self.how, self._run = task, how, run
        self.shape = task.grid.shape
        self.verdict = np.full(task.grid.size, -1, dtype=np.int8)
        self.measured = np.zeros(task.grid.size, dtype=bool)
        self._whole: Piece | None = None
        self._parts = 0
        self._mixed: set[tuple[tuple[int, int], ...]] | None = None

    def steps(self) -> Iterator[int]:
        step = self.how.step
        while step >= 1:
            yield step
            step //= 2

    def measure(self, points: NDArray[np.int64]) -> None:
        """Measure those points that are not yet."""
        points = np.unique(points)
        points = points[~self.measured[points]]
        if not len(points):
            return
        self.task, piece = self._run(self.task, points=points, part=f"part{self._parts}")
        self._parts += 1
        self._check()
        if self._whole is None:
            self._whole = empty_piece(self.task.schema, self.task.grid.size)
        for name, values in piece.values.items():
            self._whole.values[name][points] = values
        self._whole.errors |= {int(points[k]): text for k, text in piece.errors.items()}
        self._whole.seconds += piece.seconds
        values = piece.values[self.how.verdict]
        self.verdict[points] = np.where(np.isnan(values), -1, values != 0)
        self.measured[points] = True

    def _check(self) -> None:
        schema = self.task.schema
        if self.how.verdict not in schema:
            raise UnknownName(
                f"refine is {self.how.verdict!r}, which is not measured; {near(self.how.verdict, schema)}"
            )
        variable = schema[self.how.verdict]
        if not variable.boolean or variable.shape:
            raise InvalidInput(
                f"refine is {self.how.verdict!r}, which is not one yes or no for each point; give a measure that is"
            )

    def level(self, step: int) -> None:
        """Measure the corners of the cells of this size that are in doubt; fill those that are not."""
        cells = list(self._cells(step))
        corners = [np.ravel_multi_index(c, self.shape) for cell in cells for c in itertools.product(*cell)]
        self.measure(np.array(corners, dtype=np.int64))
        self._mixed = set()
        for cell in cells:
            found = {int(self.verdict[np.ravel_multi_index(c, self.shape)]) for c in itertools.product(*cell)}
            if len(found) > 1 or -1 in found:
                self._mixed.add(cell)
            else:
                inside = np.ix_(*(np.arange(low, high + 1) for low, high in cell))
                view = self.verdict.reshape(self.shape)
                part = view[inside]
                view[inside] = np.where(part < 0, found.pop(), part)

    def _cells(self, step: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """Cells of this size inside those that were in doubt, as (low, high) along each axis."""
        if self._mixed is None:
            yield from itertools.product(*(list(_halves(0, n - 1, step)) for n in self.shape))
            return
        for cell in self._mixed:
            yield from itertools.product(*(list(_halves(low, high, step)) for low, high in cell))

    def settle(self) -> bool:
        """Measure neighbours of different verdicts; whether there were such that had not been."""
        view = self.verdict.reshape(self.shape)
        doubtful = np.zeros(self.shape, dtype=bool)
        for axis in range(len(self.shape)):
            near_, far = (np.moveaxis(view, axis, 0)[part] for part in (slice(None, -1), slice(1, None)))
            differ = near_ != far
            marks = np.moveaxis(doubtful, axis, 0)
            marks[:-1] |= differ
            marks[1:] |= differ
        todo = np.flatnonzero(doubtful.ravel() & ~self.measured)
        self.measure(todo)
        return len(todo) > 0

    def dataset(self) -> xr.Dataset:
        """All results; the verdict of points that were not measured is inferred."""
        assert self._whole is not None
        known = np.where(self.verdict < 0, np.nan, self.verdict.astype(float))
        self._whole.values[self.how.verdict] = known
        data = labelled(self.task, self._whole)
        about = {"long_name": f"whether the point was measured; {self.how.verdict} is inferred where it was not"}
        data["measured"] = (self.task.grid.names, self.measured.reshape(self.shape), about)
        data.attrs["measured"] = int(self.measured.sum())
        return data


def _halves(low: int, high: int, step: int) -> Iterator[tuple[int, int]]:
    """Neighbouring positions from low to high at distances of at most `step`, in pairs; one pair if there is one."""
    places: list[Any] = [*range(low, high, step), high]
    yield from itertools.pairwise(places) if len(places) > 1 else [(low, low)]
