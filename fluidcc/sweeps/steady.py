"""Equilibria and verdicts of many points at once: compiled loops over all points of a network.

Axes that change numbers (parameters, capacities, delays, buffers, packets, initial states) go there
as arrays. For each combination of those that change more (numbers of flows, laws, starts and stops)
a network is built, and the points that have it are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.many import Verdicts, verdicts_at
from fluidcc.base.errors import FluidccError, InvalidInput, Unsupported
from fluidcc.base.progress import look
from fluidcc.equilibria.many import Equilibria, equilibria
from fluidcc.network import Network
from fluidcc.sweeps.batches import STRUCTURAL, Batches, Combination, Kept
from fluidcc.sweeps.measures import EQUILIBRIUM, Measure
from fluidcc.sweeps.targets import Target, on_copies
from fluidcc.sweeps.task import Task

__all__ = ["MARGINS", "ROOTS", "Found", "Steady", "is_steady", "steady_of"]

ROOTS = ("stable", "marginal", "encirclements", "decay_rate", "rightmost_root")
MARGINS = (
    "gain_margin", "phase_margin", "delay_margin", "modulus_margin", "crossover", "critical_gain",
)  # fmt: skip
BLOCK = 2048  # points in one call, so that Ctrl-C is heard and the memory is small


@dataclass
class Found:
    """What is found at many points.

    Attributes
    ----------
    values : dict
        An array (points, ...) for each measure.
    errors : dict
        By row and measure, why it could not be found.
    doubts : dict
        By row, what makes results doubtful.
    left : list of int
        Rows of the points that must be measured one by one.
    """

    values: dict[str, NDArray[Any]]
    errors: dict[int, dict[str, str]] = field(default_factory=dict)
    doubts: dict[int, list[str]] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)


def is_steady(measure: Measure) -> bool:
    """Return whether a measure of a network is one that is found here."""
    if measure.kind == "stability":
        return measure.key in (*ROOTS, *MARGINS)
    return measure.kind == "equilibrium"


class Steady:
    """Equilibria and verdicts of the points of a task.

    Parameters
    ----------
    task : Task
        One of a network.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.batches = Batches(task, self._is_more)
        axes = task.grid.axes
        self._values = {k: np.array(axes[k].values, dtype=float) for k in self.batches.rest}

    def run(self, points: NDArray[np.int64], measures: Sequence[Measure]) -> Found:
        """Return what is measured at some points."""
        schema = self.task.schema
        found = Found(
            {
                m.name: np.full((len(points), *schema[m.name].shape), np.nan, schema[m.name].dtype)
                for m in measures
            }
        )
        for combination, members, positions in self.batches.of(points):
            for start in range(0, len(members), BLOCK):
                look()
                some = slice(start, start + BLOCK)
                rows = members[some]
                try:
                    self._find(combination, positions[:, some], rows, measures, found)
                except (InvalidInput, Unsupported):  # of all points, or of something unknown there
                    found.left += rows.tolist()
        return found

    def _find(
        self, at: Combination, positions: Any, rows: Any, measures: Sequence[Measure], into: Found
    ) -> None:
        """Put in what is found at some points of one network, or why it is not."""
        net, targets, numbers = self._arguments(at, positions)
        results: list[tuple[list[Measure], Equilibria | Verdicts]] = []
        if some := [m for m in measures if m.kind == "equilibrium"]:
            results.append((some, equilibria(net, targets, numbers)))
        if some := [m for m in measures if m.kind == "stability"]:
            keys = {m.key for m in some}
            asked = {"roots": bool(keys & set(ROOTS)), "margins": bool(keys & set(MARGINS))}
            results.append((some, verdicts_at(net, targets, numbers, **asked)))
        for some, result in results:
            reasons = result.reasons()
            for measure in some:
                into_ = into.values[measure.name]
                got = np.array(getattr(result, measure.key), dtype=into_.dtype)
                got[list(reasons)] = np.nan
                into_[self._places(measure, net, rows)] = got
                for k, reason in reasons.items():
                    into.errors.setdefault(int(rows[k]), {})[measure.name] = reason
            for k, texts in result.warnings.items():
                into.doubts.setdefault(int(rows[k]), []).extend(texts)

    def _places(self, measure: Measure, net: Network, rows: Any) -> Any:
        """Where its values belong among those of all points, flows and links."""
        if measure.kind == "stability":
            return rows
        dim = EQUILIBRIUM[measure.key]
        labels = list(self.task.schema[measure.name].coords[dim])
        names = net.flow_names if dim == "flow" else net.link_names
        return np.ix_(rows, [labels.index(name) for name in names])

    def _arguments(
        self, at: Combination, positions: Any
    ) -> tuple[Network, dict[str, Target], dict[str, Any]]:
        """The network, and what the axes change of it to what."""
        try:
            net = self.batches.network(at)
        except FluidccError as error:
            raise InvalidInput(str(error)) from error
        targets: dict[str, Target] = {}
        values: dict[str, Any] = {}
        for k in self.batches.rest:
            name = self.task.grid.axes[k].name
            for axis, target, numbers in self._as_numbers(net, name, self._values[k][positions[k]]):
                targets[axis], values[axis] = target, numbers
        if not targets:  # the number of points follows from the axes
            targets[""], values[""] = Target("option", "", None), np.zeros(positions.shape[1])
        return net, targets, values

    # --- what axes change -------------------------------------------------------------------------

    def _is_more(self, target: Target) -> bool:
        """Whether an axis changes more than numbers, or numbers that follow from another axis's."""
        if target.kind in STRUCTURAL or target.key in ("start", "stop"):
            return True
        others = [t for t in self.task.targets.values() if t is not target]
        if target.kind == "seconds":
            return any(t.key == "capacity" for t in others)
        ways = ("delay", "access_delay", "rtt")
        if target.kind == "trip":
            return any(t.key in ways for t in others)
        return target.key in ways and any(t.kind == "trip" for t in others)

    def _as_numbers(self, net: Network, axis: str, values: Any) -> list[tuple[str, Target, Any]]:
        """An axis as `equilibria` takes it: its targets in this network, and their values."""
        model: Any = self.task.model
        target = on_copies(self.task.targets[axis], model, net)
        number = replace(target, kind="argument")
        if target.kind == "seconds":
            return [
                (f"{axis} {l}", replace(number, links=(l,)), values * net.links[l].capacity)
                for l in target.links
            ]
        if target.kind == "trip":
            number = replace(number, key="return_delay")
            return [
                (f"{axis} {f}", replace(number, flows=(f,)), values - net.propagation_delay(f))
                for f in target.flows
            ]
        return [(axis, target, values)]


_steady: Kept[Steady] = Kept()


def steady_of(task: Task) -> Steady:
    """Return what finds the equilibria and verdicts of a task; all threads share it."""
    return _steady.get(task.token, lambda: Steady(task))
