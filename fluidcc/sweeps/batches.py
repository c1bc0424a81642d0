"""The points of a sweep, taken together where they have the same network but for numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import RLock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError
from fluidcc.network import Network
from fluidcc.sweeps.targets import Target, changed
from fluidcc.sweeps.task import Task

__all__ = ["KEPT", "STRUCTURAL", "Batches", "Combination", "Kept", "combined", "structural"]

KEPT = 16
STRUCTURAL = ("count", "law")  # kinds of axes that change more than numbers
Combination = tuple[int, ...]  # positions along some axes
T = TypeVar("T")


def structural(task: Task) -> bool:
    """Return whether the networks of a sweep differ in numbers of flows, or in laws."""
    return any(target.kind in STRUCTURAL for target in task.targets.values())


def combined(positions: NDArray[np.int64]) -> tuple[list[Combination], NDArray[np.int64]]:
    """Return the different columns of an array (axes, points), and which each point has."""
    columns, which = np.unique(positions, axis=1, return_inverse=True)
    return [tuple(column) for column in columns.T.tolist()], which.ravel()


class Kept(Generic[T]):
    """What was made last, by key: made once, whichever threads ask for it.

    An error of fluidcc in its making is kept and raised in its place.
    """

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._made: dict[Any, T | FluidccError] = {}
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._made)

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """Return what is kept under `key`, or what is made now."""
        with self._lock:
            if key not in self._made:
                try:
                    made: T | FluidccError = make()
                except FluidccError as error:
                    made = error
                while len(self._made) >= self._most:
                    del self._made[next(iter(self._made))]
                self._made[key] = made
            found = self._made[key]
        if isinstance(found, FluidccError):
            raise found
        return found


class Batches:
    """Points by the combination of values that they have along those axes that change more than
    numbers.

    Parameters
    ----------
    task : Task
        One of a network.
    is_more : callable
        Whether an axis, by what it changes, is one of these.

    Attributes
    ----------
    more, rest : list of int
        These axes, and the other ones, by number.
    """

    def __init__(self, task: Task, is_more: Callable[[Target], bool]) -> None:
        self._task = task
        numbers = range(len(task.grid.axes))
        self.more = [k for k in numbers if is_more(task.targets[task.grid.axes[k].name])]
        self.rest = [k for k in numbers if k not in self.more]
        self._networks: Kept[Network] = Kept()

    def of(
        self, points: NDArray[np.int64]
    ) -> Iterator[tuple[Combination, NDArray[np.int64], NDArray[np.int64]]]:
        """For each combination, the rows of the points that have it, and their positions along all
        axes.
        """
        positions = self._task.grid.places(points)
        combinations, which = combined(positions[self.more])
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which))[:-1]
        for combination, rows in zip(combinations, np.split(order, ends), strict=True):
            yield combination, rows, positions[:, rows]

    def network(self, combination: Combination) -> Network:
        """Return the network of a combination.

        Raises
        ------
        FluidccError
            If there is none with these values.
        """
        axes = [self._task.grid.axes[k] for k in self.more]
        targets = {axis.name: self._task.targets[axis.name] for axis in axes}
        values = {axis.name: axis.values[k] for axis, k in zip(axes, combination, strict=True)}
        model: Any = self._task.model
        return self._networks.get(combination, lambda: changed(model, targets, values))
