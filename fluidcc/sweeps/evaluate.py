"""Measuring points of a task: all together where that can be, the others one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput, SweepFailed, gathered
from fluidcc.base.progress import look
from fluidcc.network import Network
from fluidcc.sweeps.measures import Measure, Point, Value, refuse_taken
from fluidcc.sweeps.results import Piece, Variable, empty_piece
from fluidcc.sweeps.steady import Found, is_steady, steady_of
from fluidcc.sweeps.task import Task
from fluidcc.sweeps.trajectories import runs_together, trajectories_of

__all__ = ["Measured", "Points", "evaluate", "probed", "releases_gil", "values_at"]

PROBES = 20  # points that are tried before it is said that none can be measured
SHARED = 20  # points for each workspace from which on most of the work is in compiled code

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
            return Measured({}, {"": _reason(error)}, [])
        if isinstance(point, dict):
            return Measured(point, {}, told)
        values: dict[str, Value] = {}
        failed: dict[str, str] = {}
        for measure in task.measures if measures is None else measures:
            try:
                values |= measure.of(point)
            except Exception as error:  # what a law or a user's function raises is this point's own
                failed[measure.name] = _reason(error)
    return Measured(values, failed, [*point.doubts, *told])


def evaluate(task: Task, some: Points) -> Piece:
    """Return the results of some points, by their numbers."""
    points = np.asarray(some, dtype=np.int64)
    began = perf_counter()
    groups = _groups(task)
    piece = empty_piece(task.schema, len(points))
    found = Found(piece.values)
    for run, measures in groups:
        got = run(points, measures)
        for name, values in got.values.items():
            piece.values[name][...] = values
        for row, by_name in got.errors.items():
            found.errors[row] = found.errors.get(row, {}) | by_name
        for row, texts in got.doubts.items():
            found.doubts[row] = [*found.doubts.get(row, ()), *texts]
        _one_by_one(task, points, got.left, measures, found)
    together = {m.name for _, measures in groups for m in measures}
    alone = [m for m in task.measures if m.name not in together]
    if alone or not task.measures:
        _one_by_one(task, points, range(len(points)), alone, found)
    order = {m.name: k for k, m in enumerate(task.measures)}
    for row, by_name in sorted(found.errors.items()):
        names = sorted(by_name, key=lambda name: order.get(name, -1))
        piece.errors[row] = "; ".join(f"{k}: {by_name[k]}" if k else by_name[k] for k in names)
    piece.doubts = {k: "; ".join(dict.fromkeys(texts)) for k, texts in sorted(found.doubts.items())}
    piece.seconds = perf_counter() - began
    return piece


def _groups(task: Task) -> list[tuple[Any, list[Measure]]]:
    """Measures that are found at many points at once, each group with what finds it."""
    if not isinstance(task.model, Network):
        return []
    runs = [m for m in task.measures if m.kind == "trajectory"] if runs_together(task) else []
    steady = [m for m in task.measures if is_steady(m)]
    return [
        *([(trajectories_of(task).run, runs)] if runs else []),
        *([(steady_of(task).run, steady)] if steady else []),
    ]


def _one_by_one(
    task: Task, points: Any, rows: Iterable[int], measures: Sequence[Measure], found: Found
) -> None:
    """Put in what is measured at some rows of the points."""
    for row in rows:
        look()
        values, reasons, told = values_at(task, int(points[row]), measures)
        for name, value in values.items():
            try:
                if name not in task.schema:
                    raise InvalidInput(
                        f"there is a variable {name!r} here, which the first point has not"
                    )
                task.schema[name].fill(value, found.values[name][row, ...], name)
            except Exception as error:
                reasons[name] = _reason(error)
        if reasons:
            found.errors[row] = found.errors.get(row, {}) | reasons
        if told:
            found.doubts[row] = [*found.doubts.get(row, ()), *told]


def releases_gil(task: Task) -> bool:
    """Return whether nearly all of the work is in compiled code, so that threads do it best."""
    groups = _groups(task)
    if not groups or sum(len(measures) for _, measures in groups) < len(task.measures):
        return False
    if all(m.kind != "trajectory" for m in task.measures):
        return True
    return trajectories_of(task).workspaces * SHARED <= task.grid.size


# --- the form of the results ----------------------------------------------------------------------


def probed(task: Task) -> Task:
    """Return the task with the form of its results, from the first point that can be measured.

    Raises
    ------
    SweepFailed
        If of some points, evenly over the grid, none can be measured; with the first one's reason.
    InvalidInput
        If a variable has a name that results use themselves.
    """
    first = ""
    schema: dict[str, Variable] = {}
    numbers = _probes(task)
    if runs_together(task) and (net := _largest(task, numbers)) is not None:
        runs = [m for m in task.measures if m.kind == "trajectory"]
        schema = {m.name: Variable.of(form) for m in runs if (form := m.form(net)) is not None}
    rest = [m for m in task.measures if m.name not in schema]
    for number in numbers if rest or not task.measures else ():
        values, failed, _ = values_at(task, int(number), rest)
        schema = {k: Variable.of(v) for k, v in values.items()} | schema
        first = first or "; ".join(f"{k}: {v}" if k else v for k, v in failed.items())
        if not failed:
            break
    else:
        if not schema:
            raise SweepFailed(_none_of(numbers, first))
        schema = _completed(task, schema, numbers, first)
    schema = _with_all_flows(task, schema, numbers)
    refuse_taken(schema)
    for name in schema:
        if name in task.grid.names:
            raise InvalidInput(
                f"a measure is named {name!r}, as an axis of the grid is; name one of them "
                "otherwise"
            )
    named = [m.name for m in task.measures if m.name in schema]
    return replace(task, schema={name: schema[name] for name in dict.fromkeys((*named, *schema))})


def _none_of(numbers: NDArray[np.int64], first: str) -> str:
    return f"none of {len(numbers)} points could be measured; the first says: {first}"


def _with_all_flows(task: Task, schema: dict[str, Variable], numbers: Any) -> dict[str, Variable]:
    """With room for the flows of the largest network, of which nothing may have been measured."""
    counted = any(t.kind == "count" for t in task.targets.values())
    net = _largest(task, numbers) if counted else None
    for measure in task.measures if net is not None else ():
        form = None if net is None else measure.form(net)
        if form is not None and form.dims and measure.name in schema:
            all_ = Variable.of(form)
            schema[measure.name] = replace(
                schema[measure.name], shape=all_.shape, coords=all_.coords
            )
    return schema


def _largest(task: Task, numbers: NDArray[np.int64]) -> Network | None:
    """The first network among these points, which has the flows of all; None if there is none."""
    for number in numbers:
        with suppress(Exception):  # values_at() tells it
            point = task.point(int(number))
            return point.net if isinstance(point, Point) else None
    return None


def _probes(task: Task) -> NDArray[np.int64]:
    """Points that are tried: some, evenly over the grid."""
    size = task.grid.size
    numbers = np.unique(np.linspace(0, size - 1, min(PROBES, size)).astype(np.int64))
    counts = [axis for axis, target in task.targets.items() if target.kind == "count"]
    if not counts:
        return numbers
    # the most flows first: their names are those of all
    order = [int(np.argmax(a.values)) if a.name in counts else 0 for a in task.grid.axes]
    return np.concatenate([[np.ravel_multi_index(order, task.grid.shape)], numbers])


def _completed(
    task: Task, schema: dict[str, Variable], numbers: Any, first: str
) -> dict[str, Variable]:
    """With the form of measures that failed wherever they were tried, where it is known all the
    same.
    """
    known = set(schema)
    for measure in task.measures:
        of_others = known - {m.name for m in task.measures}
        if measure.name in known or (measure.kind == "own" and of_others):
            continue
        net = _largest(task, numbers)
        form = None if net is None else measure.form(net)
        if form is None:
            raise SweepFailed(_none_of(numbers, first))
        schema[measure.name] = Variable.of(form)
    return schema


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
