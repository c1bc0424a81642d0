"""Section VI of the delay-based AIMD paper: the knee, Fig. 7, and convergence, Fig. 8."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sympy import Eq, simplify

from fluidcc.cycles.orbit import LimitCycle, limit_cycle
from fluidcc.formulas import delay_aimd
from fluidcc.laws import Source
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.delay_aimd.rules import backoffs, run_of, shrinking
from fluidcc.papers.model import (
    Found,
    compared,
    needs_packets,
    not_given,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import agrees, falling, named
from fluidcc.papers.zoo.delay_aimd import C2, C7, PACKET, T2, T7, TAU2, TAU7, knee
from fluidcc.sources import HTCP, PlainDelayAIMD, PrintedDelayAIMD
from fluidcc.symbols import positive

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
    law = law or PlainDelayAIMD(tau0=TAU7)
    stop = 60.0 if law.name == "PlainDelayAIMD" else 150.0  # loss-based epochs are longer
    run = run_of(knee(n, law, buffer), stop, rtol=1e-6)
    when = backoffs(run, law=law)
    when = when[when > stop / 2]
    late = run.sel(time=slice(when[0], when[-1]))
    q, used = late.queueing_delay, late.utilisation.mean()
    found = used, q.mean(), q.max(), late.lost[-1, 0] - late.lost[0, 0], np.diff(when)[-1]
    return Knee(*map(float, found))


@cache
def fig8(delta: float) -> tuple[Any, np.ndarray]:
    """Run Fig. 8; return it with both windows [packet] before each backoff with two flows."""
    run = scenarios["delay_aimd_fig8"](delta=delta).simulate(rtol=1e-6)
    t, w = run.time.values, run.PlainDelayAIMD_w.values
    when = backoffs(run)
    before = np.searchsorted(t, when[when > 105.0]) - 2  # a sample may lie on the backoff itself
    return run, w[before]


def _of_flows(part: str) -> dict[int, float]:
    """One number of `fig7`, by the number of flows."""
    return {n: getattr(fig7(n), part) for n in FLOWS}


def _busy(used: float) -> bool:
    """Whether a link was never idle."""
    return used > 1 - 1e-9


def _at_the_knee(runs: Iterable[Knee]) -> bool:
    """Whether all have a link that is never idle, no loss, and the mean queue of Section VI-B."""
    return all(
        _busy(run.utilisation) and run.lost == 0 and agrees("< 30 ms", run.mean) for run in runs
    )


def knee_utilisation() -> Found:
    used, drained = _of_flows("utilisation"), fig7(1, PlainDelayAIMD(tau0=TAU7, delta_p=0.9))
    return reproduced_if(
        _busy(min(used.values())), named("n = {}", used), flows=FLOWS, drained=drained.utilisation
    )


def knee_delay() -> Found:
    mean, law = _of_flows("mean"), PrintedDelayAIMD(tau0=TAU7)
    printed = {n: fig7(n, law).mean for n in FLOWS}
    return compared(
        [printed.values()],
        named("n = {}", mean),
        named("Algorithm 1, n = {}", printed),
        means=[1e3 * v for v in mean.values()],
        printed=[1e3 * v for v in printed.values()],
        flows=FLOWS,
    )


def knee_of_loss_based() -> Found:
    runs, ours = {n: fig7(n, HTCP) for n in FLOWS}, _of_flows("mean")
    mean = {n: run.mean for n, run in runs.items()}
    largest = max(run.largest for run in runs.values())
    return reproduced_if(
        agrees("250 ms", largest) and all(mean[n] > ours[n] for n in FLOWS),
        named("n = {}", mean),
        mean=[1e3 * v for v in mean.values()],
        flows=FLOWS,
        largest=largest,
        used=min(run.utilisation for run in runs.values()),
    )


def shorter_epochs() -> Found:
    ours, theirs = (np.array([fig7(n, law).epoch for n in FLOWS]) for law in (None, HTCP))
    return reproduced_if(
        np.all(ours < theirs),
        named("n = {}", FLOWS, ours / theirs),
        ours=ours,
        theirs=theirs,
        flows=FLOWS,
    )


def impact_of_the_factor() -> Found:
    beta = [delay_aimd.backoff_factor(T7, T7 + TAU7), 0.5]
    length = [fig7(2, law).epoch for law in (None, HTCP)]
    epochs = [delay_aimd.convergence_epochs(b) for b in beta]
    times = np.multiply(epochs, length)
    return not_given(ours=times[0], theirs=times[1], epochs=epochs, length=length)


def knee_losses() -> Found:
    lost, top = (max(_of_flows(part).values()) for part in ("lost", "largest"))
    return reproduced_if(lost == 0, lost=lost, top=top, buffer=T7)


def knee_of_any_number() -> Found:
    runs = [fig7(n, PrintedDelayAIMD(tau0=TAU7)) for n in FLOWS]
    least, most = min(run.mean for run in runs), max(run.mean for run in runs)
    return reproduced_if(_at_the_knee(runs), ratio=most / least, least=least, most=most)


def knee_of_any_buffer() -> Found:
    runs = {size: fig7(16, buffer=size) for size in (0.125, 0.25, 0.5, 1.0)}
    mean = {size: run.mean for size, run in runs.items()}
    return reproduced_if(
        _at_the_knee(runs.values()),
        named("{:g} s", mean),
        short=fig7(16, buffer=0.055).utilisation,
        flows=16,
        sizes=[1e3 * size for size in runs],
        means=[1e3 * v for v in mean.values()],
        largest=runs[0.25].largest,
    )


def knee_independent() -> Found:
    *_, C, _, n = delay_aimd.cycle.arguments
    form = delay_aimd.cycle.form
    mean = delay_aimd.mean_queueing_delay(TAU7, T7, delay_aimd.backoff_factor(T7, T7 + TAU7))
    return proved(
        *(
            proof(Eq(simplify(form[name].diff(s)), 0))
            for name in ("mean_queueing_delay", "utilisation")
            for s in (n, C)
        ),
        {"tau0 = 50 ms": mean},
    )


@cache
def _cycle(n: int, alpha: float) -> LimitCycle:
    """The cycle of `n` equal flows on Fig. 2's link: exact ack clock, constant increase `alpha`."""
    law = PlainDelayAIMD(alpha=alpha, slope=0, coefficient=0, pace=0)
    flows = [{"law": law, "start": 0, "packet": PACKET}] * n
    return limit_cycle(dumbbell(flows, {"capacity": C2, "delay": T2 / 2}), rtol=1e-11)


def _of_queue(cycle: LimitCycle) -> dict[str, float]:
    ends = {which: getattr(cycle, which) for which in ("least", "most", "mean")}
    queues = {which: end.queueing_delay[0].item() for which, end in ends.items()}
    return {"period": cycle.period, **queues}


def _off(found: dict[str, float], wanted: dict[str, float]) -> float:
    """Largest difference: of the period over itself, of queueing delays over the largest.

    A queue is a time, and times are resolved to 1e-11 s: that is the ninth digit of the smallest
    queue.
    """
    return max(
        abs(found[name] - value) / wanted["period" if name == "period" else "most"]
        for name, value in wanted.items()
    )


def synchronised() -> Found:
    a, b = _of_queue(_cycle(3, 1.0)), _of_queue(_cycle(1, 3.0))
    off = _off(a, b)
    return reproduced_if(off < 1e-9, a, off=off, b=b)


def closed_form() -> Found:
    found = _of_queue(_cycle(1, 3.0))
    late = delay_aimd.late_cycle(3, TAU2, T2, C2 / PACKET, 1, PlainDelayAIMD.parameter("trickle"))
    prompt = delay_aimd.cycle(3, TAU2, T2, C2 / PACKET, delay_aimd.backoff_factor(T2, T2 + TAU2))
    off = _off(found, {"period": late.period, "most": late.queue_high, "least": late.queue_low})
    return reproduced_if(off < 1e-9, found, off=off, prompt=prompt.period, tau0=TAU2)


def rise_epochs() -> Found:
    found = {f"beta = {b:g}": delay_aimd.convergence_epochs(b) for b in (0.5, 0.75)}
    return compared(found.values(), found, epochs=found.values(), seven=0.75**7, eight=0.75**8)


def converges() -> Found:
    found = {}
    for delta in (1.0, 0.9):
        run, windows = fig8(delta)
        factor, top = shrinking(windows), run.rtt.sel(time=slice(150, None)).max().item()
        beta = delay_aimd.backoff_factor(T7, top, delta)
        found[delta] = factor, beta, delay_aimd.convergence_epochs(factor)
    return compared(
        [found[1.0][1], found[1.0][2]],
        {
            f"{name} {delta:g}": value
            for delta, values in found.items()
            for name, value in zip(("factor", "beta", "epochs"), values, strict=True)
        },
        computed="; ".join(
            f"delta = {delta:g}: {factor:.3f} an epoch, beta {beta:.3f}, {epochs:.1f} epochs to 90 "
            "%"
            for delta, (factor, beta, epochs) in found.items()
        ),
        least=T7 / (T7 + TAU7),
        needed=T7 / 3,
    )


def bounded_by_largest() -> Found:
    # a flow's part of sum a (1 - b)/(z - b) = sum a, the secular equation of a diagonal matrix and
    # one of rank one
    a, b, z, d = positive("a b z d")
    part = a * (1 - b) / (z - b)
    parts = Eq(part.subs(z, 1), a), proof(part.diff(z).subs(z, b + d) < 0, b < 1)
    rng, found = np.random.default_rng(1), []
    for _ in range(300):
        beta, more = rng.random((2, rng.integers(3, 11)))
        modes_of_n = np.diag(beta) + np.outer(more, 1 - beta) / more.sum()
        found.append(np.sort(np.linalg.eigvals(modes_of_n).real)[-2] / beta.max())
    most = max(found)
    return proved(*parts, checks=most <= 1, networks=len(found), least=min(found), most=most)


def second_flow() -> Found:
    _, windows = fig8(0.9)
    gap = np.abs(windows[:, 0] - windows[:, 1]) / windows.sum(axis=1)
    good = falling(gap) and gap[-1] < 0.1 * gap[0]
    return reproduced_if(good, first=gap[0], last=gap[-1], gap=gap)


def testbed() -> Found:
    return needs_packets(rate=C7, buffer=T7)
