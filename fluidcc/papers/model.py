"""What a claim is: a statement of a paper with a function that tests it, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import FluidccError, UnknownName
from fluidcc.laws import Law
from fluidcc.laws.prove import Proof, Verdict, prove

__all__ = [
    "DIFFERS", "NOT_GIVEN", "OUT_OF_REACH", "PROVED", "REFUTED", "REPRODUCED", "VERDICTS",
    "Claim", "Outcome", "Undecided", "claim", "claims_of", "differs_if", "from_proofs",
    "law_proof", "papers", "proof", "proved_if", "refuted_if", "reproduced_if",
]  # fmt: skip

PROVED = "proved"  # by algebra, for all values
REPRODUCED = "reproduced"  # computed, and equal to what the paper prints within its precision
DIFFERS = "differs"  # true only with a change or a condition: the reason says by how much and why
REFUTED = "refuted"  # false: the reason gives the counterexample
NOT_GIVEN = "not given"  # the paper prints no value to compare with; the reason says what was taken
OUT_OF_REACH = "out of a fluid's reach"  # packets are needed

VERDICTS = (PROVED, REPRODUCED, DIFFERS, REFUTED, NOT_GIVEN, OUT_OF_REACH)

# Modules with the claims of each paper, in the order of its sections; imported when asked for.
_ROOMS = {
    "ldcc": ("model", "law", "passivity", "stability", "regimes", "runs", "coexistence", "errata"),
    "binomial": ("cycles", "loss", "runs"),
    "fast": ("equations", "runs"),
    "delay_aimd": ("rules", "runs", "knee"),
    "ecf": ("equations", "runs"),
}
_REGISTRY: dict[str, dict[str, Claim]] = {}  # by module and name


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
    """A statement of a paper, and the function that tests it.

    Attributes
    ----------
    id : str
        ``paper.name``.
    paper, place : str
        Short name of the paper, and where in it: an equation, a figure or a section.
    statement : str
        What the paper says, in one sentence.
    published : str
        The value it prints.
    check : callable
        Computes an `Outcome`, anew each time.
    erratum : bool
        True if the printed statement was suspected to be wrong or ambiguous.
    """

    id: str
    paper: str
    place: str
    statement: str
    published: str
    check: Callable[[], Outcome] = field(compare=False, repr=False)
    erratum: bool = False


def claim(
    place: str, published: str = "", *, erratum: bool = False
) -> Callable[[Callable[[], Outcome]], Callable[[], Outcome]]:
    """Register the decorated function as the test of a claim of the paper whose folder it is in.

    Its name becomes part of the claim's id, and its docstring is the statement.
    """

    def register(check: Callable[[], Outcome]) -> Callable[[], Outcome]:
        paper, key = check.__module__.split(".")[-2], check.__name__
        statement = " ".join((check.__doc__ or "").split())
        _REGISTRY.setdefault(check.__module__, {})[key] = Claim(
            f"{paper}.{key}", paper, place, statement, published, check, erratum
        )
        return check

    return register


@explained
def papers() -> tuple[str, ...]:
    """Short names of the papers with claims."""
    return tuple(_ROOMS)


def claims_of(paper: str | None = None) -> list[Claim]:
    """The claims of a paper, or of all, in the order of their rooms; nothing is computed.

    Raises
    ------
    UnknownName
        If there is no such paper.
    """
    if paper is not None and (not isinstance(paper, str) or paper not in _ROOMS):
        known = ", ".join(_ROOMS)
        raise UnknownName(f"there are no claims of {shown(paper)}; the papers are {known}")
    found: list[Claim] = []
    for name in _ROOMS if paper is None else (paper,):
        for room in _ROOMS[name]:
            module = import_module(f"fluidcc.papers.{name}.{room}").__name__
            found += _REGISTRY[module].values()
    return found


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


def _decided(verdict: Verdict) -> Verdict:
    if verdict.status == "undecided":
        raise Undecided(f"{verdict.statement}: {verdict.how}")
    return verdict


def law_proof(law: Law, label: str) -> Verdict:
    """`fluidcc.prove` of the claim of a law with that label."""
    verdicts = prove(law)
    assert isinstance(verdicts, Proof)
    return _decided(verdicts[label])


def from_proofs(
    *statements: Any,
    computed: str,
    reason: str = "",
    values: Mapping[str, float] | None = None,
    checks: bool = True,
) -> Outcome:
    """Return the outcome of a claim that holds if every one of the statements does.

    Parameters
    ----------
    statements : relations of SymPy, or verdicts of `proof`
        What has to be proved.
    computed, reason, values
        Of the outcome.
    checks : bool
        Whether the numbers beside the proofs agree too; if not, the claim differs.

    Raises
    ------
    Undecided
        If one of the statements is neither proved, checked nor refuted.
    """
    proofs = [s if isinstance(s, Verdict) else proof(s) for s in statements]
    for p in map(_decided, proofs):
        if p.status == "refuted":
            return Outcome(
                REFUTED, f"{p.statement} fails", _counterexample(p, reason), values or {}
            )
    if any(p.status == "checked" for p in proofs):
        reason = reason or "checked to 50 digits at random points"
        return _judged(checks, computed, reason, values, verdict=REPRODUCED, otherwise=DIFFERS)
    return _judged(checks, computed, reason, values, verdict=PROVED, otherwise=DIFFERS)


def _judged(
    good: object,
    computed: str,
    reason: str = "",
    values: Mapping[str, float] | None = None,
    *,
    verdict: str,
    otherwise: str,
) -> Outcome:
    """Return the outcome with `verdict` if the row's own checks are good, or with `otherwise`."""
    if good:
        return Outcome(verdict, computed, reason, values or {})
    failed = f"The checks that would make this row {verdict!r} fail."
    return Outcome(otherwise, computed, failed, values or {})


reproduced_if = partial(_judged, verdict=REPRODUCED, otherwise=DIFFERS)
"""The outcome of a claim that is reproduced if the first argument is true, and differs if not."""
differs_if = partial(_judged, verdict=DIFFERS, otherwise=REPRODUCED)
"""The outcome of a claim that needs a change or condition; it stands as printed if not so."""
refuted_if = partial(_judged, verdict=REFUTED, otherwise=REPRODUCED)
"""The outcome of a claim that is false if the first argument is true, and stands if not."""
proved_if = partial(_judged, verdict=PROVED, otherwise=REFUTED)
"""The outcome of a claim that is proved if the first argument is true, and refuted if not."""


def _counterexample(p: Verdict, reason: str) -> str:
    at = ", ".join(f"{name} = {value:.4g}" for name, value in sorted(p.counterexample.items()))
    return f"{reason + ': ' if reason else ''}{p.how}{' ' + at if at else ''}"
