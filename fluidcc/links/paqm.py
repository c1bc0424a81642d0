"""P-AQM, the router of the ECF paper: its inner loop, (1) to (3), a sampled controller that marks
or drops, and its outer loop, which tells sources their rates.

Every dT the router knows the bits that came, filters their rate and computes the share of packets
that go unmarked,

    u = c/r + K (q0 - q) c/(dT r) if r > c, else c/r,   held within [0, 1],
    r <- (1 - a) r + a bits/dT.

The formulas of the paper are rebuilt from its prose; K, a and dT of its runs are not printed. The
queue is a delay here, so that q c is what the paper calls q. `PAQM` is the paper's queue for TCP,
which marks, so that only a full buffer drops; `PAQMDrop` is that for UDP: what it does not let in
at the ratio u is lost before the queue.

`PAQMECF` and `PAQMECF2` have explicit congestion feedback, (4) to (11). Beside the inner loop,
which drops, the router measures the rate r at which traffic comes during the last T_s of each
period T_ECF, and works out the rate at which its queue would be q0' one period on,

    V1   r' = c + (q0' - q) c/T_ECF,
    V2   r' = c + ((q0' - q) c - (r - c) R)/(T_ECF - R),

the second one allowing for the old rate, which comes on for a round trip R. If r' < r it tells its
sources to multiply their rates by MD = r'/r, else to raise each by AI = (r' - r)/(2N). If r'/r was
within (0.96, 1/0.96) five times in a row, nothing would change any more whoever has what; then MD
is `forced`, once.

By (4) T_ECF is the longest round trip to the sources of the flows that are on and T_s, rounded up
to a multiple of dT; the router looks when it begins to measure, at first when nobody is on. R is
the mean of these round trips. Either may be given instead: a run warns where a source is farther
than a given T_ECF.

Near its rest a feedback loop of delay R to the router settles where T_ECF is longer than R in V1,
and than 2 R in V2: `fluidcc.sampled_stability` computes it. The inner loop, whose gain is K/dT, is
stable at any dT for K < 1.

The limit of (11) is lost; here there is none, but for `AI_max`.

What else the paper does not print is chosen: `forced`, K, a and the inner set point q0; five times
in a row is taken to mean that both loops rest, so that a link that nobody fills is not disturbed.
"""

from __future__ import annotations

from sympy import Expr, Heaviside, Max, Min, Rational, ceiling

from fluidcc.laws import Link, Tick, extended
from fluidcc.laws.early_loss import dropping
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import Let, c, crossing, nonnegative, positive, trip_max, trip_mean, y

__all__ = ["PAQM", "PAQMECF", "PAQMECF2", "V1", "V2", "PAQMDrop", "measured"]


(q,) = DropTail.states
u = nonnegative("u")  # share that goes unmarked [1]
r = nonnegative("r")  # filtered arrival rate [bit/s]
came = nonnegative("B")  # what came since the last tick [bit]
K, a, dT, q0 = positive("K a dT q_0")

_rate = Let("r_{s}", (1 - a) * r + a * came / dT)  # (3)
_buffer = Heaviside(_rate - c, 0) * K * (q0 - q) * c / dT

PAQM = extended(
    DropTail,
    "PAQM",
    flow={u: 0, r: 0, came: y},
    out={"mark": 1 - u},
    params={K: 0.3, a: 0.5, dT: 0.02, q0: 0.04},
    units={u: "1", r: "bit/s", came: "bit", K: "1", a: "1", dT: "s", q0: "s"},
    lower={u: 0},
    upper={u: 1},
    initial={u: 1, r: 0, came: 0},
    # (1), and (2) by the bounds; where r < c the share is 1 anyway, also without traffic.
    ticks=(Tick(every=dT, update={r: _rate, u: (c + _buffer) / Max(_rate, c), came: 0}),),
    ref="the ECF paper, equations (1) to (3)",
    about="P-AQM: a sampled controller marks, so that the queue stays at a set point.",
    meaning={
        u: "share that goes unmarked",
        r: "filtered arrival rate",
        came: "bits that came since the last update",
        K: "gain",
        a: "weight of the newest rate",
        dT: "interval of updates",
        q0: "queueing delay wanted",
    },
)

PAQMDrop = dropping(PAQM, "PAQMDrop")


# --- explicit congestion feedback: the outer loop -------------------------------------------------


q = PAQMDrop.queue
factor, rise, count = nonnegative("MD AI n")  # what is told: [1], [bit/s], and how often so far
seen = nonnegative("S")  # what came in the last part of the period, so far [bit]
rests = nonnegative("rests")  # periods in a row in which nothing changed
T_ECF, T_s, R, aim, calm, forced, AI_max = positive("T_ECF T_s R aim calm forced AI_max")

given_T, given_R = nonnegative("T_ECF R")  # 0: by (4), and the mean
period = positive("T")  # to the next report but one, once it is measured; then to the next one
_by_4 = given_T + (1 - Heaviside(given_T, 0)) * dT * ceiling((trip_max + T_s) / dT - 1e-9)
_trip = given_R + (1 - Heaviside(given_R, 0)) * trip_mean

measured = Let("r", seen / T_s)  # (5)
STALLS = 5  # periods in a row


def _outer(name: str, wanted: Expr, ref: str, about: str) -> Link:
    """Add to the inner loop an outer loop that wants the rate `wanted` next."""
    old = {given_R: 0} if wanted.has(R) else {}  # the round trip for which the old rate comes on
    want = Let("r'", Max(wanted.xreplace({T_ECF: period, R: _trip}), 0))
    share = Let(
        r"\rho", want / Max(measured, c / 1000)
    )  # of a link that is all but idle nothing is asked
    rest = Let("k", Heaviside(share - calm, 0) * Heaviside(1 / calm - share, 0))
    more = Max(want - measured, 0) / (2 * Max(crossing, 1))
    stall = Let("s", rest * Heaviside(rests - STALLS + Rational(3, 2), 0))
    params = {given_T: 0, T_s: 0.14, aim: 0.028, calm: 0.96, forced: 0.95, AI_max: 1e30}
    return extended(
        PAQMDrop,
        name,
        flow={seen: y, factor: 0, rise: 0, count: 0, rests: 0, period: 0},
        out={"factor": factor, "raise": rise, "reports": count},
        params={**params, **old},
        units={
            seen: "bit",
            **dict.fromkeys((rise, AI_max), "bit/s"),
            **dict.fromkeys((factor, count, rests, calm, forced), "1"),
            **dict.fromkeys((given_T, T_s, aim, period, *old), "s"),
        },
        initial={seen: 0, factor: 1, rise: 0, count: 0, rests: 0, period: 1},
        ticks=(
            *PAQMDrop.ticks,
            Tick(
                every=period,
                phase=_by_4,
                update={
                    factor: stall * forced + (1 - stall) * Min(share, 1),  # (10)
                    rise: (1 - stall) * Min(more, AI_max),  # (11)
                    count: count + 1,
                    rests: (1 - stall) * rest * (rests + 1),
                },
            ),
            # the latter, that the report comes first where T_ECF is T_s, as nobody is on
            Tick(every=_by_4, phase=_by_4 - T_s, update={seen: 0, period: _by_4}),
        ),
        ref=ref,
        about=about,
        meaning={
            seen: "bits that came in the last part of the period",
            factor: "factor told to sources",
            rise: "increase told to sources",
            count: "reports so far",
            rests: "periods in a row in which nothing changed",
            given_T: "period of reports; 0: by (4)",
            period: "period of reports now",
            T_s: "part of it in which the rate is measured",
            aim: "queueing delay wanted by the reports",
            calm: "factor within which nothing changes",
            forced: "factor told after a calm, so that rates become fair",
            AI_max: "largest increase told to sources",
            given_R: "mean round trip; 0: that of the flows that are on",
        },
    )


# (6), (8) and (9): all of the error within one period, as if the new rate came at once.
V1 = c + (aim - q) * c / T_ECF
PAQMECF = _outer(
    "PAQMECF", V1, "the ECF paper, equations (1) to (11), V1",
    "P-AQM with explicit congestion feedback: drops, and tells ECF sources their rates.",
)  # fmt: skip

# The old rate fills the queue for R more, and only then the new one.
V2 = c + ((aim - q) * c - (measured - c) * R) / (T_ECF - R)
PAQMECF2 = _outer(
    "PAQMECF2",
    V2,
    "the ECF paper, equations (1) to (11), V2: the mean round trip taken into account",
    "PAQMECF that takes the mean round trip into account.",
)
