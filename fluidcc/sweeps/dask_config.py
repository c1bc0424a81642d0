"""Where settings of Dask stand that leave more of the cores to a sweep."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DASK_CONFIG"]

DASK_CONFIG = Path(__file__).with_name("dask.yaml")
