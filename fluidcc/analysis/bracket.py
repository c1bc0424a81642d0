"""Two values of a parameter with different verdicts, in search of the one between them where the verdict turns."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

from fluidcc.analysis.continuum import free_directions
from fluidcc.analysis.crossing import abscissa
from fluidcc.analysis.follow import Knob, at_value
from fluidcc.analysis.operating_point import Point
from fluidcc.base.arguments import shown
from fluidcc.base.errors import FluidccError, InvalidInput
from fluidcc.base.progress import BARE, Progress
from fluidcc.base.units import to_si
from fluidcc.network.patterns import is_list

__all__ = ["bracket", "range_of"]


def range_of(bounds: tuple[Any, Any] | None, start: float, units: str, name: str) -> tuple[float, float]:
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


def bracket(
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
    stopped: list[str] = []
    if found := _turn(here, turned, start, [_steps(start, end) for end in (high, low)], sign, fifo, stopped):
        return found
    verdict = "stable" if sign else "unstable"
    why = f" (the search ended {'; '.join(stopped)})" if stopped else ""
    unit = f" {turned.units}" if turned.units != "1" else ""
    raise InvalidInput(
        f"the network is {verdict} at every {turned.name} looked at between {low:.6g} and {high:.6g}{unit}{why}; give "
        "other bounds, or another parameter"
    )


def _turn(
    here: Point, turned: Knob, start: float, values: list[list[float]], sign: bool, fifo: bool, stopped: list[str]
) -> tuple[float, float, Point] | None:
    """Where the verdict is no longer `sign`, step by step both ways; `stopped` gets what ended a way before."""
    ways = [(start, here, iter(steps)) for steps in values]
    with Progress(max(map(len, values)), about=f"boundary in {turned.name}", form=BARE, unit="steps") as bar:
        for number in count(1):
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
            if not ways:
                return None
            bar.reach(number)
    return None
