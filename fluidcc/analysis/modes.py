"""What moves at a root: rates by class of flows, and whether they rise together or shift from one to the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.matrices import Matrices, deviations
from fluidcc.analysis.pencils import newton_step, null_vectors
from fluidcc.analysis.wiring import wire

if TYPE_CHECKING:
    from fluidcc.analysis.operating_point import Point

__all__ = ["Mode", "fairness_mode", "modes_of"]

SHIFT = 0.5
"""A mode shifts rates if their sum, over the sum of their sizes, is at most this on every link they use."""


@dataclass(frozen=True)
class Mode:
    """A root and what moves with it.

    Attributes
    ----------
    root : complex
        [1/s]
    multiplicity : int
        How often it occurs: N - 1 times for the differences among N identical flows.
    rates : dict of str to complex
        Relative amplitudes of the rates by class of flows; of a class whose own flows differ, 0 on average.
    shifts : bool
        Rates shift from flow to flow and the links see little of it: such a mode decides how fast flows become fair.
    among : str
        The class of identical flows among which it shifts, or "".
    """

    root: complex
    multiplicity: int
    rates: dict[str, complex]
    shifts: bool
    among: str = ""

    @property
    def half_life(self) -> float:
        """Time in which it halves [s]; infinite if it does not decay."""
        return math.log(2.0) / -self.root.real if self.root.real < 0 else math.inf


def modes_of(point: Point, roots: NDArray[np.complex128], fifo: bool) -> tuple[Mode, ...]:
    """A mode for each of the roots, one of each conjugate pair."""
    loop = wire(point, "closed", fifo)
    alone = deviations(point)
    counts = {f.label: f.count for f in point.classes}
    found: list[Mode] = []
    for root in roots:
        if root.imag < 0 or any(abs(root - m.root) <= 1e-9 * (1 + abs(root)) for m in found):
            continue
        away = {name: abs(newton_step(m, complex(root))) for name, m in {"": loop, **alone}.items() if len(m.A)}
        among = min(away, key=lambda name: away[name])
        if among:
            repeated = int(np.sum(np.abs(roots - root) <= 1e-9 * (1 + abs(root))))
            times = max(repeated, counts[among] - 1)
            found.append(Mode(complex(root), times, dict.fromkeys(counts, 0j), True, among))
        else:
            rates = [complex(v) for v in _rates(loop, complex(root))]
            found.append(Mode(complex(root), 1, dict(zip(counts, rates, strict=True)), _shifts(point, rates)))
    return tuple(found)


def fairness_mode(modes: Sequence[Mode]) -> Mode | None:
    """The slowest mode that shifts rates."""
    return max((m for m in modes if m.shifts), key=lambda m: m.root.real, default=None)


def _rates(m: Matrices, s: complex) -> Any:
    """Amplitudes of the rates, the largest 1."""
    _, right = null_vectors(m, s)
    o = len(m.outputs)
    i = len(m.inputs)
    rates = np.hstack([m.C[:o], m.D[:o, i:]]) @ right
    most = rates[np.argmax(np.abs(rates))]
    return rates / most if most != 0 else rates


def _shifts(point: Point, rates: Any) -> bool:
    weight = point.count * rates
    if len(rates) < 2:
        return False
    for l in sorted({l for f in point.classes for l in f.route}):
        inside = np.array([l in f.route for f in point.classes])
        size = np.abs(weight[inside]).sum()
        if size > 0.1 * np.abs(weight).sum() and abs(weight[inside].sum()) > SHIFT * size:
            return False
    return True
