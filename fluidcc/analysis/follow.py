"""The operating point at other parameter values: followed by Newton's method on its branch, or
found anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fluidcc.analysis.change import (
    Parameter,
    Response,
    accounts,
    free_directions,
    parameters,
    split,
    without_zeros,
)
from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.modes import polish, root_form
from fluidcc.analysis.point import Point, at_numbers
from fluidcc.analysis.wiring import Matrices, deviation, deviations, wire
from fluidcc.base.arguments import shown
from fluidcc.base.errors import FluidccError, InvalidInput, NoBoundary, UnknownName
from fluidcc.base.progress import BARE, Progress
from fluidcc.base.units import to_si
from fluidcc.network.parameters import Parameters
from fluidcc.network.patterns import is_list, near

if TYPE_CHECKING:
    from fluidcc.network import Network

T = TypeVar("T")

ZERO = 1e-6
"""Modulus, in one over the longest delay, below which a root that ought to be zero counts as
zero.
"""


def abscissa(point: Point) -> tuple[complex, str]:
    """The rightmost root of all, in the upper half plane, and the system it belongs to.

    What each flow has under way is on account: the roots at zero that stand for other amounts are
    left out.
    """
    best: tuple[complex, str] = (complex(-math.inf), "loop")
    for name, m in {"loop": wire(point), **deviations(point)}.items():
        if not m.states:
            continue
        root = _rightmost(LinearNetwork.of(point, m), _on_account(point, name))
        if root.real > best[0].real:
            best = (complex(root.real, abs(root.imag)), name)
    return best


def _on_account(point: Point, name: str) -> int:
    """How many states of a system keep account of what is under way."""
    return sum(len(accounts(f.spec.law)) for f in point.classes if name in ("loop", f.label))


def _rightmost(system: LinearNetwork, zeros: int) -> complex:
    """The rightmost root but for `zeros` at zero."""
    roots = system.roots(count=1 + zeros)
    left = without_zeros(roots, min(zeros, int((np.abs(roots) * system.pencil.time <= ZERO).sum())))
    return complex(left[np.argmax(left.real)])


def root_slopes(
    point: Point, mode: str, near: complex, knobs: Sequence[Knob]
) -> tuple[complex, list[complex]]:
    """The root next to `near`, polished, and its derivatives by each knob."""
    build = builder(point, mode)
    matrices = build(point)
    root = polish(matrices, near)
    answer, form = Response(point), with_channels(matrices, lambda m: root_form(m, root))
    slopes = []
    for one in knobs:
        moved = [split(build(answer.to(p))) for p in one.members]
        slopes.append(sum((form(base).root_by(change) for base, change in moved), 0j))
    return root, slopes


def with_channels(matrices: Matrices, make: Callable[[Matrices], T]) -> Callable[[Matrices], T]:
    """What `make` says of matrices, kept for those with the channels of the first ones.

    A coefficient that is exactly zero at a point has no channel there, and may have one where a
    parameter moves.
    """
    usual = make(matrices)
    return lambda m: usual if len(m.delays) == len(matrices.delays) else make(m)


def builder(point: Point, mode: str) -> Callable[[Point], Matrices]:
    """The function from a point to the matrices of a system of it, with channels that do not
    merge.
    """
    labels = [f.label for f in point.classes]
    if mode == "loop":
        return lambda at: wire(at, merge=False)
    return lambda at: deviation(at, labels.index(mode))


# --- the operating point at other parameter values ------------------------------------------------


class Knob:
    """Parameters of a network that are turned together: one value, set in every flow or link
    that has it.
    """

    def __init__(self, name: str, members: Sequence[Parameter]) -> None:
        self.name, self.members = name, tuple(members)

    @property
    def units(self) -> str:
        """Its unit."""
        return self.members[0].units

    def value(self, point: Point) -> float:
        """Its value at a point: that of its members, or their geometric mean where they differ."""
        known = {p.name: p.value for p in parameters(point)}
        values = [known[p.name] for p in self.members]
        return values[0] if min(values) == max(values) else float(np.exp(np.mean(np.log(values))))

    def put(self, given: Parameters, point: Point, value: float) -> None:
        """Set it."""
        for p in self.members:
            p.put(given, point, value)

    def network(self, point: Point, value: float) -> Network:
        """A copy of the point's network with that value."""
        given = point.given.part()
        self.put(given, point, value)
        return given.network()


def knob(point: Point, name: str) -> Knob:
    """The parameters that `name` means: ``"eta"`` in every law that has it, ``"flow.eta"``,
    ``"link.capacity"``, ...

    Raises
    ------
    UnknownName
        If the network has none of that name.
    """
    if not isinstance(name, str):
        raise InvalidInput(
            f"the parameter is {shown(name)}; give its name, such as 'eta' or 'flow.eta'"
        )
    every = parameters(point)
    flows = {n: f.label for f in point.classes for n in f.names}
    head, dot, tail = name.rpartition(".")
    if dot and head in flows and not any(p.name == name for p in every):
        f = next(f for f in point.classes if head in f.names)
        if f.count > 1:
            raise InvalidInput(
                f"flow {head!r} is one of {f.count} identical flows; turn {tail!r} of all, or "
                "give that flow a law or delay of its own first"
            )
    chosen = [p for p in every if p.name == name] or [
        p for p in every if p.name.rpartition(".")[2] == name
    ]
    if not chosen:
        known = dict.fromkeys(
            [*(p.name for p in every), *(p.name.rpartition(".")[2] for p in every)]
        )
        raise UnknownName(f"the network has no parameter {name!r}; {near(name, known)}")
    return Knob(name, chosen)


def at_value(point: Point, turned: Sequence[tuple[Knob, float]]) -> Point:
    """The operating point where each knob has its value.

    Raises
    ------
    FluidccError
        As `operating_point`: no equilibrium, or one on a switching surface.
    """
    given = point.given.part()
    for one, value in turned:
        one.put(given, point, value)
    return at_numbers(point, given)


# --- two values of a parameter with different verdicts --------------------------------------------


def range_of(
    bounds: tuple[Any, Any] | None, start: float, units: str, name: str
) -> tuple[float, float]:
    if bounds is None:
        return (start * 1e-6, start * 1e6) if start > 0 else (0.0, 10.0)
    ends = [to_si(v, units, f"bounds of {name}") for v in bounds] if is_list(bounds) else []
    low, high = ends if len(ends) == 2 else (0.0, 0.0)
    if not 0 <= low < high:
        raise InvalidInput(
            f"bounds of {name} are {shown(bounds)}; give two values from 0 on, the lower one first"
        )
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
    point: Point, turned: Knob, start: float, low: float, high: float
) -> tuple[float, float, Point]:
    """Two neighbouring values with different verdicts, and the operating point at the first."""
    start = min(max(start, low), high)
    here = at_value(point, [(turned, start)])
    root, part = abscissa(here)
    if abs(root) < 1e-9 and (free := free_directions(here, {part: 1})):
        raise InvalidInput(
            f"the equilibrium is one of a continuum, along {free[0]}, so that it does not move "
            f"with {turned.name} in one way; fluidcc.stability leaves out such roots at zero and "
            "judges the rest"
        )
    sign = root.real < 0
    stopped: list[str] = []
    if found := _turn(
        here, turned, start, [_steps(start, end) for end in (high, low)], sign, stopped
    ):
        return found
    verdict = "stable" if sign else "unstable"
    why = f" (the search ended {'; '.join(stopped)})" if stopped else ""
    unit = f" {turned.units}" if turned.units != "1" else ""
    raise NoBoundary(
        f"the network is {verdict} at every {turned.name} looked at between {low:.6g} and "
        f"{high:.6g}{unit}{why}; give other bounds, or another parameter",
        stable=sign,
    )


def _turn(
    here: Point,
    turned: Knob,
    start: float,
    values: list[list[float]],
    sign: bool,
    stopped: list[str],
) -> tuple[float, float, Point] | None:
    """Where the verdict is no longer `sign`, step by step both ways; `stopped` gets what ended a
    way before.
    """
    ways = [(start, here, iter(steps)) for steps in values]
    with Progress(
        max(map(len, values)), about=f"boundary in {turned.name}", form=BARE, unit="steps"
    ) as bar:
        for number in count(1):
            left = []
            for value, at, steps in ways:
                new = next(steps, None)
                if new is None:
                    continue
                try:
                    there = at_value(at, [(turned, new)])
                    other = abscissa(there)[0].real < 0
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
