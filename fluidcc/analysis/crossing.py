"""The rightmost root of a network at a point, and how it moves with parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fluidcc.analysis.change import Response, split
from fluidcc.analysis.follow import Knob
from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.matrices import Matrices, deviation, deviations
from fluidcc.analysis.operating_point import Point
from fluidcc.analysis.pencils import polish, root_slope
from fluidcc.analysis.rest import accounts
from fluidcc.analysis.wiring import wire

__all__ = ["abscissa", "builder", "root_slopes"]

ZERO = 1e-6
"""Modulus [1/s] below which a root that ought to be zero counts as zero."""


def systems(point: Point, fifo: bool, merge: bool = True) -> dict[str, Matrices]:
    """The closed loop and, for each class of identical flows, their differences."""
    found = {"loop": wire(point, "closed", fifo, merge)}
    found |= deviations(point)
    return {name: m for name, m in found.items() if len(m.A)}


def abscissa(point: Point, fifo: bool = True) -> tuple[complex, str]:
    """The rightmost root of all, in the upper half plane, and the system it belongs to.

    What each flow has under way is on account: the roots at zero that stand for other amounts are left out.
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
    """The function from a point to the matrices of a system of it, with channels that do not merge."""
    labels = [f.label for f in point.classes]
    if mode == "loop":
        return lambda at: wire(at, "closed", fifo, False)
    return lambda at: deviation(at, labels.index(mode))
