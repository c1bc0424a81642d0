"""Section III of the LDCC paper: the law, its equilibrium and its discrete form, (15) to (25)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Eq, Function, Symbol, diff, lambdify, limit, log, oo, symbols

from fluidcc.base.errors import NoEquilibrium
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas.ldcc import discrete_update
from fluidcc.laws import Source
from fluidcc.metrics import jain
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import (
    FAIR_DELAYS,
    W_OVER_BETA,
    T,
    alone,
    at_time,
    beta,
    eta,
    four_flows,
    near,
    w,
    with_law,
    x,
)
from fluidcc.papers.model import (
    Found,
    differs_if,
    law_proof,
    not_given,
    proof,
    proved,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import falling, ms, named, off
from fluidcc.proofs.prove import Verdict
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC
from fluidcc.sources.sampled import merged
from fluidcc.symbols import RTT, Let, e, e_b, edot, nonnegative, pi, positive, unfold

if TYPE_CHECKING:
    import xarray as xr

E_HAT = LDCC.claims["(19)"].relation.rhs
"""The one-way delay at equilibrium by (19), as the law claims it."""
_E_HAT = lambdify((x, e_b, *LDCC.params), E_HAT, "numpy")
(FLOW,) = LDCC.flow.values()
GAIN, PENALTY = (next(v for v in FLOW.atoms(Let) if v.name == name) for name in ("k", "v"))
V = unfold(PENALTY)  # (17)
ABOVE = beta * (e - T) / (e + e_b)  # v where e > T
U = w * log(x)
_p, _q, _d = positive("p q d")


def delay_by_19(rate: Any, back: Any) -> Any:
    """(19) at a rate [bit/s] and a return delay [s], with the parameters of Section V [s]."""
    return _E_HAT(rate, back, *LDCC.params.values())


def _with_penalty(penalty: Let) -> Source:
    """Return LDCC with another penalty."""
    return replace(LDCC, claims={}, flow={x: FLOW.xreplace({PENALTY: penalty})})


def rate_equation() -> Found:
    return proved(
        proof(Eq(FLOW, GAIN * x * (w / x - beta * (e - T) / RTT - edot - pi)), e > T),
        proof(Eq(FLOW, GAIN * x * (w / x - edot - pi)), e <= T),
        unfold(GAIN) * limit(x * (diff(U, x) - V - edot - pi), x, 0, "+") > 0,
    )


def derivative_term() -> Found:
    flow = unfold(FLOW)
    still = flow.subs(edot, 0)
    return proved(Eq(flow, still + edot * flow.diff(edot).subs(edot, 0)))


def utility() -> Found:
    return proved(diff(U, x) > 0, diff(U, x, 2) < 0, checks=LDCC.utility == U)


def penalty() -> Found:
    return proved(proof(Eq(V, 0), e <= T), proof(Eq(V, ABOVE), e >= T), V >= 0)


def penalty_shape() -> Found:
    slope = diff(ABOVE, e)
    return proved(Eq(slope, beta * (T + e_b) / (e + e_b) ** 2), slope > 0, diff(ABOVE, e, 2) < 0)


def saturation() -> Found:
    return proved(beta > V, checks=limit(ABOVE, e, oo) == beta)


def penalty_curves() -> Found:
    delays, grid = np.array([0.025, 0.05, 0.1]), np.array([0.15, 0.3, 1.0, 10.0])
    curves = lambdify((e, e_b, T, beta), V, "numpy")(grid, delays[:, None], 0.1, 0.1)
    lower = proof(ABOVE.subs(e_b, _p) - ABOVE.subs(e_b, _p + _d) > 0, e > T)
    assert lower
    return not_given(
        named("{1}, p = {0}", product(map(ms, delays), map(ms, grid)), curves.ravel()),
        shown=curves[:, 1],
    )


def _any_utility() -> Verdict:
    """Whether a user with any utility rests where (18) holds with its U'."""
    slope = positive("U'")
    return proof(Eq(slope - ABOVE, 0), Eq(e, RTT.definition * slope / beta + T))


def equilibrium_delay() -> Found:
    return proved(law_proof(LDCC, "(18)"), _any_utility())


def other_utilities() -> Found:
    a = positive("a")
    U_fair = w * x ** (1 - a) * (5 * w) ** (a - 1) / (1 - a)
    fair = LDCC.with_utility(U_fair, params={a: 2}, units={a: "1"})
    eq = equilibrium(alone(LDCC, fair))
    rate = eq.rate.values
    slopes = np.array([20e3 / rate[0], 20e3 / rate[1] ** 2 * 100e3])
    error = np.max(np.abs(eq.rtt.values * slopes / 0.1 + 0.1 - eq.one_way_delay.values))
    return proved(_any_utility(), error=error, rate=rate / 1e6, checks=error < 1e-9)


def equilibrium_delay_solved() -> Found:
    late = at_time("ldcc_fig5", 259.0)
    formula, run = delay_by_19(late.rate[:3].mean().item(), 0.025), late.one_way_delay[0]
    return proved(
        law_proof(LDCC, "(19)"), formula=formula, run=run, checks=off(run, formula) <= 2e-3
    )


def larger_rate() -> Found:
    above = diff(E_HAT, x).subs(x, w / beta + _d)
    return proved(above < 0, checks=limit(E_HAT, x, oo) == T)


def rate_floor() -> Found:
    return proved(law_proof(LDCC, "(20)"), floor=W_OVER_BETA)


def below_floor() -> Found:
    shared = 6 * W_OVER_BETA * 0.75  # a fair share of three quarters of w/beta
    endless, finite = (four_flows((0.025,) * 6, shared, longest_queue=q) for q in (None, 0.5))
    none = False
    try:
        equilibrium(endless)
    except NoEquilibrium:
        none = True
    eq, late = equilibrium(finite), simulate(finite, 300.0, samples=2).isel(time=-1)
    return reproduced_if(
        none and eq.full[0] and near(late.rate, eq.rate, 1e-3),
        loss=eq.loss[0],
        rate=eq.rate[0],
        shared=shared,
    )


# --- III-A: what the penalty does for starvation and fairness


@cache
def burst() -> xr.Dataset:
    """A flow alone on 1 Mbit/s with an endless buffer, and a burst of 3 Mbit/s from 40 to 42 s;
    computed once."""
    flows = {
        "ldcc": {"law": LDCC, "initial": {"x": 1e6}},
        "burst": {"law": CBR(rate=3e6), "start": 40.0, "stop": 42.0},
    }
    return simulate(dumbbell(flows, {"capacity": 1e6, "delay": 0.025}), 60.0, samples=6001)


def penalty_cannot_starve() -> Found:
    held = FLOW.subs({edot: 0, pi: 0})
    shortfall = nonnegative("s")
    return proved(unfold(held).subs(w, beta * (x + shortfall)) > 0)  # w/beta = x + s >= x


def delay_cannot_starve() -> Found:
    rate = burst().rate.sel(flow="ldcc")
    low = rate.min()
    return refuted_if(
        low <= W_OVER_BETA and burst().lost.max() <= 0,
        before=rate.sel(time=39.0, method="nearest"),
        low=low,
    )


def similar_penalties() -> Found:
    p1, p2 = positive("p1 p2")
    ratio = limit(ABOVE.subs({e: p1 + _q, e_b: p1}) / ABOVE.subs({e: p2 + _q, e_b: p2}), _q, oo)
    delays = FAIR_DELAYS["25, 25, 25, 75 ms"]
    nets = [four_flows(delays, c, longest_queue=None) for c in (0.9e6, 6e6)]
    low, high = (rate.max() / rate.min() for rate in (equilibrium(net).rate for net in nets))
    spread = {"0.9": low, "6": high}
    return reproduced_if(ratio == 1 and low < high, spread, spread=named("{} Mbit/s", spread))


def normalisation() -> Found:
    excess = positive("h")  # h = p + q - T > 0: the delay of the short flow above T
    linear = (excess + _d) / excess  # x1/x2 where v = beta (e - T)/constant
    trip = excess + _p + T  # 2 p + q
    divided = linear * trip / (trip + 2 * _d)
    bare = _with_penalty(Let("v", PENALTY.definition * RTT / (2 * T)))
    long, short = (
        [jain(equilibrium(four_flows(p, 6e6, source=law)).rate) for law in (LDCC, bare)]
        for p in (FAIR_DELAYS["25, 40, 60, 75 ms"], (0.005, 0.008, 0.012, 0.015))
    )
    nearer = proof(linear - divided > 0)
    not_beyond = proof(linear * divided > 1)  # equality, by as much
    return differs_if(
        nearer and not_beyond and falling(long) and not falling(short), long=long, short=short
    )


def only_losses() -> Found:
    eq = equilibrium(scenarios["ldcc_fig6"].net)
    rate, delay = eq.rate[0], eq.one_way_delay[0]
    # With v = 0, w/x = pi and two flows: pi = (2 x + u - c)/(2 x + u), a quadratic in x.
    exact = max(np.roots([2.0, 0.5e6 - 3.5e6 - 2 * 20e3, -20e3 * 0.5e6]))
    return reproduced_if(
        delay < 0.1 and off(rate, exact) < 1e-9,
        rate=rate,
        exact=exact,
        delay=delay,
        loss=eq.loss[0],
    )


# --- III-B: interarrival times and the discrete law, (21) to (25)

MERGED = merged.definition  # (x - x_recv)/x_recv with x_recv = x (1 - pi)/(1 + e')
LITERAL = Let("v", beta * (e - T) / RTT)  # (25) has no (.)^+

MergedLDCC = replace(LDCC, claims={}, flow={x: FLOW.xreplace({pi: MERGED - edot})})
"""(15) with the one signal that (25) measures in place of e' + pi."""
LiteralLDCC = replace(
    LDCC, claims={}, flow={x: FLOW.xreplace({PENALTY: LITERAL, pi: MERGED - edot})}
)
"""(15) with the bracket of (25) as printed: that signal, and a penalty that is negative below T."""


def receiving_rate() -> Found:
    # The n-th packet arrives when the cumulative arrivals reach n; between n - 1 and n their mean
    # rate is this.
    rate, before = positive("rho t0")
    n = symbols("n")
    arrived = before + n / rate
    return proved(Eq(1 / (arrived - arrived.subs(n, n - 1)), rate))


def receiving_rate_index() -> Found:
    n = Symbol("n", integer=True)
    sent, delay = Function("t_s", real=True), Function("e", real=True)
    rate, e0, e1, e2 = positive("x e0 e1 e2")
    interval = sent(n) + delay(n) - sent(n - 1) - delay(n - 1)
    measured = 1 / interval.subs(sent(n), sent(n - 1) + 1 / rate)
    by_definition = measured.subs({delay(n - 1): e0, delay(n): e1})
    printed = 1 / (1 / rate + e2 - e1)
    wrong = proof(Eq(by_definition, printed))
    right = proof(Eq(by_definition, 1 / (1 / rate + e1 - e0)))
    one, other = (f.subs({rate: 1, e0: 1, e1: 1, e2: 2}) for f in (by_definition, printed))
    return differs_if(
        right and wrong.status == "refuted" and one != other, defined=one, printed=other
    )


def derivative_from_rates() -> Found:
    # Fluid: data sent in d theta arrives in (1 + e') d theta, where e' is by the time of sending.
    change, slope = symbols("Delta s", real=True)
    by_packets, fluid = 1 / (1 / x + change), x / (1 + slope)
    return proved(Eq((x - by_packets) / by_packets, change * x), Eq((x - fluid) / fluid, slope))


def signal_of_losses() -> Found:
    received = x * (1 - pi)
    both = received / (1 + edot)
    return proved(
        proof(Eq((x - received) / received, pi / (1 - pi)), pi < 1),
        proof(Eq((x - both) / both, MERGED), pi < 1, edot > -1),
    )


def _losing_with(law: Source) -> tuple[Any, Any]:
    """Rate [bit/s] and loss ratio of the first flow of Fig. 6 with another law."""
    eq = equilibrium(with_law(scenarios["ldcc_fig6"].net, law), at=200.0)
    return eq.rate[0], eq.loss[0]


def loss_signal_approximation() -> Found:
    (rate, loss), (rate_merged, loss_merged) = _losing_with(LDCC), _losing_with(MergedLDCC)
    return proved(
        proof(Eq(pi / (1 - pi) - pi, pi**2 / (1 - pi)), pi < 1),
        rate_15=rate,
        rate_25=rate_merged,
        loss_15=loss,
        loss_25=loss_merged,
    )


def discrete_rule() -> Found:
    sampling, signal = positive("T_s"), Symbol("m", real=True)
    rule = discrete_update.arguments
    put = dict(zip(rule, (x, x / (1 + signal), e, unfold(RTT), sampling), strict=False))
    printed = discrete_update.form.subs(put, simultaneous=True)
    step = x + sampling * FLOW.subs(edot, 0).subs(pi, signal)
    slopes = [diff(MERGED, s).subs({edot: 0, pi: 0}) for s in (edot, pi)]
    return proved(proof(Eq(printed, unfold(step)), e >= T), checks=slopes == [1, 1])


def discrete_rule_below_threshold() -> Found:
    below = proof(V - ABOVE > 0, e < T)
    loss, literal = (_losing_with(law)[1] for law in (MergedLDCC, LiteralLDCC))
    return differs_if(below and literal > loss, loss=loss, literal=literal)


def gain_of_a_round_trip() -> Found:
    return proved(Eq(RTT * GAIN, eta), eta=0.4)
