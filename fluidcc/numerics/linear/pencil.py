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

from collections import deque
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.elimination import pack, plan, replay
from fluidcc.numerics.linear.compiled.framing import framed, tabled
from fluidcc.numerics.linear.compiled.zeros import iterate
from fluidcc.numerics.linear.wiring import Blocks, alike, of_one_pattern

__all__ = [
    "Complex", "Pencil", "Unlike", "Values", "pencils", "pivoted", "separator", "unframed",
    "with_sums",
]  # fmt: skip


Floats = NDArray[np.float64]


def unframed(frame: Floats, n: int, ports: tuple[int, int], delays: Floats) -> Blocks:
    """The blocks of bordered pencils, as `fluidcc.numerics.linear.compiled.framing.framed` makes
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


# --- the fewest unknowns through which every path from the inputs of a pencil to its --------------


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
    # each unknown is an arc of capacity one, from its entrance 2 i to its exit 2 i + 1
    after: list[dict[int, int]] = [{} for _ in range(2 * size + 2)]
    start, end = 2 * size, 2 * size + 1

    def join(a: int, b: int, capacity: int) -> None:
        after[a][b] = capacity
        after[b].setdefault(a, 0)

    for i in range(size):
        join(2 * i, 2 * i + 1, 1)
        if pattern[i, size:].any():
            join(start, 2 * i, size)
        if pattern[size:, i].any():
            join(2 * i + 1, end, size)
    for i, j in zip(*np.nonzero(pattern[:size, :size]), strict=True):
        if i != j:
            join(2 * int(j) + 1, 2 * int(i), size)
    for _ in range(most):
        reached = _reached(after, start)
        if end not in reached:
            return [i for i in range(size) if 2 * i in reached and 2 * i + 1 not in reached]
        b = end
        while b != start:
            a = reached[b]
            after[a][b] -= 1
            after[b][a] += 1
            b = a
    return []


def _reached(after: list[dict[int, int]], start: int) -> dict[int, int]:
    """Where arcs with capacity left lead, each place with the one before it."""
    before, waiting = {start: start}, deque([start])
    while waiting:
        a = waiting.popleft()
        for b, capacity in after[a].items():
            if capacity and b not in before:
                before[b] = a
                waiting.append(b)
    return before


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
    known: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(pattern.sum(axis=1) >= LEAST).tolist():
        known.setdefault(pattern[i].tobytes(), []).append(i)
    return [np.array(rows) for rows in known.values() if len(rows) > 1]


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


# --- A bordered pencil at a few points as full matrices -------------------------------------------


Complex = NDArray[np.complex128]

SPARSE = 200
"""Unknowns from which on the zeros of a pencil are worth leaving out."""


def pivoted(
    value: Complex, rate: Complex, k: int, slope: bool
) -> tuple[Complex, Floats, Complex, Complex, Complex]:
    """Phase and logarithm of the determinant, its slope, the Schur complement and its slope, at
    each point.

    Parameters
    ----------
    value, rate : array of complex (points, rows, columns)
        Bordered pencils and their derivatives.
    k : int
        Unknowns, in the first rows and columns.
    slope : bool
        Without it the slopes are not computed and mean nothing.

    Notes
    -----
    Where the pencil is singular the complement and the slopes are infinite. Rows are made even
    first: far to the left those of lagged terms are huge, and as pivots they would leave nothing of
    the others.
    """
    top = np.abs(value[:, :k, :k]).max(axis=2, initial=0.0)
    scale = np.exp2(-np.round(np.log2(np.where(top > 0, top, 1.0))))
    rows = np.concatenate((scale, np.ones((len(value), value.shape[1] - k))), axis=1)[:, :, None]
    value, rate = value * rows, rate * rows
    inside, corner = (
        (slice(None), slice(k), slice(k)),
        (slice(None), slice(k, None), slice(k, None)),
    )
    right, below = value[:, :k, k:], value[:, k:, :k]
    eliminated = _sparsely if k > SPARSE else _densely
    phase, log, total, across, back = eliminated(
        value[inside], rate[inside] if slope else None, right, below
    )
    log = log - np.log(scale).sum(axis=1)
    block = value[corner] - below @ across
    block_rate = np.zeros_like(block)
    if slope:
        block_rate = rate[corner] - rate[:, k:, :k] @ across
        block_rate += back @ (rate[inside] @ across - rate[:, :k, k:])
    singular = phase == 0
    for array in (block, total, block_rate):
        array[singular] = complex(np.inf, np.inf) if array.ndim > 1 else complex(np.inf)
    return phase, log, total, block, block_rate


def _densely(
    inner: Complex, rate: Complex | None, right: Complex, below: Complex
) -> tuple[Complex, Floats, Complex, Complex, Complex]:
    """Phase and logarithm of the determinants, their slope, ``inner^-1 right`` and ``below
    inner^-1``.
    """
    phase, log = np.linalg.slogdet(inner)
    inverse = np.linalg.inv(np.where((phase != 0)[:, None, None], inner, np.eye(inner.shape[1])))
    inverse = inverse.astype(np.complex128, copy=False)
    total = (
        np.zeros(len(inner), complex)
        if rate is None
        else (inverse * rate.transpose(0, 2, 1)).sum(axis=(1, 2))
    )
    return phase, log, total, inverse @ right, below @ inverse


def _sparsely(
    inner: Complex, rate: Complex | None, right: Complex, below: Complex
) -> tuple[Complex, Floats, Complex, Complex, Complex]:
    """The same by sparse factors, which are asked for no more columns of the inverse than the rest
    needs.

    The slope is the trace of inverse times rate, to which only rows of the rate that have entries
    add. What belongs to a singular matrix is zero. Many columns together would be a task for
    threads, which wait for one another.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    phase, log, total = (
        np.zeros(len(inner), complex),
        np.full(len(inner), -np.inf),
        np.zeros(len(inner), complex),
    )
    across, back = np.zeros(right.shape, complex), np.zeros(below.shape, complex)
    for i, matrix in enumerate(inner):
        try:
            factors = splu(csc_array(matrix))
        except RuntimeError:  # it is singular
            continue
        pivots = np.concatenate((factors.U.diagonal(), factors.L.diagonal()))
        phase[i] = _sign(factors.perm_r) * _sign(factors.perm_c) * np.prod(pivots / np.abs(pivots))
        log[i] = np.log(np.abs(pivots)).sum()
        for j, column in enumerate(right[i].T):
            across[i, :, j] = factors.solve(column.astype(complex))
        if rate is None:
            continue
        for j, row in enumerate(below[i]):
            back[i, j] = factors.solve(row.astype(complex), "T")
        for r in np.flatnonzero(rate[i].any(axis=1)).tolist():
            unit = np.zeros(len(matrix), complex)
            unit[r] = 1.0
            total[i] += rate[i, r] @ factors.solve(unit)
    return phase, log, total, across, back


def _sign(order: NDArray[np.int32]) -> int:
    """Of a permutation: its cycles of even length turn it."""
    left, sign = set(range(len(order))), 1
    while left:
        first = at = left.pop()
        while (at := int(order[at])) != first:
            left.remove(at)
            sign = -sign
    return sign


# --- the pencil of a DelayLTI: determinant, inverse between the ports, derivatives ----------


OFF = 0.05
"""Size of the other entries, where those of the diagonal are one, in the matrix by which pivots are
first chosen.

So the diagonal, which is s less something or one, gives them, in the order that fills least. That
order depends on the pattern alone: of many systems none has another for what stands beside it, and
a pattern seen before costs nothing.
"""

PLANS = 4
"""Orders of the pivots that are tried, each but the first chosen in the middle of where those
before it are poor.
"""

SIMPLE = 24
"""Unknowns up to which no sums are looked for where at most one input has to find its way."""

FEW = 4
"""Fewer poor points of a small pencil are sooner solved with pivoting than a new order is found."""


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

    def values(
        self,
        s: Complex,
        slope: bool = True,
        scaled: bool = False,
        which: NDArray[np.int64] | None = None,
    ) -> Values:
        """Everything at the points `s` [1/s]; in units of 1/`time`, as all that comes back, with
        `scaled`.

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
        at: Complex = (
            np.ascontiguousarray(s, complex)
            if scaled
            else np.asarray(s, complex) * time.astype(complex)
        )
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

    def newton(
        self, s: Complex, known: Complex, rounds: int
    ) -> tuple[Complex, Floats, NDArray[np.bool_]]:
        """Newton's iteration on the first system in its unit of time; flags where it must be
        done with pivoting.
        """
        end, size, poor = iterate(s, self.whole, self.table[0], known, rounds)
        left = np.flatnonzero(poor)
        for number in range(1, PLANS):
            if len(left) < self._few:
                break
            if number == len(self._plans):
                self._order(complex(s[left[np.argsort(np.abs(s[left]))[len(left) // 2]]]), 0)
            end[left], size[left], poor[left] = iterate(
                s[left], self._plans[number], self.table[0], known, rounds
            )
            left = left[poor[left]]
        return end, size, poor

    def _order(self, sample: complex, system: int) -> None:
        """One more order of the pivots: that of a system at a sample frequency, in scaled time."""
        known = self._shape
        made = plan(self._dense(np.array([sample]), system)[0][0], known.pattern, self.size)
        self._plans.append(pack(made, known.row, known.column, known.lag_of))

    def _replayed(
        self, number: int, s: Complex, which: NDArray[np.int64], slope: bool
    ) -> tuple[Any, ...]:
        """Everything at the points `s` in scaled time by one order of the pivots, and where that
        is poor.
        """
        phase, log, rate, block, block_rate, poor = replay(
            s, which, self._plans[number], self.table
        )
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
    """The pencils of a stack, one for systems whose entries and sums are at the same places, and
    which these are.

    So how a system is evaluated does not depend on those beside it.
    """
    for rows in of_one_pattern(block):
        waiting = [rows]
        while waiting:
            rows = waiting.pop(0)
            try:
                yield (
                    rows,
                    Pencil(
                        block
                        if len(rows) == len(block.A)
                        else Blocks(*(part[rows] for part in block))
                    ),
                )
            except Unlike as kinds:
                waiting = [rows[part] for part in kinds.parts] + waiting


class _Pattern(NamedTuple):
    """Where a bordered pencil has entries, which of them lag by which delay, and the order of
    their elimination.
    """

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
        pattern,
        row,
        column,
        lag_of,
        pack(plan(_sample(pattern, size), pattern, size), row, column, lag_of),
    )


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
    made = plan(_sample(pattern, inner), pattern, inner)
    return pack(
        made, np.argsort(rows)[known.row], np.argsort(columns)[known.column], known.lag_of
    ), len(cut)


def _sample(pattern: NDArray[np.bool_], size: int) -> Complex:
    """What a pencil of that pattern may look like."""
    sample = np.where(
        pattern, OFF * np.random.default_rng(2).uniform(0.5, 1.5, pattern.shape), 0
    ).astype(complex)
    sample[range(size), range(size)] = 1.0
    return sample
