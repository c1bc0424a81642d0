"""Sections II to IV of the paper on FAST's persistent congestion: equations (1) to (9)."""

from __future__ import annotations

from sympy import Eq, limit, oo, solve, sqrt

from fluidcc.formulas import fast
from fluidcc.papers.model import Found, not_given, proof, proved
from fluidcc.papers.printed import named
from fluidcc.papers.zoo.fast import ALPHA, PACKET, C
from fluidcc.sources import FAST, Vegas
from fluidcc.sources.windows import delta, w
from fluidcc.symbols import RTT, positive, unfold

n, capacity, alpha = fast.equilibrium_rates.arguments
X0, XF = (fast.equilibrium_rates.form[name] for name in ("newcomer", "others"))
B0 = fast.newcomer_backlog.form
B = fast.unfairness.form
THRESHOLD = fast.rate_reduction_threshold.form
theta, t_eps, delta_r = fast.estimate_flows.arguments
gamma, tau, b, d, x0, d_hat, d0 = positive("gamma tau b d x0 d_hat d_0")
_CHANGE = fast.rtt_change.form.subs(x0, X0)


def dynamics() -> Found:
    q_over_u = delta * (w / RTT) / alpha
    return proved(
        Eq(unfold(FAST.flow[w]), unfold(gamma * alpha / tau * (1 - q_over_u))),
        Eq(unfold(Vegas.flow[w]), unfold((1 - q_over_u) / RTT)),
    )


def rest() -> Found:
    resting = unfold(alpha * RTT / delta)  # the window of x = w/r = alpha/q
    return proved(*(Eq(unfold(law.flow[w]).subs(w, resting), 0) for law in (FAST, Vegas)))


def met_queue() -> Found:
    return proved(proof(Eq(alpha / (n * alpha / capacity), capacity / n), n > 0))


def newcomer_rate() -> Found:
    return proved(fast.equilibrium_rates.claims["(3)"])


def old_rate() -> Found:
    return proved(fast.equilibrium_rates.claims["(4)"])


def backlog() -> Found:
    filled = alpha * capacity / b + n * alpha * capacity / (b + n * alpha) - capacity
    return proved(Eq(X0 + n * XF, capacity), filled.diff(b) < 0)


def unfairness_order() -> Found:
    return proved(
        fast.unfairness.claims["ratio of (3) to (4)"],
        Eq(limit(B / sqrt(n), n, oo), 1),
        B.diff(n) > 0,
    )


def drains_in_time() -> Found:
    return proved(
        Eq(fast.drain_time.form, (B0 + n * alpha) / (capacity - n * XF)), Eq(capacity - n * XF, X0)
    )


def threshold() -> Found:
    round_trip = d + (B0 + n * alpha) / capacity
    return proved(
        fast.rate_reduction_threshold.claims["(6) at the threshold"],
        Eq(round_trip - fast.drain_time.form, d - THRESHOLD),
    )


def threshold_order() -> Found:
    return proved(Eq(limit(THRESHOLD / sqrt(n) ** 3, n, oo), alpha / capacity))


def pause_length() -> Found:
    needed = fast.drain_time([1, 8, 64], C, ALPHA)
    return proved(
        *(
            Eq(limit(form / sqrt(n) ** 3, n, oo), alpha / capacity)
            for form in (THRESHOLD, fast.drain_time.form)
        ),
        named("n = {}", (1, 8, 64), needed),
    )


def decoded() -> Found:
    queue = 8 * fast.newcomer_backlog(8, ALPHA)
    low, needed, high = (queue / t for t in (0.1085, 0.108, 0.1075))
    threshold = fast.rate_reduction_threshold(8, C, ALPHA)
    return not_given(threshold=threshold, C=needed, packet=PACKET, low=low, high=high, c=C)


def settings() -> Found:
    return not_given({name: FAST.parameter(name) for name in ("gamma", "tau", "alpha")})


def probe() -> Found:
    label = "(8), with the rates of all adding up to C"
    return proved(fast.rtt_change.claims[label])


def flows() -> Found:
    return proved(fast.estimate_flows.claims["(9) inverts (8)"])


def capacity_estimate() -> Found:
    return proved(*fast.estimate_capacity.claims.values())


def corrected() -> Found:
    met = {d_hat: d0 + n * alpha / capacity, delta_r: _CHANGE}
    return proved(Eq(fast.corrected_delay.form.subs(met).subs(x0, X0), d0))


def rest_of_the_queue() -> Found:
    met, own = n * alpha / capacity, positive("delta")  # the queue met, and what is seen beyond it
    # Windows add up to the same while the queue is at rest: the sum of q_i x_i is (n + 1) alpha.
    (queue,) = solve(own * x0 + (own + met) * (capacity - x0) - (n + 1) * alpha, own)
    correction, paper = capacity / x0 * own - alpha / x0, (capacity / x0 - 1) * alpha / x0
    return proved(Eq(correction.subs(own, queue), met), Eq(correction.subs(own, alpha / x0), paper))
