"""Arguments that do not fit, answered in one sentence with the remedy: how a function is called,
and with what values.

Each check takes the name of the argument for its message and returns the argument in its normal
form. Text with units is read by `fluidcc.base.units`; arguments checked here have none.
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Number
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidCall, InvalidInput, UnknownName
from fluidcc.base.progress import interrupted

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

LONGEST = 80  # characters of a value in a message
MOST = 2**63 - 1  # the largest integer of NumPy and compiled code


# --- values ---------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """Return a value for a message: in one line, its middle left out where it is long."""
    try:
        text = repr(value)
        if text.startswith("<xarray."):  # its first line: attributes may be long
            text = text.partition("\n")[0]
        text = " ".join(text.split())
    except (
        Exception
    ):  # an integer of more digits than Python prints, a list nested without end, an odd object
        text = (
            f"{type(value).__name__} of very many digits"
            if isinstance(value, int)
            else type(value).__name__
        )
    return brief(text)


def brief(text: str) -> str:
    """Return text for a message, its middle left out where it is long."""
    half = LONGEST // 2 - 3
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"


def flag(value: Any, what: str, *, unset: bool = False) -> Any:
    """Return True or False; with `unset`, also None."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if value is None and unset:
        return None
    raise InvalidInput(
        f"{what} is {shown(value)}; give {'True, False or None' if unset else 'True or False'}"
    )


def number(
    value: Any,
    what: str,
    right: str = "a finite number",
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
    infinite: bool = False,
) -> float:
    """Return a float within bounds; `right` says in the message what would be."""
    try:
        if (
            isinstance(value, bool | np.bool_ | str | bytes)
            or np.iscomplexobj(value)
            or np.ndim(value)
        ):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if math.isinf(result) and not infinite:
        result = math.nan
    inside = (
        least <= result <= most
        and (result > above or math.isinf(above))
        and (result < below or math.isinf(below))
    )
    if not inside:
        raise InvalidInput(f"{what} is {shown(value)}; give {right}")
    return result


def whole(value: Any, what: str, *, least: int = 0, most: int = MOST) -> int:
    """Return an integer within bounds; floats are not taken, even whole ones."""
    good = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not good or not least <= int(value) <= most:
        reach = (
            f"of at least {least}"
            if most == MOST and not (good and value > most)
            else f"from {least} to {most}"
        )
        raise InvalidInput(f"{what} is {shown(value)}; give a whole number {reach}")
    return int(value)


def numbers(
    value: Any, what: str, right: str = "finite numbers", *, ndim: int | None = None,
    finite: bool = True,
    kind: type = float,
) -> NDArray[Any]:  # fmt: skip
    """Return an array of numbers, of `ndim` axes if that is given; no text, no truth values, no
    gaps.
    """
    try:
        raw = np.asarray(value)
        if raw.dtype == object and not all(
            isinstance(v, Number) and not isinstance(v, bool) for v in raw.ravel()
        ):
            raise TypeError
        if raw.dtype.kind not in ("iufcO" if kind is complex else "iufO") and raw.size:
            raise TypeError
        result: NDArray[Any] = raw.astype(kind)
        if ndim not in (None, result.ndim) or (finite and not np.isfinite(result).all()):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{what} is {shown(value)}; give {right}") from None
    return result


def choice(value: Any, what: str, options: Iterable[str]) -> Any:
    """Return the value, which must be one of a few texts."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        few = ", ".join(map(repr, known[:-1]))
        raise UnknownName(
            f"{what} is {shown(value)}; give {few + ' or ' if few else ''}{known[-1]!r}"
        )
    return value


def mapping(value: Any, what: str, right: str) -> Mapping[Any, Any]:
    """Return the value, which must be a mapping."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} is {shown(value)}; give {right}")
    return value


# --- calls ----------------------------------------------------------------------------------------


def explained_class(made: C) -> C:
    """Return the same class, made by `explained` calls, as its public methods are called."""
    about = "\n".join(base.__doc__ or "" for base in made.__mro__[:-1])
    made.__init__ = explained(made.__init__, about)  # type: ignore[misc]
    for name, value in [*vars(made).items()]:
        if inspect.isfunction(value) and (name == "__call__" or name[0] != "_"):
            setattr(made, name, explained(value))
    return made


def explained(function: Callable[P, R], about: str | None = None) -> Callable[P, R]:
    """Return a function that raises `InvalidCall` where Python's TypeError says that
    arguments do not fit.

    The text names the function, the argument and, from the docstring (or `about`), what it should
    be.
    """
    signature = inspect.signature(function)
    text = function.__doc__ if about is None else about

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
        except SystemError as error:
            if not interrupted(error):
                raise
            raise KeyboardInterrupt from error
        raise InvalidCall(_sentence(function, text or "", signature, args, kwargs)) from None

    return call


def _sentence(
    function: Any, text: str, signature: inspect.Signature, args: Any, kwargs: dict[str, Any]
) -> str:
    known = {k: p for k, p in signature.parameters.items() if k not in ("self", "cls")}
    own, _, method = function.__qualname__.rpartition(".")
    name = f"{own if method in ('__init__', '__new__') else function.__name__}()"
    anything = any(p.kind is p.VAR_KEYWORD for p in known.values())
    for key in kwargs:
        if key not in known and not anything:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(known)}"
            return f"{name} has no argument {key!r}; {hint}"
    known = {k: p for k, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    by_place = [k for k, p in known.items() if p.kind is not p.KEYWORD_ONLY]
    given = args[1:] if {"self", "cls"} & {*signature.parameters} else args
    if len(given) > len(by_place):
        rest = ", ".join(k for k in known if k not in by_place) or "none"
        return (
            f"{name} takes {', '.join(by_place) or 'nothing'} by position, and by name {rest}; "
            f"{shown(given[len(by_place)])} is too much"
        )
    for key in by_place[: len(given)]:
        if key in kwargs:
            return f"{name} has {key} twice, by position and by name; give it once"
    missing = [
        k
        for k, p in known.items()
        if p.default is p.empty and k not in kwargs and k not in by_place[: len(given)]
    ]
    return (
        f"{name} lacks {' and '.join(missing)}; give "
        f"{' and '.join(_kind(text, key) for key in missing)}"
    )


def _kind(text: str, key: str) -> str:
    """Return an argument with its type as the docstring has it."""
    found = re.search(rf"^ *(?:\w+, )*{key}(?:, \w+)* : (.*)$", text, re.MULTILINE)
    return f"{key} ({found[1]})" if found else key
