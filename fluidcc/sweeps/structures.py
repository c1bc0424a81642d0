"""Trajectories of points whose networks differ by more than numbers: numbers of flows, and laws.

For each combination of the values of such axes there is a network, and a task of the other axes; its points are run
together. Where they cannot be, since a law jumps or no flow is left, points are left to be run one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError
from fluidcc.network import Network
from fluidcc.sweeps.batch import batch_of, can_batch
from fluidcc.sweeps.grid import Axis, Grid
from fluidcc.sweeps.networks import Networks, PerThread, Place, make_room
from fluidcc.sweeps.targets import Target, on_copies

if TYPE_CHECKING:
    from fluidcc.sweeps.task import Task

__all__ = ["STRUCTURAL", "Structures", "can_batch_some", "structural", "structures_of"]

STRUCTURAL = ("count", "law")  # kinds of axes


def structural(targets: Mapping[str, Target]) -> bool:
    """Whether the points of a sweep differ by more than numbers."""
    return any(t.kind in STRUCTURAL for t in targets.values())


def can_batch_some(task: Task) -> bool:
    """Whether trajectories of some points may be run many at once."""
    return isinstance(task.model, Network) and (structural(task.targets) or can_batch(task))


class Found(NamedTuple):
    """Statistics by measure; by row, why points failed and what makes others doubtful; the rows to run one by one."""

    values: dict[str, NDArray[Any]]
    errors: dict[int, str]
    doubts: dict[int, list[str]]
    left: NDArray[np.int64]


class Structures:
    """Runs of the points of a task, network by network.

    Parameters
    ----------
    task : Task
        One of a network, whose trajectories are measured.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.names = {m.name: m.key for m in task.measures if m.kind == "trajectory"}
        self.networks = Networks(task, lambda target: target.kind in STRUCTURAL)
        self.more, self.rest = self.networks.more, self.networks.rest
        self._tasks: dict[Place, Task | None] = {}

    @property
    def workspaces(self) -> int:
        """About how many workspaces are built for all points."""
        number = next((n for n in range(self.task.grid.size) if self._task(self._place(n))), None)
        one = None if number is None else self._task(self._place(number))
        each = batch_of(one).places.count if one is not None else 1
        return each * math.prod(len(self.task.grid.axes[k].values) for k in self.more)

    def run(self, points: NDArray[np.int64]) -> Found:
        """Statistics of some points."""
        schema = self.task.schema
        values = {name: np.full((len(points), *schema[name].shape), np.nan) for name in self.names}
        errors: dict[int, str] = {}
        doubts: dict[int, list[str]] = {}
        left: list[int] = []
        for place, rows, positions in self.networks.groups(points):
            task = self._task(place)
            if task is None:
                left += rows.tolist()
                continue
            inner = np.ravel_multi_index(tuple(positions[self.rest]), task.grid.shape) if self.rest else 0 * rows
            found, told, doubtful = batch_of(task).run(inner)
            errors |= {int(rows[row]): text for row, text in told.items()}
            doubts |= {int(rows[row]): texts for row, texts in doubtful.items()}
            assert isinstance(task.model, Network)
            for name, key in self.names.items():
                ((dim, labels),) = schema[name].coords.items()
                own = list(task.model.flows if dim == "flow" else task.model.links)
                values[name][rows[:, None], np.array([labels.index(one) for one in own])] = found[key]
        return Found(values, errors, doubts, np.array(left, dtype=np.int64))

    def _place(self, number: int) -> Place:
        """The combination that a point has."""
        return tuple(self.task.grid.places(np.array([number]))[self.more, 0].tolist())

    def _task(self, place: Place) -> Task | None:
        """The task of a combination; None if its points cannot be run together."""
        if not self.more:
            return self.task if can_batch(self.task) else None
        if place not in self._tasks:
            make_room(self._tasks)
            self._tasks[place] = self._made(place)
        return self._tasks[place]

    def _made(self, place: Place) -> Task | None:
        assert isinstance(self.task.model, Network)
        axes, targets = self.task.grid.axes, self.task.targets
        try:
            net = self.networks.at(place)
        except FluidccError:
            return None  # by itself each point says why
        rest = {axes[k].name: on_copies(targets[axes[k].name], self.task.model, net) for k in self.rest}
        grid = Grid(tuple(axes[k] for k in self.rest))
        if not self.rest:  # a grid has an axis
            rest, grid = {"seed": Target("option", "seed", "count")}, Grid((Axis("seed", (self._seed,)),))
        task = replace(self.task, model=net, grid=grid, targets=rest, token=f"{self.task.token} {place}")
        return task if can_batch(task) else None

    @property
    def _seed(self) -> int:
        return int(self.task.options.get("seed") or 0)


structures_of = PerThread(Structures)
