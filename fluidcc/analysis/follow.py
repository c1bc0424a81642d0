"""The operating point at other parameter values: followed by Newton's method on its branch, or
found anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.change import (
    Parameter,
    Response,
    nudge,
    parameters,
    real_part,
    shifted,
    split,
)
from fluidcc.analysis.continuum import free_directions
from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.modes import polish, root_slope
from fluidcc.analysis.operating_point import (
    BUSY,
    FULL,
    NEAR,
    PASS,
    Point,
    accounts,
    flow_inputs,
    link_inputs,
    link_outputs,
    operating_point,
    residual,
)
from fluidcc.analysis.wiring import Matrices, deviation, deviations, wire
from fluidcc.base.arguments import shown
from fluidcc.base.errors import FluidccError, InvalidInput, SolverError, UnknownName
from fluidcc.base.progress import BARE, Progress
from fluidcc.base.units import to_si
from fluidcc.laws.linear import active_modes
from fluidcc.network.patterns import is_list, near

if TYPE_CHECKING:
    from fluidcc.network import Network


__all__ = ["Knob", "abscissa", "at_value", "bracket", "builder", "knob", "range_of", "root_slopes"]


ZERO = 1e-6
"""Modulus [1/s] below which a root that ought to be zero counts as zero."""


def systems(point: Point, fifo: bool, merge: bool = True) -> dict[str, Matrices]:
    """The closed loop and, for each class of identical flows, their differences."""
    found = {"loop": wire(point, "closed", fifo, merge)}
    found |= deviations(point)
    return {name: m for name, m in found.items() if len(m.A)}


def abscissa(point: Point, fifo: bool = True) -> tuple[complex, str]:
    """The rightmost root of all, in the upper half plane, and the system it belongs to.

    What each flow has under way is on account: the roots at zero that stand for other amounts are
    left out.
    """
    best: tuple[complex, str] = (complex(-math.inf), "loop")
    for name, m in systems(point, fifo).items():
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
    near = sorted(range(len(roots)), key=lambda k: abs(roots[k]))[:zeros]
    left = [complex(r) for k, r in enumerate(roots) if k not in near or abs(r) > ZERO]
    return max(left, key=lambda r: r.real)


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
    """The function from a point to the matrices of a system of it, with channels that do not
    merge.
    """
    labels = [f.label for f in point.classes]
    if mode == "loop":
        return lambda at: wire(at, "closed", fifo, False)
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
        values = [_read(point, p) for p in self.members]
        return values[0] if min(values) == max(values) else float(np.exp(np.mean(np.log(values))))

    def network(self, net: Network, point: Point, value: float) -> Network:
        """A copy of the network with that value."""
        for p in self.members:
            if p.kind == "flow law":
                new = {p.name.rpartition(".")[2]: value}
                names = point.classes[p.index].names
                net = net.with_flows({f: {"law": net.flows[f].law(**new)} for f in names})
            elif p.kind in ("access_delay", "return_delay"):
                net = net.with_flows({f: {p.kind: value} for f in point.classes[p.index].names})
            else:
                name, key = point.links[p.index].name, p.name.rpartition(".")[2]
                if p.kind == "link law":
                    net = net.with_link(name, law=net.links[name].law(**{key: value}))
                elif p.kind == "capacity":
                    net = net.with_link(name, capacity=value, buffer=_bits(net.links[name].buffer))
                else:
                    net = net.with_link(name, **{p.kind: value})
        return net


def _bits(buffer: float) -> float | None:
    """The buffer in bits, so that one given in seconds does not change with the capacity."""
    return buffer if np.isfinite(buffer) else None


def _read(point: Point, p: Parameter) -> float:
    if p.kind == "flow law":
        return float(point.p[p.index][p.place])
    if p.kind == "link law":
        return float(point.lp[p.index][p.place])
    if p.kind == "buffer":
        return float(point.q_max[p.index] * point.c[p.index])
    number = {"access_delay": "access", "return_delay": "back", "capacity": "c", "delay": "delay"}[
        p.kind
    ]
    return float(getattr(point, number)[p.index])


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
                f"give that flow a law or "
                "delay of its own first"
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
    """The operating point where each knob has its value: on the same branch if it is still there,
    else anew.

    Raises
    ------
    FluidccError
        As `operating_point`: no equilibrium, or one on a switching surface.
    """
    new = point
    for one, value in turned:
        for p in one.members:
            new = real_part(nudge(new, p, value - _read(new, p)))
    net = point.net
    for one, value in turned:
        net = one.network(net, point, value)
    try:
        followed = _settled(new.changed(net=net, rest=None))
    except (SolverError, InvalidInput, FloatingPointError):
        followed = None
    if followed is not None:
        return followed
    return operating_point(net, point.at)


def _settled(point: Point) -> Point | None:
    """Newton's method on the conditions of the branch; None where it leaves the branch."""
    for _ in range(30):
        with np.errstate(all="raise", under="ignore"):
            answer = Response(point)
            step = answer.step(residual(point, kept=True))
        sizes = answer.sizes()
        if not np.all(np.abs(step) < 0.7 * np.maximum(np.abs(sizes), 1e-6 * np.abs(sizes).max())):
            step = 0.5 * step
        point = shifted(point, answer.unknowns, step)
        if not np.all(np.isfinite(step)):
            return None
        if np.all(np.abs(step) <= 1e-13 * np.maximum(np.abs(sizes), 1e-12)):
            return point if _on_branch(point) else None
    return None


def _on_branch(point: Point) -> bool:
    """Whether the queues and the switches of the laws are as the point has them, away from their
    surfaces.
    """
    let_in = point.y * (1 - link_outputs(point)["drop"])
    for l, link in enumerate(point.links):
        if link.law.queue is None:
            continue
        excess = let_in[l] / point.c[l] - 1
        inside = NEAR * 1e-3 < point.q[l] < point.q_max[l] * (1 - NEAR)
        if not {PASS: excess < -NEAR, BUSY: inside, FULL: excess > NEAR}[int(point.mode[l])]:
            return False
    for groups, z, u, p in (
        (point.flow_groups, point.z, flow_inputs(point), point.p),
        (point.link_groups, point.v, link_inputs(point), point.lp),
    ):
        for g in groups:
            if g.law.switches:
                at = [
                    np.array([part[i] for i in g.members]).T.reshape(-1, len(g.members))
                    for part in (z, p)
                ]
                try:
                    modes = active_modes(g.law, at[0], u[:, g.members], at[1], relative=NEAR)
                except InvalidInput:
                    return False
                if not np.array_equal(modes, g.modes):
                    return False
            # A state held at its bound that would now leave it, or one that would pass it, is left
            # to the search.
            if not np.all(g.free):
                return False
    return bool(np.all(point.x > 0))


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
    point: Point, turned: Knob, start: float, low: float, high: float, fifo: bool
) -> tuple[float, float, Point]:
    """Two neighbouring values with different verdicts, and the operating point at the first."""
    start = min(max(start, low), high)
    here = at_value(point, [(turned, start)])
    root, part = abscissa(here, fifo)
    if abs(root) < 1e-9 and (free := free_directions(here, {part: 1})):
        raise InvalidInput(
            f"the equilibrium is one of a continuum, along {free[0]}, so that it does not move "
            f"with {turned.name} in "
            "one way; fluidcc.stability leaves out such roots at zero and judges the rest"
        )
    sign = root.real < 0
    stopped: list[str] = []
    if found := _turn(
        here, turned, start, [_steps(start, end) for end in (high, low)], sign, fifo, stopped
    ):
        return found
    verdict = "stable" if sign else "unstable"
    why = f" (the search ended {'; '.join(stopped)})" if stopped else ""
    unit = f" {turned.units}" if turned.units != "1" else ""
    raise InvalidInput(
        f"the network is {verdict} at every {turned.name} looked at between {low:.6g} and "
        f"{high:.6g}{unit}{why}; give "
        "other bounds, or another parameter"
    )


def _turn(
    here: Point,
    turned: Knob,
    start: float,
    values: list[list[float]],
    sign: bool,
    fifo: bool,
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
