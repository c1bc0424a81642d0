"""Arguments of formulas: numbers, arrays or text with a unit, in the range that a symbol's assumptions give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc.base.arguments import numbers
from fluidcc.base.errors import InvalidInput
from fluidcc.base.units import to_si
from fluidcc.symbols import plain

__all__ = ["argument", "common_shape", "range_of"]


def range_of(s: Symbol) -> str:
    """What the assumptions on an argument ask of its values."""
    if s.is_positive:
        return "positive"
    if s.is_nonnegative:
        return "at least 0"
    return "finite and not 0" if s.is_nonzero else "finite"


def argument(function: str, s: Symbol, value: Any, unit: str = "1") -> NDArray[np.float64]:
    """The value given for an argument, as an array in SI units.

    Parameters
    ----------
    function : str
        Whose argument it is, for messages.
    s : Symbol
        Its name and its range.
    value : array_like or str
        Text is converted into `unit`.

    Raises
    ------
    InvalidInput
        If it is neither, or some of it is out of range.
    """
    if isinstance(value, str):
        value = to_si(value, unit, f"{plain(s)} of {function}")
    found = numbers(value, f"{function}: {plain(s)}", "a number or an array of numbers", finite=False)
    wrong = ~np.isfinite(found)
    if s.is_positive:
        wrong |= found <= 0
    elif s.is_nonnegative:
        wrong |= found < 0
    elif s.is_nonzero:
        wrong |= found == 0
    if np.any(wrong):
        raise InvalidInput(f"{function}: {plain(s)} is {found[wrong].flat[0]:g}, but must be {range_of(s)}")
    return found


def common_shape(function: str, values: dict[str, NDArray[np.float64]]) -> tuple[int, ...]:
    """The shape to which arguments broadcast.

    Raises
    ------
    InvalidInput
        If they do not.
    """
    try:
        return np.broadcast_shapes(*(v.shape for v in values.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {v.shape}" for name, v in values.items() if v.shape)
        raise InvalidInput(f"{function}: arrays of these shapes do not go together: {shapes}") from None
