"""`linearize`: a network near its equilibrium as a linear system with delays."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.modes import FreeDirection, left_out, on_both_sides, resting_point
from fluidcc.analysis.point import Lags, OperatingPoint, copies
from fluidcc.analysis.wiring import Matrices, as_one, cut, deviations, return_ratios, wire
from fluidcc.base.arguments import choice, explained, explained_class, whole
from fluidcc.base.errors import InvalidInput, gathered
from fluidcc.laws.steady import levels
from fluidcc.network.network import require_network
from fluidcc.numerics.linear.count import RootCount, counted
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.numerics.linear.margins import Closed
from fluidcc.numerics.linear.roots import Searches
from fluidcc.numerics.linear.wiring import Blocks, Entries, block_of, close_channels, indices
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network import Network
    from fluidcc.numerics.linear.margins import Margins

LOOPS = ("closed", "open", "links", "marks")


@explained_class
class LinearNetwork(DelayLTI):
    """A `DelayLTI` that knows which network it came from.

    Attributes
    ----------
    point : OperatingPoint
        The equilibrium, by class of flows.
    classes : dict of str to tuple of str
        The flows behind each class, by its name: that of an input and output, unless the loop is
        broken at the links.
    trackers : tuple of str
        States that were taken as parameters: of the round trip (`fluidcc.hold_trackers`), constant
        near the equilibrium, or integrators that nobody reads.
    """

    point: OperatingPoint
    trackers: tuple[str, ...]
    wired: Matrices
    _loop: str
    _exact = False  # an equilibrium is solved for

    @classmethod
    def of(cls, point: OperatingPoint, m: Matrices, loop: str = "") -> LinearNetwork:
        """The system of matrices wired from a point; which loop they are."""
        new = object.__new__(cls)
        new.wired, new.states, new.inputs, new.outputs = m, m.states, m.ports, m.ports
        known = [
            f"{f.label}.{plain(z)}" for f in point.classes for z in levels(f.spec.law).values()
        ]
        new.point, new.trackers = point, (*known, *m.trackers)
        new._loop = loop
        return new

    @cached_property
    def _block(self) -> Blocks:  # type: ignore[override]
        block = close_channels(block_of(self._entries))
        for array in block:
            array.setflags(write=False)
        return block

    @cached_property
    def _entries(self) -> Entries:
        return self.wired.entries

    @cached_property
    def _search(self) -> Searches:
        trip = float(np.max(Lags(self.point).trip, initial=0.0))
        return Searches(self._entries, self._exact, trip)

    @property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """The flows behind each class, by its name."""
        return {f.label: f.names for f in self.point.classes}

    def rightmost(self, count: int) -> NDArray[np.complex128]:
        """The rightmost roots [1/s]: as many of them as can be proved to be these, at least one.

        Of a neutral system there are no more than lie right of its essential abscissa, near which
        infinitely many are.
        """
        count = whole(count, "count", least=1)
        return self._search.rightmost(count, fewer=True)

    def margins(self, channel: str | int | None = None, at: str | None = None) -> Margins:
        """Gain, phase, delay and modulus margins, with their frequencies, as `DelayLTI.margins`.

        Parameters
        ----------
        channel : str or int, optional
            A class of flows, or a link or mark: margins of its own loop, all others closed.
        at : {"ports", "delays"}, optional
            As for `DelayLTI.margins`. By default the loop is broken at the ports; that of the
            closed loop where `fluidcc.stability` breaks it.

        Raises
        ------
        InvalidInput, UnknownName
            As `DelayLTI.margins`.

        Examples
        --------
        >>> import fluidcc as fc
        >>> flows = {"near": fc.LDCC, "far": {"law": fc.LDCC(eta=0.8), "access_delay": "20 ms"}}
        >>> net = fc.dumbbell(flows, {"capacity": "3 Mbit/s", "delay": "25 ms"})
        >>> at_flows, at_queue = fc.linearize(net).margins(), fc.linearize(net, "links").margins()
        >>> at_delays = fc.linearize(net).margins(at="delays")
        >>> f"{at_flows.phase:.2f}, {at_queue.phase:.2f}, {at_delays.phase:.2f} deg"
        '50.51, 50.51, 35.70 deg'
        """
        if at is None and self._loop == "closed":
            point = self.point
            if channel is None:
                return LinearNetwork.of(point, as_one(return_ratios(point)), cut(point)).margins()
            (only,) = indices([channel], self.inputs, "channel")
            loop = cut(point, only)
            opened = LinearNetwork.of(point, wire(point, loop, only), loop)
            return opened.margins(only if loop == "open" else None)
        return super().margins(channel, "ports" if at is None else at)

    def _closed_verdict(self) -> Closed:
        """That of the network, if this is a return ratio of it: with the differences among
        identical flows, and without the roots at zero of a continuum of equilibria.
        """
        if self._loop in ("", "closed"):
            return super()._closed_verdict()
        with gathered():  # `stability` says what is left out
            found = Counts.of(self.point)
        return found.verdict

    def deviations(self, loop: str = "closed") -> dict[str, LinearNetwork]:
        """For each class of two or more identical flows, how they differ from their mean; links
        hear nothing of that.

        A class of N flows has N - 1 copies of it: its poles decide how fast they become equal.

        Parameters
        ----------
        loop : {"closed", "open"}
            As for `fluidcc.linearize`: a law that hears its own past rate has a loop of its own.
        """
        choice(loop, "loop", ("closed", "open"))
        return {
            name: LinearNetwork.of(self.point, m)
            for name, m in deviations(self.point, loop).items()
        }


class Counts(NamedTuple):
    """The roots of a network's closed loop, and of the differences among identical flows.

    Attributes
    ----------
    parts : dict of str to LinearNetwork
        The closed loop, under "", and the differences by class.
    zeros : dict of str to RootCount
        Of each.
    times : dict of str to int
        How often the roots of each are those of the network.
    free, gone : tuple of FreeDirection, dict of str to int
        As `left_out` says.
    """

    parts: dict[str, LinearNetwork]
    zeros: dict[str, RootCount]
    times: dict[str, int]
    free: tuple[FreeDirection, ...]
    gone: dict[str, int]

    @classmethod
    def of(cls, point: OperatingPoint, joined: Matrices | None = None) -> Counts:
        """Count, with the matrices of the closed loop if they are known."""
        closed = LinearNetwork.of(point, wire(point) if joined is None else joined, "closed")
        parts = {"": closed, **closed.deviations()}
        zeros = {name: counted(system._search) for name, system in parts.items()}
        own = zeros[""]
        for one in on_both_sides(point):  # what the error of the equilibrium leaves open is at zero
            other = counted(LinearNetwork.of(one, wire(one))._search)
            most = max(c.unstable + c.at_zero for c in (zeros[""], other))
            least = min(zeros[""].unstable, other.unstable)
            zeros[""] = replace(own, unstable=least, at_zero=most - least)
        on_axis = any(c.marginal + c.at_zero for c in zeros.values())
        return cls(parts, zeros, copies(point), *(left_out(point, zeros) if on_axis else ((), {})))

    @property
    def unstable(self) -> Any:
        """Roots right of the axis."""
        return sum(self.times[n] * c.unstable for n, c in self.zeros.items())

    @property
    def verdict(self) -> Closed:
        """On all of them but those at zero that a continuum of equilibria means."""
        return Closed(self.on_axis == 0 == self.unstable, self.unstable, bool(self.gone))

    @property
    def on_axis(self) -> int:
        """Roots on the axis, without those at zero that a continuum of equilibria means."""
        return sum(c.marginal + c.at_zero for c in self.zeros.values()) - sum(self.gone.values())


@explained
def linearize(
    net: Network,
    loop: str = "closed",
    delays: str = "fifo",
    at: float | str | Equilibrium = math.inf,
) -> LinearNetwork:
    """Linearise a network at its equilibrium, exactly and with every delay.

    Each law's Jacobians are derived from its equations and taken on the branch that holds at the
    equilibrium. A queue that is empty lets pass what comes, a busy one has q' = dy/c, a full one
    keeps its length and loses dpi = (c/y^2) dy. Identical flows (same law, route, delays, packet
    and equilibrium) become one class with a multiplicity; flows at constant rates drop out.

    Parameters
    ----------
    net : Network
    loop : {"closed", "open", "links", "marks"}
        ``"closed"``: from a disturbance added to the rate of each flow of a class to that rate, (I
        + L)^-1. ``"open"``: the return ratio L, broken where the flows' rates enter the network:
        from these rates to minus what the laws want them to be, so that the poles of the closed
        loop are the zeros of det(I + L). ``"links"``: the return ratio broken at the links, as (34)
        of the LDCC paper has it: from the arrivals that each link answers to minus those that
        follow from its answer. Both have the same det(I + L) and the same eigenloci, zeros aside,
        unless a law hears its own past rate: that inner loop is broken by ``"open"`` alone.
        ``"marks"``: broken at the marks, prices, offers and losses that links send, where flows
        hear of them, as in the design of queue management; what flows hear by delay, and the clock
        of acknowledgements, stay closed.
    delays : {"fifo", "frozen"}
        ``"fifo"``: queues conserve flow, so that what leaves a busy one is stretched with it.
        ``"frozen"``: constant delays, those of the equilibrium, and arrivals downstream that
        upstream queues leave alone, as equations (30)-(31) of the LDCC paper have it.
    at : float, str or Equilibrium
        Where capacities or flows change in time, which of these networks is meant: its time [s], as
        for `fluidcc.equilibrium`, by default after every change; or an equilibrium that is already
        known, at its own time. Capacities and flows are held as they are then.

    Returns
    -------
    LinearNetwork
        A `DelayLTI`: inputs and outputs by class of flows or link [bit/s] or by mark, states
        ``flow.state`` and ``link.queue``; with ``trackers``, ``classes``, and
        `LinearNetwork.deviations` for what identical flows do among themselves.

    Raises
    ------
    NoEquilibrium, Unsupported
        As `fluidcc.equilibrium`. Laws with jumps or ticks have no Jacobian: use the averaged law
        (``law.averaged``), or simulate.
    InvalidInput
        The equilibrium is on a switching surface, which the message names, no flow listens, or the
        loop is to be broken at links or marks of which there are none.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], {"capacity": "3 Mbit/s"}, rtt="50 ms")
    >>> fc.linearize(net).states
    ('flow1 (x2).x', 'bottleneck.q')
    """
    require_network(net)
    choice(loop, "loop", LOOPS)
    point = resting_point(net, at, delays)
    joined = wire(point, loop)
    if not joined.ports:
        sends = "on a route sends a mark, a price, an offer or a loss"
        what = "answers the flows" if loop == "links" else sends
        raise InvalidInput(
            f"no link {what}, so there is no loop to break at the {loop}; see loop='open'"
        )
    return LinearNetwork.of(point, joined, loop)
