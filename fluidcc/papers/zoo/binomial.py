"""The T1 link of the binomial paper's testbed, Figs. 6 and 8 and Table I, as a queue with delay."""

from __future__ import annotations

from dataclasses import replace

from fluidcc.formulas import binomial
from fluidcc.laws import Link, Source
from fluidcc.network.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ready import Made, pick, ready
from fluidcc.sources import ISCC, TFRC, RateBinomial
from fluidcc.sources import StaticAIMD as AIMD
from fluidcc.symbols import packet, pi, x_tau

T1 = 1544e3  # Capacity of a T1 link [bit/s]
RTT, BUFFER = 0.05, 0.05  # propagation there and back, queue [s]
CONTROL = RTT + BUFFER  # the control interval: a round trip with a full queue [s]
# Table I with MTU/RTT = 100 kbit/s: alpha, k, l of window controls with beta = 1/2
WINDOWS = {
    "IIAD(0.10, 1/2)": (0.10, 1, 0),
    "SQRT(0.18, 1/2)": (0.18, 0.5, 0.5),
    "AIMD(0.19, 1/2)": (0.19, 0, 1),
}
IDEAL = {"ISCC(-1.2, 2)": -1.2, "ISCC(-1.5, 2)": -1.5}  # k; l = 2, m_D = 2, m_I = 20
BASE, UNIT = 14e3, 100e3  # lowest rate and MTU/RTT [bit/s]
# k, l, lambda, sigma
TABLE: dict[str, tuple[float, float, float, float]] = {
    name: (k, l, *binomial.window_to_rate(alpha, 0.5, k, l, UNIT, 1.0))
    for name, (alpha, k, l) in WINDOWS.items()
} | {name: (k, 2, *binomial.iscc_parameters(k, 2, T1, 20, 2)) for name, k in IDEAL.items()}


def _window(alpha: float, k: float, l: float) -> Source:
    law = RateBinomial(k=k, l=l, alpha=alpha, beta=0.5, m=UNIT, R=CONTROL)
    # no less than the base layer of the video
    return replace(law, lower={law.states[0]: BASE})


LAWS = (
    {name: _window(*one) for name, one in WINDOWS.items()}
    | {name: ISCC(k=k, l=2, m_I=20, m_D=2, C=T1, R=CONTROL) for name, k in IDEAL.items()}
    | {"TFRC": TFRC(n0=30), "windows": AIMD(a=0.19)}  # windows begin with one packet
)


def t1(
    scheme: str, n: int, link: Link | None = None, *, single: bool = False, capacity: float = T1,
    buffer: float = BUFFER,
) -> Network:  # fmt: skip
    """Flows that start at 1/2 to 3/2 of their fair share, but for TFRC and windows.

    With `single` each lost packet is a decrease.
    """
    law, given = pick(scheme, "scheme", LAWS), []
    law = law.averaged(intensity=x_tau * pi / packet) if single else law
    for i in range(n):
        first = {"x": (0.5 + i / n) * capacity / n} if scheme in TABLE else None
        given.append({"law": law, "start": 0, "packet": 12_000, "initial": first})
    spec = {"capacity": capacity, "delay": RTT / 2, "buffer": buffer * capacity}
    return dumbbell(given, spec | ({"law": link} if link else {}))


@ready(capacity="bit/s", buffer="s")
def binomial_testbed(
    scheme: str = "AIMD(0.19, 1/2)", n: int = 10, capacity: float = T1, buffer: float = BUFFER
) -> Made:
    """Binomial paper, Fig. 8 and Table I: flows of a scheme on a T1 link.

    They start at 1/2 to 3/2 of their fair share. Not given: round trip and buffer.
    """
    net = t1(scheme, n, capacity=capacity, buffer=buffer)
    return net, {"until": 120.0, "samples": 1201, "ref": "binomial paper, Section VI-C"}
