"""Sections II to IV of the paper on FAST's persistent congestion: equations (1) to (9)."""

from __future__ import annotations

from sympy import Eq, Symbol, limit, oo, sqrt, symbols

from fluidcc.formulas import fast
from fluidcc.formulas._formula import Formula
from fluidcc.laws.prove import Verdict
from fluidcc.papers.fast.common import ALPHA, PACKET, C, outcome
from fluidcc.papers.model import NOT_GIVEN, Outcome, claim, from_proofs, proof
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


def _own(formula: Formula, label: str) -> Verdict:
    """The proof of a claim that the formula itself states."""
    return proof(formula.claims[label])


def _symbol(formula: Formula, name: str) -> Symbol:
    return next(s for s in formula.arguments if s.name == name)


@claim("fast", "(1)", "w' = kappa (1 - q/u), u = alpha/x; kappa = gamma alpha/tau for FAST and 1/r "
       "for Vegas.", "(1)")  # fmt: skip
def dynamics() -> Outcome:
    q_over_u = delta * (w / RTT) / alpha
    return from_proofs(
        proof(Eq(unfold(FAST.flow[w]), unfold(gamma * alpha / tau * (1 - q_over_u)))),
        proof(Eq(unfold(Vegas.flow[w]), unfold((1 - q_over_u) / RTT))),
        computed="the windows of the library's FAST and Vegas, with q the round trip less the "
        "smallest seen",
    )


@claim("fast", "(2)", "FAST and Vegas rest at x = alpha/(r - d^).", "(2)")
def rest() -> Outcome:
    resting = unfold(alpha * RTT / delta)  # the window of x = w/r = alpha/q
    return from_proofs(
        *(proof(Eq(unfold(law.flow[w]).subs(w, resting), 0)) for law in (FAST, Vegas)),
        computed="w' = 0 there, for both; neither gamma nor tau enters",
    )


@claim("fast", "Section II", "n flows that know their delays have C/n each and alpha in the queue: "
       "the newcomer takes d0 + n alpha/C for its delay.", "d0 + n alpha/C")  # fmt: skip
def met_queue() -> Outcome:
    return from_proofs(
        proof(Eq(alpha / (n * alpha / capacity), capacity / n), where=[n > 0]),
        computed="alpha/q = C/n at q = n alpha/C",
    )


@claim("fast", "(3)", "The newcomer's rate is alpha C/b0.", "(3)")
def newcomer_rate() -> Outcome:
    return from_proofs(
        _own(fast.equilibrium_rates, "(3)"), computed="(2) with its own queueing delay b0/C"
    )


@claim("fast", "(4)", "An old flow's rate is alpha C/(b0 + n alpha).", "(4)")
def old_rate() -> Outcome:
    return from_proofs(
        _own(fast.equilibrium_rates, "(4)"), computed="(2) with the whole queueing delay"
    )


@claim("fast", "(5)", "b0 = alpha (1 + sqrt(1 + 4 n))/2.", "(5)")
def backlog() -> Outcome:
    b = symbols("b", positive=True)
    filled = alpha * capacity / b + n * alpha * capacity / (b + n * alpha) - capacity
    return from_proofs(
        proof(Eq(X0 + n * XF, capacity)),
        # the sum of rates falls with b, so this root is the only one
        proof(filled.diff(b) < 0),
        computed="the rates fill the link at this backlog and at no other",
    )


@claim("fast", "Section II", "The unfairness x0/xf grows as sqrt(n).", "O(sqrt n)")
def unfairness_order() -> Outcome:
    return from_proofs(
        _own(fast.unfairness, "ratio of (3) to (4)"),
        proof(Eq(limit(B / sqrt(n), n, oo), 1)),
        proof(B.diff(n) > 0),
        computed="x0/xf = (1 + sqrt(1 + 4 n))/2: it grows with n, and x0/(xf sqrt(n)) -> 1",
    )


@claim("fast", "(6)", "A pause empties the queue before the others react if B/(C - sum of x_f) < "
       "r.", "(6)")  # fmt: skip
def drains_in_time() -> Outcome:
    return from_proofs(
        proof(Eq(fast.drain_time.form, (B0 + n * alpha) / (capacity - n * XF))),
        proof(Eq(capacity - n * XF, X0)),
        computed="the queue falls at the newcomer's rate x0",
    )


@claim("fast", "(7)", "Substituting (4) and (5) in (6) gives d > n b0/C.", "(7)")
def threshold() -> Outcome:
    d = symbols("d", positive=True)
    round_trip = d + (B0 + n * alpha) / capacity
    return from_proofs(
        _own(fast.rate_reduction_threshold, "(6) at the threshold"),
        proof(Eq(round_trip - fast.drain_time.form, d - THRESHOLD)),
        computed="r less the time to empty is d - n b0/C: one is positive where the other is",
    )


@claim("fast", "(7)", "The bound scales as n^(3/2).", "O(n^(3/2))")
def threshold_order() -> Outcome:
    return from_proofs(
        proof(Eq(limit(THRESHOLD / sqrt(n) ** 3, n, oo), alpha / capacity)),
        computed="n b0/C over n^(3/2) tends to alpha/C",
    )


@claim("fast", "Section III", "The time that a pause takes to empty the queue grows with n without "
       "bound.", "no sensible default")  # fmt: skip
def pause_length() -> Outcome:
    needed = fast.drain_time([1, 8, 64], C, ALPHA)
    return from_proofs(
        proof(Eq(limit(fast.drain_time.form / sqrt(n) ** 3, n, oo), alpha / capacity)),
        computed="the time to empty grows as n^(3/2) too: "
        + ", ".join(
            f"{1e3 * t:.0f} ms for n = {m}" for m, t in zip((1, 8, 64), needed, strict=True)
        )
        + " at 100 Mbit/s with packets of 1000 bytes",
        values={f"n = {m}": t for m, t in zip((1, 8, 64), needed, strict=True)},
    )


@claim("fast", "Section V", "The threshold (7) is 108 ms for n = 8 and alpha = 50 packets.",
       "108 ms", erratum=True)  # fmt: skip
def decoded() -> Outcome:
    at_ours = float(fast.rate_reduction_threshold(8, C, ALPHA))
    low, needed, high = (
        8 * float(fast.newcomer_backlog(8, ALPHA)) / t for t in (0.1085, 0.108, 0.1075)
    )
    return Outcome(
        NOT_GIVEN,
        f"{1e3 * at_ours:.1f} ms with C = {C:.0f} packets/s",
        f"The paper gives neither link speed nor packet size. (7) is 108 ms if C is {needed:.0f} "
        f"packets/s, to its three digits {low:.0f} to {high:.0f}: 100 Mbit/s with packets of 1000 "
        "bytes fit, but so do other pairs of the same quotient. All runs here have these two.",
        {"threshold": at_ours, "C": needed, "packet": PACKET},
    )


@claim("fast", "(1), Section V", "FAST's gamma and tau.", "", erratum=True)
def settings() -> Outcome:
    taken = {name: FAST.parameter(name) for name in ("gamma", "tau", "alpha")}
    return Outcome(
        NOT_GIVEN,
        f"gamma = {taken['gamma']:g}, tau = {taken['tau']:g} s, with alpha = {taken['alpha']:g} "
        "packets",
        "The paper gives neither. Equations (2) to (9) do not contain them; they set how fast "
        "windows settle, and whether they do: gamma/tau times the round trip must not be large.",
        taken,
    )


@claim("fast", "(8)", "C dr = (C - (sum of x_f) - (1 - theta) x0) t_eps.", "(8)")
def probe() -> Outcome:
    label = "(8), with the rates of all adding up to C"
    return from_proofs(
        _own(fast.rtt_change, label),
        computed="it is theta x0 t_eps, as the rates fill the link, if the others' stand still and "
        "the queue neither empties nor overflows",
    )


@claim("fast", "(9)", "n^ = (theta t_eps/dr) (theta t_eps/dr - 1).", "(9)")
def flows() -> Outcome:
    return from_proofs(
        _own(fast.estimate_flows, "(9) inverts (8)"), computed="(9) of the dr of (8) is n"
    )


@claim("fast", "Section IV", "C^ = (1 + sqrt(1 + 4 n^)) x0/2.", "")
def capacity_estimate() -> Outcome:
    (label,) = fast.estimate_capacity.claims
    return from_proofs(_own(fast.estimate_capacity, label), computed="shorter: theta t_eps x0/dr")


@claim("fast", "Section IV", "d0' = d0^ - alpha n^/C^ is the true propagation delay.", "d0")
def corrected() -> Outcome:
    d0 = symbols("d_0", positive=True)
    form = fast.corrected_delay.form.subs(
        _symbol(fast.corrected_delay, "d_hat"), d0 + n * alpha / capacity
    )
    form = form.subs(delta_r, _CHANGE).subs(_symbol(fast.corrected_delay, "x0"), X0)
    return from_proofs(
        proof(Eq(form, d0)), computed="with the dr of (8), for all n, C, alpha, theta and t_eps"
    )


@claim("fast", "Section IV", "A probe with theta < 0 needs room in the buffer.",
       "some packet drops")  # fmt: skip
def room() -> Outcome:
    round_trip = 0.1 + fast.newcomer_backlog(8, ALPHA) / C + 8 * ALPHA / C
    rate = fast.equilibrium_rates(8, C, ALPHA).newcomer
    needed = float(fast.probe_backlog(-0.5, round_trip, rate))
    return outcome(
        needed > 1,
        f"-theta t_eps x0 packets: {needed:.0f} for eight flows at 100 ms with theta = -0.5 and "
        "t_eps = r*",
        "Not a packet is added to the queue.",
        {"packets": needed},
    )
