"""Network utility maximisation on arrays: maximise sum U_r(x_r) subject to R x <= c and x >= 0.

A primal-dual interior-point method finds which links bind and which flows stop; then Newton's
method on the optimality conditions of these finishes rates and prices to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array

Vector = NDArray[np.float64]
Map = Callable[[Vector], Vector]

STEPS = 200
"""Of the interior-point method, at most."""
FINISHING = 20
"""Newton steps at the end, at most; as a rule two or three."""
BINDING = 1e-6
"""A link has this much room to spare, relatively, or it binds."""
TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class UtilityGroup:
    """Flows that share one utility function; the maps take and return one value a flow of the
    group.

    Parameters
    ----------
    index : array of int
        Which flows.
    slope, curvature : callable
        U'(x) and U''(x), with x > 0.
    """

    index: NDArray[np.intp]
    slope: Map
    curvature: Map


@dataclass(frozen=True)
class NumResult:
    """Rates, prices, and how well they satisfy the optimality conditions."""

    rate: Vector
    price: Vector
    gap: float
    kkt: float


class _Problem:
    """The problem, with a scale of each rate (a fair share of the flow's scarcest link) and of each
    price (the most that a flow of the link pays for that).
    """

    def __init__(
        self, routing: csr_array, capacity: Vector, groups: Sequence[UtilityGroup]
    ) -> None:
        self.R, self.Rt, self.c, self.groups = routing, csr_array(routing.T), capacity, groups
        links, flows = routing.nonzero()
        count = np.bincount(links, minlength=len(capacity))
        self.fair = np.full(routing.shape[1], np.inf)
        np.minimum.at(self.fair, flows, capacity[links] / count[links])
        self.scale = np.zeros(len(capacity))
        np.maximum.at(self.scale, links, np.abs(self.slopes(self.fair)[0])[flows])
        self.scale[self.scale == 0] = np.max(self.scale) or 1.0  # of a link without flows

    def slopes(self, x: Vector) -> tuple[Vector, Vector]:
        """U'(x) and -U''(x)."""
        slope, bend = np.empty((2, len(x)))
        for g in self.groups:
            slope[g.index], bend[g.index] = g.slope(x[g.index]), -g.curvature(x[g.index])
        return slope, bend

    def hessian(self, bend: Vector) -> Vector:
        """R diag(1/bend) R^T, dense."""
        return np.asarray((self.R @ diags_array(1 / bend) @ self.Rt).todense())

    def residual(self, x: Vector, price: Vector) -> tuple[float, float]:
        """(relative duality gap, relative residual of the optimality conditions)."""
        path, slack = self.Rt @ price, self.c - self.R @ x
        worth = max(float(price @ self.c), TINY)
        some = np.where(x > 0, x, 1e-18 * self.fair)
        slope, bend = self.slopes(some)
        off = np.where(x > 0, np.abs(slope - path), np.maximum(slope - path, 0.0))
        # A satiated flow has neither slope nor price: there the curvature sets the scale.
        size = np.maximum.reduce([np.abs(slope), path, some * bend])
        worst = [-slack / self.c, price * np.abs(slack) / worth, off / size]
        return abs(float(price @ slack)) / worth, max(0.0, *(float(part.max()) for part in worst))


def _interior(of: _Problem) -> tuple[Vector, Vector]:
    """Rates and prices near the optimum, 0 where a flow stops or a link does not bind.

    Each price times its link's slack, and each rate times what its flow would have to be paid to
    send more, goes to zero. The slacks are added up and not taken from the rates, in whose rounding
    they would vanish.
    """
    x = 0.5 * of.fair
    slack = of.c - of.R @ x
    price = np.maximum(of.scale, 1e-3 * np.max(of.scale) * np.min(of.c) / of.c)
    slope, bend = of.slopes(x)
    lacking = 0.1 * np.maximum(np.abs(slope), x * bend)
    least = 1e-26 * float(np.mean(of.scale * of.c))
    for _ in range(STEPS):
        target = 0.1 * float(price @ slack + lacking @ x) / (len(price) + len(x))
        slope, bend = of.slopes(x)
        off = slope - of.Rt @ price
        size = np.maximum(np.abs(slope), x * bend)
        # Far below rounding in the sum: a cheap link's price may be 1e-16 of the dearest one's.
        if np.all(np.abs(off + lacking) < 1e-9 * size) and target < least:
            break
        stiff, drive = bend + lacking / x, off + target / x
        H = of.hessian(stiff) + np.diag(slack / price)
        unit = 1 / np.sqrt(np.diag(H))
        try:  # redundant links make it singular but for rounding
            factor = cho_factor(H * np.outer(unit, unit) + 1e-14 * np.eye(len(unit)))
        except (LinAlgError, ValueError):
            break
        move = unit * cho_solve(factor, unit * (target / price - slack + of.R @ (drive / stiff)))
        dx = (drive - of.Rt @ move) / stiff
        ds, more = -(of.R @ dx), (target - lacking * dx) / x - lacking
        primal = _share(dx / x, ds / slack)
        dual = _share(move / price, more / lacking)
        x, slack = x + primal * dx, slack + primal * ds
        price, lacking = price + dual * move, lacking + dual * more
    x = np.where(x * size < lacking * of.fair, 0.0, x)
    return x, np.where(slack < BINDING * of.c, price, 0.0)


def _share(*changes: Vector) -> float:
    """Which share of a step keeps all numbers positive, from their relative changes."""
    return min(1.0, 0.99 / max(1e-9, *(float(np.max(-change)) for change in changes)))


def _finished(of: _Problem, x: Vector, price: Vector) -> tuple[Vector, Vector]:
    """Newton's method on the conditions of the links that bind and the flows that send, as long as
    they are met better.
    """
    from scipy.linalg import pinvh

    binds, sends, best = price > 0, x > 0, np.inf
    found = x, price
    for _ in range(FINISHING):
        kkt = max(of.residual(x, price))
        if not kkt < best:
            break
        found, best = (x, price), kkt
        slope, bend = of.slopes(np.where(sends, x, of.fair))
        bend[~sends] = np.inf
        off = np.where(sends, slope - of.Rt @ price, 0.0)
        move = np.zeros_like(price)
        if binds.any():
            H = of.hessian(bend)[np.ix_(binds, binds)]
            unit = 1 / np.sqrt(np.diag(H))
            lack = (of.R @ (off / bend) - (of.c - of.R @ x))[binds]
            # redundant links share their price in any way: it changes by the least
            move[binds] = unit * (pinvh(H * np.outer(unit, unit), rtol=1e-13) @ (unit * lack))
        x, price = x + (off - of.Rt @ move) / bend, np.maximum(price + move, 0.0)
        if not (np.all(x[sends] > 0) and np.isfinite(price).all()):
            break
    return found


def maximise(routing: csr_array, capacity: Vector, groups: Sequence[UtilityGroup]) -> NumResult:
    """Maximise the sum of the utilities over the rates that fit the links.

    Parameters
    ----------
    routing : csr_array, shape (links, flows)
        1 where the flow uses the link.
    capacity : array, shape (links,)
        Positive and finite [bit/s].
    groups : sequence of UtilityGroup
        They cover each flow once, and each flow uses at least one link.

    Returns
    -------
    NumResult
        ``kkt`` is the largest of: overload over capacity, price times slack over the worth of all
        capacities (lambda . c), and |U'(x) - path price| over the price; ``gap`` is the duality gap
        over lambda . c. Where links are redundant the prices are one valid choice of several.
    """
    problem = _Problem(csr_array(routing), np.asarray(capacity, float), groups)
    with np.errstate(all="ignore"):  # a satiated flow's slope vanishes
        x, price = _finished(problem, *_interior(problem))
        return NumResult(x, price, *problem.residual(x, price))
