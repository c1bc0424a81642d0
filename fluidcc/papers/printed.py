"""Numbers beside those that a paper prints: whether they agree to its digits, and as text."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fluidcc.base.errors import InvalidInput

__all__ = [
    "Number", "agrees", "at_values", "beside", "bound", "kbit", "mbit", "ms", "named",
    "numbers", "off", "percent",
]  # fmt: skip

_NUMBER = r"(\d[\d ]*(?:\.\d+)?)"
_BOUNDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# Format, factor, name and usual number of digits of a unit
_UNITS = {
    "ms": (1e3, "ms", 4),
    "kbit": (1e-3, "kbit/s", 4),
    "mbit": (1e-6, "Mbit/s", 4),
    "percent": (1e2, "%", 3),
}
_UNIT = re.compile(rf"({'|'.join(_UNITS)})(.*)")
_PRINTED = re.compile(rf"(?:(about|<=|>=|<|>) )?{_NUMBER}(?:(?:-| to ){_NUMBER})?")


def _read(text: str, about: bool) -> tuple[float, float]:
    """The number, and half a unit of its last digit; `about` one, closing zeros are no digits."""
    digits = text.replace(" ", "")
    whole, _, part = digits.partition(".")
    zeros = len(whole) - len(whole.rstrip("0")) if about else 0
    unit = 10.0 ** (-len(part) if part else zeros)
    return float(digits), unit / 2 * (1 + 1e-9)


def agrees(printed: str, computed: float) -> bool:
    """Return whether a computed number is the printed one, as far as its digits tell.

    Parameters
    ----------
    printed : str
        The digits of the paper, without a unit: what rounds to "0.75" agrees with it, and with
        "about 600" what rounds to its last digit that is not zero; "40-50" or "40 to 50" is a range
        whose ends are rounded alike; "< 30", "<= 5", "> 1" and ">= 1" are bounds, which no rounding
        widens.
    computed : float
        In the same unit.

    Raises
    ------
    InvalidInput
        If `printed` is none of these.
    """
    found = _PRINTED.fullmatch(printed)
    if found is None:
        known = "'0.75', 'about 600', '40-50' or '< 30'"
        raise InvalidInput(f"printed is {printed!r}; give digits such as {known}")
    word, first, second = found.groups()
    low, half = _read(first, word == "about")
    if word in _BOUNDS:
        return bool(_BOUNDS[word](computed, low))
    high, above = (low, half) if second is None else _read(second, word == "about")
    return low - half <= computed <= high + above


def beside(printed: str, value: float) -> str:
    """Return "32.3 for < 30", the number to as many digits as the printed one, or three.

    What is nothing beside the printed number is 0.
    """
    numbers = [text.replace(" ", "") for text in re.findall(_NUMBER, printed)]
    small = min(float(text) for text in numbers) / 1e3
    digits = max(len(text.replace(".", "")) for text in numbers)
    shown = "0" if abs(value) < small else f"{value:.{max(3, digits)}g}"
    return f"{shown} for {printed}"


class Number(float):
    """A number for a text: its format may be a unit with a number of digits, or with a format.

    Examples
    --------
    >>> from fluidcc.papers.printed import Number
    >>> f"{Number(0.01234):ms}, {Number(0.01234):ms3}, {Number(0.01234):percent.0f}"
    '12.34 ms, 12.3 ms, 1 %'
    """

    def __format__(self, form: str) -> str:
        if form == "bound":
            return bound(self)
        found = _UNIT.fullmatch(form)
        if found is None:
            return float.__format__(self, form)
        unit, digits = found.groups()
        times, name, usual = _UNITS[unit]
        form = f".{digits or usual}g" if digits.isdecimal() or not digits else digits
        return f"{float(self) * times:{form}} {name}"


def bound(ratio: float) -> str:
    """Return a power of ten above a small error, that is not rounding.

    Texts must not change with the last bits of a run: it is three times as large at least, or 1e-9.
    """
    return "1e-9" if 3 * ratio < 1e-9 else f"1e{math.ceil(math.log10(3 * ratio))}"


def off(found: Any, wanted: Any) -> float:
    """Return the largest difference of numbers from others, relative to these."""
    return float(np.max(np.abs(found / wanted - 1)))


def named(label: str, keys: Iterable[Any], values: Iterable[Any]) -> dict[str, float]:
    """Return numbers by names such as "n = 2", which a label such as "n = {:g}" makes of keys."""
    return {label.format(key): float(v) for key, v in zip(keys, values, strict=True)}


def numbers(values: Iterable[Any], form: str = ".3g") -> str:
    """Return numbers as text, one after the other."""
    return ", ".join(f"{float(v):{form}}" for v in values)


def _in_unit(unit: str) -> Callable[..., str]:
    def text(value: Any, digits: int | str = "") -> str:
        """Return a number in SI units as text in this unit, with as many digits."""
        return format(Number(value), f"{unit}{digits}")

    return text


ms, kbit, mbit, percent = (_in_unit(unit) for unit in ("ms", "kbit", "mbit", "percent"))


def at_values(values: Mapping[str, float]) -> str:
    """Return the numbers of a counterexample by name, as text."""
    return ", ".join(f"{name} = {v:.3g}" for name, v in sorted(values.items()))
