"""Trajectories of many points at once: statistics of runs from workspaces that differ in numbers.

Axes of laws' parameters and of flows' initial states set numbers that stand in a workspace as they
are, where `Workspace.places` says. For each combination of values of the other axes (delays,
capacities, starts, numbers of flows) a workspace is built. Workspaces of equal structure share
everything but their numbers.
"""

from __future__ import annotations

from copy import copy
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError, gathered
from fluidcc.base.progress import Progress, look
from fluidcc.laws.parts import HEARD
from fluidcc.network import Network
from fluidcc.network.parameters import Parameters
from fluidcc.network.wired import Wired
from fluidcc.simulation.diagnostics import doubts, looks_at_samples
from fluidcc.simulation.fused import fits, fused_address
from fluidcc.simulation.layout import lay_out, require_runnable
from fluidcc.simulation.results import samples, variables
from fluidcc.simulation.simulate import _drive, _frozen, pause_after
from fluidcc.simulation.workspace import Workspace
from fluidcc.sweeps.axes import combinations
from fluidcc.sweeps.measures import OF_RUNS, Measure, of_run, sample_times
from fluidcc.sweeps.task import Piece, Task, reason
from fluidcc.symbols import plain

PLACES = 256  # workspaces that are kept, of a hundred kilobytes each
_UNSEEN = Progress(1.0, show=False)


def runs_together(task: Task) -> bool:
    """Return whether trajectories of some points can be run many at once."""
    return isinstance(task.model, Network) and (task.structural or _can_run(task, task.model))


def _can_run(task: Task, net: Network) -> bool:
    """Whether runs differ in numbers only: no law jumps or ticks, no capacity changes."""
    laws: list[Any] = [*(f.law for f in net.flows.values()), *(l.law for l in net.links.values())]
    if not net.flows or any(law.jumps or law.ticks for law in laws):
        return False
    if any(task.options.get(k) is not None for k in ("restart", "first_step")):
        return False
    if task.options.get("losses") not in (None, HEARD[0]):  # of which each run says whether it can
        return False
    return "until" not in task.grid.names and not any(link.schedule for link in net.links.values())


class _Prepared(NamedTuple):
    """A combination of values of the axes for which a workspace is built.

    ``address`` is that of the compiled step, ``hops`` the length of the longest route, and
    ``doubts`` what makes every run doubtful, None if that depends on the samples.
    """

    space: Workspace
    net: Network
    address: int
    hops: int
    doubts: list[str] | None


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
        self._place = lru_cache(PLACES)(self._built)
        self.structures: dict[Any, bool] = {}  # whether they are run together
        targets = task.grid.targets.values()
        self.alone = [
            k for k, target in enumerate(targets)
            if target.kind == "parameter" or (target.kind == "initial" and not target.links)
        ]  # fmt: skip
        self.joint = [k for k in range(len(targets)) if k not in self.alone]

    def run(self, points: NDArray[np.int64], measures: list[Measure], into: Piece) -> list[int]:
        """Put in statistics of the runs at some points; return those that must be run one by one,
        by row.
        """
        positions, left = self.task.grid.places(points), list[int]()
        for combination, rows in combinations(positions[self.joint]):
            try:
                place = self._place(combination)
            except FluidccError as error:
                for row in rows.tolist():
                    into.fail(row, {"": reason(error)})
                continue
            if place is None:
                left += rows.tolist()
                continue
            given = self.task.given(place.net, self.alone, positions[:, rows])
            errors, (where, values) = given.errors(), _numbers(place.space, given)
            spots = [self.task.schema[m.name].places(rows, place.net) for m in measures]
            tables = [np.full((len(rows), spot[1].size), np.nan) for spot in spots]
            for k, row in enumerate(rows.tolist()):
                look()
                try:
                    if k in errors:
                        raise errors[k]
                    found, said = _statistics(place, measures, where, values[k])
                    into.doubt(row, said)
                    for table, value in zip(tables, found, strict=True):
                        table[k] = value
                except FluidccError as error:
                    into.fail(row, {"": reason(error)})
            for m, spot, table in zip(measures, spots, tables, strict=True):
                into.values[m.name][spot] = table
        return left

    # --- workspaces -------------------------------------------------------------------------------

    def _built(self, combination: tuple[int, ...]) -> _Prepared | None:
        """The place at these positions along the joint axes; None if it must be run by itself."""
        values = self.task.grid.values(self.joint, combination)
        space = self._space(values)
        if space is None:
            return None
        net = space.at.net
        starts = tuple(tuple(g.law.initial.items()) for g in space.at.groups)
        key = (net.flow_names, net.link_names, starts, len(space.F), space.I.tobytes())
        if key not in self.structures:
            self.structures[key] = self._sets(values, space)
        if not self.structures[key]:
            return None
        space.state.budget = pause_after(space.at)
        fused = self.task.options.get("engine") == "fused" and fits(space.at)
        address = fused_address(space.at) if fused else 0
        hops = max(len(f.route) for f in space.at.flows)
        doubtful = None if looks_at_samples(space.at) else doubts(space)
        return _Prepared(space, net, address, hops, doubtful)

    def _space(self, values: dict[str, Any]) -> Workspace | None:
        """The workspace at these values of axes; None if the network must be run by itself."""
        point = self.task.at(values)
        net = point.net
        if not _can_run(self.task, net):
            return None
        require_runnable(net)
        options = OF_RUNS | {k: v for k, v in point.options.items() if v is not None}
        frozen = _frozen(net, options["delays"], options["frozen_at"])
        at, until = lay_out(net, frozen), float(options["until"])
        patterns = at.patterns(int(options["seed"]), until)
        tolerances = {k: options[k] for k in ("rtol", "atol", "max_step")}
        return Workspace(at, sample_times(options), until, patterns=patterns, **tolerances)

    def _sets(self, values: dict[str, Any], space: Workspace) -> bool:
        """Whether the workspace at the last values of all axes that act alone is `space` with their
        numbers, as it must be.
        """
        last = np.array([[len(axis.values) - 1] for axis in self.task.grid.axes])
        others = self.task.grid.values(self.alone, last[self.alone, 0])
        try:
            other = self._space(values | others)
        except FluidccError:  # no network: points near it are then told so one by one
            return True
        given, F = self.task.given(space.at.net, self.alone, last), space.F.copy()
        where, (numbers,) = _numbers(space, given)
        F[where] = numbers
        return (
            other is not None
            and np.array_equal(space.I, other.I)
            and np.allclose(F, other.F, 1e-14, 0.0, equal_nan=True)
        )


def _statistics(
    place: _Prepared, measures: list[Measure], where: Any, numbers: Any
) -> tuple[list[NDArray[np.float64]], list[str]]:
    """Statistics of a run with some numbers put in, and what makes it doubtful."""
    space = _copied(place.space)
    space.F[where], state = numbers, space.state
    with gathered() as told:
        _drive(space, float(state.t_end), place.address, _UNSEEN, place.hops)
    times = state.sample_time[: int(state.n_samples)]
    if not space.finite():
        variables(space, times)  # says which one
    of = cache(partial(samples, space, times))
    values = [of_run(m.key, times, of) for m in measures]
    return values, [*(doubts(space) if place.doubts is None else place.doubts), *told]


def _numbers(space: Workspace, given: Parameters) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return where the numbers stand that are set at some points, and which these are: those of
    `given`, and the initial values that follow from parameters.
    """
    found: dict[int, Any] = {}
    wired = Wired(given, 0.0)
    rows = {name: k for k, names in enumerate(wired.kinds) for name in names}
    links = {name: l for l, name in enumerate(given.net.links)}
    for kind, name in dict.fromkeys(key[:2] for key in given.set):
        law = getattr(given.net, f"{kind}s")[name].law
        known = wired.flow(rows[name], law) if kind == "flow" else wired.link(links[name])
        own = [("parameter", plain(p), known[p]) for p in law.params]
        own += [("initial", plain(z), given.initial(kind, name, z, known)) for z in law.initial]
        for what, key, values in own:
            if np.ndim(values):
                found |= dict.fromkeys(space.places(kind, name, what, key), values)
    values = np.array(list(found.values())).reshape(len(found), given.points)
    return np.array(list(found), dtype=np.int64), np.ascontiguousarray(values.T)


def _copied(space: Workspace) -> Workspace:
    """A workspace of the same numbers, in which another thread may write."""
    new = copy(space)
    new.F, new.I, new.log = space.F.copy(), space.I.copy(), []
    return new


@lru_cache(maxsize=16)
def trajectories_of(task: Task) -> Trajectories:
    """Return what runs the points of a task, with the workspaces that are kept."""
    return Trajectories(task)
