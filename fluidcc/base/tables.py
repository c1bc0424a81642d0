"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["in_columns"]


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
