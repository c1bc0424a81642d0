"""GCC, simplified: its limit cycle on one link in closed form.

The law is `fluidcc.sources.GCC`, the simplified controller of the LDCC paper's Section V-D. A flow,
or any number of flows that move together, has the part z of a link's capacity c to itself; the rest
is taken by traffic that does not listen. Time begins when the link becomes busy: the flow sends z c
exp(g t), so that the queue of FIFO packets is

    q'(t) = z (exp(g t) - 1).

Over-use, q' > gamma, is sent at t1 and heard at t2, a propagation round trip and the queue of t1
later. The rate is then cut to alpha times what is received. The queue drains at a constant pace,
and news that it is empty comes a propagation round trip after it is, whereupon the rate grows
again. Nothing of this depends on c.
"""

from __future__ import annotations

from sympy import Eq, exp, log

from fluidcc.formulas._formula import Bound, Formula
from fluidcc.symbols import positive

__all__ = ["cycle", "queue"]

rtt, g, gamma, alpha, z, t = positive("rtt g gamma alpha z t")

_UNITS = {rtt: "s", t: "s"}

_rising = z * ((exp(g * t) - 1) / g - t)
_area = z * ((exp(g * t) - 1) / g**2 - t / g - t**2 / 2)

_t1 = log(1 + gamma / z) / g
_t2 = _t1 + _rising.subs(t, _t1) + rtt
_top = _rising.subs(t, _t2)
_high = z * exp(g * _t2)
_low = alpha * (z + gamma) / (1 + gamma)
_drain = z - _low  # pace at which the queue gets shorter [1]
_emptying = _top / _drain
_regrowth = log(z / _low) / g
_period = _t2 + _emptying + rtt + _regrowth
_sent = (_high - _low) / g + _low * (_emptying + rtt)  # over c
_busy = _t2 + _emptying
_idle = (
    (1 - z + _low) * rtt + (1 - z) * _regrowth + (z - _low) / g
)  # what passes while there is no queue, over c

queue = Formula(
    "queue",
    (t, g, z),
    _rising,
    defaults={z: 1.0},
    units=_UNITS,
    ref="queueing delay [s] met by what is sent t seconds after the link became busy, while GCC's "
    "rate grows",
    claims={
        "q' = z (exp(g t) - 1)": Eq(_rising.diff(t), z * exp(g * t) - z),
        "q(0) = 0": _rising.subs(t, 0),
        "its integral": Eq(_area.diff(t), _rising),
    },
)
cycle = Formula(
    "cycle",
    (rtt, g, gamma, alpha, z),
    {
        "period": _period,
        "rate_high": _high,
        "rate_low": _low,
        "rate_mean": _sent / _period,
        "queue_max": _top,
        "queue_mean": (_area.subs(t, _t2) + _top**2 / (2 * _drain)) / _period,
        "utilisation": (_busy + _idle) / _period,
    },
    domain=(
        Bound(alpha < 1, "a decrease takes away a part of the rate"),
        Bound(z <= 1, "the flow has at most the whole link"),
        Bound(
            gamma < _drain,
            "the queue drains too slowly to be seen as under-use, and the rate grows before it is "
            "empty; take a smaller gamma or alpha, or simulate it",
            what="gamma",
        ),
    ),
    defaults={z: 1.0},
    units=_UNITS,
    ref="the limit cycle of GCC on a link with an endless buffer: period [s], largest, smallest "
    "and mean rate over the capacity [1], largest and mean queueing delay over time [s], "
    "utilisation of the link [1]. rtt is the propagation round trip, 1/g the time in which the "
    "rate grows by e, gamma the threshold, alpha what a decrease leaves, z the part of the "
    "capacity that others leave. It holds for rates below `cap` times what is received",
    claims={
        "over-use is sent at t1": Eq(_rising.diff(t).subs(t, _t1), gamma),
        "the rate at t1 is z + gamma": Eq(z * exp(g * _t1), z + gamma),
        "the queue at t1": Eq(_rising.subs(t, _t1), gamma / g - z * _t1),
        "what is sent passes": Eq(_busy + _idle, (1 - z) * _period + _sent),
    },
)
