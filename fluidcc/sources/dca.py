"""Delay-based congestion avoidance: FAST and Vegas, equation (1) of the persistent-congestion
paper, and LEDBAT.

Each takes the smallest round trip that it has seen for its path without queues. One that comes to a
queue that others keep (``start=``) takes that queue for its path, and keeps more than alpha
packets. ``initial={"delta": "5 ms"}`` makes it take 5 ms too little for its path: alone it keeps a
queue that is shorter by that. `fluidcc.hold_trackers` makes a parameter of it, for equilibria and
verdicts.

FAST and Vegas are those of the paper and hear of no loss. LEDBAT answers losses in the mean over
losses at random, and has no form that jumps: beside a flow that halves at each overflow of a
drop-tail buffer, as `fluidcc.AIMD` does, it gets up to two thirds where packets give it half at
most, and a run warns of it. Over a link that marks or drops before its buffer is full, beside
`fluidcc.Reno`, its share is sound.
"""

from __future__ import annotations

from typing import Any

from fluidcc.laws import Source
from fluidcc.sources.windows import acked, delta, w, window
from fluidcc.symbols import RTT, Let, pi, positive

__all__ = ["FAST", "LEDBAT", "StaticFAST", "StaticVegas", "Vegas"]

alpha, gamma, tau, target, gain = positive("alpha gamma tau target gain")

# u: the queueing delay at which alpha packets of this flow are queued; kappa/u is written so that w
# may be 0.
_UNITS = {alpha: "packet", gamma: "1", tau: "s"}
_MEANING = {
    alpha: "packets of its own that it keeps queued",
    gamma: "part of the way to its goal in each update",
    tau: "interval of updates",
}


def _avoidance(name: str, kappa: Any, params: dict[Any, Any], clock: str, about: str) -> Source:
    """Make the law (1): w' = kappa (1 - q/u) with u = alpha/x and x = w/RTT; q is what the source
    takes for its queueing delay.
    """
    growth = kappa * (1 - delta * Let("x", w / RTT) / alpha)
    return window(
        name, growth, params=params, units={s: _UNITS[s] for s in params}, clock=clock,
        ref="Rodriguez-Perez, Herreria-Alonso, Fernandez-Veiga and Lopez-Garcia, equations (1) "
            "and (2)",
        about=about, meaning=_MEANING,
    )  # fmt: skip


# The paper gives neither gamma nor tau; its experiments have alpha = 50 packets.
_FAST = (gamma * alpha / tau, {gamma: 0.5, alpha: 50, tau: 0.2})
_VEGAS = (1 / RTT, {alpha: 2})

_KEEPS = "keeps alpha packets of its own in the queue"

FAST = _avoidance("FAST", *_FAST, "neutral", f"FAST TCP: {_KEEPS}.")
Vegas = _avoidance("Vegas", *_VEGAS, "neutral", f"TCP Vegas: {_KEEPS}, at a packet a round trip.")
StaticFAST = _avoidance("StaticFAST", *_FAST, "static", "FAST whose rate is its window over RTT.")
StaticVegas = _avoidance(
    "StaticVegas", *_VEGAS, "static", "Vegas whose rate is its window over RTT."
)

# RFC 6817, Section 2.4.2: a packet a round trip, in proportion to how far the queueing delay is
# below target; half the window at a loss, at most once a round trip. As in Reno that is the mean
# over losses at random: of n a second those within a round trip of a cut belong to it.
_lost = Let("n", acked * pi)
LEDBAT = window(
    "LEDBAT",
    gain * (target - delta) / target / RTT - w / 2 * _lost / (1 + _lost * RTT),
    params={target: 0.1, gain: 1},
    units={target: "s", gain: "packet"},
    least=2,
    clock="neutral",
    ref="RFC 6817",
    about="LEDBAT: takes what others leave, at a queueing delay below a target; halves at losses.",
    meaning={target: "queueing delay aimed at", gain: "largest increase a round trip"},
)
