"""Operating points: where a network is linearised, found at one point or at many together.

At each the flows are in classes, every queue is empty, busy or full, and every law is on a branch
of its kinks. Points are taken together where all of that is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import (
    BUSY,
    FULL,
    NEAR,
    PASS,
    FlowClass,
    Lags,
    LawGroup,
    OperatingPoint,
    Side,
    flows_of,
    least_offers,
    links_of,
    loss,
)
from fluidcc.base.arguments import choice
from fluidcc.base.errors import FluidccError, InvalidInput, Unsupported
from fluidcc.equilibria.many import Equilibria, equilibria, held
from fluidcc.equilibria.result import Equilibrium
from fluidcc.equilibria.sliding import refused
from fluidcc.laws.linear import branch_function, modes_at, on_surface
from fluidcc.laws.steady import grouped
from fluidcc.network.network import identical
from fluidcc.network.parameters import Parameters
from fluidcc.network.wired import bounds, is_on, own_states
from fluidcc.numerics.linear.wiring import alike
from fluidcc.symbols import SOURCE_INPUTS, c, e_b, offer_min, packet, plain, q_max

if TYPE_CHECKING:
    from fluidcc.network.network import Network
    from fluidcc.network.specs import FlowSpec, LinkSpec


def operating_point(
    net: Network,
    at: float | str | Equilibrium = math.inf,
    delays: str = "fifo",
    alone: bool = False,
) -> OperatingPoint:
    """The equilibrium of a network, with everything a linearisation needs to know about it; links
    may be `alone`, with no flow that listens.

    Raises
    ------
    Unsupported
        If a law is sampled.
    InvalidInput
        If a queue, a buffer, a bound of a state or a switch of a law is exactly at its turning
        point there, as where a law slides; if the equilibrium given is that of a network with
        other flows or links.
    """
    choice(delays, "delays", ("fifo", "frozen"))
    _refuse_ticks(net)
    net = held(net)
    if isinstance(at, Equilibrium):
        specs: list[tuple[str, FlowSpec | LinkSpec]] = [*net.flows.items(), *net.links.items()]
        for name, one in specs:
            known = at.states.get(name)  # without states where a flow is off
            if known is None or (known and not {*map(plain, one.law.states)} <= {*known}):
                raise InvalidInput(
                    f"the equilibrium given as at= knows no {one.law.name} {name!r}; give one of "
                    "this network, from fluidcc.equilibrium(net)"
                )
        rest, many = at, Equilibria.of(net, at)
    else:
        many = equilibria(Parameters(net), at)
        rest = replace(many.point(0), _net=net)
    return _only(many, rest, delays, alone=alone)


def _only(
    many: Equilibria,
    rest: Any,
    delays: str,
    classes: Sequence[FlowClass] = (),
    alone: bool = False,
) -> OperatingPoint:
    errors = dict(many.errors)
    for point in operating_points(many, errors, classes, alone):
        if delays == "frozen":
            _refuse_frozen_loss(point)
        return point.changed(rest=rest, delays=delays)
    raise errors[0]


def at_numbers(point: OperatingPoint, given: Parameters) -> OperatingPoint:
    """The operating point of the network with other numbers, found anew, with the same classes.

    Raises
    ------
    FluidccError
        As `operating_point`.
    """
    return _only(equilibria(given, point.at), None, point.delays, point.classes)


def operating_points(
    rest: Equilibria,
    errors: dict[int, FluidccError],
    classes: Sequence[FlowClass] = (),
    alone: bool = False,
) -> Iterator[OperatingPoint]:
    """All points that have an equilibrium, by structure; of one alone without an axis of points.

    Parameters
    ----------
    rest : Equilibria
        Its equilibria there.
    errors : dict of int to FluidccError
        Gets why others have no linearisation.
    classes : sequence of FlowClass, optional
        The classes of flows; by default those that are equal there.
    alone : bool
        As for `operating_point`.
    """
    errors |= {i: refused(slides) for i, slides in rest.sliding.items()}
    rows = np.flatnonzero(rest.found & ~np.isin(np.arange(len(rest)), [*rest.sliding]))
    try:
        _refuse_ticks(rest.wired.net)
    except Unsupported as sampled:
        errors |= dict.fromkeys(rows.tolist(), sampled)
        return
    every = _everywhere(rest)
    if not every.classes and not alone:
        why = InvalidInput(
            "no flow of the network listens (all are off or send at constant rates), so there is "
            "nothing to linearise; add a flow with a law such as fluidcc.LDCC"
        )
        errors |= dict.fromkeys(rows.tolist(), why)
        return
    admitted = np.asarray(rest.array("admitted_rate"), float).T
    mode, between = queue_modes(every.links, every.c, every.q_max, every.q, admitted)
    for i in rows[between[:, rows].any(axis=0)].tolist():
        l = np.flatnonzero(between[:, i])[0]
        errors[i] = _between(every.links[l], mode[l, i] == FULL, admitted[l, i])
    rows = rows[~between[:, rows].any(axis=0)]
    codes = np.concatenate([_leaders(every, classes), mode])[:, rows]
    for pick in alike(codes.T) if len(rows) else ():
        leader, queues = np.split(codes[:, pick[0]], [len(every.classes)])
        some = every.part(0 if rest.wired.points == 1 else rows[pick])
        point = _in_classes(some, leader, queues).changed(rows=rows[pick])
        for on_links in _by_branch(point, errors, "link"):
            least, _ = least_offers(on_links)
            for part, k in on_links.split(least):
                part = part.changed(least=least if part.single else least[:, k])
                for on_branch in _by_branch(part, errors, "flow"):
                    yield from _untied(on_branch, errors)


def _everywhere(rest: Equilibria) -> OperatingPoint:
    """All points, with a class for each row of flows that listens; not yet on a branch."""
    wired = rest.wired
    net, links = held(wired.net), [wired.link(l) for l in range(len(wired.links))]
    rate, arrival, admitted, queue = (
        np.asarray(rest.array(name), float).T
        for name in ("rate", "arrival_rate", "admitted_rate", "queueing_delay")
    )
    arrival = np.where(np.array(wired.mixed)[:, None], admitted, arrival)
    rate = rate[[wired.place[names[0]] for names in wired.kinds]]
    kinds = [k for k, constant in enumerate(wired.rates) if constant is None]
    others = [k for k, f in enumerate(wired.flows) if k not in kinds and is_on(f, wired.at)]
    specs = [net.flows[wired.flows[k].name] for k in kinds]
    flows = [wired.flow(k, f.law) for k, f in zip(kinds, specs, strict=True)]

    def states(specs: Sequence[Any]) -> list[Any]:
        known = rest.states
        return [wired.array(known[one.name][plain(s)] for s in one.law.states) for one in specs]

    def parameters(specs: Sequence[Any], known: list[Any]) -> list[Any]:
        return [wired.array(of[s] for s in one.law.params)
                for one, of in zip(specs, known, strict=True)]  # fmt: skip

    access, back, size = (wired.array(wired.delays[k][i] for k in kinds) for i in (0, 2, 3))
    capacity, longest = (wired.array(known[s] for known in links) for s in (c, q_max))
    return OperatingPoint(
        net, wired.given, wired.at, None,
        tuple(FlowClass(wired.kinds[k], f, wired.routes[k])
              for k, f in zip(kinds, specs, strict=True)),
        (), (), wired.links,
        tuple((wired.routes[k], wired.many[k] * rate[k], wired.flows[k].ecn) for k in others),
        wired.mixed, np.array([], int), np.full(len(kinds), -1), z=states(specs),
        p=parameters(specs, flows),
        v=states(wired.links), lp=parameters(wired.links, links), count=None, access=access,
        back=back, packet=size, c=capacity,
        delay=wired.array(wired.given.link(k.name, 1.0)[1] for k in wired.links), q_max=longest,
        q=queue, x=rate[kinds], y=arrival, rows=np.arange(wired.points),
    )  # fmt: skip


def _leaders(every: OperatingPoint, classes: Sequence[FlowClass]) -> Any:
    """For each class the first one that is equal to it, (classes, points); those given, if any."""
    first = np.repeat(np.arange(len(every.classes))[:, None], len(every.rows), axis=1)
    if classes:
        known = {name: i for i, f in enumerate(classes) for name in f.names}
        of = [known[f.name] for f in every.classes]
        return np.array([of.index(i) for i in of])[:, None] + 0 * first
    members: dict[Any, list[int]] = {}
    for k, f in enumerate(every.classes):
        key = f.spec.law.structure, f.spec.law.name, f.route, f.spec.ecn
        members.setdefault(key, []).append(k)
    for own in (np.array(same) for same in members.values() if len(same) > 1):
        exact = np.array(
            [[every.access[k], every.back[k], every.packet[k], *every.p[k]] for k in own]
        )
        z = np.array([every.z[k] for k in own])
        for j, m in enumerate(own[:-1]):
            later = own[j + 1 :]
            gap, size = np.abs(z[j + 1 :] - z[j]), np.maximum(np.abs(z[j + 1 :]), np.abs(z[j]))
            same = (exact[j + 1 :] == exact[j]).all(axis=1)
            same &= (gap <= np.maximum(1e-7 * size, 1e-12)).all(axis=1)
            same &= (first[m] == m) & (first[later] == later[:, None])
            first[later] = np.where(same, m, first[later])
    return first


def _in_classes(point: OperatingPoint, leader: Any, mode: Any) -> OperatingPoint:
    """A point with equal classes as one, that of their `leader`, and with these modes of queues."""
    lead, place = np.unique(leader), {name: i for i, name in enumerate(point.net.flows)}
    names: dict[int, list[str]] = {m: [] for m in lead.tolist()}
    for f, m in zip(point.classes, leader.tolist(), strict=True):
        names[m] += f.names
    classes = tuple(
        replace(point.classes[m], names=tuple(sorted(own, key=place.__getitem__)))
        for m, own in names.items()
    )
    full, busy = (np.reshape(mode == one, (-1, *[1] * (point.q.ndim - 1))) for one in (FULL, BUSY))
    q = np.where(full, point.q_max, np.where(busy, point.q, 0.0))
    return point.with_classes(classes, lead).changed(mode=np.array(mode), q=q)


def queue_modes(
    links: tuple[LinkSpec, ...], capacity: Any, longest: Any, queue: Any, admitted: Any
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """What each queue does: PASS (empty, or none), BUSY or FULL; and where one stands between two
    of these, both (links, ...).
    """
    with np.errstate(invalid="ignore"):
        excess = admitted / capacity - 1
        has = np.array([k.law.queue is not None for k in links]).reshape(
            -1, *(1 for _ in queue.shape[1:])
        )
        empty = queue <= NEAR * np.maximum(1e-3, queue.max(axis=0, initial=0.0))
        full = ~empty & (queue >= longest * (1 - NEAR))
        between = has & np.where(empty, excess > -NEAR, full & (excess < NEAR))
    return np.where(has & ~empty, np.where(full, FULL, BUSY), PASS), between


def _between(link: LinkSpec, full: bool, admitted: float) -> InvalidInput:
    """Why a point is refused at which a link's queue is between two modes."""
    what = "buffer is full" if full else "queue is empty"
    either = "capacity or the largest rate of a flow a little, or let its law want a queue above 0"
    remedy = "buffer a little" if full else either
    return InvalidInput(
        f"link {link.name!r} stands on a switching surface: its {what} and "
        f"{admitted:.9g} bit/s enter it, exactly its capacity, so that the two "
        f"sides of y = c have different derivatives; change its {remedy}"
    )


def _untied(point: OperatingPoint, errors: dict[int, FluidccError]) -> Iterator[OperatingPoint]:
    """The points of one structure, without those at which links offer a class the same least rate
    and it listens to it.
    """
    _, tied = least_offers(point)
    tied &= tied.sum(axis=1, keepdims=True) > 1
    if tied.any():
        column = SOURCE_INPUTS.index(offer_min)
        for g in point.flow_groups:
            J = flows_of(point).at(g).jacobians
            by = np.concatenate([J.B[:, column], J.D[:, column]])
            tied[list(g.members)] &= (by != 0).any(axis=0)[:, None]
    for k, *own in np.argwhere(tied.any(axis=1)).tolist():
        both = np.flatnonzero(tied[k].reshape(len(point.links), -1)[:, own or 0])
        names = " and ".join(repr(point.links[l].name) for l in both)
        errors.setdefault(int(point.rows[*own or (0,)]), InvalidInput(
            f"flow {point.classes[k].name!r} stands on a switching surface: links {names} "
            "offer it the same least rate, and what each does next is not the same; change "
            "the capacity of one a little"
        ))  # fmt: skip
    if point.single:
        if not tied.any():
            yield point
        return
    free = point.part(np.flatnonzero(~tied.any(axis=(0, 1))))
    if len(free.rows):
        for part, _ in free.split(_details(free)):
            yield part


def _by_branch(
    point: OperatingPoint, errors: dict[int, FluidccError], kind: str
) -> Iterator[OperatingPoint]:
    """The points by the branches of the laws of flows or of links, and by the states that a
    bound holds.
    """
    side = SIDES[kind](point)
    found = list(_branches(point, kind, side))
    for g, near, loose in found:
        of = [f"{kind} {side.names[i]!r}: " for i in g.members]
        for k, j, *own in np.argwhere(near).tolist():
            if (i := int(point.rows[*own or (0,)])) not in errors:
                errors[i] = on_surface(g.law, k, of[j])
        for end, k, j, *own in np.argwhere(loose).tolist():
            z = g.law.states[k]
            bound = (g.law.lower, g.law.upper)[end][z]
            moved = ", ".join(sorted(map(plain, bound.free_symbols))) or f"{bound}"
            errors.setdefault(int(point.rows[*own or (0,)]), InvalidInput(
                f"{of[j]}{g.law.name} stands on a switching surface: its "
                f"{plain(z)} is at its {('lower', 'upper')[end]} bound and does not press against "
                f"it; move that bound ({moved}) so far that it rests off it, as a rate does whose "
                "upper bound is above the capacity"
            ))  # fmt: skip
    pick = np.flatnonzero([i not in errors for i in point.rows.tolist()])
    codes: list[Any] = [np.zeros((1, len(pick)))]
    codes += [part.reshape(-1, len(point.rows))[:, pick]
              for g, *_ in found for part in (g.modes, g.free)]  # fmt: skip
    for part, _ in point.part(pick).split(np.concatenate(codes)) if len(pick) else ():
        groups = [g for g, *_ in found]
        if not point.single:
            k = int(np.searchsorted(point.rows, part.rows[0]))
            groups = [replace(g, modes=g.modes[..., k : k + 1], free=g.free[..., k])
                      for g in groups]  # fmt: skip
        yield part.changed(**{f"{kind}_groups": tuple(groups)})


def _details(point: OperatingPoint) -> Any:
    """Which derivatives vanish and which lags coincide, as codes of shape (..., points)."""
    codes = []
    many = point.x.shape[-1]
    for side in (flows_of(point), links_of(point)):
        for g in side.groups:
            codes += [(M != 0).reshape(-1, many).astype(np.int16) for M in side.at(g).jacobians]
    lag = Lags(point)
    lags = [
        np.zeros(many),
        *lag.trip,
        *lag.direct,
        *(a for side in (lag.forward, lag.backward) for own in side for a in own),
    ]
    lags += [own[h] - own[j] for own in lag.forward for h in range(len(own)) for j in range(h)]
    codes.append(_coincidences(np.round(np.array(lags), 12)))
    return np.concatenate(codes)


def _coincidences(lags: Any) -> Any:
    """For each lag the first that is equal to it, (lags, points)."""
    order = np.argsort(lags, axis=0, kind="stable")
    ranked = np.take_along_axis(lags, order, axis=0)
    fresh = np.concatenate([np.ones((1, lags.shape[1]), bool), ranked[1:] != ranked[:-1]])
    start = np.maximum.accumulate(np.where(fresh, np.arange(len(lags))[:, None], 0), axis=0)
    first = np.empty(order.shape, np.int16 if len(lags) < 2**15 else np.int64)
    np.put_along_axis(first, order, np.take_along_axis(order, start, axis=0), axis=0)
    return first


# --- laws on their branches -----------------------------------------------------------------------


SIDES: dict[str, Callable[[OperatingPoint], Side]] = {"flow": flows_of, "link": links_of}


def _branches(
    point: OperatingPoint, kind: str, of: Side
) -> Iterator[tuple[LawGroup, NDArray[np.bool_], NDArray[np.bool_]]]:
    """The laws of the flows or links by structure, each on its branch at the point; the switches at
    which a law stands (switches, members, ...); and the states at a lower or an upper bound (2,
    states, members, ...) against which they do not press.
    """
    for members in grouped(of.laws):
        law = of.laws[members[0]]
        z, u, p = of.numbers(members)
        modes, near = modes_at(law, z, u, p, relative=NEAR)
        free, loose = np.ones(z.shape, bool), np.zeros((2, *z.shape), bool)
        held = [s for s in own_states(law) if s in law.lower or s in law.upper]
        ends = [bounds(law, held, _known(point, kind, law, i, of.p[i])) for i in members]
        flows: list[Any] = []  # from both sides, so that a flow of 0 presses nowhere
        weak = loose.copy()
        for k, s in enumerate(held):
            i = law.states.index(s)
            for side, sign in enumerate((1.0, -1.0)):
                end = np.empty(z.shape[1:])
                for j, own in enumerate(ends):
                    end[j] = own[side][k]
                stuck = sign * (z[i] - end) <= 1e-12 * np.clip(np.abs(end), 1e-3, 1e300)
                if not stuck.any():
                    continue
                flows = flows or [
                    branch_function(law)(z, u * (1 + d), p, modes).flow for d in (NEAR, -NEAR)
                ]
                presses = np.max([sign * f[i] for f in flows], axis=0) < 0
                free[i] &= ~(stuck & presses)
                weak[side, i] = stuck & ~presses
        for i in np.unique(np.nonzero(weak)[1]):
            jacobians = branch_function(law)(z, u, p, modes).jacobians
            moves = free.copy()
            if kind == "link" and law.queue is not None:
                moves[law.states.index(law.queue)] &= point.mode[list(members)] == BUSY
            loose[:, i] = weak[:, i] & ~_decays_alone(jacobians, i, moves)
        yield LawGroup(law, tuple(members), modes, free), near, loose


def _known(point: OperatingPoint, kind: str, law: Any, i: int, params: Any) -> dict[Any, Any]:
    """What bounds of a law's states may depend on."""
    place: Any = (
        {c: point.c[i], q_max: point.q_max[i]}
        if kind == "link"
        else {e_b: point.back[i], packet: point.packet[i]}
    )
    return {**dict(zip(law.params, params, strict=True)), **place}


def _decays_alone(jacobians: Any, i: int, moves: Any) -> Any:
    """Whether a state at its bound returns there by itself and nothing that `moves` pushes it: the
    bound never acts.
    """
    by = np.where(moves, jacobians.A[i], 0.0)
    own, by[i] = jacobians.A[i][i], 0.0
    return (own < 0) & ~by.any(axis=0) & ~jacobians.B[i].any(axis=0)


def _refuse_frozen_loss(point: OperatingPoint) -> None:
    """The frozen form does not thin what comes after a loss, so that its equilibrium would be
    another one.
    """
    if any(point.mixed):
        raise Unsupported(
            f"link {point.links[point.mixed.index(True)].name!r} drops of flows with ecn=False "
            "what it marks of others, which the frozen form (8) does not know; use delays='fifo'"
        )
    routes: Any = [*(f.route for f in point.classes), *(route for route, *_ in point.constant)]
    lossy = {int(l) for l in np.flatnonzero(loss(point) > 0)}
    for route in routes:
        if lossy & set(route[:-1]):
            name = point.links[next(iter(lossy & set(route[:-1])))].name
            raise Unsupported(
                f"link {name!r} loses packets before the end of a route, which the frozen form "
                "(8) does not carry on to the next link; use delays='fifo'"
            )


def _refuse_ticks(net: Network) -> None:
    """A sampled law may rest, but what it does near there is a recursion and no differential
    equation.
    """
    kinds = {names[0]: net.flows[names[0]] for names in identical(net)}
    for kind, specs in (("flow", kinds), ("link", net.links)):
        for name, spec in specs.items():
            if spec.law.ticks:
                raise Unsupported(
                    f"{kind} {name!r} ({spec.law.name}) is sampled, so it has no Jacobian in "
                    "continuous time: take fluidcc.sampled_stability, which has its ticks, a law "
                    "without them (such as fluidcc.RED for AdaptiveRED), or simulate it"
                )


def static_windows(point: OperatingPoint) -> tuple[str, ...]:
    """What to say of flows that send their window over the round trip to a queue that marks or
    drops early.
    """
    early = [bool({"mark", "drop"} & link.law.out.keys()) for link in point.links]
    found = [
        f for f in point.classes
        if any(early[l] and point.mode[l] == BUSY for l in f.route)
        and f.spec.law.static_window is not None
    ]  # fmt: skip
    if not found:
        return ()
    return (
        f"flow {found[0].names[0]!r} ({found[0].spec.law.name}) sends its window over the round "
        "trip that it hears of, W/RTT, where TCP is clocked by acknowledgements: over a queue "
        "that marks or drops early the verdict and the margins are those of the law, not of TCP "
        "(of 60 flows of StaticReno at 3750 packets/s and 0.246 s the critical gain is 6.65e-5 a "
        "packet; 1.82e-4 in Misra, Gong and Towsley's model with state-dependent round trips, "
        "and 2.3e-4 with a clock of acknowledgements); take a law that has one, such as "
        "fluidcc.Reno, or one of fluidcc.window",
    )
