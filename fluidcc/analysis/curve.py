"""Boundaries of stability in two parameters, by pseudo-arclength continuation of the crossing root."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.boundary import Boundary
from fluidcc.analysis.crossing import abscissa, root_slopes
from fluidcc.analysis.follow import Knob, at_value
from fluidcc.analysis.operating_point import BUSY, FULL, PASS
from fluidcc.base.errors import FluidccError
from fluidcc.base.progress import BARE, Progress

if TYPE_CHECKING:
    from fluidcc.analysis.operating_point import Point

__all__ = ["BoundaryCurve", "continue_boundary"]

Floats = NDArray[np.float64]

FIRST, LONGEST, SHORTEST = 0.05, 0.15, 1e-4  # steps, on a logarithmic scale
MOST = 400
SETTLED = 1e-11


@dataclass(frozen=True)
class BoundaryCurve:
    """A curve on which a root is on the imaginary axis: at each point to 1e-9, those at the bounds included.

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
        Whether that root is the rightmost one, so that the point bounds the region of stability; elsewhere another root
        is unstable already.
    ends : tuple of str
        Why each end is where it is: "the bounds", or what is there within 1e-4 of the last point, such as the end of
        the equilibrium or of a queue.
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

    def _repr_html_(self) -> str:
        text = f"{self.name} [{self.units}] from {self.y.min():.4g} to {self.y.max():.4g} along {self.along}"
        text += f" [{self.along_units}] from {self.x.min():.4g} to {self.x.max():.4g}: {len(self)} points"
        return f"<p>{html.escape(text)}</p>"


def continue_boundary(
    start: Boundary, along: Knob, bounds: tuple[float, float], own_bounds: tuple[float, float], fifo: bool
) -> BoundaryCurve:
    """Follow a boundary while another parameter turns.

    Parameters
    ----------
    start : Boundary
        Where to start.
    along : Knob
        The other parameter.
    bounds, own_bounds : pair of float
        Where to stop: of the other parameter, and of the boundary's own.
    """
    from fluidcc.analysis.follow import knob

    knobs = (along, knob(start.point, start.name))
    begin = np.log([along.value(start.point), start.value])
    box = np.log([bounds, own_bounds])
    halves, ends = [], []
    with Progress(2.0, about=f"boundary along {along.name}", form=BARE, unit="ways") as bar:
        for turn, sense in enumerate((1.0, -1.0)):
            half, why = _half(start, knobs, begin, sense, box, fifo, bar)
            halves.append(half)
            ends.append(why)
            bar.reach(turn + 1.0)
    rows = np.array([*halves[1][:0:-1], *halves[0]])
    return BoundaryCurve(
        along.name, start.name, along.units, start.units, np.exp(rows[:, 0]), np.exp(rows[:, 1]), rows[:, 2],
        rows[:, 3] > 0.5, (ends[1], ends[0]),
    )  # fmt: skip


def _half(
    start: Boundary, knobs: Any, begin: Floats, sense: float, box: Floats, fifo: bool, bar: Progress
) -> tuple[list[Any], str]:
    point, root = start.point, complex(0.0, start.frequency)
    root, gradient = _gradient(point, start.mode, root, knobs, fifo)
    tangent = _tangent(gradient, np.array([sense, 0.0]))
    rows = [(*begin, abs(root.imag), 1.0)]
    at, step, far = begin, FIRST, 0.0
    room = max(abs(box[0, int(sense > 0)] - begin[0]), SHORTEST)
    while len(rows) < MOST:
        try:
            found = _next(point, start.mode, root, knobs, at, tangent, step, box, fifo)
        except FluidccError as error:
            step /= 2
            if step < SHORTEST:
                return rows, str(error)
            continue
        new, there, near, slope, ended = found
        turned = _tangent(slope, tangent)
        if tangent @ turned < 0.95:  # too sharp a bend for this step
            step /= 2
            if step > SHORTEST:
                continue
        if np.max(np.abs(new - at)) > SETTLED:  # else the start is at the bounds itself
            rows.append(_row(new, abs(near.imag), there, near, fifo))
        if ended:
            return rows, "the bounds"
        at, point, root, tangent = new, there, near, turned
        step = min(1.5 * step, LONGEST)
        far = max(far, abs(at[0] - begin[0]) / room)
        bar.reach(min(far, 1.0) + (sense < 0))
    return rows, f"{MOST} points"


def _row(at: Floats, frequency: float, point: Point, root: complex, fifo: bool) -> tuple[float, ...]:
    best, _ = abscissa(point, fifo)
    return (*at.tolist(), frequency, float(best.real < root.real + 1e-6 * (1 + abs(root))))


def _next(
    point: Point,
    mode: str,
    root: complex,
    knobs: Any,
    at: Floats,
    tangent: Floats,
    step: float,
    box: Floats,
    fifo: bool,
) -> tuple[Floats, Point, complex, Floats, bool]:
    """The point of the curve a step ahead, or at the edge of the box where the step leaves it; and whether it does."""
    ahead, across = at + step * tangent, tangent
    if (edge := _edge(at, ahead, box)) is not None:
        ahead, across = edge
    for _ in box:
        found = _correct(point, mode, root, knobs, ahead, across, step, fifo)
        beyond = _edge(at, found[0], box)
        if beyond is None:
            return (*found, edge is not None)
        edge = ahead, across = beyond
    raise _Lost("the curve could not be followed into a corner of the bounds")


def _edge(at: Floats, ahead: Floats, box: Floats) -> tuple[Floats, Floats] | None:
    """Where the way from `at` leaves the box, and across which axis; None if it does not."""
    met = []
    for i, ends in enumerate(box):
        way, room = abs(ahead[i] - at[i]), abs(ends[int(ahead[i] > at[i])] - at[i])
        if way > room + 1e-12:
            met.append((room / way, i))
    if not met:
        return None
    share, i = min(met)
    place = at + share * (ahead - at)
    place[i] = box[i, int(ahead[i] > at[i])]
    return place, np.eye(len(box))[i]


def _gradient(point: Point, mode: str, near: complex, knobs: Any, fifo: bool) -> tuple[complex, Floats]:
    """The root, and the derivatives of its real part by the logarithms of both parameters."""
    root, slopes = root_slopes(point, mode, near, knobs, fifo)
    return root, np.array([s.real * k.value(point) for s, k in zip(slopes, knobs, strict=True)])


def _tangent(gradient: Floats, like: Floats) -> Floats:
    across = np.array([-gradient[1], gradient[0]]) / np.hypot(*gradient)
    return across if across @ like >= 0 else -across


def _correct(
    point: Point, mode: str, root: complex, knobs: Any, near: Floats, across: Floats, step: float, fifo: bool
) -> tuple[Floats, Point, complex, Floats]:
    """The point of the curve in the line through `near` that is normal to `across`, by Newton's method."""
    u = near
    for _ in range(8):
        new = at_value(point, [(k, float(np.exp(v))) for k, v in zip(knobs, u, strict=True)])
        _same_queues(point, new)
        point, before = new, root
        root, gradient = _gradient(point, mode, root, knobs, fifo)
        if abs(root - before) > 0.5 * (abs(before) + 0.1):
            break
        move = np.linalg.solve(np.array([gradient, across]), np.array([-root.real, across @ (near - u)]))
        u = u + move
        if np.max(np.abs(move)) < SETTLED:
            return u, point, root, gradient
        if np.max(np.abs(move)) > 2 * step:
            break
    raise _Lost("the curve could not be followed")


def _same_queues(before: Point, after: Point) -> None:
    """Refuse a step on which a queue begins or ends, as the network is another one then."""
    for l, link in enumerate(before.links):
        was, became = int(before.mode[l]), int(after.mode[l])
        if was != became:
            state = {PASS: "empty", BUSY: "busy", FULL: "full"}
            raise _Lost(f"the queue of link {link.name!r} is no longer {state[was]} but {state[became]}")


class _Lost(FluidccError):
    """A step of the continuation failed; a shorter one may not."""
