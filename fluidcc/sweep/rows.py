"""The numbers of many points, put together from those of the axes' values.

A network as numbers is a structure and a row of floats. Building it takes a millisecond, so that it is not done for
each point: it is done for each value of each axis, the others at their first values. Where axes change different places
of the row, the row of any point follows; of axes that change the same places, a row is built for each of their
combinations. For each combination of axes that change the structure, all of this is done anew. That nothing else
depends on two axes together is tried at points across the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.errors import FluidccError
from fluidcc.sweep.grid import Grid

__all__ = ["Part", "Rows"]

Built = tuple[Hashable, NDArray[np.float64]]
Place = tuple[int, ...]
TRIALS = 4  # points at which a row put together is compared with one that is built


@dataclass(frozen=True)
class Part:
    """Points of one structure: which of those that were asked for, and their rows."""

    key: Hashable
    members: NDArray[np.int64]
    rows: NDArray[np.float64]


class Rows:
    """Rows of the points of a grid.

    Parameters
    ----------
    grid : Grid
    build : callable
        From the values of a point to its structure and its row. A `FluidccError` that it raises is the point's own.
    """

    def __init__(self, grid: Grid, build: Callable[[Mapping[str, Any]], Built]) -> None:
        self.grid, self._build = grid, build
        self._built: dict[Place, Built | FluidccError] = {}
        self._slices: dict[Place, _Slice] = {}
        first = self._start()
        self.splitting = tuple(k for k in range(len(grid.axes)) if first is None or self._splits(k, first))

    def parts(self, points: NDArray[np.int64]) -> tuple[list[Part], dict[int, FluidccError]]:
        """The points by structure, in the order they were given, and why some have no row."""
        places = self.grid.places(points)
        by_slice: dict[Place, list[int]] = {}
        for member, at in enumerate(map(tuple, places[list(self.splitting)].T.tolist())):
            by_slice.setdefault(at, []).append(member)
        found: dict[Hashable, list[tuple[Any, Any]]] = {}
        errors: dict[int, FluidccError] = {}
        for at, members in by_slice.items():
            if at not in self._slices:
                self._slices[at] = _Slice(self, at)
            self._slices[at].put(np.array(members), places[:, members], found, errors)
        made = []
        for key, pieces in found.items():
            every = np.concatenate([m for m, _ in pieces])
            order = np.argsort(every)
            made.append(Part(key, every[order], np.concatenate([rows for _, rows in pieces])[order]))
        return made, errors

    def at(self, place: Place) -> Built | FluidccError:
        """The row that is built for a point."""
        if place not in self._built:
            values = {axis.name: axis.values[k] for axis, k in zip(self.grid.axes, place, strict=True)}
            try:
                self._built[place] = self._build(values)
            except FluidccError as error:
                self._built[place] = error
        return self._built[place]

    def _start(self) -> Place | None:
        """A place that can be built, the first of some."""
        for number in np.unique(np.linspace(0, self.grid.size - 1, 20).astype(np.int64)):
            place = tuple(int(k) for k in np.unravel_index(number, self.grid.shape))
            if not isinstance(self.at(place), FluidccError):
                return place
        return None

    def _splits(self, k: int, first: Place) -> bool:
        """Whether an axis changes the structure, or whether there is one."""
        keys = set()
        for j in range(len(self.grid.axes[k].values)):
            built = self.at((*first[:k], j, *first[k + 1 :]))
            keys.add(None if isinstance(built, FluidccError) else built[0])
        return len(keys) > 1


class _Slice:
    """The points at which the axes that change the structure have certain values."""

    def __init__(self, rows: Rows, at: Place) -> None:
        self.rows = rows
        self.first = [0] * len(rows.grid.axes)
        for k, position in zip(rows.splitting, at, strict=True):
            self.first[k] = position
        self.others = [k for k in range(len(self.first)) if k not in rows.splitting]
        self.alone: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        base = rows.at(tuple(self.first))
        if not isinstance(base, FluidccError):
            self.alone = self._independent(base)
            if not self._right():
                self.alone = {}
        self.together = [k for k in self.others if k not in self.alone]

    def put(self, members: Any, places: Any, found: dict[Any, Any], errors: dict[int, FluidccError]) -> None:
        """Add rows of these members to those that were found."""
        rows: dict[Hashable, tuple[list[int], list[Any]]] = {}
        for column, positions in enumerate(places[self.together].T.tolist()):
            built = self._at(dict(zip(self.together, positions, strict=True)))
            if isinstance(built, FluidccError):
                errors[int(members[column])] = built
                continue
            columns, numbers = rows.setdefault(built[0], ([], []))
            columns.append(column)
            numbers.append(built[1])
        for key, (columns, numbers) in rows.items():
            whole = np.array(numbers)
            for k, (where, values) in self.alone.items():
                whole[:, where] = values[places[k, columns]]
            found.setdefault(key, []).append((members[columns], whole))

    def _at(self, changes: Mapping[int, int]) -> Built | FluidccError:
        return self.rows.at(tuple(changes.get(k, position) for k, position in enumerate(self.first)))

    def _independent(self, base: Built) -> dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """By axis that acts alone: the places that it changes, and what it puts there."""
        changes: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        for k in self.others:
            built = [self._at({k: j}) for j in range(len(self.rows.grid.axes[k].values))]
            if any(isinstance(b, FluidccError) or b[0] != base[0] for b in built):
                continue
            table = np.array([b[1] for b in built])  # type: ignore[index]
            differs = (table != base[1]) & ~(np.isnan(table) & np.isnan(base[1]))
            where = np.flatnonzero(differs.any(axis=0))
            changes[k] = (where, table[:, where])
        pairs = [(k, j) for k, j in combinations(changes, 2) if np.intersect1d(changes[k][0], changes[j][0]).size]
        return {k: change for k, change in changes.items() if not any(k in pair for pair in pairs)}

    def _right(self) -> bool:
        """Whether points far from the first get the very rows that are built for them."""
        self.together = [k for k in self.others if k not in self.alone]
        sizes = [len(axis.values) for axis in self.rows.grid.axes]
        for trial in range(1, TRIALS + 1):
            there = {k: (sizes[k] - 1) * trial // TRIALS for k in self.others}
            built = self._at(there)
            if isinstance(built, FluidccError):
                continue
            found: dict[Hashable, Any] = {}
            places = np.array([[there.get(k, self.first[k])] for k in range(len(sizes))])
            self.put(np.array([0]), places, found, {})
            ((_, row),) = found.get(built[0]) or [(None, np.zeros((1, 0)))]
            if not np.array_equal(row[0], built[1], equal_nan=True):
                return False
        return True
