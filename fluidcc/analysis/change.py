"""How the linearisation changes with a parameter: exactly, by a complex step through everything.

The equilibrium moves as the implicit function theorem says: with F(X, p) = 0 the conditions of
`fluidcc.analysis.operating_point`, dX/dp = -(dF/dX)^-1 dF/dp. Every part of F and of the matrices
is analytic on its branch. An imaginary step far below rounding leaves the real parts alone, and the
imaginary parts are the derivatives, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import BUSY, FULL, LISTS, NUMBERS, own_states, residual
from fluidcc.analysis.signals import sources
from fluidcc.analysis.wiring import Matrices
from fluidcc.base.errors import SolverError
from fluidcc.equilibria.assembly import flow_numbers, link_numbers
from fluidcc.network.parameters import Parameters
from fluidcc.symbols import c, e_b, plain, q_max

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point


__all__ = [
    "Parameter", "Response", "conditions", "parameters", "real_part", "renumbered", "shifted",
    "sizes", "split",
]  # fmt: skip

STEP = 1e-40


@dataclass(frozen=True)
class Parameter:
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
    new, net = _complex(point), given.net
    for l, link in enumerate(net.links.values()):
        if given.touches("link", link.name):
            own = link_numbers(given, link, float(point.c[l]))
            new.delay[l] = given.link(link.name, 1.0)[1]
            new.c[l], new.q_max[l] = own[c], own[q_max]
            new.lp[l][:] = [own[s] for s in link.law.params]
            if point.mode[l] == FULL:
                new.q[l] = new.q_max[l]
                _set_queue(new, l, new.q[l])
    for k, f in enumerate(point.classes):
        law = net.flows[f.name].law
        own = flow_numbers(given, f.name, law)
        new.access[k], new.back[k] = given.flow(f.name)[0], own[e_b]
        if given.touches("flow", f.name):
            new.p[k][:] = [own[s] for s in law.params]
    return new


def _set_queue(point: Point, l: int, value: Any) -> None:
    law: Any = point.links[l].law
    point.v[l][law.states.index(law.queue)] = value


# --- the unknowns of an equilibrium, in the order of `residual` -----------------------------------


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
    """The point with its unknowns changed by `step`; `point` must be complex and is changed in
    place.
    """
    for (kind, i, j), value in zip(slots, step, strict=True):
        if kind in ("z", "v"):
            getattr(point, kind)[i][j] += value
        else:
            getattr(point, kind)[i] += value
            if kind == "q":
                _set_queue(point, i, point.q[i])
    return point


def shifted(point: Point, slots: list[tuple[str, int, int]], step: Any) -> Point:
    """The point with its unknowns changed by `step`, in real numbers."""
    return real_part(_moved(_complex(point), slots, step))


def conditions(
    point: Point, kept: bool = False
) -> tuple[list[tuple[str, int, int]], NDArray[np.bool_], NDArray[np.float64]]:
    """The unknowns that are not trackers, the conditions that go with them, and dF/dX; `kept` as
    for `residual`.
    """
    idle = {name for s in sources(point) for name in s.trackers}
    slots = _slots(point)
    keep = np.array([
        not (
            kind == "z"
            and f"{point.classes[i].label}.{plain(point.classes[i].spec.law.states[j])}" in idle
        )
        for kind, i, j in slots
    ])  # fmt: skip
    unknowns = [slot for slot, wanted in zip(slots, keep, strict=True) if wanted]
    J = np.empty((len(unknowns), len(unknowns)))
    for column, slot in enumerate(unknowns):
        J[:, column] = (
            residual(_moved(_complex(point), [slot], [1j * STEP]), kept).imag[keep] / STEP
        )
    return unknowns, keep, J


def sizes(point: Point, unknowns: list[tuple[str, int, int]]) -> NDArray[np.float64]:
    """The values of some unknowns at a point."""
    return np.array([
        getattr(point, kind)[i][j] if kind in ("z", "v") else getattr(point, kind)[i]
        for kind, i, j in unknowns
    ], float)  # fmt: skip


class Response:
    """How the equilibrium at a point answers to each parameter."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.values = {p.name: p.value for p in parameters(point)}
        self.unknowns, self.keep, J = conditions(point, kept=True)
        self.row = 1 / np.maximum(np.abs(J).max(axis=1), 1e-300)
        self.column = 1 / np.maximum(np.abs(J * self.row[:, None]).max(axis=0), 1e-300)
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
        given = Parameters(self.point.net)
        p.put(given, self.point, self.values[p.name] + 1j * STEP)
        new = renumbered(self.point, given)
        return _moved(
            new, self.unknowns, 1j * STEP * self.step(residual(new, kept=True).imag / STEP)
        )


def split(m: Matrices) -> tuple[Matrices, Matrices]:
    """The matrices of a complex point, and their derivatives."""
    names = ("A", "B", "C", "D", "delays")
    value = {name: np.real(getattr(m, name)) for name in names}
    slope = {name: np.imag(getattr(m, name)) / STEP for name in names}
    return replace(m, **value), replace(m, **slope)
