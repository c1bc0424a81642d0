"""Section V-C of the LDCC paper: beside TCP, Fig. 12; the static equilibrium and the sawtooth."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, nsimplify

from fluidcc.analysis.orbit import LimitCycle, limit_cycle
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import response
from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.common import W_OVER_BETA, kbit, mbit, ms, percent, w
from fluidcc.papers.model import (
    DIFFERS,
    NOT_GIVEN,
    OUT_OF_REACH,
    REFUTED,
    REPRODUCED,
    Outcome,
    claim,
    from_proofs,
    proof,
)
from fluidcc.papers.printed import compared
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, CBR, LDCC, LEDBAT, PlainDelayAIMD, Reno
from fluidcc.symbols import RTT, packet

__all__ = ["BUFFERS", "CAPACITY", "PACKET", "beside", "crossing", "sawtooth", "static"]

CAPACITY, DELAY, UDP, PACKET = 2.5e6, 0.05, 0.5e6, 8000.0
BUFFERS = (30, 60, 90, 120, 150, 180)
"""Buffers of Fig. 12 [packet]."""


def beside(tcp: Source, packets: float, law: Source = LDCC) -> Network:
    """The link of Fig. 12: one flow of `law`, one of TCP and 0.5 Mbit/s that do not listen."""
    net = Network().link("bottleneck", DropTail, capacity=CAPACITY, delay=DELAY, buffer=packets * PACKET)
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
    at = float(limit.subs({w: LDCC.parameter("w"), packet: PACKET}).subs(RTT, 2 * DELAY + 30 * PACKET / CAPACITY))
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
