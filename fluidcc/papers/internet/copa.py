"""Copa (NSDI 2018): its cycle at rest, and what becomes of it with others."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fluidcc.network.topologies import dumbbell
from fluidcc.papers.model import Found, reproduced_if
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, Copa

RATE, TRIP, LATE = 40e6, 0.04, 30  # of the link [bit/s]; round trip; when it is at rest [s]
CALM = Copa(part=1)  # that never competes


@cache
def _beside(laws: tuple[Any, ...], trips: tuple[float, ...], buffer: int) -> Any:
    link = {"capacity": RATE, "buffer": f"{buffer} packets"}
    flows = [{"law": law, "start": 0.3 * i} for i, law in enumerate(laws)]
    run = simulate(dumbbell(flows, link, rtt=trips), 2 * LATE, samples=60_001)
    return run.sel(time=slice(LATE, None))


def _alike(flows: int) -> Any:
    return _beside((Copa,) * flows, (TRIP,) * flows, 5000)


def _queue(run: Any) -> Any:
    """Packets in the queue, over those that all flows mean to have there."""
    flows = run.sizes["flow"]
    return run.queueing_delay.values[:, 0] * RATE / 8000 * Copa.parameter("delta") / flows


def _between(run: Any, low: float, rises: bool = True) -> Any:
    """Times from one way up through `low` to the next, or of the stays above it."""
    t, above = run.time.values, _queue(run) > low
    up, down = (t[1:][np.diff(above.astype(int)) == k] for k in (1, -1))
    return np.diff(up) if rises else down[np.searchsorted(down, up[:-1])] - up[:-1]


def copa_cycle() -> Found:
    run = _alike(1)
    q, every = _queue(run), _between(run, 1).mean() / TRIP
    holds = q.min() == 0 and abs(q.max() / 2.5 - 1) < 0.04 and abs(every / 5 - 1) < 0.04
    return reproduced_if(holds, most=q.max(), every=every)


def copa_empties() -> Found:
    longest = max(_between(_alike(n), 0.25, rises=False).max() / TRIP for n in (1, 2, 4))
    return reproduced_if(longest < 5, longest=longest)


def copa_shares() -> Found:
    run = _alike(4)
    rates, q = run.rate.mean("time").values, _queue(run)
    spread = rates.max() / rates.min() - 1
    holds = spread < 0.02 and q.min() == 0 and abs(q.max() / 2.5 - 1) < 0.04
    return reproduced_if(holds and run.a.max() == 2, most=q.max(), spread=spread)


def copa_among_itself() -> Found:
    calm, run = (_beside((law,) * 2, (0.02, 0.06), 5000) for law in (CALM, Copa))
    longest = _between(calm, 0.25, rises=False).max() / 0.02
    return reproduced_if(longest > 5 and run.a.max() > 2, longest=longest, most=float(run.a.max()))


def copa_on_short_paths() -> Found:
    """One flow over 1 Mbit/s: 2.5 packets fit into a path of 20 ms, and 2 are to wait."""
    link = {"capacity": 1e6, "buffer": "200 packets"}
    run = simulate(dumbbell([Copa], link, rtt=0.02), 2 * LATE, samples=20_001)
    late = run.sel(time=slice(LATE, None))
    least = float(late.queueing_delay.min()) * 1e6 / 8000
    return reproduced_if(least > 2.5 and late.a.max() > 2, least=least, most=float(late.a.max()))


def copa_competes() -> Found:
    calm, run = (_beside((law, AIMD), (TRIP,) * 2, 200) for law in (CALM, Copa))
    alone, shared = (r.rate.mean("time").values[0] / RATE for r in (calm, run))
    return reproduced_if(alone < 0.1 and 0.25 < shared < 0.75, alone=alone, shared=shared)
