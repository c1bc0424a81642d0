"""The compiled analysis, as fresh as its sources."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from numba import config

from fluidcc.numerics.linear.compiled.replay import replay
from fluidcc.numerics.stale import discard_stale_code

__all__ = ["prepare"]


@lru_cache(maxsize=1)
def prepare() -> None:
    """Once in a process, before anything of this folder is called."""
    if not config.DISABLE_JIT:
        folder = Path(__file__).parent
        sources = [*sorted(folder.glob("*.py")), folder.parents[1] / "counted.py"]
        discard_stale_code(replay, sources, "fluidcc_linear.sha256")
