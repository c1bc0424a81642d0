"""Equilibria of a network: which links saturate, which buffers are full, and every rate, delay and loss there.

The conditions are the laws' own (flows of states that vanish, or push against a bound) and complementarity at each
queue: it is empty and has room to spare, or it is between its ends and its capacity is used up, or it is full and loses
the excess. Derivatives are the laws' exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Gt

from fluidcc.assembly import assemble, fair_share, is_on
from fluidcc.derive.sampled import standing
from fluidcc.derive.steady import refuse_unsteady
from fluidcc.errors import InvalidInput, NoEquilibrium, SolverError, UnknownName
from fluidcc.law import Steady
from fluidcc.network import require_network
from fluidcc.symbols import pi, plain, unfold
from fluidcc.units import to_si

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.network import Network
    from fluidcc.numerics.complementarity import Result
    from fluidcc.numerics.steady import SteadyNetwork

__all__ = ["Equilibrium", "equilibrium"]


COLUMNS = {
    "rate": ("flow", "bit/s"),
    "one_way_delay": ("flow", "s"),
    "rtt": ("flow", "s"),
    "loss": ("flow", "1"),
    "queueing_delay": ("link", "s"),
    "price": ("link", "1"),
    "saturated": ("link", None),
    "full": ("link", None),
    "arrival_rate": ("link", "bit/s"),
}
"""Dimension and unit of what an equilibrium tells."""


@dataclass(frozen=True, repr=False, eq=False)
class Equilibrium:
    """An equilibrium; flows that are off have rate 0 and see the same path as the others.

    Attributes
    ----------
    rate : DataArray over "flow"
        Sending rates [bit/s].
    one_way_delay, rtt : DataArray over "flow"
        e [s] and e + e_b [s].
    loss : DataArray over "flow"
        Loss or mark ratio of the path, 1 - prod (1 - pi_l) over its links [1].
    queueing_delay : DataArray over "link"
        [s]
    price : DataArray over "link"
        The link's price output [1], 0 where its law has none.
    saturated : DataArray of bool over "link"
        Where the admitted rate equals the capacity.
    full : DataArray of bool over "link"
        Where the buffer is full.
    arrival_rate : DataArray over "link"
        [bit/s]; what exceeds the capacity is lost.
    states : dict
        Every law's own states, by flow or link name and state name.
    error : float
        Relative size of the last Newton step [1].
    at : float
        Time [s] whose capacities and flows it has.
    """

    _names: Mapping[str, list[str]]  # by dimension
    _values: Mapping[str, Any]  # arrays by attribute: labels cost more than small networks do
    states: Mapping[str, Mapping[str, float]]
    error: float
    at: float = math.inf

    def array(self, name: str) -> Any:
        """One of the attributes over "flow" or "link" as a plain array, without labels."""
        return self._values[name]

    def changed(self, states: Mapping[str, Mapping[str, float]] | None = None, **values: Any) -> Equilibrium:
        """A copy with other values of some attributes, such as an equilibrium known by hand.

        Raises
        ------
        UnknownName
            If an attribute over "flow" or "link" has not that name.
        """
        if unknown := next((name for name in values if name not in COLUMNS), None):
            raise UnknownName(f"an equilibrium has no array {unknown!r}; it has {', '.join(COLUMNS)}")
        arrays = {k: np.broadcast_to(np.asarray(v), self._values[k].shape).copy() for k, v in values.items()}
        return replace(self, _values={**self._values, **arrays}, states=self.states if states is None else states)

    def _labelled(self, name: str) -> xr.DataArray:
        import xarray as xr

        dim, units = COLUMNS[name]
        return xr.DataArray(
            self._values[name], {dim: self._names[dim]}, (dim,), name, {"units": units} if units else {}
        )

    @cached_property
    def rate(self) -> xr.DataArray:
        return self._labelled("rate")

    @cached_property
    def one_way_delay(self) -> xr.DataArray:
        return self._labelled("one_way_delay")

    @cached_property
    def rtt(self) -> xr.DataArray:
        return self._labelled("rtt")

    @cached_property
    def loss(self) -> xr.DataArray:
        return self._labelled("loss")

    @cached_property
    def queueing_delay(self) -> xr.DataArray:
        return self._labelled("queueing_delay")

    @cached_property
    def price(self) -> xr.DataArray:
        return self._labelled("price")

    @cached_property
    def saturated(self) -> xr.DataArray:
        return self._labelled("saturated")

    @cached_property
    def full(self) -> xr.DataArray:
        return self._labelled("full")

    @cached_property
    def arrival_rate(self) -> xr.DataArray:
        return self._labelled("arrival_rate")

    def _columns(self) -> tuple[tuple[xr.DataArray, ...], tuple[xr.DataArray, ...]]:
        return (self.rate, self.one_way_delay, self.rtt, self.loss), (
            self.queueing_delay, self.arrival_rate, self.price, self.saturated, self.full,
        )  # fmt: skip

    def __repr__(self) -> str:
        return "\n\n".join(_text(dim, part) for dim, part in zip(("flow", "link"), self._columns(), strict=True))

    def _repr_html_(self) -> str:
        return "".join(_table(dim, part) for dim, part in zip(("flow", "link"), self._columns(), strict=True))


MOST_ROWS = 12  # of a table in text


def _text(dim: str, columns: tuple[Any, ...]) -> str:
    """A table in plain text, of the first flows or links."""
    names = [str(name) for name in columns[0][dim].values]
    rows = [[dim, *(f"{a.name} [{a.units}]" if "units" in a.attrs else str(a.name) for a in columns)]]
    for i, name in enumerate(names[:MOST_ROWS]):
        rows.append([name, *(("yes" if a[i] else "no") if a.dtype == bool else f"{a.values[i]:.6g}" for a in columns)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(text.rjust(n) if k else text.ljust(n) for k, (text, n) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    more = len(names) - MOST_ROWS
    return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)


def _table(dim: str, columns: tuple[Any, ...]) -> str:
    head = "".join(f"<th>{a.name}{f' [{a.units}]' if 'units' in a.attrs else ''}</th>" for a in (*columns,))
    rows = "".join(
        f"<tr><td>{name}</td>"
        + "".join(
            f"<td>{a.values[i].item():.6g}</td>" if a.dtype != bool else f"<td>{'yes' if a.values[i] else ''}</td>"
            for a in columns
        )
        + "</tr>"
        for i, name in enumerate(columns[0][dim].values)
    )
    return f"<table><tr><th>{dim}</th>{head}</tr>{rows}</table>"


def equilibrium(net: Network, at: float | str = math.inf) -> Equilibrium:
    """Find the equilibrium of a network.

    Parameters
    ----------
    net : Network
        The network.
    at : float or str
        Time [s] at which capacities and the set of flows that are on are taken, and then held. By default infinity:
        after every change of capacity, with the flows that never stop (again).

    Returns
    -------
    Equilibrium
        Where it is not unique (links of equal capacity in series may share their queue in any way), one of them.

    Raises
    ------
    NoEquilibrium
        If a queue or a rate grows without limit; the message names it, its flows, and what would help.
    Unsupported
        If a law jumps, depends on time, or sends at random: the message says what to use instead. Of sampled laws the
        standstill is found, where all that is held stays as it is from tick to tick.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="2 Mbit/s", delay="25 ms")
    >>> eq = fc.equilibrium(net.flow("a", fc.LDCC, route=["l"]))
    >>> round(eq.one_way_delay.item(), 6)  # (19): (e_b r + T)/(1 - r) with r = w/(beta x) = 0.1
    0.113889
    """
    from fluidcc.numerics.complementarity import find_equilibrium

    require_network(net)
    if not net.flows:
        raise InvalidInput("the network has no flows; add one with .flow(name, law, route=[...])")
    if isinstance(at, str):
        at = to_si(at, "s", "at")
    if isinstance(at, bool) or not isinstance(at, Real) or math.isnan(at):
        raise InvalidInput(f"at is {at!r}; give a time in seconds, or infinity for after every change")
    net = _standing(net, at)
    system = assemble(net, at)
    trip = np.array([net.base_rtt(f) for f in net.flows])
    result = find_equilibrium(system.problem(), system.start(fair_share(system, net), trip))
    if result.status == "growing":
        result = _from_above(system, result)
    if result.status == "growing":
        raise NoEquilibrium(_why_none(net, system, result.u))
    if result.status == "undefined":
        raise InvalidInput(_why_undefined(net, system, result.u))
    if result.status != "converged":
        l = int(np.argmax(result.u[system.S]))
        raise SolverError(
            f"the search for an equilibrium did not converge in {result.steps} steps (last relative step "
            f"{result.error:.1e}; the longest queue, of link {list(net.links)[l]!r}, was at "
            f"{system.signals(result.u).queue[l]:.3g} s): give initial states nearer to it or finite "
            "buffers, or simulate and look where it goes"
        )
    return _result(net, system, result.u, result.error, at)


def _standing(net: Network, at: float) -> Network:
    """The network with sampled laws replaced by what stands still where they do; refuses what never stands still."""
    new = net.copy()
    for name, flow in net.flows.items():
        if is_on(flow, at):
            law = standing(flow.law, f"flow {name!r}")
            refuse_unsteady(law, f"flow {name!r}")
            new._flows[name] = replace(flow, law=law)
    for name, link in net.links.items():
        held = standing(link.law, f"link {name!r}")
        refuse_unsteady(held, f"link {name!r}")
        new._links[name] = replace(link, law=held)
    return new


# --- results ------------------------------------------------------------------------------------------------------


def _result(net: Network, system: SteadyNetwork, u: Any, error: float, at: float) -> Equilibrium:
    sig = system.signals(u)
    arrival = u[system.Y]
    admitted = arrival * (1 - sig.loss)
    back = np.array([net.return_delay(f) for f in net.flows])
    full = system.queued & (u[system.S] >= system.q_max)
    values = {
        "rate": u[system.X],
        "one_way_delay": sig.path[0],
        "rtt": sig.path[0] + back,
        "loss": sig.path[1],
        "queueing_delay": sig.queue,
        "price": u[system.P],
        "saturated": full | (admitted >= system.c * (1 - SATURATED)),
        "full": full,
        "arrival_rate": arrival,
    }
    names = {"flow": list(net.flows), "link": list(net.links)}
    return Equilibrium(names, values, _states(net, system, u, sig.queue), error, float(at))


SATURATED = 1e-9
"""A link this close to its capacity, relatively, counts as saturated."""


def _states(net: Network, system: SteadyNetwork, u: Any, queue: Any) -> dict[str, dict[str, float]]:
    """Every law's own states by name."""
    states: dict[str, dict[str, float]] = {name: {} for name in (*net.flows, *net.links)}
    places: Any = ((net.flows, system.flows, system.Z), (net.links, system.links, system.V))
    for specs, groups, blocks in places:
        names = list(specs)
        for g, block in zip(groups, blocks, strict=True):
            for j, i in enumerate(g.index):
                law = specs[names[i]].law
                own = [z for z in law.states if z != getattr(law, "queue", None)]
                states[names[i]].update(zip(map(plain, own), u[block[:, j]].tolist(), strict=False))
    for l, (name, spec) in enumerate(net.links.items()):
        if spec.law.queue is not None:
            states[name][plain(spec.law.queue)] = float(queue[l])
    return states


# --- why there is none --------------------------------------------------------------------------------------------


def _why_none(net: Network, system: SteadyNetwork, u: Any) -> str:
    """What grows without limit, and what would help."""
    endless = _endless(system, u)
    if np.any(endless):
        u, deaf = _with_long_queues(system, u, endless)
    else:
        deaf = True
    if deaf:
        flow = list(net.flows.values())[int(np.argmax(u[system.X]))]
        start = f"flow {flow.name!r} ({flow.law.name}) raises its rate without limit, as nothing on its path slows it: "
        path = [net.links[name] for name in flow.route]
        if any(unfold(f).has(pi) for f in flow.law.flow.values()) and not any(np.isfinite(k.buffer) for k in path):
            return start + f"its law hears losses, but no buffer on {', '.join(flow.route)} is finite; give one"
        return start + f"give {', '.join(flow.route)} a law whose signal (delay, loss, mark or price) it hears"
    return _why_queue(net, system, u, endless)


def _from_above(system: SteadyNetwork, grown: Result) -> Result:
    """Search again from long queues where these would drain: gains that fall with the delay can outrun a search."""
    from fluidcc.numerics.complementarity import find_equilibrium

    endless = _endless(system, grown.u)
    if not np.any(endless):
        return grown
    u, deaf = _with_long_queues(system, grown.u, endless)
    if deaf or np.any(u[system.Y[endless]] >= system.c[endless] * (1 - 1e-6)):
        return grown
    problem = system.problem()
    problem.ceiling[system.S] = np.maximum(problem.ceiling[system.S], 10 * u[system.S])
    again = find_equilibrium(problem, u, bold=False)
    return again if again.status == "converged" else grown


def _endless(system: SteadyNetwork, u: Any) -> Any:
    """The links whose queues have grown without limit."""
    long = u[system.S] >= max(0.01 * float(np.max(u[system.S])), 1e3)
    return system.queued & np.isinf(system.q_max) & long


def _with_long_queues(system: SteadyNetwork, u: Any, endless: Any) -> tuple[Any, bool]:
    """Where the flows would settle if the endless queues were held at their present length; whether they do not."""
    from fluidcc.numerics.complementarity import find_equilibrium

    problem, held = system.problem(), system.S[endless]
    problem.ceiling[system.S] = np.inf
    problem.lower[held] = problem.upper[held] = u[held]
    result = find_equilibrium(problem, u)
    return result.u, result.status == "growing"


def _why_queue(net: Network, system: SteadyNetwork, u: Any, endless: Any) -> str:
    flows, place = list(net.flows), np.flatnonzero(endless)
    l = int(place[np.argmax(u[system.Y[place]] / system.c[place])])
    on = [r for r in np.flatnonzero((system.route == l).any(axis=1)) if u[system.X[r]] > 0]
    on.sort(key=lambda r: -u[system.X[r]])
    rates = ", ".join(f"{flows[r]!r} {u[system.X[r]]:.6g}" for r in on[:5])
    rates += ", ..." * (len(on) > 5)
    arrival, capacity = float(u[system.Y[l]]), float(system.c[l])
    name = list(net.links)[l]
    start = f"link {name!r} has {capacity:.6g} bit/s and an infinite buffer, and its queue grows without limit: "
    if arrival < capacity * (1 - 1e-6):
        return start + f"its flows ({rates}) slow down only when they lose packets; give it a finite buffer"
    floors = [text for r in on[:5] if (text := _floor(flows[r], net.flows[flows[r]].law))]
    reason = f"however long the delay, its flows send {arrival:.6g} bit/s ({rates})"
    reason += f", as {'; '.join(floors)}" if floors else ""
    return start + reason + "; give it a finite buffer, more capacity or fewer flows"


def _why_undefined(net: Network, system: SteadyNetwork, u: Any) -> str:
    """Whose law gives no number."""
    G, _ = system.residual(u)
    places: Any = (("flow", net.flows, system.flows, system.Z), ("link", net.links, system.links, system.V))
    for kind, specs, groups, blocks in places:
        for g, block in zip(groups, blocks, strict=True):
            for j, i in enumerate(g.index):
                if not np.all(np.isfinite(G[block[:, j]])):
                    name = list(specs)[i]
                    return (
                        f"{kind} {name!r} ({specs[name].law.name}) has no finite rate of change at its start; a "
                        "round trip without any delay is a common cause: give its links or its access a delay"
                    )
    return "the network has no finite rates at its start; give its links or flows a delay"


def _floor(name: str, law: Any) -> str:
    """A lower bound of the rate that the law itself claims without loss, such as (20) of LDCC."""
    for label, claim in law.claims.items():
        relation = claim.relation if isinstance(claim, Steady) else None
        if isinstance(relation, Gt) and relation.lhs == law.out["rate"] and relation.rhs.free_symbols <= {*law.params}:
            least = float(relation.rhs.xreplace(dict(law.params)))
            return f"{name!r} never falls below {relation.rhs} = {least:.6g} bit/s, {label} of {law.name}"
    return ""
