"""The fewest unknowns through which every path from the inputs of a pencil to its outputs leads.

There are as many as there are paths that have no unknown in common (Menger), and the transfer matrix has at most that
rank, for almost all numbers just that (van der Woude, Mathematics of Control, Signals and Systems 4, 1991, where inputs
and outputs are places of a cut too). So a return ratio of many flows over few links is a product of a tall and a wide
matrix, and is never formed.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

__all__ = ["separator"]


def separator(pattern: NDArray[np.bool_], size: int) -> list[int]:
    """The unknowns of a cut that is smaller than the numbers of inputs and outputs; none if there is no such cut.

    Parameters
    ----------
    pattern : array of bool
        A bordered pencil: `size` unknowns and equations, each unknown with its own equation, then outputs and inputs.
    size : int
    """
    rows, columns = pattern.shape
    most = min(rows, columns) - size
    if most < 2 or pattern[size:, size:].any():
        return []
    # each unknown is an arc of capacity one, from its entrance 2 i to its exit 2 i + 1
    after: list[dict[int, int]] = [{} for _ in range(2 * size + 2)]
    start, end = 2 * size, 2 * size + 1

    def join(a: int, b: int, capacity: int) -> None:
        after[a][b] = capacity
        after[b].setdefault(a, 0)

    for i in range(size):
        join(2 * i, 2 * i + 1, 1)
        if pattern[i, size:].any():
            join(start, 2 * i, size)
        if pattern[size:, i].any():
            join(2 * i + 1, end, size)
    for i, j in zip(*np.nonzero(pattern[:size, :size]), strict=True):
        if i != j:
            join(2 * int(j) + 1, 2 * int(i), size)
    for _ in range(most):
        reached = _reached(after, start)
        if end not in reached:
            return [i for i in range(size) if 2 * i in reached and 2 * i + 1 not in reached]
        b = end
        while b != start:
            a = reached[b]
            after[a][b] -= 1
            after[b][a] += 1
            b = a
    return []


def _reached(after: list[dict[int, int]], start: int) -> dict[int, int]:
    """Where arcs with capacity left lead, each place with the one before it."""
    before, waiting = {start: start}, deque([start])
    while waiting:
        a = waiting.popleft()
        for b, capacity in after[a].items():
            if capacity and b not in before:
                before[b] = a
                waiting.append(b)
    return before
