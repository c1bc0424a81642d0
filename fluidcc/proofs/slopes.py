"""Signs by slopes: what is not below zero at one end of the range of a symbol, and rises from there
on, is not below zero; its slope is looked at in the same way, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from sympy import (
    AccumBounds,
    Add,
    Dummy,
    Expr,
    Integer,
    Mul,
    Pow,
    Symbol,
    asinh,
    atan,
    exp,
    expand,
    log,
    oo,
)

from fluidcc.base.errors import Unsupported
from fluidcc.proofs.algebra import by_squares, smooth
from fluidcc.proofs.cover import Enclosing, exactly, forms, stands

_DEPTH, _TRIES, _LONG = 5, 60, 120  # slopes of slopes, functions looked at, operations in one
_POINTS = 48
_PLAIN_SLOPES = (log, atan, asinh)


class Slopes:
    """A search for such an argument, which ends after a number of tries."""

    def __init__(self, tries: int = _TRIES) -> None:
        self.left = tries

    def show(self, kind: str, f: Expr, depth: int = _DEPTH) -> bool:
        """Return whether `f` provably stands as `kind` (">" or ">=") to zero wherever it is
        defined.
        """
        self.left -= 1
        if depth < 0 or self.left < 0 or f.count_ops() > _LONG:
            return False
        if f.is_number:
            return bool(exactly(kind, f, {}))
        return any(self._shows(kind, g, depth) for g in forms(kind, f)[1:] or [f])

    def _shows(self, kind: str, f: Expr, depth: int) -> bool:
        parts = Mul.make_args(f)
        if len(parts) == 1 or not all(map(_sign, parts)):
            return _sign(f) > 0 and (_plainly(kind, f) or self._rises(kind, f, depth))
        signs = [_sign(part) for part in parts]
        return prod(signs) > 0 and all(
            self.show(kind, sign * part, depth) for sign, part in zip(signs, parts, strict=True)
        )

    def _rises(self, kind: str, f: Expr, depth: int) -> bool:
        for s in sorted(f.free_symbols, key=str):
            # A slope above zero inside an interval is enough, so strictness needs only s > 0.
            if s.is_integer or not (s.is_positive if kind == ">" else s.is_nonnegative):
                continue
            for g in _scaled(f, s):
                if not smooth(g, defined=True):
                    continue
                slope, more = g.diff(s), depth - 1
                for start, d in ((_at(g, s, Integer(0)), slope), (_at(g, s, oo), -slope)):
                    if start is None or _sign(d) <= 0:
                        continue
                    if self.show(">=", start, more) and self.show(kind, d, more):
                        return True
                one = _at(g, s, Integer(1)) if kind == ">=" and s.is_positive else None
                if one is not None and self.show(">=", one, more):
                    d = Dummy("d", positive=True)
                    sides = (slope.subs(s, 1 + d), -slope.subs(s, 1 / (1 + d)))
                    if all(_sign(h) > 0 for h in sides) and all(
                        self.show(kind, h, more) for h in sides
                    ):
                        return True
        return False


def _plainly(kind: str, f: Expr) -> bool:
    known = "is_positive" if kind == ">" else "is_nonnegative"
    return any(getattr(g, known) for g in (f, expand(f))) or by_squares(kind, f)


def _scaled(f: Expr, s: Symbol) -> Iterator[Expr]:
    """Yield `f`, and `f` over what makes one of its terms plain: its slope is simpler then."""
    yield f
    terms = Add.make_args(expand(f))
    for term in terms if 1 < len(terms) < 9 else ():
        by = Mul(*(g for g in Mul.make_args(term) if not isinstance(g, _PLAIN_SLOPES)))
        if by.has(s) and (by.is_positive or by.is_negative):
            yield Add(*(g / by for g in terms)) * (1 if by.is_positive else -1)


def _at(f: Expr, s: Symbol, end: Expr) -> Expr | None:
    """Return the limit of `f` at an end of the range of `s`; None where it is not found by putting
    it in.
    """
    f = f.replace(lambda g: isinstance(g, Pow) and g.exp.has(s), lambda g: exp(g.exp * log(g.base)))
    start = f.subs(s, end)
    return start if start.is_finite and not start.has(AccumBounds, oo) else None


def _sign(f: Expr) -> int:
    """Return the sign of `f` as far as a few points show it: 0 if they show both."""
    symbols = sorted(f.free_symbols, key=str)
    rng = np.random.default_rng(5)
    points = 10 ** rng.uniform(-2, 2, (_POINTS, len(symbols)))
    points *= np.where(rng.random(points.shape) < 0.5, -1.0, 1.0)
    for s, x in zip(symbols, points.T, strict=True):
        if s.is_nonnegative or s.is_nonpositive:
            x[:] = np.abs(x) * (1 if s.is_nonnegative else -1)
        if s.is_integer:
            x[:] = np.sign(x) * np.ceil(np.abs(x))
    try:
        with np.errstate(all="ignore"):
            inside = Enclosing.on(symbols, points, points)
            above, below = (np.all(stands(">=", inside(g))[1]) for g in (f, -f))
    except Unsupported:
        return 0
    return int(above) or -int(below)
