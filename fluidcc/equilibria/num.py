"""Network utility maximisation (NUM) on a `Network`: maximise sum U_r(x_r) subject to R x <= c.

Equation (10) of the LDCC paper. It is what the ideal price dynamics (11)-(14) aim at, and the
yardstick by which an allocation is judged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Symbol, lambdify

from fluidcc.base.arguments import explained
from fluidcc.base.errors import Infeasible, InvalidInput, SolverError, Unbounded, Unsupported
from fluidcc.base.tables import in_columns, in_html, in_units
from fluidcc.network.network import require_network
from fluidcc.network.wired import Wired, moment
from fluidcc.symbols import c, e_b, packet, plain, unfold

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.network.network import Network
    from fluidcc.network.specs import FlowSpec, LinkSpec
    from fluidcc.numerics.num_core import UtilityGroup

__all__ = ["NumSolution", "solve"]

TOLERANCE = 1e-10
"""Duality gap and residual that a solution meets, or none is given."""


@dataclass(frozen=True, repr=False)
class NumSolution:
    """Optimal rates and link prices.

    Attributes
    ----------
    rate : DataArray over "flow"
        Optimal rates [bit/s]; a constant-rate flow has its own, a flow that is off has 0.
    price : DataArray over "link"
        Lagrange multipliers of the capacities [utility per bit/s]; 0 where a link has room to
        spare. Where links are redundant (equal ones in series, say) the multipliers are one valid
        choice of several.
    gap : float
        Duality gap over the worth of all capacities, lambda . c [1].
    kkt : float
        The largest relative residual of the optimality conditions [1].

    Examples
    --------
    >>> import fluidcc as fc
    >>> laws = [fc.LDCC(w="10 kbit/s"), fc.LDCC(w="20 kbit/s")]
    >>> net = fc.dumbbell(laws, {"capacity": "3 Mbit/s"})
    >>> solution = fc.num.solve(net)
    >>> solution.rate.round(3).values.tolist(), solution.gap < 1e-10
    ([1000000.0, 2000000.0], True)
    """

    rate: xr.DataArray
    price: xr.DataArray
    gap: float
    kkt: float

    def _tables(self) -> list[list[list[str]]]:
        tables = []
        for dim, what, array in (("flow", "rate", self.rate), ("link", "price", self.price)):
            unit, values = in_units(array.values, array.attrs.get("units", "1"), array.values.max())
            head = [dim, what if unit == "1" else f"{what} [{unit}]"]
            tables.append([head, *map(list, zip(array[dim].values, values, strict=True))])
        return tables

    def _quality(self) -> str:
        return f"duality gap {self.gap:.1e}, optimality residual {self.kkt:.1e}"

    def __repr__(self) -> str:
        return "\n\n".join([*("\n".join(in_columns(t)) for t in self._tables()), self._quality()])

    def _repr_html_(self) -> str:
        tables = "".join(in_html(rows, head) for head, *rows in self._tables())
        return f"{tables}<p>{self._quality()}</p>"


@explained
def solve(net: Network, at: float | str = math.inf) -> NumSolution:
    """Maximise the sum of the flows' utilities over the rates that fit the links.

    Each flow's utility is its law's (``law.utility``); flows of constant rate take their share of
    the capacity first. Buffers and delays play no part.

    Parameters
    ----------
    net : Network
        The network.
    at : float or str
        Time [s] at which the flows that are on and the capacities are taken; by default after every
        change.

    Returns
    -------
    NumSolution
        With ``.rate`` [bit/s], ``.price``, ``.gap`` and ``.kkt``.

    Raises
    ------
    Infeasible
        If a link has no capacity left for the flows that need it.
    Unbounded
        If a flow crosses no link of finite capacity.
    InvalidInput
        If the network has no flows, or a flow neither a utility nor a constant rate.
    SolverError
        If the optimality conditions are not met to 1e-10.

    References
    ----------
    Kelly, Maulloo and Tan, "Rate control for communication networks", 1998.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], {"capacity": "3 Mbit/s"}, rtt="50 ms")
    >>> fc.num.solve(net).rate.round(3).values.tolist()
    [1500000.0, 1500000.0]
    """
    from scipy.sparse import csr_array

    from fluidcc.numerics.num_core import maximise

    require_network(net)
    if not net.flows:
        raise InvalidInput(
            "the network has no flows, so there is nothing to share; add one with .flow(name, "
            "law, route=)"
        )
    wired = Wired.of(net, moment(at)).apart()
    flows, links = list(wired.flows), list(wired.links)
    capacity = np.array([wired.link(l)[c] for l in range(len(links))])
    rate = np.array([rate or 0.0 for rate in wired.rates])
    elastic = [i for i, rate in enumerate(wired.rates) if rate is None]
    routing = np.asarray(net.routing_matrix(), float)
    room = _room(flows, links, capacity, routing, rate, elastic)
    price, gap, kkt = np.zeros(len(links)), 0.0, 0.0
    if elastic:
        part = routing[:, elastic]
        for i, column in zip(elastic, part.T, strict=True):
            if not np.any(np.isfinite(room) & (column > 0)):
                raise Unbounded(
                    f"flow {flows[i].name!r} crosses no link of finite capacity, so its rate has "
                    "no limit: route it through a link with a capacity"
                )
        used = np.isfinite(room) & (part.sum(axis=1) > 0)
        groups = utility_groups([flows[i] for i in elastic], net)
        result = maximise(csr_array(part[used]), room[used], groups)
        if max(result.kkt, result.gap) > TOLERANCE:
            raise SolverError(
                f"the optimum was found only to a relative {max(result.kkt, result.gap):.1e}, as "
                "rates or prices span too many orders of magnitude: bring capacities or weights "
                "together"
            )
        rate[elastic], price[used], gap, kkt = result.rate, result.price, result.gap, result.kkt
    return _labelled(net, rate, price, gap, kkt)


def _labelled(net: Network, rate: Any, price: Any, gap: float, kkt: float) -> NumSolution:
    import xarray as xr

    return NumSolution(
        xr.DataArray(rate, {"flow": list(net.flows)}, ("flow",), "rate", {"units": "bit/s"}),
        xr.DataArray(
            price, {"link": list(net.links)}, ("link",), "price", {"units": "utility/(bit/s)"}
        ),
        gap,
        kkt,
    )


def _room(
    flows: list[FlowSpec],
    links: list[LinkSpec],
    capacity: Any,
    routing: Any,
    rate: Any,
    elastic: Any,
) -> Any:
    """Capacities less the constant-rate flows [bit/s]."""
    load = routing @ rate
    for l, link in enumerate(links):
        if load[l] < capacity[l]:
            continue
        needy = ", ".join(repr(flows[i].name) for i in elastic if routing[l, i])
        fixed = ", ".join(
            repr(f.name) for f, x, r in zip(flows, rate, routing[l], strict=True) if x and r
        )
        if load[l] > capacity[l]:
            raise Infeasible(
                f"link {link.name!r} has {capacity[l]:.6g} bit/s but the constant-rate flows on "
                f"it ({fixed}) send {load[l]:.6g} bit/s: lower their rates or raise the capacity"
            )
        if needy and load[l] == capacity[l]:
            taken = f", and {fixed} take all of it" if fixed else ""
            raise Infeasible(
                f"link {link.name!r} has {capacity[l]:.6g} bit/s{taken}, so nothing is left for "
                f"{needy}: raise its capacity"
            )
    return capacity - load


# --- utilities ------------------------------------------------------------------------------------


def utility_groups(flows: list[FlowSpec], net: Network) -> list[UtilityGroup]:
    """The flows' utilities as maps of arrays, one group for each distinct expression."""
    from fluidcc.numerics.num_core import UtilityGroup

    members: dict[Any, list[int]] = {}
    for i, flow in enumerate(flows):
        if flow.law.utility is None:
            raise InvalidInput(
                f"flow {flow.name!r} ({flow.law.name}) has no utility to maximise: where its rates "
                "settle says fluidcc.equilibrium; or take a law that has one, such as fluidcc.LDCC "
                "or fluidcc.AlphaFairPrimalDual (of your own laws, those whose rate is a state may "
                "have one: fluidcc.Source(..., utility=))"
            )
        members.setdefault(flow.law.utility, []).append(
            i
        )  # utilities of one family are one object or equal
    groups = []
    for family, index in members.items():
        utility = unfold(family)
        law = flows[index[0]].law
        params = tuple(s for s in law.params if s in utility.free_symbols)
        x = _rate_symbol(utility, law)
        known = {e_b: lambda f: net.return_delay(f.name), packet: lambda f: f.packet}
        extra = tuple(s for s in known if s in utility.free_symbols)
        values = [np.array([float(flows[i].law.params[s]) for i in index]) for s in params]
        values += [np.array([float(known[s](flows[i])) for i in index]) for s in extra]
        maps = [_bind(utility.diff(x, n), (x, *params, *extra), values) for n in (1, 2)]
        groups.append(UtilityGroup(np.array(index), *maps))
    return groups


def _rate_symbol(utility: Any, law: Any) -> Symbol:
    """The variable of a utility: its symbol that is neither a parameter nor a constant."""
    free = utility.free_symbols - {*law.params, e_b, packet}
    if len(free) != 1:
        raise Unsupported(
            f"the utility of {law.name} must be a function of one rate, not of "
            f"{', '.join(sorted(map(plain, free))) or 'nothing'}"
        )
    return free.pop()


def _bind(f: Any, symbols: tuple[Symbol, ...], values: list[Any]) -> Any:
    """The map of one rate a flow to a value each, with the flows' numbers put in."""
    function = lambdify(symbols, f, "numpy", cse=True)

    def bound(argument: Any) -> Any:
        return np.broadcast_to(function(argument, *values), np.shape(argument)) + 0.0

    return bound
