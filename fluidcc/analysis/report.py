"""`StabilityReport`: the verdict on a network near its equilibrium, with its margins and what
they rest on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.change import (
    Parameter,
    derivative,
    matrices_of,
    parameters,
)
from fluidcc.analysis.linearize import Counts, LinearNetwork
from fluidcc.analysis.modes import (
    Mode,
    choices,
    modes_of,
    polish,
    without_zeros,
)
from fluidcc.analysis.operating import at_numbers, static_windows
from fluidcc.analysis.point import BUSY, FULL, OperatingPoint, link_outputs, with_alone
from fluidcc.analysis.wiring import apart, as_one, clocked, cut, has_loop, return_ratios, wire
from fluidcc.base import above
from fluidcc.base.arguments import choice, explained_class, number, shown, whole
from fluidcc.base.errors import SolverError, Undecided, UnknownName, Unsupported
from fluidcc.base.pictures import image
from fluidcc.base.progress import Progress
from fluidcc.base.tables import in_columns, in_html, in_lines
from fluidcc.network.patterns import near
from fluidcc.numerics.linear.margins import EigenLoci, Margins, eigenloci, in_words
from fluidcc.numerics.linear.margins import margins as margins_of

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.analysis.modes import FreeDirection
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.numerics.certify import Certificate

MARGINS = {
    "gain_margin": ("gain", "1"), "phase_margin": ("phase", "deg"), "delay_margin": ("delay", "s"),
    "modulus_margin": ("modulus", "1"), "crossover": ("crossover", "rad/s"),
    "critical_gain": ("gain_nearest", "1"),
}  # fmt: skip
"""What a report takes of `Margins`, and its unit."""
QUANTITIES = {
    "decay_rate": "1/s", "frequency": "rad/s",
    **{name: unit for name, (_, unit) in MARGINS.items() if name.endswith("margin")},
}  # fmt: skip
NOISE = 1e-10
"""Change relative to its quantity that is below the accuracy of derivatives, and printed as 0."""
CROWDED = 1e-3
"""Relative distance of another root within which the rightmost one has no derivative."""
_KEYS = [MARGINS[name][0] for name in QUANTITIES if name in MARGINS]

UNDECIDED = (
    "undecided by the linearisation: a root is on the imaginary axis, to the error of the "
    "equilibrium, and what is beyond first order tells whether disturbances decay; simulate from "
    "either side"
)


ENDLESS = (
    "infinitely many roots lie right of the axis: what flows do at once when they hear of their "
    "last round trip comes back larger each time, at every frequency. Over a full buffer a mean "
    "over random losses is no model; simulate a law that cuts at a loss, such as fluidcc.AIMD, or "
    "take fluidcc.StaticReno, or a queue that marks early, such as fluidcc.PI"
)
UNKNOWN = (
    "the margins are not known: flows that hear themselves have a return ratio that does not fade, "
    "and its loci turn too often to be followed; what a parameter may be is a question for "
    "fluidcc.stability_boundary"
)


@explained_class
@dataclass(frozen=True)
class Sensitivities:
    """Total derivatives: the equilibrium moves with the parameter. Those of a margin that is
    infinite are NaN, or that has a corner there, as where two crossings bound it alike; those of
    the root where another one is within a thousandth of it; and those of all margins where the
    network is not stable.

    Attributes
    ----------
    parameters : tuple of Parameter
        Of identical flows, together.
    value : array (quantities,)
        The decay rate and frequency of the rightmost root, and the margins, in the order of
        `QUANTITIES`.
    derivative : array (parameters, quantities)
        In SI units.
    """

    parameters: tuple[Parameter, ...]
    value: NDArray[np.float64]
    derivative: NDArray[np.float64]

    @property
    def per_relative(self) -> NDArray[np.float64]:
        """Change of each quantity for a parameter twice as large, linearly: p dq/dp."""
        return self.derivative * np.array([[p.value] for p in self.parameters])

    def of(self, name: str) -> dict[str, float]:
        """Derivatives by one parameter, by quantity."""
        known = [p.name for p in self.parameters]
        if not isinstance(name, str) or name not in known:
            raise UnknownName(f"there is no parameter {shown(name)} here; {near(str(name), known)}")
        k = known.index(name)
        return dict(zip(QUANTITIES, self.derivative[k].tolist(), strict=True))

    def to_xarray(self) -> xr.Dataset:
        """``derivative`` and ``per_relative`` over (parameter, quantity), ``value`` over
        quantity.
        """
        import xarray as xr

        both = ("parameter", "quantity")
        return xr.Dataset(
            {
                "derivative": (both, self.derivative),
                "per_relative": (both, self.per_relative),
                "value": ("quantity", self.value),
            },
            {
                "parameter": [p.name for p in self.parameters],
                "quantity": list(QUANTITIES),
                "parameter_value": ("parameter", [p.value for p in self.parameters]),
                "units": ("parameter", [p.units for p in self.parameters]),
                "quantity_units": ("quantity", list(QUANTITIES.values())),
            },
        )

    def __repr__(self) -> str:
        return "\n".join(in_columns(self._rows()))

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        return in_html(rows, head)

    def _rows(self) -> list[list[str]]:
        """What one per cent more of each parameter changes; what moves the phase margin most
        comes first.
        """
        change = 0.01 * self.per_relative
        change = np.where(np.abs(change) < NOISE * np.abs(self.value), 0.0, change)
        size = np.nan_to_num(np.abs(change[:, list(QUANTITIES).index("phase_margin")]), nan=0.0)
        size = size if size.any() else np.nan_to_num(np.abs(change[:, 0]))
        rows = [["1 % more of", "value", *(f"{q} [{u}]" for q, u in QUANTITIES.items())]]
        rows += [["now", "", *_cells(self.value)]]
        for k in np.argsort(-size, kind="stable"):
            p = self.parameters[k]
            rows.append(
                [
                    p.name,
                    f"{p.value:.4g} {p.units.removesuffix('1')}".strip(),
                    *_cells(change[k], "+"),
                ]
            )
        return rows


def _cells(values: Any, sign: str = "") -> list[str]:
    return [
        format(v, f"{sign if v else ''}.3g") if np.isfinite(v) else ""
        for v in (values + 0.0).tolist()
    ]


def sensitivities(report: StabilityReport) -> Sensitivities:
    """The derivatives of a report's rightmost root and margins, by differences of points near by.

    Raises
    ------
    SolverError
        If the equilibrium does not answer to parameters in one way.
    """
    point, chosen, rows = report.point, parameters(report.point), []
    still = choices(point, report.free)
    if any(not d.among for d in still) or not np.allclose(
        at_numbers(point, point.given).x, point.x, rtol=1e-6, atol=0.0
    ):
        raise SolverError(
            "the equilibrium is not the only one (the network has redundant constraints there, or "
            "several equilibria), so it does not answer to parameters in one way; change a "
            "capacity or a route a little, and take the equilibrium that is found"
        )
    among, root = report.modes[0].among, complex(report.rightmost_roots[0])
    alike = np.abs(report.rightmost_roots - root) < CROWDED * abs(root)
    crowded = np.sum(alike) > report.counts.times[among]  # which is the first, if they move?
    mode = among or "loop"
    root = root if crowded else polish(matrices_of(point, mode), root)

    def figures(at: OperatingPoint) -> Any:
        s = complex(math.nan) if crowded else polish(matrices_of(at, mode), root)
        found = [-s.real, s.imag if root.imag >= 0 else -s.imag]
        if not report.stable:
            return np.array([*found, *[math.nan] * (len(QUANTITIES) - len(found))])
        opened = LinearNetwork.of(at, as_one(return_ratios(at)), cut(at))
        margins = margins_of(opened, verdict=report.counts.verdict)
        return np.array([*found, *(getattr(margins, key) for key in _KEYS)])

    now = figures(point)
    with Progress(len(chosen), about="sensitivities", unit="parameters") as bar:
        for k, p in enumerate(chosen):
            rows.append(derivative(point, p, p.value, figures, now))
            bar.reach(k + 1)
    now[:2] = -root.real, abs(root.imag)
    return Sensitivities(tuple(chosen), now, np.array(rows, float))


# --- A stability report as HTML: the verdict, the numbers, and the Nyquist picture ---------------


def rows_of(report: StabilityReport) -> list[tuple[str, str]]:
    """What there is to say, as pairs of name and value."""
    rate = report.decay_rate
    rows = [
        ("verdict", report.margins.verdict),
        ("regime", report.regime),
        ("unstable roots", _many(report.unstable, report.encirclements)),
        (
            "rightmost roots [1/s]",
            ", ".join(_root(s) for s in report.rightmost_roots if s.imag >= 0) or "not settled",
        ),
        ("decay rate", "not settled" if math.isnan(rate) else f"{rate:.5g} 1/s"),
        *_margin_rows(report),
    ]
    fair = report.fairness
    if fair is not None:
        of = f" among {fair.among}" if fair.among else ""
        rows.append(
            ("fairness mode", f"{_root(fair.root)} 1/s{of}, halves in {fair.half_life:.4g} s")
        )
    rows += [
        ("other equilibria along", f"{d} (roots at zero left out: {d.multiplicity})")
        for d in report.free
    ]
    rows += [("doubtful", text) for text in report.warnings]
    if report.trackers:
        rows.append(("taken as parameters", ", ".join(report.trackers)))
    for name, proof in report.certificates.items():
        text = (
            f"{proof.unstable} unstable roots, proved"
            if proof.certified
            else f"not proved: {proof.reason}"
        )
        if proof.abscissa is not None:
            text += (
                f"; the rightmost between {proof.abscissa[0]:.9g} and {proof.abscissa[1]:.9g} 1/s"
            )
        rows.append((f"certificate, {name}", text))
    return rows


def _many(unstable: float, turns: float | None = None) -> str:
    if math.isinf(unstable):
        return "infinitely many"
    return str(unstable) if turns is None else f"{unstable} ({turns} encirclements of -1)"


def _margin_rows(report: StabilityReport) -> list[tuple[str, str]]:
    """The margins of a stable network; of another one the gains at which a root is on the axis."""
    m = report.margins
    gains = [(m.gain_above, m.phase_crossover)]
    gains += [(m.gain_below, m.phase_crossover_down)] if m.gain_below else []
    known = [
        f"{gain:.5g} ({20 * math.log10(gain):.3g} dB) at {omega:.4g} rad/s"
        for gain, omega in gains if not math.isnan(gain)
    ]  # fmt: skip
    said = " and ".join(known)
    if not report.stable:
        none = [("margins", f"none: {report.verdict}")]
        return [*none, ("a root is on the axis at gains of", said)] if known else none
    if not known:
        return [("margins", "not known")]
    told = report.broken_at == "marks"
    broken = [("margins of the loop at", ", ".join(report.open.inputs))] if told else []
    if not told and any(clocked(f.spec.law) for f in report.point.classes):
        broken = [("margins of the loop at", _LAP)]
    lag = f"{m.phase_lag:.5g} deg of lag"
    if m.phase < 0 or m.gain_down:
        lag = f"{m.phase_lead:.5g} deg of lead, {lag}"
    return [
        *broken,
        ("gain margin", said),
        ("phase margin", f"{lag}, at {m.crossover:.4g} rad/s"),
        (
            f"delay margin, every {'signal' if told else 'flow'}",
            f"{m.delay:.5g} s at {m.delay_crossover:.4g} rad/s",
        ),
        ("modulus margin", f"{m.modulus:.5g} at {m.modulus_frequency:.4g} rad/s"),
        ("sensitivity peaks", f"Ms {m.ms:.4g}, Mt {m.mt:.4g}"),
    ]


_LAP = (
    "flows' rates, clock of acknowledgements included: gains near 1 are the clock's, not the law's"
)


def _root(s: Any) -> str:
    return f"{s.real:.5g}" + (f" \u00b1 {abs(s.imag):.5g}j" if abs(s.imag) > 1e-12 else "")


def _rightmost_roots(counts: Counts, count: int) -> tuple[NDArray[np.complex128], str]:
    """The first of the rightmost roots of all parts; and why there is none, where a part's cannot
    be settled.

    The verdict does not rest on them. Those right of the axis are known from the count.
    """
    found, none = [], np.array([complex(np.nan, np.nan)])
    if any(math.isinf(c.unstable) for c in counts.zeros.values()):
        return none, "infinitely many are right of the axis"
    try:
        for name, system in counts.parts.items():
            left = counts.gone.get(name, 0)
            if not name or system.n_states > left:
                every = without_zeros(system, system.rightmost(count + left), left)
                if system.n_states > left and not len(every):
                    raise Undecided("beside those at zero none is proved to be the rightmost")
                found.append(np.repeat(every, counts.times[name]))
    except (Undecided, Unsupported) as error:
        growing = {n: c.roots[c.roots.real > 0] for n, c in counts.zeros.items() if c.unstable}
        if not growing or any(len(s) < counts.zeros[n].unstable for n, s in growing.items()):
            return none, str(error)
        found = [np.repeat(s, counts.times[n]) for n, s in growing.items()]
    first = _first(np.concatenate(found), count)
    if counts.unstable and not np.any(first.real > 0):
        return none, f"{counts.unstable} roots right of the axis are counted, and none was found"
    return first, ""


def _first(every: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """The rightmost of some roots, each beside its conjugate: one more where that is the last."""
    upper = every[every.imag >= 0]
    found: list[complex] = []
    for root in upper[np.argsort(-upper.real, kind="stable")].tolist():
        if len(found) >= count:
            break
        found += [root, root.conjugate()] if root.imag else [root]
    return np.array(found, complex)


# --- `StabilityReport` ----------------------------------------------------------------------------


@explained_class
@dataclass(frozen=True, eq=False)
class StabilityReport:
    """The verdict on a network near its equilibrium.

    Margins are NaN where the network is not stable. They are those of the loop whose equilibrium
    and gains stay as they are (a margin of a parameter at which the network finds another
    equilibrium is `fluidcc.stability_boundary`). The loop is broken at the rate of every flow; what
    a law hears of its own past belongs to it, also in the differences among identical flows. Where
    a window that is clocked by acknowledgements hears what links send it is broken there, at all
    marks, losses, prices and offers, with the clock closed inside, as in the design of queue
    management: gains are those of the links' laws, and a later signal is a longer round trip. What
    flows hear by delay is closed inside too. With several signals margins are those of all of them
    together, of the eigenloci of the matrix. A window that hears of delay alone is broken at its
    rate, where its gain margin is close to 1.

    Attributes
    ----------
    stable : bool
        Every root has a negative real part, those at zero aside that belong to `free`.
    marginal : bool
        None is positive, but another one is zero to the resolution of the numbers; then `stable` is
        False.
    unstable : int or inf
        Roots with positive real part, those among identical flows included.
    encirclements : int
        Of -1 by the eigenloci of L, clockwise: unstable roots of the closed loop less those of the
        open one.
    open_unstable : int
        Roots of the open loop with positive real part, those among identical flows included.
    closed, open : LinearNetwork
        The closed loop, by class of identical flows; and the return ratio whose margins are given:
        of what links send, or of all flows: of each class that of its mean (times the root of their
        number, so that singular values are those of all flows), beside it that of its differences
        if the law hears its own past.
    trackers : tuple of str
        States that were taken as parameters.
    free : tuple of FreeDirection
        Directions along which the equilibrium is not determined, with a root at zero each: small
        disturbances leave the network elsewhere on that continuum. The verdict is about the other
        roots.
    certificates : dict of str to Certificate
        With ``certify=True``: what interval arithmetic proves of the roots of the ``"loop"`` and of
        the differences within each class of identical flows. It holds for the matrices as they
        stand.
    counts : Counts
        What was counted, of the loop and of the differences within each class.
    wanted : int
        How many of the rightmost roots to find.
    """

    stable: bool
    marginal: bool
    unstable: Any
    encirclements: Any
    open_unstable: Any
    closed: LinearNetwork = field(repr=False)
    open: LinearNetwork = field(repr=False)
    free: tuple[FreeDirection, ...] = ()
    certificates: dict[str, Certificate] = field(default_factory=dict, repr=False)
    counts: Counts = field(kw_only=True, repr=False)
    wanted: int = field(kw_only=True, repr=False)

    # --- roots ------------------------------------------------------------------------------------

    @property
    def rightmost_roots(self) -> NDArray[np.complex128]:
        """By falling real part [1/s], N - 1 times those of the differences among N identical flows,
        without those at zero that belong to `free`: as many as can be proved to be these.

        One NaN where none can be settled, or infinitely many are unstable, which `warnings` tells
        then: the verdict does not rest on them.
        """
        return self._settled[0]

    @property
    def unsettled(self) -> str:
        """Why the rightmost roots are not known, if they are not."""
        return self._settled[1]

    @cached_property
    def _settled(self) -> tuple[NDArray[np.complex128], str]:
        return _rightmost_roots(self.counts, self.wanted)

    # --- margins ----------------------------------------------------------------------------------

    @cached_property
    def margins(self) -> Margins:
        """Of all flows or signals together, with every frequency: found when first read."""
        return margins_of(self.open, verdict=self.counts.verdict)

    @property
    def gain_margin(self) -> float:
        """The least factor above one on the gains of all flows, or of all that links send, that
        makes a stable network unstable; see `broken_at`.
        """
        return float(self.margins.gain)

    @property
    def critical_gain(self) -> float:
        """The factor nearest to one, above or below, that brings a root to the axis, stable or not;
        the equilibrium stays as it is.
        """
        return float(self.margins.gain_nearest)

    @property
    def phase_margin(self) -> float:
        """Phase lag of all of them that does [degrees]; negative where a lead does before a lag."""
        return float(self.margins.phase)

    @property
    def delay_margin(self) -> float:
        """Smallest common extra delay that destabilises the network [s]; see `of_flow` for one."""
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
        return 0.0 - float(self.rightmost_roots[0].real) if len(self.rightmost_roots) else math.inf

    def of_flow(self, name: str) -> Margins:
        """Margins of one flow's own loop, all others closed: what this flow alone tolerates. It is
        broken at its rate, or where a clocked window hears what links send.

        Raises
        ------
        UnknownName
            If no flow of that name listens.
        """
        known = [n for f in self.point.classes for n in f.names]
        if not isinstance(name, str) or name not in known:
            raise UnknownName(f"no flow {shown(name)} listens; {near(str(name), known)}")
        point, k = with_alone(self.point, name)
        loop = cut(point, k)
        alone = LinearNetwork.of(point, wire(point, loop, k))
        return margins_of(alone, k if loop == "open" else None, self.counts.verdict)

    def eigenloci(
        self,
        low: float | None = None,
        high: float | None = None,
        at: str | None = None,
        points: int | None = None,
    ) -> EigenLoci:
        """Eigenvalues of the return ratio over frequency, from `low` to `high` [rad/s].

        Parameters
        ----------
        low, high : float, optional
            Ends of the frequencies; by default those that matter for the margins.
        at : {"flows", "links"}, optional
            Where the loop is broken, as for `fluidcc.linearize`; by default where margins are read,
            `broken_at`. At flows and links the loci are the same unless a law hears its own past.
        points : int, optional
            So many frequencies at least, in equal ratios; by default only as many as the loci need.

        Raises
        ------
        UnknownName
            If `at` is none of these.
        InvalidInput
            If `low` or `high` is no positive number, there is no range between them, or `points` is
            not from 2 to 1,000,000.
        """
        at = self.broken_at if at is None else at
        choice(at, "at", tuple(dict.fromkeys(("flows", "links", self.broken_at))))
        right = "a positive frequency in rad/s"
        low, high = (
            None if w is None else number(w, n, right, above=0.0)
            for n, w in (("low", low), ("high", high))
        )
        loop = self.open
        if at != self.broken_at:
            links = wire(self.point, "links" if at == "links" else "open")
            parts = [links] if at == "links" else apart(self.point, links)
            loop = LinearNetwork.of(self.point, as_one(parts))
        count = 0 if points is None else whole(points, "points", least=2, most=1_000_000)
        return eigenloci(loop, low, high, count)

    # --- what it rests on -------------------------------------------------------------------------

    @property
    def point(self) -> OperatingPoint:
        """The operating point."""
        return self.closed.point

    @property
    def delays(self) -> str:
        """How delays were taken, "fifo" or "frozen"."""
        return self.point.delays

    @property
    def broken_at(self) -> str:
        """Where the loop is broken whose margins these are: at the rates of "flows", or at the
        "marks", all that links send.
        """
        return "flows" if self.open._loop == "open" else "marks"

    @property
    def equilibrium(self) -> Equilibrium:
        """The equilibrium."""
        return self.point.rest

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the equilibrium doubtful (see `Equilibrium`), or the verdict; and why the
        rightmost root is not known, once it was looked for.
        """
        known = "_settled" in vars(self) and self.unsettled
        roots = [f"the verdict is known, the rightmost root is not: {known}"] if known else []
        doubts = [UNDECIDED] if self.marginal else [ENDLESS] if math.isinf(self.unstable) else []
        if "margins" in vars(self) and self.stable and math.isnan(self.gain_margin):
            doubts.append(UNKNOWN)
        return (*self.equilibrium.warnings, *static_windows(self.point), *doubts, *roots)

    @property
    def trackers(self) -> tuple[str, ...]:
        """States that were taken as parameters: constant near the equilibrium, or integrators
        that nobody reads.
        """
        return self.closed.trackers

    @property
    def regime(self) -> str:
        """What holds the flows back: "delay-driven", "loss-driven", "mark-driven", "mixed",
        "price-driven", "offer-driven" or "no feedback". A queue that marks or drops early counts by
        that, whatever its delay does beside.
        """
        sent = link_outputs(self.point)
        early = np.asarray(sent["mark"] + sent["drop"]) > 0
        kinds = set()
        for l in {l for f in self.point.classes for l in f.route}:
            if self.point.mode[l] == FULL:
                kinds.add("loss-driven")
            elif early[l] or self.point.mode[l] == BUSY:
                kinds.add("mark-driven" if early[l] else "delay-driven")
        if kinds:
            return "mixed" if len(kinds) > 1 else kinds.pop()
        if not has_loop(wire(self.point, "open")):
            return "no feedback"
        return "offer-driven" if np.any(self.point.least >= 0) else "price-driven"

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """What moves at each of the rightmost roots."""
        if self.unsettled:
            return ()
        return modes_of(self.point, self.counts.parts, self.rightmost_roots)

    @cached_property
    def fairness(self) -> Mode | None:
        """The slowest mode in which rates shift from flow to flow; None if there is one flow, or
        none among `modes`.
        """
        shifts = (mode for mode in self.modes if mode.shifts)
        return max(shifts, key=lambda mode: mode.root.real, default=None)

    @cached_property
    def sufficient(self) -> Any:
        """The papers' sufficient conditions by name, each with its verdict and its conservatism."""
        exact = None  # of the flows' rates, to which the conditions apply
        if self.broken_at == "flows":
            exact = float(self.margins.gain_below if self.unstable else self.margins.gain_above)
        found = import_module(f"{above.CONDITIONS_IN}.sufficient")
        return found.sufficient_conditions(self.point.net, self.point, exact)

    @cached_property
    def passivity(self) -> Any:
        """Whether the passivity argument proves local stability without communication delays."""
        found = import_module(f"{above.CONDITIONS_IN}.passivity")
        return found.passivity(self.point.net, self.point)

    @cached_property
    def sensitivities(self) -> Sensitivities:
        """Derivatives of the rightmost root and of each margin by every parameter."""
        if not len(self.rightmost_roots) or self.unsettled:
            why = self.unsettled or "the linearisation has no state, so that nothing moves"
            raise SolverError(
                f"sensitivities are those of the rightmost root, of which there is none: {why}"
            )
        return sensitivities(self)

    def __bool__(self) -> bool:
        return self.stable

    def __repr__(self) -> str:
        if self.stable:
            said = [*in_words(self.margins), f"decay rate {self.decay_rate:.4g} 1/s"]
        else:
            roots = f"{_many(self.unstable)} unstable root{'s' * (self.unstable > 1)}"
            said = [roots] if self.unstable else []
            said.append(f"critical gain {self.critical_gain:.4g}")
            said.append(f"growth rate {-self.decay_rate:.4g} 1/s")
        said = [text for text in said if "nan" not in text]  # why, is among the doubts
        doubts = "".join(f"; {text}" for text in self.warnings)
        verdict, known = self.margins.verdict, ", ".join(said) or "margins not known"
        return f"StabilityReport({verdict}, {self.regime}: {known}{doubts})"

    def __str__(self) -> str:
        return in_lines(rows_of(self))

    @property
    def certified(self) -> bool | None:
        """The verdict as proved: True or False; None where nothing was asked for, or nothing
        could be proved.
        """
        proved = [c.stable for c in self.certificates.values()]
        if not proved or None in proved:
            return False if False in proved else None
        return all(proved)

    @property
    def verdict(self) -> str:
        """``"stable"``, ``"marginal"`` or ``"unstable"``."""
        return "stable" if self.stable else "marginal" if self.marginal else "unstable"

    def _repr_html_(self) -> str:
        rows = in_html(rows_of(self))
        return rows if self.regime == "no feedback" else rows + image(self, "nyquist")
