"""The links of Sections V-C and V-D of the LDCC paper, Figs. 12 to 14; others are files here."""

from __future__ import annotations

from fluidcc.laws import Source
from fluidcc.network.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ready import Made, pick, ready
from fluidcc.sources import CBR, GCC, LDCC, LEDBAT, NADA, PlainDelayAIMD
from fluidcc.sources import StaticAIMD as AIMD
from fluidcc.sources import StaticReno as Reno

CAPACITY, ONE_WAY, UDP, PACKET = 2.5e6, 0.05, 0.5e6, 8000.0
DELAY = 0.025
R_MAX = 5e6
"""NADA's largest rate in Figs. 13 and 14 [bit/s]: not printed, chosen."""
LAWS = {"LDCC": LDCC, "NADA": NADA(R_max=R_MAX), "GCC": GCC}
_BESIDE = {"LDCC": LDCC, "LEDBAT": LEDBAT, "PlainDelayAIMD": PlainDelayAIMD}
_REF = "LDCC paper, Section "


def beside(tcp: Source, packets: float, law: Source = LDCC) -> Network:
    """The link of Fig. 12: one flow of `law`, one of TCP and 0.5 Mbit/s that do not listen."""
    flows = {name: {"law": v, "start": 0} for name, v in (("ldcc", law), ("tcp", tcp))}
    link = {"capacity": CAPACITY, "delay": ONE_WAY, "buffer": packets * PACKET}
    return dumbbell(flows | {"udp": {"law": CBR(rate=UDP)}}, link)


def alone(law: Source, capacity: float) -> Network:
    """One flow on the link of Figs. 13 and 14."""
    return dumbbell([{"law": law, "start": 0}], {"capacity": capacity, "delay": DELAY})


@ready(buffer="packet")
def ldcc_fig12(buffer: float = 90, law: str = "LDCC", tcp: str = "AIMD") -> Made:
    """LDCC, Fig. 12: beside TCP, over the buffer.

    `tcp` is AIMD, a window that is halved when the buffer overflows, or Reno, its mean.
    """
    net = beside(pick(tcp, "tcp", {"AIMD": AIMD, "Reno": Reno}), buffer, pick(law, "law", _BESIDE))
    return net, {"until": 300.0, "samples": 3001, "ref": _REF + "V-C"}


def _alone(law: str, capacity: float) -> Made:
    net = alone(pick(law, "law", LAWS), capacity)
    return net, {"until": 200.0, "samples": 8001, "ref": _REF + "V-D"}


@ready(capacity="bit/s")
def ldcc_fig13(law: str = "LDCC", capacity: float = 1.5e6) -> Made:
    """LDCC, Fig. 13: one flow of LDCC, NADA or GCC, over the capacity."""
    return _alone(law, capacity)


@ready(capacity="bit/s")
def ldcc_fig14(law: str = "GCC", capacity: float = 1.5e6) -> Made:
    """LDCC, Fig. 14: one flow of LDCC, NADA or GCC, over time."""
    return _alone(law, capacity)
