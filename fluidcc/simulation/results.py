"""From the solver's samples to a labelled dataset with units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import NotFinite
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.tables import owner_of
from fluidcc.simulation.workspace import Workspace
from fluidcc.symbols import plain

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Sampled", "dataset", "variables"]

Sampled = tuple[
    tuple[str, str], NDArray[np.float64], dict[str, str]
]  # dimensions, values, attributes

_CLASS_ROWS = {"one_way_delay": s.SDELAY, "loss": s.SLOSS, "price": s.SPRICE}
_LINK_ROWS = {
    "backlog": s.SBACKLOG,
    "queueing_delay": s.SQDELAY,
    "arrival_rate": s.SARRIVAL,
    "throughput": s.SDEPART,
    "link_loss": s.SLLOSS,
    "entered": s.SENTERED,
    "lost": s.SLOST,
    "link_price": s.SLPRICE,
}
_ABOUT = {
    "rate": ("bit/s", "sending rate"),
    "one_way_delay": ("s", "one-way delay that the source knows of"),
    "rtt": ("s", "round-trip time that the source knows of"),
    "loss": ("1", "loss and mark ratio that the source knows of"),
    "price": ("1", "path price that the source knows of"),
    "backlog": ("bit", "backlog"),
    "queueing_delay": ("s", "queueing delay of data that arrives now"),
    "arrival_rate": ("bit/s", "arrival rate"),
    "throughput": ("bit/s", "departure rate"),
    "utilisation": ("1", "throughput over capacity"),
    "capacity": ("bit/s", "capacity"),
    "link_loss": ("1", "loss ratio at the link"),
    "link_price": ("1", "price of the link"),
    "entered": ("bit", "bits that have arrived since time 0"),
    "lost": ("bit", "bits that have been lost since time 0"),
}
STATISTICS = {
    "steps": s.STEPS,
    "rejections": s.REJECTED,
    "nfev": s.NFEV,
    "events": s.EVENTS,
    "jumps": s.JUMPS,
    "ticks": s.TICKS,
    "breaking_points": s.BREAKS,
    "untracked_breaking_points": s.UNTRACKED,
    "extra_passes": s.EXTRA,
}


def dataset(
    space: Workspace,
    times: NDArray[np.float64],
    seconds: float,
    attrs: dict[str, Any],
    final: NDArray[np.uint8] | None = None,
) -> xr.Dataset:
    """The samples of a finished run by name."""
    import xarray as xr

    at = space.at
    data: dict[str, Any] = {**variables(space, times), **_events(space)}
    if final is not None:
        about = {"long_name": "states and history at the end of the run, for simulate(restart=...)"}
        data["final_state"] = ("final_state_byte", final, about)
    names = {"flow": [*at.net.flows], "link": [link.name for link in at.links]}
    # Whatever is no variable or index yet xarray compares with Dask's arrays, and to import Dask
    # takes a second.
    labelled = {
        k: xr.Variable(dims, of, about, fastpath=True) for k, (dims, of, about) in data.items()
    }
    result = xr.Dataset(
        labelled, coords=_coordinates(time=times, **{k: np.array(v) for k, v in names.items()})
    )
    result["time"].attrs["units"] = "s"
    result.attrs.update(attrs, solve_seconds=seconds, located_switches=int(space.I[s.LOCATE]))
    result.attrs.update({name: int(space.I[slot]) for name, slot in STATISTICS.items()})
    return result


def variables(space: Workspace, times: NDArray[np.float64]) -> dict[str, Sampled]:
    """The samples of a finished run by name, with their dimensions and attributes; flows in the
    network's order.
    """
    at = space.at
    nf, nc = len(at.flows), len(at.classes)
    place = np.argsort(at.order)  # the network's order of flows
    data: dict[str, Sampled] = {}

    def put(
        name: str,
        dims: tuple[str, str],
        values: NDArray[np.float64],
        unit: str = "",
        about: str = "",
    ) -> None:
        if name in _ABOUT:
            unit, about = _ABOUT[name]
            _require_finite(space, times, name, dims[1], values)
        data[name] = (dims, np.ascontiguousarray(values.T), {"units": unit, "long_name": about})

    put("rate", ("time", "flow"), space.rows(0, nf)[place])
    members = np.array(at.flow_class)[place]
    for name, row in _CLASS_ROWS.items():
        if name != "price" or space.I[s.PRICES]:
            put(name, ("time", "flow"), space.rows(nf + row * nc, nc)[members])
    back = np.array([at.net.return_delay(f.name) for f in at.flows])[:, None]
    put("rtt", ("time", "flow"), space.rows(nf + s.SDELAY * nc, nc)[members] + back[place])
    for name, row in _LINK_ROWS.items():
        if name != "link_price" or space.I[s.PRICES]:
            put(name, ("time", "link"), space.link_rows(row))
    capacity = _capacities(space, times)
    put("capacity", ("time", "link"), capacity)
    put("utilisation", ("time", "link"), space.link_rows(s.SDEPART) / capacity)
    _states(space, put)
    return data


def _require_finite(
    space: Workspace, times: NDArray[np.float64], name: str, dim: str, values: NDArray[Any]
) -> None:
    """Refuse what has become NaN or infinite without a state of its own, of which the solver would
    know.
    """
    bad = ~np.isfinite(values)
    if np.any(bad):
        first = int(np.argmax(np.any(bad, axis=0)))
        which = int(np.argmax(bad[:, first]))
        owner = [*space.at.net.flows][which] if dim == "flow" else space.at.links[which].name
        raise NotFinite(
            f"{name} of {dim} {owner!r} became NaN or infinite at {times[first]:.9g} s; look for a "
            "division by zero or "
            "a power that is too large in the laws of the flows and links on that path, or give a "
            "smaller rtol"
        )


def _coordinates(**values: NDArray[Any]) -> xr.Coordinates:
    """Coordinates with the indices that xarray would make of the values."""
    import pandas as pd
    import xarray as xr

    indexes = {dim: xr.indexes.PandasIndex(pd.Index(v), dim, v.dtype) for dim, v in values.items()}
    return xr.Coordinates(
        {dim: index.create_variables()[dim] for dim, index in indexes.items()}, indexes
    )


def _events(space: Workspace) -> dict[str, Any]:
    """When each jump and each tick happened, and whose it was, at the clock of its owner; and where
    all has kinks.
    """
    at = space.at
    data: dict[str, Any] = {}
    if not space.event_rows:
        return data
    log = np.concatenate([np.empty((0, 2)), *space.log])
    shifts = sorted({0.0, *(f.access_delay for f in at.flows)})
    breaks = np.unique(np.concatenate([log[:, 0] - shift for shift in shifts]))
    about = {"units": "s", "long_name": "where something is not smooth"}
    data["break_time"] = ("break", breaks[breaks >= 0.0], about)
    number = log[:, 1].astype(int)
    rows = np.array(space.event_rows, dtype=np.int64).reshape(-1, s.HSIZE)
    jumps = rows[:, s.HKIND] > s.SOURCE_TICK
    for kind, mine in (("jump", jumps), ("tick", ~jumps)):
        if not np.any(mine):
            continue
        which = (number >= 0) & mine[number]
        owners = [owner_of(row) for row in rows]
        names = np.array([at.flows[i].name if source else at.links[i].name for source, i in owners])
        access = np.array([at.flows[i].access_delay if source else 0.0 for source, i in owners])
        moment = log[:, 0] - np.where(number >= 0, access[number], 0.0)
        # The clock goes on a little for flows with an access delay, and a restart goes over that
        # again.
        which &= (moment <= space.until * (1 + 1e-12)) & (
            (moment > space.since * (1 + 1e-12)) | (space.since == 0.0)
        )
        found, inside = number[which], moment[which]
        data[f"{kind}_time"] = (kind, inside, {"units": "s", "long_name": f"time of each {kind}"})
        data[f"{kind}_of"] = (kind, names[found], {"long_name": f"flow or link of each {kind}"})
        about = {"units": "1", "long_name": f"which of its law's {kind}s each is, from 0"}
        before = [
            0 if kind == "jump" else _jumps(at, *owner) for owner in owners
        ]  # ticks are numbered after jumps
        data[f"{kind}_rule"] = (
            kind,
            (rows[:, s.HWANT] - np.array(before, dtype=np.int64))[found],
            about,
        )
    return data


def _jumps(at: Any, source: bool, i: int) -> int:
    """How many jumps the law of a flow or link has."""
    return len((at.flows if source else at.links)[i].law.jumps)


def _capacities(space: Workspace, times: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.empty((len(space.at.links), len(times)))
    for l, link in enumerate(space.at.links):
        rows[l] = link.capacity
        for when, value in link.schedule:
            rows[l, times >= when] = value
    return rows


def _states(space: Workspace, put: Any) -> None:
    """Each law's own states, as ``<law>_<state>``; NaN where a flow or link has no such state."""
    at = space.at
    place = np.argsort(at.order)
    for groups, dim, count in (
        (at.groups, "flow", len(at.flows)),
        (at.link_groups, "link", len(at.links)),
    ):
        made: dict[str, tuple[NDArray[np.float64], str]] = {}
        for g in groups:
            rows = space.state_rows(g.states, len(g.own) * g.size)
            for j, z in enumerate(g.own):
                name = f"{g.law.name}_{plain(z)}"
                full, _ = made.setdefault(
                    name, (np.full((count, rows.shape[1]), np.nan), str(g.law.units[z]))
                )
                own = rows[j * g.size : (j + 1) * g.size]
                # A state held at 0 leaves it along a polynomial, which rounding may start below.
                full[g.members] = np.maximum(own, 0.0) if g.law.lower.get(z) == 0 else own
        for name, (full, unit) in made.items():
            put(
                name,
                ("time", dim),
                full[place] if dim == "flow" else full,
                unit,
                f"state of {name.split('_')[0]}",
            )
