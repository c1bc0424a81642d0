"""Where stability ends: critical parameters, their frequencies, and curves of them in two
parameters.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.change import (
    Parameter,
    StepFailed,
    abscissa,
    at_value,
    bracket,
    moved,
    parameter,
    range_of,
    root_slopes,
    same_queues,
)
from fluidcc.analysis.operating import at_numbers, operating_point
from fluidcc.analysis.point import OperatingPoint
from fluidcc.base.arguments import explained, explained_class, number, shown
from fluidcc.base.errors import FluidccError, InvalidInput
from fluidcc.base.progress import BARE, Progress
from fluidcc.base.tables import InTable
from fluidcc.network.network import require_network
from fluidcc.network.parameters import Parameters
from fluidcc.numerics.linear.dlti import DelayLTI

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.network import Network

# --- what an oscillation does beyond its onset ----------------------------------------------------


SMALL = 0.02
"""Of a motion: the push that starts it, and what is left of it when it has died out."""


@dataclass(frozen=True)
class Onset(InTable):
    """How an oscillation sets in.

    Attributes
    ----------
    kind : {"supercritical", "subcritical", "undecided"}
        Supercritical: the motion that grows on the unstable side dies out on the stable side.
        Subcritical: more than half of it lives on there beside the stable equilibrium. Undecided:
        it did neither in the time given, nothing grew, or no run came to rest to begin with.
    values : tuple of float
        Of the parameter on the unstable and on the stable side.
    amplitude : float
        Of the rates on the unstable side, half of peak to peak over the mean, when the motion that
        grew from the equilibrium has settled.
    left : float
        What was left of it on the stable side at the end.
    expected : float
        What the linear decay alone would have left.
    until : float
        Time [s] in which it was to die out.
    """

    kind: str
    values: tuple[float, float]
    amplitude: float
    left: float
    expected: float
    until: float

    _shown = ("kind", "values", "amplitude", "left", "expected", "until [s]")


def onset(boundary: Boundary, offset: float = 0.03, lifetimes: float = 6.0) -> Onset:
    """Tell a supercritical Hopf point from a subcritical one, by runs on both sides of it.

    The first run comes to rest on the stable side, if need be farther from the boundary at first.
    It goes on, pushed a little, with the value of the unstable side, where that grows into the
    oscillation next to the equilibrium; and from there with that of the stable side once more.

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
        If a real root crosses, so that nothing oscillates, an argument is not positive, or the
        parameter is a delay, which data under way cannot change.
    """
    offset = number(offset, "offset", "a relative distance between 0 and 1", above=0.0, most=0.9)
    lifetimes = number(lifetimes, "lifetimes", "a positive number", above=0.0)
    if boundary.kind != "hopf":
        raise InvalidInput(
            f"at {boundary.name} = {boundary.value:.6g} a real root crosses: nothing oscillates "
            "there"
        )
    if boundary.name.rpartition(".")[2] in _DELAYS:
        raise InvalidInput(
            f"data under way cannot change {boundary.name} from one side to the other; the Hopf "
            "point is that of other parameters too: take fluidcc.stability_boundary of "
            "edge.network(edge.value) in one of a law"
        )
    side = 1.0 if boundary.stable_below else -1.0
    unstable, stable = (boundary.value * (1 + s * side * offset) for s in (1, -1))
    rate = abs(boundary.slope.real) * offset * boundary.value
    amplitude = left = np.nan
    rest = _at_rest(boundary, side, offset, rate)
    if rest is not None:
        long = (np.log(1 / SMALL) + lifetimes) / rate  # to reach size one, were it linear, and on
        grown = _run(boundary, unstable, long, _pushed(rest, boundary.point.net))
        amplitude = _swing(grown)
        if amplitude > _swing(rest):
            left = _swing(_run(boundary, stable, lifetimes / rate, grown))
    expected = amplitude * float(np.exp(-lifetimes))
    # Nonlinear decay near a supercritical point is faster than linear; beside a cycle it stops.
    kind = "undecided"
    if left < max(10 * expected, SMALL * amplitude):
        kind = "supercritical"
    elif left > 0.5 * amplitude:
        kind = "subcritical"
    return Onset(kind, (unstable, stable), amplitude, left, expected, lifetimes / rate)


_DELAYS = ("delay", "access_delay", "return_delay")


def _at_rest(boundary: Boundary, side: float, offset: float, rate: float) -> xr.Dataset | None:
    """A run at the relative distance `offset` on the stable side whose motion dies out.

    A run begins with empty paths, which is far from any equilibrium: it may end on a cycle beside
    that. So it begins farther from the boundary where it must, and comes back.
    """
    long, far, run = np.log(1 / SMALL) / rate, offset, None
    while run is None and far < 1:
        run, far = _dying(boundary, side, far, long, rate), 2 * far
    far /= 2
    while run is not None and far > offset:
        far = max(far / 2, offset)
        run = _dying(boundary, side, far, long, rate, run)
    return run


def _pushed(run: xr.Dataset, net: Network) -> xr.Dataset:
    """The end of a run with the first state of each flow a little larger, that of the first flow
    twice as much: differences of flows that are alike are a motion, too.
    """
    from fluidcc.simulation.restart import FinalState, nudged

    last, part = FinalState.of(run), {}
    for i, name in enumerate(net.flows):
        if len(states := last.states("flow", name)):
            part["flow", name] = {0: SMALL * (0.5 if i else 1.0) * float(states[0])}
    return nudged(run, part)


def _dying(
    boundary: Boundary, side: float, far: float, long: float, rate: float, before: Any = None
) -> xr.Dataset | None:
    """A run of so long at a relative distance, if what it has at the end falls from then on."""
    value = boundary.value * (1 - side * far)
    run = _run(boundary, value, long, before)
    later = _run(boundary, value, 2 / rate, run)
    return later if _swing(later) < max(_swing(run) / 3, 1e-6) else None


def _run(boundary: Boundary, value: float, long: float, before: Any = None) -> xr.Dataset:
    """The last five periods of a run of so long with a value of the parameter, from the end of
    another one on.
    """
    from fluidcc.equilibria.equilibrium import one_equilibrium
    from fluidcc.simulation.simulate import simulate

    end = (0.0 if before is None else float(before.time[-1])) + long + 5 * boundary.period
    times = np.linspace(end - 5 * boundary.period, end, 501)[1:]
    at, how = boundary.point.net, dict[str, Any]()
    if boundary.delays == "frozen":
        still = one_equilibrium(at).array("queueing_delay").tolist()
        how = {"delays": "frozen", "frozen_at": dict(zip(at.links, still, strict=True))}
    net = boundary.network(value)
    return simulate(net, end, t_eval=times, rtol=1e-6, restart=before, **how)


def _swing(run: xr.Dataset) -> float:
    """Half of peak to peak over the mean of the liveliest rate."""
    swing = 0.5 * (run.rate.max("time") - run.rate.min("time")) / run.rate.mean("time").clip(1e-9)
    return float(swing.max())


# --- boundaries of stability in one parameter -----------------------------------------------------


@explained_class
@dataclass(frozen=True, repr=False)
class Boundary(InTable):
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
    point : OperatingPoint
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
    point: OperatingPoint = field(repr=False)
    mode: str = "loop"

    @property
    def delays(self) -> str:
        """How delays were taken, "fifo" or "frozen"."""
        return self.point.delays

    @property
    def period(self) -> float:
        """Of the oscillation there [s]; infinite where a real root crosses."""
        return 2 * math.pi / self.frequency if self.frequency else math.inf

    def network(self, value: float) -> Network:
        """The network with another value of the parameter."""
        turned = parameter(self.point, self.name), number(value, self.name)
        return moved(self.point, [turned]).network()

    onset = onset

    def _rows(self) -> list[tuple[str, str]]:
        unit = "" if self.units == "1" else f" {self.units}"
        return [
            (self.name, f"{self.value:.9g}{unit}"),
            ("crossing", f"{self.kind}, stable {'below' if self.stable_below else 'above'}"),
            ("frequency", f"{self.frequency:.9g} rad/s (period {self.period:.4g} s)"),
            ("mode", self.mode),
        ]


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

    At every value the equilibrium is that of the value: this is the re-equilibrated boundary, not
    the margin of the frozen loop that `fluidcc.stability` reports.

    Parameters
    ----------
    net : Network
    name : str
        ``"eta"``: of all flows whose law has it, one value for all. ``"flow.eta"``,
        ``"flow.access_delay"``, ``"flow.return_delay"``; ``"link.capacity"``, ``"link.delay"``,
        ``"link.buffer"``, ``"link.nu"``; without the name in front, of all that have it.
    bounds : pair of float or str, optional
        Where to look; by default factors up to a million both ways.
    along : str, optional
        A second parameter: the boundary is then followed as a curve while it turns, by
        pseudo-arclength continuation.
    along_bounds : pair of float or str, optional
        Where that curve ends; by default a factor of ten both ways.
    delays : {"fifo", "frozen"}
        As for `fluidcc.linearize`.
    at : float
        Time [s] as for `fluidcc.equilibrium`.

    Returns
    -------
    Boundary, or BoundaryCurve with `along`
        To 1e-9, where the real part of the rightmost root is zero. It has the frequency, the
        network at any value, and with `Boundary.onset` whether the Hopf point is super- or
        subcritical.

    Raises
    ------
    NoBoundary
        If the verdict is the same within the bounds, or wherever there is an equilibrium: an
        InvalidInput whose ``stable`` says which it is.
    InvalidInput
        If the equilibrium is one of a continuum; if `along` turns what `name` turns.
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
    if isinstance(net, DelayLTI):
        raise InvalidInput(
            f"net is {net!r}, which has no parameters; margins() of its return ratio gives the "
            "factors and the delay at which a root reaches the axis"
        )
    require_network(net)
    if along is None and along_bounds is not None:
        raise InvalidInput(
            f"along_bounds is {shown(along_bounds)}, but there is no along=; give both or neither"
        )
    point = operating_point(net, at, delays)
    turned = parameter(point, name)
    low, high = range_of(bounds, turned.value, turned.units, name)
    inside, outside, where = bracket(point, turned, turned.value, low, high)
    found = refine(where, turned, inside, outside)
    if along is None:
        return found
    other = parameter(point, along)
    if both := turned.settings(0).keys() & other.settings(0).keys():
        raise InvalidInput(
            f"along is {along!r}, but {name!r} varies {'{1}.{3}'.format(*min(both))} already; give "
            "another parameter"
        )
    middle = other.value
    if middle <= 0:
        raise InvalidInput(
            f"{along} is {middle:g}; a curve is followed on a logarithmic scale, so start it "
            "above 0"
        )
    ends = range_of(
        (0.1 * middle, 10 * middle) if along_bounds is None else along_bounds,
        middle,
        other.units,
        along,
    )
    if not ends[0] <= middle <= ends[1]:
        unit = f" {other.units}" if other.units != "1" else ""
        raise InvalidInput(
            f"along_bounds of {along} are {ends[0]:g} to {ends[1]:g}{unit}, but it is "
            f"{middle:g}{unit}, where the curve starts; give bounds around it"
        )
    return continue_boundary(
        found, other, (max(ends[0], 1e-9 * middle), ends[1]), (max(low, 1e-9 * high), high)
    )


def refine(point: OperatingPoint, turned: Parameter, inside: float, outside: float) -> Boundary:
    """The crossing between two values."""
    from scipy.optimize import brentq

    at = {"point": point}

    def height(value: float) -> float:
        at["point"] = at_value(at["point"], [(turned, value)])
        return abscissa(at["point"])[0].real

    ends = sorted((inside, outside))
    heights = [height(end) for end in ends]
    value = ends[int(np.argmin(np.abs(heights)))]  # where that is the boundary, to rounding
    if heights[0] * heights[1] < 0:
        value = float(brentq(height, *ends, xtol=1e-13 * abs(value), rtol=1e-13))
    point = at_value(at["point"], [(turned, value)])
    root, mode = abscissa(point)
    root, (slope,) = root_slopes(point, mode, root, [(turned, value)])
    point = at_numbers(point, Parameters(point.given.network()))
    frequency = abs(root.imag) if abs(root.imag) > 1e-9 else 0.0
    kind = "hopf" if frequency else "real"
    return Boundary(
        turned.name, turned.units, value, frequency, kind, slope, slope.real > 0, point, mode
    )


# --- boundaries of stability in two parameters ----------------------------------------------------


Floats = NDArray[np.float64]

FIRST, LONGEST, SHORTEST = 0.05, 0.15, 1e-4  # steps, on a logarithmic scale
MOST = 400
SETTLED = 1e-11


@dataclass(frozen=True)
class BoundaryCurve:
    """A curve on which a root is on the imaginary axis: at each point to 1e-9, those at the bounds
    included.

    Attributes
    ----------
    along, name : str
        The two parameters.
    along_units, units : str
    x, y : array
        Values of `along` and of `name`.
    frequency : array
        Imaginary part of the root [rad/s].
    outermost : array of bool
        Whether that root is the rightmost one, so that the point bounds the region of stability;
        elsewhere another root is unstable already.
    ends : tuple of str
        Why each end is where it is: "the bounds", or what is there within 1e-4 of the last point,
        such as the end of the equilibrium or of a queue.
    """

    along: str
    name: str
    along_units: str
    units: str
    x: Floats
    y: Floats
    frequency: Floats
    outermost: NDArray[np.bool_]
    ends: tuple[str, str] = field(default=("", ""))

    def __len__(self) -> int:
        return len(self.x)

    def __str__(self) -> str:
        return (
            f"{self.name} [{self.units}] from {self.y.min():.4g} to {self.y.max():.4g} along "
            f"{self.along} [{self.along_units}] from {self.x.min():.4g} to {self.x.max():.4g}: "
            f"{len(self)} points"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"


def continue_boundary(
    start: Boundary, along: Parameter, bounds: tuple[float, float], own_bounds: tuple[float, float]
) -> BoundaryCurve:
    """Follow a boundary while another parameter turns, within the bounds of both."""
    halves, ends = [], []
    with Progress(2.0, about=f"boundary along {along.name}", form=BARE, unit="ways") as bar:
        curve = _Curve(start, along, np.log([bounds, own_bounds]), bar)
        for turn, sense in enumerate((1.0, -1.0)):
            half, why = curve.half(sense)
            halves.append(half)
            ends.append(why)
            bar.reach(turn + 1.0)
    rows = np.array([*halves[1][:0:-1], *halves[0]])
    x, y = np.exp(rows[:, :2].T)
    return BoundaryCurve(
        along.name, start.name, along.units, start.units, x, y, rows[:, 2], rows[:, 3] > 0.5,
        (ends[1], ends[0]),
    )  # fmt: skip


class _Place(NamedTuple):
    """A point of the curve: the logarithms of both parameters, the operating point, its root on the
    axis, and the derivatives of the root's real part by these logarithms.
    """

    at: Floats
    point: OperatingPoint
    root: complex
    gradient: Floats

    def tangent(self, like: Floats) -> Floats:
        """The direction of the curve, the one nearer to `like`."""
        across = np.array([-self.gradient[1], self.gradient[0]]) / np.hypot(*self.gradient)
        return across if across @ like >= 0 else -across


class _Curve:
    """The curve through a boundary, inside a box of logarithms of both parameters."""

    def __init__(self, start: Boundary, along: Parameter, box: Floats, bar: Progress) -> None:
        self.mode, self.box, self.bar = start.mode, box, bar
        self.turned = (along, parameter(start.point, start.name))
        at = np.log([along.value, start.value])
        self.start = self._place(at, start.point, complex(0.0, start.frequency))

    def _place(self, at: Floats, point: OperatingPoint, near: complex) -> _Place:
        by = list(zip(self.turned, np.exp(at).tolist(), strict=True))
        root, slopes = root_slopes(point, self.mode, near, by)
        return _Place(at, point, root, np.real(slopes) * np.exp(at))

    def half(self, sense: float) -> tuple[list[Any], str]:
        """The points one way, as rows of both logarithms, frequency and whether the root is the
        outermost one; and why they end.
        """
        here = self.start
        begin, tangent = here.at, here.tangent(np.array([sense, 0.0]))
        rows = [(*begin, abs(here.root.imag), 1.0)]
        step, far = FIRST, 0.0
        room = max(abs(self.box[0, int(sense > 0)] - begin[0]), SHORTEST)
        while len(rows) < MOST:
            try:
                new, ended = self._next(here, tangent, step)
            except FluidccError as error:
                step /= 2
                if step < SHORTEST:
                    return rows, str(error)
                continue
            turned = new.tangent(tangent)
            if tangent @ turned < 0.95:  # too sharp a bend for this step
                step /= 2
                if step > SHORTEST:
                    continue
            if np.max(np.abs(new.at - here.at)) > SETTLED:  # else the start is at the bounds itself
                best, _ = abscissa(new.point)
                outermost = best.real < new.root.real + 1e-6 * (1 + abs(new.root))
                rows.append((*new.at.tolist(), abs(new.root.imag), float(outermost)))
            if ended:
                return rows, "the bounds"
            here, tangent = new, turned
            step = min(1.5 * step, LONGEST)
            far = max(far, abs(here.at[0] - begin[0]) / room)
            self.bar.reach(min(far, 1.0) + (sense < 0))
        return rows, f"{MOST} points"

    def _next(self, here: _Place, tangent: Floats, step: float) -> tuple[_Place, bool]:
        """The place a step ahead, or at the edge of the box where the step leaves it; and whether
        it does.
        """
        ahead, across = here.at + step * tangent, tangent
        if (edge := self._edge(here.at, ahead)) is not None:
            ahead, across = edge
        for _ in self.box:
            found = self._correct(here, ahead, across, step)
            beyond = self._edge(here.at, found.at)
            if beyond is None:
                return found, edge is not None
            edge = ahead, across = beyond
        raise StepFailed("the curve could not be followed into a corner of the bounds")

    def _edge(self, at: Floats, ahead: Floats) -> tuple[Floats, Floats] | None:
        """Where the way from `at` leaves the box, and across which axis; None if it does not."""
        met = []
        for i, ends in enumerate(self.box):
            way, room = abs(ahead[i] - at[i]), abs(ends[int(ahead[i] > at[i])] - at[i])
            if way > room + 1e-12:
                met.append((room / way, i))
        if not met:
            return None
        share, i = min(met)
        place = at + share * (ahead - at)
        place[i] = self.box[i, int(ahead[i] > at[i])]
        return place, np.eye(len(self.box))[i]

    def _correct(self, here: _Place, near: Floats, across: Floats, step: float) -> _Place:
        """The place in the line through `near` that is normal to `across`, by Newton's method."""
        u = near
        for _ in range(8):
            turned = [(k, float(np.exp(v))) for k, v in zip(self.turned, u, strict=True)]
            point = at_value(here.point, turned)
            same_queues(here.point, point)
            before, here = here.root, self._place(u, point, here.root)
            if abs(here.root - before) > 0.5 * (abs(before) + 0.1):
                break
            move = np.linalg.solve(
                np.array([here.gradient, across]), np.array([-here.root.real, across @ (near - u)])
            )
            u = u + move
            if np.max(np.abs(move)) < SETTLED:
                return here._replace(at=u)
            if np.max(np.abs(move)) > 2 * step:
                break
        raise StepFailed("the curve could not be followed")
