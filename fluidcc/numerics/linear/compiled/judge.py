"""Everything that is read off the eigenloci of a return ratio. Compiled."""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.framing import outlook
from fluidcc.numerics.linear.compiled.loci import SMALL, WEAK, reach, trace
from fluidcc.numerics.linear.compiled.points import at_point, loop_of, norm
from fluidcc.numerics.linear.compiled.refine import AXIS, CIRCLE, HIGHEST, KINDS, LOWEST, bracketed, refine
from fluidcc.numerics.linear.compiled.singular import BOTH

__all__ = ["MARGINS", "followed", "judge"]

MARGINS = 14  # that are read off, in the order of the fields of `fluidcc.numerics.linear.margins.Margins`
FREQUENCIES = 8  # from this one on they are frequencies
DELAY = 4
ENDLESS = 1e12  # an L(0) as large as this is that of an integrator
STRONGER = 50.0  # times a loop is made stronger where a gain margin is beyond what is followed
STRONGEST = 1e18


@njit(**COUNTED)
def followed(address, whole, cut, real, frame, states, m, first, last, points):  # type: ignore[no-untyped-def]
    """Frequencies and eigenloci there: what these need, and `points` frequencies in equal ratios beside."""
    loop, ahead = loop_of(address, whole, cut, real, m), outlook(frame, states, m, real)
    least = ahead.low if np.isnan(first) else first
    most = reach(loop, ahead.high, 1.0, ahead.most) if np.isnan(last) else last
    if not 0 < least < most:
        return np.array([least, most]), np.empty((0, 0), np.complex128)
    even = least * (most / least) ** (np.arange(1, points - 1) / (points - 1))
    grid = trace(loop, least, most, np.sort(np.concatenate((ahead.swings, even))), 1.0)
    return grid.omega, grid.value


@njit(**COUNTED)
def judge(address, whole, cut, table, frame, states, m, times):  # type: ignore[no-untyped-def]
    """The margins of every system; of the last, all frequencies of a locus of modulus one.

    Parameters
    ----------
    address : int
        That of `fluidcc.numerics.linear.compiled.points.address`.
    whole, cut : array of int, int
        As `fluidcc.numerics.linear.pencil.Pencil.loop` has them.
    table, frame : array (systems, floats), array (systems, rows, columns)
        The floats of each pencil, and that before its sums are named.
    states, m : int
        Numbers of states and of inputs.
    times : array (systems)
        The unit of time of each [s].
    """
    out, every = np.empty((len(table), MARGINS)), np.empty(0)
    for k in range(len(table)):
        loop, ahead = loop_of(address, whole, cut, table[k], m), outlook(frame[k], states, m, table[k])
        rank = loop.basis.shape[1]
        end = reach(loop, ahead.high, 1.0, ahead.most)
        grid = trace(loop, ahead.low, end, ahead.swings, 1.0)
        found = bracketed(grid, KINDS)
        refine(loop, grid, found)
        still, rates, edge = np.zeros(rank, np.complex128), np.zeros(rank, np.complex128), np.empty(4)
        at_point(loop, 0, 0j, BOTH, still, rates, edge)
        size = norm(loop)
        gain = _gains(found, still if size < ENDLESS else still[:0])
        phase = _phases(found)
        if k == len(table) - 1:
            every = found.omega[found.kind == CIRCLE]
        modulus, modulus_at, mt, mt_at = _best(grid, found)
        if np.isfinite(size) and edge[0] < modulus:
            modulus, modulus_at = edge[0], 0.0
        if np.isfinite(size) and edge[2] > mt:
            mt, mt_at = edge[2], 0.0
        if ahead.modulus < modulus:
            modulus, modulus_at = ahead.modulus, np.inf
        factor = 1.0
        while gain[0] * WEAK > factor and end < ahead.far and factor < STRONGEST:
            begin = _weak_from(grid, factor)
            factor *= STRONGER
            end = reach(loop, end, factor, ahead.far)
            grid = trace(loop, begin, end, ahead.swings, factor)
            found = bracketed(grid, AXIS + 1)
            refine(loop, grid, found)
            more = _gains(found, still[:0])
            if more[0] < gain[0]:
                gain = (more[0], more[1], gain[2], gain[3])
        nearest = gain[0] if gain[2] == 0 or gain[0] <= 1 / gain[2] else gain[2]
        ms = 1 / max(modulus, np.finfo(np.float64).tiny)
        best = (
            gain[0], gain[2], nearest, phase[0], phase[2], modulus, ms, mt,
            phase[1], gain[1], gain[3], phase[3], modulus_at, mt_at,
        )  # fmt: skip
        for i in range(len(best)):
            out[k, i] = best[i] / times[k] if i >= FREQUENCIES else best[i]
        out[k, DELAY] *= times[k]
    return out, every / times[len(times) - 1]


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _weak_from(grid, factor):  # type: ignore[no-untyped-def]
    """Where a locus of `factor` times L begins to be too small to be refined; all crossings before are known."""
    for i in range(len(grid.omega)):
        for value in grid.value[i]:
            if not factor * abs(value) > SMALL:
                return grid.omega[max(i - 1, 0)]
    return grid.omega[-1]


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _best(grid, found):  # type: ignore[no-untyped-def]
    """The least and the largest singular value, each with its frequency, on the grid and between its points."""
    least, least_at, most, most_at = np.inf, np.nan, -np.inf, np.nan
    for i in range(len(grid.omega)):  # not so where a pole on the axis leaves no number
        if grid.edge[i, 0] < least:
            least, least_at = grid.edge[i, 0], grid.omega[i]
        if grid.edge[i, 2] > most:
            most, most_at = grid.edge[i, 2], grid.omega[i]
    for k in range(len(found.kind)):
        size = found.value[k, 2].real
        if found.kind[k] == LOWEST and size < least:
            least, least_at = size, found.omega[k]
        if found.kind[k] == HIGHEST and size > most:
            most, most_at = size, found.omega[k]
    return least, least_at, most, most_at


@njit(no_cpython_wrapper=True, **UNCOUNTED)
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


@njit(no_cpython_wrapper=True, **UNCOUNTED)
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
