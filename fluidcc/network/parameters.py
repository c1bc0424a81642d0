"""The numbers of a network that are set otherwise than in its specs, at one point or at many.

Sweeps, boundaries, sensitivities and continuations all change a network's numbers in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from sympy import Expr, Symbol, lambdify

from fluidcc.base.errors import FluidccError, InvalidInput, Unsupported
from fluidcc.base.units import Dimension, dimension_of, to_si
from fluidcc.laws import Law
from fluidcc.network.network import Network
from fluidcc.symbols import plain, symbols_of, unfold

ARGUMENTS = {
    "flow": ("access_delay", "return_delay", "packet"),
    "link": ("capacity", "delay", "buffer"),
}
POSITIVE = ("capacity", "buffer", "packet")  # delays may be 0
LATER = ("rtt", "trip")  # kinds that follow from delays, which other axes may set


@dataclass(frozen=True)
class Target:
    """A parameter that is moved: by an axis of a sweep, a boundary or a sensitivity.

    ``kind`` is argument, seconds (of a buffer), parameter, initial, law, count, rtt, trip (of
    single flows) or option.
    """

    kind: str
    key: str
    unit: str | None
    flows: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def structural(self) -> bool:
        """Whether it changes a law or the number of flows."""
        return self.kind in ("count", "law")

    @property
    def numeric(self) -> bool:
        """Whether it changes numbers of a network only, which `Parameters` can set."""
        return not self.structural and self.key not in ("start", "stop")

    @property
    def owners(self) -> list[tuple[str, str]]:
        """Kind and name of each flow and link of which something is set."""
        return [*(("flow", name) for name in self.flows), *(("link", name) for name in self.links)]

    def settings(self, value: Any) -> dict[tuple[str, str, str, str], Any]:
        """What `Parameters.set` has where this is `value`: one number, or one for each point."""
        key = self.key.removeprefix("initial.")
        return {(*owner, self.kind, key): value for owner in self.owners}

    def packet(self, net: Network) -> float | None:
        """Packet size [bit] by which values are read, where all that are set have the same."""
        sizes = {to_si(net.given("link", name)["packet"], "bit/packet") for name in self.links}
        return sizes.pop() if len(sizes) == 1 else None


@lru_cache(maxsize=4096)
def _with_values(law: Law, values: tuple[tuple[str, float], ...]) -> Law:
    """The law with those values: points share their laws, since checking a law takes
    milliseconds.
    """
    return law(**dict(values))


@lru_cache(maxsize=4096)
def _function(f: Expr) -> tuple[Callable[..., Any] | float, tuple[Symbol, ...]]:
    f = unfold(f)
    symbols = tuple(sorted(f.free_symbols, key=str))
    return lambdify(symbols, f, "numpy") if symbols else float(f), symbols


def evaluated(f: Any, known: Mapping[Symbol, Any]) -> Any:
    """Return what a formula comes to where its symbols have the values of `known`."""
    function, symbols = _function(f)
    return function(*(known[s] for s in symbols)) if callable(function) else function


class Parameters:
    """A network with some of its numbers set otherwise, each to a number or to one for each point.

    Parameters
    ----------
    net : Network
        As it was given.
    points : int
        How many points there are.

    Attributes
    ----------
    set : dict
        The values, by ("flow" or "link", its name, what, key). What is "argument" (of
        `Network.flow` or `Network.link`), "seconds" (of a buffer), "parameter" (of its law) or
        "initial" (of a state).
    """

    def __init__(self, net: Network, points: int = 1) -> None:
        self.net, self.points = net, points
        self.set: dict[tuple[str, str, str, str], Any] = {}
        self._refused: dict[int, FluidccError] = {}

    @classmethod
    def of(cls, net: Network, targets: Mapping[str, Target], values: Mapping[str, Any]) -> Self:
        """Set what some axes change, to their values in SI units, one for each point.

        Raises
        ------
        Unsupported
            If an axis changes more than numbers.
        InvalidInput
            If the values are not of one length, or round trips that are to be scaled differ.
        """
        given = {axis: np.asarray(values[axis], float) for axis in targets}
        sizes = {len(v) if v.ndim == 1 else -1 for v in given.values()}
        if len(sizes) > 1 or -1 in sizes:
            raise InvalidInput(
                "the values of the axes have different lengths; give one value an axis for each "
                "point"
            )
        new = cls(net, sizes.pop() if sizes else 1)
        for axis, target in sorted(targets.items(), key=lambda one: one[1].kind in LATER):
            if not target.numeric:
                raise Unsupported(
                    f"{target.key} changes more than numbers of the network: build its networks "
                    "one by one"
                )
            if target.kind == "rtt":
                new.scale(given[axis])
            elif target.kind == "trip":
                new._close(target.flows, given[axis])
            elif target.kind != "option":
                new.set |= target.settings(given[axis])
        return new

    def _close(self, flows: tuple[str, ...], rtt: Any) -> None:
        """Set return delays such that the round trip of these flows takes `rtt` without queues."""
        for name in flows:
            forward = self.flow(name)[1]
            back = rtt - forward
            self.set["flow", name, "argument", "return_delay"] = back
            for i in np.flatnonzero(back < 0).tolist():
                there = float(np.broadcast_to(forward, len(rtt))[i])
                self._refused[i] = InvalidInput(
                    f"rtt of flow {name!r} is {rtt[i]:g} s, and its way there alone takes "
                    f"{there:g} s; give more, or shorten its links"
                )

    def scale(self, rtt: Any) -> None:
        """Set all propagation delays in proportion, so that every flow's round trip takes `rtt`."""
        own = {name: self.flow(name) for name in self.net.flows}
        now = [forward + back for _, forward, back, _ in own.values()]
        if not now or any(np.any(trip != now[0]) for trip in now) or not np.all(now[0] > 0):
            raise InvalidInput(
                "axis 'rtt' of the grid: the flows' round-trip propagation times differ or are 0; "
                f"sweep that of one flow, such as '{next(iter(own), 'a')}.rtt', or delay, "
                "or give a function that builds the network"
            )
        factor = rtt / now[0]
        for name, link in self.net.links.items():
            delay = self.argument("link", name, "delay", link.delay)
            self.set["link", name, "argument", "delay"] = factor * delay
        for name, flow in self.net.flows.items():
            self.set["flow", name, "argument", "access_delay"] = factor * own[name][0]
            back = self.argument("flow", name, "return_delay", flow.return_delay)
            if back is not None:
                self.set["flow", name, "argument", "return_delay"] = factor * back

    # --- numbers ----------------------------------------------------------------------------------

    def touches(self, kind: str, name: str) -> bool:
        """Return whether anything of a flow or link is set."""
        return any(key[:2] == (kind, name) for key in self.set)

    def argument(self, kind: str, name: str, key: str, default: Any) -> Any:
        """Return an argument of a flow or link as it is set, else as the network has it."""
        return self.set.get((kind, name, "argument", key), default)

    def of_law(self, kind: str, name: str, law: Law) -> dict[Symbol, Any]:
        """Return the parameters of the law of a flow or link, by symbol."""
        given = self.set
        return {s: given.get((kind, name, "parameter", plain(s)), v) for s, v in law.params.items()}

    def link(self, name: str, capacity: float) -> tuple[Any, Any, Any]:
        """Return capacity [bit/s], delay [s] and longest queueing delay [s] of a link.

        A buffer given in seconds follows the capacity. `capacity` is what it has now, if not set.
        """
        link = self.net.links[name]
        set_to = self.argument("link", name, "capacity", None)
        size: Any = link.buffer
        text = self.net.given("link", name)["buffer"]
        seconds = self.set.get(("link", name, "seconds", "buffer"))
        if seconds is not None:
            size = seconds * (link.capacity if set_to is None else set_to)
        elif set_to is not None and isinstance(text, str) and dimension_of(text) == Dimension(s=1):
            size = to_si(text, "s", "buffer") * set_to
        c = capacity if set_to is None else set_to
        return (
            c,
            self.argument("link", name, "delay", link.delay),
            self.argument("link", name, "buffer", size) / c,
        )

    def flow(self, name: str) -> tuple[Any, Any, Any, Any]:
        """Return access, forward and return propagation delay [s] and packet [bit] of a flow."""
        flow, links = self.net.flows[name], self.net.links
        access = self.argument("flow", name, "access_delay", flow.access_delay)
        forward = access + sum(
            self.argument("link", l, "delay", links[l].delay) for l in flow.route
        )
        back = forward if flow.return_delay is None else flow.return_delay
        return (
            access,
            forward,
            self.argument("flow", name, "return_delay", back),
            self.argument("flow", name, "packet", flow.packet),
        )

    def initial(self, kind: str, name: str, z: Symbol, known: Mapping[Symbol, Any]) -> Any:
        """Return where a state starts; `known` is what its law may begin with."""
        key = (kind, name, "initial", plain(z))
        if key in self.set:
            return self.set[key]
        spec = getattr(self.net, f"{kind}s")[name]
        told = (self.net.given(kind, name)["initial"] or {}) if self.set else spec.initial
        if plain(z) not in told and z in spec.law.initial:
            others = symbols_of(spec.law.initial[z]) & {*spec.law.states}
            more = {v: self.initial(kind, name, v, known) for v in others}
            return evaluated(spec.law.initial[z], {**known, **more})
        return spec.initial[plain(z)]

    # --- points and their networks ----------------------------------------------------------------

    def part(self, rows: Sequence[int] | None = None) -> Parameters:
        """Return a copy, or one with some of the points."""
        new = Parameters(self.net, self.points if rows is None else len(rows))
        new.set = {k: v if rows is None or not np.ndim(v) else v[rows] for k, v in self.set.items()}
        return new

    def network(self, i: int = 0) -> Network:
        """Return the network of a point.

        Raises
        ------
        FluidccError
            If there is none with these values.
        """
        if i in self._refused:
            raise self._refused[i]
        changes: dict[str, dict[str, dict[str, Any]]] = {"link": {}, "flow": {}}
        for (kind, name, what, key), values in self.set.items():
            value = float(values[i]) if np.ndim(values) else values
            own = changes[kind].setdefault(name, {})
            if what in ("parameter", "initial"):
                own.setdefault(what, {})[key] = value
            else:
                own[key] = f"{value!r} s" if what == "seconds" else value
        new = self.net
        for kind, some in changes.items():
            for name, own in some.items():
                if "parameter" in own:
                    law = getattr(self.net, f"{kind}s")[name].law
                    values = own.pop("parameter")
                    own["law"] = _with_values(law, tuple(values.items()))
                    if self.net.given(kind, name).get("loss") is not None and "loss" in values:
                        own["loss"] = values["loss"]  # an argument too
                if "initial" in own:
                    own["initial"] = self._starts(kind, name, own["initial"])
        for kind, some in changes.items():
            new = new.with_all(kind, some) if some else new
        return new

    def _starts(self, kind: str, name: str, new: Mapping[str, Any]) -> dict[str, Any]:
        """The initial states as they were given, with new ones; a queue is given in one way."""
        given = self.net.given(kind, name)["initial"] or {}
        queue = {"q", "backlog"}
        clash = queue if queue & {*new} else set()
        return {**{k: v for k, v in given.items() if k not in clash}, **new}

    def errors(self) -> dict[int, FluidccError]:
        """Return why some points have no network, by point."""
        doubtful = np.zeros(self.points, bool)
        doubtful[list(self._refused)] = True
        for (kind, name, what, key), values in self.set.items():
            doubtful |= ~self._allowed(kind, name, what, key, values)
        found: dict[int, FluidccError] = {}
        for i in np.flatnonzero(doubtful).tolist():
            try:
                self.network(i)
            except FluidccError as error:
                found[i] = error
        return found

    def _allowed(self, kind: str, name: str, what: str, key: str, values: Any) -> Any:
        """Where values are surely such as the network takes; elsewhere it is asked."""
        fine = np.isfinite(values)
        if what in ("argument", "seconds"):
            fine = fine | (np.isposinf(values) & (key == "buffer"))
            return fine & (values > 0 if key in POSITIVE else values >= 0)
        law = getattr(self.net, f"{kind}s")[name].law
        if what == "initial":
            return fine & _within(law, key, values)
        symbol = next((p for p in law.params if plain(p) == key), None)
        if symbol is None:
            return fine & False
        if symbol.is_positive:
            fine &= values > 0
        elif symbol.is_nonnegative:
            fine &= values >= 0
        elif symbol in unfold(getattr(law, "utility", None) or 0).free_symbols:
            fine &= False  # whether the utility is concave is the law's to say
        fine &= values <= law.limits.get(symbol, np.inf)
        known = self.of_law(kind, name, law)
        for relation in law.where:
            if symbol in relation.free_symbols:
                fine &= evaluated(relation, known)
        return fine


def _within(law: Any, state: str, values: Any) -> Any:
    """Whether values of a state are surely within its law's bounds."""
    z = next((z for z in law.states if plain(z) == state), None)
    low, high = (side.get(z, end) for side, end in ((law.lower, -np.inf), (law.upper, np.inf)))
    if z is None or not all(getattr(end, "is_number", True) for end in (low, high)):
        return False
    return (
        (values >= float(low)) & (values <= float(high)) & (values > 0 if z.is_positive else True)
    )
