"""Why a network has no equilibrium, or none was found: what grows without limit, and what would
help.

Where following the dynamics does not lead to one, the rest is looked for by the length of one
queue. With that held, more or less arrives at a link than leaves it. Where it turns from more to
less the network rests; if it turns at once, from more to less, it goes back and forth; if it never
turns, it rests nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sympy import Expr, Gt, Heaviside, sign

from fluidcc.base.errors import FluidccError, InvalidInput, NoEquilibrium, SolverError
from fluidcc.equilibria.assembly import Assembled, assemble, switches
from fluidcc.equilibria.sliding import Slid, on_switches
from fluidcc.laws import Steady
from fluidcc.network.parameters import evaluated
from fluidcc.numerics.steady.follow import (
    CONVERGED,
    GROWING,
    UNDEFINED,
    Search,
    SearchEnds,
)
from fluidcc.symbols import c, edot, loss, pi, plain, q_max, unfold, y

LENGTHS = (0.0, *np.logspace(-12.1, -0.1, 25).tolist())
"""The queueing delays that are tried, relative to the longest, and where no law switches; 1e5
times that, beyond a full buffer, is what is offered above the capacity, relative to it.
"""

NEAR = 1e-4
"""So near to its capacity [relative] a search goes on by itself."""

OVERLOAD = 1e3
"""A load that is still rising at this size rises without limit."""

HALVINGS = 100

LARGEST_STATE = 1e20
"""A state of this size, relative to its start and 1, that still moves away from 0 grows without
limit.
"""


class _Load(NamedTuple):
    """What arrives at the link with its queue at a length, relative to its capacity; NaN where
    flows do not settle.
    """

    length: float
    load: float
    found: SearchEnds


class _ByLength(NamedTuple):
    """Result of a search over the lengths of a queue.

    `rest` is the equilibrium; `switch` the length [s] at which the load falls through 1 at once,
    and the load there and a hair beyond; `least` the least load at a length at which the flows
    settle, infinite where they grow at all, 0 where that is not known at the longest, where it
    ended at `end`.
    """

    rest: SearchEnds | None = None
    switch: tuple[float, float, float] | None = None
    least: float = 0.0
    end: SearchEnds | None = None


class _Point:
    """One point of a network, where a search is to be made again."""

    def __init__(self, system: Assembled, search: Search, point: int) -> None:
        self.system, self.search, self.point = system, search, point
        self.flows, self.names = system.shape.flows, [l.name for l in system.wired.links]
        self.c, self.q_max = system.numbers.c[point], system.numbers.q_max[point]
        self.queued = np.array(system.shape.queued)
        self.longest = float(system.numbers.times[point, 1])

    def again(self, u: Any, **how: Any) -> SearchEnds:
        """Where a search from `u` ends."""
        return self.search.again(self.system.numbers, self.point, u, **how)

    def residual(self, u: Any) -> Any:
        return self.search.residual(self.system.numbers, self.point, u)

    def endless(self, u: Any) -> Any:
        """Links with queues that grow without limit."""
        queue = self.system.queues(u)
        long = queue >= 0.01 * max(float(np.max(queue, initial=0.0)), self.longest)
        return self.queued & np.isinf(self.q_max) & long

    def full_load(self, u: Any) -> Any:
        """Links with endless queues at which no less arrives than leaves."""
        return (self.system.arrivals(u) >= self.c * (1 - 1e-6)) & self.endless(u)

    def freed(self, u: Any) -> SearchEnds | None:
        """The equilibrium near `u`, with its queues free."""
        again = self.again(u, ceiling=np.inf, bold=False)
        return again if again.status == CONVERGED else None

    # --- by the length of one queue ---------------------------------------------------------------

    def in_doubt(self, u: Any) -> int:
        """Index of the link that limits the equilibrium, -1 where none has a queue."""
        if not self.queued.any():
            return -1
        queue, full = self.system.queues(u), self.full_load(u)
        if full.any():
            return int(np.argmax(np.where(full, self.system.arrivals(u) / self.c, -1.0)))
        return int(np.argmax(np.where(self.queued, queue, -1.0)))

    def by_length(self, u: Any, link: int) -> _ByLength:
        """Hold the queue of a link at many lengths, and beside it the endless ones as they are."""
        if link < 0:
            return _ByLength()
        full, now, kept = float(self.q_max[link]), self.system.queues(u)[link], self.endless(u)
        kept[link] = True

        def held(length: float, start: Any) -> _Load:
            return self._load(length, start, link, self.flows + np.flatnonzero(kept))

        lengths = [q * self.longest for q in LENGTHS if q * self.longest < full]
        lengths += [full + 1e5 * q for q in LENGTHS if np.isfinite(full)]
        lengths += [now] if lengths[-1] < now < full else []
        loads = [held(lengths[-1], u)]
        while loads[0].found.status != CONVERGED:  # queues may grow beside it
            more = self.endless(loads[0].found.u) & ~kept
            if not more.any():
                break
            kept |= more
            u = loads[0].found.u.copy()
            u[self.flows + np.flatnonzero(more)] = lengths[-1]
            loads = [held(lengths[-1], u)]
        if loads[0].load < 1 and (rest := self.freed(loads[0].found.u)) is not None:
            return _ByLength(rest)
        for length in lengths[-2::-1]:  # from the longest on: most flows are slowest there
            last = loads[-1].found
            loads.append(held(length, last.u if last.status == CONVERGED else u))
        loads.reverse()
        if loads[0].load <= 1 and (rest := self.freed(loads[0].found.u)) is not None:
            return _ByLength(rest)
        for low, high in pairwise(loads):
            if low.load > 1 >= high.load:
                low, high = _halved(held, low, high)
                for end in sorted((low, high), key=lambda one: abs(one.load - 1)):
                    near = abs(end.load - 1) < NEAR
                    if near and (rest := self.freed(end.found.u)) is not None:
                        return _ByLength(rest)
                at_once = low.load - high.load > NEAR and (
                    high.length - low.length <= 1e-12 * max(high.length, 1e-8 * self.longest)
                )
                if at_once and self._determined(held, low) and self._determined(held, high):
                    return _ByLength(switch=(high.length, low.load, high.load))
        told = [one.load for one in loads if not np.isnan(one.load)]
        least = 0.0 if np.isnan(loads[-1].load) else min(told)
        return _ByLength(least=least, end=loads[-1].found)

    def _load(self, length: float, start: Any, link: int, kept: Any) -> _Load:
        v = start.copy()
        v[self.flows + link] = length
        found = self.again(v, ceiling=np.inf, held=kept)
        told = found.told[2 * self.flows + len(self.c) :].reshape(4, -1)
        lost, drop = told[::2, link]
        load = self.system.arrivals(found.u)[link] * (1 - drop) * (1 - lost) / self.c[link]
        if found.status != CONVERGED:
            load = np.inf if found.status == GROWING or load > OVERLOAD else np.nan
        return _Load(length, float(load), found)

    def _determined(self, held: Any, one: _Load) -> bool:
        """Whether the load at a length is the same from another start: rates that keep as they are
        may be any.
        """
        if one.found.status != CONVERGED:
            return not np.isnan(one.load)
        v, S = one.found.u.copy(), self.system.shape
        first = S.flows + 2 * S.links
        v[first : first + sum(S.states[: S.flows])] *= 1.5
        return bool(abs(held(one.length, v).load - one.load) < NEAR * one.load)

    # --- why there is none ------------------------------------------------------------------------

    def why_rate(self, u: Any) -> str:
        """For a rate that grows without limit."""
        links = self.system.wired.net.links
        flow = self.system.wired.flows[int(np.argmax(u[: self.flows]))]
        slopes = any(unfold(f).has(edot) for f in flow.law.flow.values())
        start = (
            f"flow {flow.name!r} ({flow.law.name}) raises its rate without limit, as nothing on "
            f"its path slows it{' at rest, where the slope of its delay is 0' if slopes else ''}: "
        )
        queued = [name for name in flow.route if links[name].law.queue is not None]
        endless_path = queued and not any(np.isfinite(links[name].buffer) for name in queued)
        if endless_path and any(unfold(f).has(loss, pi) for f in flow.law.flow.values()):
            return (
                start
                + f"its law uses losses, but no buffer on {', '.join(queued)} is finite; give one"
            )
        return (
            start + f"give {', '.join(flow.route)} "
            f"{'a larger buffer, or ' if queued and not endless_path else ''}"
            "a law with a signal (delay, loss, mark, price or offer) that the flow uses"
        )

    def why_state(self, u: Any) -> str:
        """The state that has grown beyond all sizes and still grows, if there is one."""
        start = np.maximum(np.abs(self.system.numbers.initial[self.point]), 1.0)
        growing = (np.abs(u) > LARGEST_STATE * start) & (np.sign(self.residual(u)) * u > 0)
        for kind, spec, z, i in self.system.named_states():
            if growing[i]:
                return (
                    f"state {plain(z)} of {kind} {spec.name!r} ({spec.law.name}) grows without "
                    f"limit, as nothing that it moves brings it to rest: at {u[i]:.3g} it still "
                    "grows; bound it (upper=), choose laws that answer it, or simulate"
                )
        return ""

    def why_switch(self, l: int, switch: tuple[float, float, float]) -> str:
        """For a link whose flows switch at a length of its queue."""
        length, before, after = switch
        capacity, over = float(self.c[l]), length - float(self.q_max[l])
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
            f"link {self.names[l]!r} has {capacity:.6g} bit/s, and its flows switch where "
            f"{at}: just below, {less} arrives, just above, {after * capacity:.6g} bit/s, so that "
            "the network goes back and forth over it; simulate it"
        )

    def why_queue(self, u: Any, l: int) -> str:
        """For a link to which more comes than leaves, however long its queue."""
        flows = [f.name for f in self.system.wired.flows]
        on = [r for r, route in enumerate(self.system.shape.routes) if l in route and u[r] > 0]
        on.sort(key=lambda r: -u[r])
        rates = ", ".join(f"{flows[r]!r} {u[r]:.6g}" for r in on[:5]) + ", ..." * (len(on) > 5)
        alike: dict[str, list[str]] = {}
        for r in on[:5]:
            alike.setdefault(self._floor(r), []).append(repr(flows[r]))
        floors = [f"{', '.join(names)} never {'fall' if len(names) > 1 else 'falls'} below {what}"
                  for what, names in alike.items() if what]  # fmt: skip
        return (
            f"link {self.names[l]!r} has {self.c[l]:.6g} bit/s and an infinite buffer, and its "
            "queue grows without limit: however long the delay, its flows send "
            f"{self.system.arrivals(u)[l]:.6g} bit/s ({rates})"
            + (f", as {'; '.join(floors)}" if floors else "")
            + "; give it a finite buffer, more capacity or fewer flows"
        )

    def _floor(self, r: int) -> str:
        """A lower bound of the rate that the law itself claims without loss, such as (20) of
        LDCC.
        """
        law = self.system.laws[0][r] or self.system.wired.flows[r].law
        for label, claim in law.claims.items():
            relation = claim.relation if isinstance(claim, Steady) else None
            if (
                isinstance(relation, Gt)
                and relation.lhs == law.out["rate"]
                and relation.rhs.free_symbols <= {*law.params}
            ):
                value = evaluated(relation.rhs, self.system.wired.flow(r, law))
                least = self.system.wired.array([value])[0, self.point]
                return f"{relation.rhs} = {least:.6g} bit/s, {label} of {law.name}"
        return ""

    def why_undefined(self, u: Any) -> str:
        """The flow or link whose law is not finite."""
        G, trip = self.residual(u), self.system.numbers.trip[self.point]
        for kind, spec, _, i in self.system.named_states():
            if np.isfinite(G[i]):
                continue
            start = (
                f"{kind} {spec.name!r} ({spec.law.name}) has no finite rate of change at its start"
            )
            if kind == "flow" and trip[self.system.wired.flows.index(spec)] == 0:
                return (
                    f"{start}, where its round trip takes no time: give its links or its access "
                    "a delay"
                )
            return f"{start}: give other initial states or parameters"
        return "the network has no finite rates at its start: give other initial states or delays"

    def tried(self, found: SearchEnds) -> str:
        """What a search did that has neither found an equilibrium nor why there is none."""
        queue = self.system.queues(found.u)
        l = int(np.argmax(queue))
        end = "grew without end" if found.status == GROWING else "did not converge"
        remedy = self._relay() or (
            "give initial states nearer to it or finite buffers, or simulate and look where it goes"
        )
        return (
            f"the search for an equilibrium {end} in {found.steps} steps (last relative step "
            f"{found.error:.1e}; the longest queue, of link {self.names[l]!r}, was at "
            f"{min(queue[l], self.q_max[l]):.3g} s), nor was one found with that queue held at any "
            f"length: {remedy}"
        )

    def _relay(self) -> str:
        """What to do where a law of a flow switches, if one does."""
        for flow in self.system.wired.flows:
            slopes = [unfold(f) for f in flow.law.flow.values()]
            for step in sorted({s for f in slopes for s in f.atoms(Heaviside, sign)}, key=str):
                if not step.args[0].is_number:
                    return (
                        f"flow {flow.name!r} ({flow.law.name}) switches where {step.args[0]} = 0, "
                        "and no rest was found on either side of that, nor one on it by a mean of "
                        "both: see where fluidcc.simulate leads (attrs['slides']: how often it "
                        "began to slide), or fluidcc.limit_cycle if that repeats"
                    )
        return ""


def _halved(held: Any, low: _Load, high: _Load) -> tuple[_Load, _Load]:
    """Lengths as near to one another as tells them apart, of which the shorter still has too much
    load.
    """
    for _ in range(HALVINGS):
        far = low.length > 0 and high.length > 4 * low.length
        middle = (
            float(np.sqrt(low.length * high.length)) if far else 0.5 * (low.length + high.length)
        )
        if high.length - low.length <= 1e-13 * high.length:  # nearer, flows hardly move
            break
        one = held(middle, high.found.u)
        if np.isnan(one.load):
            break
        low, high = (one, high) if one.load > 1 else (low, one)
        if abs(one.load - 1) < 1e-12:
            break
    return low, high


def settled(
    system: Assembled, search: Search, point: int, found: SearchEnds, alone: bool
) -> SearchEnds | Slid | FluidccError:
    """The equilibrium at a point, on switches where that is the only one, or the exception that
    says why there is none; `found` is that point's search.

    The switches of links are looked at where the point is `alone`, with its network's numbers.
    """
    if found.status == CONVERGED and not (alone and on_a_switch(system, found.u)):
        return found
    at = _Point(system, search, point)
    if found.status == UNDEFINED:
        return InvalidInput(at.why_undefined(found.u))
    across = across_switches(system) if alone and found.status != GROWING else None
    if isinstance(across, SearchEnds):
        return across
    l = at.in_doubt(found.u)
    lengths = _ByLength() if across else at.by_length(found.u, l)
    if lengths.rest is not None:
        return lengths.rest
    slid = on_switches(system, point)
    if slid and not (isinstance(slid, SearchEnds) and alone and on_a_switch(system, slid.u)):
        return slid
    if across:
        return NoEquilibrium(across)
    if lengths.switch is not None:
        return NoEquilibrium(at.why_switch(l, lengths.switch))
    end = lengths.end or found
    if 1 < lengths.least < np.inf and at.full_load(end.u)[l]:
        return NoEquilibrium(at.why_queue(end.u, l))
    growing = found.status == GROWING and (lengths.least > 1 or l < 0)
    if lengths.least == np.inf or growing:
        return NoEquilibrium(at.why_rate(end.u))
    endless = at.why_state(found.u)
    return NoEquilibrium(endless) if endless else SolverError(at.tried(found))


# --- equilibria of networks with links that switch ------------------------------------------------


_ON = 1e-9
"""What is this close to a switch, relative to the sizes compared, is on it."""


def across_switches(system: Assembled) -> SearchEnds | str | None:
    """Look on both sides of the one switch that a network's links have.

    Parameters
    ----------
    system : Assembled
        The network at one point, where a search has failed.

    Returns
    -------
    SearchEnds, str or None
        An equilibrium; or why there is none; or None if that cannot be said: no link switches, or
        several do.
    """
    only = _only(system)
    if only is None:
        return None
    said = []
    for on in (1, 0):
        side = _switched(system, *only, on)
        search = Search(side.shape)
        there = search.everywhere(side.numbers).point(0)
        if there.status != CONVERGED:
            said.append("no rest was found")
            continue
        value = _value(side, only[0], only[1].args[0], there.u)
        if (value > _ON) if on else (value < -_ON):
            return there
        said.append(
            "the rest is on the switch" if abs(value) <= _ON else "the rest is beyond the switch"
        )
    l, switch = only
    link = system.wired.links[l]
    return (
        f"link {link.name!r} ({link.law.name}) switches where {switch.args[0]} = 0, and the "
        f"network rests on neither side: with the switch on {said[0]}, with it off {said[1]}; "
        "simulate it, or see fluidcc.limit_cycle"
    )


def on_a_switch(system: Assembled, u: Any) -> bool:
    """Whether an equilibrium is on the one switch of a network's links, which any deviation then
    switches.
    """
    only = _only(system)
    return only is not None and abs(_value(system, only[0], only[1].args[0], u)) <= _ON


def _only(system: Assembled) -> tuple[int, Heaviside] | None:
    """The link that switches, and its switch, if there is one only."""
    found = [(l, s) for l, law in enumerate(system.laws[1]) for s in switches(law)]
    return found[0] if len(found) == 1 else None


def _switched(system: Assembled, l: int, switch: Heaviside, value: int) -> Assembled:
    """The network with the switch held."""
    flows, links = system.laws
    law = links[l]

    def side(f: Any) -> Expr:
        return unfold(f).subs(switch, value)

    held = replace(
        law,
        flow={z: side(f) for z, f in law.flow.items()},
        out={key: side(f) for key, f in law.out.items()},
        claims={},
    )
    return assemble(system.wired, (flows, [*links[:l], held, *links[l + 1 :]]))


def _value(system: Assembled, l: int, compared: Expr, u: Any) -> float:
    """What is compared at an equilibrium, relative to its size."""
    law = system.laws[1][l]
    at: dict[Any, Any] = {
        y: system.arrivals(u)[l], c: system.numbers.c[0, l], q_max: system.numbers.q_max[0, l],
        **dict(zip([z for z in law.states if z != law.queue], u[system.states[1][l]], strict=True)),
        **law.params,
    }  # fmt: skip
    if law.queue is not None:
        at[law.queue] = min(system.queues(u)[l], system.numbers.q_max[0, l])
    sizes = [abs(evaluated(term, at)) for term in compared.expand().as_ordered_terms()]
    return float(evaluated(compared, at)) / max(*sizes, 1e-300)
