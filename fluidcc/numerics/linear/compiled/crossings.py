"""Where eigenloci cross the unit circle and the negative real axis, polished to rounding. Compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fluidcc.numerics.linear.compiled.loci import at, eigen

__all__ = ["Crossings", "find"]

ROUNDS = 50


class Crossings(NamedTuple):
    """Frequencies in the system's unit of time, and the eigenvalue there.

    `unit` tells those of the unit circle from those of the negative real axis.
    """

    omega: Any
    value: Any
    unit: Any


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def find(loop, grid):  # type: ignore[no-untyped-def]
    """All crossings of the traced loci, each polished by a Newton iteration that stays in its interval."""
    points, rank = grid.value.shape
    most = 2 * points * rank
    omega, value, unit = np.empty(most), np.empty(most, np.complex128), np.zeros(most, np.bool_)
    count = 0
    for circle in (True, False):
        for i in range(points - 1):
            for j in range(rank):
                a, b = grid.value[i, j], grid.value[i + 1, j]
                if circle:
                    crosses = (abs(a) >= 1) != (abs(b) >= 1)
                else:
                    rise = a.imag - b.imag
                    where = a.real + (b.real - a.real) * (0.5 if rise == 0 else a.imag / rise)
                    crosses = (a.imag >= 0) != (b.imag >= 0) and where < 0 and max(abs(a), abs(b)) > 1e-9
                if not crosses:
                    continue
                w, v = _polish(loop, grid.omega[i], grid.omega[i + 1], a, b, circle)
                if circle or v.real < 0:
                    omega[count], value[count], unit[count] = w, v, circle
                    count += 1
    return Crossings(omega[:count], value[:count], unit[:count])


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _polish(loop, low, high, start, stop, circle):  # type: ignore[no-untyped-def]
    rank = loop.basis.shape[1]
    values, rates = np.empty(rank, np.complex128), np.empty(rank, np.complex128)
    begin, width = low, high - low
    first, end = _height(start, circle), _height(stop, circle)
    side = first >= 0
    part = first / (first - end)
    omega = low + width * (part if 0.02 < part < 0.98 else 0.5)
    value, last = start, np.inf
    for _ in range(ROUNDS):
        at(loop, 1j * omega)
        eigen(loop, values, rates)
        guess = start + (stop - start) * ((omega - begin) / width)
        pick = np.argmin(np.abs(values - guess))
        value, rate = values[pick], 1j * rates[pick]
        height = _height(value, circle)
        turn = rate / value if value != 0 else 0j
        pace = turn.real if circle else turn.imag
        fresh = omega - height / pace if pace != 0 else np.inf
        if (height >= 0) == side:
            low = omega
        else:
            high = omega
        outside = not (low < fresh < high)
        step = abs(fresh - omega)
        if abs(height) < 4e-16 or step <= 4e-16 * omega or high - low <= 4e-16 * omega:
            break
        # where the tangent leads far out of a short bracket, two loci were taken for one, and none crosses
        if outside and step > 100 * (high - low) and high - low < 1e-3 * width:
            break
        if not outside and step <= 1e-9 * omega and step <= 1e-3 * last:
            # Newton's steps square: the one after this is below rounding, and the value follows its tangent
            return fresh, value + rate * (fresh - omega)
        last = np.inf if outside else step
        omega = 0.5 * (low + high) if outside else fresh
    return omega, value


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _height(value, circle):  # type: ignore[no-untyped-def]
    """What vanishes at a crossing: the logarithm of the modulus, or the angle to the negative axis."""
    if circle:
        return np.log(abs(value))
    return np.arctan2(-value.imag, -value.real)
