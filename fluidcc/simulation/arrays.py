"""Two flat arrays under construction: numbers are added, and where they stand is noted in slots of the head."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.fluid import slots as s

__all__ = ["Arrays"]

_Part = tuple[int, int, Any]  # from where to where, and what: numbers, or one for all of these places


class Arrays:
    """What becomes `F` and `I` (see `fluidcc.numerics.fluid.slots`).

    A workspace has a hundred parts of a few numbers each, so that they are kept as lists: an array for each would take
    several times as long to make as the two that they end in.

    Attributes
    ----------
    scalars : list of float
        The first numbers of `F`.
    head : list of int
        The first numbers of `I`.
    sizes : list of int
        How long `F` and `I` are so far.
    """

    def __init__(self) -> None:
        self.scalars, self.head = [0.0] * s.FHEADER, [0] * s.HEADER
        self.sizes = [s.FHEADER, s.HEADER]
        self._floats: list[_Part] = [(0, s.FHEADER, self.scalars)]
        self._ints: list[_Part] = [(0, s.HEADER, self.head)]

    def floats(self, slot: int, values: Sequence[float] | NDArray[np.float64]) -> None:
        """Add numbers, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[0]
        stop = self.sizes[0] = start + len(values)
        self._floats.append((start, stop, values))

    def room(self, slot: int, size: int, value: float = 0.0) -> None:
        """Add `size` times the same number, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[0]
        stop = self.sizes[0] = start + size
        if value != 0.0:
            self._floats.append((start, stop, value))

    def ints(self, slot: int, values: Sequence[int] | NDArray[np.int64]) -> None:
        """Add whole numbers, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[1]
        stop = self.sizes[1] = start + len(values)
        self._ints.append((start, stop, values))

    def int_room(self, slot: int, size: int, value: int = 0) -> None:
        """Add `size` times the same whole number, and note at I[slot] where they stand."""
        start = self.head[slot] = self.sizes[1]
        stop = self.sizes[1] = start + size
        if value:
            self._ints.append((start, stop, value))

    def table(self, starts: int, values: int, rows: list[list[int]]) -> None:
        """Add rows of different lengths: where each starts, then all their numbers."""
        self.ints(starts, [0, *accumulate(map(len, rows))])
        self.ints(values, [*chain.from_iterable(rows)])

    def joined(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """`F` and `I`; their parts are let go."""
        F, I = np.zeros(self.sizes[0]), np.zeros(self.sizes[1], dtype=np.int64)
        for array, parts in ((F, self._floats), (I, self._ints)):
            for start, stop, values in parts:
                array[start:stop] = values
            parts.clear()
        return F, I
