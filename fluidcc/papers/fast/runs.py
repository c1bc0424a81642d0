"""Sections IV and V of the paper on FAST, by simulation and linearisation."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sympy import Eq, symbols

from fluidcc.analysis.boundary import Boundary, stability_boundary
from fluidcc.analysis.report import StabilityReport
from fluidcc.analysis.stability import stability
from fluidcc.formulas import fast
from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.fast.common import (
    ALPHA,
    FLOWS,
    METHODS,
    PACKET,
    RTT,
    RTTS,
    C,
    arrivals,
    correction,
    meeting,
    plateaus,
    ratio,
    ratios,
)
from fluidcc.papers.model import Claim, Outcome, proof
from fluidcc.papers.printed import named, off
from fluidcc.simulation.restart import nudged
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import FAST, OnOff, StaticFAST, StaticVegas, Vegas
from fluidcc.sources._windows import w
from fluidcc.sources.propagation import with_estimator, with_pause

_EXACT = 0.02  # at 200 ms windows are not quite at rest when the probe begins


def exact_iff(claim: Claim) -> Outcome:
    cases = {
        "four at 100 ms": [correction(r) for r in (0.5, 1.0, 1.5, 2.0)],
        "one of four at 40 ms": [correction(r, (0.04, 0.1, 0.1, 0.1)) for r in (0.4, 1.5)],
        "four at 40 ms": [correction(r, (0.04,) * 4) for r in (0.5, 1.0)],
        "newcomer at 40 ms": [correction(r, rtt=0.04) for r in (1.0, 1.8)],
    }
    exact = [(abs(c - 1) < _EXACT, t <= 1 + 1e-3) for found in cases.values() for c, t, _ in found]
    shown = "; ".join(
        f"{name}: " + ", ".join(f"{c:.2f} at t_eps = {t:.2f} r" for c, t, _ in found)
        for name, found in cases.items()
    )
    values = {f"{name}, {t:.2f}": c for name, found in cases.items() for c, t, _ in found}
    return claim.differs_if(
        all(found == wanted for found, wanted in exact) and not all(found for found, _ in exact),
        values,
        shown=shown,
    )


def static_windows(claim: Claim) -> Outcome:
    law = {"ack clock": FAST, "x = w/r": StaticFAST}
    found = {
        f"{name}, {r:g}": correction(r, others=v)[0] - 1
        for name, v in law.items()
        for r in (0.5, 1.5, 2.0)
    }
    more = [found[f"ack clock, {r:g}"] / found[f"x = w/r, {r:g}"] for r in (1.5, 2.0)]
    return claim.differs_if(
        max(abs(v - 1) for v in more) > _EXACT,
        found | {"factor 1.5": more[0], "factor 2": more[1]},
        computed="error of the correction for t_eps = 0.5, 1.5 and 2 r*: "
        + "; ".join(
            f"{n} " + ", ".join(f"{100 * found[f'{n}, {r:g}']:.0f} %" for r in (0.5, 1.5, 2.0))
            for n in law
        ),
        more=more,
    )


def positive_theta(claim: Claim) -> Outcome:
    rtt, n = 0.2, 2
    queue = float(fast.newcomer_backlog(n, ALPHA)) + n * ALPHA
    x0 = float(fast.equilibrium_rates(n, C, ALPHA).newcomer)
    t_eps = rtt + queue / C
    values, good = {"limit": queue / (x0 * t_eps)}, True
    for theta in (-0.5, 0.1, 0.3, 0.5):
        found, _, least = correction(1.0, (rtt,) * n, rtt, theta=theta)
        empties = theta > values["limit"]
        # an emptied queue changes the round trip by all there was
        a = theta * t_eps / (queue / C) if empties else C / x0
        wanted = (a - 1) * C / x0 / n
        good &= (least == 0) == empties and abs(found / wanted - 1) < _EXACT
        values[f"theta = {theta:g}"] = found
    shown = ", ".join(f"{v:.2f} at {k}" for k, v in values.items() if k != "limit")
    return claim.reproduced_if(good, values, shown=shown)


def small_buffer(claim: Claim) -> Outcome:
    lost = {f"theta = {theta:g}": _lost(theta, 500.0) for theta in (-0.5, -0.05)}
    return claim.reproduced_if(
        lost["theta = -0.5"] > 1 and lost["theta = -0.05"] < 1e-6,
        lost,
        computed="four flows at 100 ms and a buffer of 500 packets: "
        + ", ".join(f"{k}: {v:.0f} lost" for k, v in lost.items()),
    )


def _lost(theta: float, buffer: float) -> float:
    """Packets lost from 5 s before the probe on."""
    net = meeting(with_estimator(FAST)(wait=40, theta=theta), [RTT] * 4, RTT, buffer=buffer)
    r = simulate(net, 58.0, t_eval=[50.0, 58.0], rtol=1e-6)
    return float(r.lost.isel(time=-1).sum() - r.lost.isel(time=0).sum()) / PACKET


def simultaneous(claim: Claim) -> Outcome:
    a, m, n = symbols("a m n", positive=True)  # a = C/x0 with m newcomers: m/a + n/(a + n) = 1
    others = a * (a - m) / m
    filled = proof(Eq((m / a + n / (a + n)).subs(n, others), 1), where=[a > m])
    together = proof(Eq(a * (a / m - 1), others))  # m probes at once make dr m-fold: share a/m
    alone = proof(a * (a - 1) > others, where=[m > 1, a > m])
    at_once, one = correction(0.5, newcomers=2)[0], correction(0.5, newcomers=2, apart=10.0)[0]
    return claim.differs_if(
        filled and together and alone and max(abs(at_once - 1), abs(one - 1)) >= _EXACT,
        {"together": at_once, "apart": one},
    )


def longer_pause(claim: Claim) -> Outcome:
    found = {}
    for length in (0.3, 0.5, 0.9):
        law = with_pause(FAST)(wait=40, pause=length)
        r = simulate(
            meeting(law, [0.06] * 8, 0.06), 90.0, t_eval=[86.0, 87.0, 88.0, 89.0, 90.0], rtol=1e-6
        )
        mean = r.rate.mean("time").values
        found[f"pause {length:g} s"] = float(mean[-1] / mean[:-1].mean())
    return claim.reproduced_if(
        min(found.values()) > 1.5 and max(found.values()) / min(found.values()) < 1.1,
        found | {"ratio of Fig. 3(a)": ratio("rate reduction", 8, 0.06)},
        computed="eight flows at 60 ms: "
        + ", ".join(f"{v:.2f} times their rate after a {k}" for k, v in found.items()),
    )


# --- Figs. 2 and 3(a), (b): arrivals, round trips and numbers of flows ----------------------------

_FEW = 0.02  # the runs keep an eddy of the ack clock: rates are good to a percent or two


def plateaus_of_fast(claim: Claim) -> Outcome:
    found, wanted = plateaus("FAST"), fast.arrival_recursion(5, C, ALPHA)
    on = wanted.rate > 0
    worst = off(found.rate[on], wanted.rate[on])
    rising = all(np.all(np.diff(found.rate[j, : j + 1]) > 0) for j in range(5))
    return claim.reproduced_if(
        worst < _FEW and rising,
        {"worst": worst} | {f"flow{i + 1}": v for i, v in enumerate(found.rate[-1])},
        rates=found.rate[-1] * PACKET / 1e6,
    )


def plateaus_of_estimator(claim: Claim) -> Outcome:
    rate = plateaus("estimator").rate
    worst = max(off(rate[j, : j + 1] * (j + 1), C) for j in range(5))
    return claim.reproduced_if(worst < 0.05, {"worst": worst})


def unfair_until_the_probe(claim: Claim) -> Outcome:
    r = arrivals("estimator")
    before = r.rate.sel(time=slice(88.0, 89.9)).mean("time").values
    share = float(before[-1] / before[:-1].mean())
    return claim.differs_if(abs(share - 1) > _FEW, {"share": share}, unfair=fast.unfairness(4))


def queues(claim: Claim) -> Outcome:
    low, high = plateaus("estimator").backlog, plateaus("FAST").backlog
    target = ALPHA * np.arange(1, 6)
    return claim.reproduced_if(
        np.all(high[1:] > 1.2 * target[1:]) and off(low, target) < 0.03,
        {"FAST": high[-1], "estimator": low[-1]},
        high=high,
        low=low,
        target=target,
    )


def fast_over_rtt(claim: Claim) -> Outcome:
    found, wanted = ratios("FAST", "rtt"), float(fast.unfairness(8))
    return claim.reproduced_if(
        off(found, wanted) < _FEW, named("d = {:g}", RTTS, found), found=found, wanted=wanted
    )


def reduction_over_rtt(claim: Claim) -> Outcome:
    found = ratios("rate reduction", "rtt")
    below = np.array(RTTS) < fast.rate_reduction_threshold(8, C, ALPHA)
    falls = np.all(found[below] > 1.05) and np.all(np.diff(found[below]) < 0)
    return claim.reproduced_if(
        falls and off(found[~below], 1) < 0.03,
        named("d = {:g}", RTTS, found),
        found=found,
        rtts=1e3 * np.array(RTTS),
    )


def estimator_over_rtt(claim: Claim) -> Outcome:
    found = ratios("estimator", "rtt")
    return claim.reproduced_if(off(found, 1) < 0.05, named("d = {:g}", RTTS, found), found=found)


def fast_over_n(claim: Claim) -> Outcome:
    found, wanted = ratios("FAST", "n"), fast.unfairness(np.array(FLOWS))
    return claim.reproduced_if(
        off(found, wanted) < _FEW,
        named("n = {:g}", FLOWS, found),
        found=found,
        flows=FLOWS,
        wanted=wanted,
    )


def reduction_over_n(claim: Claim) -> Outcome:
    found = ratios("rate reduction", "n")
    needed = fast.rate_reduction_threshold(np.array(FLOWS), C, ALPHA)
    fair = found[needed < 0.1]
    as_it_must = off(fair, 1) < 0.03 and np.all(np.diff(found[needed >= 0.1]) > 0)
    return claim.differs_if(
        as_it_must and not np.all(np.diff(found) > _FEW),
        named("n = {:g}", FLOWS, found),
        found=found,
        flows=FLOWS,
        needed=1e3 * needed,
    )


def estimator_over_n(claim: Claim) -> Outcome:
    found = ratios("estimator", "n")
    return claim.reproduced_if(
        off(found, 1) < 0.05, named("n = {:g}", FLOWS, found), found=found, flows=FLOWS
    )


def packets(claim: Claim) -> Outcome:
    spread = max(
        abs(ratio(m, 8, 0.1) / v - 1) for m, v in (("FAST", fast.unfairness(8)), ("estimator", 1.0))
    )
    return claim.out_of_reach({"spread": spread})


# --- Figs. 1(b) and 3(c): two bottlenecks and bursts beside them ----------------------------------

PEAKS = (5e6, 20e6, 50e6)  # Peak rates of the background [bit/s]; the paper's range

# Of the background, whose bursts and silences have no variance: with 1 it is silent for most of the
# run
SEEDS = (1, 2, 3, 4, 5)

# the newcomer's start, its age when it pauses or probes, and the end [s]
_START, _WAIT, _END = (8.0, 10.0, 38.0)
_KNOWN = "knows"


def _lot(method: str, peak: float) -> Network:
    """Fig. 1(b): flows of S1 to S3 cross two bottlenecks, S4's and S5's the second; S1's is new.

    With `method` "knows" it is there from the beginning.
    """
    net = Network().link("first", DropTail, capacity=50e6, delay=0.01)
    net.link("second", DropTail, capacity=100e6, delay=0.01)
    given: Any = {"packet": PACKET, "initial": {"w": 60}}
    for k in (2, 3, 4, 5):
        route, access = (["first", "second"], 0.01) if k <= 3 else (["second"], 0.02)
        net.flow(f"S{k}", FAST, route=route, start=0, access_delay=access, **given)
    law = FAST if method in (_KNOWN, "FAST") else METHODS[method](wait=_WAIT)
    begin = 0.0 if method == _KNOWN else _START
    net.flow("S1", law, route=["first", "second"], start=begin, access_delay=0.01, **given)
    return net.flow("Sb", OnOff(peak=peak), route=["first", "second"], start=0) if peak else net


class _Seen(NamedTuple):
    """What a run tells of the newcomer."""

    ratio: float  # its mean rate over the others', 10 s and more after it paused or probed [1]
    taken: float  # of the queue, for propagation, in the end [s]
    before: float  # its rate before it pauses or probes [bit/s]


@cache
def _seen(method: str, peak: float, seed: int) -> _Seen:
    net, act = _lot(method, peak), _START + _WAIT
    times = np.concatenate([np.arange(act - 2, act, 0.02), np.arange(_END - 10, _END, 0.02)])
    run = simulate(net, _END, t_eval=times, seed=seed, rtol=1e-5)
    own, late = run.sel(flow="S1"), slice(_END - 10, None)
    mean = run.rate.sel(time=late).mean("time")
    known = own.rtt[-1] - own[f"{net.flows['S1'].law.name}_delta"][-1]
    return _Seen(
        float(mean.sel(flow="S1") / mean.sel(flow=["S2", "S3", "S4", "S5"]).mean()),
        float(known) - net.base_rtt("S1"),
        float(own.rate.sel(time=slice(None, act)).mean()),
    )


def _over_seeds(method: str, part: str) -> np.ndarray:
    """(peaks, seeds)"""
    return np.array([[getattr(_seen(method, p, s), part) for s in SEEDS] for p in PEAKS])


def shares(method: str) -> np.ndarray:
    """(peaks, seeds): the newcomer's rate over its rate if it knows its delay, same background."""
    return _over_seeds(method, "ratio") / _over_seeds(_KNOWN, "ratio")


def _needed(net: Network) -> float:
    """The longer of the propagation delays that (7) asks for with each link's others [s]."""
    others = {name: sum(name in f.route for f in net.flows.values()) - 1 for name in net.links}
    alpha = FAST.parameter("alpha")
    return max(
        fast.rate_reduction_threshold(n, net.links[k].capacity / PACKET, alpha)
        for k, n in others.items()
    )


def _improves(found: np.ndarray) -> bool:
    """Whether shares are unfair with little background, and nearer to 1 with each more."""
    away = np.abs(found.mean(axis=1) - 1)
    return bool(away[0] > 0.1 and np.all(np.diff(away) < 0))


def _shown(found: np.ndarray, digits: int = 2) -> str:
    mean = found.mean(axis=1)
    pairs = zip(PEAKS, mean, found, strict=True)
    return ", ".join(
        f"{m:.{digits}f} ({min(row):.{digits}f} to {max(row):.{digits}f}) at {p / 1e6:g} Mbit/s"
        for p, m, row in pairs
    )


def _values(found: np.ndarray) -> dict[str, float]:
    mean = zip(PEAKS, found.mean(axis=1), found.std(axis=1), strict=True)
    return {
        f"{what} at {p / 1e6:g} Mbit/s": float(v)
        for p, a, b in mean
        for what, v in (("mean", a), ("spread", b))
    }


_SEEDED = (
    f"Means of {len(SEEDS)} seeds, the smallest and largest beside them; 1 is what the newcomer "
    "has if it knows its delay."
)


def parking_lot(claim: Claim) -> Outcome:
    alone = _seen("FAST", 0.0, 1).ratio / _seen(_KNOWN, 0.0, 1).ratio
    return claim.not_given({"alone": alone})


def bursts_help(claim: Claim) -> Outcome:
    plain, paused = shares("FAST"), shares("rate reduction")
    both = [_improves(found) for found in (plain, paused)]
    quiet = _lot("FAST", 0.0)
    alone = _seen("rate reduction", 0.0, 1).taken
    off = np.abs(paused.mean(axis=1) - 1).max()
    queue, left = (np.max(_over_seeds(method, "taken")) for method in ("FAST", "rate reduction"))
    said = [
        "With FAST it does, in the mean: idle times show a newcomer a shorter queue."
        if both[0]
        else "Not with FAST.",
        "With a pause too."
        if both[1]
        else f"With a pause there is no such trend: in the mean it is within {100 * off:.0f} % of "
        f"fair at every peak. (7) asks for {1e3 * _needed(quiet):.0f} ms, and paths of "
        f"{1e3 * quiet.base_rtt('S1'):.0f} ms were taken: it leaves {1e3 * alone:.2g} of "
        f"{1e3 * queue:.2g} ms of queue taken for propagation without background, and with it at "
        f"most {1e3 * left:.2g}.",
    ]
    return claim.differs_if(
        not all(both),
        _values(plain) | named("paused, {}", _values(paused)) | {"left": left, "queue": queue},
        computed=f"FAST: {_shown(plain)}; rate reduction: {_shown(paused)}. {_SEEDED}",
        reason=" ".join(said),
    )


def estimator_in_bursts(claim: Claim) -> Outcome:
    found = shares("estimator")
    worst, alone = (
        np.abs(found - 1).max(),
        abs(_seen("estimator", 0.0, 1).ratio / _seen(_KNOWN, 0.0, 1).ratio - 1),
    )
    probe = -float(METHODS["estimator"].parameter("theta")) * float(
        _over_seeds("FAST", "before").mean()
    )
    return claim.differs_if(
        worst >= 0.1,
        _values(found) | {"worst": worst, "alone": alone, "probe": probe},
        computed=f"{_shown(found, 1)}. {_SEEDED}",
        least=PEAKS[0],
        first=np.abs(found[0] - 1).max(),
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


def _judged(law: Source, rtt: float, flows: int = 1) -> StabilityReport:
    return stability(alone(law, rtt, flows))


@cache
def growth(law: Source, rtt: float) -> tuple[float, float]:
    """Growth of a small disturbance of the window [1/s]: simulated, and the rightmost root's."""
    root = complex(_judged(law, rtt).rightmost_roots[0])
    gentle = law(gamma=0.3 * TAU / rtt)  # comes to rest, at the same point
    exact: Any = {"rtol": 1e-10, "atol": 1e-13}
    settled = simulate(_from_empty(gentle, rtt), 40.0, samples=2, **exact)
    window = float(settled[f"{law.name}_w"].values[-1, 0])
    pushed = nudged(
        settled.final_state.values, {("flow", "f0"): {law.states.index(w): 1e-4 * window}}
    )
    period = 2 * np.pi / abs(root.imag)
    times = np.linspace(40 + 4 * period, 40 + 14 * period, 2001)
    begun = settled.assign(final_state=("final_state_byte", pushed))
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


def stabilizes(claim: Claim) -> Outcome:
    static, ack = (np.array([edge(law, r) for r in ALONE_RTTS]) for law in (StaticFAST, FAST))
    crowd = edge(FAST, 0.1, 3)
    return claim.not_given(
        named("static, r = {:g}", ALONE_RTTS, static)
        | named("ack, r = {:g}", ALONE_RTTS, ack)
        | {"three flows": crowd},
        static=static,
        ack=ack,
    )


def stability_needs_the_clock(claim: Claim) -> Outcome:
    rtt = 0.1
    edges = {law: edge(law, rtt) for law in (StaticFAST, FAST)}
    between = sum(edges.values()) / 2 * TAU / rtt
    verdicts = {law.name: _judged(law(gamma=between), rtt).verdict for law in edges}
    values = {"between": between * rtt / TAU}
    for law, critical in edges.items():
        for side in (0.95, 1.05):
            found, root = growth(law(gamma=side * critical * TAU / rtt), rtt)
            values |= {f"{law.name}, {side:g}": found, f"{law.name}, {side:g}, root": root}
    shown = "; ".join(
        f"{name} {values[f'{law.name}, 0.95']:.4f} and {values[f'{law.name}, 1.05']:.4f} 1/s "
        f"(roots {values[f'{law.name}, 0.95, root']:.4f} and "
        f"{values[f'{law.name}, 1.05, root']:.4f})"
        for name, law in (("x = w/r", StaticFAST), ("the ack clock", FAST))
    )
    vegas = [_judged(law, rtt).decay_rate for law in (StaticVegas, Vegas)]
    return claim.differs_if(
        verdicts["StaticFAST"] != verdicts["FAST"],
        values,
        shown=shown,
        verdicts=verdicts,
        vegas=vegas,
    )
