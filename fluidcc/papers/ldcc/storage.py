"""Section IV-A of the LDCC paper: the equilibrium and the two storage functions, (26) to (29)."""

from __future__ import annotations

from sympy import Eq, Max, Symbol, diff, integrate, log, symbols

from fluidcc.analysis.passivity import check_storage, paper_storage
from fluidcc.analysis.undelayed import Undelayed, undelayed
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import positive, w, x
from fluidcc.papers.ldcc.law import FLOW, V
from fluidcc.papers.model import DIFFERS, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.sources import LDCC
from fluidcc.symbols import Let, c, edot, pi, unfold, y

HAT, ALPHA = positive("xhat", "alpha")
GAIN = unfold(next(v for v in FLOW.atoms(Let) if v.name == "k"))


@claim(
    "ldcc",
    "(26), (27)",
    "In a negative feedback loop of two passive systems the terms u'y vanish.",
    "u1'y1 + u2'y2 = 0 with u1 = -y2, u2 = y1",
)
def supply_rates_cancel() -> Outcome:
    y1, y2 = symbols("y1a:c", real=True), symbols("y2a:c", real=True)
    supplied = sum(-b * a + a * b for a, b in zip(y1, y2, strict=True))
    return from_proofs(
        proof(Eq(supplied, 0)),
        computed="term by term; then V1' + V2' <= -W1 - W2",
        reason="It makes V1 + V2 a Lyapunov function if it is positive definite and W1 + W2 is not negative; whether "
        "the two subsystems of LDCC satisfy (26) is the question of (45) and (47).",
    )


@claim(
    "ldcc",
    "IV-A",
    "The equilibrium is where v(e^) = U'(x^), and y^ = c where q^ > 0, y^ <= c where q^ = 0; e' is 0 there.",
    "(2) and (15) set to zero",
)
def equilibrium_conditions() -> Outcome:
    still = FLOW.subs({pi: 0, edot: 0})
    (queue,) = DropTail.flow.values()
    spare = Symbol("s", nonnegative=True)
    return from_proofs(
        proof(Eq(unfold(still), unfold(GAIN * x * (w / x - V)))),
        proof(Eq(GAIN * x * (w / x - V), GAIN * (w - x * V))),
        proof(Eq(queue.subs(y, c), 0)),
        proof(Max(queue.subs(y, c - spare), 0) <= 0),
        computed="x' is k x > 0 times U' - v - e'; a queue rests where y = c, or empty where y <= c",
        reason="With (2) projected as meant. A sum of delays that rest has e' = 0.",
    )


@claim("ldcc", "(28)", "The integral of (z - x^)/z is positive unless x = x^.", "V_user > 0")
def user_storage_positive() -> Outcome:
    z = Symbol("z", positive=True)
    value = integrate((z - HAT) / z, (z, HAT, x))
    stationary = diff(value, x)
    return from_proofs(
        proof(Eq(value, x - HAT - HAT * log(x / HAT))),
        proof(Eq(stationary, (x - HAT) / x)),
        proof(diff(value, x, 2) > 0),
        proof(Eq(value.subs(x, HAT), 0)),
        computed="x - x^ - x^ log(x/x^): strictly convex, zero with zero slope at x = x^",
    )


@claim("ldcc", "(28)", "V_user = 1/(k alpha) sum of integrals: k before the sum.", "1/(k alpha) sum_r", erratum=True)
def gain_before_the_sum() -> Outcome:
    k1, k2, d1, d2, z1, z2 = symbols("k1 k2 d1 d2 z1 z2", positive=True)
    # V_user' with each user's own motion x_r' = k_r x_r z_r, deviations d_r: (45a) has sum d_r z_r/alpha.
    wanted = (d1 * z1 + d2 * z2) / ALPHA
    common = (d1 * k1 * z1 + d2 * k2 * z2) / (k1 * ALPHA)
    own = d1 * k1 * z1 / (k1 * ALPHA) + d2 * k2 * z2 / (k2 * ALPHA)
    before, inside = proof(Eq(common, wanted)), proof(Eq(own, wanted))
    if before or not inside:
        return from_proofs(before, inside, computed="")
    return Outcome(
        DIFFERS,
        "(45a) follows with 1/k_r inside the sum, proved; not with one k before it",
        "Users have gains of their own, k_r in (30), as k_r = eta/RTT_r; alpha has to be common, since the links' "
        f"storage function has it too. Fails at {_at(before.counterexample)}.",
        dict(before.counterexample),
    )


def _at(values: object) -> str:
    return ", ".join(f"{k} = {v:.3g}" for k, v in sorted(dict(values).items()))  # type: ignore[call-overload]


def _two_links() -> Undelayed:
    """One flow through 2 and 3 Mbit/s: the second link is not saturated."""
    net = (
        Network().link("first", DropTail, capacity=2e6, delay=0.025).link("second", DropTail, capacity=3e6, delay=0.01)
    )
    return undelayed(net.flow("flow", LDCC, route=["first", "second"]), held=("k",))


@claim(
    "ldcc",
    "(29)",
    "'Note that since d_l >= 0 the two storage function are positive definite function'.",
    "(c - y^) d, with d = p + q",
    erratum=True,
)
def link_storage_offset() -> Outcome:
    system = _two_links()
    printed, meant = (paper_storage(system, literal=literal) for literal in (True, False))
    found = check_storage(system, printed, samples=256)
    d, spare = positive("d", "s")
    definite = proof(c * d**2 / 2 + spare * d / ALPHA > 0)
    if found.positive_definite or meant.offset or not definite:
        return Outcome(REPRODUCED, f"offset {printed.offset:.4g} bit s", "", {"offset": printed.offset})
    return Outcome(
        DIFFERS,
        f"at an equilibrium with an unsaturated link it is {printed.offset:.4g} bit s as printed, 0 with deviations",
        "d contains the propagation delay, so (c - y^) d does not vanish where a link has capacity to spare (here 2 "
        "then 3 Mbit/s, 25 and 10 ms). With the deviation of d, which is q >= 0 at such a link, it is positive "
        "definite. Its derivative is the same.",
        {"offset": printed.offset},
    )
