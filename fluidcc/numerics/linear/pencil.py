"""The pencil of a DelayLTI: its determinant, its inverse between the ports, and their derivatives,
at many s at once.

With the delays closed, the unknowns are the states x and the channel inputs z, and the pencil is
``P(s) = [[sI - A, -B2 E(s)], [-C2, I - D22 E(s)]]`` with ``E(s) = diag(exp(-s tau))``. Its
determinant is the characteristic function, entire in s; bordered by the ports it gives the response
as a Schur complement.

Inside, time is measured in the longest delay and the unknowns are balanced, so that nothing depends
on units.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.elimination import framed, pivoted, plan, replay
from fluidcc.numerics.linear.wiring import Blocks, alike, of_one_pattern

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]


def unframed(frame: Floats, n: int, ports: tuple[int, int], delays: Floats) -> Blocks:
    """The blocks of bordered pencils, as `framed` makes
    them.

    Parameters
    ----------
    frame : array (systems, rows, columns)
    n : int
        States.
    ports : tuple of int
        Inputs and outputs.
    delays : array (systems, channels)
        In the units of these.
    """
    m, p = ports
    inner = frame.shape[2] - m
    order = (
        [*range(inner, inner + m), *range(n, inner)],
        [*range(inner, inner + p), *range(n, inner)],
    )
    sign = np.where(np.arange(inner + p) < inner, -1.0, 1.0)[:, None]
    whole = frame * sign + 0.0  # no negative zeros
    parts = (whole[:, :n, :n], whole[:, :n][:, :, order[0]], whole[:, order[1], :n],
             whole[:, order[1]][:, :, order[0]], delays)  # fmt: skip
    return Blocks(*map(np.ascontiguousarray, parts))


def in_own_units(block: Blocks) -> tuple[Blocks, float, Floats]:
    """A block in its own unit of time [s], with even states, and the factors of these.

    All are powers of two, so that its numbers are the given ones exactly.
    """
    stack, time = Blocks(*(np.array(part)[None] for part in block)), np.zeros(1)
    framed(*stack, time)
    time = np.exp2(np.round(np.log2(time)))
    frame, scale = framed(*stack, time)
    n = len(block.A)
    parts = unframed(frame, n, block.ports, stack.delays / time)
    return Blocks(*(part[0] for part in parts)), float(time[0]), scale[0, :n]


# --- the fewest unknowns through which every path from inputs to outputs leads --------------------


def separator(pattern: NDArray[np.bool_], size: int) -> list[int]:
    """The unknowns of a cut that is smaller than the numbers of inputs and outputs; none if there
    is no such cut.

    Parameters
    ----------
    pattern : array of bool
        A bordered pencil: `size` unknowns and equations, each unknown with its own equation, then
        outputs and inputs.
    size : int
    """
    rows, columns = pattern.shape
    most = min(rows, columns) - size
    if most < 2 or pattern[size:, size:].any():
        return []
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    # each unknown is an arc of capacity one, from its entrance 2 i to its exit 2 i + 1
    start, end = 2 * size, 2 * size + 1
    arcs = np.zeros((2 * size + 2, 2 * size + 2), np.int32)
    arcs[1:start:2, 0:start:2] = size * pattern[:size, :size].T
    arcs[range(1, start, 2), range(0, start, 2)] = 0
    arcs[range(0, start, 2), range(1, start, 2)] = 1
    arcs[start, 0:start:2] = size * pattern[:size, size:].any(axis=1)
    arcs[1:start:2, end] = size * pattern[size:, :size].any(axis=0)
    capacity = csr_array(arcs)
    flow = maximum_flow(capacity, start, end)
    if flow.flow_value >= most:
        return []
    left = capacity - flow.flow
    left.eliminate_zeros()
    reached = np.zeros(2 * size + 2, bool)
    reached[breadth_first_order(left, start, return_predecessors=False)] = True
    return np.flatnonzero(reached[0:start:2] & ~reached[1:start:2]).tolist()


# --- Sums that several rows of a pencil take alike become unknowns of their own ------------------


Rows = NDArray[np.int64]

LEAST = 2
"""Terms of a sum from which on it is named."""

EQUAL = 1e-14
"""Relative difference up to which two ratios are one; what is left of it is dropped, as
rounding.
"""


class Unlike(Exception):
    """Systems of a stack do not all have the same sums; `parts` are those that do."""

    def __init__(self, parts: list[Rows]) -> None:
        super().__init__("the systems of a stack have different sums")
        self.parts = parts


class _Shared(NamedTuple):
    """Rows that take `factor` times the entries of row `first` at some columns."""

    rows: Rows
    columns: Rows
    first: int
    factor: Floats  # (systems, rows)


def with_sums(full: Floats, late: slice) -> Floats:
    """Bordered pencils with their sums as unknowns more, after the channels.

    Parameters
    ----------
    full : array (systems, rows, columns)
        States, channels, then ports, without s and the ones of the diagonal.
    late : slice
        The columns of the channels. Sums are looked for in these, in those of the states, and in
        those of the inputs, as rows that share arrivals have something of their own elsewhere; then
        in the sums found.

    Raises
    ------
    Unlike
        See there.
    """
    inner, height, width = late.stop, *full.shape[1:]
    wide = full
    for first, last in ((inner, width), (late.start, inner), (0, late.start)):
        wide = _named(wide, first, last)
    if wide.shape[2] > width + 1:
        wide = _named(wide, width, wide.shape[2])
    k = wide.shape[2] - width
    if not k:
        return full
    place = np.array([*range(inner), *range(width, width + k), *range(inner, width)])
    rows = np.array([*range(inner), *range(height, height + k), *range(inner, height)])
    entries = (rows[:, None] * wide.shape[2] + place).ravel()
    return wide.reshape(len(wide), -1).take(entries, axis=1).reshape(wide.shape)


def _named(full: Floats, start: int, stop: int) -> Floats:
    """With the sums in some columns as rows and columns more, behind all others."""
    inside = full[:, :, start:stop]
    found = []
    for rows in _of_one_pattern((inside != 0).any(axis=0)):
        while len(rows) > 1:
            rows, one = _group(inside, rows)
            if one is not None:
                found.append(one._replace(columns=start + one.columns))
    if not found:
        return full
    systems, height, width = full.shape
    out = np.zeros((systems, height + len(found), width + len(found)))
    out[:, :height, :width] = full
    for i, one in enumerate(found):
        out[:, height + i, one.columns] = -full[
            :, one.first, one.columns
        ]  # the sum less its terms is zero
        out[:, one.rows[:, None], one.columns] = 0.0
        out[:, one.rows, width + i] = one.factor
    return out


def _of_one_pattern(pattern: NDArray[np.bool_]) -> list[Rows]:
    """Rows with entries at the same places."""
    some = np.flatnonzero(pattern.sum(axis=1) >= LEAST)
    return [some[rows] for rows in alike(pattern[some]) if len(rows) > 1]


def _group(matrix: Floats, rows: Rows) -> tuple[Rows, _Shared | None]:
    """The rows that are mostly multiples of the first, and those that are not."""
    support = np.flatnonzero(matrix[0, rows[0]])
    ratio = matrix[:, rows[:, None], support] / matrix[:, rows[:1, None], support]
    factor = np.sort(ratio, axis=2)[:, :, len(support) // 2]
    same = np.abs(ratio - factor[:, :, None]) <= EQUAL * np.abs(factor[:, :, None])
    if len(same) > 1 and (same != same[:1]).any():
        raise Unlike(alike(same.reshape(len(same), -1)))
    member = same[0].sum(axis=1) > len(support) // 2
    kept = same[0, member].all(axis=0)
    if member.sum() < 2 or kept.sum() < LEAST:
        return rows[~member], None
    return rows[~member], _Shared(rows[member], support[kept], int(rows[0]), factor[:, member])


# --- the pencil of a DelayLTI: determinant, inverse between the ports, derivatives ----------


OFF = 0.05
"""Size of the other entries, where those of the diagonal are one, in the matrix by which pivots are
first chosen.

So the diagonal, which is s less something or one, gives them, in the order that fills least. That
order depends on the pattern alone: of many systems none has another for what stands beside it, and
a pattern seen before costs nothing.
"""

SIMPLE = 24
"""Unknowns up to which no sums are looked for where at most one input has to find its way."""


class Values(NamedTuple):
    """At each s: det P = ``phase exp(log)``, its logarithmic derivative, the response and its
    derivative.
    """

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
        Its arrays may have a leading axis: then it is a stack of systems with the same numbers of
        ports and channels.

    Attributes
    ----------
    times : array of float
        The unit of time inside [s], one a system: the longest delay, or the time scale of A without
        delays.
    frame : array of float
        The bordered pencils in that unit, with balanced unknowns and before sums are named: see
        `framed`.
    table : array of float
        Of each system the floats of the pencil: constants, leads and lagged parts of the entries,
        and the delays.
    whole : array of int
        The order of the pivots, as `replay` takes it.

    Raises
    ------
    Unlike
        The systems of a stack have different sums: `pencils` makes one pencil for each kind.
    """

    def __init__(self, block: Blocks) -> None:
        if block.A.ndim == 2:
            block = Blocks(*(part[None] for part in block))
        # For arrays that are read-only, or in another order, all is compiled once more.
        block = Blocks(*(np.require(part, float, ["C", "W"]) for part in block))
        m, _ = self.ports = block.ports
        self.n = n = block.A.shape[-1]
        lags = block.delays.shape[-1]
        self.times = np.zeros(len(block.A))
        self.frame, self._scale = framed(*block, self.times)
        full = self.frame
        if m > 1 or n + lags > SIMPLE:
            full = with_sums(full, slice(n, n + lags))
        self.size = size = full.shape[-1] - m
        pattern = (full != 0).any(axis=0)
        pattern[range(size), range(size)] = True
        self._key = pattern.tobytes(), pattern.shape, n, n + lags, size
        self._shape = known = _pattern(*self._key)
        values, late = full[:, known.row, known.column], known.lag_of >= 0
        constants, lagged = np.where(late, 0.0, values) + known.one, np.where(late, values, 0.0)
        leads, delays = (
            np.broadcast_to(known.lead, values.shape),
            block.delays / self.times[:, None],
        )
        rows = np.concatenate([constants, leads, lagged, delays], axis=1)
        self.table = np.ascontiguousarray(rows)
        self.whole = known.whole

    @property
    def loop(self) -> tuple[NDArray[np.int64], int]:
        """The order of the pivots that leaves a return ratio in factors, and how many unknowns
        stand between these.

        The Schur complement then has these unknowns before the ports: with its parts K, V, U the
        return ratio is ``-U K^-1 V``. Without such unknowns, 0, it is the return ratio itself.
        """
        return _factored(*self._key)

    @property
    def time(self) -> float:
        """The unit of time [s] of the first system."""
        return float(self.times[0])

    @cached_property
    def scaled(self) -> Blocks:
        """The blocks in that unit, with balanced unknowns and with the leading axis; ports as
        they were.
        """
        return unframed(self.frame, self.n, self.ports, self.table[:, 3 * len(self._shape.row) :])

    @property
    def block(self) -> Blocks:
        """The first system, scaled."""
        return Blocks(*(part[0] for part in self.scaled))

    @property
    def state_scale(self) -> Floats:
        """A state is its balanced value times this, shape (systems, n)."""
        return np.asarray(self._scale[:, : self.n])

    def values(self, s: Complex, scaled: bool = False) -> Values:
        """Everything of the first system at the points `s` [1/s], an array of one dimension; in
        units of 1/`time`, as all that comes back, with `scaled`.
        """
        at: Complex = np.ascontiguousarray(s, complex) * complex(1.0 if scaled else self.time)
        phase, log, rate, *parts, poor = replay(at, self.whole, self.table[0])
        block, block_rate = (part.reshape(len(at), *self.ports[::-1]) for part in parts)
        for i in np.flatnonzero(poor | (at == 0)):  # at the origin the pencil may be singular
            found = pivoted(at[i], self.whole, self.table[0], block[i], block_rate[i])
            phase[i], log[i], rate[i], _ = found
        if not scaled:
            log = log - self.n * np.log(self.time)
            with np.errstate(invalid="ignore"):  # infinite at a root
                rate, block_rate = rate * self.time, block_rate * self.time
        return Values(phase, log, rate, block, block_rate)


def pencils(block: Blocks) -> Iterator[tuple[NDArray[np.int64], Pencil]]:
    """The pencils of a stack, one for systems whose entries and sums are at the same places, and
    which these are.

    So how a system is evaluated does not depend on those beside it.
    """
    waiting = of_one_pattern(block)
    while waiting:
        rows = waiting.pop(0)
        part = block if len(rows) == len(block.A) else Blocks(*(a[rows] for a in block))
        try:
            pencil = Pencil(part)
        except Unlike as kinds:
            waiting = [rows[kind] for kind in kinds.parts] + waiting
        else:
            yield rows, pencil


class _Pattern(NamedTuple):
    """Where a bordered pencil has entries, which of them lag by which delay, which are an unknown
    itself (`one`) or its derivative (`lead`), and the order of their elimination.
    """

    pattern: NDArray[np.bool_]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    lag_of: NDArray[np.int64]
    one: NDArray[np.bool_]
    lead: NDArray[np.float64]
    whole: NDArray[np.int64]


@lru_cache(maxsize=128)
def _pattern(bits: bytes, shape: tuple[int, int], n: int, channels: int, size: int) -> _Pattern:
    pattern = np.frombuffer(bits, bool).reshape(shape)
    row, column = np.nonzero(pattern)
    lag_of = np.where((column >= n) & (column < channels), column - n, -1)
    one, lead = (row == column) & (n <= row) & (row < size), (row == column) & (row < n)
    whole = plan(_sample(pattern, size), pattern, size, row, column, lag_of)
    return _Pattern(pattern, row, column, lag_of, one, lead.astype(float), whole)


@lru_cache(maxsize=128)
def _factored(
    bits: bytes, shape: tuple[int, int], n: int, channels: int, size: int
) -> tuple[NDArray[np.int64], int]:
    """See `Pencil.loop`."""
    known = _pattern(bits, shape, n, channels, size)
    cut = separator(known.pattern, size)
    if not cut:
        return known.whole, 0
    first = [i for i in range(size) if i not in set(cut)]
    rows, columns = ([*first, *cut, *range(size, end)] for end in shape)
    pattern, inner = known.pattern[np.ix_(rows, columns)], len(first)
    row, column = np.argsort(rows)[known.row], np.argsort(columns)[known.column]
    return plan(_sample(pattern, inner), pattern, inner, row, column, known.lag_of), len(cut)


def _sample(pattern: NDArray[np.bool_], size: int) -> Complex:
    """What a pencil of that pattern may look like."""
    sample = np.where(
        pattern, OFF * np.random.default_rng(2).uniform(0.5, 1.5, pattern.shape), 0
    ).astype(complex)
    sample[range(size), range(size)] = 1.0
    return sample
