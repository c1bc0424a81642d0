"""Sums that several rows of a pencil take alike become unknowns of their own.

Hundreds of flows that listen to one link each have its arrivals in their row, a sum over all of these flows. Named once
they are one row of a hundred entries and a column of another hundred, and not ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["with_sums"]

LEAST = 4
"""Entries of a sum from which on it may pay to name it."""

EQUAL = 1e-14
"""Relative difference up to which two ratios are one; what is left of it is dropped, as rounding."""


class Shared(NamedTuple):
    """Rows that take `factor` times the entries of row `first` at some columns."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    first: int
    factor: NDArray[np.float64]


def with_sums(full: NDArray[np.float64], late: slice) -> NDArray[np.float64]:
    """A bordered pencil (1, rows, columns) with its sums as unknowns more, after its channels.

    Parameters
    ----------
    full : array
        States, channels, then ports, without s and the ones of the diagonal.
    late : slice
        The columns of the channels: sums are looked for in these, and in the others.
    """
    plain = np.array(full[0])
    height, width = plain.shape
    inner = late.stop
    others = np.r_[0 : late.start, inner:width]
    names, factors = [], []
    for columns in (np.arange(late.start, inner), others):
        for one in _sums(plain, columns):
            names.append(np.zeros(width))
            names[-1][one.columns] = plain[one.first, one.columns]
            factors.append(np.zeros(height))
            factors[-1][one.rows] = one.factor
            plain[np.ix_(one.rows, one.columns)] = 0.0
    if not names:
        return full
    k = len(names)
    out = np.zeros((1, height + k, width + k))
    old_row, old_column = np.r_[0:inner, inner + k : height + k], np.r_[0:inner, inner + k : width + k]
    out[0][np.ix_(old_row, old_column)] = plain
    out[0][inner : inner + k, old_column] = -np.array(names)  # the sum less its terms is zero
    out[0][old_row, inner : inner + k] = np.array(factors).T
    return out


def _sums(matrix: NDArray[np.float64], columns: NDArray[np.int64]) -> Iterator[Shared]:
    inside = matrix[:, columns]
    for alike in _alike(inside != 0):
        rows = alike
        while len(rows) > 1:
            rows, one = _group(inside, rows)
            if one is not None:
                yield one._replace(columns=columns[one.columns])


def _alike(pattern: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Rows with entries at the same places, where these are enough."""
    known: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(pattern.sum(axis=1) >= LEAST):
        known.setdefault(pattern[i].tobytes(), []).append(int(i))
    return [np.array(rows) for rows in known.values()]


def _group(matrix: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Shared | None]:
    """The rows that are mostly multiples of the first, and those that are not."""
    support = np.flatnonzero(matrix[rows[0]])
    ratio = matrix[np.ix_(rows, support)] / matrix[rows[0], support]
    factor = np.median(ratio, axis=1) if len(support) % 2 else np.sort(ratio, axis=1)[:, len(support) // 2]
    same = np.abs(ratio - factor[:, None]) <= EQUAL * np.abs(factor[:, None])
    member = same.sum(axis=1) > len(support) // 2
    kept = same[member].all(axis=0)
    height, width = int(member.sum()), int(kept.sum())
    if height < 2 or width < LEAST or height * width < 2 * (height + width):
        return rows[~member], None
    return rows[~member], Shared(rows[member], support[kept], int(rows[0]), factor[member])
