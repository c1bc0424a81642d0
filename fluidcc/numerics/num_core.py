"""Network utility maximisation on arrays: maximise sum U_r(x_r) subject to R x <= c.

A primal-dual interior-point method finds the prices, and a projected Newton method on the dual,
over the links that bind, finishes them to rounding. Solver defaults alone meet the optimality
conditions to about 1e-4 only.
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

FLOOR = 1e-18
"""A rate below this fraction of its ceiling counts as zero."""


@dataclass(frozen=True)
class UtilityGroup:
    """Flows that share one utility function; the maps take and return one value a flow of the
    group.

    Parameters
    ----------
    index : array of int
        Which flows.
    value, slope, curvature : callable
        U(x), U'(x) and U''(x), with x > 0.
    demand : callable, optional
        The inverse of U'. Without it the slope is inverted numerically.
    """

    index: NDArray[np.intp]
    value: Map
    slope: Map
    curvature: Map
    demand: Map | None = None


@dataclass(frozen=True)
class NumResult:
    """Rates, prices, and how well they satisfy the optimality conditions."""

    rate: Vector
    price: Vector
    gap: float
    kkt: float
    iterations: int


def invert_slope(
    group: UtilityGroup, price: Vector, ceiling: Vector, guess: Vector | None = None
) -> Vector:
    """Solve U'(x) = price on (0, ceiling] by Newton's method in log x on log U', inside a shrinking
    bracket.

    In these coordinates the slope of every alpha-fair utility is a straight line, so such a utility
    takes one step.
    """
    low, high = FLOOR * ceiling, ceiling.copy()
    x = np.clip(np.sqrt(low * high) if guess is None else guess, low, high)
    at_top = group.slope(high) >= price
    at_zero = group.slope(low) <= price
    for _ in range(200):
        slope = group.slope(x)
        low, high = np.where(slope > price, x, low), np.where(slope > price, high, x)
        with np.errstate(all="ignore"):
            new = x * np.exp((np.log(price) - np.log(slope)) * slope / (x * group.curvature(x)))
        new = np.where((new > low) & (new < high), new, np.sqrt(low * high))
        done = np.abs(new - x) <= 4e-16 * x
        x = new
        if np.all(done | at_top | at_zero):
            break
    return np.where(at_top, ceiling, np.where(at_zero, 0.0, x))


class _Dual:
    """The dual of the problem with the redundant ceilings x_r <= 2 min c, which keep it finite
    where prices vanish.
    """

    def __init__(
        self, routing: csr_array, capacity: Vector, groups: Sequence[UtilityGroup]
    ) -> None:
        self.R, self.c, self.groups = routing, capacity, groups
        self.Rt = csr_array(routing.T)
        links = np.repeat(np.arange(len(capacity)), np.diff(routing.indptr))
        self.ceiling = np.full(routing.shape[1], np.inf)
        np.minimum.at(self.ceiling, routing.indices, 2.0 * capacity[links])
        self.guess: Vector = 0.5 * self.ceiling

    def rates(self, price: Vector) -> Vector:
        """The rates that the flows choose at these link prices."""
        path, x = self.Rt @ price, np.empty(len(self.ceiling))
        for g in self.groups:
            p, top = path[g.index], self.ceiling[g.index]
            if g.demand is None:
                x[g.index] = invert_slope(g, p, top, self.guess[g.index])
            else:
                with np.errstate(all="ignore"):
                    x[g.index] = np.where(
                        p > 0, np.clip(g.demand(np.where(p > 0, p, 1.0)), 0.0, top), top
                    )
        self.guess = np.maximum(x, FLOOR * self.ceiling)
        return x

    def value_and_slack(self, price: Vector) -> tuple[float, Vector]:
        """The dual function and its gradient c - R x."""
        x = self.rates(price)
        total = float(price @ self.c - (self.Rt @ price) @ x)
        for g in self.groups:
            part = x[g.index]
            total += float(np.sum(g.value(np.maximum(part, FLOOR * self.ceiling[g.index]))))
        return total, self.c - self.R @ x

    def hessian(self, x: Vector, free: NDArray[np.bool_]) -> Vector:
        """The second derivative of the dual function over the free links: R diag(-1/U'') R^T,
        dense.
        """
        weight = np.zeros(len(x))
        for g in self.groups:
            part = x[g.index]
            inner = (part > 0) & (part < self.ceiling[g.index])
            weight[g.index] = np.where(inner, -1.0 / g.curvature(np.where(inner, part, 1.0)), 0.0)
        rows = self.R[free]
        return np.asarray((rows @ diags_array(weight) @ rows.T).todense())

    def residual(self, price: Vector, x: Vector) -> tuple[float, float]:
        """(relative duality gap, relative residual of the optimality conditions)."""
        path, slack = self.Rt @ price, self.c - self.R @ x
        worth = max(float(price @ self.c), np.finfo(float).tiny)
        overload, waste = (
            np.max(-slack / self.c, initial=0.0),
            np.max(price * np.abs(slack), initial=0.0),
        )
        worst = max(float(overload), float(waste) / worth)
        for g in self.groups:
            p, part = path[g.index], x[g.index]
            some = np.where(part > 0, part, FLOOR * self.ceiling[g.index])
            slope = g.slope(some)
            off = np.where(part > 0, np.abs(slope - p), np.maximum(slope - p, 0.0))
            # A satiated flow has neither slope nor price: there the curvature sets the scale.
            size = np.maximum.reduce([np.abs(slope), p, -some * g.curvature(some)])
            worst = max(worst, float(np.max(off / size, initial=0.0)))
        return abs(float(price @ slack)) / worth, worst


def _scale(dual: _Dual) -> Vector:
    """The scale of each link's price: what its flows would pay for a fair share of their scarcest
    link.
    """
    R, count = dual.R, np.diff(dual.R.indptr)
    links = np.repeat(np.arange(len(dual.c)), count)
    fair, path = np.full(R.shape[1], np.inf), np.empty(R.shape[1])
    np.minimum.at(fair, R.indices, (dual.c / np.maximum(count, 1))[links])
    for g in dual.groups:
        path[g.index] = g.slope(fair[g.index])
    scale = np.zeros(len(dual.c))
    np.maximum.at(scale, links, np.abs(path[R.indices]))
    scale[scale == 0] = 1.0
    return scale


def _newton_step(hessian: Vector, slack: Vector) -> Vector:
    """Minus the inverse of the Hessian times the slack, damped just enough where links are
    redundant.
    """
    size = max(float(np.max(np.diag(hessian), initial=0.0)), 1e-12 * float(np.max(np.abs(slack))))
    for damping in (0.0, 1e-14, 1e-11, 1e-8, 1e-4, 1.0):
        try:
            step = -cho_solve(cho_factor(hessian + damping * size * np.eye(len(slack))), slack)
        except LinAlgError:
            continue
        if np.all(np.isfinite(step)) and step @ slack < 0:
            return step
    return -slack / size


def _line_search(
    dual: _Dual, price: Vector, step: Vector, value: float, slack: Vector
) -> tuple[Vector, float, Vector]:
    """Shorten the projected step until the dual function falls enough."""
    for _ in range(50):
        trial = np.maximum(price + step, 0.0)
        new_value, new_slack = dual.value_and_slack(trial)
        slope = float(slack @ (trial - price))
        noise = 1e-13 * (abs(value) + float(trial @ dual.c))
        if new_value <= value + 1e-4 * slope - noise:
            break
        # Where the decrease drowns in rounding (cheap links beside dear ones), the slope still
        # tells.
        if new_value <= value + noise and abs(new_slack @ (trial - price)) <= -0.5 * slope:
            break
        step = 0.5 * step
    return trial, new_value, new_slack


def _polish(dual: _Dual, price: Vector, scale: Vector, limit: int) -> tuple[Vector, int]:
    """Projected Newton method on the dual, to rounding; prices are held in units of `scale`."""
    best, best_kkt, stalled = price, np.inf, 0
    value, slack = dual.value_and_slack(price)
    for count in range(limit):
        x = dual.rates(price)
        kkt = max(dual.residual(price, x))
        stalled = 0 if kkt < 0.5 * best_kkt else stalled + 1
        if kkt < best_kkt:
            best, best_kkt = price, kkt
        if best_kkt < 4e-16 or (stalled > 3 and best_kkt < 1e-12) or stalled > 40:
            return best, count
        free = ~((price <= 0) & (slack >= 0))
        unit = scale[free]
        step = np.zeros_like(price)
        step[free] = unit * _newton_step(
            dual.hessian(x, free) * np.outer(unit, unit), unit * slack[free]
        )
        # Where every rate is at its ceiling the Hessian vanishes: keep the step within sight.
        step *= min(1.0, 100.0 / max(float(np.max(np.abs(step) / (price + scale))), 1.0))
        price, value, slack = _line_search(dual, price, step, value, slack)
    return best, limit


def _interior(dual: _Dual, price: Vector, limit: int = 120) -> Vector:
    """Primal-dual interior-point method: it is at ease with prices that span many orders of
    magnitude.
    """
    R, x = dual.R, np.full(len(dual.ceiling), np.inf)
    links = np.repeat(np.arange(len(dual.c)), np.diff(R.indptr))
    np.minimum.at(x, R.indices, 0.5 * (dual.c / np.maximum(np.diff(R.indptr), 1))[links])
    slack, price = dual.c - R @ x, np.maximum(price, 1e-3 * np.max(price) * np.min(dual.c) / dual.c)
    slope, curvature = np.empty_like(x), np.empty_like(x)
    for _ in range(limit):
        for g in dual.groups:
            slope[g.index], curvature[g.index] = g.slope(x[g.index]), -g.curvature(x[g.index])
        off, target = slope - dual.Rt @ price, 0.1 * float(np.mean(price * slack))
        hessian = np.asarray((R @ diags_array(1 / curvature) @ dual.Rt).todense())
        unit = np.sqrt(price / slack)
        try:
            factor = cho_factor(hessian * np.outer(unit, unit) + np.eye(len(unit)))
        except (LinAlgError, ValueError):
            break
        move = unit * cho_solve(factor, unit * (target / price - slack + R @ (off / curvature)))
        dx = (off - dual.Rt @ move) / curvature
        ds = -(R @ dx)
        primal = min(1.0, 0.99 / max(float(np.max(-dx / x)), float(np.max(-ds / slack)), 1e-9))
        length = min(1.0, 0.99 / max(float(np.max(-move / price)), 1e-9))
        x, slack, price = x + primal * dx, slack + primal * ds, price + length * move
        # Far below rounding in the sum: a cheap link's price may be 1e-16 of the dearest one's.
        if np.max(np.abs(off) / slope) < 1e-9 and target < 1e-26 * float(np.mean(price * dual.c)):
            break
    return np.where(price * dual.c > 1e3 * price * slack, price, 0.0)


def maximise(
    routing: csr_array,
    capacity: Vector,
    groups: Sequence[UtilityGroup],
    *,
    max_iterations: int = 300,
) -> NumResult:
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
    routing = csr_array(routing)
    dual = _Dual(routing, np.asarray(capacity, float), groups)
    scale = _scale(dual)
    with np.errstate(all="ignore"):  # a satiated flow's slope vanishes
        price = _interior(dual, scale)
    price, count = _polish(dual, price, scale, max_iterations)
    x = dual.rates(price)
    return NumResult(x, price, *dual.residual(price, x), count)
