"""Response functions: the mean window or rate that a congestion control holds at a given loss
ratio.

Windows are in packets and `pftk` in packets/s, as in their papers; `tfrc` is in bit/s. The loss
ratio p is that of loss events a packet sent, in (0, 1].
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sympy import Max, Min, Piecewise, Rational, log, sqrt, symbols

from fluidcc.base.arguments import explained
from fluidcc.formulas._formula import Bound, Formula
from fluidcc.laws.law import tfrc_rate
from fluidcc.symbols import positive

__all__ = [
    "aimd_window", "binomial_window", "cubic_window", "highspeed_window", "htcp", "htcp_window",
    "pftk", "pftk_limited", "square_root_fluid", "square_root_fluid_sent", "square_root_window",
    "tfrc",
]  # fmt: skip

p, rtt, b, T0, W_max, packet, t_RTO = positive("p rtt b T0 W_max packet t_RTO")
alpha, beta, T, delta, C_cubic = positive("alpha beta T delta C")
k, l = symbols("k l", real=True)
w_low, w_high, p_low, p_high = positive("w_low w_high p_low p_high")

_UNITS = {rtt: "s", T0: "s", T: "s", delta: "s", W_max: "packet", packet: "bit"}
formula = partial(Formula, units=_UNITS)
_ratio = Bound(p <= 1, "it is a ratio")
_part = Bound(beta < 1, "a decrease takes away a part of the window")
_aimd = partial(formula, domain=(_ratio, _part), defaults={alpha: 1.0, beta: 0.5})

# --- square-root laws -----------------------------------------------------------------------------

square_root_window = formula(
    "square_root_window",
    (p, b),
    sqrt(3 / (2 * b * p)),
    domain=(_ratio,),
    defaults={b: 1.0},
    ref="mean window [packet] of TCP if one packet in 1/p is lost, with b packets an "
    "acknowledgement: M. Mathis, "
    "J. Semke, J. Mahdavi and T. Ott, Computer Communication Review 27(3), 1997",
)
aimd_window = _aimd(
    "aimd_window",
    (p, alpha, beta),
    sqrt(alpha * (2 - beta) / (2 * beta * p)),
    ref="mean window [packet] of AIMD(alpha, beta) if one packet in 1/p is lost: S. Floyd, M. "
    "Handley and J. Padhye, A comparison of equation-based and AIMD congestion control, 2000",
)
square_root_fluid = _aimd(
    "square_root_fluid",
    (p, alpha, beta),
    sqrt(alpha / (beta * p)),
    ref="window [packet] at which the mean drift alpha/rtt - beta W p W/rtt vanishes: V. Misra, W. "
    "Gong and D. Towsley, SIGCOMM 2000; larger than aimd_window, as losses come at random",
)
square_root_fluid_sent = _aimd(
    "square_root_fluid_sent",
    (p, alpha, beta),
    sqrt(alpha * (1 - p) / (beta * p)),
    ref="window [packet] if only what is acknowledged makes it grow: F. Kelly, Mathematical "
    "modelling of the Internet, 2001",
)
binomial_window = formula(
    "binomial_window",
    (p, k, l, alpha, beta),
    (alpha / (beta * p)) ** (1 / (k + l + 1)),
    domain=(_ratio, Bound(k + l + 1 > 0, "else the window grows with the loss ratio")),
    ref="largest window [packet] of a binomial control to the leading order in the decrease, if "
    "one packet in 1/p is lost: D. Bansal and H. Balakrishnan, INFOCOM 2001",
)

# --- with timeouts --------------------------------------------------------------------------------

_seconds = sqrt(2 * b * p / 3)
_timeouts = p * (1 + 32 * p**2)

pftk = formula(
    "pftk",
    (p, rtt, T0, b),
    1 / (rtt * _seconds + T0 * Min(1, 3 * sqrt(3 * b * p / 8)) * _timeouts),
    domain=(_ratio,),
    defaults={b: 2.0},
    ref="rate [packet/s] of TCP with timeouts of T0 s: J. Padhye, V. Firoiu, D. Towsley and J. "
    "Kurose, SIGCOMM 1998, the approximate model without a limit on the window",
)
pftk_limited = formula(
    "pftk_limited",
    (p, rtt, T0, W_max, b),
    Min(W_max / rtt, pftk.form),
    domain=(_ratio,),
    defaults={b: 2.0},
    ref="rate [packet/s] as pftk, with at most W_max packets in flight",
)
tfrc = formula(
    "tfrc",
    (p, rtt, packet, b),
    tfrc_rate(p, rtt, packet, b),
    domain=(_ratio,),
    defaults={packet: 8000.0, b: 1.0},
    ref="TCP-friendly rate [bit/s]: RFC 5348, Section 3.1, with a timeout of four round trips",
)

# --- fast long-distance controls ------------------------------------------------------------------

highspeed_window = formula(
    "highspeed_window",
    (p, w_low, w_high, p_low, p_high),
    Piecewise(
        (w_low * (p / p_low) ** (log(w_high / w_low) / log(p_high / p_low)), p < p_low),
        (sqrt(3 / (2 * p)), True),
    ),
    domain=(_ratio, Bound(p_high < p_low), Bound(w_high > w_low)),
    defaults={w_low: 38.0, w_high: 83000.0, p_low: 1e-3, p_high: 1e-7},
    ref="mean window [packet] of HighSpeed TCP, and of TCP at p_low and above: RFC 3649, Section 5",
)
cubic_window = formula(
    "cubic_window",
    (p, rtt, C_cubic, beta),
    Max(
        (C_cubic * (3 + beta) / (4 * (1 - beta))) ** Rational(1, 4) * (rtt / p) ** Rational(3, 4),
        square_root_window.form.subs(b, 1),
    ),
    domain=(_ratio, _part),
    defaults={C_cubic: 0.4, beta: 0.7},
    ref="mean window [packet] of CUBIC, C in packet/s**3, with the window of TCP where that is "
    "larger: RFC 8312, Section 5.1; beta is what is left after a decrease",
)

_late = Max(T - delta, 0)
_grown = (
    T + 5 * _late**2 + _late**3 / 12
)  # integral of 1 + 10 (t - delta) + ((t - delta)/2)**2 after delta
_sent = T**2 / 2 + 5 * _late**3 / 3 + _late**4 / 48  # and the integral of that
_packets = 2 / rtt**2 * (beta * T * _grown + (1 - beta) * _sent)

htcp = formula(
    "htcp",
    (T, rtt, beta, delta),
    {"p": 1 / _packets, "window": _packets * rtt / T},
    domain=(_part,),
    defaults={beta: 0.5, delta: 1.0},
    ref="loss ratio [1] and mean window [packet] of H-TCP by the time T [s] between two losses: D. "
    "Leith and R. Shorten, PFLDnet 2004, with the increase 2 (1 - beta) (1 + 10 d + (d/2)**2) a "
    "round trip, d = T - delta, and the factor beta, which is what is left after a decrease",
)

_given = formula(
    "htcp_window",
    (p, rtt, beta, delta),
    {"p": p, "rtt": rtt, "beta": beta, "delta": delta},
    domain=(_ratio, _part),
)


@explained
def htcp_window(p: Any, rtt: Any, beta: Any = 0.5, delta: Any = 1.0) -> Any:
    """Return the mean window of H-TCP by the loss ratio: `htcp`, inverted.

    Parameters
    ----------
    p : array_like
        Loss ratio [1], in (0, 1].
    rtt : array_like
        Round-trip time [s].
    beta, delta : array_like
        What is left of the window after a decrease [1], and for how long the increase is TCP's [s].

    Returns
    -------
    float or ndarray
        Mean window [packet].

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.

    Examples
    --------
    >>> p, window = htcp(20.0, 0.1)
    >>> bool(abs(htcp_window(p, 0.1) / window - 1) < 1e-12)
    True
    """
    from scipy.optimize.elementwise import find_root

    def missing(T: Any, goal: Any, *more: Any) -> Any:
        return np.log(htcp(T, *more).p / goal)

    goal, *rest = _given(p, rtt, beta, delta)
    # N >= T**2 beta/rtt**2 bounds T from above; N <= 2 (T + 5 T**2 + T**3) T/rtt**2 does from
    # below.
    most = rest[0] * np.sqrt(1 / (goal * np.minimum(rest[1], 0.5)))
    found = find_root(missing, (1e-9 * most, most), args=(goal, *rest))
    return htcp(found.x, *rest).window
