"""What goes into a linear block and comes out of it: arrays that fit, and names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.numerics.linear.compiled.framing import sound
from fluidcc.numerics.linear.wiring import Blocks, close_channels

__all__ = ["Pick", "checked", "indices", "matrix", "merged", "names"]

Pick = str | int | Sequence[str | int] | None


def checked(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, delays: ArrayLike) -> Blocks:
    """New arrays of floats whose shapes fit, without channels of zero delay."""
    given = A, B, C, D, delays
    if all(type(part) is np.ndarray and part.dtype == float for part in given):
        block = Blocks(*(part.copy() for part in given))  # type: ignore[union-attr]
        if [part.ndim for part in block] == [2, 2, 2, 2, 1] and sound(*block):  # as nearly always
            return block
    return close_channels(_made_to_fit(A, B, C, D, delays))


def _made_to_fit(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, delays: ArrayLike) -> Blocks:
    """Anything that is or can be made arrays that fit; what cannot, and what no block has, is refused."""
    a, b, c, d = (matrix(M, name) for M, name in zip((A, B, C, D), "ABCD", strict=True))
    d = np.atleast_2d(d)
    lags = np.atleast_1d(matrix(delays, "delays"))
    a = a.reshape(0, 0) if not a.size else np.atleast_2d(a)
    n, (rows, columns) = len(a), d.shape
    try:
        b, c = b.reshape(n, columns), c.reshape(rows, n)
    except ValueError as problem:
        raise InvalidInput(
            f"with A of shape {a.shape} and D of shape {d.shape}, B must have shape {(n, columns)} and C {(rows, n)}; "
            f"got {np.shape(B)} and {np.shape(C)}"
        ) from problem
    if a.shape != (n, n) or lags.ndim != 1 or len(lags) > min(rows, columns):
        raise InvalidInput(f"A of shape {a.shape} and {lags.size} delays do not fit D of shape {d.shape}")
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
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(n, str) for n in given):
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
        elif isinstance(one, Integral) and not isinstance(one, bool) and -len(known) <= one < len(known):
            found.append(int(one) % len(known))
        else:
            raise UnknownName(f"there is no {kind} {shown(one)}; there are {', '.join(known)}")
    return found
