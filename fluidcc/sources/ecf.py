"""ECF, explicit congestion feedback: a source that does what routers tell it, equation (12) of the
ECF paper.

Every router on the path that reports says how to change the rate: x <- MD x, or x <- min(r_max, x +
AI). The source keeps a rate for each of them, three at most, and sends at the lowest, so that rates
are max-min fair. (Were each report applied to the rate that is sent, a source over two busy routers
would suffer the decreases of both.) Without a router that reports it holds r_max. A source that
starts goes by the reports that come from then on.

`FramedECF` changes its rate only where a frame or a group of pictures begins; `PoissonECF` sends
packets at random at the rate that ECF sets, piecewise constant. Their number in an interval, of
mean m, is (2 sqrt(m) + z)^2 m/(1 + 4 m) with z normal, as the square root of a Poisson number is
nearly normal with standard deviation 1/2: never negative, of mean m exactly, and of variance m but
for 3/8 or less.
"""

from __future__ import annotations

from sympy import Max, Min, Rational, sqrt, symbols

from fluidcc.laws import Jump, Source, Tick, extended
from fluidcc.symbols import Let, factors, noise, nonnegative, packet, positive, raises, reports

__all__ = ["ECF", "FramedECF", "PoissonECF"]

rates = nonnegative("r1:4")  # that the reports of the first, second, third router allow [bit/s]
heard = symbols("n1:4", real=True)  # their reports so far; -1: none yet
r_max, r_min = positive("r_max r_min")  # [bit/s]
lowest = Min(*rates)


def _report(k: int) -> Jump:
    """Return the jump at a report of the k-th router. The first one that is there at the start
    is old, and passed over.
    """
    wanted = Min(Max(factors[k] * rates[k] + raises[k], r_min), r_max)  # (12)
    begun = Min(Max(heard[k] + 1, 0), 1)
    return Jump(
        when=reports[k] - heard[k] - Rational(1, 2),
        reset={rates[k]: begun * wanted + (1 - begun) * rates[k], heard[k]: reports[k]},
    )


ECF = Source(
    name="ECF",
    flow=dict.fromkeys((*rates, *heard), 0),
    out={"rate": lowest},
    params={r_max: 20e6, r_min: 10e3},
    units=dict.fromkeys((*rates, r_max, r_min), "bit/s") | dict.fromkeys(heard, "1"),
    initial={**dict.fromkeys(rates, r_max), **dict.fromkeys(heard, -1)},
    jumps=tuple(_report(k) for k in range(len(rates))),
    where=(r_min <= r_max,),
    ref="the ECF paper, equation (12)",
    about="Does what routers with explicit congestion feedback (PAQMECF) tell it.",
    meaning={
        **dict.fromkeys(rates, "rate that one router on the path allows"),
        **dict.fromkeys(heard, "reports of that router so far"),
        r_max: "largest rate",
        r_min: "smallest rate",
    },
)

held = nonnegative("x")  # the rate until the next frame [bit/s]
gop = positive("gop")  # [s]

FramedECF = extended(
    ECF,
    "FramedECF",
    flow={held: 0},
    out={"rate": held},
    params={gop: 0.48},
    units={held: "bit/s", gop: "s"},
    initial={held: r_max},
    ticks=(Tick(every=gop, update={held: lowest}),),
    about="ECF whose rate changes only where a frame or a group of pictures begins.",
    meaning={held: "rate until the next frame", gop: "length of a frame or group"},
    ref="the ECF paper, Section 2.3: the target rate is not activated until the next frame or "
    "group of pictures",
)

interval = positive("interval")  # in which packets are counted [s]
_mean = Let("m", lowest * interval / packet)

PoissonECF = extended(
    ECF,
    "PoissonECF",
    out={"rate": lowest / (1 + 4 * _mean) * (2 * sqrt(_mean) + noise) ** 2},
    params={interval: 0.02},
    units={interval: "s"},
    about="ECF that sends its packets at random.",
    meaning={interval: "interval in which packets are counted"},
    ref="the ECF paper, Section 2.3: a Poisson source whose intensity follows ECF",
)
