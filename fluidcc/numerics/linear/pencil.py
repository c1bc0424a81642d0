"""The pencil of a DelayLTI: its determinant, its inverse between the ports, and their derivatives, at many s at once.

With the delays closed, the unknowns are the states x and the channel inputs z, and the pencil is
``P(s) = [[sI - A, -B2 E(s)], [-C2, I - D22 E(s)]]`` with ``E(s) = diag(exp(-s tau))``. Its determinant is the
characteristic function, entire in s; bordered by the ports it gives the response as a Schur complement.

Inside, time is measured in the longest delay and the unknowns are balanced, so that nothing depends on units.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.elimination import plan
from fluidcc.numerics.linear.compiled.framing import framed, tabled
from fluidcc.numerics.linear.compiled.newton import iterate
from fluidcc.numerics.linear.compiled.replay import pack, replay
from fluidcc.numerics.linear.cut import separator
from fluidcc.numerics.linear.pivoting import pivoted
from fluidcc.numerics.linear.scaling import unframed
from fluidcc.numerics.linear.shared import Unlike, with_sums
from fluidcc.numerics.linear.wiring import Blocks, of_one_pattern

__all__ = ["Complex", "Pencil", "Values", "pencils"]

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]

OFF = 0.05
"""Size of the other entries, where those of the diagonal are one, in the matrix by which pivots are first chosen.

So the diagonal, which is s less something or one, gives them, in the order that fills least. That order depends on the
pattern alone: of many systems none has another for what stands beside it, and a pattern seen before costs nothing.
"""

PLANS = 4
"""Orders of the pivots that are tried, each but the first chosen in the middle of where those before it are poor."""

SIMPLE = 24
"""Unknowns up to which no sums are looked for where at most one input has to find its way."""

FEW = 4
"""Fewer poor points of a small pencil are sooner solved with pivoting than a new order is found."""


class Values(NamedTuple):
    """At each s: det P = ``phase exp(log)``, its logarithmic derivative, the response and its derivative."""

    phase: Complex
    log: Floats
    slope: Complex
    response: Complex
    response_slope: Complex


class Pencil:
    """The pencil of a block, or of many blocks of one pattern, ready to be evaluated.

    Parameters
    ----------
    block : Blocks
        Its arrays may have a leading axis: then it is a stack of systems with the same numbers of ports and channels.

    Attributes
    ----------
    times : array of float
        The unit of time inside [s], one a system: the longest delay, or the time scale of A without delays.
    frame : array of float
        The bordered pencils in that unit, with balanced unknowns and before sums are named: see `framed`.
    table : array of float
        Of each system the floats of the pencil: constants, leads and lagged parts of the entries, and the delays.

    Raises
    ------
    Unlike
        The systems of a stack have different sums: `pencils` makes one pencil for each kind.
    """

    def __init__(self, block: Blocks) -> None:
        if block.A.ndim == 2:
            block = Blocks(*(part[None] for part in block))
        m, _ = self.ports = block.ports
        self.n = n = block.A.shape[-1]
        lags = block.delays.shape[-1]
        self.times = np.zeros(len(block.A))
        self.frame, self._scale = framed(*block, self.times)
        full = self.frame
        if m > 1 or n + lags > SIMPLE:
            full = with_sums(full, slice(n, n + lags))
        self.size = size = full.shape[-1] - m
        pattern, self.table = tabled(full, n, lags, size, block.delays, self.times)
        self._key = pattern.tobytes(), pattern.shape, n, n + lags, size
        self._shape = known = _pattern(*self._key)
        self._plans = [known.whole]
        self._few = FEW if size < 40 else 1

    @property
    def whole(self) -> NDArray[np.int64]:
        """The first order of the pivots, as `fluidcc.numerics.linear.replay` takes it."""
        return self._plans[0]

    @property
    def loop(self) -> tuple[NDArray[np.int64], int]:
        """The order of the pivots that leaves a return ratio in factors, and how many unknowns stand between these.

        The Schur complement then has these unknowns before the ports: with its parts K, V, U the return ratio is
        ``-U K^-1 V``. Without such unknowns, 0, it is the return ratio itself.
        """
        return _factored(*self._key)

    @property
    def time(self) -> float:
        """The unit of time [s] of the first system."""
        return float(self.times[0])

    @cached_property
    def scaled(self) -> Blocks:
        """The blocks in that unit, with balanced unknowns and with the leading axis; ports as they were."""
        return unframed(self.frame, self.n, self.ports, self.table[:, 3 * len(self._shape.row) :])

    @property
    def block(self) -> Blocks:
        """The first system, scaled."""
        return Blocks(*(part[0] for part in self.scaled))

    @property
    def state_scale(self) -> Floats:
        """A state is its balanced value times this, shape (systems, n)."""
        return np.asarray(self._scale[:, : self.n])

    def values(
        self, s: Complex, slope: bool = True, scaled: bool = False, which: NDArray[np.int64] | None = None
    ) -> Values:
        """Everything at the points `s` [1/s]; in units of 1/`time`, as all that comes back, with `scaled`.

        Parameters
        ----------
        s : array of complex
            One dimension.
        slope : bool
            Without it the derivatives are not computed and mean nothing.
        which : array of int, optional
            The number of the system, for each point; the first by default.
        """
        which = np.zeros(len(s), np.int64) if which is None else which
        time = self.times[which]
        at: Complex = np.ascontiguousarray(s, complex) if scaled else np.asarray(s, complex) * time.astype(complex)
        phase, log, rate, block, block_rate, poor = self._replayed(0, at, which, slope)
        left = np.flatnonzero(poor & (at != 0))  # at the origin the pencil may be singular
        for number in range(1, PLANS):  # far from the sample, other pivots may do
            if len(left) < self._few:
                break
            if number == len(self._plans):
                middle = left[np.argsort(np.abs(at[left]))[len(left) // 2]]
                self._order(complex(at[middle]), int(which[middle]))
            *again, poor = self._replayed(number, at[left], which[left], slope)
            for kept, fresh in zip((phase, log, rate, block, block_rate), again, strict=True):
                kept[left[~poor]] = fresh[~poor]
            left = left[poor]
        left = np.concatenate((left, np.flatnonzero(at == 0)))
        for system in np.unique(which[left]):
            i = left[which[left] == system]
            phase[i], log[i], rate[i], block[i], block_rate[i] = pivoted(
                *self._dense(at[i], int(system)), self.size, slope
            )
        if not scaled:
            log = log - self.n * np.log(time)
            with np.errstate(invalid="ignore"):  # infinite at a root
                rate, block_rate = rate * time, block_rate * time[:, None, None]
        return Values(phase, log, rate, block, block_rate)

    def newton(self, s: Complex, known: Complex, rounds: int) -> tuple[Complex, Floats, NDArray[np.bool_]]:
        """Newton's iteration on the first system in its unit of time; flags where it must be done with pivoting."""
        end, size, poor = iterate(s, self.whole, self.table[0], known, rounds)
        left = np.flatnonzero(poor)
        for number in range(1, PLANS):
            if len(left) < self._few:
                break
            if number == len(self._plans):
                self._order(complex(s[left[np.argsort(np.abs(s[left]))[len(left) // 2]]]), 0)
            end[left], size[left], poor[left] = iterate(s[left], self._plans[number], self.table[0], known, rounds)
            left = left[poor[left]]
        return end, size, poor

    def _order(self, sample: complex, system: int) -> None:
        """One more order of the pivots: that of a system at a sample frequency, in scaled time."""
        known = self._shape
        made = plan(self._dense(np.array([sample]), system)[0][0], known.pattern, self.size)
        self._plans.append(pack(made, known.row, known.column, known.lag_of))

    def _replayed(self, number: int, s: Complex, which: NDArray[np.int64], slope: bool) -> tuple[Any, ...]:
        """Everything at the points `s` in scaled time by one order of the pivots, and where that is poor."""
        phase, log, rate, block, block_rate, poor = replay(s, which, self._plans[number], self.table)
        m, p = self.ports
        block = block.reshape(len(s), p, m)
        return phase, log, rate, block, block_rate.reshape(len(s), p, m), poor

    def _dense(self, s: Complex, system: int) -> tuple[Complex, Complex]:
        """The bordered pencil and its derivative as full matrices, in scaled time."""
        m, p = self.ports
        shape = (len(s), self.size + p, self.size + m)
        value, slope = np.zeros(shape, complex), np.zeros(shape, complex)
        row, column = self._shape.row, self._shape.column
        constant, lead, lagged = self.table[system, : 3 * len(row)].reshape(3, len(row))
        lag = np.append(self.table[system, 3 * len(row) :], 0.0)[self._shape.lag_of]
        late = lagged * np.exp(-s[:, None] * lag)
        value[:, row, column] = constant + lead * s[:, None] + late
        slope[:, row, column] = lead - lag * late
        return value, slope


def pencils(block: Blocks) -> Iterator[tuple[NDArray[np.int64], Pencil]]:
    """The pencils of a stack, one for systems whose entries and sums are at the same places, and which these are.

    So how a system is evaluated does not depend on those beside it.
    """
    for rows in of_one_pattern(block):
        waiting = [rows]
        while waiting:
            rows = waiting.pop(0)
            try:
                yield rows, Pencil(block if len(rows) == len(block.A) else Blocks(*(part[rows] for part in block)))
            except Unlike as kinds:
                waiting = [rows[part] for part in kinds.parts] + waiting


class _Pattern(NamedTuple):
    """Where a bordered pencil has entries, which of them lag by which delay, and the order of their elimination."""

    pattern: NDArray[np.bool_]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    lag_of: NDArray[np.int64]
    whole: NDArray[np.int64]


@lru_cache(maxsize=128)
def _pattern(bits: bytes, shape: tuple[int, int], n: int, channels: int, size: int) -> _Pattern:
    pattern = np.frombuffer(bits, bool).reshape(shape)
    row, column = np.nonzero(pattern)
    lag_of = np.where((column >= n) & (column < channels), column - n, -1)
    return _Pattern(
        pattern, row, column, lag_of, pack(plan(_sample(pattern, size), pattern, size), row, column, lag_of)
    )


@lru_cache(maxsize=128)
def _factored(bits: bytes, shape: tuple[int, int], n: int, channels: int, size: int) -> tuple[NDArray[np.int64], int]:
    """See `Pencil.loop`."""
    known = _pattern(bits, shape, n, channels, size)
    cut = separator(known.pattern, size)
    if not cut:
        return known.whole, 0
    first = [i for i in range(size) if i not in set(cut)]
    rows, columns = ([*first, *cut, *range(size, end)] for end in shape)
    pattern, inner = known.pattern[np.ix_(rows, columns)], len(first)
    made = plan(_sample(pattern, inner), pattern, inner)
    return pack(made, np.argsort(rows)[known.row], np.argsort(columns)[known.column], known.lag_of), len(cut)


def _sample(pattern: NDArray[np.bool_], size: int) -> Complex:
    """What a pencil of that pattern may look like."""
    sample = np.where(pattern, OFF * np.random.default_rng(2).uniform(0.5, 1.5, pattern.shape), 0).astype(complex)
    sample[range(size), range(size)] = 1.0
    return sample
