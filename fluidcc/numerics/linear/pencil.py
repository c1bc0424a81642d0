"""The pencil of a DelayLTI: its values over many complex frequencies at once.

With the delays closed, the unknowns are the states x and the channel inputs z, and the pencil is
``P(s) = [[sI - A, -B2 E(s)], [-C2, I - D22 E(s)]]`` with ``E(s) = diag(exp(-s tau))``. Its determinant is the
characteristic function, entire in s, and its inverse between the external inputs and outputs is the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fluidcc.numerics.linear.dlti import DelayLTI

__all__ = ["Complex", "determinant", "pencil", "response"]

Complex = NDArray[np.complex128]

CHUNK = 2_000_000  # entries of a stack of matrices that are formed at once


def pencil(system: DelayLTI, s: Complex) -> Complex:
    """P(s), shape (len(s), n + K, n + K)."""
    n, lags = system.n_states, system.delays
    shift = np.exp(-s[:, None] * lags[None, :])
    matrix = np.empty((len(s), n + len(lags), n + len(lags)), complex)
    matrix[:, :n, :n] = -system.A
    matrix[:, range(n), range(n)] += s[:, None]
    matrix[:, :n, n:] = -system.B2 * shift[:, None, :]
    matrix[:, n:, :n] = -system.C2
    matrix[:, n:, n:] = np.eye(len(lags)) - system.D22 * shift[:, None, :]
    return matrix


def determinant(system: DelayLTI, s: Complex) -> Complex:
    """det P(s)."""
    return np.concatenate([np.linalg.det(pencil(system, part)) for part in _parts(system, s)] or [s])


def response(system: DelayLTI, s: Complex) -> Complex:
    """The transfer matrix at s, shape (len(s), outputs, inputs); infinite where s is a pole."""
    drive = np.vstack((system.B1, system.D21)).astype(complex)
    out = np.empty((len(s), system.n_outputs, system.n_inputs), complex)
    first = 0
    for part in _parts(system, s):
        matrix = pencil(system, part)
        shift = np.exp(-part[:, None] * system.delays[None, :])
        read = np.concatenate(
            (np.broadcast_to(system.C1, (len(part), *system.C1.shape)), system.D12 * shift[:, None, :]), axis=2
        )
        out[first : first + len(part)] = system.D11 + read @ _solve(matrix, drive)
        first += len(part)
    return out


def _solve(matrix: Complex, drive: Complex) -> Complex:
    try:
        return np.asarray(np.linalg.solve(matrix, drive), complex)
    except np.linalg.LinAlgError:  # some s is a pole: those alone are infinite
        out = np.full((len(matrix), *drive.shape), complex(np.inf, np.inf))
        for i, one in enumerate(matrix):
            if np.linalg.matrix_rank(one) == len(one):
                out[i] = np.linalg.solve(one, drive)
        return out


def _parts(system: DelayLTI, s: Complex) -> list[Complex]:
    size = system.n_states + len(system.delays)
    return [s[i : i + step] for step in [max(1, CHUNK // max(1, size * size))] for i in range(0, len(s), step)]
