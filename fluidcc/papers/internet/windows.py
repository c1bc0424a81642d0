"""Response functions of windows: Reno, CUBIC (RFC 9438) and HighSpeed TCP (RFC 3649); how fast
LEDBAT++ grows, and when fluids of CUBIC and Compound are stable.
"""

from __future__ import annotations

from math import acos, log10, pi
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from sympy import Eq, Expr, Float, Rational, cbrt, integrate

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas.response import (
    aimd_window,
    cubic_window,
    highspeed_window,
    square_root_window,
)
from fluidcc.network.topologies import dumbbell
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.papers.model import (
    Found,
    claims_of,
    compared,
    differs_if,
    law_proof,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import named, off
from fluidcc.sources import Compound, HighSpeed, LEDBATpp, Reno, StaticReno
from fluidcc.sources.highspeed import increase
from fluidcc.sources.windows import w
from fluidcc.symbols import positive, unfold

alpha, K, T, W, t = positive("alpha K T W t")
p, R, C, beta = cubic_window.arguments
(_MEAN,) = (mean for mean in cubic_window.form.args if mean.has(R))  # where it is not Reno's
RATIOS = [10.0**-k for k in range(2, 9)]  # loss ratios of RFC 9438's Tables 1 and 2
GAINS = (0.04, 0.4, 4.0)  # and values of C [packet/s^3]
RATES = (1e7, 1e8, 1e9, 1e10)  # of its Table 3, with a round trip of 0.1 s [bit/s]
PACKET = 12000  # 1500 bytes [bit]
RENO = 1.2  # its windows of Reno are 1.2/sqrt(p), as in RFC 3649


def _with(formula: Expr, **values: Expr) -> Expr:
    """A formula with expressions for the arguments of these names."""
    put = {s: values[s.name] for s in formula.free_symbols if s.name in values}
    return formula.subs(put, simultaneous=True)


def _cubic(ratio: float, rtt: float, gain: float) -> float:
    """The mean window of RFC 9438, Fig. 7, or Reno's where that is larger."""
    mean = float(_MEAN.subs({p: ratio, R: rtt, C: gain, beta: 0.7}))
    return max(mean, RENO / ratio**0.5)


def aimd_mean() -> Found:
    rounds, mean = (1 - beta) * W / alpha, (1 + beta) * W / 2  # from beta W to W
    formula = _with(aimd_window.form, p=1 / (rounds * mean), alpha=alpha, beta=1 - beta)
    return proved(proof(Eq(formula**2, mean**2), beta < 1))


def friendly_increase() -> Found:
    fair = _with(aimd_window.form, alpha=3 * (1 - beta) / (1 + beta), beta=1 - beta)
    reno = _with(aimd_window.form, alpha=1, beta=Rational(1, 2))
    return proved(proof(Eq(fair**2, reno**2), beta < 1))


def friendly_when_synchronised() -> Found:
    """Both are cut every T round trips, from the largest window to beta of it, and climb back."""
    means = []
    for grows, kept in ((3 * (1 - beta) / (1 + beta), beta), (1, Rational(1, 2))):
        largest = grows * T / (1 - kept)
        means.append((1 + kept) * largest / 2)
    return proved(proof(Eq(*means), beta < 1))


def cubic_mean() -> Found:
    largest = C * K**3 / (1 - beta)  # so that the cube begins at beta times the largest
    mean = integrate(C * (t - K) ** 3 + largest, (t, 0, K)) / K
    formula = (_MEAN**4).subs(p, R / (K * mean))
    return proved(
        proof(Eq(mean**4, formula), beta < 1),
        proof(Eq(largest - C * K**3, beta * largest)),
        proof((C * (t - K) ** 3).diff(t, 2) <= 0, t <= K),
    )


def cubic_constant() -> Found:
    return compared([_cubic(1e-8, 1.0, 0.4) * 1e-6])


def cubic_table_1() -> Found:
    return compared([_cubic(ratio, 0.1, gain) for gain in GAINS for ratio in RATIOS])


def cubic_table_2() -> Found:
    return compared([_cubic(ratio, 0.01, gain) for gain in GAINS for ratio in RATIOS])


def reno_column() -> Found:
    ours = [square_root_window(ratio) for ratio in RATIOS]
    rounded = [RENO / ratio**0.5 for ratio in RATIOS]
    as_printed = [round(one) for one in rounded] == [12, 38, 120, 379, 1200, 3795, 12000]
    share = off(ours[2], rounded[2])
    return differs_if(as_printed and round(ours[2]) != 120, ours=ours, share=share)


def highspeed_column() -> Found:
    ratios = np.array(RATIOS[2:])
    ours, rounded = highspeed_window(ratios), 0.12 / ratios**0.835
    as_printed = off(rounded, [263, 1795, 12280, 83981, 574356]) < 2e-3
    return differs_if(as_printed and off(ours, rounded) > 5e-3, ours=ours)


def cubic_loss_ratios() -> Found:
    unit = _cubic(1e-8, 1.0, 0.4) * 1e-6
    found = [0.1 * (unit * PACKET / (0.1 * rate)) ** (4 / 3) for rate in RATES]
    return compared([a * b for a, b in zip(found, (1e4, 1e5, 1e7, 1e8), strict=True)])


def reno_loss_ratio() -> Found:
    window = RATES[-1] * 0.1 / PACKET
    ours, rounded = 1.5 / window**2, RENO**2 / window**2
    return differs_if(min(ours, rounded) > 2.05e-10, ours=ours, rounded=rounded)


def cubic_at_short_round_trips() -> Found:
    both = [_cubic(1e-6, 0.01, gain) for gain in (0.04, 0.4)]
    times = 0.12 / 1e-6**0.835 / (RENO * 1e3)
    return compared([[one * PACKET / 0.01 / 1e9 for one in both], times])


def round_trips() -> Found:
    """At equal loss ratios; flows cut at the same times follow the same cube."""
    rates = (_MEAN / R).subs({p: 1, C: 1, beta: Rational(7, 10)})
    ratio = float(rates.subs(R, 1) / rates.subs(R, 4))
    return differs_if(ratio < 2, ratio=ratio)


def highspeed_response() -> Found:
    s = log10(highspeed_window(1e-5) / highspeed_window(1e-4))
    return compared([highspeed_window(1e-4) * 1e-4**s, s])


def _increase(windows: list[int]) -> list[float]:
    return [float(unfold(increase).subs({**HighSpeed.params, w: Float(one)})) for one in windows]


def highspeed_increase() -> Found:
    (by_form,) = _increase([83_000])
    by_high = 83_000**2 * 1e-7 * 2 * 0.1 / (2 - 0.1)
    return differs_if(round(by_high) != 72 and by_form < by_high, form=by_form, high=by_high)


def highspeed_table() -> Found:
    rows = {118: 2, 347: 4, 1058: 8, 3039: 15, 5036: 20, 37_253: 54, 53_677: 62, 79_517: 70}
    return compared(_increase(list(rows)))


def square_root() -> Found:
    """W^2 p where a window rests: with a cut for each loss, and with one a round trip at most."""
    ratios = (1e-4, 1e-2, 0.1)
    each, once = (
        [_resting(law, ratio) ** 2 * ratio for ratio in ratios] for law in (StaticReno, Reno)
    )
    more = named("p = {:g}", ratios, once)
    return reproduced_if(off(np.array(each), 2) < 1e-6 and min(once) > 2, more=more)


def _resting(law: Any, ratio: float) -> float:
    """The window that rests at a loss ratio, with a round trip of 0.1 s without a queue."""
    rest = equilibrium(dumbbell([law], {"capacity": 1e12, "loss": ratio}, rtt=0.1))
    return float(rest.rate[0]) * 0.1 / 8000


def ledbat_growth() -> Found:
    return proved(law_proof(LEDBATpp, "it grows by a packet a round trip at the most"))


def cubic_settles() -> Found:
    """W = C (s - K)^3 + M, M' = -(M - W) lam, s' = 1 - s lam with lam = W p/R and p rising in W."""
    s, M, lam = positive("s M lam")
    window = C * (s - cbrt(beta * M / C)) ** 3 + M  # beta for the part that a cut takes
    drift = (window - M) * lam
    at_rest = {s: cbrt(beta * M / C)}
    flat = [proof(Eq(drift.diff(z).subs(at_rest), 0)) for z in (s, M)]

    def flow(_: float, y: Any) -> Any:
        W = (y[0] - np.cbrt(0.3 * y[1])) ** 3 + y[1]
        cuts = W**2 / np.cbrt(0.3)  # which rest at M = 1, with C = 1
        return [1 - y[0] * cuts, (W - y[1]) * cuts]

    run = solve_ivp(flow, (0, 1e6), [0.6, 1.1], "LSODA", t_eval=[1e4, 1e6], rtol=1e-11, atol=1e-12)
    power = float(np.log10((run.y[1, 1] - 1) / (run.y[1, 0] - 1)) / 2)
    return reproduced_if(
        all(one.status == "proved" for one in flat) and abs(power + 0.5) < 0.02, power=power
    )


def compound_buffers() -> Found:
    """w' = (i (1 - p) - c w p) w/T of a round trip ago, p = (w/full)^B, i = alpha w^(k-1)."""
    edges = {window: _edge(window) for window in (20, 100)}
    sides = [
        (_small_buffer(window, 0.99 * edge), _small_buffer(window, 1.01 * edge))
        for window, edge in edges.items()
    ]
    return reproduced_if(all(a and not b for a, b in sides), named("w = {}", edges))


def _gains(window: float) -> tuple[float, float]:
    """i at a window, and the loss ratio there."""
    grows = Compound.parameter("alpha") * window ** (Compound.parameter("k") - 1)
    return grows, grows / (grows + Compound.parameter("beta") * window)


def _own(window: float) -> float:
    """What the window does to itself, in 1/T: it grows by less the larger it is."""
    grows, ratio = _gains(window)
    return (2 - Compound.parameter("k")) * grows * (1 - ratio)


def _edge(window: float) -> float:
    """The B at which roots meet the imaginary axis, by its condition."""
    grows, own = _gains(window)[0], _own(window)

    def beyond(B: float) -> float:
        return float(np.sqrt((B * grows) ** 2 - own**2) - acos(-own / (B * grows)))

    return float(brentq(beyond, own / grows * (1 + 1e-9), 10 * pi / grows))


def _small_buffer(window: float, B: float) -> bool:
    """Whether the loop is stable, by its roots."""
    loop = DelayLTI.transfer([B * _gains(window)[0]], [1, _own(window)], 1.0)
    return bool(loop.margins().stable)


def printed() -> dict[float, list[list[float]]]:
    """CUBIC's windows as RFC 9438 prints them: by round trip [s], a row for each of `GAINS`."""
    rows = {c.id.split(".")[1]: c.digits for c in claims_of("internet")}
    tables = {0.1: rows["cubic_table_1"], 0.01: rows["cubic_table_2"]}
    return {rtt: np.array(cells, float).reshape(3, -1).tolist() for rtt, cells in tables.items()}
