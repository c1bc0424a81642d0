"""Sections V-A and V-B of the LDCC paper: settings, Figs. 5 to 8, 10 and 11, and fairness, (44)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Eq, diff

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.metrics import jain, settling_time
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import (
    FAIR_DELAYS,
    THREEFOLD,
    W_OVER_BETA,
    T,
    at_time,
    beta,
    equilibrium_of,
    four_flows,
    near,
    positive,
    run,
    w,
)
from fluidcc.papers.ldcc.law import delay_by_19
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import named, off
from fluidcc.sources import LDCC


def settings(claim: Claim) -> Outcome:
    taken = {name: LDCC.parameter(name) for name in ("w", "beta", "T", "eta")}
    laws = [flow.law for flow in scenarios["ldcc_fig5"].net.flows.values()]
    same = taken == {"w": 20e3, "beta": 0.1, "T": 0.1, "eta": 1 / 2.5}
    return claim.reproduced_if(
        same and all(law.parameter("eta") == 0.4 for law in laws if law.name == "LDCC"), taken
    )


def buffer_130(claim: Claim) -> Outcome:
    link = scenarios["ldcc_fig5"].net.links["bottleneck"]
    q = link.buffer / link.capacity
    return claim.compared([q], {"q_max": q})


def buffer_25(claim: Claim) -> Outcome:
    link = scenarios["ldcc_fig6"].net.links["bottleneck"]
    delay = link.delay + link.buffer / link.capacity
    return claim.compared([delay], {"e_max": delay}, queue=link.buffer / link.capacity)


def packets(claim: Claim) -> Outcome:
    return claim.out_of_reach()


def initial_rates(claim: Claim) -> Outcome:
    rate = 5 * LDCC.parameter("w")
    return claim.not_given({"x0": rate})


def _no_loss(claim: Claim, name: str) -> Outcome:
    """Nothing is lost, and the longest queue beside the shortest buffer."""
    r, net = run(name), scenarios[name].net
    most, lost = float(r.queueing_delay.max()), float(r.lost.max())
    room = min(link.buffer / link.capacity for link in net.links.values())
    return claim.reproduced_if(lost == 0, {"q": most, "lost": lost}, room=room)


def fig5_no_loss(claim: Claim) -> Outcome:
    return _no_loss(claim, "ldcc_fig5")


def fig5_fair(claim: Claim) -> Outcome:
    rates = at_time("ldcc_fig5", 259.0).rate.values[:3]
    two = at_time("ldcc_fig5", 99.0).rate.values[:2]
    index = {"three": jain(rates), "two": jain(two)}
    exact = equilibrium_of("ldcc_fig5").rate.values[:3]
    return claim.reproduced_if(
        min(index.values()) > 0.999 and near(exact, exact[0], 1e-9),
        {**index, "rate": exact[0]},
        rates=rates,
    )


def fig5_values(claim: Claim) -> Outcome:
    eq = {n: equilibrium_of("ldcc_fig5", t) for n, t in ((2, 50.0), (3, 200.0))}
    late = {2: at_time("ldcc_fig5", 99.0), 3: at_time("ldcc_fig5", 259.0)}
    delay = {n: eq[n].one_way_delay.values[0] for n in eq}
    by_hand = {n: delay_by_19(3e6 / n, 0.025) for n in eq}
    error = max(abs(late[n].one_way_delay.values[0] / by_hand[n] - 1) for n in eq)
    return claim.reproduced_if(
        error < 1e-3 and near(list(delay.values()), list(by_hand.values()), 1e-9),
        {"two": delay[2], "three": delay[3], "error": error},
    )


def fig5_settling(claim: Claim) -> Outcome:
    r = run("ldcc_fig5").sel(time=slice(0, 259))
    rate = r.rate.sel(flow="flow3")
    seconds = float(np.asarray(settling_time(rate, 1e6, tolerance=0.05, start=100.0)))
    slow = 0.4 * 20e3 / 1e6 / (0.13125 + 0.025)
    return claim.not_given({"seconds": seconds, "mode": slow})


def fig6_fair(claim: Claim) -> Outcome:
    late = at_time("ldcc_fig6", 259.0)
    rates = late.rate.values[:3]
    loss, delay = (v.values[0] for v in (late.loss, late.one_way_delay))
    # w/x = pi with three flows: 3 x^2 - (c - u + 3 w) x - w u = 0.
    b = 3.5e6 - 0.5e6 + 3 * 20e3
    exact = (b + (b * b + 12 * 20e3 * 0.5e6) ** 0.5) / 6
    error = off(rates, exact)
    return claim.reproduced_if(
        jain(rates) > 0.9999 and error < 5e-3 and loss > 0 and delay < 0.1,
        {"error": error, "loss": loss, "exact": exact},
        rates=rates,
        delay=delay,
    )


def _shares(name: str) -> tuple[Any, Any, float, dict[str, float]]:
    """Rates at equilibrium of three flows and of two, how far the run is off them, and all."""
    three, two = (equilibrium_of(name, at).rate.values[:n] for at, n in ((200.0, 3), (50.0, 2)))
    error = off(at_time(name, 259.0).rate.values[:3], three)
    values = named("x{}", (1, 2, 3), three)
    values |= named("two_x{}", (1, 2), two)
    return three, two, error, values | {"error": error}


def fig10_no_loss(claim: Claim) -> Outcome:
    return _no_loss(claim, "ldcc_fig10")


def fig10_long_flow(claim: Claim) -> Outcome:
    r = run("ldcc_fig10")
    rate, t = r.rate.values, r.time.values
    late = (t > 5) & (t < 99) | (t > 130) & (t < 259) | (t > 290)
    third = (t > 130) & (t < 259)
    always = np.all(rate[late, 0] < rate[late, 1]) and np.all(rate[third, 0] < rate[third, 2])
    three, two, error, values = _shares("ldcc_fig10")
    return claim.reproduced_if(always and error < 5e-3, values, three=three, two=two)


def fig10_delays(claim: Claim) -> Outcome:
    eq = equilibrium_of("ldcc_fig10")
    rate, delay = eq.rate.values[:3], eq.one_way_delay.values[:3]
    by_hand = delay_by_19(rate, np.array([0.05, 0.025, 0.025]))
    error = off(delay, by_hand)
    return claim.reproduced_if(error < 1e-9, named("e{}", (1, 2, 3), delay), delay=delay)


def fig11_long_flow(claim: Claim) -> Outcome:
    three, two, error, values = _shares("ldcc_fig11")
    return claim.reproduced_if(
        three[0] < min(three[1:]) and error < 5e-3, values, three=three, two=two
    )


def fig11_mixed(claim: Claim) -> Outcome:
    eq = equilibrium_of("ldcc_fig11")
    delay, loss, rate = (a.values[:3] for a in (eq.one_way_delay, eq.loss, eq.rate))
    v = 0.1 * np.maximum(delay - 0.1, 0) / eq.rtt.values[:3]
    balance = np.max(np.abs(20e3 / rate - v - loss))
    return claim.reproduced_if(
        loss[0] > 0 and delay[0] > 0.1 and delay[1] < 0.1 and balance < 1e-10,
        {"e1": delay[0], "loss1": loss[0], "v1": v[0], "balance": balance},
        delay=delay,
    )


# --- Fairness between different propagation delays: (44), Figs. 7 and 8

CAPACITIES = tuple(float(c) for c in np.linspace(1e6, 6e6, 26))
"""Of Figs. 7 and 8 [bit/s]."""
WORST = "25, 25, 25, 75 ms"


@cache
def fair_rates(name: str) -> NDArray[np.float64]:
    """Equilibrium rates (capacity, flow) [bit/s] with the delays of that name, over `CAPACITIES`;
    computed once."""
    return np.array([equilibrium(four_flows(FAIR_DELAYS[name], c)).rate.values for c in CAPACITIES])


def jain_bounds(claim: Claim) -> Outcome:
    # S = sum x, Q = sum x^2 of N rates, and a further rate x: N Q - S^2, the sum of the squared
    # differences of all pairs, gains those to x; S^2 - Q, twice the sum of their products, gains 2
    # x S. Both begin with 0 at N = 1.
    count, total, squares, rate = positive("N", "S", "Q", "x")
    differences = squares - 2 * rate * total + count * rate**2  # sum of (x_i - x)^2
    grown = (count + 1) * (squares + rate**2) - (total + rate) ** 2
    above = Eq(grown, count * squares - total**2 + differences)  # >= 0, so J <= 1
    given = {"equal": [2.0] * 5, "one": [2.0] + [0.0] * 4, "mixed": [1.0, 2.0, 3.0]}
    values = {name: jain(rates) for name, rates in given.items()}
    return claim.proved(
        above,
        Eq((total + rate) ** 2 - (squares + rate**2), total**2 - squares + 2 * rate * total),
        Eq((count * rate) ** 2 / (count * (count * rate**2)), 1),
        Eq(rate**2 / (count * rate**2), 1 / count),
        values=values,
        checks=near(list(values.values()), [1, 1 / 5, 36 / 42], 1e-12),
    )


def propagation_vectors(claim: Claim) -> Outcome:
    worst = {name: np.min(fair_rates(name)[-1]) / (CAPACITIES[-1] / 4) for name in THREEFOLD}
    return claim.not_given(worst, worst=worst.values(), delays="; ".join(FAIR_DELAYS))


def fig7_discrepancy(claim: Claim) -> Outcome:
    names = list(FAIR_DELAYS)[:3]
    curves = np.array([jain(fair_rates(name)) for name in names])
    values = {name: c[-1] for name, c in zip(names, curves, strict=True)}
    return claim.reproduced_if(np.all(np.diff(curves, axis=0) <= 1e-9), values)


def fig7_capacity(claim: Claim) -> Outcome:
    p, q = positive("p", "q")
    rate = w * (2 * p + q) / (beta * (p + q - T))  # (18) with e = p + q and e_b = p
    exact = proof(Eq(rate.subs(q, 2 * T), 2 * w / beta))
    slope = proof(Eq(diff(rate, p), w * (q - 2 * T) / (beta * (p + q - T) ** 2)))
    index = {
        f"{c / 1e6:g}": jain(equilibrium(four_flows(FAIR_DELAYS[WORST], c)).rate)
        for c in (1e6, 1.25e6, 1.6e6, 3e6, 6e6)
    }
    rates = equilibrium(four_flows(FAIR_DELAYS[WORST], 1.25e6)).rate.values
    peak = index["1.6"] == max(index.values())
    return claim.differs_if(
        exact and slope and peak and rates[3] > rates[0],
        index,
        worst=WORST,
        floor=2 * W_OVER_BETA,
        rates=rates,
    )


def lowest_capacity(claim: Claim) -> Outcome:
    endless = [four_flows(p, 1e6, longest_queue=None) for p in FAIR_DELAYS.values()]
    need = [equilibrium(net).queueing_delay.values[0] for net in endless]
    # By (18), with the queue at 0.5 s, the flows take sum (w/beta)(2 p + q)/(p + q - T): less
    # capacity fills it.
    least = [sum(W_OVER_BETA * (2 * v + 0.5) / (v + 0.4) for v in p) for p in FAIR_DELAYS.values()]
    loss = equilibrium(four_flows(FAIR_DELAYS[WORST], 1e6)).loss.values[0]
    low, high = min(need), max(need)
    return claim.differs_if(
        low > 0.5,
        {"low": low, "high": high, "loss": loss, "least": min(least)},
        worst=WORST,
        most=max(least),
    )


def fig8_worst(claim: Claim) -> Outcome:
    share = np.array(CAPACITIES)[:, None] / 4
    worst = {name: np.min(fair_rates(name) / share) for name in THREEFOLD}
    return claim.compared([worst.values()], worst)


def fig8_extremes(claim: Claim) -> Outcome:
    rates = fair_rates("25, 40, 60, 75 ms")
    low, high = rates.min(axis=1), rates.max(axis=1)
    pick = [CAPACITIES.index(c) for c in (1e6, 2e6, 4e6, 6e6)]
    return claim.reproduced_if(
        np.all(low > W_OVER_BETA),
        {f"low{CAPACITIES[i] / 1e6:g}": low[i] for i in pick}
        | {f"high{CAPACITIES[i] / 1e6:g}": high[i] for i in pick},
        computed="lowest to highest for 25, 40, 60, 75 ms: "
        + ", ".join(
            f"{low[i] / 1e6:.3f} to {high[i] / 1e6:.3f} at {CAPACITIES[i] / 1e6:g} Mbit/s"
            for i in pick
        ),
    )


def fig8_reached(claim: Claim) -> Outcome:
    net = scenarios["ldcc_fig7"].net
    eq, end = equilibrium(net).rate.values, run("ldcc_fig7").rate.values[-1]
    error = off(end, eq)
    return claim.reproduced_if(
        error < 1e-3, {"error": error}, otherwise="refuted", until=run("ldcc_fig7").time.values[-1]
    )
