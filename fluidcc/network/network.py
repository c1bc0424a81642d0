"""The interconnection, as data: links, flows, and how they are placed. Nothing is solved here."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Container,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    ValuesView,
)
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import choice, explained_class, mapping, shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.units import to_si
from fluidcc.laws.law import Link, Source
from fluidcc.network.patterns import NotThere, ask_for_units, near
from fluidcc.network.specs import PACKET, FlowSpec, LinkSpec, flow_spec, link_spec

T = TypeVar("T")


class ByName(Mapping[str, T]):
    """A dictionary as others may see it: to read, and to complete its keys in Jupyter."""

    def __init__(self, content: dict[str, T], kind: str) -> None:
        self._content, self._kind = content, kind

    def __getitem__(self, name: str) -> T:
        try:
            return self._content[name]
        except KeyError:
            raise NotThere(
                f"the network has no {self._kind} {shown(name)}; {near(str(name), self)}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._content

    def get(self, name: str, default: Any = None) -> Any:
        return self._content.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def items(self) -> ItemsView[str, T]:  # Mapping's own take ten times as long
        return self._content.items()

    def values(self) -> ValuesView[T]:
        return self._content.values()

    def __repr__(self) -> str:
        return repr(self._content)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._content)


@explained_class
class Network:
    """Links and the flows that cross them.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network()
    >>> net = net.link("l", fc.DropTail, capacity="3 Mbit/s", delay="25 ms", buffer="100 packets")
    >>> net = net.flow("a", fc.LDCC, route=["l"])
    >>> net.flow("udp", fc.CBR(rate="500 kbit/s"), route=["l"], start=2)
    Network(links: l; flows: a, udp)
    >>> net.base_rtt("a"), net.links["l"].buffer
    (0.05, 800000.0)
    """

    def __init__(self) -> None:
        self._links: dict[str, LinkSpec] = {}
        self._flows: dict[str, FlowSpec] = {}
        # As they were given: a changed copy is built anew from these, so that a buffer of "0.5 s"
        # follows its capacity.
        self._given: dict[tuple[str, str], dict[str, Any]] = {}
        self._derived: dict[tuple[Any, ...], Any] = {}

    # --- building ---------------------------------------------------------------------------------

    def link(
        self,
        name: str,
        law: Link,
        *,
        capacity: Any,
        delay: Any = 0.0,
        buffer: Any = None,
        initial: Mapping[str, Any] | None = None,
        packet: Any = PACKET,
        loss: Any = None,
        stamp: Any = "arrival",
    ) -> Self:
        """Add a link: its queue, followed by its propagation delay.

        Parameters
        ----------
        name : str
            Its name.
        law : Link
            Such as ``fluidcc.DropTail``.
        capacity : float, str or list of pairs
            Capacity [bit/s]; text may be in packets/s. Or ``[(0, "3 Mbit/s"), (10, "2 Mbit/s")]``
            where it changes at given times [s]; `fluidcc.read_trace` returns such pairs. A capacity
            of 0 for a while is an outage: the queue grows, and next to nothing leaves (a
            ten-thousandth of the largest capacity, so that delays are finite). Of the ready links
            DropTail takes outages.
        delay : float or str
            One-way propagation delay [s].
        buffer : float or str, optional
            Buffer [bit]; text may be in packets, or in seconds of queueing delay at the first
            capacity that is not 0. None is infinite.
        initial : mapping, optional
            Initial states by name; a queue also as ``"q"`` [s] or ``"backlog"`` [bit]. Default: the
            law's.
        packet : float or str
            Packet size [bit] by which a capacity and a buffer in packets are read.
        loss : float or str, optional
            Share of packets that are lost at random before the queue, as on a wireless link, such
            as ``"0.1 %"``: from then on a parameter of the link's law.
        stamp : {"arrival", "departure"}
            Where data are marked: as they enter the queue, by the queue of then, or as they leave
            it, by the queue that is left behind. That is heard a queueing delay earlier. AQMs that
            decide on departure by the age of the packet that leaves (CoDel, DualPI2) mark by the
            queue that it found on entry, which is ``"arrival"``.

        Returns
        -------
        Network
            This network, so that calls can be chained.

        Raises
        ------
        InvalidInput
            `UnitsError` and `UnknownName` among it: the message names the link, the value and what
            would be right.
        """
        self._new("link", name)
        given = {
            "law": law,
            "capacity": capacity,
            "delay": delay,
            "buffer": buffer,
            "initial": initial,
            "packet": packet,
            "loss": loss,
            "stamp": stamp,
        }
        self._links[name] = link_spec(name, **given)
        self._given["link", name] = given
        self._ask_for_units("link", name, given, 5)
        return self

    def flow(
        self,
        name: str,
        law: Source,
        *,
        route: Sequence[str],
        start: Any = None,
        stop: Any = None,
        access_delay: Any = 0.0,
        return_delay: Any = None,
        packet: Any = PACKET,
        initial: Mapping[str, Any] | None = None,
        pattern: Any = None,
        ecn: Any = True,
    ) -> Self:
        """Add a flow along links that are there already.

        Parameters
        ----------
        name : str
            Its name.
        law : Source
            Such as ``fluidcc.LDCC`` or ``fluidcc.LDCC(beta=0.2)``.
        route : sequence of str
            Names of the links, in order.
        start, stop : float, str or list of these, optional
            When it is on [s]; lists of equal length for a flow that starts and stops more than
            once. Default: on for all times. Ack-clocked flows start at time 0 with nothing in
            flight.
        access_delay : float or str
            Propagation delay from the source to the queue of its first link [s].
        return_delay : float or str, optional
            Delay of the way back, e_b [s]. Default: the propagation delay of the way forward.
        packet : float or str
            Packet size [bit].
        initial : mapping, optional
            Initial states by name, numbers in SI units or text. Default: the law's.
        pattern : list of pairs or mapping, optional
            For sources without states (CBR), in place of their rate: ``[(0, "1 Mbit/s"), (5, 0)]``;
            ``{"kind": "on_off_pareto", "peak": "5 Mbit/s", "mean_on": 0.1, "mean_off": 0.1,
            "shape": 1.25}`` or ``{"kind": "poisson", "mean_rate": "1 Mbit/s", "interval": "10
            ms"}``, drawn by the simulation's seed.
        ecn : bool
            Whether it can be marked. Of a flow that cannot, links drop before their queue what they
            would mark: it hears that as loss.

        Returns
        -------
        Network
            This network, so that calls can be chained.

        Raises
        ------
        InvalidInput
            `UnitsError` and `UnknownName` among it: the message names the flow, the value and what
            would be right.
        """
        self._new("flow", name)
        given = {
            "law": law, "route": route, "start": start, "stop": stop, "access_delay": access_delay,
            "return_delay": return_delay, "packet": packet, "initial": initial, "pattern": pattern,
            "ecn": ecn,
        }  # fmt: skip
        self._flows[name] = flow_spec(name, links=self._links, **given)
        self._given["flow", name] = given
        self._ask_for_units("flow", name, given, 5)
        return self

    # --- changed copies ---------------------------------------------------------------------------

    def with_link(self, name: str, **changes: Any) -> Self:
        """Return a copy in which the arguments `changes` of `link` are others, the rest as they
        were given.

        Examples
        --------
        >>> import fluidcc as fc
        >>> net = fc.Network().link("l", fc.DropTail, capacity=2e6, buffer="0.5 s")
        >>> net.with_link("l", capacity=4e6).links["l"].buffer
        2000000.0
        """
        return self._changed("link", {self._known("link", name)[1]: changes})

    def with_flow(self, name: str, **changes: Any) -> Self:
        """Return a copy in which the arguments `changes` of `flow` are others, the rest as they
        were given.

        With a law of other states, give their `initial` too, or ``initial=None`` for that law's
        own. To change many flows, `with_flows` makes one copy.
        """
        return self._changed("flow", {self._known("flow", name)[1]: changes})

    def with_flows(self, changes: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return a copy in which several flows are changed, each as by `with_flow`.

        Parameters
        ----------
        changes : mapping of str to mapping
            Changed arguments of `flow`, by the flow's name.

        Examples
        --------
        >>> import fluidcc as fc
        >>> net = fc.dumbbell([fc.LDCC] * 2, {"capacity": 2e6}, rtt="50 ms")
        >>> later = net.with_flows({name: {"start": 3} for name in net.flows})
        >>> later.flows["flow2"].intervals
        ((3.0, inf),)
        """
        return self._changed("flow", changes)

    def without_flow(self, name: str) -> Self:
        """Return a copy without that flow."""
        self._known("flow", name)
        return self.only(other for other in self._flows if other != name)

    def only(self, flows: Iterable[str]) -> Self:
        """Return a copy with these flows alone, in this order."""
        if isinstance(flows, str) or not isinstance(flows, Iterable):
            raise InvalidInput(
                f"the flows of only() are {shown(flows)}; give their names in a list"
            )
        keys = [self._known("flow", name) for name in flows]
        new = type(self)()
        new._links = self._links.copy()
        new._flows = {name: self._flows[name] for _, name in keys}
        keys += [("link", name) for name in self._links]
        new._given = {key: self._given[key] for key in keys}
        return new

    def given(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return the arguments with which the ``"link"`` or ``"flow"`` of that name was added, as
        they were given.
        """
        return MappingProxyType(self._given[self._known(kind, name)])

    def copy(self) -> Self:
        """Return an independent copy."""
        new = type(self)()
        new._links, new._flows = self._links.copy(), self._flows.copy()
        new._given = self._given.copy()
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def _changed(self, kind: str, changes: Mapping[str, Mapping[str, Any]]) -> Self:
        new = self.with_all(kind, changes)
        for name, arguments in changes.items():
            new._ask_for_units(kind, name, arguments, 6)
        return new

    def _ask_for_units(
        self, kind: str, name: str, given: Mapping[str, Any], stacklevel: int
    ) -> None:
        keys = ("capacity", "delay", "buffer", "access_delay", "return_delay", "packet")
        size = to_si(self._given[kind, name]["packet"], "bit/packet")
        numbers = {key: given[key] for key in keys if key in given}
        ask_for_units(numbers, f"{kind} {name!r}", size, stacklevel)

    def with_all(self, kind: str, changes: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return a copy in which the arguments of links or flows are others, by name: numbers
        that were worked out, of whose size nobody is warned.
        """
        new = self.copy()
        moved = []  # flows that change
        mapping(changes, "the changes", f"arguments by the name of their {kind}")
        for name, arguments in changes.items():
            mapping(arguments, f"the changes of {kind} {name!r}", f"arguments of {kind}() by name")
            given = self._given[self._known(kind, name)]
            for key in arguments:
                if key not in given:
                    raise UnknownName(
                        f"{key} of {kind} {name!r} cannot be changed, there is no such argument; "
                        f"{near(key, given)}"
                    )
            new._given[kind, name] = {**given, **arguments}
            if kind == "flow":
                moved.append(name)
                continue
            new._links[name] = link_spec(name, **new._given[kind, name])
            if "delay" in arguments:
                # Flows' initial states may depend on return delays, and those on links' delays.
                moved += [flow for flow, spec in self._flows.items() if name in spec.route]
        for flow in dict.fromkeys(moved):
            new._flows[flow] = flow_spec(flow, links=new._links, **new._given["flow", flow])
        return new

    def _new(self, kind: str, name: str) -> None:
        if not isinstance(name, str) or not name or name != " ".join(name.split()):
            raise InvalidInput(
                f"name of a {kind} is {shown(name)}; give text in a line, without blanks around it"
            )
        self._derived.clear()
        if name in (self._links if kind == "link" else self._flows):
            raise InvalidInput(
                f"name of {kind} {name!r} is taken; give another, or change that {kind} by "
                f"with_{kind}()"
            )

    def _known(self, kind: str, name: str) -> tuple[str, str]:
        names = self._links if choice(kind, "kind", ("link", "flow")) == "link" else self._flows
        if not isinstance(name, str) or name not in names:
            raise UnknownName(f"the network has no {kind} {shown(name)}; {near(str(name), names)}")
        return kind, name

    # --- reading ----------------------------------------------------------------------------------

    # Jupyter completes what follows an attribute, but does not run a property for that.

    @cached_property
    def links(self) -> Mapping[str, LinkSpec]:
        """The links by name, in order."""
        return ByName(self._links, "link")

    @cached_property
    def flows(self) -> Mapping[str, FlowSpec]:
        """The flows by name, in order."""
        return ByName(self._flows, "flow")

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the links, in order."""
        return tuple(self._links)

    @property
    def flow_names(self) -> tuple[str, ...]:
        """Names of the flows, in order."""
        return tuple(self._flows)

    def routing_matrix(self) -> NDArray[np.floating]:
        """Return R of equation (1) of the LDCC paper, shape (links, flows): 1 where the flow
        crosses the link, else 0.
        """
        row = {name: i for i, name in enumerate(self._links)}
        R = np.zeros((len(self._links), len(self._flows)))
        for j, flow in enumerate(self._flows.values()):
            R[[row[name] for name in flow.route], j] = 1.0
        return R

    def propagation_delay(self, flow: str) -> float:
        """Return the one-way propagation delay of a flow, access included [s]."""
        self._known("flow", flow)
        spec = self._flows[flow]
        return spec.access_delay + sum(self._links[name].delay for name in spec.route)

    def return_delay(self, flow: str) -> float:
        """Return the delay of a flow's way back, e_b [s]: as given, else its forward propagation
        delay.
        """
        self._known("flow", flow)
        given = self._flows[flow].return_delay
        return self.propagation_delay(flow) if given is None else given

    def base_rtt(self, flow: str) -> float:
        """Return the round-trip time of a flow through empty queues [s]."""
        return self.propagation_delay(flow) + self.return_delay(flow)

    def derived(self, make: Callable[..., T], *about: Any) -> T:
        """Return what `make` finds of this network and some arguments: worked out once, and kept
        until a link or flow is added.
        """
        key = (make, *about)
        if key not in self._derived:
            self._derived[key] = make(self, *about)
        return self._derived[key]

    # --- identity ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        mine, theirs = ([*n._links.values(), *n._flows.values()] for n in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # it grows by link() and flow()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_derived": {}}

    def __repr__(self) -> str:
        def some(names: tuple[str, ...]) -> str:
            return (
                ", ".join(names[:8]) + (f", ... ({len(names)})" if len(names) > 8 else "") or "none"
            )

        return f"Network(links: {some(self.link_names)}; flows: {some(self.flow_names)})"

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        from fluidcc.network.drawing import png, topology

        return png(topology(self.links, self.flows))


def copy_name(name: str, k: int, taken: Container[str] = ()) -> str:
    """Return the name of copy `k` of a flow: no other may have it; the first has the flow's own."""
    if k > 1 and (copy := f"{name}_{k}") in taken:
        raise InvalidInput(
            f"copy {k} of flow {name!r} is called {copy!r}, as another flow is; rename one of both"
        )
    return copy if k > 1 else name


def require_network(net: Any) -> None:
    """Raise `InvalidInput` unless a value is a Network (a scenario has one).

    Raises
    ------
    InvalidInput
        Naming what was given, and what would be right.
    """
    if not isinstance(net, Network):
        inside = (
            ", its .net"
            if isinstance(getattr(net, "net", None), Network)
            else ", such as fluidcc.Network()"
        )
        raise InvalidInput(
            f"the network is {type(net).__name__} {str(net)[:40]!r}; give a Network{inside}"
        )


def require_flows(net: Any) -> None:
    """Raise `InvalidInput` unless a value is a Network with a flow."""
    require_network(net)
    if not net.flows:
        raise InvalidInput("the network has no flows; add one with .flow(name, law, route=[...])")


def identical(net: Network) -> tuple[tuple[str, ...], ...]:
    """Return the names of the flows of each kind: equal in law, route, on-periods, delays, packet,
    initial states, pattern and ECN.

    Kinds and their members are in the order of the network.
    """
    return net.derived(_identical)


def _identical(net: Network) -> tuple[tuple[str, ...], ...]:
    found: dict[Any, list[str]] = {}
    for name, f in net.flows.items():
        states = tuple(f.initial.items())
        delays = (f.access_delay, f.return_delay)
        kind = (f.law, f.route, f.intervals, delays, f.packet, states, f.pattern, f.ecn)
        found.setdefault(kind, []).append(name)
    return tuple(map(tuple, found.values()))
