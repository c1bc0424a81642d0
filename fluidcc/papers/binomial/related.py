"""Sections I, II, VI and VII of the binomial paper: any controls, continuous feedback, and what the
testbed compares.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from sympy import Eq, Expr, Rational, diff, lambdify, log

from fluidcc.analysis.boundary import stability_boundary
from fluidcc.base.errors import FluidccWarning
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import binomial
from fluidcc.laws import Source
from fluidcc.links import AdaptiveREDDrop, DropTail, DualLink, PenaltyLink
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.binomial import cycles
from fluidcc.papers.binomial.cycles import SLOW, C, lam, n, sigma, x
from fluidcc.papers.binomial.loss import P
from fluidcc.papers.binomial.runs import LATE, PRINTED, on_t1, table_losses
from fluidcc.papers.binomial.synchronized import synchronized
from fluidcc.papers.model import (
    Found,
    differs_if,
    law_proof,
    needs_packets,
    not_given,
    proof,
    proved,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import falling, named, off
from fluidcc.papers.zoo.binomial import BASE, T1, TABLE, UNIT
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import (
    AIPD,
    AlphaFairPrimalDual,
    BinomialFluid,
    DelayedPrimal,
    Kelly,
)
from fluidcc.sources import StaticAIMD as AIMD
from fluidcc.symbols import RTT as ROUND_TRIP
from fluidcc.symbols import pi, positive, unfold

FLOW, RESET = Kelly.flow[Kelly.states[0]], AIPD.jumps[0].reset
STEPS: dict[str, tuple[Expr, Expr]] = {
    "AIMD": (Rational(1), x / 2),
    "x - ln(1 + x)": (Rational(1), SLOW),
    "IIAD": (4 / x, Rational(3)),
}

# --- Section II-A: binary feedback ----------------------------------------------------------------


@cache
def two_flows(name: str, unit: float = 1.0) -> np.ndarray:
    """Rates of two flows with steps W_I, W_D of windows, of which each unit is a rate `unit`."""
    up, down = (unit * step.subs(x, x / unit) for step in STEPS[name])
    steps = {"increase": up, "decrease": down, "initial": [4 * unit, 16 * unit]}
    return synchronized(capacity=20.3 * unit, intervals=400, **steps).rates


def generic_controls() -> Found:
    error = max(off(two_flows(name, 3e4), 3e4 * _by_hand(name)) for name in STEPS)
    return reproduced_if(error < 1e-12, names=", ".join(STEPS))


def _by_hand(name: str) -> np.ndarray:
    """(1) in the plainest way."""
    up, down = (lambdify(x, step) for step in STEPS[name])
    w, found = np.array([4.0, 16.0]), []
    for _ in range(400):
        found.append(w)
        w = w - down(w) if w.sum() > 20.3 else w + up(w)
    return np.array(found)


def aimd_converges() -> Found:
    y = positive("y")
    return proved(
        Eq((x + lam) - (y + lam), x - y),
        Eq((x - sigma * x) - (y - sigma * y), (1 - sigma) * (x - y)),
        proof(1 - sigma > 0, sigma < 1),
        1 - sigma < 1,
    )


def tcp_friendly_powers() -> Found:
    k, l, alpha, beta = BinomialFluid.params
    p = positive("p")
    response = law_proof(BinomialFluid, "response function")
    window = (alpha / beta / p) ** (1 / (k + l + 1))
    slope = proof(Eq(diff(log(window).expand(force=True), p) * p, -1 / (k + l + 1)), k + l > -1)
    needed = proof(Eq(k + l, 1), Eq(k + l + 1, 2))
    return proved(response, slope, needed)


# --- Section II-C: continuous feedback ------------------------------------------------------------


def continuous_feedback() -> Found:
    rate, (up, down) = Kelly.states[0], Kelly.params
    form = proof(Eq(FLOW, up - down * rate * pi))
    return proved(form, checks=not Kelly.jumps and FLOW.free_symbols == {rate, pi, up, down})


def aipd() -> Found:
    (w,), (up, down) = AIPD.states, AIPD.params
    return proved(
        Eq(unfold(AIPD.flow[w]), unfold(up / ROUND_TRIP)),
        Eq(w - RESET[w], down * pi * w),
    )


def _parking_lot(law: Source, link: Any) -> Network:
    """One flow over two links of 2 Mbit/s, and one over each."""
    net = Network()
    for name in "ab":
        net.link(name, link, capacity=2e6, delay=0.01, buffer=1e5 if link is DropTail else None)
    for name, route in (("long", "ab"), ("first", "a"), ("second", "b")):
        net.flow(name, law, route=list(route))
    return net


@cache
def _settled(law: Source, link: Any) -> np.ndarray:
    """Rates on the parking lot after 200 s, in capacities."""
    last = simulate(_parking_lot(law, link), 200, samples=2).rate.isel(time=-1)
    return np.asarray(last.values) / 2e6


def proportional_fairness() -> Found:
    rates = _settled(DelayedPrimal, PenaltyLink)
    w, sharp = DelayedPrimal.parameter("w") / 2e6, PenaltyLink.parameter("B")
    load = rates[0] + rates[1]
    # the optimum of sum w log x less the integrals of the prices: w/x is the sum of them
    wanted = [w / (2 * load**sharp), w / load**sharp]
    lost = equilibrium(_parking_lot(Kelly(alpha=1e3), DropTail)).rate.values / 2e6
    return reproduced_if(
        off(rates[:2], wanted) < 1e-6 and abs(lost[0] - 1 / 3) < 1e-3,
        share=rates[0] / load, load=load, lossy=lost,
    )  # fmt: skip


def potential_delay() -> Found:
    rates = _settled(AlphaFairPrimalDual(w=1e6, alpha=1e5), DualLink)
    least = 1 / (1 + np.sqrt(2))  # where the slope of 1/x + 2/(1 - x) is 0
    return reproduced_if(
        off(rates, [least, 1 - least, 1 - least]) < 1e-5, long=rates[0], short=rates[1]
    )


def nonzero_loss() -> Found:
    rate, (up, down) = Kelly.states[0], Kelly.params
    top = positive("top")
    rest = law_proof(Kelly, "rest point of (7)")
    other = (FLOW - up * rate / top).subs({pi: 0, rate: top})  # of alpha (1 - r/top) - beta r p
    return differs_if(rest and proof(up / (down * rate) > 0) and proof(Eq(other, 0)))


@cache
def beside_aimd(alpha: float) -> tuple[float, float]:
    """Mean rates of Kelly's controller with that alpha and of AIMD on 10 Mbit/s, 200 to 400 s."""
    net = dumbbell([Kelly(alpha=alpha), AIMD], {"capacity": 10e6, "buffer": 600e3}, rtt=0.05)
    late = simulate(net, 400, samples=4001).rate.isel(time=slice(2000, None))
    one, other = late.mean("time").values
    return float(one), float(other)


def too_aggressive() -> Found:
    usual, gentle = beside_aimd(1e6), beside_aimd(1e4)
    return refuted_if(gentle[0] < gentle[1], usual=usual, gentle=gentle)


def stable_under_delays() -> Found:
    net = dumbbell([DelayedPrimal], {"law": PenaltyLink, "capacity": 1e6}, rtt=0.2)
    bound: Any = stability_boundary(net, "kappa", bounds=(0.01, 100))
    price, sharp = equilibrium(net).price.item(), PenaltyLink.parameter("B")
    # x' = -kappa (p + x p'(x)) x(t - R), with x p' = B p
    limit = np.pi / (2 * 0.2 * (1 + sharp) * price)
    w = DelayedPrimal.parameter("w")
    return differs_if(abs(bound.value / limit - 1) < 1e-9, found=bound.value, w=w)


# --- Section III ----------------------------------------------------------------------------------


def monotone_steps() -> Found:
    fair = {name: two_flows(name).min(axis=1) / two_flows(name).max(axis=1) for name in STEPS}
    proofs = {name: binomial.monotonic_convergence(*steps) for name, steps in STEPS.items()}
    agree = all(
        bool(proofs[name]) is not bool(np.any(np.diff(f) < -1e-12)) and f[-1] > 0.99
        for name, f in fair.items()
    )
    fails = ", ".join(v.label for v in proofs["IIAD"] if not v)
    last = named("{}", {m: f[-1] for m, f in fair.items()})
    return proved(*cycles.fairer(), last, checks=agree, fails=fails)


def max_min_fairness() -> Found:
    one, other, low, high = positive("x_i x_j low high")
    orbit = synchronized(0, 1, 1.0, [0.5, 0.25, 0.1], 100.0).orbit
    pairs = min(a / b for row in orbit.rates for a in row for b in row if a is not b)
    return proved(
        proof(one / other >= low / high, one >= low, other <= high),
        checks=abs(orbit.fairness - pairs) < 1e-12,
    )


# --- Sections V to VII ----------------------------------------------------------------------------


def actual_overshoot() -> Found:
    """Of AIMD with lambda = 1 on links of 300 capacities, over the largest, which is lambda."""
    over: list[float] = []
    for capacity in 100 + np.sqrt(2) * np.arange(1, 301):
        rates = synchronized(0, 1, 1.0, 0.5, capacity).orbit.rates[:, 0]
        over += list(rates[rates > capacity] - capacity)
    parts = np.array(over)
    tenths = np.histogram(parts, 10, (0, 1))[0] / len(parts)
    return reproduced_if(
        parts.min() > 0 and parts.max() < 1 and tenths.min() > 0,
        least=parts.min(), most=parts.max(), mean=parts.mean(), tenths=sorted(tenths),
    )  # fmt: skip


def bandwidth_per_user() -> Found:
    more = positive("s")
    return proved(Eq(P.subs({C: more * C, n: more * n}, simultaneous=True), P))


SHARED = (2, 4, 10, 20, 30, 50)


@cache
def beside_iscc(alpha: float) -> dict[int, float]:
    """Mean rate of AIMD(alpha, 1/2) over that of ISCC(-1.5, 2), of as many flows each on a T1."""
    (up, down), (_, _, rise, fall) = (
        binomial.window_to_rate(alpha, 0.5, 0, 1, UNIT, 1.0), TABLE["ISCC(-1.5, 2)"]
    )  # fmt: skip
    found = {}
    for flows in SHARED:
        run = synchronized(
            [0, -1.5], [1, 2], [up, rise], [down, fall], T1, n=flows // 2, intervals=200_000
        )
        one, other = run.rates[-100_000:].mean(axis=0)
        found[flows] = one / other
    return found


def yields_to_aimd() -> Found:
    gentle, tcp = beside_iscc(0.19), beside_iscc(1.0)
    return differs_if(
        gentle[20] < 1 < gentle[30] and tcp[2] > 1,
        named("n = {}", gentle), gentle=gentle, tcp=tcp,
    )  # fmt: skip


S_50 = dict(zip(PRINTED, (156.9, 105.8, 86.3, 77.8, 17.4, 4.1), strict=True))


def growth_column() -> Found:
    inside = {}
    for name, (p_2, p_50) in PRINTED.items():
        ends = (p_50 - 0.05) / (p_2 + 0.005), (p_50 + 0.05) / (p_2 - 0.005)
        inside[name] = ends[0] <= S_50[name] <= ends[1]
    return reproduced_if(all(inside.values()), ratios={k: b / a for k, (a, b) in PRINTED.items()})


def powers_column() -> Found:
    fits = {name: _power(table_losses(name)) for name in TABLE}
    return needs_packets(fits=fits, same="the same" if falling(fits.values()) else "another")


def _power(losses: dict[int, float]) -> float:
    """The least-squares exponent of losses by number of flows."""
    return float(np.polyfit(np.log([*losses]), np.log([*losses.values()]), 1)[0])


def efficiency_column() -> Found:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FluidccWarning)  # a tie is a dip
        at_once, late = (
            {m: synchronized(*TABLE[m], T1, n=2, delay=k, floor=BASE).orbit.efficiency
             for m in TABLE}
            for k in (0, LATE)
        )  # fmt: skip
    return needs_packets(at_once=at_once, late=late)


RED = AdaptiveREDDrop(min_th=0.01, max_th=0.03)


def early_drops() -> Found:
    schemes, flows = ("IIAD(0.10, 1/2)", "AIMD(0.19, 1/2)", "ISCC(-1.5, 2)"), (4, 10, 30)
    full, early = (
        np.array([[on_t1(m, k, link, single=True) for k in flows] for m in schemes])
        for link in (None, RED)
    )  # of schemes, numbers of flows: loss and utilisation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FluidccWarning)  # what the reason says
        misjudged = on_t1(schemes[1], 10, RED)
    before, after = (np.argsort(runs[..., 0], axis=None) for runs in (full, early))
    same = np.array_equal(before, after)
    return not_given(
        Kept="With it" if same else "Without it, not with it,",
        loss=full[1, :, 0],
        early=early[1, :, 0],
        most=off(early[..., 0], full[..., 0]),
        less=np.abs(full - early)[..., 1].max(),
        misjudged=misjudged,
        on_full=on_t1(schemes[1], 10),
    )


def rates_against_windows() -> Found:
    rates, windows = (
        np.array([on_t1(name, flows)[0] for flows in (2, 5, 10)])
        for name in ("AIMD(0.19, 1/2)", "windows")
    )
    return needs_packets(
        rates=rates, windows=windows, up=rates[1:] / rates[0], up_windows=windows[1:] / windows[0]
    )
