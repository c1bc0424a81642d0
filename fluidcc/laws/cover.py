"""The sign of an expression on a whole domain, by intervals: boxes are split until each is settled,
and where the expression vanishes at an end, its slopes settle it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import (
    Abs,
    Add,
    And,
    Basic,
    Dummy,
    Eq,
    Expr,
    Float,
    Ge,
    Gt,
    Heaviside,
    Integer,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Not,
    NumberSymbol,
    Or,
    Piecewise,
    Pow,
    Rational,
    Symbol,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceiling,
    cos,
    cosh,
    exp,
    factor,
    false,
    floor,
    fraction,
    log,
    pi,
    sign,
    simplify,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    together,
    true,
)
from sympy.codegen.cfunctions import expm1, log1p
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from fluidcc.base.errors import Unsupported
from fluidcc.numerics.enclosure import Span

Condition = tuple[str, Expr]
"""An expression and how it stands to zero: ">", ">=", "==" or "!="."""

_RISING = {
    exp: "exp", expm1: "expm1", log: "log", log1p: "log1p", sinh: "sinh", tanh: "tanh",
    asinh: "arcsinh", acosh: "arccosh", atanh: "arctanh", asin: "arcsin", atan: "arctan",
    floor: "floor", ceiling: "ceil",
}  # fmt: skip
_SMOOTH = (Add, Mul, Pow, exp, log, expm1, log1p, sinh, cosh, tanh, asinh, atan, sin, cos)


# --- an expression on boxes -----------------------------------------------------------------------


class Enclosing:
    """Intervals of expressions on given boxes, each part worked out once.

    Parameters
    ----------
    boxes : mapping of Symbol to Span
        The values of each symbol.
    like : array
        One value a box, of the kind that is worked with.
    """

    def __init__(self, boxes: dict[Any, Span], like: Any) -> None:
        self.known: dict[Any, Span] = dict(boxes)
        self.like = like

    @classmethod
    def at(cls, point: Mapping[Symbol, Expr], digits: int) -> Enclosing:
        """Return that of one point with exact coordinates, within ``mpmath.workdps(digits)``."""
        one = np.full(1, mpmath.mpf(0), dtype=object)
        made = cls({}, one)
        made.known.update({s: made(v) for s, v in point.items()})
        return made

    def __call__(self, f: Expr) -> Span:
        """Return the intervals of `f`."""
        if f not in self.known:
            self.known[f] = self._work_out(f)
        return self.known[f]

    def _work_out(self, f: Any) -> Span:
        if isinstance(f, (Rational, Float)):
            exact = Rational(f)
            return Span.number(Fraction(int(exact.p), int(exact.q)), self.like.dtype == object)
        if isinstance(f, NumberSymbol):
            digits = 20 if self.like.dtype != object else mpmath.mp.dps + 5
            near = Fraction(str(f.evalf(digits)))
            margin = near / 10 ** (digits - 2)
            ends = [Span.number(near + k * margin, self.like.dtype == object) for k in (-1, 1)]
            return Span(ends[0].lo, ends[1].hi, ends[0].sure)
        if isinstance(f, Piecewise):
            cases = [(self(value), *self.holds(condition)) for value, condition in f.args]
            return Span.chosen(cases)
        if isinstance(f, Pow):
            return self._power(f)
        args = [self(a) for a in f.args]
        if isinstance(f, (Add, Mul)):
            total = args[0]
            for a in args[1:]:
                total = total + a if isinstance(f, Add) else total * a
            return total
        if isinstance(f, (Max, Min)):
            return Span.extreme(isinstance(f, Max), args)
        if f.func in _RISING and len(args) == 1:
            return args[0].rising(_RISING[f.func])
        if isinstance(f, (sin, cos)):
            return (args[0] + -self(pi / 2) if isinstance(f, sin) else args[0]).cos()
        other = {tan: sin, cosh: exp, acos: asin, Abs: Abs, sign: Piecewise, Heaviside: Piecewise}
        if f.func not in other:
            raise Unsupported(f"no intervals are known of {f.func.__name__}")
        (x,) = args[:1]
        if isinstance(f, Abs):
            return abs(x)
        if isinstance(f, cosh):
            return abs(x).rising("cosh")
        if isinstance(f, tan):
            return self(sin(f.args[0])) * self(cos(f.args[0])).inverse()
        if isinstance(f, acos):
            return self(pi / 2) + -x.rising("arcsin")
        return self(f.rewrite(Piecewise))

    def _power(self, f: Pow) -> Span:
        base, power = f.args
        if power.is_Integer:
            return self(base).power(int(power))
        if isinstance(power, Rational) and power.q == 2:
            return self(base).rising("sqrt").power(int(power.p))
        return self(base) ** self(power)

    def holds(self, condition: Any) -> tuple[Any, Any, Any]:
        """Return where a condition surely holds, where it may, and where it is defined."""
        if condition in (true, false):
            known = np.array([condition is true])
            return known, known, np.array([True])
        if isinstance(condition, Not):
            surely, maybe, sure = self.holds(condition.args[0])
            return ~maybe, ~surely, sure
        if isinstance(condition, (And, Or)):
            surely, maybe, sure = zip(*map(self.holds, condition.args), strict=True)
            join = np.logical_and if isinstance(condition, And) else np.logical_or
            return reduce(join, surely), reduce(join, maybe), reduce(np.logical_and, sure)
        kind = {Gt: ">", Ge: ">=", Lt: ">", Le: ">=", Eq: "==", Ne: "!="}.get(type(condition))
        if kind is None:
            raise Unsupported(f"{condition} is no comparison")
        left, right = condition.args
        if isinstance(condition, (Lt, Le)):
            left, right = right, left
        gap = self(left - right)
        return *stands(kind, gap), gap.sure


def stands(kind: str, gap: Span) -> tuple[Any, Any]:
    """Return where the values surely stand as `kind` to zero, and where some of them may."""
    zero, apart = (gap.lo == 0) & (gap.hi == 0), (gap.lo > 0) | (gap.hi < 0)
    surely, maybe = {
        ">": (gap.lo > 0, gap.hi > 0),
        ">=": (gap.lo >= 0, gap.hi >= 0),
        "==": (zero, ~apart),
        "!=": (apart, ~zero),
    }[kind]
    return surely & gap.sure, maybe | ~gap.sure


# --- boxes are split until each is settled --------------------------------------------------------

BOXES, _AT_ONCE = 16_000, 1500
_NARROW = 2.0**-30
_LEAST = 1e-300

Box = dict[Symbol, tuple[float, float]]


class Left(NamedTuple):
    """What is not settled of a box: the smaller boxes (boxes, symbols, ends); and a point at which
    the statement fails in floats, if one was met.
    """

    boxes: NDArray[np.float64]
    point: dict[Symbol, float] | None = None

    def share(self, box: Box) -> float:
        """Return the share of the box that they take."""
        whole = np.prod([hi - lo for lo, hi in box.values()])
        return float(np.sum(np.prod(self.boxes[..., 1] - self.boxes[..., 0], axis=1)) / whole)

    def middles(self) -> list[list[float]]:
        """Return the middle of the first of them, and of all."""
        ends = [self.boxes[0], np.stack([self.boxes[..., 0].min(0), self.boxes[..., 1].max(0)], -1)]
        return [[*map(float, b.mean(axis=-1))] for b in ends]


class Work:
    """How many values of parts of expressions may still be worked out."""

    def __init__(self, most: int) -> None:
        self.rest = most


class Sign(NamedTuple):
    """Forms of one expression, all of the same sign, that are to stand as `kind` to zero where the
    conditions hold.
    """

    kind: str
    forms: tuple[Expr, ...]
    where: tuple[Condition, ...]
    work: Work

    def left(self, box: Box, most: int) -> Left:
        """Return what of the box cannot be settled with about so many smaller ones."""
        symbols = list(box)
        slopes = [[f.diff(s) for s in symbols] if _smooth(f) else None for f in self.forms]
        boxes = np.array([[box[s] for s in symbols]], dtype=float).reshape(1, len(symbols), 2)
        done, count = [np.empty((0, len(symbols), 2))], 0
        whole = [k for k, s in enumerate(symbols) if s.is_integer]
        for level in range(25 * len(symbols) if most <= _FEW else 240):
            boxes = _of_integers(boxes, symbols)
            count += len(boxes)
            if not len(boxes) or count > most or len(boxes) > _AT_ONCE or self.work.rest < 0:
                break
            middle = _middle(boxes)
            middle[:, whole] = np.floor(middle[:, whole])
            is_open, fails = self._look(boxes, middle, symbols, slopes)
            if np.any(fails):
                where = middle[np.argmax(fails)]
                return Left(
                    np.concatenate([*done, boxes]),
                    dict(zip(symbols, map(float, where), strict=True)),
                )
            boxes, middle = boxes[is_open], middle[is_open]
            narrow = (boxes[..., 1] - boxes[..., 0] <= _NARROW * boxes[..., 1]) | (
                boxes[..., 1] <= _LEAST
            )
            small = np.all(narrow, axis=1)
            done.append(boxes[small])
            boxes, middle, narrow = boxes[~small], middle[~small], narrow[~small]
            if not len(boxes):
                break
            middle[:, whole] += 0.5
            boxes = _split(boxes, middle, narrow, level)
        return Left(np.concatenate([*done, boxes]))

    def _look(self, boxes: Any, middle: Any, symbols: list[Symbol], slopes: Any) -> tuple[Any, Any]:
        """Return which boxes are not settled, and in the middle of which the statement fails."""
        like = np.zeros(len(boxes))
        with np.errstate(all="ignore"):
            inside = Enclosing(_spans(boxes, symbols), like)
            centre = Enclosing(_spans(np.stack([middle, middle], -1), symbols), like)
            is_open, met = np.full(len(boxes), True), np.full(len(boxes), True)
            for kind, f in self.where:
                is_open &= stands(kind, inside(f))[1]
                met &= stands(kind, centre(f))[0]
            fails = met & False
            for f, by in zip(self.forms, slopes, strict=True):
                here, whole = centre(f), inside(f)
                fails |= met & here.sure & ~stands(self.kind, here)[1]
                if self.kind == "==":
                    continue
                is_open &= ~stands(self.kind, Span(whole.lo, whole.hi, True))[0]
                if by is not None and np.any(is_open):
                    tight = _by_slopes(f, [inside(g) for g in by], whole, here, boxes, middle,
                                       symbols)  # fmt: skip
                    is_open &= ~stands(self.kind, tight)[0]
        self.work.rest -= (len(inside.known) + len(centre.known)) * (1 + len(boxes) // 500)
        return is_open, fails


def _spans(boxes: Any, symbols: Sequence[Symbol]) -> dict[Any, Span]:
    sure = np.full(len(boxes), True)
    return {s: Span(boxes[:, k, 0], boxes[:, k, 1], sure) for k, s in enumerate(symbols)}


def _on(box: Box) -> Enclosing:
    return Enclosing(_spans(np.array([[*box.values()]]), list(box)), np.zeros(1))


def _by_slopes(
    f: Expr, slopes: list[Span], whole: Span, here: Span, boxes: Any, middle: Any, symbols: Any
) -> Span:
    """Return intervals of `f` by the mean value theorem, and at the ends to which it falls."""
    mean, low = here, boxes.copy()
    for k, slope in enumerate(slopes):
        away = Span(boxes[:, k, 0] - middle[:, k], boxes[:, k, 1] - middle[:, k], True, 1)
        mean = mean + slope * away
        low[:, k, 1] = np.where(slope.lo >= 0, boxes[:, k, 0], low[:, k, 1])
        low[:, k, 0] = np.where(slope.hi <= 0, boxes[:, k, 1], low[:, k, 0])
    face = Enclosing(_spans(low, symbols), whole.lo)(f)
    lo = np.where(mean.lo == mean.lo, np.maximum(mean.lo, face.lo), face.lo)
    return Span(lo, whole.hi, whole.sure)  # it must be defined all over the box


def _of_integers(boxes: Any, symbols: list[Symbol]) -> Any:
    for k, s in enumerate(symbols):
        if s.is_integer:
            boxes[:, k, 0], boxes[:, k, 1] = np.ceil(boxes[:, k, 0]), np.floor(boxes[:, k, 1])
            boxes = boxes[boxes[:, k, 0] <= boxes[:, k, 1]]
    return boxes


def _middle(boxes: Any) -> Any:
    """Return a point of each box: by factors where its ends are of different size."""
    lo, hi = boxes[..., 0], boxes[..., 1]
    tiny = np.minimum(hi, 1.0) * hi / 16
    wide = np.sqrt(np.maximum(lo, _LEAST)) * np.sqrt(hi)
    found = np.where(lo == 0, tiny, np.where(hi > 4 * lo, wide, lo / 2 + hi / 2))
    return np.clip(found, lo, hi)


def _split(boxes: Any, middle: Any, narrow: Any, level: int) -> Any:
    """Split each box in two, in its coordinates by turns but those that are narrow."""
    n = boxes.shape[1]
    order = (np.arange(n) + level) % n
    k = order[np.argmin(narrow[:, order], axis=1)]
    i = np.arange(len(boxes))
    below, above = boxes.copy(), boxes.copy()
    below[i, k, 1] = above[i, k, 0] = middle[i, k]
    return np.concatenate([below, above])


def _smooth(f: Expr) -> bool:
    return all(isinstance(g, _SMOOTH) or g.is_Atom for g in _parts(f))


def _parts(f: Basic) -> Iterator[Any]:
    yield f
    for a in f.args:
        yield from _parts(a)


def continuous(f: Expr, box: Box | None = None) -> bool:
    """Return whether `f` is provably smooth where its symbols are what their assumptions say (and
    within the box).
    """
    inside = _on(box) if box else None

    def above(g: Expr, what: str) -> bool:
        if getattr(g, f"is_{what}"):
            return True
        if inside is None:
            return False
        span = inside(g)
        return bool(span.lo[0] > 0 or (what == "nonzero" and span.hi[0] < 0))

    if not _smooth(f):
        return False
    with np.errstate(all="ignore"):
        return all(
            above(g.args[0] + (1 if isinstance(g, log1p) else 0), "positive")
            if isinstance(g, (log, log1p)) or (isinstance(g, Pow) and not g.exp.is_integer)
            else above(g.base, "nonzero")
            if isinstance(g, Pow) and not g.exp.is_nonnegative
            else True
            for g in _parts(f)
        )


# --- where it vanishes at an end, slopes settle it ------------------------------------------------

_DEPTH = 4
_PRECISIONS = (30, 100, 400)  # digits
_FEW = 600  # boxes for a slope, and for a first look


def forms(kind: str, f: Expr) -> tuple[Expr, ...]:
    """Return forms of `f` of the same sign where it is defined: the intervals of one may be tighter
    than those of another.
    """
    found = [f]
    if f.count_ops() < 150:
        others = (f, f.rewrite(exp)) if f.has(HyperbolicFunction) else (f,)
        found += [_bare(kind, g) for g in others]
    return tuple(dict.fromkeys(found))


def short(f: Expr) -> tuple[Expr, dict[Expr, Expr]]:
    """Return `f` with symbols of the same sign for exponentials, powers, sines and so on with
    large numbers in their exponents, and what they stand for: algebra would write them out.
    """
    back: dict[Expr, Expr] = {}
    for g in f.atoms(exp, Pow, HyperbolicFunction, TrigonometricFunction):
        power = g.args[-1]
        if any(abs(number) > 60 or number.q > 60 for number in power.atoms(Rational)):
            known = {k: True for k in ("positive", "nonnegative", "real") if getattr(g, f"is_{k}")}
            back[Dummy("g", **known)] = g
    return f.xreplace({g: d for d, g in back.items()}) if back else f, back


def _bare(kind: str, f: Expr) -> Expr:
    """Return `f` without the factors whose sign is known."""
    small, back = short(f)
    above, below = fraction(factor(together(small)))
    kept: list[Expr] = []
    for part in (*Mul.make_args(above), *Mul.make_args(below)):
        if part.is_negative:
            kept.append(Integer(-1))
        elif not (part.is_positive or (kind == ">=" and part.is_nonnegative)):
            odd = isinstance(part, Pow) and part.exp.is_odd and part.exp.is_positive
            kept.append(part.base if odd else part)
    return Mul(*kept).xreplace(back)


def unsettled(of: Sign, box: Box, most: int, depth: int = _DEPTH) -> Left:
    """Return what of a box is not settled by intervals, nor by slopes where it vanishes at an end.

    Symbols that are positive do not have the end 0.
    """
    left = of.left(box, min(most, _FEW))
    if left.point is None and len(left.boxes):
        left = _without_ends(of, left, box, depth)
    if left.point is None and len(left.boxes) and most > _FEW:
        left = of.left(box, most)
        if left.point is None and len(left.boxes):
            left = _without_ends(of, left, box, depth)
    return left


def _holds(kind: str, f: Expr, box: Box, depth: int, work: Work) -> bool:
    left = unsettled(Sign(kind, forms(kind, f), (), work), box, _FEW, depth)
    return left.point is None and not len(left.boxes)


def _without_ends(of: Sign, left: Left, box: Box, depth: int) -> Left:
    """Return what slopes do not settle, cluster by cluster where there is one symbol."""
    if depth == 0 or of.kind not in (">", ">="):
        return left
    boxes = left.boxes
    if boxes.shape[1] == 1:
        boxes = boxes[np.argsort(boxes[:, 0, 0])]
        apart = boxes[1:, 0, 0] > np.maximum.accumulate(boxes[:-1, 0, 1])
        clusters = np.split(boxes, np.flatnonzero(apart) + 1)
    else:
        clusters = [boxes]
    kept = [boxes[:0]]
    for cluster in clusters:
        ends = zip(cluster[..., 0].min(0), cluster[..., 1].max(0), strict=True)
        around = {s: (float(lo), float(hi)) for s, (lo, hi) in zip(box, ends, strict=True)}
        if not any(_from_ends(of.kind, f, around, depth, of.work) for f in of.forms):
            kept.append(cluster)
    return Left(np.concatenate(kept))


def _from_ends(kind: str, f: Expr, box: Box, depth: int, work: Work) -> bool:
    """Return whether `f` stands as `kind` to zero because it does, or is zero, at one end of a
    symbol's range, and does not fall from there (rises, if wanted).
    """
    if not continuous(f, box):
        return False
    for s, (lo, hi) in box.items():
        if s.is_integer:
            continue
        others = {k: v for k, v in box.items() if k != s}
        slope = f.diff(s)
        # With one symbol, a slope that is zero only at single points is enough: if it is not zero
        # at one, it is zero nowhere else, as all is analytic.
        middle = {s: Rational((lo + hi) / 2)}
        wanted = ">=" if not others and exactly("!=", slope, middle) else kind
        if _begins(kind, f, s, lo, others, work) and _holds(wanted, slope, box, depth - 1, work):
            return True
        if _begins(kind, f, s, hi, others, work) and _holds(wanted, -slope, box, depth - 1, work):
            return True
        if others or kind == ">":
            continue
        for c in exact_near((lo + hi) / 2):  # it touches zero within
            reach = max(abs(hi - c), abs(c - lo))
            if not reach.is_finite or f.subs(s, c) != 0:
                continue
            v = Symbol("v", nonnegative=True)
            around = {v: (0.0, 2 * float(reach))}
            if all(_holds(kind, f.subs(s, c + k * v), around, depth - 1, work) for k in (1, -1)):
                return True
    return False


def _begins(kind: str, f: Expr, s: Symbol, c: float, others: Box, work: Work) -> bool:
    """Return whether `f` stands as `kind` to zero at s = c; it may be 0 there if s is never c."""
    wanted = ">=" if c == 0 and s.is_positive else kind
    here = {**others, s: (c, c)}
    with np.errstate(all="ignore"):
        sure = _on(here)(f).sure.all()
    if not sure:
        return False  # it has no value there, and what it tends to is another question
    place = Rational(c)
    if place.q <= 1024 and not short(f)[1] and abs(place.p) <= 1024:
        start = f.subs(s, place)
        if is_zero(start):
            return wanted == ">="
        if start.is_number:
            return exactly(wanted, start, {}) is True
    left = Sign(wanted, (f,), (), work).left(here, _FEW)
    return left.point is None and not len(left.boxes)


def exactly(kind: str, f: Expr, point: Mapping[Symbol, Expr]) -> bool | None:
    """Return whether `f` stands as `kind` to zero at a point, and None where that is not known, or
    a part of `f` is not defined there.
    """
    for digits in _PRECISIONS:
        with mpmath.workdps(digits):
            gap = Enclosing.at(point, digits)(f)
            surely, maybe = stands(kind, gap)
        if not gap.sure.all():
            return None
        if surely.all() or not maybe.any():
            return bool(surely.all())
    numbers = (number for v in point.values() for number in v.atoms(Rational))
    long = any(max(abs(number.p), number.q) > 1000 for number in numbers)
    if short(f)[1] or (long and any(g.exp.free_symbols for g in f.atoms(Pow))):
        return None  # SymPy would write the powers out
    return kind in (">=", "==") if is_zero(f.subs(point)) else None


def is_zero(value: Expr) -> bool:
    """Return whether an expression is provably zero."""
    if value == 0 or value.is_zero:
        return True
    return value.is_finite is not False and value.count_ops() < 60 and simplify(value) == 0


def exact_near(x: float) -> Iterator[Expr]:
    """Yield numbers of simple form that may be meant by `x`."""
    if not 0 < abs(x) < 1e6:
        return
    kinds = [
        (x, lambda r: r), (x / np.pi, lambda r: r * pi), (x * x, lambda r: sign(x) * sqrt(r)),
        (np.exp(min(x, 20.0)), log), (np.log(abs(x)), exp),
    ]  # fmt: skip
    for value, back in kinds:
        for most in (1, 12, 1000):
            near = Fraction(float(value)).limit_denominator(most)
            if (abs(near.numerator) <= 10_000 and near > 0) or back is kinds[0][1]:
                found = back(Rational(near.numerator, near.denominator))
                if abs(float(found) - x) <= 1e-6 * abs(x):
                    yield found
                    break


def pieces(symbols: Sequence[Symbol]) -> Iterator[tuple[dict[Symbol, Expr], Box]]:
    """Yield maps of the domain onto boxes: what is put for each symbol, and the range of the new
    ones, from 0 to 1, or to 1024 of whole numbers.
    """
    choices = []
    for s in symbols:
        whole = bool(s.is_integer)
        near = Symbol(s.name, nonnegative=True, nonzero=s.is_nonzero, integer=whole or None)
        far = Symbol(s.name, positive=True)
        last = 1024.0 if whole else 1.0
        signs = [1] if s.is_nonnegative else [-1] if s.is_nonpositive else [1, -1]
        choices.append(
            [(s, k * near, near, (1.0 if whole and s.is_nonzero else 0.0, last)) for k in signs]
            + [(s, k / far, far, (0.0, 1 / last)) for k in signs]
        )
    for chosen in product(*choices):
        yield {s: put for s, put, _, _ in chosen}, {u: ends for _, _, u, ends in chosen}
