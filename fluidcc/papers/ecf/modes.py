"""Byte and packet modes of the ECF paper's routers: what is counted, and to whom marks go."""

from __future__ import annotations

import numpy as np

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import ecf
from fluidcc.laws import Source
from fluidcc.links import RED as FixedRED
from fluidcc.links import PAQMDrop
from fluidcc.links.counting import count_packets
from fluidcc.network import Network
from fluidcc.papers.ecf.common import PACKET, RED, C, outcome
from fluidcc.papers.model import Outcome, claim
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, Reno
from fluidcc.sources.by_bytes import marked_by_bytes

ACK = 8 * 40.0
"""Length of an acknowledgement [bit]."""


def _carried(short: float) -> float:
    """Share of 0.8 c of traffic that P-AQM in packet mode lets in, where that part of all packets is of 40 bytes."""
    law = count_packets(PAQMDrop, mean=short * ACK + (1 - short) * PACKET, assumed=PACKET)
    net = Network().link("l", law, capacity=C, delay=0.01).flow("f", CBR(rate=0.8 * C), route=["l"], start=0)
    return 1 - float(simulate(net, 3, samples=3).link_loss[-1, 0])


def _ratio(law: Source) -> float:
    """Rate of flows of 1500 bytes over that of as many of 500 bytes, over RED that marks."""
    link = FixedRED(p_max=0.1, **{name: RED.parameter(name) for name in ("min_th", "max_th", "T")})
    net = Network().link("l", link, capacity=C, delay=0.03)
    for name, size in (("long", PACKET), ("short", PACKET / 3)):
        net.flow(name, law, route=["l"], packet=size)
    rate = equilibrium(net).rate.values
    return float(rate[0] / rate[1])


@claim("ecf", "(3)", "Packets or bytes are counted, as P-AQM runs in byte or packet mode.", "two modes")
def marks_by_length() -> Outcome:
    many = Reno(a=30, b=0.5 / 30)
    by_packets, by_bytes = _ratio(many), _ratio(marked_by_bytes(many, PACKET))
    good = abs(by_packets - 3) < 1e-6 and abs(by_bytes - np.sqrt(3)) < 1e-6
    return outcome(
        good, f"TCP flows of 1500 and 500 bytes on one link: rates as {by_packets:.3f} to 1 where packets are marked "
        f"alike, as {by_bytes:.3f} to 1 where bytes are",
        "the modes do not differ so", {"packets": by_packets, "bytes": by_bytes},
    )  # fmt: skip


@claim("ecf", "Section 3", "P-AQM and RED count bytes, to allow for short ICMP and ACK packets.", "byte mode")
def byte_mode() -> Outcome:
    target = [1e3 * float(ecf.set_point(100, size, C)) for size in (PACKET, (PACKET + ACK) / 2)]
    let_in = {short: _carried(short) for short in (0.0, 0.5, 0.8)}
    good = let_in[0.0] == 1 and abs(target[1] - 20.5) < 0.1 and let_in[0.8] < 0.6
    return outcome(
        good, "in packet mode, with half of all packets acknowledgements of 40 bytes, RED's 100 packets are "
        f"{target[1]:.1f} instead of {target[0]:.0f} ms; P-AQM lets in "
        f"{', '.join(f'{100 * v:.0f}' for v in let_in.values())} % of a load of 0.8 c if 0, 50, 80 % of all packets "
        "are. By bytes neither changes",
        "packet mode does no harm",
        {"delay": target[1], **{f"let in {k:g}": v for k, v in let_in.items()}},
    )  # fmt: skip
