"""Equations (1) to (7), Algorithm 1 and Table I of the delay-based AIMD paper."""

from __future__ import annotations

from functools import cache, partial
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from sympy import Eq, Max, Min, diff, log

from fluidcc.formulas import delay_aimd
from fluidcc.laws import Source
from fluidcc.metrics import jumps
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.papers import printed
from fluidcc.papers.model import (
    Found,
    differs_if,
    not_given,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import named
from fluidcc.papers.zoo.delay_aimd import C2, PACKET, T2, TAU2, on_link_2
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import (
    HTCP,
    DelayAIMD,
    PlainDelayAIMD,
    PrintedDelayAIMD,
    SmoothedDelayAIMD,
)
from fluidcc.symbols import positive

ms = partial(printed.ms, digits=3)


def run_of(net: Network, stop: float, **more: Any) -> Any:
    """A run that is sampled every 10 ms."""
    return simulate(net, stop, **({"samples": int(100 * stop) + 1, "rtol": 1e-7} | more))


def backoffs(run: Any, flow: str = "f1", law: Source = PlainDelayAIMD) -> np.ndarray:
    """When a flow of `law` backed off [s]."""
    cuts = [k for k, jump in enumerate(law.jumps) if any(z.name == "w" for z in jump.reset)]
    found = jumps(run)
    return np.asarray(found.time[(found.of == flow) & found.rule.isin(cuts)])


def whole_epochs(run: Any, after: float, flow: str = "f1", law: Source = PlainDelayAIMD) -> Any:
    """The samples from the first to the last backoff of a flow of `law` after a time [s]."""
    when = backoffs(run, flow, law)
    when = when[when > after]
    return run.sel(time=slice(when[0], when[-1]))


def last_cycle(run: Any) -> tuple[float, float, Any]:
    """Period and mean queueing delay of the first flow's last cycle [s], and its samples."""
    start, stop = backoffs(run)[-2:]
    part = run.sel(time=slice(start, stop))
    at = np.concatenate([[start], part.time, [stop]])
    q = np.interp(at, run.time, run.queueing_delay[:, 0])
    return stop - start, np.trapezoid(q, at) / (stop - start), part


@cache
def fig2(adaptive: bool = True) -> Any:
    """A run of Fig. 2, with the adaptive backoff or one of half."""
    return scenarios["delay_aimd_fig2"](adaptive=adaptive).simulate(rtol=1e-7)


C, q, w, x, part, span = positive("C q w x p s")


def shrinking(windows: np.ndarray) -> float:
    """By which factor the difference of two flows' windows shrinks in an epoch."""
    gap = windows[:, 0] - windows[:, 1]
    return float((gap[6] / gap[0]) ** (1 / 6))


def delay_backoff() -> Found:
    run = fig2()
    top, full = run.queueing_delay.sel(time=slice(10.0, None)).max(), 400 * PACKET / C2
    cuts = len(backoffs(run))
    return reproduced_if(
        cuts > 1 and run.lost.max() == 0.0 and TAU2 < top < full, top=top, full=full, backoffs=cuts
    )


def smoothed_delay() -> Found:
    gains = {"per ack": 1 / 8, "per round": 1 / 8 / (C2 * (T2 + TAU2) / PACKET)}
    runs = {k: run_of(on_link_2(SmoothedDelayAIMD(gain=gain)), 40.0) for k, gain in gains.items()}
    runs["none"] = fig2()
    top = {k: run.queueing_delay.sel(time=slice(10.0, None)).max() for k, run in runs.items()}
    return not_given(top)


def increase_minimum() -> Found:
    printed = 1 + 10 * x + x**2 / 2  # x = Delta - 1 > 0
    never = proof(Eq(Min(1, printed), 1))
    Delta = delay_aimd.increase.arguments[0]
    ours = delay_aimd.increase.form.subs(delay_aimd.increase.defaults).subs(Delta, 1 + x)
    meant = proof(Eq(Max(1, printed), ours))
    before = printed.subs(x, -x)  # x = 1 - Delta, of which ours is 1
    same = proof(before <= 1, x <= 1)
    return differs_if(never and meant and same, {"at Delta = 0": min(1, before.subs(x, 1))})


def busy_link() -> Found:
    windows, trips, smallest = (positive(f"{name}1:5") for name in ("w", "R", "m"))
    rates = [a / b for a, b in zip(windows, trips, strict=True)]
    factor = delay_aimd.backoff_factor
    after = [
        factor.form.subs(dict(zip(factor.arguments, (m, r, 1), strict=True))) * a / m
        for a, r, m in zip(windows, trips, smallest, strict=True)
    ]
    return proved(*factor.claims.values(), Eq(sum(after), sum(rates)))


def ratchet_form() -> Found:
    form = delay_aimd.ratchet
    k, start, T, delta = form.arguments
    step = proof(delta * T <= T, delta <= 1)  # so max(T, delta max(T, R)) is max(T, delta R)
    return proved(*form.claims.values(), step, Eq(form.form.subs({start: T * delta ** (-k)}), T))


def threshold_between() -> Found:
    form = delay_aimd.threshold.form
    base, gamma, high, low = delay_aimd.threshold.arguments
    at = form.subs({high: low + span, gamma: part})
    return proved(
        Eq(form.subs(gamma, 0), base),
        Eq(form.subs(gamma, 1), high - low),
        Eq(at - base, part * (span - base)),
        Eq(span - at, (1 - part) * (span - base)),
    )


def slow_start_threshold() -> Found:
    cwnd, tau0, high, low = delay_aimd.max_ssthresh.arguments
    # A round of w packets is acknowledged at rate C; two packets leave for each. When q more than
    # C's share were sent the queue is q. News of it comes 2 q acknowledgements into the next round,
    # when the window is 2 w + 2 q.
    found = delay_aimd.max_ssthresh.form.subs({high: low + q / C, cwnd: 2 * w + 2 * q})
    last = proof(Eq(found.subs(q, w), C * tau0))
    above = proof(Eq(found / (C * tau0), (w + q) / (2 * q)))
    return differs_if(last and above, {"q = w/3": ((w + q) / (2 * q)).subs(q, w / 3)})


def slow_start_length() -> Found:
    form = delay_aimd.slow_start_rounds
    rtt, tau0 = form.arguments
    doublings = log(C * tau0 / w, 2)  # from w packets to max_ssthresh
    found = {rate: np.log2(rate * 1e9 * TAU2 / PACKET / 10) for rate in (0.05, 1, 10, 100)}
    parts = (*form.claims.values(), Eq(form.form, 2 * rtt / tau0))
    return differs_if(
        all(map(proof, parts)) and proof(diff(doublings, C) > 0),
        named("{:g} Gbit/s", found),
        linear=form(T2, TAU2),
        found=found.values(),
        rates=list(found),
    )


def algorithm_increase() -> Found:
    beta = delay_aimd.backoff_factor(T2, T2 + TAU2)
    factor = 2 * (1 - beta)
    # What (2) must add up to in an epoch: with one packet a round trip all along it would last so
    # many seconds.
    needed = delay_aimd.cycle(1.0, TAU2, T2, C2 / PACKET, beta).period
    plain, faster = (delay_aimd.epoch_duration(2 * needed / a, 1.0) for a in (1.0, factor))
    epochs = [_epoch(a) for a in (1.0, factor)]
    longer = epochs[1] / epochs[0]
    return differs_if(
        abs(longer - 1) > 0.01,
        {"by (2)": faster / plain},
        factor=factor,
        longer=longer,
        beta=beta,
        epochs=epochs,
        inverse=1 / factor,
    )


@cache
def _epoch(factor: float) -> float:
    """An epoch of Fig. 2 with that factor in the increase [s]."""
    return last_cycle(run_of(on_link_2(PlainDelayAIMD(alpha=factor)), 40.0))[0]


def algorithm_threshold() -> Found:
    base, gamma, high, low = delay_aimd.threshold.arguments
    above = delay_aimd.threshold.form.subs({high: low + base + span, gamma: part}) - base
    net = scenarios["delay_aimd_fig6"](gamma=0.9, Delta0=0.0).net
    printed, ours = (
        _share(net.with_flow("delay", law=law(gamma=0.9))) for law in (PrintedDelayAIMD, DelayAIMD)
    )
    return differs_if(
        proof(Eq(above, part * span)) and printed < ours,
        tau0=delay_aimd.threshold(0.02, 0.5, 0.18, 0.1),
        printed=printed,
        ours=ours,
    )


def _share(net: Network) -> float:
    """Of the rates in Fig. 6, that of the delay-based flow."""
    run = simulate(net, 120.0, samples=6001, rtol=1e-6)
    rates = whole_epochs(run, 40.0, "loss1", HTCP).rate.mean("time")
    return float(rates.sel(flow="delay") / rates.sum())


def algorithm_cap() -> Found:
    cap = PlainDelayAIMD.parameter("cap")
    free = delay_aimd.backoff_factor(0.25, 0.25 + TAU2)
    used = delay_aimd.cycle(1, TAU2, 0.25, C2 / PACKET, min(free, cap)).utilisation
    # bound is the T/tau0 at which (3) is cap
    return differs_if(used < 1 - 1e-12, bound=cap / (1 - cap), utilisation=used, free=free)


def algorithm_loss_branch() -> Found:
    run = run_of(on_link_2(PlainDelayAIMD, 100), 20.0)
    top, cuts = run.queueing_delay.max(), len(backoffs(run))
    return differs_if(top < TAU2 and cuts > 0, lost=run.lost.max() / PACKET, top=top, backoffs=cuts)


# --- Table I --------------------------------------------------------------------------------------

# Table I: windows [packet] and epochs [s]
TABLE = ((100, 1000, 2000, 5000, 10000, 20000, 50000), (1.1, 3.1, 4.3, 6.6, 9.2, 12.8, 19.4))


class Convention(NamedTuple):
    """One reading of Table I: of what its windows and times are."""

    coefficient: float
    offset: float  # [s]
    rounds: bool  # whether whole round trips are counted
    rtt: float  # [s]
    beta: float
    queue: float  # beyond the window of the table, at the backoff [packet]

    def __str__(self) -> str:
        count = "whole rounds" if self.rounds else "a fluid"
        above = f", {self.queue:g} packets of queue" if self.queue else ""
        return (
            f"coefficient {self.coefficient:g}, offset {self.offset:g} s, {count}, RTT "
            f"{ms(self.rtt)}, beta {self.beta:g}{above}"
        )


QUEUE = 40.0  # Packets beyond the bandwidth-delay product with which Table I can be had


@cache
def conventions() -> dict[Convention, np.ndarray]:
    """Epochs [s] of Table I by every convention that was tried."""
    trips = (0.05, 0.1, 0.12, 0.15, 0.2, 0.25)
    tried = product((0.5, 0.25), (0.0, 1.0), (False, True), trips, (0.5, 0.8), (0.0, QUEUE))
    return {
        c: delay_aimd.epoch_duration(np.array(TABLE[0], dtype=float), **c._asdict())
        for c in (Convention(*v) for v in tried)
    }


def equal(found: np.ndarray) -> Any:
    """How many entries of Table I, along the last axis, are the printed ones."""
    return np.sum(np.round(found, 1) == np.array(TABLE[1]), axis=-1)


def table_one() -> Found:
    tried = conventions()

    def farthest(one: Convention) -> float:
        return float(np.abs(tried[one] - np.array(TABLE[1])).max())

    def fit(one: Convention) -> tuple[int, float]:
        return equal(tried[one]), -farthest(one)

    most, plain = max(tried, key=fit), max((c for c in tried if not c.queue), key=fit)
    as_printed = tried[Convention(0.5, 1.0, False, 0.1, 0.5, 0.0)]
    whole = [c for c, v in tried.items() if equal(v) == len(v)]
    return differs_if(
        equal(as_printed) != len(as_printed),
        named("W = {}", TABLE[0], tried[plain]),
        {"with a queue": equal(tried[most]), "as printed": equal(as_printed)},
        equal=equal(tried[plain]),
        as_printed=as_printed,
        tried=len(tried),
        whole=len(whole),
        queue=QUEUE,
        half=QUEUE / 2,
        most=str(most),
        plain=str(plain),
        found=tried[plain],
        farthest=farthest(plain),
    )


def coefficient() -> Found:
    plain, late = ([most_entries(a, offset) for a in (0.5, 0.25)] for offset in (0.0, 1.0))
    rounds = [_by_rounds(a) for a in (0.5, 0.25)]
    return differs_if(
        plain[0] < plain[1] and rounds[0] < rounds[1],
        named("with {:g}", (0.5, 0.25), plain),
        named("with {:g}, 1 s", (0.5, 0.25), late),
        plain=plain,
        late=late,
        rounds=rounds,
        queue=QUEUE,
    )


def most_entries(coefficient: float, offset: float) -> int:
    """How many entries of Table I a fluid can have, whatever the round trip, beta and queue.

    An epoch lasts t if s (W + q) is `epoch_growth` of t over one second, with s = (1 - beta) RTT.
    So each entry allows a strip in the plane of s and s q >= 0, and some have a point in common.
    """
    windows, printed = np.array(TABLE, dtype=float)
    low, high = (
        delay_aimd.epoch_growth(printed + d, 1.0, coefficient, offset) for d in (-0.05, 0.05)
    )
    strips = np.column_stack([windows, np.ones_like(windows)])
    for count in range(len(windows), 0, -1):
        for some in map(list, combinations(range(len(windows)), count)):
            ends = np.concatenate([high[some], -low[some]])
            if linprog([0, 0], np.vstack([strips[some], -strips[some]]), ends).success:
                return count
    return 0


def _by_rounds(coefficient: float) -> int:
    """The same in whole round trips of 10 to 300 ms, beta = 1/2, without or with `QUEUE`."""
    trips = np.arange(10, 301)[:, None] / 1000
    offset, queue = np.array(list(product((0.0, 1.0), (0.0, QUEUE)))).T[:, :, None, None]
    windows, how = np.array(TABLE[0], dtype=float), {"offset": offset, "queue": queue}
    found = delay_aimd.epoch_duration(windows, trips, coefficient=coefficient, rounds=True, **how)
    return int(equal(found).max())
