"""Equilibria of a network: which links saturate, which buffers are full, and every rate, delay and
loss there.

The conditions are the laws' own (flows of states that vanish, or push against a bound) and
complementarity at each queue: it is empty and has room to spare, or it is between its ends and its
capacity is used up, or it is full and loses the excess. Derivatives are the laws' exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.base.arguments import explained
from fluidcc.base.errors import FluidccError, InvalidInput, warn
from fluidcc.equilibria.assembly import (
    Assembled,
    assemble,
    flow_numbers,
    initial_state,
    is_on,
    moment,
    switches,
)
from fluidcc.equilibria.result import COLUMNS, Equilibrium
from fluidcc.laws import Source
from fluidcc.laws.linear import standing
from fluidcc.laws.parts import used
from fluidcc.laws.steady import (
    FEW,
    few_packets,
    refuse_unsteady,
    settled,
    trackers,
    window,
    with_levels,
)
from fluidcc.network.network import (
    Collapsed,
    apart,
    collapsed,
    identical,
    in_pairs,
    require_network,
)
from fluidcc.network.parameters import Parameters, evaluated
from fluidcc.symbols import pi as either
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.equilibria.assembly import Assembled
    from fluidcc.network import Network
    from fluidcc.numerics.steady.follow import Found, Search

# --- equilibria of a network ----------------------------------------------------------------------


@explained
def equilibrium(net: Network, at: float | str = math.inf) -> Equilibrium:
    """Find the equilibrium of a network.

    Parameters
    ----------
    net : Network
        The network.
    at : float or str
        Time [s] at which capacities and the set of flows that are on are taken, and then held. By
        default infinity: after every change of capacity, with the flows that never stop (again).

    Returns
    -------
    Equilibrium
        Where it is not unique (links of equal capacity in series may share their queue in any way),
        one of them, with a warning; ``free`` names what is not determined.

    Raises
    ------
    NoEquilibrium
        If a queue or a rate grows without limit; the message names it, its flows, and what would
        help.
    Unsupported
        If a law jumps, depends on time, or sends at random: the message says what to use instead.
        Of sampled laws the standstill is found, where all that is held stays as it is from tick to
        tick.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="2 Mbit/s", delay="25 ms")
    >>> eq = fc.equilibrium(net.flow("a", fc.LDCC, route=["l"]))
    >>> round(eq.one_way_delay.item(), 6)  # (19): (e_b r + T)/(1 - r) with r = w/(beta x) = 0.1
    0.113889
    """
    require_network(net)
    found = _search(net, collapsed(net), at)
    free = _free(net, found)
    warn_undetermined(free)
    return replace(found.told, free=free)


def one_equilibrium(net: Network, at: float | str = math.inf) -> Equilibrium:
    """As `equilibrium`, without looking whether there are others beside it."""
    return _search(net, collapsed(net), at).told


class Solved(NamedTuple):
    """Equilibria of a network at one point or many: the search, where it ended (NaN where there is
    none), why there is none, and what they tell.
    """

    system: Assembled
    search: Search
    found: Found
    errors: dict[int, FluidccError]
    values: dict[str, Any]
    states: dict[str, dict[str, Any]]


def solved(given: Parameters, at: float | str, many: tuple[int, ...] = ()) -> Solved:
    """Search for the equilibria of a network at every point; a result depends on no other point."""
    from fluidcc.numerics.steady.follow import CONVERGED, Search

    system, errors = system_of(given.net, at, many, given), given.errors()
    search = Search(system.shape)
    found = search.everywhere(system.numbers)
    # switches are looked at with the numbers of the network itself
    alone = given.points == 1 and not given.set
    alone = alone and any(switches(link.law) for link in system.net.links.values())
    for i in np.flatnonzero((found.status != CONVERGED) | alone).tolist():
        if i in errors:
            continue
        from fluidcc.equilibria.no_equilibrium import settled

        end = settled(system, search, i, found.point(i), alone)
        if isinstance(end, FluidccError):
            errors[i] = end
            continue
        for array, value in zip(found, end, strict=True):
            array[i] = value
    for array in found[:2]:
        array[list(errors)] = np.nan
    with np.errstate(invalid="ignore"):
        values = values_of(system, found.u, found.told)
    states = states_of(system, found.u)
    for r, (name, flow) in enumerate(given.net.flows.items()):
        for z, account in trackers(flow.law).items():
            known = flow_numbers(given, name, flow.law)
            slope, share = (evaluated(f, known) for f in account)
            start = initial_state(given, "flow", name, z, known)
            e, trip = values["one_way_delay"][:, r], values["rtt"][:, r]
            first = np.where(np.equal(share, 0), start, 0.0)
            more = slope * (e - system.numbers.base[:, r]) + share * values["rate"][:, r] * trip
            states[name][plain(z)] = first + more
    return Solved(system, search, found, errors, values, states)


class _One(NamedTuple):
    """The equilibrium of a network, found in one with a flow of each kind."""

    few: Collapsed
    solved: Solved
    told: Equilibrium


def _search(net: Network, few: Collapsed, at: float | str) -> _One:
    found = solved(Parameters(few.net), at, few.many)
    if found.errors:
        if few.net is not net:  # tell why of the network as it stands, with every flow's name
            return _search(net, apart(net), at)
        raise found.errors[0]
    states = {
        name: {z: float(column[0]) for z, column in of.items()} for name, of in found.states.items()
    }
    values = {k: v[0] for k, v in found.values.items()}
    windows = least_windows(few.net, states, values["rate"])
    values = {k: v[few.where] if COLUMNS[k][0] == "flow" else v for k, v in values.items()}
    own = [states[name] for name in few.net.flows]
    every = {name: dict(own[k]) for name, k in few.place.items()}
    every |= {name: states[name] for name in net.links}
    names = {"flow": list(net.flows), "link": list(net.links)}
    error = float(found.found.error[0])
    told = Equilibrium(names, values, every, error, found.system.at, _net=net)
    if np.min(windows, initial=math.inf) < FEW:
        of_all = {name: float(windows[k]) for name, k in few.place.items()}
        told = replace(told, warnings=tuple(few_packets(of_all)))
    return _One(few, found, told)


def _free(net: Network, one: _One) -> tuple[str, ...]:
    """What nothing determines, by name: found with two flows of each kind, and told of all of
    them.
    """
    from fluidcc.numerics.steady.follow import Search

    small, u = one.solved.system, one.solved.found.u[0]
    if one.few.net is net:
        return undetermined(small, one.solved.search, u)
    F, L, (flows, links) = small.shape.flows, small.shape.links, small.states
    free: tuple[str, ...] = ()
    for more in (in_pairs(net), apart(net)):
        system = system_of(more.net, one.told.at, more.many)
        where = [one.few.where[i] for i in np.unique(more.where, return_index=True)[1]]
        own = [i for k in where for i in flows[k]] + [i for of in links for i in of]
        spread = u[[*where, *range(F, F + 2 * L), *own]]
        free = undetermined(system, Search(system.shape), spread)
        if not free:
            break
    return free


@explained
def hold_trackers(net: Network) -> Network:
    """The network with states that follow the round trip, such as a smallest one seen, as
    parameters.

    A state z with z' = a d(RTT)/dt keeps z - a RTT: its flow vanishes at every equilibrium, which
    leaves it undetermined. It is put in as z = a e + z_0, where the parameter z_0 is such that z
    has its initial value when the queues are empty: a flow that knows its path. Of a flow that met
    a queue, z_0 is lower by that; set it with ``net.with_flow(name, law=law(delta_0=...))`` in the
    result. `equilibrium`, `linearize`, `stability` and `stability_boundary` do this by themselves.

    Parameters
    ----------
    net : Network

    Returns
    -------
    Network
        The same object where no law has such a state.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="100 Mbit/s", delay="50 ms")
    >>> held = fc.hold_trackers(net.flow("f", fc.StaticFAST, route=["l"]))
    >>> held.flows["f"].law.parameter("delta_0")
    -0.05
    """
    require_network(net)
    held = net.derived(_held)
    return net if held is net else held.copy()


def _held(net: Network) -> Network:
    laws = {}
    for names in identical(net):
        flow = net.flows[names[0]]
        law = with_levels(flow.law, net.propagation_delay(flow.name), flow.initial)
        if law is not flow.law:
            laws.update(dict.fromkeys(names, law))
    return _with_laws(net, laws) if laws else net


def _with_laws(net: Network, laws: Mapping[str, Source]) -> Network:
    """A copy in which some flows have laws of fewer states."""
    new = net.copy()
    for name, law in laws.items():
        flow, known = net.flows[name], {*map(plain, law.states)}
        new._flows[name] = replace(
            flow, law=law, initial={z: v for z, v in flow.initial.items() if z in known}
        )
    return new


def system_of(
    net: Network, at: float | str, many: tuple[int, ...] = (), given: Parameters | None = None
) -> Assembled:
    """The network at one time as arrays and formulas, refused if it has no equilibrium by its
    nature.

    Each flow stands for as many identical ones as `many` has, by default for itself; `given` has
    the numbers that are set otherwise.
    """
    require_network(net)
    if not net.flows:
        raise InvalidInput("the network has no flows; add one with .flow(name, law, route=[...])")
    time = moment(at)
    return assemble(net.derived(_standing, time), time, many, given)


@lru_cache(maxsize=4096)
def _at_rest(law: Any, of: str) -> Any:
    held = standing(law, of)
    refuse_unsteady(held, of)
    return settled(held) if isinstance(held, Source) else held


def _standing(net: Network, at: float) -> Network:
    """The network with sampled laws replaced by what stands still where they do; refuses what
    never stands still.
    """
    held = net.derived(_held)
    flows, links = dict[str, Any](), dict[str, Any]()
    for name, flow in held.flows.items():
        if is_on(flow, at):
            law = _at_rest(flow.law, f"flow {name!r}")
            # those of sampled laws could not be held before
            law = with_levels(law, held.propagation_delay(name), flow.initial)
            flows |= {name: law} if law is not flow.law else {}
    for name, link in net.links.items():
        law = _at_rest(link.law, f"link {name!r}")
        links |= {name: replace(link, law=law)} if law is not link.law else {}
    if not flows and not links:
        return held
    new = _with_laws(held, flows)
    new._links |= links
    return new


# --- results --------------------------------------------------------------------------------------


SATURATED = 1e-9
"""A link this close to its capacity, relatively, counts as saturated."""


def values_of(system: Assembled, u: Any, told: Any) -> dict[str, Any]:
    """What an equilibrium tells, as arrays over points and flows or links."""
    S, N = system.shape, system.numbers
    F, L = S.flows, S.links
    e, pi, queue, loss, price, drop, mark = np.split(told, np.cumsum([F, F, *[L] * 4]), axis=1)
    # what routers mark of others they drop of those who hear of neither
    deaf = np.array([either not in used(flow.law) for flow in system.net.flows.values()])
    arrival = system.arrivals(u)
    admitted = arrival * (1 - drop)
    full = np.array(S.queued) & (system.queues(u) >= N.q_max)
    return {
        "rate": u[:, :F],
        "one_way_delay": e,
        "rtt": e + (N.trip - N.base),
        "loss": np.where(deaf, pi, _along(S.routes, loss, drop)),
        "mark": np.where(deaf, 0.0, _along(S.routes, mark)),
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


def _along(routes: Iterable[tuple[int, ...]], *ratios: Any) -> Any:
    """The union of ratios (points, links) along routes: array (points, routes)."""
    paths = []
    for route in routes:
        path = np.zeros(len(ratios[0]))
        for l, ratio in product(route, ratios):
            path += (1.0 - path) * ratio[:, l]  # small ones keep their digits
        paths.append(path)
    return np.stack(paths, axis=1)


def least_windows(net: Network, states: Mapping[str, Mapping[str, Any]], rates: Any) -> Any:
    """The smallest window of each flow [packet], infinite where it has none or sends nothing: array
    (..., flows).

    Parameters
    ----------
    states : mapping
        Every law's own states, by flow and state name: numbers or arrays.
    rates : array (..., flows)
        [bit/s]
    """
    least = np.full(rates.shape, math.inf)
    for k, (name, flow) in enumerate(net.flows.items()):
        own = plain(window(flow.law) or "")
        if own in states[name]:  # a flow that is off has none
            least[..., k] = states[name][own]
    return np.where(rates > 0, least, math.inf)


def states_of(system: Assembled, u: Any) -> dict[str, dict[str, Any]]:
    """Every law's own states by name, over points."""
    states: dict[str, dict[str, Any]] = {
        name: {} for name in (*system.net.flows, *system.net.links)
    }
    for _, spec, z, i in system.named_states():
        states[spec.name][plain(z)] = u[:, i]
    queue = np.minimum(system.queues(u), system.numbers.q_max)
    for l, (name, link) in enumerate(system.net.links.items()):
        if link.law.queue is not None:
            states[name][plain(link.law.queue)] = queue[:, l]
    return states


# --- whether an equilibrium stands alone: a search from beside it comes back ----------------------


ASIDE = 1e-3
"""How far the second search starts from the equilibrium, relative to the largest unknown of a
kind.
"""
MOVED = 1e-6
"""What counts as another equilibrium, likewise; a search that slowly closes in on one ends
within 1e-9.
"""
VANISHED = 1e-9
"""What is left of a state that decays, relative to its start."""
NAMED = 6  # in a warning


def undetermined(system: Assembled, search: Search, u: Any) -> tuple[str, ...]:
    """What is not determined at an equilibrium, by name: states as "flow.state" and "link.state",
    else rates.

    Parameters
    ----------
    system : Assembled
        The network at one point.
    search : Search
        Its search.
    u : ndarray (unknowns,)
        The equilibrium.
    """
    size = _sizes(system, u)
    again = search.again(system.numbers, 0, _beside(system, u, size), bold=False)
    near = 4 * again.error if again.error < np.inf else 0.0
    moved = (np.abs(again.u - u) > max(MOVED, near) * size) & (again.status == 0)
    for l in _just_saturated(system, u):
        moved |= _with_a_queue(system, search, u, size, l)
    return _names(system, moved) if moved.any() else ()


def _just_saturated(system: Assembled, u: Any) -> list[int]:
    """Links that are saturated and empty: they may share the queue of another link in any way."""
    c, S = system.numbers.c[0], system.shape
    just = (
        np.array(S.queued) & (system.queues(u) <= 0) & (np.abs(system.arrivals(u) / c - 1) < MOVED)
    )
    return list(np.flatnonzero(just).tolist())


def _with_a_queue(system: Assembled, search: Search, u: Any, size: Any, l: int) -> Any:
    """Which unknowns move if a link keeps a queue, and stays saturated by that; none if it does
    not.
    """
    i = system.shape.flows + l
    v = u.copy()
    natural = system.numbers.times[0, 0]
    v[i] = ASIDE * max(size[i], 0.01 * natural)
    again = search.again(system.numbers, 0, v, bold=False, held=np.array([i]))
    stays = (
        again.status == 0 and abs(system.arrivals(again.u)[l] / system.numbers.c[0, l] - 1) < 1e-9
    )
    return (np.abs(again.u - u) > MOVED * np.maximum(size, 0.01 * ASIDE * natural)) & stays


def _sizes(system: Assembled, u: Any) -> Any:
    """The size of each unknown: that of the largest of its kind, or its own where it is a state.

    A state that has all but vanished since the start is as good as zero.
    """
    F, L = system.shape.flows, system.shape.links
    size = np.maximum(np.abs(u), VANISHED * np.abs(system.numbers.initial[0]))
    for part in (slice(F), slice(F, F + L), slice(F + L, F + 2 * L)):
        size[part] = np.max(size[part], initial=0.0)
    return size


def _beside(system: Assembled, u: Any, size: Any) -> Any:
    """A point at some distance; queues that are empty stay so."""
    F, L = system.shape.flows, system.shape.links
    away = ASIDE * np.random.default_rng(1).uniform(0.5, 1.5, len(u)) * size
    away[F : F + L][system.queues(u) <= 0] = 0.0
    return np.clip(u + away, system.numbers.lower[0], system.numbers.upper[0])


def _names(system: Assembled, moved: Any) -> tuple[str, ...]:
    net, F = system.net, system.shape.flows
    names = [f"{spec.name}.{plain(z)}" for _, spec, z, i in system.named_states() if moved[i]]
    for l, (name, link) in enumerate(net.links.items()):
        law = link.law
        if law.queue is not None and moved[F + l]:
            names.append(f"{name}.{plain(law.queue)}")
    return tuple(names) or tuple(f"{name}.rate" for r, name in enumerate(net.flows) if moved[r])


def warn_undetermined(names: tuple[str, ...]) -> None:
    """Tell that an equilibrium is one of a continuum."""
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        warn(
            "the equilibrium is one of a continuum: nothing determines "
            f"{', '.join(names[:NAMED])}{more}; where a run ends depends on where it starts, so "
            "run fluidcc.simulate from the initial values that are meant",
            stacklevel=4,  # beyond `explained`: the line that asks
        )
