"""Compiled code that is older than its source is never run.

numba's disk cache looks at the file of a function, not at the files of the functions it calls: after a change in one
module, callers in others would go on with the old code. So a stamp beside the cache holds the hash of all sources, and
whatever was compiled under another stamp is deleted before the first call.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["discard_stale_code", "hash_of"]


def hash_of(sources: Iterable[Path]) -> str:
    """Hash of source files."""
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def discard_stale_code(function: Any, sources: Iterable[Path], stamp: str) -> None:
    """Delete what was compiled of the files in the folder of `function`, unless from these sources.

    Parameters
    ----------
    function : dispatcher
        One of the folder's compiled functions, not yet called.
    sources : paths
        All files that compiled code depends on.
    stamp : str
        Name of the file that holds the hash.
    """
    cache, folder = Path(function.stats.cache_path), Path(function.py_func.__code__.co_filename).parent
    now = hash_of(sources)
    with contextlib.suppress(OSError):
        if (cache / stamp).read_text() == now:
            return
    with contextlib.suppress(OSError):
        for path in folder.glob("*.py"):
            for old in [*cache.glob(f"{path.stem}.*.nbi"), *cache.glob(f"{path.stem}.*.nbc")]:
                old.unlink(missing_ok=True)
        cache.mkdir(parents=True, exist_ok=True)
        (cache / stamp).write_text(now)
