"""Binomial controls, window-based and rate-based: one definition, (3) of Loguinov and Radha, for
the whole family.

Without loss a window grows by alpha W^-k a round trip; at a loss, at most once a round trip, it
falls by beta W^l. `IIAD` and `SQRT` are clocked by acknowledgements; the others send W/RTT, as
their papers write. The automaton is the law; its fluid limit follows with `averaged`, one jump for
each lost packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Eq, Rational, Symbol, symbols

from fluidcc.laws import Jump, Source, Steady, extended
from fluidcc.sources.windows import acked, w, window
from fluidcc.symbols import RTT, packet, pi, positive, x_tau

__all__ = [
    "AIAD", "AIPD", "IIAD", "ISCC", "SQRT", "Binomial", "BinomialFluid", "Kelly", "RateAIMD",
    "RateBinomial", "StaticIIAD", "StaticSQRT",
]  # fmt: skip

W = positive("W")  # congestion window [packet]
x = positive("x")  # sending rate [bit/s]
alpha, beta = positive("alpha beta")  # increase a round trip and decrease, in packets
k, l = symbols("k l", real=True)
m, R = positive("m R")  # MTU/RTT of (4) [bit/s], control interval [s]
m_I, m_D, C = positive("m_I m_D C")  # of ISCC; its estimate of the capacity [bit/s]

PAPER = "Loguinov and Radha, IEEE/ACM Transactions on Networking 11 (2003)"


def binomial(
    name: str, k: Any, l: Any, params: Mapping[Symbol, float], ref: str, about: str, *,
    up: Any = alpha, down: Any = beta,
    state: Symbol = W, unit: Any = 1, every: Any = RTT, least: Any = 1, start: Any = 1,
) -> Source:  # fmt: skip
    """Make the law z' = up unit (z/unit)^-k / every; at a loss z <- z - down unit (z/unit)^l, once
    per `every`: (3) and (4).

    Parameters
    ----------
    state : Symbol
        The window, or the rate.
    unit : Expr
        One packet, or the rate of one packet a control interval.
    least, start : Expr
        Lower bound and initial value of the state.
    """
    rated = state == x
    return Source(
        name=name,
        flow={state: up * unit * (state / unit) ** -k / every},
        out={"rate": x if rated else packet * W / RTT},
        params=params,
        units=dict.fromkeys(params, "1") | {s: _UNITS[s] for s in (state, *params) if s in _UNITS},
        lower={state: least},
        initial={state: start},
        jumps=(
            Jump(on=pi, reset={state: state - down * unit * (state / unit) ** l}, refractory=every),
        ),
        ref=ref,
        about=about,
        meaning=_MEANING,
    )


_MEANING = {
    W: "congestion window",
    x: "sending rate",
    alpha: "increase a round trip, over W^k",
    beta: "decrease at a loss, times W^l",
    k: "exponent of the increase",
    l: "exponent of the decrease",
    m: "rate of a packet a control interval",
    R: "control interval",
    m_I: "inverse of the increase",
    m_D: "inverse of the decrease",
    C: "estimate of the capacity",
}
_UNITS = {W: "packet", x: "bit/s", m: "bit/s", C: "bit/s", R: "s"}
_WINDOW = {alpha: 1, beta: 0.5}
_RATE: dict[str, Any] = {
    "state": x,
    "unit": m,
    "every": R,
    "least": m,
    "start": m,
}  # rates fall to MTU/RTT at least

Binomial = binomial(
    "Binomial",
    k,
    l,
    {k: 0, l: 1, **_WINDOW},
    f"{PAPER}, (3); Bansal and Balakrishnan 2001",
    "A window grows by alpha W^-k a round trip, and falls by beta W^l at a loss.",
)


def clocked(
    name: str, k: Any, l: Any, params: Mapping[Symbol, float], ref: str, about: str, *,
    up: Any = alpha, down: Any = beta, meaning: Mapping[Symbol, str] = _MEANING,
) -> Source:  # fmt: skip
    """Make the law of `binomial`, clocked by acknowledgements: each one that tells of no loss adds
    `up` w^-k/w packets.
    """
    return window(
        name, up * w**-k * (1 - pi) * acked / w, params=params, units=dict.fromkeys(params, "1"),
        jumps=(Jump(on=pi, reset={w: w - down * w**l}, refractory=RTT),), ref=ref, about=about,
        meaning=meaning, limits={down: 1} if l == 1 else {},
    )  # fmt: skip


STATIC = "whose rate is its window over RTT."
_IIAD = (1, 0, _WINDOW, "Bansal and Balakrishnan 2001: inverse increase, additive decrease")
_SQRT = (Rational(1, 2), Rational(1, 2), _WINDOW, "Bansal and Balakrishnan 2001: k = l = 1/2")
IIAD = clocked(
    "IIAD",
    *_IIAD,
    "Inverse increase, additive decrease: the binomial control with k = 1 and l = 0.",
)
SQRT = clocked("SQRT", *_SQRT, "The binomial control with k = l = 1/2, gentler than AIMD.")
StaticIIAD = binomial("StaticIIAD", *_IIAD, f"IIAD {STATIC}")
StaticSQRT = binomial("StaticSQRT", *_SQRT, f"SQRT {STATIC}")
AIAD = binomial(
    "AIAD",
    0,
    0,
    _WINDOW,
    "additive increase, additive decrease: k = l = 0",
    "Additive increase, additive decrease: the binomial control with k = l = 0.",
)

# One jump for each lost packet, of which x_tau pi / packet a second left one round trip ago.
BinomialFluid = Binomial.averaged(
    intensity=x_tau * pi / packet,
    name="BinomialFluid",
    claims={"response function": Steady(Eq(W ** (k + l + 1) * pi, alpha / beta))},
)

# Table I: MTU/RTT of 100 kbit/s; the control interval is the round trip in most uses.
RateBinomial = binomial(
    "RateBinomial",
    k,
    l,
    {k: 0, l: 1, **_WINDOW, m: 1e5, R: 0.1},
    f"{PAPER}, (3) and (4), rate-based",
    "Binomial control of a rate, in control intervals.",
    **_RATE,
)
RateAIMD = binomial(
    "RateAIMD",
    0,
    1,
    {**_WINDOW, m: 1e5, R: 0.1},
    f"{PAPER}, (3) with k = 0, l = 1",
    "Additive increase and multiplicative decrease of a rate, in control intervals.",
    **_RATE,
)
ISCC = binomial(
    "ISCC", k, l, {k: -1.5, l: 2, m_I: 20, m_D: 2, C: 10e6, R: 0.1}, f"{PAPER}, (38)-(41): scaled "
        f"by the capacity",
    "Binomial control of a rate, scaled by an estimate of the capacity.",
    up=1 / m_I, down=1 / m_D, state=x, unit=C, every=R, least=0, start=C / 100,
)  # fmt: skip

# Additive increase, loss-proportional decrease.
AIPD = extended(
    AIAD,
    "AIPD",
    jumps=(Jump(on=pi, reset={W: W - beta * pi * W}, refractory=RTT),),
    ref=f"Lee, Kim and Bharghavan 2001, cited in {PAPER}",
    about="Additive increase, and a decrease in proportion to the loss ratio.",
    meaning={alpha: "increase a round trip", beta: "decrease for a loss ratio of 1"},
)

gain, slope = positive("alpha beta")  # [bit/s^2], [1/s]

Kelly = Source(
    name="Kelly",
    flow={x: gain - slope * x * pi},  # (7)
    out={"rate": x},
    params={gain: 1e6, slope: 10},
    units={x: "bit/s", gain: "bit/s^2", slope: "1/s"},
    lower={x: 0},
    initial={x: 1e5},
    claims={"rest point of (7)": Steady(Eq(x * pi, gain / slope))},
    ref=f"{PAPER}, (7); Kelly, Maulloo and Tan 1998",
    about="A rate grows steadily, and falls in proportion to what is lost.",
    meaning={x: "sending rate", gain: "increase", slope: "decrease of what is lost"},
)
