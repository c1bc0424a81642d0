"""Sections 3 and 4 of the ECF paper: transients, the steady state and the overhead."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fluidcc.cycles.orbit import limit_cycle
from fluidcc.formulas import ecf
from fluidcc.links import PAQM, PAQMECF
from fluidcc.papers.ecf.common import (
    COUNTS,
    PACKET,
    RTTS,
    C,
    averages,
    dccp,
    framed,
    held_at,
    mean_field,
    mean_net,
    ms,
    starting,
    steady,
    stopping,
)
from fluidcc.papers.model import (
    Found,
    compared,
    differs_if,
    needs_packets,
    not_given,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import agrees, falling, named, numbers, off, rising

STARTS = (20, 30, 40, 50)  # 10 s after each start but the first [s]


def _last(r: Any, *ends: float) -> list[np.ndarray]:
    """Mean rates [bit/s] of the 3 s before each of these times, of the sources that are on."""
    found = [r.rate.sel(time=slice(end - 3, end - 0.05)).mean("time").values for end in ends]
    return [x[x > 0] for x in found]


def _text(rows: list[np.ndarray]) -> str:
    return "; ".join(numbers(row / 1e6, ".1f") for row in rows)


def _unfair(rows: list[np.ndarray]) -> float:
    return max(off(row, row.mean()) for row in rows)


def _swing(kind: str, start: float) -> float:
    """Largest over smallest rate of sources from that time on, in the mean."""
    r = starting(kind).rate.sel(time=slice(start, 50.0))
    return float((r.max("time") / r.min("time")).mean())


def shares() -> Found:
    wanted = ecf.fair_share(np.arange(1, 6), C, 20e6)
    rows = _last(stopping("CBR"), 100, 90, 80, 70, 60)
    worst = max(off(row, w) for row, w in zip(rows, wanted, strict=True))
    pairs = [(w, *row) for w, row in zip(wanted, rows, strict=True)]
    return compared(pairs, worst=worst, rows=_text(rows))


def started() -> Found:
    rows = _last(starting("CBR"), 10, 20, 30, 40, 50)
    total = max(off(row.sum(), min(C, 20e6 * len(row))) for row in rows)
    late = rows[-1][-1] / rows[-1].mean()
    return reproduced_if(late - 1 > total, total=total, late=late, rows=_text(rows))


def excited() -> Found:
    calm, *rich = (
        [off(row, row.mean()) for row in _last(starting(*kind), *STARTS[1:])]
        for kind in (("CBR",), *(("Poisson", seed) for seed in (1, 2, 3)))
    )
    return reproduced_if(np.all(np.array(rich) < calm), CBR=calm[-1], calm=calm, rich=rich)


def sawtooth() -> Found:
    swing, ours = _swing("DCCP", 42.0), _swing("CBR", 42.0)
    return reproduced_if(swing > ours, DCCP=swing, ECF=ours)


def slow_tfrc() -> Found:
    tfrc, tcp = (_unfair(_last(starting(kind), *STARTS)) for kind in ("TFRC", "DCCP"))
    smooth, rough = (_swing(kind, 48.0) for kind in ("TFRC", "DCCP"))
    return reproduced_if(
        tfrc > tcp and smooth < rough,
        {"TCP-like": tcp},
        TFRC=tfrc,
        smooth=smooth,
        rough=rough,
    )


def frames() -> Found:
    lost, late, swing = [], [], []
    for gop in (0.0, 0.04, 0.48):
        r = framed(gop)
        ends = r.sel(time=[0.0, 10.0, 30.0])
        part = (ends.lost.diff("time") / ends.entered.diff("time")).values[:, 0]
        lost.append((ends.lost[2, 0] / ends.entered[2, 0]).item())
        late.append(part[1])
        total = r.rate.sum("flow").sel(time=slice(10.0, None)) / C
        swing.append((total.min().item(), total.max().item()))
    return differs_if(
        late[2] > 0 and np.ptp(swing[2]) > np.ptp(swing[0]),
        named("lost {}", ("at once", "frame", "group"), lost),
        {"late": late[2], "low": swing[2][0], "high": swing[2][1]},
        lost=lost,
        late=late,
        swing=swing,
    )


# --- Sections 3.2 and 4 of the ECF paper: steady state, overhead ----------------------------------


def set_points() -> Found:
    red, own = (ecf.set_point(n, PACKET, C) for n in (100, 70))
    return compared([red, own], RED=red, ECF=own)


def _over(what: str, run: Callable[[int, float], Any], counts: Any = COUNTS) -> dict[Any, float]:
    """One of the `averages` of runs, by number of sources and RTT."""
    return {(n, r): averages(run(n, r))[what] for n in counts for r in RTTS}


def _by_rtt(delays: dict[Any, float], digits: int = 0) -> str:
    return "; ".join(
        f"RTT {1e3 * r:.0f} ms: {ms((delays[n, r] for n in COUNTS), digits)}" for r in RTTS
    )


def ecf_delay() -> Found:
    delays = _over("delay", partial(steady, "CBR", "V1"))
    *others, last = delays.values()
    only = agrees("about 18.7 ms", last) and last < min(others)
    return differs_if(not only, named("{}, {:g}", delays), last=last, text=_by_rtt(delays, 1))


def ecf_jitter() -> Found:
    found = {v: [averages(steady("CBR", v, 100, r))["jitter"] for r in RTTS] for v in ("V1", "V2")}
    few = [averages(steady("CBR", "V1", n, RTTS[-1]))["jitter"] for n in COUNTS[:2]]
    return compared(
        [*zip(*found.values(), strict=True), few],
        *(named(f"{v} {{:g}}", RTTS, jitters) for v, jitters in found.items()),
        text="; ".join(f"{v}: {ms(jitters, 1)} ms" for v, jitters in found.items()),
        few=ms(few, 1),
    )


def utilisation() -> Found:
    ours = _over("utilisation", partial(steady, "CBR", "V1")).values()
    theirs = _over("utilisation", dccp, COUNTS[:2]).values()
    return compared(
        [ours, min(theirs)],
        ECF=min(ours),
        DCCP=min(theirs),
        computed=f"ECF {100 * min(ours):.1f} to {100 * max(ours):.1f} %; DCCP "
        f"{100 * min(theirs):.0f} to {100 * max(theirs):.0f} %",
    )


def red_delay() -> Found:
    found = _over("delay", partial(mean_field, "TCP-like", "RED"))
    hybrid = _over("delay", dccp, COUNTS[:2])
    table = np.reshape(list(found.values()), (len(COUNTS), len(RTTS)))
    grows = rising(table)
    bent = [str(n) for n, row in zip(COUNTS, table, strict=True) if not falling(row)]
    return differs_if(
        not grows or bent,
        named("{}, {:g}", found),
        text=_by_rtt(found),
        own="; ".join(ms(hybrid[n, r] for n in COUNTS[:2]) for r in RTTS),
        grows="grows" if grows else "does not grow",
        bent=" and ".join(bent) or "no number of",
    )


def dccp_drops() -> Found:
    largest = max(_over("loss", dccp, COUNTS[:2]).values())
    return reproduced_if(largest == 0, largest=largest)


def tfrc_drops() -> Found:
    found = [averages(mean_field("TFRC", "RED", 30, rtt, 10.0))["loss"] for rtt in RTTS]
    return reproduced_if(max(found) == 0, named("{:g}", RTTS, found))


def inner_drops() -> Found:
    near, below = (
        [averages(held_at(PAQMECF.parameter(name), seed))["loss"] for seed in (1, 2, 3)]
        for name in ("q_0", "aim")
    )
    return compared([near], named("seed {}", (1, 2, 3), near), near=near, below=below)


def drop_ratios() -> Found:
    delay = averages(mean_field("TCP-like", "RED", 100, 0.06))["delay"]
    ours = [averages(steady("CBR", "V1", 100, rtt))["loss"] for rtt in RTTS]
    return needs_packets(window=C * (0.06 + delay) / (100 * PACKET), ECF=max(ours))


def late_ones() -> Found:
    # The ends of 30 sources at both RTTs of the figure, over the fair share.
    near, far = (
        steady("CBR", "V1", 30, r).rate.mean("time").values[[0, -1]] * 30 / C for r in (0.06, 0.24)
    )
    return differs_if(
        min(near[1], far[1]) <= 1,
        named("{}, 60 ms", ("first", "last"), near),
        named("{}, 240 ms", ("first", "last"), far),
        near=near,
        far=far,
    )


def poisson_fairness() -> Found:
    # Four seeds: what was sent in 90 s, and the rates that ECF set, over the fair share.
    runs = [steady("Poisson", "V1", 30, 0.06, seed=seed) for seed in (1, 2, 3, 4)]
    ends: dict[str, float] = {}
    for what, name in (("told", "PoissonECF_r1"), ("sent", "rate")):
        found = np.array([r[name].mean("time") * 30 / C for r in runs])
        ends |= {f"{what} least": found.min(), f"{what} largest": found.max()}
    counted = C / 30 / PACKET * 90  # packets of one source
    chance, extreme = 1 / np.sqrt(counted), 2.04  # the mean largest of 30 normal numbers
    inside = ends["told least"] > 0.98 and ends["told largest"] < 1.02
    return compared(
        [(found.min(), found.max())],  # of what is sent
        ends,
        sent=", ".join(f"{run.min():.3f} to {run.max():.3f}" for run in found),
        chance=chance,
        lucky=math.erf(0.02 / chance / math.sqrt(2)) ** 30,
        every="every" if inside else "not every",
        counted=counted,
        edge=[1 - extreme * chance, 1 + extreme * chance],
    )


def _tfrc(aqm: str, what: str, kind: str = "TFRC") -> list[float]:
    """Of 100 TFRC sources, or others, over a router, at each RTT."""
    return [averages(mean_field(kind, aqm, 100, rtt))[what] for rtt in RTTS]


def tfrc() -> Found:
    delay = _tfrc("P-AQM", "delay")
    return compared([delay], named("{:g}", RTTS, delay), delay=ms(delay))


def tfrc_jitter() -> Found:
    jitter = _tfrc("P-AQM", "jitter")
    return compared(jitter, named("{:g}", RTTS, jitter), jitter=ms(jitter, 1))


def tfrc_jitter_over_red() -> Found:
    return needs_packets(jitter=ms(_tfrc("RED", "jitter"), 1))


def tfrc_over_red() -> Found:
    over, theirs = (_tfrc("RED", "delay", kind) for kind in ("TFRC", "TCP-like"))
    marks = {
        f"marks of {kind}": mean_field(kind, "RED", 100, 0.06).mark.mean()
        for kind in ("TFRC", "TCP-like")
    }
    lower = np.subtract(over, _tfrc("P-AQM", "delay"))
    return compared(
        [lower],
        named("TFRC {:g}", RTTS, over),
        named("TCP-like {:g}", RTTS, theirs),
        marks,
        over=ms(over),
        theirs=ms(theirs),
    )


def tcp_queue() -> Found:
    # TCP-like sources over the queue of P-AQM that marks.
    cycle = limit_cycle(mean_net("TCP-like", "P-AQM", 30, 0.06))
    used = _over("utilisation", partial(mean_field, "TCP-like", "P-AQM"), COUNTS[:2])
    return not_given(
        named("used {}, {:g}", used),
        ticks=cycle.period / PAQM.parameter("dT"),
        queue=cycle.most.queueing_delay[0],
        cycle=cycle,
        least=round(min(used.values()), 1),  # irregular: its digits depend on the last bits
    )


def overheads() -> Found:
    few, many = ecf.overhead(5, 0.16), ecf.overhead(100, 0.52)
    parts = [few / C, many / C]
    return compared([few, many, *parts], few=few, many=many, parts=parts)


def overhead_limit() -> Found:
    N, T, _ = ecf.overhead.arguments
    more = [proof(ecf.overhead.form.diff(N) > 0), proof(ecf.overhead.form.diff(T) < 0)]
    return proved(
        *more,
        *ecf.overhead_period.claims.values(),
        {"least": ecf.overhead_period(100, C), "sources": 0.05 * C / ecf.overhead(1, 0.16)},
    )


def tfrc_shares() -> Found:
    shares = averages(steady("TFRC", "V1", 30, 0.24, 60.0))
    return not_given(least=shares["least"], most=shares["largest"])


def dccp_fairness() -> Found:
    near, far = (averages(dccp(30, r)) for r in (0.06, 0.24))
    text = ", ".join(f"{v['least']:.2f} to {v['largest']:.2f}" for v in (near, far))
    return needs_packets({"least 60": near["least"], "least 240": far["least"]}, text=text)
