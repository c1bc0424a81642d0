"""Sections II to IV of the paper on FAST's persistent congestion: equations (1) to (9)."""

from __future__ import annotations

from sympy import Eq, Symbol, limit, oo, sqrt, symbols

from fluidcc.formulas import fast
from fluidcc.formulas._formula import Formula
from fluidcc.papers.fast.common import ALPHA, PACKET, C
from fluidcc.papers.model import NOT_GIVEN, Outcome, claim, from_proofs, proof, reproduced_if
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


@claim("(1)", "(1)")
def dynamics() -> Outcome:
    """w' = kappa (1 - q/u), u = alpha/x; kappa = gamma alpha/tau for FAST and 1/r for Vegas."""
    q_over_u = delta * (w / RTT) / alpha
    return from_proofs(
        Eq(unfold(FAST.flow[w]), unfold(gamma * alpha / tau * (1 - q_over_u))),
        Eq(unfold(Vegas.flow[w]), unfold((1 - q_over_u) / RTT)),
        computed="the windows of the library's FAST and Vegas, with q the round trip less the "
        "smallest seen",
    )


@claim("(2)", "(2)")
def rest() -> Outcome:
    """FAST and Vegas rest at x = alpha/(r - d^)."""
    resting = unfold(alpha * RTT / delta)  # the window of x = w/r = alpha/q
    return from_proofs(
        *(proof(Eq(unfold(law.flow[w]).subs(w, resting), 0)) for law in (FAST, Vegas)),
        computed="w' = 0 there, for both; neither gamma nor tau enters",
    )


@claim("Section II", "d0 + n alpha/C")
def met_queue() -> Outcome:
    """n flows that know their delays have C/n each and alpha in the queue: the newcomer takes d0 +
    n alpha/C for its delay."""
    return from_proofs(
        proof(Eq(alpha / (n * alpha / capacity), capacity / n), where=[n > 0]),
        computed="alpha/q = C/n at q = n alpha/C",
    )


@claim("(3)", "(3)")
def newcomer_rate() -> Outcome:
    """The newcomer's rate is alpha C/b0."""
    return from_proofs(
        fast.equilibrium_rates.claims["(3)"], computed="(2) with its own queueing delay b0/C"
    )


@claim("(4)", "(4)")
def old_rate() -> Outcome:
    """An old flow's rate is alpha C/(b0 + n alpha)."""
    return from_proofs(
        fast.equilibrium_rates.claims["(4)"], computed="(2) with the whole queueing delay"
    )


@claim("(5)", "(5)")
def backlog() -> Outcome:
    """b0 = alpha (1 + sqrt(1 + 4 n))/2."""
    b = symbols("b", positive=True)
    filled = alpha * capacity / b + n * alpha * capacity / (b + n * alpha) - capacity
    return from_proofs(
        Eq(X0 + n * XF, capacity),
        filled.diff(b) < 0,
        computed="the rates fill the link at this backlog and at no other",
    )


@claim("Section II", "O(sqrt n)")
def unfairness_order() -> Outcome:
    """The unfairness x0/xf grows as sqrt(n)."""
    return from_proofs(
        fast.unfairness.claims["ratio of (3) to (4)"],
        Eq(limit(B / sqrt(n), n, oo), 1),
        B.diff(n) > 0,
        computed="x0/xf = (1 + sqrt(1 + 4 n))/2: it grows with n, and x0/(xf sqrt(n)) -> 1",
    )


@claim("(6)", "(6)")
def drains_in_time() -> Outcome:
    """A pause empties the queue before the others react if B/(C - sum of x_f) < r."""
    return from_proofs(
        Eq(fast.drain_time.form, (B0 + n * alpha) / (capacity - n * XF)),
        Eq(capacity - n * XF, X0),
        computed="the queue falls at the newcomer's rate x0",
    )


@claim("(7)", "(7)")
def threshold() -> Outcome:
    """Substituting (4) and (5) in (6) gives d > n b0/C."""
    d = symbols("d", positive=True)
    round_trip = d + (B0 + n * alpha) / capacity
    return from_proofs(
        fast.rate_reduction_threshold.claims["(6) at the threshold"],
        Eq(round_trip - fast.drain_time.form, d - THRESHOLD),
        computed="r less the time to empty is d - n b0/C: one is positive where the other is",
    )


@claim("(7)", "O(n^(3/2))")
def threshold_order() -> Outcome:
    """The bound scales as n^(3/2)."""
    return from_proofs(
        Eq(limit(THRESHOLD / sqrt(n) ** 3, n, oo), alpha / capacity),
        computed="n b0/C over n^(3/2) tends to alpha/C",
    )


@claim("Section III", "no sensible default")
def pause_length() -> Outcome:
    """The time that a pause takes to empty the queue grows with n without bound."""
    needed = fast.drain_time([1, 8, 64], C, ALPHA)
    return from_proofs(
        Eq(limit(fast.drain_time.form / sqrt(n) ** 3, n, oo), alpha / capacity),
        computed="the time to empty grows as n^(3/2) too: "
        + ", ".join(
            f"{1e3 * t:.0f} ms for n = {m}" for m, t in zip((1, 8, 64), needed, strict=True)
        )
        + " at 100 Mbit/s with packets of 1000 bytes",
        values=named("n = {}", (1, 8, 64), needed),
    )


@claim("Section V", "108 ms", erratum=True)
def decoded() -> Outcome:
    """The threshold (7) is 108 ms for n = 8 and alpha = 50 packets."""
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


@claim("(1), Section V", erratum=True)
def settings() -> Outcome:
    """FAST's gamma and tau."""
    taken = {name: FAST.parameter(name) for name in ("gamma", "tau", "alpha")}
    return Outcome(
        NOT_GIVEN,
        f"gamma = {taken['gamma']:g}, tau = {taken['tau']:g} s, with alpha = {taken['alpha']:g} "
        "packets",
        "The paper gives neither. Equations (2) to (9) do not contain them; they set how fast "
        "windows settle, and whether they do: gamma/tau times the round trip must not be large.",
        taken,
    )


@claim("(8)", "(8)")
def probe() -> Outcome:
    """C dr = (C - (sum of x_f) - (1 - theta) x0) t_eps."""
    label = "(8), with the rates of all adding up to C"
    return from_proofs(
        fast.rtt_change.claims[label],
        computed="it is theta x0 t_eps, as the rates fill the link, if the others' stand still and "
        "the queue neither empties nor overflows",
    )


@claim("(9)", "(9)")
def flows() -> Outcome:
    """n^ = (theta t_eps/dr) (theta t_eps/dr - 1)."""
    return from_proofs(
        fast.estimate_flows.claims["(9) inverts (8)"], computed="(9) of the dr of (8) is n"
    )


@claim("Section IV")
def capacity_estimate() -> Outcome:
    """C^ = (1 + sqrt(1 + 4 n^)) x0/2."""
    return from_proofs(
        *fast.estimate_capacity.claims.values(), computed="shorter: theta t_eps x0/dr"
    )


@claim("Section IV", "d0")
def corrected() -> Outcome:
    """d0' = d0^ - alpha n^/C^ is the true propagation delay."""
    d0 = symbols("d_0", positive=True)
    form = fast.corrected_delay.form.subs(
        _symbol(fast.corrected_delay, "d_hat"), d0 + n * alpha / capacity
    )
    form = form.subs(delta_r, _CHANGE).subs(_symbol(fast.corrected_delay, "x0"), X0)
    return from_proofs(
        Eq(form, d0), computed="with the dr of (8), for all n, C, alpha, theta and t_eps"
    )


@claim("Section IV", "some packet drops")
def room() -> Outcome:
    """A probe with theta < 0 needs room in the buffer."""
    round_trip = 0.1 + fast.newcomer_backlog(8, ALPHA) / C + 8 * ALPHA / C
    rate = fast.equilibrium_rates(8, C, ALPHA).newcomer
    needed = float(fast.probe_backlog(-0.5, round_trip, rate))
    return reproduced_if(
        needed > 1,
        f"-theta t_eps x0 packets: {needed:.0f} for eight flows at 100 ms with theta = -0.5 and "
        "t_eps = r*",
        values={"packets": needed},
    )
