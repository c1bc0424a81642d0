"""Calls with missing, unknown or misplaced arguments, answered in one sentence with the remedy."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from fluidcc.errors import InvalidInput

__all__ = ["explained"]

P = ParamSpec("P")
R = TypeVar("R")


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose calls raise `InvalidInput` where Python's TypeError says that arguments do not fit.

    The text names the function, the argument and, from the docstring, what it should be.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                pass
            else:
                raise  # from within: not about these arguments
        raise InvalidInput(_sentence(function, signature, args, kwargs)) from None

    return call


def _sentence(function: Any, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    known = {k: p for k, p in signature.parameters.items() if k != "self"}
    name = f"{function.__name__}()"
    for key in kwargs:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(known)}"
            return f"{name} has no argument {key!r}; {hint}"
    by_place = [k for k, p in known.items() if p.kind is not p.KEYWORD_ONLY]
    given = args[1:] if "self" in signature.parameters else args
    if len(given) > len(by_place):
        rest = ", ".join(k for k in known if k not in by_place) or "none"
        return (
            f"{name} takes {', '.join(by_place)} by position, and by name {rest}; {given[len(by_place)]!r} is too much"
        )
    for key in by_place[: len(given)]:
        if key in kwargs:
            return f"{name} has {key} twice, by position and by name; give it once"
    missing = [
        k for k, p in known.items() if p.default is p.empty and k not in kwargs and k not in by_place[: len(given)]
    ]
    return f"{name} lacks {' and '.join(missing)}; give {' and '.join(_kind(function, key) for key in missing)}"


def _kind(function: Any, key: str) -> str:
    """An argument with its type as the docstring has it."""
    found = re.search(rf"^ *(?:\w+, )*{key}(?:, \w+)* : (.*)$", function.__doc__ or "", re.MULTILINE)
    return f"{key} ({found[1]})" if found else key
