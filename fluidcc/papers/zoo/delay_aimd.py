"""The networks of the figures of the delay-based AIMD paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.laws import Source
from fluidcc.network.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ready import Made, pick, ready
from fluidcc.sources import HTCP, DelayAIMD, PlainDelayAIMD, Vegas

PACKET = 8000.0  # Packet size [bit]; the paper gives none, and 1000 bytes are taken
# Link rate [bit/s], propagation delay there and back [s] and threshold [s] of Figs. 2 to 4.
C2, T2, TAU2 = 50e6, 0.12, 0.02
C7, T7, TAU7 = 500e6, 0.25, 0.05  # the same of Figs. 7 and 8
RATCHET_BUFFER = 1500  # packets, in the runs of Figs. 3 and 4; the paper has 400
_REF = "delay-based AIMD paper, "


def flow(law: Source, window: float, **more: Any) -> dict[str, Any]:
    """A flow that begins with that window [packet], from 0 s on."""
    return {"law": law, "start": 0, "packet": PACKET, "initial": {"w": window}, **more}


def side_by_side(
    law: Source, n: int, C: float, T: float, *, window: Any, buffer: float, starts: Any = 0.0,
    q: float = 0.0,
) -> Network:  # fmt: skip
    """`n` flows of `law` on one link, whose windows are `window` packets at first."""
    begins = zip(np.broadcast_to(window, n).tolist(), np.broadcast_to(starts, n).tolist(),
                 strict=True)  # fmt: skip
    flows = {f"f{i}": flow(law, w, start=t) for i, (w, t) in enumerate(begins, 1)}
    return dumbbell(flows, {"capacity": C, "delay": T / 2, "buffer": buffer, "initial": {"q": q}})


def on_link_2(law: Source, packets: float = 400) -> Network:
    """One flow on the link of Fig. 2, with that many packets of buffer."""
    return side_by_side(law, 1, C2, T2, window=600, buffer=packets * PACKET)


@ready()
def delay_aimd_fig1(n: int = 8) -> Made:
    """Delay-based AIMD, Fig. 1: Vegas flows, whose queue grows with their number."""
    link = {"capacity": "5 Mbit/s", "delay": "15 ms", "buffer": 100 * PACKET}
    run = {"until": 60.0, "samples": 1201, "ref": _REF + "Section I"}
    return dumbbell([flow(Vegas, 2)] * n, link), run


@ready(buffer="packet")
def delay_aimd_fig2(adaptive: bool = True, buffer: float = 400) -> Made:
    """Delay-based AIMD, Fig. 2: one flow with the adaptive backoff, or with one of half."""
    law = PlainDelayAIMD if adaptive else PlainDelayAIMD(cap=0.5)
    run = {"until": 40.0, "samples": 4001, "ref": _REF + "Section II-A"}
    return on_link_2(law, buffer), run


def behind_queue(flows: int, delta: float, buffer: float, q: float) -> Network:
    """Flows that begin behind a queue `q` [s] of others, whose windows would keep it up."""
    rng = np.random.default_rng(4)
    parts = rng.uniform(0.5, 1.5, flows) if flows > 1 else np.ones(1)
    return side_by_side(
        PlainDelayAIMD(delta_p=delta), flows, C2, T2,
        window=(T2 + q) * C2 / PACKET / flows * parts, starts=np.linspace(0, 0.1, flows),
        buffer=buffer * PACKET, q=q,
    )  # fmt: skip


_RATCHET = {"until": 25.0, "samples": 2501, "ref": _REF + "Section II-D"}


@ready(buffer="packet", q="s")
def delay_aimd_fig3(
    flows: int = 1, delta: float = 0.75, buffer: float = RATCHET_BUFFER, q: float = 0.08
) -> Made:
    """Delay-based AIMD, Fig. 3: the ratchet of one flow behind a standing queue.

    Printed: 400 packets of buffer, in which an estimate of 200 ms never finds the threshold.
    """
    return behind_queue(flows, delta, buffer, q), _RATCHET


@ready(buffer="packet", q="s")
def delay_aimd_fig4(
    flows: int = 10, delta: float = 0.75, buffer: float = RATCHET_BUFFER, q: float = 0.08
) -> Made:
    """Delay-based AIMD, Fig. 4: the ratchet of ten flows behind a standing queue."""
    return behind_queue(flows, delta, buffer, q), _RATCHET


@ready(Delta0="s")
def delay_aimd_fig5(Delta0: float = 8.0) -> Made:
    """Delay-based AIMD, Fig. 5: one flow that backs off at most every Delta0, on Fig. 2's link."""
    run = {"until": 60.0, "samples": 6001, "ref": _REF + "Section III"}
    return on_link_2(DelayAIMD(Delta0=Delta0)), run


@ready(leave="s")
def delay_aimd_fig6(gamma: float = 0.9, Delta0: float = 0.0, leave: float | None = None) -> Made:
    """Delay-based AIMD, Fig. 6: one delay-based and three loss-based flows; these leave.

    Not given: gamma and Delta0, and the time at which the loss-based flows leave, if they do.
    """
    flows = {f"loss{i}": flow(HTCP, 30, stop=leave) for i in (1, 2, 3)}
    ours = {"delay": flow(DelayAIMD(gamma=gamma, Delta0=Delta0), 10)}
    link = {"capacity": "10 Mbit/s", "delay": "50 ms", "buffer": 100 * PACKET}
    run = {"until": 120.0, "samples": 6001, "ref": _REF + "Section III"}
    return dumbbell(ours | flows, link), run


def knee(n: int, law: Source, buffer: float) -> Network:
    """`n` flows of Fig. 7 of `law`, with `buffer` seconds of buffer."""
    window = 1.1 * C7 * T7 / PACKET / n
    return side_by_side(law, n, C7, T7, window=window, buffer=C7 * buffer)


@ready(buffer="s", tau0="s")
def delay_aimd_fig7(
    n: int = 8, law: str = "delay-based", buffer: float = T7, tau0: float = TAU7
) -> Made:
    """Delay-based AIMD, Fig. 7: n flows at 500 Mbit/s and 250 ms, delay-based or H-TCP."""
    one = pick(law, "law", {"delay-based": PlainDelayAIMD(tau0=tau0), "H-TCP": HTCP})
    until = 60.0 if one is not HTCP else 150.0  # loss-based epochs are longer
    run = {"until": until, "samples": int(100 * until) + 1, "ref": _REF + "Section VI-B"}
    return knee(n, one, buffer), run


@ready(tau0="s", second="s")
def delay_aimd_fig8(delta: float = 0.9, tau0: float = TAU7, second: float = 100.0) -> Made:
    """Delay-based AIMD, Fig. 8: a second flow starts at 100 s."""
    law, windows = PlainDelayAIMD(tau0=tau0, delta_p=delta), [1.1 * C7 * T7 / PACKET, 10]
    net = side_by_side(law, 2, C7, T7, window=windows, starts=(0, second), buffer=C7 * T7)
    return net, {"until": 300.0, "samples": 30001, "ref": _REF + "Section VI-C"}
