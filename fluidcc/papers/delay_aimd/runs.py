"""Figures 1 to 6, unequal round trips, paths and slow start of the delay-based AIMD paper."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sympy import Eq, limit

from fluidcc.cycles.orbit import limit_cycle
from fluidcc.formulas import delay_aimd, response
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.delay_aimd.rules import (
    backoffs,
    fig2,
    last_cycle,
    ms,
    run_of,
    shrinking,
    whole_epochs,
)
from fluidcc.papers.model import REFUTED, Found, differs_if, proof, reproduced_if
from fluidcc.papers.printed import agrees, named, numbers, off, percent, rising
from fluidcc.papers.zoo.delay_aimd import (
    C2,
    PACKET,
    RATCHET_BUFFER,
    T2,
    TAU2,
    behind_queue,
    flow,
    on_link_2,
)
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import HTCP, DelayAIMD, PlainDelayAIMD, SlowStartAIMD, Vegas


def smallest_rtt(run: Any) -> np.ndarray:
    """The smallest round trip each flow has seen [s], over time."""
    return np.minimum(run.PlainDelayAIMD_low.values, run.rtt.values)


@cache
def fig1(n: int) -> Any:
    """`n` Vegas flows on the link of Fig. 1."""
    return scenarios["delay_aimd_fig1"](n=n).simulate(rtol=1e-6)


@cache
def fig5(Delta0: float) -> Any:
    """One flow that backs off at most every `Delta0` seconds, on the link of Fig. 2."""
    return scenarios["delay_aimd_fig5"](Delta0=Delta0).simulate(rtol=1e-7)


@cache
def ratchet_run(flows: int, delta: float, packets: float = RATCHET_BUFFER, q: float = 0.08) -> Any:
    """Run flows that begin behind a queue `q` [s] of others, whose windows would keep it up."""
    return run_of(behind_queue(flows, delta, packets, q), 25.0)


@cache
def coexistence(gamma: float, Delta0: float, leave: float | None = None) -> Any:
    """One delay-based and three loss-based flows of Fig. 6; the latter leave at `leave` [s]."""
    given = {"gamma": gamma, "Delta0": Delta0, "leave": leave}
    return scenarios["delay_aimd_fig6"](**given).simulate(rtol=1e-6)


NS = "The curve is of an ns simulation with packets, without printed values; the shape is compared."


def vegas_queue() -> Found:
    left = {n: fig1(n).backlog[-1, 0].item() / PACKET for n in (2, 8, 16)}
    target = Vegas.parameter("alpha")
    return reproduced_if(
        off(np.array(list(left.values())), [n * target for n in left]) < 0.01,
        named("n = {}", left),
        wanted=[n * target for n in left],
        target=target,
        ns=NS,
        packets=left.values(),
        flows=list(left),
    )


def adaptive_backoff() -> Found:
    (period_half, _, half), (period, _, adaptive) = map(last_cycle, (fig2(adaptive=False), fig2()))
    used, empty = (
        [of(part) for part in (half, adaptive)]
        for of in (lambda r: r.utilisation.mean(), lambda r: (r.queueing_delay < 1e-9).mean())
    )
    return reproduced_if(
        empty[0] > empty[1] == 0 and used[0] < used[1] and agrees("100 %", used[1]),
        half=used[0],
        adaptive=used[1],
        empty=empty[0],
        period_half=period_half,
        period=period,
        ns=NS,
    )


@cache
def _queue_at_rest() -> tuple[float, ...]:
    """Least, mean and largest queueing delay of the cycle of Fig. 2 [s]."""
    cycle = limit_cycle(on_link_2(PlainDelayAIMD))
    ends = (cycle.least, cycle.mean, cycle.most)
    return tuple(end.queueing_delay[0].item() for end in ends)


def just_empties() -> Found:
    low, mean, top = _queue_at_rest()
    closed = delay_aimd.mean_queueing_delay(TAU2, T2, delay_aimd.backoff_factor(T2, T2 + TAU2))
    return differs_if(low > 0, low=low, top=top, mean=mean, closed=closed, ns=NS)


def _room(packets: float, size: float = PACKET) -> float:
    """The longest round trip with that many packets of buffer [s]."""
    return T2 + packets * size / C2


# The round trip at which an estimate of 200 ms finds a queueing delay of tau0 [s]
_NEEDED = 0.2 + TAU2


def _fits(packets: float) -> bool:
    """Whether backoffs by delay can begin the ratchet from 200 ms with that buffer."""
    return _room(packets) >= _NEEDED


_OTHER_BUFFER = (
    "The paper's buffer is of 400 packets: with 1000 bytes each the round trip is at most "
    f"{ms(_room(400))}, and an estimate of 200 ms never finds tau0 (see the row on it). "
    f"{RATCHET_BUFFER} packets were taken. "
)


def ratchet_of_one() -> Found:
    plateaus = {}
    for delta in (0.75, 0.9):
        run = ratchet_run(1, delta)
        first, *others = backoffs(run)[:6]
        at = [first, first + 1.0, *(np.array(others) + 1.0)]
        plateaus[delta] = np.interp(at, run.time, smallest_rtt(run)[:, 0])
    never = smallest_rtt(ratchet_run(1, 1.0))[-1, 0]
    slow = plateaus[0.9]
    closed = np.array([delay_aimd.ratchet(1, max(a, T2), T2, 0.9) for a in slow[1:-1]])
    ratchets = never > 1.1 * T2 and all(agrees("120", 1e3 * p[-1]) for p in plateaus.values())
    return differs_if(
        not (ratchets and _fits(400) and agrees("200", 1e3 * slow[0])),
        named("step {}", range(1, len(slow)), slow[1:]),
        first=slow[0],
        last=slow[-1],
        stuck=never,
        above=np.max(slow[2:] / closed - 1),
        computed=f"with {RATCHET_BUFFER} packets of buffer, "
        + "; ".join(f"delta = {a:g}: {', '.join(map(ms, p))}" for a, p in plateaus.items())
        + f"; with delta = 1 it stays at {ms(never)}",
        begin=_OTHER_BUFFER if ratchets else "It does not ratchet. ",
        ns=NS,
    )


def ratchet_buffer() -> Found:
    largest = {f"{size} byte": _room(400, 8 * size) for size in (1000, 1500)}
    return differs_if(max(largest.values()) < _NEEDED, largest, needed=_NEEDED, largest=largest)


def _there(run: Any) -> float | None:
    """When all flows have seen the propagation delay within 0.1 % [s]; None if they never do."""
    seen, t = smallest_rtt(run), run.time.values
    all_near = np.all(seen < 1.001 * T2, axis=1) & (t > t[49])
    return float(t[np.argmax(all_near)]) if seen[-1].max() < 0.121 else None


def ratchet_of_ten() -> Found:
    run, never = ratchet_run(10, 0.75), smallest_rtt(ratchet_run(10, 1.0))[-1]
    first, there = smallest_rtt(run)[np.searchsorted(run.time, 0.5)], _there(run)
    lossy, kept = (ratchet_run(10, delta, 400, 0.06) for delta in (0.75, 1.0))
    return differs_if(
        there is None or not _fits(400),
        after=there or 0.0,
        by_loss=_there(lossy) or np.nan,
        kept=smallest_rtt(kept)[-1].min(),
        first=first.max(),
        stuck=never.min(),
        computed=f"with {RATCHET_BUFFER} packets of buffer, {ms(first.max())} at most at 0.5 s, "
        f"all within 0.1 % of {ms(T2)} after {there or np.nan:.1f} s; with delta = 1 still "
        f"{ms(never.min())} at least after 25 s",
        begin=_OTHER_BUFFER if there is not None else "They do not converge. ",
        ns=NS,
    )


def flat_part() -> Found:
    with_it, without = (_epoch_and_flat(fig5(idle)) for idle in (8.0, 0.0))
    return reproduced_if(
        off(with_it[0], 8.0) < 1e-6 and with_it[1] > without[1],
        period=with_it[0],
        flat=with_it[1],
        plain=without,
    )


def _epoch_and_flat(run: Any) -> tuple[float, float]:
    """The last epoch [s], and the part of it where the window does not move."""
    period, _, part = last_cycle(run)
    w = part.DelayAIMD_w.values[5:-5, 0]
    return period, np.mean(np.abs(np.diff(w)) < 1e-9 * w.max())


def flat_part_alters() -> Found:
    shrink, mean = [], []
    for idle in (0.0, 8.0):
        law = DelayAIMD(Delta0=idle)
        net = dumbbell(
            {"f1": flow(law, 450), "f2": flow(law, 150)},
            {"capacity": C2, "delay": T2 / 2, "buffer": 400 * PACKET},
        )
        run = run_of(net, 15.0 + 7 * idle)
        when = backoffs(run, law=law)[:7]
        before = np.searchsorted(run.time, when) - 2  # a sample may lie on the backoff itself
        shrink.append(shrinking(run.DelayAIMD_w.values[before]))
        mean.append(run.queueing_delay.sel(time=slice(when[0], when[-1])).mean())
    return differs_if(mean[1] > mean[0], shrink=shrink, mean=mean)


def proportional_idle() -> Found:
    runs = {k: run_of(on_link_2(DelayAIMD(kappa=k)), 60.0) for k in (0.0, 20.0, 100.0, 150.0)}
    epochs = {k: last_cycle(run)[0] for k, run in runs.items()}
    short, plain = np.array([epochs[k] for k in (20.0, 100.0)]), last_cycle(fig2())[0]
    top = runs[0.0].queueing_delay[3000:].max()
    return reproduced_if(
        off(short, epochs[0.0]) < 1e-6 and epochs[150.0] > epochs[0.0],
        named("kappa = {:g}", epochs),
        limit=epochs[0.0] / top,  # below it Delta0 is shorter than an epoch
        top=top,
        plain=plain,
    )


def coexists() -> Found:
    share = {}
    for gamma, idle in ((0.0, 0.0), (0.5, 0.0), (0.9, 0.0), (0.9, 2.0)):
        run = coexistence(gamma, idle)
        rates = whole_epochs(run, 40.0, "loss1", HTCP).rate.mean("time")
        share[f"gamma = {gamma:g}, Delta0 = {idle:g} s"] = rates[0] / rates.sum()
    losses = backoffs(run, "loss1", HTCP)
    apart = [np.diff(losses[losses > 40]).mean()]
    return reproduced_if(rising(share.values()), share, ns=NS, apart=apart)


def drains() -> Found:
    late = {
        gamma: coexistence(gamma, 0.0, leave=60.0).sel(time=slice(100.0, None))
        for gamma in (0.0, 0.5, 0.9)
    }
    top = {gamma: run.queueing_delay.max() for gamma, run in late.items()}
    used = {gamma: run.utilisation.mean() for gamma, run in late.items()}
    text = "; ".join(
        f"gamma = {a:g}: at most {ms(v)}, utilisation {percent(used[a])}" for a, v in top.items()
    )
    return differs_if(
        max(top.values()) > TAU2, named("top {:g}", top), named("used {:g}", used), text=text
    )


# --- (3) over several bottlenecks, and where flows do not back off together -----------------------


def _busy_if(used: float, least: float, *tables: Any, **words: Any) -> Found:
    """Of a link that is used to 100 %: reproduced if at all times, differs if in the mean only."""
    if agrees("100 %", least):
        return reproduced_if(True, *tables, **words)
    return differs_if(agrees("100 %", used), *tables, otherwise=REFUTED, **words)


def busy_with_two_round_trips() -> Found:
    link = {"capacity": C2, "delay": T2 / 4, "buffer": 400 * PACKET}
    near, far = flow(PlainDelayAIMD, 200), flow(PlainDelayAIMD, 400, access_delay=T2 / 4)
    run = simulate(dumbbell({"f1": near, "far": far}, link), 60.0, samples=6001, rtol=1e-6)
    late = whole_epochs(run, 20.0)
    used, rates, least = late.utilisation.mean(), late.rate.mean("time"), late.utilisation.min()
    return _busy_if(
        used,
        least,
        utilisation=used,
        smallest=least,
        short=(late.utilisation < 0.99).mean(),
        ratio=rates[0] / rates[1],
    )


_FROM, _UNTIL = 10.0, 30.0  # what is looked at [s]
_APART = 0.05  # backoffs further apart than this are not together [s]


def _looked_at(net: Network) -> tuple[Any, float, float]:
    """A run after its beginning, its links' least utilisation, and the part of backoffs alone."""
    run = simulate(net, _UNTIL, samples=int(200 * _UNTIL) + 1, rtol=1e-6)
    late = run.sel(time=slice(_FROM, None))
    when = [(t, name) for name in net.flows for t in backoffs(run, name) if t > _FROM]
    alone = [all(abs(t - other) > _APART for other, of in when if of != name) for t, name in when]
    return late, late.utilisation.min().item(), float(np.mean(alone))


def _parking_lot(second: float) -> Network:
    buffer, net = 400 * PACKET, Network()
    net.link("one", DropTail, capacity=C2, delay=T2 / 4, buffer=buffer)
    net.link("two", DropTail, capacity=second, delay=T2 / 4, buffer=buffer)
    net.flow("long", route=["one", "two"], **flow(PlainDelayAIMD, 250))
    net.flow("on one", route=["one"], **flow(PlainDelayAIMD, 150))
    return net.flow("on two", route=["two"], **flow(PlainDelayAIMD, 150))


def busy_over_two_links() -> Found:
    values: dict[str, float] = {}
    shown, used, ends = [], [], []
    for mbit in (50, 40):
        late, least, alone = _looked_at(_parking_lot(1e6 * mbit))
        used.append(late.utilisation.mean("time").values.min())
        ends.append(least)
        rate = late.rate.mean("time").values / 1e6
        own = {"used": used[-1], "least": least, "alone": alone, "long": rate[0]}
        values |= named(f"{{}}, {mbit}", own)
        shown.append(
            f"{mbit} Mbit/s: {percent(used[-1], 5)} of the less used link in the mean, "
            f"{percent(least, 3)} at the least, rates of {numbers(rate)} Mbit/s, "
            f"{percent(alone, 2)} of the backoffs alone"
        )
    return _busy_if(min(used), min(ends), values, shown="; ".join(shown))


def losses_below_w0() -> Found:
    run = run_of(on_link_2(PlainDelayAIMD(w0=2000)), 40.0)
    lost, cuts = run.lost[-1].sum().item() / PACKET, len(backoffs(run))
    full = run.queueing_delay.max().item() > 0.99 * 400 * PACKET / C2
    return reproduced_if(
        lost > 0 and cuts > 1 and full and fig2().lost.max() == 0.0, lost=lost, cuts=cuts
    )


def scales_and_compatible() -> Found:
    ratios = np.array([1e-1, 1e-2, 1e-4, 1e-6, 1e-8])
    ours, tcp = response.htcp_window(ratios, 0.1), response.aimd_window(ratios, 1.0, 0.5)
    more = ours / tcp
    power = np.log(ours[-1] / ours[-2]) / np.log(ratios[-1] / ratios[-2])
    return reproduced_if(
        off(more[:2], 1.0) < 1e-9 and rising(more[1:]),
        named("p = {:g}", ratios, more),
        more=dict(zip(ratios, more, strict=True)),
        power=power,
    )


def busy_one_by_one() -> Found:
    values: dict[str, float] = {}
    shown = []
    link = {"capacity": C2, "delay": T2 / 2, "buffer": 400 * PACKET}
    for delta in (1.0, 0.9):
        name = "tau0 of 15, 20, 30 ms" + (f", delta = {delta:g}" if delta < 1 else "")
        laws = [PlainDelayAIMD(tau0=tau0, delta_p=delta) for tau0 in (0.015, 0.02, 0.03)]
        late, least, alone = _looked_at(dumbbell([flow(law, 250) for law in laws], link))
        used, mean = late.utilisation.mean().item(), late.queueing_delay.mean()
        values |= named(f"{{}}, {delta:g}", {"used": used, "least": least, "alone": alone})
        shown.append(
            f"{name}: {percent(used, 4)} used, {percent(least, 3)} at the least, {ms(mean)} of "
            f"queue in the mean, {percent(alone, 2)} of the backoffs alone"
        )
    return _busy_if(values["used, 1"], values["least, 1"], values, shown="; ".join(shown))


# --- flows of different round trips ---------------------------------------------------------------

NEAR = 0.04  # Propagation delay there and back of the near flow [s]
RATIOS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # Over it, that of the far flow


@cache
def unfairness(ratio: float, cap: float | None) -> float:
    """Rate of the near flow over that of the far one, delay-based with that cap of beta; None: TCP.

    Standard TCP grows by a packet a round trip, halves at a loss, and has as much buffer as tau0 of
    the others.
    """
    tau0 = PlainDelayAIMD.parameter("tau0")
    # they begin about where they end: how long that takes is another matter
    if cap is None:
        law, room, power = HTCP(slope=0, coefficient=0, beta_min=0.5, beta_max=0.5), tau0, 2
    else:
        law, room, power = PlainDelayAIMD(slope=0, coefficient=0, cap=cap), 4 * tau0, 1
    flows = [
        flow(law, C2 * trip / PACKET * part / (1 + ratio**power), access_delay=(trip - NEAR) / 2)
        for trip, part in ((NEAR, ratio**power), (ratio * NEAR, 1.0))
    ]
    link = {"capacity": C2, "delay": NEAR / 2, "buffer": C2 * room}
    run = simulate(dumbbell(flows, link), 100.0, samples=10001, rtol=1e-6)
    near, far = whole_epochs(run, 40.0, "flow2", law).rate.mean("time").values
    return float(near / far)


def rtt_unfairness() -> Found:
    near, far, tau0 = delay_aimd.rtt_unfairness.arguments
    at_zero = Eq(limit(delay_aimd.rtt_unfairness.form, tau0, 0, "+"), far / near)
    found = {
        name: np.array([unfairness(k, cap) for k in RATIOS])
        for name, cap in (("standard TCP", None), ("delay-based", 1.0))
    }
    own, k = PlainDelayAIMD.parameter("tau0"), np.array(RATIOS)
    away = np.abs(found["delay-based"] / delay_aimd.rtt_unfairness(NEAR, k * NEAR, own) - 1)
    near_by = away[k <= 4].max()
    power = {name: np.polyfit(np.log(k), np.log(v), 1)[0] for name, v in found.items()}
    return differs_if(
        all(map(proof, (*delay_aimd.rtt_unfairness.claims.values(), at_zero)))
        and np.all(found["delay-based"] < found["standard TCP"]),
        *(named(f"{name}, {{:g}}", RATIOS, v) for name, v in found.items()),
        named("power of {}", power),
        {"up to 4": near_by},
        off=away.max(),
        capped=unfairness(RATIOS[-1], 0.9),
        ratios=RATIOS,
        near=NEAR,
        shown="; ".join(
            f"{name} {numbers(v, '.2g')} (power {power[name]:.1f})" for name, v in found.items()
        ),
    )


# --- slow start -----------------------------------------------------------------------------------

# Propagation delays there and back, and thresholds [s]
CASES = ((0.12, 0.02), (0.12, 0.04), (0.12, 0.01), (0.06, 0.02), (0.24, 0.02))


@cache
def slow_start(T: float, tau0: float) -> tuple[float, float, float]:
    """max_ssthresh over C tau0; round trips from there to C T; largest queueing delay [s]."""
    net = dumbbell([flow(SlowStartAIMD(tau0=tau0), 10)], {"capacity": C2, "delay": T / 2})
    run = simulate(net, (2 * T / tau0 + 8) * T, samples=8001, rtol=1e-7)
    t, w, m = (run[name].values.ravel() for name in ("time", "SlowStartAIMD_w", "SlowStartAIMD_m"))
    begin, end = np.argmax(w > m), np.argmax(w > C2 * T / PACKET)
    q = run.queueing_delay.values[: end + 1, 0]
    return m[end] / (C2 * tau0 / PACKET), (t[end] - t[begin]) / T, q.max()


@cache
def early_exit(T: float, tau0: float) -> tuple[float, float]:
    """Window at the exit from plain slow start by the delay, and what it should be, C T [packet].

    The window doubles until the first backoff, as max_ssthresh is never set.
    """
    doubling = tuple(j for j in SlowStartAIMD.jumps if not any(z.name == "m" for z in j.reset))
    law = replace(SlowStartAIMD, name="DoublingAIMD", jumps=doubling)(tau0=tau0)
    net = dumbbell([flow(law, 10)], {"capacity": C2, "delay": T / 2})
    run = simulate(net, 12 * T, samples=8001, rtol=1e-7)
    w = run.DoublingAIMD_w.where(run.DoublingAIMD_slow == 1)
    return w.max().item(), C2 * T / PACKET


def slow_start_exit() -> Found:
    found = {case: early_exit(*case) for case in CASES}
    shown = "; ".join(
        f"{left:.0f}/{full:.0f} at RTT {ms(T)}, tau0 {ms(tau0)}"
        for (T, tau0), (left, full) in found.items()
    )
    over = [left * PACKET / C2 / tau0 for (_, tau0), (left, _) in found.items()]
    parts = [left / full for left, full in found.values()]
    return differs_if(
        max(parts) >= 1,
        named("T = {:g}, tau0 = {:g}", CASES, parts),
        shown=shown,
        least=min(over),
    )


def slow_start_runs() -> Found:
    set_to, rounds, queue = np.array([slow_start(*case) for case in CASES]).T
    T, tau0 = np.array(CASES).T
    wanted = delay_aimd.slow_start_rounds(T, tau0)
    short, near, top = wanted - rounds, off(set_to, 1), np.max(queue / tau0)
    # by (7) at a window of C RTT, when the round trip is again the longest seen
    late = delay_aimd.max_ssthresh(C2 * (T + queue) / PACKET, tau0, T + queue, T)
    again = late * PACKET / (C2 * tau0)
    good = min(short) > 0 and max(short) < 2 and near < 0.02 and top < 1
    return differs_if(
        good and np.min(again) > 1,
        named("T = {:g}, tau0 = {:g}", CASES, rounds),
        otherwise="reproduced" if good else REFUTED,
        again=again,
        near=near,
        top=top,
        shown="; ".join(
            f"{ms(T)} and {ms(tau0)}: {found:.1f} ({most:.0f})"
            for (T, tau0), found, most in zip(CASES, rounds, wanted, strict=True)
        ),
    )
