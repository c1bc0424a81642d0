"""Why a network has no equilibrium, or none was found: what grows without limit, and what would
help.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Expr, Gt, Heaviside

from fluidcc.base.errors import FluidccError, InvalidInput, NoEquilibrium, SolverError
from fluidcc.equilibria.assembly import Assembled, assemble
from fluidcc.equilibria.held_queue import ByLength, by_length
from fluidcc.laws import Steady
from fluidcc.network.parameters import evaluated
from fluidcc.numerics.steady.follow import (
    CONVERGED,
    GROWING,
    LONGEST_QUEUE,
    UNDEFINED,
    Found,
    Search,
)
from fluidcc.symbols import c, pi, plain, q_max, unfold, y

if TYPE_CHECKING:
    from fluidcc.laws import Link

__all__ = ["across_switches", "on_a_switch", "settled"]


LARGEST_STATE = 1e20
"""A state of this size, relative to its start and 1, that still moves away from 0 grows without
limit.
"""

DOUBTFUL_QUEUE = 30.0
"""Where a search stalls, a queue without limit and longer than this [s] is looked at for growth."""


def settled(
    system: Assembled, search: Search, point: int, found: Found, alone: bool
) -> Found | FluidccError:
    """The equilibrium at a point, or the exception that says why there is none; `found` is that
    point's search.

    Switches of links are looked at where the point is `alone`, with the numbers of its network.
    """
    if found.status == CONVERGED and not (alone and on_a_switch(system, found.u)):
        return found
    if found.status == UNDEFINED:
        return InvalidInput(_why_undefined(system, search, point, found.u))
    across = across_switches(system) if alone and found.status != GROWING else None
    if across is not None:
        return NoEquilibrium(across) if isinstance(across, str) else across
    u = found.u if found.status == GROWING else _longer(system, point, found.u)
    held = _held(system, search, point, u)
    if held is not None and (again := _from_above(system, search, point, held)) is not None:
        return again
    l, lengths = _lengths(system, search, point, u if held is None else held.u)
    if lengths.rest is not None:
        return lengths.rest
    if lengths.switch is not None:
        return NoEquilibrium(_why_switch(system, point, l, lengths.switch))
    always = lengths.least > 1
    if (
        always
        and held is not None
        and held.status == CONVERGED
        and _full_load(system, point, held.u)[l]
    ):
        return NoEquilibrium(_why_queue(system, point, held.u, l))
    growing = GROWING in (found.status, None if held is None else held.status)
    if lengths.least == np.inf or (growing and (always or l < 0)):
        return NoEquilibrium(_why_rate(system, u if held is None else held.u))
    endless = _why_state(system, search, point, found.u)
    return NoEquilibrium(endless) if endless else SolverError(_tried(system, point, found))


def _lengths(system: Assembled, search: Search, point: int, u: Any) -> tuple[int, ByLength]:
    """The link in doubt, -1 where none has a queue, and what its rest is by the length of its
    queue.
    """
    queued = np.array(system.shape.queued)
    if not queued.any():
        return -1, ByLength()
    full = _full_load(system, point, u)
    sizes = np.where(
        full, system.arrivals(u) / system.numbers.c[point], np.where(queued, system.queues(u), -1.0)
    )
    l = int(np.argmax(np.where(full, sizes, -1.0) if full.any() else sizes))
    return l, by_length(system, search, point, u, l, np.flatnonzero(_endless(system, point, u)))


def _longer(system: Assembled, point: int, u: Any) -> Any:
    """Where a search stalled, with those queues much longer that seem to grow without limit."""
    u = u.copy()
    queue = system.queues(u)
    growing = (
        np.array(system.shape.queued)
        & np.isinf(system.numbers.q_max[point])
        & (queue > DOUBTFUL_QUEUE)
    )
    queue[growing] = LONGEST_QUEUE * queue[growing] / np.max(queue[growing], initial=1.0)
    return u


def _held(system: Assembled, search: Search, point: int, u: Any) -> Found | None:
    """Where the flows would settle if the endless queues were held at their present length; None
    without such.

    Queues that grow without end beside those are held, too, at the length of the longest.
    """
    endless, first = _endless(system, point, u), system.shape.flows
    if not np.any(endless):
        return None
    longest = float(np.max(system.queues(u)))
    for _ in endless:
        held = search.again(
            system.numbers, point, u, ceiling=np.inf, held=first + np.flatnonzero(endless)
        )
        more = endless | _endless(system, point, held.u)
        if held.status == CONVERGED or np.all(more == endless):
            break
        u, endless = held.u.copy(), more
        u[first + np.flatnonzero(endless)] = longest
    return held


def _from_above(system: Assembled, search: Search, point: int, held: Found) -> Found | None:
    """Search again from long queues where these would drain: gains that fall with the delay can
    outrun a search.
    """
    if held.status != CONVERGED or np.any(_full_load(system, point, held.u)):
        return None
    ceiling = max(LONGEST_QUEUE, 10 * float(np.max(system.queues(held.u))))
    again = search.again(system.numbers, point, held.u, ceiling=ceiling, bold=False)
    return again if again.status == CONVERGED else None


def _full_load(system: Assembled, point: int, u: Any) -> Any:
    """Links with endless queues at which no less arrives than leaves."""
    enough = system.arrivals(u) >= system.numbers.c[point] * (1 - 1e-6)
    return enough & _endless(system, point, u)


def _endless(system: Assembled, point: int, u: Any) -> Any:
    """The links whose queues have grown without limit."""
    queue = system.queues(u)
    long = queue >= max(0.01 * float(np.max(queue, initial=0.0)), 1e3)
    return np.array(system.shape.queued) & np.isinf(system.numbers.q_max[point]) & long


def _tried(system: Assembled, point: int, found: Found) -> str:
    """What a search did that has neither found an equilibrium nor why there is none."""
    queue, names = system.queues(found.u), system.net.link_names
    l = int(np.argmax(queue))
    longest = min(queue[l], system.numbers.q_max[point, l])
    end = "grew without end" if found.status == GROWING else "did not converge"
    return (
        f"the search for an equilibrium {end} in {found.steps} steps (last relative step "
        f"{found.error:.1e}; the longest queue, of link {names[l]!r}, was at {longest:.3g} s), "
        "nor was one found with that queue held at any length: give initial states nearer to it "
        "or finite buffers, or simulate and look where it goes"
    )


def _why_rate(system: Assembled, u: Any) -> str:
    net = system.net
    flow = list(net.flows.values())[int(np.argmax(u[: system.shape.flows]))]
    start = (
        f"flow {flow.name!r} ({flow.law.name}) raises its rate without limit, as nothing on its "
        "path slows it: "
    )
    queued = [name for name in flow.route if net.links[name].law.queue is not None]
    endless_path = queued and not any(np.isfinite(net.links[name].buffer) for name in queued)
    if endless_path and any(unfold(f).has(pi) for f in flow.law.flow.values()):
        return (
            start
            + f"its law hears losses, but no buffer on {', '.join(queued)} is finite; give one"
        )
    return (
        start
        + f"give {', '.join(flow.route)} a law whose signal (delay, loss, mark or price) it hears"
    )


def _why_state(system: Assembled, search: Search, point: int, u: Any) -> str:
    """The state that has grown beyond all sizes and still grows, if there is one."""
    start = np.maximum(np.abs(system.numbers.initial[point]), 1.0)
    growing = (np.abs(u) > LARGEST_STATE * start) & (
        search.residual(system.numbers, point, u) * u > 0
    )
    for kind, spec, z, i in system.named_states():
        if growing[i]:
            return (
                f"state {plain(z)} of {kind} {spec.name!r} ({spec.law.name}) grows without "
                f"limit, as nothing that it moves brings it to rest: at {u[i]:.3g} it still "
                "grows; choose laws that answer it, or simulate"
            )
    return ""


def _why_switch(system: Assembled, point: int, l: int, switch: tuple[float, float, float]) -> str:
    length, before, after = switch
    capacity, over = (
        float(system.numbers.c[point, l]),
        length - float(system.numbers.q_max[point, l]),
    )
    at = (
        f"{over / (1 + over):.6g} of what arrives is lost"
        if over > 0
        else f"its queueing delay is {length:.6g} s"
    )
    less = (
        f"{before * capacity:.6g} bit/s"
        if np.isfinite(before)
        else "a rate that grows without limit"
    )
    return (
        f"link {system.net.link_names[l]!r} has {capacity:.6g} bit/s, and its flows switch where "
        f"{at}: just below, {less} arrives, just above, {after * capacity:.6g} bit/s, so that "
        "the network goes back and forth over it; simulate it"
    )


def _why_queue(system: Assembled, point: int, u: Any, l: int) -> str:
    """For a link to which more comes than leaves, however long its queue."""
    flows = system.net.flow_names
    arrivals, capacities = system.arrivals(u), system.numbers.c[point]
    on = [r for r, route in enumerate(system.shape.routes) if l in route and u[r] > 0]
    on.sort(key=lambda r: -u[r])
    rates = ", ".join(f"{flows[r]!r} {u[r]:.6g}" for r in on[:5]) + ", ..." * (len(on) > 5)
    arrival, capacity = float(arrivals[l]), float(capacities[l])
    name = system.net.link_names[l]
    start = (
        f"link {name!r} has {capacity:.6g} bit/s and an infinite buffer, and its queue grows "
        "without limit: "
    )
    alike: dict[str, list[str]] = {}
    for r in on[:5]:
        alike.setdefault(_floor(system, point, r), []).append(repr(flows[r]))
    floors = [f"{', '.join(names)} never {'fall' if len(names) > 1 else 'falls'} below {what}"
              for what, names in alike.items() if what]  # fmt: skip
    why = f"however long the delay, its flows send {arrival:.6g} bit/s ({rates})"
    why += f", as {'; '.join(floors)}" if floors else ""
    return start + why + "; give it a finite buffer, more capacity or fewer flows"


def _why_undefined(system: Assembled, search: Search, point: int, u: Any) -> str:
    """Whose law gives no number."""
    G = search.residual(system.numbers, point, u)
    for kind, spec, _, i in system.named_states():
        if np.isfinite(G[i]):
            continue
        start = f"{kind} {spec.name!r} ({spec.law.name}) has no finite rate of change at its start"
        if (
            kind == "flow"
            and system.numbers.trip[point, system.net.flow_names.index(spec.name)] == 0
        ):
            return (
                f"{start}, where its round trip takes no time: give its links or its access a delay"
            )
        return f"{start}: give other initial states or parameters"
    return "the network has no finite rates at its start: give other initial states or delays"


def _floor(system: Assembled, point: int, r: int) -> str:
    """A lower bound of the rate that the law itself claims without loss, such as (20) of LDCC."""
    law = list(system.net.flows.values())[r].law
    for label, claim in law.claims.items():
        relation = claim.relation if isinstance(claim, Steady) else None
        if (
            isinstance(relation, Gt)
            and relation.lhs == law.out["rate"]
            and relation.rhs.free_symbols <= {*law.params}
        ):
            least = evaluated(relation.rhs, system.parameters(point, r))
            return f"{relation.rhs} = {least:.6g} bit/s, {label} of {law.name}"
    return ""


# --- rest of networks whose links switch ----------------------------------------------------------


_ON = 1e-9
"""What is this close to a switch, relative to the sizes compared, is on it."""


def across_switches(system: Assembled) -> Found | str | None:
    """Look on both sides of the one switch that a network's links have.

    Parameters
    ----------
    system : Assembled
        The network at one point, where a search has failed.

    Returns
    -------
    Found, str or None
        An equilibrium; or why there is none; or None if that cannot be said: no link switches, or
        several do.
    """
    only = _only(system)
    if only is None:
        return None
    name, switch = only
    said = []
    for on in (1, 0):
        side = _switched(system, name, switch, on)
        search = Search(side.shape)
        there = search.everywhere(side.numbers).point(0)
        if there.status != CONVERGED:
            said.append("no rest was found")
            continue
        value = _value(side, name, switch.args[0], there.u)
        if (value > _ON) if on else (value < -_ON):
            return there
        said.append(
            "the rest is on the switch" if abs(value) <= _ON else "the rest is beyond the switch"
        )
    law = system.net.links[name].law
    return (
        f"link {name!r} ({law.name}) switches where {switch.args[0]} = 0, and the network rests "
        f"on neither side: with the switch on {said[0]}, with it off {said[1]}; simulate it, or "
        "see fluidcc.limit_cycle"
    )


def on_a_switch(system: Assembled, u: Any) -> bool:
    """Whether an equilibrium is on the one switch of a network's links, which any deviation then
    switches.
    """
    only = _only(system)
    return only is not None and abs(_value(system, only[0], only[1].args[0], u)) <= _ON


def _only(system: Assembled) -> tuple[str, Heaviside] | None:
    """The link that switches, and its switch, if there is one only."""
    found = [(name, s) for name, link in system.net.links.items() for s in _switches(link.law)]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=256)
def _switches(law: Link) -> set[Heaviside]:
    """Jumps of a law where what is compared moves."""
    moving = {y, *law.states}
    atoms = {s for _, f in law.expressions() for s in unfold(f).atoms(Heaviside)}
    return {s for s in atoms if s.args[0].free_symbols & moving}


def _switched(system: Assembled, name: str, switch: Heaviside, value: int) -> Assembled:
    """The network with the switch held."""
    link = system.net.links[name]

    def side(f: Any) -> Expr:
        return unfold(f).subs(switch, value)

    law = replace(
        link.law,
        flow={z: side(f) for z, f in link.law.flow.items()},
        out={key: side(f) for key, f in link.law.out.items()},
        claims={},
    )
    net = system.net.copy()
    net._links[name] = replace(link, law=law)
    return assemble(net, system.at, system.shape.many)


def _value(system: Assembled, name: str, compared: Expr, u: Any) -> float:
    """What is compared at an equilibrium, relative to its size."""
    l = system.net.link_names.index(name)
    law = system.net.links[name].law
    at: dict[Any, Any] = {
        y: system.arrivals(u)[l], c: system.numbers.c[0, l], q_max: system.numbers.q_max[0, l],
        **dict(zip([z for z in law.states if z != law.queue], u[system.states[1][l]], strict=True)),
        **law.params,
    }  # fmt: skip
    if law.queue is not None:
        at[law.queue] = min(system.queues(u)[l], system.numbers.q_max[0, l])
    sizes = [abs(evaluated(term, at)) for term in compared.expand().as_ordered_terms()]
    return float(evaluated(compared, at)) / max(*sizes, 1e-300)
