"""Sections V-C and V-D of the LDCC paper: beside TCP, NADA and GCC, Figs. 12 to 14."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, Min, Rational, Symbol, nsimplify

from fluidcc.analysis.orbit import LimitCycle, limit_cycle
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import gcc, response
from fluidcc.laws import Jump, Source
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.common import W_OVER_BETA, near, w
from fluidcc.papers.model import Claim, Outcome, law_proof, proof
from fluidcc.papers.printed import in_unit, named
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, CBR, GCC, LDCC, LEDBAT, NADA, PlainDelayAIMD, Reno
from fluidcc.sources.gcc import A, cap, g, m, p
from fluidcc.sources.gcc import T as T_follow
from fluidcc.symbols import RTT, edot, packet, pi, x_tau

if TYPE_CHECKING:
    import xarray as xr

CAPACITY, ONE_WAY, UDP, PACKET = 2.5e6, 0.05, 0.5e6, 8000.0
BUFFERS = (30, 60, 90, 120, 150, 180)
"""Buffers of Fig. 12 [packet]."""


def beside(tcp: Source, packets: float, law: Source = LDCC) -> Network:
    """The link of Fig. 12: one flow of `law`, one of TCP and 0.5 Mbit/s that do not listen."""
    flows = {name: {"law": v, "start": 0} for name, v in (("ldcc", law), ("tcp", tcp))}
    link = {"capacity": CAPACITY, "delay": ONE_WAY, "buffer": packets * PACKET}
    return dumbbell(flows | {"udp": {"law": CBR(rate=UDP)}}, link)


@cache
def static(packets: float) -> tuple[float, float, float]:
    """Rates of LDCC and TCP [bit/s] and the loss ratio, where LDCC and the square-root law of Reno
    stand still."""
    eq = equilibrium(beside(Reno, packets))
    return float(eq.rate[0]), float(eq.rate[1]), float(eq.loss[0])


@cache
def sawtooth(packets: float, law: Source = LDCC) -> LimitCycle:
    """The limit cycle of LDCC, or another law, and a window that is halved when the buffer
    overflows."""
    return limit_cycle(beside(AIMD, packets, law), tol=1e-6)


def _rates(packets: float, law: Source = LDCC) -> tuple[float, float]:
    mean = sawtooth(packets, law).mean.rate.values
    return float(mean[0]), float(mean[1])


@cache
def crossing() -> float:
    """The buffer at which LDCC and TCP have the same mean rate [packet]."""

    def excess(packets: float) -> float:
        ldcc, tcp = _rates(packets)
        return ldcc - tcp

    return float(brentq(excess, 30.0, 60.0, xtol=1e-3))


def coexistence_buffers(claim: Claim) -> Outcome:
    short, long = (n * PACKET / CAPACITY for n in (BUFFERS[0], BUFFERS[-1]))
    return claim.compared([short, long], {"short": short, "long": long})


def coexistence_values(claim: Claim) -> Outcome:
    rates = {n: _rates(n) for n in BUFFERS}
    return claim.not_given(
        {f"{who} {n}": rates[n][k] for n in BUFFERS for k, who in enumerate(("LDCC", "TCP"))},
        computed="; ".join(
            f"{n} packets: {in_unit(a, 'kbit')} and {in_unit(b, 'kbit')}"
            for n, (a, b) in rates.items()
        ),
    )


def coexistence_crossing(claim: Claim) -> Outcome:
    excess = [a - b for a, b in map(_rates, BUFFERS)]
    at = crossing()
    return claim.reproduced_if(
        excess[0] > 0 and max(excess[1:]) < 0 and bool(np.all(np.diff(excess) < 0)),
        {"at": at, "first": excess[0], "last": excess[-1]},
        less=-excess[-1],
    )


def coexistence_static(claim: Claim) -> Outcome:
    ratio = {n: static(n)[0] / static(n)[1] for n in BUFFERS}
    moving = {n: _rates(n)[0] / _rates(n)[1] for n in BUFFERS}
    return claim.refuted_if(
        max(ratio.values()) < 1 < moving[30],
        named("static {}", ratio) | named("sawtooth {}", moving),
    )


def coexistence_delay_part(claim: Claim) -> Outcome:
    with_it = {n: _rates(n)[0] for n in (30, 180)}
    without = {n: _rates(n, LDCC(T=100))[0] for n in (30, 180)}
    delay = {n: sawtooth(n).mean.queueing_delay[0] for n in (30, 180)}
    return claim.reproduced_if(
        with_it[180] < 0.5 * with_it[30] and without[180] > without[30] * 0.99,
        named("with {}", with_it) | named("without {}", without),
        delay=delay,
    )


def coexistence_floor(claim: Claim) -> Outcome:
    rates = {n: _rates(n)[0] for n in (180, 600, 1500)}
    still = static(20000)[0]
    falling = list(rates.values())
    return claim.reproduced_if(
        falling == sorted(falling, reverse=True)
        and falling[-1] > W_OVER_BETA
        and still / W_OVER_BETA < 1.01,
        named("{} packets", rates) | {"static": still},
        rates=rates,
    )


def coexistence_weight(claim: Claim) -> Outcome:
    one, two = _rates(180)[0], _rates(180, LDCC(w=2 * LDCC.parameter("w")))[0]
    return claim.reproduced_if(two > 1.5 * one, {"w": one, "2 w": two})


def coexistence_aggressive(claim: Claim) -> Outcome:
    loss, half = response.square_root_fluid.arguments[0], response.square_root_fluid.defaults
    tcp = packet * response.square_root_fluid.expr.subs({s: nsimplify(v) for s, v in half.items()})
    limit = (w * RTT / packet) ** 2 / 2
    trip = 2 * ONE_WAY + 30 * PACKET / CAPACITY
    at = float(limit.subs({w: LDCC.parameter("w"), packet: PACKET, RTT: trip}))
    most = float(sawtooth(30).loss[0])
    return claim.proved(
        Eq((w / loss) ** 2 - (tcp / RTT) ** 2, 2 * (packet / (loss * RTT)) ** 2 * (limit - loss)),
        values={"limit": at, "loss": most},
    )


def coexistence_starvation(claim: Claim) -> Outcome:
    own = _rates(180)[0]
    others = {}
    for law in (LEDBAT, PlainDelayAIMD):
        run = simulate(beside(AIMD, 180, law), 300, samples=3001)
        others[law.name] = float(run.rate[1000:, 0].mean())
    return claim.reproduced_if(
        own > W_OVER_BETA and max(others.values()) < 0.25 * W_OVER_BETA, {"LDCC": own, **others}
    )


def coexistence_packets(claim: Claim) -> Outcome:
    return claim.out_of_reach(shared=CAPACITY - UDP)


# --- V-D: beside NADA and GCC, Figs. 13 and 14

DELAY, THRESHOLD = 0.025, 0.1
R_MAX = 5e6
"""NADA's largest rate in Figs. 13 and 14 [bit/s]: not printed, chosen."""
CAPACITIES = (0.5e6, 0.75e6, 1e6, 1.5e6, 2e6, 2.5e6, 3e6)
"""Capacities of Fig. 13 [bit/s]: the axis is lost, chosen."""
LAWS = {"LDCC": LDCC, "NADA": NADA(R_max=R_MAX), "GCC": GCC}


def alone(law: Source, capacity: float) -> Network:
    """One flow on the link of Figs. 13 and 14."""
    return dumbbell([{"law": law, "start": 0}], {"capacity": capacity, "delay": DELAY})


@cache
def settled(law: Source, capacity: float) -> xr.Dataset:
    """The last quarter of a run of 200 s of it."""
    run = simulate(alone(law, capacity), 200.0, samples=8001)
    return run.isel(time=slice(6000, None))


@cache
def cycle(capacity: float) -> LimitCycle:
    """GCC's limit cycle, by simulation."""
    return limit_cycle(alone(GCC, capacity))


def closed() -> Any:
    """GCC's limit cycle in closed form; it does not depend on the capacity."""
    return gcc.cycle(2 * DELAY, *(GCC.parameter(name) for name in ("g", "gamma", "alpha")))


def ldcc_delay(capacity: float) -> float:
    """One-way delay of LDCC alone at equilibrium [s]."""
    return float(equilibrium(alone(LDCC, capacity)).one_way_delay[0])


def nada_delay(capacity: float) -> float:
    """One-way delay of NADA alone at equilibrium [s]: R_MAX OWD_min/R_eq."""
    return R_MAX * DELAY / min(capacity, R_MAX)


def even_capacities(largest: float) -> tuple[float, float] | None:
    """The capacities between which NADA's delay is longer than LDCC's [bit/s], or None.

    R_MAX p/c > (p W/c + T)/(1 - W/c), with W = w/beta and the same propagation delay p both ways,
    is T c^2 - p (R_MAX - W) c + p R_MAX W < 0.
    """
    b = DELAY * (largest - W_OVER_BETA)
    root = b * b - 4 * THRESHOLD * DELAY * largest * W_OVER_BETA
    if root <= 0:
        return None
    return (b - root**0.5) / (2 * THRESHOLD), (b + root**0.5) / (2 * THRESHOLD)


def comparison_r_max(claim: Claim) -> Outcome:
    return claim.not_given({"R_max": R_MAX}, least=CAPACITIES[0], most=CAPACITIES[-1])


def comparison_gcc_parameters(claim: Claim) -> Outcome:
    return claim.not_given({name: GCC.parameter(name) for name in ("g", "gamma", "alpha")})


def comparison_gcc_no_rest(claim: Claim) -> Outcome:
    still = {edot: 0, pi: 0, p: 0, x_tau: A}
    growing = GCC.flow[A].subs(still).subs(m, 1)
    room = Symbol("r", positive=True)  # cap - 1
    parts = [proof(Eq(growing, A * Min(g, (cap - 1) / T_follow)), where=[cap > 1])]
    parts.append(proof(Min(g, room / T_follow) > 0))
    left = [(GCC.jumps[1].when, -1), (GCC.jumps[2].when, 0)]  # to hold, and to increase
    parts += [proof(when.subs({edot: 0, m: mode}) > 0) for when, mode in left]
    c = cycle(1.5e6)
    return claim.proved(*parts, values={"period": c.period})


def comparison_gcc_rule(claim: Claim) -> Outcome:
    gamma = next(s for s in GCC.params if s.name == "gamma")
    growing = Jump(when=Min(-gamma - edot, -m - Rational(1, 2)), reset={m: 1})
    printed = replace(GCC, name="PrintedGCC", jumps=(GCC.jumps[0], growing))
    rate = {}
    for name, law in (("printed", printed), ("draft", GCC)):
        for alpha in (0.85, 0.97):
            run = simulate(alone(law(alpha=alpha), 1.5e6), 120, samples=1201)
            rate[name, alpha] = run.rate.values[-400:, 0]
    stuck = np.ptp(rate["printed", 0.97])
    moving = min(np.ptp(v) for key, v in rate.items() if key != ("printed", 0.97))
    low = float(rate["printed", 0.97][-1]) / 1.5e6
    return claim.differs_if(
        stuck < 1.0 and moving > 1e4,
        {"stuck": stuck, "moving": moving, "low": low},
        otherwise="refuted",
    )


def comparison_gcc_cycle(claim: Claim) -> Outcome:
    found, exact = cycle(1.5e6), closed()
    pairs = (
        (found.period, exact.period),
        (float(found.mean.rate[0]) / 1.5e6, exact.rate_mean),
        (float(found.most.rate[0]) / 1.5e6, exact.rate_high),
        (float(found.least.rate[0]) / 1.5e6, exact.rate_low),
        (float(found.most.queueing_delay[0]), exact.queue_max),
        (float(found.mean.queueing_delay[0]), exact.queue_mean),
    )
    error = max(abs(a / b - 1) for a, b in pairs)
    return claim.not_given(
        {"error": error} | {k: getattr(exact, k) for k in ("period", "queue_max", "queue_mean")},
        rate=[1.5e6 * exact.rate_low, 1.5e6 * exact.rate_high],
    )


def comparison_gcc_lowest(claim: Claim) -> Outcome:
    mean = closed().queue_mean
    simulated = [float(cycle(c).mean.queueing_delay[0]) for c in (CAPACITIES[0], CAPACITIES[-1])]
    others = min(min(ldcc_delay(c), nada_delay(c)) for c in CAPACITIES) - DELAY
    return claim.reproduced_if(
        mean < others and near(simulated, [mean, mean], 1e-6), {"gcc": mean, "others": others}
    )


def comparison_gcc_varies(claim: Claim) -> Outcome:
    c = closed()
    ratio = c.queue_max / c.queue_mean
    return claim.reproduced_if(ratio > 3, {"ratio": ratio}, c=c)


def comparison_owd_eq(claim: Claim) -> Outcome:
    error = max(
        abs(settled(NADA(R_max=R_MAX), c).one_way_delay.values[-1, 0] / nada_delay(c) - 1)
        for c in CAPACITIES
    )
    return claim.proved(
        law_proof(NADA, "V-C OWD_eq = R_MAX OWD_min/R_eq"),
        values={"error": error},
        runs=len(CAPACITIES),
    )


def comparison_small_capacities(claim: Claim) -> Outcome:
    delays: dict[str, Callable[[float], float]] = {"NADA": nada_delay, "LDCC": ldcc_delay}
    grows = {name: f(CAPACITIES[0]) / f(CAPACITIES[-1]) for name, f in delays.items()}
    edges = even_capacities(R_MAX)
    assert edges is not None
    above = [c for c in CAPACITIES if nada_delay(c) > ldcc_delay(c)]
    agrees = above == [c for c in CAPACITIES if edges[0] < c < edges[1]]
    e, R, W, T, d = (Symbol(name, positive=True) for name in ("c", "R", "W", "T", "p"))
    quadratic = T * e**2 - d * (R - W) * e + d * R * W
    algebra = proof(Eq(R * d / e - (d * W / e + T) / (1 - W / e), -quadratic / (e * (e - W))))
    least = float((THRESHOLD**0.5 + (THRESHOLD + DELAY) ** 0.5) ** 2 / DELAY * W_OVER_BETA)
    nowhere = even_capacities(0.99 * least) is None
    return claim.differs_if(
        algebra and agrees and grows["NADA"] > 2 * grows["LDCC"] and nowhere,
        {**grows, "low": edges[0], "high": edges[1], "least R_max": least},
        otherwise="refuted",
        r_max=R_MAX,
    )


def comparison_constant(claim: Claim) -> Outcome:
    rate, delay = {}, {}
    for name, law in LAWS.items():
        late = settled(law, 1.5e6)
        rate[name] = np.ptp(late.rate.values) / 1.5e6
        delay[name] = np.ptp(late.one_way_delay.values)
    calm = max(spread[name] for spread in (rate, delay) for name in ("LDCC", "NADA"))
    delays = {name: f(1.5e6) for name, f in (("LDCC", ldcc_delay), ("NADA", nada_delay))}
    return claim.reproduced_if(
        calm < 1e-3 and rate["GCC"] > 0.1,
        named("{} rate", rate) | named("{} delay", delay) | delays,
    )
