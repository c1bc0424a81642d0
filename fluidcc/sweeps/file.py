"""Sweep files: a scenario, a grid, measures and where the results go, in TOML. Errors name file, key, value, remedy.

.. code-block:: toml

    scenario = "ldcc_fig5"              # a ready scenario, or a scenario file beside this one
    measure = ["mean_rate", "max_queueing_delay"]
    window = ["100 s", "200 s"]
    output = "sweep.nc"

    [grid]
    beta = [0.1, 0.2]
    capacity = { from = "1 Mbit/s", to = "10 Mbit/s", points = 5, scale = "log" }

    [options]                           # those of fluidcc.simulate
    rtol = 1e-6
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from fluidcc.base.arguments import brief, shown
from fluidcc.base.errors import FluidccError, ScenarioError
from fluidcc.network.patterns import near
from fluidcc.network.scenario_file import toml
from fluidcc.network.scenarios import Scenario, scenarios

__all__ = ["SweepFile", "is_file", "load_sweep"]

Quantity = int | float | str


class Spread(msgspec.Struct, forbid_unknown_fields=True, rename={"first": "from", "last": "to"}):
    """An axis as a range."""

    first: Quantity
    last: Quantity
    points: int
    scale: str = "linear"


class SweepFile(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file: arguments of `fluidcc.sweep` by name."""

    scenario: str
    measure: list[str] | str
    grid: dict[str, list[Quantity] | Spread]
    until: Quantity | None = None
    window: tuple[Quantity, Quantity] | None = None
    output: str | None = None
    store: str | None = None
    refine: str | list[str] | None = None
    chunk: int | None = None
    workers: int | None = None
    executor: str | None = None
    set: dict[str, Any] = {}
    options: dict[str, Quantity | dict[str, Quantity]] = {}
    title: str = ""


OPTIONS = (
    "atol", "delays", "engine", "first_step", "frozen_at", "max_step", "rtol", "samples", "seed",
)  # fmt: skip
_RIGHT = {
    "chunk": "a whole number of points",
    "executor": "'threads', 'processes' or 'serial'",
    "grid": "a table of axes, such as beta = [0.1, 0.2] below [grid]",
    "measure": "the name of a measure, such as 'mean_rate', or a list of them",
    "options": "a table of options of simulate, such as rtol = 1e-6",
    "output": "a file, such as 'sweep.nc'",
    "refine": "the name of a measure, such as 'stable', or a list of them",
    "scenario": "a ready scenario or a scenario file, such as 'ldcc_fig5'",
    "set": 'a table of changes of the scenario, such as "flows.a.params.beta" = 0.2',
    "store": "a folder, such as 'sweep.zarr'",
    "title": "text",
    "until": "a time, such as '60 s'",
    "window": "two times, such as ['30 s', '60 s']",
    "workers": "a whole number",
}


def load_sweep(path: str | Path) -> tuple[Scenario, dict[str, Any], SweepFile]:
    """Read a sweep file.

    Returns
    -------
    tuple
        The scenario, the arguments of `fluidcc.sweep` besides it, and the file itself.

    Raises
    ------
    ScenarioError
        If there is no such file, or something in it is wrong.
    """
    path = Path(path)
    if not is_file(path):
        raise ScenarioError(f"{brief(str(path))}: no such file; give a TOML file with a scenario, a measure and a grid")
    file = _convert(toml(path.read_bytes(), path.name), path.name)
    beside = path.parent / file.scenario
    try:
        scenario = Scenario.load(beside if is_file(beside) else file.scenario, file.set)
    except FluidccError as error:
        key = "set" if file.set and (file.scenario in scenarios or is_file(beside)) else "scenario"
        raise ScenarioError(f"{path.name}, {key}: {error}") from error
    given: dict[str, Any] = {
        "grid": {name: _axis(values) for name, values in file.grid.items()},
        "measure": file.measure,
        **{k: getattr(file, k) for k in ("until", "window", "store", "refine", "chunk", "workers", "executor")},
        **file.options,
    }
    return scenario, given, file


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no name that a file can have
        return False


def _axis(values: list[Quantity] | Spread) -> Any:
    if isinstance(values, Spread):
        return {"from": values.first, "to": values.last, "points": values.points, "scale": values.scale}
    return values


def _convert(data: Mapping[str, Any], name: str) -> SweepFile:
    known = [f.name for f in msgspec.structs.fields(SweepFile)]
    for key in data:
        if key not in known:
            raise ScenarioError(f"{name}, {key}: there is no such key here; {near(key, known)}")
    options = data.get("options")
    for key in options if isinstance(options, Mapping) else ():
        if key not in OPTIONS:
            raise ScenarioError(f"{name}, options.{key}: there is no such option; {near(key, OPTIONS)}")
    for key in ("scenario", "measure", "grid"):
        if key not in data:
            raise ScenarioError(f"{name}, {key} is missing; give {_RIGHT[key]}")
    for key, value in data.items():
        field = next(f for f in msgspec.structs.fields(SweepFile) if f.name == key)
        if key == "grid" and isinstance(value, Mapping):
            for axis, values in value.items():
                try:
                    msgspec.convert(values, list[Quantity] | Spread)
                except msgspec.ValidationError:
                    right = "a list of values, or { from = ..., to = ..., points = ..., scale = 'log' }"
                    raise ScenarioError(f"{name}, grid.{axis} is {shown(values)}; give {right}") from None
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError:
            raise ScenarioError(f"{name}, {key} is {shown(value)}; give {_RIGHT[key]}") from None
    return msgspec.convert(data, SweepFile)
