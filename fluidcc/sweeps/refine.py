"""Refinement: measure only near where a verdict changes, and know the rest of the grid from it.

A coarse part of the grid is measured first. Each of its cells whose corners disagree (or where one
failed) is halved along every axis, down to neighbouring points; the points inside a cell whose
corners agree take their verdict. Last, wherever neighbours have different verdicts and one of them
is not measured, it is, and so on until none is left: so the boundary in the result lies between
measured points all along. An island that is smaller than the coarse cells, and touched by no
boundary, is not seen: choose `step` by the smallest feature that matters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
    while work.settle():
        pass
    return work.dataset()


class _Refinement:
    """What is known so far: by verdict 1, 0, and -1 for unknown; whether measured; all results."""

    def __init__(self, task: Task, how: Refine, run: Run) -> None:
        self.task, self.how, self._run = task, how, run
        self.shape = task.grid.shape
        self.verdict = np.full((len(how.verdicts), task.grid.size), -1, dtype=np.int8)
        self.measured = np.zeros(task.grid.size, dtype=bool)
        self._whole: Piece | None = None
        self._parts = 0
        self._mixed: set[tuple[tuple[int, int], ...]] | None = None

    def measure(self, points: NDArray[np.int64]) -> None:
        """Measure those points that are not yet."""
        points = np.unique(points)
        points = points[~self.measured[points]]
        if not len(points):
            return
        self.task, piece = self._run(self.task, points=points, folder=f"part{self._parts}")
        self._parts += 1
        self._check()
        if self._whole is None:
            self._whole = empty_piece(self.task.schema, self.task.grid.size)
        self._whole.put(points, piece)
        for k, name in enumerate(self.how.verdicts):
            found = piece.values[name]
            self.verdict[k, points] = np.where(np.isnan(found), -1, found != 0)
        self.measured[points] = True

    def _check(self) -> None:
        schema = self.task.schema
        for name in self.how.verdicts:
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
        """Measure the corners of the cells of this size in doubt; fill those that are not."""
        cells = list(self._cells(step))
        corners = [
            np.ravel_multi_index(c, self.shape) for cell in cells for c in itertools.product(*cell)
        ]
        self.measure(np.array(corners, dtype=np.int64))
        self._mixed = set()
        view = self.verdict.reshape(-1, *self.shape)
        for cell in cells:
            corner = np.ix_(*cell)
            inside = tuple(slice(low, high + 1) for low, high in cell)
            for one in view:
                found = one[corner]
                if found.min() < 0 or found.min() < found.max():
                    self._mixed.add(cell)
                else:
                    one[inside] = np.where(one[inside] < 0, found.min(), one[inside])

    def _cells(self, step: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """Cells of this size inside those that were in doubt, as (low, high) along each axis."""
        if self._mixed is None:
            yield from itertools.product(*(list(_halves(0, n - 1, step)) for n in self.shape))
            return
        for cell in self._mixed:
            yield from itertools.product(*(list(_halves(low, high, step)) for low, high in cell))

    def settle(self) -> bool:
        """Measure neighbours of different verdicts; whether there were such that had not been."""
        doubtful = np.zeros(self.shape, dtype=bool)
        for view in self.verdict.reshape(-1, *self.shape):
            for axis in range(len(self.shape)):
                along, marks = np.moveaxis(view, axis, 0), np.moveaxis(doubtful, axis, 0)
                differ = along[:-1] != along[1:]
                marks[:-1] |= differ
                marks[1:] |= differ
        todo = np.flatnonzero(doubtful.ravel() & ~self.measured)
        self.measure(todo)
        return len(todo) > 0

    def dataset(self) -> xr.Dataset:
        """All results; the verdicts of points that were not measured are inferred."""
        assert self._whole is not None
        for name, verdict in zip(self.how.verdicts, self.verdict, strict=True):
            self._whole.values[name] = np.where(verdict < 0, np.nan, verdict.astype(float))
        data = labelled(self.task.grid, self.task.schema, self._whole)
        inferred = " and ".join(self.how.verdicts)
        about = {
            "long_name": f"whether the point was measured; {inferred} inferred where it was not"
        }
        data["measured"] = (self.task.grid.names, self.measured.reshape(self.shape), about)
        data.attrs["measured"] = int(self.measured.sum())
        return data


def _halves(low: int, high: int, step: int) -> Iterator[tuple[int, int]]:
    """Neighbouring positions from low to high at distances of at most `step`, in pairs; one pair if
    there is one.
    """
    places: list[Any] = [*range(low, high, step), high]
    yield from itertools.pairwise(places) if len(places) > 1 else [(low, low)]
