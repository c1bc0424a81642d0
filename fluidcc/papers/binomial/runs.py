"""Sections V-B and VI of the binomial paper: losses in the interval model, and on a queue."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fluidcc.base.errors import FluidccWarning
from fluidcc.formulas import binomial
from fluidcc.papers.binomial.loss import iscc
from fluidcc.papers.binomial.synchronized import Orbit, synchronized
from fluidcc.papers.model import Found, compared, differs_if, needs_packets, reproduced_if
from fluidcc.papers.printed import falling, named, percent
from fluidcc.papers.zoo.binomial import BASE, T1, TABLE, t1
from fluidcc.simulation.simulate import simulate

# lambda and sigma of Fig. 5, for MTU/RTT of 5, 50 and 10 kbit/s.
SCHEMES = {
    "AIMD1": binomial.window_to_rate(1, 0.5, 0, 1, 5e3, 1.0),
    "AIMD2": binomial.window_to_rate(1, 0.5, 0, 1, 50e3, 1.0),
    "IIAD": binomial.window_to_rate(1, 0.5, 1, 0, 10e3, 1.0),
}
POWERS = {"AIMD1": (0, 1), "AIMD2": (0, 1), "IIAD": (1, 0)}
FLOWS = 100
N = np.arange(1, FLOWS + 1)
S_100 = {"AIMD1": 6755, "AIMD2": 352, "IIAD": 219_889}  # printed
ISCC_FLOWS = (1, 2, 5, 10, 20, 50, 100, 200)


def grouped(value: float) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,.0f}".replace(",", " ")


def orbit_of(scheme: str, flows: int, **changes: Any) -> Orbit:
    """The orbit of `flows` flows of a scheme of Fig. 5, exact where its steps are affine."""
    (a, b), (up, down) = POWERS[scheme], SCHEMES[scheme]
    return synchronized(a, b, up, down, T1, n=flows, exact=a == 0 and not changes, **changes).orbit


@cache
def fig5(scheme: str) -> np.ndarray:
    """Loss ratio p_n for n = 1, ..., 100 flows of a scheme of Fig. 5; computed once."""
    return np.array([float(orbit_of(scheme, int(flows)).loss) for flows in N])


@cache
def iscc_losses(k: float, l: float, first: int = len(ISCC_FLOWS)) -> np.ndarray:
    """Loss ratios of ISCC(k, l), m_I = 20 and m_D = max(2, l), for the first of `ISCC_FLOWS`."""
    return np.array(
        [synchronized(k, l, *iscc(k, l), 1.0, n=flows).orbit.loss for flows in ISCC_FLOWS[:first]]
    )


CONVENTION = (
    "Convention: one common rate; loss is what exceeds C in every interval over capacity, over all "
    "that is sent; on the periodic orbit."
)


def power(scheme: str) -> tuple[float, float, float]:
    """Exponents of s_n: from s_100 alone, by least squares, and by those through s_1 = 1."""
    x, y = np.log(N), np.log(fig5(scheme) / fig5(scheme)[0])
    return y[-1] / x[-1], np.polyfit(x, y, 1)[0], x @ y / (x @ x)


def _growth(scheme: str, reason: str = "") -> Found:
    first, last = fig5(scheme)[[0, -1]]
    s = last / first
    return compared(
        [s],
        s_100=s,
        p_1=first,
        p_100=last,
        computed=f"s_100 = {grouped(s)}, {s / S_100[scheme]:.2f} times the printed one",
        reason=f"{CONVENTION} {reason}".strip(),
    )


def growth_aimd1() -> Found:
    first, last = fig5("AIMD1")[[0, -1]]
    return _growth(
        "AIMD1",
        f"p_100 is exact, {percent(last, 4)}; with it the printed value asks for p_1 = "
        f"{last / S_100['AIMD1']:.4g} where the orbit's is {first:.4g}: perhaps a mean over a run "
        "of finite length, in which one overshoot more or less counts.",
    )


def growth_aimd2() -> Found:
    return _growth("AIMD2")


def first_interval_only(flows: int) -> float:
    """Loss of IIAD in Fig. 5 if only the first interval of a row over capacity counted."""
    totals = orbit_of("IIAD", flows).rates[:, 0] * flows
    over = totals > T1
    first = over & ~np.roll(over, 1)
    return float(((totals - T1) * first).sum() / totals.sum())


def growth_iiad() -> Found:
    p, (up, down) = fig5("IIAD"), SCHEMES["IIAD"]
    first, last = p[[0, -1]]
    most = float(binomial.loss(1, 0, up, down, T1))

    def ratio(loss: Callable[[int], Any]) -> float:
        return float(loss(100) / loss(1))

    def short(flows: int) -> float:
        run = synchronized(1, 0, up, down, T1, n=flows, initial=10e3, intervals=100_000)
        return float(run.loss)

    tried = {
        "only the first interval of a row over capacity": ratio(first_interval_only),
        "losses over what is carried": ratio(lambda flows: p[flows - 1] / (1 - p[flows - 1])),
        "a run of 100 000 intervals from 10 kbit/s": ratio(short),
        "feedback an interval late": ratio(lambda flows: orbit_of("IIAD", flows, delay=1).loss),
        "the largest overshoot, exact (34)": binomial.loss_increase_exact(1, 0, up, down, T1, 100),
        "the largest overshoot, approximate (37)": binomial.loss_increase(1, 0, down, T1, 100),
    }
    text = ", ".join(f"{grouped(v)} with {a}" for a, v in tried.items())
    return _growth(
        "IIAD",
        f"Also tried: {text}. With p_100 = {percent(last, 4)} the printed value asks for p_1 = "
        f"{last / S_100['IIAD']:.3g}: more than the largest overshoot in each cycle gives, "
        f"{most:.3g}, and the orbit's is {first:.3g}.",
    )


def loss_of_100() -> Found:
    values = {name: fig5(name)[-1] for name in ("AIMD1", "AIMD2")}
    return compared(
        values.values(),
        values,
        exact={name: orbit_of(name, FLOWS).loss for name in values},
        convention=CONVENTION,
    )


def exponents_aimd() -> Found:
    found = {name: power(name) for name in ("AIMD1", "AIMD2")}
    last = {name: ends for name, (ends, _, _) in found.items()}
    return compared(
        last.values(),
        last,
        own=[np.log(S_100[name]) / np.log(100) for name in found],
        fits={name: fit for name, (_, fit, _) in found.items()},
    )


def exponent_iiad() -> Found:
    ends, free, through = power("IIAD")
    return compared(
        [free],
        {"least squares": free, "last point": ends},
        through=through,
        printed=np.log(S_100["IIAD"]) / np.log(100),
    )


def becomes_linear() -> Found:
    x, y = np.log(N), np.log(fig5("AIMD2"))
    slope = {
        name: np.polyfit(x[part], y[part], 1)[0]
        for name, part in {"1 to 7": slice(0, 7), "7 to 100": slice(6, None)}.items()
    }
    bend = min(range(2, FLOWS), key=lambda n: _bent(x, y, np.log(n)))
    seventh = np.exp(y[6] - y[0])
    return compared([*slope.values(), bend], slope, bend=bend, slope=slope, seventh=seventh)


def _bent(x: np.ndarray, y: np.ndarray, at: float) -> float:
    """Squares that two lines which meet at `at` leave."""
    lines = np.column_stack([np.ones_like(x), x, np.maximum(x - at, 0)])
    return float(np.sum((y - lines @ np.linalg.lstsq(lines, y, rcond=None)[0]) ** 2))


def aggressive_loses_more() -> Found:
    one, two = fig5("AIMD1"), fig5("AIMD2")
    return reproduced_if(np.all(two > one), worse=np.sum(two > one), more=two[0] / one[0])


def dips() -> Found:
    at = {m: synchronized(0, 1, 1, "1/2", m, exact=True).orbit.loss for m in range(1, 9)}
    seen = {}
    for name in ("AIMD1", "AIMD2"):
        p = fig5(name)
        low = N[1:-1][(p[1:-1] < 0.5 * p[:-2]) & (p[1:-1] < 0.5 * p[2:])]
        seen[name] = dict(zip(low, T1 / (SCHEMES[name][0] * low), strict=True))
    even = all((loss == 0) == (m % 2 == 0) for m, loss in at.items())
    below = all(v % 2 > 1.7 for found in seen.values() for v in found.values())
    text = "; ".join(
        f"{a}: " + ", ".join(f"n = {m} (C/(lambda n) = {v:.2f})" for m, v in found.items())
        for a, found in seen.items()
    )
    return differs_if(even and below, named("m = {}", at), text=text)


# --- Sections V-C and VI of the binomial paper ----------------------------------------------------


def iscc_in_simulation() -> Found:
    flat, down = (iscc_losses(a, 2) for a in (-1.2, -1.5))
    late = np.array(ISCC_FLOWS) >= 20
    moved, holds = {}, {}
    for name, part in (("all", late >= 0), ("late", late)):
        moved[name] = [np.ptp(p[part]) / p[part].max() for p in (flat, down)]
        holds[name] = falling(down[part]) and moved[name][0] < moved[name][1]
    return differs_if(
        not holds["all"],
        named("(-1.2, 2), n = {}", ISCC_FLOWS, flat),
        named("(-1.5, 2), n = {}", ISCC_FLOWS, down),
        moved,
        true="True" if holds["late"] else "Not true either",
        row=[_in_a_row(a, 2, ISCC_FLOWS[-1]) for a in (-1.2, -1.5)],
        most=ISCC_FLOWS[-1],
        flows=ISCC_FLOWS,
        flat=flat,
        falling=down,
    )


def _in_a_row(k: float, l: float, flows: int) -> float:
    """Decreases in a row on the orbit of that many flows of ISCC(k, l), in the mean."""
    orbit = synchronized(k, l, *iscc(k, l), 1.0, n=flows).orbit
    over = orbit.rates[:, 0] * flows > 1.0
    return float(over.sum() / (over & ~np.roll(over, 1)).sum())


def several_decreases() -> Found:
    powers = (1.5, 2.0, 2.5, 3.0)
    found = np.array([_in_a_row(-(l + 1) / 2, l, 50) for l in powers])
    return reproduced_if(
        np.all(np.diff(found) >= 0) and found[-1] >= 2 > found[0], named("l = {:g}", powers, found)
    )


def estimates() -> Found:
    cases = {
        "right": (1.0, 1.0),
        "within 7 %": (0.93, 1.07),
        "within 30 %": (0.7, 1.3),
        "all half of C": (0.5, 0.5),
        "all twice C": (2.0, 2.0),
    }
    found = {name: _with_estimates(*ends) for name, ends in cases.items()}
    # x^(l + k) = (lam/sigma)(up/down) for every flow, and lam/sigma ~ C^(k + l): rates are as the
    # estimates
    return reproduced_if(
        all(abs(found[name][1] - low / high) < 1e-3 for name, (low, high) in cases.items()),
        {f"loss, {name}": loss for name, (loss, _) in found.items()},
        {f"fairness, {name}": fairness for name, (_, fairness) in found.items()},
    )


@cache
def _with_estimates(low: float, high: float) -> tuple[float, float]:
    """Loss and fairness of 20 flows whose estimates of C lie evenly from `low` to `high`."""
    up, down = np.array([iscc(-1.5, 2, estimate=c) for c in np.linspace(low, high, 20)]).T
    run = synchronized(-1.5, 2, up, down, 1.0, initial=np.full(20, 1 / 20), intervals=60_000)
    rates = run.rates[-20_000:]
    late, total = rates.mean(axis=0), rates.sum(axis=1)
    return np.maximum(total - 1.0, 0).sum() / rates.sum(), late.min() / late.max()


def bandwidth_estimates() -> Found:
    loss, fairness = _with_estimates(0.93, 1.07)
    return needs_packets(fairness=fairness, loss=loss)


# p_2 and p_50 of Table I [%]
PRINTED = {
    "IIAD(0.10, 1/2)": (0.29, 44.7),
    "SQRT(0.18, 1/2)": (0.26, 27.8),
    "AIMD(0.19, 1/2)": (0.30, 25.5),
    "TFRC": (0.27, 20.9),
    "ISCC(-1.2, 2)": (0.69, 12.0),
    "ISCC(-1.5, 2)": (0.57, 2.3),
}
LATE = 2  # intervals: what makes feedback of the fluid study as late as a round trip's


@cache
def table_losses(name: str) -> dict[int, float]:
    """Losses of a scheme of Table I, feedback `LATE` intervals late, 14 kbit/s a flow at least."""
    with warnings.catch_warnings():
        # a tie is a dip; this is a qualitative study
        warnings.simplefilter("ignore", FluidccWarning)
        return {
            flows: float(synchronized(*TABLE[name], T1, n=flows, delay=LATE, floor=BASE).orbit.loss)
            for flows in (2, 5, 10, 20, 30, 50)
        }


def testbed() -> Found:
    found = {name: table_losses(name)[50] for name in TABLE}
    order = "the same" if falling(found.values()) else "another"
    lost = (f"{percent(p)} ({name}; printed {PRINTED[name][1]} %)" for name, p in found.items())
    return needs_packets(
        found,
        computed="the interval model with feedback two intervals late loses "
        + f"{', '.join(lost)}; {order} order",
    )


# --- Fig. 8 and Table I as a study on a link with a queue and delayed feedback -----------------


NETWORK_FLOWS = (2, 5, 10, 20, 50)


@cache
def on_t1(name: str, flows: int, link: Any = None, *, single: bool = False) -> tuple[float, float]:
    """Loss and utilisation from 60 to 120 s by flows that start at 1/2 to 3/2 of their fair share;
    "windows" are AIMD's, which begin with one packet. With `single` each lost packet is a decrease.
    """
    net = t1(name, flows, link, single=single)
    late = simulate(net, 120, samples=3).isel(time=[1, 2]).diff("time")
    lost, entered = late.lost.item(), late.entered.item()
    return lost / entered, (entered - lost) / (60 * T1)


def network_losses(name: str) -> dict[int, float]:
    """Lost over sent of these numbers of flows."""
    return {n: on_t1(name, n)[0] for n in NETWORK_FLOWS}


def testbed_in_a_network() -> Found:
    found = {name: network_losses(name) for name in PRINTED}
    # while there is loss the automaton still climbs: beyond this n a decrease a round trip is less
    # than an increase
    lam, sigma = binomial.iscc_parameters(-1.2, 2, 1.0, 20, 2)
    return needs_packets(
        {name: p[50] / p[2] for name, p in found.items()},
        computed="; ".join(
            f"{name} {percent(p[2], 2)} to {percent(p[50], 2)} (testbed {PRINTED[name][0]} to "
            f"{PRINTED[name][1]} %)"
            for name, p in found.items()
        ),
        limit=(sigma / lam) ** (1 / 0.8),
    )
