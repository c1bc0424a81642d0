"""What a formula says of itself: a docstring with the range and the unit of every argument, from the formula's own."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from sympy import Symbol

from fluidcc.formulas._argument import range_of
from fluidcc.symbols import plain

__all__ = ["numpydoc"]


def numpydoc(
    name: str,
    signature: inspect.Signature,
    arguments: Iterable[Symbol],
    units: Mapping[Symbol, str],
    ref: str,
    results: Iterable[str],
    conditions: Mapping[Any, str],
) -> str:
    """The docstring of a formula.

    Parameters
    ----------
    results : iterable of str
        Names of its values; none, if it has but one.
    conditions : mapping of relational to str
        What else must hold of the arguments, and why.
    """
    lines = [f"{name}{signature}: {ref}.", "", "Parameters", "----------"]
    for s in arguments:
        lines += [f"{plain(s)} : array_like", f"    {range_of(s).capitalize()} [{units.get(s, '1')}]."]
    named = tuple(results)
    what = f"The values {', '.join(named)}, by name and by position. " if named else ""
    lines += ["", "Returns", "-------", "Values" if named else "float or ndarray"]
    lines += [f"    {what}Of the shape to which the arguments broadcast; floats for numbers."]
    lines += [
        "",
        "Raises",
        "------",
        "InvalidInput",
        "    If an argument is not in its range, or text of another unit.",
    ]
    lines += [f"    If not {condition}{f': {why}' if why else ''}." for condition, why in conditions.items()]
    return "\n".join(lines)
