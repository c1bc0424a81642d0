"""The map of the interval model of binary feedback: runs of it, and its cycles, in floating point and exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput, NegativeRate, SolverError, Unsupported
from fluidcc.base.warned import warn
from fluidcc.simulation.interval_results import Orbit, Synchronized

__all__ = ["IntervalModel"]

_LIMIT = 200_000_000  # intervals in which a cycle is looked for: some seconds to a minute
_AT_ONCE = 5_000_000  # intervals times flows in one call of compiled code: some tens of milliseconds, for Ctrl-C
RATES = 2**28  # rates that are kept, at most: 2 GiB
INTERVALS = 10**10  # intervals times flows that are run, at most: minutes
EXACT = 200_000  # intervals in rational arithmetic, whose numbers grow longer from interval to interval
_TIE = 1e-12  # relative distance from the capacity below which rounding decides


@dataclass(frozen=True)
class IntervalModel:
    """The map with its constants, ready to run."""

    columns: dict[str, NDArray[Any]]
    capacity: Any
    hears: str
    delay: int
    missed: float
    seed: int
    exact: bool

    def __post_init__(self) -> None:
        if self.hears == "one" and np.any(self.columns["n"] > 1):
            raise InvalidInput("with hears='one' every flow needs its own rate: give initial= one rate a flow, and n=1")

    def _arguments(self) -> tuple[Any, ...]:
        from fluidcc.numerics.interval_input import floats

        c = self.columns
        powers = np.stack([c["k"], c["l"]], axis=1)
        cuts = np.flatnonzero(np.any(powers[1:] != powers[:-1], axis=1)) + 1
        blocks = np.array([0, *cuts, len(powers)], dtype=np.int64)
        return blocks, c["k"], c["l"], c["lam"], c["sigma"], c["n"], c["floor"], float(floats(self.capacity))

    def run(self, intervals: int, keep: bool) -> Synchronized:
        """The first intervals."""
        flows, most = len(self.columns["n"]), EXACT if self.exact else RATES if keep else INTERVALS
        if intervals * flows > most:
            hint = ", or keep=False" if keep and not self.exact else ""
            raise InvalidInput(
                f"intervals is {intervals}, and with {flows} rates in each at most {most // flows} are run; "
                f"give fewer{hint}"
            )
        if self.exact:
            return self._exact_run(intervals, keep)
        from fluidcc.numerics.intervals import FELL, advance

        x, sums = self.columns["initial"].copy(), np.zeros(5)
        rates = np.empty((intervals if keep else 0, len(x)))
        rng = np.random.default_rng(self.seed)
        arguments, pending, some = self._arguments(), np.zeros(self.delay), max(1, _AT_ONCE // len(x))
        for first in range(0, intervals, some):
            taken = advance(
                x, *arguments, pending, min(some, intervals - first), rates[first : first + some], sums,
                int(self.hears == "one"), self.missed, rng,
            )  # fmt: skip
            if taken == FELL:
                raise self._fell()
        counts = self.columns["n"].astype(np.int64)
        sent, lost, carried = (float(v) for v in sums[:3])
        return Synchronized(
            rates if keep else x[np.newaxis], float(self.capacity), counts, sent, lost, carried, int(sums[3]),
            int(sums[4]), intervals, self,
        )  # fmt: skip

    def orbit(self) -> Orbit:
        """The cycle."""
        if self.hears != "all" or self.missed > 0:
            raise Unsupported("feedback that is drawn at random has no periodic orbit; give intervals= and take means")
        if self.exact:
            return self._exact_orbit()
        from fluidcc.numerics.intervals import FELL, advance, find_cycle

        x, pending, rng = self.columns["initial"].copy(), np.zeros(self.delay), np.random.default_rng(0)
        arguments = self._arguments()
        mark, mark_pending, counts = x.copy(), pending.copy(), np.array([1, 0, 0])
        period, some = 0, max(1, _AT_ONCE // len(x))
        while period == 0 and counts[2] < _LIMIT:
            period = find_cycle(x, *arguments, pending, mark, mark_pending, counts, some, rng)
        if period == FELL:
            raise self._fell()
        if period == 0:
            raise SolverError(
                f"no periodic orbit in {counts[2]} intervals; with k + l near 0 rates approach one very slowly, or "
                "wander for ever: give intervals= and take means"
            )
        keep, sums = np.empty((period, len(x))), np.zeros(5)
        advance(x, *arguments, pending, period, keep, sums, 0, 0.0, rng)
        if np.min(np.abs(keep @ self.columns["n"] / arguments[-1] - 1)) < _TIE:
            warn(
                "the orbit passes the capacity within rounding, so that rounding decides where the flows go down; "
                "take exact=True, or another capacity",
                stacklevel=3,
            )
        shortest = _shortest(keep)
        sent, lost, carried, overs = (float(v) * shortest / period for v in sums[:4])
        return Orbit(shortest, keep[:shortest], sent, lost, carried, round(overs), arguments[-1])

    def _fell(self) -> NegativeRate:
        return NegativeRate("a rate fell to zero or below; for l < 1 (29) bounds n: lower sigma or n, or give floor=")

    # --- exactly ----------------------------------------------------------------------------------------------------

    def _exact_flows(self) -> tuple[Any, Fraction]:
        from fluidcc.numerics.rational import RationalFlow, as_fraction

        c = self.columns
        for name in ("k", "l"):
            if np.any(c[name] % 1):
                raise Unsupported(f"exact arithmetic needs integer powers, but {name} is {c[name]}")
        rows = zip(c["k"], c["l"], c["exact lam"], c["exact sigma"], c["n"], strict=True)
        return [RationalFlow(int(k), int(l), a, s, int(n)) for k, l, a, s, n in rows], as_fraction(
            self.capacity, "the capacity"
        )

    def _exact_run(self, intervals: int, keep: bool) -> Synchronized:
        from fluidcc.numerics.rational import iterate, sums_of

        flows, capacity = self._exact_flows()
        *rows, last = iterate(flows, list(self.columns["exact initial"]), capacity, intervals + 1)
        rates = _objects(rows, len(flows))
        sent, lost, carried, _ = sums_of(flows, rows, capacity)
        counts = self.columns["n"].astype(np.int64)
        over = int(np.sum(rates @ counts.astype(object) > capacity))
        kept = rates if keep else _objects([last], len(flows))
        return Synchronized(kept, capacity, counts, sent, lost, carried, over, over, intervals, self)

    def _exact_orbit(self) -> Orbit:
        from fluidcc.numerics.rational import cycle, sums_of

        flows, capacity = self._exact_flows()
        rows = cycle(flows, list(self.columns["exact initial"]), capacity)
        return Orbit(len(rows), _objects(rows, len(flows)), *sums_of(flows, rows, capacity), capacity)


def _shortest(keep: NDArray[np.float64]) -> int:
    """The shortest period of a cycle, up to rounding: in floating point a cycle may close only after several turns."""
    period = len(keep)
    for p in range(1, period // 2 + 1):
        if period % p == 0 and np.allclose(keep, np.roll(keep, p, axis=0), rtol=1e-11, atol=0.0):
            return p
    return period


def _objects(rows: list[list[Fraction]], width: int) -> NDArray[Any]:
    found = np.empty((len(rows), width), dtype=object)
    for i, row in enumerate(rows):
        found[i, :] = row
    return found
