"""Where eigenloci cross the unit circle and the negative real axis, polished to rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.loci import Floats, Ints, Loci, evaluate
from fluidcc.numerics.linear.pencil import Complex, Pencil

__all__ = ["Crossings", "find"]

ROUNDS = 50


@dataclass(frozen=True)
class Crossings:
    """Crossings of all systems: `unit` tells those of the unit circle from those of the negative real axis.

    Frequencies are in each system's unit of time; `value` is the eigenvalue there.
    """

    which: Ints
    omega: Floats
    value: Complex
    unit: NDArray[np.bool_]


def find(pencil: Pencil, loci: Loci, rank: int) -> Crossings:
    """All crossings of the traced loci, each polished by a Newton iteration that stays in its interval."""
    a, b = loci.value[:-1], loci.value[1:]
    same = (loci.which[1:] == loci.which[:-1])[:, None]
    circle = same & ((np.abs(a) >= 1) != (np.abs(b) >= 1))
    rise = a.imag - b.imag
    with np.errstate(all="ignore"):
        where = a.real + (b.real - a.real) * np.where(rise == 0, 0.5, a.imag / rise)
    # far out on the axis a long chord may miss the side: both ends left is enough, polishing decides
    axis = same & ((a.imag >= 0) != (b.imag >= 0)) & (where < 0) & (np.maximum(np.abs(a), np.abs(b)) > 1e-9)
    i = np.concatenate((np.nonzero(circle)[0], np.nonzero(axis)[0]))
    j = np.concatenate((np.nonzero(circle)[1], np.nonzero(axis)[1]))
    unit = np.arange(len(i)) < circle.sum()
    if not len(i):
        return Crossings(np.empty(0, np.int64), np.empty(0), np.empty(0, complex), unit)
    omega, value = _polish(pencil, loci, i, j, unit, rank)
    keep = unit | (value.real < 0)
    return Crossings(loci.which[i][keep], omega[keep], value[keep], unit[keep])


def _polish(pencil: Pencil, loci: Loci, i: Ints, j: Ints, unit: NDArray[np.bool_], rank: int) -> tuple[Floats, Complex]:
    which = loci.which[i]
    low, high = loci.omega[i].copy(), loci.omega[i + 1].copy()
    start, stop = loci.value[i, j], loci.value[i + 1, j]
    begin, span = low.copy(), high - low
    side = _height(start, unit) >= 0
    omega = low + span * _secant(_height(start, unit), _height(stop, unit))
    value = np.empty(len(i), complex)
    active = np.arange(len(i))
    last = np.full(len(i), np.inf)
    for _ in range(ROUNDS):
        here = evaluate(pencil, which[active], omega[active], rank)
        part = ((omega - begin) / span)[active]
        guess = start[active] + (stop - start)[active] * part
        pick = np.abs(here.value - guess[:, None]).argmin(axis=1)
        rows = np.arange(len(active))
        value[active] = v = here.value[rows, pick]
        rate = 1j * here.slope[rows, pick]
        height = _height(v, unit[active])
        with np.errstate(all="ignore"):
            slope = np.where(unit[active], (rate / v).real, (rate / v).imag)
            fresh = omega[active] - height / slope
        left = (height >= 0) == side[active]
        low[active] = np.where(left, omega[active], low[active])
        high[active] = np.where(left, high[active], omega[active])
        outside = ~((fresh > low[active]) & (fresh < high[active]))
        step = np.abs(fresh - omega[active])
        done = (np.abs(height) < 4e-16) | (step <= 4e-16 * omega[active])
        done |= high[active] - low[active] <= 4e-16 * omega[active]
        # where the tangent leads far out of a short bracket, two loci were taken for one, and none crosses
        done |= outside & (step > 100 * (high - low)[active]) & ((high - low)[active] < 1e-3 * span[active])
        # Newton's steps square: the one after this is below rounding, and the value follows its tangent
        squares = ~done & ~outside & (step <= 1e-9 * omega[active]) & (step <= 1e-3 * last[active])
        value[active[squares]] += (rate * (fresh - omega[active]))[squares]
        last[active] = np.where(outside, np.inf, step)
        omega[active] = np.where(done, omega[active], np.where(outside, 0.5 * (low[active] + high[active]), fresh))
        done |= squares
        active = active[~done]
        if not len(active):
            break
    return omega, value


def _height(value: Complex, unit: NDArray[np.bool_]) -> Floats:
    """What vanishes at a crossing: the logarithm of the modulus, or the angle to the negative axis."""
    with np.errstate(all="ignore"):
        return np.where(unit, np.log(np.abs(value)), np.angle(-value))


def _secant(a: Floats, b: Floats) -> Floats:
    with np.errstate(all="ignore"):
        part = a / (a - b)
    return np.where((part > 0.02) & (part < 0.98), part, 0.5)
