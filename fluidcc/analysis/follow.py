"""The operating point at other parameter values: followed by Newton's method on its branch, or found anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.analysis.change import Parameter, Response, nudge, parameters, real_part, shifted
from fluidcc.analysis.operating_point import BUSY, FULL, NEAR, PASS, Point, operating_point
from fluidcc.analysis.rest import flow_inputs, link_inputs, link_outputs, residual
from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, SolverError, UnknownName
from fluidcc.laws.linear import active_modes
from fluidcc.network.patterns import near

if TYPE_CHECKING:
    from fluidcc.network import Network

__all__ = ["Knob", "at_value", "knob"]


class Knob:
    """Parameters of a network that are turned together: one value, set in every flow or link that has it."""

    def __init__(self, name: str, members: Sequence[Parameter]) -> None:
        self.name, self.members = name, tuple(members)

    @property
    def units(self) -> str:
        """Its unit."""
        return self.members[0].units

    def value(self, point: Point) -> float:
        """Its value at a point: that of its members, or their geometric mean where they differ."""
        values = [_read(point, p) for p in self.members]
        return values[0] if min(values) == max(values) else float(np.exp(np.mean(np.log(values))))

    def network(self, net: Network, point: Point, value: float) -> Network:
        """A copy of the network with that value."""
        for p in self.members:
            if p.kind == "flow law":
                for name in point.classes[p.index].names:
                    law = net.flows[name].law
                    net = net.with_flow(name, law=law(**{p.name.rpartition(".")[2]: value}))
            elif p.kind in ("access_delay", "return_delay"):
                for name in point.classes[p.index].names:
                    net = net.with_flow(name, **{p.kind: value})
            else:
                name, key = point.links[p.index].name, p.name.rpartition(".")[2]
                if p.kind == "link law":
                    net = net.with_link(name, law=net.links[name].law(**{key: value}))
                elif p.kind == "capacity":
                    net = net.with_link(name, capacity=value, buffer=_bits(net.links[name].buffer))
                else:
                    net = net.with_link(name, **{p.kind: value})
        return net


def _bits(buffer: float) -> float | None:
    """The buffer in bits, so that one given in seconds does not change with the capacity."""
    return buffer if np.isfinite(buffer) else None


def _read(point: Point, p: Parameter) -> float:
    if p.kind == "flow law":
        return float(point.p[p.index][p.place])
    if p.kind == "link law":
        return float(point.lp[p.index][p.place])
    if p.kind == "buffer":
        return float(point.q_max[p.index] * point.c[p.index])
    number = {"access_delay": "access", "return_delay": "back", "capacity": "c", "delay": "delay"}[p.kind]
    return float(getattr(point, number)[p.index])


def knob(point: Point, name: str) -> Knob:
    """The parameters that `name` means: ``"eta"`` in every law that has it, ``"flow.eta"``, ``"link.capacity"``, ...

    Raises
    ------
    UnknownName
        If the network has none of that name.
    """
    if not isinstance(name, str):
        raise InvalidInput(f"the parameter is {shown(name)}; give its name, such as 'eta' or 'flow.eta'")
    every = parameters(point)
    flows = {n: f.label for f in point.classes for n in f.names}
    head, dot, tail = name.rpartition(".")
    if dot and head in flows and not any(p.name == name for p in every):
        f = next(f for f in point.classes if head in f.names)
        if f.count > 1:
            raise InvalidInput(
                f"flow {head!r} is one of {f.count} identical flows; turn {tail!r} of all, or give that flow a law or "
                "delay of its own first"
            )
    chosen = [p for p in every if p.name == name] or [p for p in every if p.name.rpartition(".")[2] == name]
    if not chosen:
        known = dict.fromkeys([*(p.name for p in every), *(p.name.rpartition(".")[2] for p in every)])
        raise UnknownName(f"the network has no parameter {name!r}; {near(name, known)}")
    return Knob(name, chosen)


def at_value(point: Point, turned: Sequence[tuple[Knob, float]]) -> Point:
    """The operating point where each knob has its value: on the same branch if it is still there, else anew.

    Raises
    ------
    FluidccError
        As `operating_point`: no equilibrium, or one on a switching surface.
    """
    new = point
    for one, value in turned:
        for p in one.members:
            new = real_part(nudge(new, p, value - _read(new, p)))
    net = point.net
    for one, value in turned:
        net = one.network(net, point, value)
    try:
        followed = _settled(new.changed(net=net, rest=None))
    except (SolverError, InvalidInput, FloatingPointError):
        followed = None
    if followed is not None:
        return followed
    return operating_point(net, point.at)


def _settled(point: Point) -> Point | None:
    """Newton's method on the conditions of the branch; None where it leaves the branch."""
    for _ in range(30):
        with np.errstate(all="raise", under="ignore"):
            answer = Response(point)
            step = answer.step(residual(point, kept=True))
        sizes = answer.sizes()
        if not np.all(np.abs(step) < 0.7 * np.maximum(np.abs(sizes), 1e-6 * np.abs(sizes).max())):
            step = 0.5 * step
        point = shifted(point, answer.unknowns, step)
        if not np.all(np.isfinite(step)):
            return None
        if np.all(np.abs(step) <= 1e-13 * np.maximum(np.abs(sizes), 1e-12)):
            return point if _on_branch(point) else None
    return None


def _on_branch(point: Point) -> bool:
    """Whether the queues and the switches of the laws are as the point has them, away from their surfaces."""
    let_in = point.y * (1 - link_outputs(point)["drop"])
    for l, link in enumerate(point.links):
        if link.law.queue is None:
            continue
        excess = let_in[l] / point.c[l] - 1
        inside = NEAR * 1e-3 < point.q[l] < point.q_max[l] * (1 - NEAR)
        if not {PASS: excess < -NEAR, BUSY: inside, FULL: excess > NEAR}[int(point.mode[l])]:
            return False
    for groups, z, u, p in (
        (point.flow_groups, point.z, flow_inputs(point), point.p),
        (point.link_groups, point.v, link_inputs(point), point.lp),
    ):
        for g in groups:
            if g.law.switches:
                at = [np.array([part[i] for i in g.members]).T.reshape(-1, len(g.members)) for part in (z, p)]
                try:
                    modes = active_modes(g.law, at[0], u[:, g.members], at[1], relative=NEAR)
                except InvalidInput:
                    return False
                if not np.array_equal(modes, g.modes):
                    return False
            # A state held at its bound that would now leave it, or one that would pass it, is left to the search.
            if not np.all(g.free):
                return False
    return bool(np.all(point.x > 0))
