"""Section 2 of the ECF paper: equations (1) to (12), formulas lost, and the loops' stability."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, Expr, Symbol, eye, simplify, solve

from fluidcc.analysis.stability import stability
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import ecf
from fluidcc.laws import Link, Source
from fluidcc.links import PAQM, PAQMECF, PAQMDrop
from fluidcc.links.counting import count_packets
from fluidcc.links.paqm import T_ECF, V1, V2, R, aim, measured, q
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell, two_queues
from fluidcc.papers.ecf.common import (
    COUNTS,
    FAR,
    PACKET,
    RTTS,
    C,
    at_rest,
    averages,
    ecf_margin,
    fig5,
    inner_map,
    marking,
    mean_field,
    ms,
    outer_loop,
    outer_map,
    pc,
    periods,
    steady,
    two_nodes,
    unequal,
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
from fluidcc.papers.printed import agrees, falling, named, numbers, off
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, ECF
from fluidcc.sources import StaticReno as Reno
from fluidcc.sources.by_bytes import marked_by_bytes
from fluidcc.symbols import c, positive, unfold

_K, _A, _dT, _q0 = PAQM.params
_z = Symbol("z")
_s, _T, _R = positive("s T R")


def _constant(link: Link, rate: float, capacity: float) -> Network:
    """A constant flow through a router."""
    router = {"law": link, "capacity": capacity, "delay": 0.01}
    return dumbbell([{"law": CBR(rate=rate), "start": 0}], router)


def _overload(rate: float, **given: float) -> tuple[np.ndarray, np.ndarray]:
    """Share let in and filtered rate after each of 100 periods at a rate [bit/s]."""
    net, ends = _constant(PAQMDrop(**given), rate, 1e6), 0.02 * np.arange(1, 101) + 1e-6
    r = simulate(net, 2.01, t_eval=ends)
    return r.PAQMDrop_u.values[:, 0], r.PAQMDrop_r.values[:, 0]


def _share(rate: Expr) -> Expr:
    """The share that P-AQM's tick lets through, not truncated, after `rate` has come for long."""
    (tick,) = PAQM.ticks
    _, u, r, came = PAQM.states
    return unfold(tick.update[u]).subs({came: rate * _dT, r: rate}).simplify()


def control() -> Found:
    over, under = c * (1 + _s), c / (1 + _s)
    queue, share = PAQM.states[0], _share(over)
    new = queue + _dT * (share * over / c - 1)
    return proved(
        Eq((share * over).subs(queue, _q0), c),
        Eq(new - _q0, (1 - _K) * (queue - _q0)),
        Eq(_share(under), 1),
        Eq(_share(c), 1),
    )


def inner_eigenvalues() -> Found:
    loop = inner_map(False)
    return proved(Eq(loop[0, 0], 1 - _K), Eq(loop[1, 1], 1 - _A), Eq(loop[1, 0], 0))


def truncated() -> Found:
    shares = {rate: _overload(rate)[0] for rate in (0.5e6, 1.5e6, 30e6)}
    return reproduced_if(
        all(np.all((u >= 0) & (u <= 1)) for u in shares.values()) and np.all(shares[0.5e6] == 1),
        {f"least at {k:g}": u.min() for k, u in shares.items()},
    )


def filtered() -> Found:
    wanted = 1.5e6 * (1 - (1 - PAQM.parameter("a")) ** np.arange(1, 101))
    worst = off(_overload(1.5e6)[1], wanted)
    shares = (0.1, 0.3, 0.5)
    runs = [_overload(1.5e6, a=a)[1] for a in shares]
    periods = [1 + int(np.argmax(rate >= 0.9 * 1.5e6)) for rate in runs]
    good = worst < 1e-9 and falling(periods)
    return reproduced_if(good, worst=worst, shares=shares, periods=periods)


def gains() -> Found:
    poly = simplify((_z * eye(3) - inner_map(True)).det() / (_z - (1 - _A)))
    (critical,) = solve(poly.as_poly(_z).discriminant(), _K)
    assert proof(Eq(poly, _z**2 - _z + _K))
    slowest = ecf.inner_radius_late(0.2)  # from 0.2 to `top` an error keeps no more a period
    top = brentq(lambda K: ecf.inner_radius_late(K) - slowest, critical, 1.0)
    return not_given(critical=critical, slowest=slowest, top=top)


def granularity() -> Found:
    least, largest = (ecf.set_point(n, PACKET, C) for n in (50, 100))
    return needs_packets(least=least, largest=largest, times=[1e3 * least, 1e3 * largest])


def report_period() -> Found:
    short, long = (periods(rtt)[1] for rtt in (0.06, 0.24))
    return not_given(short=short, long=long, found=[1e3 * short, 1e3 * long])


_PRINTED = PAQMECF(T_ECF=0.16)


def far_sources() -> Found:
    # Those of Fig. 8, with T_s as printed and T_ECF by (4), and with the shortest printed period.
    own: dict[float, dict[str, float]] = {}
    worse: dict[float, dict[str, float]] = {}
    for rtt in (0.06, 0.1, 0.2, 0.4):
        near, T = periods(rtt)
        for found, law in ((own, PAQMECF(T_s=T - near)), (worse, _PRINTED)):
            run = simulate(fig5(ECF, law, 5, rtt), 80, samples=1601).sel(time=slice(40.0, None))
            found[rtt] = averages(run) | {"T": run[f"{law.name}_T"][-1, 0].item()}
    lost, more = (max(found["loss"] for found in runs.values()) for runs in (own, worse))
    return reproduced_if(
        lost == 0 < more and all(found["T"] == periods(rtt)[1] for rtt, found in own.items()),
        T=[1e3 * found["T"] for found in own.values()],
        used=min(found["utilisation"] for found in own.values()),
        lost=[found["loss"] for found in worse.values()],
    )


def _three(first: float, sources: int = 3, **link: Any) -> Network:
    """Three sources, or so many, that begin with that rate behind a router."""
    flow = {"law": ECF, "access_delay": 0.01, "packet": PACKET, "initial": {"r1": first}}
    return dumbbell([flow] * sources, {"capacity": C, "delay": 0.02, **link})


def measured_rate() -> Found:
    # The first report of three sources of 11 Mbit/s: MD = r'/r as (5) finds it, and the queue.
    r = simulate(_three(11e6, law=_PRINTED(q_0=2.0)), 0.2, t_eval=[0.1599999, 0.165])
    told, wait = r.PAQMECF_MD.values[1, 0], r.queueing_delay.values[0, 0]
    wanted = float(V1.subs({aim: 0.028, q: wait, T_ECF: 0.16, c: C})) / 33e6
    return reproduced_if(off(told, wanted) < 1e-6, told=told, wanted=wanted)


_READINGS = (
    "The formulas are not legible, and the prose speaks both of one change over T_ECF and of a "
    "mean round trip: both readings are kept, as V1 and V2. What sources then do is another "
    "matter: (11) asks for half of an increase."
)


def wanted_rate() -> Found:
    return proved(Eq(unfold(q + (V1 - c) * T_ECF / c), aim), readings=_READINGS)


def wanted_rate_late() -> Found:
    old = q + ((measured - c) * R + (V2 - c) * (T_ECF - R)) / c
    return proved(Eq(unfold(old), aim), readings=_READINGS)


def converges() -> Found:
    at = {q: aim}
    fixed = [Eq(V1.subs(at), c), Eq(unfold(V2).subs(at).subs(measured.definition, c), c)]
    run = steady("CBR", "V1", 30, 0.06)
    total, queue = run.rate.sum("flow").values / C, run.queueing_delay
    return differs_if(
        all(map(proof, fixed)) and np.ptp(total[-500:]) > 1e-3,
        low=total.min(),
        high=total.max(),
        least=queue.min(),
        mean=queue.mean(),
        most=queue.max(),
        aim=PAQMECF.parameter("aim"),
    )


def scheduler() -> Found:
    udp = [CBR, {"law": CBR, "start": 4.0, "stop": 8.0}]
    net = two_queues(udp, [CBR, CBR], {"capacity": C}, {})
    found = [net.links["udp"].capacity, *(rate for _, rate in net.links["udp"].schedule)]
    return reproduced_if(
        np.allclose(found, [C / 3, C / 2, C / 3]), {f"share {i}": v for i, v in enumerate(found)}
    )


def decrease_and_increase() -> Found:
    # What sources of 5 and 11 Mbit/s send after the first report, at 160 ms: V1 by hand, where 33
    # Mbit/s have filled the queue all along.
    found = [
        simulate(_three(first, law=_PRINTED(q_0=2.0)), 0.3, t_eval=[0.2]).rate.values[0, 0]
        for first in (5e6, 11e6)
    ]
    wish = [C * (1 + (0.028 - wait) / 0.16) for wait in (0.0, 0.016)]
    wanted = np.array([5e6 + (wish[0] - 15e6) / 6, 11e6 * wish[1] / 33e6])
    return reproduced_if(off(found, wanted) < 1e-6, AI=found[0] - 5e6, MD=found[1] / 11e6)


def increase_limit() -> Found:
    return not_given()


def source() -> Found:
    run = simulate(_three(5e6, 1, law=_PRINTED), 0.2, t_eval=[0.165, 0.2])
    alone = run.rate[-1, 0]
    return compared([alone], alone=alone, told=run.PAQMECF_AI[0, 0])


def stall() -> Found:
    told = simulate(_three(10e6, law=_PRINTED, initial={"q": 0.028}), 1.2, samples=1201).PAQMECF_MD
    return not_given(first=told.time[np.argmax(told.values < 0.96)], least=told.min())


def drops_and_marks() -> Found:
    link = {"delay": 0.02, "buffer": 400 * PACKET}
    dropping, marking = {**link, "law": PAQMDrop, "capacity": C}, {**link, "law": PAQM}
    net = two_queues([CBR(rate=20e6)], [CBR(rate=18e6)], dropping, marking)
    last = simulate(net, 1.0, samples=201).isel(time=-1)
    lost, marked = last.lost, last.link_mark[1]
    return reproduced_if(
        lost[0] > 0 and lost[1] == 0 and marked > 0,
        lost=lost[0],
        marked=marked,
        part=lost[0] / last.entered[0],
    )


# --- Byte and packet modes of the ECF paper's routers: what is counted, and to whom marks go ------


ACK = 8 * 40.0  # Length of an acknowledgement [bit]


def _carried(short: float) -> float:
    """Share of 0.8 c that P-AQM in packet mode lets in, that part of its packets of 40 bytes."""
    law = count_packets(PAQMDrop, mean=short * ACK + (1 - short) * PACKET, assumed=PACKET)
    return 1 - float(simulate(_constant(law, 0.8 * C, C), 3, samples=3).link_loss[-1, 0])


def _ratio(law: Source) -> float:
    """Rate of flows of 1500 bytes over that of as many of 500 bytes, over RED that marks."""
    flows = [{"law": law, "packet": size} for size in (PACKET, PACKET / 3)]
    link = {"law": marking(0.1), "capacity": C, "delay": 0.03}
    long, short = equilibrium(dumbbell(flows, link)).rate.values
    return float(long / short)


def marks_by_length() -> Found:
    many = Reno(a=30, b=0.5 / 30)
    by_packets, by_bytes = _ratio(many), _ratio(marked_by_bytes(many, PACKET))
    return reproduced_if(
        abs(by_packets - 3) < 1e-6 and abs(by_bytes - np.sqrt(3)) < 1e-6,
        packets=by_packets,
        bytes=by_bytes,
    )


def byte_mode() -> Found:
    target = [1e3 * ecf.set_point(100, size, C) for size in (PACKET, (PACKET + ACK) / 2)]
    let_in = {short: _carried(short) for short in (0.0, 0.5, 0.8)}
    return reproduced_if(
        target[1] < target[0] and let_in[0.8] < let_in[0.0] == 1,
        named("let in {:g}", let_in),
        delay=target[1],
        target=target,
        parts=pc(let_in.values()),
    )


# --- The loops of ECF and of DCCP over RED near equilibrium ---------------------------------------


def _critical(version: int) -> float:
    """The longest R over T at which the exact sampled loop is stable."""
    return float(brentq(lambda share: outer_loop(version, 1.0, share).radius - 1, 0.2, 1.6))


def period_of_v1() -> Found:
    critical = _critical(1)
    return proved(
        Eq(outer_map(1).charpoly(_z).as_expr(), _z**2 - _R * _z / _T + _R / _T),
        Eq(ecf.v1_radius.form**2, _R / _T),
        critical=critical,
        checks=abs(critical - 1) < 1e-6,
    )


def period_of_v2() -> Found:
    return not_given(critical=_critical(2))


def window() -> Found:
    # A window of 140 ms at the end of each 160 ms, longer and longer round trips.
    T, T_s = 0.16, 0.14
    inside = max(
        off(outer_loop(1, T, R, T_s).radius, ecf.v1_radius(T, R)) for R in (0.005, 0.01, 0.02)
    )
    limit = float(brentq(lambda R: outer_loop(1, T, R, T_s).radius - 1, T - T_s, T))
    shorter = outer_loop(1, T, limit).radius
    return reproduced_if(inside < 1e-9 and shorter < 1, {"with (4)": shorter}, limit=limit)


def hold_form() -> Found:
    cross = brentq(lambda v: 2 * np.sin(v / 2) - v**2, 0.5, 1.5)
    found, exact = (np.pi / 2 - cross / 2) / cross, _critical(1)
    return reproduced_if(
        found > exact and ecf.hold_error(cross, 1) <= cross**2 / 12,
        form=found,
        exact=exact,
        error=ecf.hold_error(cross, 1),
        bound=cross**2 / 12,
        cross=cross,
    )


_SMALL = 1e-6  # what is left of a transient after 20 s


def continuum() -> Found:
    # Without the stall rule and with constant rates: shares of 15, 9 and 6 Mbit/s stay.
    net = fig5(ECF, PAQMECF(forced=1), 3, 0.06)
    for name, rate in {"s1": 15e6, "s2": 9e6, "s3": 6e6}.items():
        net = net.with_flow(name, initial={"r1": rate})
    run = simulate(net, 30, samples=301)
    before, x, wait = run.rate[200].values, run.rate[-1].values, run.queueing_delay[-1, 0]
    rests = max(off(x, before), off(x.sum(), C), off(wait, 0.028)) < _SMALL
    return reproduced_if(
        rests and off(x, x.mean()) > _SMALL,
        delay=wait,
        spread=np.ptp(x),
        rates=x / 1e6,
    )


def _after_20(rate: Any) -> np.ndarray:
    """Shares over the mean one after 20 s."""
    begun = rate.sel(time=20.0).values
    return np.asarray(begun / begun.mean())


def rtt_fairness() -> Found:
    # Shares over the mean one in the last 20 s, whoever began with the least.
    share, text, nearer = {}, [], True
    for name in ("the near one", "the far one"):
        rate = unequal(name == "the near one").rate
        late = rate.sel(time=slice(280.0, None)).mean("time")
        share[name] = (late / late.mean()).values
        nearer &= bool(np.all(np.abs(share[name] - 1) < np.abs(_after_20(rate) - 1)))
        text.append(
            f"{numbers(share[name], '.3f')} of the fair share after 300 s if {name} begins with "
            f"the least (after 20 s {numbers(_after_20(rate), '.2f')})"
        )
    slow, soon = (_after_20(unequal(True, trips).rate) for trips in (FAR, FAR[:1] * 4))
    return reproduced_if(
        nearer and np.ptp(soon) < np.ptp(slow),
        *(named(f"share {{}}, {name}", (1, 2, 3, 4), x) for name, x in share.items()),
        soon=soon,
        far=ms(FAR),
        text="; ".join(text),
    )


def max_min() -> Found:
    x = two_nodes().rate.values.mean(0)
    wanted = np.array([4.0, 4.0, 4.0, 26.0])
    same = np.all(np.round(x / 1e6, 2) == wanted)
    return reproduced_if(same, worst=off(x, 1e6 * wanted), rates=x / 1e6)


def without_adaptation() -> Found:
    found = {}
    for mbit in (15, 35):
        net = fig5(ECF, PAQMECF, 3, 0.06)
        net.flow("udp", CBR(rate=1e6 * mbit), route=["aqm"], packet=PACKET)
        run = simulate(net, 60, samples=1201).sel(time=slice(30.0, None))
        lost, came = (counted[-1, 0] - counted[0, 0] for counted in (run.lost, run.entered))
        found[mbit] = run.rate[:, 0].mean().item(), (lost / came).item()
    (share, none), (least, lost) = found.values()
    too_much = off(lost, 1 - C / (35e6 + 3 * least)) < 1e-3  # each packet beyond C
    return reproduced_if(
        none == 0 and agrees("5.0 Mbit/s", share) and least < 0.01 * share and too_much,
        share=share,
        least=least,
        lost=lost,
    )


def red_margins() -> Found:
    # Reno over RED at adaptive RED's largest ratio: verdict, margin and the run itself.
    margins, jitters, verdicts, lines = {}, {}, {}, []
    for count in COUNTS:
        row = []
        for rtt in RTTS:
            at = count, rtt
            report = stability(at_rest(*at))
            verdicts[at] = bool(report)
            jitters[at] = averages(mean_field("TCP-like", "RED", *at))["jitter"]
            margins[at] = 1e3 * report.delay_margin if report else -1.0
            row.append(
                f"stable, {margins[at]:.0f} ms of delay left"
                if report
                else f"oscillates by {1e3 * jitters[at]:.0f} ms"
            )
        lines.append(f"{count} sources: {'; '.join(row)}")
    agree = all(verdicts[at] == (jitter < 1e-3) for at, jitter in jitters.items())
    found = np.reshape(list(jitters.values()), (len(COUNTS), len(RTTS)))
    calm = np.where(found < 1e-3, 0.0, found)  # what is left of a transient is no oscillation
    falls = [
        *(f"at an RTT of {1e3 * rtt:.0f} ms" for rtt, column in zip(RTTS, calm.T, strict=True)
          if np.any(np.diff(column) < 0)),
        *(f"with {count} sources" for count, row in zip(COUNTS, calm, strict=True)
          if np.any(np.diff(row) < 0)),
    ]  # fmt: skip
    return differs_if(
        falls or not agree,
        named("margin {}, {:g}", margins),
        named("jitter {}, {:g}", jitters),
        computed=". ".join(lines) + f" (RTT {ms(RTTS)} ms)",
        reason=f"They do not grow throughout {' and '.join(falls)}. Section 3.2 has the jitter "
        "grow with the RTT, Section 5 has it fall somewhat. By how much it oscillates is the "
        "standard deviation; verdicts of the linearised loop and runs agree. Sources are taken as "
        "their mean, from 50 to 100 s, with RED's thresholds at 50 and 150 packets and a weight of "
        "0.002, which are not printed."
        if agree
        else "Verdict and run disagree somewhere.",
    )


def ecf_margins() -> Found:
    # The sampled loop of Fig. 5: it does not depend on the number of sources.
    found = {(v, r): ecf_margin(v, r) for v in ("V1", "V2") for r in RTTS}
    radius, left = ({at: pair[k] for at, pair in found.items()} for k in (0, 1))
    alike = max(off(ecf_margin(*at, n)[0], radius[at]) for at in found for n in COUNTS[1:])
    return reproduced_if(
        max(radius.values()) < 1 and alike < 1e-9,
        named("radius {}, {:g}", radius),
        named("left {}, {:g}", left),
        text="; ".join(
            f"with {v} an error shrinks to {numbers((radius[v, r] for r in RTTS), '.2f')} of "
            f"itself a period, and does so until the round trip is "
            f"{ms(left[v, r] for r in RTTS)} ms longer"
            for v in ("V1", "V2")
        ),
    )
