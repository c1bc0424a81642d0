"""The networks of a task whose points differ by more than numbers, and what threads make of a task and keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import local
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError
from fluidcc.network import Network
from fluidcc.sweeps.pace import making
from fluidcc.sweeps.targets import Target, changed

if TYPE_CHECKING:
    from fluidcc.sweeps.task import Task

__all__ = ["KEPT", "Networks", "PerThread", "Place", "make_room"]

KEPT = 16
T = TypeVar("T")
Place = tuple[int, ...]  # positions along the axes that change more than numbers


def make_room(kept: dict[Any, Any], most: int = KEPT) -> None:
    """Forget the oldest, so that one more can be kept."""
    while len(kept) >= most:
        del kept[next(iter(kept))]


class PerThread(Generic[T]):
    """What each thread makes of a task for itself, since it writes in it, and keeps from chunk to chunk.

    Parameters
    ----------
    make : callable
        Makes it of a task.
    most : int
        Of how many tasks it is kept.
    """

    def __init__(self, make: Callable[[Task], T], most: int = KEPT) -> None:
        self._make, self._most, self._local = make, most, local()

    def __call__(self, task: Task) -> T:
        kept: dict[str, T] = self._local.__dict__.setdefault("kept", {})
        if task.token not in kept:
            with making():
                made = self._make(task)
            make_room(kept, self._most)
            kept[task.token] = made
        return kept[task.token]


class Networks:
    """The network of each combination of the values of those axes that change more than numbers.

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
        assert isinstance(task.model, Network)
        self._task, self._net = task, task.model
        numbers = range(len(task.grid.axes))
        self.more = [k for k in numbers if is_more(task.targets[task.grid.axes[k].name])]
        self.rest = [k for k in numbers if k not in self.more]
        self._nets: dict[Place, Network | FluidccError] = {}

    def groups(self, points: NDArray[np.int64]) -> Iterator[tuple[Place, NDArray[np.int64], NDArray[np.int64]]]:
        """For each combination, the rows of the points that have it, and their positions along all axes."""
        positions = self._task.grid.places(points)
        combinations, which = np.unique(positions[self.more], axis=1, return_inverse=True)
        for k, place in enumerate(map(tuple, combinations.T.tolist())):
            rows = np.flatnonzero(which.ravel() == k)
            yield place, rows, positions[:, rows]

    def at(self, place: Place) -> Network:
        """The network of a combination.

        Raises
        ------
        FluidccError
            If there is none with these values.
        """
        if place not in self._nets:
            axes = [self._task.grid.axes[k] for k in self.more]
            targets = {axis.name: self._task.targets[axis.name] for axis in axes}
            given = {axis.name: axis.values[position] for axis, position in zip(axes, place, strict=True)}
            make_room(self._nets)
            try:
                self._nets[place] = changed(self._net, targets, given)
            except FluidccError as error:
                self._nets[place] = error
        net = self._nets[place]
        if isinstance(net, FluidccError):
            raise net
        return net
