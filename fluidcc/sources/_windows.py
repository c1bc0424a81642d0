"""What window-based sources share: the ack clock, and what a source knows of the delay of an empty
path.

An ack-clocked source sends what is acknowledged, plus what its window grows: what it has in flight,
F, is its window w. A fluid of exactly that has no memory of its own but the path: any pattern of
the rate comes round for ever, and its equation is neutral. So a part, `pace`, of the packets is
sent at `paced`, the mean of acknowledgements over about a round trip, instead of at the ack itself,

    rate = max(pace paced + (1 - pace) acked + w' + (w - F)/(burst RTT), trickle w/RTT),   F' = rate
    - acked,

and what a window has to spare, at first or after a pause, is sent within about `burst` of a round
trip. A source whose window is cut below what is in flight sends next to nothing, `trickle` of
`paced`, until no more is in flight than the window allows. (Not nothing: who sends nothing learns
nothing.) From then on F = w while w' > 0. With pace = 0 the clock is exact. The static form, rate =
w/RTT, is what most papers write; it misstates transients.

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

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Float, Heaviside, Max, Symbol, sympify

from fluidcc.laws import Jump, Source
from fluidcc.symbols import RTT, Let, edot, nonnegative, packet, positive, x_tau

__all__ = [
    "MEANING", "F", "acked", "answered", "decay", "delta", "high", "largest", "low", "w",
    "window_source",
]  # fmt: skip

w = nonnegative("w")  # congestion window [packet]
F = nonnegative("F")  # in flight: sent, and not yet known to have arrived or been lost [packet]
delta = nonnegative("delta")  # queueing delay that it sees: RTT less the smallest RTT seen [s]
low = positive("low")  # smallest RTT at which it has turned upwards [s]
high = nonnegative("high")  # largest RTT seen, decaying, less the present one [s]
decay = nonnegative("decay")  # of the largest RTT [1]
paced = nonnegative("paced")  # acknowledgements, smoothed over a round trip [packet/s]
drain = nonnegative("drain")  # 1 after a cut, until what is in flight fits the window; else 0
pace, trickle = nonnegative("pace trickle")
burst = positive("burst")

# Of a second what was sent in 1/passing seconds is heard of. While a router lets nothing into a
# queue that drains, that is endless: all of it comes at once. So much is heard of at most.
passing = Let(r"1 + \dot{e}", Max(1 + edot, Float("1e-5")))
acked = Let("a", x_tau / passing / packet)  # packets/s of which news comes back, arrived or lost
change = Let("r'", edot / passing)  # d RTT/dt, as the source sees it
largest = Let(r"\mathrm{RTT}_{\max}", RTT + high)
# So that rounding sets nothing anew, and a ripple nothing without end.
_NEARLY, _SOON = 1 - 1e-12, RTT / 10000
# Acknowledgements come: nothing is known before the first of them.
answered = x_tau - packet / (1000 * RTT)

MEANING = {
    w: "congestion window",
    F: "in flight: sent, and not yet known to have arrived or been lost",
    delta: "queueing delay as the source sees it",
    low: "smallest round trip at which it has turned upwards",
    high: "largest round trip seen, decaying, less the present one",
    decay: "fall of the largest round trip a second",
    paced: "acknowledgements, smoothed over a round trip",
    drain: "1 after a cut, until what is in flight fits the window",
    pace: "part that is sent evenly, not at acknowledgements",
    trickle: "part still sent while nothing may be",
    burst: "round trips in which a window to spare is sent",
}
_UNITS = {
    w: "packet", F: "packet", delta: "s", low: "s", high: "s", decay: "1", paced: "packet/s",
    drain: "1", pace: "1", trickle: "1", burst: "1",
}  # fmt: skip
# Of `low` more than any round trip: none has been seen.
_INITIAL = {w: 10, F: 0, delta: 0, low: 1e6, high: 0, paced: 0, drain: 0}


def window_source(
    name: str,
    growth: Any,
    *,
    params: Mapping[Symbol, Any],
    units: Mapping[Symbol, str],
    flow: Mapping[Symbol, Any] | None = None,
    initial: Mapping[Symbol, Any] | None = None,
    least: Any = 1,
    jumps: tuple[Jump, ...] = (),
    clock: str = "ack",
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
        w' [packet/s], in terms of `w`, `delta`, the signals, the parameters and the states of
        `flow`.
    params, units, flow, initial, jumps, limits, meaning
        As of `Source`, beyond those of the window and its clock.
    least : Expr
        Smallest window [packet].
    clock : {"ack", "static"}
        What the rate is: driven by acknowledgements, or w/RTT.
    """
    states, params = {w: Let("w'", growth), **(flow or {})}, dict(params)
    resets = (f for jump in jumps for f in (jump.when, *jump.reset.values()))
    needed = set().union(*(sympify(f).free_symbols for f in (growth, *states.values(), *resets)))
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
    rate, most = w / RTT, dict(limits or {})
    if clock == "ack":
        rate, jumps = _ack_clock(states, params, jumps, least)
        most |= {pace: 1, trickle: 1}
    own = {*states, *params}
    return Source(
        name=name,
        flow=states,
        out={"rate": packet * rate},
        params=params,
        units={**{s: unit for s, unit in _UNITS.items() if s in own}, **units},
        initial={**{z: v for z, v in _INITIAL.items() if z in own}, **(initial or {})},
        lower={w: least, **{z: 0 for z in (delta, high) if z in own}},
        limits=most,
        meaning={**MEANING, **(meaning or {})},
        window=w,
        jumps=jumps,
        **more,
    )


def _ack_clock(
    states: dict[Symbol, Any], params: dict[Symbol, Any], jumps: tuple[Jump, ...], least: Any
) -> tuple[Any, tuple[Jump, ...]]:
    """Add an ack clock to a law; return its rate [packet/s] and its jumps."""
    grown, falls = states[w], any(w in jump.reset for jump in jumps)
    if not falls:  # a window that falls by itself; at its least it falls no more
        grown = Max(grown, (least - w) / (burst * RTT))
    rate = Max(
        pace * paced + (1 - pace) * acked + grown + (w - F) / (burst * RTT), trickle * w / RTT
    )
    states[paced] = (acked - paced) / RTT
    # A cut leaves a gap, which comes round a hundred times with a pace of 0.05.
    params |= {pace: 0.5 if falls else 0.05, burst: 0.1, trickle: 0.01}
    if falls:
        rate = (1 - drain) * rate + drain * trickle * paced
        states[drain] = 0
        cuts = (replace(j, reset={**j.reset, drain: 1}) if w in j.reset else j for j in jumps)
        jumps = (*cuts, Jump(when=drain * (w - F), reset={drain: 0}))
    states[F] = rate - acked
    return rate, jumps
