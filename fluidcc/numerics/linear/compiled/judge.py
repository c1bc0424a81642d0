"""Everything that is read off the eigenloci of a return ratio. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from fluidcc.numerics.linear.compiled.crossings import find
from fluidcc.numerics.linear.compiled.loci import loop_of, point, span, trace
from fluidcc.numerics.linear.compiled.peaks import peak
from fluidcc.numerics.linear.compiled.small import finite

__all__ = ["NAMES", "followed", "judge"]

NAMES = ("gain", "gain_down", "gain_nearest", "phase", "delay", "modulus", "ms", "mt", "crossover", "phase_crossover",
         "phase_crossover_down", "delay_crossover", "modulus_frequency", "mt_frequency")  # fmt: skip


@njit(cache=True, error_model="numpy", nogil=True)
def followed(whole, real, m, low, high, first, last):  # type: ignore[no-untyped-def]
    loop = loop_of(whole, real, m)
    least, most = span(loop, low, high)
    grid = trace(loop, least if np.isnan(first) else first, most if np.isnan(last) else last)
    return grid.omega, grid.value


@njit(cache=True, error_model="numpy", nogil=True)
def judge(whole, table, m, low, high, end):  # type: ignore[no-untyped-def]
    """What `NAMES` says of every system in its unit of time; of the last, all frequencies of a locus of modulus one."""
    out, every = np.empty((len(table), 14)), np.empty(0)
    for k in range(len(table)):
        loop = loop_of(whole, table[k], m)
        grid = trace(loop, *span(loop, low[k], high[k]))
        cross = find(loop, grid)
        rank = loop.basis.shape[1]
        still, rates, edge = np.zeros(rank, np.complex128), np.zeros(rank, np.complex128), np.empty(4)
        point(loop, 0.0, still, rates, edge)
        at_rest = finite(loop.ratio)
        gain = _gains(cross, still if at_rest and np.abs(loop.ratio).max() < 1e12 else still[:0])
        phase = _phases(cross)
        modulus = modulus_at = mt = mt_at = 0.0
        for largest in (False, True):
            height, there = peak(loop, grid, largest)
            if largest:
                mt, mt_at = height, there
            else:
                modulus, modulus_at = height, there
        if at_rest and edge[0] < modulus:
            modulus, modulus_at = edge[0], 0.0
        if at_rest and edge[2] > mt:
            mt, mt_at = edge[2], 0.0
        if end[k] < modulus:
            modulus, modulus_at = end[k], np.inf
        nearest = gain[0] if gain[0] <= 1 / gain[2] else gain[2]
        ms = 1 / max(modulus, np.finfo(np.float64).tiny)
        best = (
            gain[0], gain[2], nearest, phase[0], phase[2], modulus, ms, mt,
            phase[1], gain[1], gain[3], phase[3], modulus_at, mt_at,
        )  # fmt: skip
        for i in range(len(best)):
            out[k, i] = best[i]
        every = cross.omega[cross.unit]
    return out, every


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _gains(cross, still):  # type: ignore[no-untyped-def]
    """The least factor above one and its frequency, the largest below one and its; `still` are the loci at rest."""
    up, up_at, down, down_at = np.inf, np.nan, 0.0, np.nan
    size = 0.0
    for value in still:
        size = max(size, abs(value))
    for k in range(len(cross.omega) + len(still)):
        if k < len(cross.omega):
            if cross.unit[k]:
                continue
            factor, omega = -1 / cross.value[k].real, cross.omega[k]
        else:  # a real eigenvalue of L(0) that is negative: a root passes through the origin
            value = still[k - len(cross.omega)]
            if not (value.real < -1e-12 * size and abs(value.imag) < 1e-9 * size):
                continue
            factor, omega = -1 / value.real, 0.0
        if 1 <= factor < up:
            up, up_at = factor, omega
        if down < factor <= 1:
            down, down_at = factor, omega
    return up, up_at, down, down_at


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _phases(cross):  # type: ignore[no-untyped-def]
    """The least lag or lead [degrees] and its frequency, and the least extra delay and its frequency."""
    phase, phase_at, delay, delay_at = np.inf, np.nan, np.inf, np.nan
    for k in range(len(cross.omega)):
        if not cross.unit[k]:
            continue
        omega = cross.omega[k]
        lag = np.angle(-cross.value[k])  # in (-pi, pi]: the lag that brings the locus to -1
        if abs(lag) < abs(phase):
            phase, phase_at = lag, omega
        wait = (lag + 2 * np.pi if lag < -1e-12 else max(lag, 0.0)) / omega
        if wait < delay:
            delay, delay_at = wait, omega
    return np.degrees(phase), phase_at, delay, delay_at
