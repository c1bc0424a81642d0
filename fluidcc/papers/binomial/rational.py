"""The interval map of binary feedback in rational arithmetic: its steps, and cycles by their
itinerary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, NegativeRate, SolverError, Unsupported

_FLOATS = "exact=False with numbers in place of text"
_DIGITS = 100_000  # of a denominator, in bits: what is longer takes seconds a step


def as_fraction(value: Any, what: str) -> Fraction:
    """A number or text such as ``"1/3"`` as it is; a float is the binary fraction that it holds."""
    try:
        return Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InvalidInput(
            f"{what} is {shown(value)}; give a number, a Fraction or text such as '1/3'"
        ) from None


@dataclass(frozen=True)
class RationalFlow:
    """One class of flows: x + lam x**-k or x - sigma x**l, with integer powers."""

    k: int
    l: int
    lam: Fraction
    sigma: Fraction
    count: int

    def after(self, x: Fraction, down: bool) -> Fraction:
        """The rate after an interval."""
        new = x - self.sigma * x**self.l if down else x + self.lam * x**-self.k
        if new <= 0:
            raise NegativeRate(
                f"the rate {float(x):g} falls to {float(new):g} in one interval; lower sigma"
            )
        if new.denominator.bit_length() > _DIGITS:
            raise Unsupported(
                f"exact rates have grown to fractions of more than {_DIGITS} bits: with k = "
                f"{self.k}, l = {self.l} "
                f"their length multiplies at each step; take fewer intervals, or {_FLOATS}"
            )
        return new

    def affine(self, down: bool) -> tuple[Fraction, Fraction]:
        """(a, b) of the step x -> a x + b."""
        power, change = (self.l, -self.sigma) if down else (-self.k, self.lam)
        if power not in (0, 1):
            raise Unsupported(
                f"with k = {self.k}, l = {self.l} a step is not affine, so that its cycle is not "
                f"rational; take {_FLOATS} for the cycle in floating point, or give intervals= for "
                "exact steps"
            )
        return (1 + change, Fraction(0)) if power else (Fraction(1), change)


def iterate(
    flows: Sequence[RationalFlow], start: Sequence[Fraction], capacity: Fraction, steps: int
) -> list[list[Fraction]]:
    """The rates of the first `steps` intervals."""
    x, found = list(start), []
    for _ in range(steps):
        found.append(list(x))
        down = _total(flows, x) > capacity
        x = [f.after(rate, down) for f, rate in zip(flows, x, strict=True)]
    return found


def cycle(
    flows: Sequence[RationalFlow],
    start: Sequence[Fraction],
    capacity: Fraction,
    limit: int = 1 << 16,
) -> list[list[Fraction]]:
    """The rates along the periodic orbit to which those from `start` tend.

    The steps are affine, so where the itinerary (when all go down) repeats itself the orbit is the
    fixed point of its steps, and is then checked interval by interval. An orbit that touches the
    capacity where the flows go down is approached from above and never reached; it is the attractor
    all the same.

    Raises
    ------
    SolverError
        If the itinerary has not repeated itself within `limit` intervals.
    """
    x = list(start)
    went: list[bool] = []
    for f in flows:
        f.affine(False), f.affine(True)  # refuse what is not, before rates become long
    until = 256
    while until <= limit:
        while len(went) < until:
            went.append(_total(flows, x) > capacity)
            x = [f.after(rate, went[-1]) for f, rate in zip(flows, x, strict=True)]
        for period in _periods(went):
            found = _along(flows, went[-period:], capacity)
            if found:
                return found
        until *= 2
    raise SolverError(
        f"the itinerary did not become periodic in {limit} intervals; give intervals= and take "
        f"means"
    )


def _periods(went: list[bool]) -> Iterator[int]:
    """Shifts under which the last half of the itinerary looks the same."""
    half = len(went) // 2
    tail = bytes(went[-half:])
    every = bytes(went)
    for period in range(1, half // 2):
        if every[half - period : len(went) - period] == tail:
            yield period


def _along(
    flows: Sequence[RationalFlow], itinerary: Sequence[bool], capacity: Fraction
) -> list[list[Fraction]]:
    """The orbit that goes down just where `itinerary` says; empty if there is none."""
    x = [_fixed(f, itinerary) for f in flows]
    found = []
    for down in itinerary:
        total = _total(flows, x)
        if total < capacity if down else total > capacity:
            return []
        found.append(x)
        x = [f.after(rate, down) for f, rate in zip(flows, x, strict=True)]
    return found


def sums_of(
    flows: Sequence[RationalFlow], rows: list[list[Fraction]], capacity: Fraction
) -> tuple[Fraction, Fraction, Fraction, int]:
    """What is sent, lost and carried in the intervals of `rows`, and how many of them end in a
    decrease.
    """
    totals = [_total(flows, row) for row in rows]
    lost = sum((max(v - capacity, Fraction(0)) for v in totals), Fraction(0))
    sent = sum(totals, Fraction(0))
    falls = sum(
        after < before for before, after in zip(totals, totals[1:] + totals[:1], strict=True)
    )
    return sent, lost, sent - lost, falls


def _total(flows: Sequence[RationalFlow], x: Sequence[Fraction]) -> Fraction:
    return sum((f.count * rate for f, rate in zip(flows, x, strict=True)), Fraction(0))


def _fixed(flow: RationalFlow, itinerary: Sequence[bool]) -> Fraction:
    """The fixed point of all the steps of one flow together."""
    slope, shift = Fraction(1), Fraction(0)
    for down in itinerary:
        a, b = flow.affine(down)
        slope, shift = a * slope, a * shift + b
        if slope.denominator.bit_length() > _DIGITS:
            raise Unsupported(
                f"a cycle of {len(itinerary)} intervals is too long for exact arithmetic; take "
                f"{_FLOATS}"
            )
    if slope >= 1:
        raise Unsupported(
            f"k = {flow.k}, l = {flow.l} does not attract rates to an orbit; give intervals= "
            f"instead"
        )
    return shift / (1 - slope)
