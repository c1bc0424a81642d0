"""`StabilityReport`: the verdict on a network near its equilibrium, with its margins and what they rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.matrices import has_loop
from fluidcc.analysis.modes import Mode, fairness_mode, modes_of
from fluidcc.analysis.operating_point import BUSY, FULL, Point
from fluidcc.analysis.rest import link_outputs
from fluidcc.analysis.split import with_alone
from fluidcc.analysis.wiring import wire
from fluidcc.base.arguments import choice, number, shown, whole
from fluidcc.base.errors import UnknownName
from fluidcc.network.patterns import near

if TYPE_CHECKING:
    from fluidcc.analysis.continuum import FreeDirection
    from fluidcc.analysis.positive import PassivityReport
    from fluidcc.analysis.sensitivity import Sensitivities
    from fluidcc.equilibria.equilibrium import Equilibrium
    from fluidcc.numerics.linear.certify import Certificate
    from fluidcc.numerics.linear.margins import EigenLoci, Margins

__all__ = ["StabilityReport", "static_windows"]


def static_windows(point: Point) -> tuple[str, ...]:
    """What to say of flows that send their window over the round trip to a queue that marks or drops early."""
    early = [bool({"mark", "drop"} & link.law.out.keys()) for link in point.links]
    found = [
        f for f in point.classes
        if any(early[l] and point.mode[l] == BUSY for l in f.route)
        and f.spec.law.static_window is not None
    ]  # fmt: skip
    if not found:
        return ()
    return (
        f"flow {found[0].names[0]!r} ({found[0].spec.law.name}) sends its window over the round trip that it hears of, "
        "W/RTT, where TCP is clocked by acknowledgements: over a queue that marks or drops early the verdict and the "
        "margins are those of the law, not of TCP (of 60 flows of Reno at 3750 packets/s and 0.246 s the critical gain "
        "is 6.65e-5 a packet; 1.82e-4 in Misra, Gong and Towsley's model with state-dependent round trips, and 2.3e-4 "
        "with a clock of acknowledgements); compare with packets",
    )


@dataclass(frozen=True, eq=False)
class StabilityReport:
    """The verdict on a network near its equilibrium.

    Margins are those of the loop whose equilibrium and gains stay as they are (a margin of a parameter at which the
    network finds another equilibrium is `fluidcc.stability_boundary`). The loop is broken at the rate of every flow.
    So what a law hears of its own past belongs to it, also in the differences among identical flows: a window that is
    clocked by acknowledgements bears a gain hardly above one there.

    Attributes
    ----------
    stable : bool
        Every root has a negative real part, those at zero aside that belong to `free`.
    marginal : bool
        None is positive, but another one is zero to the resolution of the numbers; then `stable` is False.
    unstable : int
        Roots with positive real part, those among identical flows included.
    encirclements : int
        Of -1 by the eigenloci of L, clockwise: unstable roots of the closed loop less those of the open one.
    open_unstable : int
        Roots of the open loop with positive real part, those among identical flows included.
    rightmost_roots : array of complex
        By falling real part [1/s], N - 1 times those of the differences among N identical flows; of a network of more
        than `LARGE` states those that were found (`LinearNetwork.rightmost`). Without those at zero that belong to
        `free`.
    margins : Margins
        Of all flows together, with every frequency.
    delays : {"fifo", "frozen"}
        How delays were taken.
    closed, open : LinearNetwork
        The closed loop, by class of identical flows; and the return ratio of all flows: of each class that of its mean
        (times the root of their number, so that singular values are those of all flows), beside it that of its
        differences if the law hears its own past.
    trackers : tuple of str
        States that were taken as parameters.
    free : tuple of FreeDirection
        Directions along which the equilibrium is not determined, with a root at zero each: small disturbances leave
        the network elsewhere on that continuum. The verdict is about the other roots.
    certificates : dict of str to Certificate
        With ``certify=True``: what interval arithmetic proves of the roots of the ``"loop"`` and of the differences
        within each class of identical flows. It holds for the matrices as they stand.
    """

    stable: bool
    marginal: bool
    unstable: int
    encirclements: int
    open_unstable: int
    rightmost_roots: NDArray[np.complex128]
    margins: Margins
    delays: str
    closed: LinearNetwork = field(repr=False)
    open: LinearNetwork = field(repr=False)
    free: tuple[FreeDirection, ...] = ()
    certificates: dict[str, Certificate] = field(default_factory=dict, repr=False)

    # --- margins ----------------------------------------------------------------------------------------------------

    @property
    def gain_margin(self) -> float:
        """Factor on the gains of all flows that brings a root to the axis, the least above one."""
        return float(self.margins.gain)

    @property
    def critical_gain(self) -> float:
        """The same, the nearest to one, above or below; the equilibrium stays as it is."""
        return float(self.margins.gain_nearest)

    @property
    def phase_margin(self) -> float:
        """Phase lag of all flows that does [degrees]."""
        return float(self.margins.phase)

    @property
    def delay_margin(self) -> float:
        """Extra delay of every flow that does [s]; see `of_flow` for one flow."""
        return float(self.margins.delay)

    @property
    def modulus_margin(self) -> float:
        """Least singular value of I + L over frequency, 1 / `sensitivity_peak`."""
        return float(self.margins.modulus)

    @property
    def crossover(self) -> float:
        """Frequency at which the phase margin is read [rad/s]."""
        return float(self.margins.crossover)

    @property
    def sensitivity_peak(self) -> float:
        """Peak of the largest singular value of (I + L)^-1."""
        return float(self.margins.ms)

    @property
    def complementary_peak(self) -> float:
        """Peak of the largest singular value of L (I + L)^-1."""
        return float(self.margins.mt)

    @property
    def decay_rate(self) -> float:
        """Rate at which small disturbances die out in the long run [1/s]; negative if they grow."""
        return -float(self.rightmost_roots[0].real) if len(self.rightmost_roots) else math.inf

    def of_flow(self, name: str) -> Margins:
        """Margins of one flow's own loop, all others closed: what this flow alone tolerates.

        Raises
        ------
        UnknownName
            If no flow of that name listens.
        """
        from fluidcc.numerics.linear.margins import margins

        known = [n for f in self.point.classes for n in f.names]
        if not isinstance(name, str) or name not in known:
            raise UnknownName(f"no flow {shown(name)} listens; {near(str(name), known)}")
        point, k = with_alone(self.point, name)
        return margins(LinearNetwork.of(point, wire(point, "open", self.delays == "fifo")), k)

    def eigenloci(
        self, low: float | None = None, high: float | None = None, at: str = "flows", points: int | None = None
    ) -> EigenLoci:
        """Eigenvalues of the return ratio over frequency, from `low` to `high` [rad/s].

        Parameters
        ----------
        low, high : float, optional
            Ends of the frequencies; by default those that matter for the margins.
        at : {"flows", "links"}
            Where the loop is broken, as for `fluidcc.linearize`; the loci are the same unless a law hears its own past.
        points : int, optional
            So many frequencies at least, in equal ratios; by default only as many as the loci need.

        Raises
        ------
        UnknownName
            If `at` is neither.
        InvalidInput
            If `low` or `high` is no positive number, there is no range between them, or `points` is not from 2 to
            1,000,000.
        """
        from fluidcc.numerics.linear.margins import eigenloci

        choice(at, "at", ("flows", "links"))
        right = "a positive frequency in rad/s"
        low, high = (None if w is None else number(w, n, right, above=0.0) for n, w in (("low", low), ("high", high)))
        loop = self.open if at == "flows" else self.open_at_links
        count = 0 if points is None else whole(points, "points", least=2, most=1_000_000)
        return eigenloci(loop, low, high, count)

    @cached_property
    def open_at_links(self) -> LinearNetwork:
        """The return ratio broken at the links, (34) of the LDCC paper; see `fluidcc.linearize`."""
        return LinearNetwork.of(self.point, wire(self.point, "links", self.delays == "fifo"))

    # --- what it rests on -------------------------------------------------------------------------------------------

    @property
    def point(self) -> Point:
        """The operating point."""
        return self.closed.point

    @property
    def equilibrium(self) -> Equilibrium:
        """The equilibrium."""
        return self.point.rest

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the equilibrium doubtful (see `Equilibrium`), or the verdict."""
        return (*self.equilibrium.warnings, *static_windows(self.point))

    @property
    def trackers(self) -> tuple[str, ...]:
        """States that were taken as parameters: constant near the equilibrium, or integrators that nobody reads."""
        return self.closed.trackers

    @property
    def regime(self) -> str:
        """What holds the flows back: "delay-driven", "loss-driven", "mark-driven", "mixed", "price-driven" or
        "no feedback". A queue that marks or drops early counts by that, whatever its delay does beside.
        """
        told = link_outputs(self.point)
        early = np.asarray(told["mark"] + told["drop"]) > 0
        kinds = set()
        for l in {l for f in self.point.classes for l in f.route}:
            if self.point.mode[l] == FULL:
                kinds.add("loss-driven")
            elif early[l] or self.point.mode[l] == BUSY:
                kinds.add("mark-driven" if early[l] else "delay-driven")
        if kinds:
            return "mixed" if len(kinds) > 1 else kinds.pop()
        return "price-driven" if has_loop(wire(self.point, "open")) else "no feedback"

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """What moves at each of the rightmost roots."""
        return modes_of(self.point, self.rightmost_roots, self.delays == "fifo")

    @cached_property
    def fairness(self) -> Mode | None:
        """The slowest mode in which rates shift from flow to flow; None if there is one flow, or none among `modes`."""
        return fairness_mode(self.modes)

    @cached_property
    def sufficient(self) -> Any:
        """The papers' sufficient conditions by name, each with its verdict and its conservatism."""
        from fluidcc.analysis.sufficient import sufficient_conditions

        exact = float(self.margins.gain_down if self.unstable else self.margins.gain)
        return sufficient_conditions(self.point.net, self.open, self.point, exact)

    @cached_property
    def passivity(self) -> PassivityReport:
        """Whether the passivity argument proves local stability without communication delays."""
        from fluidcc.analysis.positive import passivity

        return passivity(self.point.net, self.point)

    @cached_property
    def sensitivities(self) -> Sensitivities:
        """Derivatives of the rightmost root and of each margin by every parameter."""
        from fluidcc.analysis.sensitivity import sensitivities

        return sensitivities(self)

    def __bool__(self) -> bool:
        return self.stable

    def __repr__(self) -> str:
        if self.unstable:  # the distances to the nearest boundary are no margins then
            said = [
                f"{self.unstable} unstable root{'s' * (self.unstable > 1)}",
                f"critical gain {self.critical_gain:.4g}",
                f"growth rate {-self.decay_rate:.4g} 1/s",
            ]
        else:
            said = [
                f"gain margin {self.gain_margin:.4g}",
                f"phase margin {self.phase_margin:.4g} deg",
                f"delay margin {self.delay_margin:.4g} s",
                f"decay rate {self.decay_rate:.4g} 1/s",
            ]
        doubts = "".join(f"; {text}" for text in self.warnings)
        return f"StabilityReport({self.verdict}, {self.regime}: {', '.join(said)}{doubts})"

    @property
    def certified(self) -> bool | None:
        """The verdict as proved: True or False; None where nothing was asked for, or nothing could be proved."""
        proved = [c.stable for c in self.certificates.values()]
        if not proved or None in proved:
            return False if False in proved else None
        return all(proved)

    @property
    def verdict(self) -> str:
        """In a word."""
        return "stable" if self.stable else "marginal" if self.marginal else "unstable"

    def _repr_html_(self) -> str:
        from fluidcc.analysis.show import report_html

        return report_html(self)
