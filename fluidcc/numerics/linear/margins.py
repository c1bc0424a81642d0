"""Margins of a loop with return ratio L and negative feedback, from its eigenloci and singular values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.errors import InvalidInput, UnknownName
from fluidcc.numerics.linear.compiled.judge import NAMES, followed, judge
from fluidcc.numerics.linear.pencil import Complex, Floats, Pencil, pencils
from fluidcc.numerics.linear.wiring import Blocks

if TYPE_CHECKING:
    from fluidcc.numerics.linear.dlti import DelayLTI

__all__ = ["EigenLoci", "Margins", "eigenloci", "margins", "margins_of_stack"]

FREQUENCIES = 8  # from this one on they are frequencies
POLES = 24  # states up to which the poles of A tell where the loci have to be followed


@dataclass(frozen=True)
class Margins:
    """How far a loop is from its stability boundary; infinite where it never reaches it.

    All are distances to the nearest boundary, whichever side of it the loop is on: of a stable loop they are what it
    tolerates. A common factor in all channels meets the boundary where an eigenlocus passes through -1 / factor, so
    gain, phase and delay are read off the eigenloci, never off the determinant.

    Attributes
    ----------
    gain : float
        The least factor above one that brings a root to the axis. Loci are followed past all poles and one over the
        delays, and on from there until the loop is below a tenth: a factor above ten that is met only beyond is inf.
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
    pencil = loop.pencil
    found, every = judge(*pencil.loop, pencil.table, pencil.ports[0], *_guess(pencil), _end(pencil))
    read = dict(zip(NAMES, _in_seconds(found[0], pencil.time).tolist(), strict=True))
    return Margins(**read, crossovers=np.sort(every) / pencil.time)


def margins_of_stack(A: Floats, B: Floats, C: Floats, D: Floats, delays: Floats) -> Margins:
    """Margins of many loops of one pattern at once: arrays as of `DelayLTI` with a leading axis, one value a loop.

    Delays must be positive. Every attribute of the result is an array, `crossovers` is empty. What is found of a loop
    does not depend on those beside it.

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
    found = np.empty((len(NAMES), len(block.A)))
    for rows, pencil in pencils(block):
        values, _ = judge(*pencil.loop, pencil.table, pencil.ports[0], *_guess(pencil), _end(pencil))
        found[:, rows] = _in_seconds(values.T, pencil.times)
    return Margins(**dict(zip(NAMES, found, strict=True)), crossovers=np.empty(0))


def _in_seconds(found: Floats, unit: Any) -> Floats:
    found[NAMES.index("delay")] *= unit
    found[FREQUENCIES:] /= unit
    return found


def eigenloci(loop: DelayLTI, low: float | None = None, high: float | None = None) -> EigenLoci:
    """The eigenloci of a square return ratio on an adaptive grid, from `low` to `high` [rad/s].

    Eigenvalues that are zero at every frequency, because the rank of the return ratio is deficient, are left out.
    """
    pencil = loop.pencil
    guess = [float(end[0]) for end in _guess(pencil)]
    ends = [np.nan if end is None else end * pencil.time for end in (low, high)]
    first, last = (g if np.isnan(end) else end for g, end in zip(guess, ends, strict=True))
    if not 0 < first < last:
        raise InvalidInput(
            f"frequencies from {first / pencil.time:g} to {last / pencil.time:g} rad/s are no range; give others"
        )
    omega, value = followed(*pencil.loop, pencil.table[0], pencil.ports[0], *guess, *ends)
    return EigenLoci(omega / pencil.time, value.T.copy())


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


def _end(pencil: Pencil) -> Floats:
    """The modulus far out, where the loop is open: one if it is strictly proper; nothing is claimed otherwise."""
    m, p = pencil.ports
    direct = np.abs(pencil.scaled.D)
    through = direct[:, :p, :m].sum(axis=(1, 2))
    through += direct[:, :p, m:].sum(axis=(1, 2)) * direct[:, p:, :m].sum(axis=(1, 2))
    return np.where(through == 0, 1.0, np.inf)


def _guess(pencil: Pencil) -> tuple[Floats, Floats]:
    """Between which frequencies the loci have to be followed at least, by the poles of A, in the unit of time."""
    A = pencil.scaled.A
    if 0 < pencil.n <= POLES:
        poles = np.abs(np.linalg.eigvals(A))
    else:
        poles = np.abs(np.diagonal(A, axis1=1, axis2=2)) if pencil.n else np.ones((len(A), 1))
    most = poles.max(axis=1)
    slow = np.where(poles > 1e-9 * most[:, None], poles, np.inf).min(axis=1)
    return 3e-3 * np.minimum(1.0, slow), np.maximum(12.0, 2 * most)
