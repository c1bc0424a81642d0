"""Section VI of the delay-based AIMD paper: the knee, Fig. 7, and convergence, Fig. 8."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import Eq, simplify

from fluidcc.analysis.orbit import LimitCycle, limit_cycle
from fluidcc.formulas import delay_aimd
from fluidcc.laws import Source
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.delay_aimd.rules import C2, PACKET, T2, TAU2, backoffs, sawtooth
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import named
from fluidcc.sources import HTCP, PlainDelayAIMD

C7, T7, TAU7 = 500e6, 0.25, 0.05  # the same of Figs. 7 and 8
FLOWS = (1, 2, 4, 8, 16, 32, 64, 128)


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
def fig8(delta: float) -> tuple[Any, NDArray[np.float64]]:
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


def knee_utilisation(claim: Claim) -> Outcome:
    used = {n: fig7(n).utilisation for n in FLOWS}
    return claim.compared(
        [used.values()], named("n = {}", used), least=min(used.values()), flows=FLOWS
    )


def knee_delay(claim: Claim) -> Outcome:
    mean = {n: fig7(n).mean for n in FLOWS}
    return claim.compared(
        [mean.values()], named("n = {}", mean), means=[1e3 * v for v in mean.values()], flows=FLOWS
    )


def knee_of_loss_based(claim: Claim) -> Outcome:
    runs, ours = {n: fig7(n, HTCP) for n in FLOWS}, {n: fig7(n) for n in FLOWS}
    mean = [1e3 * run.mean for run in runs.values()]
    values = {f"n = {n}": run.mean for n, run in runs.items()}
    return claim.reproduced_if(
        all(runs[n].mean > ours[n].mean for n in FLOWS),
        values,
        mean=mean,
        flows=FLOWS,
        largest=max(run.largest for run in runs.values()),
        used=min(run.utilisation for run in runs.values()),
    )


def shorter_epochs(claim: Claim) -> Outcome:
    epochs = {n: (fig7(n).epoch, fig7(n, HTCP).epoch) for n in FLOWS}
    longer = [n for n, (ours, theirs) in epochs.items() if ours >= theirs]
    return claim.reproduced_if(
        not longer,
        {f"n = {n}": ours / theirs for n, (ours, theirs) in epochs.items()},
        ours=[ours for ours, _ in epochs.values()],
        theirs=[theirs for _, theirs in epochs.values()],
        flows=FLOWS,
    )


def knee_losses(claim: Claim) -> Outcome:
    lost, top = max(fig7(n).lost for n in FLOWS), max(fig7(n).largest for n in FLOWS)
    return claim.reproduced_if(lost == 0, {"lost": lost, "top": top}, buffer=T7)


def knee_of_any_number(claim: Claim) -> Outcome:
    mean = {n: fig7(n).mean for n in FLOWS}
    ratio = max(mean.values()) / min(mean.values())
    return claim.compared(
        [ratio, (fig7(n).utilisation for n in FLOWS)],
        {"ratio": ratio},
        least=min(mean.values()),
        most=max(mean.values()),
    )


def knee_of_any_buffer(claim: Claim) -> Outcome:
    flows, sizes = 16, (0.125, 0.25, 0.5, 1.0)
    runs = {size: fig7(flows, buffer=size) for size in sizes}
    short = fig7(flows, buffer=0.055)
    mean = [run.mean for run in runs.values()]
    return claim.compared(
        [max(mean) / min(mean), (run.utilisation for run in runs.values())],
        {f"{size:g} s": run.mean for size, run in runs.items()} | {"short": short.utilisation},
        flows=flows,
        sizes=[1e3 * size for size in sizes],
        means=[1e3 * v for v in mean],
        largest=runs[0.25].largest,
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
    return claim.reproduced_if(off < 1e-9, {"off": off, **a}, b=b)


def closed_form(claim: Claim) -> Outcome:
    found = _of_queue(_cycle(1, 3.0))
    late = delay_aimd.late_cycle(3, TAU2, T2, C2 / PACKET, 1, PlainDelayAIMD.parameter("trickle"))
    prompt = delay_aimd.cycle(3, TAU2, T2, C2 / PACKET, delay_aimd.backoff_factor(T2, T2 + TAU2))
    wanted = {"period": late.period, "most": late.queue_high, "least": late.queue_low}
    off = _off(found, wanted)
    return claim.reproduced_if(
        off < 1e-9, {"off": off, "prompt": prompt.period, **found}, tau0=TAU2
    )


def rise_epochs(claim: Claim) -> Outcome:
    found: dict[str, Any] = {f"beta = {b:g}": delay_aimd.convergence_epochs(b) for b in (0.5, 0.75)}
    return claim.compared(
        found.values(), found, epochs=found.values(), seven=0.75**7, eight=0.75**8
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
        [values["factor 1"], values["epochs 1"]],
        values,
        computed="; ".join(text),
        least=T7 / (T7 + TAU7),
        needed=T7 / 3,
    )


def second_flow(claim: Claim) -> Outcome:
    _, windows = fig8(0.9)
    gap = np.abs(windows[:, 0] - windows[:, 1]) / windows.sum(axis=1)
    return claim.reproduced_if(
        gap[-1] < 0.02 and np.all(np.diff(gap) < 0), {"first": gap[0], "last": gap[-1]}, gap=gap
    )


def testbed(claim: Claim) -> Outcome:
    return claim.out_of_reach(rate=C7, buffer=T7)
