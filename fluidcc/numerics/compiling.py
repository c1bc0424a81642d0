"""numba's ``njit``, which compiles a function once for all whole numbers.

Between compiled functions numba takes a constant argument for a type of its own: ``f(x, 0)`` and ``f(x, 1)`` are
compiled apart, and so is all that calls them. That is worth its time only where the function is inlined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core.types.misc import unliteral

__all__ = ["njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As ``numba.njit``, but constants do not make another function, unless it is forced inline."""

    def compiled(function: Callable[..., Any]) -> Any:
        made = numba.njit(**options)(function)
        if numba.config.DISABLE_JIT or options.get("forceinline"):
            return made
        resolve = made.get_call_template

        def of_types(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            return resolve(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

        made.get_call_template = of_types
        return made

    return compiled
