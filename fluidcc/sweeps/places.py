"""Workspaces of the points of a sweep, put together from those of the axes' values, each built once.

An axis of a law's parameter or of an initial state changes numbers that nothing else changes; this is verified by
comparing workspaces. All other axes (delays, capacities, buffers) act together, and for them a workspace is built for
each of their combinations.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError
from fluidcc.laws import Link, Source
from fluidcc.network.network import Network, resolve_pattern
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.layout import lay_out, require_runnable
from fluidcc.simulation.simulate import _frozen
from fluidcc.simulation.workspace import Workspace
from fluidcc.sweeps.grid_point import sample_times
from fluidcc.sweeps.pace import making
from fluidcc.sweeps.targets import Target, between, changed
from fluidcc.symbols import plain, unfold

if TYPE_CHECKING:
    from fluidcc.sweeps.task import Task

__all__ = ["SHARED", "Place", "Places"]

KEPT = 20_000  # places, of a few kilobytes each
SHARED = 20  # points for each workspace from which on the making of workspaces is no cost of single points
FEW = 3  # values of a parameter by which it is verified that it stands in a workspace as it is


@dataclass
class Place:
    """A combination of values of the axes that act together.

    ``key`` names the structure of its workspace; ``head`` is what stands in `F` up to the samples, and from their end
    to the ring. ``offsets`` are those of its statistics, once they are known; see `batch`.
    """

    key: bytes
    head: NDArray[np.float64]
    net: Network
    offsets: NDArray[np.float64] | None = None


class Places:
    """What the axes of a task change.

    Parameters
    ----------
    task : Task
        One of a network, whose trajectories can be run many at once.

    Attributes
    ----------
    free : dict
        For each axis that acts alone, by number: slots, places from there, and values (values of the axis, places).
    joint : list of int
        The other axes.
    count : int
        Combinations of their values, for each of which a workspace is built.
    spaces : dict
        A workspace of each structure, by its key.
    """

    def __init__(self, task: Task) -> None:
        assert isinstance(task.model, Network)
        self._task = task
        self._net = task.model
        self._times = sample_times(task.options)
        self._places: dict[tuple[int, ...], Place | FluidccError] = {}
        self._lock = Lock()  # threads share the places
        self.spaces: dict[bytes, Workspace] = {}
        self._keys: dict[bytes, bytes] = {}
        self.free: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = {}
        self.base: Any = None
        self._first, self.base = self._start()
        for k, axis in enumerate(task.grid.axes) if self.base is not None else ():
            alone = self._alone(k, axis.name)
            if alone is not None:
                self.free[k] = alone
        self.joint = [k for k in range(len(task.grid.axes)) if k not in self.free]
        self.count = math.prod(len(task.grid.axes[k].values) for k in self.joint)

    def combinations(self, positions: NDArray[np.int64]) -> tuple[list[tuple[int, ...]], NDArray[np.int64]]:
        """The combinations along the joint axes that some points have, and which of these each has.

        Parameters
        ----------
        positions : array
            Positions along all axes, shape (axes, points).
        """
        if not self.joint:
            return [()], np.zeros(positions.shape[1], dtype=np.int64)
        shape = tuple(len(self._task.grid.axes[k].values) for k in self.joint)
        numbers, which = np.unique(np.ravel_multi_index(tuple(positions[self.joint]), shape), return_inverse=True)
        return [*zip(*(k.tolist() for k in np.unravel_index(numbers, shape)), strict=True)], which

    def at(self, combination: tuple[int, ...]) -> Place:
        """The place at these positions along the joint axes.

        Raises
        ------
        FluidccError
            If there is no network with these values, or it cannot be run.
        """
        with self._lock:
            found = self._places.get(combination)
            if found is None:
                while len(self._places) >= KEPT:
                    del self._places[next(iter(self._places))]
                try:
                    with making() if self.count * SHARED <= self._task.grid.size else nullcontext():
                        found = self._made(combination)
                except FluidccError as error:
                    found = error
                self._places[combination] = found
        if isinstance(found, FluidccError):
            raise found
        return found

    def _made(self, combination: tuple[int, ...]) -> Place:
        values = {axis.name: axis.values[0] for axis in self._task.grid.axes}
        for k, position in zip(self.joint, combination, strict=True):
            axis = self._task.grid.axes[k]
            values[axis.name] = axis.values[position]
        space = self._space(values)
        key = len(space.F).to_bytes(8, "little") + space.I.tobytes()
        key = self._keys.setdefault(key, key)  # the same object for all, which is found at once
        self.spaces.setdefault(key, space)
        head = np.concatenate([space.F[: space.I[s.OOUT]], space.F[space.I[s.OINIT] : space.I[s.OHIST]]])
        return Place(key, head, space.at.net)

    def _start(self) -> tuple[dict[str, Any], Any]:
        """Some point, the first that can be run, and its workspace; None if it seems that there is none."""
        for number in np.unique(np.linspace(0, self._task.grid.size - 1, 20).astype(int)):
            values = self._task.grid.point(int(number))
            try:
                return values, self._space(values)
            except FluidccError:
                continue
        return {}, None

    def _space(self, values: dict[str, Any]) -> Workspace:
        """The workspace of a point; that of the first one is there already."""
        if self.base is not None and values == self._first:
            return self.base
        options = dict(self._task.options)
        options |= {k: values[k] for k, t in self._task.targets.items() if t.kind == "option"}
        net = changed(self._net, self._task.targets, values)
        require_runnable(net)
        at = lay_out(net, _frozen(net, options.get("delays") or "fifo", options.get("frozen_at")))
        until, seed = float(options["until"]), int(options.get("seed") or 0)
        patterns = {f.name: p for f in at.flows if (p := resolve_pattern(f, seed, until)) is not None}
        tolerances = {name: options[name] for name in ("max_step",) if options.get(name) is not None}
        rtol, atol = options.get("rtol") or 1e-6, options.get("atol") or 1e-9
        return Workspace(at, self._times, until, rtol=rtol, atol=atol, patterns=patterns, **tolerances)

    def _alone(self, k: int, name: str) -> Any:
        """Places in `F` that axis `k` alone changes, and their values for each of its values; None if it is not so."""
        target = self._task.targets[name]
        allowed = self._allowed(target)
        if not allowed:
            return None
        base = self.base
        stop = int(base.I[s.OOUT])
        values = np.array(self._task.grid.axes[k].values)
        few = _spread(values)
        rows, touched = {}, np.zeros(len(base.F), dtype=bool)
        for n in [*few, *(n for n in range(len(values)) if n not in few)]:
            space = self._space({**self._first, name: values[n].item()})
            if len(space.F) != len(base.F) or not np.array_equal(space.I, base.I):
                return None
            other = space.F != base.F
            other[stop : int(base.I[s.OINIT])] = False  # the samples, which are empty
            touched |= other
            rows[n] = space.F
            if n == few[-1] and self._as_it_is(touched, allowed[0], rows, values):
                break
        where = np.flatnonzero(touched)
        if len(rows) == len(values):
            table = np.array([rows[n][where] for n in range(len(values))])
        else:
            table = np.repeat(values[:, None], len(where), axis=1)
        if any(np.intersect1d(where, base.I[slots] + at).size for slots, at, _ in self.free.values()):
            return None
        slots = np.full(len(where), -1)
        for slot, count in allowed:
            slots[(where >= base.I[slot]) & (where < base.I[slot] + count)] = slot
        if np.any(slots < 0):
            return None
        return slots, where - base.I[slots], table

    def _as_it_is(self, touched: Any, allowed: tuple[int, int], rows: Any, values: Any) -> bool:
        """Whether each place that an axis changes is a parameter's, and holds its value as it is."""
        slot, count = allowed
        first = int(self.base.I[slot])
        beyond = np.concatenate([touched[:first], touched[first + count :]])
        return slot == s.OPAR and not beyond.any() and all(np.all(row[touched] == values[n]) for n, row in rows.items())

    def _allowed(self, target: Target) -> list[tuple[int, int]]:
        """Slots and lengths in `F` that only this axis may change, by what it is; none if it acts with others."""
        at = self.base.at
        starts = [(s.OINIT, at.n_states), (s.OY, at.n_states)]
        keys = {t.key for t in self._task.targets.values() if t.kind == "parameter"}
        if target.kind not in ("parameter", "initial") or (target.kind == "initial" and target.links):
            return []
        for kind, specs, names in (("flow", self._net.flows, target.flows), ("link", self._net.links, target.links)):
            for name in names:
                law = specs[name].law
                own = set(map(plain, law.params))
                bounds = {plain(p) for m in (law.lower, law.upper) for z in m for p in unfold(m[z]).free_symbols}
                if any(target.key in names and len(names & keys) > 1 for names in between(law)):
                    return []  # whether a value may be depends on that of another axis
                given = self._net.given(kind, name)["initial"] or {}
                defaults = [unfold(law.initial[z]).free_symbols for z in law.initial if plain(z) not in given]
                both = [self._swept(d) for d in defaults]
                if bounds & own or any(target.key in swept and len(swept) > 1 for swept in both):
                    return []  # what holds a state, or where it starts, follows from more than this axis
        parameters = (s.OPAR, sum(g.size * len(g.law.params) for g in (*at.groups, *at.link_groups)))
        return starts if target.kind == "initial" else [parameters, *starts]

    def _swept(self, symbols: Any) -> set[str]:
        """Which of the symbols that a default follows from are swept; constants of a place count as swept."""
        keys = {t.key for t in self._task.targets.values() if t.kind == "parameter"}
        constants = {plain(z) for z in (*Source.constants, *Link.constants)}
        return {plain(z) for z in symbols} & (keys | constants)


def _spread(values: NDArray[Any]) -> list[int]:
    """Where a few of the values stand: the least, the largest and some between them."""
    order = np.argsort(values)
    return order[np.unique(np.linspace(0, len(values) - 1, FEW).astype(int))].tolist()
