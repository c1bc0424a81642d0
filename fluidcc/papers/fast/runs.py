"""Section V of the paper on FAST's persistent congestion: Figs. 2 and 3(a), (b), by simulation."""

from __future__ import annotations

import numpy as np

from fluidcc.formulas import fast
from fluidcc.papers.fast.common import ALPHA, FLOWS, PACKET, RTTS, C, arrivals, plateaus, ratio, ratios
from fluidcc.papers.model import DIFFERS, OUT_OF_REACH, REPRODUCED, Outcome, claim

_FEW = 0.02  # the runs keep an eddy of the ack clock: rates are good to a percent or two


def _list(values: np.ndarray, digits: int = 3) -> str:
    return ", ".join(f"{v:.{digits}g}" for v in values)


def _outcome(good: bool, computed: str, otherwise: str, values: dict[str, float]) -> Outcome:
    return Outcome(REPRODUCED if good else DIFFERS, computed, "" if good else otherwise, values)


def _by(names: tuple[float, ...], values: np.ndarray, label: str) -> dict[str, float]:
    return {f"{label} = {name:g}": float(v) for name, v in zip(names, values, strict=True)}


@claim("fast", "Fig. 2(a)", "Five FAST flows that start 20 s apart: new ones get more than older ones.", "plateaus")
def plateaus_of_fast() -> Outcome:
    found, wanted = plateaus("FAST"), fast.arrival_recursion(5, C, ALPHA)
    on = wanted.rate > 0
    worst = float(np.max(np.abs(found.rate[on] / wanted.rate[on] - 1)))
    rising = all(np.all(np.diff(found.rate[j, : j + 1]) > 0) for j in range(5))
    return _outcome(
        worst < _FEW and rising,
        f"after the fifth {_list(found.rate[-1] * PACKET / 1e6)} Mbit/s; all plateaus are those of the recursion of "
        f"(2), within {100 * worst:.1f} %",
        "the runs do not settle at the recursion",
        {"worst": worst} | {f"flow{i + 1}": float(v) for i, v in enumerate(found.rate[-1])},
    )


@claim("fast", "Fig. 2(b)", "With the estimator the five share fairly.", "equal rates")
def plateaus_of_estimator() -> Outcome:
    rate = plateaus("estimator").rate
    worst = max(float(np.max(np.abs(rate[j, : j + 1] * (j + 1) / C - 1))) for j in range(5))
    return _outcome(
        worst < 0.05, f"each has its share of C within {100 * worst:.1f} % before the next arrives",
        "shares differ", {"worst": worst},
    )  # fmt: skip


@claim("fast", "Fig. 2(b)", "The bias disappears.", "no bias", erratum=True)
def unfair_until_the_probe() -> Outcome:
    r = arrivals("estimator")
    before = r.rate.sel(time=slice(88.0, 89.9)).mean("time").values
    share = float(before[-1] / before[:-1].mean())
    return Outcome(
        DIFFERS if abs(share - 1) > _FEW else REPRODUCED,
        f"the fifth flow has {share:.2f} times the others' rate until it probes, at the age of 10 s",
        "The estimate rests on (3) and (5), so a flow must first come to rest at its unfair rate, here "
        f"(1 + sqrt 17)/2 = {fast.unfairness(4):.2f} times the others'. The bias ends a few seconds after the probe.",
        {"share": share},
    )


@claim("fast", "Fig. 2(c)", "FAST's queue exceeds alpha packets per source; the estimator's does not.", "lower")
def queues() -> Outcome:
    low, high = plateaus("estimator").backlog, plateaus("FAST").backlog
    target = ALPHA * np.arange(1, 6)
    good = bool(np.all(high[1:] > 1.2 * target[1:]) and np.max(np.abs(low / target - 1)) < 0.03)
    return _outcome(
        good, f"FAST {_list(high)} packets, the estimator {_list(low)}, with {_list(target)} wanted",
        "queues differ", {"FAST": high[-1], "estimator": low[-1]},
    )  # fmt: skip


@claim("fast", "Fig. 3(a)", "With FAST the newcomer gets more, for n = 8 and any RTT.", "> 1")
def fast_over_rtt() -> Outcome:
    found, wanted = ratios("FAST", "rtt"), float(fast.unfairness(8))
    return _outcome(
        bool(np.max(np.abs(found / wanted - 1)) < _FEW),
        f"{_list(found)} times the others' mean, at RTTs of 40 to 200 ms; by (3) and (4) {wanted:.3f} at any",
        "not the ratio of (3) to (4)",
        _by(RTTS, found, "d"),
    )


@claim("fast", "Fig. 3(a)", "With rate reduction the sharing depends on the delay: unfair below the threshold (7).",
       "108 ms")  # fmt: skip
def reduction_over_rtt() -> Outcome:
    found = ratios("rate reduction", "rtt")
    below = np.array(RTTS) < fast.rate_reduction_threshold(8, C, ALPHA)
    good = (
        np.all(found[below] > 1.05) and np.all(np.diff(found[below]) < 0) and np.all(np.abs(found[~below] - 1) < 0.03)
    )
    return _outcome(
        bool(good),
        f"{_list(found)} at {_list(1e3 * np.array(RTTS))} ms: over 5 % off at 100 ms, under 3 % from 120 ms on",
        "the change is elsewhere",
        _by(RTTS, found, "d"),
    )


@claim("fast", "Fig. 3(a)", "With the estimator sharing is fair at any RTT.", "1")
def estimator_over_rtt() -> Outcome:
    found = ratios("estimator", "rtt")
    return _outcome(
        bool(np.max(np.abs(found - 1)) < 0.05), f"{_list(found)}", "not fair everywhere", _by(RTTS, found, "d")
    )


@claim("fast", "Fig. 3(b)", "With FAST the unfairness grows with n.", "sqrt(n)")
def fast_over_n() -> Outcome:
    found, wanted = ratios("FAST", "n"), fast.unfairness(np.array(FLOWS))
    return _outcome(
        bool(np.max(np.abs(found / wanted - 1)) < _FEW),
        f"{_list(found)} for n = {_list(np.array(FLOWS))}; by (3) and (4) {_list(wanted)}",
        "not the ratio of (3) to (4)",
        _by(FLOWS, found, "n"),
    )


@claim("fast", "Fig. 3(b)", "For any given RTT the unfairness grows with n, with rate reduction too.", "grows",
       erratum=True)  # fmt: skip
def reduction_over_n() -> Outcome:
    found = ratios("rate reduction", "n")
    needed = fast.rate_reduction_threshold(np.array(FLOWS), C, ALPHA)
    fair = found[needed < 0.1]
    text = f"{_list(found)} for n = {_list(np.array(FLOWS))} at 100 ms"
    if np.all(np.diff(found) > _FEW):
        return Outcome(REPRODUCED, text, "", _by(FLOWS, found, "n"))
    if not (np.max(np.abs(fair - 1)) < 0.03 and np.all(np.diff(found[needed >= 0.1]) > 0)):
        return Outcome(DIFFERS, text, "neither fair below the threshold nor growing above it", _by(FLOWS, found, "n"))
    return Outcome(
        DIFFERS,
        text,
        f"It grows once (7), which is {_list(1e3 * needed)} ms for these n, exceeds the RTT; below, the pause empties "
        "the queue and sharing is fair for every n.",
        _by(FLOWS, found, "n"),
    )


@claim("fast", "Fig. 3(b)", "Only the estimator shares equally for any n.", "1")
def estimator_over_n() -> Outcome:
    found = ratios("estimator", "n")
    return _outcome(
        bool(np.max(np.abs(found - 1)) < 0.05),
        f"{_list(found)} for n = {_list(np.array(FLOWS))}",
        "not fair everywhere",
        _by(FLOWS, found, "n"),
    )


@claim("fast", "Section V", "The curves are of an ns-2 simulation with packets.", "bursts and noise of packets")
def packets() -> Outcome:
    spread = max(abs(ratio(m, 8, 0.1) / v - 1) for m, v in (("FAST", fast.unfairness(8)), ("estimator", 1.0)))
    return Outcome(
        OUT_OF_REACH,
        f"means of the same flows, with eight others at 100 ms within {100 * spread:.1f} % of (3) to (5)",
        "A fluid has no packets: the noise of single round-trip times, on which a measured dr rests, is not in it.",
        {"spread": spread},
    )
