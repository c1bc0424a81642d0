"""Section VI of the LDCC paper: what it says of LEDBAT, Cx-TCP, NADA and GCC."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sympy import symbols

from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.coexistence import CAPACITY, PACKET, beside
from fluidcc.papers.ldcc.common import kbit, ms, percent
from fluidcc.papers.model import DIFFERS, REPRODUCED, Outcome, claim, from_proofs, law_proof, proof
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, GCC, LEDBAT, NADA, NADA8698, AdaptiveGCC, CxTCP

__all__ = ["beside_tcp"]


@lru_cache(maxsize=32)
def beside_tcp(law: Source, packets: int) -> tuple[float, float]:
    """Mean rates of a law and of TCP on the link of Fig. 12, over the last 400 of 600 s [bit/s]."""
    mean = simulate(beside(AIMD, packets, law), 600, samples=6001).rate[2000:].mean("time")
    return float(mean[0]), float(mean[1])


def _link(*laws: Source, capacity: float = CAPACITY, later: float = 0.0, buffer: float | None = None) -> Network:
    net = Network().link("link", DropTail, capacity=capacity, delay=0.05, buffer=buffer)
    for i, law in enumerate(laws):
        net.flow(f"flow{i}", law, route=["link"], start=i * later)
    return net


@claim("ldcc", "VI", "LEDBAT starves when competing against pure TCP flows.", "")
def related_ledbat_starves() -> Outcome:
    rate, tcp = beside_tcp(LEDBAT, 180)
    least = 2 * PACKET / (0.1 + 180 * PACKET / CAPACITY)
    good = rate < 0.05 * tcp
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"{kbit(rate)} beside {kbit(tcp)} with 180 packets of buffer; its smallest window is {kbit(least)} at a full "
        "buffer",
        "" if good else "it holds its own",
        {"LEDBAT": rate, "TCP": tcp},
    )


@claim("ldcc", "VI", "Latecomers of LEDBAT overestimate the propagation delay and achieve an unfair rate.", "")
def related_ledbat_late() -> Outcome:
    run = simulate(_link(LEDBAT, LEDBAT, later=60.0), 200, samples=2001)
    first, late = (float(v) for v in run.rate.values[-1])
    seen = run.rtt.values[-1] - run.LEDBAT_delta.values[-1]
    good = late > 3 * first and seen[1] > seen[0] + 0.05
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"the newcomer takes {ms(float(seen[1]))} for its round trip where {ms(float(seen[0]))} are true, and has "
        f"{kbit(late)} beside {kbit(first)}",
        "" if good else "the shares are fair",
        {"first": first, "late": late},
    )


@claim("ldcc", "VI", "The backoff probability of Cx-TCP rises linearly with the delay, then decreases to zero.", "")
def related_cxtcp_law() -> Outcome:
    return from_proofs(
        *(law_proof(CxTCP, label) for label in CxTCP.claims),
        computed="the law: it rests where W^2 p = a/b, p being lost or drawn, and where none are drawn it is Reno",
        reason="The shape of the decrease and the values are not given: a linear one within `fall` was taken, and the "
        "probability is that of a packet.",
    )


@claim("ldcc", "VI", "Cx-TCP coexists very well with loss-based flows.", "[26]")
def related_cxtcp_coexists() -> Outcome:
    shares = {n: beside_tcp(CxTCP, n) for n in (30, 60, 180)}
    ratio = {n: a / b for n, (a, b) in shares.items()}
    alone = simulate(_link(CxTCP(peak=0.01), CxTCP(peak=0.01), buffer=CAPACITY), 200)
    queue = float(alone.queueing_delay[-1, 0])
    good = 0.8 < ratio[180] < 1.3 and 0.8 < ratio[60] < 1.3 and queue < 0.02
    return Outcome(
        DIFFERS if good and ratio[30] < 0.8 else REPRODUCED if good else DIFFERS,
        f"its rate over TCP's is {ratio[60]:.3g} and {ratio[180]:.3g} with 60 and 180 packets of buffer, "
        f"{ratio[30]:.3g} with 30; two flows of its own rest with {ms(queue)} of queue",
        "With 30 packets the buffer, 96 ms, is often within the range in which it backs off by itself (up to 60 ms).",
        {**{f"{n} packets": v for n, v in ratio.items()}, "queue": queue},
    )


@claim("ldcc", "VI", "NADA seems able to maintain a consistent sending rate when competing against TCP flows.", "[17]")
def related_nada_consistent() -> Outcome:
    rates = {n: beside_tcp(NADA(R_max=CAPACITY), n)[0] for n in (30, 60, 180)}
    consistent = min(rates.values()) > 0.7 * max(rates.values())
    return Outcome(
        REPRODUCED if consistent else DIFFERS,
        f"{', '.join(f'{kbit(v)} with {n}' for n, v in rates.items())} packets of buffer",
        ""
        if consistent
        else "It does not starve; but as R_eq = R_MAX OWD_min/OWD, its rate falls with the queue that TCP builds.",
        {f"{n} packets": v for n, v in rates.items()},
    )


@claim(
    "ldcc",
    "VI",
    "Where the propagation delay exceeds x_ref = 10 ms, the new design of NADA has less "
    "self-inflicted delay at low capacity.",
    "significantly reduced",
)
def related_nada_new() -> Outcome:
    R, p, x_ref, r = symbols("R p x r", positive=True)
    new, old = x_ref * R / r, p * (R / r - 1)
    share = 1 - 0.01 / 0.025
    values = {}
    for capacity in (0.3e6, 0.6e6):
        for law in (NADA8698, NADA):
            net = Network().link("link", DropTail, capacity=capacity, delay=0.025).flow("flow", law, route=["link"])
            values[f"{law.name} {capacity:g}"] = float(simulate(net, 200).queueing_delay[-1, 0])
    return from_proofs(
        proof((old - new) * r - (R * (p - x_ref) - p * r)),
        law_proof(NADA8698, "(7) stands where x = PRIO XREF RMAX/r"),
        computed="x_ref R_MAX/r of queue in RFC 8698 against p (R_MAX/r - 1) of 2013: less below R_MAX (1 - x_ref/p), "
        f"{percent(share)} of R_MAX for p = 25 ms. At a fifth of R_MAX, {ms(values['NADA8698 300000'])} against "
        f"{ms(values['NADA 300000'])}",
        reason="Where the propagation delay p is 10 ms or less, the new design queues more at every rate.",
        values=values,
    )


@claim("ldcc", "VI", "The original GCC starves beside TCP; a modification of its delay-based part alleviates this.", "")
def related_gcc_starves() -> Outcome:
    fixed, adaptive = ({n: beside_tcp(law, n)[0] for n in (30, 180)} for law in (GCC, AdaptiveGCC))
    good = fixed[30] < 1e4 and min(adaptive.values()) > 2e5
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"with a fixed threshold {kbit(fixed[30], 2)} and {kbit(fixed[180])} with 30 and 180 packets of buffer, with "
        f"the adaptive threshold {kbit(adaptive[30])} and {kbit(adaptive[180])}",
        "" if good else "it does not starve, or the threshold does not help",
        {f"{name} {n}": v for name, d in (("fixed", fixed), ("adaptive", adaptive)) for n, v in d.items()},
    )


@claim("ldcc", "VI", "GCC has a poor intra-protocol fairness.", "[19], [20]")
def related_gcc_unfair() -> Outcome:
    net = Network().link("link", DropTail, capacity=2e6, delay=0.025)
    for name, rate in (("small", 2e5), ("large", 6e5)):
        net.flow(name, GCC, route=["link"], start=0, initial={"A": rate})
    run = simulate(net, 120, samples=1201)
    ratio = run.rate.values[:, 1] / run.rate.values[:, 0]
    kept = float(np.ptp(ratio)) < 1e-5
    return Outcome(
        REPRODUCED if kept else DIFFERS,
        f"two flows with the same round trip that begin at 200 and 600 kbit/s still have a ratio of {ratio[-1]:.4f} "
        f"after {run.attrs['jumps']} changes of mode",
        "Both the increase and the decrease multiply the rate, and flows that see the same gradient switch together: "
        "nothing brings them nearer.",
        {"ratio": float(ratio[-1])},
    )
