"""Warnings: told to the user; or gathered, where many results are computed and each is to carry its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from fluidcc.base.errors import FluidccWarning

__all__ = ["gathered", "warn"]

_gathered: ContextVar[list[str] | None] = ContextVar("gathered", default=None)


def warn(text: str, stacklevel: int = 1) -> None:
    """Warn that a result may be wrong or not what was meant; `stacklevel` as of `warnings.warn`, from the caller on."""
    told = _gathered.get()
    if told is None:
        warnings.warn(text, FluidccWarning, stacklevel=stacklevel + 1)
    else:
        told.append(text)


@contextmanager
def gathered() -> Iterator[list[str]]:
    """Take down what is warned of meanwhile, instead of telling it: of this thread alone, unlike Python's own ways."""
    told: list[str] = []
    before = _gathered.set(told)
    try:
        yield told
    finally:
        _gathered.reset(before)
