"""Equilibria of projected dynamical systems: mixed complementarity by pseudo-transient continuation.

Given M u' = G(u), projected onto lower <= u <= upper, with M diagonal and some of its entries zero (algebraic rows),
find u with G_i = 0 inside, G_i <= 0 at the lower and G_i >= 0 at the upper bound. Each step is one linearly implicit
Euler step, that is, a linear complementarity problem solved by active sets; the step length grows until it is a Newton
step. Following the dynamics loosely keeps the iteration away from equilibria that no trajectory reaches, and makes a
system without any equilibrium show itself as growth without limit.

References: Coffey, Kelley and Keyes, "Pseudotransient continuation and differential-algebraic equations", SIAM J.
Sci. Comput. 25 (2003); Facchinei and Pang, "Finite-Dimensional Variational Inequalities and Complementarity Problems"
(2003).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu

__all__ = ["Problem", "Result", "find_equilibrium"]

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

DENSE = 250
"""Up to so many unknowns a dense solve is faster than a sparse one."""


@dataclass(frozen=True)
class Problem:
    """A projected dynamical system.

    Parameters
    ----------
    fun : callable
        u -> (G, J) with the Jacobian J a csr_array, or an array of at most `DENSE` rows.
    lower, upper : array
        Bounds; infinite where there is none.
    mass : array
        1 for a state, 0 for an algebraic unknown.
    scale : array
        A size below which a change of that unknown is small; 0 if not known.
    ceiling : array
        Beyond this value an unknown counts as growing without limit.
    kink : array
        A value at which the derivatives of G by that unknown jump; infinite where there is none. `fun` decides by G
        which side it means there.
    """

    fun: Callable[[Vector], tuple[Vector, Any]]
    lower: Vector
    upper: Vector
    mass: Vector
    scale: Vector
    ceiling: Vector
    kink: Vector


@dataclass(frozen=True)
class Result:
    """Where the iteration ended, and why; `error` is the last relative Newton step."""

    u: Vector
    status: Literal["converged", "growing", "stalled", "undefined"]
    error: float
    steps: int


def _solve(matrix: Any, right: Vector, columns: Vector) -> Vector:
    """Solve a linear system in units of `columns` with its rows scaled; NaN where it is singular."""
    if not len(right):
        return right
    if isinstance(matrix, np.ndarray):
        return _solve_dense(matrix, right, columns)
    scaled = csr_array(matrix @ diags_array(columns))
    largest = np.asarray(abs(scaled).max(axis=1).todense()).ravel()
    with np.errstate(all="ignore"):
        rows = np.where(largest > 0, 1.0 / largest, 1.0)
    scaled, right = csr_array(diags_array(rows) @ scaled), rows * right
    try:
        # Ordered by A + A^T: a link's row holds all its flows, so that A^T A, the usual choice, is nearly full.
        factors = splu(csc_array(scaled), "MMD_AT_PLUS_A", 0.01, options={"SymmetricMode": True})
        return columns * np.asarray(factors.solve(right))
    except RuntimeError:
        return np.full(len(right), np.nan)


def _solve_dense(matrix: Vector, right: Vector, columns: Vector) -> Vector:
    scaled = matrix * columns
    largest = np.abs(scaled).max(axis=1)
    rows = 1.0 / np.where(largest > 0, largest, 1.0)
    try:
        return columns * np.asarray(np.linalg.solve(scaled * rows[:, None], rows * right))
    except np.linalg.LinAlgError:
        return np.full(len(right), np.nan)


def _system(mass: Vector, J: Any, h: float) -> Any:
    """M / h - J, dense where that is faster."""
    if len(mass) > DENSE:
        return csr_array(diags_array(mass / h) - J)
    system = -np.asarray(J if isinstance(J, np.ndarray) else J.toarray(), float)
    system[np.diag_indices(len(mass))] += mass / h
    return system


def _step(p: Problem, u: Vector, G: Vector, J: Any, h: float, size: Vector) -> Vector:
    """One linearly implicit Euler step of length h, projected: a linear complementarity problem by active sets."""
    system = _system(p.mass, J, h)
    low, high = (u <= p.lower) & (G < 0), (u >= p.upper) & (G > 0)
    seen = set()
    for _ in range(60):
        fixed = low | high
        move = np.where(low, p.lower - u, np.where(high, p.upper - u, 0.0))
        free = np.flatnonzero(~fixed)
        right = (G - system @ move)[free]
        move[free] = _solve(system[free][:, free], right, size[free])
        if not np.all(np.isfinite(move)):
            return move
        drift = G - system @ move
        below, above = ~fixed & (u + move < p.lower), ~fixed & (u + move > p.upper)
        low, high = (low & (drift <= 0)) | below, (high & (drift >= 0)) | above
        if np.array_equal(low | high, fixed) or (key := (low | 2 * high).tobytes()) in seen:
            break
        seen.add(key)
    return np.clip(u + move, p.lower, p.upper) - u


def _guarded(p: Problem, u: Vector, G: Vector, move: Vector, reference: Vector) -> Vector:
    """Approach a bound of zero by factors of ten: a rate equation in proportion to x would never leave x = 0.

    A move there against a rising G is what too long a step makes of an unstable zero; it is refused, by NaN.
    """
    keep = (p.lower == 0) & (p.mass > 0) & (u > 1e-9 * reference) & (reference > 0) & (u + move < 0.1 * u)
    return np.where(keep, np.where(G > 0, np.nan, -0.9 * u), move)


def _finite(J: Any) -> bool:
    return bool(np.all(np.isfinite(J if isinstance(J, np.ndarray) else J.data)))


CAUTION = ((3.0, 60), (0.5, 400), (0.1, 800))
"""Largest relative change of a state in one step, and for how many steps: bold at first, but not for long, as kinks may
make bold steps cycle for ever."""


def _to_kink(p: Problem, u: Vector, move: Vector) -> Vector:
    """The end of a move, cut short at the first kink on its way: beyond, its derivatives are wrong, and steps cycle."""
    with np.errstate(all="ignore"):
        share = (p.kink - u) / move
    inside = (share > 1e-9) & (share < 1)
    if not np.any(inside):
        return u + move
    first = float(np.min(share[inside]))
    return np.where(inside & (share == first), p.kink, u + first * move)


def find_equilibrium(p: Problem, u: Vector, *, first: float = 1e-2, bold: bool = True) -> Result:
    """Find an equilibrium of a projected dynamical system.

    Parameters
    ----------
    p : Problem
        The system.
    u : array
        Where to start.
    first : float
        First step of pseudo-time.
    bold : bool
        Begin with large steps.

    Returns
    -------
    Result
        ``status`` is "growing" if an unknown passed its ceiling, "stalled" if the steps ran out, and "undefined" if
        G is not finite at the start.
    """
    u, steps = np.clip(u, p.lower, p.upper), 0
    for largest, limit in CAUTION if bold else CAUTION[1:]:
        result = _follow(p, u, first, largest, limit)
        steps += result.steps
        if result.status != "stalled":
            break
        u = result.u
    return replace(result, steps=steps)


def _follow(p: Problem, u: Vector, h: float, largest: float, limit: int) -> Result:
    """Follow the dynamics in growing steps, none of which changes a state by more than `largest`, relatively."""
    reference, error = np.maximum(np.abs(u), p.scale), np.inf
    G, J = p.fun(u)
    if not np.all(np.isfinite(G)):
        return Result(u, "undefined", error, 0)
    for count in range(limit):
        size = np.maximum(np.maximum(np.abs(u), 1e-3 * reference), p.scale)
        size = np.where(size > 0, size, 1.0)
        move = _guarded(p, u, G, _step(p, u, G, J, h, size), np.where(p.scale > 0, 0.0, reference))
        with np.errstate(all="ignore"):
            known = (reference > 0) | (move == 0)
            relative = np.where(known, np.abs(move) / size, 0.0)
            change = float(np.max(np.where(p.mass > 0, relative, 0.0), initial=0.0))
            error = float(np.max(np.where(known, relative, 1.0), initial=0.0))
        fine = np.all(np.isfinite(move)) and change <= max(largest, 0.95)  # 0.9 is what `_guarded` lets through
        end = _to_kink(p, u, move)
        new_G, new_J = p.fun(end) if fine else (np.array([np.nan]), J)
        if not np.all(np.isfinite(new_G)) or not _finite(new_J):
            h *= 0.25
            if h < 1e-14:
                break
            continue
        u, G, J = end, new_G, new_J
        reference = np.maximum(reference, np.abs(u))
        if np.any(u > p.ceiling):
            return Result(u, "growing", error, count + 1)
        if h > 1e8 and error < 1e-9:
            return _finish(p, u, reference, count + 1)
        ratio = change / largest
        h = min(h * (10.0 if ratio < 0.05 else 5.0 if ratio < 0.2 else 2.0 if ratio < 0.5 else 1.2), 1e30)
    return Result(u, "stalled", error, limit)


def _finish(p: Problem, u: Vector, reference: Vector, count: int) -> Result:
    """Newton steps as long as they get smaller."""
    last: Any = np.inf
    # What pseudo-time has not quite brought to its bound goes there, and stays if the drift there is only rounding.
    near = (u - p.lower < 1e-7 * p.scale) & (p.mass > 0)
    u = np.where(near, p.lower, u)
    G, J = p.fun(u)
    balance = abs(J) @ np.maximum(np.maximum(np.abs(u), 1e-6 * reference), p.scale)
    p = replace(p, upper=np.where(near & (np.abs(G) <= 1e-8 * balance), p.lower, p.upper))
    for _ in range(8):
        size = np.maximum(np.maximum(np.abs(u), 1e-6 * reference), p.scale)
        size = np.where(size > 0, size, 1.0)
        move = _step(p, u, G, J, 1e16, size)
        error = float(np.max(np.abs(move) / size, initial=0.0))
        if not error < 0.5 * last:
            break
        u, last = u + move, error
        G, J = p.fun(u)
        count += 1
    return Result(u, "converged", float(last), count)
