"""Inner functions of compiled code, for tests to call."""

from functools import cache
from typing import Any

import numba


@cache
def called(inner: Any) -> Any:
    """A function that Python can call, of one that compiled code alone calls."""
    if numba.config.DISABLE_JIT:
        return inner
    return numba.njit(lambda *arguments: inner(*arguments), error_model="numpy")
