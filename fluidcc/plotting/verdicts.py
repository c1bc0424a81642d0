"""How many claims have each verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.base.arguments import explained, shown
from fluidcc.base.colours import GREY
from fluidcc.base.errors import InvalidInput
from fluidcc.plotting.common import axes_for, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Good to bad; a table may have others, which come last.
_VERDICTS = {
    "proved": "#1a6e2e",
    "reproduced": "#4caf50",
    "rebuilt": "#8bc34a",
    "differs": "#f9a825",
    "refuted": "#c62828",
    "not given": "#9e9e9e",
    "needs a packet-level model": "#cfcfcf",
    "not a fluid's question": "#e8e8e8",
}


@explained
def claims(
    table: Iterable[Any], *, ax: Any = None, figsize: Any = None, title: str | None = None
) -> Axes:
    """Draw how many claims have each verdict, as one bar for each.

    Parameters
    ----------
    table : iterable of rows
        `fluidcc.claims.table(...)`; each row has a verdict, as an attribute or a key.
    ax : Axes, optional
        Where to draw; by default a new figure.
    figsize : (float, float), optional
        Width and height of a new figure [in].
    title : str, optional
        Above the axes; by default none.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import fluidcc as fc
    >>> ax = fc.plot.claims(fc.claims.table("ldcc", only="(18)"))
    """
    rows = (
        list(table) if isinstance(table, Iterable) and not isinstance(table, str | Mapping) else []
    )
    if not all(
        "verdict" in row if isinstance(row, Mapping) else hasattr(row, "verdict") for row in rows
    ):
        raise InvalidInput(
            f"the table is {shown(table)}, whose rows have no verdict; give one of "
            f"fluidcc.claims.table"
        )
    counts = Counter(_verdict(row) for row in rows)
    if not counts:
        raise InvalidInput("the table has no rows; give one such as fluidcc.claims.table('ldcc')")
    order = [v for v in _VERDICTS if v in counts] + sorted(v for v in counts if v not in _VERDICTS)
    (one,) = axes_for(ax, 1, (7.0, 1.0 + 0.4 * len(counts)), figsize)
    bars = one.barh(
        order, [counts[v] for v in order], color=[_VERDICTS.get(v, GREY) for v in order]
    )
    one.bar_label(bars, padding=3)
    one.invert_yaxis()
    one.margins(x=0.1)
    one.set_xlabel("number of claims")
    one.grid(visible=False)
    finish(one, title, legend=False)
    return one


def _verdict(row: Any) -> str:
    return str(row["verdict"] if isinstance(row, Mapping) else row.verdict)
