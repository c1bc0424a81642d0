"""Tables of claims: computed rows, as HTML, Markdown or text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, overload

from fluidcc.base.arguments import choice, explained, explained_class, flag, shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.progress import bar_class, watched
from fluidcc.base.tables import InTable, in_html
from fluidcc.network.patterns import near
from fluidcc.papers.model import VERDICTS, Claim, Outcome, claims_of

if TYPE_CHECKING:
    import pandas as pd

_OWN = "of the library's own"
COLUMNS = ("place", "statement", "published", "computed", "verdict", "reason")


@dataclass(frozen=True)
class Row(InTable):
    """A claim and its outcome, whose attributes are its own (``row.place``, ``row.verdict``).

    Examples
    --------
    >>> import fluidcc as fc
    >>> row = fc.claims.table("ldcc", only="(18)")[0]
    >>> row.place, row.verdict
    ('(18)', 'proved')
    """

    claim: Claim
    outcome: Outcome

    _shown = COLUMNS

    id, paper, place, statement, published, erratum, own = (
        property(attrgetter(f"claim.{name}"))
        for name in ("id", "paper", "place", "statement", "published", "erratum", "own")
    )
    verdict, computed, reason = (
        property(attrgetter(f"outcome.{name}")) for name in ("verdict", "computed", "reason")
    )

    @property
    def values(self) -> dict[str, float]:
        """The numbers of the outcome, in SI units."""
        return dict(self.outcome.values)

    def cells(self) -> tuple[str, ...]:
        """The texts of `COLUMNS`."""
        return tuple(getattr(self, name) or "" for name in COLUMNS)


@explained_class
@dataclass(frozen=True)
class Table(Sequence[Row]):
    """Rows of claims, in the order of the papers.

    Examples
    --------
    >>> import fluidcc as fc
    >>> t = fc.claims.table("ldcc", only="(16)")
    >>> len(t), t[0].verdict
    (1, 'proved')
    """

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int | str) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    def __getitem__(self, key: int | str | slice) -> Row | Table:
        """The row of that position or id; a slice is a table."""
        if isinstance(key, slice):
            return Table(self.rows[key])
        if isinstance(key, str):
            for row in self.rows:
                if key in (row.id, row.id.split(".", 1)[1]):
                    return row
            known = ", ".join(r.id for r in self.rows)
            raise UnknownName(f"no claim has the id {key!r}; the ids are {known}")
        return self.rows[key]

    def filter(
        self,
        keep: Callable[[Row], bool] | None = None,
        *,
        verdict: str | None = None,
        place: str | None = None,
        erratum: bool | None = None,
        own: bool | None = None,
    ) -> Table:
        """The rows that `keep` keeps, of that verdict, with `place` in theirs.

        With `erratum` or `own` those of which it is true or not.
        """
        if verdict is not None:
            choice(verdict, "verdict", VERDICTS)
        for name, value in (("erratum", erratum), ("own", own)):
            flag(value, name, unset=True)
        if keep is not None and not callable(keep):
            raise InvalidInput(f"keep is {shown(keep)}; give a function of a row")
        if not isinstance(place, str | None):
            raise InvalidInput(f"place is {shown(place)}; give text, such as '(18)'")
        return Table(
            tuple(
                r
                for r in self.rows
                if (verdict is None or r.verdict == verdict)
                and (place is None or place in r.place)
                and (erratum is None or r.erratum == erratum)
                and (own is None or r.own == own)
                and (keep is None or keep(r))
            )
        )

    def counts(self) -> dict[str, int]:
        """Number of rows by verdict, the most frequent first."""
        return dict(Counter(r.verdict for r in self.rows).most_common())

    def to_markdown(self) -> str:
        """A Markdown table, one line a row."""
        titles = ("claim", *COLUMNS)
        lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
        rows = ((r.id, *r.cells()) for r in self.rows)
        lines += ["| " + " | ".join(map(_markdown, row)) + " |" for row in rows]
        return "\n".join(lines) + "\n"

    def to_pandas(self) -> pd.DataFrame:
        """A pandas table, one row a claim, by id."""
        import pandas as pd

        return pd.DataFrame([r.cells() for r in self], [r.id for r in self], COLUMNS)

    def __repr__(self) -> str:
        cells = [(r.id, r.place, r.verdict) for r in self.rows]
        a, b, c = (
            (max(map(len, column)) for column in zip(*cells, strict=True)) if cells else (0, 0, 0)
        )
        lines = [f"{r.id:<{a}}  {r.place:<{b}}  {r.verdict:<{c}}  {r.computed}" for r in self.rows]
        return "\n".join([*lines, self.summary()])

    def summary(self) -> str:
        """Such as "60 claims: 60 proved; 2 of the library's own: 2 proved"."""
        parts = []
        for rows, what in ((self.filter(own=False), "claims"), (self.filter(own=True), _OWN)):
            counts = ", ".join(f"{n} {verdict}" for verdict, n in rows.counts().items())
            if rows or what != _OWN:
                parts.append(f"{len(rows)} {what}: {counts or 'none'}")
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        rows = ((r.id, *r.cells()) for r in self)
        return f"<p>{self.summary()}</p>{in_html(rows, ('claim', *COLUMNS))}"


def _markdown(cell: str) -> str:
    # In GitHub's Markdown < begins a tag, | a cell, * and _ emphasis.
    for sign in "\\|*_<":
        cell = cell.replace(sign, "\\" + sign)
    return " ".join(cell.split())


@explained
def table(
    paper: str | None = None, *, only: str | None = None, progress: bool | None = None
) -> Table:
    """Test every claim of a paper, or of all papers.

    Parameters
    ----------
    paper : str, optional
        Such as ``"ldcc"``; by default all.
    only : str, optional
        Test only the claims about this item, an equation, a figure, a table or a section ("(18)",
        "Fig. 5", "Section V-B"), or the one with this id.
    progress : bool, optional
        Show a progress bar; by default once it has taken two seconds, in a terminal or notebook.

    Returns
    -------
    Table
        One `Row` a claim: id, paper, place, statement, published, computed, verdict, reason.
        Each claim is a function that derives or simulates, so a paper takes a minute and more.
        ``.filter(verdict="differs")`` keeps the rows of one verdict. All rows as they were computed
        last are in ``figures/claims.md`` of a clone, and on the papers' pages of the documentation,
        with a button for each verdict.

    Raises
    ------
    UnknownName
        If there is no such paper or place.

    Examples
    --------
    >>> import fluidcc as fc
    >>> print(fc.claims.table("ldcc", only="(18)")[0].verdict)
    proved
    """
    flag(progress, "progress", unset=True)
    chosen = claims_of(paper)
    if only is not None:
        places = list(dict.fromkeys(item for c in chosen for item in c.items))
        names = only if isinstance(only, str) else ()  # an array is equal to nothing, item by item
        chosen = [c for c in chosen if names in (c.place, *c.items, c.id, c.id.split(".", 1)[1])]
        if not chosen:
            raise UnknownName(f"no claim is about {shown(only)}; {near(str(only), places)}")
    show = watched() if progress is None else progress
    options = {"desc": "claims", "unit": "claim", "delay": 0 if progress else 2, "leave": False}
    bar = bar_class()(chosen, disable=not show, **options)
    return Table(tuple(Row(c, tested(c)) for c in bar))


def tested(claim: Claim) -> Outcome:
    """Return the outcome of a claim; an error says which claim it was."""
    try:
        return claim.check()
    except Exception as error:
        error.add_note(f"while testing the claim {claim.id}, {claim.place}: {claim.statement}")
        raise
