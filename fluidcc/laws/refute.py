"""Counterexamples: points at which a statement fails are looked for in floats, and count if
intervals prove that it fails there and that all assumptions and conditions hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice, product
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import (
    Add,
    Expr,
    Float,
    Mul,
    Poly,
    PolynomialError,
    Rational,
    Symbol,
    factor,
    fraction,
    roots,
    together,
)

from fluidcc.laws.cover import Condition, Enclosing, exact_near, short, stands
from fluidcc.numerics.enclosure import Span

Point = dict[Symbol, Expr]
"""A value for each symbol, exactly."""

DIGITS = 50
_DECADES = (1.0, 6.0, 30.0, 120.0)
_EACH = 120  # random points of each
TRIES = 12  # of those that floats leave open
_STARTS, _AROUND, _ROUNDS = 8, 12, 70  # to make the gap small


def fits(symbol: Symbol, value: Expr) -> bool:
    """Return whether a value provably is what the assumptions on a symbol say."""
    return all(getattr(value, f"is_{k}", v) is v for k, v in symbol.assumptions0.items())


def _exact(x: float) -> Expr:
    return Rational(*Fraction(float(x)).as_integer_ratio())


@dataclass
class Hunt:
    """A search for a point at which `gap` does not stand as `kind` to zero.

    Attributes
    ----------
    kind, gap, where
        The statement and its conditions, in the symbols that are free.
    values : mapping of Symbol to Expr
        What the others are.
    fails : function of a point
        Whether the statement provably fails there.
    tried : int
        At how many points its conditions held and both sides were defined.
    held : int
        At how many of them it holds as far as floats tell.
    least : (float, point)
        The smallest gap of these, and where.
    starts : list of array
        From where a small gap is looked for.
    open : list of points
        Some at which floats do not tell.
    """

    kind: str
    gap: Expr
    where: Sequence[Condition]
    values: Mapping[Symbol, Expr]
    fails: Callable[[Point], bool]
    tried: int = 0
    held: int = 0
    least: tuple[float, dict[Symbol, float]] = (np.inf, {})
    starts: list[NDArray[np.float64]] = field(default_factory=list)
    open: list[dict[Symbol, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        used = (self.gap, *(f for _, f in self.where), *self.values.values())
        self.symbols = sorted(set().union(*(f.free_symbols for f in used)), key=str)
        self.rng = np.random.default_rng(7)
        given = set().union(*(f.atoms(Rational, Float) for f in used))
        sizes = {abs(float(v)) for v in given if v.is_finite and 1e-300 < abs(v) < 1e300}
        near = {a for v in sizes for a in (v, 1 / v, v / 2, 2 * v, v * 0.999, v * 1.001)}
        self.nice = np.array(sorted({1.0, 2.0, 3.0, 4.0, 0.5, *near}))

    def at(self, point: Mapping[Symbol, Any]) -> Point | None:
        """Return the counterexample at a point of the free symbols, if the statement provably fails
        there.
        """
        exact = {
            s: v if isinstance(v, Expr) else _exact(round(v) if s.is_integer else v)
            for s, v in point.items()
        }
        whole = exact | {s: f.subs(exact) for s, f in self.values.items()}
        return whole if self.fails(whole) else None

    def points(self) -> Point | None:
        """Look at points of many sizes, at those of the constants first."""
        n = len(self.symbols)
        sets = [np.repeat(self.nice[:, None], n, axis=1)]
        sets += [self.rng.choice(self.nice, (3 * _EACH, n))]
        sets += [10 ** self.rng.uniform(-d, d, (_EACH, n)) for d in _DECADES]
        found = np.concatenate(sets)
        found *= np.where(self.rng.random(found.shape) < 0.5, -1.0, 1.0)
        zeros = [np.zeros((1, n)), np.where(self.rng.random((20, n)) < 0.4, 0.0, found[-20:])]
        return self._look(self._within(np.concatenate([*zeros, found])), start=True)

    def _within(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        for k, s in enumerate(self.symbols):
            x = points[:, k]
            if s.is_integer:
                x = np.where(np.abs(x) < 2**52, np.rint(x), 1.0)
            if s.is_nonnegative or s.is_nonpositive:
                x = np.abs(x) * (1 if s.is_nonnegative else -1)
            if s.is_nonzero:
                x = np.where(x == 0, -1.0 if s.is_nonpositive else 1.0, x)
            points[:, k] = x
        return points

    def _values(self, points: NDArray[np.float64]) -> tuple[Span, Any, Any]:
        """Return the gaps, where conditions may hold and where both sides are defined."""
        every = np.full(len(points), True)
        spans = {s: Span(points[:, k], points[:, k], every) for k, s in enumerate(self.symbols)}
        with np.errstate(all="ignore"):
            inside = Enclosing(spans, np.zeros(len(points)))
            gap = inside(self.gap)
            surely, maybe = every, gap.sure & every
            for kind, f in self.where:
                stand = stands(kind, inside(f))
                surely, maybe = surely & stand[0], maybe & stand[1]
            lo, hi = (np.broadcast_to(v, every.shape) for v in (gap.lo, gap.hi))
        return Span(lo, hi, maybe), surely & maybe, maybe

    def _look(self, points: NDArray[np.float64], start: bool = False) -> Point | None:
        gap, surely, maybe = self._values(points)
        holds, may = stands(self.kind, gap)
        self.tried += int(np.sum(surely))
        self.held += int(np.sum(surely & holds))
        wrong, unclear = maybe & ~may, maybe & ~holds
        with np.errstate(divide="ignore"):  # the simplest first
            simple = np.argsort(np.sum(np.abs(np.log(np.abs(points))), axis=1), kind="stable")
        order = [i for i in simple if wrong[i]][:TRIES]
        order += [i for i in simple if unclear[i] and not wrong[i]][:TRIES]
        for i in order:
            point = dict(zip(self.symbols, map(float, points[i]), strict=True))
            if found := self.at(point):
                return found
            self.open.append(point)
        middle = _middle(gap, surely)
        known = np.where(surely & holds, np.abs(middle), np.inf)
        if len(known) and known.min() < self.least[0]:
            at = points[np.argmin(known)]
            self.least = float(known.min()), dict(zip(self.symbols, map(float, at), strict=True))
        if start:
            with np.errstate(all="ignore"):
                relative = middle / self._scale(points)
            for by in (middle, relative):
                chosen = np.argsort(np.where(np.isfinite(by), by, np.inf))
                self.starts += [points[i] for i in chosen[: _STARTS // 2] if surely[i]]
        return None

    def agreed(self) -> int:
        """Return at how many of the points that floats leave open the gap is 0 to `DIGITS` digits
        of its largest terms.
        """
        count = 0
        for point in self.open[: 2 * TRIES]:
            exact = {s: _exact(v) for s, v in point.items()}
            with mpmath.workdps(2 * DIGITS):
                inside = Enclosing.at(exact, 2 * DIGITS)
                gap, terms = inside(self.gap), map(inside, Add.make_args(self.gap))
                size = sum(abs(term).hi[0] for term in terms)
                small = abs(gap).hi[0] <= size * mpmath.mpf(10) ** -DIGITS
            count += bool(gap.sure.all() and small)
        return count

    def _scale(self, points: NDArray[np.float64]) -> Any:
        every = np.full(len(points), True)
        spans = {s: Span(points[:, k], points[:, k], every) for k, s in enumerate(self.symbols)}
        inside = Enclosing(spans, np.zeros(len(points)))
        return sum(abs(inside(term)).hi for term in Add.make_args(self.gap))

    def descend(self) -> Point | None:
        """Make the gap small from several starts, and look there."""
        if not self.starts or not self.symbols:
            return None
        best = np.array(self.starts)
        values = np.full(len(best), np.inf)
        relative = np.arange(len(best)) >= len(best) // 2
        for step in np.geomspace(5.0, 1e-13, _ROUNDS):
            moves = self.rng.normal(size=(len(best), _AROUND, len(self.symbols))) * step
            near = best[:, None, :] * np.exp(np.clip(moves, -60, 60))
            if step < 0.1:
                near[:, : _AROUND // 2] = best[:, None] + moves[:, : _AROUND // 2]
            near = self._within(near.reshape(-1, len(self.symbols)))
            gap, surely, _ = self._values(near)
            if np.any(surely & ~stands(self.kind, gap)[1]) and (found := self._look(near)):
                return found
            with np.errstate(all="ignore"):
                middle = _middle(gap, surely)
                middle = np.where(np.repeat(relative, _AROUND), middle / self._scale(near), middle)
            middle = np.where(middle == middle, middle, np.inf).reshape(len(best), _AROUND)
            chosen = np.argmin(middle, axis=1)
            lowest = middle[np.arange(len(best)), chosen]
            better = lowest < values
            new = near.reshape(len(best), _AROUND, -1)[np.arange(len(best)), chosen]
            best, values = np.where(better[:, None], new, best), np.where(better, lowest, values)
        if found := self._look(best.copy()):
            return found
        order = np.argsort(values)[:3]
        return next((p for i in order for p in map(self.at, self._meant(best[i])) if p), None)

    def _meant(self, x: NDArray[np.float64]) -> Iterator[dict[Symbol, Expr]]:
        """Yield points with exact coordinates that may be meant by one in floats."""
        choices = [[*exact_near(float(v)), _exact(v)][:4] for v in x]
        for chosen in islice(product(*choices), 24):
            yield dict(zip(self.symbols, chosen, strict=True))

    def touching(self, near: Sequence[dict[Symbol, float]] = ()) -> Point | None:
        """Look where the gap is exactly zero: at its roots by algebra, and beside points that
        intervals left.
        """
        for at in near:
            x = np.array([at.get(s, 1.0) for s in self.symbols])
            if found := next((p for p in map(self.at, self._meant(x)) if p), None):
                return found
        return next((p for p in map(self.at, islice(self._roots(), 40)) if p), None)

    def _roots(self) -> Iterator[dict[Symbol, Expr]]:
        gap, back = short(self.gap)
        if gap.count_ops() > 150 or back:
            return
        gaps = [gap, *([gap.diff(self.symbols[0])] if len(self.symbols) == 1 else [])]
        for f in gaps:
            above = fraction(factor(together(f)))[0]
            for part in Mul.make_args(above):
                base = part.as_base_exp()[0]
                for s in self.symbols:
                    for value in _solved(base, s):
                        for k in range(3):
                            point = {
                                t: _exact(self.nice[(3 * i + 5 * k) % len(self.nice)])
                                for i, t in enumerate(self.symbols)
                            }
                            yield point | {s: value.subs(point)}
                            if len(self.symbols) == 1:
                                break


def _middle(gap: Span, surely: Any) -> Any:
    """Return the middle of gaps, infinite where it is not known."""
    with np.errstate(invalid="ignore"):
        middle = gap.lo / 2 + gap.hi / 2
    return np.where(surely & (middle == middle), middle, np.inf)


def _solved(f: Expr, s: Symbol) -> list[Expr]:
    try:
        polynomial = Poly(f, s)
    except PolynomialError:
        return []
    if not 0 < polynomial.degree() <= 2 or any(c.has(s) for c in polynomial.all_coeffs()):
        return []
    return list(roots(polynomial))
