"""Section 2 of the ECF paper: equations (1) to (12), of which the formulas are lost and the prose is kept."""

from __future__ import annotations

import numpy as np
from sympy import Eq, Expr, Rational, Symbol, eye, lambdify, simplify, solve

from fluidcc.formulas import ecf
from fluidcc.links import PAQM, PAQMECF, PAQMDrop
from fluidcc.links.ecf import T_ECF, V1, V2, R, aim, factor, measured, q, rise
from fluidcc.network import Network
from fluidcc.network.topologies import two_queues
from fluidcc.papers.ecf.common import PACKET, C, inner_map, periods, starting
from fluidcc.papers.model import DIFFERS, NOT_GIVEN, OUT_OF_REACH, REPRODUCED, Outcome, claim, from_proofs, proof
from fluidcc.papers.printed import bound, compared
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, ECF
from fluidcc.symbols import c, crossing, unfold

_K, _A, _dT, _q0 = PAQM.params
_z = Symbol("z")


def _overload(rate: float) -> np.ndarray:
    """Share let in, filtered rate and queue [s] at the ends of 100 periods, at a constant rate [bit/s]."""
    net = Network().link("l", PAQMDrop, capacity=1e6, delay=0.01).flow("f", CBR(rate=rate), route=["l"], start=0)
    r = simulate(net, 2.01, t_eval=0.02 * np.arange(1, 101) + 1e-6)
    return np.array([r.PAQMDrop_u.values[:, 0], r.PAQMDrop_r.values[:, 0], r.queueing_delay.values[:, 0]])


def _share(rate: Expr) -> Expr:
    """The share that P-AQM's own tick lets through, before it is truncated, when `rate` has been coming for long."""
    (tick,) = PAQM.ticks
    _, u, r, came = PAQM.states
    return unfold(tick.update[u]).subs({came: rate * _dT, r: rate}).simplify()


@claim("ecf", "(1)", "Once the filter has settled, the signal lets c through at the set point, takes the part K of the "
       "queue's error in a period where r > c, and marks nothing where r <= c.", "formula lost")  # fmt: skip
def control() -> Outcome:
    more = Symbol("s", positive=True)
    over, under = c * (1 + more), c / (1 + more)
    queue, share = PAQM.states[0], _share(over)
    new = queue + _dT * (share * over / c - 1)
    return from_proofs(
        proof(Eq((share * over).subs(queue, _q0), c)),
        proof(Eq(new - _q0, (1 - _K) * (queue - _q0))),
        *(proof(Eq(_share(rate), 1)) for rate in (under, c)),
        computed="u = c/r + K (q0 - q)/(dT r) if r > c, else c/r: while u lies within [0, 1] an error of the queue "
        "keeps exactly the part 1 - K a period, whatever dT, the capacity and the overload",
        reason="The formula is not legible. This is the form that the prose describes.",
    )  # fmt: skip


@claim("ecf", "(1), (3)", "Near the set point an error of the queue falls by K in a period, and one of the filtered "
       "rate by a.", "not in it")  # fmt: skip
def inner_eigenvalues() -> Outcome:
    return from_proofs(
        proof(Eq(inner_map(False).charpoly(_z).as_expr(), (_z - 1 + _K) * (_z - 1 + _A))),
        computed="the linearised loop of queue and filter has the multipliers 1 - K and 1 - a",
    )


@claim("ecf", "(2)", "The value is truncated to lie between zero and one; below capacity it is one.", "[0, 1]")
def truncated() -> Outcome:
    shares = {rate: _overload(rate)[0] for rate in (0.5e6, 1.5e6, 30e6)}
    good = all(np.all((u >= 0) & (u <= 1)) for u in shares.values()) and np.all(shares[0.5e6] == 1)
    return Outcome(
        REPRODUCED if good else DIFFERS, "u stays within [0, 1] from half to thirty times the capacity, 1 below it",
        "" if good else "u leaves the interval", {f"least at {k:g}": u.min() for k, u in shares.items()},
    )  # fmt: skip


@claim("ecf", "(3)", "The input rate is estimated by a one-tap recursive filter.", "formula lost")
def filtered() -> Outcome:
    r = _overload(1.5e6)[1]
    a = PAQM.parameter("a")
    wanted = 1.5e6 * (1 - (1 - a) ** np.arange(1, 101))
    worst = float(np.max(np.abs(r / wanted - 1)))
    return Outcome(
        REPRODUCED if worst < 1e-9 else DIFFERS,
        f"r <- (1 - a) r + a bytes/dT, as a geometric series within {bound(worst)}; its multiplier "
        "in the loop is 1 - a",
        "" if worst < 1e-9 else "another filter", {"worst": worst},
    )  # fmt: skip


@claim("ecf", "Section 2.2", "K should be in the region 0.2 to 0.5.", "0.2-0.5")
def gains() -> Outcome:
    late = inner_map(True)
    poly = simplify((_z * eye(3) - late).det() / (_z - (1 - _A)))
    (critical,) = solve(poly.as_poly(_z).discriminant(), _K)
    ends = [float(ecf.inner_radius_late(k)) for k in (0.2, 0.5)]
    inside = float(np.max(ecf.inner_radius_late(np.linspace(0.2, 0.5, 301))))
    outside = min(float(ecf.inner_radius_late(k)) for k in (0.15, 0.19, 0.55, 0.6))
    good = proof(Eq(poly, _z**2 - _z + _K)) and critical == Rational(1, 4) and inside < outside
    return Outcome(
        REPRODUCED if good else DIFFERS,
        "with one period of computing delay z^2 - z + K: double root at K = 1/4, stable for K < 1; from 0.2 to 0.5 "
        f"an error keeps at most {inside:.2f} a period, {ends[0]:.2f} and {ends[1]:.2f} at the ends; without delay 1 "
        "- K, 0.8 to 0.5, no overshoot",
        "" if good else "the range is another",
        {"critical": float(critical), "inside": inside, "outside": outside},
    )


@claim("ecf", "Section 2.2", "dT should be 50 to 100 packets' service time.", "50-100")
def granularity() -> Outcome:
    times = [float(ecf.set_point(n, PACKET, C)) for n in (50, 100)]
    return Outcome(
        OUT_OF_REACH,
        f"{times[0] * 1e3:.0f} to {times[1] * 1e3:.0f} ms at 30 Mbit/s; the eigenvalues do not depend on dT",
        "The loop of the fluid settles in a number of periods, whatever their length. What bounds dT from below is "
        "that packets are counted: n of them, at random, have a relative deviation of 1/sqrt(n), 14 to 10 % here.",
        {"least": times[0], "largest": times[1]},
    )


@claim(
    "ecf",
    "(4)",
    "Reports are T_ECF = RTT_max + T_s apart, a multiple of dT; 160 and 520 ms in the runs.",
    "160 ms, 520 ms",
)
def report_period() -> Outcome:
    found = [periods(rtt)[1] for rtt in (0.06, 0.24)]
    return Outcome(
        NOT_GIVEN,
        f"{1e3 * found[0]:.0f} and {1e3 * found[1]:.0f} ms, as 2 RTT + 120 ms",
        "T_s is not printed. With 20 and 200 ms between sources and router (the second is RTT = 240 ms less 40 ms "
        "beyond the router, the first taken from the shortest test of Section 3.2) both values are twice the RTT "
        "and 120 ms; then T_s = RTT + 120 ms.",
        {"short": found[0], "long": found[1]},
    )


@claim("ecf", "(5)", "The new aggregate rate is the bytes of the last T_s over T_s.", "formula lost")
def measured_rate() -> Outcome:
    """The first report of three sources of 11 Mbit/s: MD = r'/r with the rate that (5) must find, and the queue."""
    net = Network().link("l", PAQMECF(q_0=2.0), capacity=C, delay=0.02)
    for i in range(3):
        net.flow(f"s{i}", ECF(r_max=11e6), route=["l"], access_delay=0.01, packet=PACKET)
    r = simulate(net, 0.2, t_eval=[0.1599999, 0.165])
    told, wait = float(r.PAQMECF_MD.values[1, 0]), float(r.queueing_delay.values[0, 0])
    wanted = float(V1.subs({aim: 0.028, q: wait, T_ECF: 0.16, c: C})) / 33e6
    return Outcome(
        REPRODUCED if abs(told / wanted - 1) < 1e-6 else DIFFERS,
        f"33 Mbit/s is measured as such: MD = {told:.6f}, r'/r = {wanted:.6f}",
        "" if abs(told / wanted - 1) < 1e-6 else "another rate is measured", {"told": told, "wanted": wanted},
    )  # fmt: skip


_READINGS = (
    "The formulas are not legible, and the prose speaks both of one change over T_ECF and of a "
    "mean round trip: both readings are kept, as V1 and V2. What sources then do is another "
    "matter: (11) asks for half of an increase."
)


@claim("ecf", "(6), (8), (9)", "The wanted rate brings the queue to q0' in one period, if it comes for all of it.",
       "formulas lost")  # fmt: skip
def wanted_rate() -> Outcome:
    return from_proofs(
        proof(Eq(unfold(q + (V1 - c) * T_ECF / c), aim)),
        computed="V1: r' = c + (q0' - q)/T_ECF",
        reason=_READINGS,
    )


@claim("ecf", "(6), (8), (9)", "With the mean round trip R allowed for, the wanted rate brings the queue to q0' in one "
       "period, if the old rate comes for R and then the wanted one.", "formulas lost")  # fmt: skip
def wanted_rate_late() -> Outcome:
    old = q + ((measured - c) * R + (V2 - c) * (T_ECF - R)) / c
    return from_proofs(
        proof(Eq(unfold(old), aim)),
        computed="V2: r' = c + (q0' - q - (r - c) R)/(T_ECF - R)",
        reason=_READINGS,
    )


@claim("ecf", "(9)", "The terms in the numerator converge to zero, and r' towards c_udp.", "r' = c_udp")
def converges() -> Outcome:
    at = {q: aim}
    return from_proofs(
        proof(Eq(V1.subs(at), c)), proof(Eq(unfold(V2).subs(at).subs(measured.definition, c), c)),
        computed="with q = q0' (and r = c) both forms give r' = c",
    )  # fmt: skip


@claim("ecf", "(7)", "c_udp is c scaled by the number of UDP flows relative to all flows.", "c N_udp/(N_udp + N_tcp)")
def scheduler() -> Outcome:
    udp = [CBR, {"law": CBR, "start": 4.0, "stop": 8.0}]
    net = two_queues(udp, [CBR, CBR], {"capacity": C}, {})
    found = [net.links["udp"].capacity, *(rate for _, rate in net.links["udp"].schedule)]
    good = np.allclose(found, [C / 3, C / 2, C / 3])
    return Outcome(
        REPRODUCED if good else DIFFERS, "1 of 3, then 2 of 4, then 1 of 3 flows: 10, 15, 10 of 30 Mbit/s",
        "" if good else "other shares", {f"share {i}": v for i, v in enumerate(found)},
    )  # fmt: skip


def _told() -> tuple[float, float]:
    """Worst error of MD and of AI in the law's own tick, over random states, against (10) and (11)."""
    update = PAQMECF.ticks[-1].update
    want = unfold(V1)
    symbols = sorted(set().union(*(unfold(update[k]).free_symbols for k in (factor, rise)), want.free_symbols), key=str)
    tell = lambdify(symbols, [unfold(update[factor]), unfold(update[rise]), want, unfold(measured)], "numpy")
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


@claim("ecf", "(10), (11)", "MD = r'/r; AI is 50 % of r' - r, divided equally among the sources.", "formulas lost")
def decrease_and_increase() -> Outcome:
    md, ai = _told()
    good = max(md, ai) < 1e-9
    return Outcome(
        REPRODUCED if good else DIFFERS, "MD = r'/r if r' < r, else AI = (r' - r)/(2 N), at 200 random states",
        "" if good else "the law's tick says otherwise", {"MD": md, "AI": ai},
    )  # fmt: skip


@claim("ecf", "(11)", "AI is limited before it is signalled.", "limit lost")
def increase_limit() -> Outcome:
    return Outcome(
        NOT_GIVEN, "no limit but r_max of (12)",
        "The limit is not legible. It tells the two uses of one field apart (a factor below 1, or a rate in "
        "bytes/s), which here are two signals.",
    )  # fmt: skip


@claim("ecf", "(12)", "A source multiplies its rate by MD or adds AI, up to its original rate.", "formula lost")
def source() -> Outcome:
    r = starting("CBR").rate
    alone = float(r.sel(time=9.9, method="nearest")[0])
    return compared(
        [("20", alone / 1e6)],
        f"alone on 30 Mbit/s a source of 20 Mbit/s sends {alone / 1e6:g} Mbit/s",
        values={"alone": alone},
    )


@claim("ecf", "Section 2.3", "Five MDs above 0.96 in a row force a decrease.", "forced value lost", erratum=True)
def stall() -> Outcome:
    net = Network().link("l", PAQMECF, capacity=C, delay=0.02, initial={"q": 0.028})
    for i in range(3):
        net.flow(f"s{i}", ECF(r_max=10e6), route=["l"], access_delay=0.01, packet=PACKET)
    r = simulate(net, 1.2, samples=1201)
    told = r.PAQMECF_MD.values[:, 0]
    first = float(r.time.values[np.argmax(told < 0.96)])
    return Outcome(
        NOT_GIVEN, f"at rest the sixth value, {told.min():g}, is signalled at {first:.2f} s, after five periods of "
        "160 ms",
        "The value is lost: 0.95 is taken, which keeps the jitter in the printed 2 to 5 ms. Read literally, 'MDs "
        "above 0.96' would also strike a link that its sources do not fill, where r'/r is far above 1; so 'five in "
        "a row within (0.96, 1/0.96)' is taken, which is where nothing would change any more.",
        {"first": first},
    )  # fmt: skip


@claim("ecf", "Section 2.3", "The queue of UDP drops, that of TCP marks.", "ECN for TCP")
def drops_and_marks() -> Outcome:
    link = {"delay": 0.02, "buffer": 400 * PACKET}
    net = two_queues(
        [CBR(rate=20e6)], [CBR(rate=18e6)], {**link, "law": PAQMDrop, "capacity": C}, {**link, "law": PAQM}
    )
    r = simulate(net, 1.0, samples=201)
    lost, heard = r.lost.values[-1], r.loss.values[-1]
    good = lost[0] > 0 and lost[1] == 0 and heard[1] > 0.1
    return Outcome(
        REPRODUCED if good else DIFFERS,
        f"under overload the UDP queue loses {100 * lost[0] / r.entered.values[-1, 0]:.0f} %, the TCP queue none, "
        "and marks",
        "" if good else "it is otherwise", {"lost": lost[0], "marked": heard[1]},
    )  # fmt: skip
