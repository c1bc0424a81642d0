"""The dumbbell of Fig. 5 of the paper on ECF, and the networks of Figs. 6 to 8."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.formulas import ecf
from fluidcc.laws import Link, Source
from fluidcc.links import PAQMECF, PAQMECF2, AdaptiveRED, DropTail
from fluidcc.network.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ready import Made, pick, ready
from fluidcc.sources import DCCP, ECF, PoissonECF, SlowStartTFRC

PACKET = 12000.0  # 1500 bytes

# The paper prints no capacity but 'fairness=1.0 is 1.0 Mbit/s' for 30 sources, and 100 packets are
# 40 ms
C = 30e6
HOPS = 0.02  # From node 0 to the receivers [s]
INTERVAL = 0.04  # In which the packets of Poisson sources are counted [s]
_REF = "paper on ECF, Section 3"

# Target 100 packets = 40 ms between thresholds of 50 and 150, as adaptive RED puts them; weight
# 0.002
RED = AdaptiveRED(min_th=0.02, max_th=0.06, T=-PACKET / C / math.log(1 - 0.002))
ROUTERS = {"V1": PAQMECF, "V2": PAQMECF2}
LAWS = {"CBR": ECF, "Poisson": PoissonECF(interval=INTERVAL), "DCCP": DCCP, "TFRC": SlowStartTFRC}


def periods(rtt: float) -> tuple[float, float]:
    """Round trip to the router, and T_ECF as in both printed values: that and 120 ms more [s]."""
    near = rtt - 2 * HOPS
    return near, ecf.period(near, near + 0.12, 0.02)


def router(version: str, rtt: float) -> Link:
    """P-AQM with ECF for sources of that round trip."""
    near, T = periods(rtt)
    law = pick(version, "version", ROUTERS)(T_ECF=T, T_s=T - near)
    return law(R=near) if version == "V2" else law


def fig5(
    law: Source, link: Link, count: int, rtt: float, starts: Any = 0.0, stops: Any = math.inf
) -> Network:
    """Fig. 5: sources that start and stop, one bottleneck with 400 packets of buffer."""
    way = {"access_delay": rtt / 2 - HOPS, "return_delay": rtt / 2, "packet": PACKET}
    when = np.broadcast_arrays(starts, stops, np.zeros(count))[:2]
    flows = {
        f"s{i}": {"law": law, "start": start, "stop": None if math.isinf(stop) else stop, **way}
        for i, (start, stop) in enumerate(np.transpose(when).tolist(), 1)
    }
    return behind(link, flows)


def behind(link: Link, flows: Mapping[str, Any]) -> Network:
    """Flows behind one router, with 400 packets of buffer."""
    aqm = {"law": link, "capacity": C, "delay": HOPS, "buffer": 400 * PACKET}
    return dumbbell(flows, {"name": "aqm", **aqm})


def _transient(kind: str, rtt: float, flows: int, gap: float, stop: bool, version: str) -> Made:
    link = RED if kind in ("DCCP", "TFRC") else router(version, rtt)
    order = gap * np.arange(flows)
    when: dict[str, Any] = {"stops": gap * (flows + 1) + order[::-1]} if stop else {"starts": order}
    net = fig5(pick(kind, "kind", LAWS), link, flows, rtt, **when)
    # it knows no largest rate: each has an access link of 20 Mbit/s, with 50 packets of buffer
    for name in net.flow_names if kind == "TFRC" else ():
        own = f"access of {name}"
        net.link(own, DropTail, capacity=20e6, delay=rtt / 2 - HOPS, buffer=50 * PACKET)
        net = net.with_flow(name, route=[own, "aqm"], access_delay=0.0)
    until = gap * flows * (2 if stop else 1)
    return net, {"until": until, "samples": int(40 * until) + 1, "seed": 1, "ref": _REF + ".1"}


@ready(rtt="s", gap="s")
def ecf_fig6(
    kind: str = "CBR", rtt: float = 0.06, flows: int = 5, gap: float = 10.0, stop: bool = False,
    version: str = "V1",
) -> Made:  # fmt: skip
    """ECF, Fig. 6: sources with ECF that start, or stop, one by one.

    `kind` is CBR or Poisson, and `version` that of the router. Not given: the capacity.
    """
    return _transient(kind, rtt, flows, gap, stop, version)


@ready(rtt="s", gap="s")
def ecf_fig7(
    kind: str = "DCCP", rtt: float = 0.06, flows: int = 5, gap: float = 10.0, stop: bool = False
) -> Made:
    """ECF, Fig. 7: the same with DCCP's TCP-like control, or TFRC, over adaptive RED."""
    return _transient(kind, rtt, flows, gap, stop, "V1")


@ready(rtt="s")
def ecf_fig8(kind: str = "CBR", count: int = 30, rtt: float = 0.06, version: str = "V1") -> Made:
    """ECF, Fig. 8: 10, 30 or 100 sources that start 10 ms apart, at 60, 100 or 240 ms.

    `kind` is CBR, Poisson, or, over adaptive RED, DCCP.
    """
    link = RED if kind in ("DCCP", "TFRC") else router(version, rtt)
    net = fig5(pick(kind, "kind", LAWS), link, count, rtt, 0.01 * np.arange(count))
    return net, {"until": 100.0, "samples": 2501, "seed": 1, "ref": _REF + ".2"}
