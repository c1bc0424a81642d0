"""Sections 3 and 4 of the ECF paper: transients, the steady state and the overhead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.analysis.orbit import limit_cycle
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
    pc,
    starting,
    steady,
    stopping,
)
from fluidcc.papers.model import Claim, Outcome
from fluidcc.papers.printed import named, off

_MS = 1e3


def _last(r: Any, ends: np.ndarray) -> list[np.ndarray]:
    """Mean rates [bit/s] of the 3 s before each of these times, of the sources that are on."""
    found = [r.rate.sel(time=slice(end - 3, end - 0.05)).mean("time").values for end in ends]
    return [x[x > 0] for x in found]


def _text(rows: list[np.ndarray]) -> str:
    return "; ".join(", ".join(f"{v / 1e6:.2f}" for v in row) for row in rows)


def _unfair(rows: list[np.ndarray]) -> float:
    return max(off(row, row.mean()) for row in rows)


def shares(claim: Claim) -> Outcome:
    wanted = ecf.fair_share(np.arange(1, 6), C, 20e6)
    rows = _last(stopping("CBR"), np.arange(60, 110, 10.0))[::-1]
    worst = max(off(row, w) for row, w in zip(rows, wanted, strict=True))
    return claim.compared(
        [(w, *row) for w, row in zip(wanted, rows, strict=True)], {"worst": worst}, rows=_text(rows)
    )


def started(claim: Claim) -> Outcome:
    rows = _last(starting("CBR"), np.arange(10, 60, 10.0))
    total = max(abs(row.sum() / min(C, 20e6 * len(row)) - 1) for row in rows)
    late = float(rows[-1][-1] / rows[-1].mean())
    return claim.reproduced_if(
        total < 0.01 and late > 1.2, {"total": total, "late": late}, rows=_text(rows)
    )


def excited(claim: Claim) -> Outcome:
    calm, rich = (
        _unfair(_last(starting(kind), np.array([40.0, 50.0]))) for kind in ("CBR", "Poisson")
    )
    return claim.reproduced_if(rich < 0.75 * calm, {"CBR": calm, "Poisson": rich})


def sawtooth(claim: Claim) -> Outcome:
    r = starting("DCCP").rate.sel(time=slice(42.0, 50.0)).values
    swing = np.mean(r.max(0) / r.min(0))
    calm = starting("CBR").rate.sel(time=slice(42.0, 50.0)).values
    still = np.mean(calm.max(0) / calm.min(0))
    return claim.reproduced_if(swing > 1.5, {"DCCP": swing, "ECF": still})


def slow_tfrc(claim: Claim) -> Outcome:
    ends = np.array([30.0, 40.0, 50.0])
    tfrc, tcp = (_unfair(_last(starting(kind), ends)) for kind in ("TFRC", "DCCP"))
    rates = [starting(kind).rate.sel(time=slice(48.0, 50.0)).values for kind in ("TFRC", "DCCP")]
    smooth, rough = (np.mean(r.max(0) / r.min(0)) for r in rates)
    return claim.reproduced_if(
        tfrc > 1.5 * tcp and smooth < 0.5 + 0.5 * rough,
        {"TFRC": tfrc, "TCP-like": tcp, "smooth": smooth, "rough": rough},
    )


def frames(claim: Claim) -> Outcome:
    found = {gop: framed(gop) for gop in (0.0, 0.04, 0.48)}
    lost = {gop: r.lost.values[-1, 0] / r.entered.values[-1, 0] for gop, r in found.items()}
    calm = {gop: r.queueing_delay.sel(time=slice(10.0, None)).std() for gop, r in found.items()}
    good = lost[0.0] < lost[0.04] < lost[0.48] and calm[0.48] > 2 * calm[0.0]
    return claim.reproduced_if(
        good,
        named("lost {:g}", lost) | named("jitter {:g}", calm),
        lost=list(lost.values()),
        deviation=ms(calm.values(), 1),
    )


# --- Sections 3.2 and 4 of the ECF paper: steady state, overhead ----------------------------------


def set_points(claim: Claim) -> Outcome:
    found = [float(ecf.set_point(n, PACKET, C)) for n in (100, 70)]
    return claim.compared(found, {"RED": found[0], "ECF": found[1]})


def ecf_delay(claim: Claim) -> Outcome:
    found = {(n, r): averages(steady("CBR", "V1", n, r)) for n in COUNTS for r in RTTS}
    delays = {key: v["delay"] for key, v in found.items()}
    far = delays[100, 0.24]
    text = "; ".join(f"RTT {_MS * r:.0f} ms: {ms((delays[n, r] for n in COUNTS), 1)}" for r in RTTS)
    return claim.compared([far], named("{}, {:g}", delays), text=text)


def ecf_jitter(claim: Claim) -> Outcome:
    found = {v: [averages(steady("CBR", v, 100, r))["jitter"] for r in RTTS] for v in ("V1", "V2")}
    text = "; ".join(f"{v}: {ms(js, 1)} ms" for v, js in found.items())
    return claim.compared(
        zip(*found.values(), strict=True),
        {f"{v} {r:g}": j for v, js in found.items() for r, j in zip(RTTS, js, strict=True)},
        text=text,
    )


def utilisation(claim: Claim) -> Outcome:
    ours = [averages(steady("CBR", "V1", n, r))["utilisation"] for n in COUNTS for r in RTTS]
    theirs = [averages(dccp(n, r))["utilisation"] for n in COUNTS[:2] for r in RTTS]
    return claim.compared(
        [ours, min(theirs)],
        {"ECF": min(ours), "DCCP": min(theirs)},
        computed=f"ECF {100 * min(ours):.1f} to {100 * max(ours):.1f} %; DCCP "
        f"{100 * min(theirs):.0f} to {100 * max(theirs):.0f} %",
    )


def red_delay(claim: Claim) -> Outcome:
    found = {
        (n, r): averages(mean_field("TCP-like", "RED", n, r))["delay"] for n in COUNTS for r in RTTS
    }
    hybrid = {(n, r): averages(dccp(n, r))["delay"] for n in COUNTS[:2] for r in RTTS}
    table = np.array([[found[n, r] for r in RTTS] for n in COUNTS])
    grows, falls = (
        bool(np.all(np.diff(table, axis=0) > 0)),
        np.all(np.diff(table, axis=1) < 0, axis=1),
    )
    bent = [str(n) for n, down in zip(COUNTS, falls, strict=True) if not down]
    text = "; ".join(f"RTT {_MS * r:.0f} ms: {ms(found[n, r] for n in COUNTS)}" for r in RTTS)
    own = "; ".join(f"{ms(hybrid[n, r] for n in COUNTS[:2])}" for r in RTTS)
    return claim.differs_if(
        not grows or bent,
        named("{}, {:g}", found),
        text=text,
        own=own,
        grows="grows" if grows else "does not grow",
        bent=" and ".join(bent) or "no number of",
    )


def dccp_drops(claim: Claim) -> Outcome:
    found = [averages(dccp(n, r))["loss"] for n in COUNTS[:2] for r in RTTS]
    return claim.reproduced_if(max(found) == 0, {"largest": max(found)})


def tfrc_drops(claim: Claim) -> Outcome:
    found = [averages(mean_field("TFRC", "RED", 30, rtt))["loss"] for rtt in RTTS]
    return claim.reproduced_if(max(found) == 0, named("{:g}", RTTS, found))


def inner_drops(claim: Claim) -> Outcome:
    near, below = (
        averages(held_at(aim))["loss"]
        for aim in (PAQMECF.parameter("q_0"), PAQMECF.parameter("aim"))
    )
    return claim.compared([near], {"at it": near, "below": below})


def drop_ratios(claim: Claim) -> Outcome:
    r = mean_field("TCP-like", "RED", 100, 0.06)
    window = C * (0.06 + averages(r)["delay"]) / (100 * PACKET)
    ours = [averages(steady("CBR", "V1", 100, rtt))["loss"] for rtt in RTTS]
    return claim.out_of_reach({"window": window, "ECF": max(ours)})


def late_ones(claim: Claim) -> Outcome:
    # 30 sources, as in the figure, and 100.
    few, many = (steady("CBR", "V1", n, 0.06).rate.mean("time").values * n / C for n in (30, 100))
    return claim.reproduced_if(
        few[-1] > 1.05 > 1 > few[0] > 0.9
        and many[-1] > 1.2
        and np.all(np.abs(many[:80] / many[0] - 1) < 0.05),
        {"first of 30": few[0], "last of 30": few[-1], "first": many[0], "last": many[-1]},
    )


def poisson_fairness(claim: Claim) -> Outcome:
    # Four seeds: what was sent in 90 s, and the rates that ECF set, over the fair share.
    runs = [steady("Poisson", "V1", 30, 0.06, seed=seed) for seed in (1, 2, 3, 4)]
    sent, told = (
        np.array([r[name].values.mean(0) * 30 / C for r in runs])
        for name in ("rate", "PoissonECF_r1")
    )
    counted = C / 30 / PACKET * 90  # packets of one source
    chance, extreme = 1 / np.sqrt(counted), 2.04  # the mean largest of 30 normal numbers
    inside = told.min() > 0.98 and told.max() < 1.02
    edge = [1 - extreme * chance, 1 + extreme * chance]
    lucky = math.erf(0.02 / chance / math.sqrt(2)) ** 30
    return claim.compared(
        [(told.min(), told.max(), sent.min(), sent.max())],
        {
            "told least": told.min(),
            "told largest": told.max(),
            "sent least": sent.min(),
            "sent largest": sent.max(),
            "chance": chance,
            "lucky": lucky,
        },
        every="every" if inside else "not every",
        counted=counted,
        edge=edge,
    )


def _tfrc(aqm: str, what: str) -> list[float]:
    """Of 100 TFRC sources over a router, at each RTT."""
    return [averages(mean_field("TFRC", aqm, 100, rtt))[what] for rtt in RTTS]


def tfrc(claim: Claim) -> Outcome:
    delay = _tfrc("P-AQM", "delay")
    return claim.compared([delay], named("{:g}", RTTS, delay), delay=ms(delay))


def tfrc_jitter(claim: Claim) -> Outcome:
    jitter = _tfrc("P-AQM", "jitter")
    return claim.compared(jitter, named("{:g}", RTTS, jitter), jitter=ms(jitter, 1))


def tfrc_jitter_over_red(claim: Claim) -> Outcome:
    jitter = _tfrc("RED", "jitter")
    return claim.compared(jitter, named("{:g}", RTTS, jitter), jitter=ms(jitter, 1))


def tfrc_over_red(claim: Claim) -> Outcome:
    over, theirs = (
        _tfrc("RED", "delay"),
        [averages(mean_field("TCP-like", "RED", 100, t))["delay"] for t in RTTS],
    )
    marks = [float(mean_field(kind, "RED", 100, 0.06).loss.mean()) for kind in ("TFRC", "TCP-like")]
    lower = [a - b for a, b in zip(over, _tfrc("P-AQM", "delay"), strict=True)]
    return claim.compared(
        [lower, *over],
        named("TFRC {:g}", RTTS, over)
        | named("TCP-like {:g}", RTTS, theirs)
        | {"marks of TFRC": marks[0], "marks of TCP-like": marks[1]},
        digits=["15 ms", *(f"{_MS * v:.0f} ms" for v in theirs)],
        over=ms(over),
        theirs=ms(theirs),
    )


def tcp_queue(claim: Claim) -> Outcome:
    # TCP-like sources over the queue of P-AQM that marks.
    net = mean_net("TCP-like", "P-AQM", 30, 0.06)
    cycle = limit_cycle(net)
    ticks, queue = cycle.period / PAQM.parameter("dT"), cycle.most.queueing_delay.values[0]
    used = {
        (n, r): averages(mean_field("TCP-like", "P-AQM", n, r))["utilisation"]
        for n in COUNTS[:2]
        for r in RTTS
    }
    text = "; ".join(f"{pc(used[n, r] for r in RTTS)}" for n in COUNTS[:2])
    return claim.differs_if(
        min(used.values()) <= 0.98,
        {"ticks": ticks, "queue": queue} | named("used {}, {:g}", used),
        cycle=cycle,
        text=text,
    )


def overheads(claim: Claim) -> Outcome:
    few, many = float(ecf.overhead(5, 0.16)), float(ecf.overhead(100, 0.52))
    return claim.compared(
        [few, many, few / C, many / C], {"few": few, "many": many}, parts=[few / C, many / C]
    )


def dccp_fairness(claim: Claim) -> Outcome:
    found = [averages(dccp(30, r)) for r in (0.06, 0.24)]
    text = ", ".join(f"{v['least']:.2f} to {v['largest']:.2f}" for v in found)
    return claim.out_of_reach(
        {"least 60": found[0]["least"], "least 240": found[1]["least"]}, text=text
    )
