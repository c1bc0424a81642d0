"""What an axis changes: from its name to the links and flows that have it, and changed copies of a
network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from fluidcc.base.errors import InvalidInput, UnitsError, UnknownName
from fluidcc.base.units import Dimension, dimension_of, to_si
from fluidcc.laws import Law
from fluidcc.network import Network
from fluidcc.network.patterns import near
from fluidcc.symbols import plain

__all__ = ["OPTIONS", "Target", "between", "changed", "find_target", "find_targets", "on_copies"]

OPTIONS = {"seed": "count", "until": "s"}  # of the runs, not of the network
_FLOW = {
    "access_delay": "s",
    "return_delay": "s",
    "packet": "bit/packet",
    "start": "s",
    "stop": "s",
}
_LINK = {"capacity": "bit/s", "delay": "s", "buffer": "bit"}
_ALL = ("flows", "links")


@dataclass(frozen=True)
class Target:
    """What is set.

    ``kind`` is argument, seconds (of a buffer), parameter, initial, law, count, rtt, trip (of
    single flows) or option.
    """

    kind: str
    key: str
    unit: str | None
    flows: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    def packet(self, net: Network) -> float | None:
        """Packet size [bit] by which values are read, where all that are set have the same."""
        sizes = {to_si(net.given("link", name)["packet"], "bit/packet") for name in self.links}
        return sizes.pop() if len(sizes) == 1 else None


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
    flows = net.flow_names if owner in (None, "flows") else (owner,) if owner in net.flows else ()
    links = net.link_names if owner in (None, "links") else (owner,) if owner in net.links else ()
    found = [
        t
        for t in (_of(net.flows, flows, key, True), _of(net.links, links, key, False))
        if t is not None
    ]
    if not found:
        known = sorted(
            {
                *_names(net, flows, True),
                *_names(net, links, False),
                *(() if owner else ("rtt", *OPTIONS)),
            }
        )
        whose = (
            f"{owner!r} of the network"
            if owner and owner not in _ALL
            else f"no {owner or 'flow or link'}"
        )
        verb = "has no" if owner and owner not in _ALL else "has"
        hint = near(key, known)
        raise UnknownName(
            f"axis {name!r} of the grid: {whose} {verb} {key!r}; "
            f"{hint}{'' if hint[-1] == '?' else '.'} It may be {', '.join(known)}"
        )
    if len(found) > 1:
        raise InvalidInput(
            f"axis {name!r} of the grid: flows and links both have it; say flows.{key} or "
            f"links.{key}"
        )
    return found[0]


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


def _names(net: Network, owners: tuple[str, ...], flow: bool) -> set[str]:
    """What can be set of them."""
    names: set[str] = set()
    for owner in owners:
        law = (net.flows if flow else net.links)[owner].law
        names |= {*(_FLOW if flow else _LINK), "law", *(["count", "rtt"] if flow else [])}
        names |= {plain(p) for p in law.params} | {f"initial.{plain(z)}" for z in law.states}
    return names


def _of(specs: Mapping[str, Any], owners: tuple[str, ...], key: str, flow: bool) -> Target | None:
    """The target among these owners, of those that have it."""

    def make(kind: str, unit: str | None, who: tuple[str, ...]) -> Target:
        return Target(kind, key, unit, who if flow else (), () if flow else who)

    arguments = _FLOW if flow else _LINK
    if not owners:
        return None
    if key in arguments:
        return make("argument", arguments[key], owners)
    if key == "law":
        return make("law", None, owners)
    if key == "rtt" and flow:
        return make("trip", "s", owners)
    if key == "count" and flow:
        return make("count", "count", owners)
    units: dict[str, str] = {}
    for owner in owners:
        law = specs[owner].law
        if key.startswith("initial."):
            own = {plain(z): str(law.units.get(z, "1")) for z in law.states}
            if not flow and law.queue is not None:
                own |= {"q": "s", "backlog": "bit"}
            unit = own.get(key.removeprefix("initial."))
        else:
            unit = {plain(p): str(law.units.get(p, "1")) for p in law.params}.get(key)
        if unit is not None:
            units[owner] = unit
    if not units:
        return None
    if len(set(units.values())) > 1:
        raise InvalidInput(
            f"axis {key!r} of the grid has different units in {', '.join(units)}; name one owner "
            "of it"
        )
    kind = "initial" if key.startswith("initial.") else "parameter"
    return make(kind, next(iter(units.values())), tuple(units))


def between(law: Law) -> list[set[str]]:
    """Names of the parameters of a law whose values must fit one another."""
    return [{plain(s) for s in relation.free_symbols} for relation in law.where]


def on_copies(target: Target, before: Network, net: Network) -> Target:
    """What an axis of a network changes where some of its flows are there several times, or not at
    all.
    """

    mine = set(target.flows)

    def origin(flow: str) -> str:
        name, _, number = flow.rpartition("_")
        return name if number.isdigit() and flow not in before.flows else flow

    return replace(target, flows=tuple(f for f in net.flows if f in mine or origin(f) in mine))


# --- changed copies -------------------------------------------------------------------------------


def changed(net: Network, targets: Mapping[str, Target], values: Mapping[str, Any]) -> Network:
    """A copy of the network with the values of a point put in.

    Raises
    ------
    InvalidInput
        If a value is not one that its place can take.
    """
    pairs = [(target, values[axis]) for axis, target in targets.items()]
    new: dict[tuple[str, str], dict[str, Any]] = {}
    # A law first, then its parameters.
    for target, value in sorted(pairs, key=lambda pair: pair[0].kind != "law"):
        for kind, names in (("link", target.links), ("flow", target.flows)):
            for name in names:
                _collect(new.setdefault((kind, name), {}), net, kind, name, target, value)
    for (kind, name), changes in sorted(new.items(), key=lambda one: one[0][0] == "flow"):
        if changes:
            net = getattr(net, f"with_{kind}")(name, **changes)
    for target, value in reversed(pairs):
        if target.kind == "rtt":
            net = _with_rtt(net, value)
        elif target.kind == "trip":
            net = _with_trips(net, target.flows, value)
    for target, value in pairs:
        if target.kind == "count":
            net = _with_copies(net, target.flows, value)
    return net


@lru_cache(maxsize=4096)
def _with_parameter(law: Law, key: str, value: float) -> Law:
    """The law with that value: points share their laws, since checking a law takes milliseconds."""
    return law(**{key: value})


def _collect(
    new: dict[str, Any], net: Network, kind: str, name: str, target: Target, value: Any
) -> None:
    """Add to the changed arguments of a flow or link."""
    if target.kind in ("argument", "law"):
        new[target.key] = value
    elif target.kind == "seconds":
        new[target.key] = f"{value!r} s"
    elif target.kind == "parameter":
        law = new.get("law", getattr(net, f"{kind}s")[name].law)
        new["law"] = _with_parameter(law, target.key, value)
    elif target.kind == "initial":
        state = target.key.removeprefix("initial.")
        given = new.get("initial", net.given(kind, name)["initial"]) or {}
        clash = ("q", "backlog") if state in ("q", "backlog") else ()
        new["initial"] = {**{k: v for k, v in given.items() if k not in clash}, state: value}


def _with_rtt(net: Network, rtt: float) -> Network:
    """All propagation delays in proportion, so that every flow's round trip takes `rtt`."""
    now = {net.base_rtt(f) for f in net.flows}
    if len(now) != 1 or not min(now) > 0:
        raise InvalidInput(
            "axis 'rtt' of the grid: the flows' round-trip propagation times differ or are 0; "
            f"sweep that of one flow, such as '{next(iter(net.flows))}.rtt', or delay, or give a "
            "function that builds the network"
        )
    factor = rtt / now.pop()
    for name, link in net.links.items():
        net = net.with_link(name, delay=factor * link.delay)
    changes = {}
    for name, flow in net.flows.items():
        back = None if flow.return_delay is None else factor * flow.return_delay
        changes[name] = {"access_delay": factor * flow.access_delay, "return_delay": back}
    return net.with_flows(changes)


def _with_trips(net: Network, flows: tuple[str, ...], rtt: float) -> Network:
    """Return delays such that the round trip of these flows takes `rtt` without queues."""
    changes = {}
    for name in flows:
        back = rtt - net.propagation_delay(name)
        if back < 0:
            raise InvalidInput(
                f"rtt of flow {name!r} is {rtt:g} s, and its way there alone takes "
                f"{net.propagation_delay(name):g} s; give more, or shorten its links"
            )
        changes[name] = {"return_delay": back}
    return net.with_flows(changes)


def _with_copies(net: Network, flows: tuple[str, ...], count: int) -> Network:
    for name in flows:
        given = net.given("flow", name)
        if count == 0:
            net = net.without_flow(name)
        for k in range(2, count + 1):
            net = (net.copy() if k == 2 else net).flow(f"{name}_{k}", **given)
    return net
