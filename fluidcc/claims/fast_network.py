"""Section V of the paper on FAST's persistent congestion: Figs. 1(b) and 3(c), two bottlenecks and bursts beside."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fluidcc.claims.fast_common import METHODS, PACKET
from fluidcc.claims.model import DIFFERS, NOT_GIVEN, REPRODUCED, Outcome, claim
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulate import simulate
from fluidcc.sources import FAST, OnOff

__all__ = ["PEAKS", "SEEDS", "shares"]

PEAKS = (5e6, 20e6, 50e6)
"""Peak rates of the background [bit/s]; the paper's range."""

SEEDS = (1, 2, 3)

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


@lru_cache(maxsize=128)
def _ratio(method: str, peak: float, seed: int) -> float:
    """The newcomer's mean rate over that of the others, 10 s and more after it paused or probed."""
    run = simulate(_lot(method, peak), _END, t_eval=np.arange(_END - 10, _END, 0.02), seed=seed, rtol=1e-5,
                   progress=False)  # fmt: skip
    mean = run.rate.mean("time")
    return float(mean.sel(flow="S1") / mean.sel(flow=["S2", "S3", "S4", "S5"]).mean())


def shares(method: str) -> np.ndarray:
    """(peaks, seeds): the newcomer's ratio over what it has if it knows its delay, with the same background."""
    return np.array([[_ratio(method, p, s) / _ratio(_KNOWN, p, s) for s in SEEDS] for p in PEAKS])


def _shown(found: np.ndarray) -> str:
    mean = found.mean(axis=1)
    pairs = zip(PEAKS, mean, found, strict=True)
    return ", ".join(f"{m:.2f} ({min(row):.2f} to {max(row):.2f}) at {p / 1e6:g} Mbit/s" for p, m, row in pairs)


def _values(found: np.ndarray) -> dict[str, float]:
    mean = zip(PEAKS, found.mean(axis=1), found.std(axis=1), strict=True)
    return {f"{what} at {p / 1e6:g} Mbit/s": float(v) for p, a, b in mean for what, v in (("mean", a), ("spread", b))}


_SEEDED = (
    "Means of three seeds, the smallest and largest beside them; 1 is what the newcomer has if it knows its delay."
)


@claim("fast", "Fig. 1(b)", "Five flows to one node over several bottlenecks, and a Pareto flow beside them.", "")
def parking_lot() -> Outcome:
    alone = _ratio("FAST", 0.0, 1) / _ratio(_KNOWN, 0.0, 1)
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
    falls = bool(np.all(np.diff(fast.mean(axis=1)) < 0)) and fast.mean(axis=1)[0] > 1.2
    return Outcome(
        DIFFERS,
        f"FAST: {_shown(fast)}; rate reduction: {_shown(paused)}. {_SEEDED}",
        ("With FAST it does, in the mean: idle times show a newcomer a shorter queue. " if falls else "Not with FAST. ")
        + f"A pause is within {100 * float(np.abs(paused - 1).max()):.0f} % of fair at every peak here: with four "
        "others at 60 ms the queue empties before they react, background or not.",
        _values(fast) | {f"paused, {k}": v for k, v in _values(paused).items()},
    )


@claim("fast", "Fig. 3(c)", "In any case the estimator assures fairness, irrespective of the background.", "1",
       erratum=True)  # fmt: skip
def estimator_in_bursts() -> Outcome:
    found = shares("estimator")
    worst = float(np.abs(found - 1).max())
    return Outcome(
        REPRODUCED if worst < 0.1 else DIFFERS,
        f"{_shown(found)}. {_SEEDED}",
        ""
        if worst < 0.1
        else "One probe measures what the whole queue changes in a round trip: a burst that begins or ends in it moves "
        "the queue more than the probe, and (9) amplifies that. Fair only while the background is small against the "
        "probe, half of the newcomer's rate. The paper averages ratios over runs that it does not describe.",
        _values(found) | {"worst": worst},
    )
