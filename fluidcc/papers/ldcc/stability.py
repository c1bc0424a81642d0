"""Section IV-B of the LDCC paper: the return ratio and its Nyquist criterion, (30) to (39)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from sympy import Eq, Expr, Symbol, diff, exp, lambdify, sqrt

from fluidcc.analysis.operating import operating_point
from fluidcc.base.errors import InvalidInput, Undecided
from fluidcc.conditions.local import LocalLoop, local_loop
from fluidcc.conditions.sufficient import Conditions, crossings, passes, sufficient_conditions
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.patterns import in_seconds
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import W_OVER_BETA, beta, eta, series, unstable, w, x
from fluidcc.papers.ldcc.law import ABOVE, GAIN
from fluidcc.papers.model import (
    Found,
    differs_if,
    not_given,
    proof,
    proved,
    proved_if,
    refuted_if,
    reproduced_if,
)
from fluidcc.proofs.prove import Verdict
from fluidcc.proofs.standstill import AtRest, at_rest
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, e, edot, nonnegative, pi, positive, y

# Identities of analytic functions hold everywhere once they hold for s > 0.
s = positive("s")
REST: AtRest = at_rest(LDCC, given={pi: 0}, eliminate=e)
"""The law where x' = 0 without losses: e is that of (19)."""
ROUND = REST.put(RTT)
K = REST.put(GAIN)  # k = eta/RTT
U2 = diff(LDCC.utility, x, 2)
# Delays to a link, back from it, and to another link of the same user.
_f, _b, _m = positive("tau_f tau_b tau_m")


def slope() -> Expr:
    """v' at the equilibrium, from (17)."""
    return REST.put(diff(ABOVE, e))


def own_loop() -> Expr:
    """G_r of (36) by the law: minus its response to delay, over s x_r, one round trip later."""
    return -REST.transfer("rate", e, s) / x * exp(-s * ROUND) / s


def at(statement: Any) -> Verdict:
    """`proof` of a statement at an equilibrium, where x > w/beta."""
    return proof(statement, x > w / beta)


def delayed_rate_equation() -> Found:
    # A packet sent at theta meets the second queue at theta + q1(theta) + p, and so e' is
    # d1 + d2 (1 + d1). A run tells the slope over the time of hearing, e'/(1 + e').
    d1, d2 = (Symbol(name, real=True) for name in ("d1", "d2"))
    chain = proof(Eq(d1 + d2 * (1 + d1), (1 + d1) * (1 + d2) - 1))
    r = simulate(series(2e6, 1e6, 3e6, start=0.0), 3.0, t_eval=[1.0, 3.0])
    heard = np.diff(r.one_way_delay.values[:, 0])[0] / 2
    true = heard / (1 - heard)
    return differs_if(chain and abs(true - 2) < 1e-9, true=true, printed=0.5 + 1.0)


def delayed_queue() -> Found:
    total = sum(positive("x1:4"))
    ((queue, flow),) = DropTail.flow.items()
    bounded = queue in DropTail.lower and queue in DropTail.upper
    return differs_if(bounded and proof(Eq(flow.subs(y, total), (total - c) / c)))


def linearised() -> Found:
    by = {signal: REST.B[0, LDCC.inputs.index(signal)] for signal in (e, edot)}
    (queue,) = DropTail.flow.values()
    return proved(
        at(Eq(REST.A[0, 0], REST.put(K * x * U2))),
        at(Eq(by[e], -K * x * slope())),
        at(Eq(by[edot], -K * x)),
        Eq(diff(queue, y), 1 / c),
    )


def solved() -> Found:
    # (32): K X (-V' - s)/(s - K X U'')
    printed = K * x * (-slope() - s) / (s - K * x * U2)
    return proved(at(Eq(REST.transfer("rate", e, s), printed)))


def return_ratio() -> Found:
    # Each entry (l, m) is a sum over users; the summands are compared, so it holds for networks of
    # any size.
    by_law = -(exp(-s * _f) / c / s) * REST.transfer("rate", e, s) * exp(-s * _b)
    round_trip = _m + _b  # (7), for link m
    response = K * (slope() + s) / (s - K * x * U2)
    printed = exp(-s * _f) / c / s * response * exp(-s * round_trip) * x * exp(s * _m)
    return proved(at(Eq(by_law, printed)), Eq(exp(-s * _b), exp(-s * round_trip) * exp(s * _m)))


def diagonal_part() -> Found:
    return proved(as_printed(), _similar())


def as_printed() -> Verdict:
    """Whether G_r(s) is as (36) and (40) print it."""
    return at(Eq(own_loop(), K * exp(-s * ROUND) / s * (slope() + s) / (s - K * x * U2)))


def _similar() -> Verdict:
    """Whether F by (35) is C^(-1/2) R~ G R~^T(-s) C^(1/2) with R~ by (37): a user's part of the
    entry of two links, so that it holds for any number of both."""
    g, c_l, c_m = positive("g c_l c_m")
    to_l, from_m = exp(-s * _f), exp(s * _m)  # R_f of the one link, R_f(-s) of the other
    scaled = to_l * sqrt(x / c_l) * g * from_m * sqrt(x / c_m)
    return proof(Eq(to_l / c_l * g * x * from_m, scaled / sqrt(c_l) * sqrt(c_m)))


def same_spectrum() -> Found:
    return proved(_similar())


def slope_symbol(round_trip: Expr) -> Expr:
    """(42) with a free round-trip time."""
    return (beta - w / x) / round_trip


def loop_symbol(round_trip: Expr) -> Expr:
    """(43) with a free round-trip time."""
    lag = exp(-s * round_trip) / (s * round_trip)
    return eta * lag * (slope_symbol(round_trip) + s) / (s + pole_symbol(round_trip))


def pole_symbol(round_trip: Expr) -> Expr:
    """The pole of (43), as a positive number, with a free round-trip time."""
    return eta * w / (x * round_trip)


_ROUND = positive("R")
pole_and_zero = lambdify(
    (_ROUND, eta, w, beta, x), (pole_symbol(_ROUND), slope_symbol(_ROUND)), "numpy"
)
"""Pole (as a positive number) and zero of (43) from round-trip time, eta, w, beta and rate."""


# --- Critical gains of symmetric parking lots over a grid

HOPS = (1, 2, 3, 5)
RATES = np.geomspace(0.25e6, 25e6, 10)
RATIOS = np.geomspace(1, 100, 10)
# (43) is eta base/(s + eta pole): what does not move with the gain is computed once.
_POLE = pole_symbol(_ROUND) / eta
_BASE = (loop_symbol(_ROUND) * (s + pole_symbol(_ROUND)) / eta).simplify()
_PARTS = lambdify((s, x, w, beta, _ROUND), (_BASE, _POLE), "numpy")


CONDITIONS = {
    "rule": "-1/M rule",
    "hull": "convex hull with the exact radius",
    "divided": r"$\eta$ divided by M",
}


@cache
def chart() -> dict[str, np.ndarray]:
    """Exact critical gains eta, (hops, rates, ratios), and those that each condition allows."""
    grid = np.array(np.meshgrid(HOPS, RATES, RATIOS, indexing="ij"))
    found = critical_gains(*grid.reshape(3, -1))
    return {
        name: gains.reshape(grid[0].shape)
        for name, gains in zip(("exact", *CONDITIONS), found, strict=True)
    }


class ParkingLots:
    """How far left each condition's curve crosses the real axis, of many parking lots, by eta.

    M links in a row, one flow over all of them and one on each, all at the same rate x; the RTT of
    the long flow is a multiple of the others'. By (43) the loops depend on frequency times RTT
    alone, so only that ratio counts. Delays are frozen as in (30).

    Parameters
    ----------
    M, rate, ratio : array_like (points,)
        Hops, rate of every flow [bit/s], RTT of the long flow over that of the others.
    """

    share = 0.5  # x/c: each link carries its own flow and the long one

    def __init__(self, M: Any, rate: Any, ratio: Any) -> None:
        self.M, rate, ratio = (np.asarray(v, float)[:, None] for v in (M, rate, ratio))
        self.omega = np.geomspace(1e-3, 30, 1500)[None] / np.sqrt(ratio)
        w_, beta_ = LDCC.parameter("w"), LDCC.parameter("beta")
        self.parts = [_PARTS(1j * self.omega, rate, w_, beta_, trip) for trip in (1.0, ratio)]

    def users(self, gain: Any) -> list[Any]:
        """G of a flow on one link, and of the long one, at each frequency."""
        g = np.asarray(gain, float)[:, None]
        return [g * base / (1j * self.omega + g * pole) for base, pole in self.parts]

    def exact(self, gain: Any) -> Any:
        """Of the eigenvalues of F: one, and M - 1 times that of a flow on one link."""
        own, long = self.users(gain)
        others = np.where(self.M[:, 0] > 1, _reach(self.share * own), 0.0)
        return np.maximum(others, _reach(self.share * (own + self.M * long)))

    def rule(self, gain: Any) -> Any:
        """Of each G, times M."""
        return self.M[:, 0] * self.alone(gain)

    def hull(self, gain: Any) -> Any:
        """Of the hull of both, times the exact spectral radius."""
        own, long = self.users(gain)
        sides = _left(own, long), _left(own[:, :-1], long[:, 1:])
        return self.share * (1 + self.M[:, 0]) * np.max([self.alone(gain), *sides], axis=0)

    def alone(self, gain: Any) -> Any:
        """Of each G."""
        return np.max([_reach(g) for g in self.users(gain)], axis=0)

    def critical(self, reach: Callable[[Any], Any]) -> Any:
        """The least gain at which the reach along the negative real axis is one, by bisection.

        Beyond it the reach stays above one: |eta/(jw + eta a)| grows with eta at every frequency.
        """
        low, high = np.full(len(self.M), 1e-2), np.full(len(self.M), 30.0)
        for _ in range(20):
            middle = np.sqrt(low * high)
            beyond = reach(middle) >= 1
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return np.sqrt(low * high)


def critical_gains(M: Any, rate: Any, ratio: Any) -> tuple[Any, Any, Any, Any]:
    """Critical eta of `ParkingLots`: exact, by the -1/M rule, by the hull with the exact radius,
    and by eta_1/M."""
    lots = ParkingLots(M, rate, ratio)
    exact, rule, hull, one = map(lots.critical, (lots.exact, lots.rule, lots.hull, lots.alone))
    return exact, rule, hull, one / lots.M[:, 0]


def parking_lot_network(M: int, rate: float, ratio: float, gain: float) -> Network:
    """One of these parking lots: M links of 2 `rate`, and thresholds that give every flow `rate`.

    The RTT of the flows on one link is 0.2 s, nine tenths of every RTT are before the receiver, and
    half of that of the flows on one link is in the links of the long flow together if its RTT is
    the same.
    """
    trip, hop, net = 0.2, 0.1 / M, Network()
    for l in range(M):
        net.link(f"l{l}", DropTail, capacity=2 * rate, delay=0.2 * hop)
    flows = {"long": (ratio * trip, list(net.link_names))}
    flows |= {f"f{l}": (trip, [f"l{l}"]) for l in range(M)}
    for name, (own, route) in flows.items():
        law = LDCC(eta=gain, T=0.9 * own - W_OVER_BETA / rate * own)  # v = w/x at e = 0.9 RTT
        access, back = (in_seconds(delay) for delay in (0.9 * own - len(route) * hop, 0.1 * own))
        net.flow(name, law, route=route, access_delay=access, return_delay=back)
    return net


def _reach(z: Any) -> Any:
    """How far left a curve (points, frequencies) crosses the real axis."""
    return _left(z[:, :-1], z[:, 1:])


def _left(u: Any, v: Any) -> Any:
    """How far left the segments from u to v meet the real axis, of those that do."""
    meets = u.imag * v.imag < 0
    gap = np.where(meets, u.imag - v.imag, 1.0)
    return np.max((v.imag * u.real - u.imag * v.real) / gap, axis=1, where=meets, initial=0.0)


# --- The Nyquist criterion, (39), and what follows from it and what does not


def _random_loop(rng: np.random.Generator) -> LocalLoop:
    """A random network in the form of (35); only what (39) is about is kept."""
    links, users = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    route = (rng.random((links, users)) < 0.6).astype(float)
    route[0] = np.maximum(route[0], 1 - route.any(axis=0))
    rate, trip = 10 ** rng.uniform(5, 7, users), rng.uniform(0.02, 1, users)
    gain = np.array([10 ** rng.uniform(-1, 0.5) for _ in range(users)])
    pole, zero = pole_and_zero(trip, gain, LDCC.parameter("w"), LDCC.parameter("beta"), rate)
    laws = [
        (np.array([[-a]]), np.array([[drive * z], [drive], [0.0]]), np.ones(1), np.zeros(3))
        for a, z, drive in zip(pole, zero, -gain / trip * rate, strict=True)
    ]
    load = route @ rate
    gamma = np.divide(1.0, load, out=np.ones(links), where=load > 0)
    forward = route * trip * rng.random((links, users))
    names = tuple(f"l{i}" for i in range(links))
    return LocalLoop(
        "queueing delay", True, names, route, gamma, rate, np.ones(users), trip, forward, laws, ()
    )


def nyquist_criterion() -> Found:
    rng = np.random.default_rng(17)
    counts: list[tuple[int, int]] = []
    while len(counts) < 24:
        net = _random_network(rng)
        with suppress(InvalidInput):  # on a switching surface
            point = operating_point(net)
            counts.append((_encirclements(local_loop(point)), unstable(net, "frozen", point.rest)))
    wrong = sum(a != b for a, b in counts)
    instable = sum(b > 0 for _, b in counts)
    return reproduced_if(
        not wrong and 0 < instable < len(counts),
        networks=len(counts),
        unstable=instable,
        wrong=wrong,
        otherwise="refuted",
    )


def _random_network(rng: np.random.Generator) -> Network:
    """One to three links, two to four LDCC flows with large gains, and a flow on each link
    alone."""
    net, links = Network(), [f"l{i}" for i in range(int(rng.integers(1, 4)))]
    for name in links:
        net.link(name, DropTail, capacity=10 ** rng.uniform(6, 7.3), delay=rng.uniform(0.005, 0.05))
    routes = [[name] for name in links]
    for _ in range(int(rng.integers(1, 4))):
        first, last = np.sort(rng.integers(0, len(links), 2))
        routes.append(links[first : last + 1])
    for i, route in enumerate(routes):
        law = LDCC(eta=10 ** rng.uniform(-0.7, 0.5))
        net.flow(f"f{i}", law, route=route, access_delay=rng.uniform(0, 0.1))
    return net


def _encirclements(loop: LocalLoop) -> int:
    """Clockwise turns of the eigenvalues of F around -1, by the argument of a function without
    their integrators."""
    omega = np.geomspace(1e-6 / loop.trip.max(), 1e4 / loop.trip.min(), 15_000)
    integrator = 1j * omega / (1 + 1j * omega)
    value = np.prod((1 + loop.eigenloci(omega)) * integrator[:, None], axis=1)
    turns = -np.sum(np.angle(value[1:] / value[:-1])) / np.pi
    if abs(turns - round(turns)) > 0.02:
        raise Undecided(f"the argument does not close: {turns:.4f} half turns")
    return round(float(turns))


def convex_hull() -> Found:
    g1, g2, u1, u2, rho = positive("g1 g2 u1 u2 rho")
    # For an eigenvector v of R~ G R~* and u = R~*v: eigenvalue v*v = sum g_r |u_r|^2, so it is
    # (u*u/v*v) times an average of the g_r; and u*u/v*v <= rho by the definition of the spectral
    # radius of a Hermitian matrix.
    size = u1 + u2
    average = proof(Eq(g1 * u1 + g2 * u2, size * (g1 * u1 / size + g2 * u2 / size)))
    weights = proof(Eq(u1 / size + u2 / size, 1))
    inside = proof(size / rho <= 1, size <= rho)
    rng = np.random.default_rng(5)
    worst = max(_outside(_random_loop(rng), rng) for _ in range(100))
    return proved_if(average and weights and inside and worst <= 1e-9, worst=max(worst, 0.0))


def _outside(loop: LocalLoop, rng: np.random.Generator) -> float:
    """How far an eigenvalue sticks out of the scaled hull in any of 24 directions, relative to the
    hull's size."""
    omega = 10 ** rng.uniform(-2, 2, 12)
    G, found = loop.user(1j * omega), loop.eigenloci(omega)
    turn = np.exp(2j * np.pi * np.arange(24) / 24)
    support = np.maximum((G[None] * turn[:, None, None]).real.max(axis=1), 0) * loop.radius(omega)
    reach = (found.T[None] * turn[:, None, None]).real.max(axis=1)
    return float(np.max((reach - support) / np.maximum(np.abs(found).max(axis=1), 1e-12)))


def radius_at_most_hops() -> Found:
    # rho(R~* R~) <= the largest row sum of |X^-1/2 R~* R~ X^1/2|: row r is sum_l R_lr y_l/c_l.
    load, spare = positive("y"), nonnegative("s")
    rng = np.random.default_rng(6)
    loops = (_random_loop(rng) for _ in range(200))
    worst = max(np.max(one.radius(10 ** rng.uniform(-2, 2, 8))) - one.hops for one in loops)
    return proved_if(proof(load / (load + spare) <= 1) and worst <= 1e-9, worst=worst)


@cache
def counterexample() -> tuple[Network, Conditions]:
    """One link, four near and five far flows of one law, in which every G_r passes -1 and which is
    unstable."""
    law = LDCC(w=1e3, beta=0.5, T=0.02, eta=0.95)
    near, far = ({"law": law, "return_delay": back} for back in (0.03, 0.23))
    net = dumbbell([near] * 4 + [far] * 5, {"capacity": 10.44e6, "delay": 0.01})
    return net, sufficient_conditions(net)


def each_user_alone() -> Found:
    net, conditions = counterexample()
    rule, hull, count = conditions["-1/M rule"], conditions["convex hull"], unstable(net)
    found = chart()
    # the w, beta and T of Section V; RTTs, and rates, as 1 to 60
    flows = [{"law": LDCC(eta=1.33), "return_delay": back} for back in ("50 ms", "8.9 s")]
    alike = dumbbell(flows, {"capacity": 62e6 * 61, "delay": 0.05})
    _, users = crossings(local_loop(operating_point(alike)))
    alone, alike_unstable = all(passes(curve, 1) for curve in users), unstable(alike)
    return refuted_if(
        rule.holds and count and not hull.holds and alone and alike_unstable,
        rule=rule.margin,
        hull=hull.margin,
        exact=rule.conservatism * rule.margin,
        unstable=count,
        points=found["exact"].size,
        wrong=np.sum(found["rule"] > 1.001 * found["exact"]),
        alone=alone,
        paper_unstable=alike_unstable,
    )


def conservatism() -> Found:
    found = chart()
    spread: dict[str, Any] = {"least": np.min, "median": np.median, "most": np.max}
    values = {
        f"{name} {what}": measure(found[name] / found["exact"])
        for name in CONDITIONS
        for what, measure in spread.items()
    }
    return not_given(values, found=found)
