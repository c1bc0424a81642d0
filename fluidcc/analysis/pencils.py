"""One root or one frequency of a system, and how it answers to a change of the matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.matrices import Matrices
from fluidcc.base.errors import SolverError

__all__ = ["newton_step", "null_vectors", "pencil", "polish", "response_slope", "root_slope"]

Complex = NDArray[np.complex128]


def _parts(m: Matrices) -> tuple[int, int, int]:
    """States, inputs, outputs."""
    n, k = len(m.A), len(m.delays)
    return n, m.B.shape[1] - k, m.C.shape[0] - k


def pencil(m: Matrices, s: complex) -> tuple[Complex, Complex]:
    """P(s) = [[sI - A, -B2], [-E C2, I - E D22]] with E = diag(exp(-s tau)), and dP/ds.

    Its unknowns are the states and what the channels deliver.
    """
    n, i, o = _parts(m)
    E = np.exp(-s * m.delays)
    P = np.zeros((n + len(E),) * 2, complex)
    dP = np.zeros_like(P)
    P[:n, :n] = s * np.eye(n) - m.A
    P[:n, n:] = -m.B[:, i:]
    P[n:, :n] = -E[:, None] * m.C[o:]
    P[n:, n:] = np.eye(len(E)) - E[:, None] * m.D[o:, i:]
    dP[:n, :n] = np.eye(n)
    dP[n:, :n] = (m.delays * E)[:, None] * m.C[o:]
    dP[n:, n:] = (m.delays * E)[:, None] * m.D[o:, i:]
    return P, dP


def _change(m: Matrices, d: Matrices, s: complex) -> Complex:
    """dP where the matrices change by `d`."""
    n, i, o = _parts(m)
    E = np.exp(-s * m.delays)
    late = -s * d.delays * E
    dP = np.zeros((n + len(E),) * 2, complex)
    dP[:n, :n] = -d.A
    dP[:n, n:] = -d.B[:, i:]
    dP[n:, :n] = -(late[:, None] * m.C[o:] + E[:, None] * d.C[o:])
    dP[n:, n:] = -(late[:, None] * m.D[o:, i:] + E[:, None] * d.D[o:, i:])
    return dP


def _scaled(P: Complex) -> tuple[Complex, Any, Any]:
    """The pencil with rows and columns of similar size: rates are millions, queues hundredths."""
    row, column = np.ones(len(P)), np.ones(len(P))
    for _ in range(3):
        M = np.abs(P) * row[:, None] * column
        row = row / np.sqrt(_sizes(M, 1))
        M = np.abs(P) * row[:, None] * column
        column = column / np.sqrt(_sizes(M, 0))
    return P * row[:, None] * column, row, column


def _sizes(M: Any, axis: int) -> Any:
    most = M.max(axis=axis)
    return np.where(most > 0, most, 1.0)


def null_vectors(m: Matrices, s: complex) -> tuple[Complex, Complex]:
    """Left and right null vectors of P at a root."""
    with np.errstate(all="ignore"):
        P, row, column = _scaled(pencil(m, s)[0])
    if not np.all(np.isfinite(P)):
        raise SolverError(f"the characteristic equation has no finite value at s = {s:.6g} 1/s")
    left, _, right = np.linalg.svd(P)
    return row * left[:, -1].conj(), column * right[-1].conj()


def newton_step(m: Matrices, s: complex) -> complex:
    """Newton's step towards a root, on the logarithm of det P: about the distance to it; 0 at one."""
    with np.errstate(all="ignore"):
        P, dP = pencil(m, s)
        scaled, row, column = _scaled(P)
        try:
            return complex(-1 / np.trace(np.linalg.solve(scaled, dP * row[:, None] * column)))
        except np.linalg.LinAlgError:  # exactly singular: there it is
            return 0j


def polish(m: Matrices, s: complex, tolerance: float = 1e-14) -> complex:
    """The simple root next to `s`."""
    step = complex(np.inf)
    for _ in range(50):
        step = newton_step(m, s)
        if not np.isfinite(step):
            break
        most = 0.5 * (abs(s) + 1e-3 + 1 / max(m.delays.max(initial=0.0), 1e-3))
        s += step * min(1.0, most / max(abs(step), 1e-300))
        if abs(step) <= tolerance * max(1e-3, abs(s)):
            return s
    if abs(step) <= 1e-9 * max(1e-3, abs(s)):  # as near as rounding lets it
        return s
    raise SolverError(f"the root near {s:.6g} 1/s is not simple, or could not be followed")


def root_slope(m: Matrices, d: Matrices, s: complex) -> complex:
    """ds of a simple root where the matrices change by `d`."""
    left, right = null_vectors(m, s)
    below = left @ pencil(m, s)[1] @ right
    return complex(-(left @ _change(m, d, s) @ right) / below)


def response_slope(m: Matrices, s: complex, d: Matrices | None = None) -> tuple[Complex, Complex]:
    """The transfer matrix at s, and its change with s, or where the matrices change by `d`."""
    n, i, o = _parts(m)
    P, dP = pencil(m, s)
    if d is not None:
        dP = _change(m, d, s)
    _, row, column = _scaled(P)
    E = np.exp(-s * m.delays)
    drive = np.vstack([m.B[:, :i], E[:, None] * m.D[o:, :i]])
    read = np.hstack([m.C[:o], m.D[:o, i:]])
    if d is None:
        d_drive = np.vstack([np.zeros((n, i)), (-m.delays * E)[:, None] * m.D[o:, :i]])
        d_read, d_direct = np.zeros_like(read), np.zeros((o, i))
    else:
        late = -s * d.delays * E
        d_drive = np.vstack([d.B[:, :i], late[:, None] * m.D[o:, :i] + E[:, None] * d.D[o:, :i]])
        d_read, d_direct = np.hstack([d.C[:o], d.D[:o, i:]]), d.D[:o, :i]

    def solve(right: Any) -> Any:
        return column[:, None] * np.linalg.solve(P * row[:, None] * column, row[:, None] * right)

    x = solve(drive)
    value = m.D[:o, :i] + read @ x
    slope = d_direct + d_read @ x + read @ solve(d_drive - dP @ x)
    return value, slope
