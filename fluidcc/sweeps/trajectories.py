"""Trajectories of many points at once: statistics of runs from workspaces that differ in numbers.

An axis of a law's parameter or of an initial state sets numbers that stand in a workspace as they
are. The other axes (delays, capacities, starts, numbers of flows) act together, and for each
combination of their values a workspace is built. Workspaces of equal structure share everything but
their numbers.
"""

from __future__ import annotations

import math
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import lambdify

from fluidcc.base.errors import FluidccError
from fluidcc.base.progress import look
from fluidcc.laws import Link, Source
from fluidcc.network import Network
from fluidcc.network.specs import resolve_pattern
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.entry import advance, solver
from fluidcc.numerics.fluid.many import run_many
from fluidcc.simulation.diagnostics import doubts, looks_at_samples
from fluidcc.simulation.fused import fits, fused_address
from fluidcc.simulation.layout import lay_out, require_runnable
from fluidcc.simulation.results import variables
from fluidcc.simulation.simulate import _frozen, pause_after
from fluidcc.simulation.workspace import Workspace
from fluidcc.sweeps.grid import combinations
from fluidcc.sweeps.measures import KINDS, Measure, Point, sample_times
from fluidcc.sweeps.targets import between, names_in, on_copies
from fluidcc.sweeps.task import Kept, Piece, Task, reason
from fluidcc.symbols import plain, unfold

BLOCK = 512  # points that are put together at once
PLACES = 20_000  # workspaces whose numbers are kept, of a few kilobytes each
_MADE_OF = {"rtt": "one_way_delay", "utilisation": "throughput"}  # and numbers of the network
_CONSTANTS = {plain(symbol) for symbol in (*Source.constants, *Link.constants)}


def runs_together(task: Task) -> bool:
    """Return whether trajectories of some points, if any are measured, can be run many at once."""
    if not any(m.kind == "trajectory" for m in task.measures):
        return False
    return isinstance(task.model, Network) and (task.structural or _can_run(task, task.model))


def _can_run(task: Task, net: Network) -> bool:
    """Whether runs differ in numbers only: no law jumps or ticks, no capacity changes."""
    laws: list[Any] = [*(f.law for f in net.flows.values()), *(l.law for l in net.links.values())]
    if not net.flows or any(law.jumps or law.ticks for law in laws):
        return False
    if any(task.options.get(k) is not None for k in ("restart", "first_step")):
        return False
    return "until" not in task.targets and not any(link.schedule for link in net.links.values())


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
    where, tables : array of int, list
        Where the numbers stand that axes set alone; and of each the axis, and the number for each
        of its values.
    address, hops : int
        Of the compiled step, and of the longest route.
    doubts : list of str or None
        What makes every run doubtful; None if that depends on the samples.
    """

    space: Workspace
    first: dict[str, int]
    kinds: NDArray[np.int64]
    rows: NDArray[np.int64]
    where: NDArray[np.int64]
    tables: list[tuple[int, NDArray[np.float64]]]
    address: int
    hops: int
    doubts: list[str] | None


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


class Trajectories:
    """Runs of the points of a task.

    Parameters
    ----------
    task : Task
        One of a network, whose trajectories are measured.

    Attributes
    ----------
    alone, joint : list of int
        The axes that set numbers of their own, and the other ones.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._names = [m.key for m in task.measures if m.kind == "trajectory"]
        self._places: Kept[_Place | None] = Kept(PLACES)
        self.structures: dict[Any, _Structure] = {}
        self.alone = self._axes_alone()
        self.joint = [k for k in range(len(task.grid.axes)) if k not in self.alone]

    @property
    def workspaces(self) -> int:
        """How many workspaces are built for all points."""
        return math.prod(len(self.task.grid.axes[k].values) for k in self.joint)

    def run(self, points: NDArray[np.int64], measures: list[Measure], into: Piece) -> list[int]:
        """Put in statistics of the runs at some points; return those that must be run one by one,
        by row.
        """
        positions, left = self.task.grid.places(points), list[int]()
        found: dict[int, list[tuple[_Place, NDArray[np.int64]]]] = {}  # by structure
        for combination, rows in combinations(positions[self.joint]):
            try:
                place = self._places.get(combination, partial(self._place, combination))
            except FluidccError as error:
                for row in rows.tolist():
                    into.fail(row, {"": reason(error)})
                continue
            if place is None:
                left += rows.tolist()
            else:
                found.setdefault(id(place.structure), []).append((place, rows))
        for some in found.values():
            places = [place for place, _ in some]
            which = np.repeat(np.arange(len(some)), [len(rows) for _, rows in some])
            members = np.concatenate([rows for _, rows in some])
            for start in range(0, len(members), BLOCK):
                rows, of = members[start : start + BLOCK], which[start : start + BLOCK]
                in_block = places[of[0] : of[-1] + 1]
                out, codes, said = self._block(in_block, of - of[0], positions[:, rows])
                self._put(in_block[0], out, rows, measures, into)
                for k in np.flatnonzero(codes != s.DONE).tolist():
                    into.fail(int(rows[k]), {"": self._why(int(points[rows[k]]))})
                for k, texts in said.items():
                    into.doubt(int(rows[k]), texts)
        return left

    def _put(
        self, place: _Place, out: Any, rows: Any, measures: list[Measure], into: Piece
    ) -> None:
        """Put statistics where they belong among those of all points, flows and links."""
        for m in measures:
            where = self.task.schema[m.name].places(rows, place.net)
            first = place.structure.first[m.key]
            into.values[m.name][where] = out[:, first : first + where[1].size]

    def _why(self, number: int) -> str:
        """Why a run failed, as `simulate` says it."""
        point = self.task.point(number)
        try:
            assert isinstance(point, Point)
            _ = point.sampled
        except Exception as error:
            return reason(error)
        return "SolverError: the run failed among others, and not alone"

    def _block(
        self, places: list[_Place], which: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[int, list[str]]]:
        """Statistics of runs of one structure, why each ended, and what makes them doubtful."""
        structure, count = places[0].structure, len(which)
        columns = [table[positions[k]] for k, table in structure.tables]
        values = np.stack(columns, axis=1) if columns else np.empty((count, 0))
        out, codes = np.full((count, len(structure.rows)), np.nan), np.zeros(count, int)
        doubtful: dict[int, list[str]] = {}
        space = _copied(structure.space)  # this thread's own
        space.state.budget = 10 * pause_after(space.at)
        solver()  # `advance` as runs have it, which is compiled once for all
        heads = _with_room(np.array([place.head for place in places]), space)
        F, I, anew, done = space.F.copy(), space.I.copy(), 1, 0
        alone = structure.doubts is None  # runs overwrite the samples of those before
        while done < count:
            look()
            stop = done + 1 if alone else count
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
                    finished = copy(space)
                    finished.F = F
                    if finished.finite():
                        doubtful[last] = doubts(finished)
                    else:  # a variable that no state shows
                        codes[last], out[last] = s.NONFINITE, np.nan
            elif why == s.GROW_RING and not space.grow_ring():
                codes[done], done, anew = s.COLLAPSE, done + 1, 1
            elif why in (s.GROW_RING, s.GROW_HEAP):
                if why == s.GROW_HEAP:
                    space.grow_heap()
                structure.space = _copied(space)  # for those that come later
                F, I, heads = space.F.copy(), space.I.copy(), _with_room(heads, space)
        if structure.doubts:
            doubtful = dict.fromkeys(np.flatnonzero(codes == s.DONE).tolist(), structure.doubts)
        scale, shift = (
            np.array(part)[which] for part in zip(*(p[3:] for p in places), strict=True)
        )
        return out * scale + shift, codes, doubtful

    # --- workspaces -------------------------------------------------------------------------------

    def _place(self, combination: tuple[int, ...]) -> _Place | None:
        """The place at these positions along the joint axes; None if it must be run by itself."""
        axes = range(len(self.task.grid.axes))
        position = dict.fromkeys(axes, 0) | dict(zip(self.joint, combination, strict=True))
        space = self._space(self.task.grid.values(axes, position.values()))
        if space is None:
            return None
        net = space.at.net
        starts = tuple(tuple(g.law.initial.items()) for g in space.at.groups)
        key = (net.flow_names, net.link_names, starts, len(space.F), space.I.tobytes())
        if key not in self.structures:
            self.structures[key] = self._structure(space)
        structure = self.structures[key]
        start = space.state.start
        head = np.concatenate(
            [space.F[: start("samples")], space.F[start("initial") : start("ring")]]
        )
        scale, shift = np.ones(len(structure.rows)), np.zeros(len(structure.rows))
        for name, first in structure.first.items():
            variable = name.partition("_")[2]
            if variable == "rtt" and not name.startswith("std"):
                shift[first : first + len(net.flows)] = [net.return_delay(f) for f in net.flows]
            elif variable == "utilisation":
                capacities = [1.0 / link.capacity for link in net.links.values()]
                scale[first : first + len(net.links)] = capacities
        return _Place(structure, head, net, scale, shift)

    def _space(self, values: dict[str, Any]) -> Workspace | None:
        """The workspace at these values of the axes; None if the network must be run by itself."""
        point = self.task.at(values)
        net, options = point.net, point.options
        if not _can_run(self.task, net):
            return None
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
        space.F[start:stop] = kept  # only now: what was read may be a view
        numbers = [(k, *one) for k in self.alone for one in self._numbers(space, k)]
        return _Structure(
            space, first, np.array(kinds), np.array(rows),
            np.array([where for _, where, _ in numbers], dtype=np.int64),
            [(k, table) for k, _, table in numbers],
            fused_address(at) if fused else 0, max(len(f.route) for f in at.flows),
            None if looks_at_samples(at) else doubts(space),
        )  # fmt: skip

    # --- axes that act alone ----------------------------------------------------------------------

    def _axes_alone(self) -> list[int]:
        """Axes whose values stand in a workspace, where no other axis bears on them: so it is if,
        with each law, the workspaces of their ends differ in these numbers only.
        """
        grid = self.task.grid
        free = [k for k in range(len(grid.axes)) if not self._tied(k)]
        if not free:
            return []
        laws = [k for k, a in enumerate(grid.axes) if self.task.targets[a.name].kind == "law"]
        bases: list[tuple[dict[str, Any], Workspace]] = []
        for positions in product(*(range(len(grid.axes[k].values)) for k in laws)):
            for number in self.task.probes():
                values = grid.point(number) | grid.values(laws, positions)
                with suppress(FluidccError):
                    if (space := self._space(values)) is not None:
                        bases.append((values, space))
                        break
        return [k for k in free if bases and all(self._sets(k, *base) for base in bases)]

    def _tied(self, k: int) -> bool:
        """Whether an axis sets more than numbers of laws, or what may be set, or follows from it,
        depends on another axis too.
        """
        target = self.task.targets[self.task.grid.axes[k].name]
        if target.kind not in ("parameter", "initial"):
            return True
        others = [t for t in self.task.targets.values() if t is not target]
        moving = {t.key for t in others if t.kind in ("parameter", "initial")} | _CONSTANTS
        net: Any = self.task.model
        for owner, name in target.owners:
            swept: list[Any] = []  # laws that it has at other points
            for axis in self.task.grid.axes:
                other = self.task.targets[axis.name]
                if other.kind == "law" and (owner, name) in other.owners:
                    swept += axis.values
            for law in swept or [getattr(net, f"{owner}s")[name].law]:
                starts = {z: names_in(start) for z, start in law.initial.items()}
                related = [*between(law), *starts.values()]
                for z, f in (*law.lower.items(), *law.upper.items()):
                    if names := names_in(f):  # the start must be within a bound that moves
                        related.append(names | starts.get(z, set()) | {f"initial.{plain(z)}"})
                own = {plain(p) for p in law.params} - {target.key} if swept else set()
                if any(target.key in names and names & (moving | own) for names in related):
                    return True
        return False

    def _numbers(self, space: Workspace, k: int) -> list[tuple[int, NDArray[np.float64]]]:
        """Where the numbers stand that an axis sets, and what they are for each of its values: also
        the initial values that follow from a parameter.
        """
        axis, net = self.task.grid.axes[k], space.at.net
        model: Any = self.task.model
        target = on_copies(self.task.targets[axis.name], model, net)
        key, values = target.key.removeprefix("initial."), np.array(axis.values, dtype=float)
        found: list[tuple[int, NDArray[np.float64]]] = []
        for owner, name in target.owners:
            law = getattr(net, f"{owner}s")[name].law
            own = [(target.kind, key, values)]
            given = net.given(owner, name)["initial"] or {}
            for z, start in law.initial.items() if target.kind == "parameter" else ():
                if key in names_in(start) and plain(z) not in given:
                    symbol = next(p for p in law.params if plain(p) == key)
                    known = {p: v for p, v in law.params.items() if p != symbol}
                    value = lambdify([symbol], unfold(start).xreplace(known), "numpy")(values)
                    own.append(("initial", plain(z), np.broadcast_to(value, len(values))))
            found += [(at, t) for what, z, t in own for at in space.places(owner, name, what, z)]
        return found

    def _sets(self, k: int, values: dict[str, Any], space: Workspace) -> bool:
        """Whether a workspace becomes that of the ends of an axis by its numbers alone."""
        axis, numbers = self.task.grid.axes[k], self._numbers(space, k)
        start, stop = (
            space.state.start("samples"),
            space.state.start("initial"),
        )  # the samples, which are empty
        for n in (int(np.argmin(axis.values)), int(np.argmax(axis.values))):
            try:
                other = self._space({**values, axis.name: axis.values[n]})
            except FluidccError:
                return False
            F = space.F.copy()
            for where, table in numbers:
                F[where] = table[n]
            if other is None or not np.array_equal(space.I, other.I):
                return False
            F[start:stop] = other.F[start:stop]
            if not np.allclose(F, other.F, 1e-14, 0.0, equal_nan=True):
                return False
        return True


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
