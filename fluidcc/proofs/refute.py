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
from scipy.optimize import minimize
from sympy import (
    Add,
    Expr,
    Integer,
    Rational,
    Symbol,
    cosh,
    exp,
    lambdify,
    preorder_traversal,
    sinh,
    tanh,
)

from fluidcc.base.errors import Unsupported
from fluidcc.proofs.algebra import Condition
from fluidcc.proofs.cover import Enclosing, exact_near, exactly, stands
from fluidcc.proofs.steps import spend

Point = dict[Symbol, Expr]
"""A value for each symbol, exactly."""

DIGITS = 1000
_DECADES = (1.0, 6.0, 30.0, 120.0)
_EACH = 120  # random points of each
_TRIES = 12  # of those that floats leave open
_PARTS, _FINE = 24, 60  # of an expression whose zeros are looked for, and digits of these
_EVALUATED = 10  # times, about, until a zero is found
_DESCENTS, _DESCENT = 4, 4  # tries, and steps for each operation
_GRID = 10 ** np.linspace(-6.03, 6.01, 400)
_FAR = *(Rational(10) ** k for k in (10, 30, 100)), *(exp(k) for k in (1500, 10_000, 100_000))


# What of a real number its sign tells.
_OF_SIGN = ("positive", "negative", "zero", "real", "complex", "finite", "imaginary", "hermitian")


def fits(symbol: Symbol, value: Expr) -> bool:
    """Return whether a value provably is what the assumptions on a symbol say."""
    known = symbol.assumptions0
    if value.is_Rational:
        return all(getattr(value, f"is_{k}", v) is v for k, v in known.items())
    # SymPy would write exp(100000) out in digits for its sign.
    signs = ((1, ">", value), (-1, ">", -value), (0, "==", value))
    sign = next((Integer(n) for n, kind, f in signs if exactly(kind, f, {})), None)
    return sign is not None and all(
        getattr(sign if k.endswith(_OF_SIGN) else value, f"is_{k}", v) is v
        for k, v in known.items()
    )


def _exact(x: float) -> Expr:
    return Rational(*Fraction(float(x)).as_integer_ratio())


def _spread(found: list[int]) -> list[int]:
    """Return a few of many: the first ones, and some of the others."""
    return [*found[: _TRIES // 2], *found[_TRIES // 2 :: max(1, 2 * len(found) // _TRIES)]]


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
    open: list[Point] = field(default_factory=list)

    def __post_init__(self) -> None:
        used = (self.gap, *(f for _, f in self.where), *self.values.values())
        self.symbols = sorted(set().union(*(f.free_symbols for f in used)), key=str)
        given = set().union(*(f.atoms(Rational) for f in used))
        sizes = {abs(float(v)) for v in given if 1e-300 < abs(v) < 1e300}
        near = {a for v in sizes for a in (v, 1 / v, v / 2, 2 * v, v * 0.999, v * 1.001)}
        self.nice = np.array(sorted({1.0, 2.0, 3.0, 4.0, 0.5, *near}))

    def first(self, points: Iterator[Point]) -> Point | None:
        """Return the first of some points of the free symbols that is a counterexample."""
        free = {s: Integer(1) for s in self.symbols}
        for some in points:
            point = free | some
            whole = point | {s: f.subs(point) for s, f in self.values.items()}
            if self.fails(whole):
                return whole
        return None

    def points(self) -> Point | None:
        """Look at points of many sizes, at those of the constants first."""
        n, rng = len(self.symbols), np.random.default_rng(7)
        sets = [rng.choice(self.nice, (3 * _EACH, n))]
        sets += [10 ** rng.uniform(-d, d, (_EACH, n)) for d in _DECADES]
        found = np.concatenate(sets)
        found *= np.where(rng.random(found.shape) < 0.5, -1.0, 1.0)
        same = np.repeat(np.r_[self.nice, -self.nice][:, None], n, axis=1)
        zeros = [same, np.zeros((1, n)), np.where(rng.random((20, n)) < 0.4, 0.0, found[-20:])]
        points = np.concatenate([*zeros, found])
        for s, x in zip(self.symbols, points.T, strict=True):  # as their assumptions say
            if s.is_integer:
                x[:] = np.where(np.abs(x) < 2**52, np.rint(x), 1.0)
            if s.is_nonnegative or s.is_nonpositive:
                x[:] = np.abs(x) * (1 if s.is_nonnegative else -1)
            if s.is_nonzero:
                x[x == 0] = -1.0 if s.is_nonpositive else 1.0
        with np.errstate(all="ignore"):
            inside = Enclosing.on(self.symbols, points, points)
            gap = inside(self.gap)
            surely, maybe = (gap.sure & met for met in inside.meets(self.where))
            holds, may = stands(self.kind, gap)
            simple = np.argsort(np.sum(np.abs(np.log(np.abs(points))), axis=1), kind="stable")
        self.tried += int(np.sum(surely & np.full(len(points), True)))
        self.held += int(np.sum(surely & holds & np.full(len(points), True)))
        for some in (maybe & ~may, maybe & may & ~holds):
            some = np.broadcast_to(some, len(points))
            self.open += [
                dict(zip(self.symbols, map(_exact, points[i]), strict=True))
                for i in _spread([i for i in simple if some[i]])
            ]
        return self.first(iter(self.open))

    def far(self) -> Iterator[Point]:
        """Yield points towards the ends of the domain, some beyond what floats can hold."""
        for size, *ways in product(_FAR, *([(1, -1)] * len(self.symbols))):
            values = zip(self.symbols, (size**way for way in ways), strict=True)
            yield {s: v if fits(s, v) else -v for s, v in values}

    def least(self) -> Iterator[Point]:
        """Yield points with exact coordinates near to where the gap is least under the conditions,
        by descent in floats from a few points.
        """
        parts = [self.gap, *(f for kind, f in self.where if kind in (">", ">="))]
        equal = [f for kind, f in self.where if kind == "=="]
        if any(s.is_integer for s in self.symbols) or not self.symbols:
            return
        gap, *least = (lambdify([self.symbols], f, "numpy") for f in parts)
        same = [lambdify([self.symbols], f, "numpy") for f in equal]
        bounds = [(0.0 if s.is_nonnegative else None, 0.0 if s.is_nonpositive else None)
                  for s in self.symbols]  # fmt: skip
        rng = np.random.default_rng(11)
        for _ in range(_DESCENTS):
            spend(_DESCENT * sum(f.count_ops() for f in (*parts, *equal)))
            start = rng.uniform(0.1, 3, len(bounds)) * np.where(
                [s.is_nonnegative for s in self.symbols], 1, rng.choice([-1, 1], len(bounds))
            )
            try:
                with np.errstate(all="ignore"):
                    found = minimize(
                        gap, start, method="SLSQP", bounds=bounds, tol=1e-14,
                        constraints=[{"type": "ineq", "fun": f} for f in least]
                        + [{"type": "eq", "fun": f} for f in same],
                    ).x  # fmt: skip
            except (TypeError, ValueError, ZeroDivisionError, OverflowError, NameError):
                continue
            if np.isfinite(found).all():
                yield from self.meant(dict(zip(self.symbols, map(float, found), strict=True)))

    def turns(self) -> Iterator[Point]:
        """Yield points at which a part of the gap vanishes or turns while one symbol moves: a peak
        is there, however narrow.
        """
        parts = [g for f in (self.gap, *(f for _, f in self.where)) for g in preorder_traversal(f)]
        parts = [g for g in dict.fromkeys(parts) if g.free_symbols and not g.is_Atom][:_PARTS]
        grid = np.r_[-_GRID[::-1], _GRID]
        ones = {s: Integer(1) if fits(s, Integer(1)) else Integer(-1) for s in self.symbols}
        for rest, s in product([*self.open[:2], ones], self.symbols):
            along = _GRID if s.is_nonnegative else -_GRID[::-1] if s.is_nonpositive else grid
            fixed = {other: v for other, v in rest.items() if other != s}
            for g in () if s.is_integer else parts:
                for f in [h := g.subs(fixed), h.diff(s)]:
                    for root in _zeros(f, s, along):
                        yield {**rest, s: root}

    def agreed(self) -> int:
        """Return at how many of the points that floats leave open the gap is 0 to `DIGITS` digits
        of its largest terms, though none of a sum in it is lost beside others there.
        """
        count, gap = 0, self.gap.rewrite([sinh, cosh, tanh], exp)
        least = mpmath.mpf(10) ** -DIGITS
        sums = [*gap.atoms(Add)] if not gap.is_Add else [*gap.atoms(Add), gap]
        for point in self.open:
            with mpmath.workdps(2 * DIGITS):
                inside = Enclosing.at(point)
                parts = [[abs(inside(term)).hi[0] for term in g.args] for g in sums]
                lost = any(0 < v < least * sum(of) for of in parts for v in of)
                size = sum(abs(inside(term)).hi[0] for term in Add.make_args(gap))
                small = inside(gap).sure.all() and abs(inside(gap)).hi[0] <= size * least
            count += bool(small and not lost)
        return count

    def meant(self, at: Mapping[Symbol, float]) -> Iterator[Point]:
        """Yield points with exact coordinates that may be meant by one in floats."""
        choices = [[*exact_near(x), _exact(x)][:4] for x in (at.get(s, 1.0) for s in self.symbols)]
        for chosen in islice(product(*choices), 24):
            yield dict(zip(self.symbols, chosen, strict=True))


def seen(hunts: Sequence[Hunt]) -> str:
    """What was seen at the points of some searches."""
    held, tried = (sum(getattr(hunt, of) for hunt in hunts) for of in ("held", "tried"))
    if hunts[0].kind == "==":
        return f"both sides agree at {tried} points of all sizes as far as floats tell"
    others = ", and floats do not tell at the others" if held < tried else ""
    return f"it holds at {held} of {tried} points of all sizes{others}"


def _zeros(f: Expr, s: Symbol, along: Any) -> Iterator[Expr]:
    """Yield the zeros of `f` between neighbours of some values of `s`, to `_FINE` digits."""
    try:
        with np.errstate(all="ignore"):
            inside = Enclosing.on([s], along[:, None], along[:, None])(f)
    except Unsupported:
        return
    with np.errstate(all="ignore"):
        value = np.where(inside.sure, inside.lo / 2 + inside.hi / 2, np.nan) + 0 * along
        found = np.flatnonzero(value[:-1] * value[1:] < 0)
    exact, steps = lambdify(s, f, "mpmath"), f.count_ops()
    for ends in (along[i : i + 2].tolist() for i in found[:_TRIES]):
        spend(_EVALUATED * steps)
        with mpmath.workdps(_FINE):
            try:
                root = mpmath.findroot(exact, ends, solver="anderson", tol=mpmath.mpf(10) ** -_FINE)
            except (ValueError, ZeroDivisionError, TypeError, OverflowError):
                continue
            if mpmath.isfinite(root) and not mpmath.im(root):
                yield from (_exact(float(root)), Rational(str(mpmath.re(root))))
