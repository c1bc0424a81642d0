"""The linear law of every class of flows, at their point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.rest import evaluate, flow_inputs
from fluidcc.symbols import SOURCE_INPUTS, e, edot, pi, plain, price, x_tau

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point

__all__ = ["HEARD", "LinearLaw", "matters", "sources"]

HEARD = (e, edot, pi, price, x_tau)
INPUT = [SOURCE_INPUTS.index(s) for s in HEARD]


@dataclass(frozen=True)
class LinearLaw:
    """The linear law of one class: rows are its states that move."""

    A: Any
    B: Any  # by HEARD
    C: Any
    D: Any
    names: tuple[str, ...]
    trackers: tuple[str, ...]


def sources(point: Point) -> list[LinearLaw]:
    """The linear law of every class, without states that are held or matter to nobody."""
    found: list[Any] = [None] * len(point.classes)
    u = flow_inputs(point)
    for g in point.flow_groups:
        jac = evaluate(g, point.z, u, point.p).jacobians
        beside = None
        r = list(g.law.out).index("rate")
        for j, k in enumerate(g.members):
            A, B, C, D = (M[:, :, j] for M in jac)
            B, C, D = B[:, INPUT], C[r], D[r, INPUT]
            keep, idle = _moving(A, B, C, g.free[:, j])
            if idle.any():
                beside = beside or evaluate(g, [_aside(z) for z in point.z], _aside(u), point.p).jacobians
                A_, B_, C_ = (M[:, :, j] for M in beside[:3])
                keep, idle = _moving(A, B, C, g.free[:, j], (A_, B_[:, INPUT], C_[r]))
            label = point.classes[k].label
            name = [f"{label}.{plain(s)}" for s in g.law.states]
            pick = np.flatnonzero(keep)
            found[k] = LinearLaw(
                A[np.ix_(pick, pick)],
                B[pick],
                C[pick],
                D,
                tuple(name[i] for i in pick),
                tuple(name[i] for i in np.flatnonzero(idle)),
            )
    return found


def _aside(values: Any) -> Any:
    """Numbers near those of the point, no two moved alike."""
    share = 1e-3 * np.random.default_rng(2).uniform(0.5, 1.5, np.shape(values)[:1])
    return values + (share * np.maximum(np.abs(values).T, 1e-6)).T


def _moving(
    A: Any, B: Any, C: Any, free: Any, beside: tuple[Any, Any, Any] | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which states move and matter, and which are trackers: constant near the point, or integrators nobody reads.

    A derivative that vanishes at the point alone, as that of -(x - a)^3, makes no tracker: it is zero `beside` it too.
    """
    keep = free.copy()
    also = beside or (A, B, C)
    while True:
        still, unread = np.ones((2, len(keep)), bool) & keep
        for a, b, c in ((A, B, C), also):
            still &= ~_any(a[:, keep], 1) & ~_any(b, 1)
            unread &= ~_any(a[keep], 0) & ~_any(c[None], 0)
        if not np.any(still | unread):
            return keep, free & ~keep
        keep &= ~(still | unread)


def _any(matrix: Any, axis: int) -> NDArray[np.bool_]:
    """Where a row (axis 1) or column (axis 0) has an entry that is not zero, at any of the points."""
    return np.asarray((matrix.real != 0).any(axis=(axis, *range(2, matrix.ndim))))


def matters(value: Any) -> bool:
    """Whether a coefficient is not zero, at any of the points."""
    return bool((value != 0).any()) if isinstance(value, np.ndarray) else bool(value != 0)
