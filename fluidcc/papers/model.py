"""What a claim is: a statement of a paper with a function that tests it, and its outcome.

A paper's claims are the tables of ``claims.toml`` in its folder. The table ``[runs.fig5_fair]`` has
the words: what the paper says and prints, what was found, and why. The function ``fig5_fair`` of
``runs.py`` tests it: it takes the `Claim` and returns what one of its methods makes of the result.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partialmethod
from importlib import import_module, resources
from typing import Any

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import FluidccError, UnknownName
from fluidcc.laws import Law
from fluidcc.laws.prove import Proof, Verdict, prove
from fluidcc.papers import printed

__all__ = ["VERDICTS", "Claim", "Outcome", "Undecided", "claims_of", "law_proof", "papers", "proof"]

PROVED = "proved"  # by algebra, for all values
REPRODUCED = "reproduced"  # computed, and equal to what the paper prints within its precision
DIFFERS = "differs"  # true only with a change or a condition: the reason says by how much and why
REFUTED = "refuted"  # false: the reason gives the counterexample
NOT_GIVEN = "not given"  # the paper prints no value to compare with; the reason says what was taken
OUT_OF_REACH = "out of a fluid's reach"  # packets are needed

VERDICTS = (PROVED, REPRODUCED, DIFFERS, REFUTED, NOT_GIVEN, OUT_OF_REACH)

_WORDS = printed.Words()
_PAPERS = ("ldcc", "binomial", "fast", "delay_aimd", "ecf")


class Undecided(FluidccError, ArithmeticError):
    """Neither a proof nor a counterexample was found."""


@dataclass(frozen=True)
class Outcome:
    """What a test found.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    computed : str
        The library's value, or what was proved.
    reason : str
        By how much it differs and why, the counterexample, the argument, or the choice made; may be
        empty where the claim is proved or reproduced.
    values : mapping of str to float
        The numbers behind `computed`, in SI units.
    """

    verdict: str
    computed: str
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UnknownName(f"the verdict is {self.verdict!r}; give one of {', '.join(VERDICTS)}")
        if not self.reason and self.verdict not in (PROVED, REPRODUCED):
            raise UnknownName(f"the verdict {self.verdict!r} needs a reason")
        object.__setattr__(self, "values", {k: float(v) for k, v in self.values.items()})


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and how it is tested.

    Its methods make an `Outcome` of what a test finds. They take its numbers as `values`, and what
    else the words of the claim's table have in braces; or words in place of these, as `computed`
    and `reason`.

    Attributes
    ----------
    id : str
        ``paper.name``.
    paper, room, place : str
        Short name of the paper, the file of its folder with the test, and where in the paper: an
        equation, a figure or a section.
    statement : str
        What the paper says, in one sentence.
    published : str
        The value it prints.
    digits : tuple of str
        Numbers of it, as `fluidcc.papers.printed.agrees` takes them.
    computed, reason : str
        Words of the outcome, with numbers in braces (see `fluidcc.papers.printed.Words`).
    erratum : bool
        True if the printed statement was suspected to be wrong or ambiguous.
    """

    id: str
    paper: str
    room: str
    place: str
    statement: str
    published: str = ""
    digits: tuple[str, ...] = ()
    computed: str = ""
    reason: str = ""
    erratum: bool = False

    @property
    def test(self) -> Callable[[Claim], Outcome]:
        """The function that tests it."""
        module = import_module(f"fluidcc.papers.{self.paper}.{self.room}")
        found: Callable[[Claim], Outcome] = getattr(module, self.id.split(".")[1])
        return found

    def check(self) -> Outcome:
        """Compute the outcome, anew each time."""
        return self.test(self)

    def outcome(
        self, verdict: str, values: Mapping[str, Any] | None = None, **words: Any
    ) -> Outcome:
        """Return the outcome with this verdict; `computed` and `reason` replace the table's."""
        values = {k: float(v) for k, v in (values or {}).items()}
        given = {"values": values, **values, **words}
        computed, reason = (
            words.get(name) or _WORDS.vformat(getattr(self, name), (), given)
            for name in ("computed", "reason")
        )
        return Outcome(verdict, computed, reason, values)

    not_given = partialmethod(outcome, NOT_GIVEN)
    """The outcome where the paper prints no value to compare with."""
    out_of_reach = partialmethod(outcome, OUT_OF_REACH)
    """The outcome where packets are needed."""

    def _judged(
        self,
        good: object,
        values: Mapping[str, Any] | None = None,
        *,
        verdict: str,
        otherwise: str,
        **words: Any,
    ) -> Outcome:
        """Return the outcome with `verdict` if the test's checks are good, or with `otherwise`."""
        if good:
            return self.outcome(verdict, values, **words)
        words["reason"] = f"The checks that would make this row {verdict!r} fail."
        return self.outcome(otherwise, values, **words)

    reproduced_if = partialmethod(_judged, verdict=REPRODUCED, otherwise=DIFFERS)
    """The outcome: reproduced if the first argument is true, and differs if not."""
    differs_if = partialmethod(_judged, verdict=DIFFERS, otherwise=REPRODUCED)
    """The outcome if a change or condition is needed; it stands as printed if not so."""
    refuted_if = partialmethod(_judged, verdict=REFUTED, otherwise=REPRODUCED)
    """The outcome: false if the first argument is true, and stands if not."""
    proved_if = partialmethod(_judged, verdict=PROVED, otherwise=REFUTED)
    """The outcome: proved if the first argument is true, and refuted if not."""

    def proved(
        self,
        *statements: Any,
        values: Mapping[str, Any] | None = None,
        checks: object = True,
        **words: Any,
    ) -> Outcome:
        """Return the outcome of a claim that holds if every one of the statements does.

        Parameters
        ----------
        statements : relations of SymPy, or verdicts of `proof`
            What has to be proved.
        values, words
            Of the outcome, as for every method.
        checks : bool
            Whether the numbers beside the proofs agree too; if not, the claim differs.

        Raises
        ------
        Undecided
            If one of the statements is neither proved, checked nor refuted.
        """
        proofs = [_decided(s if isinstance(s, Verdict) else proof(s)) for s in statements]
        found = self.outcome(PROVED, values, **words)
        for p in proofs:
            if p.status == "refuted":
                failed = f"{p.statement} fails"
                return Outcome(REFUTED, failed, _counterexample(p, found.reason), values or {})
        if all(p.status == "proved" for p in proofs):
            return self._judged(checks, values, verdict=PROVED, otherwise=DIFFERS, **words)
        words["reason"] = found.reason or "checked to 50 digits at random points"
        return self.reproduced_if(checks, values, **words)

    def compared(
        self,
        numbers: Iterable[Any],
        values: Mapping[str, Any] | None = None,
        digits: Iterable[str] = (),
        **words: Any,
    ) -> Outcome:
        """Return the outcome of a claim whose numbers are printed.

        It is reproduced if every computed number agrees with its printed one. If not it differs,
        and the numbers that do not agree are put before the reason.

        Parameters
        ----------
        numbers : iterable of float, or of several each
            What was computed for each of `digits` [SI unit].
        values, words
            Of the outcome.
        digits : iterable of str, optional
            Printed numbers, as `fluidcc.papers.printed.agrees` takes them; by default the claim's.
        """
        found = self.outcome(REPRODUCED, values, **words)
        wrong = [
            printed.beside(one, value)
            for one, some in zip(digits or self.digits, numbers, strict=True)
            for value in (some if isinstance(some, Iterable) else (some,))
            if not printed.agrees(one, value)
        ]
        if not wrong:
            return found
        said = f"Not as printed: {', '.join(wrong)}. {found.reason}".strip()
        return Outcome(DIFFERS, found.computed, said, found.values)


@explained
def papers() -> tuple[str, ...]:
    """Short names of the papers with claims."""
    return _PAPERS


def claims_of(paper: str | None = None) -> list[Claim]:
    """The claims of a paper, or of all, in the order of their tables; nothing is computed.

    Raises
    ------
    UnknownName
        If there is no such paper.
    """
    if paper is not None and (not isinstance(paper, str) or paper not in _PAPERS):
        known = ", ".join(_PAPERS)
        raise UnknownName(f"there are no claims of {shown(paper)}; the papers are {known}")
    return [claim for name in _PAPERS if paper in (None, name) for claim in _read(name)]


@cache
def _read(paper: str) -> tuple[Claim, ...]:
    """The claims in the tables of a paper; ends of lines are spaces."""
    text = (resources.files("fluidcc.papers") / paper / "claims.toml").read_text("utf-8")
    found = []
    for room, rows in tomllib.loads(text).items():
        for name, row in rows.items():
            words: dict[str, Any] = {
                k: " ".join(v.split()) if isinstance(v, str) else v for k, v in row.items()
            }
            words["digits"] = tuple(row.get("digits", ()))
            found.append(Claim(f"{paper}.{name}", paper, room, **words))
    return tuple(found)


def proof(statement: Any, where: Iterable[Any] = ()) -> Verdict:
    """Return what `fluidcc.prove` says of one statement.

    Raises
    ------
    Undecided
        If that is neither proved, checked nor refuted: no row may turn on it.
    """
    verdict = prove(statement, where=where)
    assert isinstance(verdict, Verdict)
    return _decided(verdict)


def law_proof(law: Law, label: str) -> Verdict:
    """`fluidcc.prove` of the claim of a law with that label."""
    verdicts = prove(law)
    assert isinstance(verdicts, Proof)
    return _decided(verdicts[label])


def _decided(verdict: Verdict) -> Verdict:
    if verdict.status == "undecided":
        raise Undecided(f"{verdict.statement}: {verdict.how}")
    return verdict


def _counterexample(p: Verdict, reason: str) -> str:
    at = ", ".join(f"{name} = {value:.4g}" for name, value in sorted(p.counterexample.items()))
    return f"{reason + ': ' if reason else ''}{p.how}{' ' + at if at else ''}"
