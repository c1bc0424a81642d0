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

from fluidcc.analysis.operating_point import BUSY, FULL, own_states, residual
from fluidcc.analysis.signals import sources
from fluidcc.analysis.wiring import Matrices
from fluidcc.base.errors import SolverError, UnknownName
from fluidcc.network.patterns import near
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.analysis.operating_point import Point


__all__ = [
    "Parameter", "Response", "conditions", "nudge", "parameter", "parameters", "real_part",
    "shifted", "split",
]  # fmt: skip

STEP = 1e-40
_NUMBERS = (
    "z",
    "p",
    "v",
    "lp",
    "count",
    "access",
    "back",
    "packet",
    "c",
    "delay",
    "q_max",
    "q",
    "x",
    "y",
)


@dataclass(frozen=True)
class Parameter:
    """One number of a network.

    Attributes
    ----------
    name : str
        ``flow.eta``, ``link.capacity``, ``link.delay``, ...
    kind : str
        ``"flow law"``, ``"link law"``, or the name of the argument of `Network.flow` or
        `Network.link`.
    index : int
        Of the class or link.
    place : int
        Of the parameter in its law.
    value : float
        In SI units.
    units : str
    """

    name: str
    kind: str
    index: int
    place: int
    value: float
    units: str


def parameters(point: Point) -> list[Parameter]:
    """Every parameter the linearisation depends on; those of identical flows are one."""
    found = []
    law: Any
    for k, f in enumerate(point.classes):
        law = f.spec.law
        for i, (s, value) in enumerate(law.params.items()):
            found.append(
                Parameter(
                    f"{f.label}.{plain(s)}", "flow law", k, i, float(value), law.units.get(s, "1")
                )
            )
        for kind, number in (("access_delay", point.access[k]), ("return_delay", point.back[k])):
            found.append(Parameter(f"{f.label}.{kind}", kind, k, 0, float(number), "s"))
    used = {l for f in point.classes for l in f.route}
    for l in sorted(used):
        name, law = point.links[l].name, point.links[l].law
        for i, (s, value) in enumerate(law.params.items()):
            found.append(
                Parameter(
                    f"{name}.{plain(s)}", "link law", l, i, float(value), law.units.get(s, "1")
                )
            )
        found.append(Parameter(f"{name}.capacity", "capacity", l, 0, float(point.c[l]), "bit/s"))
        found.append(Parameter(f"{name}.delay", "delay", l, 0, float(point.delay[l]), "s"))
        if point.mode[l] == FULL:
            found.append(
                Parameter(
                    f"{name}.buffer", "buffer", l, 0, float(point.q_max[l] * point.c[l]), "bit"
                )
            )
    return found


def parameter(point: Point, name: str) -> Parameter:
    """The parameter of that name."""
    known = {p.name: p for p in parameters(point)}
    if name not in known:
        raise UnknownName(f"the linearisation has no parameter {name!r}; {near(name, known)}")
    return known[name]


def _complex(point: Point) -> Point:
    def copy(value: Any) -> Any:
        return (
            [np.array(v, complex) for v in value]
            if isinstance(value, list)
            else np.array(value, complex)
        )

    return point.changed(**{name: copy(getattr(point, name)) for name in _NUMBERS})


def real_part(point: Point) -> Point:
    """The point in real numbers."""

    def copy(value: Any) -> Any:
        return (
            [np.real(v).copy() for v in value] if isinstance(value, list) else np.real(value).copy()
        )

    return point.changed(**{name: copy(getattr(point, name)) for name in _NUMBERS})


def nudge(point: Point, p: Parameter, step: complex) -> Point:
    """The point, in complex numbers, with that parameter a step away and the equilibrium as it
    was.
    """
    new, i = _complex(point), p.index
    if p.kind == "flow law":
        new.p[i][p.place] += step
    elif p.kind == "link law":
        new.lp[i][p.place] += step
    elif p.kind == "access_delay":
        new.access[i] += step
        if point.classes[i].spec.return_delay is None:
            new.back[i] += step
    elif p.kind == "return_delay":
        new.back[i] += step
    elif p.kind == "delay":
        new.delay[i] += step
        for k, f in enumerate(point.classes):
            if i in f.route and f.spec.return_delay is None:
                new.back[k] += step
    else:
        room = point.q_max[i] * point.c[i]
        new.c[i] += step if p.kind == "capacity" else 0.0
        if np.isfinite(room):
            new.q_max[i] = (room + (step if p.kind == "buffer" else 0.0)) / new.c[i]
        if point.mode[i] == FULL:
            new.q[i] = new.q_max[i]
            _set_queue(new, i, new.q[i])
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


class Response:
    """How the equilibrium at a point answers to each parameter."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.unknowns, self.keep, J = conditions(point, kept=True)
        self.row = 1 / np.maximum(np.abs(J).max(axis=1), 1e-300)
        self.column = 1 / np.maximum(np.abs(J * self.row[:, None]).max(axis=0), 1e-300)
        self.J = J * self.row[:, None] * self.column
        values = np.linalg.svd(self.J, compute_uv=False)
        if values[-1] < 1e-13 * values[0]:
            raise SolverError(
                "the equilibrium is not unique (the network has redundant constraints there), so "
                "it does not answer "
                "to parameters in one way; change a capacity or a route a little"
            )

    def step(self, F: Any) -> NDArray[np.float64]:
        """Newton's step from conditions F."""
        return np.asarray(
            -self.column * np.linalg.solve(self.J, self.row * np.asarray(F)[self.keep])
        )

    def sizes(self) -> NDArray[np.float64]:
        """The unknowns."""
        point = self.point
        return np.array([
            getattr(point, kind)[i][j] if kind in ("z", "v") else getattr(point, kind)[i]
            for kind, i, j in self.unknowns
        ], float)  # fmt: skip

    def to(self, p: Parameter) -> Point:
        """The point, complex: its imaginary parts are `STEP` times the total derivatives by that
        parameter.
        """
        new = nudge(self.point, p, 1j * STEP)
        return _moved(
            new, self.unknowns, 1j * STEP * self.step(residual(new, kept=True).imag / STEP)
        )


def split(m: Matrices) -> tuple[Matrices, Matrices]:
    """The matrices of a complex point, and their derivatives."""
    names = ("A", "B", "C", "D", "delays")
    value = {name: np.real(getattr(m, name)) for name in names}
    slope = {name: np.imag(getattr(m, name)) / STEP for name in names}
    return replace(m, **value), replace(m, **slope)
