"""Roots at s = 0 that belong to the structure: directions in which the equilibrium is not
determined.

Where the conditions of an equilibrium are redundant, its solutions form a continuum, and each
direction of it gives a root at zero whatever the parameters are. A root that only passes through
zero (a fold, a pitchfork) has no such continuum: a step along its null vector leaves the conditions
unsatisfied to second or third order. So the step is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.change import conditions, shifted, sizes
from fluidcc.analysis.operating_point import with_alone
from fluidcc.analysis.point import residual
from fluidcc.base.errors import warn
from fluidcc.laws.steady import trackers
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point
    from fluidcc.numerics.linear.count import RootCount


__all__ = ["FreeDirection", "free_directions", "left_out", "without_zeros"]

SINGULAR = 1e-11
"""Singular values below this, of conditions scaled to one, count as zero."""
STRIDE = 1e-2
"""Length of the step along a null vector, relative to the unknowns."""
CLOSED = 1e-11
"""What may be left of the conditions after it; a pitchfork leaves about the cube of the stride."""
ROUNDING = 1e-13
"""Relative change of a condition by all of an unknown, beside that by others, below which there
is none.
"""


@dataclass(frozen=True)
class FreeDirection:
    """A direction in which every point near the equilibrium is one too.

    Attributes
    ----------
    states : dict of str to float
        How much each state moves along it: the first by 1 of its unit, the others in theirs.
    multiplicity : int
        How many roots at zero it stands for: N - 1 for the differences among N identical flows.
    among : str
        The class of identical flows whose differences it is, or "".
    """

    states: dict[str, float]
    multiplicity: int = 1
    among: str = ""

    def __str__(self) -> str:
        if self.among:
            return f"differences among {self.among}"
        terms = []
        for name, value in self.states.items():
            size = "" if abs(abs(value) - 1) < 1e-9 else f"{abs(value):.4g} "
            terms.append(f"{'-' if value < 0 else '+'} {size}{name}")
        return " ".join(terms).removeprefix("+ ")


def free_directions(point: Point, among: dict[str, int]) -> tuple[FreeDirection, ...]:
    """The continuum of equilibria through a point; empty if it stands alone.

    Parameters
    ----------
    point : Point
        Where.
    among : dict of str to int
        Classes of identical flows whose differences have roots at zero, and how many.

    Returns
    -------
    tuple of FreeDirection
        Of the network with each class moving as one, then of the differences inside the classes.
    """
    together = _directions(point)
    found = [FreeDirection(states) for states in together]
    for f in point.classes:
        zeros = among.get(f.label, 0)
        if zeros:
            own, _ = with_alone(point, f.names[0])
            if len(_directions(own)) == len(together) + zeros:
                found.append(FreeDirection({}, (f.count - 1) * zeros, f.label))
    return tuple(found)


def left_out(
    point: Point, counts: Mapping[str, RootCount]
) -> tuple[tuple[FreeDirection, ...], dict[str, int]]:
    """The directions that account for roots at zero, with a warning, and how many such roots each
    part has.

    Parameters
    ----------
    point : Point
        Where.
    counts : mapping of str to RootCount
        Of the loop, under "", and of the differences inside each class of identical flows. A part
        keeps its roots at zero if the continuum does not explain all of them: a double one drifts,
        whatever the equilibria are.
    """
    zeros = {name: c.at_zero for name, c in counts.items() if c.at_zero}
    if not zeros:
        return (), {}
    found = free_directions(point, {name: n for name, n in zeros.items() if name})
    if sum(not d.among for d in found) != zeros.get("", 0):
        found = tuple(d for d in found if d.among)
    explained = {d.among for d in found}
    told = [d for d in found if not _by_account(point, d)]
    if told:
        total = sum(d.multiplicity for d in told)
        warn(
            f"the equilibrium is one of a continuum, along {' and along '.join(map(str, told))}; "
            f"the verdict leaves out the {f'{total} roots' if total > 1 else 'root'} at zero "
            "that this means",
            stacklevel=3,
        )
    return found, {name: n for name, n in zeros.items() if name in explained}


def _by_account(point: Point, direction: FreeDirection) -> bool:
    """Whether a direction is that of data under way, which a state only keeps account of: no
    choice of equilibria.
    """
    for f in point.classes:
        states = {plain(z) for z, account in trackers(f.spec.law).items() if account.data != 0}
        if states and (
            direction.among == f.label or any(f"{f.label}.{z}" in direction.states for z in states)
        ):
            return True
    return False


def without_zeros(roots: NDArray[np.complex128], zeros: int) -> NDArray[np.complex128]:
    """The roots without the `zeros` that lie nearest to zero."""
    return roots[np.sort(np.argsort(np.abs(roots), kind="stable")[zeros:])]


def _directions(point: Point) -> list[dict[str, float]]:
    """A basis of the null space of the conditions, if every step along it can be made; else
    nothing.
    """
    unknowns, keep, J = conditions(point)
    size = sizes(point, unknowns)
    J = _without_rounding(J, size)
    row = 1 / np.maximum(np.abs(J).max(axis=1), 1e-300)
    largest = np.abs(J * row[:, None]).max(axis=0)
    column = np.where(largest > 0, 1 / np.maximum(largest, 1e-300), np.where(size > 0, size, 1.0))
    U, values, Vh = np.linalg.svd(J * row[:, None] * column)
    rank = int(np.sum(values > SINGULAR * values[0]))
    if rank == len(values):
        return []
    back = Vh[:rank].T / values[:rank] @ U[:, :rank].T
    found = []
    noise = (
        8 * np.finfo(float).eps * values[0] / values[rank - 1]
    )  # what rounding mixes in of its neighbours
    for direction in _reduced(Vh[rank:], noise):
        move = column * direction
        most = np.max(np.abs(move) / np.where(size > 0, size, np.inf))
        if most == 0 or not _closes(point, unknowns, keep, STRIDE / most * move, row, column, back):
            return []
        found.append(_named(point, unknowns, move))
    return found


def _without_rounding(J: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The derivatives without those that are only what is left where terms cancel.

    An unknown that nothing depends on would else be told from the others by the last bits.
    """
    # of an unknown that is 0 it is not known what is little
    terms = np.where(sizes > 0, np.abs(J) * sizes, np.inf)
    largest = np.where(np.isfinite(terms), terms, 0.0).max(axis=1, keepdims=True)
    return np.where(terms < ROUNDING * largest, 0.0, J)


def _closes(
    point: Point, unknowns: Any, keep: Any, step: Any, row: Any, column: Any, back: Any
) -> bool:
    """Whether there is an equilibrium a step away, up to a correction across the null space."""
    there = shifted(point, unknowns, step)
    size = float(np.linalg.norm(step / column)) / STRIDE
    for _ in range(40):
        left = row * residual(there)[keep]
        if not np.all(np.isfinite(left)):
            return False
        if np.linalg.norm(left) <= CLOSED * size:
            return True
        there = shifted(there, unknowns, -column * (back @ left))
    return False


def _reduced(basis: Any, noise: float) -> Any:
    """Row-reduced with complete pivoting, so that each direction names as few unknowns as may
    be.
    """
    rows = basis.copy()
    for k in range(len(rows)):
        i, j = np.unravel_index(np.argmax(np.abs(rows[k:])), rows[k:].shape)
        rows[[k, k + i]] = rows[[k + i, k]]
        rows[k] /= rows[k, j]
        others = np.arange(len(rows)) != k
        rows[others] -= rows[others, j][:, None] * rows[k]
    rows[np.abs(rows) < max(1e-9, noise)] = 0.0
    return rows


def _named(point: Point, unknowns: Any, move: Any) -> dict[str, float]:
    """The states that move, the first by one."""
    states: dict[str, float] = {}
    for (kind, i, j), value in zip(unknowns, move, strict=True):
        if value == 0 or kind in ("x", "y"):
            continue
        if kind == "z":
            name = f"{point.classes[i].label}.{plain(point.classes[i].spec.law.states[j])}"
        else:
            law: Any = point.links[i].law
            name = f"{point.links[i].name}.{plain(law.queue if kind == 'q' else law.states[j])}"
        states[name] = float(value)
    first = next(iter(states.values()), 1.0)
    return {name: value / first for name, value in states.items()}
