"""What an axis changes: from its name to the links and flows that have it, and changed copies of a
network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fluidcc.base.errors import InvalidInput, UnitsError, UnknownName
from fluidcc.base.units import Dimension, dimension_of
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


def find_targets(net: Network, grid: Any) -> dict[str, Target]:
    """What every axis of a grid changes.

    Raises
    ------
    UnknownName
        If no flow and no link has what an axis names.
    InvalidInput
        If both have, or two axes set the same thing.
    """
    targets: dict[str, Target] = {}
    for name in map(str, grid) if isinstance(grid, Mapping) else ():
        new = find_target(net, name)
        for other, target in targets.items():
            both = {*new.flows, *new.links} & {*target.flows, *target.links}
            if both and (new.kind, new.key) == (target.kind, target.key):
                raise InvalidInput(
                    f"axes {other!r} and {name!r} of the grid both set {new.key} of {min(both)!r}; "
                    "leave one out, or name the flow or link that each is for"
                )
        values = grid.get(name, ())
        if (
            new.key == "buffer"
            and isinstance(values, list | tuple)
            and values
            and all(map(_is_time, values))
        ):
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
    for specs, whole in ((net.flows, "flows"), (net.links, "links")):
        names = [*specs] if owner in (None, whole) else [owner] if owner in specs else []
        settable = {n: _settable(specs[n].law, whole == "flows") for n in names}
        known |= {k for one in settable.values() for k in one}
        having = {n: one[key] for n, one in settable.items() if key in one}
        if len(set(having.values())) > 1:
            raise InvalidInput(
                f"axis {key!r} of the grid has different units in {', '.join(having)}; name one "
                "owner of it"
            )
        if having:
            kind, unit = next(iter(having.values()))
            found.append(Target(kind, key, unit, **{whole: tuple(having)}))
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
            new.flow(copy_name(name, k), **net.given("flow", name))
    return new
