"""The compiled driver, from a cache that is never older than its sources (`numerics.stale`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import config, float64, int64

from ..stale import discard_stale_code, hash_of

__all__ = ["prepare", "solver", "source_hash", "vectorised"]

_FOLDER = Path(__file__).parent
_SOURCES = (*sorted(_FOLDER.glob("*.py")), _FOLDER.parent / "compiling.py", _FOLDER.parent / "tableaus.py")
_STAMP = "fluidcc_sources.sha256"
_TYPES = (float64[::1], int64[::1], int64, int64, float64)


@lru_cache(maxsize=1)
def source_hash() -> str:
    """Hash of every source that the compiled solver depends on."""
    return hash_of(_SOURCES)


@contextlib.contextmanager
def vectorised() -> Iterator[None]:
    """What is compiled within has neighbouring scalar operations joined to vectors, where numba by default has not.

    That saves a third of the time of the fused step and half of that of the samples.
    """
    before = config.SLP_VECTORIZE
    config.SLP_VECTORIZE = 1
    try:
        yield
    finally:
        config.SLP_VECTORIZE = before


@lru_cache(maxsize=1)
def prepare() -> None:
    """Load the driver from the cache, or compile it (once per installation). Once in a process, before the first call.

    What numba compiled from other sources than these is deleted first.
    """
    if config.DISABLE_JIT:
        return
    from .entry import advance

    discard_stale_code(advance, _SOURCES, _STAMP)
    with vectorised():
        advance.compile(_TYPES)


@lru_cache(maxsize=1)
def solver() -> Callable[[Any, Any, int, int, float], int]:
    """`entry.advance` for the arrays of a workspace, whose types it takes for granted.

    To look at the types of its arguments takes numba 3 us after some work in Python, and a short solve 50.
    """
    from .entry import advance

    if config.DISABLE_JIT:
        return advance
    prepare()
    return advance.overloads[_TYPES].entry_point
