"""Section IV-A of the LDCC paper: what holds in place of the proof in Appendix A."""

from __future__ import annotations

import numpy as np
from sympy import Eq, I, Symbol, conjugate, diff, re, simplify

from fluidcc.analysis.passivity import StorageReport, check_storage, repaired_storage
from fluidcc.analysis.undelayed import undelayed
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import beta, positive, w, x
from fluidcc.papers.ldcc.law import ABOVE, V
from fluidcc.papers.ldcc.passivity import RATE
from fluidcc.papers.ldcc.stability import REST, U2
from fluidcc.papers.ldcc.storage import GAIN
from fluidcc.papers.ldcc.user_loop import pole_and_zero, pole_symbol, slope_symbol
from fluidcc.papers.model import PROVED, REFUTED, Outcome, claim, from_proofs, proof
from fluidcc.sources import LDCC
from fluidcc.symbols import c, e, edot

_hat = Symbol("xhat", positive=True)


@claim(
    "ldcc",
    "Appendix A",
    "Repaired: V* = sum of integrals of (z - x^)/z dz + c times that of k(s)(v(s) - v^) ds, for identical users on a "
    "link, is a Lyapunov function.",
    "not in the paper",
)
def repaired() -> Outcome:
    dx, dv, Y = (Symbol(n, real=True) for n in ("dx", "dv", "Y"))
    slope_of_queue, k, utility = Symbol("qdot", real=True), Symbol("k", positive=True), Symbol("dU", real=True)
    # One user's term, from the law: its bracket is U' - v - e' = dU - dv - q', as U'(x^) = v^.
    (own,) = (RATE / (x * GAIN),)
    bracket = proof(Eq(own, w / x - V - edot))
    user = proof(Eq(dx * k * (utility - dv - slope_of_queue), k * dx * utility - k * dx * (dv + slope_of_queue)))
    # All users: the second part is linear in dx, so it sums to Y = sum dx = y - c; the link adds k dv Y.
    total = -k * Y * (dv + slope_of_queue) + k * dv * Y
    busy = proof(Eq(total.subs(slope_of_queue, Y / c), -k * Y**2 / c))
    # An empty queue that stays empty: q' = 0, Y <= 0, v <= v^, and the link's term is dv k c q' = 0.
    empty, fall = Symbol("m", nonnegative=True), Symbol("f", nonnegative=True)
    idle = proof(-k * (-fall) * (-empty) <= 0)
    concave = proof(k * (x - _hat) * (w / x - w / _hat) <= 0)
    rising = proof(diff(ABOVE, e) > 0)
    proofs = (bracket, user, busy, idle, concave, rising)
    if not all(proofs):
        return from_proofs(*proofs, computed="")
    net = dumbbell([LDCC] * 3, {"capacity": 3e6}, rtt=0.05)
    tried = [_searched(net, held) for held in ((), ("k",))]
    if not all(tried):
        return Outcome(REFUTED, "a state with V*' > 0", "; ".join(map(repr, tried)))
    return Outcome(
        PROVED,
        "V*' = -sum k w dx^2/(x x^) - k (y - c)^2/c <= 0, where k may depend on the delay",
        "Every step is proved, at an empty queue too. V* grows without bound (x - x^ log x, and an integral of "
        "k (v - v^) that diverges as log q), and V*' = 0 only where all dx = 0, which holds on only at the "
        "equilibrium: so identical users on one link converge to it from everywhere. No counterexample at "
        f"{sum(r.tried for r in tried)} states of three users, with k = eta/RTT and with k held. Users may "
        "differ in U; k and v must be common.",
        {"tried": sum(r.tried for r in tried)},
    )


def _searched(net: Network, held: tuple[str, ...]) -> StorageReport:
    system = undelayed(net, held=held)
    return check_storage(system, repaired_storage(system), samples=512)


@claim(
    "ldcc",
    "IV-A",
    "Repaired: without communication delays, every network is locally stable whose saturated links' routing matrix has "
    "full row rank.",
    "not in the paper",
)
def locally_stable() -> Outcome:
    sigma, omega, round_trip = Symbol("sigma", nonnegative=True), Symbol("omega", real=True), Symbol("R", positive=True)
    z, a = slope_symbol(round_trip), pole_symbol(round_trip)
    point = sigma + I * omega
    zero, pole = positive("z", "a")
    response = (point + zero) / (point + pole)  # of (43), from minus delay to rate, over k x
    real_part = simplify(re(simplify(response * conjugate(point + pole) * (point + pole))))
    size = simplify((point + pole) * conjugate(point + pole))
    proofs = (
        proof(Eq(REST.put(U2 * x), -w / x)),
        proof(z > 0, where=[x > w / beta]),
        proof(a > 0),
        proof(real_part > 0),
        proof(size > 0),
    )
    if not all(proofs):
        return from_proofs(*proofs, computed="")
    rng, worst = np.random.default_rng(11), -np.inf
    for _ in range(200):
        worst = max(worst, _slowest(rng))
    if worst >= 0:
        return Outcome(REFUTED, f"a network with a root at {worst:.3g}/s", "found at random", {"worst": worst})
    return Outcome(
        PROVED,
        "Re H_r(s) > 0 for Re s >= 0, for H_r = k x (s + v')/(s + a) from minus delay to rate",
        "At a root of det(s C + R H(s) R^T) there is u with s u*Cu + sum H_r |(R^T u)_r|^2 = 0; for Re s >= 0 its real "
        "part is positive, as R^T u is not zero if the rows of R are independent. So there is none: this holds for any "
        "gains, thresholds and propagation delays. With dependent rows (equal capacities in series) the sum of the "
        f"queues is stable and how they share is undetermined. Of 200 random networks none has a root right of "
        f"{worst:.1e} RTT^-1.",
        {"worst": worst},
    )


def _slowest(rng: np.random.Generator) -> float:
    """The rightmost root of a random undelayed network, times its mean round-trip time."""
    links = int(rng.integers(1, 5))
    flows = links + int(rng.integers(0, 5))
    while np.linalg.matrix_rank(R := (rng.random((links, flows)) < 0.5).astype(float)) < links or not R.any(0).all():
        pass
    trip, size = rng.uniform(0.02, 0.5, flows), 2e5 * 10 ** rng.uniform(0.05, 2, flows)
    gain, weight = 10 ** rng.uniform(-1, 0.5, flows), 20e3
    a, z = pole_and_zero(trip, gain, weight, 0.1, size)
    drive = gain / trip * size
    c_inv = np.diag(1 / (R @ size))
    # x' = -a x - k x (v' q + q'), q' = C^-1 R x.
    J = np.block([
        [-np.diag(a) - drive[:, None] * (R.T @ c_inv @ R), -(drive * z)[:, None] * R.T],
        [c_inv @ R, np.zeros((links, links))],
    ])  # fmt: skip
    return float(np.max(np.linalg.eigvals(J).real) * trip.mean())
