"""Sections V-C and V-D of the LDCC paper: beside TCP, NADA and GCC, Figs. 12 to 14."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, Min, Rational, nsimplify

from fluidcc.base.errors import gathered
from fluidcc.cycles.orbit import LimitCycle, limit_cycle
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import gcc, response
from fluidcc.laws import Jump, Source
from fluidcc.papers.ldcc.common import W_OVER_BETA, near, w
from fluidcc.papers.model import (
    Found,
    compared,
    differs_if,
    law_proof,
    needs_packets,
    not_given,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import falling, named, off
from fluidcc.papers.zoo.ldcc import (
    CAPACITY,
    DELAY,
    LAWS,
    ONE_WAY,
    PACKET,
    R_MAX,
    UDP,
    alone,
    beside,
)
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import GCC, LDCC, LEDBAT, NADA, CxTCP
from fluidcc.sources import StaticAIMD as AIMD
from fluidcc.sources import StaticReno as Reno
from fluidcc.sources.gcc import A, cap, g, m, p
from fluidcc.sources.gcc import T as T_follow
from fluidcc.symbols import RTT, edot, loss, packet, positive, x_tau

if TYPE_CHECKING:
    import xarray as xr

BUFFERS = (30, 60, 90, 120, 150, 180)
"""Buffers of Fig. 12 [packet]."""


@cache
def static(packets: float) -> tuple[float, float, float]:
    """Rates of LDCC and TCP [bit/s] and the loss ratio, where LDCC and the square-root law of Reno
    stand still."""
    eq = equilibrium(beside(Reno, packets))
    return eq.rate[0].item(), eq.rate[1].item(), eq.loss[0].item()


@cache
def sawtooth(packets: float, law: Source = LDCC, tol: float = 1e-6) -> LimitCycle:
    """The limit cycle of LDCC, or another law, and a window that is halved when the buffer
    overflows."""
    with gathered():  # windows of starved flows are small: the rows are about that
        return limit_cycle(beside(AIMD, packets, law), tol=tol)


def mean_rates(packets: float, law: Source = LDCC, tol: float = 1e-6) -> tuple[float, float]:
    """Mean rates of the law and of that window over the cycle [bit/s]."""
    mean = sawtooth(packets, law, tol).mean.rate
    return mean[0].item(), mean[1].item()


def _excess(packets: float) -> float:
    ldcc, tcp = mean_rates(packets)
    return ldcc - tcp


@cache
def crossing() -> float:
    """The buffer at which LDCC and TCP have the same mean rate [packet]."""
    return float(brentq(_excess, 30.0, 60.0, xtol=1e-3))


def coexistence_buffers() -> Found:
    short, long = (n * PACKET / CAPACITY for n in (BUFFERS[0], BUFFERS[-1]))
    return compared([short, long], short=short, long=long)


def coexistence_values() -> Found:
    rates = {n: mean_rates(n) for n in BUFFERS}
    return not_given(
        {f"{who} {n}": rates[n][k] for n in BUFFERS for k, who in enumerate(("LDCC", "TCP"))}
    )


def coexistence_crossing() -> Found:
    excess = list(map(_excess, BUFFERS))
    return reproduced_if(
        excess[0] > 0 and max(excess[1:]) < 0 and falling(excess),
        at=crossing(),
        first=excess[0],
        last=excess[-1],
        less=-excess[-1],
    )


def coexistence_static() -> Found:
    ratio, moving = (
        {n: rates(n)[0] / rates(n)[1] for n in BUFFERS} for rates in (static, mean_rates)
    )
    return not_given(named("static {}", ratio), named("sawtooth {}", moving))


def coexistence_delay_part() -> Found:
    with_it, without = (
        {n: mean_rates(n, law)[0] for n in (30, 180)} for law in (LDCC, LDCC(T="100 s"))
    )
    delay = {n: sawtooth(n).mean.queueing_delay[0] for n in (30, 180)}
    return reproduced_if(
        with_it[180] < with_it[30] and without[180] >= without[30],
        named("with {}", with_it),
        named("without {}", without),
        delay=delay,
    )


def coexistence_floor() -> Found:
    rates = {n: mean_rates(n)[0] for n in (180, 600, 1500)}
    still = static(20000)[0]
    return reproduced_if(
        falling([*rates.values(), still, W_OVER_BETA]),
        named("{} packets", rates),
        static=still,
        rates=rates,
    )


def coexistence_weight() -> Found:
    one, two = (mean_rates(180, LDCC(w=times * LDCC.parameter("w")))[0] for times in (1, 2))
    return reproduced_if(two > one, {"w": one, "2 w": two})


def coexistence_aggressive() -> Found:
    loss, half = response.square_root_fluid.arguments[0], response.square_root_fluid.defaults
    tcp = packet * response.square_root_fluid.expr.subs({s: nsimplify(v) for s, v in half.items()})
    bound = (w * RTT / packet) ** 2 / 2
    trip = 2 * ONE_WAY + 30 * PACKET / CAPACITY
    gap = (w / loss) ** 2 - (tcp / RTT) ** 2
    limit = bound.subs({w: LDCC.parameter("w"), packet: PACKET, RTT: trip})
    lost, (ldcc, beside_it) = sawtooth(30).loss[0].item(), mean_rates(30)
    more = proof(Eq(gap, 2 * (packet / (loss * RTT)) ** 2 * (bound - loss)))
    return differs_if(more and lost < limit and ldcc > beside_it, limit=limit, loss=lost)


def coexistence_starvation() -> Found:
    own, ledbat, cxtcp = (mean_rates(180, law)[0] for law in (LDCC, LEDBAT, CxTCP))
    return differs_if(
        own > W_OVER_BETA and cxtcp > own > ledbat,
        otherwise="reproduced" if own > W_OVER_BETA else "refuted",
        LDCC=own,
        LEDBAT=ledbat,
        CxTCP=cxtcp,
    )


def coexistence_packets() -> Found:
    return needs_packets(shared=CAPACITY - UDP)


# --- V-D: beside NADA and GCC, Figs. 13 and 14

THRESHOLD = 0.1
CAPACITIES = (0.5e6, 0.75e6, 1e6, 1.5e6, 2e6, 2.5e6, 3e6)
"""Capacities of Fig. 13 [bit/s]: the axis is lost, chosen."""


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


DELAYS: dict[str, Callable[[float], float]] = {"LDCC": ldcc_delay, "NADA": nada_delay}


def even_capacities(largest: float) -> tuple[float, float] | None:
    """The capacities between which NADA's delay is longer than LDCC's [bit/s], or None.

    R_MAX p/c > (p W/c + T)/(1 - W/c), with W = w/beta and the same propagation delay p both ways,
    is T c^2 - p (R_MAX - W) c + p R_MAX W < 0.
    """
    b = DELAY * (largest - W_OVER_BETA)
    low, high = np.sort(np.roots([THRESHOLD, -b, DELAY * largest * W_OVER_BETA]))
    return None if np.iscomplex(low) else (low, high)


def comparison_r_max() -> Found:
    return not_given(R_max=R_MAX, least=CAPACITIES[0], most=CAPACITIES[-1])


def comparison_gcc_parameters() -> Found:
    return not_given({name: GCC.parameter(name) for name in ("g", "gamma", "alpha")})


def comparison_gcc_no_rest() -> Found:
    still = {edot: 0, loss: 0, p: 0, x_tau: A}
    room = positive("r")  # cap - 1
    hold, increase = (jump.when for jump in GCC.jumps[1:3])
    never = (
        proof(Eq(GCC.flow[A].subs(still).subs(m, 1), A * Min(g, (cap - 1) / T_follow)), cap > 1),
        proof(Min(g, room / T_follow) > 0),
        proof(hold.subs({edot: 0, m: -1}) > 0),
        proof(increase.subs({edot: 0, m: 0}) > 0),
    )
    rests = np.ptp(_late(_printed(), 0.97)) < 1.0
    return differs_if(all(never) and rests, period=cycle(1.5e6).period, otherwise="refuted")


def _printed() -> Source:
    """GCC with the rule of the text: a decrease ends below the negative threshold, and only
    there."""
    gamma = next(s for s in GCC.params if s.name == "gamma")
    growing = Jump(when=Min(-gamma - edot, -m - Rational(1, 2)), reset={m: 1})
    return replace(GCC, name="PrintedGCC", jumps=(GCC.jumps[0], growing))


@cache
def _late(law: Source, alpha: float) -> Any:
    """Rates [bit/s] in the last third of 120 s at 1.5 Mbit/s."""
    return simulate(alone(law(alpha=alpha), 1.5e6), 120, samples=1201).rate.values[-400:, 0]


def comparison_gcc_rule() -> Found:
    printed = _printed()
    rate = _late(printed, 0.97)
    stuck = np.ptp(rate)
    moving = min(np.ptp(_late(*of)) for of in ((printed, 0.85), (GCC, 0.85), (GCC, 0.97)))
    return differs_if(
        stuck < 1.0 and moving > 1e4,
        stuck=stuck,
        moving=moving,
        low=rate[-1] / 1.5e6,
        otherwise="refuted",
    )


def comparison_gcc_cycle() -> Found:
    found, exact = cycle(1.5e6), closed()
    rates = [getattr(found, part).rate[0].item() / 1.5e6 for part in ("mean", "most", "least")]
    queues = [getattr(found, part).queueing_delay[0].item() for part in ("most", "mean")]
    error = off(
        np.array([found.period, *rates, *queues]),
        np.array([
            exact.period, exact.rate_mean, exact.rate_high, exact.rate_low,
            exact.queue_max, exact.queue_mean,
        ]),
    )  # fmt: skip
    taken = {name: GCC.parameter(name) for name in ("g", "gamma", "alpha")}
    return not_given(
        error=error,
        taken=taken,
        period=exact.period,
        queue_max=exact.queue_max,
        queue_mean=exact.queue_mean,
        rate=[1.5e6 * exact.rate_low, 1.5e6 * exact.rate_high],
    )


def comparison_gcc_lowest() -> Found:
    mean = closed().queue_mean
    simulated = [cycle(c).mean.queueing_delay[0].item() for c in (CAPACITIES[0], CAPACITIES[-1])]
    others = min(delay(c) for delay in DELAYS.values() for c in CAPACITIES) - DELAY
    return reproduced_if(mean < others and near(simulated, [mean, mean]), gcc=mean, others=others)


def comparison_gcc_varies() -> Found:
    c = closed()
    ratio, owd = c.queue_max / c.queue_mean, (DELAY + c.queue_max) / (DELAY + c.queue_mean)
    return not_given(ratio=ratio, owd=owd, c=c, delay=DELAY)


def comparison_owd_eq() -> Found:
    error = max(
        off(settled(LAWS["NADA"], c).one_way_delay.values[-1, 0], nada_delay(c)) for c in CAPACITIES
    )
    proof = law_proof(NADA, "V-D OWD_eq = R_MAX OWD_min/R_eq")
    return proved(proof, error=error, runs=len(CAPACITIES), checks=error < 1e-5)


def comparison_small_capacities() -> Found:
    nada, ldcc = (
        delay(CAPACITIES[0]) / delay(CAPACITIES[-1]) for delay in (nada_delay, ldcc_delay)
    )
    edges = even_capacities(R_MAX)
    assert edges is not None
    low, high = edges
    agrees = all((nada_delay(c) > ldcc_delay(c)) == (low < c < high) for c in CAPACITIES)
    e, R, W, T, d = positive("c R W T p")
    quadratic = T * e**2 - d * (R - W) * e + d * R * W
    algebra = proof(Eq(R * d / e - (d * W / e + T) / (1 - W / e), -quadratic / (e * (e - W))))
    least = (THRESHOLD**0.5 + (THRESHOLD + DELAY) ** 0.5) ** 2 / DELAY * W_OVER_BETA
    return differs_if(
        algebra and agrees and nada > ldcc and even_capacities(0.99 * least) is None,
        {"least R_max": least},
        NADA=nada,
        LDCC=ldcc,
        low=low,
        high=high,
        otherwise="refuted",
        r_max=R_MAX,
    )


def comparison_constant() -> Found:
    late, gcc = {name: settled(LAWS[name], 1.5e6) for name in DELAYS}, cycle(1.5e6)
    rate = {name: np.ptp(run.rate.values) / 1.5e6 for name, run in late.items()}
    delay = {name: np.ptp(run.one_way_delay.values) for name, run in late.items()}
    rest = {name: f(1.5e6) for name, f in DELAYS.items()}
    moved = [off(run.one_way_delay.values[-1], rest[name]) for name, run in late.items()]
    calm = max(*rate.values(), *delay.values(), *moved)
    rate["GCC"] = (gcc.most.rate[0] - gcc.least.rate[0]).item() / 1.5e6
    delay["GCC"] = (gcc.most.one_way_delay[0] - gcc.least.one_way_delay[0]).item()
    return reproduced_if(
        calm < 1e-3 < min(rate["GCC"], delay["GCC"]),
        named("{} rate", rate),
        named("{} delay", delay),
        rest,
    )
