"""The point a network is linearised at: flows by class, what each queue does there, and every
law on its branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.equilibria.assembly import capacity_at, constant_rate, is_on
from fluidcc.equilibria.equilibrium import Equilibrium, hold_trackers, one_equilibrium
from fluidcc.laws import Law
from fluidcc.laws.linear import Branch, active_modes, branch_function
from fluidcc.laws.steady import bounds, grouped
from fluidcc.laws.trackers import trackers
from fluidcc.network.flow_classes import collapsed, identical, places
from fluidcc.symbols import (
    LINK_INPUTS,
    SOURCE_INPUTS,
    c,
    e,
    e_b,
    edot,
    packet,
    pi,
    plain,
    price,
    q_max,
    x_tau,
    y,
)

if TYPE_CHECKING:
    from fluidcc.network.network import FlowSpec, LinkSpec, Network


__all__ = [
    "BUSY", "FULL", "PASS", "FlowClass", "Lags", "LawGroup", "Point", "accounts", "arrivals",
    "classes_of", "evaluate", "flow_inputs", "link_inputs", "link_outputs", "loss",
    "operating_point", "own_states", "passed", "residual", "route_lags", "with_alone",
    "with_groups",
]  # fmt: skip


@dataclass(frozen=True)
class FlowClass:
    """Identical flows: same law, route, delays, packet and equilibrium."""

    names: tuple[str, ...]
    spec: FlowSpec
    route: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many flows it has."""
        return len(self.names)

    @property
    def label(self) -> str:
        """The flow's name, or that of the first and how many there are."""
        return self.names[0] if self.count == 1 else f"{self.names[0]} (x{self.count})"


def classes_of(
    net: Network, at: float, rest: Equilibrium
) -> tuple[tuple[FlowClass, ...], list[int], tuple[Any, ...]]:
    """The classes of flows in order, the place of the first flow of each, and the flows of
    constant rate.
    """
    links, place = {name: i for i, name in enumerate(net.links)}, places(net)
    found: dict[Any, list[tuple[str, ...]]] = {}
    constant: list[Any] = []
    for kind in identical(net):
        flow = net.flows[kind[0]]
        if not is_on(flow, at):
            continue
        rate = constant_rate(flow, at)
        if rate is not None:
            constant += [(tuple(links[l] for l in flow.route), rate, place[name]) for name in kind]
            continue
        key = (flow.law, flow.route, flow.access_delay, net.return_delay(flow.name), flow.packet)
        same = found.setdefault(key, [])
        for names in _at_one_rest(kind, rest, net):
            there = next(
                (i for i, n in enumerate(same) if _close(rest.states[n[0]], rest.states[names[0]])),
                None,
            )
            if there is None:
                same.append(names)
            else:
                same[there] = tuple(sorted(same[there] + names, key=place.__getitem__))
    if not found:
        raise InvalidInput(
            "no flow of the network listens (all are off or send at constant rates), so there is "
            "nothing to linearise; "
            "add a flow with a law such as fluidcc.LDCC"
        )
    chosen = sorted(
        (names for same in found.values() for names in same), key=lambda names: place[names[0]]
    )
    classes = [
        FlowClass(n, net.flows[n[0]], tuple(links[l] for l in net.flows[n[0]].route))
        for n in chosen
    ]
    return (
        tuple(classes),
        [place[n[0]] for n in chosen],
        tuple(sorted(constant, key=lambda sent: sent[-1])),
    )


def _at_one_rest(kind: tuple[str, ...], rest: Equilibrium, net: Network) -> list[tuple[str, ...]]:
    """Identical flows in groups whose states are equal: one, unless the equilibrium was given
    and tells them apart.
    """
    if getattr(rest.states, "place", None) is collapsed(net).place:
        return [kind]
    runs = groupby(kind, key=lambda name: dict(rest.states[name]))
    return [tuple(names) for _, names in runs]


def _close(there: Mapping[str, float], here: Mapping[str, float]) -> bool:
    return all(math.isclose(there[z], here[z], rel_tol=1e-7, abs_tol=1e-12) for z in here)


# --- what everybody knows at rest -----------------------------------------------------------------


class Lags:
    """Delays along the route of each class at rest [s].

    forward[k][h] from the source to hop h, backward[k][h] from hop h to what the source hears,
    trip[k] both together.
    """

    def __init__(self, point: Point) -> None:
        self.forward: list[list[Any]] = []
        self.backward: list[list[Any]] = []
        self.trip: list[Any] = []
        for k, f in enumerate(point.classes):
            hop = [point.delay[l] + point.q[l] for l in f.route]
            self.forward.append(route_lags(point, f.route, point.access[k]))
            self.backward.append([point.back[k] + sum(hop[h:]) for h in range(len(hop))])
            self.trip.append(point.access[k] + sum(hop) + point.back[k])


def route_lags(point: Point, route: tuple[int, ...], access: Any) -> list[Any]:
    """Delay from a source to each hop [s]."""
    found = [access]
    for l in route[:-1]:
        found.append(found[-1] + point.delay[l] + point.q[l])
    return found


def loss(point: Point, drop: Any = None) -> Any:
    """Loss ratio of each link: (4) where the buffer is full, whatever was dropped before; else
    what is dropped.
    """
    early = link_outputs(point)["drop"] if drop is None else drop
    full = (point.mode == FULL).reshape(-1, *(1 for _ in np.shape(point.c)[1:]))
    return np.where(full, 1 - point.c / np.where(full, point.y, 1.0), early)


def passed(point: Point, route: tuple[int, ...], lost: Any = None) -> list[Any]:
    """Share of a flow that arrives at each hop of its route; `lost` is the loss ratio of each
    link, where known.
    """
    lost = loss(point) if lost is None else lost
    found: list[Any] = [1.0]
    for l in route[:-1]:
        found.append(found[-1] * (1 - lost[l]))
    return found


def _stacked(parts: list[Any], members: tuple[int, ...]) -> Any:
    return np.stack([parts[i] for i in members], axis=1)


def evaluate(group: LawGroup, z: list[Any], u: Any, p: list[Any]) -> Branch:
    """The laws of a group at their point."""
    m = group.members
    return branch_function(group.law)(_stacked(z, m), u[:, m], _stacked(p, m), group.modes)


def link_inputs(point: Point) -> Any:
    """(inputs, L) in the order of ``Link.inputs``."""
    zero = np.zeros_like(point.c)
    crossed = np.zeros(len(point.c), bool)
    for route in (*(f.route for f in point.classes), *(route for route, _, _ in point.constant)):
        crossed[list(route)] = True
    # Nobody hears a link that nobody crosses; half its capacity keeps its law from dividing by
    # zero.
    arriving = (
        point.y
        if crossed.all()
        else np.where(crossed.reshape(-1, *[1] * (point.c.ndim - 1)), point.y, point.c / 2)
    )
    known = {y: arriving, "c": point.c, "q_max": point.q_max, "t": zero, "crossing": zero}
    return np.array([known.get(s, known.get(plain(s))) for s in LINK_INPUTS])


def link_outputs(point: Point) -> dict[str, Any]:
    """Mark, price and drop of each link (L,), 0 where its law has none."""
    values: dict[str, Any] = {name: np.zeros_like(point.y) for name in ("mark", "price", "drop")}
    u = link_inputs(point)
    for g in point.link_groups:
        if values.keys() & g.law.out.keys():
            found = evaluate(g, point.v, u, point.lp)
            for name in values.keys() & g.law.out.keys():
                values[name][list(g.members)] = found.out[list(g.law.out).index(name)]
    return values


def flow_inputs(point: Point) -> Any:
    """(inputs, K) in the order of ``Source.inputs``."""
    out, wait = link_outputs(point), point.delay + point.q
    lost = loss(point, out["drop"])
    K, zero = len(point.classes), np.zeros_like(point.x)
    kept = (1 - lost) * (1 - out["mark"])
    known = {
        e: point.access + _along(point, lambda l: wait[l], K),
        edot: zero,
        pi: 1 - np.array([np.prod(kept[list(f.route)], axis=0) for f in point.classes]),
        price: _along(point, lambda l: out["price"][l], K),
        x_tau: point.x,
        e_b: point.back,
        packet: point.packet,
    }
    return np.array([known.get(s, zero) for s in SOURCE_INPUTS])


def _along(point: Point, value: Callable[[int], Any], K: int) -> Any:
    return np.array([sum(value(l) for l in point.classes[k].route) for k in range(K)])


def arrivals(point: Point) -> Any:
    """Rate that arrives at each link (L,), from the rates of the flows and the loss upstream
    [bit/s].
    """
    total, lost = np.zeros_like(point.y + point.x.sum()), loss(point)
    streams = [(f.route, point.count[k] * point.x[k]) for k, f in enumerate(point.classes)]
    for route, rate in [*streams, *((r, x) for r, x, _ in point.constant)]:
        for l, share in zip(route, passed(point, route, lost), strict=True):
            total[l] = total[l] + rate * share
    return total


def residual(point: Point, kept: bool = False) -> Any:
    """What vanishes at an equilibrium, one entry an unknown of `fluidcc.analysis.change.Unknowns`,
    in its order.

    A state that keeps account of what is under way stands still wherever the rate does, which
    leaves it open. With `kept` it is right: a rate x has x RTT under way.
    """
    parts = []
    u = flow_inputs(point)
    for g in point.flow_groups:
        found = evaluate(g, point.z, u, point.p)
        flow = _on_account(point, g, u, found.flow) if kept else found.flow
        parts.append(flow[g.free])
        parts.append(found.out[list(g.law.out).index("rate")] - point.x[list(g.members)])
    parts.append(arrivals(point) - point.y)
    let_in = point.y * (1 - link_outputs(point)["drop"])
    parts.append((let_in / point.c - 1)[point.mode == BUSY])
    u = link_inputs(point)
    for g in point.link_groups:
        own = own_states(g)
        if own.any():
            parts.append(evaluate(g, point.v, u, point.lp).flow[own])
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


def own_states(g: LawGroup) -> Any:
    """(states, members): those of a link's states that move and are not its queue."""
    law: Any = g.law
    rows = np.array([s != law.queue for s in law.states], bool).reshape(-1, 1)
    return g.free & rows


# --- the point a network is linearised at ---------------------------------------------------------


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
    """Numbers only, so that a copy in complex numbers differentiates whatever is computed from
    them.

    Arrays over classes K, links L; `z`, `p` and `v`, `lp` hold states and parameters of each class
    and each link.
    """

    net: Network
    at: float
    rest: Any  # the Equilibrium it was found by; None where the point was followed from another
    classes: tuple[FlowClass, ...]
    flow_groups: tuple[LawGroup, ...]
    link_groups: tuple[LawGroup, ...]
    links: tuple[LinkSpec, ...]
    constant: tuple[
        tuple[tuple[int, ...], float, int], ...
    ]  # route, rate, flow: what sends without listening
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
        If a queue, a buffer, a bound of a state or a switch of a law is exactly at its turning
        point there; if the equilibrium given is that of a network with other flows or links.
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
        z=[
            np.array([rest.states[f.names[0]][plain(s)] for s in f.spec.law.states])
            for f in classes
        ],
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
        q=np.where(
            mode == FULL, longest, np.where(mode == BUSY, rest.array("queueing_delay"), 0.0)
        ),
        x=np.asarray(rest.array("rate"), float)[first],
        y=np.asarray(rest.array("arrival_rate"), float),
    )
    return with_groups(point)


def _known(net: Network, rest: Equilibrium) -> Equilibrium:
    """An equilibrium that was given, refused if it is of another network."""
    if missing := [name for name in (*net.flows, *net.links) if name not in rest.states]:
        raise InvalidInput(
            f"the equilibrium given as at= knows no {missing[0]!r}; give one of this network, "
            f"from fluidcc.equilibrium"
        )
    return rest


def _refuse_ticks(net: Network) -> None:
    """A sampled law may rest, but what it does near there is a recursion and no differential
    equation.
    """
    flows = "use its continuous law, simulate it, or fluidcc.sampled_stability for (25) of LDCC"
    links = (
        "simulate it, use a law without ticks (such as fluidcc.RED for AdaptiveRED), or "
        "fluidcc.sampled_stability for "
        "P-AQM"
    )
    kinds = {names[0]: net.flows[names[0]] for names in identical(net)}
    for kind, specs, remedy in (("flow", kinds, flows), ("link", net.links, links)):
        for name, spec in specs.items():
            if spec.law.ticks:
                raise Unsupported(
                    f"{kind} {name!r} ({spec.law.name}) is sampled, so it has no Jacobian in "
                    f"continuous time: {remedy}"
                )


def _queue_modes(
    links: tuple[LinkSpec, ...], capacity: Any, longest: Any, rest: Equilibrium
) -> NDArray[np.intp]:
    """What each queue does: PASS (empty, or none), BUSY or FULL; refuse what stands between two
    of these.
    """
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
                    f"{exact}its queue is empty and {arrival[l]:.9g} bit/s enter it, exactly its "
                    f"capacity, so that the "
                    "two sides of y = c have different derivatives; change its capacity a little"
                )
        elif room >= longest[l] * (1 - NEAR):
            if excess < NEAR:
                raise InvalidInput(
                    f"{exact}its buffer is full and {arrival[l]:.9g} bit/s enter it, exactly its "
                    f"capacity, so that the "
                    "two sides of y = c have different derivatives; change its buffer a little"
                )
            mode[l] = FULL
        else:
            mode[l] = BUSY
    return mode


def with_groups(point: Point) -> Point:
    """Add the laws, grouped, each on its branch."""
    u = link_inputs(point)
    groups, laws = [], list[Any]()
    for members in grouped([link.law for link in point.links]):
        constants = [{c: float(point.c[l]), q_max: float(point.q_max[l])} for l in members]
        names = [f"link {point.links[l].name!r}: " for l in members]
        laws = [point.links[l].law for l in members]
        groups.append(
            _group(
                laws, members, point.v, u, point.lp, constants, names, point.mode[members] == BUSY
            )
        )
    point = point.changed(link_groups=tuple(groups))
    u = flow_inputs(point)
    groups = []
    for members in grouped([f.spec.law for f in point.classes]):
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
                    branch_function(law)(at[0], inside * (1 + d), at[1], modes).flow
                    for d in (NEAR, -NEAR)
                ]
                if max(sign * f[i, j] for f in flows) >= 0:
                    if _decays_alone(law, at[0], inside, at[1], modes, i, j, busy):
                        continue
                    raise InvalidInput(
                        f"{names[j]}{law.name} stands on a switching surface: its "
                        f"{plain(law.states[i])} is at its "
                        f"{side} bound and does not press against it; change a parameter a little"
                    )
                free[i, j] = False
    return LawGroup(law, tuple(members), modes, free)


def _decays_alone(law: Any, z: Any, u: Any, p: Any, modes: Any, i: int, j: int, busy: Any) -> bool:
    """Whether a state at its bound returns there by itself and nothing that moves pushes it: the
    bound never acts.
    """
    from fluidcc.laws.linear import branch_function

    jac = branch_function(law)(z, u, p, modes).jacobians
    by = jac.A[i, :, j].copy()
    own, by[i] = by[i], 0.0
    queue = getattr(law, "queue", None)
    if queue is not None and not busy[j]:
        by[law.states.index(queue)] = 0.0
    return bool(own < 0 and not by.any() and not jac.B[i, :, j].any())


# --- One flow taken out of its class, so that it can be judged by itself -------------------------


def with_alone(point: Point, name: str) -> tuple[Point, int]:
    """The point with the flow `name` in a class of its own, and the number of that class."""
    k = next(k for k, f in enumerate(point.classes) if name in f.names)
    one = point.classes[k]
    if one.count == 1:
        return point, k
    rest = replace(one, names=tuple(n for n in one.names if n != name))
    classes = (*point.classes[:k], replace(one, names=(name,)), rest, *point.classes[k + 1 :])
    twice = [*range(k + 1), *range(k, len(point.classes))]
    count = np.array([float(f.count) for f in classes])
    arrays = {key: getattr(point, key)[twice] for key in ("access", "back", "packet", "x")}
    return with_groups(
        point.changed(
            classes=classes,
            z=[point.z[i] for i in twice],
            p=[point.p[i] for i in twice],
            count=count,
            **arrays,
        )
    ), k
