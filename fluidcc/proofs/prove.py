"""Is it true? Proved by algebra or by intervals, checked as far as is said, or refuted by a
counterexample with a proof that it is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import prod
from typing import Any, overload

from sympy import (
    Add,
    And,
    Basic,
    Eq,
    Expr,
    Float,
    Integer,
    N,
    Ne,
    Rational,
    Symbol,
    expand,
    false,
    fraction,
    latex,
    sympify,
    together,
    true,
)
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, LawError, Unsupported
from fluidcc.base.tables import in_html
from fluidcc.laws.law import Law
from fluidcc.laws.parts import Steady, told_apart
from fluidcc.laws.switches import Collector, undecided
from fluidcc.proofs.algebra import (
    LARGE,
    OPPOSITE,
    Condition,
    binding,
    by_squares,
    settled,
    substituted,
    with_conditions,
)
from fluidcc.proofs.asked import as_quotients, comparing, flat, oriented, without_functions
from fluidcc.proofs.cover import Box, Sign, WorkLeft, bare, exactly, forms, pieces
from fluidcc.proofs.refute import DIGITS, Hunt, fits, seen
from fluidcc.proofs.scaling import unscaled, weights
from fluidcc.proofs.slopes import Slopes
from fluidcc.proofs.standstill import standstills
from fluidcc.proofs.steps import MOST, OutOfStepsError, at_most, spend
from fluidcc.symbols import RATIOS, pi, plain, unfold

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
        Values at which it provably fails, if refuted: each as it stands, a float as the binary
        fraction that it holds. One that no float holds is exact, as ``pi/2`` of SymPy.
    """

    label: str
    statement: Any
    status: str
    how: str
    counterexample: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.status == "proved"

    @property
    def _argument(self) -> str:
        values = ", ".join(
            f"{k} = {v:.6g}" if isinstance(v, float) and float(f"{v:.6g}") == v else f"{k} = {v}"
            for k, v in self.counterexample.items()
        )
        return f"{self.how}: {values}" if values else self.how

    def __repr__(self) -> str:
        label = f"{self.label}: " if self.label else ""
        return f"{label}{self.status} ({self._argument})"

    def _repr_html_(self) -> str:
        return Proof((self,))._repr_html_()


# --- decide a relation between expressions --------------------------------------------------------


_ATTEMPTS = 12  # substitutions of conditions before a proof is given up
_MOST_SYMBOLS = 3  # of which a domain is covered with boxes
_BRANCH = 20  # steps
_WORK = 8_000
_LONG = 400  # operations
_DIGITS_OF_FLOATS = 10**12  # of the denominator of a fraction that is the digits of a float
_ROUNDING = 1e-9
_ROUNDED = (
    "no proof was found: it fails by no more than floats in it are rounded; write them as "
    "fractions, such as Rational(2, 3)"
)
_CONTRADICTORY = "its conditions contradict one another, so that it says nothing"


def decide(statement: Any, where: tuple[Any, ...]) -> Verdict:
    """Decide `statement` (relational, expression meaning zero, or And of them) under the
    conditions `where`.
    """
    try:
        asked = as_quotients(sympify(statement))
        statement, where, apart = without_functions(asked, tuple(map(as_quotients, where)))
    except Unsupported as unknown:
        return Verdict("", statement, "undecided", f"no proof was found: {unknown}")
    if statement is true:
        return Verdict("", statement, "proved", "it follows from the assumptions")
    if isinstance(statement, And):
        return _worst([_decided(part, where, apart) for part in statement.args])
    return _decided(statement, where, apart)


def _decided(statement: Any, where: tuple[Any, ...], apart: tuple[Expr, ...]) -> Verdict:
    if statement is false:
        statement = Eq(0, 1, evaluate=False)
    if not isinstance(statement, Relational):
        if not isinstance(statement, Expr):
            raise InvalidInput(
                f"{statement} is neither an expression nor an equation or inequality"
            )
        statement = Eq(statement, 0, evaluate=False)
    try:
        return replace(_Question.of(statement, where, apart).verdict(), statement=statement)
    except Unsupported as unknown:
        return Verdict("", statement, "undecided", f"no proof was found: {unknown}")


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    return max(verdicts, key=lambda v: _STATUS.index(v.status))


@dataclass(frozen=True)
class _Question:
    """left = right, or left > right (strictly or not), under conditions that left > right of
    theirs.
    """

    kind: str  # "==", ">" or ">=" or "!="
    gap: Expr  # left - right
    where: tuple[Condition, ...]  # (">" or ">=" or "==" or "!=", difference)
    apart: tuple[Expr, ...]  # what must not be zero at a counterexample

    @classmethod
    def of(
        cls, relation: Relational, where: tuple[Any, ...], apart: tuple[Expr, ...] = ()
    ) -> _Question:
        return cls(*oriented(relation), tuple(map(oriented, flat(where))), apart)

    def verdict(self) -> Verdict:
        """Return the worst of what is found on each branch: by points, by algebra, by covering the
        domain, in this order.
        """
        conditions = list(self.where)
        for s in self.gap.free_symbols:
            if s.is_extended_real is False or s.is_finite is False:
                raise Unsupported(f"{s} is no real number")
        if not self.gap.free_symbols.union(*(f.free_symbols for _, f in conditions)):
            holds = all(exactly(kind, f, {}) for kind, f in conditions)
            known = exactly(self.kind, self.gap, {}) if holds else None
            if known is not None:
                how = "it is true" if known else "it is false"
                return Verdict("", None, "proved" if known else "refuted", how)
        branches = list(self._branches())
        hunts = [self._hunted(*branch) for branch in branches]
        for hunt in hunts:
            if at := hunt.points():
                return self._refuted(at)
        try:
            found = [self._on_branch(*b, hunt) for b, hunt in zip(branches, hunts, strict=True)]
        except OutOfStepsError as ended:
            raise Unsupported(f"{ended}; {seen(hunts)}") from None
        found = [v for v in found if v.how != _CONTRADICTORY]
        if not found:
            return Verdict("", None, "undecided", _CONTRADICTORY)
        worst = _worst(found)
        if worst.status == "proved" and len(branches) > 1:
            return replace(worst, how=f"{worst.how} on every branch")
        return worst

    def _branches(self) -> Iterator[tuple[Expr, list[Condition]]]:
        """Yield the gap and the conditions with every kink decided, in each way in which it can."""
        collect = Collector("the statement")
        try:
            gap = collect.rewrite(comparing(self.gap))
            where = [(kind, collect.rewrite(comparing(f))) for kind, f in self.where]
        except LawError as kink:
            raise Unsupported(str(kink)) from None
        if self.gap.free_symbols.union(*(f.free_symbols for _, f in self.where)) & {*collect.modes}:
            raise Unsupported(f"{collect.modes} are symbols that are used for its branches")
        switches = dict(zip(collect.modes, collect.switches, strict=True))
        yield from _held(gap, where, switches)

    def _on_branch(self, gap: Expr, conditions: list[Condition], hunt: Hunt) -> Verdict:
        slopes = Slopes()
        for f in islice(with_conditions(gap, conditions), _ATTEMPTS):
            if f is None:
                return Verdict("", None, "undecided", _CONTRADICTORY)
            if settled(self.kind, f) or (self.kind in OPPOSITE and self._ordered(f, slopes)):
                how = (
                    "the difference simplifies to zero"
                    if self.kind == "=="
                    else "its sign follows from the assumptions"
                )
                return Verdict("", None, "proved", how)
        if self.kind == "==":
            return self._equal(hunt)
        found = self._covered(hunt)
        if hunt.values and found.status == "undecided":  # without conditions made into assumptions
            fails = hunt.fails
            plain = self._covered(Hunt(self.kind, gap, conditions, {}, fails))
            return plain if plain.status != "undecided" else found
        return found

    def _ordered(self, f: Expr, slopes: Slopes) -> bool:
        found = forms(self.kind, f)
        return (
            any(settled(self.kind, g) for g in found[1:])
            or by_squares(self.kind, f)
            or any(slopes.show(self.kind, unscaled(g)) for g in found)
        )

    def _hunted(self, gap: Expr, conditions: list[Condition]) -> Hunt:
        """Return a search with as many conditions as possible made into assumptions."""
        f, rest, values = gap, conditions, dict[Symbol, Expr]()
        for _ in conditions:
            put = next(substituted(f, rest, values), (f, rest, values))
            if sum(g.count_ops() for g in (put[0], *(g for _, g in put[1]))) > _LONG:
                break
            f, rest, values = put
        return Hunt(self.kind, f, rest, values, lambda at: self.fails(at, gap, conditions))

    def fails(self, point: Mapping[Symbol, Expr], gap: Expr, where: list[Condition]) -> bool:
        """Return whether the statement provably fails at a point that provably is on a branch."""
        known = self.gap.free_symbols.union(*(f.free_symbols for f in self.apart),
                                            *(f.free_symbols for _, f in self.where))  # fmt: skip
        at = {s: v for s, v in point.items() if s in known}
        for k, s in enumerate(sorted(known - at.keys(), key=str)):  # of which all is free here
            size = Rational(2 * k + 3, 2) if not s.is_integer else Integer(k + 1)
            at[s] = size if fits(s, size) else -size
        return (
            all(fits(s, v) for s, v in at.items())
            and exactly(self.kind, gap, at) is False
            and all(exactly(kind, f, at) for kind, f in where)
            and all(exactly("!=", f, at) for f in self.apart)
        )

    def _refuted(self, point: Mapping[Symbol, Expr]) -> Verdict:
        if self.kind == "==" and self._by_rounding(point):
            return Verdict("", None, "undecided", _ROUNDED)
        known = self.gap.free_symbols.union(*(f.free_symbols for _, f in self.where))
        at = {_spoken(s): _number(v) for s, v in point.items() if s in known}
        return Verdict("", None, "refuted", "it fails at" if at else "it is false", at)

    def _by_rounding(self, point: Mapping[Symbol, Expr]) -> bool:
        """Whether an equation fails by no more than what floats of many digits leave."""
        if all(r.q < _DIGITS_OF_FLOATS for r in self.gap.atoms(Rational)):
            return False
        terms = Add.make_args(expand(fraction(together(self.gap))[0]))
        values = [N(f.subs(point), 30) for f in terms]
        return bool(abs(sum(values)) < _ROUNDING * max(map(abs, values)))

    # --- what algebra leaves ----------------------------------------------------------------------

    def _equal(self, hunt: Hunt) -> Verdict:
        """Return the verdict on an equation: two smooth functions that differ do so nearly
        everywhere.
        """
        if point := hunt.first(hunt.turns()):
            return self._refuted(point)
        agreed = hunt.agreed()
        how = (
            f"also where parts of them vanish or turn, and at {agreed} points to {DIGITS} digits "
            "with no term lost beside others"
        )
        return self._looked_for(hunt, how, agreed >= _ENOUGH)

    def _covered(self, hunt: Hunt) -> Verdict:
        """Return the verdict on an inequality after its domain was covered with boxes.

        What they leave, however little, may hold a failure: a gap that vanishes at an end, say.
        """
        if len(hunt.symbols) > _MOST_SYMBOLS or hunt.gap.count_ops() > _LONG:
            return self._looked_for(hunt, "it is too long for intervals")
        gap = min(forms(self.kind, hunt.gap), key=lambda g: len(g.free_symbols))
        used = gap.free_symbols.union(*(f.free_symbols for _, f in hunt.where))
        symbols = sorted(used, key=str)
        scales = weights([gap, *(f for _, f in hunt.where)])
        if not all(s.is_nonzero for s in scales) and not exactly(
            self.kind, gap.subs(dict.fromkeys(scales, 0)), {}
        ):
            scales = {}
        left, near, parts = 0.0, [], list(pieces(symbols, scales))
        for put, box in parts:
            where = tuple((kind, bare(kind, f.subs(put))) for kind, f in hunt.where)
            work = WorkLeft(_WORK // len(parts))
            boxes, point = Sign(self.kind, forms(self.kind, gap.subs(put)), where, work).left(box)
            middles = [{u: lo / 2 + hi / 2 for u, (lo, hi) in b.items()} for b in boxes[:_NEAR]]
            for at in [point] if point else middles:
                exact = {s: f.subs({u: Rational(v) for u, v in at.items()}) for s, f in put.items()}
                if point and (found := hunt.first(iter([exact]))):
                    return self._refuted(found)
                if all(v.is_finite for v in exact.values()):
                    near.append({s: float(v) for s, v in exact.items()})
            left += sum(map(_size, boxes)) / _size(box)
        if not near and left == 0:
            return Verdict("", None, "proved", "intervals show its sign all over the domain")
        if found := hunt.first(p for at in near for p in hunt.meant(at)):
            return self._refuted(found)
        some = ", ".join(f"{plain(s)} = {v:.3g}" for s, v in near[0].items()) if near else "an end"
        share = left / len(parts)
        how = f"intervals prove it but on a share {share:.1g} of the domain, as near {some}"
        return self._looked_for(hunt, how)

    def _looked_for(self, hunt: Hunt, how: str, agrees: bool = False) -> Verdict:
        near = hunt.least() if self.kind in OPPOSITE else iter(())
        if point := hunt.first(chain(near, hunt.far())):
            return self._refuted(point)
        size = self.gap.count_ops()
        found = "it is too long for algebra" if size > LARGE else "no proof was found"
        how = f"{found}; {seen([hunt])}; {how}"
        return Verdict("", None, "checked" if agrees else "undecided", how)


def _size(box: Box) -> float:
    return prod(hi - lo for lo, hi in box.values())


_ENOUGH = 8  # points
_NEAR = 8  # places that intervals leave


def _spoken(symbol: Symbol) -> str:
    """Return the plain name of a symbol, which may stand for a derivative: x'(t)."""
    return "'".join(map(plain, symbol.name.split("'")))


def _number(value: Expr) -> Any:
    """Return a float where that is the exact value, else the exact value."""
    near = float(value) if value.is_Rational else None
    return near if near is not None and Rational(near) == value else value


def _held(
    gap: Expr, where: Iterable[Condition], switches: Mapping[Symbol, Expr]
) -> Iterator[tuple[Expr, list[Condition]]]:
    """Yield the gap and the conditions with modes decided, but where these exclude one another."""
    spend(_BRANCH)
    if (kept := binding(where)) is None:
        return
    mode = undecided([gap, *(f for _, f in kept)], switches)
    if mode is None:
        yield gap, kept
        return
    for value in (1, 0):
        put = {mode: Integer(value)}
        rest = {m: s.subs(put) for m, s in switches.items() if m != mode}
        side = (">", switches[mode]) if value else (">=", -switches[mode])
        yield from _held(gap.subs(put), [*((k, f.subs(put)) for k, f in kept), side], rest)


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
    return text.replace("<", r"\lt ") if isinstance(statement, Boolean) else f"{text} = 0"


@explained
def prove(statement: Any, *, where: Iterable[Any] = (), label: str = "") -> Verdict | Proof:
    """Prove, check or refute a statement, or every claim of a law or formula.

    Parameters
    ----------
    statement : Law, Formula, relational, Expr or And
        An expression means that it is zero. Symbols range over what their assumptions say, and an
        undefined function (``Function("R", positive=True)(x)``) over all smooth ones; without any,
        they are real.
    where : iterable of relational
        Conditions under which the statement, or every claim of a law or formula, is meant; all of
        them hold.
    label : str
        Its name in the verdict.

    Returns
    -------
    Verdict or Proof
        A `Proof` (one `Verdict` a claim) for a law or formula. *Proved*: the difference simplifies
        to zero; its sign follows from the assumptions on every branch of Max, Piecewise and so on;
        or intervals and slopes show it all over the domain. *Refuted*: it fails at the values
        given, where interval arithmetic proves that it does, and that all assumptions and
        conditions hold. *Checked*: no proof of an equation was found, but it agrees to 1000 digits
        at points on every branch where no term is lost beside others, and where parts of it vanish
        or turn. *Undecided*: all else, an inequality too of which
        intervals leave a small share of the domain, for its gap may vanish there. `how` says how it
        was looked for, and why it is not decided.

    Notes
    -----
    Points at which a part of either side is not defined or not real do not count. Numbers are
    meant exactly: 0.1 is the binary fraction that it stands for. A statement about equilibria
    (`Steady`) is proved if it is on every branch on which all flows vanish; what is looked at are
    those with ratios of at most 1 and states within their bounds. A call ends after a number of
    steps of work (some 20 s), which are counted and not timed, so that its answer is the same on
    every machine; what is not decided by then is undecided.

    Raises
    ------
    InvalidInput
        If the statement or a condition is none, such as text, or a condition is about a symbol that
        a law has not, or has with other assumptions.

    Examples
    --------
    >>> from sympy import symbols, Eq
    >>> p, q = symbols("p q", positive=True)
    >>> prove(Eq((p + q)**2, p**2 + 2*p*q + q**2))
    proved (the difference simplifies to zero)
    >>> prove(p + q >= 2).status
    'refuted'
    >>> from sympy import tanh
    >>> prove(tanh(p) < 1).status, prove((p - 3)**2 > 0).counterexample
    ('proved', {'p': 3.0})
    >>> prove(p < q, where=[2*p < q]).status
    'proved'
    """
    if isinstance(where, str) or not isinstance(where, Iterable) or isinstance(where, Basic):
        raise InvalidInput(f"where is {shown(where)}; give a list of SymPy relations")
    conditions = tuple(flat(_symbolic("where", given) for given in where))
    if any(r == Ne(0, 0, evaluate=False) for r in conditions):
        raise InvalidInput("where holds False, which no point meets; give SymPy relations")
    claims = getattr(statement, "claims", None)
    if isinstance(statement, Law):
        _known(statement, (*statement.params, *statement.inputs, *statement.states), conditions)
        return _proof(statement, lambda k, f: prove_claim(statement, k, f, conditions))
    if isinstance(claims, Mapping):  # a formula
        _known(statement, statement.arguments, conditions)
        domain = tuple(bound.condition.doit() for bound in statement.domain)
        return _proof(
            statement,
            lambda k, f: replace(_at_first(f, conditions, domain), label=k, statement=f),
        )
    statement = _symbolic("statement", statement)
    _meant(statement.free_symbols, conditions)
    with at_most(MOST):
        return replace(decide(statement, conditions), label=label, statement=statement)


def _proof(of: Any, verdict: Callable[[str, Any], Verdict]) -> Proof:
    """Return the verdicts on all claims, each of which may take its share of the steps left."""
    found, left = list[Verdict](), MOST
    for k, (label, claim) in enumerate(of.claims.items()):
        with at_most(left // (len(of.claims) - k)) as account:
            found.append(verdict(label, claim))
        left -= account.given - max(account.left, 0)
    return Proof(tuple(found), of.name)


def _known(of: Any, symbols: Sequence[Symbol], conditions: tuple[Any, ...]) -> None:
    """Refuse conditions on what a law or formula does not have."""
    has = {*symbols}.union(
        *(f.relation.free_symbols if isinstance(f, Steady) else f.free_symbols
          for f in of.claims.values())
    )  # fmt: skip
    _meant(has, conditions)
    for condition in conditions:
        if unknown := condition.free_symbols - has:
            raise InvalidInput(
                f"where: {condition} is about {', '.join(sorted(map(plain, unknown)))}, which "
                f"{of.name} has not; its symbols are {', '.join(sorted(map(plain, has)))}"
            )


def _meant(has: set[Symbol], conditions: tuple[Any, ...]) -> None:
    """Refuse symbols that have the name of another one, but not its assumptions."""
    names = {s.name: s for s in has}
    for condition in conditions:
        for s in condition.free_symbols:
            if names.get(s.name, s) != s:
                raise InvalidInput(
                    f"where: {condition} has another symbol {plain(s)} than the statement: its "
                    f"assumptions differ; take the same one, such as those of law.params"
                )


def _symbolic(what: str, given: Any) -> Any:
    """Return a SymPy expression; refuse text, because its symbols would carry no assumptions."""
    if isinstance(given, (Basic, bool, int, float)):
        return sympify(given)
    raise InvalidInput(
        f"{what} is {type(given).__name__} {str(given)[:40]!r}; give a law, a formula, or a SymPy "
        f"relation"
    )


def prove_claim(law: Law, label: str, claim: Any, where: tuple[Any, ...] = ()) -> Verdict:
    """Return the verdict on one claim of a law; a `Steady` one is about its equilibria."""
    if not isinstance(claim, Steady):
        return replace(decide(claim, where), label=label, statement=claim)
    found = []
    try:
        for still in standstills(law, claim, where):
            relation, given = _put(claim.relation, still.values), still.conditions
            more = tuple(_put(r, still.values) for r in _reached(law))
            verdict = _at_first(relation, given, more)
            if verdict.how != _CONTRADICTORY:
                found.append(_with_all(verdict, still.values))
    except Unsupported as unsupported:
        found.append(Verdict("", None, "undecided", str(unsupported)))
    if not found:
        lacking = f"{law.name} has no equilibrium under what is given, so there is nothing to claim"
        return Verdict(label, claim, "undecided", lacking)
    worst = _worst(found)
    how = f"where the flow vanishes, {worst.how}"
    return replace(worst, label=label, statement=claim, how=how)


def _at_first(statement: Any, where: tuple[Any, ...], more: tuple[Any, ...]) -> Verdict:
    """Decide a statement under some conditions, and if it is not proved, under more that hold."""
    verdict = decide(statement, where)
    return verdict if verdict.status == "proved" or not more else decide(statement, where + more)


def _reached(law: Law) -> list[Any]:
    """Return what holds wherever a law can be: ratios are at most 1, states within their bounds,
    and flows are defined.
    """
    bounds = [z >= f for z, f in law.lower.items()] + [z <= f for z, f in law.upper.items()]
    below = [fraction(together(unfold(f)))[1] for f in law.flow.values()]
    ratios = RATIOS if told_apart(law) else (pi,)
    return [
        *(ratio <= 1 for ratio in ratios),
        *bounds,
        *(Ne(g, 0) for g in below if not g.is_nonzero),
    ]


def _with_all(verdict: Verdict, values: Mapping[Symbol, Expr]) -> Verdict:
    """Return a verdict whose counterexample has the symbols that standing still determines too."""
    if verdict.status != "refuted":
        return verdict
    at = {s: sympify(verdict.counterexample.get(plain(s)))
          for f in values.values() for s in f.free_symbols}  # fmt: skip
    at = {s: Rational(v) if isinstance(v, Float) else v for s, v in at.items() if v is not None}
    more = {plain(s): f.subs(at) for s, f in values.items()}
    more = {name: _number(v) for name, v in more.items() if v.is_number and v.is_finite}
    return replace(verdict, counterexample={**verdict.counterexample, **more})


def _put(relation: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(relation, And):
        return And(*(_put(part, values) for part in relation.args), evaluate=False)
    if isinstance(relation, Relational):
        return relation.func(*(unfold(side).subs(values) for side in relation.args), evaluate=False)
    return unfold(relation).subs(values)
