"""The point a network is linearised at: flows by class, what each queue does there, and every law on its branch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.classes import FlowClass, classes_of
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.equilibria.assembly import capacity_at
from fluidcc.equilibria.equilibrium import Equilibrium, hold_trackers, one_equilibrium
from fluidcc.laws import Law
from fluidcc.laws.linear import active_modes
from fluidcc.laws.steady import bounds, grouped
from fluidcc.network.flow_classes import identical
from fluidcc.symbols import c, e_b, packet, plain, q_max

if TYPE_CHECKING:
    from fluidcc.network.network import LinkSpec, Network

__all__ = [
    "BUSY", "FULL", "PASS", "FlowClass", "LawGroup", "Point", "operating_point", "with_groups",
]  # fmt: skip

PASS, BUSY, FULL = 0, 1, 2
NEAR = 1e-9
"""Relative distance at which a point counts as on a switching surface."""


@dataclass(frozen=True)
class LawGroup:
    """Members (classes or links) whose laws have equal structure, evaluated together."""

    law: Law
    members: tuple[int, ...]
    modes: NDArray[np.float64]  # (switches, members)
    free: NDArray[np.bool_]  # (states, members): those that move; the others are held at a bound


@dataclass(frozen=True)
class Point:
    """Numbers only, so that a copy in complex numbers differentiates whatever is computed from them.

    Arrays over classes K, links L; `z`, `p` and `v`, `lp` hold states and parameters of each class and each link.
    """

    net: Network
    at: float
    rest: Any  # the Equilibrium it was found by; None where the point was followed from another
    classes: tuple[FlowClass, ...]
    flow_groups: tuple[LawGroup, ...]
    link_groups: tuple[LawGroup, ...]
    links: tuple[LinkSpec, ...]
    constant: tuple[tuple[tuple[int, ...], float, int], ...]  # route, rate, flow: what sends without listening
    mode: NDArray[np.intp]  # (L,)
    z: list[Any]
    p: list[Any]
    v: list[Any]
    lp: list[Any]
    count: Any
    access: Any
    back: Any
    packet: Any
    c: Any  # capacity (L,) [bit/s]
    delay: Any  # propagation (L,) [s]
    q_max: Any  # (L,) [s]
    q: Any  # queueing delay (L,) [s]
    x: Any  # rate of one flow of each class (K,) [bit/s]
    y: Any  # arrival rate (L,) [bit/s]

    @property
    def regulating(self) -> NDArray[np.bool_]:
        """Links that let through no more than their capacity."""
        return np.asarray(self.mode != PASS)

    def changed(self, **values: Any) -> Point:
        """A copy with other numbers."""
        return replace(self, **values)


def operating_point(net: Network, at: float | str | Equilibrium = math.inf) -> Point:
    """The equilibrium of a network, with everything a linearisation needs to know about it.

    Raises
    ------
    Unsupported
        If a law is sampled.
    InvalidInput
        If a queue, a buffer, a bound of a state or a switch of a law is exactly at its turning point there; if the
        equilibrium given is that of a network with other flows or links.
    """
    _refuse_ticks(net)
    net = hold_trackers(net)
    rest = _known(net, at) if isinstance(at, Equilibrium) else one_equilibrium(net, at)
    time = rest.at
    links = tuple(net.links.values())
    capacity = np.array([capacity_at(link, time) for link in links])
    longest = np.array([link.buffer for link in links]) / capacity
    mode = _queue_modes(links, capacity, longest, rest)
    classes, first, constant = classes_of(net, time, rest)
    chosen = [f.spec for f in classes]
    point = Point(
        net,
        time,
        rest,
        classes,
        (),
        (),
        links,
        constant,
        mode,
        z=[np.array([rest.states[f.names[0]][plain(s)] for s in f.spec.law.states]) for f in classes],
        p=[np.array([float(value) for value in f.law.params.values()]) for f in chosen],
        v=[np.array([rest.states[link.name][plain(s)] for s in link.law.states]) for link in links],
        lp=[np.array([float(value) for value in link.law.params.values()]) for link in links],
        count=np.array([float(f.count) for f in classes]),
        access=np.array([f.access_delay for f in chosen]),
        back=np.array([net.return_delay(f.name) for f in chosen]),
        packet=np.array([f.packet for f in chosen]),
        c=capacity,
        delay=np.array([link.delay for link in links]),
        q_max=longest,
        q=np.where(mode == FULL, longest, np.where(mode == BUSY, rest.array("queueing_delay"), 0.0)),
        x=np.asarray(rest.array("rate"), float)[first],
        y=np.asarray(rest.array("arrival_rate"), float),
    )
    return with_groups(point)


def _known(net: Network, rest: Equilibrium) -> Equilibrium:
    """An equilibrium that was given, refused if it is of another network."""
    if missing := [name for name in (*net.flows, *net.links) if name not in rest.states]:
        raise InvalidInput(
            f"the equilibrium given as at= knows no {missing[0]!r}; give one of this network, from fluidcc.equilibrium"
        )
    return rest


def _refuse_ticks(net: Network) -> None:
    """A sampled law may rest, but what it does near there is a recursion and no differential equation."""
    flows = "use its continuous law, simulate it, or fluidcc.sampled_stability for (25) of LDCC"
    links = (
        "simulate it, use a law without ticks (such as fluidcc.RED for AdaptiveRED), or fluidcc.sampled_stability for "
        "P-AQM"
    )
    kinds = {names[0]: net.flows[names[0]] for names in identical(net)}
    for kind, specs, remedy in (("flow", kinds, flows), ("link", net.links, links)):
        for name, spec in specs.items():
            if spec.law.ticks:
                raise Unsupported(
                    f"{kind} {name!r} ({spec.law.name}) is sampled, so it has no Jacobian in continuous time: {remedy}"
                )


def _queue_modes(links: tuple[LinkSpec, ...], capacity: Any, longest: Any, rest: Equilibrium) -> NDArray[np.intp]:
    """What each queue does: PASS (empty, or none), BUSY or FULL; refuse what stands between two of these."""
    mode = np.full(len(links), PASS)
    queue, arrival = rest.array("queueing_delay"), rest.array("admitted_rate")
    for l, link in enumerate(links):
        if link.law.queue is None:
            continue
        room, excess = queue[l], arrival[l] / capacity[l] - 1
        exact = f"link {link.name!r} stands on a switching surface: "
        if room <= NEAR * max(1e-3, float(np.max(queue))):
            if excess > -NEAR:
                raise InvalidInput(
                    f"{exact}its queue is empty and {arrival[l]:.9g} bit/s enter it, exactly its capacity, so that the "
                    "two sides of y = c have different derivatives; change its capacity a little"
                )
        elif room >= longest[l] * (1 - NEAR):
            if excess < NEAR:
                raise InvalidInput(
                    f"{exact}its buffer is full and {arrival[l]:.9g} bit/s enter it, exactly its capacity, so that the "
                    "two sides of y = c have different derivatives; change its buffer a little"
                )
            mode[l] = FULL
        else:
            mode[l] = BUSY
    return mode


def with_groups(point: Point) -> Point:
    """Add the laws, grouped, each on its branch."""
    from fluidcc.analysis.rest import flow_inputs, link_inputs

    u = link_inputs(point)
    groups, laws = [], list[Any]()
    for _, members in grouped([link.law for link in point.links]):
        constants = [{c: float(point.c[l]), q_max: float(point.q_max[l])} for l in members]
        names = [f"link {point.links[l].name!r}: " for l in members]
        laws = [point.links[l].law for l in members]
        groups.append(_group(laws, members, point.v, u, point.lp, constants, names, point.mode[members] == BUSY))
    point = point.changed(link_groups=tuple(groups))
    u = flow_inputs(point)
    groups = []
    for _, members in grouped([f.spec.law for f in point.classes]):
        constants = [{e_b: float(point.back[k]), packet: float(point.packet[k])} for k in members]
        names = [f"flow {point.classes[k].names[0]!r}: " for k in members]
        laws = [point.classes[k].spec.law for k in members]
        groups.append(_group(laws, members, point.z, u, point.p, constants, names))
    return point.changed(flow_groups=tuple(groups))


def _group(
    laws: list[Any],
    members: list[int],
    z: list[Any],
    u: Any,
    p: list[Any],
    constants: Any,
    names: list[str],
    busy: Any = None,
) -> LawGroup:
    law = laws[0]
    from fluidcc.laws.linear import branch_function

    queue = getattr(law, "queue", None)
    at = [np.array([part[i] for i in members]).T.reshape(-1, len(members)) for part in (z, p)]
    inside = u[:, members]
    modes = active_modes(law, at[0], inside, at[1], relative=NEAR, of=names)
    free = np.ones(at[0].shape, bool)
    moving = [s for s in law.states if s != queue and (s in law.lower or s in law.upper)]
    if moving:
        where = [law.states.index(s) for s in moving]
        flows: list[Any] = []
        for side, sign in (("lower", 1.0), ("upper", -1.0)):
            ends = bounds(laws, moving, side, constants)
            stuck = sign * (at[0][where] - ends) <= 1e-12 * np.clip(np.abs(ends), 1e-3, 1e300)
            for row, j in zip(*np.nonzero(stuck), strict=True):
                i = where[row]
                # Moved a little, so that a flow of zero presses neither way.
                flows = flows or [
                    branch_function(law)(at[0], inside * (1 + d), at[1], modes).flow for d in (NEAR, -NEAR)
                ]
                if max(sign * f[i, j] for f in flows) >= 0:
                    if _decays_alone(law, at[0], inside, at[1], modes, i, j, busy):
                        continue
                    raise InvalidInput(
                        f"{names[j]}{law.name} stands on a switching surface: its {plain(law.states[i])} is at its "
                        f"{side} bound and does not press against it; change a parameter a little"
                    )
                free[i, j] = False
    return LawGroup(law, tuple(members), modes, free)


def _decays_alone(law: Any, z: Any, u: Any, p: Any, modes: Any, i: int, j: int, busy: Any) -> bool:
    """Whether a state at its bound returns there by itself and nothing that moves pushes it: the bound never acts."""
    from fluidcc.laws.linear import branch_function

    jac = branch_function(law)(z, u, p, modes).jacobians
    by = jac.A[i, :, j].copy()
    own, by[i] = by[i], 0.0
    queue = getattr(law, "queue", None)
    if queue is not None and not busy[j]:
        by[law.states.index(queue)] = 0.0
    return bool(own < 0 and not by.any() and not jac.B[i, :, j].any())
