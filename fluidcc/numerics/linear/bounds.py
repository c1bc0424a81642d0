"""Where the roots of a pencil can be: bounds from matrices of absolute values, and the difference operator.

A system is retarded when det(I - D22 E(s)) is 1 for every s. Otherwise it is neutral: the zeros of that determinant
carry chains of roots of growing frequency, and only left of their abscissa is the number of roots finite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["difference_norm", "essential_abscissa", "is_neutral", "radius"]

Floats = NDArray[np.float64]

SAFETY = 1.0 + 1e-9


def spectral_bound(matrix: Floats) -> float:
    """An upper bound of the spectral radius of a matrix without negative entries (Collatz and Wielandt)."""
    if not len(matrix):
        return 0.0
    if len(matrix) == 1:
        return float(matrix[0, 0]) * SAFETY
    trial, bound = np.ones(len(matrix)), np.inf
    for _ in range(30):
        image = matrix @ trial
        last, bound = bound, min(bound, float((image / trial).max()))
        if bound > 0.97 * last:
            break
        size = float(image.max())
        if size == 0:
            break
        trial = image / size + 1e-9
    return bound * SAFETY


def difference(block: Blocks) -> Floats:
    """D22."""
    m, p = block.ports
    return block.D[p:, m:]


def is_neutral(block: Blocks) -> bool:
    """Whether det(I - D22 E(s)) depends on s.

    Without a cycle in D22 it does not. With one it is evaluated at frequencies that have nothing in common with the
    delays: there a finite sum of exponentials that is not constant differs from its value 1 at infinity.
    """
    inner = np.abs(difference(block))
    if not inner.any() or nilpotent(inner):
        return False
    s = (0.1 + 1j * np.linspace(1.3, 97.0, 24) * np.sqrt(2)) / block.delays.max()
    lags = np.exp(-s[:, None] * block.delays)
    values = np.linalg.det(np.eye(len(inner)) - difference(block) * lags[:, None, :])
    return bool(np.abs(values - 1).max() > 1e-10 * max(1.0, inner.max() ** 2))


def nilpotent(inner: Floats) -> bool:
    """Whether a matrix without negative entries has no cycle."""
    reach = np.ones(len(inner))
    for _ in range(len(inner)):
        reach = (inner @ reach > 0).astype(float)
        if not reach.any():
            return True
    return False


def difference_norm(block: Blocks) -> float:
    """The spectral radius of abs(D22), which bounds that of D22 diag(exp(i theta)) over all phases."""
    inner = np.abs(difference(block))
    return 0.0 if nilpotent(inner) else float(np.abs(np.linalg.eigvals(inner)).max())


def essential_abscissa(block: Blocks) -> float:
    """The least c at which the spectral radius of abs(D22) exp(-c tau) is one [1/time]; minus infinity if nilpotent.

    Right of it the difference operator has no spectrum, whatever the ratios of the delays (strong stability, after
    Hale and Verduyn Lunel, Introduction to Functional Differential Equations, 1993, section 9.6). With one delay in
    every cycle it is exact; otherwise it is an upper bound.
    """
    inner = np.abs(difference(block))
    if nilpotent(inner):
        return -np.inf
    lags = block.delays

    def excess(c: float) -> float:
        return float(np.log(np.abs(np.linalg.eigvals(inner * np.exp(-c * lags))).max()))

    low = high = 0.0
    step = 1.0 / lags.max()
    while excess(low) < 0:
        low, step = low - step, 2 * step
    while excess(high) > 0:
        high, step = high + step, 2 * step
    from scipy.optimize import brentq

    return float(brentq(excess, low, high, xtol=1e-14 / lags.max(), rtol=1e-14)) if high > low else high


def radius(block: Blocks, abscissa: float) -> float:
    """No root with real part at least `abscissa` has a larger modulus; infinite where no bound exists.

    Each root is an eigenvalue of ``A + B2 E (I - D22 E)^-1 C2``, so its modulus is at most the spectral radius of the
    same expression in absolute values, with abs(E) at most exp(-abscissa tau).
    """
    m, p = block.ports
    A, B2, C2 = np.abs(block.A), np.abs(block.B[:, m:]), np.abs(block.C[p:])
    inner = np.abs(difference(block))
    size = np.exp(-abscissa * block.delays)
    late = B2 * size
    if not inner.any():
        return spectral_bound(A + late @ C2)
    loop = inner * size
    if nilpotent(inner) or spectral_bound(loop) < 1 or np.abs(np.linalg.eigvals(loop)).max() < 1 - 1e-9:
        return spectral_bound(A + late @ np.linalg.solve(np.eye(len(loop)) - loop, C2).clip(0))
    if is_neutral(block):
        return np.inf
    # retarded by cancellation: (I - D22 E)^-1 is the adjugate, a polynomial of degree below the number of channels
    total = power = np.eye(len(loop))
    for _ in range(len(loop) - 1):
        power = power @ loop
        total = total + power
    return spectral_bound(A + late @ total @ C2)
