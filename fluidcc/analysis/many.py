"""Verdicts and margins of a network at many points at once: the same laws and routes, with other
numbers.

A point's results depend on no other point, to the bit: what is evaluated for many at once is
evaluated number by number, and roots and margins are found system by system in compiled loops.
Points that need more than that (a root on the axis, a switching surface, counts that do not agree)
are judged by `fluidcc.stability` itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.operating_point import Stack, operating_points
from fluidcc.analysis.report import static_windows
from fluidcc.analysis.stability import stability
from fluidcc.analysis.wiring import Matrices, apart, deviations, has_loop, wire_both
from fluidcc.base.errors import FluidccError, gathered
from fluidcc.equilibria.many import equilibria_of
from fluidcc.network.parameters import Parameters, Target
from fluidcc.numerics.linear.count import right_of_axis, rightmost_of_stack
from fluidcc.numerics.linear.margins import Margins, margins_of_stack
from fluidcc.numerics.linear.wiring import Blocks

if TYPE_CHECKING:
    from fluidcc.network import Network


__all__ = ["Verdicts", "verdicts_at"]


MARGINS: dict[str, tuple[str, Callable[[Margins], Any]]] = {
    "gain_margin": ("gain", lambda m: m.gain),
    "phase_margin": ("phase", lambda m: np.abs(m.phase)),
    "delay_margin": ("delay", lambda m: m.delay),
    "modulus_margin": ("modulus", lambda m: m.modulus),
    "crossover": ("crossover", lambda m: np.abs(m.phase)),
    "critical_gain": ("gain_nearest", lambda m: np.maximum(m.gain_nearest, 1 / m.gain_nearest)),
}
"""What a column takes of margins, and by what it takes that of the part that is the nearest to
its boundary.
"""
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
        [1], [degrees], [s], [1], [rad/s], [1], [1/s], as there.
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

    def reasons(self) -> dict[int, str]:
        """Kind and text of why a point has no verdict, by point."""
        return {
            i: f"{type(error).__name__}: {' '.join(str(error).split())}"
            for i, error in self.errors.items()
        }


def verdicts_at(
    net: Network,
    targets: Mapping[str, Target],
    values: Mapping[str, Any],
    *,
    roots: bool = True,
    margins: bool = True,
    at: float | str = math.inf,
) -> Verdicts:
    """Judge a network at many points.

    Parameters
    ----------
    net : Network
        What all points have in common.
    targets, values : mapping
        What is changed, by axis, and its values in SI units, as
        `fluidcc.equilibria.many.equilibria` takes them.
    roots : bool
        Whether to count unstable roots and to find the rightmost one.
    margins : bool
        Whether to find margins.
    at : float
        As in `fluidcc.equilibrium`.

    Returns
    -------
    Verdicts
        Agrees with `fluidcc.stability` of each point's network to rounding.

    Raises
    ------
    Unsupported, InvalidInput
        As `fluidcc.equilibria.many.equilibria`. What `fluidcc.stability` raises at a point is in
        ``errors``, among it `Undecided` where encirclements and roots disagree even after
        refinement.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.analysis.many import verdicts_at
    >>> from fluidcc.sweeps.targets import find_target
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], dict(capacity="3 Mbit/s"), rtt="50 ms")
    >>> found = verdicts_at(net, {"eta": find_target(net, "eta")}, {"eta": [0.4, 0.8, 3.0]})
    >>> found.stable, found.phase_margin.round(2)
    (array([1., 1., 0.]), array([ 55.35,  38.51, -82.83]))
    """
    given = Parameters.of(net, targets, values)
    rest = equilibria_of(given, at)
    told = ("errors", "warnings", "alone")
    table: dict[str, Any] = {
        f.name: np.full(given.points, np.nan) for f in fields(Verdicts) if f.name not in told
    }
    table["rightmost_root"] = table["rightmost_root"].astype(complex)
    errors, warnings, alone = dict(rest.errors), dict(rest.warnings), dict[int, str]()
    if reason := _not_smooth(net):
        alone |= dict.fromkeys(np.flatnonzero(rest.found).tolist(), reason)
    else:
        for stack in operating_points(given, rest, alone):
            _judge(stack, table, alone, roots, margins)
            if doubts := static_windows(stack.point):
                warnings |= {i: (*warnings.get(i, ()), *doubts) for i in stack.rows.tolist()}
    for i in sorted(alone):
        try:
            with gathered() as said:
                report = stability(given.network(i), at=rest.at)
        except FluidccError as error:
            errors[i] = error
            warnings.pop(i, None)
            continue
        if doubts := (*report.warnings, *said):
            warnings[i] = doubts
        for name, column in table.items():
            column[i] = (
                report.rightmost_roots[0] if name == "rightmost_root" else getattr(report, name)
            )
    return Verdicts(
        **table,
        errors=dict(sorted(errors.items())),
        warnings=warnings,
        alone=dict(sorted(alone.items())),
    )


def _not_smooth(net: Network) -> str:
    """Why a network's laws cannot be taken together, or nothing."""
    laws: list[tuple[str, Any]] = [*net.flows.items(), *net.links.items()]
    for name, spec in laws:
        if spec.law.jumps or spec.law.ticks:
            return f"{name!r} has jumps or ticks"
    return ""


def _judge(
    stack: Stack, table: dict[str, Any], alone: dict[int, str], roots: bool, margins: bool
) -> None:
    """Put the verdicts of points of one structure into the table."""
    point, rows = stack.point, stack.rows
    joined = wire_both(point)
    if not np.any(point.regulating) and not has_loop(joined[1]):  # of which it warns
        alone |= dict.fromkeys(rows.tolist(), "no flow hears of any other")
        return
    if roots:
        root, count = rightmost_of_stack(_blocks(joined[0]))
        poles = right_of_axis(_blocks(joined[1]))
        unstable, broken = (np.where(found < 0, np.nan, found) for found in (count, poles))
        more = {f.label: f.count - 1 for f in point.classes}
        opened = deviations(point, "open")
        for name, own in deviations(point).items():
            if not len(own.A):
                continue
            among, count = rightmost_of_stack(_blocks(own))
            poles = right_of_axis(_blocks(opened[name]))
            root = np.where(among.real > root.real, among, root)
            unstable = unstable + np.where(count < 0, np.nan, more[name] * count)
            broken = broken + np.where(poles < 0, np.nan, more[name] * poles)
        alone |= dict.fromkeys(rows[~np.isfinite(unstable + broken)].tolist(), UNSURE)
        for name, column in {
            "stable": unstable == 0, "marginal": 0.0, "unstable": unstable,
            "encirclements": unstable - broken,
            "decay_rate": -root.real, "rightmost_root": root,
        }.items():  # fmt: skip
            table[name][rows] = column
    if margins:
        parts = [margins_of_stack(*_blocks(part)) for part in apart(point, joined[1])]
        for name, (key, size) in MARGINS.items():
            values = np.array([getattr(part, key) for part in parts])
            # NaN, of a crossover that there is none of, stands beside an infinite phase.
            which = np.argmin([size(part) for part in parts], axis=0)
            table[name][rows] = np.take_along_axis(values, which[None], axis=0)[0]


def _blocks(m: Matrices) -> Blocks:
    """Matrices of many points with the points first."""
    return Blocks(
        *(np.ascontiguousarray(np.moveaxis(part, -1, 0)) for part in (m.A, m.B, m.C, m.D, _lags(m)))
    )


def _lags(m: Matrices) -> Any:
    return m.delays if len(m.delays) else np.zeros((0, m.A.shape[-1]))
