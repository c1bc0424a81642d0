"""Positive realness: over frequency with delays, and by the Kalman-Yakubovich-Popov inequality.

The frequency test takes any stable DelayLTI. The matrix inequality takes systems without delays, is
solved as a semidefinite program, and its solution P is checked in floating point before it is
returned: ``x' P x / 2`` is then a storage function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.base.extras import need
from fluidcc.numerics.linear.wiring import block_of

if TYPE_CHECKING:
    from fluidcc.numerics.linear.dlti import DelayLTI

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FrequencyTest:
    """The least eigenvalue of G(jw) + G(jw)^* over frequency.

    Attributes
    ----------
    positive_real : bool
        Stable, and `least` is not negative beyond rounding.
    least : float
        The least eigenvalue of the Hermitian part ``(G + G^*) / 2``: the input passivity index.
    omega : float
        Where [rad/s]; infinite at the end of the frequencies.
    stable : bool
        No pole right of the axis; poles on it are simple by assumption, and are left out of the
        walk.
    """

    positive_real: bool
    least: float
    omega: float
    stable: bool


@dataclass(frozen=True)
class KYPSolution:
    """A solution of the KYP inequality, checked.

    Attributes
    ----------
    feasible : bool
        Whether P was found and passes the check.
    P : array or None
        Symmetric, shape (n, n); ``V = x' P x / 2`` satisfies ``V' <= u' y``.
    """

    feasible: bool
    P: Floats | None = None


def positive_real(system: DelayLTI) -> FrequencyTest:
    """Positive realness of a square system, with delays or without.

    Raises
    ------
    InvalidInput
        The system is not square.
    """
    _square(system)
    stable = system.count_unstable().unstable == 0
    least, omega, size = _least(system)
    passive = stable and least >= -1e-10 * size
    return FrequencyTest(bool(passive), least, omega, stable)


def kyp(system: DelayLTI) -> KYPSolution:
    """Solve the KYP inequality of a square system without delays.

    Raises
    ------
    Unsupported
        The system has delays: use `positive_real`.
    InvalidInput
        It is not square.
    """
    if len(system.delays):
        raise Unsupported(
            "the KYP inequality is for systems without delays; use positive_real over frequency"
        )
    _square(system)
    # in the pencil's balanced unknowns, so that the solver sees numbers of one size
    A, B, C, D, _ = block_of(system.pencil.own)
    n = len(A)
    if not n:
        most = float(np.linalg.eigvalsh(-(D + D.T)).max())
        return KYPSolution(most <= 1e-12 * float(np.abs(D).max()), np.zeros((0, 0)))
    gain = float(max(np.abs(C).max(), np.abs(D).max())) or 1.0
    C, D = C / gain, D / gain  # so that no unit of the outputs matters
    value = _storage(A, B, C, D)
    if value is None:
        return KYPSolution(False)
    matrix = _inequality(value, A, B, C, D)
    size = max(1.0, float(np.abs(matrix).max()), float(np.abs(value).max()))
    excess = float(np.linalg.eigvalsh(matrix).max()) / size
    least = float(np.linalg.eigvalsh(value).min())
    scale = system.pencil.state_scale[0, :n]
    # V is the same function: x = scale x_scaled; its rate is taken in the pencil's unit of time
    physical = gain * value / np.outer(scale, scale) * system.pencil.time
    return KYPSolution(excess < 1e-7 and least > -1e-8, physical)


def _inequality(P: Floats, A: Floats, B: Floats, C: Floats, D: Floats) -> Floats:
    """The matrix that is not positive where ``x' P x / 2`` is a storage function."""
    return np.block([[A.T @ P + P @ A, P @ B - C.T], [B.T @ P - C, -(D + D.T)]])


def _storage(A: Floats, B: Floats, C: Floats, D: Floats) -> Floats | None:
    """The P of the inequality with the largest least eigenvalue, up to 1; none if there is none.

    The solver minimises ``q' x`` where ``cones(x)``, which is affine, lies in its cones.
    """
    from scipy.sparse import csc_array

    clarabel = need("clarabel", "certify", "the matrix inequality of passivity")
    (n, m), entries = B.shape, np.tril_indices(len(A))

    def stacked(M: Floats) -> Floats:
        rows, columns = np.tril_indices(len(M))
        return np.where(rows == columns, 1, np.sqrt(2)) * M[rows, columns]

    def cones(x: Floats) -> Floats:
        P = np.zeros((n, n))
        P[entries] = P.T[entries] = x[:-1]
        least = x[-1]
        below, above = -_inequality(P, A, B, C, D), P - least * np.eye(n)
        return np.concatenate(([1 - least, 1e6 * n - np.trace(P)], stacked(below), stacked(above)))

    unknowns = len(entries[0]) + 1
    constant = cones(np.zeros(unknowns))
    columns = constant[:, None] - np.column_stack([cones(unit) for unit in np.eye(unknowns)])
    triangle, status = clarabel.PSDTriangleConeT, clarabel.SolverStatus
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        csc_array((unknowns, unknowns)),
        -np.eye(unknowns)[-1],
        csc_array(columns),
        constant,
        [clarabel.NonnegativeConeT(2), triangle(n + m), triangle(n)],
        settings,
    ).solve()
    if found.status not in (status.Solved, status.AlmostSolved):
        return None
    P = np.zeros((n, n))
    P[entries] = P.T[entries] = found.x[:-1]
    return P


def _square(system: DelayLTI) -> None:
    if system.n_inputs != system.n_outputs or not system.n_inputs:
        raise InvalidInput(
            f"positive realness needs as many outputs as inputs, here {system.n_outputs} and "
            f"{system.n_inputs}"
        )


def _least(system: DelayLTI) -> tuple[float, float, float]:
    """The least eigenvalue of the Hermitian part of G(jw) over all w >= 0, where, and the size of
    G there; on a grid that is refined around its lowest points.
    """
    from scipy.optimize import minimize_scalar

    pencil = system.pencil

    def at(omega: Floats) -> Floats:
        value = pencil.values((1j * omega).astype(complex), scaled=True).response
        finite = np.isfinite(value).all(axis=(1, 2))
        value = value[finite]
        out = np.full(len(omega), np.inf)
        out[finite] = np.linalg.eigvalsh(0.5 * (value + value.conj().transpose(0, 2, 1)))[:, 0]
        return out

    poles = np.abs(np.linalg.eigvals(block_of(pencil.own).A)) if pencil.n else np.ones(1)
    slow = float(poles[poles > 1e-9 * poles.max(initial=0.0)].min(initial=1.0))
    high = max(40.0, 30 * float(poles.max(initial=1.0)))
    low = min(1.0, slow) * 1e-3
    omega = np.unique(
        np.concatenate((np.geomspace(low, 1e3 * high, 1200), np.linspace(low, high, 1600)))
    )
    value = at(omega)
    inner = np.flatnonzero((value[1:-1] <= value[:-2]) & (value[1:-1] <= value[2:])) + 1
    inner = inner[np.argsort(value[inner])[:6]]
    i = int(np.argmin(value))
    best, where = float(value[i]), float(omega[i])
    for j in inner:
        found = minimize_scalar(
            lambda w: float(at(np.array([w]))[0]),
            bounds=(omega[j - 1], omega[j + 1]),
            method="bounded",
            options={"xatol": 1e-10 * omega[j]},
        )
        if found.fun < best:
            best, where = float(found.fun), float(found.x)
    still = float(at(np.zeros(1))[0])
    if still < best:
        best, where = still, 0.0
    if not system.D.any() and best > 0:  # strictly proper: G vanishes far out
        best, where = 0.0, np.inf
    there = pencil.values(np.array([1j * where]), scaled=True).response if where < np.inf else 0.0
    return best, where / pencil.time, float(np.abs(there).max())
