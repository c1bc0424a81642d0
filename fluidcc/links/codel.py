"""CoDel, which drops ever more often while the queue stays above a target: RFC 8289, in the mean.

Packets leave no trace of their own in a fluid, so the drops that CoDel spaces by
interval/sqrt(count) become a rate sqrt(count)/interval, and `count` grows at that rate: from
zeta(1/2)^2/4 = 0.533 on, as n drops take 2 sqrt(n) + zeta(1/2) intervals. It decides
when a packet leaves, by how long that packet has waited: this is the delay that was found on entry,
so the age of what a sender hears is one round trip, as for other queues here.

It stops dropping at once where the queue falls below the target, so a network with it comes to no
rest and has no margins: it is simulated, and `fluidcc.limit_cycle` finds its cycle.
"""

from __future__ import annotations

from sympy import Heaviside, Max, Min, Rational, sqrt, zeta

from fluidcc.laws import Jump, extended
from fluidcc.laws.early_loss import dropping
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import Let, nonnegative, positive, y

__all__ = ["CoDel", "CoDelDrop"]

(q,) = DropTail.states
above, count = nonnegative("above count")  # time above the target [s], drops since [1]
target, interval, size = positive("target interval size")

_on = Let("d", Heaviside(above - interval, 0))  # it drops
_first = (zeta(Rational(1, 2)) ** 2 / 4).evalf()
_rate = Let("m", sqrt(count) / interval * _on)  # drops a second

# Left out: the resumption of an earlier count within 16 intervals (RFC 8289, section 5.4), and the
# last packet, which is never dropped.
CoDel = extended(
    DropTail,
    "CoDel",
    flow={above: Heaviside(q - target, 0), count: _rate},
    out={"mark": Min(1, _rate * size / Max(y, size / interval))},
    params={target: 0.005, interval: 0.1, size: 12000},
    units={above: "s", count: "1", target: "s", interval: "s", size: "bit"},
    lower={above: 0, count: 0},
    initial={above: 0, count: _first},
    jumps=(Jump(when=Min(target - q, above), reset={above: 0, count: _first}),),
    where=(target < interval,),
    about="Controlled delay, in the mean: ever more marks while the queue is above a target.",
    meaning={
        above: "time that the queue has been above the target",
        count: "marks since they began, in the mean",
        target: "queueing delay that is tolerated",
        interval: "time above the target before marks begin",
        size: "size of a packet",
    },
    ref="RFC 8289, sections 4 and 5; the mean form is this library's",
)

CoDelDrop = dropping(CoDel, "CoDelDrop")
