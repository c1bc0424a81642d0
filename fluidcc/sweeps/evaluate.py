"""Measuring points of a task: all together where that can be, the others one by one.

Equilibria and verdicts of many points come from compiled loops over all points of a network. Axes
that change numbers (parameters, capacities, delays, buffers, packets, initial states) go there as
arrays. For each combination of those that change more (numbers of flows, laws, starts and stops) a
network is built, and the points that have it are taken together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.stability import Verdicts, verdicts_of
from fluidcc.base.errors import FluidccError, InvalidInput, SweepFailed, Unsupported, gathered
from fluidcc.base.progress import look
from fluidcc.equilibria.many import Equilibria, equilibria_of
from fluidcc.network import Network
from fluidcc.network.parameters import Parameters
from fluidcc.sweeps.grid import combinations
from fluidcc.sweeps.measures import STABILITY, Measure, Point, Value, refuse_taken
from fluidcc.sweeps.targets import rebuilt
from fluidcc.sweeps.task import Kept, Piece, Task, Variable, empty_piece, reason
from fluidcc.sweeps.trajectories import runs_together, trajectories_of

SHARED = 20  # points for each workspace from which on most of the work is in compiled code
STEADY = ("equilibrium", "stability")  # kinds of measures that are found without a run
BLOCK = 2048  # points in one call, so that Ctrl-C is heard and the memory is small

Points = NDArray[np.int64] | range


class Measured(NamedTuple):
    """Values of a point by variable; by measure why some failed; what makes the others doubtful."""

    values: dict[str, Value]
    failed: dict[str, str]
    doubts: list[str]


def values_at(task: Task, number: int, measures: Sequence[Measure] | None = None) -> Measured:
    """Return what is measured at one point, of some measures or of all."""
    with gathered() as told:
        try:
            point = task.point(number)
        except Exception as error:
            return Measured({}, {"": reason(error)}, [])
        if isinstance(point, dict):
            return Measured(point, {}, told)
        values: dict[str, Value] = {}
        failed: dict[str, str] = {}
        for measure in task.measures if measures is None else measures:
            try:
                values |= measure.of(point)
            except Exception as error:  # what a law or a user's function raises is this point's own
                failed[measure.name] = reason(error)
    return Measured(values, failed, [*point.doubts, *told])


def evaluate(task: Task, some: Points) -> Piece:
    """Return the results of some points, by their numbers."""
    points = np.asarray(some, dtype=np.int64)
    began = perf_counter()
    piece = empty_piece(task.schema, len(points))
    groups = _groups(task)
    for finder, measures in groups:
        left = finder.run(points, measures, piece)
        _one_by_one(task, points, left, measures, piece)
    together = {m.name for _, measures in groups for m in measures}
    alone = [m for m in task.measures if m.name not in together]
    if alone or not task.measures:
        _one_by_one(task, points, range(len(points)), alone, piece)
    piece.seconds = perf_counter() - began
    return piece


def _groups(task: Task) -> list[tuple[Any, list[Measure]]]:
    """Measures that are found at many points at once, each group with what finds it."""
    if not isinstance(task.model, Network):
        return []
    runs = [m for m in task.measures if m.kind == "trajectory"] if runs_together(task) else []
    steady = [m for m in task.measures if m.kind in STEADY]
    return [
        *([(trajectories_of(task), runs)] if runs else []),
        *([(_steady.get(task.token, lambda: Steady(task)), steady)] if steady else []),
    ]


def _one_by_one(
    task: Task, points: Any, rows: Iterable[int], measures: Sequence[Measure], into: Piece
) -> None:
    """Put in what is measured at some rows of the points."""
    for row in rows:
        look()
        values, failed, told = values_at(task, int(points[row]), measures)
        for name, value in values.items():
            try:
                if name not in task.schema:
                    raise InvalidInput(
                        f"there is a variable {name!r} here, which the first point has not"
                    )
                task.schema[name].fill(value, into.values[name][row, ...], name)
            except Exception as error:
                failed[name] = reason(error)
        into.fail(row, failed)
        into.doubt(row, told)


def releases_gil(task: Task) -> bool:
    """Return whether nearly all of the work is in compiled code, so that threads do it best."""
    groups = _groups(task)
    if not groups or sum(len(measures) for _, measures in groups) < len(task.measures):
        return False
    if all(m.kind != "trajectory" for m in task.measures):
        return True
    return trajectories_of(task).workspaces * SHARED <= task.grid.size


# --- equilibria and verdicts of many points -------------------------------------------------------


class Steady:
    """Equilibria and verdicts of the points of a task.

    Parameters
    ----------
    task : Task
        One of a network.

    Attributes
    ----------
    more, rest : list of int
        The axes that change more than numbers of a network, and the other ones.
    """

    def __init__(self, task: Task) -> None:
        self.task, axes = task, task.grid.axes
        self.more = [k for k, axis in enumerate(axes) if not task.targets[axis.name].numeric]
        self.rest = [k for k in range(len(axes)) if k not in self.more]
        self._networks: Kept[Network] = Kept()

    def run(self, points: NDArray[np.int64], measures: Sequence[Measure], into: Piece) -> list[int]:
        """Put in what is measured at some points; return those left for one by one, by row."""
        positions, left = self.task.grid.places(points), list[int]()
        for combination, members in combinations(positions[self.more]):
            for start in range(0, len(members), BLOCK):
                look()
                rows = members[start : start + BLOCK]
                try:
                    self._find(combination, positions[:, rows], rows, measures, into)
                except (InvalidInput, Unsupported):  # of all points, or of something unknown there
                    left += rows.tolist()
        return left

    def _find(
        self,
        at: tuple[int, ...],
        positions: Any,
        rows: Any,
        measures: Sequence[Measure],
        into: Piece,
    ) -> None:
        """Put in what is found at some points of one network, or why it is not."""
        given = self._given(at, positions)
        rest = equilibria_of(given)
        results: list[tuple[list[Measure], Equilibria | Verdicts]] = []
        if some := [m for m in measures if m.kind == "equilibrium"]:
            results.append((some, rest))
        if some := [m for m in measures if m.kind == "stability"]:
            asked = {STABILITY[m.key][1] for m in some}
            asked_for = {"roots": "roots" in asked, "margins": "margins" in asked}
            results.append((some, verdicts_of(given, rest, **asked_for)))
        for some, result in results:
            for measure in some:
                values = into.values[measure.name]
                got = np.array(getattr(result, measure.key), dtype=values.dtype)
                got[list(result.errors)] = np.nan
                values[self.task.schema[measure.name].places(rows, given.net)] = got
                for k, error in result.errors.items():
                    into.fail(int(rows[k]), {measure.name: reason(error)})
            for k, texts in result.warnings.items():
                into.doubt(int(rows[k]), texts)

    def _given(self, at: tuple[int, ...], positions: Any) -> Parameters:
        """What the axes set at some points of one network."""
        values, targets = self.task.grid.values(self.more, at), self.task.targets
        changes = {axis: targets[axis] for axis in values}
        model: Any = self.task.model
        try:
            net = self._networks.get(at, lambda: rebuilt(model, changes, values))
        except FluidccError as error:
            raise InvalidInput(str(error)) from error
        return self.task.given(net, self.rest, positions)


_steady: Kept[Steady] = Kept()


# --- the form of the results ----------------------------------------------------------------------


def _widened(task: Task, schema: Mapping[str, Variable]) -> dict[str, Variable]:
    """The same forms with room for every flow and link of the networks that a function returns.

    It is asked for one network a value of each axis, the other axes at their first.
    """
    names: dict[str, dict[str, None]] = {"flow": {}, "link": {}}
    for number in task.along_the_axes():
        try:
            point = task.point(number)
        except Exception:  # the point's own measurement says why
            continue
        if isinstance(point, Point):
            names["flow"] |= dict.fromkeys(point.net.flow_names)
            names["link"] |= dict.fromkeys(point.net.link_names)
    wide = dict(schema)
    for key, form in schema.items():
        if len(form.dims) == 1 and (dim := form.dims[0]) in names and dim in form.coords:
            labels = tuple(dict.fromkeys((*form.coords[dim], *names[dim])))
            wide[key] = replace(form, shape=(len(labels),), coords={dim: labels})
    return wide


def probed(task: Task) -> Task:
    """Return the task with the form of its results, from the first point that can be measured.

    Raises
    ------
    SweepFailed
        If of some points, evenly over the grid, none can be measured; with the first one's reason.
    InvalidInput
        If a variable has a name that results use themselves.
    """
    numbers = task.probes()
    forms = _forms(task, numbers) if isinstance(task.model, Network) else {}
    together, swept = runs_together(task), isinstance(task.model, Network)
    runs = [m for m in task.measures if together and m.kind == "trajectory" and m.name in forms]
    steady = [m for m in task.measures if swept and m.kind in STEADY and m.name in forms]
    rest = [m for m in task.measures if m not in (*runs, *steady)]
    # as all of its points are, so that no second solver is called, and compiled
    tried = replace(task, measures=tuple(steady), schema=forms, token=f"{task.token} tried")
    found: dict[str, Variable] = {}
    first = ""
    for number in numbers if steady or rest or not task.measures else ():
        failed = evaluate(tried, np.array([number])).errors.get(0, {}) if steady else {}
        found |= {m.name: forms[m.name] for m in steady if not {"", m.name} & failed.keys()}
        if rest or not task.measures:
            values, reasons, _ = values_at(task, number, rest)
            found = {k: Variable.of(v) for k, v in values.items()} | found
            failed = failed | reasons
        first = first or "; ".join(f"{k}: {v}" if k else v for k, v in failed.items())
        if not failed:
            break
    else:
        forms = forms or _forms(task, numbers)
    of_functions = found.keys() - {m.name for m in task.measures}  # which name what they return
    lacking = [
        m
        for m in task.measures
        if m.name not in {**forms, **found} and not (m.kind == "own" and of_functions)
    ]
    if lacking or not (runs or found):
        raise SweepFailed(
            f"none of {len(numbers)} points could be measured; the first says: {first}"
        )
    # that of the network has room for the flows of the largest one
    schema = forms | {k: v for k, v in found.items() if k not in forms or not forms[k].dims}
    if not swept and task.measures:
        schema = _widened(task, schema)
    refuse_taken(schema)
    for name in schema:
        if name in task.grid.names:
            raise InvalidInput(
                f"a measure is named {name!r}, as an axis of the grid is; name one of them "
                "otherwise"
            )
    named = [m.name for m in task.measures if m.name in schema]
    return replace(task, schema={name: schema[name] for name in dict.fromkeys((*named, *schema))})


def _forms(task: Task, numbers: Iterable[int]) -> dict[str, Variable]:
    """Forms of results that are known beforehand: from the first network among these points, which
    has the flows of all.
    """
    model: Any = task.model
    for number in numbers:
        with suppress(Exception):  # values_at() tells it
            net = rebuilt(model, task.targets, task.grid.point(number))
            forms = {m.name: m.form(net) for m in task.measures}
            return {name: Variable.of(form) for name, form in forms.items() if form is not None}
    return {}
