"""Sections II to IV of the paper on FAST's persistent congestion: equations (1) to (9)."""

from __future__ import annotations

from sympy import Eq, Symbol, limit, oo, sqrt, symbols

from fluidcc.formulas import fast
from fluidcc.formulas._formula import Formula
from fluidcc.papers.fast.common import ALPHA, PACKET, C
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import named
from fluidcc.sources import FAST, Vegas
from fluidcc.sources._windows import delta, w
from fluidcc.symbols import RTT, unfold

n, capacity, alpha = fast.equilibrium_rates.arguments
X0, XF = (fast.equilibrium_rates.form[name] for name in ("newcomer", "others"))
B0 = fast.newcomer_backlog.form
B = fast.unfairness.form
THRESHOLD = fast.rate_reduction_threshold.form
theta, t_eps, delta_r = fast.estimate_flows.arguments
gamma, tau = symbols("gamma tau", positive=True)
_CHANGE = fast.rtt_change.form.subs({s: X0 for s in fast.rtt_change.arguments if s.name == "x0"})


def _symbol(formula: Formula, name: str) -> Symbol:
    return next(s for s in formula.arguments if s.name == name)


def dynamics(claim: Claim) -> Outcome:
    q_over_u = delta * (w / RTT) / alpha
    return claim.proved(
        Eq(unfold(FAST.flow[w]), unfold(gamma * alpha / tau * (1 - q_over_u))),
        Eq(unfold(Vegas.flow[w]), unfold((1 - q_over_u) / RTT)),
    )


def rest(claim: Claim) -> Outcome:
    resting = unfold(alpha * RTT / delta)  # the window of x = w/r = alpha/q
    return claim.proved(
        *(proof(Eq(unfold(law.flow[w]).subs(w, resting), 0)) for law in (FAST, Vegas))
    )


def met_queue(claim: Claim) -> Outcome:
    return claim.proved(proof(Eq(alpha / (n * alpha / capacity), capacity / n), where=[n > 0]))


def newcomer_rate(claim: Claim) -> Outcome:
    return claim.proved(fast.equilibrium_rates.claims["(3)"])


def old_rate(claim: Claim) -> Outcome:
    return claim.proved(fast.equilibrium_rates.claims["(4)"])


def backlog(claim: Claim) -> Outcome:
    b = symbols("b", positive=True)
    filled = alpha * capacity / b + n * alpha * capacity / (b + n * alpha) - capacity
    return claim.proved(Eq(X0 + n * XF, capacity), filled.diff(b) < 0)


def unfairness_order(claim: Claim) -> Outcome:
    return claim.proved(
        fast.unfairness.claims["ratio of (3) to (4)"],
        Eq(limit(B / sqrt(n), n, oo), 1),
        B.diff(n) > 0,
    )


def drains_in_time(claim: Claim) -> Outcome:
    return claim.proved(
        Eq(fast.drain_time.form, (B0 + n * alpha) / (capacity - n * XF)), Eq(capacity - n * XF, X0)
    )


def threshold(claim: Claim) -> Outcome:
    d = symbols("d", positive=True)
    round_trip = d + (B0 + n * alpha) / capacity
    return claim.proved(
        fast.rate_reduction_threshold.claims["(6) at the threshold"],
        Eq(round_trip - fast.drain_time.form, d - THRESHOLD),
    )


def threshold_order(claim: Claim) -> Outcome:
    return claim.proved(Eq(limit(THRESHOLD / sqrt(n) ** 3, n, oo), alpha / capacity))


def pause_length(claim: Claim) -> Outcome:
    needed = fast.drain_time([1, 8, 64], C, ALPHA)
    return claim.proved(
        Eq(limit(fast.drain_time.form / sqrt(n) ** 3, n, oo), alpha / capacity),
        values=named("n = {}", (1, 8, 64), needed),
    )


def decoded(claim: Claim) -> Outcome:
    at_ours = float(fast.rate_reduction_threshold(8, C, ALPHA))
    low, needed, high = (
        8 * float(fast.newcomer_backlog(8, ALPHA)) / t for t in (0.1085, 0.108, 0.1075)
    )
    return claim.not_given(
        {"threshold": at_ours, "C": needed, "packet": PACKET}, low=low, high=high, c=C
    )


def settings(claim: Claim) -> Outcome:
    taken = {name: FAST.parameter(name) for name in ("gamma", "tau", "alpha")}
    return claim.not_given(taken)


def probe(claim: Claim) -> Outcome:
    label = "(8), with the rates of all adding up to C"
    return claim.proved(fast.rtt_change.claims[label])


def flows(claim: Claim) -> Outcome:
    return claim.proved(fast.estimate_flows.claims["(9) inverts (8)"])


def capacity_estimate(claim: Claim) -> Outcome:
    return claim.proved(*fast.estimate_capacity.claims.values())


def corrected(claim: Claim) -> Outcome:
    d0 = symbols("d_0", positive=True)
    form = fast.corrected_delay.form.subs(
        _symbol(fast.corrected_delay, "d_hat"), d0 + n * alpha / capacity
    )
    form = form.subs(delta_r, _CHANGE).subs(_symbol(fast.corrected_delay, "x0"), X0)
    return claim.proved(Eq(form, d0))


def room(claim: Claim) -> Outcome:
    round_trip = 0.1 + fast.newcomer_backlog(8, ALPHA) / C + 8 * ALPHA / C
    rate = fast.equilibrium_rates(8, C, ALPHA).newcomer
    needed = float(fast.probe_backlog(-0.5, round_trip, rate))
    return claim.reproduced_if(needed > 1, {"packets": needed})
