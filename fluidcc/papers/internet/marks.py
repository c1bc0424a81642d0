"""Scalable controls: DCTCP (SIGCOMM 2010, SIGMETRICS 2011) and Prague (RFC 9332, Appendix C)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from sympy import Eq, Max, expand, solve, sqrt

from fluidcc.cycles.orbit import limit_cycle
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import PI2, RampMark, StepMark
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.model import Found, compared, differs_if, proof, proved, reproduced_if
from fluidcc.papers.printed import falling, named, off
from fluidcc.sources import DCTCP, CUBICFluid, Prague
from fluidcc.sources.dctcp import alpha as estimate
from fluidcc.sources.prague import T_min
from fluidcc.sources.windows import w
from fluidcc.symbols import e, e_b, edot, loss, mark, packet, pi, positive, unfold, x_tau

alpha, W, N, D, K, T, p, x = positive("alpha W N D K T p x")  # D = C RTT, W = W*, all in packets


def marked_share() -> Found:
    """(b^2 - a^2)/2 packets are sent while a window grows from a to b."""
    after = (W + 1) * (1 - alpha / 2)
    share = ((W + 1) ** 2 - W**2) / ((W + 1) ** 2 - after**2)
    printed = (2 * W + 1) / (W + 1) ** 2 - alpha**2 * (1 - alpha / 4)
    return proved(proof(Eq((share - alpha) * (alpha - alpha**2 / 4), printed), alpha <= 1))


def largest_queue() -> Found:
    return proved(Eq((N * (W + 1) - D).subs(W, (D + K) / N), K + N))


def _swing(w_star: float) -> float:
    """The fall of a window at a cut, (W* + 1) alpha/2, by the exact alpha."""

    def gap(a: float) -> float:
        return a * a * (1 - a / 4) - (2 * w_star + 1) / (w_star + 1) ** 2

    return float((w_star + 1) * brentq(gap, 0, 1) / 2)


def amplitude() -> Found:
    windows = (5, 50, 500, 5000)
    ratios = [_swing(one) / np.sqrt(one / 2) for one in windows]
    return reproduced_if(
        falling(ratios) and off(ratios[-1], 1) < 0.005, named("W* = {}", windows, ratios)
    )


def threshold() -> Found:
    least = K + N - sqrt(2 * N * (D + K)) / 2  # the smallest queue, by the approximation
    (worst,) = solve(least.diff(N), N)
    by_it = solve(Eq(least.subs(N, worst), 0), K)
    found = minimize_scalar(lambda s: -(_swing(s) - 1) / s, bounds=(1, 100), method="bounded")
    needed = -found.fun / (1 + found.fun)  # K/D: K = (D + K) (swing - 1)/W*
    short = by_it == [D / 7] and needed > 1 / 7
    return differs_if(short, exact=float(needed), window=float(found.x))


def gain() -> Found:
    return compared([2e4 * (1 - 0.5**1e-4)])  # 2 T g of (1 - g)^T = 1/2 with T = 1e4


def cycles() -> Found:
    link = {"law": StepMark(K="20 us"), "capacity": "10 Gbit/s"}
    cycle = limit_cycle(dumbbell([DCTCP] * 2, link, rtt="100 us"))
    least, most = (end.queueing_delay[0].item() for end in (cycle.least, cycle.most))
    return reproduced_if(least < 20e-6 < most, period=cycle.period, least=least, most=most)


def independent_of_round_trips() -> Found:
    rtt = positive("R")  # below 25 ms: the virtual round trip is T
    grows = unfold(Prague.flow[w]).subs(Max(T_min, e + e_b), T).subs({e: rtt - e_b, edot: 0})
    rest = grows.subs({estimate: p, pi: p, mark: p, loss: 0, x_tau: x * packet, w: x * rtt})
    return proved(proof(Eq(expand(rest / rtt).diff(rtt), 0)))


def scalable_rate() -> Found:
    found = brentq(lambda u: u * (1 - np.exp(-u)) - 2, 1, 4)
    return differs_if(round(found, 1) != 2.0, rare=found)


def prague_round_trips() -> Found:
    """The ratio of rates of two flows: Prague over a ramp of marks, CUBIC over PI2."""
    ramp = RampMark(K_min="0.475 ms", K_max="0.95 ms", p_max=1)
    found = {
        law: [_ratio(law, link, pair) for pair in ((0.01, 0.16), (0.005, 0.02))]
        for law, link in ((Prague, ramp), (CUBICFluid, PI2))
    }
    (long, short), (cubic, short_cubic) = found[Prague], found[CUBICFluid]
    return differs_if(
        long > cubic and short < short_cubic,
        long=long, short=short, cubic=cubic, short_cubic=short_cubic,
    )  # fmt: skip


def _ratio(law: Any, link: Any, trips: tuple[float, float]) -> float:
    rates = equilibrium(
        dumbbell([law] * 2, {"law": link, "capacity": 100e6, "buffer": "1 s"}, rtt=trips)
    ).rate.values
    return float(rates[0] / rates[1])
