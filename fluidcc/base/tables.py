"""Tables in plain text and in HTML, and results that show themselves in one."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from numbers import Real
from typing import Any, ClassVar

import numpy as np

MOST_ITEMS = 6  # of a sequence in one cell
NOTHING = 1e-12  # relative size that is printed as 0: below every tolerance
# What people read in place of an SI unit, and how many of the SI unit it is.
READ_IN = {"bit/s": ("Mbit/s", 1e6), "s": ("ms", 1e-3), "bit": ("kbit", 1e3)}
_NUMBER = re.compile(r"[-+]?(\d[\d.,]*(e[-+]?\d+)?|inf|nan)?( ?[%\u00b0])?")


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


def in_lines(rows: Iterable[tuple[str, str]]) -> str:
    """Return pairs of a name and a text, one below the other.

    >>> print(in_lines([("gain", "2"), ("phase margin", "60 deg")]))
    gain          2
    phase margin  60 deg
    """
    pairs = list(rows)
    most = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{name:{most}}  {text}".rstrip() for name, text in pairs)


def in_html(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return an HTML table of plain text, in which each row begins with its heading; columns of
    numbers are flush right.

    >>> in_html([["a", "x < 1"]]).count("x &lt; 1")
    1
    """
    body = [list(row) for row in rows]
    others = zip_longest(*(row[1:] for row in body), fillvalue="")
    right = [False, *(all(map(_NUMBER.fullmatch, column)) for column in others)]

    def line(cells: Sequence[str], other: str) -> str:
        parts = []
        for k, text in enumerate(cells):
            kind = other if k else "th"
            side = "right" if k < len(right) and right[k] else "left"
            style = f"text-align:{side};padding:.2em .8em"
            parts.append(f"<{kind} style='{style}'>{html.escape(text)}</{kind}>")
        return f"<tr>{''.join(parts)}</tr>"

    top = [line(head, "th")] if head else []
    return f"<table>{''.join([*top, *(line(row, 'td') for row in body)])}</table>"


def number(value: float, size: float = 0.0) -> str:
    """Return a number in six digits; one negligible beside `size` as 0.

    >>> number(0.1), number(-1e-17, 1.0)
    ('0.1', '0')
    """
    return f"{0.0 if abs(value) <= NOTHING * size else value:.6g}"


def in_units(values: Any, unit: str, size: float = 0.0) -> tuple[str, list[str]]:
    """Return the unit of tables and pictures for an SI unit, and values in it as text."""
    text, factor = READ_IN.get(unit, (unit, 1.0))
    return text, [number(float(v) / factor, size / factor) for v in values]


class InTable:
    """A result that shows itself as a table of the attributes that `_shown` names, with units."""

    _shown: ClassVar[tuple[str, ...]] = ()  # such as "half_life [s]"

    def _rows(self) -> list[tuple[str, str]]:
        return [
            (label.replace("_", " "), _told(getattr(self, label.split()[0])))
            for label in self._shown
        ]

    def _repr_html_(self) -> str:
        return in_html(self._rows())

    def __str__(self) -> str:
        return in_lines(self._rows())

    __repr__ = __str__  # where the dataclass leaves it so


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
