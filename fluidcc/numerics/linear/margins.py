"""Margins of a loop with return ratio L and negative feedback, from its eigenloci and singular values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.errors import InvalidInput, UnknownName
from fluidcc.numerics.linear.crossings import Crossings, find
from fluidcc.numerics.linear.loci import Floats, eigen, rank_of, trace
from fluidcc.numerics.linear.peaks import peaks
from fluidcc.numerics.linear.pencil import Complex, Pencil
from fluidcc.numerics.linear.wiring import Blocks

if TYPE_CHECKING:
    from fluidcc.numerics.linear.dlti import DelayLTI

__all__ = ["EigenLoci", "Margins", "eigenloci", "margins", "margins_of_stack"]


TOGETHER = 256
"""Systems of a stack that are traced at once: so many keep the memory small."""


@dataclass(frozen=True)
class Margins:
    """How far a loop is from its stability boundary; infinite where it never reaches it.

    All are distances to the nearest boundary, whichever side of it the loop is on: of a stable loop they are what it
    tolerates. A common factor in all channels meets the boundary where an eigenlocus passes through -1 / factor, so
    gain, phase and delay are read off the eigenloci, never off the determinant.

    Attributes
    ----------
    gain : float
        The least factor above one that brings a root to the axis.
    gain_down : float
        The largest factor below one that does; zero if none does.
    gain_nearest : float
        Of these two the one nearer to one as a ratio, which is what python-control calls the gain margin.
    phase : float
        The least rotation of all channels that does [degrees], with python-control's sign: positive for a lag.
    delay : float
        The least extra delay in all channels that does [s].
    modulus : float
        The least singular value of I + L over all frequencies; of a scalar loop the least ``abs(1 + L)``.
    ms, mt : float
        Peaks of the largest singular value of the sensitivity ``(I + L)^-1`` and of ``L (I + L)^-1``.
    crossover : float
        Frequency at which the phase margin is read [rad/s]; NaN if no eigenlocus has modulus one.
    phase_crossover, phase_crossover_down, delay_crossover, modulus_frequency, mt_frequency : float
        Frequencies of `gain`, `gain_down`, `delay`, `modulus` (and `ms`), `mt` [rad/s].
    crossovers : array of float
        Every frequency at which an eigenlocus has modulus one [rad/s]; empty for a stack.
    """

    gain: Any
    gain_down: Any
    gain_nearest: Any
    phase: Any
    delay: Any
    modulus: Any
    ms: Any
    mt: Any
    crossover: Any
    phase_crossover: Any
    phase_crossover_down: Any
    delay_crossover: Any
    modulus_frequency: Any
    mt_frequency: Any
    crossovers: Floats


@dataclass(frozen=True)
class EigenLoci:
    """Eigenvalues of the return ratio, each row one continuous locus: `omega` [rad/s], `value` (rank, len(omega))."""

    omega: Floats
    value: Complex


def margins(loop: DelayLTI, channel: str | int | None = None) -> Margins:
    """Margins of the open loop `loop` under negative unity feedback.

    Parameters
    ----------
    loop : DelayLTI
        The return ratio: as many outputs as inputs.
    channel : str or int, optional
        A named input: margins of its own scalar loop, with all others closed. All channels together without it.

    Raises
    ------
    InvalidInput
        The loop is not square, or closing the other channels is an algebraic loop.
    UnknownName
        There is no such channel.
    """
    if loop.n_inputs != loop.n_outputs or not loop.n_inputs:
        raise InvalidInput(f"a return ratio is square, here {loop.n_outputs} outputs and {loop.n_inputs} inputs")
    if channel is not None:
        loop = one_channel(loop, channel)
    found, crossings = _margins(loop.pencil)
    every = np.sort(crossings.omega[crossings.unit]) / loop.pencil.time
    return Margins(**{name: float(value[0]) for name, value in found.items()}, crossovers=every)


def margins_of_stack(A: Floats, B: Floats, C: Floats, D: Floats, delays: Floats) -> Margins:
    """Margins of many loops of one pattern at once: arrays as of `DelayLTI` with a leading axis, one value a loop.

    Delays must be positive. Every attribute of the result is an array, `crossovers` is empty.

    Raises
    ------
    InvalidInput
        Shapes that do not fit, or a delay that is not positive.
    """
    block = Blocks(*(np.ascontiguousarray(part, float) for part in (A, B, C, D, delays)))
    m, p = block.ports
    if block.A.ndim != 3 or not len(block.A) or m != p or m < 1 or len({len(part) for part in block}) > 1:
        raise InvalidInput(
            f"a stack of square loops needs arrays with one leading axis; got shapes {[part.shape for part in block]}"
        )
    if not (block.delays > 0).all() or not all(np.isfinite(part).all() for part in block):
        raise InvalidInput("every delay of a stack must be positive and every number finite")
    parts = []
    for first in range(0, len(block.A), TOGETHER):
        part = Blocks(*(array[first : first + TOGETHER] for array in block))
        parts.append(_margins(Pencil(part))[0])
    return Margins(
        **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, crossovers=np.empty(0)
    )


def eigenloci(loop: DelayLTI, low: float | None = None, high: float | None = None) -> EigenLoci:
    """The eigenloci of a square return ratio on an adaptive grid, from `low` to `high` [rad/s].

    Eigenvalues that are zero at every frequency, because the rank of the return ratio is deficient, are left out.
    """
    pencil = loop.pencil
    least, most = _range(pencil)
    if low is not None:
        least = np.array([low * pencil.time])
    if high is not None:
        most = np.array([high * pencil.time])
    loci = trace(pencil, least, most, rank_of(pencil))
    return EigenLoci(loci.omega / pencil.time, loci.value.T.copy())


def one_channel(loop: DelayLTI, channel: str | int) -> DelayLTI:
    """The scalar loop of one channel with all others closed."""
    if isinstance(channel, str):
        if channel not in loop.inputs:
            raise UnknownName(f"there is no channel {channel!r}; there are {', '.join(loop.inputs)}")
        channel = loop.inputs.index(channel)
    if not 0 <= channel < loop.n_inputs:
        raise UnknownName(f"there is no channel {channel}; they are numbered from 0 to {loop.n_inputs - 1}")
    back = -np.eye(loop.n_inputs)
    back[channel, channel] = 0.0
    return loop.connect(back).select(outputs=channel, inputs=channel)


def _range(pencil: Pencil) -> tuple[Floats, Floats]:
    """Where the loci have to be followed, in each system's unit of time."""
    A = np.abs(pencil.scaled.A)
    if 0 < pencil.n <= 24:
        poles = np.abs(np.linalg.eigvals(pencil.scaled.A))
    elif pencil.n:
        poles = np.abs(np.diagonal(A, axis1=1, axis2=2))
    else:
        poles = np.ones((len(A), 1))
    slow = np.where(poles > 1e-9 * poles.max(axis=1, keepdims=True), poles, np.inf).min(axis=1)
    low = 3e-3 * np.minimum(1.0, np.where(np.isfinite(slow), slow, 1.0))
    high = np.maximum(12.0, 2 * poles.max(axis=1))
    systems = np.arange(len(low))
    for _ in range(12):  # until the loop is weak
        size = np.abs(pencil.values(1j * high, False, True, systems).response).sum(axis=2).max(axis=1)
        if not (size > 0.1).any():
            break
        high = np.where(size > 0.1, 3 * high, high)
    return low, high


def _margins(pencil: Pencil) -> tuple[dict[str, Floats], Crossings]:
    systems, unit = len(pencil.times), pencil.times
    rank = rank_of(pencil)
    loci = trace(pencil, *_range(pencil), rank)
    cross = find(pencil, loci, rank)
    out: dict[str, Floats] = {}
    still = pencil.values(np.zeros(systems, complex), False, True, np.arange(systems)).response
    at_rest, its_system = _static(still, rank)
    factor = np.concatenate((-1 / cross.value[~cross.unit].real, at_rest))
    which = np.concatenate((cross.which[~cross.unit], its_system))
    omega = np.concatenate((cross.omega[~cross.unit], np.zeros(len(at_rest))))
    up, down = factor >= 1, factor <= 1
    out["gain"], out["phase_crossover"] = _least(factor[up], which[up], omega[up], systems, np.inf)
    inverse, out["phase_crossover_down"] = _least(1 / factor[down], which[down], omega[down], systems, np.inf)
    out["gain_down"] = 1 / inverse
    out["gain_nearest"] = np.where(out["gain"] <= inverse, out["gain"], out["gain_down"])
    out["gain_nearest"] = np.where(np.isinf(out["gain"]) & np.isinf(inverse), np.inf, out["gain_nearest"])
    lag = np.angle(-cross.value[cross.unit])  # in (-pi, pi]: the lag that brings the locus to -1
    which, omega = cross.which[cross.unit], cross.omega[cross.unit]
    size, at = _least(np.abs(lag), which, omega, systems, np.inf)
    sign = np.ones(systems)
    for system, w in zip(which[lag < 0], omega[lag < 0], strict=True):
        sign[system] = -1.0 if w == at[system] else sign[system]
    out["phase"], out["crossover"] = np.degrees(size) * sign, at
    wait = np.where(lag < -1e-12, lag + 2 * np.pi, np.maximum(lag, 0.0)) / omega
    out["delay"], out["delay_crossover"] = _least(wait, which, omega, systems, np.inf)
    out["modulus"], out["modulus_frequency"], out["mt"], out["mt_frequency"] = peaks(pencil, loci, still, rank)
    out["ms"] = 1 / np.maximum(out["modulus"], np.finfo(float).tiny)
    out["delay"] = out["delay"] * unit
    for name in out:
        if name == "crossover" or name.endswith(("_crossover", "_crossover_down", "_frequency")):
            out[name] = out[name] / unit
    return out, cross


def _static(ratio: Complex, rank: int) -> tuple[Floats, NDArray[np.int64]]:
    """Factors at which a root passes through the origin: real eigenvalues of a finite L(0) that are negative."""
    systems = np.arange(len(ratio))
    finite = np.isfinite(ratio).all(axis=(1, 2)) & (np.abs(ratio).max(axis=(1, 2)) < 1e12)
    if not finite.any():
        return np.empty(0), np.empty(0, np.int64)
    value = eigen(ratio[finite], np.zeros_like(ratio[finite]), rank)[0]
    size = np.abs(value).max(axis=1, keepdims=True)
    real = (value.real < -1e-12 * size) & (np.abs(value.imag) < 1e-9 * size) & (size > 0)
    return -1 / value[real].real, np.broadcast_to(systems[finite][:, None], value.shape)[real]


def _least(size: Floats, which: NDArray[np.int64], omega: Floats, systems: int, none: float) -> tuple[Floats, Floats]:
    """The least value of each system and where it is; `none` and NaN where there is none."""
    best, at = np.full(systems, none), np.full(systems, np.nan)
    order = np.lexsort((size, which))
    first = order[np.r_[True, np.diff(which[order]) > 0]] if len(order) else order
    best[which[first]], at[which[first]] = size[first], omega[first]
    return best, at
