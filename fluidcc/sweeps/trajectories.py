"""Trajectories of many points at once: statistics of runs from workspaces that differ in numbers.

An axis of a law's parameter or of an initial state sets numbers that stand in a workspace as they
are. The other axes (delays, capacities, buffers, starts) act together, and for each combination of
their values a workspace is built. Workspaces of equal structure share everything but their numbers.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import lambdify

from fluidcc.base.errors import FluidccError
from fluidcc.base.progress import look
from fluidcc.laws import Link, Source
from fluidcc.network import Network
from fluidcc.network.network import resolve_pattern
from fluidcc.numerics.fluid import state as s
from fluidcc.simulation.diagnostics import doubts
from fluidcc.simulation.fused import fits, fused_address
from fluidcc.simulation.layout import lay_out, require_runnable
from fluidcc.simulation.results import variables
from fluidcc.simulation.simulate import _frozen, pause_after
from fluidcc.simulation.workspace import Workspace
from fluidcc.sweeps.batches import (
    STRUCTURAL,
    Batches,
    Combination,
    Kept,
    combined,
    structural,
)
from fluidcc.sweeps.grid import Axis
from fluidcc.sweeps.measures import KINDS, Measure, Point, sample_times
from fluidcc.sweeps.steady import Found
from fluidcc.sweeps.targets import between, changed, on_copies
from fluidcc.sweeps.task import Task
from fluidcc.symbols import plain, unfold

__all__ = ["Runs", "Trajectories", "runs_together", "trajectories_of"]

BLOCK = 512  # points that are put together at once
PLACES = 20_000  # workspaces whose numbers are kept, of a few kilobytes each
TRIED = 20  # points of which some must have a workspace
_MADE_OF = {"rtt": "one_way_delay", "utilisation": "throughput"}  # and numbers of the network


def runs_together(task: Task) -> bool:
    """Return whether trajectories of some points, if any are measured, can be run many at once."""
    if not any(m.kind == "trajectory" for m in task.measures):
        return False
    return isinstance(task.model, Network) and (structural(task) or _can_run(task, task.model))


def _can_run(task: Task, net: Network) -> bool:
    """Whether runs differ in numbers only: no law jumps or ticks, no capacity changes."""
    laws: list[Any] = [*(f.law for f in net.flows.values()), *(l.law for l in net.links.values())]
    if not net.flows or any(law.jumps or law.ticks for law in laws):
        return False
    if any(task.options.get(k) is not None for k in ("restart", "first_step")):
        return False
    return "until" not in task.targets and not any(link.schedule for link in net.links.values())


class Trajectories:
    """Runs of the points of a task, network by network.

    Parameters
    ----------
    task : Task
        One of a network, whose trajectories are measured.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.batches = Batches(task, lambda target: target.kind in STRUCTURAL)
        self._runs: Kept[Runs | None] = Kept()

    @property
    def workspaces(self) -> int:
        """About how many workspaces are built for all points."""
        axes = self.task.grid.axes
        combinations = math.prod(len(axes[k].values) for k in self.batches.more)
        for number in range(min(self.task.grid.size, TRIED)):
            positions = self.task.grid.places(np.array([number]))
            if (runs := self.runs_of(tuple(positions[self.batches.more, 0].tolist()))) is not None:
                return combinations * math.prod(len(axes[k].values) for k in runs.joint)
        return combinations

    def runs_of(self, combination: Combination) -> Runs | None:
        """Return the runs of the network of a combination; None if they must be made one by one."""
        try:
            return self._runs.get(combination, lambda: self._made(combination))
        except FluidccError:
            return None  # by itself each point says why

    def _made(self, combination: Combination) -> Runs | None:
        net = self.batches.network(combination) if self.batches.more else self.task.model
        assert isinstance(net, Network)
        return Runs(self.task, net, self.batches.rest) if _can_run(self.task, net) else None

    def run(self, points: NDArray[np.int64], measures: list[Measure]) -> Found:
        """Return statistics of the runs at some points."""
        schema = self.task.schema
        found = Found(
            {m.name: np.full((len(points), *schema[m.name].shape), np.nan) for m in measures}
        )
        for combination, rows, positions in self.batches.of(points):
            runs = self.runs_of(combination)
            if runs is None:
                found.left += rows.tolist()
                continue
            statistics, errors, said = runs.run(positions)
            for m in measures:
                ((dim, labels),) = schema[m.name].coords.items()
                names = runs.net.flows if dim == "flow" else runs.net.links
                columns = np.array([labels.index(name) for name in names])
                found.values[m.name][rows[:, None], columns] = statistics[m.key]
            for k, error in errors.items():
                row = int(rows[k])
                found.errors[row] = {"": error or self._reason(int(points[row]))}
            found.doubts |= {int(rows[k]): texts for k, texts in said.items() if texts}
        return found

    def _reason(self, number: int) -> str:
        """Why a run failed, as `simulate` says it."""
        point = self.task.point(number)
        try:
            assert isinstance(point, Point)
            _ = point.sampled
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        return "SolverError: the run failed among others, and not alone"


# --- runs of one network --------------------------------------------------------------------------


class _Own(NamedTuple):
    """A number that one axis alone sets: whose and which it is, and its value for each of the
    axis's.
    """

    owner: str  # "flow" or "link"
    name: str
    what: str  # "parameter" or "initial"
    key: str
    values: NDArray[np.float64]


@dataclass
class _Structure:
    """What workspaces that differ in numbers only have in common.

    Attributes
    ----------
    space : Workspace
    first : dict
        Of each statistic, the number of its first row.
    kinds, rows : arrays of int
        The kind of each row, and where its samples stand.
    where : array of int
        Where the numbers stand that axes set alone.
    address, hops : int
        Of the compiled step, and of the longest route.
    doubts : list of str
        What makes every run doubtful, unless that depends on the samples.
    samples : dict or None
        Where the samples of each variable and flow stand, if what makes a run doubtful depends on
        them.
    """

    space: Workspace
    first: dict[str, int]
    kinds: NDArray[np.int64]
    rows: NDArray[np.int64]
    where: NDArray[np.int64]
    address: int
    hops: int
    doubts: list[str]
    samples: dict[tuple[str, str], int] | None


class _Place(NamedTuple):
    """A combination of values of the axes that act together.

    ``head`` has the numbers of its workspace, up to the samples and from their end to the ring;
    each statistic is multiplied by ``scale``, and ``shift`` is added.
    """

    structure: _Structure
    head: NDArray[np.float64]
    net: Network
    scale: NDArray[np.float64]
    shift: NDArray[np.float64]


class Runs:
    """Runs of the points of a task that have one network but for numbers.

    Parameters
    ----------
    task : Task
    net : Network
    rest : list of int
        The axes that change its numbers.

    Attributes
    ----------
    own : dict
        For each axis that acts alone, by number, what it sets.
    joint : list of int
        The other ones of these axes.
    """

    def __init__(self, task: Task, net: Network, rest: list[int]) -> None:
        self.task, self.net = task, net
        self._axes = {k: task.grid.axes[k] for k in rest}
        model: Any = task.model
        self._targets = {
            axis.name: on_copies(task.targets[axis.name], model, net)
            for axis in self._axes.values()
        }
        self._names = [m.key for m in task.measures if m.kind == "trajectory"]
        self._places: Kept[_Place] = Kept(PLACES)
        self.structures: dict[tuple[int, bytes], _Structure] = {}
        self.own: dict[int, list[_Own]] = {}
        values, space = self._some_workspace()
        self._tables: dict[int, NDArray[np.float64]] = {}
        for k, axis in self._axes.items() if space is not None else ():
            assert space is not None
            own = self._own_numbers(axis)
            if own and all(self._sets(own, values, space, axis, n) for n in _ends(axis)):
                self.own[k] = own
                columns = [one.values for one in own for _ in _where(space, one)]
                self._tables[k] = np.stack(columns, axis=1)
        self.joint = [k for k in rest if k not in self.own]

    def run(
        self, positions: NDArray[np.int64]
    ) -> tuple[dict[str, NDArray[np.float64]], dict[int, str], dict[int, list[str]]]:
        """Return statistics of runs, why some failed, and what makes others doubtful.

        Parameters
        ----------
        positions : array
            Positions along all axes of the task, shape (axes, points).

        Returns
        -------
        statistics : dict
            Arrays (points, flows or links) by name, such as ``"mean_rate"``.
        errors : dict
            By point; "" where `simulate` must say why.
        doubts : dict
            By point.
        """
        combinations, which = combined(positions[self.joint])
        places: list[_Place | str] = []
        for combination in combinations:
            try:
                places.append(self._places.get(combination, partial(self._place, combination)))
            except FluidccError as error:
                places.append(f"{type(error).__name__}: {' '.join(str(error).split())}")
        known = list(self.structures.values())
        numbers = {id(structure): number for number, structure in enumerate(known)}
        kinds = [-1 if isinstance(p, str) else numbers[id(p.structure)] for p in places]
        kind = np.array(kinds, dtype=np.int64)[which]
        failed = np.flatnonzero(kind < 0).tolist()
        errors: dict[int, str] = {k: str(places[which[k]]) for k in failed}
        doubtful: dict[int, list[str]] = {}
        found = {
            name: np.full(
                (len(which), len(Measure(name, "trajectory", name).labels(self.net))), np.nan
            )
            for name in self._names
        }
        for number, structure in enumerate(known):
            members = np.flatnonzero(kind == number)
            for start in range(0, len(members), BLOCK):
                rows = members[start : start + BLOCK]
                out, codes, said = self._block(structure, places, which[rows], positions[:, rows])
                for name, first in structure.first.items():
                    found[name][rows] = out[:, first : first + found[name].shape[1]]
                errors |= dict.fromkeys(rows[codes != s.DONE].tolist(), "")
                doubtful |= {int(rows[k]): texts for k, texts in said.items()}
        return found, errors, doubtful

    def _block(
        self,
        structure: _Structure,
        places: list[Any],
        which: NDArray[np.int64],
        positions: NDArray[np.int64],
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[int, list[str]]]:
        """Statistics of runs of one structure, why each ended, and what makes them doubtful."""
        from fluidcc.numerics.fluid.entry import advance
        from fluidcc.numerics.fluid.many import run_many

        numbers, which = np.unique(which, return_inverse=True)
        some: list[_Place] = [places[n] for n in numbers.tolist()]
        tables = [self._tables[k][positions[k]] for k in self.own]
        values = np.concatenate([np.empty((len(which), 0)), *tables], axis=1)
        out, codes = np.full((len(which), len(structure.rows)), np.nan), np.zeros(len(which), int)
        doubtful: dict[int, list[str]] = {}
        space = _copied(structure.space)  # this thread's own
        space.state.budget = 10 * pause_after(space.at)
        heads = _with_room(np.array([place.head for place in some]), space)
        F, I, anew, done = space.F.copy(), space.I.copy(), 1, 0
        alone = structure.samples is not None  # runs overwrite the samples of those before
        while done < len(which):
            look()
            stop = done + 1 if alone else len(which)
            done = run_many(
                F, I, heads, space.I, which[:stop], structure.where, values[:stop], structure.kinds,
                structure.rows, out[:stop], codes[:stop], done, anew, structure.hops,
                structure.address, advance,
            )  # fmt: skip
            why = s.State(F, I).code
            anew = int(why != s.PAUSED or done == stop)
            if done == stop:
                last = done - 1
                if alone and codes[last] == s.DONE:
                    place = some[which[last]]
                    doubtful[last] = self._doubts(structure, place, positions[:, last], F)
            elif why == s.GROW_RING and not space.grow_ring():
                codes[done], done, anew = s.COLLAPSE, done + 1, 1
            elif why in (s.GROW_RING, s.GROW_HEAP):
                if why == s.GROW_HEAP:
                    space.grow_heap()
                structure.space = _copied(space)  # for those that come later
                F, I, heads = space.F.copy(), space.I.copy(), _with_room(heads, space)
        if not alone:
            doubtful = dict.fromkeys(np.flatnonzero(codes == s.DONE).tolist(), structure.doubts)
        scale = np.array([place.scale for place in some])[which]
        shift = np.array([place.shift for place in some])[which]
        return out * scale + shift, codes, doubtful

    def _doubts(
        self, structure: _Structure, place: _Place, position: NDArray[np.int64], F: Any
    ) -> list[str]:
        """What makes the run doubtful that has left its samples in `F`."""
        assert structure.samples is not None
        samples, at, net = structure.samples, structure.space.at, place.net
        if self.own:  # the values of these axes stand in the workspace alone
            values = {axis.name: axis.values[position[k]] for k, axis in self._axes.items()}
            net = changed(self.net, self._targets, values)
        flows, links = [net.flows[f.name] for f in at.flows], [net.links[l.name] for l in at.links]
        count = int(structure.space.state.n_samples)

        def read(variable: str, flow: str) -> NDArray[np.float64]:
            first = samples[_MADE_OF.get(variable, variable), flow]
            values = F[first : first + count]
            return values + net.return_delay(flow) if variable == "rtt" else values

        return doubts(replace(at, net=net, flows=flows, links=links), read)

    # --- workspaces -------------------------------------------------------------------------------

    def _place(self, combination: Combination) -> _Place:
        """The place at these positions along the joint axes."""
        values = {axis.name: axis.values[0] for axis in self._axes.values()}
        for k, position in zip(self.joint, combination, strict=True):
            values[self._axes[k].name] = self._axes[k].values[position]
        space = self._space(values)
        key = (len(space.F), space.I.tobytes())
        if key not in self.structures:
            self.structures[key] = self._structure(space)
        structure = self.structures[key]
        start = space.state.start
        head = np.concatenate(
            [space.F[: start("samples")], space.F[start("initial") : start("ring")]]
        )
        net = space.at.net
        scale, shift = np.ones(len(structure.rows)), np.zeros(len(structure.rows))
        for name, first in structure.first.items():
            variable = name.partition("_")[2]
            if variable == "rtt" and not name.startswith("std"):
                shift[first : first + len(net.flows)] = [net.return_delay(f) for f in net.flows]
            elif variable == "utilisation":
                capacities = [1.0 / link.capacity for link in net.links.values()]
                scale[first : first + len(net.links)] = capacities
        return _Place(structure, head, net, scale, shift)

    def _space(self, values: dict[str, Any]) -> Workspace:
        """The workspace of the network with these values of the axes."""
        options = dict(self.task.options)
        options |= {k: values[k] for k, t in self._targets.items() if t.kind == "option"}
        net = changed(self.net, self._targets, values)
        require_runnable(net)
        frozen = _frozen(net, options.get("delays") or "fifo", options.get("frozen_at"))
        at, until, seed = lay_out(net, frozen), float(options["until"]), options.get("seed") or 0
        patterns = {
            f.name: p for f in at.flows if (p := resolve_pattern(f, int(seed), until)) is not None
        }
        given = {"rtol": 1e-6, "atol": 1e-9, "max_step": math.inf}
        tolerances = {k: v if options.get(k) is None else options[k] for k, v in given.items()}
        return Workspace(at, sample_times(options), until, patterns=patterns, **tolerances)

    def _structure(self, space: Workspace) -> _Structure:
        """The structure of a workspace. Where its samples stand is read from numbered ones."""
        at, options, space = space.at, self.task.options, _copied(space)
        fused = options.get("engine") == "fused" and fits(at)
        start, stop = space.state.start("samples"), space.state.start("initial")
        kept = space.F[start:stop].copy()
        space.F[start:stop] = np.arange(start, stop)
        numbered = variables(space, sample_times(options))
        kinds: list[int] = []
        rows: list[int] = []
        first: dict[str, int] = {}
        for name in self._names:
            kind, _, variable = name.partition("_")
            found = numbered[_MADE_OF.get(variable, variable)][1][0]
            first[name] = len(rows)
            rows += [int(row) for row in found]
            kinds += [KINDS.index(kind)] * len(found)
        samples = {
            (name, flow): int(place)
            for name, (dims, values, _) in numbered.items()
            if dims == ("time", "flow") and name != "rtt"
            for flow, place in zip(at.net.flows, values[0].tolist(), strict=True)
            if place == place
        }
        asked: list[str] = []

        def sending(variable: str, flow: str) -> NDArray[np.float64]:
            asked.append(variable)
            return np.ones(int(space.state.n_samples))

        said = doubts(at, sending)
        space.F[start:stop] = kept  # only now: what was read may be a view
        where = [n for own in self.own.values() for one in own for n in _where(space, one)]
        return _Structure(
            space, first, np.array(kinds), np.array(rows), np.array(where, dtype=np.int64),
            fused_address(at, build=True) if fused else 0, max(len(f.route) for f in at.flows),
            said, samples if asked else None,
        )  # fmt: skip

    # --- axes that act alone ----------------------------------------------------------------------

    def _some_workspace(self) -> tuple[dict[str, Any], Workspace | None]:
        """Some point and its workspace: the first that can be run of a few; None if none can."""
        shape = tuple(len(axis.values) for axis in self._axes.values())
        for number in np.unique(np.linspace(0, math.prod(shape) - 1, TRIED).astype(int)):
            position = np.unravel_index(number, shape) if shape else ()
            values = {
                axis.name: axis.values[k]
                for axis, k in zip(self._axes.values(), position, strict=True)
            }
            try:
                return values, self._space(values)
            except FluidccError:
                continue
        return {}, None

    def _own_numbers(self, axis: Axis) -> list[_Own]:
        """What an axis sets, if no value of it bears on what another axis sets; else nothing."""
        target = self._targets[axis.name]
        if target.kind not in ("parameter", "initial") or (
            target.kind == "initial" and target.links
        ):
            return []
        values = np.array(axis.values, dtype=float)
        swept = {t.key for t in self._targets.values() if t.kind == "parameter"}
        found: list[_Own] = []
        for owner, name in [
            *(("flow", f) for f in target.flows),
            *(("link", l) for l in target.links),
        ]:
            law = getattr(self.net, f"{owner}s")[name].law
            bounds = {
                p for side in (law.lower, law.upper) for z in side for p in _names_in(side[z])
            }
            fitted = any(target.key in some and len(some & swept) > 1 for some in between(law))
            if fitted or bounds & set(map(plain, law.params)):
                return []
            found.append(
                _Own(owner, name, target.kind, target.key.removeprefix("initial."), values)
            )
            for z, default in law.initial.items() if target.kind == "parameter" else ():
                if target.key not in _names_in(default) or self._starts_at(owner, name, plain(z)):
                    continue
                constants = {plain(c) for c in (*Source.constants, *Link.constants)}
                if owner == "link" or _names_in(default) & (swept | constants) != {target.key}:
                    return []
                symbol = next(p for p in law.params if plain(p) == target.key)
                known = {p: v for p, v in law.params.items() if p != symbol}
                start = lambdify([symbol], unfold(default).xreplace(known), "numpy")(values)
                found.append(
                    _Own(owner, name, "initial", plain(z), np.broadcast_to(start, len(values)))
                )
        return found

    def _starts_at(self, owner: str, name: str, state: str) -> bool:
        """Whether it is given where a state starts, which then does not follow from parameters."""
        given = state in (self.net.given(owner, name)["initial"] or {})
        return given or any(
            t.key == f"initial.{state}" and name in (t.flows if owner == "flow" else t.links)
            for t in self._targets.values()
        )

    def _sets(
        self, own: list[_Own], values: dict[str, Any], space: Workspace, axis: Axis, n: int
    ) -> bool:
        """Whether a workspace becomes that of value `n` of an axis by these numbers alone."""
        try:
            other = self._space({**values, axis.name: axis.values[n]})
        except FluidccError:
            return False
        F = space.F.copy()
        for one in own:
            F[_where(space, one)] = one.values[n]
        start, stop = space.state.start("samples"), space.state.start("initial")
        F[start:stop] = other.F[start:stop]  # the samples, which are empty
        return np.array_equal(space.I, other.I) and np.allclose(
            F, other.F, 1e-14, 0.0, equal_nan=True
        )


def _where(space: Workspace, one: _Own) -> list[int]:
    return space.places(one.owner, one.name, one.what, one.key)


def _names_in(expression: Any) -> set[str]:
    return {plain(p) for p in unfold(expression).free_symbols}


def _ends(axis: Axis) -> tuple[int, int]:
    """Where the least and the greatest value of an axis stand."""
    return int(np.argmin(axis.values)), int(np.argmax(axis.values))


def _copied(space: Workspace) -> Workspace:
    """A workspace of the same numbers, in which another thread may write."""
    new = copy(space)
    new.F, new.I = space.F.copy(), space.I.copy()
    return new


def _with_room(heads: NDArray[np.float64], space: Workspace) -> NDArray[np.float64]:
    """The numbers of places as the workspace takes them: it may have grown since they were made."""
    start = space.state.start
    size = start("ring") - start("initial") + start("samples")
    return np.ascontiguousarray(np.pad(heads, ((0, 0), (0, size - heads.shape[1]))))


_trajectories: Kept[Trajectories] = Kept()


def trajectories_of(task: Task) -> Trajectories:
    """Return what runs the points of a task; all threads share it."""
    return _trajectories.get(task.token, lambda: Trajectories(task))
