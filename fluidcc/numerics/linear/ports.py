"""What goes into a linear block and comes out of it: arrays that fit, and names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import number, numbers, shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.numerics.linear.compiled.framing import sound
from fluidcc.numerics.linear.wiring import Blocks, close_channels

__all__ = ["Pick", "checked", "delayed_terms", "indices", "matrix", "merged", "names", "rational"]


Pick = str | int | Sequence[str | int] | None


def checked(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, delays: ArrayLike) -> Blocks:
    """New arrays of floats whose shapes fit, without channels of zero delay."""
    given = A, B, C, D, delays
    if all(type(part) is np.ndarray and part.dtype == float for part in given):
        block = Blocks(*(part.copy() for part in given))  # type: ignore[union-attr]
        if [part.ndim for part in block] == [2, 2, 2, 2, 1] and sound(*block):  # as nearly always
            return block
    return close_channels(_made_to_fit(A, B, C, D, delays))


def _made_to_fit(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, delays: ArrayLike
) -> Blocks:
    """Anything that is or can be made arrays that fit; what cannot, and what no block has, is
    refused.
    """
    a, b, c, d = (matrix(M, name) for M, name in zip((A, B, C, D), "ABCD", strict=True))
    d = np.atleast_2d(d)
    lags = np.atleast_1d(matrix(delays, "delays"))
    a = a.reshape(0, 0) if not a.size else np.atleast_2d(a)
    n, (rows, columns) = len(a), d.shape
    try:
        b, c = b.reshape(n, columns), c.reshape(rows, n)
    except ValueError as problem:
        raise InvalidInput(
            f"with A of shape {a.shape} and D of shape {d.shape}, B must have shape "
            f"{(n, columns)} and C {(rows, n)}; "
            f"got {np.shape(B)} and {np.shape(C)}"
        ) from problem
    if a.shape != (n, n) or lags.ndim != 1 or len(lags) > min(rows, columns):
        raise InvalidInput(
            f"A of shape {a.shape} and {lags.size} delays do not fit D of shape {d.shape}"
        )
    if (lags < 0).any():
        raise InvalidInput(f"a delay of {lags.min():g} s is negative; only causal blocks exist")
    return Blocks(a, b, c, d, lags)


def matrix(value: ArrayLike, what: str) -> NDArray[np.float64]:
    """A new array of finite floats."""
    return numbers(value, what, "an array of finite numbers")


def names(kind: str, given: Sequence[str], count: int, letter: str) -> tuple[str, ...]:
    """`given`, or a letter with numbers; as many as `count` and all different."""
    if type(given) is tuple and not given:
        return _numbered(letter, count)
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not all(isinstance(n, str) for n in given)
    ):
        raise InvalidInput(f"{kind} is {shown(given)}; give names in a list")
    found = tuple(given) or _numbered(letter, count)
    if len(found) != count or len(set(found)) != count:
        raise InvalidInput(f"{kind} must be {count} different names, got {list(found)}")
    return found


@lru_cache(maxsize=64)
def _numbered(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(count))


def merged(parts: Iterable[Sequence[str]]) -> list[str]:
    """The names of several blocks; with the number of their block where a name stands twice."""
    groups = [list(part) for part in parts]
    flat = [name for group in groups for name in group]
    if len(set(flat)) == len(flat):
        return flat
    return [f"{name}_{i}" for i, group in enumerate(groups) for name in group]


def indices(pick: Pick, known: Sequence[str], kind: str) -> list[int]:
    """Positions of the picked names or numbers."""
    if pick is None:
        return list(range(len(known)))
    wanted = list(pick) if isinstance(pick, Sequence) and not isinstance(pick, str) else [pick]
    found = []
    for one in wanted:
        if isinstance(one, str) and one in known:
            found.append(list(known).index(one))
        elif (
            isinstance(one, Integral)
            and not isinstance(one, bool)
            and -len(known) <= one < len(known)
        ):
            found.append(int(one) % len(known))
        else:
            raise UnknownName(f"there is no {kind} {shown(one)}; there are {', '.join(known)}")
    return found


# --- The matrices of transfer functions and of equations with delayed terms ----------------------


Matrix = NDArray[np.float64]

EQUAL = 4 * np.finfo(float).eps
"""Relative difference up to which two numbers are one."""


def rational(num: ArrayLike, den: ArrayLike) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """A, B, C, D of a scalar transfer function in controllable form, coefficients by falling
    powers.
    """
    given = {"num": np.atleast_1d(matrix(num, "num")), "den": np.atleast_1d(matrix(den, "den"))}
    for name, part in given.items():
        if part.ndim != 1 or (name == "den" and not part.any()):
            raise InvalidInput(
                f"{name} is {shown(part.tolist())}; give coefficients by falling powers, as [1, 2]"
            )
    top, below = (np.trim_zeros(part, "f") for part in given.values())
    n = len(below) - 1
    if len(top) > n + 1:
        raise InvalidInput(
            f"num of degree {len(top) - 1} over den of degree {n} is no proper transfer function"
        )
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
    """A, B, C, D and delays of ``x' = A0 x + sum A_k x(t - tau_k) + B u``; for the channels see
    `_factored`.
    """
    A = np.atleast_2d(matrix(A0, "A0"))
    n = len(A)
    lefts, rights, delays = [], [], []
    for term in terms:
        if not isinstance(term, tuple | list) or len(term) != 2:
            raise InvalidInput(f"a term of the equation is {shown(term)}; give a pair (A_k, delay)")
        part, delay = (
            np.atleast_2d(matrix(term[0], "A_k")),
            number(term[1], "the delay of A_k", least=0.0),
        )
        if A.shape != (n, n) or part.shape != (n, n):
            raise InvalidInput(
                f"A0 has shape {A.shape} and an A_k {part.shape}; give square ones of one size"
            )
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
    """Factors of a matrix that give back each of its entries to rounding, so that none is lost
    beside a larger one.

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
