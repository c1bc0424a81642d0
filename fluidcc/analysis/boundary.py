"""Where stability ends: critical parameters, their frequencies, and curves of them in two parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fluidcc.analysis.change import Response, split
from fluidcc.analysis.continuum import free_directions
from fluidcc.analysis.follow import Knob, at_value, knob
from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.matrices import Matrices, deviation
from fluidcc.analysis.pencils import polish, root_slope
from fluidcc.analysis.point import Point, operating_point
from fluidcc.analysis.wiring import wire
from fluidcc.arguments import choice, explained, shown
from fluidcc.errors import FluidccError, InvalidInput, SolverError
from fluidcc.network import require_network
from fluidcc.patterns import is_list
from fluidcc.units import to_si

if TYPE_CHECKING:
    from fluidcc.analysis.curve import BoundaryCurve
    from fluidcc.network import Network

__all__ = ["Boundary", "abscissa", "stability_boundary"]

STEPS = 40
"""Steps by a factor, the first of 1.25 and each twice as long on a logarithmic scale, in search of a bracket."""


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

    @property
    def period(self) -> float:
        """Of the oscillation there [s]; infinite where a real root crosses."""
        return 2 * math.pi / self.frequency if self.frequency else math.inf

    def network(self, value: float) -> Network:
        """The network with another value of the parameter."""
        return knob(self.point, self.name).network(self.point.net, self.point, value)

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


def systems(point: Point, fifo: bool, merge: bool = True) -> dict[str, Matrices]:
    """The closed loop and, for each class of identical flows, their differences."""
    found = {"loop": wire(point, "closed", fifo, merge)}
    found |= {f.label: deviation(point, k) for k, f in enumerate(point.classes) if f.count > 1}
    return {name: m for name, m in found.items() if len(m.A)}


def abscissa(point: Point, fifo: bool = True) -> tuple[complex, str]:
    """The rightmost root of all, in the upper half plane, and the system it belongs to."""
    best: tuple[complex, str] = (complex(-math.inf), "loop")
    for name, m in systems(point, fifo).items():
        root = complex(LinearNetwork.of(point, m).roots(count=1)[0])
        if root.real > best[0].real:
            best = (complex(root.real, abs(root.imag)), name)
    return best


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
        To 1e-9, by Newton's method on the characteristic equation with the exact derivative of the root.

    Raises
    ------
    InvalidInput
        If the verdict is the same within the bounds, or wherever there is an equilibrium; if the equilibrium is one of
        a continuum.
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
    low, high = _range(bounds, start, turned.units, name)
    fifo = _is_fifo(delays)
    inside, outside, where = _bracket(point, turned, start, low, high, fifo)
    found = refine(where, turned, inside, outside, fifo)
    if along is None:
        return found
    from fluidcc.analysis.curve import continue_boundary

    other = knob(point, along)
    middle = other.value(point)
    if middle <= 0:
        raise InvalidInput(f"{along} is {middle:g}; a curve is followed on a logarithmic scale, so start it above 0")
    ends = _range((0.1 * middle, 10 * middle) if along_bounds is None else along_bounds, middle, other.units, along)
    return continue_boundary(found, other, (max(ends[0], 1e-9 * middle), ends[1]), (max(low, 1e-9 * high), high), fifo)


def _is_fifo(delays: str) -> bool:
    return bool(choice(delays, "delays", ("fifo", "frozen")) == "fifo")


def _range(bounds: tuple[Any, Any] | None, start: float, units: str, name: str) -> tuple[float, float]:
    if bounds is None:
        return (start * 1e-6, start * 1e6) if start > 0 else (0.0, 10.0)
    ends = [to_si(v, units, f"bounds of {name}") for v in bounds] if is_list(bounds) else []
    low, high = ends if len(ends) == 2 else (0.0, 0.0)
    if not 0 <= low < high:
        raise InvalidInput(f"bounds of {name} are {shown(bounds)}; give two values from 0 on, the lower one first")
    return low, high


def _steps(start: float, end: float) -> list[float]:
    """Values from start towards end, in growing steps; linear ones from zero."""
    if start == end:
        return []
    if min(start, end) <= 0:
        return [start + (end - start) * 2.0 ** (k - 10) for k in range(11)]
    span, found, step = math.log(end / start), [], math.log(1.25)
    total = 0.0
    while total < abs(span):
        total = min(total + step, abs(span))
        found.append(start * math.exp(math.copysign(total, span)))
        step *= 1.3
    return found


def _bracket(
    point: Point, turned: Knob, start: float, low: float, high: float, fifo: bool
) -> tuple[float, float, Point]:
    """Two neighbouring values with different verdicts, and the operating point at the first."""
    start = min(max(start, low), high)
    here = at_value(point, [(turned, start)])
    root, part = abscissa(here, fifo)
    if abs(root) < 1e-9 and (free := free_directions(here, {part: 1})):
        raise InvalidInput(
            f"the equilibrium is one of a continuum, along {free[0]}, so that it does not move with {turned.name} in "
            "one way; fluidcc.stability leaves out such roots at zero and judges the rest"
        )
    sign = root.real < 0
    ways = [(start, here, iter(_steps(start, end))) for end in (high, low)]
    stopped: list[str] = []
    while ways:
        left = []
        for value, at, steps in ways:
            new = next(steps, None)
            if new is None:
                continue
            try:
                there = at_value(at, [(turned, new)])
                other = abscissa(there, fifo)[0].real < 0
            except FluidccError as error:
                stopped.append(f"at {new:.6g}: {error}")
                continue
            if other != sign:
                return value, new, at
            left.append((new, there, steps))
        ways = left
    verdict = "stable" if sign else "unstable"
    why = f" (the search ended {'; '.join(stopped)})" if stopped else ""
    unit = f" {turned.units}" if turned.units != "1" else ""
    raise InvalidInput(
        f"the network is {verdict} at every {turned.name} looked at between {low:.6g} and {high:.6g}{unit}{why}; give "
        "other bounds, or another parameter"
    )


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
    return Boundary(turned.name, turned.units, value, frequency, kind, slope, slope.real > 0, point, mode)


def root_slopes(
    point: Point, mode: str, near: complex, knobs: Sequence[Knob], fifo: bool
) -> tuple[complex, list[complex]]:
    """The root next to `near`, polished, and its derivatives by each knob."""
    build = builder(point, mode, fifo)
    root = polish(build(point), near)
    answer = Response(point)
    slopes = []
    for one in knobs:
        total = 0j
        for p in one.members:
            value, change = split(build(answer.to(p)))
            total += root_slope(value, change, root)
        slopes.append(total)
    return root, slopes


def builder(point: Point, mode: str, fifo: bool) -> Callable[[Point], Matrices]:
    """The function from a point to the matrices of a system of it, with channels that do not merge."""
    labels = [f.label for f in point.classes]
    if mode == "loop":
        return lambda at: wire(at, "closed", fifo, False)
    return lambda at: deviation(at, labels.index(mode))
