"""Interval arithmetic: closed intervals that hold every value of an expression on a box, rounding
included.

In floats of many boxes at once, or in mpmath's numbers with as many digits as wanted. Each result
is rounded outward: sums, products and quotients by one unit in the last place, NumPy's functions
(right to 4 units) by 16, those of mpmath by 2^8.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

_INF, _MOST, _TINY = np.inf, np.finfo(float).max, 5e-324
RISING = {
    "exp": (-_INF, _INF), "expm1": (-_INF, _INF), "log": (0.0, _INF), "log1p": (-1.0, _INF),
    "sqrt": (0.0, _INF), "sinh": (-_INF, _INF), "cosh": (0.0, _INF), "tanh": (-_INF, _INF),
    "arcsinh": (-_INF, _INF), "arccosh": (1.0, _INF), "arctanh": (-1.0, 1.0),
    "arcsin": (-1.0, 1.0), "arctan": (-_INF, _INF), "floor": (-_INF, _INF), "ceil": (-_INF, _INF),
}  # fmt: skip
"""Functions that rise where they are defined, by NumPy's names, with the ends of where that is."""
_POLES = ("log", "log1p", "arctanh")  # they have no value at those ends
_LARGE = 2**31  # powers beyond have a sign, but no size
_VAST = 1e7  # mpmath's numbers get too long where such a number is in an exponent


def _value(name: str, x: Any, up: bool) -> Any:
    if x.dtype != object:
        return getattr(np, name)(x)
    f = getattr(mpmath, name.replace("arc", "a"))
    least = {"exp": 0, "expm1": -1, "sinh": -mpmath.inf}.get(name, 0)

    def one(v: Any) -> Any:
        if name in ("exp", "expm1", "sinh", "cosh") and abs(v) > _VAST:
            if v > 0:
                return mpmath.inf if up else f(_VAST)
            return f(-_VAST) if up else mpmath.mpf(least)
        return f(v)

    return np.frompyfunc(one, 1, 1)(x)


def _product(a: Any, b: Any) -> Any:
    """Return a b, never 0 unless one of them is."""
    found = a * b
    return (
        found if found.dtype == object else np.where(found == 0, np.copysign(_TINY, found), found)
    )


class Span:
    """Intervals, one a box.

    Parameters
    ----------
    lo, hi : (boxes,) array
        Their ends: floats, or numbers of mpmath.
    sure : (boxes,) array of bool
        Whether every part of the expression is defined, and real, all over the box.
    ulps : int
        By how many units in the last place rounding may have moved the ends.
    """

    def __init__(self, lo: Any, hi: Any, sure: Any, ulps: int = 0) -> None:
        lo, hi = np.where(lo == lo, lo, -_INF), np.where(hi == hi, hi, _INF)
        if ulps and lo.dtype == object:
            slack = mpmath.mpf(2) ** (8 - mpmath.mp.prec)
            lo, hi = lo - abs(lo) * slack, hi + abs(hi) * slack
        elif ulps:
            lo, hi, more = np.minimum(lo, _MOST), np.maximum(hi, -_MOST), ulps - 1
            # Signs are right, those of zeros too: what is not below zero is not rounded to below.
            low, high = np.where(np.signbit(lo), -_INF, 0.0), np.where(np.signbit(hi), -0.0, _INF)
            lo = np.nextafter(lo - more * (2.0**-52 * np.abs(lo) + _TINY) if more else lo, -_INF)
            hi = np.nextafter(hi + more * (2.0**-52 * np.abs(hi) + _TINY) if more else hi, _INF)
            lo, hi = np.maximum(lo, low), np.minimum(hi, high)
        self.lo, self.hi, self.sure = lo, hi, sure

    @classmethod
    def number(cls, value: Fraction, many: bool) -> Span:
        """Return the interval of a number, in floats or in mpmath's numbers."""
        if many:
            near, p, q = mpmath.mpf(value.numerator) / value.denominator, *value.as_integer_ratio()
            exact = q & (q - 1) == 0 and p.bit_length() <= mpmath.mp.prec
        else:
            try:
                near = float(value)
            except OverflowError:
                near = _INF if value > 0 else -_INF
            exact = abs(near) < _INF and Fraction(near) == value
        full = np.array([near], dtype=object if many else float)
        return cls(full, full, np.array([True]), 0 if exact else 1)

    def __neg__(self) -> Span:
        return Span(-self.hi, -self.lo, self.sure)

    def __add__(self, other: Span) -> Span:
        return Span(self.lo + other.lo, self.hi + other.hi, self.sure & other.sure, 1)

    def __mul__(self, other: Span) -> Span:
        pairs = [(a, b) for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        ends = [np.where((a == 0) | (b == 0), 0.0, _product(a, b)) for a, b in pairs]
        lo, hi = np.minimum.reduce(ends), np.maximum.reduce(ends)
        return Span(lo + 0.0, -(0.0 - hi), self.sure & other.sure, 1)

    def inverse(self) -> Span:
        """Return 1/x where x is not zero."""
        above, below = (self.lo >= 0) & (self.hi > 0), (self.lo < 0) & (self.hi <= 0)
        lo = np.where(above | (self.hi < 0), 1 / np.where(self.hi == 0, 1.0, self.hi), -_INF)
        hi = np.where(below | (self.lo > 0), 1 / np.where(self.lo == 0, 1.0, self.lo), _INF)
        return Span(lo, hi, self.sure & ((self.lo > 0) | (self.hi < 0)), 1)

    def power(self, n: int) -> Span:
        """Return x**n for a whole number n."""
        if n < 0:
            return self.power(-n).inverse()
        base = self if n % 2 else abs(self)
        if n > _LARGE:
            return Span(np.where(base.lo < 0, -_INF, 0.0), np.where(base.hi > 0, _INF, 0.0),
                        self.sure)  # fmt: skip
        return Span(base.lo**n, base.hi**n, self.sure, 1 if n == 1 else 16)

    def __pow__(self, other: Span) -> Span:
        """Return x**y for x of at least 0, and above it where y is not.

        Of a negative x it may be real where y is whole, and is not known.
        """
        found = (self.rising("log") * other).rising("exp")
        good = (self.lo > 0) | ((self.lo == 0) & (other.lo > 0))
        ceil = np.frompyfunc(mpmath.ceil, 1, 1) if other.lo.dtype == object else np.ceil
        unknown = (self.lo < 0) & (ceil(other.lo) <= other.hi)
        lo, hi = np.where(unknown, -_INF, found.lo), np.where(unknown, _INF, found.hi)
        return Span(lo, hi, self.sure & other.sure & good)

    def __abs__(self) -> Span:
        ends = np.abs(self.lo), np.abs(self.hi)
        inside = (self.lo <= 0) & (self.hi >= 0)
        return Span(np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends), self.sure)

    def rising(self, name: str) -> Span:
        """Return the value of one of the functions that rise."""
        low, high = RISING[name]
        inside = (self.lo >= low) & (self.hi <= high)
        if name in _POLES:
            inside = (self.lo > low) & ((self.hi < high) | (high == _INF))
        lo = _value(name, np.clip(self.lo, low, high), False)
        hi = _value(name, np.clip(self.hi, low, high), True)
        return Span(lo, hi, self.sure & inside, 0 if name in ("floor", "ceil") else 16)

    def cos(self) -> Span:
        """Return the cosine."""
        many = self.lo.dtype == object
        turn = 2 * (mpmath.pi if many else np.pi)
        slack = mpmath.mpf(2) ** (20 - mpmath.mp.prec) if many else 1e-12
        cos = np.frompyfunc(mpmath.cos, 1, 1) if many else np.cos
        small = np.abs(self.lo) + np.abs(self.hi) < 1e6
        lo, hi = np.where(small, self.lo, 0.0) / turn, np.where(small, self.hi, 0.0) / turn
        slack = slack * (1 + np.abs(lo) + np.abs(hi))
        first, last = cos(np.where(small, self.lo, 0.0)), cos(np.where(small, self.hi, 0.0))
        ceil = np.frompyfunc(mpmath.ceil, 1, 1) if many else np.ceil
        top = ceil(lo - slack) <= hi + slack
        bottom = ceil(lo - slack - 0.5) <= hi + slack - 0.5
        low = np.where(bottom | ~small, -1.0, np.minimum(first, last))
        high = np.where(top | ~small, 1.0, np.maximum(first, last))
        found = Span(low, high, self.sure, 16)
        return Span(np.maximum(found.lo, -1), np.minimum(found.hi, 1), self.sure)
