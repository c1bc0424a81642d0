"""Equilibria of a network at many points at once: the same links, flows and laws, with other
numbers. `fluidcc.equilibrium` is that of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sympy import Symbol

from fluidcc.base.errors import FluidccError
from fluidcc.equilibria.assembly import Assembled, assemble, switches
from fluidcc.equilibria.result import COLUMNS, Equilibrium
from fluidcc.laws import Source
from fluidcc.laws.early_loss import refuse_arrivals
from fluidcc.laws.parts import hears_ratios
from fluidcc.laws.past import running
from fluidcc.laws.sampled import standing
from fluidcc.laws.steady import (
    FEW,
    few_packets,
    mean_at_full,
    refuse_unsteady,
    settled,
    trackers,
    window,
    with_levels,
)
from fluidcc.network.network import identical, require_flows, require_network
from fluidcc.network.parameters import Parameters, evaluated
from fluidcc.network.wired import Wired, is_on, moment, own_states
from fluidcc.numerics.steady.state import Shape
from fluidcc.symbols import c, e, plain, symbols_of, x_tau

if TYPE_CHECKING:
    from fluidcc.equilibria.sliding import Slid, Slide
    from fluidcc.network import Network
    from fluidcc.numerics.steady.follow import Search, SearchEnds


@dataclass(frozen=True, eq=False)
class Equilibria:
    """Equilibria at N points, as arrays with the point as first axis; NaN (or False) where there
    is none.

    Attributes
    ----------
    rate, one_way_delay, rtt, loss, mark : array (N, flows)
        [bit/s], [s], [s], [1], [1], as in `Equilibrium`.
    queueing_delay, price, arrival_rate, admitted_rate : array (N, links)
        [s], [1], [bit/s].
    link_loss, link_drop, link_mark : array (N, links)
        [1], as in `Equilibrium`.
    saturated, full : bool array (N, links)
        Where the admitted rate equals the capacity; where the buffer is full.
    states : dict
        Every law's own states (N,), by flow or link name and state name.
    error : array (N,)
        Bounds of relative errors [1], as in `Equilibrium`.
    found : bool array (N,)
        Where there is an equilibrium.
    errors : dict of int to FluidccError
        Why there is none, by point: what `fluidcc.equilibrium` of that point's network raises.
    warnings : dict of int to tuple of str
        What makes an equilibrium doubtful, by point, as `Equilibrium` has it; no entry where
        nothing does.
    sliding : dict of int to tuple of Slide
        The switches of laws on which the network rests, by point; no entry where it is on none.
    wired : Wired
        The network, with the time whose capacities and flows they have.
    solved : Solved or None
        What they were found by, unless they were known already.
    """

    rate: Any
    one_way_delay: Any
    rtt: Any
    loss: Any
    mark: Any
    queueing_delay: Any
    link_loss: Any
    link_drop: Any
    link_mark: Any
    price: Any
    saturated: Any
    full: Any
    arrival_rate: Any
    admitted_rate: Any
    states: Mapping[str, Mapping[str, Any]]
    error: Any
    found: Any
    errors: Mapping[int, FluidccError]
    warnings: dict[int, tuple[str, ...]]
    sliding: dict[int, tuple[Slide, ...]]
    wired: Wired = field(repr=False)
    solved: Solved | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.found)

    @classmethod
    def of(cls, net: Network, rest: Equilibrium) -> Equilibria:
        """The equilibrium of a network at one point where it is known already; it may part
        identical flows.
        """
        wired = Wired.of(net, rest.at)
        for link in wired.links:
            _at_rest(link.law, f"link {link.name!r}")
        kinds = wired.parted(wired.kinds, lambda name: tuple(rest.states[name].values()))
        states = {
            name: {z: np.array([v]) for z, v in rest.states[name].items()}
            for name in (*net.flows, *net.links)
        }
        values: Any = {name: np.atleast_2d(rest.array(name)) for name in COLUMNS}
        return cls(
            **values, states=states, error=np.array([rest.error]), found=np.ones(1, bool),
            errors={}, warnings={}, sliding={0: rest.sliding} if rest.sliding else {},
            wired=Wired(wired.given, rest.at, kinds),
        )  # fmt: skip

    def array(self, name: str) -> Any:
        """One of the attributes over flows or links."""
        return getattr(self, name)

    def point(self, i: int) -> Equilibrium:
        """The equilibrium at one point, as `fluidcc.equilibrium` gives it.

        Raises
        ------
        FluidccError
            Why there is none, such as `NoEquilibrium`.
        """
        if i in self.errors:
            raise self.errors[i]
        net = self.wired.net
        names = {"flow": list(net.flows), "link": list(net.links)}
        own = {
            name: {z: float(column[i]) for z, column in of.items()}
            for name, of in self.states.items()
        }
        values = {k: getattr(self, k)[i] for k in COLUMNS}
        doubts, slides = self.warnings.get(i, ()), self.sliding.get(i, ())
        return Equilibrium(
            names, values, own, float(self.error[i]), self.wired.at, warnings=doubts, sliding=slides
        )


def equilibria(given: Parameters, at: float | str = math.inf) -> Equilibria:
    """Find the equilibria of a network at many points.

    Each point is searched from its own start, one after the other in one compiled loop without the
    GIL: a result depends on no other point, nor on which points are asked for together.

    Parameters
    ----------
    given : Parameters
        The network, and its numbers at the points.
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
        If no point can have an equilibrium, as in `fluidcc.equilibrium`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.equilibria.many import equilibria
    >>> from fluidcc.network.parameters import Parameters
    >>> from fluidcc.sweeps.axes import find_target
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], dict(capacity="3 Mbit/s"), rtt="50 ms")
    >>> beta = {"beta": find_target(net, "beta")}
    >>> many = equilibria(Parameters.of(net, beta, {"beta": [0.01, 0.1, 0.2]}))
    >>> many.found, many.queueing_delay[1:, 0].round(6)
    (array([False,  True,  True]), array([0.094231, 0.083929]))
    >>> type(many.errors[0]).__name__
    'NoEquilibrium'
    """
    require_network(given.net)
    time, refused = moment(at), given.errors()
    alone = given.points == 1 and not given.set  # the network itself
    wired = Wired.of(given.net, time) if alone else Wired(given, time)
    found = _told(solved(wired, refused))
    failed = [i for i in found.errors if i not in refused]
    if not failed or max(wired.many) == 1:
        return found
    # the reason is found for the network itself, with every flow's name
    again = _told(solved(Wired(given.part(failed), time).apart(), {}))
    if len(failed) == given.points:
        return again
    for name in (*COLUMNS, "error", "found"):
        getattr(found, name)[failed] = getattr(again, name)
    for name, states in again.states.items():
        for z, column in states.items():
            found.states[name][z][failed] = column
    errors = {i: e for i, e in found.errors.items() if i in refused}
    errors |= {failed[k]: error for k, error in again.errors.items()}
    doubts = found.warnings | {failed[k]: texts for k, texts in again.warnings.items()}
    slides = found.sliding | {failed[k]: some for k, some in again.sliding.items()}
    return replace(found, errors=dict(sorted(errors.items())), warnings=doubts, sliding=slides)


class Solved(NamedTuple):
    """Equilibria at one point or many, by rows of the table: the search, where it ended (NaN where
    there is none), why there is none, what they tell, and those that are on switches.
    """

    system: Assembled
    search: Search
    found: SearchEnds
    errors: dict[int, FluidccError]
    values: dict[str, Any]
    states: tuple[list[dict[str, Any]], list[dict[str, Any]]]
    slid: dict[int, Slid]


HEARD = {e: "one_way_delay", x_tau: "rate"}
"""What states that follow from others may depend on, beside states and constants."""


def solved(wired: Wired, refused: Mapping[int, FluidccError]) -> Solved:
    """Search for the equilibria of a network at every point that is not refused; a result depends
    on no other point.
    """
    from fluidcc.numerics.steady.follow import CONVERGED, Search, SearchEnds

    system, errors, given = system_of(wired), dict(refused), wired.given
    slid: dict[int, Slid] = {}
    search = Search(system.shape)
    found = search.everywhere(system.numbers)
    # switches are looked at with the numbers of the network itself
    alone = given.points == 1 and not given.set and any(map(switches, system.laws[1]))
    for i in np.flatnonzero((found.status != CONVERGED) | alone).tolist():
        if i in errors:
            continue
        from fluidcc.equilibria.no_equilibrium import settled

        end = settled(system, search, i, found.point(i), alone)
        if isinstance(end, FluidccError):
            errors[i] = end
            continue
        if not isinstance(end, SearchEnds):
            slid[i], end = end, end.as_found()
        for array, value in zip(found, end, strict=True):
            array[i] = value
    for array in found[:2]:
        array[list(errors)] = np.nan
    with np.errstate(invalid="ignore"):
        values = values_of(system, found.u, found.told)
    states = states_of(system, found.u)
    for k, flow in enumerate(wired.flows):
        own, known = states[0][k], dict(wired.flow(k, flow.law))
        for z, account in trackers(flow.law).items():
            if account.data == 0:
                more = values["one_way_delay"][:, k] - system.numbers.base[:, k]
                start = given.initial("flow", flow.name, z, known)
                own[plain(z)] = start + evaluated(account.delay, known) * more
        if system.laws[0][k] is not None:
            own |= {plain(z): np.zeros(wired.points) for z in running(flow.law)}
        known |= {z: own[plain(z)] for z in flow.law.states if plain(z) in own}
        known |= {s: values[column][:, k] for s, column in HEARD.items()}
        for z, f in flow.law.steady.items():
            if z != "rate" and symbols_of(f) <= known.keys():  # a flow that is off has no states
                own[plain(z)] = evaluated(f, known) + np.zeros(wired.points)
    return Solved(system, search, found, errors, values, states, slid)


def _told(one: Solved) -> Equilibria:
    """What the rows of the table tell, of every flow."""
    wired, row = one.system.wired, one.system.wired.row
    good = np.ones(wired.points, bool)
    good[list(one.errors)] = False
    values = {k: v[:, row] if COLUMNS[k][0] == "flow" else v for k, v in one.values.items()}
    (flows, links), net = one.states, wired.net
    states = {name: flows[k] for name, k in zip(net.flows, row.tolist(), strict=True)}
    for name, own in zip(net.links, links, strict=True):
        states[name] = {**states.get(name, {}), **own}  # a flow may have the name of a link
    return Equilibria(
        **values, states=states, error=np.where(good, one.found.error, np.nan), found=good,
        errors=dict(sorted(one.errors.items())), warnings=_doubts(one), wired=wired, solved=one,
        sliding={i: end.slides for i, end in one.slid.items()},
    )  # fmt: skip


def _doubts(one: Solved) -> dict[int, tuple[str, ...]]:
    """What makes equilibria doubtful, by point: windows of few packets, links that would have
    marked or dropped before their buffer is full, means at a full buffer, lost digits.
    """
    wired, rates = one.system.wired, one.values["rate"]
    least = np.full(rates.shape, math.inf)
    for k, flow in enumerate(wired.flows):
        own = plain(window(flow.law) or "")
        if own in one.states[0][k]:  # a flow that is off has none
            least[:, k] = one.states[0][k][own]
    with np.errstate(invalid="ignore"):
        least = np.where(rates > 0, least, math.inf)
        some = np.flatnonzero(least.min(axis=1, initial=math.inf) < FEW).tolist()
        found = {i: (few_digits(e),) for i, e in enumerate(one.found.error) if FEWEST < e < np.inf}
    for i in some:
        names = dict(zip(wired.net.flows, least[i, wired.row].tolist(), strict=True))
        found[i] = (*few_packets(names), *found.get(i, ()))
    for l, (name, link) in enumerate(wired.net.links.items()):
        early = set[Symbol]().union(*(symbols_of(link.law.out.get(o, c)) for o in ("mark", "drop")))
        too_full = bool(early & {*link.law.states})
        smooth = [f for f in wired.net.flows.values() if name in f.route and f.law.mean_of]
        for i in np.flatnonzero(one.values["full"][:, l]).tolist():
            if too_full:
                held = 1e3 * one.values["queueing_delay"][i, l]
                found[i] = (*found.get(i, ()), _TOO_FULL.format(name, link.law.name, held))
            elif smooth:
                said = mean_at_full(smooth[0].name, smooth[0].law, name, len(smooth) - 1)
                found[i] = (*found.get(i, ()), said)
    return {i: said for i, said in found.items() if i not in one.errors}


_TOO_FULL = (
    "link {!r} ({}) rests on its full buffer, {:.4g} ms, and drops there as fluidcc.DropTail does: "
    "give it more buffer, or lower thresholds and targets [s]"
)
FEWEST = 1e-9
"""An error beyond this has cost more digits than rounding."""


def few_digits(error: float) -> str:
    """What to say of an equilibrium with such an error."""
    known = f"is known to {error:.1g} of its size" if error < math.inf else "may be off by 1 %"
    return (
        f"the equilibrium {known} only, as its equations hardly tell it there: two or more "
        "solutions are one, or nearly so"
    )


# --- laws in equilibrium --------------------------------------------------------------------------


def system_of(wired: Wired) -> Assembled:
    """The arrays of a network, refused if it has no equilibrium by its nature."""
    net, at = wired.net, wired.at
    require_flows(net)
    first = {name: names[0] for names in identical(net) for name in names}
    flows = [
        net.derived(_law_at_rest, first[f.name]) if is_on(f, at) else None for f in wired.flows
    ]
    links = [_at_rest(link.law, f"link {link.name!r}") for link in wired.links]
    for link in compress(wired.links, wired.mixed):
        refuse_arrivals(link.law, f"link {link.name!r}")
    rates = wired.rates
    flows = [law if rate is None else None for law, rate in zip(flows, rates, strict=True)]
    return assemble(wired, (flows, links))


def held(net: Network) -> Network:
    """The network as `fluidcc.hold_trackers` returns it: made once, and not to be changed."""
    return net.derived(_held)


def _held(net: Network) -> Network:
    new = net
    for names in identical(net):
        flow = net.flows[names[0]]
        law = with_levels(flow.law, net.propagation_delay(flow.name), flow.initial)
        if law is not flow.law:
            new = net.copy() if new is net else new
            kept = {z: flow.initial[z] for z in map(plain, law.states)}
            new._flows |= {name: replace(net.flows[name], law=law, initial=kept) for name in names}
    return new


def _law_at_rest(net: Network, name: str) -> Source:
    """The law of a flow with its trackers as parameters, and of a sampled one what stands still
    where it does; refused if it never does.
    """
    flow, way = net.flows[name], net.propagation_delay(name)
    law = _at_rest(with_levels(flow.law, way, flow.initial), f"flow {name!r}")
    return with_levels(law, way, flow.initial)  # those of sampled laws could not be held before


@lru_cache(maxsize=4096)
def _at_rest(law: Any, of: str) -> Any:
    held = standing(law, of)
    refuse_unsteady(held, of)
    return settled(held)


# --- what they tell -------------------------------------------------------------------------------


SATURATED = 1e-9
"""A link this close to its capacity, relatively, counts as saturated."""


def values_of(system: Assembled, u: Any, told: Any) -> dict[str, Any]:
    """What an equilibrium tells, as arrays over points and flows or links."""
    S, N = system.shape, system.numbers
    F, L = S.flows, S.links
    e, pi, queue, loss, price, drop, mark = np.split(told, np.cumsum([F, F, *[L] * 4]), axis=1)
    # marks count as losses for flows that use neither signal
    laws = (law or f.law for law, f in zip(system.laws[0], system.wired.flows, strict=True))
    deaf = np.array([not hears_ratios(law) for law in laws])
    lost, marked, spared = _on_paths(S, u, loss, drop, mark)
    arrival = system.arrivals(u) + spared
    drop = drop + spared / np.maximum(arrival, 1e-300)
    admitted = arrival * (1 - drop)
    full = np.array(S.queued) & (system.queues(u) >= N.q_max)
    return {
        "rate": u[:, :F],
        "one_way_delay": e,
        "rtt": e + (N.trip - N.base),
        "loss": np.where(deaf, pi, lost),
        "mark": np.where(deaf, 0.0, marked),
        "queueing_delay": queue,
        "link_loss": loss,
        "link_drop": drop,
        "link_mark": mark,
        "price": price,
        "saturated": full | (admitted * (1 - loss) >= N.c * (1 - SATURATED)),
        "full": full,
        "arrival_rate": arrival,
        "admitted_rate": admitted,
    }


def _on_paths(S: Shape, u: Any, loss: Any, drop: Any, mark: Any) -> Any:
    """What is lost of each row, and marked of the rest (points, rows); and what links drop of flows
    in place of marking (points, links) [bit/s].
    """
    paths, dropped = np.zeros((2, len(u), S.flows)), np.zeros_like(mark)
    for k, (route, spared) in enumerate(zip(S.routes, S.spared, strict=True)):
        lost, marked = paths[:, :, k]
        for l, spares in zip(route, spared, strict=True):
            if spares:
                dropped[:, l] += S.many[k] * u[:, k] * (1.0 - lost) * mark[:, l]
            for of, ratio in ((lost if spares else marked, mark), (lost, loss), (lost, drop)):
                of += (1.0 - of) * ratio[:, l]  # small ones keep their digits
    return (*paths, dropped)


def states_of(system: Assembled, u: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The states of the laws of each row and of each link by name, over points."""
    found: Any = [{} for _ in system.laws[0]], [{} for _ in system.laws[1]]
    for own, laws, places in zip(found, system.laws, system.states, strict=True):
        for states, law, some in zip(own, laws, places, strict=True):
            names = map(plain, own_states(law) if law else ())
            states |= {name: u[:, i] for name, i in zip(names, some, strict=True)}
    queue = np.minimum(system.queues(u), system.numbers.q_max)
    for l, law in enumerate(system.laws[1]):
        if law.queue is not None:
            found[1][l][plain(law.queue)] = queue[:, l]
    return found
