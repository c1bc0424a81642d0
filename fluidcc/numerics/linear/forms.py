"""The matrices of transfer functions and of equations with delayed terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import number, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.linear.ports import matrix

__all__ = ["delayed_terms", "rational"]

Matrix = NDArray[np.float64]

EQUAL = 4 * np.finfo(float).eps
"""Relative difference up to which two numbers are one."""


def rational(num: ArrayLike, den: ArrayLike) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """A, B, C, D of a scalar transfer function in controllable form, coefficients by falling powers."""
    given = {"num": np.atleast_1d(matrix(num, "num")), "den": np.atleast_1d(matrix(den, "den"))}
    for name, part in given.items():
        if part.ndim != 1 or (name == "den" and not part.any()):
            raise InvalidInput(f"{name} is {shown(part.tolist())}; give coefficients by falling powers, as [1, 2]")
    top, below = (np.trim_zeros(part, "f") for part in given.values())
    n = len(below) - 1
    if len(top) > n + 1:
        raise InvalidInput(f"num of degree {len(top) - 1} over den of degree {n} is no proper transfer function")
    top, below = np.r_[np.zeros(n + 1 - len(top)), top] / below[0], below / below[0]
    A = np.zeros((n, n))
    if n:
        A[0] = -below[1:]
        A[range(1, n), range(n - 1)] = 1.0
    B = np.eye(n)[:, :1]
    return A, B, np.array([top[1:] - top[0] * below[1:]]), np.array([[top[0]]])


def delayed_terms(
    A0: ArrayLike, terms: Sequence[tuple[ArrayLike, float]], B: ArrayLike, C: ArrayLike
) -> tuple[Matrix, Matrix, Matrix, Matrix, Matrix]:
    """A, B, C, D and delays of ``x' = A0 x + sum A_k x(t - tau_k) + B u``; for the channels see `_factored`."""
    A = np.atleast_2d(matrix(A0, "A0"))
    n = len(A)
    lefts, rights, delays = [], [], []
    for term in terms:
        if not isinstance(term, tuple | list) or len(term) != 2:
            raise InvalidInput(f"a term of the equation is {shown(term)}; give a pair (A_k, delay)")
        part, delay = np.atleast_2d(matrix(term[0], "A_k")), number(term[1], "the delay of A_k", least=0.0)
        if A.shape != (n, n) or part.shape != (n, n):
            raise InvalidInput(f"A0 has shape {A.shape} and an A_k {part.shape}; give square ones of one size")
        left, right = _factored(part)
        lefts.append(left)
        rights.append(right)
        delays += [delay] * len(right)
    B1 = matrix(B, "B").reshape(n, -1) if np.size(B) else np.eye(n)
    C1 = matrix(C, "C").reshape(-1, n) if np.size(C) else np.eye(n)
    k = len(delays)
    D = np.zeros((len(C1) + k, B1.shape[1] + k))
    return A, np.hstack([B1, *lefts]), np.vstack([C1, *rights]), D, np.array(delays)


def _factored(part: Matrix) -> tuple[Matrix, Matrix]:
    """Factors of a matrix that give back each of its entries to rounding, so that none is lost beside a larger one.

    Rows that are multiples of one another share a channel, or columns do, whichever takes fewer.
    """
    (left, right), (below, above) = _by_rows(part), _by_rows(part.T)
    return (left, right) if len(right) <= len(above) else (above.T, below.T)


def _by_rows(part: Matrix) -> tuple[Matrix, Matrix]:
    """Which multiple of which of the different rows each row is, and these."""
    different: list[int] = []
    left = np.zeros(part.shape)
    for i in np.flatnonzero(part.any(axis=1)):
        first, k = int(np.argmax(part[i] != 0)), len(different)
        for j, known in enumerate(part[different]):
            factor = part[i, first] / known[first] if known[first] else 0.0
            if (np.abs(factor * known - part[i]) <= EQUAL * np.abs(part[i])).all():
                left[i, j] = factor
                break
        else:
            left[i, k] = 1.0
            different.append(int(i))
    return left[:, : len(different)], part[different]
