"""Section V of the paper on FAST's persistent congestion: whether rates stabilize, by linearisation and simulation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fluidcc.analysis.boundary import Boundary, stability_boundary
from fluidcc.analysis.report import StabilityReport
from fluidcc.analysis.stability import stability
from fluidcc.laws import Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.fast.common import PACKET, C
from fluidcc.papers.model import DIFFERS, NOT_GIVEN, REPRODUCED, Outcome, claim
from fluidcc.simulation.restart import nudged
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import FAST, StaticFAST, StaticVegas, Vegas
from fluidcc.sources._windows import w

__all__ = ["RTTS", "alone", "edge", "growth"]

RTTS = (0.02, 0.04, 0.1, 0.2)
"""Round-trip propagation delays at which the boundaries are computed [s]."""

TAU = FAST.parameter("tau")


def alone(law: Source, rtt: float, flows: int = 1) -> Network:
    """Flows that know their delay, on a link of their own."""
    net = Network().link("l", DropTail, capacity=C * PACKET, delay=rtt / 2)
    for i in range(flows):
        net.flow(f"f{i}", law, route=["l"], packet=PACKET)
    return net


@lru_cache(maxsize=32)
def edge(law: Source, rtt: float, flows: int = 1) -> float:
    """gamma r/tau at which a law becomes unstable, r being the propagation delay."""
    found = stability_boundary(alone(law, rtt, flows), "gamma")
    assert isinstance(found, Boundary)
    return float(found.value * rtt / TAU)


def _judged(law: Source, rtt: float, flows: int = 1) -> StabilityReport:
    return stability(alone(law, rtt, flows))


@lru_cache(maxsize=16)
def growth(law: Source, rtt: float) -> tuple[float, float]:
    """Growth of a small disturbance of the window in time [1/s]: of a simulation, and the rightmost root's."""
    root = complex(_judged(law, rtt).rightmost_roots[0])
    gentle = law(gamma=0.3 * TAU / rtt)  # comes to rest, at the same point
    settled = simulate(_from_empty(gentle, rtt), 40.0, samples=2, rtol=1e-10, atol=1e-13, progress=False)
    window = float(settled[f"{law.name}_w"].values[-1, 0])
    pushed = nudged(settled.final_state.values, {("flow", "f0"): {law.states.index(w): 1e-4 * window}})
    period = 2 * np.pi / abs(root.imag)
    times = np.linspace(40 + 4 * period, 40 + 14 * period, 2001)
    run = simulate(_from_empty(law, rtt), float(times[-1]), t_eval=times, rtol=1e-10, atol=1e-13, progress=False,
                   restart=settled.assign(final_state=("final_state_byte", pushed)))  # fmt: skip
    return _fitted(times, run.queueing_delay.values[:, 0], root), root.real


def _from_empty(law: Source, rtt: float) -> Network:
    return alone(law, rtt).with_flow("f0", start=0.0, initial={"w": C * rtt})


def _fitted(t: np.ndarray, q: np.ndarray, root: complex) -> float:
    """Exponent of the oscillation e^{st} next to `root` that fits a signal best, a constant aside."""
    from scipy.optimize import least_squares

    def left(s: np.ndarray) -> np.ndarray:
        wave = np.exp((s[0] + 1j * s[1]) * (t - t[0]))
        basis = np.column_stack([wave.real, wave.imag, np.ones_like(t)])
        return np.asarray((q - basis @ np.linalg.lstsq(basis, q, rcond=None)[0]) / np.ptp(q))

    return float(least_squares(left, [root.real, abs(root.imag)], xtol=1e-14, ftol=1e-14).x[0])


@claim("fast", "Section V", "Rates stabilize: with which gamma r/tau?", "", erratum=True)
def stabilizes() -> Outcome:
    static, ack = (np.array([edge(law, r) for r in RTTS]) for law in (StaticFAST, FAST))
    crowd = edge(FAST, 0.1, 3)
    return Outcome(
        NOT_GIVEN,
        f"x = w/r is stable below gamma r/tau = {', '.join(f'{v:.3f}' for v in static)} for r = 20, 40, 100, 200 ms, "
        f"the ack clock below {', '.join(f'{v:.2f}' for v in ack)}, and {crowd:.2f} with three flows at 100 ms",
        "The paper says nothing of it. One flow that knows its delay, 100 Mbit/s and packets of 1000 bytes; r is the "
        "propagation delay there and back. With the ack clock a window acts at once and in full on the queue, and not "
        "through a rate that the queue itself lowers, so that three times the gain is stable.",
        {f"static, r = {r:g}": v for r, v in zip(RTTS, static, strict=True)}
        | {f"ack, r = {r:g}": v for r, v in zip(RTTS, ack, strict=True)}
        | {"three flows": crowd},
    )


@claim("fast", "(1)", "x = w/r: whether rates stabilize can be read from (1).", "x = w/r", erratum=True)
def stability_needs_the_clock() -> Outcome:
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
        f"{name} {values[f'{law.name}, 0.95']:.4f} and {values[f'{law.name}, 1.05']:.4f} 1/s (roots "
        f"{values[f'{law.name}, 0.95, root']:.4f} and {values[f'{law.name}, 1.05, root']:.4f})"
        for name, law in (("x = w/r", StaticFAST), ("the ack clock", FAST))
    )
    vegas = [_judged(law, rtt).decay_rate for law in (StaticVegas, Vegas)]
    return Outcome(
        DIFFERS if verdicts["StaticFAST"] != verdicts["FAST"] else REPRODUCED,
        f"growth of a small disturbance in simulation 5 % below and above each boundary: {shown}",
        f"At gamma r/tau = {values['between']:.2f} x = w/r is {verdicts['StaticFAST']}, and windows that send what is "
        f"acknowledged are {verdicts['FAST']}. Vegas, whose gain 1/r is small, is stable with both: it decays at "
        f"{vegas[0]:.3g} and {vegas[1]:.3g} 1/s.",
        values,
    )
