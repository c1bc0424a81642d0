"""Section IV-B of the LDCC paper on networks: (39), what follows from it and what does not, losses, and sampling."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Eq, Symbol, diff, symbols

from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.local import LocalLoop, local_loop
from fluidcc.analysis.nyquist import crossings, passes
from fluidcc.analysis.point import BUSY, FULL, operating_point
from fluidcc.analysis.sampled import sampled_stability
from fluidcc.analysis.sufficient import Conditions, sufficient_conditions
from fluidcc.claims.ldcc_common import eta, ms, w, x
from fluidcc.claims.ldcc_law import FLOW
from fluidcc.claims.ldcc_stability import pole_symbol, slope_symbol
from fluidcc.claims.model import DIFFERS, PROVED, REFUTED, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.claims.stability_chart import Chart, chart
from fluidcc.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.numerics.linear.margins import margins
from fluidcc.scenarios import scenarios
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, pi, unfold, y
from fluidcc.topologies import dumbbell, parking_lot


def _unstable(net: Network, delays: str = "fifo") -> int:
    return linearize(net, delays=delays).count_unstable().unstable


def _random_loop(rng: np.random.Generator) -> LocalLoop:
    """A random network in the form of (35); only what (39) is about is kept."""
    links, users = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    route = (rng.random((links, users)) < 0.6).astype(float)
    route[0] = np.maximum(route[0], 1 - route.any(axis=0))
    rate, trip = 10 ** rng.uniform(5, 7, users), rng.uniform(0.02, 1, users)
    laws = []
    for v, r in zip(rate, trip, strict=True):
        values = {x: v, w: 20e3, eta: 10 ** rng.uniform(-1, 0.5)}
        a = float(pole_symbol(r).subs(values))
        z = float(slope_symbol(r).subs({**values, **LDCC.params}))
        drive = -float(values[eta]) / r * v
        laws.append((np.array([[-a]]), np.array([[drive * z], [drive], [0.0]]), np.ones(1), np.zeros(3)))
    load = route @ rate
    gamma = np.divide(1.0, load, out=np.ones(links), where=load > 0)
    forward = route * trip * rng.random((links, users))
    names = tuple(f"l{i}" for i in range(links))
    return LocalLoop("queueing delay", True, names, route, gamma, rate, np.ones(users), trip, forward, laws, ())


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
    rule, hull, count = conditions["-1/M rule"], conditions["convex hull"], _unstable(net)
    values = {"rule": rule.margin, "hull": hull.margin, "exact": rule.conservatism * rule.margin, "unstable": count}
    if not (rule.holds and count and not hull.holds):
        return Outcome(REPRODUCED, f"unstable roots: {count}", "", values)
    c_ = chart()
    values |= {"points": c_.size, "wrong": int(np.sum(c_.rule > 1.001 * c_.exact))}
    alike = _papers_parameters(60.0)
    _, users = crossings(local_loop(operating_point(alike)))
    values |= {"alone": all(passes(points, 1) for points in users), "paper_unstable": _unstable(alike)}
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
        f"{values['wrong']} times. Suspected, and confirmed.",
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


def _flipping() -> Network:
    """Three links in a row at one capacity, whose cross flows are small: FIFO queues calm it, frozen delays do not."""
    long, cross = LDCC(w=1e5, beta=2, T=0.1, eta=0.7), LDCC(w=2e3, beta=2, T=0.05, eta=0.7)
    return parking_lot([long], [[cross], [cross], [cross]], {"capacity": 8e4, "delay": 0.02})


@claim(
    "ldcc",
    "(31), (32)",
    "(32) is the linearisation of a network with several bottlenecks on a path.",
    "R_f with constant delays",
    erratum=True,
)
def several_bottlenecks() -> Outcome:
    net = _flipping()
    fifo, frozen = _unstable(net), _unstable(net, "frozen")
    gains = {d: float(margins(linearize(net, "open", delays=d)).gain) for d in ("fifo",)}
    gains["frozen"] = float(margins(linearize(net, "open", delays="frozen")).gain_down)
    values = {"fifo": fifo, "frozen": frozen, "gain_fifo": gains["fifo"], "gain_frozen": gains["frozen"]}
    if fifo or not frozen:
        return Outcome(REPRODUCED, f"unstable roots: {fifo} and {frozen}", "", values)
    return Outcome(
        REFUTED,
        f"three links in a row: {frozen} unstable roots by (32), none with queues that conserve flow "
        f"(gain margins {gains['frozen']:.3g} and {gains['fifo']:.3g})",
        "What leaves a busy queue is its capacity, however the rates before it move; (31) lets their variations pass "
        "on to the next queue. To first order that adds a term for each pair of queues on a path, and here it decides: "
        "w = 100 kbit/s, beta = 2, T = 100 ms, eta = 0.7, cross flows with w = 2 kbit/s and T = 50 ms, 80 kbit/s, "
        "20 ms a link. On one bottleneck a path (32) is exact. Suspected, and confirmed.",
        values,
    )


@claim(
    "ldcc",
    "IV-B",
    "The zero-pole couple is at low frequencies and the crossover high enough for stability (parameters of Section V).",
    "qualitative",
)
def places_in_section_v() -> Outcome:
    net = scenarios["ldcc_fig5"].net
    found = margins(linearize(net, "open", at=50.0))
    rest = operating_point(net, 50.0)
    trip, rate = float(rest.rest.rtt.sel(flow="flow1")), float(rest.rest.rate.sel(flow="flow1"))
    at = {x: rate, **LDCC.params}
    pole, zero = float(pole_symbol(trip).subs(at)), float(slope_symbol(trip).subs(at))
    values = {"pole": pole, "zero": zero, "crossover": float(found.crossover), "gain": float(found.gain),
              "phase": float(found.phase), "delay": float(found.delay)}  # fmt: skip
    if not (max(pole, zero) < 0.5 * found.crossover and linearize(net, at=50.0).count_unstable().unstable == 0):
        return Outcome(DIFFERS, str(values), "the couple is not below the crossover", values)
    return Outcome(
        REPRODUCED,
        f"Fig. 5 with two flows: pole {pole:.3g}, zero {zero:.3g}, crossover {values['crossover']:.3g} rad/s; "
        f"gain margin {values['gain']:.3g}, phase margin {values['phase']:.3g} degrees, delay margin "
        f"{ms(values['delay'], 3)}",
        "The zero is well above the pole, which costs phase at the crossover: an integrator with this delay alone "
        "would have more.",
        values,
    )


@claim(
    "ldcc",
    "IV-B",
    "'the non-linear mapping of the experienced delay leads to a stable system'.",
    "no condition on eta",
    erratum=True,
)
def stable_without_condition() -> Outcome:
    low, high = 0.4, 4.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _unstable(_one_flow(middle)) else (middle, high)
    values = {"critical": low}
    if not _unstable(_one_flow(high * 1.01)):
        return Outcome(REPRODUCED, "stable up to eta = 4", "", values)
    return Outcome(
        DIFFERS,
        f"one flow on 3 Mbit/s: stable up to eta = {low:.6g}, unstable beyond; the paper's 0.4 is stable",
        "With delays there is a largest gain, near pi/2 for a fast flow, as with any integrator and delay, and less "
        "where the penalty is steep. The mapping keeps the equilibrium, not stability, from depending on the delay. "
        "Suspected, and confirmed.",
        values,
    )


def _one_flow(gain: float) -> Network:
    return dumbbell([LDCC(eta=gain)], {"capacity": 3e6}, rtt=0.05)


@claim(
    "ldcc",
    "IV-B",
    "With losses, the delay-based terms disappear from the linearisation, as the queue is full and its delay constant.",
    "last paragraph of IV-B",
)
def loss_driven() -> Outcome:
    bracket = unfold(FLOW)
    by_loss = diff(bracket, pi)
    gain = proof(Eq(by_loss, -eta * x / unfold(RTT)))
    excess = proof(Eq(diff((y - c) / y, y), c / y**2))
    net = scenarios["ldcc_fig6"].net
    point = operating_point(net, 200.0)
    loop = local_loop(point)
    stable = linearize(net, at=200.0).count_unstable().unstable == 0
    by_delay = float(np.abs(linearize(net, at=200.0).B2[:, :1]).max())
    found = margins(linearize(net, "open", at=200.0))
    johari = np.pi / 2 / sufficient_conditions(net, equilibrium=point)["Johari-Tan"].margin
    values = {"gain": float(found.gain), "phase": float(found.phase), "johari": johari, "feedback": by_delay}
    if not (gain and excess and stable and loop.signal == "loss"):
        return Outcome(REFUTED, str(values), "a full queue answers by its delay, or Fig. 6 is unstable", values)
    return Outcome(
        DIFFERS,
        f"Fig. 6 with three flows: only losses are in its linearisation; stable, gain margin {values['gain']:.4g}, "
        f"phase margin {values['phase']:.4g} degrees",
        "True: a full queue keeps its length, and dpi = (c/y^2) dy. Delay terms leave the linearisation but not the "
        "equilibrium: U' = v + pi, so w/x is not the loss alone where e > T. And the proofs that are referred to need "
        f"RTT times gain below pi/2 (here {johari:.3g}, by Johari and Tan): a condition on eta that the paper does not "
        "state, met by eta = 0.4 at every load since the gain is eta (1 - pi)/RTT.",
        values,
    )


def _mixed() -> Network:
    """Two links: the first loses packets from a buffer of 10 packets, the second queues."""
    net = Network().link("short", DropTail, capacity=2e6, delay=0.01, buffer="10 packets")
    net.link("long", DropTail, capacity=1.5e6, delay=0.02)
    net.flow("both", LDCC, route=["short", "long"], access_delay=0.01)
    return net.flow("a", LDCC, route=["short"]).flow("b", LDCC, route=["long"])


@claim(
    "ldcc",
    "IV-B",
    "The two parts can be studied one at a time: delays without losses, or losses at constant delay.",
    "last paragraph of IV-B",
    erratum=True,
)
def mixed_regime() -> Outcome:
    net = _mixed()
    system = linearize(net)
    mode = system.point.mode
    found = margins(linearize(net, "open"))
    count = system.count_unstable().unstable
    values = {"gain": float(found.gain), "phase": float(found.phase), "unstable": count}
    if set(mode.tolist()) != {BUSY, FULL}:
        return Outcome(REPRODUCED, f"regimes {mode.tolist()}", "", values)
    return Outcome(
        DIFFERS,
        f"a flow through a full buffer of 2 Mbit/s and a queue of 1.5 Mbit/s: one loop with losses and delays, "
        f"{'un' if count else ''}stable, gain margin {values['gain']:.3g}, phase margin {values['phase']:.3g} degrees",
        "On a path with a full link and another that queues both signals act at once: dpi = (c/y^2) dy without an "
        "integrator from the one, dq = dy/(c s) from the other. Neither (34) nor the loss-based form is its "
        "linearisation; the exact one has both. Suspected, and confirmed.",
        values,
    )


@claim(
    "ldcc",
    "(25), V",
    "The discrete law with T_s = RTT is stable where the continuous one is.",
    "T_s = RTT, eta = 0.4",
)
def sampled_law() -> Outcome:
    net = _one_flow(0.4)
    rest = equilibrium(net)
    trip = float(rest.rtt.values[0])
    radius = {r: sampled_stability(net, r * trip, rest).radius for r in (0.5, 1.0)}
    low, high = 1.0, 64.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sampled_stability(net, middle * trip, rest).stable else (low, middle)
    continuous = float(np.exp(linearize(net).roots(1)[0].real * trip))
    values = {"radius": radius[1.0], "continuous": continuous, "critical": low, "half": radius[0.5]}
    if radius[1.0] >= 1:
        return Outcome(REFUTED, f"largest multiplier {radius[1.0]:.4g}", "one flow on 3 Mbit/s", values)
    return Outcome(
        REPRODUCED,
        f"one flow on 3 Mbit/s: largest multiplier over an RTT {radius[1.0]:.4f}, continuous law {continuous:.4f}; "
        f"stable up to T_s = {low:.4g} RTT",
        "By the monodromy of the sampled law with rectangular averages over T_s, exact for any T_s/RTT. Averaging over "
        "T_s delays by T_s/2 and holding by T_s/2 more, so large eta bear shorter intervals only; see the chart.",
        values,
    )


def allowed(found: Chart) -> dict[str, Any]:
    """Allowed over critical gain of each condition, for the figure."""
    return {label: getattr(found, name) / found.exact for name, label in _LABELS.items()}
