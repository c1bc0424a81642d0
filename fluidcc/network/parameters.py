"""The numbers of a network that are set otherwise than in its specs, at one point or at many.

Sweeps, boundaries, sensitivities and continuations all change a network's numbers in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np
from sympy import Expr, Symbol, lambdify

from fluidcc.base.errors import FluidccError, InvalidInput, Unsupported
from fluidcc.base.units import Dimension, dimension_of, to_si
from fluidcc.laws import Law
from fluidcc.network.network import Network
from fluidcc.symbols import plain, unfold

__all__ = ["Parameters", "Target", "evaluated"]

ARGUMENTS = {
    "flow": ("access_delay", "return_delay", "packet"),
    "link": ("capacity", "delay", "buffer"),
}
POSITIVE = ("capacity", "buffer", "packet")  # delays may be 0


class Target(Protocol):
    """What an axis sets, as `fluidcc.sweeps.targets.Target` says it."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def flows(self) -> tuple[str, ...]: ...
    @property
    def links(self) -> tuple[str, ...]: ...


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
        `Network.flow` or `Network.link`), "parameter" (of its law) or "initial" (of a state).
    """

    def __init__(self, net: Network, points: int = 1) -> None:
        self.net, self.points = net, points
        self.set: dict[tuple[str, str, str, str], Any] = {}

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
        for axis, target in targets.items():
            new._take(target, given[axis])
        return new

    def _take(self, target: Target, values: Any) -> None:
        if target.kind == "rtt":
            self._scale(values)
        for kind, names in (("flow", target.flows), ("link", target.links)):
            if not names or target.kind in ("option", "rtt"):
                continue
            known = target.kind in ("parameter", "initial") or target.key in ARGUMENTS[kind]
            if target.kind not in ("parameter", "initial", "argument") or not known:
                raise Unsupported(
                    f"{target.key} changes more than numbers of the network: build its networks "
                    "one by one"
                )
            for name in names:
                self.set[kind, name, target.kind, target.key.removeprefix("initial.")] = values

    def _scale(self, rtt: Any) -> None:
        """Set all propagation delays in proportion, so that every flow's round trip takes `rtt`."""
        now = {self.net.base_rtt(f) for f in self.net.flows}
        if len(now) != 1 or not min(now) > 0:
            raise InvalidInput(
                "axis 'rtt' of the grid: the flows' round-trip propagation times differ or are 0; "
                "sweep delay, access_delay or return_delay, or give a function that builds the "
                "network"
            )
        factor = rtt / now.pop()
        for name, link in self.net.links.items():
            self.set["link", name, "argument", "delay"] = factor * link.delay
        for name, flow in self.net.flows.items():
            self.set["flow", name, "argument", "access_delay"] = factor * flow.access_delay
            if flow.return_delay is not None:
                self.set["flow", name, "argument", "return_delay"] = factor * flow.return_delay

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
        if set_to is not None and isinstance(text, str) and dimension_of(text) == Dimension(s=1):
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

    # --- networks ---------------------------------------------------------------------------------

    def network(self, i: int = 0) -> Network:
        """Return the network of a point.

        Raises
        ------
        FluidccError
            If there is none with these values.
        """
        changes: dict[tuple[str, str], dict[str, Any]] = {}
        for (kind, name, what, key), values in self.set.items():
            value = float(values[i]) if np.ndim(values) else values
            own = changes.setdefault((kind, name), {})
            if what == "argument":
                own[key] = value
            else:
                own.setdefault(what, {})[key] = value
        new = self.net
        for (kind, name), own in sorted(changes.items(), key=lambda one: one[0][0] == "flow"):
            if "parameter" in own:
                own["law"] = getattr(self.net, f"{kind}s")[name].law(**own.pop("parameter"))
            if "initial" in own:
                own["initial"] = {**(self.net.given(kind, name)["initial"] or {}), **own["initial"]}
            new = getattr(new, f"with_{kind}")(name, **own)
        return new

    def errors(self) -> dict[int, FluidccError]:
        """Return why some points have no network, by point."""
        doubtful = np.zeros(self.points, bool)
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
        if what == "argument":
            fine = fine | (np.isposinf(values) & (key == "buffer"))
            return fine & (values > 0 if key in POSITIVE else values >= 0)
        law = getattr(self.net, f"{kind}s")[name].law
        if what == "initial":
            return fine & _within(law, key, values)
        symbol = next(p for p in law.params if plain(p) == key)
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
