"""Clocks of acknowledgements: what a source with a congestion window sends, and when.

An ack-clocked source sends what is acknowledged, plus what its window grows: what it has in flight
is its window w. A fluid of exactly that is neutral, with a difference part of modulus 1: every kink
comes round for ever. `ack_clock` makes it retarded. With R for RTT and a for the rate of
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

`neutral_clock` is the exact one, of which a part, `pace`, of the packets is sent at `paced`, the
mean of acknowledgements over about a round trip, instead of at the ack itself,

    x  = pace paced + (1 - pace) a + w' + (w - F)/(burst R),   F' = x - a,

and trickle w/R at the least. After a cut it sends next to nothing, `trickle` of `paced`, until no
more is in flight than the window allows. With pace = 0 the clock is exact: closed forms and the
claims of papers that rest on it have it by name.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from sympy import Float, Heaviside, Max, Min, Symbol

from fluidcc.laws import Jump, Tick
from fluidcc.symbols import RTT, Let, edot, nonnegative, packet, positive, x_tau

__all__ = ["F", "ack_clock", "acked", "neutral_clock", "told", "w"]

w = nonnegative("w")  # congestion window [packet]
F = nonnegative("F")  # in flight: sent, and not yet known to have arrived or been lost [packet]
s = nonnegative("s")  # acknowledgements, spread [packet/s]
u = nonnegative("u")  # what a jump of the window allows, and is not yet sent [packet]
r = nonnegative("r")  # share of acknowledgements that is sent after a cut; else 1
paced = nonnegative("paced")  # acknowledgements, smoothed over a round trip [packet/s]
drain = nonnegative("drain")  # 1 after a cut, until what is in flight fits the window; else 0
spread, regain, burst = positive("spread regain burst")
pace, trickle = nonnegative("pace trickle")


def _told(name: str, most: str) -> Let:
    """Packets of which is told a second: of a second what was sent in 1/(1 + edot) seconds. While
    a router lets nothing into a queue that drains, that is endless: all of it comes at once.
    """
    return Let(name, x_tau / Max(1 + edot, Float(most)) / packet)


# Acknowledgements that clock a window are fifty times as many as were sent at most. What is in
# flight is told of five hundred times as many: where all flows pause it is counted too high by some
# parts in a thousand.
acked, told, exactly = _told("acked", "0.02"), _told("told", "0.002"), _told("acked", "1e-5")
_ONE = Float("1e-6")  # of a share that is as good as 1

MEANING = {
    w: "congestion window",
    F: "in flight: sent, and not yet known to have arrived or been lost",
    s: "acknowledgements, spread over a part of a round trip",
    u: "what a jump of the window allows, and is not yet sent",
    r: "share of acknowledgements that is sent after a cut, else 1",
    paced: "acknowledgements, smoothed over a round trip",
    drain: "1 after a cut, until what is in flight fits the window",
    spread: "round trips over which acknowledgements are spread",
    regain: "round trips in which what is in flight comes to be the window",
    burst: "round trips in which is sent what a jump of the window allows",
    pace: "part that is sent evenly, not at acknowledgements",
    trickle: "part of the window a round trip that is sent at the least",
}
UNITS = {
    w: "packet", F: "packet", s: "packet/s", u: "packet", r: "1", paced: "packet/s", drain: "1",
    spread: "1", regain: "1", burst: "1", pace: "1", trickle: "1",
}  # fmt: skip
# At first nothing is in flight.
INITIAL = {w: 10, F: 0, s: 0, u: w, r: 1, paced: 0, drain: 0}


def at_rest(states: Container[Symbol], rate: Any = None) -> dict[Any, Any]:
    """Return what follows from the window at an equilibrium: of the states that a clock has added,
    and the rate, which is `rate` [packet/s] at most.
    """
    sent = w / RTT if rate is None else Min(w / RTT, rate)
    known = {F: sent * RTT, s: sent, u: 0, r: 1, paced: sent, drain: 0}
    return {"rate": packet * sent} | {z: f for z, f in known.items() if z in states}


def ack_clock(
    states: dict[Symbol, Any], params: dict[Symbol, Any], jumps: tuple[Jump, ...],
    ticks: tuple[Tick, ...], least: Any, recovery: str, rate: Any = None,
) -> tuple[Any, tuple[Jump, ...], tuple[Tick, ...]]:  # fmt: skip
    """Add the retarded clock to the states and parameters of a law; return its rate [packet/s],
    `rate` at most, its jumps and its ticks.
    """
    params |= {spread: 0.03, regain: 3, burst: 0.1, trickle: 0.001}
    little = trickle * w / RTT
    grown = Max(states[w], (least - w) / (burst * RTT))  # at its least a window falls no more
    steadily = s + grown + (w - F - u) / (regain * RTT)
    allowed = u / (burst * RTT)  # of what a jump has left; a paced source may not send it at once
    used = allowed if rate is None else Min(allowed, Max(rate - steadily, 0))
    sent = Max(steadily + allowed, little)
    states[s], states[u] = (acked - s) / (spread * RTT), -used
    if any(w in event for event in (*(j.reset for j in jumps), *(k.update for k in ticks))):
        states[r] = 0
        free = Heaviside(r - 1 + _ONE, 1)
        sent = free * sent + (1 - free) * Max(r * s, little)

        def put(event: Mapping[Symbol, Any]) -> Mapping[Symbol, Any]:
            """What an event changes with its new window."""
            if w not in event:
                return event
            new = Max(event[w], least)
            share = Min(new / F, 1) if recovery == "prr" else Heaviside(new - F, 1)
            return {**event, r: share, u: Max(new - F, 0)}

        jumps = tuple(replace(j, reset=put(j.reset)) for j in jumps)
        jumps = (*jumps, Jump(when=(1 - free) * (w - F), reset={r: 1}))
        ticks = tuple(replace(tick, update=put(tick.update)) for tick in ticks)
    sent = Let(r"\mathrm{sent}", sent if rate is None else Min(sent, rate))
    states[F] = sent - told
    return sent, jumps, ticks


def neutral_clock(
    states: dict[Symbol, Any], params: dict[Symbol, Any], jumps: tuple[Jump, ...], least: Any
) -> tuple[Any, tuple[Jump, ...]]:
    """Add the neutral clock to the states and parameters of a law; return its rate [packet/s] and
    its jumps.
    """
    grown, falls = states[w], any(w in jump.reset for jump in jumps)
    if not falls:  # a window that falls by itself; at its least it falls no more
        grown = Max(grown, (least - w) / (burst * RTT))
    rate = Max(
        pace * paced + (1 - pace) * exactly + grown + (w - F) / (burst * RTT), trickle * w / RTT
    )
    states[paced] = (exactly - paced) / RTT
    # A cut leaves a gap, which comes round a hundred times with a pace of 0.05.
    params |= {pace: 0.5 if falls else 0.05, burst: 0.1, trickle: 0.01}
    if falls:
        rate = (1 - drain) * rate + drain * trickle * paced
        states[drain] = 0
        cuts = (replace(j, reset={**j.reset, drain: 1}) if w in j.reset else j for j in jumps)
        jumps = (*cuts, Jump(when=drain * (w - F), reset={drain: 0}))
    states[F] = rate - exactly
    return rate, jumps
