"""Sections V-C and V-D of the LDCC paper: beside TCP, NADA and GCC, Figs. 12 to 14."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, Min, Rational, Symbol, nsimplify

from fluidcc.analysis.orbit import LimitCycle, limit_cycle
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import gcc, response
from fluidcc.laws import Jump, Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import W_OVER_BETA, bound, kbit, mbit, ms, near, percent, w
from fluidcc.papers.model import (
    DIFFERS,
    NOT_GIVEN,
    OUT_OF_REACH,
    REFUTED,
    REPRODUCED,
    Outcome,
    claim,
    from_proofs,
    law_proof,
    proof,
)
from fluidcc.papers.printed import compared
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, CBR, GCC, LDCC, LEDBAT, NADA, PlainDelayAIMD, Reno
from fluidcc.sources.gcc import A, cap, g, m, p
from fluidcc.sources.gcc import T as T_follow
from fluidcc.symbols import RTT, edot, packet, pi, x_tau

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "BUFFERS", "CAPACITIES", "CAPACITY", "DELAY", "PACKET", "R_MAX", "beside", "closed",
    "crossing", "cycle", "even_capacities", "ldcc_delay", "nada_delay", "sawtooth", "settled",
    "static",
]  # fmt: skip


CAPACITY, ONE_WAY, UDP, PACKET = 2.5e6, 0.05, 0.5e6, 8000.0
BUFFERS = (30, 60, 90, 120, 150, 180)
"""Buffers of Fig. 12 [packet]."""


def beside(tcp: Source, packets: float, law: Source = LDCC) -> Network:
    """The link of Fig. 12: one flow of `law`, one of TCP and 0.5 Mbit/s that do not listen."""
    net = Network().link("bottleneck", DropTail, capacity=CAPACITY, delay=ONE_WAY, buffer=packets * PACKET)
    net.flow("ldcc", law, route=["bottleneck"], start=0).flow("tcp", tcp, route=["bottleneck"], start=0)
    return net.flow("udp", CBR(rate=UDP), route=["bottleneck"])


@lru_cache(maxsize=64)
def static(packets: float) -> tuple[float, float, float]:
    """Rates of LDCC and TCP [bit/s] and the loss ratio, where LDCC and the square-root law of Reno stand still."""
    eq = equilibrium(beside(Reno, packets))
    return float(eq.rate[0]), float(eq.rate[1]), float(eq.loss[0])


@lru_cache(maxsize=64)
def sawtooth(packets: float, law: Source = LDCC) -> LimitCycle:
    """The limit cycle of LDCC, or another law, and a window that is halved when the buffer overflows."""
    return limit_cycle(beside(AIMD, packets, law), tol=1e-6)


def _rates(packets: float, law: Source = LDCC) -> tuple[float, float]:
    mean = sawtooth(packets, law).mean.rate.values
    return float(mean[0]), float(mean[1])


@lru_cache(maxsize=1)
def crossing() -> float:
    """The buffer at which LDCC and TCP have the same mean rate [packet]."""

    def excess(packets: float) -> float:
        ldcc, tcp = _rates(packets)
        return ldcc - tcp

    return float(brentq(excess, 30.0, 60.0, xtol=1e-3))


@claim(
    "ldcc",
    "V-C",
    "Buffers of 30 to 180 packets are maximum queueing delays of roughly 100 to 600 ms.",
    "100 ms, 600 ms",
)
def coexistence_buffers() -> Outcome:
    short, long = (n * PACKET / CAPACITY for n in (BUFFERS[0], BUFFERS[-1]))
    return compared(
        [("about 100", 1e3 * short), ("about 600", 1e3 * long)],
        f"{ms(short)} to {ms(long)}",
        values={"short": short, "long": long},
    )


@claim("ldcc", "Fig. 12", "The average rates of LDCC and TCP over the buffer.", "curves; values not printed")
def coexistence_values() -> Outcome:
    rates = {n: _rates(n) for n in BUFFERS}
    return Outcome(
        NOT_GIVEN,
        "; ".join(f"{n} packets: {kbit(a)} and {kbit(b)}" for n, (a, b) in rates.items()),
        "Means over the limit cycle of LDCC (15) and a window that grows by a packet a round trip and is halved at a "
        "loss. The printed curves are lost, so that shapes are compared, not values.",
        {f"{who} {n}": rates[n][k] for n in BUFFERS for k, who in enumerate(("LDCC", "TCP"))},
    )


@claim(
    "ldcc",
    "Fig. 12",
    "More bandwidth is given to the LDCC flow for short buffers, and the reverse for long buffers.",
    "the curves cross",
)
def coexistence_crossing() -> Outcome:
    excess = [a - b for a, b in map(_rates, BUFFERS)]
    good = excess[0] > 0 and max(excess[1:]) < 0 and bool(np.all(np.diff(excess) < 0))
    at = crossing()
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"with the sawtooth of TCP: LDCC has {kbit(excess[0])} more at 30 packets and {kbit(-excess[-1])} less at 180; "
        f"the curves cross at {at:.1f} packets",
        "" if good else "the curves do not cross once",
        {"at": at, "first": excess[0], "last": excess[-1]},
    )


@claim(
    "ldcc",
    "Fig. 12",
    "What is shown are average rates at an equilibrium, which the static square-root law of TCP would give.",
    "'average rate at equilibrium'",
    erratum=True,
)
def coexistence_static() -> Outcome:
    ratio = {n: static(n)[0] / static(n)[1] for n in BUFFERS}
    moving = {n: _rates(n)[0] / _rates(n)[1] for n in BUFFERS}
    wrong = max(ratio.values()) < 1 < moving[30]
    return Outcome(
        REFUTED if wrong else REPRODUCED,
        f"LDCC over TCP at 30, 60, 180 packets: {ratio[30]:.3f}, {ratio[60]:.3f}, {ratio[180]:.3f} at the static "
        f"equilibrium, {moving[30]:.3f}, {moving[60]:.3f}, {moving[180]:.3f} on the limit cycle",
        "Where LDCC (15) and the fluid of Misra, Gong and Towsley stand still with a full queue, LDCC has less than "
        "TCP at every buffer: the curves do not cross. The figure needs the sawtooth, in which the queue is full only "
        "for a moment of each cycle, and LDCC takes what a halved window leaves.",
        {f"static {n}": ratio[n] for n in BUFFERS} | {f"sawtooth {n}": moving[n] for n in BUFFERS},
    )


@claim(
    "ldcc",
    "V-C",
    "The rate of LDCC falls with the buffer because of the delay-based part: the experienced delay is higher.",
    "",
)
def coexistence_delay_part() -> Outcome:
    with_it = {n: _rates(n)[0] for n in (30, 180)}
    without = {n: _rates(n, LDCC(T=100))[0] for n in (30, 180)}
    delay = {n: float(sawtooth(n).mean.queueing_delay[0]) for n in (30, 180)}
    good = with_it[180] < 0.5 * with_it[30] and without[180] > without[30] * 0.99
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"from 30 to 180 packets the mean queue grows from {ms(delay[30])} to {ms(delay[180])} and LDCC's rate falls "
        f"from {kbit(with_it[30])} to {kbit(with_it[180])}; without the delay-based part it does not fall: "
        f"{kbit(without[30])} and {kbit(without[180])} are sent",
        "" if good else "the fall is not due to the delay-based part",
        {"with 30": with_it[30], "with 180": with_it[180], "without 30": without[30], "without 180": without[180]},
    )


@claim("ldcc", "V-C", "For long buffers the rate does not reach zero but tends to w/beta.", "w/beta = 200 kbit/s")
def coexistence_floor() -> Outcome:
    rates = {n: _rates(n)[0] for n in (180, 600, 1500)}
    still = static(20000)[0]
    falling = list(rates.values())
    good = falling == sorted(falling, reverse=True) and falling[-1] > W_OVER_BETA and still / W_OVER_BETA < 1.01
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"{', '.join(f'{kbit(v)} at {n}' for n, v in rates.items())} packets; {kbit(still)} at the static equilibrium "
        "with 20000",
        "" if good else "another limit",
        {**{f"{n} packets": v for n, v in rates.items()}, "static": still},
    )


@claim("ldcc", "V-C", "By modifying w the minimum rate in large delays can be increased.", "")
def coexistence_weight() -> Outcome:
    one, two = _rates(180)[0], _rates(180, LDCC(w=2 * LDCC.parameter("w")))[0]
    good = two > 1.5 * one
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"at 180 packets {kbit(one)} with w = 20 kbit/s and {kbit(two)} with 40 kbit/s",
        "" if good else "it hardly changes",
        {"w": one, "2 w": two},
    )


@claim("ldcc", "V-C", "At losses below (w RTT/packet)^2/2 the loss-based part of LDCC is more aggressive than TCP.", "")
def coexistence_aggressive() -> Outcome:
    loss, half = response.square_root_fluid.arguments[0], response.square_root_fluid.defaults
    tcp = packet * response.square_root_fluid.expr.subs({s: nsimplify(v) for s, v in half.items()})
    limit = (w * RTT / packet) ** 2 / 2
    at = float(limit.subs({w: LDCC.parameter("w"), packet: PACKET}).subs(RTT, 2 * ONE_WAY + 30 * PACKET / CAPACITY))
    most = float(sawtooth(30).loss[0])
    verdict = proof(Eq((w / loss) ** 2 - (tcp / RTT) ** 2, 2 * (packet / (loss * RTT)) ** 2 * (limit - loss)))
    return from_proofs(
        verdict,
        computed=f"at equal losses pi, w/pi exceeds TCP's packet sqrt(2/pi)/RTT iff pi < (w RTT/packet)^2/2: below "
        f"{percent(at)} at 30 packets, where {percent(most)} are lost",
        reason="The paper names no bound; beyond it TCP is the more aggressive one.",
        values={"limit": at, "loss": most},
    )


@claim(
    "ldcc",
    "V-C",
    "LDCC does not starve beside TCP even for large queueing delays, as other delay-based controls do.",
    "",
)
def coexistence_starvation() -> Outcome:
    own = _rates(180)[0]
    others = {}
    for law in (LEDBAT, PlainDelayAIMD):
        run = simulate(beside(AIMD, 180, law), 300, samples=3001)
        others[law.name] = float(run.rate[1000:, 0].mean())
    good = own > W_OVER_BETA and max(others.values()) < 0.25 * W_OVER_BETA
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"at 180 packets LDCC has {kbit(own)}, LEDBAT {kbit(others['LEDBAT'])}, delay-based AIMD "
        f"{kbit(others['PlainDelayAIMD'])} of 2 Mbit/s",
        "" if good else "the others do not starve",
        {"LDCC": own, **others},
    )


@claim("ldcc", "V-C", "TCP is New Reno, packet by packet: slow start, fast recovery and timeouts.", "NS-3")
def coexistence_packets() -> Outcome:
    return Outcome(
        OUT_OF_REACH,
        f"one halving a round trip with losses; {mbit(CAPACITY - UDP)} are shared",
        "A fluid has congestion avoidance only. Which of the packets of an overflow are lost, and so which flow hears "
        "of it, is not in it: here both hear of every overflow.",
    )


# --- Section V-D of the LDCC paper: beside NADA and GCC, Figs. 13 and 14


DELAY, THRESHOLD = 0.025, 0.1
R_MAX = 5e6
"""NADA's largest rate in Figs. 13 and 14 [bit/s]: not printed, chosen."""
CAPACITIES = (0.5e6, 0.75e6, 1e6, 1.5e6, 2e6, 2.5e6, 3e6)
"""Capacities of Fig. 13 [bit/s]: the axis is lost, chosen."""


def alone(law: Source, capacity: float) -> Network:
    """One flow on the link of Figs. 13 and 14."""
    return Network().link("link", DropTail, capacity=capacity, delay=DELAY).flow("flow", law, route=["link"], start=0)


@lru_cache(maxsize=64)
def settled(law: Source, capacity: float, until: float = 200.0) -> xr.Dataset:
    """The last quarter of a run of it."""
    run = simulate(alone(law, capacity), until, samples=8001)
    return run.isel(time=slice(6000, None))


@lru_cache(maxsize=32)
def cycle(capacity: float, law: Source = GCC) -> LimitCycle:
    """GCC's limit cycle, by simulation."""
    return limit_cycle(alone(law, capacity))


def closed() -> Any:
    """GCC's limit cycle in closed form; it does not depend on the capacity."""
    return gcc.cycle(2 * DELAY, *(GCC.parameter(name) for name in ("g", "gamma", "alpha")))


def ldcc_delay(capacity: float) -> float:
    """One-way delay of LDCC alone at equilibrium [s]."""
    return float(equilibrium(alone(LDCC, capacity)).one_way_delay[0])


def nada_delay(capacity: float, largest: float = R_MAX) -> float:
    """One-way delay of NADA alone at equilibrium [s]: R_MAX OWD_min/R_eq."""
    return largest * DELAY / min(capacity, largest)


def even_capacities(largest: float) -> tuple[float, float] | None:
    """The capacities between which NADA's delay is longer than LDCC's [bit/s], or None if there are none.

    R_MAX p/c > (p W/c + T)/(1 - W/c), with W = w/beta and the same propagation delay p both ways, is
    T c^2 - p (R_MAX - W) c + p R_MAX W < 0.
    """
    b = DELAY * (largest - W_OVER_BETA)
    root = b * b - 4 * THRESHOLD * DELAY * largest * W_OVER_BETA
    if root <= 0:
        return None
    return (b - root**0.5) / (2 * THRESHOLD), (b + root**0.5) / (2 * THRESHOLD)


# --- what is not printed


@claim("ldcc", "Figs. 13, 14", "R_MAX and the capacities of Fig. 13.", "not printed")
def comparison_r_max() -> Outcome:
    return Outcome(
        NOT_GIVEN,
        f"R_MAX = {mbit(R_MAX)}, capacities of {mbit(CAPACITIES[0])} to {mbit(CAPACITIES[-1])}",
        "The text has NADA above LDCC for small capacities, which needs an R_MAX of 3.6 Mbit/s at least.",
        {"R_max": R_MAX},
    )


@claim("ldcc", "V-D", "The parameters of the simplified GCC.", "not printed")
def comparison_gcc_parameters() -> Outcome:
    return Outcome(
        NOT_GIVEN,
        "growth by 8 % a second, decrease to 0.85 of what is received, thresholds of +-0.05",
        "Growth and decrease are those of the IETF draft (draft-ietf-rmcat-gcc-02). Its thresholds are of a filtered "
        "delay variation between groups of packets; a gradient of 0.05 is chosen, a third of the pace at which the "
        "queue drains after a decrease.",
        {name: GCC.parameter(name) for name in ("g", "gamma", "alpha")},
    )


# --- GCC


@claim(
    "ldcc",
    "V-D",
    "It is impossible for GCC to reach an equilibrium rate.",
    "no equilibrium; it necessarily oscillates",
)
def comparison_gcc_no_rest() -> Outcome:
    still = {edot: 0, pi: 0, p: 0, x_tau: A}
    growing = GCC.flow[A].subs(still).subs(m, 1)
    room = Symbol("r", positive=True)  # cap - 1
    parts = [proof(Eq(growing, A * Min(g, (cap - 1) / T_follow)), where=[cap > 1])]
    parts.append(proof(Min(g, room / T_follow) > 0))
    left = [(GCC.jumps[1].when, -1), (GCC.jumps[2].when, 0)]  # from decrease to hold, from hold to increase
    parts += [proof(when.subs({edot: 0, m: mode}) > 0) for when, mode in left]
    c = cycle(1.5e6)
    return from_proofs(
        *parts,
        computed="with a delay that rests, decrease and hold are left at once, and in increase the rate grows: A' = A "
        f"min(g, (cap - 1)/T) > 0. At 1.5 Mbit/s it has a limit cycle of {c.period:.4g} s",
        reason="That it oscillates is computed, see the rows on Fig. 14.",
        values={"period": c.period},
    )


@claim(
    "ldcc",
    "V-D",
    "At the threshold GCC decreases the rate until the queueing derivative is smaller than a negative threshold.",
    "decrease ends below the negative threshold",
    erratum=True,
)
def comparison_gcc_rule() -> Outcome:
    half = Rational(1, 2)
    gamma = next(s for s in GCC.params if s.name == "gamma")
    printed = replace(
        GCC,
        name="PrintedGCC",
        jumps=(GCC.jumps[0], Jump(when=Min(-gamma - edot, -m - half), reset={m: 1})),
    )
    runs = {
        (name, alpha): simulate(alone(law(alpha=alpha), 1.5e6), 120, samples=1201)
        for name, law in (("printed", printed), ("draft", GCC))
        for alpha in (0.85, 0.97)
    }
    rate = {key: run.rate.values[-400:, 0] for key, run in runs.items()}
    stuck = float(np.ptp(rate["printed", 0.97]))
    moving = min(float(np.ptp(v)) for key, v in rate.items() if key != ("printed", 0.97))
    low = float(rate["printed", 0.97][-1]) / 1.5e6
    good = stuck < 1.0 and moving > 1e4
    return Outcome(
        DIFFERS if good else REFUTED,
        f"with a decrease to 0.85 the printed rule cycles; with a decrease to 0.97 it stays at {low:.3g} c for ever, "
        "where the draft's automaton goes on",
        "A queue that drains more slowly than the threshold is never below it, and once it is empty its derivative is "
        "0: the printed rule then never increases again. It needs 1 - alpha > gamma, or an empty queue to count as "
        "underuse, as in the draft, where the end of over-use ends the decrease.",
        {"stuck": stuck, "moving": moving, "low": low},
    )


@claim("ldcc", "Fig. 14", "GCC's rate and delay over time: a cycle.", "curves; values not printed")
def comparison_gcc_cycle() -> Outcome:
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
    return Outcome(
        NOT_GIVEN,
        f"period {exact.period:.5g} s, rate {mbit(exact.rate_low * 1.5e6)} to {mbit(exact.rate_high * 1.5e6)}, queue "
        f"up to {ms(exact.queue_max)}, {ms(exact.queue_mean)} on average; the simulated cycle is the closed form "
        f"within {bound(error)}",
        "The cycle is in closed form for the parameters taken; the printed curves are lost.",
        {"period": exact.period, "error": error, "queue_max": exact.queue_max, "queue_mean": exact.queue_mean},
    )


@claim("ldcc", "Fig. 13", "GCC achieves a lower average self-inflicted delay for all the tested rates.", "lowest")
def comparison_gcc_lowest() -> Outcome:
    mean = closed().queue_mean
    simulated = [float(cycle(c).mean.queueing_delay[0]) for c in (CAPACITIES[0], CAPACITIES[-1])]
    others = min(min(ldcc_delay(c), nada_delay(c)) for c in CAPACITIES) - DELAY
    good = mean < others and near(simulated, [mean, mean], 1e-6)
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"{ms(mean)} of queue at every capacity, as the closed form does not contain it; LDCC and NADA have "
        f"{ms(others)} at least",
        "" if good else "not the lowest",
        {"gcc": mean, "others": others},
    )


@claim(
    "ldcc",
    "V-D",
    "The variability of GCC's delay is pretty large: the maximum is much higher than the average.",
    "maximum >> average",
)
def comparison_gcc_varies() -> Outcome:
    c = closed()
    ratio = c.queue_max / c.queue_mean
    return Outcome(
        REPRODUCED if ratio > 3 else DIFFERS,
        f"{ms(c.queue_max)} against {ms(c.queue_mean)} of queue, {ratio:.3g} times the average",
        "" if ratio > 3 else "not much higher",
        {"ratio": ratio},
    )


# --- NADA


@claim("ldcc", "V-D", "The equilibrium of NADA is OWD_eq = R_MAX OWD_min/R_eq.", "R_MAX OWD_min/R_eq")
def comparison_owd_eq() -> Outcome:
    error = max(
        abs(float(settled(NADA(R_max=R_MAX), c).one_way_delay.values[-1, 0]) / nada_delay(c) - 1) for c in CAPACITIES
    )
    return from_proofs(
        law_proof(NADA, "V-C OWD_eq = R_MAX OWD_min/R_eq"),
        computed="every equilibrium of the form of 2013 without losses, with R_MIN = 0 and weight 1, is that one; "
        f"runs at {len(CAPACITIES)} capacities end within {bound(error)} of it",
        reason="With a least rate, (R_eq - R_MIN) OWD_eq = (R_MAX - R_MIN) OWD_min.",
        values={"error": error},
    )


@claim(
    "ldcc",
    "Fig. 13",
    "NADA converges to a larger delay for small capacities, while LDCC alleviates the variations across capacities.",
    "NADA above LDCC at small capacities",
)
def comparison_small_capacities() -> Outcome:
    grows = {name: f(CAPACITIES[0]) / f(CAPACITIES[-1]) for name, f in (("NADA", nada_delay), ("LDCC", ldcc_delay))}
    edges = even_capacities(R_MAX)
    assert edges is not None
    above = [c for c in CAPACITIES if nada_delay(c) > ldcc_delay(c)]
    agrees = above == [c for c in CAPACITIES if edges[0] < c < edges[1]]
    e, R, W, T, d = (Symbol(name, positive=True) for name in ("c", "R", "W", "T", "p"))
    algebra = proof(
        Eq(R * d / e - (d * W / e + T) / (1 - W / e), -(T * e**2 - d * (R - W) * e + d * R * W) / (e * (e - W)))
    )
    least = _least_r_max()
    good = bool(algebra) and agrees and grows["NADA"] > 2 * grows["LDCC"] and even_capacities(0.99 * least) is None
    return Outcome(
        DIFFERS if good else REFUTED,
        f"from 3 to 0.5 Mbit/s NADA's delay grows {grows['NADA']:.3g}-fold, LDCC's {grows['LDCC']:.3g}-fold; with "
        f"R_MAX = {mbit(R_MAX)} NADA's is the longer one from {mbit(edges[0], 3)} to {mbit(edges[1], 3)}",
        "LDCC's delay alleviates the variation until the capacity is near w/beta = 0.2 Mbit/s, where by (19) it grows "
        "without limit and is the longer one again. And with an R_MAX below (sqrt(T) + sqrt(T + p))^2/p w/beta, "
        f"{mbit(least)} here, NADA's delay is shorter than LDCC's at every capacity.",
        {**grows, "low": edges[0], "high": edges[1], "least R_max": least},
    )


def _least_r_max() -> float:
    """The R_MAX below which NADA's delay is nowhere longer than LDCC's [bit/s]."""
    return float((THRESHOLD**0.5 + (THRESHOLD + DELAY) ** 0.5) ** 2 / DELAY * W_OVER_BETA)


# --- Fig. 14


@claim("ldcc", "Fig. 14", "At 1.5 Mbit/s LDCC and NADA achieve a constant rate and delay; GCC does not.", "")
def comparison_constant() -> Outcome:
    spread = {}
    for name, law in (("LDCC", LDCC), ("NADA", NADA(R_max=R_MAX)), ("GCC", GCC)):
        late = settled(law, 1.5e6)
        spread[name] = float(np.ptp(late.rate.values)) / 1.5e6, float(np.ptp(late.one_way_delay.values))
    calm = max(max(v) for name, v in spread.items() if name != "GCC")
    good = calm < 1e-3 and spread["GCC"][0] > 0.1
    delays = {name: f(1.5e6) for name, f in (("LDCC", ldcc_delay), ("NADA", nada_delay))}
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"LDCC and NADA rest at c with {ms(delays['LDCC'])} and {ms(delays['NADA'])}; GCC's rate moves by "
        f"{percent(spread['GCC'][0])} of c and its delay by {ms(spread['GCC'][1])}",
        "" if good else "another of them moves",
        {f"{k} {what}": v[i] for k, v in spread.items() for i, what in enumerate(("rate", "delay"))} | delays,
    )
