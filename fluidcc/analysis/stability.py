"""`stability`: the verdict on a network near its equilibrium, from a count of roots, and its
margins; and `verdicts_at`, the same at many points: the same laws and routes, with other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linearize import Counts, LinearNetwork
from fluidcc.analysis.modes import DOUBTFUL, resting_point
from fluidcc.analysis.operating import operating_points, static_windows
from fluidcc.analysis.point import OperatingPoint, copies
from fluidcc.analysis.report import MARGINS, StabilityReport
from fluidcc.analysis.wiring import (
    Matrices,
    as_one,
    cut,
    deviations,
    has_loop,
    opened_parts,
    return_ratios,
    wire_both,
)
from fluidcc.base.arguments import explained, flag, whole
from fluidcc.base.errors import FluidccError, gathered, warn
from fluidcc.network.network import require_network
from fluidcc.numerics.linear.count import counted, counts_of_stack, right_of_stack
from fluidcc.numerics.linear.margins import Margins, margins_of_stack
from fluidcc.numerics.linear.roots import rightmost_of_stack

if TYPE_CHECKING:
    from fluidcc.equilibria.many import Equilibria
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network import Network
    from fluidcc.numerics.certify import Certificate


@explained
def stability(
    net: Network,
    *,
    delays: str = "fifo",
    at: float | str | Equilibrium = math.inf,
    roots: int = 4,
    certify: bool = False,
) -> StabilityReport:
    """Judge a network near its equilibrium, exactly.

    The verdict is the number of characteristic roots in the right half plane, counted by the
    argument principle; margins come from the eigenloci of the return ratio L, broken at the flows'
    rates, or at what links send if windows that acknowledgements clock hear it. They, roots and
    all that rests on these are found when they are first read.

    Parameters
    ----------
    net : Network
    delays : {"fifo", "frozen"}
        As for `fluidcc.linearize`.
    at : float, str or Equilibrium
        As for `fluidcc.linearize`.
    roots : int
        How many rightmost roots to report.
    certify : bool
        Enclose the count and the rightmost root in interval arithmetic too.

    Returns
    -------
    StabilityReport
        True if stable. ``margins`` of all flows and `StabilityReport.of_flow` of one,
        ``rightmost_roots`` and what moves at them in ``modes`` and ``fairness``, the papers'
        conditions in ``sufficient``, ``passivity``, ``sensitivities``, and with `certify` what is
        proved in ``certified`` and ``certificates``.

    Raises
    ------
    NoEquilibrium, Unsupported, InvalidInput
        As `fluidcc.linearize`.
    Undecided
        A root may lie on the axis, and contour and roots disagree after refinement.

    Notes
    -----
    Laws of the literature that send a window over the round trip, W/RTT, such as `StaticReno`,
    are judged as they stand: the rate follows the round trip that the sender hears of, one round
    trip late. Over active queue management that misjudges TCP, and the report says so in its
    ``warnings``. 60 flows of StaticReno at 3,750 packets/s, with a round trip of 0.246 s and marks
    in proportion to the queue, are stable up to 6.65e-5 a packet; in the model of Misra, Gong and
    Towsley, where the rate follows the queue's round trip at once, up to 1.82e-4; with a clock of
    acknowledgements, as laws of `fluidcc.window` have it, up to 2.3e-4. Over RED, the queue of such
    a run is up to 20 % off that of packets, and its utilisation up to 19 %. Where acknowledgements
    clock the next packets their loop is left closed, and the loop of marks, losses, prices and
    offers is broken where links send them: the gain margin is then by how much the gains of a
    queue's law may rise; see `StabilityReport`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> report = fc.stability(fc.dumbbell([fc.LDCC] * 3, {"capacity": "3 Mbit/s"}, rtt="50 ms"))
    >>> report.stable, report.regime, report.encirclements
    (True, 'delay-driven', 0)
    """
    require_network(net)
    roots = whole(roots, "roots", least=1, most=10_000)
    flag(certify, "certify")
    point = resting_point(net, at, delays)
    joined, broken = wire_both(point)
    ratios = return_ratios(point, broken)
    parts = opened_parts(point, broken, ratios)
    _warn_without_loop(point, broken)
    counts = Counts.of(point, joined)
    times, unstable = counts.times, counts.unstable
    by_contour = sum(times[n] * c.by_contour for n, c in counts.zeros.items())
    open_unstable = sum(
        times[name] * counted(LinearNetwork.of(point, own)._search).unstable
        for name, own in parts.items()
    )
    stable = unstable == 0 == counts.on_axis
    return StabilityReport(
        stable=stable,
        marginal=unstable == 0 and not stable,
        unstable=unstable,
        encirclements=by_contour - open_unstable,
        open_unstable=open_unstable,
        closed=counts.parts[""],
        open=LinearNetwork.of(point, as_one(ratios), cut(point)),
        free=counts.free,
        certificates=_certified(counts.parts) if certify else {},
        counts=counts,
        wanted=roots,
    )


def _certified(parts: dict[str, LinearNetwork]) -> dict[str, Certificate]:
    from fluidcc.numerics.certify import certify

    return {name or "loop": certify(system) for name, system in parts.items()}


def _warn_without_loop(point: OperatingPoint, opened: Matrices) -> None:
    if not np.any(point.regulating) and not has_loop(opened):
        links = sorted({point.links[l].name for f in point.classes for l in f.route})
        warn(
            f"no flow is connected to a saturated link, a price or an offer ({', '.join(links)} "
            "carry less than their capacity), so there is no loop: the verdict is that of the laws "
            "alone, and the margins are infinite; if a queue is meant, give less capacity or more "
            "flows",
            stacklevel=4,  # beyond `explained`: the line that asks
        )


# --- many points at once --------------------------------------------------------------------------

# A point's results depend on no other point, to the bit: what is evaluated for many at once is
# evaluated number by number, and roots and margins are found system by system in compiled loops.
# Points that need more than that (a root on the axis, a switching surface, counts that do not
# agree) are judged by `stability` itself.


NEARNESS: dict[str, Callable[[Margins], Any]] = {
    "phase": lambda m: np.abs(m.phase_nearest),
    "crossover": lambda m: np.abs(m.phase_nearest),
    "gain_nearest": lambda m: np.maximum(m.gain_nearest, 1 / m.gain_nearest),
}
"""By what a margin is taken of that part that is the nearest to its boundary, if not by itself."""
UNSETTLED = "its rightmost root cannot be settled at once"
ROUGH = "its equilibrium is known roughly, and is judged on both sides"
UNSURE = "its counts of unstable roots do not agree at once, or a root lies on the axis"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What `fluidcc.stability` says at N points; NaN where there is no equilibrium, or what was not
    asked for.

    Attributes
    ----------
    stable, marginal : array of float (N,)
        1 or 0, as in `StabilityReport`.
    unstable, encirclements : array of float (N,)
        Whole numbers, as there.
    gain_margin, phase_margin, delay_margin, modulus_margin, crossover, critical_gain, decay_rate :
    array of float (N,)
        [1], [degrees], [s], [1], [rad/s], [1], [1/s], as there: margins of stable points alone.
    rightmost_root : array of complex (N,)
        The first of the characteristic roots [1/s].
    errors : dict of int to FluidccError
        Why a point has no verdict: what `fluidcc.stability` of that point's network raises.
    warnings : dict of int to tuple of str
        What makes a verdict doubtful, by point: as `StabilityReport.warnings`, and what
        `fluidcc.stability` warns of at those that it judged; no entry where nothing does.
    alone : dict of int to str
        The points that were judged by `fluidcc.stability` one by one, and why.
    """

    stable: Any
    marginal: Any
    unstable: Any
    encirclements: Any
    gain_margin: Any
    phase_margin: Any
    delay_margin: Any
    modulus_margin: Any
    crossover: Any
    critical_gain: Any
    decay_rate: Any
    rightmost_root: Any
    errors: dict[int, FluidccError] = field(default_factory=dict)
    warnings: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    alone: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stable)


def verdicts_at(rest: Equilibria, *, roots: bool = True, margins: bool = True) -> Verdicts:
    """Judge a network at many points.

    Parameters
    ----------
    rest : Equilibria
        Where it rests at each.
    roots : bool
        Whether to find the rightmost root.
    margins : bool
        Whether to find margins.

    Returns
    -------
    Verdicts
        Agrees with `fluidcc.stability` of each point's network to rounding. What that raises at a
        point is in ``errors``, among it `Undecided` where encirclements and roots disagree even
        after refinement.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.analysis.stability import verdicts_at
    >>> from fluidcc.equilibria.many import equilibria
    >>> from fluidcc.network.parameters import Parameters
    >>> from fluidcc.sweeps.axes import find_target
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], dict(capacity="3 Mbit/s"), rtt="50 ms")
    >>> eta = {"eta": find_target(net, "eta")}
    >>> found = verdicts_at(equilibria(Parameters.of(net, eta, {"eta": [0.4, 0.8, 3.0]})))
    >>> found.stable, found.phase_margin.round(2)
    (array([1., 1., 0.]), array([55.35, 38.51,   nan]))
    """
    given = rest.wired.given
    notes = ("errors", "warnings", "alone")
    table: dict[str, Any] = {
        f.name: np.full(given.points, np.nan) for f in fields(Verdicts) if f.name not in notes
    }
    table["rightmost_root"] = table["rightmost_root"].astype(complex)
    errors, warnings, alone = dict(rest.errors), dict(rest.warnings), dict[int, str]()
    for point in operating_points(rest, errors):
        _judge(point, table, alone, roots, margins)
        # of one of a continuum, whose error is infinite, the other side is another equilibrium
        rough = [i for i in point.rows.tolist() if DOUBTFUL <= rest.error[i] < np.inf]
        alone |= dict.fromkeys(rough, ROUGH)
        if doubts := static_windows(point):
            warnings |= {i: (*warnings.get(i, ()), *doubts) for i in point.rows.tolist()}
    for i in sorted(alone):
        try:
            with gathered() as said:
                report = stability(given.network(i), at=rest.wired.at)
        except FluidccError as error:
            errors[i] = error
            continue
        for name, column in table.items():
            if name == "rightmost_root" and roots:
                column[i] = report.rightmost_roots[0]
            elif name not in ("rightmost_root", "decay_rate") or roots:
                column[i] = getattr(report, name)
        if doubts := (*report.warnings, *said):
            warnings[i] = doubts
    return Verdicts(
        **table,
        errors=dict(sorted(errors.items())),
        warnings={i: texts for i, texts in warnings.items() if i not in errors},
        alone=dict(sorted(alone.items())),
    )


def _judge(
    point: OperatingPoint, table: dict[str, Any], alone: dict[int, str], roots: bool, margins: bool
) -> None:
    """Put the verdicts of points of one structure into the table."""
    rows = point.rows
    joined = wire_both(point)
    if not np.any(point.regulating) and not has_loop(joined[1]):  # of which it warns
        alone |= dict.fromkeys(rows.tolist(), "no flow hears of any other")
        return
    root: Any = None
    unstable, broken = np.zeros((2, len(rows)))
    times = copies(point)
    ratios = return_ratios(point, joined[1])
    opened = opened_parts(point, joined[1], ratios)
    for name, own in {"": joined[0], **deviations(point)}.items():
        if name and not own.states:
            continue
        entries = own.entries
        count, poles = counts_of_stack(entries), right_of_stack(opened[name].entries)
        if roots:
            among = rightmost_of_stack(entries)
            root = among if root is None else np.where(among.real > root.real, among, root)
            alone |= dict.fromkeys(rows[np.isnan(root)].tolist(), UNSETTLED)
        unstable += np.where(count < 0, np.nan, times[name] * count)
        broken += np.where(poles < 0, np.nan, times[name] * poles)
    alone |= dict.fromkeys(rows[~np.isfinite(unstable + broken)].tolist(), UNSURE)
    found = {"stable": unstable == 0, "marginal": 0.0, "unstable": unstable,
             "encirclements": unstable - broken}  # fmt: skip
    if roots:
        found |= {"decay_rate": 0.0 - root.real, "rightmost_root": root}
    for name, column in found.items():
        table[name][rows] = column
    if margins:
        parts = [margins_of_stack(part.entries, unstable) for part in ratios]
        for name, (key, _) in MARGINS.items():
            values = np.array([getattr(part, key) for part in parts])
            # NaN, of a crossover that there is none of, stands beside an infinite phase.
            size = NEARNESS.get(key, attrgetter(key))
            which = np.argmin([size(part) for part in parts], axis=0)
            table[name][rows] = np.take_along_axis(values, which[None], axis=0)[0]
