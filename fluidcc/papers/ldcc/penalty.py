"""Section III-A of the LDCC paper: what its penalty does for starvation and fairness."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sympy import Symbol, limit, oo

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.metrics import jain
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import (
    FAIR_DELAYS,
    W_OVER_BETA,
    T,
    beta,
    kbit,
    ms,
    percent,
    positive,
    w,
    x,
)
from fluidcc.papers.ldcc.law import ABOVE, FLOW
from fluidcc.papers.ldcc.networks import four_flows
from fluidcc.papers.model import DIFFERS, REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC
from fluidcc.symbols import RTT, Let, e, e_b, edot, pi, unfold

if TYPE_CHECKING:
    import xarray as xr


@lru_cache(maxsize=1)
def burst() -> xr.Dataset:
    """A flow alone on 1 Mbit/s with an endless buffer, and a burst of 3 Mbit/s from 40 to 42 s; computed once."""
    net = Network().link("l", DropTail, capacity=1e6, delay=0.025)
    net.flow("ldcc", LDCC, route=["l"], initial={"x": 1e6})
    net.flow("burst", CBR(rate=3e6), route=["l"], start=40.0, stop=42.0)
    return simulate(net, 60.0, samples=6001, progress=False)


@claim("ldcc", "III-A", "The penalty alone never lets the rate fall below w/beta.", "x >= w/beta")
def penalty_cannot_starve() -> Outcome:
    held = FLOW.subs({edot: 0, pi: 0})
    shortfall = Symbol("s", nonnegative=True)
    grows = proof(unfold(held).subs(w, beta * (x + shortfall)) > 0)  # w/beta = x + s >= x
    return from_proofs(grows, computed="without losses and with e' = 0, x' > 0 wherever x <= w/beta")


@claim(
    "ldcc",
    "III-A",
    "'The experienced delay can never force the sending rate to decrease to a value lower than w/beta.'",
    "x >= w/beta = 200 kbit/s",
)
def delay_cannot_starve() -> Outcome:
    r = burst()
    rate = r.rate.sel(flow="ldcc")
    before, low = float(rate.sel(time=39.0, method="nearest")), float(rate.min())
    if low > W_OVER_BETA or float(r.lost.max()) > 0:
        return Outcome(REPRODUCED, f"lowest rate {kbit(low)}", "", {"low": low})
    return Outcome(
        REFUTED,
        f"from {kbit(before)}, a burst of 3 c for 2 s on an endless buffer brings it to {kbit(low)} with no loss",
        "The argument by (20) is about equilibria, and holds of v (see the row above). But e' is part of "
        "the delay's signal and is not bounded by beta: while queues grow, x is drawn to w/(v + e').",
        {"before": before, "low": low},
    )


@claim(
    "ldcc",
    "III-A",
    "For large delays (low capacity) flows of different propagation delay have similar penalties.",
    "similar rates",
)
def similar_penalties() -> Outcome:
    p1, p2, q = positive("p1", "p2", "q")
    ratio = limit(ABOVE.subs({e: p1 + q, e_b: p1}) / ABOVE.subs({e: p2 + q, e_b: p2}), q, oo)
    if ratio != 1:
        return Outcome(REFUTED, f"the ratio tends to {ratio}", "by SymPy's limit")
    rates = {
        c: equilibrium(four_flows(FAIR_DELAYS["25, 25, 25, 75 ms"], c, longest_queue=None)).rate.values
        for c in (0.9e6, 6e6)
    }
    spread = {f"{c / 1e6:g}": float(r.max() / r.min()) for c, r in rates.items()}
    nearer = spread["0.9"] < spread["6"]
    return Outcome(
        REPRODUCED if nearer else DIFFERS,
        "the ratio of two penalties tends to 1 (SymPy's limit); fastest over slowest of 25, 25, 25, 75 ms: "
        + ", ".join(f"{v:.4g} at {c} Mbit/s" for c, v in spread.items()),
        "With an endless buffer." if nearer else "The rates are no nearer at the low capacity.",
        spread,
    )


@claim(
    "ldcc",
    "III-A",
    "At one queue, dividing the penalty by RTT brings flows of different propagation delays nearer to each other.",
    "'motivated by rate fairness'",
)
def normalisation() -> Outcome:
    shorter, more, q = positive("p", "d", "q")
    excess = Symbol("h", positive=True)  # h = p + q - T > 0: the delay of the short flow above T
    linear = (excess + more) / excess  # x1/x2 where v = beta (e - T)/constant
    divided = linear * (2 * shorter + q) / (2 * (shorter + more) + q)
    shown = proof(linear - divided > 0)
    (v,) = (k for k in FLOW.atoms(Let) if k.name == "v")
    bare = replace(LDCC, claims={}, flow={x: FLOW.xreplace({v: Let("v", v.definition * RTT / (2 * T))})})
    index = {
        name: float(jain(equilibrium(four_flows(FAIR_DELAYS["25, 40, 60, 75 ms"], 6e6, source=law)).rate))
        for name, law in (("divided by RTT", LDCC), ("divided by 2 T", bare))
    }
    return from_proofs(
        shown,
        computed="at one queue the short flow's advantage is smaller by (2 p1 + q)/(2 p2 + q); 25, 40, 60, "
        "75 ms at 6 Mbit/s: Jain's index " + ", ".join(f"{v:.4g} {k}" for k, v in index.items()),
        values=index,
    )


@claim(
    "ldcc",
    "III-A",
    "If the longest delay is below T, the penalty is always zero and losses alone drive the flow.",
    "e_max < T",
)
def only_losses() -> Outcome:
    eq = equilibrium(scenarios["ldcc_fig6"].net)
    rate, delay, loss = (float(a.values[0]) for a in (eq.rate, eq.one_way_delay, eq.loss))
    # With v = 0, w/x = pi and two flows: pi = (2 x + u - c)/(2 x + u), a quadratic in x.
    a, b, c0 = 2.0, 0.5e6 - 3.5e6 - 2 * 20e3, -20e3 * 0.5e6
    exact = (-b + (b * b - 4 * a * c0) ** 0.5) / (2 * a)
    good = delay < 0.1 and abs(rate / exact - 1) < 1e-9
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"Fig. 6: e = {ms(delay)} < T, w/x = pi = {percent(loss, 4)}, two flows at {rate / 1e6:.4f} Mbit/s",
        "" if good else f"by hand {exact / 1e6:.4f} Mbit/s",
        {"rate": rate, "exact": exact, "delay": delay},
    )
