"""BBR, version 1 (tcp_bbr.c of Linux; draft-cardwell-iccrg-bbr-congestion-control-00): a source
that sends at the rate at which its path has delivered, and holds in flight no more than twice what
fits into the path at that rate.

Once a round trip, what was delivered in it over the time it took is a sample, and B is the largest
of the last ten. R_min is the least round trip. It sends at (1 - margin) gain B, and w, what may be
in flight, is cap B R_min, at least `few` packets. Each phase has its gain:

- startup, 2.885, until B is less than 1.25 times what it was three round trips ago;
- drain, 1/2.885, until no more than B R_min is in flight;
- cruise, 1, for six times R_min;
- up, 1.25, for R_min at least, and until 1.25 B R_min are in flight or there is a loss;
- down, 0.75, for R_min or until no more than B R_min is in flight; then it cruises again;
- at ten seconds without a smaller one R_min is the present round trip, and of packets `few` may be
  in flight: `empty` until they are, `least` for 0.2 s and a round trip. Then it cruises.

Linux takes samples of rates and round trips at each acknowledgement, where this law does once a
round trip. So in startup B is also acked/(2 ln 2), the mean over a round trip of acknowledgements
that double in one, and w grows by what is acknowledged. Linux enters its cycle at random; here
`passed` of the cruise are over by then. Left out are what Linux adds for bursts of packets and of
acknowledgements, smaller windows while losses are repaired, policers, idle sources. Marks are
ignored. Beside CUBIC over deep buffers it gets some 0.4 of the link; Ware et al. (IMC 2019) have
0.5 to 0.7, for a buffer that is always full: here it follows CUBIC's windows.
"""

from __future__ import annotations

from typing import Any

from sympy import Float, Heaviside, Max, Min, Piecewise, Rational, log, symbols

from fluidcc.laws import Jump, Tick, highest, rounds
from fluidcc.sources.windows import F, acked, w, window
from fluidcc.symbols import RTT, Let, loss, nonnegative, positive

__all__ = ["BBRv1"]

phase, T, T_n, n, B, age = nonnegative("phase T T_n n B age")
D = symbols("D_2:9", real=True)  # samples but the last two: states of `_largest` [packet/s]
R_min, few, high, up, down, cap, cruise = positive("R_min few high up down cap cruise")
W_R, hold = positive("W_R hold")
margin, passed = nonnegative("margin passed")

STARTUP, DRAIN, CRUISE, UP, DOWN, EMPTY, LEAST = range(7)
_HALF = Rational(1, 2)
NEARLY = 1 - Float("1e-9")  # so that rounding finds no smaller round trip


def by_phase(*values: Any, at: Any = phase) -> Any:
    """What it is in each phase, in their order."""
    tests = [at < k + _HALF for k in range(len(values) - 1)]
    return Piecewise(*zip(values, [*tests, True], strict=True))


_holds = Let(r"\mathrm{BDP}", Max(B * R_min, few))  # packets that fit into the path
_gain = Let("g", by_phase(high, 1 / high, 1, up, down, 1, 1))
# In startup acknowledgements double in a round trip: of their rate now, that is the mean over one.
_now = Let("B_{s}", Max(B, few / RTT, by_phase(acked / (2 * log(2.0)), 0, 0, 0, 0, 0, 0)))
_rate = (1 - margin) * _gain * _now
_grown = by_phase(Min(acked, Max(high * _now * R_min - w, 0) / RTT), 0, 0, 0, 0, 0, 0)

# How far beyond its end a phase is, and what comes then.
_longer, _fuller = T / R_min - 1, F / _holds
_over = by_phase(
    -1, 1 - _fuller, T / (cruise * R_min) - 1, Min(_longer, Max(_fuller - up, loss)),
    Max(_longer, 1 - _fuller), 1 - F / few, -1,
)  # fmt: skip
_next = by_phase(DRAIN, CRUISE, UP, DOWN, CRUISE, LEAST, CRUISE)

# What is known after a round trip.
_sample = Let("D", Max(n / T_n, B * Heaviside(phase - DOWN - _HALF, 0)))  # B falls in others alone
_largest = Let("B'", highest(_sample, over=rounds(9), blocks=9, every=RTT, name="D"))
_least = Let("R'", Min(R_min, RTT))
_fits = Let(r"\mathrm{BDP}'", _largest * _least)
_full = Heaviside(Rational(5, 4) * Max(*D) - _largest, 0)  # nothing is gained: drain
_cycling = Max(cap * _fits, few)
_round = {
    B: _largest,
    n: 0,
    T_n: 0,
    R_min: _least,
    age: Piecewise((0, NEARLY * R_min > RTT), (age, True)),
    phase: by_phase(_full, *[phase] * 6),
    w: by_phase(w, w, *[_cycling] * 3, few, few),
}

BBRv1 = window(
    "BBRv1",
    _grown,
    clock="paced",
    rate=_rate,
    flow={phase: 0, T: 1, n: (1 - loss) * acked, T_n: 1, B: 0, R_min: 0, age: 1},
    initial={phase: STARTUP, T: 0, n: 0, T_n: 0, B: 0, R_min: 1e6, age: 0},
    ticks=[Tick(RTT, _round)],
    jumps=[
        Jump(when=_over, reset={phase: _next, T: by_phase(0, passed * R_min, 0, 0, 0, 0, 0)}),
        Jump(
            when=Min(age / W_R - 1, EMPTY - _HALF - phase),
            reset={phase: EMPTY, R_min: RTT, age: 0, w: few},
        ),
        Jump(
            when=Min(T / Max(hold, RTT) - 1, phase - LEAST + _HALF),
            reset={phase: CRUISE, T: passed * R_min, R_min: _least, age: 0,
                   w: Max(cap * B * _least, few)},
        ),
    ],
    params={
        high: 2.885, up: 1.25, down: 0.75, cap: 2, cruise: 6, few: 4, margin: 0.01, W_R: 10,
        hold: 0.2, passed: 0,
    },
    units={
        phase: "1", T: "s", n: "packet", T_n: "s", B: "packet/s", R_min: "s", age: "s", high: "1",
        up: "1", down: "1", cap: "1", cruise: "1", few: "packet", margin: "1", W_R: "s", hold: "s",
        passed: "1",
    },
    limits={margin: 1},
    least=few,
    about="BBR version 1: sends as the path delivers at best, at most two such paths in flight.",
    meaning={
        phase: "0 startup, 1 drain, 2 cruise, 3 up, 4 down, 5 to the least in flight, 6 at it",
        T: "time in this phase",
        n: "packets delivered since the last sample",
        T_n: "time since the last sample",
        B: "bandwidth: the largest of the last ten samples",
        R_min: "least round trip known",
        age: "time since that was found",
        high: "gain in startup; in drain the rate has 1 over it",
        up: "gain of the phase that looks for more",
        down: "gain of the phase that gives it back",
        cap: "largest part of the path that may be in flight",
        cruise: "least round trips at the rate itself, between",
        few: "packets that may always be in flight",
        margin: "part of the rate that is not used",
        W_R: "time for which a least round trip is good",
        hold: "time with few packets in flight, to see a smaller one",
        passed: "least round trips of the first cruise that are over when it begins",
    },
    ref="tcp_bbr.c of Linux; draft-cardwell-iccrg-bbr-congestion-control-00",
)  # fmt: skip
