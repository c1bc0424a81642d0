"""DCCP with TCP-like congestion control (CCID 2, RFC 4341): AIMD over marks, once a round trip,
with a largest rate.

A fluid's marks are a ratio, and a window is halved at a mark: at the moment when, by the ratio, one
packet has been marked since the round trip of the last halving. `fluidcc.Reno` is the mean over
random marks of the same.
"""

from __future__ import annotations

from sympy import Heaviside, Max, Min

from fluidcc.laws import Jump, Source
from fluidcc.symbols import RTT, Let, nonnegative, packet, pi, positive, x_tau

__all__ = ["DCCP"]

W = positive("W")  # congestion window [packet]
marked = nonnegative("m")  # packets marked since the last round trip with a halving
since = nonnegative("since")  # time since the last halving [s]
a, b, r_max = positive("a b r_max")  # increase a round trip [packet], decrease factor [1], [bit/s]

_rate = Let("r", packet * W / RTT)

DCCP = Source(
    name="DCCP",
    window=W,
    flow={
        W: a
        / RTT
        * Min(
            Max(50 * (1 - _rate / r_max), 0), 1
        ),  # no window is opened beyond what the access carries
        marked: x_tau * pi / packet * Heaviside(since - RTT, 0),
        since: 1,
    },
    out={"rate": Min(_rate, r_max)},
    params={a: 1, b: 0.5, r_max: 20e6},
    units={W: "packet", marked: "packet", since: "s", a: "packet", b: "1", r_max: "bit/s"},
    lower={W: 1},
    initial={W: 1, marked: 0, since: 1},
    limits={b: 1},
    jumps=(Jump(when=marked - 1, reset={W: (1 - b) * W, marked: 0, since: 0}),),
    about="DCCP with TCP-like congestion control: AIMD over marks, up to a largest rate.",
    meaning={
        W: "congestion window",
        marked: "packets marked since the last round trip with a halving",
        since: "time since the last halving",
        a: "increase a round trip",
        b: "part given up at a mark",
        r_max: "largest rate",
    },
    ref="RFC 4340 and 4341; the ECF paper, Section 3, with the access at 20 Mbit/s",
)
