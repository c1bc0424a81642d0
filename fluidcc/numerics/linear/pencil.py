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
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.elimination import evaluated, evened, parted, planned
from fluidcc.numerics.linear.compiled.zeros import bound
from fluidcc.numerics.linear.wiring import Entries, alike, block_of, spectral_radius

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]
Index = NDArray[np.int64]

POLES = 24
"""States up to which the poles of A tell where the loci have to be followed."""
SURE = 1e-15
"""Relative error of entries, and of what is computed of them, to which roots are resolved."""
EXACT = 64
"""States up to which the unit of time of a system without delays is the spectral radius itself."""


def in_own_units(of: Entries, powers: bool = False) -> tuple[Entries, Floats, Floats]:
    """Systems in their own units of time [s], with balanced unknowns, and the factors of these.

    The unit is the longest delay, or without delays one over the fastest that a root can be; of
    `powers` that of two next to it, so that the numbers are the given ones exactly. The factors are
    powers of two.
    """
    times = of.delays.max(axis=1, initial=0.0)
    if not times.all():
        times = np.where(times > 0, times, _units(of))
    times = np.exp2(np.round(np.log2(times))) if powers else times
    value = np.where(of.row < of.n, times[:, None], 1.0) * of.value
    inner = of.n + of.k
    scale = evened(of.row, of.column, value, inner)
    wide = np.concatenate((scale, np.ones((len(scale), 1))), axis=1)
    factor = wide[:, np.minimum(of.column, inner)] / wide[:, np.minimum(of.row, inner)]
    return of._replace(value=value * factor, delays=of.delays / times[:, None]), times, scale


def _units(of: Entries) -> Floats:
    """One over the fastest that states, or integrators alone with their ports closed, can be."""
    found = np.ones(len(of.value))
    for i in range(len(found)):
        one = of._replace(value=np.abs(of.value[i : i + 1]), delays=of.delays[i : i + 1])
        fastest = _fastest(one.without_ports())
        if fastest == 0 and of.m == of.p:
            fastest = _fastest(one.closed().without_ports())
        found[i] = 1 / fastest if 0 < fastest < np.inf else 1.0
    return found


def _fastest(of: Entries) -> float:
    """The spectral radius of positive systems without delays, which no unit changes."""
    if of.n > EXACT:
        return float(bound(of.row, of.column, of.value[0], of.n, of.delays[0], 0.0))
    A, B, C, D, _ = block_of(of)
    with suppress(np.linalg.LinAlgError):
        A = A + B @ np.linalg.solve(np.eye(len(D)) - D, C)
    return spectral_radius(A)


class PencilValues(NamedTuple):
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
    of : Entries
        One system or many.

    Attributes
    ----------
    times : array of float
        The unit of time inside [s], one a system.
    own : Entries
        The systems in these units, with balanced unknowns.
    table : array of float
        Of each system the floats of the pencil: constants, leads and lagged parts of the entries,
        and the delays.
    """

    def __init__(self, of: Entries) -> None:
        self.ports, self.n, self.size = (of.m, of.p), of.n, of.n + of.k
        self.own, self.times, self.state_scale = in_own_units(of)
        own, size = self.own, self.size
        diagonal = np.arange(size)
        missing = np.setdiff1d(diagonal, own.row[own.row == own.column])
        self._row, self._column = (
            np.concatenate((part, missing)) for part in (own.row, own.column)
        )
        late = (self._column >= own.n) & (self._column < size)
        value = np.where(self._row < size, -1.0, 1.0) * np.concatenate(
            (own.value, np.zeros((len(own.value), len(missing)))), axis=1
        )
        self._lag_of = np.where(late, self._column - own.n, -1)
        self._diagonal = (self._row == self._column) & (self._row < size)
        lead = np.where(self._diagonal & (self._row < own.n), 1.0, 0.0)
        parts = (
            np.where(late, 0.0, value) + np.where(self._diagonal & late, 1.0, 0.0),
            np.broadcast_to(lead, value.shape), np.where(late, value, 0.0), own.delays,
        )  # fmt: skip
        self.table = np.ascontiguousarray(np.concatenate(parts, axis=1))

    @cached_property
    def _pattern(self) -> _Pattern:
        places = (self._row.astype(np.int64), self._column.astype(np.int64), self._lag_of)
        return _pattern(*(part.tobytes() for part in places), self.size, *self.ports)

    @property
    def whole(self) -> Index:
        """The plan of its elimination."""
        return self._pattern.whole

    @property
    def loop(self) -> Index:
        """The plan that leaves a return ratio in factors, if it has any."""
        return self._pattern.loop

    @property
    def time(self) -> float:
        """The unit of time [s] of the first system."""
        return float(self.times[0])

    @cached_property
    def outlook(self) -> tuple[Complex, bool]:
        """The poles of A of each system, of a large one its diagonal, and whether no input comes to
        an output without passing a state.
        """
        own = self.own
        states = (own.row < own.n) & (own.column < own.n)
        single = bool((own.row == own.column)[states].all())
        A = np.zeros((len(own.value), own.n, own.n) if own.n <= POLES and not single else 0)
        into, out = own.column >= self.size, own.row >= self.size
        proper = not (into & out).any()
        proper &= not ((into & (own.row >= own.n)).any() and (out & (own.column >= own.n)).any())
        if A.ndim == 3:
            A[:, own.row[states], own.column[states]] = own.value[:, states]
            return np.linalg.eigvals(A).astype(complex), proper
        poles = np.zeros((len(own.value), own.n), complex)
        states &= own.row == own.column
        poles[:, own.row[states]] = own.value[:, states]
        return poles, proper

    def radius(self, left: float) -> float:
        """No root right of `left`, in the unit of time, has a larger modulus; infinite where this
        does not show one.
        """
        own = self.own
        return float(bound(own.row, own.column, own.value[0], own.n, own.delays[0], left))

    def _terms(self, s: Complex) -> Complex:
        """Constants, leads and lagged parts of all entries at points in the pencil's unit: shape
        (3, points, entries).
        """
        constant, lead, late, lags = np.split(self.table[0], np.arange(1, 4) * len(self._row))
        lag = np.exp(-s[:, None] * np.append(lags, 0.0))[:, self._lag_of]
        return np.stack((constant + 0 * lag, lead * s[:, None], late * lag))

    def matrix(self, s: Complex) -> Complex:
        """The pencil of the first system at points in its unit of time, bordered by the ports."""
        m, p = self.ports
        whole = np.zeros((len(s), self.size + p, self.size + m), complex)
        whole[:, self._row, self._column] = self._terms(s).sum(axis=0)
        return whole

    def rounding(self, s: Complex) -> Floats:
        """By how much of itself rounding of the entries may change the determinant, at points in
        the pencil's unit.
        """
        inner = (self._row < self.size) & (self._column < self.size)
        inverse = np.abs(np.linalg.inv(self.matrix(s)[:, : self.size, : self.size]))
        parts = np.abs(self._terms(s)).sum(axis=0)[:, inner]
        of = inverse[:, self._column[inner], self._row[inner]]
        return SURE * np.asarray((of * parts).sum(axis=1))

    def values(self, s: Complex, scaled: bool = False) -> PencilValues:
        """Everything of the first system at the points `s` [1/s], an array of one dimension; in
        units of 1/`time`, as all that comes back, with `scaled`.
        """
        at: Complex = np.ascontiguousarray(s, complex) * complex(1.0 if scaled else self.time)
        found = PencilValues(*evaluated(at, self.whole, self.table[0]))
        if scaled:
            return found
        with np.errstate(invalid="ignore"):  # infinite at a root
            return found._replace(
                log=found.log - self.n * np.log(self.time), slope=found.slope * self.time,
                response_slope=found.response_slope * self.time,
            )  # fmt: skip


def pencils(of: Entries) -> Iterator[tuple[Index, Pencil]]:
    """The pencils of a stack, one for systems whose entries are at the same places, and which these
    are.

    So how a system is evaluated does not depend on those beside it.
    """
    for rows in alike(of.value != 0):
        kept = of.value[rows[0]] != 0
        yield rows, Pencil(of._replace(
            row=of.row[kept], column=of.column[kept], value=of.value[rows][:, kept],
            delays=of.delays[rows],
        ))  # fmt: skip


class _Pattern:
    """The plans for pencils of one pattern."""

    def __init__(
        self, row: Index, column: Index, lag_of: Index, size: int, ports: tuple[int, int]
    ) -> None:
        self.places, self.ports = (row, column, lag_of), ports
        self.label = parted(row, column, size)

    @cached_property
    def whole(self) -> Index:
        return planned(*self.places, self.ports, self.label, np.empty(0, np.int64))

    @cached_property
    def loop(self) -> Index:
        row, column, _ = self.places
        (m, _), size, label = self.ports, len(self.label), self.label
        if m < 2:
            return self.whole
        # hubs into which inputs come, by themselves or through a part; no part may have both ports
        part = np.where(row < size, label[np.minimum(row, size - 1)], -1)
        of_column = np.where(column < size, label[np.minimum(column, size - 1)], -1)
        into, out = column >= size, row >= size
        begun, ended = (
            np.unique(part[into & (part >= 0)]),
            np.unique(of_column[out & (of_column >= 0)]),
        )
        hub = (row < size) & (part < 0)
        cut = np.unique(row[hub & (into | np.isin(of_column, begun))])
        if len(cut) >= m or not len(cut) or (into & out).any() or np.isin(begun, ended).any():
            return self.whole
        return planned(*self.places, self.ports, label, cut)


@lru_cache(maxsize=128)
def _pattern(row: bytes, column: bytes, lag_of: bytes, size: int, m: int, p: int) -> _Pattern:
    of_row, of_column, of_lag = (np.frombuffer(part, np.int64) for part in (row, column, lag_of))
    return _Pattern(of_row, of_column, of_lag, size, (m, p))
