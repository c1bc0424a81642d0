"""What a claim is: a statement of a paper with a function that tests it, and its outcome.

A paper's claims are the tables of ``claims.toml`` in its folder. The table ``[runs.fig5_fair]`` has
the words: what the paper says and prints, what was found, and why. The function ``fig5_fair`` of
``runs.py`` tests it, and returns what `proved`, `reproduced_if` or another function of this module
makes of the result.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module, resources
from typing import Any

import numpy as np

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import Undecided, UnknownName
from fluidcc.laws import Law
from fluidcc.papers import printed
from fluidcc.proofs.prove import Proof, Verdict, prove

MEANING = {
    "proved": "by algebra, for all values: the whole sentence",
    "reproduced": "computed, and as the paper says: to the digits it prints, or in order or sign",
    "rebuilt": "the formula is lost; one made from the prose does what the prose says",
    "differs": "true only with a change or a condition; by how much and why is said",
    "refuted": "false; the counterexample is given",
    "not given": "the paper prints nothing to compare with; what was taken is said",
    "needs a packet-level model": "a fluid has no packets; what it gives instead is beside it",
    "not a fluid's question": "nothing in it can be computed",
}
VERDICTS = tuple(MEANING)
PROVED, REPRODUCED, REBUILT, DIFFERS, REFUTED, NOT_GIVEN, NEEDS_PACKETS, NO_QUESTION = VERDICTS

_WORDS = printed.Words()
_PAPERS = ("ldcc", "binomial", "fast", "delay_aimd", "ecf", "internet")


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

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.claims.table("ldcc", only="(18)")[0].outcome.verdict
    'proved'
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
    rebuilt : bool
        True if the printed formula is lost and one made from the prose is tested.
    own : bool
        True if the paper does not say it: a result of the library, counted apart, "reproduced" if
        two computations agree.

    Examples
    --------
    >>> import fluidcc as fc
    >>> claim = fc.claims.table("ldcc", only="(18)")[0].claim
    >>> claim.paper, claim.check().verdict
    ('ldcc', 'proved')
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
    rebuilt: bool = False
    own: bool = False

    @property
    def items(self) -> tuple[str, ...]:
        """The equations, figures, tables and sections of its place, one by one."""
        return items_of(self.place)

    @property
    def test(self) -> Callable[[], Found]:
        """The function that tests it; what lies outside of all models is only named."""
        if self.room == "outside":
            return partial(found, self.computed)
        module = import_module(f"fluidcc.papers.{self.paper}.{self.room}")
        test: Callable[[], Found] = getattr(module, self.id.split(".")[1])
        return test

    def check(self) -> Outcome:
        """Compute the outcome, anew each time."""
        return self.outcome(self.test())

    def outcome(self, found: Found) -> Outcome:
        """Return what a test found, in the words of the claim."""
        values = {k: n for k, v in found.words.items() if (n := _number(v)) is not None}
        given = {"values": values, **found.words, **values}
        computed, reason = (
            given.get(name) or _WORDS.vformat(getattr(self, name), (), given)
            for name in ("computed", "reason")
        )
        if wrong := self._not_as_printed(found):
            said = f"Not as printed: {', '.join(wrong)}. {reason}".strip()
            return Outcome(DIFFERS, computed, said, values)
        good = found.verdict in (PROVED, REPRODUCED)
        verdict = REBUILT if self.rebuilt and good else found.verdict
        return Outcome(verdict, computed, reason, values)

    def _not_as_printed(self, found: Found) -> list[str]:
        """The computed numbers that are not those printed, beside these."""
        if found.numbers is None:
            return []
        return [
            printed.beside(one, value)
            for one, some in zip(self.digits, found.numbers, strict=True)
            for value in printed.each(some)
            if not printed.agrees(one, value)
        ]


_ITEM = re.compile(
    r"(?P<kind>Figs?\.|Tables?|Sections?|Algorithm)? ?(?P<first>\(?[0-9IVXA-D.-]+[a-e]?\)?)"
    r"(?:\([a-e]\))?(?:-(?P<last>\(\d+\)))?"
)


def items_of(place: str) -> tuple[str, ...]:
    """Return what a place names, one by one: "(45)" of "(45a)", and the last word goes on.

    Examples
    --------
    >>> from fluidcc.papers.model import items_of
    >>> items_of("(13)-(15), Figs. 7, 8, Fig. 4(a)"), items_of("after (38), II-A, V")
    (('(13)', '(14)', '(15)', 'Fig. 7', 'Fig. 8', 'Fig. 4'), ('(38)', 'Section II-A', 'Section V'))
    """
    found, kind = [], ""
    for part in place.replace("after ", "").split(", "):
        match = _ITEM.fullmatch(part)
        if match is None:  # such as Appendix A; "line 19" and "footnote 1" are parts of the item
            found += [part] if part[0].isupper() else []
            continue
        first, last = match["first"], match["last"]
        if first.startswith("("):
            low = int(re.sub(r"\D", "", first))
            found += [f"({k})" for k in range(low, int(last[1:-1]) + 1 if last else low + 1)]
            continue
        kind = match["kind"] or (kind if first.isdecimal() else "Section")
        found.append(f"{kind.replace('s.', '.').removesuffix('s')} {first}")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Found:
    """What a test found.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    words : mapping of str to object
        What the claim's words have in braces. The single numbers among it are the outcome's values;
        ``computed`` and ``reason`` are texts in place of the table's.
    numbers : iterable of float, or of several each, optional
        What was computed for each of the claim's digits [SI unit].
    """

    verdict: str
    words: Mapping[str, Any]
    numbers: Iterable[Any] | None = None


def found(verdict: str, *tables: Mapping[str, Any], **words: Any) -> Found:
    """Return what was found: the verdict, numbers by name, and what else the words need."""
    return Found(verdict, {k: v for table in (*tables, words) for k, v in table.items()})


not_given = partial(found, NOT_GIVEN)
"""Of a claim for which the paper prints no value to compare with."""
needs_packets = partial(found, NEEDS_PACKETS)
"""Of a claim about single packets."""


def _verdict_if(good: str, bad: str) -> Callable[..., Found]:
    def judged(
        holds: object, /, *tables: Mapping[str, Any], otherwise: str = bad, **words: Any
    ) -> Found:
        if holds:
            return found(good, *tables, **words)
        words["reason"] = f"The checks that would make this row {good!r} fail."
        return found(otherwise, *tables, **words)

    return judged


reproduced_if = _verdict_if(REPRODUCED, DIFFERS)
"""Reproduced if the first argument is true, and differs if not."""
differs_if = _verdict_if(DIFFERS, REPRODUCED)
"""If a change or condition is needed; it stands as printed if not so."""
refuted_if = _verdict_if(REFUTED, REPRODUCED)
"""False if the first argument is true, and stands if not."""
proved_if = _verdict_if(PROVED, REFUTED)
"""Proved if the first argument is true, and refuted if not."""


def proved(*parts: Any, checks: object = True, **words: Any) -> Found:
    """Return what was found of a claim that holds if every one of its statements does.

    Parameters
    ----------
    parts : relations of SymPy, verdicts of `proof`, or mappings
        What has to be proved; and numbers by name.
    checks : bool
        Whether the numbers beside the proofs agree too; if not, the claim differs.

    Raises
    ------
    Undecided
        If one of the statements is neither proved, checked nor refuted.
    """
    tables = [part for part in parts if isinstance(part, Mapping)]
    proofs = [
        _decided(part if isinstance(part, Verdict) else proof(part))
        for part in parts
        if not isinstance(part, Mapping)
    ]
    for p in proofs:
        if p.status == "refuted":
            at = ", ".join(f"{k} = {float(v):.4g}" for k, v in sorted(p.counterexample.items()))
            words |= {"computed": f"{p.statement} fails", "reason": f"{p.how} {at}".strip()}
            return found(REFUTED, *tables, **words)
    if all(p.status == "proved" for p in proofs):
        return proved_if(checks, *tables, otherwise=DIFFERS, **words)
    words["reason"] = next(p.how for p in proofs if p.status != "proved")
    return reproduced_if(checks, *tables, **words)


def compared(numbers: Iterable[Any], /, *tables: Mapping[str, Any], **words: Any) -> Found:
    """Return what was found of a claim whose numbers are printed.

    It is reproduced if every computed number agrees with its printed one. If not it differs, and
    the numbers that do not agree are put before the reason.

    Parameters
    ----------
    numbers : iterable of float, or of several each
        What was computed for each of the claim's digits [SI unit].
    """
    return replace(found(REPRODUCED, *tables, **words), numbers=numbers)


def _number(value: Any) -> float | None:
    """Return a single number as one of Python's; None is anything else."""
    if isinstance(value, int | np.integer):
        return int(value)
    with suppress(TypeError, ValueError):
        return None if isinstance(value, str) or np.ndim(value) else float(value)
    return None


@explained
def papers() -> tuple[str, ...]:
    """Short names of the papers with claims.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.claims.papers()
    ('ldcc', 'binomial', 'fast', 'delay_aimd', 'ecf', 'internet')
    """
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
            if row.get("own"):
                words["published"] = "not in the paper"
            found.append(Claim(f"{paper}.{name}", paper, room, **words))
    return tuple(found)


def proof(statement: Any, *where: Any) -> Verdict:
    """Return what `fluidcc.prove` says of one statement, where these conditions hold.

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
