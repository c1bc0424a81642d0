"""Table I of the delay-based AIMD paper, beside every convention that it may have been computed with."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.formulas import delay_aimd
from fluidcc.papers.delay_aimd.common import ms, numbers
from fluidcc.papers.model import DIFFERS, REPRODUCED, Outcome, claim

__all__ = ["TABLE", "Convention", "conventions", "equal", "most_entries"]

TABLE = ((100, 1000, 2000, 5000, 10000, 20000, 50000), (1.1, 3.1, 4.3, 6.6, 9.2, 12.8, 19.4))
"""Table I: windows [packet] and epochs [s]."""


class Convention(NamedTuple):
    """One reading of Table I: of what its windows and times are."""

    coefficient: float
    offset: float  # [s]
    rounds: bool  # whether whole round trips are counted
    rtt: float  # [s]
    beta: float
    queue: float  # beyond the window of the table, at the backoff [packet]

    def __str__(self) -> str:
        count = "whole rounds" if self.rounds else "a fluid"
        above = f", {self.queue:g} packets of queue" if self.queue else ""
        return (
            f"coefficient {self.coefficient:g}, offset {self.offset:g} s, {count}, RTT {ms(self.rtt)}, "
            f"beta {self.beta:g}{above}"
        )


QUEUE = 40.0
"""Packets beyond the bandwidth-delay product with which Table I can be had."""


@lru_cache(maxsize=1)
def conventions() -> dict[Convention, NDArray[np.float64]]:
    """Epochs [s] of Table I by every convention that was tried."""
    trips = (0.05, 0.1, 0.12, 0.15, 0.2, 0.25)
    tried = (Convention(*v) for v in product((0.5, 0.25), (0.0, 1.0), (False, True), trips, (0.5, 0.8), (0.0, QUEUE)))
    return {
        c: delay_aimd.epoch_duration(
            np.array(TABLE[0], dtype=float), c.rtt, c.beta,
            coefficient=c.coefficient, offset=c.offset, rounds=c.rounds, queue=c.queue,
        )
        for c in tried
    }  # fmt: skip


def equal(found: NDArray[np.float64]) -> int:
    """How many entries of Table I are the printed ones."""
    return int(np.sum(np.round(found, 1) == np.array(TABLE[1])))


@claim("delay_aimd", "Table I", "An epoch lasts 1.1 s for a window of 100 packets, ..., 19.4 s for 50000.",
       "1.1, 3.1, 4.3, 6.6, 9.2, 12.8, 19.4 s", erratum=True)  # fmt: skip
def table_one() -> Outcome:
    printed, tried = np.array(TABLE[1]), conventions()
    without = {c: v for c, v in tried.items() if not c.queue}
    most, plain = (
        max(some.items(), key=lambda one: (equal(one[1]), -np.abs(one[1] - printed).max()))[0]
        for some in (tried, without)
    )
    whole = [c for c, v in tried.items() if equal(v) == len(printed)]
    as_printed = tried[Convention(0.5, 1.0, False, 0.1, 0.5, 0.0)]
    values = {f"W = {a}": float(v) for a, v in zip(TABLE[0], tried[plain], strict=True)}
    values |= {"equal": equal(tried[plain]), "with a queue": equal(tried[most]), "as printed": equal(as_printed)}
    return Outcome(
        REPRODUCED if equal(as_printed) == len(printed) else DIFFERS,
        f"all {equal(tried[most])} entries with {most}; {equal(tried[plain])} with {plain}: "
        f"{numbers(tried[plain], '.1f')} s, the others off by at most {np.abs(tried[plain] - printed).max():.1f} s",
        f"(2) as printed, a fluid with 1 s at 100 ms, gives {numbers(as_printed, '.1f')} s. Of {len(tried)} "
        f"conventions {len(whole)} give all: all with coefficient 0.25, no offset, (1 - beta) RTT = 50 ms and, where "
        f"beta is 1/2, windows that grow {QUEUE / 2:g} packets more than half of the table's, as with {QUEUE:g} "
        "packets in the queue at the backoff, for Table I is of bandwidth-delay products. The paper prints neither "
        "such a queue nor the round trip nor beta.",
        values,
    )


@claim("delay_aimd", "(2)", "The coefficient of (Delta - 1)^2 is 0.5.", "0.5", erratum=True)
def coefficient() -> Outcome:
    fluid = {a: max(most_entries(a, offset) for offset in (0.0, 1.0)) for a in (0.5, 0.25)}
    rounds = {a: _by_rounds(a) for a in fluid}
    values = {f"with {a:g}": float(v) for a, v in fluid.items()} | {
        f"with {a:g}, rounds": float(v) for a, v in rounds.items()
    }
    text = (
        f"of Table I at most {fluid[0.5]} entries can be had with 0.5 and {fluid[0.25]} with "
        "0.25, whatever the round trip, beta and the queue at the backoff; in whole round trips "
        f"of 10 to 300 ms, with 0 or {QUEUE:g} packets of queue, {rounds[0.5]} and {rounds[0.25]}"
    )
    if fluid[0.5] >= fluid[0.25] or rounds[0.5] >= rounds[0.25]:
        return Outcome(REPRODUCED, text, "", values)
    return Outcome(
        DIFFERS,
        text,
        "The H-TCP draft, from which Table I is taken, has (Delta - 1)^2/4. 0.5 is kept as the default because it is "
        "printed.",
        values,
    )


def most_entries(coefficient: float, offset: float) -> int:
    """How many entries of Table I a fluid can have, whatever the round trip, beta and the queue at the backoff.

    An epoch lasts t if s (W + q) is `epoch_growth` of t over one second, with s = (1 - beta) RTT. So each entry allows
    a strip in the plane of s and s q >= 0, and where most strips meet they meet in a corner.
    """
    windows, printed = np.array(TABLE, dtype=float)
    low, high = (delay_aimd.epoch_growth(printed + d, 1.0, coefficient, offset) for d in (-0.05, 0.05))
    # The edges s W + s q = v, and s q = 0.
    edges = [(w, 1.0, v) for some in (low, high) for w, v in zip(windows, some, strict=True)] + [(0.0, 1.0, 0.0)]
    most = 0
    for (a, b, u), (c, d, v) in combinations(edges, 2):
        if (det := a * d - b * c) == 0:
            continue
        s, sq = (u * d - b * v) / det, (a * v - u * c) / det
        at, slack = s * windows + sq, 1e-9 * high
        if s > 0 and sq >= -1e-9:
            most = max(most, int(np.sum((low - slack <= at) & (at <= high + slack))))
    return most


def _by_rounds(coefficient: float) -> int:
    """The same in whole round trips of 10 to 300 ms, with beta = 1/2 and without or with `QUEUE`."""
    windows = np.array(TABLE[0], dtype=float)
    return max(
        equal(delay_aimd.epoch_duration(windows, rtt, coefficient=coefficient, offset=offset, rounds=True, queue=queue))
        for rtt, offset, queue in product(np.arange(10, 301) / 1000, (0.0, 1.0), (0.0, QUEUE))
    )
