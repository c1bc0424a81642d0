"""Is it true? Proved by algebra, checked to 50 digits at random points, or refuted by a counterexample."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from sympy import And, Basic, Expr, latex, sympify
from sympy.core.relational import Relational

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.laws.decide import Decision, decide
from fluidcc.laws.law import Law, Steady
from fluidcc.laws.standstill import standstills
from fluidcc.symbols import plain

__all__ = ["Proof", "Verdict", "prove"]


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

    def __repr__(self) -> str:
        values = ", ".join(f"{k} = {v:.6g}" for k, v in self.counterexample.items())
        return f"{self.label + ': ' if self.label else ''}{self.status} ({self.how}{': ' + values if values else ''})"

    def _repr_html_(self) -> str:
        return Proof((self,))._repr_html_()


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
            raise InvalidInput(f"{self.name} claims nothing called {key!r}: its claims are {labels or 'none'}")
        return self.verdicts[key]

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __bool__(self) -> bool:
        return all(self.verdicts)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.verdicts)) or f"{self.name} claims nothing"

    def _repr_html_(self) -> str:
        rows = []
        for v in self.verdicts:
            values = ", ".join(f"{k} = {x:.6g}" for k, x in v.counterexample.items())
            cells = (
                html.escape(v.label),
                f"$\\displaystyle {_tex(v.statement)}$",
                v.status,
                html.escape(v.how + (f": {values}" if values else "")),
            )
            rows.append("<tr>" + "".join(f"<td style='text-align:left'>{c}</td>" for c in cells) + "</tr>")
        head = "".join(f"<th style='text-align:left'>{h}</th>" for h in ("claim", "statement", "verdict", "how"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _tex(statement: Any) -> str:
    if isinstance(statement, Steady):
        given = ", ".join(rf"{latex(s)} = {latex(v)}" for s, v in statement.given.items())
        return _tex(statement.relation) + r"\ \text{at equilibrium}" + (rf",\ {given}" if given else "")
    text = str(latex(statement))
    return text.replace("<", r"\lt ") if isinstance(statement, (Relational, And)) else f"{text} = 0"


@explained
def prove(statement: Any, *, where: Iterable[Any] = (), label: str = "") -> Verdict | Proof:
    """Prove, check or refute a statement, or every claim of a law or formula.

    Parameters
    ----------
    statement : Law, Formula, relational, Expr or And
        An expression means that it is zero. Symbols range over what their assumptions say, and an undefined function
        (``Function("R", positive=True)(x)``) over all smooth ones.
    where : iterable of relational
        Conditions under which the statement is meant.
    label : str
        Its name in the verdict.

    Returns
    -------
    Verdict or Proof
        A `Proof` (one `Verdict` a claim) for a law or formula. *Proved*: the difference simplifies to zero, or its sign
        follows from the assumptions, on every branch of Max, Piecewise and so on, or it holds at zero and the
        difference rises from there. *Checked*: no proof was found, and it holds to 50 digits at random points over many
        orders of magnitude. *Refuted*: it fails at the values given.

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
        return Proof(tuple(prove_claim(statement, k, claim) for k, claim in statement.claims.items()), statement.name)
    if isinstance(claims := getattr(statement, "claims", None), Mapping):  # a formula
        return Proof(tuple(_verdict(k, f, decide(f, ())) for k, f in claims.items()), statement.name)
    if isinstance(where, str) or not isinstance(where, Iterable) or isinstance(where, Basic):
        raise InvalidInput(f"where is {shown(where)}; give a list of SymPy relations")
    statement = _symbolic("statement", statement)
    return _verdict(label, statement, decide(statement, tuple(_symbolic("where", given) for given in where)))


def _symbolic(what: str, given: Any) -> Any:
    """Text is refused: the symbols in it would have no assumptions, and so be others than those of any law."""
    if isinstance(given, (Basic, bool, int, float)):
        return sympify(given)
    raise InvalidInput(
        f"{what} is {type(given).__name__} {str(given)[:40]!r}; give a law, a formula, or a SymPy relation"
    )


def prove_claim(law: Law, label: str, claim: Any) -> Verdict:
    """The verdict on one claim of a law; a `Steady` one is about its equilibria."""
    if not isinstance(claim, Steady):
        return _verdict(label, claim, decide(claim, ()))
    decisions = [decide(_put(claim.relation, still.values), still.conditions) for still in standstills(law, claim)]
    if not decisions:
        return Verdict(label, claim, "refuted", f"{law.name} has no equilibrium under what is given")
    worst = max(decisions, key=lambda d: ("proved", "checked", "undecided", "refuted").index(d.status))
    return _verdict(label, claim, worst, "where the flow vanishes, ")


def _put(relation: Any, values: Mapping[Any, Any]) -> Any:
    from fluidcc.symbols import unfold

    if isinstance(relation, Relational):
        return relation.func(*(unfold(side).subs(values) for side in relation.args), evaluate=False)
    return unfold(relation).subs(values)


def _verdict(label: str, statement: Expr, decision: Decision, lead: str = "") -> Verdict:
    values = {plain(s): v for s, v in decision.counterexample.items()}
    return Verdict(label, statement, decision.status, lead + decision.how, values)
