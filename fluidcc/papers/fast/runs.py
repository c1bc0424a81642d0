"""Sections IV and V of the paper on FAST, by simulation and linearisation."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sympy import Eq

from fluidcc.analysis.boundary import Boundary, stability_boundary
from fluidcc.analysis.stability import stability
from fluidcc.formulas import fast
from fluidcc.laws import Source
from fluidcc.metrics import over_others
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.fast.common import (
    FLOWS,
    RTTS,
    arrivals,
    correction,
    plateaus,
    ratio,
    ratios,
)
from fluidcc.papers.model import (
    Found,
    differs_if,
    needs_packets,
    not_given,
    proof,
    reproduced_if,
)
from fluidcc.papers.printed import falling, named, numbers, off, rising
from fluidcc.papers.zoo.fast import (
    ALPHA,
    GAP,
    KNOWN,
    LOT_END,
    LOT_START,
    LOT_WAIT,
    METHODS,
    PACKET,
    RTT,
    C,
    lot,
    meeting,
)
from fluidcc.simulation.restart import nudged
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import FAST, StaticFAST, StaticVegas, Vegas
from fluidcc.sources.propagation import with_estimator, with_pause
from fluidcc.sources.windows import w
from fluidcc.symbols import positive

_EXACT = 0.02  # at 200 ms windows are not quite at rest when the probe begins
_FEW = 0.02  # the runs keep an eddy of the ack clock: means are good to a percent or two


def exact_iff() -> Found:
    cases = {
        "four at 100 ms": [correction(r) for r in (0.5, 1.0, 1.5, 2.0)],
        "one of four at 40 ms": [correction(r, (0.04, 0.1, 0.1, 0.1)) for r in (0.4, 1.5)],
        "four at 40 ms": [correction(r, (0.04,) * 4) for r in (0.5, 1.0)],
        "newcomer at 40 ms": [correction(r, rtt=0.04) for r in (1.0, 1.8)],
    }
    exact = [(abs(c - 1) < _EXACT, t <= 1 + 1e-3) for found in cases.values() for c, t, _ in found]
    return differs_if(
        all(found == wanted for found, wanted in exact) and not all(found for found, _ in exact),
        {f"{name}, {t:.2f}": c for name, found in cases.items() for c, t, _ in found},
        shown="; ".join(
            f"{name}: " + ", ".join(f"{c:.2f} at t_eps = {t:.2f} r" for c, t, _ in found)
            for name, found in cases.items()
        ),
    )


def static_windows() -> Found:
    rounds = np.array([0.5, 1.5, 2.0])
    found = {
        name: np.array([correction(float(r), others=law)[0] - 1 for r in rounds])
        for name, law in (("ack clock", FAST), ("x = w/r", StaticFAST))
    }
    more = (found["ack clock"] / found["x = w/r"])[1:]
    return reproduced_if(
        min(more) > 1 + _EXACT,
        *(named(f"{name}, {{:g}}", rounds, errors) for name, errors in found.items()),
        {"factor 1.5": more[0], "factor 2": more[1]},
        computed="error of the correction for t_eps = 0.5, 1.5 and 2 r*: "
        + "; ".join(f"{name} {numbers(v.round(2) + 0, 'percent.0f')}" for name, v in found.items()),
        more=more,
    )


def positive_theta() -> Found:
    rtt, n = 0.2, 2
    queue = fast.newcomer_backlog(n, ALPHA) + n * ALPHA
    x0 = fast.equilibrium_rates(n, C, ALPHA).newcomer
    t_eps = rtt + queue / C
    limit, values, flows, good = queue / (x0 * t_eps), {}, {}, True
    for theta in (-0.5, 0.1, 0.3, 0.5):
        found, _, least = correction(1.0, (rtt,) * n, rtt, theta=theta)
        empties = theta > limit
        # an emptied queue changes the round trip by all there was
        a = theta * t_eps / (queue / C) if empties else C / x0
        wanted = (a - 1) * C / x0 / n
        good &= (least == 0) == empties and off(found, wanted) < _EXACT
        values[f"theta = {theta:g}"] = found
        share = found * n * x0 / C + 1  # the correction is (a - 1) alpha/x0, and n^ is a (a - 1)
        flows[f"theta = {theta:g}"] = share * (share - 1)
        good &= empties == (share * (share - 1) > (1 + _EXACT) * n)
    return reproduced_if(good, values, limit=limit, flows=flows)


def small_buffer() -> Found:
    fast_probe, slow_probe = (_lost(theta, 500.0) for theta in (-0.5, -0.05))
    lost = {"theta = -0.5": fast_probe, "theta = -0.05": slow_probe}
    return reproduced_if(
        fast_probe > 0 and slow_probe < 1e-6,
        lost,
        computed="four flows at 100 ms and a buffer of 500 packets: "
        + ", ".join(f"{k}: {v:.0f} lost" for k, v in lost.items()),
    )


def _lost(theta: float, buffer: float) -> float:
    """Packets lost from 5 s before the probe on."""
    net = meeting(with_estimator(FAST)(wait=40, theta=theta), [RTT] * 4, RTT, buffer=buffer)
    lost = simulate(net, 58.0, t_eval=[50.0, 58.0], rtol=1e-6).lost.values.sum(axis=1)
    return float(lost[1] - lost[0]) / PACKET


def simultaneous() -> Found:
    a, m, n = positive("a m n")  # a = C/x0 with m newcomers: m/a + n/(a + n) = 1
    others = a * (a - m) / m
    filled = proof(Eq((m / a + n / (a + n)).subs(n, others), 1), a > m)
    together = proof(Eq(a * (a / m - 1), others))  # m probes at once make dr m-fold: share a/m
    alone = proof(a * (a - 1) > others, m > 1, a > m)
    at_once, one = (correction(0.5, newcomers=2, apart=s)[0] for s in (0.0, 10.0))
    return differs_if(
        filled and together and alone and max(abs(at_once - 1), abs(one - 1)) >= _EXACT,
        together=at_once,
        apart=one,
    )


def longer_pause() -> Found:
    found, ends = {}, []
    for length in (0.3, 0.5, 0.9):
        net = meeting(with_pause(FAST)(wait=40, pause=length), [0.06] * 8, 0.06)
        run = simulate(net, 90.0, t_eval=np.arange(80, 90, 0.02), rtol=1e-6)
        found[f"pause of {length:g} s"] = float(over_others(run.rate.mean("time"), -1))
        ends.append(over_others(run.rate, -1))
    return reproduced_if(
        min(found.values()) > 1 + _FEW, found, found=found, least=np.min(ends), most=np.max(ends)
    )


# --- Figs. 2 and 3(a), (b): arrivals, round trips and numbers of flows ----------------------------


def plateaus_of_fast() -> Found:
    found, wanted = plateaus("FAST").rate, fast.arrival_recursion(5, C, ALPHA).rate
    worst = off(found[wanted > 0], wanted[wanted > 0])
    late = found[-1]
    return reproduced_if(
        worst < _FEW and all(rising(found[j, : j + 1]) for j in range(5)),
        named("flow{}", range(1, 6), late),
        worst=worst,
        rates=late * PACKET / 1e6,
    )


def plateaus_of_estimator() -> Found:
    rate = plateaus("estimator").rate
    worst = max(off(rate[j, : j + 1] * (j + 1), C) for j in range(5))
    return reproduced_if(worst < _FEW, worst=worst)


def unfair_until_the_probe() -> Found:
    late = arrivals("estimator").rate.sel(time=slice(88.0, 89.9))
    share = float(over_others(late.mean("time"), -1))
    return differs_if(abs(share - 1) > _FEW, share=share, unfair=fast.unfairness(4))


def queues() -> Found:
    low, high, all_low, all_high = (
        plateaus(method, last).backlog for last in (3.0, GAP) for method in ("estimator", "FAST")
    )
    target = ALPHA * np.arange(1, 6)
    settled = np.all(high[1:] > target[1:]) and np.all(low < (1 + 1e-3) * target)
    return differs_if(
        settled and np.all(target[1:] < all_low[1:]) and np.all(all_low[1:] < all_high[1:]),
        otherwise="refuted",
        all_low=all_low,
        all_high=all_high,
        high=high,
        low=low,
        target=target,
    )


def throughput() -> Found:
    one, plain = plateaus("estimator"), plateaus("FAST")
    used = {name: p.rate.sum(axis=1) / C for name, p in (("estimator", one), ("fast", plain))}
    return reproduced_if(
        off(used["estimator"], used["fast"]) < _FEW
        and np.all(one.backlog < (1 + 1e-3) * plain.backlog),
        used,
    )


def _curve(method: str, over: str) -> tuple[np.ndarray, dict[str, Any]]:
    """A curve of Fig. 3, and what the words of its row need of it."""
    found = ratios(method, over)
    label, across = ("d = {:g}", RTTS) if over == "rtt" else ("n = {:g}", FLOWS)
    values = named(label, across, found)
    return found, {**values, "found": found, "rtts": 1e3 * np.array(RTTS), "flows": FLOWS}


def fast_over_rtt() -> Found:
    found, values = _curve("FAST", "rtt")
    wanted = fast.unfairness(8)
    return reproduced_if(off(found, wanted) < _FEW, values, wanted=wanted)


def reduction_over_rtt() -> Found:
    found, values = _curve("rate reduction", "rtt")
    below = np.array(RTTS) < fast.rate_reduction_threshold(8, C, ALPHA)
    unfair, fair = found[below], found[~below]
    return reproduced_if(falling(unfair) and min(unfair) > 1 + _FEW > max(fair), values)


def estimator_over_rtt() -> Found:
    found, values = _curve("estimator", "rtt")
    return reproduced_if(off(found, 1) < _FEW, values)


def fast_over_n() -> Found:
    found, values = _curve("FAST", "n")
    wanted = fast.unfairness(np.array(FLOWS))
    return reproduced_if(rising(found) and off(found, wanted) < _FEW, values, wanted=wanted)


def reduction_over_n() -> Found:
    found, values = _curve("rate reduction", "n")
    needed = fast.rate_reduction_threshold(np.array(FLOWS), C, ALPHA)
    as_it_must = off(found[needed < 0.1], 1) < _FEW and rising(found[needed >= 0.1])
    return differs_if(as_it_must and not np.all(np.diff(found) > _FEW), values, needed=1e3 * needed)


def estimator_over_n() -> Found:
    found, values = _curve("estimator", "n")
    plain, paused = (ratios(method, "n")[-1] for method in ("FAST", "rate reduction"))
    return reproduced_if(
        off(found, 1) < _FEW < min(plain, paused) - 1,
        values,
        plain=plain,
        paused=paused,
        last=FLOWS[-1],
    )


def packets() -> Found:
    plain, probed = off(ratio("FAST", 8, 0.1), fast.unfairness(8)), ratio("estimator", 8, 0.1) - 1
    return needs_packets(spread=max(plain, abs(probed)))


# --- Figs. 1(b) and 3(c): two bottlenecks and bursts beside them ----------------------------------

PEAKS = (5e6, 20e6, 50e6)  # Peak rates of the background [bit/s]; the paper's range

# Of the background, whose bursts and silences have no variance: with 1 it is silent for most of the
# run
SEEDS = (1, 2, 3, 4, 5)


class _Seen(NamedTuple):
    """What a run tells of the newcomer."""

    ratio: float  # its mean rate over the others', 10 s and more after it paused or probed [1]
    before: float  # its rate before it pauses or probes [bit/s]


@cache
def _seen(method: str, peak: float, seed: int) -> _Seen:
    net, act = lot(method, peak), LOT_START + LOT_WAIT
    times = np.concatenate([np.arange(act - 2, act, 0.02), np.arange(LOT_END - 10, LOT_END, 0.02)])
    run = simulate(net, LOT_END, t_eval=times, seed=seed, rtol=1e-6)
    own, mean = run.sel(flow="S1"), run.rate.sel(time=slice(LOT_END - 10, None)).mean("time")
    return _Seen(
        float(over_others(mean.sel(flow=["S1", "S2", "S3", "S4", "S5"]), "S1")),
        float(own.rate.sel(time=slice(None, act)).mean()),
    )


def _over_seeds(method: str, part: str) -> np.ndarray:
    """(peaks, seeds)"""
    return np.array([[getattr(_seen(method, p, s), part) for s in SEEDS] for p in PEAKS])


def shares(method: str) -> np.ndarray:
    """(peaks, seeds): the newcomer's rate over its rate if it knows its delay, same background."""
    return _over_seeds(method, "ratio") / _over_seeds(KNOWN, "ratio")


def _quiet_share(method: str) -> float:
    """The same without background."""
    return _seen(method, 0.0, 1).ratio / _seen(KNOWN, 0.0, 1).ratio


def _needed(net: Network) -> float:
    """The longer of the propagation delays that (7) asks for with each link's others [s]."""
    return max(
        fast.rate_reduction_threshold(
            sum(name in f.route for f in net.flows.values()) - 1,
            link.capacity / PACKET,
            FAST.parameter("alpha"),
        )
        for name, link in net.links.items()
    )


def _improves(found: np.ndarray) -> bool:
    """Whether shares are nearer to 1 the more background there is."""
    return falling(np.abs(found.mean(axis=1) - 1))


def _shown(found: np.ndarray, digits: int = 2) -> str:
    return ", ".join(
        f"{row.mean():.{digits}f} ({min(row):.{digits}f} to {max(row):.{digits}f}) at "
        f"{p / 1e6:g} Mbit/s"
        for p, row in zip(PEAKS, found, strict=True)
    )


def _values(found: np.ndarray) -> dict[str, float]:
    peaks = np.array(PEAKS) / 1e6
    return named("mean at {:g} Mbit/s", peaks, found.mean(axis=1)) | named(
        "spread at {:g} Mbit/s", peaks, found.std(axis=1)
    )


_SEEDED = (
    f"Means of {len(SEEDS)} seeds, the smallest and largest beside them; 1 is what the newcomer "
    "has if it knows its delay."
)


def parking_lot() -> Found:
    return not_given(alone=_quiet_share("FAST"))


def bursts_help() -> Found:
    plain, paused = shares("FAST"), shares("rate reduction")
    quiet = lot("FAST", 0.0)
    return reproduced_if(
        _improves(plain) and _improves(paused),
        _values(plain),
        named("paused, {}", _values(paused)),
        needed=_needed(quiet),
        trip=quiet.base_rtt("S1"),
        quiet=_quiet_share("rate reduction"),
        computed=f"FAST: {_shown(plain)}; rate reduction: {_shown(paused)}. {_SEEDED}",
    )


def estimator_in_bursts() -> Found:
    found = shares("estimator")
    worst = off(found, 1)
    return differs_if(
        worst > _FEW,
        _values(found),
        worst=worst,
        alone=abs(_quiet_share("estimator") - 1),
        probe=-METHODS["estimator"].parameter("theta") * _over_seeds("FAST", "before").mean(),
        computed=f"{_shown(found, 1)}. {_SEEDED}",
        least=PEAKS[0],
        first=off(found[0], 1),
    )


# --- whether rates stabilize ----------------------------------------------------------------------

# Round-trip propagation delays at which the boundaries are computed [s]
ALONE_RTTS = (0.02, 0.04, 0.1, 0.2)
TAU = FAST.parameter("tau")


def alone(law: Source, rtt: float, flows: int = 1) -> Network:
    """Flows that know their delay, on a link of their own."""
    link = {"capacity": C * PACKET, "delay": rtt / 2}
    return dumbbell({f"f{i}": {"law": law, "packet": PACKET} for i in range(flows)}, link)


@cache
def edge(law: Source, rtt: float, flows: int = 1) -> float:
    """gamma r/tau at which a law becomes unstable, r being the propagation delay."""
    found = stability_boundary(alone(law, rtt, flows), "gamma")
    assert isinstance(found, Boundary)
    return float(found.value * rtt / TAU)


@cache
def growth(law: Source, rtt: float) -> tuple[float, float]:
    """Growth of a small disturbance of the window [1/s]: simulated, and the rightmost root's."""
    root = complex(stability(alone(law, rtt)).rightmost_roots[0])
    gentle = law(gamma=0.3 * TAU / rtt)  # comes to rest, at the same point
    exact: Any = {"rtol": 1e-10, "atol": 1e-13}
    settled = simulate(_from_empty(gentle, rtt), 40.0, samples=2, **exact)
    window = float(settled[f"{law.name}_w"].values[-1, 0])
    begun = nudged(settled, {("flow", "f0"): {law.states.index(w): 1e-4 * window}})
    period = 2 * np.pi / abs(root.imag)
    times = np.linspace(40 + 4 * period, 40 + 14 * period, 2001)
    run = simulate(_from_empty(law, rtt), float(times[-1]), t_eval=times, restart=begun, **exact)
    return _fitted(times, run.queueing_delay.values[:, 0], root), root.real


def _from_empty(law: Source, rtt: float) -> Network:
    return alone(law, rtt).with_flow("f0", start=0.0, initial={"w": C * rtt})


def _fitted(t: np.ndarray, q: np.ndarray, root: complex) -> float:
    """Exponent s next to `root` whose e^{st}, beside a constant, fits a signal best."""
    from scipy.optimize import least_squares

    def left(s: np.ndarray) -> np.ndarray:
        wave = np.exp((s[0] + 1j * s[1]) * (t - t[0]))
        basis = np.column_stack([wave.real, wave.imag, np.ones_like(t)])
        return np.asarray((q - basis @ np.linalg.lstsq(basis, q, rcond=None)[0]) / np.ptp(q))

    return float(least_squares(left, [root.real, abs(root.imag)], xtol=1e-14, ftol=1e-14).x[0])


def stabilizes() -> Found:
    static, ack = (np.array([edge(law, r) for r in ALONE_RTTS]) for law in (StaticFAST, FAST))
    return not_given(
        named("static, r = {:g}", ALONE_RTTS, static),
        named("ack, r = {:g}", ALONE_RTTS, ack),
        {"three flows": edge(FAST, 0.1, 3)},
        static=static,
        ack=ack,
    )


def stability_needs_the_clock() -> Found:
    rtt, laws = 0.1, {"x = w/r": StaticFAST, "the ack clock": FAST}
    between = sum(edge(law, rtt) for law in laws.values()) / 2
    verdicts = {
        law.name: stability(alone(law(gamma=between * TAU / rtt), rtt)).verdict
        for law in laws.values()
    }
    values: dict[str, float] = {}
    shown = []
    for name, law in laws.items():
        found: dict[str, float] = {}
        for side in (0.95, 1.05):
            grows, root = growth(law(gamma=side * edge(law, rtt) * TAU / rtt), rtt)
            found |= {f"{side:g}": grows, f"{side:g}, root": root}
        values |= named(f"{law.name}, {{}}", found)
        shown.append(
            f"{name} {found['0.95']:.4f} and {found['1.05']:.4f} 1/s "
            f"(roots {found['0.95, root']:.4f} and {found['1.05, root']:.4f})"
        )
    agree = all(
        off(grows, values[f"{name}, root"]) < _EXACT
        for name, grows in values.items()
        if not name.endswith("root")
    )
    return reproduced_if(
        agree and verdicts["StaticFAST"] != verdicts["FAST"],
        values,
        between=between,
        shown="; ".join(shown),
        verdicts=verdicts,
        vegas=[stability(alone(law, rtt)).decay_rate for law in (StaticVegas, Vegas)],
    )
