"""TFRC: TCP-friendly rate control, the equation of RFC 5348 over the weighted average loss interval (WALI)."""

from __future__ import annotations

from dataclasses import replace

from sympy import Max, Rational, symbols

from fluidcc._responses import tfrc_rate
from fluidcc.law import Jump, Source
from fluidcc.symbols import RTT, Let, packet, pi, unfold, x_tau

__all__ = ["TFRC", "TFRCFluid"]

s0 = symbols("s0", nonnegative=True)  # packets since the last loss event
I = symbols("I1:9", positive=True)  # the last eight loss intervals [packet]
b, n0 = symbols("b n0", positive=True)  # packets an acknowledgement [1], first intervals [packet]

WEIGHTS = (1, 1, 1, 1, Rational(4, 5), Rational(3, 5), Rational(2, 5), Rational(1, 5))  # Section 5.4

# The open interval counts only when it makes the average longer.
closed = sum(w * v for w, v in zip(WEIGHTS, I, strict=True))
opened = sum(w * v for w, v in zip(WEIGHTS, (s0, *I), strict=False))
mean = Let(r"\bar{I}", Max(closed, opened) / sum(WEIGHTS))
rate = tfrc_rate(1 / mean, RTT, packet, b)

TFRC = Source(
    name="TFRC",
    flow={s0: rate / packet, **dict.fromkeys(I, 0)},
    out={"rate": rate},
    params={b: 1, n0: 100},
    units={s0: "packet", **dict.fromkeys(I, "packet"), b: "1", n0: "packet"},
    initial={s0: 0, **dict.fromkeys(I, n0)},
    # a loss event: losses within a round trip are one
    jumps=(Jump(when=pi, reset={s0: 0, I[0]: s0, **dict(zip(I[1:], I[:-1], strict=True))}, refractory=RTT),),
    ref="RFC 5348, Sections 3.1 and 5.4; Floyd, Handley, Padhye and Widmer, SIGCOMM 2000",
)

# One loss event for each lost packet, of which x_tau pi / packet a second left one round trip ago.
TFRCFluid = TFRC.averaged(intensity=x_tau * pi / packet, name="TFRCFluid")

# At rest every interval is 1/pi and the rate that of the equation.
_rest = dict.fromkeys((s0, *I), 1 / pi)
_sent = unfold(rate).subs(_rest)
TFRCFluid = replace(
    TFRCFluid,
    claims={
        **{f"{z} rests at 1/pi": unfold(f).subs(_rest).subs(x_tau, _sent) for z, f in TFRCFluid.flow.items()},
        "the rate at rest is the equation's": _sent - tfrc_rate(pi, RTT, packet, b),
    },
)
