"""Measuring points of a task: all together where that can be, the others one by one.

Equilibria and verdicts of many points come from compiled loops over all points of a network. Axes
that change numbers (parameters, capacities, delays, buffers, packets, initial states) go there as
arrays. For each combination of those that change more (numbers of flows, laws, starts and stops) a
network is built, and the points that have it are taken together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.stability import Verdicts, verdicts_at
from fluidcc.base.errors import FluidccError, InvalidInput, SweepFailed, Unsupported, gathered
from fluidcc.base.progress import look
from fluidcc.equilibria.many import Equilibria, equilibria
from fluidcc.network import Network
from fluidcc.sweeps.axes import combinations, rebuilt
from fluidcc.sweeps.measures import STABILITY, Measure, Point, Value, refuse_taken
from fluidcc.sweeps.task import Piece, Points, Task, Variable, empty_piece, in_words, reason
from fluidcc.sweeps.trajectories import runs_together, trajectories_of

BLOCK = 2048  # points in one call, so that Ctrl-C is heard and the memory is small

# measures some points, and returns the rows that are left for one by one
Finder = Callable[[NDArray[np.int64], list[Measure], Piece], list[int]]


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
    piece, (finders, alone) = empty_piece(task.schema, len(points)), _finders(task)
    for find, measures in finders:
        _one_by_one(task, points, find(points, measures, piece), measures, piece)
    if alone or not task.measures:
        _one_by_one(task, points, range(len(points)), alone, piece)
    piece.seconds = perf_counter() - began
    return piece


def _finders(task: Task) -> tuple[list[tuple[Finder, list[Measure]]], list[Measure]]:
    """What finds measures at many points at once, each with those that it finds; and the other
    measures.
    """
    if not isinstance(task.model, Network):
        return [], [*task.measures]
    runs = [m for m in task.measures if m.kind == "trajectory"]
    steady = [m for m in task.measures if m.kind in ("equilibrium", "stability")]
    found: list[tuple[Finder, list[Measure]]] = []
    if runs and runs_together(task):
        found.append((trajectories_of(task).run, runs))
    if steady:
        found.append((partial(_steady, task), steady))
    return found, [m for m in task.measures if all(m not in some for _, some in found)]


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


def found_together(task: Task) -> bool:
    """Return whether all measures are found at many points at once: for the most part by compiled
    code, which releases the GIL.
    """
    finders, alone = _finders(task)
    return bool(finders) and not alone


# --- equilibria and verdicts of many points -------------------------------------------------------


def _steady(
    task: Task, points: NDArray[np.int64], measures: Sequence[Measure], into: Piece
) -> list[int]:
    """Put in equilibria and verdicts of some points; return those left for one by one, by row."""
    numeric = [target.numeric for target in task.grid.targets.values()]
    numbers, others = np.flatnonzero(numeric).tolist(), np.flatnonzero(np.invert(numeric)).tolist()
    positions, left = task.grid.places(points), list[int]()
    model: Any = task.model
    for combination, members in combinations(positions[others]):
        values = task.grid.values(others, combination)
        try:
            net = rebuilt(model, {axis: task.grid.targets[axis] for axis in values}, values)
        except FluidccError:  # which each point then says
            left += members.tolist()
            continue
        for start in range(0, len(members), BLOCK):
            look()
            rows = members[start : start + BLOCK]
            try:
                _judge(task, net, numbers, positions[:, rows], rows, measures, into)
            except (InvalidInput, Unsupported):  # of all points, or of something unknown there
                left += rows.tolist()
    return left


def _judge(
    task: Task, net: Network, axes: list[int], positions: Any, rows: Any,
    measures: Sequence[Measure], into: Piece,
) -> None:  # fmt: skip
    """Put in what is found at some points of one network, or why it is not."""
    given = task.given(net, axes, positions)
    rest = equilibria(given)
    results: list[tuple[list[Measure], Equilibria | Verdicts]] = []
    if some := [m for m in measures if m.kind == "equilibrium"]:
        results.append((some, rest))
    if some := [m for m in measures if m.kind == "stability"]:
        asked = {STABILITY[m.key][1] for m in some}
        asked_for = {"roots": "roots" in asked, "margins": "margins" in asked}
        results.append((some, verdicts_at(rest, **asked_for)))
    for some, result in results:
        for measure in some:
            values = into.values[measure.name]
            got = np.array(getattr(result, measure.key), dtype=values.dtype)
            got[list(result.errors)] = np.nan
            values[task.schema[measure.name].places(rows, net)] = got
            for k, error in result.errors.items():
                into.fail(int(rows[k]), {measure.name: reason(error)})
        for k, texts in result.warnings.items():
            into.doubt(int(rows[k]), texts)


# --- the form of the results ----------------------------------------------------------------------


def with_schema(task: Task) -> Task:
    """Return the task with the form of its results: what functions return has that of the first
    point at which they can all be called.

    Raises
    ------
    SweepFailed
        If a function fails at all of some points, evenly over the grid; with the first one's
        reason.
    InvalidInput
        If a variable has a name that results use themselves.
    """
    model: Any = task.model
    swept, numbers = isinstance(model, Network), task.probes()
    schema: dict[str, Variable] = {}
    if swept:  # the first one has the flows of all
        counts = {axis: t for axis, t in task.grid.targets.items() if t.kind == "count"}
        net = rebuilt(model, counts, task.grid.point(numbers[0]))
        forms = {m.name: m.form(net) for m in task.measures}
        schema = {name: Variable.of(form) for name, form in forms.items() if form is not None}
    unknown = [m for m in task.measures if not swept or m.kind in ("own", "critical")]
    first, found = "", dict[str, Variable]()
    for number in numbers if unknown or not task.measures else ():
        values, failed, _ = values_at(task, number, unknown)
        found = {k: Variable.of(v) for k, v in values.items()} | found
        first = first or in_words(failed)
        if not failed:
            break
    known = schema.keys() | found.keys()
    named = found.keys() - {m.name for m in task.measures}  # by functions, in what they return
    lacking = [m for m in unknown if m.name not in known and not (m.kind == "own" and named)]
    if lacking or not known:
        raise SweepFailed(
            f"none of {len(numbers)} points could be measured; the first says: {first}"
        )
    schema |= found
    if not swept and task.measures:
        schema = _widened(task, schema)
    refuse_taken(schema)
    for name in schema:
        if name in task.grid.names:
            raise InvalidInput(
                f"a measure is named {name!r}, as an axis of the grid is; name one of them "
                "otherwise"
            )
    ordered = [m.name for m in task.measures if m.name in schema]
    return replace(task, schema={name: schema[name] for name in dict.fromkeys((*ordered, *schema))})


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
