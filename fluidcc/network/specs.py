"""A law placed in a network, with every argument checked: `LinkSpec` and `FlowSpec`.

Each message starts with the argument it is about ("capacity of link 'a' ..."), so that a scenario
file can add its key.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import sympify

from fluidcc import symbols
from fluidcc.base.arguments import choice, shown, whole
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.base.units import Dimension, dimension_of, format_si, to_si
from fluidcc.laws.early_loss import with_loss
from fluidcc.laws.law import Law, Link, Source
from fluidcc.network.patterns import (
    Modulated,
    Pairs,
    is_list,
    near,
    parse_pattern,
    quantity,
    series,
)
from fluidcc.numerics.traffic import intervals, on_off_pareto, poisson_counts
from fluidcc.symbols import plain, unfold

PACKET = 8000.0  # [bit] the papers' packet of 1 KB
TRICKLE = 1e-4  # of its largest capacity that a link keeps in an outage


_ALWAYS: Pairs = ((-math.inf, math.inf),)


@dataclass(frozen=True)
class LinkSpec:
    """A link law with its place: capacity [bit/s] from t = 0 and its changes, delay [s], buffer
    [bit], initial states.

    `initial` is by state name; a queue is its delay [s]. `stamp` says where data are marked, at
    ``"arrival"`` or ``"departure"``.
    """

    name: str
    law: Link
    capacity: float
    schedule: Pairs = ()
    delay: float = 0.0
    buffer: float = math.inf
    initial: Mapping[str, float] = field(default_factory=dict, hash=False)
    stamp: str = "arrival"


@dataclass(frozen=True)
class FlowSpec:
    """A source law with its place: route, on-periods [s], delays [s], packet size [bit], initial
    states by name.

    `return_delay` None means the forward propagation delay. `pattern` replaces the rate of a source
    without states. Without `ecn` it cannot be marked.
    """

    name: str
    law: Source
    route: tuple[str, ...]
    intervals: Pairs = _ALWAYS
    access_delay: float = 0.0
    return_delay: float | None = None
    packet: float = PACKET
    initial: Mapping[str, float] = field(default_factory=dict, hash=False)
    pattern: Pairs | Modulated | None = None
    ecn: bool = True


# --- states ---------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _state_table(law: Law) -> dict[str, tuple[Any, str, Any, Any, Any]]:
    """Return symbol, unit, default (or None) and bounds by state name, with the law's parameters
    put in.
    """

    def put(mapping: Mapping[Any, Any], z: Any, without: Any) -> Any:
        if z not in mapping:
            return without
        value = sympify(unfold(mapping[z]).xreplace(dict(law.params)))
        return float(value) if value.is_number else value

    found = {}
    for z in law.states:
        bounds = put(law.lower, z, -math.inf), put(law.upper, z, math.inf)
        found[plain(z)] = (z, law.units.get(z, "1"), put(law.initial, z, None), *bounds)
    return found


def _number(expr: Any, constants: Mapping[Any, float]) -> float:
    return expr if isinstance(expr, float) else float(expr.xreplace(constants))


def initial_states(
    law: Law, given: Mapping[str, Any] | None, constants: Mapping[Any, float], of: str
) -> dict[str, float]:
    """Return the initial value of every state of a law: the given one, else the law's default;
    within the law's bounds.
    """
    table = _state_table(law)
    if not isinstance(given, Mapping | None):
        raise InvalidInput(
            f"initial of {of} is {shown(given)}; give states by name, such as "
            f"{{{next(iter(table), 'x')!r}: 0.1}}"
        )
    for name in given or {}:
        if name not in table:
            if not isinstance(name, str):
                meant = next((n for n in table if n == plain(str(name))), next(iter(table), "x"))
                raise InvalidInput(
                    f"initial of {of} has the key {shown(name)}; give states by name, such as "
                    f"{{{meant!r}: 0.1}}"
                )
            hint = near(name, table) if table else "it has none"
            raise UnknownName(
                f"initial of {of} names a state {name!r}, which {law.name} does not have; {hint}"
            )
    values, known = {}, dict(constants)
    for name, (z, unit, default, lower, upper) in table.items():
        what = f"initial of {of}: {name}"
        if name in (given or {}):
            value = to_si(given[name], unit, what)  # type: ignore[index]
        elif default is None:
            raise InvalidInput(
                f"initial of {of} lacks {name}, for which {law.name} has no default; give it in "
                f"{unit}"
            )
        else:
            value = _number(default, known)
        low, high = _number(lower, constants), _number(upper, constants)
        if not low <= value <= high:
            raise InvalidInput(
                f"{what} is {value:g} {unit}; {law.name} keeps it between {low:g} and {high:g}"
            )
        if z.is_positive and value == 0:
            raise InvalidInput(
                f"{what} is 0; {law.name} needs a positive value, as its symbol was declared "
                "positive=True; declare it nonnegative=True if it may be 0"
            )
        values[name] = known[z] = value
    return values


# --- links ----------------------------------------------------------------------------------------


def link_spec(
    name: str,
    law: Link,
    *,
    capacity: Any,
    delay: Any,
    buffer: Any,
    initial: Any,
    packet: Any,
    loss: Any,
    stamp: Any,
) -> LinkSpec:
    """Check the arguments of `Network.link`, which documents them."""
    of = f"link {name!r}"
    if not isinstance(law, Link):
        raise InvalidInput(
            f"law of {of} is {shown(law)}; give a link law, such as fluidcc.DropTail"
        )
    if loss is not None:
        law = with_loss(law, quantity(loss, "1", f"loss of {of}"))
    choice(stamp, f"stamp of {of}", ("arrival", "departure"))
    if stamp == "departure" and "mark" not in law.out:
        raise InvalidInput(
            f"stamp of {of} is 'departure', but {law.name} marks nothing; leave stamp out"
        )
    packet = quantity(packet, "bit/packet", f"packet of {of}", positive=True)
    pairs = capacity if is_list(capacity) else ((0.0, capacity),)
    rates = series(pairs, f"capacity of {of}", not is_list(capacity), packet)
    usual = next((rate for _, rate in rates if rate > 0), 0.0)
    rates = _with_outages(rates, law, of)
    first = rates[0][1]
    size = _buffer(buffer, law, usual, packet, of)
    given = _queue_by_delay(law, initial, first, packet, of)
    start = initial_states(law, given, {symbols.c: first, symbols.q_max: size / first}, of)
    return LinkSpec(
        name, law, first, rates[1:], quantity(delay, "s", f"delay of {of}"), size, start, stamp
    )


def _with_outages(rates: Pairs, law: Link, of: str) -> Pairs:
    """Return the capacities with next to nothing in place of 0, so that delays are finite."""
    most = max(rate for _, rate in rates)
    if most == 0:
        raise InvalidInput(
            f"capacity of {of} is 0 throughout; give a positive one, or for an outage pairs "
            "such as [(0, '3 Mbit/s'), (10, 0), (12, '3 Mbit/s')]"
        )
    if all(rate > 0 for _, rate in rates):
        return rates
    if law.states != (law.queue,) or not {*law.out} <= {"loss", "drop"}:
        raise Unsupported(
            f"capacity of {of} is 0 for a while, and {law.name} answers to its queue or load over "
            "the capacity of the moment, which has no limit then; give fluidcc.DropTail, or a "
            f"small capacity in place of 0, such as {most / 100:g} bit/s"
        )
    return tuple((time, rate or TRICKLE * most) for time, rate in rates)


def _buffer(value: Any, law: Link, capacity: float, packet: float, of: str) -> float:
    """Return the buffer [bit]; text in seconds is the longest queueing delay, at the first capacity
    that is not 0.
    """
    what = f"buffer of {of}"
    if value is None:
        return math.inf
    if law.queue is None:
        raise InvalidInput(
            f"{what} is {shown(value)}, but {law.name} has no queue; leave buffer out"
        )
    if isinstance(value, str) and dimension_of(value) == Dimension(s=1):
        return quantity(value, "s", what, positive=True) * capacity
    return quantity(value, "bit", what, positive=True, infinite=True, packet=packet)


def _queue_by_delay(law: Link, given: Any, capacity: float, packet: float, of: str) -> Any:
    """Return `initial` with the queue named by its state, from "q" [s] or "backlog" [bit]."""
    if law.queue is None or not isinstance(given, Mapping):
        return given
    state = plain(law.queue)
    result = {k: v for k, v in given.items() if k not in ("q", "backlog", state)}
    ways = [k for k in dict.fromkeys((state, "q", "backlog")) if k in given]
    if len(ways) > 1:
        raise InvalidInput(f"initial of {of} gives its queue as {' and as '.join(ways)}; give one")
    for way in ways:
        if way == "backlog":
            what = f"initial of {of}: backlog"
            result[state] = quantity(given[way], "bit", what, packet=packet) / capacity
        else:
            result[state] = given[way]
    return result


# --- flows ----------------------------------------------------------------------------------------


def flow_spec(
    name: str,
    law: Source,
    links: Mapping[str, LinkSpec],
    *,
    route: Any,
    start: Any,
    stop: Any,
    access_delay: Any,
    return_delay: Any,
    packet: Any,
    initial: Any,
    pattern: Any,
    ecn: Any,
) -> FlowSpec:
    """Check the arguments of `Network.flow`, which documents them."""
    of = f"flow {name!r}"
    if not isinstance(law, Source):
        raise InvalidInput(f"law of {of} is {shown(law)}; give a source law, such as fluidcc.LDCC")
    path = _route(route, links, of)
    if not isinstance(ecn, bool):
        raise InvalidInput(f"ecn of {of} is {shown(ecn)}; give True or False")
    access = quantity(access_delay, "s", f"access_delay of {of}")
    back = None if return_delay is None else quantity(return_delay, "s", f"return_delay of {of}")
    ell = quantity(packet, "bit/packet", f"packet of {of}", positive=True)
    e_b = access + sum(links[link].delay for link in path) if back is None else back
    start_at = initial_states(law, initial, {symbols.e_b: e_b, symbols.packet: ell}, of)
    return FlowSpec(
        name,
        law,
        path,
        _intervals(start, stop, of),
        access,
        back,
        ell,
        start_at,
        parse_pattern(pattern, law, of),
        ecn,
    )


def _route(route: Any, links: Mapping[str, LinkSpec], of: str) -> tuple[str, ...]:
    if isinstance(route, str | Mapping | Set) or not isinstance(route, Iterable):
        raise InvalidInput(
            f"route of {of} is {shown(route)}; give the links in order, such as "
            f"['{next(iter(links), 'a')}']"
        )
    path = tuple(route)
    if not path:
        raise InvalidInput(f"route of {of} is empty; give the links in order")
    for i, link in enumerate(path):
        if not isinstance(link, str) or link not in links:
            hint = near(str(link), links) if links else "add it with .link() first"
            raise UnknownName(
                f"route of {of} names link {shown(link)}, which the network does not have; {hint}"
            )
        if link in path[:i]:
            raise InvalidInput(
                f"route of {of} passes link {link!r} twice; a flow crosses a link at most once"
            )
    return path


def _intervals(start: Any, stop: Any, of: str) -> Pairs:
    """Return the on-periods, sorted and apart: one from numbers, several from lists of equal
    length.
    """
    if start is None and stop is None:
        return _ALWAYS
    starts, stops = (list(v) if is_list(v) else [v] for v in (start, stop))
    if not starts:
        raise InvalidInput(
            f"start of {of} is empty; leave start and stop out for a flow that is always on"
        )
    if len(starts) != len(stops):
        raise InvalidInput(
            f"start of {of} has {len(starts)} and stop {len(stops)} times; give one stop for each "
            f"start"
        )
    result: list[tuple[float, float]] = []
    for a, b in zip(starts, stops, strict=True):
        on = -math.inf if a is None else to_si(a, "s", f"start of {of}", allow_inf=True)
        off = math.inf if b is None else to_si(b, "s", f"stop of {of}", allow_inf=True)
        if on == math.inf or (on < 0 and on != -math.inf):
            raise InvalidInput(
                f"start of {of} is {shown(a)}; give a time from 0 on, or None for a flow that is "
                f"already on"
            )
        if off <= max(on, 0.0):
            raise InvalidInput(
                f"stop of {of} is {shown(b)}; it must be after its start, {max(on, 0.0):g} s"
            )
        if result and on <= result[-1][1]:
            raise InvalidInput(
                f"start of {of} is {shown(a)}; it must be after the stop before it, "
                f"{result[-1][1]:g} s"
            )
        result.append((on, off))
    return tuple(result)


def describe(spec: LinkSpec) -> str:
    """Return a link in a few words, for drawings and messages."""
    parts = [format_si(spec.capacity, "bit/s"), format_si(spec.delay, "s")]
    if math.isfinite(spec.buffer):
        parts.append(f"buffer {format_si(spec.buffer, 'bit')}")
    return ", ".join(parts)


def random_stream(flow: str, seed: int) -> np.random.Generator:
    """Return the random numbers of a flow, by seed and name: adding a flow changes no other."""
    words = np.frombuffer(sha256(flow.encode()).digest(), dtype="<u4")
    key = tuple(int(w) for w in words)
    return np.random.default_rng(np.random.SeedSequence(whole(seed, "seed"), spawn_key=key))


def resolve_pattern(
    spec: FlowSpec, seed: int, until: float
) -> tuple[NDArray[np.floating], NDArray[np.floating]] | None:
    """Return the times [s] and rates [bit/s] of a flow with a pattern, from 0 to `until`; None for
    a flow without one.

    """
    if spec.pattern is None:
        return None
    if not isinstance(spec.pattern, Modulated):
        times, rates = np.array(spec.pattern).T
        return times, rates
    rng = random_stream(spec.name, seed)
    values = dict(spec.pattern.parameters)
    if spec.pattern.kind == "noise":
        begun = intervals(until, values["interval"])
        return begun, rng.standard_normal(len(begun))
    if spec.pattern.kind == "poisson":
        return poisson_counts(rng, until, packet=spec.packet, **values)
    return on_off_pareto(rng, until, **values)
