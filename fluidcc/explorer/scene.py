"""The results that the explorer shows of a network, each computed when it is first shown."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from fluidcc.analysis.boundary import stability_boundary
from fluidcc.analysis.stability import stability
from fluidcc.base.errors import FluidccError
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate
from fluidcc.sweeps import sweep

SAMPLES = 601
SHADED_S = 4.0  # [s] for the verdicts that shade a chart
GRID = (9, 41)  # fewest and most points on an axis of it


class Scene:
    """A network with its run, equilibrium and verdict, each computed when first read.

    Parameters
    ----------
    net : Network
    until : float
        End of the run [s].
    delays : {"fifo", "frozen"}
        As for `fluidcc.simulate`.
    seed, losses
        As for `fluidcc.simulate`, of its run.
    copies : sequence of str
        Flows that are like another one, and not shown.
    """

    def __init__(
        self,
        net: Network,
        until: float,
        delays: str = "fifo",
        copies: Sequence[str] = (),
        **heard: Any,
    ) -> None:
        self.net, self.until, self.delays, self.copies = net, until, delays, copies
        self.heard = heard
        self.warnings: list[str] = []

    def _quietly(self, function: Any, *args: Any, **options: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(*args, delays=self.delays, **options)
        self.warnings += [str(w.message) for w in caught if str(w.message) not in self.warnings]
        return result

    @cached_property
    def run(self) -> Any:
        """The Dataset of its run."""
        options = {**self.heard, "samples": SAMPLES, "progress": False}
        run = self._quietly(simulate, self.net, self.until, **options)
        return run.drop_sel(flow=self.copies)

    @cached_property
    def report(self) -> Any:
        """The `StabilityReport` near its equilibrium."""
        return self._quietly(stability, self.net)

    @cached_property
    def rest(self) -> Any:
        """The `Equilibrium`."""
        return equilibrium(self.net)

    @cached_property
    def verdict(self) -> str:
        """The verdict in words, or why there is none."""
        try:
            return str(self.report.verdict)
        except FluidccError as error:
            return str(error)

    @cached_property
    def headline(self) -> str:
        """The verdict with its numbers."""
        try:
            m = self.report.margins
        except FluidccError:
            return self.verdict
        numbers = {
            "gain margin": (m.gain, ""), "phase margin": (m.phase, "\u00b0"),
            "delay margin": (1e3 * m.delay, " ms"),
        } if m.stable else {"critical gain": (m.gain_nearest, "")}  # fmt: skip
        told = [f"{name} {x:.3g}{unit}" for name, (x, unit) in numbers.items() if np.isfinite(x)]
        return ": ".join([self.verdict, *([", ".join(told)] if told else [])])


@dataclass
class Chart:
    """Verdicts over two parameters, and the exact boundary between them.

    Attributes
    ----------
    x, y : array
        Values on the axes, in SI units.
    stable : array, shape (len(y), len(x))
        1 where stable, 0 where not, NaN where there is no verdict.
    curve : tuple of array
        x and y of the boundary; empty where none was found, and `missing` says why.
    """

    x: Any
    y: Any
    stable: Any
    curve: tuple[Any, Any]
    missing: str


def draw_chart(scene: Scene, x: tuple[str, float], y: tuple[str, float]) -> Chart:
    """Return the chart over two parameters, from a quarter to four times their present values.

    Parameters
    ----------
    scene : Scene
    x, y : (str, float)
        An axis of `fluidcc.sweep` and its present value, which is not 0.
    """
    began = perf_counter()
    Scene(scene.net, scene.until, scene.delays).verdict  # noqa: B018  # how long one takes
    each = max(perf_counter() - began, 1e-6)
    count = int(np.clip(np.sqrt(SHADED_S / each), *GRID))
    values = np.geomspace(0.25, 4.0, count)
    grid = {x[0]: x[1] * values, y[0]: y[1] * values}
    measure: Any = {"stable": lambda point: stability(point.net, delays=scene.delays).stable}
    if scene.delays == "fifo":
        measure = ["stable"]  # many points at once
    found = sweep(scene.net, grid, measure, executor="threads", progress=False)
    stable = found["stable"].transpose(y[0], x[0]).values.astype(float)
    curve, missing = (np.empty(0), np.empty(0)), ""
    ends = {axis[0]: (axis[1] * values[0], axis[1] * values[-1]) for axis in (x, y)}
    for name, along in ((y[0], x[0]), (x[0], y[0])):  # it may cross one of the two at present
        try:
            edge: Any = stability_boundary(
                scene.net, name, bounds=ends[name], along=along, along_bounds=ends[along],
                delays=scene.delays,
            )  # fmt: skip
        except FluidccError as error:
            missing = missing or str(error)
        else:
            curve, missing = ((edge.x, edge.y) if name == y[0] else (edge.y, edge.x)), ""
            break
    return Chart(grid[x[0]], grid[y[0]], stable, curve, missing)
