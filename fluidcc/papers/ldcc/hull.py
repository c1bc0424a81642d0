"""Section IV-B of the LDCC paper: the Nyquist criterion, (39), and what follows from it and what does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Eq, Symbol, symbols

from fluidcc.analysis.local import LocalLoop, local_loop
from fluidcc.analysis.operating_point import operating_point
from fluidcc.analysis.sufficient import Conditions, crossings, passes, sufficient_conditions
from fluidcc.base.errors import InvalidInput, Undecided
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.networks import unstable
from fluidcc.papers.ldcc.user_loop import pole_and_zero
from fluidcc.papers.model import PROVED, REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.papers.stability_chart import Chart, chart
from fluidcc.sources import LDCC

__all__ = ["allowed", "counterexample"]


def _random_loop(rng: np.random.Generator) -> LocalLoop:
    """A random network in the form of (35); only what (39) is about is kept."""
    links, users = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    route = (rng.random((links, users)) < 0.6).astype(float)
    route[0] = np.maximum(route[0], 1 - route.any(axis=0))
    rate, trip = 10 ** rng.uniform(5, 7, users), rng.uniform(0.02, 1, users)
    laws = []
    for v, r in zip(rate, trip, strict=True):
        gain = 10 ** rng.uniform(-1, 0.5)
        a, z = pole_and_zero(r, gain, LDCC.parameter("w"), LDCC.parameter("beta"), v)
        drive = -gain / r * v
        laws.append((np.array([[-a]]), np.array([[drive * z], [drive], [0.0]]), np.ones(1), np.zeros(3)))
    load = route @ rate
    gamma = np.divide(1.0, load, out=np.ones(links), where=load > 0)
    forward = route * trip * rng.random((links, users))
    names = tuple(f"l{i}" for i in range(links))
    return LocalLoop("queueing delay", True, names, route, gamma, rate, np.ones(users), trip, forward, laws, ())


@claim(
    "ldcc",
    "after (38)",
    "'The trajectories of the eigenvalues ... must not encircle the point -1 + j0 for the system to be stable.'",
    "encirclements of -1 by the eigenvalues of F(jw)",
)
def nyquist_criterion() -> Outcome:
    rng = np.random.default_rng(17)
    counts: list[tuple[int, int]] = []
    while len(counts) < 24:
        net = _random_network(rng)
        try:
            point = operating_point(net)
        except InvalidInput:  # on a switching surface
            continue
        counts.append((_encirclements(local_loop(point)), unstable(net, "frozen", point.rest)))
    wrong = sum(a != b for a, b in counts)
    values = {"networks": len(counts), "unstable": sum(b > 0 for _, b in counts), "wrong": wrong}
    if wrong or not 0 < values["unstable"] < len(counts):
        return Outcome(REFUTED, f"{wrong} of {len(counts)} counts disagree", "found at random", values)
    return Outcome(
        REPRODUCED,
        f"{len(counts)} random networks with frozen delays, {values['unstable']} of them unstable: as many clockwise "
        "turns as characteristic roots right of the axis",
        "Necessary and sufficient, as no G_r has a pole right of the axis. The integrator of each link is taken out by "
        "counting the turns of (s/(s + 1))^L det(1 + F(s)) around 0.",
        values,
    )


def _random_network(rng: np.random.Generator) -> Network:
    """One to three links, two to four LDCC flows with large gains, and a flow on each link alone."""
    net, links = Network(), [f"l{i}" for i in range(int(rng.integers(1, 4)))]
    for name in links:
        net.link(name, DropTail, capacity=10 ** rng.uniform(6, 7.3), delay=rng.uniform(0.005, 0.05))
    routes = [[name] for name in links]
    for _ in range(int(rng.integers(1, 4))):
        first, last = np.sort(rng.integers(0, len(links), 2))
        routes.append(links[first : last + 1])
    for i, route in enumerate(routes):
        net.flow(f"f{i}", LDCC(eta=10 ** rng.uniform(-0.7, 0.5)), route=route, access_delay=rng.uniform(0, 0.1))
    return net


def _encirclements(loop: LocalLoop) -> int:
    """Clockwise turns of the eigenvalues of F around -1, by the argument of a function without their integrators."""
    omega = np.geomspace(1e-6 / loop.trip.max(), 1e4 / loop.trip.min(), 15_000)
    integrator = 1j * omega / (1 + 1j * omega)
    value = np.prod((1 + loop.eigenloci(omega)) * integrator[:, None], axis=1)
    turns = -np.sum(np.angle(value[1:] / value[:-1])) / np.pi
    if abs(turns - round(turns)) > 0.02:
        raise Undecided(f"the argument does not close: {turns:.4f} half turns")
    return round(float(turns))


@claim(
    "ldcc",
    "(39)",
    "The eigenvalues of F(jw) are in rho(R~^T(jw) R~(-jw)) co(0, G_1, ..., G_R).",
    "the convex hull with 0, scaled by the spectral radius",
)
def convex_hull() -> Outcome:
    g1, g2, u1, u2, rho = symbols("g1 g2 u1 u2 rho", positive=True)
    # For an eigenvector v of R~ G R~* and u = R~*v: eigenvalue v*v = sum g_r |u_r|^2, so it is (u*u/v*v) times an
    # average of the g_r; and u*u/v*v <= rho by the definition of the spectral radius of a Hermitian matrix.
    size = u1 + u2
    average = proof(Eq(g1 * u1 + g2 * u2, size * (g1 * u1 / size + g2 * u2 / size)))
    weights = proof(Eq(u1 / size + u2 / size, 1))
    inside = proof(size / rho <= 1, where=[size <= rho])
    if not (average and weights and inside):
        return from_proofs(average, weights, inside, computed="")
    rng, worst = np.random.default_rng(5), -np.inf
    for _ in range(100):
        worst = max(worst, _outside(_random_loop(rng), rng))
    if worst > 1e-9:
        return Outcome(REFUTED, f"an eigenvalue outside by {worst:.3g}", "found at random", {"worst": worst})
    return Outcome(
        PROVED,
        "an eigenvalue is sum g_r |u_r|^2/|v|^2 with u = R~* v: an average of the G_r, times |u|^2/|v|^2 <= rho",
        "On the imaginary axis R~^T(-jw) is the adjoint of R~(jw). On 100 random networks no eigenvalue is outside, "
        "seen from 24 directions.",
        {"worst": max(worst, 0.0)},
    )


def _outside(loop: LocalLoop, rng: np.random.Generator) -> float:
    """How far an eigenvalue sticks out of the scaled hull in any of 24 directions, relative to the hull's size."""
    omega = 10 ** rng.uniform(-2, 2, 12)
    G, found = loop.user(1j * omega), loop.eigenloci(omega)
    turn = np.exp(2j * np.pi * np.arange(24) / 24)
    support = np.maximum((G[None] * turn[:, None, None]).real.max(axis=1), 0) * loop.radius(omega)
    reach = (found.T[None] * turn[:, None, None]).real.max(axis=1)
    return float(np.max((reach - support) / np.maximum(np.abs(found).max(axis=1), 1e-12)))


@claim("ldcc", "after (39)", "The spectral radius of R~^T(jw) R~(-jw) is at most M.", "rho <= M")
def radius_at_most_hops() -> Outcome:
    # rho(R~* R~) <= the largest row sum of |X^-1/2 R~* R~ X^1/2|: row r is sum_l R_lr y_l/c_l.
    load, spare = Symbol("y", positive=True), Symbol("s", nonnegative=True)
    below = proof(load / (load + spare) <= 1)
    rng, worst = np.random.default_rng(6), -np.inf
    for _ in range(200):
        loop = _random_loop(rng)
        worst = max(worst, float(np.max(loop.radius(10 ** rng.uniform(-2, 2, 8)))) - loop.hops)
    if not below or worst > 1e-9:
        return Outcome(REFUTED, f"rho - M = {worst:.3g}", "found at random", {"worst": worst})
    return Outcome(
        PROVED,
        "rho <= max_r sum_l R_lr y_l/c_l <= M",
        "A spectral radius is at most any row sum of absolute values after a diagonal scaling, here by the rates; "
        "phases drop out. Only saturated links count in M, and constant flows lower y_l/c_l.",
        {"worst": worst},
    )


def _near_and_far(ratio: float, near: int, far: int, law: Any, short: float, capacity: float) -> Network:
    """Flows of two round-trip times on one link, by their return delays; `short` is the smaller return delay [s]."""
    net = Network().link("link", DropTail, capacity=capacity, delay=0.01)
    for i in range(near):
        net.flow(f"near{i + 1}", law, route=["link"], return_delay=short)
    for i in range(far):
        net.flow(f"far{i + 1}", law, route=["link"], return_delay=ratio * (short + 0.02) - 0.02)
    return net


def _papers_parameters(ratio: float) -> Network:
    """Two flows with the w, beta and T of Section V, whose RTTs, and rates, have that ratio."""
    law = LDCC(eta=1.33)
    net = Network().link("link", DropTail, capacity=62e6 * (ratio + 1), delay=0.05)
    net.flow("near", law, route=["link"], return_delay=0.05)
    return net.flow("far", law, route=["link"], return_delay=0.15 * ratio - 0.1)


@lru_cache(maxsize=1)
def counterexample() -> tuple[Network, Conditions]:
    """One link, four near and five far flows of one law, in which every G_r passes -1 and which is unstable."""
    net = _near_and_far(5, 4, 5, LDCC(w=1e3, beta=0.5, T=0.02, eta=0.95), 0.03, 10.44e6)
    return net, sufficient_conditions(net)


@claim(
    "ldcc",
    "after (39)",
    "'to prove the stability of the system, we need to show that the eigenvalues of G(jw) do not encircle -1/M'.",
    "each G_r on its own",
    erratum=True,
)
def each_user_alone() -> Outcome:
    net, conditions = counterexample()
    rule, hull, count = conditions["-1/M rule"], conditions["convex hull"], unstable(net)
    values = {"rule": rule.margin, "hull": hull.margin, "exact": rule.conservatism * rule.margin, "unstable": count}
    if not (rule.holds and count and not hull.holds):
        return Outcome(REPRODUCED, f"unstable roots: {count}", "", values)
    c_ = chart()
    values |= {"points": c_.size, "wrong": int(np.sum(c_.rule > 1.001 * c_.exact))}
    alike = _papers_parameters(60.0)
    _, users = crossings(local_loop(operating_point(alike)))
    values |= {"alone": all(passes(points, 1) for points in users), "paper_unstable": unstable(alike)}
    if not (values["alone"] and values["paper_unstable"]):
        return Outcome(REPRODUCED, "no counterexample at the paper's w, beta and T", "", values)
    return Outcome(
        REFUTED,
        f"RTTs of 50 and 250 ms on one link: each G_r passes -1 with gain margin {rule.margin:.4g}, and the network is "
        f"unstable ({count} roots, gain margin {values['exact']:.4g})",
        "(39) is about the convex hull of all G_r at one frequency, and a chord between two of them can cross the axis "
        "left of -1 when neither does. Here w = 1 kbit/s, beta = 0.5, T = 20 ms, eta = 0.95, 10.44 Mbit/s, four near "
        f"and five far flows; the hull says unstable too. At the paper's w, beta and T it takes far larger ratios: "
        "two flows of 0.15 and 9 s and of 62 and 3700 Mbit/s with eta = 1.33 each pass, and are unstable together; in "
        f"{c_.size} parking lots with equal rates and RTT ratios up to 100 the rule promises too much "
        f"{values['wrong']} times.",
        values,
    )


@claim(
    "ldcc",
    "IV-B",
    "The exact boundary against the conditions at the paper's w and beta, over M, rate and RTT ratio.",
    "not in the paper",
)
def conservatism() -> Outcome:
    found = chart()
    ratios = {name: getattr(found, name) / found.exact for name in ("rule", "hull", "divided")}
    values = {f"{name} {what}": float(f(r)) for name, r in ratios.items() for what, f in _SPREAD.items()}
    text = "; ".join(f"{label} {values[f'{name} least']:.2g} to {values[f'{name} most']:.3g}, "
                     f"median {values[f'{name} median']:.2g}" for name, label in _LABELS.items())  # fmt: skip
    return Outcome(
        "not given",
        f"{found.size} symmetric parking lots, allowed eta over critical eta: {text}",
        "M = 1, 2, 3, 5 links, rates of 0.25 to 25 Mbit/s, RTT ratios 1 to 100, frozen delays; the RTT itself drops "
        "out by (43). See the chart of critical gains.",
        values,
    )


_SPREAD: dict[str, Callable[..., Any]] = {"least": np.min, "median": np.median, "most": np.max}
_LABELS = {"rule": "-1/M rule", "hull": "convex hull with the exact radius", "divided": "eta divided by M"}


def allowed(found: Chart) -> dict[str, Any]:
    """Allowed over critical gain of each condition, for the figure."""
    return {label: getattr(found, name) / found.exact for name, label in _LABELS.items()}
