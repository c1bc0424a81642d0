"""One cycle, integrated between all points where anything is not smooth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.analysis.returns import Section, events, mark_kind, state_names
from fluidcc.numerics.periodic import smooth_pieces

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["OnceRound", "once_round"]

_VARIABLES = ("rate", "one_way_delay", "rtt", "backlog", "queueing_delay", "arrival_rate", "throughput", "utilisation")

_LOOKS = 1601  # even samples, in which windows and round trips are looked at


@dataclass(frozen=True)
class OnceRound:
    """What `LimitCycle` tells of one cycle; its attributes are explained there."""

    period: float
    jumps: xr.DataArray
    mean: xr.Dataset
    least: xr.Dataset
    most: xr.Dataset
    loss: xr.DataArray
    orbit: xr.Dataset
    warnings: tuple[str, ...]


def once_round(section: Section) -> OnceRound:
    """Means, extremes and jumps of the cycle that begins at the section's next mark."""
    import xarray as xr

    marks, _ = section.walk(section.base, 1)
    start, end = marks
    until = section.start + 4 * float(end - start)  # what is doubtful is looked for in the later half: two cycles
    ahead = section.run(section.base, until, np.linspace(section.start, until, _LOOKS)[1:])
    pieces = smooth_pieces(start, end, ahead["break_time"].values)
    nodes = pieces.nodes.ravel()
    fine = section.run(section.base, until, nodes)
    names = [*_VARIABLES, *state_names(fine)[1:]]
    mean, least, most = (fine[names].isel(time=0, drop=True).copy(deep=True) for _ in range(3))
    for name in names:
        for k in range(fine[name].shape[1]):
            values = pieces.limits(fine[name].values[:, k].reshape(pieces.nodes.shape))
            mean[name].values[k] = pieces.mean(values)
            least[name].values[k], most[name].values[k] = pieces.extremes(values)
    lost, arrived = (
        [pieces.mean(pieces.limits(v.values[:, k].reshape(pieces.nodes.shape))) for k in range(v.shape[1])]
        for v in (fine.link_loss * fine.arrival_rate, fine.arrival_rate)
    )
    loss = xr.DataArray(np.divide(lost, arrived), {"link": fine.link}, ("link",), "loss", {"units": "1"})
    kind = mark_kind(fine)
    times, labels = events(fine, kind)
    inside = np.flatnonzero((times > start - 1e-9 * (end - start)) & (times < end - 1e-9 * (end - start)))
    of = {"of": ("jump", [labels[k][0] for k in inside]), "rule": ("jump", [labels[k][1] for k in inside])}
    about = {"units": "s", "long_name": f"{kind}s of one cycle"}
    after = times[inside] - start
    jumps = xr.DataArray(np.where(after < 1e-12 * (end - start), 0.0, after), of, ("jump",), "jumps", about)
    orbit = fine[names].assign_coords(time=("time", nodes - start, {"units": "s"}))
    doubts = tuple(text for text in ahead.attrs["warnings"].split("; ") if text)
    return OnceRound(float(end - start), jumps, mean, least, most, loss, orbit, doubts)
