"""Is it true? Proved by algebra, checked to 50 digits at random points, or refuted by a
counterexample.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any, overload

import mpmath
from sympy import (
    And,
    Basic,
    Derivative,
    Dummy,
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
    cancel,
    expand,
    expand_log,
    factor,
    false,
    fraction,
    lambdify,
    latex,
    powsimp,
    simplify,
    sympify,
    together,
    true,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.base.tables import in_html
from fluidcc.laws.law import Law
from fluidcc.laws.parts import Steady
from fluidcc.laws.steady import standstills
from fluidcc.laws.switches import Collector
from fluidcc.symbols import plain, unfold

# How sure a verdict is, from the best to the worst.
_STATUS = ("proved", "checked", "undecided", "refuted")


@dataclass(frozen=True)
class Verdict:
    """What became of one claim.

    Attributes
    ----------
    label : str
        Its label in the law, or "".
    statement : Expr, relational or Steady
        The claim.
    status : str
        "proved", "checked", "refuted" or "undecided".
    how : str
        The argument, in words.
    counterexample : mapping of str to float
        Values at which it fails, if refuted.
    """

    label: str
    statement: Any
    status: str
    how: str
    counterexample: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.status in ("proved", "checked")

    @property
    def _argument(self) -> str:
        values = ", ".join(f"{k} = {v:.6g}" for k, v in self.counterexample.items())
        return f"{self.how}: {values}" if values else self.how

    def __repr__(self) -> str:
        label = f"{self.label}: " if self.label else ""
        return f"{label}{self.status} ({self._argument})"

    def _repr_html_(self) -> str:
        return Proof((self,))._repr_html_()


# --- algebra: signs and zeros that follow from assumptions and conditions -------------------------


# What the negative of an expression must not be for it to stand so.
_OPPOSITE = {">": ">=", ">=": ">"}


def _forms(f: Expr) -> Iterator[Expr]:
    """Yield `f` in ever more simplified forms, the cheap ones first."""
    yield f
    g = together(f)
    yield g
    yield cancel(g)
    yield expand(fraction(g)[0])
    yield powsimp(expand_log(expand(f)))
    yield simplify(f)


def settled(kind: str, f: Expr) -> bool:
    """Return whether `f` (= left - right), where defined, provably stands as `kind` to zero."""
    if kind == "==":
        return any(g == 0 for g in _forms(f))
    return any(
        _has_sign(kind, above, below)
        for g in (f, cancel(together(f)), simplify(f))
        for above, below in [fraction(together(g))]
        for above in (above, expand(above), factor(above))
    )


def _has_sign(kind: str, above: Expr, below: Expr) -> bool:
    """Return whether above/below, with a denominator that is not zero where it counts, has the sign
    wanted.
    """
    if kind == "!=":
        return bool(above.is_nonzero)
    below = factor(below)
    if below.is_nonnegative:
        return bool(above.is_positive if kind == ">" else above.is_nonnegative)
    if below.is_nonpositive:
        return bool(above.is_negative if kind == ">" else above.is_nonpositive)
    return False


def rises(kind: str, f: Expr, depth: int = 3) -> bool:
    """Return whether `f` begins at or above zero as a positive symbol does, and then rises."""
    for s in sorted(f.free_symbols, key=str):
        # A slope above zero inside an interval is enough, so strictness needs only s > 0.
        if not (s.is_positive if kind == ">" else s.is_nonnegative):
            continue
        start = f.subs(s, 0)
        if not start.is_finite or not settled(">=", start):
            continue
        slope = f.diff(s)
        if settled(kind, slope) or (depth > 1 and rises(kind, slope, depth - 1)):
            return True
    return False


def _impossible(kind: str, f: Expr) -> bool:
    if kind in _OPPOSITE:
        return settled(_OPPOSITE[kind], -f)
    return bool(factor(together(f)).is_nonzero if kind == "==" else settled("==", f))


def with_conditions(f: Expr, conditions: list[tuple[str, Expr]]) -> Iterator[Expr | None]:
    """Yield `f`, then `f` with conditions made into assumptions: s > g becomes s = g + (a positive
    number).

    None means that the conditions contradict one another.
    """
    if any(_impossible(kind, g) for kind, g in conditions):
        yield None
        return
    yield f
    for k, (kind, condition) in enumerate(conditions):
        if kind == ">=" and settled(">=", -condition):
            kind = "=="
        for s in sorted(condition.free_symbols, key=str):
            value = None if kind == "!=" else _bounded(s, kind, condition)
            if value is not None:
                rest = [
                    (other, g.subs(s, value)) for i, (other, g) in enumerate(conditions) if i != k
                ]
                if s.is_positive and not value.is_positive:
                    rest.append((">", value))
                elif s.is_nonnegative and not value.is_nonnegative:
                    rest.append((">=", value))
                yield from with_conditions(f.subs(s, value), rest)


def _bounded(s: Symbol, kind: str, condition: Expr) -> Expr | None:
    """Return the general value of `s` for which `condition`, linear in it, is as `kind` to zero;
    None if it is not linear.
    """
    above, below = fraction(together(condition))
    above = expand(above)
    slope, rest = above.coeff(s, 1), above.coeff(s, 0)
    if slope.has(s) or rest.has(s) or below.has(s) or expand(above - slope * s - rest) != 0:
        return None
    if kind == "==":
        return -rest / slope if slope.is_nonzero else None
    direction = slope / below
    if not (direction.is_positive or direction.is_negative):
        return None
    excess = Dummy("d", positive=True) if kind == ">" else Dummy("d", nonnegative=True)
    return -rest / slope + (excess if direction.is_positive else -excess)


# --- decide a relation between expressions --------------------------------------------------------


_DIGITS = 50
_POINTS = 200
_TRIALS = 6000
_ATTEMPTS = 24  # substitutions of conditions before a proof is given up


def decide(statement: Any, where: tuple[Any, ...]) -> Verdict:
    """Decide `statement` (relational, expression meaning zero, or And of them) under the
    conditions `where`.
    """
    statement, where = _without_functions(sympify(statement), where)
    if statement is true:
        return Verdict("", statement, "proved", "it follows from the assumptions")
    if statement is false:
        return Verdict("", statement, "refuted", "it contradicts the assumptions")
    if isinstance(statement, And):
        return _worst([decide(part, where) for part in statement.args])
    if not isinstance(statement, Relational):
        if not isinstance(statement, Expr):
            raise InvalidInput(
                f"{statement} is neither an expression nor an equation or inequality"
            )
        statement = Eq(statement, 0, evaluate=False)
    question = _Question.of(statement, where)
    status, how, counterexample = question.check()
    if status != "refuted" and (argument := question.proof()):
        return Verdict("", statement, "proved", argument)
    return Verdict("", statement, status, how, counterexample)


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    return max(verdicts, key=lambda v: _STATUS.index(v.status))


def _without_functions(statement: Any, where: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the same with a symbol for every value and derivative of an undefined function, such
    as R(x) and R'(x).

    A smooth function can have any values and slopes at different points, so what holds for all such
    numbers holds for all functions, and the other way round.
    """
    names: dict[Any, Symbol] = {}
    for part in (statement, *where):
        for atom in part.atoms(AppliedUndef, Derivative, Subs) if hasattr(part, "atoms") else ():
            if atom.atoms(AppliedUndef):
                known = {
                    k: True for k in ("positive", "nonnegative", "real") if getattr(atom, f"is_{k}")
                }
                names[atom] = Symbol(_name(atom), **known or {"real": True})

    def rename(f: Any) -> Any:
        if not names or not hasattr(f, "args"):
            return f
        if isinstance(f, And):
            return And(*map(rename, f.args), evaluate=False)
        if isinstance(f, Relational):
            return f.func(*map(rename, f.args), evaluate=False)
        # Derivatives first: the function inside them would otherwise be replaced alone.
        for atom in sorted(
            names, key=lambda a: -a.count_ops() - 10 * isinstance(a, (Derivative, Subs))
        ):
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
    """left = right, or left > right (strictly or not), under conditions that left > right of
    theirs.
    """

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

    # --- numbers ----------------------------------------------------------------------------------

    def check(self) -> tuple[str, str, dict[str, float]]:
        """Try random points to 50 digits: status, argument, and values at which it fails."""
        sides = (self.left, self.right, *(f for _, f in self.where))
        symbols = sorted(set().union(*(f.free_symbols for f in sides)), key=str)
        function = lambdify(symbols, sides, modules="mpmath")
        rng, tried = random.Random(7), 0
        with mpmath.workdps(_DIGITS + 15):
            for k in range(_TRIALS if symbols else 1):
                point = _point(symbols, rng, decades=1 if k < _POINTS // 4 else 6)
                try:
                    left, right, *given = values = function(*point)
                except (ZeroDivisionError, ValueError, OverflowError, TypeError):
                    continue
                conditions = zip(self.where, given, strict=True)
                if not all(map(_finite, values)) or not all(
                    _holds(kind, value, 0) for (kind, _), value in conditions
                ):
                    continue
                tried += 1
                if not _holds(self.kind, left, right) and not self._holds_after_all(
                    function, point
                ):
                    at = {plain(s): float(v) for s, v in zip(symbols, point, strict=True)}
                    return "refuted", "it fails at" if at else "it is false", at
                if tried >= _POINTS:
                    break
        if not tried:
            lacking = "no point was found at which its conditions hold and both sides are defined"
            return "undecided", lacking, {}
        return "checked", f"it holds to {_DIGITS} digits at {tried} random points", {}

    def _holds_after_all(self, sides: Any, point: list[Any]) -> bool:
        """Return whether a failure was only cancellation: a gap that vanishes with more digits is
        no gap.
        """
        left, right, *_ = sides(*point)
        with mpmath.workdps(_DIGITS * 8):
            better, other, *_ = sides(*point)
            if abs(better - other) <= abs(left - right) * mpmath.mpf(10) ** -_DIGITS:
                return self.kind in ("==", ">=")
            return _holds(self.kind, better, other)

    # --- algebra ----------------------------------------------------------------------------------

    def proof(self) -> str:
        """Return the argument that proves it on every branch, or ""."""
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
            conditions += [
                (">", s) if v else (">=", -s) for s, v in zip(chosen, modes, strict=True)
            ]
            found = self._on_branch(gap.subs(branch), conditions)
            if found is None:
                return ""
            possible = possible or found
        if not possible:
            return ""  # nothing satisfies the conditions, and all and nothing would follow
        how = (
            "the difference simplifies to zero"
            if self.kind == "=="
            else "its sign follows from the assumptions"
        )
        return how + (" on every branch" if split else "")

    def _on_branch(self, gap: Expr, conditions: list[tuple[str, Expr]]) -> bool | None:
        """Return True if it is proved there, False if the conditions contradict one another, None
        if neither is known.
        """
        for f in islice(with_conditions(gap, conditions), _ATTEMPTS):
            if f is None:
                return False
            if settled(self.kind, f) or (self.kind in _OPPOSITE and rises(self.kind, f)):
                return True
        return None


def _oriented(relation: Relational) -> tuple[str, Expr, Expr]:
    left, right = unfold(relation.lhs), unfold(relation.rhs)
    kinds = {Eq: "==", Ne: "!=", Gt: ">", Ge: ">=", Lt: "<", Le: "<="}
    kind = kinds[type(relation)]
    return (kind.replace("<", ">"), right, left) if "<" in kind else (kind, left, right)


def _point(symbols: list[Symbol], rng: random.Random, decades: float) -> list[Any]:
    """Return the values within assumptions, this many decades to either side of 1."""
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


# --- the claims of laws and formulas --------------------------------------------------------------


@dataclass(frozen=True)
class Proof(Sequence[Verdict]):
    """The verdicts on every claim of a law; true if none failed."""

    verdicts: tuple[Verdict, ...]
    name: str = ""

    @overload
    def __getitem__(self, key: int | str) -> Verdict: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Verdict]: ...
    def __getitem__(self, key: int | str | slice) -> Verdict | Sequence[Verdict]:
        """The verdict of that position or label."""
        if isinstance(key, str):
            for v in self.verdicts:
                if v.label == key:
                    return v
            labels = ", ".join(v.label for v in self.verdicts)
            raise InvalidInput(
                f"{self.name} claims nothing called {key!r}: its claims are {labels or 'none'}"
            )
        return self.verdicts[key]

    def __len__(self) -> int:
        return len(self.verdicts)

    def __bool__(self) -> bool:
        return all(self.verdicts)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.verdicts)) or f"{self.name} claims nothing"

    def _repr_html_(self) -> str:
        head = ("claim", "statement", "verdict", "how")
        return in_html(
            (
                (v.label, f"$\\displaystyle {_tex(v.statement)}$", v.status, v._argument)
                for v in self
            ),
            head,
        )


def _tex(statement: Any) -> str:
    if isinstance(statement, Steady):
        given = ", ".join(rf"{latex(s)} = {latex(v)}" for s, v in statement.given.items())
        return (
            _tex(statement.relation)
            + r"\ \text{at equilibrium}"
            + (rf",\ {given}" if given else "")
        )
    text = str(latex(statement))
    return text.replace("<", r"\lt ") if isinstance(statement, (Relational, And)) else f"{text} = 0"


@explained
def prove(statement: Any, *, where: Iterable[Any] = (), label: str = "") -> Verdict | Proof:
    """Prove, check or refute a statement, or every claim of a law or formula.

    Parameters
    ----------
    statement : Law, Formula, relational, Expr or And
        An expression means that it is zero. Symbols range over what their assumptions say, and an
        undefined function (``Function("R", positive=True)(x)``) over all smooth ones.
    where : iterable of relational
        Conditions under which the statement is meant.
    label : str
        Its name in the verdict.

    Returns
    -------
    Verdict or Proof
        A `Proof` (one `Verdict` a claim) for a law or formula. *Proved*: the difference simplifies
        to zero, or its sign follows from the assumptions, on every branch of Max, Piecewise and so
        on, or it holds at zero and the difference rises from there. *Checked*: no proof was found,
        and it holds to 50 digits at random points over many orders of magnitude. *Refuted*: it
        fails at the values given.

    Raises
    ------
    InvalidInput
        If the statement or a condition is none, such as text.

    Examples
    --------
    >>> from sympy import symbols, Eq
    >>> p, q = symbols("p q", positive=True)
    >>> prove(Eq((p + q)**2, p**2 + 2*p*q + q**2))
    proved (the difference simplifies to zero)
    >>> prove(p + q >= 2).status
    'refuted'
    """
    if isinstance(statement, Law):
        return Proof(
            tuple(prove_claim(statement, k, claim) for k, claim in statement.claims.items()),
            statement.name,
        )
    if isinstance(claims := getattr(statement, "claims", None), Mapping):  # a formula
        return Proof(
            tuple(replace(decide(f, ()), label=k, statement=f) for k, f in claims.items()),
            statement.name,
        )
    if isinstance(where, str) or not isinstance(where, Iterable) or isinstance(where, Basic):
        raise InvalidInput(f"where is {shown(where)}; give a list of SymPy relations")
    statement = _symbolic("statement", statement)
    conditions = tuple(_symbolic("where", given) for given in where)
    return replace(decide(statement, conditions), label=label, statement=statement)


def _symbolic(what: str, given: Any) -> Any:
    """Return text is refused: the symbols in it would have no assumptions, and so be others than
    those of any law.
    """
    if isinstance(given, (Basic, bool, int, float)):
        return sympify(given)
    raise InvalidInput(
        f"{what} is {type(given).__name__} {str(given)[:40]!r}; give a law, a formula, or a SymPy "
        f"relation"
    )


def prove_claim(law: Law, label: str, claim: Any) -> Verdict:
    """Return the verdict on one claim of a law; a `Steady` one is about its equilibria."""
    if not isinstance(claim, Steady):
        return replace(decide(claim, ()), label=label, statement=claim)
    found = [
        decide(_put(claim.relation, still.values), still.conditions)
        for still in standstills(law, claim)
    ]
    if not found:
        lacking = f"{law.name} has no equilibrium under what is given"
        return Verdict(label, claim, "refuted", lacking)
    worst = _worst(found)
    how = f"where the flow vanishes, {worst.how}"
    return replace(worst, label=label, statement=claim, how=how)


def _put(relation: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(relation, Relational):
        return relation.func(*(unfold(side).subs(values) for side in relation.args), evaluate=False)
    return unfold(relation).subs(values)
