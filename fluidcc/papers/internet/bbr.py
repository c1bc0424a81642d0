"""BBR: gains of its startup (tcp_bbr.c of Linux; draft-ietf-ccwg-bbr-06), constants of version 3
(the draft), and what models of others say of versions 1 and 2 (IMC 2019 and 2022).
"""

from __future__ import annotations

from functools import cache
from math import log
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, Rational, integrate, simplify
from sympy import log as ln

from fluidcc.network.topologies import dumbbell
from fluidcc.papers.model import Found, compared, differs_if, proof, refuted_if, reproduced_if
from fluidcc.papers.printed import named
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CUBIC, BBRv1, BBRv2, BBRv3
from fluidcc.symbols import positive

t, k = positive("t k")  # in round trips; growth a round trip
_SENT = k**t  # and acknowledged a round trip later
_MEAN = simplify(integrate(_SENT.subs(t, t - 1), (t, -1, 0)))  # of acknowledgements, until t = 0
_GAIN = 1 / _MEAN  # for that growth, by samples over a round trip
PACKET, TRIP, VIDEO = 1514 * 8, 0.03, 25e6  # the draft's packet [bit], path [s] and rate [bit/s]
PATH, EACH = (
    0.04,
    100,
)  # of the runs: round trip [s]; packets that fit into it, for each flow of BBR
MANY = (2, 4, 8)  # of them


def startup_gain() -> Found:
    least, printed = float(_GAIN.subs(k, 2)), 2 / log(2)
    growth = brentq(lambda x: float(_GAIN.subs(k, x)) - printed, 1.5, 3)
    return refuted_if(least / (1 - BBRv1.parameter("margin")) < printed, least=least, growth=growth)


def startup_gain_of_the_draft() -> Found:
    return compared([float(_GAIN.subs(k, 2)), float(4 * ln(2))])


def losses_between_probes() -> Found:
    return compared([(1 - 0.01) ** 137 * 2**2])


def packets_of_reno() -> Found:
    return compared([40e9 * 20e-6 / PACKET, VIDEO * TRIP / PACKET])


def seconds_of_reno() -> Found:
    return compared([VIDEO * TRIP / PACKET * TRIP])  # a packet a round trip, from BDP to 2 BDP


def cost_of_least_round_trips() -> Found:
    every, held = 5, 0.2
    return compared([(held / 2 + every - held) / every, 1 - held / every])


# --- runs -----------------------------------------------------------------------------------------


@cache
def _late(laws: tuple[Any, ...], buffer: float, until: float = 60, apart: float = 0) -> Any:
    """The later half of a run; the buffer in bandwidth-delay products."""
    bbr = EACH * sum(law.name.startswith("BBR") for law in laws)  # packets
    flows = [{"law": law, "start": apart * i} for i, law in enumerate(laws)]
    link = {"capacity": bbr * 8000 / PATH, "buffer": f"{round(buffer * bbr)} packets"}
    run = simulate(dumbbell(flows, link, rtt=PATH), until, samples=round(50 * until) + 1)
    return run.sel(time=slice(until / 2, None))


def _apart(law: Any, flows: int, buffer: float) -> Any:
    """Flows that probe at different times."""
    parts = [i / (flows - 1) for i in range(flows)]
    laws = tuple(law(passed=6 * k) if law is BBRv1 else law(wait=2 + k) for k in parts)
    return _late(laws, buffer, apart=0.1)


def _queue(law: Any, flows: int, buffer: float = 6) -> float:
    """Their mean queue, in bandwidth-delay products."""
    return float(_apart(law, flows, buffer).queueing_delay.mean()) / PATH


def queue_of_version_1() -> Found:
    queues = [_queue(BBRv1, n) for n in MANY]
    return reproduced_if(all(0.85 < q < 1.15 for q in queues), named("{}", MANY, queues))


def queue_of_version_2() -> Found:
    """What a flow finds at 5/4 of its share, beside others at theirs, and holds in flight."""
    N = positive("N")
    found = Rational(5, 4) / (Rational(5, 4) + N - 1)  # of the capacity
    by_it = proof(Eq(N * found - 1, (N - 1) / (4 * N + 1))).status == "proved"
    queues = [_queue(BBRv2, n) for n in MANY]
    printed = [(n - 1) / (4 * n + 1) for n in MANY]
    more = all(q > 2 * formula for q, formula in zip(queues, printed, strict=True))
    return differs_if(by_it and more, named("{}", MANY, queues), printed=printed)


def buffers_of_version_2() -> Found:
    buffers = (1, 2, 6, 12)
    queues = [_queue(BBRv2, 4, buffer) for buffer in buffers]
    return differs_if(max(queues) < 1.3, named("{}", buffers, queues))


def losses_of_version_1() -> Found:
    buffers = (0.1, 0.25, 0.5)
    runs = [_apart(BBRv1, 5, buffer) for buffer in buffers]
    lost = [1 - float(r.throughput.mean() / r.arrival_rate.mean()) for r in runs]
    return differs_if(0.07 < max(lost) < 0.15, named("{}", buffers, lost))


def shallow_buffers() -> Found:
    """Shares beside one flow of CUBIC."""
    buffers = (0.2, 0.5, 1)
    one, two = ([_share(b, 1, law) for b in buffers] for law in (BBRv1, BBRv2))
    return reproduced_if(
        min(one) > 0.8 > 0.7 > max(two),
        one=named("{}", buffers, one), two=named("{}", buffers, two),
    )  # fmt: skip


def share_beside_losses() -> Found:
    """The printed share, of one flow over 8 bandwidth-delay products."""
    X, trips = 8, PATH * (1 + 8)
    others = 1 / 2 - 1 / (2 * X) - 4 / (X * EACH)
    printed = (1 - others) * (1 - (trips + 0.2) / 10)
    ours, full = _share(X, 1), _beside(X, 1).queueing_delay.mean() / (X * PATH)
    return differs_if(abs(ours / printed - 1) > 0.1, ours=ours, printed=printed, full=full)


def share_beside_many() -> Found:
    shares = {n: _share(8, n) for n in (1, 2, 4)}
    spread = max(shares.values()) - min(shares.values())
    return reproduced_if(spread < 0.1 and max(shares.values()) < 0.5, named("{}", shares))


def _beside(buffer: float, others: int, law: Any = BBRv1) -> Any:
    """One flow of BBR beside flows of CUBIC."""
    return _late((law, *[CUBIC] * others), buffer, until=160, apart=0.5)


def _share(buffer: float, others: int, law: Any = BBRv1) -> float:
    """Of the one, of what arrives."""
    late = _beside(buffer, others, law)
    rates = (late.rate * (1 - late.loss)).mean("time").values
    return float(rates[0] / rates.sum())


def least_gain_of_down() -> Found:
    gains = (0.9, 0.75, 0.5)
    parts = [_smaller(BBRv3(down=gain)) for gain in gains]
    return differs_if(parts[2] > parts[0] - 0.05, parts=named("{:.2f}", gains, parts))


def _smaller(law: Any) -> float:
    """Mean share of the flow that has less, of two, over three buffers and two orders."""
    runs = [
        _late(tuple(law(wait=wait) for wait in waits), buffer, until=120, apart=5)
        for buffer in (1, 2, 4)
        for waits in ((2.2, 2.7), (2.7, 2.2))
    ]
    rates = [run.rate.mean("time").values for run in runs]
    return float(np.mean([x.min() / x.sum() for x in rates]))
