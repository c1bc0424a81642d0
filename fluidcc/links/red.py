"""Random early detection: the gentle form, the original one as a limit of it, and the adaptive
form.

The queue is a delay, and so are its thresholds and its average: a threshold of n packets is n
packet/c seconds. The average of Floyd and Jacobson is taken at every packet with weight w_q; while
the link is busy it is the low-pass filter of Misra, Gong and Towsley with time constant T =
-packet/(c ln(1 - w_q)). `RED` and `AdaptiveRED` mark: that shortens no queue, and only a full
buffer drops. `REDDrop` and `AdaptiveREDDrop` drop at the same ratio, before the queue.
"""

from __future__ import annotations

from sympy import Eq, Heaviside, Max, Min

from fluidcc.laws import Steady, Tick, extended
from fluidcc.laws.early_loss import dropping
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import Let, nonnegative, positive

__all__ = ["RED", "AdaptiveRED", "AdaptiveREDDrop", "REDDrop"]

(q,) = DropTail.states
avg = nonnegative("avg")  # averaged queueing delay [s]
min_th, max_th, T = positive("min_th max_th T")  # thresholds, time constant of the average [s]
p_max, gentle = positive("p_max gentle")

_ramp = Let("r", Min(Max((avg - min_th) / (max_th - min_th), 0), 1))
_steep = Let("g", Min(Max((avg - max_th) / (gentle * max_th), 0), 1))

# From p_max at max_th the ratio grows to 1 within gentle * max_th: 1 is Floyd's gentle option, and
# near 0 the step of the original, in which every packet beyond max_th is marked.
RED = extended(
    DropTail,
    "RED",
    flow={avg: (q - avg) / T},
    out={"mark": p_max * _ramp + (1 - p_max) * _steep},
    params={min_th: 0.04, max_th: 0.12, p_max: 0.1, T: 1, gentle: 1},
    units={avg: "s", min_th: "s", max_th: "s", p_max: "1", T: "s", gentle: "1"},
    lower={avg: 0},
    initial={avg: 0},
    claims={"the average is that of the queue": Steady(Eq(avg, q))},
    limits={p_max: 1},
    where=(min_th < max_th,),
    about="Random early detection (gentle): marks by the average of the queue.",
    meaning={
        avg: "average of the queueing delay",
        min_th: "average at which marks begin",
        max_th: "average at which the mark ratio is p_max",
        p_max: "mark ratio at max_th",
        T: "time constant of the average",
        gentle: "distance beyond max_th at which all is marked, over max_th",
    },
    ref="Floyd and Jacobson 1993, gentle as in Floyd 2000; average by Misra, Gong and Towsley, "
    "SIGCOMM 2000",
)


REDDrop = dropping(RED, "REDDrop")

maximum = positive("p")  # the p_max that adapts [1]
interval, up, down = positive("interval up down")

_aim = Let("a", (avg - min_th) / (max_th - min_th))
_below = Heaviside(0.4 - _aim, 0) * Heaviside(maximum - 0.01, 0)
_above = Heaviside(_aim - 0.6, 0) * Heaviside(0.5 - maximum, 0)

# p_max is a state that is raised or lowered every `interval`, so that the average stays in the
# middle fifth.
AdaptiveRED = extended(
    RED,
    "AdaptiveRED",
    flow={maximum: 0},
    out={"mark": RED.out["mark"].subs(p_max, maximum)},
    params={interval: 0.5, up: 0.01, down: 0.9},
    units={maximum: "1", interval: "s", up: "1", down: "1"},
    initial={maximum: p_max},
    ticks=(
        Tick(
            every=interval,
            update={
                maximum: maximum + _above * Min(up, maximum / 4) - _below * (1 - down) * maximum
            },
        ),
    ),
    ref="Floyd, Gummadi and Shenker 2001",
    about="RED whose p_max adapts, so that the average stays between the thresholds.",
    meaning={
        maximum: "mark ratio at max_th, as it adapts",
        p_max: "mark ratio at max_th, at first",
        interval: "interval of adaptations",
        up: "largest rise of the mark ratio",
        down: "factor by which it falls",
    },
)

AdaptiveREDDrop = dropping(AdaptiveRED, "AdaptiveREDDrop")
