"""Section VI of the delay-based AIMD paper: the knee, Fig. 7, and convergence, Fig. 8."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sympy import Eq, simplify

from fluidcc.analysis.orbit import LimitCycle, limit_cycle
from fluidcc.formulas import delay_aimd
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.delay_aimd.common import (
    C2,
    C7,
    FLOWS,
    PACKET,
    T2,
    T7,
    TAU2,
    TAU7,
    fig7,
    fig8,
    ms,
)
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import bound, numbers, percent
from fluidcc.sources import HTCP, PlainDelayAIMD


def knee_utilisation(claim: Claim) -> Outcome:
    used = {n: fig7(n).utilisation for n in FLOWS}
    return claim.compared(
        [("100", 100 * v) for v in used.values()],
        {f"n = {n}": v for n, v in used.items()},
        computed=f"{percent(min(used.values()))} at least, for {', '.join(map(str, FLOWS))} flows",
    )


def knee_delay(claim: Claim) -> Outcome:
    mean = {n: fig7(n).mean for n in FLOWS}
    return claim.compared(
        [("< 30", 1e3 * v) for v in mean.values()],
        {f"n = {n}": v for n, v in mean.items()},
        computed=f"{numbers([1e3 * v for v in mean.values()])} ms for {', '.join(map(str, FLOWS))} "
        "flows",
    )


def knee_of_loss_based(claim: Claim) -> Outcome:
    runs, ours = {n: fig7(n, HTCP) for n in FLOWS}, {n: fig7(n) for n in FLOWS}
    mean = [1e3 * run.mean for run in runs.values()]
    values = {f"n = {n}": run.mean for n, run in runs.items()}
    return claim.reproduced_if(
        all(runs[n].mean > ours[n].mean for n in FLOWS),
        values,
        computed=f"mean queueing delays of {numbers(mean)} ms for {', '.join(map(str, FLOWS))} "
        f"flows, the largest the whole buffer of {ms(max(run.largest for run in runs.values()))}; "
        f"utilisation {percent(min(run.utilisation for run in runs.values()))} at least",
    )


def shorter_epochs(claim: Claim) -> Outcome:
    epochs = {n: (fig7(n).epoch, fig7(n, HTCP).epoch) for n in FLOWS}
    longer = [n for n, (ours, theirs) in epochs.items() if ours >= theirs]
    return claim.reproduced_if(
        not longer,
        {f"n = {n}": ours / theirs for n, (ours, theirs) in epochs.items()},
        computed=f"{numbers(ours for ours, _ in epochs.values())} s for "
        f"{', '.join(map(str, FLOWS))} flows on the link of Fig. 7, loss-based H-TCP "
        f"{numbers(theirs for _, theirs in epochs.values())} s",
    )


def knee_losses(claim: Claim) -> Outcome:
    lost, top = max(fig7(n).lost for n in FLOWS), max(fig7(n).largest for n in FLOWS)
    return claim.reproduced_if(
        lost == 0,
        {"lost": lost, "top": top},
        computed=f"none; the queueing delay is at most {ms(top)} of {ms(T7)}",
    )


def knee_of_any_number(claim: Claim) -> Outcome:
    mean = {n: fig7(n).mean for n in FLOWS}
    ratio = max(mean.values()) / min(mean.values())
    return claim.compared(
        [("1", ratio), *(("100", 100 * fig7(n).utilisation) for n in FLOWS)],
        {"ratio": ratio},
        computed=f"from {FLOWS[0]} to {FLOWS[-1]} flows on the link of Fig. 7 the mean queueing "
        f"delay grows {ratio:.2f}-fold, from {ms(min(mean.values()))} to {ms(max(mean.values()))}, "
        "with full utilisation",
    )


def knee_of_any_buffer(claim: Claim) -> Outcome:
    flows, sizes = 16, (0.125, 0.25, 0.5, 1.0)
    runs = {size: fig7(flows, buffer=size) for size in sizes}
    short = fig7(flows, buffer=0.055)
    mean = [run.mean for run in runs.values()]
    return claim.compared(
        [
            ("1.00", max(mean) / min(mean)),
            *(("100", 100 * run.utilisation) for run in runs.values()),
        ],
        {f"{size:g} s": run.mean for size, run in runs.items()} | {"short": short.utilisation},
        computed=f"{flows} flows on the link of Fig. 7 with "
        f"{numbers((1e3 * size for size in sizes), '.0f')} ms of buffer: mean queueing delays of "
        f"{numbers(1e3 * v for v in mean)} ms",
        reason=f"A buffer must hold tau0 and the overshoot, {ms(runs[0.25].largest)} here: with 55 "
        f"ms losses take over, and utilisation is {percent(short.utilisation, 2)}.",
    )


def knee_independent(claim: Claim) -> Outcome:
    *_, C, _, n = delay_aimd.cycle.arguments
    form = delay_aimd.cycle.form
    steady = delay_aimd.mean_queueing_delay
    parts = [
        proof(Eq(simplify(form[name].diff(s)), 0))
        for name in ("mean_queueing_delay", "utilisation")
        for s in (n, C)
    ]
    return claim.proved(
        *parts, values={"tau0 = 50 ms": steady(TAU7, T7, delay_aimd.backoff_factor(T7, T7 + TAU7))}
    )


@cache
def _cycle(n: int, alpha: float) -> LimitCycle:
    """The cycle of `n` equal flows on Fig. 2's link: exact ack clock, constant increase `alpha`."""
    law = PlainDelayAIMD(alpha=alpha, slope=0, coefficient=0, pace=0)
    flows = [{"law": law, "start": 0, "packet": PACKET}] * n
    return limit_cycle(dumbbell(flows, {"capacity": C2, "delay": T2 / 2}), rtol=1e-11)


def _of_queue(cycle: LimitCycle) -> dict[str, float]:
    values = {
        which: float(getattr(cycle, which).queueing_delay.values[0])
        for which in ("least", "most", "mean")
    }
    return {"period": cycle.period, **values}


def _off(found: dict[str, float], wanted: dict[str, float]) -> float:
    """Largest difference: of the period over itself, of queueing delays over the largest.

    A queue is a time, and times are resolved to 1e-11 s: that is the ninth digit of the smallest
    queue.
    """
    size = {name: wanted["period"] if name == "period" else wanted["most"] for name in wanted}
    return max(abs(found[name] - value) / size[name] for name, value in wanted.items())


def synchronised(claim: Claim) -> Outcome:
    a, b = _of_queue(_cycle(3, 1.0)), _of_queue(_cycle(1, 3.0))
    off = _off(a, b)
    return claim.reproduced_if(
        off < 1e-9,
        {"off": off, **a},
        computed=f"epochs of {a['period']:.6f} and {b['period']:.6f} s, mean queueing delays of "
        f"{ms(a['mean'], digits=6)} and {ms(b['mean'], digits=6)}; period and extremes of the two "
        f"cycles agree within {bound(off)}, the queue over its largest",
    )


def closed_form(claim: Claim) -> Outcome:
    found = _of_queue(_cycle(1, 3.0))
    late = delay_aimd.late_cycle(3, TAU2, T2, C2 / PACKET, 1, PlainDelayAIMD.parameter("trickle"))
    prompt = delay_aimd.cycle(3, TAU2, T2, C2 / PACKET, delay_aimd.backoff_factor(T2, T2 + TAU2))
    wanted = {"period": late.period, "most": late.queue_high, "least": late.queue_low}
    off = _off(found, wanted)
    return claim.reproduced_if(
        off < 1e-9,
        {"off": off, "prompt": prompt.period, **found},
        computed=f"period {found['period']:.6f} s, queueing delay from "
        f"{ms(found['least'], digits=5)} to {ms(found['most'], digits=5)}: the closed form with "
        f"feedback after a round trip, within {bound(off)}, the queue over the largest",
        reason=f"With feedback at once the period would be {prompt.period:.4f} s and the queue "
        f"would go from 0 to {ms(TAU2)}: the window grows by 3 packets in the round trip in which "
        "the news comes, and (3) leaves of it what would have emptied the queue before.",
    )


def rise_epochs(claim: Claim) -> Outcome:
    found: dict[str, Any] = {f"beta = {b:g}": delay_aimd.convergence_epochs(b) for b in (0.5, 0.75)}
    return claim.compared(
        zip(("3", "7"), found.values(), strict=True),
        found,
        computed=numbers(found.values(), ".2f") + " epochs",
        reason=f"log 0.1/log 0.75 = 8.00, not 7: after 7 epochs {percent(0.75**7)} of the "
        f"difference is left, after 8 {percent(0.75**8)}. For 0.5 it is 3.32, so 4 whole epochs.",
    )


def converges(claim: Claim) -> Outcome:
    values: dict[str, float] = {}
    text = []
    for delta in (1.0, 0.9):
        run, windows = fig8(delta)
        gap = windows[:, 0] - windows[:, 1]
        factor = float((gap[6] / gap[0]) ** (1 / 6))
        top = float(run.rtt.sel(time=slice(150, None)).max())
        beta = delay_aimd.backoff_factor(T7, top, delta)
        epochs = delay_aimd.convergence_epochs(factor)
        values |= {
            f"factor {delta:g}": factor,
            f"beta {delta:g}": beta,
            f"epochs {delta:g}": epochs,
        }
        text.append(
            f"delta = {delta:g}: {factor:.3f} an epoch, beta {beta:.3f}, {epochs:.1f} epochs to 90 "
            "%"
        )
    return claim.compared(
        [("about 0.75", values["factor 1"]), ("about 7", values["epochs 1"])],
        values,
        computed="; ".join(text),
        reason=f"By (3) beta is T/(T + tau0) = {T7 / (T7 + TAU7):.3f} for 250 and 50 ms, less the "
        "overshoot. The 0.75 of Fig. 8 asks for delta = 0.9 in (4), or for (3) and a tau0 of "
        f"{ms(T7 / 3)}; Fig. 8 prints neither. 90 % then take 8 epochs, not 7. A measured curve "
        "without printed values.",
    )


def second_flow(claim: Claim) -> Outcome:
    _, windows = fig8(0.9)
    gap = np.abs(windows[:, 0] - windows[:, 1]) / windows.sum(axis=1)
    return claim.reproduced_if(
        gap[-1] < 0.02 and np.all(np.diff(gap) < 0),
        {"first": gap[0], "last": gap[-1]},
        computed=f"relative difference {percent(gap[0])} at the first backoff, {percent(gap[8])} "
        f"eight later, {percent(gap[-1])} at the end of 300 s",
    )


def testbed(claim: Claim) -> Outcome:
    return claim.out_of_reach(
        computed=f"a fluid queue of {C7 / 1e6:g} Mbit/s with {ms(T7)} of buffer in its place"
    )
