"""Equations that fit a column: how wide LaTeX is, sums broken between their terms, and names for
what cannot be broken.
"""

from __future__ import annotations

import re
from typing import Any

from sympy import Add, Symbol, sympify
from sympy.functions.elementary.piecewise import ExprCondPair

from fluidcc.laws.written import equations, formula

COLUMN = 52.0  # of a page's column, in the mean width of a letter
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}_^&]|[^\\{}_^&\s]")
_NONE = {"left", "right", "mathrm", "text", "operatorname", "displaystyle", "limits", ","}
_WIDE = {"quad": 2.0, "max": 3.6, "min": 3.4, "exp": 3.0, "log": 2.6, "leftarrow": 2.6}
_RELATION = {"+", "-", "=", "<", ">", "geq", "leq", "leftarrow", "cdot"}


def width(text: str) -> float:
    """Return how wide a row of LaTeX is, in the mean width of a letter."""
    rest = _TOKEN.findall(text)[::-1]
    return max(_row(rest, True)) if rest else 0.0


def _group(rest: list[str]) -> float:
    """Return the width of the next token, or of the next group."""
    if rest and rest[-1] == "{":
        rest.pop()
        return max(_row(rest, False))
    return _one(rest.pop(), rest) if rest else 0.0


def _row(rest: list[str], outermost: bool) -> list[float]:
    """Return the widths of rows up to the brace or the end that closes this group."""
    rows = [0.0]
    while rest:
        token = rest.pop()
        if token in ("}", r"\end") and not outermost:
            break
        if token == r"\\":
            rows.append(0.0)
        elif token == "{":
            rest.append(token)
            rows[-1] += _group(rest)
        else:
            rows[-1] += _one(token, rest)
    return rows


def _one(token: str, rest: list[str]) -> float:
    name = token.removeprefix("\\")
    if token in ("\\frac", "\\tfrac"):
        return max(_group(rest), _group(rest)) + 0.4
    if token == "\\begin":
        _group(rest)
        inside = max(_row(rest, False))
        _group(rest)
        return inside + 4.0  # a brace, and room between columns
    if token in ("_", "^"):
        return 0.75 * _group(rest)
    if token in ("&", "}"):
        return 0.0
    if name in _NONE:
        return 0.35 if name == "," else 0.0
    return _WIDE.get(name, 1.0) + (1.0 if name in _RELATION else 0.0)


def fitted(law: Any, column: float = COLUMN) -> list[str]:
    """Return the equations of a law as rows of an aligned environment, none wider than a column.

    A part that is too wide in one piece gets a name, Y_1 and so on, that is explained at the end.
    """
    names: dict[Any, Symbol] = {}
    rows = equations(law, lambda f: _lines(f, column - 12, names))
    done = 0
    while done < len(names):  # naming one part may name another
        part, symbol = list(names.items())[done]
        rows.append(f"{formula(symbol)} &= {_lines(part, column - 8, names, whole=False)}")
        done += 1
    return [line for row in rows for line in _condition(row, column).split("\\\\\n")]


def _lines(f: Any, column: float, names: dict[Any, Symbol], whole: bool = True) -> str:
    """Return an expression in as many lines as it takes."""
    f = sympify(f).xreplace(names) if whole else f.func(*(a.xreplace(names) for a in f.args))
    while (part := _too_wide(f, column)) is not None:
        names.setdefault(part, Symbol(f"Y_{len(names) + 1}", real=True))
        f = f.xreplace({part: names[part]})
    lines = [""]
    for k, term in enumerate(_terms(f)):
        text = formula(term)
        text = text if k == 0 or text.startswith("-") else f"+ {text}"
        if lines[-1] and width(f"{lines[-1]} {text}") > column:
            lines.append("")
        lines[-1] = f"{lines[-1]} {text}".strip()
    return " \\\\\n&\\quad ".join(lines)


def _terms(f: Any) -> list[Any]:
    return list(f.args) if isinstance(f, Add) else [f]


def _too_wide(f: Any, column: float) -> Any:
    """Return the part of a term that gets a name, if the term does not fit: the widest that does
    fit itself, or can be broken.
    """
    for term in _terms(f):
        if width(formula(term)) <= column:
            continue
        below = [p for p in _parts(term) if p is not term and p.args and not p.is_number]
        fits = [p for p in below if all(width(formula(t)) <= column for t in _terms(p))]
        return max(fits, key=lambda p: (width(formula(p)), len(str(p))), default=None)
    return None


def _parts(f: Any) -> list[Any]:
    """Return an expression and what it is made of; not the conditions of its branches."""
    if f.is_Boolean or f.is_Relational:
        return []
    if isinstance(f, ExprCondPair):
        return _parts(f.expr)
    return [f, *(p for a in f.args for p in _parts(a))]


def _condition(row: str, column: float) -> str:
    """Put when something happens on a line of its own, if the row is too wide."""
    lines = row.split("\\\\\n")
    head, mark, tail = lines[-1].partition(r" \quad\text{")
    if mark and width(lines[-1]) > column - 8:  # words are a little wider than symbols
        if width(tail) > column - 8:
            tail = re.sub(r"(?=\\text\{, at most)", r"\\\\\n&\\qquad ", tail)
        lines[-1] = f"{head} \\\\\n&\\quad\\text{{{tail}"
    return "\\\\\n".join(lines)
