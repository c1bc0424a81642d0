"""Equilibria on switches of laws, by Filippov's mean: the switch is 0, and such a share of what the
law does with it on, and the rest of what it does with it off, are at rest.

Each switch gets a share, which is one more unknown, with the switch as its equation: it is 0 below
the switch, 1 above, and in between on it. So the search is that for other equilibria, and what it
finds is the limit of the equilibria of laws that switch ever more steeply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Expr

from fluidcc.base.errors import InvalidInput
from fluidcc.base.tables import InTable
from fluidcc.equilibria.assembly import Assembled, assemble
from fluidcc.laws.sliding import Share, shared, slides_in_runs, with_shares
from fluidcc.network.parameters import evaluated
from fluidcc.network.wired import Wired, own_states
from fluidcc.numerics.steady.follow import CONVERGED, Search, SearchEnds
from fluidcc.symbols import e, unfold

EDGE = 1e-9
"""A share as close to 0 or 1 is there, and a switch as close to 0, relative to its terms, is on
it.
"""
SLOWER = (1.0, 1e2, 1e4)
"""Shares that follow their switches faster may go round and round in a search."""
STEP = 1e-6
"""Of numerical derivatives, relative to the size of an unknown."""
DUST = 1e-15
"""A change as small as that, relative to the size of an unknown, is rounding."""
CLEAR = 1e-6
"""What is smaller than this, relative to its terms, may be 0 but for their errors."""


@dataclass(frozen=True)
class Slide(InTable):
    """A switch of a law on which a network rests.

    Attributes
    ----------
    kind, name, law : str
        "flow" or "link", its name, and that of its law.
    count : int
        How many identical flows do so, of which it is the first.
    switch : Expr
        What is 0, in states, signals and parameters of the law.
    share : float
        Weight of what the law does where the switch is above 0 [1]; the rest is that below 0.
    leads_back : bool
        Whether both branches lead back at once, so that runs can slide there. Else they go back and
        forth.
    """

    kind: str
    name: str
    law: str
    count: int
    switch: Expr
    share: float
    leads_back: bool

    _shown = ("kind", "name", "law", "count", "switch", "share", "leads_back")

    def __str__(self) -> str:
        more = f" and {self.count - 1} like it" if self.count > 1 else ""
        switch = f"{self.switch}".replace("\\", "")
        at = (
            f"{self.kind} {self.name!r} ({self.law}){more} rests on a switch, {switch} = 0, with "
            f"{self.share:.6g} of its branch above and {1 - self.share:.6g} of that below"
        )
        if self.leads_back:
            return f"{at}: both lead back, so that runs can slide there"
        return f"{at}: no run stays there, and means may be others: see fluidcc.simulate"


class Slid(NamedTuple):
    """An equilibrium on switches: the network with shares, its search and where that ended, the
    switches, and how slowly they were followed.
    """

    system: Assembled
    search: Search
    found: SearchEnds
    slides: tuple[Slide, ...]
    slower: float

    def as_found(self) -> SearchEnds:
        """Where it is, in the unknowns of the network without shares."""
        return self.found._replace(u=np.delete(self.found.u, share_places(self.system)))


def refused(slides: tuple[Slide, ...]) -> InvalidInput:
    """Return why an equilibrium on switches has no linearisation."""
    return InvalidInput(
        f"{slides[0]}; a law has no derivative at a switch: look where fluidcc.simulate leads from "
        "beside it, or take fluidcc.limit_cycle if that repeats, or let the law change over a "
        "width, as by (1 + tanh(x/width))/2 in place of Heaviside(x)"
    )


# --- the network with shares ----------------------------------------------------------------------


def in_shares(system: Assembled, slower: float = 1.0) -> Assembled | None:
    """Return a network, at one point, with shares in place of switches; None where no law has any.

    They are followed `slower` than in a time of 1 s. Of sampled laws a mean from tick to tick is
    none that stands still.
    """
    both: Any = (system.wired.flows, system.wired.links)
    flows, links = (
        [
            law if law is None or spec.law.ticks else _gauged(system, kind, i, law, slower)
            for i, (law, spec) in enumerate(zip(laws, specs, strict=True))
        ]
        for kind, laws, specs in zip(("flow", "link"), system.laws, both, strict=True)
    )
    same = zip([*flows, *links], [*system.laws[0], *system.laws[1]], strict=True)
    return None if all(a is b for a, b in same) else assemble(system.wired, (flows, links))


def share_places(system: Assembled) -> list[int]:
    """Return which unknowns are shares."""
    return [i for *_, z, i in system.named_states() if isinstance(z, Share)]


def common_shares(system: Assembled, k: int) -> list[int]:
    """Return which unknowns are shares of the flows of a row whose switch is the same for all flows
    that hear the same: it has no state in it.
    """
    law = system.laws[0][k]
    own = zip(own_states(law) if law else (), system.states[0][k], strict=True)
    return [
        i for z, i in own if isinstance(z, Share) and not law.flow[z].free_symbols & {*law.states}
    ]


def _gauged(system: Assembled, kind: str, i: int, law: Any, slower: float) -> Any:
    """The law with shares, and switches over the largest of their terms that are known before."""
    switches = shared(law).switches
    if not switches:
        return law
    side = int(kind == "link")
    known: dict[Any, Any] = {**(system.wired.link if side else system.wired.flow)(i, law)}
    first = system.numbers.initial[0, system.states[side][i]]
    known |= dict(zip(own_states(law), first, strict=True))
    if not side:
        known[e] = system.numbers.base[0, i]
    wide, sizes = with_shares(law), {}
    for z, switch in switches.items():
        terms = Add.make_args(unfold(switch).expand())
        values = [np.abs(evaluated(f, known)) for f in terms if f.free_symbols <= known.keys()]
        size = float(np.max(values, initial=0.0))
        sizes[z.gauge.name] = slower * (size if 0 < size < np.inf else 1.0)
    return law if wide is law else wide(**sizes)


# --- equilibria on switches -----------------------------------------------------------------------


def on_switches(system: Assembled, point: int) -> Slid | SearchEnds | None:
    """Look for an equilibrium on switches where a search has failed.

    Parameters
    ----------
    system : Assembled
        The network.
    point : int
        Its point.

    Returns
    -------
    Slid, SearchEnds or None
        The equilibrium on switches; or that of the network itself, if shares lead to one; or None
        if neither was found.
    """
    one, wired = system, system.wired
    if wired.points > 1:
        alone = Wired(wired.given.part([point]), wired.at, wired.kinds)
        one = assemble(alone, system.laws)
    for slower in SLOWER:
        if (wide := in_shares(one, slower)) is None:
            return None
        search = Search(wide.shape)
        end = search.everywhere(wide.numbers).point(0)
        if end.status == CONVERGED:
            break
    else:
        return None
    places = share_places(wide)
    shares = end.u[places]
    if not np.any((shares > EDGE) & (shares < 1 - EDGE)):
        start = np.delete(end.u, places)
        again = Search(one.shape).again(one.numbers, 0, start, bold=False)
        return again if again.status == CONVERGED else None
    at = _AtRest(wide, search, end.u)
    end = end._replace(u=at.without_dust())
    slides = _slides(one, at, slower)
    return Slid(wide, search, end, slides, slower) if slides else None


class _AtRest:
    """What the network does beside an equilibrium in shares, at one point."""

    def __init__(self, system: Assembled, search: Search, u: Any) -> None:
        self.system, self.search, self.numbers, self.u = system, search, system.numbers, u
        numbers = system.numbers
        F, L = system.shape.flows, system.shape.links
        self.size = np.maximum(np.abs(u), np.abs(numbers.initial[0]))
        for part in (slice(F), slice(F, F + L), slice(F + L, F + 2 * L)):
            self.size[part] = np.max(self.size[part], initial=0.0)
        self.size[F : F + L] = np.maximum(self.size[F : F + L], numbers.times[0, 0])
        self.size[self.size == 0] = 1.0

    def residual(self, u: Any) -> Any:
        return self.search.residual(self.numbers, 0, u)

    def without_dust(self) -> Any:
        """The unknowns, with states at 0 where that changes no equation beyond its rounding: one
        that begins at 0, as what sticks may, has no size of its own.
        """
        u, S = self.u.copy(), self.system.shape
        least = DUST * self.size * min(1.0, 1.0 / self.numbers.times[0, 0])
        for i in range(S.flows + 2 * S.links, len(u)):
            cleared = np.where(np.arange(len(u)) == i, 0.0, u)
            if np.all(np.abs(self.residual(cleared) - self.residual(u)) <= least):
                u = cleared
        return u

    def slope(self, i: int) -> Any:
        """The derivatives of all equations by an unknown, times its size."""
        aside = np.where(np.arange(len(self.u)) == i, STEP * self.size[i], 0.0)
        return (self.residual(self.u + aside) - self.residual(self.u - aside)) / (2 * STEP)

    def leads_back(self, own: list[int], i: int) -> bool:
        """Whether both branches of a law lead back to the switch at once, by its own states and the
        place of a share.
        """
        by = np.array([self.slope(j)[i] / self.size[j] if j != i else 0.0 for j in own])
        least = CLEAR * float(np.abs(by) @ self.size[own]) / self.numbers.times[0, 0]
        moves = []
        for side in (0.0, 1.0):
            v = self.u.copy()
            v[i] = side
            moves.append(float(by @ self.residual(v)[own]))
        return moves[0] > least and moves[1] < -least

    def turns_back(self) -> bool:
        """Whether the network does not run away from it on one side: the characteristic equation
        has an even number of real roots above 0, and none at 0.
        """
        left, low, high = self.residual(self.u), self.numbers.lower[0], self.numbers.upper[0]
        held = ((self.u <= low) & (left < 0)) | ((self.u >= high) & (left > 0)) | (low == high)
        free = np.flatnonzero(~held).tolist()
        J = -np.array([self.slope(i)[free] for i in free]).T
        J /= np.maximum(np.abs(J).max(axis=1, keepdims=True), 1e-300)
        U, sizes, Vh = np.linalg.svd(J)
        return bool(sizes[-1] > CLEAR * sizes[0] and np.linalg.det(U) * np.linalg.det(Vh) > 0)


def _slides(base: Assembled, rest: _AtRest, slower: float) -> tuple[Slide, ...]:
    """The switches on which a network rests; none where a law rests on two at once, where branches
    lead away, or where that cannot be told.
    """
    found, back, left = [], [], rest.residual(rest.u)
    both: Any = (base.wired.flows, base.wired.links)
    for kind, laws, specs, wide, places in zip(
        ("flow", "link"), base.laws, both, rest.system.laws, rest.system.states, strict=True
    ):
        many = base.wired.many if kind == "flow" else [1] * len(laws)
        for law, spec, more, own, count in zip(laws, specs, wide, places, many, strict=True):
            shares = [
                (z, i)
                for z, i in zip(own_states(more) if more else (), own, strict=True)
                if isinstance(z, Share)
            ]
            inside = [(z, i) for z, i in shares if EDGE < rest.u[i] < 1 - EDGE]
            for _, i in set(shares) - set(inside):
                if slower * abs(left[i]) <= EDGE or (left[i] > 0) != (rest.u[i] > 0.5):
                    return ()
            if len(inside) > 1:
                return ()
            for z, i in inside:
                back.append(rest.leads_back(own, i))
                slides = back[-1] and slides_in_runs(law, z.number)
                switch, share = shared(law).switches[z], float(rest.u[i])
                found.append(Slide(kind, spec.name, law.name, count, switch, share, slides))
    return tuple(found) if all(back) or rest.turns_back() else ()
