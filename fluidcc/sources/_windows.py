"""What window-based sources share: the ack clock, and what a source knows of the delay of an empty path.

An ack-clocked source sends what is acknowledged, plus what its window grows: what it has in flight, F, is its window w.
A fluid of exactly that has no memory of its own but the path: any pattern of the rate comes round for ever, and its
equation is neutral. So a small part, `pace`, of the packets is spread over the round trip instead of sent at the ack,

    rate = pace F/RTT + max(0, (1 - pace) acked + w' + (w - F)/(burst RTT)),   F' = rate - acked,

and what a window has to spare at first, or after a change at once, is sent within about `burst` of a round trip. With
pace = 0 the clock is exact. The static form, rate = w/RTT, is what most papers write; it misstates transients.

The queueing delay that a source sees is RTT less the smallest RTT seen, delta. The smallest so far is a running
minimum, so that delta is the round trip's change, reflected at 0: a queue's own equation. A newcomer begins with 0,
whatever the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Heaviside, Max, Symbol, symbols, sympify

from fluidcc.law import Jump, Source
from fluidcc.symbols import RTT, Let, edot, packet, x_tau

__all__ = ["F", "acked", "change", "delta", "w", "window_source"]

w = symbols("w", nonnegative=True)  # congestion window [packet]
F = symbols("F", nonnegative=True)  # in flight: sent, and not yet known to have arrived or been lost [packet]
delta = symbols("delta", nonnegative=True)  # queueing delay as the source sees it: RTT less the smallest RTT seen [s]
pace, burst = symbols("pace burst", positive=True)

acked = Let("a", x_tau / (1 + edot) / packet)  # packets/s of which news comes back, arrived or lost
change = Let("r'", edot / (1 + edot))  # d RTT/dt, as the source sees it
_answered = x_tau - packet / (1000 * RTT)  # acknowledgements come: nothing is known before the first of them


def window_source(
    name: str,
    growth: Any,
    *,
    params: Mapping[Symbol, Any],
    units: Mapping[Symbol, str],
    flow: Mapping[Symbol, Any] | None = None,
    initial: Mapping[Symbol, Any] | None = None,
    lower: Mapping[Symbol, Any] | None = None,
    least: Any = 1,
    jumps: tuple[Jump, ...] = (),
    clock: str = "ack",
    factor: Any = 1,
    **more: Any,
) -> Source:
    """Make a source of the equation of its window.

    Parameters
    ----------
    name : str
        Of the law.
    growth : Expr
        w' [packet/s], in terms of `w`, `delta`, the signals, the parameters and the states of `flow`.
    params, units, flow, initial, lower, jumps
        As of `Source`, beyond those of the window and its clock.
    least : Expr
        Smallest window [packet].
    clock : {"ack", "static"}
        What the rate is: driven by acknowledgements, or w/RTT.
    factor : Expr
        Of the rate: a source that pauses or probes.
    """
    states = {w: Let("w'", growth), **(flow or {})}
    named = {**units, w: "packet"}
    given = dict(params)
    start = {w: 10, **(initial or {})}
    bounds = {w: least, **(lower or {})}
    used = [growth, factor, *states.values(), *(f for jump in jumps for f in (jump.when, *jump.reset.values()))]
    if any(delta in sympify(f).free_symbols for f in used):
        named[delta], start[delta], bounds[delta] = "s", 0, 0
        if jumps:  # a law without derivative anyway; silences after a cut are bridged
            states[delta] = change
            jumps = (*jumps, Jump(when=_answered, reset={delta: 0}, once=True, refractory=1e9 * RTT))
        else:
            states[delta] = change * Heaviside(_answered, 0)
    if clock == "static":
        rate = packet * w / RTT
    else:
        rate = packet * (pace * F / RTT + Max((1 - pace) * acked + states[w] + (w - F) / (burst * RTT), 0))
        states[F], named[F], start[F] = factor * rate / packet - acked, "packet", 0
        named |= {pace: "1", burst: "1"}
        given |= {pace: 0.05, burst: 0.1}
    return Source(
        name=name, flow=states, out={"rate": factor * rate}, params=given, units=named, lower=bounds, initial=start,
        jumps=jumps, **more,
    )  # fmt: skip
