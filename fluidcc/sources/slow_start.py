"""Slow start: a window that doubles in a round trip until the first loss, RFC 5681, or until the
round trip grows, HyStart++ of RFC 9406.

While w is below the threshold `ssthresh`, endless at first, each acknowledgement that tells of no
loss adds a packet; a cut of the window sets the threshold to what is left. With HyStart++ the
threshold may be set before anything is lost: where at the end of a round trip it is longer than the
last one by an eighth of that, 4 ms at the least and 16 ms at the most, the window grows by a
quarter of a packet for five round trips (conservative slow start), and goes back to slow start if
the round trip gets shorter than it was then. After these five the threshold is the window.

A round trip is measured once, at its end: in slow start that is the least of the next one, as
queues only grow. There is no limit on bursts (the L of the RFC is that of paced senders).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Max, Min, Piecewise, Rational

from fluidcc.base.arguments import explained, flag, shown
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Source, Tick, extended
from fluidcc.sources.windows import acked, w
from fluidcc.symbols import RTT, Let, nonnegative, pi, positive

__all__ = ["with_slow_start"]

ssthresh = nonnegative("ssthresh")  # threshold of slow start [packet]
last, base = nonnegative("RTT_last RTT_base")  # round trips at the end of the last, and at entry
calm = nonnegative("css")  # rounds of conservative slow start, 0 before
eta_min, eta_max = positive("eta_min eta_max")
ENDLESS = 1e9
ROUNDS, DIVISOR, PART = 5, 4, 8  # of RFC 9406, Section 4.3
_UNITS = {ssthresh: "packet", calm: "1"}
_INITIAL = {ssthresh: ENDLESS, last: ENDLESS}
_MEANING = {
    ssthresh: "threshold of slow start",
    last: "round trip at the end of the last one",
    base: "round trip at which conservative slow start began",
    calm: "round trips of conservative slow start",
    eta_min: "least growth of the round trip that ends slow start",
    eta_max: "most that it needs",
}


@explained
def with_slow_start(law: Source, hystart: bool = False, *, name: str | None = None) -> Source:
    """Return the law with slow start before its first loss, and after cuts to below the threshold.

    Parameters
    ----------
    law : Source
        A window that jumps at losses or marks and is clocked by acknowledgements, such as `AIMD`,
        `CUBIC` or one of `fluidcc.window` with ``Jump(on=...)``.
    hystart : bool
        Leave slow start by HyStart++ where the round trip grows, too.
    name : str, optional
        Name of the result.

    Returns
    -------
    Source
        With the state ``ssthresh`` [packet], which `initial` of a flow may set; with HyStart++
        also the round trips that it compares.

    Raises
    ------
    InvalidInput
        If it is no source law.
    LawError
        If the law has no such window, or has slow start already.

    Examples
    --------
    >>> import fluidcc as fc
    >>> law = fc.with_slow_start(fc.CUBIC, hystart=True)
    >>> net = fc.dumbbell([law], {"capacity": "50 Mbit/s", "buffer": "200 packets"}, rtt="40 ms")
    >>> bool(fc.simulate(net, "2 s").rate.max() > 50e6)
    True
    """
    if not isinstance(law, Source):
        raise InvalidInput(f"law is {shown(law)}; give a source law, such as fluidcc.AIMD")
    flag(hystart, "hystart")
    cuts = [j for j in law.jumps if j.on is not None and w in j.reset]
    grown = law.flow.get(w)
    if not cuts or not isinstance(grown, Let) or ssthresh in law.flow:
        raise LawError(
            f"{law.name} has no window that acknowledgements clock and losses cut, or has slow "
            "start already; AIMD, IIAD, SQRT and CUBIC have one without"
        )
    per_ack = Piecewise((Rational(1, DIVISOR), calm > 0), (1, True)) if hystart else 1
    begun = Piecewise((per_ack * (1 - pi) * acked, w < ssthresh), (grown.definition, True))
    put = {grown: Let(grown.name, begun)}

    def changed(f: Any) -> Any:
        return f.subs(put)

    states: tuple[Any, ...] = (ssthresh, *((last, base, calm) if hystart else ()))
    own: dict[Any, float] = {eta_min: 0.004, eta_max: 0.016} if hystart else {}
    return extended(
        law,
        name or f"{law.name}{'HyStart' if hystart else 'SlowStart'}",
        flow={**{z: changed(f) for z, f in law.flow.items()}, **dict.fromkeys(states, 0)},
        out={k: changed(f) for k, f in law.out.items()},
        jumps=tuple(
            _with_threshold(j.rewritten(changed)) if j in cuts else j.rewritten(changed)
            for j in law.jumps
        ),
        ticks=(*law.ticks, *((Tick(RTT, _rounds()),) if hystart else ())),
        params=own,
        units={z: _UNITS.get(z, "s") for z in (*states, *own)},
        initial={z: _INITIAL.get(z, 0) for z in states},
        meaning={z: _MEANING[z] for z in (*states, *own)},
        utility=None,
    )


def _with_threshold(jump: Any) -> Any:
    """The jump with the threshold at the window that it leaves."""
    return replace(jump, reset={**jump.reset, ssthresh: jump.reset[w]})


def _rounds() -> dict[Any, Any]:
    """What HyStart++ knows after another round trip."""
    longer = last + Min(Max(last / PART, eta_min), eta_max)
    starts = w < ssthresh
    return {
        last: RTT,
        calm: Piecewise(
            (Piecewise((Piecewise((0, base > RTT), (calm + 1, True)), calm > 0),
                       (Piecewise((1, longer <= RTT), (0, True)), True)), starts),
            (0, True),
        ),
        base: Piecewise((base, calm > 0), (RTT, True)),
        ssthresh: Piecewise((Piecewise((w, calm >= ROUNDS), (ssthresh, True)), starts),
                            (ssthresh, True)),
    }  # fmt: skip
