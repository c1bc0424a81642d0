"""The network that the numbers of the paper on FAST decode to, and those of its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ready import Made, pick, ready
from fluidcc.sources import FAST, OnOff
from fluidcc.sources.propagation import with_estimator, with_pause

ALPHA = 50.0  # Packets that each flow wants in the queue: Section V

# Bits of a packet. The paper names neither its link nor its packets: (7) is its 108 ms with these
# two.
PACKET = 8000.0
C = 100e6 / PACKET  # Capacity [packet/s]: 100 Mbit/s
RTT = 0.1  # Round-trip propagation delay where the paper names none [s]
GAP = 20.0  # Seconds between arrivals in Fig. 2.

# Round-trip propagation delay in Fig. 2 [s]; the paper's is not given. At 100 ms windows settle too
# slowly.
RTT_2 = 0.04

START, WAIT = 15.0, 40.0  # the newcomer's, and its age when it pauses or probes [s]
_ESTIMATOR, _PAUSE = with_estimator(FAST), with_pause(FAST)
_REF = "paper on FAST's persistent congestion, Section V"

# What the newcomer does, in Fig. 3.
METHODS = {
    "FAST": FAST,
    "rate reduction": _PAUSE(wait=WAIT, pause=0.5),  # longer than the queue takes to empty
    "estimator": _ESTIMATOR(wait=WAIT),  # theta = -0.5 and t_eps = r*, as in the paper
}
ARRIVING = {"FAST": FAST, "estimator": _ESTIMATOR(wait=GAP / 2)}  # the laws of Fig. 2


def arriving(law: Source, rtt: float = RTT_2, flows: int = 5, apart: float = GAP) -> Network:
    """Flows of `law` that start `apart` seconds one after the other."""
    each = [{"law": law, "start": apart * i, "packet": PACKET} for i in range(flows)]
    return dumbbell(each, {"capacity": C * PACKET, "delay": rtt / 2})


def _arrivals(method: str, rtt: float, flows: int, gap: float, alpha: float) -> Made:
    law = pick(method, "method", ARRIVING)(alpha=alpha)
    return arriving(law, rtt, flows, gap), {"until": flows * gap, "samples": 2001, "ref": _REF}


@ready(rtt="s", gap="s", alpha="packet")
def fast_fig2a(
    method: str = "FAST", rtt: float = RTT_2, flows: int = 5, gap: float = GAP, alpha: float = ALPHA
) -> Made:
    """FAST, Fig. 2(a): flows that start one after the other.

    Printed: five flows, 20 s apart, alpha = 50 packets. Not given: link, packets and round trip.
    """
    return _arrivals(method, rtt, flows, gap, alpha)


@ready(rtt="s", gap="s", alpha="packet")
def fast_fig2b(
    method: str = "estimator", rtt: float = RTT_2, flows: int = 5, gap: float = GAP,
    alpha: float = ALPHA,
) -> Made:  # fmt: skip
    """FAST, Fig. 2(b): the same with the estimator, from the age of 10 s on."""
    return _arrivals(method, rtt, flows, gap, alpha)


@ready(rtt="s", gap="s", alpha="packet")
def fast_fig2c(
    method: str = "estimator", rtt: float = RTT_2, flows: int = 5, gap: float = GAP,
    alpha: float = ALPHA,
) -> Made:  # fmt: skip
    """FAST, Fig. 2(c): the queue of Figs. 2(a) and 2(b)."""
    return _arrivals(method, rtt, flows, gap, alpha)


def meeting(
    law: Source,
    rtts: Sequence[float],
    rtt: float,
    *,
    others: Source = FAST,
    newcomers: int = 1,
    apart: float = 0.0,
    buffer: float = math.inf,
) -> Network:
    """Newcomers with `law` and round trip `rtt`; all but the last wait `apart` seconds longer.

    There are already FAST flows of round trips `rtts`; `buffer` is in packets, and endless by
    default.
    """
    first = 0.5 * min(*rtts, rtt)
    net = Network().link("l", DropTail, capacity=C * PACKET, delay=first, buffer=buffer * PACKET)
    way: dict[str, Any] = {"route": ["l"], "packet": PACKET}
    alpha = others.parameter("alpha")
    for i, r in enumerate(rtts):
        # They begin near their fair share: how they came there is of no interest.
        begins = {"w": C * r / len(rtts) + alpha}
        net.flow(f"f{i}", others, start=0, access_delay=r / 2 - first, initial=begins, **way)
    for i in range(newcomers):
        late = law(wait=law.parameter("wait") + apart) if apart and i < newcomers - 1 else law
        net.flow(f"new{i}", late, start=START, access_delay=rtt / 2 - first, **way)
    return net


def _meeting(method: str, rtt: float, n: int, alpha: float) -> Made:
    net = meeting(
        pick(method, "method", METHODS)(alpha=alpha), [rtt] * n, rtt, others=FAST(alpha=alpha)
    )
    return net, {"until": START + WAIT + 35, "samples": 1801, "ref": _REF}


@ready(rtt="s", alpha="packet")
def fast_fig3a(
    method: str = "estimator", rtt: float = RTT, n: int = 8, alpha: float = ALPHA
) -> Made:
    """FAST, Fig. 3(a): a newcomer among n flows that know their delays, over the round trip.

    Printed: n = 8, alpha = 50 packets; `method` is FAST, rate reduction or estimator.
    """
    return _meeting(method, rtt, n, alpha)


@ready(rtt="s", alpha="packet")
def fast_fig3b(
    method: str = "estimator", rtt: float = RTT, n: int = 4, alpha: float = ALPHA
) -> Made:
    """FAST, Fig. 3(b): the same over n.

    Not given: the round trip.
    """
    return _meeting(method, rtt, n, alpha)


# --- Figs. 1(b) and 3(c): two bottlenecks and bursts beside them ----------------------------------

HOP = 0.004  # three hops there and back are 24 ms, below what (7) asks for
KNOWN = "knows"
LOT_START, LOT_WAIT, LOT_END = (8.0, 10.0, 38.0)  # the newcomer's; the end [s]


def lot(method: str, peak: float, hop: float = HOP, alpha: float = ALPHA) -> Network:
    """Fig. 1(b): flows of S1 to S3 cross two bottlenecks, S4's and S5's the second; S1's is new.

    With `method` "knows" it is there from the beginning.
    """
    others = FAST(alpha=alpha)
    net = Network().link("first", DropTail, capacity=50e6, delay=hop)
    net.link("second", DropTail, capacity=100e6, delay=hop)
    given: Any = {"packet": PACKET, "initial": {"w": 60}}
    for k in (2, 3, 4, 5):
        route, access = (["first", "second"], hop) if k <= 3 else (["second"], 2 * hop)
        net.flow(f"S{k}", others, route=route, start=0, access_delay=access, **given)
    at: Any = {"wait": LOT_WAIT, "alpha": alpha}
    if method == "estimator":
        at["calm"] = 0  # bursts or not
    known = method in (KNOWN, "FAST")
    law = others if known else pick(method, "method", METHODS | {KNOWN: FAST})(**at)
    begin = 0.0 if method == KNOWN else LOT_START
    net.flow("S1", law, route=["first", "second"], start=begin, access_delay=hop, **given)
    return net.flow("Sb", OnOff(peak=peak), route=["first", "second"], start=0) if peak else net


@ready(peak="bit/s", hop="s", alpha="packet")
def fast_fig3c(
    method: str = "estimator", peak: float = 20e6, hop: float = HOP, alpha: float = ALPHA
) -> Made:
    """FAST, Fig. 3(c): two bottlenecks, and a Pareto flow of 5 to 50 Mbit/s beside.

    Not given: routes, capacities and delays. `peak` None is no such flow.
    """
    run = {"until": LOT_END, "samples": 1901, "seed": 1, "ref": _REF}
    return lot(method, peak or 0.0, hop, alpha), run
