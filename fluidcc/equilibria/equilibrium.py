"""Equilibria of a network: which links saturate, which buffers are full, and every rate, delay and
loss there.

The conditions are the laws' own (flows of states that vanish, or push against a bound) and
complementarity at each queue: it is empty and has room to spare, or it is between its ends and its
capacity is used up, or it is full and loses the excess. Derivatives are the laws' exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained
from fluidcc.base.errors import warn
from fluidcc.equilibria.many import equilibria, few_digits, held, system_of
from fluidcc.laws.sliding import Share
from fluidcc.network.network import require_network
from fluidcc.network.parameters import Parameters
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.equilibria.assembly import Assembled
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network import Network
    from fluidcc.numerics.steady.follow import Search

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
        one of them, with a warning; ``free`` names the undetermined states. Where a law switches
        and neither side has one, it may be on the switch (see ``sliding``).

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
    found = equilibria(Parameters(net), at)
    rest, free = found.point(0), _free(found.solved)
    warn_undetermined(free)
    if rest.error == math.inf and not free:
        rest = replace(rest, warnings=(*rest.warnings, few_digits(math.inf)))
    return replace(rest, free=free, _net=net)


def one_equilibrium(net: Network, at: float | str = math.inf) -> Equilibrium:
    """As `equilibrium`, without looking whether there are others beside it."""
    return replace(equilibria(Parameters(net), at).point(0), _net=net)


def _free(one: Any) -> tuple[str, ...]:
    """Undetermined states, by name: found with two flows of each kind, and named for all of
    them.
    """
    from fluidcc.equilibria.sliding import common_shares, in_shares
    from fluidcc.numerics.steady.follow import Search

    system, search, u = one.system, one.search, one.found.u[0]
    if slid := one.slid.get(0):
        system, search, u = slid.system, slid.search, slid.found.u
    wired = system.wired
    if max(wired.many) == 1:
        return undetermined(system, search, u)
    F, L, (flows, links) = system.shape.flows, system.shape.links, system.states
    free: tuple[str, ...] = ()
    for more in (wired.in_pairs(), wired.apart()):
        where = [int(wired.row[wired.place[names[0]]]) for names in more.kinds]
        own = [i for k in where for i in flows[k]] + [i for of in links for i in of]
        wider, alike = system_of(more), []
        if slid:
            wider = in_shares(wider, slid.slower) or wider
            # what is the same for all of a kind cannot have another share for each
            others = [k for k, row in enumerate(where) if row in where[:k]]
            alike = [i for k in others for i in common_shares(wider, k)]
        start = u[[*where, *range(F, F + 2 * L), *own]]
        free = undetermined(wider, Search(wider.shape), start, alike)
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
    found = held(net)
    return net if found is net else found.copy()


# --- isolated equilibria: a search that starts beside one returns to it ---------------------------


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


def undetermined(
    system: Assembled, search: Search, u: Any, kept: Sequence[int] = ()
) -> tuple[str, ...]:
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
    kept : sequence of int
        Unknowns that stay as they are.
    """
    size, held = _sizes(system, u), np.array(kept, int)
    start = _beside(system, u, size)
    start[held] = u[held]
    again = search.again(system.numbers, 0, start, bold=False, held=held)
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
    F = system.shape.flows
    names = [
        f"{spec.name}.{plain(z)}"
        for _, spec, z, i in system.named_states()
        if moved[i] and not isinstance(z, Share)
    ]
    for l, link in enumerate(system.wired.links):
        if link.law.queue is not None and moved[F + l]:
            names.append(f"{link.name}.{plain(link.law.queue)}")
    flows = enumerate(system.wired.flows)
    return tuple(names) or tuple(f"{flow.name}.rate" for r, flow in flows if moved[r])


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
