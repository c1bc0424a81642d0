"""Two flat arrays under construction: numbers are added, and where they stand is noted in slots of the head."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.fluid import slots as s

__all__ = ["Arrays"]


class Arrays:
    """What becomes `F` and `I` (see `fluidcc.numerics.fluid.slots`)."""

    def __init__(self) -> None:
        self.parts: tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]] = (
            [np.zeros(s.FHEADER)],
            [np.zeros(s.HEADER, dtype=np.int64)],
        )
        self.sizes = [s.FHEADER, s.HEADER]
        self.scalars, self.head = self.parts[0][0], self.parts[1][0]

    def floats(self, slot: int, values: Any) -> None:
        """Add numbers, and note at I[slot] where they stand."""
        array = np.ravel(np.asarray(values, dtype=np.float64))
        self.head[slot] = self.sizes[0]
        self.parts[0].append(array)
        self.sizes[0] += array.size

    def ints(self, slot: int, values: Any) -> None:
        """Add whole numbers, and note at I[slot] where they stand."""
        array = np.ravel(np.asarray(values, dtype=np.int64))
        self.head[slot] = self.sizes[1]
        self.parts[1].append(array)
        self.sizes[1] += array.size

    def table(self, starts: int, values: int, rows: list[list[int]]) -> None:
        """Add rows of different lengths: where each starts, then all their numbers."""
        self.ints(starts, np.concatenate([[0], np.cumsum([len(row) for row in rows])]))
        self.ints(values, [v for row in rows for v in row])

    def joined(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """`F` and `I`; their parts are let go."""
        parts, self.parts = self.parts, ([], [])
        return np.concatenate(parts[0]), np.concatenate(parts[1])
