"""Trajectories of many points at once: one workspace for each structure, and for each point only its own numbers.

Where combinations of values have different structures (delays that coincide, buffers that are infinite), each structure
has its own batch. What differs from point to point is found by `places`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError
from fluidcc.base.progress import look
from fluidcc.network import Network
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.running import pause_after
from fluidcc.sweeps.grid_point import Point
from fluidcc.sweeps.measures import KINDS
from fluidcc.sweeps.networks import PerThread, make_room
from fluidcc.sweeps.pace import making
from fluidcc.sweeps.places import Place, Places
from fluidcc.sweeps.samples import Samples
from fluidcc.sweeps.structure import Structure, empty, structure_of
from fluidcc.sweeps.targets import changed

if TYPE_CHECKING:
    from fluidcc.sweeps.task import Task

__all__ = ["Batch", "batch_of", "can_batch"]

_shared: dict[str, Places] = {}  # of all threads
_making = Lock()
BLOCK = 512  # points that are put together at once


def can_batch(task: Task) -> bool:
    """Whether trajectories can be run many at once: no law jumps or ticks, and flows and laws are always the same."""
    if not isinstance(task.model, Network):
        return False
    net = task.model
    laws: list[Any] = [*(f.law for f in net.flows.values()), *(link.law for link in net.links.values())]
    if not net.flows or any(law.jumps or law.ticks for law in laws):
        return False
    if any(task.options.get(k) is not None for k in ("restart", "first_step")) or "until" in task.targets:
        return False
    if any(link.schedule for link in net.links.values()):  # the capacity is no single number then
        return False
    return not any(t.kind in ("count", "law") for t in task.targets.values())


def _batch(task: Task) -> Batch:
    """The batch of a task; threads share what axes change."""
    with _making:
        if task.token not in _shared:
            make_room(_shared)
            _shared[task.token] = Places(task)
        places = _shared[task.token]
    return Batch(task, places)


class Batch:
    """Runs of the points of a task, in one thread.

    Parameters
    ----------
    task : Task
        One that `can_batch`.
    places : Places
        Its workspaces.
    """

    def __init__(self, task: Task, places: Places) -> None:
        assert isinstance(task.model, Network)
        self.task, self.net, self.places = task, task.model, places
        self.names = [m.key for m in task.measures if m.kind == "trajectory"]
        self._known: dict[bytes, Structure] = {}

    def _structure_of(self, place: Place) -> Structure:
        """The structure of a place, with a workspace of this thread's own."""
        if place.key not in self._known:
            with making():
                space = copy(self.places.spaces[place.key])
                space.F, space.I = space.F.copy(), space.I.copy()
                self._known[place.key] = structure_of(space, self.task.options, self.names)
        return self._known[place.key]

    def _offsets(self, structure: Structure, place: Place) -> NDArray[np.float64]:
        """For each statistic, what it is multiplied by and what is added: shape (2, statistics)."""
        if place.offsets is not None:
            return place.offsets
        net = place.net
        scale, shift = np.ones(len(structure.rows)), np.zeros(len(structure.rows))
        for name, first in structure.names.items():
            variable = name.partition("_")[2]
            if variable == "rtt":
                shift[first : first + len(net.flows)] = [net.return_delay(f) for f in net.flows]
            elif variable == "utilisation":
                scale[first : first + len(net.links)] = [1.0 / link.capacity for link in net.links.values()]
        place.offsets = np.array([scale, shift])
        return place.offsets

    # --- runs -------------------------------------------------------------------------------------------------------

    def run(
        self, points: NDArray[np.int64]
    ) -> tuple[dict[str, NDArray[np.float64]], dict[int, str], dict[int, list[str]]]:
        """Statistics (points, flows or links) by name, why points failed, and what makes others doubtful."""
        positions = self.task.grid.places(points)
        results: dict[str, Any] = {}
        for name in self.names:
            results[name] = np.full((len(points), len(empty(self.net, name).values)), np.nan)
        errors: dict[int, str] = {}
        doubtful: dict[int, list[str]] = {}
        combinations, which = self.places.combinations(positions)
        found: dict[int, Place] = {}
        kinds: dict[bytes, int] = {}
        kind = np.full(len(combinations), -1)
        for number, combination in enumerate(combinations):
            try:
                found[number] = self.places.at(combination)
            except FluidccError as error:
                told = f"{type(error).__name__}: {' '.join(str(error).split())}"
                errors |= dict.fromkeys(np.flatnonzero(which == number).tolist(), told)
            else:
                kind[number] = kinds.setdefault(found[number].key, len(kinds))
        order = np.argsort(kind[which], kind="stable")
        bounds = np.searchsorted(kind[which], range(len(kinds) + 1), sorter=order)
        for begin, end in pairwise(bounds.tolist()):
            members = order[begin:end]
            structure = self._structure_of(found[which[members[0]]])
            for start in range(0, len(members), BLOCK):
                rows = members[start : start + BLOCK]
                numbers, own = np.unique(which[rows], return_inverse=True)
                some = [found[n] for n in numbers.tolist()]
                out, codes, texts = self._block(structure, some, own, positions[:, rows])
                for name, first in structure.names.items():
                    results[name][rows] = out[:, first : first + results[name].shape[1]]
                for r in rows[codes != s.DONE]:
                    errors[int(r)] = self._reason(int(points[r]))
                doubtful |= {int(rows[k]): text for k, text in texts.items() if text}
        return results, errors, doubtful

    def _block(self, structure: Structure, places: list[Place], which: NDArray[np.int64], positions: Any) -> Any:
        """Statistics of points of one structure, why runs ended, and what makes which doubtful."""
        heads = np.array([place.head for place in places])
        offsets = np.array([self._offsets(structure, place) for place in places])[which]
        where, values = np.zeros(0, dtype=np.int64), np.ones((len(which), 0))
        free = self.places.free
        if free:
            where = np.concatenate([structure.space.I[slots] + at for slots, at, _ in free.values()])
            values = np.concatenate([v[positions[k]] for k, (_, _, v) in free.items()], axis=1)
        by_row = [places[k] for k in which]
        out, codes, doubtful = self._runs(structure, by_row, heads, which, where, values, positions)
        spread = structure.kinds == KINDS.index("std")
        return out * offsets[:, 0] + np.where(spread, 0.0, offsets[:, 1]), codes, doubtful

    def _runs(
        self,
        structure: Structure,
        places: list[Place],
        heads: Any,
        which: Any,
        where: Any,
        values: Any,
        positions: Any,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[int, list[str]]]:
        """Statistics of some points, why each run ended, and what makes which of them doubtful."""
        from fluidcc.numerics.fluid.entry import advance
        from fluidcc.numerics.fluid.many import run_many

        out, codes = np.full((len(which), len(structure.rows)), np.nan), np.zeros(len(which), dtype=np.int64)
        doubtful: dict[int, list[str]] = {}
        space, done = structure.space, 0
        grown = int(space.I[s.OHIST]) - int(space.I[s.OINIT]) + int(space.I[s.OOUT]) - len(heads[0])
        if grown > 0:
            heads = np.ascontiguousarray(np.pad(heads, ((0, 0), (0, grown))))
        values = np.ascontiguousarray(values)
        F, I = space.F.copy(), space.I.copy()
        space.I[s.BUDGET] = 10 * pause_after(space.at)
        anew = 1
        while done < len(which):
            look()
            stop = len(which) if structure.places is None else done + 1  # the next run overwrites the samples
            done = run_many(
                F, I, heads, space.I, which[:stop], where, values[:stop], structure.kinds, structure.rows,
                out[:stop], codes[:stop], done, anew, structure.hops, structure.address, advance,
            )  # fmt: skip
            anew = int(I[s.CODE] != s.PAUSED or done == stop)
            if done == stop:
                last = done - 1
                if structure.places is not None and codes[last] == s.DONE:
                    doubtful[last] = self._looked_at(structure, places[last], positions[:, last], F)
                continue
            if I[s.CODE] not in (s.GROW_RING, s.GROW_HEAP):
                continue
            if I[s.CODE] == s.GROW_RING:
                space.grow_ring()
            else:
                more = int(space.I[s.HEAPCAP]) * 2
                space.grow_heap()
                heads = np.ascontiguousarray(np.pad(heads, ((0, 0), (0, more))))
            F, I = space.F.copy(), space.I.copy()
        if structure.places is None:
            doubtful = dict.fromkeys(np.flatnonzero(codes == s.DONE).tolist(), structure.doubts)
        return out, codes, doubtful

    def _looked_at(self, structure: Structure, place: Place, position: NDArray[np.int64], F: Any) -> list[str]:
        """What makes the run doubtful that has left its samples in `F`."""
        assert structure.places is not None
        net, at, times = place.net, structure.space.at, range(int(structure.space.I[s.NSAMP]))
        if self.places.free:  # the values of these axes are only in the workspace
            values = {axis.name: axis.values[k] for axis, k in zip(self.task.grid.axes, position, strict=True)}
            net = changed(self.net, self.task.targets, values)
        flows, links = [net.flows[f.name] for f in at.flows], [net.links[l.name] for l in at.links]
        back = {name: net.return_delay(name) for name in net.flows}
        return Samples(structure.places, times, F, back).doubts(replace(at, net=net, flows=flows, links=links))

    def _reason(self, number: int) -> str:
        """Why a run failed: as `simulate` says it."""
        point = self.task.point(number)
        try:
            assert isinstance(point, Point)
            _ = point.sampled
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        return "SolverError: the run failed among others, and not alone"


batch_of = PerThread(_batch)
