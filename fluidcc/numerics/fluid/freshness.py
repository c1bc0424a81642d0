"""Compiled code that is older than its source is never run.

numba's disk cache looks at the file of a function, not at the files of the functions it calls: after a change in one
of this folder's modules, callers in the others would go on with the old code. So a stamp beside the cache holds the
hash of all sources, and whatever was compiled under another stamp is deleted before the first call.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import config, float64, int64

__all__ = ["prepare", "source_hash", "vectorised"]

_FOLDER = Path(__file__).parent
_STAMP = "fluidcc_sources.sha256"


@lru_cache(maxsize=1)
def source_hash() -> str:
    """Hash of every source that the compiled solver depends on."""
    digest = hashlib.sha256()
    for path in [*sorted(_FOLDER.glob("*.py")), _FOLDER.parent / "tableaus.py"]:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


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

    _discard_stale_code(advance)
    with vectorised():
        advance.compile((float64[::1], int64[::1], int64, int64, float64))


def _discard_stale_code(advance: Any) -> None:
    cache = Path(advance.stats.cache_path)
    stamp = cache / _STAMP
    with contextlib.suppress(OSError):
        if stamp.read_text() == source_hash():
            return
    with contextlib.suppress(OSError):
        for path in _FOLDER.glob("*.py"):
            for old in [*cache.glob(f"{path.stem}.*.nbi"), *cache.glob(f"{path.stem}.*.nbc")]:
                old.unlink(missing_ok=True)
        cache.mkdir(parents=True, exist_ok=True)
        stamp.write_text(source_hash())
