"""Sources that are governed by a congestion window, and what such a source knows of the delay of an
empty path.

`window` makes a law of the equation of its window, w, and adds what it sends: by default clocked by
acknowledgements (`fluidcc.sources.clocks`). The static form, x = w/RTT, is what most papers write:
`clock="static"`. It misjudges queues that mark or drop early, in both directions. For one saturated
link without such a queue, and flows of one round trip, its sawteeth are those of the clock, in far
fewer steps.

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
from typing import Any

from sympy import Expr, Float, Heaviside, Min, Symbol, sympify
from sympy.codegen.cfunctions import expm1, log1p

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import LawError
from fluidcc.laws import Jump, Source, Tick
from fluidcc.laws.law import check_kinds
from fluidcc.laws.parts import frozen
from fluidcc.sources import clocks
from fluidcc.sources.clocks import F, acked, pace, regain, spread, trickle, w
from fluidcc.symbols import RTT, Let, change, expression, nonnegative, packet, pi, positive, x_tau

__all__ = [
    "MEANING", "F", "acked", "answered", "change", "cuts", "decay", "delta", "high", "largest",
    "low", "w", "window",
]  # fmt: skip

delta = nonnegative("delta")  # queueing delay that it sees: RTT less the smallest RTT seen [s]
low = positive("low")  # smallest RTT at which it has turned upwards [s]
high = nonnegative("high")  # largest RTT seen, decaying, less the present one [s]
decay = nonnegative("decay")  # of the largest RTT [1]

largest = Let(r"\mathrm{RTT}_{\max}", RTT + high)
# So that rounding sets nothing anew, and a ripple nothing without end.
_NEARLY, _SOON = 1 - 1e-12, RTT / 10000
# Acknowledgements come: nothing is known before the first of them.
answered = x_tau - packet / (1000 * RTT)
_MOST = 1 - Float("1e-12")  # of marks or losses: of all the logarithm has no value

MEANING = {
    **clocks.MEANING,
    delta: "queueing delay as the source sees it",
    low: "smallest round trip at which it has turned upwards",
    high: "largest round trip seen, decaying, less the present one",
    decay: "fall of the largest round trip a second",
}
_UNITS = {**clocks.UNITS, delta: "s", low: "s", high: "s", decay: "1"}
# Of `low` more than any round trip: none has been seen.
_INITIAL = {**clocks.INITIAL, delta: 0, low: 1e6, high: 0}
_MINE = _UNITS.keys() - {low, high}  # laws take these two on themselves
CLOCKS = ("ack", "paced", "static", "neutral")
RECOVERIES = ("prr", "halt")


def cuts(ratio: Any = pi, interval: Any = w / acked) -> Expr:
    """Return the cuts a second of a source that cuts at most once an interval, at random losses or
    marks.

    Of n packets in an interval at least one is lost or marked with the chance 1 - (1 - ratio)^n.

    Parameters
    ----------
    ratio : Expr
        Of packets that are lost or marked: by default of both.
    interval : Expr
        [s]; by default a round trip, in which a window is acknowledged.
    """
    n = Let(f"n_{{{ratio}}}", acked * interval)
    return Let(f"P_{{{ratio}}}", -expm1(n * log1p(-Min(ratio, _MOST)))) / interval


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
    clock : {"ack", "paced", "static", "neutral"}
        What the rate is: driven by acknowledgements, that but `rate` at most, w/RTT, or driven by
        acknowledgements exactly, but for a part `pace`: closed forms rest on that.
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
        If an argument is none of these or does not go with the clock, or the law is not well
        formed.

    Notes
    -----
    See `fluidcc.sources.clocks` for the equations of the clock, and where they are exact.
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
    if recovery != "prr" and clock in ("static", "neutral"):
        raise LawError(f"{name}: recovery is of clock='ack' and 'paced'; give one of them, or none")
    mappings = {"params": params, "units": units, "limits": limits, "meaning": meaning}
    check_kinds(name, {k: v or {} for k, v in mappings.items()} | {"jumps": jumps, "ticks": ticks})
    flow = frozen(flow or {}, f"{name}: flow")
    initial = frozen(initial or {}, f"{name}: initial")
    if taken := _MINE & {*flow, *(params or {})}:
        names = ", ".join(sorted(map(str, taken)))
        raise LawError(f"{name}: {names} is of the window and its clock; give it another name")
    grown, params = expression(growth, f"{name}: growth"), dict(params or {})
    least = expression(least, f"{name}: least")
    if acks > 1:
        grown = grown.xreplace({acked: Let(f"acked/{acks}", acked / acks)})
    put = {acked: clocks.exactly} if clock == "neutral" else {}
    states: dict[Symbol, Any] = {w: Let("w'", grown.xreplace(put))}
    states |= {z: f.xreplace(put) for z, f in flow.items()}
    jumps, ticks = tuple(jumps), tuple(ticks)
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
    sent, rest = w / RTT, dict(frozen(steady or {}, f"{name}: steady"))
    where: tuple[Any, ...] = more.pop("where", ())
    most = None if clock != "paced" else w / RTT if rate is None else expression(rate, "rate")
    if clock == "neutral":
        sent, jumps = clocks.neutral_clock(states, params, jumps, least)
    elif clock != "static":
        sent, jumps, ticks = clocks.ack_clock(states, params, jumps, ticks, least, recovery, most)
        where = (spread * regain > Float("0.0507"), *where)
    if clock != "static":
        rest |= clocks.at_rest(states, most)
    own = {*states, *params}
    return Source(
        name=name,
        flow=states,
        out={"rate": packet * sent},
        params=params,
        units={**{z: unit for z, unit in _UNITS.items() if z in own}, **(units or {})},
        initial={**{z: v for z, v in _INITIAL.items() if z in own}, **initial},
        lower={w: least, **{z: 0 for z in (delta, high) if z in own}},
        limits={**(limits or {}), **{z: 1 for z in (pace, trickle) if z in own}},
        meaning={**MEANING, **(meaning or {})},
        window=w,
        jumps=jumps,
        ticks=ticks,
        steady=rest,
        where=where,
        **more,
    )
