"""Numbers beside those that a paper prints: whether they agree to its digits, and as text."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fluidcc.base.errors import InvalidInput
from fluidcc.papers.model import DIFFERS, REPRODUCED, Outcome

__all__ = [
    "agrees", "at_values", "bound", "compared", "kbit", "mbit", "ms", "named", "numbers", "off",
    "percent",
]  # fmt: skip

_NUMBER = r"(\d[\d ]*(?:\.\d+)?)"
_BOUNDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
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


def compared(
    pairs: Iterable[tuple[str, float]],
    computed: str,
    reason: str = "",
    values: Mapping[str, float] | None = None,
) -> Outcome:
    """Return the outcome of a claim whose numbers are printed.

    It is reproduced if every computed number agrees with its printed one, and differs otherwise.

    Parameters
    ----------
    pairs : iterable of (str, float)
        Each printed number with the computed one, as `agrees` takes them.
    computed, reason, values
        Of the outcome; the numbers that do not agree are put before `reason`.
    """
    wrong = [(digits, value) for digits, value in pairs if not agrees(digits, value)]
    off = [f"{_shown(value, digits)} for {digits}" for digits, value in wrong]
    if not off:
        return Outcome(REPRODUCED, computed, reason, values or {})
    said = f"Not as printed: {', '.join(off)}."
    return Outcome(DIFFERS, computed, f"{said} {reason}".strip(), values or {})


def _shown(value: float, printed: str) -> str:
    """A number to as many digits as the printed one, or three; what is nothing beside it is 0."""
    numbers = [text.replace(" ", "") for text in re.findall(_NUMBER, printed)]
    small = min(float(text) for text in numbers) / 1e3
    digits = max(len(text.replace(".", "")) for text in numbers)
    return "0" if abs(value) < small else f"{value:.{max(3, digits)}g}"


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


def ms(seconds: Any, digits: int = 4) -> str:
    """Return a time as text in milliseconds."""
    return f"{float(seconds) * 1e3:.{digits}g} ms"


def mbit(rate: Any, digits: int = 4) -> str:
    """Return a rate as text in Mbit/s."""
    return f"{float(rate) / 1e6:.{digits}g} Mbit/s"


def kbit(rate: Any, digits: int = 4) -> str:
    """Return a rate as text in kbit/s."""
    return f"{float(rate) / 1e3:.{digits}g} kbit/s"


def percent(ratio: Any, digits: int = 3) -> str:
    """Return a part as text in percent."""
    return f"{float(ratio) * 100:.{digits}g} %"


def at_values(values: Mapping[str, float]) -> str:
    """Return the numbers of a counterexample by name, as text."""
    return ", ".join(f"{name} = {v:.3g}" for name, v in sorted(values.items()))
