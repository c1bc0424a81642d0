"""Equilibria of a network at many points at once: the same links, flows and laws, with other
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sympy import Expr, Symbol, lambdify

from fluidcc.base.errors import FluidccError, InvalidInput, Unsupported
from fluidcc.base.units import Dimension, dimension_of, to_si
from fluidcc.equilibria.assembly import PLACE_OF_A_FLOW, PLACE_OF_A_LINK, Assembled
from fluidcc.equilibria.equilibrium import least_windows, states_of, system_of, values_of
from fluidcc.equilibria.result import COLUMNS, Equilibrium
from fluidcc.laws.steady import FEW, few_packets
from fluidcc.laws.trackers import levels, shown_at_rest, trackers
from fluidcc.numerics.steady.search import Numbers
from fluidcc.symbols import c, e_b, packet, plain, q_max, unfold

if TYPE_CHECKING:
    from fluidcc.network import Network

__all__ = ["Columns", "Equilibria", "Place", "equilibria"]


_NUMBERS = {
    "flow": ("access_delay", "return_delay", "packet"),
    "link": ("capacity", "delay", "buffer"),
}
_LEAST = {
    "capacity": False,
    "buffer": False,
    "packet": False,
}  # these are positive, delays may be 0


class Place(Protocol):
    """What is set, as `fluidcc.sweeps.targets.Target` says it."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def flows(self) -> tuple[str, ...]: ...
    @property
    def links(self) -> tuple[str, ...]: ...


@lru_cache(maxsize=512)
def _function(f: Expr, symbols: tuple[Symbol, ...]) -> Callable[..., Any]:
    return lambdify(symbols, f, "numpy")


def _within(law: Any, state: str, values: Any) -> Any:
    """Whether values of a state are surely within its law's bounds."""
    z = next((z for z in law.states if plain(z) == state), None)
    ends = [law.lower.get(z, -np.inf), law.upper.get(z, np.inf)]
    if z is None or not all(getattr(end, "is_number", True) for end in ends):
        return False
    return (
        (values >= float(ends[0]))
        & (values <= float(ends[1]))
        & (values > 0 if z.is_positive else True)
    )


class Columns:
    """Values of every argument, parameter and initial state that some axis sets, and what follows
    from them.

    Parameters
    ----------
    system : Assembled
        The network at one point.
    net : Network
        The same as it was given, before sampled laws were replaced.
    targets, values : mapping
        As `fluidcc.equilibria.many.equilibria` takes them.
    """

    def __init__(
        self,
        system: Assembled,
        net: Network,
        targets: Mapping[str, Place],
        values: Mapping[str, Any],
    ) -> None:
        self.one, self.net = system, net
        given = {axis: np.asarray(values[axis], float) for axis in targets}
        sizes = {len(v) if v.ndim == 1 else -1 for v in given.values()}
        if len(sizes) > 1 or -1 in sizes:
            raise InvalidInput(
                "the values of the axes have different lengths; give one value an axis for each "
                "point"
            )
        self.points = sizes.pop() if sizes else 1
        self.set: dict[
            tuple[str, str, str, str], Any
        ] = {}  # ("flow" or "link", name, kind, key) -> values
        for axis, target in targets.items():
            self._take(target, given[axis])
        self.names = {"flow": list(net.flows), "link": list(net.links)}

    def _take(self, target: Place, values: Any) -> None:
        if target.kind == "option":
            return
        if target.kind == "rtt":
            self._scale(values)
            return
        for kind, names in (("flow", target.flows), ("link", target.links)):
            if not names:
                continue
            known = target.kind in ("parameter", "initial") or target.key in _NUMBERS[kind]
            if target.kind not in ("parameter", "initial", "argument") or not known:
                raise Unsupported(
                    f"{target.key} changes more than numbers of the network: build its networks "
                    f"one by one"
                )
            for name in names:
                self.set[kind, name, target.kind, target.key.removeprefix("initial.")] = values

    def _scale(self, rtt: Any) -> None:
        """All propagation delays in proportion, so that every flow's round trip takes `rtt`."""
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

    # --- points that no network can have ----------------------------------------------------------

    def errors(self) -> dict[int, FluidccError]:
        """Why some points have no network, by point."""
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
            return fine & (values > 0 if key in _LEAST else values >= 0)
        law = getattr(self.net, f"{kind}s")[name].law
        if what == "initial":
            return fine & _within(law, key, values)
        symbol = next(p for p in law.params if plain(p) == key)
        if symbol.is_positive:
            fine &= values > 0
        elif symbol.is_nonnegative:
            fine &= values >= 0
        elif law.utility is not None and symbol in unfold(law.utility).free_symbols:
            fine &= False  # whether the utility is concave is the law's to say
        fine &= values <= law.limits.get(symbol, np.inf)
        known = {p: self.set.get((kind, name, what, plain(p)), v) for p, v in law.params.items()}
        for relation in law.where:
            if symbol in relation.free_symbols:
                fine &= self._evaluated(relation, known)
        return fine

    def network(self, i: int) -> Network:
        """The network of a point; raises if it cannot be."""
        new = self.net
        for kind, specs in (("link", self.net.links), ("flow", self.net.flows)):
            for name, spec in specs.items():
                mine = {
                    (w, key): float(v[i])
                    for (k, n, w, key), v in self.set.items()
                    if (k, n) == (kind, name)
                }
                changes: dict[str, Any] = {
                    key: v for (what, key), v in mine.items() if what == "argument"
                }
                if params := {key: v for (what, key), v in mine.items() if what == "parameter"}:
                    changes["law"] = spec.law(**params)
                if initial := {key: v for (what, key), v in mine.items() if what == "initial"}:
                    changes["initial"] = {
                        **(self.net.given(kind, name)["initial"] or {}),
                        **initial,
                    }
                if changes:
                    new = getattr(new, f"with_{kind}")(name, **changes)
        return new

    # --- numbers ----------------------------------------------------------------------------------

    def system(self) -> Assembled:
        """The network at all points."""
        S, one = self.one.shape, self.one.numbers
        many = Numbers(*(np.repeat(a, self.points, axis=0) for a in one))
        self._links(many)
        self._flows(many)
        queue = slice(S.flows, S.flows + S.links)
        many.upper[:, queue] = np.where(S.queued, np.inf, 0.0)
        return replace(self.one, numbers=many)

    def _value(self, kind: str, name: str, key: str, default: Any) -> Any:
        return self.set.get((kind, name, "argument", key), default)

    def _links(self, N: Numbers) -> None:
        own = self.one.states[1]
        first = 0
        for l, (name, link) in enumerate(self.one.net.links.items()):
            given = self.net.given("link", name)
            N.c[:, l] = self._value("link", name, "capacity", N.c[:, l])
            buffer = given["buffer"]
            size: Any = link.buffer
            if isinstance(buffer, str) and dimension_of(buffer) == Dimension(
                s=1
            ):  # at the capacity of time 0
                size = to_si(buffer, "s", "buffer") * self._value(
                    "link", name, "capacity", link.capacity
                )
            N.q_max[:, l] = self._value("link", name, "buffer", size) / N.c[:, l]
            params = self._parameters("link", name, link.law, N.link_par, first + PLACE_OF_A_LINK)
            N.link_par[:, first], N.link_par[:, first + 1] = N.c[:, l], N.q_max[:, l]
            first += self.one.shape.link_par[l]
            self._states(
                "link", name, link, own[l], {**params, c: N.c[:, l], q_max: N.q_max[:, l]}, N
            )

    def _flows(self, N: Numbers) -> None:
        S, own, first = self.one.shape, self.one.states[0], 0
        delay = {
            name: self._value("link", name, "delay", link.delay)
            for name, link in self.net.links.items()
        }
        for r, (name, flow) in enumerate(self.one.net.flows.items()):
            base = self._value("flow", name, "access_delay", flow.access_delay) + sum(
                delay[l] for l in flow.route
            )
            back = self._value(
                "flow",
                name,
                "return_delay",
                base if flow.return_delay is None else flow.return_delay,
            )
            size = self._value("flow", name, "packet", flow.packet)
            N.base[:, r], N.trip[:, r] = base, base + back
            if S.flow_law[r] < 0:
                self._constant(r, name, flow, size, N)
                continue
            params = self._parameters("flow", name, flow.law, N.par, first + PLACE_OF_A_FLOW)
            N.par[:, first + 1], N.par[:, first + 2] = back, size
            constants = {
                e_b: N.trip[:, r] - N.base[:, r],
                packet: np.broadcast_to(size, self.points),
            }
            self._levels(
                name,
                flow.law,
                {**params, **constants},
                N.par[:, first + PLACE_OF_A_FLOW :],
                N.base[:, r],
            )
            first += S.flow_par[r]
            self._states("flow", name, flow, own[r], {**params, **constants}, N)

    def _constant(self, r: int, name: str, flow: Any, size: Any, N: Numbers) -> None:
        """The rate of a flow that listens to nothing, where its law gives it."""
        if flow.pattern is not None or not self._touched("flow", name) or not np.any(N.rate[:, r]):
            return
        known = {
            p: self.set.get(("flow", name, "parameter", plain(p)), v)
            for p, v in flow.law.params.items()
        }
        N.rate[:, r] = self._evaluated(flow.law.out["rate"], {**known, packet: size})

    def _touched(self, kind: str, name: str) -> bool:
        return any(key[:2] == (kind, name) for key in self.set)

    def _parameters(
        self, kind: str, name: str, law: Any, table: Any, first: int
    ) -> dict[Symbol, Any]:
        """Put the parameters of a law into its columns; they by symbol."""
        for i, p in enumerate(law.params):
            values = self.set.get((kind, name, "parameter", plain(p)))
            if values is not None:
                table[:, first + i] = values
        return {p: table[:, first + i] for i, p in enumerate(law.params)}

    def _levels(self, name: str, law: Any, known: dict[Symbol, Any], table: Any, base: Any) -> None:
        """Put in the levels of trackers, which follow from the path's delay and from what they
        show at first.
        """
        given = self.net.flows[name]
        for i, (level, z) in ((list(law.params).index(p), (p, z)) for p, z in levels(law).items()):
            if level in given.law.params:
                continue
            slope = self._evaluated(trackers(given.law)[z].delay, known)
            table[:, i] = self._initial("flow", name, given, z, known) - slope * base

    def _states(
        self, kind: str, name: str, spec: Any, own: list[int], known: dict[Symbol, Any], N: Numbers
    ) -> None:
        """Initial values and bounds of a law's states."""
        law = spec.law
        states = [z for z in law.states if z != getattr(law, "queue", None)]
        for z, i in zip(states, own, strict=True):
            N.initial[:, i] = self._initial(kind, name, spec, z, known)
        N.lower[:, own], N.upper[:, own] = self.bounds(law, states, known).transpose(0, 2, 1)

    def _initial(
        self, kind: str, name: str, spec: Any, z: Symbol, known: Mapping[Symbol, Any]
    ) -> Any:
        """Where a state starts: a number, or one a point."""
        key = (kind, name, "initial", plain(z))
        if key in self.set:
            return self.set[key]
        if plain(z) not in (self.net.given(kind, name)["initial"] or {}) and z in spec.law.initial:
            return self._evaluated(spec.law.initial[z], known)
        return spec.initial[plain(z)]

    def trackers(self, N: Numbers, rates: Any, delays: Any) -> dict[str, dict[str, Any]]:
        """What the trackers of each flow show at rest, at all points, from rates and one-way
        delays (points, flows).
        """
        found = {}
        for r, (name, flow) in enumerate(self.net.flows.items()):
            given = (
                (p, self.set.get(("flow", name, "parameter", plain(p)), v))
                for p, v in flow.law.params.items()
            )
            back = N.trip[:, r] - N.base[:, r]
            known = {
                **dict(given),
                e_b: back,
                packet: self._value("flow", name, "packet", flow.packet),
            }
            found[name] = shown_at_rest(
                flow.law, rates[:, r], delays[:, r], back, N.base[:, r],
                partial(self._initial, "flow", name, flow, known=known), partial(self._evaluated,
                known=known),
            )  # fmt: skip
        return found

    def bounds(self, law: Any, states: Sequence[Symbol], known: Mapping[Symbol, Any]) -> Any:
        """Lower and upper bounds of some states of a law, (2, states, points); infinite where there
        is none.

        Parameters
        ----------
        law : Law
        states : sequence of Symbol
        known : mapping
            The law's parameters and whatever else a bound may depend on, each a number or an array
            of the points.

        Raises
        ------
        Unsupported
            If a bound depends on anything else.
        """
        found = np.empty((2, len(states), self.points))
        found[0], found[1] = -np.inf, np.inf
        for side, table in zip((law.lower, law.upper), found, strict=True):
            for k, z in enumerate(states):
                if z in side:
                    if unfold(side[z]).free_symbols - known.keys():
                        raise Unsupported(
                            f"{law.name} bounds {plain(z)} by {side[z]}, which varies: simulate "
                            f"it instead"
                        )
                    table[k] = self._evaluated(side[z], known)
        return found

    def _evaluated(self, f: Any, known: Mapping[Symbol, Any]) -> Any:
        f = unfold(f)
        symbols = tuple(sorted(f.free_symbols, key=str))
        return _function(f, symbols)(*(known[z] for z in symbols)) if symbols else float(f)


# --- equilibria of a network at many points at once -----------------------------------------------


@dataclass(frozen=True, eq=False)
class Equilibria:
    """Equilibria at N points, as arrays whose first axis is the point; NaN (or False) where there
    is none.

    Attributes
    ----------
    rate, one_way_delay, rtt, loss : array (N, flows)
        [bit/s], [s], [s], [1], as in `Equilibrium`.
    queueing_delay, price, arrival_rate, admitted_rate : array (N, links)
        [s], [1], [bit/s].
    saturated, full : bool array (N, links)
        Where the admitted rate equals the capacity; where the buffer is full.
    states : dict
        Every law's own states (N,), by flow or link name and state name.
    error : array (N,)
        Relative size of the last Newton step [1].
    found : bool array (N,)
        Where there is an equilibrium.
    errors : dict of int to FluidccError
        Why there is none, by point: what `fluidcc.equilibrium` of that point's network raises.
    warnings : dict of int to tuple of str
        What makes an equilibrium doubtful, by point, as `Equilibrium` has it; no entry where
        nothing does.
    flow_names, link_names : tuple of str
        What the second axes are.
    at : float
        Time [s] whose capacities and flows they have.
    """

    rate: Any
    one_way_delay: Any
    rtt: Any
    loss: Any
    queueing_delay: Any
    price: Any
    saturated: Any
    full: Any
    arrival_rate: Any
    admitted_rate: Any
    states: Mapping[str, Mapping[str, Any]]
    error: Any
    found: Any
    errors: Mapping[int, FluidccError]
    warnings: Mapping[int, tuple[str, ...]]
    flow_names: tuple[str, ...]
    link_names: tuple[str, ...]
    at: float

    def __len__(self) -> int:
        return len(self.found)

    def reasons(self) -> dict[int, str]:
        """Kind and text of why there is none, by point."""
        return {
            i: f"{type(error).__name__}: {' '.join(str(error).split())}"
            for i, error in self.errors.items()
        }

    def point(self, i: int) -> Equilibrium:
        """The equilibrium at one point, as `fluidcc.equilibrium` gives it.

        Raises
        ------
        FluidccError
            Why there is none, such as `NoEquilibrium`.
        """
        if i in self.errors:
            raise self.errors[i]
        names = {"flow": list(self.flow_names), "link": list(self.link_names)}
        own = {
            name: {z: float(column[i]) for z, column in of.items()}
            for name, of in self.states.items()
        }
        values, doubts = {k: getattr(self, k)[i] for k in COLUMNS}, self.warnings.get(i, ())
        return Equilibrium(names, values, own, float(self.error[i]), self.at, warnings=doubts)


def equilibria(
    net: Network,
    targets: Mapping[str, Place],
    values: Mapping[str, Any],
    at: float | str = math.inf,
) -> Equilibria:
    """Find the equilibria of a network at many points.

    Each point is searched from its own start, one after the other in one compiled loop without the
    GIL: a result depends on no other point, nor on which points are asked for together.

    Parameters
    ----------
    net : Network
        What all points have in common.
    targets : mapping of str to Target
        What is changed, by axis: each has ``kind``, ``key``, ``flows`` and ``links`` as those of a
        sweep do (`fluidcc.sweeps.targets.find_target`). Kind "parameter" sets the parameter `key`
        of the laws of these flows or links; "initial" the initial state "initial.<key>"; "argument"
        the capacity, delay or buffer of links, or the access_delay, return_delay or packet of
        flows; "rtt" scales all delays as `fluidcc.sweep` does; "option" changes nothing here.
    values : mapping of str to array (N,)
        The values by axis, in SI units.
    at : float or str
        Time [s] at which capacities and the set of flows that are on are taken, as in
        `fluidcc.equilibrium`.

    Returns
    -------
    Equilibria
        Arrays; points without an equilibrium have their reason in ``errors``.

    Raises
    ------
    Unsupported
        If a target changes more than numbers (another law, number of flows, start or stop): build
        these networks one by one. Or if no point can have an equilibrium, as in
        `fluidcc.equilibrium`.
    InvalidInput
        If the values of the axes are not of one length.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.equilibria.many import equilibria
    >>> from fluidcc.sweeps.targets import find_target
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], dict(capacity="3 Mbit/s"), rtt="50 ms")
    >>> many = equilibria(net, {"beta": find_target(net, "beta")}, {"beta": [0.01, 0.1, 0.2]})
    >>> many.found, many.queueing_delay[1:, 0].round(6)
    (array([False,  True,  True]), array([0.094231, 0.083929]))
    >>> many.reasons()[0][:32]
    "NoEquilibrium: link 'bottleneck'"
    """
    from fluidcc.equilibria.no_equilibrium import settled
    from fluidcc.numerics.steady.follow import CONVERGED
    from fluidcc.numerics.steady.search import Search

    columns = Columns(system_of(net, at), net, targets, values)
    system, errors = columns.system(), columns.errors()
    search = Search(system.shape)
    found = search.everywhere(system.numbers)
    for i in np.flatnonzero(found.status != CONVERGED).tolist():
        if i in errors:
            continue
        end = settled(system, search, i, found.point(i))
        if isinstance(end, FluidccError):
            errors[i] = end
            continue
        for array, value in zip(found, end, strict=True):
            array[i] = value
    good = np.ones(len(found.status), bool)
    good[list(errors)] = False
    found.u[~good], found.told[~good], found.error[~good] = np.nan, np.nan, np.nan
    with np.errstate(invalid="ignore"):
        told = values_of(system, found.u, found.told)
    states = states_of(system, found.u)
    for name, shown in columns.trackers(
        system.numbers, told["rate"], told["one_way_delay"]
    ).items():
        states[name].update(shown)
    return Equilibria(
        **told, states=states, error=found.error, found=good, errors=dict(sorted(errors.items())),
        warnings=_doubts(net, states, told["rate"]), flow_names=net.flow_names,
        link_names=net.link_names, at=system.at,
    )  # fmt: skip


def _doubts(
    net: Network, states: Mapping[str, Mapping[str, Any]], rates: Any
) -> dict[int, tuple[str, ...]]:
    """What makes equilibria doubtful, by point."""
    with np.errstate(invalid="ignore"):
        windows = least_windows(net, states, rates)
    some = np.flatnonzero(windows.min(axis=1, initial=math.inf) < FEW).tolist()
    return {
        i: tuple(few_packets(dict(zip(net.flow_names, windows[i].tolist(), strict=True))))
        for i in some
    }
