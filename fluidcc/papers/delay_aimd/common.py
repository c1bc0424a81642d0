"""Networks, runs and texts that several claims of the delay-based AIMD paper use."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.laws import Source
from fluidcc.network.topologies import dumbbell
from fluidcc.papers import printed
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import HTCP, DelayAIMD, PlainDelayAIMD, Vegas

if TYPE_CHECKING:
    import xarray as xr

PACKET = 8000.0  # Packet size [bit]; the paper gives none, and 1000 bytes are taken
# Link rate [bit/s], propagation delay there and back [s] and threshold [s] of Figs. 2 to 4.
C2, T2, TAU2 = 50e6, 0.12, 0.02
C7, T7, TAU7 = 500e6, 0.25, 0.05  # the same of Figs. 7 and 8
FLOWS = (1, 2, 4, 8, 16, 32, 64, 128)


ms = partial(printed.ms, digits=3)


def sawtooth(
    law: Source, n: int, C: float, T: float, *, window: Any, stop: float, buffer: float, **more: Any
) -> Any:
    """A run of `n` flows of `law` on one link, whose windows are `window` packets at first."""
    starts, begin = more.pop("starts", np.zeros(n)), more.pop("q", 0.0)
    begins = zip(np.broadcast_to(window, n).tolist(), np.asarray(starts).tolist(), strict=True)
    flows = {f"f{i}": flow(law, w, start=t) for i, (w, t) in enumerate(begins, 1)}
    link = {"capacity": C, "delay": T / 2, "buffer": buffer, "initial": {"q": begin}}
    more = {"samples": int(100 * stop) + 1, "rtol": 1e-7} | more
    return simulate(dumbbell(flows, link), stop, **more)


def of_fig2(law: Source, stop: float, packets: int = 400) -> Any:
    """A run of one flow on the link of Fig. 2, with that many packets of buffer."""
    return sawtooth(law, 1, C2, T2, window=600, stop=stop, buffer=packets * PACKET)


def flow(law: Source, window: float, **more: Any) -> dict[str, Any]:
    """A flow that begins with that window [packet], from 0 s on."""
    return {"law": law, "start": 0, "packet": PACKET, "initial": {"w": window}, **more}


def backoffs(
    run: xr.Dataset, flow: str = "f1", law: Source = PlainDelayAIMD
) -> NDArray[np.float64]:
    """When a flow of `law` backed off [s]."""
    cuts = [k for k, jump in enumerate(law.jumps) if any(z.name == "w" for z in jump.reset)]
    times: NDArray[np.float64] = run.jump_time.values[
        (run.jump_of == flow) & np.isin(run.jump_rule, cuts)
    ]
    return times


def last_cycle(run: xr.Dataset) -> tuple[float, float, xr.Dataset]:
    """Period and mean queueing delay of the first flow's last cycle [s], and its samples."""
    start, stop = backoffs(run)[-2:]
    part = run.sel(time=slice(start, stop))
    t, q = run.time.values, run.queueing_delay.values[:, 0]
    at = np.concatenate([[start], part.time.values, [stop]])
    return stop - start, float(np.trapezoid(np.interp(at, t, q), at) / (stop - start)), part


def smallest_rtt(run: xr.Dataset) -> NDArray[np.float64]:
    """The smallest round trip each flow has seen [s], over time."""
    return np.minimum(run.PlainDelayAIMD_low.values, run.rtt.values)


@cache
def fig1(n: int) -> xr.Dataset:
    """`n` Vegas flows on the link of Fig. 1."""
    link = {"capacity": "5 Mbit/s", "delay": "15 ms", "buffer": 100 * PACKET}
    return simulate(dumbbell([flow(Vegas, 2)] * n, link), 60.0, samples=1201, rtol=1e-6)


@cache
def fig2(adaptive: bool = True) -> xr.Dataset:
    """One flow of Fig. 2 with the adaptive backoff, or with one of half."""
    law = PlainDelayAIMD if adaptive else PlainDelayAIMD(cap=0.5)
    return of_fig2(law, 40.0)


@cache
def fig5(Delta0: float) -> xr.Dataset:
    """One flow that backs off at most every `Delta0` seconds, on the link of Fig. 2."""
    return of_fig2(DelayAIMD(Delta0=Delta0), 60.0)


RATCHET_BUFFER = 1500  # packets, in the runs of Figs. 3 and 4; the paper has 400


@cache
def ratchet_run(flows: int, delta: float) -> xr.Dataset:
    """Run flows whose windows fill 200 ms, and which begin behind a queue of 80 ms of others."""
    rng = np.random.default_rng(4)
    parts = rng.uniform(0.5, 1.5, flows) if flows > 1 else np.ones(1)
    return sawtooth(
        PlainDelayAIMD(delta_p=delta),
        flows,
        C2,
        T2,
        window=0.2 * C2 / PACKET / flows * parts,
        starts=np.linspace(0, 0.1, flows),
        stop=25.0,
        buffer=RATCHET_BUFFER * PACKET,
        q=0.08,
    )


class Knee(NamedTuple):
    """What a run of Fig. 7 tells, over the whole epochs of its second half."""

    utilisation: float
    mean: float  # queueing delay [s]
    largest: float  # queueing delay [s]
    lost: float  # [bit]
    epoch: float  # the last one of the first flow [s]


@cache
def fig7(n: int, law: Source | None = None, buffer: float = T7) -> Knee:
    """Run `n` flows of Fig. 7, delay-based or of `law`, with `buffer` seconds of buffer."""
    law = PlainDelayAIMD(tau0=TAU7) if law is None else law
    stop = 60.0 if law.name == "PlainDelayAIMD" else 150.0  # loss-based epochs are longer
    window = 1.1 * C7 * T7 / PACKET / n
    run = sawtooth(law, n, C7, T7, window=window, stop=stop, buffer=C7 * buffer, rtol=1e-6)
    when = backoffs(run, law=law)
    when = when[when > stop / 2]
    late = run.sel(time=slice(when[0], when[-1]))
    q, epoch = late.queueing_delay, float(np.diff(when)[-1])
    used, lost = float(late.utilisation.mean()), float(run.lost.max())
    return Knee(used, float(q.mean()), float(q.max()), lost, epoch)


@cache
def fig8(delta: float) -> tuple[xr.Dataset, NDArray[np.float64]]:
    """Run Fig. 8; return it with both windows [packet] before each backoff with two flows."""
    law = PlainDelayAIMD(tau0=TAU7, delta_p=delta)
    windows = [1.1 * C7 * T7 / PACKET, 10]
    run = sawtooth(
        law, 2, C7, T7, window=windows, starts=(0, 100), stop=300.0, buffer=C7 * T7, rtol=1e-6
    )
    t, w = run.time.values, run.PlainDelayAIMD_w.values
    when = backoffs(run)
    before = np.searchsorted(t, when[when > 105.0]) - 2  # a sample may lie on the backoff itself
    return run, w[before]


@cache
def coexistence(gamma: float, Delta0: float, leave: float | None = None) -> xr.Dataset:
    """One delay-based and three loss-based flows of Fig. 6; the latter leave at `leave` [s]."""
    flows = {f"loss{i}": flow(HTCP, 30, stop=leave) for i in (1, 2, 3)}
    ours = {"delay": flow(DelayAIMD(gamma=gamma, Delta0=Delta0), 10)}
    link = {"capacity": "10 Mbit/s", "delay": "50 ms", "buffer": 100 * PACKET}
    return simulate(dumbbell(ours | flows, link), 120.0, samples=6001, rtol=1e-6)
