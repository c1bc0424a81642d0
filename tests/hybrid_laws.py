"""Laws that jump and tick, small enough to be solved by hand."""

import math
from dataclasses import replace
from typing import Any

from sympy import symbols

from fluidcc.laws import Jump, Link, Source, Tick
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.sources import RateAIMD
from fluidcc.symbols import RTT, c, e, y

MBIT = 1e6
C, BUFFER, DELAY, BACK = 10 * MBIT, 300e3, 0.025, 0.04
SLOPE = 1 * MBIT  # alpha m/R [bit/s^2]
x, z, u = symbols("x z u", real=True)
P, K, q0 = symbols("P K q0", positive=True)


def link(buffer: float = BUFFER, **kwargs: Any) -> Network:
    return Network().link("l", DropTail, capacity=C, delay=DELAY, buffer=f"{buffer} bit", **kwargs)


def alone(law: Source, buffer: float = BUFFER, **flow: Any) -> Network:
    """The flow f over the link l."""
    return link(buffer).flow("f", law, route=["l"], **{"start": 0, **flow})


def aimd(**params: float) -> Source:
    """Rate-based AIMD of the slope SLOPE that reacts once a round trip."""
    law = RateAIMD(m=1e5, R=0.1, **params)
    return replace(law, jumps=(replace(law.jumps[0], refractory=RTT),), params=law.params)


class Sawtooth:
    """One rate-based AIMD flow on a link with a buffer: everything in closed form."""

    loop = BUFFER / C + DELAY + BACK
    over = math.sqrt(2 * BUFFER / SLOPE)  # from capacity to a full buffer
    peak = C + SLOPE * (over + loop)
    period = 0.5 * peak / SLOPE
    first = (C - 1e5) / SLOPE + over + loop


def delay_triggered(**kwargs: Any) -> Source:
    d = symbols("d", positive=True)
    return Source(
        "Backoff",
        flow={x: P},
        out={"rate": x},
        params={P: SLOPE, d: 0.035},
        units={x: "bit/s", P: "bit/s^2", d: "s"},
        initial={x: 8e6},
        jumps=(Jump(when=e - d, reset={x: x / 2}, **kwargs),),
    )


def clocked(*jumps: Jump, ticks: tuple[Tick, ...] = (), flow: Any = 0) -> Source:
    """A law with a clock z of slope 1 and a rate x."""
    return Source(
        "Clock",
        flow={x: flow, z: 1},
        out={"rate": x},
        params={P: 0.5, K: 1},
        units={x: "bit/s", z: "s", P: "s", K: "bit/s"},
        initial={x: 1e6, z: 0},
        jumps=jumps,
        ticks=ticks,
    )


def sampled(every: Any = P, phase: Any = None, **params: float) -> Source:
    """x <- x + K (q0 - e) at every tick, held in between."""
    law = Source(
        "Sampled",
        flow={x: 0},
        out={"rate": x},
        params={P: 0.1, K: 1e6, q0: 0.2},
        units={x: "bit/s", P: "s", K: "bit/s^2", q0: "s"},
        lower={x: 0},
        initial={x: 12e6},
        ticks=(Tick(every, {x: x + K * (q0 - e)}, phase=phase),),
    )
    return law(**params)


def pricing(**params: float) -> Link:
    """A price that follows the excess of the last period, reported at the end of it."""
    total, level, every, nu = symbols("total level every nu", nonnegative=True)
    law = Link(
        "Pricing",
        flow={total: y, level: 0},
        out={"price": level},
        params={every: 0.05, nu: 1e-8},
        units={total: "bit", level: "1", every: "s", nu: "s/bit"},
        lower={level: 0},
        initial={total: 0, level: 1.0},
        ticks=(Tick(every, {level: level + nu * (total / every - c), total: 0}),),
    )
    return law(**params)
