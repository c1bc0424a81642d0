"""The samples of a run as they stand in its workspace, in the form in which it is asked what makes a run doubtful.

A labelled dataset of them takes longer to make and to read than the run itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from fluidcc.simulation.diagnostics import doubts
from fluidcc.simulation.layout import Layout
from fluidcc.simulation.results import Sampled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Samples", "places_of"]


def places_of(numbered: Mapping[str, Sampled], flows: Iterable[str]) -> dict[tuple[str, str], int]:
    """Where the first sample stands of each variable of each flow, from samples that are their places."""
    names = [*flows]
    firsts = {
        name: zip(names, values[0].tolist(), strict=True)
        for name, (dims, values, _) in numbered.items()
        if dims == ("time", "flow") and name != "rtt"
    }
    return {(name, flow): int(place) for name, of in firsts.items() for flow, place in of if place == place}


@dataclass
class Samples:
    """What `fluidcc.simulation.diagnostics` reads of a result of `simulate`, and whether it has read anything.

    Attributes
    ----------
    places : dict
        Where the first sample of each variable of each flow stands.
    time : range
        The numbers of the samples.
    F : array
        The workspace after the run.
    back : mapping of str to float
        Return delay of each flow [s]: a round trip is the one-way delay and this, and no sample.
    read : bool
        Whether any sample was asked for.
    """

    places: Mapping[tuple[str, str], int]
    time: range
    F: NDArray[np.float64]
    back: Mapping[str, float]
    read: bool = False

    def __getitem__(self, variable: str) -> _OfFlows:
        return _OfFlows(self, variable)

    def doubts(self, at: Layout) -> list[str]:
        """What makes the run doubtful, as its dataset says it: of that, the samples have all that is asked for."""
        return doubts(at, cast("xr.Dataset", self))

    @property
    def rate(self) -> _OfFlows:
        return self["rate"]

    def sel(self, *, flow: str) -> _OfOne:
        """All variables of one flow."""
        return _OfOne(self, flow)

    def column(self, variable: str, flow: str) -> _Column:
        """One variable of one flow."""
        self.read = True
        first = self.places["one_way_delay" if variable == "rtt" else variable, flow]
        values = self.F[first : first + len(self.time)]
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
