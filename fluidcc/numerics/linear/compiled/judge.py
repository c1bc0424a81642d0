"""Everything that is read off the eigenloci of a return ratio. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from fluidcc.numerics.linear.compiled.factors import eigen, loop_of, ready, strength
from fluidcc.numerics.linear.compiled.loci import span, trace
from fluidcc.numerics.linear.compiled.refine import AXIS, CIRCLE, HIGHEST, LOWEST, bracketed, refine
from fluidcc.numerics.linear.compiled.singular import BOTH, extremes
from fluidcc.numerics.linear.compiled.small import finite

__all__ = ["NAMES", "followed", "judge"]

NAMES = ("gain", "gain_down", "gain_nearest", "phase", "delay", "modulus", "ms", "mt", "crossover", "phase_crossover",
         "phase_crossover_down", "delay_crossover", "modulus_frequency", "mt_frequency")  # fmt: skip
ENDLESS = 1e12  # an L(0) as large as this is that of an integrator


@njit(cache=True, error_model="numpy", nogil=True)
def followed(whole, cut, real, m, low, high, first, last):  # type: ignore[no-untyped-def]
    loop = loop_of(whole, cut, real, m)
    least, most = span(loop, low, high)
    grid = trace(loop, loop.basis.shape[1], least if np.isnan(first) else first, most if np.isnan(last) else last)
    return grid.omega, grid.value


@njit(cache=True, error_model="numpy", nogil=True)
def judge(whole, cut, table, m, low, high, end):  # type: ignore[no-untyped-def]
    """What `NAMES` says of every system in its unit of time; of the last, all frequencies of a locus of modulus one."""
    out, every = np.empty((len(table), 14)), np.empty(0)
    for k in range(len(table)):
        loop = loop_of(whole, cut, table[k], m)
        rank = loop.basis.shape[1]
        grid = trace(loop, rank, *span(loop, low[k], high[k]))
        found = bracketed(grid)
        refine(loop, found)
        still, rates, edge = np.zeros(rank, np.complex128), np.zeros(rank, np.complex128), np.empty(4)
        ready(loop, 0, 0j)
        at_rest = finite(loop.left) and finite(loop.right)
        if at_rest:
            eigen(loop, still, rates)
            extremes(loop, BOTH, still[0], rates[0], edge)
        gain = _gains(found, still if at_rest and strength(loop) < ENDLESS else still[:0])
        phase = _phases(found)
        modulus, modulus_at, mt, mt_at = _best(grid, found)
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
        every = found.omega[found.kind == CIRCLE]
    return out, every


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _best(grid, found):  # type: ignore[no-untyped-def]
    """The least and the largest singular value, each with its frequency, on the grid and between its points."""
    least, least_at, most, most_at = np.inf, np.nan, -np.inf, np.nan
    for i in range(len(grid.omega)):  # not so where a pole on the axis leaves no number
        if grid.edge[i, 0] < least:
            least, least_at = grid.edge[i, 0], grid.omega[i]
        if grid.edge[i, 2] > most:
            most, most_at = grid.edge[i, 2], grid.omega[i]
    for k in range(len(found.kind)):
        size = found.height[k, 2]
        if found.kind[k] == LOWEST and size < least:
            least, least_at = size, found.omega[k]
        if found.kind[k] == HIGHEST and size > most:
            most, most_at = size, found.omega[k]
    return least, least_at, most, most_at


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _gains(found, still):  # type: ignore[no-untyped-def]
    """The least factor above one and its frequency, the largest below one and its; `still` are the loci at rest."""
    up, up_at, down, down_at = np.inf, np.nan, 0.0, np.nan
    size = 0.0
    for value in still:
        size = max(size, abs(value))
    for k in range(len(found.kind) + len(still)):
        if k < len(found.kind):
            value, omega = found.value[k, 2], found.omega[k]
            if found.kind[k] != AXIS or not value.real < 0:
                continue
        else:  # a real eigenvalue of L(0) that is negative: a root passes through the origin
            value, omega = still[k - len(found.kind)], 0.0
            if not (value.real < -1e-12 * size and abs(value.imag) < 1e-9 * size):
                continue
        factor = -1 / value.real
        if 1 <= factor < up:
            up, up_at = factor, omega
        if down < factor <= 1:
            down, down_at = factor, omega
    return up, up_at, down, down_at


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _phases(found):  # type: ignore[no-untyped-def]
    """The least lag or lead [degrees] and its frequency, and the least extra delay and its frequency."""
    phase, phase_at, delay, delay_at = np.inf, np.nan, np.inf, np.nan
    for k in range(len(found.kind)):
        if found.kind[k] != CIRCLE:
            continue
        omega = found.omega[k]
        lag = np.angle(-found.value[k, 2])  # in (-pi, pi]: the lag that brings the locus to -1
        if abs(lag) < abs(phase):
            phase, phase_at = lag, omega
        wait = (lag + 2 * np.pi if lag < -1e-12 else max(lag, 0.0)) / omega
        if wait < delay:
            delay, delay_at = wait, omega
    return np.degrees(phase), phase_at, delay, delay_at
