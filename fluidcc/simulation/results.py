"""From the solver's samples to a labelled dataset with units."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput, NotFinite
from fluidcc.base.packed import packed, unpacked
from fluidcc.laws.parts import hears_ratios
from fluidcc.network.network import Network
from fluidcc.numerics.fluid import state as s
from fluidcc.simulation.tables import event_of
from fluidcc.simulation.workspace import Workspace, sample_rows
from fluidcc.symbols import plain

if TYPE_CHECKING:
    import xarray as xr

Sampled = tuple[
    tuple[str, str], NDArray[np.float64], dict[str, str]
]  # dimensions, values, attributes

# dimension, row of the samples that it is made of, unit and description of each variable
VARIABLES: dict[str, tuple[str, int, str, str]] = {
    "rate": ("flow", -1, "bit/s", "sending rate"),
    "one_way_delay": ("flow", s.SDELAY, "s", "one-way delay that the source knows of"),
    "loss": ("flow", s.SLOSS, "1", "loss ratio that the source knows of"),
    "mark": ("flow", s.SMARK, "1", "mark ratio, of what is not lost, that the source knows of"),
    "price": ("flow", s.SPRICE, "1", "path price that the source knows of"),
    "rtt": ("flow", s.SDELAY, "s", "round-trip time that the source knows of"),
    "backlog": ("link", s.SBACKLOG, "bit", "backlog"),
    "queueing_delay": ("link", s.SQDELAY, "s", "queueing delay of data that arrives now"),
    "arrival_rate": ("link", s.SARRIVAL, "bit/s", "arrival rate"),
    "throughput": ("link", s.SDEPART, "bit/s", "departure rate"),
    "link_loss": ("link", s.SLLOSS, "1", "loss ratio at the link"),
    "link_drop": ("link", s.SLDROP, "1", "share that the link's law drops before its queue"),
    "link_mark": ("link", s.SLMARK, "1", "share that its law marks of what may be marked"),
    "entered": ("link", s.SENTERED, "bit", "bits that have arrived since time 0"),
    "lost": ("link", s.SLOST, "bit", "bits that have been lost since time 0"),
    "link_price": ("link", s.SLPRICE, "1", "price of the link"),
    "capacity": ("link", -1, "bit/s", "capacity"),
    "utilisation": ("link", s.SDEPART, "1", "throughput over capacity"),
}
# attributes of the dataset, and their names in the solver's state
STATISTICS = {
    "steps": "steps", "rejections": "rejections", "nfev": "nfev", "events": "events",
    "jumps": "jumps", "ticks": "ticks", "slides": "slides", "breaking_points": "breaking_points",
    "untracked_breaking_points": "untracked", "extra_passes": "extra_passes",
}  # fmt: skip


def dataset(
    net: Network,
    space: Workspace,
    times: NDArray[np.float64],
    seconds: float,
    attrs: dict[str, Any],
    final: str | None = None,
) -> xr.Dataset:
    """The samples of a finished run by name."""
    import xarray as xr

    _register_jump_time()
    data = variables(space, times)
    # Whatever is no variable or index yet xarray compares with Dask's arrays, and to import Dask
    # takes a second.
    labelled = {
        k: xr.Variable(dims, of, about, fastpath=True) for k, (dims, of, about) in data.items()
    }
    result = xr.Dataset(labelled, coords=_coordinates(net, times))
    state = space.state
    result.attrs.update(attrs, solve_seconds=seconds, located_switches=int(state.locate))
    result.attrs.update({name: int(getattr(state, own)) for name, own in STATISTICS.items()})
    result.attrs["instants"] = packed(_instants(space)) if space.event_rows else ""
    if final is not None:
        result.attrs["final_state"] = final
    return result


@cache
def _register_jump_time() -> None:
    """Let ``run.jump_time`` be the times of the jumps [s], which stand in an attribute as text: a
    variable of their own would multiply the rows of ``run.to_dataframe()``.
    """
    import xarray as xr

    @xr.register_dataset_accessor("jump_time")
    def jump_time(run: xr.Dataset) -> xr.DataArray:
        if "jump_time" in run.variables:
            return run["jump_time"]
        if "instants" not in run.attrs:
            raise InvalidInput("jump_time is of the Dataset that fluidcc.simulate returns")
        text = run.attrs["instants"]
        times = unpacked(text).get("jump_time", np.empty(0)) if text else np.empty(0)
        return xr.DataArray(times, dims="jump", name="jump_time", attrs={"units": "s"})


def variables(space: Workspace, times: NDArray[np.float64]) -> dict[str, Sampled]:
    """The samples of a finished run by name, with their dimensions and attributes; flows in the
    network's order.
    """
    left_out = () if space.at.pricing else ("price", "link_price")
    made = {name: samples(space, times, name) for name in VARIABLES if name not in left_out}
    # All at once, since a check of each takes three times as long.
    finite = space.finite() and np.all(np.isfinite(made["utilisation"]))
    data: dict[str, Sampled] = {}
    for name, values in made.items():
        dim, _, unit, about = VARIABLES[name]
        if not finite:
            _require_finite(space, times, name, dim, values)
        data[name] = _labelled(dim, values, unit, about)
    return data | _states(space)


def samples(space: Workspace, times: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Samples of one of `VARIABLES` (owners, times); flows in the network's order."""
    at, (dim, row, _, _) = space.at, VARIABLES[name]
    if name == "capacity":
        return _capacities(space, times)
    if dim == "link":
        found = space.link_rows(row)
        return found / _capacities(space, times) if name == "utilisation" else found
    nf, nc, place = len(at.flows), len(at.classes), np.argsort(at.order)
    if name == "rate":
        return space.rows(0, nf)[place]
    members, rows = np.array(at.flow_class)[place], space.rows(0, sample_rows(at))
    which = nf + row * nc + members
    if at.marking and name in ("loss", "mark"):
        # A source that hears of neither has no ECN: what a router marks of others is lost of this.
        deaf = np.array([not hears_ratios(flow.law) for flow in at.flows])[place]
        other = nf + s.SEITHER * nc + members if name == "loss" else len(rows) - 1
        which = np.where(deaf, other, which)
    found = rows[which]
    return found + space.state.return_delay[:nc][members, None] if name == "rtt" else found


def _labelled(dim: str, values: NDArray[np.float64], unit: str, about: str) -> Sampled:
    """Samples (owner, time) as a variable."""
    return ("time", dim), np.ascontiguousarray(values.T), {"units": unit, "long_name": about}


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


def _coordinates(net: Network, times: NDArray[np.float64]) -> xr.Coordinates:
    """Coordinates with the indices that xarray would make of the values; those of names, which
    take pandas a tenth of a millisecond, are kept with the network.
    """
    import xarray as xr

    variables, indexes = _indexed({"time": times})
    variables["time"].attrs["units"] = "s"
    names = net.derived(_names)
    return xr.Coordinates({**variables, **names[0]}, {**indexes, **names[1]})


def _names(net: Network) -> tuple[dict[Any, xr.Variable], dict[str, xr.Index]]:
    return _indexed({"flow": np.array(net.flow_names), "link": np.array(net.link_names)})


def _indexed(
    values: dict[str, NDArray[Any]],
) -> tuple[dict[Any, xr.Variable], dict[str, xr.Index]]:
    """Variables and indices of coordinates."""
    import pandas as pd
    import xarray as xr

    indexes: dict[str, xr.Index] = {}
    variables: dict[Any, xr.Variable] = {}
    for dim, of in values.items():
        indexes[dim] = xr.indexes.PandasIndex(pd.Index(of), dim, of.dtype)
        variables |= indexes[dim].create_variables()
    return variables, indexes


def _instants(space: Workspace) -> dict[str, NDArray[Any]]:
    """When each jump and each tick happened, and whose it was, at the clock of its owner; and where
    all has kinks.
    """
    at, data = space.at, dict[str, NDArray[Any]]()
    log = np.concatenate([np.empty((0, 2)), *space.log])
    shifts = sorted({0.0, *(f.access_delay for f in at.flows)})
    breaks = np.unique(np.concatenate([log[:, 0] - shift for shift in shifts]))
    data["break_time"] = breaks[breaks >= 0.0]
    number = log[:, 1].astype(int)
    events = [event_of(at, row) for row in space.event_rows]
    names, rules = (np.array([getattr(e, what) for e in events]) for what in ("name", "rule"))
    access = np.array([e.access_delay for e in events])
    moment = log[:, 0] - np.where(number >= 0, access[number], 0.0)
    # The clock goes on a little for flows with an access delay, and a restart goes over that again.
    inside = (number >= 0) & (moment <= space.until * (1 + 1e-12))
    inside &= (moment > space.since * (1 + 1e-12)) | (space.since == 0.0)
    for kind in ("jump", "tick"):
        mine = np.array([e.kind == kind for e in events])
        if np.any(mine):
            which = inside & mine[number]
            found = number[which]
            of = {"time": moment[which], "of": names[found], "rule": rules[found]}
            data |= {f"{kind}_{what}": values for what, values in of.items()}
    return data


def _capacities(space: Workspace, times: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.empty((len(space.at.links), len(times)))
    for l, link in enumerate(space.at.links):
        rows[l] = link.capacity
        for when, value in link.schedule:
            rows[l, times >= when] = value
    return rows


def _states(space: Workspace) -> dict[str, Sampled]:
    """Each law's own states, as ``<law>_<state>``, NaN where a flow or link has no such state; and
    as ``<state>`` where one law alone has one of that name, and no other variable.
    """
    at, data = space.at, dict[str, Sampled]()
    named: dict[str, list[str]] = {}
    for groups, dim, order in (
        (at.groups, "flow", np.argsort(at.order)),
        (at.link_groups, "link", np.arange(len(at.links))),
    ):
        made: dict[str, tuple[NDArray[np.float64], str, str]] = {}
        for g in groups:
            for z in g.own:
                name = f"{g.law.name}_{plain(z)}"
                if name not in made:
                    nothing = np.full((len(order), int(space.state.n_samples)), np.nan)
                    made[name] = nothing, str(g.law.units[z]), g.law.name
                    named.setdefault(plain(z), []).append(name)
                made[name][0][g.members] = space.states_of(g, z)
        for name, (full, unit, law) in made.items():
            data[name] = _labelled(dim, full[order], unit, f"state of {law}")
    taken = {*VARIABLES, *data, "time", "flow", "link"}
    for state, names in named.items():
        if len(names) == 1 and state not in taken:
            dims, values, about = data[names[0]]
            data[state] = dims, values, {**about, "long_name": f"{names[0]} by its own name"}
    return data
