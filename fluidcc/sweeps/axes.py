"""The axes of a sweep: their values, what they change of a network, and all their combinations.

The points of a grid are numbered in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import shown, whole
from fluidcc.base.errors import InvalidInput, UnitsError, UnknownName
from fluidcc.base.units import Dimension, dimension_of, to_si
from fluidcc.laws import Law, Link
from fluidcc.network import Network
from fluidcc.network.network import copy_name
from fluidcc.network.parameters import Parameters, Target
from fluidcc.network.patterns import near
from fluidcc.symbols import plain

OPTIONS = {"seed": "count", "until": "s"}  # of the runs, not of the network
FLOW = {
    "access_delay": "s",
    "return_delay": "s",
    "packet": "bit/packet",
    "start": "s",
    "stop": "s",
}
LINK = {"capacity": "bit/s", "delay": "s", "buffer": "bit"}
_ALL = ("flows", "links")
MOST_VALUES = 10**7  # of an axis
MOST_POINTS = 10**10  # of a grid: results of one number each are 80 GB


@dataclass(frozen=True)
class Axis:
    """One axis: its name, its values as they are set, and what it changes of a network, which is
    None where a function is called with the points.
    """

    name: str
    values: tuple[Any, ...]
    target: Target | None = None

    @cached_property
    def numeric(self) -> bool:
        """Whether every value is a number."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values as an array, of numbers."""
        return np.array(self.values, dtype=float)

    def ends(self) -> tuple[Any, ...]:
        """The least and the greatest value; all of them where they are not numbers."""
        return (min(self.values), max(self.values)) if self.numeric else self.values

    def coordinate(self) -> tuple[str, Any, dict[str, str]]:
        """Return the axis as a coordinate of xarray; values that are no numbers by their names."""
        values = (
            list(self.values) if self.numeric else [str(getattr(v, "name", v)) for v in self.values]
        )
        unit = self.target.unit if self.target else None
        return (
            self.name,
            np.asarray(values),
            {"units": unit} if unit not in (None, "count") else {},
        )


@dataclass(frozen=True)
class Grid:
    """All combinations of the axes' values; the last axis varies fastest."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(axis.name for axis in self.axes)

    @cached_property
    def targets(self) -> dict[str, Target]:
        """What each axis changes of a network."""
        return {axis.name: axis.target for axis in self.axes if axis.target}

    def places(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position along each axis, shape (axes, points)."""
        return np.array(np.unravel_index(points, self.shape), dtype=np.int64).reshape(
            len(self.axes), len(points)
        )

    def point(self, number: int) -> dict[str, Any]:
        """Values by axis of point `number`."""
        return self.values(range(len(self.axes)), np.unravel_index(number, self.shape))

    def values(self, axes: Iterable[int], positions: Iterable[Any]) -> dict[str, Any]:
        """Values by name at these positions along some axes, which are given by number."""
        pairs = zip((self.axes[k] for k in axes), positions, strict=True)
        return {axis.name: axis.values[position] for axis, position in pairs}


def combinations(
    positions: NDArray[np.int64],
) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64]]]:
    """Give each combination of positions along some axes (axes, points), with the points at it."""
    columns, which = np.unique(positions, axis=1, return_inverse=True)
    order, which = np.argsort(which.ravel(), kind="stable"), which.ravel()
    members = np.split(order, np.cumsum(np.bincount(which))[:-1])
    yield from zip(map(tuple, columns.T.tolist()), members, strict=True)


def make_grid(given: Any, net: Network | None = None) -> Grid:
    """Read the axes of a sweep.

    Parameters
    ----------
    given : mapping of str to values
        Of each axis a sequence of numbers, of text with units or of other objects; or a mapping for
        `{"from": a, "to": b, "points": n, "scale": "linear" or "log"}`.
    net : Network, optional
        What the axes change; without one, values are left as they are.

    Raises
    ------
    InvalidInput
        If there is no axis, one is empty, a value is there twice, or cannot be read; if two axes
        set the same thing, or one names what no flow or link has, or both have.
    """
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput(
            f"the grid is {shown(given)}; give axes by name, such as {{'beta': [0.1, 0.2]}}"
        )
    targets = _targets(net, given) if net else {}
    sizes = {name: target.packet(net) for name, target in targets.items() if net}
    grid = Grid(
        tuple(
            Axis(name, _values(name, values, targets.get(name), sizes.get(name)), targets.get(name))
            for name, values in zip(map(str, given), given.values(), strict=True)
        )
    )
    if grid.size > MOST_POINTS:
        long = " times ".join(f"{len(axis.values)} of {axis.name!r}" for axis in grid.axes)
        raise InvalidInput(
            f"the grid has {grid.size:.3g} points ({long}); give at most {MOST_POINTS:.0e}"
        )
    return grid


def _values(name: str, given: Any, target: Target | None, packet: float | None) -> tuple[Any, ...]:
    """The values of an axis, in the unit of its target; packets are of `packet` bits."""
    what, unit = f"axis {name!r} of the grid", target.unit if target else None
    if isinstance(given, Mapping):
        return _spread(given, unit or "1", what)
    if isinstance(given, str) or not (isinstance(given, Sequence) or hasattr(given, "__array__")):
        raise InvalidInput(f"{what} is {shown(given)}; give a list of values")
    count = np.size(given) if hasattr(given, "__array__") else len(given)
    if count > MOST_VALUES:
        raise InvalidInput(f"{what} has {count} values; give at most {MOST_VALUES}")
    raw = np.atleast_1d(np.asarray(given)).tolist() if hasattr(given, "__array__") else list(given)
    if any(isinstance(v, list) for v in raw):
        raise InvalidInput(f"{what} is {shown(raw)}, lists in a list; give a list of values")
    if not raw:
        raise InvalidInput(f"{what} has no values; give at least one")
    if any(isinstance(v, float) and v != v for v in raw):
        raise InvalidInput(f"{what} has the value nan; leave it out")
    values: list[Any] = raw
    if unit == "count":
        values = [whole(v, what) for v in raw]
    elif unit is not None:
        values = [to_si(v, unit, what, packet=packet, allow_inf=True) for v in raw]
    seen = set()
    for as_given, value in zip(raw, values, strict=True):
        key = (type(value), value if isinstance(value, Hashable) else repr(value))
        if key in seen:
            raise InvalidInput(f"{what} has the value {shown(as_given)} twice; give each once")
        seen.add(key)
    return tuple(values)


def _spread(given: Mapping[str, Any], unit: str, what: str) -> tuple[float, ...]:
    """Values from ``{"from": a, "to": b, "points": n, "scale": "linear" or "log"}``."""
    unknown = set(given) - {"from", "to", "points", "scale"}
    if unknown or not {"from", "to", "points"} <= set(given):
        raise InvalidInput(
            f"{what} is {shown(dict(given))}; give the keys from, to and points, and scale='log' "
            "for even ratios"
        )
    low, high = (to_si(given[key], unit, f"{key!r} of {what}") for key in ("from", "to"))
    count, scale = given["points"], given.get("scale", "linear")
    count = whole(count, f"points of {what}", least=2, most=MOST_VALUES)
    if scale not in ("linear", "log"):
        raise InvalidInput(f"scale of {what} is {shown(scale)}; give 'linear' or 'log'")
    if scale == "log" and not (low > 0 and high > 0):
        raise InvalidInput(
            f"{what} is logarithmic and runs from {low:g} to {high:g}; give ends above 0"
        )
    if low == high:
        raise InvalidInput(f"{what} runs from {low:g} to {high:g}; give two different ends")
    values = np.geomspace(low, high, count) if scale == "log" else np.linspace(low, high, count)
    return tuple(values.tolist())


# --- what an axis changes -------------------------------------------------------------------------


def _targets(net: Network, grid: Mapping[Any, Any]) -> dict[str, Target]:
    """What every axis changes; a buffer whose values are all times follows the capacity."""
    targets: dict[str, Target] = {}
    for name, values in zip(map(str, grid), grid.values(), strict=True):
        new = find_target(net, name)
        for other, target in targets.items():
            both = {*new.owners} & {*target.owners}
            if both and (new.kind, new.key) == (target.kind, target.key):
                raise InvalidInput(
                    f"axes {other!r} and {name!r} of the grid both set {new.key} of "
                    f"{min(both)[1]!r}; leave one out, or name the flow or link that each is for"
                )
        listed = isinstance(values, list | tuple) and len(values) > 0
        if new.key == "buffer" and listed and all(map(_is_time, values)):
            new = replace(new, unit="s", kind="seconds")
        targets[name] = new
    return targets


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and dimension_of(value) == Dimension(s=1)
    except UnitsError:
        return False


def find_target(net: Network, name: str) -> Target:
    """What the axis `name` changes in a network.

    Raises
    ------
    UnknownName
        If no flow and no link has it.
    InvalidInput
        If both flows and links have it.
    """
    if name in OPTIONS:
        return Target("option", name, OPTIONS[name])
    if name == "rtt":
        return Target("rtt", "rtt", "s", flows=net.flow_names)
    owner, key = _split(net, name)
    found: list[Target] = []
    known = set[str]() if owner else {"rtt", *OPTIONS}
    for specs, group in ((net.flows, "flows"), (net.links, "links")):
        names = [*specs] if owner in (None, group) else [owner] if owner in specs else []
        settable = {n: _settable(specs[n].law, group == "flows") for n in names}
        known |= {k for one in settable.values() for k in one}
        having = {n: one[key] for n, one in settable.items() if key in one}
        if len(set(having.values())) > 1:
            raise InvalidInput(
                f"axis {key!r} of the grid has different units in {', '.join(having)}; name one "
                "owner of it"
            )
        if having:
            kind, unit = next(iter(having.values()))
            found.append(Target(kind, key, unit, **{group: tuple(having)}))
    if not found:
        one = owner is not None and owner not in _ALL
        whose = f"{owner!r} of the network has no" if one else f"no {owner or 'flow or link'} has"
        hint = near(key, sorted(known))
        raise UnknownName(
            f"axis {name!r} of the grid: {whose} {key!r}; "
            f"{hint + ' It' if hint[-1] == '?' else 'it'} may be {', '.join(sorted(known))}"
        )
    if len(found) > 1:
        raise InvalidInput(
            f"axis {name!r} of the grid: flows and links both have it; say flows.{key} or "
            f"links.{key}"
        )
    return found[0]


def _settable(law: Law, flow: bool) -> dict[str, tuple[str, str | None]]:
    """What can be set of a flow or link of this law, by name: the target's kind, and the unit."""

    def unit(symbol: Any) -> str:
        return str(law.units.get(symbol, "1"))

    found: dict[str, tuple[str, str | None]] = {
        **{plain(p): ("parameter", unit(p)) for p in law.params},
        **{f"initial.{plain(z)}": ("initial", unit(z)) for z in law.states},
        **{key: ("argument", u) for key, u in (FLOW if flow else LINK).items()},
        "law": ("law", None),
    }
    if flow:
        found |= {"rtt": ("trip", "s"), "count": ("count", "count")}
    elif isinstance(law, Link) and law.queue is not None:
        found |= {"initial.q": ("initial", "s"), "initial.backlog": ("initial", "bit")}
    return found


def _split(net: Network, name: str) -> tuple[str | None, str]:
    """Owner and key of ``a.beta``, where names of flows and links may have dots themselves."""
    owners = [o for o in (*net.flows, *net.links, *_ALL) if name.startswith(f"{o}.")]
    if owners:
        owner = max(owners, key=len)
        if owner in net.flows and owner in net.links:
            raise InvalidInput(
                f"axis {name!r} of the grid: a flow and a link are named {owner!r}; rename one of "
                "them"
            )
        return owner, name[len(owner) + 1 :]
    head, dot, _ = name.partition(".")
    if dot and head != "initial":
        hint = near(head, [*net.flows, *net.links, *_ALL])
        raise UnknownName(
            f"axis {name!r} of the grid: the network has no flow or link {head!r}; {hint}"
        )
    return None, name


def on_copies(target: Target, before: Network, net: Network) -> Target:
    """What an axis of a network changes where some of its flows are there several times, or not at
    all.
    """

    mine = set(target.flows)

    def origin(flow: str) -> str:
        name, _, number = flow.rpartition("_")
        return name if number.isdigit() and flow not in before.flows else flow

    return replace(target, flows=tuple(f for f in net.flows if f in mine or origin(f) in mine))


# --- changed networks -----------------------------------------------------------------------------


def changed(net: Network, targets: Mapping[str, Target], values: Mapping[str, Any]) -> Network:
    """Return the network with the values of a point put in.

    Raises
    ------
    InvalidInput
        If a value is not one that its place can take.
    """
    new = rebuilt(net, targets, values)
    numbers = {axis: on_copies(t, net, new) for axis, t in targets.items() if t.numeric}
    return Parameters.of(new, numbers, {axis: [values[axis]] for axis in numbers}).network()


def rebuilt(net: Network, targets: Mapping[str, Target], values: Mapping[str, Any]) -> Network:
    """Return the network with other laws, starts, stops and numbers of flows, as some values say;
    those of numbers are left out.
    """
    changes: dict[str, dict[str, dict[str, Any]]] = {"link": {}, "flow": {}}
    counts = {}
    for axis, target in targets.items():
        for kind, name in () if target.numeric else target.owners:
            if target.kind == "count":
                counts[name] = values[axis]
            else:
                changes[kind].setdefault(name, {})[target.key] = values[axis]
    for kind, some in changes.items():
        net = net.with_all(kind, some) if some else net
    new = net.only(name for name in net.flows if counts.get(name, 1)) if counts else net
    for name, count in counts.items():
        for k in range(2, count + 1):
            new.flow(copy_name(name, k, new.flows), **net.given("flow", name))
    return new
