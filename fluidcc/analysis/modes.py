"""What moves at a root: rates by class of flows, and whether they rise together or shift from
one to the other; and of roots at zero the continuum of equilibria behind them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.operating import operating_point
from fluidcc.analysis.point import (
    BUSY,
    LISTS,
    NUMBERS,
    arrivals,
    flows_of,
    link_outputs,
    links_of,
    own_states,
    with_alone,
)
from fluidcc.analysis.wiring import Matrices, sources
from fluidcc.base.errors import InvalidInput, SolverError, warn
from fluidcc.base.tables import InTable
from fluidcc.laws.past import running
from fluidcc.laws.steady import trackers
from fluidcc.numerics.linear.contours import newton
from fluidcc.numerics.linear.pencil import Pencil
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.analysis.point import FlowClass, OperatingPoint
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network import Network
    from fluidcc.numerics.linear.count import RootCount
    from fluidcc.numerics.linear.dlti import DelayLTI

STEP = 1e-40
"""The imaginary step of derivatives, far below rounding."""


def polish(m: Matrices, s: complex) -> complex:
    """The simple root next to `s`."""
    pencil = Pencil(m.entries)
    (root,), (size,) = newton(pencil, np.array([s * pencil.time]), np.empty(0, complex), 50)
    if size * abs(root) > 1e-9 * max(1e-4, abs(root)):  # farther than rounding lets it
        raise SolverError(f"the root near {s:.6g} 1/s is not simple, or could not be followed")
    return complex(root / pencil.time)


# --- what moves at a root -------------------------------------------------------------------------


SHIFT = 0.5
"""A mode shifts rates if their sum, over the sum of their sizes, is at most this on every link
they use.
"""


@dataclass(frozen=True)
class Mode(InTable):
    """A root and what moves with it.

    Attributes
    ----------
    root : complex
        [1/s]
    multiplicity : int
        How often it occurs: N - 1 times for the differences among N identical flows.
    rates : dict of str to complex
        Relative amplitudes of the rates by class of flows; of a class whose own flows differ, 0 on
        average.
    shifts : bool
        Rates shift from flow to flow and the links see little of it: such a mode decides how fast
        flows become fair.
    among : str
        The class of identical flows among which it shifts, or "".
    """

    root: complex
    multiplicity: int
    rates: dict[str, complex]
    shifts: bool
    among: str = ""

    _shown = ("root [1/s]", "half_life [s]", "multiplicity", "shifts", "among")

    @property
    def half_life(self) -> float:
        """Time in which it halves [s]; infinite if it does not decay."""
        return math.log(2.0) / -self.root.real if self.root.real < 0 else math.inf


def modes_of(
    point: OperatingPoint, parts: Mapping[str, DelayLTI], roots: NDArray[np.complex128]
) -> tuple[Mode, ...]:
    """A mode for each of the roots, one of each conjugate pair; `parts` are the closed loop, under
    "", and the differences by class.
    """
    counts = {f.label: f.count for f in point.classes}
    found: list[Mode] = []
    for root in roots.tolist():
        same = 1e-9 * (1 + abs(root))
        if root.imag < 0 or any(abs(root - m.root) <= same for m in found):
            continue
        away = {name: _distance(one.pencil, root) for name, one in parts.items() if one.n_states}
        among = min(away, key=lambda name: away[name])
        if among:
            times = max(int(np.sum(np.abs(roots - root) <= same)), counts[among] - 1)
            found.append(Mode(root, times, dict.fromkeys(counts, 0j), True, among))
        else:
            rates = _rates(parts[""].pencil, root)
            moved = dict(zip(counts, rates.tolist(), strict=True))
            found.append(Mode(root, 1, moved, _shifts(point, rates)))
    return tuple(found)


def _distance(pencil: Pencil, s: complex) -> float:
    """Newton's step towards a root [1/s]: about the distance to it."""
    slope = pencil.values(np.array([s * pencil.time]), scaled=True).slope[0]
    return float(1 / np.abs(slope) / pencil.time)


def _rates(pencil: Pencil, s: complex) -> Any:
    """Amplitudes of the rates at a root, the largest 1."""
    P, n = pencil.matrix(np.array([s * pencil.time]))[0], pencil.size
    if not np.all(np.isfinite(P)):
        raise SolverError(f"the characteristic equation has no finite value at s = {s:.6g} 1/s")
    rates = P[n:, :n] @ np.linalg.svd(P[:n, :n])[2][-1].conj()
    most = rates[np.argmax(np.abs(rates))]
    return rates / most if most != 0 else rates


def _shifts(point: OperatingPoint, rates: Any) -> bool:
    weight = point.count * rates
    if len(rates) < 2:
        return False
    for l in sorted({l for f in point.classes for l in f.route}):
        inside = np.array([l in f.route for f in point.classes])
        size = np.abs(weight[inside]).sum()
        if size > 0.1 * np.abs(weight).sum() and abs(weight[inside].sum()) > SHIFT * size:
            return False
    return True


# --- where an equilibrium is one of a continuum ---------------------------------------------------

# Where the conditions of an equilibrium are redundant, its solutions form a continuum, and each
# direction of it gives a root at zero whatever the parameters are. A root that only passes through
# zero (a fold, a pitchfork) has no such continuum: a step along its null vector leaves the
# conditions unsatisfied to second or third order. So the step is made.


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

DOUBTFUL, FAREST = 1e-9, 1e-2
"""Error of an equilibrium from which on it is asked whether another verdict may be true within it;
and how far."""


@dataclass(frozen=True)
class FreeDirection(InTable):
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

    _shown = ("states", "multiplicity", "among")

    def __str__(self) -> str:
        if self.among:
            return f"differences among {self.among}"
        terms = []
        for name, value in self.states.items():
            size = "" if abs(abs(value) - 1) < 1e-9 else f"{abs(value):.4g} "
            terms.append(f"{'-' if value < 0 else '+'} {size}{name}")
        return " ".join(terms).removeprefix("+ ")


def free_directions(point: OperatingPoint, among: dict[str, int]) -> tuple[FreeDirection, ...]:
    """The continuum of equilibria through a point; empty if it stands alone.

    Parameters
    ----------
    point : OperatingPoint
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
    found += [FreeDirection({name: 1.0}) for f in point.classes for name in runs_on(f)]
    for f in point.classes:
        zeros = among.get(f.label, 0)
        if zeros:
            own, _ = with_alone(point, f.names[0])
            if len(_directions(own)) + len(runs_on(f)) == len(together) + zeros:
                found.append(FreeDirection({}, (f.count - 1) * zeros, f.label))
    return tuple(found)


def left_out(
    point: OperatingPoint, counts: Mapping[str, RootCount]
) -> tuple[tuple[FreeDirection, ...], dict[str, int]]:
    """The directions that account for roots at zero, with a warning, and how many such roots each
    part has.

    Parameters
    ----------
    point : OperatingPoint
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
    chosen = choices(point, found)
    if chosen:
        total = sum(d.multiplicity for d in chosen)
        warn(
            f"the equilibrium is one of a continuum, along {' and along '.join(map(str, chosen))}; "
            f"the verdict leaves out the {f'{total} roots' if total > 1 else 'root'} at zero "
            "that this means; simulate tells where on it a run ends",
            stacklevel=3,
        )
    return found, {name: n for name, n in zeros.items() if name in explained}


def choices(point: OperatingPoint, free: Iterable[FreeDirection]) -> list[FreeDirection]:
    """Those of the directions that are a choice of equilibria, and not of the data under way that
    a state only keeps account of, nor of what runs on.
    """
    runs = {f.label: runs_on(f) for f in point.classes}
    every = {name for names in runs.values() for name in names}
    return [
        d for d in free
        if not (_by_account(point, d) or runs.get(d.among) or (d.states and every >= {*d.states}))
    ]  # fmt: skip


def runs_on(f: FlowClass) -> list[str]:
    """The states of a class that need not rest: see `fluidcc.laws.past.running`."""
    return [f"{f.label}.{plain(z)}" for z in running(f.spec.law)]


def _by_account(point: OperatingPoint, direction: FreeDirection) -> bool:
    for f in point.classes:
        law = f.spec.law
        states = {plain(z) for z, account in trackers(law).items() if account.data != 0}
        if states:  # and of what follows from the window with them
            states |= {plain(z) for z in getattr(law, "steady", {}) if z != "rate"}
        if states and (
            direction.among == f.label or any(f"{f.label}.{z}" in direction.states for z in states)
        ):
            return True
    return False


ZERO = 1e-6
"""Modulus, in one over the longest delay, below which a root that ought to be zero counts as
zero.
"""


def without_zeros(
    system: DelayLTI, roots: NDArray[np.complex128], zeros: int
) -> NDArray[np.complex128]:
    """Roots of a system without those at zero, of which there ought to be so many."""
    if not zeros:
        return roots
    at_zero = int((np.abs(roots) * system.pencil.time <= ZERO).sum())
    return roots[np.sort(np.argsort(np.abs(roots), kind="stable")[min(zeros, at_zero) :])]


def _directions(point: OperatingPoint) -> list[dict[str, float]]:
    """A basis of the null space of the conditions, if every step along it can be made; else
    nothing.
    """
    unknowns, keep, size, row, column, (U, values, Vh) = _decomposed(point)
    rank = int(np.sum(values > SINGULAR * values[0]))
    if rank == len(values):
        return []
    back = Vh[:rank].T / values[:rank] @ U[:, :rank].T
    found = []
    noise = (
        8 * np.finfo(float).eps * values[0] / values[rank - 1]
    )  # what rounding mixes in of its neighbours
    terms = np.abs((U[:, : len(values)] * values) @ Vh[: len(values)]) @ (np.abs(size) / column)
    rounding = 8 * np.finfo(float).eps * terms  # of the residual
    for direction in _reduced(Vh[rank:], noise):
        move = column * direction
        most = np.max(np.abs(move) / np.where(size > 0, size, np.inf))
        step = STRIDE / max(most, 1e-300) * move
        if most == 0 or not _closes(point, unknowns, keep, step, row, column, back, rounding):
            return []
        found.append(_named(point, unknowns, move))
    return found


def _decomposed(point: OperatingPoint) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The unknowns, which conditions are theirs, their sizes, and the singular value decomposition
    of the derivatives with the factors that scale these.
    """
    unknowns, keep, size, J = conditions(point)
    J = _without_rounding(J, size)
    row = 1 / np.maximum(np.abs(J).max(axis=1), 1e-300)
    largest = np.abs(J * row[:, None]).max(axis=0)
    column = np.where(largest > 0, 1 / np.maximum(largest, 1e-300), np.where(size > 0, size, 1.0))
    return unknowns, keep, size, row, column, np.linalg.svd(J * row[:, None] * column)


def resting_point(
    net: Network, at: float | str | Equilibrium, delays: str = "fifo", alone: bool = False
) -> OperatingPoint:
    """The operating point; an equilibrium that is given must be one of this network. Links may be
    `alone`, without flows that listen.

    Raises
    ------
    FluidccError
        As `operating_point`; if the network does not rest there, naming a state that moves.
    """
    point = operating_point(net, at, delays, alone=alone)
    if isinstance(at, float | int | str):
        return point
    unknowns, keep, size, J = conditions(point)
    over = np.abs(residual(point)[keep]) - FAREST * (np.abs(J) @ np.abs(size))
    if np.max(over, initial=0.0) > 0:
        name = _name(point, unknowns[int(np.argmax(over))])
        raise InvalidInput(
            f"the equilibrium given as at= is none of this network{name and f': {name} moves'}; "
            "give one of fluidcc.equilibrium(net), or leave at out"
        )
    return point


def on_both_sides(point: OperatingPoint) -> list[OperatingPoint]:
    """Where the equilibrium may be too, by its error, along what the conditions tell least of; none
    where it is well known, or one of a continuum.
    """
    error = min(float(point.rest.error), FAREST) if point.rest is not None else 0.0
    if error < DOUBTFUL or _directions(point):
        return []
    unknowns, _, size, _, column, (_, _, Vh) = _decomposed(point)
    move = column * Vh[-1]
    move *= error / np.max(np.abs(move) / np.where(size > 0, size, np.inf))
    return [shifted(point, unknowns, move), shifted(point, unknowns, -move)]


def _without_rounding(J: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The derivatives without those that are only what is left where terms cancel.

    An unknown that nothing depends on would else differ from the others by the last bits.
    """
    # of an unknown that is 0 it is not known what is little
    terms = np.where(sizes > 0, np.abs(J) * sizes, np.inf)
    largest = np.where(np.isfinite(terms), terms, 0.0).max(axis=1, keepdims=True)
    return np.where(terms < ROUNDING * largest, 0.0, J)


def _closes(
    point: OperatingPoint, unknowns: Any, keep: Any, step: Any, row: Any, column: Any, back: Any,
    rounding: Any,
) -> bool:  # fmt: skip
    """Whether there is an equilibrium a step away, up to a correction across the null space."""
    there = shifted(point, unknowns, step)
    size = float(np.linalg.norm(step / column)) / STRIDE
    for _ in range(40):
        left = row * residual(there)[keep]
        if not np.all(np.isfinite(left)):
            return False
        if np.linalg.norm(np.maximum(np.abs(left) - rounding, 0.0)) <= CLOSED * size:
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


def _named(point: OperatingPoint, unknowns: Any, move: Any) -> dict[str, float]:
    """The states that move, the first by one."""
    states: dict[str, float] = {}
    for slot, value in zip(unknowns, move, strict=True):
        if value != 0 and (name := _name(point, slot)):
            states[name] = float(value)
    first = next(iter(states.values()), 1.0)
    return {name: value / first for name, value in states.items()}


# --- the unknowns and conditions of an equilibrium, in one order ---------------------------------


def residual(point: OperatingPoint) -> Any:
    """What vanishes at an equilibrium, one entry an unknown of `_slots`, in its order."""
    parts = []
    flows, links = flows_of(point), links_of(point)
    for g in flows.groups:
        found = flows.at(g)
        parts.append(found.flow[g.free])
        parts.append(found.out[list(g.law.out).index("rate")] - point.x[list(g.members)])
    parts.append(arrivals(point) - point.y)
    let_in = point.y * (1 - link_outputs(point)["drop"])
    parts.append((let_in / point.c - 1)[point.mode == BUSY])
    for g in links.groups:
        own = own_states(g)
        if own.any():
            parts.append(links.at(g).flow[own])
    return np.concatenate([np.ravel(part) for part in parts])


def _slots(point: OperatingPoint) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for g in point.flow_groups:
        found += [("z", g.members[j], i) for i, j in zip(*np.nonzero(g.free), strict=True)]
        found += [("x", k, 0) for k in g.members]
    found += [("y", l, 0) for l in range(len(point.links))]
    found += [("q", l, 0) for l in np.flatnonzero(point.mode == BUSY).tolist()]
    for g in point.link_groups:
        own = own_states(g)
        found += [("v", g.members[j], i) for i, j in zip(*np.nonzero(own), strict=True)]
    return found


def shifted(point: OperatingPoint, slots: list[tuple[str, int, int]], step: Any) -> OperatingPoint:
    """The point with its unknowns changed by `step`, which may be complex."""

    def copy(v: Any) -> Any:
        return np.array(v, np.result_type(v, np.asarray(step)))

    new = point.changed(
        **{name: copy(getattr(point, name)) for name in ("count", *NUMBERS)},
        **{name: [copy(v) for v in getattr(point, name)] for name in LISTS},
    )
    for (kind, i, j), value in zip(slots, step, strict=True):
        if kind in ("z", "v"):
            getattr(new, kind)[i][j] += value
        else:
            getattr(new, kind)[i] += value
            if kind == "q":
                law: Any = new.links[i].law
                new.v[i][law.states.index(law.queue)] = new.q[i]
    return new


def conditions(
    point: OperatingPoint,
) -> tuple[list[tuple[str, int, int]], NDArray[np.bool_], Any, NDArray[np.float64]]:
    """The unknowns that are not trackers, the conditions that go with them, their values, and
    dF/dX.
    """
    idle = {name for s in sources(point) for name in s.trackers}
    idle |= {name for f in point.classes for name in runs_on(f)}
    slots = _slots(point)
    keep = np.array([_name(point, slot) not in idle for slot in slots])
    unknowns = [slot for slot, wanted in zip(slots, keep, strict=True) if wanted]
    J = np.empty((len(unknowns), len(unknowns)))
    for column, slot in enumerate(unknowns):
        J[:, column] = residual(shifted(point, [slot], [1j * STEP])).imag[keep] / STEP
    size = np.array([np.atleast_1d(getattr(point, kind)[i])[j] for kind, i, j in unknowns], float)
    return unknowns, keep, size, J


def _name(point: OperatingPoint, slot: tuple[str, int, int]) -> str:
    """The name of an unknown that is a state, or ""."""
    kind, i, j = slot
    if kind in ("x", "y"):
        return ""
    if kind == "z":
        return f"{point.classes[i].label}.{plain(point.classes[i].spec.law.states[j])}"
    law: Any = point.links[i].law
    return f"{point.links[i].name}.{plain(law.queue if kind == 'q' else law.states[j])}"
