"""The work of a sweep as data that can be sent to any worker: which points there are, and what is
measured at each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fluidcc.base.errors import InvalidInput
from fluidcc.network import Network
from fluidcc.network.scenarios import Scenario
from fluidcc.sweeps.grid import Grid
from fluidcc.sweeps.measures import Measure, Point, Value, as_values
from fluidcc.sweeps.results import Variable
from fluidcc.sweeps.targets import Target, changed

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """What to do at each point.

    Attributes
    ----------
    model : Network or function
        A function is called with each point.
    grid : Grid
    targets : mapping
        What each axis changes of a network.
    measures : tuple of Measure
        None if the function returns results.
    options : mapping
        Those of the runs.
    schema : mapping
        The form of the results by variable, once it is known.
    token : str
        Names the task, so that workers know what they have prepared for it.
    """

    model: Network | Callable[[Mapping[str, Any]], Any]
    grid: Grid
    targets: Mapping[str, Target]
    measures: tuple[Measure, ...]
    options: Mapping[str, Any]
    schema: Mapping[str, Variable] = field(default_factory=dict)
    token: str = field(default_factory=lambda: uuid4().hex)

    def point(self, number: int) -> Point | dict[str, Value]:
        """Return the point of that number; or its results, where the model returns results."""
        values = self.grid.point(number)
        options = dict(self.options)
        if isinstance(self.model, Network):
            options |= {k: values[k] for k, t in self.targets.items() if t.kind == "option"}
            return Point(values, changed(self.model, self.targets, values), options)
        made = self.model(Point(values, None, options))
        if isinstance(made, Scenario):
            own = {"until": made.until, "seed": made.seed, "delays": made.delays}
            options |= {k: v for k, v in own.items() if options.get(k) is None}
            made = made.net
        if isinstance(made, Network):
            if not self.measures:
                raise InvalidInput("the swept function returns a network; give the measure")
            return Point(values, made, options)
        if self.measures:
            raise InvalidInput(
                f"the swept function returns {type(made).__name__}; return a Network or Scenario, "
                "or leave measure out"
            )
        return as_values(made, "value")
