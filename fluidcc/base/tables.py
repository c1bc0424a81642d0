"""Tables in plain text and in HTML, and results that show themselves in one."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

MOST_ITEMS = 6  # of a sequence in one cell


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the first column flush left, numbers flush right.

    >>> print(*in_columns([["flow", "rate"], ["a", "10.5"]]), sep="\\n")
    flow  rate
    a     10.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(n) if k else text.ljust(n)
            for k, (text, n) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def in_html(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """An HTML table of plain text, in which each row begins with its heading.

    >>> in_html([["a", "x < 1"]]).count("x &lt; 1")
    1
    """

    def line(cells: Sequence[str], first: str, other: str) -> str:
        kinds = [first] + [other] * (len(cells) - 1)
        parts = [
            f"<{kind} style='text-align:left'>{html.escape(text)}</{kind}>"
            for kind, text in zip(kinds, cells, strict=True)
        ]
        return f"<tr>{''.join(parts)}</tr>"

    top = [line(head, "th", "th")] if head else []
    return f"<table>{''.join([*top, *(line(row, 'th', 'td') for row in rows)])}</table>"


class InTable:
    """A result that Jupyter shows as a table of the attributes that `_shown` names, with units."""

    _shown: ClassVar[tuple[str, ...]] = ()  # such as "half_life [s]"

    def _repr_html_(self) -> str:
        return in_html(
            (label.replace("_", " "), _told(getattr(self, label.split()[0])))
            for label in self._shown
        )


def _told(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Real):
        value = float(value)
    if isinstance(value, float | complex):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_told(item)}" for name, item in value.items()) or "none"
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return f"array of {' by '.join(map(str, value.shape))}"
    if isinstance(value, list | tuple | np.ndarray):
        first, last = ([*value], []) if len(value) <= MOST_ITEMS else (value[:3], [value[-1]])
        told = [*map(_told, first), *(["..."] if last else []), *map(_told, last)]
        return f"{', '.join(told) or 'none'}{f' ({len(value)})' if last else ''}"
    if hasattr(value, "evalf"):  # a SymPy expression
        value = value.evalf(6)
    return str(value)
