"""Which of the eigenvalues at a point are which of those foretold there: the assignment of least squares. Compiled.

The nearest pairs would not do. What is foretold of loci that run side by side is wrong by about the same for all of
them, and where they are closer to each other than that, the nearest ones belong to others. An error e that is common to
all adds |e|^2 + 2 Re(e* (a - b)) to the square of each distance between a foretold a and a found b. The sum of all
a - b is the same whoever is paired with whom, so the least sum of squares does not see e.

References
----------
.. [1] R. Jonker, A. Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems",
   Computing 38 (1987) 325-340.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED

__all__ = ["assign"]

HUGE = 1e300  # the cost of what is no number


@njit(no_cpython_wrapper=True, **COUNTED)
def assign(foretold, found, order):  # type: ignore[no-untyped-def]
    """`order[j]` is the number in `found` of what was `foretold` as number j."""
    rank = len(order)
    if rank == 1:
        order[0] = 0
        return
    cost, taken, clear = np.empty((rank, rank)), np.zeros(rank, np.bool_), True
    for j in range(rank):
        best = 0
        for k in range(rank):
            gap = foretold[j] - found[k]
            square = gap.real * gap.real + gap.imag * gap.imag
            cost[j, k] = square if square < HUGE else HUGE
            if cost[j, k] < cost[j, best]:
                best = k
        clear = clear and not taken[best]
        taken[best], order[j] = True, best
    if not clear:  # otherwise no sum can be less than that of the least of each row
        _shortest_paths(cost, order)


@njit(no_cpython_wrapper=True, **COUNTED)
def _shortest_paths(cost, order):  # type: ignore[no-untyped-def]
    """The assignment of least cost: row after row enters by the shortest path of exchanges [1]_."""
    n = len(order)
    rows, columns = np.zeros(n), np.zeros(n + 1)  # what each is worth; column n is where a row enters
    owner, came = np.full(n + 1, -1), np.empty(n, np.int64)
    for row in range(n):
        owner[n], at = row, n
        ahead, reached = np.full(n, np.inf), np.zeros(n + 1, np.bool_)
        while owner[at] >= 0:
            reached[at] = True
            i, least, following = owner[at], np.inf, -1
            for k in range(n):
                if not reached[k]:
                    reduced = cost[i, k] - rows[i] - columns[k]
                    if reduced < ahead[k]:
                        ahead[k], came[k] = reduced, at
                    if following < 0 or ahead[k] < least:
                        least, following = ahead[k], k
            for k in range(n + 1):
                if reached[k]:
                    rows[owner[k]] += least
                    columns[k] -= least
                elif k < n:
                    ahead[k] -= least
            at = following
        while at != n:
            owner[at] = owner[came[at]]
            at = came[at]
    for k in range(n):
        order[owner[k]] = k
