"""CoDel, which drops ever more often while the queue stays above a target: RFC 8289, in the mean.

Packets leave no trace of their own in a fluid, so the drops that CoDel spaces by
interval/sqrt(count) become a rate sqrt(count)/interval, and `count` grows at that rate: from
zeta(1/2)^2/4 = 0.533 on, as n drops take 2 sqrt(n) + zeta(1/2) intervals. It decides
when a packet leaves, by how long that packet has waited: this is the delay that was found on entry,
so the age of what a sender hears is one round trip, as for other queues here.

It stops dropping at once where the queue falls below the target. If drops start again within 16
intervals, `count` goes on from what it grew by in the spell before, count - lastcount (section
5.4): as n drops have been made in the mean half of the time to the next is over, and where the
count begins at n the mean begins at n - 1/2. So a network with it comes to no rest and has no
margins: it is simulated, and `fluidcc.limit_cycle` finds its cycle.
"""

from __future__ import annotations

from sympy import Heaviside, Max, Min, Piecewise, Rational, sqrt, zeta

from fluidcc.laws import Jump, extended
from fluidcc.laws.early_loss import dropping
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import Let, nonnegative, positive, y

__all__ = ["CoDel", "CoDelDrop"]

(q,) = DropTail.states
above, count = nonnegative("above count")  # time above the target [s], drops since [1]
# With which count drops last began [1]; the time in which there have been none since [s].
began, rest = nonnegative("began rest")
target, interval, size = positive("target interval size")

_on = Let("d", Heaviside(above - interval, 0))  # it drops
_first = (zeta(Rational(1, 2)) ** 2 / 4).evalf()
_rate = Let("m", sqrt(count) / interval * _on)  # drops a second

_again = Piecewise((Max(count - began - 1, _first), rest < 16 * interval), (_first, True))

# Left out: the last packet, which is never dropped.
CoDel = extended(
    DropTail,
    "CoDel",
    flow={above: Heaviside(q - target, 0), count: _rate, began: 0, rest: 1 - _on},
    out={"mark": Min(1, _rate * size / Max(y, size / interval))},
    params={target: 0.005, interval: 0.1, size: 12000},
    units={above: "s", count: "1", began: "1", rest: "s", target: "s", interval: "s", size: "bit"},
    lower=dict.fromkeys((above, count, began, rest), 0),
    initial={above: 0, count: _first, began: _first, rest: 0},
    jumps=(
        Jump(when=Min(target - q, above), reset={above: 0}),
        Jump(when=above - interval, reset={count: _again, began: _again, rest: 0}, once=True),
    ),
    where=(target < interval,),
    about="Controlled delay, in the mean: ever more marks while the queue is above a target.",
    meaning={
        above: "time that the queue has been above the target",
        count: "by its root marks come, and by each it grows: their number, in the mean",
        began: "the count at which marks last began",
        rest: "time without marks since then",
        target: "queueing delay that is tolerated",
        interval: "time above the target before marks begin",
        size: "size of a packet",
    },
    ref="RFC 8289, sections 4 and 5; the mean form is this library's",
)

CoDelDrop = dropping(CoDel, "CoDelDrop")
