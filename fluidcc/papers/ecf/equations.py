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
from fluidcc.papers.model import (
    NOT_GIVEN,
    OUT_OF_REACH,
    Outcome,
    claim,
    differs_if,
    from_proofs,
    proof,
    reproduced_if,
)
from fluidcc.papers.printed import bound, compared, off
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


@claim("(1)", "formula lost")
def control() -> Outcome:
    """Once the filter has settled, the signal lets c through at the set point, takes the part K of
    the queue's error in a period where r > c, and marks nothing where r <= c."""
    more = Symbol("s", positive=True)
    over, under = c * (1 + more), c / (1 + more)
    queue, share = PAQM.states[0], _share(over)
    new = queue + _dT * (share * over / c - 1)
    return from_proofs(
        Eq((share * over).subs(queue, _q0), c),
        Eq(new - _q0, (1 - _K) * (queue - _q0)),
        *(proof(Eq(_share(rate), 1)) for rate in (under, c)),
        computed="u = c/r + K (q0 - q)/(dT r) if r > c, else c/r: while u lies within [0, 1] an "
        "error of the queue keeps exactly the part 1 - K a period, whatever dT, the capacity and "
        "the overload",
        reason="The formula is not legible. This is the form that the prose describes.",
    )


@claim("(1), (3)", "not in it")
def inner_eigenvalues() -> Outcome:
    """Near the set point an error of the queue falls by K in a period, and one of the filtered
    rate by a."""
    return from_proofs(
        Eq(inner_map(False).charpoly(_z).as_expr(), (_z - 1 + _K) * (_z - 1 + _A)),
        computed="the linearised loop of queue and filter has the multipliers 1 - K and 1 - a",
    )


@claim("(2)", "[0, 1]")
def truncated() -> Outcome:
    """The value is truncated to lie between zero and one; below capacity it is one."""
    shares = {rate: _overload(rate)[0] for rate in (0.5e6, 1.5e6, 30e6)}
    return reproduced_if(
        all(np.all((u >= 0) & (u <= 1)) for u in shares.values()) and np.all(shares[0.5e6] == 1),
        "u stays within [0, 1] from half to thirty times the capacity, 1 below it",
        values={f"least at {k:g}": u.min() for k, u in shares.items()},
    )


@claim("(3)", "formula lost")
def filtered() -> Outcome:
    """The input rate is estimated by a one-tap recursive filter."""
    r = _overload(1.5e6)[1]
    a = PAQM.parameter("a")
    wanted = 1.5e6 * (1 - (1 - a) ** np.arange(1, 101))
    worst = off(r, wanted)
    return reproduced_if(
        worst < 1e-9,
        f"r <- (1 - a) r + a bytes/dT, as a geometric series within {bound(worst)}; its multiplier "
        "in the loop is 1 - a",
        values={"worst": worst},
    )


@claim("Section 2.2", "0.2-0.5")
def gains() -> Outcome:
    """K should be in the region 0.2 to 0.5."""
    late = inner_map(True)
    poly = simplify((_z * eye(3) - late).det() / (_z - (1 - _A)))
    (critical,) = solve(poly.as_poly(_z).discriminant(), _K)
    ends = [float(ecf.inner_radius_late(k)) for k in (0.2, 0.5)]
    inside = np.max(ecf.inner_radius_late(np.linspace(0.2, 0.5, 301)))
    outside = min(float(ecf.inner_radius_late(k)) for k in (0.15, 0.19, 0.55, 0.6))
    return reproduced_if(
        proof(Eq(poly, _z**2 - _z + _K)) and critical == Rational(1, 4) and inside < outside,
        "with one period of computing delay z^2 - z + K: double root at K = 1/4, stable for K < 1; "
        f"from 0.2 to 0.5 an error keeps at most {inside:.2f} a period, {ends[0]:.2f} and "
        f"{ends[1]:.2f} at the ends; without delay 1 - K, 0.8 to 0.5, no overshoot",
        values={"critical": critical, "inside": inside, "outside": outside},
    )


@claim("Section 2.2", "50-100")
def granularity() -> Outcome:
    """dT should be 50 to 100 packets' service time."""
    times = [float(ecf.set_point(n, PACKET, C)) for n in (50, 100)]
    return Outcome(
        OUT_OF_REACH,
        f"{times[0] * 1e3:.0f} to {times[1] * 1e3:.0f} ms at 30 Mbit/s; the eigenvalues do not "
        "depend on dT",
        "The loop of the fluid settles in a number of periods, whatever their length. What bounds "
        "dT from below is that packets are counted: n of them, at random, have a relative "
        "deviation of 1/sqrt(n), 14 to 10 % here.",
        {"least": times[0], "largest": times[1]},
    )


@claim("(4)", "160 ms, 520 ms")
def report_period() -> Outcome:
    """Reports are T_ECF = RTT_max + T_s apart, a multiple of dT; 160 and 520 ms in the runs."""
    found = [periods(rtt)[1] for rtt in (0.06, 0.24)]
    return Outcome(
        NOT_GIVEN,
        f"{1e3 * found[0]:.0f} and {1e3 * found[1]:.0f} ms, as 2 RTT + 120 ms",
        "T_s is not printed. With 20 and 200 ms between sources and router (the second is RTT = "
        "240 ms less 40 ms beyond the router, the first taken from the shortest test of Section "
        "3.2) both values are twice the RTT and 120 ms; then T_s = RTT + 120 ms.",
        {"short": found[0], "long": found[1]},
    )


def _three(r_max: float, **link: Any) -> Network:
    """Three sources of at most that rate behind a router."""
    flow = {"law": ECF(r_max=r_max), "access_delay": 0.01, "packet": PACKET}
    return dumbbell([flow] * 3, {"capacity": C, "delay": 0.02, **link})


@claim("(5)", "formula lost")
def measured_rate() -> Outcome:
    """The new aggregate rate is the bytes of the last T_s over T_s."""
    # The first report of three sources of 11 Mbit/s: MD = r'/r as (5) finds it, and the queue.
    r = simulate(_three(11e6, law=PAQMECF(q_0=2.0)), 0.2, t_eval=[0.1599999, 0.165])
    told, wait = r.PAQMECF_MD.values[1, 0], r.queueing_delay.values[0, 0]
    wanted = float(V1.subs({aim: 0.028, q: wait, T_ECF: 0.16, c: C})) / 33e6
    return reproduced_if(
        abs(told / wanted - 1) < 1e-6,
        f"33 Mbit/s is measured as such: MD = {told:.6f}, r'/r = {wanted:.6f}",
        values={"told": told, "wanted": wanted},
    )


_READINGS = (
    "The formulas are not legible, and the prose speaks both of one change over T_ECF and of a "
    "mean round trip: both readings are kept, as V1 and V2. What sources then do is another "
    "matter: (11) asks for half of an increase."
)


@claim("(6), (8), (9)", "formulas lost")
def wanted_rate() -> Outcome:
    """The wanted rate brings the queue to q0' in one period, if it comes for all of it."""
    return from_proofs(
        Eq(unfold(q + (V1 - c) * T_ECF / c), aim),
        computed="V1: r' = c + (q0' - q)/T_ECF",
        reason=_READINGS,
    )


@claim("(6), (8), (9)", "formulas lost")
def wanted_rate_late() -> Outcome:
    """With the mean round trip R allowed for, the wanted rate brings the queue to q0' in one
    period, if the old rate comes for R and then the wanted one."""
    old = q + ((measured - c) * R + (V2 - c) * (T_ECF - R)) / c
    return from_proofs(
        Eq(unfold(old), aim),
        computed="V2: r' = c + (q0' - q - (r - c) R)/(T_ECF - R)",
        reason=_READINGS,
    )


@claim("(9)", "r' = c_udp")
def converges() -> Outcome:
    """The terms in the numerator converge to zero, and r' towards c_udp."""
    at = {q: aim}
    return from_proofs(
        Eq(V1.subs(at), c),
        Eq(unfold(V2).subs(at).subs(measured.definition, c), c),
        computed="with q = q0' (and r = c) both forms give r' = c",
    )


@claim("(7)", "c N_udp/(N_udp + N_tcp)")
def scheduler() -> Outcome:
    """c_udp is c scaled by the number of UDP flows relative to all flows."""
    udp = [CBR, {"law": CBR, "start": 4.0, "stop": 8.0}]
    net = two_queues(udp, [CBR, CBR], {"capacity": C}, {})
    found = [net.links["udp"].capacity, *(rate for _, rate in net.links["udp"].schedule)]
    return reproduced_if(
        np.allclose(found, [C / 3, C / 2, C / 3]),
        "1 of 3, then 2 of 4, then 1 of 3 flows: 10, 15, 10 of 30 Mbit/s",
        values={f"share {i}": v for i, v in enumerate(found)},
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


@claim("(10), (11)", "formulas lost")
def decrease_and_increase() -> Outcome:
    """MD = r'/r; AI is 50 % of r' - r, divided equally among the sources."""
    md, ai = _told()
    return reproduced_if(
        max(md, ai) < 1e-9,
        "MD = r'/r if r' < r, else AI = (r' - r)/(2 N), at 200 random states",
        values={"MD": md, "AI": ai},
    )


@claim("(11)", "limit lost")
def increase_limit() -> Outcome:
    """AI is limited before it is signalled."""
    return Outcome(
        NOT_GIVEN,
        "no limit but r_max of (12)",
        "The limit is not legible. It tells the two uses of one field apart (a factor below 1, or "
        "a rate in bytes/s), which here are two signals.",
    )


@claim("(12)", "formula lost")
def source() -> Outcome:
    """A source multiplies its rate by MD or adds AI, up to its original rate."""
    r = starting("CBR").rate
    alone = float(r.sel(time=9.9, method="nearest")[0])
    return compared(
        [("20", alone / 1e6)],
        f"alone on 30 Mbit/s a source of 20 Mbit/s sends {alone / 1e6:g} Mbit/s",
        values={"alone": alone},
    )


@claim("Section 2.3", "forced value lost", erratum=True)
def stall() -> Outcome:
    """Five MDs above 0.96 in a row force a decrease."""
    r = simulate(_three(10e6, law=PAQMECF, initial={"q": 0.028}), 1.2, samples=1201)
    told = r.PAQMECF_MD.values[:, 0]
    first = r.time.values[np.argmax(told < 0.96)]
    return Outcome(
        NOT_GIVEN,
        f"at rest the sixth value, {told.min():g}, is signalled at {first:.2f} s, after five "
        "periods of 160 ms",
        "The value is lost: 0.95 is taken, which keeps the jitter in the printed 2 to 5 ms. Read "
        "literally, 'MDs above 0.96' would also strike a link that its sources do not fill, where "
        "r'/r is far above 1; so 'five in a row within (0.96, 1/0.96)' is taken, which is where "
        "nothing would change any more.",
        {"first": first},
    )


@claim("Section 2.3", "ECN for TCP")
def drops_and_marks() -> Outcome:
    """The queue of UDP drops, that of TCP marks."""
    link = {"delay": 0.02, "buffer": 400 * PACKET}
    net = two_queues(
        [CBR(rate=20e6)],
        [CBR(rate=18e6)],
        {**link, "law": PAQMDrop, "capacity": C},
        {**link, "law": PAQM},
    )
    r = simulate(net, 1.0, samples=201)
    lost, heard = r.lost.values[-1], r.loss.values[-1]
    return reproduced_if(
        lost[0] > 0 and lost[1] == 0 and heard[1] > 0.1,
        f"under overload the UDP queue loses {100 * lost[0] / r.entered.values[-1, 0]:.0f} %, the "
        "TCP queue none, and marks",
        values={"lost": lost[0], "marked": heard[1]},
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


@claim("(3)", "two modes")
def marks_by_length() -> Outcome:
    """Packets or bytes are counted, as P-AQM runs in byte or packet mode."""
    many = Reno(a=30, b=0.5 / 30)
    by_packets, by_bytes = _ratio(many), _ratio(marked_by_bytes(many, PACKET))
    return reproduced_if(
        abs(by_packets - 3) < 1e-6 and abs(by_bytes - np.sqrt(3)) < 1e-6,
        f"TCP flows of 1500 and 500 bytes on one link: rates as {by_packets:.3f} to 1 where "
        f"packets are marked alike, as {by_bytes:.3f} to 1 where bytes are",
        values={"packets": by_packets, "bytes": by_bytes},
    )


@claim("Section 3", "byte mode")
def byte_mode() -> Outcome:
    """P-AQM and RED count bytes, to allow for short ICMP and ACK packets."""
    target = [1e3 * float(ecf.set_point(100, size, C)) for size in (PACKET, (PACKET + ACK) / 2)]
    let_in = {short: _carried(short) for short in (0.0, 0.5, 0.8)}
    return reproduced_if(
        let_in[0.0] == 1 and abs(target[1] - 20.5) < 0.1 and let_in[0.8] < 0.6,
        "in packet mode, with half of all packets acknowledgements of 40 bytes, RED's 100 packets "
        f"are {target[1]:.1f} instead of {target[0]:.0f} ms; P-AQM lets in {pc(let_in.values())} % "
        "of a load of 0.8 c if 0, 50, 80 % of all packets are. By bytes neither changes",
        values={"delay": target[1], **{f"let in {k:g}": v for k, v in let_in.items()}},
    )


# --- The loops of ECF and of DCCP over RED near equilibrium ---------------------------------------


_T, _R = (Symbol(name, positive=True) for name in ("T", "R"))


def _critical(version: int) -> float:
    """The longest R over T at which the exact sampled loop is stable."""
    return float(brentq(lambda share: outer_loop(version, 1.0, share).radius - 1, 0.2, 1.6))


@claim("Section 2.3", "T_ECF >= RTT")
def period_of_v1() -> Outcome:
    """The time between reports must at least be RTT_max."""
    found = _critical(1)
    return from_proofs(
        Eq(outer_map(1).charpoly(_z).as_expr(), _z**2 - _R * _z / _T + _R / _T),
        ecf.v1_radius.form**2 - _R / _T,
        computed="V1: z^2 - (R/T) z + R/T, |z| = sqrt(R/T), so it settles iff T_ECF > RTT; the "
        f"exact sampled loop turns unstable at R = {found:.6f} T",
        reason="derived for decreases, which are carried out in full; of increases only half is",
        values={"critical": found},
    )


@claim("Section 2.3", "T_ECF >= RTT", erratum=True)
def period_of_v2() -> Outcome:
    """The time between reports must at least be RTT_max (with the mean round trip allowed for)."""
    found = _critical(2)
    return differs_if(
        found < 1 - 1e-6,
        "V2: roots 0 and -R/(T - R), so it settles iff T_ECF > 2 RTT; the exact sampled loop turns "
        f"unstable at R = {found:.6f} T",
        "The form that allows for the old rate meets the set point in one period, but its rate "
        "swings about c by -R/(T - R) each time. The printed periods of 160 and 520 ms are more "
        "than twice their round trips.",
        {"critical": found},
    )


@claim("(4)", "T_ECF >= RTT + T_s")
def window() -> Outcome:
    """T_s must lie where the new aggregate rate is stable: a round trip at least after the last
    report."""
    # A window of 140 ms at the end of each 160 ms, longer and longer round trips.
    T, T_s = 0.16, 0.14
    inside = max(
        abs(outer_loop(1, T, R, T_s).radius / ecf.v1_radius(T, R) - 1) for R in (0.005, 0.01, 0.02)
    )
    limit = float(brentq(lambda R: outer_loop(1, T, R, T_s).radius - 1, T - T_s, T))
    shorter = outer_loop(1, T, limit).radius
    return reproduced_if(
        inside < 1e-9 and limit < 0.5 * T and shorter < 0.7,
        "with T_s = 140 ms of 160 ms V1's radius is sqrt(R/T) up to R = 20 ms, as (4) asks; "
        "beyond, r mixes the old rate with the new one, and V1 is unstable from R = "
        f"{1e3 * limit:.1f} ms, where with T_s = T - R its radius is {shorter:.2f}",
        values={"limit": limit, "with (4)": shorter},
    )


@claim("(9)", "not in it")
def hold_form() -> Outcome:
    """The loop may be judged by the frequency response of a zero-order hold, as is usual."""
    cross = float(brentq(lambda v: 2 * np.sin(v / 2) - v**2, 0.5, 1.5))
    found, exact = (np.pi / 2 - cross / 2) / cross, _critical(1)
    error, bound = float(ecf.hold_error(cross, 1)), cross**2 / 12
    return differs_if(
        abs(found / exact - 1) > 1e-3,
        f"(1 - e^(-sT)) e^(-sR)/(sT)^2 puts V1's critical R at {found:.3f} T, the exact "
        f"multipliers at {exact:.3f} T",
        f"The form leaves out the aliases; at the crossover omega T = {cross:.3f} it is "
        f"{100 * error:.1f} % too small, within its bound (omega T)^2/12 = {100 * bound:.1f} %, "
        "and so finds too long a round trip still stable.",
        {"form": found, "exact": exact, "error": error, "bound": bound},
    )


@claim("Section 2.3", "stalls")
def continuum() -> Outcome:
    """Fairness stalls when the rate matches capacity and buffer."""
    # Without the stall rule and with constant rates: shares of 15, 9 and 6 Mbit/s stay.
    net = fig5(ECF, PAQMECF(forced=1), 3, 0.06)
    for i, rate in enumerate((15e6, 9e6, 6e6)):
        net = net.with_flow(f"s{i + 1}", initial={"r1": rate})
    r = simulate(net, 30, samples=301)
    x, wait = r.rate.values[-1], r.queueing_delay.values[-1, 0]
    return reproduced_if(
        abs(x.sum() / C - 1) < 1e-3 and np.ptp(x) > 6e6 and abs(wait - 0.028) < 1e-4,
        f"without excitation {x[0] / 1e6:.1f}, {x[1] / 1e6:.1f}, {x[2] / 1e6:.1f} Mbit/s rest at a "
        f"queue of {1e3 * wait:.1f} ms: only the sum is determined",
        values={"delay": wait, "spread": np.ptp(x)},
    )


@claim("Section 2.3", "max-min")
def rtt_fairness() -> Outcome:
    """Round-trip times have no influence on the fairness in the long term, only on the speed in
    which it is obtained."""
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
    return compared(
        [("1.00", v) for x in share.values() for v in x],
        f"sources at {ms(FAR)} ms from the router and back: {text}",
        "The speed is that of T_ECF, which the longest round trip sets for all. The precision is "
        "that of Fig. 8's shares.",
        {f"share {i + 1}, {name}": v for name, x in share.items() for i, v in enumerate(x)},
    )


@claim("Section 2.3", "max-min")
def max_min() -> Outcome:
    """One rate for each node, the lowest wins: max-min fairness."""
    x = two_nodes().rate.values.mean(0)
    worst = off(x, np.array([4e6, 4e6, 4e6, 26e6]))
    return reproduced_if(
        worst < 0.01,
        f"over nodes of 30 and 12 Mbit/s: {', '.join(f'{v / 1e6:.2f}' for v in x)} Mbit/s; max-min "
        "has 4, 4, 4, 26",
        values={"worst": worst},
    )


@claim("Section 4", "larger jitter")
def red_margins() -> Outcome:
    """Over RED queue oscillations grow with the number of sources and the RTT."""
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
    return differs_if(
        falls or not agree,
        ". ".join(lines) + f" (RTT {ms(RTTS)} ms)",
        f"They do not grow all along {' and '.join(falls)}. Section 3.2 has the jitter grow with "
        "the RTT, Section 5 has it fall somewhat. Verdicts of the linearised loop and runs agree."
        if agree
        else "Verdict and run disagree somewhere.",
        values,
    )


@claim("Section 4", "steady")
def ecf_margins() -> Outcome:
    """ECF is steady where DCCP over RED oscillates, at every number of sources and RTT."""
    # The sampled loop of Fig. 5: it does not depend on the number of sources.
    found = {(v, r): ecf_margin(v, r) for v in ("V1", "V2") for r in RTTS}
    alike = max(abs(ecf_margin("V1", 0.06, n)[0] / found["V1", 0.06][0] - 1) for n in COUNTS)
    stable = max(radius for radius, _ in found.values()) < 1
    text = "; ".join(
        f"{v}: {', '.join(f'{found[v, r][0]:.2f}' for r in RTTS)}, "
        f"{ms(found[v, r][1] for r in RTTS)} ms of round trip left"
        for v in ("V1", "V2")
    )
    return reproduced_if(
        stable and alike < 1e-9,
        f"for any number of sources an error keeps in a period, at RTTs of 60, 100, 240 ms, {text}",
        values={f"radius {v}, {r:g}": radius for (v, r), (radius, _) in found.items()}
        | {f"left {v}, {r:g}": left for (v, r), (_, left) in found.items()},
    )
