"""Section V of the paper on FAST's persistent congestion: Figs. 1(b) and 3(c), two bottlenecks and bursts beside."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fluidcc.formulas.fast import rate_reduction_threshold
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.fast.common import METHODS, PACKET
from fluidcc.papers.model import DIFFERS, NOT_GIVEN, REPRODUCED, Outcome, claim
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import FAST, OnOff

__all__ = ["PEAKS", "SEEDS", "shares"]

PEAKS = (5e6, 20e6, 50e6)
"""Peak rates of the background [bit/s]; the paper's range."""

SEEDS = (1, 2, 3, 4, 5)
"""Of the background, whose bursts and silences have no variance: with 1 it is silent for most of the run."""

_START, _WAIT, _END = 8.0, 10.0, 38.0  # the newcomer's start, its age when it pauses or probes, and the end [s]
_KNOWN = "knows"


def _lot(method: str, peak: float) -> Network:
    """Fig. 1(b): flows from S1 to S3 cross two bottlenecks, S4 and S5 the second; S1 is the newcomer.

    With `method` "knows" it is there from the beginning.
    """
    net = Network().link("first", DropTail, capacity=50e6, delay=0.01)
    net.link("second", DropTail, capacity=100e6, delay=0.01)
    for k in (2, 3, 4, 5):
        route, access = (["first", "second"], 0.01) if k <= 3 else (["second"], 0.02)
        net.flow(f"S{k}", FAST, route=route, start=0, packet=PACKET, access_delay=access, initial={"w": 60})
    law = FAST if method in (_KNOWN, "FAST") else METHODS[method](wait=_WAIT)
    begin = 0.0 if method == _KNOWN else _START
    net.flow("S1", law, route=["first", "second"], start=begin, packet=PACKET, access_delay=0.01, initial={"w": 60})
    return net.flow("Sb", OnOff(peak=peak), route=["first", "second"], start=0) if peak else net


class _Seen(NamedTuple):
    """What a run tells of the newcomer."""

    ratio: float  # its mean rate over that of the others, 10 s and more after it paused or probed [1]
    taken: float  # of the queue, for propagation, in the end [s]
    before: float  # its rate before it pauses or probes [bit/s]


@lru_cache(maxsize=256)
def _seen(method: str, peak: float, seed: int) -> _Seen:
    net, act = _lot(method, peak), _START + _WAIT
    times = np.concatenate([np.arange(act - 2, act, 0.02), np.arange(_END - 10, _END, 0.02)])
    run = simulate(net, _END, t_eval=times, seed=seed, rtol=1e-5, progress=False)
    own, late = run.sel(flow="S1"), slice(_END - 10, None)
    mean = run.rate.sel(time=late).mean("time")
    known = own.rtt[-1] - own[f"{net.flows['S1'].law.name}_delta"][-1]
    return _Seen(
        float(mean.sel(flow="S1") / mean.sel(flow=["S2", "S3", "S4", "S5"]).mean()),
        float(known) - net.base_rtt("S1"),
        float(own.rate.sel(time=slice(None, act)).mean()),
    )


def _over_seeds(method: str, part: str) -> np.ndarray:
    """(peaks, seeds)"""
    return np.array([[getattr(_seen(method, p, s), part) for s in SEEDS] for p in PEAKS])


def shares(method: str) -> np.ndarray:
    """(peaks, seeds): the newcomer's ratio over what it has if it knows its delay, with the same background."""
    return _over_seeds(method, "ratio") / _over_seeds(_KNOWN, "ratio")


def _needed(net: Network) -> float:
    """The propagation delay that (7) asks for, with the others on each link, where it is the longer [s]."""
    others = {name: sum(name in f.route for f in net.flows.values()) - 1 for name in net.links}
    alpha = FAST.parameter("alpha")
    return max(rate_reduction_threshold(n, net.links[k].capacity / PACKET, alpha) for k, n in others.items())


def _improves(found: np.ndarray) -> bool:
    """Whether shares are unfair with little background, and come nearer to 1 with each more of it."""
    away = np.abs(found.mean(axis=1) - 1)
    return bool(away[0] > 0.1 and np.all(np.diff(away) < 0))


def _shown(found: np.ndarray, digits: int = 2) -> str:
    mean = found.mean(axis=1)
    pairs = zip(PEAKS, mean, found, strict=True)
    return ", ".join(
        f"{m:.{digits}f} ({min(row):.{digits}f} to {max(row):.{digits}f}) at {p / 1e6:g} Mbit/s" for p, m, row in pairs
    )


def _values(found: np.ndarray) -> dict[str, float]:
    mean = zip(PEAKS, found.mean(axis=1), found.std(axis=1), strict=True)
    return {f"{what} at {p / 1e6:g} Mbit/s": float(v) for p, a, b in mean for what, v in (("mean", a), ("spread", b))}


_SEEDED = (
    f"Means of {len(SEEDS)} seeds, the smallest and largest beside them; 1 is what the newcomer has if it knows its "
    "delay."
)


@claim("fast", "Fig. 1(b)", "Five flows to one node over several bottlenecks, and a Pareto flow beside them.", "")
def parking_lot() -> Outcome:
    alone = _seen("FAST", 0.0, 1).ratio / _seen(_KNOWN, 0.0, 1).ratio
    return Outcome(
        NOT_GIVEN,
        f"without background the newcomer has {alone:.2f} times what it has if it knows its delay",
        "Which flow crosses which link, the capacities and the delays are not printed. Taken: two bottlenecks of 50 "
        "and 100 Mbit/s; three flows, the newcomer among them, and the background cross both, two only the second; "
        "60 ms there and back. A flow that crosses both has less than the others even where all know their delays, so "
        "ratios are over that of the same run with such a newcomer.",
        {"alone": alone},
    )


@claim("fast", "Fig. 3(c)", "With FAST and with rate reduction fairness improves as the peak of the background grows.",
       "improves")  # fmt: skip
def bursts_help() -> Outcome:
    fast, paused = shares("FAST"), shares("rate reduction")
    both = [_improves(found) for found in (fast, paused)]
    quiet = _lot("FAST", 0.0)
    alone = _seen("rate reduction", 0.0, 1).taken
    off = float(np.abs(paused.mean(axis=1) - 1).max())
    queue, left = (float(np.max(_over_seeds(method, "taken"))) for method in ("FAST", "rate reduction"))
    said = [
        "With FAST it does, in the mean: idle times show a newcomer a shorter queue." if both[0] else "Not with FAST.",
        "With a pause too."
        if both[1]
        else f"With a pause there is no such trend: in the mean it is within {100 * off:.0f} % of fair at every peak. "
        f"(7) asks for {1e3 * _needed(quiet):.0f} ms, and paths of {1e3 * quiet.base_rtt('S1'):.0f} ms were taken: it "
        f"leaves {1e3 * alone:.2g} of {1e3 * queue:.2g} ms of queue taken for propagation without background, and with "
        f"it at most {1e3 * left:.2g}.",
    ]
    return Outcome(
        REPRODUCED if all(both) else DIFFERS,
        f"FAST: {_shown(fast)}; rate reduction: {_shown(paused)}. {_SEEDED}",
        " ".join(said),
        _values(fast) | {f"paused, {k}": v for k, v in _values(paused).items()} | {"left": left, "queue": queue},
    )


@claim("fast", "Fig. 3(c)", "In any case the estimator assures fairness, irrespective of the background.", "1",
       erratum=True)  # fmt: skip
def estimator_in_bursts() -> Outcome:
    found = shares("estimator")
    worst, alone = (
        float(np.abs(found - 1).max()),
        abs(_seen("estimator", 0.0, 1).ratio / _seen(_KNOWN, 0.0, 1).ratio - 1),
    )
    probe = -float(METHODS["estimator"].parameter("theta")) * float(_over_seeds("FAST", "before").mean())
    return Outcome(
        REPRODUCED if worst < 0.1 else DIFFERS,
        f"{_shown(found, 1)}. {_SEEDED}",
        ""
        if worst < 0.1
        else f"Without background it is {100 * alone:.1f} % off. One probe measures what the whole queue changes in a "
        f"round trip, bursts that begin or end in it too, and (9) amplifies that. It is of {probe / 1e6:.0f} Mbit/s "
        f"here, half of the newcomer's rate, and already {PEAKS[0] / 1e6:g} Mbit/s of background put it off by up to "
        f"{100 * float(np.abs(found[0] - 1).max()):.0f} %. The paper averages ratios over runs that it does not "
        "describe.",
        _values(found) | {"worst": worst, "alone": alone, "probe": probe},
    )
