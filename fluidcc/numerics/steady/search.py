"""Searches from Python: many points at once, and one again under other conditions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..steady import slots as s
from .evaluate import evaluate
from .follow import LONGEST_QUEUE, find, find_many, tell
from .layout import Numbers, Shape, arrays, rows

__all__ = ["Found", "Search"]


class Found(NamedTuple):
    """Where searches ended, by point.

    Attributes
    ----------
    u : array (points, unknowns)
    told : array (points, 2 flows + 4 links)
        e and loss ratio of the flows' paths; queueing delay, loss ratio of the buffer, price and ratio dropped before
        the queue of the links.
    status : array of int
        How they ended: see `follow`.
    error : array
        The last relative Newton step.
    steps : array of int
        How many steps it took.
    """

    u: Any
    told: Any
    status: Any
    error: Any
    steps: Any

    def point(self, i: int) -> Found:
        """Where the search at one point ended."""
        return Found(self.u[i], self.told[i], int(self.status[i]), float(self.error[i]), int(self.steps[i]))


class Search:
    """Searches in networks of one structure, one at a time."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.arrays = arrays(shape)

    def everywhere(self, numbers: Numbers) -> Found:
        """Look for an equilibrium at each point; no result depends on the other points."""
        points, S = len(numbers.c), self.shape
        found = Found(
            np.empty((points, S.unknowns)),
            np.empty((points, 2 * S.flows + 4 * S.links)),
            np.empty(points, np.int64),
            np.empty(points),
            np.empty(points, np.int64),
        )
        I, D = self.arrays
        with np.errstate(all="ignore"):
            find_many(I, rows(numbers), D, LONGEST_QUEUE, *found)
        return found

    def again(
        self, numbers: Numbers, point: int, u: Any, *, ceiling: float = LONGEST_QUEUE, bold: bool = True,
        held: Any = None,
    ) -> Found:  # fmt: skip
        """Look again at one point, from `u`, with the unknowns `held` kept where they are."""
        (I, D), S = self.arrays, self.shape
        u, P = u.copy(), rows(Numbers(*(a[point : point + 1] for a in numbers)))[0]
        if held is not None:
            P[I[s.LOWER] + held] = P[I[s.UPPER] + held] = u[held]
        told = np.empty(2 * S.flows + 4 * S.links)
        with np.errstate(all="ignore"):
            status, error, steps = find(I, P, D, u, ceiling, bold)
            tell(I, P, D, u, told)
        return Found(u, told, int(status), float(error), int(steps))

    def residual(self, numbers: Numbers, point: int, u: Any) -> Any:
        """G at `u` at one point."""
        I, D = self.arrays
        with np.errstate(all="ignore"):
            evaluate(I, rows(Numbers(*(a[point : point + 1] for a in numbers)))[0], D, u)
        return D[I[s.G] : I[s.G] + self.shape.unknowns].copy()
