"""Margins of a loop with return ratio L and negative feedback, from its eigenloci and singular
values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.tables import InTable
from fluidcc.numerics.linear.compiled.judge import MARGINS, followed, judge
from fluidcc.numerics.linear.pencil import Complex, Floats, Pencil, pencils
from fluidcc.numerics.linear.wiring import Blocks


@dataclass(frozen=True)
class Margins(InTable):
    """How far a loop is from its stability boundary; infinite where it never reaches it.

    All are distances to the nearest boundary, whichever side of it the loop is on: of a stable loop
    they are what it tolerates. A common factor in all channels meets the boundary where an
    eigenlocus passes through -1 / factor, so gain, phase and delay are read off the eigenloci,
    never off the determinant.

    Attributes
    ----------
    gain : float
        The least factor above one that brings a root to the axis. It is looked for up to a hundred
        times the fastest pole and twelve over the shortest delay; a factor above ten that is met
        only beyond that is inf. So is one above 1e12: where the parts of a loop cancel, rounding
        leaves loci of that size.
    gain_down : float
        The largest factor below one that does; zero if none does.
    gain_nearest : float
        Of these two the one nearer to one as a ratio, which is what python-control calls the gain
        margin.
    phase : float
        The least rotation of all channels that does [degrees], with python-control's sign: positive
        for a lag.
    delay : float
        The least extra delay in all channels that does [s].
    modulus : float
        The least singular value of I + L over all frequencies; of a scalar loop the least ``abs(1 +
        L)``.
    ms, mt : float
        Peaks of the largest singular value of the sensitivity ``(I + L)^-1`` and of ``L (I +
        L)^-1``.
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

    _shown = (
        "gain", "gain_down", "phase [deg]", "delay [s]", "modulus", "ms", "mt", "crossover [rad/s]",
        "phase_crossover [rad/s]", "delay_crossover [rad/s]", "modulus_frequency [rad/s]",
    )  # fmt: skip


@dataclass(frozen=True)
class EigenLoci(InTable):
    """Eigenvalues of the return ratio, each row one continuous locus: `omega` [rad/s], `value`
    (rank, len(omega)).
    """

    omega: Floats
    value: Complex

    _shown = ("omega [rad/s]", "value")


def margins(loop: Any, channel: str | int | None = None) -> Margins:
    """Margins of the open loop `loop` under negative unity feedback.

    Parameters
    ----------
    loop : DelayLTI
        The return ratio: as many outputs as inputs.
    channel : str or int, optional
        A named input: margins of its own scalar loop, with all others closed. All channels together
        without it.

    Raises
    ------
    InvalidInput
        The loop is not square, or closing the other channels is an algebraic loop.
    UnknownName
        There is no such channel.
    """
    if loop.n_inputs != loop.n_outputs or not loop.n_inputs:
        raise InvalidInput(
            f"a return ratio is square, here {loop.n_outputs} outputs and {loop.n_inputs} inputs"
        )
    if channel is not None:
        loop = one_channel(loop, channel)
    found, every = _judged(loop.pencil)
    return Margins(*(*found[0].tolist(), np.sort(every)))


def margins_of_stack(A: Floats, B: Floats, C: Floats, D: Floats, delays: Floats) -> Margins:
    """Margins of many loops of one pattern at once: arrays as of `DelayLTI` with a leading axis,
    one value a loop.

    Delays must be positive. Every attribute of the result is an array, `crossovers` is empty. What
    is found of a loop does not depend on those beside it.

    Raises
    ------
    InvalidInput
        Shapes that do not fit, or a delay that is not positive.
    """
    block = Blocks(*(np.ascontiguousarray(part, float) for part in (A, B, C, D, delays)))
    m, p = block.ports
    if (
        block.A.ndim != 3
        or not len(block.A)
        or m != p
        or m < 1
        or len({len(part) for part in block}) > 1
    ):
        raise InvalidInput(
            f"a stack of square loops needs arrays with one leading axis; got shapes "
            f"{[part.shape for part in block]}"
        )
    if not (block.delays > 0).all() or not all(np.isfinite(part).all() for part in block):
        raise InvalidInput("every delay of a stack must be positive and every number finite")
    found = np.empty((MARGINS, len(block.A)))
    for rows, pencil in pencils(block):
        found[:, rows] = _judged(pencil)[0].T
    return Margins(*(*found, np.empty(0)))


def _judged(pencil: Pencil) -> tuple[Floats, Floats]:
    """The margins of each system in the order of the fields of `Margins`, and the crossovers of
    the last one.
    """
    parts = pencil.table, pencil.frame, pencil.n, pencil.ports[0], pencil.times
    found: tuple[Floats, Floats] = judge(*pencil.loop, *parts)
    return found


def eigenloci(
    loop: Any, low: float | None = None, high: float | None = None, points: int = 0
) -> EigenLoci:
    """The eigenloci of a square return ratio on an adaptive grid, from `low` to `high` [rad/s].

    With `points` there are so many frequencies in equal ratios beside those that the grid needs.
    Eigenvalues that are zero at every frequency, because the rank of the return ratio is deficient,
    are left out.
    """
    pencil = loop.pencil
    ends = [np.nan if end is None else end * pencil.time for end in (low, high)]
    parts = *pencil.loop, pencil.table[0], pencil.frame[0], pencil.n, pencil.ports[0]
    omega, value = followed(*parts, *ends, points)
    omega = omega / pencil.time
    if not len(value):
        raise InvalidInput(
            f"frequencies from {omega[0]:g} to {omega[1]:g} rad/s are no range; give others"
        )
    return EigenLoci(omega, value.T.copy())


def one_channel(loop: Any, channel: str | int) -> Any:
    """The scalar loop of one channel with all others closed."""
    if isinstance(channel, str):
        if channel not in loop.inputs:
            raise UnknownName(
                f"there is no channel {channel!r}; there are {', '.join(loop.inputs)}"
            )
        channel = int(loop.inputs.index(channel))
    if not 0 <= channel < loop.n_inputs:
        raise UnknownName(
            f"there is no channel {channel}; they are numbered from 0 to {loop.n_inputs - 1}"
        )
    back = -np.eye(loop.n_inputs)
    back[channel, channel] = 0.0
    return loop.connect(back).select(outputs=channel, inputs=channel)
