"""Returns of a periodic orbit and their map; integrals and extremes of what is smooth between
given times.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Recurrence(NamedTuple):
    """How a sequence of marks repeats: `marks` of them make a cycle of length `period`.

    ``changes`` are the largest changes of an interval or state from each cycle to the next, the
    last one last.
    """

    marks: int
    period: float
    changes: Array


def find_recurrence(
    times: Array, states: Array, close: float = 1e-3, cycles: int = 3
) -> Recurrence | None:
    """The shortest cycle in which marks repeat, in the last `cycles` rounds.

    Parameters
    ----------
    times : ndarray (marks,)
        Instants, rising.
    states : ndarray (marks, n)
        What is there at each, in units of its size.
    close : float
        Largest change from cycle to cycle that still counts as a repetition: of the intervals,
        relative to the period, and of the states.

    Returns
    -------
    Recurrence or None
        None if nothing repeats.
    """
    for found in _recurrences(times, states, cycles):
        if len(found.changes) >= cycles - 1 and found.changes[1 - cycles :].max() <= close:
            return found
    return None


def nearest_recurrence(times: Array, cycles: int = 3) -> Recurrence | None:
    """What comes nearest to a cycle of the intervals between marks, be it ever so far from one.

    Parameters
    ----------
    times : ndarray (marks,)
        Instants, rising.

    Returns
    -------
    Recurrence or None
        Its changes are the last `cycles` - 1; None if there are too few marks.
    """
    found = [
        one._replace(changes=one.changes[1 - cycles :])
        for one in _recurrences(times, np.empty((len(times), 0)), cycles)
    ]
    return min(found, key=lambda one: float(one.changes.max()), default=None)


def _recurrences(times: Array, states: Array, cycles: int) -> Iterator[Recurrence]:
    """What each number of marks looks like as a cycle, the shortest first."""
    gaps = np.diff(times)
    for count in range(1, len(times) // (cycles + 1) + 1):
        period = float(times[-1] - times[-1 - count])
        by_time = np.abs(gaps[count:] - gaps[:-count]) / period
        by_state = np.max(np.abs(states[count:] - states[:-count]), axis=1, initial=0.0)
        change = np.maximum(by_time, by_state[-len(by_time) :])[len(by_time) % count :]
        yield Recurrence(count, period, change.reshape(-1, count).max(axis=1))


MISFIT = 0.05  # of a map of returns, and of a multiplier, above which it is none


class ReturnMap(NamedTuple):
    """A linear map of what is seen from one return to the next, on the directions `basis` that
    were seen to move.
    """

    basis: Array  # (seen, r)
    map: Array  # (r, r)
    # of what is seen at the later returns, relative: how far it does not follow from the earlier
    # ones
    misfit: float
    # its eigenvalues, the largest first: those that the responses bear out, none if it is no map
    multipliers: NDArray[np.complex128]

    @property
    def follows(self) -> bool:
        """Whether what is seen follows from what was seen before."""
        return self.misfit <= MISFIT

    def error(self, change: Array) -> Array:
        """Distance from the fixed point at the end of a return that has moved what is seen by
        `change`.
        """
        inner = self.basis.T @ change
        return np.asarray(self.map @ np.linalg.solve(self.map - np.eye(len(self.map)), inner))


def return_map(responses: Array, noise: float) -> ReturnMap:
    """The map that takes each response to the next: its eigenvalues are the multipliers of a
    periodic orbit.

    Parameters
    ----------
    responses : ndarray (returns, seen, inputs)
        What is seen at each return after each of several small disturbances, over its size.
    noise : float
        Size of what in `responses` is noise.
    """
    pairs = [np.concatenate(part, axis=1) for part in (list(responses[:-1]), list(responses[1:]))]
    left, sizes, right = np.linalg.svd(pairs[0], full_matrices=False)
    r = int(np.sum(sizes > noise * max(1.0, sizes[0])))
    basis = left[:, :r]
    step = basis.T @ pairs[1] @ right[:r].T / sizes[:r]
    off = pairs[1] - basis @ step @ basis.T @ pairs[0]
    misfit = bool(r) * float(np.linalg.norm(off)) / max(float(np.linalg.norm(pairs[1])), 1e-300)
    seen = (basis.T @ one for one in pairs)
    known = _borne_out(step, *seen) if misfit <= MISFIT else np.empty(0, complex)
    return ReturnMap(basis, step, misfit, known)


def _borne_out(step: Array, before: Array, after: Array) -> NDArray[np.complex128]:
    """Eigenvalues of `step`, the largest first, without those that the responses contradict.

    A left eigenvector is a sum over what is seen that is multiplied by its eigenvalue at each
    return, whatever the rest does. What does not follow from what is seen, such as data under way,
    gives the map eigenvalues of which this is not so.
    """
    values, left = np.linalg.eig(step.T)
    was, became = left.T @ before, left.T @ after
    off = np.linalg.norm(became - values[:, None] * was, axis=1)
    kept = values[off <= MISFIT * np.linalg.norm(was, axis=1)].astype(complex)
    return kept[np.lexsort((-kept.imag, -np.abs(kept).round(9)))]


HAIR = 4e-11
"""How far from a jump its one-sided limits are taken, relative to the time; nearer in pieces so
short that other nodes are as near."""


class Pieces(NamedTuple):
    """Lobatto nodes between breaks: both ends of every piece are nodes, a hair inside."""

    nodes: Array  # pieces x nodes
    weights: Array  # of the integral, pieces x nodes
    place: Array  # nodes in [-1, 1]
    hair: Array  # how far inside the end nodes of each piece stand

    def limits(self, values: Array) -> Array:
        """Values [piece, node] of one variable with those of the end nodes taken on to the very
        ends.
        """
        half = 0.5 * (self.nodes[:, -1] - self.nodes[:, 0])
        slopes = legendre.legder(legendre.legfit(self.place, values.T, len(self.place) - 1))
        ends = values.copy()
        ends[:, 0] -= self.hair / half * legendre.legval(-1.0, slopes)
        ends[:, -1] += self.hair / half * legendre.legval(1.0, slopes)
        return ends

    def mean(self, values: Array) -> float:
        """Mean of one variable over all pieces, from its values [piece, node]."""
        return float(np.sum(self.weights * values) / np.sum(self.weights))

    def extremes(self, values: Array) -> tuple[float, float]:
        """Smallest and largest value of one variable [piece, node], between the nodes too."""
        fits = legendre.legfit(self.place, values.T, len(self.place) - 1).T
        found = [values.ravel()]
        curves = legendre.legval(np.linspace(-1, 1, 101), fits.T)
        for k in {int(np.argmin(curves.min(axis=1))), int(np.argmax(curves.max(axis=1)))}:
            slope = legendre.legder(
                fits[k]
            )  # without what is rounding, by which the roots would be divided
            roots = np.atleast_1d(
                legendre.legroots(legendre.legtrim(slope, 1e-15 * np.max(np.abs(fits[k]))))
            )
            inside = roots.real[(np.abs(roots.imag) < 1e-9) & (np.abs(roots.real) < 1.0)]
            found.append(np.atleast_1d(legendre.legval(inside, fits[k])))
        every = np.concatenate(found)
        least, most, low, high = (
            float(v) for v in (every.min(), every.max(), values.min(), values.max())
        )
        rounding = 1e-14 * max(
            abs(least), abs(most)
        )  # what is so little beyond the nodes is that of the curve
        return low if low - least <= rounding else least, high if most - high <= rounding else most


def smooth_pieces(
    start: float, end: float, breaks: Array, *, order: int = 10, least: int = 8
) -> Pieces:
    """Nodes for everything that is smooth between `breaks`, in at least `least` pieces.

    The end nodes stand a hair inside their piece, so that they show the one-sided limits.
    """
    hair = HAIR * abs(end)
    edges = np.unique(np.concatenate([[start], breaks[(breaks > start) & (breaks < end)], [end]]))
    edges = edges[np.append(True, np.diff(edges) > 4 * hair)]
    edges[-1] = end
    longest = (end - start) / least
    fine = [np.linspace(a, b, int(np.ceil((b - a) / longest)) + 1)[:-1] for a, b in pairwise(edges)]
    edges = np.append(np.concatenate(fine), end)
    inner = legendre.legroots(legendre.legder([0.0] * (order - 1) + [1.0]))
    place = np.concatenate(
        [[-1.0], np.sort(inner.real), [1.0]]
    )  # all are real; NumPy from 2.5 on gives complex ones
    weights = 2.0 / (order * (order - 1) * legendre.legval(place, [0.0] * (order - 1) + [1.0]) ** 2)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = edges[:-1, None] + half * (1.0 + place)
    inside = np.minimum(hair, 0.3 * (nodes[:, 1] - nodes[:, 0]))
    nodes[:, 0] += inside
    nodes[:, -1] -= inside
    return Pieces(nodes, half * weights, place, inside)
