"""Network utility maximisation on arrays: maximise sum U_r(x_r) subject to R x <= c and x >= 0.

A primal-dual interior-point method finds which links bind and which flows stop; then Newton's
method on the optimality conditions of these finishes rates and prices to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, pinvh
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
        np.maximum.at(self.scale, links, np.abs(self.derivatives(self.fair)[0])[flows])
        self.scale[self.scale == 0] = np.max(self.scale) or 1.0  # of a link without flows

    def derivatives(self, x: Vector) -> tuple[Vector, Vector]:
        """Slope U'(x) and concavity -U''(x)."""
        slope, concavity = np.empty((2, len(x)))
        for g in self.groups:
            slope[g.index], concavity[g.index] = g.slope(x[g.index]), -g.curvature(x[g.index])
        return slope, concavity

    def hessian(self, concavity: Vector) -> Vector:
        """R diag(1/concavity) R^T, dense."""
        return np.asarray((self.R @ diags_array(1 / concavity) @ self.Rt).todense())

    def residual(self, x: Vector, price: Vector) -> tuple[float, float]:
        """(relative duality gap, relative residual of the optimality conditions)."""
        path, slack = self.Rt @ price, self.c - self.R @ x
        worth = max(float(price @ self.c), TINY)
        some = np.where(x > 0, x, 1e-18 * self.fair)
        slope, concavity = self.derivatives(some)
        off = np.where(x > 0, np.abs(slope - path), np.maximum(slope - path, 0.0))
        # A satiated flow has neither slope nor price: there the curvature sets the scale.
        size = np.maximum.reduce([np.abs(slope), path, some * concavity])
        worst = [-slack / self.c, price * np.abs(slack) / worth, off / size]
        return abs(float(price @ slack)) / worth, max(0.0, *(float(part.max()) for part in worst))


def _interior(problem: _Problem) -> tuple[Vector, Vector]:
    """Rates and prices near the optimum, 0 where a flow stops or a link does not bind.

    Each link's price times its slack goes to zero, and so does each rate times `floor_price`, that
    of its bound x >= 0. The slacks are added up and not taken from the rates, in whose rounding
    they would vanish.
    """
    x = 0.5 * problem.fair
    slack = problem.c - problem.R @ x
    price = np.maximum(problem.scale, 1e-3 * np.max(problem.scale) * np.min(problem.c) / problem.c)
    slope, concavity = problem.derivatives(x)
    floor_price = 0.1 * np.maximum(np.abs(slope), x * concavity)
    least = 1e-26 * float(np.mean(problem.scale * problem.c))
    for _ in range(STEPS):
        target = 0.1 * float(price @ slack + floor_price @ x) / (len(price) + len(x))
        slope, concavity = problem.derivatives(x)
        off = slope - problem.Rt @ price
        size = np.maximum(np.abs(slope), x * concavity)
        # Far below rounding in the sum: a cheap link's price may be 1e-16 of the dearest one's.
        if np.all(np.abs(off + floor_price) < 1e-9 * size) and target < least:
            break
        stiffness, rhs = concavity + floor_price / x, off + target / x
        H = problem.hessian(stiffness) + np.diag(slack / price)
        unit = 1 / np.sqrt(np.diag(H))
        try:  # redundant links make it singular but for rounding
            factor = cho_factor(H * np.outer(unit, unit) + 1e-14 * np.eye(len(unit)))
        except (LinAlgError, ValueError):
            break
        d_price = unit * cho_solve(
            factor, unit * (target / price - slack + problem.R @ (rhs / stiffness))
        )
        d_x = (rhs - problem.Rt @ d_price) / stiffness
        d_slack, d_floor = -(problem.R @ d_x), (target - floor_price * d_x) / x - floor_price
        of_rates = _step_length(d_x / x, d_slack / slack)
        of_prices = _step_length(d_price / price, d_floor / floor_price)
        x, slack = x + of_rates * d_x, slack + of_rates * d_slack
        price, floor_price = price + of_prices * d_price, floor_price + of_prices * d_floor
    # of two numbers whose product vanishes the relatively smaller one is zero
    x = np.where(x * size < floor_price * problem.fair, 0.0, x)
    return x, np.where(slack < BINDING * problem.c, price, 0.0)


def _step_length(*changes: Vector) -> float:
    """How much of a step keeps numbers positive, at most all, by their relative changes."""
    return min(1.0, 0.99 / max(1e-9, *(float(np.max(-change)) for change in changes)))


def _polished(problem: _Problem, x: Vector, price: Vector) -> tuple[Vector, Vector]:
    """Newton's method on the conditions of the links that bind and the flows that send, as long as
    they are met better.
    """
    binds, sends, best = price > 0, x > 0, np.inf
    found = x, price
    for _ in range(FINISHING):
        kkt = max(problem.residual(x, price))
        if not kkt < best:
            break
        found, best = (x, price), kkt
        slope, concavity = problem.derivatives(np.where(sends, x, problem.fair))
        concavity[~sends] = np.inf
        off = np.where(sends, slope - problem.Rt @ price, 0.0)
        d_price = np.zeros_like(price)
        if binds.any():
            H = problem.hessian(concavity)[np.ix_(binds, binds)]
            unit = 1 / np.sqrt(np.diag(H))
            lack = (problem.R @ (off / concavity) - (problem.c - problem.R @ x))[binds]
            # redundant links share their price in any way: it changes by the least
            d_price[binds] = unit * (pinvh(H * np.outer(unit, unit), rtol=1e-13) @ (unit * lack))
        x, price = x + (off - problem.Rt @ d_price) / concavity, np.maximum(price + d_price, 0.0)
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
        x, price = _polished(problem, *_interior(problem))
        return NumResult(x, price, *problem.residual(x, price))
