"""The sign of an expression on a whole domain, by intervals: boxes are split until each is settled,
and where the expression vanishes at a point, Taylor's theorem settles it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import islice, product
from operator import add, mul
from types import MappingProxyType
from typing import Any, NamedTuple

import mpmath
import numpy as np
from sympy import (
    Add,
    Expr,
    Float,
    Integer,
    Matrix,
    Mul,
    NumberSymbol,
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
    expand,
    expand_log,
    floor,
    fraction,
    log,
    pi,
    powsimp,
    sign,
    simplify,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    together,
)

from fluidcc.base.errors import Unsupported
from fluidcc.numerics.enclosure import Span
from fluidcc.proofs.algebra import STEPS, Condition, factored, settled, short, smooth
from fluidcc.proofs.steps import spend

_RISING = {
    exp: "exp", log: "log", sinh: "sinh", tanh: "tanh", asinh: "arcsinh", acosh: "arccosh",
    atanh: "arctanh", asin: "arcsin", atan: "arctan", floor: "floor", ceiling: "ceil",
}  # fmt: skip
_REWRITTEN = {
    sin: cos, tan: cos, acos: asin, cosh: exp,
}  # fmt: skip


# --- an expression on boxes -----------------------------------------------------------------------


class Enclosing:
    """Intervals of expressions on given boxes, each part worked out once.

    Parameters
    ----------
    known : mapping of Symbol to Span
        The values of each symbol.
    exact : bool
        Whether they are numbers of mpmath.
    """

    def __init__(self, known: dict[Any, Span], exact: bool = False) -> None:
        self.known = known
        self.exact = exact
        self.steps = 1 + max((np.size(v.lo) for v in known.values()), default=0) // 500

    @classmethod
    def on(cls, symbols: Sequence[Symbol], lo: Any, hi: Any) -> Enclosing:
        """Return those of boxes with these ends, which are of shape (boxes, symbols)."""
        sure = np.full(len(lo), True)
        return cls({s: Span(lo[:, k], hi[:, k], sure) for k, s in enumerate(symbols)})

    @classmethod
    def at(cls, point: Mapping[Symbol, Expr]) -> Enclosing:
        """Return those of one point with exact coordinates, in the digits that mpmath works in."""
        made = cls({}, True)
        made.known.update({s: made(v) for s, v in point.items()})
        return made

    def __call__(self, f: Expr) -> Span:
        """Return the intervals of `f`."""
        if f not in self.known:
            spend(self.steps)
            self.known[f] = self._work_out(f)
        return self.known[f]

    def _work_out(self, f: Any) -> Span:
        if isinstance(f, Rational):
            return Span.number(Fraction(int(f.p), int(f.q)), self.exact)
        if isinstance(f, NumberSymbol):
            digits = mpmath.mp.dps + 10 if self.exact else 25
            return Span.number(Fraction(str(f.evalf(digits))), self.exact)
        if f.func in _REWRITTEN:
            return self(f.rewrite(_REWRITTEN[f.func]))
        if isinstance(f, Mul) and f.args[0] == -1:
            return -self(Mul(*f.args[1:]))
        args = [self(a) for a in f.args]
        if isinstance(f, (Add, Mul)):
            return reduce(add if isinstance(f, Add) else mul, args)
        if isinstance(f, Pow):
            power = f.exp
            if power.is_Rational and power.q <= 2:
                root = args[0] if power.q == 1 else args[0].rising("sqrt")
                return root.power(int(power.p))
            return args[0] ** args[1]
        if isinstance(f, cos):
            return args[0].cos()
        if f.func not in _RISING or len(args) > 1:
            raise Unsupported(f"no intervals are known of {f.func.__name__}")
        return args[0].rising(_RISING[f.func])

    def meets(self, where: Sequence[Condition]) -> tuple[Any, Any]:
        """Return where conditions surely hold, and where they may."""
        found = [stands(kind, self(f)) for kind, f in where]
        surely, maybe = zip((np.array(True), np.array(True)), *found, strict=True)
        return reduce(np.logical_and, surely), reduce(np.logical_and, maybe)


def stands(kind: str, gap: Span) -> tuple[Any, Any]:
    """Return where the values surely stand as `kind` to zero, and where some of them may."""
    zero, apart = (gap.lo == 0) & (gap.hi == 0), (gap.lo > 0) | (gap.hi < 0)
    surely, maybe = {
        ">": (gap.lo > 0, gap.hi > 0),
        ">=": (gap.lo >= 0, gap.hi >= 0),
        "==": (zero, ~apart),
        "!=": (apart, ~zero),
    }[kind]
    return surely & gap.sure, maybe | np.logical_not(gap.sure)


_PRECISIONS = (30, 100, 400)  # digits


def exactly(kind: str, f: Expr, point: Mapping[Symbol, Expr]) -> bool | None:
    """Return whether `f` stands as `kind` to zero at a point, and None where that is not known, or
    a part of `f` is not defined there.
    """
    for digits in _PRECISIONS:
        with mpmath.workdps(digits):
            gap = Enclosing.at(point)(f)
            surely, maybe = stands(kind, gap)
        if not gap.sure.all():
            return None
        if surely.all() or not maybe.any():
            return bool(surely.all())
    numbers = (number for v in point.values() for number in v.atoms(Rational))
    size = max((max(abs(number.p), number.q) for number in numbers), default=0)
    rational = f.is_rational_function() and all(v.is_Rational for v in point.values())
    if short(f)[1] or (size > 1000 and not rational):
        return None  # SymPy would write powers out, and halve angles without end
    return kind in (">=", "==") if is_zero(f.subs(point)) else None


def is_zero(value: Expr) -> bool:
    """Return whether a number is provably zero."""
    if value == 0 or value.is_zero:
        return True
    return value.is_finite is not False and value.count_ops() < 60 and simplify(value) == 0


# --- boxes are split until each is settled --------------------------------------------------------

_FEW, _BOXES, _AT_ONCE = 600, 16_000, 1500
_APART = 8  # groups of boxes that are looked at one by one
_ORDERS, _NEWTON, _LONG = 6, 8, 300  # of derivatives, steps, and operations
_MORE = 600  # work for a derivative near a point, beside that for the domain
_LEAST = 1e-300

Box = dict[Symbol, tuple[float, float]]


class WorkLeft:
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
    work: WorkLeft

    def left(self, box: Box) -> tuple[list[Box], dict[Symbol, float] | None]:
        """Return what of the box is not settled, as smaller ones; and a point at which the
        statement fails in floats, if one was met.
        """
        clusters = [box]
        if not box:
            return ([] if any(exactly(self.kind, f, {}) for f in self.forms) else clusters), None
        for most in (_FEW, _BOXES):
            parts = [self.split(part, most) for part in clusters]
            if point := next((point for _, point in parts if point), None):
                return [box], point
            clusters = [hull for found, _ in parts for hull in _clusters(found, [*box])]
            clusters = [hull for hull in clusters if not self._at_a_point(hull)]
        return clusters, None

    def split(self, box: Box, most: int) -> tuple[Any, dict[Symbol, float] | None]:
        """Do so with about so many boxes, and without Taylor's theorem."""
        symbols = list(box)
        slopes = [
            [_in_factors(f.diff(s)) for s in symbols] if smooth(f) else None for f in self.forms
        ]
        boxes = np.array([[box[s] for s in symbols]], dtype=float).reshape(1, len(symbols), 2)
        whole = [k for k, s in enumerate(symbols) if s.is_integer]
        count = 0
        for level in range((25 if most <= _FEW else 80) * len(symbols)):
            boxes = _of_integers(boxes, symbols)
            count += len(boxes)
            if count > most or len(boxes) > _AT_ONCE or self.work.rest < 0:
                break
            middle = _middle(boxes)
            middle[:, whole] = np.floor(middle[:, whole])
            is_open, fails = self._look(boxes, middle, symbols, slopes)
            if np.any(fails):
                return boxes, dict(zip(symbols, map(float, middle[fails][0]), strict=True))
            boxes, middle = boxes[is_open], middle[is_open]
            middle[:, whole] += 0.5
            if not len(boxes):
                break
            below, above, k = boxes.copy(), boxes.copy(), level % len(symbols)
            below[:, k, 1] = above[:, k, 0] = middle[:, k]
            boxes = np.concatenate([below, above])
        return boxes, None

    def _look(self, boxes: Any, middle: Any, symbols: list[Symbol], slopes: Any) -> tuple[Any, Any]:
        """Return which boxes are not settled, and in the middle of which the statement fails."""
        lo, hi = boxes[..., 0], boxes[..., 1]
        with np.errstate(all="ignore"):
            inside, centre = (Enclosing.on(symbols, *ends) for ends in ((lo, hi), (middle, middle)))
            is_open = np.full(len(boxes), True) & inside.meets(self.where)[1]
            met, fails = centre.meets(self.where)[0], ~np.full(len(boxes), True)
            met = met & np.all((middle != 0) | [not s.is_nonzero for s in symbols], axis=1)
            for f, by in zip(self.forms, slopes, strict=True):
                here, span = centre(f), inside(f)
                fails |= met & here.sure & ~stands(self.kind, here)[1]
                if self.kind == "==":
                    continue
                is_open &= ~stands(self.kind, Span(span.lo, span.hi, True))[0]
                if not by or not np.any(is_open):
                    continue
                # By the mean value theorem, and at the ends to which it falls.
                mean, low, high, grows = here, lo.copy(), hi.copy(), np.array(False)
                for k, slope in enumerate(map(inside, by)):
                    if self.kind == ">" and symbols[k].is_positive:  # and so not at 0 itself
                        grows = grows | ((slope.lo > 0) & (lo[:, k] == 0))
                    away = Span(lo[:, k] - middle[:, k], hi[:, k] - middle[:, k], True, 1)
                    mean = mean + slope * away
                    high[:, k] = np.where(slope.lo >= 0, lo[:, k], hi[:, k])
                    low[:, k] = np.where(slope.hi <= 0, hi[:, k], lo[:, k])
                face = Enclosing.on(symbols, low, high)(f)
                least = np.maximum(mean.lo, np.where(face.sure, face.lo, -np.inf))
                sure = span.sure | smooth(f, defined=True)
                is_open &= ~stands(self.kind, Span(least, span.hi, sure))[0]
                is_open &= ~(grows & face.sure & (face.lo >= 0) & sure)
        self.work.rest -= (len(inside.known) + len(centre.known)) * (1 + len(boxes) // 500)
        return is_open, fails

    def _at_a_point(self, box: Box) -> bool:
        """Return whether Taylor's theorem settles what is around a point at which it vanishes."""
        if all(lo == hi for lo, hi in box.values()):
            point = {s: Rational(lo) for s, (lo, _) in box.items()}
            return any(exactly(self.kind, f, point) for f in self.forms)
        forms = [f for f in self.forms if smooth(f)] if self.kind in (">", ">=") else []
        if len(box) > 1 and forms and self._bowl(min(forms, key=lambda f: f.count_ops()), box):
            return True
        return any(
            self._around(f, s, c, box)
            for s, (lo, hi) in box.items()
            if not s.is_integer
            for c in exact_near(lo and lo / 2 + hi / 2)
            if self.kind == ">=" or (c == 0 and s.is_positive) or self._outside(s, c)
            for f in forms
        )

    def _outside(self, s: Symbol, c: Expr, way: int = 0) -> bool:
        """Return whether the conditions exclude s = c, and what is beyond it on that way."""
        return any(
            f.free_symbols == {s}
            and exactly(kind, f, {s: c}) is False
            and (not way or (way * f.diff(s)).is_negative)
            for kind, f in self.where
        )

    def _around(self, f: Expr, s: Symbol, c: Expr, box: Box) -> bool:
        """Return whether `f` is 0 or above at s = c, and as wanted in the rest of the box: one of
        its derivatives is so all over it, and at c those before do not point the other way.
        """
        near = float(c)
        ways = [
            (way, end) for way, end in zip((-1, 1), box[s], strict=True) if way * (end - near) > 0
        ]
        for way, end in ways or [(1, near)]:
            if self._outside(s, c, way):
                continue
            first = near if c == Rational(near) else float(np.nextafter(near, near - way))
            here, g = {**box, s: (min(first, end), max(first, end))}, f
            for _ in range(_ORDERS):
                start = g.subs(s, c)
                if not start.is_finite or not (
                    exactly(">=", start, {}) if start.is_number else settled(">=", start)
                ):
                    return False
                g = way * g.diff(s)
                if self._all_over(self.kind, g, here):
                    break
            else:
                return False
        return True

    def _bowl(self, f: Expr, box: Box) -> bool:
        """Return whether `f` is least, and as wanted, at one point with numbers of simple form: its
        slopes vanish there, and its Hessian is positive definite all over the box.
        """
        slopes = [f.diff(s) for s in box]
        hessian, n = Matrix(slopes).jacobian([*box]), len(box)
        spend(STEPS * _NEWTON * sum(g.count_ops() for g in hessian))
        at = np.array([lo / 2 + hi / 2 for lo, hi in box.values()])
        for _ in range(_NEWTON):
            put = dict(zip(box, map(Float, at), strict=True))
            known = np.array([g.subs(put).evalf() for g in (*slopes, *hessian)])
            if not all(v.is_Float or v.is_Rational for v in known):
                return False
            step = known.astype(float)
            try:
                at = at - np.linalg.solve(step[n:].reshape(n, n), step[:n])
            except np.linalg.LinAlgError:
                return False
        for chosen in islice(product(*map(exact_near, map(float, at))), _NEWTON):
            point = dict(zip(box, chosen, strict=True))
            if exactly(self.kind, f, point) and all(exactly("==", g, point) for g in slopes):
                ends = zip(box.items(), map(float, chosen), strict=True)
                here = {s: (min(lo, c), max(hi, c)) for (s, (lo, hi)), c in ends}
                minors = (_det(hessian[:k, :k]) for k in range(1, len(box) + 1))
                return all(self._all_over(">", g, here) for g in minors)
        return False

    def _all_over(self, kind: str, f: Expr, box: Box) -> bool:
        of = Sign(kind, (f,), (), WorkLeft(_MORE))
        return f.count_ops() < _LONG and of._defined(box) and not len(of.split(box, _FEW)[0])

    def _defined(self, box: Box) -> bool:
        lo, hi = np.array([[*box.values()]]).transpose(2, 0, 1)
        with np.errstate(all="ignore"):
            return bool(Enclosing.on([*box], lo, hi)(self.forms[0]).sure.all())


def _det(of: Any) -> Expr:
    """Return a determinant as it stands: SymPy's is simplified, which may take minutes."""
    if of.rows == 1:
        return of[0]
    return Add(*((-1) ** k * of[0, k] * _det(of.minor_submatrix(0, k)) for k in range(of.rows)))


def _clusters(boxes: Any, symbols: list[Symbol]) -> Iterator[Box]:
    """Yield the boxes around those that lie together, where there is one symbol, the last first;
    or around all.
    """
    if not len(boxes):
        return
    boxes, parts = boxes[np.argsort(boxes[:, 0, 0])], [boxes]
    if len(symbols) == 1:
        apart = boxes[1:, 0, 0] > np.maximum.accumulate(boxes[:-1, 0, 1])
        parts = np.split(boxes, np.flatnonzero(apart)[-_APART:] + 1)
    for part in reversed(parts):
        ends = zip(part[..., 0].min(0), part[..., 1].max(0), strict=True)
        yield {s: (float(lo), float(hi)) for s, (lo, hi) in zip(symbols, ends, strict=True)}


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


# --- what is looked at ----------------------------------------------------------------------------


def forms(kind: str, f: Expr) -> tuple[Expr, ...]:
    """Return forms of `f` of the same sign where it is defined: the intervals of one may be tighter
    than those of another.
    """
    more = [f, f.rewrite(exp)] if f.has(sinh, cosh, tanh) else [f]
    more = [g.replace(tan, lambda x: sin(x) / cos(x)) for g in more]
    two = isinstance(f, Add) and len(f.args) == 2 and f.has(exp, Pow)
    for one, other in (f.args, f.args[::-1]) if two else ():
        if one.is_positive and other.is_negative:  # their logarithms stand alike
            more.append(expand_log(log(one) - log(-other)))
    for term in Add.make_args(f):  # and the number of which one is the logarithm, beside another
        if isinstance(number := term if isinstance(term, log) else -term, log):
            way = 1 if number == term else -1
            whole = powsimp(expand(way * (number.args[0] - exp(way * (term - f)))))
            more += [whole] * (whole.count_ops() < f.count_ops())
    return tuple(dict.fromkeys([f, *(bare(kind, g) for g in more)]))


def _in_factors(f: Expr) -> Expr:
    spend(STEPS * (size := f.count_ops()))
    if size >= 150:
        return f
    small, back = short(f)
    return factored(together(small, deep=True)).xreplace(back)


def bare(kind: str, f: Expr) -> Expr:
    """Return the factors of `f` and of its denominator, but for those whose sign is known."""
    above, below = fraction(_in_factors(f))
    kept: list[Expr] = []
    for part in (*Mul.make_args(above), *Mul.make_args(below)):
        if part.is_negative:
            kept.append(Integer(-1))
        elif not (part.is_positive or (kind == ">=" and part.is_nonnegative)):
            odd = isinstance(part, Pow) and part.exp.is_odd and part.exp.is_positive
            kept.append(part.base if odd else part)
    return Mul(*kept)


def exact_near(x: float) -> Iterator[Expr]:
    """Yield numbers of simple form that may be meant by `x`."""
    if abs(x) < 1e-2:
        yield Integer(0)
    if not 0 < abs(x) < 1e6:
        return
    kinds: list[tuple[float, Any]] = [
        (x, Rational), (1 / x, lambda r: 1 / r), (x / np.pi, lambda r: r * pi),
        (x * x, lambda r: sign(x) * sqrt(r)), (1 / (x * np.pi), lambda r: 1 / (r * pi)),
        (float(np.log(abs(x))), lambda r: sign(x) * exp(r)),
    ]  # fmt: skip
    for value, back in kinds:
        for most in (1, 12, 1000):
            near = Fraction(float(value)).limit_denominator(most)
            if near and (abs(near.numerator) <= 10_000 or value in (x, 1 / x)):
                found = back(Rational(near.numerator, near.denominator))
                if abs(float(found) - x) <= 1e-3 * abs(x) / most:
                    yield found
                    break


def pieces(
    symbols: Sequence[Symbol], weights: Mapping[Symbol, Expr] = MappingProxyType({})
) -> Iterator[tuple[dict[Symbol, Expr], Box]]:
    """Yield maps of the domain onto boxes: what is put for each symbol, and the range of the new
    ones, from 0 to 1, or to 1024 of whole numbers.

    Of symbols that may be multiplied by powers of one number, by their `weights`, the one that is
    largest to its power is put 1 or -1: each in turn, or one of known sign if some powers are
    below zero.
    """
    near, far, signs = dict[Symbol, Any](), dict[Symbol, Any](), dict[Symbol, Any]()
    for s in symbols:
        whole = bool(s.is_integer)
        u = Symbol(s.name, nonnegative=True, nonzero=s.is_nonzero, integer=whole or None)
        v = Symbol(s.name, positive=True)
        last = 1024.0 if whole else 1.0
        signs[s] = [1] if s.is_nonnegative else [-1] if s.is_nonpositive else [1, -1]
        near[s] = [(k * u, u, (1.0 if whole and s.is_nonzero else 0.0, last)) for k in signs[s]]
        far[s] = [(k / v, v, (0.0, 1 / last)) for k in signs[s]]
    scaled = [s for s in symbols if s in weights]
    level = all(w > 0 for w in weights.values())
    for top in (scaled if level else [s for s in scaled if s.is_nonzero][:1]) or [None]:
        ways = [near[s] if level and s in scaled else near[s] + far[s] for s in symbols]
        if top:
            ways[symbols.index(top)] = [(Integer(k), None, None) for k in signs[top]]
        for chosen in product(*ways):
            put = {s: f for s, (f, _, _) in zip(symbols, chosen, strict=True)}
            yield put, {u: ends for _, u, ends in chosen if u is not None}
