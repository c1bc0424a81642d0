"""Ready networks: the dumbbell and the parking lot of the literature."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fluidcc.base.arguments import explained, mapping, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.laws.law import Source
from fluidcc.network.network import Network
from fluidcc.network.patterns import ask_for_units, in_seconds, is_list, near, quantity

Flows = Mapping[str, Any] | Iterable[Any]
NONE: Mapping[str, Any] = {}


@explained
def dumbbell(flows: Flows, link: Mapping[str, Any], rtt: Any = None) -> Network:
    """Return a network of flows that share one link.

    Parameters
    ----------
    flows : mapping or sequence
        A law for each flow, by name; in a sequence they are named flow1, flow2, ... In place of a
        law, a mapping ``{"law": law, "start": 2, ...}`` with arguments of `Network.flow`.
    link : mapping
        Arguments of `Network.link`; the law is ``DropTail`` and the name ``"bottleneck"`` unless
        given.
    rtt : float, str, or one for each flow, optional
        Round-trip propagation time [s]. The link's delay is then half of the smallest unless given,
        and what is missing to each flow's is its access delay; the way back takes as long as the
        way forward unless given.

    Raises
    ------
    InvalidInput
        If an rtt is too short for the link's delay, or what `Network` refuses.

    Examples
    --------
    >>> import fluidcc as fc
    >>> link = dict(capacity="3 Mbit/s", buffer="100 packets")
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], link, rtt=["50 ms", "80 ms"])
    >>> net.links["bottleneck"].delay, net.flows["flow2"].access_delay, net.base_rtt("flow2")
    (0.025, 0.015, 0.08)
    """
    named = _named(flows, "flow")
    rtts = _rtts(rtt, list(named))
    forward = {}
    for name, total in rtts.items():
        back = named[name].get("return_delay")
        back = total / 2 if back is None else quantity(back, "s", f"return_delay of flow {name!r}")
        forward[name] = total - back
    delay = {"delay": in_seconds(max(min(forward.values()), 0.0))} if forward else {}
    net = _with_link(Network(), "bottleneck", link, delay)
    (route,) = net.link_names
    for name, given in named.items():
        extra = {}
        if name in forward:
            if "access_delay" in given:
                raise InvalidInput(
                    f"access_delay of flow {name!r} follows from rtt; leave one of the two out"
                )
            access = forward[name] - net.links[route].delay
            if access < -1e-12:
                raise InvalidInput(
                    f"rtt of flow {name!r} is {rtts[name]:g} s, shorter than its return delay of "
                    f"{rtts[name] - forward[name]:g} s and the link's delay of "
                    f"{net.links[route].delay:g} s together; make it longer, or these shorter"
                )
            extra["access_delay"] = in_seconds(max(access, 0.0))
            extra["return_delay"] = in_seconds(rtts[name] - forward[name])
        net.flow(name, **{**given, **extra, "route": [route]})
    return net


@explained
def parking_lot(
    long: Flows, cross: Sequence[Any], link: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> Network:
    """Return a network of links in a row: some flows cross all of them, others one each.

    Parameters
    ----------
    long : mapping or sequence
        The flows that cross every link, as in `dumbbell`; in a sequence they are named long1,
        long2, ...
    cross : sequence
        The flows of each link alone: a law, or a mapping or sequence as in `dumbbell`; without
        names they are cross1, cross2, ... in order. Its length is the number of links; ``[]`` is a
        link without such a flow.
    link : mapping, or a sequence of one for each link
        Arguments of `Network.link`; the law is ``DropTail`` and the names link1, link2, ... unless
        given.

    Examples
    --------
    >>> import fluidcc as fc
    >>> link = dict(capacity="2.5 Mbit/s", delay="25 ms")
    >>> net = fc.parking_lot([fc.LDCC], [fc.LDCC, fc.LDCC], link)
    >>> {name: flow.route for name, flow in net.flows.items()}
    {'long1': ('link1', 'link2'), 'cross1': ('link1',), 'cross2': ('link2',)}
    """
    if not is_list(cross) or not len(cross):
        raise InvalidInput(f"cross is {shown(cross)}; give a sequence with the flows of each link")
    if not isinstance(link, Mapping) and not is_list(link):
        raise InvalidInput(
            f"link is {shown(link)}; give arguments such as {{'capacity': '3 Mbit/s'}}, or one "
            f"for each link"
        )
    each = [link] * len(cross) if isinstance(link, Mapping) else list(link)
    if len(each) != len(cross):
        raise InvalidInput(
            f"link has {len(each)} entries and cross {len(cross)}; give one of each for each link"
        )
    net = Network()
    for i, arguments in enumerate(each):
        _with_link(net, f"link{i + 1}", arguments)
    for name, given in _named(long, "long").items():
        net.flow(name, **given, route=net.link_names)
    count = 0
    for hop, flows in zip(net.link_names, cross, strict=True):
        several = (
            flows
            if is_list(flows) or (isinstance(flows, Mapping) and "law" not in flows)
            else [flows]
        )
        named = _named(several, "cross", first=count + 1)
        count += len(named)
        for name, given in named.items():
            net.flow(name, **given, route=[hop])
    return net


@explained
def two_queues(
    udp: Flows, tcp: Flows, udp_link: Mapping[str, Any], tcp_link: Mapping[str, Any]
) -> Network:
    """Return the network of a router with a queue for UDP and one for TCP, equation (7) of the ECF
    paper.

    The scheduler gives each queue the part of the capacity that its flows are of all flows that are
    on, to UDP c N_udp/(N_udp + N_tcp); a queue without flows leaves all to the other. What the
    flows of a queue leave unused is not lent to the other: (7) takes this part for the capacity,
    and the paper tells of no other rule.

    Parameters
    ----------
    udp, tcp : mapping or sequence
        The flows of each queue, as in `dumbbell`; in a sequence they are named udp1, ... and tcp1,
        ...
    udp_link, tcp_link : mapping
        Arguments of `Network.link`; the capacity is that of the router, given for one of them or
        the same for both. The law is ``DropTail`` unless given, the names are "udp" and "tcp".

    Raises
    ------
    InvalidInput
        If no capacity is given, or two different ones, or one that changes.

    Examples
    --------
    >>> import fluidcc as fc
    >>> flows = [fc.Reno, {"law": fc.Reno, "start": 5}]
    >>> net = fc.two_queues([fc.CBR], flows, dict(capacity="30 Mbit/s"), {})
    >>> net.links["udp"].capacity, net.links["udp"].schedule
    (15000000.0, ((5.0, 10000000.0),))
    """
    right = "arguments of Network.link, such as {'capacity': '3 Mbit/s'}"
    links = mapping(udp_link, "udp_link", right), mapping(tcp_link, "tcp_link", right)
    given = {
        quantity(link["capacity"], "bit/s", "capacity", positive=True)
        for link in links
        if "capacity" in link
    }
    if len(given) != 1:
        raise InvalidInput(
            f"the router has {len(given)} capacities; give one, for either queue or the same for "
            f"both"
        )
    named = {"udp": _named(udp, "udp"), "tcp": _named(tcp, "tcp")}
    net = Network()
    for queue, link in (("udp", udp_link), ("tcp", tcp_link)):
        _with_link(net, queue, {**link, "capacity": given.copy().pop()})
        for name, arguments in named[queue].items():
            net.flow(name, **{**arguments, "route": [queue]})
    capacity = given.pop()
    for queue, other in (("udp", "tcp"), ("tcp", "udp")):
        net = net.with_link(queue, capacity=_shares(net, named[queue], named[other], capacity))
    return net


def _shares(
    net: Network, mine: Iterable[str], others: Iterable[str], capacity: float
) -> list[tuple[float, float]]:
    """Return what a queue has of the capacity: pairs of time and rate."""
    on = [[net.flows[name].intervals for name in names] for names in (mine, others)]
    times = {0.0} | {
        t for flows in on for flow in flows for pair in flow for t in pair if 0.0 < t < math.inf
    }
    pairs: list[tuple[float, float]] = []
    for time in sorted(times):
        here, there = (sum(any(a <= time < b for a, b in flow) for flow in flows) for flows in on)
        # a queue without flows keeps a millionth, as a link must have some capacity
        share = here / (here + there) if here else (1e-6 if there else 1.0)
        if not pairs or pairs[-1][1] != share * capacity:
            pairs.append((time, share * capacity))
    return pairs


def _with_link(
    net: Network, name: str, arguments: Mapping[str, Any], defaults: Mapping[str, Any] = NONE
) -> Network:
    from fluidcc.links import DropTail

    if not isinstance(arguments, Mapping):
        raise InvalidInput(
            f"link is {shown(arguments)}; give arguments such as {{'capacity': '3 Mbit/s', "
            f"'delay': '25 ms'}}"
        )
    known = ("name", "law", "capacity", "delay", "buffer", "initial", "packet", "loss",
             "stamp")  # fmt: skip
    for key in arguments:
        if key not in known:
            raise InvalidInput(f"link {name!r} has no argument {key!r}; {near(str(key), known)}")
    if "capacity" not in arguments:
        raise InvalidInput(f"link {name!r} lacks its capacity; give a rate, such as '3 Mbit/s'")
    return net.link(**{"name": name, "law": DropTail, **defaults, **arguments})


def _named(flows: Flows, stem: str, first: int = 1) -> dict[str, dict[str, Any]]:
    """Return the arguments of `Network.flow` by name."""
    if not isinstance(flows, Mapping | Iterable) or isinstance(flows, str):
        raise InvalidInput(f"flows is {shown(flows)}; give laws in a list, or by name in a dict")
    pairs = (
        flows.items()
        if isinstance(flows, Mapping)
        else ((f"{stem}{i}", f) for i, f in enumerate(flows, first))
    )
    named = {}
    for name, given in pairs:
        if not isinstance(given, Source) and not (isinstance(given, Mapping) and "law" in given):
            raise InvalidInput(
                f"flow {name!r} is {shown(given)}; give a source law, or a mapping with its 'law'"
            )
        if not isinstance(given, Source) and "route" in given:
            raise InvalidInput(f"route of flow {name!r} follows from the topology; leave it out")
        named[name] = {"law": given} if isinstance(given, Source) else dict(given)
    return named


def _rtts(rtt: Any, names: list[str]) -> dict[str, float]:
    """Return the round-trip time [s] of each flow, or of none."""
    if rtt is None:
        return {}
    if isinstance(rtt, Mapping):
        if {*rtt} != {*names}:
            raise InvalidInput(
                f"rtt is given for {', '.join(rtt) or 'none'}; give one for each of "
                f"{', '.join(names)}"
            )
        values = [rtt[name] for name in names]
    else:
        values = list(rtt) if is_list(rtt) else [rtt] * len(names)
    if len(values) != len(names):
        raise InvalidInput(
            f"rtt has {len(values)} entries for {len(names)} flows; give one, or one for each"
        )
    found = {n: quantity(v, "s", f"rtt of flow {n!r}") for n, v in zip(names, values, strict=True)}
    for value in dict.fromkeys(values):
        ask_for_units({"rtt": value}, stacklevel=5)
    return found
