"""Where the statistics of the runs of one structure stand in its workspace, and what makes all of them doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.network import Network
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.fused import fits, fused_address
from fluidcc.simulation.results import variables
from fluidcc.simulation.workspace import Workspace
from fluidcc.sweeps.grid_point import sample_times
from fluidcc.sweeps.measures import KINDS, VARIABLES, Value
from fluidcc.sweeps.samples import Samples, places_of

__all__ = ["Structure", "empty", "structure_of"]

UNITS = {"rate": "bit/s", "arrival_rate": "bit/s", "throughput": "bit/s", "backlog": "bit", "one_way_delay": "s",
         "rtt": "s", "queueing_delay": "s", "loss": "1", "link_loss": "1", "utilisation": "1"}  # fmt: skip


def empty(net: Network, name: str) -> Value:
    """An empty value of a statistic, for the form of the results."""
    variable = name.partition("_")[2]
    dim = VARIABLES[variable]
    labels = tuple(net.flows if dim == "flow" else net.links)
    return Value(np.full(len(labels), np.nan), (dim,), {dim: labels}, {"units": UNITS[variable]})


@dataclass
class Structure:
    """A workspace of one structure, and what is measured of it.

    ``doubts`` are those of all its runs, unless they depend on the run: then there are ``places`` of the samples that
    are looked at.
    """

    space: Workspace
    names: dict[str, int]  # first statistic of each measure
    address: int
    hops: int
    kinds: NDArray[np.int64]
    rows: NDArray[np.int64]
    doubts: list[str]
    places: dict[tuple[str, str], int] | None


def structure_of(space: Workspace, options: Mapping[str, Any], measures: Sequence[str]) -> Structure:
    """Where the rows of every statistic are: found by reading numbered samples as a result is read.

    Parameters
    ----------
    space : Workspace
        One of the caller's own, in which it runs.
    options : mapping
        Those of the sweep.
    measures : sequence of str
        Statistics by name, such as ``"mean_rate"``.
    """
    at = space.at
    fused = options.get("engine") == "fused" and fits(at)
    address = fused_address(at, build=True) if fused else 0
    first, last = int(space.I[s.OOUT]), int(space.I[s.OINIT])
    kept = space.F[first:last].copy()
    space.F[first:last] = np.arange(first, last)
    numbered = variables(space, sample_times(options))
    kinds: list[int] = []
    rows: list[int] = []
    names: dict[str, int] = {}
    for name in measures:
        kind, _, variable = name.partition("_")
        inside = {"rtt": "one_way_delay", "utilisation": "throughput"}.get(variable, variable)
        found = numbered[inside][1][0]
        names[name] = len(rows)
        rows += [int(row) for row in found]
        kinds += [KINDS.index(kind)] * len(found)
    places, times = places_of(numbered, at.net.flows), range(int(space.I[s.NSAMP]))
    looked = Samples(places, times, space.F, dict.fromkeys(at.net.flows, 0.0))  # every flow sends: all is positive
    said = looked.doubts(at)
    space.F[first:last] = kept  # only now: what was read may be a view
    hops = max(len(f.route) for f in at.flows)
    looks = places if looked.read else None
    return Structure(space, names, address, hops, np.array(kinds), np.array(rows), said, looks)
