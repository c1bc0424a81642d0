"""Queues that mark: PI2 (RFC 9332), PIE (RFC 8033), CoDel (RFC 8289), the static link, and RCP."""

from __future__ import annotations

from math import log, log10, sqrt
from typing import Any

from sympy import Eq, Rational, atan, exp, integrate, pi, symbols
from sympy import sqrt as root

from fluidcc.analysis.stability import stability
from fluidcc.formulas.response import square_root_window
from fluidcc.links import PI2, PIE, CoDel, RCPLink
from fluidcc.links.pie import DIVISORS
from fluidcc.network.topologies import dumbbell
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.papers.model import (
    Found,
    compared,
    differs_if,
    proof,
    proved,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import agrees, named
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CUBIC, Reno
from fluidcc.symbols import positive

alpha, beta, T, f, W = positive("alpha beta T f W")
RTT_MAX, TARGET = 0.1, 0.015  # of RFC 9332, Fig. 2 [s]
DECAY = float(PIE.params[next(s for s in PIE.params if s.name == "decay")])


# --- PI2 ------------------------------------------------------------------------------------------


def classic_rate() -> Found:
    return compared([square_root_window(1e-4) * 1e-2])


def coupling() -> Found:
    exact, printed = 2 / sqrt(3 / 2), 2 / 1.22
    return differs_if(round(printed, 2) == 1.64 != round(exact, 2), exact=exact, printed=printed)


def coupling_factors() -> Found:
    exact = [2 / sqrt(3 / 2) * (1 + b) / 2 * (1 + TARGET / 0.025) for b in (0.5, 0.7)]
    rounded = [1.64 * 0.75 * 1.6, round(1.64 * 0.85, 2) * 1.6]
    as_printed = [round(one, 2) for one in rounded] == [1.97, 2.22]
    return differs_if(as_printed and round(exact[0], 2) != 1.97, exact=exact)


def gains() -> Found:
    interval = min(TARGET, RTT_MAX / 3)
    rules = [(0.1 * each / RTT_MAX**2, 0.3 / RTT_MAX) for each in (interval, 0.016)]
    return differs_if(
        round(rules[1][1], 1) != 3.2, integral=rules[0][0], integral_16=rules[1][0],
        proportional=rules[0][1],
    )  # fmt: skip


def stable_at_100_ms() -> Found:
    """By the packets in flight, with a round trip of 0.1 s with the queue."""
    found = {f"{window} packets": _margin(window) for window in (10, 20, 50, 200)}
    return differs_if(not all(agrees("10", margin) for margin in found.values()), found)


def _margin(window: int) -> float:
    """The gain margin of a flow with that window [dB]."""
    link = {"law": PI2, "capacity": 10 * window * 8000}
    net = dumbbell([{"law": Reno, "packet": 8000}], link, rtt=RTT_MAX - TARGET)
    return 20 * log10(stability(net).margins.gain)


# --- PIE ------------------------------------------------------------------------------------------


def decay_time() -> Found:
    return compared([1 / DECAY], other=-1 / log(1 - 1 / 64))


def half_interval() -> Found:
    """On a ramp of slope s that ends at a delay d above the target."""
    d, s = symbols("d s", real=True)
    whole = alpha * d + beta * s * T
    halves = sum(alpha / 2 * one + (beta + alpha / 4) * s * T / 2 for one in (d - s * T / 2, d))
    step = alpha / 2 * (0 + d) + (beta + alpha / 4) * d - (alpha * d + beta * d)  # at once, midway
    return differs_if(
        proof(Eq(whole, halves)).status == "proved" and (step / d).subs(alpha, 1) != 0,
        share=float(abs(step.subs({alpha: 0.125, beta: 1.25, d: 1})) / (0.125 + 1.25)),
    )


def tuning() -> Found:
    """The part of the gains that is left, over sqrt(2 p), on both sides of each edge."""
    edges = [10.0**k for k in range(-6, 0)]
    below, above = (
        [1 / n / sqrt(2 * edge) for edge, n in zip(edges, some, strict=True)]
        for some in (DIVISORS[:-1], DIVISORS[1:])
    )
    return differs_if(max(above) > 2, least=min(below), most=max(above))


# --- CoDel ----------------------------------------------------------------------------------------

_LOW, _HIGH = (1 + f) / 2, 1 + f  # windows between two cuts, over the bandwidth-delay product
_GOODPUT = (3 + 6 * f - f**2) / (4 * (1 + f))


def _over_windows(below: Any, above: Any) -> Any:
    """The integral over windows of what holds below and above a full path."""
    return integrate(below, (W, _LOW, 1)) + integrate(above, (W, 1, _HIGH))


def goodput() -> Found:
    rounds = _over_windows(W, 1) / (_HIGH - _LOW)
    time = _over_windows(W, W) / _over_windows(1, W)  # a round trip takes 1, or W with a queue
    both = proof(Eq(rounds, _GOODPUT), f < 1), proof(Eq(time, _GOODPUT), f < 1)
    at = [float(one.subs(f, 0.05)) for one in (rounds, time)]
    return differs_if([p.status for p in both] == ["proved", "refuted"], rounds=at[0], time=at[1])


def power() -> Found:
    printed = (1 + 2 * f - f**2 / 3) / (1 + f) ** 2
    return proved(Eq(_GOODPUT / (1 + f), printed * 3 / 4), printed.diff(f) < 0)


def goodput_rises() -> Found:
    return proved(proof(_GOODPUT.diff(f) > 0, f < 1))


def close_to_full() -> Found:
    five, ten = (float(_GOODPUT.subs(f, one)) for one in (0.05, 0.1))
    return refuted_if(ten < 0.9, five=five, ten=ten)


def interval() -> Found:
    """Four flows of CUBIC over 20 Mbit/s, losses at random."""
    trips = (0.01, 0.03, 0.1, 0.3, 1.0)
    parts = [_used(trip) for trip in trips]
    return differs_if(min(parts[:4]) > 0.9 and parts[4] < 0.8, named("{:g} s", trips, parts))


def _used(trip: float) -> float:
    """The part of the link that is used."""
    link = {"law": CoDel, "capacity": 20e6, "buffer": "2000 packets"}
    net, until = dumbbell([CUBIC] * 4, link, rtt=trip), max(60, 300 * trip)
    run = simulate(net, until, losses="random", seed=1, samples=8001)
    return float(run.utilisation.sel(time=slice(until / 2, None)).mean())


# --- a static link --------------------------------------------------------------------------------


def static_link() -> Found:
    """Equal round trips R, the queue tau after the sources: X, Q and w are transforms at z."""
    z, tau, R, C, w, Q = positive("z tau R C w Q")
    X = z * C * Q * exp(z * tau)  # what the queue integrates
    sent = z * w + exp(-z * R) * X - C * z * exp(-z * (R - tau)) * Q
    return proved(Eq((X - sent) * exp(-z * tau) / (z * C), Q - exp(-z * tau) * w / C))


# --- RCP ------------------------------------------------------------------------------------------


def rcp_loop() -> Found:
    """(alpha s d + beta) e^(-s d)/(s d)^2 with beta = alpha^2 sqrt(2), in round trips."""
    crossing = alpha * root(2)
    of_loop = (alpha * crossing) ** 2 + (alpha**2 * root(2)) ** 2  # the gain there, squared
    phase = atan(crossing * alpha / (alpha**2 * root(2))) - crossing  # above that of -1
    by_it = proof(Eq(of_loop, crossing**4)), proof(Eq(phase, pi / 4 - crossing))
    edge = float(pi / (4 * root(2)))
    own = _rcp(RCPLink.parameter("alpha"), RCPLink.parameter("beta"))
    sides = [_rcp(a, a * a * sqrt(2)).stable for a in (0.99 * edge, 1.01 * edge)]
    agree = abs(own.phase - float((pi / 4 - Rational(2, 5) * root(2)) * 180 / pi)) < 0.1
    return reproduced_if(
        all(one.status == "proved" for one in by_it) and sides == [True, False] and agree,
        phase=own.phase,
    )


def _rcp(gain: float, queued: float) -> Any:
    return DelayLTI.transfer([gain, queued], [1, 0, 0], 1.0).margins()
