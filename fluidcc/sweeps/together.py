"""Equilibria and verdicts of many points at once: compiled loops over all points of a structure.

Axes that change numbers (parameters, capacities, delays, buffers, packets, initial states) go there as arrays. For each
combination of those that change more (numbers of flows, laws, starts and stops) a network is built, and the points that
have it are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.many import Verdicts, verdicts_at
from fluidcc.base.errors import FluidccError, InvalidInput, Unsupported
from fluidcc.base.progress import look
from fluidcc.equilibria.many import Equilibria, equilibria
from fluidcc.network import Network
from fluidcc.sweeps.measures import EQUILIBRIUM, Measure
from fluidcc.sweeps.networks import Networks, PerThread, Place
from fluidcc.sweeps.structures import STRUCTURAL
from fluidcc.sweeps.targets import Target, on_copies

if TYPE_CHECKING:
    from fluidcc.sweeps.task import Task

__all__ = ["Found", "Together", "can_together", "found_together", "together_of"]

ROOTS = ("stable", "marginal", "encirclements", "decay_rate", "rightmost_root")
MARGINS = ("gain_margin", "phase_margin", "delay_margin", "modulus_margin", "crossover", "critical_gain")
BLOCK = 2048  # points in one call, so that Ctrl-C is heard and the memory is small


class Found(NamedTuple):
    """Values by measure; by row, why measures failed and what makes others doubtful; the rows to find one by one."""

    values: dict[str, NDArray[Any]]
    errors: dict[int, dict[str, str]]
    warnings: dict[int, list[str]]
    left: NDArray[np.int64]


def found_together(measure: Measure) -> bool:
    """Whether a measure is one that is found at many points at once."""
    return measure.kind == "equilibrium" or (measure.kind == "stability" and measure.key in (*ROOTS, *MARGINS))


def can_together(task: Task) -> bool:
    """Whether points of this task may be found together."""
    return isinstance(task.model, Network)


class Together:
    """Equilibria and verdicts of the points of a task."""

    def __init__(self, task: Task) -> None:
        assert isinstance(task.model, Network)
        self.task, self.net = task, task.model
        self.networks = Networks(task, self._is_more)
        self._values = {k: np.array(task.grid.axes[k].values, dtype=float) for k in self.networks.rest}

    def run(self, points: NDArray[np.int64], measures: Sequence[Measure]) -> Found:
        """What is measured at some points."""
        schema = self.task.schema
        values = {
            m.name: np.full((len(points), *schema[m.name].shape), np.nan, dtype=schema[m.name].dtype) for m in measures
        }
        found = Found(values, {}, {}, np.zeros(0, dtype=np.int64))
        left: list[int] = []
        for place, members, positions in self.networks.groups(points):
            for start in range(0, len(members), BLOCK):
                look()
                some = slice(start, start + BLOCK)
                rows = members[some]
                try:
                    self._found(place, positions[:, some], rows, measures, found)
                except (InvalidInput, Unsupported):  # of all points, or of something that it cannot do: one by one
                    left += rows.tolist()
        return found._replace(left=np.array(left, dtype=np.int64))

    def _found(self, place: Place, places: Any, rows: Any, measures: Sequence[Measure], into: Found) -> None:
        """Put in what is found at some points of one network, or why it is not."""
        net, targets, numbers = self._arguments(place, places)
        by_kind = {kind: [m for m in measures if m.kind == kind] for kind in ("equilibrium", "stability")}
        several: list[tuple[list[Measure], Equilibria | Verdicts]] = []
        if by_kind["equilibrium"]:
            several.append((by_kind["equilibrium"], equilibria(net, targets, numbers)))
        if by_kind["stability"]:
            keys = {m.key for m in by_kind["stability"]}
            asked = {"roots": bool(keys & set(ROOTS)), "margins": bool(keys & set(MARGINS))}
            several.append((by_kind["stability"], verdicts_at(net, targets, numbers, **asked)))
        for some, found in several:
            reasons = found.reasons()
            for measure in some:
                got = np.array(getattr(found, measure.key), dtype=into.values[measure.name].dtype)
                got[list(reasons)] = np.nan
                into.values[measure.name][self._places(measure, net, rows)] = got
                for k, reason in reasons.items():
                    into.errors.setdefault(int(rows[k]), {})[measure.name] = reason
            for k, texts in found.warnings.items():
                into.warnings.setdefault(int(rows[k]), []).extend(texts)

    def _places(self, measure: Measure, net: Network, rows: Any) -> Any:
        """Where its values belong among those of all points, flows and links."""
        if measure.kind == "stability":
            return rows
        dim = EQUILIBRIUM[measure.key]
        labels = list(self.task.schema[measure.name].coords[dim])
        return np.ix_(rows, [labels.index(name) for name in (net.flow_names if dim == "flow" else net.link_names)])

    def _arguments(self, place: Place, places: Any) -> tuple[Network, dict[str, Target], dict[str, Any]]:
        """The network, and what the axes change of it to what."""
        try:
            net = self.networks.at(place)
        except FluidccError as error:
            raise InvalidInput(str(error)) from error
        targets: dict[str, Target] = {}
        values: dict[str, Any] = {}
        for k in self.networks.rest:
            name = self.task.grid.axes[k].name
            for axis, target, numbers in self._as_numbers(net, name, self._values[k][places[k]]):
                targets[axis], values[axis] = target, numbers
        if not targets:  # the number of points follows from the axes
            targets[""], values[""] = Target("option", "", None), np.zeros(places.shape[1])
        return net, targets, values

    # --- what axes change -------------------------------------------------------------------------------------------

    def _is_more(self, target: Target) -> bool:
        """Whether an axis changes more than numbers, or numbers that follow from those of another axis."""
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
        """An axis as the search takes it: its target, that of every copy of its flows, and its values."""
        target = on_copies(self.task.targets[axis], self.net, net)
        if target.kind == "seconds":
            made = replace(target, kind="argument")
            return [(f"{axis} {l}", replace(made, links=(l,)), values * net.links[l].capacity) for l in target.links]
        if target.kind == "trip":
            made = replace(target, kind="argument", key="return_delay")
            return [(f"{axis} {f}", replace(made, flows=(f,)), values - net.propagation_delay(f)) for f in target.flows]
        return [(axis, target, values)]


together_of = PerThread(Together)
