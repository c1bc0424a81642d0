"""Response functions of windows: Reno, CUBIC (RFC 9438) and HighSpeed TCP (RFC 3649)."""

from __future__ import annotations

from math import log10

import numpy as np
from sympy import Eq, Expr, Float, Rational, integrate

from fluidcc.formulas.response import (
    aimd_window,
    cubic_window,
    highspeed_window,
    square_root_window,
)
from fluidcc.papers.model import Found, claims_of, compared, differs_if, proof, proved
from fluidcc.papers.printed import off
from fluidcc.sources import HighSpeed
from fluidcc.sources.highspeed import increase
from fluidcc.sources.windows import w
from fluidcc.symbols import positive, unfold

alpha, K, W, t = positive("alpha K W t")
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


def printed() -> dict[float, list[list[float]]]:
    """CUBIC's windows as RFC 9438 prints them: by round trip [s], a row for each of `GAINS`."""
    rows = {c.id.split(".")[1]: c.digits for c in claims_of("internet")}
    tables = {0.1: rows["cubic_table_1"], 0.01: rows["cubic_table_2"]}
    return {rtt: np.array(cells, float).reshape(3, -1).tolist() for rtt, cells in tables.items()}
