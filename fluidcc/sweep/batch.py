"""Trajectories of many points at once: one workspace for each structure, and for each point only its own numbers.

A point's workspace is put together from those of the axes' values, each built once. An axis of a law's parameter or of
an initial state changes numbers that nothing else changes; this is verified by comparing workspaces. All other axes
(delays, capacities, buffers) act together, and for them a workspace is built for each of their combinations. Where
these have different structures (delays that coincide, buffers that are infinite), each structure has its own batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.engine.fused import fits, fused_address
from fluidcc.engine.layout import lay_out, require_runnable
from fluidcc.engine.results import dataset
from fluidcc.engine.workspace import Workspace
from fluidcc.errors import FluidccError
from fluidcc.law import Link, Source
from fluidcc.network import Network, resolve_pattern
from fluidcc.numerics.fluid import slots as s
from fluidcc.numerics.fluid.freshness import prepare
from fluidcc.simulate import _frozen
from fluidcc.sweep.measures import KINDS, VARIABLES, Value
from fluidcc.sweep.point import Point, sample_times
from fluidcc.sweep.targets import changed
from fluidcc.symbols import plain, unfold

if TYPE_CHECKING:
    from fluidcc.sweep.task import Task

__all__ = ["Batch", "batch_of", "can_batch"]

_kept = local()  # a thread's batches: their workspaces are written in, and may grow
KEPT = 2
BLOCK = 512  # points in one call: a few tens of milliseconds, so that Ctrl-C is heard
UNITS = {"rate": "bit/s", "arrival_rate": "bit/s", "throughput": "bit/s", "backlog": "bit", "one_way_delay": "s",
         "rtt": "s", "queueing_delay": "s", "loss": "1", "link_loss": "1", "utilisation": "1"}  # fmt: skip


def can_batch(task: Task) -> bool:
    """Whether trajectories can be run many at once: no law jumps or ticks, and all points have the same flows."""
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


def batch_of(task: Task) -> Batch:
    """The batch of a task, kept by this thread from chunk to chunk."""
    batches: dict[str, Batch] = _kept.__dict__.setdefault("batches", {})
    if task.token not in batches:
        while len(batches) >= KEPT:
            del batches[next(iter(batches))]
        batches[task.token] = Batch(task)
    return batches[task.token]


@dataclass
class _Structure:
    """A workspace of one structure, and what is measured of it."""

    space: Workspace
    names: dict[str, int]  # first statistic of each measure
    address: int
    hops: int
    kinds: NDArray[np.int64]
    rows: NDArray[np.int64]


class Batch:
    """Runs of the points of a task.

    Parameters
    ----------
    task : Task
        One that `can_batch`.
    """

    def __init__(self, task: Task) -> None:
        assert isinstance(task.model, Network)
        self.task = task
        self.net = task.model
        self.names = [m.key for m in task.measures if m.kind == "trajectory"]
        self._known: dict[bytes, _Structure] = {}
        self._places: dict[tuple[int, ...], tuple[bytes, NDArray[np.float64], NDArray[np.float64]]] = {}
        first, self._base = self._start()
        # of each axis that acts alone: slots, places from there, and values (values of the axis, places)
        self._free: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = {}
        for k, axis in enumerate(task.grid.axes) if self._base is not None else ():
            alone = self._alone(k, first, axis.name)
            if alone is not None:
                self._free[k] = alone

    # --- what each axis changes -----------------------------------------------------------------------------------

    def _start(self) -> tuple[dict[str, Any], Any]:
        """Some point, the first that can be run, and its workspace; None if it seems that there is none."""
        for number in np.unique(np.linspace(0, self.task.grid.size - 1, 20).astype(int)):
            values = self.task.grid.point(int(number))
            try:
                return values, self._space(values)
            except FluidccError:
                continue
        return {}, None

    def _space(self, values: dict[str, Any]) -> Workspace:
        """The workspace of a point."""
        options = dict(self.task.options)
        options |= {k: values[k] for k, t in self.task.targets.items() if t.kind == "option"}
        net = changed(self.net, self.task.targets, values)
        require_runnable(net)
        at = lay_out(net, _frozen(net, options.get("delays") or "fifo", options.get("frozen_at")))
        until, seed = float(options["until"]), int(options.get("seed") or 0)
        patterns = {f.name: p for f in at.flows if (p := resolve_pattern(f, seed, until)) is not None}
        tolerances = {name: options[name] for name in ("max_step",) if options.get(name) is not None}
        rtol, atol = options.get("rtol") or 1e-6, options.get("atol") or 1e-9
        return Workspace(at, sample_times(options), until, rtol=rtol, atol=atol, patterns=patterns, **tolerances)

    def _alone(self, k: int, first: dict[str, Any], name: str) -> Any:
        """Places in `F` that axis `k` alone changes, and their values for each of its values; None if it is not so."""
        target = self.task.targets[name]
        allowed = self._allowed(target)
        if not allowed:
            return None
        base = self._base
        stop = int(base.I[s.OOUT])
        rows, touched = [], np.zeros(len(base.F), dtype=bool)
        for value in self.task.grid.axes[k].values:
            space = self._space({**first, name: value})
            if len(space.F) != len(base.F) or not np.array_equal(space.I, base.I):
                return None
            other = space.F != base.F
            other[stop : int(base.I[s.OINIT])] = False  # the samples, which are empty
            touched |= other
            rows.append(space.F)
        where = np.flatnonzero(touched)
        if any(np.intersect1d(where, base.I[slots] + at).size for slots, at, _ in self._free.values()):
            return None
        slots = np.full(len(where), -1)
        for slot, count in allowed:
            slots[(where >= base.I[slot]) & (where < base.I[slot] + count)] = slot
        if np.any(slots < 0):
            return None
        return slots, where - base.I[slots], np.array([row[where] for row in rows])

    def _allowed(self, target: Any) -> list[tuple[int, int]]:
        """Slots and lengths in `F` that only this axis may change, by what it is; none if it acts with others."""
        at = self._base.at
        starts = [(s.OINIT, at.n_states), (s.OY, at.n_states)]
        if target.kind not in ("parameter", "initial") or (target.kind == "initial" and target.links):
            return []
        for kind, specs, names in (("flow", self.net.flows, target.flows), ("link", self.net.links, target.links)):
            for name in names:
                law = specs[name].law
                own = set(map(plain, law.params))
                bounds = {plain(p) for m in (law.lower, law.upper) for z in m for p in unfold(m[z]).free_symbols}
                given = self.net.given(kind, name)["initial"] or {}
                defaults = [unfold(law.initial[z]).free_symbols for z in law.initial if plain(z) not in given]
                both = [self._swept(d) for d in defaults]
                if bounds & own or any(target.key in swept and len(swept) > 1 for swept in both):
                    return []  # what holds a state, or where it starts, follows from more than this axis
        parameters = (s.OPAR, sum(g.size * len(g.law.params) for g in (*at.groups, *at.link_groups)))
        return starts if target.kind == "initial" else [parameters, *starts]

    def _swept(self, symbols: Any) -> set[str]:
        """Which of the symbols that a default follows from are swept; constants of a place count as swept."""
        keys = {t.key for t in self.task.targets.values() if t.kind == "parameter"}
        constants = {plain(z) for z in (*Source.constants, *Link.constants)}
        return {plain(z) for z in symbols} & (keys | constants)

    # --- structures -------------------------------------------------------------------------------------------------

    def _place(self, combination: tuple[int, ...], axes: list[int]) -> tuple[bytes, Any, Any]:
        """Structure, head and shifts of a combination of the other axes' values."""
        if combination not in self._places:
            values = {axis.name: axis.values[0] for axis in self.task.grid.axes}
            for k, position in zip(axes, combination, strict=True):
                axis = self.task.grid.axes[k]
                values[axis.name] = axis.values[position]
            space = self._space(values)
            key = len(space.F).to_bytes(8, "little") + space.I.tobytes()
            if key not in self._known:
                self._known[key] = self._structure(space)
            head = np.concatenate([space.F[: space.I[s.OOUT]], space.F[space.I[s.OINIT] : space.I[s.OHIST]]])
            self._places[combination] = (key, head, self._offsets(space, self._known[key]))
        return self._places[combination]

    def _structure(self, space: Workspace) -> _Structure:
        """Where the rows of every statistic are: found by reading numbered samples as a result is read."""
        at = space.at
        prepare()
        fused = self.task.options.get("engine") == "fused" and fits(at)
        address = fused_address(at, build=True) if fused else 0
        first, last = int(space.I[s.OOUT]), int(space.I[s.OINIT])
        kept = space.F[first:last].copy()
        space.F[first:last] = np.arange(first, last)
        numbered = dataset(space, sample_times(self.task.options), 0.0, {}, None)
        kinds: list[int] = []
        rows: list[int] = []
        names: dict[str, int] = {}
        for name in self.names:
            kind, _, variable = name.partition("_")
            inside = {"rtt": "one_way_delay", "utilisation": "throughput"}.get(variable, variable)
            found = numbered[inside].values[0]
            names[name] = len(rows)
            rows += [int(row) for row in found]
            kinds += [KINDS.index(kind)] * len(found)
        space.F[first:last] = kept  # only now: what was read may be a view
        hops = max(len(f.route) for f in at.flows)
        return _Structure(space, names, address, hops, np.array(kinds), np.array(rows))

    def _offsets(self, space: Workspace, structure: _Structure) -> NDArray[np.float64]:
        """For each statistic, what it is multiplied by and what is added: shape (2, statistics)."""
        scale, shift = np.ones(len(structure.rows)), np.zeros(len(structure.rows))
        net = space.at.net
        for name, first in structure.names.items():
            variable = name.partition("_")[2]
            if variable == "rtt":
                shift[first : first + len(net.flows)] = [net.return_delay(f) for f in net.flows]
            elif variable == "utilisation":
                scale[first : first + len(net.links)] = [1.0 / link.capacity for link in net.links.values()]
        return np.array([scale, shift])

    # --- runs -------------------------------------------------------------------------------------------------------

    def run(self, points: NDArray[np.int64]) -> tuple[dict[str, NDArray[np.float64]], dict[int, str]]:
        """Statistics (points, flows or links) by name, and the reasons of the points that failed."""
        places = self.task.grid.places(points)
        axes = [k for k in range(len(places)) if k not in self._free]
        combinations = [tuple(c) for c in places[axes].T.tolist()] if axes else [()] * len(points)
        by_structure: dict[bytes, list[int]] = {}
        results = {name: np.full((len(points), len(self.like(name).values)), np.nan) for name in self.names}
        errors: dict[int, str] = {}
        for row, combination in enumerate(combinations):
            try:
                by_structure.setdefault(self._place(combination, axes)[0], []).append(row)
            except FluidccError as error:
                errors[row] = f"{type(error).__name__}: {' '.join(str(error).split())}"
        for key, members in by_structure.items():
            structure = self._known[key]
            for start in range(0, len(members), BLOCK):
                rows = np.array(members[start : start + BLOCK])
                out, codes = self._block(structure, [combinations[r] for r in rows], axes, places[:, rows])
                for name, first in structure.names.items():
                    count = results[name].shape[1]
                    results[name][rows] = out[:, first : first + count]
                for r in rows[codes != s.DONE]:
                    errors[int(r)] = self._reason(int(points[r]))
        return results, errors

    def like(self, name: str) -> Value:
        """An empty value of a statistic, for the form of the results."""
        variable = name.partition("_")[2]
        dim = VARIABLES[variable]
        labels = tuple(self.net.flows if dim == "flow" else self.net.links)
        return Value(np.full(len(labels), np.nan), (dim,), {dim: labels}, {"units": UNITS[variable]})

    def _block(self, structure: _Structure, combinations: Any, axes: list[int], places: Any) -> Any:
        from fluidcc.numerics.fluid.entry import advance
        from fluidcc.numerics.fluid.many import run_many

        own = list(dict.fromkeys(combinations))
        which = np.array([own.index(c) for c in combinations], dtype=np.int64)
        heads = np.array([self._place(c, axes)[1] for c in own])
        offsets = np.array([self._place(c, axes)[2] for c in own])[which]
        where, values = np.zeros(0, dtype=np.int64), np.ones((len(which), 0))
        if self._free:
            where = np.concatenate([structure.space.I[slots] + at for slots, at, _ in self._free.values()])
            values = np.concatenate([v[places[k]] for k, (_, _, v) in self._free.items()], axis=1)
        out = np.full((len(which), len(structure.rows)), np.nan)
        codes = np.zeros(len(which), dtype=np.int64)
        space, done = structure.space, 0
        grown = len(heads[0]) - (int(space.I[s.OHIST]) - int(space.I[s.OINIT]) + int(space.I[s.OOUT]))
        heads = np.ascontiguousarray(np.pad(heads, ((0, 0), (0, max(-grown, 0)))))
        while done < len(which):
            F, I = space.F.copy(), space.I.copy()
            done = run_many(
                F, I, heads, space.I, which, where, np.ascontiguousarray(values), structure.kinds, structure.rows,
                out, codes, done, structure.hops, structure.address, advance,
            )  # fmt: skip
            if done < len(which) and I[s.CODE] == s.GROW_RING:
                space.grow_ring()
            elif done < len(which):
                more = int(space.I[s.HEAPCAP]) * 2
                space.grow_heap()
                heads = np.ascontiguousarray(np.pad(heads, ((0, 0), (0, more))))
        spread = structure.kinds == KINDS.index("std")
        return out * offsets[:, 0] + np.where(spread, 0.0, offsets[:, 1]), codes

    def _reason(self, number: int) -> str:
        """Why a run failed: as `simulate` says it."""
        point = self.task.point(number)
        try:
            assert isinstance(point, Point)
            _ = point.sampled
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        return "SolverError: the run failed among others, and not alone"
