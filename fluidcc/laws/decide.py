"""Decide a relation between expressions: look for a counterexample, then for a proof, then check to 50 digits."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import mpmath
from sympy import (
    And,
    Derivative,
    Eq,
    Expr,
    Ge,
    Gt,
    Integer,
    Le,
    Lt,
    Ne,
    Subs,
    Symbol,
    false,
    lambdify,
    sympify,
    true,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from fluidcc.base.errors import InvalidInput
from fluidcc.laws.signs import OPPOSITE, rises, settled, with_conditions
from fluidcc.laws.switches import Collector
from fluidcc.symbols import unfold

__all__ = ["Decision", "decide"]

_DIGITS = 50
_POINTS = 200
_TRIALS = 6000
_ATTEMPTS = 24  # substitutions of conditions before a proof is given up


@dataclass(frozen=True)
class Decision:
    """The outcome, the argument, and the values of a counterexample."""

    status: str
    how: str
    counterexample: Mapping[Symbol, float] = field(default_factory=dict)


def decide(statement: Any, where: tuple[Any, ...]) -> Decision:
    """Decide `statement` (relational, expression meaning zero, or And of them) under the conditions `where`."""
    statement, where = _without_functions(sympify(statement), where)
    if statement is true:
        return Decision("proved", "it follows from the assumptions")
    if statement is false:
        return Decision("refuted", "it contradicts the assumptions")
    if isinstance(statement, And):
        parts = [decide(part, where) for part in statement.args]
        return max(parts, key=lambda d: ("proved", "checked", "undecided", "refuted").index(d.status))
    if not isinstance(statement, Relational):
        if not isinstance(statement, Expr):
            raise InvalidInput(f"{statement} is neither an expression nor an equation or inequality")
        statement = Eq(statement, 0, evaluate=False)
    question = _Question.of(statement, where)
    checked = question.check()
    if checked.status == "refuted":
        return checked
    if how := question.proof():
        return Decision("proved", how)
    return checked


def _without_functions(statement: Any, where: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The same with a symbol for every value and derivative of an undefined function, such as R(x) and R'(x).

    A smooth function can have any values and slopes at different points, so what holds for all such numbers holds for
    all functions, and the other way round.
    """
    names: dict[Any, Symbol] = {}
    for part in (statement, *where):
        for atom in part.atoms(AppliedUndef, Derivative, Subs) if hasattr(part, "atoms") else ():
            if atom.atoms(AppliedUndef):
                known = {k: True for k in ("positive", "nonnegative", "real") if getattr(atom, f"is_{k}")}
                names[atom] = Symbol(_name(atom), **known or {"real": True})

    def rename(f: Any) -> Any:
        if not names or not hasattr(f, "args"):
            return f
        if isinstance(f, And):
            return And(*map(rename, f.args), evaluate=False)
        if isinstance(f, Relational):
            return f.func(*map(rename, f.args), evaluate=False)
        # Derivatives first: the function inside them would otherwise be replaced alone.
        for atom in sorted(names, key=lambda a: -a.count_ops() - 10 * isinstance(a, (Derivative, Subs))):
            f = f.xreplace({atom: names[atom]})
        return f

    return rename(statement), tuple(map(rename, where))


def _name(atom: Any) -> str:
    if isinstance(atom, Subs):
        return f"{_name(atom.expr).split('(')[0]}({atom.point[0]})"
    if isinstance(atom, Derivative):
        f = atom.expr
        return f"{f.func}{chr(39) * atom.derivative_count}({', '.join(map(str, f.args))})"
    return str(atom)


@dataclass(frozen=True)
class _Question:
    """left = right, or left > right (strictly or not), under conditions that left > right of theirs."""

    kind: str  # "==", ">" or ">=" or "!="
    left: Expr
    right: Expr
    where: tuple[tuple[str, Expr], ...]  # (">" or ">=" or "==" or "!=", difference)

    @classmethod
    def of(cls, relation: Relational, where: tuple[Any, ...]) -> _Question:
        kind, left, right = _oriented(relation)
        conditions = []
        for condition in where:
            if condition is true:
                continue
            for part in condition.args if isinstance(condition, And) else (condition,):
                if not isinstance(part, Relational):
                    raise InvalidInput(f"the condition {part} is no equation or inequality")
                sign, a, b = _oriented(part)
                conditions.append((sign, a - b))
        return cls(kind, left, right, tuple(conditions))

    # --- numbers ----------------------------------------------------------------------------------------------------

    def check(self) -> Decision:
        """Try random points to 50 digits."""
        symbols = sorted(
            self.left.free_symbols | self.right.free_symbols | set().union(*(f.free_symbols for _, f in self.where)),
            key=str,
        )
        sides = lambdify(symbols, [self.left, self.right, *(f for _, f in self.where)], modules="mpmath")
        rng, tried = random.Random(7), 0
        with mpmath.workdps(_DIGITS + 15):
            for k in range(_TRIALS if symbols else 1):
                point = _point(symbols, rng, decades=1 if k < _POINTS // 4 else 6)
                try:
                    left, right, *conditions = sides(*point)
                except (ZeroDivisionError, ValueError, OverflowError, TypeError):
                    continue
                if not all(_finite(v) for v in (left, right, *conditions)):
                    continue
                if not all(_holds(kind, v, 0) for (kind, _), v in zip(self.where, conditions, strict=True)):
                    continue
                tried += 1
                if not _holds(self.kind, left, right) and not self._holds_after_all(sides, point):
                    values = {s: float(v) for s, v in zip(symbols, point, strict=True)}
                    return Decision("refuted", "it fails at", values)
                if tried >= _POINTS:
                    break
        if not tried:
            return Decision("undecided", "no point was found at which its conditions hold and both sides are defined")
        return Decision("checked", f"it holds to {_DIGITS} digits at {tried} random points")

    def _holds_after_all(self, sides: Any, point: list[Any]) -> bool:
        """Whether a failure was only cancellation: a gap that vanishes with more digits is no gap."""
        left, right, *_ = sides(*point)
        with mpmath.workdps(_DIGITS * 8):
            better, other, *_ = sides(*point)
            if abs(better - other) <= abs(left - right) * mpmath.mpf(10) ** -_DIGITS:
                return self.kind in ("==", ">=")
            return _holds(self.kind, better, other)

    # --- algebra ----------------------------------------------------------------------------------------------------

    def proof(self) -> str:
        """The argument that proves it on every branch, or ""."""
        collect = Collector("the statement")
        gap = collect.rewrite(self.left - self.right)
        where = [(kind, collect.rewrite(f)) for kind, f in self.where]
        if len(collect.switches) > 6:
            return ""
        split, possible = bool(collect.switches), False
        for modes in product((1, 0), repeat=len(collect.switches)):
            branch = {m: Integer(v) for m, v in zip(collect.modes, modes, strict=True)}
            chosen = [s.subs(branch) for s in collect.switches]
            conditions = [(kind, f.subs(branch)) for kind, f in where]
            conditions += [(">", s) if v else (">=", -s) for s, v in zip(chosen, modes, strict=True)]
            found = self._on_branch(gap.subs(branch), conditions)
            if found is None:
                return ""
            possible = possible or found
        if not possible:
            return ""  # nothing satisfies the conditions, and all and nothing would follow
        how = "the difference simplifies to zero" if self.kind == "==" else "its sign follows from the assumptions"
        return how + (" on every branch" if split else "")

    def _on_branch(self, gap: Expr, conditions: list[tuple[str, Expr]]) -> bool | None:
        """True if it is proved there, False if the conditions contradict one another, None if neither is known."""
        for f in islice(with_conditions(gap, conditions), _ATTEMPTS):
            if f is None:
                return False
            if settled(self.kind, f) or (self.kind in OPPOSITE and rises(self.kind, f)):
                return True
        return None


def _oriented(relation: Relational) -> tuple[str, Expr, Expr]:
    left, right = unfold(relation.lhs), unfold(relation.rhs)
    kinds = {Eq: "==", Ne: "!=", Gt: ">", Ge: ">=", Lt: "<", Le: "<="}
    kind = kinds[type(relation)]
    return (kind.replace("<", ">"), right, left) if "<" in kind else (kind, left, right)


def _point(symbols: list[Symbol], rng: random.Random, decades: float) -> list[Any]:
    """Values within assumptions, this many decades to either side of 1."""
    values = []
    for s in symbols:
        if s.is_integer:
            v = mpmath.mpf(rng.randint(1, 10 ** rng.randint(1, 3)))
        else:
            v = mpmath.mpf(10) ** mpmath.mpf(rng.uniform(-decades, decades))
        if s.is_nonpositive or (not s.is_nonnegative and rng.random() < 0.5):
            v = -v
        values.append(v)
    return values


def _finite(v: Any) -> bool:
    return isinstance(v, (int, mpmath.mpf)) and bool(mpmath.isfinite(v))


def _holds(kind: str, left: Any, right: Any) -> bool:
    scale = max(abs(left), abs(right))
    close = abs(left - right) <= scale * mpmath.mpf(10) ** -_DIGITS
    if kind == "==":
        return bool(close)
    if kind == "!=":
        return not close
    return bool(left > right and not close) if kind == ">" else bool(left >= right or close)
