"""Limit cycles of networks: period, extremes, means, utilisation and
convergence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import explained, flag, number, whole
from fluidcc.base.errors import SolverError, Unsupported, warn
from fluidcc.base.progress import BARE, Progress
from fluidcc.base.tables import in_columns, in_html, in_units
from fluidcc.cycles.crossings import STILL, Crossing, Unmarked, crossing
from fluidcc.cycles.returns import (
    Effort,
    Label,
    Lost,
    OnceRound,
    Section,
    events,
    natural_sizes,
    once_round,
    states_at,
    times_of,
)
from fluidcc.equilibria.result import MOST_ROWS
from fluidcc.laws import Law
from fluidcc.network.network import Network, require_flows
from fluidcc.network.patterns import quantity
from fluidcc.numerics.periodic import find_recurrence, nearest_recurrence
from fluidcc.simulation.restart import counted_anew
from fluidcc.symbols import plain

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

COARSE = 1e-6  # accuracy of the approach, which looks for what repeats to three digits
_FIRST, _SOONER = (
    400,
    0.1,
)  # round trips before the first look, or the part of the effort after which it is made
_AGAIN = 1.5  # times as late is the next look
_LATER = 4.0  # times as late is the next mark
_PIECE = 20_000  # steps of a piece: about a second
_MARKS = 1600  # that are compared; four of the longest cycle


@dataclass
class Approach:
    """A run in pieces, each of which can be gone through again.

    Attributes
    ----------
    rtol : float
        That the orbit is to have in the end.
    longest : float
        How long the run may become [s].
    mark : Crossing, optional
        That the network was given as nothing in it jumps or ticks.
    pieces : list of Dataset
        Each goes on from the one before it.
    """

    net: Network
    effort: Effort
    rtol: float
    longest: float
    mark: Crossing | None = None
    pieces: list[xr.Dataset] = field(default_factory=list)

    @property
    def now(self) -> float:
        """How far it has come [s]."""
        return float(self.pieces[-1].attrs["end"]) if self.pieces else 0.0

    def near(self) -> Section:
        """Go on until something repeats to three digits.

        Raises
        ------
        SolverError
            If nothing does within the effort and the time; it says what was seen, and what to try.
        """
        trip = max(self.net.base_rtt(name) for name in self.net.flows)
        first = self.mark.seconds if self.mark is not None else min(_FIRST * trip, self.longest)
        look, spared = first, (1 - _SOONER) * self.effort.left
        if self.pieces:
            look, spared = _AGAIN * self.now, 0.0
        while True:
            self._go_on(min(look, self.longest), spared)
            section, why = self._section()
            if section is not None:
                return section
            if self.now >= self.longest or self.effort.left <= 0:
                raise SolverError(self._in_vain(why))
            look, spared = _AGAIN * self.now, 0.0

    def _go_on(self, look: float, spared: float) -> None:
        """More pieces, to that time, or until no more steps than so many are left."""
        length = look / 20
        while self.now < look and self.effort.left > spared:
            left = look - self.now
            before = self.pieces[-1] if self.pieces else None
            if before is not None:
                length = min(4 * length, _PIECE * length / max(1, int(before.attrs["steps"])))
            length = left if left < 1.5 * length else length
            stop = look if length == left else self.now + length
            self.pieces.append(self.effort.go(self.net, stop, COARSE, before))

    def _section(self) -> tuple[Section | None, str]:
        """The rarest event that still comes back, if it does so with the same states."""
        since = 0.25 * self.now
        kind = "jump" if any(run.attrs["jumps"] for run in self.pieces) else "tick"
        times, labels = self._events(kind)
        if self.mark is not None and not np.any(times > since):
            raise self.mark.at_rest(since)
        if len(times) == 0:
            return None, "there was no jump"
        counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
        often = {one: n for one, n in counts.items() if n >= 4 and self._lasts(one, labels, times)}
        if not often:
            return None, f"no {kind} comes back often enough"
        label = min(often, key=lambda one: often[one])
        marks = times[np.array([one == label for one in labels]) & (times > since)][-_MARKS:]
        bare = find_recurrence(marks, np.empty((len(marks), 0)))
        if bare is None:
            return (
                None,
                f"the {kind}s of {label[0]!r} come at intervals that do not "
                f"repeat{_nearest(marks)}",
            )
        found = None
        for most in (
            16 * bare.marks + 1,
            _MARKS,
        ):  # even intervals, as of ticks, say little of the states
            if self._cost(marks[-most:]) > self.effort.left:
                return (
                    None,
                    f"the {kind}s of {label[0]!r} repeat, and to compare the states there is "
                    "more than is left",
                )
            states, size = self._states(marks[-most:])
            found = find_recurrence(marks[-most:], states / size)
            if found is not None or most >= len(marks):
                break
        if found is None:
            return None, f"the {kind}s of {label[0]!r} repeat, but not with the same states"
        return self._between(label, found.marks, found.period, size)

    def _events(self, kind: str) -> tuple[Array, list[Label]]:
        parts = [events(run, kind) for run in self.pieces]
        return np.concatenate([times for times, _ in parts]), [
            label for _, labels in parts for label in labels
        ]

    def _lasts(self, label: Label, labels: list[Label], times: Array) -> bool:
        """Whether an event still happens at the end, as often as it did."""
        own = times[[one == label for one in labels]]
        return bool(self.now - own[-1] <= 2.0 * np.diff(own).max())

    def _cost(self, marks: Array) -> int:
        """Steps that `_states` will take."""
        return sum(
            int(run.attrs["steps"]) for run in self.pieces if float(run.attrs["end"]) >= marks[0]
        )

    def _states(self, marks: Array) -> tuple[Array, Array]:
        """What there was just after each mark (marks, n), and how large each state is (n,)."""
        found, start = [], None
        for run in self.pieces:
            end = float(run.attrs["end"])
            began = 0.0 if start is None else float(start.attrs["end"])
            inside = marks[(marks > began) & (marks <= end)]
            if len(inside):
                there = self.effort.go(self.net, end, COARSE, start, inside)
                found.append(states_at(there)[0])
            start = run
        states = np.concatenate(found)
        return states, np.maximum(np.abs(states).max(axis=0), natural_sizes(there, self.net))

    def _between(
        self, label: Label, count: int, period: float, size: Array
    ) -> tuple[Section | None, str]:
        """A section that begins between two marks, if there are two more."""
        last = self.pieces[-1]
        at = np.linspace(self.now, self.now + 2 * period, 201)[1:]
        ahead = self.effort.go(self.net, self.now + 2.5 * period, COARSE, last, at)
        size = np.maximum(np.abs(states_at(ahead)[0]).max(axis=0), size)
        marks = times_of(ahead, label)
        if len(marks) < 2:
            return None, f"the events of {label[0]!r} repeated, and came no more"
        middle = float(marks[0] + 0.37 * (marks[1] - marks[0]))
        base = counted_anew(self.net, self.effort.go(self.net, middle, COARSE, last))
        return Section(self.net, label, count, period, base, size, self.rtol, self.effort), ""

    def _in_vain(self, why: str) -> str:
        limit = "until" if self.now >= self.longest else "max_steps"
        return (
            f"no limit cycle within {self.now:.6g} s and {self.effort.used} steps of the solver: "
            f"{why}. Give a larger {limit}; if it never repeats, as flows of unequal round trips "
            "may not, take means over a long simulation"
        )


def _nearest(marks: Array) -> str:
    near = nearest_recurrence(marks)
    if near is None:
        return ""
    return (
        f" (the nearest to it: {near.marks} of them, {near.period:.4g} s, to "
        f"{100 * near.changes.max():.2g} %)"
    )


# --- from near a limit cycle onto it --------------------------------------------------------------


_LADDER = 1e-2  # from one accuracy to the next, finer one
_ENOUGH = 30.0  # times the accuracy: nearer to the orbit it is not worth while to come with it
_LOOKED_AT, _AT_ONCE, _A_WHILE = (
    4,
    50,
    10,
)  # cycles that are looked at, and waited for at most, and to see what comes
_NEWTON = 8  # steps at most
_NOISE = 1e-6  # changes below, which do not fall any more, are those of the integration
_LOST = 1e-2  # change from cycle to cycle at which the orbit was near none


class Settled(NamedTuple):
    """A section on the orbit, what is left to it, and how many steps of Newton's method led
    there.
    """

    section: Section
    error: float
    steps: int


def settled(approach: Approach, tol: float) -> Settled:
    """The cycle to `tol`, or to what the accuracy of the integration or the effort allows.

    An orbit that leaves what it was near is followed on.

    Raises
    ------
    SolverError
        If the effort does not suffice: what there is, and what to try.
    """
    while True:
        section = approach.near()
        try:
            for rtol in _ladder(approach.rtol):
                section = _waited(section.finer(rtol), max(tol, _ENOUGH * rtol))
            return _refined(section.finer(approach.rtol), tol)
        except Lost:
            if approach.effort.left <= 0:
                raise


def _marked(bare: Approach, tol: float) -> tuple[Settled, Crossing]:
    """The cycle of a network in which nothing jumps or ticks, and what marks it.

    Before a network is near its cycle its queue may rise through a mean that it leaves behind: then
    it is marked anew, later.
    """
    net, effort, longest = bare.net, bare.effort, bare.longest
    seconds = min(_FIRST * max(net.base_rtt(name) for name in net.flows), longest)
    while True:
        mark = crossing(net, effort, COARSE, seconds)
        try:
            return settled(replace(bare, net=mark.net, mark=mark, pieces=[]), tol), mark
        except Unmarked:
            if seconds >= longest or effort.left <= 0:
                raise
            seconds = min(_LATER * seconds, longest)


def _ladder(finest: float) -> list[float]:
    """Accuracies from that of the approach on, without the finest."""
    found = [COARSE]
    while found[-1] > finest / _LADDER:
        found.append(found[-1] * _LADDER)
    return [rtol for rtol in found if rtol > 2 * finest]


class _Look(NamedTuple):
    """What some cycles were like."""

    changes: NDArray[np.float64]  # the largest one, from each cycle to the next
    cost: float  # steps of the solver for a cycle
    state: str

    @property
    def falls(self) -> bool:
        return bool(np.all(np.diff(self.changes) < 0)) or not self.changes.any()

    @property
    def ratio(self) -> float:
        """Of one change to the one before it, but not so small that nothing could tell."""
        return (
            max(math.sqrt(self.changes[-1] / self.changes[0]), 0.01)
            if self.changes[0] > 0
            else 0.01
        )

    @property
    def largest(self) -> float:
        return float(self.changes.max())

    def left(self, floor: float) -> float:
        """How far it was to the orbit at first, if the changes go on falling as they did."""
        return (
            self.largest / (1 - self.ratio) if self.falls and self.largest > floor else self.largest
        )

    def wait(self, tol: float) -> int:
        """Cycles until it is as near to the orbit as that, if the changes go on falling as they
        did.
        """
        if self.largest == 0:
            return 1
        return max(
            1, math.ceil(math.log(tol * (1 - self.ratio) / self.largest) / math.log(self.ratio))
        )


def _cost_of_look(section: Section) -> float:
    return section.effort.ahead(2 * (_LOOKED_AT + 1) * section.period, section.rtol)


def _look(section: Section) -> _Look:
    before, ahead = section.effort.used, _cost_of_look(section)
    if ahead > section.effort.left:
        raise _spent(
            section,
            f"there is something like a cycle of {section.period:.6g} s near {section.start:.6g} s",
            ahead,
        )
    _, seen = section.walk(section.base, _LOOKED_AT)
    changes = np.abs(np.diff(seen, axis=0)).max(axis=1)[1:]
    state = (
        f"there is something like a cycle of {section.period:.6g} s near {section.start:.6g} s, "
        f"but from one to the next something still changes by {changes[-1]:.1e} of its size"
    )
    if changes[-1] > _LOST:
        raise Lost(state)
    return _Look(changes, (section.effort.used - before) / (2 * (_LOOKED_AT + 1)), state)


def _spent(section: Section, state: str, ahead: float) -> SolverError:
    return SolverError(
        f"{state}. To go on takes some {ahead:.0f} steps of the solver, and "
        f"{section.effort.used} of {section.effort.most} are used: give a larger max_steps, or a "
        "larger tol"
    )


def _waited(section: Section, tol: float) -> Section:
    """The section nearer to the orbit, as far as it comes there by itself soon."""
    for _ in range(_NEWTON):
        seen = _look(section)
        if not seen.falls or seen.largest <= tol:
            break
        wait = seen.wait(tol)
        if (
            wait > 2 * section.cost_of_newton
            or seen.cost * wait + _cost_of_look(section) > section.effort.left
        ):
            break
        section = section.later(min(wait, _AT_ONCE))
    return section


def _refined(section: Section, tol: float) -> Settled:
    """The cycle to `tol`, or to where nothing comes nearer any more."""
    best, stuck, newton = math.inf, 0, 0
    while True:
        seen = _look(section)
        error = seen.left(section.rtol)
        stuck = 0 if seen.falls and seen.largest < 0.1 * best else stuck + 1
        if error <= tol or (stuck > 1 and seen.largest < _NOISE):
            return Settled(section, error, newton)
        if newton >= _NEWTON:
            raise SolverError(
                f"{seen.state}; give a larger tol or a smaller rtol, or simulate it and look"
            )
        jump = section.cost_of_newton
        wait = seen.wait(tol) if seen.falls else _A_WHILE  # for an orbit may leave what it is near
        by_itself = wait <= 2 * jump and stuck == 0 if seen.falls else stuck < 3
        ahead = seen.cost * (wait if by_itself else jump) + _cost_of_look(section)
        if ahead > section.effort.left and seen.largest < _NOISE:
            return Settled(section, error, newton)
        if ahead > section.effort.left:
            raise _spent(section, seen.state, ahead)
        if by_itself:
            best = min(best, seen.largest)
            section = section.later(min(wait, _AT_ONCE))
            continue
        if newton and seen.largest > 0.5 * best:  # disturbances reached over a kink of the map
            section = replace(section, step=section.step / 30)
        best = min(best, seen.largest)
        section, newton = section.corrected(), newton + 1


# --- limit cycles of networks ---------------------------------------------------------------------


_LONGEST = 400_000  # round trips of the approach
_UNLIMITED = 10**15  # steps


@dataclass(frozen=True, repr=False)
class LimitCycle(OnceRound):
    """A periodic orbit.

    Attributes
    ----------
    period : float
        [s]
    error : float
        Largest change from one cycle to the next: of the period relative to itself, of the states
        at the jump where it begins relative to their sizes, over what the slowest multiplier makes
        of all later ones.
    jumps : DataArray over "jump"
        When each jump of the cycle (or, in networks without jumps, tick or rise through a mean)
        happens after the first one [s]; whose it is stands in the coordinate ``of``, and which
        of its law's in ``rule``.
    mean, least, most : Dataset over "flow", "link"
        Time averages and extremes over the cycle, of ``rate``, ``one_way_delay``, ``rtt``,
        ``backlog``, ``queueing_delay``, ``throughput``, ``utilisation`` and each law's states, in
        the units of `simulate`; one-sided limits at jumps count.
    loss : DataArray over "link"
        Bits lost over bits arrived, over the cycle [1].
    orbit : Dataset over "time", "flow", "link"
        One cycle, the time from its first jump [s].
    warnings : tuple of str
        What makes it doubtful, as in the attribute of that name of a run: windows of few packets, a
        flow that has never seen its path empty, a threshold below the smallest queue.
    steps : int
        Newton steps on the return map that were made.
    """

    error: float
    steps: int
    _section: Section = field(repr=False, compare=False)

    @cached_property
    def multipliers(self) -> NDArray[np.complex128]:
        """Multipliers of the return map, the largest first: by what a small disturbance is
        multiplied in a cycle.

        They are measured, to about a hundredth: every state that a disturbance moves (see `inputs`)
        is moved a little both ways, and the map that takes what is left after a cycle to what is
        left after the next is fitted. What only jumps set, or the data under way, is a parameter
        of the cycle. Only those are given that the responses bear out to 0.05, and none where so
        much of what is left does not follow from what was left before, which a warning says: an
        exact ack clock takes any pattern of the rate round for ever.
        """
        found = self._section.map
        if not found.follows:
            warn(
                f"the multipliers are not known: {100 * found.misfit:.0f} % of what is left of a "
                "disturbance after a cycle do not follow from what was left before, as the data "
                "under way keep it; give laws an ack clock with pace > 0, or follow a disturbance "
                "by simulate",
                stacklevel=2,
            )
        return found.multipliers

    def __repr__(self) -> str:
        tables = []
        for rows in (_table(self, name) for name in ("rate", "queueing_delay")):
            more = len(rows) - 1 - MOST_ROWS
            tables.append(in_columns(rows[: MOST_ROWS + 1]))
            tables[-1] += [f"... and {more} more"] if more > 0 else []
        return "\n\n".join([self._head(), *map("\n".join, tables), *self.warnings])

    def _repr_html_(self) -> str:
        texts = (f"<p>{escape(text)}</p>" for text in (self._head(), *self.warnings))
        tables = (
            in_html(rows, head)
            for head, *rows in (_table(self, name) for name in ("rate", "queueing_delay"))
        )
        return "".join([*texts, *tables])

    def _head(self) -> str:
        jumps = f"{len(self.jumps)} jump{'s' * (len(self.jumps) != 1)}"
        return f"limit cycle of {self.period:.6g} s with {jumps}, known to {self.error:.1e}"

    @property
    def contraction(self) -> float:
        """Modulus of the largest multiplier: the factor by which the orbit is approached from
        cycle to cycle; NaN where they are not known.
        """
        found = np.abs(self.multipliers).max(initial=0.0)
        return float(found) if self._section.map.follows else math.nan

    @property
    def inputs(self) -> tuple[str, ...]:
        """The states that were disturbed for `multipliers`, as ``flow.state``."""
        return tuple(f"{name}.{plain(z)}" for _, name, z in self._section.inputs)


def _table(cycle: OnceRound, name: str) -> list[list[str]]:
    """Mean and extremes of a variable, and of links what they carry and lose."""
    shown = {f"{how} {name}": getattr(cycle, how)[name] for how in ("mean", "least", "most")}
    if name == "queueing_delay":
        shown |= {"mean utilisation": cycle.mean.utilisation, "loss": cycle.loss}
    sizes = {"bit/s": float(cycle.mean.rate.max()), "s": float(cycle.mean.rtt.max()), "1": 1.0}
    rows = {n: in_units(v.values, v.units, sizes[v.units]) for n, v in shown.items()}
    head = [f"{label} [{unit}]" for label, (unit, _) in rows.items()]
    names = [str(n) for n in cycle.mean[name][cycle.mean[name].dims[0]].values]
    cells = zip(names, *(texts for _, texts in rows.values()), strict=True)
    return [["", *head], *map(list, cells)]


@explained
def limit_cycle(
    net: Network,
    *,
    tol: float = 1e-9,
    rtol: float = 1e-9,
    until: float | str | None = None,
    max_steps: int = 5_000_000,
    progress: bool | None = None,
) -> LimitCycle:
    """Find the attracting limit cycle of a network.

    The network is run until one of its jumps, or else ticks, comes back at the same intervals with
    the same states, about. Where nothing jumps or ticks, as with relays and beyond a Hopf point,
    that is a queue, or else a state, that rises through its mean. From there on the orbit is
    approached by itself where that takes fewer steps, else by Newton's method on the return map;
    then one cycle is integrated by Gauss-Lobatto quadrature between all points where anything is
    not smooth.

    The run until then is of lesser accuracy, 1e-6. Rounding in the number of packets in flight
    would persist, so it is recomputed at each restart. For flows with several starts it cannot be,
    and with an ack clock the period may be off by 1e-6 of itself, which ``error`` does not show.
    Give such a flow its last start alone.

    Parameters
    ----------
    net : Network
        Capacities and the set of flows must come to rest; the cycle is that at the end.
    tol : float
        Largest ``error``: what is still to come of relative changes of the period and of any state.
    rtol : float
        Accuracy of the integration over a cycle; steps are controlled to a tenth of it.
    until : float or str, optional
        How long to run at most before the orbit is near [s]; by default up to 400000 of the longest
        base round trips.
    max_steps : int
        Steps of the solver at most, over all runs that look for the cycle: a million of them take
        about half a minute with a few flows.
    progress : bool, optional
        As for `fluidcc.simulate`; the bar shows the part of `max_steps` that is taken.

    Returns
    -------
    LimitCycle

    Warns
    -----
    FluidccWarning
        If `rtol` or `max_steps` does not allow `tol`: ``error`` is larger then. What makes the
        cycle doubtful, as of runs, once.

    Raises
    ------
    Unsupported
        If no flow has a propagation delay.
    SolverError
        If the network comes to rest: no state moves by more than 1e-4 of its size.
        If the jumps do not repeat within `until` and `max_steps`, or there are none. Flows of
        unequal round trips may never repeat; the message names what came nearest to a cycle.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network()
    >>> net = net.link("l", fc.DropTail, capacity="10 Mbit/s", delay="25 ms", buffer="300 kbit")
    >>> cycle = fc.limit_cycle(net.flow("f", fc.StaticAIMD, route=["l"]))
    >>> round(cycle.period, 4), round(float(cycle.mean.utilisation[0]), 4)
    (3.1238, 0.9794)
    """
    require_flows(net)
    laws: list[Law] = [*(f.law for f in net.flows.values()), *(k.law for k in net.links.values())]
    for name, value in (("tol", tol), ("rtol", rtol)):
        number(value, name, "a number between 1e-12 and 0.01", least=1e-12, most=1e-2)
    flag(progress, "progress", unset=True)
    trip = max(net.base_rtt(name) for name in net.flows)
    if trip <= 0.0:
        raise Unsupported(
            "no flow of the network has a propagation delay, the measure of its cycles; simulate it"
        )
    longest = _LONGEST * trip if until is None else quantity(until, "s", "until", positive=True)
    most = whole(max_steps, "max_steps", least=1000, most=10**12)
    with Progress(
        float(most), progress, about="limit cycle, of max_steps", form=BARE, unit="steps"
    ) as bar:
        approach = Approach(net, Effort(most, bar), max(0.1 * rtol, 1e-12), longest)
        smooth = not any(law.jumps or law.ticks for law in laws)
        found, mark = _marked(approach, tol) if smooth else (settled(approach, tol), None)
    if found.error > tol:
        warn(
            f"the limit cycle converged only to {found.error:.1e} (tol={tol:g}); try a smaller "
            "rtol or a larger max_steps",
            stacklevel=3,
        )
    section = replace(found.section, effort=Effort(_UNLIMITED))
    cycle = LimitCycle(
        **vars(once_round(section)), error=found.error, steps=found.steps, _section=section
    )
    if mark is not None and mark.swing(cycle.least, cycle.most) < STILL:
        raise mark.at_rest(section.start)
    for text in cycle.warnings:
        warn(text, stacklevel=3)
    return cycle
