"""The pencil of a DelayLTI: its determinant, its inverse between the ports, and their derivatives, at many s at once.

With the delays closed, the unknowns are the states x and the channel inputs z, and the pencil is
``P(s) = [[sI - A, -B2 E(s)], [-C2, I - D22 E(s)]]`` with ``E(s) = diag(exp(-s tau))``. Its determinant is the
characteristic function, entire in s; bordered by the ports it gives the response as a Schur complement.

Inside, time is measured in the longest delay and the unknowns are balanced, so that nothing depends on units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.elimination import pack, plan, replay
from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["Complex", "Pencil", "Values"]

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]

SAMPLE = 0.31 + 1.7j
"""Where, in units of the longest delay, the pivots are chosen."""


class Values(NamedTuple):
    """At each s: det P = ``phase exp(log)``, its logarithmic derivative, the response and its derivative."""

    phase: Complex
    log: Floats
    slope: Complex
    response: Complex
    response_slope: Complex


class Pencil:
    """The pencil of a block, ready to be evaluated.

    Attributes
    ----------
    time : float
        The unit of time inside [s]: the longest delay, or the time scale of A without delays.
    scaled : Blocks
        The block in that unit, with balanced unknowns; ports as they were.
    """

    def __init__(self, block: Blocks) -> None:
        m, p = block.ports
        self.ports = (m, p)
        self.n = n = len(block.A)
        self.size = size = n + len(block.delays)
        self.time = _unit(block)
        self.scaled = scaled = _balanced(block, self.time)
        full = np.zeros(
            (size + p, size + m)
        )  # what is constant where no delay acts, and the factor of the lag where one does
        full[:n, :n], full[:n, n:size], full[:n, size:] = -scaled.A, -scaled.B[:, m:], -scaled.B[:, :m]
        full[n:size, :n], full[n:size, n:size], full[n:size, size:] = (
            -scaled.C[p:],
            -scaled.D[p:, m:],
            -scaled.D[p:, :m],
        )
        full[size:, :n], full[size:, n:size], full[size:, size:] = scaled.C[:p], scaled.D[:p, m:], scaled.D[:p, :m]
        pattern = full != 0
        pattern[range(size), range(size)] = True
        row, column = np.nonzero(pattern)
        late = (column >= n) & (column < size)
        own = row == column
        entry = full[row, column]
        self._row, self._column = row, column
        self._constant = np.where(late, own & (row >= n) & (row < size), entry).astype(float)
        self._lead = (own & (row < n)).astype(float)
        self._lagged = np.where(late, entry, 0.0)
        self._lag_of = np.where(late, column - n, -1)
        self._delays = scaled.delays
        made = plan(self._dense(np.array([SAMPLE]))[0][0], pattern, size)
        slot = made.slot
        self._heads, self._whole = pack(made, slot[row, column], self._lag_of, slot[size:, size:].ravel())
        self._real = np.concatenate((self._constant, self._lead, self._lagged, self._delays))
        self._parity = made.parity

    def values(self, s: Complex, slope: bool = True, scaled: bool = False) -> Values:
        """Everything at the points `s` [1/s]; in units of 1/`time`, as all that comes back, with `scaled`.

        Without `slope` the derivatives are not computed and mean nothing.
        """
        at = np.ascontiguousarray(s, complex) if scaled else np.asarray(s, complex) * self.time
        phase, log, rate, block, block_rate, poor = replay(at, self._heads, self._whole, self._real, slope)
        m, p = self.ports
        phase = phase * self._parity
        block = block.reshape(len(at), p, m)
        block_rate = block_rate.reshape(len(at), p, m) if slope else np.zeros_like(block)
        if poor.any():
            for i in np.flatnonzero(poor):
                phase[i], log[i], rate[i], block[i], block_rate[i] = self._pivoted(at[[i]].astype(complex), slope)
        if not scaled:
            log = log - self.n * np.log(self.time)
            with np.errstate(invalid="ignore"):  # infinite at a root
                rate, block_rate = rate * self.time, block_rate * self.time
        return Values(phase, log, rate, block, block_rate)

    def _dense(self, s: Complex) -> tuple[Complex, Complex]:
        """The bordered pencil and its derivative as full matrices, in scaled time."""
        m, p = self.ports
        shape = (len(s), self.size + p, self.size + m)
        value, slope = np.zeros(shape, complex), np.zeros(shape, complex)
        lag = np.append(self._delays, 0.0)[self._lag_of]
        late = self._lagged * np.exp(-s[:, None] * lag)
        value[:, self._row, self._column] = self._constant + self._lead * s[:, None] + late
        slope[:, self._row, self._column] = self._lead - lag * late
        return value, slope

    def _pivoted(self, s: Complex, slope: bool) -> tuple[complex, float, complex, Complex, Complex]:
        """One point with full pivoting; infinite response and slope where the pencil is singular."""
        value, rate = (part[0] for part in self._dense(s))
        k = self.size
        inner, right, below = value[:k, :k], value[:k, k:], value[k:, :k]
        phase, log = np.linalg.slogdet(inner) if k else (1.0 + 0j, 0.0)
        try:
            inverse = np.linalg.inv(inner)
        except np.linalg.LinAlgError:
            endless = np.full_like(value[k:, k:], complex(np.inf, np.inf))
            return 0j, -np.inf, complex(np.inf), endless, endless
        block = value[k:, k:] - below @ inverse @ right
        if not slope:
            return complex(phase), float(log), 0j, block, np.zeros_like(block)
        turn = inverse @ rate[:k, :k]
        block_rate = (
            rate[k:, k:]
            - rate[k:, :k] @ inverse @ right
            + below @ turn @ inverse @ right
            - below @ inverse @ rate[:k, k:]
        )
        return complex(phase), float(log), complex(np.trace(turn)), block, block_rate


def _unit(block: Blocks) -> float:
    if len(block.delays):
        return float(block.delays.max())
    size = float(np.sqrt(np.abs(block.A @ block.A).sum(axis=1).max())) if len(block.A) else 0.0
    return 1.0 / size if size > 0 else 1.0


def _balanced(block: Blocks, time: float) -> Blocks:
    """Time in units of `time`, and a diagonal similarity on (x, z) that evens out rows and columns."""
    m, p = block.ports
    n = len(block.A)
    A, B = block.A * time, block.B * time
    inner = np.block([[A, B[:, m:]], [block.C[p:], block.D[p:, m:]]])
    scale = np.ones(len(inner))
    for _ in range(8):  # Osborne's iteration, all rows at once, by powers of two
        off = np.abs(inner) * ~np.eye(len(inner), dtype=bool)
        row, column = off.sum(axis=1), off.sum(axis=0)
        good = (row > 0) & (column > 0)
        step = np.ones(len(inner))
        step[good] = np.exp2(np.round(0.25 * np.log2(row[good] / column[good])))
        if (step == 1).all():
            break
        scale *= step
        inner = inner / step[:, None] * step
    x, z = scale[:n], scale[n:]
    return Blocks(
        inner[:n, :n],
        np.hstack((B[:, :m] / x[:, None], inner[:n, n:])),
        np.vstack((block.C[:p] * x, inner[n:, :n])),
        np.block([[block.D[:p, :m], block.D[:p, m:] * z], [block.D[p:, :m] / z[:, None], inner[n:, n:]]]),
        block.delays / time,
    )
