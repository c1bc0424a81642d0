"""P-AQM with explicit congestion feedback: the router of the ECF paper, its inner loop and its
outer loop, (1) to (11).

Beside the inner loop, which drops, the router measures the rate r at which traffic comes during the
last T_s of each period T_ECF, and works out the rate at which its queue would be q0' one period on,

    V1   r' = c + (q0' - q) c/T_ECF,
    V2   r' = c + ((q0' - q) c - (r - c) R)/(T_ECF - R),

the second one allowing for the old rate, which comes on for a round trip R. If r' < r it tells its
sources to multiply their rates by MD = r'/r, else to raise each by AI = (r' - r)/(2N). If r'/r was
within (0.96, 1/0.96) five times in a row, nothing would change any more whoever has what; then MD
is `forced`, once.

The formulas of the paper are lost but for its prose. What it does not print is chosen: `forced`, K,
a and the inner set point q0; five times in a row is taken to mean that both loops rest, so that a
link that nobody fills is not disturbed.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr, Heaviside, Max, Min, Rational, symbols

from fluidcc.laws import Link, Tick
from fluidcc.links.paqm import PAQMDrop
from fluidcc.symbols import Let, c, crossing, y

__all__ = ["PAQMECF", "PAQMECF2", "V1", "V2", "measured"]

q = PAQMDrop.queue
factor, rise, count = symbols(
    "MD AI n", nonnegative=True
)  # what is told: [1], [bit/s], and how often so far
seen = symbols("S", nonnegative=True)  # what came in the last part of the period, so far [bit]
rests = symbols("rests", nonnegative=True)  # periods in a row in which nothing changed
T_ECF, T_s, R, aim, calm, forced = symbols("T_ECF T_s R aim calm forced", positive=True)

measured = Let("r", seen / T_s)  # (5)
STALLS = 5  # periods in a row


def _outer(name: str, wanted: Expr, old_rate: bool, ref: str) -> Link:
    """Add to the inner loop an outer loop that wants the rate `wanted` next."""
    want = Let("r'", Max(wanted, 0))
    share = Let(
        "r'/r", want / Max(measured, c / 1000)
    )  # of a link that is all but idle nothing is asked
    rest = Let("k", Heaviside(share - calm, 0) * Heaviside(1 / calm - share, 0))
    stall = Let("s", rest * Heaviside(rests - STALLS + Rational(3, 2), 0))
    params = {**PAQMDrop.params, T_ECF: 0.16, T_s: 0.14, aim: 0.028, calm: 0.96, forced: 0.95}
    return replace(
        PAQMDrop,
        name=name,
        flow={**PAQMDrop.flow, seen: y, factor: 0, rise: 0, count: 0, rests: 0},
        out={**PAQMDrop.out, "factor": factor, "raise": rise, "reports": count},
        params={**params, **({R: 0.02} if old_rate else {})},
        units={
            **PAQMDrop.units,
            seen: "bit",
            factor: "1",
            rise: "bit/s",
            count: "1",
            rests: "1",
            T_ECF: "s",
            T_s: "s",
            aim: "s",
            calm: "1",
            forced: "1",
            **({R: "s"} if old_rate else {}),
        },
        initial={**PAQMDrop.initial, seen: 0, factor: 1, rise: 0, count: 0, rests: 0},
        ticks=(
            *PAQMDrop.ticks,
            Tick(every=T_ECF, phase=T_ECF - T_s, update={seen: 0}),
            Tick(
                every=T_ECF,
                update={
                    factor: stall * forced + (1 - stall) * Min(share, 1),  # (10)
                    rise: (1 - stall) * Max(want - measured, 0) / (2 * Max(crossing, 1)),  # (11)
                    count: count + 1,
                    rests: (1 - stall) * rest * (rests + 1),
                },
            ),
        ),
        ref=ref,
    )


# (6), (8) and (9): all of the error within one period, as if the new rate came at once.
V1 = c + (aim - q) * c / T_ECF
PAQMECF = _outer("PAQMECF", V1, False, "the ECF paper, equations (1) to (11), V1")

# The old rate fills the queue for R more, and only then the new one.
V2 = c + ((aim - q) * c - (measured - c) * R) / (T_ECF - R)
PAQMECF2 = _outer(
    "PAQMECF2",
    V2,
    True,
    "the ECF paper, equations (1) to (11), V2: the mean round trip taken into account",
)
