"""Networks of explicit feedback, near the rest where rates are max-min fair: queues, reports, delays, exactly.

The queue of a router that is filled integrates what comes. Every T_ECF it tells its sources a factor r'/r, where r is
what came in the last T_s, and so the change of its queue in that time; r' follows from its queue. A source obeys the
router that allows it the least, and holds what that says until the next report.

Decreases are carried out in full and increases by half: this is the loop of decreases, the stronger of the two. The
stall rule, which disturbs a rest, is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Symbol, lambdify

from fluidcc.base.errors import Unsupported
from fluidcc.equilibria.assembly import capacity_at, constant_rate
from fluidcc.links.ecf import PAQMECF, PAQMECF2, T_ECF, V1, V2, R, measured, q
from fluidcc.metrics.fairness import max_min_rates
from fluidcc.numerics.linear.held import HeldLoop, Measurement, Path
from fluidcc.sources.ecf import ECF
from fluidcc.symbols import c

if TYPE_CHECKING:
    from fluidcc.laws import Link
    from fluidcc.network.network import FlowSpec, LinkSpec, Network

__all__ = ["EXPLICIT", "explicit_loop"]

EXPLICIT = (PAQMECF.name, PAQMECF2.name)
_CLOSE = 1e-9


@dataclass(frozen=True)
class _Class:
    """Flows alike: their rate together at rest [bit/s], and the router that they obey, None where nothing holds."""

    route: tuple[str, ...]
    access: float
    rate: float
    obeys: str | None


def explicit_loop(net: Network, flows: Sequence[FlowSpec], at: float) -> tuple[HeldLoop, int]:
    """The loop of a network of `PAQMECF` or `PAQMECF2` with sources of `ECF`, beside constant rates.

    With it comes how many differences among identical flows there are: all are told the same factor, which keeps them.

    Raises
    ------
    Unsupported
        If a flow has another law, a link without reports is filled, no router is, or a source obeys two of them alike.
    """
    rate = _rates(net, flows, at)
    load = {name: sum(x for x, f in zip(rate, flows, strict=True) if name in f.route) for name in net.links}
    filled = [link for n, link in net.links.items() if load[n] >= capacity_at(link, at) * (1 - _CLOSE)]
    for link in filled:
        _check(link)
    found: dict[Any, list[float]] = {}
    for f, x in zip(flows, rate, strict=True):
        key = (tuple(f.route), f.access_delay, _obeyed(f, x, flows, rate, [link.name for link in filled]))
        found.setdefault(key, []).append(x)
    classes = [_Class(route, access, sum(rates), obeys) for (route, access, obeys), rates in found.items()]
    if all(k.obeys is None for k in classes):
        raise Unsupported(
            "no router is filled by sources of fluidcc.ECF: each sends its r_max, and nothing moves; let them have more"
        )
    among = sum(len(rates) - 1 for (_, _, obeys), rates in found.items() if obeys is not None)
    return _loop(net, classes, filled, at), among


def _rates(net: Network, flows: Sequence[FlowSpec], at: float) -> list[float]:
    """Max-min fair rates of the sources of ECF, none above its r_max, and the constant ones of others."""
    fixed = [None if f.law.flow == ECF.flow and f.law.out == ECF.out else constant_rate(f, at) for f in flows]
    moving = [f for f, x in zip(flows, fixed, strict=True) if x is None]
    for f in moving:
        if f.law.flow != ECF.flow or f.law.out != ECF.out:
            raise Unsupported(
                f"flow {f.name!r} has the law {f.law.name}; beside routers that report, multipliers are those of "
                "fluidcc.ECF and of constant rates: simulate it"
            )
    room = []
    for name, link in net.links.items():
        taken = sum(x for f, x in zip(flows, fixed, strict=True) if x is not None and name in f.route)
        room.append(capacity_at(link, at) - taken)
        if not room[-1] > 0:
            raise Unsupported(f"link {name!r} is filled by constant rates alone, {taken:.6g} bit/s; give it more")
    crosses = np.array([[name in f.route for f in moving] for name in net.links], float)
    most = [f.law.parameter("r_max") for f in moving]
    given = iter(max_min_rates(np.vstack([crosses, np.eye(len(moving))]), np.array([*room, *most])))
    return [float(next(given)) if x is None else x for x in fixed]


def _check(link: LinkSpec) -> None:
    """Refuse a filled link whose queue does not rest at its aim."""
    if link.law.name not in EXPLICIT:
        raise Unsupported(
            f"link {link.name!r} ({link.law.name}) is filled and tells nothing, so that no rest is determined; give it "
            "more capacity than its reporting neighbours, or the law fluidcc.PAQMECF"
        )
    aim = link.law.parameter("aim")
    if aim >= link.law.parameter("q_0") or aim >= link.buffer / link.capacity:
        raise Unsupported(
            f"link {link.name!r} aims at a queue of {aim:g} s, from where it drops already; let its q_0 and its buffer "
            "be longer"
        )


def _obeyed(f: FlowSpec, x: float, flows: Sequence[FlowSpec], rate: list[float], filled: list[str]) -> str | None:
    """The router that allows the flow the least; None if its own largest rate does, or it has a constant one."""
    if f.law.flow != ECF.flow:
        return None
    most = {
        name: max(r for r, g in zip(rate, flows, strict=True) if name in g.route and g.law.flow == ECF.flow)
        for name in f.route if name in filled
    }  # fmt: skip
    holds = [name for name, r in most.items() if x >= r * (1 - _CLOSE)]
    own = x >= f.law.parameter("r_max") * (1 - _CLOSE)
    if len(holds) + own > 1 or x <= f.law.parameter("r_min"):
        who = ", ".join([*(f"link {name!r}" for name in holds), *(["its r_max"] * own)]) or "its r_min"
        raise Unsupported(
            f"flow {f.name!r} is held to {x:.6g} bit/s by {who}, and which of them decides switches with every "
            "deviation; change one of them a little"
        )
    return holds[0] if holds else None


@lru_cache(maxsize=2)
def _wish(old_rate: bool) -> Any:
    """Derivatives of the rate wanted next by the queue [s] and by the rate measured, for c = 1."""
    rate = Symbol("x", positive=True)
    new = (V2 if old_rate else V1).xreplace({measured: rate})
    return lambdify([T_ECF, R], [new.diff(z).subs(c, 1) for z in (q, rate)])


def _gains(law: Link) -> tuple[float, float]:
    """Of a router's factor: by its queue now, and by its queue T_s ago [1/s]."""
    old_rate = law.name == PAQMECF2.name
    by_queue, by_rate = _wish(old_rate)(law.parameter("T_ECF"), law.parameter("R") if old_rate else 0.0)
    measured_by = (float(by_rate) - 1.0) / law.parameter("T_s")  # r'/r, and r by the change of the queue
    return float(by_queue) + measured_by, -measured_by


def _loop(net: Network, classes: list[_Class], filled: list[LinkSpec], at: float) -> HeldLoop:
    place = {link.name: i for i, link in enumerate(filled)}
    moving = [k for k, one in enumerate(classes) if one.obeys is not None]
    arrivals = _Arrivals(net, classes, place, at)
    paths, measurements = [], []
    for j, k in enumerate(moving):
        one = classes[k]
        obeys = str(one.obeys)
        told = one.access + sum(net.links[name].delay for name in one.route[: one.route.index(obeys)])
        for name, i in place.items():
            for (source, delay), gain in arrivals.at(name).items():
                if source == k:
                    paths.append(Path(i, j, gain / capacity_at(net.links[name], at), told + delay))
        law = net.links[obeys].law
        for gain, delay in zip(_gains(law), (0.0, law.parameter("T_s")), strict=True):
            measurements.append(Measurement(j, place[obeys], one.rate * gain, delay))
    periods = [net.links[str(classes[k].obeys)].law.parameter("T_ECF") for k in moving]
    shared = np.array([[float(name in classes[k].route) for k in moving] for name in place])
    return HeldLoop(periods, len(filled), [1.0] * len(moving), paths, measurements, _unseen(shared))


def _unseen(shared: Any) -> Any:
    """Changes of rates that no filled router sees."""
    from scipy.linalg import null_space

    return null_space(shared)


class _Arrivals:
    """How what comes to a link answers the rates of classes, at which delays."""

    def __init__(self, net: Network, classes: list[_Class], filled: dict[str, int], at: float) -> None:
        self.net, self.classes, self.filled, self.time = net, classes, filled, at
        self._known: dict[str, dict[tuple[int, float], float]] = {}
        self._open: list[str] = []

    def at(self, name: str) -> dict[tuple[int, float], float]:
        """Of all that comes to a link: gain by class and delay [s]."""
        if name not in self._known:
            if name in self._open:
                raise Unsupported(
                    f"filled links {name!r} and {self._open[-1]!r} are crossed in both orders, so that what leaves "
                    "each depends on the other for ever; simulate it"
                )
            self._open.append(name)
            total: dict[tuple[int, float], float] = {}
            for k, one in enumerate(self.classes):
                if name in one.route:
                    _add(total, self._of(k, name), 1.0, 0.0)
            self._open.pop()
            self._known[name] = total
        return self._known[name]

    def _of(self, k: int, name: str) -> dict[tuple[int, float], float]:
        """Of what class k brings there: its own rate, less its share of what others bring to filled queues before.

        From a queue that is never empty c x(theta)/y(theta) leaves, where what leaves came at theta.
        """
        one = self.classes[k]
        found: dict[tuple[int, float], float] = {(k, one.access): 1.0} if one.obeys is not None else {}
        for hop in one.route[: one.route.index(name)]:
            wait = self.net.links[hop].delay
            if hop in self.filled:
                link = self.net.links[hop]
                wait += link.law.parameter("aim")
                _add(found, self.at(hop), -one.rate / capacity_at(link, self.time), 0.0)
            later: dict[tuple[int, float], float] = {}
            _add(later, found, 1.0, wait)
            found = later
        return found


def _add(total: dict[tuple[int, float], float], more: dict[tuple[int, float], float], gain: float, wait: float) -> None:
    for (k, delay), value in more.items():
        key = k, math.fsum((delay, wait))
        total[key] = total.get(key, 0.0) + gain * value
