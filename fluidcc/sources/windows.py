"""Sources that are governed by a congestion window: the ack clock, and what a source knows of the
delay of an empty path.

An ack-clocked source sends what is acknowledged, plus what its window grows: what it has in flight
is its window w. A fluid of exactly that is neutral, with a difference part of modulus 1: every kink
comes round for ever. `window` makes it retarded. With R for RTT and a for the rate of
acknowledgements,

    s' = (a - s)/(spread R)           acknowledgements, spread over a small part of a round trip
    u' = -u/(burst R)                 what a jump of the window allows at once
    x  = s + w' + u/(burst R) + (w - F - u)/(regain R)
    F' = x - a                        in flight

and trickle w/R at the least, for who sends nothing learns nothing. After a cut a source sends only
the share r = w/F of what is acknowledged, until no more is in flight than the window allows: the
proportional rate reduction of RFC 6937, which takes a round trip. NewReno (RFC 6582) and ns-2 send
nothing in that time: `recovery="halt"`.

A lap's filter is (1 + (spread + regain) R z)/((1 + spread R z)(1 + regain R z)): of mean delay 0,
and 1 at z = 0, so that F = w at rest. With 0.03 and 3 the response of a queue to windows is within
1 % of the exact clock's up to omega R = 2.5, and what repeats itself every round trip dies. Where
spread regain < 1/(2 pi^2) the clock of an idle path is unstable.

The static form, x = w/RTT, is what most papers write: `clock="static"`. It misjudges queues that
mark or drop early, in both directions. For one saturated link without such a queue, and flows of
one round trip, its sawteeth are those of the clock, in far fewer steps.

Time-outs are not modelled: a run whose windows fall below 4 packets says so.

The queueing delay that a source sees is RTT less the smallest RTT seen. In laws that jump that is
`low`, set anew wherever the round trip turns upwards below it: nothing is integrated, so nothing
drifts. The largest is RTT + `high`, where `high` follows the round trip's falls and decays, down to
0. Both begin at the first acknowledgement. Smooth laws have `delta`, the round trip's change
reflected at 0: a queue's own equation. A newcomer begins with 0, whatever the queue. It is
integrated, so the errors of all steps stay in it, in proportion to rtol: with LEDBAT on a path of
40 ms they are 20 us after 300 s at rtol 1e-5, 3 us at 1e-6 and 0.2 us at 1e-7, and the queue at
rest is off by as much.

Of a window that slides on with every instant the smallest round trip would be a list that grows and
shrinks: every one that is below all later ones. `fluidcc.sources.propagation` keeps it by periods,
which is exact with a state for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sympy import Expr, Float, Heaviside, Max, Min, Symbol, sympify
from sympy.codegen.cfunctions import expm1, log1p

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import LawError
from fluidcc.laws import Jump, Source, Tick
from fluidcc.symbols import RTT, Let, edot, nonnegative, packet, pi, positive, x_tau

__all__ = [
    "MEANING", "F", "acked", "answered", "cuts", "decay", "delta", "high", "largest", "low", "w",
    "window",
]  # fmt: skip

w = nonnegative("w")  # congestion window [packet]
F = nonnegative("F")  # in flight: sent, and not yet known to have arrived or been lost [packet]
delta = nonnegative("delta")  # queueing delay that it sees: RTT less the smallest RTT seen [s]
low = positive("low")  # smallest RTT at which it has turned upwards [s]
high = nonnegative("high")  # largest RTT seen, decaying, less the present one [s]
decay = nonnegative("decay")  # of the largest RTT [1]
s = nonnegative("s")  # acknowledgements, spread [packet/s]
u = nonnegative("u")  # what a jump of the window allows, and is not yet sent [packet]
r = nonnegative("r")  # share of acknowledgements that is sent after a cut; else 1
spread, regain, burst = positive("spread regain burst")
trickle = nonnegative("trickle")

# Of a second what was sent in 1/(1 + edot) seconds is heard of. While a router lets nothing into a
# queue that drains, that is endless: all of it comes at once. Of acknowledgements that clock a
# window fifty times as many as were sent come at most. What is in flight is told of five hundred
# times as many: where all flows pause it is counted too high by some parts in a thousand.
_passing = Let(r"1 + \dot{e}", Max(1 + edot, Float("1e-5")))
acked = Let("a", x_tau / Max(1 + edot, Float("0.02")) / packet)
change = Let("r'", edot / _passing)  # d RTT/dt, as the source sees it
largest = Let(r"\mathrm{RTT}_{\max}", RTT + high)
# So that rounding sets nothing anew, and a ripple nothing without end.
_NEARLY, _SOON = 1 - 1e-12, RTT / 10000
# Acknowledgements come: nothing is known before the first of them.
answered = x_tau - packet / (1000 * RTT)
_ONE = Float("1e-6")  # of a share that is as good as 1
_MOST = 1 - Float("1e-12")  # of marks or losses: of all the logarithm has no value

MEANING = {
    w: "congestion window",
    F: "in flight: sent, and not yet known to have arrived or been lost",
    delta: "queueing delay as the source sees it",
    low: "smallest round trip at which it has turned upwards",
    high: "largest round trip seen, decaying, less the present one",
    decay: "fall of the largest round trip a second",
    s: "acknowledgements, spread over a part of a round trip",
    u: "what a jump of the window allows, and is not yet sent",
    r: "share of acknowledgements that is sent after a cut, else 1",
    spread: "round trips over which acknowledgements are spread",
    regain: "round trips in which what is in flight comes to be the window",
    burst: "round trips in which is sent what a jump of the window allows",
    trickle: "part of the window a round trip that is sent at the least",
}
_UNITS = {
    w: "packet", F: "packet", delta: "s", low: "s", high: "s", decay: "1", s: "packet/s",
    u: "packet", r: "1", spread: "1", regain: "1", burst: "1", trickle: "1",
}  # fmt: skip
# Of `low` more than any round trip: none has been seen. At first nothing is in flight.
_INITIAL = {w: 10, F: 0, delta: 0, low: 1e6, high: 0, s: 0, u: w, r: 1}
CLOCKS = ("ack", "paced", "static")
RECOVERIES = ("prr", "halt")


def cuts(ratio: Any = pi) -> Expr:
    """Return the cuts a second of a source that cuts at most once a round trip, at random losses or
    marks.

    Of w packets a round trip at least one is lost or marked with the chance 1 - (1 - ratio)^w.

    Parameters
    ----------
    ratio : Expr
        Of packets that are lost or marked: by default of both.
    """
    return acked / w * Let(rf"(1 - (1 - {ratio})^w)", -expm1(w * log1p(-Min(ratio, _MOST))))


@explained
def window(
    name: str,
    growth: Any,
    *,
    params: Mapping[Symbol, Any] | None = None,
    units: Mapping[Symbol, str] | None = None,
    flow: Mapping[Symbol, Any] | None = None,
    initial: Mapping[Symbol, Any] | None = None,
    least: Any = 1,
    jumps: Sequence[Jump] = (),
    ticks: Sequence[Tick] = (),
    clock: str = "ack",
    rate: Any = None,
    recovery: str = "prr",
    acks: int = 1,
    steady: Mapping[Any, Any] | None = None,
    limits: Mapping[Symbol, float] | None = None,
    meaning: Mapping[Symbol, str] | None = None,
    **more: Any,
) -> Source:
    """Make a source of the equation of its window.

    Parameters
    ----------
    name : str
        Of the law.
    growth : Expr
        w' [packet/s] in terms of `w`, `acked` (acknowledged packets a second), `delta` (queueing
        delay seen), the signals, the parameters and the states of `flow`.
    params, units, flow, initial, jumps, ticks, limits, meaning
        As of `Source`, beyond those of the window and its clock.
    least : Expr
        Smallest window [packet].
    clock : {"ack", "paced", "static"}
        What the rate is: driven by acknowledgements, that but `rate` at most, or w/RTT.
    rate : Expr
        Of a paced source [packet/s]; by default w/RTT.
    recovery : {"prr", "halt"}
        What is sent after a cut until what is in flight fits the window: of each acknowledgement
        the share w/F (proportional rate reduction, RFC 6937), or nothing (NewReno, RFC 6582).
    acks : {1, 2}
        Packets that an acknowledgement is for, where the window grows with each acknowledgement:
        with 2 `growth` has half of `acked`.
    steady : mapping of Symbol to Expr
        States that follow from others at an equilibrium, beyond those of the clock: see `Source`.
    **more
        Of `Source`: ref, about, claims, ...

    Returns
    -------
    Source

    Raises
    ------
    LawError
        If an argument is none of these, or the law is not well formed.

    Notes
    -----
    See `fluidcc.sources.windows` for the equations of the clock, and where they are exact.
    Time-outs are not modelled: a run whose windows fall below 4 packets says so.

    Examples
    --------
    A window that grows by a packet a round trip, and loses a third of itself at a loss or mark:

    >>> import fluidcc as fc
    >>> from fluidcc.sources.windows import acked, cuts, w
    >>> law = fc.window("Third", acked / w - w / 3 * cuts())
    >>> net = fc.dumbbell([law] * 8, {"law": fc.PI, "capacity": "50 Mbit/s"}, rtt="100 ms")
    >>> rest = fc.equilibrium(net)
    >>> round(float(rest.states["flow1"]["w"] ** 2 * rest.mark[0]), 1)  # w^2 p = 3
    3.0
    """
    for what, value, known in (
        ("clock", clock, CLOCKS), ("recovery", recovery, RECOVERIES), ("acks", acks, (1, 2)),
    ):  # fmt: skip
        if value not in known:
            given = " or ".join(repr(one) for one in known)
            raise LawError(f"{name}: {what} is {shown(value)}; give {given}")
    if rate is not None and clock != "paced":
        raise LawError(f"{name}: rate is of a paced source; give clock='paced', or no rate")
    grown, params = sympify(growth), dict(params or {})
    if acks > 1:
        grown = grown.xreplace({acked: Let(f"a/{acks}", acked / acks)})
    states, jumps, ticks = {w: Let("w'", grown), **(flow or {})}, tuple(jumps), tuple(ticks)
    events = [f for j in jumps for f in (j.when, *j.reset.values())]
    events += [f for tick in ticks for f in tick.update.values()]
    needed = set().union(*(sympify(f).free_symbols for f in (grown, *states.values(), *events)))
    if delta in needed:
        states[delta] = change * Heaviside(answered, 0)
    if low in needed:
        states[low] = 0
        first: dict[Symbol, Any] = {low: RTT}
        if high in needed:
            first[high], states[high], params[decay] = 0, -change - decay, 0.001
        jumps = (
            *jumps,
            Jump(when=Heaviside(change, 0) * (low * _NEARLY - RTT), reset={low: RTT},
                 refractory=_SOON),
            Jump(when=answered, reset=first, once=True, refractory=1e9 * RTT),
        )  # fmt: skip
    sent, rest = w / RTT, dict(steady or {})
    where: tuple[Any, ...] = more.pop("where", ())
    if clock != "static":
        sent, jumps, ticks = _ack_clock(states, jumps, ticks, least, recovery)
        if clock == "paced":
            sent = Min(sent, w / RTT if rate is None else rate)
        sent = Let(r"\mathrm{sent}", sent)
        states[F] = sent - x_tau / Max(1 + edot, Float("0.002")) / packet
        params |= {spread: 0.03, regain: 3, burst: 0.1, trickle: 0.001}
        where = (spread * regain > Float("0.0507"), *where)
        rest |= {z: v for z, v in ((F, w), (s, w / RTT), (u, 0), (r, 1)) if z in states}
        if clock == "ack":
            rest["rate"] = packet * w / RTT
    own = {*states, *params}
    return Source(
        name=name,
        flow=states,
        out={"rate": packet * sent},
        params=params,
        units={**{z: unit for z, unit in _UNITS.items() if z in own}, **(units or {})},
        initial={**{z: v for z, v in _INITIAL.items() if z in own}, **(initial or {})},
        lower={w: least, **{z: 0 for z in (delta, high) if z in own}},
        limits={**(limits or {}), **({trickle: 1} if trickle in own else {})},
        meaning={**MEANING, **(meaning or {})},
        window=w,
        jumps=jumps,
        ticks=ticks,
        steady=rest,
        where=where,
        **more,
    )


def _ack_clock(
    states: dict[Symbol, Any], jumps: tuple[Jump, ...], ticks: tuple[Tick, ...], least: Any,
    recovery: str,
) -> tuple[Any, tuple[Jump, ...], tuple[Tick, ...]]:  # fmt: skip
    """Add an ack clock to the states of a law; return its rate [packet/s], jumps and ticks."""
    little = trickle * w / RTT
    grown = Max(states[w], (least - w) / (burst * RTT))  # at its least a window falls no more
    rate = Max(s + grown + u / (burst * RTT) + (w - F - u) / (regain * RTT), little)
    states[s], states[u] = (acked - s) / (spread * RTT), -u / (burst * RTT)
    if not any(w in event for event in (*(j.reset for j in jumps), *(k.update for k in ticks))):
        return rate, jumps, ticks
    states[r] = 0
    free = Heaviside(r - 1 + _ONE, 1)
    rate = free * rate + (1 - free) * Max(r * s, little)

    def put(event: Mapping[Symbol, Any]) -> Mapping[Symbol, Any]:
        """What an event changes with its new window."""
        if w not in event:
            return event
        new = Max(event[w], least)
        share = Min(new / F, 1) if recovery == "prr" else Heaviside(new - F, 1)
        return {**event, r: share, u: Max(new - F, 0)}

    jumps = tuple(replace(j, reset=put(j.reset)) for j in jumps)
    ticks = tuple(replace(tick, update=put(tick.update)) for tick in ticks)
    return rate, (*jumps, Jump(when=(1 - free) * (w - F), reset={r: 1})), ticks
