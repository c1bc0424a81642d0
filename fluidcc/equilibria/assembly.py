"""A network's table as a search for its steady state takes it: structure, and numbers in rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Heaviside, Symbol

from fluidcc.laws.bytecode import hears_rate, link_tape, source_tape
from fluidcc.laws.parts import told_apart
from fluidcc.laws.sliding import Share
from fluidcc.network.parameters import evaluated
from fluidcc.network.wired import Wired, bounds, is_on, own_states
from fluidcc.numerics.steady.state import Numbers, Shape
from fluidcc.symbols import c, q_max, unfold, y

if TYPE_CHECKING:
    from fluidcc.laws import Law
    from fluidcc.numerics.tape import Tape


@lru_cache(maxsize=256)
def switches(law: Any) -> set[Heaviside]:
    """Return the step functions of a link's law that depend on its arrivals or states."""
    moving = {y, *law.states}
    atoms = {s for _, f in law.expressions() for s in unfold(f).atoms(Heaviside)}
    return {s for s in atoms if s.args[0].free_symbols & moving}


@dataclass(frozen=True)
class Assembled:
    """A network at one time: its table, the laws at rest of its rows and links (None of a row with
    a constant rate), its structure, and its numbers at one or more points.
    """

    wired: Wired
    laws: tuple[list[Any], list[Any]]
    shape: Shape
    numbers: Numbers

    def queues(self, u: Any) -> Any:
        """The queues s among some unknowns."""
        return u[..., self.shape.flows : self.shape.flows + self.shape.links]

    def arrivals(self, u: Any) -> Any:
        """The arrival rates among some unknowns [bit/s]."""
        first = self.shape.flows + self.shape.links
        return u[..., first : first + self.shape.links]

    @cached_property
    def states(self) -> tuple[list[list[int]], list[list[int]]]:
        """Which unknowns are the states of each row of flows, and those of each link other than
        its queue.
        """
        S = self.shape
        ends = np.cumsum([S.flows + 2 * S.links, *S.states]).tolist()
        own = [list(range(a, b)) for a, b in pairwise(ends)]
        return own[: S.flows], own[S.flows :]

    def named_states(self) -> Iterator[tuple[str, Any, Symbol, int]]:
        """Kind and spec of what has each state, the state, and which unknown it is."""
        both: Any = (self.wired.flows, self.wired.links)
        for kind, specs, laws, places in zip(
            ("flow", "link"), both, self.laws, self.states, strict=True
        ):
            for spec, law, own in zip(specs, laws, places, strict=True):
                for z, i in zip(own_states(law) if law else (), own, strict=True):
                    yield kind, spec, z, i


LONGEST_QUEUE = 1e6
"""A queueing delay beyond which a queue counts as growing without limit, relative to the longest of
round trips, times that packets take, and times in laws.
"""


def assemble(wired: Wired, laws: tuple[list[Any], list[Any]]) -> Assembled:
    """The arrays of a network at one time, with these laws of its rows and links; a law of None is
    a constant rate.

    Raises
    ------
    Unsupported
        If a bound of a state varies.
    """
    table = _Columns(wired)
    for k, law in enumerate(laws[0]):
        table.flow(k, law)
    for l, law in enumerate(laws[1]):
        table.link(l, law)
    return Assembled(wired, laws, _shape(wired, *laws), table.numbers())


class _Columns:
    """Columns of the numbers of all points, one thing after the other."""

    def __init__(self, wired: Wired) -> None:
        self.wired = wired
        self.columns: dict[str, list[Any]] = {
            name: [] for name in (*Numbers._fields, "initial", "lower", "upper")
        }
        self.times: list[Any] = []  # of laws [s]
        self.queues: list[float] = []  # how long each may get

    def flow(self, k: int, law: Law | None) -> None:
        """Add a row of flows; one without a law has a constant rate."""
        wired, to, f = self.wired, self.columns, self.wired.flows[k]
        _, forward, back, size = wired.delays[k]
        to["base"].append(forward)
        to["trip"].append(forward + back)
        rate: Any = wired.rates[k] or 0.0
        if law is not None:
            known = wired.flow(k, law)
            to["par"] += [0.0, back, size, *(known[s] for s in law.params)]
            self._states("flow", f.name, law, known)
        elif f.pattern is None and wired.given.touches("flow", f.name) and is_on(f, wired.at):
            rate = evaluated(f.law.out["rate"], wired.flow(k, f.law))
        to["rate"].append(rate)

    def link(self, l: int, law: Any) -> None:
        """Add a link."""
        known, to = self.wired.link(l, law), self.columns
        to["c"].append(known[c])
        to["q_max"].append(known[q_max])
        to["par"] += [known[c], known[q_max], *(known[s] for s in law.params)]
        self.queues.append(0.0 if law.queue is None else math.inf)
        self._states("link", self.wired.links[l].name, law, known)

    def _states(self, kind: str, name: str, law: Law, known: Mapping[Symbol, Any]) -> None:
        """Add initial values and bounds of a law's states, and its times."""
        states, to = own_states(law), self.columns
        self.times += [known[s] for s in law.params if law.units.get(s) == "s"]
        given = self.wired.given
        to["initial"] += [
            law.initial[z] if isinstance(z, Share) else given.initial(kind, name, z, known)
            for z in states
        ]
        for side, ends in zip(("lower", "upper"), bounds(law, states, known), strict=True):
            to[side] += ends

    def numbers(self) -> Numbers:
        """All numbers as arrays (points, ...): none bounds rates and arrivals, 0 bounds queues."""
        to, F, L = self.columns, len(self.columns["base"]), len(self.queues)
        to["initial"] = [0.0] * (F + 2 * L) + to["initial"]
        to["lower"] = [-math.inf] * F + [0.0] * L + [-math.inf] * L + to["lower"]
        to["upper"] = [math.inf] * F + self.queues + [math.inf] * L + to["upper"]
        serving: list[Any] = [math.inf, *(np.where(c, c, math.inf) for c in to["c"])]
        slowest = reduce(np.fmin, serving)
        packets = (size / slowest for *_, size in self.wired.delays)
        natural = reduce(np.fmax, [*to["trip"], *packets])
        natural = np.where(natural > 0, natural, 1.0)
        to["times"] = [natural, LONGEST_QUEUE * reduce(np.fmax, self.times, natural)]
        return Numbers(**{name: self.wired.array(to[name]).T for name in Numbers._fields})


def _shape(wired: Wired, laws: list[Any], link_laws: list[Any]) -> Shape:
    """The structure; a law of None is a flow of constant rate."""
    known: dict[Any, int] = {}
    tapes: list[Tape] = []

    def tape_of(law: Any, write: Callable[[Any], Tape]) -> int:
        key = id(law)
        if key not in known:
            written = write(law)
            known[key] = next((i for i, t in enumerate(tapes) if t is written), len(tapes))
            tapes.extend([written] if known[key] == len(tapes) else [])
        return known[key]

    flow_tapes = [-1 if law is None else tape_of(law, source_tape) for law in laws]
    link_tapes = [tape_of(law, link_tape) for law in link_laws]
    every = [*laws, *link_laws]
    known_first = [*([3] * len(laws)), *([2] * len(link_laws))]  # as `_Columns` puts them
    return Shape(
        routes=wired.routes,
        spared=tuple(
            tuple(wired.mixed[l] and not f.ecn for l in route)
            for f, route in zip(wired.flows, wired.routes, strict=True)
        ),
        law=(*flow_tapes, *link_tapes),
        states=tuple(len(own_states(law)) if law else 0 for law in every),
        par=tuple(
            n + len(law.params) if law else 0 for n, law in zip(known_first, every, strict=True)
        ),
        apart=tuple(law is not None and told_apart(law) for law in laws),
        is_rate=tuple(law.out["rate"] == z for law in laws if law for z in law.states),
        queued=tuple(law.queue is not None for law in link_laws),
        hears=tuple(hears_rate(law) for law in link_laws),
        drops=tuple("drop" in law.out for law in link_laws),
        offers=tuple("offer" in law.out for law in link_laws),
        tapes=tuple(tapes),
        many=wired.many,
    )
