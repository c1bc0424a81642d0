"""Frequency responses and roots of a network: Nyquist and Bode plots, and the map of roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained, number, shown, whole
from fluidcc.base.colours import BLACK, GREY, RED, colour
from fluidcc.base.errors import InvalidInput, Undecided, Unsupported
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.numerics.linear.margins import Closed, EigenLoci, Margins, eigenloci, margins
from fluidcc.plotting.common import axes_for, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMOOTH = 1500  # frequencies, so that a curve has no corners
TURN = np.exp(1j * np.linspace(0, 2 * np.pi, 181))


def _report(of: Any) -> Any:
    """Return the report of a network; a report as it is."""
    from fluidcc.analysis.report import StabilityReport
    from fluidcc.analysis.stability import stability
    from fluidcc.network import Network

    if isinstance(of, StabilityReport):
        return of
    if isinstance(of, Network):
        return stability(of)
    raise InvalidInput(
        f"give a Network or a StabilityReport, or a DelayLTI (for nyquist and bode a return "
        f"ratio), not {shown(of)}"
    )


def _loop(
    of: Any, low: float | None, high: float | None, at: str | None
) -> tuple[EigenLoci, Margins, str]:
    """Return loci, margins and title of a return ratio, or of that of a report or a network."""
    if isinstance(of, DelayLTI):
        if at is not None:
            raise InvalidInput(f"at is {shown(at)}, but a DelayLTI is the return ratio itself")
        try:
            found = of.margins()  # refuses one that is not square
            title = found.verdict
        except (Unsupported, Undecided):  # the loci are there all the same
            found, title = margins(of, verdict=Closed(False, 0)), "stability not settled"
        return eigenloci(of, low, high, SMOOTH), found, title
    report = _report(of)
    return report.eigenloci(low, high, at, SMOOTH), report.margins, _verdict(report)


def _verdict(report: Any) -> str:
    return f"{report.verdict}, {report.encirclements} encirclements of -1"


@explained
def nyquist(
    of: Any,
    *,
    ax: Any = None,
    reach: float = 2.0,
    at: str | None = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the eigenloci of the return ratio, with the unit circle, -1 and the margins.

    Parameters
    ----------
    of : Network, StabilityReport or DelayLTI
        A DelayLTI is taken as the return ratio itself, closed by negative feedback.
    ax : Axes, optional
        Where to draw; by default a new figure.
    reach : float
        Half the width of the picture; loci outside are cut.
    at : {"flows", "links"}, optional
        Where the loop of a network is broken, as for `StabilityReport.eigenloci`; by default where
        the margins are read that are drawn.
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default the verdict.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes.

    Returns
    -------
    Axes
        Loci over positive frequencies (solid) and negative ones (dotted), arrows towards higher
        frequency; the points at which gain, phase and modulus margins are read, or, where the
        closed loop is not stable, that of the critical gain.

    Raises
    ------
    InvalidInput
        If `of` is none of these, or a DelayLTI that is not square.

    Examples
    --------
    >>> import fluidcc as fc
    >>> ax = fc.plot.nyquist(fc.DelayLTI.transfer([2], [1, 1], delay=1.0))
    """
    loci, found, verdict = _loop(of, None, None, at)
    reach = number(reach, "reach", "a positive number", above=0.0)
    (one,) = axes_for(ax, 1, (7.6, 5.0), figsize, square=True)
    for k, locus in enumerate(loci.value):
        first = k == 0
        one.plot(locus.real, locus.imag, color=colour(k), linewidth=1.3,
                 label="eigenloci, \u03c9 > 0" if first else None)  # fmt: skip
        one.plot(locus.real, -locus.imag, color=colour(k), linewidth=0.9, linestyle=":",
                 label="\u03c9 < 0" if first else None)  # fmt: skip
        _arrow(one, locus, reach, colour(k))
        _arrow(one, locus[::-1].conj(), reach, colour(k))
    dashed: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": "--"}
    one.plot(TURN.real, TURN.imag, **dashed, label="unit circle")
    one.plot([-1], [0], "+", color=RED, markersize=11, markeredgewidth=1.8, label="-1")
    _mark_margins(one, found)
    one.axhline(0, color=GREY, linewidth=0.5)
    one.axvline(0, color=GREY, linewidth=0.5)
    one.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="real part of \u03bb(L)",
            ylabel="imaginary part of \u03bb(L)")  # fmt: skip
    one.set_aspect("equal")
    finish(one, title, legend, verdict)
    return one


def _arrow(one: Axes, locus: Any, reach: float, color: str) -> None:
    """Draw an arrow towards higher frequency, after a third of the visible curve."""
    seen = np.flatnonzero(
        (np.abs(locus.real) < reach) & (np.abs(locus.imag) < reach) & (np.abs(locus) > 0.1)
    )
    if len(seen) < 3:
        return
    way = np.abs(np.diff(locus[seen], prepend=locus[seen[0]])).cumsum()
    k = max(int(seen[np.searchsorted(way, way[-1] / 3)]), 1)
    a, b = locus[k - 1], locus[k]
    head = {"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0, "linewidth": 0,
            "mutation_scale": 16}  # fmt: skip
    one.annotate("", (b.real, b.imag), (a.real, a.imag), arrowprops=head)


def margin_points(m: Any) -> list[tuple[str, str, complex]]:
    """Return where margins are read in a Nyquist plot: marker, label and point of each there is;
    of a loop that is not stable that of the gain at which a root is on the axis.
    """
    points = []
    gain, name = (m.gain, "gain margin") if m.stable else (m.gain_nearest, "critical gain")
    if np.isfinite(gain) and gain > 0:
        points.append(("o", f"{name} {gain:.3g}", complex(-1 / gain)))
    if np.isfinite(m.phase) and np.isfinite(m.crossover):
        at = complex(-np.exp(1j * np.radians(m.phase)))
        points.append(("s", f"phase margin {m.phase:.3g}\u00b0", at))
    return points


def modulus_circle(m: Any) -> tuple[str, Any] | None:
    """Return label and points of the circle round -1 that the loci touch, where there is one."""
    if not np.isfinite(m.modulus):
        return None
    return f"modulus margin {m.modulus:.3g}", -1 + m.modulus * TURN


def _mark_margins(one: Axes, m: Margins) -> None:
    hollow: dict[str, Any] = {"color": RED, "markersize": 5, "fillstyle": "none"}
    for marker, label, at in margin_points(m):
        one.plot([at.real], [at.imag], marker, **hollow, label=label)
    if circle := modulus_circle(m):
        label, points = circle
        one.plot(points.real, points.imag, color=RED, linewidth=0.7, label=label)


@explained
def bode(
    of: Any,
    *,
    ax: Any = None,
    low: float | None = None,
    high: float | None = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
) -> list[Axes]:
    """Draw modulus and phase of the eigenloci of the return ratio.

    Parameters
    ----------
    of : Network, StabilityReport or DelayLTI
        A DelayLTI is taken as the return ratio itself, closed by negative feedback.
    ax : two Axes, optional
        Where to draw; by default a new figure.
    low, high : float, optional
        Frequencies [rad/s]; by default from a hundredth of the lower crossover to five times the
        upper one.
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default the verdict.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes.

    Returns
    -------
    list of Axes
        Modulus and phase, with the crossovers.

    Examples
    --------
    >>> import fluidcc as fc
    >>> modulus, phase = fc.plot.bode(fc.DelayLTI.transfer([2], [1, 1], delay=1.0))
    """
    loci, m, verdict = _loop(of, low, high, None)
    above, below = axes_for(ax, 2, (6.4, 5.4), figsize)
    crossovers = [w for w in (m.crossover, m.phase_crossover) if 0 < w < np.inf]
    keep = loci.omega > 0
    if crossovers and low is None:
        keep &= loci.omega >= min(crossovers) / 100
    if crossovers and high is None:
        keep &= loci.omega <= 5 * max(crossovers)
    for k, locus in enumerate(loci.value):
        name = f"eigenlocus {k + 1}" if len(loci.value) > 1 else "eigenlocus"
        above.loglog(loci.omega[keep], np.abs(locus[keep]), color=colour(k), label=name)
        phase = np.degrees(np.unwrap(np.angle(locus[keep])))
        below.semilogx(loci.omega[keep], phase, color=colour(k))
    above.axhline(1, color=GREY, linewidth=0.7)
    bottom, top = below.get_ylim()
    for turn in range(-20, 21):
        level = -180 + 360 * turn
        if bottom <= level <= top:
            below.axhline(level, color=GREY, linewidth=0.7)
    marks = (("crossover", m.crossover, "s"), ("phase crossover", m.phase_crossover, "o"))
    for name, omega, style in marks:
        if np.isfinite(omega) and omega > 0:
            for one in (above, below):
                one.axvline(omega, color=RED, linewidth=0.8,
                linestyle="--" if style == "s" else ":",
                            label=f"{name} {omega:.3g} rad/s"
                             if one is above else None)  # fmt: skip
    above.set(ylabel="modulus of \u03bb(L)")
    below.set(ylabel="phase of \u03bb(L) [\u00b0]", xlabel="frequency \u03c9 [rad/s]")
    finish(above, title, legend, verdict)
    return [above, below]


@explained
def root_map(
    of: Any,
    *,
    count: int = 12,
    ax: Any = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the rightmost characteristic roots.

    Parameters
    ----------
    of : Network, StabilityReport or DelayLTI
        A DelayLTI is taken as it is, such as a closed loop.
    count : int
        How many of its roots.
    ax : Axes, optional
        Where to draw; by default a new figure.
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default the verdict.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes.

    Returns
    -------
    Axes
        Roots of the loop, of the differences among identical flows, the imaginary axis, and
        the line of the decay rate.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC], {"capacity": "3 Mbit/s"}, rtt="50 ms")
    >>> ax = fc.plot.root_map(net, count=6)
    >>> ax = fc.plot.root_map(fc.DelayLTI.transfer([2], [1, 1], delay=1.0).feedback())
    """
    report = None if isinstance(of, DelayLTI) else _report(of)  # true of a stable one alone
    count = whole(count, "count", least=1, most=10_000)
    s = (of if report is None else report.closed).roots(count=count)
    if not len(s):
        raise InvalidInput(f"{of!r} has no roots to draw; give a system with states")
    (one,) = axes_for(ax, 1, (6.4, 4.6), figsize)
    width = float(np.ptp([*s.real, 0.0])) or 1.0
    one.axvspan(0, 0.3 * width, color=RED, alpha=0.06, linewidth=0)
    name = "roots" if report is None else "closed loop"
    one.plot(s.real, s.imag, "x", color=colour(0), label=name)
    for name, system in () if report is None else report.closed.deviations().items():
        own = system.roots(count=2)
        one.plot(
            own.real,
            own.imag,
            "o",
            color=colour(1),
            fillstyle="none",
            label=f"differences in {name}",
        )
    one.axvline(0, color=BLACK, linewidth=0.8)
    rate = 0.0 - float(s[0].real) if report is None else report.decay_rate
    one.axvline(-rate, color=GREY, linewidth=0.8, linestyle="--",
                label=f"decay rate {rate:.3g} 1/s")  # fmt: skip
    one.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    one.set_xlim(min(s.real.min(), 0.0) - 0.05 * width, max(s.real.max(), 0.0) + 0.05 * width)
    finish(one, title, legend, "" if report is None else _verdict(report))
    return one
