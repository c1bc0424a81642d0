"""Where stability ends: critical parameters, their frequencies, and curves of them in two parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fluidcc.analysis.bracket import bracket, range_of
from fluidcc.analysis.crossing import abscissa, root_slopes
from fluidcc.analysis.follow import Knob, at_value, knob
from fluidcc.analysis.operating_point import Point, operating_point
from fluidcc.base.arguments import choice, explained, shown
from fluidcc.base.errors import InvalidInput, SolverError
from fluidcc.network.network import require_network

if TYPE_CHECKING:
    from fluidcc.analysis.curve import BoundaryCurve
    from fluidcc.analysis.hopf import Onset
    from fluidcc.network import Network

__all__ = ["Boundary", "stability_boundary"]


@dataclass(frozen=True)
class Boundary:
    """A value of a parameter at which the rightmost root crosses the imaginary axis.

    Attributes
    ----------
    name, units : str
        Of the parameter.
    value : float
        Where the root is on the axis, the equilibrium being that of this very value.
    frequency : float
        Imaginary part of the root [rad/s]; 0 where a real root crosses.
    kind : {"hopf", "real"}
        Of crossing.
    slope : complex
        ds/dp of the crossing root.
    stable_below : bool
        Whether the network is stable just below the value, and not above.
    point : Point
        The operating point there, with its network as ``point.net``.
    mode : str
        ``"loop"``, or the class of identical flows whose differences grow.
    delays : {"fifo", "frozen"}
        How delays were taken.
    """

    name: str
    units: str
    value: float
    frequency: float
    kind: str
    slope: complex
    stable_below: bool
    point: Point = field(repr=False)
    mode: str = "loop"
    delays: str = "fifo"

    @property
    def period(self) -> float:
        """Of the oscillation there [s]; infinite where a real root crosses."""
        return 2 * math.pi / self.frequency if self.frequency else math.inf

    def network(self, value: float) -> Network:
        """The network with another value of the parameter."""
        return knob(self.point, self.name).network(self.point.net, self.point, value)

    def onset(self, offset: float = 0.03, lifetimes: float = 6.0) -> Onset:
        """Whether a Hopf point is supercritical or subcritical, by a simulation on each side of it.

        Parameters
        ----------
        offset : float
            Relative distance of the two values from the critical one.
        lifetimes : float
            Length of each run, in 1/abs(growth rate) of the linearised network.

        Returns
        -------
        Onset
            With ``kind``, and the amplitude of the oscillation beyond the boundary.

        Raises
        ------
        InvalidInput
            If a real root crosses, so that nothing oscillates, or an argument is not positive.
        """
        from fluidcc.analysis.hopf import onset

        return onset(self, offset, lifetimes)

    def _repr_html_(self) -> str:
        from html import escape

        rows = {
            self.name: f"{self.value:.9g} {self.units}",
            "crossing": f"{self.kind}, {'stable below' if self.stable_below else 'stable above'}",
            "frequency": f"{self.frequency:.9g} rad/s (period {self.period:.4g} s)",
            "mode": self.mode,
        }
        return (
            "<table>"
            + "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
            + "</table>"
        )


@explained
def stability_boundary(
    net: Network,
    name: str,
    bounds: tuple[Any, Any] | None = None,
    *,
    along: str | None = None,
    along_bounds: tuple[Any, Any] | None = None,
    delays: str = "fifo",
    at: float = math.inf,
) -> Boundary | BoundaryCurve:
    """Find the value of a parameter at which stability is won or lost, nearest to its present one.

    At every value the equilibrium is that of the value: this is the re-equilibrated boundary, not the margin of the
    frozen loop that `fluidcc.stability` reports.

    Parameters
    ----------
    net : Network
    name : str
        ``"eta"``: of all flows whose law has it, one value for all. ``"flow.eta"``, ``"flow.access_delay"``,
        ``"flow.return_delay"``; ``"link.capacity"``, ``"link.delay"``, ``"link.buffer"``, ``"link.nu"``; without the
        name in front, of all that have it.
    bounds : pair of float or str, optional
        Where to look; by default factors up to a million both ways.
    along : str, optional
        A second parameter: the boundary is then followed as a curve while it turns, by pseudo-arclength continuation.
    along_bounds : pair of float or str, optional
        Where that curve ends; by default a factor of ten both ways.
    delays : {"fifo", "frozen"}
        As for `fluidcc.linearize`.
    at : float
        Time [s] as for `fluidcc.equilibrium`.

    Returns
    -------
    Boundary, or BoundaryCurve with `along`
        To 1e-9, by Newton's method on the characteristic equation with the exact derivative of the root. It has the
        frequency, the network at any value, and with `Boundary.onset` whether the Hopf point is super- or subcritical.

    Raises
    ------
    InvalidInput
        If the verdict is the same within the bounds, or wherever there is an equilibrium; if the equilibrium is one of
        a continuum; if `along` turns what `name` turns.
    UnknownName
        If there is no such parameter.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    >>> edge = fc.stability_boundary(net, "eta")
    >>> edge.kind, edge.stable_below
    ('hopf', True)
    """
    require_network(net)
    if along is None and along_bounds is not None:
        raise InvalidInput(f"along_bounds is {shown(along_bounds)}, but there is no along=; give both or neither")
    point = operating_point(net, at)
    turned = knob(point, name)
    start = turned.value(point)
    low, high = range_of(bounds, start, turned.units, name)
    fifo = _is_fifo(delays)
    inside, outside, where = bracket(point, turned, start, low, high, fifo)
    found = refine(where, turned, inside, outside, fifo)
    if along is None:
        return found
    from fluidcc.analysis.curve import continue_boundary

    other = knob(point, along)
    if both := {p.name for p in turned.members} & {p.name for p in other.members}:
        raise InvalidInput(f"along is {along!r}, but {name!r} turns {min(both)} already; give another parameter")
    middle = other.value(point)
    if middle <= 0:
        raise InvalidInput(f"{along} is {middle:g}; a curve is followed on a logarithmic scale, so start it above 0")
    ends = range_of((0.1 * middle, 10 * middle) if along_bounds is None else along_bounds, middle, other.units, along)
    if not ends[0] <= middle <= ends[1]:
        unit = f" {other.units}" if other.units != "1" else ""
        raise InvalidInput(
            f"along_bounds of {along} are {ends[0]:g} to {ends[1]:g}{unit}, but it is {middle:g}{unit}, where the "
            "curve starts; give bounds around it"
        )
    return continue_boundary(found, other, (max(ends[0], 1e-9 * middle), ends[1]), (max(low, 1e-9 * high), high), fifo)


def _is_fifo(delays: str) -> bool:
    return bool(choice(delays, "delays", ("fifo", "frozen")) == "fifo")


def refine(point: Point, turned: Knob, inside: float, outside: float, fifo: bool) -> Boundary:
    """The crossing between two values: a bracket on the abscissa, then Newton on the root."""
    from scipy.optimize import brentq

    at = {"point": point}

    def height(value: float) -> float:
        at["point"] = at_value(at["point"], [(turned, value)])
        return abscissa(at["point"], fifo)[0].real

    value = float(brentq(height, min(inside, outside), max(inside, outside), xtol=1e-4 * abs(outside - inside)))
    point = at_value(at["point"], [(turned, value)])
    root, mode = abscissa(point, fifo)
    for _ in range(30):
        root, slopes = root_slopes(point, mode, root, [turned], fifo)
        slope = slopes[0]
        step = -root.real / slope.real
        new = value + max(min(step, 0.5 * abs(outside - inside)), -0.5 * abs(outside - inside))
        done = abs(new - value) <= 1e-12 * abs(value)
        value = new
        point = at_value(point, [(turned, value)])
        if done:
            break
    else:
        raise SolverError(
            f"the boundary of {turned.name} near {value:.9g} could not be settled: the root's real part moves by "
            f"{slope.real:.3g} 1/s per unit there; look at fluidcc.stability on both sides"
        )
    frequency = abs(root.imag) if abs(root.imag) > 1e-9 else 0.0
    kind = "hopf" if frequency else "real"
    delays = "fifo" if fifo else "frozen"
    return Boundary(turned.name, turned.units, value, frequency, kind, slope, slope.real > 0, point, mode, delays)
