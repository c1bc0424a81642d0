"""The work of a sweep as data that can be sent to any worker: which points there are, and what is measured at each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccError, InvalidInput, SweepFailed
from fluidcc.base.progress import look
from fluidcc.base.warned import gathered
from fluidcc.network import Network
from fluidcc.network.scenarios import Scenario
from fluidcc.sweeps.chunk import Piece, Variable, empty_piece
from fluidcc.sweeps.grid import Grid
from fluidcc.sweeps.grid_point import Point
from fluidcc.sweeps.measures import Measure, Value, as_values, refuse_taken
from fluidcc.sweeps.networks import PerThread
from fluidcc.sweeps.pace import Pace, made_once
from fluidcc.sweeps.places import SHARED
from fluidcc.sweeps.structure import empty
from fluidcc.sweeps.structures import structures_of
from fluidcc.sweeps.targets import Target, changed
from fluidcc.sweeps.timed import timed
from fluidcc.sweeps.together import can_together, found_together, together_of

__all__ = ["Measured", "Task"]

PROBES = 20  # points that are tried before it is said that none can be measured


class Measured(NamedTuple):
    """Values of a point by variable, by measure why some failed, and what makes the others doubtful."""

    values: dict[str, Value]
    failed: dict[str, str]
    doubts: list[str]


@dataclass(frozen=True)
class Task:
    """What to do at each point. `model` is a network or a function of a point; `measures` is empty with results."""

    model: Network | Callable[[Mapping[str, Any]], Any]
    grid: Grid
    targets: Mapping[str, Target]
    measures: tuple[Measure, ...]
    options: Mapping[str, Any]
    schema: Mapping[str, Variable] = field(default_factory=dict)
    batched: bool = False  # trajectories are run many at once
    cost: float = 0.0  # seconds a point takes, once it is known
    token: str = field(default_factory=lambda: uuid4().hex)  # by which workers keep what they have prepared

    def values_at(self, number: int, measures: Sequence[Measure] | None = None) -> Measured:
        """What is measured at a point."""
        with gathered() as told:
            try:
                point = self.point(number)
            except Exception as error:
                return Measured({}, {"": _reason(error)}, [])
            if isinstance(point, dict):
                return Measured(point, {}, told)
            values: dict[str, Value] = {}
            failed: dict[str, str] = {}
            for measure in self.measures if measures is None else measures:
                try:
                    values |= measure.of(point)
                except Exception as error:  # whatever a law or a user's function raises belongs to this point alone
                    failed[measure.name] = _reason(error)
        return Measured(values, failed, [*point.doubts, *told])

    def point(self, number: int) -> Point | dict[str, Value]:
        """The point of that number; or its results, if the swept function returns results."""
        values = self.grid.point(number)
        options = dict(self.options)
        if isinstance(self.model, Network):
            options |= {k: values[k] for k, t in self.targets.items() if t.kind == "option"}
            return Point(values, changed(self.model, self.targets, values), options)
        made = self.model(Point(values, None, options))
        if isinstance(made, Scenario):
            options |= {k: v for k, v in _of_scenario(made).items() if options.get(k) is None}
            made = made.net
        if isinstance(made, Network):
            if not self.measures:
                raise InvalidInput("the swept function returns a network; give the measure")
            return Point(values, made, options)
        if self.measures:
            raise InvalidInput(
                f"the swept function returns {type(made).__name__}; return a Network or Scenario, or leave measure out"
            )
        return as_values(made, "value")

    def evaluate(self, some: NDArray[np.int64] | range, seconds: float = math.inf) -> Piece:
        """Measure some points: all, or the first of them, as many as can be measured in so many seconds.

        The results then tell what a point costs, and what a call costs besides; see `timed`.
        """
        points = np.arange(some.start, some.stop, some.step) if isinstance(some, range) else some
        if seconds == math.inf:
            return self._evaluate(points)
        return timed(self._evaluate, self.schema, points, seconds, _pace_of(self))

    def _evaluate(self, points: NDArray[np.int64]) -> Piece:
        """Measure some points, all together where that can be."""
        began, made = perf_counter(), made_once()
        several = [m for m in self.measures if m.kind != "trajectory" and self._is_batched(m)]
        batch = structures_of(self) if self.batched else None
        together = together_of(self) if several else None
        piece = empty_piece(self.schema, len(points))
        failed: dict[int, dict[str, str]] = {}
        doubts: dict[int, list[str]] = {}
        alone = [m for m in self.measures if not self._is_batched(m)]
        if batch is not None:
            found, told, doubts, left = batch.run(points)
            failed = {row: {"": text} for row, text in told.items()}
            piece.values |= found
            runs = [m for m in self.measures if m.kind == "trajectory"]
            self._one_by_one(points, left.tolist(), runs, piece, failed, doubts)
        if together is not None:
            values, reasons, warnings, left = together.run(points, several)
            for name, array in values.items():
                piece.values[name][...] = array
            for row, by_name in reasons.items():
                failed[row] = failed.get(row, {}) | by_name
            for row, texts in warnings.items():
                doubts[row] = [*doubts.get(row, ()), *texts]
            self._one_by_one(points, left.tolist(), several, piece, failed, doubts)
        if alone or not self.measures:
            self._one_by_one(points, range(len(points)), alone, piece, failed, doubts)
        order = {m.name: k for k, m in enumerate(self.measures)}
        for row, by_name in sorted(failed.items()):
            names = sorted(by_name, key=lambda name: order.get(name, -1))
            piece.errors[row] = "; ".join(f"{k}: {by_name[k]}" if k else by_name[k] for k in names)
        piece.doubts = {row: "; ".join(dict.fromkeys(texts)) for row, texts in sorted(doubts.items())}
        piece.seconds, piece.once = perf_counter() - began, made_once() - made
        return piece

    def _is_batched(self, measure: Measure) -> bool:
        """Whether it is measured at many points at once."""
        if measure.kind == "trajectory":
            return self.batched
        return found_together(measure) and can_together(self)

    @property
    def free(self) -> bool:
        """Whether nearly all of the work is in compiled code that releases the GIL, so that threads do it best."""
        if not self.measures or not all(self._is_batched(m) for m in self.measures):
            return False
        return not self.batched or structures_of(self).workspaces * SHARED <= self.grid.size

    def _one_by_one(
        self,
        points: NDArray[np.int64],
        rows: Iterable[int],
        measures: Sequence[Measure],
        piece: Piece,
        failed: dict[int, dict[str, str]],
        doubts: dict[int, list[str]],
    ) -> None:
        for row in rows:
            look()
            values, reasons, told = self.values_at(int(points[row]), measures)
            for name, value in values.items():
                try:
                    if name not in self.schema:
                        raise InvalidInput(f"there is a variable {name!r} here, which the first point has not")
                    self.schema[name].fill(value, piece.values[name][row, ...], name)
                except Exception as error:
                    reasons[name] = _reason(error)
            if reasons:
                failed[row] = failed.get(row, {}) | reasons
            if told:
                doubts[row] = [*doubts.get(row, ()), *told]

    def probed(self) -> Task:
        """The task with its schema, from the first point that can be measured.

        Raises
        ------
        SweepFailed
            If of some points, evenly over the grid, none can be measured; with the first one's reason.
        InvalidInput
            If a variable has a name that results use themselves.
        """
        first = ""
        schema: dict[str, Variable] = {}
        numbers = self._probes()
        if self.batched and (net := self._largest(numbers)) is not None:
            schema = {m.name: Variable.of(empty(net, m.key)) for m in self.measures if m.kind == "trajectory"}
        rest = [m for m in self.measures if m.name not in schema]
        if self.batched and not rest:
            return replace(self, schema=schema)
        for number in numbers:
            values, failed, _ = self.values_at(int(number), rest)
            schema = {k: Variable.of(v) for k, v in values.items()} | schema
            first = first or "; ".join(f"{k}: {v}" if k else v for k, v in failed.items())
            if not failed:
                break
        else:
            if not schema:
                raise SweepFailed(f"none of {len(numbers)} points could be measured; the first says: {first}")
            schema = self._completed(schema, numbers, first)
        schema = self._with_all_flows(schema, numbers)
        refuse_taken(schema)
        for name in schema:
            if name in self.grid.names:
                raise InvalidInput(
                    f"a measure is named {name!r}, as an axis of the grid is; name one of them otherwise"
                )
        named = [m.name for m in self.measures if m.name in schema]
        ordered = {name: schema[name] for name in dict.fromkeys((*named, *schema))}
        return replace(self, schema=ordered)

    def _with_all_flows(self, schema: dict[str, Variable], numbers: NDArray[np.int64]) -> dict[str, Variable]:
        """With room for the flows of the largest network, of which it may be that nothing could be measured."""
        net = self._largest(numbers) if any(t.kind == "count" for t in self.targets.values()) else None
        for measure in self.measures if net is not None else ():
            form = None if net is None else measure.form(net)
            if form is not None and form.dims and measure.name in schema:
                all_ = Variable.of(form)
                schema[measure.name] = replace(schema[measure.name], shape=all_.shape, coords=all_.coords)
        return schema

    def _largest(self, numbers: NDArray[np.int64]) -> Network | None:
        """The first network among these points, which has the flows of all of them; None if there is none."""
        for number in numbers:
            with suppress(FluidccError):
                point = self.point(int(number))
                return point.net if isinstance(point, Point) else None
        return None

    def _probes(self) -> NDArray[np.int64]:
        """Points that are tried: some, evenly over the grid."""
        numbers = np.unique(np.linspace(0, self.grid.size - 1, min(PROBES, self.grid.size)).astype(np.int64))
        counts = [axis for axis, target in self.targets.items() if target.kind == "count"]
        if not counts:
            return numbers
        # the most flows first: their names are those of all
        order = [int(np.argmax(a.values)) if a.name in counts else 0 for a in self.grid.axes]
        return np.concatenate([[np.ravel_multi_index(order, self.grid.shape)], numbers])

    def _completed(self, schema: dict[str, Variable], numbers: Any, first: str) -> dict[str, Variable]:
        """With the form of measures that failed wherever they were tried, where it is known all the same."""
        known = set(schema)
        for measure in self.measures:
            if measure.name in known or (measure.kind == "own" and known - {m.name for m in self.measures}):
                continue
            form = None
            for number in numbers:
                try:
                    point = self.point(int(number))
                except Exception:  # values_at() has told it
                    continue
                form = measure.form(point.net) if isinstance(point, Point) else None
                break
            if form is None:
                raise SweepFailed(f"none of {len(numbers)} points could be measured; the first says: {first}")
            schema[measure.name] = Variable.of(form)
        return schema


_pace_of = PerThread[Pace](lambda task: Pace())  # what a worker has learned from a job goes for its next one


def _of_scenario(scenario: Scenario) -> dict[str, Any]:
    return {"until": scenario.until, "seed": scenario.seed, "delays": scenario.delays}


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
