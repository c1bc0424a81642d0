"""Margins of a loop with return ratio L and negative feedback, from its eigenloci and singular
values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fluidcc.base.errors import InvalidInput
from fluidcc.base.tables import InTable
from fluidcc.numerics.linear.compiled.judge import MARGINS, followed, judge
from fluidcc.numerics.linear.count import counted
from fluidcc.numerics.linear.pencil import Complex, Floats, Pencil, pencils
from fluidcc.numerics.linear.roots import Searches
from fluidcc.numerics.linear.wiring import Entries, indices

READ = (
    "gain_above", "gain_below", "gain_nearest", "phase_nearest", "delay", "modulus", "ms", "mt",
    "phase_lag", "phase_lead", "crossover", "phase_crossover", "phase_crossover_down",
    "delay_crossover", "modulus_frequency", "mt_frequency",
)  # fmt: skip
"""What is read off the eigenloci, in the order of `judge`."""
OF_THE_LOOP = (
    "gain_above", "gain_below", "gain_nearest", "phase_nearest", "crossover", "phase_crossover",
    "phase_crossover_down",
)  # fmt: skip
"""Of these, what an unstable loop has too; all others are NaN then."""


class Closed(NamedTuple):
    """What is known of the closed loop: whether it is stable, how many roots it has right of the
    axis, and whether it has roots at zero that this leaves out.
    """

    stable: Any
    unstable: Any
    drifts: bool = False


@dataclass(frozen=True, repr=False)
class Margins(InTable):
    """What a stable loop tolerates; and, of any loop, the gains at which a root reaches the axis.

    A margin is a number only where the closed loop is stable: without roots right of the imaginary
    axis or on it. Elsewhere `gain`, `gain_down`, `phase`, `phase_lag`, `phase_lead`, `delay`,
    `modulus`, `ms` and `mt` are NaN, with their frequencies. It is infinite where no such change
    makes the loop unstable. Gain, phase and delay are NaN, too, where a locus turns too often to be
    followed: thousands of times before it is weak.

    A common factor in all channels meets the boundary where an eigenlocus passes through -1 /
    factor, so gain, phase and delay are read off the eigenloci, never off the determinant.

    Attributes
    ----------
    stable : bool
        Whether the closed loop is.
    unstable : int
        Its roots right of the axis. With none, a loop that is not stable is marginal: a root is on
        the axis to the resolution of the numbers.
    gain : float
        The least factor above one that makes the loop unstable. It is looked for up to a hundred
        times the fastest pole and twelve over the shortest delay; a factor above ten that is met
        only beyond that is inf. So is one above 1e12: where the parts of a loop cancel, rounding
        leaves loci of that size.
    gain_down : float
        The largest factor below one that does; zero if none does. Where one does, the loop is
        conditionally stable.
    gain_above, gain_below : float
        The factors next to one that bring a root to the axis, also of a loop that is unstable. Past
        one of them it may be stable: see ``(loop * factor).feedback().count_unstable()``.
    gain_nearest : float
        Of these two the one nearer to one as a ratio, which is what python-control calls the gain
        margin.
    phase_nearest : float
        The same of rotations [degrees], also of a loop that is unstable: see `phase`.
    phase : float
        The least rotation of all channels that makes it unstable [degrees], with python-control's
        sign: positive for a lag, negative for a lead.
    phase_lag, phase_lead : float
        The least lag and the least lead that do [degrees].
    delay : float
        The least extra delay in all channels that does [s].
    modulus : float
        The least singular value of I + L over all frequencies; of a scalar loop the least ``abs(1 +
        L)``.
    ms, mt : float
        Peaks of the largest singular value of the sensitivity ``(I + L)^-1`` and of ``L (I +
        L)^-1``. Where the verdict leaves out roots at zero, as of a continuum of equilibria, these
        grow without limit as the frequency falls; so does not count what they are before they first
        turn. NaN where ``L (I + L)^-1`` never does.
    crossover : float
        Frequency at which an eigenlocus has modulus one, the one at which the phase margin is read
        [rad/s]; NaN if none has.
    phase_crossover, phase_crossover_down : float
        Frequencies of `gain_above`, `gain_below` [rad/s].
    delay_crossover, modulus_frequency, mt_frequency : float
        Frequencies of `delay`, `modulus` (and `ms`), `mt` [rad/s].
    crossovers : array of float
        Every frequency at which an eigenlocus has modulus one [rad/s]; empty for a stack.
    """

    stable: Any
    unstable: Any
    gain_above: Any
    gain_below: Any
    gain_nearest: Any
    phase_nearest: Any
    delay: Any
    modulus: Any
    ms: Any
    mt: Any
    phase_lag: Any
    phase_lead: Any
    crossover: Any
    phase_crossover: Any
    phase_crossover_down: Any
    delay_crossover: Any
    modulus_frequency: Any
    mt_frequency: Any
    crossovers: Floats

    _shown = (
        "verdict", "unstable", "gain", "gain_down", "gain_above", "phase_crossover [rad/s]",
        "gain_below", "phase_crossover_down [rad/s]", "phase_lag [deg]", "phase_lead [deg]",
        "crossover [rad/s]", "delay [s]", "delay_crossover [rad/s]", "modulus", "ms", "mt",
        "modulus_frequency [rad/s]",
    )  # fmt: skip

    @property
    def gain(self) -> Any:
        """The least factor above one that makes the loop unstable; see the class."""
        return _where(self.stable, self.gain_above)

    @property
    def gain_down(self) -> Any:
        """The largest factor below one that makes the loop unstable; see the class."""
        return _where(self.stable, self.gain_below)

    @property
    def phase(self) -> Any:
        """The least rotation that makes the loop unstable [degrees]; see the class."""
        return _where(self.stable, self.phase_nearest)

    @property
    def verdict(self) -> str:
        """``"stable"``, ``"conditionally stable"``, ``"marginal"`` or ``"unstable"``."""
        if self.stable:
            return "conditionally stable" if self.gain_below > 0 else "stable"
        return "unstable" if self.unstable else "marginal"

    def __repr__(self) -> str:
        if np.ndim(self.stable):
            return f"Margins({np.sum(self.stable)} of {np.size(self.stable)} loops are stable)"
        if not self.stable:
            roots = f", {self.unstable} roots right of the axis" if self.unstable else ""
            return f"Margins({self.verdict}{roots}: gain_nearest {self.gain_nearest:.5g})"
        return f"Margins({self.verdict}: {', '.join(in_words(self))}, modulus {self.modulus:.5g})"


def in_words(m: Margins) -> list[str]:
    """Gain, phase and delay margins of a stable loop in words; both ways where both count."""
    down = f" (and {m.gain_down:.4g})" if m.gain_down else ""
    lag = f"{m.phase_lag:.4g} deg"
    if m.phase < 0 or m.gain_down:  # a lead may be nearer to the boundary than a lag
        lag += f" of lag and {m.phase_lead:.4g} deg of lead"
    gain, delay = f"gain margin {m.gain:.4g}{down}", f"delay margin {m.delay:.4g} s"
    return [gain, f"phase margin {lag}", delay]


def _where(stable: Any, value: Any) -> Any:
    return np.where(stable, value, np.nan) if np.ndim(stable) else value if stable else np.nan


def _margins(read: Any, every: Floats, closed: Closed) -> Margins:
    """Margins of what was read off, without those that a loop which is not stable has not."""
    found = {
        name: value if name in OF_THE_LOOP else _where(closed.stable, value)
        for name, value in zip(READ, read, strict=True)
    }
    return Margins(closed.stable, closed.unstable, **found, crossovers=every)


@dataclass(frozen=True, repr=False)
class EigenLoci(InTable):
    """Eigenvalues of the return ratio, each row one continuous locus: `omega` [rad/s], `value`
    (rank, len(omega)).
    """

    omega: Floats
    value: Complex

    _shown = ("omega [rad/s]", "value")


def margins(loop: Any, channel: str | int | None = None, verdict: Closed | None = None) -> Margins:
    """Margins of the open loop `loop` under negative unity feedback.

    Parameters
    ----------
    loop : DelayLTI
        The return ratio: as many outputs as inputs.
    channel : str or int, optional
        A named input: margins of its own scalar loop, with all others closed. All channels together
        without it.
    verdict : Closed, optional
        Of the closed loop, where that is known.

    Raises
    ------
    InvalidInput
        The loop is not square, or closing it is an algebraic loop.
    UnknownName
        There is no such channel.
    Unsupported, Undecided
        Whether the closed loop is stable cannot be decided: as `DelayLTI.count_unstable`.
    """
    if loop.n_inputs != loop.n_outputs or not loop.n_inputs:
        raise InvalidInput(
            f"a return ratio is square, here {loop.n_outputs} outputs and {loop.n_inputs} inputs"
        )
    verdict = loop._closed_verdict() if verdict is None else verdict
    if channel is not None:
        loop = one_channel(loop, channel)
    found, every = _judged(loop.pencil, verdict.drifts)
    return _margins(found[0].tolist(), np.sort(every), verdict)


def verdict_of(of: Entries, exact: bool) -> Closed:
    """The verdict on a loop under negative unity feedback."""
    found = counted(Searches(of.closed(), exact))
    return Closed(found.stable, found.unstable)


def margins_of_stack(of: Entries, unstable: Floats) -> Margins:
    """Margins of many loops of one pattern at once, one value a loop.

    `unstable` has the roots of each closed loop right of the axis, on which it has none. Every
    attribute of the result is an array, `crossovers` is empty. What is found of a loop does not
    depend on those beside it.
    """
    found = np.empty((MARGINS, len(of.value)))
    for rows, pencil in pencils(of):
        found[:, rows] = _judged(pencil)[0].T
    return _margins(found, np.empty(0), Closed(unstable == 0, unstable))


def _judged(pencil: Pencil, drifts: bool = False) -> tuple[Floats, Floats]:
    """What is read off each system in the order of `READ`, and the crossovers of the last one."""
    parts = pencil.table, *pencil.outlook, pencil.ports[0], pencil.times, drifts
    found: tuple[Floats, Floats] = judge(pencil.loop, *parts)
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
    poles, proper = pencil.outlook
    parts = pencil.loop, pencil.table[0], poles[0], proper, pencil.ports[0]
    omega, value = followed(*parts, *ends, points)
    omega = omega / pencil.time
    if not len(value):
        raise InvalidInput(
            f"frequencies from {omega[0]:g} to {omega[1]:g} rad/s are no range; give others"
        )
    return EigenLoci(omega, value.T.copy())


def one_channel(loop: Any, channel: str | int) -> Any:
    """The scalar loop of one channel with all others closed."""
    (channel,) = indices([channel], loop.inputs, "channel")
    back = -np.eye(loop.n_inputs)
    back[channel, channel] = 0.0
    return loop.connect(back).select(outputs=channel, inputs=channel)
