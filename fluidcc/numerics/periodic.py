"""Periods in a sequence of labelled instants, and integrals and extremes of what is smooth between given times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

__all__ = ["HAIR", "Pieces", "Recurrence", "find_recurrence", "smooth_pieces"]

Array = NDArray[np.float64]


class Recurrence(NamedTuple):
    """How a sequence of events repeats: `events` events make a cycle, of which the last began at `start`.

    ``errors`` are the largest relative changes of the intervals from one cycle to the next, the last one last.
    """

    events: int
    start: float
    period: float
    errors: Array


def find_recurrence(
    times: Array, labels: Sequence[Any] | NDArray[Any], cycles: int = 3, close: float = 1e-3
) -> Recurrence | None:
    """The shortest cycle in which events repeat, label by label, in the last `cycles` rounds.

    Parameters
    ----------
    times : ndarray
        Instants, not falling.
    labels : sequence
        What happened at each.
    close : float
        Largest change of any interval from cycle to cycle, relative to the period, that still counts as a repetition.

    Returns
    -------
    Recurrence or None
        None if nothing repeats.
    """
    n = len(times)
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1] if n else np.empty(0, int)
    for count in range(1, n // (cycles + 1) + 1):
        used = cycles * count
        if np.any(codes[n - used :] != codes[n - used - count : n - count]):
            continue
        gaps = np.diff(times)
        period = times[-1] - times[-1 - count]
        if period <= 0.0:
            continue
        rounds = (len(gaps) // count) * count
        table = gaps[len(gaps) - rounds :].reshape(-1, count)
        errors = np.max(np.abs(np.diff(table, axis=0)), axis=1) / period
        if np.all(errors[-(cycles - 1) :] <= close):
            return Recurrence(count, float(times[-1 - count]), float(period), errors)
    return None


HAIR = 4e-11
"""How far from a jump its one-sided limits are taken, relative to the time, or to one second if that is more."""


class Pieces(NamedTuple):
    """Lobatto nodes between breaks: both ends of every piece are nodes, a hair inside."""

    nodes: Array  # pieces x nodes
    weights: Array  # of the integral, pieces x nodes
    place: Array  # nodes in [-1, 1]
    hair: float

    def limits(self, values: Array) -> Array:
        """Values [piece, node] of one variable with those of the end nodes taken on to the very ends."""
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
            slope = legendre.legder(fits[k])  # without what is rounding, by which the roots would be divided
            roots = np.atleast_1d(legendre.legroots(legendre.legtrim(slope, 1e-15 * np.max(np.abs(fits[k])))))
            inside = roots.real[(np.abs(roots.imag) < 1e-9) & (np.abs(roots.real) < 1.0)]
            found.append(np.atleast_1d(legendre.legval(inside, fits[k])))
        every = np.concatenate(found)
        return float(every.min()), float(every.max())


def smooth_pieces(start: float, end: float, breaks: Array, *, order: int = 10, least: int = 8) -> Pieces:
    """Nodes for everything that is smooth between `breaks`, in at least `least` pieces.

    The end nodes stand a hair inside their piece, so that they show the one-sided limits.
    """
    hair = HAIR * max(1.0, abs(end))
    edges = np.unique(np.concatenate([[start], breaks[(breaks > start) & (breaks < end)], [end]]))
    edges = edges[np.append(True, np.diff(edges) > 4 * hair)]
    edges[-1] = end
    longest = (end - start) / least
    fine = [np.linspace(a, b, int(np.ceil((b - a) / longest)) + 1)[:-1] for a, b in pairwise(edges)]
    edges = np.append(np.concatenate(fine), end)
    inner = legendre.legroots(legendre.legder([0.0] * (order - 1) + [1.0]))
    place = np.concatenate([[-1.0], np.sort(inner), [1.0]])
    weights = 2.0 / (order * (order - 1) * legendre.legval(place, [0.0] * (order - 1) + [1.0]) ** 2)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = edges[:-1, None] + half * (1.0 + place)
    nodes[:, 0] += hair
    nodes[:, -1] -= hair
    return Pieces(nodes, half * weights, place, hair)
