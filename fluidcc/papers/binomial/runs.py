"""Sections V-B and VI of the binomial paper: losses in the interval model, and on a queue."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import FluidccWarning
from fluidcc.formulas import binomial
from fluidcc.laws import Source
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.binomial.loss import iscc
from fluidcc.papers.model import Claim, Outcome
from fluidcc.papers.printed import named, percent
from fluidcc.simulation.simulate import simulate
from fluidcc.simulation.synchronized import Orbit, synchronized
from fluidcc.sources import ISCC, TFRC, RateBinomial

T1 = 1544e3  # Capacity of a T1 link [bit/s]
# lambda and sigma of Fig. 5, for MTU/RTT of 5, 50 and 10 kbit/s.
SCHEMES = {
    "AIMD1": binomial.window_to_rate(1, 0.5, 0, 1, 5e3, 1.0),
    "AIMD2": binomial.window_to_rate(1, 0.5, 0, 1, 50e3, 1.0),
    "IIAD": binomial.window_to_rate(1, 0.5, 1, 0, 10e3, 1.0),
}
POWERS = {"AIMD1": (0, 1), "AIMD2": (0, 1), "IIAD": (1, 0)}
FLOWS = 100
ISCC_FLOWS = (1, 2, 5, 10, 20, 50, 100, 200)


def grouped(value: float) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,.0f}".replace(",", " ")


def orbit_of(scheme: str, flows: int, **changes: Any) -> Orbit:
    """The orbit of `flows` flows of a scheme of Fig. 5, exact where its steps are affine."""
    (a, b), (up, down) = POWERS[scheme], SCHEMES[scheme]
    return synchronized(a, b, up, down, T1, n=flows, exact=a == 0 and not changes, **changes).orbit


@cache
def fig5(scheme: str) -> NDArray[np.float64]:
    """Loss ratio p_n for n = 1, ..., 100 flows of a scheme of Fig. 5; computed once."""
    return np.array([float(orbit_of(scheme, flows).loss) for flows in range(1, FLOWS + 1)])


@cache
def iscc_losses(k: float, l: float, first: int = len(ISCC_FLOWS)) -> NDArray[np.float64]:
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
    s = fig5(scheme) / fig5(scheme)[0]
    x, y = np.log(np.arange(1, FLOWS + 1)), np.log(s)
    return float(y[-1] / x[-1]), float(np.polyfit(x, y, 1)[0]), float(x @ y / (x @ x))


def _growth(claim: Claim, scheme: str, reason: str = "") -> Outcome:
    p = fig5(scheme)
    s = p[-1] / p[0]
    off = s / float(claim.published.replace(" ", "")) - 1
    return claim.compared(
        [s],
        {"s_100": s, "p_1": p[0], "p_100": p[-1]},
        computed=f"s_100 = {grouped(s)}, {percent(abs(off), 2)} {'above' if off > 0 else 'below'} "
        "it",
        reason=f"{CONVENTION} {reason}".strip(),
    )


def growth_aimd1(claim: Claim) -> Outcome:
    p = fig5("AIMD1")
    return _growth(
        claim,
        "AIMD1",
        f"p_100 is exact, {percent(p[-1], 4)}, so the paper's p_1 was {p[-1] / 6755:.4g} where the "
        f"orbit's is {p[0]:.4g}: perhaps a mean over a run of finite length, in which one "
        "overshoot more or less counts.",
    )


def growth_aimd2(claim: Claim) -> Outcome:
    return _growth(claim, "AIMD2")


def first_interval_only(flows: int) -> float:
    """Loss of IIAD in Fig. 5 if only the first interval of a row over capacity counted."""
    orbit = orbit_of("IIAD", flows)
    totals = orbit.rates[:, 0] * flows
    over = totals > T1
    first = over & ~np.roll(over, 1)
    return float(((totals - T1) * first).sum() / totals.sum())


def _iiad_tried() -> dict[str, float]:
    """s_100 of IIAD by other conventions."""
    p = fig5("IIAD")
    up, down = SCHEMES["IIAD"]

    def late(flows: int) -> float:
        return float(orbit_of("IIAD", flows, delay=1).loss)

    def short(flows: int) -> float:
        run = synchronized(1, 0, up, down, T1, n=flows, initial=10e3, intervals=100_000)
        return float(run.loss)

    return {
        "only the first interval of a row over capacity": first_interval_only(100)
        / first_interval_only(1),
        "over what is carried": p[-1] / (1 - p[-1]) / (p[0] / (1 - p[0])),
        "a run of 100 000 intervals from 10 kbit/s": short(100) / short(1),
        "feedback an interval late": late(100) / late(1),
        "the largest overshoot, exact (34)": float(
            binomial.loss_increase_exact(1, 0, up, down, T1, 100)
        ),
        "the largest overshoot, approximate (37)": float(
            binomial.loss_increase(1, 0, down, T1, 100)
        ),
    }


def growth_iiad(claim: Claim) -> Outcome:
    tried = _iiad_tried()
    p, (up, down) = fig5("IIAD"), SCHEMES["IIAD"]
    most = float(binomial.loss(1, 0, up, down, T1))
    text = ", ".join(f"{grouped(v)} with {a}" for a, v in tried.items())
    return _growth(
        claim,
        "IIAD",
        f"Also tried: {text}. With p_100 = {percent(p[-1], 4)} the printed value asks for p_1 = "
        f"{p[-1] / 219_889:.3g}: more than the largest overshoot in each cycle gives, {most:.3g}, "
        f"and the orbit's is {p[0]:.3g}.",
    )


def loss_of_100(claim: Claim) -> Outcome:
    values = {name: fig5(name)[-1] for name in ("AIMD1", "AIMD2")}
    exact = {name: orbit_of(name, FLOWS).loss for name in values}
    return claim.compared(
        values.values(),
        values,
        computed=", ".join(f"{a} {percent(v, 4)} ({exact[a]})" for a, v in values.items()),
        convention=CONVENTION,
    )


def exponents_aimd(claim: Claim) -> Outcome:
    found = {name: power(name) for name in ("AIMD1", "AIMD2")}
    own = [float(np.log(s) / np.log(100)) for s in (6755, 352)]
    return claim.compared(
        [f[0] for f in found.values()],
        {a: f[0] for a, f in found.items()},
        computed="; ".join(f"{a} {f[0]:.2f} by ln s_100/ln 100" for a, f in found.items()),
        own=own,
        fits={a: f[1] for a, f in found.items()},
    )


def exponent_iiad(claim: Claim) -> Outcome:
    ends, free, through = power("IIAD")
    printed = float(np.log(219_889) / np.log(100))
    return claim.compared(
        [free], {"least squares": free, "last point": ends}, through=through, printed=printed
    )


def becomes_linear(claim: Claim) -> Outcome:
    p, flows = fig5("AIMD2"), np.arange(1, FLOWS + 1)
    slope = {
        name: np.polyfit(np.log(flows[part]), np.log(p[part]), 1)[0]
        for name, part in {"1 to 7": slice(0, 7), "7 to 100": slice(6, None)}.items()
    }
    bend = min(range(2, FLOWS), key=lambda n: _bent(np.log(flows), np.log(p), np.log(n)))
    return claim.compared([*slope.values(), bend], slope | {"bend": bend}, slope=slope)


def _bent(x: NDArray[np.float64], y: NDArray[np.float64], at: float) -> float:
    """Squares that two lines which meet at `at` leave."""
    lines = np.column_stack([np.ones_like(x), x, np.maximum(x - at, 0)])
    return float(np.sum((y - lines @ np.linalg.lstsq(lines, y, rcond=None)[0]) ** 2))


def aggressive_loses_more(claim: Claim) -> Outcome:
    worse = fig5("AIMD2") > fig5("AIMD1")
    return claim.reproduced_if(
        np.all(worse), worse=worse.sum(), more=fig5("AIMD2")[0] / fig5("AIMD1")[0]
    )


def dips(claim: Claim) -> Outcome:
    at = {m: synchronized(0, 1, 1, "1/2", m, exact=True).orbit.loss for m in range(1, 9)}
    seen = {}
    for name in ("AIMD1", "AIMD2"):
        p = fig5(name)
        low = np.flatnonzero((p[1:-1] < 0.5 * p[:-2]) & (p[1:-1] < 0.5 * p[2:])) + 2
        seen[name] = {int(m): T1 / (SCHEMES[name][0] * m) for m in low}
    even = all(v == 0 for m, v in at.items() if m % 2 == 0) and all(
        v > 0 for m, v in at.items() if m % 2
    )
    below = all(v % 2 > 1.7 for found in seen.values() for v in found.values())
    text = "; ".join(
        f"{a}: " + ", ".join(f"n = {m} (C/(lambda n) = {v:.2f})" for m, v in found.items())
        for a, found in seen.items()
    )
    return claim.differs_if(even and below, named("m = {}", at), text=text)


# --- Sections V-C and VI of the binomial paper ----------------------------------------------------


def iscc_in_simulation(claim: Claim) -> Outcome:
    flat, falling = (iscc_losses(a, 2) for a in (-1.2, -1.5))
    late = np.array(ISCC_FLOWS) >= 20
    values = {
        f"({a}, 2), n = {m}": v
        for a, p in ((-1.2, flat), (-1.5, falling))
        for m, v in zip(ISCC_FLOWS, p, strict=True)
    }
    flatness = {name: np.ptp(p) / p.max() for name, p in (("all", flat), ("late", flat[late]))}
    good = bool(np.all(np.diff(falling) < 0)) and flatness["all"] < 0.1
    return claim.differs_if(
        not good,
        values,
        flatness=flatness,
        falls="falls" if np.all(np.diff(falling[late]) < 0) else "does not fall",
        flows=ISCC_FLOWS,
        flat=flat,
        falling=falling,
    )


def several_decreases(claim: Claim) -> Outcome:
    share = {}
    for b, a in ((1.5, -1.25), (2, -1.5), (3, -2)):
        orbit = synchronized(a, b, *iscc(a, b), 1.0, n=50).orbit
        share[f"l = {b:g}"] = orbit.overloads / orbit.period
    return claim.reproduced_if(list(share.values()) == sorted(share.values()), share)


def estimates(claim: Claim) -> Outcome:
    values: dict[str, float] = {}
    cases = {
        "within 7 %": (0.93, 1.07),
        "within 30 %": (0.7, 1.3),
        "all half of C": (0.5, 0.5),
        "all twice C": (2.0, 2.0),
    }
    right = _with_estimates(1.0, 1.0)
    text = [f"right: loss {percent(right[0])}, fairness {right[1]:.3f}"]
    for name, ends in cases.items():
        loss, fairness = _with_estimates(*ends)
        values |= {f"loss, {name}": loss, f"fairness, {name}": fairness}
        text.append(f"{name}: loss {percent(loss)}, fairness {fairness:.3f}")
    # x^(l + k) = (lam/sigma)(up/down) for every flow, and lam/sigma ~ C^(k + l): rates are as the
    # estimates
    proportional = abs(values["fairness, within 30 %"] - 0.7 / 1.3) < 1e-3
    return claim.reproduced_if(proportional, values, computed="; ".join(text))


@cache
def _with_estimates(low: float, high: float) -> tuple[float, float]:
    """Loss and fairness of 20 flows whose estimates of C lie evenly from `low` to `high`."""
    up, down = np.array([iscc(-1.5, 2, estimate=c) for c in np.linspace(low, high, 20)]).T
    run = synchronized(
        -1.5, 2, up, down, 1.0, initial=np.full(len(up), 1 / len(up)), intervals=60_000
    )
    late = run.rates[-20_000:].mean(axis=0)
    lost = np.maximum(run.rates[-20_000:].sum(axis=1) - 1.0, 0).sum() / run.rates[-20_000:].sum()
    return float(lost), float(late.min() / late.max())


def bandwidth_estimates(claim: Claim) -> Outcome:
    loss, fairness = _with_estimates(0.93, 1.07)
    return claim.out_of_reach({"fairness": fairness, "loss": loss})


# Table I with MTU/RTT = 100 kbit/s, m_D = 2, m_I = 20: k, l, lambda, sigma, and the printed p_50
# [%]
TABLE: dict[str, tuple[float, float, float, float, float]] = {
    "IIAD(0.10, 1/2)": (1, 0, *binomial.window_to_rate(0.10, 0.5, 1, 0, 100e3, 1.0), 44.7),
    "SQRT(0.18, 1/2)": (0.5, 0.5, *binomial.window_to_rate(0.18, 0.5, 0.5, 0.5, 100e3, 1.0), 27.8),
    "AIMD(0.19, 1/2)": (0, 1, *binomial.window_to_rate(0.19, 0.5, 0, 1, 100e3, 1.0), 25.5),
    "ISCC(-1.2, 2)": (-1.2, 2, *binomial.iscc_parameters(-1.2, 2, T1, 20, 2), 12.0),
    "ISCC(-1.5, 2)": (-1.5, 2, *binomial.iscc_parameters(-1.5, 2, T1, 20, 2), 2.3),
}
LATE = 2  # intervals: what makes feedback of the fluid study as late as a round trip's


@cache
def table_losses(name: str) -> dict[int, float]:
    """Losses of a scheme of Table I, feedback `LATE` intervals late, 14 kbit/s a flow at least."""
    a, b, up, down, _ = TABLE[name]
    found = {}
    for flows in (2, 5, 10, 20, 30, 50):
        with warnings.catch_warnings():
            # a tie is a dip; this is a qualitative study
            warnings.simplefilter("ignore", FluidccWarning)
            found[flows] = float(
                synchronized(a, b, up, down, T1, n=flows, delay=LATE, floor=14e3).orbit.loss
            )
    return found


def testbed(claim: Claim) -> Outcome:
    found = {name: table_losses(name) for name in TABLE}
    order = sorted(TABLE, key=lambda name: -found[name][50])
    agrees = order == list(TABLE)
    values: dict[str, Any] = {name: p[50] for name, p in found.items()}
    return claim.out_of_reach(
        values,
        computed="the interval model with feedback two intervals late loses "
        + ", ".join(
            f"{percent(found[name][50])} ({name}; printed {TABLE[name][4]} %)" for name in TABLE
        )
        + f"; {'the same' if agrees else 'another'} order",
    )


# --- Fig. 8 and Table I as a study on a link with a queue and delayed feedback -----------------


NETWORK_FLOWS = (2, 5, 10, 20, 50)
# p_2 and p_50 of Table I [%]
PRINTED = {
    "IIAD(0.10, 1/2)": (0.29, 44.7),
    "SQRT(0.18, 1/2)": (0.26, 27.8),
    "AIMD(0.19, 1/2)": (0.30, 25.5),
    "TFRC": (0.27, 20.9),
    "ISCC(-1.2, 2)": (0.69, 12.0),
    "ISCC(-1.5, 2)": (0.57, 2.3),
}
RTT, BUFFER = 0.05, 0.05  # propagation there and back, queue [s]
BASE, UNIT = 14e3, 100e3  # lowest rate and MTU/RTT [bit/s]
CONTROL = RTT + BUFFER  # the control interval: a round trip with a full queue [s]


@cache
def _laws() -> dict[str, Source]:
    tcp = {
        "IIAD(0.10, 1/2)": (1, 0, 0.10),
        "SQRT(0.18, 1/2)": (0.5, 0.5, 0.18),
        "AIMD(0.19, 1/2)": (0, 1, 0.19),
    }
    laws: dict[str, Source] = {}
    for name, (k, l, alpha) in tcp.items():
        law = RateBinomial(k=k, l=l, alpha=alpha, beta=0.5, m=UNIT, R=CONTROL)
        # no less than the base layer of the video
        laws[name] = replace(law, lower={law.states[0]: BASE})
    for k in (-1.2, -1.5):
        laws[f"ISCC({k}, 2)"] = ISCC(k=k, l=2, m_I=20, m_D=2, C=T1, R=CONTROL)
    return laws | {"TFRC": TFRC(n0=30)}


@cache
def network_losses(name: str) -> dict[int, float]:
    """Lost over sent from 60 to 120 s, by flows that start at 1/2 to 3/2 of their fair share."""
    law, found = _laws()[name], {}
    for n in NETWORK_FLOWS:
        first = [{"x": (0.5 + i / n) * T1 / n} if name != "TFRC" else None for i in range(n)]
        flows = [{"law": law, "start": 0, "packet": 12_000, "initial": x} for x in first]
        net = dumbbell(flows, {"capacity": T1, "delay": RTT / 2, "buffer": BUFFER * T1})
        run = simulate(net, 120, samples=3)
        sent, lost = (np.diff(run[kind].values[1:, 0])[0] for kind in ("entered", "lost"))
        found[n] = float(lost / sent)
    return found


def testbed_in_a_network(claim: Claim) -> Outcome:
    found = {name: network_losses(name) for name in PRINTED}
    grows = {name: p[50] / p[2] for name, p in found.items()}
    # while there is loss the automaton still climbs: beyond this n a decrease a round trip is less
    # than an increase
    lam, sigma = binomial.iscc_parameters(-1.2, 2, 1.0, 20, 2)
    limit = (sigma / lam) ** (1 / 0.8)
    return claim.out_of_reach(
        grows,
        computed="; ".join(
            f"{name} {percent(p[2], 2)} to {percent(p[50], 2)} (testbed {PRINTED[name][0]} to "
            f"{PRINTED[name][1]} %)"
            for name, p in found.items()
        ),
        limit=limit,
    )
