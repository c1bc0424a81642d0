"""Numbers beside those that a paper prints: whether they agree to its digits, and as text."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

import numpy as np

from fluidcc.base.errors import InvalidInput

_NUMBER = r"(\d(?:[\d ]*\d)?(?:\.\d+)?)"
_BOUNDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# Format, factor, name and usual number of digits of a unit
_UNITS = {
    "ms": (1e3, "ms", 4),
    "kbit": (1e-3, "kbit/s", 4),
    "mbit": (1e-6, "Mbit/s", 4),
    "percent": (1e2, "%", 3),
}
_UNIT = re.compile(rf"({'|'.join(_UNITS)})(.*)")
_SCALES = {name: times for times, name, _ in _UNITS.values()}
_PRINTED = re.compile(
    rf"((?:(about|<=|>=|<|>) )?{_NUMBER}(?:(?:-| to ){_NUMBER})?)(?: ({'|'.join(_SCALES)}))?"
)


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
        The digits of the paper, and "ms", "%", "kbit/s" or "Mbit/s" if they are in such a unit:
        what rounds to "0.75" agrees with it, and with "about 600" what rounds to its last digit
        that is not zero; "40-50" or "40 to 50" is a range whose ends are rounded alike; "< 30",
        "<= 5", "> 1" and ">= 1" are bounds, which no rounding widens.
    computed : float
        In the SI unit.

    Raises
    ------
    InvalidInput
        If `printed` is none of these.
    """
    _, word, first, second, unit = _parts(printed)
    computed = float(computed) * _SCALES.get(unit, 1.0)
    low, half = _read(first, word == "about")
    if word in _BOUNDS:
        return bool(_BOUNDS[word](computed, low))
    high, above = (low, half) if second is None else _read(second, word == "about")
    return low - half <= computed <= high + above


def _parts(printed: str) -> tuple[Any, ...]:
    """Digits, their bound or "about", the one or two numbers, and the unit."""
    found = _PRINTED.fullmatch(printed)
    if found is None:
        known = "'0.75', 'about 600', '40-50 %' or '< 30 ms'"
        raise InvalidInput(f"printed is {printed!r}; give digits such as {known}")
    return found.groups()


def beside(printed: str, value: float) -> str:
    """Return "32.3 for < 30", the number to as many digits as the printed one, or three.

    What is nothing beside the printed number is 0.
    """
    text, _, *numbers, unit = _parts(printed)
    numbers = [one.replace(" ", "") for one in numbers if one]
    value = float(value) * _SCALES.get(unit, 1.0)
    digits = max(3, *(len(one.replace(".", "")) for one in numbers))
    small = min(map(float, numbers)) / 1e3
    return f"{'0' if abs(value) < small else f'{value:.{digits}g}'} for {text}"


class Words(Formatter):
    """Put numbers into texts: a format may be a unit with a number of digits, or with a format.

    Of several numbers each is put, with commas between. Of numbers with names these are put too:
    before the number, or after it with a word between, a space (``_``) or in brackets (``()``). A
    semicolon after the format puts semicolons between them.

    Examples
    --------
    >>> from fluidcc.papers.printed import Words
    >>> Words().format("{q:ms} of {room:ms3}, {loss:percent.0f}", q=[0.1, 0.2], room=0.3, loss=0.5)
    '100 ms, 200 ms of 300 ms, 50 %'
    >>> x = {"a": 1e6, "b": 2e6}
    >>> Words().format("{x:.2g}; {x:mbit for}; {x:mbit; ()}", x=x)
    'a = 1e+06, b = 2e+06; 1 Mbit/s for a, 2 Mbit/s for b; 1 Mbit/s (a); 2 Mbit/s (b)'
    """

    def format_field(self, value: Any, form: str) -> str:
        if isinstance(value, Mapping):
            form, _, word = form.partition(" ")
            pattern = {"": "{0} = {1}", "_": "{1} {0}", "()": "{1} ({0})"}.get(
                word, f"{{1}} {word} {{0}}"
            )
            pairs = value.items() if word else sorted(value.items())
            between = "; " if form.endswith(";") else ", "
            form = form.removesuffix(";")
            return between.join(pattern.format(k, in_unit(v, form)) for k, v in pairs)
        return numbers(each(value), form)


def each(value: Any) -> list[Any]:
    """Return several numbers as a list, and so a single one."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return list(value) if several and getattr(value, "ndim", True) else [value]


def in_unit(value: Any, form: str) -> str:
    """Return a number in SI units as text by a format such as "ms", "ms3", "ms.1f" or ".3g"."""
    if form == "bound":
        return bound(value)
    value = value.item() if hasattr(value, "item") else value
    found = _UNIT.fullmatch(form)
    if found is None:
        return format(value, form)
    unit, digits = found.groups()
    times, name, usual = _UNITS[unit]
    form = f".{digits or usual}g" if digits.isdecimal() or not digits else digits
    return f"{float(value) * times:{form}} {name}"


def bound(ratio: float) -> str:
    """Return a power of ten above a small error, that is not rounding.

    Texts must not change with the last bits of a run: it is three times as large at least, or 1e-9.
    """
    return "1e-9" if 3 * ratio < 1e-9 else f"1e{math.ceil(math.log10(3 * ratio))}"


def off(found: Any, wanted: Any) -> float:
    """Return the largest difference of numbers from others, relative to these."""
    return float(np.max(np.abs(found / wanted - 1)))


def rising(values: Iterable[Any]) -> bool:
    """Return whether each number, or row of numbers, is larger than the one before."""
    return bool(np.all(np.diff(list(values), axis=0) > 0))


def falling(values: Iterable[Any]) -> bool:
    """Return whether each number, or row of numbers, is smaller than the one before."""
    return rising(-np.array(list(values)))


def named(label: str, keys: Any, values: Iterable[Any] = ()) -> dict[str, float]:
    """Return numbers by names such as "n = 2", which a label such as "n = {:g}" makes of keys.

    They are those of a mapping, or of `values` in the order of the keys; of keys that are pairs the
    label has two places.
    """
    pairs = keys.items() if isinstance(keys, Mapping) else zip(keys, values, strict=True)
    return {
        label.format(*(key if isinstance(key, tuple) else (key,))): float(v) for key, v in pairs
    }


def numbers(values: Iterable[Any], form: str = ".3g") -> str:
    """Return numbers as text, one after the other."""
    return ", ".join(in_unit(v, form) for v in values)


def ms(seconds: Any, digits: int | str = "") -> str:
    """Return a time as text in milliseconds, with as many digits."""
    return in_unit(seconds, f"ms{digits}")


def percent(ratio: Any, digits: int | str = "") -> str:
    """Return a part as text in percent, with as many digits."""
    return in_unit(ratio, f"percent{digits}")
