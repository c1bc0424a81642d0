"""BBR: gains of its startup (tcp_bbr.c of Linux; draft-ietf-ccwg-bbr-06) and constants of version
3 (the draft).
"""

from __future__ import annotations

from math import log

from scipy.optimize import brentq
from sympy import integrate, simplify
from sympy import log as ln

from fluidcc.papers.model import Found, compared, refuted_if
from fluidcc.sources import BBRv1
from fluidcc.symbols import positive

t, k = positive("t k")  # in round trips; growth a round trip
_SENT = k**t  # and acknowledged a round trip later
_MEAN = simplify(integrate(_SENT.subs(t, t - 1), (t, -1, 0)))  # of acknowledgements, until t = 0
_GAIN = 1 / _MEAN  # for that growth, by samples over a round trip
PACKET, TRIP, VIDEO = 1514 * 8, 0.03, 25e6  # the draft's packet [bit], path [s] and rate [bit/s]


def startup_gain() -> Found:
    least, printed = float(_GAIN.subs(k, 2)), 2 / log(2)
    growth = brentq(lambda x: float(_GAIN.subs(k, x)) - printed, 1.5, 3)
    return refuted_if(least / (1 - BBRv1.parameter("margin")) < printed, least=least, growth=growth)


def startup_gain_of_the_draft() -> Found:
    return compared([float(_GAIN.subs(k, 2)), float(4 * ln(2))])


def losses_between_probes() -> Found:
    return compared([(1 - 0.01) ** 137 * 2**2])


def packets_of_reno() -> Found:
    return compared([40e9 * 20e-6 / PACKET, VIDEO * TRIP / PACKET])


def seconds_of_reno() -> Found:
    return compared([VIDEO * TRIP / PACKET * TRIP])  # a packet a round trip, from BDP to 2 BDP


def cost_of_least_round_trips() -> Found:
    every, held = 5, 0.2
    return compared([(held / 2 + every - held) / every, 1 - held / every])
