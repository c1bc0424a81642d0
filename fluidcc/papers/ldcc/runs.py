"""Sections V-A and V-B of the LDCC paper: settings, Figs. 5 to 8, 10 and 11, and fairness, (44)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
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
    run,
    w,
)
from fluidcc.papers.ldcc.law import delay_by_19
from fluidcc.papers.model import (
    Found,
    compared,
    differs_if,
    needs_packets,
    not_given,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import agrees, ms, named, off
from fluidcc.sources import LDCC
from fluidcc.symbols import positive


def settings() -> Found:
    printed = {"w": 20e3, "beta": 0.1, "T": 0.1, "eta": 1 / 2.5}
    laws = [flow.law for flow in scenarios["ldcc_fig5"].net.flows.values()]
    own = [LDCC, *(law for law in laws if law.name == "LDCC")]
    taken = [{name: law.parameter(name) for name in printed} for law in own]
    return reproduced_if(all(one == printed for one in taken), taken[0])


def _longest_queue(name: str) -> float:
    """The buffer of the bottleneck of a ready scenario [s]."""
    link = scenarios[name].net.links["bottleneck"]
    return link.buffer / link.capacity


def buffer_130() -> Found:
    q = _longest_queue("ldcc_fig5")
    return compared([q], q_max=q)


def buffer_25() -> Found:
    queue = _longest_queue("ldcc_fig6")
    delay = scenarios["ldcc_fig6"].net.links["bottleneck"].delay + queue
    return compared([delay], e_max=delay, queue=queue)


def packets() -> Found:
    return needs_packets()


def initial_rates() -> Found:
    return not_given(x0=5 * LDCC.parameter("w"))


def _no_loss(name: str) -> Found:
    """Nothing is lost, and the longest queue beside the shortest buffer."""
    r, lost = run(name), run(name).lost.max()
    room = min(link.buffer / link.capacity for link in scenarios[name].net.links.values())
    q = r.queueing_delay.max()
    return reproduced_if(lost == 0 and q < room, q=q, lost=lost, room=room)


def fig5_no_loss() -> Found:
    return _no_loss("ldcc_fig5")


def fig5_fair() -> Found:
    rates = at_time("ldcc_fig5", 259.0).rate.values[:3]
    three, two = jain(rates), jain(at_time("ldcc_fig5", 99.0).rate.values[:2])
    exact = equilibrium_of("ldcc_fig5").rate.values[:3]
    return reproduced_if(
        min(three, two) > 0.999 and near(exact, exact[0], 1e-9),
        three=three,
        two=two,
        rate=exact[0],
        rates=rates,
    )


def fig5_values() -> Found:
    exact, late = (
        np.array([s.one_way_delay.values[0] for s in some])
        for some in (
            (equilibrium_of("ldcc_fig5", 50.0), equilibrium_of("ldcc_fig5")),
            (at_time("ldcc_fig5", 99.0), at_time("ldcc_fig5", 259.0)),
        )
    )
    by_hand = delay_by_19(3e6 / np.array([2, 3]), 0.025)
    error = off(late, by_hand)
    two, three = exact
    return reproduced_if(
        error < 1e-3 and near(exact, by_hand, 1e-9), two=two, three=three, error=error
    )


def fig5_settling() -> Found:
    rate = run("ldcc_fig5").rate.sel(flow="flow3", time=slice(0, 259))
    return not_given(
        seconds=settling_time(rate, 1e6, tolerance=0.05, start=100.0),
        mode=0.4 * 20e3 / 1e6 / (0.13125 + 0.025),
    )


def fig6_fair() -> Found:
    late, two = at_time("ldcc_fig6", 259.0), at_time("ldcc_fig6", 99.0).rate.values[:2]
    rates, loss, delay = late.rate.values[:3], late.loss[0], late.one_way_delay[0]
    # w/x = pi with three flows: 3 x^2 - (c - u + 3 w) x - w u = 0.
    exact = max(np.roots([3, -(3.5e6 - 0.5e6 + 3 * 20e3), -20e3 * 0.5e6]))
    error = off(rates, exact)
    return reproduced_if(
        min(jain(rates), jain(two)) > 0.9999 and error < 5e-3 and loss > 0 and delay < 0.1,
        two=two,
        error=error,
        loss=loss,
        exact=exact,
        rates=rates,
        delay=delay,
    )


def _shares(name: str) -> tuple[Any, float, dict[str, Any]]:
    """Rates at equilibrium of three flows, how far the run is off them, and what words need."""
    three, two = (equilibrium_of(name, at).rate.values[:n] for at, n in ((200.0, 3), (50.0, 2)))
    error = off(at_time(name, 259.0).rate.values[:3], three)
    rates = named("x{}", (1, 2, 3), three) | named("two_x{}", (1, 2), two)
    return three, error, {**rates, "error": error, "three": three, "two": two}


def fig10_no_loss() -> Found:
    return _no_loss("ldcc_fig10")


def fig10_long_flow() -> Found:
    rate = run("ldcc_fig10").rate
    t, (long, second, third) = rate.time.values, rate.values.T[:3]
    rising = (t >= 100) & (t < 260) & (long >= third)
    until = max(t[rising], default=100.0)
    three, error, values = _shares("ldcc_fig10")
    less = np.all((long < second)[t > 0]) and three[0] < three[2] and error < 5e-3
    bad = "reproduced" if less else "refuted"
    return differs_if(less and until > 100, values, otherwise=bad, wait=until - 100)


def fig10_delays() -> Found:
    eq = equilibrium_of("ldcc_fig10")
    rate, delay = eq.rate.values[:3], eq.one_way_delay.values[:3]
    error = off(delay, delay_by_19(rate, np.array([0.05, 0.025, 0.025])))
    return reproduced_if(error < 1e-9, named("e{}", (1, 2, 3), delay), delay=delay)


def fig11_long_flow() -> Found:
    three, error, values = _shares("ldcc_fig11")
    return reproduced_if(three[0] < min(three[1:]) and error < 5e-3, values)


def fig11_mixed() -> Found:
    eq = equilibrium_of("ldcc_fig11")
    delay, loss, rate = (a.values[:3] for a in (eq.one_way_delay, eq.loss, eq.rate))
    v = 0.1 * np.maximum(delay - 0.1, 0) / eq.rtt.values[:3]
    balance = np.max(np.abs(20e3 / rate - v - loss))
    return reproduced_if(
        loss[0] > 0 and delay[0] > 0.1 and delay[1] < 0.1 and balance < 1e-10,
        e1=delay[0],
        loss1=loss[0],
        v1=v[0],
        balance=balance,
        delay=delay,
    )


# --- Fairness between different propagation delays: (44), Figs. 7 and 8

CAPACITIES = tuple(float(c) for c in np.linspace(1e6, 6e6, 26))
"""Of Figs. 7 and 8 [bit/s]."""
WORST = "25, 25, 25, 75 ms"


@cache
def fair_rates(name: str) -> np.ndarray:
    """Equilibrium rates (capacity, flow) [bit/s] with the delays of that name, over `CAPACITIES`;
    computed once."""
    return np.array([equilibrium(four_flows(FAIR_DELAYS[name], c)).rate.values for c in CAPACITIES])


def jain_bounds() -> Found:
    # S = sum x, Q = sum x^2 of N rates, and a further rate x: N Q - S^2, the sum of the squared
    # differences of all pairs, gains those to x; S^2 - Q, twice the sum of their products, gains 2
    # x S. Both begin with 0 at N = 1.
    count, total, squares, rate = positive("N S Q x")
    differences = squares - 2 * rate * total + count * rate**2  # sum of (x_i - x)^2
    grown = (count + 1) * (squares + rate**2) - (total + rate) ** 2
    given = {"equal": [2.0] * 5, "one": [2.0] + [0.0] * 4, "mixed": [1.0, 2.0, 3.0]}
    values = {name: jain(rates) for name, rates in given.items()}
    return proved(
        Eq(grown, count * squares - total**2 + differences),  # >= 0, so J <= 1
        Eq((total + rate) ** 2 - (squares + rate**2), total**2 - squares + 2 * rate * total),
        Eq((count * rate) ** 2 / (count * (count * rate**2)), 1),
        Eq(rate**2 / (count * rate**2), 1 / count),
        values,
        checks=near(list(values.values()), [1, 1 / 5, 36 / 42], 1e-12),
    )


def propagation_vectors() -> Found:
    worst = {name: np.min(fair_rates(name)[-1]) / (CAPACITIES[-1] / 4) for name in THREEFOLD}
    return not_given(worst, worst=worst.values(), delays="; ".join(FAIR_DELAYS))


def fig7_discrepancy() -> Found:
    curves = {name: jain(fair_rates(name)) for name in list(FAIR_DELAYS)[:3]}
    below = np.diff(list(curves.values()), axis=0) <= 1e-9
    return reproduced_if(np.all(below), {name: curve[-1] for name, curve in curves.items()})


def _with_worst(capacity: float) -> Any:
    """Equilibrium rates with the delays `WORST` [bit/s]."""
    return equilibrium(four_flows(FAIR_DELAYS[WORST], capacity)).rate.values


def fig7_capacity() -> Found:
    p, q = positive("p q")
    rate = w * (2 * p + q) / (beta * (p + q - T))  # (18) with e = p + q and e_b = p
    exact = proof(Eq(rate.subs(q, 2 * T), 2 * w / beta))
    slope = proof(Eq(diff(rate, p), w * (q - 2 * T) / (beta * (p + q - T) ** 2)))
    index = {f"{c:g}": jain(_with_worst(1e6 * c)) for c in (1, 1.25, 1.6, 3, 6)}
    rates = _with_worst(1.25e6)
    return differs_if(
        exact and slope and index["1.6"] == max(index.values()) and rates[3] > rates[0],
        index,
        values=index,
        worst=WORST,
        floor=2 * W_OVER_BETA,
        rates=rates,
    )


def lowest_capacity() -> Found:
    endless = [four_flows(p, 1e6, longest_queue=None) for p in FAIR_DELAYS.values()]
    need = [equilibrium(net).queueing_delay.values[0] for net in endless]
    # By (18), with the queue at 0.5 s, the flows take sum (w/beta)(2 p + q)/(p + q - T): less
    # capacity fills it.
    least = [sum(W_OVER_BETA * (2 * v + 0.5) / (v + 0.4) for v in p) for p in FAIR_DELAYS.values()]
    return differs_if(
        min(need) > 0.5,
        low=min(need),
        high=max(need),
        loss=equilibrium(four_flows(FAIR_DELAYS[WORST], 1e6)).loss[0],
        least=min(least),
        worst=WORST,
        most=max(least),
    )


def fig8_worst() -> Found:
    share, others = np.array(CAPACITIES)[:, None] / 4, {}
    worst = {name: np.min(fair_rates(name) / share) for name in THREEFOLD}
    for shortest in (0.01, 0.04, 0.05):
        delays = tuple(p / 0.025 * shortest for p in FAIR_DELAYS[THREEFOLD[0]])
        rates = equilibrium(four_flows(delays, CAPACITIES[-1])).rate.values
        others[ms(shortest)] = rates.min() / (CAPACITIES[-1] / 4)
    half, far = (all(agrees("about 0.5", v) for v in at.values()) for at in (worst, others))
    bad = "reproduced" if half else "refuted"
    return differs_if(half and not far, worst, others=others, otherwise=bad)


def fig8_extremes() -> Found:
    rates = fair_rates("25, 40, 60, 75 ms")
    low, high = rates.min(axis=1), rates.max(axis=1)
    pick = {f"{c:g}": CAPACITIES.index(1e6 * c) for c in (1, 2, 4, 6)}
    rates_of = [fair_rates(name) for name in FAIR_DELAYS]
    unequal = np.array([r[-1] for r in rates_of[1:]])
    return reproduced_if(
        np.min(rates_of) > W_OVER_BETA and np.all(jain(unequal) < 1 - 1e-9),
        {f"low{c}": low[i] for c, i in pick.items()},
        {f"high{c}": high[i] for c, i in pick.items()},
        least=unequal.min(),
        shown=", ".join(
            f"{low[i] / 1e3:.0f} to {high[i] / 1e3:.0f} kbit/s at {c} Mbit/s"
            for c, i in pick.items()
        ),
    )


def fig8_reached() -> Found:
    r = run("ldcc_fig7")
    error = off(r.rate.values[-1], equilibrium(scenarios["ldcc_fig7"].net).rate.values)
    return reproduced_if(error < 1e-3, error=error, otherwise="refuted", until=r.time[-1])
