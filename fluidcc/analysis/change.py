"""How a network's operating point, roots and margins change with its parameters.

Derivatives are differences over points near by, each with an equilibrium of its own: of second
order on each side, which must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.modes import (
    free_directions,
    polish,
    runs_on,
    without_zeros,
)
from fluidcc.analysis.operating import at_numbers
from fluidcc.analysis.point import BUSY, FULL, PASS, Lags, OperatingPoint
from fluidcc.analysis.wiring import Matrices, deviations, wire
from fluidcc.base.arguments import shown
from fluidcc.base.errors import FluidccError, InvalidInput, NoBoundary, UnknownName
from fluidcc.base.progress import BARE, Progress
from fluidcc.base.tables import InTable
from fluidcc.base.units import dimension, to_si
from fluidcc.laws.steady import trackers
from fluidcc.network.parameters import Parameters, Target
from fluidcc.network.patterns import is_list, near
from fluidcc.symbols import plain

NEARBY = 1e-5
"""Relative change of a parameter between points of which differences are taken."""
CORNER = 1e-3


# --- parameters -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter(InTable):
    """One number of a network; identical flows have it together.

    Attributes
    ----------
    name : str
        ``flow.eta``, ``link.capacity``, ``link.delay``, ...; or ``eta``, of all that have it.
    value : float
        In SI units; the geometric mean of what those that have it differ in.
    units : str
    targets : tuple of Target
        What it is set in.
    """

    name: str
    value: float
    units: str
    targets: tuple[Target, ...]

    _shown = ("name", "value", "units")

    def settings(self, value: Any) -> dict[tuple[str, str, str, str], Any]:
        """Return what `Parameters.set` has where this is `value`."""
        return {key: v for t in self.targets for key, v in t.settings(value).items()}


def parameters(point: OperatingPoint) -> list[Parameter]:
    """Every parameter the linearisation depends on; those of identical flows are one."""
    found: list[Parameter] = []

    def add(of: str, names: tuple[str, ...], label: str, law: Any, values: Any, more: Any) -> None:
        own = [(plain(s), v, law.units.get(s, "1"), "parameter")
               for s, v in zip(law.params, values.tolist(), strict=True)]  # fmt: skip
        own += [(key, float(value), units, "argument") for key, value, units in more]
        for key, value, units, kind in own:
            target = Target(kind, key, units, **{of: names})
            found.append(Parameter(f"{label}.{key}", value, units, (target,)))

    for k, f in enumerate(point.classes):
        delays = ("access_delay", point.access[k], "s"), ("return_delay", point.back[k], "s")
        add("flows", f.names, f.label, f.spec.law, point.p[k], delays)
    for l in sorted({l for f in point.classes for l in f.route}):
        own = [("capacity", point.c[l], "bit/s"), ("delay", point.delay[l], "s")]
        if point.mode[l] == FULL:
            own.append(("buffer", point.q_max[l] * point.c[l], "bit"))
        name = point.links[l].name
        add("links", (name,), name, point.links[l].law, point.lp[l], own)
    return found


def parameter(point: OperatingPoint, name: str) -> Parameter:
    """The parameter that `name` means: ``"eta"`` in every law that has it, ``"flow.eta"``,
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
    head, dot, tail = name.rpartition(".")
    for f in point.classes if dot and not any(p.name == name for p in every) else ():
        if head in f.names and f.count > 1:
            raise InvalidInput(
                f"flow {head!r} is one of {f.count} identical flows, analysed as one class; "
                f"vary {tail!r} of all, or give that flow a law or delay of its own first"
            )
        if head in f.names:
            name = f"{f.label}.{tail}"
    chosen = [p for p in every if p.name == name] or [p for p in every if _key(p) == name]
    if not chosen:
        known = dict.fromkeys(map(_key, every))
        hint = _INSTEAD.get(tail) or near(
            name, [*(p.name for p in every), *known] if dot else known
        )
        raise UnknownName(f"the network has no parameter {name!r}; {hint}")
    values = [p.value for p in chosen]
    value = values[0] if min(values) == max(values) else float(np.exp(np.mean(np.log(values))))
    targets = tuple(t for p in chosen for t in p.targets)
    return Parameter(name, value, chosen[0].units, targets)


# What answers the question instead, of names that are axes of sweeps.
_INSTEAD = {
    "count": "the number of flows is whole: fc.sweep(net, {'count': range(1, 31)}, 'stable') "
    "judges each",
    "rtt": "vary the flows' 'return_delay', and base_rtt of the boundary's network is the round "
    "trip; fc.sweep(net, {'rtt': [...]}, 'stable') takes 'rtt' as it is",
}


def _key(p: Parameter) -> str:
    """Its name without that of the flow or link."""
    return p.name.rpartition(".")[2]


def moved(point: OperatingPoint, turned: Sequence[tuple[Parameter, float]]) -> Parameters:
    """The numbers of a point's network with parameters at other values."""
    given = point.given.part()
    settings: dict[Any, Any] = {}
    for p, value in turned:
        settings |= p.settings(value)
    given.set |= settings
    for _, name, *what in settings:  # a buffer keeps its bits, also one given in seconds
        if what == ["argument", "capacity"] and np.isfinite(size := given.net.links[name].buffer):
            given.set.setdefault(("link", name, "argument", "buffer"), size)
    return given


def at_value(point: OperatingPoint, turned: Sequence[tuple[Parameter, float]]) -> OperatingPoint:
    """The operating point where each parameter has its value.

    Raises
    ------
    FluidccError
        As `operating_point`: no equilibrium, or one on a switching surface.
    """
    return at_numbers(point, moved(point, turned))


# --- derivatives ----------------------------------------------------------------------------------


def derivative(
    point: OperatingPoint,
    p: Parameter,
    value: float,
    of: Callable[[OperatingPoint], Any],
    now: Any,
    corner: float = CORNER,
) -> NDArray[np.float64]:
    """The total derivative by a parameter of some real numbers, each NaN where it has a corner.

    Parameters
    ----------
    point : OperatingPoint
        Where the parameter has its `value`.
    p : Parameter
    value : float
    of : function
        Gives the numbers at a point.
    now : array
        What it gives here.
    corner : float
        Relative difference of the derivatives from both sides beyond which there is none.
    """
    step = NEARBY * (abs(value) or _scale(point, p.units))
    near: list[Any] = []
    sides: list[Any] = []
    for h in (step, -step):
        try:
            there = [at_value(point, [(p, value + k * h)]) for k in (1, 2)]
            for at in there:
                same_queues(point, at)
            found = [of(at) for at in there]
        except FluidccError as error:  # a bound of the parameter, or a switching surface
            why = error
            continue
        with np.errstate(invalid="ignore"):  # of margins that are infinite
            one, two = np.subtract(found, now)
        near.append((8 * one - two) / (6 * h))
        sides.append((4 * one - two) / (2 * h))
    if not sides:
        raise why
    apart = np.abs(sides[0] - sides[-1])
    size = np.maximum(np.abs(sides[0]), np.abs(now) * NEARBY / step)
    slope = sides[0] if len(sides) < 2 else np.mean(near, axis=0)
    return np.where(apart <= corner * size, slope, np.nan)


def same_queues(before: OperatingPoint, after: OperatingPoint) -> None:
    """Refuse a step on which a queue begins or ends, as the network is another one then."""
    state = {PASS: "empty", BUSY: "busy", FULL: "full"}
    for link, was, became in zip(before.links, before.mode, after.mode, strict=True):
        if was != became:
            raise StepFailed(
                f"the queue of link {link.name!r} is no longer {state[int(was)]} but "
                f"{state[int(became)]}"
            )


class StepFailed(FluidccError):
    """A step of the continuation failed; a shorter one may not."""


def _scale(point: OperatingPoint, units: str) -> float:
    """The size of a number with these units by the round trip, the capacity and the packets of a
    network.
    """
    unit, trip, size = dimension(units), float(np.max(Lags(point).trip)), float(point.packet.max())
    data = float(point.c.max()) * trip
    return trip**unit.s * data**unit.bit * (data / size) ** unit.packet


def root_slopes(
    point: OperatingPoint, mode: str, near: complex, by: Sequence[tuple[Parameter, float]]
) -> tuple[complex, list[complex]]:
    """The root next to `near`, polished, and its derivatives by each parameter, at its value."""

    def root_at(at: OperatingPoint) -> Any:
        found = polish(matrices_of(at, mode), near)
        return np.array([found.real, found.imag])

    now = root_at(point)
    slopes = [complex(*derivative(point, p, value, root_at, now, math.inf)) for p, value in by]
    return complex(*now), slopes


def matrices_of(point: OperatingPoint, mode: str) -> Matrices:
    """The closed loop at a point, or the differences among the flows of a class."""
    return wire(point) if mode == "loop" else deviations(point)[mode]


def abscissa(point: OperatingPoint) -> tuple[complex, str]:
    """The rightmost root of all, in the upper half plane, and the system it belongs to.

    What each flow has under way is on account: the roots at zero that stand for other amounts are
    left out.
    """
    best: tuple[complex, str] = (complex(-math.inf), "loop")
    for name, m in {"loop": wire(point), **deviations(point)}.items():
        if not m.states:
            continue
        system, zeros = LinearNetwork.of(point, m), _on_account(point, name)
        roots = without_zeros(system, system.roots(count=1 + zeros), zeros)
        root = complex(roots[np.argmax(roots.real)])
        if root.real > best[0].real:
            best = (complex(root.real, abs(root.imag)), name)
    return best


def _on_account(point: OperatingPoint, name: str) -> int:
    """How many states of a system keep account of what is under way, or run on."""
    of = (trackers(f.spec.law) for f in point.classes if name in ("loop", f.label))
    on_account = sum(kept.data != 0 == kept.delay for own in of for kept in own.values())
    return on_account + sum(len(runs_on(f)) for f in point.classes if name in ("loop", f.label))


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
    point: OperatingPoint, turned: Parameter, start: float, low: float, high: float
) -> tuple[float, float, OperatingPoint]:
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
    seen, stopped = [start], list[str]()
    ways = [_steps(start, end) for end in (high, low)]
    if found := _turn(here, turned, start, ways, sign, seen, stopped):
        return found
    verdict = "stable" if sign else "unstable"
    why = f" (the search ended {'; '.join(stopped)})" if stopped else ""
    unit = f" {turned.units}" if turned.units != "1" else ""
    raise NoBoundary(
        f"the network is {verdict} at every {turned.name} looked at between {min(seen):.6g} and "
        f"{max(seen):.6g}{unit}{why}; give other bounds, or another parameter",
        stable=sign,
    )


def _turn(
    here: OperatingPoint,
    turned: Parameter,
    start: float,
    values: list[list[float]],
    sign: bool,
    seen: list[float],
    stopped: list[str],
) -> tuple[float, float, OperatingPoint] | None:
    """Where the verdict is no longer `sign`, step by step both ways; `seen` gets the values that
    were judged, `stopped` what ended a way before.
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
                seen.append(new)
                left.append((new, there, steps))
            ways = left
            if not ways:
                return None
            bar.reach(number)
    return None
