"""The samples of a run as they stand in its workspace, in the form in which it is asked what makes a run doubtful.

A labelled dataset of them takes about as long to make and to read as the run itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Samples"]


@dataclass
class Samples:
    """What `fluidcc.engine.doubts` reads of a result of `simulate`, and which variables it has read.

    Attributes
    ----------
    numbered : xarray.Dataset
        Of the same structure, made of samples that are their own places in the workspace.
    F : array
        The workspace after the run.
    back : mapping of str to float
        Return delay of each flow [s]: a round trip is the one-way delay and this, and no sample.
    read : set of str
        Names of the variables that were asked for.
    """

    numbered: xr.Dataset
    F: NDArray[np.float64]
    back: Mapping[str, float]
    read: set[str] = field(default_factory=set)

    @property
    def time(self) -> xr.DataArray:
        return self.numbered.time

    def __getitem__(self, variable: str) -> _OfFlows:
        return _OfFlows(self, variable)

    @property
    def rate(self) -> _OfFlows:
        return self["rate"]

    def sel(self, *, flow: str) -> _OfOne:
        """All variables of one flow."""
        return _OfOne(self, flow)

    def column(self, variable: str, flow: str) -> _Column:
        """One variable of one flow."""
        self.read.add(variable)
        inside = "one_way_delay" if variable == "rtt" else variable
        first = self.numbered[inside].variable.values[0, self.numbered.indexes["flow"].get_loc(flow)]
        values = self.F[int(first) : int(first) + len(self.time)]
        return _Column(values + self.back[flow] if variable == "rtt" else values)


@dataclass(frozen=True)
class _Column:
    """Samples over time."""

    values: NDArray[np.float64]


@dataclass(frozen=True)
class _OfFlows:
    """A variable of all flows."""

    samples: Samples
    variable: str

    def sel(self, *, flow: str) -> _Column:
        return self.samples.column(self.variable, flow)


@dataclass(frozen=True)
class _OfOne:
    """All variables of a flow."""

    samples: Samples
    flow: str

    def __getitem__(self, variable: str) -> _Column:
        return self.samples.column(variable, self.flow)

    @property
    def rate(self) -> _Column:
        return self["rate"]

    @property
    def rtt(self) -> _Column:
        return self["rtt"]
