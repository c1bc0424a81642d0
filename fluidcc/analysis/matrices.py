"""Matrices of a linear network with its delays pulled out, and what is told without wiring a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.linear_laws import matters, sources
from fluidcc.analysis.rest import Lags

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point

__all__ = ["Matrices", "deviation", "has_loop"]


@dataclass(frozen=True)
class Matrices:
    """A system with its delays pulled out, in the layout of `fluidcc.numerics.linear.DelayLTI`."""

    A: Any
    B: Any
    C: Any
    D: Any
    delays: Any
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    trackers: tuple[str, ...]


def has_loop(m: Any) -> bool:
    """Whether, in an open loop, any flow hears of what any flow sends; at any of the points."""
    parts: Any = [np.reshape(part != 0, (*part.shape[:2], -1)).any(axis=-1) for part in (m.A, m.B, m.C, m.D)]
    A, B, C, D = parts
    inputs, outputs = len(m.inputs), len(m.outputs)
    reach = np.vstack([B[:, :inputs], D[outputs:, :inputs]]).any(axis=1)
    links = np.block([[A, B[:, inputs:]], [C[outputs:], D[outputs:, inputs:]]])
    for _ in range(len(links)):
        reach = reach | links @ reach
    return bool((np.hstack([C[:outputs], D[:outputs, inputs:]]) @ reach).any() or D[:outputs, :inputs].any())


def deviation(point: Point, k: int) -> Matrices:
    """How the flows of class `k` differ from their mean: links hear nothing of that, each only its own past."""
    source, trip = sources(point)[k], Lags(point).trip[k]
    n, own = len(source.names), source.B[:, -1:]
    label = (point.classes[k].label,)
    heard = matters(own) or matters(source.D[-1])
    kind, many = np.result_type(source.A, source.D, source.C), np.shape(point.x)[1:]
    B, C, D = (np.zeros((*shape, *many), kind) for shape in ((n, 1 + heard), (1 + heard, n), (1 + heard, 1 + heard)))
    C[:], D[:, 0] = source.C, 1.0
    if heard:
        B[:, 1], D[:, 1] = own[:, 0], source.D[-1]
    delays = np.array([trip])[: int(heard)]
    return Matrices(source.A, B, C, D, delays, source.names, label, label, source.trackers)
