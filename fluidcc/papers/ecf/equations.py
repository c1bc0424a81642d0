"""Section 2 of the ECF paper: equations (1) to (12), formulas lost, and the loops' stability."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, Expr, Rational, Symbol, eye, lambdify, simplify, solve

from fluidcc.analysis.stability import stability
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.formulas import ecf
from fluidcc.laws import Link, Source
from fluidcc.links import PAQM, PAQMECF, PAQMDrop
from fluidcc.links import RED as FixedRED
from fluidcc.links.counting import count_packets
from fluidcc.links.paqm import T_ECF, V1, V2, R, aim, factor, measured, q, rise
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell, two_queues
from fluidcc.papers.ecf.common import (
    COUNTS,
    FAR,
    PACKET,
    RED,
    RTTS,
    C,
    at_rest,
    averages,
    ecf_margin,
    fig5,
    inner_map,
    mean_field,
    ms,
    outer_loop,
    outer_map,
    pc,
    periods,
    starting,
    two_nodes,
    unequal,
)
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import named, off
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, ECF, Reno
from fluidcc.sources.by_bytes import marked_by_bytes
from fluidcc.symbols import c, crossing, unfold

_K, _A, _dT, _q0 = PAQM.params
_z = Symbol("z")


def _constant(link: Link, rate: float, capacity: float) -> Network:
    """A constant flow through a router."""
    router = {"law": link, "capacity": capacity, "delay": 0.01}
    return dumbbell([{"law": CBR(rate=rate), "start": 0}], router)


def _overload(rate: float) -> np.ndarray:
    """Share let in, filtered rate and queue [s] after each of 100 periods at a rate [bit/s]."""
    r = simulate(_constant(PAQMDrop, rate, 1e6), 2.01, t_eval=0.02 * np.arange(1, 101) + 1e-6)
    return np.array(
        [r.PAQMDrop_u.values[:, 0], r.PAQMDrop_r.values[:, 0], r.queueing_delay.values[:, 0]]
    )


def _share(rate: Expr) -> Expr:
    """The share that P-AQM's tick lets through, not truncated, after `rate` has come for long."""
    (tick,) = PAQM.ticks
    _, u, r, came = PAQM.states
    return unfold(tick.update[u]).subs({came: rate * _dT, r: rate}).simplify()


def control(claim: Claim) -> Outcome:
    more = Symbol("s", positive=True)
    over, under = c * (1 + more), c / (1 + more)
    queue, share = PAQM.states[0], _share(over)
    new = queue + _dT * (share * over / c - 1)
    return claim.proved(
        Eq((share * over).subs(queue, _q0), c),
        Eq(new - _q0, (1 - _K) * (queue - _q0)),
        *(proof(Eq(_share(rate), 1)) for rate in (under, c)),
    )


def inner_eigenvalues(claim: Claim) -> Outcome:
    return claim.proved(Eq(inner_map(False).charpoly(_z).as_expr(), (_z - 1 + _K) * (_z - 1 + _A)))


def truncated(claim: Claim) -> Outcome:
    shares = {rate: _overload(rate)[0] for rate in (0.5e6, 1.5e6, 30e6)}
    return claim.reproduced_if(
        all(np.all((u >= 0) & (u <= 1)) for u in shares.values()) and np.all(shares[0.5e6] == 1),
        {f"least at {k:g}": u.min() for k, u in shares.items()},
    )


def filtered(claim: Claim) -> Outcome:
    r = _overload(1.5e6)[1]
    a = PAQM.parameter("a")
    wanted = 1.5e6 * (1 - (1 - a) ** np.arange(1, 101))
    worst = off(r, wanted)
    return claim.reproduced_if(worst < 1e-9, {"worst": worst})


def gains(claim: Claim) -> Outcome:
    late = inner_map(True)
    poly = simplify((_z * eye(3) - late).det() / (_z - (1 - _A)))
    (critical,) = solve(poly.as_poly(_z).discriminant(), _K)
    ends = [float(ecf.inner_radius_late(k)) for k in (0.2, 0.5)]
    inside = np.max(ecf.inner_radius_late(np.linspace(0.2, 0.5, 301)))
    outside = min(float(ecf.inner_radius_late(k)) for k in (0.15, 0.19, 0.55, 0.6))
    return claim.reproduced_if(
        proof(Eq(poly, _z**2 - _z + _K)) and critical == Rational(1, 4) and inside < outside,
        {"critical": critical, "inside": inside, "outside": outside},
        ends=ends,
    )


def granularity(claim: Claim) -> Outcome:
    times = [float(ecf.set_point(n, PACKET, C)) for n in (50, 100)]
    return claim.out_of_reach(
        {"least": times[0], "largest": times[1]}, times=[1e3 * t for t in times]
    )


def report_period(claim: Claim) -> Outcome:
    found = [periods(rtt)[1] for rtt in (0.06, 0.24)]
    return claim.not_given({"short": found[0], "long": found[1]}, found=[1e3 * v for v in found])


def _three(r_max: float, **link: Any) -> Network:
    """Three sources of at most that rate behind a router."""
    flow = {"law": ECF(r_max=r_max), "access_delay": 0.01, "packet": PACKET}
    return dumbbell([flow] * 3, {"capacity": C, "delay": 0.02, **link})


def measured_rate(claim: Claim) -> Outcome:
    # The first report of three sources of 11 Mbit/s: MD = r'/r as (5) finds it, and the queue.
    r = simulate(_three(11e6, law=PAQMECF(q_0=2.0)), 0.2, t_eval=[0.1599999, 0.165])
    told, wait = r.PAQMECF_MD.values[1, 0], r.queueing_delay.values[0, 0]
    wanted = float(V1.subs({aim: 0.028, q: wait, T_ECF: 0.16, c: C})) / 33e6
    return claim.reproduced_if(abs(told / wanted - 1) < 1e-6, {"told": told, "wanted": wanted})


_READINGS = (
    "The formulas are not legible, and the prose speaks both of one change over T_ECF and of a "
    "mean round trip: both readings are kept, as V1 and V2. What sources then do is another "
    "matter: (11) asks for half of an increase."
)


def wanted_rate(claim: Claim) -> Outcome:
    return claim.proved(Eq(unfold(q + (V1 - c) * T_ECF / c), aim), readings=_READINGS)


def wanted_rate_late(claim: Claim) -> Outcome:
    old = q + ((measured - c) * R + (V2 - c) * (T_ECF - R)) / c
    return claim.proved(Eq(unfold(old), aim), readings=_READINGS)


def converges(claim: Claim) -> Outcome:
    at = {q: aim}
    return claim.proved(Eq(V1.subs(at), c), Eq(unfold(V2).subs(at).subs(measured.definition, c), c))


def scheduler(claim: Claim) -> Outcome:
    udp = [CBR, {"law": CBR, "start": 4.0, "stop": 8.0}]
    net = two_queues(udp, [CBR, CBR], {"capacity": C}, {})
    found = [net.links["udp"].capacity, *(rate for _, rate in net.links["udp"].schedule)]
    return claim.reproduced_if(
        np.allclose(found, [C / 3, C / 2, C / 3]), {f"share {i}": v for i, v in enumerate(found)}
    )


def _told() -> tuple[float, float]:
    """Worst errors of MD and AI in the law's own tick against (10) and (11), random states."""
    update = PAQMECF.ticks[-1].update
    want = unfold(V1)
    symbols = sorted(
        set().union(*(unfold(update[k]).free_symbols for k in (factor, rise)), want.free_symbols),
        key=str,
    )
    tell = lambdify(
        symbols, [unfold(update[factor]), unfold(update[rise]), want, unfold(measured)], "numpy"
    )
    rng = np.random.default_rng(0)
    values = {s: float(PAQMECF.params[s]) for s in symbols if s in PAQMECF.params} | {c: C}
    worst = [0.0, 0.0]
    for _ in range(200):
        here = values | {q: rng.uniform(0, 0.1), crossing: float(rng.integers(1, 9))}
        here |= {s: rng.uniform(1e6, 9e6) for s in symbols if str(s) == "S"} | {
            s: 0.0 for s in symbols if str(s) == "rests"
        }
        md, ai, wish, rate = tell(*(here[s] for s in symbols))
        wanted = (wish / rate, 0.0) if wish < rate else (1.0, (wish - rate) / (2 * here[crossing]))
        worst = [max(worst[0], abs(md - max(wanted[0], 0))), max(worst[1], abs(ai - wanted[1]) / C)]
    return worst[0], worst[1]


def decrease_and_increase(claim: Claim) -> Outcome:
    md, ai = _told()
    return claim.reproduced_if(max(md, ai) < 1e-9, {"MD": md, "AI": ai})


def increase_limit(claim: Claim) -> Outcome:
    return claim.not_given()


def source(claim: Claim) -> Outcome:
    r = starting("CBR").rate
    alone = float(r.sel(time=9.9, method="nearest")[0])
    return claim.compared([alone], {"alone": alone})


def stall(claim: Claim) -> Outcome:
    r = simulate(_three(10e6, law=PAQMECF, initial={"q": 0.028}), 1.2, samples=1201)
    told = r.PAQMECF_MD.values[:, 0]
    first = r.time.values[np.argmax(told < 0.96)]
    return claim.not_given({"first": first}, least=told.min())


def drops_and_marks(claim: Claim) -> Outcome:
    link = {"delay": 0.02, "buffer": 400 * PACKET}
    net = two_queues(
        [CBR(rate=20e6)],
        [CBR(rate=18e6)],
        {**link, "law": PAQMDrop, "capacity": C},
        {**link, "law": PAQM},
    )
    r = simulate(net, 1.0, samples=201)
    lost, heard = r.lost.values[-1], r.loss.values[-1]
    return claim.reproduced_if(
        lost[0] > 0 and lost[1] == 0 and heard[1] > 0.1,
        {"lost": lost[0], "marked": heard[1]},
        part=lost[0] / r.entered.values[-1, 0],
    )


# --- Byte and packet modes of the ECF paper's routers: what is counted, and to whom marks go ------


ACK = 8 * 40.0  # Length of an acknowledgement [bit]


def _carried(short: float) -> float:
    """Share of 0.8 c that P-AQM in packet mode lets in, that part of its packets of 40 bytes."""
    law = count_packets(PAQMDrop, mean=short * ACK + (1 - short) * PACKET, assumed=PACKET)
    return 1 - float(simulate(_constant(law, 0.8 * C, C), 3, samples=3).link_loss[-1, 0])


def _ratio(law: Source) -> float:
    """Rate of flows of 1500 bytes over that of as many of 500 bytes, over RED that marks."""
    link = FixedRED(p_max=0.1, **{name: RED.parameter(name) for name in ("min_th", "max_th", "T")})
    flows = [{"law": law, "packet": size} for size in (PACKET, PACKET / 3)]
    rate = equilibrium(dumbbell(flows, {"law": link, "capacity": C, "delay": 0.03})).rate.values
    return float(rate[0] / rate[1])


def marks_by_length(claim: Claim) -> Outcome:
    many = Reno(a=30, b=0.5 / 30)
    by_packets, by_bytes = _ratio(many), _ratio(marked_by_bytes(many, PACKET))
    return claim.reproduced_if(
        abs(by_packets - 3) < 1e-6 and abs(by_bytes - np.sqrt(3)) < 1e-6,
        {"packets": by_packets, "bytes": by_bytes},
    )


def byte_mode(claim: Claim) -> Outcome:
    target = [1e3 * float(ecf.set_point(100, size, C)) for size in (PACKET, (PACKET + ACK) / 2)]
    let_in = {short: _carried(short) for short in (0.0, 0.5, 0.8)}
    return claim.reproduced_if(
        let_in[0.0] == 1 and abs(target[1] - 20.5) < 0.1 and let_in[0.8] < 0.6,
        {"delay": target[1], **named("let in {:g}", let_in)},
        target=target,
        parts=pc(let_in.values()),
    )


# --- The loops of ECF and of DCCP over RED near equilibrium ---------------------------------------


_T, _R = (Symbol(name, positive=True) for name in ("T", "R"))


def _critical(version: int) -> float:
    """The longest R over T at which the exact sampled loop is stable."""
    return float(brentq(lambda share: outer_loop(version, 1.0, share).radius - 1, 0.2, 1.6))


def period_of_v1(claim: Claim) -> Outcome:
    found = _critical(1)
    return claim.proved(
        Eq(outer_map(1).charpoly(_z).as_expr(), _z**2 - _R * _z / _T + _R / _T),
        ecf.v1_radius.form**2 - _R / _T,
        values={"critical": found},
    )


def period_of_v2(claim: Claim) -> Outcome:
    found = _critical(2)
    return claim.differs_if(found < 1 - 1e-6, {"critical": found})


def window(claim: Claim) -> Outcome:
    # A window of 140 ms at the end of each 160 ms, longer and longer round trips.
    T, T_s = 0.16, 0.14
    inside = max(
        abs(outer_loop(1, T, R, T_s).radius / ecf.v1_radius(T, R) - 1) for R in (0.005, 0.01, 0.02)
    )
    limit = float(brentq(lambda R: outer_loop(1, T, R, T_s).radius - 1, T - T_s, T))
    shorter = outer_loop(1, T, limit).radius
    return claim.reproduced_if(
        inside < 1e-9 and limit < 0.5 * T and shorter < 0.7, {"limit": limit, "with (4)": shorter}
    )


def hold_form(claim: Claim) -> Outcome:
    cross = float(brentq(lambda v: 2 * np.sin(v / 2) - v**2, 0.5, 1.5))
    found, exact = (np.pi / 2 - cross / 2) / cross, _critical(1)
    error, bound = float(ecf.hold_error(cross, 1)), cross**2 / 12
    return claim.differs_if(
        abs(found / exact - 1) > 1e-3,
        {"form": found, "exact": exact, "error": error, "bound": bound},
        cross=cross,
    )


def continuum(claim: Claim) -> Outcome:
    # Without the stall rule and with constant rates: shares of 15, 9 and 6 Mbit/s stay.
    net = fig5(ECF, PAQMECF(forced=1), 3, 0.06)
    for i, rate in enumerate((15e6, 9e6, 6e6)):
        net = net.with_flow(f"s{i + 1}", initial={"r1": rate})
    r = simulate(net, 30, samples=301)
    x, wait = r.rate.values[-1], r.queueing_delay.values[-1, 0]
    return claim.reproduced_if(
        abs(x.sum() / C - 1) < 1e-3 and np.ptp(x) > 6e6 and abs(wait - 0.028) < 1e-4,
        {"delay": wait, "spread": np.ptp(x)},
        rates=x / 1e6,
    )


def rtt_fairness(claim: Claim) -> Outcome:
    # Shares over the mean one in the last 20 s, whoever began with the least.
    runs = {name: unequal(name == "the near one") for name in ("the near one", "the far one")}
    late = {
        name: r.rate.sel(time=slice(280.0, None)).mean("time").values for name, r in runs.items()
    }
    share = {name: x / x.mean() for name, x in late.items()}
    begun = {name: r.rate.sel(time=20.0).values for name, r in runs.items()}
    text = "; ".join(
        f"{', '.join(f'{v:.3f}' for v in share[name])} of the fair share after 300 s if {name} "
        "begins with the least (after 20 s "
        f"{', '.join(f'{v:.2f}' for v in begun[name] / begun[name].mean())})"
        for name in runs
    )
    return claim.compared(
        [np.concatenate(list(share.values()))],
        {f"share {i + 1}, {name}": v for name, x in share.items() for i, v in enumerate(x)},
        far=ms(FAR),
        text=text,
    )


def max_min(claim: Claim) -> Outcome:
    x = two_nodes().rate.values.mean(0)
    worst = off(x, np.array([4e6, 4e6, 4e6, 26e6]))
    return claim.reproduced_if(worst < 0.01, {"worst": worst}, rates=x / 1e6)


def red_margins(claim: Claim) -> Outcome:
    # Reno over RED at adaptive RED's largest ratio: verdict, margin and the run itself.
    values: dict[str, float] = {}
    lines, agree, jitters = [], True, np.zeros((len(COUNTS), len(RTTS)))
    for i, count in enumerate(COUNTS):
        row = []
        for j, rtt in enumerate(RTTS):
            net, _ = at_rest(count, rtt)
            report = stability(net)
            jitter = jitters[i, j] = averages(mean_field("TCP-like", "RED", count, rtt))["jitter"]
            agree &= bool(report) == (jitter < 1e-3)
            margin = 1e3 * report.delay_margin if report else -1.0
            values |= {f"margin {count}, {rtt:g}": margin, f"jitter {count}, {rtt:g}": jitter}
            row.append(
                f"stable, {margin:.0f} ms of delay left"
                if report
                else f"oscillates by {1e3 * jitter:.0f} ms"
            )
        lines.append(f"{count} sources: {'; '.join(row)}")
    calm = np.where(jitters < 1e-3, 0.0, jitters)  # what is left of a transient is no oscillation
    falls = [
        f"at an RTT of {1e3 * RTTS[j]:.0f} ms"
        for j in range(len(RTTS))
        if np.any(np.diff(calm[:, j]) < 0)
    ]
    falls += [
        f"with {COUNTS[i]} sources" for i in range(len(COUNTS)) if np.any(np.diff(calm[i]) < 0)
    ]
    return claim.differs_if(
        falls or not agree,
        values,
        computed=". ".join(lines) + f" (RTT {ms(RTTS)} ms)",
        reason=f"They do not grow all along {' and '.join(falls)}. Section 3.2 has the jitter grow "
        "with the RTT, Section 5 has it fall somewhat. Verdicts of the linearised loop and runs "
        "agree."
        if agree
        else "Verdict and run disagree somewhere.",
    )


def ecf_margins(claim: Claim) -> Outcome:
    # The sampled loop of Fig. 5: it does not depend on the number of sources.
    found = {(v, r): ecf_margin(v, r) for v in ("V1", "V2") for r in RTTS}
    alike = max(abs(ecf_margin("V1", 0.06, n)[0] / found["V1", 0.06][0] - 1) for n in COUNTS)
    stable = max(radius for radius, _ in found.values()) < 1
    text = "; ".join(
        f"{v}: {', '.join(f'{found[v, r][0]:.2f}' for r in RTTS)}, "
        f"{ms(found[v, r][1] for r in RTTS)} ms of round trip left"
        for v in ("V1", "V2")
    )
    return claim.reproduced_if(
        stable and alike < 1e-9,
        {f"radius {v}, {r:g}": radius for (v, r), (radius, _) in found.items()}
        | {f"left {v}, {r:g}": left for (v, r), (_, left) in found.items()},
        text=text,
    )
