"""A statement as it is asked: relations in exact numbers, in symbols for values of functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations
from math import ulp
from typing import Any

from sympy import (
    Add,
    And,
    Derivative,
    Eq,
    Expr,
    Float,
    Ge,
    Gt,
    Heaviside,
    I,
    Integer,
    Le,
    Limit,
    Lt,
    N,
    Ne,
    Or,
    Piecewise,
    Rational,
    Subs,
    Symbol,
    cos,
    cosh,
    cot,
    coth,
    csc,
    csch,
    exp,
    expand,
    false,
    fraction,
    log,
    sec,
    sech,
    sign,
    sin,
    sinh,
    tanh,
    together,
    true,
)
from sympy.codegen.cfunctions import expm1, log1p
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.proofs.algebra import Condition
from fluidcc.symbols import unfold

SIMPLE = 1000  # largest denominator of a fraction that a float is meant for
_KINDS = ("integer", "positive", "negative", "nonpositive", "nonnegative", "nonzero")


# With these there are no more functions to know of, and none is defined elsewhere for it.
_QUOTIENTS = (
    (coth, lambda z: 1 / tanh(z)), (sech, lambda z: 1 / cosh(z)), (csch, lambda z: 1 / sinh(z)),
    (cot, lambda z: cos(z) / sin(z)), (sec, lambda z: 1 / cos(z)), (csc, lambda z: 1 / sin(z)),
)  # fmt: skip


def as_quotients(f: Any) -> Any:
    """Return the same with quotients for coth and the like."""
    for function, quotient in _QUOTIENTS if hasattr(f, "replace") else ():
        f = f.replace(function, quotient)
    return f


def without_functions(
    statement: Any, where: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...], tuple[Expr, ...]]:
    """Return the same with a symbol for every value and derivative of an undefined function, such
    as R(x) and R'(x), and what must not be zero for them to be free of one another.

    A smooth function can have any values and slopes at different points, so what holds for all such
    numbers holds for all functions, and the other way round.
    """
    names: dict[Any, Symbol] = {}
    for part in (statement, *where):
        for atom in part.atoms(AppliedUndef, Derivative, Subs) if hasattr(part, "atoms") else ():
            if atom.atoms(AppliedUndef):
                known = {k: getattr(atom, f"is_{k}") for k in _KINDS}
                names[atom] = Symbol(_name(atom), **{"real": True, **known})
        if names and hasattr(part, "has") and part.has(ExprWithLimits, Limit):
            raise Unsupported(f"{part} has a function of which all values count")

    def rename(f: Any) -> Any:
        if not names or not hasattr(f, "args"):
            return f
        if isinstance(f, And):
            return And(*map(rename, f.args), evaluate=False)
        if isinstance(f, Relational):
            return f.func(*map(rename, f.args), evaluate=False)
        # The outer ones first: what is inside them would otherwise be replaced alone.
        for kind in (Subs, Derivative, AppliedUndef):
            for atom in sorted(names, key=lambda a: -a.count_ops()):
                f = f.xreplace({atom: names[atom]}) if isinstance(atom, kind) else f
        return f

    places = {(g.func, *map(rename, g.args)) for atom in names for g in atom.atoms(AppliedUndef)}
    apart = [
        Add(*((a - b) ** 2 for a, b in zip(one[1:], other[1:], strict=True)))
        for one, other in combinations(places, 2)
        if one[0] == other[0] and len(one) == len(other)
    ]
    # What may be zero has no slope there.
    apart += [s for atom, s in names.items() if s.is_nonnegative and not s.is_positive]
    return rename(statement), tuple(map(rename, where)), tuple(apart)


def _name(atom: Any) -> str:
    if isinstance(atom, Subs):
        return f"{_name(atom.expr).split('(')[0]}({atom.point[0]})"
    if isinstance(atom, Derivative):
        f = atom.expr
        return f"{f.func}{chr(39) * atom.derivative_count}({', '.join(map(str, f.args))})"
    return str(atom)


def comparing(f: Expr) -> Expr:
    """Return `f` with signs, steps and equalities in conditions written in comparisons."""
    f = f.rewrite([sign, Heaviside], Piecewise)

    def compared(relation: Any) -> Any:
        a, b = relation.args
        return And(a >= b, a <= b) if isinstance(relation, Eq) else Or(a > b, a < b)

    return f.xreplace({g: compared(g) for g in f.atoms(Eq, Ne)})


def exact(f: Expr) -> Expr:
    """Return `f` with the fractions that its floats are meant for: 0.3 is 3/10, so that its square
    is 0.09, and 2/3 that of 2 and 3; and with functions that are there for digits written out.
    """
    if f.has(log1p, expm1):
        f = f.replace(log1p, lambda x: log(1 + x)).replace(expm1, lambda x: exp(x) - 1)
    return f.xreplace({v: _meant(v) for v in f.atoms(Float)})


def _meant(v: Float) -> Rational:
    """A simple fraction, if the float is one but for rounding, or else that of its digits."""
    number = float(v)
    if N(v - Float(number, 60), 60):  # it has more digits than a float of Python
        return Rational(str(v))
    near = Fraction(number).limit_denominator(SIMPLE)
    simple = near and abs(float(near) - number) <= 4 * ulp(number)
    meant = near if simple else Fraction(repr(number))
    return Rational(meant.numerator, meant.denominator)


def flat(where: Iterable[Any]) -> Iterator[Relational]:
    """Yield conditions one by one, False as 0 != 0, and True not at all."""
    for condition in where:
        for part in condition.args if isinstance(condition, And) else (condition,):
            if part is false:
                yield Ne(0, 0, evaluate=False)
            elif part is not true and not isinstance(part, Relational):
                raise InvalidInput(
                    f"the condition {part} is neither an equation nor an inequality; give "
                    "relations that all hold, such as [p > 2*q, q < 1]"
                )
            elif part is not true:
                yield part


def oriented(relation: Relational) -> Condition:
    """Return how left - right, or right - left, is to stand to zero, and it with exact numbers."""
    left, right = exact(unfold(relation.lhs)), exact(unfold(relation.rhs))
    if (left - right).has(I):  # products of conjugates are real when they are multiplied out
        above, below = fraction(together(left - right))
        left, right = expand(above) / expand(below), Integer(0)
    kinds = {Eq: "==", Ne: "!=", Gt: ">", Ge: ">=", Lt: "<", Le: "<="}
    kind = kinds[type(relation)]
    return (kind.replace("<", ">"), right - left) if "<" in kind else (kind, left - right)
