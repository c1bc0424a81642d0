"""How the linearisation changes with a parameter, exactly, by a complex step through everything;
and where the equilibrium is one of a continuum.

The equilibrium moves as the implicit function theorem says: with F(X, p) = 0 the conditions of
`fluidcc.analysis.operating_point`, dX/dp = -(dF/dX)^-1 dF/dp. Every part of F and of the matrices
is analytic on its branch. An imaginary step far below rounding leaves the real parts alone, and the
imaginary parts are the derivatives, to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import (
    BUSY,
    FULL,
    LISTS,
    NUMBERS,
    LawGroup,
    arrivals,
    flows_of,
    link_outputs,
    links_of,
    own_states,
    with_alone,
)
from fluidcc.analysis.wiring import ARRAYS, Matrices, sources
from fluidcc.base.errors import SolverError, warn
from fluidcc.base.tables import InTable
from fluidcc.laws.steady import trackers
from fluidcc.network.parameters import Parameters
from fluidcc.network.wired import Wired
from fluidcc.symbols import SOURCE_INPUTS, c, e, e_b, packet, plain, q_max

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point
    from fluidcc.laws import Law
    from fluidcc.numerics.linear.count import RootCount

STEP = 1e-40
EVENED = 12
"""Times that rows and columns are evened out; each halves what their sizes differ by, as powers."""


@dataclass(frozen=True)
class Parameter(InTable):
    """One number of a network; identical flows have it together.

    Attributes
    ----------
    name : str
        ``flow.eta``, ``link.capacity``, ``link.delay``, ...
    kind : {"flow", "link"}
    index : int
        Of the class or link.
    what : {"parameter", "argument"}
        Whether it is of the law, or an argument of `Network.flow` or `Network.link`.
    value : float
        In SI units.
    units : str
    """

    name: str
    kind: str
    index: int
    what: str
    value: float
    units: str

    _shown = ("name", "value", "units")

    @property
    def key(self) -> str:
        """Its name without that of the flow or link."""
        return self.name.rpartition(".")[2]

    def put(self, given: Parameters, point: Point, value: Any) -> None:
        """Set it in every flow or link that has it."""
        if self.kind == "flow":
            names = point.classes[self.index].names
        else:
            names = (point.links[self.index].name,)
        for name in names:
            given.set[self.kind, name, self.what, self.key] = value
            # A buffer keeps its bits, also one that was given in seconds.
            if self.key == "capacity" and np.isfinite(size := given.net.links[name].buffer):
                given.set.setdefault(("link", name, "argument", "buffer"), size)


def parameters(point: Point) -> list[Parameter]:
    """Every parameter the linearisation depends on; those of identical flows are one."""
    found: list[Parameter] = []

    def add(kind: str, i: int, label: str, law: Any, values: Any, arguments: Any) -> None:
        for s, value in zip(law.params, values.tolist(), strict=True):
            name = f"{label}.{plain(s)}"
            found.append(Parameter(name, kind, i, "parameter", value, law.units.get(s, "1")))
        for key, value, units in arguments:
            found.append(Parameter(f"{label}.{key}", kind, i, "argument", float(value), units))

    for k, f in enumerate(point.classes):
        delays = ("access_delay", point.access[k], "s"), ("return_delay", point.back[k], "s")
        add("flow", k, f.label, f.spec.law, point.p[k], delays)
    for l in sorted({l for f in point.classes for l in f.route}):
        own = [("capacity", point.c[l], "bit/s"), ("delay", point.delay[l], "s")]
        if point.mode[l] == FULL:
            own.append(("buffer", point.q_max[l] * point.c[l], "bit"))
        add("link", l, point.links[l].name, point.links[l].law, point.lp[l], own)
    return found


def _copied(point: Point, copy: Any) -> Point:
    """The point with each of its arrays copied by a function."""
    numbers = {name: copy(getattr(point, name)) for name in ("count", *NUMBERS)}
    return point.changed(
        **numbers, **{name: [copy(v) for v in getattr(point, name)] for name in LISTS}
    )


def _complex(point: Point) -> Point:
    return _copied(point, lambda v: np.array(v, complex))


def real_part(point: Point) -> Point:
    """The point in real numbers."""
    return _copied(point, lambda v: np.real(v).copy())


def renumbered(point: Point, given: Parameters) -> Point:
    """The point, in complex numbers, with what is set in `given`, its network with other numbers;
    the equilibrium is as it was.
    """
    new = _complex(point)
    wired = Wired(given, point.at, tuple(f.names for f in point.classes))
    for l, link in enumerate(wired.links):
        if given.touches("link", link.name):
            own = wired.link(l)
            new.delay[l] = given.link(link.name, 1.0)[1]
            new.c[l], new.q_max[l] = own[c], own[q_max]
            new.lp[l][:] = [own[s] for s in link.law.params]
            if point.mode[l] == FULL:
                new.q[l] = new.q_max[l]
                _set_queue(new, l, new.q[l])
    for k, f in enumerate(point.classes):
        own = wired.flow(k, f.spec.law)
        new.access[k], new.back[k] = wired.delays[k][0], own[e_b]
        if given.touches("flow", f.name):
            new.p[k][:] = [own[s] for s in f.spec.law.params]
    return new


def _set_queue(point: Point, l: int, value: Any) -> None:
    law: Any = point.links[l].law
    point.v[l][law.states.index(law.queue)] = value


# --- the unknowns and conditions of an equilibrium, in one order ---------------------------------


def residual(point: Point, kept: bool = False) -> Any:
    """What vanishes at an equilibrium, one entry an unknown of `_slots`, in its order.

    A state that keeps account of what is under way stands still wherever the rate does, which
    leaves it open. With `kept` it is right: a rate x has x RTT under way.
    """
    parts = []
    flows, links = flows_of(point), links_of(point)
    for g in flows.groups:
        found = flows.at(g)
        flow = _on_account(point, g, flows.u, found.flow) if kept else found.flow
        parts.append(flow[g.free])
        parts.append(found.out[list(g.law.out).index("rate")] - point.x[list(g.members)])
    parts.append(arrivals(point) - point.y)
    let_in = point.y * (1 - link_outputs(point)["drop"])
    parts.append((let_in / point.c - 1)[point.mode == BUSY])
    for g in links.groups:
        own = own_states(g)
        if own.any():
            parts.append(links.at(g).flow[own])
    return np.concatenate([np.ravel(part) for part in parts])


def accounts(law: Law) -> dict[int, Any]:
    """The states of a law that keep account of what is under way, by place, and what they show
    for each bit of it.
    """
    found = trackers(law)
    return {
        i: found[z].data
        for i, z in enumerate(law.states)
        if z in found and found[z].data != 0 and found[z].delay == 0
    }


def _on_account(point: Point, g: LawGroup, u: Any, flow: Any) -> Any:
    """The derivatives of the states of a group, but for those on account what they are off by
    [packet].
    """
    own = accounts(g.law)
    if not own:
        return flow
    flow = np.array(flow, np.result_type(flow, *point.z, point.x))
    for j, k in enumerate(g.members):
        trip = u[SOURCE_INPUTS.index(e)][k] + point.back[k]
        for i, data in own.items():
            share = float(data.xreplace({packet: float(np.real(point.packet[k]))}))
            flow[i, j] = point.z[k][i] - share * point.x[k] * trip
    return flow


def _slots(point: Point) -> list[tuple[str, int, int]]:
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


def _moved(point: Point, slots: list[tuple[str, int, int]], step: Any) -> Point:
    """The point with its unknowns changed by `step`, in complex numbers."""
    new = _complex(point)
    for (kind, i, j), value in zip(slots, step, strict=True):
        if kind in ("z", "v"):
            getattr(new, kind)[i][j] += value
        else:
            getattr(new, kind)[i] += value
            if kind == "q":
                _set_queue(new, i, new.q[i])
    return new


def shifted(point: Point, slots: list[tuple[str, int, int]], step: Any) -> Point:
    """The point with its unknowns changed by `step`, in real numbers."""
    return real_part(_moved(point, slots, step))


def conditions(
    point: Point, kept: bool = False
) -> tuple[list[tuple[str, int, int]], NDArray[np.bool_], NDArray[np.float64]]:
    """The unknowns that are not trackers, the conditions that go with them, and dF/dX; `kept` as
    for `residual`.
    """
    idle = {name for s in sources(point) for name in s.trackers}
    slots = _slots(point)
    keep = np.array([_name(point, slot) not in idle for slot in slots])
    unknowns = [slot for slot, wanted in zip(slots, keep, strict=True) if wanted]
    J = np.empty((len(unknowns), len(unknowns)))
    for column, slot in enumerate(unknowns):
        J[:, column] = residual(_moved(point, [slot], [1j * STEP]), kept).imag[keep] / STEP
    return unknowns, keep, J


def sizes(point: Point, unknowns: list[tuple[str, int, int]]) -> NDArray[np.float64]:
    """The values of some unknowns at a point."""
    return np.array([np.atleast_1d(getattr(point, kind)[i])[j] for kind, i, j in unknowns], float)


def _name(point: Point, slot: tuple[str, int, int]) -> str:
    """The name of an unknown that is a state, or ""."""
    kind, i, j = slot
    if kind in ("x", "y"):
        return ""
    if kind == "z":
        return f"{point.classes[i].label}.{plain(point.classes[i].spec.law.states[j])}"
    law: Any = point.links[i].law
    return f"{point.links[i].name}.{plain(law.queue if kind == 'q' else law.states[j])}"


class Response:
    """How the equilibrium at a point answers to each parameter."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.values = {p.name: p.value for p in parameters(point)}
        self.unknowns, self.keep, J = conditions(point, kept=True)
        self.row, self.column = np.ones(len(J)), np.ones(J.shape[1])
        for _ in range(EVENED):  # Ruiz's scaling, so that no unit of time or data is preferred
            size = np.abs(J * self.row[:, None] * self.column)
            self.row /= np.sqrt(np.maximum(size.max(axis=1), 1e-300))
            self.column /= np.sqrt(np.maximum(size.max(axis=0), 1e-300))
        self.J = J * self.row[:, None] * self.column
        values = np.linalg.svd(self.J, compute_uv=False)
        if values[-1] < 1e-13 * values[0]:
            raise SolverError(
                "the equilibrium is not unique (the network has redundant constraints there), so "
                "it does not answer to parameters in one way; change a capacity or a route a "
                "little"
            )

    def step(self, F: Any) -> NDArray[np.float64]:
        """Newton's step from conditions F."""
        return np.asarray(
            -self.column * np.linalg.solve(self.J, self.row * np.asarray(F)[self.keep])
        )

    def to(self, p: Parameter) -> Point:
        """The point, complex: its imaginary parts are `STEP` times the total derivatives by that
        parameter.
        """
        given = self.point.given.part()
        p.put(given, self.point, self.values[p.name] + 1j * STEP)
        new = renumbered(self.point, given)
        return _moved(
            new, self.unknowns, 1j * STEP * self.step(residual(new, kept=True).imag / STEP)
        )


def split(m: Matrices) -> tuple[Matrices, Matrices]:
    """The matrices of a complex point, and their derivatives."""
    value = {name: np.real(getattr(m, name)) for name in ARRAYS}
    slope = {name: np.imag(getattr(m, name)) / STEP for name in ARRAYS}
    return replace(m, **value), replace(m, **slope)


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
            "that this means; simulate tells where on it a run ends",
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
    for slot, value in zip(unknowns, move, strict=True):
        if value != 0 and (name := _name(point, slot)):
            states[name] = float(value)
    first = next(iter(states.values()), 1.0)
    return {name: value / first for name, value in states.items()}
