"""Sums that several rows of a pencil take alike become unknowns of their own.

Hundreds of flows that listen to one link each have its arrivals in their row, a sum over all of these flows. Named once
they are one row of a hundred entries and a column of another hundred, and not ten thousand. And what all inputs have to
pass on their way to the outputs can then be seen from where entries are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.wiring import alike

__all__ = ["Unlike", "with_sums"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

LEAST = 2
"""Terms of a sum from which on it is named."""

EQUAL = 1e-14
"""Relative difference up to which two ratios are one; what is left of it is dropped, as rounding."""


class Unlike(Exception):
    """Systems of a stack do not all have the same sums; `parts` are those that do."""

    def __init__(self, parts: list[Rows]) -> None:
        super().__init__("the systems of a stack have different sums")
        self.parts = parts


class _Shared(NamedTuple):
    """Rows that take `factor` times the entries of row `first` at some columns."""

    rows: Rows
    columns: Rows
    first: int
    factor: Floats  # (systems, rows)


def with_sums(full: Floats, late: slice) -> Floats:
    """Bordered pencils with their sums as unknowns more, after the channels.

    Parameters
    ----------
    full : array (systems, rows, columns)
        States, channels, then ports, without s and the ones of the diagonal.
    late : slice
        The columns of the channels. Sums are looked for in these, in those of the states, and in those of the inputs,
        as rows that share arrivals have something of their own elsewhere; then in the sums found.

    Raises
    ------
    Unlike
        See there.
    """
    inner, height, width = late.stop, *full.shape[1:]
    wide = full
    for first, last in ((inner, width), (late.start, inner), (0, late.start)):
        wide = _named(wide, first, last)
    if wide.shape[2] > width + 1:
        wide = _named(wide, width, wide.shape[2])
    k = wide.shape[2] - width
    if not k:
        return full
    place = np.array([*range(inner), *range(width, width + k), *range(inner, width)])
    rows = np.array([*range(inner), *range(height, height + k), *range(inner, height)])
    entries = (rows[:, None] * wide.shape[2] + place).ravel()
    return wide.reshape(len(wide), -1).take(entries, axis=1).reshape(wide.shape)


def _named(full: Floats, start: int, stop: int) -> Floats:
    """With the sums in some columns as rows and columns more, behind all others."""
    inside = full[:, :, start:stop]
    found = []
    for rows in _of_one_pattern((inside != 0).any(axis=0)):
        while len(rows) > 1:
            rows, one = _group(inside, rows)
            if one is not None:
                found.append(one._replace(columns=start + one.columns))
    if not found:
        return full
    systems, height, width = full.shape
    out = np.zeros((systems, height + len(found), width + len(found)))
    out[:, :height, :width] = full
    for i, one in enumerate(found):
        out[:, height + i, one.columns] = -full[:, one.first, one.columns]  # the sum less its terms is zero
        out[:, one.rows[:, None], one.columns] = 0.0
        out[:, one.rows, width + i] = one.factor
    return out


def _of_one_pattern(pattern: NDArray[np.bool_]) -> list[Rows]:
    """Rows with entries at the same places."""
    known: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(pattern.sum(axis=1) >= LEAST).tolist():
        known.setdefault(pattern[i].tobytes(), []).append(i)
    return [np.array(rows) for rows in known.values() if len(rows) > 1]


def _group(matrix: Floats, rows: Rows) -> tuple[Rows, _Shared | None]:
    """The rows that are mostly multiples of the first, and those that are not."""
    support = np.flatnonzero(matrix[0, rows[0]])
    ratio = matrix[:, rows[:, None], support] / matrix[:, rows[:1, None], support]
    factor = np.sort(ratio, axis=2)[:, :, len(support) // 2]
    same = np.abs(ratio - factor[:, :, None]) <= EQUAL * np.abs(factor[:, :, None])
    if len(same) > 1 and (same != same[:1]).any():
        raise Unlike(alike(same.reshape(len(same), -1)))
    member = same[0].sum(axis=1) > len(support) // 2
    kept = same[0, member].all(axis=0)
    if member.sum() < 2 or kept.sum() < LEAST:
        return rows[~member], None
    return rows[~member], _Shared(rows[member], support[kept], int(rows[0]), factor[:, member])
