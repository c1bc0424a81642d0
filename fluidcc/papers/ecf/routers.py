"""Routers of P-AQM that report to sources of ECF, near their rest: `fluidcc.sampled_stability` has
their explicit loop from here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Symbol, lambdify

from fluidcc.analysis.sampled import LOOPS, SampledStability, sampled_stability
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.equilibria.result import Equilibrium
from fluidcc.links.paqm import (
    PAQM,
    T_ECF,
    V1,
    V2,
    R,
    T_s,
    aim,
    dT,
    given_R,
    given_T,
    measured,
    q,
    q0,
)
from fluidcc.metrics.fairness import max_min_rates
from fluidcc.network.wired import capacity_at, constant_rate, is_on, moment
from fluidcc.papers.held import HeldLoop, Measurement, Path
from fluidcc.sources.ecf import ECF, r_max, r_min
from fluidcc.symbols import c

if TYPE_CHECKING:
    from fluidcc.laws import Link, Source
    from fluidcc.network.network import Network
    from fluidcc.network.specs import FlowSpec, LinkSpec

__all__ = ["explicit_loop", "router_loop", "sampled_stability"]

_CLOSE = 1e-9


def _loop(net: Network, period: Any, at: Any) -> SampledStability | None:
    """The multipliers of a network whose routers are P-AQM, None of others; see
    `fluidcc.sampled_stability`.
    """
    if (found := router_loop(net, at.at if isinstance(at, Equilibrium) else at)) is None:
        return None
    router, among = found
    if period is not None:
        raise InvalidInput(
            f"the period is {period!r}, but the router has its own, {router.period:g} s; "
            "leave it out"
        )
    return SampledStability(router.period, router.multipliers, router.undetermined + among)


LOOPS.append(_loop)


def _reports(law: Link) -> bool:
    """Whether a router tells its sources by which factor to change their rates."""
    return "factor" in law.out


def _obeys(law: Source) -> bool:
    """Whether a source does at once what routers report."""
    return law.flow == ECF.flow and law.out == ECF.out


def _has_inner_loop(law: Link) -> bool:
    """Whether a router has P-AQM's inner loop."""
    return set(PAQM.ticks) <= set(law.ticks)


@dataclass(frozen=True)
class _Class:
    """Flows alike: their rate together at rest [bit/s], and the router that they obey, None
    where nothing holds.
    """

    route: tuple[str, ...]
    access: float
    rate: float
    obeys: str | None


def explicit_loop(net: Network, flows: Sequence[FlowSpec], at: float) -> tuple[HeldLoop, int]:
    """The loop of a network of `PAQMECF` or `PAQMECF2` with sources of `ECF`, beside constant
    rates.

    With it comes how many differences among identical flows there are: all are told the same
    factor, which keeps them.

    Raises
    ------
    Unsupported
        If a flow has another law, a link without reports is filled, no router is, or a source obeys
        two of them alike.
    """
    rate = _rates(net, flows, at)
    load = {
        name: sum(x for x, f in zip(rate, flows, strict=True) if name in f.route)
        for name in net.links
    }
    filled = [
        link for n, link in net.links.items() if load[n] >= capacity_at(link, at) * (1 - _CLOSE)
    ]
    for link in filled:
        _check(link)
    found: dict[Any, list[float]] = {}
    for f, x in zip(flows, rate, strict=True):
        key = (
            tuple(f.route),
            f.access_delay,
            _obeyed(f, x, flows, rate, [link.name for link in filled]),
        )
        found.setdefault(key, []).append(x)
    classes = [
        _Class(route, access, sum(rates), obeys) for (route, access, obeys), rates in found.items()
    ]
    if all(k.obeys is None for k in classes):
        raise Unsupported(
            "no router is filled by sources of fluidcc.ECF: each sends its r_max, and nothing "
            "moves; let them have more"
        )
    among = sum(len(rates) - 1 for (_, _, obeys), rates in found.items() if obeys is not None)
    trips = {
        link.name: [2 * _way(net, f, link.name) for f in flows if link.name in f.route]
        for link in filled
    }
    return _feedback_loop(net, classes, filled, trips, at), among


def _rates(net: Network, flows: Sequence[FlowSpec], at: float) -> list[float]:
    """Max-min fair rates of the sources of ECF, none above its r_max, and the constant ones of
    others.
    """
    fixed = [None if _obeys(f.law) else constant_rate(f, at) for f in flows]
    moving = [f for f, x in zip(flows, fixed, strict=True) if x is None]
    for f in moving:
        if not _obeys(f.law):
            raise Unsupported(
                f"flow {f.name!r} has the law {f.law.name}; beside routers that report, "
                "multipliers are those of fluidcc.ECF and of constant rates: simulate it"
            )
    room = []
    for name, link in net.links.items():
        taken = sum(
            x for f, x in zip(flows, fixed, strict=True) if x is not None and name in f.route
        )
        room.append(capacity_at(link, at) - taken)
        if not room[-1] > 0:
            raise Unsupported(
                f"link {name!r} is filled by constant rates alone, {taken:.6g} bit/s; give it more"
            )
    crosses = np.array([[name in f.route for f in moving] for name in net.links], float)
    most = [f.law.params[r_max] for f in moving]
    given = iter(max_min_rates(np.vstack([crosses, np.eye(len(moving))]), np.array([*room, *most])))
    return [float(next(given)) if x is None else x for x in fixed]


def _check(link: LinkSpec) -> None:
    """Refuse a filled link whose queue does not rest at its aim."""
    if not _reports(link.law):
        raise Unsupported(
            f"link {link.name!r} ({link.law.name}) is filled and tells nothing, so that no rest "
            "is determined; give it more capacity than its reporting neighbours, or the law "
            "fluidcc.PAQMECF"
        )
    own = link.law.params[aim]
    if own >= link.law.params[q0] or own >= link.buffer / link.capacity:
        raise Unsupported(
            f"link {link.name!r} aims at a queue of {own:g} s, from where it drops already; let "
            "its q_0 and its buffer be longer"
        )


def _obeyed(
    f: FlowSpec, x: float, flows: Sequence[FlowSpec], rate: list[float], filled: list[str]
) -> str | None:
    """The router that allows the flow the least; None if its own largest rate does, or it has a
    constant one.
    """
    if not _obeys(f.law):
        return None
    most = {
        name: max(r for r, g in zip(rate, flows,
        strict=True) if name in g.route and _obeys(g.law))
        for name in f.route if name in filled
    }  # fmt: skip
    holds = [name for name, r in most.items() if x >= r * (1 - _CLOSE)]
    own = x >= f.law.params[r_max] * (1 - _CLOSE)
    if len(holds) + own > 1 or x <= f.law.params[r_min]:
        who = (
            ", ".join([*(f"link {name!r}" for name in holds), *(["its r_max"] * own)])
            or "its r_min"
        )
        raise Unsupported(
            f"flow {f.name!r} is held to {x:.6g} bit/s by {who}, and which of them decides "
            "switches with every deviation; change one of them a little"
        )
    return holds[0] if holds else None


@lru_cache(maxsize=2)
def _wish(old_rate: bool) -> Any:
    """Derivatives of the rate wanted next by the queue [s] and by the rate measured, for c = 1."""
    rate = Symbol("x", positive=True)
    new = (V2 if old_rate else V1).xreplace({measured: rate})
    return lambdify([T_ECF, R], [new.diff(z).subs(c, 1) for z in (q, rate)])


def _period(link: LinkSpec, trips: Sequence[float]) -> float:
    """T_ECF, given or by (4) from the round trips to the sources [s]."""
    own = link.law.params
    by_4 = own[dT] * math.ceil((max(trips) + own[T_s]) / own[dT] - 1e-9)
    return float(own[given_T] or by_4)


def _gains(link: LinkSpec, trips: Sequence[float]) -> tuple[float, float]:
    """Of a router's factor: by its queue now, and by its queue T_s ago [1/s]."""
    own = link.law.params
    mean = own.get(given_R) or sum(trips) / len(trips)
    by_queue, by_rate = _wish(given_R in own)(_period(link, trips), mean)
    measured_by = (float(by_rate) - 1.0) / own[T_s]  # r'/r, and r by the change of the queue
    return float(by_queue) + measured_by, -measured_by


def _way(net: Network, f: FlowSpec, link: str) -> float:
    """Delay from a source to a link, without queues [s]."""
    return f.access_delay + sum(net.links[name].delay for name in f.route[: f.route.index(link)])


def _feedback_loop(
    net: Network,
    classes: list[_Class],
    filled: list[LinkSpec],
    trips: Mapping[str, Sequence[float]],
    at: float,
) -> HeldLoop:
    from scipy.linalg import null_space

    place = {link.name: i for i, link in enumerate(filled)}
    moving = [k for k, one in enumerate(classes) if one.obeys is not None]
    arrivals = _arrivals(net, classes, place, at)
    paths, measurements = [], []
    for j, k in enumerate(moving):
        one = classes[k]
        obeys = str(one.obeys)
        told = one.access + sum(
            net.links[name].delay for name in one.route[: one.route.index(obeys)]
        )
        for name, i in place.items():
            for (source, delay), gain in arrivals(name).items():
                if source == k:
                    paths.append(Path(i, j, gain / capacity_at(net.links[name], at), told + delay))
        link = net.links[obeys]
        gains = _gains(link, trips[obeys])
        for gain, delay in zip(gains, (0.0, link.law.params[T_s]), strict=True):
            measurements.append(Measurement(j, place[obeys], one.rate * gain, delay))
    obeyed = [str(classes[k].obeys) for k in moving]
    periods = [_period(net.links[name], trips[name]) for name in obeyed]
    shared = np.array([[float(name in classes[k].route) for k in moving] for name in place])
    # changes of rates that no filled router sees
    return HeldLoop(
        periods, len(filled), [1.0] * len(moving), paths, measurements, null_space(shared)
    )


def _arrivals(
    net: Network, classes: list[_Class], filled: dict[str, int], time: float
) -> Callable[[str], Mapping[tuple[int, float], float]]:
    """How what comes to a link, by its name, answers the rates of classes: gain by class and delay
    [s].
    """
    opened: list[str] = []

    @cache
    def at(name: str) -> Mapping[tuple[int, float], float]:
        if name in opened:
            raise Unsupported(
                f"filled links {name!r} and {opened[-1]!r} are crossed in both orders, "
                "so that what leaves each depends on the other for ever; simulate it"
            )
        opened.append(name)
        total: Any = Counter()
        for k, one in enumerate(classes):
            if name in one.route:
                total.update(brought(k, name))
        opened.pop()
        return total

    def brought(k: int, name: str) -> Mapping[tuple[int, float], float]:
        """What class k brings there: its own rate, less its share of what others bring to filled
        queues before.

        From a queue that is never empty c x(theta)/y(theta) leaves, where what leaves came at
        theta.
        """
        one = classes[k]
        found: Any = Counter({(k, one.access): 1.0} if one.obeys is not None else {})
        for hop in one.route[: one.route.index(name)]:
            wait = net.links[hop].delay
            if hop in filled:
                wait += net.links[hop].law.params[aim]
                share = one.rate / capacity_at(net.links[hop], time)
                found.subtract({key: share * gain for key, gain in at(hop).items()})
            later: Any = Counter()
            for (j, delay), gain in found.items():
                later[j, math.fsum((delay, wait))] += gain
            found = later
        return found

    return at


# --- routers that sample, near rest ---


def router_loop(net: Network, at: Any) -> tuple[HeldLoop, int] | None:
    """The sampled loop of a network of sources of `ECF` whose routers are P-AQM, and how many
    differences among identical flows stay for ever; None if it has no such source or router.

    Raises
    ------
    Unsupported
        If it has both, but not the form of `explicit_loop`.
    """
    routers = [link for link in net.links.values() if _has_inner_loop(link.law)]
    time = moment(at)
    flows = [f for f in net.flows.values() if is_on(f, time)]
    first = next((f for f in flows if _obeys(f.law)), None)
    if first is None or not routers:
        return None
    if any(_reports(link.law) for link in routers):
        return explicit_loop(net, flows, time)
    raise Unsupported(
        f"link {routers[0].name!r} ({routers[0].law.name}) tells flow {first.name!r} "
        f"({first.law.name}) nothing, which sends as it is told; give the link the law "
        "fluidcc.PAQMECF, or simulate it"
    )
