"""Fig. 8 and Table I of the binomial paper as a study on a link with a queue and delayed feedback: qualitative."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from fluidcc.formulas import binomial
from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.binomial.common import T1, percent
from fluidcc.papers.model import OUT_OF_REACH, Outcome, claim
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import ISCC, TFRC, RateBinomial

__all__ = ["NETWORK_FLOWS", "PRINTED", "network_losses"]

NETWORK_FLOWS = (2, 5, 10, 20, 50)
PRINTED = {
    "IIAD(0.10, 1/2)": (0.29, 44.7), "SQRT(0.18, 1/2)": (0.26, 27.8), "AIMD(0.19, 1/2)": (0.30, 25.5),
    "TFRC": (0.27, 20.9), "ISCC(-1.2, 2)": (0.69, 12.0), "ISCC(-1.5, 2)": (0.57, 2.3),
}  # fmt: skip
"""p_2 and p_50 of Table I [%]."""
RTT, BUFFER, BASE, UNIT = 0.05, 0.05, 14e3, 100e3  # base [s], queue [s], lowest rate and MTU/RTT [bit/s]
CONTROL = RTT + BUFFER  # the control interval: a round trip with a full queue [s]


@lru_cache(maxsize=1)
def _laws() -> dict[str, Source]:
    tcp = {"IIAD(0.10, 1/2)": (1, 0, 0.10), "SQRT(0.18, 1/2)": (0.5, 0.5, 0.18), "AIMD(0.19, 1/2)": (0, 1, 0.19)}
    laws: dict[str, Source] = {}
    for name, (k, l, alpha) in tcp.items():
        law = RateBinomial(k=k, l=l, alpha=alpha, beta=0.5, m=UNIT, R=CONTROL)
        laws[name] = replace(law, lower={law.states[0]: BASE})  # no less than the base layer of the video
    for k in (-1.2, -1.5):
        laws[f"ISCC({k}, 2)"] = ISCC(k=k, l=2, m_I=20, m_D=2, C=T1, R=CONTROL)
    return laws | {"TFRC": TFRC(n0=30)}


@lru_cache(maxsize=8)
def network_losses(name: str) -> dict[int, float]:
    """Lost over sent between 60 and 120 s, by flows that start at 1/2 to 3/2 of their fair share."""
    law, found = _laws()[name], {}
    for n in NETWORK_FLOWS:
        net = Network().link("T1", DropTail, capacity=T1, delay=RTT / 2, buffer=BUFFER * T1)
        for i in range(n):
            first = {"x": (0.5 + i / n) * T1 / n} if name != "TFRC" else None
            net.flow(f"f{i}", law, route=["T1"], return_delay=RTT / 2, start=0, packet=12_000, initial=first)
        run = simulate(net, 120, samples=3, progress=False)
        sent, lost = (np.diff(run[kind].values[1:, 0])[0] for kind in ("entered", "lost"))
        found[n] = float(lost / sent)
    return found


@claim("binomial", "Table I, Fig. 8", "Losses of six schemes for 2 to 50 flows on a T1 link.", "p_2, p_50")
def testbed_in_a_network() -> Outcome:
    found = {name: network_losses(name) for name in PRINTED}
    grows = {name: p[50] / p[2] for name, p in found.items()}
    # while there is loss the automaton still climbs: beyond this n a decrease a round trip is less than an increase
    lam, sigma = binomial.iscc_parameters(-1.2, 2, 1.0, 20, 2)
    limit = (sigma / lam) ** (1 / 0.8)
    return Outcome(
        OUT_OF_REACH,
        "; ".join(
            f"{name} {percent(p[2], 2)} to {percent(p[50], 2)} (testbed {PRINTED[name][0]} to {PRINTED[name][1]} %)"
            for name, p in found.items()
        ),
        "Testbed measurements; only trends can be compared. Taken: a drop-tail queue of 50 ms, 50 ms of propagation, "
        "one decrease a control interval of 100 ms, MTU/RTT = 100 kbit/s, m_D = 2, m_I = 20, at least 14 kbit/s each. "
        "The TCP-friendly binomial schemes grow steeply, ISCC(-1.5, 2) does not. As an automaton, which climbs between "
        f"two decreases also while there is loss, ISCC(-1.2, 2) fails beyond {limit:.1f} flows: the increase of an "
        "interval exceeds what a decrease takes; in (2) an interval with loss has no increase. TFRC counts one loss "
        "event a round trip however many packets are lost, so a fluid that loses them together hardly loses more.",
        grows,
    )
