"""Runs in the dumbbell of Fig. 5, and its loops near equilibrium, for the claims on ECF."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from sympy import Matrix, simplify

from fluidcc.laws import Link, Source
from fluidcc.links import PAQM, PAQMECF, PAQMECF2
from fluidcc.links import RED as FixedRED
from fluidcc.links.paqm import T_ECF, V1, V2, R, aim, measured, q
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ecf.routers import sampled_stability
from fluidcc.papers.printed import numbers
from fluidcc.papers.zoo.ecf import (
    HOPS,
    INTERVAL,
    LAWS,
    PACKET,
    RED,
    C,
    behind,
    fig5,
    periods,
    router,
)
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import ECF, FramedECF, SlowStartTFRC
from fluidcc.sources import StaticReno as Reno
from fluidcc.symbols import c, plain, positive, unfold

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.analysis.sampled import SampledStability

# End-to-end round trips of Section 3.2 [s]; 40 ms of each lie beyond the router
RTTS = (0.06, 0.1, 0.24)
COUNTS = (10, 30, 100)  # Numbers of sources of Section 3.2
SHARES = (20e6, 15e6, 10e6, 7.5e6, 6e6)  # Fair shares with 1 to 5 sources, as printed [bit/s]


@cache
def starting(kind: str, seed: int = 1) -> xr.Dataset:
    """Run five sources that start 10 s apart, Fig. 6 and 7; `kind` is a key of `LAWS`."""
    return _transient(kind, seed=seed)


@cache
def stopping(kind: str) -> xr.Dataset:
    """Five sources that start together and stop 10 s apart from 60 s on."""
    return _transient(kind, stop=True)


def _transient(kind: str, **given: Any) -> xr.Dataset:
    figure = "ecf_fig7" if kind in ("DCCP", "TFRC") else "ecf_fig6"
    return scenarios[figure](kind=kind, **given).simulate(rtol=1e-5).sel(link=["aqm"])


@cache
def steady(
    kind: str, version: str, count: int, rtt: float, until: float = 100.0, seed: int = 1
) -> xr.Dataset:
    """Sources that start 10 ms apart, without the first 10 s: Section 3.2."""
    given = {"kind": kind, "version": version, "count": count, "rtt": rtt}
    return _counted(scenarios["ecf_fig8"](**given).net, until, seed)


def _counted(net: Network, until: float, seed: int = 1) -> xr.Dataset:
    """A run at the ends of the intervals in which packets are counted, without the first 10 s."""
    r = simulate(net, until, t_eval=INTERVAL * np.arange(round(until / INTERVAL) + 1), seed=seed)
    return r.sel(time=slice(10.0, None))


def mean_net(kind: str, aqm: str, count: int, rtt: float) -> Network:
    """`count` equal TCP-like or TFRC flows whose marks come at random.

    They are one flow of packets `count` times as long: its window is that of each of them.
    """
    law = Reno if kind == "TCP-like" else SlowStartTFRC
    return _as_one(law, {"RED": RED, "P-AQM": PAQM}[aqm], count, rtt)


def _as_one(law: Source, link: Link, count: int, rtt: float) -> Network:
    way = {"access_delay": rtt / 2 - HOPS, "return_delay": rtt / 2, "packet": count * PACKET}
    return behind(link, {"all": {"law": law, **way}})


@cache
def mean_field(kind: str, aqm: str, count: int, rtt: float, begin: float = 50.0) -> xr.Dataset:
    """100 s of such flows from `begin` on [s]."""
    r = simulate(mean_net(kind, aqm, count, rtt), 100, samples=2001, rtol=1e-5)
    return r.sel(time=slice(begin, None))


def dccp(count: int, rtt: float) -> xr.Dataset:
    """TCP-like flows as automata, each with its own window: Section 3.2."""
    return steady("DCCP", "V1", count, rtt, 60.0)


def averages(r: xr.Dataset) -> dict[str, float]:
    """Means of a run: delay and its deviation [s], utilisation, loss, rates over the fair."""
    mean = r.rate.mean("time") * r.sizes["flow"] / C
    lost, came = (counted[-1, 0] - counted[0, 0] for counted in (r.lost, r.entered))
    found = {
        "delay": r.queueing_delay.mean(),
        "jitter": r.queueing_delay.std(),
        "utilisation": r.throughput.mean() / C,
        "loss": lost / came,
        "least": mean.min(),
        "largest": mean.max(),
    }
    return {name: float(value) for name, value in found.items()}


@cache
def two_nodes() -> xr.Dataset:
    """Routers of 30 and 12 Mbit/s; a long flow, one on the first alone, two on the second."""
    net = Network().link("one", PAQMECF, capacity=30e6, delay=0.01)
    net.link("two", PAQMECF(T_ECF=0.2, T_s=0.12), capacity=12e6, delay=0.01)
    for name, route in {"long": ["one", "two"], "a": ["two"], "b": ["two"], "c": ["one"]}.items():
        net.flow(name, ECF(r_max=30e6), route=route, access_delay=0.01, packet=PACKET)
    return simulate(net, 120, samples=1201).sel(time=slice(60.0, None))


FAR = (0.02, 0.06, 0.1, 0.2)  # Round trips between sources and router of `unequal` [s]


@cache
def unequal(near_first: bool, trips: tuple[float, ...] = FAR) -> xr.Dataset:
    """Four sources with those round trips and unequal first rates, the near or far one's least.

    The router allows for the longest round trip.
    """
    near, T = periods(trips[-1] + 2 * HOPS)
    link = PAQMECF(T_s=T - near)  # by (4) T is known to it
    first = (3e6, 5e6, 9e6, 13e6) if near_first else (13e6, 9e6, 5e6, 3e6)
    flows = {
        f"s{i}": {"law": ECF, "access_delay": rtt / 2, "packet": PACKET, "initial": {"r1": rate}}
        for i, (rtt, rate) in enumerate(zip(trips, first, strict=True), 1)
    }
    return simulate(behind(link, flows), 300, samples=601)


@cache
def held_at(aim: float, seed: int = 1) -> xr.Dataset:
    """30 Poisson sources at 60 ms with the outer set point `aim` [s]; without the first 10 s."""
    link = PAQMECF(aim=aim)
    net = fig5(LAWS["Poisson"], link, 30, 0.06, 0.01 * np.arange(30))
    return _counted(net, 60.0, seed)


@cache
def framed(gop: float) -> xr.Dataset:
    """Five sources, together from 20 Mbit/s, that change rates every `gop` seconds; 0: at once."""
    law = FramedECF(gop=gop) if gop else ECF
    net = fig5(law, router("V1", 0.06), 5, 0.06)
    return simulate(net, 30, samples=3001)


def ms(seconds: Iterable[float], digits: int = 0) -> str:
    """Times in milliseconds, one after the other."""
    return numbers((1e3 * v for v in seconds), f".{digits}f")


def pc(parts: Iterable[float]) -> str:
    """Parts in percent, one after the other."""
    return numbers((100 * v for v in parts), ".0f")


def marking(p_max: float) -> Link:
    """RED with the thresholds of `RED`, and that largest ratio for good."""
    own = {name: RED.parameter(name) for name in ("min_th", "max_th", "T")}
    return FixedRED(p_max=p_max, **own)


def at_rest(count: int, rtt: float) -> Network:
    """TCP-like flows over RED that marks as adaptive RED does in the end."""
    p = mean_field("TCP-like", "RED", count, rtt).AdaptiveRED_p.mean().item()
    return _as_one(Reno, marking(p), count, rtt)


# --- near equilibrium -----------------------------------------------------------------------------


def inner_map(late: bool) -> Matrix:
    """How (q, r) of the inner loop goes on over dT above c; (q, r, u) if u acts a period late."""
    (tick,) = PAQM.ticks
    queue, u, r, came = PAQM.states
    dT, q_0 = (next(p for p in PAQM.params if plain(p) == name) for name in ("dT", "q_0"))
    come = positive("x")
    update = {z: unfold(f).subs(came, come * dT) for z, f in tick.update.items()}
    share = u if late else update[u]
    states = [queue, r, u][: 2 + late]
    new = [queue + dT * (share * come / c - 1), update[r], update[u]][: 2 + late]
    # come > c, said in a way that SymPy understands
    over = {c: come / (1 + positive("s"))}
    jacobian = Matrix(new).jacobian(states).subs({queue: q_0, r: come})
    return jacobian.subs(over).applyfunc(simplify)


def outer_map(version: int) -> Matrix:
    """How (q, r) goes on over T, from the law's own r': the old rate for R, the new for T - R.

    Decreases are carried out in full; rates are those of all sources together.
    """
    T, lag, rate = positive("T R x")  # of formulas.ecf
    new = (V1, V2)[version - 1].xreplace({measured: rate}).subs({T_ECF: T, R: lag})
    queue = q + ((rate - c) * lag + (new - c) * (T - lag)) / c
    return Matrix([queue, new]).jacobian([q, rate]).subs({q: aim, rate: c}).applyfunc(simplify)


def outer_loop(version: int, T: float, R: float, T_s: float | None = None) -> SampledStability:
    """The same as it runs, also with R beyond a period; by default T_s is what R leaves of it."""
    T_s = max(T - R, 1e-7 * T) if T_s is None else T_s
    law = PAQMECF2(T_ECF=T, T_s=T_s, R=R) if version == 2 else PAQMECF(T_ECF=T, T_s=T_s)
    net = Network().link("aqm", law, capacity=C, delay=HOPS)
    return sampled_stability(net.flow("s", ECF(r_max=2 * C), route=["aqm"], access_delay=R / 2))


def ecf_margin(version: str, rtt: float, count: int = 10) -> tuple[float, float]:
    """Largest multiplier of Fig. 5 with ECF, and the longer way to the router where it is 1 [s].

    The router allows for the way as it was.
    """

    def beyond(extra: float) -> float:
        return sampled_stability(fig5(ECF, router(version, rtt), count, rtt + extra)).radius - 1

    return 1 + beyond(0.0), float(brentq(beyond, 0.0, periods(rtt)[1], xtol=1e-7))
