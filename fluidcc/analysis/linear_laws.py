"""The linear law of every class of flows, at their point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.rest import evaluate, flow_inputs
from fluidcc.symbols import SOURCE_INPUTS, e, edot, pi, plain, price, x_tau

if TYPE_CHECKING:
    from fluidcc.analysis.operating_point import LawGroup, Point
    from fluidcc.laws.linear import Jacobians

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
        A, B, C, D = _heard(g, evaluate(g, point.z, u, point.p).jacobians)
        keep = _moving(g.free, [(A, B, C)])
        if not np.array_equal(keep, g.free):
            aside = evaluate(g, [_aside(z) for z in point.z], _aside(u), point.p)
            keep = _moving(g.free, [(A, B, C), _heard(g, aside.jacobians)[:3]])
        idle = g.free & ~keep
        for j, k in enumerate(g.members):
            name = [f"{point.classes[k].label}.{plain(s)}" for s in g.law.states]
            pick = np.flatnonzero(keep[:, j])
            found[k] = LinearLaw(
                A[:, :, j][np.ix_(pick, pick)],
                B[pick, :, j],
                C[pick, j],
                D[:, j],
                tuple(name[i] for i in pick),
                tuple(name[i] for i in np.flatnonzero(idle[:, j])),
            )
    return found


def _heard(g: LawGroup, jacobians: Jacobians) -> tuple[Any, Any, Any, Any]:
    """The Jacobians of a group: inputs by `HEARD`, and of the outputs the rate."""
    A, B, C, D = jacobians
    r = list(g.law.out).index("rate")
    return A, B[:, INPUT], C[r], D[r, INPUT]


def _aside(values: Any) -> Any:
    """Numbers near those of the point, no two moved alike."""
    share = 1e-3 * np.random.default_rng(2).uniform(0.5, 1.5, np.shape(values)[:1])
    return values + (share * np.maximum(np.abs(values).T, 1e-6)).T


def _moving(free: NDArray[np.bool_], places: list[tuple[Any, Any, Any]]) -> NDArray[np.bool_]:
    """Which states (states, members) move and matter: not constant near the point, nor integrators nobody reads.

    A derivative that vanishes at the point alone, as that of -(x - a)^3, makes no tracker: it is given at other places
    too.
    """
    among, driven, told = (np.any([_nonzero(part, n) for part in parts], axis=0)
                           for parts, n in zip(zip(*places, strict=True), (3, 3, 2), strict=True))  # fmt: skip
    hears, keep = driven.any(1), free
    while True:
        moves = (among & keep[None]).any(1) | hears
        read = (among & keep[:, None]).any(0) | told
        fewer = keep & moves & read
        if np.array_equal(fewer, keep):
            return keep
        keep = fewer


def _nonzero(derivatives: Any, axes: int) -> NDArray[np.bool_]:
    """Where a derivative is not zero at any of the points, which lie along the axes after the first."""
    return np.asarray((derivatives.real != 0).any(axis=tuple(range(axes, derivatives.ndim))))


def matters(value: Any) -> bool:
    """Whether a coefficient is not zero, at any of the points."""
    return bool((value != 0).any()) if isinstance(value, np.ndarray) else bool(value != 0)
