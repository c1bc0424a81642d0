"""Trajectories of many points at once: statistics of runs from workspaces that differ in numbers.

Axes of laws' parameters and of flows' initial states set numbers that stand in a workspace as they
are, where `Workspace.places` says. For each combination of values of the other axes (delays,
capacities, starts, numbers of flows) a workspace is built. Workspaces of equal structure share
everything but their numbers.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError
from fluidcc.base.progress import look
from fluidcc.equilibria.assembly import flow_numbers, initial_state, link_numbers
from fluidcc.network import Network
from fluidcc.network.parameters import Parameters
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
from fluidcc.sweeps.measures import KINDS, Measure, sample_times
from fluidcc.sweeps.task import Kept, Piece, Task, reason
from fluidcc.symbols import plain

BLOCK = 512  # points that are run between two looks at what a person wants
PLACES = 20_000  # workspaces whose numbers are kept, of a few kilobytes each
_MADE_OF = {"rtt": "one_way_delay", "utilisation": "throughput"}  # and numbers of the network


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
    address, hops : int
        Of the compiled step, and of the longest route.
    doubts : list of str or None
        What makes every run doubtful; None if that depends on the samples.
    """

    space: Workspace
    first: dict[str, int]
    kinds: NDArray[np.int64]
    rows: NDArray[np.int64]
    address: int
    hops: int
    doubts: list[str] | None


class _Place(NamedTuple):
    """A combination of values of the axes for which a workspace is built.

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
        The axes that set numbers in a workspace, and the other ones.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._names = [m.key for m in task.measures if m.kind == "trajectory"]
        self._places: Kept[_Place | None] = Kept(PLACES)
        self.structures: dict[Any, _Structure | None] = {}
        targets = [task.targets[axis.name] for axis in task.grid.axes]
        self.alone = [
            k for k, target in enumerate(targets)
            if target.kind == "parameter" or (target.kind == "initial" and not target.links)
        ]  # fmt: skip
        self.joint = [k for k in range(len(targets)) if k not in self.alone]

    @property
    def workspaces(self) -> int:
        """How many workspaces are built for all points."""
        return math.prod(len(self.task.grid.axes[k].values) for k in self.joint)

    def run(self, points: NDArray[np.int64], measures: list[Measure], into: Piece) -> list[int]:
        """Put in statistics of the runs at some points; return those that must be run one by one,
        by row.
        """
        positions, left = self.task.grid.places(points), list[int]()
        for combination, every in combinations(positions[self.joint]):
            try:
                place = self._places.get(combination, partial(self._place, combination))
            except FluidccError as error:
                for row in every.tolist():
                    into.fail(row, {"": reason(error)})
                continue
            for start in range(0, len(every), BLOCK):
                rows = every[start : start + BLOCK]
                if place is None:
                    left += rows.tolist()
                    continue
                given = self.task.given(place.net, self.alone, positions[:, rows])
                errors = given.errors()
                for k, why in errors.items():
                    into.fail(int(rows[k]), {"": reason(why)})
                good = np.setdiff1d(np.arange(len(rows)), list(errors))
                where, values = _numbers(place.structure.space, given)
                out, failed, said = self._block(place, where, values[good])
                for m in measures:
                    spot = self.task.schema[m.name].places(rows[good], place.net)
                    first = place.structure.first[m.key]
                    into.values[m.name][spot] = out[:, first : first + spot[1].size]
                left += rows[good[failed]].tolist()  # what is wrong, `simulate` says
                for k, texts in said.items():
                    into.doubt(int(rows[good[k]]), texts)
        return left

    def _block(
        self, place: _Place, where: NDArray[np.int64], values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[int, list[str]]]:
        """Statistics of runs at one place, which ones failed, and what makes the others
        doubtful.
        """
        structure, head, count = place.structure, place.head, len(values)
        out, codes = np.full((count, len(structure.rows)), np.nan), np.zeros(count, int)
        doubtful: dict[int, list[str]] = {}
        space = _copied(structure.space)  # this thread's own
        space.state.budget = 10 * pause_after(space.at)
        solver()  # `advance` as runs have it, which is compiled once for all
        head = _with_room(head, space)
        F, I, anew, done = space.F.copy(), space.I.copy(), 1, 0
        alone = structure.doubts is None  # runs overwrite the samples of those before
        while done < count:
            look()
            stop = done + 1 if alone else count
            done = run_many(
                F, I, head, space.I, where, values[:stop], structure.kinds, structure.rows,
                out[:stop], codes[:stop], done, anew, structure.hops, structure.address, advance,
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
                F, I, head = space.F.copy(), space.I.copy(), _with_room(head, space)
        if structure.doubts:
            doubtful = dict.fromkeys(np.flatnonzero(codes == s.DONE).tolist(), structure.doubts)
        return out * place.scale + place.shift, np.flatnonzero(codes != s.DONE), doubtful

    # --- workspaces -------------------------------------------------------------------------------

    def _place(self, combination: tuple[int, ...]) -> _Place | None:
        """The place at these positions along the joint axes; None if it must be run by itself."""
        values = self.task.grid.values(self.joint, combination)
        space = self._space(values)
        if space is None:
            return None
        net = space.at.net
        starts = tuple(tuple(g.law.initial.items()) for g in space.at.groups)
        key = (net.flow_names, net.link_names, starts, len(space.F), space.I.tobytes())
        if key not in self.structures:
            set_alone = all(self._sets(values, space, end) for end in (np.argmin, np.argmax))
            self.structures[key] = self._structure(space) if set_alone else None
        structure = self.structures[key]
        if structure is None:
            return None
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
        """The workspace at these values of axes; None if the network must be run by itself."""
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

    def _sets(self, values: dict[str, Any], space: Workspace, end: Any) -> bool:
        """Whether the workspace at the ends of all axes that act alone is `space` with their
        numbers, as it must be.
        """
        if not self.alone:
            return True
        axes = self.task.grid.axes
        at = [end(axis.values) if k in self.alone else 0 for k, axis in enumerate(axes)]
        try:
            other = self._space(
                values | self.task.grid.values(self.alone, [at[k] for k in self.alone])
            )
        except FluidccError:  # no network: points near it are then told so one by one
            return True
        given = self.task.given(space.at.net, self.alone, np.array(at)[:, None])
        (where, (numbers,)), F = _numbers(space, given), space.F.copy()
        F[where] = numbers
        return (
            other is not None
            and np.array_equal(space.I, other.I)
            and np.allclose(F, other.F, 1e-14, 0.0, equal_nan=True)
        )

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
        return _Structure(
            space, first, np.array(kinds), np.array(rows), fused_address(at) if fused else 0,
            max(len(f.route) for f in at.flows), None if looks_at_samples(at) else doubts(space),
        )  # fmt: skip


def _numbers(space: Workspace, given: Parameters) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return where the numbers stand that are set at some points, and which these are: those of
    `given`, and the initial values that follow from parameters.
    """
    found: dict[int, Any] = {}
    for kind, name in dict.fromkeys(key[:2] for key in given.set):
        spec = getattr(given.net, f"{kind}s")[name]
        known = (
            flow_numbers(given, name, spec.law)
            if kind == "flow"
            else link_numbers(given, spec, spec.capacity)
        )
        own = [("parameter", plain(p), known[p]) for p in spec.law.params]
        own += [
            ("initial", plain(z), initial_state(given, kind, name, z, known))
            for z in spec.law.initial
        ]
        for what, key, values in own:
            if np.ndim(values):
                found |= dict.fromkeys(space.places(kind, name, what, key), values)
    values = np.array(list(found.values())).reshape(len(found), given.points)
    return np.array(list(found), dtype=np.int64), np.ascontiguousarray(values.T)


def _copied(space: Workspace) -> Workspace:
    """A workspace of the same numbers, in which another thread may write."""
    new = copy(space)
    new.F, new.I = space.F.copy(), space.I.copy()
    return new


def _with_room(head: NDArray[np.float64], space: Workspace) -> NDArray[np.float64]:
    """The numbers of a place as the workspace takes them, which may have grown since."""
    start = space.state.start
    size = start("ring") - start("initial") + start("samples")
    return np.pad(head, (0, size - len(head)))


_trajectories: Kept[Trajectories] = Kept()


def trajectories_of(task: Task) -> Trajectories:
    """Return what runs the points of a task; all threads share it."""
    return _trajectories.get(task.token, lambda: Trajectories(task))
